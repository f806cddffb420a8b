//! `stealgrid bench simulate`: whole commands, as users run them, beside a loop that this brings along.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use experiments::exit;

use super::in_folder;
use super::rounds::Spread;

/// The sites of the quick start.
const SITES: [u32; 7] = [16, 32, 48, 64, 80, 96, 128];
/// What is run: by its name, on one site of all processors or on seven.
const KINDS: [(&str, &str, bool); 4] = [
    ("EASY on one site", "local", true),
    ("ideal/st:50", "ideal/st:50", false),
    ("st:50", "st:50", false),
    ("steal:loaded", "steal:loaded,select=easy", false),
];
/// Events of the loop for each job: as many as take about as long as a run of the default size.
const LOOP: u64 = 20;
/// Events that the loop has ahead at a time: more than the nearest caches hold.
const AHEAD: u64 = 100_000;

/// Measure whole runs of `stealgrid simulate`, with all outputs and what each run is held against.
///
/// Jobs are those of `trace generate` at an offered load of 0.8. In each round every run follows a loop over a heap of
/// events that never changes; ratios are of the same round, so that machines, and what else they do, matter less. A
/// later version with larger ratios is slower. Build with --release.
///
/// Exit codes: 0 done, 1 a run failed, 2 usage, 5 a median ratio is above --ratio-max.
#[derive(Clone, Debug, Args)]
pub(super) struct SimulateBenchArgs {
    /// Jobs of each run
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    jobs: u32,

    /// Rounds that are counted
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Fail if the median of a run is more than so many of the loop: four ratios, in the order of the table
    #[arg(long, value_name = "RATIO,RATIO,RATIO,RATIO", value_delimiter = ',')]
    ratio_max: Option<Vec<f64>>,
}

/// Runs the command.
///
/// # Errors
/// If a run fails.
pub(super) fn run(args: &SimulateBenchArgs) -> anyhow::Result<u8> {
    if args.ratio_max.as_ref().is_some_and(|most| most.len() != KINDS.len()) {
        eprintln!("error: --ratio-max takes {} ratios, with commas between", KINDS.len());
        return Ok(exit::USAGE);
    }
    in_folder(None, |folder| measure(args, folder))
}

fn measure(args: &SimulateBenchArgs, folder: &Path) -> anyhow::Result<u8> {
    let sizes = SITES.map(|size| size.to_string()).join(",");
    let jobs = args.jobs.to_string();
    let generate =
        ["trace", "generate", "--sites", &sizes, "--jobs", &jobs, "--load", "0.8", "--out", "jobs.swf"];
    command(folder, &generate)?;
    for (name, sites) in [("one.toml", &[SITES.iter().sum()][..]), ("seven.toml", &SITES)] {
        let site =
            |(size, number): (&u32, u32)| format!("{{ name = \"site{number}\", processors = {size} }}");
        let sites: Vec<String> = sites.iter().zip(1..).map(site).collect();
        let text = format!(
            "grid.sites = [{}]\nworkload.trace = \"jobs.swf\"\nnetwork.delay = \"5m\"\n",
            sites.join(", ")
        );
        fs::write(folder.join(name), text)?;
    }
    let events = LOOP * u64::from(args.jobs);
    println!("{} rounds of {} jobs, each beside a loop of {events} events", args.rounds, args.jobs);
    let mut ratios: [Vec<f64>; KINDS.len()] = Default::default();
    let mut times: [Vec<f64>; KINDS.len()] = Default::default();
    for _ in 0..args.rounds {
        for (kind, (_, strategy, is_one)) in KINDS.into_iter().enumerate() {
            let yardstick = heap_of_events(events);
            let file = if is_one { "one.toml" } else { "seven.toml" };
            let took =
                command(folder, &["simulate", file, "--strategy", strategy, "--out", "out", "--replace"])?;
            times[kind].push(took.as_secs_f64());
            ratios[kind].push(took.as_secs_f64() / yardstick.as_secs_f64());
        }
    }
    let mut code = exit::DONE;
    for (kind, (name, ..)) in KINDS.into_iter().enumerate() {
        let (time, ratio) = (Spread::of(times[kind].clone()), Spread::of(ratios[kind].clone()));
        println!("{name:<18} {} s   {} of the loop", time.text(2), ratio.text(2));
        if args.ratio_max.as_ref().is_some_and(|most| ratio.median > most[kind]) {
            code = exit::OUT_OF_TOLERANCE;
        }
    }
    Ok(code)
}

/// Runs this program in a folder; how long it took.
pub(super) fn command(folder: &Path, args: &[&str]) -> anyhow::Result<Duration> {
    let program = std::env::current_exe().context("find this program")?;
    let begun = Instant::now();
    let output = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("run stealgrid {}", args.join(" ")))?;
    let took = begun.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "stealgrid {} ended with {}: {said}", args.join(" "), output.status);
    Ok(took)
}

/// Takes the first of many events and puts a later one in its place, again and again.
fn heap_of_events(events: u64) -> Duration {
    let begun = Instant::now();
    let mut state = 1_u64;
    // The step of Knuth's MMIX generator.
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 44
    };
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..AHEAD).map(|number| Reverse((next(), number))).collect();
    for number in AHEAD..AHEAD + events {
        let Reverse((at, _)) = heap.pop().expect("it has as many as before");
        heap.push(Reverse((at + next(), number)));
    }
    std::hint::black_box(heap.len());
    begun.elapsed()
}
