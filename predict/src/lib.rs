//! How long will this job run, and when will it start? Predictors that learn from jobs that have ended, and corrections of predictions that
//! were exceeded; predictors of waits are in [`waits`].
//!
//! A [`Forecast`] is a predictor with a correction, as users write them; [`Forecast::estimator`] is one that has learned nothing yet, for
//! the queue of one site. Users' estimates are upper limits, some three times too long in the mean; planners gain by shorter ones
//! (Tsafrir, Etsion and Feitelson, *Backfilling using system-generated predictions rather than user runtime estimates*, TPDS 2007; Gaussier,
//! Lelong, Reis and Trystram, *Improving backfilling by using machine learning to predict running times*, SC'15). No prediction is
//! longer than the user's estimate, where jobs are killed.
//!
//! Pure: no clock, no environment, whole microseconds throughout, so the same jobs give the same predictions everywhere.
//! A predictor is a file with its rule and its spelling, and a line in [`Predictor`]; what schedulers do with it is theirs.
//!
//! ```
//! use predict::Forecast;
//! use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};
//!
//! let job = |id| JobSpec {
//!     id: JobId(id),
//!     submit: Time::ZERO,
//!     processors: 2,
//!     requested: Span::from_secs(3600),
//!     labels: Labels { user: 7, ..Labels::UNKNOWN },
//!     origin: SiteId(1),
//!     payload: 0,
//! };
//! let mut estimator = Forecast::of("avg2", None).unwrap().unwrap().estimator();
//! assert_eq!(estimator.predict(Time::ZERO, &job(1)), Span::from_secs(3600), "the user is believed");
//! for (id, run_time) in [(1, 100), (2, 200)] {
//!     estimator.learn(Time::ZERO, &job(id), Span::from_secs(run_time));
//! }
//! assert_eq!(estimator.predict(Time::ZERO, &job(3)), Span::from_secs(150), "the mean of the last two");
//! ```

mod avg2;
mod categories;
mod combined;
mod correction;
mod decisor;
mod ibl;
mod last;
mod linear;
mod pending;
pub mod score;
mod spelled;
mod straight;
mod template;
pub mod waits;

use std::fmt::{self, Debug, Display};
use std::str::FromStr;

use scheduler::local::Estimator;
use scheduler::{JobSpec, Span, Time, spelling};

pub use categories::Pattern;
pub use combined::Combined;
pub use correction::Correction;
pub use decisor::{Decisor, Of};
pub use ibl::Ibl;
pub use last::{By, Last};
pub use linear::{Curve, Linear, Weight};
pub use straight::{Straight, factor as correction_factor};
pub use template::Template;

use avg2::Avg2;
use spelled::Options;

/// A rule that predicts run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictor {
    /// The user's estimate, for backfilling in another order alone.
    User,
    /// The mean of the last two run times of the user (Tsafrir and others 2007).
    Avg2,
    /// Of the last run times of the user.
    Last(Last),
    /// The median of the last run times of the most similar jobs.
    Template(Template),
    /// The mean of all jobs of the same category.
    Category(Pattern),
    /// The mean of the nearest instances.
    Ibl(Ibl),
    /// A linear regression that learns on line.
    Linear(Linear),
    /// The shorter or the middle one of several.
    Combined(Combined),
    /// Whoever was best of late.
    Decisor(Decisor),
    /// Another one with its steady error taken out.
    Straight(Straight),
}

/// A predictor, and what is thought of jobs that run past a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Who predicts.
    pub predictor: Predictor,
    /// Who corrects.
    pub correction: Correction,
}

/// A rule with what it has learned.
trait Rule: Debug + Send + Sync {
    /// The run time of a job; none where nothing is known that it could be taken from.
    fn predict(&mut self, now: Time, job: &JobSpec) -> Option<Span>;

    /// A job has ended.
    fn learn(&mut self, now: Time, job: &JobSpec, run_time: Span);

    /// A clone, as trait objects cannot derive one.
    fn boxed(&self) -> Box<dyn Rule>;
}

/// Names of predictors, as users write them.
pub const PREDICTORS: [&str; 12] = [
    "user", "avg2", "last", "half", "template", "smith", "li", "ibl", "linear", "combined", "decisor",
    "straight",
];

/// What is wrong with a name that no predictor has, with those that there are and their options.
fn unknown(name: &str) -> String {
    let hint = spelling::hint(name, PREDICTORS);
    format!(
        "{name:?} is no predictor{hint}; use one of {}; most have options, as in last:k=5,by=mean|median|ratio",
        PREDICTORS.join(", ")
    )
}

