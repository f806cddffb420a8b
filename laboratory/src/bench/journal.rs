//! `stealgrid bench journal`: what a journal costs, and how long a restart with one takes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use experiments::exit;
use node::journal::Durability;

use super::in_folder;
use super::rounds::{LoadArgs, Rounds};
use super::throughput::{Place, Restart, restart, throughput};

/// Measure what journals cost a run, and how long a restart with a full queue takes.
///
/// Throughput is jobs per second of wall time of a run on two nodes (64 and 128 processors), from the start until all
/// jobs have ended and all events are collected. As in any run the jobs are handed over before the start. They have 1 to
/// 8 processors and no run times, and come faster than the nodes can work. Nodes and coordinator share the machine.
/// Each round runs without a journal and with each durability, in turn; ratios are of the same round. A round in which
/// a queue for messages overflowed says nothing, and is run again. With a journal messages leave later, so fewer jobs
/// are stolen and less is to be done for each; with `--strategy local` that makes no difference.
///
/// Beside it stand what both nodes use of processors for each job, with the hand-over, and the bound that follows: the
/// ratio of processor time without a journal to that with it. `saturated` is the part of the time in which the busiest
/// thread of a node used a processor or waited for one, `waited` the latter: above some percent, others had them.
/// For the restart a node with jobs in its queue is killed (SIGKILL) and started again. Build with --release.
///
/// Exit codes: 0 done, 1 the nodes failed, 2 usage, 5 throughput is below --ratio-min or a restart took longer than
/// --restart-max.
#[derive(Clone, Debug, Args)]
pub(super) struct JournalBenchArgs {
    /// Rounds that are counted
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    #[command(flatten)]
    load: LoadArgs,

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
    let load = args.load.load();
    let kinds = [None, Some(Durability::Process), Some(Durability::Disk)];
    let rounds = Rounds::of(args.rounds, |_| {
        let mut of_round = Vec::new();
        for kind in kinds {
            let place = place()?;
            of_round.push(throughput(&place, &load, kind)?);
            std::fs::remove_dir_all(&place.folder)
                .with_context(|| format!("remove {}", place.folder.display()))?;
        }
        Ok(of_round.try_into().expect("one of each kind"))
    })?;
    let ratio_process = show_throughput(&args.load, &rounds);
    let mut longest = Duration::ZERO;
    for history in [0, u64::from(args.load.jobs)] {
        let took = restart(&place()?, args.queued.into(), history)?;
        longest = longest.max(took.ready);
        show_restart(&took, history);
    }
    let failed = args.ratio_min.is_some_and(|min| ratio_process < min)
        || args.restart_max.is_some_and(|max| longest.as_secs_f64() > max);
    Ok(if failed { exit::OUT_OF_TOLERANCE } else { exit::DONE })
}

/// Prints the table. The median ratio with durability process.
fn show_throughput(load: &LoadArgs, rounds: &Rounds<3>) -> f64 {
    println!("{}", rounds.heading(load));
    println!(
        "journal      jobs/s: median (least to most)   of without   us/job   of without   saturated   waited   \
         stolen   bytes/job   jobs/write"
    );
    let jobs = f64::from(load.jobs);
    let mut ratio_process = f64::NAN;
    for (index, name) in ["none", "process", "disk"].into_iter().enumerate() {
        let (columns, ratio) = rounds.columns(index, 2);
        let commits = rounds.median(index, |run| run.commits as f64);
        println!(
            "{name:<12} {columns}   {:.0} %   {:.0}   {:.0}",
            rounds.median(index, |run| run.stolen as f64) / jobs * 100.0,
            rounds.median(index, |run| run.journal_bytes as f64) / jobs,
            if commits > 0.0 { jobs / commits } else { 0.0 },
        );
        if index == 1 {
            ratio_process = ratio;
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
