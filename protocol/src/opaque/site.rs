//! A site before which brokers stand: its local queue, and which ends its brokers have not heard of.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{JobId, JobSpec, SiteId, Time};

use super::message::{Executed, HELD_MAX, Held, OpaqueMessage};
use crate::bounds::are_counts;
use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::{Engine, Family, Giving, InParts, Lawful, Leaving, Observed, Recovery};
use crate::experience::Experience;
use crate::journal::Durable;
use crate::message::Transfer;
use crate::message::part::Part as _;
use crate::mutant::Mutant;
use crate::queue::{Entry, Queue};
use crate::rank::Rank;
use crate::timers::Alarm;

/// What a site waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SiteTimer {
    /// The broker of this rank has not said that it knows which of its jobs ended.
    Known(Rank),
    /// The broker of this rank has not asked a site which has other jobs than it has said.
    Begun(Rank),
}

impl Alarm for SiteTimer {
    fn repeats(&self) -> bool {
        true
    }
}

/// The queue of a site, and what brokers have not heard.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    /// With when each job came.
    queue: Queue<Time>,
    /// The turn of the next job that comes: jobs queue in the order in which they come here.
    turn: u64,
    /// By rank of the broker: its jobs that ended, as far as it has not said that it knows. Where nothing is lost, none.
    /// No more than its cap for each incarnation of the broker, which counts them as here.
    untold: BTreeMap<Rank, BTreeMap<JobId, Executed>>,
    /// By rank of the broker: the number of its newest question which jobs are here.
    asked: BTreeMap<Rank, u64>,
    /// By rank of the broker: its question which jobs are here, while it is not known to have heard which ended.
    deferred: BTreeMap<Rank, u64>,
    /// Ranks of brokers that may have heard of jobs which are not here any more, until they ask.
    to_be_asked: BTreeSet<Rank>,
}

impl Family for Reporter {
    type Message = OpaqueMessage;
    type Timer = SiteTimer;

    fn of(config: &PeerConfig, _first: u64) -> Reporter {
        assert!(config.strategy.dispatch().is_some(), "a site before which brokers stand");
        assert!(config.grid.brokers() > 0, "jobs are given to sites by a broker: the grid has none");
        Reporter {
            queue: Queue::new(config),
            turn: 0,
            untold: BTreeMap::new(),
            asked: BTreeMap::new(),
            deferred: BTreeMap::new(),
            to_be_asked: BTreeSet::new(),
        }
    }

    fn enqueue(engine: &mut Engine<Reporter>, now: Time, job: JobSpec) {
        let site = &mut engine.family;
        site.queue.join(now, job, site.turn, now);
        site.turn += 1;
    }

    fn turn(engine: &mut Engine<Reporter>, now: Time) {
        engine.family.queue.start(&mut engine.core, now);
    }

    fn begun(engine: &mut Engine<Reporter>, now: Time, job: &JobSpec) {
        engine.family.queue.begun(&mut engine.core, now, job.id);
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.queue.jobs()
    }

    fn take(engine: &mut Engine<Reporter>, job: &JobSpec) -> Option<JobSpec> {
        engine.family.queue.withdraw(job.id).map(|entry| entry.job)
    }

    fn heard(engine: &mut Engine<Reporter>, now: Time, rank: Rank, message: OpaqueMessage) {
        match message {
            OpaqueMessage::Give { transfers, floor } => {
                engine.core.on_floor(engine.core.site_at(rank), floor);
                engine.on_route(now, rank, &transfers);
            }
            OpaqueMessage::Known { jobs } => engine.on_known(now, rank, &jobs),
            OpaqueMessage::Recall { job } => engine.on_called(now, rank, job),
            OpaqueMessage::Anew { count } => engine.on_anew(rank, count),
            for_brokers => engine.core.ignore(engine.core.site_at(rank), for_brokers.kind()),
        }
    }

