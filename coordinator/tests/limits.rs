//! Files of others against the commands that read them: what is too much is refused with exit code 3 and the way out,
//! in a process that may not have much memory, so that a reader without limits would be killed here.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
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
    io::copy(&mut io::repeat(b' ').take(257 << 20), &mut document).unwrap();
    for (name, variable) in [
        ("zstd", "STEALGRID_MAX_LINE"),
        ("blank", "STEALGRID_MAX_EXPANSION"),
        ("gzip", "STEALGRID_MAX_LINE"),
        ("zeros in zstd", "it is binary"),
        ("zeros in gzip", "it is binary"),
        ("zeros", "it is binary"),
        ("document", "STEALGRID_MAX_DOCUMENT"),
    ] {
        let log = path(name);
        for args in [
            &["trace", "info", text(&log)][..],
            &["trace", "validate", text(&log)],
            &["trace", "convert", text(&log), "--to", "swf", "--out", text(&path("out.swf"))],
            &["simulate", "--sites", "4", "--trace", text(&log), "--out", text(&path("out"))],
        ] {
            refused(args, &[], &[text(&log), variable]);
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

    // A line of 4 GiB, and lines that are none by the million.
    for (unit, variable) in [(b"\0", "STEALGRID_MAX_LINE"), (b" ", "STEALGRID_MAX_LINE")] {
        let bomb = zstd_bomb(unit);
        assert!(bomb.len() < 200_000, "{}", bomb.len());
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
    for name in ["manifest.json", "metrics.json"] {
        let (path, kept) = spoil(name, &|path| {
            let mut file = File::create(path).unwrap();
            file.write_all(b"{\"experiment\": \"").unwrap();
            io::copy(&mut io::repeat(b'x').take(2 << 20), &mut file).unwrap();
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

#[test]
fn experiments_and_sweeps_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("endless.toml");
    // Zeros would be told as what they are, no text.
    io::copy(&mut io::repeat(b'\n').take(17 << 20), &mut File::create(&file).unwrap()).unwrap();
    for args in [&["simulate", text(&file)][..], &["sweep", text(&file)], &["run", text(&file)]] {
        refused(args, &[], &["endless.toml", "more than 16777216 bytes"]);
    }
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
    expected.push(("(experiments)", coordinator::limits::EXPERIMENT));
    assert_eq!(rows, expected);
    // What the sentences below the table say of memory.
    assert!(size_of::<workload::Record>() <= 140 && size_of::<scheduler::Event>() <= 100);
    assert!(table.contains("1,048,576, unless") && coordinator::limits::OWN_LINE == 1_048_576);
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
fn zstd_bomb(unit: &[u8; 1]) -> Vec<u8> {
    let mut part = zstd::Encoder::new(Vec::new(), 1).unwrap();
    io::copy(&mut io::repeat(unit[0]).take(PART), &mut part).unwrap();
    part.finish().unwrap().repeat(PARTS)
}

fn gzip_bomb(unit: &[u8; 1]) -> Vec<u8> {
    let mut part = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    io::copy(&mut io::repeat(unit[0]).take(PART), &mut part).unwrap();
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
