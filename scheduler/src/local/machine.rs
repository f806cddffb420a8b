//! The processors of one site: what runs, until when by its estimate, and what was promised a start.
//!
//! A job that a pass chooses is *promised* its processors. With one pass per instant it has them at once.
//! With a pass per event, a running job whose estimated end is now counts as free already, so a promise may
//! have to wait for a termination of the same instant; it is kept in the order of the promises and never uses
//! processors that are not free. A promise that the instant does not keep is withdrawn at the next pass: it
//! counted on a job that ran past its estimate.

use std::collections::BTreeMap;

use super::chunked::{Chunked, Entry};
use super::profile::Profile;
use super::turn::{Place, Waiting};
use crate::job::{JobId, JobSpec};
use crate::reservation::Reservation;
use crate::strategy::Pass;
use crate::time::Time;

/// When a running or promised job frees its processors by its estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) at: Time,
    pub(super) job: JobId,
    pub(super) processors: u32,
}

impl Entry for End {
    type Key = (Time, JobId);
    /// Processors that the jobs of a group free together.
    type Summary = u32;

    fn key(&self) -> (Time, JobId) {
        (self.at, self.job)
    }

    fn summary(&self) -> u32 {
        self.processors
    }

    fn merge(one: u32, other: u32) -> u32 {
        one + other
    }

