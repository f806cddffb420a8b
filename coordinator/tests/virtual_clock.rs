//! `stealgrid run --clock virtual`: real processes, real messages, and the very schedule of the simulator.
//!
//! Nothing depends on how fast the machine is. Every run compares itself with the simulation, event for event; here
//! its event log is also compared with that of `stealgrid simulate`, byte for byte, which knows nothing of it.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::PROGRAM;
use crate::processes::{Run, assert_gone, pid, read, signal, table as table_of};

/// Longer than any run here takes, and shorter than a developer's patience.
const ORDERS_BEGIN: &str = "time goes by the coordinator's orders";

const NETWORKS: [(&str, &str); 5] = [
    ("free", ""),
    ("slow", "[network]\ndelay = \"7s\"\n"),
    (
        "matrix",
        "[network]\nmatrix = [[\"0s\", \"3s\", \"40s\"], [\"1s\", \"0s\", \"9s\"], [\"20s\", \"5s\", \"0s\"]]\n",
    ),
    ("unreliable", "[network]\ndelay = \"2s\"\nloss = 0.2\nduplication = 0.2\njitter = \"9s\"\n"),
    ("polling", "[network]\ndelay = \"1s\"\n[protocol]\ndiscovery = \"polling\"\n"),
];
const STRATEGIES: [&str; 7] =
    ["st:50", "st:20,order=bah", "st-greedy:50", "common-pool", "pool:easy", "steal:random", "local"];

/// Each strategy over two or three networks, and three or four strategies over each. In one process `tests/tests/corpus` has
/// each of them over all.
#[test]
fn strategies_do_over_networks_what_the_simulator_does() {
    for (number, (network, text)) in NETWORKS.iter().enumerate() {
        for (also, strategy) in STRATEGIES.iter().enumerate().skip(number % 2).step_by(2) {
            let folder = tempfile::tempdir().unwrap();
            let seed = (1 + number * STRATEGIES.len() + also).to_string();
            std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
            std::fs::write(folder.path().join("jobs.swf"), jobs(number as u64)).unwrap();
            let args = ["--sites", "4,8,16", "--strategy", strategy, "--seed", &seed];
            identical(folder.path(), network, &args);
        }
    }
}

#[test]
fn brokers_do_what_the_simulator_says() {
    let strategies = ["broker:mpl", "broker:mct,a=0.5", "broker:mwwt-s"];
    let reports = ["", "report = \"every:30s\"\n", "report = \"probe:2\"\npending = \"ignore\"\n"];
    // The matrix is of three sites, and brokers are beside none.
    let networks = NETWORKS.iter().filter(|(network, _)| !matches!(*network, "matrix" | "polling"));
    for (number, (network, text)) in networks.enumerate() {
        for (place, (strategy, report)) in strategies.iter().zip(reports).enumerate() {
            // Two of them over each network, and each over two.
            if place == number {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let text = format!("{text}[protocol]\n{report}");
            std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
            std::fs::write(folder.path().join("jobs.swf"), jobs(number as u64)).unwrap();
            let args = ["--sites", "4,8,16", "--strategy", strategy, "--brokers", "2", "--seed", "1"];
            identical(folder.path(), network, &args);
        }
    }
}

/// Jobs are given, called back, and learned from.
#[test]
fn brokers_before_opaque_sites_do_what_the_simulator_says() {
    let strategies =
        ["opaque:ag,cap=3,timeout=20", "opaque:mqd,cap=2,timeout=40,growth=50", "opaque:round-robin"];
    let networks = NETWORKS.iter().filter(|(network, _)| !matches!(*network, "matrix" | "polling"));
    for (number, (network, text)) in networks.enumerate() {
        // Two of them over each network, and each over two.
        for (_, strategy) in strategies.into_iter().enumerate().filter(|&(place, _)| place != number) {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
            std::fs::write(folder.path().join("jobs.swf"), jobs(number as u64)).unwrap();
            let args = ["--sites", "4,8,16", "--strategy", strategy, "--brokers", "2", "--seed", "1"];
            identical(folder.path(), network, &args);
        }
    }
}

/// Each node and each broker learns by itself what the peers of the simulation learn.
#[test]
fn members_that_predict_run_times_do_what_the_simulator_says() {
    let cases = [
        ("local", &["--backfill", "sjf", "--pass", "batch"][..], "tsafrir"),
        ("broker:mst", &["--brokers", "2"], "user"),
        ("opaque:ag,cap=3,timeout=20", &["--brokers", "1"], "doubling"),
        ("steal:loaded,select=easy", &[], "none"),
    ];
    for (number, (strategy, also, correction)) in cases.into_iter().enumerate() {
        for (network, text) in [NETWORKS[1], NETWORKS[3]] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
            std::fs::write(folder.path().join("jobs.swf"), jobs(number as u64)).unwrap();
            let args = ["--sites", "4,8,16", "--strategy", strategy, "--seed", "1"];
            let predicted = ["--estimate", "last:k=2,by=mean", "--correction", correction];
            identical(folder.path(), network, &[&args[..], also, &predicted].concat());
            let table = read(&folder.path().join("out/jobs.csv"));
            let shorter = |row: &&str| {
                let cells: Vec<&str> = row.split(',').collect();
                cells[22].parse::<f64>().unwrap() < cells[5].parse::<f64>().unwrap()
            };
            assert!(table.lines().skip(1).filter(shorter).count() > 0, "{strategy}\n{table}");
        }
    }
}

