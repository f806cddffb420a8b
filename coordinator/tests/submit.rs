//! `stealgrid submit` hands a job to a node that nobody coordinates.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::PROGRAM;

struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A node of one site, and where it listens.
fn node(folder: &Path) -> (Node, String) {
    let made = Command::new(PROGRAM).args(["key", "token", "token"]).current_dir(folder).status().unwrap();
    assert!(made.success());
    let mut child = Command::new(PROGRAM)
        .args(["node", "--site", "1", "--grid", "alone=8", "--control-token", "token"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    (Node(child), format!("http://{}/", ready["http"].as_str().unwrap()))
}

fn submit(folder: &Path, url: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.args(["submit", url, "--control-token"]).args(arguments).current_dir(folder);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_node_takes_a_job_in_units_of_people_and_says_why_it_takes_another_not() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (_node, url) = node(folder);
    let job = ["token", "--processors", "4", "--time", "1h", "--run-time", "30m", "--at", "5s"];
    let numbered = [&job[..], &["--id", "7"]].concat();

    let (code, said) = submit(folder, &url, &numbered);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said, "job 7: alone has it, and submits it at 5 s of trace time\n");

    let (code, said) = submit(folder, &url, &numbered);
    assert!(code == Some(1) && said.contains("refused with status"), "the same number: {said}");
    let (code, said) = submit(folder, &url, &job);
    assert_eq!(code, Some(0), "a number of its own: {said}");
    std::fs::write(folder.join("other"), "0123456789012345678901234567890123456789\n").unwrap();
    let other = [&["other"], &job[1..]].concat();
    let (code, said) = submit(folder, &url, &other);
    assert!(code == Some(1) && said.contains("401"), "{said}");
    let missing = [&["missing"], &job[1..]].concat();
    let (code, said) = submit(folder, &url, &missing);
    assert!(code == Some(3) && said.contains("missing"), "{said}");
    let (code, said) = submit(folder, &url, &["token", "--processors", "4", "--time", "60"]);
    assert!(code == Some(2) && said.contains("write a whole number and a unit"), "{said}");
}
