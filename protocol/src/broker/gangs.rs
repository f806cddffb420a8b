//! A desk's half of jobs that start at several sites at once: which attempts are open, and what is said of them.
//!
//! What a broker must not forget of attempts, and what follows from an answer, is [`crate::gang`]'s. Here are the jobs, the clock, the books
//! of the sites and the messages. A job is the broker's until all of its parts are over.
//!
//! As soon as the broker has decided, its books have the parts as jobs that execute: the next decision sees them. Books are put right
//! by the reports of sites, and at once where an attempt is given up.

use std::collections::{BTreeMap, BTreeSet};

use brokers::Spread;
use rand::RngExt as _;
use scheduler::{EventKind, Grid, JobId, JobSpec, SiteId, Span, Time};

use super::desk::{Desk, DeskTimer};
use super::memory::{self, Decided, Rows, Written};
use super::message::BrokerMessage;
use crate::bounds::{EPOCH_MAX, are_counts};
use crate::config::Interrupted;
use crate::core::Core;
use crate::engine::{Engine, Family as _};
use crate::gang::{Attempt, Decision, Decisions, Order, Reply, Settled};
use crate::journal::{Durable, Fact};
use crate::membership::Presence;
use crate::mutant::Mutant;
use crate::rank::Rank;

/// After a site had no processors for a part its job waits so long at least, and up to twice as long and four times the longest
/// answer, by lot. Two brokers that took each other's processors do not do so again and again, and the site has told why.
/// Arbitrary: well below the waits of jobs, and above most ways between sites.
const REST: Span = Span::from_secs(1);

/// So often at most. Arbitrary: 16 times that is well above what an attempt takes.
const DOUBLINGS_MAX: u32 = 4;

/// Places of sites with their processors, the site first that the job is known by.
type Places = Vec<(usize, u32)>;

/// A job with an open attempt.
#[derive(Clone, Debug)]
struct Open {
    attempt: Attempt,
    /// As its user described it.
    job: JobSpec,
    parts: Places,
    /// How long it is predicted to run, if anybody predicts.
    predicted: Option<Span>,
    /// When the sites were asked last.
    asked: Time,
    /// The longest answer so far.
    round_trip: Span,
    /// When it starts, once that is decided.
    starts: Option<Time>,
}

/// A job that waits in the queue of a site and can start elsewhere.
#[derive(Clone, Debug)]
struct Fetch {
    /// Rank of the site.
    from: Rank,
    parts: Places,
}

/// Jobs that start in parts, or are to.
#[derive(Clone, Debug)]
pub(super) struct Gangs {
    decisions: Decisions,
    open: BTreeMap<JobId, Open>,
    fetches: BTreeMap<JobId, Fetch>,
    /// Jobs that did not start, by when they wait again.
    rests: BTreeMap<(Time, JobId), JobSpec>,
    /// How many attempts in a row did not start a job of this broker.
    failed: BTreeMap<JobId, u32>,
    /// A job came that is spread already: there is nothing to decide because of it.
    came_to_start: bool,
    /// Something else happened since the last turn.
    has_news: bool,
    written: Written,
    /// What must not be forgotten may have changed since.
    is_changed: bool,
}

impl Gangs {
    /// None. Attempts are numbered from there.
    pub(super) fn new(first: u64) -> Gangs {
        Gangs {
            decisions: Decisions::new(first),
            open: BTreeMap::new(),
            fetches: BTreeMap::new(),
            rests: BTreeMap::new(),
            failed: BTreeMap::new(),
            came_to_start: false,
            has_news: false,
            written: Written::default(),
            is_changed: false,
        }
    }

