//! Jobs in parts at several sites whose nodes jobs share: one execution, as fast as its slowest task, that ends everywhere at once.
//!
//! The judge is the audit, which shares no code with the model; and where nothing is shared the schedule is that of processors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use analysis::sharing::audit;
use analysis::{Outcome, OutcomeBuilder};
use links::{Model, Properties};
use proptest::prelude::*;
use protocol::{Options, Terms};
use scheduler::sharing::local_load::{Layout, Redraws, Spread, Usage};
use scheduler::sharing::{Cluster, Fairness, Node, Platform};
use scheduler::strategy::{ClusterSelection, Coallocation, JobSelection, MetaScheduler, Phases, QueueLimit};
use scheduler::{
    Application, Broker, Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, SharedNodes, SiteId,
    Span, Strategy as Scheduling, Threshold, Time, TimedJob,
};

use crate::coallocation::{self, agreed, events as ideal, mcisne, spreading};

/// What on nodes there is for jobs that share them.
const LOCALS: [LocalScheduler; 3] = [LocalScheduler::Fcfs, LocalScheduler::List, LocalScheduler::Easy];

/// Nodes of a cluster, and what its link to all others carries.
#[derive(Clone, Debug)]
struct Nodes {
    nodes: Vec<Node>,
    uplink: f64,
    /// Whether local users come and go; by which seed.
    users: Option<u64>,
}

impl Nodes {
    /// Idle ones of full power that one job has each, on links that carry anything.
    fn dedicated(count: u32) -> Nodes {
        let node = Node { power: 1.0, memory: 1000, link: f64::INFINITY, mpl: 1 };
        Nodes { nodes: vec![node; count as usize], uplink: f64::INFINITY, users: None }
    }

    fn of_power(count: usize, power: f64, mpl: u32, uplink: f64) -> Nodes {
        let node = Node { power, memory: 1000, link: f64::INFINITY, mpl };
        Nodes { nodes: vec![node; count], uplink, users: None }
    }
}

fn programs() -> Arc<BTreeMap<i32, Application>> {
    let programs = [
        (1, Application { computing: 0.5, bandwidth: 60.0 }),
        (2, Application { computing: 0.9, bandwidth: 10.0 }),
        (3, Application { computing: 0.2, bandwidth: 45.0 }),
    ];
    Arc::new(programs.into_iter().collect())
}

/// Sites with such nodes and a broker, for jobs as wide as the rules spread them.
fn grid(clusters: &[Nodes], fairness: Fairness, rules: &Broker) -> Grid {
    let shared = clusters.iter().map(|Nodes { nodes, uplink, users }| {
        let platform =
            Platform::new(&[Cluster { nodes: nodes.clone(), uplink: *uplink }]).expect("a cluster");
        let platform = match users {
            None => platform,
            Some(seed) => {
                let spread = Spread {
                    usage: Usage::new(0.2, 0.3, 5.0).expect("a usage"),
                    share: 0.4,
                    layout: Layout::Uniform,
                    redraws: Some(Redraws { every: Span::from_secs(20), until: Time::from_secs(300) }),
                };
                platform.with_local(spread.draw(&[nodes.len()], *seed)).expect("a load for each")
            }
        };
        Some(Arc::new(SharedNodes { platform: Arc::new(platform), fairness, applications: programs() }))
    });
    let places = |nodes: &Nodes| nodes.nodes.iter().map(|node| node.mpl).sum();
    let sites = clusters.iter().zip(1..).map(|(nodes, number)| (format!("site{number}"), places(nodes)));
    let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).expect("names differ");
    let grid = grid.with_clusters(shared).expect("wider sites have more nodes");
    spreading(grid, rules)
}

fn spreads(by: Coallocation) -> Broker {
    mcisne(MetaScheduler { coallocation: by, ..MetaScheduler::default() })
}

fn job(id: u64, submit: i64, processors: u32, seconds: i64, executable: i32) -> TimedJob {
    let job = coallocation::job(id, submit, processors, seconds);
    TimedJob { spec: JobSpec { labels: Labels { executable, ..job.spec.labels }, ..job.spec }, ..job }
}

