//! Every JSON that the program writes is as docs/schemas says: units, names and words. What is changed is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::PROGRAM;

/// Lines of each kind of event of a log that are held against the schema: all would take minutes.
const LINES: usize = 5;

#[test]
fn result_directories_are_as_their_schemas_say() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let small = ["--sites", "8,16,24,96", "--count", "150", "--delay", "40s"];
    let spread = ["--sites", "32,32,48", "--count", "150"];
    let runs: [&[&str]; 8] = [
        &[&configuration("quickstart.toml")],
        &[&configuration("crashes.toml")],
        &[&small[..], &["--strategy", "broker:mlb", "--local", "easy"]].concat(),
        &[&small[..], &["--strategy", "broker:mst", "--estimate", "avg2", "--correction", "tsafrir"]]
            .concat(),
        &[&small[..], &["--strategy", "opaque:ag,cap=3,timeout=600"]].concat(),
        &[&small[..], &["--strategy", "pool:easy,via=gossip"]].concat(),
        &[&spread[..], &["--strategy", "ideal/broker:mcisne,coallocate=super,phases=two"]].concat(),
        &[&small[..], &["--strategy", "ideal/st:50", "--no-events"]].concat(),
    ];
    let (mut kinds, mut sections) = (BTreeMap::new(), BTreeMap::new());
    for flags in runs {
        simulate(&out, flags, 0);
        directory(&out, &mut kinds, &mut sections);
    }
    // The site that is wide enough for most is gone: the run ends without them.
    let left = folder.path().join("left.toml");
    fs::write(&left, PARTIAL).unwrap();
    simulate(&out, &[left.to_str().unwrap()], 4);
    directory(&out, &mut kinds, &mut sections);
    let manifest = document(&out.join("manifest.json"));
    assert_eq!(manifest["status"], "partial", "{manifest}");

    // What the runs had to have for this to say something.
    for kind in [
        "submitted",
        "granted",
        "allocated",
        "recalled",
        "learned",
        "claimed",
        "interrupted",
        "took_over",
        "ended",
        "lost",
        "part_started",
        "part_completed",
    ] {
        assert!(kinds.contains_key(kind), "no event {kind}: {kinds:?}");
    }
    for section in ["deficiency", "steals", "decisions", "faults", "ideal", "waits", "without_exchange"] {
        assert!(sections.contains_key(section), "no section {section}: {sections:?}");
    }
}

#[test]
fn a_run_of_processes_is_as_its_schemas_say() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let file = folder.path().join("run.toml");
    fs::write(&file, RUN).unwrap();
    let output =
        Command::new(PROGRAM).arg("run").arg(&file).args(["--replace", "--out"]).arg(&out).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // A busy machine may be too late to be measured, and says so.
    assert!(matches!(output.status.code(), Some(0 | 5 | 6)), "{said}");
    directory(&out, &mut BTreeMap::new(), &mut BTreeMap::new());
    let metrics = document(&out.join("metrics.json"));
    assert!(metrics["compared"]["verdict"].is_string() && metrics["scraped"].is_object(), "{metrics}");
    let (out, file) = (out.to_str().unwrap(), file.to_str().unwrap());
    printed("compare-with", &["compare", out, "--with", file, "--format", "json"]);
    let small = ["power", file, "--runs", "2", "--delays", "0", "--instead", "st:0"];
    printed("power", &[&small[..], &["--format", "json"]].concat());
}

