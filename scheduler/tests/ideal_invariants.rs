//! The invariants I1 to I10: they hold on random instances, and each checker catches what it is there for.

use proptest::prelude::*;
use scheduler::ideal::invariants::{self, State, Terms, Violation};
use scheduler::ideal::{GreedySteal, StatelessSteal};
use scheduler::{
    Grid, JobId, JobSpec, Order, Policy, Selection, Span, Start, Steal, Threshold, Time, TimedJob,
};

use crate::ideal_twin::{Ran, TwinSteal, any_instance, job, jobs, orders, play_with, selections, steal};

fn terms(grid: &Grid, steal: Steal, jobs: &[TimedJob]) -> Terms {
    Terms::new(grid, steal, jobs.iter().map(|job| (job.spec.submit, job.spec.processors, job.run_time)))
}

/// Keeps the true state beside a policy.
struct Watched<P> {
    policy: P,
    grid: Grid,
    terms: Terms,
    state: State,
    lists: fn(&P) -> Option<Vec<Vec<JobSpec>>>,
    found: Vec<Violation>,
}

impl<P: Policy> Policy for Watched<P> {
    fn submitted(&mut self, now: Time, job: JobSpec) {
        self.state.submitted(now, job);
        self.policy.submitted(now, job);
    }

    fn completed(&mut self, now: Time, job: JobId) {
        let runs = |jobs: &Vec<JobSpec>| jobs.iter().any(|running| running.id == job);
        let rank = self.state.running.iter().position(runs).unwrap();
        self.state.completed(now, job, rank);
        self.policy.completed(now, job);
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        self.policy.decide(now, starts);
        self.state.forget_starts();
        for start in starts {
            self.state.started(now, start.job, self.grid.rank(start.site));
        }
        let lists = (self.lists)(&self.policy).unwrap_or_else(|| self.terms.lists(&self.state));
        self.state.decided(now, lists);
        self.found.extend(invariants::check(&self.state, &self.terms));
    }

    fn waiting(&self) -> usize {
        self.policy.waiting()
    }
}

fn watch<P: Policy>(
    policy: P,
    grid: &Grid,
    jobs: &[TimedJob],
    steal: Steal,
    lists: fn(&P) -> Option<Vec<Vec<JobSpec>>>,
) -> Vec<Violation> {
    let terms = terms(grid, steal, jobs);
    let state = State::new(grid);
    let mut watched = Watched { policy, grid: grid.clone(), terms, state, lists, found: Vec::new() };
    let ran: Vec<Ran> = play_with(&mut watched, jobs, |_, _| {});
    let last_end = Time::from_secs(crate::ideal_twin::makespan(&ran));
    watched.found.extend(invariants::certificate(&watched.terms, last_end).err());
    watched.found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn all_invariants_hold_for_the_original_order(
        (grid, jobs) in any_instance(),
        percent in prop::sample::select(vec![25u8, 50, 75]),
        select in selections(),
    ) {
        let steal = steal(percent, Order::Ahb, select);
        let found = watch(StatelessSteal::new(&grid, steal), &grid, &jobs, steal, |ideal| Some(ideal.lists()));
        prop_assert_eq!(found, Vec::new());
    }

    #[test]
    fn the_invariants_claimed_for_other_orders_hold(
        (grid, jobs) in any_instance(), percent in 0u8..=100, order in orders(), select in selections(),
    ) {
        let steal = steal(percent, order, select);
        let found = watch(StatelessSteal::new(&grid, steal), &grid, &jobs, steal, |ideal| Some(ideal.lists()));
        prop_assert_eq!(found, Vec::new());
    }
}

/// Runs a policy that is not ST50 on many instances and returns which invariants of ST50 it broke.
fn broken_by<P: Policy>(make: impl Fn(&Grid) -> P) -> Vec<&'static str> {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut names = Vec::new();
    for _ in 0..150 {
        let (grid, jobs) = any_instance().new_tree(&mut runner).unwrap().current();
        let st50 = Steal::with_threshold(Threshold::HALF);
        names.extend(watch(make(&grid), &grid, &jobs, st50, |_| None).iter().map(name));
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn name(violation: &Violation) -> &'static str {
    match violation {
        Violation::Exclusivity { .. } => "I1",
        Violation::Chain { .. } => "I2",
        Violation::Prefix { .. } => "I3",
        Violation::Homogeneous { .. } => "I4",
        Violation::Phase { .. } => "I5",
        Violation::Greedy { .. } => "I6",
        Violation::Busy { .. } => "I7",
        Violation::Root { .. } => "I8",
        Violation::StartBound { .. } => "I9",
        Violation::Certificate { .. } => "I10",
    }
}

/// Big jobs are stolen before own work, so a root is passed over.
#[test]
fn mutant_stealing_before_own_work_is_seen_to_break_the_root_rule() {
    let broken = broken_by(|grid| StatelessSteal::new(grid, steal(50, Order::Hab, Selection::FirstFit)));
    assert!(broken.contains(&"I8"), "{broken:?}");
}

