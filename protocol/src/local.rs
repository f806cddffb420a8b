//! The family without an exchange: jobs wait in the local queue of the site where they enter the grid, or of their home
//! if they are too wide for it.

use scheduler::{JobId, JobSpec, Time};

use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::{Engine, Family, Giving, InParts, Lawful, Observed, Recovery};
use crate::experience::Experience;
use crate::journal::Durable;
use crate::message::{Silence, Transfer};
use crate::queue::Queue;
use crate::rank::Rank;
use crate::timers::Never;

/// A local queue of any of the local schedulers.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    queue: Queue<()>,
}

impl Family for Local {
    type Message = Silence;
    type Timer = Never;

    fn of(config: &PeerConfig, _first: u64) -> Local {
        Local { queue: Queue::new(config) }
    }

    fn enqueue(engine: &mut Engine<Local>, now: Time, job: JobSpec) {
        engine.family.queue.join(now, job, 0, ());
    }

    fn turn(engine: &mut Engine<Local>, now: Time) {
        engine.family.queue.start(&mut engine.core, now);
    }

    fn begun(engine: &mut Engine<Local>, now: Time, job: &JobSpec) {
        engine.family.queue.begun(&mut engine.core, now, job.id);
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.queue.jobs()
    }

    fn waiting(&self) -> usize {
        self.queue.waiting().len()
    }

    fn take(engine: &mut Engine<Local>, job: &JobSpec) -> Option<JobSpec> {
        engine.family.queue.withdraw(job.id).map(|entry| entry.job)
    }

    fn belongs(core: &Core, home: Option<Rank>, job: &JobSpec) -> Option<Rank> {
        core.here_or(home, job)
    }

    fn completed(engine: &mut Engine<Local>, now: Time, job: JobId, _estimated_end: Time, _processors: u32) {
        engine.family.queue.ended(&mut engine.core, now, job);
    }

    fn wake_at(&self) -> Option<Time> {
        self.queue.wake_at()
    }
}

impl Lawful for Local {
    fn may_queue(core: &Core, job: &JobSpec) -> bool {
        core.may_hold(job)
    }

    fn may_grant(_core: &Core, _rank: Rank) -> bool {
        false
    }
}

impl Giving for Local {
    fn repeat(_engine: &mut Engine<Local>, _now: Time, _to: Rank, _transfer: &Transfer) -> Option<Silence> {
        // Jobs leave by routes only.
        None
    }
}

impl Recovery for Local {
    fn remember(engine: &mut Engine<Local>, durable: &Durable) {
        engine.family.queue.remember(&engine.core, durable);
    }

    fn can_remember(engine: &Engine<Local>, durable: &Durable) -> Result<(), String> {
        Experience::can_be(&engine.core, &durable.memory)
    }

    fn agrees_with(engine: &Engine<Local>, durable: &Durable) -> Result<(), String> {
        engine.family.queue.agrees_with(&engine.core, durable)
    }
}

impl InParts for Local {}

impl Observed for Local {
    fn check(engine: &Engine<Local>) {
        engine.family.queue.check(&engine.core);
    }
}
