//! `stealgrid bench scale`: what grids of many sites cost and bring, by how many others each site knows.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::Args;
use experiments::exit;
use serde_json::Value;

use super::in_folder;
use super::simulate::command;

/// Processors of sites, one after another and again: as different as those of published grids.
const PROCESSORS: [u32; 6] = [16, 32, 64, 128, 256, 512];
/// How often the memory of a run is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of the head of a log that is made here.
const HEADER_MAX: u64 = 1 << 27;
/// What a row says. Waits are seconds of trace time, and of those `wait_blind_s` what a job waited because a site with room did not know of it.
const COLUMNS: [&str; 18] = [
    "sites",
    "jobs",
    "seed",
    "delay",
    "load",
    "strategy",
    "view",
    "seconds",
    "memory_mb",
    "messages_per_job",
    "requests_per_job",
    "served_share",
    "hops_max",
    "stolen_share",
    "wait_mean_s",
    "wait_blind_s",
    "bounded_slowdown_mean",
    "ratio_best",
];

type Table = csv::Writer<Box<dyn Write>>;

/// Measure whole runs of `stealgrid simulate` on grids of many sites, by how many others each site knows.
///
/// Sites have 16 to 512 processors, jobs are those of `trace generate` and enter where their users are. Each run is a process of its own,
/// without events, page, schedule and ideal. All columns but seconds and memory_mb (the most that the process had, from /proc) are the same
/// on every machine. Build with --release.
///
/// Exit codes: 0 done, 1 a run failed, 2 usage.
#[derive(Clone, Debug, Args)]
pub(super) struct ScaleBenchArgs {
    /// Sites of each grid
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "10,100,1000", value_parser = clap::value_parser!(u32).range(2..=20_000))]
    sites: Vec<u32>,

    /// Jobs for each site
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: u32,

    /// Strategies
    #[arg(long, value_name = "STRATEGY", default_values = ["st:50", "steal:random", "local"])]
    strategy: Vec<String>,

    /// How many others a site knows, or all; for strategies that know of views
    #[arg(long, value_name = "N|all,…", value_delimiter = ',', default_value = "5,16,all")]
    views: Vec<String>,

    /// One-way delay of all links
    #[arg(long, value_name = "TIME", default_value = "10s")]
    delay: String,

    /// Offered load
    #[arg(long, value_name = "L", default_value_t = 0.8)]
    load: f64,

    /// Seeds of jobs, links and views
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "1")]
    seeds: Vec<u64>,

    /// Lines more for each experiment, such as protocol.tries=4
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Leave out runs of more pairs of sites that know each other than this
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pairs_max: u64,

    /// The table; stdout if not given
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If a run fails.
pub(super) fn run(args: &ScaleBenchArgs) -> anyhow::Result<u8> {
    let table: Box<dyn Write> = match &args.out {
        Some(path) => Box::new(File::create(path).with_context(|| format!("write {}", path.display()))?),
        None => Box::new(io::stdout()),
    };
    let mut table = Table::from_writer(table);
    table.write_record(COLUMNS)?;
    in_folder(None, |folder| {
        for &seed in &args.seeds {
            for &sites in &args.sites {
                rows(args, folder, sites, seed, &mut table)?;
            }
        }
        Ok(exit::DONE)
    })
}

fn rows(
    args: &ScaleBenchArgs,
    folder: &Path,
    sites: u32,
    seed: u64,
    table: &mut Table,
) -> anyhow::Result<()> {
    let sizes: Vec<String> = PROCESSORS.iter().cycle().take(sites as usize).map(u32::to_string).collect();
    let (sizes, jobs) = (sizes.join(","), u64::from(sites) * u64::from(args.jobs));
    let (count, load, drawn) = (jobs.to_string(), args.load.to_string(), seed.to_string());
    let generate = ["trace", "generate", "--sites", &sizes, "--jobs", &count, "--load", &load];
    command(folder, &[&generate[..], &["--seed", &drawn, "--out", "jobs.swf"]].concat())?;
    for strategy in &args.strategy {
        let spec: scheduler::StrategySpec =
            strategy.parse().map_err(|error| anyhow!("--strategy {strategy}: {error}"))?;
        let has_views = !spec.ideal && spec.strategy.nature().views;
        let all = ["all".to_string()];
        for view in if has_views { &args.views[..] } else { &all } {
            let known = view.parse().map_or(u64::from(sites - 1), |view: u64| view.min(u64::from(sites - 1)));
            if has_views && known * u64::from(sites) > args.pairs_max {
                eprintln!("{sites} sites, {strategy}, view {view}: left out, of more pairs than --pairs-max");
                continue;
            }
            let shown = if view == "all" { "\"all\"" } else { view };
            let mut text = format!(
                "seed = {seed}\ngrid.sizes = [{sizes}]\nworkload.trace = \"jobs.swf\"\nworkload.origin = \"queue\"\nstrategy.name = \"{strategy}\"\n\
                 strategy.submit = \"origin\"\nnetwork.delay = \"{}\"\nprotocol.view = {shown}\n",
                args.delay
            );
            args.set.iter().for_each(|line| text += &format!("{line}\n"));
            fs::write(folder.join("experiment.toml"), text)?;
            let (took, memory) = simulate(folder)?;
            let text = fs::read_to_string(folder.join("out/metrics.json"))?;
            let metrics: Value = serde_json::from_str(&text)?;
            let of = |name: &str| -> anyhow::Result<f64> {
                metrics["metrics"][name].as_f64().with_context(|| format!("metrics.json has no {name}"))
            };
            ensure!(of("finished")? >= jobs as f64, "not all jobs ended");
            // Of a job on the mean: what it waited because a site with room did not know of it.
            let causes = metrics["waits"]["causes"].as_array();
            let blind = causes.into_iter().flatten().find(|cause| cause["cause"] == "blind");
            let blind = blind.and_then(|cause| cause["wait_s"].as_f64());
            let blind = blind.map(|wait| format!("{:.3}", wait / jobs as f64)).unwrap_or_default();
            let (requests, refusals) = (of("requests")?, of("refusals")?);
            let served =
                if requests > 0.0 { format!("{:.5}", 1.0 - refusals / requests) } else { String::new() };
            let per_job = |name: &str| anyhow::Ok(of(name)? / jobs as f64);
            table.write_record([
                sites.to_string(),
                jobs.to_string(),
                seed.to_string(),
                args.delay.clone(),
                args.load.to_string(),
                strategy.clone(),
                if has_views { view.clone() } else { String::new() },
                format!("{:.2}", took.as_secs_f64()),
                memory.to_string(),
                format!("{:.4}", per_job("messages")?),
                format!("{:.4}", per_job("requests")?),
                served,
                of("hops_max")?.to_string(),
                format!("{:.5}", of("stolen_share")?),
                format!("{:.3}", of("wait_mean_s")?),
                blind,
                format!("{:.4}", of("bounded_slowdown_mean")?),
                format!("{:.5}", of("ratio_best")?),
            ])?;
            table.flush()?;
        }
    }
    Ok(())
}

