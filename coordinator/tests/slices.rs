//! Parts of a log through the program: the numbers of a slice are those of its jobs, whatever the log calls time 0.
//!
//! What the program says is compared with a second computation from `jobs.csv`, which shares no code with it and is as
//! naive as can be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::PROGRAM;

/// Half-width of agreement, relative: times are exact to the microsecond, bounds are rounded up to it.
const NEAR: f64 = 1e-6;
const DAY: f64 = 86_400.0;

#[test]
fn the_numbers_of_a_real_week_are_those_of_its_jobs() {
    let log = "traces/KTH-SP2-1996-2.1-cln.swf.gz";
    let Some(log) = stealgrid_tests::shared(log) else { return };
    let folder = tempfile::tempdir().unwrap();
    for week in ["1", "20", "40"] {
        let slice = ["--sites", "25,25,50,100", "--strategy", "local", "--week", week];
        let found = simulate(folder.path(), &log, &slice);
        let jobs = agrees(&found, &[25, 25, 50, 100]);
        assert!(jobs > 100, "{jobs} jobs in week {week}");
        let last = found.jobs.iter().map(|job| job.submit).fold(0.0, f64::max);
        assert!(
            found.first() >= 0.0 && last < 7.0 * DAY + 3600.0,
            "week {week}: {} to {last}",
            found.first()
        );
        // A week with an idle first third, as it seemed when months before it counted, would be far below.
        assert!(found.metric("utilization") > 0.1, "{}", found.metric("utilization"));

        let kept = simulate(folder.path(), &log, &[&slice[..], &["--keep-times"]].concat());
        agrees(&kept, &[25, 25, 50, 100]);
        let begun = kept.first() - found.first();
        assert!(begun > 6.0 * DAY, "time 0 is that of the log: {begun}");
        same_but_for_time_0(&found, &kept);
    }
    let (code, said) =
        run(&log, &["--sites", "100", "--week", "99", "--out", path(&folder.path().join("none"))]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("there is no job in week 99; the log has jobs in weeks 1 to 48"), "{said}");
}

#[test]
fn the_numbers_of_a_part_of_the_shipped_log_are_those_of_its_jobs() {
    let log = shipped();
    let folder = tempfile::tempdir().unwrap();
    let sizes = [8, 16, 24, 32, 48, 64, 96];
    let grid = ["--sites", "8,16,24,32,48,64,96", "--origin", "queue"];
    for (slice, begins) in [
        (&["--from", "30h"][..], 30.0 * 3600.0),
        (&["--from", "30h", "--until", "40h", "--week", "1"], 30.0 * 3600.0),
        (&["--week", "1", "--days", "tue-wed"], 0.0),
        (&["--count", "300"], 0.0),
        (&[], 0.0),
    ] {
        for strategy in [&["--strategy", "local"][..], &["--delay", "5s"]] {
            let flags = [&grid[..], slice, strategy].concat();
            let found = simulate(folder.path(), &log, &flags);
            assert!(agrees(&found, &sizes) >= 250, "{flags:?}");
            if strategy[0] != "--strategy" {
                // One stealing run is enough; its messages travel at times that do not depend on time 0 either.
                continue;
            }
            let kept = simulate(folder.path(), &log, &[&flags[..], &["--keep-times"]].concat());
            assert!((kept.first() - found.first() - begins).abs() < NEAR, "{flags:?}");
            same_but_for_time_0(&found, &kept);
        }
    }
}

#[test]
fn the_makespan_is_the_same_wherever_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let grid =
        ["--sites", "8,16,24,32,48,64,96", "--origin", "queue", "--strategy", "local", "--from", "30h"];
    let found = simulate(folder.path(), &shipped(), &grid);
    let makespan = found.metric("makespan_s");
    let (millions, thousands, ones) = {
        let whole = makespan.round() as u64;
        (whole / 1_000_000, whole / 1000 % 1000, whole % 1000)
    };
    let shown = match millions {
        0 => format!("{thousands},{ones:03} s"),
        _ => format!("{millions},{thousands:03},{ones:03} s"),
    };
    let line = found.said.lines().find(|line| line.starts_with("makespan ")).unwrap().to_string();
    assert!(line.contains(&shown), "{line} and {shown}");
    let unfolded = found.said.replace("\n  ", " ");
    assert!(unfolded.contains("count from the first submission, at "), "{}", found.said);
    let page = fs::read_to_string(found.out.join("report.html")).unwrap();
    assert!(page.contains(&shown) && page.contains("count from the first submission, at "));
    let line = found.said.lines().find(|line| line.starts_with("lower bound ")).unwrap();
    assert!(line.contains(&format!(" {shown} ")), "{line} and {shown}");
    let theory = found.metrics["theory"].as_array().unwrap();
    let bound = theory.iter().find(|one| one["name"] == "lower bound").unwrap();
    assert!((bound["measured"].as_f64().unwrap() - makespan).abs() < NEAR, "{bound}");
}

