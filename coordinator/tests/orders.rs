//! Orders to a run while it lasts, over HTTP as the page gives them: held, started, injected, cut, restored, killed, paused.

use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use node::control::Token;
use node::control::api::LinksOrder;
use node::running::Running;
use operation::client::NodeClient;
use outputs::EventReader;
use rustix::process::Signal;
use scheduler::event::{BeginCause, EndCause};
use scheduler::{Event, EventKind, JobId, SiteId, Time};
use serde_json::{Value, json};
use workload::limits::Limits;

use crate::PROGRAM;
use crate::processes::{JOBS, Run, not_different, read, signal, table, unfolded};
use crate::served::{EXPERIMENT, Served, is_away, until};

/// A run is held, and every order does what it says, to the event log and the report.
#[test]
fn orders_take_effect_and_are_kept_in_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), EXPERIMENT, &["--hold"]);
    served.until_frame(|frame| frame["phase"] == "held");

    assert!(served.refused("pause", json!({}), 409).contains("the first order is to start"));
    let start = served.obeyed("start", json!({}));
    assert_eq!(start["done"], "the run was held, and begins");
    served.until_frame(|frame| frame["phase"] == "running" && frame["jobs"][1].as_u64() > Some(0));

    // The token is for its owner alone, and nowhere else.
    let token = folder.path().join("out/orders.token");
    assert_eq!(std::fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!served.run.output().contains(&served.token), "the token is in a log");

    // A job.
    let job = json!({"processors": 3, "run_time_s": 60, "requested_s": 90, "site": 2});
    let injected = served.obeyed("inject", job);
    let number = JOBS as u64 + 1;
    assert_eq!(injected["job"]["spec"]["id"], number, "{injected}");
    assert!(
        served
            .refused("inject", json!({"processors": 17, "run_time_s": 1}), 409)
            .contains("the widest has 16")
    );

    // A link.
    let link = json!({"from": 1, "to": 3});
    let cut = served.obeyed("cut", link.clone());
    assert_eq!(cut["done"], "the link from site1 to site3 and back is cut");
    served.until_frame(|frame| frame["cuts"] == json!([[0, 2], [2, 0]]));
    assert!(served.refused("cut", link.clone(), 409).contains("cut already"));
    assert!(served.refused("cut", json!({"from": 1, "to": 1}), 409).contains("no link to itself"));
    assert!(served.refused("cut", json!({"from": 1, "to": 4}), 409).contains("site 4 is none of the grid"));

    // A site: what is cut stays cut for its next incarnation.
    // It is away for 5 s of the wall clock, and is seen away.
    let killed = served.obeyed("kill", json!({"site": 1, "down_s": 150}));
    assert!(killed["done"].as_str().unwrap().starts_with("site1 was killed, and restarts"), "{killed}");
    served.until_frame(|frame| is_away(frame, 0));
    served.until_frame(|frame| !is_away(frame, 0) && frame["cuts"] == json!([[0, 2], [2, 0]]));
    assert!(served.refused("kill", json!({"site": 2, "for_good": true}), 409).contains("protocol.lease"));

    // Time.
    let paused = served.obeyed("pause", json!({}));
    let stood = served.until_frame(|frame| frame["phase"] == "paused");
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(served.frame()["now"], stood["now"], "18 s of trace time, if it went on");
    assert!(served.refused("pause", json!({}), 409).contains("stands still already"));
    let resumed = served.obeyed("resume", json!({}));
    assert_eq!(resumed["at_s"], paused["at_s"]);
    assert!(paused["apart_s"].as_f64() >= Some(0.0), "{paused}");
    served.until_frame(|frame| frame["phase"] == "running");
    assert!(served.refused("resume", json!({}), 409).contains("does not stand still"));
    // Time for something to come through the link, now that both ends are there.
    let stood = stood["now"].as_i64().unwrap();
    served.until_frame(|frame| frame["now"].as_i64() > Some(stood + 60_000));
    served.obeyed("restore", link);
    served.until_frame(|frame| frame["cuts"] == json!([]));

    let (status, output) = served.run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("orders:  7 orders were given while the run lasted"), "{output}");
    assert!(unfolded(&output).contains("clocks that were stopped stood "), "{output}");
    assert!(!token.exists(), "the token of a run that has ended");
    let out = folder.path().join("out");
    let manifest: Value = serde_json::from_str(&read(&out.join("manifest.json"))).unwrap();
    assert_ne!(manifest["status"], "partial", "{manifest}");
    let orders = manifest["orders"].as_array().unwrap();
    let names: Vec<&String> =
        orders.iter().flat_map(|given| given["order"].as_object().unwrap().keys()).collect();
    assert_eq!(names, ["start", "inject", "cut", "kill", "pause", "resume", "restore"]);
    assert!(manifest["workload"].as_str().unwrap().ends_with("; 1 job injected by order"));
    let page = read(&out.join("report.html"));
    assert!(page.contains("the link from site1 to site3 and back is cut</li>"), "no order in the report");

    let jobs = read(&out.join("jobs.csv"));
    let (columns, rows) = table(&jobs);
    let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    assert_eq!(rows.len(), JOBS + 1);
    let row = rows.iter().find(|row| row[column("job_id")] == number.to_string()).unwrap();
    assert_eq!(row[column("final_state")], "COMPLETED_SUCCESSFULLY");

    let log = EventReader::open(&out.join("events.jsonl.zst"), Limits::default()).unwrap();
    let events: Vec<Event> = log.map(Result::unwrap).collect();
    let at = |name: &str| {
        let given = orders.iter().find(|given| given["order"].get(name).is_some()).unwrap();
        Time::from_micros((given["at_s"].as_f64().unwrap() * 1e6).round() as i64)
    };
    let (cut, restored) = (at("cut"), at("restore"));
    let ends = [SiteId(1), SiteId(3)];
    let accepted = events.iter().filter(|event| match event.kind {
        EventKind::Accepted { from, .. } => ends.contains(&from) && ends.contains(&event.site),
        _ => false,
    });
    // What arrived with the order is the first look at the nodes after it, up to 2 s of the wall clock later.
    let slack = scheduler::Span::from_secs(60);
    let through = accepted.filter(|event| cut + slack < event.at && event.at < restored).count();
    assert_eq!(through, 0, "a job came through a link that was cut");
    let of_job =
        |event: &&Event| matches!(event.kind, EventKind::Submitted { job, .. } if job == JobId(number));
    let submitted = events.iter().find(of_job).unwrap();
    assert_eq!(submitted.site, SiteId(2), "the site of its user");

    let of_site = |kind| events.iter().any(|event| event.site == SiteId(1) && event.kind == kind);
    assert!(of_site(EventKind::Ended { how: EndCause::Crash }));
    assert!(of_site(EventKind::Begun { how: BeginCause::Restart }));
}

