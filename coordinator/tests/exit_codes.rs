//! A wrong flag is a matter of usage, a wrong file one of input, whether or not there is an experiment file.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_stealgrid");

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

/// Exit code and stderr of `simulate` in a folder, with the quick start or with the same by flags.
fn simulate(folder: &Path, with_file: bool, flags: &[&str]) -> (i32, String) {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).arg("simulate");
    if with_file {
        command.arg(configs().join("quickstart.toml"));
    } else {
        command.args(["--sites", "8,16,128", "--trace"]).arg(configs().join("traces/seven-sites.swf"));
    }
    let output = command.args(["--count", "20", "--no-page"]).args(flags).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_is_wrong_decides_and_not_whether_there_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "delay = \"fast\"\n").unwrap();
    std::fs::write(folder.path().join("unknown.toml"), "dely = \"1s\"\n").unwrap();
    for with_file in [false, true] {
        for (flags, code, expected) in [
            (["--strategy", "pool:some"], 2, "failed to understand --strategy"),
            (["--delay", "5"], 2, "failed to understand --delay"),
            (["--submit", "there"], 2, "failed to understand --submit"),
            (["--margin", "soon"], 2, "failed to understand --margin"),
            (["--clock", "scaled:0"], 2, "failed to understand --clock"),
            (["--network", "bad.toml"], 3, "failed to understand bad.toml: delay: \"fast\" is not a time"),
            (["--network", "unknown.toml"], 3, "failed to understand unknown.toml: "),
            (["--network", "moon"], 3, "failed to understand --network"),
        ] {
            let (found, text) = simulate(folder.path(), with_file, &flags);
            assert_eq!(found, code, "{flags:?}, with a file: {with_file}\n{text}");
            assert!(text.contains(expected), "{flags:?}: {text}");
        }
    }
}

#[test]
fn a_value_of_the_file_is_one_of_input_though_a_flag_could_give_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.toml");
    std::fs::write(
        &path,
        "[grid]\nsizes = [4]\n[workload]\ntrace = \"a.swf\"\n[network]\ndelay = \"fast\"\n",
    )
    .unwrap();

    let status = Command::new(PROGRAM).arg("simulate").arg(&path).output().unwrap().status;

    assert_eq!(status.code(), Some(3));
}

#[test]
fn without_sites_or_workload_the_command_line_is_wrong() {
    let run =
        |flags: &[&str]| Command::new(PROGRAM).arg("simulate").args(flags).output().unwrap().status.code();
    assert_eq!(run(&[]), Some(2));
    assert_eq!(run(&["--sites", "2,8"]), Some(2));
}

#[test]
fn a_variable_that_is_empty_is_as_good_as_none() {
    let folder = tempfile::tempdir().unwrap();
    let simulate = |sizes: &str, clock: &str| {
        let output = Command::new(PROGRAM)
            .current_dir(folder.path())
            .args(["simulate", "--count", "20", "--no-page"])
            .env("STEALGRID_EXPERIMENT", configs().join("quickstart.toml"))
            .env("STEALGRID_SIZES", sizes)
            .env("STEALGRID_CLOCK", clock)
            .env("STEALGRID_NETWORK", "")
            .env("STEALGRID_REPLACE", "true")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };

    let (code, said) = simulate("", "");
    assert_eq!(code, Some(0));
    assert!(said.contains("7 sites, 464 processors"), "{said}");

    let (code, said) = simulate("grid1", "virtual");
    assert_eq!(code, Some(0));
    assert!(said.contains("7 sites, 4,442 processors"), "{said}");

    assert_eq!(simulate("", "soon").0, Some(2));
}
