//! When will this job start? Predictors of waits, that look at the queue or learn from waits that have ended.
//!
//! [`WaitPredictor`] is one as users write it; [`WaitPredictor::waits`] is one that has learned nothing, for the queue of one machine.
//! Whoever drives the queue tells it of each job that comes ([`Waits::predict`]), starts and ends, in that order of one job, and in the order
//! of time. A wait is known when the job starts; jobs that still wait say nothing, though they may have waited for long.
//!
//! Most say how long a job will wait. `quantile` says how long it will hardly wait longer than: a *bound*, with a share of the jobs that
//! keep it and a confidence ([`WaitPredictor::bound`]).

mod categories;
mod ibl;
mod plan;
mod quantile;
mod runs;

use std::fmt::{self, Debug, Display};
use std::str::FromStr;

use scheduler::local::{Estimator, LocalQueue};
use scheduler::{JobSpec, Span, Time, spelling};

pub use ibl::IblWaits;
pub use plan::Plan;
pub use quantile::{Group, Quantile};

use super::categories::Pattern;
use super::spelled::Options;

/// What is known of a job when it joins a queue.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// When that is.
    pub now: Time,
    /// The job.
    pub job: &'a JobSpec,
    /// The queue with the job in it, which has not decided since.
    pub queue: &'a LocalQueue,
    /// What waits before it.
    pub ahead: Ahead,
}

/// The jobs that wait when another one comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// How many.
    pub jobs: u64,
    /// Their processors times their users' estimates, in processor-microseconds.
    pub work: i128,
}

impl Ahead {
    /// A job waits from now on.
    pub fn add(&mut self, job: &JobSpec) {
        self.jobs += 1;
        self.work += work(job);
    }

    /// A job that was added waits no more.
    ///
    /// # Panics
    /// If none waits.
    pub fn remove(&mut self, job: &JobSpec) {
        self.jobs = self.jobs.checked_sub(1).expect("a job that starts has waited");
        self.work -= work(job);
    }
}

fn work(job: &JobSpec) -> i128 {
    i128::from(job.processors) * i128::from(job.requested.as_micros())
}

/// A rule that predicts waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPredictor {
    /// The queue played forward with predicted run times.
    Plan(Plan),
    /// An upper bound on a quantile of the waits so far.
    Quantile(Quantile),
    /// The mean wait of all jobs of the same category.
    Category(Pattern),
    /// The mean wait of those that met the most similar queue.
    Ibl(IblWaits),
}

/// A rule with what it has learned.
trait WaitRule: Debug {
    /// How long a job will wait that comes; none where nothing is known that it could be taken from.
    fn predict(&mut self, arrival: &Arrival<'_>) -> Option<Span>;

    /// A job starts.
    fn started(&mut self, now: Time, job: &JobSpec, wait: Span);

    /// A job has ended.
    fn ended(&mut self, _now: Time, _job: &JobSpec, _run_time: Span) {}
}

/// Names of predictors of waits, as users write them.
pub const WAIT_PREDICTORS: [&str; 5] = ["plan", "quantile", "smith", "li", "ibl"];

impl FromStr for WaitPredictor {
    type Err = String;

    fn from_str(text: &str) -> Result<WaitPredictor, String> {
        let (name, mut options) = Options::of(text)?;
        let predictor = match name {
            "plan" => WaitPredictor::Plan(Plan::read(&mut options)?),
            "quantile" => WaitPredictor::Quantile(Quantile::read(&mut options)?),
            "smith" => WaitPredictor::Category(Pattern::Smith),
            "li" => WaitPredictor::Category(Pattern::Li),
            "ibl" => WaitPredictor::Ibl(IblWaits::read(&mut options)?),
            _ => {
                let hint = spelling::hint(name, WAIT_PREDICTORS);
                return Err(format!(
                    "{name:?} predicts no waits{hint}; use one of {}; some have options, as in quantile:q=95,confidence=95",
                    WAIT_PREDICTORS.join(", ")
                ));
            }
        };
        options.end()?;
        Ok(predictor)
    }
}

impl Display for WaitPredictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitPredictor::Plan(plan) => write!(f, "plan:{plan}"),
            WaitPredictor::Quantile(quantile) => write!(f, "quantile:{quantile}"),
            WaitPredictor::Category(Pattern::Smith) => f.write_str("smith"),
            WaitPredictor::Category(Pattern::Li) => f.write_str("li"),
            WaitPredictor::Ibl(ibl) => write!(f, "ibl:{ibl}"),
        }
    }
}

