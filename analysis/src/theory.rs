//! What is proved about the makespan of job stealing, and whether a run respects it.
//!
//! For ST_x with threshold x and beta = min(x, 1 − x), with the home-wise area bound that the proofs use:
//!
//! ```text
//! order      offline (all jobs at time 0)   online
//! AHB, ABH   1 + 1/beta                     3 + 1/beta     x = 1/2: 3 and 5 (Schwiegelshohn, Tchernykh, Yahyapour 2008)
//! BAH        2 + 1/beta                     4 + 1/beta     one more drain of small jobs per site
//! others     none: stolen work goes before own work, so a site may starve the jobs only it can hold
//! ```
//!
//! Of brokers, [`brokers`] has what is proved.
//!
//! The theorems assume zero latency. With delays the same numbers are printed, as the
//! distance to the ideal, but a run above them contradicts nothing. The ratio is never taken to the bound of the
//! thesis ([`Bounds::thesis`]): against that one even a correct schedule may exceed the ceiling.

use serde::{Deserialize, Serialize};

use scheduler::{LocalScheduler, Order, Span, Steal, Strategy, StrategySpec};

use crate::bounds::Bounds;
use crate::job::JobState;
use crate::outcome::Outcome;

pub mod brokers;
pub mod fetch;
mod messages;

pub use messages::{Hindrance, Messages};

/// What a run must be known for before a theorem may be held against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The strategy that the run used.
    pub strategy: StrategySpec,
    /// The scheduler of each site, where sites have one.
    pub local: LocalScheduler,
    /// What messages cost. Nothing under ideal strategies.
    pub messages: Messages,
    /// Whether some users submit past the broker.
    pub local_users: bool,
}

/// Whether a run respects a proved relation. Where an assumption does not hold, or nothing is proved, the reason is a clause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "reason")]
pub enum Verdict {
    /// The assumptions hold, and so does the relation.
    Holds,
    /// The assumptions hold and the relation does not: the program or the proof is wrong.
    Violated,
    /// The measured number is on the right side, though an assumption does not hold.
    Within(String),
    /// It is on the wrong side, and an assumption does not hold.
    Outside(String),
    /// There is no limit to hold it against.
    NoCeiling(String),
}

impl Verdict {
    /// Of a number on the right side of its limit or not, by assumptions of which one does not hold for this reason.
    fn unproved(within: bool, reason: &str) -> Verdict {
        if within { Verdict::Within(reason.into()) } else { Verdict::Outside(reason.into()) }
    }

    /// The word in files; in tables with a blank for the underscore.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Violated => "violated",
            Verdict::Within(_) => "within",
            Verdict::Outside(_) => "outside",
            Verdict::NoCeiling(_) => "no_ceiling",
        }
    }

    /// Why it is no proof of anything.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Holds | Verdict::Violated => None,
            Verdict::Within(reason) | Verdict::Outside(reason) | Verdict::NoCeiling(reason) => Some(reason),
        }
    }

    /// Whether the measured number is on the right side, whatever the assumptions.
    pub fn within(&self) -> Option<bool> {
        match self {
            Verdict::Holds | Verdict::Within(_) => Some(true),
            Verdict::Violated | Verdict::Outside(_) => Some(false),
            Verdict::NoCeiling(_) => None,
        }
    }
}

/// Which side of the limit is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Measured ≤ limit.
    AtMost,
    /// Measured ≥ limit.
    AtLeast,
}

/// In what a relation is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Makespan over a lower bound.
    Ratio,
    /// A makespan in seconds.
    Seconds,
}

/// One proved relation beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// A short name.
    pub name: String,
    /// The unit of the two numbers.
    pub quantity: Quantity,
    /// What the run did; `None` if it cannot be computed.
    pub measured: Option<f64>,
    /// The direction of the relation.
    pub relation: Relation,
    /// What is proved; `None` if nothing is.
    pub limit: Option<f64>,
    /// The formula of the limit.
    pub formula: String,
    /// What the proof needs.
    pub assumption: String,
    /// Where it is proved.
    pub source: String,
    /// What measured number and assumptions say together.
    #[serde(flatten)]
    pub verdict: Verdict,
}

