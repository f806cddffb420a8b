//! `steals.csv` agrees with `jobs.csv`: each job has one row for each change of site, in order, the last one where
//! it ran; and with `metrics.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::PROGRAM;

#[test]
fn every_change_of_site_is_a_row() {
    for flags in [
        &["--strategy", "st:50"][..],
        &["--strategy", "st:50,order=bha"],
        &["--strategy", "st-greedy:50"],
        &["--strategy", "common-pool"],
        &["--strategy", "pool:easy"],
        &["--strategy", "pool:easy,via=gossip"],
        &["--strategy", "steal:random"],
        &["--strategy", "steal:two-choices"],
        &["--strategy", "steal:two-choices,mode=push"],
        &["--strategy", "st:50", "--discovery", "polling"],
        &["--strategy", "st:50", "--submit", "origin", "--origin", "site:4"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        simulate(&out, &[&["--delay", "30s"], flags].concat());
        let (steals, jobs) = (rows(&out.join("steals.csv")), rows(&out.join("jobs.csv")));
        assert!(steals.len() > 50, "{flags:?}: {} rows", steals.len());
        assert_eq!(contradiction(&steals, &jobs), None, "{flags:?}");

        let metrics: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(out.join("metrics.json")).unwrap()).unwrap();
        let price = &metrics["steals"];
        let counted = steals.iter().filter(|row| row["cause"] != "route").count();
        assert_eq!(price["steals"], counted, "{flags:?}");
        assert_eq!(price["requests"], metrics["requests"]["sent"]);
        let refused: u64 =
            price["refusals"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(metrics["metrics"]["refusals"], refused);
        let unknown = steals.iter().filter(|row| row["cause"] == "request" && row["requested_at"].is_empty());
        assert_eq!(unknown.count(), 0, "{flags:?}: the request of every answer is known");

        // The mutant: without one of its rows the file contradicts the jobs.
        let mut fewer = steals.clone();
        fewer.remove(fewer.len() / 2);
        assert!(contradiction(&fewer, &jobs).is_some());
    }
}

#[test]
fn without_exchange_there_is_no_price() {
    let folder = tempfile::tempdir().unwrap();
    for strategy in ["local", "ideal/st:50"] {
        let out = folder.path().join(strategy.replace('/', "-"));
        simulate(&out, &["--strategy", strategy]);
        assert!(!out.join("steals.csv").exists(), "{strategy}");
        let metrics = fs::read_to_string(out.join("metrics.json")).unwrap();
        assert!(metrics.contains("\"steals\": null"), "{strategy}");
    }
}

#[test]
fn a_run_is_set_beside_local_queues_at_the_sites_where_its_jobs_are_submitted() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = |out: &Path| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(out.join("metrics.json")).unwrap()).unwrap()
    };
    let mut waits = Vec::new();
    // A third of the jobs is wider than the second site, and goes home.
    for (place, submit) in [["home", "site:1"], ["origin", "site:4"], ["origin", "site:2"]].iter().enumerate()
    {
        let [submit, origin] = submit;
        let of = |strategy: &str| {
            let out = folder.path().join(format!("{strategy}-{place}").replace('/', "-"));
            simulate(
                &out,
                &["--delay", "0ms", "--strategy", strategy, "--submit", submit, "--origin", origin],
            );
            metrics(&out)
        };
        let (run, local) = (of("st:50"), of("local"));
        assert_eq!(
            run["without_exchange"]["wait_mean_s"], local["metrics"]["wait_mean_s"],
            "{submit} {origin}"
        );
        assert_eq!(
            run["without_exchange"]["makespan_s"], local["metrics"]["makespan_s"],
            "{submit} {origin}"
        );
        assert_eq!(
            of("ideal/local")["metrics"]["wait_mean_s"],
            local["metrics"]["wait_mean_s"],
            "{submit} {origin}"
        );
        waits.push(local["metrics"]["wait_mean_s"].to_string());
    }
    assert!(waits[0] != waits[1] && waits[1] != waits[2], "it matters where: {waits:?}");
}

type Row = BTreeMap<String, String>;

/// What the rows say of a job that its line in `jobs.csv` does not.
fn contradiction(steals: &[Row], jobs: &[Row]) -> Option<String> {
    let mut by_job: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in steals {
        by_job.entry(&row["job_id"]).or_default().push(row);
    }
    jobs.iter().find_map(|job| {
        let rows = by_job.remove(job["job_id"].as_str()).unwrap_or_default();
        let hops: Vec<&str> = rows.iter().map(|row| row["hop"].as_str()).collect();
        let expected: Vec<String> =
            (1..=job["hops"].parse::<u32>().unwrap()).map(|hop| hop.to_string()).collect();
        let chained = rows.windows(2).all(|pair| pair[0]["thief"] == pair[1]["victim"]);
        let arrived = rows.last().is_none_or(|row| {
            row["thief"] == job["exec_site"]
                && (row["cause"] == "route" || row["started_at"] == job["starting_time"])
        });
        (hops != expected || !chained || !arrived).then(|| format!("{job:?}\n{rows:?}"))
    })
}

fn simulate(out: &Path, flags: &[&str]) {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/traces/seven-sites.swf");
    let mut arguments = vec!["simulate", "--sites", "8,16,24,96", "--no-page", "--count", "300", "--check"];
    arguments.extend(["--trace", trace.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    if !flags.contains(&"--submit") {
        arguments.extend(["--submit", "home"]);
    }
    arguments.extend(flags);
    let run = Command::new(PROGRAM).args(&arguments).output().unwrap();
    assert!(run.status.success(), "{arguments:?}\n{}", String::from_utf8_lossy(&run.stderr));
}

fn rows(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines
        .map(|line| header.iter().map(ToString::to_string).zip(line.split(',').map(str::to_string)).collect())
        .collect()
}