impl FromStr for Predictor {
    type Err = String;

    fn from_str(text: &str) -> Result<Predictor, String> {
        let (name, mut options) = Options::of(text)?;
        let predictor = match name {
            "user" => Predictor::User,
            "avg2" => Predictor::Avg2,
            "last" => Predictor::Last(Last::read(&mut options)?),
            "half" => Predictor::Last(Last::HALF),
            "template" => Predictor::Template(Template::read(&mut options)?),
            "linear" => Predictor::Linear(Linear::read(&mut options)?),
            "smith" => Predictor::Category(Pattern::Smith),
            "li" => Predictor::Category(Pattern::Li),
            "ibl" => Predictor::Ibl(Ibl::read(&mut options)?),
            "combined" => Predictor::Combined(Combined::read(&mut options)?),
            "decisor" => Predictor::Decisor(Decisor::read(&mut options)?),
            "straight" => Predictor::Straight(Straight::read(&mut options)?),
            _ => return Err(unknown(name)),
        };
        options.end()?;
        Ok(predictor)
    }
}

impl Display for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predictor::User => f.write_str("user"),
            Predictor::Avg2 => f.write_str("avg2"),
            Predictor::Last(last) => write!(f, "last:{last}"),
            Predictor::Template(template) => write!(f, "template:{template}"),
            Predictor::Category(Pattern::Smith) => f.write_str("smith"),
            Predictor::Category(Pattern::Li) => f.write_str("li"),
            Predictor::Ibl(ibl) => write!(f, "ibl:{ibl}"),
            Predictor::Linear(linear) => write!(f, "linear:{linear}"),
            Predictor::Combined(combined) => write!(f, "combined:{combined}"),
            Predictor::Decisor(decisor) => write!(f, "decisor:{decisor}"),
            Predictor::Straight(straight) => write!(f, "straight:{straight}"),
        }
    }
}

impl Predictor {
    fn rule(self) -> Option<Box<dyn Rule>> {
        match self {
            Predictor::User => None,
            Predictor::Avg2 => Some(Box::new(Avg2::default())),
            Predictor::Last(last) => Some(Box::new(last::Experience::new(last))),
            Predictor::Template(template) => Some(Box::new(template::Experience::new(template))),
            Predictor::Category(pattern) => Some(Box::new(categories::Experience::new(pattern))),
            Predictor::Ibl(ibl) => Some(Box::new(ibl::Experience::new(ibl))),
            Predictor::Linear(linear) => Some(Box::new(linear::Experience::new(linear))),
            Predictor::Combined(combined) => Some(Box::new(combined::Experience::new(combined))),
            Predictor::Decisor(decisor) => Some(Box::new(decisor::Experience::new(decisor))),
            Predictor::Straight(straight) => Some(Box::new(straight::Experience::new(straight))),
        }
    }
}

impl Forecast {
    /// What these say; nothing if users are believed. The correction is [`Correction::User`] if nobody says which.
    ///
    /// # Errors
    /// What is wrong with either, or that there is nothing to correct.
    pub fn of(predictor: &str, correction: Option<&str>) -> Result<Option<Forecast>, String> {
        let correction = correction.map(str::parse).transpose()?;
        match (predictor.parse()?, correction) {
            (Predictor::User, None) => Ok(None),
            (Predictor::User, Some(_)) => {
                Err("there is nothing to correct: users are believed; name a predictor, as avg2".to_string())
            }
            (predictor, correction) => {
                Ok(Some(Forecast { predictor, correction: correction.unwrap_or_default() }))
            }
        }
    }

    /// A predictor that has learned nothing.
    pub fn estimator(self) -> Box<dyn Estimator> {
        Box::new(Forecaster { rule: self.predictor.rule(), correction: self.correction })
    }
}

/// A forecast with what it has learned.
#[derive(Debug)]
struct Forecaster {
    rule: Option<Box<dyn Rule>>,
    correction: Correction,
}

impl Estimator for Forecaster {
    fn predict(&mut self, now: Time, job: &JobSpec) -> Span {
        let predicted = self.rule.as_mut().filter(|_| is_known(job)).and_then(|rule| rule.predict(now, job));
        predicted.map_or(job.requested, |predicted| predicted.min(job.requested))
    }

    fn correct(&self, job: &JobSpec, predicted: Span, before: u32) -> Span {
        self.correction.of(job, predicted, before)
    }

