//! `stealgrid bench journal`: what a journal costs, and how long a restart with one takes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use node::bench::journal::{Place, Restart, Throughput, restart, throughput};
use node::journal::Durability;

use super::in_folder;
use crate::exit;

/// So many rounds may overflow in any case.
pub(super) const OVERFLOWS_MIN: u32 = 3;

/// Measure what journals cost a run, and how long a restart with a full queue takes.
///
/// Throughput is jobs per second of wall time of a run on two nodes (64 and 128 processors, st:50), from the start until
/// all jobs have ended and all events are collected. As in any run the jobs are handed over before the start. They have
/// 1 to 8 processors and no run times, and come at 400,000 a second: faster than the nodes can work. Nodes and
/// coordinator share the machine. Each round runs without a journal and with each durability, in turn; ratios are of
/// the same round. A round in which a queue for messages overflowed says nothing, and is run again.
///
/// Beside it stand what both nodes use of processors for each job, with the hand-over, and the bound that follows: the
/// ratio of processor time without a journal to that with it. `saturated` is the part of the time in which the busier
/// node used a processor or waited for one, `waited` the latter: above some percent, other work has disturbed.
/// For the restart a node with jobs in its queue is killed (SIGKILL) and started again. Build with --release.
///
/// Exit codes: 0 done, 1 the nodes failed, 2 usage, 5 throughput is below --ratio-min or a restart took longer than
/// --restart-max.
#[derive(Clone, Debug, Args)]
pub(super) struct JournalBenchArgs {
    /// Rounds that are counted
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Jobs of each run
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    jobs: u32,

    /// Jobs in the queue at the restart
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=900_000))]
    queued: u32,

    /// Where journals are kept meanwhile: on the disk that matters [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Fail if the median throughput with durability process is less than this part of that without a journal
    #[arg(long, value_name = "RATIO")]
    ratio_min: Option<f64>,

    /// Fail if a restart takes longer, from the start of the process to its ready line
    #[arg(long, value_name = "SECONDS")]
    restart_max: Option<f64>,
}

/// Runs the command.
///
/// # Errors
/// If the nodes fail.
pub(super) fn run(args: &JournalBenchArgs) -> anyhow::Result<u8> {
    in_folder(args.dir.clone(), |folder| measure(args, folder))
}

fn measure(args: &JournalBenchArgs, folder: &Path) -> anyhow::Result<u8> {
    let mut count = 0;
    let mut place = || -> anyhow::Result<Place> {
        count += 1;
        let folder = folder.join(count.to_string());
        std::fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
        let program = std::env::current_exe().context("find this program")?;
        Ok(Place { program, arguments: vec!["node".to_string()], folder })
    };
    let kinds = [None, Some(Durability::Process), Some(Durability::Disk)];
    let mut rounds: Vec<[Throughput; 3]> = Vec::new();
    let mut overflowed = 0;
    // The first warms up.
    let mut warm = false;
    while rounds.len() < args.rounds as usize {
        let mut of_round = Vec::new();
        for kind in kinds {
            let place = place()?;
            of_round.push(throughput(&place, args.jobs.into(), kind)?);
            std::fs::remove_dir_all(&place.folder)
                .with_context(|| format!("remove {}", place.folder.display()))?;
        }
        if of_round.iter().any(|run| run.lost > 0) {
            overflowed += 1;
            ensure!(
                overflowed <= args.rounds.max(OVERFLOWS_MIN),
                "queues for messages overflowed in {overflowed} rounds, and {} were without; run fewer --jobs",
                rounds.len()
            );
        } else if std::mem::replace(&mut warm, true) {
            rounds.push(of_round.try_into().expect("one of each kind"));
        }
    }
    let ratio_process = show_throughput(args, &rounds, overflowed);
    let mut longest = Duration::ZERO;
    for history in [0, u64::from(args.jobs)] {
        let took = restart(&place()?, args.queued.into(), history)?;
        longest = longest.max(took.ready);
        show_restart(&took, history);
    }
    let failed = args.ratio_min.is_some_and(|min| ratio_process < min)
        || args.restart_max.is_some_and(|max| longest.as_secs_f64() > max);
    Ok(if failed { exit::OUT_OF_TOLERANCE } else { exit::DONE })
}

/// Prints the table. The median ratio with durability process.
fn show_throughput(args: &JournalBenchArgs, rounds: &[[Throughput; 3]], overflowed: u32) -> f64 {
    println!("{} rounds of {} jobs on two nodes; {overflowed} more overflowed", args.rounds, args.jobs);
    println!(
        "journal      jobs/s: median (least to most)   of without   us/job   of without   saturated   waited   \
         stolen   bytes/job   jobs/write"
    );
    let mut ratio_process = f64::NAN;
    for (index, name) in ["none", "process", "disk"].into_iter().enumerate() {
        let spread = |value: &dyn Fn(&[Throughput; 3]) -> f64| Spread::of(rounds.iter().map(value).collect());
        let of = |value: fn(&Throughput) -> f64| spread(&|round| value(&round[index]));
        let rate = of(|run| run.jobs_per_second);
        let ratio = spread(&|round| round[index].jobs_per_second / round[0].jobs_per_second);
        let used = |run: &Throughput| run.processor_time.as_secs_f64();
        let bound = spread(&|round| used(&round[0]) / used(&round[index]));
        let jobs = f64::from(args.jobs);
        let commits = of(|run| run.commits as f64).median;
        println!(
            "{name:<12} {:>10.0} ({:.0} to {:.0})   {:.2} ({:.2} to {:.2})   {:.1}   {:.2} ({:.2} to {:.2})   {:.0} %   \
             {:.0} %   {:.0} %   {:.0}   {:.0}",
            rate.median,
            rate.least,
            rate.most,
            ratio.median,
            ratio.least,
            ratio.most,
            of(|run| run.processor_time.as_secs_f64() * 1e6).median,
            bound.median,
            bound.least,
            bound.most,
            of(|run| run.saturation).median * 100.0,
            of(|run| run.contention).median * 100.0,
            of(|run| run.stolen as f64).median / jobs * 100.0,
            of(|run| run.journal_bytes as f64).median / jobs,
            if commits > 0.0 { jobs / commits } else { 0.0 },
        );
        if index == 1 {
            ratio_process = ratio.median;
        }
    }
    ratio_process
}

fn show_restart(took: &Restart, history: u64) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "restart with {} jobs in the queue after {history} others ({} events, {:.1} MB): ready after {:.0} ms, serves \
         {:.0} ms later, all connected after {:.0} ms",
        took.waiting,
        took.events,
        took.journal_bytes as f64 / 1e6,
        millis(took.ready),
        millis(took.serves),
        millis(took.connected),
    );
    let steps: Vec<String> =
        took.steps.iter().map(|(name, took)| format!("{name} {:.0} ms", millis(*took))).collect();
    println!("  of that {}", steps.join(", "));
}

/// The middle and the ends of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
}

impl Spread {
    /// Of at least one value.
    pub(super) fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        Spread { least: values[0], median: values[(values.len() - 1) / 2], most: values[values.len() - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_value() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Spread { least: 1.0, median: 2.0, most: 3.0 });
        assert_eq!(Spread::of(vec![1.0]), Spread { least: 1.0, median: 1.0, most: 1.0 });
    }
}