    fn fired(engine: &mut Engine<Reporter>, now: Time, timer: SiteTimer) {
        match timer {
            // Whoever leaves gives everything away, and no broker asks it.
            SiteTimer::Begun(_) if engine.core.is_leaving() => engine.timers.cancel(timer),
            SiteTimer::Known(broker) => {
                engine.timers.again(timer, now);
                engine.tell_again(broker);
            }
            SiteTimer::Begun(broker) => {
                engine.timers.again(timer, now);
                engine.say_begun(broker, true);
            }
        }
    }

    fn belongs(core: &Core, home: Option<Rank>, job: &JobSpec) -> Option<Rank> {
        core.here_or(home, job)
    }

    /// A site that leaves gives jobs back to their broker.
    fn elsewhere(core: &Core, job: &JobSpec) -> Option<Rank> {
        let broker = core.custody_of(job.id).guardian.map(|guardian| core.rank_of(guardian));
        broker.filter(|&rank| core.is_reachable(rank)).or_else(|| core.room_elsewhere(job))
    }

    /// Whoever gave it is told.
    fn completed(
        engine: &mut Engine<Reporter>,
        now: Time,
        job: JobId,
        _estimated_end: Time,
        _processors: u32,
    ) {
        let (Entry { note: queued, started, .. }, _) = engine.family.queue.ended(&mut engine.core, now, job);
        let Some(broker) = broker_of(&engine.core, job) else { return };
        let started = started.unwrap_or(queued);
        let ended = Executed { job, queued, started, ended: now.max(started) };
        if !engine.core.has(Mutant::EndUntold) {
            engine.tell(now, broker, ended);
        }
    }

    fn wake_at(&self) -> Option<Time> {
        self.queue.wake_at()
    }

    fn dropped(engine: &mut Engine<Reporter>, now: Time, guardian: Option<SiteId>) {
        engine.may_have_told(now, guardian);
    }

    fn enters(engine: &mut Engine<Reporter>, now: Time, rank: Rank) {
        engine.tells(now, rank);
    }

    fn leaves(engine: &mut Engine<Reporter>, _now: Time, rank: Rank, why: Leaving) {
        engine.timers.cancel(SiteTimer::Known(rank));
        engine.timers.cancel(SiteTimer::Begun(rank));
        if why == Leaving::Gone {
            // Nobody need tell it anything. If it comes back, and has not noticed, it still counts what ended.
            let site = &mut engine.family;
            site.deferred.remove(&rank);
            if site.untold.remove(&rank).is_some() {
                site.to_be_asked.insert(rank);
            }
        }
    }
}

impl Lawful for Reporter {
    fn is_lawful(core: &Core, rank: Rank, message: &OpaqueMessage) -> bool {
        let fits = |transfer: &Transfer| transfer.job.processors <= core.width();
        core.processors_of(rank) == 0
            && match message {
                OpaqueMessage::Give { transfers, floor } => {
                    are_counts(&[*floor]) && core.may_move(rank, transfers) && transfers.iter().all(fits)
                }
                OpaqueMessage::Known { .. } | OpaqueMessage::Recall { .. } => true,
                OpaqueMessage::Anew { count } => are_counts(&[*count]),
                OpaqueMessage::Ended { .. } | OpaqueMessage::Refused { .. } | OpaqueMessage::Have { .. } => {
                    false
                }
            }
    }

    fn takes_routed(core: &Core, job: &JobSpec) -> bool {
        job.processors <= core.width()
    }

    fn may_queue(core: &Core, job: &JobSpec) -> bool {
        core.may_hold(job)
    }

    fn may_grant(_core: &Core, _rank: Rank) -> bool {
        false
    }
}

impl Giving for Reporter {
    fn repeat(_: &mut Engine<Reporter>, _now: Time, _to: Rank, _: &Transfer) -> Option<OpaqueMessage> {
        // Jobs leave by routes only.
        None
    }

    /// Who gave it takes the answer for an arrival.
    fn was_in_vain(engine: &mut Engine<Reporter>, now: Time, transfer: &Transfer) {
        engine.may_have_told(now, transfer.guardian);
    }
}

