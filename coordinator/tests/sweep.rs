//! `stealgrid sweep` as a user sees it: what is in the database, and that stops, crashes and changes lose nothing.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use coordinator::sweep::database;
use coordinator::sweep::file::Plan;
use outputs::sweep::{Cell, Row, Rows};
use workload::limits::Limits;

use crate::PROGRAM;

/// Ample for what takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

/// A sweep of 2 strategies by so many delays on the shipped workload.
pub(crate) fn sweep(folder: &Path, delays: usize, count: usize) -> PathBuf {
    let delays: Vec<String> = (0..delays).map(|delay| format!("\"{delay}s\"")).collect();
    let text = format!(
        "base = {:?}\n[experiment.workload]\ncount = {count}\n[parameters]\n\
         \"strategy.name\" = [\"st:50\", \"local\"]\n\"network.delay\" = [{}]\n",
        configs().join("quickstart.toml"),
        delays.join(", ")
    );
    let path = folder.join("test.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn command(sweep: &Path, out: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("sweep").arg(sweep).arg("--out").arg(out).args(flags);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(sweep: &Path, out: &Path, flags: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = command(sweep, out, flags).output().unwrap();
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    (status.code().unwrap(), text)
}

/// The rows without what no two runs have in common.
pub(crate) fn timeless(out: &Path) -> Vec<Row> {
    let rows = database::read(out, &Limits::default()).unwrap().rows.into_iter();
    rows.map(|row| Row { wall_s: 0.0, ..row }).collect()
}

fn value<'a>(rows: &'a Rows, row: usize, name: &str) -> &'a Cell {
    let place = rows.metrics.iter().position(|metric| metric == name).unwrap();
    &rows.rows[row].metrics[place]
}

/// Waits until the database has so many rows.
fn wait_for_rows(out: &Path, count: usize) {
    let begun = Instant::now();
    // Before its tables are there the file cannot be read.
    while !out.exists() || database::read(out, &Limits::default()).map_or(0, |rows| rows.rows.len()) < count {
        assert!(begun.elapsed() < PATIENCE, "no rows came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn every_combination_becomes_a_row_with_its_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = sweep(folder.path(), 3, 150);
    let out = folder.path().join("test.db");

    let (code, text) = run(&sweep, &out, &["--jobs", "2"]);

    assert_eq!(code, 0, "{text}");
    assert!(text.contains("6 runs done, 0 failed"), "{text}");
    let rows = database::read(&out, &Limits::default()).unwrap();
    assert_eq!(rows.parameters, ["network.delay", "strategy.name"]);
    let parameters: Vec<String> =
        rows.rows.iter().map(|row| format!("{} {}", row.parameters[0], row.parameters[1])).collect();
    assert_eq!(parameters, ["0s st:50", "0s local", "1s st:50", "1s local", "2s st:50", "2s local"]);
    for row in 0..6 {
        assert_eq!(value(&rows, row, "finished"), &Cell::Integer(150));
        let ratio = value(&rows, row, "ratio_best").number().unwrap();
        assert!(ratio >= 1.0, "{ratio}");
        let (makespan, bound) = (value(&rows, row, "makespan_s"), value(&rows, row, "bound_best_s"));
        assert_eq!(ratio, makespan.number().unwrap() / bound.number().unwrap());
    }
    assert_eq!(value(&rows, 1, "messages"), &Cell::Integer(0), "local sends none");
    assert!(value(&rows, 0, "messages").number().unwrap() > 0.0);
}

/// With others on other nodes, or the same with other jobs, times are others; the rest of the table stays.
#[test]
fn a_value_inside_a_table_of_a_section_can_be_a_parameter() {
    let folder = tempfile::tempdir().unwrap();
    let base = configs().join("m-cisne/844.toml");
    let text = format!("base = {base:?}\n[parameters]\n\"grid.local.share\" = [0.0, 1.0]\nseed = [1, 2]\n");
    let sweep = folder.path().join("test.toml");
    std::fs::write(&sweep, text).unwrap();
    let out = folder.path().join("test.db");
    let (code, text) = run(&sweep, &out, &[]);
    assert_eq!(code, 0, "{text}");
    let rows = database::read(&out, &Limits::default()).unwrap();
    assert_eq!(rows.parameters, ["grid.local.share", "seed"]);
    let turnaround = |row| value(&rows, row, "turnaround_mean_s").number().unwrap();
    let [alone, other, shared, _] = [0, 1, 2, 3].map(turnaround);
    assert!(shared > alone && other != alone, "{alone} {other} {shared}");
}

#[test]
fn a_row_has_the_numbers_that_a_single_simulation_has() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = sweep(folder.path(), 3, 150);
    let out = folder.path().join("test.db");
    run(&sweep, &out, &[]);
    let single = Command::new(PROGRAM)
        .arg("simulate")
        .arg(configs().join("quickstart.toml"))
        .args([
            "--strategy",
            "st:50",
            "--count",
            "150",
            "--delay",
            "2s",
            "--format",
            "json",
            "--no-events",
            "--out",
        ])
        .arg(folder.path().join("single"))
        .output()
        .unwrap();
    let single: serde_json::Value = serde_json::from_slice(&single.stdout).unwrap();

    let rows = database::read(&out, &Limits::default()).unwrap();

    let metrics = single["metrics"].as_object().unwrap();
    let mut compared = 0;
    for (name, number) in metrics.iter().filter(|(_, value)| value.is_number()) {
        let (row, single) = (value(&rows, 4, name).number().unwrap(), number.as_f64().unwrap());
        // Reading a number from JSON may lose its last bit.
        assert!((row - single).abs() <= 1e-12 * single.abs(), "{name}: {row} is not {single}");
        compared += 1;
    }
    assert!(compared > 20, "only {compared} metrics");
    assert_eq!(value(&rows, 4, "bound_best_s").number(), single["bounds"]["best_s"].as_f64());
}

#[test]
fn the_same_sweep_gives_the_same_rows_whoever_does_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = sweep(folder.path(), 3, 100);
    let (one, three) = (folder.path().join("one.db"), folder.path().join("three.db"));

    run(&sweep, &one, &["--jobs", "1"]);
    run(&sweep, &three, &["--jobs", "3"]);

    assert_eq!(timeless(&one), timeless(&three));
}

