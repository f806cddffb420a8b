//! A broker that learns: its dispatcher, and what it must hear of sites before it counts on what it knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use brokers::Broker as _;
use brokers::learning::{Dispatcher, Efficiency, Requested};
use scheduler::strategy::opaque::Growth;
use scheduler::{EventKind, Grid, JobId, JobSpec, Span, Time};

use super::memory::{self, Memory};
use super::message::{Executed, Held, OpaqueMessage};
use crate::bounds::{are_counts, is_time};
use crate::config::PeerConfig;
use crate::core::{Core, Reason};
use crate::engine::{Engine, Family, Giving, InParts, Lawful, Leaving, Observed, Recovery};
use crate::experience::{Experience, lessons};
use crate::journal::Durable;
use crate::message::Transfer;
use crate::message::part::Part as _;
use crate::mutant::Mutant;
use crate::rank::Rank;
use crate::table::Table;
use crate::timers::Alarm;

/// What a broker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeskTimer {
    /// The site of this rank has not said which jobs it has.
    Anew(Rank),
    /// The site of this rank has not answered whether a job comes back.
    Recall(Rank),
    /// A job has waited for its limit.
    Limit,
}

impl Alarm for DeskTimer {
    fn repeats(&self) -> bool {
        !matches!(self, DeskTimer::Limit)
    }
}

/// A broker's desk. Sites are told apart by their places: ranks from the first that has processors.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    dispatcher: Dispatcher,
    /// What was learned of run times and is written down.
    experience: Experience,
    estimates: Requested,
    brokers: usize,
    /// Jobs that are at a site or on their way there.
    given: BTreeMap<JobId, Given>,
    /// Jobs that were called back, with whether the site has said that it has none of it.
    called: BTreeMap<JobId, bool>,
    /// A site need not be asked any more whether a job comes back.
    is_answered: bool,
    asked: Table<Asked>,
    /// Ranks of sites to ask which jobs they have, as some that were on their way there are not any more.
    to_ask: BTreeSet<Rank>,
    /// Counts questions which jobs a site has.
    count: u64,
    /// Limits of waits may be others than before.
    is_moved: bool,
    /// Something happened that the rule may decide by. Without that it is not asked again, or those that draw would draw.
    is_awake: bool,
    /// Whether it is written down that the rule is in its main phase.
    is_main: bool,
    /// Whether it is written down that nothing happened.
    rests: bool,
    /// Whether a site took jobs as it was looked at last; none in an incarnation that has not looked.
    took: Table<Option<bool>>,
    /// The rule was asked while a site that takes jobs had not said which it has.
    is_missing: bool,
}

/// A job that is at a site, or on its way there.
#[derive(Clone, Copy, Debug)]
struct Given {
    /// How often it will have changed sites.
    hops: u32,
    /// Number of the newest question to the site when it was given or, once it is known to be there, when that was heard.
    asked: u64,
}

/// What is awaited of a site.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// Number of the newest question.
    number: u64,
    /// Whether it is open.
    is_open: bool,
    /// Jobs that the answer has named so far.
    heard: BTreeSet<JobId>,
    /// Jobs that ended there since it is open. An answer that was overtaken by that names them still.
    ended: BTreeSet<JobId>,
}

impl Desk {
    fn go_on(&mut self, grid: &Grid, durable: &Durable, is_forgetful: bool) {
        let memory = Memory::read(grid, durable).expect("a journal is of the grid that it is read for");
        let learned = |rank| memory.learned.get(&grid.at_rank(rank)).copied().unwrap_or_default();
        let efficiency = Efficiency::from_sites((self.brokers..grid.len()).map(learned).collect());
        self.dispatcher.restore(efficiency).expect("a journal is of the grid that it is read for");
        for (job, times) in memory.recalled_jobs {
            self.dispatcher.remember_job(job, times);
        }
        for (site, times) in memory.recalled_from {
            self.dispatcher.remember_site(grid.rank(site) - self.brokers, times);
        }
        self.is_main = memory.is_main;
        if self.is_main {
            self.dispatcher.begin_main();
        }
        if !is_forgetful {
            for (&of, words) in &memory.known {
                self.dispatcher.recollect(of, words).expect("a journal is of the rule that it is read for");
            }
        }
        let out: BTreeSet<JobId> =
            durable.ledger.transfers_out().map(|(_, transfer)| transfer.job.id).collect();
        for (job, placed) in memory.placed {
            self.dispatcher.was_placed(placed, !out.contains(&job));
            if placed.at.is_some_and(|at| at.is_called) {
                self.called.insert(job, false);
            }
        }
        self.rests = memory.rests;
        self.took.rows_mut().for_each(|took| *took = None);
    }

