//! The mean wait of all jobs of the same category, as [`crate::Pattern`] has them (Lérida's thesis, 3.2.1 and 8.3.2). A wait depends more on
//! who else is there than on whose job it is, so that this is the end of the scale that others must beat. Before there is a job of the
//! user, the mean of all.

use scheduler::{JobSpec, Span, Time};

use super::{Arrival, WaitRule};
use crate::categories::{Experience as Categories, Pattern};
use crate::{Rule, whole_seconds};

#[derive(Debug)]
pub(super) struct Experience {
    known: Categories,
    /// Sum of all waits in microseconds, and how many.
    all: (i128, i128),
}

impl Experience {
    pub(super) fn new(pattern: Pattern) -> Experience {
        Experience { known: Categories::new(pattern), all: (0, 0) }
    }
}

impl WaitRule for Experience {
    fn predict(&mut self, arrival: &Arrival<'_>) -> Option<Span> {
        self.known.predict(arrival.now, arrival.job).or_else(|| {
            let mean = self.all.0.checked_div(self.all.1)?;
            i64::try_from(mean).ok().map(|micros| whole_seconds(Span::from_micros(micros)))
        })
    }

    fn started(&mut self, now: Time, job: &JobSpec, wait: Span) {
        self.known.learn(now, job, wait);
        self.all.0 += i128::from(wait.as_micros());
        self.all.1 += 1;
    }
}

#[cfg(test)]
mod tests {
    use scheduler::local::LocalQueue;
    use scheduler::{LocalScheduler, Pass};

    use super::*;
    use crate::tests::job;
    use crate::waits::Ahead;

    #[test]
    fn the_mean_wait_of_the_user_counts_and_that_of_all_before_there_is_one() {
        let queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, 4);
        let mut experience = Experience::new(Pattern::Smith);
        let predicted = |experience: &mut Experience, user| {
            let arrival =
                Arrival { now: Time::ZERO, job: &job(user, 10), queue: &queue, ahead: Ahead::default() };
            experience.predict(&arrival).map(|span| span.as_micros() / 1_000_000)
        };
        assert_eq!(predicted(&mut experience, 1), None);
        for (user, wait) in [(1, 10), (1, 30), (2, 80)] {
            experience.started(Time::ZERO, &job(user, 10), Span::from_secs(wait));
        }
        assert_eq!([1, 2, 3].map(|user| predicted(&mut experience, user)), [Some(20), Some(80), Some(40)]);
    }
}