#[test]
fn what_is_done_is_not_run_again_and_what_changed_is() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("test.db");
    run(&sweep(folder.path(), 2, 100), &out, &[]);
    let before = database::read(&out, &Limits::default()).unwrap();

    let (_, again) = run(&sweep(folder.path(), 2, 100), &out, &[]);
    let (_, more) = run(&sweep(folder.path(), 3, 100), &out, &[]);
    let after_more = database::read(&out, &Limits::default()).unwrap();
    let (_, other) = run(&sweep(folder.path(), 2, 90), &out, &[]);

    assert!(again.contains("0 runs done"), "{again}");
    assert!(again.contains("4 of 4 runs have a result already"), "{again}");
    assert!(more.contains("2 runs done"), "{more}");
    assert_eq!(after_more.rows[..4], before.rows[..], "wall times and all");
    assert!(other.contains("4 runs done"), "{other}");
    assert!(other.contains("6 rows belong to runs that the file does not have"), "{other}");
    let rows = database::read(&out, &Limits::default()).unwrap();
    assert_eq!(rows.rows.len(), 4);
    assert_eq!(value(&rows, 0, "finished"), &Cell::Integer(90));
}

#[test]
fn a_run_that_fails_is_recorded_and_retried_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.swf");
    let path = folder.path().join("test.toml");
    std::fs::write(&log, "1 0 -1 10 1 -1 -1 1 10 -1 1 1 -1 -1 -1 -1 -1 -1\n").unwrap();
    std::fs::write(
        &path,
        "[experiment]\ngrid.sizes = [2]\nworkload.trace = \"log.swf\"\n[parameters]\nworkload.from = [\"0s\", \"5s\"]\n",
    )
    .unwrap();
    let out = folder.path().join("test.db");

    let (code, text) = run(&path, &out, &[]);
    assert_eq!(code, 5, "{text}");
    assert!(text.contains("run 2 failed: failed to find a job in"), "{text}");
    let rows = database::read(&out, &Limits::default()).unwrap();
    assert_eq!(rows.rows.iter().map(|row| row.done).collect::<Vec<_>>(), [true, false]);
    assert!(rows.rows[1].error.as_ref().unwrap().contains("every job was dropped"));
    let report = || {
        let mut report = Command::new(PROGRAM);
        report.arg("report").arg(&out).arg("--out").arg(folder.path().join("page"));
        let done = report.output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, text) = report();
    assert!(code == Some(4) && text.contains("1 of 2 runs failed"), "{code:?} {text}");
    assert!(folder.path().join("page/index.html").exists());

    let (code, text) = run(&path, &out, &[]);
    assert_eq!(code, 5, "not every run is done: {text}");
    assert!(text.contains("1 of them failed"), "{text}");

    std::fs::write(
        &log,
        "1 0 -1 10 1 -1 -1 1 10 -1 1 1 -1 -1 -1 -1 -1 -1\n2 6 -1 10 1 -1 -1 1 10 -1 1 1 -1 -1 -1 -1 -1 -1\n",
    )
    .unwrap();
    let (code, text) = run(&path, &out, &["--retry-failed"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("1 runs done, 0 failed"), "{text}");
    assert_eq!(report().0, Some(0));
    assert!(database::read(&out, &Limits::default()).unwrap().rows.iter().all(|row| row.done));
}

