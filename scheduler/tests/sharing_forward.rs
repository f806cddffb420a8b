//! A queue that is played forward: by hand, against a twin, and what it refuses.

use std::collections::BTreeMap;
use std::sync::Arc;

use scheduler::draw::Draw;
use scheduler::sharing::forward::{ForwardError, Placed, Predicted, Scenario, Selection, plan, predict};
use scheduler::sharing::local_load::{NOBODY, XWINDOWS_INTERNET};
use scheduler::sharing::{
    Cluster, Demand, Estimate, Fairness, LocalLoad, Node, Platform, Refusal, Shared, Usage,
};
use scheduler::{JobId, Span, Time};

use crate::sharing_twin::{Slip, Twin};

const NODE: Node = Node { power: 1.0, memory: 1_000_000, link: 100.0, mpl: 2 };

/// A job by the seconds that it computes and communicates on idle nodes.
fn job(tasks: u32, computes: i64, communicates: i64, bandwidth: f64) -> Demand {
    let run_time = Span::from_secs(computes + communicates);
    let computing = computes as f64 / (computes + communicates) as f64;
    Demand { tasks, run_time, computing, bandwidth, memory: 0 }
}

/// Two jobs execute, which meet on the second node; a third needs all four.
fn by_hand(nodes: Vec<Node>, usage: Vec<Usage>) -> Scenario {
    let placed = |id, demand, nodes: [u32; 2]| Placed {
        job: JobId(id),
        demand,
        nodes: nodes.to_vec(),
        done: Span::ZERO,
    };
    Scenario {
        now: Time::from_secs(1_000),
        cluster: Cluster { nodes, uplink: f64::INFINITY },
        usage,
        running: vec![placed(1, job(2, 20, 10, 60.0), [0, 1]), placed(2, job(2, 30, 6, 50.0), [1, 2])],
        waiting: vec![(JobId(3), job(4, 40, 8, 60.0))],
        selection: Selection::Fcfs,
        estimate: Estimate::default(),
    }
}

fn seconds(predicted: Predicted) -> (f64, f64) {
    (predicted.wait.as_secs_f64(), predicted.execution.as_secs_f64())
}

fn near(one: (f64, f64), other: (f64, f64)) -> bool {
    (one.0 - other.0).abs() < 5e-5 && (one.1 - other.1).abs() < 5e-5
}

#[test]
fn a_queue_is_played_forward_as_calculated_by_hand() {
    let scenario = by_hand(vec![NODE; 4], vec![NOBODY; 4]);
    let of_third = seconds(predict(&scenario, JobId(3)).unwrap());
    assert!(near(of_third, (51.0, 55.1676)), "{of_third:?}");
    // The second would have ended at 66.6 if the third had not come; that took it no longer, as it had met the first before.
    assert!(near(seconds(predict(&scenario, JobId(2)).unwrap()), (0.0, 66.6)));
    let mut nodes = vec![NODE; 4];
    nodes[3].power = 0.5;
    let mut usage = vec![NOBODY; 4];
    usage[2] = Usage::new(0.15, 0.0, 0.0).unwrap();
    let of_third = seconds(predict(&by_hand(nodes, usage), JobId(3)).unwrap());
    assert!(near(of_third, (51.0, 90.6207)), "{of_third:?}");
}

#[test]
fn hanzich_counts_tasks_only_and_hybrid_what_was_learned_for_them() {
    let mut scenario = by_hand(vec![NODE; 4], vec![XWINDOWS_INTERNET; 4]);
    scenario.estimate = Estimate::Hanzich;
    // 30 s and 36 s, twice; then 6 s are left of the second beside the third, which has 48 - 6 s for itself.
    assert_eq!(seconds(predict(&scenario, JobId(3)).unwrap()), (60.0, 12.0 + 42.0));
    let learned = BTreeMap::from([
        (JobId(1), vec![1.0, 1.5]),
        (JobId(2), vec![1.1, 1.25]),
        // Alone, and beside any others.
        (JobId(3), vec![1.0, 3.0]),
    ]);
    scenario.estimate = Estimate::Hybrid(Arc::new(learned));
    // The first ends at 45, the second at 45; the third is alone.
    assert_eq!(seconds(predict(&scenario, JobId(3)).unwrap()), (45.0, 48.0));
}

