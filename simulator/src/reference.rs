//! Runs a [`Policy`] over a workload in virtual time: ideal algorithms and local schedulers, without messages.
//!
//! An instant is: completions, submissions, one decision ([`Pass::Batch`]), or one decision after every event
//! ([`Pass::PerEvent`]). Only this loop knows true run times. It decides nothing; peers and links are elsewhere.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use scheduler::event::GrantCause;
use scheduler::execution::{Begun, Parts, at_speed};
use scheduler::ideal::invariants::{self, State, Terms, Violation};
use scheduler::time::earlier;
use scheduler::{
    Event, EventKind, Execution, Grid, JobId, JobSpec, Pass, Policy, Prediction, Span, Start, Steal, Time,
    TimedJob,
};

use scheduler::JobIndex;

/// What a whole run amounted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Jobs that ran, which is all of them.
    pub jobs: usize,
    /// The last completion C_max; `None` for a workload without jobs.
    pub last_end: Option<Time>,
    /// How often the policy was asked to decide.
    pub decisions: u64,
}

/// Why a workload cannot be run, or was not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// A job is wider than every site.
    #[error(
        "job {job} needs {processors} processors, the widest that may start has {widest}; drop it or widen the grid"
    )]
    TooWide {
        /// The job that no site can hold.
        job: JobId,
        /// Processors that it needs.
        processors: u32,
        /// The widest site's processors, or those of the widest job that is spread over several.
        widest: u32,
    },
    /// A width of zero, or a run time below zero.
    #[error("job {job} needs {processors} processors for {run_time} s; drop it")]
    Impossible {
        /// The job that makes no sense.
        job: JobId,
        /// Processors that it asks for.
        processors: u32,
        /// Its run time.
        run_time: Span,
    },
    /// Two jobs of one id.
    #[error("two jobs have the id {0}; number the jobs of the workload anew")]
    Duplicate(JobId),
    /// The jobs are not in queue order.
    #[error("job {0} comes after a job of a later submission or id; sort by submission, then id")]
    Unsorted(JobId),
    /// Nothing runs, nothing comes, and jobs wait that the policy does not start.
    #[error(
        "at {at} s nothing runs and nothing is submitted, but {waiting} jobs wait: the policy starves them"
    )]
    Starved {
        /// When the last thing happened.
        at: Time,
        /// How many jobs wait.
        waiting: usize,
    },
}

/// Sees every step of a run, in the order in which the policy is told or tells.
pub trait Observer<P> {
    /// A job was submitted.
    fn submitted(&mut self, _now: Time, _job: &JobSpec) {}

    /// A job ended at the site of this rank.
    fn completed(&mut self, _now: Time, _job: JobId, _rank: usize) {}

    /// The policy started a job at the site of this rank.
    fn started(&mut self, _now: Time, _job: &JobSpec, _rank: usize) {}

    /// The policy has decided, and everything it started was reported.
    fn decided(&mut self, _now: Time, _policy: &P) {}
}

/// An observer that ignores everything.
impl<P> Observer<P> for () {}

/// Runs jobs, sorted by (submission, id), to the last completion.
///
/// Emits `Submitted` at the entry site of each job, `Started` and `Completed`, in the order in which they happen. A job
/// that takes no time completes at the instant it starts: that instant is then gone through again. If the policy
/// fetches a job, it is `Granted` when it is decided on, and `Accepted` and `Started` when it is there.
///
/// # Errors
/// If the workload does not fit the grid or is not sorted, or if the policy leaves jobs waiting for ever.
///
/// # Panics
/// If the policy breaks its contract: starts a job that does not wait, or more than a site can hold.
pub fn run<P: Policy>(
    policy: &mut P,
    jobs: &[TimedJob],
    grid: &Grid,
    pass: Pass,
    sink: &mut dyn FnMut(Event),
) -> Result<Summary, ReferenceError> {
    run_observed(policy, jobs, grid, pass, sink, &mut ())
}

/// Like [`run`], until `stop` says so before an instant. The summary then counts fewer jobs than there are.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_while<P: Policy>(
    policy: &mut P,
    jobs: &[TimedJob],
    grid: &Grid,
    pass: Pass,
    sink: &mut dyn FnMut(Event),
    stop: &dyn Fn() -> bool,
) -> Result<Summary, ReferenceError> {
    check(jobs, grid)?;
    let observer = &mut ();
    let mut run = Run::new(policy, jobs, grid, pass, sink, observer);
    run.complete_all(stop)?;
    Ok(run.summary)
}