#[test]
fn mistakes_in_a_file_are_found_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.toml");
    let base = format!("base = {:?}\n", configs().join("quickstart.toml"));
    for (text, expected) in [
        ("[parameters]\nnetwork.delay = \"1s\"\n", "network.delay: \"1s\" is not a list"),
        ("[parameters]\nnetwork.dealy = [\"1s\"]\n", "unknown key dealy (did you mean delay?)"),
        ("[parameters]\nnetwork.delay = [\"1s\", \"1s\"]\n", "is there twice"),
        ("[parameters]\nnetwork.delay = [\"soon\"]\n", "set up run 1 (network.delay = \"soon\")"),
        ("[parameters]\nseed = { from = 1 }\n", "a range needs to"),
        ("[[runs]]\nseed = 1\n[[runs]]\nseed = 1\n", "it is the same as run 1"),
        ("[parameters]\nworkload.trace = [\"nowhere.swf\"]\n", "nowhere.swf is not there"),
        ("sede = 3\n", "unknown key sede; there are name, base"),
        ("[parameters]\nseed = { from = 1, to = 9999999999 }\n", "more than 1000000 values"),
        ("[parameters]\nseed = { from = 1, to = 2, step = 0 }\n", "write a step from 1 on"),
        (
            "[parameters]\nseed = [1]\n[report]\nx = \"network.delay\"\n",
            "report.x: \"network.delay\" is no parameter",
        ),
        (
            "[parameters]\nstrategy.name = [\"local\", \"st:50\"]\n[report]\nbaseline = \"st:5\"\n",
            "report.baseline: no run has the strategy \"st:5\" (did you mean st:50?); there are local; st:50",
        ),
    ] {
        std::fs::write(&path, format!("{base}{text}")).unwrap();
        let (code, output) = run(&path, &folder.path().join("test.db"), &[]);
        assert_eq!(code, 3, "{text}: {output}");
        assert!(output.contains(expected), "{text}: {output}");
    }
    assert!(!folder.path().join("test.db").exists());
}

#[test]
fn listed_runs_are_combined_with_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.toml");
    let text = format!(
        "base = {:?}\n[parameters]\nseed = {{ from = 3, to = 7, step = 2 }}\n\
         [[runs]]\nstrategy = {{ name = \"local\", local = \"fcfs\" }}\n[[runs]]\n\"strategy.name\" = \"st:25\"\n",
        configs().join("quickstart.toml")
    );
    std::fs::write(&path, text).unwrap();

    let plan = Plan::load(&path, None).unwrap();

    assert_eq!(plan.parameters, ["seed", "strategy.local", "strategy.name"]);
    let words: Vec<String> =
        plan.runs.iter().map(|run| coordinator::sweep::file::words(&run.values)).collect();
    assert_eq!(
        words,
        [
            "seed = 3, strategy.local = \"fcfs\", strategy.name = \"local\"",
            "seed = 5, strategy.local = \"fcfs\", strategy.name = \"local\"",
            "seed = 7, strategy.local = \"fcfs\", strategy.name = \"local\"",
            "seed = 3, strategy.name = \"st:25\"",
            "seed = 5, strategy.name = \"st:25\"",
            "seed = 7, strategy.name = \"st:25\"",
        ]
    );
}

#[test]
fn kept_runs_have_a_result_directory_and_a_file_to_repeat_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = sweep(folder.path(), 1, 60);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text += "[[keep]]\n\"strategy.name\" = \"local\"\n";
    std::fs::write(&path, text).unwrap();
    let out = folder.path().join("test.db");

    let (code, output) = run(&path, &out, &[]);

    assert_eq!(code, 0, "{output}");
    let kept = folder.path().join("test.runs");
    assert!(!kept.join("1").exists());
    assert!(kept.join("2/report.html").exists());
    let again = Command::new(PROGRAM)
        .arg("simulate")
        .arg(kept.join("2/experiment.toml"))
        .arg("--out")
        .arg(folder.path().join("again"))
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let jobs = |folder: PathBuf| std::fs::read(folder.join("jobs.csv")).unwrap();
    assert_eq!(jobs(kept.join("2")), jobs(folder.path().join("again")));
}