/// All are killed for good but the last that stays: it adopts what they had, and every job ends.
#[test]
fn the_last_site_is_not_killed_for_good() {
    let lease = "protocol = { heartbeat = \"20s\", suspect_after = \"150s\", lease = \"350s\" }\n";
    // One that is to end later does not stay.
    let ends = "[[faults]]\nsite = \"site3\"\nwhat = \"crash\"\nat = \"90h\"\n";
    for (faults, killed, last) in [("", &[2, 1][..], 3), (ends, &[2], 1)] {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), &format!("{EXPERIMENT}{lease}{faults}"), &["--hold"]);
        served.until_frame(|frame| frame["phase"] == "held");
        served.obeyed("start", json!({}));
        served.until_frame(|frame| frame["jobs"][1].as_u64() > Some(0));
        for site in killed {
            served.obeyed("kill", json!({"site": site, "for_good": true}));
        }
        let why = served.refused("kill", json!({"site": last, "for_good": true}), 409);
        assert!(why.contains(&format!("no other site stays to take over what site{last} has")), "{why}");
        // For a while it may be away.
        served.obeyed("kill", json!({"site": last, "down_s": 30}));

        let (status, output) = served.run.wait();
        assert_eq!(status.code(), Some(0), "{output}");
        let jobs = read(&folder.path().join("out/jobs.csv"));
        let (columns, rows) = table(&jobs);
        let state = columns.iter().position(|column| *column == "final_state").unwrap();
        assert_eq!(rows.len(), JOBS);
        assert!(rows.iter().all(|row| row[state] == "COMPLETED_SUCCESSFULLY"), "{jobs}");
    }
}

