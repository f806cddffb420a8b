//! How much jobs slow local users down: the intrusion SI of Lérida's thesis (§4.3.3), the mean latency of calls of local users
//! beside jobs over that without them.
//!
//! SDPN has local users take their share of a processor whatever jobs do, so it has no latency. The reading here: a processor serves the
//! call of a local user and the tasks that compute in turn, a little of each at a time, so that a call takes 1 + n times as long beside n of
//! them (processor sharing, Kleinrock, *Queueing Systems* II, §4.4). A task counts for the part of its time in which it computes. Calls
//! are as many as the share of the processor that local users take.

use scheduler::sharing::LocalLoad;
use scheduler::{Span, Time};

use crate::outcome::Outcome;

const MILLION: f64 = 1e6;

/// SI from the first submission to the last end: at least 1, and 1 if no job was beside a local user. `None` where there were none.
pub fn intrusion(outcome: &Outcome) -> Option<f64> {
    let (from, to) = (outcome.origin, outcome.origin.saturating_add(outcome.makespan()));
    let sites = outcome.grid.sites().iter();
    let loads =
        sites.filter_map(|site| outcome.grid.cluster(site.id)).flat_map(|nodes| nodes.platform.local());
    let calls: f64 = loads.map(|load| taken(load, from, to)).sum();
    if calls <= 0.0 {
        return None;
    }
    let mut beside = 0.0;
    for (_, site, _, placement) in outcome.placements.iter() {
        let Some(cluster) = outcome.grid.cluster(site) else { continue };
        for (begin, end, pace) in placement.spans(outcome.until) {
            let (begin, end) = (begin.max(from), end.min(to));
            let loads =
                placement.nodes.iter().filter_map(|&node| cluster.platform.local().get(node as usize));
            let taken: f64 = loads.map(|load| taken(load, begin, end)).sum();
            beside += f64::from(pace.computing_millionths) / MILLION * taken;
        }
    }
    Some(1.0 + beside / calls)
}

/// Processor-seconds that local users of a node take between two instants.
fn taken(load: &LocalLoad, from: Time, to: Time) -> f64 {
    if to <= from {
        return 0.0;
    }
    let changes = load.changes();
    let first = changes.partition_point(|change| change.0 <= from);
    let mut taken = 0.0;
    let (mut at, mut share) = (from, load.at(from).computing());
    for &(change, usage) in changes[first..].iter().take_while(|change| change.0 < to) {
        taken += share * seconds(change.since(at));
        (at, share) = (change, usage.computing());
    }
    taken + share * seconds(to.since(at))
}

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use scheduler::sharing::{Cluster, Fairness, Node, Platform, Usage};
    use scheduler::{Event, EventKind, Grid, JobId, SharedNodes, Threshold};

    use super::*;
    use crate::fixtures::{completed, event, started, timed_job};
    use crate::outcome::OutcomeBuilder;

    /// A site of as many nodes as there are loads; each job submitted at 0, with its nodes, its end in seconds, and the part of its
    /// time in which it computes, in percent.
    fn si(loads: Vec<LocalLoad>, jobs: &[(&[u32], i64, u32)]) -> Option<f64> {
        let node = Node { power: 1.0, memory: 1, link: 100.0, mpl: 4 };
        let cluster = Cluster { nodes: vec![node; loads.len()], uplink: f64::INFINITY };
        let platform = Platform::new(&[cluster]).unwrap().with_local(loads).unwrap();
        let (fairness, applications) = (Fairness::Proportional, Arc::new(BTreeMap::new()));
        let places = 4 * platform.nodes().len() as u32;
        let nodes = SharedNodes { platform: Arc::new(platform), fairness, applications };
        let grid = Grid::of_sizes(&[places]).unwrap().with_clusters([Some(Arc::new(nodes))]).unwrap();
        let workload: Vec<_> =
            jobs.iter().zip(1..).map(|(job, id)| timed_job(id, 0, job.0.len() as u32, job.1)).collect();
        let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &workload);
        let mut ends: Vec<Event> = Vec::new();
        for (&(nodes, end, percent), id) in jobs.iter().zip(1..) {
            let job = JobId(id);
            builder.observe(&started(0, 1, id, nodes.len() as u32));
            for &node in nodes {
                builder.observe(&event(0, 1, EventKind::Placed { job, node }));
            }
            let computing_millionths = percent * 10_000;
            let pace = EventKind::Paced { job, slowdown_millionths: 1_000_000, computing_millionths };
            builder.observe(&event(0, 1, pace));
            ends.push(completed(end, 1, id));
        }
        ends.sort_by_key(|event| event.at);
        ends.iter().for_each(|event| builder.observe(event));
        intrusion(&builder.finish())
    }

    fn user(share: f64) -> LocalLoad {
        LocalLoad::constant(Usage::new(share, 0.0, 0.0).unwrap())
    }

    #[test]
    fn without_local_users_there_is_none_and_without_jobs_beside_them_it_is_1() {
        assert_eq!(si(vec![LocalLoad::default()], &[(&[0], 10, 100)]), None);
        assert_eq!(si(vec![user(0.2), LocalLoad::default()], &[(&[1], 10, 100)]), Some(1.0));
    }

    #[test]
    fn each_task_that_computes_beside_a_user_adds_one_latency_for_its_part_of_the_time() {
        let of = |jobs: &[(&[u32], i64, u32)]| si(vec![user(0.25)], jobs).unwrap();
        assert_eq!(of(&[(&[0], 10, 100)]), 2.0);
        assert_eq!(of(&[(&[0], 10, 100), (&[0], 10, 100), (&[0], 10, 100)]), 4.0);
        // Half of the time, and half of it computing.
        assert_eq!(of(&[(&[0], 10, 100), (&[0], 5, 100)]), 2.5);
        assert_eq!(of(&[(&[0], 10, 50), (&[0], 5, 50)]), 1.75);
    }

    #[test]
    fn nodes_count_by_the_calls_of_their_users_and_times_too() {
        // A quarter of all calls is on the first node.
        let loads = || vec![user(0.125), user(0.375)];
        assert_eq!(si(loads(), &[(&[0], 8, 100)]), Some(1.25));
        assert_eq!(si(loads(), &[(&[1], 8, 100)]), Some(1.75));
        assert_eq!(si(loads(), &[(&[0, 1], 8, 100)]), Some(2.0));
        // A user who comes after 6 of 8 seconds meets a job of 7 for half of the time that is left.
        let comes = LocalLoad::changing(vec![(Time::from_secs(6), Usage::new(0.5, 0.0, 0.0).unwrap())]);
        assert_eq!(si(vec![comes, LocalLoad::default()], &[(&[0], 7, 100), (&[1], 8, 100)]), Some(1.5));
    }
}
