//! What the page shows of one simulation: numbers, where the delay went, and the schedule.
//!
//! The experiment is read from the text that would be saved, and simulated and measured as `stealgrid simulate` does; numbers
//! have the names that they have in `metrics.json`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use analysis::series::busiest;
use analysis::waits::Waits;
use analysis::{Attribution, Bounds, Deficiency, Metrics, Outcome, WaitCauses};
use experiments::drive::{self, simulate};
use experiments::experiment::Experiment;
use experiments::experiment::jobs::{Jobs, Reader, offered};
use experiments::interrupt::Interrupt;
use links::model::Base as Delays;
use outputs::{Allocation, Status};
use report::quantity::counted;
use scheduler::{Grid, SiteId, Span, Time, TimedJob};
use serde::Serialize;
use simulator::Checks;

use super::Limits;
use super::base::Base;
use super::settings::{Settings, shown, without_threshold};

/// Sites that are drawn, the busiest: as in reports.
const SITES_DRAWN: usize = 24;
/// Bars that are drawn, those with most work: three for each job of the most jobs.
const BARS_MAX: usize = 60_000;

/// Why there is no picture. In words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// What was set means nothing.
    Settings(String),
    /// The simulation cannot be or did not end.
    Simulation(String),
    /// It was ended from outside.
    Interrupted,
}

/// What plays: an experiment, and the logs that were read.
#[derive(Debug)]
pub(super) struct Player {
    pub(super) base: Base,
    pub(super) limits: Limits,
    reader: Mutex<Reader>,
}

/// One simulation.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Picture {
    settings: Set,
    matters: Matters,
    /// What was simulated, in a line.
    words: String,
    /// The strategy, and the local scheduler if there is one.
    what: String,
    numbers: Numbers,
    delay: Option<Delay>,
    waits: Option<Waited>,
    /// First submission and last event, in milliseconds of trace time.
    origin_ms: i64,
    until_ms: i64,
    sites: Vec<SiteBars>,
    /// Sites with processors, of which the busiest are drawn.
    sites_all: usize,
    /// Bars that have no place among the most that are drawn.
    bars_left_out: usize,
    /// Wall time of reading, simulating and measuring, in milliseconds.
    took_ms: f64,
}

/// All settings as they are in the experiment; none where it has no single value.
#[derive(Clone, Debug, Serialize)]
struct Set {
    delay: Option<String>,
    /// As set; without it, what the jobs offer as they are is in `offered`.
    load: Option<f64>,
    offered: Option<f64>,
    loss: f64,
    strategy: String,
    threshold: u8,
    local: &'static str,
    submit: &'static str,
}

/// Which settings change anything.
#[derive(Clone, Copy, Debug, Serialize)]
struct Matters {
    messages: bool,
    threshold: bool,
    local: bool,
}

/// As in `metrics.json`.
#[derive(Clone, Debug, Serialize)]
struct Numbers {
    jobs: usize,
    wait_mean_s: f64,
    wait_max_s: f64,
    bounded_slowdown_mean: f64,
    makespan_s: f64,
    utilization: f64,
    messages: u64,
    stolen_jobs: usize,
}

/// Where the delay of the job that ends last went.
#[derive(Clone, Debug, Serialize)]
struct Delay {
    job: u64,
    home: String,
    from_s: f64,
    until_s: f64,
    /// Idle processor-seconds that the bound counts on.
    total: f64,
    causes: Vec<Cause>,
}

/// Why jobs waited.
#[derive(Clone, Debug, Serialize)]
struct Waited {
    /// Jobs that started, and their mean wait.
    jobs: u64,
    mean_s: f64,
    causes: Vec<Cause>,
}

#[derive(Clone, Debug, Serialize)]
struct Cause {
    name: &'static str,
    meaning: &'static str,
    /// Of the total; 0 where that is 0.
    share: f64,
}

/// The schedule of a site.
#[derive(Clone, Debug, Serialize)]
struct SiteBars {
    name: String,
    processors: u32,
    utilization: f64,
    /// Jobs of its users that it ran, and others'.
    own: u64,
    stolen: u64,
    /// One after another: start and length in milliseconds, the first from the origin; lowest processor, processors, kind
    /// ([`report::figures::kind`]) and job.
    bars: Vec<i64>,
}

impl Player {
    /// Plays with this experiment.
    pub(super) fn new(base: Base, limits: Limits) -> Player {
        Player { base, limits, reader: Mutex::default() }
    }