    fn learn(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        if let Some(rule) = self.rule.as_mut().filter(|_| is_known(job)) {
            rule.learn(now, job, run_time);
        }
    }

    fn boxed(&self) -> Box<dyn Estimator> {
        let rule = self.rule.as_ref().map(|rule| rule.boxed());
        Box::new(Forecaster { rule, correction: self.correction })
    }
}

/// Whether the log says whose job it is. All others together are nobody: what is learned from one says nothing of the next.
pub fn is_known(job: &JobSpec) -> bool {
    job.labels.user >= 0
}

/// Whole seconds, as the logs have them that the published figures are of; what is shorter stays as it is.
fn whole_seconds(span: Span) -> Span {
    const SECOND: i64 = 1_000_000;
    let micros = span.as_micros();
    if micros < SECOND { span } else { Span::from_micros(micros - micros % SECOND) }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, Labels, SiteId};

    use super::*;

    /// A job of a user that asks for so many seconds on a processor.
    pub(crate) fn job(user: i32, requested: i64) -> JobSpec {
        JobSpec {
            id: JobId(1),
            submit: Time::ZERO,
            processors: 1,
            requested: Span::from_secs(requested),
            labels: Labels { user, ..Labels::UNKNOWN },
            origin: SiteId(1),
            payload: 0,
        }
    }

    #[test]
    fn names_round_trip_and_what_is_wrong_is_said() {
        for text in [
            "user",
            "avg2",
            "last:k=2,by=mean",
            "last:k=5,by=ratio",
            "template:k=3",
            "smith",
            "li",
            "ibl:k=3,window=100",
            "linear:over=abs,under=square,cost=2,weight=wide,degree=1,eta=100",
            "combined:by=middle",
            "decisor:zeta=5,of=all",
            "straight:of=avg2,window=9",
        ] {
            assert_eq!(text.parse::<Predictor>().unwrap().to_string(), text);
        }
        for name in PREDICTORS {
            assert!(name.parse::<Predictor>().is_ok(), "{name}");
        }
        assert_eq!("last".parse::<Predictor>().unwrap().to_string(), "last:k=5,by=ratio");
        assert_eq!("half".parse::<Predictor>().unwrap().to_string(), "last:k=1,by=mean,percent=50");
        for (text, reason) in [
            ("avg3", "is no predictor (did you mean avg2?); use one of user, avg2"),
            ("avg3", "last:k=5,by=mean|median|ratio"),
            ("avg2:k=2", "avg2 has no k; it has no options"),
            ("avg2:", "\"avg2:\" has an option without a name"),
            ("last:k=5,", "has an option without a name"),
            ("last:kk=5", "last has no kk; it has k, by"),
            ("last:k=1001", "k is \"1001\"; write a whole number from 1 to 1000"),
            ("last:by=medain", "by is \"medain\" (did you mean median?)"),
            ("last:k=0", "k is \"0\""),
            ("last:k=2,k=3", "k is there twice"),
            ("last:by=mode", "by is \"mode\"; use one of mean, median, ratio"),
            ("template:depth", "\"depth\" is no name=value"),
        ] {
            let error = text.parse::<Predictor>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn nobody_predicts_more_than_the_user_asks_for_or_without_experience() {
        let forecast = Forecast { predictor: Predictor::Avg2, correction: Correction::User };
        let mut estimator = forecast.estimator();
        let predicted = |estimator: &mut Box<dyn Estimator>, requested| {
            estimator.predict(Time::ZERO, &job(1, requested)).as_micros() / 1_000_000
        };
        assert_eq!(predicted(&mut estimator, 100), 100);
        estimator.learn(Time::ZERO, &job(1, 100), Span::from_secs(50));
        assert_eq!(predicted(&mut estimator, 100), 100, "one is not enough");
        estimator.learn(Time::ZERO, &job(1, 100), Span::from_secs(61));
        assert_eq!(predicted(&mut estimator, 100), 55, "whole seconds");
        assert_eq!(predicted(&mut estimator, 40), 40);
        for run_time in [1, 2, 3] {
            estimator.learn(Time::ZERO, &job(-1, 100), Span::from_secs(run_time));
        }
        assert_eq!(
            estimator.predict(Time::ZERO, &job(-1, 100)),
            Span::from_secs(100),
            "nobody knows whose it is"
        );
        let mut other = estimator.boxed();
        other.learn(Time::ZERO, &job(1, 100), Span::from_secs(1));
        assert_eq!((predicted(&mut other, 100), predicted(&mut estimator, 100)), (31, 55));
    }
}
