//! Experiments of Costa 2007 (chapter 6) over, in virtual time: bags of tasks, opaque sites, three rules, paired rounds.
//!
//! [`world`] draws what a round is; here are the scenarios and their runs, [`judge`] says what the rows mean. The author's
//! clusters are not there: sites are calibrated to what he printed (docs/LEARNING.md), and the platform is a model.
//! [`agents`] has the four experiments of Galstyan et al. 2004, as Costa tells them.

pub mod agents;
pub mod judge;
mod measure;
pub mod world;

use std::fmt;
use std::str::FromStr;

use brokers::ideal::Dispatched;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use scheduler::LocalScheduler;
use scheduler::spelling::unknown;
use scheduler::strategy::opaque::Options;
use serde::{Deserialize, Serialize};

use measure::{Measured, measured, simulated};
use world::{Conditions, Draws, World};

/// Jobs of the runs with a stream: arbitrary, half a day.
const STREAM_JOBS: usize = 250;
/// More than a stream ever has at one site, so that the cap decides nothing.
const NO_CAP: &str = "cap=100000";

/// Whether the rules of a round meet the same local users (A18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Background {
    /// The same for all.
    #[default]
    Same,
    /// Drawn anew for each, as on machines where one rule runs after the other.
    Own,
}

/// What becomes of sites without a job in the mean idleness (A17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unused {
    /// They were idle all the time.
    #[default]
    Idle,
    /// They are left out.
    LeftOut,
}

/// Which way round the mean response ratio is (A19).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ratio {
    /// Execution over turnaround, as printed.
    #[default]
    Printed,
    /// Turnaround over execution.
    Inverse,
}

macro_rules! names {
    ($($kind:ident $what:literal $first:literal $one:ident $second:literal $other:ident),*) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $kind::$one => $first,
                    $kind::$other => $second,
                })
            }
        }

        impl FromStr for $kind {
            type Err = String;

            fn from_str(text: &str) -> Result<$kind, String> {
                match text {
                    $first => Ok($kind::$one),
                    $second => Ok($kind::$other),
                    _ => Err(unknown($what, text, concat!($first, " or ", $second))),
                }
            }
        }
    )*};
}

names!(
    Background "background" "same" Same "own" Own,
    Unused "treatment of unused sites" "idle" Idle "left-out" LeftOut,
    Ratio "response ratio" "printed" Printed "inverse" Inverse
);

/// How the experiments are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Rounds of each scenario.
    pub rounds: u64,
    /// Of everything random.
    pub seed: u64,
    /// The scheduler of sites.
    pub local: LocalScheduler,
    /// See [`Background`].
    pub background: Background,
    /// See [`Unused`].
    pub unused: Unused,
    /// See [`Ratio`].
    pub ratio: Ratio,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// `published`, `settings`, `conditions`, `stream` or `agents`.
    pub experiment: String,
    /// P1 to P5 and R1 to R4; or what is varied.
    pub scenario: String,
    /// Who decided, without its options.
    pub rule: String,
    /// From 1.
    pub round: u64,
    /// Sites of the round.
    pub sites: usize,
    /// From the start to the last end.
    pub makespan_s: f64,
    /// Mean over sites of the time behind their last job, in percent of the makespan (§5.4 of the extract).
    pub idleness_percent: f64,
    /// Jobs that were called back, each time.
    pub recalled: u64,
    /// Mean time from submission to end.
    pub response_s: f64,
    /// Mean ratio of execution and turnaround.
    pub response_ratio: f64,
    /// Mean time from submission to start. Files of before have none.
    #[serde(default)]
    pub wait_s: f64,
    /// Standard deviation over sites, as a part of the mean, of the share of their processors' time that tasks take.
    #[serde(default)]
    pub imbalance: f64,
}

/// A scenario of the published experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// As in the extract.
    pub name: &'static str,
    /// Tasks of the bag.
    pub jobs: usize,
    /// α.
    pub alpha: f64,
    /// l.
    pub learning: f64,
    /// T0, in seconds; none without.
    pub timeout: Option<u32>,
}

