//! Laws of shared nodes, over drawn histories and networks, and what is no law.

use std::collections::BTreeMap;

use scheduler::draw::Draw;
use scheduler::execution::{Begun, Execution};
use scheduler::sharing::{
    Cluster, Demand, Estimate, Fairness, Flow, LocalLoad, Node, Platform, Refusal, Shared, Usage, assign,
};
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

use crate::sharing_twins::{demand, platform};

const RULES: [Fairness; 2] = [Fairness::Proportional, Fairness::MaxMin];
const NODE: Node = Node { power: 1.0, memory: 1_000_000, link: 100.0, mpl: 4 };
const TOLERANCE: f64 = 1e-9;

fn one_cluster(nodes: Vec<Node>) -> Platform {
    Platform::new(&[Cluster { nodes, uplink: f64::INFINITY }]).unwrap()
}

/// Plays a drawn history to its end. Tells what executes, from when to when nothing changes, and which jobs ended then.
fn play(
    seed: u64,
    mut seen: impl FnMut(&Shared<JobId>, Time, Time),
    mut ended: impl FnMut(JobId, Demand, Time),
) {
    let mut draw = Draw::of_stream(seed, 2);
    let platform = platform(&mut draw);
    let clusters = platform.clusters();
    let mut shared = Shared::new(platform, Estimate::Sdpn(RULES[draw.below(2)]));
    let (mut now, mut demands) = (Time::ZERO, BTreeMap::new());
    for id in 0..=30 {
        let next = now + Span::from_micros(draw.below(40_000_000) as i64);
        while let Some(at) = shared.wake_at().filter(|&at| at <= next || id == 30) {
            seen(&shared, now, at);
            now = at;
            while let Some(end) = shared.pop_due(at) {
                ended(end.what, demands[&end.what], end.at);
            }
        }
        if id < 30 {
            seen(&shared, now, next);
            now = next;
            let (job, demand) = (JobId(id), demand(&mut draw));
            if shared.start(now, draw.below(clusters), job, demand, job).is_ok() {
                demands.insert(job, demand);
            }
        }
    }
    assert!(shared.is_empty());
}

#[test]
fn every_job_gets_the_work_that_it_asked_for_and_no_more() {
    let mut jobs = 0;
    for seed in 0..500 {
        let done = std::cell::RefCell::new(BTreeMap::<JobId, f64>::new());
        let pass = |shared: &Shared<JobId>, from: Time, to: Time| {
            for running in shared.running() {
                let passed = to.since(from).as_micros() as f64;
                *done.borrow_mut().entry(running.job).or_default() += passed / running.slowdown.stretch;
            }
        };
        play(seed, pass, |job, demand, _| {
            let asked = demand.run_time.as_micros() as f64;
            let done = done.borrow().get(&job).copied().unwrap_or(0.0);
            assert!(
                (done - asked).abs() <= 0.501 + TOLERANCE * asked,
                "seed {seed}, job {job}: {done} of {asked}"
            );
            jobs += 1;
        });
    }
    assert!(jobs > 3_000, "{jobs}");
}

#[test]
fn no_node_and_no_link_is_over_its_capacity() {
    let mut short = 0;
    for seed in 0..500 {
        let check = |shared: &Shared<JobId>, _: Time, _: Time| {
            let nodes = shared.platform().nodes();
            let (mut tasks, mut memory, mut sent, mut rate) =
                (vec![0; nodes.len()], vec![0; nodes.len()], vec![0.0; nodes.len()], vec![0.0; nodes.len()]);
            for running in shared.running() {
                let slowdown = running.slowdown;
                assert!(slowdown.processing >= 1.0 && slowdown.communication >= 1.0 - TOLERANCE);
                short += usize::from(slowdown.communication > 1.0);
                for node in running.nodes().map(|node| node as usize) {
                    tasks[node] += 1;
                    memory[node] += running.demand.memory;
                    sent[node] += running.demand.bandwidth / slowdown.communication;
                    // What a task computes of what this node could alone.
                    rate[node] += 1.0 / (slowdown.processing * nodes[node].power);
                }
            }
            for node in 0..nodes.len() {
                let usage = shared.usage(node as u32);
                assert!(tasks[node] <= nodes[node].mpl && memory[node] <= nodes[node].memory, "seed {seed}");
                assert!(
                    sent[node] + usage.bandwidth() <= nodes[node].link * (1.0 + TOLERANCE),
                    "seed {seed}"
                );
                assert!(rate[node] + usage.computing() <= 1.0 + TOLERANCE, "seed {seed}: {}", rate[node]);
            }
        };
        play(seed, check, |_, _, _| {});
    }
    assert!(short > 1_000, "links are short: {short}");
}

