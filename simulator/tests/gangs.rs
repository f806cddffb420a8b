//! Jobs in parts at several sites, whatever links lose: all of a job starts, once, or none, and every job ends.

use std::sync::Arc;

use links::{Model, Properties};
use proptest::prelude::*;
use protocol::{BrokerOptions, Options, Pending, Reporting, Terms};
use scheduler::strategy::{Coallocation, JobSelection, MetaScheduler, Phases, QueueLimit};
use scheduler::{
    Broker, BrokerRule, Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, SiteId, Span,
    Strategy as Scheduling, Time, TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig};

fn meta() -> impl Strategy<Value = MetaScheduler> {
    let limit = prop_oneof![Just(QueueLimit::None), (1u32..4).prop_map(QueueLimit::Jobs)];
    let one_of = (
        prop::sample::select(&Coallocation::ALL[1..]),
        prop::sample::select(Phases::ALL),
        prop::sample::select(JobSelection::ALL),
    );
    (one_of, limit).prop_map(|((coallocation, phases, jobs), limit)| MetaScheduler {
        coallocation,
        phases,
        jobs,
        limit,
        ..MetaScheduler::default()
    })
}

/// Sites behind one or two brokers, and jobs of which some are wider than each.
fn workload(meta: MetaScheduler) -> impl Strategy<Value = (Arc<Grid>, Scheduling, Vec<TimedJob>)> {
    let job = (0i64..60, 1u32..40, 0i64..30, 1i64..3, any::<prop::sample::Index>());
    let sizes = prop::collection::vec(1u32..12, 2..5);
    (sizes, 1usize..3, prop::collection::vec(job, 1..=14)).prop_map(move |(sizes, brokers, jobs)| {
        let sites = sizes.iter().enumerate().map(|(place, &size)| (format!("site{place}"), size));
        let names = (0..brokers).map(|number| (format!("broker{number}"), None));
        let grid = Grid::with_brokers(sites, names).expect("a grid");
        let strategy = Scheduling::Broker(Broker { meta, ..Broker::new(BrokerRule::Mcisne) });
        let spread = strategy.spread(grid.widths());
        let grid = Arc::new(grid.with_spread(spread));
        let spec = |(place, (submit, width, run, factor, origin)): (
            usize,
            (i64, u32, i64, i64, prop::sample::Index),
        )| {
            let spec = JobSpec {
                id: JobId(place as u64 + 1),
                submit: Time::from_secs(submit),
                processors: 1 + (width - 1) % grid.widest_job(),
                requested: Span::from_secs((run * factor).max(1)),
                labels: Labels::UNKNOWN,
                origin: SiteId::from_index(origin.index(sizes.len())),
                payload: 0,
            };
            TimedJob { spec, run_time: Span::from_secs(run) }
        };
        let mut jobs: Vec<TimedJob> = jobs.into_iter().enumerate().map(spec).collect();
        jobs.sort_by_key(|job| job.spec.key());
        (grid, strategy, jobs)
    })
}

/// Far more than any run of so few jobs needs; a run that makes more talks for ever.
const EVENTS_MAX: u32 = 100_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_job_in_parts_runs_once_under_loss_duplication_and_reordering(
        (grid, strategy, jobs) in meta().prop_flat_map(workload),
        local in prop::sample::select(&LocalScheduler::ALL[..]),
        (retry, period, counts) in (1i64..40, prop::option::of(1i64..60), any::<bool>()),
        delay in 0i64..12,
        loss in 0.0f64..0.5,
        duplication in 0.0f64..0.5,
        jitter in 0i64..20,
        seed in any::<u64>(),
    ) {
        let broker = BrokerOptions {
            report: period.map_or(Reporting::Change, |period| Reporting::Every(Span::from_secs(period))),
            pending: if counts { Pending::Count } else { Pending::Ignore },
            ..BrokerOptions::default()
        };
        let retry = Some(Span::from_secs(retry));
        let options = Options { retry, broker, message_events: false, ..Options::default() };
        let terms = Terms { local, options, seed, ..Terms::new(grid, strategy) };
        let faults = Properties::unreliable(loss, duplication, Span::from_secs(jitter));
        let config = SimulationConfig {
            network: Model::constant(Span::from_secs(delay)).with(faults),
            checks: Checks::Full,
            ..SimulationConfig::on(terms)
        };
        let (mut starts, mut events) = (0, 0u32);
        let totals = Simulation::new(config, &jobs)
            .run(&mut |event: &Event| {
                starts += usize::from(matches!(event.kind, EventKind::Started { .. }));
                events += 1;
                assert!(events < EVENTS_MAX, "the grid never falls silent: {event:?}");
            })
            .map_err(|violation| TestCaseError::fail(violation.to_string()))?;
        prop_assert_eq!(totals.completed, jobs.len());
        prop_assert_eq!(starts, jobs.len());
    }
}
