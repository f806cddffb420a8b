//! The family of brokers before sites that they neither see into nor control (Costa 2007).
//!
//! A broker gives jobs to sites, up to a cap each, and stays responsible for them: it is their guardian until they end. Of
//! a site it learns what its own jobs tell: when each entered the queue, started and ended. Whoever waits too long there is
//! called back. A job moves by transfers of the ledger in both directions, so it is at one place at any time, and a rule
//! that has it at several is refused where strategies are read.
//!
//! | at the site | Recall | then |
//! |---|---|---|
//! | waits | | the job goes back by a route, which is always accepted |
//! | executes | | refused, with since when |
//! | not here | | refused: it is on its way back, or its end is being told |
//!
//! Each site has local users as well, whose jobs no broker hears of, and a local scheduler of its own choice.

mod desk;
pub(crate) mod memory;
pub(crate) mod message;
mod site;

use scheduler::local::LocalQueue;
use scheduler::{JobId, JobSpec, SiteId, Strategy, Time};

use self::desk::Desk;
use self::message::{Executed, Held, OpaqueMessage};
use self::site::Queue;
use crate::bounds::{are_counts, is_time};
use crate::canary::Canary;
use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::{Engine, Family};
use crate::journal::Durable;
use crate::message::Transfer;
use crate::timers::Alarm;

/// A broker, or a site before which brokers stand.
#[derive(Clone, Debug)]
pub(crate) enum Opaque {
    Desk(Box<Desk>),
    Site(Box<Queue>),
}

/// What they wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OpaqueTimer {
    /// The broker of this rank has not said that it knows which of its jobs ended.
    Known(usize),
    /// The broker of this rank has not asked a site which has other jobs than it has said.
    Begun(usize),
    /// The site of this rank has not said which jobs it has.
    Anew(usize),
    /// The site of this rank has not answered whether a job comes back.
    Recall(usize),
    /// A job has waited for its limit.
    Limit,
}

impl Alarm for OpaqueTimer {
    fn repeats(&self) -> bool {
        !matches!(self, OpaqueTimer::Limit)
    }
}

impl Family for Opaque {
    type Message = OpaqueMessage;
    type Timer = OpaqueTimer;

    fn of(config: &PeerConfig, first: u64) -> Opaque {
        let Strategy::Opaque(options) = config.strategy else { panic!("a broker before opaque sites") };
        assert!(config.grid.brokers() > 0, "jobs are given to sites by a broker: the grid has none");
        match config.grid.site(config.site).processors {
            0 => Opaque::Desk(Box::new(Desk::new(config, &options, first))),
            _ => Opaque::Site(Box::new(Queue::new(config))),
        }
    }

    fn enqueue(engine: &mut Engine<Opaque>, now: Time, job: JobSpec) {
        match engine.family {
            Opaque::Desk(_) => engine.take_in(now, job),
            Opaque::Site(_) => engine.queue_up(now, job),
        }
    }

    fn turn(engine: &mut Engine<Opaque>, now: Time) {
        match engine.family {
            Opaque::Desk(_) => engine.dispatch(now),
            Opaque::Site(_) => engine.start_own(now),
        }
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        let (desk, site) = match self {
            Opaque::Desk(desk) => (Some(desk.jobs()), None),
            Opaque::Site(site) => (None, Some(site.jobs())),
        };
        desk.into_iter().flatten().chain(site.into_iter().flatten())
    }

    fn take(engine: &mut Engine<Opaque>, job: &JobSpec) -> Option<JobSpec> {
        match &mut engine.family {
            Opaque::Desk(desk) => {
                desk.grows_no_more(&mut engine.core, job.id);
                desk.take_out(job.id)
            }
            Opaque::Site(site) => site.take_out(job.id),
        }
    }

    fn heard(engine: &mut Engine<Opaque>, now: Time, rank: usize, message: OpaqueMessage) {
        match message {
            OpaqueMessage::Give { transfers, floor } => {
                engine.core.on_floor(engine.core.site_at(rank), floor);
                engine.on_route(now, rank, &transfers);
            }
            OpaqueMessage::Ended { jobs } => engine.on_ended(now, rank, &jobs),
            OpaqueMessage::Known { jobs } => engine.on_known(now, rank, &jobs),
            OpaqueMessage::Recall { job } => engine.on_called(now, rank, job),
            OpaqueMessage::Refused { job, started } => engine.on_refused(rank, job, started),
            OpaqueMessage::Anew { count } => engine.on_anew(rank, count),
            OpaqueMessage::Have { count, all, jobs } => engine.on_have(now, rank, count, all, &jobs),
        }
    }

