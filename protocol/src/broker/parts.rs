//! A site's half of jobs that start at several sites at once: the parts that it keeps processors for, and executes.
//!
//! What a site must not forget of them, and what it answers, is [`crate::gang`]'s. Here are the processors, the clock and the messages. A part is
//! no job of the site: its broker owns the job until all parts are over.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::local::Portion;
use scheduler::{EventKind, JobId, JobSpec, Span, Time};

use super::memory::{self, Foretold, Has, Remembered, Rows, Written};
use super::message::{BrokerMessage, Change};
use super::site::{Reporter, SiteTimer};
use crate::core::Core;
use crate::engine::{Engine, Family as _};
use crate::gang::{Attempt, Effect, Order, Part, Parts, Reply};
use crate::journal::Durable;
use crate::membership::Presence;
use crate::mutant::Mutant;
use crate::ports::Output;
use crate::rank::Rank;
use crate::table::Table;

/// The parts of all brokers.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// For each broker; empty where none spreads jobs.
    brokers: Table<Parts>,
    /// Those with processors.
    has: BTreeMap<(Rank, Attempt), Has>,
    /// Which part of a job that is: one at a time has processors here.
    by_job: BTreeMap<JobId, (Rank, Attempt)>,
    /// Those that are over, and whose broker knows.
    heard: BTreeSet<(Rank, Attempt)>,
    /// Those that start at a time to come.
    starts: BTreeSet<(Time, Rank, Attempt)>,
    /// Those that a site which restarts had processors for.
    held_before: Vec<(Rank, Attempt, Has)>,
    written: Written,
    /// What must not be forgotten may have changed since.
    is_changed: bool,
}

impl Kept {
    /// No parts, of these brokers.
    pub(super) fn from_brokers(brokers: impl Iterator<Item = Rank>) -> Kept {
        Kept { brokers: Table::of(brokers, |_| Parts::default()), ..Kept::default() }
    }

    /// Processors that parts have.
    pub(super) fn processors(&self) -> u32 {
        self.brokers.rows().map(Parts::processors).sum()
    }

    /// Parts with processors, as brokers are told of them.
    pub(super) fn have_processors(&self, now: Time) -> impl Iterator<Item = Change> + '_ {
        self.has.values().map(move |has| told(now, has))
    }

    /// Jobs with a part here that has processors.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.by_job.keys().copied()
    }

    /// What must not be forgotten.
    fn rows(&self, core: &Core) -> Rows {
        let rows = self.brokers.iter().map(|(broker, parts)| {
            let has = |attempt| self.has.get(&(broker, attempt)).copied();
            memory::of_parts(core.site_at(broker), parts, has)
        });
        rows.flatten().collect()
    }

    /// When the next part starts of those that were agreed on.
    pub(super) fn next_start(&self) -> Option<Time> {
        self.starts.first().map(|&(at, _, _)| at)
    }

    /// Whether a broker has yet to say what becomes of a part, or that it has heard of its end.
    pub(super) fn waits_for(&self, broker: Rank) -> bool {
        self.again(broker).next().is_some()
    }

    /// What is said again to a broker until it answers.
    fn again(&self, broker: Rank) -> impl Iterator<Item = (Attempt, Reply)> + '_ {
        let replies = self.brokers.get(broker).into_iter().flat_map(Parts::again);
        replies.filter(move |(attempt, _)| !self.heard.contains(&(broker, *attempt)))
    }

    fn is_over(&self, broker: Rank, attempt: Attempt) -> bool {
        let parts = self.brokers.get(broker);
        parts.is_some_and(|parts| {
            parts.all().any(|(known, part)| known == attempt && matches!(part, Part::Over { .. }))
        })
    }

    fn runs(&self, broker: Rank, attempt: Attempt) -> bool {
        let parts = self.brokers.get(broker);
        parts.is_some_and(|parts| {
            parts.all().any(|(known, part)| known == attempt && matches!(part, Part::Runs { .. }))
        })
    }
}

impl Core {
    /// Whether brokers spread jobs over sites.
    pub(crate) fn takes_parts(&self) -> bool {
        self.config.strategy.nature().coallocates
    }

