//! `stealgrid doctor`: whether this machine can do what runs ask of it, and what to do where it cannot.
//!
//! How fast a clock may be is not guessed: `run --calibrate-only` starts real nodes and measures their links, and timers are
//! measured beside it. The rule is that of [calibration](operation::run::calibration): what the machine adds to a delay stays
//! within a tenth of it.

use std::fmt::Write as _;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use experiments::exit;
use experiments::experiment::CALIBRATION_TOLERANCE;
use experiments::terminal::{columns, say};
use operation::run::calibration::{FLOOR, one_digit};
use outputs::table::{Table, folded};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

/// Sleeps that are timed.
const SLEEPS: usize = 200;
/// How long each is.
const SLEEP: Duration = Duration::from_millis(1);
/// The share of a configured delay that machine and network may add, as in `run`.
const TOLERANCE: f64 = CALIBRATION_TOLERANCE / 100.0;
/// Delays for which the fastest clock is given, in seconds of trace time.
const DELAYS: [u32; 3] = [1, 30, 300];
/// Open files below which a run of some dozens of nodes with its page is refused connections.
const FILES_MIN: u64 = 1024;
/// Free bytes below which results of a long run may not fit.
const DISK_MIN: u64 = 1 << 30;
/// Available bytes below which a quick start is at risk.
const MEMORY_MIN: u64 = 512 << 20;
/// How long another program may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(10);
/// A log of one job, for a run that only measures.
const ONE_JOB: &str = "; MaxProcs: 4\n1 0 -1 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1\n";
/// How long nodes may take to start and to measure their links.
const CALIBRATION_PATIENCE: Duration = Duration::from_secs(60);

/// Check whether this machine can do what runs ask of it: clock factors, files, disk, ports, other programs
///
/// Starts three nodes for some seconds to measure their links. Run it while nothing else runs: it tells what the machine can
/// keep to now.
///
/// Exit codes: 0 every run is possible (what is missing for optional parts is listed), 6 a run by the wall clock could not be measured.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    /// Runs work, within limits; or an optional part is missing.
    Note,
    /// Runs by the wall clock do not work.
    Problem,
}

#[derive(Clone, Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    found: String,
    /// What to do, where there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, found: String) -> Finding {
        Finding { check, verdict: Verdict::Ok, found, advice: None }
    }

    /// The verdict with its advice unless all is well.
    fn unless(self, is_well: bool, verdict: Verdict, advice: &str) -> Finding {
        if is_well {
            return self;
        }
        Finding { verdict, advice: Some(advice.to_string()), ..self }
    }
}

/// The fastest clock for a configured delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Factor {
    delay_s: u32,
    factor: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    version: String,
    findings: Vec<Finding>,
    /// Empty where the links could not be measured.
    clock_factors: Vec<Factor>,
}

/// Runs the command.
///
/// # Errors
/// If stdout is gone.
pub fn command(args: &DoctorArgs) -> anyhow::Result<u8> {
    let lateness = lateness();
    let mut report = Report {
        version: outputs::version(),
        findings: vec![cores(), timers(lateness)],
        clock_factors: Vec::new(),
    };
    match one_way() {
        Ok(one_way) => {
            report.clock_factors = factors(one_way.max(lateness.tail));
            report.findings.push(clock(one_way, &report.clock_factors, is_busy()));
        }
        Err(error) => report.findings.push(Finding {
            check: "clock",
            verdict: Verdict::Problem,
            found: format!("links of three nodes could not be measured: {error:#}"),
            advice: Some("see whether `stealgrid run configs/quickstart.toml` says more".to_string()),
        }),
    }
    report.findings.extend([files(), memory(), disk(), ports(), proc()]);
    report.findings.extend(OTHERS.iter().map(Other::finding));
    let is_well = report.findings.iter().all(|finding| finding.verdict != Verdict::Problem);
    let text = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { shown(&report) };
    say(&text)?;
    Ok(if is_well { exit::DONE } else { exit::NOT_MEASURED })
}

