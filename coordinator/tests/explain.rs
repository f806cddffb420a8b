//! `stealgrid explain` on a real run: the wait of every job has a cause at every moment, and what cannot be told is
//! refused with a reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::PROGRAM;

#[test]
fn every_moment_of_every_wait_has_a_cause() {
    let folder = tempfile::tempdir().unwrap();
    for flags in
        [&["--delay", "40s"][..], &["--strategy", "local"], &["--strategy", "pool:easy", "--delay", "9s"]]
    {
        let out = folder.path().join("out");
        simulate(&out, flags);
        let jobs = fs::read_to_string(out.join("jobs.csv")).unwrap();
        let mut causes = 0;
        for row in jobs.lines().skip(1).step_by(7) {
            let fields: Vec<&str> = row.split(',').collect();
            let (code, output) = explain(&out, fields[0], &["--format", "json"]);
            assert_eq!(code, 0, "{output}");
            let life: serde_json::Value = serde_json::from_str(&output).unwrap();
            let seconds = |place: usize| fields[place].parse::<f64>().unwrap();
            let (mut at, start) = (seconds(3), seconds(8));
            for wait in life["waits"].as_array().unwrap() {
                assert_eq!(wait["from_s"], at, "{output}");
                at = wait["to_s"].as_f64().unwrap();
                assert!(wait["cause"].is_string());
                causes += 1;
            }
            assert_eq!(at, start, "job {} under {flags:?}\n{output}", fields[0]);
            assert_eq!(life["hops"].as_i64().unwrap().to_string(), fields[20]);
        }
        assert!(causes > 20, "{causes} under {flags:?}");
        // Without a number it is the job that waited longest, of equal ones the first.
        let waited = |row: &str| {
            let fields: Vec<&str> = row.split(',').collect();
            let seconds = |place: usize| fields[place].parse::<f64>().unwrap();
            (seconds(8) - seconds(3), fields[0].parse::<i64>().unwrap())
        };
        let all = jobs.lines().skip(1).map(waited);
        let (_, longest) = all.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).unwrap();
        let run = Command::new(PROGRAM).arg("explain").arg(&out).args(["--format", "json"]).output().unwrap();
        let life: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        assert_eq!(life["job"], longest, "under {flags:?}");
    }
}

/// On nodes that jobs share causes need the nodes, and the memory that jobs ask for: results have neither, the experiment has both.
#[test]
fn causes_on_shared_nodes_are_those_of_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut command = Command::new(PROGRAM);
    let experiment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/m-cisne/555.toml");
    command.arg("simulate").arg(experiment).args(["--no-page", "--strategy", "local", "--out"]).arg(&out);
    let run = command.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let metrics: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(out.join("metrics.json")).unwrap()).unwrap();
    let mut told: BTreeMap<String, f64> = BTreeMap::new();
    let jobs = fs::read_to_string(out.join("jobs.csv")).unwrap();
    for row in jobs.lines().skip(1) {
        let (code, output) = explain(&out, row.split(',').next().unwrap(), &["--format", "json"]);
        assert_eq!(code, 0, "{output}");
        let life: serde_json::Value = serde_json::from_str(&output).unwrap();
        assert!(life.get("planned").is_none(), "a plan on processors says nothing: {output}");
        for wait in life["waits"].as_array().unwrap() {
            let length = wait["to_s"].as_f64().unwrap() - wait["from_s"].as_f64().unwrap();
            *told.entry(wait["cause"].as_str().unwrap().to_string()).or_default() += length;
        }
    }
    for cause in metrics["waits"]["causes"].as_array().unwrap() {
        let (name, wait) = (cause["cause"].as_str().unwrap(), cause["wait_s"].as_f64().unwrap());
        let told = told.get(name).copied().unwrap_or(0.0);
        assert!((told - wait).abs() < 1e-3, "{name}: {told} s told, {wait} s in all");
    }
    assert!(told["full"] > 0.0 && told.len() > 1, "{told:?}");
}

