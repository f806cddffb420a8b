//! A broker's desk: what is known of sites, and what is done with what the broker decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brokers::allocation::{Book, Patience, Site};
use brokers::{Act, Broker, Disclosure, Predictions, Sites};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::strategy::Overrun;
use scheduler::time::earlier;
use scheduler::{BrokerRule, EventKind, Grid, JobId, JobSpec, QueueKey, Span, Time};

use super::gangs::{Gangs, is_attempt};
use super::memory;
use super::message::{BrokerMessage, Change};
use super::options::{Pending, Reporting};
use super::rules;
use super::view::{Beliefs, View};
use crate::bounds::{MICROS_MAX, are_counts, is_time};
use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::{Engine, Family, Giving, InParts, Lawful, Leaving, Observed, Recovery};
use crate::experience::{Experience, lessons};
use crate::gang::Reply;
use crate::journal::{Durable, Place};
use crate::membership::failover::Failover;
use crate::message::Transfer;
use crate::message::part::Part as _;
use crate::mutant::Mutant;
use crate::rank::Rank;
use crate::table::Table;
use crate::timers::Alarm;

/// Brokers draw whom they probe from streams of their own, after those of what they choose.
const FIRST_STREAM: u64 = (1 << 33) + (1 << 32);

/// What a broker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeskTimer {
    /// The site of this rank has not answered a probe.
    Probe(Rank),
    /// The site of this rank has begun no new row.
    Anew(Rank),
    /// The broker wants to be woken.
    Wake,
    /// A site has not said whether it has processors for a part of a job, or has not sent one that can start elsewhere.
    Gangs,
    /// A job that did not start in parts waits again.
    Rest,
}

impl Alarm for DeskTimer {
    fn repeats(&self) -> bool {
        !matches!(self, DeskTimer::Wake | DeskTimer::Rest)
    }
}

/// A broker's desk.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    pub(super) grid: Arc<Grid>,
    broker: Box<dyn Broker>,
    /// What is believed of run times: learned from the ends that sites tell.
    pub(super) predictions: Predictions,
    /// What was learned of them and is written down.
    experience: Experience,
    /// Jobs that came since the last turn, where somebody predicts: not before all that is told at this instant is known.
    arrived: BTreeMap<QueueKey, JobSpec>,
    /// Jobs at the broker as users described them, where somebody predicts.
    pub(super) described: BTreeMap<JobId, JobSpec>,
    /// When it wants to be woken, as far as the timer knows.
    wakes: Option<Time>,
    /// When something was heard that may let jobs go which the broker holds; none if it has decided since.
    pub(super) news: Option<Time>,
    pub(super) rng: ChaCha8Rng,
    /// Of the sites.
    pub(super) views: Table<View>,
    /// Jobs that start in parts, or are to.
    pub(super) gangs: Gangs,
    /// How many sites are probed for each job; none if they are not.
    probes: Option<usize>,
    /// Jobs that come to the broker once sites have answered.
    probing: BTreeMap<QueueKey, Probing>,
    /// Counts requests for new rows.
    pub(super) anew: u64,
    /// Jobs that an earlier incarnation had sent, with their sites, of which there are several where one has sent a job back before it
    /// said that it had it: they may have arrived and ended unheard of.
    earlier: BTreeSet<(JobId, Rank)>,
}

/// A job for which sites are probed.
#[derive(Clone, Debug)]
struct Probing {
    job: JobSpec,
    /// Their places, with the numbers of the probes. None before.
    probes: Option<Vec<(usize, u64)>>,
}

impl Desk {
    /// What is known of the site of this place.
    pub(super) fn view_at(&mut self, place: usize) -> &mut View {
        &mut self.views[Rank::at_place(place, self.grid.brokers())]
    }

    /// The places of so many of the sites that may get the job and are there.
    fn draw(&mut self, core: &Core, now: Time, job: &JobSpec, count: usize) -> Vec<usize> {
        let sites = Shown { core, views: &mut self.views, probes: None };
        let sites = sites.known();
        let range = self.broker.admissible(now, job, &sites);
        let mut left: Vec<usize> = sites[range].iter().map(|site| site.place).collect();
        let mut drawn = BTreeSet::new();
        while drawn.len() < count && !left.is_empty() {
            drawn.insert(left.swap_remove(self.rng.random_range(0..left.len())));
        }
        drawn.into_iter().collect()
    }