    /// What must not be forgotten.
    fn rows(&self, grid: &Grid) -> Rows {
        let mut rows = Rows::new();
        for (attempt, decision) in self.decisions.decided() {
            let open = self.open.get(&attempt.job).filter(|open| open.attempt == *attempt);
            let Some(Open { parts, starts: Some(starts), .. }) = open else {
                unreachable!("{attempt:?} is decided on, and its job is open")
            };
            rows.extend(parts.iter().enumerate().map(|(place, &(site, processors))| {
                let site = grid.at_rank(grid.brokers() + site);
                let over = decision.over.get(&site).copied();
                memory::of_decided(&Decided {
                    attempt: *attempt,
                    site,
                    processors,
                    place,
                    starts: *starts,
                    over,
                })
            }));
        }
        rows
    }

    /// How many jobs execute in parts.
    pub(super) fn apart(&self) -> usize {
        self.open.values().filter(|open| open.starts.is_some()).count()
    }

    /// Whether a job executes in parts.
    pub(super) fn is_apart(&self, job: JobId) -> bool {
        self.open.get(&job).is_some_and(|open| open.starts.is_some())
    }

    /// Jobs with a part at the site of this place that is not over.
    pub(super) fn at(&self, site: SiteId, place: usize) -> Vec<JobSpec> {
        let is_there = |open: &&Open| {
            let decision = self.decisions.decided().get(&open.attempt);
            let is_over = decision.is_some_and(|decision| decision.over.get(&site) == Some(&true));
            !is_over && open.parts.iter().any(|part| part.0 == place)
        };
        self.open.values().filter(is_there).map(|open| open.job).collect()
    }

    /// A turn may have something to decide.
    pub(super) fn is_news(&mut self) {
        self.has_news = true;
    }

    /// Whether a turn has nothing to decide: all that happened is that a job came which starts in parts.
    pub(super) fn is_woken_in_vain(&mut self) -> bool {
        let came_to_start = std::mem::take(&mut self.came_to_start);
        !std::mem::take(&mut self.has_news) && came_to_start
    }

    /// Jobs that are this broker's.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.open.values().map(|open| &open.job).chain(self.rests.values())
    }

    /// How many of them do not execute.
    pub(super) fn waiting(&self) -> usize {
        self.rests.len() + self.open.values().filter(|open| open.starts.is_none()).count()
    }

    /// Takes a job that has no open attempt.
    pub(super) fn withdraw(&mut self, job: &JobSpec) -> Option<JobSpec> {
        let rests = self.rests.keys().copied().find(|&(_, id)| id == job.id)?;
        self.rests.remove(&rests)
    }

    /// A job is this broker's no more.
    pub(super) fn forget(&mut self, job: JobId) {
        self.failed.remove(&job);
    }

    /// Whether a job is this broker's, or is to become so.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.open.contains_key(&job)
            || self.fetches.contains_key(&job)
            || self.rests.keys().any(|&(_, rests)| rests == job)
    }

    /// Whether a job of this broker did not start when it was to.
    pub(super) fn has_failed(&self, job: JobId) -> bool {
        self.failed.contains_key(&job)
    }

    /// When the first job waits again that did not start.
    pub(super) fn rests_until(&self) -> Option<Time> {
        self.rests.keys().next().map(|&(at, _)| at)
    }

    /// Whether a site is asked for something until it answers.
    pub(super) fn waits(&self, core: &Core) -> bool {
        !self.fetches.is_empty() || self.again(core).next().is_some()
    }

    /// What is said again to sites that are there. Who keeps processors for a decided attempt asks by itself.
    fn again<'a>(&self, core: &'a Core) -> impl Iterator<Item = (SiteId, Attempt, Order)> + use<'a> {
        let is_there = |site: SiteId| {
            let presence = core.presence(core.rank_of(site));
            matches!(presence, Presence::Here | Presence::Leaving)
        };
        let again = self.decisions.again().into_iter();
        again.filter(move |(site, _, order)| *order != Order::Commit && is_there(*site))
    }
}

/// Whether a peer can have counted so far.
pub(super) fn is_attempt(attempt: &Attempt) -> bool {
    are_counts(&[attempt.number]) && attempt.epoch <= EPOCH_MAX
}