    /// Writes down what changed since it was asked last.
    fn write_changes(&mut self, core: &mut Core) {
        for change in self.dispatcher.changes() {
            core.write(memory::changed(change));
        }
        // Another incarnation does not know that a site came which jobs waited for, nor of what the rule was not asked.
        let is_any_away = self.dispatcher.count() > 0 && self.took.rows().any(|took| *took == Some(false));
        let rests = !self.is_to_be_asked() && !is_any_away && core.orphaned().next().is_none();
        if self.rests != rests {
            self.rests = rests;
            core.write(memory::rests(rests));
        }
    }

    /// Whether the rule is to be asked once more, now or when the sites that it did without have answered.
    fn is_to_be_asked(&self) -> bool {
        self.is_awake || self.is_missing
    }

    fn compare(&self, grid: &Grid, durable: &Durable) -> Result<(), String> {
        let memory = Memory::read(grid, durable)?;
        let (known, placed) = self.dispatcher.all_known();
        if let Some(difference) = difference(&placed, &memory.placed) {
            return Err(format!("a job is elsewhere than where it is written down: {difference}"));
        }
        if let Some(difference) = difference(&known, &self.dispatcher.known_by(&memory.known)) {
            return Err(format!("the rule knows something else than what is written down: {difference}"));
        }
        if self.is_to_be_asked() && memory.rests {
            return Err("the rule is to be asked, by the journal it is not".to_owned());
        }
        Ok(())
    }

    /// The limit of a job, of a site or of all has grown.
    fn grew(&self, core: &mut Core, job: JobId, place: usize) {
        core.write(match self.dispatcher.options().growth {
            Growth::Job => memory::recalled_job(job, self.dispatcher.recalls_of(job)),
            Growth::Site | Growth::All => {
                memory::recalled_from(core.site_at(self.rank_at(place)), self.dispatcher.recalls_from(place))
            }
        });
    }

    /// How often a job was called back need not be known any more.
    fn grows_no_more(&self, core: &mut Core, job: JobId) {
        if self.dispatcher.options().growth == Growth::Job && self.dispatcher.recalls_of(job) > 0 {
            core.write(memory::recalled_job(job, 0));
        }
    }

    /// Forgets a job that is nowhere any more, as far as this broker is to know.
    fn forget(&mut self, core: &mut Core, job: JobId) {
        self.grows_no_more(core, job);
        self.dispatcher.forget(job);
        self.took_from_site(job);
    }

    /// A job is on its way to a site.
    fn gave(&mut self, transfer: &Transfer, rank: Rank) {
        let given = Given { hops: transfer.hops, asked: self.asked[rank].number };
        self.given.insert(transfer.job.id, given);
    }

    /// A job is at no site, as far as is known.
    fn took_from_site(&mut self, job: JobId) {
        self.given.remove(&job);
        self.is_not_called(job);
        self.is_moved = true;
        self.is_awake = true;
    }

    /// A job is not called back, or not any more; whether it was.
    fn is_not_called(&mut self, job: JobId) -> bool {
        let was = self.called.remove(&job).is_some();
        self.is_answered |= was;
        was
    }

    /// The place of a site, by which the dispatcher knows it.
    fn place(&self, rank: Rank) -> usize {
        rank.index() - self.brokers
    }

    fn rank_at(&self, place: usize) -> Rank {
        Rank::at_place(place, self.brokers)
    }

    /// Jobs that a site was asked to give back and has said nothing of.
    fn unanswered(&self, rank: Rank) -> Vec<JobId> {
        let place = self.place(rank);
        let open = self.called.iter().filter(|(_, is_answered)| !**is_answered).map(|(&job, _)| job);
        open.filter(|&job| self.dispatcher.where_is(job).is_some_and(|(_, at, _)| at == place)).collect()
    }
}