    /// What was dropped or changed of its jobs, in words.
    ///
    /// # Errors
    /// If there are none, or too many.
    pub(super) fn notes(&self) -> Result<Vec<String>, String> {
        let experiment = self.base.resolve(&self.base.with(&Settings::default()))?;
        self.jobs(&experiment).map(|jobs| jobs.notes)
    }

    fn jobs(&self, experiment: &Experiment) -> Result<Jobs, String> {
        // What a reader that panicked has kept is whole.
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs = reader.read(experiment).map_err(|error| error.to_string())?;
        let (count, most) = (jobs.jobs.len(), self.limits.jobs);
        if count > most {
            return Err(format!(
                "play with {count} jobs: at most {most} are (--jobs-max); write workload.count = {most} into the experiment, \
                 or allow more"
            ));
        }
        Ok(jobs)
    }

    /// Simulates the experiment with these settings, until it is interrupted.
    ///
    /// # Errors
    /// If the settings contradict the experiment, or it does not end.
    pub(super) fn play(&self, settings: &Settings, interrupt: &Interrupt) -> Result<Picture, Refused> {
        let begun = Instant::now();
        let failed = |reason: String| Refused::Simulation(format!("failed to {reason}"));
        let experiment = self
            .base
            .resolve(&self.base.with(settings))
            .map_err(|error| Refused::Settings(format!("failed to {error}")))?;
        let jobs = self.jobs(&experiment).map_err(failed)?;
        let mut builder = drive::builder(&experiment, &jobs);
        let arriving = jobs.arriving(&experiment);
        let mut deficiency = Deficiency::new(&experiment.grid, &experiment.strategy.strategy, &arriving);
        let mut waits = Waits::new(&experiment.grid, &experiment.strategy.strategy, &arriving);
        let ended = simulate::simulate(&experiment, &jobs, Checks::Cheap, interrupt, &mut |event| {
            builder.observe(event);
            deficiency.observe(event);
            waits.observe(event);
        })
        .map_err(|error| Refused::Simulation(format!("{error:#}")))?;
        if interrupt.is_set() {
            return Err(Refused::Interrupted);
        }
        if let Some(violation) = ended.violation {
            return Err(Refused::Simulation(format!("what must not happen has: {violation}")));
        }
        if let Status::Partial(reason) = ended.status {
            return Err(Refused::Simulation(format!("the simulation did not end: {reason}")));
        }
        let outcome = builder.finish();
        // As in a report: where sites were away, causes are not those that it knows.
        let untold = outcome.faults.disturbed();
        let attribution = if untold { None } else { deficiency.finish() };
        let waits = if untold { None } else { waits.finish() };
        let metrics = Metrics::of(&outcome, &Bounds::of(&outcome));
        let (sites, bars_left_out) = schedule(&outcome, &metrics);
        Ok(Picture {
            settings: set(&experiment, &jobs.jobs),
            matters: matters(&experiment),
            words: words(&experiment, &jobs),
            what: what(&experiment),
            delay: attribution.map(|attribution| delay(&outcome.grid, &attribution)),
            waits: waits.map(|waits| waited(&waits)),
            origin_ms: millis(outcome.origin.since(Time::ZERO)),
            until_ms: millis(outcome.until.since(Time::ZERO)),
            sites,
            sites_all: outcome.grid.machines().count(),
            bars_left_out,
            numbers: Numbers {
                jobs: metrics.jobs,
                wait_mean_s: metrics.wait_mean_s,
                wait_max_s: metrics.wait_max_s,
                bounded_slowdown_mean: metrics.bounded_slowdown_mean,
                makespan_s: metrics.makespan_s,
                utilization: metrics.utilization,
                messages: metrics.messages,
                stolen_jobs: metrics.stolen_jobs,
            },
            took_ms: begun.elapsed().as_secs_f64() * 1000.0,
        })
    }
}

fn millis(span: Span) -> i64 {
    span.as_micros() / 1000
}

fn set(experiment: &Experiment, jobs: &[TimedJob]) -> Set {
    let delay = match experiment.network.base {
        Delays::Constant(span) => u64::try_from(span.as_micros()).ok().map(Duration::from_micros).map(shown),
        _ => None,
    };
    Set {
        delay,
        load: experiment.load,
        offered: offered(&experiment.grid, jobs),
        loss: experiment.network.properties.loss.get(),
        strategy: without_threshold(experiment.strategy),
        threshold: experiment.strategy.strategy.threshold().percent(),
        local: experiment.local.name(),
        submit: experiment.submit.name(),
    }
}