impl Engine<Desk> {
    /// Starts a job in parts, or asks for it first where it waits in the queue of a site.
    pub(super) fn spread(&mut self, now: Time, spread: Spread) {
        let Spread { job, parts, from } = spread;
        let Engine { core, family: desk, .. } = self;
        let brokers = desk.grid.brokers();
        let job = desk.described.remove(&job.id).unwrap_or_else(|| desk.predictions.described(job));
        if let Some(place) = from {
            desk.view_at(place).is_asked_for(now, job.id);
        }
        for &(place, processors) in &parts {
            let view = &mut desk.views[Rank::at_place(place, brokers)];
            let part = JobSpec { processors, ..job };
            view.begins(now, part, job.processors, &mut desk.predictions);
        }
        match from {
            None => self.attempt(now, job, parts),
            Some(place) => {
                let from = Rank::at_place(place, brokers);
                core.send(from, BrokerMessage::Fetch { job: job.id });
                desk.gangs.fetches.insert(job.id, Fetch { from, parts });
                self.set_gang_timer(now);
            }
        }
    }

    /// Asks all sites for processors.
    fn attempt(&mut self, now: Time, job: JobSpec, parts: Places) {
        let Engine { core, family: desk, .. } = self;
        let predicted = desk.predictions.are_made().then(|| desk.predictions.believed(now, job).requested);
        let (grid, epoch) = (&desk.grid, core.custody_of(job.id).epoch);
        let sites =
            parts.iter().map(|&(place, processors)| (grid.at_rank(grid.brokers() + place), processors));
        let sites: BTreeMap<SiteId, u32> = sites.collect();
        let orders = desk.gangs.decisions.begin(job.id, epoch, sites);
        let attempt = orders.first().expect("it has a part").1;
        let round_trip = Span::ZERO;
        let open = Open { attempt, job, parts, predicted, asked: now, round_trip, starts: None };
        desk.gangs.open.insert(job.id, open);
        self.order(orders, false);
        self.set_gang_timer(now);
    }

    /// Tells sites what was decided.
    fn order(&mut self, orders: Vec<(SiteId, Attempt, Order)>, again: bool) {
        let Engine { core, family: desk, .. } = self;
        for (site, attempt, order) in orders {
            let open = desk.gangs.open.get(&attempt.job).filter(|open| open.attempt == attempt);
            let message = match (order, open) {
                (Order::Prepare { processors, floor }, Some(open)) => {
                    let part = Box::new(JobSpec { processors, ..open.job });
                    let of = desk.grid.at_rank(desk.grid.brokers() + open.parts[0].0);
                    let hops = core.custody_of(attempt.job).hops + 1;
                    let whole = open.job.processors;
                    match open.predicted {
                        None => BrokerMessage::Prepare { attempt, floor, part, of, hops },
                        Some(run_time) => BrokerMessage::PreparePredicted {
                            attempt,
                            floor,
                            part,
                            of,
                            hops,
                            whole,
                            run_time,
                        },
                    }
                }
                (Order::Commit, Some(&Open { starts: Some(at), .. })) => {
                    BrokerMessage::Commit { attempt, at }
                }
                (Order::Abort, _) => BrokerMessage::Abort { attempt },
                (Order::Prepare { .. } | Order::Commit, _) => unreachable!("{order:?} is of an open attempt"),
            };
            core.send_again(core.rank_of(site), message, again);
        }
    }