/// Like [`run`], with an observer.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn run_observed<P: Policy>(
    policy: &mut P,
    jobs: &[TimedJob],
    grid: &Grid,
    pass: Pass,
    sink: &mut dyn FnMut(Event),
    observer: &mut impl Observer<P>,
) -> Result<Summary, ReferenceError> {
    check(jobs, grid)?;
    let mut run = Run::new(policy, jobs, grid, pass, sink, observer);
    run.complete_all(&|| false)?;
    Ok(run.summary)
}

/// Whether the workload can be run.
fn check(jobs: &[TimedJob], grid: &Grid) -> Result<(), ReferenceError> {
    for TimedJob { spec, run_time } in jobs {
        let (job, processors) = (spec.id, spec.processors);
        if processors > grid.widest_job() {
            return Err(ReferenceError::TooWide { job, processors, widest: grid.widest_job() });
        }
        if processors == 0 || *run_time < Span::ZERO {
            return Err(ReferenceError::Impossible { job, processors, run_time: *run_time });
        }
    }
    if let Some(pair) = jobs.windows(2).find(|pair| pair[0].spec.key() > pair[1].spec.key()) {
        return Err(ReferenceError::Unsorted(pair[1].spec.id));
    }
    let mut ids: Vec<JobId> = jobs.iter().map(|job| job.spec.id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ReferenceError::Duplicate(pair[0])),
        None => Ok(()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Ahead,
    Waiting,
    /// At the site of this rank; of a job over several sites that of its first part.
    Running(u32),
    Ended,
}

struct Run<'a, P, O> {
    policy: &'a mut P,
    jobs: &'a [TimedJob],
    grid: &'a Grid,
    pass: Pass,
    sink: &'a mut dyn FnMut(Event),
    observer: &'a mut O,
    index: JobIndex,
    phases: Vec<Phase>,
    /// Idle processors by rank.
    free: Vec<u32>,
    /// Ranks of the sites of jobs over several, first part first, with the processors there; by their places in the workload.
    spread: BTreeMap<u32, Vec<(u32, u32)>>,
    /// By their places in the workload.
    ends: Execution<u32>,
    starts: Vec<Start>,
    /// Jobs that are fetched: (when they run, sequence, place in the workload), earliest first.
    fetched: BinaryHeap<Reverse<(Time, u64, u32)>>,
    arrived: usize,
    sequence: u64,
    summary: Summary,
}

impl<'a, P: Policy, O: Observer<P>> Run<'a, P, O> {
    fn new(
        policy: &'a mut P,
        jobs: &'a [TimedJob],
        grid: &'a Grid,
        pass: Pass,
        sink: &'a mut dyn FnMut(Event),
        observer: &'a mut O,
    ) -> Self {
        Run {
            policy,
            jobs,
            grid,
            pass,
            sink,
            observer,
            index: JobIndex::new(jobs),
            phases: vec![Phase::Ahead; jobs.len()],
            free: grid.sizes().to_vec(),
            spread: BTreeMap::new(),
            ends: Execution::on(grid),
            starts: Vec::new(),
            fetched: BinaryHeap::new(),
            arrived: 0,
            sequence: 0,
            summary: Summary { jobs: 0, last_end: None, decisions: 0 },
        }
    }

    fn complete_all(&mut self, stop: &dyn Fn() -> bool) -> Result<(), ReferenceError> {
        let mut now = None;
        while self.summary.jobs < self.jobs.len() {
            // A timer that has already been decided on cannot fire again.
            let wake = self.policy.wake_at().filter(|&wake| now.is_none_or(|now| wake > now));
            let next = earlier(earlier(self.next_arrival(), self.next_end()), wake);
            let Some(next) = next else { break };
            if stop() {
                return Ok(());
            }
            now = Some(next);
            self.run_fetched(next);
            self.step(next);
        }
        match now {
            Some(at) if self.summary.jobs < self.jobs.len() => {
                Err(ReferenceError::Starved { at, waiting: self.jobs.len() - self.summary.jobs })
            }
            _ => Ok(()),
        }
    }

