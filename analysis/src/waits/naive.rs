//! The naive twin: at every instant it looks at every waiting job, every site, every node and every open request anew.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use scheduler::event::{DeclineReason, GrantCause, ReleaseReason};
use scheduler::sharing::local_load::NOBODY;
use scheduler::sharing::{Fairness, LocalLoad, Node, Platform, Usage};
use scheduler::{
    Event, EventKind, Grid, JobId, SharedNodes, SiteId, Span, Steal, Strategy as Scheduling, StrategySpec,
    Time, TimedJob,
};

use super::groups::Mistake;
use super::sums::{Cause, Causes, Sums, class_of};
use super::world::{Job, Phase, World};
use super::{Ranges, WaitCauses, Waits};
use crate::deficiency::NOWHERE;
use crate::fixtures::timed_job;

/// Of a site, something of a job: the node of a task, or the processors of a part.
type OnSite = (u32, JobId, u32);

/// By class of width: sums of jobs, and of processors.
type Found = Vec<[Sums; 2]>;

fn add(found: &mut Found, width: u32, causes: Causes, micros: i128) {
    let sums = &mut found[class_of(width)];
    sums[0].add(causes, micros);
    sums[1].add(causes, micros * i128::from(width));
}

/// Everything summed up as the definition says.
fn twin(grid: &Grid, strategy: &Scheduling, jobs: &[TimedJob], events: &[Event]) -> Found {
    let mut found: Found = (0..=class_of(grid.widest_job())).map(|_| Default::default()).collect();
    let mut world = World::new(grid, jobs);
    let mut now = Time::from_micros(i64::MIN);
    // Parts of jobs: site, job, processors.
    let mut parts: Vec<OnSite> = Vec::new();
    // What is on nodes: site, job, node.
    let mut tasks: Vec<OnSite> = Vec::new();
    let of_users: BTreeSet<Time> = grid
        .sites()
        .iter()
        .filter_map(|site| grid.cluster(site.id))
        .flat_map(|nodes| nodes.platform.local())
        .flat_map(|load| load.changes().iter().map(|change| change.0))
        .collect();
    for event in events {
        let between = of_users.iter().copied().filter(|&at| at < event.at);
        for at in between.chain([event.at]) {
            if at <= now {
                continue;
            }
            let span = at.as_micros().saturating_sub(now.as_micros());
            for job in world.jobs.iter().filter(|job| job.situation().is_some()) {
                let causes = Instant::of((grid, strategy), &world, jobs, (&tasks, &parts), now).causes(job);
                add(&mut found, job.processors, causes, i128::from(span));
            }
            now = at;
        }
        let site = grid.rank(event.site) as u32;
        match event.kind {
            EventKind::Placed { job, node } => tasks.push((site, job, node)),
            EventKind::Completed { job, .. } => tasks.retain(|task| (task.0, task.1) != (site, job)),
            EventKind::PartStarted { job, processors, .. } if world.place(job).is_some() => {
                parts.retain(|part| (part.0, part.1) != (site, job));
                parts.push((site, job, processors));
            }
            EventKind::PartCompleted { job, .. } => {
                parts.retain(|part| (part.0, part.1) != (site, job));
                tasks.retain(|task| (task.0, task.1) != (site, job));
            }
            _ => {}
        }
        let ahead: Vec<bool> = world.jobs.iter().map(|job| job.phase == Phase::Ahead).collect();
        world.observe(event);
        for (job, ahead) in world.jobs.iter().zip(ahead) {
            if ahead && job.phase != Phase::Ahead {
                let late = i128::from(now.since(job.submit).as_micros());
                add(&mut found, job.processors, Causes::of(&[Cause::InTransit]), late);
            }
        }
    }
    found
}

/// Of each node: how many tasks it takes more, and memory that is left. None if more is on its way than fits.
type Nodes = Option<Vec<(u32, u64)>>;