/// The first thing that two tables say otherwise, if there is one.
fn difference<K: Ord + Debug, V: PartialEq + Debug>(
    one: &BTreeMap<K, V>,
    other: &BTreeMap<K, V>,
) -> Option<String> {
    let mut keys = one.keys().chain(other.keys());
    let key = keys.find(|key| one.get(key) != other.get(key))?;
    Some(format!("{key:?} {:?}, {:?}", one.get(key), other.get(key)))
}

impl Family for Desk {
    type Message = OpaqueMessage;
    type Timer = DeskTimer;

    fn of(config: &PeerConfig, first: u64) -> Desk {
        let options = *config.strategy.dispatch().expect("a broker before opaque sites");
        let grid = &config.grid;
        let sizes = &grid.sizes()[grid.brokers()..];
        let number = grid.rank(config.site) as u64;
        let mut dispatcher = Dispatcher::new(&options, sizes, config.seed, number);
        if config.options.journal {
            dispatcher.keep_diary();
        }
        if let Some(forecast) = config.forecast {
            dispatcher.predict_by(forecast.estimator());
        }
        let sites = Rank::all(grid).skip(grid.brokers());
        let prices = (grid.brokers()..grid.len()).map(|rank| grid.site(grid.at_rank(rank)).price);
        Desk {
            dispatcher,
            experience: Experience::default(),
            estimates: Requested::at_prices(prices),
            brokers: grid.brokers(),
            given: BTreeMap::new(),
            called: BTreeMap::new(),
            is_answered: false,
            asked: Table::of(sites.clone(), |_| Asked::default()),
            to_ask: BTreeSet::new(),
            count: first,
            is_moved: false,
            is_awake: false,
            is_main: false,
            rests: false,
            took: Table::of(sites, |_| Some(true)),
            is_missing: false,
        }
    }

    fn enqueue(engine: &mut Engine<Desk>, now: Time, job: JobSpec) {
        engine.take_in(now, job);
    }

    fn turn(engine: &mut Engine<Desk>, now: Time) {
        engine.dispatch(now);
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.dispatcher.waiting()
    }

    fn waiting(&self) -> usize {
        self.dispatcher.count()
    }

    fn take(engine: &mut Engine<Desk>, job: &JobSpec) -> Option<JobSpec> {
        engine.family.grows_no_more(&mut engine.core, job.id);
        engine.family.dispatcher.withdraw(job)
    }

    fn heard(engine: &mut Engine<Desk>, now: Time, rank: Rank, message: OpaqueMessage) {
        match message {
            OpaqueMessage::Ended { jobs } => engine.on_ended(now, rank, &jobs),
            OpaqueMessage::Refused { job, started } => engine.on_refused(rank, job, started),
            OpaqueMessage::Have { count, all, jobs } => engine.on_have(now, rank, count, all, &jobs),
            for_sites => engine.core.ignore(engine.core.site_at(rank), for_sites.kind()),
        }
    }

    fn fired(engine: &mut Engine<Desk>, now: Time, timer: DeskTimer) {
        match timer {
            DeskTimer::Limit => {
                engine.timers.cancel(timer);
                engine.call_back(now);
            }
            // A broker that leaves decides nothing any more.
            DeskTimer::Anew(_) | DeskTimer::Recall(_) if engine.core.is_leaving() => {
                engine.timers.cancel(timer);
            }
            DeskTimer::Anew(site) => {
                engine.timers.again(timer, now);
                engine.ask_anew(site, true);
            }
            DeskTimer::Recall(site) => {
                engine.timers.again(timer, now);
                engine.recall_again(site);
            }
        }
    }

    fn belongs(core: &Core, home: Option<Rank>, _job: &JobSpec) -> Option<Rank> {
        home.map(|_| core.rank)
    }

    fn after(engine: &mut Engine<Desk>, now: Time) {
        engine.ask_where_void(now);
        engine.watch_limits(now);
        engine.stop_asking();
        if engine.core.config.options.journal {
            engine.family.write_changes(&mut engine.core);
        }
    }

