//! `stealgrid chaos` on real processes: a run without mistakes passes its audit, and one whose nodes make a mistake with a
//! job does not. The mistakes are in the program that tests are built with, and in no other.

use std::fmt::Write as _;
use std::process::Command;

use crate::PROGRAM;

/// A round without faults, whose nodes make this mistake: its exit code and what it printed.
fn round(mistake: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut jobs = String::new();
    for job in 1..=60 {
        let (processors, submit, run_time) = (1 + job % 4, 2 * job, 20 + job * 7 % 21);
        writeln!(
            jobs,
            "{job} {submit} -1 {run_time} {processors} -1 -1 {processors} 60 -1 1 1 1 1 1 -1 -1 -1"
        )
        .unwrap();
    }
    std::fs::write(folder.path().join("jobs.swf"), jobs).unwrap();
    let text = "grid.sizes = [4, 8, 16]\nworkload.trace = \"jobs.swf\"\nnetwork.delay = \"1s\"\n\
                run.clock = \"scaled:20\"\nrun.stall_timeout = \"3s\"\n";
    let experiment = folder.path().join("experiment.toml");
    std::fs::write(&experiment, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("chaos").arg(&experiment).args(["--seeds", "1", "--from", "1", "--only", "99", "--out"]);
    command.arg(folder.path().join("rounds")).env("STEALGRID_MUTANT", mistake);
    let ended = command.output().unwrap();
    let said = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (ended.status.code(), said.concat())
}

#[test]
fn a_round_without_mistakes_passes() {
    let (code, said) = round("");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("60 ended, 0 reported as killed, 0 as missing in 0 rounds, 0 as run twice"),
        "{said}"
    );
}

#[test]
fn a_node_that_forgets_a_job_is_caught() {
    let (code, said) = round("lose");
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("  # missing: "), "{said}");
}

#[test]
fn a_node_that_executes_a_job_twice_is_caught() {
    let (code, said) = round("repeat");
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("  # unreported: "), "{said}");
}