    /// A site says what became of a part.
    pub(super) fn on_part(&mut self, now: Time, rank: Rank, attempt: Attempt, reply: Reply) {
        let Engine { core, family: desk, .. } = self;
        let site = core.site_at(rank);
        let gangs = &mut desk.gangs;
        let open = gangs.open.get_mut(&attempt.job).filter(|open| open.attempt == attempt);
        if let Some(open) = open.filter(|open| open.starts.is_none()) {
            open.round_trip = open.round_trip.max(now.since(open.asked));
        }
        let (orders, settled) = gangs.decisions.heard(site, attempt, reply);
        // The way of the last word is no longer than that of the longest question with its answer, if nothing is lost.
        if let Some(open) = gangs.open.get_mut(&attempt.job)
            && open.attempt == attempt
            && open.starts.is_none()
            && gangs.decisions.decided().contains_key(&attempt)
        {
            open.starts = Some(now.saturating_add(open.round_trip));
            gangs.failed.remove(&attempt.job);
        }
        self.family.gangs.is_changed = true;
        self.order(orders, false);
        if matches!(reply, Reply::Over { .. }) && self.core.config.options.retry.is_some() {
            self.core.send(rank, BrokerMessage::Heard { attempt });
        }
        match settled {
            Some(Settled::Ended(job)) => self.has_ended(job),
            Some(Settled::Waits { job, ended }) => {
                let kills = self.core.config.options.interrupted == Interrupted::Kill;
                self.revokes(job, &ended, kills);
                match kills {
                    true => self.has_ended(job),
                    false => self.is_given_up(now, attempt),
                }
            }
            None if !self.family.gangs.decisions.has(attempt.job) => self.is_given_up(now, attempt),
            None => {}
        }
        self.set_gang_timer(now);
    }

    /// A job did not run to its end in all of its parts, but it did at these sites. Where the first of them is among these it has said that the job
    /// is completed, as it had yet to hear of the others. That a job is given up its broker says alone: not every site has begun.
    fn revokes(&mut self, job: JobId, ended: &BTreeSet<SiteId>, killed: bool) {
        let Engine { core, family: desk, .. } = self;
        let first = desk.gangs.open.get(&job).map(|open| open.parts[0].0);
        let first = first.map(|place| desk.grid.at_rank(desk.grid.brokers() + place));
        if let Some(of) = first.filter(|of| (killed || ended.contains(of)) && !core.has(Mutant::EndStands)) {
            core.event(EventKind::Revoked { job, of, killed });
        }
    }

    /// All parts of a job are over, and it does not start again.
    fn has_ended(&mut self, job: JobId) {
        let Engine { core, family: desk, .. } = self;
        desk.gangs.open.remove(&job);
        let custody = core.custody.remove(&job).unwrap_or_default();
        core.write(Fact::Ended { job });
        core.guarded_done(job, custody);
        core.fresh = true;
    }

    /// An attempt does not start its job, which waits again after a while. Nothing if it was given up before.
    fn is_given_up(&mut self, now: Time, attempt: Attempt) {
        let desk = &mut self.family;
        if desk.gangs.open.get(&attempt.job).is_none_or(|open| open.attempt != attempt) {
            return;
        }
        let open = desk.gangs.open.remove(&attempt.job).expect("it is open");
        let Open { job, parts, round_trip, .. } = open;
        self.takes_back(now, job.id, &parts);
        let desk = &mut self.family;
        let least = REST.as_micros();
        let most = REST.saturating_mul(2).as_micros() + round_trip.saturating_mul(4).as_micros();
        let failed = desk.gangs.failed.entry(job.id).or_default();
        let most = most.saturating_mul(1 << (*failed).min(DOUBLINGS_MAX));
        *failed += 1;
        let rest = Span::from_micros(desk.rng.random_range(least..=most));
        desk.gangs.rests.insert((now.saturating_add(rest), job.id), job);
        self.set_rest_timer(now);
    }

    /// The books of sites have no parts of a job any more. Where one keeps processors, its next reports say so, and then that it does not.
    fn takes_back(&mut self, now: Time, job: JobId, parts: &Places) {
        let Desk { views, predictions, grid, .. } = &mut self.family;
        for &(place, _) in parts {
            views[Rank::at_place(place, grid.brokers())].takes_back(now, job, predictions);
        }
    }

    /// Jobs wait again that did not start.
    pub(super) fn rested(&mut self, now: Time) {
        self.timers.cancel(DeskTimer::Rest);
        while self.family.gangs.rests_until().is_some_and(|at| at <= now) {
            let (_, job) = self.family.gangs.rests.pop_first().expect("one rests");
            Desk::enqueue(self, now, job);
        }
        self.core.fresh = true;
        self.set_rest_timer(now);
    }