    fn superseded(engine: &mut Engine<Desk>, job: JobId) {
        engine.means_nothing(job);
    }

    fn enters(engine: &mut Engine<Desk>, now: Time, rank: Rank) {
        engine.asks(now, rank);
    }

    fn leaves(engine: &mut Engine<Desk>, _now: Time, rank: Rank, _why: Leaving) {
        engine.timers.cancel(DeskTimer::Anew(rank));
        engine.timers.cancel(DeskTimer::Recall(rank));
    }
}

impl Lawful for Desk {
    fn is_lawful(core: &Core, rank: Rank, message: &OpaqueMessage) -> bool {
        let processors = core.processors_of(rank);
        let is_executed = |job: &Executed| {
            is_time(job.queued) && is_time(job.ended) && job.queued <= job.started && job.started <= job.ended
        };
        let is_held = |held: &Held| {
            let job = &held.job;
            core.is_job(job.processors, job.submit, job.requested)
                && job.processors <= processors
                && is_time(held.queued)
                && held.started.is_none_or(is_time)
        };
        processors > 0
            && match message {
                OpaqueMessage::Ended { jobs } => jobs.iter().all(is_executed),
                OpaqueMessage::Refused { started, .. } => started.is_none_or(is_time),
                OpaqueMessage::Have { count, jobs, .. } => are_counts(&[*count]) && jobs.iter().all(is_held),
                OpaqueMessage::Give { .. }
                | OpaqueMessage::Known { .. }
                | OpaqueMessage::Recall { .. }
                | OpaqueMessage::Anew { .. } => false,
            }
    }

    fn takes_routed(core: &Core, job: &JobSpec) -> bool {
        job.processors <= core.config.grid.widest()
    }
}

impl Giving for Desk {
    fn was_in_vain(engine: &mut Engine<Desk>, _now: Time, transfer: &Transfer) {
        engine.means_nothing(transfer.job.id);
    }

    fn repeat(engine: &mut Engine<Desk>, _now: Time, to: Rank, transfer: &Transfer) -> Option<OpaqueMessage> {
        let floor = engine.core.ledger.floor_to(engine.core.site_at(to));
        Some(OpaqueMessage::Give { transfers: vec![*transfer], floor })
    }

    fn settled(engine: &mut Engine<Desk>, now: Time, _rank: Rank, transfer: &Transfer) {
        engine.has_arrived(now, transfer);
    }

    /// A job that was on its way to a site is not any more: it ended there or elsewhere, or is another's.
    fn voided(engine: &mut Engine<Desk>, rank: Rank, transfer: &Transfer) {
        let desk = &mut engine.family;
        if desk.given.get(&transfer.job.id).is_some_and(|given| given.hops == transfer.hops) {
            desk.to_ask.insert(rank);
        }
    }
}

impl Recovery for Desk {
    /// What was learned in an earlier incarnation, and how far the rule and limits were.
    fn remember(engine: &mut Engine<Desk>, durable: &Durable) {
        let Engine { core, family: desk, .. } = engine;
        let lessons = desk.experience.recall(core, lessons(durable));
        lessons.iter().for_each(|lesson| desk.dispatcher.recall_lesson(lesson));
        let is_forgetful = core.has(Mutant::RuleForgotten);
        desk.go_on(&core.config.grid, durable, is_forgetful);
    }

    fn can_remember(engine: &Engine<Desk>, durable: &Durable) -> Result<(), String> {
        Experience::can_be(&engine.core, lessons(durable))?;
        let memory = Memory::read(&engine.core.config.grid, durable)?;
        let mut dispatcher = engine.family.dispatcher.clone();
        memory.known.iter().try_for_each(|(&of, words)| dispatcher.recollect(of, words))
    }

    fn agrees_with(engine: &Engine<Desk>, durable: &Durable) -> Result<(), String> {
        let grid = &engine.core.config.grid;
        engine.family.experience.agrees_with(grid, lessons(durable))?;
        engine.family.compare(grid, durable)
    }

    fn resume(engine: &mut Engine<Desk>, now: Time) {
        engine.ask_all_anew(now);
    }
}