/// All nine (§5.3).
pub const SCENARIOS: [Scenario; 9] = {
    const fn of(
        name: &'static str,
        jobs: usize,
        alpha: f64,
        learning: f64,
        timeout: Option<u32>,
    ) -> Scenario {
        Scenario { name, jobs, alpha, learning, timeout }
    }
    [
        of("P1", 500, 0.2, 0.3, None),
        of("P2", 500, 0.5, 0.3, None),
        of("P3", 500, 0.5, 0.5, None),
        of("P4", 500, 0.5, 0.7, None),
        of("P5", 500, 0.8, 0.3, None),
        of("R1", 500, 0.5, 0.3, Some(500)),
        of("R2", 500, 0.5, 0.3, Some(750)),
        of("R3", 1000, 0.5, 0.3, Some(750)),
        of("R4", 500, 0.5, 0.3, Some(1000)),
    ]
};

/// Every α of the settings that are tried with time-outs; the published ones are among them.
pub const ALPHAS: [f64; 5] = [0.2, 0.35, 0.5, 0.65, 0.8];
/// Every l.
pub const RATES: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];
/// T0 of the settings, in seconds: the one in the middle of the published ones.
pub const SETTINGS_TIMEOUT_S: u32 = 750;
/// Rounds of the settings for each round of the rest: differences between settings are small.
const SETTINGS_ROUNDS: u64 = 10;

/// The name of a setting's scenario.
pub fn setting(alpha: f64, learning: f64) -> String {
    format!("α {alpha}, l {learning}")
}

/// What differs between the runs of one round beside the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Nothing, if the plan does not say otherwise.
    None,
    /// Each rule meets local users of its own.
    Users,
    /// So do they, and at each rule local load is less by a fifth of what it was at first: rules run one after the other, from day
    /// to evening.
    Evening,
}

/// Percent of its mean by which local load is less from one run of a round to the next.
const EVENING_PERCENT: u32 = 20;

/// What may make the choice of a site matter, or look as if it did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Of rows.
    pub name: &'static str,
    /// What happens at sites.
    pub conditions: Conditions,
    /// T0, in seconds; none without.
    pub timeout: Option<u32>,
    /// What differs between runs.
    pub drift: Drift,
    /// Rules, in the order in which they run; the baseline first.
    pub rules: &'static [&'static str],
}

/// How long a task is in submission where that is slow, in seconds. Nothing of it is printed; this is half of the 11 s in which the
/// published sites ended one task after the other (§5.7), so that the broker keeps up with them.
const SLOW_SUBMISSION_S: u32 = 5;

/// One at a time, three of them together, and drift.
pub const CONDITIONS: [Condition; 8] = {
    const ALL: &[&str] = &["round-robin", "ag", "mqd", "linucb", "least-loaded"];
    const STILL: Conditions =
        Conditions { fails: false, changes: false, submission_s: 0, local_percent: 100 };
    const BASE: Condition =
        Condition { name: "none", conditions: STILL, timeout: None, drift: Drift::None, rules: ALL };
    const FAILS: Conditions = Conditions { fails: true, ..STILL };
    const CHANGES: Conditions = Conditions { changes: true, ..STILL };
    const SLOW: Conditions = Conditions { submission_s: SLOW_SUBMISSION_S, ..STILL };
    const BOTH: Conditions = Conditions { fails: true, changes: true, ..STILL };
    [
        BASE,
        Condition { name: "time-outs of 500 s", timeout: Some(500), ..BASE },
        Condition { name: "sites that fail", conditions: FAILS, ..BASE },
        Condition { name: "load that changes", conditions: CHANGES, ..BASE },
        Condition { name: "all three", conditions: BOTH, timeout: Some(500), ..BASE },
        Condition { name: "slow submission", conditions: SLOW, ..BASE },
        Condition { name: "other local users", drift: Drift::Users, ..BASE },
        Condition {
            name: "less load from run to run",
            drift: Drift::Evening,
            rules: &["round-robin", "ag", "mqd"],
            ..BASE
        },
    ]
};