/// A greedy thief looks past its root.
#[test]
fn mutant_greedy_stealing_is_seen_to_break_the_root_rule() {
    let broken = broken_by(|grid| GreedySteal::new(grid, steal(50, Order::Ahb, Selection::FirstFit)));
    assert!(broken.contains(&"I8"), "{broken:?}");
}

#[test]
fn mutant_head_only_is_seen_not_to_be_greedy() {
    let broken = broken_by(|grid| StatelessSteal::new(grid, steal(50, Order::Ahb, Selection::HeadOnly)));
    assert_eq!(broken, ["I6"]);
}

/// One pass over the sites, and only one start at each: a broken loop.
struct OneStart(TwinSteal);

impl Policy for OneStart {
    fn submitted(&mut self, now: Time, job: JobSpec) {
        self.0.submitted(now, job);
    }
    fn completed(&mut self, now: Time, job: JobId) {
        self.0.completed(now, job);
    }
    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        for rank in 0..self.0.floor.grid.len() {
            let free = self.0.floor.free(rank);
            if let Some(job) = self.0.lists()[rank].iter().find(|job| job.processors <= free).copied() {
                self.0.floor.start(now, rank, job, starts);
            }
        }
    }
    fn waiting(&self) -> usize {
        self.0.waiting()
    }
}

#[test]
fn mutant_a_loop_that_stops_too_early_is_seen_not_to_be_greedy_or_busy() {
    let broken = broken_by(|grid| OneStart(TwinSteal::new(grid, steal(50, Order::Ahb, Selection::FirstFit))));
    assert!(broken.contains(&"I6"), "{broken:?}");
    assert!(broken.contains(&"I7"), "{broken:?}");
}

// Doctored states: each breaks one rule and no other.

/// A grid at time 0, jobs running as (rank, width) and waiting as widths; the lists follow the definition.
fn doctored(sizes: &[u32], running: &[(usize, u32)], waiting: &[u32]) -> (State, Terms) {
    let grid = Grid::of_sizes(sizes).unwrap();
    let mut state = State::new(&grid);
    let mut rows = Vec::new();
    for &(rank, width) in running {
        rows.push((width, 10, 0));
        let spec = job(rows.len() as u64, width, 10, 10, 0).spec;
        state.started(Time::ZERO, spec, rank);
    }
    for &width in waiting {
        rows.push((width, 10, 0));
        state.submitted(Time::ZERO, job(rows.len() as u64, width, 10, 10, 0).spec);
    }
    state.forget_starts();
    let terms = terms(&grid, Steal::with_threshold(Threshold::HALF), &jobs(&rows));
    let lists = terms.lists(&state);
    state.decided(Time::ZERO, lists);
    (state, terms)
}

#[test]
fn a_sound_state_has_no_violation() {
    let (state, terms) = doctored(&[6, 8], &[(0, 6), (1, 8)], &[6, 7, 2]);
    assert_eq!(invariants::check(&state, &terms), []);
}

#[test]
fn i1_catches_a_job_at_two_sites() {
    let (mut state, terms) = doctored(&[4, 8], &[(0, 4)], &[]);
    let twice = state.running[0][0];
    state.running[1].push(twice);
    assert_eq!(invariants::check(&state, &terms), [Violation::Exclusivity { job: twice.id }]);
}

#[test]
fn i1_catches_a_job_that_runs_again() {
    let (mut state, terms) = doctored(&[4, 8], &[(0, 4)], &[]);
    let again = state.running[0][0];
    state.completed(Time::ZERO, again.id, 0);
    state.started(Time::ZERO, again, 0);
    assert_eq!(invariants::check(&state, &terms), [Violation::Exclusivity { job: again.id }]);
}

#[test]
fn i1_catches_a_site_with_more_than_it_can_hold() {
    let (mut state, terms) = doctored(&[8], &[(0, 5)], &[]);
    let extra = job(9, 4, 1, 1, 0).spec;
    state.started(Time::ZERO, extra, 0);
    assert_eq!(invariants::check(&state, &terms), [Violation::Exclusivity { job: extra.id }]);
}

#[test]
fn i1_catches_a_job_that_waits_elsewhere_than_at_home() {
    let (mut state, terms) = doctored(&[4, 8], &[(0, 4), (1, 8)], &[3]);
    let lost = state.waiting[0].remove(0);
    state.waiting[1].push(lost);
    assert_eq!(invariants::exclusivity(&state, &terms), Err(Violation::Exclusivity { job: lost.id }));
}

#[test]
fn i2_catches_a_list_made_of_two() {
    let (mut state, terms) = doctored(&[6, 8], &[(0, 6), (1, 8)], &[6, 7]);
    let stolen = state.waiting[0][0];
    state.lists[1].push(stolen);
    assert_eq!(invariants::check(&state, &terms), [Violation::Chain { rank: 1 }]);
}

