//! How many decisions a dispatcher makes in a second: round-robin, AG, MQD, MCT and LinUCB on 100 sites, beside the allocator of
//! `broker:random`.
//!
//! Read times as ratios over `broker:random`, which draws a site and knows nothing. Each step is one job that ends and is learned
//! from, one that arrives, and a dispatch; half of all places are taken, so that every site is open and is looked at.
//! `cargo bench -p stealgrid-brokers --bench learning`.

use std::collections::VecDeque;
use std::hint::black_box;

use brokers::Broker as _;
use brokers::allocation::{Allocator, Book, Site};
use brokers::learning::{Assignment, Dispatcher, Requested};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use scheduler::{Broker, BrokerRule, JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time};

const SITES: usize = 100;

fn job(id: u64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::from_secs(id as i64),
        processors: 1,
        requested: Span::from_secs(180 + (id * 7919 % 300) as i64),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one decision, 100 sites");
    group.throughput(Throughput::Elements(1));
    group.bench_function("broker:random", |bench| {
        let sizes = [8; SITES];
        let rules = Broker::new(BrokerRule::Random);
        let (scheduler, pass) = (LocalScheduler::default(), Pass::default());
        let mut allocator = Allocator::new(rules, &sizes, scheduler, pass, 1, 1);
        let books: Vec<Book> = sizes.iter().map(|&size| Book::new(scheduler, pass, size, false)).collect();
        let now = Time::ZERO;
        let sites: Vec<Site<'_>> = books
            .iter()
            .enumerate()
            .map(|(place, book)| Site { place, book, is_candidate: true, as_of: Some(now) })
            .collect();
        let job = job(1);
        bench.iter(|| allocator.choose(now, black_box(&job), &sites));
    });
    for rule in ["round-robin", "ag", "mqd", "mct", "linucb"] {
        group.bench_function(rule, |bench| {
            let options = rule.parse().expect("a rule");
            let mut dispatcher = Dispatcher::new(&options, &[8; SITES], 1, 1);
            let mut next = 1;
            let mut there: VecDeque<Assignment> = VecDeque::new();
            // Half of all places are taken, so that each decision looks at all sites.
            while there.len() < SITES * 10 {
                dispatcher.came(Time::ZERO, job(next));
                there.extend(dispatcher.dispatch(Time::from_secs(next as i64), &Requested::default()));
                next += 1;
            }
            bench.iter(|| {
                let now = Time::from_secs(next as i64);
                let ended = there.pop_front().expect("half of all places are taken");
                let execution = Span::from_secs(180 + (ended.job.0 * 31 % 300) as i64);
                dispatcher.finished(now, ended.job, ended.site, execution, Span::ZERO);
                dispatcher.came(Time::ZERO, job(next));
                there.extend(dispatcher.dispatch(now, &Requested::default()));
                next += 1;
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
