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
use crate::broker::{Act, Broker, Disclosure, Sites, Truth};

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
    decider: Handle,
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
            decider: Handle(None),
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
        // What is admissible is told by all sites, whichever of them were asked.
        let admissible = &sites[self.admissible(now, job, sites)];
        let asked: Vec<Site<'_>>;
        let (all, candidates) = if sites.iter().all(|site| site.is_candidate) {
            (sites, admissible)
        } else {
            asked = admissible.iter().filter(|site| site.is_candidate).copied().collect();
            (&asked[..], &asked[..])
        };
        if candidates.is_empty() {
            return None;
        }
        let place =
            self.ask_elsewhere(now, job, sites, candidates).unwrap_or_else(|| match self.rules.own_rule() {
                BrokerRule::Random => candidates[self.rng.random_range(0..candidates.len())].place,
                BrokerRule::RoundRobin => self.next_in_turn(candidates),
                _ => self.least(now, job, all, candidates),
            });
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

    /// Where whoever decides elsewhere sends it. None if nobody does.
    fn ask_elsewhere(
        &mut self,
        now: Time,
        job: &JobSpec,
        sites: &[Site<'_>],
        candidates: &[Site<'_>],
    ) -> Option<usize> {
        let decider = self.decider.0.clone()?;
        let admissible: Vec<usize> = candidates.iter().map(|site| site.place).collect();
        let question = Question { now, job, sites, admissible: &admissible };
        let chosen = match decider.choose(&question) {
            Ok(place) if admissible.contains(&place) => return Some(place),
            Ok(_) => {
                (FallbackCause::Nonsense, format!("it sends job {} to a site that is not admissible", job.id))
            }
            Err(cause) => (cause, "there is no answer".to_string()),
        };
        decider.end(&chosen.1);
        self.decider = Handle(None);
        self.untold = Some(chosen.0);
        None
    }

    fn next_in_turn(&mut self, candidates: &[Site<'_>]) -> usize {
        let next = candidates.iter().find(|site| site.place >= self.turn);
        let place = next.unwrap_or(&candidates[0]).place;
        self.turn = place + 1;
        place
    }

    /// The first of the candidates, of which there is one, of the least value.
    fn least(&self, now: Time, job: &JobSpec, all: &[Site<'_>], candidates: &[Site<'_>]) -> usize {
        let rules = &self.rules;
        let load_of = |site: &Site<'_>| self.counted_in(site).load(rules.count);
        let size_of = |site: &Site<'_>| i128::from(site.book.processors());
        let by_time = |value: &dyn Fn(&Book) -> Time| {
            first_least(candidates, |site| value(self.planned_by(site)), Ord::cmp)
        };
        let by_quotient =
            |value: &dyn Fn(&Site<'_>) -> Quotient| first_least(candidates, value, Quotient::compare);
        match rules.own_rule() {
            BrokerRule::Random
            | BrokerRule::RoundRobin
            | BrokerRule::External
            | BrokerRule::Genetic
            | BrokerRule::Mcisne => {
                unreachable!("they compare nothing")
            }
            BrokerRule::Jobs => by_quotient(&|site| Quotient::of(load_of(site).jobs.into(), 1)),
            BrokerRule::JobsPerProcessor => {
                by_quotient(&|site| Quotient::of(load_of(site).jobs.into(), size_of(site)))
            }
            BrokerRule::ParallelLoad => {
                by_quotient(&|site| Quotient::of(load_of(site).processors.into(), size_of(site)))
            }
            BrokerRule::BalancedLoad => {
                let loads = all.iter().map(|site| (load_of(site).processors, site.book.processors()));
                let balance = Balance::of(loads.collect());
                let candidate = |site: &Site<'_>| {
                    let load = load_of(site);
                    let times = match rules.arriving {
                        ArrivingLoad::Once => 1,
                        ArrivingLoad::PerJob => load.jobs,
                    };
                    let processors = site.book.processors();
                    Candidate { load: load.processors, processors, more: times * u64::from(job.processors) }
                };
                first_least(candidates, candidate, |one, other| balance.compare(one, other))
            }
            BrokerRule::LowerBound => by_quotient(&|site| {
                let work = match rules.running {
                    RunningWork::Full => load_of(site).work,
                    RunningWork::Remaining => self.counted_in(site).remaining_work(now),
                };
                Quotient::of(work, size_of(site))
            }),
            BrokerRule::CompletionTime => by_time(&|book| self.completion(now, job, book)),
            BrokerRule::StartTime => {
                by_time(&|book| book.plan_for(now, rules.overrun, job.id).with(job).start)
            }
            BrokerRule::MeanWait => by_quotient(&|site| {
                let waits = self.waits(now, job, self.planned_by(site));
                Quotient::of(waits.sum, waits.jobs.max(1))
            }),
            BrokerRule::WeightedWait => by_quotient(&|site| {
                let waits = self.waits(now, job, self.planned_by(site));
                Quotient::of(waits.by_size, waits.jobs.max(1))
            }),
        }
    }

    /// What a site is planned by.
    fn planned_by<'a>(&'a self, site: &Site<'a>) -> &'a Book {
        self.calendars.get(site.place).map_or(site.book, Calendar::book)
    }

    /// What the load of a site is counted in.
    fn counted_in<'a>(&'a self, site: &Site<'a>) -> &'a Book {
        match self.rules.plan {
            Plan::OpenLoopAll => self.planned_by(site),
            Plan::Resynchronised | Plan::OpenLoop => site.book,
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
    fn decide(&mut self, now: Time, sites: &mut dyn Sites) -> Option<Act> {
        loop {
            let after = self.held.map_or(Bound::Unbounded, Bound::Excluded);
            let Some((&key, &job)) = self.waiting.range((after, Bound::Unbounded)).next() else {
                self.held = None;
                return None;
            };
            if let Some(place) = self.choose_shown(now, &job, sites) {
                self.waiting.remove(&key);
                return Some(Act::Place(job, place));
            }
            self.held = Some(key);
        }
    }

    fn admissible(&self, now: Time, job: &JobSpec, sites: &[Site<'_>]) -> Range<usize> {
        let sizes: Vec<u32> = sites.iter().map(|site| site.book.widest()).collect();
        let executed = sites.iter().map(|site| site.book.executed());
        let a = match self.rules.follows {
            true => admissible_part(now, &sizes, job.processors, executed),
            false => self.rules.admissible,
        };
        admissible(&sizes, job.processors, a, self.rules.cut)
    }

    /// A clone asks nobody, and decides by the fallback.
    fn ask(&mut self, decider: Arc<dyn BrokerDecider>) {
        if self.rules.rule == BrokerRule::External {
            self.decider = Handle(Some(decider));
        }
    }

    fn failure(&mut self) -> Option<FallbackCause> {
        self.untold.take()
    }
}

/// The place of the first of the least values.
fn first_least<V>(
    candidates: &[Site<'_>],
    value: impl Fn(&Site<'_>) -> V,
    compare: impl Fn(&V, &V) -> Ordering,
) -> usize {
    let valued = candidates.iter().map(|site| (site.place, value(site)));
    let least = valued.min_by(|(_, one), (_, other)| compare(one, other));
    least.expect("there is a candidate").0
}