/// What a simulation can do, too, is held against one: the run is no worse for the order.
#[test]
fn a_run_with_an_injected_job_and_a_cut_is_compared_with_a_simulation_of_the_same() {
    let (output, folder) = not_different(|| {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), EXPERIMENT, &[]);
        served.until_frame(|frame| frame["phase"] == "running");
        served.obeyed("inject", json!({"processors": 2, "run_time_s": 40}));
        served.obeyed("cut", json!({"from": 2, "to": 3, "one_way": true}));
        served.obeyed("restore", json!({"from": 2, "to": 3, "one_way": true}));
        let (status, output) = served.run.wait();
        (status, output, folder)
    });
    assert!(output.contains("are in the simulation, too"), "{output}");
    assert!(
        output.contains("where the delay went is not reported for a run into which jobs were injected"),
        "{output}"
    );
    let manifest: Value = serde_json::from_str(&read(&folder.path().join("out/manifest.json"))).unwrap();
    assert_eq!(manifest["jobs"]["completed"], JOBS + 1, "{manifest}");
}

#[test]
fn a_run_that_is_stopped_while_it_is_held_says_what_became_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), EXPERIMENT, &["--hold"]);
    served.until_frame(|frame| frame["phase"] == "held");
    signal(served.run.id(), Signal::INT);
    let (status, output) = served.run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    assert!(output.contains("stopped before the order to start (--hold): nothing was run"), "{output}");
    assert!(output.contains("their logs are in") && output.contains("out/nodes"), "{output}");
    assert_eq!(Running::all_in(&folder.path().join("out/nodes")), []);
}

/// The nodes of a run whose coordinator is killed; they are ended when it is dropped.
struct Orphans {
    out: PathBuf,
}

impl Drop for Orphans {
    fn drop(&mut self) {
        operation::fleet::end_all(&self.out.join("nodes"));
    }
}

impl Orphans {
    fn of(run: Run, folder: &Path) -> Orphans {
        signal(run.id(), Signal::KILL);
        run.wait();
        let orphans = Orphans { out: folder.join("out") };
        assert_eq!(orphans.clients().len(), 3);
        orphans
    }

    fn clients(&self) -> Vec<NodeClient> {
        let token = Token::read(&self.out.join("nodes/control.token")).unwrap();
        let running = Running::all_in(&self.out.join("nodes"));
        running.iter().map(|node| NodeClient::new(&node.ready.http, Some(token.clone()))).collect()
    }

    fn attach(&self) -> Run {
        let mut command = Command::new(PROGRAM);
        command.arg("attach").arg(&self.out);
        Run::without_out(command, self.out.parent().unwrap())
    }
}

#[test]
fn whoever_attaches_knows_the_orders_and_undoes_what_nobody_can_undo_any_more() {
    let (_, folder) = not_different(|| {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), EXPERIMENT, &[]);
        served.until_frame(|frame| frame["jobs"][1].as_u64() > Some(0));
        served.obeyed("inject", json!({"processors": 3, "run_time_s": 60}));
        served.obeyed("cut", json!({"from": 2, "to": 3, "one_way": true}));
        served.obeyed("pause", json!({}));
        let orphans = Orphans::of(served.run, folder.path());

        let (status, output) = orphans.attach().wait();
        (status, output, folder)
    });

    let manifest: Value = serde_json::from_str(&read(&folder.path().join("out/manifest.json"))).unwrap();
    let orders = manifest["orders"].as_array().unwrap();
    let names: Vec<&String> =
        orders.iter().flat_map(|given| given["order"].as_object().unwrap().keys()).collect();
    assert_eq!(names, ["inject", "cut", "pause", "resume", "restore"]);
    assert_eq!(manifest["jobs"]["completed"], JOBS + 1, "{manifest}");
}