struct Instant<'a> {
    grid: &'a Grid,
    strategy: &'a Scheduling,
    world: &'a World,
    /// Processors that run nothing and are kept for nobody, by site.
    free: Vec<i64>,
    /// Of each site that has nodes.
    nodes: Vec<Option<Nodes>>,
}

/// The nodes of a site, with what is on them and those that are on their way there placed as sites do: fewest tasks, most memory,
/// most power, first.
fn nodes_of(
    (grid, world): (&Grid, &World),
    jobs: &[TimedJob],
    tasks: &[(u32, JobId, u32)],
    site: u32,
    now: Time,
) -> Option<Nodes> {
    let shared = grid.cluster(grid.at_rank(site as usize))?;
    let memory = |id: JobId| jobs.iter().find(|job| job.spec.id == id).map_or(0, |job| job.spec.memory());
    let platform = &shared.platform;
    // Tasks, and memory that is left.
    let mut nodes: Vec<(u32, u64)> = Vec::new();
    for ((spec, local), node) in platform.nodes().iter().zip(platform.local()).zip(0..) {
        let on: Vec<&(u32, JobId, u32)> =
            tasks.iter().filter(|task| (task.0, task.2) == (site, node)).collect();
        let taken: u64 = on.iter().map(|task| memory(task.1)).sum();
        nodes.push((on.len() as u32, local.at(now).memory_left(spec.memory).saturating_sub(taken)));
    }
    for (job, timed) in world.jobs.iter().zip(jobs) {
        if job.phase != Phase::InTransit(site) {
            continue;
        }
        let memory = timed.spec.memory();
        let mut taking: Vec<usize> = (0..nodes.len())
            .filter(|&node| nodes[node].0 < platform.nodes()[node].mpl && nodes[node].1 >= memory)
            .collect();
        if taking.len() < job.processors as usize {
            return Some(None);
        }
        let power = |node: usize| Reverse((platform.nodes()[node].power * 1000.0) as u32);
        taking.sort_by_key(|&node| (nodes[node].0, Reverse(nodes[node].1), power(node), node));
        for &node in &taking[..job.processors as usize] {
            nodes[node] = (nodes[node].0 + 1, nodes[node].1 - memory);
        }
    }
    let left = nodes.iter().zip(platform.nodes());
    Some(Some(left.map(|(&(tasks, memory), spec)| (spec.mpl.saturating_sub(tasks), memory)).collect()))
}

