//! Another predictor, straightened: where its predictions lie tightly on a line y = a x over run times x, and its error hardly changes,
//! y / a is predicted (correction factor of Lérida's thesis, 3.5.6; equations 3.15 and 3.16). Else what the other says, as it is.
//!
//! ```text
//! a = Σ y x / Σ x²      over the last predictions;  it applies while  Ra ≥ 0.93  and  σ(y − x) / mean |y − x| ≤ 0.25
//! ```

use std::collections::VecDeque;
use std::fmt::{self, Display};

use scheduler::{JobSpec, Span, Time};

use super::last::keep;
use super::pending::Pending;
use super::score::regression;
use super::spelled::{K_MAX, Options};
use super::{Predictor, Rule, whole_seconds};

/// Adjusted correlation from which predictions count as lying on a line.
const CORRELATION_MIN: f64 = 0.93;
/// Deviation of errors over their mean size up to which they count as constant.
const VARIATION_MAX: f64 = 0.25;

/// Who is straightened, by how many predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Straight {
    /// The other predictor, by its name.
    of: &'static str,
    /// Predictions that count; before there are so many it does not apply.
    pub window: u32,
}

const OF: [(&str, &str); 7] = [
    ("avg2", "avg2"),
    ("last", "last"),
    ("template", "template"),
    ("linear", "linear"),
    ("smith", "smith"),
    ("li", "li"),
    ("ibl", "ibl"),
];

impl Straight {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Straight, String> {
        Ok(Straight {
            of: options.one_of("of", &OF, "template")?,
            window: options.number("window", 30, K_MAX)?,
        })
    }
}

impl Display for Straight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of={},window={}", self.of, self.window)
    }
}

#[derive(Debug)]
pub(super) struct Experience {
    straight: Straight,
    other: Box<dyn Rule>,
    said: Pending<Span>,
    /// (predicted, run time), the last at the end.
    last: VecDeque<(Span, Span)>,
    /// a, while the correction applies.
    factor: Option<f64>,
}

impl Experience {
    pub(super) fn new(straight: Straight) -> Experience {
        let other: Predictor = straight.of.parse().expect("the list is fixed");
        let other = other.rule().expect("those of the list learn");
        Experience { straight, other, said: Pending::new(), last: VecDeque::new(), factor: None }
    }
}

/// The correction factor a of predictions, each with what happened, if it applies (3.15, 3.16).
pub fn factor(pairs: &[(Span, Span)]) -> Option<f64> {
    let (_, correlation) = regression(pairs);
    correlation.filter(|&correlation| correlation >= CORRELATION_MIN)?;
    let points = || pairs.iter().map(|(predicted, ran)| (predicted.as_secs_f64(), ran.as_secs_f64()));
    let count = pairs.len() as f64;
    let mean = points().map(|(y, x)| y - x).sum::<f64>() / count;
    let size = points().map(|(y, x)| (y - x).abs()).sum::<f64>() / count;
    let deviation = (points().map(|(y, x)| (y - x - mean) * (y - x - mean)).sum::<f64>() / count).sqrt();
    // Where all are right there is nothing to straighten.
    if size <= 0.0 || deviation > VARIATION_MAX * size {
        return None;
    }
    let xx: f64 = points().map(|(_, x)| x * x).sum();
    let factor = points().map(|(y, x)| y * x).sum::<f64>() / xx;
    (factor > 0.0).then_some(factor)
}

impl Rule for Experience {
    fn predict(&mut self, now: Time, job: &JobSpec) -> Option<Span> {
        let said = self.other.predict(now, job)?;
        self.said.insert(job.id, said);
        let Some(factor) = self.factor else { return Some(said) };
        let micros = (said.as_micros() as f64 / factor).min(job.requested.as_micros() as f64);
        Some(whole_seconds(Span::from_micros(micros as i64)))
    }

    fn learn(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        self.other.learn(now, job, run_time);
        if let Some(said) = self.said.take(job.id) {
            keep(&mut self.last, (said, run_time), self.straight.window);
            let is_known = self.last.len() == self.straight.window as usize;
            self.factor = if is_known { factor(self.last.make_contiguous()) } else { None };
        }
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(Experience {
            straight: self.straight,
            other: self.other.boxed(),
            said: self.said.clone(),
            last: self.last.clone(),
            factor: self.factor,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(seconds: &[(i64, i64)]) -> Vec<(Span, Span)> {
        seconds.iter().map(|&(predicted, ran)| (Span::from_secs(predicted), Span::from_secs(ran))).collect()
    }

    #[test]
    fn what_lies_on_a_line_with_a_steady_error_is_straightened() {
        // Half of the run times 100 to 120: errors 50 to 60, of mean 55 and deviation 4.08.
        let half = pairs(&[(50, 100), (55, 110), (60, 120)]);
        assert!((factor(&half).unwrap() - 0.5).abs() < 1e-12);
        // On a line, but errors are 5 to 100.
        assert_eq!(factor(&pairs(&[(5, 10), (50, 100), (100, 200)])), None);
        // A steady error, but no line: 60, 50, 60 over 100, 110, 120.
        assert_eq!(factor(&pairs(&[(60, 100), (50, 110), (60, 120)])), None);
        assert_eq!(factor(&pairs(&[(10, 10), (20, 20), (30, 30)])), None, "nothing is wrong");
    }

    #[test]
    fn it_applies_once_the_window_is_full() {
        use crate::tests::job;
        let mut experience = Experience::new(Straight { of: "avg2", window: 3 });
        experience.last = pairs(&[(50, 100), (55, 110)]).into();
        for run_time in [60, 60] {
            experience.learn(Time::ZERO, &job(1, 500), Span::from_secs(run_time));
        }
        assert_eq!(experience.predict(Time::ZERO, &job(1, 500)), Some(Span::from_secs(60)));
        experience.learn(Time::ZERO, &job(1, 500), Span::from_secs(120));
        // AVG2 says (60 + 120) / 2 = 90; the last three lie on the line of 1/2.
        assert_eq!(experience.predict(Time::ZERO, &job(1, 500)), Some(Span::from_secs(180)));
        assert_eq!(experience.predict(Time::ZERO, &job(1, 170)), Some(Span::from_secs(170)));
    }
}
