//! The four experiments of Galstyan, Czajkowski, Lerman 2004, as Costa 2007 tells them: users that learn alone, beside chance and
//! beside the least loaded site.
//!
//! How many users and sites there were is not told, nor are rates; what is here is a model. Sites have one processor each,
//! of different speeds, under FCFS; tasks come one by one; all work is of users who learn. Whoever takes the least loaded site
//! knows when each would start the task.

use std::ops::Range;

use brokers::ideal::{self, Dispatched};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use scheduler::strategy::opaque::Options;
use scheduler::{Grid, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

use super::judge::{Judged, Part, differences, judged, values};
use super::measure::{Ran, measured, simulated};
use super::{NO_CAP, Plan, Row};

/// Sites, of one processor each.
const SITES: usize = 8;
/// Percent of the machine that run times are of.
const SPEEDS: std::ops::RangeInclusive<u32> = 50..=150;
/// Who submits.
const USERS: usize = 24;
/// Tasks of a run.
const TASKS: usize = 2000;
/// Run times of tasks, in seconds, and their mean.
const RUN_TIMES: std::ops::RangeInclusive<i64> = 60..=540;
const RUN_TIME_MEAN: i64 = 300;
/// Work that comes, in percent of what all sites can do.
pub const RATES: [u32; 5] = [10, 30, 50, 70, 90];
/// The same of the other experiments.
const BUSY: u32 = 80;
/// How late users learn of starts and ends, in seconds.
pub const DELAYS: [u32; 3] = [0, 3600, 14_400];
/// Parts of a run, of as many tasks each, for learning curves.
pub const PARTS: usize = 10;
/// Who chooses.
pub const RULES: [&str; 3] = ["agents", "random", "least-loaded"];
/// A mean wait that differs by no more than this is the same, in seconds.
const SAME_S: f64 = 20.0;

/// How users are replaced by new ones, who know nothing. Half of them stay in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turnover {
    None,
    /// One after the other, in the middle third of the tasks.
    Slow,
    /// All at the middle.
    Once,
}

const TURNOVERS: [(&str, Turnover); 3] =
    [("nobody", Turnover::None), ("one by one", Turnover::Slow), ("at once", Turnover::Once)];
/// Tasks in which a turnover may show.
const AFTER_SLOW: (&str, Range<usize>) = ("later", TASKS / 3..TASKS);
const AFTER_ONCE: (&str, Range<usize>) = ("soon", TASKS / 2..TASKS / 2 + TASKS / 10);

impl Turnover {
    /// Who submits a task of this number in place of this user of the beginning.
    fn user(self, user: usize, number: usize) -> usize {
        let leaves = |at: usize| if user < USERS / 2 && number >= at { user + USERS } else { user };
        match self {
            Turnover::None => user,
            Turnover::Slow => leaves(TASKS / 3 + user * TASKS / 3 / (USERS / 2)),
            Turnover::Once => leaves(TASKS / 2),
        }
    }
}

