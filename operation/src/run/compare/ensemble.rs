//! An experiment simulated many times, each time a little late: what a correct run by the wall clock may look like.
//!
//! By the wall clock messages, timers, submissions and ends of jobs are late. How late they may be is stated before the
//! run, as a share of the delays that the experiment is about ([`Allowed`]); what the run measured of itself never goes
//! in. Each simulation draws how late its messages and its sites are in the mean, both between nothing and what is
//! allowed, and then what is late together between nothing and twice that: all messages of one instant on a link, all
//! that is due at a site at one instant. So the simulations are spread evenly over all effective delays that the
//! experiment calls its own, and a run lies among them if its delays are there, too.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use analysis::Figures;
use experiments::drive::builder;
use experiments::drive::configuration;
use experiments::experiment::Experiment;
use experiments::experiment::jobs::Jobs;
use experiments::interrupt::Interrupt;
use experiments::progress::Progress;
use links::Jitter;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::{Event, EventKind, SiteId, Span, Time};
use simulator::{Checks, Lateness, Simulation};

use crate::run::calibration::FLOOR;
use crate::run::plan::{Plan, trace_span};

/// How late messages and timers may be where no delay is configured, in wall time: on an idle machine both are below a
/// millisecond in the mean. Arbitrary.
const NO_DELAY_LATENESS: Duration = Duration::from_millis(2);
/// How late a single one may be, in parts of what all may be in the mean: one that is later is a machine that stood
/// still, which no simulation does.
const SINGLE_PARTS: i64 = 10;
/// The stream of the seed that lateness is drawn from; the simulator draws from others.
const LATENESS_STREAM: u64 = 100;
/// How often the clock and the user are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Simulations after which it is known how long all of them take.
const SAMPLE: usize = 8;

/// How late a run may be that still is one of its experiment, in trace time. Known before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Messages beyond their injected delay, and timers, in the mean.
    pub mean: Span,
    /// The same, each.
    pub single: Span,
}

impl Allowed {
    /// `run.delay_margin` percent of the mean configured delay at this time; where none is configured,
    /// `NO_DELAY_LATENESS` at this factor of the clock.
    pub fn of(experiment: &Experiment, begin: Time, factor: f64) -> Allowed {
        let sites = || experiment.grid.sites().iter().map(|site| site.id);
        let pairs =
            sites().flat_map(|from| sites().map(move |to| (from, to))).filter(|(from, to)| from != to);
        let delays: Vec<f64> =
            pairs.map(|(from, to)| experiment.network.link(begin, from, to).mean().as_secs_f64()).collect();
        let delay = delays.iter().sum::<f64>() / delays.len().max(1) as f64;
        let mean = if delay > 0.0 {
            let share = delay * experiment.run.delay_margin / 100.0;
            Span::from_micros((share * 1e6) as i64).max(FLOOR)
        } else {
            trace_span(NO_DELAY_LATENESS, factor)
        };
        Allowed { mean, single: mean.saturating_mul(SINGLE_PARTS) }
    }
}

/// How late one simulation is in the mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// How late its messages are, on top of the injected delays.
    pub messages: Span,
    /// Its sites, at noticing that a job ends or is submitted.
    pub sites: Span,
}

impl Late {
    /// How late simulation number `index` of `count` is: every share of what is allowed comes once for messages, and by
    /// chance for sites.
    pub fn drawn(allowed: Allowed, index: usize, count: usize, seed: u64) -> Late {
        let mut rng = stream(seed);
        let share = |share: f64| Span::from_micros((allowed.mean.as_micros() as f64 * share) as i64);
        let within: f64 = rng.random_range(0.0..1.0);
        Late {
            messages: share((index as f64 + within) / count.max(1) as f64),
            sites: share(rng.random_range(0.0..1.0)),
        }
    }
}

fn stream(seed: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(LATENESS_STREAM);
    rng
}

/// Why there are no simulations to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The experiment, or the time that there is, does not allow it.
    Impossible(String),
    /// The user asked to stop.
    Stopped,
    /// A simulation failed, which none should.
    Failed(String),
}

/// An experiment as its nodes run it.
#[derive(Clone, Debug)]
pub struct Ensemble<'a> {
    experiment: Experiment,
    jobs: &'a Jobs,
    allowed: Allowed,
    starts_late: Option<(SiteId, Span)>,
}