    /// Starts what has been fetched by `until`. No decision depends on it: the processors are reserved.
    fn run_fetched(&mut self, until: Time) {
        while let Some(&Reverse((at, transfer, place))) = self.fetched.peek()
            && at <= until
        {
            self.fetched.pop();
            let place = place as usize;
            let JobSpec { id: job, processors, .. } = self.jobs[place].spec;
            let Phase::Running(rank) = self.phases[place] else { unreachable!("it holds processors") };
            let site = self.grid.at_rank(rank as usize);
            let from = self.policy.entry(self.grid, &self.jobs[place].spec).expect("it was submitted there");
            for kind in [
                EventKind::Accepted { job, from, transfer, firm: false },
                EventKind::Started { job, processors, hops: 1 },
            ] {
                (self.sink)(Event { at, site, kind });
            }
        }
    }

    fn next_arrival(&self) -> Option<Time> {
        self.jobs.get(self.arrived).map(|job| job.spec.submit)
    }

    fn next_end(&self) -> Option<Time> {
        self.ends.next_end()
    }

    /// Tells the facts of an instant, or its next fact, and lets the policy decide.
    fn step(&mut self, now: Time) {
        match self.pass {
            Pass::Batch => {
                while let Some(due) = self.ends.pop_due(now) {
                    self.complete(now, due.what);
                }
                while self.next_arrival() == Some(now) {
                    self.submit(now);
                }
            }
            Pass::PerEvent => {
                if self.next_arrival() == Some(now) {
                    self.submit(now);
                } else if let Some(due) = self.ends.pop_due(now) {
                    self.complete(now, due.what);
                }
            }
        }
        self.decide(now);
    }

    fn submit(&mut self, now: Time) {
        let spec = self.jobs[self.arrived].spec;
        self.phases[self.arrived] = Phase::Waiting;
        self.arrived += 1;
        let site = self.policy.entry(self.grid, &spec).expect("checked to fit a site");
        let JobSpec { id: job, processors, requested, origin, .. } = spec;
        (self.sink)(Event {
            at: now,
            site,
            kind: EventKind::Submitted { job, processors, requested, origin },
        });
        self.policy.submitted(now, spec);
        self.observer.submitted(now, &spec);
    }

    fn complete(&mut self, now: Time, place: u32) {
        let place = place as usize;
        let JobSpec { id: job, processors, .. } = self.jobs[place].spec;
        let Phase::Running(rank) = self.phases[place] else { unreachable!("only running jobs have an end") };
        self.phases[place] = Phase::Ended;
        self.summary.jobs += 1;
        self.summary.last_end = Some(now);
        let of = self.grid.at_rank(rank as usize);
        let parts = self.spread.remove(&(place as u32)).unwrap_or_else(|| vec![(rank, processors)]);
        for (number, (rank, processors)) in parts.into_iter().enumerate() {
            self.free[rank as usize] += processors;
            let kind = match number {
                0 => EventKind::Completed { job, processors },
                _ => EventKind::PartCompleted { job, processors, of },
            };
            (self.sink)(Event { at: now, site: self.grid.at_rank(rank as usize), kind });
        }
        self.tell_paces(now);
        self.policy.completed(now, job);
        self.observer.completed(now, job, rank as usize);
    }

    /// A job takes processors, or a part of it.
    fn occupy(&mut self, now: Time, part: &JobSpec, rank: usize) {
        let fits = part.processors <= self.free[rank];
        assert!(fits, "job {} does not fit site {} at {now} s", part.id, self.grid.at_rank(rank));
        self.free[rank] -= part.processors;
    }

    /// What became of jobs on shared nodes by what was just recorded.
    fn tell_paces(&mut self, at: Time) {
        self.ends.told().for_each(|(site, kind)| (self.sink)(Event { at, site, kind }));
    }