/// Simulates the experiment of a folder; how long that took, and the most memory that the process had, in megabytes.
fn simulate(folder: &Path) -> anyhow::Result<(Duration, u64)> {
    let program = std::env::current_exe().context("find this program")?;
    let said = folder.join("said");
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(["simulate", "experiment.toml", "--no-events", "--no-page", "--no-schedule", "--no-ideal"])
        .args(["--out", "out", "--replace"])
        // The log names each site in its head.
        .env("STEALGRID_MAX_HEADER", HEADER_MAX.to_string())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&said)?)
        .spawn()
        .context("run stealgrid simulate")?;
    let mut memory = 0;
    let status = loop {
        memory = memory.max(most_memory(&child).unwrap_or(0));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(LOOK);
    };
    if !status.success() {
        bail!("stealgrid simulate ended with {status}: {}", fs::read_to_string(said)?);
    }
    Ok((begun.elapsed(), memory / 1024))
}

/// The most memory that a process had so far, in kilobytes; none of one that has ended, or where there is no /proc.
fn most_memory(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    const DATA: &str = include_str!("../../../docs/data/scale.csv");
    const PAGE: &str = include_str!("../../../docs/SCALE.md");

    /// Sums of what was measured, and of how many seeds, by strategy, view and sites.
    type Sums = BTreeMap<(String, String, u32), BTreeMap<&'static str, (f64, f64)>>;

    fn sums() -> Sums {
        assert!(DATA.starts_with("# commit "), "the data do not say where they come from");
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(DATA.as_bytes());
        assert!(reader.headers().unwrap().iter().eq(super::COLUMNS), "the bench writes what is stored");
        let mut sums = Sums::new();
        for row in reader.records() {
            let row = row.unwrap();
            let of = |name: &str| &row[super::COLUMNS.iter().position(|column| *column == name).unwrap()];
            let key = (of("strategy").to_string(), of("view").to_string(), of("sites").parse().unwrap());
            for name in ["messages_per_job", "wait_mean_s", "seconds", "memory_mb"] {
                let sum = sums.entry(key.clone()).or_default().entry(name).or_default();
                *sum = (sum.0 + of(name).parse::<f64>().unwrap(), sum.1 + 1.0);
            }
        }
        sums
    }

    #[test]
    fn the_table_of_the_page_is_that_of_its_data() {
        let sums = sums();
        let rows: BTreeSet<(&str, &str)> =
            sums.keys().map(|(strategy, view, _)| (strategy.as_str(), view.as_str())).collect();
        assert!(rows.len() > 8, "{rows:?}");
        for (strategy, view) in rows {
            let mean = |sites: u32, name| {
                let of = sums.get(&(strategy.to_string(), view.to_string(), sites))?;
                let (sum, count): (f64, f64) = of[name];
                Some(sum / count)
            };
            let cell = |sites, name, digits: usize| {
                mean(sites, name).map_or("-".to_string(), |mean| format!("{mean:.digits$}"))
            };
            let of_sites = [100, 1_000, 10_000];
            let messages = of_sites.map(|sites| cell(sites, "messages_per_job", 1)).join(" | ");
            let waits = of_sites.map(|sites| cell(sites, "wait_mean_s", 0)).join(" | ");
            let largest = if mean(10_000, "seconds").is_some() { 10_000 } else { 1_000 };
            let (seconds, memory) = (cell(largest, "seconds", 0), cell(largest, "memory_mb", 0));
            let row = format!("| `{strategy}` | {view} | {messages} | {waits} | {seconds} | {memory} |");
            println!("{row}");
            assert!(PAGE.contains(&row), "docs/SCALE.md has no row: {row}");
        }
    }
}