const PUBLISHED: &str = "Schwiegelshohn, Tchernykh, Yahyapour, IPDPS 2008; Quezada Pina 2012, §3.2";
const GENERALIZED: &str = "the proof of IPDPS 2008 with threshold x; docs/THEORY";
const FREE: &str = "latency is zero";
const PARTIAL: &str = "the run is partial";
const SHARED: &str = "jobs share nodes, so how long they run depends on the schedule";
const SPREAD: &str = "jobs may run in parts at several sites";

/// Every relation that says something about a run of this strategy, the competitive ratio first.
pub fn compare(outcome: &Outcome, bounds: &Bounds, setting: Setting) -> Vec<Comparison> {
    if outcome.grid.is_shared() {
        return vec![unproved_ratio(None, SHARED.into())];
    }
    let run = Run {
        makespan: outcome.makespan(),
        offline: outcome.is_offline(),
        complete: outcome.is_complete(),
        setting,
    };
    let mut comparisons = match &setting.strategy.strategy {
        _ if outcome.grid.spreads() => {
            vec![unproved_ratio(Bounds::ratio(run.makespan, bounds.proof), SPREAD.into())]
        }
        Strategy::Broker(broker) => brokers::comparisons(&run, bounds, outcome, broker),
        _ => vec![competitive_ratio(&run, bounds)],
    };
    comparisons.extend(certificate(&run, bounds, outcome));
    comparisons.extend(fetched(&run, bounds, outcome));
    comparisons.push(lower_bound(&run, bounds));
    comparisons
}

/// The judgment of a whole run: violated if one relation is, else that of the first, the competitive ratio.
pub fn overall(comparisons: &[Comparison]) -> Verdict {
    if comparisons.iter().any(|comparison| comparison.verdict == Verdict::Violated) {
        Verdict::Violated
    } else {
        comparisons
            .first()
            .map_or(Verdict::NoCeiling("nothing was compared".into()), |first| first.verdict.clone())
    }
}

/// What the relations need of a run.
struct Run {
    makespan: Span,
    offline: bool,
    complete: bool,
    setting: Setting,
}

impl Run {
    fn judge(&self, within: bool) -> Verdict {
        if !self.complete {
            Verdict::unproved(within, PARTIAL)
        } else if self.setting.strategy.fetch > Span::ZERO {
            Verdict::unproved(within, "stolen jobs had to be fetched")
        } else if !self.setting.messages.are_free() {
            Verdict::unproved(within, &self.setting.messages.hindrances())
        } else if within {
            Verdict::Holds
        } else {
            Verdict::Violated
        }
    }

    fn case(&self) -> &'static str {
        if self.offline { "all jobs submitted at once" } else { "jobs submitted over time" }
    }
}

/// The proved ratio is `units + 1/beta`.
struct Guarantee {
    units: i128,
    beta_percent: i128,
}

/// What is proved for a strategy, or why nothing is.
fn guarantee(strategy: &Strategy, offline: bool) -> Result<(Steal, Guarantee), String> {
    let steal = match strategy {
        Strategy::Steal(steal) => steal,
        Strategy::StealGreedy(_) => return Err("stealing from any smaller site has no proved ratio".into()),
        Strategy::CommonPool => return Err("one list for all sites has no constant ratio".into()),
        Strategy::Pool(_) => return Err("exchange through a global queue has no proved ratio".into()),
        Strategy::Balance(_) => return Err("the classic baselines have no proved ratio here".into()),
        Strategy::Broker(_) => return Err("brokers have ceilings of their own".into()),
        Strategy::Opaque(_) => return Err("brokers before opaque sites have no proved ratio".into()),
        Strategy::Local => return Err("jobs that never change sites have no constant ratio".into()),
    };
    let beta_percent = i128::from(steal.threshold.beta_percent());
    if beta_percent == 0 {
        return Err(format!("ST{} has one class only, and no proved ratio", steal.threshold));
    }
    let units = match (steal.order, offline) {
        (Order::Ahb | Order::Abh, true) => 1,
        (Order::Ahb | Order::Abh, false) => 3,
        (Order::Bah, true) => 2,
        (Order::Bah, false) => 4,
        (Order::Hab | Order::Hba | Order::Bha, _) => {
            return Err(format!("order {} has no proved ratio: stolen work goes first", steal.order.name()));
        }
    };
    Ok((*steal, Guarantee { units, beta_percent }))
}