/// Rules that the stream is tried with.
pub const STREAM_RULES: [&str; 4] = ["round-robin", "ag", "linucb", "least-loaded"];
/// How late the stream learns of starts and ends, in seconds.
pub const DELAYS: [u32; 4] = [0, 300, 1800, 7200];
/// Sites whose load stays, and whose load changes.
pub const STREAMS: [(&str, bool); 2] = [("steady", false), ("changing", true)];

/// Who decides in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decider {
    /// A rule, as text.
    Rule(String),
    /// The first site of all, the second, ...: the least mean response of them.
    BestFixed,
    /// Whoever knows all queues and run times.
    Oracle,
}

/// A run that is to be made.
#[derive(Clone, Debug)]
struct Task {
    experiment: &'static str,
    scenario: String,
    rule: String,
    decider: Decider,
    round: u64,
    draws: Draws,
    feedback: u32,
}

const BEST_FIXED: &str = "best fixed";
const ORACLE: &str = "oracle";

impl fmt::Display for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decider::Rule(rule) => rule,
            Decider::BestFixed => BEST_FIXED,
            Decider::Oracle => ORACLE,
        })
    }
}

impl FromStr for Decider {
    type Err = String;

    fn from_str(text: &str) -> Result<Decider, String> {
        match text {
            BEST_FIXED => Ok(Decider::BestFixed),
            ORACLE => Ok(Decider::Oracle),
            rule => rule.parse::<Options>().map(|_| Decider::Rule(rule.to_string())),
        }
    }
}

/// One run with everything that it is of, so that a file can hold it.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// As in [`Row`].
    pub experiment: String,
    /// As in [`Row`].
    pub scenario: String,
    /// As in [`Row`].
    pub rule: String,
    /// As in [`Row`].
    pub round: u64,
    /// Who decides.
    pub decider: Decider,
    /// The scheduler of sites.
    pub local: LocalScheduler,
    /// Of what the rule draws.
    pub seed: u64,
    /// See [`Unused`].
    pub unused: Unused,
    /// See [`Ratio`].
    pub ratio: Ratio,
    /// How late the rule learns of starts and ends, in seconds.
    pub feedback_s: u32,
    /// Sites and jobs.
    pub world: World,
}

/// All rounds of a plan whose worlds are drawn here, in order: those of [`agents`] are others.
pub fn rounds(plan: &Plan) -> impl Iterator<Item = Round> + '_ {
    tasks(plan).into_iter().map(|task| Round::of(plan, task))
}

/// All runs, in order. Nothing hangs on the number of threads.
///
/// # Errors
/// If a rule cannot be run.
pub fn run(plan: &Plan) -> Result<Vec<Row>, String> {
    let rows: Result<Vec<Row>, String> =
        tasks(plan).into_par_iter().map(|task| Round::of(plan, task).row()).collect();
    let mut rows = rows?;
    rows.extend(agents::run(plan)?);
    Ok(rows)
}

fn tasks(plan: &Plan) -> Vec<Task> {
    let mut tasks = Vec::new();
    for round in 1..=plan.rounds {
        for scenario in SCENARIOS {
            tasks.extend(published(plan, scenario, round));
        }
        for condition in &CONDITIONS {
            tasks.extend(conditions(plan, condition, round));
        }
        tasks.extend(streams(plan, round));
    }
    for round in 1..=plan.rounds * SETTINGS_ROUNDS {
        tasks.extend(settings(plan, round));
    }
    tasks
}

fn draws(plan: &Plan, jobs: usize, streams: bool, conditions: Conditions, round: u64, place: usize) -> Draws {
    let background = match plan.background {
        Background::Same => 0,
        Background::Own => place as u64,
    };
    Draws { seed: plan.seed, round, background, jobs, streams, conditions }
}

fn with_timeout(timeout: Option<u32>) -> String {
    timeout.map_or(String::new(), |timeout| format!(",timeout={timeout}"))
}