impl InParts for Desk {}

impl Observed for Desk {
    fn pooled(&self) -> impl Iterator<Item = JobId> {
        self.jobs().map(|job| job.id)
    }

    /// Of no job does it say that it executes.
    fn books(&self) -> Vec<(Rank, Vec<(JobId, bool)>)> {
        let known = self.asked.iter().filter(|(_, asked)| !asked.is_open);
        let jobs = |rank| self.dispatcher.jobs_at(self.place(rank)).map(|job| (job, false)).collect();
        known.map(|(rank, _)| (rank, jobs(rank))).collect()
    }

    fn efficiencies(&self) -> Vec<(Rank, f64)> {
        let learned = self.dispatcher.efficiency();
        (0..learned.sites()).map(|place| (self.rank_at(place), learned.of(place))).collect()
    }

    fn is_open(engine: &Engine<Desk>, timer: DeskTimer) -> bool {
        let desk = &engine.family;
        match timer {
            DeskTimer::Anew(rank) => desk.asked[rank].is_open,
            DeskTimer::Recall(rank) => !desk.unanswered(rank).is_empty(),
            DeskTimer::Limit => desk.dispatcher.wake_at().is_some(),
        }
    }

    fn check(engine: &Engine<Desk>) {
        let Engine { core, family: desk, .. } = engine;
        for job in desk.dispatcher.waiting() {
            assert!(core.is_here(job.id), "job {} waits at a broker that does not own it", job.id);
        }
        // What was taken over and fits nobody who is there is put aside, and comes in once somebody is wide enough.
        let aside: BTreeSet<JobId> = core.orphaned().map(|job| job.id).collect();
        for job in desk.given.keys().filter(|job| !aside.contains(job)) {
            assert!(!core.is_here(*job), "job {job} is at a site, and its broker owns it");
        }
    }
}

impl Engine<Desk> {
    /// A job comes to this broker: a new one, or one that was at a site.
    fn take_in(&mut self, now: Time, job: JobSpec) {
        let Engine { core, family: desk, .. } = self;
        desk.given.remove(&job.id);
        (desk.is_moved, desk.is_awake) = (true, true);
        let is_called = desk.is_not_called(job.id);
        let mut is_by_itself = false;
        let Some((_, place, _)) = desk.dispatcher.where_is(job.id) else {
            return desk.dispatcher.came(now, job);
        };
        let site = core.site_at(desk.rank_at(place));
        let before = desk.dispatcher.efficiency().learned(place);
        // What was taken over did not come back from there.
        let custody = core.custody_of(job.id);
        if custody.hops == 0 && custody.bounces == 0 {
            desk.dispatcher.failed(job.id, place);
        } else if is_called && desk.dispatcher.recalled(job.id, place) {
            core.event(EventKind::Recalled { job: job.id, from: site });
            desk.grew(core, job.id, place);
        } else {
            desk.dispatcher.returned(job.id, place);
            is_by_itself = true;
        }
        let learned = desk.dispatcher.efficiency().learned(place);
        if learned != before {
            core.write(memory::learned(site, learned));
        }
        if is_by_itself {
            // A site that gives jobs back leaves, maybe; then it does not answer, and gets no more.
            let rank = core.rank_of(site);
            self.asks(now, rank);
        }
    }