/// The proved ratio of a strategy with free messages, or why there is none; for brokers that of any jobs with exact
/// estimates.
///
/// # Errors
/// The reason, as a clause.
pub fn ceiling(strategy: &Strategy, local: LocalScheduler, offline: bool) -> Result<f64, String> {
    if let Strategy::Broker(broker) = strategy {
        let facts = brokers::Facts { offline, ..brokers::Facts::default() };
        return brokers::guarantee(broker, local, facts).map(|guarantee| guarantee.ratio());
    }
    let (_, Guarantee { units, beta_percent }) = guarantee(strategy, offline)?;
    Ok(units as f64 + 100.0 / beta_percent as f64)
}

/// The competitive ratio of a strategy of which nothing is proved, and why.
fn unproved_ratio(measured: Option<f64>, reason: String) -> Comparison {
    Comparison {
        name: "competitive ratio".into(),
        quantity: Quantity::Ratio,
        measured,
        relation: Relation::AtMost,
        limit: None,
        formula: "none".into(),
        assumption: String::new(),
        source: String::new(),
        verdict: Verdict::NoCeiling(reason),
    }
}

fn competitive_ratio(run: &Run, bounds: &Bounds) -> Comparison {
    let measured = Bounds::ratio(run.makespan, bounds.proof);
    let proved = guarantee(&run.setting.strategy.strategy, run.offline);
    let (steal, guarantee) = match proved {
        Ok(proved) => proved,
        Err(reason) => return unproved_ratio(measured, reason),
    };
    // makespan <= (units + 100/beta%) * bound, in integers.
    let Guarantee { units, beta_percent } = guarantee;
    let left = i128::from(run.makespan.as_micros()) * beta_percent;
    let right = i128::from(bounds.proof.as_micros()) * (units * beta_percent + 100);
    let within = left <= right;
    let published = steal.threshold.percent() == 50 && matches!(steal.order, Order::Ahb | Order::Abh);
    Comparison {
        name: "competitive ratio".into(),
        quantity: Quantity::Ratio,
        measured,
        relation: Relation::AtMost,
        limit: Some(units as f64 + 100.0 / beta_percent as f64),
        formula: format!("{units} + 1/beta, beta = {}", beta_percent as f64 / 100.0),
        assumption: format!("{FREE}; {}", run.case()),
        source: if published { PUBLISHED } else { GENERALIZED }.into(),
        verdict: run.judge(within),
    }
}