    /// Takes a job that waits at the broker, as its user described it.
    fn withdraw(&mut self, job: &JobSpec) -> Option<JobSpec> {
        let believed = self.broker.withdraw(job)?;
        Some(self.described.remove(&job.id).unwrap_or(believed))
    }

    /// Corrects what is believed of jobs that execute past it.
    fn correct(&mut self, now: Time) {
        while let Some((place, _)) = self.predictions.overdue(now) {
            let rank = Rank::at_place(place, self.grid.brokers());
            self.predictions.correct(&mut self.views[rank].book);
        }
        self.views.rows_mut().for_each(|view| self.predictions.correct_shared(now, &mut view.book));
        let (views, described, gangs) = (&self.views, &self.described, &self.gangs);
        let is_there = |job: JobId| {
            views.rows().any(|view| view.book.has(job) || view.book.expected().any(|coming| coming.id == job))
        };
        self.predictions.tidy(|job| described.contains_key(&job) || gangs.has(job) || is_there(job));
    }

    /// Whether sites report to this broker.
    fn is_told(&self) -> bool {
        self.broker.needs() == Disclosure::All
    }
}

/// Whether jobs can be sent to a site.
fn is_there(core: &Core, rank: Rank) -> bool {
    core.has(Mutant::DecidesForGone) || core.is_reachable(rank)
}

/// What a broker is shown.
struct Shown<'a> {
    core: &'a Core,
    views: &'a mut Table<View>,
    /// Of which sites alone, if others were not probed.
    probes: Option<&'a [(usize, u64)]>,
}

impl Sites for Shown<'_> {
    fn known(&self) -> Vec<Site<'_>> {
        let is_probed = |place, probes: &[(usize, u64)]| probes.iter().any(|&(other, _)| other == place);
        let there = self.views.iter().filter(|&(rank, _)| is_there(self.core, rank));
        let sites = there.map(|(_, view)| Site {
            place: view.place,
            book: &view.book,
            is_candidate: self.probes.is_none_or(|probes| is_probed(view.place, probes)),
            as_of: view.as_of,
        });
        sites.collect()
    }

    fn prepare(&mut self, now: Time, overrun: Overrun) {
        self.views.rows_mut().for_each(|view| view.book.prepare(now, overrun));
    }

    fn patience(&self) -> Option<&dyn Patience> {
        self.core.patience.as_deref()
    }
}

impl Family for Desk {
    type Message = BrokerMessage;
    type Timer = DeskTimer;

    fn of(config: &PeerConfig, first: u64) -> Desk {
        let rules = rules(config);
        let grid = config.grid.clone();
        let (local, pass, number) = (config.local, config.pass, grid.rank(config.site) as u64);
        let has_queue = rules.plans() && rules.needs_reports();
        let view = |rank: Rank| {
            let place = rank.index() - grid.brokers();
            let capacity = grid.capacity(grid.at_rank(rank.index()));
            let book = Book::new(local, pass, capacity, has_queue).believing(rules.meta.estimator);
            View::new(place, if rules.plans_batches() { book.in_order_of_arrival() } else { book }, first)
        };
        let mut rng = ChaCha8Rng::seed_from_u64(config.seed);
        rng.set_stream(FIRST_STREAM + number);
        let mut broker = brokers::broker(rules, &grid, local, pass, config.seed, number);
        if let Some(external) = config.external.as_ref().filter(|_| rules.rule == BrokerRule::External) {
            broker.ask(external.broker(&grid, number));
        }
        let probes = match config.options.broker.report {
            Reporting::Probe(count) => Some(count),
            Reporting::Change | Reporting::Every(_) => None,
        };
        Desk {
            probes: probes.filter(|_| rules.needs_reports() && !rules.plans_batches()),
            probing: BTreeMap::new(),
            predictions: config.forecast.map_or(Predictions::default(), |by| Predictions::by(by.estimator())),
            experience: Experience::default(),
            arrived: BTreeMap::new(),
            described: BTreeMap::new(),
            broker,
            wakes: None,
            news: None,
            rng,
            views: Table::of(Rank::all(&grid).skip(grid.brokers()), view),
            gangs: Gangs::new(first),
            anew: first,
            earlier: BTreeSet::new(),
            grid,
        }
    }

    fn enqueue(engine: &mut Engine<Desk>, now: Time, job: JobSpec) {
        let desk = &mut engine.family;
        desk.gangs.is_news();
        match desk.probes {
            Some(_) => drop(desk.probing.insert(job.key(), Probing { job, probes: None })),
            None if desk.predictions.are_made() => drop(desk.arrived.insert(job.key(), job)),
            None => desk.broker.came(now, job),
        }
    }

