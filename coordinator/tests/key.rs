//! `stealgrid key`: what it makes is private, is understood by a node, and is never overwritten.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use crate::PROGRAM;

fn key(args: &[&str]) -> Output {
    Command::new(PROGRAM).arg("key").args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap().trim().to_string()
}

#[test]
fn secrets_are_made_private_and_told_apart_without_being_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (grid, token, identity) = (path("swarm.key"), path("token"), path("site1.key"));

    let fingerprint = key(&["new", &grid]);
    assert_eq!(said(&fingerprint), said(&key(&["fingerprint", &grid])));
    assert!(!std::fs::read_to_string(&grid).unwrap().contains(&said(&fingerprint)));
    assert_eq!(said(&key(&["token", &token])), token, "the token itself is not printed");
    let peer_id = said(&key(&["identity", &identity]));
    assert_eq!(said(&key(&["id", &identity])), peer_id);
    assert!(peer_id.starts_with("12D3Koo"), "{peer_id}");

    for file in [&grid, &token, &identity] {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn what_is_there_is_kept_and_what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("swarm.key");
    let file = file.to_str().unwrap();
    std::fs::write(file, "mine").unwrap();
    for command in ["new", "token", "identity", "id", "fingerprint"] {
        let output = key(&[command, file]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{command}: {error}");
        assert!(error.contains(file), "{error}");
        let makes = ["new", "token", "identity"].contains(&command);
        assert_eq!(error.contains("it is there already; name another file"), makes, "{error}");
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
}
