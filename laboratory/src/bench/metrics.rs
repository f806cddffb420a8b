//! `stealgrid bench metrics`: what metrics and the log of a node cost, and how long a scrape takes.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use experiments::exit;
use node::metrics::UNCOUNTED;

use super::rounds::{LoadArgs, Rounds};
use super::scrape::scrape;
use super::throughput::{Place, throughput};
use super::{Quantiles, in_folder};

/// Measure what metrics and logs at their default levels cost a run, and how long a scrape takes.
///
/// Throughput is that of `bench journal`, without journals: jobs per second of wall time of a run on two nodes that get
/// jobs faster than they can work. Each round runs it with nodes as they are and with nodes that count nothing but what
/// the coordinator must know (submitted, ended) and log nothing (RUST_LOG=off), in an order that changes from round to
/// round; ratios are of the same round. A round in which a queue for messages overflowed says nothing, and is run
/// again. The time of a scrape is that of a node with jobs in its queue; beside it stands that of the same node before,
/// with an empty queue. Build with --release.
///
/// Exit codes: 0 done, 1 the nodes failed, 2 usage, 5 throughput is below --ratio-min or the median of a scrape took
/// longer than --scrape-max.
#[derive(Clone, Debug, Args)]
pub(super) struct MetricsBenchArgs {
    /// Rounds that are counted
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    #[command(flatten)]
    load: LoadArgs,

    /// Jobs in the queue of the node that is scraped
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=900_000))]
    queued: u32,

    /// Scrapes that are counted, of each kind
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    scrapes: u32,

    /// Where logs are kept meanwhile [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Fail if the median throughput is less than this part of that without metrics and logs
    #[arg(long, value_name = "RATIO")]
    ratio_min: Option<f64>,

    /// Fail if the median of a scrape takes longer
    #[arg(long, value_name = "MILLISECONDS")]
    scrape_max: Option<f64>,
}

/// Runs the command.
///
/// # Errors
/// If the nodes fail.
pub(super) fn run(args: &MetricsBenchArgs) -> anyhow::Result<u8> {
    in_folder(args.dir.clone(), |folder| measure(args, folder))
}

fn measure(args: &MetricsBenchArgs, folder: &std::path::Path) -> anyhow::Result<u8> {
    let program = std::env::current_exe().context("find this program")?;
    let program =
        program.into_os_string().into_string().ok().context("the path of this program is no text")?;
    let mut count = 0;
    // Both kinds are started through `env`.
    let mut place = |counts: bool| -> anyhow::Result<Place> {
        count += 1;
        let folder = folder.join(count.to_string());
        std::fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
        let uncounted = format!("{UNCOUNTED}=1");
        let settings = if counts { ["-u", "RUST_LOG"] } else { ["RUST_LOG=off", uncounted.as_str()] };
        let arguments = settings.into_iter().chain([program.as_str(), "node"]).map(str::to_string).collect();
        Ok(Place { program: PathBuf::from("env"), arguments, folder })
    };
    let took = scrape(&place(true)?, args.queued.into(), args.scrapes as usize)?;
    let (queued, empty) = (Quantiles::of(took.queued), Quantiles::of(took.empty));
    println!("{} scrapes of {} bytes", args.scrapes, took.bytes);
    println!("with {:>7} jobs in the queue  {}", args.queued, queued.line());
    println!("with       0 jobs in the queue  {}", empty.line());

    let load = args.load.load();
    let rounds = Rounds::of(args.rounds, |round| {
        let counts_first = round % 2 == 0;
        let first = throughput(&place(counts_first)?, &load, None)?;
        let second = throughput(&place(!counts_first)?, &load, None)?;
        Ok(if counts_first { [second, first] } else { [first, second] })
    })?;
    let ratio = show(&args.load, &rounds);
    let failed = args.ratio_min.is_some_and(|min| ratio < min)
        || args.scrape_max.is_some_and(|max| queued.median.as_secs_f64() * 1e3 > max);
    Ok(if failed { exit::OUT_OF_TOLERANCE } else { exit::DONE })
}

/// Prints the table. The median ratio.
fn show(load: &LoadArgs, rounds: &Rounds<2>) -> f64 {
    println!("{}", rounds.heading(load));
    println!(
        "metrics and logs   jobs/s: median (least to most)   of without   us/job   of without   saturated   waited"
    );
    let mut last = f64::NAN;
    for (index, name) in ["none", "default"].into_iter().enumerate() {
        let (columns, ratio) = rounds.columns(index, 3);
        println!("{name:<18} {columns}");
        last = ratio;
    }
    last
}
