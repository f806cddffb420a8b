//! From a sweep to a document: stored, read again, made into a page, and refused where that must be.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use coordinator::sweep::{database, source};
use outputs::sweep::{Cell, Rows, stored};
use workload::limits::Limits;

use crate::PROGRAM;

/// What a template can hold, on the rows of `configs/sweeps/small.toml`.
const TEMPLATE: &str = r#"+++
page = "../SMALL.md"
allow = ["95 %"]
family = "page"
[data.small]
file = "small.csv.zst"
[series]
"st-greedy:50" = "greedy ST50"
+++
# What delay costs, 96 runs

{{count runs}} runs of {{count jobs}} jobs in all, {{count repetitions}} repetitions, {{count failed}} failed; made by
`{{command}}` at {{commit}}. Intervals hold 95 % of the draws.

Without delay `st:50` waits {{value metric=wait_mean_s series="st:50" delay=0s interval}}, that is
{{ratio metric=wait_mean_s series="st:50" against=local delay=0s}} against `local`. Its advantage ends at
{{crossover metric=wait_mean_s series="st:50" against=local}}. The best at an hour is {{best metric=wait_mean_s delay=1h}}.

{{table values metric=wait_mean_s}}

{{table changes metrics="wait_mean_s; bounded_slowdown_mean; awrt_s" delay=5m against=local}}

{{table crossovers metrics="wait_mean_s; ratio_best" columns=metrics against=local}}

{{table ranks metric=ratio_best}}

{{plot values metric=wait_mean_s against=local id=wait}}
"#;

/// A folder with the database of the small sweep and a stored file of it, made once.
fn small() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let sweep = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/sweeps/small.toml");
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        run(0, &["sweep", &sweep.to_string_lossy(), "--out", &path("small.db")]);
        let (db, out) = (path("small.db"), path("small.csv.zst"));
        run(0, &["export", &db, "--format", "study", "--out", &out, "--commit", "4f2c0ee", "--digits", "5"]);
        folder
    });
    folder.path()
}

fn run(code: i32, arguments: &[&str]) -> String {
    let done = Command::new(PROGRAM).args(arguments).output().unwrap();
    let text = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert_eq!(done.status.code(), Some(code), "{arguments:?}\n{text}");
    text
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

/// A template beside the data in a folder of its own.
fn template(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("studies")).unwrap();
    std::fs::copy(small().join("small.csv.zst"), folder.path().join("studies/small.csv.zst")).unwrap();
    let path = folder.path().join("studies/small.md.in");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn rounded(rows: Rows) -> Rows {
    let mut rows = rows;
    for row in &mut rows.rows {
        row.wall_s = 0.0;
        for cell in &mut row.metrics {
            if let Cell::Real(value) = cell {
                *value = stored::rounded(*value, 5);
            }
        }
    }
    rows
}

#[test]
fn a_stored_sweep_says_what_its_database_says() {
    let database = database::read(&small().join("small.db"), &Limits::default()).unwrap();
    let stored = source::read(&small().join("small.csv.zst")).unwrap();

    assert_eq!(stored.commit.as_deref(), Some("4f2c0ee"));
    assert_eq!(
        rounded(stored.clone()),
        rounded(Rows { commit: stored.commit.clone(), digits: Some(5), ..database })
    );
    let sizes = ["small.db", "small.csv.zst"].map(|name| small().join(name).metadata().unwrap().len());
    assert!(sizes[1] * 4 < sizes[0], "{sizes:?}");

    // Whatever reads a database reads it, too.
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (file(small(), "small.csv.zst"), file(folder.path(), "report"));
    run(0, &["report", &data, "--out", &out, "--plots", "svg"]);
    assert!(folder.path().join("report/wait-mean-s.svg").exists());
    let some = file(folder.path(), "some.csv");
    run(0, &["export", &data, "--out", &some, "--columns", "wait_m*,jobs"]);
    let head = std::fs::read_to_string(&some).unwrap().lines().next().unwrap().to_string();
    let expected = "position,network.delay,strategy.name,workload.load_factor,status,error,wall_s,jobs,wait_max_s,wait_mean_s";
    assert_eq!(head, expected);
}

#[test]
fn what_is_no_sweep_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = file(folder.path(), "out");
    let wrong = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        run(3, &["report", &file(folder.path(), name), "--out", &out])
    };
    let text = wrong("text", b"a text");
    assert!(text.contains("it is no database of a sweep; name another file"), "{text}");
    let other = wrong("other.zst", &zstd::encode_all(&b"a,b\n1,2\n"[..], 1).unwrap());
    assert!(other.contains("other.zst: line 1: it does not begin with"), "{other}");
    assert!(other.contains("write it again with stealgrid export --format study"), "{other}");
    run(3, &["report", &file(folder.path(), "nothing"), "--out", &out]);
    let data = file(small(), "small.csv.zst");
    let unknown = run(3, &["export", &data, "--out", &out, "--columns", "weight_mean_s"]);
    assert!(
        unknown
            .contains("failed to find the column \"weight_mean_s\" (did you mean wait_mean_s?); there are"),
        "{unknown}"
    );
    run(2, &["export", &data, "--out", &out, "--digits", "5"]);
    run(2, &["export", &data, "--out", &out, "--format", "study", "--digits", "0"]);
}

