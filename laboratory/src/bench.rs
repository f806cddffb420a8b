//! `stealgrid bench`: what parts of a run cost on this machine.

mod broker;
mod coallocation;
mod estimators;
mod external;
mod genetic;
mod journal;
mod metrics;
mod rounds;
mod scale;
mod scrape;
mod sharing;
mod simulate;
mod throughput;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use experiments::exit;

/// What can be measured.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    Steal(StealArgs),
    Simulate(simulate::SimulateBenchArgs),
    Scale(scale::ScaleBenchArgs),
    Journal(journal::JournalBenchArgs),
    Metrics(metrics::MetricsBenchArgs),
    Broker(broker::BrokerBenchArgs),
    Coallocation(coallocation::CoallocationBenchArgs),
    Estimators(estimators::EstimatorsBenchArgs),
    Genetic(genetic::GeneticBenchArgs),
    External(external::ExternalBenchArgs),
    Sharing(sharing::SharingBenchArgs),
    /// Answer as the fastest command could: the first admissible site, without a look at the rest
    #[command(hide = true)]
    ExternalClient,
}

/// Measure a steal over the loopback interface: from the thief's request until it has started the job.
///
/// Two peers talk over the same network layer and codec as nodes do, each on a thread and runtime of its own. Beside
/// them, in turn, runs an echo over a bare request-response behaviour of libp2p with as many bytes. Times depend on the
/// machine and on what else it does; the ratio of the medians less so. Build with --release.
///
/// Exit codes: 0 done, 1 the network or the peers failed, 2 usage, 5 the ratio is above --ratio-max.
#[derive(Clone, Debug, Args)]
struct StealArgs {
    /// Steals, and echoes, that are counted
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: u32,

    /// Fail if the median of a steal is more than so many medians of an echo
    #[arg(long, value_name = "RATIO")]
    ratio_max: Option<f64>,
}

/// Runs the command.
///
/// # Errors
/// If the network or the peers fail.
pub fn run(args: &BenchArgs) -> anyhow::Result<u8> {
    match &args.what {
        What::Steal(args) => steal(args),
        What::Simulate(args) => simulate::run(args),
        What::Scale(args) => scale::run(args),
        What::Journal(args) => journal::run(args),
        What::Metrics(args) => metrics::run(args),
        What::Broker(args) => Ok(broker::run(args)),
        What::Coallocation(args) => coallocation::run(args),
        What::Estimators(args) => estimators::run(args),
        What::Genetic(args) => Ok(genetic::run(args)),
        What::External(args) => external::run(args),
        What::Sharing(args) => sharing::run(args),
        What::ExternalClient => external::client(),
    }
}

fn steal(args: &StealArgs) -> anyhow::Result<u8> {
    let cost = node::bench::steal(args.rounds as usize)?;
    let (steal, echo) = (Quantiles::of(cost.steals), Quantiles::of(cost.echoes));
    let ratio = steal.median.as_secs_f64() / echo.median.as_secs_f64();
    println!("{} rounds; request {} bytes, answer {} bytes", args.rounds, cost.bytes.0, cost.bytes.1);
    println!("steal  {}", steal.line());
    println!("echo   {}", echo.line());
    println!("ratio of the medians  {ratio:.2}");
    Ok(match args.ratio_max {
        Some(max) if ratio > max => exit::OUT_OF_TOLERANCE,
        _ => exit::DONE,
    })
}

/// Where a tenth, a half and nine tenths of some times lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quantiles {
    tenth: Duration,
    median: Duration,
    ninth: Duration,
}

impl Quantiles {
    /// Of at least one time.
    fn of(mut times: Vec<Duration>) -> Quantiles {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        Quantiles { tenth: at(10), median: at(50), ninth: at(90) }
    }

    fn line(self) -> String {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let [tenth, median, ninth] = [self.tenth, self.median, self.ninth].map(micros);
        format!("median {median:>7.1} us   p10 {tenth:>7.1} us   p90 {ninth:>7.1} us")
    }
}

/// Measures in a folder of its own, made in the one given or in that for temporary files, and removes it.
///
/// # Errors
/// If the folder cannot be made or removed, and those of the measurement.
fn in_folder(
    parent: Option<PathBuf>,
    measure: impl FnOnce(&Path) -> anyhow::Result<u8>,
) -> anyhow::Result<u8> {
    let parent = parent.unwrap_or_else(std::env::temp_dir);
    let folder = parent.join(format!("stealgrid-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
    let measured = measure(&folder);
    let removed = std::fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()));
    let code = measured?;
    removed?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let times = [5, 1, 3, 2, 4, 9, 8, 7, 6, 11, 10].map(Duration::from_micros).to_vec();
        let Quantiles { tenth, median, ninth } = Quantiles::of(times);
        assert_eq!([tenth, median, ninth], [2, 6, 10].map(Duration::from_micros));
        let one = Duration::from_micros(3);
        assert_eq!(Quantiles::of(vec![one]), Quantiles { tenth: one, median: one, ninth: one });
    }
}
