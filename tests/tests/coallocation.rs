//! Jobs over several clusters: whatever the rule, a job starts whole or not at all, at sites that have the room, ends everywhere at
//! once, and where messages are free does not wait where the rule finds room for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use brokers::ideal::Brokered;
use links::{Model, Properties};
use proptest::prelude::*;
use protocol::{BrokerOptions, Options, Pending, Reporting, Terms};
use scheduler::strategy::{ClusterSelection, Coallocation, JobSelection, MetaScheduler, Phases, QueueLimit};
use scheduler::{
    Broker, BrokerRule, Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span,
    Strategy as Scheduling, Time, TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig, reference};

/// Sites of these sizes and a broker, for jobs as wide as the rules spread them.
fn grid(sizes: &[u32], rules: &Broker) -> Grid {
    let sites = sizes.iter().zip(1..).map(|(&size, number)| (format!("site{number}"), size));
    spreading(Grid::with_brokers(sites, [("broker".to_string(), None)]).expect("names differ"), rules)
}

/// The same for jobs as wide as the rules spread them.
pub(crate) fn spreading(grid: Grid, rules: &Broker) -> Grid {
    let spread = Scheduling::Broker(*rules).spread(grid.widths());
    grid.with_spread(spread)
}

pub(crate) fn mcisne(meta: MetaScheduler) -> Broker {
    Broker { meta, ..Broker::new(BrokerRule::Mcisne) }
}

fn spreads(by: Coallocation) -> MetaScheduler {
    MetaScheduler { coallocation: by, ..MetaScheduler::default() }
}

pub(crate) fn job(id: u64, submit: i64, processors: u32, seconds: i64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors,
        requested: Span::from_secs(seconds.max(1)),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(seconds) }
}

/// What who sees all does.
pub(crate) fn events(grid: &Grid, rules: Broker, local: LocalScheduler, jobs: &[TimedJob]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut policy = Brokered::new(grid, rules, local, Pass::Batch, 1);
    let done = reference::run(&mut policy, jobs, grid, Pass::Batch, &mut |event| events.push(event));
    assert_eq!(done.expect("the workload is sound").jobs, jobs.len());
    events
}

/// Where and when a job is: sites with their processors, the first the one that it is known by.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ran {
    parts: Vec<(SiteId, u32)>,
    start: Option<Time>,
    end: Option<Time>,
    ended: usize,
}

/// What a log says of each job, or what of it cannot be.
fn audit(grid: &Grid, jobs: &[TimedJob], events: &[Event]) -> Result<BTreeMap<JobId, Ran>, String> {
    audit_told(grid, jobs, events, Told::AtOnce)
}

/// How sites hear that the parts of a job start.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    /// Somebody sees all, and says it of the first part first.
    AtOnce,
    /// By messages that take as long as was thought: parts start together, and any may say so first.
    InTime,
    /// By messages that may come late: a job executes once all of its parts have started.
    Late,
}

