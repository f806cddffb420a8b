//! How good are predictions? A log replayed as it happened, and figures of error.
//!
//! A job is predicted when it was submitted and learned from when it ended in the log, so that nothing is known before it was. What is
//! predicted is what [`Forecast::estimator`](super::Forecast::estimator) says, never more than the user's estimate.

use scheduler::local::Estimator;
use scheduler::{JobSpec, Span, Time};

use super::{Correction, Forecast, Predictor};

/// A job of a log, as it happened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Happened {
    /// What was known when it was submitted.
    pub job: JobSpec,
    /// How long it ran.
    pub run_time: Span,
    /// When it ended.
    pub end: Time,
}

/// What a predictor that learns on line says of each job, in the order given. Jobs are in order of submission; of one instant, ends
/// come before submissions, and ends in the order of the jobs.
///
/// # Panics
/// If the jobs are not in order of submission.
pub fn predictions(predictor: Predictor, jobs: &[Happened]) -> Vec<Span> {
    // Nothing is exceeded here: who corrects does not matter.
    let mut estimator = Forecast { predictor, correction: Correction::User }.estimator();
    predictions_by(estimator.as_mut(), jobs)
}

/// The same by an estimator that may have met other logs before, and has learned of all of these jobs at the end.
///
/// # Panics
/// As [`predictions`].
pub fn predictions_by(estimator: &mut dyn Estimator, jobs: &[Happened]) -> Vec<Span> {
    assert!(jobs.is_sorted_by_key(|happened| happened.job.submit), "jobs are in order of submission");
    let mut ends: Vec<usize> = (0..jobs.len()).collect();
    ends.sort_by_key(|&place| jobs[place].end);
    let mut ends = ends.into_iter().peekable();
    let learn = |estimator: &mut dyn Estimator, place: usize| {
        let Happened { job, run_time, end } = &jobs[place];
        estimator.learn((*end).max(job.submit), job, *run_time);
    };
    let mut predicted = Vec::with_capacity(jobs.len());
    for happened in jobs {
        let now = happened.job.submit;
        // A job that ends before it is submitted is a slip of the log; nobody learns from what nobody predicted.
        while let Some(place) = ends.next_if(|&place| jobs[place].end <= now && place < predicted.len()) {
            learn(estimator, place);
        }
        predicted.push(estimator.predict(now, &happened.job));
    }
    ends.for_each(|place| learn(estimator, place));
    predicted
}

/// Figures of how far predictions are from what happened. Times in seconds; those that need a job are none without one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Predictions.
    pub jobs: usize,
    /// Mean run time.
    pub run_time_mean_s: f64,
    /// Mean of |predicted − run time|.
    pub mae_s: f64,
    /// Of its sum, the share of the sum of all run times: *Desv* of Lérida's thesis, 3.13.
    pub mae_share: f64,
    /// Median of |predicted − run time|.
    pub error_median_s: f64,
    /// Mean of the lesser over the greater of predicted and run time; 1 where they are the same (Tsafrir, Etsion and Feitelson 2007,
    /// section 5).
    pub accuracy: f64,
    /// Share of the jobs that ran longer than predicted.
    pub under_share: f64,
    /// Slope of the regression line of predicted over run time (*Pe* there): above 1 predictions grow faster than run times. None where all
    /// ran for the same time.
    pub slope: Option<f64>,
    /// Coefficient of that regression, adjusted for its two parameters (*Ra* there): how tightly predictions lie on the line. None for less
    /// than three jobs, or where all are the same.
    pub correlation: Option<f64>,
}