/// A directory in the place of the file that is written first stands for a disk without room; root can write there no
/// more than anybody.
#[test]
fn an_order_that_cannot_be_kept_is_refused_and_not_carried_out() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), EXPERIMENT, &["--hold"]);
    served.until_frame(|frame| frame["phase"] == "held");
    let (out, kept) = (folder.path().join("out"), |out: &Path| {
        let record: Value = serde_json::from_str(&read(&out.join("run.json"))).unwrap();
        let given = record["orders"].as_array().unwrap();
        given.iter().map(|given| given["order"].clone()).collect::<Vec<_>>()
    });
    let full = out.join("run.json.tmp");
    std::fs::create_dir(&full).unwrap();

    let reason = served.refused("start", json!({}), 409);
    assert!(reason.contains("could not be kept") && reason.contains("make room"), "{reason}");
    assert!(!out.join("run.json").exists());
    assert_eq!(served.frame()["phase"], "held", "the run began all the same");
    std::fs::remove_dir(&full).unwrap();
    served.obeyed("start", json!({}));
    assert_eq!(kept(&out), [json!({"start": {}})]);

    served.until_frame(|frame| frame["jobs"][1].as_u64() > Some(0));
    std::fs::create_dir(&full).unwrap();
    let orders = [
        ("inject", json!({"processors": 3, "run_time_s": 60})),
        ("cut", json!({"from": 2, "to": 3, "one_way": true})),
        ("kill", json!({"site": 1, "down_s": 150})),
        ("pause", json!({})),
    ];
    for (name, words) in &orders {
        let reason = served.refused(name, words.clone(), 409);
        assert!(reason.contains("could not be kept"), "{name}: {reason}");
    }
    assert_eq!(kept(&out), [json!({"start": {}})]);
    let frame = served.until_frame(|frame| frame["phase"] == "running");
    assert_eq!((&frame["cuts"], is_away(&frame, 0)), (&json!([]), false), "{frame}");

    std::fs::remove_dir(&full).unwrap();
    for (count, (name, words)) in orders.iter().enumerate() {
        served.obeyed(name, words.clone());
        assert_eq!(kept(&out).len(), count + 2, "{name} was answered and is not kept");
        if *name == "kill" {
            // The picture may be from before.
            served.until_frame(|frame| is_away(frame, 0));
        }
        // One that is away would not hear that time stands still.
        served.until_frame(|frame| !is_away(frame, 0));
    }
    signal(served.run.id(), Signal::INT);
    let (status, output) = served.run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
}

/// Nobody knows of an order that reached the nodes and not the record. Whoever attaches tells the nodes what is kept:
/// nothing is cut, and time goes on.
#[test]
fn what_was_done_at_nodes_and_not_noted_is_undone_by_whoever_attaches() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), EXPERIMENT, &[]);
    served.until_frame(|frame| frame["jobs"][1].as_u64() > Some(0));
    let orphans = Orphans::of(served.run, folder.path());
    let clients = orphans.clients();
    clients[1].links(&LinksOrder { cut_to: [SiteId(3)].into(), cut_from: [SiteId(1)].into() }).unwrap();
    clients[0].pause().unwrap();

    let attached = orphans.attach();

    until(|| {
        let statuses: Vec<_> = clients.iter().map(|client| client.status().unwrap()).collect();
        let cut = statuses.iter().flat_map(|status| &status.links).any(|link| link.cut_to || link.cut_from);
        (!cut && statuses.iter().all(|status| !status.paused)).then_some(())
    });
    signal(attached.id(), Signal::INT);
    let (status, output) = attached.wait();
    assert_eq!(status.code(), Some(4), "{output}");
}

