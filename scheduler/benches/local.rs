//! How long local schedulers take to schedule one synthetic log, against each other and against their naive
//! twins.
//!
//! Read the times of a group as ratios: EASY over FCFS is the price of backfilling, naive over EASY what the
//! indexes save. `cargo bench -p stealgrid-scheduler --bench local`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use scheduler::local::{LocalQueue, replay};
use scheduler::{JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time, TimedJob};

#[path = "../tests/naive/mod.rs"]
mod naive;

const SITE: u32 = 64;

fn against_naive_twins(criterion: &mut Criterion) {
    let jobs = log(400, 1.0);
    let mut group = criterion.benchmark_group("400 jobs");
    group.throughput(Throughput::Elements(jobs.len() as u64)).sample_size(10);
    for scheduler in [LocalScheduler::Fcfs, LocalScheduler::Easy, LocalScheduler::Conservative] {
        group.bench_function(scheduler.name(), |bench| bench.iter(|| run(scheduler, &jobs)));
    }
    group.bench_function("easy, naive twin", |bench| {
        bench.iter(|| naive::in_order(LocalScheduler::Easy, Pass::Batch, SITE, black_box(&jobs)));
    });
    group.bench_function("conservative, naive twin", |bench| {
        let kind = naive::Conservative::Compress;
        bench.iter(|| naive::conservative(kind, Pass::Batch, SITE, black_box(&jobs)));
    });
    let replan = LocalScheduler::ConservativeReplan;
    group.bench_function(replan.name(), |bench| bench.iter(|| run(replan, &jobs)));
    group.bench_function("conservative-replan, naive twin", |bench| {
        let kind = naive::Conservative::Replan;
        bench.iter(|| naive::conservative(kind, Pass::Batch, SITE, black_box(&jobs)));
    });
    group.finish();
}

fn against_each_other(criterion: &mut Criterion) {
    for (name, load) in [("20,000 jobs at load 0.8", 0.8), ("20,000 jobs at load 1.3", 1.3)] {
        let jobs = log(20_000, load);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(jobs.len() as u64)).sample_size(10);
        for scheduler in LocalScheduler::ALL {
            // A plan for thousands of waiting jobs is long, and each termination looks at all of it.
            let plans =
                matches!(scheduler, LocalScheduler::Conservative | LocalScheduler::ConservativeReplan);
            if load < 1.0 || !plans {
                group.bench_function(scheduler.name(), |bench| bench.iter(|| run(scheduler, &jobs)));
            }
        }
        group.finish();
    }
}

/// A plan of everything that waits, and the start of one job more.
fn plans(criterion: &mut Criterion) {
    let jobs = log(1_100, 1.0);
    let mut group = criterion.benchmark_group("plan of 1,000 waiting jobs");
    group.sample_size(20);
    for scheduler in
        [LocalScheduler::Fcfs, LocalScheduler::List, LocalScheduler::Easy, LocalScheduler::EasyBestFit]
    {
        let mut queue = LocalQueue::new(scheduler, Pass::Batch, SITE);
        let now = jobs.iter().map(|job| job.spec.submit).max().expect("there are jobs");
        let mut coming = jobs.iter().map(|job| job.spec);
        while queue.waiting() < 1_000 {
            queue.submit(now, coming.next().expect("few of them start"));
            queue.decide(now, &mut Vec::new());
        }
        group.bench_function(scheduler.name(), |bench| bench.iter(|| black_box(&queue).plan(now)));
        let plan = queue.plan(now);
        let last = JobSpec { id: JobId(1_000_000), submit: now, ..jobs[0].spec };
        group.bench_function(format!("one more, {}", scheduler.name()), |bench| {
            bench.iter(|| black_box(&plan).with(black_box(&last)));
        });
    }
    group.finish();
}

/// The predicted start of the last of 100 waiting jobs, played forward with run times of somebody else, beside a plan of them all.
fn starts(criterion: &mut Criterion) {
    let jobs = log(200, 1.0);
    let mut group = criterion.benchmark_group("start of the last of 100 waiting jobs");
    for scheduler in LocalScheduler::ALL {
        let mut queue = LocalQueue::new(scheduler, Pass::Batch, SITE);
        let now = jobs.iter().map(|job| job.spec.submit).max().expect("there are jobs");
        let mut coming = jobs.iter().map(|job| job.spec);
        let mut last = JobId(0);
        while queue.waiting() < 100 {
            let job = coming.next().expect("few of them start");
            last = job.id;
            queue.submit(now, job);
            queue.decide(now, &mut Vec::new());
        }
        let half = |job: &JobSpec| Span::from_micros(job.requested.as_micros() / 2);
        group.bench_function(scheduler.name(), |bench| {
            bench.iter(|| black_box(&queue).start_if(now, last, |_| now + Span::from_secs(60), half));
        });
        group.bench_function(format!("plan of all, {}", scheduler.name()), |bench| {
            bench.iter(|| black_box(&queue).plan(now));
        });
    }
    group.finish();
}

criterion_group!(benches, against_naive_twins, against_each_other, plans, starts);
criterion_main!(benches);

fn run(scheduler: LocalScheduler, jobs: &[TimedJob]) -> Vec<(JobId, Time)> {
    replay(LocalQueue::new(scheduler, Pass::Batch, SITE), black_box(jobs))
}

/// A log of whole seconds at about this load: widths of powers of two, run times up to 200 s, estimates up to
/// five times as long.
fn log(jobs: u64, load: f64) -> Vec<TimedJob> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: u64| {
        // Xorshift (Marsaglia 2003): good enough for a load, and the same on every machine.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut work_until = 0.0;
    let mut log = Vec::new();
    for id in 0..jobs {
        let processors = 1 << draw(6);
        let run = 1 + draw(200);
        let requested = run * (1 + draw(5));
        let spec = JobSpec {
            id: JobId(id),
            submit: Time::from_secs(work_until as i64),
            processors,
            requested: Span::from_secs(requested.cast_signed()),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        log.push(TimedJob { spec, run_time: Span::from_secs(run.cast_signed()) });
        work_until += f64::from(processors) * run as f64 / (f64::from(SITE) * load);
    }
    log
}