    /// Whether no site is wide enough for a job alone, and several are together.
    pub(super) fn is_wide(&self, job: &JobSpec) -> bool {
        let grid = &self.config.grid;
        (grid.widest() + 1..=grid.widest_job()).contains(&job.processors)
    }

    /// A broker that is there, for a job that no site is wide enough for, or none of those that are there.
    pub(super) fn broker_for_parts(&self, job: &JobSpec) -> Option<Rank> {
        let may = self.takes_parts() && job.processors <= self.config.grid.widest_job();
        Rank::of_brokers(&self.config.grid).find(|&broker| may && self.is_reachable(broker))
    }
}

impl Core {
    /// A part that began is stopped, or was lost in a crash. Of a job one site alone says what it executed, and its broker what becomes of it.
    fn interrupts_part(&mut self, has: &Has) {
        let Has { part: JobSpec { id: job, processors, .. }, of, .. } = *has;
        self.event(match of == self.site() {
            true => EventKind::Interrupted { job, processors, killed: false },
            false => EventKind::PartCompleted { job, processors, of },
        });
    }
}

impl Engine<Reporter> {
    pub(super) fn on_prepare(&mut self, now: Time, broker: Rank, attempt: Attempt, floor: u64, has: Has) {
        let part = &has.part;
        // Whoever has taken the job over since frees what was held for its parts before.
        if let Some(&known) = self.family.kept.by_job.get(&part.id)
            && known.1.epoch < attempt.epoch
        {
            self.close(now, known.0, known.1);
        }
        let Engine { core, family: site, .. } = self;
        // Another attempt for the job may be over for its broker, and the word of it still on its way.
        let is_known = site.kept.by_job.get(&part.id).is_some_and(|known| *known != (broker, attempt));
        let is_void = core.is_void_epoch(part.id, attempt.epoch);
        let may = !core.is_leaving() && !is_known && !is_void && !core.is_here(part.id);
        // Where jobs share nodes it depends on which of them have a place.
        let may = may && site.queue.takes(now, part);
        let free = if may { core.free } else { 0 };
        site.kept.is_changed = true;
        let Some(parts) = site.kept.brokers.get_mut(broker) else { return };
        let order = Order::Prepare { processors: part.processors, floor };
        let (reply, effect) = parts.heard(attempt, order, free);
        let floor = parts.floor();
        let heard = |known: &(Rank, Attempt)| known.0 != broker || known.1.number >= floor;
        site.kept.heard.retain(heard);
        if effect == Effect::Held {
            self.hold(now, broker, attempt, has);
            let site = &mut self.family;
            // The broker that asked knows.
            site.is_urgent |= site.logs.len() > 1;
        }
        self.reply(now, broker, attempt, reply);
    }

    /// A part has processors from now on.
    fn hold(&mut self, now: Time, broker: Rank, attempt: Attempt, has: Has) {
        let Engine { core, family: site, .. } = self;
        let part = has.part;
        let is_first = has.of == core.site() || core.has(Mutant::PartLearned);
        let portion =
            has.foretold.map(|Foretold { whole, predicted }| Portion { whole, predicted, is_first });
        core.free -= part.processors;
        site.now = now;
        site.queue.keep(now, part, portion);
        site.kept.has.insert((broker, attempt), has);
        site.kept.by_job.insert(part.id, (broker, attempt));
        site.tell(&told(now, &has));
        site.is_undecided = true;
        core.fresh = true;
        core.changes += 1;
    }

    pub(super) fn on_commit(&mut self, now: Time, broker: Rank, attempt: Attempt, at: Time) {
        let site = &mut self.family;
        site.kept.is_changed = true;
        let Some(parts) = site.kept.brokers.get_mut(broker) else { return };
        let (reply, effect) = parts.heard(attempt, Order::Commit, 0);
        if effect == Effect::Started {
            // Clocks differ: it waits no longer for the others than they have let it wait.
            let held = site.kept.has.get(&(broker, attempt)).map_or(now, |has| has.since);
            let at = at.min(now.saturating_add(now.since(held).max(Span::ZERO)));
            site.kept.starts.insert((at, broker, attempt));
            self.begin_due(now);
        }
        self.reply(now, broker, attempt, reply);
    }