#[test]
fn a_converted_slice_begins_at_time_0_and_is_still_on_its_weekdays() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.swf");
    // Tuesday 2 July 2002 at 06:00 in Greenwich, and a job at noon of each of 20 days.
    let noon = |day: i64| day * 86_400 + 6 * 3600;
    let mut text = "; UnixStartTime: 1025589600\n; MaxProcs: 8\n".to_string();
    for day in 0..20 {
        text += &format!("{} {} -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 1 -1 -1\n", day + 1, noon(day));
    }
    fs::write(&log, text).unwrap();
    let convert = |flags: &[&str]| {
        let out = folder.path().join(format!("part{}.swf", flags.concat()));
        let args = ["trace", "convert", path(&log), "--to", "swf", "--out", path(&out)];
        let output = Command::new(PROGRAM).args(args).args(flags).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    };
    let submits = |log: &Path| -> Vec<i64> {
        let text = fs::read_to_string(log).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with(';'));
        rows.map(|line| line.split_whitespace().nth(1).unwrap().parse().unwrap()).collect()
    };
    let of_week: Vec<i64> = (0..7).map(|day| day * 86_400 + 12 * 3600).collect();

    let week = convert(&["--week", "1"]);
    assert_eq!(submits(&week), of_week);
    assert!(fs::read_to_string(&week).unwrap().contains("; UnixStartTime: 1026086400\n"), "Monday 8 July");
    let kept: Vec<i64> = (6..13).map(noon).collect();
    assert_eq!(submits(&convert(&["--week", "1", "--keep-times"])), kept);
    let from = convert(&["--from", "345600"]);
    assert_eq!(submits(&from)[..2], [6 * 3600, noon(1)], "four days on");

    // The week of a week is the same, so is what weekdays it has.
    fs::rename(&week, &log).unwrap();
    assert_eq!(submits(&convert(&["--week", "1"])), of_week);
    assert_eq!(submits(&convert(&["--weekdays", "tue"])), of_week[1..2]);
}

#[test]
fn a_part_in_a_sweep_begins_at_time_0_without_further_settings() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.swf");
    let mut text = "; MaxProcs: 8\n".to_string();
    for hour in 0..21 * 24 {
        text += &format!("{} {} -1 600 2 -1 -1 2 900 -1 1 1 1 -1 1 1 -1 -1\n", hour + 1, hour * 3600 + 90);
    }
    fs::write(&log, text).unwrap();
    let sweep = folder.path().join("weeks.toml");
    let text = "[experiment.grid]\nsizes = [4, 8]\n[experiment.workload]\ntrace = \"log.swf\"\n\
                [experiment.strategy]\nname = \"local\"\n[parameters]\n\"workload.week\" = [1, 3]\n";
    fs::write(&sweep, text).unwrap();
    let out = folder.path().join("out");
    let output = Command::new(PROGRAM).args(["sweep", path(&sweep), "--out", path(&out)]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let csv = folder.path().join("all.csv");
    let args = ["export", path(&out), "--format", "csv", "--out", path(&csv)];
    let output = Command::new(PROGRAM).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let csv = fs::read_to_string(csv).unwrap();
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 2, "{csv}");
    // Work of 168 jobs of 1,200 processor-seconds, from 90 s on until ten minutes past the last hour.
    let (span, work) = (167.0 * 3600.0 + 600.0, 168.0 * 1200.0);
    for row in rows {
        let of = |name: &str| -> f64 {
            row[names.iter().position(|other| *other == name).unwrap()].parse().unwrap()
        };
        assert!((of("first_submission_s") - 90.0).abs() < NEAR, "{csv}");
        assert!((of("makespan_s") - span).abs() < NEAR, "{csv}");
        assert!((of("utilization") - work / span / 12.0).abs() < NEAR, "{csv}");
    }
}

/// A row of `jobs.csv` that ended.
struct Job {
    id: String,
    submit: f64,
    size: f64,
    run_time: f64,
    end: f64,
    wait: f64,
}

/// What a simulation left.
struct Found {
    out: PathBuf,
    said: String,
    metrics: Value,
    jobs: Vec<Job>,
}

impl Found {
    fn metric(&self, name: &str) -> f64 {
        self.metrics["metrics"][name].as_f64().unwrap_or_else(|| panic!("no {name}"))
    }