#[test]
fn hanzich_and_the_model_agree_on_equal_nodes_without_communication_and_local_users() {
    for seed in 0..300 {
        let mut scenario = drawn(seed);
        scenario.cluster.nodes.iter_mut().for_each(|node| node.power = 1.0);
        scenario.usage.fill(NOBODY);
        scenario.running.iter_mut().for_each(|placed| placed.demand.computing = 1.0);
        scenario.waiting.iter_mut().for_each(|waiting| waiting.1.computing = 1.0);
        let model = plan(&scenario).unwrap();
        scenario.estimate = Estimate::Hanzich;
        assert_eq!(plan(&scenario).unwrap(), model, "seed {seed}");
    }
}

/// A cluster in the middle of its work.
fn drawn(seed: u64) -> Scenario {
    let mut draw = Draw::of_stream(seed, 8);
    let mpl = 1 + draw.below(4) as u32;
    let nodes = (0..2 + draw.below(5)).map(|_| Node { power: [1.0, 0.7][draw.below(2)], mpl, ..NODE });
    let nodes: Vec<Node> = nodes.collect();
    let usage = nodes.iter().map(|_| [NOBODY, XWINDOWS_INTERNET][draw.below(2)]).collect();
    let demand = |draw: &mut Draw| Demand {
        tasks: 1 + draw.below(nodes.len()) as u32,
        run_time: Span::from_micros(1_000_000 + draw.below(500_000_000) as i64),
        computing: draw.uniform(),
        bandwidth: 70.0 * draw.uniform(),
        memory: 1_000 * draw.below(300) as u64,
    };
    let mut beginning = Shared::new(
        Platform::new(&[Cluster { nodes: nodes.clone(), uplink: f64::INFINITY }]).unwrap(),
        Estimate::default(),
    );
    let mut running = Vec::new();
    for id in 0..draw.below(6) as u64 {
        let (job, demand) = (JobId(id), demand(&mut draw));
        if let Ok(nodes) = beginning.start(Time::ZERO, 0, job, demand, ()) {
            let done = Span::from_micros(draw.below(300_000_000) as i64);
            running.push(Placed { job, demand, nodes: nodes.to_vec(), done });
        }
    }
    let waiting = (100..101 + draw.below(20) as u64).map(|id| (JobId(id), demand(&mut draw))).collect();
    Scenario {
        now: Time::from_secs(draw.below(1_000) as i64),
        cluster: Cluster { nodes: nodes.clone(), uplink: f64::INFINITY },
        usage,
        running,
        waiting,
        selection: [Selection::Fcfs, Selection::FirstFit][draw.below(2)],
        estimate: Estimate::Sdpn([Fairness::Proportional, Fairness::MaxMin][draw.below(2)]),
    }
}

/// A mistake in playing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misplay {
    None,
    /// As printed: nothing is selected before the first end.
    SelectsAfterEnds,
    /// What jobs have done is forgotten.
    ForgetsWhatIsDone,
    /// Whoever fits may go first, or nobody may.
    OtherSelection,
    /// Who starts slows down nobody else.
    NobodyIsSlowedDown,
}

