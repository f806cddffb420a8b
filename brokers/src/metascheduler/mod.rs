//! The upper level of M-CISNE: a queue before the clusters, and the cycle that sends its jobs to the queues of clusters.
//!
//! After J. Ll. Lérida's thesis on M-CISNE (Universitat de Lleida), chapter 4: Algorithm 4.1, cluster selection
//! by §4.3 ([`select`], with the estimators of [`decisor`]) among what a filter leaves ([`filter`]), job selection by Algorithm 4.4, limits of the queues of clusters by §4.4 and
//! §4.5 ([`limit`]), and co-allocation by §4.6 ([`coallocate`]) in one phase or in the two of Algorithm 4.5.
//!
//! Readings where the text leaves several: a pass looks at all clusters that can hold the job, less those it has struck out
//! (Algorithm 4.4, lines 13 and 8); "the state has changed" is any arrival, start or end at any cluster; a job that was set aside
//! still waits, and the next pass, which begins when something has happened, looks at all clusters again.
//!
//! Readings of co-allocation: a job takes what the queues of clusters leave, so no part is looked for before each cluster has decided
//! what it starts itself. One without room waits like one whose cluster takes none; nothing is kept free for it. The second phase comes once no
//! job of the upper queue can go, in the order of dispatch; a job that fits the room of another cluster goes there whole, and one that
//! fits the room of its own waits for its turn there.

pub mod coallocate;
pub mod decisor;
pub mod filter;
pub mod limit;
pub mod select;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add;

use scheduler::local::PlannedJob;
use scheduler::strategy::{Coallocation, Overrun, Phases, UpperOrder};
use scheduler::{Application, Broker as Rules, COMPUTES, JobId, JobSpec, QueueKey, Span, Time};

use crate::allocation::book::{Book, Site};
use crate::broker::{Act, Broker, Disclosure, Sites, Spread};
use coallocate::Room;
use limit::{Arrivals, takes};
use select::{Candidate, Selector};

/// Its place in the upper queue: what it is ordered by, then by submission.
type Place = (i64, QueueKey);

/// The cluster that a job is meant for, and of which state of all clusters that was thought.
#[derive(Clone, Copy, Debug)]
struct Choice {
    place: usize,
    changes: u64,
}

/// Why a job is meant for no cluster now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoChoice {
    /// No cluster that is left is wide enough and has the memory, or none is there.
    NoneLeft,
    /// The filter leaves none of them.
    Filtered,
}

/// The upper queue with what it remembers between decisions.
#[derive(Clone, Debug)]
pub struct MetaScheduler {
    rules: Rules,
    /// The number of each site in the order of the grid, by place.
    numbers: Vec<usize>,
    queue: BTreeMap<Place, JobSpec>,
    choices: BTreeMap<JobId, Choice>,
    selector: Selector,
    /// By place.
    arrivals: Vec<Arrivals>,
    /// Jobs that this pass has set aside.
    aside: BTreeSet<Place>,
    /// Places of clusters that it has struck out.
    struck: BTreeSet<usize>,
    /// Jobs that were sent to queues of clusters, by number, with the places of these: what the second phase looks at.
    sent: BTreeMap<u64, (JobSpec, usize)>,
    /// How many were.
    sendings: u64,
    /// What jobs that were started in parts here send over the links of clusters, by place in Mbit/s.
    apart: BTreeMap<JobId, Vec<(usize, f64)>>,
}

/// What a pass makes of a job that is to start in parts.
enum Attempt {
    /// It does, now.
    Parts(Vec<(usize, u32)>),
    /// There is no room for it.
    NoRoom,
    /// A cluster has yet to decide what it starts itself.
    Early,
}

impl MetaScheduler {
    /// Over sites with these numbers in the order of the grid, by place.
    pub fn new(rules: Rules, numbers: Vec<usize>) -> MetaScheduler {
        let sites = numbers.len();
        MetaScheduler {
            rules,
            numbers,
            queue: BTreeMap::new(),
            choices: BTreeMap::new(),
            selector: Selector::default(),
            arrivals: vec![Arrivals::default(); sites],
            aside: BTreeSet::new(),
            struck: BTreeSet::new(),
            sent: BTreeMap::new(),
            sendings: 0,
            apart: BTreeMap::new(),
        }
    }

    fn place_of(&self, job: &JobSpec) -> Place {
        let by = match self.rules.meta.order {
            UpperOrder::Fcfs => 0,
            UpperOrder::Sjf => job.requested.as_micros(),
        };
        (by, job.key())
    }

