//! `stealgrid predict` as others script against it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use stealgrid_tests::shared;

use crate::PROGRAM;

fn trace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/traces/seven-sites.swf")
}

fn predict(log: &Path, out: &Path, flags: &[&str]) -> Output {
    Command::new(PROGRAM).arg("predict").arg(log).arg("--out").arg(out).args(flags).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const FEW: [&str; 6] = ["--sites", "128", "--predictors", "user,exact,last:k=2,by=mean", "--backfill", "sjf"];

#[test]
fn rows_are_kept_for_the_next_run_and_the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let output = predict(&trace(), &one, &[&FEW[..], &["--jobs", "1"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let read = |out: &Path, name: &str| fs::read_to_string(out.join(name)).unwrap();
    let errors = read(&one, "errors.csv");
    // A header; two predictors on the log and its halves.
    assert_eq!(errors.lines().count(), 1 + 2 * 3, "{errors}");
    let schedules = read(&one, "schedules.csv");
    // Users and those who know are corrected by nobody, the other by three.
    assert_eq!(schedules.lines().count(), 1 + 5 * 3, "{schedules}");
    let waits = read(&one, "waits.csv");
    // Four plans, a bound, two categories and the nearest.
    assert_eq!(waits.lines().count(), 1 + 8 * 3, "{waits}");
    let page = read(&one, "report.html");
    for plot in ["errors", "slowdowns", "run-times", "wait-errors", "waits", "coverage"] {
        assert!(page.contains(&format!("<figure id=\"{plot}\">")), "no plot {plot}");
    }
    assert!(page.contains("clairvoyant, sjf") && page.contains("no job says whose it is"));

    // Half of it first, and then the rest: what was there is not computed again, and the bytes are those of one run.
    let half =
        ["--sites", "128", "--predictors", "last:k=2,by=mean", "--backfill", "sjf", "--corrections", "user"];
    assert_eq!(predict(&trace(), &two, &half).status.code(), Some(0));
    let marked = read(&two, "errors.csv").replace(",all,", ",all,1");
    fs::write(two.join("errors.csv"), &marked).unwrap();
    assert_eq!(predict(&trace(), &two, &FEW).status.code(), Some(0));
    let row = marked.lines().nth(1).unwrap();
    assert!(read(&two, "errors.csv").lines().any(|line| line == row), "a row was computed again");
    assert_eq!(read(&two, "schedules.csv"), schedules);
    assert_eq!((read(&two, "waits.csv"), read(&two, "curves.csv")), (waits, read(&one, "curves.csv")));

    let other = predict(&trace(), &two, &[&FEW[..], &["--pass", "batch"]].concat());
    assert_eq!(other.status.code(), Some(3));
    assert!(said(&other).contains("give --out another directory, or --replace"), "{}", said(&other));
    let replaced = predict(&trace(), &two, &[&FEW[..], &["--replace"]].concat());
    assert_eq!(replaced.status.code(), Some(0), "{}", said(&replaced));

    let from = Command::new(PROGRAM)
        .args(["predict", "--corrections", "user", "--from"])
        .arg(&one)
        .output()
        .unwrap();
    let from = String::from_utf8(from.stdout).unwrap();
    assert!(from.contains("last:k=2,by=mean") && !from.contains("tsafrir"), "{from}");
    assert!(from.contains("quantile") && from.contains("covers"), "{from}");
    let nothing = Command::new(PROGRAM)
        .args(["predict", "--predictors", "avg2", "--waits", "none", "--from"])
        .arg(&one)
        .output()
        .unwrap();
    assert_eq!(nothing.status.code(), Some(3));
    assert!(
        said(&nothing).contains("there are rows of user, exact, last:k=2,by=mean, plan:by=user"),
        "{}",
        said(&nothing)
    );
}

/// The second half of a log by who met the first. The file has what its page says, and is asked by SQL.
#[test]
fn an_earlier_log_is_met_before_the_first_job_and_this_one_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("history.db");
    let (first, second) = (folder.path().join("first.swf"), folder.path().join("second.swf"));
    let whole = fs::read_to_string(trace()).unwrap();
    // Each job has a user, so that there is something to learn.
    let users = |line: &str| {
        let mut fields: Vec<&str> = line.split_whitespace().collect();
        fields[11] = "1";
        fields.join(" ")
    };
    let jobs: Vec<String> = whole.lines().filter(|line| !line.starts_with(';')).map(users).collect();
    let half = jobs.len() / 2;
    fs::write(&first, jobs[..half].join("\n") + "\n").unwrap();
    fs::write(&second, jobs[half..].join("\n") + "\n").unwrap();
    let flags = ["--sites", "128", "--predictors", "smith", "--backfill", "sjf", "--corrections", "user"];
    let with = |log: &Path, out: &str, more: &[&str]| {
        let output = predict(log, &folder.path().join(out), &[&flags[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        said(&output)
    };
    let path = history.to_str().unwrap();
    assert!(!with(&first, "one", &["--history", path]).contains("met"));
    let met = with(&second, "two", &["--history", path]);
    assert!(met.contains("jobs of 1 earlier log before the first job"), "{met}");
    with(&second, "three", &[]);
    let read = |out: &str, name: &str| fs::read_to_string(folder.path().join(out).join(name)).unwrap();
    for rows in ["errors.csv", "schedules.csv", "waits.csv"] {
        assert_ne!(read("two", rows), read("three", rows), "{rows}: who met more says something else");
    }
    let about: serde_json::Value = serde_json::from_str(&read("two", "predict.json")).unwrap();
    assert_eq!(about["history"][0]["log"], "first.swf");
    assert!(read("two", "report.html").contains("Before the first job predictors met"));
    assert!(!read("three", "predict.json").contains("history"));
    // Once more: the same rows are there, and the log itself tells nobody the answers.
    let again = with(&second, "two", &["--history", path]);
    assert!(again.contains("the history has this very log"), "{again}");

    let database = rusqlite::Connection::open(&history).unwrap();
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/PREDICTION.md")).unwrap();
    let (_, section) = page.split_once("## A history\n").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows.take_while(|row| row.matches('|').count() == 3) {
        let mut words = row.split('`').skip(1).step_by(2).map(str::to_string);
        let table = words.next().unwrap();
        let names: Vec<String> = words.collect();
        let mut select = database.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
        let columns: Vec<String> =
            select.query_map([&table], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        assert!(!columns.is_empty(), "no table {table}");
        for column in &columns {
            assert!(names.contains(column), "docs/PREDICTION.md does not tell of {table}.{column}");
        }
        told.push((table, columns));
    }
    let mut tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(tables.len(), 7);
    assert!(tables.iter().all(|table| told.iter().any(|(known, _)| known == table)), "{tables:?}");
    let (_, query) = section.split_once("```sql\n").unwrap();
    let (query, _) = query.split_once("```").unwrap();
    let mut select = database.prepare(query).unwrap();
    let rows: Vec<(String, i64)> = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|(_, count)| *count > half as i64), "both logs: {rows:?}");
}

/// One without rows, as `exact` has no errors, and one whose last line has no end.
#[test]
fn files_that_were_cut_off_are_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let flags = ["--sites", "128", "--predictors", "exact,user", "--backfill", "sjf"];
    let whole = predict(&trace(), &out, &flags);
    assert_eq!(whole.status.code(), Some(0), "{}", said(&whole));
    assert!(said(&whole).contains("no job says whose it is"), "{}", said(&whole));
    let schedules = fs::read_to_string(out.join("schedules.csv")).unwrap();
    for (errors, rows) in [("", ""), ("predictor,pa", &schedules[..schedules.len() - 20])] {
        fs::write(out.join("errors.csv"), errors).unwrap();
        fs::write(out.join("schedules.csv"), rows).unwrap();
        let again = predict(&trace(), &out, &flags);
        assert_eq!(again.status.code(), Some(0), "{}", said(&again));
        assert_eq!(fs::read_to_string(out.join("schedules.csv")).unwrap(), schedules);
    }
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let log = folder.path().join("none.swf");
    fs::write(
        &log,
        "1 0 -1 60 2 -1 -1 2 -1 -1 1 1 1 -1 1 1 -1 -1\n2 5 -1 60 2 -1 -1 2 -1 -1 1 1 1 -1 1 1 -1 -1\n",
    )
    .unwrap();
    let nothing = folder.path().join("nothing");
    for (log, flags, code, expected) in [
        (
            trace(),
            &["--sites", "8", "--predictors", "avg3"][..],
            2,
            "--predictors: \"avg3\" is no predictor (did you mean avg2?)",
        ),
        (trace(), &["--sites", "8", "--predictors", "avg2:"], 2, "has an option without a name"),
        (
            trace(),
            &["--sites", "8", "--waits", "quantil"],
            2,
            "--waits: \"quantil\" predicts no waits (did you mean quantile?)",
        ),
        (
            trace(),
            &["--sites", "8", "--history", log.to_str().unwrap()],
            3,
            "it is no SQLite database; give another file",
        ),
        (
            trace(),
            &["--sites", "8", "--backfill", "sfj"],
            2,
            "is no order (did you mean sjf?); use one of arrival",
        ),
        (trace(), &["--sites", "8", "--corrections", "never"], 2, "is no correction"),
        (log.clone(), &["--sites", "8"], 3, "none of its 2 jobs has an estimate"),
        (
            log.clone(),
            &["--sites", "1", "--missing-estimate", "1h"],
            3,
            "no job is left that ran, has an estimate and fits 1 processors",
        ),
        (nothing.clone(), &["--sites", "8"], 3, "nothing"),
    ] {
        let output = predict(&log, &out, flags);
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {}", said(&output));
        assert!(said(&output).contains(expected), "{flags:?}: {}", said(&output));
        assert!(!out.exists(), "nothing is left of a slip: {flags:?}");
    }
    let asked = predict(&log, &out, &["--sites", "8", "--missing-estimate", "1h", "--predictors", "avg2"]);
    assert_eq!(asked.status.code(), Some(0), "asked for by name: {}", said(&asked));
    let from = Command::new(PROGRAM).args(["predict", "--from"]).arg(folder.path()).output().unwrap();
    assert_eq!(from.status.code(), Some(3), "{}", said(&from));
}

/// The row of AVG2, corrected by users' estimates, that the SC'15 campaign has of KTH-SP2, which `predictors` of `tests` holds whole.
#[test]
fn figures_on_kth_sp2_are_those_published() {
    let Some(log) = shared("traces/KTH-SP2-1996-2.swf.gz") else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let flags = ["--sites", "100", "--predictors", "avg2", "--corrections", "user", "--backfill", "sjf"];
    let output = predict(&log, &out, &flags);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let schedules = fs::read_to_string(out.join("schedules.csv")).unwrap();
    let row = schedules.lines().find(|line| line.starts_with("avg2,user,sjf,all,28481,")).unwrap();
    let slowdown: f64 = row.split(',').nth(5).unwrap().parse().unwrap();
    assert!((slowdown - 62.857).abs() < 0.63, "{row}");
    let errors = fs::read_to_string(out.join("errors.csv")).unwrap();
    let share: f64 = errors.lines().nth(1).and_then(|line| line.split(',').nth(5)).unwrap().parse().unwrap();
    assert!((share - 0.593).abs() < 0.001, "{errors}");
}
