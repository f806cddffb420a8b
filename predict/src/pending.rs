//! What was said of jobs that have not ended.

use std::collections::BTreeMap;

use scheduler::JobId;

/// Jobs that are remembered at a time. Arbitrary; more than wait and run at any site of the known logs. A job that was predicted here and
/// ended elsewhere is never asked for.
const PENDING_MAX: usize = 100_000;

/// Something of each job between its prediction and its end.
#[derive(Clone, Debug)]
pub(super) struct Pending<T> {
    by_job: BTreeMap<JobId, T>,
}

impl<T> Pending<T> {
    pub(super) fn new() -> Pending<T> {
        Pending { by_job: BTreeMap::new() }
    }

    /// Remembers it of a job, and forgets it of that of the lowest number, which is returned, if there are too many.
    pub(super) fn insert(&mut self, job: JobId, said: T) -> Option<(JobId, T)> {
        self.by_job.insert(job, said);
        if self.by_job.len() > PENDING_MAX { self.by_job.pop_first() } else { None }
    }

    pub(super) fn take(&mut self, job: JobId) -> Option<T> {
        self.by_job.remove(&job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_of_too_many() {
        let mut pending = Pending::new();
        let most = PENDING_MAX as u64;
        assert!((0..most).all(|job| pending.insert(JobId(job), job).is_none()));
        assert_eq!(pending.insert(JobId(7), 70), None, "it is there already");
        assert_eq!(pending.insert(JobId(most), most), Some((JobId(0), 0)));
        assert_eq!(
            (pending.take(JobId(7)), pending.take(JobId(7)), pending.take(JobId(0))),
            (Some(70), None, None)
        );
    }
}
