//! How good are predictions? A log replayed as it happened, and figures of error.
//!
//! A job is predicted when it was submitted and learned from when it ended in the log, so that nothing is known before it was. What is
//! predicted is what [`Forecast::estimator`](super::Forecast::estimator) says, never more than the user's estimate.

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
    assert!(jobs.is_sorted_by_key(|happened| happened.job.submit), "jobs are in order of submission");
    let mut ends: Vec<usize> = (0..jobs.len()).collect();
    ends.sort_by_key(|&place| jobs[place].end);
    let mut ends = ends.into_iter().peekable();
    // Nothing is exceeded here: who corrects does not matter.
    let mut estimator = Forecast { predictor, correction: Correction::User }.estimator();
    let mut predicted = Vec::with_capacity(jobs.len());
    for happened in jobs {
        let now = happened.job.submit;
        // A job that ends before it is submitted is a slip of the log; nobody learns from what nobody predicted.
        while let Some(place) = ends.next_if(|&place| jobs[place].end <= now && place < predicted.len()) {
            estimator.learn(
                jobs[place].end.max(jobs[place].job.submit),
                &jobs[place].job,
                jobs[place].run_time,
            );
        }
        predicted.push(estimator.predict(now, &happened.job));
    }
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