impl<'a> Instant<'a> {
    fn of(
        (grid, strategy): (&'a Grid, &'a Scheduling),
        world: &'a World,
        jobs: &[TimedJob],
        (tasks, parts): (&[OnSite], &[OnSite]),
        now: Time,
    ) -> Instant<'a> {
        let mut free: Vec<i64> = grid.sizes().iter().map(|&size| i64::from(size)).collect();
        for job in &world.jobs {
            match job.phase {
                Phase::Running(site) => free[site as usize] -= i64::from(job.held),
                Phase::InTransit(site) => free[site as usize] -= i64::from(job.processors),
                _ => {}
            }
        }
        for &(site, _, processors) in parts {
            free[site as usize] -= i64::from(processors);
        }
        for (site, free) in free.iter_mut().enumerate() {
            for claim in world.asking.claims_of(site as u32) {
                *free -= i64::from(claim.processors);
            }
        }
        let nodes =
            (0..grid.len() as u32).map(|site| nodes_of((grid, world), jobs, tasks, site, now)).collect();
        Instant { grid, strategy, world, free, nodes }
    }

    /// Whether a site has room for a job, which may have a part of what is kept for those on their way.
    fn fits(&self, site: usize, job: &Job) -> bool {
        match &self.nodes[site] {
            Some(None) => false,
            // What it needs itself has been taken off.
            Some(Some(_)) if job.phase == Phase::InTransit(site as u32) => true,
            Some(Some(nodes)) => {
                let takes = |&&(tasks, memory): &&(u32, u64)| tasks > 0 && memory >= job.memory;
                nodes.iter().filter(takes).count() >= job.processors as usize
            }
            None => {
                let is_own = job.phase == Phase::InTransit(site as u32);
                let own = if is_own { i64::from(job.processors) } else { 0 };
                self.free[site] + own >= i64::from(job.processors)
            }
        }
    }

    /// All that is true of a job that waits.
    fn causes(&self, job: &Job) -> Causes {
        let sites = 0..self.free.len();
        let mut causes = Causes::NONE;
        match job.phase {
            Phase::Waiting(site) => {
                let at = site as usize;
                if self.fits(at, job) {
                    causes = causes.with(Cause::Queue);
                }
                if job.claims > 0 {
                    causes = causes.with(Cause::Asked);
                }
                for taker in sites.filter(|&taker| taker != at && self.fits(taker, job)) {
                    causes = causes.with(if !self.allow(taker, at, job) {
                        Cause::Ineligible
                    } else if matches!(self.strategy, Scheduling::Pool(_)) {
                        Cause::Offered
                    } else if self.world.asking.on_offer(taker as u32, site) >= job.processors {
                        Cause::Asked
                    } else {
                        Cause::Blind
                    });
                }
                let together: i64 = self.free.iter().map(|&free| free.max(0)).sum();
                if causes != Causes::NONE {
                    causes
                } else if job.home == NOWHERE && together >= i64::from(job.processors) {
                    causes.with(Cause::InParts)
                } else {
                    causes.with(Cause::Full)
                }
            }
            Phase::InTransit(_) | Phase::Back => {
                causes = causes.with(Cause::InTransit);
                let fits = sites.into_iter().any(|site| self.fits(site, job));
                if fits { causes } else { causes.with(Cause::Full) }
            }
            Phase::Ahead | Phase::Running(_) | Phase::Ended => unreachable!("it waits"),
        }
    }

    fn allow(&self, taker: usize, site: usize, job: &Job) -> bool {
        let at_home = job.home as usize == site;
        match self.strategy {
            Scheduling::Local | Scheduling::Broker(_) | Scheduling::Opaque(_) => false,
            Scheduling::Steal(steal) => {
                at_home && self.list(steal, taker).iter().any(|listed| std::ptr::eq(*listed, job))
            }
            Scheduling::StealGreedy(_) => at_home && site < taker && self.at_home(taker).is_empty(),
            Scheduling::CommonPool => at_home,
            Scheduling::Pool(_) => job.offered,
            Scheduling::Balance(rules) if rules.select == scheduler::Selection::Easy => {
                let waits = |job: &Job| job.phase == Phase::Waiting(taker as u32);
                !self.world.jobs.iter().any(waits)
            }
            Scheduling::Balance(_) => true,
        }
    }

    /// Jobs that wait at their home.
    fn at_home(&self, site: usize) -> Vec<&Job> {
        let waits = |job: &&Job| job.home as usize == site && job.phase == Phase::Waiting(job.home);
        self.world.jobs.iter().filter(waits).collect()
    }

    /// docs/THEORY.md, "The lists", as it is defined there.
    fn list(&self, steal: &Steal, rank: usize) -> Vec<&Job> {
        let below = if rank == 0 { Vec::new() } else { self.list(steal, rank - 1) };
        let is_big = |job: &&Job| steal.threshold.is_big(job.processors, self.grid.sizes()[rank]);
        let (big, small): (Vec<&Job>, Vec<&Job>) = self.at_home(rank).into_iter().partition(is_big);
        let stolen: Vec<&Job> = below.iter().copied().filter(is_big).collect();
        let mut sets = if steal.order.small_first() { vec![small, big] } else { vec![big, small] };
        sets.insert(if steal.order.stolen_first() { 0 } else { 2 }, stolen);
        sets.push(below);
        sets.into_iter().find(|set| !set.is_empty()).unwrap_or_default()
    }
}

