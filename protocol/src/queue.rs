//! The queue of a site under a local scheduler: which jobs wait and run, and what its family notes of each.

use std::collections::BTreeMap;

use brokers::Lesson;
use scheduler::local::{LocalQueue, Portion};
use scheduler::{JobId, JobSpec, Span, Time};

use crate::config::PeerConfig;
use crate::core::Core;
use crate::experience::{Experience, Rows};
use crate::journal::Durable;

/// Jobs that wait or run at a site, with a note on each.
#[derive(Clone, Debug)]
pub(crate) struct Queue<N> {
    local: LocalQueue,
    waiting: BTreeMap<JobId, Entry<N>>,
    running: BTreeMap<JobId, Entry<N>>,
    /// What was learned of run times and is written down.
    experience: Experience,
}

/// A job that waits or runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<N> {
    pub(crate) job: JobSpec,
    pub(crate) note: N,
    /// Since when it runs.
    pub(crate) started: Option<Time>,
}

impl<N: Copy> Queue<N> {
    pub(crate) fn new(config: &PeerConfig) -> Queue<N> {
        Queue {
            local: config.queue(),
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            experience: Experience::default(),
        }
    }

    /// A job joins; those of lower turns come before it, those of the same as everywhere.
    pub(crate) fn join(&mut self, now: Time, job: JobSpec, turn: u64, note: N) {
        self.local.submit_in_turn(now, job, turn);
        self.waiting.insert(job.id, Entry { job, note, started: None });
    }

    /// Starts what the local scheduler starts, in that order; nothing where somebody else decides.
    pub(crate) fn start(&mut self, core: &mut Core, now: Time) -> Vec<Entry<N>> {
        if core.starts_outside {
            return Vec::new();
        }
        let mut starts = Vec::new();
        self.local.decide(now, &mut starts);
        core.fell_back(self.local.failure());
        core.predicted(self.local.predictions());
        let mut started = Vec::with_capacity(starts.len());
        for job in starts {
            let waited = self.waiting.remove(&job.id).expect("what starts has waited");
            let entry = Entry { started: Some(now), ..waited };
            self.running.insert(job.id, entry);
            started.push(entry);
            core.start(now, job);
        }
        started
    }

    /// A job that waits was started by somebody else.
    pub(crate) fn begun(&mut self, core: &mut Core, now: Time, job: JobId) -> Option<Entry<N>> {
        let described = self.local.withdraw(job)?;
        let waited = self.waiting.remove(&job).expect("what starts has waited");
        self.local.take_over(now, described, now);
        core.predicted(self.local.predictions());
        let entry = Entry { started: Some(now), ..waited };
        self.running.insert(job, entry);
        core.start(now, described);
        Some(entry)
    }

    /// A job that ran has ended. Returned with its run time, if that was learned from.
    pub(crate) fn ended(&mut self, core: &mut Core, now: Time, job: JobId) -> (Entry<N>, Option<Span>) {
        let run_time = self.local.complete(now, job).map(|run_time| run_time.max(Span::ZERO));
        let ended = self.running.remove(&job).expect("what ends has run");
        if let Some(run_time) = run_time {
            self.experience.note(core, &Lesson { job: ended.job, at: now, run_time });
        }
        (ended, run_time)
    }

    /// Whether what runs leaves room for a part of a job that is nobody's here.
    pub(crate) fn takes(&mut self, now: Time, part: &JobSpec) -> bool {
        self.local.takes(now, part)
    }

    /// The nodes of what runs here, or has processors, ascending; none where jobs share none.
    pub(crate) fn nodes(&self, job: JobId) -> Option<&[u32]> {
        self.local.nodes(job)
    }

    /// A part of a job that is nobody's here has processors from now on. What it is a portion of is told where run times are predicted.
    pub(crate) fn keep(&mut self, now: Time, part: JobSpec, portion: Option<Portion>) {
        match portion {
            Some(portion) => self.local.hold(now, part, portion),
            None => self.local.take_over(now, part, now),
        }
    }

    /// A part starts now that has had processors since then.
    pub(crate) fn part_begins(&mut self, core: &mut Core, now: Time, part: &JobSpec, since: Time) {
        self.local.begins(now, part, since);
        core.predicted(self.local.predictions());
    }

    /// A part has run to its end. Returned is its run time, if it was learned from, as that of a job of so many processors.
    pub(crate) fn part_ended(
        &mut self,
        core: &mut Core,
        now: Time,
        part: JobSpec,
        whole: u32,
    ) -> Option<Span> {
        let run_time = self.local.complete(now, part.id)?.max(Span::ZERO);
        self.experience.note(core, &Lesson { job: JobSpec { processors: whole, ..part }, at: now, run_time });
        Some(run_time)
    }

    /// A part does not start, or not go on.
    pub(crate) fn release(&mut self, now: Time, job: JobId) {
        self.local.stop(now, job);
    }

    /// Learns again what an earlier incarnation had learned of run times, of a family that remembers nothing else.
    pub(crate) fn remember(&mut self, core: &Core, durable: &Durable) {
        self.recall(core, &durable.memory);
    }

    /// Learns that again from rows that are of nothing else.
    pub(crate) fn recall<'a>(&mut self, core: &Core, rows: impl Rows<'a>) {
        for lesson in self.experience.recall(core, rows) {
            self.local.recall(lesson.at, &lesson.job, lesson.run_time);
        }
    }

    /// Whether what was learned is what is written down.
    pub(crate) fn agrees_with(&self, core: &Core, durable: &Durable) -> Result<(), String> {
        self.agrees_on(core, &durable.memory)
    }

    /// Whether it is what these rows say.
    pub(crate) fn agrees_on<'a>(&self, core: &Core, rows: impl Rows<'a>) -> Result<(), String> {
        self.experience.agrees_with(&core.config.grid, rows)
    }

    /// Takes a job out. None if it does not wait.
    pub(crate) fn withdraw(&mut self, job: JobId) -> Option<Entry<N>> {
        self.local.withdraw(job)?;
        self.waiting.remove(&job)
    }

    pub(crate) fn waiting(&self) -> &BTreeMap<JobId, Entry<N>> {
        &self.waiting
    }

    pub(crate) fn running(&self) -> &BTreeMap<JobId, Entry<N>> {
        &self.running
    }

    pub(crate) fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.waiting.values().map(|entry| &entry.job)
    }

    /// When the local scheduler wants to be asked by itself; nobody asks it where somebody else decides.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.local.wake_at()
    }

    /// Panics if the local scheduler counts otherwise than the site.
    pub(crate) fn check(&self, core: &Core) {
        assert_eq!(self.local.free(), core.free + core.foreign, "the local queue counts the same processors");
        assert_eq!(self.local.waiting(), self.waiting.len(), "the local queue has the jobs that wait");
        assert_eq!(self.running.len(), core.running.len(), "the local queue has the jobs that run");
    }
}
