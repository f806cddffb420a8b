//! Dependencies point one way, and what must not be known where is not.
//!
//! Reads the manifests and sources of the workspace. The rules in words are in `docs/ARCHITECTURE.md`.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A folder, crates of the workspace that it may depend on, and others where the list is closed.
type Rule = (&'static str, &'static [&'static str], Option<&'static [&'static str]>);

/// What each crate may depend on outside tests. Crates without a second list may take what they need from a registry;
/// the pure ones may not.
const ALLOWED: [Rule; 11] = [
    ("scheduler", &[], Some(&["serde", "thiserror"])),
    ("links", &["scheduler"], Some(&["humantime", "libm", "rand_chacha", "serde", "thiserror", "toml"])),
    ("protocol", &["scheduler"], Some(&["bincode", "rand", "rand_chacha", "serde", "thiserror"])),
    ("simulator", &["links", "protocol", "scheduler"], Some(&["rand", "rand_chacha", "serde", "thiserror"])),
    ("analysis", &["scheduler"], Some(&["rand", "rand_chacha", "serde", "thiserror"])),
    ("workload", &["scheduler"], None),
    ("claims", &["analysis", "links", "protocol", "scheduler", "simulator", "workload"], None),
    ("node", &["links", "protocol", "scheduler"], None),
    (
        "coordinator",
        &["analysis", "claims", "links", "node", "protocol", "scheduler", "simulator", "workload"],
        None,
    ),
    ("tests", &["analysis", "protocol", "scheduler", "simulator", "workload"], None),
    // libFuzzer searches for inputs; without the feature of that name nothing of it is built.
    (
        "fuzz",
        &["links", "node", "protocol", "scheduler", "workload"],
        Some(&["libfuzzer-sys", "serde", "serde_json", "tokio", "toml"]),
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn manifest(folder: &str) -> toml::Table {
    let path = root().join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names under `[dependencies]` and `[build-dependencies]`, also those of single targets.
fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let mut tables = vec![manifest];
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    tables.extend(targets.into_iter().flat_map(|targets| targets.values()).filter_map(toml::Value::as_table));
    let mut names = BTreeSet::new();
    for table in tables {
        for kind in ["dependencies", "build-dependencies"] {
            names.extend(
                table.get(kind).and_then(toml::Value::as_table).into_iter().flat_map(|t| t.keys().cloned()),
            );
        }
    }
    names
}

#[test]
fn every_member_of_the_workspace_has_a_rule() {
    let workspace = manifest("");
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let members: BTreeSet<&str> = members.iter().map(|member| member.as_str().unwrap()).collect();
    assert_eq!(members, ALLOWED.iter().map(|rule| rule.0).collect());
}

#[test]
fn dependencies_point_one_way() {
    for (folder, inside, outside) in ALLOWED {
        for name in dependencies(&manifest(folder)) {
            match (name.strip_prefix("stealgrid-"), outside) {
                (Some(crate_of_ours), _) => {
                    assert!(inside.contains(&crate_of_ours), "{folder} must not depend on {crate_of_ours}");
                }
                (None, Some(outside)) => {
                    assert!(
                        outside.contains(&name.as_str()),
                        "{folder} is pure and must not depend on {name}; if it is pure too, say so here"
                    );
                }
                (None, None) => {}
            }
        }
    }
}

#[test]
fn the_network_library_is_known_in_one_folder_only() {
    let users: Vec<&str> = ALLOWED
        .iter()
        .map(|rule| rule.0)
        .filter(|folder| dependencies(&manifest(folder)).contains("libp2p"))
        .collect();
    assert_eq!(users, ["node"]);
    let inside = mentions("node/src", "libp2p");
    assert!(inside.iter().any(|path| path.starts_with("node/src/network")), "the search finds nothing");
    let strays: Vec<&PathBuf> = inside.iter().filter(|path| !path.starts_with("node/src/network")).collect();
    assert!(strays.is_empty(), "libp2p must stay in node/src/network, but is in {strays:?}");
}

#[test]
fn one_module_knows_how_messages_become_bytes() {
    assert_eq!(mentions("protocol/src", "bincode"), [PathBuf::from("protocol/src/codec.rs")]);
}

/// Files below a folder that name a word in code, not in comments.
fn mentions(folder: &str, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(root().join(&path)).unwrap();
                let code = |line: &str| !line.trim_start().starts_with("//");
                if text.lines().any(|line| code(line) && line.contains(word)) {
                    found.push(path);
                }
            }
        }
    }
    found.sort();
    found
}