    /// Gives jobs that wait to sites, as the rule has it.
    fn dispatch(&mut self, now: Time) {
        let Engine { core, family: desk, .. } = self;
        let (mut is_any_open, mut is_any_silent) = (false, false);
        for (rank, asked) in desk.asked.iter() {
            let place = rank.index() - desk.brokers;
            let takes = core.is_reachable(rank);
            let is_silent = takes && asked.is_open;
            let is_open = takes && !is_silent;
            // An earlier incarnation that rested while jobs waited left all sites taking jobs.
            let took = desk.took[rank].replace(takes).unwrap_or(true);
            // That a site is asked which jobs it has is no news. That it has answered is, if it was decided without it.
            let has_answered = is_open && took && !desk.dispatcher.slots().is_available(place);
            desk.is_awake |= took != takes || (has_answered && desk.is_missing);
            desk.dispatcher.slots_mut().set_available(place, is_open);
            desk.dispatcher.slots_mut().set_there(place, takes);
            is_any_open |= is_open;
            is_any_silent |= is_silent;
        }
        desk.is_missing &= is_any_silent;
        // Where no site can be given anything there is nothing to ask; a rule could take that for sites that are full.
        if !desk.is_awake || !is_any_open {
            return self.watch_limits(now);
        }
        desk.is_awake = false;
        desk.is_missing |= is_any_silent;
        loop {
            let decided = desk.dispatcher.decide(now, &mut desk.estimates);
            core.predicted(desk.dispatcher.predictions());
            let Some(act) = decided else { break };
            let (job, place) = act.placed();
            let (rank, custody) = (desk.rank_at(place), core.custody_of(job.id));
            core.event(EventKind::Allocated { job: job.id, to: core.site_at(rank), as_of: None });
            let transfer = core.grant_transfer(now, rank, job, custody, Reason::LENT);
            desk.gave(&transfer, rank);
            let floor = core.ledger.floor_to(core.site_at(rank));
            core.send(rank, OpaqueMessage::Give { transfers: vec![transfer], floor });
            desk.is_moved = true;
        }
        if desk.dispatcher.is_main() && !std::mem::replace(&mut desk.is_main, true) {
            core.write(memory::main_phase());
        }
        self.watch_limits(now);
    }

    /// A site has a job that was given to it.
    fn has_arrived(&mut self, now: Time, transfer: &Transfer) {
        let Engine { core, family: desk, .. } = self;
        let job = transfer.job.id;
        let Some((_, place, _)) = desk.dispatcher.where_is(job) else { return };
        let rank = desk.rank_at(place);
        let newest = desk.asked[rank].number;
        // Otherwise it came back since, and may be out again.
        let Some(given) = desk.given.get_mut(&job).filter(|given| given.hops == transfer.hops) else {
            return;
        };
        let was_asked_meanwhile = std::mem::replace(&mut given.asked, newest) != newest;
        desk.dispatcher.queued(now, job, place);
        desk.is_moved = true;
        if desk.called.get(&job) == Some(&false) {
            // It was too early to call it back.
            core.send(rank, OpaqueMessage::Recall { job });
        }
        if was_asked_meanwhile {
            // It may have ended there already, in an earlier incarnation of the site or to one of this broker.
            self.asks(now, rank);
        }
    }

    /// A copy of a job is void. If one is counted at a site, that may have declined it, has it for another and would not tell
    /// of its end, or has just given it back.
    fn means_nothing(&mut self, job: JobId) {
        let desk = &mut self.family;
        if let Some((_, place, _)) = desk.dispatcher.where_is(job)
            && !self.core.has(Mutant::DropUntold)
        {
            desk.to_ask.insert(desk.rank_at(place));
        }
    }

    fn ask_where_void(&mut self, now: Time) {
        for rank in std::mem::take(&mut self.family.to_ask) {
            self.asks(now, rank);
        }
    }

    /// Jobs of this broker ended.
    fn on_ended(&mut self, now: Time, rank: Rank, jobs: &[Executed]) {
        for ended in jobs {
            self.has_ended(now, rank, ended);
        }
        if self.core.config.options.retry.is_some() {
            let jobs = jobs.iter().map(|ended| ended.job).collect();
            self.core.send(rank, OpaqueMessage::Known { jobs });
        }
    }