    /// A job is taken over under this epoch: what it has of parts under older ones does not start, or not go on.
    pub(super) fn gang_is_void(&mut self, now: Time, job: JobId, epoch: u32) {
        self.fetches_no_more(now, job);
        let gangs = &mut self.family.gangs;
        if let Some(attempt) = gangs.open.get(&job).map(|open| open.attempt).filter(|one| one.epoch < epoch) {
            gangs.is_changed = true;
            let ended = gangs.decisions.decided().get(&attempt).map(Decision::ended).unwrap_or_default();
            let orders = gangs.decisions.is_taken_over(attempt);
            self.order(orders, false);
            self.revokes(job, &ended, false);
            self.is_given_up(now, attempt);
        }
        self.set_gang_timer(now);
    }

    /// A site does not answer: it is asked for nothing, and what is not decided on and needs it is given up.
    pub(super) fn asks_no_more(&mut self, now: Time, rank: Rank) {
        let place = rank.place(self.family.grid.brokers());
        let gangs = &mut self.family.gangs;
        let needs =
            |open: &&Open| open.starts.is_none() && open.parts.iter().any(|part| Some(part.0) == place);
        let attempts: Vec<Attempt> = gangs.open.values().filter(needs).map(|open| open.attempt).collect();
        let fetched: Vec<JobId> =
            gangs.fetches.iter().filter(|(_, fetch)| fetch.from == rank).map(|(&job, _)| job).collect();
        fetched.into_iter().for_each(|job| self.fetches_no_more(now, job));
        self.give_up(now, attempts);
    }

    /// Attempts that nobody has decided on are given up.
    fn give_up(&mut self, now: Time, attempts: Vec<Attempt>) {
        for attempt in attempts {
            let orders = self.family.gangs.decisions.gives_up(attempt);
            self.order(orders, false);
            self.is_given_up(now, attempt);
        }
        self.set_gang_timer(now);
    }

    /// A broker that leaves starts nothing any more.
    pub(super) fn begins_no_more(&mut self, now: Time) {
        let preparing: Vec<Attempt> = self.family.gangs.decisions.preparing().collect();
        self.give_up(now, preparing);
    }

    /// Writes down what has changed.
    pub(super) fn write_gangs(&mut self) {
        let Engine { core, family: desk, .. } = self;
        if std::mem::take(&mut desk.gangs.is_changed) && core.config.options.journal {
            let rows = desk.gangs.rows(&desk.grid);
            desk.gangs.written.bring(core, rows);
        }
    }

    /// This broker restarts: what it decided stands.
    pub(super) fn remember_gangs(&mut self, durable: &Durable) {
        let Engine { core, family: desk, .. } = self;
        let gangs = &mut desk.gangs;
        let read =
            memory::decided(&desk.grid, durable).expect("a journal is of the grid that it is read for");
        gangs.written = Written::again(durable);
        gangs.is_changed = true;
        if core.has(Mutant::GangsForgotten) {
            return;
        }
        let mut decided: BTreeMap<Attempt, Decision> = BTreeMap::new();
        for Decided { attempt, site, processors, starts, over, .. } in read {
            let open = gangs.open.entry(attempt.job).or_insert_with(|| Open {
                attempt,
                job: durable.jobs[&attempt.job].job,
                parts: Places::new(),
                predicted: None,
                asked: starts,
                round_trip: Span::ZERO,
                starts: Some(starts),
            });
            open.parts.push((core.config.grid.rank(site) - desk.grid.brokers(), processors));
            let decision = decided.entry(attempt);
            let decision =
                decision.or_insert_with(|| Decision { sites: BTreeSet::new(), over: BTreeMap::new() });
            decision.sites.insert(site);
            decision.over.extend(over.map(|ended| (site, ended)));
        }
        gangs.decisions = Decisions::restored(gangs.decisions.next(), decided);
    }

    pub(super) fn agrees_on_gangs(&self, durable: &Durable) -> Result<(), String> {
        memory::agree(&self.family.gangs.rows(&self.family.grid), durable)
    }