#[test]
fn what_commands_print_is_as_its_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let (out, other) = (folder.path().join("out"), folder.path().join("other"));
    let small = ["--sites", "8,16,24,96", "--count", "150"];
    simulate(&out, &[&small[..], &["--delay", "40s"]].concat(), 0);
    simulate(&other, &[&small[..], &["--strategy", "ideal/st:50"]].concat(), 0);
    let (out, other) = (out.to_str().unwrap(), other.to_str().unwrap());
    let json = ["--format", "json"];
    for job in ["7", "60", "110"] {
        printed("explain", &[&["explain", out, job], &json[..]].concat());
        printed("explain", &[&["explain", out, job, "--ideal", other], &json[..]].concat());
    }
    let predicted = folder.path().join("predicted");
    simulate(&predicted, &[&small[..], &["--strategy", "local", "--estimate", "avg2"]].concat(), 0);
    printed("explain", &[&["explain", predicted.to_str().unwrap(), "110"], &json[..]].concat());
    printed("compare", &[&["compare", out, out], &json[..]].concat());
    printed("compare", &[&["compare", out, other, "--events", "order-per-site"], &json[..]].concat());
    let quickstart = configuration("quickstart.toml");
    printed("theory", &[&["theory", "--sites", "8,16"], &json[..]].concat());
    printed("theory", &[&["theory", &quickstart], &json[..]].concat());
    printed(
        "theory",
        &[&["theory", &quickstart, "--strategy", "broker:mlb", "--local", "list"], &json[..]].concat(),
    );
    let stored = folder.path().join("stored.json");
    printed(
        "theory-check",
        &[&["theory", "check", "--quick", "Q8", "Q6", "--out", stored.to_str().unwrap()], &json[..]].concat(),
    );
    valid("theory-stored", &document(&stored));
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/traces/seven-sites.swf");
    let trace = trace.to_str().unwrap();
    printed("trace-info", &[&["trace", "info", trace], &json[..]].concat());
    printed("trace-validate", &[&["trace", "validate", trace], &json[..]].concat());
    printed("trace-validate", &[&["trace", "validate", PROGRAM], &json[..]].concat());
    printed("swarm", &["swarm", "--seeds", "5", "--json"]);
    let predicted = folder.path().join("scored");
    let predict = ["predict", trace, "--sites", "128", "--out", predicted.to_str().unwrap()];
    printed("predict", &[&predict[..], &["--predictors", "user,exact,avg2"], &json[..]].concat());
}

/// The mutant: another unit, another name, another word, a field less or more.
#[test]
fn mutant_what_is_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    simulate(&out, &["--sites", "8,16,24,96", "--count", "150", "--delay", "40s"], 0);
    let metrics = document(&out.join("metrics.json"));
    let life = printed("explain", &["explain", out.to_str().unwrap(), "110", "--format", "json"]);
    let rename = |document: &Value, path: &str, from: &str, to: &str| {
        let mut changed = document.clone();
        let fields = changed.pointer_mut(path).unwrap().as_object_mut().unwrap();
        let value = fields.remove(from).unwrap();
        fields.insert(to.to_string(), value);
        changed
    };
    let set = |document: &Value, path: &str, value: Value| {
        let mut changed = document.clone();
        *changed.pointer_mut(path).unwrap() = value;
        changed
    };
    for (schema, changed) in [
        ("metrics", rename(&metrics, "/metrics", "makespan_s", "makespan_us")),
        ("metrics", rename(&metrics, "/waits/causes/0", "wait_s", "wait_ms")),
        ("metrics", rename(&metrics, "/metrics/sites/0", "utilization", "utilisation")),
        ("metrics", set(&metrics, "/verdict", json!("not_applicable"))),
        ("metrics", set(&metrics, "/theory/0/verdict", json!({"not_applicable": {"reason": "x"}}))),
        ("metrics", set(&metrics, "/format", json!(1))),
        ("metrics", set(&metrics, "/metrics/makespan_s", json!("110 s"))),
        ("explain", rename(&life, "", "submit_s", "submit_us")),
        ("explain", rename(&life, "/steps/0", "at_s", "at_us")),
    ] {
        assert!(!wrong(schema, &changed).is_empty(), "{schema}: {changed}");
    }
}