/// What is found by groups, with a mistake perhaps.
fn groups(
    (grid, strategy): (&Grid, &Scheduling),
    jobs: &[TimedJob],
    events: &[Event],
    mistake: Option<Mistake>,
) -> (Found, Option<WaitCauses>) {
    let mut waits = Waits::new(grid, strategy, jobs);
    waits.groups.mistake = mistake;
    events.iter().for_each(|event| waits.observe(event));
    waits.groups.refresh(&mut waits.world, waits.now);
    let sums = waits.groups.sums().iter();
    let found = sums.map(|sums| [sums.by_job.clone(), sums.by_processor.clone()]).collect();
    (found, waits.finish())
}

/// Of every family.
const STRATEGIES: [&str; 12] = [
    "local",
    "st:50",
    "st:25",
    "st:80,order=hab",
    "st:50,order=bah",
    "st-greedy:50",
    "common-pool",
    "pool:easy",
    "pool:list,via=gossip",
    "steal:random",
    "steal:loaded,mode=push",
    "steal:random,select=easy",
];

fn strategies() -> Vec<Scheduling> {
    let named = |name: &&str| name.parse::<StrategySpec>().expect("a strategy of this test").strategy;
    STRATEGIES.iter().map(named).collect()
}

/// Anything that can happen, sensible or not: job, site and another site are places.
fn kind(what: u8, job: u64, other: SiteId, number: u64, processors: u32) -> EventKind {
    let job = JobId(job);
    let (transfer, seq, claim, victim) = (number, number, number, other);
    match what {
        0..=4 => EventKind::Submitted { job, processors: 1, requested: Span::from_secs(9), origin: other },
        5..=8 => EventKind::Started { job, processors: 1, hops: 0 },
        9..=12 => EventKind::Completed { job, processors: 1 },
        13..=16 => {
            let cause = GrantCause::Request;
            EventKind::Granted { job, to: other, transfer, hops: 1, cause, request: number }
        }
        17 | 18 => EventKind::Accepted { job, from: other, transfer, firm: false },
        19 => EventKind::Declined { job, from: other, transfer, reason: DeclineReason::OwnWork },
        20 => EventKind::Returned { job, by: other, transfer, bounces: 1 },
        21..=23 => EventKind::Requested { victim, seq, offer: processors, view_age: None },
        24 => EventKind::Answered { victim, seq, jobs: 1 },
        25 | 26 => EventKind::Offered { job, version: 1 },
        27 => EventKind::Withdrawn { job, version: 1 },
        31 | 32 => EventKind::PartStarted { job, processors, of: other },
        33 => EventKind::PartCompleted { job, processors, of: other },
        28 | 29 => EventKind::Claimed { job, owner: other, claim, processors },
        _ => EventKind::Released { job, claim, processors, held: Span::ZERO, reason: ReleaseReason::Denied },
    }
}

fn sizes() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(&[2u32, 4, 9][..]), 1..7),
        prop::collection::vec(1u32..20, 1..6),
        // So many that it makes no difference to most jobs whether one of them has room.
        prop::collection::vec(prop::sample::select(&[2u32, 4, 9][..]), 7..14),
    ]
}