/// Sites, thieves, a broker and a global queue plan by the last two run times of each user.
#[test]
fn seven_nodes_that_predict_do_what_the_simulator_says() {
    let cases = [
        ("steal:loaded,select=easy", &[][..]),
        ("local", &["--backfill", "sjf", "--pass", "batch"]),
        ("broker:mst", &["--backfill", "sjf", "--brokers", "1"]),
        ("pool:easy", &[]),
    ];
    for (number, (strategy, also)) in cases.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("experiment.toml"), NETWORKS[1].1).unwrap();
        std::fs::write(folder.path().join("jobs.swf"), fivefold(&jobs(10 + number as u64))).unwrap();
        let sites = ["--sites", "4,6,8,10,12,14,16", "--strategy", strategy, "--seed", "1"];
        let predicted = ["--estimate", "avg2", "--correction", "tsafrir"];
        identical(folder.path(), NETWORKS[1].0, &[&sites[..], also, &predicted].concat());
        let table = read(&folder.path().join("out/jobs.csv"));
        let (columns, rows) = table_of(&table);
        let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let second = |row: &Vec<&str>, name: &str| row[column(name)].parse::<f64>().unwrap();
        let shorter = rows.iter().filter(|row| second(row, "predicted") < second(row, "requested_time"));
        assert!(shorter.count() > crate::processes::JOBS / 4, "{strategy}\n{table}");
        let corrected = rows.iter().filter(|row| second(row, "corrections") > 0.0).count();
        assert!(corrected > 0, "{strategy}: nobody ran past a prediction\n{table}");
    }
}

/// Jobs slow each other down on nodes that they share, and local users come and go there.
#[test]
fn sites_whose_nodes_are_shared_do_what_the_simulator_says() {
    let sites = "[grid]\nsites = [{ name = \"c1\", nodes = 4, mpl = 2 }, { name = \"c2\", nodes = 8, mpl = 2, power = 0.8 }, \
                 { name = \"c3\", nodes = 16, mpl = 2 }]\nlocal = { profile = \"xwin+internet\", share = 0.4, every = \"60s\" }\n";
    for (number, strategy) in ["broker:mcisne,limit=1", "broker:mst", "local"].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("experiment.toml"), format!("{}{sites}", NETWORKS[1].1)).unwrap();
        std::fs::write(folder.path().join("jobs.swf"), fivefold(&jobs(20 + number as u64))).unwrap();
        identical(folder.path(), NETWORKS[1].0, &["--strategy", strategy, "--seed", "1"]);
        let table = read(&folder.path().join("out/jobs.csv"));
        let (columns, rows) = table_of(&table);
        let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let text = std::fs::read_to_string(folder.path().join("jobs.swf")).unwrap();
        let run_time = |job: &str| -> f64 {
            let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            lines.into_iter().find(|line| line[0] == job).expect("it is in the log")[3].parse().unwrap()
        };
        let slowed = rows.iter().filter(|row| {
            row[column("execution_time")].parse::<f64>().unwrap() > 1.01 * run_time(row[column("job_id")])
        });
        assert!(slowed.count() > crate::processes::JOBS / 4, "{strategy}\n{table}");
    }
}

