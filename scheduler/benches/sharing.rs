//! How many starts and ends of jobs a second the model of shared nodes takes, against a twin that calculates everything at each; and how long a
//! queue takes to be played forward.
//!
//! Read the first as elements per second, and the ratio to the twin. `cargo bench -p stealgrid-scheduler --bench sharing`.

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use scheduler::draw::Draw;
use scheduler::sharing::forward::{Scenario, Selection, predict};
use scheduler::sharing::local_load::XWINDOWS_INTERNET;
use scheduler::sharing::{
    Cluster, Demand, Estimate, Fairness, Layout, LocalLoad, Node, Platform, Shared, Spread,
};
use scheduler::{JobId, Span, Time};

#[expect(dead_code, reason = "mistakes are for tests")]
#[path = "../tests/sharing_twin/mod.rs"]
mod sharing_twin;

use sharing_twin::{Slip, Twin};

const CLUSTERS: usize = 64;
const NODES: usize = 8;
/// Of the twin, which takes milliseconds for each.
const NAIVE_ENDS: u64 = 5;

fn platform(clusters: usize) -> Platform {
    let node = Node { power: 1.0, memory: 1 << 20, link: 1_000.0, mpl: 4 };
    let slow = Node { power: 0.8, ..node };
    let nodes = (0..NODES).map(|place| if place % 3 == 0 { slow } else { node }).collect();
    let cluster = Cluster { nodes, uplink: 1_000.0 };
    let spread = Spread { usage: XWINDOWS_INTERNET, share: 0.5, layout: Layout::Uniform, redraws: None };
    let local = spread.draw(&vec![NODES; clusters], 1);
    Platform::new(&vec![cluster; clusters])
        .and_then(|platform| platform.with_local(local))
        .expect("it can be")
}

fn demand(draw: &mut Draw, bandwidth: f64) -> Demand {
    Demand {
        tasks: 1 + draw.below(4) as u32,
        run_time: Span::from_micros(1_000_000 + draw.below(100_000_000) as i64),
        computing: draw.between(0.3, 0.9),
        bandwidth: bandwidth * draw.uniform(),
        memory: 1_000 * draw.below(200) as u64,
    }
}

/// Each cluster starts what fits, whenever something ended. How many starts and ends that was.
fn run(shared: &mut Shared<usize>, jobs: u64, bandwidth: f64) -> u64 {
    let mut draw = Draw::of_stream(1, 1);
    let (mut now, mut next, mut events) = (Time::ZERO, 0, 0);
    let clusters = shared.platform().clusters();
    let mut heads: Vec<Demand> = (0..clusters).map(|_| demand(&mut draw, bandwidth)).collect();
    let mut ready: VecDeque<usize> = (0..clusters).collect();
    while events < 2 * jobs {
        while let Some(cluster) = ready.pop_front() {
            while shared.start(now, cluster, JobId(next), heads[cluster], cluster).is_ok() {
                heads[cluster] = demand(&mut draw, bandwidth);
                (next, events) = (next + 1, events + 1);
            }
        }
        now = shared.next_end().expect("something executes");
        while let Some(due) = shared.pop_due(now) {
            ready.push_back(due.what);
            events += 1;
        }
    }
    events
}

/// The twin with all clusters full, and the number of the next job.
fn filled(bandwidth: f64) -> (Twin, u64) {
    let mut draw = Draw::of_stream(1, 1);
    let mut twin = Twin::new(platform(CLUSTERS), Fairness::Proportional, Slip::None);
    let mut next = 0;
    for cluster in 0..CLUSTERS {
        loop {
            let job = demand(&mut draw, bandwidth);
            if twin.start(&[(cluster, job.tasks)], JobId(next), job).is_none() {
                break;
            }
            next += 1;
        }
    }
    (twin, next)
}

/// So many ends over the twin, and as many starts, each where it fits.
fn run_naive(twin: &mut Twin, mut next: u64, ends: u64, bandwidth: f64) {
    let mut draw = Draw::of_stream(1, 2);
    let mut now = Time::ZERO;
    for _ in 0..ends {
        now += Span::from_micros((twin.first_end().expect("something executes") * 1e6).round() as i64);
        twin.pass(now);
        let over = twin.jobs.iter().find(|(_, job)| job.left() < 1e-6).map(|(&id, _)| id);
        twin.remove(over.expect("a job has ended"));
        let job = demand(&mut draw, bandwidth);
        let started =
            (0..CLUSTERS).any(|cluster| twin.start(&[(cluster, job.tasks)], JobId(next), job).is_some());
        next += u64::from(started);
    }
}

fn events(criterion: &mut Criterion) {
    for (name, bandwidth) in [("links that suffice", 100.0), ("links that are short", 700.0)] {
        let mut group = criterion.benchmark_group(format!("events on 64 clusters of 8 nodes, {name}"));
        group.sample_size(10);
        for (rule, fairness) in [("Algorithm 3.1", Fairness::Proportional), ("max-min", Fairness::MaxMin)] {
            let new = || Shared::new(platform(CLUSTERS), Estimate::Sdpn(fairness));
            group.throughput(Throughput::Elements(run(&mut new(), 20_000, bandwidth)));
            group.bench_function(rule, |bench| bench.iter(|| run(&mut new(), 20_000, black_box(bandwidth))));
        }
        let (twin, next) = filled(bandwidth);
        group.throughput(Throughput::Elements(2 * NAIVE_ENDS));
        group.bench_function("everything, Algorithm 3.1", |bench| {
            let run = |mut twin: Twin| run_naive(&mut twin, next, NAIVE_ENDS, black_box(bandwidth));
            bench.iter_batched(|| twin.clone(), run, BatchSize::LargeInput);
        });
        group.finish();
    }
}

/// A queue of 100 jobs on the cluster of the thesis's 3.5: 16 nodes, four tasks on each, local users on half of them.
fn forward(criterion: &mut Criterion) {
    let mut draw = Draw::of_stream(2, 1);
    let node = Node { power: 1.0, memory: 1 << 20, link: 1_000.0, mpl: 4 };
    let usage = (0..16).map(|node| {
        let local = LocalLoad::constant(XWINDOWS_INTERNET);
        if node % 2 == 0 { local.at(Time::ZERO) } else { LocalLoad::default().at(Time::ZERO) }
    });
    let mut scenario = Scenario {
        now: Time::ZERO,
        cluster: Cluster { nodes: vec![node; 16], uplink: f64::INFINITY },
        usage: usage.collect(),
        running: Vec::new(),
        waiting: Vec::new(),
        selection: Selection::Fcfs,
        estimate: Estimate::Hanzich,
    };
    for id in 0..100 {
        let job = Demand { tasks: [2, 4, 8][draw.below(3)], ..demand(&mut draw, 700.0) };
        scenario.waiting.push((JobId(id), job));
    }
    let mut group = criterion.benchmark_group("prediction behind a queue of 100 jobs");
    for (name, estimate) in [
        ("sdpn", Estimate::Sdpn(Fairness::Proportional)),
        ("sdpn, max-min", Estimate::Sdpn(Fairness::MaxMin)),
        ("hanzich", Estimate::Hanzich),
    ] {
        for (rule, selection) in [("fcfs", Selection::Fcfs), ("first fit", Selection::FirstFit)] {
            let scenario = Scenario { estimate: estimate.clone(), selection, ..scenario.clone() };
            group.bench_function(format!("{name}, {rule}"), |bench| {
                bench.iter(|| predict(black_box(&scenario), JobId(99)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, events, forward);
criterion_main!(benches);