    /// A job has come that was asked for: it starts where it can. Whether it was asked for.
    pub(super) fn has_fetched(&mut self, now: Time, from: Rank, job: &JobSpec) -> bool {
        let fetches = &mut self.family.gangs.fetches;
        // Nobody but that site was asked.
        if fetches.get(&job.id).is_none_or(|fetch| fetch.from != from) {
            return false;
        }
        let fetch = fetches.remove(&job.id).expect("it was asked for");
        self.family.gangs.came_to_start = true;
        self.attempt(now, *job, fetch.parts);
        true
    }

    /// A job that was asked for is not waited for any more. It left the book as it was asked for, and may wait there still, or never did: the
    /// site tells anew what it has, now or once it is heard again.
    fn fetches_no_more(&mut self, now: Time, job: JobId) {
        let Some(Fetch { from, parts }) = self.family.gangs.fetches.remove(&job) else { return };
        self.takes_back(now, job, &parts);
        let Engine { core, family: desk, timers } = self;
        desk.anew += 1;
        desk.views[from].awaits_new_row();
        if !core.is_reachable(from) {
            return;
        }
        core.send(from, BrokerMessage::Anew { count: desk.anew });
        if let Some(retry) = core.config.options.retry {
            timers.set(DeskTimer::Anew(from), now, retry);
        }
    }

    /// A job that was asked for does not wait there any more.
    pub(super) fn on_missing(&mut self, now: Time, rank: Rank, job: JobId) {
        if self.family.gangs.fetches.get(&job).is_none_or(|fetch| fetch.from != rank) {
            return;
        }
        self.fetches_no_more(now, job);
        self.family.news = Some(now);
        self.set_alarm(now);
        self.set_gang_timer(now);
    }

    /// No answer has come to what was asked.
    pub(super) fn ask_for_parts_again(&mut self, now: Time) {
        let gangs = &mut self.family.gangs;
        for open in gangs.open.values_mut().filter(|open| open.starts.is_none()) {
            open.asked = now;
        }
        let orders: Vec<_> = gangs.again(&self.core).collect();
        let fetches: Vec<(Rank, JobId)> =
            gangs.fetches.iter().map(|(&job, fetch)| (fetch.from, job)).collect();
        self.order(orders, true);
        for (from, job) in fetches {
            self.core.send_again(from, BrokerMessage::Fetch { job }, true);
        }
    }

    pub(super) fn set_gang_timer(&mut self, now: Time) {
        let timer = DeskTimer::Gangs;
        if !self.family.gangs.waits(&self.core) {
            return self.timers.cancel(timer);
        }
        if let Some(retry) = self.core.config.options.retry.filter(|_| !self.timers.is_set(timer)) {
            self.timers.set(timer, now, retry);
        }
    }