fn by_messages(
    grid: &Grid,
    rules: Broker,
    local: LocalScheduler,
    jobs: &[TimedJob],
    network: Model,
) -> Vec<Event> {
    let retry = (network != Model::ZERO).then(|| Span::from_secs(60));
    let options = Options { retry, ..Options::default() };
    let terms = Terms { local, options, ..Terms::new(Arc::new(grid.clone()), Scheduling::Broker(rules)) };
    agreed(terms, network, jobs)
}

fn outcome(grid: &Grid, jobs: &[TimedJob], events: &[Event]) -> Outcome {
    let mut builder = OutcomeBuilder::new(grid, Threshold::HALF, jobs);
    events.iter().for_each(|event| builder.observe(event));
    builder.finish()
}

/// Where and when a job was.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ran {
    parts: BTreeMap<SiteId, u32>,
    nodes: BTreeSet<(SiteId, u32)>,
    starts: BTreeSet<Time>,
    ends: BTreeSet<Time>,
    ended: usize,
}

/// What a log says of each job; or what of it cannot be: places that are taken twice or kept, tasks that are not there, or parts that end one after the
/// other.
fn ran(grid: &Grid, jobs: &[TimedJob], events: &[Event]) -> Result<BTreeMap<JobId, Ran>, String> {
    let mut free: BTreeMap<SiteId, i64> =
        grid.machines().map(|site| (site.id, i64::from(site.processors))).collect();
    let mut all: BTreeMap<JobId, Ran> = BTreeMap::new();
    for &Event { at, site, kind } in events {
        let room = free.entry(site).or_default();
        match kind {
            EventKind::Started { job, processors, .. } | EventKind::PartStarted { job, processors, .. } => {
                *room -= i64::from(processors);
                let ran = all.entry(job).or_default();
                if *room < 0 || ran.parts.insert(site, processors).is_some() {
                    return Err(format!("job {job} has no place at {site}"));
                }
                ran.starts.insert(at);
            }
            EventKind::Completed { job, processors } | EventKind::PartCompleted { job, processors, .. } => {
                *room += i64::from(processors);
                let ran = all.entry(job).or_default();
                ran.ends.insert(at);
                ran.ended += 1;
            }
            EventKind::Placed { job, node } => {
                let is_new = all.entry(job).or_default().nodes.insert((site, node));
                if !is_new {
                    return Err(format!("job {job} has two tasks on a node"));
                }
            }
            _ => {}
        }
    }
    for TimedJob { spec, .. } in jobs {
        let ran = all.get(&spec.id).ok_or(format!("job {} never starts", spec.id))?;
        let tasks: u32 = ran.parts.values().sum();
        if tasks != spec.processors || ran.nodes.len() != tasks as usize {
            return Err(format!("job {} has {tasks} tasks on {:?}", spec.id, ran.nodes));
        }
        if ran.ends.len() != 1 || ran.ended != ran.parts.len() {
            return Err(format!("job {} does not end everywhere at once", spec.id));
        }
    }
    let is_empty = grid.machines().all(|site| free[&site.id] == i64::from(site.processors));
    if is_empty { Ok(all) } else { Err("places are kept after the last end".to_string()) }
}

/// Whether a log holds by the naive audit, and what it says of jobs.
fn judged(grid: &Grid, jobs: &[TimedJob], events: &[Event]) -> Result<BTreeMap<JobId, Ran>, String> {
    let all = ran(grid, jobs, events)?;
    let outcome = outcome(grid, jobs, events);
    if !outcome.is_complete() {
        return Err("not all jobs have ended".to_string());
    }
    match audit::audit(&outcome).first() {
        Some(wrong) => Err(wrong.to_string()),
        None => Ok(all),
    }
}

fn rules() -> impl Strategy<Value = Broker> {
    // Those that saturate no link may never find parts.
    let by = vec![Coallocation::Optimal, Coallocation::Jones, Coallocation::SuperCluster];
    let limits = vec![QueueLimit::Jobs(1), QueueLimit::Jobs(3), QueueLimit::None, QueueLimit::Rates];
    (
        prop::sample::select(by),
        prop::sample::select(Phases::ALL),
        prop::sample::select(ClusterSelection::ALL),
        prop::sample::select(JobSelection::ALL),
        prop::sample::select(limits),
    )
        .prop_map(|(coallocation, phases, select, jobs, limit)| {
            mcisne(MetaScheduler { coallocation, phases, select, jobs, limit, ..MetaScheduler::default() })
        })
}

