//! A site's half of jobs that start at several sites at once: the parts that it keeps processors for, and executes.
//!
//! What a site must not forget of them, and what it answers, is [`crate::gang`]'s. Here are the processors, the clock and the messages. A part is
//! no job of the site: its broker owns the job until all parts are over.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{EventKind, JobId, JobSpec, SiteId, Time};

use super::message::{BrokerMessage, Change};
use super::site::{Reporter, SiteTimer};
use crate::core::Core;
use crate::engine::{Engine, Family as _};
use crate::gang::{Attempt, Effect, Order, Part, Parts, Reply};

/// What a site has of one part beside what it must not forget.
#[derive(Clone, Debug)]
struct Has {
    /// The job with the processors of the part.
    part: JobSpec,
    /// The site that the job is known by.
    of: SiteId,
    /// How often the job has changed sites, once it starts.
    hops: u32,
    /// Since when it has the processors.
    since: Time,
}

/// The parts of all brokers.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// By rank of the broker; empty where none spreads jobs.
    brokers: Vec<Parts>,
    /// Those with processors.
    has: BTreeMap<(usize, Attempt), Has>,
    /// Which part of a job that is: one at a time has processors here.
    by_job: BTreeMap<JobId, (usize, Attempt)>,
    /// Those that are over, and whose broker knows.
    heard: BTreeSet<(usize, Attempt)>,
    /// Those that start at a time to come.
    starts: BTreeSet<(Time, usize, Attempt)>,
}

impl Kept {
    /// No parts, of so many brokers.
    pub(super) fn from_brokers(brokers: usize) -> Kept {
        Kept { brokers: vec![Parts::default(); brokers], ..Kept::default() }
    }

    /// Processors that parts have.
    pub(super) fn processors(&self) -> u32 {
        self.brokers.iter().map(Parts::processors).sum()
    }

    /// Parts with processors, and since when.
    pub(super) fn have_processors(&self) -> impl Iterator<Item = (JobSpec, Time)> + '_ {
        self.has.values().map(|has| (has.part, has.since))
    }

    /// When the next part starts of those that were agreed on.
    pub(super) fn next_start(&self) -> Option<Time> {
        self.starts.first().map(|&(at, _, _)| at)
    }

    /// Whether a broker has yet to say what becomes of a part, or that it has heard of its end.
    pub(super) fn waits_for(&self, broker: usize) -> bool {
        self.again(broker).next().is_some()
    }

    /// What is said again to a broker until it answers.
    fn again(&self, broker: usize) -> impl Iterator<Item = (Attempt, Reply)> + '_ {
        let replies = self.brokers.get(broker).into_iter().flat_map(Parts::again);
        replies.filter(move |(attempt, _)| !self.heard.contains(&(broker, *attempt)))
    }

    fn is_over(&self, broker: usize, attempt: Attempt) -> bool {
        let parts = self.brokers.get(broker);
        parts.is_some_and(|parts| {
            parts.all().any(|(known, part)| known == attempt && matches!(part, Part::Over { .. }))
        })
    }

    fn runs(&self, broker: usize, attempt: Attempt) -> bool {
        let parts = self.brokers.get(broker);
        parts.is_some_and(|parts| {
            parts.all().any(|(known, part)| known == attempt && matches!(part, Part::Runs { .. }))
        })
    }
}

impl Core {
    /// Whether brokers spread jobs over sites.
    pub(super) fn takes_parts(&self) -> bool {
        self.config.strategy.nature().coallocates
    }
}

impl Engine<Reporter> {
    pub(super) fn on_prepare(
        &mut self,
        now: Time,
        broker: usize,
        attempt: Attempt,
        floor: u64,
        part: &JobSpec,
        (of, hops): (SiteId, u32),
    ) {
        let Engine { core, family: site, .. } = self;
        // Another attempt for the job may be over for its broker, and the word of it still on its way.
        let is_known = site.kept.by_job.get(&part.id).is_some_and(|known| *known != (broker, attempt));
        let may = !core.is_leaving() && !is_known && !core.is_here(part.id);
        let free = if may { core.free } else { 0 };
        let Some(parts) = site.kept.brokers.get_mut(broker) else { return };
        let order = Order::Prepare { processors: part.processors, floor };
        let (reply, effect) = parts.heard(attempt, order, free);
        let floor = parts.floor();
        let heard = |known: &(usize, Attempt)| known.0 != broker || known.1.number >= floor;
        site.kept.heard.retain(heard);
        if effect == Effect::Held {
            core.free -= part.processors;
            site.now = now;
            site.queue.keep(now, *part);
            site.kept.has.insert((broker, attempt), Has { part: *part, of, hops, since: now });
            site.kept.by_job.insert(part.id, (broker, attempt));
            site.tell(&Change::Runs { at: now, job: *part, since: now });
            site.is_undecided = true;
            // The broker that asked knows.
            site.is_urgent |= site.logs.len() > 1;
            core.fresh = true;
            core.changes += 1;
        }
        self.reply(now, broker, attempt, reply);
    }