    fn turn(engine: &mut Engine<Desk>, now: Time) {
        if engine.family.gangs.is_woken_in_vain() {
            return;
        }
        match engine.family.probes {
            Some(count) => engine.probe_all(now, count),
            None => {
                for job in std::mem::take(&mut engine.family.arrived).into_values() {
                    engine.came(now, job);
                }
                engine.decide(now, None);
            }
        }
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        let probing = self.probing.values().map(|probing| &probing.job);
        let waiting = self.broker.waiting().map(|job| self.described.get(&job.id).unwrap_or(job));
        probing.chain(self.arrived.values()).chain(waiting).chain(self.gangs.jobs())
    }

    fn waiting(&self) -> usize {
        self.probing.len() + self.arrived.len() + self.broker.count() + self.gangs.waiting()
    }

    fn take(engine: &mut Engine<Desk>, job: &JobSpec) -> Option<JobSpec> {
        let desk = &mut engine.family;
        let probing = desk.probing.remove(&job.key()).map(|probing| probing.job);
        let waits = probing.or_else(|| desk.arrived.remove(&job.key())).or_else(|| desk.withdraw(job));
        let waits = waits.or_else(|| desk.gangs.withdraw(job));
        desk.gangs.forget(job.id);
        if desk.gangs.rests_until().is_none() {
            engine.timers.cancel(DeskTimer::Rest);
        }
        waits
    }

    fn heard(engine: &mut Engine<Desk>, now: Time, rank: Rank, message: BrokerMessage) {
        match message {
            BrokerMessage::State { epoch, first, changes, probe } => {
                if probe > 0 {
                    engine.family.gangs.is_news();
                }
                engine.on_state(rank, epoch, first, changes, probe);
                if engine.family.broker.waits_for_room() {
                    engine.family.news = Some(now);
                    engine.set_alarm(now);
                }
            }
            BrokerMessage::Ready { attempt } => engine.on_part(now, rank, attempt, Reply::Ready),
            BrokerMessage::Refused { attempt } => engine.on_part(now, rank, attempt, Reply::Refused),
            BrokerMessage::Over { attempt, ended } => {
                engine.on_part(now, rank, attempt, Reply::Over { ended });
            }
            BrokerMessage::Missing { job } => engine.on_missing(now, rank, job),
            for_sites => engine.core.ignore(engine.core.site_at(rank), for_sites.kind()),
        }
    }

    fn fired(engine: &mut Engine<Desk>, now: Time, timer: DeskTimer) {
        engine.family.gangs.is_news();
        match timer {
            // A broker that leaves decides nothing any more.
            DeskTimer::Probe(_) | DeskTimer::Anew(_) if engine.core.is_leaving() => {
                engine.timers.cancel(timer);
            }
            DeskTimer::Wake => {
                engine.timers.cancel(timer);
                engine.family.wakes = None;
                // A turn follows; that of a broker which must ask others first, or leaves, decides nothing.
                engine.family.news = None;
                let recalls = engine.family.broker.woke(now);
                assert!(recalls.is_empty(), "what this desk gives away it gives for good: {recalls:?}");
            }
            DeskTimer::Probe(site) => {
                engine.timers.again(timer, now);
                engine.probe_again(site);
            }
            DeskTimer::Anew(site) => {
                engine.timers.again(timer, now);
                engine.ask_anew(site);
            }
            DeskTimer::Gangs => {
                engine.timers.again(timer, now);
                engine.ask_for_parts_again(now);
            }
            DeskTimer::Rest => engine.rested(now),
        }
    }

    /// What no site is wide enough for waits here for several.
    fn belongs(core: &Core, home: Option<Rank>, job: &JobSpec) -> Option<Rank> {
        let grid = &core.config.grid;
        let is_spread = grid.spreads() && job.processors <= grid.widest_job();
        (home.is_some() || is_spread).then_some(core.rank)
    }

    /// What no site is wide enough for another broker starts at several.
    fn elsewhere(core: &Core, job: &JobSpec) -> Option<Rank> {
        core.room_elsewhere(job).or_else(|| core.broker_for_parts(job))
    }

    fn routed(engine: &mut Engine<Desk>, now: Time, from: Rank, transfer: &Transfer) {
        if !engine.has_fetched(now, from, &transfer.job) {
            engine.enqueue(now, transfer.job);
        }
    }

    fn turn_out(engine: &mut Engine<Desk>, now: Time) {
        engine.begins_no_more(now);
    }