    pub(super) fn on_abort(&mut self, now: Time, broker: Rank, attempt: Attempt) {
        let ignores = self.core.has(Mutant::PartRunsOn) && self.family.kept.runs(broker, attempt);
        if ignores {
            return;
        }
        self.close(now, broker, attempt);
    }

    /// A part does not start, or not go on.
    fn close(&mut self, now: Time, broker: Rank, attempt: Attempt) {
        self.family.kept.is_changed = true;
        let Some(parts) = self.family.kept.brokers.get_mut(broker) else { return };
        let (reply, _) = parts.heard(attempt, Order::Abort, 0);
        self.is_closed(now, broker, attempt);
        self.reply(now, broker, attempt, reply);
    }

    fn is_closed(&mut self, now: Time, broker: Rank, attempt: Attempt) {
        let Engine { core, family: site, .. } = self;
        let Some(has) = site.kept.has.remove(&(broker, attempt)) else { return };
        let (job, processors) = (has.part.id, has.part.processors);
        site.kept.starts.retain(|start| (start.1, start.2) != (broker, attempt));
        if has.began {
            core.interrupts_part(&has);
            core.outputs.push_back(Output::Stop(job));
        }
        site.kept.by_job.remove(&job);
        core.free += processors;
        site.now = now;
        site.queue.release(now, job);
        site.tell(&Change::Left { at: now, job });
        site.is_undecided = true;
        site.is_urgent = true;
        core.fresh = true;
        core.changes += 1;
        self.begin_due(now);
    }

    /// A job comes to wait here. If processors are held for a part of it, its broker has it again since, so that attempt is over, and the word
    /// of it still on its way.
    pub(super) fn comes_whole(&mut self, now: Time, job: JobId) {
        if let Some(&(broker, attempt)) = self.family.kept.by_job.get(&job) {
            self.close(now, broker, attempt);
        }
    }

    /// A job was taken over under this epoch: its parts of older ones are free, and what runs of them is stopped.
    pub(super) fn parts_are_void(&mut self, now: Time, job: JobId, epoch: u32) {
        if let Some(&(broker, attempt)) = self.family.kept.by_job.get(&job)
            && attempt.epoch < epoch
        {
            self.close(now, broker, attempt);
        }
    }

    /// Writes down what has changed of parts.
    pub(super) fn write_parts(&mut self) {
        let Engine { core, family: Reporter { kept, .. }, .. } = self;
        if std::mem::take(&mut kept.is_changed) && core.config.options.journal {
            let rows = kept.rows(core);
            kept.written.bring(core, rows);
        }
    }

    /// This site restarts. What was held is held, and what ran is lost.
    pub(super) fn remember_parts(&mut self, durable: &Durable) {
        let Engine { core, family: Reporter { kept, .. }, .. } = self;
        if core.has(Mutant::PartsForgotten) {
            return;
        }
        let grid = core.config.grid.clone();
        let read = Remembered::read(&grid, durable).expect("a journal is of the grid that it is read for");
        kept.written = Written::again(durable);
        kept.is_changed = true;
        for (broker, parts) in kept.brokers.iter_mut() {
            let broker = core.site_at(broker);
            let of_it = read.parts.iter().filter(|((by, _), _)| *by == broker);
            let of_it = of_it.map(|(&(_, attempt), &(part, _))| (attempt, part));
            let floor = read.floors.get(&broker).copied().unwrap_or(0);
            *parts = Parts::restored(of_it, BTreeMap::new(), floor);
            parts.begun_again();
        }
        for ((broker, attempt), (part, has)) in read.parts {
            match (part, has) {
                (Part::Held { .. }, Some(has)) => {
                    kept.held_before.push((Rank::of(&grid, broker), attempt, has))
                }
                // What others executed of a job ended with their processes, as everybody knows.
                (Part::Runs { .. }, Some(has)) if has.began && has.of == core.site() => {
                    core.interrupts_part(&has);
                }
                _ => {}
            }
        }
    }