fn matters(experiment: &Experiment) -> Matters {
    let strategy = experiment.strategy.strategy;
    Matters {
        messages: !experiment.strategy.ideal && strategy.nature().talks,
        threshold: strategy.has_threshold(),
        local: strategy.nature().queues,
    }
}

fn what(experiment: &Experiment) -> String {
    if experiment.strategy.strategy.nature().queues {
        format!("{} with {}", experiment.strategy, experiment.local.name())
    } else {
        experiment.strategy.to_string()
    }
}

fn words(experiment: &Experiment, jobs: &Jobs) -> String {
    let sites = counted(experiment.grid.machines().count(), "site");
    let processors = counted(experiment.grid.processors(), "processor");
    // A delay that is the same everywhere is among the settings.
    let network = match experiment.network.base {
        Delays::Constant(_) => String::new(),
        _ => format!("; {}", experiment.network()),
    };
    format!("{}; {sites}, {processors}; {}{network}", what(experiment), counted(jobs.jobs.len(), "job"))
}

fn delay(grid: &Grid, attribution: &Attribution) -> Delay {
    let share = |value: f64| if attribution.total > 0.0 { value / attribution.total } else { 0.0 };
    let causes = attribution.causes().into_iter().map(|(name, value)| Cause {
        name,
        meaning: report::figures::cause_meaning(name),
        share: share(value),
    });
    Delay {
        job: attribution.job.0,
        home: grid.site(attribution.k).name.clone(),
        from_s: attribution.from.as_secs_f64(),
        until_s: attribution.until.as_secs_f64(),
        total: attribution.total,
        causes: causes.collect(),
    }
}

fn waited(waits: &WaitCauses) -> Waited {
    let causes = waits.causes.iter().map(|part| Cause {
        name: part.cause.name(),
        meaning: report::figures::wait_cause_meaning(part.cause),
        share: if waits.total_s > 0.0 { part.wait_s / waits.total_s } else { 0.0 },
    });
    let mean_s = if waits.jobs > 0 { waits.total_s / waits.jobs as f64 } else { 0.0 };
    Waited { jobs: waits.jobs, mean_s, causes: causes.collect() }
}

/// The bars of the busiest sites, and how many are left out.
fn schedule(outcome: &Outcome, metrics: &Metrics) -> (Vec<SiteBars>, usize) {
    let allocation = Allocation::of(outcome);
    let drawn = busiest(outcome, SITES_DRAWN);
    let mut rows: Vec<usize> = (0..outcome.jobs.len())
        .filter(|&row| outcome.jobs[row].site.is_some_and(|site| drawn.contains(&site)))
        .collect();
    rows.sort_by_key(|&row| (std::cmp::Reverse(outcome.jobs[row].work()), row));
    let bars = |row: usize| allocation.of_job(row).len();
    let (mut kept, mut count) = (0, 0);
    while kept < rows.len() && count + bars(rows[kept]) <= BARS_MAX {
        count += bars(rows[kept]);
        kept += 1;
    }
    let left_out = rows[kept..].iter().map(|&row| bars(row)).sum();
    rows.truncate(kept);
    rows.sort_unstable();
    let of_site = |&site: &SiteId| {
        let known = metrics.sites.iter().find(|known| known.site == site);
        let known = known.expect("a site that is drawn has processors");
        let mut bars = Vec::new();
        let is_there = |row: usize| outcome.parts(&outcome.jobs[row]).any(|part| part.site == Some(site));
        for &row in rows.iter().filter(|&&row| is_there(row)) {
            push(&mut bars, outcome, &allocation, site, row);
        }
        SiteBars {
            name: known.name.clone(),
            processors: known.processors,
            utilization: known.utilization,
            own: known.own_a.jobs + known.own_b.jobs,
            stolen: known.stolen_a.jobs + known.stolen_b.jobs,
            bars,
        }
    };
    (drawn.iter().map(of_site).collect(), left_out)
}

