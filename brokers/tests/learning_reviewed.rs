//! The heuristics that learning dispatchers were reviewed against, by matrices and schedules made by hand.

use std::collections::{BTreeMap, BTreeSet};

use brokers::Broker as _;
use brokers::learning::{Assignment, Dispatcher, Estimates, FileId, Input};
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

/// Execution times in seconds by job and site, and what else is told.
#[derive(Default)]
struct Table {
    execution: Vec<Vec<i64>>,
    ready: Vec<i64>,
    clusters: Vec<usize>,
    inputs: BTreeMap<u64, Vec<Input>>,
    at: BTreeSet<(FileId, usize)>,
    /// Seconds per byte by site.
    slow: Vec<i64>,
    prices: Vec<u64>,
}

impl Estimates for Table {
    fn execution(&self, job: &JobSpec, site: usize) -> Span {
        let row = self.execution.get(job.id.0 as usize - 1);
        row.map_or(job.requested, |row| Span::from_secs(row[site]))
    }
    fn ready(&self, site: usize) -> Time {
        Time::from_secs(self.ready.get(site).copied().unwrap_or(0))
    }
    fn inputs(&self, job: &JobSpec) -> &[Input] {
        self.inputs.get(&job.id.0).map_or(&[], Vec::as_slice)
    }
    fn holds(&self, file: FileId, site: usize) -> bool {
        self.at.contains(&(file, site))
    }
    fn transfer(&self, bytes: u64, site: usize) -> Span {
        Span::from_secs(bytes as i64 * self.slow.get(site).copied().unwrap_or(1))
    }
    fn cluster(&self, site: usize) -> usize {
        self.clusters.get(site).copied().unwrap_or(site)
    }
    fn price(&self, site: usize) -> u64 {
        self.prices.get(site).copied().unwrap_or(0)
    }
}