    pub(super) fn on_commit(&mut self, now: Time, broker: usize, attempt: Attempt, at: Time) {
        let site = &mut self.family;
        let Some(parts) = site.kept.brokers.get_mut(broker) else { return };
        let (reply, effect) = parts.heard(attempt, Order::Commit, 0);
        if effect == Effect::Started {
            site.kept.starts.insert((at, broker, attempt));
            self.begin_due(now);
        }
        self.reply(now, broker, attempt, reply);
    }

    pub(super) fn on_abort(&mut self, now: Time, broker: usize, attempt: Attempt) {
        let Engine { core, family: site, .. } = self;
        if site.kept.runs(broker, attempt) {
            // What was agreed on goes on: nobody stops what executes.
            return;
        }
        let Some(parts) = site.kept.brokers.get_mut(broker) else { return };
        let (reply, effect) = parts.heard(attempt, Order::Abort, 0);
        if effect == Effect::Freed
            && let Some(has) = site.kept.has.remove(&(broker, attempt))
        {
            let job = has.part.id;
            site.kept.by_job.remove(&job);
            core.free += has.part.processors;
            site.now = now;
            site.queue.release(now, job);
            site.tell(&Change::Left { at: now, job });
            site.is_undecided = true;
            site.is_urgent = true;
            core.fresh = true;
            core.changes += 1;
        }
        self.reply(now, broker, attempt, reply);
    }

    /// A job comes to wait here. If processors are held for a part of it, its broker has it again since, so that attempt is over, and the word
    /// of it still on its way.
    pub(super) fn comes_whole(&mut self, now: Time, job: JobId) {
        if let Some(&(broker, attempt)) = self.family.kept.by_job.get(&job) {
            self.on_abort(now, broker, attempt);
        }
    }

    /// The broker knows that a part is over.
    pub(super) fn on_heard(&mut self, broker: usize, attempt: Attempt) {
        let kept = &mut self.family.kept;
        if kept.is_over(broker, attempt) {
            kept.heard.insert((broker, attempt));
        }
        if !self.family.kept.waits_for(broker) {
            self.timers.cancel(SiteTimer::Parts(broker));
        }
    }

    /// A broker wants a job back that waits here, as it can start elsewhere.
    pub(super) fn on_fetch(&mut self, now: Time, broker: usize, job: JobId) {
        let waiting = self.family.queue.waiting().get(&job).map(|entry| entry.job);
        if let Some(job) = waiting.filter(|_| !self.core.is_leaving()) {
            self.family.now = now;
            let custody = self.core.custody_of(job.id);
            let taken = Reporter::take(self, &job);
            assert!(taken.is_some(), "job {} waits here", job.id);
            self.core.fresh = true;
            self.core.route(now, broker, job, custody);
        } else if self.core.ledger.hops_out(job).is_none() {
            self.core.send(broker, BrokerMessage::Missing { job });
        }
    }

    /// What executed here has ended: whether that was a part.
    pub(super) fn part_has_ended(&mut self, now: Time, job: JobId) -> bool {
        let Engine { core, family: site, .. } = self;
        let Some(&(broker, attempt)) = site.kept.by_job.get(&job) else { return false };
        if !site.kept.runs(broker, attempt) {
            return false;
        }
        site.kept.by_job.remove(&job);
        let has = site.kept.has.remove(&(broker, attempt)).expect("what runs has processors");
        let reply = site.kept.brokers[broker].ended(attempt);
        let processors = has.part.processors;
        core.free += processors;
        site.now = now;
        site.queue.release(now, job);
        site.tell(&Change::Ended { at: now, job });
        site.is_undecided = true;
        site.is_urgent = true;
        let is_known_by = has.of == core.site();
        core.event(match is_known_by {
            true => EventKind::Completed { job, processors },
            false => EventKind::PartCompleted { job, processors, of: has.of },
        });
        self.reply(now, broker, attempt, Some(reply));
        true
    }

