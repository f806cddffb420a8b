//! Files of others against the commands that read them: what is too much is refused with exit code 3 and the way out,
//! in a process that may not have much memory, so that a reader without limits would be killed here.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use workload::limits::{Limit, Limits};

use crate::PROGRAM;

/// Address space of a command, in KiB: an eighth of what the bombs expand to.
const MEMORY: u64 = 1 << 19;
/// Of a part of a bomb, in bytes, and how many there are: 4 GiB in all.
const PART: u64 = 64 << 20;
const PARTS: usize = 64;

#[test]
fn bombs_and_endless_lines_are_no_logs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("zstd"), zstd_bomb(b"7")).unwrap();
    let row = zstd::encode_all(&b"1 0 -1 60 2 -1 -1 2 120\n"[..], 1).unwrap();
    fs::write(path("blank"), [row, zstd_bomb(b"\n")].concat()).unwrap();
    fs::write(path("gzip"), gzip_bomb(b"7")).unwrap();
    // What begins with zeros is no text, and read no further.
    fs::write(path("zeros in zstd"), zstd_bomb(b"\0")).unwrap();
    fs::write(path("zeros in gzip"), gzip_bomb(b"\0")).unwrap();
    File::create(path("zeros")).unwrap().set_len(PART * PARTS as u64).unwrap();
    let mut document = File::create(path("document")).unwrap();
    document.write_all(b"{\"nb_res\": 4, \"jobs\": [").unwrap();
    fill(&mut document, b' ', 33 << 20);
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    for (place, (name, variable)) in [
        ("pipe", "it is a pipe"),
        ("zstd", "STEALGRID_MAX_LINE"),
        ("blank", "STEALGRID_MAX_EXPANSION"),
        ("gzip", "STEALGRID_MAX_LINE"),
        ("zeros in zstd", "it is binary"),
        ("zeros in gzip", "it is binary"),
        ("zeros", "it is binary"),
        ("document", "STEALGRID_MAX_DOCUMENT"),
    ]
    .into_iter()
    .enumerate()
    {
        let [log, swf, out] = [name, "out.swf", "out"].map(path);
        // All read by one reader, and the largest bombs take it seconds: each command meets some of each kind.
        let commands = [
            &["trace", "info", text(&log)][..],
            &["trace", "validate", text(&log)],
            &["trace", "convert", text(&log), "--to", "swf", "--out", text(&swf)],
            &["simulate", "--sites", "4", "--trace", text(&log), "--out", text(&out)],
        ];
        let quick = variable.starts_with("it is");
        for (number, args) in commands.into_iter().enumerate() {
            if quick || number == place % commands.len() {
                // A document is read byte by byte: an eighth of the default, which the table below has.
                refused(args, &[("STEALGRID_MAX_DOCUMENT", "33554432")], &[text(&log), variable]);
            }
        }
    }
}

#[test]
fn limits_are_set_by_the_environment() {
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/traces/seven-sites.swf");
    let args = ["trace", "info", text(&log)];
    refused(&args, &[("STEALGRID_MAX_ROWS", "1999")], &["more than 1999 rows", "STEALGRID_MAX_ROWS"]);
    refused(&args, &[("STEALGRID_MAX_LINE", "20")], &["line 2: a line has more than 20 bytes"]);
    refused(&args, &[("STEALGRID_MAX_HEADER", "100")], &["bytes of comments", "STEALGRID_MAX_HEADER"]);
    refused(&args, &[("STEALGRID_MAX_TEXT", "1000")], &["1000 bytes of text", "STEALGRID_MAX_TEXT"]);
    assert_eq!(run(&args, &[("STEALGRID_MAX_ROWS", "2000"), ("STEALGRID_MAX_LINE", "")]).0, 0);
    let (code, said) = run(&args, &[("STEALGRID_MAX_ROWS", "many")]);
    assert!(code == 2 && said.contains("STEALGRID_MAX_ROWS is \"many\"; write a whole number"), "{said}");
}

