//! A test that runs once more in a process of its own: in a namespace, or with less than its program may have.

use std::io::{Read as _, Seek as _, Write as _};
use std::process::Command;

/// Set for the half of a test that runs in a namespace.
const INSIDE: &str = "STEALGRID_TEST_INSIDE_NAMESPACE";

/// Runs `inside` in a namespace of its own, of the kind that this flag of `unshare` names, if there can be one and `probe`, a
/// command of the shell, succeeds in such a one; otherwise the test skips and says what it needs. `test` is the name of
/// the test that calls this, with its module.
#[track_caller]
pub(crate) fn in_namespace(flag: &str, needs: &str, probe: &str, test: &str, inside: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let can = Command::new("unshare").args([flag, "sh", "-c", probe]).output();
    if !can.as_ref().is_ok_and(|output| output.status.success()) {
        // Not by the macro: what that prints is captured, and nobody would see it.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIPPED: {needs}: {can:?}").unwrap();
        return;
    }
    let this = std::env::current_exe().unwrap();
    run(Command::new("unshare").arg(flag).arg(this).env(INSIDE, "1"), test);
}

/// Runs one test in a process that `command` starts with the arguments that are added to it here. `test` is its name with
/// its module: with a name that no test has, a program of tests runs nothing and succeeds, so that is a failure, too.
#[track_caller]
pub(crate) fn run(command: &mut Command, test: &str) {
    // A file and no pipe: nodes that it leaves behind would hold a pipe open.
    let mut output = tempfile::tempfile().unwrap();
    command.args(["--exact", test, "--nocapture"]).stdout(output.try_clone().unwrap());
    let status = command.status().unwrap();
    let mut said = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut said).unwrap();
    println!("{said}");
    assert!(status.success(), "{test}: the half in a process of its own failed; see above");
    assert!(said.contains(" 1 passed;"), "there is no test {test}");
}

#[test]
#[should_panic(expected = "there is no test once_more::none")]
fn canary_a_name_that_no_test_has_is_noticed() {
    run(&mut Command::new(std::env::current_exe().unwrap()), "once_more::none");
}