    fn without(&self, group: u32) -> Option<u32> {
        Some(group - self.processors)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Machine {
    pass: Pass,
    processors: u32,
    /// Processors on which nothing runs.
    free: u32,
    /// Processors of promised jobs.
    promised: u32,
    running: BTreeMap<JobId, End>,
    promises: Vec<Waiting>,
    promised_at: Time,
    /// Of running and promised jobs.
    ends: Chunked<End>,
}

impl Machine {
    pub(super) fn new(pass: Pass, processors: u32) -> Self {
        Machine {
            pass,
            processors,
            free: processors,
            promised: 0,
            running: BTreeMap::new(),
            promises: Vec::new(),
            promised_at: Time::ZERO,
            ends: Chunked::new(),
        }
    }

    pub(super) fn pass(&self) -> Pass {
        self.pass
    }

    pub(super) fn processors(&self) -> u32 {
        self.processors
    }

    pub(super) fn free(&self) -> u32 {
        self.free
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn promises(&self) -> usize {
        self.promises.len()
    }

    /// None while a promise can be kept, or there is none. Otherwise something runs past its estimate, and this is the first
    /// instant at which something else that runs should end; never, if all do.
    pub(super) fn held_up_until(&self, now: Time) -> Option<Time> {
        let is_held_up =
            !self.promises.is_empty() && self.promises.iter().all(|job| job.processors > self.free);
        let later = self.running.values().map(|end| end.at).filter(|&at| at > now);
        is_held_up.then(|| later.min().unwrap_or(Time::MAX))
    }

    pub(super) fn last_promised_place(&self) -> Option<Place> {
        self.promises.iter().map(Waiting::place).max()
    }

    /// From now on decisions are made so. Promises that wait for a termination are withdrawn by the next.
    pub(super) fn set_pass(&mut self, pass: Pass) {
        self.pass = pass;
    }

    /// Ends of running jobs, by number of the job.
    pub(super) fn running_ends(&self) -> impl Iterator<Item = &End> {
        self.running.values()
    }

    /// Ends of running and promised jobs, ascending.
    pub(super) fn ends(&self) -> impl Iterator<Item = &End> {
        self.ends.iter()
    }

    /// Processors free from now on if nothing starts. What runs past its estimated end counts as free.
    pub(super) fn profile(&self, now: Time) -> Profile {
        let later = || self.ends.iter().filter(|end| end.at > now);
        let busy = later().map(|end| end.processors).sum();
        let mut profile = Profile::new(now, self.processors);
        profile.rebuild(now, busy, later().map(|end| (end.at, end.processors)));
        profile
    }

    /// Processors a pass may give away now.
    pub(super) fn free_for_planning(&self, now: Time) -> u32 {
        match self.pass {
            Pass::Batch => self.free - self.promised,
            // What was promised may have been taken by what executes as it is told of, or by a part of a job.
            Pass::PerEvent => (self.free + self.due(now)).saturating_sub(self.promised),
        }
    }

    /// The reservation of a job wider than [`Machine::free_for_planning`], as [`crate::reservation::shadow`] has it, without a look at
    /// each end. A job past its estimated end is planned as ending now.
    pub(super) fn reservation(&self, now: Time, processors: u32) -> Reservation {
        // Below zero while promises count on jobs that end now: those come first among the ends.
        let mut available = i64::from(self.free) - i64::from(self.promised);
        let needed = i64::from(processors);
        let mut reached: Option<Time> = None;
        for (sum, ends) in self.ends.chunks() {
            if reached.is_none() && available + i64::from(sum) < needed {
                available += i64::from(sum);
                continue;
            }
            for end in ends {
                if reached.is_some_and(|time| end.at > time) {
                    break;
                }
                available += i64::from(end.processors);
                if reached.is_none() && available >= needed {
                    reached = Some(end.at.max(now));
                }
            }
            if let (Some(time), Some(last)) = (reached, ends.last())
                && last.at > time
            {
                break;
            }
        }
        let shadow = reached.expect("no job is wider than the machine");
        let extra = u32::try_from(available - needed).expect("between zero and the machine's size");
        Reservation { shadow, extra }
    }

    /// Gives a job its processors from now, or from the moment of this instant at which they are free.
    pub(super) fn promise(&mut self, now: Time, job: Waiting) {
        self.ends.insert(end_of(now, &job));
        self.promised += job.processors;
        self.promises.push(job);
        self.promised_at = now;
    }

    /// Starts what was promised and can start, in the order of the promises.
    pub(super) fn start_promised(&mut self, now: Time, starts: &mut Vec<JobSpec>) {
        if self.promises.is_empty() {
            return;
        }
        // While terminations of this instant are to come, nobody overtakes: start order is decision order.
        let in_order = self.pass == Pass::PerEvent && self.due(now) > 0;
        let mut blocked = false;
        let (free, promised, running) = (&mut self.free, &mut self.promised, &mut self.running);
        self.promises.retain(|job| {
            if job.processors > *free || (blocked && in_order) {
                blocked = true;
                return true;
            }
            *free -= job.processors;
            *promised -= job.processors;
            let before = running.insert(job.id, end_of(now, job));
            assert!(before.is_none(), "job {} runs once", job.id);
            starts.push(job.job);
            false
        });
    }

    /// Takes back the promises that an earlier pass made and that were not kept.
    pub(super) fn withdraw_broken(&mut self, now: Time) -> Vec<Waiting> {
        if self.promises.is_empty() || (self.pass == Pass::PerEvent && self.promised_at == now) {
            return Vec::new();
        }
        self.promised = 0;
        for job in &self.promises {
            let end = self.ends.remove(end_of(self.promised_at, job).key());
            assert!(end.is_some(), "a promised job has an end");
        }
        std::mem::take(&mut self.promises)
    }

    /// Takes back the latest promises, as many as count on processors that neither are free nor will be at the instant of the promises.
    pub(super) fn withdraw_overtaken(&mut self) -> Vec<Waiting> {
        let mut overtaken = Vec::new();
        while self.promised > self.free + self.due(self.promised_at) {
            let last = self.promises.last().expect("processors are promised to a job").id;
            overtaken.extend(self.withdraw_promise(last));
        }
        overtaken
    }

    /// Takes back one promise that was not kept. `None` if the job was promised nothing.
    pub(super) fn withdraw_promise(&mut self, job: JobId) -> Option<Waiting> {
        let place = self.promises.iter().position(|waiting| waiting.id == job)?;
        let waiting = self.promises.remove(place);
        self.promised -= waiting.processors;
        let end = self.ends.remove(end_of(self.promised_at, &waiting).key());
        assert!(end.is_some(), "a promised job has an end");
        Some(waiting)
    }

    /// A job executes that nobody chose here. It may have what was promised to others: see [`Machine::withdraw_overtaken`].
    ///
    /// # Panics
    /// If it does not fit.
    pub(super) fn take_over(&mut self, since: Time, job: &JobSpec) {
        assert!(job.processors <= self.free, "job {} fits beside what runs", job.id);
        self.free -= job.processors;
        self.ends.insert(end_of(since, job));
        let before = self.running.insert(job.id, end_of(since, job));
        assert!(before.is_none(), "job {} runs once", job.id);
    }

    /// Whether a job runs here.
    pub(super) fn runs(&self, job: JobId) -> bool {
        self.running.contains_key(&job)
    }

    /// A running job is estimated to end then.
    ///
    /// # Panics
    /// If it does not run.
    pub(super) fn set_end(&mut self, job: JobId, at: Time) {
        let end = self.running.get_mut(&job).unwrap_or_else(|| panic!("job {job} does not run here"));
        let before = self.ends.remove(end.key());
        assert!(before.is_some(), "a running job has an end");
        end.at = at;
        self.ends.insert(*end);
    }

    /// Frees the processors of a job that ended.
    ///
    /// # Panics
    /// If it does not run.
    pub(super) fn complete(&mut self, job: JobId) -> End {
        let end =
            self.running.remove(&job).unwrap_or_else(|| panic!("job {job} ended and does not run here"));
        let removed = self.ends.remove(end.key());
        assert!(removed.is_some(), "a running job has an end");
        self.free += end.processors;
        end
    }

    /// Walks everything.
    ///
    /// # Panics
    /// If a processor is counted twice or not at all.
    pub(super) fn check_invariants(&self) {
        self.ends.check_invariants();
        let busy: u32 = self.running.values().map(|end| end.processors).sum();
        assert_eq!(busy + self.free, self.processors, "processors are busy or free");
        let promised: u32 = self.promises.iter().map(|job| job.processors).sum();
        assert_eq!(promised, self.promised, "promised processors are those of promised jobs");
        let mut ends: Vec<End> = self.running.values().copied().collect();
        ends.extend(self.promises.iter().map(|job| end_of(self.promised_at, job)));
        ends.sort_unstable_by_key(End::key);
        assert!(ends.iter().eq(self.ends.iter()), "each running or promised job has one end");
    }

    /// Processors of running jobs whose estimated end is now.
    fn due(&self, now: Time) -> u32 {
        let until_now = self.ends.iter().take_while(|end| end.at <= now);
        until_now.filter(|end| end.at == now).map(|end| end.processors).sum()
    }
}

fn end_of(start: Time, job: &JobSpec) -> End {
    End { at: start.saturating_add(job.requested), job: job.id, processors: job.processors }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grid::SiteId;
    use crate::job::Labels;
    use crate::reservation;
    use crate::time::Span;

    proptest! {
        /// Up to several chunks of ends, many alike, some past.
        #[test]
        fn the_reservation_is_that_of_all_ends_one_by_one(
            running in prop::collection::vec((1u32..4, 1i64..60), 1..300),
            idle in 0u32..4,
            now in 0i64..40,
            wider in any::<u32>(),
        ) {
            let busy: u32 = running.iter().map(|&(processors, _)| processors).sum();
            let mut machine = Machine::new(Pass::Batch, busy + idle);
            for (&(processors, end), id) in running.iter().zip(1..) {
                machine.take_over(Time::ZERO, &job(id, processors, end));
            }
            let now = Time::from_secs(now);
            let width = idle + 1 + wider % busy;
            let ends = machine.ends().map(|end| (end.at, end.processors));
            prop_assert_eq!(Some(machine.reservation(now, width)), reservation::shadow(width, idle, now, ends));
        }
    }

    fn job(id: u64, processors: u32, requested: i64) -> JobSpec {
        JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors,
            requested: Span::from_secs(requested),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    #[test]
    fn what_executes_as_it_is_told_of_takes_back_promises_that_count_on_its_processors() {
        let now = Time::from_secs(10);
        let mut machine = Machine::new(Pass::PerEvent, 8);
        machine.take_over(Time::ZERO, &job(1, 4, 10));
        for (id, processors) in [(2, 5), (3, 3)] {
            machine.promise(now, Waiting { turn: 0, job: job(id, processors, 60) });
        }
        assert!(machine.withdraw_overtaken().is_empty(), "the first ends now");
        machine.take_over(now, &job(4, 3, 60));
        let back: Vec<JobId> = machine.withdraw_overtaken().iter().map(|waiting| waiting.id).collect();
        assert_eq!(back, [JobId(3)], "the latest, and no more than needed");
        machine.check_invariants();
        assert_eq!(machine.profile(now).free_at(now), 0);
        assert_eq!(machine.free_for_planning(now), 0);
    }
}