fn export(database: &Path, format: &str, out: &Path) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("export").arg(database).args(["--format", format, "--out"]).arg(out);
    command.output().unwrap()
}

#[test]
fn an_export_says_what_the_database_says() {
    let folder = tempfile::tempdir().unwrap();
    let (out, table) = (folder.path().join("test.db"), folder.path().join("csv"));
    run(&sweep(folder.path(), 2, 60), &out, &[]);
    let rows = database::read(&out, &Limits::default()).unwrap();

    let exported = export(&out, "csv", &table);

    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let csv = std::fs::read_to_string(table).unwrap();
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let makespan = header.iter().position(|name| *name == "makespan_s").unwrap();
    let of_csv: Vec<f64> =
        lines.map(|line| line.split(',').nth(makespan).unwrap().parse().unwrap()).collect();
    assert_eq!(of_csv.len(), rows.rows.len());
    for (index, of_csv) in of_csv.into_iter().enumerate() {
        assert_eq!(Some(of_csv), value(&rows, index, "makespan_s").number());
    }
}

#[cfg(feature = "parquet")]
#[test]
fn an_export_as_parquet_says_what_the_database_says() {
    use std::collections::BTreeMap;

    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    let folder = tempfile::tempdir().unwrap();
    let (out, table) = (folder.path().join("test.db"), folder.path().join("parquet"));
    run(&sweep(folder.path(), 2, 60), &out, &[]);
    let rows = database::read(&out, &Limits::default()).unwrap();

    let exported = export(&out, "parquet", &table);

    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let reader = SerializedFileReader::new(std::fs::File::open(table).unwrap()).unwrap();
    let of_parquet: Vec<BTreeMap<String, Field>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            row.unwrap().get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
        })
        .collect();
    assert_eq!(of_parquet.len(), rows.rows.len());
    for (row, of_parquet) in rows.rows.iter().zip(&of_parquet) {
        for (name, cell) in rows.parameters.iter().zip(&row.parameters) {
            assert_eq!(of_parquet[name], Field::Str(cell.to_string()));
        }
        for (name, cell) in rows.metrics.iter().zip(&row.metrics) {
            let expected = match cell {
                Cell::Null => vec![Field::Null],
                Cell::Integer(value) => vec![Field::Long(*value), Field::Double(*value as f64)],
                Cell::Real(value) => vec![Field::Double(*value)],
                Cell::Text(text) => vec![Field::Str(text.clone())],
            };
            assert!(expected.contains(&of_parquet[name]), "{name}: {:?}", of_parquet[name]);
        }
    }
}

#[cfg(feature = "png")]
#[test]
fn every_plot_becomes_a_picture_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let (out, to) = (folder.path().join("test.db"), folder.path().join("to"));
    run(&sweep(folder.path(), 3, 60), &out, &[]);

    let mut report = Command::new(PROGRAM);
    let report =
        report.arg("report").arg(&out).args(["--plots", "svg,png,pdf", "--out"]).arg(&to).output().unwrap();

    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    let files = std::fs::read_dir(&to).unwrap().map(|file| file.unwrap().path());
    let plots: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "svg")).collect();
    assert!(plots.len() >= 5, "{plots:?}");
    for plot in plots {
        let picture = std::fs::read(plot.with_extension("png")).unwrap();
        assert!(picture.starts_with(b"\x89PNG"));
        let bytes = picture.len();
        assert!(bytes > 10_000, "{}: {bytes} bytes are too few for a plot with text", plot.display());
        let page = std::fs::read(plot.with_extension("pdf")).unwrap();
        assert!(page.starts_with(b"%PDF-") && String::from_utf8_lossy(&page).contains("DejaVuSans"));
    }
}