/// What the site predicted stands beside what the job took, in the table of jobs and in words.
#[test]
fn what_was_predicted_is_told_beside_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let (out, log) = (folder.path().join("out"), folder.path().join("log.swf"));
    // Three users of an hour's estimates: each job takes longer than the one before.
    let line = |job: u64| {
        let (submit, run_time, processors, user) = (job * 40, 30 + job % 17 * 90, 1 + job * 7 % 16, job % 3);
        format!(
            "{job} {submit} -1 {run_time} {processors} -1 -1 {processors} 3600 -1 1 {user} 1 1 1 -1 -1 -1\n"
        )
    };
    fs::write(&log, (1..=150).map(line).collect::<String>()).unwrap();
    let simulate = |strategy: &str, also: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["simulate", "--no-page", "--replace", "--sites", "8,16", "--strategy", strategy]);
        let run = command.arg("--trace").arg(&log).arg("--out").arg(&out).args(also).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    simulate("local", &[]);
    let header = |text: &str| text.lines().next().unwrap().to_string();
    let plain = header(&fs::read_to_string(out.join("jobs.csv")).unwrap());
    assert!(!plain.contains("predicted"), "{plain}");

    for strategy in ["local", "broker:mst", "ideal/broker:mst"] {
        simulate(strategy, &["--estimate", "avg2", "--correction", "tsafrir"]);
        let jobs = fs::read_to_string(out.join("jobs.csv")).unwrap();
        assert_eq!(header(&jobs), format!("{plain},predicted,corrections"), "{strategy}");
        let (mut shorter, mut corrected) = (0, 0);
        for row in jobs.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            let seconds = |place: usize| fields[place].parse::<f64>().unwrap();
            let (requested, execution, predicted) = (seconds(5), seconds(9), seconds(22));
            assert!(predicted <= requested, "{row}");
            shorter += u32::from(predicted < requested);
            let corrections: u32 = fields[23].parse().unwrap();
            assert!(corrections == 0 || execution > predicted, "{row}");
            corrected += u32::from(corrections > 0);
            if corrections == 1 && corrected < 4 {
                let (code, output) = explain(&out, fields[0], &["--full"]);
                assert_eq!(code, 0, "{output}");
                let said = output.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(said.contains("predicted to run for"), "{output}");
                assert!(said.contains("corrected once while it ran"), "{output}");
                assert!(said.contains("it has run past the"), "{output}");
                let (_, output) = explain(&out, fields[0], &["--format", "json"]);
                let life: serde_json::Value = serde_json::from_str(&output).unwrap();
                let last = life["predictions"].as_array().unwrap().last().unwrap();
                assert_eq!(last["corrections"], 1, "{output}");
            }
        }
        assert!(shorter > 10 && corrected > 3, "{shorter} and {corrected} under {strategy}");
        let manifest: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(out.join("manifest.json")).unwrap()).unwrap();
        assert_eq!(manifest["switches"]["workload.correction"], "tsafrir");
        assert_eq!(manifest["switches"]["strategy.backfill"], "arrival");
    }
}

/// First come, first served, by users who know: nobody overtakes, so every plan comes true. By users who do not, plans are too late, and
/// never too early. Sites without a queue of their own have no plan.
#[test]
fn a_plan_made_when_a_job_came_comes_true_where_nothing_can_change_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let planned = |flags: &[&str]| -> Vec<(Option<f64>, f64, f64)> {
        simulate(&out, &[&["--sites", "96"], flags].concat());
        let jobs = fs::read_to_string(out.join("jobs.csv")).unwrap();
        let mut all = Vec::new();
        for row in jobs.lines().skip(1).step_by(3) {
            let (code, output) = explain(&out, row.split(',').next().unwrap(), &["--format", "json"]);
            assert_eq!(code, 0, "{output}");
            let life: serde_json::Value = serde_json::from_str(&output).unwrap();
            let seconds = |value: &serde_json::Value| value.as_f64();
            let (submit, start) = (seconds(&life["submit_s"]).unwrap(), seconds(&life["start_s"]).unwrap());
            all.push((seconds(&life["planned"]["start_s"]), start, start - submit));
        }
        all
    };
    let fcfs = ["--strategy", "local", "--local", "fcfs"];
    let knowing = planned(&[&fcfs[..], &["--estimate", "exact"]].concat());
    assert!(knowing.iter().filter(|(.., wait)| *wait > 0.0).count() > 5, "{knowing:?}");
    assert!(knowing.iter().all(|(planned, start, _)| *planned == Some(*start)), "{knowing:?}");
    let users = planned(&fcfs);
    assert!(users.iter().all(|(planned, start, _)| planned.unwrap() >= *start), "{users:?}");
    assert!(users.iter().any(|(planned, start, _)| planned.unwrap() > *start));
    assert!(planned(&["--strategy", "pool:easy"]).iter().all(|(planned, ..)| planned.is_none()));

    simulate(&out, &[&["--sites", "96"], &fcfs[..]].concat());
    let waited = fs::read_to_string(out.join("jobs.csv")).unwrap();
    let late = waited.lines().skip(1).find(|row| row.split(',').nth(8) != row.split(',').nth(3)).unwrap();
    let (_, output) = explain(&out, late.split(',').next().unwrap(), &[]);
    assert!(output.contains("planned to start at") && output.contains("earlier"), "{output}");
}