/// Jobs on fixed nodes of one cluster; the slow-down of each.
fn slowdowns(platform: &Platform, estimate: &Estimate, jobs: &[(Vec<u32>, Demand)]) -> Vec<(f64, f64, f64)> {
    let mut shared = Shared::new(platform.clone(), estimate.clone());
    for (id, (nodes, demand)) in (0..).map(JobId).zip(jobs) {
        shared.resume(Time::ZERO, id, *demand, nodes, Span::ZERO, ()).unwrap();
    }
    let slowdown = |id| shared.get(JobId(id)).unwrap().slowdown;
    let all = (0..jobs.len() as u64).map(slowdown);
    all.map(|slowdown| (slowdown.processing, slowdown.communication, slowdown.stretch)).collect()
}

fn fixed(draw: &mut Draw, nodes: usize, bandwidth: &[f64]) -> (Vec<u32>, Demand) {
    let mut all: Vec<u32> = (0..nodes as u32).collect();
    draw.shuffle(&mut all);
    all.truncate(1 + draw.below(nodes));
    let demand = Demand {
        tasks: all.len() as u32,
        run_time: Span::from_secs(100),
        bandwidth: bandwidth[draw.below(bandwidth.len())],
        ..demand(draw)
    };
    (all, demand)
}

#[test]
fn equal_jobs_get_equal_shares() {
    for seed in 0..500 {
        let mut draw = Draw::of_stream(seed, 3);
        let nodes: Vec<Node> = (0..4)
            .map(|_| Node { power: draw.between(0.1, 1.0), link: draw.between(10.0, 200.0), ..NODE })
            .collect();
        let mut jobs: Vec<_> = (0..6).map(|_| fixed(&mut draw, 4, &[0.0, 30.0, 70.0])).collect();
        jobs.push(jobs[0].clone());
        for fairness in RULES {
            let got = slowdowns(&one_cluster(nodes.clone()), &Estimate::Sdpn(fairness), &jobs);
            assert_eq!(got[0], got[6], "seed {seed}");
        }
    }
}

/// Of computing always; of links, where jobs have one link.
#[test]
fn more_load_makes_no_job_faster() {
    for seed in 0..1_000 {
        let mut draw = Draw::of_stream(seed, 4);
        let count = 1 + 3 * usize::from(draw.coin());
        let bandwidth: &[f64] = if count == 1 { &[0.0, 10.0, 60.0, 90.0] } else { &[0.0] };
        let nodes: Vec<Node> = (0..count).map(|_| Node { power: draw.between(0.1, 1.0), ..NODE }).collect();
        let mut jobs: Vec<_> = (0..5).map(|_| fixed(&mut draw, count, bandwidth)).collect();
        let users = |usage: Usage| {
            let platform = one_cluster(nodes.clone());
            platform.with_local(vec![LocalLoad::constant(usage); count]).unwrap()
        };
        let few = Usage::new(draw.between(0.0, 0.5), 0.0, draw.between(0.0, 40.0)).unwrap();
        let more = Usage::new(few.computing() + 0.3, 0.0, few.bandwidth() + 20.0).unwrap();
        for estimate in [RULES.map(Estimate::Sdpn).to_vec(), vec![Estimate::Hanzich]].concat() {
            let before = slowdowns(&users(few), &estimate, &jobs);
            let crowded = slowdowns(&users(more), &estimate, &jobs);
            jobs.push(fixed(&mut draw, count, bandwidth));
            let joined = slowdowns(&users(few), &estimate, &jobs);
            jobs.pop();
            for (before, after) in before.iter().zip(&crowded).chain(before.iter().zip(&joined)) {
                let close = 1.0 - TOLERANCE;
                let is_slower =
                    after.0 >= before.0 && after.1 >= close * before.1 && after.2 >= close * before.2;
                assert!(is_slower, "seed {seed}, {estimate:?}: {before:?} became {after:?}");
            }
        }
    }
}

/// The law ends at a second link: who is held back on one leaves more of the other. It does so under both rules.
#[test]
fn on_two_links_more_load_on_one_can_make_a_job_on_the_other_faster() {
    let flow =
        |demand, links: &[usize]| Flow { demand, links: links.iter().map(|&link| (link, 1.0)).collect() };
    let both = flow(60.0, &[0, 1]);
    let (second, first) = (flow(60.0, &[1]), flow(140.0, &[0]));
    for (fairness, without, with) in [(RULES[0], 50.0, 60.0), (RULES[1], 50.0, 50.0)] {
        let capacities = [100.0, 100.0];
        let before = assign(fairness, &capacities, &[both.clone(), second.clone()])[1];
        let after = assign(fairness, &capacities, &[both.clone(), second.clone(), first.clone()])[1];
        assert!(
            (before - without).abs() < TOLERANCE && (after - with).abs() < TOLERANCE,
            "{fairness:?}: {before}, {after}"
        );
    }
    let three = [both.clone(), second.clone(), first.clone(), first];
    let capacities = [100.0, 100.0];
    assert!(assign(Fairness::MaxMin, &capacities, &three)[1] > 50.0);
}