/// Algorithm 3.2 over the twin that calculates everything; start and end of each job, in seconds.
fn naive(scenario: &Scenario, misplay: Misplay) -> BTreeMap<JobId, (f64, f64)> {
    let Estimate::Sdpn(fairness) = scenario.estimate else { unreachable!("drawn with the model") };
    let local = scenario.usage.iter().map(|&usage| LocalLoad::constant(usage)).collect();
    let platform = Platform::new(std::slice::from_ref(&scenario.cluster)).unwrap().with_local(local).unwrap();
    let slip = if misplay == Misplay::NobodyIsSlowedDown { Slip::OthersKeepTheirs } else { Slip::None };
    let mut twin = Twin::new(platform, fairness, slip);
    let (mut now, mut passed, mut times) = (Time::ZERO, 0.0, BTreeMap::new());
    for Placed { job, demand, nodes, done } in &scenario.running {
        let nodes = nodes.iter().map(|&node| node as usize).collect();
        let done = if misplay == Misplay::ForgetsWhatIsDone { 0.0 } else { done.as_secs_f64() };
        twin.put(*job, *demand, nodes, done);
        times.insert(*job, (0.0, f64::NAN));
    }
    let mut waiting = scenario.waiting.clone();
    let only_head = (scenario.selection == Selection::Fcfs) != (misplay == Misplay::OtherSelection);
    let mut is_first = misplay == Misplay::SelectsAfterEnds && !twin.jobs.is_empty();
    loop {
        let mut place = 0;
        while place < waiting.len() && !is_first {
            let (job, demand) = waiting[place];
            if twin.start(&[(0, demand.tasks)], job, demand).is_some() {
                times.insert(job, (passed, f64::NAN));
                waiting.remove(place);
            } else if only_head {
                break;
            } else {
                place += 1;
            }
        }
        is_first = false;
        let Some(left) = twin.first_end() else { return times };
        now += Span::from_micros((left * 1e6).round() as i64);
        passed = now.as_secs_f64();
        twin.pass(now);
        let over = |job: &&JobId| twin.jobs[job].left() < 1e-6;
        let ended: Vec<JobId> = twin.jobs.keys().filter(over).copied().collect();
        assert!(!ended.is_empty());
        for job in ended {
            twin.remove(job);
            times.get_mut(&job).unwrap().1 = passed;
        }
    }
}

fn differs(seed: u64, misplay: Misplay) -> Option<String> {
    let scenario = drawn(seed);
    let naive = naive(&scenario, misplay);
    let planned = plan(&scenario).unwrap();
    if planned.len() != naive.len() {
        return Some(format!("{} jobs and {}", planned.len(), naive.len()));
    }
    for planned in planned {
        let of = |time: Time| time.since(scenario.now).as_secs_f64();
        let (start, end) = naive[&planned.job];
        // Ends are rounded to microseconds, here and there from values that differ by less.
        let is_near = |one: f64, other: f64| (one - other).abs() < 2e-5 + 1e-9 * other;
        if !is_near(of(planned.start), start) || !is_near(of(planned.end), end) {
            return Some(format!("{planned:?}, not {start} and {end}"));
        }
        let predicted = predict(&scenario, planned.job).unwrap();
        assert_eq!(scenario.now + predicted.wait, planned.start);
        assert_eq!(predicted.execution, planned.end.since(planned.start));
    }
    None
}

#[test]
fn a_plan_is_what_the_printed_algorithm_gives_by_calculating_everything() {
    for seed in 0..1_000 {
        assert_eq!(differs(seed, Misplay::None), None, "seed {seed}");
    }
}

#[test]
fn mutant_a_queue_that_is_misplayed_is_found() {
    for misplay in [
        Misplay::SelectsAfterEnds,
        Misplay::ForgetsWhatIsDone,
        Misplay::OtherSelection,
        Misplay::NobodyIsSlowedDown,
    ] {
        let first = (0..100).find(|&seed| differs(seed, misplay).is_some());
        eprintln!("{misplay:?}: {first:?}");
        assert!(first.is_some(), "{misplay:?} was not found");
    }
}

#[test]
fn who_is_not_there_or_never_starts_is_refused() {
    let mut scenario = by_hand(vec![NODE; 4], vec![NOBODY; 4]);
    assert_eq!(predict(&scenario, JobId(9)), Err(ForwardError::Unknown(JobId(9))));
    scenario.waiting.insert(0, (JobId(4), Demand { memory: 2_000_000, ..job(1, 1, 0, 0.0) }));
    let refusal = Refusal::Full { job: JobId(4), cluster: 0, tasks: 1, free: 0 };
    assert_eq!(predict(&scenario, JobId(3)), Err(ForwardError::Never { job: JobId(4), refusal }));
    scenario.waiting[0].1 = job(5, 1, 0, 0.0);
    let text = predict(&scenario, JobId(3)).unwrap_err().to_string();
    assert_eq!(
        text,
        "job 4 would never start, not even alone: job 4 has 5 tasks and cluster 0 only 4 nodes: send it elsewhere or over several clusters"
    );
    scenario.running[0].nodes = vec![0, 7];
    assert!(matches!(
        predict(&scenario, JobId(3)),
        Err(ForwardError::Running(Refusal::Nodes { told: 1, .. }))
    ));
}