    /// This site restarts: what was held has its processors again, and brokers have yet to say what becomes of it, or that they heard of
    /// ends.
    pub(super) fn resume_parts(&mut self, now: Time) {
        for (broker, attempt, has) in std::mem::take(&mut self.family.kept.held_before) {
            self.hold(now, broker, attempt, has);
        }
        let brokers: Vec<Rank> = self.family.kept.brokers.ranks().collect();
        for broker in brokers {
            self.say_parts_again(broker);
            self.awaits_word(now, broker);
        }
    }

    /// A broker is gone for good, as far as is known here, so nobody says what becomes of what is held for it. Should it come back, it hears that
    /// this part does not start.
    pub(super) fn frees_held_of(&mut self, now: Time, broker: Rank) {
        let Some(parts) = self.family.kept.brokers.get(broker) else { return };
        let held = parts.all().filter(|(_, part)| matches!(part, Part::Held { .. }));
        let held: Vec<Attempt> = held.map(|(attempt, _)| attempt).collect();
        held.into_iter().for_each(|attempt| self.close(now, broker, attempt));
    }

    /// Whether a site that is to leave has parts, or somebody who is there does not know of the end of one.
    pub(super) fn owes_parts(&self) -> bool {
        let kept = &self.family.kept;
        let is_there = |broker: Rank| self.core.presence(broker) != Presence::Gone;
        kept.processors() > 0 || kept.brokers.ranks().any(|broker| is_there(broker) && kept.waits_for(broker))
    }

    pub(super) fn can_remember_parts(&self, durable: &Durable) -> Result<(), String> {
        let read = Remembered::read(&self.core.config.grid, durable)?;
        let held = read.parts.values().map(|part| u64::from(part.0.processors())).sum::<u64>();
        let mut jobs = BTreeSet::new();
        let is_one = |has: &Has| jobs.insert(has.part.id);
        let each = read.parts.values().filter_map(|part| part.1.as_ref()).all(is_one);
        match each && held <= u64::from(self.core.processors()) {
            true => Ok(()),
            false => Err("it has parts that do not fit together".to_string()),
        }
    }

    pub(super) fn agrees_on_parts(&self, durable: &Durable) -> Result<(), String> {
        memory::agree(&self.family.kept.rows(&self.core), durable)
    }

    /// The broker knows that a part is over.
    pub(super) fn on_heard(&mut self, broker: Rank, attempt: Attempt) {
        let kept = &mut self.family.kept;
        if kept.is_over(broker, attempt) {
            kept.heard.insert((broker, attempt));
        }
        if !self.family.kept.waits_for(broker) {
            self.timers.cancel(SiteTimer::Parts(broker));
        }
    }