/// The certificate for the instance itself: sharper than the ratio, for orders AHB and ABH only.
fn certificate(run: &Run, bounds: &Bounds, outcome: &Outcome) -> Option<Comparison> {
    let (steal, guarantee) = guarantee(&run.setting.strategy.strategy, run.offline).ok()?;
    if !matches!(steal.order, Order::Ahb | Order::Abh) {
        return None;
    }
    let jobs = || outcome.jobs.iter().filter(|job| job.state != JobState::Rejected);
    let longest = jobs().map(|job| job.service()).max().unwrap_or(Span::ZERO);
    let last = jobs().map(|job| job.submit.since(outcome.origin)).max().unwrap_or(Span::ZERO);
    let fixed = if run.offline { longest } else { last + longest + longest };
    let busy = i128::from(bounds.area_start.as_micros()) * 100;
    let left = i128::from((run.makespan - fixed).as_micros()) * guarantee.beta_percent;
    let within = left <= busy;
    let formula = if run.offline {
        "max_k W_k/(beta S_k) + p_max"
    } else {
        "r_last + p_max + max_k W_k/(beta S_k) + p_max"
    };
    let limit = fixed.as_secs_f64() + busy as f64 / guarantee.beta_percent as f64 / 1e6;
    Some(Comparison {
        name: "makespan certificate".into(),
        quantity: Quantity::Seconds,
        measured: Some(run.makespan.as_secs_f64()),
        relation: Relation::AtMost,
        limit: Some(limit),
        formula: formula.into(),
        assumption: format!("{FREE}; {}", run.case()),
        source: GENERALIZED.into(),
        verdict: run.judge(within),
    })
}

/// The bounds of reserve, then fetch, if that is what ran.
fn fetched(run: &Run, bounds: &Bounds, outcome: &Outcome) -> Vec<Comparison> {
    let StrategySpec { strategy, fetch: delta, .. } = run.setting.strategy;
    match guarantee(&strategy, run.offline) {
        Ok((steal, guarantee)) if delta > Span::ZERO && matches!(steal.order, Order::Ahb | Order::Abh) => {
            let beta_percent = u8::try_from(guarantee.beta_percent).expect("a percentage");
            fetch::comparisons(outcome, bounds, delta, beta_percent, run.complete)
        }
        _ => Vec::new(),
    }
}

