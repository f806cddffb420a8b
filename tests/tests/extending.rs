//! What `docs/EXTENDING.md` says is so: the files are there, and the examples are code that is compiled.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Words in code quotes that name a file or a folder.
fn paths(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.contains('/') && !word.contains([' ', '\n', ':'])).collect()
}

#[test]
fn every_file_that_the_page_names_is_there() {
    let page = read("docs/EXTENDING.md");
    let prose: String = page.split("```").step_by(2).collect();
    assert!(paths(&prose).len() > 15, "{:?}", paths(&prose));
    let gone = gone(&prose);
    assert!(gone.is_empty(), "these files are named and are not there: {gone:?}");
}

/// What is named and is not there.
fn gone(prose: &str) -> Vec<&str> {
    paths(prose).into_iter().filter(|path| !root().join(path).exists()).collect()
}

#[test]
fn mutant_a_file_that_is_not_there_is_noticed() {
    let prose =
        "A rule is in `scheduler/src/local/rule.rs` and `scheduler/src/local/no_rule.rs`, as `a b/c` says.";
    assert_eq!(gone(prose), ["scheduler/src/local/no_rule.rs"]);
}

#[test]
fn examples_are_those_that_are_tested() {
    let page = read("docs/EXTENDING.md");
    for (file, seam) in [
        ("protocol/src/engine/example.rs", "impl Family for Plain"),
        ("brokers/src/example.rs", "impl Broker for Cycle"),
        ("predict/src/avg2.rs", "impl Rule for Avg2"),
    ] {
        assert!(page.contains(&format!("[{file}](../{file})")), "docs/EXTENDING.md does not lead to {file}");
        assert!(read(file).contains(seam), "{file} has no {seam}");
    }
}

/// `docs/RUST-STRATEGY.md` adds a rule by two differences. `.ci/docs` compiles what comes of them, and runs its twin.
#[test]
fn differences_of_the_tutorial_apply_to_the_tree() {
    let page = read("docs/RUST-STRATEGY.md");
    let mut files: Vec<&str> = page.split("```diff\n").skip(1).flat_map(changed).collect();
    files.sort_unstable();
    let expected = [
        "brokers/src/allocation/allocator.rs",
        "brokers/tests/broker_twin/mod.rs",
        "scheduler/src/strategy/broker.rs",
    ];
    assert_eq!(files, expected);
    let wrong = "--- a/x\n+++ b/brokers/src/table.rs\n@@ -1,2 +1,3 @@\n //! Which rule of `broker:` is which joker.\n+//! New.\n";
    assert!(std::panic::catch_unwind(|| changed(wrong)).is_err(), "a difference of another text is taken");
}

/// The files that a difference changes.
///
/// # Panics
/// If the lines that it expects are not in one of them.
fn changed(difference: &str) -> Vec<&str> {
    let difference = difference.split("\n```").next().unwrap();
    let files: Vec<&str> = difference.split("+++ b/").skip(1).collect();
    let mut names = Vec::new();
    for file in files {
        let (name, hunks) = file.split_once('\n').unwrap();
        let text = read(name);
        for hunk in hunks.split("@@ -").skip(1) {
            let lines = hunk.lines().skip(1).take_while(|line| !line.starts_with("---"));
            let before: Vec<&str> =
                lines.filter(|line| !line.starts_with('+')).map(|line| line.get(1..).unwrap_or("")).collect();
            assert!(text.contains(&before.join("\n")), "{name} does not have:\n{}", before.join("\n"));
        }
        names.push(name);
    }
    names
}

/// Names in the page that somebody would look for.
#[test]
fn what_the_page_tells_to_change_has_that_name() {
    for (file, names) in [
        (
            "scheduler/src/strategy/balance.rs",
            &["pub enum VictimRule", "const ALL", "fn name", "fn needs_gossip"][..],
        ),
        ("protocol/src/balance/choose.rs", &["fn choose_any", "match balancer.rules.victim"]),
        ("scheduler/src/local/rule.rs", &["trait QueueRule", "fn choose"]),
        ("scheduler/src/local/mod.rs", &["fn new(scheduler: LocalScheduler"]),
        ("scheduler/src/strategy/mod.rs", &["pub enum LocalScheduler", "fn names()"]),
        ("scheduler/src/strategy/broker.rs", &["BrokerRule {", "BUILT_IN", "fn looks_at", "match self {"]),
        ("brokers/src/allocation/allocator.rs", &["fn least", "fn choose"]),
        ("brokers/src/broker.rs", &["trait Broker"]),
        ("brokers/src/table.rs", &["fn broker", "match rules.rule"]),
        (
            "brokers/src/learning/rule.rs",
            &["trait Rule", "fn map", "fn ended", "fn lost", "fn known", "fn recollect"],
        ),
        ("brokers/src/learning/rules.rs", &["fn rule"]),
        ("scheduler/src/strategy/opaque.rs", &["DispatchRule {", "fn means"]),
        ("protocol/src/codec.rs", &["fn every_kind", "WIRE_VERSION"]),
        ("simulator/src/faults/liar.rs", &["fn named"]),
        ("scheduler/src/strategy/nature.rs", &["pub struct Nature", "fn nature"]),
        ("protocol/src/families.rs", &["fn begin"]),
        ("protocol/src/engine/family.rs", &["trait Family", "fn is_lawful"]),
        ("protocol/src/engine/transfers.rs", &["fn take_known", "fn keep_custody"]),
        ("protocol/src/core.rs", &["fn grant_transfer"]),
    ] {
        let text = read(file);
        let missing: Vec<&&str> = names.iter().filter(|name| !text.contains(**name)).collect();
        assert!(missing.is_empty(), "{file} has no {missing:?}");
    }
}
