//! What is proved about the makespan of brokers with admissibility: MLB_a and MCT_a (Quezada Pina 2012, §3.5; Quezada Pina et
//! al., FGCS 2012).
//!
//! With list scheduling at every site, f and l the first and the last admissible site of the job that was given last to the
//! site that ends last, f0 the home of the narrowest job that sites f to l executed, s_{x,y} the processors of sites x to y:
//!
//! ```text
//! s_{f0,m} / s_{f,l} <= 1/a²         if a <= tau = s_{f,m} / s_{f0,m}
//!                    <= 1/(a (1−a))  otherwise
//! offline  C_max <= (1 + c s_{f0,m} / s_{f,l}) C*        online  C_max <= (3 + c s_{f0,m} / s_{f,l}) C*
//! ```
//!
//! c is 2 in the theorems. Where a job that is given last may disturb what a broker planned, c = 4 is proved instead. Which
//! reading has which, and why list scheduling: docs/THEORY.md, "Brokers".

use brokers::allocation::admissible;
use scheduler::strategy::{Completion, Count, Fraction, Plan};
use scheduler::{Broker, BrokerRule, LocalScheduler, Span};

use crate::bounds::Bounds;
use crate::job::{JobOutcome, JobState};
use crate::outcome::Outcome;
use crate::theory::{Comparison, Quantity, Relation, Run, Verdict, unproved_ratio};

/// What is known of the jobs that a ceiling is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// All are submitted at once.
    pub offline: bool,
    /// Each fits the smallest site.
    pub fit_smallest: bool,
    /// All ask for as many processors.
    pub one_width: bool,
}

impl Facts {
    /// The facts of jobs with these widths, on sites of which the smallest has so many processors.
    pub fn of(smallest: u32, widths: impl Iterator<Item = u32>, offline: bool) -> Facts {
        let (mut fit_smallest, mut one_width, mut first) = (true, true, None);
        for width in widths {
            fit_smallest &= width <= smallest;
            one_width &= *first.get_or_insert(width) == width;
        }
        Facts { offline, fit_smallest, one_width }
    }

    fn of_outcome(outcome: &Outcome) -> Facts {
        let smallest = outcome.grid.sizes().iter().copied().find(|&size| size > 0).unwrap_or(0);
        Facts::of(smallest, counted(outcome).map(|job| job.processors), outcome.is_offline())
    }
}

/// A proved ratio `units + c / share`, the share as a quotient: of s_{f0,m}, what s_{f,l} is at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantee {
    units: i128,
    c: i128,
    share: (i128, i128),
    formula: &'static str,
}

impl Guarantee {
    /// The ratio.
    pub fn ratio(&self) -> f64 {
        self.units as f64 + (self.c * self.share.1) as f64 / self.share.0 as f64
    }

    /// Whether a makespan keeps the ratio to a bound, exactly.
    fn is_kept(&self, makespan: Span, bound: Span) -> bool {
        let (part, whole) = self.share;
        i128::from(makespan.as_micros()) * part
            <= i128::from(bound.as_micros()) * (self.units * part + self.c * whole)
    }
}

/// a², the share of the first branch, and a (1 − a), that of the second; the latter is 0 for a = 1.
pub fn branches(a: Fraction) -> [(i128, i128); 2] {
    let (part, whole) = (i128::from(a.numerator()), i128::from(a.denominator()));
    [(part * part, whole * whole), (part * (whole - part), whole * whole)]
}

/// Theorems 1 to 3: `units + c / share` at tau = part / whole, or whatever tau is if none is given; none if it is infinite.
pub fn theorem(a: Fraction, tau: Option<(u64, u64)>, offline: bool) -> Option<f64> {
    let [first, second] = branches(a);
    let share = match tau {
        Some((part, whole)) if a.compare(part, whole).is_lt() => second,
        Some(_) => first,
        None => {
            if second.0 < first.0 {
                second
            } else {
                first
            }
        }
    };
    let units = if offline { 1.0 } else { 3.0 };
    (share.0 > 0).then(|| units + 2.0 * share.1 as f64 / share.0 as f64)
}