/// A job on several separate intervals gets one bar for each.
fn push(bars: &mut Vec<i64>, outcome: &Outcome, allocation: &Allocation, site: SiteId, row: usize) {
    let job = &outcome.jobs[row];
    let Some(start) = job.start else { return };
    let length = job.end.unwrap_or(outcome.until).since(start);
    let kind = i64::from(report::figures::kind(&outcome.grid, job));
    for interval in allocation.of_job_at(row, site) {
        bars.extend([
            millis(start.since(outcome.origin)),
            millis(length),
            i64::from(interval.first - allocation.offset(site)),
            i64::from(interval.len()),
            kind,
            i64::try_from(job.id.0).unwrap_or(i64::MAX),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn player(limits: Limits) -> Player {
        Player::new(Base::built_in().unwrap(), limits)
    }

    const AMPLE: Limits = Limits { jobs: 20_000, time: Duration::from_secs(600) };

    fn settings(query: &[(&str, &str)]) -> Settings {
        let pairs: Vec<_> = query.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
        Settings::parse(&pairs).unwrap()
    }

    #[test]
    fn a_picture_has_every_job_and_says_how_it_was_set() {
        let query =
            [("delay", "2m"), ("load", "0.9"), ("strategy", "st"), ("threshold", "25"), ("loss", "0.01")];
        let picture = player(AMPLE).play(&settings(&query), &Interrupt::default()).unwrap();
        let set = &picture.settings;
        assert_eq!(
            (set.delay.as_deref(), set.load, set.loss, set.threshold),
            (Some("2m"), Some(0.9), 0.01, 25)
        );
        assert!((set.offered.unwrap() - 0.9).abs() < 1e-3, "{:?}", set.offered);
        assert_eq!((set.strategy.as_str(), set.local), ("st", "easy"));
        let jobs: std::collections::BTreeSet<i64> =
            picture.sites.iter().flat_map(|site| site.bars.chunks(6).map(|bar| bar[5])).collect();
        assert_eq!((jobs.len(), picture.numbers.jobs, picture.bars_left_out), (2000, 2000, 0));
        for site in &picture.sites {
            for bar in site.bars.chunks(6) {
                assert!(bar[0] >= 0 && picture.origin_ms + bar[0] + bar[1] <= picture.until_ms, "{bar:?}");
                assert!(bar[2] >= 0 && bar[2] + bar[3] <= i64::from(site.processors), "{bar:?}");
            }
        }
        let delay = picture.delay.unwrap();
        assert!((delay.causes.iter().map(|cause| cause.share).sum::<f64>() - 1.0).abs() < 1e-9);
        let waits = picture.waits.unwrap();
        assert!((waits.causes.iter().map(|cause| cause.share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!((waits.mean_s - picture.numbers.wait_mean_s).abs() < 1e-6 && waits.jobs == 2000);
    }

    #[test]
    fn what_a_broker_sends_from_home_is_not_drawn_as_the_sites_own() {
        let query = [("strategy", "broker:mpl")];
        let picture = player(AMPLE).play(&settings(&query), &Interrupt::default()).unwrap();
        let bars = || picture.sites.iter().flat_map(|site| site.bars.chunks(6));
        assert!(bars().any(|bar| bar[4] >= 2) && bars().any(|bar| bar[4] < 2));
    }

    #[test]
    fn a_delay_makes_jobs_wait_and_a_strategy_without_messages_does_not_care() {
        let player = player(AMPLE);
        let wait = |query: &[(&str, &str)]| {
            let picture = player.play(&settings(query), &Interrupt::default()).unwrap();
            (picture.numbers.wait_mean_s, picture.matters.messages)
        };
        let (free, hour) = (wait(&[("delay", "0s")]), wait(&[("delay", "1h")]));
        assert!(hour.0 > free.0 && free.1, "{hour:?} {free:?}");
        let local = ("strategy", "local");
        assert_eq!(wait(&[local, ("delay", "0s")]), wait(&[local, ("delay", "1h")]));
        assert!(!wait(&[local]).1);
    }

    #[test]
    fn what_contradicts_the_experiment_and_what_is_too_much_is_told() {
        let play = |player: &Player, query| player.play(&settings(query), &Interrupt::default()).unwrap_err();
        let ample = player(AMPLE);
        let Refused::Settings(reason) = play(&ample, &[("load", "50")]) else { panic!("it is simulated") };
        assert_eq!(
            reason,
            "failed to understand workload.load: 50 is not from 0.01 to 10, shares of the capacity"
        );
        let few = player(Limits { jobs: 1999, ..AMPLE });
        let Refused::Simulation(reason) = play(&few, &[]) else { panic!("it is simulated") };
        assert!(
            reason.starts_with("failed to play with 2000 jobs: at most 1999 are (--jobs-max)"),
            "{reason}"
        );
        assert!(few.notes().is_err());
    }

    #[test]
    fn a_simulation_that_is_interrupted_is_no_picture() {
        let interrupt = Interrupt::default();
        interrupt.set();
        let refused = player(AMPLE).play(&Settings::default(), &interrupt).unwrap_err();
        assert_eq!(refused, Refused::Interrupted);
    }
}
