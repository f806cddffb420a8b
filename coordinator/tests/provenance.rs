//! What a result says of how it was made, and that this makes it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::PROGRAM;
use crate::processes::read;

/// A log with users, a job past its request (3), one without (5), one that is dropped (6), and a wide one.
const LOG: &str = "; MaxProcs: 16\n\
    1 0 -1 600 4 -1 -1 4 900 -1 1 1 1 -1 1 1 -1 -1\n\
    2 10 -1 700 4 -1 -1 4 900 -1 1 2 1 -1 2 1 -1 -1\n\
    3 20 -1 900 8 -1 -1 8 300 -1 1 1 1 -1 1 1 -1 -1\n\
    4 30 -1 500 16 -1 -1 16 900 -1 1 3 1 -1 2 1 -1 -1\n\
    5 40 -1 800 2 -1 -1 2 -1 -1 1 2 1 -1 1 1 -1 -1\n\
    6 50 -1 0 2 -1 -1 2 900 -1 1 2 1 -1 1 1 -1 -1\n\
    7 60 -1 650 4 -1 -1 4 900 -1 1 3 1 -1 2 1 -1 -1\n";

fn stealgrid(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).current_dir(folder).output().unwrap()
}

/// A folder with the log, and an experiment over it with these further keys of `[workload]` and `[strategy]`.
fn experiment(folder: &Path, name: &str, workload: &str, strategy: &str) -> PathBuf {
    fs::write(folder.join("log.swf"), LOG).unwrap();
    let path = folder.join(format!("{name}.toml"));
    let text = format!(
        "[grid]\nsizes = [8, 16]\n[workload]\ntrace = \"log.swf\"\n{workload}\n[strategy]\nname = \"st:50\"\n{strategy}\n\
         [network]\ndelay = \"5s\"\n"
    );
    fs::write(&path, text).unwrap();
    path
}

fn simulated(folder: &Path, name: &str, workload: &str, strategy: &str) -> (Value, String) {
    experiment(folder, name, workload, strategy);
    let out = folder.join(name);
    // Paths as people type them, which say something else in another folder.
    let output = stealgrid(folder, &["simulate", &format!("{name}.toml"), "--out", name]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest = serde_json::from_str(&read(&out.join("manifest.json"))).unwrap();
    (manifest, read(&out.join("report.html")))
}

/// Two experiments that differ in one default differ in the manifest and on the page, by that switch alone.
#[test]
fn each_switch_that_decides_stands_in_the_manifest_and_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, plain_page) = simulated(folder.path(), "plain", "", "");
    for (key, workload, strategy) in [
        ("strategy.submit", "", "submit = \"home\""),
        ("workload.overrun", "overrun = \"kill\"", ""),
        ("workload.deal", "deal = \"users\"", ""),
        ("workload.deal", "deal = \"home\"", ""),
        ("workload.estimate", "estimate = \"exact\"", ""),
        ("workload.size", "size = \"allocated\"", ""),
        ("workload.load", "load = 0.5", ""),
        ("strategy.submit_delay", "", "submit_delay = \"link\""),
    ] {
        let (other, page) = simulated(folder.path(), "other", workload, strategy);
        let (before, after) =
            (plain["switches"].as_object().unwrap(), other["switches"].as_object().unwrap());
        let changed: Vec<&String> = after.keys().filter(|key| before.get(*key) != after.get(*key)).collect();
        assert_eq!(changed, [key], "{workload} {strategy}");
        let value = after[key].as_str().unwrap();
        let cell = format!("<td>{key}</td><td class=\"n\">{value}</td>");
        assert!(page.contains(&cell) && !plain_page.contains(&cell), "{cell}");
        fs::remove_dir_all(folder.path().join("other")).unwrap();
    }
}

#[test]
fn what_preparation_did_is_counted_and_jobs_that_were_stopped_are_no_successes() {
    let folder = tempfile::tempdir().unwrap();
    let (manifest, page) = simulated(folder.path(), "kill", "overrun = \"kill\"", "");
    let preparation = &manifest["preparation"];
    // Job 3 is stopped after 300 of 900 s on 8 processors: 4,800 of 27,400 processor-seconds with it.
    assert_eq!(preparation["jobs_dropped"], 1, "{preparation}");
    assert_eq!(preparation["jobs_cut"], 1, "{preparation}");
    let work = 4 * 600 + 4 * 700 + 8 * 900 + 16 * 500 + 2 * 800 + 4 * 650;
    let share = preparation["work_cut_share"].as_f64().unwrap();
    assert!((share - 4800.0 / f64::from(work)).abs() < 1e-12, "{share}");
    assert_eq!(manifest["jobs"]["walltime_reached"], 1, "{manifest}");
    assert!(page.contains("of the work cut off at requested times"), "the page says so");
    let jobs = read(&folder.path().join("kill/jobs.csv"));
    let states: Vec<&str> = jobs.lines().skip(1).map(|row| row.split(',').nth(7).unwrap()).collect();
    assert_eq!(states.iter().filter(|state| **state == "COMPLETED_WALLTIME_REACHED").count(), 1, "{jobs}");
    let log = &manifest["logs"][0];
    assert_eq!((&log["file"], &log["jobs"]), (&Value::from("log.swf"), &Value::from(6)));
    assert_eq!(log["sha256"].as_str().unwrap().len(), 64);

    let (manifest, page) = simulated(folder.path(), "as-is", "", "");
    assert_eq!(manifest["preparation"]["jobs_cut"], 0);
    assert_eq!(manifest["jobs"]["walltime_reached"], 0);
    assert!(!page.contains("of the work cut off"));
}