/// What a ceiling counts work with: c, or why nothing is proved.
fn factor(broker: &Broker, local: LocalScheduler, one_width: bool) -> Result<i128, String> {
    if local == LocalScheduler::External {
        return Err("what an external queue starts, and when, is its own; write local = \"list\"".into());
    }
    if local != LocalScheduler::List && !one_width {
        return Err(format!(
            "sites under {} may keep jobs of several widths waiting that fit; write local = \"list\"",
            local.name()
        ));
    }
    if broker.follows {
        return Err("nothing is proved for a part that follows the load; write a = 0.5".into());
    }
    match (broker.rule, broker.plan, broker.completion) {
        (BrokerRule::LowerBound, Plan::OpenLoopAll, _)
        | (BrokerRule::CompletionTime, Plan::OpenLoop | Plan::OpenLoopAll, _) => {
            Err("nothing is proved for plans that reports do not correct".into())
        }
        (BrokerRule::LowerBound, ..) if broker.count == Count::Waiting => {
            Err("nothing is proved for loads without running jobs".into())
        }
        (BrokerRule::LowerBound, ..) | (BrokerRule::CompletionTime, _, Completion::SiteAfter) => Ok(2),
        // Jobs of one width start in the order in which they were given, so the last one disturbs no plan.
        (BrokerRule::CompletionTime, _, Completion::SiteBefore) => Ok(if one_width { 2 } else { 4 }),
        (BrokerRule::CompletionTime, _, Completion::JobAfter) => {
            Err("nothing is proved for completion of the job alone".into())
        }
        _ => Err(format!("of brokers only mlb and mct have a proved ratio, not {}", broker.rule.name())),
    }
}

/// The proved ratio for instances of which no more is known, with exact estimates and free messages, or why there is none.
///
/// # Errors
/// The reason, as a clause.
pub fn guarantee(broker: &Broker, local: LocalScheduler, facts: Facts) -> Result<Guarantee, String> {
    let c = factor(broker, local, facts.one_width)?;
    let units = if facts.offline { 1 } else { 3 };
    let a = broker.admissible;
    let (share, formula) = if facts.fit_smallest {
        ((i128::from(a.numerator()), i128::from(a.denominator())), "c/a, every job fits the smallest site")
    } else {
        let [first, second] = branches(a);
        if second.0 == 0 {
            return Err("without admissibility brokers have no constant ratio, unless every job fits the smallest site".into());
        }
        if second.0 < first.0 { (second, "c/(a (1 - a))") } else { (first, "c/a^2") }
    };
    Ok(Guarantee { units, c, share, formula })
}

const ASSUMPTION: &str = "latency is zero; estimates are exact; sites start whatever fits";
const THEOREMS: &str = "Quezada Pina et al., FGCS 2012, theorems 1 to 4; Quezada Pina 2012, §3.5";
const DERIVED: &str = "the proofs of FGCS 2012 with a last job that disturbs plans; docs/THEORY";

/// Every relation that is proved of a run of a broker, the competitive ratio first.
pub(super) fn comparisons(run: &Run, bounds: &Bounds, outcome: &Outcome, broker: &Broker) -> Vec<Comparison> {
    let facts = Facts::of_outcome(outcome);
    let local = run.setting.local;
    let measured = Bounds::ratio(run.makespan, bounds.proof);
    let judge = |within: bool| {
        if run.setting.local_users {
            Verdict::unproved(within, "local users submit past the broker")
        } else if counted(outcome).all(|job| job.requested == job.service()) {
            run.judge(within)
        } else {
            Verdict::unproved(within, "estimates are not exact: not proved here")
        }
    };
    let relation =
        |name: &str, quantity, measured, limit, formula: String, source: &str, within: bool| Comparison {
            name: name.into(),
            quantity,
            measured,
            relation: Relation::AtMost,
            limit: Some(limit),
            formula,
            assumption: format!("{ASSUMPTION}; {}", run.case()),
            source: source.into(),
            verdict: judge(within),
        };
    let ratio = match guarantee(broker, local, facts) {
        Ok(guarantee) => relation(
            "competitive ratio",
            Quantity::Ratio,
            measured,
            guarantee.ratio(),
            format!(
                "{} + {}, a = {}, c = {}",
                guarantee.units, guarantee.formula, broker.admissible, guarantee.c
            ),
            if guarantee.c == 2 { THEOREMS } else { DERIVED },
            guarantee.is_kept(run.makespan, bounds.proof),
        ),
        Err(reason) => unproved_ratio(measured, reason),
    };
    let mut comparisons = vec![ratio];
    if let (Ok(c), Some(proof)) = (factor(broker, local, facts.one_width), Proof::of(outcome, broker)) {
        let limit = proof.certificate(c);
        comparisons.push(relation(
            "makespan certificate",
            Quantity::Seconds,
            Some(run.makespan.as_secs_f64()),
            limit.as_secs_f64(),
            format!(
                "r_d + p_d + {c} max(p_max, W_fl/s_fl); s_fl = {}, s_f0m = {}, tau = {:.3}",
                proof.admissible,
                proof.reachable,
                proof.fitting as f64 / proof.reachable as f64
            ),
            DERIVED,
            run.makespan <= limit,
        ));
    }
    comparisons
}