/// Of a program that was built without: nothing is read or written, and the user is told how to get it.
#[cfg(not(any(feature = "parquet", feature = "png")))]
#[test]
fn what_the_program_was_built_without_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (out, to) = (folder.path().join("test.db"), folder.path().join("to"));
    let mut report = Command::new(PROGRAM);
    report.arg("report").arg(&out).args(["--plots", "svg,png", "--out"]).arg(&to);
    let mut study = Command::new(PROGRAM);
    study.args(["study", "page.md.in", "--plots", "pdf", "--out"]).arg(&to);
    let built = [
        (export(&out, "parquet", &to), "parquet"),
        (report.output().unwrap(), "png"),
        (study.output().unwrap(), "png"),
    ];

    for (output, feature) in built {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("--features {feature}`")), "{said}");
        assert!(!to.exists());
    }
}

/// Users' estimates are not corrected: what differs in the correction alone is run once.
#[test]
fn estimates_crossed_with_corrections_leave_out_what_nobody_corrects() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.toml");
    let text = format!(
        "base = {:?}\nexperiment.strategy.name = \"local\"\n[parameters]\nworkload.estimate = [\"user\", \"exact\", \"avg2\"]\n\
         workload.correction = [\"tsafrir\", \"doubling\"]\n",
        configs().join("quickstart.toml")
    );
    std::fs::write(&path, text).unwrap();

    let plan = Plan::load(&path, None).unwrap();

    let words: Vec<String> =
        plan.runs.iter().map(|run| coordinator::sweep::file::words(&run.values)).collect();
    let run = |estimate: &str, correction: &str| {
        format!("workload.correction = \"{correction}\", workload.estimate = \"{estimate}\"")
    };
    let expected = [("user", "user"), ("exact", "user"), ("avg2", "tsafrir"), ("avg2", "doubling")]
        .map(|(of, by)| run(of, by));
    assert_eq!(words, expected);
}

