//! Documents tell the truth: each `stealgrid` command line in them is understood, and each link leads to a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use coordinator::cli::Cli;
use operation::serve;
use report::quantity::grouped;
use stealgrid_tests::rows;

use crate::PROGRAM;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All Markdown files at the top, in `docs/` and in `configs/`, each with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let mut documents = Vec::new();
    for folder in ["", "docs", "configs"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "md" || end == "toml") {
                let text = std::fs::read_to_string(&path).unwrap();
                documents.push((path, text));
            }
        }
    }
    documents
}

/// What stands after `stealgrid` on a line that is a command, without comments.
fn command(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start_matches("#   ").trim();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let rest = match line.strip_prefix("cargo run --release -p stealgrid -- ") {
        Some(rest) => rest,
        None => line.strip_prefix("stealgrid ")?,
    };
    let rest = rest.split("  ").next().unwrap_or(rest);
    let rest = rest.split(" # ").next().unwrap_or(rest);
    // Where its output goes is the shell's matter.
    let rest = rest.split(" > ").next().unwrap_or(rest);
    let words = external::Command::parse(rest).unwrap_or_else(|error| panic!("{line}: {error}"));
    Some(serde_json::from_value(serde_json::to_value(words).unwrap()).unwrap())
}

#[test]
fn every_command_line_is_understood() {
    let mut understood = 0;
    for (path, text) in documents() {
        let is_experiment = path.extension().is_some_and(|end| end == "toml");
        let mut fenced = false;
        for line in text.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
            }
            let shown = fenced || (is_experiment && line.starts_with("#   "));
            let Some(words) = command(line).filter(|_| shown) else { continue };
            if let Err(error) = Cli::try_parse_from(std::iter::once("stealgrid".to_string()).chain(words)) {
                assert!(!error.use_stderr(), "{}: {line}\n{error}", path.display());
            }
            understood += 1;
        }
    }
    assert!(understood >= 10, "only {understood} command lines were found");
}

#[test]
fn every_link_leads_to_a_file() {
    let mut followed = 0;
    for (path, text) in documents() {
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if link.contains("://") || file.is_empty() {
                continue;
            }
            let target = path.parent().unwrap().join(file);
            assert!(target.exists(), "{} links to {link}, which is not there", path.display());
            followed += 1;
        }
    }
    assert!(followed >= 10, "only {followed} links were found");
}

/// The limits of the page in docs/OPERATIONS.md are those of its door, and none is left out that Prometheus is told of.
#[test]
fn the_table_of_the_limits_of_the_page_is_what_its_door_has() {
    let document = std::fs::read_to_string(root().join("docs/OPERATIONS.md")).unwrap();
    let table = rows(&document, &["limit", "", "beyond it", "metric"]);
    let seconds = |time: Duration| format!("{} s", time.as_secs_f64());
    let (request, unread) = (seconds(serve::PATIENCE.request), seconds(serve::PATIENCE.unread));
    let head = grouped(node::http::HEAD_BYTES_MAX as u64);
    let [body, registering] =
        [serve::BODY_BYTES_MAX, operation::registration::BODY_BYTES_MAX].map(|bytes| grouped(bytes as u64));
    let share = match serve::door::SHARE_OF_FILES {
        4 => "a quarter",
        share => panic!("say in words what one of {share} is"),
    };
    let expected = [
        ("connections", format!("{}, and {share} of the files ", serve::CONNECTIONS_MAX), "connections"),
        ("time for the headers of a request, and between two", request.clone(), "head_time"),
        ("headers of a request", format!("{head} bytes"), ""),
        ("body of a request", format!("{body} bytes; {registering} of a node that registers"), "body_bytes"),
        ("time for it", request, "body_time"),
        ("time without taking anything of an answer", format!("{unread}, once "), "unread"),
        (
            "pages that look on",
            format!("{}, and half of the connections", serve::LISTENERS_MAX),
            "stealgrid_run_pages_refused_total",
        ),
        ("names by which it is asked (`Host`)", "addresses, ".to_string(), "host"),
    ];
    assert_eq!(table.len(), expected.len(), "{table:?}");
    for (row, (limit, much, metric)) in table.iter().zip(&expected) {
        assert_eq!(row[0], *limit);
        // Where more is explained, that follows.
        let same = if much.ends_with(' ') { row[1].starts_with(much.as_str()) } else { row[1] == *much };
        assert!(same, "{limit}: docs/OPERATIONS.md says {}, the door {much}", row[1]);
        let told = match *metric {
            "" => String::new(),
            name if name.starts_with("stealgrid_") => format!("`{name}`"),
            reason => format!("`{{reason=\"{reason}\"}}`"),
        };
        assert_eq!(row[3], told, "{limit}");
    }
    let told = expected.iter().map(|(_, _, metric)| *metric);
    let told: BTreeSet<&str> = told.filter(|reason| serve::metrics::DOOR.contains(reason)).collect();
    assert_eq!(told, BTreeSet::from(serve::metrics::DOOR), "a reason has no row");
}