#[test]
fn a_page_is_made_of_the_data_alone() {
    let (folder, template) = template(TEMPLATE);
    let template = template.to_string_lossy().into_owned();

    run(0, &["study", &template]);

    let page = std::fs::read_to_string(folder.path().join("SMALL.md")).unwrap();
    assert!(
        page.starts_with("# What delay costs, 96 runs\n\n<!-- Made of small.md.in by `stealgrid study`"),
        "{page}"
    );
    assert!(page.contains("\n96 runs of 96,000 jobs in all, 3 repetitions, 0 failed; made by\n"), "{page}");
    assert!(page.contains("at 4f2c0ee."), "{page}");
    assert!(page.contains("![Mean wait](images/small-wait.svg)"), "{page}");
    assert!(page.contains("| greedy ST50 |"), "{page}");
    assert!(!page.contains("{{"), "{page}");
    let plot = std::fs::read_to_string(folder.path().join("images/small-wait.svg")).unwrap();
    assert!(plot.contains("greedy ST50"), "{plot}");

    // Again, from the database, somewhere else: the digits that are shown are the same.
    let out = file(folder.path(), "elsewhere/page.md");
    std::fs::create_dir(folder.path().join("elsewhere")).unwrap();
    run(0, &["study", &template, "--out", &out]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), page);
    let from_database = format!("small={}", file(small(), "small.db"));
    let text = run(3, &["study", &template, "--out", &out, "--data", &from_database]);
    assert!(text.contains("small.md.in: line 13: {{commit}}: the data do not say by which commit"), "{text}");
}

/// Two runs failed and one is not there: the page counts them, whoever makes it is warned with the reason, and a script sees it.
#[test]
fn a_page_of_a_sweep_with_failed_runs_says_so_and_is_no_success() {
    let (folder, template) = template(TEMPLATE);
    let data = folder.path().join("studies/small.csv.zst");
    let mut rows = source::read(&data).unwrap();
    for place in [5, 50] {
        rows.rows[place].done = false;
        rows.rows[place].error = Some("the disk was full".to_string());
    }
    rows.rows.pop();
    stored::write(&data, &rows, 5).unwrap();

    let text = run(4, &["study", &template.to_string_lossy()]);

    let counts = "of the data small, 2 of 96 runs failed, and 1 of 96 runs are not there";
    assert!(text.contains(&format!("warning: {counts}; the first because: the disk was full;")), "{text}");
    assert!(text.contains("--retry-failed"), "{text}");
    let page = std::fs::read_to_string(folder.path().join("SMALL.md")).unwrap();
    assert!(page.contains(&format!("> **Runs are left out**: {counts}.")), "{page}");
    assert!(page.contains("\n93 runs of 93,000 jobs in all"), "{page}");
}