    fn after(engine: &mut Engine<Desk>, now: Time) {
        engine.write_gangs();
        engine.set_alarm(now);
    }

    fn enters(engine: &mut Engine<Desk>, now: Time, rank: Rank) {
        engine.goes_on_with(now, rank);
        engine.set_gang_timer(now);
        engine.family.gangs.is_news();
        engine.family.broker.met(now);
    }

    fn leaves(engine: &mut Engine<Desk>, now: Time, rank: Rank, why: Leaving) {
        if why == Leaving::Gone {
            return engine.forgets(rank);
        }
        engine.asks_no_more(now, rank);
        engine.timers.cancel(DeskTimer::Probe(rank));
        engine.timers.cancel(DeskTimer::Anew(rank));
        engine.core.fresh = true;
    }
}

impl Lawful for Desk {
    fn is_lawful(core: &Core, rank: Rank, message: &BrokerMessage) -> bool {
        let width = core.width_of(rank);
        let fits =
            |job: &JobSpec| core.is_job(job.processors, job.submit, job.requested) && job.processors <= width;
        let predicts_parts = || core.takes_parts() && core.config.forecast.is_some();
        let is_change = |change: &Change| {
            is_time(change.at())
                && match change {
                    Change::Joined { job, .. } | Change::JoinedBefore { job, .. } => fits(job),
                    Change::Runs { job, since, .. } => fits(job) && is_time(*since),
                    Change::PartRuns { part, since, whole, .. } => {
                        predicts_parts()
                            && fits(part)
                            && is_time(*since)
                            && (part.processors..=core.config.grid.widest_job()).contains(whole)
                    }
                    Change::PartEnded { .. } => predicts_parts(),
                    Change::EndedAfter { run_time, .. } => {
                        (0..=2 * MICROS_MAX).contains(&run_time.as_micros())
                    }
                    Change::Asked { count, .. } => are_counts(&[*count]),
                    Change::Decided { .. } | Change::Ended { .. } | Change::Left { .. } => true,
                }
        };
        match message {
            BrokerMessage::State { epoch, first, changes, probe } => {
                width > 0 && are_counts(&[*epoch, *first, *probe]) && changes.iter().all(is_change)
            }
            BrokerMessage::Ready { attempt }
            | BrokerMessage::Refused { attempt }
            | BrokerMessage::Over { attempt, .. } => core.takes_parts() && width > 0 && is_attempt(attempt),
            BrokerMessage::Missing { .. } => core.takes_parts() && width > 0,
            BrokerMessage::Known { .. }
            | BrokerMessage::Probe { .. }
            | BrokerMessage::Anew { .. }
            | BrokerMessage::Prepare { .. }
            | BrokerMessage::PreparePredicted { .. }
            | BrokerMessage::Commit { .. }
            | BrokerMessage::Abort { .. }
            | BrokerMessage::Heard { .. }
            | BrokerMessage::Fetch { .. } => false,
        }
    }

    /// A broker takes what another one had that leaves, and what it wants back from a site.
    fn takes_routed(core: &Core, job: &JobSpec) -> bool {
        let stands_in = core.membership.is_some() && core.config.options.broker.failover == Failover::Next;
        (stands_in || core.takes_parts()) && job.processors <= core.config.grid.widest_job()
    }

    fn may_grant(_core: &Core, _rank: Rank) -> bool {
        false
    }
}

impl Giving for Desk {
    fn repeat(
        _engine: &mut Engine<Desk>,
        _now: Time,
        _to: Rank,
        _transfer: &Transfer,
    ) -> Option<BrokerMessage> {
        // Jobs leave by routes only.
        None
    }

    fn voided(engine: &mut Engine<Desk>, rank: Rank, transfer: &Transfer) {
        engine.is_not_coming(rank, transfer.job.id);
    }

    fn settled(engine: &mut Engine<Desk>, now: Time, rank: Rank, transfer: &Transfer) {
        engine.has_arrived(now, rank, transfer.job.id);
    }
}

impl Recovery for Desk {
    fn put_back(engine: &mut Engine<Desk>, now: Time, job: JobSpec, _place: Place) {
        if !engine.core.has(Mutant::InboxForgotten) && !engine.family.gangs.is_apart(job.id) {
            engine.enqueue(now, job);
        }
    }