/// The table of docs/COMPARISON.md is that of the runs stored beside it.
#[test]
fn the_table_of_what_a_comparison_finds_is_that_of_its_data() {
    let document = std::fs::read_to_string(root().join("docs/COMPARISON.md")).unwrap();
    let file = std::fs::File::open(root().join("docs/data/power.csv.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(file).unwrap()).unwrap();
    assert!(text.starts_with("# commit "), "the data do not say where they come from");
    let mut kinds: Vec<(String, Vec<[bool; 3]>)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let (kind, rest) = line.strip_prefix('"').unwrap().split_once("\",").unwrap();
        let fields: Vec<&str> = rest.split(',').collect();
        // Seed, how late, simulations as far out, the same by the makespan alone and by means alone.
        let row = [fields[2] == "0", fields[3] == "0", fields[4] == "0"];
        match kinds.last_mut().filter(|(name, _)| name == kind) {
            Some((_, rows)) => rows.push(row),
            None => kinds.push((kind.to_string(), vec![row])),
        }
    }
    assert!(kinds.len() >= 10, "{} kinds", kinds.len());
    let (mut right, mut wrong, mut late) = (0, 0, 0);
    for (kind, rows) in &kinds {
        let share = |by: usize| 100.0 * rows.iter().filter(|row| row[by]).count() as f64 / rows.len() as f64;
        let [all, makespan, means] = [0, 1, 2].map(share);
        let expected = format!("| {kind} | {} | {all:.1} % | {makespan:.1} % | {means:.1} % |", rows.len());
        assert!(document.contains(&expected), "docs/COMPARISON.md has no row {expected}");
        // What was to be reached.
        let named =
            ["delay × 0", "delay × 0.5", "delay × 2", "st:0", "st-greedy:50", "common-pool", "steal:random"];
        if kind.starts_with("right") {
            right += 1;
            assert!(all <= 2.0, "{kind}: {all} %");
        } else if named.contains(&kind.as_str()) {
            wrong += 1;
            assert!(all >= 95.0, "{kind}: {all} %");
        } else if kind.starts_with("starts of") {
            late += 1;
            assert!(all >= 95.0 && means <= 2.0, "{kind}: {all} %, by means {means} %");
        }
        assert!(all >= means, "{kind}: a distribution takes something away");
        assert!(rows.len() >= 500, "{kind}");
    }
    assert_eq!((right, wrong, late), (3, 7, 1));
}

/// What docs/GENETIC.md says of the run stored beside it holds.
#[test]
fn what_is_said_of_genetic_allocation_is_what_its_data_say() {
    let text = std::fs::read_to_string(root().join("docs/data/genetic-kth.csv")).unwrap();
    let mut rows = std::collections::BTreeMap::new();
    for line in text.lines().skip(1) {
        let (name, cells) = line.split_once(',').unwrap();
        let cells: Vec<f64> = cells.split(',').map(|cell| cell.parse().unwrap()).collect();
        rows.insert(name.to_string(), cells);
    }
    assert_eq!(rows.len(), 14);
    let least = |place: usize, names: &[&str]| {
        names
            .iter()
            .min_by(|one, other| rows[**one][place].total_cmp(&rows[**other][place]))
            .unwrap()
            .to_string()
    };
    let all: Vec<&str> = rows.keys().map(String::as_str).collect();
    assert_eq!([1, 2, 3, 4].map(|place| least(place, &all)), ["laf", "spt", "spt", "spt"]);
    let genetic = ["b1", "b2", "b3", "b4", "c1", "c2", "c3"];
    assert_eq!([1, 2, 3, 4].map(|place| least(place, &genetic)), ["b1", "b3", "b2", "b3"]);
    assert!(genetic.iter().all(|name| rows[*name][9] < 0.0), "one is better than a1 in makespan");
    assert!(genetic[1..].iter().all(|name| [11, 13, 15].iter().all(|&place| rows[*name][place] > 35.0)));
    let over_chance =
        |name: &&str| [1, 2, 3, 4].iter().all(|&place| rows[*name][place] < rows["random"][place]);
    assert!(genetic[4..].iter().all(over_chance));
}

fn shown(arguments: &[&str]) -> String {
    let done = std::process::Command::new(PROGRAM)
        .current_dir(root())
        .args(["theory", "show", "docs/data/theory.json", "--format", "markdown"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// What docs/CLAIMS.md says of claims, and the file of all their cells, is what is stored. `STEALGRID_DOCS=write` writes it
/// there.
#[test]
fn the_tables_of_claims_are_those_of_their_data() {
    let (begin, end) = ("<!-- theory show --summary -->\n", "<!-- end -->");
    let path = root().join("docs/CLAIMS.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let expected = [before, begin, &shown(&["--summary"]), end, after].concat();
    let cells = root().join("docs/data/claims.txt");
    if std::env::var_os("STEALGRID_DOCS").is_some_and(|what| what == "write") {
        std::fs::write(&path, expected).unwrap();
        std::fs::write(&cells, shown(&[])).unwrap();
        return;
    }
    assert!(
        page == expected,
        "docs/CLAIMS.md is not made of docs/data/theory.json: STEALGRID_DOCS=write makes it"
    );
    assert!(
        std::fs::read_to_string(&cells).unwrap() == shown(&[]),
        "docs/data/claims.txt is not made of docs/data/theory.json: STEALGRID_DOCS=write makes it"
    );
}

/// The tables of learning are what is stored, and each that docs/LEARNING.md shows is one of them. `STEALGRID_DOCS=write`
/// writes the file.
#[test]
fn the_tables_of_learning_are_those_of_their_data() {
    let (begin, end) = ("<!-- learning -->\n", "<!-- end -->");
    let document = std::fs::read_to_string(root().join("docs/LEARNING.md")).unwrap();
    let (_, rest) = document.split_once(begin).unwrap();
    let (shown, _) = rest.split_once(end).unwrap();
    let done = std::process::Command::new(PROGRAM)
        .current_dir(root())
        .args(["learning", "--from", "docs/data/learning.csv.zst", "--markdown"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let expected = String::from_utf8(done.stdout).unwrap();
    let path = root().join("docs/data/learning-tables.txt");
    if std::env::var_os("STEALGRID_DOCS").is_some_and(|what| what == "write") {
        std::fs::write(&path, &expected).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap() == expected,
        "docs/data/learning-tables.txt is not made of docs/data/learning.csv.zst: STEALGRID_DOCS=write makes it"
    );
    // A title and its table, each a paragraph of the file.
    let all: Vec<&str> = expected.trim_end().split("\n\n").collect();
    let shown: Vec<&str> = shown.trim_end().split("\n\n").collect();
    assert!(shown.len() >= 2, "{} paragraphs", shown.len());
    for paragraph in shown {
        assert!(all.contains(&paragraph), "docs/LEARNING.md shows what was not found: {paragraph}");
    }
}

/// Tables of docs/PREDICTION.md are those of the rows beside it: each stands behind a mark with the flags that show it.
/// `STEALGRID_DOCS=write` writes them there.
#[test]
fn the_tables_of_predictions_are_those_of_their_data() {
    let (begin, end) = ("<!-- predict ", "<!-- end -->");
    let path = root().join("docs/PREDICTION.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let mut pieces = document.split(begin);
    let mut expected = pieces.next().unwrap().to_string();
    let mut tables = 0;
    for piece in pieces {
        let (flags, rest) = piece.split_once(" -->\n").unwrap();
        let (_, after) = rest.split_once(end).unwrap();
        let done = std::process::Command::new(PROGRAM)
            .current_dir(root())
            .args(["predict", "--format", "markdown"])
            .args(flags.split(' '))
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        expected += &[begin, flags, " -->\n", &String::from_utf8(done.stdout).unwrap(), end, after].concat();
        tables += 1;
    }
    assert!(tables >= 1, "{tables}");
    if std::env::var_os("STEALGRID_DOCS").is_some_and(|what| what == "write") {
        std::fs::write(&path, expected).unwrap();
        return;
    }
    assert!(
        document == expected,
        "docs/PREDICTION.md is not made of docs/data: STEALGRID_DOCS=write makes it"
    );
}

/// What makes the page of a template, and where the page and its plots should be.
struct Made {
    folder: tempfile::TempDir,
    template: PathBuf,
}

impl Made {
    fn of(template: &Path) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let done = std::process::Command::new(PROGRAM)
            .arg("study")
            .arg(template)
            .arg("--out")
            .arg(folder.path().join("page.md"))
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Made { folder, template: template.to_path_buf() }
    }

    /// Files that are others than those made, by name: the page, its plots, and plots that nobody makes any more.
    fn differences(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.template).unwrap();
        let head = report::study::Template::parse(&text).unwrap();
        let page = self.template.parent().unwrap().join(head.page().unwrap());
        let images = page.parent().unwrap().join(head.images());
        let made = self.folder.path().join(head.images());
        let name = self.template.file_name().unwrap().to_string_lossy().into_owned();
        let begin = format!("{}-", name.split('.').next().unwrap());
        let plots = |folder: &Path| -> Vec<String> {
            let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
            let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
            let is_made = |name: &String| [".svg", ".tex"].iter().any(|ending| name.ends_with(ending));
            names.filter(|name| name.starts_with(&begin) && is_made(name)).collect()
        };
        let mut pairs = vec![(page, self.folder.path().join("page.md"))];
        let names: std::collections::BTreeSet<String> =
            plots(&images).into_iter().chain(plots(&made)).collect();
        pairs.extend(names.iter().map(|name| (images.join(name), made.join(name))));
        let differ = |pair: &&(PathBuf, PathBuf)| std::fs::read(&pair.0).ok() != std::fs::read(&pair.1).ok();
        pairs.iter().filter(differ).map(|(there, _)| there.display().to_string()).collect()
    }
}

/// Every page of docs/studies is made of its data, byte for byte. `STEALGRID_DOCS=write` makes them.
#[test]
fn the_pages_of_studies_are_those_of_their_data() {
    let Ok(entries) = std::fs::read_dir(root().join("docs/studies")) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if !path.to_string_lossy().ends_with(".md.in") {
            continue;
        }
        if std::env::var_os("STEALGRID_DOCS").is_some_and(|what| what == "write") {
            let done =
                std::process::Command::new(PROGRAM).args(["study", "--replace"]).arg(&path).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let differences = Made::of(&path).differences();
        assert!(
            differences.is_empty(),
            "not made of {}: {differences:?}; STEALGRID_DOCS=write makes pages and plots (and leaves those that are no longer \
             made, which are to be deleted)",
            path.display()
        );
    }
}

#[test]
fn mutant_a_changed_digit_of_a_page_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let studies = folder.path().join("studies");
    std::fs::create_dir(&studies).unwrap();
    let text = std::fs::read_to_string(root().join("configs/sweeps/small.toml")).unwrap();
    let row = |position: i64| outputs::sweep::Row {
        position,
        done: true,
        error: None,
        wall_s: 1.0,
        parameters: vec![
            outputs::sweep::Cell::Text(format!("{position}s")),
            outputs::sweep::Cell::Integer(1),
        ],
        metrics: vec![outputs::sweep::Cell::Real(1234.0 * position as f64)],
    };
    let rows = outputs::sweep::Rows {
        name: "two".to_string(),
        text: text.split("[report]").next().unwrap().to_string(),
        version: "0".to_string(),
        command: "stealgrid sweep two.toml".to_string(),
        commit: None,
        planned: Some(2),
        digits: None,
        parameters: vec!["network.delay".to_string(), "seed".to_string()],
        metrics: vec!["wait_mean_s".to_string()],
        rows: vec![row(1), row(2)],
    };
    outputs::sweep::stored::write(&studies.join("two.csv.zst"), &rows, 6).unwrap();
    let template = studies.join("two.md.in");
    let body = "# Two\n\n{{value metric=wait_mean_s delay=2s unit=s}}\n\n{{plot values metric=wait_mean_s id=wait}}\n";
    std::fs::write(
        &template,
        format!("+++\npage = \"../TWO.md\"\n[data]\ntwo = \"two.csv.zst\"\n+++\n{body}"),
    )
    .unwrap();
    let made = Made::of(&template);
    let (page, plot) = (folder.path().join("TWO.md"), folder.path().join("images/two-wait.svg"));
    std::fs::create_dir(folder.path().join("images")).unwrap();
    std::fs::copy(made.folder.path().join("page.md"), &page).unwrap();
    std::fs::copy(made.folder.path().join("images/two-wait.svg"), &plot).unwrap();
    assert_eq!(made.differences(), Vec::<String>::new());
    // What a reader does to see the same.
    let reproduced = |page: &Path| {
        let output = std::process::Command::new(PROGRAM).arg("reproduce").arg(page).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), said)
    };
    let (code, said) = reproduced(&page);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("TWO.md: the same, with 1 plot\n"), "{said}");
    let other = folder.path().join("THREE.md");
    let (code, said) = reproduced(&other);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("failed to find the page"), "{said}");
    std::fs::write(&other, "# Three\n").unwrap();
    let (code, said) = reproduced(&other);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("no template in") && said.contains("they make TWO.md; REPRODUCE.md"), "{said}");

    let text = std::fs::read_to_string(&page).unwrap();
    std::fs::write(&page, text.replace("2,468 s", "2,469 s")).unwrap();
    assert_eq!(made.differences().len(), 1, "a digit of the page");
    let (code, said) = reproduced(&page);
    assert_eq!(code, 5, "{said}");
    assert!(
        said.contains("DIFFERENT") && said.contains("TWO.md") && !said.contains("two-wait.svg"),
        "{said}"
    );
    std::fs::write(&page, text).unwrap();
    let drawn = std::fs::read_to_string(&plot).unwrap();
    std::fs::write(&plot, drawn + " ").unwrap();
    std::fs::write(folder.path().join("images/two-old.svg"), "").unwrap();
    assert_eq!(made.differences().len(), 2, "a plot, and one that nobody makes");
}