fn counted(outcome: &Outcome) -> impl Iterator<Item = &JobOutcome> {
    outcome.jobs.iter().filter(|job| job.state != JobState::Rejected)
}

/// What the proofs look at in a schedule, for the job d that was given last to the site that ends last. Of several that may
/// be d, the one that allows most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// r_d + p_d from the first submission, the latest.
    pub last: Span,
    /// p_max.
    pub longest: Span,
    /// Work that sites f to l executed, in processor-microseconds.
    pub work: i128,
    /// s_{f,l}.
    pub admissible: u64,
    /// s_{f,m}.
    pub fitting: u64,
    /// s_{f0,m}.
    pub reachable: u64,
}

impl Proof {
    /// From a complete run; none if it has no jobs.
    pub fn of(outcome: &Outcome, broker: &Broker) -> Option<Proof> {
        let grid = &outcome.grid;
        let brokers = grid.brokers();
        let sizes = &grid.sizes()[brokers..];
        let place = |job: &JobOutcome| job.site.map(|site| grid.rank(site) - brokers);
        let latest = counted(outcome).max_by_key(|job| job.end)?;
        let there = || counted(outcome).filter(|job| place(job) == place(latest));
        let given_last = there().map(|job| job.submit).max()?;
        let candidates = there().filter(|job| job.submit == given_last);
        let proofs = candidates.map(|job| {
            let range = admissible(sizes, job.processors, broker.admissible, broker.cut);
            let executed =
                || counted(outcome).filter(|job| place(job).is_some_and(|place| range.contains(&place)));
            let narrowest = executed().map(|job| job.processors).min().unwrap_or(1);
            let processors = |sizes: &[u32]| sizes.iter().map(|&size| u64::from(size)).sum();
            Proof {
                last: job.submit.since(outcome.origin) + job.service(),
                longest: counted(outcome).map(JobOutcome::service).max().unwrap_or(Span::ZERO),
                work: executed()
                    .map(|job| i128::from(job.service().as_micros()) * i128::from(job.processors))
                    .sum(),
                admissible: processors(&sizes[range.clone()]),
                fitting: processors(&sizes[range.start..]),
                reachable: processors(&sizes[sizes.partition_point(|&size| size < narrowest)..]),
            }
        });
        proofs.max_by_key(|proof| (proof.certificate(2), proof.certificate(4)))
    }

