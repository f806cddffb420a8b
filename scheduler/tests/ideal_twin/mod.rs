//! What the tests of the ideal references share: instances, a bare event loop, and naive twins of the policies.
//!
//! Everything here scans vectors. The real event loop is the simulator's.

use proptest::prelude::*;
use scheduler::ideal::definition;
use scheduler::{
    Grid, JobId, JobSpec, Labels, Order, Policy, Selection, SiteId, Span, Start, Steal, Threshold, Time,
    TimedJob,
};

/// One job's fate: id, site, start and end in seconds.
pub(crate) type Ran = (u64, u32, i64, i64);

/// Jobs numbered from 1 as (width, run time, submission) in seconds; the estimate is the run time.
pub(crate) fn jobs(rows: &[(u32, i64, i64)]) -> Vec<TimedJob> {
    let timed = |(index, &(width, run, submit)): (usize, &(u32, i64, i64))| {
        job(index as u64 + 1, width, run, run, submit)
    };
    let mut jobs: Vec<TimedJob> = rows.iter().enumerate().map(timed).collect();
    jobs.sort_by_key(|job| job.spec.key());
    jobs
}

pub(crate) fn job(id: u64, width: u32, run: i64, requested: i64, submit: i64) -> TimedJob {
    TimedJob {
        spec: JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors: width,
            requested: Span::from_secs(requested.max(1)),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        },
        run_time: Span::from_secs(run),
    }
}

pub(crate) fn seconds(time: Time) -> i64 {
    time.as_micros() / 1_000_000
}

/// Runs jobs to the end; `look` sees the policy after every decision.
pub(crate) fn play_with<P: Policy>(
    policy: &mut P,
    jobs: &[TimedJob],
    mut look: impl FnMut(Time, &P),
) -> Vec<Ran> {
    let ran = play_while(policy, jobs, |now, policy, _| {
        look(now, policy);
        true
    });
    assert_eq!(policy.waiting(), 0, "every job starts");
    assert_eq!(ran.len(), jobs.len());
    ran
}

/// Runs jobs until nothing happens any more or `go_on`, asked after every decision, says no.
pub(crate) fn play_while<P: Policy>(
    policy: &mut P,
    jobs: &[TimedJob],
    mut go_on: impl FnMut(Time, &mut P, &[Start]) -> bool,
) -> Vec<Ran> {
    let mut ran: Vec<Ran> = Vec::new();
    let mut running: Vec<(Time, JobId)> = Vec::new();
    let mut arrived = 0;
    loop {
        let arrival = jobs.get(arrived).map(|job| job.spec.submit);
        let end = running.iter().map(|&(end, _)| end).min();
        let Some(now) = [arrival, end].into_iter().flatten().min() else { break };
        while let Some(place) = running.iter().position(|&(end, _)| end == now) {
            policy.completed(now, running.remove(place).1);
        }
        while arrived < jobs.len() && jobs[arrived].spec.submit == now {
            policy.submitted(now, jobs[arrived].spec);
            arrived += 1;
        }
        let mut starts = Vec::new();
        policy.decide(now, &mut starts);
        if !go_on(now, policy, &starts) {
            break;
        }
        for Start { job, site } in starts {
            let timed = jobs.iter().find(|timed| timed.spec.id == job.id).unwrap();
            let end = now + timed.run_time;
            running.push((end, job.id));
            ran.push((job.id.0, site.0, seconds(now), seconds(end)));
        }
    }
    ran
}

pub(crate) fn play(policy: &mut impl Policy, jobs: &[TimedJob]) -> Vec<Ran> {
    play_with(policy, jobs, |_, _| {})
}

pub(crate) fn by_id(mut ran: Vec<Ran>) -> Vec<Ran> {
    ran.sort_unstable();
    ran
}

pub(crate) fn makespan(ran: &[Ran]) -> i64 {
    ran.iter().map(|&(_, _, _, end)| end).max().unwrap()
}

pub(crate) fn steal(percent: u8, order: Order, select: Selection) -> Steal {
    Steal { threshold: Threshold::new(percent).unwrap(), order, select }
}