impl Errors {
    /// Of (predicted, run time); nothing without any.
    pub fn of(pairs: &[(Span, Span)]) -> Option<Errors> {
        if pairs.is_empty() {
            return None;
        }
        let count = pairs.len() as f64;
        let seconds = |of: fn(&(Span, Span)) -> f64| pairs.iter().map(of).sum::<f64>();
        let error = |&(predicted, run_time): &(Span, Span)| {
            (predicted.as_micros() - run_time.as_micros()).abs() as f64 / 1e6
        };
        let run_times = seconds(|pair| pair.1.as_secs_f64());
        let mae: f64 = pairs.iter().map(error).sum();
        let mut sorted: Vec<f64> = pairs.iter().map(error).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let error_median_s = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        let (slope, correlation) = regression(pairs);
        Some(Errors {
            jobs: pairs.len(),
            run_time_mean_s: run_times / count,
            mae_s: mae / count,
            mae_share: if run_times > 0.0 { mae / run_times } else { 0.0 },
            error_median_s,
            accuracy: pairs.iter().map(accuracy).sum::<f64>() / count,
            under_share: pairs.iter().filter(|(predicted, run_time)| run_time > predicted).count() as f64
                / count,
            slope,
            correlation,
        })
    }
}

/// How many of the jobs a bound covers, with what that is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Share of the jobs that waited no longer than the bound.
    pub share: f64,
    /// Half the width of the interval of 95 % around it. None for fewer jobs than there are batches.
    pub half_width: Option<f64>,
}

/// Batches of jobs that follow each other, which an interval is made of: few enough that one hardly hangs on the next.
const BATCHES: usize = 20;
/// Of Student's distribution with 19 degrees of freedom, what 2.5 % are above.
const STUDENT: f64 = 2.093;

impl Coverage {
    /// Of (bound, measured) in the order of jobs; nothing without any. Jobs that come one after another wait alike, so the interval is
    /// that of batch means (Law and Kelton, *Simulation Modeling and Analysis*, 9.5.3), not of independent draws, which would be much
    /// too narrow.
    pub fn of(pairs: &[(Span, Span)]) -> Option<Coverage> {
        let covered = |pairs: &[(Span, Span)]| {
            pairs.iter().filter(|(bound, measured)| measured <= bound).count() as f64
        };
        if pairs.is_empty() {
            return None;
        }
        let count = pairs.len();
        let batch = |number: usize| &pairs[count * number / BATCHES..count * (number + 1) / BATCHES];
        let half_width = (count >= BATCHES).then(|| {
            let means = (0..BATCHES).map(|number| covered(batch(number)) / batch(number).len() as f64);
            let means: Vec<f64> = means.collect();
            let mean = means.iter().sum::<f64>() / BATCHES as f64;
            let squares: f64 = means.iter().map(|one| (one - mean) * (one - mean)).sum();
            STUDENT * (squares / ((BATCHES - 1) * BATCHES) as f64).sqrt()
        });
        Some(Coverage { share: covered(pairs) / count as f64, half_width })
    }
}

/// Jobs that took about as long as each other, and what was predicted of them. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// How many they are.
    pub jobs: usize,
    /// Median of what was measured.
    pub measured_s: f64,
    /// Lower quartile of what was predicted.
    pub low_s: f64,
    /// Its median.
    pub median_s: f64,
    /// Its upper quartile.
    pub high_s: f64,
}

/// (predicted, measured) in so many parts of as many jobs each by what was measured, ascending; jobs of which nothing was measured, as those
/// that did not wait, are a part before them. Fewer where there are fewer jobs.
pub fn curve(pairs: &[(Span, Span)], parts: usize) -> Vec<Bin> {
    let mut sorted: Vec<(Span, Span)> =
        pairs.iter().map(|&(predicted, measured)| (measured, predicted)).collect();
    sorted.sort_unstable();
    let (nothing, some) = sorted.split_at(sorted.partition_point(|(measured, _)| *measured <= Span::ZERO));
    let of_part = |part: usize| &some[some.len() * part / parts..some.len() * (part + 1) / parts];
    let parts = std::iter::once(nothing).chain((0..parts).map(of_part)).filter(|part| !part.is_empty());
    let bin = |part: &[(Span, Span)]| {
        let mut predicted: Vec<Span> = part.iter().map(|(_, predicted)| *predicted).collect();
        predicted.sort_unstable();
        // The nearest rank of a quantile in four parts.
        let at = |quarter: usize| predicted[(predicted.len() * quarter).div_ceil(4).max(1) - 1].as_secs_f64();
        let measured_s = part[(part.len() - 1) / 2].0.as_secs_f64();
        Bin { jobs: part.len(), measured_s, low_s: at(1), median_s: at(2), high_s: at(3) }
    };
    parts.map(bin).collect()
}