impl Recovery for Reporter {
    /// Brokers may have heard of jobs that are not here any more.
    fn resume(engine: &mut Engine<Reporter>, now: Time) {
        for broker in Rank::of_brokers(&engine.core.config.grid) {
            engine.wants_to_be_asked(now, broker);
        }
    }

    fn remember(engine: &mut Engine<Reporter>, durable: &Durable) {
        engine.family.queue.remember(&engine.core, durable);
    }

    fn can_remember(engine: &Engine<Reporter>, durable: &Durable) -> Result<(), String> {
        Experience::can_be(&engine.core, &durable.memory)
    }

    fn agrees_with(engine: &Engine<Reporter>, durable: &Durable) -> Result<(), String> {
        engine.family.queue.agrees_with(&engine.core, durable)
    }
}

impl InParts for Reporter {}

impl Observed for Reporter {
    fn pooled(&self) -> impl Iterator<Item = JobId> {
        self.jobs().map(|job| job.id)
    }

    fn has_told(&self, broker: Rank) -> bool {
        !self.untold.contains_key(&broker)
    }

    fn is_open(engine: &Engine<Reporter>, timer: SiteTimer) -> bool {
        match timer {
            SiteTimer::Known(broker) => !engine.family.has_told(broker),
            SiteTimer::Begun(broker) => engine.family.to_be_asked.contains(&broker),
        }
    }

    fn check(engine: &Engine<Reporter>) {
        engine.family.queue.check(&engine.core);
    }
}

/// The rank of the broker that a job here is of; none of a local user.
fn broker_of(core: &Core, job: JobId) -> Option<Rank> {
    broker_at(core, core.custody_of(job).guardian)
}

/// The rank of a guardian that is a broker.
fn broker_at(core: &Core, guardian: Option<SiteId>) -> Option<Rank> {
    guardian.map(|guardian| core.rank_of(guardian)).filter(|&rank| core.is_broker(rank))
}

impl Engine<Reporter> {
    /// Tells a broker that a job of it ended.
    fn tell(&mut self, now: Time, broker: Rank, ended: Executed) {
        if let Some(retry) = self.core.config.options.retry {
            self.family.untold.entry(broker).or_default().insert(ended.job, ended);
            if self.core.is_reachable(broker) && !self.timers.is_set(SiteTimer::Known(broker)) {
                self.timers.set(SiteTimer::Known(broker), now, retry);
            }
        }
        self.core.send(broker, OpaqueMessage::Ended { jobs: vec![ended] });
    }

    fn tell_again(&mut self, broker: Rank) {
        let untold = self.family.untold.get(&broker);
        let jobs: Vec<Executed> = untold.into_iter().flat_map(BTreeMap::values).copied().collect();
        for jobs in jobs.chunks(HELD_MAX) {
            self.core.send_again(broker, OpaqueMessage::Ended { jobs: jobs.to_vec() }, true);
        }
    }

    fn on_known(&mut self, now: Time, broker: Rank, jobs: &[JobId]) {
        let retry = self.core.config.options.retry;
        let site = &mut self.family;
        let Some(untold) = site.untold.get_mut(&broker) else { return };
        untold.retain(|job, _| !jobs.contains(job));
        let waits = !untold.is_empty();
        if !waits {
            site.untold.remove(&broker);
        }
        self.timers.cancel(SiteTimer::Known(broker));
        if let Some(retry) = retry.filter(|_| waits) {
            self.timers.set(SiteTimer::Known(broker), now, retry);
        }
        if waits || self.core.is_leaving() {
            return;
        }
        if let Some(count) = self.family.deferred.remove(&broker) {
            self.say_which(broker, count);
        }
    }