impl WaitPredictor {
    /// One that has learned nothing.
    pub fn waits(self) -> Waits {
        Waits(match self {
            WaitPredictor::Plan(plan) => Box::new(plan::Player::new(plan.estimator())),
            WaitPredictor::Quantile(quantile) => Box::new(quantile::Experience::new(quantile)),
            WaitPredictor::Category(pattern) => Box::new(categories::Experience::new(pattern)),
            WaitPredictor::Ibl(ibl) => Box::new(ibl::Experience::new(ibl)),
        })
    }

    /// Of a bound, the share of jobs that wait no longer, and the confidence of that, both as shares of 1. None of one that says how long
    /// a job will wait.
    pub fn bound(self) -> Option<(f64, f64)> {
        let share = |percent: u32| f64::from(percent) / 100.0;
        match self {
            WaitPredictor::Quantile(quantile) => Some((share(quantile.q), share(quantile.confidence))),
            _ => None,
        }
    }
}

/// A predictor of waits with what it has learned.
#[derive(Debug)]
pub struct Waits(Box<dyn WaitRule>);

impl Waits {
    /// The queue played forward with run times of an estimator of others, as one that knows them.
    pub fn by_plan(estimator: Box<dyn Estimator>) -> Waits {
        Waits(Box::new(plan::Player::new(estimator)))
    }

    /// How long a job will wait that has joined its queue; none where nothing is known that it could be taken from.
    pub fn predict(&mut self, arrival: &Arrival<'_>) -> Option<Span> {
        self.0.predict(arrival)
    }

    /// A job starts that was predicted, or that was there before.
    pub fn started(&mut self, now: Time, job: &JobSpec) {
        self.0.started(now, job, now.since(job.submit).max(Span::ZERO));
    }

    /// A job has ended that ran for so long.
    pub fn ended(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        self.0.ended(now, job, run_time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::job;

    #[test]
    fn names_round_trip_and_what_is_wrong_is_said() {
        for text in [
            "plan:by=user",
            "plan:by=half",
            "quantile:q=95,confidence=95,of=all",
            "quantile:q=50,confidence=90,of=width",
            "smith",
            "li",
            "ibl:k=3,window=500",
        ] {
            assert_eq!(text.parse::<WaitPredictor>().unwrap().to_string(), text);
        }
        for name in WAIT_PREDICTORS {
            assert!(name.parse::<WaitPredictor>().is_ok(), "{name}");
        }
        for (text, reason) in [
            ("quantil", "\"quantil\" predicts no waits (did you mean quantile?); use one of plan, quantile"),
            ("plan:by=avg3", "by is \"avg3\" (did you mean avg2?)"),
            ("quantile:q=100", "q is \"100\"; write a whole number from 1 to 99"),
            ("smith:k=3", "smith has no k; it has no options"),
        ] {
            let error = text.parse::<WaitPredictor>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert_eq!("quantile".parse::<WaitPredictor>().unwrap().bound(), Some((0.95, 0.95)));
        assert_eq!("plan".parse::<WaitPredictor>().unwrap().bound(), None);
    }

    #[test]
    fn what_is_ahead_is_what_was_added_and_has_not_started() {
        let mut ahead = Ahead::default();
        ahead.add(&job(1, 10));
        ahead.add(&JobSpec { processors: 4, ..job(2, 5) });
        assert_eq!(ahead, Ahead { jobs: 2, work: 30_000_000 });
        ahead.remove(&job(1, 10));
        assert_eq!(ahead, Ahead { jobs: 1, work: 20_000_000 });
    }
}