/// Whether each flow has what it asked for, or a full link on which none has more.
fn is_max_min(capacities: &[f64], flows: &[Flow], assigned: &[f64]) -> bool {
    let load = |link: usize| -> f64 {
        let of =
            |flow: &Flow| flow.links.iter().filter(|used| used.0 == link).map(|used| used.1).sum::<f64>();
        flows.iter().zip(assigned).map(|(flow, assigned)| of(flow) * assigned).sum()
    };
    flows.iter().zip(assigned).all(|(flow, &own)| {
        let has_all = own >= flow.demand * (1.0 - TOLERANCE);
        let is_bottleneck = |&(link, _): &(usize, f64)| {
            let on =
                flows.iter().zip(assigned).filter(|(other, _)| other.links.iter().any(|used| used.0 == link));
            let most = on.map(|(_, &assigned)| assigned).fold(0.0, f64::max);
            load(link) >= capacities[link] * (1.0 - TOLERANCE) && own >= most * (1.0 - TOLERANCE)
        };
        has_all || flow.links.iter().any(is_bottleneck)
    })
}

fn network(seed: u64) -> (Vec<f64>, Vec<Flow>) {
    let mut draw = Draw::of_stream(seed, 5);
    let capacities: Vec<f64> = (0..1 + draw.below(6)).map(|_| draw.between(10.0, 100.0)).collect();
    let flows = (0..1 + draw.below(8)).map(|_| {
        let mut links: Vec<usize> = (0..capacities.len()).collect();
        draw.shuffle(&mut links);
        links.truncate(1 + draw.below(capacities.len()));
        let weight = [1.0, 1.0, 2.5][draw.below(3)];
        Flow {
            demand: draw.between(0.0, 80.0),
            links: links.into_iter().map(|link| (link, weight)).collect(),
        }
    });
    let flows = flows.collect();
    (capacities, flows)
}

#[test]
fn networks_are_shared_within_capacity_and_max_min_is_max_min() {
    for seed in 0..5_000 {
        let (capacities, flows) = network(seed);
        for fairness in RULES {
            let assigned = assign(fairness, &capacities, &flows);
            let mut loads = vec![0.0; capacities.len()];
            for (flow, &assigned) in flows.iter().zip(&assigned) {
                assert!(assigned <= flow.demand && (assigned > 0.0 || flow.demand == 0.0), "seed {seed}");
                flow.links.iter().for_each(|&(link, weight)| loads[link] += weight * assigned);
            }
            let is_over = |(load, capacity): (&f64, &f64)| *load > capacity * (1.0 + TOLERANCE);
            assert!(!loads.iter().zip(&capacities).any(is_over), "seed {seed}: {loads:?} of {capacities:?}");
            if fairness == Fairness::MaxMin {
                assert!(is_max_min(&capacities, &flows, &assigned), "seed {seed}: {assigned:?}");
            }
        }
    }
}

#[test]
fn mutant_the_printed_rule_is_not_max_min() {
    let refused = (0..1_000).filter(|&seed| {
        let (capacities, flows) = network(seed);
        !is_max_min(&capacities, &flows, &assign(Fairness::Proportional, &capacities, &flows))
    });
    let refused = refused.count();
    eprintln!("{refused} of 1,000");
    assert!(refused > 100, "{refused}");
}