    /// A broker wants a job back that it gave to this site.
    fn on_called(&mut self, now: Time, broker: Rank, job: JobId) {
        let Engine { core, family: site, .. } = self;
        let is_its = broker_of(core, job) == Some(broker);
        let started = site.queue.running().get(&job).filter(|_| is_its).and_then(|entry| entry.started);
        let comes = is_its && site.queue.waiting().contains_key(&job);
        match comes.then(|| site.queue.withdraw(job)).flatten() {
            Some(Entry { job, .. }) => {
                let custody = core.custody_of(job.id);
                core.route(now, broker, job, custody);
                // What waited behind it may start.
                core.fresh = true;
            }
            None => core.send(broker, OpaqueMessage::Refused { job, started }),
        }
    }

    /// Says which jobs of a broker are here.
    fn on_anew(&mut self, broker: Rank, count: u64) {
        let site = &mut self.family;
        let before = site.asked.get(&broker).copied();
        site.asked.insert(broker, count.max(before.unwrap_or(0)));
        // One that comes twice may have been answered before this site said that it is to be asked, and the first of an incarnation in
        // an earlier one.
        if before.is_some_and(|before| before < count) {
            site.to_be_asked.remove(&broker);
            self.timers.cancel(SiteTimer::Begun(broker));
        }
        if self.core.is_leaving() {
            // Who hears no answer sends nothing.
            return;
        }
        if !self.family.has_told(broker) {
            // What is neither here nor known to have ended would count as lost: it is answered once that is known. Waiting for
            // the question to be repeated would take as long as its timer has grown to.
            self.family.deferred.insert(broker, count);
            return self.tell_again(broker);
        }
        self.say_which(broker, count);
    }

    /// Answers a broker's question which of its jobs are here.
    fn say_which(&mut self, broker: Rank, count: u64) {
        let Engine { core, family: site, .. } = self;
        let here = site.queue.waiting().values().chain(site.queue.running().values());
        let its = here.filter(|entry| broker_of(core, entry.job.id) == Some(broker));
        let held: Vec<Held> =
            its.map(|&Entry { job, note: queued, started }| Held { job, queued, started }).collect();
        let all = u32::try_from(held.len()).unwrap_or(u32::MAX);
        if held.is_empty() {
            return core.send(broker, OpaqueMessage::Have { count, all, jobs: held });
        }
        for jobs in held.chunks(HELD_MAX) {
            core.send(broker, OpaqueMessage::Have { count, all, jobs: jobs.to_vec() });
        }
    }

    /// Tells a broker that it may have heard of jobs which are not here any more, now or, if it is not there, when it is heard of
    /// again. Whoever leaves is asked nothing.
    fn wants_to_be_asked(&mut self, now: Time, broker: Rank) {
        let site = &mut self.family;
        site.to_be_asked.insert(broker);
        if self.core.is_leaving() || !self.core.is_reachable(broker) {
            return;
        }
        self.say_begun(broker, false);
        if let Some(retry) = self.core.config.options.retry {
            self.timers.set(SiteTimer::Begun(broker), now, retry);
        }
    }

    /// A broker may have been told of a job that is not here any more and of which it hears no end.
    fn may_have_told(&mut self, now: Time, guardian: Option<SiteId>) {
        if let Some(broker) = broker_at(&self.core, guardian).filter(|_| !self.core.has(Mutant::DropUntold)) {
            self.wants_to_be_asked(now, broker);
        }
    }

    fn say_begun(&mut self, broker: Rank, is_again: bool) {
        let begun = OpaqueMessage::Have { count: 0, all: 0, jobs: Vec::new() };
        self.core.send_again(broker, begun, is_again);
    }

    /// A broker is heard of again, which was not waited for.
    fn tells(&mut self, now: Time, broker: Rank) {
        let waits = !self.family.has_told(broker);
        if let Some(retry) = self.core.config.options.retry.filter(|_| waits) {
            self.tell_again(broker);
            self.timers.set(SiteTimer::Known(broker), now, retry);
        }
        let is_asked = !self.core.has(Mutant::DropUntold);
        if is_asked && self.family.to_be_asked.contains(&broker) {
            self.wants_to_be_asked(now, broker);
        }
    }
}