fn audit_told(
    grid: &Grid,
    jobs: &[TimedJob],
    events: &[Event],
    told: Told,
) -> Result<BTreeMap<JobId, Ran>, String> {
    let mut free: BTreeMap<SiteId, i64> =
        grid.machines().map(|site| (site.id, i64::from(site.processors))).collect();
    let mut ran: BTreeMap<JobId, Ran> = BTreeMap::new();
    for event in events {
        let Event { at, site, kind } = *event;
        let room = free.entry(site).or_default();
        match kind {
            EventKind::Started { job, processors, .. } | EventKind::PartStarted { job, processors, .. } => {
                *room -= i64::from(processors);
                if *room < 0 {
                    return Err(format!("site {site} is full at {at}"));
                }
                let is_first = matches!(kind, EventKind::Started { .. });
                let job_ran = ran.entry(job).or_default();
                let is_early = told == Told::AtOnce && is_first != job_ran.parts.is_empty();
                if is_early || job_ran.parts.iter().any(|part| part.0 == site) {
                    return Err(format!("job {job} starts twice at {site}, or in part before it starts"));
                }
                if told != Told::Late && job_ran.start.is_some_and(|start| start != at) {
                    return Err(format!("job {job} starts at {at} in part only"));
                }
                job_ran.start = Some(at);
                job_ran.parts.push((site, processors));
            }
            EventKind::Completed { job, processors } | EventKind::PartCompleted { job, processors, .. } => {
                *room += i64::from(processors);
                let job_ran = ran.entry(job).or_default();
                if !job_ran.parts.contains(&(site, processors)) || job_ran.end.is_some_and(|end| end != at) {
                    return Err(format!("job {job} does not end as it started"));
                }
                (job_ran.end, job_ran.ended) = (Some(at), job_ran.ended + 1);
            }
            _ => {}
        }
    }
    for TimedJob { spec, run_time } in jobs {
        let ran = ran.get(&spec.id).ok_or(format!("job {} never starts", spec.id))?;
        let said = events.iter().filter(|event| {
            matches!(event.kind, EventKind::Started { job, .. } | EventKind::Completed { job, .. } if job == spec.id)
        });
        if said.count() != 2 {
            return Err(format!("job {} does not start or end as one", spec.id));
        }
        let together: u32 = ran.parts.iter().map(|part| part.1).sum();
        if together != spec.processors {
            return Err(format!("job {} has {together} of {} processors", spec.id, spec.processors));
        }
        let late = ran.end.zip(ran.start).is_some_and(|(end, start)| end >= start + *run_time);
        let in_time = ran.end == ran.start.map(|start| start + *run_time);
        if ran.ended != ran.parts.len() || !(in_time || told == Told::Late && late) {
            return Err(format!("job {} does not end everywhere after its run time", spec.id));
        }
    }
    let is_empty = grid.machines().all(|site| free[&site.id] == i64::from(site.processors));
    if is_empty { Ok(ran) } else { Err("processors are kept after the last end".to_string()) }
}

/// A job of the upper queue that waits although its rule finds room at the end of an instant, by a scan over the log.
fn waits_in_vain(
    grid: &Grid,
    by: Coallocation,
    jobs: &[TimedJob],
    ran: &BTreeMap<JobId, Ran>,
) -> Option<(JobId, Time)> {
    let times = || ran.values().flat_map(|ran| [ran.start, ran.end]).flatten();
    let wide = jobs.iter().filter(|job| job.spec.processors > grid.widest());
    let mut found = wide.flat_map(|job| times().map(move |at| (job, at))).filter(|(job, at)| {
        let start = ran[&job.spec.id].start.expect("audited");
        if !(job.spec.submit..start).contains(at) {
            return false;
        }
        let busy = |site: SiteId| {
            let holds = |ran: &&Ran| {
                ran.start.is_some_and(|start| start <= *at) && ran.end.is_some_and(|end| end > *at)
            };
            let there = ran.values().filter(holds).flat_map(|ran| &ran.parts).filter(|part| part.0 == site);
            there.map(|part| part.1).sum::<u32>()
        };
        let free: Vec<u32> = grid.machines().map(|site| site.processors - busy(site.id)).collect();
        let most = free.iter().copied().max().unwrap_or(0);
        let enough = free.iter().sum::<u32>() >= job.spec.processors;
        // 85 % in whole numbers: of 20 tasks 17.
        enough && (by != Coallocation::Jones || most * 20 >= job.spec.processors * 17)
    });
    found.next().map(|(job, at)| (job.spec.id, at))
}

fn rules() -> impl Strategy<Value = Broker> {
    let limits = vec![QueueLimit::Jobs(1), QueueLimit::Jobs(3), QueueLimit::None, QueueLimit::Rates];
    let one_of = |all: Vec<_>| prop::sample::select(all);
    (
        one_of(Coallocation::ALL[1..].to_vec()),
        prop::sample::select(Phases::ALL),
        prop::sample::select(ClusterSelection::ALL),
        prop::sample::select(JobSelection::ALL),
        prop::sample::select(limits),
    )
        .prop_map(|(coallocation, phases, select, jobs, limit)| {
            mcisne(MetaScheduler { coallocation, phases, select, jobs, limit, ..MetaScheduler::default() })
        })
}

type Case = (Grid, Vec<TimedJob>, Broker);