#[test]
fn a_result_directory_of_others_costs_what_it_takes_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let [out, other] = ["out", "other"].map(|name| folder.path().join(name));
    let log = small(folder.path());
    for out in [&out, &other] {
        let args = ["simulate", "--sites", "8,16", "--trace", text(&log), "--out", text(out)];
        let (code, said) = run(&args, &[]);
        assert_eq!(code, 0, "{said}");
    }
    let commands: [&[&str]; 3] = [
        &["compare", text(&other), text(&out)],
        &["explain", text(&out), "1"],
        &["serve", text(&out), "--serve", "127.0.0.1:0"],
    ];
    let spoil = |name: &str, make: &dyn Fn(&Path)| {
        let path = out.join(name);
        let kept = fs::read(&path).unwrap();
        make(&path);
        (path, kept)
    };

    // Lines of 4 GiB, and an event of this run by the million.
    let events = fs::read(out.join("events.jsonl.zst")).unwrap();
    let events = zstd::decode_all(&events[..]).unwrap();
    let event = events.split_inclusive(|&byte| byte == b'\n').next().unwrap();
    for (unit, variable) in
        [(&b"\0"[..], "STEALGRID_MAX_LINE"), (b" ", "STEALGRID_MAX_LINE"), (event, "STEALGRID_MAX_EXPANSION")]
    {
        let bomb = zstd_bomb(unit);
        assert!(bomb.len() < 1_000_000, "{}", bomb.len());
        let (path, kept) = spoil("events.jsonl.zst", &|path| fs::write(path, &bomb).unwrap());
        for args in commands {
            refused(args, &[], &[text(&path), variable]);
        }
        fs::write(&path, kept).unwrap();
    }
    let (path, kept) = spoil("jobs.csv", &|path| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(PART * PARTS as u64).unwrap();
    });
    refused(commands[0], &[], &[text(&path), "STEALGRID_MAX_LINE"]);
    refused(commands[2], &[], &[text(&path), "STEALGRID_MAX_LINE"]);
    fs::write(&path, kept).unwrap();
    let rows = [("STEALGRID_MAX_ROWS", "3")];
    refused(commands[0], &rows, &["jobs.csv: line 5: there are more than 3 rows"]);
    refused(commands[2], &rows, &["jobs.csv: line 5: there are more than 3 rows"]);
    // Enough for the jobs, which have more than one event each.
    let jobs = (fs::read_to_string(out.join("jobs.csv")).unwrap().lines().count() - 1).to_string();
    let words = format!("there are more than {jobs} rows");
    refused(commands[2], &[("STEALGRID_MAX_ROWS", &jobs)], &["events.jsonl.zst: line ", &words]);
    // Two bytes on disk are 32 in memory.
    let (path, kept) = spoil("metrics.json", &|path| {
        fs::write(path, format!("{{\"metrics\": [{}0]}}", "0,".repeat(30 << 20))).unwrap();
    });
    refused(commands[0], &[], &[text(&path), "STEALGRID_MAX_CELLS"]);
    assert_eq!(run(commands[1], &[]).0, 0, "what it has of the metrics is not much");
    fs::write(&path, kept).unwrap();
    // Nobody writes into it.
    for (name, commands) in
        [("jobs.csv", &commands[..]), ("manifest.json", &commands), ("events.jsonl.zst", &commands)]
    {
        let (path, kept) = spoil(name, &|path| {
            fs::remove_file(path).unwrap();
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        });
        for args in commands {
            refused(args, &[], &[text(&path), "it is a pipe"]);
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, kept).unwrap();
    }
    // A site that nobody has.
    let foreign =
        String::from_utf8(events.clone()).unwrap().replacen("\"site\":1,", "\"site\":4000000000,", 1);
    let foreign = zstd::encode_all(foreign.as_bytes(), 1).unwrap();
    let (path, kept) = spoil("events.jsonl.zst", &|path| fs::write(path, &foreign).unwrap());
    refused(commands[1], &[], &[text(&path), "it names site 4000000000"]);
    fs::write(&path, kept).unwrap();
    for name in ["manifest.json", "metrics.json"] {
        let (path, kept) = spoil(name, &|path| {
            let mut file = File::create(path).unwrap();
            file.write_all(b"{\"experiment\": \"").unwrap();
            fill(&mut file, b'x', 2 << 20);
        });
        refused(
            commands[0],
            &[("STEALGRID_MAX_DOCUMENT", "1048576")],
            &[text(&path), "STEALGRID_MAX_DOCUMENT"],
        );
        fs::write(&path, kept).unwrap();
    }
    let record = out.join("run.json");
    File::create(&record).unwrap().set_len(PART * PARTS as u64).unwrap();
    refused(&["attach", text(&out)], &[], &["run.json", "STEALGRID_MAX_DOCUMENT"]);
    fs::remove_file(record).unwrap();
    assert_eq!(run(commands[0], &[]).0, 0, "what was put back is what was written");
}