/// Clusters of the thesis's policy BASIC: one task per node, and nobody else. Links are short for nobody.
#[test]
fn jobs_that_share_nothing_end_as_where_nothing_can_be_shared() {
    let described = |id| JobSpec {
        id,
        submit: Time::ZERO,
        processors: 1,
        requested: Span::ZERO,
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    let mut jobs = 0;
    for seed in 0..500 {
        let mut draw = Draw::of_stream(seed, 6);
        let cluster = Cluster { nodes: vec![Node { mpl: 1, ..NODE }; 8], uplink: 100.0 };
        let platform = Platform::new(&[cluster.clone(), cluster]).unwrap();
        let mut shared = Shared::new(platform, Estimate::Sdpn(RULES[draw.below(2)]));
        let mut execution = Execution::default();
        let mut now = Time::ZERO;
        for id in 0..60 {
            now += Span::from_micros(draw.below(30_000_000) as i64);
            loop {
                let (one, other) = (shared.pop_due(now), execution.pop_due(now));
                assert_eq!(one, other, "seed {seed}");
                if one.is_none() {
                    break;
                }
            }
            let (job, demand) =
                (JobId(id), Demand { bandwidth: 100.0 * draw.uniform(), ..demand(&mut draw) });
            match shared.start(now, draw.below(2), job, demand, id) {
                Ok(_) => execution.start(
                    now,
                    Begun {
                        site: SiteId(1),
                        job: &described(job),
                        run_time: demand.run_time,
                        order: id,
                        key: id,
                    },
                ),
                Err(Refusal::Full { .. }) => continue,
                Err(refusal) => panic!("{refusal}"),
            }
            jobs += 1;
            assert_eq!(shared.next_end(), execution.next_end(), "seed {seed}");
        }
    }
    assert!(jobs > 10_000, "{jobs}");
}

/// What is left is subtracted from over and over; the exact value has the denominator 6.
#[test]
fn a_hundred_thousand_changes_add_up_to_no_error() {
    let mut shared = Shared::new(one_cluster(vec![Node { mpl: 3, ..NODE }]), Estimate::default());
    let asked = 50_000_000_000;
    let long =
        Demand { tasks: 1, run_time: Span::from_micros(asked), computing: 1.0, bandwidth: 0.0, memory: 0 };
    shared.start(Time::ZERO, 0, JobId(0), long, ()).unwrap();
    let mut draw = Draw::of_stream(1, 7);
    let (mut now, mut sixths, mut beside) = (Time::ZERO, 0, Vec::new());
    for id in 1..=100_000 {
        let passed = 1 + draw.below(500_000) as i64;
        now += Span::from_micros(passed);
        sixths += passed * 6 / (1 + beside.len() as i64);
        if beside.len() == 2 || (beside.len() == 1 && draw.coin()) {
            shared.stop(now, beside.swap_remove(draw.below(beside.len()))).unwrap();
        } else {
            shared.start(now, 0, JobId(id), long, ()).unwrap();
            beside.push(JobId(id));
        }
        let (left, exact) = (shared.get(JobId(0)).unwrap().remaining(now), (6 * asked - sixths) as f64 / 6.0);
        assert!((left - exact).abs() < 1e-12 * asked as f64, "after {id} changes {left}, not {exact}");
    }
    for job in beside {
        shared.stop(now, job).unwrap();
    }
    let end = shared.next_end().unwrap().since(now).as_micros();
    assert!((6 * end - (6 * asked - sixths)).abs() <= 6, "the end is right to a microsecond");
}

#[test]
fn what_cannot_start_is_refused_and_changes_nothing() {
    let mut shared = Shared::new(one_cluster(vec![NODE; 2]), Estimate::default());
    let job =
        Demand { tasks: 2, run_time: Span::from_secs(1), computing: 1.0, bandwidth: 0.0, memory: 600_000 };
    assert_eq!(shared.start(Time::ZERO, 0, JobId(1), job, ()).unwrap(), [0, 1]);
    let wide = Demand { tasks: 3, ..job };
    let mut refused =
        |cluster, id, demand| shared.start(Time::ZERO, cluster, JobId(id), demand, ()).unwrap_err();
    assert_eq!(refused(0, 1, job), Refusal::Executes(JobId(1)));
    assert_eq!(refused(0, 2, job), Refusal::Full { job: JobId(2), cluster: 0, tasks: 2, free: 0 });
    assert_eq!(refused(0, 2, wide), Refusal::TooWide { job: JobId(2), cluster: 0, tasks: 3, nodes: 2 });
    assert_eq!(refused(7, 2, job), Refusal::NoCluster { job: JobId(2), cluster: 7, clusters: 1 });
    let text = refused(0, 2, Demand { tasks: 0, ..job }).to_string();
    assert_eq!(text, "job 2: a job has no tasks: give it at least 1");
    let twice = shared.start_spread(Time::ZERO, &[(0, 1), (0, 1)], JobId(2), job, ()).unwrap_err();
    assert_eq!(twice, Refusal::Nodes { job: JobId(2), tasks: 2, told: 2 });
    let same = shared.resume(Time::ZERO, JobId(2), job, &[1, 1], Span::ZERO, ()).unwrap_err();
    assert_eq!(same, Refusal::Nodes { job: JobId(2), tasks: 2, told: 1 });
    assert_eq!((shared.len(), shared.next_end()), (1, Some(Time::from_secs(1))));
    let light = Demand { memory: 400_000, ..job };
    assert_eq!(shared.start(Time::ZERO, 0, JobId(2), light, ()).unwrap(), [0, 1]);
    assert_eq!(shared.next_end(), Some(Time::from_secs(2)));
}