    fn is_lawful(core: &Core, rank: usize, message: &OpaqueMessage) -> bool {
        let sizes = core.config.grid.sizes();
        let (from_broker, from_site) =
            (sizes[rank] == 0 && core.processors() > 0, sizes[rank] > 0 && core.processors() == 0);
        let is_executed = |job: &Executed| {
            is_time(job.queued) && is_time(job.ended) && job.queued <= job.started && job.started <= job.ended
        };
        let is_held = |held: &Held| {
            let job = &held.job;
            core.is_job(job.processors, job.submit, job.requested)
                && job.processors <= sizes[rank]
                && is_time(held.queued)
                && held.started.is_none_or(is_time)
        };
        match message {
            OpaqueMessage::Give { transfers, floor } => {
                let fits = |transfer: &Transfer| transfer.job.processors <= core.processors();
                from_broker
                    && are_counts(&[*floor])
                    && core.may_move(rank, transfers)
                    && transfers.iter().all(fits)
            }
            OpaqueMessage::Ended { jobs } => from_site && jobs.iter().all(is_executed),
            OpaqueMessage::Refused { started, .. } => from_site && started.is_none_or(is_time),
            OpaqueMessage::Have { count, jobs, .. } => {
                from_site && are_counts(&[*count]) && jobs.iter().all(is_held)
            }
            OpaqueMessage::Known { .. } | OpaqueMessage::Recall { .. } => from_broker,
            OpaqueMessage::Anew { count } => from_broker && are_counts(&[*count]),
        }
    }

    fn fired(engine: &mut Engine<Opaque>, now: Time, timer: OpaqueTimer) {
        match timer {
            OpaqueTimer::Limit => {
                engine.timers.cancel(timer);
                engine.call_back(now);
            }
            // A broker that leaves decides nothing any more, whoever leaves gives everything away, and no broker asks it.
            OpaqueTimer::Anew(_) | OpaqueTimer::Recall(_) | OpaqueTimer::Begun(_)
                if engine.core.is_leaving() =>
            {
                engine.timers.cancel(timer);
            }
            OpaqueTimer::Known(broker) => {
                engine.timers.again(timer, now);
                engine.tell_again(broker);
            }
            OpaqueTimer::Begun(broker) => {
                engine.timers.again(timer, now);
                engine.say_begun(broker, true);
            }
            OpaqueTimer::Anew(site) => {
                engine.timers.again(timer, now);
                engine.ask_anew(site, true);
            }
            OpaqueTimer::Recall(site) => {
                engine.timers.again(timer, now);
                engine.recall_again(site);
            }
        }
    }

    fn belongs(core: &Core, home: Option<usize>, job: &JobSpec) -> Option<usize> {
        core.behind_brokers(home, job)
    }

    /// A site that leaves gives jobs back to their broker.
    fn elsewhere(core: &Core, job: &JobSpec) -> Option<usize> {
        let broker = core.custody_of(job.id).guardian.map(|guardian| core.config.grid.rank(guardian));
        let broker = broker.filter(|&rank| core.processors() > 0 && core.is_reachable(rank));
        broker.or_else(|| core.room_elsewhere(job))
    }

    fn takes_routed(core: &Core, job: &JobSpec) -> bool {
        let room = if core.processors() == 0 { core.config.grid.widest() } else { core.processors() };
        job.processors <= room
    }

    fn may_queue(core: &Core, job: &JobSpec) -> bool {
        core.may_queue_behind_brokers(job)
    }

    fn completed(engine: &mut Engine<Opaque>, now: Time, job: JobId, _estimated_end: Time, _processors: u32) {
        engine.own_ended(now, job);
    }

    fn after(engine: &mut Engine<Opaque>, now: Time) {
        engine.ask_where_void(now);
        engine.watch_limits(now);
        engine.stop_asking();
        if let Engine { core, family: Opaque::Desk(desk), .. } = engine
            && core.config.options.journal
        {
            desk.write_changes(core);
        }
    }

    fn superseded(engine: &mut Engine<Opaque>, job: JobId) {
        engine.means_nothing(job);
    }

    fn was_in_vain(engine: &mut Engine<Opaque>, now: Time, transfer: &Transfer) {
        engine.means_nothing(transfer.job.id);
        // Who gave it takes the answer for an arrival.
        engine.may_have_told(now, transfer.guardian);
    }

    fn dropped(engine: &mut Engine<Opaque>, now: Time, guardian: Option<SiteId>) {
        engine.may_have_told(now, guardian);
    }