fn shown(report: &Report) -> String {
    let mut table = Table::new(["check", "", "found"]).with_left(1).with_left(2).within(columns());
    for finding in &report.findings {
        let verdict = match finding.verdict {
            Verdict::Ok => "ok",
            Verdict::Note => "note",
            Verdict::Problem => "PROBLEM",
        };
        table.push([finding.check, verdict, &finding.found]);
    }
    let mut text = table.text();
    for finding in &report.findings {
        if let Some(advice) = &finding.advice {
            let _ = write!(text, "\n{}", folded(&format!("{}: {advice}", finding.check), columns()));
        }
    }
    text + "\n"
}

/// How much later than asked sleeps end, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lateness {
    median: f64,
    /// Of 99 in 100 at most.
    tail: f64,
}

fn lateness() -> Lateness {
    let one = |_| {
        let begun = Instant::now();
        std::thread::sleep(SLEEP);
        begun.elapsed().saturating_sub(SLEEP).as_secs_f64()
    };
    let mut late: Vec<f64> = (0..SLEEPS).map(one).collect();
    late.sort_by(f64::total_cmp);
    Lateness { median: late[SLEEPS / 2], tail: late[SLEEPS * 99 / 100] }
}

/// The one-way delay that network and nodes add, in seconds of wall time: half of the slowest link's median round trip.
fn one_way() -> anyhow::Result<f64> {
    let folder = std::env::temp_dir().join(format!("stealgrid-doctor-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let log = folder.join("one.swf");
    let measure = || {
        std::fs::write(&log, ONE_JOB).with_context(|| format!("failed to write {}", log.display()))?;
        let program = std::env::current_exe().context("failed to find this program")?;
        let mut command = Command::new(program);
        command.args([
            "run",
            "--sites",
            "4,4,4",
            "--strategy",
            "st:50",
            "--delay",
            "1h",
            "--clock",
            "scaled:1",
        ]);
        command.args(["--calibrate-only", "--format", "json", "--trace"]).arg(&log);
        asked(command.arg("--out").arg(folder.join("out")), CALIBRATION_PATIENCE)
    };
    let said = measure();
    // What is left of it is of no use to anybody, and its name is our own.
    let _ = std::fs::remove_dir_all(&folder);
    slowest(&said?)
}

/// Half of the largest median round trip in the JSON of `run --calibrate-only`, in seconds.
fn slowest(json: &str) -> anyhow::Result<f64> {
    let measured: serde_json::Value = serde_json::from_str(json).context("failed to read the calibration")?;
    let links = measured["links"].as_array().context("the calibration has no links")?;
    let trips = links.iter().filter_map(|link| link["rtt_p50_wall_s"].as_f64());
    trips.reduce(f64::max).map(|most| most / 2.0).context("no link was measured")
}

/// The fastest clock for each delay where every message is so many seconds of wall time late: what is added stays within
/// [`TOLERANCE`], or within what never matters. To one digit, rounded down.
fn factors(added: f64) -> Vec<Factor> {
    let of_delay = |delay_s: u32| {
        let allowed = (f64::from(delay_s) * TOLERANCE).max(FLOOR.as_secs_f64());
        Factor { delay_s, factor: one_digit((allowed / added.max(1e-6)).max(1.0)) as u64 }
    };
    DELAYS.into_iter().map(of_delay).collect()
}

/// Cores of this machine.
fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many processes computed in the last minute, on average.
fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Whether more computes than there are cores: then single messages of a run are late whatever idle nodes do.
fn is_busy() -> bool {
    load().is_some_and(|load| load > count() as f64)
}

fn cores() -> Finding {
    let (cores, load) = (count(), load());
    let said = load.map_or_else(|| "its load is not known".to_string(), |load| format!("load {load:.1}"));
    let is_idle = load.is_none_or(|load| load <= cores as f64 / 2.0);
    let advice = "other programs compute: a run by the wall clock may end NOT MEASURED; wait for them, or use a slower clock";
    Finding::ok("cores", format!("{cores}, {said}")).unless(is_idle, Verdict::Note, advice)
}

fn timers(lateness: Lateness) -> Finding {
    let [median, tail] = [lateness.median, lateness.tail].map(|seconds| seconds * 1e3);
    let found = format!("{median:.2} ms late in the median, {tail:.2} ms in 1 of 100");
    let advice = "timers are late: use slower clocks, or a machine with fewer programs";
    Finding::ok("timers", found).unless(tail <= 10.0, Verdict::Note, advice)
}

fn clock(one_way: f64, factors: &[Factor], is_busy: bool) -> Finding {
    let of_delay = |factor: &Factor| format!("{} s is kept up to scaled:{}", factor.delay_s, factor.factor);
    let list: Vec<String> = factors.iter().map(of_delay).collect();
    let found = format!(
        "links between nodes add {:.2} ms: with links and timers as they are, a delay of {}",
        one_way * 1e3,
        list.join(", ")
    );
    let advice = "a delay of 30 s is kept at less than 100 times the wall clock only; use --clock virtual, or a quieter machine";
    let is_well = factors.iter().any(|factor| factor.delay_s >= 30 && factor.factor >= 100);
    let busy = "measured between idle nodes on a busy machine: single messages of a run will be later; measure again when it is quiet";
    Finding::ok("clock", found).unless(!is_busy, Verdict::Note, busy).unless(is_well, Verdict::Note, advice)
}

fn files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let said = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_string(), |limit| limit.to_string());
    let found = format!("{} open at once, at most {}", said(limit.current), said(limit.maximum));
    let is_well = limit.current.is_none_or(|limit| limit >= FILES_MIN);
    Finding::ok("files", found).unless(
        is_well,
        Verdict::Note,
        "raise it before runs of many nodes: ulimit -n 4096",
    )
}

