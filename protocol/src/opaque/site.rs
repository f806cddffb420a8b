//! A site before which brokers stand: its local queue, and which ends its brokers have not heard of.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::local::LocalQueue;
use scheduler::{JobId, JobSpec, SiteId, Time};

use super::message::{Executed, HELD_MAX, Held, OpaqueMessage};
use super::{Opaque, OpaqueTimer};
use crate::canary::Canary;
use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::Engine;

/// The queue of a site.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    queue: LocalQueue,
    /// The turn of the next job that comes: jobs queue in the order in which they come here.
    turn: u64,
    waiting: BTreeMap<JobId, Held>,
    running: BTreeMap<JobId, Held>,
    /// By rank of the broker: its jobs that ended, as far as it has not said that it knows. Where nothing is lost, none.
    /// No more than its cap for each life of the broker, which counts them as here.
    untold: BTreeMap<usize, BTreeMap<JobId, Executed>>,
    /// By rank of the broker: the number of its newest question which jobs are here.
    asked: BTreeMap<usize, u64>,
    /// By rank of the broker: its question which jobs are here, while it is not known to have heard which ended.
    deferred: BTreeMap<usize, u64>,
    /// Ranks of brokers that may have heard of jobs which are not here any more, until they ask.
    to_be_asked: BTreeSet<usize>,
}

impl Queue {
    pub(super) fn new(config: &PeerConfig) -> Queue {
        Queue {
            queue: config.queue(),
            turn: 0,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            untold: BTreeMap::new(),
            asked: BTreeMap::new(),
            deferred: BTreeMap::new(),
            to_be_asked: BTreeSet::new(),
        }
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.waiting.values().map(|held| &held.job)
    }

    pub(super) fn free(&self) -> u32 {
        self.queue.free()
    }

    /// Whether a broker knows of each of its jobs that ended here.
    pub(super) fn has_told(&self, broker: usize) -> bool {
        !self.untold.contains_key(&broker)
    }

    /// Whether a broker is to ask which jobs are here.
    pub(super) fn is_to_be_asked(&self, broker: usize) -> bool {
        self.to_be_asked.contains(&broker)
    }

    pub(super) fn local_queue(&self) -> &LocalQueue {
        &self.queue
    }

    pub(super) fn take_out(&mut self, job: JobId) -> Option<JobSpec> {
        self.queue.withdraw(job)?;
        self.waiting.remove(&job).map(|held| held.job)
    }

    /// A broker is gone: nobody need tell it anything. If it comes back, and has not noticed, it still counts what ended.
    pub(super) fn forget(&mut self, broker: usize) {
        self.deferred.remove(&broker);
        if self.untold.remove(&broker).is_some() {
            self.to_be_asked.insert(broker);
        }
    }
}

/// The rank of the broker that a job here is of; none of a local user.
fn broker_of(core: &Core, job: JobId) -> Option<usize> {
    broker_at(core, core.custody_of(job).guardian)
}

/// The rank of a guardian that is a broker.
fn broker_at(core: &Core, guardian: Option<SiteId>) -> Option<usize> {
    guardian.map(|guardian| core.config.grid.rank(guardian)).filter(|&rank| rank < core.config.grid.brokers())
}

impl Engine<Opaque> {
    fn queue(&mut self) -> Option<&mut Queue> {
        match &mut self.family {
            Opaque::Site(site) => Some(site),
            Opaque::Desk(_) => None,
        }
    }

    /// A job joins the queue of this site.
    pub(super) fn queue_up(&mut self, now: Time, job: JobSpec) {
        let Some(site) = self.queue() else { return };
        site.queue.submit_in_turn(now, job, site.turn);
        site.turn += 1;
        site.waiting.insert(job.id, Held { job, queued: now, started: None });
    }

    /// Starts what the local scheduler starts.
    pub(super) fn start_own(&mut self, now: Time) {
        let Some(site) = self.queue() else { return };
        let mut starts = Vec::new();
        site.queue.decide(now, &mut starts);
        let failure = site.queue.failure();
        for job in &starts {
            let held = site.waiting.remove(&job.id).expect("what starts has waited");
            site.running.insert(job.id, Held { started: Some(now), ..held });
        }
        self.core.fell_back(failure);
        for job in starts {
            self.core.start(now, job);
        }
    }

    /// A job ended here: whoever gave it is told.
    pub(super) fn own_ended(&mut self, now: Time, job: JobId) {
        let broker = broker_of(&self.core, job);
        let retry = self.core.config.options.retry;
        let is_untold = self.core.has(Canary::EndUntold);
        let Some(site) = self.queue() else { return };
        site.queue.complete(now, job);
        let Some(held) = site.running.remove(&job) else { return };
        let Some(broker) = broker else { return };
        let started = held.started.unwrap_or(held.queued);
        let ended = Executed { job, queued: held.queued, started, ended: now.max(started) };
        if is_untold {
            return;
        }
        if retry.is_some() {
            site.untold.entry(broker).or_default().insert(job, ended);
        }
        if let Some(retry) = retry.filter(|_| self.core.is_reachable(broker))
            && !self.timers.is_set(OpaqueTimer::Known(broker))
        {
            self.timers.set(OpaqueTimer::Known(broker), now, retry);
        }
        self.core.send(broker, OpaqueMessage::Ended { jobs: vec![ended] });
    }

    pub(super) fn tell_again(&mut self, broker: usize) {
        let untold = self.queue().and_then(|site| site.untold.get(&broker));
        let jobs: Vec<Executed> = untold.into_iter().flat_map(BTreeMap::values).copied().collect();
        for jobs in jobs.chunks(HELD_MAX) {
            self.core.send_again(broker, OpaqueMessage::Ended { jobs: jobs.to_vec() }, true);
        }
    }