fn job(id: u64, seconds: i64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors: 1,
        requested: Span::from_secs(seconds),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

/// A dispatcher with jobs of so many seconds, numbered from 1.
fn with_jobs(options: &str, sites: usize, jobs: &[i64]) -> Dispatcher {
    let mut dispatcher = Dispatcher::new(&options.parse().unwrap(), &vec![8; sites], 1, 1);
    (1..).zip(jobs).for_each(|(id, &seconds)| dispatcher.came(Time::ZERO, job(id, seconds)));
    dispatcher
}

fn now(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

/// As on paper: A1 B2; copies have a star.
fn shown(made: &[Assignment]) -> String {
    let one = |one: &Assignment| {
        format!("{}{}{}", (b'A' + one.site as u8) as char, one.job, if one.is_copy { "*" } else { "" })
    };
    made.iter().map(one).collect::<Vec<String>>().join(" ")
}

/// What a rule makes of a table at 0.
fn made(options: &str, sites: usize, jobs: usize, table: &Table) -> String {
    shown(&with_jobs(options, sites, &vec![1; jobs]).dispatch(now(0), table))
}

fn finish(dispatcher: &mut Dispatcher, job: u64, site: usize, at: i64, execution: i64) -> Vec<usize> {
    let ended = dispatcher.finished(now(at), JobId(job), site, Span::from_secs(execution), Span::ZERO);
    ended.unwrap().cancel
}

/// A holds 2 s of job 1, C 5 s of job 3, …: all rules differ here.
const MATRIX: [[i64; 3]; 3] = [[2, 3, 4], [7, 9, 6], [8, 10, 5]];

#[test]
fn all_heuristics_make_the_schedule_of_a_matrix_that_was_made_by_hand() {
    let execution = MATRIX.map(|row| row.to_vec()).to_vec();
    let table = Table { execution, clusters: vec![0, 0, 1], ..Table::default() };
    for (rule, expected, makespan) in [
        ("met", "A1 C2 C3", 11),
        ("mct", "A1 C2 A3", 10),
        ("min-min", "A1 C3 A2", 9),
        ("max-min", "C2 A3 B1", 8),
        ("sufferage", "C3 A2 B1", 7),
        ("qsufferage", "C3 A2 B1", 7),
        // With A and B in one cluster job 1 suffers most once C has job 3.
        ("xsufferage", "C3 A1 A2", 9),
    ] {
        let made = with_jobs(rule, 3, &[1, 1, 1]).dispatch(now(0), &table);
        assert_eq!(shown(&made), expected, "{rule}");
        let mut ends = [0; 3];
        made.iter().for_each(|one| ends[one.site] += MATRIX[one.job.0 as usize - 1][one.site]);
        assert_eq!(ends.into_iter().max(), Some(makespan), "{rule}");
    }
}

#[test]
fn what_sites_still_do_counts_for_completion_and_not_for_execution() {
    let execution = vec![vec![5, 6]];
    let table = Table { execution, ready: vec![10, 0], ..Table::default() };
    for (rule, expected) in [("met", "A1"), ("mct", "B1"), ("min-min", "B1"), ("sufferage", "B1")] {
        assert_eq!(made(rule, 2, 1, &table), expected, "{rule}");
    }
}

#[test]
fn met_waits_for_its_site_and_others_do_not() {
    let table = Table { execution: vec![vec![1, 9]; 2], ..Table::default() };
    for (rule, expected) in [("met,cap=1", "A1"), ("mct,cap=1", "A1 B2"), ("max-min,cap=1", "A1 B2")] {
        assert_eq!(made(rule, 2, 2, &table), expected, "{rule}");
    }
}

fn input(file: u64, bytes: u64) -> Input {
    Input { file: FileId(file), bytes }
}

#[test]
fn sufferage_counts_data_that_sites_have_and_that_comes_to_their_cluster() {
    // Job 1 reads a large file that B has; job 2 a small one that none has.
    let mut table = Table { execution: vec![vec![10, 10, 10]; 3], ..Table::default() };
    table.inputs = [(1, vec![input(1, 100)]), (2, vec![input(2, 1)])].into();
    table.at = [(FileId(1), 1)].into();
    assert_eq!(made("qsufferage", 3, 2, &table), "B1 A2");
    // Two jobs that share a file which none has: the second follows the first into its cluster, C stays empty.
    table.inputs = [(1, vec![input(7, 100)]), (2, vec![input(7, 100)])].into();
    table.clusters = vec![0, 0, 1];
    assert_eq!(made("xsufferage", 3, 2, &table), "A1 B2");
}

#[test]
fn loads_are_made_even_in_work_and_transfers_count_to_those_who_say_so() {
    let mut table = Table { ready: vec![5, 0, 3], ..Table::default() };
    table.execution = vec![vec![4, 4, 4]; 3];
    assert_eq!(made("least-loaded", 3, 3, &table), "B1 C2 B3");
    // The input is at A only.
    table.inputs = [(1, vec![input(1, 20)])].into();
    table.at = [(FileId(1), 0)].into();
    assert_eq!(made("least-loaded", 3, 1, &table), "B1");
    assert_eq!(made("greedy-cost", 3, 1, &table), "A1");
}

#[test]
fn marginal_costs_spread_over_processors_and_networks_and_forget_what_ended() {
    let table = Table { execution: vec![vec![10, 10]; 9], ..Table::default() };
    let mut dispatcher = with_jobs("online-cost", 2, &[10; 3]);
    assert_eq!(shown(&dispatcher.dispatch(now(0), &table)), "A1 B2 A3");
    finish(&mut dispatcher, 1, 0, 10, 10);
    finish(&mut dispatcher, 3, 0, 20, 10);
    dispatcher.came(Time::ZERO, job(4, 10));
    assert_eq!(shown(&dispatcher.dispatch(now(20), &table)), "A4");
    // A's network is slow: 8 s of load there against 1 s at B, whose processors are as loaded.
    let mut table = Table { execution: vec![vec![10, 10]], slow: vec![8, 1], ..Table::default() };
    table.inputs = [(1, vec![input(1, 1)])].into();
    assert_eq!(made("online-cost", 2, 1, &table), "B1");
}

#[test]
fn a_work_queue_is_greedy_and_copies_only_once_none_waits() {
    let table = Table::default();
    let mut dispatcher = with_jobs("work-queue,cap=1", 3, &[1, 1]);
    assert_eq!(shown(&dispatcher.dispatch(now(0), &table)), "A1 B2");
    assert_eq!(dispatcher.dispatch(now(0), &table), []);
    let mut dispatcher = with_jobs("wqr,cap=1", 3, &[1, 1, 1, 1]);
    assert_eq!(shown(&dispatcher.dispatch(now(0), &table)), "A1 B2 C3");
    finish(&mut dispatcher, 1, 0, 5, 5);
    assert_eq!(shown(&dispatcher.dispatch(now(5), &table)), "A4", "one waits: no copies");
    finish(&mut dispatcher, 4, 0, 9, 4);
    assert_eq!(shown(&dispatcher.dispatch(now(9), &table)), "A2*");
    // The first copy that ends ends the job, and the place of the other is free.
    assert_eq!(finish(&mut dispatcher, 2, 0, 10, 1), [1]);
    assert_eq!(
        (dispatcher.slots().active(0), dispatcher.slots().active(1), dispatcher.under_way()),
        (0, 0, 1)
    );
    // Of the one job that is left there are two at most.
    assert_eq!(shown(&dispatcher.dispatch(now(10), &table)), "A3*");
    assert_eq!(dispatcher.dispatch(now(10), &table), []);
    // A copy that fails does not send the job back: the other goes on.
    assert!(dispatcher.failed(JobId(3), 0));
    assert_eq!((dispatcher.count(), dispatcher.under_way()), (0, 1));
}

#[test]
fn published_mqd_ranks_sites_by_speed_and_duplicates_the_longest_at_the_end() {
    let table = Table::default();
    let mut dispatcher = with_jobs("mqd-dup,cap=1", 3, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(shown(&dispatcher.dispatch(now(0), &table)), "A1 B2 C3", "the smallest are dealt first");
    // Speeds: A 1/10, B 2/4, C 3/3, so the order is C, B, A over 9 8 | 7 6 | 5 4.
    finish(&mut dispatcher, 1, 0, 10, 10);
    finish(&mut dispatcher, 2, 1, 10, 4);
    finish(&mut dispatcher, 3, 2, 10, 3);
    assert_eq!(shown(&dispatcher.dispatch(now(10), &table)), "C9 B7 A5");
    for (job, site) in [(9, 2), (7, 1)] {
        finish(&mut dispatcher, job, site, 20, 9);
    }
    assert_eq!(shown(&dispatcher.dispatch(now(20), &table)), "C8 B6");
    for (job, site) in [(8, 2), (6, 1)] {
        finish(&mut dispatcher, job, site, 30, 8);
    }
    // One job waits: no site gets a copy in place of it. Then the idle one gets the longest of those with one copy.
    assert_eq!(shown(&dispatcher.dispatch(now(30), &table)), "C4 B5*");
}

#[test]
fn storage_affinity_goes_where_bytes_are_and_copies_only_there() {
    let mut table = Table {
        inputs: [(1, vec![input(1, 10)]), (2, vec![input(1, 10), input(2, 50)]), (3, vec![])].into(),
        at: [(FileId(1), 0), (FileId(1), 2), (FileId(2), 1)].into(),
        ..Table::default()
    };
    let mut dispatcher = with_jobs("storage-affinity,cap=1", 3, &[1, 1, 1]);
    assert_eq!(shown(&dispatcher.dispatch(now(0), &table)), "B2 A1 C3");
    finish(&mut dispatcher, 3, 2, 5, 5);
    // C has file 1, which both read; equal bytes, so the first by id.
    assert_eq!(shown(&dispatcher.dispatch(now(5), &table)), "C1*");
    table.at.clear();
    assert_eq!(finish(&mut dispatcher, 1, 0, 6, 6), [2]);
    assert_eq!(dispatcher.dispatch(now(6), &table), [], "no bytes, no copy");
}

#[test]
fn the_three_strategies_by_data_differ_as_they_say() {
    let mut table = Table { slow: vec![9, 1, 5], ..Table::default() };
    table.inputs = (1..=3).map(|id| (id, vec![input(id, 10)])).collect();
    table.at = [(FileId(1), 0), (FileId(2), 0)].into();
    assert_eq!(made("data-local,cap=1", 3, 3, &table), "A1", "job 2 waits for A, job 3 for its data");
    assert_eq!(made("data-any,cap=1", 3, 3, &table), "A1 B2 C3");
    assert_eq!(made("data-adaptive,cap=1", 3, 3, &table), "A1 B2 C3");
    assert_eq!(made("data-adaptive", 3, 3, &table), "A1 A2 B3");
}

#[test]
fn the_cheapest_the_fastest_and_both() {
    let table = Table { prices: vec![5, 2, 2], ..Table::default() };
    // One job each where nothing is known of times, but for COST_TIME, which fills the cheapest.
    assert_eq!(made("cost,cap=3,deadline=1000", 3, 5, &table), "B1 C2 A3");
    assert_eq!(made("cost,cap=3", 3, 5, &table), "B1 B2 B3 C4 C5");
    assert_eq!(made("cost-time,cap=3", 3, 5, &table), "B1 B2 B3 C4 C5");
    assert_eq!(made("time,cap=2", 3, 5, &table), "A1 A2 B3 B4 C5");
    let mut dispatcher = with_jobs("cost-time,cap=1", 3, &[1; 6]);
    assert_eq!(shown(&dispatcher.dispatch(now(0), &table)), "B1 C2 A3");
    finish(&mut dispatcher, 1, 1, 50, 50);
    finish(&mut dispatcher, 2, 2, 60, 10);
    dispatcher.slots_mut().set_limit(1, 0);
    assert_eq!(shown(&dispatcher.dispatch(now(60), &table)), "C4");
    dispatcher.slots_mut().set_limit(1, 1);
    assert_eq!(shown(&dispatcher.dispatch(now(60), &table)), "B5");
}

#[test]
fn deadlines_bound_what_a_site_gets_and_budgets_what_all_cost() {
    let table = Table { prices: vec![5, 2], ..Table::default() };
    // B took 100 s: 250 s are left of 350 s, which is 2.5 jobs and rounded up.
    let mut dispatcher = with_jobs("cost,deadline=350", 2, &[1; 9]);
    assert_eq!(shown(&dispatcher.dispatch(now(0), &table)), "B1 A2");
    finish(&mut dispatcher, 1, 1, 100, 100);
    assert_eq!(shown(&dispatcher.dispatch(now(100), &table)), "B3 B4 B5 A6");
    assert!(!dispatcher.is_infeasible());
    assert_eq!(dispatcher.dispatch(now(350), &table), []);
    assert!(dispatcher.is_infeasible());
    for rule in ["cost", "time", "cost-time"] {
        let mut dispatcher = with_jobs(&format!("{rule},budget=21"), 2, &[1; 9]);
        let mut cost = 0;
        for at in 1..20 {
            let made = dispatcher.dispatch(now(at), &table);
            cost += made.iter().map(|one| table.prices[one.site]).sum::<u64>();
            made.iter().for_each(|one| drop(finish(&mut dispatcher, one.job.0, one.site, at, 1)));
        }
        assert!(cost > 10 && cost <= 21, "{rule} spent {cost}");
    }
    let mut dispatcher = with_jobs("cost,budget=2", 2, &[1; 2]);
    assert_eq!(dispatcher.dispatch(now(0), &table), [], "2 is less than 2 for each of 2 jobs");
    assert!(!dispatcher.is_infeasible());
}

#[test]
fn forecasts_and_bandits_leave_a_slow_site() {
    for rule in ["smoothing,cap=1", "linucb,cap=1", "agents,cap=1"] {
        let mut dispatcher = with_jobs(rule, 2, &[100; 60]);
        let mut counts = [0; 2];
        for round in 0..60 {
            let at = 1000 * round;
            let open = dispatcher.dispatch(now(at), &Table::default());
            // One of the two is taken back at once, so that each round is a choice.
            let (first, rest) = open.split_first().unwrap();
            rest.iter().for_each(|one| assert!(dispatcher.recalled(one.job, one.site)));
            // What is learned by then.
            counts[first.site] += i32::from(round >= 30);
            let total = if first.site == 0 { 900 } else { 100 };
            finish(&mut dispatcher, first.job.0, first.site, at + total, 100);
        }
        assert!(counts[1] > 3 * counts[0], "{rule}: {counts:?}");
    }
}
