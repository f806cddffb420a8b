//! `stealgrid genetic` as others script against it: what it writes can be computed again from the log and the rows alone.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::PROGRAM;

/// Not in order of size.
const SITES: [u32; 4] = [16, 4, 64, 8];
const BATCHES: usize = 2;
const SIZE: usize = 60;
const ALL: &str = "a1,a2,a3,a4,b1,b2,b3,b4,C1,c2,c3,spt,laf,random";

fn trace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/traces/seven-sites.swf")
}

/// With what the flags do not say as the tests have it.
fn command(out: &Path, flags: &[&str]) -> Command {
    let sites = SITES.map(|size| size.to_string()).join(",");
    let (batches, size, trace) = (BATCHES.to_string(), SIZE.to_string(), trace());
    let mut command = Command::new(PROGRAM);
    command.arg("genetic").arg("--out").arg(out).args(flags);
    for (flag, value) in [
        ("--sites", sites.as_str()),
        ("--batches", &batches),
        ("--size", &size),
        ("--population", "12"),
        ("--trace", trace.to_str().unwrap()),
        ("--algorithms", "a1"),
    ] {
        if !flags.contains(&flag) {
            command.args([flag, value]);
        }
    }
    command
}

fn run(out: &Path, flags: &[&str]) -> Output {
    command(out, flags).output().unwrap()
}

fn entries(out: &Path) -> Vec<Value> {
    serde_json::from_str(&std::fs::read_to_string(out.join("rows.json")).unwrap()).unwrap()
}

/// Number, width and requested time in seconds of the jobs of each batch, from the columns of the log.
fn batches() -> Vec<BTreeMap<u64, (u32, u64)>> {
    let text = std::fs::read_to_string(trace()).unwrap();
    let mut jobs: Vec<[i64; 4]> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with(';')) {
        let columns: Vec<i64> = line.split_whitespace().map(|cell| cell.parse().unwrap()).collect();
        let [number, submit, run_time, width, requested] = [0, 1, 3, 7, 8].map(|place| columns[place]);
        if run_time > 0 && width <= 64 {
            jobs.push([submit, number, width, requested]);
        }
    }
    jobs.sort_unstable();
    let job = |&[_, number, width, requested]: &[i64; 4]| (number as u64, (width as u32, requested as u64));
    jobs.chunks(SIZE).take(BATCHES).map(|batch| batch.iter().map(job).collect()).collect()
}

/// Ends of the jobs of a row under EASY, second by second and obviously right.
fn ends(size: u32, row: &[(u32, u64)]) -> Vec<u64> {
    let (mut ends, mut now): (Vec<Option<u64>>, u64) = (vec![None; row.len()], 0);
    while ends.contains(&None) {
        let free_at = |ends: &[Option<u64>], time: u64| {
            let runs =
                |(end, job): (&Option<u64>, &(u32, u64))| end.filter(|&end| end > time).map_or(0, |_| job.0);
            size - ends.iter().zip(row).map(runs).sum::<u32>()
        };
        let mut waiting: Vec<usize> = (0..row.len()).filter(|&place| ends[place].is_none()).collect();
        while let Some(&head) = waiting.first().filter(|&&head| row[head].0 <= free_at(&ends, now)) {
            ends[head] = Some(now + row[head].1);
            waiting.remove(0);
        }
        if let Some(&head) = waiting.first() {
            let fits = |time: &u64| free_at(&ends, *time) >= row[head].0;
            let shadow = ends.iter().flatten().copied().filter(|&end| end > now).filter(fits).min().unwrap();
            for &place in &waiting[1..] {
                let (width, requested) = row[place];
                let harmless = now + requested <= shadow || free_at(&ends, shadow) >= row[head].0 + width;
                if width <= free_at(&ends, now) && harmless {
                    ends[place] = Some(now + requested);
                }
            }
        }
        now = ends.iter().flatten().copied().filter(|&end| end > now).min().unwrap_or(now);
    }
    ends.into_iter().flatten().collect()
}