/// What rows of a run are of.
#[derive(Clone, Copy, Debug)]
enum Of {
    /// The second half of the tasks.
    Rate,
    /// Each part.
    Curve,
    /// Tasks of who stays and of who leaves, after each turnover.
    Turnover(&'static str, Turnover),
}

#[derive(Clone, Copy, Debug)]
struct Run {
    of: Of,
    rule: &'static str,
    round: u64,
    rate: u32,
    feedback: u32,
}

/// The name of a rate's scenario.
pub fn at_rate(rate: u32) -> String {
    format!("rate {rate} %")
}

/// The name of the scenario of a part of a run, from 1, where news come so late.
pub fn in_part(delay: u32, part: usize) -> String {
    format!("after {delay} s, part {part}")
}

/// The name of a turnover's scenario: who leaves, when it is looked at, and whose tasks.
fn in_turnover(name: &str, when: &str, whose: &str) -> String {
    format!("{name}, {when}, {whose}")
}

/// All four experiments.
///
/// # Errors
/// If a rule cannot be run.
pub(super) fn run(plan: &Plan) -> Result<Vec<Row>, String> {
    let mut runs = Vec::new();
    for round in 1..=plan.rounds {
        for rate in RATES {
            runs.extend(RULES.map(|rule| Run { of: Of::Rate, rule, round, rate, feedback: 0 }));
        }
        let curve = |rule, feedback| Run { of: Of::Curve, rule, round, rate: BUSY, feedback };
        runs.extend(RULES[1..].iter().map(|rule| curve(rule, 0)));
        runs.extend(DELAYS.map(|delay| curve("agents", delay)));
        runs.extend(TURNOVERS.map(|(name, turnover)| {
            let of = Of::Turnover(name, turnover);
            Run { of, rule: "agents", round, rate: BUSY, feedback: 0 }
        }));
    }
    let rows: Result<Vec<Vec<Row>>, String> = runs.into_par_iter().map(|run| rows(plan, run)).collect();
    Ok(rows?.into_iter().flatten().collect())
}

/// Sites and tasks, and which user of the beginning each task is of.
struct Crowd {
    grid: Grid,
    speeds: Vec<u32>,
    jobs: Vec<TimedJob>,
    submits: Vec<Time>,
    users: Vec<usize>,
}

/// Streams of random numbers beyond those of the other experiments.
const SITES_STREAM: u64 = 128;
const TASKS_STREAM: u64 = 129;

impl Crowd {
    /// Tasks of a round differ by the rate in when they come, and by the turnover in who submits them.
    fn draw(seed: u64, round: u64, rate: u32, turnover: Turnover) -> Crowd {
        let rng = |stream| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream((round << 8) + stream);
            rng
        };
        let mut sites = rng(SITES_STREAM);
        let speeds: Vec<u32> = (0..SITES).map(|_| sites.random_range(SPEEDS)).collect();
        // Percent of percent.
        let comes = i64::from(speeds.iter().sum::<u32>()) * i64::from(rate);
        let gap_most = 2 * Span::from_secs(RUN_TIME_MEAN).as_micros() * 10_000 / comes;
        let mut tasks = rng(TASKS_STREAM);
        let (mut at, mut users, mut jobs) = (Time::ZERO, Vec::new(), Vec::new());
        for number in 0..TASKS {
            // In permille, so that all rates draw the same.
            at += Span::from_micros(tasks.random_range(0..=1000_i64) * gap_most / 1000);
            let run_time = Span::from_secs(tasks.random_range(RUN_TIMES));
            let user = tasks.random_range(0..USERS);
            users.push(user);
            let spec = JobSpec {
                id: JobId(number as u64 + 1),
                submit: at,
                processors: 1,
                requested: run_time,
                labels: Labels { user: turnover.user(user, number) as i32, ..Labels::UNKNOWN },
                origin: SiteId::from_index(0),
                payload: 0,
            };
            jobs.push(TimedJob { spec, run_time });
        }
        Crowd {
            grid: Grid::of_sizes(&[1; SITES]).expect("sites have processors"),
            speeds,
            submits: jobs.iter().map(|job| job.spec.submit).collect(),
            jobs,
            users,
        }
    }
}

fn rows(plan: &Plan, run: Run) -> Result<Vec<Row>, String> {
    let turnover = match run.of {
        Of::Turnover(_, turnover) => turnover,
        Of::Rate | Of::Curve => Turnover::None,
    };
    let crowd = Crowd::draw(plan.seed, run.round, run.rate, turnover);
    let rule = match run.rule {
        "random" => "round-robin,turn=random",
        // Who knows nothing takes any site, and not all the first.
        "agents" => "agents,tie=random",
        rule => rule,
    };
    let options: Options = format!("{rule},{NO_CAP}").parse()?;
    let world = ideal::World {
        speeds: crowd.speeds.clone(),
        feedback: Span::from_secs(i64::from(run.feedback)),
        ..ideal::World::default()
    };
    let policy = Dispatched::new(&crowd.grid, &options, plan.local, world, plan.seed)?;
    let mut policy = if run.rule == "least-loaded" { policy.knowing_queues() } else { policy };
    let ran = simulated(&mut policy, &crowd.jobs, &crowd.grid, &crowd.submits)?;
    let row = |scenario: &str, tasks: &[Ran]| {
        measured((plan.unused, plan.ratio), &crowd.grid, tasks, 0)
            .row("agents", scenario, run.rule, run.round, SITES)
    };
    Ok(match run.of {
        Of::Rate => vec![row(&at_rate(run.rate), &ran[TASKS / 2..])],
        Of::Curve => {
            let parts = (1..).zip(ran.chunks(TASKS / PARTS));
            parts.map(|(part, tasks)| row(&in_part(run.feedback, part), tasks)).collect()
        }
        Of::Turnover(name, _) => {
            let mut rows = Vec::new();
            for (when, range) in [AFTER_SLOW, AFTER_ONCE] {
                for whose in ["stay", "leave"] {
                    let is_of = |number: &usize| (crowd.users[*number] < USERS / 2) == (whose == "leave");
                    let tasks: Vec<Ran> = range.clone().filter(is_of).map(|number| ran[number]).collect();
                    rows.push(row(&in_turnover(name, when, whose), &tasks));
                }
            }
            rows
        }
    })
}