    fn decide(&mut self, now: Time) {
        self.tell_paces(now);
        let mut starts = std::mem::take(&mut self.starts);
        self.policy.decide(now, &mut starts);
        let sink = &mut self.sink;
        self.policy.failures(&mut |site, cause| {
            sink(Event { at: now, site, kind: EventKind::FellBack { cause } });
        });
        self.policy.predictions(&mut |site, Prediction { job, run_time, corrections }| {
            sink(Event { at: now, site, kind: EventKind::Predicted { job, run_time, corrections } });
        });
        self.summary.decisions += 1;
        let mut next = starts.drain(..);
        while let Some(Start { job, site }) = next.next() {
            let place = self.index.get(job.id).expect("a policy starts jobs of the workload");
            let TimedJob { spec, run_time } = self.jobs[place];
            assert_eq!(
                self.phases[place],
                Phase::Waiting,
                "job {} starts once, after its submission",
                job.id
            );
            let rank = self.grid.rank(site);
            self.phases[place] = Phase::Running(rank as u32);
            self.occupy(now, &job, rank);
            let fetch = self.policy.fetch(self.grid, &spec, site);
            let entry = self.policy.entry(self.grid, &spec);
            let run_time = at_speed(run_time, self.policy.speed(self.grid, site));
            let order = self.sequence;
            self.sequence += 1;
            if let (Some(from), true) = (entry, fetch > Span::ZERO) {
                let transfer = self.sequence;
                self.fetched.push(Reverse((now + fetch, transfer, place as u32)));
                let (cause, request) = (GrantCause::Unknown, 0);
                let kind = EventKind::Granted { job: spec.id, to: site, transfer, hops: 1, cause, request };
                (self.sink)(Event { at: now, site: from, kind });
            } else {
                let hops = u32::from(entry != Some(site));
                let kind = EventKind::Started { job: spec.id, processors: job.processors, hops };
                (self.sink)(Event { at: now, site, kind });
            }
            let mut parts = Vec::new();
            let mut missing =
                spec.processors.checked_sub(job.processors).expect("a part is not more than the job");
            while missing > 0 {
                let of_job = next.next().filter(|start| start.job.id == job.id);
                let Start { job: part, site: there } = of_job.expect("a job starts in all of its parts");
                missing = missing.checked_sub(part.processors).expect("the parts are not more than the job");
                let other = self.grid.rank(there);
                self.occupy(now, &part, other);
                parts.push((other as u32, part.processors));
                let kind = EventKind::PartStarted { job: part.id, processors: part.processors, of: site };
                (self.sink)(Event { at: now, site: there, kind });
            }
            let is_apart = !parts.is_empty() && self.grid.cluster(site).is_some();
            if !parts.is_empty() {
                parts.insert(0, (rank as u32, job.processors));
            }
            if is_apart {
                let at = |&(rank, tasks): &(u32, u32)| (self.grid.at_rank(rank as usize), tasks);
                let placed = Parts::Placed(parts.iter().map(at).collect());
                self.ends.start_apart(now + fetch, (&spec, run_time), &placed, vec![(order, place as u32)]);
            } else {
                let begun = Begun { site, job: &spec, run_time, order, key: place as u32 };
                self.ends.start(now + fetch, begun);
            }
            if !parts.is_empty() {
                self.spread.insert(place as u32, parts);
            }
            self.tell_paces(now);
            self.observer.started(now, &spec, rank);
        }
        drop(next);
        self.starts = starts;
        self.observer.decided(now, self.policy);
    }
}

/// An [`Observer`] that checks the invariants I1–I10 of the stealing algorithm after every decision.
///
/// It follows the true state by itself and computes the lists by their definition, whatever the policy.
#[derive(Clone, Debug)]
pub struct Checker {
    terms: Terms,
    state: State,
    violations: Vec<(Time, Violation)>,
}

impl Checker {
    /// For a run of these jobs under [`Pass::Batch`]; the invariants do not hold between events of one instant.
    pub fn new(grid: &Grid, steal: Steal, jobs: &[TimedJob]) -> Checker {
        let rows = jobs.iter().map(|job| (job.spec.submit, job.spec.processors, job.run_time));
        Checker { terms: Terms::new(grid, steal, rows), state: State::new(grid), violations: Vec::new() }
    }

    /// Everything found so far, with its time; the certificate I10 is checked here, at the end of a run.
    pub fn finish(mut self, summary: &Summary) -> Vec<(Time, Violation)> {
        if let Some(end) = summary.last_end
            && let Err(violation) = invariants::certificate(&self.terms, end)
        {
            self.violations.push((end, violation));
        }
        self.violations
    }
}

impl<P> Observer<P> for Checker {
    fn submitted(&mut self, now: Time, job: &JobSpec) {
        self.state.submitted(now, *job);
    }

    fn completed(&mut self, now: Time, job: JobId, rank: usize) {
        self.state.completed(now, job, rank);
    }

    fn started(&mut self, now: Time, job: &JobSpec, rank: usize) {
        self.state.started(now, *job, rank);
    }

    fn decided(&mut self, now: Time, _policy: &P) {
        self.state.decided(now, self.terms.lists(&self.state));
        let found = invariants::check(&self.state, &self.terms);
        self.violations.extend(found.into_iter().map(|violation| (now, violation)));
        self.state.forget_starts();
    }
}
