//! Parts of jobs over several sites, as processes execute them: those of one job wait for each other, and end together or not at all.

use std::collections::BTreeMap;

use scheduler::{JobId, JobSpec, SiteId};

/// The number of an attempt to start a job in parts, and whose it is.
pub(crate) type Try = (u64, SiteId);

/// A job, and the attempt to start it.
pub(crate) type RunId = (JobId, Try);

/// One execution of a job in parts.
#[derive(Clone, Debug)]
struct Run {
    /// Ranks of sites with what executes there, in the order in which they started.
    parts: Vec<(usize, JobSpec)>,
    /// Processors of parts that have not started.
    missing: u32,
    /// A part was stopped, or its site crashed: the others wait for it in vain.
    is_broken: bool,
}

/// All that executes in parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Together {
    runs: BTreeMap<RunId, Run>,
}

impl Together {
    /// A part of a job of so many processors starts. If it was the last, all parts begin to execute.
    pub(crate) fn start(
        &mut self,
        run: RunId,
        rank: usize,
        part: JobSpec,
        whole: u32,
    ) -> Vec<(usize, JobSpec)> {
        let run = self.runs.entry(run).or_insert(Run { parts: Vec::new(), missing: whole, is_broken: false });
        run.missing = run.missing.saturating_sub(part.processors);
        run.parts.push((rank, part));
        if run.missing == 0 && !run.is_broken { run.parts.clone() } else { Vec::new() }
    }

    /// A part was to end now. None if it does not, as its run is broken; else whether it was the last.
    pub(crate) fn ended(&mut self, id: RunId, rank: usize) -> Option<bool> {
        let run = self.runs.get_mut(&id).filter(|run| !run.is_broken)?;
        let place = run.parts.iter().position(|part| part.0 == rank)?;
        run.parts.remove(place);
        let was_last = run.parts.is_empty();
        if was_last {
            self.runs.remove(&id);
        }
        Some(was_last)
    }

    /// What a site executes of a job in parts is stopped: its processors.
    pub(crate) fn stopped(&mut self, rank: usize, job: JobId) -> Option<u32> {
        self.lost(rank, |run| run.0 == job)
    }

    /// A site crashed, with all that it executed.
    pub(crate) fn crashed(&mut self, rank: usize) {
        self.lost(rank, |_| true);
    }

    fn lost(&mut self, rank: usize, is_one: impl Fn(&RunId) -> bool) -> Option<u32> {
        let mut processors = None;
        self.runs.retain(|id, run| {
            if let Some(place) = run.parts.iter().position(|part| part.0 == rank && is_one(id)) {
                processors = Some(run.parts.remove(place).1.processors);
                run.is_broken = true;
            }
            !run.parts.is_empty()
        });
        processors
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{Labels, Span, Time};

    use super::*;

    const JOB: JobSpec = JobSpec {
        id: JobId(1),
        submit: Time::ZERO,
        processors: 2,
        requested: Span::from_secs(9),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    const FIRST: RunId = (JobId(1), (7, SiteId(9)));

    #[test]
    fn parts_begin_once_all_have_started_and_end_if_none_is_lost() {
        let mut together = Together::default();
        assert_eq!(together.start(FIRST, 0, JOB, 4), []);
        assert_eq!(together.start(FIRST, 2, JOB, 4), [(0, JOB), (2, JOB)]);
        assert_eq!((together.ended(FIRST, 0), together.ended(FIRST, 2)), (Some(false), Some(true)));
        assert_eq!(together.ended(FIRST, 2), None, "it has ended");
    }

    #[test]
    fn who_waits_for_a_part_that_is_lost_does_not_end() {
        let mut together = Together::default();
        for (rank, started) in [(0, 0), (2, 2)] {
            assert_eq!(together.start(FIRST, rank, JOB, 4).len(), started);
        }
        together.crashed(2);
        assert_eq!(together.ended(FIRST, 0), None);
        assert_eq!((together.stopped(0, JOB.id), together.stopped(0, JOB.id)), (Some(2), None));
        // Another attempt has nothing to do with it.
        together.start(FIRST, 0, JOB, 4);
        together.crashed(0);
        let next = (JOB.id, (8, SiteId(9)));
        assert_eq!((together.start(next, 0, JOB, 4).len(), together.start(next, 1, JOB, 4).len()), (0, 2));
    }
}