    /// Learns again what an earlier incarnation had learned of run times.
    fn remember(engine: &mut Engine<Desk>, durable: &Durable) {
        let takes_parts = engine.core.takes_parts();
        if takes_parts {
            engine.remember_gangs(durable);
        }
        let Engine { core, family: desk, .. } = engine;
        let lessons = match takes_parts {
            true => desk.experience.recall(core, lessons(durable)),
            false => desk.experience.recall(core, &durable.memory),
        };
        lessons.iter().for_each(|lesson| desk.predictions.recall(lesson));
    }

    fn can_remember(engine: &Engine<Desk>, durable: &Durable) -> Result<(), String> {
        match engine.core.takes_parts() {
            true => {
                memory::decided(&engine.family.grid, durable)?;
                Experience::can_be(&engine.core, lessons(durable))
            }
            false => Experience::can_be(&engine.core, &durable.memory),
        }
    }

    fn agrees_with(engine: &Engine<Desk>, durable: &Durable) -> Result<(), String> {
        match engine.core.takes_parts() {
            true => {
                engine.agrees_on_gangs(durable)?;
                engine.family.experience.agrees_with(&engine.core.config.grid, lessons(durable))
            }
            false => engine.family.experience.agrees_with(&engine.core.config.grid, &durable.memory),
        }
    }

    fn resume(engine: &mut Engine<Desk>, now: Time) {
        engine.ask_all_anew(now);
        engine.ask_for_parts_again(now);
        engine.set_gang_timer(now);
        engine.write_gangs();
        engine.set_alarm(now);
    }
}

impl InParts for Desk {
    fn parts_are_void(engine: &mut Engine<Desk>, now: Time, job: JobId, epoch: u32) {
        engine.gang_is_void(now, job, epoch);
    }

    fn in_parts_at(&self, rank: Rank) -> Vec<JobSpec> {
        let place = rank.place(self.grid.brokers());
        place.map_or(Vec::new(), |place| self.gangs.at(self.grid.at_rank(rank.index()), place))
    }

    fn apart(&self) -> usize {
        self.gangs.apart()
    }

    /// Its jobs that execute in parts are nobody else's.
    fn owes(engine: &Engine<Desk>) -> bool {
        engine.family.gangs.apart() > 0
    }
}

impl Observed for Desk {
    fn pooled(&self) -> impl Iterator<Item = JobId> {
        self.jobs().map(|job| job.id)
    }

    fn books(&self) -> Vec<(Rank, Vec<(JobId, bool)>)> {
        let known = self.views.iter().filter(|(_, view)| !view.is_awaited);
        known
            .map(|(rank, view)| {
                let held = view.book.held().map(|(job, since)| (job, since.is_some()));
                let expected = view.book.expected().map(|job| (job.id, false));
                (rank, held.chain(expected).collect())
            })
            .collect()
    }

    fn is_open(engine: &Engine<Desk>, timer: DeskTimer) -> bool {
        let desk = &engine.family;
        match timer {
            DeskTimer::Probe(rank) => desk.views[rank].answered < desk.views[rank].probe,
            DeskTimer::Anew(rank) => desk.views[rank].is_awaited,
            DeskTimer::Wake => desk.broker.wake_at().is_some() || desk.news.is_some(),
            DeskTimer::Gangs => desk.gangs.waits(&engine.core),
            DeskTimer::Rest => desk.gangs.rests_until().is_some(),
        }
    }
}

impl Engine<Desk> {
    /// Has the timer ring when the broker wants to be woken.
    pub(super) fn set_alarm(&mut self, now: Time) {
        let Engine { family: desk, timers, .. } = self;
        let wakes = earlier(desk.broker.wake_at(), desk.news);
        if std::mem::replace(&mut desk.wakes, wakes) == wakes {
            return;
        }
        timers.cancel(DeskTimer::Wake);
        if let Some(at) = wakes {
            timers.set(DeskTimer::Wake, now, at.since(now).max(Span::ZERO));
        }
    }

    /// Has the broker decide on each job, in queue order, for which all sites that were probed have answered or are not there any
    /// more; probes them if they were not.
    fn probe_all(&mut self, now: Time, count: usize) {
        let keys: Vec<QueueKey> = self.family.probing.keys().copied().collect();
        for key in keys {
            let Some(Probing { job, probes }) = self.family.probing.remove(&key) else { continue };
            let probes = probes.unwrap_or_else(|| self.probe(now, &job, count));
            let Engine { core, family: desk, .. } = self;
            let brokers = desk.grid.brokers();
            let is_silent = |&(place, probe): &(usize, u64)| {
                let rank = Rank::at_place(place, brokers);
                desk.views[rank].answered < probe && is_there(core, rank)
            };
            if probes.iter().any(is_silent) {
                desk.probing.insert(key, Probing { job, probes: Some(probes) });
                continue;
            }
            self.came(now, job);
            self.decide(now, Some(&probes));
            let desk = &mut self.family;
            if desk.withdraw(&job).is_some() {
                // Nobody who was probed is there any more, or wide enough.
                desk.probing.insert(key, Probing { job, probes: None });
            }
        }
    }