/// In an eighth of what they took before.
#[test]
fn small_texts_that_mean_much_are_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let log = small(folder.path());
    let file = folder.path().join("much.toml");
    let workload = format!("workload.trace = {:?}\n", text(&log));
    let sweep =
        |range: &str| format!("[experiment]\ngrid.sizes = [8]\n{workload}[parameters]\nseed = {range}\n");
    for (command, content, named) in [
        ("simulate", format!("grid.sizes = [{}]\n{workload}", "8,".repeat(100_000)), "STEALGRID_MAX_SITES"),
        (
            "simulate",
            format!("grid.sizes = [{}]\n{workload}", "4294967295,".repeat(4)),
            "134217728 is the most",
        ),
        ("simulate", format!("{} = 1\n", "x".repeat(15 << 20)), "unknown key xxx"),
        ("sweep", sweep("{ from = 0, to = 9, step = -9223372036854775808 }"), "write a step from 1 on"),
        ("sweep", sweep("{ from = 0, to = 9223372036854775807, step = 1 }"), "split the sweep"),
    ] {
        fs::write(&file, content).unwrap();
        let (code, said) = run(&[command, text(&file)], &[]);
        assert!(code == 2 || code == 3, "{code}: {said:.500}");
        assert!(said.contains(named), "{named}: {said:.500}");
        assert!(said.len() < 10_000, "{}", said.len());
    }
    // The last step leads beyond what numbers there are.
    fs::write(&file, sweep("{ from = 1, to = 9223372036854775807, step = 9223372036854775806 }")).unwrap();
    let out = folder.path().join("s.db");
    let (code, said) = run(&["sweep", text(&file), "--out", text(&out)], &[]);
    assert_eq!(code, 0, "{said}");
}

/// Whether a directory has results of an earlier version is read from a file that a stranger may have written.
#[test]
fn what_may_be_a_manifest_is_read_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let log = small(folder.path());
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let mut manifest = File::create(out.join("manifest.json")).unwrap();
    manifest.write_all(b"{\"").unwrap();
    fill(&mut manifest, b'x', MEMORY * 1024);
    let args = ["simulate", "--sites", "4", "--trace", text(&log), "--out", text(&out)];
    let limit = [("STEALGRID_MAX_DOCUMENT", "1048576")];
    refused(&args, &limit, &["files of somebody else", "manifest.json"]);
}

#[test]
fn experiments_and_sweeps_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("endless.toml");
    // Zeros would be told as what they are, no text.
    fill(&mut File::create(&file).unwrap(), b'\n', 17 << 20);
    for args in [&["simulate", text(&file)][..], &["sweep", text(&file)], &["run", text(&file)]] {
        refused(args, &[], &["endless.toml", "more than 16777216 bytes"]);
        assert_no_variable(args);
    }
    let along = folder.path().join("convergence.csv");
    File::create(folder.path().join("options.toml")).unwrap().set_len(2 << 30).unwrap();
    let args = ["report", text(&along)];
    refused(&args, &[], &["options.toml", "more than 1073741824 bytes"]);
    assert_no_variable(&args);
}