/// Mean waits over some parts of each run, by round.
pub fn waits_in_parts(rows: &[Row], delay: u32, rule: &str, parts: Range<usize>) -> Vec<f64> {
    let count = parts.len() as f64;
    let mut sums: Vec<f64> = Vec::new();
    for part in parts {
        let found = values(rows, &in_part(delay, part), rule, |row| row.wait_s);
        sums.resize(found.len(), 0.0);
        sums.iter_mut().zip(found).for_each(|(sum, wait)| *sum += wait / count);
    }
    sums
}

/// By how much longer tasks wait, in a row of a turnover, than the same tasks where nobody leaves: its name, and each round.
pub fn turnover_costs(rows: &[Row]) -> Vec<(String, Vec<f64>)> {
    let mut costs = Vec::new();
    for (name, when) in [("one by one", "later"), ("at once", "soon")] {
        for (whose, said) in [("stay", "who stays"), ("leave", "who is new")] {
            let of = |name| values(rows, &in_turnover(name, when, whose), "agents", |row| row.wait_s);
            costs.push((format!("{name}, {said}"), differences(&of(name), &of("nobody"))));
        }
    }
    costs
}

/// What the four experiments found, as Costa tells it (§4.5 of the extract), held against rows.
pub fn verdicts(rows: &[Row]) -> Vec<Judged> {
    let less = |rate: u32, better: &str, worse: &str| {
        let of = |rule| values(rows, &at_rate(rate), rule, |row| row.response_s);
        Part::above(format!("{rate} %: {worse} - {better}"), &differences(&of(worse), &of(better)))
    };
    let (low, high) = (RATES[0], RATES[RATES.len() - 1]);
    let rates = vec![
        less(low, "random", "agents"),
        less(low, "random", "least-loaded"),
        less(high, "agents", "random"),
        less(high, "least-loaded", "random"),
    ];
    let half = PARTS / 2 + 1;
    let learnt = |rule: &str| waits_in_parts(rows, 0, rule, half..PARTS + 1);
    let learns = ["least-loaded", "random"].map(|other| {
        Part::above(format!("{other} - agents"), &differences(&learnt(other), &learnt("agents")))
    });
    let turnover = turnover_costs(rows).into_iter().map(|(name, costs)| {
        let is_none = name.starts_with("one by one");
        if is_none { Part::same(name, &costs, SAME_S) } else { Part::above(name, &costs) }
    });
    let first = |delay: u32| waits_in_parts(rows, delay, "agents", 1..half);
    let later = DELAYS.windows(2).map(|pair| {
        let longer = differences(&first(pair[1]), &first(pair[0]));
        Part::above(format!("after {} s - after {} s", pair[1], pair[0]), &longer)
    });
    vec![
        judged("A1", "chance is best at a low rate and worst at a high one: response", rates, " s"),
        judged("A2", "having learnt, agents wait less than at the least loaded site", learns.into(), " s"),
        judged(
            "A3",
            "a slow turnover changes no wait, one at once makes it longer",
            turnover.collect(),
            " s",
        ),
        judged("A4", "the later they are told, the longer they wait at first", later.collect(), " s"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learning::judge::Verdict;
    use crate::learning::tests::plan;

    #[test]
    fn a_crowd_offers_its_rate_and_a_turnover_changes_nothing_but_users() {
        for rate in [10, 90] {
            let crowd = Crowd::draw(1, 1, rate, Turnover::None);
            let work: f64 = crowd.jobs.iter().map(|job| job.run_time.as_secs_f64()).sum();
            let could = crowd.submits[TASKS - 1].as_secs_f64() * f64::from(crowd.speeds.iter().sum::<u32>());
            let offered = work / could * 1e4;
            assert!((offered / f64::from(rate) - 1.0).abs() < 0.1, "{offered} of {rate}");
        }
        let users = |turnover| -> Vec<i32> {
            let crowd = Crowd::draw(1, 1, BUSY, turnover);
            crowd.jobs.iter().map(|job| job.spec.labels.user).collect()
        };
        let (none, slow, once) = (users(Turnover::None), users(Turnover::Slow), users(Turnover::Once));
        assert!(none[..TASKS / 3] == slow[..TASKS / 3] && none[..TASKS / 2] == once[..TASKS / 2]);
        let (half, end) = (USERS as i32 / 2, TASKS * 2 / 3);
        assert!(slow[end..] == once[end..] && once[end..].iter().all(|&user| user >= half));
        let middle = &slow[TASKS / 3..end];
        assert!(middle.iter().any(|&user| user < half) && middle.iter().any(|&user| user >= USERS as i32));
    }

    /// What learners are for, without any number of the publication: with news at once and much to do they do better than chance.
    #[test]
    fn agents_learn() {
        let rows = run(&plan(4)).unwrap();
        let of = |rule: &str| waits_in_parts(&rows, 0, rule, 6..11).iter().sum::<f64>();
        assert!(of("agents") < of("random"), "{} {}", of("agents"), of("random"));
        let first = |delay| waits_in_parts(&rows, delay, "agents", 1..6).iter().sum::<f64>();
        assert!(first(14_400) > first(0), "{} {}", first(14_400), first(0));
    }

    /// Rows in which everything that was found is so.
    fn rows(change: impl Fn(&str, &str, &mut Row)) -> Vec<Row> {
        let mut scenarios: Vec<(String, &str, f64)> = Vec::new();
        for rate in RATES {
            for rule in RULES {
                let response = if (rule == "random") == (rate == RATES[0]) { 300.0 } else { 400.0 };
                scenarios.push((at_rate(rate), rule, response));
            }
        }
        for part in 1..=PARTS {
            scenarios.push((in_part(0, part), "random", 500.0));
            scenarios.push((in_part(0, part), "least-loaded", 300.0));
            for delay in DELAYS {
                let wait = if part <= PARTS / 2 { 400.0 + f64::from(delay) } else { 200.0 };
                scenarios.push((in_part(delay, part), "agents", wait));
            }
        }
        for (name, turnover) in TURNOVERS {
            for when in ["later", "soon"] {
                for whose in ["stay", "leave"] {
                    let wait = if turnover == Turnover::Once { 300.0 } else { 200.0 };
                    scenarios.push((in_turnover(name, when, whose), "agents", wait));
                }
            }
        }
        let mut rows = Vec::new();
        for (scenario, rule, seconds) in scenarios {
            for round in 1..=10 {
                let mut row = Row {
                    experiment: "agents".to_string(),
                    scenario: scenario.clone(),
                    rule: rule.to_string(),
                    round,
                    sites: SITES,
                    makespan_s: 1.0,
                    idleness_percent: 0.0,
                    recalled: 0,
                    response_s: seconds + (round * seconds as u64 % 7) as f64,
                    response_ratio: 1.0,
                    wait_s: seconds + (round * seconds as u64 % 7) as f64,
                    imbalance: 0.0,
                };
                change(&scenario, rule, &mut row);
                rows.push(row);
            }
        }
        rows
    }

    #[test]
    fn what_was_found_is_confirmed_where_it_is_so() {
        for judged in verdicts(&rows(|_, _, _| ())) {
            assert_eq!(judged.verdict, Verdict::Confirmed, "{judged:?}");
        }
    }

    #[test]
    fn mutant_rows_that_contradict_each_experiment_refute_it() {
        let refuted = |number: usize, change: &dyn Fn(&str, &str, &mut Row)| {
            let found = &verdicts(&rows(change))[number - 1];
            assert_eq!(found.verdict, Verdict::Refuted, "{found:?}");
        };
        refuted(1, &|scenario, rule, row| {
            if scenario == at_rate(RATES[0]) && rule == "random" {
                row.response_s += 300.0
            }
        });
        refuted(2, &|scenario, rule, row| {
            if scenario.starts_with("after 0 s") && rule == "least-loaded" {
                row.wait_s -= 250.0
            }
        });
        refuted(3, &|scenario, _, row| {
            if scenario.starts_with("one by one, later") {
                row.wait_s += 100.0
            }
        });
        refuted(4, &|scenario, rule, row| {
            if scenario.starts_with("after 14400 s") && rule == "agents" {
                row.wait_s -= 14_000.0
            }
        });
    }
}