/// Jobs that no site is wide enough for start at several at once, and are stopped everywhere if one of them says no.
#[test]
fn members_that_start_jobs_in_parts_do_what_the_simulator_says() {
    let networks = NETWORKS.iter().filter(|(network, _)| !matches!(*network, "matrix" | "polling"));
    for (number, (network, text)) in networks.enumerate() {
        for (coallocate, brokers, estimate) in
            [("dp", "1", "user"), ("super,phases=two", "2", "user"), ("dp", "2", "avg2")]
        {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
            std::fs::write(folder.path().join("jobs.swf"), wide(&jobs(30 + number as u64))).unwrap();
            let strategy = format!("broker:mcisne,coallocate={coallocate}");
            let args = ["--sites", "4,8,16", "--strategy", &strategy, "--brokers", brokers, "--seed", "1"];
            let args = [&args[..], &["--estimate", estimate]].concat();
            identical(folder.path(), network, &args);
            let metrics: serde_json::Value =
                serde_json::from_str(&read(&folder.path().join("out/metrics.json"))).unwrap();
            let in_parts = metrics["metrics"]["jobs_in_parts"].as_u64().unwrap();
            assert!(in_parts >= 5, "{network} {strategy}: {in_parts} jobs in parts");
        }
    }
}

/// Windows end between the submissions of a log and after them, and batches are full before that.
#[test]
fn brokers_that_plan_batches_do_what_the_simulator_says() {
    let networks = NETWORKS.iter().filter(|(network, _)| !matches!(*network, "matrix" | "polling"));
    for (number, (network, text)) in networks.enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("{text}[strategy.genetic]\nbatch = 5\nwindow = \"20s\"\npopulation = 8\n");
        std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
        std::fs::write(folder.path().join("jobs.swf"), jobs(number as u64)).unwrap();
        let args = ["--sites", "4,8,16", "--strategy", "broker:genetic", "--brokers", "2", "--seed", "1"];
        identical(folder.path(), network, &args);
    }
}

#[test]
fn local_users_submit_past_the_broker_and_the_role_has_two_names() {
    let folder = tempfile::tempdir().unwrap();
    let log =
        |site: &str, trace: &str, role: &str| format!("{{ site = \"{site}\", trace = \"{trace}\"{role} }}");
    let write = |role: &str| {
        let [first, second] = [log("site1", "a.swf", role), log("site2", "b.swf", "")];
        let text = format!(
            "workload.logs = [{first}, {second}]\nworkload.days = \"mon-sun\"\nnetwork.delay = \"7s\"\n"
        );
        std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
    };
    // Monday 1 July 2002 at midnight in GMT-7, the clock of mixes: a full week begins.
    let dated = |number| format!("; UnixStartTime: 1025506800\n{}", jobs(number));
    std::fs::write(folder.path().join("a.swf"), dated(1)).unwrap();
    std::fs::write(folder.path().join("b.swf"), dated(2)).unwrap();
    let args = ["--sites", "4,16", "--too-wide", "drop", "--brokers", "1", "--strategy", "broker:mpl"];

    write(", role = \"local\"");
    identical(folder.path(), "slow", &args);
    // Of the first log what fits its site went there and stayed; nothing of the second did.
    let table = read(&folder.path().join("out/jobs.csv"));
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = |name: &str| head.iter().position(|cell| *cell == name).unwrap();
    let (origin, hops, site) = (column("origin_site"), column("hops"), column("exec_site"));
    let width = column("requested_number_of_resources");
    let mut past = 0;
    for line in lines {
        let is_local = line[origin] == "1" && line[width].parse::<u32>().unwrap() <= 4;
        past += usize::from(is_local);
        assert_eq!(line[hops] == "0", is_local, "{line:?}");
        assert!(!is_local || line[site] == "1", "{line:?}");
    }
    assert!(past > 10, "{table}");

    write(", role = \"remote\"");
    let mut command = Command::new(PROGRAM);
    command.arg("simulate").arg(folder.path().join("experiment.toml")).args(args);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("unknown role \"remote\"; use grid or local"), "{said}");
}