/// Sizes of sites, jobs, and events after which all have started.
pub(super) fn case() -> impl Strategy<Value = (Grid, Vec<TimedJob>, Vec<Event>)> {
    (sizes(), 1u64..16, any::<bool>()).prop_flat_map(|(sizes, jobs, spreads)| {
        let (count, widest) = (sizes.len() as u32, *sizes.iter().max().expect("there is a site"));
        let spread = if spreads { sizes.iter().sum() } else { 0 };
        // One job may be wider than every site, or than all together.
        let job = (0i64..20, 1..=widest.max(spread) + 1);
        let what = if spreads { 0u8..34 } else { 0..31 };
        let step = (0i64..3, 1..=count, what, 1..=jobs, 1..=count, 0u64..3, 1u32..9);
        (prop::collection::vec(job, jobs as usize), prop::collection::vec(step, 1..120)).prop_map(
            move |(jobs, steps)| {
                let grid = Grid::of_sizes(&sizes).expect("sizes are positive").with_spread(spread);
                let jobs: Vec<TimedJob> =
                    (1..).zip(jobs).map(|(id, (submit, width))| timed_job(id, submit, width, 10)).collect();
                let mut now = 0;
                let mut events: Vec<Event> = steps
                    .into_iter()
                    .map(|(step, site, what, job, other, number, processors)| {
                        now += step;
                        let kind = kind(what, job, SiteId(other), number, processors);
                        Event { at: Time::from_secs(now), site: SiteId(site), kind }
                    })
                    .collect();
                for job in &jobs {
                    now += 1;
                    let kind = EventKind::Started { job: job.spec.id, processors: 1, hops: 0 };
                    events.push(Event { at: Time::from_secs(now), site: SiteId(1), kind });
                }
                (grid, jobs, events)
            },
        )
    })
}

/// A site of nodes that jobs share: how many there are, their memory, and from when to when local users have how much of it.
type Cluster = (u32, u64, (i64, i64, f64));

fn shared(clusters: &[Cluster]) -> Grid {
    const MPL: u32 = 2;
    let sites = (1..).zip(clusters).map(|(number, cluster)| (format!("site{number}"), cluster.0 * MPL));
    let nodes = |&(count, memory, (from, length, part)): &Cluster| {
        let power = |node: u32| if node.is_multiple_of(2) { 1.0 } else { 0.5 };
        let node = |node| Node { power: power(node), memory, link: 100.0, mpl: MPL };
        let cluster = scheduler::sharing::Cluster { nodes: (0..count).map(node).collect(), uplink: 100.0 };
        let at = Time::from_secs;
        let usage = Usage::new(0.1, part, 1.0).expect("a part");
        let local = LocalLoad::changing(vec![(at(from), usage), (at(from + length), NOBODY)]);
        // Only the first half of the nodes has users.
        let loads =
            (0..count).map(|node| if 2 * node < count { local.clone() } else { LocalLoad::default() });
        let platform = Platform::new(&[cluster]).expect("a platform").with_local(loads.collect());
        Some(Arc::new(SharedNodes {
            platform: Arc::new(platform.expect("a load for each")),
            fairness: Fairness::Proportional,
            applications: Arc::default(),
        }))
    };
    let grid = Grid::new(sites).expect("sites");
    grid.with_clusters(clusters.iter().map(nodes)).expect("all nodes take as many tasks")
}