    /// The cluster that a job is meant for, of those that are left.
    fn choice(&mut self, now: Time, job: &JobSpec, sites: &[Site<'_>]) -> Result<usize, NoChoice> {
        let changes = sites.iter().map(|site| site.book.changes()).sum();
        let anew = self.rules.meta.jobs.chooses_anew();
        let holds = |choice: &&Choice| !anew || choice.changes == changes;
        if let Some(choice) = self.choices.get(&job.id).filter(holds) {
            return Ok(choice.place);
        }
        let is_left = |site: &&Site<'_>| {
            site.is_candidate && site.book.can_hold(job) && !self.struck.contains(&site.place)
        };
        let meta = &self.rules.meta;
        let mut left: Vec<&Site<'_>> = sites.iter().filter(is_left).collect();
        let wide_enough = left.len();
        left.retain(|site| filter::leaves(meta, now, site.book, job));
        if left.is_empty() {
            return Err(if wide_enough > 0 { NoChoice::Filtered } else { NoChoice::NoneLeft });
        }
        let candidates: Vec<Candidate> = left.iter().map(|site| self.candidate(now, job, site)).collect();
        let chosen = self.selector.choose(&self.rules.meta, &candidates).expect("there are candidates");
        let place = left[chosen].place;
        self.choices.insert(job.id, Choice { place, changes });
        Ok(place)
    }

    fn candidate(&self, now: Time, job: &JobSpec, site: &Site<'_>) -> Candidate {
        let number = self.numbers[site.place];
        if !self.rules.looks_ahead() {
            return Candidate { number, turnaround: Span::ZERO, local_nodes: 0 };
        }
        let planned = planned(site.book, now, self.rules.overrun, job);
        Candidate { number, turnaround: planned.end.since(now), local_nodes: planned.local_nodes }
    }