#[test]
fn the_shipped_workload_runs_as_it_is_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let quickstart = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/quickstart.toml");
    let text = read(Path::new(quickstart)).replace(
        "traces/seven-sites.swf",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/traces/seven-sites.swf"),
    );
    std::fs::write(folder.path().join("experiment.toml"), text).unwrap();
    identical(folder.path(), "seven sites", &["--count", "250"]);
}

#[test]
fn two_sites_and_their_flags_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.swf");
    std::fs::write(&trace, jobs(3)).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--sites", "2,16", "--strategy", "st:50", "--delay", "2s", "--clock", "virtual"]);
    let (status, output) = Run::of(
        {
            command.arg("--trace").arg(trace);
            command
        },
        folder.path(),
    )
    .wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("identical to the simulation: "), "{output}");
    assert!(output.contains("clock virtual"), "{output}");
}

#[test]
fn a_comparison_by_figures_means_nothing_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.swf");
    std::fs::write(&trace, jobs(3)).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--sites", "2,16", "--clock", "virtual", "--ensemble", "200", "--trace"]).arg(trace);
    let output = command.arg("--out").arg(folder.path().join("out")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("leave out --ensemble"), "{output:?}");
}

/// The checks of this file would notice a node that drops a message, or hands two over in the wrong order.
#[test]
fn a_node_that_mishandles_one_message_is_found_out() {
    for (mistake, event) in [("drop", "received"), ("swap", "received")] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(PROGRAM);
        command.env("STEALGRID_MUTANT", mistake).arg("run");
        let (status, output) =
            Run::spawn(command, folder.path(), &["--clock", "virtual", "--delay", "2s"]).wait();
        assert_eq!(status.code(), Some(5), "{mistake}: {output}");
        let found = output.lines().find(|line| line.contains("did not do what the simulation does"));
        assert!(found.is_some_and(|line| line.contains(event)), "{mistake}: {output}");
        let manifest = read(&folder.path().join("out/manifest.json"));
        assert!(manifest.contains("not what the simulation does"), "{manifest}");
    }
}

#[test]
fn a_node_that_dies_ends_the_run_and_what_was_computed_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let run = long_run(folder.path(), &[]);
    let nodes = run.nodes();
    let (victim, _) = nodes.iter().find(|(_, command)| command.contains("cedar.json")).unwrap();

    signal(*victim, Signal::KILL);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let manifest = read(&folder.path().join("out/manifest.json"));
    assert!(manifest.contains("partial"), "{manifest}");
    assert!(manifest.contains("node cedar ended with signal: 9"), "{manifest}");
    for file in ["jobs.csv", "metrics.json", "events.jsonl.zst"] {
        assert!(folder.path().join("out").join(file).exists(), "{file} is missing");
    }
    assert_gone(&nodes);
}

#[test]
fn a_node_that_hangs_ends_the_run_after_the_patience_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let run = long_run(folder.path(), &["[run]", "stall_timeout = \"2s\""]);
    let nodes = run.nodes();
    let (victim, _) = nodes.iter().find(|(_, command)| command.contains("aspen.json")).unwrap();

    signal(*victim, Signal::STOP);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let reason = "cannot be kept in lockstep";
    assert!(output.contains(reason) && output.contains("aspen"), "{output}");
    assert_gone(&nodes);
}

#[test]
fn ctrl_c_at_the_terminal_keeps_what_was_computed() {
    let folder = tempfile::tempdir().unwrap();
    let run = long_run(folder.path(), &[]);
    let nodes = run.nodes();

    rustix::process::kill_process_group(pid(run.id()), Signal::INT).unwrap();

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let manifest = read(&folder.path().join("out/manifest.json"));
    assert!(manifest.contains("interrupted at"), "{manifest}");
    assert!(folder.path().join("out/jobs.csv").exists());
    assert_gone(&nodes);
}

