//! Conservative backfilling that throws all reservations away at every pass and plans anew in queue order.
//!
//! A planned start can get later. Only starts at the present instant outlive the pass, so planning stops as
//! soon as no job behind can start now. No timer is needed: the earliest planned start is now or the
//! estimated end of a running job, and at that end the job ends or has ended.

use super::backlog::Least;
use super::chunked::{Chunked, Entry};
use super::machine::Machine;
use super::rule::QueueRule;
use super::turn::{Place, Waiting};
use crate::job::JobId;
use crate::time::Time;

#[derive(Clone, Debug)]
pub(super) struct Replan {
    jobs: Chunked<Waiting>,
}

impl Replan {
    pub(super) fn new() -> Self {
        Replan { jobs: Chunked::new() }
    }

    /// For each chunk, the narrowest width in it and behind it.
    fn narrowest_from_chunk(&self) -> Vec<u32> {
        let mut narrowest: Vec<u32> = Vec::new();
        let mut least: Option<Least> = None;
        for (summary, _) in self.jobs.chunks().rev() {
            let merged = least.map_or(summary, |least| Waiting::merge(least, summary));
            narrowest.push(merged.processors);
            least = Some(merged);
        }
        narrowest.reverse();
        narrowest
    }
}

impl QueueRule for Replan {
    fn waiting(&self) -> usize {
        self.jobs.len()
    }

    fn insert(&mut self, job: Waiting) {
        self.jobs.insert(job);
    }

    fn take(&mut self, job: JobId) -> Option<Waiting> {
        let waiting = self.jobs.iter().find(|waiting| waiting.id == job).copied()?;
        self.jobs.remove(waiting.place())
    }

    fn last_place(&self) -> Option<Place> {
        self.jobs.iter().last().map(Waiting::place)
    }

    fn choose(&mut self, now: Time, machine: &mut Machine) {
        if self.jobs.is_empty() {
            return;
        }
        let mut profile = machine.profile(now);
        let narrowest = self.narrowest_from_chunk();
        let mut chosen = Vec::new();
        'planning: for (place, (_, jobs)) in self.jobs.chunks().enumerate() {
            for job in jobs {
                if profile.free_at(now) < narrowest[place] {
                    break 'planning;
                }
                let start = profile.earliest(now, job.processors, job.requested);
                profile.reserve(start, start.saturating_add(job.requested), job.processors);
                if start <= now {
                    chosen.push(*job);
                }
            }
        }
        for job in chosen {
            let removed = self.jobs.remove(job.place());
            assert!(removed.is_some(), "what was chosen waited");
            machine.promise(now, job);
        }
    }

    fn check_invariants(&self, _now: Option<Time>, _machine: &Machine) {
        self.jobs.check_invariants();
    }

    fn boxed(&self) -> Box<dyn QueueRule> {
        Box::new(self.clone())
    }
}