/// Share of the predictions that are off by no more than so long; nothing without any.
pub fn within(pairs: &[(Span, Span)], most: Span) -> Option<f64> {
    let is_within = |&&(predicted, measured): &&(Span, Span)| {
        (predicted.as_micros() - measured.as_micros()).abs() <= most.as_micros()
    };
    (!pairs.is_empty()).then(|| pairs.iter().filter(is_within).count() as f64 / pairs.len() as f64)
}

fn accuracy(&(predicted, run_time): &(Span, Span)) -> f64 {
    if predicted == run_time {
        return 1.0;
    }
    let (lesser, greater) = (predicted.min(run_time), predicted.max(run_time));
    lesser.as_micros() as f64 / greater.as_micros() as f64
}

/// Slope and adjusted coefficient of predicted (y) over run time (x).
pub(super) fn regression(pairs: &[(Span, Span)]) -> (Option<f64>, Option<f64>) {
    let count = pairs.len() as f64;
    let points =
        || pairs.iter().map(|(predicted, run_time)| (run_time.as_secs_f64(), predicted.as_secs_f64()));
    let x_mean = points().map(|(x, _)| x).sum::<f64>() / count;
    let y_mean = points().map(|(_, y)| y).sum::<f64>() / count;
    let xx: f64 = points().map(|(x, _)| (x - x_mean) * (x - x_mean)).sum();
    let yy: f64 = points().map(|(_, y)| (y - y_mean) * (y - y_mean)).sum();
    let xy: f64 = points().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let slope = (xx > 0.0).then(|| xy / xx);
    let is_spread = pairs.len() > 2 && xx > 0.0 && yy > 0.0;
    let correlation = is_spread.then(|| {
        let unexplained = (1.0 - xy * xy / (xx * yy)).max(0.0);
        let adjusted = (1.0 - unexplained * (count - 1.0) / (count - 2.0)).max(0.0).sqrt();
        if xy < 0.0 { -adjusted } else { adjusted }
    });
    (slope, correlation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::job;

    fn pairs(seconds: &[(i64, i64)]) -> Vec<(Span, Span)> {
        seconds.iter().map(|&(predicted, ran)| (Span::from_secs(predicted), Span::from_secs(ran))).collect()
    }

    #[test]
    fn figures_are_those_worked_out_by_hand() {
        // Errors 10, 0, 20, 10; run times 10, 20, 40, 50 of 120 s in all.
        let errors = Errors::of(&pairs(&[(20, 10), (20, 20), (20, 40), (60, 50)])).unwrap();
        assert_eq!((errors.jobs, errors.run_time_mean_s, errors.mae_s), (4, 30.0, 10.0));
        assert_eq!((errors.error_median_s, errors.under_share), (10.0, 0.25));
        assert!((errors.mae_share - 1.0 / 3.0).abs() < 1e-12);
        assert!((errors.accuracy - (0.5 + 1.0 + 0.5 + 50.0 / 60.0) / 4.0).abs() < 1e-12);
        // xx = 400 + 100 + 100 + 400, yy = 3·100 + 900, xy = 200 + 100 − 100 + 600.
        assert!((errors.slope.unwrap() - 0.8).abs() < 1e-12);
        // R² = 640,000 / 1,200,000; adjusted 1 − (7/15)·(3/2) = 0.3.
        assert!((errors.correlation.unwrap() - 0.3_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn who_met_an_earlier_log_has_learned_of_all_its_jobs() {
        let happened = |id: u64, submit: i64, run_time: i64, end: i64| Happened {
            job: JobSpec { id: scheduler::JobId(id), submit: Time::from_secs(submit), ..job(1, 100) },
            run_time: Span::from_secs(run_time),
            end: Time::from_secs(end),
        };
        let predictor: Predictor = "last:k=1,by=mean".parse().unwrap();
        let mut estimator = Forecast { predictor, correction: Correction::User }.estimator();
        let earlier =
            predictions_by(estimator.as_mut(), &[happened(1, -90, 30, -50), happened(2, -80, 20, -10)]);
        assert_eq!(earlier, [Span::from_secs(100), Span::from_secs(100)]);
        let now = predictions_by(estimator.as_mut(), &[happened(1, 0, 10, 10), happened(2, 20, 5, 30)]);
        assert_eq!(now, [Span::from_secs(20), Span::from_secs(10)]);
    }

    #[test]
    fn a_curve_is_worked_out_by_hand() {
        // Two did not wait; of the other four two parts: 10 and 20 s, 30 and 40 s.
        let pairs = pairs(&[(5, 0), (7, 40), (1, 10), (9, 30), (0, 0), (3, 20)]);
        let bin =
            |jobs, measured_s, low_s, median_s, high_s| Bin { jobs, measured_s, low_s, median_s, high_s };
        let expected = [bin(2, 0.0, 0.0, 0.0, 5.0), bin(2, 10.0, 1.0, 1.0, 3.0), bin(2, 30.0, 7.0, 7.0, 9.0)];
        assert_eq!(curve(&pairs, 2), expected);
        assert_eq!(curve(&pairs[1..2], 20), [bin(1, 40.0, 7.0, 7.0, 7.0)]);
        assert_eq!(curve(&[], 20), []);
    }

    #[test]
    fn coverage_is_that_of_all_with_an_interval_by_batches() {
        // Of 40 jobs in batches of two the first ten batches are covered and the others by half: a mean of 0.75, deviations of 0.25.
        let seconds: Vec<(i64, i64)> =
            (0..40).map(|job| (10, if job < 20 || job % 2 == 0 { 10 } else { 11 })).collect();
        let coverage = Coverage::of(&pairs(&seconds)).unwrap();
        assert_eq!(coverage.share, 0.75);
        let expected = 2.093 * (20.0 * 0.0625_f64 / (19.0 * 20.0)).sqrt();
        assert!((coverage.half_width.unwrap() - expected).abs() < 1e-12);
        assert_eq!(Coverage::of(&pairs(&seconds[..19])).unwrap().half_width, None);
        assert_eq!(Coverage::of(&[]), None);
        assert_eq!(within(&pairs(&[(0, 60), (61, 0), (5, 5)]), Span::from_secs(60)), Some(2.0 / 3.0));
        assert_eq!(within(&[], Span::ZERO), None);
    }

    #[test]
    fn what_cannot_be_said_is_not_said() {
        assert_eq!(Errors::of(&[]), None);
        let one = Errors::of(&pairs(&[(0, 0)])).unwrap();
        assert_eq!((one.accuracy, one.slope, one.correlation, one.mae_share), (1.0, None, None, 0.0));
        let down = Errors::of(&pairs(&[(30, 10), (20, 20), (10, 30)])).unwrap();
        assert_eq!((down.slope, down.correlation), (Some(-1.0), Some(-1.0)));
    }

    #[test]
    fn nothing_is_learned_before_it_has_ended() {
        let happened = |id: u64, submit: i64, run_time: i64, end: i64| Happened {
            job: JobSpec { id: scheduler::JobId(id), submit: Time::from_secs(submit), ..job(1, 100) },
            run_time: Span::from_secs(run_time),
            end: Time::from_secs(end),
        };
        // The second waits in the log until after the third; the last sees both of the first two in the order of their ends.
        let jobs =
            [happened(1, 0, 10, 30), happened(2, 5, 20, 60), happened(3, 30, 40, 80), happened(4, 61, 5, 70)];
        let seconds: Vec<i64> = predictions("last:k=1,by=mean".parse().unwrap(), &jobs)
            .iter()
            .map(|span| span.as_micros() / 1_000_000)
            .collect();
        assert_eq!(seconds, [100, 100, 10, 20]);
    }
}
