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