fn memory() -> Finding {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = available.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let Some(bytes) = kilobytes.map(|kilobytes| kilobytes * 1024) else {
        return Finding::ok("memory", "not known".to_string());
    };
    let found = format!("{:.1} GB available", bytes as f64 / 1e9);
    Finding::ok("memory", found).unless(
        bytes >= MEMORY_MIN,
        Verdict::Note,
        "end other programs, or run fewer nodes",
    )
}

fn disk() -> Finding {
    match rustix::fs::statvfs(".") {
        Ok(disk) => {
            let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
            let found = format!("{:.1} GB free in this directory", bytes as f64 / 1e9);
            Finding::ok("disk", found).unless(
                bytes >= DISK_MIN,
                Verdict::Note,
                "write results elsewhere: --out DIR",
            )
        }
        Err(error) => Finding::ok("disk", format!("not known: {error}")),
    }
}

/// Whether programs may listen on the loopback interface at all; which ports are taken matters only where one is asked for.
fn ports() -> Finding {
    match TcpListener::bind("127.0.0.1:0") {
        Ok(_) => Finding::ok("ports", "programs may listen on 127.0.0.1".to_string()),
        Err(error) => Finding {
            check: "ports",
            verdict: Verdict::Problem,
            found: format!("no program may listen on 127.0.0.1: {error}"),
            advice: Some(
                "nodes talk over the loopback interface: bring it up (ip link set lo up), or simulate"
                    .to_string(),
            ),
        },
    }
}

fn proc() -> Finding {
    let is_here = Path::new("/proc/self/stat").exists();
    let found = if is_here { "mounted" } else { "not mounted" };
    let advice = "chaos, attach and measures of memory need it: mount -t proc proc /proc";
    Finding::ok("/proc", found.to_string()).unless(is_here, Verdict::Note, advice)
}

