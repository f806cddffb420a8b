//! The family without an exchange: jobs wait in the local queue of the site where they enter the grid, or of their home
//! if they are too wide for it.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::local::LocalQueue;
use scheduler::{JobId, JobSpec, Time};

use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::Engine;
use crate::engine::Family;
use crate::message::{Silence, Transfer};
use crate::timers::Never;

/// A local queue of any of the local schedulers.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    queue: LocalQueue,
    /// Jobs that wait here, where sites may leave or be gone: then somebody asks for them one by one.
    waiting: BTreeMap<JobId, JobSpec>,
    /// Jobs that the queue still has and this site no longer.
    withdrawn: BTreeSet<JobId>,
}

impl Family for Local {
    type Message = Silence;
    type Timer = Never;

    fn of(config: &PeerConfig, _first: u64) -> Local {
        Local { queue: config.queue(), waiting: BTreeMap::new(), withdrawn: BTreeSet::new() }
    }

    fn enqueue(engine: &mut Engine<Local>, now: Time, job: JobSpec) {
        let local = &mut engine.family;
        if engine.core.membership.is_some() {
            local.waiting.insert(job.id, job);
            if local.withdrawn.remove(&job.id) {
                // It went elsewhere and came back: it is still there.
                return;
            }
        }
        local.queue.submit(now, job);
    }

    fn turn(engine: &mut Engine<Local>, now: Time) {
        let mut starts = Vec::new();
        loop {
            engine.family.queue.decide(now, &mut starts);
            engine.core.fell_back(engine.family.queue.failure());
            let mut withdrawn = false;
            for job in starts.drain(..) {
                let local = &mut engine.family;
                local.waiting.remove(&job.id);
                if local.withdrawn.remove(&job.id) {
                    local.queue.complete(now, job.id);
                    withdrawn = true;
                } else {
                    engine.core.start(now, job);
                }
            }
            if !withdrawn {
                return;
            }
        }
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.waiting.values()
    }

    fn waiting(&self) -> usize {
        self.queue.waiting() - self.withdrawn.len()
    }

    fn take(engine: &mut Engine<Local>, job: &JobSpec) -> Option<JobSpec> {
        let found = engine.family.waiting.remove(&job.id)?;
        // The queue cannot forget a job; when it starts it, nothing happens.
        engine.family.withdrawn.insert(job.id);
        Some(found)
    }

    fn belongs(core: &Core, home: Option<usize>, job: &JobSpec) -> Option<usize> {
        core.here_or(home, job)
    }

    fn may_queue(core: &Core, job: &JobSpec) -> bool {
        // What is too wide waits beside the queue, until somebody is there who can hold it.
        job.processors <= core.processors() || core.membership.is_some()
    }

    fn may_grant(_core: &Core, _rank: usize) -> bool {
        false
    }

    fn completed(engine: &mut Engine<Local>, now: Time, job: JobId, _estimated_end: Time, _processors: u32) {
        engine.family.queue.complete(now, job);
    }

    fn wake_at(&self) -> Option<Time> {
        self.queue.wake_at()
    }

    fn repeat(_engine: &mut Engine<Local>, _now: Time, _to: usize, _transfer: &Transfer) -> Option<Silence> {
        // Jobs leave by routes only.
        None
    }

    fn check(engine: &Engine<Local>) {
        assert_eq!(
            engine.family.queue.free(),
            engine.core.free,
            "the local queue counts the same processors"
        );
    }
}
