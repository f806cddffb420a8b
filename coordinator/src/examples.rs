//! Examples below the help of each command, and in its man page.
//!
//! They stand here and not with their commands, as `run` and `node` are in crates that do not know the program's name. A test parses
//! each of them, and sees that no command is without one.

use clap::Command;
use experiments::terminal::columns;
use outputs::table::folded;

/// Examples of a command, or of one below it, without the name of the program; what a shell does with the output may follow.
const EXAMPLES: [(&str, &[&str]); 48] = [
    (
        "simulate",
        &[
            "simulate configs/quickstart.toml --delay 30m --out out/slow",
            "simulate --sites 32,64,128 --trace my-log.swf --strategy broker:mst --delay 30s",
        ],
    ),
    (
        "run",
        &[
            "run configs/quickstart.toml",
            "run configs/quickstart.toml --clock scaled:4000 --serve 127.0.0.1:8080",
        ],
    ),
    ("attach", &["attach out/quickstart", "attach --stop out/quickstart"]),
    (
        "sweep",
        &[
            "sweep configs/sweeps/small.toml --dry-run",
            "sweep configs/sweeps/both-rules.toml --traces logs --jobs 2",
        ],
    ),
    ("sweep plan", &["sweep plan configs/sweeps/small.toml --out out/small.plan --chunk 48"]),
    ("sweep work", &["sweep work out/small.plan 0"]),
    ("sweep collect", &["sweep collect out/small.plan --out out/small.db"]),
    ("play", &["play", "play configs/published.toml --serve 0.0.0.0:8080"]),
    (
        "compare",
        &[
            "compare out/first out/slow --page out/two.html",
            "compare out/quickstart --with configs/quickstart.toml",
        ],
    ),
    ("explain", &["explain out/first 471", "explain out/first 471 --full"]),
    ("rerun", &["rerun out/first"]),
    ("serve", &["serve out/first", "serve out/first --serve 127.0.0.1:0"]),
    (
        "report",
        &["report out/small.db --plots svg", "report docs/data/both-rules.csv.zst --out out/both-rules"],
    ),
    (
        "export",
        &[
            "export out/small.db --columns \"wait_*\" --out out/small.csv",
            "export out/small.db --format study --out small.csv.zst",
        ],
    ),
    ("study", &["study my-log.md.in", "study docs/studies/levels.md.in --check --slice 24 --traces logs"]),
    ("reproduce", &["reproduce docs/BOTH-RULES.md", "reproduce docs/BOTH-RULES.md --slice 24 --traces logs"]),
    ("trace", &["trace info my-log.swf", "trace convert sacct.txt --to swf --out my-log.swf"]),
    ("trace info", &["trace info my-log.swf.gz", "trace info jobs.csv --columns configs/columns/pm100.toml"]),
    (
        "trace validate",
        &["trace validate my-log.swf", "trace validate my-log.swf --widest 128 --missing-estimate run-time"],
    ),
    (
        "trace convert",
        &[
            "trace convert sacct.txt --to swf --out my-log.swf",
            "trace convert my-log.swf --week 3 --anonymize --out week.swf",
        ],
    ),
    (
        "trace generate",
        &[
            "trace generate --sites 32,64,128 --jobs 3000 --load 0.7 --seed 7 --out my-log.swf",
            "trace generate --processors 128 --jobs 1000 --estimates tsafrir --out one.swf",
        ],
    ),
    ("theory", &["theory configs/quickstart.toml", "theory --sites 32,64,128 --delay 30s"]),
    ("theory check", &["theory check --quick --against docs/data/theory-quick.json"]),
    ("theory show", &["theory show docs/data/theory.json --format markdown"]),
    ("power", &["power configs/published.toml --seed 1000003"]),
    ("genetic", &["genetic --options configs/genetic/table-ii.toml --out out/genetic"]),
    ("learning", &["learning --rounds 30 --seed 1 --out out/learning.csv.zst"]),
    (
        "predict",
        &[
            "predict my-log.swf --sites 128 --out out/predicted",
            "predict --from docs/data/prediction/kth-sp2",
        ],
    ),
    (
        "node",
        &[
            "node --site 1 --grid 2,8 --http 127.0.0.1:9101 --control-token demo.token",
            "node --register http://10.9.0.1:8080 --grid-key grid.key --control-token control.token",
        ],
    ),
    (
        "submit",
        &["submit http://127.0.0.1:9101 --control-token demo.token --processors 2 --time 1h --run-time 10m"],
    ),
    ("health", &["health http://127.0.0.1:9101"]),
    ("key", &["key token demo.token", "key new keys/grid.key"]),
    ("key new", &["key new keys/grid.key"]),
    ("key token", &["key token keys/control.token"]),
    ("key identity", &["key identity site1.key"]),
    ("key id", &["key id site1.key"]),
    ("key fingerprint", &["key fingerprint keys/grid.key"]),
    ("journal", &["journal check data", "journal show data | head"]),
    ("journal check", &["journal check data"]),
    ("journal show", &["journal show data | head"]),
    ("swarm", &["swarm --seeds 1000", "swarm --with brokers --from 1000 --seeds 100"]),
    ("chaos", &["chaos configs/chaos.toml --seeds 5 --parallel 4"]),
    ("bench", &["bench steal", "bench simulate"]),
    ("doctor", &["doctor", "doctor --json"]),
    ("docs", &["docs", "docs --open"]),
    ("licenses", &["licenses | grep MIT"]),
    (
        "completions",
        &[
            "completions bash > ~/.local/share/bash-completion/completions/stealgrid",
            "completions fish | source",
        ],
    ),
    ("man", &["man --out man"]),
];