impl<'a> Ensemble<'a> {
    /// Of an experiment whose nodes are told what the plan says.
    pub fn new(experiment: &Experiment, plan: &Plan, jobs: &'a Jobs) -> Ensemble<'a> {
        let mut experiment = experiment.clone();
        let allowed = Allowed::of(&experiment, plan.origin, plan.factor);
        let told = plan.options();
        experiment.options.retry = told.retry;
        experiment.options.pool.refresh = told.pool.refresh;
        experiment.options.heartbeat = told.heartbeat;
        experiment.options.suspect_after = told.suspect_after;
        experiment.options.lease = told.lease;
        Ensemble { experiment, jobs, allowed, starts_late: None }
    }

    /// With a mistake that a comparison should find: one site says that jobs started and ended so much later than they did.
    pub fn with_starts_late(self, site: SiteId, late: Span) -> Ensemble<'a> {
        Ensemble { starts_late: Some((site, late)), ..self }
    }

    /// How late its simulations are.
    pub fn allowed(&self) -> Allowed {
        self.allowed
    }

    /// As many simulations as the experiment asks for, on all cores.
    ///
    /// # Errors
    /// Why there are none.
    pub fn simulate(&self, interrupt: &Interrupt) -> Result<Vec<Figures>, Missing> {
        let run = &self.experiment.run;
        if run.ensemble == 0 {
            return Err(Missing::Impossible("run.ensemble is 0".to_string()));
        }
        let options = &self.experiment.options;
        let most = self.allowed.mean.saturating_mul(2);
        if options.heartbeat.is_some() && most >= options.suspect_after {
            // They take each other for gone, again and again, and nothing would end.
            return Err(Missing::Impossible(format!(
                "messages may be late by {most} s, and sites suspect each other after protocol.suspect_after = {} s",
                options.suspect_after
            )));
        }
        let late = |index: usize, seed| Late::drawn(self.allowed, index, run.ensemble, seed);
        self.simulate_each(run.ensemble, 1, late, Some(run.ensemble_patience), interrupt)
    }

    /// So many simulations, with seeds that come so many after that of the experiment, each as late as said.
    ///
    /// # Errors
    /// Why there are none.
    pub fn simulate_each(
        &self,
        count: usize,
        first: u64,
        late: impl Fn(usize, u64) -> Late + Sync,
        patience: Option<Duration>,
        interrupt: &Interrupt,
    ) -> Result<Vec<Figures>, Missing> {
        let begun = Instant::now();
        let (stop, next, done) = (Interrupt::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let found: Mutex<Vec<Option<Result<Figures, String>>>> = Mutex::new(vec![None; count]);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                // Both: short simulations are over before anybody has passed an interrupt on.
                if index >= count || stop.is_set() || interrupt.is_set() {
                    return;
                }
                let seed = self.experiment.seed.wrapping_add(first).wrapping_add(index as u64);
                let simulated = self.one(seed, late(index, seed), &stop).transpose();
                if simulated.as_ref().is_some_and(Result::is_err) {
                    stop.set();
                }
                // Nobody panics with the lock held.
                found.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[index] = simulated;
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        let mut late_for = None;
        let mut progress = Progress::of("simulations", count as u64);
        std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(count);
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            while workers.iter().any(|worker| !worker.is_finished()) {
                let (done, elapsed) = (done.load(Ordering::Relaxed), begun.elapsed());
                progress.set(done as u64);
                if late_for.is_none() {
                    late_for = patience.and_then(|patience| too_long(done, count, elapsed, patience));
                }
                if late_for.is_some() || interrupt.is_set() {
                    stop.set();
                }
                std::thread::sleep(LOOK_EVERY);
            }
        });
        let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(Some(Err(error))) = found.iter().find(|found| matches!(found, Some(Err(_)))) {
            return Err(Missing::Failed(error.clone()));
        }
        let all: Option<Vec<Figures>> = found.into_iter().map(|found| found?.ok()).collect();
        match (all, late_for) {
            (Some(all), _) => Ok(all),
            (None, Some(reason)) => Err(Missing::Impossible(reason)),
            (None, None) => Err(Missing::Stopped),
        }
    }

    /// What the site says of what happened.
    fn said(&self, event: &Event) -> Event {
        let of_job = matches!(event.kind, EventKind::Started { .. } | EventKind::Completed { .. });
        match self.starts_late {
            Some((site, late)) if of_job && event.site == site => Event { at: event.at + late, ..*event },
            _ => *event,
        }
    }

    /// One simulation; `None` if it was stopped.
    fn one(&self, seed: u64, late: Late, stop: &Interrupt) -> Result<Option<Figures>, String> {
        let mut configuration = configuration(&self.experiment, self.jobs, Checks::Cheap);
        configuration.seed = seed;
        configuration.network = configuration
            .network
            .over(Jitter::Uniform { min: Span::ZERO, max: late.messages.saturating_mul(2) });
        configuration.late = Some(Lateness { most: late.sites.saturating_mul(2), seed });
        let mut builder = builder(&self.experiment, self.jobs);
        let arriving = self.jobs.arriving(&self.experiment);
        let mut simulation = Simulation::new(configuration, &arriving);
        let mut sink = |event: &Event| builder.observe(&self.said(event));
        loop {
            if stop.is_set() {
                return Ok(None);
            }
            match simulation.advance(&mut sink) {
                Ok(true) => {}
                Ok(false) => break,
                Err(violation) => return Err(violation.to_string()),
            }
        }
        simulation.finish().map_err(|violation| violation.to_string())?;
        Ok(Some(Figures::of(&builder.finish())))
    }
}