/// Eleven experiments, each run again from its result directory alone, and from another folder.
#[test]
fn a_result_is_made_again_from_its_directory() {
    for (number, (workload, strategy)) in [
        ("", ""),
        ("", "submit = \"home\""),
        ("deal = \"users\"", "local = \"fcfs\""),
        ("deal = \"home\"\noverrun = \"kill\"", ""),
        ("origin = \"queue\"", ""),
        ("estimate = \"factor:2\"", ""),
        ("load = 0.7\ncount = 5", ""),
        ("from = \"10\"\nuntil = \"55\"", ""),
        ("size = \"allocated\"\nfilters = \"all\"", "pass = \"batch\""),
        ("overrun = \"extend\"\npayload = 1000", ""),
        ("", "submit = \"home\"\nsubmit_delay = \"link\""),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("made");
        simulated(folder.path(), "made", workload, strategy);
        // What was edited since does not matter.
        fs::write(folder.path().join("made.toml"), "name = \"another\"").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let output = stealgrid(elsewhere.path(), &["rerun", out.to_str().unwrap()]);
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{number}: {said}");
        assert!(said.contains("the same: ") && said.contains("byte for byte"), "{said}");
        let again = folder.path().join("made-again");
        assert_eq!(read(&out.join("experiment.toml")), read(&again.join("experiment.toml")));
    }
}

/// What `rerun` would find: other results, and another log.
#[test]
fn other_results_and_other_logs_are_told() {
    let folder = tempfile::tempdir().unwrap();
    simulated(folder.path(), "made", "", "");
    let out = folder.path().join("made");
    let rerun = |more: &[&str]| {
        let output = stealgrid(folder.path(), &[&["rerun", "made"], more].concat());
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap(), said)
    };
    let jobs = read(&out.join("jobs.csv"));
    fs::write(out.join("jobs.csv"), jobs.replacen(",600.", ",601.", 1)).unwrap();
    let (code, said) = rerun(&[]);
    assert!(code == 5 && said.contains("DIFFERENT: jobs.csv"), "{code} {said}");

    fs::write(folder.path().join("log.swf"), LOG.replace(" 650 ", " 651 ")).unwrap();
    let (code, said) = rerun(&["--replace"]);
    assert!(code == 3 && said.contains("log.swf is another log than then"), "{code} {said}");
}

/// A baseline in which one site has nearly all jobs says nothing of exchange.
#[test]
fn where_one_site_has_all_users_the_page_has_no_sentence_on_what_exchange_is_worth() {
    let folder = tempfile::tempdir().unwrap();
    let (_, dealt) = simulated(folder.path(), "dealt", "deal = \"processors\"", "");
    assert!(dealt.contains("Without any exchange"), "the jobs are dealt fairly");
    let (manifest, one) = simulated(folder.path(), "one", "origin = \"site:1\"", "");
    let warnings = manifest["warnings"].as_array().unwrap();
    let said = |warning: &Value| warning.as_str().unwrap().starts_with("No gain from exchange is reported");
    assert!(warnings.iter().any(said), "the manifest says it, too: {warnings:?}");
    assert!(
        one.contains("No gain from exchange is reported") && !one.contains("exchange saves"),
        "all are at site 1"
    );
    assert!(one.contains("… jobs dealt"), "the second baseline is drawn");
}

/// The same in a sweep, whose runs without exchange are the baseline.
#[test]
fn a_sweep_says_that_one_site_has_all_users_and_how_much_work_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let page = |name: &str, workload: &str, log: &str| {
        experiment(folder.path(), name, workload, "");
        fs::write(folder.path().join("log.swf"), log).unwrap();
        let text = format!(
            "base = \"{name}.toml\"\n[parameters]\n\"strategy.name\" = [\"local\", \"st:50\"]\n\"network.delay\" = [\"0s\", \"5s\"]\n\
             [report]\nx = \"network.delay\"\nbaseline = \"local\"\n"
        );
        fs::write(folder.path().join(format!("{name}-sweep.toml")), text).unwrap();
        for words in [["sweep", &format!("{name}-sweep.toml")], ["report", &format!("out/{name}-sweep.db")]] {
            let output = stealgrid(folder.path(), &words);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        read(&folder.path().join(format!("out/{name}-sweep/index.html")))
    };
    let starved = "In 2 of 2 runs without exchange over half of the jobs or of the work arrive at one site";
    let one = page("one", "origin = \"site:1\"", LOG);
    assert!(one.contains(starved) && !one.contains("of the work as far as"), "all users are at site 1");
    // The widest site has 16 processors: of 25,100 processor-seconds the 8,500 of job 4 are left out.
    let wide = LOG.replace(" 500 16 -1 -1 16 ", " 500 17 -1 -1 17 ");
    let dropped = page("dropped", "too_wide = \"drop\"", &wide);
    assert!(dropped.contains(", with 33.86 % of the work as far as it is known"), "{dropped}");
    let dealt = page("dealt", "deal = \"processors\"", LOG);
    assert!(!dealt.contains("over half of the jobs"), "the jobs are dealt fairly");
}

#[test]
fn a_strategy_without_an_ideal_is_held_against_zero_latency() {
    let folder = tempfile::tempdir().unwrap();
    let path = experiment(folder.path(), "loaded", "", "");
    let text = read(&path).replace("st:50", "steal:loaded");
    fs::write(&path, text).unwrap();
    let output = stealgrid(folder.path(), &["simulate", "loaded.toml", "--out", "loaded"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = read(&folder.path().join("loaded/report.html"));
    assert!(page.contains(">zero latency</text>"), "the bar is drawn");
    // Without delay it is that run itself.
    let output = stealgrid(folder.path(), &["simulate", "loaded.toml", "--delay", "0s", "--out", "free"]);
    assert!(output.status.success());
    let page = read(&folder.path().join("free/report.html"));
    assert!(page.contains("every job started where and when it would have at zero latency"), "{page}");
}