#[test]
fn every_field_of_a_schema_is_described() {
    fn fields(value: &Value, seen: &mut usize, bare: &mut Vec<String>) {
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            for (name, field) in properties {
                *seen += 1;
                if field["description"].as_str().is_none_or(|text| text.len() < 3) {
                    bare.push(name.clone());
                }
            }
        }
        match value {
            Value::Object(map) => map.values().for_each(|value| fields(value, seen, bare)),
            Value::Array(list) => list.iter().for_each(|value| fields(value, seen, bare)),
            _ => {}
        }
    }
    let page = fs::read_to_string(docs().join("SCHEMAS.md")).unwrap();
    let (mut seen, mut files) = (0, 0);
    for entry in fs::read_dir(docs().join("schemas")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(page.contains(&format!("(schemas/{name})")), "SCHEMAS.md does not name {name}");
        let mut bare = Vec::new();
        fields(&document(&path), &mut seen, &mut bare);
        assert!(bare.is_empty(), "{name}: {bare:?}");
        files += 1;
    }
    assert!(files > 10 && seen > 400, "{files} files, {seen} fields");
}

/// A few seconds of processes.
const RUN: &str = r#"
[grid]
sizes = [16, 64, 128]
[workload]
trace = "built-in:seven-sites"
count = 25
[network]
delay = "60s"
[run]
clock = "scaled:20000"
ensemble = 200
calibration_tolerance = 1000.0
"#;

/// Site 2 crashes for good before most jobs, and others are too narrow for many.
const PARTIAL: &str = include_str!("one_site_gone.toml");

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn configuration(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs").join(name).to_str().unwrap().to_string()
}

fn document(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn schema(name: &str) -> Validator {
    jsonschema::validator_for(&document(&docs().join(format!("schemas/{name}.json")))).unwrap()
}

/// What of a document is not as its schema says.
fn wrong(name: &str, document: &Value) -> Vec<String> {
    let errors = schema(name);
    errors
        .iter_errors(document)
        .take(5)
        .map(|error| format!("{}: {error:.300}", error.instance_path()))
        .collect()
}

fn valid(name: &str, document: &Value) {
    let wrong = wrong(name, document);
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
}

/// Holds the files of a result directory against their schemas, and counts kinds of events and sections of metrics.
fn directory(out: &Path, kinds: &mut BTreeMap<String, usize>, sections: &mut BTreeMap<String, usize>) {
    valid("manifest", &document(&out.join("manifest.json")));
    let metrics = document(&out.join("metrics.json"));
    valid("metrics", &metrics);
    for (name, section) in metrics.as_object().unwrap() {
        *sections.entry(name.clone()).or_default() += usize::from(!section.is_null());
    }
    let Ok(log) = fs::File::open(out.join("events.jsonl.zst")) else { return };
    let text = String::from_utf8(zstd::decode_all(log).unwrap()).unwrap();
    let event = schema("event");
    for line in text.lines() {
        let parsed: Value = serde_json::from_str(line).unwrap();
        let kind = parsed["kind"].as_object().unwrap().keys().next().unwrap();
        let count = kinds.entry(kind.clone()).or_default();
        *count += 1;
        if *count <= LINES {
            assert!(event.is_valid(&parsed), "{line}");
        }
    }
}

fn simulate(out: &Path, flags: &[&str], code: i32) {
    let mut command = Command::new(PROGRAM);
    command.args(["simulate", "--no-page", "--replace", "--out"]).arg(out).args(flags);
    if flags.contains(&"--sites") {
        command.args(["--trace", "built-in:seven-sites"]);
    }
    let run = command.output().unwrap();
    assert_eq!(run.status.code(), Some(code), "{flags:?}\n{}", String::from_utf8_lossy(&run.stderr));
}

/// What a command prints, which is as its schema says.
fn printed(schema: &str, arguments: &[&str]) -> Value {
    let run = Command::new(PROGRAM).args(arguments).output().unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    let document = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{arguments:?}: {error}\n{text}{}", String::from_utf8_lossy(&run.stderr))
    });
    valid(schema, &document);
    document
}