    pub(super) fn set_rest_timer(&mut self, now: Time) {
        self.timers.cancel(DeskTimer::Rest);
        if let Some(at) = self.family.gangs.rests_until() {
            self.timers.set(DeskTimer::Rest, now, at.since(now).max(Span::ZERO));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::parts::tests::{hear, peer, said, tell};
    use crate::fixtures::job;
    use crate::{Input, Output, Peer};

    const SMALL: SiteId = SiteId(1);
    const LARGE: SiteId = SiteId(2);

    /// Whom a broker asks for how many processors, and for which attempt.
    fn asked(outputs: &[Output]) -> (Vec<(SiteId, u32)>, Option<Attempt>) {
        let asked = said(outputs).into_iter().filter_map(|(to, message)| match message {
            BrokerMessage::Prepare { attempt, part, .. } => Some((to, part.processors, attempt)),
            _ => None,
        });
        let asked: Vec<(SiteId, u32, Attempt)> = asked.collect();
        let attempt = asked.first().map(|one| one.2);
        (asked.into_iter().map(|(to, processors, _)| (to, processors)).collect(), attempt)
    }

    fn desk_with_an_attempt() -> (Peer, Attempt) {
        let mut desk = peer(3);
        let (sites, attempt) = asked(&tell(&mut desk, 0, Input::Submitted(job(1, 10))));
        assert_eq!(sites, [(SMALL, 4), (LARGE, 6)]);
        (desk, attempt.expect("sites are asked"))
    }

    #[test]
    fn a_job_starts_once_all_have_processors_and_when_all_have_heard_of_it() {
        let (mut desk, attempt) = desk_with_an_attempt();
        assert_eq!(said(&hear(&mut desk, 3, LARGE, BrokerMessage::Ready { attempt })), []);
        let orders = said(&hear(&mut desk, 4, SMALL, BrokerMessage::Ready { attempt }));
        // Asking the slower of them took 4 s.
        let commit = BrokerMessage::Commit { attempt, at: Time::from_secs(8) };
        assert_eq!(orders, [(SMALL, commit.clone()), (LARGE, commit.clone())]);
        assert_eq!(desk.waiting(), 0);
        assert_eq!(desk.pooled().count(), 1, "it is the broker's until all of it has ended");
        // The word of it was lost: who is ready asks.
        assert_eq!(said(&hear(&mut desk, 9, SMALL, BrokerMessage::Ready { attempt })), [(SMALL, commit)]);
        for (second, site) in [(20, SMALL), (21, LARGE)] {
            hear(&mut desk, second, site, BrokerMessage::Over { attempt, ended: true });
        }
        assert_eq!(desk.pooled().count(), 0);
    }

    /// What the first site of a job said when its part had ended, it said before it could hear of the others.
    #[test]
    fn the_end_of_a_first_part_counts_for_nothing_if_another_one_was_lost() {
        let revoked = |outputs: &[Output]| {
            outputs.iter().any(|output| {
                let whose = EventKind::Revoked { job: JobId(1), of: LARGE, killed: false };
                matches!(output, Output::Event(kind) if *kind == whose)
            })
        };
        for (ends, lost, is_revoked) in [(LARGE, SMALL, true), (SMALL, LARGE, false)] {
            for ends_first in [false, true] {
                let (mut desk, attempt) = desk_with_an_attempt();
                for site in [SMALL, LARGE] {
                    hear(&mut desk, 1, site, BrokerMessage::Ready { attempt });
                }
                let mut words = [(ends, true), (lost, false)];
                if !ends_first {
                    words.reverse();
                }
                let [first, last] = words
                    .map(|(site, ended)| hear(&mut desk, 9, site, BrokerMessage::Over { attempt, ended }));
                assert!(!revoked(&first), "not before all parts are over");
                assert_eq!(revoked(&last), is_revoked);
                assert_eq!(desk.waiting(), 1);
            }
        }
    }

    #[test]
    fn a_job_that_a_site_has_no_processors_for_starts_nowhere_and_is_tried_again_after_a_rest() {
        let (mut desk, attempt) = desk_with_an_attempt();
        assert_eq!(said(&hear(&mut desk, 1, LARGE, BrokerMessage::Ready { attempt })), []);
        let abort = BrokerMessage::Abort { attempt };
        let orders = said(&hear(&mut desk, 1, SMALL, BrokerMessage::Refused { attempt }));
        assert_eq!(orders, [(SMALL, abort.clone()), (LARGE, abort.clone())]);
        assert_eq!(desk.waiting(), 1);
        // One that says that it is ready after that is told the same.
        assert_eq!(said(&hear(&mut desk, 1, LARGE, BrokerMessage::Ready { attempt })), [(LARGE, abort)]);
        let rests = desk.poll_timeout().expect("it rests");
        let most = Time::from_secs(1) + Span::from_secs(6);
        assert!(Time::from_secs(2) <= rests && rests <= most, "{rests}");
        let (sites, next) = asked(&tell(&mut desk, 7, Input::Timeout));
        assert_eq!(sites, [(SMALL, 4), (LARGE, 6)]);
        assert!(next.expect("it is tried again").number > attempt.number);
    }
}