/// Grids of up to six sites, with equal sizes and close sizes (chains of H) likely.
pub(crate) fn grids() -> impl Strategy<Value = Grid> {
    let wild = prop::collection::vec(1u32..17, 1..7);
    let close = (4u32..9, prop::collection::vec(0u32..4, 1..7))
        .prop_map(|(base, steps)| steps.into_iter().map(|step| base + step).collect::<Vec<_>>());
    prop_oneof![wild, close].prop_map(|sizes| Grid::of_sizes(&sizes).unwrap())
}

/// A grid with up to 30 jobs that fit it, submitted over `horizon` seconds (0: all at once). Estimates are not
/// the run times, and may be too short.
pub(crate) fn instances(horizon: i64) -> impl Strategy<Value = (Grid, Vec<TimedJob>)> {
    sized_instances(horizon, 30)
}

/// Up to 120 jobs with estimates of all kinds.
pub(crate) fn crowded() -> impl Strategy<Value = (Grid, Vec<TimedJob>)> {
    sized_instances(60, 120)
}

fn sized_instances(horizon: i64, jobs_max: usize) -> impl Strategy<Value = (Grid, Vec<TimedJob>)> {
    grids().prop_flat_map(move |grid| {
        let row = (1..=grid.widest(), 0i64..9, 1i64..12, 0..=horizon);
        (Just(grid), prop::collection::vec(row, 1..=jobs_max)).prop_map(|(grid, rows)| {
            let mut jobs: Vec<TimedJob> = rows
                .into_iter()
                .enumerate()
                .map(|(index, (width, run, requested, submit))| {
                    job(index as u64 + 1, width, run, requested, submit)
                })
                .collect();
            jobs.sort_by_key(|job| job.spec.key());
            (grid, jobs)
        })
    })
}

/// Offline and online instances.
pub(crate) fn any_instance() -> impl Strategy<Value = (Grid, Vec<TimedJob>)> {
    prop_oneof![instances(0), instances(25)]
}

pub(crate) fn orders() -> impl Strategy<Value = Order> {
    prop::sample::select(Order::ALL.to_vec())
}

pub(crate) fn selections() -> impl Strategy<Value = Selection> {
    prop::sample::select(Selection::ALL.to_vec())
}

pub(crate) fn thresholds() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0u8), Just(25), Just(50), Just(75), Just(100), 0u8..=100]
}

/// Sets, scans and nothing else.
pub(crate) struct Floor {
    pub(crate) grid: Grid,
    pub(crate) waiting: Vec<JobSpec>,
    pub(crate) running: Vec<(usize, JobSpec, Time)>,
}

impl Floor {
    pub(crate) fn new(grid: &Grid) -> Floor {
        Floor { grid: grid.clone(), waiting: Vec::new(), running: Vec::new() }
    }

    fn submitted(&mut self, job: JobSpec) {
        self.waiting.push(job);
        self.waiting.sort_by_key(JobSpec::key);
    }

    fn completed(&mut self, id: JobId) {
        self.running.retain(|(_, job, _)| job.id != id);
    }

    pub(crate) fn free(&self, rank: usize) -> u32 {
        let busy: u32 =
            self.running.iter().filter(|running| running.0 == rank).map(|(_, job, _)| job.processors).sum();
        self.grid.sizes()[rank] - busy
    }

    pub(crate) fn start(&mut self, now: Time, rank: usize, job: JobSpec, starts: &mut Vec<Start>) {
        self.waiting.retain(|waiting| waiting.id != job.id);
        self.running.push((rank, job, now));
        starts.push(Start { job, site: self.grid.at_rank(rank) });
    }