    /// Probes sites for a job. Returns their places, with the numbers of the probes.
    fn probe(&mut self, now: Time, job: &JobSpec, count: usize) -> Vec<(usize, u64)> {
        let Engine { core, family: desk, timers } = self;
        let brokers = desk.grid.brokers();
        let mut probes = Vec::new();
        for place in desk.draw(core, now, job, count) {
            let rank = Rank::at_place(place, brokers);
            let view = &mut desk.views[rank];
            view.probe += 1;
            probes.push((place, view.probe));
            core.send(rank, BrokerMessage::Probe { probe: view.probe });
            if let Some(retry) = core.config.options.retry {
                timers.set(DeskTimer::Probe(rank), now, retry);
            }
        }
        probes
    }

    /// A job comes to the broker, which plans with what is believed of it.
    fn came(&mut self, now: Time, job: JobSpec) {
        let Engine { core, family: desk, .. } = self;
        // One that did not start in parts comes once more.
        let is_new = !desk.gangs.has_failed(job.id);
        let believed = desk.predictions.believed(now, job);
        if desk.predictions.are_made() {
            let run_time = believed.requested;
            if is_new {
                core.event(EventKind::Predicted { job: job.id, run_time, corrections: 0 });
            }
            desk.described.insert(job.id, job);
        }
        desk.broker.came(now, believed);
    }

    /// Sends jobs where the broker says, until it holds all that are left. It is shown the sites that were probed alone, if any were.
    fn decide(&mut self, now: Time, probes: Option<&[(usize, u64)]>) {
        let Engine { core, family: desk, .. } = self;
        let counts = core.config.options.broker.pending == Pending::Count && desk.is_told();
        desk.news = None;
        // Nothing but a decision depends on it.
        if desk.broker.count() > 0 {
            desk.correct(now);
        }
        loop {
            let Engine { core, family: desk, .. } = self;
            let decided = desk.broker.decide(now, &mut Shown { core, views: &mut desk.views, probes });
            core.fell_back(desk.broker.failure());
            let (believed, place) = match decided {
                Some(Act::Place(job, place)) => (job, place),
                Some(Act::Spread(spread)) => {
                    self.spread(now, spread);
                    continue;
                }
                None => return,
            };
            let job = desk.described.remove(&believed.id).unwrap_or(believed);
            desk.gangs.forget(job.id);
            if !desk.is_told() {
                desk.predictions.forget(job.id);
            }
            let rank = Rank::at_place(place, desk.grid.brokers());
            let view = &mut desk.views[rank];
            core.event(EventKind::Allocated { job: job.id, to: core.site_at(rank), as_of: view.as_of });
            // What is there already arrives in vain.
            if counts && !view.book.has(job.id) {
                view.book.expects(believed);
            }
            let custody = core.custody_of(job.id);
            core.route(now, rank, job, custody);
        }
    }

    fn on_state(&mut self, rank: Rank, epoch: u64, first: u64, changes: Vec<Change>, probe: u64) {
        let acknowledges = self.core.config.options.retry.is_some();
        let too_early = self.core.has(Mutant::KnownTooEarly).then_some(first + changes.len() as u64);
        let Desk { views, predictions, described, gangs, .. } = &mut self.family;
        let Some(view) = views.get_mut(rank) else { return };
        let takes_parts = self.core.takes_parts();
        let keeps = |job: JobId| takes_parts && (gangs.has(job) || described.contains_key(&job));
        let mut believed = Beliefs { predictions, lessons: Vec::new(), keeps: &keeps };
        let before = (view.epoch, view.is_awaited);
        let (epoch, next) = view.hear(epoch, first, changes, &mut believed);
        let next = too_early.map_or(next, |known| known.max(next));
        view.answered = view.answered.max(probe.min(view.probe));
        let (is_awaited, is_answered) = (view.is_awaited, view.answered == view.probe);
        for lesson in believed.lessons {
            self.family.experience.note(&mut self.core, &lesson);
        }
        // What was asked for may have the number that it was expected under.
        if epoch > before.0 || (before.1 && !is_awaited) {
            self.looks_for_expected(rank);
        }
        if !is_awaited && !self.core.has(Mutant::RowAskedOn) {
            self.timers.cancel(DeskTimer::Anew(rank));
        }
        if is_answered {
            self.timers.cancel(DeskTimer::Probe(rank));
        }
        if acknowledges {
            self.core.send(rank, BrokerMessage::Known { epoch, next });
        }
    }

