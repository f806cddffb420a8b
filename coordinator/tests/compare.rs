//! `stealgrid compare` as a user sees it: the same run is told from every other one, down to a microsecond and the
//! order of two events.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::PROGRAM;

const JOBS: usize = 120;

#[test]
fn the_same_run_twice_is_identical() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (simulated(folder.path(), "1", &[]), simulated(folder.path(), "2", &[]));
    let (code, output) = compare(&first, &second, &[]);
    assert_eq!(code, 0, "{output}");
    assert!(output.starts_with("Both are the same run, as far as they are compared.\n\n"), "{output}");
    assert!(output.contains("verdict: IDENTICAL job for job and event for event\n"), "{output}");
    assert!(output.contains(&format!("all {JOBS} the same in submission")), "{output}");

    let (code, output) = compare(&first, &second, &["--format", "json"]);
    assert_eq!(code, 0);
    let document: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(document["verdict"], "identical");
    assert_eq!(document["jobs"]["same"], JOBS);
}

#[test]
fn another_delay_is_a_different_run_and_the_table_says_by_how_much() {
    let folder = tempfile::tempdir().unwrap();
    let first = simulated(folder.path(), "1", &[]);
    let second = simulated(folder.path(), "2", &["--delay", "40s"]);
    let (code, output) = compare(&first, &second, &[]);
    assert_eq!(code, 5, "{output}");
    let answer: Vec<&str> = output.lines().take(3).collect();
    assert!(
        answer[0].starts_with("The runs differ: ") && answer[0].ends_with("at the same site and time."),
        "{output}"
    );
    assert!(answer[1].starts_with("In the second a job waits ") && answer[2].is_empty(), "{output}");
    for expected in
        ["verdict: DIFFERENT", "network     ", "first difference:", "wait_mean_s", "start at the same site"]
    {
        assert!(output.contains(expected), "{expected} in\n{output}");
    }
}

#[test]
fn logs_without_messages_or_without_events_are_compared_as_far_as_possible() {
    let folder = tempfile::tempdir().unwrap();
    let first = simulated(folder.path(), "1", &[]);
    let silent = folder.path().join("silent.toml");
    fs::write(&silent, "[outputs]\nmessage_events = false\n[grid]\nsizes = [4, 8, 96]\n").unwrap();
    let second = simulated(folder.path(), "2", &[silent.to_str().unwrap()]);
    let (code, output) = compare(&first, &second, &[]);
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("single messages left out"), "{output}");
    assert!(output.contains("outputs.message_events"), "{output}");

    let third = simulated(folder.path(), "3", &["--no-events"]);
    let (code, output) = compare(&first, &third, &[]);
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("IDENTICAL job for job; events were not compared"), "{output}");
    let (code, output) = compare(&first, &third, &["--events", "exact"]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("repeat the run without --no-events"), "{output}");
}

/// The mutant of events: two neighbors in the log change places.
#[test]
fn a_swapped_pair_of_events_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    let first = simulated(folder.path(), "1", &[]);

    let second = changed(&first, &folder.path().join("2"), |lines| {
        let place = lines
            .windows(2)
            .position(|pair| at(&pair[0]) == at(&pair[1]) && site(&pair[0]) == site(&pair[1]));
        let place = place.unwrap();
        lines.swap(place, place + 1);
    });
    let (code, output) = compare(&first, &second, &[]);
    assert_eq!(code, 5, "{output}");
    assert!(output.contains("all 120 the same in submission"), "{output}");
    assert_eq!(compare(&first, &second, &["--events", "order-per-site"]).0, 5);
    assert_eq!(compare(&first, &second, &["--events", "none"]).0, 0);

    let third = changed(&first, &folder.path().join("3"), |lines| {
        let place = lines
            .windows(2)
            .position(|pair| at(&pair[0]) == at(&pair[1]) && site(&pair[0]) != site(&pair[1]));
        let place = place.unwrap();
        lines.swap(place, place + 1);
    });
    let (code, output) = compare(&first, &third, &[]);
    assert_eq!(code, 5, "{output}");
    assert!(output.contains("--events order-per-site lets that pass"), "{output}");
    assert_eq!(compare(&first, &third, &["--events", "order-per-site"]).0, 0);
}