/// Prometheus would miss a site that is still to join, or has left.
#[test]
fn only_sites_that_have_joined_and_not_left_are_targets() {
    let folder = tempfile::tempdir().unwrap();
    let faults = r#"
protocol = { heartbeat = "20s", suspect_after = "150s", lease = "350s" }
[[faults]]
site = "site2"
what = "join"
at = "60s"
[[faults]]
site = "site2"
what = "leave"
at = "200s"
"#;
    let served = Served::start(folder.path(), &format!("{EXPERIMENT}{faults}"), &["--hold", "--serve-after"]);
    let targets = || {
        let (_, list) = served.ask("GET", "/sd", "host: here\r\n", "");
        let list: Value = serde_json::from_str(&list).unwrap();
        let site = |target: &Value| target["labels"]["site"].as_str().unwrap().to_string();
        list.as_array().unwrap().iter().map(site).collect::<Vec<_>>()
    };
    served.until_frame(|frame| frame["phase"] == "held");
    assert_eq!(targets(), ["site1", "site3"], "before it joins");

    served.obeyed("start", json!({}));
    until(|| (targets() == ["site1", "site2", "site3"]).then_some(()));
    until(|| served.run.output().contains("serving at ").then_some(()));
    assert_eq!(targets(), ["site1", "site3"], "when it has left");
    signal(served.run.id(), Signal::INT);
    let (status, output) = served.run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("site site2 has left"), "{output}");
}

/// Whoever has no token, or sits on another page, orders nothing; and without journals nobody is killed.
#[test]
fn only_the_page_itself_with_the_token_is_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let without_journal = EXPERIMENT.replace("node.journal", "#");
    let served = Served::start(folder.path(), &without_journal, &["--hold"]);
    served.until_frame(|frame| frame["phase"] == "held");
    let (host, bearer) =
        (format!("host: {}\r\n", served.address), format!("authorization: Bearer {}\r\n", served.token));
    let status = |headers: &str| served.order_by("start", headers, &json!({})).0;

    assert_eq!(status(&host), 401);
    assert_eq!(status(&format!("{host}authorization: Bearer {}\r\n", "0".repeat(64))), 401);
    assert_eq!(status(&format!("{host}{bearer}origin: http://evil.example\r\n")), 403);
    assert_eq!(status(&format!("{host}{bearer}sec-fetch-site: cross-site\r\n")), 403);
    assert_eq!(status(&format!("host: rebound.example\r\n{bearer}")), 403);
    assert_eq!(served.order("dance", json!({})).0, 422);
    assert_eq!(served.order("kill", json!({"site": "one"})).0, 422);
    assert_eq!(served.ask("GET", "/orders/start", &format!("{host}{bearer}"), "").0, 405);
    let long = format!("{{\"pad\":\"{}\"}}", "x".repeat(8192));
    assert_eq!(served.ask("POST", "/orders/start", &format!("{host}{bearer}"), &long).0, 413);
    let fate = |fate: &str| {
        let (_, page) = served.ask("GET", "/metrics", &host, "");
        let start = format!("stealgrid_run_orders_total{{fate=\"{fate}\"");
        let line = page.lines().find(|line| line.starts_with(&start)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(["unauthorized", "foreign", "refused", "too_long"].map(fate), [2, 3, 2, 1]);
    // It goes before all of it is said.
    let mut hasty = TcpStream::connect(&served.address).unwrap();
    write!(hasty, "POST /orders/start HTTP/1.1\r\n{host}{bearer}content-length: 9\r\n\r\n{{").unwrap();
    drop(hasty);
    until(|| (fate("abandoned") + fate("refused") == 3).then_some(()));
    assert_eq!(served.frame()["phase"], "held", "nothing was obeyed");
    let (_, page) = served.ask("GET", "/", &host, "");
    assert!(!page.contains(&served.token), "the token is not in the page");

    served.obeyed("start", json!({}));
    served.until_frame(|frame| frame["phase"] == "running");
    assert!(served.refused("kill", json!({"site": 1}), 409).contains("journal"));
    let limited = (0..200).any(|_| served.order("dance", json!({})).0 == 429);
    assert!(limited, "orders that come too fast are let through");
}