/// Runs the experiment of a folder on nodes and in the simulator, and compares what is left of both.
fn identical(folder: &Path, what: &str, args: &[&str]) {
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(folder.join("experiment.toml")).args(args).args(["--clock", "virtual"]);
    let mut beside = Command::new(PROGRAM);
    beside.arg("simulate").arg(folder.join("experiment.toml")).args(args);
    for command in [&mut command, &mut beside] {
        if folder.join("jobs.swf").exists() {
            command.arg("--trace").arg(folder.join("jobs.swf"));
        }
        command.args(["--no-page", "--no-ideal"]);
    }
    let (status, output) = Run::of(command, folder).wait();
    assert_eq!(status.code(), Some(0), "{what} {args:?}: {output}");
    assert!(output.contains("identical to the simulation: "), "{what} {args:?}: {output}");
    let beside = beside.arg("--out").arg(folder.join("simulated")).output().unwrap();
    assert!(beside.status.success(), "{what} {args:?}: {beside:?}");
    let links = read(&folder.join("out/links.csv"));
    assert!(links.lines().count() > 1, "{what} {args:?}: {links}");
    for line in links.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        // Without messages there is nothing to say; else nothing is added to what the model says.
        assert!(cells[2] == "0" || cells[7] == "0.000000", "{what} {args:?}: {line}");
        let seven = what != "slow" || cells[2] == "0" || cells[3..7] == ["7.000000"; 4];
        assert!(seven, "{what} {args:?}: {line}");
    }
    for file in ["jobs.csv", "metrics.json"] {
        let [run, simulated] = ["out", "simulated"].map(|out| read(&folder.join(out).join(file)));
        assert_eq!(run, simulated, "{what} {args:?}: {file}");
    }
    let [run, simulated] = ["out", "simulated"].map(|out| events(&folder.join(out)));
    assert!(run.len() > 1000, "{what} {args:?}: {} bytes of events", run.len());
    assert!(run == simulated, "{what} {args:?}: the event logs differ");
}

fn events(out: &Path) -> Vec<u8> {
    zstd::decode_all(std::fs::File::open(out.join("events.jsonl.zst")).unwrap()).unwrap()
}

/// Starts a run that takes several seconds at least, and returns when its nodes get orders.
fn long_run(folder: &Path, lines: &[&str]) -> Run {
    let configs = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs");
    let mut text = format!(
        "grid.sites = [\n{{ name = \"aspen\", processors = 16 }}, {{ name = \"cedar\", processors = 128 }} ]\n\
         workload.trace = \"{configs}/traces/seven-sites.swf\"\n"
    );
    text += "network.delay = \"1s\"\n";
    text += &lines.join("\n");
    std::fs::write(folder.join("experiment.toml"), text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(folder.join("experiment.toml")).args(["--clock", "virtual"]);
    let mut run = Run::of(command, folder);
    run.wait_for_logs(&["aspen", "cedar"], ORDERS_BEGIN);
    run
}

/// Sixty jobs of all widths up to 16, some at one instant, some without run time; other ones for each number.
fn jobs(number: u64) -> String {
    let mut state = number + 1;
    let mut draw = |limit: u64| {
        // The multiplier of Knuth's MMIX generator; its high bits are good enough here.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut submit = 0;
    let mut line = |job: u64| {
        submit += draw(4) * draw(8);
        let processors = if draw(3) == 0 { 1 + draw(16) } else { 1 + draw(4) };
        let run_time = draw(2) * draw(200);
        format!("{job} {submit} -1 {run_time} {processors} -1 -1 {processors} 300 -1 1 1 1 1 1 -1 -1 -1\n")
    };
    (1..=crate::processes::JOBS as u64).map(&mut line).collect()
}

/// The same jobs, every third of them too wide for each of the sites of 4, 8 and 16.
fn wide(jobs: &str) -> String {
    let mut changed = String::new();
    for (place, line) in jobs.lines().enumerate() {
        let mut fields: Vec<String> = line.split(' ').map(String::from).collect();
        if place % 3 == 2 {
            let processors = (17 + place % 12).to_string();
            (fields[4], fields[7]) = (processors.clone(), processors);
        }
        changed += &fields.join(" ");
        changed.push('\n');
    }
    changed
}

/// Five jobs, of two users in turn, for each of these.
fn fivefold(jobs: &str) -> String {
    let mut changed = String::new();
    for line in jobs.lines() {
        for copy in 0..5 {
            let mut fields: Vec<String> = line.split(' ').map(String::from).collect();
            let number = 5 * fields[0].parse::<usize>().unwrap() + copy;
            (fields[0], fields[11]) = (number.to_string(), (1 + number % 2).to_string());
            changed += &fields.join(" ");
            changed.push('\n');
        }
    }
    changed
}