#[test]
fn another_program_finds_the_same_numbers_by_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = run(&out, &["--algorithms", ALL, "--generations-max", "8", "--seed", "5"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (batches, entries) = (batches(), entries(&out));
    let names: Vec<&str> = entries.iter().map(|entry| entry["algorithm"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), [ALL, ALL].join(","));
    for (place, entry) in entries.iter().enumerate() {
        let number = place / 14;
        assert_eq!((entry["batch"].as_u64(), entry["seed"].as_u64()), (Some(number as u64 + 1), Some(5)));
        let batch = &batches[number];
        let rows: Vec<Vec<u64>> = serde_json::from_value(entry["rows"].clone()).unwrap();
        assert_eq!(rows.len(), SITES.len());
        let mut all: Vec<u64> = rows.iter().flatten().copied().collect();
        all.sort_unstable();
        assert!(all.iter().eq(batch.keys()), "each job of the batch has one place");
        let (mut makespan, mut sums) = (0, [0.0; 3]);
        for (row, &size) in rows.iter().zip(&SITES) {
            let jobs: Vec<(u32, u64)> = row.iter().map(|job| batch[job]).collect();
            assert!(jobs.iter().all(|job| job.0 <= size), "a job does not fit its site");
            for (end, (_, requested)) in ends(size, &jobs).into_iter().zip(jobs) {
                makespan = makespan.max(end);
                let values = [end as f64, end as f64 / requested as f64, (end - requested) as f64];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
        }
        let [turnaround, response, wait] = sums.map(|sum| sum / SIZE as f64);
        let work: u64 = batch.values().map(|&(width, requested)| u64::from(width) * requested).sum();
        let longest = batch.values().map(|job| job.1).max().unwrap();
        let bound = (longest as f64).max(work as f64 / f64::from(SITES.iter().sum::<u32>()));
        for (key, expected) in [
            ("makespan_s", makespan as f64),
            ("turnaround_s", turnaround),
            ("response_ratio", response),
            ("wait_s", wait),
            ("lower_bound_s", bound),
        ] {
            let found = entry[key].as_f64().unwrap();
            assert!(
                (found - expected).abs() <= 1e-9 * expected,
                "{} {key}: {found} {expected}",
                names[place]
            );
        }
        let is_greedy = entry["evaluations"] == 1;
        assert_eq!(is_greedy, ["a1", "a2", "a3", "a4", "spt", "laf"].contains(&names[place]));
        assert!(entry["generations"].as_u64().unwrap() <= 8);
    }
    let of = |place: usize| entries[place]["evaluations"].as_u64().unwrap();
    assert_eq!(of(13), (4..11).map(of).max().unwrap(), "random search has as many as who had most");
}

const CRITERIA: [&str; 4] = ["makespan_s", "turnaround_s", "response_ratio", "wait_s"];

/// The share of random points of the unit cube that some point is below.
fn sampled(points: &[[f64; 4]]) -> f64 {
    let mut state: u64 = 1;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let draws = 40_000;
    let is_below =
        |sample: [f64; 4]| points.iter().any(|point| point.iter().zip(sample).all(|(a, b)| *a <= b));
    (0..draws).filter(|_| is_below([(); 4].map(|()| uniform()))).count() as f64 / f64::from(draws)
}

#[test]
fn a_front_has_members_of_which_none_is_better_and_says_where_the_others_are() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let flags = ["--algorithms", "a1,c1,spt,nsga2", "--population", "60", "--seed", "3"];
    let output = run(&out, &flags);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let fronts: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(out.join("fronts.json")).unwrap()).unwrap();
    let entries = entries(&out);
    let values = |object: &Value| CRITERIA.map(|key| object[key].as_f64().unwrap());
    let better = |one: &[f64; 4], other: &[f64; 4]| {
        let (no_worse, less) =
            (one.iter().zip(other).all(|(a, b)| a <= b), one.iter().zip(other).any(|(a, b)| a < b));
        no_worse && less
    };
    assert_eq!(fronts.len(), BATCHES);
    for (number, front) in fronts.iter().enumerate() {
        let members: Vec<[f64; 4]> = front["members"].as_array().unwrap().iter().map(values).collect();
        assert!(members.len() > 1 && members.is_sorted_by(|one, other| one[0] <= other[0]));
        assert!(members.iter().all(|one| !members.iter().any(|other| better(other, one))));
        let maxima = values(&front["maxima"]);
        let scaled = |point: &[f64; 4]| std::array::from_fn(|place| point[place] / maxima[place]);
        let share = sampled(&members.iter().map(scaled).collect::<Vec<[f64; 4]>>());
        let told = front["hypervolume"].as_f64().unwrap();
        // Five standard deviations of the share, at most.
        assert!((share - told).abs() < 0.0125, "{share} {told}");

        let of =
            |name: &str| entries.iter().find(|e| e["batch"] == number + 1 && e["algorithm"] == name).unwrap();
        let others: Vec<&str> = front["others"]
            .as_array()
            .unwrap()
            .iter()
            .map(|other| other["algorithm"].as_str().unwrap())
            .collect();
        assert_eq!(others, ["a1", "c1", "spt"]);
        for other in front["others"].as_array().unwrap() {
            let point = values(of(other["algorithm"].as_str().unwrap()));
            assert_eq!(other["dominated"], members.iter().any(|one| better(one, &point)));
            let share = sampled(&[scaled(&point)]);
            assert!((share - other["hypervolume"].as_f64().unwrap()).abs() < 0.0125);
            // It begins with rows that are as good as the greedy ones, and more of the space is below all members than below
            // one.
            assert!(told > other["hypervolume"].as_f64().unwrap(), "{other}");
        }
        // What stands for it among the others is one of its members, and it took as long as they did.
        assert!(members.contains(&values(of("nsga2"))));
        let taken = |name: &str| of(name)["evaluations"].as_u64().unwrap();
        assert!(taken("nsga2") >= taken("c1") && taken("nsga2") < taken("c1") + 60);
    }
    // Results that take their place have no fronts of before.
    assert!(run(&out, &["--replace"]).status.success());
    assert!(!out.join("fronts.json").exists());
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |name: &str, flags: &[&str]| {
        let out = folder.path().join(name);
        let output =
            run(&out, &[&["--algorithms", "a1,b2,c3,random", "--generations-max", "6"], flags].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (
            std::fs::read(out.join("rows.json")).unwrap(),
            std::fs::read(out.join("table.csv")).unwrap(),
            output.stdout,
        )
    };
    let one = bytes("1", &["--jobs", "1"]);
    assert_eq!(one, bytes("2", &["--jobs", "2"]));
    // More threads than batches: the individuals of one are on several.
    assert_eq!(one, bytes("5", &["--jobs", "5"]));
    assert_ne!(one.0, bytes("other", &["--seed", "2"]).0);
}

#[test]
fn ctrl_c_keeps_the_best_so_far_and_says_that_it_is_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let endless = ["--algorithms", "c1", "--stagnation", "4000000000", "--generations-max", "4000000000"];
    let mut child = command(&out, &endless).args(["--jobs", "1"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("2 batches of 60"));
    let line = lines.next().unwrap().unwrap();
    assert!(line.contains("0/2, batch 1 c1: generation 0, best 0."), "{line}");

    kill_process(Pid::from_child(&child), Signal::INT).unwrap();

    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(4), "{rest:?}");
    let entries = entries(&out);
    assert_eq!(entries.len(), 1);
    assert_eq!((&entries[0]["batch"], &entries[0]["stopped"]), (&Value::from(1), &Value::from(true)));
    let rows: Vec<Vec<u64>> = serde_json::from_value(entries[0]["rows"].clone()).unwrap();
    assert!(rows.iter().flatten().count() == SIZE);
    // The last that is told of how it came there is what was kept.
    let convergence = std::fs::read_to_string(out.join("convergence.csv")).unwrap();
    let last: Vec<&str> = convergence.lines().last().unwrap().split(',').collect();
    assert_eq!(last[2].parse::<u64>().unwrap(), entries[0]["generations"].as_u64().unwrap());
    let told: f64 = last[4].parse().unwrap();
    assert!((told - entries[0]["makespan_s"].as_f64().unwrap()).abs() < 1e-5);
}