/// What cannot be set is not told to be set.
fn assert_no_variable(args: &[&str]) {
    let (_, said) = run(args, &[]);
    assert!(!said.contains("STEALGRID_MAX"), "{args:?}: {said}");
}

#[test]
fn the_variable_that_is_named_lets_the_file_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let log = small(folder.path());
    let rows = fs::read_to_string(&log).unwrap();
    let comment = format!("; Note: {}\n", "x".repeat(60_000));
    fs::write(path("line.swf"), format!("; Note: {}\n{rows}", "x".repeat(70_000))).unwrap();
    fs::write(path("header.swf"), comment.repeat(20) + &rows).unwrap();
    let blank = [rows.as_bytes(), &[b'\n'].repeat(20 << 20)].concat();
    fs::write(path("expansion.swf.zst"), zstd::encode_all(&blank[..], 1).unwrap()).unwrap();
    let batsim = r#"{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "res": 1, "walltime": 9, "profile": "p"}],
        "profiles": {"p": {"type": "delay", "delay": 5}}}"#;
    fs::write(path("document.json"), batsim).unwrap();
    fs::write(path("cells.csv.zst"), stored(3, "p")).unwrap();
    for limit in Limit::ALL {
        // What is refused by default takes long to make of some, which are refused for a lower limit.
        let (file, low, enough) = match limit {
            Limit::Line => (path("line.swf"), "", "100000"),
            Limit::Header => (path("header.swf"), "", "2000000"),
            Limit::Rows => (log.clone(), "39", "40"),
            Limit::Text => (log.clone(), "100", "10000"),
            Limit::Expansion => (path("expansion.swf.zst"), "", "100000"),
            Limit::Document => (path("document.json"), "100", "1000"),
            Limit::Cells => (path("cells.csv.zst"), "100", "10000"),
        };
        let (table, log) = (path("rows.csv"), text(&file));
        let args = if log.ends_with("cells.csv.zst") {
            vec!["export", log, "--out", text(&table), "--format", "csv"]
        } else {
            vec!["trace", "info", log]
        };
        let name = limit.variable();
        refused(&args, &[(name, low)], &[log, &format!("if you trust it, set {name} higher")]);
        let (code, said) = run(&args, &[(name, enough)]);
        assert_eq!(code, 0, "{args:?} with {name}={enough}: {said}");
    }
}

#[test]
fn rows_of_a_sweep_cost_what_they_take() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // One value in the head, and 2,000 rows that have it.
    fs::write(path("constant.csv.zst"), stored(2000, &"x".repeat(900_000))).unwrap();
    assert!(path("constant.csv.zst").metadata().unwrap().len() < 16_384);
    // Rows that are computed while they are read have no end.
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    let row = "SELECT i AS digest, i AS position, 'done' AS status, NULL AS error, 1.0 AS wall_s";
    database(&path("view.db"), &format!("CREATE VIEW runs AS {endless} {row}, i AS p, i AS m FROM n;"));
    let columns =
        "digest TEXT PRIMARY KEY, position INTEGER, status TEXT NOT NULL, error TEXT, wall_s REAL, m REAL";
    let rows = "INSERT INTO runs (digest, position, status, wall_s, m)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        SELECT i, 2001 - i, 'done', 1.0, i FROM n;";
    // So are cells that a column computes, and one default is in each row that was there before.
    let computed = format!("CREATE TABLE runs ({columns}, p TEXT AS (hex(zeroblob(450000))) VIRTUAL);{rows}");
    database(&path("computed.db"), &computed);
    let default = format!(
        "CREATE TABLE runs ({columns});{rows}ALTER TABLE runs ADD COLUMN p TEXT DEFAULT '{}';",
        "x".repeat(900_000)
    );
    database(&path("default.db"), &default);
    let page = path("page");
    let format = "UPDATE about SET value = hex(zeroblob(20 << 20)) WHERE key = 'format'";
    database(
        &path("format.db"),
        &format!("CREATE TABLE runs ({columns}, p TEXT DEFAULT 'x');{rows}{format};"),
    );
    for (name, words) in [
        ("format.db", &["about.value has 41943", "a sweep may say of itself"][..]),
        ("constant.csv.zst", &["it takes more than 268435456 bytes", "STEALGRID_MAX_CELLS"]),
        ("view.db", &["runs is a view", "name another file"]),
        ("computed.db", &["p of runs is computed", "name another file"]),
        ("default.db", &["it takes more than 268435456 bytes", "STEALGRID_MAX_CELLS"]),
    ] {
        let rows = path(name);
        let table = path("rows.csv");
        for args in [
            &["report", text(&rows), "--out", text(&page)][..],
            &["export", text(&rows), "--out", text(&table), "--format", "csv"],
        ] {
            refused(args, &[], &[&[text(&rows)], words].concat());
        }
    }
    database(&path("few.db"), &format!("CREATE TABLE runs ({columns}, p TEXT DEFAULT 'x');{rows}"));
    let few = path("few.db");
    let table = path("few.csv");
    let args = ["export", text(&few), "--out", text(&table), "--format", "csv"];
    let words = ["few.db", "there are more than 1999 rows", "STEALGRID_MAX_ROWS"];
    refused(&args, &[("STEALGRID_MAX_ROWS", "1999")], &words);
    let (code, said) = run(&args, &[("STEALGRID_MAX_ROWS", "2000")]);
    assert_eq!(code, 0, "{said}");
}