    /// A site has begun a new row. What it has taken is in it, or ended unheard of; of what it may have taken, its answer
    /// will say.
    fn looks_for_expected(&mut self, rank: Rank) {
        let Engine { core, family: desk, .. } = self;
        let site = core.site_at(rank);
        let out = core.ledger.transfers_out().filter(|(to, _)| *to == site);
        let out: BTreeSet<JobId> = out.map(|(_, transfer)| transfer.job.id).collect();
        let book = &mut desk.views[rank].book;
        let expected: Vec<JobId> = book.expected().map(|job| job.id).collect();
        for job in expected {
            match out.contains(&job) {
                true => drop(desk.earlier.insert((job, rank))),
                false => book.expects_no_more(job),
            }
        }
    }

    fn probe_again(&mut self, rank: Rank) {
        let Some(view) = self.family.views.get_mut(rank) else { return };
        let probe = view.probe;
        self.core.send_again(rank, BrokerMessage::Probe { probe }, true);
    }

    /// This broker restarts and knows nothing.
    fn ask_all_anew(&mut self, now: Time) {
        let Engine { core, family: desk, timers } = self;
        if !desk.is_told() {
            return;
        }
        desk.anew += 1;
        let counts = core.config.options.broker.pending == Pending::Count;
        for transfer in core.ledger.transfers_out() {
            // What may be there, and what may be on its way.
            let rank = core.rank_of(transfer.0);
            if let Some(view) = desk.views.get_mut(rank).filter(|_| counts) {
                let believed = desk.predictions.believed(now, transfer.1.job);
                view.book.expects(believed);
                desk.earlier.insert((transfer.1.job.id, rank));
            }
        }
        for (rank, view) in desk.views.iter_mut() {
            view.awaits_answer(desk.anew);
            core.send(rank, BrokerMessage::Anew { count: desk.anew });
            if let Some(retry) = core.config.options.retry {
                timers.set(DeskTimer::Anew(rank), now, retry);
            }
        }
    }

    pub(super) fn ask_anew(&mut self, rank: Rank) {
        let desk = &mut self.family;
        let count = desk.anew;
        self.core.send_again(rank, BrokerMessage::Anew { count }, true);
    }

    /// A site has the job: it told of it, or will, unless that was before this broker restarted.
    fn has_arrived(&mut self, now: Time, rank: Rank, job: JobId) {
        let desk = &mut self.family;
        if !desk.earlier.remove(&(job, rank)) {
            return;
        }
        desk.views[rank].book.expects_no_more(job);
        // What was expected there may be all that its jobs waited for.
        if desk.broker.waits_for_room() {
            desk.news = Some(now);
            self.set_alarm(now);
        }
    }

    /// A job that this broker had sent to a site is not on its way there any more.
    fn is_not_coming(&mut self, rank: Rank, job: JobId) {
        let desk = &mut self.family;
        desk.earlier.remove(&(job, rank));
        if let Some(view) = desk.views.get_mut(rank) {
            view.book.expects_no_more(job);
        }
    }

    /// A site is heard of again, which was not waited for.
    fn goes_on_with(&mut self, now: Time, rank: Rank) {
        let retry = self.core.config.options.retry;
        let Some(view) = self.family.views.get_mut(rank) else { return };
        let (awaits_row, awaits_answer) = (view.is_awaited, view.answered < view.probe);
        if awaits_row {
            self.ask_anew(rank);
        }
        if awaits_answer {
            self.probe_again(rank);
        }
        let timers = [(awaits_row, DeskTimer::Anew(rank)), (awaits_answer, DeskTimer::Probe(rank))];
        for (_, timer) in timers.into_iter().filter(|(awaits, _)| *awaits) {
            if let Some(retry) = retry {
                self.timers.set(timer, now, retry);
            }
        }
    }