fn stealgrid(arguments: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(PROGRAM).args(arguments).output().unwrap();
    (
        done.status.code(),
        [done.stdout, done.stderr].map(|b| String::from_utf8_lossy(&b).into_owned()).concat(),
    )
}

#[test]
fn the_options_that_a_run_leaves_repeat_it_and_what_is_typed_wins() {
    let folder = tempfile::tempdir().unwrap();
    let (first, again, other) =
        (folder.path().join("first"), folder.path().join("again"), folder.path().join("other"));
    assert!(run(&first, &["--algorithms", "a1,C1", "--generations-max", "5"]).status.success());
    let options = first.join("options.toml");
    let repeat = |out: &Path, more: &[&str]| {
        let begin = ["genetic", "--options", options.to_str().unwrap(), "--out", out.to_str().unwrap()];
        let (code, text) = stealgrid(&[&begin, more].concat());
        assert_eq!(code, Some(0), "{text}");
        std::fs::read(out.join("rows.json")).unwrap()
    };
    let rows = std::fs::read(first.join("rows.json")).unwrap();
    assert!(repeat(&again, &[]) == rows);
    assert_eq!(std::fs::read(again.join("options.toml")).unwrap(), std::fs::read(&options).unwrap());
    assert!(repeat(&other, &["--seed", "9"]) != rows);

    std::fs::write(&options, "sedd = 1\n").unwrap();
    let (code, text) = stealgrid(&["genetic", "--options", options.to_str().unwrap()]);
    assert_eq!(code, Some(3));
    assert!(text.contains("options.toml: unknown key sedd (did you mean seed?)"), "{text}");
    assert_eq!(stealgrid(&["genetic"]).0, Some(2), "neither a log nor options");
}