/// The changes in percent, with their intervals, of a text.
fn changes_in(text: &str) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let beginnings = text.match_indices(" % (").map(|(place, _)| place);
    let change = |place: usize| {
        let from = text[..place].rfind(|c: char| !(c.is_ascii_digit() || "+-.,".contains(c)))? + 1;
        let to = place + text[place..].find(')')? + 1;
        text[place..to].contains(" to ").then(|| text[from..to].to_string())
    };
    beginnings.filter_map(change).collect()
}

/// What the README answers is what the study says, to the digit.
#[test]
fn figures_of_the_answer_in_the_readme_are_those_of_the_study() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let readme = read("README.md");
    let of_study = changes_in(&read("docs/BOTH-RULES.md"));
    let told = changes_in(&readme);
    assert!(told.len() >= 6, "{told:?}");
    let others: Vec<&String> = told.iter().filter(|change| !of_study.contains(change)).collect();
    assert!(others.is_empty(), "docs/BOTH-RULES.md does not have {others:?}");
    assert_eq!(changes_in("waits +1,013 % (+5 to\n+6.5), or 5 %"), ["+1,013 % (+5 to +6.5)"]);
}

/// What the page of predictions says of exchange is what the study says, to the digit.
#[test]
fn what_is_said_of_prediction_and_exchange_is_what_the_study_says() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let page = read("docs/PREDICTION.md");
    let of_study = changes_in(&read("docs/PREDICTED-EXCHANGE.md"));
    let section = page.split("\n## Does it help exchange?\n").nth(1).expect("a section");
    let told = changes_in(section.split("\n## ").next().unwrap());
    assert!(told.len() >= 6, "{told:?}");
    let others: Vec<&String> = told.iter().filter(|change| !of_study.contains(change)).collect();
    assert!(others.is_empty(), "docs/PREDICTED-EXCHANGE.md does not have {others:?}");
}
