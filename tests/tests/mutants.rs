//! What `docs/MUTANTS.md` says is so: each check has a mistake that it must meet and a test that is there and shows it,
//! and each mistake, check and claim that the code names has a row.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use claims::CLAIMS;
use stealgrid_tests::{quoted, rows, rust_files};

const HEADER: [&str; 5] = ["check", "would catch", "mistake built in", "how often", "test"];

/// An enum as the tables name it, where it is, and its name there. All its variants must be in the tables.
const ENUMS: [(&str, &str, &str); 13] = [
    ("Mutant", "protocol/src/mutant.rs", "Mutant"),
    ("Mistake", "simulator/src/faults/scenario.rs", "Mistake"),
    ("Check", "simulator/src/faults/watch.rs", "Check"),
    ("Violation", "simulator/src/checks.rs", "Violation"),
    ("invariants::Violation", "scheduler/src/ideal/invariants.rs", "Violation"),
    ("audit::Check", "operation/src/audit.rs", "Check"),
    ("handover_search::Fault", "protocol/tests/handover_search.rs", "Fault"),
    ("gang_search::Mistake", "protocol/tests/gang_search.rs", "Mistake"),
    ("take_over_model::Mistake", "protocol/tests/take_over_model/main.rs", "Mistake"),
    ("Slip", "scheduler/tests/exchange_twin/mod.rs", "Slip"),
    ("broker_twin::Slip", "brokers/tests/broker_twin/mod.rs", "Slip"),
    ("overlay_world::Mistake", "overlay/tests/world.rs", "Mistake"),
    ("waits::Mistake", "analysis/src/waits/groups.rs", "Mistake"),
];

/// What makes a node with the feature `mutant` go wrong, as the tables and the code name it.
const OF_NODES: &str = "STEALGRID_MUTANT=";

/// What the code has, to be held against the tables.
#[derive(Clone, Default)]
struct Code {
    /// Mistakes and checks, as the tables name them.
    names: BTreeSet<String>,
    /// Claims, and the mistake of each.
    claims: BTreeMap<String, String>,
    /// Tests by file.
    tests: BTreeMap<String, BTreeSet<String>>,
}

impl Code {
    fn of_the_workspace() -> Code {
        let mut code = Code::default();
        for (name, file, of) in ENUMS {
            let variants = variants(&read(file), of);
            assert!(variants.len() > 2, "{file} has no enum {of}");
            let mistakes = variants.into_iter().filter(|variant| variant != "None");
            code.names.extend(mistakes.map(|variant| format!("{name}::{variant}")));
        }
        for (file, text) in sources() {
            if file.starts_with("node/src") && text.contains("\"STEALGRID_MUTANT\"") {
                // Arms of a match, and comparisons.
                let befores = ["\n                Some(\"", "as_deref() == Some(\"", "mistake == \""];
                let words = befores.into_iter().flat_map(|before| after(&text, before));
                code.names.extend(words.map(|word| format!("{OF_NODES}{word}")));
            }
            code.tests.insert(file, tests(&text));
        }
        code.claims = CLAIMS.iter().map(|claim| (claim.name.to_string(), claim.mutant.to_string())).collect();
        code
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All Rust files of the members of the workspace, with their text.
fn sources() -> Vec<(String, String)> {
    let workspace: toml::Table = read("Cargo.toml").parse().unwrap();
    let members = workspace["workspace"]["members"].as_array().unwrap();
    rust_files(members.iter().map(|member| member.as_str().unwrap()))
        .into_iter()
        .map(|path| path.to_str().unwrap().to_string())
        .map(|name| (name.clone(), read(&name)))
        .collect()
}

/// The variants of an enum, as rustfmt writes them: a level deeper than the enum.
fn variants(source: &str, name: &str) -> Vec<String> {
    let word = |line: &str| line.chars().take_while(|c| c.is_alphanumeric()).collect::<String>();
    let words = format!("enum {name} {{");
    let is_head = |line: &&str| line.ends_with(&words) && !line.trim_start().starts_with("//");
    let mut lines = source.lines().skip_while(|line| !is_head(line));
    let Some(head) = lines.next() else { return Vec::new() };
    let depth = head.len() - head.trim_start().len();
    let inside = lines.take_while(|line| *line != format!("{}}}", &head[..depth]));
    let indent = " ".repeat(depth + 4);
    let of_enum = inside.filter_map(|line| line.strip_prefix(&indent));
    of_enum.filter(|line| line.starts_with(char::is_uppercase)).map(word).collect()
}

/// The tests in a source: what has `#[test]` among its attributes.
fn tests(source: &str) -> BTreeSet<String> {
    let (mut found, mut is_test) = (BTreeSet::new(), false);
    for line in source.lines().map(str::trim_start) {
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn ")) {
            let name = rest.split(['(', '<']).next().unwrap();
            if std::mem::take(&mut is_test) {
                found.insert(name.to_string());
            }
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            is_test = false;
        }
    }
    found
}

/// Words that stand between this and the next quote.
fn after<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next())
}