#[test]
fn one_at_a_time_writes_into_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let held = std::fs::File::create(out.join("genetic.lock")).unwrap();
    held.lock().unwrap();
    let refused = run(&out, &[]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another stealgrid genetic writes into"));
    assert!(!out.join("rows.json").exists());
    drop(held);
    assert!(run(&out, &[]).status.success());
}

#[test]
fn a_run_that_cannot_begin_leaves_nothing_and_files_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let trace = folder.path().join("none.swf");
    let flags = ["genetic", "--out", out.to_str().unwrap(), "--trace", trace.to_str().unwrap()];
    let (code, text) = stealgrid(&flags);
    assert_eq!(code, Some(3), "{text}");
    assert!(!out.exists(), "{text}");

    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("notes.txt"), "mine").unwrap();
    for flags in [&[][..], &["--replace"]] {
        let refused = run(&out, flags);
        assert_eq!(refused.status.code(), Some(3));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("files of somebody else (notes.txt)"));
    }
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn a_folder_is_shown_on_a_page_and_read_as_a_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let second = trace();
    let flags = [
        "--algorithms",
        "a1,c1,spt,nsga2",
        "--trace",
        second.to_str().unwrap(),
        "--trace",
        second.to_str().unwrap(),
    ];
    assert!(run(&out, &flags).status.success());
    // Two logs, each of which has half.
    let jobs = std::fs::read_to_string(out.join("jobs.csv")).unwrap();
    let logs = |log: &str| jobs.lines().filter(|line| line.split(',').nth(2) == Some(log)).count();
    assert_eq!((logs("1"), logs("2")), (SIZE, SIZE));

    let page = folder.path().join("page");
    let place = |path: &Path| path.to_string_lossy().into_owned();
    let (code, text) = stealgrid(&[
        "report",
        &place(&out),
        "--out",
        &place(&page),
        "--batch",
        "2",
        "--algorithm",
        "spt",
        "--plots",
        "svg",
    ]);
    assert_eq!(code, Some(0), "{text}");
    let html = std::fs::read_to_string(page.join("index.html")).unwrap();
    assert_eq!(html.matches("<title>job ").count(), 2 * SIZE, "a block for each job, also for a phone");
    // Of a3 and a4, which did not run, nothing is told.
    assert!(html.contains("makespan, % less than a1"));
    for column in ["turnaround, % less than a3", "response, % less than a2", "wait, % less than a4"] {
        assert!(!html.contains(column), "{column}");
    }
    assert!(
        html.contains("<td class=\"n\">1</td>") && !html.contains(">1.000</td>"),
        "evaluations are counted"
    );
    // Who does not search is level, from the first generation to the last.
    let convergence = html.split("aria-label=\"Makespan by generation\"").nth(1).unwrap();
    let convergence = &convergence[..convergence.find("</svg>").unwrap()];
    for name in ["a1", "spt"] {
        assert!(convergence.contains(&format!(">{name}</text>")), "{name} is not drawn");
        let title = format!("<title>{name}, ");
        let heights: Vec<&str> =
            convergence.split("<path class=\"marker").filter(|marker| marker.contains(&title)).collect();
        assert_eq!(heights.len(), 2, "{name}");
    }
    assert!(
        html.contains("Percentages are of the means")
            && html.contains("the weighted average of all four criteria")
    );
    assert!(html.contains(">c1</text>") && !html.contains("all runs"), "the one search is named");
    assert!(html.contains("Schedule of spt, batch 2") && html.contains("Makespan by generation"));
    let drawn = ["schedule", "front-response_ratio", "convergence-wait_s"];
    assert!(drawn.iter().all(|name| page.join(format!("{name}.svg")).exists()));
    let (code, text) = stealgrid(&["report", &place(&out), "--out", &place(&page), "--algorithm", "stp"]);
    assert_eq!(code, Some(3));
    assert!(text.contains("did you mean spt?"), "{text}");

    let rows = coordinator::sweep::source::read(&out).unwrap();
    assert_eq!((rows.rows.len(), rows.planned), (4 * BATCHES, Some(4 * BATCHES)));
    let wait = rows.metrics.iter().position(|name| name == "wait_s").unwrap();
    for (row, entry) in rows.rows.iter().zip(entries(&out)) {
        assert_eq!(row.metrics[wait].number(), entry["wait_s"].as_f64());
    }
    // The end of a search is the last of its points, and greedy strategies have none.
    let along = coordinator::sweep::source::read(&out.join("convergence.csv")).unwrap();
    let last = along.rows.iter().rfind(|row| row.parameters[0].to_string() == "c1").unwrap();
    let end = rows.rows.iter().rfind(|row| row.parameters[0].to_string() == "c1").unwrap();
    let wait_along = along.metrics.iter().position(|name| name == "wait_s").unwrap();
    let (last, end) = (last.metrics[wait_along].number().unwrap(), end.metrics[wait].number().unwrap());
    assert!(last >= end - 1e-5 && !along.rows.iter().any(|row| row.parameters[0].to_string() == "a1"));
}

#[test]
fn what_cannot_be_done_is_said_with_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let says = |flags: &[&str], code: i32, expected: &str| {
        let output = run(&out, flags);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(expected), "{text}");
    };
    says(&["--sites", "4,0"], 2, "a site has no processors");
    says(&["--scaling", "initail"], 2, "did you mean initial?");
    says(&["--algorithms", "b9"], 2, "there are a1, a2");
    says(&["--batches", "900"], 3, "give fewer --batches or a smaller --size");
    says(&["--too-wide", "refuse", "--sites", "4"], 3, "the widest site has 4");
    says(&["--trace", "nowhere.swf"], 3, "nowhere.swf");
    says(&[], 0, "2 batches of 60");
    says(&[], 3, "has results; give --out another directory, or --replace");
    says(&["--replace"], 0, "");
}