    fn local_queue(&self) -> Option<&LocalQueue> {
        match self {
            Opaque::Desk(_) => None,
            Opaque::Site(site) => Some(site.local_queue()),
        }
    }

    fn repeat(
        engine: &mut Engine<Opaque>,
        _now: Time,
        to: usize,
        transfer: &Transfer,
    ) -> Option<OpaqueMessage> {
        let floor = engine.core.ledger.floor_to(engine.core.site_at(to));
        Some(OpaqueMessage::Give { transfers: vec![*transfer], floor })
    }

    fn settled(engine: &mut Engine<Opaque>, now: Time, transfer: &Transfer) {
        engine.has_arrived(now, transfer);
    }

    fn voided(engine: &mut Engine<Opaque>, rank: usize, transfer: &Transfer) {
        engine.was_voided(rank, transfer);
    }

    fn remember(engine: &mut Engine<Opaque>, durable: &Durable) {
        let Opaque::Desk(desk) = &mut engine.family else { return };
        let is_forgetful = engine.core.has(Canary::RuleForgotten);
        desk.remember(&engine.core.config, durable, is_forgetful);
    }

    fn can_remember(engine: &Engine<Opaque>, durable: &Durable) -> Result<(), String> {
        match &engine.family {
            Opaque::Desk(desk) => desk.can_recollect(&engine.core.config.grid, durable),
            Opaque::Site(_) => durable.has_no_memory(),
        }
    }

    fn agrees_with(engine: &Engine<Opaque>, durable: &Durable) -> Result<(), String> {
        match &engine.family {
            Opaque::Desk(desk) => desk.agrees_with(&engine.core.config.grid, durable),
            Opaque::Site(_) => durable.has_no_memory(),
        }
    }

    fn resume(engine: &mut Engine<Opaque>, now: Time) {
        match engine.family {
            Opaque::Desk(_) => engine.ask_all_anew(now),
            Opaque::Site(_) => engine.say_begun_to_all(now),
        }
    }

    fn met(engine: &mut Engine<Opaque>, now: Time, rank: usize) {
        match engine.family {
            Opaque::Desk(_) => engine.asks(now, rank),
            Opaque::Site(_) => engine.tells(now, rank),
        }
    }

    fn lost(engine: &mut Engine<Opaque>, _now: Time, rank: usize) {
        for timer in [
            OpaqueTimer::Known(rank),
            OpaqueTimer::Begun(rank),
            OpaqueTimer::Anew(rank),
            OpaqueTimer::Recall(rank),
        ] {
            engine.timers.cancel(timer);
        }
    }

    fn gone(engine: &mut Engine<Opaque>, rank: usize) {
        if let Opaque::Site(site) = &mut engine.family {
            site.forget(rank);
        }
    }

    fn pooled(&self) -> impl Iterator<Item = JobId> {
        self.jobs().map(|job| job.id)
    }

    fn books(&self) -> Vec<(usize, Vec<(JobId, bool)>)> {
        match self {
            Opaque::Desk(desk) => desk.books(),
            Opaque::Site(_) => Vec::new(),
        }
    }

    fn efficiencies(&self) -> Vec<(usize, f64)> {
        match self {
            Opaque::Desk(desk) => desk.efficiencies(),
            Opaque::Site(_) => Vec::new(),
        }
    }

    fn has_told(&self, broker: usize) -> bool {
        match self {
            Opaque::Desk(_) => false,
            Opaque::Site(site) => site.has_told(broker),
        }
    }

    fn is_open(engine: &Engine<Opaque>, timer: OpaqueTimer) -> bool {
        match (&engine.family, timer) {
            (Opaque::Desk(desk), OpaqueTimer::Anew(rank)) => desk.asks_anew(rank),
            (Opaque::Desk(desk), OpaqueTimer::Recall(rank)) => desk.recalls_from(rank),
            (Opaque::Desk(desk), OpaqueTimer::Limit) => desk.has_limits(),
            (Opaque::Site(site), OpaqueTimer::Known(broker)) => !site.has_told(broker),
            (Opaque::Site(site), OpaqueTimer::Begun(broker)) => site.is_to_be_asked(broker),
            _ => false,
        }
    }

    fn check(engine: &Engine<Opaque>) {
        match &engine.family {
            Opaque::Desk(desk) => desk.check(&engine.core),
            Opaque::Site(site) => {
                assert_eq!(site.free(), engine.core.free, "the local queue counts the same processors");
            }
        }
    }
}