#[test]
fn every_shipped_sweep_can_be_planned() {
    let mut planned = 0;
    let folders = ["sweeps", "thesis"].map(|folder| std::fs::read_dir(configs().join(folder)).unwrap());
    for entry in folders.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        match Plan::load(&path, None) {
            Ok(plan) => planned += usize::from(plan.runs.len() > 1),
            Err(error) if error.to_string().contains("is not there; check the path") => {
                stealgrid_tests::skipped(format_args!("the logs of {} are not there", path.display()));
            }
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
    assert!(planned >= 1);
}

#[test]
fn a_database_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("test.db");
    std::fs::write(&out, "not a database, but somebody's file").unwrap();

    let (code, text) = run(&sweep(folder.path(), 1, 50), &out, &[]);

    assert_eq!(code, 3, "{text}");
    assert!(text.contains("test.db"), "{text}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "not a database, but somebody's file");
}

#[cfg(target_os = "linux")]
mod crashes {
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    fn signal(id: u32, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
    }

    /// Processes that a process started.
    fn children(id: u32) -> Vec<u32> {
        let mut children = Vec::new();
        for task in std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            children.extend(text.split_whitespace().map(|id| id.parse::<u32>().unwrap()));
        }
        children
    }

    /// The two workers of a sweep. Rows may be there before the second has begun.
    fn both_workers(id: u32) -> Vec<u32> {
        let begun = Instant::now();
        loop {
            let workers = children(id);
            if workers.len() == 2 {
                return workers;
            }
            assert!(begun.elapsed() < PATIENCE, "{workers:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A sweep of 40 runs, stopped in its first half by `stop`; its output, and the rows that it left.
    fn stopped(folder: &Path, stop: impl FnOnce(&Child)) -> (std::process::ExitStatus, String, usize) {
        let (path, out) = (sweep(folder, 20, 1000), folder.join("test.db"));
        let child = command(&path, &out, &["--jobs", "2"]).spawn().unwrap();
        wait_for_rows(&out, 2);
        stop(&child);
        let output = child.wait_with_output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status, text, database::read(&out, &Limits::default()).unwrap().rows.len())
    }

    fn goes_on_to_the_same_end(folder: &Path, rows: usize) {
        let (path, out) = (sweep(folder, 20, 1000), folder.join("test.db"));
        let (code, text) = run(&path, &out, &["--jobs", "2"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains(&format!("{} runs done", 40 - rows)), "{rows} rows were there: {text}");
        let whole = folder.join("whole.db");
        run(&path, &whole, &["--jobs", "2"]);
        assert_eq!(timeless(&out), timeless(&whole));
    }

    #[test]
    fn a_killed_sweep_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut workers = Vec::new();

        let (_, _, rows) = stopped(folder.path(), |child| {
            workers = both_workers(child.id());
            signal(child.id(), Signal::KILL);
        });

        assert!((2..40).contains(&rows), "{rows}");
        let begun = Instant::now();
        let lives = |id: &u32| {
            let state = std::fs::read_to_string(format!("/proc/{id}/cmdline"));
            state.is_ok_and(|command| command.contains("sweep-worker"))
        };
        while workers.iter().any(lives) {
            assert!(begun.elapsed() < PATIENCE, "workers outlive their sweep");
            std::thread::sleep(Duration::from_millis(10));
        }
        goes_on_to_the_same_end(folder.path(), rows);
    }

    #[test]
    fn an_interrupted_sweep_says_how_to_go_on() {
        let folder = tempfile::tempdir().unwrap();

        let (status, text, rows) = stopped(folder.path(), |child| signal(child.id(), Signal::INT));

        assert_eq!(status.code(), Some(4), "{text}");
        let (path, out) = (sweep(folder.path(), 20, 1000), folder.path().join("test.db"));
        let again = format!("stealgrid sweep {} --out {} --jobs 2", path.display(), out.display());
        assert!(text.contains(&format!("runs are left; go on with: {again}\n")), "{text}");
        let report = || {
            let page = folder.path().join("page");
            Command::new(PROGRAM).arg("report").arg(&out).arg("--out").arg(page).output().unwrap()
        };
        let index = folder.path().join("page/index.html");
        std::fs::create_dir(folder.path().join("page")).unwrap();
        std::fs::write(&index, "mine").unwrap();
        assert_eq!(report().status.code(), Some(3), "a page of somebody else");
        assert_eq!(std::fs::read_to_string(&index).unwrap(), "mine");
        std::fs::remove_file(&index).unwrap();
        assert_eq!(report().status.code(), Some(4), "runs are missing");
        let report = report();
        let missing = format!("{} of 40 runs of the sweep are not there yet", 40 - rows);
        assert!(String::from_utf8_lossy(&report.stderr).contains(&missing), "{report:?}");
        let page = std::fs::read_to_string(index).unwrap();
        assert!(page.contains(&missing), "the page does not say what is missing");
        goes_on_to_the_same_end(folder.path(), rows);
    }

    #[test]
    fn a_killed_worker_loses_one_run() {
        let folder = tempfile::tempdir().unwrap();

        let (status, text, rows) =
            stopped(folder.path(), |child| signal(both_workers(child.id())[0], Signal::KILL));

        assert_eq!(rows, 40);
        assert_eq!(status.code(), Some(5), "{text}");
        assert!(text.contains("39 runs done, 1 failed"), "{text}");
        let out = folder.path().join("test.db");
        let rows = database::read(&out, &Limits::default()).unwrap();
        let errors: Vec<&String> = rows.rows.iter().filter_map(|row| row.error.as_ref()).collect();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains("signal: 9"), "{}", errors[0]);
        let (code, text) = run(&sweep(folder.path(), 20, 1000), &out, &["--retry-failed"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("1 runs done, 0 failed"), "{text}");
    }
}

/// Who is in every study of real logs, so that no headline is without the best of its rivals. Brokers may have users who pay the
/// way, or a broker beside each site, as well.
const CONTENDERS: [&str; 10] = [
    "strategy.name = \"local\"",
    "strategy.name = \"st:50\"",
    "strategy.name = \"pool:easy\"",
    "strategy.name = \"pool:list\"",
    "strategy.name = \"steal:random\"",
    "strategy.name = \"steal:loaded,select=easy\"",
    "strategy.name = \"steal:loaded,select=easy\"\nprotocol = { margin = \"0s\", gossip = \"10m\" }",
    "strategy.name = \"steal:loaded,mode=push\"",
    "strategy.name = \"broker:mst\"",
    "strategy.name = \"broker:mst\"\ngrid.brokers = \"each\"",
];

#[test]
fn every_study_of_real_logs_has_every_contender() {
    for study in ["grid1", "grid-later", "levels", "both-rules", "learning-grid1"] {
        let text = std::fs::read_to_string(configs().join(format!("sweeps/{study}.toml"))).unwrap();
        let sweep: toml::Table = text.parse().unwrap();
        let mut runs: Vec<toml::Table> =
            sweep["runs"].as_array().unwrap().iter().map(|run| run.as_table().unwrap().clone()).collect();
        for run in &mut runs {
            run["strategy"].as_table_mut().unwrap().remove("submit_delay");
        }
        for contender in CONTENDERS {
            let wanted: toml::Table = contender.parse().unwrap();
            assert!(runs.contains(&wanted), "{study}.toml lacks {contender:?}");
        }
    }
}
