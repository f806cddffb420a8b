//! `stealgrid run` as a user sees it: exit codes, what is in the result directory, and that no process is left
//! behind, whatever happens.
//!
//! Every test starts its own processes and waits for their end. Nothing depends on how fast they are, but for a
//! patience that only a failing test exhausts.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::process::Command;

use rustix::process::Signal;
use stealgrid_tests::once_more;

use crate::processes::{
    JOBS, Run, TOLERANCE, assert_gone, not_different, pid, read, signal, table, unfolded,
};

/// Two seconds of delay at a factor that a loaded machine can try; whether it keeps to it is seen after the run. So many
/// simulations that a correct run is called different once in 2,001 times.
const LOADED: [&str; 8] =
    ["--clock", "scaled:200", "--delay", "2s", "--ensemble", "2000", "--calibration-tolerance", "1000"];

#[test]
fn a_run_replays_every_job_once_and_writes_its_results() {
    let (_, folder) = not_different(|| {
        let folder = tempfile::tempdir().unwrap();
        // 550 s of trace time.
        let (status, output) = Run::start(folder.path(), &LOADED).wait();
        (status, output, folder)
    });

    let out = folder.path().join("out");
    let jobs = read(&out.join("jobs.csv"));
    let (columns, rows) = table(&jobs);
    let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let ids: BTreeSet<&str> = rows.iter().map(|row| row[column("job_id")]).collect();
    assert_eq!((rows.len(), ids.len()), (JOBS, JOBS));
    let migrations = read(&out.join("migrations.csv"));
    let stolen: u64 = table(&migrations)
        .1
        .iter()
        .filter(|row| row[0] != row[1])
        .map(|row| row[2].parse::<u64>().unwrap())
        .sum();
    assert!(stolen > 0, "{migrations}");
    let links = read(&out.join("links.csv"));
    let (columns, rows) = table(&links);
    assert_eq!(rows.len(), 6, "one for each directed link of three sites: {links}");
    let mean = columns.iter().position(|column| *column == "delay_mean_s").unwrap();
    let means: Vec<f64> = rows.iter().filter_map(|row| row[mean].parse().ok()).collect();
    assert!(
        !means.is_empty() && means.iter().all(|mean| *mean >= 2.0),
        "no message is faster than injected: {links}"
    );
    for file in ["manifest.json", "metrics.json", "events.jsonl.zst", "report.html", "nodes/site1.log"] {
        assert!(out.join(file).exists(), "{file} is missing");
    }
    assert!(read(&out.join("manifest.json")).contains("complete"));
}

#[test]
fn a_node_that_dies_ends_the_run_and_what_was_collected_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::started(folder.path());
    let nodes = run.nodes();

    let (victim, _) = nodes.iter().find(|(_, command)| command.contains("site2.json")).unwrap();
    signal(*victim, Signal::KILL);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let manifest = read(&folder.path().join("out/manifest.json"));
    assert!(
        manifest.contains("partial") && manifest.contains("node site2 ended with signal: 9"),
        "{manifest}"
    );
    assert!(manifest.contains("connected"), "the end of its log is there: {manifest}");
    assert!(unfolded(&output).contains("the last events of site2 are missing"), "{output}");
    assert!(read(&folder.path().join("out/jobs.csv")).lines().count() < JOBS);
    assert!(folder.path().join("out/links.csv").exists());
    assert_gone(&nodes);
}

#[test]
fn nodes_do_not_outlive_a_coordinator_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::started(folder.path());
    let nodes = run.nodes();

    signal(run.id(), Signal::KILL);

    run.wait();
    assert_gone(&nodes);
}

/// A terminal sends the signal to all processes of the group. The nodes must not take it for theirs.
#[test]
fn ctrl_c_at_the_terminal_keeps_what_was_collected() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::started(folder.path());
    let nodes = run.nodes();

    rustix::process::kill_process_group(pid(run.id()), Signal::INT).unwrap();

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let manifest = read(&folder.path().join("out/manifest.json"));
    assert!(manifest.contains("interrupted after"), "{manifest}");
    assert!(!output.contains("are missing"), "{output}");
    for file in ["jobs.csv", "links.csv", "metrics.json", "events.jsonl.zst"] {
        assert!(folder.path().join("out").join(file).exists(), "{file} is missing");
    }
    assert_gone(&nodes);
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();

    let (status, output) = Run::start(folder.path(), &["--port", &port]).wait();

    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains(&format!("port {port} cannot be listened on")), "{output}");
    assert!(output.contains("choose another first port with --port"), "{output}");
}

#[test]
fn what_real_nodes_cannot_do_is_refused_before_any_starts() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 2] = [
        (&["--strategy", "ideal/st:50"], "sends no messages"),
        (&["--port", "65534"], "3 sites need ports up to 65536"),
    ];
    for (args, expected) in cases {
        let (status, output) = Run::start(folder.path(), args).wait();
        assert_eq!(status.code(), Some(2), "{output}");
        assert!(output.contains(expected), "{output}");
        assert!(!folder.path().join("out").exists(), "nothing was run");
    }
}