/// Jobs of any width that the rules take, with what they ask of memory and which program they are.
fn jobs(drawn: &[(i64, prop::sample::Index, i64, i64, i32, i64)], widest: u32) -> Vec<TimedJob> {
    let jobs = drawn.iter().zip(1..).map(|(&(submit, width, run, factor, executable, memory), id)| {
        let width = 1 + width.index(widest as usize) as u32;
        let mut job = job(id, submit, width, run, executable);
        job.spec.requested = Span::from_secs((run * factor).max(1));
        job.spec.labels.memory = memory;
        job
    });
    let mut jobs: Vec<TimedJob> = jobs.collect();
    jobs.sort_by_key(|job| job.spec.key());
    jobs
}

type Drawn = Vec<(i64, prop::sample::Index, i64, i64, i32, i64)>;

fn drawn(most: i32, least: i64) -> impl Strategy<Value = Drawn> {
    let one = (0i64..60, any::<prop::sample::Index>(), least..25, 1i64..4, 0..=most, 0i64..200);
    prop::collection::vec(one, 1..=25)
}

/// Nodes of all kinds that more than one job may have, with users and links that are short for some programs.
fn shared() -> impl Strategy<Value = Vec<Nodes>> {
    let cluster = (1usize..6, prop::collection::vec(1u32..4, 6), 20f64..200.0, any::<bool>(), any::<u64>());
    (prop::collection::vec(cluster, 2..=4), 1u32..4).prop_map(|(mut clusters, mpl)| {
        clusters.sort_by_key(|cluster| cluster.0);
        let nodes = |(count, powers, uplink, has_users, seed): (usize, Vec<u32>, f64, bool, u64)| {
            let node = |number: usize| Node {
                power: 1.0 / f64::from(powers[number]),
                memory: 1000,
                link: 100.0,
                mpl,
            };
            Nodes { nodes: (0..count).map(node).collect(), uplink, users: has_users.then_some(seed) }
        };
        clusters.into_iter().map(nodes).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Who sees all, and sites that agree by messages in no time: the ends of both are those of the audit, and they do the same. In the second phase
    /// parts of two jobs may come to a site in the other order, as one of them has yet to leave a queue, and so to other nodes.
    #[test]
    fn a_job_in_parts_on_shared_nodes_goes_on_as_its_slowest_task(
        clusters in shared(),
        drawn in drawn(3, 0),
        rules in rules(),
        local in prop::sample::select(LOCALS.to_vec()),
        fairness in prop::sample::select(vec![Fairness::Proportional, Fairness::MaxMin]),
    ) {
        let grid = grid(&clusters, fairness, &rules);
        let jobs = jobs(&drawn, grid.widest_job());
        let seen = judged(&grid, &jobs, &ideal(&grid, rules, local, &jobs)).map_err(TestCaseError::fail)?;
        let agreed = judged(&grid, &jobs, &by_messages(&grid, rules, local, &jobs, Model::ZERO));
        let agreed = agreed.map_err(TestCaseError::fail)?;
        let may_differ = rules.meta.phases == Phases::Two;
        let seen: Vec<_> = seen.iter().filter(|_| !may_differ).collect();
        let others: Vec<_> = seen.into_iter().filter(|(job, ran)| agreed[job] != **ran).collect();
        let as_agreed: Vec<&Ran> = others.iter().map(|(job, _)| &agreed[job]).collect();
        prop_assert!(others.is_empty(), "{others:?} are {as_agreed:?}");
    }

    /// However late messages are, and whatever a site starts between the promise of places and the start of a part.
    #[test]
    fn over_links_of_any_delay_a_job_in_parts_goes_on_as_its_slowest_task(
        clusters in shared(),
        drawn in drawn(3, 0),
        rules in rules(),
        local in prop::sample::select(LOCALS.to_vec()),
        delay in 0i64..15_000_000,
        jitter in 0i64..10_000_000,
    ) {
        let grid = grid(&clusters, Fairness::Proportional, &rules);
        let jobs = jobs(&drawn, grid.widest_job());
        let properties = Properties { reorder: false, ..Properties::unreliable(0.0, 0.0, Span::from_micros(jitter)) };
        let network = Model::constant(Span::from_micros(delay)).with(properties);
        let found = judged(&grid, &jobs, &by_messages(&grid, rules, local, &jobs, network));
        prop_assert!(found.is_ok(), "{:?}", found.err());
    }

    /// One job on each node, of full power, without users: nodes are processors, start for start.
    #[test]
    fn dedicated_nodes_are_processors(
        sizes in prop::collection::vec(1u32..8, 2..=4),
        drawn in drawn(0, 0),
        rules in rules(),
        local in prop::sample::select(LOCALS.to_vec()),
    ) {
        let clusters: Vec<Nodes> = sizes.iter().map(|&size| Nodes::dedicated(size)).collect();
        let shared = grid(&clusters, Fairness::Proportional, &rules);
        let sites = sizes.iter().zip(1..).map(|(&size, number)| (format!("site{number}"), size));
        let bare = Grid::with_brokers(sites, [("broker".to_string(), None)]).expect("names differ");
        let bare = spreading(bare, &rules);
        let jobs = jobs(&drawn, shared.widest_job());
        // What ends at one instant is told in another order.
        let of = |grid: &Grid| {
            [ideal(grid, rules, local, &jobs), by_messages(grid, rules, local, &jobs, Model::ZERO)].map(|events| {
                let mut facts: Vec<String> = Vec::new();
                for Event { at, site, kind } in events {
                    let (what, job, processors) = match kind {
                        EventKind::Started { job, processors, .. } => ("starts", job, processors),
                        EventKind::PartStarted { job, processors, .. } => ("starts in part", job, processors),
                        EventKind::Completed { job, processors } => ("ends", job, processors),
                        EventKind::PartCompleted { job, processors, .. } => ("ends in part", job, processors),
                        _ => continue,
                    };
                    facts.push(format!("{job} {what} at {site} at {at} with {processors}"));
                }
                facts.sort();
                facts
            })
        };
        prop_assert_eq!(of(&shared), of(&bare));
    }
}

/// When jobs end, in seconds.
fn ends(clusters: &[Nodes], rules: Broker, jobs: &[TimedJob]) -> Vec<f64> {
    let grid = grid(clusters, Fairness::Proportional, &rules);
    let found = judged(&grid, jobs, &ideal(&grid, rules, LocalScheduler::Fcfs, jobs)).expect("it holds");
    let end = |ran: &Ran| ran.ends.first().expect("it ended").as_secs_f64();
    found.values().map(end).collect()
}

#[test]
fn each_part_goes_on_at_the_pace_of_the_slowest() {
    let rules = spreads(Coallocation::Optimal);
    // Two nodes of full power, two of half: all four are as slow as the latter.
    let unequal = [Nodes::of_power(2, 1.0, 2, 100.0), Nodes::of_power(2, 0.5, 2, 100.0)];
    assert_eq!(ends(&unequal, rules, &[job(1, 0, 4, 10, 0)]), [20.0]);
    // From 4 s on another job is beside two of its tasks, on nodes of full power at half of that: the slower ones hide it.
    let beside = [job(1, 0, 4, 10, 0), job(2, 4, 2, 3, 0)];
    let first = mcisne(MetaScheduler { select: ClusterSelection::FirstFit, ..rules.meta });
    assert_eq!(ends(&unequal, first, &beside), [20.0, 10.0]);
    // On equal nodes they slow down both parts: 4 s alone, 6 s for 3 of the 6 s that are left, then 3 s.
    let equal = [Nodes::of_power(2, 1.0, 2, 100.0), Nodes::of_power(2, 1.0, 2, 100.0)];
    assert_eq!(ends(&equal, first, &beside), [13.0, 10.0]);
}

#[test]
fn what_parts_tell_each_other_goes_over_the_links_of_their_sites() {
    let rules = spreads(Coallocation::Optimal);
    // Half computing, half communicating 60 Mbit/s each: two tasks of four send 2 · 2 / 3 · 60 = 80 over the link of each site.
    let over = |uplink: f64| [Nodes::of_power(2, 1.0, 1, uplink), Nodes::of_power(2, 1.0, 1, uplink)];
    assert_eq!(ends(&over(80.0), rules, &[job(1, 0, 4, 10, 1)]), [10.0]);
    assert_eq!(ends(&over(40.0), rules, &[job(1, 0, 4, 10, 1)]), [15.0]);
    // Who may saturate no link waits until another job in parts is over, who may does not.
    let two = |by: Coallocation| {
        let nodes = [Nodes::of_power(2, 1.0, 2, 100.0), Nodes::of_power(2, 1.0, 2, 100.0)];
        ends(&nodes, spreads(by), &[job(1, 0, 4, 10, 1), job(2, 0, 4, 10, 1)])
    };
    assert_eq!(two(Coallocation::NonSaturated), [10.0, 20.0]);
    assert_eq!(two(Coallocation::NonOptimal), [10.0, 20.0]);
    // Together: computing takes twice as long, and 160 of 100 Mbit/s communicating 1.6 times.
    assert_eq!(two(Coallocation::Optimal), [18.0, 18.0]);
}

#[test]
fn nodes_that_are_fast_are_taken_and_a_job_without_memory_in_one_site_has_parts() {
    let rules = spreads(Coallocation::Optimal);
    let sites = |clusters: &[Nodes], jobs: &[TimedJob]| {
        let grid = grid(clusters, Fairness::Proportional, &rules);
        let found = judged(&grid, jobs, &ideal(&grid, rules, LocalScheduler::Fcfs, jobs)).expect("it holds");
        let last = found.values().next_back().expect("there are jobs").parts.clone();
        last.into_iter().map(|(site, tasks)| (site.0, tasks)).collect::<Vec<_>>()
    };
    // The slow site is left out, though it comes first.
    let clusters = [
        Nodes::of_power(3, 0.5, 1, 100.0),
        Nodes::of_power(3, 1.0, 1, 100.0),
        Nodes::of_power(3, 1.0, 1, 100.0),
    ];
    assert_eq!(sites(&clusters, &[job(1, 0, 5, 10, 0)]), [(2, 3), (3, 2)]);
    // Each site is wide enough, and one node of each has the memory.
    let mut small = Nodes::of_power(2, 1.0, 1, 100.0);
    small.nodes[0].memory = 100;
    let mut needy = job(1, 0, 2, 10, 0);
    needy.spec.labels.memory = 500;
    assert_eq!(sites(&[small.clone(), small], &[needy]), [(1, 1), (2, 1)]);
}

/// The audit notices who goes on otherwise: parts that end when their own nodes let them, and links between sites that carry anything.
#[test]
fn mutant_parts_at_their_own_pace_and_free_links_are_noticed() {
    let rules = spreads(Coallocation::Optimal);
    let clusters = [Nodes::of_power(2, 1.0, 1, 40.0), Nodes::of_power(2, 0.5, 1, 40.0)];
    let shared = grid(&clusters, Fairness::Proportional, &rules);
    let jobs = [job(1, 0, 4, 10, 1)];
    let log = ideal(&shared, rules, LocalScheduler::Fcfs, &jobs);
    assert!(judged(&shared, &jobs, &log).is_ok());
    for (place, event) in log.iter().enumerate() {
        if matches!(event.kind, EventKind::Completed { .. } | EventKind::PartCompleted { .. }) {
            let mut own = log.clone();
            own[place].at = event.at - Span::from_secs(5);
            own.sort_by_key(|event| event.at);
            assert!(ran(&shared, &jobs, &own).is_err(), "{event:?}");
        }
        if matches!(event.kind, EventKind::Placed { .. }) {
            let mut without = log.clone();
            without.remove(place);
            assert!(!audit::audit(&outcome(&shared, &jobs, &without)).is_empty(), "{event:?}");
        }
    }
    let mut all_early = log.clone();
    for event in &mut all_early {
        if matches!(event.kind, EventKind::Completed { .. } | EventKind::PartCompleted { .. }) {
            event.at = event.at - Span::from_secs(5);
        }
    }
    assert!(!audit::audit(&outcome(&shared, &jobs, &all_early)).is_empty());
    let free = clusters.map(|nodes| Nodes { uplink: f64::INFINITY, ..nodes });
    let free = grid(&free, Fairness::Proportional, &rules);
    assert!(!audit::audit(&outcome(&free, &jobs, &log)).is_empty(), "links between sites count");
}