/// The mutant of jobs: one job starts a microsecond later.
#[test]
fn a_job_moved_by_a_microsecond_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    let first = simulated(folder.path(), "1", &[]);
    let second = changed(&first, &folder.path().join("2"), |_| {});
    let jobs = second.join("jobs.csv");
    let text = fs::read_to_string(&jobs).unwrap();
    let row = text.lines().nth(60).unwrap();
    let mut fields: Vec<String> = row.split(',').map(str::to_string).collect();
    assert!(fields[8].ends_with('0'), "starting_time of {row}");
    fields[8].pop();
    fields[8].push('1');
    fs::write(&jobs, text.replace(row, &fields.join(","))).unwrap();

    let (code, output) = compare(&first, &second, &[]);
    assert_eq!(code, 5, "{output}");
    assert!(output.contains("jobs that differ, by field: start 1"), "{output}");
    assert!(output.contains(&format!("job {}: start ", fields[0])), "{output}");
}

/// The mutant of files: a log that is cut off, inside a compressed block or between two lines.
#[test]
fn a_truncated_log_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    let first = simulated(folder.path(), "1", &[]);

    let second = changed(&first, &folder.path().join("2"), |lines| lines.truncate(lines.len() - 1));
    let (code, output) = compare(&first, &second, &[]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("its manifest says"), "{output}");
    assert!(output.contains("nothing more in the second"), "{output}");
    // Both cut off at the same place.
    assert_eq!(compare(&second, &second, &[]).0, 3);

    let third = changed(&first, &folder.path().join("3"), |_| {});
    let log = third.join("events.jsonl.zst");
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() / 2]).unwrap();
    let (code, output) = compare(&first, &third, &[]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("error: failed to read"), "{output}");

    let fourth = changed(&first, &folder.path().join("4"), |_| {});
    let jobs = fs::read_to_string(fourth.join("jobs.csv")).unwrap();
    let whole: Vec<&str> = jobs.lines().take(100).collect();
    fs::write(fourth.join("jobs.csv"), whole.join("\n") + "\n").unwrap();
    let (code, output) = compare(&first, &fourth, &[]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("21 jobs only in the first"), "{output}");
}

#[test]
fn runs_of_other_machines_are_never_identical_and_sites_are_matched_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let grid = |name: &str, sites: &str| {
        let file = folder.path().join(format!("{name}.toml"));
        fs::write(&file, format!("[grid]\nsites = [{sites}]\n")).unwrap();
        simulated(folder.path(), name, &[file.to_str().unwrap(), "--strategy", "local"])
    };
    let site = |name: &str, processors: u32| format!("{{ name = \"{name}\", processors = {processors} }}, ");
    let first = grid("1", &[site("a", 4), site("b", 8), site("c", 96)].concat());
    // No job needs the 97th processor: the schedules are the same.
    let larger = grid("2", &[site("a", 4), site("b", 8), site("c", 97)].concat());
    let (code, output) = compare(&first, &larger, &["--events", "none"]);
    assert_eq!(code, 5, "{output}");
    assert!(output.contains("sites       with other processors: c 96 | 97\n"), "{output}");
    assert!(output.contains(&format!("all {JOBS} the same in submission")), "{output}");

    // The same machines in another order have other numbers and run the same jobs.
    let turned = grid("3", &[site("c", 96), site("a", 4), site("b", 8)].concat());
    let (_, output) = compare(&first, &turned, &[]);
    assert!(output.contains("sites       the same in another order\n"), "{output}");
    assert!(output.contains("not compared: events: they name sites by number"), "{output}");
    assert!(output.contains(&format!("all {JOBS} the same in submission")), "{output}");

    let renamed = grid("4", &[site("a", 4), site("d", 8), site("c", 96)].concat());
    let (code, output) = compare(&first, &renamed, &[]);
    assert_eq!(code, 5, "{output}");
    assert!(
        output.contains("only in the first: b\n") && output.contains("only in the second: d\n"),
        "{output}"
    );
}

