//! What the compose files, the manifests and their page say agrees with the programs and with each other.
//!
//! Nothing is started here; `.ci/compose` does that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _, Parser as _};
use coordinator::cli::Cli;
use experiments::experiment::Experiment;
use experiments::experiment::file::Written;

const COMPOSE: [&str; 4] =
    ["docker-compose.yml", "compose.faults.yml", "compose.delay.yml", "compose.swarm.yml"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All words of capitals, digits and underscores in a text.
fn words(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    text.split(|letter| !is_part(letter)).collect()
}

/// Names of variables that a command or one of its own reads.
fn variables(command: &Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(|arg| Some(arg.get_env()?.to_str()?.to_string())));
    for command in command.get_subcommands() {
        variables(command, known);
    }
}

/// The items of a block list of YAML that follows a line, as they stand there.
fn items<'a>(text: &'a str, line: &str) -> Vec<&'a str> {
    let mut lines = text.lines().skip_while(|found| found.trim() != line).skip(1).map(str::trim);
    let mut items = Vec::new();
    while let Some(item) = lines.next().and_then(|line| line.strip_prefix("- ")) {
        items.push(item);
    }
    items
}

#[test]
fn programs_read_every_variable_that_containers_are_given() {
    let mut known = BTreeSet::new();
    variables(&Cli::command(), &mut known);
    let mut given = 0;
    for path in COMPOSE.into_iter().chain(["kubernetes/base/sites.yaml", "kubernetes/base/coordinator.yaml"])
    {
        for name in words(&read(path)).into_iter().filter(|word| word.starts_with("STEALGRID_")) {
            assert!(known.contains(name), "{path} gives {name}, which nothing reads");
            given += 1;
        }
    }
    assert!(given >= 15, "only {given} variables were found");
}

#[test]
fn command_lines_of_containers_are_understood() {
    for (path, line) in [("docker-compose.yml", "command:"), ("kubernetes/base/coordinator.yaml", "args:")] {
        let text = read(path);
        let items = items(&text, line);
        assert!(items.len() >= 5, "{path}: {items:?}");
        if let Err(error) = Cli::try_parse_from(std::iter::once("stealgrid").chain(items)) {
            panic!("{path}\n{error}");
        }
    }
}

#[test]
fn the_page_has_every_variable_of_the_compose_files_with_its_default() {
    let page = read("docs/COMPOSE.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let mut seen = BTreeSet::new();
    for path in COMPOSE {
        for place in read(path).split("${").skip(1) {
            let (name, rest) =
                place.split_once(":-").unwrap_or_else(|| panic!("{path}: no default: {place}"));
            let default = rest.split('}').next().unwrap();
            // How the image of somebody else is called is no matter of the page.
            if ["PROMETHEUS_IMAGE", "GRAFANA_IMAGE", "DOCKERFILE"].contains(&name) {
                continue;
            }
            let row = rows.iter().find(|row| words(row.split(" | ").next().unwrap()).contains(name));
            let row = row.unwrap_or_else(|| panic!("docs/COMPOSE.md has no row for {name} of {path}"));
            // The overlays have experiments of their own.
            let is_own = path == "docker-compose.yml" || name != "CONFIG";
            assert!(!is_own || row.contains(default), "{name} is {default:?} in {path}, and not in: {row}");
            seen.insert(name.to_string());
        }
    }
    assert!(seen.len() >= 15, "{seen:?}");
}

#[test]
fn the_experiment_in_the_cluster_is_that_of_compose() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("compose.toml");
    let configs = root().join("configs").canonicalize().unwrap();
    let text =
        read("kubernetes/base/experiment.toml").replace("/configs/", &format!("{}/", configs.display()));
    std::fs::write(&path, text).unwrap();

    let mut there = Written::load(&path).unwrap();
    let mut here = Written::load(&configs.join("compose.toml")).unwrap();
    for written in [&mut there, &mut here] {
        written.run.connect_timeout = None;
        written.workload.trace = written.workload.trace.as_ref().map(|trace| trace.canonicalize().unwrap());
    }

    let [there, here] = [there, here].map(|written| format!("{:#?}", Experiment::resolve(&written).unwrap()));
    assert_eq!(there, here);
}