    /// A broker wants a job back that waits here, as it can start elsewhere.
    pub(super) fn on_fetch(&mut self, now: Time, broker: Rank, job: JobId) {
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
        let known = site.kept.by_job.get(&job).copied();
        let Some((broker, attempt)) = known.filter(|&(broker, attempt)| site.kept.runs(broker, attempt))
        else {
            // One that is not here any more was stopped while its end was on its way.
            return core.takes_parts() && core.runs_with(job).is_none();
        };
        site.kept.is_changed = true;
        site.kept.by_job.remove(&job);
        let has = site.kept.has.remove(&(broker, attempt)).expect("what runs has processors");
        let reply = site.kept.brokers[broker].ended(attempt);
        let processors = has.part.processors;
        core.free += processors;
        site.now = now;
        let whole = has.foretold.map_or(processors, |foretold| foretold.whole);
        let run_time = site.queue.part_ended(core, now, has.part, whole);
        site.tell(&match (has.foretold, run_time) {
            (None, _) => Change::Ended { at: now, job },
            (Some(_), Some(run_time)) => Change::EndedAfter { at: now, job, run_time },
            (Some(_), None) => Change::PartEnded { at: now, job },
        });
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

    fn begin_part(&mut self, now: Time, broker: Rank, attempt: Attempt) {
        let Engine { core, family: site, .. } = self;
        let Some(has) = site.kept.has.get_mut(&(broker, attempt)) else { return };
        has.began = true;
        site.kept.is_changed = true;
        let Has { part, of, hops, since, .. } = &*has;
        site.queue.part_begins(core, now, part, *since);
        let (job, processors) = (part.id, part.processors);
        core.event(match *of == core.site() {
            true => EventKind::Started { job, processors, hops: *hops },
            false => EventKind::PartStarted { job, processors, of: *of },
        });
        core.outputs.push_back(Output::Start(*part));
    }

    fn reply(&mut self, now: Time, broker: Rank, attempt: Attempt, reply: Option<Reply>) {
        if let Some(reply) = reply {
            self.core.send(broker, said(attempt, reply));
        }
        self.awaits_word(now, broker);
    }

    pub(super) fn say_parts_again(&mut self, broker: Rank) {
        let again: Vec<(Attempt, Reply)> = self.family.kept.again(broker).collect();
        for (attempt, reply) in again {
            self.core.send_again(broker, said(attempt, reply), true);
        }
    }

    /// Has what a broker is to answer said again in time, if it may be lost.
    pub(super) fn awaits_word(&mut self, now: Time, broker: Rank) {
        let timer = SiteTimer::Parts(broker);
        let is_there = matches!(self.core.presence(broker), Presence::Here | Presence::Leaving);
        if !is_there || !self.family.kept.waits_for(broker) {
            return self.timers.cancel(timer);
        }
        if let Some(retry) = self.core.config.options.retry.filter(|_| !self.timers.is_set(timer)) {
            self.timers.set(timer, now, retry);
        }
    }
}

/// What brokers are told of a part that has processors.
fn told(now: Time, has: &Has) -> Change {
    let &Has { part, since, foretold, .. } = has;
    match foretold {
        None => Change::Runs { at: now, job: part, since },
        Some(Foretold { whole, .. }) => Change::PartRuns { at: now, part, since, whole },
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

    use scheduler::{Grid, SiteId, StrategySpec};

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
        assert_eq!(started(&hear(&mut site, 3, BROKER, commit.clone())), []);
        assert_eq!(site.poll_timeout(), Some(Time::from_secs(5)));
        let begun = tell(&mut site, 5, Input::Timeout);
        let event = EventKind::PartStarted { job: JobId(1), processors: 3, of: SiteId(2) };
        assert!(begun.contains(&Output::Event(event)), "{begun:?}");
        assert_eq!(started(&begun), [(1, 3)]);
        assert_eq!(started(&hear(&mut site, 6, BROKER, commit)), []);
        let ended = tell(&mut site, 9, Input::Completed(JobId(1)));
        let over = vec![(BROKER, BrokerMessage::Over { attempt: attempt(1), ended: true })];
        assert_eq!(said(&ended), over);
        let event = EventKind::PartCompleted { job: JobId(1), processors: 3, of: SiteId(2) };
        assert!(ended.contains(&Output::Event(event)), "{ended:?}");
    }

    #[test]
    fn what_executes_of_an_attempt_that_lost_a_part_is_stopped() {
        let mut site = peer(1);
        hear(&mut site, 0, BROKER, prepare(1, 3));
        hear(&mut site, 1, BROKER, BrokerMessage::Commit { attempt: attempt(1), at: Time::ZERO });
        let stopped = hear(&mut site, 7, BROKER, BrokerMessage::Abort { attempt: attempt(1) });
        let over = vec![(BROKER, BrokerMessage::Over { attempt: attempt(1), ended: false })];
        assert_eq!(said(&stopped), over);
        assert!(stopped.contains(&Output::Stop(JobId(1))), "{stopped:?}");
        assert_eq!(site.free(), 4);
        // Its end was on its way.
        assert_eq!(said(&tell(&mut site, 8, Input::Completed(JobId(1)))), []);
    }

    /// A broker says of attempts that it never began that they do not start, to whoever names them.
    #[test]
    fn a_number_that_stands_for_one_attempt_stands_for_no_other() {
        let of_a_liar = |number: u64| Attempt { epoch: 7, ..attempt(number) };
        let abort = |number: u64| BrokerMessage::Abort { attempt: of_a_liar(number) };
        let mut site = peer(1);
        hear(&mut site, 0, BROKER, prepare(1, 3));
        assert_eq!(said(&hear(&mut site, 1, BROKER, abort(1))), []);
        let commit = BrokerMessage::Commit { attempt: attempt(1), at: Time::ZERO };
        assert_eq!(started(&hear(&mut site, 2, BROKER, commit)), [(1, 3)]);
        // The broker begins the next attempt with another number.
        let mut site = peer(1);
        let over = BrokerMessage::Over { attempt: of_a_liar(2), ended: false };
        assert_eq!(said(&hear(&mut site, 0, BROKER, abort(2))), [(BROKER, over)]);
        let refused = BrokerMessage::Refused { attempt: attempt(2) };
        assert_eq!(said(&hear(&mut site, 1, BROKER, prepare(2, 3))), [(BROKER, refused)]);
        let ready = BrokerMessage::Ready { attempt: attempt(3) };
        assert_eq!(said(&hear(&mut site, 2, BROKER, prepare(3, 3))), [(BROKER, ready)]);
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

    /// What a peer says, starts and stops after it was told something, with what it writes on a disk.
    fn durably(peer: &mut Peer, disk: &mut Durable, second: i64, input: Option<Input>) -> Vec<Output> {
        if let Some(input) = input {
            peer.handle(Time::from_secs(second), input);
        }
        let outputs: Vec<Output> = std::iter::from_fn(|| peer.poll_output()).collect();
        for output in &outputs {
            if let Output::Write(fact) = output {
                disk.apply(fact);
            }
        }
        assert_eq!(peer.agrees_with(disk), Ok(()));
        assert_eq!(disk.check(peer.config()), Ok(()));
        peer.check_invariants();
        outputs
    }

    #[test]
    fn a_site_that_begins_again_holds_what_it_held_and_says_that_what_ran_is_over() {
        let mut config = peer(1).config().clone();
        config.options.journal = true;
        let (mut disk, now) = (Durable::default(), Time::from_secs(9));
        let mut site = Peer::restore(config.clone(), &disk, Time::ZERO);
        durably(&mut site, &mut disk, 0, None);
        let of = |number: u64| Attempt { job: JobId(number), ..attempt(number) };
        let from_broker = |message| Some(Input::Message { from: BROKER, message: Message::Broker(message) });
        for number in [1, 2] {
            let part = Box::new(JobSpec { processors: 2, ..job(number, 12) });
            let prepare =
                BrokerMessage::Prepare { attempt: of(number), floor: 1, part, of: SiteId(2), hops: 1 };
            durably(&mut site, &mut disk, 1, from_broker(prepare));
        }
        let commit = BrokerMessage::Commit { attempt: of(2), at: Time::ZERO };
        let begun = durably(&mut site, &mut disk, 2, from_broker(commit));
        assert_eq!(started(&begun), [(2, 2)]);
        let mut again = Peer::restore(config.clone(), &disk, now);
        let says = said(&durably(&mut again, &mut disk, 9, None));
        let ready = (BROKER, BrokerMessage::Ready { attempt: of(1) });
        let over = (BROKER, BrokerMessage::Over { attempt: of(2), ended: false });
        assert_eq!(says, [ready, over]);
        assert_eq!(again.free(), 2, "what it holds is no other job's");
        // An old order starts nothing, and what is aborted is free.
        let commit = BrokerMessage::Commit { attempt: of(2), at: Time::ZERO };
        assert_eq!(started(&durably(&mut again, &mut disk, 10, from_broker(commit))), []);
        durably(&mut again, &mut disk, 11, from_broker(BrokerMessage::Abort { attempt: of(1) }));
        assert_eq!(again.free(), 4);
        // Rows that no site can have written are refused.
        let mut damaged = disk.clone();
        damaged.memory.values_mut().for_each(|words| words[11] = 1);
        assert!(damaged.check(&config).is_err());
    }
}