/// A log whose name, which is in every row of `jobs.csv`, would run a program in a spreadsheet.
#[test]
fn the_name_of_a_log_is_no_formula() {
    let folder = tempfile::tempdir().unwrap();
    let name = "=cmd|' C calc'!A0";
    fs::rename(small(folder.path()), folder.path().join(name)).unwrap();
    let experiment =
        format!("[grid]\nsizes = [8, 16]\n[workload]\ntrace = \"{name}\"\n[outputs]\ndir = \"out\"\n");
    fs::write(folder.path().join("named.toml"), experiment).unwrap();
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder.path()).args(["simulate", "named.toml"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let rows = fs::read_to_string(folder.path().join("out/jobs.csv")).unwrap();
    for row in rows.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!(cells[1], "'=cmd|' C calc'!A0");
        assert_eq!(cells.len(), 22, "{row}");
        let number: f64 = cells[15].parse().unwrap();
        assert!((number + 1.0).abs() < f64::EPSILON, "energy stays -1: {row}");
    }
    let manifest = fs::read(folder.path().join("out/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["workload"], name, "what stood there");
    let out = folder.path().join("out");
    let (code, said) = run(&["compare", text(&out), text(&out)], &[]);
    assert_eq!(code, 0, "we read it back: {said}");
}

/// Every limit is in the table with its default, and nothing else is.
#[test]
fn the_table_of_limits_is_what_the_program_has() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/EXPERIMENTS.md");
    let docs = fs::read_to_string(docs).unwrap();
    let (_, table) = docs.split_once("<!-- limits on files -->").unwrap();
    let (table, _) = table.split_once("<!-- /limits on files -->").unwrap();
    let rows: Vec<(&str, u64)> = table
        .lines()
        .filter(|line| line.starts_with("| `") || line.starts_with("| ("))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`'), cells[2].replace(',', "").parse().unwrap())
        })
        .collect();
    let mut limits = Limits::default();
    let mut expected: Vec<(&str, u64)> =
        Limit::ALL.into_iter().map(|limit| (limit.variable(), *limits.of(limit))).collect();
    expected.extend([
        (experiments::limits::SITES_VARIABLE, experiments::limits::SITES),
        ("(experiments)", experiments::limits::EXPERIMENT),
        ("(pages)", experiments::limits::PAGE),
        ("(about)", experiments::limits::ABOUT),
        ("(genetic)", experiments::limits::GENETIC),
        ("(nodes)", node::config::BYTES_MAX),
        ("(marks)", experiments::limits::MARK),
    ]);
    assert_eq!(rows, expected);
    // What the sentences below the table say of memory.
    assert!(size_of::<workload::Record>() <= 140 && size_of::<scheduler::Event>() <= 100);
    assert!(table.contains("1,048,576, unless") && experiments::limits::OWN_LINE == 1_048_576);
}

/// Refused as input, naming all of these.
fn refused(args: &[&str], environment: &[(&str, &str)], named: &[&str]) {
    let (code, said) = run(args, environment);
    assert_eq!(code, 3, "{args:?}: {said}");
    for name in named {
        assert!(said.contains(name), "{name} for {args:?}: {said}");
    }
}

/// With an address space of [`MEMORY`], by a shell that limits itself and becomes the program.
fn run(args: &[&str], environment: &[(&str, &str)]) -> (i32, String) {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MEMORY} && exec \"$0\" \"$@\""), PROGRAM]).args(args);
    command.envs(environment.iter().copied()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // An abort has no code.
    (output.status.code().unwrap_or(-1), said)
}

/// One frame after another: made as quickly as one.
fn zstd_bomb(unit: &[u8]) -> Vec<u8> {
    let mut part = zstd::Encoder::new(Vec::new(), 1).unwrap();
    // Whole units: a line does not end where a frame does.
    let some = unit.repeat(65_536 / unit.len());
    for _ in 0..PART / some.len() as u64 {
        part.write_all(&some).unwrap();
    }
    part.finish().unwrap().repeat(PARTS)
}

/// Writes a byte so many times, a multiple of a mebibyte.
fn fill(to: &mut impl io::Write, byte: u8, times: u64) {
    let some = vec![byte; 1 << 20];
    for _ in 0..times >> 20 {
        to.write_all(&some).unwrap();
    }
}

/// A file as `export --format study` writes it, whose parameter has one value in all rows.
fn stored(rows: usize, parameter: &str) -> Vec<u8> {
    let mut file = format!(
        "# stealgrid sweep, format 1\n# name \"rows\"\n# commit null\n# version \"0\"\n# command \"\"\n\
         # planned {rows}\n# rows {rows}\n# parameters [\"p\"]\n# metrics [\"m\"]\n\
         # kinds {{\"p\":\"text\"}}\n# constants {{\"error\":\"\",\"p\":\"{parameter}\",\"wall_s\":\"1.0\"}}\n\
         # sweep \"\"\nposition,m\n"
    );
    (1..=rows).for_each(|row| writeln!(file, "{row},1").unwrap());
    zstd::encode_all(file.as_bytes(), 1).unwrap()
}

/// A database of a sweep with a parameter p and a metric m, but for its runs.
fn database(path: &Path, runs: &str) {
    let database = rusqlite::Connection::open(path).unwrap();
    let about = "CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
        INSERT INTO about VALUES ('format', '2'), ('planned', '2000'), ('name', 'rows'), ('sweep', ''),
            ('version', '0'), ('command', '');
        CREATE TABLE columns (ordinal INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, role TEXT NOT NULL);
        INSERT INTO columns (name, role) VALUES ('p', 'parameter'), ('m', 'metric');";
    database.execute_batch(&format!("BEGIN;{about}{runs}COMMIT;")).unwrap();
}

fn gzip_bomb(unit: &[u8; 1]) -> Vec<u8> {
    let mut part = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    fill(&mut part, unit[0], PART);
    part.finish().unwrap().repeat(PARTS)
}

/// A log of 40 jobs.
fn small(folder: &Path) -> PathBuf {
    let path = folder.join("small.swf");
    let row = |job: i64| format!("{job} {} -1 600 2 -1 -1 2 900 -1 1 1 1 -1 1 1 -1 -1\n", 10 * job);
    let rows: String = (1..=40).map(row).collect();
    fs::write(&path, format!("; MaxProcs: 8\n{rows}")).unwrap();
    path
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