fn conditions(plan: &Plan, condition: &Condition, round: u64) -> Vec<Task> {
    let timeout = with_timeout(condition.timeout);
    let mut tasks = Vec::new();
    for (place, rule) in condition.rules.iter().enumerate() {
        let mut drawn = draws(plan, 500, false, condition.conditions, round, place);
        if condition.drift != Drift::None {
            drawn.background = place as u64;
        }
        if condition.drift == Drift::Evening {
            drawn.conditions.local_percent -= EVENING_PERCENT * place as u32;
        }
        tasks.push(Task {
            experiment: "conditions",
            scenario: condition.name.to_string(),
            rule: rule.to_string(),
            decider: Decider::Rule(format!("{rule}{timeout}")),
            round,
            draws: drawn,
            feedback: 0,
        });
    }
    tasks
}

/// Every α with every l, and the baseline once.
fn settings(plan: &Plan, round: u64) -> Vec<Task> {
    let timeout = with_timeout(Some(SETTINGS_TIMEOUT_S));
    let task = |scenario: String, place: usize, rule: &str, learner: String| Task {
        experiment: "settings",
        scenario,
        rule: rule.to_string(),
        decider: Decider::Rule(format!("{rule}{learner}{timeout}")),
        round,
        draws: draws(plan, 500, false, Conditions::default(), round, place),
        feedback: 0,
    };
    let mut tasks = vec![task("any".to_string(), 0, "round-robin", String::new())];
    for alpha in ALPHAS {
        for learning in RATES {
            for (place, rule) in [(1, "ag"), (2, "mqd")] {
                let learner = format!(",alpha={alpha},l={learning}");
                tasks.push(task(setting(alpha, learning), place, rule, learner));
            }
        }
    }
    tasks
}

fn published(plan: &Plan, scenario: Scenario, round: u64) -> Vec<Task> {
    let Scenario { name, jobs, alpha, learning, timeout } = scenario;
    let timeout = with_timeout(timeout);
    let learner = format!("alpha={alpha},l={learning}{timeout}");
    let rules = [format!("round-robin{timeout}"), format!("ag,{learner}"), format!("mqd,{learner}")];
    let tasks = rules.into_iter().enumerate().map(|(place, rule)| Task {
        experiment: "published",
        scenario: name.to_string(),
        rule: rule.split(',').next().unwrap_or_default().to_string(),
        decider: Decider::Rule(rule),
        round,
        draws: draws(plan, jobs, false, Conditions::default(), round, place),
        feedback: 0,
    });
    tasks.collect()
}

fn streams(plan: &Plan, round: u64) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (name, changes) in STREAMS {
        let conditions = Conditions { changes, ..Conditions::default() };
        let task = |rule: &str, decider: Decider, feedback: u32| Task {
            experiment: "stream",
            scenario: format!("{name}; {feedback} s"),
            rule: rule.to_string(),
            decider,
            round,
            // Regret is against what others made of the very same jobs.
            draws: draws(plan, STREAM_JOBS, true, conditions, round, 0),
            feedback,
        };
        for delay in DELAYS {
            for rule in STREAM_RULES {
                tasks.push(task(rule, Decider::Rule(format!("{rule},{NO_CAP}")), delay));
            }
        }
        tasks.push(task(BEST_FIXED, Decider::BestFixed, 0));
        tasks.push(task(ORACLE, Decider::Oracle, 0));
    }
    tasks
}

