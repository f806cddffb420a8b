//! What `docs/CONSTANTS.md` says is so: each number is in the file that is named, as it is told, and from somewhere; each
//! margin of a claim has a row.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use stealgrid_tests::{quoted, rows};

const HEADER: [&str; 5] = ["constant", "value", "where", "from", "why"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Numbers of a text, without the commas and underscores inside them.
fn numbers(text: &str) -> Vec<f64> {
    let whole: String = text.replace('_', "");
    // A comma between digits is inside of a number, before a blank it is not.
    let bytes: Vec<char> = whole.chars().collect();
    let (mut found, mut number) = (Vec::new(), String::new());
    for (place, &character) in bytes.iter().enumerate() {
        let next_is_digit = bytes.get(place + 1).is_some_and(char::is_ascii_digit);
        let inside = !number.is_empty();
        match character {
            '0'..='9' => number.push(character),
            '.' if inside && next_is_digit => number.push(character),
            ',' if inside && next_is_digit => {}
            'e' if inside && bytes.get(place + 1) == Some(&'-') => number.push(character),
            '-' if number.ends_with('e') => number.push(character),
            _ => found.extend(std::mem::take(&mut number).parse::<f64>()),
        }
    }
    found.extend(number.parse::<f64>());
    found
}

/// Whether code stands in a text as it is, and not as a part of a longer name or number.
fn stands(text: &str, code: &str) -> bool {
    let is_more = |character: char| character.is_alphanumeric() || character == '_' || character == '.';
    text.match_indices(code).any(|(place, _)| {
        let before = text[..place].chars().next_back();
        let after = text[place + code.len()..].chars().next();
        let (first, last) = (code.chars().next().unwrap(), code.chars().next_back().unwrap());
        let longer =
            is_more(first) && before.is_some_and(is_more) || is_more(last) && after.is_some_and(is_more);
        !longer
    })
}

/// Lines of the files of claims that hold what a verdict depends on.
fn margins(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| {
        ["margin", "tolerance", "expected"].iter().any(|key| line.starts_with(key)) && line.contains(" = ")
    })
}

/// What the tables of a page say that is not so, or do not say; `files` are all that they may name.
fn problems(page: &str, files: &BTreeMap<String, String>) -> Vec<String> {
    let mut problems = Vec::new();
    let (mut shown, mut names) = (BTreeSet::new(), BTreeSet::new());
    for row in rows(page, &HEADER) {
        let name = row[0];
        if row.len() != HEADER.len() || row.iter().any(|cell| cell.is_empty()) {
            problems.push(format!("the row of {name} is not whole"));
            continue;
        }
        let (value, place, from, why) = (row[1], row[2], row[3], row[4]);
        if !names.insert((name, place)) {
            problems.push(format!("{name} is there twice"));
        }
        let (mut file, mut fragments) = (None, Vec::new());
        for word in quoted(place) {
            if word.ends_with(".rs") || word.ends_with(".toml") {
                file = Some(word);
            } else if let Some(file) = file {
                if !files.get(file).is_some_and(|text| stands(text, word)) {
                    problems.push(format!("{name}: {file} has no {word}"));
                }
                fragments.push(word);
                shown.insert((file, word));
            }
        }
        // What a reader is told is what the code says: but for units, some as shares of one.
        let told = numbers(value);
        let code: Vec<f64> = fragments.iter().flat_map(|fragment| numbers(fragment)).collect();
        let is_told =
            |number: &f64| code.iter().any(|code| code == number || (code * 100.0 - number).abs() < 1e-9);
        if fragments.is_empty() || told.is_empty() || !told.iter().all(is_told) {
            problems.push(format!("{name} is {value}, and {fragments:?} does not say so"));
        }
        let has_a_year = || numbers(why).iter().any(|&year| (1950.0..2100.0).contains(&year));
        let is_known = match from {
            "given" => why.starts_with("by ") || why.starts_with("as "),
            "published" => has_a_year(),
            "measured" => quoted(why).next().is_some(),
            "chosen" => why.len() > 5,
            _ => false,
        };
        if !is_known {
            problems.push(format!("{name} is {from}: {why}"));
        }
    }
    for (file, text) in files.iter().filter(|(file, _)| file.starts_with("configs/theory/")) {
        let missing = margins(text).filter(|line| !shown.contains(&(file.as_str(), line)));
        let missing: BTreeSet<&str> = missing.collect();
        problems.extend(missing.into_iter().map(|line| format!("{line} of {file} has no row")));
    }
    problems
}