    /// Whether a job is to start in parts, and goes to no queue until then: no cluster has the nodes for it (Algorithm 4.1, step 5), or
    /// all are as one and none has the room.
    fn is_spread(&self, now: Time, job: &JobSpec, sites: &[Site<'_>]) -> bool {
        let by = self.rules.meta.coallocation;
        let is_full = |site: &Site<'_>| site.book.room(now, job).len() < job.processors as usize;
        by != Coallocation::None && sites.iter().all(|site| !site.book.can_hold(job))
            || by == Coallocation::SuperCluster && sites.iter().all(is_full)
    }

    /// What is free for a job, in the order of the grid.
    fn rooms(&self, now: Time, job: &JobSpec, sites: &[Site<'_>]) -> Vec<Room> {
        let consumed = |place: usize| {
            let here = self.apart.values().flatten().filter(|sent| sent.0 == place);
            here.map(|sent| sent.1).fold(0.0, Add::add)
        };
        let room = |site: &Site<'_>| Room::of(now, job, site.place, site.book, consumed(site.place));
        let mut rooms: Vec<Room> = sites.iter().map(room).collect();
        rooms.sort_by_key(|room| self.numbers[room.place]);
        rooms
    }

    /// Looks for the parts of a job of the upper queue.
    fn spread(&self, now: Time, job: &JobSpec, sites: &[Site<'_>]) -> Attempt {
        if !sites.iter().all(|site| site.book.is_settled()) {
            return Attempt::Early;
        }
        let (by, rooms) = (self.rules.meta.coallocation, self.rooms(now, job, sites));
        let parts = coallocate::parts(by, job, program(job, sites), &rooms, false);
        parts.map_or(Attempt::NoRoom, Attempt::Parts)
    }

    /// A job starts in these parts: what it sends from one cluster to others counts until it has ended there, or does not start.
    fn is_apart(&mut self, job: &JobSpec, parts: &[(usize, u32)], sites: &[Site<'_>]) {
        let program = program(job, sites);
        if parts.len() > 1 && program.bandwidth > 0.0 {
            let sent = parts.iter().map(|&(place, tasks)| (place, coallocate::sent(job, program, tasks)));
            self.apart.insert(job.id, sent.collect());
        }
    }

    /// Forgets the jobs in parts that no cluster has any more.
    fn forget_ended(&mut self, sites: &[Site<'_>]) {
        let executes = |job: JobId, place: usize| {
            let site = sites.iter().find(|site| site.place == place);
            site.is_some_and(|site| site.book.running(job).is_some())
        };
        self.apart.retain(|&job, sent| sent.iter().any(|&(place, _)| executes(job, place)));
    }

    /// The second phase of Algorithm 4.5: a job that waits in the queue of a cluster and can start at once in others.
    fn respread(&mut self, now: Time, sites: &[Site<'_>]) -> Option<Spread> {
        if self.rules.meta.phases == Phases::One {
            return None;
        }
        let book = |place: usize| sites.iter().find(|site| site.place == place).map(|site| site.book);
        let is_coming = |book: &Book, job: JobId| book.expected().any(|coming| coming.id == job);
        self.sent.retain(|_, (job, place)| {
            book(*place).is_some_and(|book| book.has_waiting(job.id) || is_coming(book, job.id))
        });
        if !sites.iter().all(|site| site.book.is_settled()) {
            return None;
        }
        let waits = |entry: &(&u64, &(JobSpec, usize))| {
            let (job, place) = entry.1;
            book(*place).is_some_and(|book| book.has_waiting(job.id))
        };
        let found = self.sent.iter().filter(waits).find_map(|(&number, &(job, from))| {
            let rooms = self.rooms(now, &job, sites);
            let fits = |room: &&Room| room.free() >= job.processors;
            let parts = match rooms.iter().filter(|room| room.place != from).find(fits) {
                Some(room) => vec![(room.place, job.processors)],
                None if rooms.iter().any(|room| fits(&room)) => return None,
                None => {
                    let by = self.rules.meta.coallocation;
                    coallocate::parts(by, &job, program(&job, sites), &rooms, true)?
                }
            };
            Some((number, Spread { job, parts, from: Some(from) }))
        });
        let (number, spread) = found?;
        self.sent.remove(&number);
        self.is_apart(&spread.job, &spread.parts, sites);
        Some(spread)
    }

    /// Whether the queue of a cluster takes the job.
    fn takes(&self, now: Time, job: &JobSpec, site: &Site<'_>) -> bool {
        let (book, arrivals) = (site.book, &self.arrivals[site.place]);
        let wait = || planned(book, now, self.rules.overrun, job).start.since(now);
        takes(self.rules.meta.limit, now, book.waiting(), arrivals, book.executions(), wait)
    }
}

/// What is known of the program of a job, which is the same everywhere.
fn program(job: &JobSpec, sites: &[Site<'_>]) -> Application {
    sites.first().map_or(COMPUTES, |site| site.book.program(job))
}

/// When a job would start and end there. Where two estimators are believed the wait is that of the one, and the execution that of the
/// other (§3.6).
fn planned(book: &Book, now: Time, overrun: Overrun, job: &JobSpec) -> PlannedJob {
    let Some((of_waits, of_executions)) = book.believed() else {
        return book.plan_for(now, overrun, job.id).with(job);
    };
    let by = |estimator| book.planned_by(estimator).plan_for(now, overrun, job.id).with(job);
    let waits = by(of_waits);
    if of_executions == of_waits {
        return waits;
    }
    let executes = by(of_executions);
    PlannedJob { end: waits.start.saturating_add(executes.end.since(executes.start)), ..waits }
}

impl Broker for MetaScheduler {
    fn needs(&self) -> Disclosure {
        Disclosure::All
    }

    fn came(&mut self, _now: Time, job: JobSpec) {
        self.queue.insert(self.place_of(&job), job);
    }

    fn withdraw(&mut self, job: &JobSpec) -> Option<JobSpec> {
        self.choices.remove(&job.id);
        self.queue.remove(&self.place_of(job))
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = &JobSpec> + '_> {
        Box::new(self.queue.values())
    }

    fn count(&self) -> usize {
        self.queue.len()
    }

    fn waits_for_room(&self) -> bool {
        !self.queue.is_empty() || !self.sent.is_empty()
    }

    /// The next dispatch of Algorithm 4.4, or of 4.5.
    fn decide(&mut self, now: Time, sites: &mut dyn Sites) -> Option<Act> {
        if let Some(overrun) = self.rules.looks_at_plans() {
            sites.prepare(now, overrun);
        }
        let known = sites.known();
        self.forget_ended(&known);
        // Whether a job waits in parts before which nothing else goes.
        let mut is_blocked = false;
        loop {
            let next = self.queue.iter().find(|(place, _)| !self.aside.contains(*place));
            let Some((&place, &job)) = next else { break };
            if self.is_spread(now, &job, &known) {
                match self.spread(now, &job, &known) {
                    Attempt::Parts(parts) => {
                        self.is_apart(&job, &parts, &known);
                        self.choices.remove(&job.id);
                        self.queue.remove(&place);
                        return Some(Act::Spread(Spread { job, parts, from: None }));
                    }
                    Attempt::NoRoom if !self.rules.meta.jobs.blocks() => {
                        self.aside.insert(place);
                        continue;
                    }
                    Attempt::NoRoom | Attempt::Early => {
                        is_blocked = true;
                        break;
                    }
                }
            }
            // Where no cluster that is left is wide enough, or none is there.
            let chosen = match self.choice(now, &job, &known) {
                Ok(chosen) => chosen,
                Err(NoChoice::Filtered) if self.rules.meta.jobs.blocks() => break,
                Err(_) => {
                    self.aside.insert(place);
                    continue;
                }
            };
            let site = known.iter().find(|site| site.place == chosen);
            if site.is_some_and(|site| self.takes(now, &job, site)) {
                self.arrivals[chosen].arrived(now);
                self.selector.sent_to(self.numbers[chosen]);
                self.choices.remove(&job.id);
                self.queue.remove(&place);
                if self.rules.meta.phases == Phases::Two {
                    self.sendings += 1;
                    self.sent.insert(self.sendings, (job, chosen));
                }
                return Some(Act::Place(job, chosen));
            }
            if site.is_none() {
                // The cluster has gone: another one is chosen.
                self.choices.remove(&job.id);
                continue;
            }
            if self.rules.meta.jobs.blocks() {
                break;
            }
            self.aside.insert(place);
            self.struck.insert(chosen);
        }
        self.aside.clear();
        self.struck.clear();
        if is_blocked {
            return None;
        }
        self.respread(now, &known).map(Act::Spread)
    }
}