/// Why so many simulations take too long, if they do.
fn too_long(done: usize, count: usize, elapsed: Duration, patience: Duration) -> Option<String> {
    let expected = (done >= SAMPLE).then(|| elapsed.mul_f64(count as f64 / done as f64));
    let over = elapsed > patience || (elapsed > patience / 10 && expected? > patience);
    let takes =
        expected.map_or_else(String::new, |expected| format!(", and all take about {}", seconds(expected)));
    over.then(|| {
        format!(
            "{done} of {count} simulations took {}{takes}; run.ensemble_patience allows {}",
            seconds(elapsed),
            seconds(patience)
        )
    })
}

fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64().ceil())
}

#[cfg(test)]
mod tests {
    use experiments::fixtures::{experiment, jobs};

    use super::*;
    use crate::run::plan::tests::planned;

    fn allowed(text: &str) -> Allowed {
        Allowed::of(&experiment(text), Time::ZERO, 1000.0)
    }

    #[test]
    fn what_is_allowed_is_a_share_of_the_delays_and_known_before_the_run() {
        let span = |seconds| Span::from_secs(seconds);
        assert_eq!(allowed("network.delay = \"5m\""), Allowed { mean: span(30), single: span(300) });
        assert_eq!(allowed("network.delay = \"5m\"\nrun.delay_margin = 4.0").mean, span(12));
        // Two links of 10 s and 30 s.
        assert_eq!(allowed("network.matrix = [[\"0s\", \"10s\"], [\"30s\", \"0s\"]]").mean, span(2));
        // Jitter is part of what is configured.
        assert_eq!(allowed("network.delay = \"10s\"\nnetwork.jitter = \"20s\"").mean, span(2));
        assert_eq!(allowed("").mean, span(2), "two milliseconds at 1000 times the wall clock");
        assert_eq!(allowed("network.delay = \"10ms\"").mean, FLOOR);
    }

    #[test]
    fn simulations_are_late_by_every_share_of_what_is_allowed() {
        let allowed = allowed("network.delay = \"5m\"");
        let late: Vec<Late> = (0..200).map(|index| Late::drawn(allowed, index, 200, index as u64)).collect();
        for (index, late) in late.iter().enumerate() {
            let share = late.messages.as_secs_f64() / 30.0 * 200.0;
            assert!((index as f64 - 0.001..=index as f64 + 1.0).contains(&share), "{late:?}");
            assert!(late.sites >= Span::ZERO && late.sites <= allowed.mean);
        }
        let sites = late.iter().map(|late| late.sites.as_secs_f64()).sum::<f64>() / 200.0;
        assert!((13.0..17.0).contains(&sites), "{sites}");
    }

    #[test]
    fn an_ensemble_is_the_same_on_any_number_of_cores_and_stops_when_it_is_told() {
        let (mut experiment, jobs) = (experiment("network.delay = \"1s\""), jobs());
        let plan = planned("network.delay = \"1s\"");
        let simulate = |experiment: &Experiment, interrupt: &Interrupt| {
            Ensemble::new(experiment, &plan, &jobs).simulate(interrupt)
        };
        let nobody = Interrupt::default();
        let figures = simulate(&experiment, &nobody).unwrap();
        assert_eq!(figures.len(), experiment.run.ensemble);
        assert_eq!(figures, simulate(&experiment, &nobody).unwrap());
        assert!(figures.windows(2).any(|pair| pair[0] != pair[1]), "they are late");

        let stopped = Interrupt::default();
        stopped.set();
        assert_eq!(simulate(&experiment, &stopped), Err(Missing::Stopped));
        experiment.run.ensemble = 0;
        assert!(matches!(simulate(&experiment, &nobody), Err(Missing::Impossible(_))));
    }

    #[test]
    fn what_takes_too_long_is_not_begun_in_earnest() {
        let second = Duration::from_secs(1);
        assert_eq!(too_long(8, 200, second, 60 * second), None);
        // A tenth of the patience is gone, and all would take 150 s.
        let reason = too_long(8, 200, 7 * second, 60 * second).unwrap();
        assert!(reason.contains("8 of 200 simulations took 7 s, and all take about 175 s"), "{reason}");
        assert_eq!(too_long(0, 200, 59 * second, 60 * second), None);
        assert!(too_long(0, 200, 61 * second, 60 * second).unwrap().contains("allows 60 s"));
    }
}
