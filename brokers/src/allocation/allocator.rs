//! The rules of a broker: which of the admissible sites gets an arriving job (Quezada Pina 2012, §3.3).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::event::FallbackCause;
use scheduler::strategy::{ArrivingLoad, Completion, IdleSince, OwnWait, Plan, Population, RunningWork};
use scheduler::{Broker as Rules, BrokerRule, JobSpec, LocalScheduler, Pass, QueueKey, Time};

use super::admissible::admissible;
use super::balance::{Balance, Candidate};
use super::book::{Book, Site, Waits};
use super::calendar::Calendar;
use super::decider::{BrokerDecider, Handle, Question};
use super::follow::admissible_part;
use super::fraction::Quotient;
use crate::broker::{Broker, Disclosure, Sites, Truth};

/// The first stream of random numbers that brokers draw from; each adds its number among the brokers.
const FIRST_STREAM: u64 = 1 << 33;

/// The rules of one broker, with what it remembers between decisions.
#[derive(Clone, Debug)]
pub struct Allocator {
    rules: Rules,
    rng: ChaCha8Rng,
    /// The place of the site that round-robin looks at first.
    turn: usize,
    /// By place of the site; empty unless plans are open loops.
    calendars: Vec<Calendar>,
    /// Who decides elsewhere, as long as it does.
    decider: Handle<dyn BrokerDecider>,
    /// Why it does not any more, until somebody was told.
    untold: Option<FallbackCause>,
    waiting: BTreeMap<QueueKey, JobSpec>,
    /// The last job that is held, of those that were looked at since this was asked for decisions.
    held: Option<QueueKey>,
}

impl Allocator {
    /// The broker of this number among all, over sites of these sizes, ascending.
    pub fn new(
        rules: Rules,
        sizes: &[u32],
        scheduler: LocalScheduler,
        pass: Pass,
        seed: u64,
        number: u64,
    ) -> Allocator {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(FIRST_STREAM + number);
        let calendars = match rules.plan {
            Plan::Resynchronised => Vec::new(),
            Plan::OpenLoop | Plan::OpenLoopAll => {
                sizes.iter().map(|&size| Calendar::new(scheduler, pass, size)).collect()
            }
        };
        Allocator {
            rules,
            rng,
            turn: 0,
            calendars,
            decider: Handle::none(),
            untold: None,
            waiting: BTreeMap::new(),
            held: None,
        }
    }

