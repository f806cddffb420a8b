//! Every file under `configs/` is an experiment, and `configs/default.toml` says the truth about every key.
//!
//! The list of keys is asked of the parser itself: an unknown key makes it name the known ones.

use std::path::{Path, PathBuf};

use experiments::experiment::file::Written;
use experiments::experiment::{Experiment, Source, jobs};

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

fn resolve(path: &Path) -> Experiment {
    let written = Written::load(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Experiment::resolve(&written).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_file_is_an_experiment_whose_jobs_can_be_read() {
    let mut read = 0;
    let folders = [configs(), configs().join("m-cisne")];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "toml")) {
        let experiment = resolve(path);
        if let Source::Mix(logs) = &experiment.source
            && logs.iter().any(|log| !log.trace.exists())
        {
            stealgrid_tests::skipped(format_args!("the logs of {} are not there", path.display()));
            continue;
        }
        let jobs = jobs::read(&experiment).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!jobs.jobs.is_empty(), "{}", path.display());
        read += 1;
    }
    assert!(read >= 7, "only {read} files have jobs");
}

#[test]
fn the_file_of_defaults_agrees_with_the_code() {
    let file = resolve(&configs().join("default.toml"));

    let mut bare = Written { name: Some("default".to_string()), ..Written::default() };
    bare.grid.sizes = Some(vec![8, 16, 24, 32, 48, 64, 96]);
    bare.workload.trace = Some(configs().join("traces/seven-sites.swf"));
    let bare = Experiment::resolve(&bare).unwrap();

    assert_eq!(format!("{file:#?}"), format!("{bare:#?}"));
}

#[test]
fn the_file_of_defaults_has_a_line_for_every_key() {
    let text = std::fs::read_to_string(configs().join("default.toml")).unwrap();
    let mut section = String::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_string();
        } else if let Some((key, _)) = line.trim_start_matches("# ").split_once(" = ") {
            lines.push((section.clone(), key.to_string()));
        }
    }
    let is_table = |name: &str| text.contains(&format!("\n[{name}]\n"));
    let mut missing = Vec::new();
    let mut tables = vec![String::new()];
    while let Some(table) = tables.pop() {
        let header = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
        for key in known_keys(&header) {
            let name = if table.is_empty() { key.clone() } else { format!("{table}.{key}") };
            if is_table(&name) {
                tables.push(name);
            } else if !lines.contains(&(table.clone(), key)) {
                missing.push(name);
            }
        }
    }
    assert!(missing.is_empty(), "configs/default.toml does not show {missing:?}");
}

#[test]
fn each_key_in_a_comment_of_the_file_of_defaults_can_be_switched_on() {
    let text = std::fs::read_to_string(configs().join("default.toml")).unwrap();
    // A key, and the one that the file shows and that excludes it.
    let instead = [
        ("sites", "sizes"),
        ("logs", "trace"),
        ("bag", "trace"),
        ("generate", "trace"),
        ("origin", "deal"),
        ("matrix", "delay"),
        ("matrix_file", "delay"),
        ("coordinates", "delay"),
    ];
    // A key, and the one that it makes no sense without.
    let together = [("suspect_after", "heartbeat"), ("lease", "heartbeat")];
    let mut tried = 0;
    for commented in text.lines() {
        let Some((key, _)) = commented.strip_prefix("# ").and_then(|line| line.split_once(" = ")) else {
            continue;
        };
        if !key.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            continue;
        }
        let excluded = instead.iter().find(|(this, _)| *this == key).map(|(_, other)| format!("{other} = "));
        // Without a log there is nothing to deal.
        let is_trace = excluded.as_deref() == Some("trace = ");
        let also = together.iter().find(|(this, _)| *this == key).map(|(_, other)| format!("# {other} = "));
        let mut changed = String::new();
        for line in text.lines() {
            let gone = excluded.as_ref().is_some_and(|excluded| line.starts_with(excluded))
                || is_trace && line.starts_with("deal = ");
            let on = line == commented || also.as_ref().is_some_and(|also| line.starts_with(also));
            let line = if on { line.trim_start_matches("# ") } else { line };
            if !gone {
                changed += &format!("{line}\n");
            }
        }
        let of_commands = ["command", "environment", "memory", "conf", "partition", "account"];
        if of_commands.contains(&key) && changed.contains("\nby = \"timer\"") {
            // Timers have none of them.
            changed =
                changed.replace("\nby = \"timer\"", "\nby = \"slurm\"").replace("# command = ", "command = ");
        }
        if key == "matrix" {
            // The matrix in the comment is for two sites.
            changed = changed.replace("sizes = [8, 16, 24, 32, 48, 64, 96]", "sizes = [8, 16]");
        }
        if key == "correction" {
            // Only predictions are corrected, and only queues of "local" predict.
            changed = changed.replace("estimate = \"user\"", "estimate = \"avg2\"");
            changed = changed.replace("name = \"st:50\"", "name = \"local\"");
        }
        if ["local", "applications", "fairness", "programs"].contains(&key) {
            // They are of nodes that jobs share.
            let nodes = "sites = [{ name = \"site1\", nodes = 96 }]";
            changed = changed.replace("sizes = [8, 16, 24, 32, 48, 64, 96]", nodes);
            changed = changed.replace("name = \"st:50\"", "name = \"local\"");
        }
        let mut written: Written =
            toml::from_str(&changed).unwrap_or_else(|error| panic!("{commented}: {error}"));
        written.network.resolve_paths(&configs());

        Experiment::resolve(&written).unwrap_or_else(|error| panic!("{commented}: {error}"));

        tried += 1;
    }
    assert!(tried >= 12, "only {tried} keys are in comments");
}

/// The keys that may follow this beginning of a file.
fn known_keys(beginning: &str) -> Vec<String> {
    let error = toml::from_str::<Written>(&format!("{beginning}no_such_key = 1\n")).unwrap_err();
    let message = error.message();
    assert!(message.contains("unknown field `no_such_key`"), "{message}");
    let quoted: Vec<String> = message.split('`').skip(1).step_by(2).map(str::to_string).collect();
    quoted.into_iter().filter(|word| word != "no_such_key").collect()
}