/// A program that an optional part needs.
struct Other {
    check: &'static str,
    /// Commands, of which the first that works is enough.
    commands: &'static [&'static [&'static str]],
    needed_for: &'static str,
}

const OTHERS: [Other; 5] = [
    Other {
        check: "docker",
        commands: &[&["docker", "info", "--format", "{{.ServerVersion}}"], &["podman", "--version"]],
        needed_for: "docker compose up, .ci/compose",
    },
    Other {
        check: "slurm",
        commands: &[&["sbatch", "--version"]],
        needed_for: "sweep --workers slurm, jobs by slurm",
    },
    Other {
        check: "kubernetes",
        commands: &[&["kubectl", "version", "--client"]],
        needed_for: "sweep --workers kubernetes",
    },
    Other {
        check: "browser",
        commands: &[
            &["xdg-open", "--version"],
            &["chromium", "--version"],
            &["firefox", "--version"],
            &["google-chrome", "--version"],
        ],
        needed_for: "pages and stealgrid play on this machine",
    },
    Other {
        check: "python",
        commands: &[&["python3", "--version"]],
        needed_for: "the Python package and strategies in Python",
    },
];

impl Other {
    fn finding(&self) -> Finding {
        let answer = |words: &&[&str]| asked(Command::new(words[0]).args(&words[1..]), PATIENCE).ok();
        let first = |said: String| said.lines().next().unwrap_or_default().trim().to_string();
        match self.commands.iter().find_map(answer).map(first) {
            Some(said) => Finding::ok(self.check, said),
            None => Finding {
                check: self.check,
                verdict: Verdict::Note,
                found: "not found, or it does not answer".to_string(),
                advice: Some(format!("needed only for {}", self.needed_for)),
            },
        }
    }
}

/// What a program prints; it is ended where it takes longer.
fn asked(command: &mut Command, patience: Duration) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("failed to start {name}"))?;
    let read = |stream: Option<Box<dyn std::io::Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // What was said until then is enough.
            let _ = stream.map(|mut stream| stream.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let said = read(child.stdout.take().map(|stream| Box::new(stream) as _));
    let complained = read(child.stderr.take().map(|stream| Box::new(stream) as _));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("{name} gave no answer within {} s", patience.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = said.join().unwrap_or_default();
    if !status.success() {
        let complained = complained.join().unwrap_or_default();
        anyhow::bail!("{name} ended with {status}: {}", complained.trim());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_stays_within_a_tenth_of_the_delay() {
        // 2 ms: a tenth of 1 s is 50 times as much, of 30 s 1,500 times, of 5 min 15,000 times.
        let found = factors(0.002);
        assert_eq!(found.iter().map(|factor| factor.factor).collect::<Vec<_>>(), [50, 1000, 10_000]);
        for Factor { delay_s, factor } in found {
            assert!(0.002 * factor as f64 <= f64::from(delay_s) * TOLERANCE);
        }
        // No clock is slower than the wall's.
        assert!(factors(1e9).iter().all(|factor| factor.factor == 1));
    }

    #[test]
    fn the_slowest_link_decides() {
        let json = r#"{"links": [{"rtt_p50_wall_s": 0.002}, {"rtt_p50_wall_s": 0.006}]}"#;
        assert_eq!(slowest(json).unwrap(), 0.003);
        assert!(slowest(r#"{"links": []}"#).unwrap_err().to_string().contains("no link"));
        assert!(slowest("nothing").is_err());
    }

    #[test]
    fn a_program_that_does_not_answer_is_ended() {
        let begun = Instant::now();
        let error = asked(Command::new("sleep").arg("60"), Duration::from_millis(200)).unwrap_err();
        assert!(error.to_string().contains("gave no answer within"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(asked(&mut Command::new("stealgrid-has-no-such-program"), PATIENCE).is_err());
        assert_eq!(asked(Command::new("echo").arg("here"), PATIENCE).unwrap(), "here\n");
    }

    #[test]
    fn advice_is_given_where_something_is_wrong() {
        let finding = timers(Lateness { median: 0.001, tail: 0.5 });
        assert_eq!(finding.verdict, Verdict::Note);
        let report = Report { version: "0".to_string(), findings: vec![finding], clock_factors: Vec::new() };
        let text = shown(&report);
        assert!(text.contains("500.00 ms in 1 of 100") && text.contains("timers: timers are late"), "{text}");
    }
}