/// The report sums up by groups of jobs what `explain` tells of each.
#[test]
fn causes_of_all_jobs_add_up_to_those_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for flags in [
        &["--delay", "40s", "--strategy", "st:50"][..],
        &["--delay", "40s", "--strategy", "pool:easy"],
        &["--delay", "40s", "--strategy", "pool:easy,via=gossip"],
        &["--delay", "40s", "--strategy", "broker:mlb", "--local", "easy"],
    ] {
        simulate(&out, &[flags, &["--count", "60"]].concat());
        let document: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(out.join("metrics.json")).unwrap()).unwrap();
        let mut expected = BTreeMap::new();
        for part in document["waits"]["causes"].as_array().unwrap() {
            let wait = part["wait_s"].as_f64().unwrap();
            if wait > 0.0 {
                expected.insert(part["cause"].as_str().unwrap().to_string(), wait);
            }
        }
        assert!(expected.len() >= 2, "{flags:?}: {expected:?}");

        let mut told: BTreeMap<String, f64> = BTreeMap::new();
        for row in fs::read_to_string(out.join("jobs.csv")).unwrap().lines().skip(1) {
            let (code, output) = explain(&out, row.split(',').next().unwrap(), &["--format", "json"]);
            assert_eq!(code, 0, "{output}");
            let life: serde_json::Value = serde_json::from_str(&output).unwrap();
            for wait in life["waits"].as_array().unwrap() {
                let length = wait["to_s"].as_f64().unwrap() - wait["from_s"].as_f64().unwrap();
                *told.entry(wait["cause"].as_str().unwrap().to_string()).or_default() += length;
            }
        }
        assert_eq!(told.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{flags:?}");
        for (cause, wait) in told {
            assert!((wait - expected[&cause]).abs() < 0.01, "{flags:?}: {cause} {wait} {expected:?}");
        }
    }
}

#[test]
fn a_person_can_read_it_and_the_ideal_run_is_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (out, ideal) = (folder.path().join("out"), folder.path().join("ideal"));
    simulate(&out, &["--delay", "40s"]);
    simulate(&ideal, &["--delay", "40s", "--strategy", "ideal/st:50"]);
    let stolen = fs::read_to_string(out.join("steals.csv")).unwrap();
    let job = stolen.lines().nth(1).unwrap().split(',').next().unwrap();

    let (code, output) = explain(&out, job, &["--full"]);
    assert_eq!(code, 0, "{output}");
    for expected in ["What happened", "Why it waited", "it is on its way from", "--strategy ideal/st:50"] {
        assert!(output.contains(expected), "{expected} in\n{output}");
    }
    let (code, output) = explain(&out, job, &["--ideal", ideal.to_str().unwrap()]);
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("the ideal run starts it at"), "{output}");
    // Where it is to be by the hint it is found without being named.
    fs::rename(&ideal, folder.path().join("out-ideal")).unwrap();
    let (code, output) = explain(&out, job, &[]);
    assert_eq!(code, 0, "{output}");
    assert!(
        output.contains("the ideal run starts it at") && !output.contains("--strategy ideal"),
        "{output}"
    );
}

#[test]
fn a_few_lines_say_why_a_job_waited() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    simulate(&out, &["--delay", "40s", "--count", "900"]);
    simulate(
        &folder.path().join("out-ideal"),
        &["--delay", "40s", "--count", "900", "--strategy", "ideal/st:50"],
    );
    let jobs = fs::read_to_string(out.join("jobs.csv")).unwrap();
    let (mut told, mut decided) = (0, 0);
    for row in jobs.lines().skip(1).step_by(60) {
        let fields: Vec<&str> = row.split(',').collect();
        let seconds = |field: usize| fields[field].parse::<f64>().unwrap();
        let waited = seconds(8) - seconds(3);

        let (code, output) = explain(&out, fields[0], &[]);

        assert_eq!(code, 0, "{output}");
        assert!(output.lines().count() <= 9, "{output}");
        assert!(output.contains(&format!("job {}: ", fields[0])), "{output}");
        let causes: Vec<f64> = output
            .lines()
            .skip_while(|line| !line.starts_with("waited "))
            .take_while(|line| !line.starts_with("decided "))
            .filter(|line| line.contains(" %  "))
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        assert!((causes.iter().sum::<f64>() - waited).abs() < 0.001, "{waited}\n{output}");
        if causes.len() > 1 {
            assert!(causes.len() <= 4 && causes[0] >= causes[1], "{output}");
            told += 1;
        }
        decided += usize::from(output.contains("\ndecided at "));
    }
    assert!(told > 0 && decided > 0, "{told} {decided}");
}