    /// Starts the parts whose time has come.
    pub(super) fn begin_due(&mut self, now: Time) {
        self.timers.cancel(SiteTimer::Begin);
        while let Some(&(at, broker, attempt)) = self.family.kept.starts.first() {
            if at > now {
                self.timers.set(SiteTimer::Begin, now, at.since(now));
                return;
            }
            self.family.kept.starts.pop_first();
            self.begin_part(now, broker, attempt);
        }
    }

    fn begin_part(&mut self, now: Time, broker: usize, attempt: Attempt) {
        let Engine { core, family: site, .. } = self;
        let Some(Has { part, of, hops, since }) = site.kept.has.get(&(broker, attempt)) else { return };
        if *since < now {
            site.queue.starts_late(now, part);
        }
        let (job, processors) = (part.id, part.processors);
        core.event(match *of == core.site() {
            true => EventKind::Started { job, processors, hops: *hops },
            false => EventKind::PartStarted { job, processors, of: *of },
        });
        core.outputs.push_back(crate::Output::Start(*part));
    }

    fn reply(&mut self, now: Time, broker: usize, attempt: Attempt, reply: Option<Reply>) {
        if let Some(reply) = reply {
            self.core.send(broker, said(attempt, reply));
        }
        self.awaits_word(now, broker);
    }

    pub(super) fn say_parts_again(&mut self, broker: usize) {
        let again: Vec<(Attempt, Reply)> = self.family.kept.again(broker).collect();
        for (attempt, reply) in again {
            self.core.send_again(broker, said(attempt, reply), true);
        }
    }

    /// Has what a broker is to answer said again in time, if it may be lost.
    pub(super) fn awaits_word(&mut self, now: Time, broker: usize) {
        let timer = SiteTimer::Parts(broker);
        if !self.family.kept.waits_for(broker) {
            return self.timers.cancel(timer);
        }
        if let Some(retry) = self.core.config.options.retry.filter(|_| !self.timers.is_set(timer)) {
            self.timers.set(timer, now, retry);
        }
    }
}