    fn has_ended(&mut self, now: Time, rank: Rank, ended: &Executed) {
        let Engine { core, family: desk, .. } = self;
        let Executed { job, queued, started, ended } = *ended;
        let place = desk.place(rank);
        if desk.asked[rank].is_open {
            desk.asked[rank].ended.insert(job);
        }
        let Some((_, _, scheduled)) = desk.dispatcher.where_is(job).filter(|&(_, at, _)| at == place) else {
            // It is known, or was given to another site since, or nothing of it is known in this incarnation.
            if desk.dispatcher.is_unseen(job) {
                desk.forget(core, job);
            }
            return;
        };
        // Each of the two is by one clock, so that it does not matter how far these differ.
        let (here, there) = (now.since(scheduled), ended.since(queued));
        let on_its_way = Span::from_micros(here.as_micros().saturating_sub(there.as_micros()));
        desk.dispatcher.measured(job, place, queued, started);
        desk.grows_no_more(core, job);
        let finished = desk.dispatcher.finished(now, job, place, ended.since(started), on_its_way);
        let Some(finished) = finished else { return };
        assert!(finished.cancel.is_empty(), "rules that make copies are refused");
        let site = core.site_at(rank);
        core.write(memory::learned(site, desk.dispatcher.efficiency().learned(place)));
        if let Some(lesson) = finished.lesson {
            desk.experience.note(core, &lesson);
        }
        #[expect(clippy::cast_possible_truncation, reason = "efficiency is within [-1, 1]")]
        let efficiency_millionths = (finished.step.efficiency * 1e6).round() as i32;
        let times = finished.times;
        core.event(EventKind::Learned {
            job,
            of: site,
            execution: times.execution,
            queue: times.queue,
            transfer: times.transfer,
            overhead: times.overhead,
            efficiency_millionths,
        });
        desk.forget(core, job);
        core.fresh = true;
    }

    /// Sees to it that somebody is called back in time.
    fn watch_limits(&mut self, now: Time) {
        let Engine { family: desk, timers, .. } = self;
        if !std::mem::take(&mut desk.is_moved) {
            return;
        }
        timers.cancel(DeskTimer::Limit);
        if let Some(next) = desk.dispatcher.wake_at() {
            timers.set(DeskTimer::Limit, now, next.since(now).max(Span::ZERO));
        }
    }

    /// Calls those back that have waited for their limit. Before, everything else of this instant has happened: what
    /// starts as its limit ends stays.
    fn call_back(&mut self, now: Time) {
        let Engine { core, family: desk, timers } = self;
        desk.is_moved = true;
        for (job, place) in desk.dispatcher.woke(now) {
            let rank = desk.rank_at(place);
            desk.called.insert(job, false);
            // It may not have arrived; and whoever does not answer is asked when it is heard of.
            if core.ledger.hops_out(job).is_none() && core.is_reachable(rank) {
                core.send(rank, OpaqueMessage::Recall { job });
            }
            if let Some(retry) = core.config.options.retry
                && core.is_reachable(rank)
                && !timers.is_set(DeskTimer::Recall(rank))
            {
                timers.set(DeskTimer::Recall(rank), now, retry);
            }
        }
    }

    fn recall_again(&mut self, rank: Rank) {
        let Engine { core, family: desk, timers } = self;
        let jobs = desk.unanswered(rank);
        if jobs.is_empty() {
            return timers.cancel(DeskTimer::Recall(rank));
        }
        for job in jobs {
            if core.ledger.hops_out(job).is_none() {
                core.send_again(rank, OpaqueMessage::Recall { job }, true);
            }
        }
    }

    /// A site does not give a job back.
    fn on_refused(&mut self, rank: Rank, job: JobId, started: Option<Time>) {
        let Engine { core, family: desk, .. } = self;
        let place = desk.place(rank);
        if desk.dispatcher.where_is(job).is_none_or(|(_, at, _)| at != place) {
            return;
        }
        match started {
            Some(_) if core.has(Mutant::RefusalForgotten) => {
                desk.called.remove(&job);
                desk.is_awake = desk.dispatcher.recalled(job, place);
            }
            Some(started) => {
                desk.dispatcher.started(started, job, place);
                desk.is_not_called(job);
            }
            // It is on its way here, or its end is being told.
            None => {
                if let Some(has_none) = desk.called.get_mut(&job) {
                    *has_none = true;
                    desk.is_answered = true;
                }
            }
        }
    }

    /// Stops asking sites that have answered for all jobs that they were asked for, in whatever way. A timer that went on would
    /// ask for the next one after what its interval has grown to, and count as an open question until then.
    fn stop_asking(&mut self) {
        let Engine { core, family: desk, timers } = self;
        if !std::mem::take(&mut desk.is_answered) || core.has(Mutant::AsksOn) {
            return;
        }
        for rank in desk.asked.ranks() {
            let timer = DeskTimer::Recall(rank);
            if timers.is_set(timer) && desk.unanswered(rank).is_empty() {
                timers.cancel(timer);
            }
        }
    }