    /// The place of the site that gets the job; none if no site is wide enough that counts. A job that is chosen a site
    /// for is in the calendar from then on, if there is one.
    ///
    /// # Panics
    /// If a rule plans by a book without a queue.
    pub fn choose(&mut self, now: Time, job: &JobSpec, sites: &[Site<'_>]) -> Option<usize> {
        for calendar in &mut self.calendars {
            calendar.advance(now);
        }
        let (places, range) = self.candidates(now, job, sites);
        let asked = self.ask_elsewhere(now, job, sites, &places, range.clone());
        let chosen = match self.rules.own_rule() {
            _ if asked.is_some() => asked,
            BrokerRule::Random if range.is_empty() => None,
            BrokerRule::Random => Some(self.rng.random_range(range)),
            BrokerRule::RoundRobin => self.next_in_turn(&places, range),
            _ => self.least(now, job, sites, &places, range),
        };
        let place = places.at(chosen?);
        if let Some(calendar) = self.calendars.get_mut(place) {
            calendar.placed(now, *job);
        }
        Some(place)
    }

    /// The same by sites as they are: for a reference.
    ///
    /// # Panics
    /// As [`Allocator::choose`].
    pub fn choose_knowing(&mut self, now: Time, job: &JobSpec, books: &mut [Book]) -> Option<usize> {
        self.choose_shown(now, job, &mut Truth(now, books))
    }

    fn choose_shown(&mut self, now: Time, job: &JobSpec, sites: &mut dyn Sites) -> Option<usize> {
        if let Some(overrun) = self.rules.looks_at_plans() {
            sites.prepare(now, overrun);
        }
        self.choose(now, job, &sites.known())
    }

    /// What whoever decides elsewhere says, as an index among the sites that count. None if nobody does.
    fn ask_elsewhere(
        &mut self,
        now: Time,
        job: &JobSpec,
        sites: &[Site<'_>],
        places: &Places,
        range: Range<usize>,
    ) -> Option<usize> {
        let decider = self.decider.get().filter(|_| !range.is_empty())?;
        let admissible: Vec<usize> = range.clone().map(|index| places.at(index)).collect();
        let question = Question { now, job, sites, admissible: &admissible };
        let chosen = decider.choose(&question).map_err(|cause| (cause, "there is no answer".to_string()));
        let index = chosen.and_then(|place| {
            let index = admissible.iter().position(|&admissible| admissible == place);
            let reason = || format!("it sends job {} to a site that is not admissible", job.id);
            index.ok_or_else(|| (FallbackCause::Nonsense, reason()))
        });
        match index {
            Ok(index) => Some(range.start + index),
            Err((cause, reason)) => {
                decider.end(&reason);
                self.decider = Handle::none();
                self.untold = Some(cause);
                None
            }
        }
    }

    /// The sites that count, and which of them are admissible.
    /// What is admissible is told by all sites that are there, whichever of them were asked.
    fn candidates(&self, now: Time, job: &JobSpec, sites: &[Site<'_>]) -> (Places, Range<usize>) {
        let places = Places::of(sites);
        let books = (0..places.len()).map(|index| sites[places.at(index)].book);
        let range = self.admissible_of(now, job, books);
        if sites.iter().all(|site| site.is_candidate) {
            return (places, range);
        }
        let asked: Vec<usize> =
            range.map(|index| places.at(index)).filter(|&place| sites[place].is_candidate).collect();
        let count = asked.len();
        (Places::Some(asked), 0..count)
    }

    /// The places of the admissible ones of these sites, which ascend in size.
    fn admissible_of<'a>(
        &self,
        now: Time,
        job: &JobSpec,
        books: impl Iterator<Item = &'a Book> + Clone,
    ) -> Range<usize> {
        let sizes: Vec<u32> = books.clone().map(Book::processors).collect();
        let a = match self.rules.follows {
            true => admissible_part(now, &sizes, job.processors, books.map(Book::executed)),
            false => self.rules.admissible,
        };
        admissible(&sizes, job.processors, a, self.rules.cut)
    }

    fn next_in_turn(&mut self, places: &Places, range: Range<usize>) -> Option<usize> {
        let next = range.clone().find(|&index| places.at(index) >= self.turn);
        let chosen = next.or_else(|| range.clone().next())?;
        self.turn = places.at(chosen) + 1;
        Some(chosen)
    }

    /// The first of the candidates of the least value.
    fn least(
        &self,
        now: Time,
        job: &JobSpec,
        sites: &[Site<'_>],
        places: &Places,
        range: Range<usize>,
    ) -> Option<usize> {
        let rules = &self.rules;
        let plan_of = |index: usize| self.planned_by(places.at(index), sites);
        let load_of = |index: usize| self.counted_in(places.at(index), sites).load(rules.count);
        let size_of = |index: usize| i128::from(sites[places.at(index)].book.processors());
        let by_time = |value: &dyn Fn(usize) -> Time| first_least(range.clone(), value, Ord::cmp);
        let by_quotient =
            |value: &dyn Fn(usize) -> Quotient| first_least(range.clone(), value, Quotient::compare);
        match rules.own_rule() {
            BrokerRule::Random | BrokerRule::RoundRobin | BrokerRule::External | BrokerRule::Genetic => {
                unreachable!("they compare nothing")
            }
            BrokerRule::Jobs => by_quotient(&|index| Quotient::of(load_of(index).jobs.into(), 1)),
            BrokerRule::JobsPerProcessor => {
                by_quotient(&|index| Quotient::of(load_of(index).jobs.into(), size_of(index)))
            }
            BrokerRule::ParallelLoad => {
                by_quotient(&|index| Quotient::of(load_of(index).processors.into(), size_of(index)))
            }
            BrokerRule::BalancedLoad => {
                let loads = (0..places.len())
                    .map(|index| (load_of(index).processors, sites[places.at(index)].book.processors()));
                let balance = Balance::of(loads.collect());
                let candidate = |index| {
                    let load = load_of(index);
                    let times = match rules.arriving {
                        ArrivingLoad::Once => 1,
                        ArrivingLoad::PerJob => load.jobs,
                    };
                    let processors = sites[places.at(index)].book.processors();
                    Candidate { load: load.processors, processors, more: times * u64::from(job.processors) }
                };
                first_least(range, candidate, |one, other| balance.compare(one, other))
            }
            BrokerRule::LowerBound => by_quotient(&|index| {
                let work = match rules.running {
                    RunningWork::Full => load_of(index).work,
                    RunningWork::Remaining => self.counted_in(places.at(index), sites).remaining_work(now),
                };
                Quotient::of(work, size_of(index))
            }),
            BrokerRule::CompletionTime => by_time(&|index| self.completion(now, job, plan_of(index))),
            BrokerRule::StartTime => {
                by_time(&|index| plan_of(index).plan_for(now, rules.overrun, job.id).with(job).start)
            }
            BrokerRule::MeanWait => by_quotient(&|index| {
                let waits = self.waits(now, job, plan_of(index));
                Quotient::of(waits.sum, waits.jobs.max(1))
            }),
            BrokerRule::WeightedWait => by_quotient(&|index| {
                let waits = self.waits(now, job, plan_of(index));
                Quotient::of(waits.by_size, waits.jobs.max(1))
            }),
        }
    }

    /// What a site is planned by.
    fn planned_by<'a>(&'a self, place: usize, sites: &[Site<'a>]) -> &'a Book {
        self.calendars.get(place).map_or(sites[place].book, Calendar::book)
    }

    /// What the load of a site is counted in.
    fn counted_in<'a>(&'a self, place: usize, sites: &[Site<'a>]) -> &'a Book {
        match self.rules.plan {
            Plan::OpenLoopAll => self.planned_by(place, sites),
            Plan::Resynchronised | Plan::OpenLoop => sites[place].book,
        }
    }

    fn completion(&self, now: Time, job: &JobSpec, book: &Book) -> Time {
        let overrun = self.rules.overrun;
        let idle = || match self.rules.idle {
            IdleSince::Now => now,
            IdleSince::LastEnd => book.last_end().unwrap_or(Time::from_micros(i64::MIN)),
        };
        match self.rules.completion {
            Completion::SiteBefore => book.plan(now, overrun, None).idle_from().unwrap_or_else(idle),
            Completion::SiteAfter => book.plan(now, overrun, Some(job)).idle_from().unwrap_or_else(idle),
            Completion::JobAfter => book.plan_for(now, overrun, job.id).with(job).end,
        }
    }

    /// Waits of the jobs of a site, those that wait as planned.
    fn waits(&self, now: Time, job: &JobSpec, book: &Book) -> Waits {
        let mut waits = match self.rules.population {
            Population::Ever => book.waits_ever(),
            Population::System => book.waits_of_running(),
        };
        let arriving = match self.rules.own_wait {
            OwnWait::With => Some(job),
            OwnWait::Without => None,
        };
        let plan = book.plan(now, self.rules.overrun, arriving);
        for planned in plan.jobs() {
            let waiting = book.waiting_job(planned.job).unwrap_or(job);
            waits.add(waiting, planned.start);
        }
        waits
    }
}

impl Broker for Allocator {
    fn needs(&self) -> Disclosure {
        if self.rules.needs_reports() { Disclosure::All } else { Disclosure::Nothing }
    }

    fn came(&mut self, _now: Time, job: JobSpec) {
        self.waiting.insert(job.key(), job);
    }

    fn withdraw(&mut self, job: &JobSpec) -> Option<JobSpec> {
        self.waiting.remove(&job.key())
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = &JobSpec> + '_> {
        Box::new(self.waiting.values())
    }

    fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Job by job in queue order, at once and for good. Held is what no site is wide enough for.
    fn decide(&mut self, now: Time, sites: &mut dyn Sites) -> Option<(JobSpec, usize)> {
        loop {
            let after = self.held.map_or(Bound::Unbounded, Bound::Excluded);
            let Some((&key, &job)) = self.waiting.range((after, Bound::Unbounded)).next() else {
                self.held = None;
                return None;
            };
            if let Some(place) = self.choose_shown(now, &job, sites) {
                self.waiting.remove(&key);
                return Some((job, place));
            }
            self.held = Some(key);
        }
    }

    fn admissible(&self, now: Time, job: &JobSpec, books: &[&Book]) -> Range<usize> {
        self.admissible_of(now, job, books.iter().copied())
    }

    /// A clone asks nobody, and decides by the fallback.
    fn ask(&mut self, decider: Arc<dyn BrokerDecider>) {
        if self.rules.rule == BrokerRule::External {
            self.decider = Handle::of(decider);
        }
    }

    fn failure(&mut self) -> Option<FallbackCause> {
        self.untold.take()
    }
}

/// The first of the least values.
fn first_least<V>(
    range: Range<usize>,
    value: impl Fn(usize) -> V,
    compare: impl Fn(&V, &V) -> Ordering,
) -> Option<usize> {
    let mut least: Option<(usize, V)> = None;
    for index in range {
        let value = value(index);
        if least.as_ref().is_none_or(|(_, best)| compare(&value, best) == Ordering::Less) {
            least = Some((index, value));
        }
    }
    least.map(|(index, _)| index)
}

/// The sites that count, by number among them.
enum Places {
    All(usize),
    Some(Vec<usize>),
}

impl Places {
    fn of(sites: &[Site<'_>]) -> Places {
        if sites.iter().all(|site| site.is_present) {
            return Places::All(sites.len());
        }
        Places::Some((0..sites.len()).filter(|&place| sites[place].is_present).collect())
    }

    fn len(&self) -> usize {
        match self {
            Places::All(count) => *count,
            Places::Some(places) => places.len(),
        }
    }

    fn at(&self, index: usize) -> usize {
        match self {
            Places::All(_) => index,
            Places::Some(places) => places[index],
        }
    }
}