/// Small sites, and jobs of any width that the rules take.
fn case() -> impl Strategy<Value = Case> {
    let job_of = (0i64..40, any::<prop::sample::Index>(), 0i64..15, 1i64..4);
    (prop::collection::vec(1u32..10, 1..=5), prop::collection::vec(job_of, 1..=30), rules()).prop_map(
        |(sizes, drawn, rules)| {
            let grid = grid(&sizes, &rules);
            let jobs = drawn.into_iter().zip(1..).map(|((submit, width, run, factor), id)| {
                let width = 1 + width.index(grid.widest_job() as usize) as u32;
                let mut job = job(id, submit, width, run);
                job.spec.requested = Span::from_secs((run * factor).max(1));
                job
            });
            let mut jobs: Vec<TimedJob> = jobs.collect();
            jobs.sort_by_key(|job| job.spec.key());
            (grid, jobs, rules)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_job_starts_whole_where_there_is_room_and_ends_everywhere_at_once(
        (grid, jobs, rules) in case(),
        local in prop::sample::select(LocalScheduler::ALL.to_vec()),
    ) {
        let log = events(&grid, rules, local, &jobs);
        let ran = audit(&grid, &jobs, &log);
        let ran = ran.map_err(TestCaseError::fail)?;
        let meta = rules.meta;
        for job in &jobs {
            let (parts, width) = (&ran[&job.spec.id].parts, job.spec.processors);
            let fits = width <= grid.widest();
            if fits && meta.phases == Phases::One && meta.coallocation != Coallocation::SuperCluster {
                prop_assert_eq!(parts.len(), 1, "job {} fits a cluster", job.spec.id);
            }
            if meta.coallocation == Coallocation::Jones {
                let most = parts.iter().map(|part| part.1).max().expect("it has one");
                prop_assert!(most * 20 >= width * 17, "job {}", job.spec.id);
            }
        }
        if !meta.jobs.blocks() {
            prop_assert_eq!(waits_in_vain(&grid, meta.coallocation, &jobs, &ran), None);
        }
        prop_assert_eq!(&log, &events(&grid, rules, local, &jobs), "the same again");
    }
}

/// What sites and brokers do that agree by messages. There are more brokers than one if they are told to be.
fn messages(
    (grid, jobs, rules): &Case,
    brokers: usize,
    local: LocalScheduler,
    network: Model,
    options: Options,
) -> (Grid, Vec<Event>) {
    let sites = grid.machines().map(|site| (site.name.clone(), site.processors));
    let brokers = (1..=brokers).map(|number| (format!("broker{number}"), None));
    let grid = Grid::with_brokers(sites, brokers).expect("names differ").with_spread(grid.widest_job());
    let terms = Terms { local, options, ..Terms::new(Arc::new(grid.clone()), Scheduling::Broker(*rules)) };
    // Users of all sites, each of whom turns to the broker of his.
    let users = |job: &TimedJob| {
        let origin = SiteId(1 + (job.spec.id.0 % grid.machines().count() as u64) as u32);
        TimedJob { spec: JobSpec { origin, ..job.spec }, ..*job }
    };
    let jobs: Vec<TimedJob> = jobs.iter().map(users).collect();
    let events = agreed(terms, network, &jobs);
    (grid, events)
}

/// What sites and brokers do that agree by messages, to the last job.
pub(crate) fn agreed(terms: Terms, network: Model, jobs: &[TimedJob]) -> Vec<Event> {
    let config = SimulationConfig { checks: Checks::Full, network, ..SimulationConfig::on(terms) };
    let mut events = Vec::new();
    let done = Simulation::new(config, jobs).run(&mut |event: &Event| events.push(*event));
    assert_eq!(done.unwrap_or_else(|violation| panic!("{violation}")).completed, jobs.len());
    events
}

fn reports() -> impl Strategy<Value = BrokerOptions> {
    let report = prop_oneof![
        3 => Just(Reporting::Change),
        1 => (1i64..60).prop_map(|seconds| Reporting::Every(Span::from_secs(seconds))),
    ];
    let pending = prop::sample::select(vec![Pending::Count, Pending::Count, Pending::Ignore]);
    (report, pending).prop_map(|(report, pending)| BrokerOptions {
        report,
        pending,
        ..BrokerOptions::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn over_links_that_keep_their_delay_parts_start_together(
        case in case(),
        brokers in 1usize..4,
        local in prop::sample::select(LocalScheduler::ALL.to_vec()),
        delay in 0i64..20_000_000,
        broker in reports(),
        retries in any::<bool>(),
    ) {
        let retry = retries.then(|| Span::from_secs(60));
        let options = Options { retry, broker, ..Options::default() };
        let network = Model::constant(Span::from_micros(delay));
        let (grid, events) = messages(&case, brokers, local, network, options);
        prop_assert!(audit_told(&grid, &case.1, &events, Told::InTime).is_ok(), "{:?}", audit_told(&grid, &case.1, &events, Told::InTime));
    }

    #[test]
    fn however_late_messages_are_a_job_starts_in_all_of_its_parts_and_frees_them(
        case in case(),
        brokers in 1usize..4,
        local in prop::sample::select(LocalScheduler::ALL.to_vec()),
        delay in 0i64..5_000_000,
        jitter in 1i64..10_000_000,
        broker in reports(),
    ) {
        let options = Options { retry: Some(Span::from_secs(20)), broker, ..Options::default() };
        let properties = Properties { reorder: false, ..Properties::unreliable(0.0, 0.0, Span::from_micros(jitter)) };
        let network = Model::constant(Span::from_micros(delay)).with(properties);
        let (grid, events) = messages(&case, brokers, local, network, options);
        let ran = audit_told(&grid, &case.1, &events, Told::Late);
        prop_assert!(ran.is_ok(), "{ran:?}");
    }
}

fn ran(
    sizes: &[u32],
    meta: MetaScheduler,
    local: LocalScheduler,
    jobs: &[TimedJob],
) -> BTreeMap<u64, (i64, Vec<(u32, u32)>)> {
    let rules = mcisne(meta);
    let grid = grid(sizes, &rules);
    let ran = audit(&grid, jobs, &events(&grid, rules, local, jobs)).unwrap();
    let plain = |(job, ran): (JobId, Ran)| {
        let start = ran.start.unwrap().as_micros() / 1_000_000;
        (job.0, (start, ran.parts.into_iter().map(|(site, processors)| (site.0, processors)).collect()))
    };
    ran.into_iter().map(plain).collect()
}

/// Sites of 4 and 8. Job 1 has the large one until 10; job 2, which needs 10, starts then, while job 3 overtakes it.
#[test]
fn a_job_wider_than_every_cluster_starts_over_both_once_they_have_room() {
    let jobs = [job(1, 0, 8, 10), job(2, 1, 10, 5), job(3, 2, 4, 3)];
    for by in [
        Coallocation::Optimal,
        Coallocation::NonSaturated,
        Coallocation::NonOptimal,
        Coallocation::SuperCluster,
    ] {
        let ran = ran(&[4, 8], spreads(by), LocalScheduler::Fcfs, &jobs);
        assert_eq!(ran[&2], (10, vec![(2, 6), (1, 4)]), "{by:?}");
        assert_eq!(ran[&3], (2, vec![(1, 4)]), "{by:?}");
    }
    let blocks = MetaScheduler { jobs: JobSelection::Blocking, ..spreads(Coallocation::Optimal) };
    assert_eq!(ran(&[4, 8], blocks, LocalScheduler::Fcfs, &jobs)[&3].0, 15, "it waits behind the wide one");
    let jones = ran(
        &[4, 8],
        spreads(Coallocation::Jones),
        LocalScheduler::Fcfs,
        &[job(1, 0, 8, 10), job(2, 1, 9, 5)],
    );
    assert_eq!(jones[&2], (10, vec![(2, 8), (1, 1)]));
}

/// Three sites of 4, on which jobs 1 to 3 leave two processors each. Job 4 needs four: it waits for one cluster, or has two halves.
#[test]
fn in_the_second_phase_a_job_leaves_the_queue_of_its_cluster_for_room_elsewhere() {
    let jobs = [job(1, 0, 2, 50), job(2, 0, 2, 60), job(3, 0, 2, 70), job(4, 1, 4, 10)];
    let first = MetaScheduler { select: ClusterSelection::FirstFit, ..spreads(Coallocation::Optimal) };
    let in_turn = MetaScheduler { select: ClusterSelection::RoundRobin, ..first };
    let one = ran(&[4, 4, 4], in_turn, LocalScheduler::Fcfs, &jobs);
    assert_eq!(one[&4], (50, vec![(1, 4)]));
    let two = ran(&[4, 4, 4], MetaScheduler { phases: Phases::Two, ..in_turn }, LocalScheduler::Fcfs, &jobs);
    assert_eq!(two[&4], (1, vec![(1, 2), (2, 2)]));
    // One that another cluster has room for goes there whole: job 3 was meant for the first, which is full.
    let jobs = [job(1, 0, 4, 50), job(2, 1, 3, 10)];
    let two = ran(&[4, 4], MetaScheduler { phases: Phases::Two, ..first }, LocalScheduler::Fcfs, &jobs);
    assert_eq!(two[&2], (1, vec![(2, 3)]));
    assert_eq!(ran(&[4, 4], first, LocalScheduler::Fcfs, &jobs)[&2], (50, vec![(1, 3)]));
    // One that its own cluster has room for waits for its turn there.
    let jobs = [job(1, 0, 2, 50), job(2, 1, 4, 10), job(3, 2, 1, 10)];
    let only = ran(&[4], MetaScheduler { phases: Phases::Two, ..first }, LocalScheduler::Fcfs, &jobs);
    assert_eq!(only[&3], (60, vec![(1, 1)]));
}

#[test]
fn as_one_cluster_all_have_parts_of_what_none_has_room_for() {
    let jobs = [job(1, 0, 3, 50), job(2, 0, 3, 60), job(3, 1, 2, 10)];
    let of_one = ran(&[4, 4], spreads(Coallocation::SuperCluster), LocalScheduler::Fcfs, &jobs);
    assert_eq!(of_one[&3], (1, vec![(1, 1), (2, 1)]));
    assert_eq!(ran(&[4, 4], spreads(Coallocation::Optimal), LocalScheduler::Fcfs, &jobs)[&3].0, 50);
}

/// What cannot be in a log is found: a part that never starts, starts late, has more than there is, or keeps its processors.
#[test]
fn mutant_parts_that_do_not_start_and_end_with_the_job_are_found() {
    let rules = mcisne(spreads(Coallocation::Optimal));
    let grid = grid(&[4, 8], &rules);
    let jobs = [job(1, 0, 10, 5)];
    let log = events(&grid, rules, LocalScheduler::Fcfs, &jobs);
    assert!(audit(&grid, &jobs, &log).is_ok());
    let is_part =
        |event: &Event| matches!(event.kind, EventKind::PartStarted { .. } | EventKind::PartCompleted { .. });
    assert_eq!(log.iter().filter(|event| is_part(event)).count(), 2);
    for (place, event) in log.iter().enumerate().filter(|(_, event)| is_part(event)) {
        let mut without = log.clone();
        without.remove(place);
        assert!(audit(&grid, &jobs, &without).is_err(), "{event:?} is missing");
        let mut late = log.clone();
        late[place].at = event.at + Span::from_secs(1);
        assert!(audit(&grid, &jobs, &late).is_err(), "{event:?} is late");
        let mut more = log.clone();
        if let EventKind::PartStarted { processors, .. } | EventKind::PartCompleted { processors, .. } =
            &mut more[place].kind
        {
            *processors += 1;
        }
        assert!(audit(&grid, &jobs, &more).is_err(), "{event:?} has one more");
    }
    let ran = BTreeMap::from([
        (
            JobId(1),
            Ran {
                parts: vec![(SiteId(2), 10)],
                start: Some(Time::from_secs(3)),
                end: Some(Time::from_secs(8)),
                ended: 1,
            },
        ),
        (JobId(2), Ran { start: Some(Time::ZERO), end: Some(Time::ZERO), ..Ran::default() }),
    ]);
    let found = waits_in_vain(&grid, Coallocation::Optimal, &jobs, &ran);
    assert_eq!(found, Some((JobId(1), Time::ZERO)), "all is free, and it waits");
}

#[test]
#[should_panic(expected = "a job starts in all of its parts")]
fn mutant_a_policy_that_starts_a_part_alone_is_stopped() {
    struct Half(Option<JobSpec>);
    impl scheduler::Policy for Half {
        fn submitted(&mut self, _now: Time, job: JobSpec) {
            self.0 = Some(job);
        }
        fn completed(&mut self, _now: Time, _job: JobId) {}
        fn decide(&mut self, _now: Time, starts: &mut Vec<scheduler::Start>) {
            let half =
                |job: JobSpec| scheduler::Start { job: JobSpec { processors: 4, ..job }, site: SiteId(1) };
            starts.extend(self.0.take().map(half));
        }
        fn waiting(&self) -> usize {
            usize::from(self.0.is_some())
        }
        fn entry(&self, _grid: &Grid, _job: &JobSpec) -> Option<SiteId> {
            Some(SiteId(1))
        }
    }
    let grid = grid(&[4, 4], &mcisne(spreads(Coallocation::Optimal)));
    let _ = reference::run(&mut Half(None), &[job(1, 0, 8, 5)], &grid, Pass::Batch, &mut |_| {});
}
