//! From a job's id to its place in the workload, without a hash map.

use crate::job::{JobId, TimedJob};

/// Finds jobs of a workload by id.
#[derive(Clone, Debug)]
pub struct JobIndex {
    /// If ids are dense enough: place by `id - first`, `u32::MAX` for no job.
    dense: Vec<u32>,
    first: u64,
    /// Otherwise: (id, place), ascending.
    sparse: Vec<(JobId, u32)>,
}

const NO_JOB: u32 = u32::MAX;

/// A table may be this many times longer than the workload before a sorted list is used instead.
const DENSITY: u64 = 4;

impl JobIndex {
    /// The index of a workload.
    ///
    /// # Panics
    /// If two jobs share an id: readers refuse such workloads.
    pub fn new(jobs: &[TimedJob]) -> JobIndex {
        let ids = || jobs.iter().map(|job| job.spec.id.0);
        let first = ids().min().unwrap_or(0);
        let last = ids().max().unwrap_or(0);
        let mut index = JobIndex { dense: Vec::new(), first, sparse: Vec::new() };
        let place_of = |place: usize| u32::try_from(place).expect("fewer jobs than u32::MAX");
        if last - first < DENSITY * jobs.len() as u64 + 1024 {
            index.dense = vec![NO_JOB; (last - first + 1) as usize];
            for (place, id) in ids().enumerate() {
                let slot = &mut index.dense[(id - first) as usize];
                assert_eq!(*slot, NO_JOB, "job {id} is in the workload twice");
                *slot = place_of(place);
            }
        } else {
            index.sparse =
                jobs.iter().enumerate().map(|(place, job)| (job.spec.id, place_of(place))).collect();
            index.sparse.sort_unstable();
            assert!(
                index.sparse.windows(2).all(|pair| pair[0].0 != pair[1].0),
                "a job is in the workload twice"
            );
        }
        index
    }

    /// Adds a job at the end of the workload, which has `place` jobs so far.
    ///
    /// # Panics
    /// If its id is not above all others.
    pub fn add(&mut self, id: JobId, place: usize) {
        let place = u32::try_from(place).expect("fewer jobs than u32::MAX");
        // Without jobs there is one slot, for none.
        let last_slot = || self.first + self.dense.len() as u64 - 1;
        let last = self.sparse.last().map_or_else(last_slot, |(last, _)| last.0);
        assert!(last < id.0, "job {id} is not above all others");
        if self.sparse.is_empty() && id.0 == last + 1 {
            self.dense.push(place);
            return;
        }
        let dense = std::mem::take(&mut self.dense).into_iter().enumerate();
        let first = self.first;
        let there = dense.filter(|(_, place)| *place != NO_JOB);
        self.sparse.extend(there.map(|(offset, place)| (JobId(first + offset as u64), place)));
        self.sparse.push((id, place));
    }

    /// The place of a job in the workload.
    pub fn get(&self, id: JobId) -> Option<usize> {
        if self.sparse.is_empty() {
            let offset = usize::try_from(id.0.checked_sub(self.first)?).ok()?;
            self.dense.get(offset).filter(|&&place| place != NO_JOB).map(|&place| place as usize)
        } else {
            let found = self.sparse.binary_search_by_key(&id, |&(id, _)| id).ok()?;
            Some(self.sparse[found].1 as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{JobSpec, Labels, SiteId, Span, Time};

    use super::*;

    fn jobs(ids: &[u64]) -> Vec<TimedJob> {
        let spec = |id| JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors: 1,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        ids.iter().map(|&id| TimedJob { spec: spec(id), run_time: Span::ZERO }).collect()
    }

    #[test]
    fn jobs_that_are_added_are_found_beside_those_that_were_there() {
        for (ids, added) in [
            (vec![15, 11, 12], vec![16, 17, 90]),
            (vec![3, 1_000_000_000_000, 7], vec![1_000_000_000_001]),
            (vec![], vec![5, 6]),
            (vec![1], vec![9_000_000]),
        ] {
            let mut index = JobIndex::new(&jobs(&ids));
            for (more, &id) in added.iter().enumerate() {
                index.add(JobId(id), ids.len() + more);
            }
            for (place, &id) in ids.iter().chain(&added).enumerate() {
                assert_eq!(index.get(JobId(id)), Some(place), "{ids:?} and {added:?}");
            }
            assert_eq!(index.get(JobId(2)), None);
            assert_eq!(index.get(JobId(13)), None);
        }
    }

    #[test]
    #[should_panic(expected = "not above all others")]
    fn a_job_below_another_is_not_added() {
        JobIndex::new(&jobs(&[1, 5])).add(JobId(4), 2);
    }

    #[test]
    fn dense_and_sparse_ids_are_found() {
        for ids in [vec![15, 11, 12], vec![3, 1_000_000_000_000, 7]] {
            let index = JobIndex::new(&jobs(&ids));
            for (place, &id) in ids.iter().enumerate() {
                assert_eq!(index.get(JobId(id)), Some(place));
            }
            assert_eq!(index.get(JobId(2)), None);
            assert_eq!(index.get(JobId(13)), None);
        }
    }
}