#[test]
fn real_links_lose_double_and_cut_messages_and_every_job_runs_once() {
    let text = "jitter = \"1s\"\nloss = 0.1\nduplication = 0.2\nreorder = true\n\
                partitions = [{ groups = [[\"site1\"]], at = \"100s\", until = \"160s\" }]\n";

    let (output, folder) = not_different(|| {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("bad.toml");
        std::fs::write(&model, text).unwrap();
        let args = [&LOADED[..], &["--network", model.to_str().unwrap()]].concat();
        let (status, output) = Run::start(folder.path(), &args).wait();
        (status, output, folder)
    });

    let out = folder.path().join("out");
    let jobs = read(&out.join("jobs.csv"));
    let (columns, rows) = table(&jobs);
    let id = columns.iter().position(|column| *column == "job_id").unwrap();
    let ids: BTreeSet<&str> = rows.iter().map(|row| row[id]).collect();
    assert_eq!((rows.len(), ids.len()), (JOBS, JOBS));
    let events = std::fs::File::open(out.join("events.jsonl.zst")).unwrap();
    let events = String::from_utf8(zstd::decode_all(events).unwrap()).unwrap();
    let lost = events.lines().filter(|line| line.contains("\"lost\"")).count();
    assert!(lost > 0, "one message in ten is lost");
    assert!(
        !output.contains("not acknowledged"),
        "what is lost on purpose is no fault of the network: {output}"
    );
}

#[test]
fn a_network_too_slow_for_the_delays_gets_a_slower_clock_and_is_refused_where_it_is_only_measured() {
    let folder = tempfile::tempdir().unwrap();
    // A round trip would have to take two microseconds.
    let flags = ["--clock", "scaled:100000", "--delay", "1ms", TOLERANCE, "10"];
    let (status, output) = Run::start(folder.path(), &[&flags[..], &["--ensemble", "0"]].concat()).wait();
    assert_eq!(status.code(), Some(0), "{output}");
    let said =
        "the links could not keep to their delays at 100000 times the wall clock, so the clock is slower";
    // As a note at once, and in the results; lines of a terminal are folded.
    assert_eq!(output.replace("\n  ", " ").matches(said).count(), 2, "{output}");
    let manifest = read(&folder.path().join("out/manifest.json"));
    assert!(!manifest.contains("scaled:100000\",") && manifest.contains(said), "{manifest}");

    let folder = tempfile::tempdir().unwrap();
    let (status, output) = Run::start(folder.path(), &[&flags[..], &["--calibrate-only"]].concat()).wait();
    assert_eq!(status.code(), Some(6), "{output}");
    let out = folder.path().join("out-calibration");
    assert_eq!(table(&read(&out.join("calibration.csv"))).1.len(), 6, "{output}");
    assert!(!out.join("jobs.csv").exists(), "nothing was run");
}

#[test]
fn links_can_be_measured_without_a_run_that_leaves_earlier_results_alone() {
    let folder = tempfile::tempdir().unwrap();
    let earlier = folder.path().join("out/jobs.csv");
    std::fs::create_dir(folder.path().join("out")).unwrap();
    std::fs::write(&earlier, "kept").unwrap();

    let args = ["--calibrate-only", "--clock", "scaled:10", "--format", "csv"];
    let (status, output) = Run::start(folder.path(), &args).wait();

    assert_eq!(status.code(), Some(0), "{output}");
    let rows: Vec<&str> = output.lines().filter(|line| line.starts_with("site")).collect();
    assert_eq!(rows.len(), 6, "{output}");
    assert!(rows.iter().all(|row| row.contains(",15,") && row.ends_with(",true")), "{output}");
    assert_eq!(read(&earlier), "kept");
}

/// Multicast DNS in a network namespace of its own: with loopback alone, which mDNS leaves out, nodes do not find each
/// other, and with an interface they do.
#[test]
fn nodes_find_each_other_by_mdns_or_the_run_says_who_misses_whom() {
    let test = "run_processes::nodes_find_each_other_by_mdns_or_the_run_says_who_misses_whom";
    let needs = "mDNS needs unshare, ip, veth interfaces, and root or namespaces of users";
    once_more::in_namespace("-n", needs, "ip link add here type veth peer name there", test, by_mdns);
}

fn by_mdns() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mdns.toml");
    let path = file.to_str().unwrap();
    let set_up = |script: &str| {
        let done = Command::new("sh").args(["-c", script]).status().unwrap();
        assert!(done.success(), "{script}");
    };

    set_up("ip link set lo up");
    std::fs::write(&file, "[run]\ndiscovery = \"mdns\"\nconnect_timeout = \"1s\"\n").unwrap();
    let (status, output) = Run::start(folder.path(), &[path]).wait();
    assert_eq!(status.code(), Some(4), "{output}");
    assert!(output.contains("did not connect within 1s"), "{output}");
    assert!(output.contains("site1") && output.contains("site3"), "{output}");

    set_up(
        "ip link add here type veth peer name there && ip addr add 10.77.0.1/24 dev here && \
         ip link set here multicast on up && ip link set there up",
    );
    std::fs::write(&file, "[run]\ndiscovery = \"mdns\"\n").unwrap();
    not_different(|| {
        let args = [path, "--clock", "scaled:500", "--ensemble", "2000", "--replace"];
        let (status, output) = Run::start(folder.path(), &args).wait();
        (status, output, ())
    });
}