    /// The selection rules, said with scans.
    fn select(&self, now: Time, list: &[JobSpec], selection: Selection, rank: usize) -> Option<JobSpec> {
        let free = self.free(rank);
        let fits = |job: &&JobSpec| job.processors <= free;
        let head = list.first()?;
        match selection {
            Selection::FirstFit => list.iter().find(fits).copied(),
            Selection::BestFit => {
                let widest = list.iter().filter(fits).map(|job| job.processors).max()?;
                list.iter().find(|job| job.processors == widest).copied()
            }
            Selection::HeadOnly => Some(*head).filter(|head| head.processors <= free),
            Selection::Easy if head.processors <= free => Some(*head),
            Selection::Easy => {
                let mut ends: Vec<(Time, u32)> = self
                    .running
                    .iter()
                    .filter(|running| running.0 == rank)
                    .map(|(_, job, started)| ((*started + job.requested).max(now), job.processors))
                    .collect();
                ends.sort_unstable();
                let available = |at: Time| {
                    free + ends.iter().filter(|(end, _)| *end <= at).map(|(_, width)| width).sum::<u32>()
                };
                let shadow =
                    ends.iter().map(|&(end, _)| end).find(|&end| available(end) >= head.processors)?;
                let extra = available(shadow) - head.processors;
                list.iter()
                    .filter(fits)
                    .find(|job| now + job.requested <= shadow || job.processors <= extra)
                    .copied()
            }
        }
    }
}

/// ST_x by the definition of the lists.
pub(crate) struct TwinSteal {
    pub(crate) floor: Floor,
    pub(crate) steal: Steal,
}

impl TwinSteal {
    pub(crate) fn new(grid: &Grid, steal: Steal) -> TwinSteal {
        TwinSteal { floor: Floor::new(grid), steal }
    }

    pub(crate) fn lists(&self) -> Vec<Vec<JobSpec>> {
        definition::lists(&self.floor.grid, self.steal.threshold, self.steal.order, &self.floor.waiting)
    }
}

impl Policy for TwinSteal {
    fn submitted(&mut self, _now: Time, job: JobSpec) {
        self.floor.submitted(job);
    }

    fn completed(&mut self, _now: Time, job: JobId) {
        self.floor.completed(job);
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        let mut before = usize::MAX;
        while before != starts.len() {
            before = starts.len();
            for rank in 0..self.floor.grid.len() {
                while let Some(job) = self.floor.select(now, &self.lists()[rank], self.steal.select, rank) {
                    self.floor.start(now, rank, job, starts);
                }
            }
        }
    }

    fn waiting(&self) -> usize {
        self.floor.waiting.len()
    }
}

/// The greedy variant, said with scans.
pub(crate) struct TwinGreedy {
    pub(crate) floor: Floor,
    pub(crate) steal: Steal,
}

impl TwinGreedy {
    fn class(&self, rank: usize, big: bool) -> Vec<JobSpec> {
        let member = if big { definition::in_a } else { definition::in_b };
        let all = self.floor.waiting.iter().copied();
        all.filter(|job| member(&self.floor.grid, self.steal.threshold, job, rank)).collect()
    }

    /// Own work, leading class anew after every start; if none is left waiting, each smaller site's A, then its B.
    fn turn(&mut self, now: Time, rank: usize, starts: &mut Vec<Start>) {
        let big_first = !self.steal.order.small_first();
        loop {
            let own = [big_first, !big_first].map(|big| self.class(rank, big));
            let Some(leading) = own.iter().find(|jobs| !jobs.is_empty()) else { break };
            let Some(job) = self.floor.select(now, leading, self.steal.select, rank) else { return };
            self.floor.start(now, rank, job, starts);
        }
        for (victim, big) in (0..rank).rev().flat_map(|victim| [(victim, true), (victim, false)]) {
            while let Some(job) = self.floor.select(now, &self.class(victim, big), self.steal.select, rank) {
                self.floor.start(now, rank, job, starts);
            }
        }
    }
}

impl Policy for TwinGreedy {
    fn submitted(&mut self, _now: Time, job: JobSpec) {
        self.floor.submitted(job);
    }

    fn completed(&mut self, _now: Time, job: JobId) {
        self.floor.completed(job);
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        let mut before = usize::MAX;
        while before != starts.len() {
            before = starts.len();
            for rank in 0..self.floor.grid.len() {
                self.turn(now, rank, starts);
            }
        }
    }

    fn waiting(&self) -> usize {
        self.floor.waiting.len()
    }
}
