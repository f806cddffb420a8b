//! What one evaluation of an individual costs: 1,000 jobs on the twelve sites of the published experiments, EASY, four
//! criteria.
//!
//! Read times as ratios: local queues over all rows is what scheduling rows by code of its own saves, all rows over one row
//! what it saves to schedule only rows that have changed. `cargo bench -p stealgrid-brokers --bench genetic`.

use std::hint::black_box;

use brokers::genetic::{
    Batch, Individual, Mask, MaskOf, Obx, Purpose, RowOrder, RowScheduler, by_local_queues, cross,
};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

const SITES: [u32; 12] = [4, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32, 32];

/// Small powers of two predominate, and most jobs are short.
fn batch() -> Batch {
    let widths = [1, 1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 16, 3, 5, 32];
    let mut draw = Purpose::Initial.draw(1, 1);
    let job = |id| JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors: widths[draw.below(widths.len())],
        requested: Span::from_secs([300, 900, 3600, 14_400, 72_000][draw.below(5)] + draw.below(600) as i64),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    Batch::new(&SITES, (1..=1000).map(job).collect()).expect("all jobs fit")
}

fn evaluations(criterion: &mut Criterion) {
    let batch = batch();
    let mut draw = Purpose::Initial.draw(2, 1);
    let mut scheduler = RowScheduler::new();
    let mut parents = [(); 2].map(|()| Individual::random(&batch, RowOrder::Arrival, &mut draw));
    parents.iter_mut().for_each(|one| one.evaluate(&batch, &mut scheduler));
    let [one, other] = &parents;
    let mut group = criterion.benchmark_group("1,000 jobs, 12 sites");
    group.bench_function("all rows", |bench| {
        let stale = || Individual::new(one.rows().clone());
        let evaluate = |one: &mut Individual| one.evaluate(&batch, &mut scheduler);
        bench.iter_batched_ref(stale, evaluate, BatchSize::SmallInput);
    });
    group.bench_function("one row", |bench| {
        let row = &one.rows()[11];
        bench.iter(|| scheduler.cost(&batch, 11, black_box(row)));
    });
    group.bench_function("crossover", |bench| {
        bench.iter(|| {
            let mask = Mask::draw(MaskOf::Column, one.rows(), &mut draw);
            cross(&batch, Obx::Filled, one, other, &mask)
        });
    });
    group.sample_size(20).bench_function("all rows, local queues", |bench| {
        bench.iter(|| {
            by_local_queues(&batch, black_box(one.rows()), |job| batch.jobs()[job as usize].requested)
        });
    });
    group.finish();
}

criterion_group!(benches, evaluations);
criterion_main!(benches);