    /// This broker restarts: what is on its way is in the journal, and sites know the rest.
    fn ask_all_anew(&mut self, now: Time) {
        let Engine { core, family: desk, .. } = self;
        for (site, transfer) in core.ledger.transfers_out() {
            let rank = core.rank_of(site);
            let Some(place) = rank.place(desk.brokers) else { continue };
            if core.is_here(transfer.job.id) {
                // It came back before the answer did.
                continue;
            }
            if !desk.dispatcher.knows(transfer.job.id) && !core.has(Mutant::LearnsAgain) {
                // Its end was told before the answer, and learned from in an earlier incarnation.
                continue;
            }
            desk.dispatcher.found(now, transfer.job, place, None, None);
            desk.gave(transfer, rank);
        }
        // Jobs that were put back came in an earlier incarnation. What the rule did not make of them then it would not now.
        (desk.is_moved, desk.is_awake) = (true, !desk.rests);
        desk.write_changes(core);
        let sites = self.core.view.all().skip(self.family.brokers);
        sites.for_each(|rank| self.asks(now, rank));
    }

    /// Asks a site which jobs of this broker it has. Until it has answered it gets no more.
    fn asks(&mut self, now: Time, rank: Rank) {
        let Engine { core, family: desk, timers } = self;
        let Some(asked) = desk.asked.get_mut(rank) else { return };
        desk.count += 1;
        *asked = Asked { number: desk.count, is_open: true, ..Asked::default() };
        if !core.is_reachable(rank) {
            // It is asked when it is heard of again.
            return;
        }
        if let Some(retry) = core.config.options.retry {
            timers.set(DeskTimer::Anew(rank), now, retry);
            if !desk.unanswered(rank).is_empty() {
                timers.set(DeskTimer::Recall(rank), now, retry);
            }
        }
        self.ask_anew(rank, false);
    }

    fn ask_anew(&mut self, rank: Rank, is_again: bool) {
        let desk = &mut self.family;
        match desk.asked.get(rank) {
            Some(&Asked { number: count, is_open: true, .. }) => {
                self.core.send_again(rank, OpaqueMessage::Anew { count }, is_again);
            }
            _ => self.timers.cancel(DeskTimer::Anew(rank)),
        }
    }

    /// A site says which jobs of this broker it has, or that it restarts.
    fn on_have(&mut self, now: Time, rank: Rank, count: u64, all: u32, jobs: &[Held]) {
        let Engine { core, family: desk, timers } = self;
        let place = desk.place(rank);
        let Asked { number, is_open, .. } = desk.asked[rank];
        if count == 0 {
            // A question that is open is answered by the site as it is.
            return if !is_open {
                self.asks(now, rank)
            };
        }
        if !is_open || number != count {
            return;
        }
        desk.is_moved = true;
        for held in jobs {
            let job = held.job.id;
            desk.asked[rank].heard.insert(job);
            let has_ended = desk.asked[rank].ended.contains(&job);
            if !has_ended && !core.is_here(job) && core.ledger.hops_out(job).is_none() {
                desk.dispatcher.found(now, held.job, place, Some(held.queued), held.started);
            }
        }
        if desk.asked[rank].heard.len() < all as usize {
            return;
        }
        timers.cancel(DeskTimer::Anew(rank));
        let Asked { heard, .. } =
            std::mem::replace(&mut desk.asked[rank], Asked { number, ..Asked::default() });
        // What is known since the question to have arrived may have done so after the answer.
        let is_over = |job: &JobId| {
            desk.given.get(job).is_none_or(|given| given.asked < number)
                && !heard.contains(job)
                && core.ledger.hops_out(*job).is_none()
        };
        let over: Vec<JobId> = desk.dispatcher.jobs_at(place).filter(is_over).collect();
        // They ended, or were given up, and the site does not know it any more; or they are on their way back.
        for job in over {
            desk.dispatcher.lose_sight(job);
            desk.took_from_site(job);
        }
        core.fresh = true;
    }
}