/// Clusters, jobs with memory, and events after which all have started.
fn shared_case() -> impl Strategy<Value = (Grid, Vec<TimedJob>, Vec<Event>)> {
    let cluster = (1u32..5, 100u64..400, (0i64..60, 1i64..60, 0.0..1.0));
    (prop::collection::vec(cluster, 1..4), 1u64..10).prop_flat_map(|(clusters, jobs)| {
        let count = clusters.len() as u32;
        let job = (0i64..20, 1u32..5, -1i64..300);
        let step = (0i64..3, 1..=count, 0u8..40, 1..=jobs, 1..=count, 0u32..4);
        (prop::collection::vec(job, jobs as usize), prop::collection::vec(step, 1..100)).prop_map(
            move |(jobs, steps)| {
                let with_memory = |(id, &(submit, width, memory)): (u64, &(i64, u32, i64))| {
                    let mut job = timed_job(id, submit, width, 10);
                    job.spec.labels.memory = memory;
                    job
                };
                let jobs: Vec<TimedJob> = (1..).zip(&jobs).map(with_memory).collect();
                let mut now = 0;
                let mut events = Vec::new();
                for (step, site, what, job, other, node) in steps {
                    now += step;
                    let kind = match what {
                        0..31 => kind(what, job, SiteId(other), 1, 1),
                        _ => EventKind::Placed { job: JobId(job), node },
                    };
                    events.push(Event { at: Time::from_secs(now), site: SiteId(site), kind });
                }
                for job in &jobs {
                    now += 1;
                    let kind = EventKind::Started { job: job.spec.id, processors: 1, hops: 0 };
                    events.push(Event { at: Time::from_secs(now), site: SiteId(1), kind });
                }
                (shared(&clusters), jobs, events)
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn groups_before_shared_nodes_equal_the_naive_twin((grid, jobs, events) in shared_case()) {
        for strategy in ["local", "steal:random"] {
            let strategy = strategy.parse::<StrategySpec>().expect("a strategy of this test").strategy;
            let (found, causes) = groups((&grid, &strategy), &jobs, &events, None);
            prop_assert_eq!(found, twin(&grid, &strategy, &jobs, &events));
            prop_assert!(causes.expect("every job started").holds);
        }
    }

    #[test]
    fn groups_equal_the_naive_twin(
        (grid, jobs, events) in case(),
        strategy in prop::sample::select(strategies()),
    ) {
        let (found, causes) = groups((&grid, &strategy), &jobs, &events, None);
        prop_assert_eq!(found, twin(&grid, &strategy, &jobs, &events));
        prop_assert!(causes.expect("every job started").holds);
    }
}

#[test]
fn every_cause_occurs_in_random_runs_alone_and_with_others() {
    let (mut alone, mut with_others) = ([0; super::CAUSES], [0; super::CAUSES]);
    for (grid, jobs, events, strategy) in some_cases() {
        let causes = groups((&grid, &strategy), &jobs, &events, None).1.expect("every job started");
        let Ranges { least, greatest, .. } = causes.exact();
        alone.iter_mut().zip(least).for_each(|(sum, least)| *sum += least);
        with_others
            .iter_mut()
            .zip(least.iter().zip(greatest))
            .for_each(|(sum, (least, greatest))| *sum += greatest - least);
    }
    // A job for which several sites have room only together has room at none.
    assert_eq!(std::mem::replace(&mut with_others[Cause::InParts as usize], 1), 0);
    assert!(alone.iter().chain(&with_others).all(|&sum| sum != 0), "{alone:?} {with_others:?}");
}

fn some_cases() -> Vec<(Grid, Vec<TimedJob>, Vec<Event>, Scheduling)> {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut next = |strategy| {
        let (grid, jobs, events) = case().new_tree(&mut runner).expect("a case").current();
        (grid, jobs, events, strategy)
    };
    strategies().into_iter().cycle().take(150).map(&mut next).collect()
}

/// Which mistakes are noticed in some of many random runs: by the twin, and by the identity.
fn noticed(mistake: Option<Mistake>) -> (bool, bool) {
    let (mut by_twin, mut by_identity) = (false, false);
    for (grid, jobs, events, strategy) in some_cases() {
        let (found, causes) = groups((&grid, &strategy), &jobs, &events, mistake);
        by_twin |= found != twin(&grid, &strategy, &jobs, &events);
        by_identity |= !causes.expect("every job started").holds;
    }
    (by_twin, by_identity)
}

#[test]
fn mutant_mistakes_are_noticed() {
    assert_eq!(noticed(None), (false, false));
    // A wait that is not counted breaks the sum; a wrong cause does not, and the twin sees both.
    assert_eq!(noticed(Some(Mistake::WaitForgotten)), (true, true));
    assert_eq!(noticed(Some(Mistake::RoomUnnoticed)), (true, false));
    assert_eq!(noticed(Some(Mistake::ReservedIsRoom)), (true, false));
    assert_eq!(noticed(Some(Mistake::OneIsEnough)), (true, false));
}