fn said(attempt: Attempt, reply: Reply) -> BrokerMessage {
    match reply {
        Reply::Ready => BrokerMessage::Ready { attempt },
        Reply::Refused => BrokerMessage::Refused { attempt },
        Reply::Over { ended } => BrokerMessage::Over { attempt, ended },
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use scheduler::{Grid, StrategySpec};

    use super::*;
    use crate::config::{PeerConfig, Terms};
    use crate::fixtures::job;
    use crate::{Input, Message, Output, Peer};

    const BROKER: SiteId = SiteId(3);

    /// A member of a grid of a site of 4, one of 8 and a broker.
    pub(in crate::broker) fn peer(site: u32) -> Peer {
        let sites = [("a".to_string(), 4), ("b".to_string(), 8)];
        let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).expect("a grid");
        let strategy = "broker:mcisne,coallocate=dp".parse::<StrategySpec>().expect("a name").strategy;
        let grid = Arc::new(grid.with_spread(12));
        Peer::new(PeerConfig { site: SiteId(site), terms: Terms::new(grid, strategy) })
    }

    /// What the peer says, starts and records after a message and a turn.
    pub(in crate::broker) fn hear(
        peer: &mut Peer,
        second: i64,
        from: SiteId,
        message: BrokerMessage,
    ) -> Vec<Output> {
        tell(peer, second, Input::Message { from, message: Message::Broker(message) })
    }

    pub(in crate::broker) fn tell(peer: &mut Peer, second: i64, input: Input) -> Vec<Output> {
        let now = Time::from_secs(second);
        let mut all = Vec::new();
        for input in [input, Input::Turn] {
            peer.handle(now, input);
            all.extend(std::iter::from_fn(|| peer.poll_output()));
            peer.check_invariants();
        }
        all
    }

    pub(in crate::broker) fn said(outputs: &[Output]) -> Vec<(SiteId, BrokerMessage)> {
        let said = outputs.iter().filter_map(|output| match output {
            Output::Send { to, message: Message::Broker(message) } => Some((*to, message.clone())),
            _ => None,
        });
        said.filter(|(_, message)| !matches!(message, BrokerMessage::State { .. })).collect()
    }

    fn started(outputs: &[Output]) -> Vec<(u64, u32)> {
        let started = outputs.iter().filter_map(|output| match output {
            Output::Start(job) => Some((job.id.0, job.processors)),
            _ => None,
        });
        started.collect()
    }

    fn attempt(number: u64) -> Attempt {
        Attempt { job: JobId(1), epoch: 0, number }
    }

    fn prepare(number: u64, processors: u32) -> BrokerMessage {
        let part = Box::new(JobSpec { processors, ..job(1, 12) });
        BrokerMessage::Prepare { attempt: attempt(number), floor: 0, part, of: SiteId(2), hops: 1 }
    }

    #[test]
    fn a_site_keeps_processors_for_a_part_until_it_starts_or_is_aborted() {
        let mut site = peer(1);
        let ready = vec![(BROKER, BrokerMessage::Ready { attempt: attempt(1) })];
        assert_eq!(said(&hear(&mut site, 0, BROKER, prepare(1, 3))), ready);
        // A job of its own does not fit beside it, and the same part of another attempt has to wait.
        assert_eq!(started(&tell(&mut site, 1, Input::Submitted(job(2, 2)))), []);
        let refused = vec![(BROKER, BrokerMessage::Refused { attempt: attempt(2) })];
        assert_eq!(said(&hear(&mut site, 1, BROKER, prepare(2, 1))), refused);
        let freed = hear(&mut site, 2, BROKER, BrokerMessage::Abort { attempt: attempt(1) });
        let over = vec![(BROKER, BrokerMessage::Over { attempt: attempt(1), ended: false })];
        assert_eq!((said(&freed), started(&freed)), (over.clone(), vec![(2, 2)]));
        // What comes after that changes nothing.
        assert_eq!(said(&hear(&mut site, 3, BROKER, prepare(1, 3))), over);
        let commit = BrokerMessage::Commit { attempt: attempt(1), at: Time::ZERO };
        assert_eq!(started(&hear(&mut site, 3, BROKER, commit)), []);
    }

    #[test]
    fn a_job_that_comes_whole_frees_what_was_held_for_its_part() {
        let mut site = peer(1);
        hear(&mut site, 0, BROKER, prepare(1, 3));
        // The word of the end of the attempt is lost, or late.
        assert_eq!(started(&tell(&mut site, 1, Input::Submitted(job(1, 4)))), [(1, 4)]);
        assert_eq!(started(&hear(&mut site, 2, BROKER, BrokerMessage::Abort { attempt: attempt(1) })), []);
    }

    #[test]
    fn a_part_starts_at_the_time_that_was_agreed_on_and_not_twice() {
        let mut site = peer(1);
        hear(&mut site, 0, BROKER, prepare(1, 3));
        let commit = BrokerMessage::Commit { attempt: attempt(1), at: Time::from_secs(5) };
        assert_eq!(started(&hear(&mut site, 1, BROKER, commit.clone())), []);
        assert_eq!(site.poll_timeout(), Some(Time::from_secs(5)));
        let begun = tell(&mut site, 5, Input::Timeout);
        let event = EventKind::PartStarted { job: JobId(1), processors: 3, of: SiteId(2) };
        assert!(begun.contains(&Output::Event(event)), "{begun:?}");
        assert_eq!(started(&begun), [(1, 3)]);
        assert_eq!(started(&hear(&mut site, 6, BROKER, commit)), []);
        // Nobody stops what executes.
        assert_eq!(said(&hear(&mut site, 7, BROKER, BrokerMessage::Abort { attempt: attempt(1) })), []);
        let ended = tell(&mut site, 9, Input::Completed(JobId(1)));
        let over = vec![(BROKER, BrokerMessage::Over { attempt: attempt(1), ended: true })];
        assert_eq!(said(&ended), over);
        let event = EventKind::PartCompleted { job: JobId(1), processors: 3, of: SiteId(2) };
        assert!(ended.contains(&Output::Event(event)), "{ended:?}");
    }

    #[test]
    fn only_brokers_have_processors_kept_and_no_more_than_there_are() {
        let ignored = |outputs: Vec<Output>| {
            outputs.iter().any(|output| matches!(output, Output::Event(EventKind::Ignored { .. })))
        };
        assert!(ignored(hear(&mut peer(1), 0, SiteId(2), prepare(1, 3))), "a site asks");
        assert!(ignored(hear(&mut peer(1), 0, BROKER, prepare(1, 5))), "it is wider than the site");
        let other = BrokerMessage::Ready { attempt: attempt(1) };
        assert!(ignored(hear(&mut peer(1), 0, BROKER, other)), "what sites say");
        assert!(!ignored(hear(&mut peer(1), 0, BROKER, prepare(1, 4))));
    }
}
