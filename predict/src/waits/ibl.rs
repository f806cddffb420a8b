//! Instance-based learning of waits: the mean wait of the k jobs that met the most similar queue, by the distance HEOM (Lérida's thesis,
//! 3.2.2; Wilson and Martinez, JAIR 1997), as `crate::ibl` has it for run times.
//!
//! The attributes are those of the thesis: user, queue and program; processors, jobs ahead and work ahead; beside them the estimate, as
//! backfilling looks at it. The thesis takes all instances at distance 0; here the k nearest of the last ones of everybody, as no two
//! jobs meet the same queue.

use std::collections::VecDeque;
use std::fmt::{self, Display};

use scheduler::{JobSpec, Span, Time};

use super::{Arrival, WaitRule};
use crate::ibl::{Instance, Range, nearest};
use crate::last::{keep, mean};
use crate::pending::Pending;
use crate::spelled::{K_MAX, Options};

/// How many instances count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IblWaits {
    /// Nearest instances that count at most.
    pub k: u32,
    /// Instances that are remembered.
    pub window: u32,
}

impl IblWaits {
    pub(super) fn read(options: &mut Options<'_>) -> Result<IblWaits, String> {
        Ok(IblWaits { k: options.number("k", 3, K_MAX)?, window: options.number("window", 500, K_MAX)? })
    }
}

impl Display for IblWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k={},window={}", self.k, self.window)
    }
}

/// By user, queue and program; processors, estimate in seconds, jobs ahead, and their work in processor-seconds.
type Met = Instance<3, 4>;

fn met(arrival: &Arrival<'_>) -> Met {
    let JobSpec { processors, requested, labels, .. } = *arrival.job;
    Instance {
        nominal: [labels.user, labels.queue, labels.executable],
        linear: [
            f64::from(processors),
            requested.as_secs_f64(),
            arrival.ahead.jobs as f64,
            arrival.ahead.work as f64 / 1e6,
        ],
    }
}

#[derive(Debug)]
pub(super) struct Experience {
    ibl: IblWaits,
    said: Pending<Met>,
    /// The last at the end.
    known: VecDeque<(Met, Span)>,
    ranges: [Range; 4],
}

impl Experience {
    pub(super) fn new(ibl: IblWaits) -> Experience {
        Experience { ibl, said: Pending::new(), known: VecDeque::new(), ranges: [Range::NOTHING; 4] }
    }
}

impl WaitRule for Experience {
    fn predict(&mut self, arrival: &Arrival<'_>) -> Option<Span> {
        let new = met(arrival);
        self.said.insert(arrival.job.id, new);
        mean(nearest(&new, self.known.iter().rev(), &self.ranges, self.ibl.k))
    }

    fn started(&mut self, _now: Time, job: &JobSpec, wait: Span) {
        let Some(met) = self.said.take(job.id) else { return };
        for (range, value) in self.ranges.iter_mut().zip(met.linear) {
            range.add(value);
        }
        keep(&mut self.known, (met, wait), self.ibl.window);
    }
}

#[cfg(test)]
mod tests {
    use scheduler::local::LocalQueue;
    use scheduler::{JobId, Labels, LocalScheduler, Pass};

    use super::*;
    use crate::tests::job;
    use crate::waits::Ahead;

    fn of(id: u64, processors: u32) -> JobSpec {
        let labels = Labels { user: 1, queue: 1, executable: 1, ..Labels::UNKNOWN };
        JobSpec { id: JobId(id), processors, labels, ..job(1, 100) }
    }

    fn ahead(jobs: u64, seconds: i128) -> Ahead {
        Ahead { jobs, work: seconds * 1_000_000 }
    }

    /// Ranges of 6 processors, 10 jobs and 20,000 processor-seconds: √((4/6)² + 0.2² + 0.15²) = 0.712.
    #[test]
    fn a_distance_is_worked_out_by_hand() {
        let queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, 8);
        let instance = |processors, ahead| {
            met(&Arrival { now: Time::ZERO, job: &of(1, processors), queue: &queue, ahead })
        };
        let mut ranges = [Range::NOTHING; 4];
        for met in [instance(2, ahead(0, 0)), instance(8, ahead(10, 20_000))] {
            ranges.iter_mut().zip(met.linear).for_each(|(range, value)| range.add(value));
        }
        let (one, other) = (instance(4, ahead(3, 5_000)), instance(8, ahead(5, 8_000)));
        assert!((one.distance_squared(&other, &ranges).sqrt() - 0.712_000).abs() < 1e-6);
    }

    #[test]
    fn who_met_such_a_queue_tells_how_long_it_takes() {
        let queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, 8);
        let mut experience = Experience::new(IblWaits { k: 2, window: 4 });
        let mut wait = |id, jobs: u64, waited: i64| {
            let arrival = Arrival { now: Time::ZERO, job: &of(id, 4), queue: &queue, ahead: ahead(jobs, 0) };
            let said = experience.predict(&arrival).map(|span| span.as_micros() / 1_000_000);
            experience.started(Time::ZERO, &of(id, 4), Span::from_secs(waited));
            said
        };
        assert_eq!(wait(1, 0, 10), None);
        assert_eq!(wait(2, 10, 100), Some(10));
        assert_eq!(wait(3, 11, 200), Some(55), "the two that there are");
        assert_eq!(wait(4, 10, 300), Some(150), "100 and 200, not 10");
        assert_eq!(
            wait(5, 0, 20),
            Some(155),
            "10 is the nearest, then 300, which came last of those with ten ahead"
        );
        assert_eq!(wait(6, 0, 20), Some(160), "10 is forgotten: 20 and 300");
    }
}