#[test]
fn every_constant_is_where_it_is_said_to_be_and_from_somewhere() {
    let page = std::fs::read_to_string(root().join("docs/CONSTANTS.md")).unwrap();
    let table = rows(&page, &HEADER);
    assert!(table.len() >= 60, "{} rows", table.len());
    let named = table.iter().flat_map(|row| quoted(row[2])).filter(|word| word.contains('/'));
    let claims = std::fs::read_dir(root().join("configs/theory")).unwrap();
    let claims =
        claims.map(|entry| format!("configs/theory/{}", entry.unwrap().file_name().to_str().unwrap()));
    let files: BTreeSet<String> = named.map(str::to_string).chain(claims).collect();
    let read = |file: String| Some((file.clone(), std::fs::read_to_string(root().join(file)).ok()?));
    let files: BTreeMap<String, String> = files.into_iter().filter_map(read).collect();
    assert!(files.len() > 40, "{} files", files.len());
    let problems = problems(&page, &files);
    assert!(problems.is_empty(), "docs/CONSTANTS.md:\n{}", problems.join("\n"));
}

#[test]
fn mutant_a_table_that_is_not_so_is_refused() {
    let files = [
        ("a/b.rs", "/// So many.\npub const MOST: usize = 2_000;\nconst SHARE: f64 = 0.05; // of 7\n"),
        ("configs/theory/q01.toml", "claim = \"x = 1\"\n[full]\nmargin = 0.5\nseeds = 3\n"),
    ];
    let files: BTreeMap<String, String> =
        files.map(|(name, text)| (name.to_string(), text.to_string())).into();
    let head = "| constant | value | where | from | why |\n|---|---|---|---|---|\n";
    let most = "| most | 2,000 | `a/b.rs`: `MOST: usize = 2_000` | chosen | it is enough |\n";
    let share = "| share | 5 % | `a/b.rs`: `SHARE: f64 = 0.05` | published | Somebody 1999 |\n";
    let margin =
        "| margin | 0.5 % | `configs/theory/q01.toml`: `margin = 0.5` | measured | `stealgrid theory` |\n";
    let found = |rows: &[&str]| problems(&format!("{head}{}\n", rows.concat()), &files);

    assert_eq!(found(&[most, share, margin]), [""; 0]);
    assert_eq!(found(&[most, share]), ["margin = 0.5 of configs/theory/q01.toml has no row"]);
    let other = most.replace("2,000", "3,000");
    assert_eq!(
        found(&[&other, share, margin]),
        ["most is 3,000, and [\"MOST: usize = 2_000\"] does not say so"]
    );
    let changed = most.replace("2,000", "200").replace("2_000", "200");
    assert_eq!(found(&[&changed, share, margin]), ["most: a/b.rs has no MOST: usize = 200"]);
    let shorter = share.replace("0.05", "0.0").replace("5 %", "0 %");
    assert_eq!(found(&[most, &shorter, margin]), ["share: a/b.rs has no SHARE: f64 = 0.0"]);
    let moved = most.replace("a/b.rs", "a/c.rs");
    assert_eq!(found(&[&moved, share, margin]), ["most: a/c.rs has no MOST: usize = 2_000"]);
    let nowhere = most.replace("chosen", "known");
    assert_eq!(found(&[&nowhere, share, margin]), ["most is known: it is enough"]);
    let by_nobody = share.replace("Somebody 1999", "somebody");
    assert_eq!(found(&[most, &by_nobody, margin]), ["share is published: somebody"]);
    let without_a_command = margin.replace("`stealgrid theory`", "tried");
    assert_eq!(found(&[most, share, &without_a_command]), ["margin is measured: tried"]);
    let given = most.replace("chosen | it is enough", "given | enough");
    assert_eq!(found(&[&given, share, margin]), ["most is given: enough"]);
    assert_eq!(found(&[most, most, share, margin]), ["most is there twice"]);
}

#[test]
fn numbers_are_read_as_people_and_as_compilers_write_them() {
    assert_eq!(numbers("2,000, 3.5 % and 1_000.25; 1e-9."), [2000.0, 3.5, 1000.25, 1e-9]);
    assert_eq!(numbers("Span::from_secs(10)"), [10.0]);
    assert!(stands("MOST: usize = 20;", "MOST: usize = 20"));
    assert!(!stands("MOST: usize = 200;", "MOST: usize = 20"));
    assert!(!stands("ALMOST: usize = 20;", "MOST: usize = 20"));
}
