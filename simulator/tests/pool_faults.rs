//! Exchange through a global queue on a bad network: each job runs exactly once, and the grid falls silent.

use std::sync::Arc;

use links::{Model, Properties};
use proptest::prelude::*;
use protocol::{Options, PoolOptions};
use scheduler::strategy::{OfferRule, PoolAlgorithm, PoolOrder, SiteOrder, Via};
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, Pool, SiteId, Span, Strategy as Scheduling, Submit, Time,
    TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig};

fn pool() -> impl Strategy<Value = Pool> {
    (
        prop::sample::select(&[PoolAlgorithm::Fcfs, PoolAlgorithm::Easy, PoolAlgorithm::List][..]),
        prop::sample::select(&[OfferRule::Head, OfferRule::All, OfferRule::AllButHead][..]),
        prop::sample::select(&[Via::Hosted, Via::Gossip][..]),
        prop::sample::select(&[SiteOrder::Ascending, SiteOrder::Descending][..]),
        prop::sample::select(&[PoolOrder::Submit, PoolOrder::Offered][..]),
        any::<bool>(),
    )
        .prop_map(|(algorithm, offer, via, site_order, pool_order, demand)| Pool {
            offer,
            via,
            site_order,
            pool_order,
            demand: demand || via == Via::Hosted,
            ..Pool::new(algorithm)
        })
}

/// Jobs of any site, also ones wider than their site.
fn workload() -> impl Strategy<Value = (Arc<Grid>, Vec<TimedJob>)> {
    let job = (0i64..60, any::<prop::sample::Index>(), 1u32..13, 0i64..30, 1i64..4);
    (prop::collection::vec(1u32..13, 1..=6), prop::collection::vec(job, 1..=30)).prop_map(|(sizes, jobs)| {
        let grid = Arc::new(Grid::of_sizes(&sizes).expect("a grid"));
        let mut jobs: Vec<TimedJob> = jobs
            .into_iter()
            .enumerate()
            .map(|(index, (submit, origin, width, run, factor))| TimedJob {
                spec: JobSpec {
                    id: JobId(index as u64 + 1),
                    submit: Time::from_secs(submit),
                    processors: width.min(grid.widest()),
                    // Too long and too short estimates.
                    requested: Span::from_secs((run * factor / 2).max(1)),
                    labels: Labels::UNKNOWN,
                    origin: SiteId::from_index(origin.index(sizes.len())),
                    payload: 0,
                },
                run_time: Span::from_secs(run),
            })
            .collect();
        jobs.sort_by_key(|job| job.spec.key());
        (grid, jobs)
    })
}

/// Far more than any run of so few jobs needs; a run that makes more talks for ever.
const EVENTS_MAX: u32 = 400_000;

/// Starts and completions, or what went wrong.
fn run(config: SimulationConfig, jobs: &[TimedJob]) -> Result<(usize, usize), TestCaseError> {
    let (mut starts, mut events) = (0, 0u32);
    let totals = Simulation::new(config, jobs)
        .run(&mut |event: &Event| {
            starts += usize::from(matches!(event.kind, EventKind::Started { .. }));
            events += 1;
            assert!(events < EVENTS_MAX, "the grid never falls silent: {event:?}");
        })
        .map_err(|violation| TestCaseError::fail(violation.to_string()))?;
    Ok((starts, totals.completed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_pooled_job_runs_once_under_loss_duplication_and_reordering(
        (grid, jobs) in workload(),
        pool in pool(),
        origin in any::<bool>(),
        delay in 0i64..12,
        loss in 0.0f64..=0.3,
        duplication in 0.0f64..0.5,
        jitter in 0i64..20,
        recall in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut config = SimulationConfig::new(grid, Scheduling::Pool(pool));
        config.submit = if origin { Submit::Origin } else { Submit::Home };
        config.network = Model::constant(Span::from_secs(delay));
        config.network.properties = Properties::unreliable(loss, duplication, Span::from_secs(jitter));
        config.options = Options {
            retry: Some(Span::from_secs(64)),
            pool: PoolOptions { refresh: Some(Span::from_secs(60)) },
            recall: recall.then(|| Span::from_secs(200)),
            ..Options::default()
        };
        config.checks = Checks::Full;
        config.seed = seed;
        prop_assert_eq!(run(config, &jobs)?, (jobs.len(), jobs.len()));
    }

    /// Nothing is repeated where nothing is lost, however late and in whatever order messages come.
    #[test]
    fn without_loss_nothing_need_be_repeated(
        (grid, jobs) in workload(),
        pool in pool(),
        delay in 0i64..12,
        duplication in 0.0f64..0.5,
        jitter in 0i64..20,
        seed in any::<u64>(),
    ) {
        let mut config = SimulationConfig::new(grid, Scheduling::Pool(pool));
        config.submit = Submit::Origin;
        config.network = Model::constant(Span::from_secs(delay));
        config.network.properties = Properties::unreliable(0.0, duplication, Span::from_secs(jitter));
        config.checks = Checks::Full;
        config.seed = seed;
        prop_assert_eq!(run(config, &jobs)?, (jobs.len(), jobs.len()));
    }

    #[test]
    fn one_seed_gives_one_log((grid, jobs) in workload(), pool in pool(), seed in any::<u64>()) {
        let mut config = SimulationConfig::new(grid, Scheduling::Pool(pool));
        config.network.properties = Properties::unreliable(0.2, 0.2, Span::from_secs(7));
        config.options.retry = Some(Span::from_secs(30));
        config.options.pool.refresh = Some(Span::from_secs(30));
        config.seed = seed;
        let log = || {
            let mut log = Vec::new();
            let totals = Simulation::new(config.clone(), &jobs).run(&mut |event: &Event| log.push(*event));
            (log, totals)
        };
        prop_assert_eq!(log(), log());
    }
}