#[test]
fn i3_catches_an_empty_list_with_work_below() {
    let (mut state, terms) = doctored(&[4, 8], &[(0, 4), (1, 8)], &[3]);
    state.lists[1].clear();
    assert_eq!(invariants::check(&state, &terms), [Violation::Prefix { rank: 1 }]);
}

#[test]
fn i4_catches_big_and_small_in_one_list() {
    let (mut state, terms) = doctored(&[6, 8], &[(0, 6), (1, 8)], &[4, 6]);
    state.lists[1] = state.lists[0].clone();
    assert_eq!(invariants::check(&state, &terms), [Violation::Homogeneous { rank: 1 }]);
}

#[test]
fn i5_catches_small_work_before_big() {
    let (mut state, terms) = doctored(&[6, 8], &[(0, 6), (1, 8)], &[4, 6]);
    let (small, big) = (state.waiting[0][0], state.waiting[0][1]);
    state.lists[1] = vec![small];
    assert_eq!(invariants::check(&state, &terms), [Violation::Phase { rank: 1, job: big.id }]);
}

#[test]
fn i6_catches_a_job_that_fits_and_waits() {
    let (state, terms) = doctored(&[8], &[(0, 5)], &[3]);
    let job = state.waiting[0][0].id;
    assert_eq!(invariants::check(&state, &terms), [Violation::Greedy { rank: 0, job }]);
}

#[test]
fn i7_catches_a_half_idle_site() {
    let (state, terms) = doctored(&[8], &[(0, 4)], &[5]);
    assert_eq!(invariants::check(&state, &terms), [Violation::Busy { rank: 0, busy: 4 }]);
}

/// The same half-idle site is a drain while jobs still arrive, and an error once all of them are that old.
#[test]
fn i7_allows_a_drain_until_the_longest_run_time_after_the_last_arrival() {
    let (mut state, _) = doctored(&[8], &[(0, 4)], &[5]);
    let rows = jobs(&[(4, 10, 0), (5, 10, 3)]);
    let grid = Grid::of_sizes(&[8]).unwrap();
    let terms = terms(&grid, Steal::with_threshold(Threshold::HALF), &rows);

    state.now = Time::from_secs(13) - Span::from_micros(1);
    assert_eq!(invariants::check(&state, &terms), []);
    state.now = Time::from_secs(13);
    assert_eq!(invariants::check(&state, &terms), [Violation::Busy { rank: 0, busy: 4 }]);
}

#[test]
fn i8_catches_a_thief_that_looks_past_its_root() {
    let (mut state, terms) = doctored(&[4, 8], &[(0, 4), (1, 2), (1, 6)], &[8]);
    let stolen = state.running[1][0];
    state.starts = vec![(stolen, 1)];
    let waiting = state.waiting[1][0].id;
    assert_eq!(invariants::check(&state, &terms), [Violation::Root { job: stolen.id, rank: 1, waiting }]);
}

/// The job of the larger home starts too, but after the stolen one.
#[test]
fn i8_looks_at_the_order_of_starts_within_one_decision() {
    let (mut state, terms) = doctored(&[4, 8], &[(1, 2), (1, 6)], &[]);
    let (stolen, own) = (state.running[1][0], state.running[1][1]);

    state.starts = vec![(own, 1), (stolen, 1)];
    assert_eq!(invariants::check(&state, &terms), []);
    state.starts = vec![(stolen, 1), (own, 1)];
    let expected = Violation::Root { job: stolen.id, rank: 1, waiting: own.id };
    assert_eq!(invariants::check(&state, &terms), [expected]);
}

/// Two jobs of 8 for 10 s on one site of 8: W_1 / (β S_1) is 40 s.
#[test]
fn i9_catches_a_start_that_is_too_late_for_the_work_there_is() {
    let (mut state, terms) = doctored(&[8], &[(0, 8), (0, 8)], &[]);
    let late = state.running[0].pop().unwrap();
    state.starts = vec![(late, 0)];

    state.now = Time::from_secs(40) - Span::from_micros(1);
    assert_eq!(invariants::check(&state, &terms), []);
    state.now = Time::from_secs(40);
    assert_eq!(invariants::check(&state, &terms), [Violation::StartBound { job: late.id }]);
}

#[test]
fn i10_catches_a_makespan_beyond_the_certificate() {
    let (_, terms) = doctored(&[8], &[(0, 8)], &[8]);
    let last_allowed = Time::from_secs(50) - Span::from_micros(1);
    assert_eq!(invariants::certificate(&terms, last_allowed), Ok(()));
    let last_end = Time::from_secs(50);
    assert_eq!(invariants::certificate(&terms, last_end), Err(Violation::Certificate { last_end }));
}
