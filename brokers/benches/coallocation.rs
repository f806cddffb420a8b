//! How long the best co-allocation of a job over many clusters takes. `cargo bench -p stealgrid-brokers --bench coallocation`.

use std::hint::black_box;

use brokers::coallocation::{Cluster, Job, Variant, best};
use criterion::{Criterion, criterion_group, criterion_main};
use scheduler::draw::Draw;

fn solve(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("best co-allocation over 64 clusters");
    for (nodes, tasks) in [(8, 16), (8, 64), (64, 64)] {
        let mut draw = Draw::of_stream(1, 1);
        let clusters: Vec<Cluster> = (0..64)
            .map(|_| Cluster {
                powers: (0..nodes)
                    .map(|_| [1.0, 0.8, 0.6][draw.below(3)] / (1 + draw.below(4)) as f64)
                    .collect(),
                link: 1_000.0,
                consumed: draw.between(100.0, 700.0),
            })
            .collect();
        let job = Job { tasks, bandwidth: draw.between(25.0, 75.0), computing: 60.0, communicating: 30.0 };
        for (name, variant) in [("optimal", Variant::Optimal), ("non-saturated", Variant::NonSaturated)] {
            group.bench_function(format!("{tasks} tasks, {nodes} nodes each, {name}"), |bench| {
                bench.iter(|| best(variant, black_box(&job), black_box(&clusters)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, solve);
criterion_main!(benches);