/// Rows of the data are run again from what the data say, all of them if wished; one wrong digit is found.
#[test]
fn mutant_rows_that_no_run_gives_are_found() {
    let (folder, template) = template(TEMPLATE);
    let template = template.to_string_lossy().into_owned();
    let some = run(0, &["study", &template, "--check", "--slice", "4"]);
    assert!(some.contains("small: the same, 4 of 96 rows"), "{some}");
    assert!(!folder.path().join("SMALL.md").exists(), "nothing is made");

    let data = folder.path().join("studies/small.csv.zst");
    let mut rows = source::read(&data).unwrap();
    let column = rows.metrics.iter().position(|name| name == "wait_mean_s").unwrap();
    let row = rows.rows.iter_mut().find(|row| row.metrics[column].number() > Some(100.0)).unwrap();
    let Cell::Real(value) = &mut row.metrics[column] else { panic!("{:?}", row.metrics[column]) };
    *value = stored::rounded(*value * 1.0002, 5);
    let position = row.position;
    stored::write(&data, &rows, 5).unwrap();

    let found = run(5, &["study", &template, "--check", "--slice", "1000"]);
    assert!(found.contains("small: DIFFERENT, 96 of 96 rows"), "{found}");
    assert!(found.contains(&format!("run {position}: wait_mean_s is ")), "{found}");
    assert_eq!(found.matches("in the data, and").count(), 1, "{found}");
    run(2, &["study", &template, "--slice", "3"]);
}

#[test]
fn mutant_one_changed_cell_of_the_data_changes_the_page() {
    let (folder, template) = template(TEMPLATE);
    let template = template.to_string_lossy().into_owned();
    run(0, &["study", &template]);
    let page = || std::fs::read_to_string(folder.path().join("SMALL.md")).unwrap();
    let before = page();
    let data = folder.path().join("studies/small.csv.zst");
    let mut rows = source::read(&data).unwrap();
    let wait = rows.metrics.iter().position(|name| name == "wait_mean_s").unwrap();
    let value = rows.rows[40].metrics[wait].number().unwrap();
    rows.rows[40].metrics[wait] = Cell::Real(value * 1.01);
    stored::write(&data, &rows, 5).unwrap();

    run(0, &["study", &template]);

    assert_ne!(page(), before);
}

#[test]
fn mutant_figures_by_hand_and_wrong_expressions_are_refused() {
    let refused = |change: (&str, &str), expected: &str| {
        assert!(TEMPLATE.contains(change.0));
        let (folder, template) = template(&TEMPLATE.replacen(change.0, change.1, 1));
        let text = run(3, &["study", &template.to_string_lossy()]);
        assert!(text.contains(expected), "{text}");
        assert!(!folder.path().join("SMALL.md").exists());
    };
    refused(("Without delay", "Waits fall by 17 %. Without delay"), "line 15: the figure \"17\"");
    refused(("allow = [\"95 %\"]", ""), "line 13: the figure \"95\"");
    refused(
        ("delay=0s interval", "delay=2s interval"),
        "line 15: {{value metric=wait_mean_s series=\"st:50\" delay=2s interval}}: no run has network.delay = 2s; there are 0s, 1s, 10s, 1m, 5m, 20m, 1h, 4h",
    );
    refused(
        ("against=local}}. The", "against=nobody}}. The"),
        "no series is \"nobody\"; there are local; st:50; st-greedy:50; common-pool",
    );
    refused(("page = ", "pages = "), "small.md.in: line 2: unknown key pages (did you mean page?)");
    refused(("small.csv.zst", "large.csv.zst"), "large.csv.zst; check the path");
}

#[test]
fn a_document_of_somebody_else_is_left_alone() {
    let (folder, template) = template(TEMPLATE);
    let template = template.to_string_lossy().into_owned();
    let page = folder.path().join("SMALL.md");
    std::fs::write(&page, "written by hand").unwrap();

    let text = run(3, &["study", &template]);

    assert!(text.contains("is there already, and no such document"), "{text}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "written by hand");
    run(0, &["study", &template, "--replace"]);
    run(0, &["study", &template]);
    run(2, &["study", &template, "--data", "small"]);
    let unknown = run(3, &["study", &template, "--data", "large=x"]);
    assert!(unknown.contains("the template names only small"), "{unknown}");
}