    fn first(&self) -> f64 {
        self.jobs.iter().map(|job| job.submit).fold(f64::INFINITY, f64::min)
    }
}

fn run(log: &Path, flags: &[&str]) -> (i32, String) {
    let args = ["simulate", "--trace", path(log), "--no-events", "--no-schedule", "--no-ideal"];
    let Output { status, stdout, stderr } = Command::new(PROGRAM).args(args).args(flags).output().unwrap();
    let said = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
    (status.code().unwrap(), said)
}

fn simulate(folder: &Path, log: &Path, flags: &[&str]) -> Found {
    let out = folder.join("out");
    if out.exists() {
        fs::remove_dir_all(&out).unwrap();
    }
    let (code, said) = run(log, &[flags, &["--out", path(&out)]].concat());
    assert_eq!(code, 0, "{said}");
    let metrics = serde_json::from_slice(&fs::read(out.join("metrics.json")).unwrap()).unwrap();
    let jobs = fs::read_to_string(out.join("jobs.csv")).unwrap();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |place: usize| -> f64 { fields[place].parse().unwrap() };
        Job {
            id: fields[0].to_string(),
            submit: number(3),
            size: number(4),
            run_time: number(9),
            end: number(10),
            wait: number(11),
        }
    };
    Found { said, metrics, jobs: jobs.lines().skip(1).map(row).collect(), out }
}

/// Makespan, utilization, throughput and ratios are those of the jobs, which are counted.
fn agrees(found: &Found, sizes: &[u32]) -> usize {
    let jobs = &found.jobs;
    let first = found.first();
    let makespan = jobs.iter().map(|job| job.end).fold(f64::NEG_INFINITY, f64::max) - first;
    let work: f64 = jobs.iter().map(|job| job.size * job.run_time).sum();
    let processors: f64 = sizes.iter().copied().map(f64::from).sum();
    let time = jobs.iter().map(|job| job.submit + job.run_time - first).fold(0.0, f64::max);
    let expected = [
        ("first_submission_s", first),
        ("makespan_s", makespan),
        ("utilization", work / (makespan * processors)),
        ("throughput_per_s", jobs.len() as f64 / makespan),
        ("ratio_thesis", makespan / time.max(work / processors)),
        ("ratio_best", makespan / time.max(least_length(jobs, sizes, first))),
    ];
    for (name, expected) in expected {
        let measured = found.metric(name);
        let off = (measured - expected).abs() / expected.abs().max(1.0);
        assert!(off < NEAR, "{name} is {measured}, and by jobs.csv {expected}");
    }
    jobs.len()
}

/// The greater of both other bounds, by trying every submission time and every width: area, and slots of a width.
fn least_length(jobs: &[Job], sizes: &[u32], first: f64) -> f64 {
    let mut widths: Vec<f64> = jobs.iter().map(|job| job.size).collect();
    widths.sort_by(f64::total_cmp);
    widths.dedup();
    let mut best: f64 = 0.0;
    for &width in &widths {
        // Sites below the home of jobs of this width hold none of them.
        let wide: f64 = sizes.iter().copied().map(f64::from).filter(|size| *size >= width).sum();
        let slots: f64 = sizes.iter().map(|size| (f64::from(*size) / width).floor()).sum();
        let counted: Vec<&Job> = jobs.iter().filter(|job| job.size >= width).collect();
        for from in &counted {
            let since = counted.iter().filter(|job| job.submit >= from.submit);
            let (work, time) = since
                .fold((0.0, 0.0), |(work, time), job| (work + job.size * job.run_time, time + job.run_time));
            best = best.max(from.submit - first + (work / wide).max(time / slots));
        }
    }
    best
}

/// Two runs of the same jobs, one of them later: no number but the time of the first submission differs.
fn same_but_for_time_0(found: &Found, kept: &Found) {
    let without = |found: &Found| {
        let mut metrics = found.metrics["metrics"].as_object().unwrap().clone();
        metrics.remove("first_submission_s").unwrap();
        metrics
    };
    assert_eq!(without(found), without(kept));
    assert_eq!(found.metrics["bounds"], kept.metrics["bounds"]);
    let later = kept.first() - found.first();
    assert_eq!(found.jobs.len(), kept.jobs.len());
    for (job, other) in found.jobs.iter().zip(&kept.jobs) {
        assert_eq!(job.id, other.id);
        assert!((other.submit - job.submit - later).abs() < NEAR && (other.wait - job.wait).abs() < NEAR);
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/traces/seven-sites.swf")
}
