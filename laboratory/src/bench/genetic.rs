//! `stealgrid bench genetic`: what an evaluation of rows costs, against the local queues of simulations and nodes.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use brokers::genetic::{
    Aim, Batch, Individual, Options, Purpose, RowScheduler, by_local_queues, initial, search,
};
use clap::Args;
use experiments::exit;
use scheduler::{JobSpec, Span};

use super::Quantiles;

/// Sites of the published experiments on genetic allocation.
const SITES: [u32; 12] = [4, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32, 32];
/// Widths: small powers of two predominate.
const WIDTHS: [u32; 16] = [1, 1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 16, 3, 5, 32];
/// Requested times in seconds: most are short.
const TIMES: [i64; 5] = [300, 900, 3600, 14_400, 72_000];

/// Measure what one evaluation of an individual costs: its rows under EASY, and four criteria.
///
/// Individuals are drawn as an initial population is. Each is evaluated by rows, on one thread, and by the local queues
/// that simulations and nodes use, in turn; both must find the same. Then a genetic algorithm runs on one thread, where rows that
/// did not change are not scheduled again. Times depend on the machine and on what else it does; the ratio of the medians less
/// so. Build with --release.
///
/// Exit codes: 0 done, 2 usage, 5 an evaluation takes more than --max, or the ratio is below --ratio-min.
#[derive(Clone, Debug, Args)]
pub(super) struct GeneticBenchArgs {
    /// Jobs of the batch
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: u32,

    /// Individuals that are evaluated in both ways
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    evaluations: u32,

    /// Generations of the genetic algorithm
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    generations: u32,

    /// Fail if the median of an evaluation is more milliseconds
    #[arg(long, value_name = "MS")]
    max: Option<f64>,

    /// Fail if the median of local queues is less than so many medians of an evaluation
    #[arg(long, value_name = "RATIO")]
    ratio_min: Option<f64>,
}

/// Runs the command.
///
/// # Panics
/// If both ways find different criteria.
pub(super) fn run(args: &GeneticBenchArgs) -> u8 {
    let batch = batch(args.jobs);
    let options =
        Options { generations_max: args.generations, stagnation: args.generations, ..Options::default() };
    let mut draw = Purpose::Chance.draw(1, 1);
    let (mut rows, mut queues) = (Vec::new(), Vec::new());
    let mut scheduler = RowScheduler::new();
    for _ in 0..args.evaluations {
        let mut one = Individual::random(&batch, options.initial_order, &mut draw);
        let begun = Instant::now();
        one.evaluate(&batch, &mut scheduler);
        rows.push(begun.elapsed());
        let begun = Instant::now();
        let requested = |job: u32| batch.jobs()[job as usize].requested;
        let criteria = by_local_queues(&batch, black_box(one.rows()), requested);
        queues.push(begun.elapsed());
        assert_eq!(one.criteria(), &criteria, "both ways to schedule rows agree");
    }
    let mut evaluate = |population: &mut [Individual]| {
        population.iter_mut().for_each(|one| one.evaluate(&batch, &mut scheduler))
    };
    let begun = Instant::now();
    let first = initial(&batch, &options, &mut Purpose::Initial.draw(1, 1), &mut evaluate);
    let draw = &mut Purpose::Algorithm(0).draw(1, 1);
    let go_on = &mut |_: &brokers::genetic::Step<'_>| ControlFlow::Continue(());
    let found = search(&batch, &options, Aim::Owa, &first, draw, &mut evaluate, go_on);
    let spent = begun.elapsed();

    let (rows, queues) = (Quantiles::of(rows), Quantiles::of(queues));
    let ratio = queues.median.as_secs_f64() / rows.median.as_secs_f64();
    let rate = |count: f64, time: Duration| count / time.as_secs_f64();
    println!("{} jobs, {} sites, {} individuals, one thread", args.jobs, SITES.len(), args.evaluations);
    println!("rows          {}   {:>8.0} a second", rows.line(), rate(1.0, rows.median));
    println!("local queues  {}   {:>8.0} a second", queues.line(), rate(1.0, queues.median));
    println!("ratio of the medians  {ratio:.1}");
    println!(
        "c1            {} evaluations in {} generations, {:.0} a second with crossover and mutation",
        found.evaluations,
        found.generations,
        rate(found.evaluations as f64, spent)
    );
    let is_slow = args.max.is_some_and(|most| rows.median.as_secs_f64() * 1e3 > most);
    if is_slow || args.ratio_min.is_some_and(|least| ratio < least) {
        exit::OUT_OF_TOLERANCE
    } else {
        exit::DONE
    }
}

fn batch(jobs: u32) -> Batch {
    let mut draw = Purpose::Initial.draw(1, 1);
    let job = |id: u32| JobSpec {
        requested: Span::from_secs(TIMES[draw.below(TIMES.len())] + draw.below(600) as i64),
        ..super::broker::job(id.into(), WIDTHS[draw.below(WIDTHS.len())])
    };
    Batch::new(&SITES, (1..=jobs).map(job).collect()).expect("all jobs fit the widest site")
}
