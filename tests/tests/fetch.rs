//! Reserve, then fetch: stealing that knows everything at once and pays for each stolen job keeps its proved bounds,
//! because its schedule is the ideal one on longer run times.

use std::collections::BTreeMap;

use analysis::theory::Quantity;
use analysis::{Bounds, Deficiency, Outcome, OutcomeBuilder, Setting, Verdict, theory};
use claims::runs::job;
use proptest::prelude::*;
use scheduler::ideal::StatelessSteal;
use scheduler::{
    Event, EventKind, Grid, JobId, LocalScheduler, Pass, SiteId, Span, Steal, Strategy as Scheme,
    StrategySpec, Threshold, Time, TimedJob,
};
use simulator::reference;

fn run(grid: &Grid, jobs: &[TimedJob], steal: Steal, fetch: Span) -> Vec<Event> {
    let mut events = Vec::new();
    let mut policy = StatelessSteal::new(grid, steal).with_fetch(fetch);
    reference::run(&mut policy, jobs, grid, Pass::Batch, &mut |event| events.push(event))
        .expect("the workload fits the grid");
    events
}

fn outcome(grid: &Grid, jobs: &[TimedJob], threshold: Threshold, events: &[Event]) -> Outcome {
    let mut builder = OutcomeBuilder::new(grid, threshold, jobs);
    events.iter().for_each(|event| builder.observe(event));
    builder.finish()
}

fn spec(percent: u8, fetch: Span) -> StrategySpec {
    let threshold = Threshold::new(percent).expect("a percentage");
    StrategySpec { strategy: Scheme::Steal(Steal::with_threshold(threshold)), ideal: true, fetch }
}

/// When and where each job got its processors: its grant if it was fetched, else its start.
fn reserved(events: &[Event]) -> BTreeMap<JobId, (Time, SiteId)> {
    let mut reserved = BTreeMap::new();
    for event in events {
        match event.kind {
            EventKind::Granted { job, to, .. } => {
                reserved.insert(job, (event.at, to));
            }
            EventKind::Started { job, .. } => {
                reserved.entry(job).or_insert((event.at, event.site));
            }
            _ => {}
        }
    }
    reserved
}

fn workload() -> impl Strategy<Value = (Grid, Vec<TimedJob>)> {
    let job_of = (0i64..40, any::<prop::sample::Index>(), 0u32..9, 0i64..30);
    (prop::collection::vec(1u32..20, 1..7), prop::collection::vec(job_of, 1..50), any::<bool>()).prop_map(
        |(sizes, raw, offline)| {
            let mut jobs: Vec<TimedJob> = raw
                .into_iter()
                .zip(1..)
                .map(|((submit, size, less, length), id)| {
                    let width = sizes[size.index(sizes.len())].saturating_sub(less).max(1);
                    job(id, if offline { 0 } else { submit }, width, length)
                })
                .collect();
            jobs.sort_by_key(|job| job.spec.key());
            (Grid::of_sizes(&sizes).expect("a grid"), jobs)
        },
    )
}

const DELAYS_S: [i64; 5] = [1, 5, 20, 100, 1000];
const THRESHOLDS: [u8; 2] = [50, 30];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_bounds_hold_and_the_schedule_is_the_ideal_on_longer_jobs((grid, jobs) in workload()) {
        for percent in THRESHOLDS {
            for delay in DELAYS_S {
                let delta = Span::from_secs(delay);
                let strategy = spec(percent, delta);
                let Scheme::Steal(steal) = strategy.strategy else { unreachable!() };
                let events = run(&grid, &jobs, steal, delta);
                let found = outcome(&grid, &jobs, steal.threshold, &events);
                prop_assert!(found.is_complete());
                prop_assert_eq!(found.contradictions.total(), 0);

                let bounds = Bounds::of(&found);
                let setting = Setting { strategy, local: LocalScheduler::Easy, messages: analysis::Messages::FREE, local_users: false };
                let fetched: Vec<_> = theory::compare(&found, &bounds, setting)
                    .into_iter()
                    .filter(|comparison| comparison.name.contains("fetched"))
                    .collect();
                prop_assert_eq!(fetched.len(), 3);
                for comparison in fetched {
                    // Without work there is no ratio, and no crude bound if all jobs of some homes are of no length.
                    let stands = comparison.limit.is_some() || comparison.quantity == Quantity::Ratio;
                    prop_assert!(stands, "{:?}", comparison);
                    prop_assert!(comparison.limit.is_none() || comparison.verdict == Verdict::Holds, "{:?}", comparison);
                    let short = jobs.iter().any(|job| job.run_time == Span::ZERO);
                    prop_assert!(comparison.limit.is_some() || short, "{:?}", comparison);
                }

                let mut deficiency = Deficiency::new(&grid, &strategy.strategy, &jobs);
                events.iter().for_each(|event| deficiency.observe(event));
                let attribution = deficiency.finish().expect("every job ended");
                prop_assert!(attribution.certificate.holds);
                prop_assert_eq!((attribution.exact().blind, attribution.exact().lost), (0, 0));

                let places = reserved(&events);
                let longer: Vec<TimedJob> = jobs
                    .iter()
                    .map(|job| {
                        let stolen = grid.home(job.spec.processors) != Some(places[&job.spec.id].1);
                        TimedJob { run_time: job.run_time + if stolen { delta } else { Span::ZERO }, ..*job }
                    })
                    .collect();
                prop_assert_eq!(places, reserved(&run(&grid, &longer, steal, Span::ZERO)));
            }
        }
    }
}

#[test]
fn a_stolen_job_holds_its_processors_before_it_runs() {
    let grid = Grid::of_sizes(&[4, 4]).unwrap();
    let jobs = [job(1, 0, 4, 10), job(2, 0, 4, 10), job(3, 0, 4, 1)];

    let strategy: StrategySpec = "ideal/st:50,fetch=5s".parse().unwrap();
    let Scheme::Steal(steal) = strategy.strategy else { unreachable!() };
    let events = run(&grid, &jobs, steal, strategy.fetch);
    let found = outcome(&grid, &jobs, steal.threshold, &events);

    let starts: Vec<_> = found.jobs.iter().map(|job| (job.site.unwrap().0, job.start.unwrap())).collect();
    assert_eq!(starts, [(1, Time::ZERO), (2, Time::from_secs(5)), (1, Time::from_secs(10))]);
    assert_eq!(found.jobs[1].steal_delay, Span::from_secs(5));
    assert_eq!(found.makespan(), Span::from_secs(15));
}

/// A run whose jobs were fetched for longer than it is judged by breaks the bounds, here all three.
#[test]
fn mutant_a_longer_fetch_than_stated_breaks_the_bounds() {
    let grid = Grid::of_sizes(&[4, 4]).unwrap();
    let jobs: Vec<TimedJob> = (1..=20).map(|id| job(id, 0, 4, 1)).collect();
    let strategy = spec(50, Span::from_secs(1));
    let Scheme::Steal(steal) = strategy.strategy else { unreachable!() };
    let events = run(&grid, &jobs, steal, Span::from_secs(200));
    let found = outcome(&grid, &jobs, steal.threshold, &events);
    let comparisons = theory::compare(
        &found,
        &Bounds::of(&found),
        Setting {
            strategy,
            local: LocalScheduler::Easy,
            messages: analysis::Messages::FREE,
            local_users: false,
        },
    );
    let violated = comparisons.iter().filter(|comparison| comparison.verdict == Verdict::Violated).count();
    assert_eq!(violated, 3, "{comparisons:?}");
}
