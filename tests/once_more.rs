//! A test that runs once more in a process of its own: in a namespace, or with less than its program may have.

use std::io::{Read as _, Seek as _};
use std::process::Command;

use crate::skipped;

/// Set for the half of a test that runs in a namespace.
const INSIDE: &str = "STEALGRID_TEST_INSIDE_NAMESPACE";

/// Runs `inside` in a namespace of its own, of the kind that this flag of `unshare` names, if there can be one and `probe`, a
/// command of the shell, succeeds in such a one; otherwise the test skips and says what it needs. Who is not root is
/// within it, where the system lets them be. `test` is the name of the test that calls this, with its module.
///
/// # Panics
/// If `inside` does, or no test has that name.
#[track_caller]
pub fn in_namespace(flag: &str, needs: &str, probe: &str, test: &str, inside: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let mut why = Vec::new();
    for flags in [&[flag][..], &[flag, "--map-root-user"]] {
        let can = Command::new("unshare").args(flags).args(["sh", "-c", probe]).output();
        if can.as_ref().is_ok_and(|output| output.status.success()) {
            let this = std::env::current_exe().expect("a test is a program");
            return run(Command::new("unshare").args(flags).arg(this).env(INSIDE, "1"), test);
        }
        why.push(can);
    }
    skipped(format_args!("{needs}: {why:?}"));
}

/// Runs one test in a process that `command` starts with the arguments that are added to it here. `test` is its name with
/// its module: with a name that no test has, a program of tests runs nothing and succeeds, so that is a failure, too.
///
/// # Panics
/// If the test fails, or there is none of that name.
#[track_caller]
pub fn run(command: &mut Command, test: &str) {
    // A file and no pipe: nodes that it leaves behind would hold a pipe open.
    let mut output = tempfile::tempfile().expect("a file can be made");
    command.args(["--exact", test, "--nocapture"]).stdout(output.try_clone().expect("a handle can be had"));
    let status = command.status().expect("the program can be started");
    let mut said = String::new();
    output.rewind().expect("it is a file");
    output.read_to_string(&mut said).expect("tests print text");
    println!("{said}");
    assert!(status.success(), "{test}: the half in a process of its own failed; see above");
    assert!(said.contains(" 1 passed;"), "there is no test {test}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "there is no test once_more::none")]
    fn mutant_a_name_that_no_test_has_is_noticed() {
        run(&mut Command::new(std::env::current_exe().unwrap()), "once_more::none");
    }
}