    /// r_d + p_d + c max(p_max, W_{f,l} / s_{f,l}), rounded up: no run is longer of which the assumptions hold.
    pub fn certificate(&self, c: i128) -> Span {
        let processors = i128::from(self.admissible);
        let area = (c * self.work + processors - 1) / processors;
        let counted = area.max(c * i128::from(self.longest.as_micros()));
        self.last + Span::from_micros(i64::try_from(counted).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::theory::{Setting, compare};

    fn a(numerator: u32, denominator: u32) -> Fraction {
        Fraction::new(numerator, denominator).unwrap()
    }

    #[test]
    fn the_table_of_the_theorems() {
        for (part, whole, first, second) in [
            (1, 10, 201.0, 23.22),
            (1, 5, 51.0, 13.5),
            (1, 4, 33.0, 11.67),
            (3, 10, 23.22, 10.52),
            (2, 5, 13.5, 9.33),
            (1, 2, 9.0, 9.0),
            (3, 5, 6.56, 9.33),
            (7, 10, 5.08, 10.52),
            (3, 4, 4.56, 11.67),
            (4, 5, 4.13, 13.5),
            (9, 10, 3.47, 23.22),
        ] {
            let a = a(part, whole);
            let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 0.00501;
            let (above, below) =
                (Some((part.into(), whole.into())), Some((u64::from(part) - 1, whole.into())));
            assert!(near(theorem(a, above, true), first), "{a}, first branch");
            assert!(near(theorem(a, below, true), second), "{a}, second branch");
            assert!(near(theorem(a, None, true), first.max(second)), "{a}, offline");
            assert!(near(theorem(a, None, false), first.max(second) + 2.0), "{a}, online");
            let mlb = Broker { admissible: a, ..Broker::new(BrokerRule::LowerBound) };
            let worst = guarantee(&mlb, LocalScheduler::List, Facts::default()).unwrap();
            assert_eq!(Some(worst.ratio()), theorem(a, None, false));
        }
        assert_eq!(theorem(Fraction::ONE, None, true), None);
        assert_eq!(theorem(Fraction::ONE, Some((1, 1)), true), Some(3.0));
        assert_eq!(theorem(Fraction::ONE, Some((1, 2)), true), None);
    }

    fn ceiling(strategy: &str, local: LocalScheduler, facts: Facts) -> Option<f64> {
        let spec: scheduler::StrategySpec = strategy.parse().unwrap();
        let scheduler::Strategy::Broker(broker) = spec.strategy else { panic!("{strategy} is no broker") };
        guarantee(&broker, local, facts).ok().map(|guarantee| guarantee.ratio())
    }

    #[test]
    fn ceilings_follow_rule_reading_and_jobs() {
        use LocalScheduler::{Easy, Fcfs, List};
        let any = Facts { offline: true, ..Facts::default() };
        let (online, narrow) = (Facts::default(), Facts { fit_smallest: true, ..any });
        let equal = Facts { one_width: true, ..any };
        for (strategy, local, facts, expected) in [
            ("broker:mlb,a=0.5", List, any, Some(9.0)),
            ("broker:mlb,a=0.5", List, online, Some(11.0)),
            ("broker:mlb,a=0.5,mlb=remaining", List, any, Some(9.0)),
            ("broker:mlb,a=0.5", Easy, any, None),
            ("broker:mlb,a=0.5", Easy, equal, Some(9.0)),
            ("broker:mlb,a=0.5", LocalScheduler::External, equal, None),
            ("broker:mlb,a=0.5,count=waiting", List, any, None),
            ("broker:mlb,a=0.5,plan=open-loop-all", List, any, None),
            ("broker:mlb", List, any, None),
            ("broker:mlb", List, narrow, Some(3.0)),
            ("broker:mlb", List, Facts { offline: false, ..narrow }, Some(5.0)),
            ("broker:mlb,a=0.5", List, narrow, Some(5.0)),
            ("broker:mct,a=0.5,mct=site-after", List, any, Some(9.0)),
            ("broker:mct,a=0.5", List, any, Some(17.0)),
            ("broker:mct,a=0.5", Fcfs, equal, Some(9.0)),
            ("broker:mct,a=0.5,mct=job-after", List, any, None),
            ("broker:mct,a=0.5,plan=open-loop", List, any, None),
            ("broker:mpl,a=0.5", List, any, None),
        ] {
            assert_eq!(ceiling(strategy, local, facts), expected, "{strategy} with {local:?}, {facts:?}");
        }
    }

    fn judged(outcome: &Outcome, strategy: &str) -> Vec<Comparison> {
        let local = LocalScheduler::List;
        let setting = Setting {
            strategy: strategy.parse().unwrap(),
            local,
            messages: crate::theory::Messages::FREE,
            local_users: false,
        };
        compare(outcome, &Bounds::of(outcome), setting)
    }

    #[test]
    fn mutant_a_makespan_one_step_beyond_violates_ceiling_and_certificate() {
        // Jobs of 2 and of 4 processors for 10 s, the optimum is 10.
        let late = |start| fixtures::outcome(&[2, 4], &[(0, 2, 10, 1, 0), (0, 4, 10, 2, start)]);
        // f = l = 2, and sites 2 to 2 executed 40: 0 + 10 + 2 max(10, 40/4).
        for (start, ratio, certificate) in [
            (0, Verdict::Holds, Verdict::Holds),
            (20, Verdict::Holds, Verdict::Holds),
            (21, Verdict::Holds, Verdict::Violated),
            (80, Verdict::Holds, Verdict::Violated),
            (81, Verdict::Violated, Verdict::Violated),
        ] {
            let found = judged(&late(start), "ideal/broker:mlb,a=0.5");
            assert_eq!((&found[0].verdict, &found[1].verdict), (&ratio, &certificate), "{start}: {found:?}");
        }
    }

    #[test]
    fn tau_is_that_of_the_schedule() {
        // The last job fits site 2 only, which executed one that fits site 1.
        let outcome = fixtures::outcome(&[2, 4], &[(0, 1, 10, 2, 0), (1, 4, 10, 2, 10)]);
        let broker = Broker { admissible: a(1, 2), ..Broker::new(BrokerRule::LowerBound) };
        let proof = Proof::of(&outcome, &broker).unwrap();
        assert_eq!((proof.admissible, proof.fitting, proof.reachable), (4, 4, 6));
        assert_eq!(proof.last, Span::from_secs(11));
        // 10 + 40 processor-seconds on four processors are 12.5 s.
        assert_eq!(proof.certificate(2), Span::from_secs(36));
    }

    #[test]
    fn inexact_estimates_prove_nothing() {
        let mut outcome = fixtures::outcome(&[4], &[(0, 4, 10, 1, 900)]);
        assert_eq!(judged(&outcome, "ideal/broker:mlb,a=0.5")[0].verdict, Verdict::Violated);
        outcome.jobs[0].requested = Span::from_secs(11);
        let found = judged(&outcome, "ideal/broker:mlb,a=0.5");
        assert!(matches!(&found[0].verdict, Verdict::Outside(reason) if reason.contains("estimates")));
    }
}