impl Round {
    fn of(plan: &Plan, task: Task) -> Round {
        let Task { experiment, scenario, rule, decider, round, draws, feedback } = task;
        let Plan { seed, local, unused, ratio, .. } = *plan;
        let (experiment, world) = (experiment.to_string(), World::draw(draws));
        Round {
            experiment,
            scenario,
            rule,
            round,
            decider,
            local,
            seed,
            unused,
            ratio,
            feedback_s: feedback,
            world,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// If the rule cannot be run.
    pub fn row(&self) -> Result<Row, String> {
        let Round { world, .. } = self;
        let submits = world.submits();
        let free = |rule: &str| rule.parse::<Options>();
        let dispatched = |options: &Options| {
            Dispatched::new(&world.grid, options, self.local, world.world(self.feedback_s), self.seed)
        };
        let ran = |mut policy: Dispatched| -> Result<Measured, String> {
            let ran = simulated(&mut policy, &world.jobs, &world.grid, &submits)?;
            Ok(measured((self.unused, self.ratio), &world.grid, &ran, policy.recalled_total()))
        };
        let ran = match &self.decider {
            Decider::Rule(rule) => ran(dispatched(&free(rule)?)?)?,
            Decider::Oracle => {
                let options = free(&format!("mct,{NO_CAP}"))?;
                ran(dispatched(&options)?.knowing_queues())?
            }
            Decider::BestFixed => {
                let options = free(&format!("round-robin,{NO_CAP}"))?;
                let fixed = (0..world.sites()).map(|place| ran(dispatched(&options)?.with_one_site(place)));
                let fixed = fixed.collect::<Result<Vec<Measured>, String>>()?;
                let best = fixed.into_iter().min_by(|a, b| a.response_s.total_cmp(&b.response_s));
                best.ok_or("a round has no site; this is a mistake of the program")?
            }
        };
        Ok(ran.row(&self.experiment, &self.scenario, &self.rule, self.round, world.sites()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn plan(rounds: u64) -> Plan {
        Plan {
            rounds,
            seed: 1,
            local: LocalScheduler::Fcfs,
            background: Background::Same,
            unused: Unused::Idle,
            ratio: Ratio::Printed,
        }
    }

    fn row(plan: &Plan, task: Task) -> Row {
        Round::of(plan, task).row().unwrap()
    }

    #[test]
    fn runs_are_the_same_on_any_number_of_threads_and_paired_by_their_world() {
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let rows = pool(3).install(|| run(&plan(1))).unwrap();
        // By itself each is what it is among all: every seventh, and what draws its own worlds.
        for (place, round) in rounds(&plan(1)).enumerate().step_by(7) {
            assert!(round.row().unwrap() == rows[place], "threads change row {place}");
        }
        let agents = pool(1).install(|| agents::run(&plan(1))).unwrap();
        assert!(rows.ends_with(&agents) && !agents.is_empty(), "threads change something");
        let crowds = 5 * 3 + (3 + 2) * 10 + 3 * 4;
        assert_eq!(rows.len(), 9 * 3 + 10 * (1 + 2 * 25) + 7 * 5 + 3 + 2 * (4 * 4 + 2) + crowds);
        // The setting in the middle is R2, and other settings are other runs.
        let at =
            |scenario: &str| rows.iter().find(|row| row.scenario == scenario && row.rule == "ag").unwrap();
        assert_eq!(at(&setting(0.5, 0.3)).makespan_s, at("R2").makespan_s);
        assert_ne!(at(&setting(0.2, 0.9)), at(&setting(0.5, 0.3)));
        // Without a time-out the rule of the baseline has no parameter: P1 to P5 are one run.
        let baseline: Vec<f64> = rows
            .iter()
            .filter(|row| row.experiment == "published" && row.rule == "round-robin")
            .map(|row| row.makespan_s)
            .collect();
        assert!(baseline[..5].iter().all(|makespan| *makespan == baseline[0]));
        assert!(rows.iter().all(|row| (0.0..100.0).contains(&row.idleness_percent)));
        let of = |name: &str| rows.iter().find(|row| row.rule == name).unwrap().response_s;
        assert!(of("oracle") <= of("best fixed"), "who knows all does no worse than one site");
        let plan = Plan { background: Background::Own, ..plan(1) };
        let own = published(&plan, SCENARIOS[0], 1);
        assert_eq!(row(&plan, own[0].clone()), rows[0]);
        assert_ne!(row(&plan, own[1].clone()), rows[1]);
    }

    /// §5.7 of the extract: makespan = jobs · residence / (cap · sites) while all places are taken, 1,071 s for the five
    /// printed makespans.
    #[test]
    fn the_model_of_sites_has_the_residence_that_the_published_makespans_mean() {
        let plan = plan(30);
        let baseline = (1..=30).map(|round| row(&plan, published(&plan, SCENARIOS[1], round)[0].clone()));
        let residence = baseline.map(|row| row.makespan_s * 20.0 * row.sites as f64 / 500.0);
        let mean = residence.sum::<f64>() / 30.0;
        assert!((mean / 1071.0 - 1.0).abs() < 0.1, "{mean} s");
    }
}