/// No complete schedule is shorter than a lower bound, whatever the strategy and the network.
fn lower_bound(run: &Run, bounds: &Bounds) -> Comparison {
    let within = run.makespan >= bounds.best;
    let verdict = match (run.complete, within) {
        (false, _) => Verdict::unproved(within, PARTIAL),
        (true, true) => Verdict::Holds,
        (true, false) => Verdict::Violated,
    };
    Comparison {
        name: "lower bound".into(),
        quantity: Quantity::Seconds,
        measured: Some(run.makespan.as_secs_f64()),
        relation: Relation::AtLeast,
        limit: Some(bounds.best.as_secs_f64()),
        formula: "max(time, area, count)".into(),
        assumption: "every job ran once, on as many processors as it asked for".into(),
        source: "area and count of the jobs; docs/THEORY".into(),
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::SharedNodes;
    use scheduler::sharing::{Cluster, Fairness, Node, Platform};

    use super::*;
    use crate::fixtures;

    fn setting(strategy: &str) -> Setting {
        Setting {
            strategy: strategy.parse().unwrap(),
            local: LocalScheduler::Easy,
            messages: Messages::FREE,
            local_users: false,
        }
    }

    /// One job of 10 s that starts `late` seconds late on a site of its size.
    fn late_job(late: i64) -> Outcome {
        fixtures::outcome(&[4], &[(0, 4, 10, 1, late)])
    }

    fn ratio_of(strategy: &str, outcome: &Outcome) -> Comparison {
        compare(outcome, &Bounds::of(outcome), setting(strategy)).remove(0)
    }

    #[test]
    fn ceilings_follow_order_threshold_and_submission() {
        let online = fixtures::outcome(&[4], &[(0, 4, 10, 1, 0), (1, 4, 10, 1, 10)]);
        let offline = late_job(0);
        for (strategy, first, second) in [
            ("ideal/st:50", Some(3.0), Some(5.0)),
            ("ideal/st:50,order=abh", Some(3.0), Some(5.0)),
            ("ideal/st:25", Some(5.0), Some(7.0)),
            ("ideal/st:90", Some(11.0), Some(13.0)),
            ("ideal/st:50,order=bah", Some(4.0), Some(6.0)),
            ("ideal/st:50,order=hab", None, None),
            ("ideal/st:50,order=bha", None, None),
            ("ideal/st:0", None, None),
            ("ideal/st:100", None, None),
            ("st-greedy:50", None, None),
            ("common-pool", None, None),
            ("local", None, None),
        ] {
            assert_eq!(ratio_of(strategy, &offline).limit, first, "{strategy} offline");
            assert_eq!(ratio_of(strategy, &online).limit, second, "{strategy} online");
        }
    }

    #[test]
    fn a_ratio_above_the_ceiling_violates_it() {
        assert_eq!(ratio_of("ideal/st:50", &late_job(20)).verdict, Verdict::Holds);
        assert_eq!(ratio_of("ideal/st:50", &late_job(21)).verdict, Verdict::Violated);
        let comparisons = compare(&late_job(21), &Bounds::of(&late_job(21)), setting("ideal/st:50"));
        assert_eq!(overall(&comparisons), Verdict::Violated);
    }

    /// The job is wider than every site, and the theorems about brokers count the sites that are wide enough.
    #[test]
    fn nothing_is_proved_where_jobs_run_in_parts_or_on_nodes_that_they_share() {
        let mut spread = fixtures::outcome(&[4, 4], &[(0, 6, 10, 1, 0)]);
        spread.grid = spread.grid.with_spread(8);
        let of =
            |outcome: &Outcome, strategy: &str| compare(outcome, &Bounds::of(outcome), setting(strategy));
        let comparisons = of(&spread, "ideal/broker:mcisne,coallocate=dp");
        assert_eq!(overall(&comparisons), Verdict::NoCeiling(SPREAD.into()));
        assert_eq!(comparisons.len(), 2, "a bound by work holds");

        let node = Node { power: 1.0, memory: 1024, link: 1e3, mpl: 2 };
        let cluster = Cluster { nodes: vec![node; 2], uplink: 1e3 };
        let nodes = SharedNodes {
            platform: Arc::new(Platform::new(&[cluster]).unwrap()),
            fairness: Fairness::Proportional,
            applications: Arc::default(),
        };
        let mut shared = fixtures::outcome(&[4], &[(0, 1, 10, 1, 50)]);
        shared.grid = shared.grid.with_clusters([Some(Arc::new(nodes))]).unwrap();
        let comparisons = of(&shared, "ideal/st:50");
        assert_eq!(overall(&comparisons), Verdict::NoCeiling(SHARED.into()));
        assert_eq!((comparisons.len(), comparisons[0].measured), (1, None));
    }

    #[test]
    fn the_certificate_is_the_ceiling_of_this_instance() {
        let outcome = fixtures::outcome(&[2, 4], &[(0, 2, 10, 1, 0), (0, 4, 4, 2, 0)]);
        let comparisons = compare(&outcome, &Bounds::of(&outcome), setting("ideal/st:50"));
        let certificate = comparisons.iter().find(|c| c.name == "makespan certificate").unwrap();
        // W_1/(S_1/2) = 36/3, W_2/(S_2/2) = 16/2, p_max = 10.
        assert_eq!(certificate.limit, Some(22.0));
        assert_eq!(certificate.verdict, Verdict::Holds);
    }

    #[test]
    fn delays_make_the_ceiling_a_reference_and_no_verdict() {
        let outcome = late_job(50);
        let delayed =
            Setting { messages: Messages::FREE.hindered_if(true, Hindrance::Delay), ..setting("st:50") };
        let ratio = compare(&outcome, &Bounds::of(&outcome), delayed).remove(0);
        assert_eq!(ratio.verdict, Verdict::Outside("messages took time".into()));
    }

    #[test]
    fn a_makespan_below_a_lower_bound_is_an_error_of_ours() {
        // Two jobs of the whole site at the same time: impossible.
        let outcome = fixtures::outcome(&[4], &[(0, 4, 10, 1, 0), (0, 4, 10, 1, 0)]);
        let comparisons = compare(&outcome, &Bounds::of(&outcome), setting("local"));
        assert_eq!(overall(&comparisons), Verdict::Violated);
    }
}