    /// A site is gone, with all that it had.
    fn forgets(&mut self, rank: Rank) {
        let desk = &mut self.family;
        if !desk.is_told() {
            return;
        }
        desk.anew += 1;
        if let Some(view) = desk.views.get_mut(rank) {
            view.forget();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use scheduler::{Labels, SiteId, Span, StrategySpec};

    use super::*;
    use crate::bounds::COUNT_MAX;
    use crate::broker::options::BrokerOptions;
    use crate::config::{Options, Terms};
    use crate::message::HandOverMessage;
    use crate::{Durable, Input, Message, Output, Peer};

    pub(in crate::broker) fn config(pending: Pending) -> PeerConfig {
        let sites = [("a".to_string(), 4), ("b".to_string(), 8)];
        let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).expect("a grid");
        let second = Span::from_secs(1);
        let strategy = "broker:mpl".parse::<StrategySpec>().expect("a name").strategy;
        let options = Options {
            journal: true,
            retry: Some(second),
            heartbeat: Some(second),
            suspect_after: second.saturating_mul(10),
            lease: Some(second.saturating_mul(100)),
            broker: BrokerOptions { pending, ..BrokerOptions::default() },
            ..Options::default()
        };
        let terms = Terms { options, ..Terms::new(Arc::new(grid), strategy) };
        PeerConfig { site: SiteId(3), terms }
    }

    fn write(peer: &mut Peer, disk: &mut Durable) {
        while let Some(output) = peer.poll_output() {
            if let Output::Write(fact) = output {
                disk.apply(&fact);
            }
        }
    }

    pub(in crate::broker) fn job(id: u64, processors: u32) -> JobSpec {
        JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors,
            requested: Span::from_secs(60),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    /// A broker sends two jobs to sites of which it hears nothing any more, and is killed.
    fn begun_again(pending: Pending) -> (Peer, Durable) {
        let config = config(pending);
        let mut disk = Durable::default();
        let mut peer = Peer::restore(config.clone(), &disk, Time::ZERO);
        for job in [job(1, 4), job(2, 8)] {
            peer.handle(Time::ZERO, Input::Submitted(job));
            write(&mut peer, &mut disk);
        }
        peer.handle(Time::ZERO, Input::Turn);
        write(&mut peer, &mut disk);
        // Nobody is heard of: the third waits here.
        for second in 1..=50 {
            peer.handle(Time::from_secs(second), Input::Timeout);
            write(&mut peer, &mut disk);
        }
        peer.handle(Time::from_secs(50), Input::Submitted(job(3, 2)));
        peer.handle(Time::from_secs(50), Input::Turn);
        write(&mut peer, &mut disk);
        let mut again = Peer::restore(config, &disk, Time::from_secs(60));
        write(&mut again, &mut disk);
        (again, disk)
    }

    fn begins_a_row(peer: &mut Peer, disk: &mut Durable, site: u32) {
        let at = Time::from_secs(60);
        // Whatever it was that the broker asked.
        let asked = Change::Asked { at, count: COUNT_MAX };
        let changes = vec![asked, Change::Decided { at, started: Vec::new() }];
        let state = BrokerMessage::State { epoch: 1, first: 0, changes, probe: 0 };
        peer.handle(
            Time::from_secs(60),
            Input::Message { from: SiteId(site), message: Message::Broker(state) },
        );
        write(peer, disk);
    }

    #[test]
    fn what_waited_and_what_is_on_its_way_is_known_after_a_crash() {
        let (mut peer, mut disk) = begun_again(Pending::Count);
        assert_eq!((peer.waiting(), peer.ledger().transfers_out().count()), (1, 2));
        assert_eq!(peer.agrees_with(&disk), Ok(()));
        assert_eq!(peer.books(), [], "it knows nothing of sites");
        begins_a_row(&mut peer, &mut disk, 1);
        begins_a_row(&mut peer, &mut disk, 2);
        assert_eq!(
            peer.books(),
            [(SiteId(1), vec![(JobId(1), false)]), (SiteId(2), vec![(JobId(2), false)])]
        );
        // It arrived before the row began, and has ended since: nothing more is said of it.
        let reply = HandOverMessage::Reply { accepted: vec![1], declined: Vec::new() };
        peer.handle(
            Time::from_secs(61),
            Input::Message { from: SiteId(1), message: Message::HandOver(reply) },
        );
        write(&mut peer, &mut disk);
        assert_eq!(peer.books(), [(SiteId(1), vec![]), (SiteId(2), vec![(JobId(2), false)])]);
    }

    #[test]
    fn mutant_a_broker_that_counts_nothing_knows_nothing_of_what_is_on_its_way() {
        let (mut peer, mut disk) = begun_again(Pending::Ignore);
        begins_a_row(&mut peer, &mut disk, 1);
        assert_eq!(peer.books(), [(SiteId(1), vec![])]);
    }
}
