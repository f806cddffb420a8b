//! Benchmarks as commands: what they print, and that a limit is one.

use std::process::{Command, Stdio};

use crate::PROGRAM;

#[test]
fn whole_runs_are_held_against_a_loop_and_a_ratio_above_its_limit_fails() {
    let bench = |limits: &str| {
        let args = ["bench", "simulate", "--jobs", "100", "--rounds", "1", "--ratio-max", limits];
        let output = Command::new(PROGRAM).args(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, table, _) = bench("1000,1000,1000,0");
    assert_eq!(code, Some(5), "no run takes no time: {table}");
    let rows: Vec<&str> = table.lines().filter(|line| line.ends_with(" of the loop")).collect();
    assert_eq!(rows.len(), 4, "{table}");
    let (code, _, said) = bench("1,1");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--ratio-max takes 4 ratios"), "{said}");
}

#[test]
fn what_prints_line_by_line_ends_quietly_once_nobody_reads() {
    let commands: [&[&str]; 2] = [
        &["bench", "coallocation", "--clusters", "2", "--tasks", "2", "--instances", "1"],
        // Its hook for panics is silent, and a panic would be a finding.
        &["swarm", "--seed", "1", "--trace"],
    ];
    for args in commands {
        let mut command = Command::new(PROGRAM);
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // As `head` does that has seen enough.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{args:?}");
        assert_eq!(output.status.code(), Some(141), "{args:?}");
    }
}
