//! Whether the queue of a cluster takes one more job (Lérida, *M-CISNE*, §4.4 and §4.5).

use std::collections::VecDeque;

use scheduler::strategy::QueueLimit;
use scheduler::{Span, Time};

/// Arrivals, and executions, over which rates are taken. The thesis names no window; this is ours.
pub const RATE_WINDOW: usize = 20;

/// What came to a cluster lately.
#[derive(Clone, Debug, Default)]
pub struct Arrivals(VecDeque<Time>);

/// Keeps the last [`RATE_WINDOW`].
pub(crate) fn keep<T>(window: &mut VecDeque<T>, what: T) {
    if window.len() == RATE_WINDOW {
        window.pop_front();
    }
    window.push_back(what);
}

impl Arrivals {
    /// A job was sent to the cluster.
    pub fn arrived(&mut self, now: Time) {
        keep(&mut self.0, now);
    }

    /// λ, in jobs per second: those of the window over the time since the first of them. None before two came, or if all came now.
    fn rate(&self, now: Time) -> Option<f64> {
        let first = *self.0.front().filter(|_| self.0.len() > 1)?;
        let seconds = now.since(first).as_micros() as f64 / 1e6;
        (seconds > 0.0).then(|| self.0.len() as f64 / seconds)
    }
}

/// 1/μ in seconds, the mean of the last execution times. None before a job has ended.
fn mean(executions: &VecDeque<Span>) -> Option<f64> {
    let sum: f64 = executions.iter().map(|span| span.as_micros() as f64 / 1e6).sum();
    (!executions.is_empty()).then(|| sum / executions.len() as f64)
}

/// Whether a cluster takes one more job, of which `waiting` are in its queue and the last ones executed so long. `wait` is how long the job would wait there, as
/// predicted.
///
/// By rates, where ρ = λ/μ < 1 (4.6, 4.7); by saturation, where ρ = λ · T_w / n < 1 (4.9). Where nothing waits, or nothing is known
/// of rates, it does: the published formulas say nothing of it, and a job that waits for an idle cluster would wait forever.
pub fn takes(
    limit: QueueLimit,
    now: Time,
    waiting: u64,
    arrivals: &Arrivals,
    executions: &VecDeque<Span>,
    wait: impl FnOnce() -> Span,
) -> bool {
    let occupation = |seconds: Option<f64>| Some(arrivals.rate(now)? * seconds?);
    match limit {
        QueueLimit::Jobs(most) => waiting < u64::from(most),
        QueueLimit::None => true,
        _ if waiting == 0 => true,
        QueueLimit::Rates => occupation(mean(executions)).is_none_or(|rho| rho < 1.0),
        QueueLimit::Saturation => {
            let per_job = wait().as_micros() as f64 / 1e6 / waiting as f64;
            occupation(Some(per_job)).is_none_or(|rho| rho < 1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rates = (Arrivals, VecDeque<Span>);

    fn rates(came: &[i64], executed: &[i64]) -> Rates {
        let mut rates = Rates::default();
        came.iter().for_each(|&at| rates.0.arrived(Time::from_secs(at)));
        executed.iter().for_each(|&span| keep(&mut rates.1, Span::from_secs(span)));
        rates
    }

    fn takes_at(limit: QueueLimit, now: i64, waiting: u64, rates: &Rates, wait: i64) -> bool {
        takes(limit, Time::from_secs(now), waiting, &rates.0, &rates.1, || Span::from_secs(wait))
    }

    #[test]
    fn a_number_is_the_most_that_wait() {
        let nothing = Rates::default();
        assert!(takes_at(QueueLimit::Jobs(3), 0, 2, &nothing, 0));
        assert!(!takes_at(QueueLimit::Jobs(3), 0, 3, &nothing, 0));
        assert!(takes_at(QueueLimit::None, 0, 1_000_000, &nothing, 0));
    }

    /// Four jobs in 40 s, so λ = 0.1: saturated from 10 s of execution on.
    #[test]
    fn by_rates_a_cluster_is_saturated_when_jobs_come_as_fast_as_it_executes_them() {
        let at = |execution| takes_at(QueueLimit::Rates, 40, 1, &rates(&[0, 10, 20, 30], &[execution]), 0);
        assert_eq!([at(9), at(10), at(11)], [true, false, false]);
        let slow = rates(&[0, 10, 20, 30], &[1000]);
        assert!(takes_at(QueueLimit::Rates, 40, 0, &slow, 0), "nothing waits");
        assert!(takes_at(QueueLimit::Rates, 40, 1, &rates(&[0, 10], &[]), 0), "nothing has ended");
        assert!(takes_at(QueueLimit::Rates, 40, 1, &rates(&[0], &[1000]), 0), "one has come");
        // Nobody comes any more: it drains, and takes jobs again.
        assert!(takes_at(QueueLimit::Rates, 4001, 1, &slow, 0));
    }

    /// λ = 0.1 and two jobs wait: one that would wait for 20 s is too many.
    #[test]
    fn by_saturation_it_is_when_the_predicted_wait_of_each_is_longer_than_the_time_between_two() {
        let came = rates(&[0, 10, 20, 30], &[]);
        let at = |wait| takes_at(QueueLimit::Saturation, 40, 2, &came, wait);
        assert_eq!([at(19), at(20), at(21)], [true, false, false]);
        assert!(takes_at(QueueLimit::Saturation, 40, 0, &came, 1000), "nothing waits");
    }

    #[test]
    fn rates_forget_what_was_before_the_window() {
        let mut rates = rates(&[], &[]);
        (0..100).for_each(|second| rates.0.arrived(Time::from_secs(second)));
        (0..100).for_each(|second| keep(&mut rates.1, Span::from_secs(second)));
        assert_eq!(rates.0.rate(Time::from_secs(100)), Some(1.0));
        assert_eq!(mean(&rates.1), Some(89.5));
    }
}