#[test]
fn what_is_left_out_of_a_log_changes_nothing_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (out, whole) = (folder.path().join("out"), folder.path().join("whole"));
    simulate(&out, &["--delay", "40s"]);
    // The same log in a layout that is known from nowhere, so that every line is read.
    fs::create_dir(&whole).unwrap();
    for entry in fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, whole.join(path.file_name().unwrap())).unwrap();
    }
    let log = zstd::decode_all(fs::File::open(out.join("events.jsonl.zst")).unwrap()).unwrap();
    let spaced = String::from_utf8(log).unwrap().replace("\"kind\":{", "\"kind\": {");
    let spaced = zstd::encode_all(spaced.as_bytes(), 1).unwrap();
    fs::write(whole.join("events.jsonl.zst"), spaced).unwrap();
    for job in ["7", "60", "110", "149"] {
        let told = |directory: &Path| -> serde_json::Value {
            let (code, output) = explain(directory, job, &["--format", "json"]);
            assert_eq!(code, 0, "{output}");
            let mut told: serde_json::Value = serde_json::from_str(&output).unwrap();
            // Between which lines nothing changed is said by the lines that were read.
            for wait in told["waits"].as_array_mut().unwrap() {
                wait.as_object_mut().unwrap().remove("lines");
            }
            told.as_object_mut().unwrap().remove("ideal_hint");
            told
        };
        assert_eq!(told(&out), told(&whole), "job {job}");
    }
}

#[test]
fn only_the_ideal_of_the_same_experiment_is_set_beside_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let (out, other) = (folder.path().join("out"), folder.path().join("other"));
    simulate(&out, &["--delay", "40s", "--strategy", "st:50"]);

    let (code, output) = explain(&out, "7", &["--ideal", out.to_str().unwrap()]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("it is a run of st:50 and no ideal"), "{output}");
    simulate(&other, &["--strategy", "ideal/st:50", "--sites", "8,16,24,128"]);
    let (code, output) = explain(&out, "7", &["--ideal", other.to_str().unwrap()]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("its grid is") && output.contains("site4 128"), "{output}");
}

#[test]
fn a_baseline_without_ideal_is_sent_to_none() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    simulate(&out, &["--delay", "40s", "--strategy", "steal:random"]);

    let (code, output) = explain(&out, "7", &[]);

    assert_eq!(code, 0, "{output}");
    assert!(!output.contains("ideal/"), "{output}");
}

#[test]
fn what_cannot_be_told_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    simulate(&out, &[]);
    let (code, output) = explain(&out, "4711", &[]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("find job 4711") && output.contains("here 1 to 150"), "{output}");

    simulate(&out, &["--no-events"]);
    let (code, output) = explain(&out, "1", &[]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("without --no-events"), "{output}");

    assert_eq!(explain(folder.path(), "1", &[]).0, 3, "no result directory");
    assert_eq!(explain(&out, "first", &[]).0, 2, "no number");
}

fn simulate(out: &Path, flags: &[&str]) {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/traces/seven-sites.swf");
    let mut arguments = vec!["simulate", "--no-page", "--replace", "--submit", "home"];
    if !flags.contains(&"--count") {
        arguments.extend(["--count", "150"]);
    }
    if !flags.contains(&"--sites") {
        arguments.extend(["--sites", "8,16,24,96"]);
    }
    arguments.extend(["--trace", trace.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    arguments.extend(flags);
    let run = Command::new(PROGRAM).args(&arguments).output().unwrap();
    assert!(run.status.success(), "{arguments:?}\n{}", String::from_utf8_lossy(&run.stderr));
}

/// Exit code and all output.
fn explain(out: &Path, job: &str, flags: &[&str]) -> (i32, String) {
    let run = Command::new(PROGRAM).arg("explain").arg(out).arg(job).args(flags).output().unwrap();
    let said = [run.stdout, run.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (run.status.code().unwrap(), said)
}