#[test]
fn jobs_that_had_not_ended_are_compared_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("left.toml");
    fs::write(&file, LEFT).unwrap();
    let out = folder.path().join("out");
    let run = Command::new(PROGRAM)
        .arg("simulate")
        .arg(&file)
        .args(["--no-page", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(4), "{}", String::from_utf8_lossy(&run.stderr));
    let ended = fs::read_to_string(out.join("jobs.csv")).unwrap().lines().count() as u64 - 1;

    let page = folder.path().join("page.html");
    let (code, output) = compare(&out, &out, &["--format", "json", "--page", page.to_str().unwrap()]);

    assert_eq!(code, 0, "{output}");
    let document: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(document["verdict"], "identical");
    assert_eq!(document["jobs"]["differing"], serde_json::json!({}));
    assert!(document["jobs"]["compared"].as_u64().unwrap() > ended, "{ended} ended, {output}");
    let drawn = fs::read_to_string(&page).unwrap();
    let from = drawn.find("id=\"runs\">").unwrap() + 10;
    let data: serde_json::Value =
        serde_json::from_str(drawn[from..].split("</script>").next().unwrap()).unwrap();
    // A job that waits at the end is in the queue until then.
    let waits = |row: &serde_json::Value| row[1] == -1 && row[2] == data["ends"][0];
    assert!(data["rows"].as_array().unwrap().iter().any(waits), "{data}");
}

/// The wide site is gone for good, and the other is too narrow for many jobs.
const LEFT: &str = include_str!("one_site_gone.toml");

/// Simulates the same jobs into a folder of this name; the first flag may be an experiment file.
fn simulated(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let out = folder.join(name);
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/traces/seven-sites.swf");
    let (count, out_flag) = (JOBS.to_string(), out.to_str().unwrap());
    let mut arguments = vec!["simulate", "--submit", "home"];
    let delay = ["--delay", "20s"];
    if !flags.contains(&"--delay") {
        arguments.extend(delay);
    }
    if !flags.iter().any(|flag| flag.ends_with(".toml")) {
        arguments.extend(["--sites", "4,8,96"]);
    }
    arguments.extend(["--no-page", "--count", &count]);
    arguments.extend(["--trace", trace.to_str().unwrap(), "--out", out_flag]);
    arguments.extend(flags);
    let run = Command::new(PROGRAM).args(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{arguments:?}\n{said}");
    out
}

/// A copy of a directory whose events were changed, line by line.
fn changed(from: &Path, to: &Path, change: impl FnOnce(&mut Vec<String>)) -> PathBuf {
    fs::create_dir_all(to).unwrap();
    for name in ["manifest.json", "metrics.json", "jobs.csv"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
    let log = fs::File::open(from.join("events.jsonl.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(log).unwrap()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    change(&mut lines);
    let text = lines.join("\n") + "\n";
    fs::write(to.join("events.jsonl.zst"), zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    to.to_path_buf()
}

fn at(line: &str) -> i64 {
    serde_json::from_str::<serde_json::Value>(line).unwrap()["at"].as_i64().unwrap()
}

fn site(line: &str) -> i64 {
    serde_json::from_str::<serde_json::Value>(line).unwrap()["site"].as_i64().unwrap()
}

/// Exit code and all output.
fn compare(first: &Path, second: &Path, flags: &[&str]) -> (i32, String) {
    let run = Command::new(PROGRAM).arg("compare").args([first, second]).args(flags).output().unwrap();
    let said = [run.stdout, run.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    // Long sentences go on in the next line, set in.
    let lines = said.lines().collect::<Vec<_>>();
    let joined =
        lines.into_iter().fold(String::new(), |text, line| match line.strip_prefix("              ") {
            Some(rest) if !rest.starts_with(' ') => format!("{} {rest}\n", text.trim_end()),
            _ => format!("{text}{line}\n"),
        });
    (run.status.code().unwrap(), joined)
}