    pub(super) fn on_known(&mut self, now: Time, broker: usize, jobs: &[JobId]) {
        let retry = self.core.config.options.retry;
        let Some(site) = self.queue() else { return };
        let Some(untold) = site.untold.get_mut(&broker) else { return };
        untold.retain(|job, _| !jobs.contains(job));
        let waits = !untold.is_empty();
        if !waits {
            site.untold.remove(&broker);
        }
        self.timers.cancel(OpaqueTimer::Known(broker));
        if let Some(retry) = retry.filter(|_| waits) {
            self.timers.set(OpaqueTimer::Known(broker), now, retry);
        }
        let deferred = self.queue().filter(|_| !waits).and_then(|site| site.deferred.remove(&broker));
        if let Some(count) = deferred.filter(|_| !self.core.is_leaving()) {
            self.say_which(broker, count);
        }
    }

    /// A broker wants a job back that it gave to this site.
    pub(super) fn on_called(&mut self, now: Time, broker: usize, job: JobId) {
        let is_its = broker_of(&self.core, job) == Some(broker);
        let Some(site) = self.queue() else { return };
        let started = site.running.get(&job).filter(|_| is_its).and_then(|held| held.started);
        let comes = is_its && started.is_none();
        match site
            .waiting
            .contains_key(&job)
            .then_some(())
            .filter(|()| comes)
            .and_then(|()| site.take_out(job))
        {
            Some(job) => {
                let custody = self.core.custody_of(job.id);
                self.core.route(now, broker, job, custody);
                // What waited behind it may start.
                self.core.fresh = true;
            }
            None => self.core.send(broker, OpaqueMessage::Refused { job, started }),
        }
    }

    /// Says which jobs of a broker are here.
    pub(super) fn on_anew(&mut self, broker: usize, count: u64) {
        let Some(site) = self.queue() else { return };
        let before = site.asked.get(&broker).copied();
        site.asked.insert(broker, count.max(before.unwrap_or(0)));
        // One that comes twice may have been answered before this site said that it is to be asked, and the first of a life in
        // an earlier one.
        if before.is_some_and(|before| before < count) {
            site.to_be_asked.remove(&broker);
            self.timers.cancel(OpaqueTimer::Begun(broker));
        }
        if self.core.is_leaving() {
            // Who hears no answer sends nothing.
            return;
        }
        if let Some(site) = self.queue().filter(|site| site.untold.contains_key(&broker)) {
            // What is neither here nor known to have ended would count as lost: it is answered once that is known. Waiting for
            // the question to be repeated would take as long as its timer has grown to.
            site.deferred.insert(broker, count);
            return self.tell_again(broker);
        }
        self.say_which(broker, count);
    }

    /// Answers a broker's question which of its jobs are here.
    fn say_which(&mut self, broker: usize, count: u64) {
        let Engine { core, family: Opaque::Site(site), .. } = self else { return };
        let here = site.waiting.values().chain(site.running.values());
        let held: Vec<Held> =
            here.filter(|held| broker_of(core, held.job.id) == Some(broker)).copied().collect();
        let all = u32::try_from(held.len()).unwrap_or(u32::MAX);
        if held.is_empty() {
            return core.send(broker, OpaqueMessage::Have { count, all, jobs: held });
        }
        for jobs in held.chunks(HELD_MAX) {
            core.send(broker, OpaqueMessage::Have { count, all, jobs: jobs.to_vec() });
        }
    }

    /// This site begins again: brokers may have heard of jobs that are not here any more.
    pub(super) fn say_begun_to_all(&mut self, now: Time) {
        for broker in 0..self.core.config.grid.brokers() {
            self.wants_to_be_asked(now, broker);
        }
    }

    /// Tells a broker so now or, if it is not there, when it is heard of again. Whoever leaves is asked nothing.
    fn wants_to_be_asked(&mut self, now: Time, broker: usize) {
        let Some(site) = self.queue() else { return };
        site.to_be_asked.insert(broker);
        if self.core.is_leaving() || !self.core.is_reachable(broker) {
            return;
        }
        self.say_begun(broker, false);
        if let Some(retry) = self.core.config.options.retry {
            self.timers.set(OpaqueTimer::Begun(broker), now, retry);
        }
    }

    /// A broker may have been told of a job that is not here any more and of which it hears no end.
    pub(super) fn may_have_told(&mut self, now: Time, guardian: Option<SiteId>) {
        if let Some(broker) = broker_at(&self.core, guardian).filter(|_| !self.core.has(Canary::DropUntold)) {
            self.wants_to_be_asked(now, broker);
        }
    }

    pub(super) fn say_begun(&mut self, broker: usize, is_again: bool) {
        let begun = OpaqueMessage::Have { count: 0, all: 0, jobs: Vec::new() };
        self.core.send_again(broker, begun, is_again);
    }

    /// A broker is heard of again, which was not waited for.
    pub(super) fn tells(&mut self, now: Time, broker: usize) {
        let waits = self.queue().is_some_and(|site| site.untold.contains_key(&broker));
        if let Some(retry) = self.core.config.options.retry.filter(|_| waits) {
            self.tell_again(broker);
            self.timers.set(OpaqueTimer::Known(broker), now, retry);
        }
        let is_asked = !self.core.has(Canary::DropUntold);
        if is_asked && self.queue().is_some_and(|site| site.to_be_asked.contains(&broker)) {
            self.wants_to_be_asked(now, broker);
        }
    }
}