fn is_claim(word: &str) -> bool {
    word.strip_prefix('Q').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// What the tables of a page say that is not so, or do not say.
fn problems(page: &str, code: &Code) -> Vec<String> {
    let mut problems = Vec::new();
    let (mut named, mut shown, mut seen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for row in rows(page, &HEADER) {
        let about = row.first().copied().unwrap_or_default();
        if row.len() != HEADER.len() || row.iter().any(|cell| cell.is_empty() || cell.contains("@@")) {
            problems.push(format!("the row of {about} is not whole"));
            continue;
        }
        if !seen.insert((row[0], row[2], row[4])) {
            problems.push(format!("the row of {about} is there twice"));
        }
        let names = row[..3].iter().flat_map(|cell| quoted(cell));
        for name in names.filter(|name| name.contains("::") || name.starts_with(OF_NODES) || is_claim(name)) {
            if !code.names.contains(name) && !code.claims.contains_key(name) {
                problems.push(format!("there is no {name}"));
            }
            if code.claims.get(name).is_some_and(|mistake| mistake != row[2]) {
                problems.push(format!("the mistake of {name} is: {}", code.claims[name]));
            }
            named.insert(name);
        }
        let mut file = None;
        for word in quoted(row[4]) {
            if word.ends_with(".rs") {
                file = Some(word);
            } else if let Some(file) = file {
                if !code.tests.get(file).is_some_and(|tests| tests.contains(word)) {
                    problems.push(format!("there is no test {word} in {file}"));
                }
                shown.insert((file, word));
            }
        }
        if file.is_none() || quoted(row[4]).all(|word| word.ends_with(".rs")) {
            problems.push(format!("the row of {about} names no test"));
        }
    }
    let known = code.names.iter().chain(code.claims.keys());
    problems
        .extend(known.filter(|name| !named.contains(name.as_str())).map(|name| format!("{name} has no row")));
    for (file, tests) in &code.tests {
        let mutants = tests.iter().filter(|test| test.starts_with("mutant_"));
        let missing = mutants.filter(|test| !shown.contains(&(file.as_str(), test.as_str())));
        problems.extend(missing.map(|test| format!("the test {test} of {file} is in no row")));
    }
    problems
}

#[test]
fn every_check_has_a_mistake_that_it_meets_in_a_test_that_is_there() {
    let (page, code) = (read("docs/MUTANTS.md"), Code::of_the_workspace());
    assert!(code.names.len() > 100 && code.claims.len() >= 20, "{} names", code.names.len());
    assert!(code.tests.values().map(BTreeSet::len).sum::<usize>() > 1000, "tests are found");
    let problems = problems(&page, &code);
    assert!(problems.is_empty(), "docs/MUTANTS.md:\n{}", problems.join("\n"));
}

/// Those without one are listed, too.
#[test]
fn every_fuzz_target_is_named() {
    let page = read("docs/MUTANTS.md");
    let source = read("fuzz/src/targets/mod.rs");
    let targets: Vec<&str> = after(&source, "Target { name: \"").collect();
    assert!(targets.len() >= 9, "{targets:?}");
    let missing: Vec<&&str> = targets.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/MUTANTS.md does not name {missing:?}");
}

/// What is wrong with the parts of M-CISNE that a page has: each is shown by tests that are there, or by another page, or is not here.
fn unshown(page: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in rows(page, &["part", "here", "shown by"]) {
        let [part, here, shown] = row[..] else {
            wrong.push(format!("the row of {row:?} is not whole"));
            continue;
        };
        let names: Vec<&str> =
            quoted(shown).filter(|word| word.contains('_') && !word.contains(['/', '='])).collect();
        wrong.extend(
            names
                .iter()
                .filter(|name| !tests.contains(**name))
                .map(|name| format!("{part}: no test is {name}")),
        );
        let elsewhere = ["](M-CISNE-", ".rs`", "the same"].iter().any(|words| shown.contains(words));
        if names.is_empty() && !elsewhere && !here.starts_with("not here") {
            wrong.push(format!("nothing shows {part}"));
        }
    }
    wrong
}

#[test]
fn each_part_of_m_cisne_is_shown_by_a_test_that_is_there_or_by_a_page() {
    let page = read("docs/M-CISNE.md");
    let all: BTreeSet<String> = sources().iter().flat_map(|(_, text)| tests(text)).collect();
    assert_eq!(rows(&page, &["part", "here", "shown by"]).len(), 31);
    assert_eq!(unshown(&page, &all), [""; 0]);
}

#[test]
fn mutant_a_part_of_m_cisne_that_nothing_shows_is_found() {
    let tests = ["it_holds".to_string()].into();
    let found = |row: &str| unshown(&format!("| part | here | shown by |\n|---|---|---|\n{row}\n"), &tests);
    assert_eq!(found("| one | `x` | `it_holds`; study |"), [""; 0]);
    assert_eq!(found("| one | not here | - |"), [""; 0]);
    assert_eq!(found("| one | `x` | [study](M-CISNE-STUDY.md) |"), [""; 0]);
    assert_eq!(found("| one | `x` | `it_held` |"), ["one: no test is it_held"]);
    assert_eq!(found("| one | `x` | - |"), ["nothing shows one"]);
}

#[test]
fn mutant_a_table_that_is_not_so_is_refused() {
    let code = Code {
        names: ["Mutant::Deaf", "Check::Lost", "STEALGRID_MUTANT=lose"].map(String::from).into(),
        claims: [("Q1".to_string(), "the bound is half".to_string())].into(),
        tests: [("a/b.rs".to_string(), ["it_holds", "mutant_it_is_seen"].map(String::from).into())].into(),
    };
    let head = "| check | would catch | mistake built in | how often | test |\n|---|---|---|---|---|\n";
    let deaf =
        "| `Check::Lost` | a loss | `Mutant::Deaf` | 3 of 4 | `a/b.rs`: `it_holds`, `mutant_it_is_seen` |\n";
    let node = "| audit | a loss | `STEALGRID_MUTANT=lose` | 1 of 1 | `a/b.rs`: `it_holds` |\n";
    let claim = "| `Q1` | a worse ratio | the bound is half | always | `a/b.rs`: `it_holds` |\n";
    let page = |rows: &[&str]| format!("# Mutants\n\n{head}{}\nAnd prose of `Mutant::Any`.\n", rows.concat());
    let found = |rows: &[&str]| problems(&page(rows), &code);

    assert_eq!(found(&[deaf, node, claim]), [""; 0]);
    assert_eq!(found(&[deaf, claim]), ["STEALGRID_MUTANT=lose has no row"]);
    assert_eq!(found(&[deaf, node]), ["Q1 has no row"]);
    let without_a_mistake = deaf.replace("`Mutant::Deaf`", "none");
    assert_eq!(found(&[&without_a_mistake, node, claim]), ["Mutant::Deaf has no row"]);
    let unknown = node.replace("audit", "`Check::Found`");
    assert_eq!(found(&[deaf, &unknown, claim]), ["there is no Check::Found"]);
    let unknown = claim.replace("`Q1`", "`Q1`, `Q2`");
    assert_eq!(found(&[deaf, node, &unknown]), ["there is no Q2"]);
    let other = claim.replace("half", "a third");
    assert_eq!(found(&[deaf, node, &other]), ["the mistake of Q1 is: the bound is half"]);
    let renamed = claim.replace("it_holds", "it_held");
    assert_eq!(found(&[deaf, node, &renamed]), ["there is no test it_held in a/b.rs"]);
    let moved = claim.replace("a/b.rs", "a/c.rs");
    assert_eq!(found(&[deaf, node, &moved]), ["there is no test it_holds in a/c.rs"]);
    let without_a_test = claim.replace(": `it_holds`", "");
    assert_eq!(found(&[deaf, node, &without_a_test]), ["the row of `Q1` names no test"]);
    let unfinished = claim.replace("always", "");
    assert_eq!(found(&[deaf, node, claim, &unfinished]), ["the row of `Q1` is not whole"]);
    assert_eq!(found(&[deaf, node, claim, claim]), ["the row of `Q1` is there twice"]);
    let hidden = deaf.replace(", `mutant_it_is_seen`", "");
    assert_eq!(found(&[&hidden, node, claim]), ["the test mutant_it_is_seen of a/b.rs is in no row"]);
}

/// What is read of sources.
#[test]
fn variants_and_tests_are_found() {
    let source = "pub(crate) enum Mistake {\n    /// Words.\n    One,\n    #[error(\"x\")]\n    Two {\n        At: u8,\n    },\n    \
                  Three(u8),\n}\nenum Other {\n    Four,\n}\n";
    assert_eq!(variants(source, "Mistake"), ["One", "Two", "Three"]);
    assert_eq!(variants(source, "Mist"), [""; 0]);
    let source = "#[test]\nfn one() {}\n\nfn helper() {}\n\n    #[test]\n    #[ignore = \"long\"]\n    // Why.\n    fn two(x in 1..2) {}\n\
                  #[tokio::test]\nasync fn three() {}\n#[test]\n\nmod other {}\nfn four() {}\n";
    assert_eq!(tests(source), ["one", "two", "three"].map(String::from).into());
}
