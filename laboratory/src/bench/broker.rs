//! `stealgrid bench broker`: what a decision of each rule costs, by how many sites there are.

use std::time::{Duration, Instant};

use brokers::allocation::{Allocator, Book};
use clap::Args;
use experiments::exit;
use scheduler::{Broker, BrokerRule, JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time};

/// Sizes of the sites of grid 1 of Quezada Pina (2012), again and again.
pub(super) const SIZES: [u32; 7] = [100, 128, 240, 430, 1024, 1152, 1368];

/// Measure what one decision of a broker costs, for each of its rules.
///
/// The broker knows the state of every site, with jobs that execute and jobs that wait. After each decision the job joins
/// the site that it was given to, and another one leaves: what a rule keeps from one decision to the next is of the use that
/// it has in a run. Times depend on the machine and on what else it does; ratios to broker:random, which looks at
/// widths alone, less so. Build with --release.
///
/// Exit codes: 0 done, 2 usage, 5 a decision of broker:mpl takes more than --mpl-max.
#[derive(Clone, Debug, Args)]
pub(super) struct BrokerBenchArgs {
    /// Sites
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sites: u32,

    /// Jobs of each site
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    jobs: u32,

    /// Decisions that are counted, of each rule
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    decisions: u32,

    /// Fail if a decision of broker:mpl takes more microseconds in the mean
    #[arg(long, value_name = "US")]
    mpl_max: Option<f64>,
}

/// Runs the command.
pub(super) fn run(args: &BrokerBenchArgs) -> u8 {
    let mut sizes: Vec<u32> = SIZES.iter().copied().cycle().take(args.sites as usize).collect();
    sizes.sort_unstable();
    println!("{} sites, {} jobs each, {} decisions of each rule", args.sites, args.jobs, args.decisions);
    let mut random = None;
    let mut code = exit::DONE;
    for &rule in BrokerRule::BUILT_IN {
        let micros = decision(rule, &sizes, args).as_secs_f64() * 1e6;
        let random = *random.get_or_insert(micros);
        let name = Broker::new(rule).to_string();
        println!(
            "{name:<20} {micros:>10.2} us a decision  {:>8.1} of {}",
            micros / random,
            BrokerRule::BUILT_IN[0].name()
        );
        if rule == BrokerRule::ParallelLoad && args.mpl_max.is_some_and(|most| micros > most) {
            code = exit::OUT_OF_TOLERANCE;
        }
    }
    code
}

/// The mean time of a decision.
fn decision(rule: BrokerRule, sizes: &[u32], args: &BrokerBenchArgs) -> Duration {
    let mut allocator = Allocator::new(Broker::new(rule), sizes, LocalScheduler::Easy, Pass::Batch, 1, 0);
    let start = Time::from_secs(1);
    let mut books: Vec<Book> =
        sizes.iter().zip(0..).map(|(&size, place)| book(size, place, args.jobs)).collect();
    books.iter_mut().for_each(|book| book.decide(start, &mut Vec::new()));
    let mut spent = Duration::ZERO;
    let mut last = None;
    let widest = u64::from(sizes.iter().copied().max().unwrap_or(1));
    for number in 0..u64::from(args.decisions) {
        let now = start + Span::from_micros(number as i64);
        let job = job(1 << 32 | number, 1 + (number * 7919 % widest) as u32);
        let begun = Instant::now();
        let place = allocator.choose_knowing(now, &job, &mut books);
        spent += begun.elapsed();
        let Some(place) = place else { continue };
        books[place].joined(now, job);
        if let Some((place, job)) = last.replace((place, job.id)) {
            books[place].left(now, job);
        }
    }
    spent / args.decisions
}

pub(super) fn job(id: u64, processors: u32) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::from_secs(1),
        processors,
        requested: Span::from_secs(3600),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

/// What a site has: jobs of all its widths.
pub(super) fn book(size: u32, place: u64, jobs: u32) -> Book {
    let mut book = Book::new(LocalScheduler::Easy, Pass::Batch, size, true);
    for number in 0..u64::from(jobs) {
        let id = place * u64::from(jobs) + number;
        book.joined(Time::from_secs(1), job(id, 1 + (id % u64::from(size)) as u32));
    }
    book
}