/// The program with examples below the help of its commands.
pub fn below(program: Command) -> Command {
    EXAMPLES.iter().fold(program, |program, (path, examples)| {
        let mut text = String::from(if examples.len() == 1 { "Example:" } else { "Examples:" });
        for example in *examples {
            text += &format!("\n  stealgrid {example}");
        }
        set(program, &mut path.split(' '), &folded(&text, columns()))
    })
}

fn set<'a>(command: Command, path: &mut impl Iterator<Item = &'a str>, text: &str) -> Command {
    match path.next() {
        Some(name) => command.mut_subcommand(name, |below| set(below, path, text)),
        None => command.after_help(text.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// What the program is given: without what the shell does, and without its quotes.
    fn words(example: &str) -> Vec<String> {
        let typed = example.split(" > ").next().unwrap().split(" | ").next().unwrap();
        std::iter::once("stealgrid")
            .chain(typed.split(' '))
            .map(|word| word.trim_matches('"').to_string())
            .collect()
    }

    /// Examples that the parser refuses, or that are of another command.
    fn refused<'a>(examples: &[(&'a str, &[&'a str])]) -> Vec<&'a str> {
        let of_another = |path: &str, example: &str| !format!("{example} ").starts_with(&format!("{path} "));
        let is_wrong = |path: &str, example: &str| {
            of_another(path, example) || Cli::command().try_get_matches_from(words(example)).is_err()
        };
        let all =
            examples.iter().flat_map(|(path, examples)| examples.iter().map(move |example| (path, *example)));
        all.filter(|(path, example)| is_wrong(path, example)).map(|(_, example)| example).collect()
    }

    #[test]
    fn each_command_has_one_or_two_examples_that_parse() {
        let of: BTreeMap<&str, usize> =
            EXAMPLES.iter().map(|(path, examples)| (*path, examples.len())).collect();
        assert_eq!(of.len(), EXAMPLES.len(), "a command stands there twice");
        assert!(of.values().all(|count| (1..=2).contains(count)), "{of:?}");
        let program = Cli::command();
        let without: Vec<&str> = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set() && !of.contains_key(command.get_name()))
            .map(Command::get_name)
            .collect();
        assert!(without.is_empty(), "no example of {without:?}");
        assert_eq!(refused(&EXAMPLES), Vec::<&str>::new());
    }

    #[test]
    fn mutant_an_example_that_does_not_parse_is_noticed() {
        let wrong: [(&str, &[&str]); 3] = [
            ("simulate", &["simulate configs/quickstart.toml --delai 5m"]),
            ("run", &["simulate configs/quickstart.toml"]),
            ("key new", &["key new | cat"]),
        ];
        assert_eq!(refused(&wrong).len(), 3);
    }
}
