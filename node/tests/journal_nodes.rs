//! Node processes with journals: what they refuse and how they say it, and what they go on with.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::net::TcpListener;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use node::config::{NewLife, SiteEntry};
use node::control::Token;
use node::control::api::{Phase, Status};
use node::journal::{Durability, inspect};
use node::peer_address::PeerAddress;
use node::running::Running;
use node::{NodeConfig, exit};
use operation::NodeProcess;
use operation::client::{ClientError, NodeClient};
use operation::fleet::{Fleet, Limit, start_order};
use operation::spawn::{SpawnError, SpawnOrder};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use scheduler::{Event, EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};
use stealgrid_tests::once_more;
use stealgrid_tests::small_disk::{self, SmallDisk};
use tempfile::TempDir;

use crate::PROGRAM;

const FILE: &str = "journal.sqlite";
/// Ample for what takes moments; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_directory_of_another_run_site_or_grid_is_refused_and_not_touched() {
    let one = Alone::new();
    one.start().stop(PATIENCE).unwrap();
    let before = std::fs::read(one.journal()).unwrap();
    let ours = &one.config;
    let wider = vec![SiteEntry::new("site1", 5), SiteEntry::new("site2", 8)];
    for (config, expected) in [
        (
            NodeConfig { run: "blue".to_string(), ..ours.clone() },
            "belongs to run stealgrid, and this node is of run blue",
        ),
        (NodeConfig { site: SiteId(2), ..ours.clone() }, "belongs to site 1, and this node is of site 2"),
        (
            NodeConfig { grid: wider, ..ours.clone() },
            "belongs to grid site1=4,site2=8, and this node is of grid site1=5,site2=8",
        ),
    ] {
        let (status, log) = one.refused(&config);
        assert_eq!(status.code(), Some(i32::from(exit::JOURNAL_FOREIGN)), "{log}");
        assert!(log.contains(expected) && log.contains("give it a directory"), "{log}");
        assert_eq!(std::fs::read(one.journal()).unwrap(), before);
    }
}

#[test]
fn the_directory_of_a_version_with_another_format_is_refused_and_not_touched() {
    let one = Alone::new();
    one.start().stop(PATIENCE).unwrap();
    // The first two formats did not say theirs.
    let file = OpenOptions::new().write(true).open(one.journal()).unwrap();
    file.write_all_at(&[0; 4], 60).unwrap();
    let before = std::fs::read(one.journal()).unwrap();
    let (status, log) = one.refused(&one.config);
    assert_eq!(status.code(), Some(i32::from(exit::JOURNAL_FOREIGN)), "{log}");
    assert!(log.contains("belongs to format 2 or older, and this node is of format 5; give it"), "{log}");
    assert_eq!(std::fs::read(one.journal()).unwrap(), before);
}

/// What was put back after others were told that it is lost is not gone on with.
#[test]
fn a_node_of_another_life_begins_with_nothing_and_takes_no_journal_from_before() {
    let mut one = Alone::with(|config| {
        (config.options.heartbeat, config.options.suspect_after) =
            (Some(Span::from_secs(1)), Span::from_secs(9));
        config.options.lease = Some(Span::from_secs(20));
    });
    one.start().stop(PATIENCE).unwrap();
    let before = std::fs::read(one.journal()).unwrap();
    let clock = start_order(10.0, Time::from_secs(500), Duration::ZERO);
    one.config.new_incarnation = Some(NewLife { journals_lost: 1, clock });
    let (status, log) = one.refused(&one.config);
    assert_eq!(status.code(), Some(i32::from(exit::JOURNAL_FOREIGN)), "{log}");
    assert!(log.contains("belongs to journal number 1, and this node is of journal number 2"), "{log}");
    assert_eq!(std::fs::read(one.journal()).unwrap(), before);

    std::fs::rename(one.journal().parent().unwrap(), one.folder.path().join("away")).unwrap();
    for restarts in 0..2 {
        let process = one.start();
        let status = process.client().status().unwrap();
        assert_eq!(
            (status.phase, status.restarts),
            (Phase::Running, restarts),
            "it has the clock of the others"
        );
        assert!(status.trace_time_us >= 500_000_000, "{}", status.trace_time_us);
        kill(process);
    }
    let events = inspect::events(one.journal().parent().unwrap(), 0).unwrap();
    assert!(events.iter().all(|event| event.at >= Time::from_secs(500)), "{events:?}");
    let options = protocol::Options { lease: None, ..one.config.options };
    let (status, log) = one.refused(&NodeConfig { options, ..one.config.clone() });
    assert_eq!(status.code(), Some(i32::from(exit::INPUT)), "{log}");
    assert!(log.contains("new_incarnation needs a data directory, heartbeat and lease"), "{log}");
}

#[test]
fn a_directory_that_others_may_write_to_is_warned_of_and_used() {
    let one = Alone::new();
    let dir = one.journal().parent().unwrap().to_path_buf();
    std::fs::create_dir_all(&dir).unwrap();
    for (mode, warned) in [(0o755, false), (0o777, true)] {
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
        let process = one.start();
        let log = std::fs::read_to_string(process.log()).unwrap();
        assert_eq!(log.contains("others may put a journal of theirs into"), warned, "{log}");
        process.stop(PATIENCE).unwrap();
    }
}

#[test]
fn two_nodes_on_one_directory_are_one_too_many() {
    let one = Alone::new();
    let first = one.start();
    let (status, log) = one.refused(&one.config);
    assert_eq!(status.code(), Some(i32::from(exit::JOURNAL_IN_USE)), "{log}");
    assert!(log.contains("in use by another node"), "{log}");
    assert_eq!(first.client().status().unwrap().restarts, 0, "the first goes on");
}

/// A node that listens where nobody else is, if the system has such an address: its port is not taken by another test once
/// it has ended.
fn with_own_address() -> (Alone, &'static str) {
    let mut addresses = ["127.0.0.9", "127.0.0.1"].into_iter();
    let own = addresses.find(|address| TcpListener::bind((*address, 0)).is_ok()).unwrap();
    (Alone::with(|config| config.listen = format!("/ip4/{own}/tcp/0")), own)
}

#[test]
fn a_node_whose_port_was_taken_meanwhile_listens_on_another() {
    let (one, own) = with_own_address();
    let process = one.start();
    let port = port(&process);
    kill(process);
    let _taken = TcpListener::bind((own, port)).unwrap();
    let process = one.start_again().unwrap();
    assert_ne!(self::port(&process), port);
    let log = std::fs::read_to_string(process.log()).unwrap();
    assert!(log.contains("the address of the last incarnation is taken"), "{log}");
}

#[test]
fn a_node_comes_back_to_its_port() {
    let (one, _) = with_own_address();
    let process = one.start();
    let port = port(&process);
    kill(process);
    assert_eq!(self::port(&one.start_again().unwrap()), port);
}

#[test]
fn jobs_that_were_taken_survive_with_each_durability() {
    for durability in [Durability::Process, Durability::Disk] {
        let one = Alone::with(|config| config.durability = durability);
        let process = one.start();
        process.client().jobs(&jobs(0..500)).unwrap();
        kill(process);
        let process = one.start_again().unwrap();
        let status = process.client().status().unwrap();
        assert_eq!((status.outstanding.arrivals, status.restarts), (500, 1), "{durability:?}");
        assert_eq!(process.client().offer_again(&jobs(0..600)).unwrap(), 600);
        assert_eq!(process.client().status().unwrap().outstanding.arrivals, 600, "{durability:?}");
    }
}

#[test]
fn a_journal_that_was_cut_off_or_spoilt_is_refused_and_kept() {
    let one = Alone::new();
    let process = one.start();
    process.client().jobs(&jobs(0..2000)).unwrap();
    kill(process);
    // The next incarnation brings all into the file itself, and ends well.
    one.start_again().unwrap().stop(PATIENCE).unwrap();
    let path = one.journal();
    let good = std::fs::read(&path).unwrap();
    let refused = || {
        let bytes = std::fs::read(&path).unwrap();
        let (status, log) = one.refused(&one.config);
        assert_eq!(status.code(), Some(i32::from(exit::JOURNAL_DAMAGED)), "{log}");
        assert!(log.contains("is damaged") && log.contains("nothing was changed"), "{log}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{log}");
    };
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(good.len() as u64 / 2).unwrap();
    refused();
    std::fs::write(&path, &good).unwrap();
    let zeros = vec![0; good.len() / 4];
    file.write_all_at(&zeros, good.len() as u64 / 2).unwrap();
    refused();
    std::fs::write(&path, &good).unwrap();
    assert_eq!(one.start_again().unwrap().client().status().unwrap().outstanding.arrivals, 2000);
}

#[test]
fn a_node_with_a_journal_refuses_lockstep_and_says_why() {
    let one = Alone::new();
    let mut fleet = Fleet::spawn_each(&one.order(), &[one.config.clone(), one.other()]).unwrap();
    let (site, error) = fleet.lockstep(PATIENCE).unwrap_err();
    assert_eq!(site, SiteId(1));
    assert!(error.to_string().contains("in lockstep it keeps no journal"), "{error}");
}

/// Events of earlier lives are served from the journal, however few are kept in memory; metrics go on.
#[test]
fn all_events_are_there_after_a_restart_and_the_counters_go_on() {
    let one = Alone::with(|config| {
        config.events_max = 10;
        config.grid.truncate(1);
    });
    let mut fleet = Fleet::spawn_each(&one.order(), std::slice::from_ref(&one.config)).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    fleet.feed(&jobs(0..100), |_| SiteId(1)).unwrap();
    fleet.start(10_000.0, Time::ZERO, Duration::ZERO).unwrap();
    wait_until_finished(&mut fleet, 100);
    let before = fleet.clients().next().unwrap().events(0, 100_000).unwrap();
    assert_eq!(ended(&before), 100);
    signal(fleet.process_ids().next().unwrap(), Signal::KILL);
    restart(&mut fleet);
    let client = fleet.clients().next().unwrap().clone();
    let status = client.status().unwrap();
    assert_eq!((status.submitted, status.completed, status.restarts), (100, 100, 1));
    let after = client.events(0, 100_000).unwrap();
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len() as u64, status.events);
    assert_eq!(client.events(3, 4).unwrap(), before[3..7]);
    assert!(
        client.metrics().unwrap().contains("stealgrid_limit_hits_total{limit=\"events\",site=\"site1\"} 0")
    );
    fleet.feed(&jobs(100..120), |_| SiteId(1)).unwrap();
    wait_until_finished(&mut fleet, 120);
    assert_eq!(ended(&client.events(0, 100_000).unwrap()), 120);
}

/// Its last events are known when it is back, and what was said of it meanwhile must not come before them.
#[test]
fn a_node_that_ends_after_a_look_is_known_until_the_look_before() {
    let one = Alone::new();
    let mut fleet = Fleet::spawn_each(&one.order(), &[one.config.clone(), one.other()]).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    fleet.start(1000.0, Time::ZERO, Duration::ZERO).unwrap();
    let look = |fleet: &mut Fleet| {
        let statuses = fleet.statuses().unwrap();
        Time::from_micros(statuses.iter().map(|status| status.trace_time_us).min().unwrap())
    };
    wait_until("the clocks run", || look(&mut fleet) > Time::ZERO);
    assert!(fleet.known_until() < Time::ZERO, "nothing was fetched");
    let first = look(&mut fleet);
    fleet.take_events(&mut |_| {}).unwrap();
    assert_eq!(fleet.known_until(), first);

    wait_until("time goes on", || look(&mut fleet) > first);
    signal(fleet.process_ids().next().unwrap(), Signal::KILL);
    fleet.take_events(&mut |_| {}).unwrap_err();
    assert_eq!(fleet.known_until(), first);

    restart(&mut fleet);
    let last = look(&mut fleet);
    fleet.take_events(&mut |_| {}).unwrap();
    assert_eq!(fleet.known_until(), last);
}

/// Whoever takes over the nodes of another coordinator tells each all its jobs once more. One that ends before it hears
/// that leaves only those that it has not submitted, and each once.
#[test]
fn a_node_that_is_given_up_leaves_no_job_that_it_has_submitted() {
    let one = Alone::new();
    let mut fleet = Fleet::spawn_each(&one.order(), &[one.config.clone(), one.other()]).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let mut all = jobs(0..11);
    // Five come at once, and the others after the test.
    for job in &mut all[5..] {
        job.spec.submit = Time::from_secs(1_000_000);
    }
    fleet.feed(&all[..10], |_| SiteId(1)).unwrap();
    fleet.start(1000.0, Time::ZERO, Duration::ZERO).unwrap();
    wait_until("five are submitted", || fleet.statuses().unwrap()[0].submitted == 5);
    fleet.kill(SiteId(1)).unwrap();
    fleet.hand_over([(SiteId(1), all.clone())].into());

    let remains = fleet.give_up(SiteId(1), &mut |_| {}).unwrap();

    let mut left: Vec<u64> = remains.arrivals.iter().map(|job| job.spec.id.0).collect();
    left.sort_unstable();
    assert_eq!(left, [6, 7, 8, 9, 10, 11], "the last it was never told of");
}

/// The numbers of messages have room for so many journals of a site: what the one after wrote could not be told from what
/// the first did.
#[test]
fn a_site_begins_anew_as_often_as_its_journals_can_be_told_apart() {
    let one = Alone::with(|config| {
        (config.options.heartbeat, config.options.suspect_after) =
            (Some(Span::from_secs(1)), Span::from_secs(9));
        config.options.lease = Some(Span::from_secs(20));
        config.grid.truncate(1);
    });
    let mut fleet = Fleet::spawn_each(&one.order(), std::slice::from_ref(&one.config)).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let clock = start_order(1000.0, Time::ZERO, Duration::ZERO);
    let hits = |fleet: &Fleet| fleet.limits_hit().find(|(limit, _)| *limit == Limit::Journals).unwrap().1;
    for number in 1..=Limit::Journals.most() {
        signal(fleet.process_ids().next().unwrap(), Signal::KILL);
        wait_until("it has ended", || !fleet.restart_ended(false).unwrap().ended.is_empty());
        assert!(fleet.may_begin_anew(SiteId(1)), "{number}");
        fleet.set_journal_aside(SiteId(1)).unwrap();
        fleet.begin_anew(SiteId(1), &clock, &mut |_| {});
        restart(&mut fleet);
        let aside = one.journal().with_file_name(format!("lost-{number}"));
        assert!(aside.join(FILE).exists(), "what there was is kept in {}", aside.display());
    }
    assert_eq!(hits(&fleet), 0);
    assert!(!fleet.may_begin_anew(SiteId(1)));
    assert_eq!(hits(&fleet), 1, "it is counted");
}

/// Whoever asks for them is told, and the site goes on.
#[test]
fn old_events_that_are_damaged_stop_no_node() {
    let one = Alone::with(|config| config.grid.truncate(1));
    let mut fleet = Fleet::spawn_each(&one.order(), std::slice::from_ref(&one.config)).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    // More than a start reads.
    fleet.feed(&jobs(0..4000), |_| SiteId(1)).unwrap();
    fleet.start(10_000.0, Time::ZERO, Duration::ZERO).unwrap();
    wait_until_finished(&mut fleet, 4000);
    signal(fleet.process_ids().next().unwrap(), Signal::KILL);
    let db = rusqlite::Connection::open(one.journal()).unwrap();
    let spoilt = db.execute("UPDATE events SET sum = sum + 1 WHERE first = 0", []).unwrap();
    assert_eq!(spoilt, 1);
    drop(db);
    restart(&mut fleet);
    let client = fleet.clients().next().unwrap().clone();

    let error = client.events(0, 5).unwrap_err().to_string();

    assert!(error.contains("the checksum of the events from number 0 on is wrong"), "{error}");
    let events = client.status().unwrap().events;
    assert_eq!(client.events(events - 1, 5).unwrap().len(), 1, "the rest is there");
}

/// Jobs come faster than a site can work, and each goes to the second in a frame.
#[test]
fn sites_that_are_busy_write_less_often_than_they_send() {
    let one = Alone::new();
    let mut fleet = Fleet::spawn_each(&one.order(), &[one.config.clone(), one.other()]).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let total = |fleet: &Fleet, series: &str, label: &str| {
        let pages: Vec<String> = fleet.clients().map(|client| client.metrics().unwrap()).collect();
        let lines = pages.iter().flat_map(|page| page.lines());
        let lines = lines.filter(|line| line.starts_with(series) && line.contains(label));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum::<f64>()
    };
    let wide = wide_jobs(2000, 5000);
    fleet.feed(&wide, |_| SiteId(1)).unwrap();
    let before = total(&fleet, "stealgrid_journal_commits_total{", "");
    fleet.start(1000.0, Time::ZERO, Duration::from_millis(300)).unwrap();
    wait_until_finished(&mut fleet, wide.len() as u64);
    let writes = total(&fleet, "stealgrid_journal_commits_total{", "") - before;
    let sent = total(&fleet, "stealgrid_messages_total{", "direction=\"sent\"");
    assert!(sent >= wide.len() as f64, "{sent} frames");
    assert!(writes < sent / 4.0, "{writes} writes, {sent} frames");
}

/// Whoever asks for old events, or has the time stand still, takes the journal back from the thread that writes: the
/// frames that wait for that leave, too. No message is repeated before the test gives up.
#[test]
fn a_busy_site_that_is_asked_meanwhile_loses_no_frame() {
    let one = Alone::with(|config| {
        config.options.retry = Some(Span::from_secs(1_000_000));
        config.events_max = 10;
        config.durability = Durability::Disk;
    });
    let mut fleet = Fleet::spawn_each(&one.order(), &[one.config.clone(), one.other()]).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    // Ten in a millisecond of the wall clock: the site is never idle for long enough to write by itself. Fewer than an outbox
    // takes: on a busy machine all of them may wait there, and what is beyond the limit is lost by design.
    let wide = wide_jobs(4000, 100_000);
    fleet.feed(&wide, |_| SiteId(1)).unwrap();
    fleet.start(1000.0, Time::ZERO, Duration::from_millis(100)).unwrap();
    let ended = AtomicBool::new(false);
    let asked = std::thread::scope(|scope| {
        let asks = |client: NodeClient| {
            let mut told = 0;
            while !ended.load(Ordering::Relaxed) {
                told += answered(|| client.events(0, 10)).len();
            }
            told
        };
        let first = fleet.clients().next().unwrap().clone();
        let threads: Vec<_> =
            fleet.clients().cloned().map(|client| scope.spawn(move || asks(client))).collect();
        let deadline = Instant::now() + 3 * PATIENCE;
        while Instant::now() < deadline && !fleet.is_finished(wide.len() as u64).unwrap() {
            std::thread::sleep(Duration::from_millis(5));
            if answered(|| first.status()).phase == Phase::Running {
                let origin = Time::from_micros(answered(|| first.pause()).trace_origin_us);
                first.start(&start_order(1000.0, origin, Duration::from_millis(1))).unwrap();
            }
        }
        ended.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    let statuses = fleet.statuses().unwrap();
    assert!(fleet.is_finished(wide.len() as u64).unwrap(), "a frame is lost: {statuses:?}");
    assert!(asked > 0);
    let mut all = Vec::new();
    fleet.take_events(&mut |event| all.push(event)).unwrap();
    assert_eq!(self::ended(&all), wide.len());
}

/// What a site says when it connects is enough; it need not have sent a message.
#[test]
fn a_site_that_comes_back_without_its_directory_is_refused_by_who_met_it() {
    let one = Alone::new();
    let second = one.other();
    let address = |process: &NodeProcess, site| {
        let Status { listen, peer_id, .. } = process.client().status().unwrap();
        PeerAddress { site: SiteId(site), address: format!("{}/p2p/{peer_id}", listen[0]) }
    };
    let (first, other) = (one.start(), NodeProcess::spawn(&one.order(), &second).unwrap());
    other.client().connect(&[address(&first, 1)]).unwrap();
    let met = || {
        let readable = inspect::check(one.config.data_dir.as_deref().unwrap()).unwrap().readable;
        readable.contains(&("other sites", 1))
    };
    wait_until("the journal of the other site is noted", met);
    kill(first);
    kill(other);
    std::fs::remove_dir_all(second.data_dir.as_deref().unwrap()).unwrap();

    // A coordinator waits for the journal to come back; whoever starts the node by hand does not.
    let (first, other) = (one.start_again().unwrap(), NodeProcess::spawn(&one.order(), &second).unwrap());
    other.client().connect(&[address(&first, 1)]).unwrap();
    wait_until("the first refuses the second", || {
        let status = first.client().status().unwrap();
        status.links[0].problem.as_deref().is_some_and(|why| why.contains("without its journal"))
    });
}

/// Another process keeps the journal to itself, so that nothing can be written: then nothing is done either, as far as
/// anybody is told.
#[test]
fn an_order_that_cannot_be_kept_is_not_answered_as_done() {
    for name in ["connect", "jobs"] {
        let one = Alone::new();
        let process = one.start();
        let other = NodeProcess::spawn(&one.order(), &one.other()).unwrap();
        let Status { listen, peer_id, .. } = other.client().status().unwrap();
        let peer = PeerAddress { site: SiteId(2), address: format!("{}/p2p/{peer_id}", listen[0]) };
        let journal = rusqlite::Connection::open(one.journal()).unwrap();
        journal.execute_batch("BEGIN IMMEDIATE").unwrap();

        let client = process.client();
        let answered = match name {
            "connect" => client.connect(&[peer]),
            _ => client.jobs(&jobs(0..1)),
        };
        assert!(answered.is_err(), "{name} was answered as done");
    }
}

/// A coordinator starts a node and ends; the next finds nobody and draws other secrets, and only then the node is up. Nobody
/// could speak to it.
#[test]
fn a_node_that_comes_up_with_former_secrets_is_started_again_with_the_present_ones() {
    let one = Alone::with(|config| config.control_token = None);
    let order = one.order();
    let mut fleet = Fleet::spawn_each(&order, &[one.config.clone(), one.other()]).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let other = Running::of(&one.folder.path().join("other")).unwrap();
    // As if another process had started them.
    std::mem::forget(fleet);
    other.process.kill();
    wait_until("the other node ends", || !other.process.is_alive());
    let former = Running::of(&one.folder.path().join("data")).unwrap();
    // It has its journal, and has not said yet that it is up.
    let (word, kept) = (one.folder.path().join("data/running.json"), one.folder.path().join("kept"));
    std::fs::rename(&word, &kept).unwrap();
    let token = order.folder.join("control.token");
    let before = std::fs::read(&token).unwrap();
    let comes_up = std::thread::spawn(move || {
        wait_until("another token is drawn", || {
            std::fs::read(&token).is_ok_and(|now| !now.is_empty() && now != before)
        });
        // Where the node of this fleet was quicker, it has left its own word.
        if !word.exists() {
            std::fs::rename(&kept, &word).unwrap();
        }
    });

    let sites = ["site1", "site2"].map(String::from);
    let adopted = Fleet::adopt(&order, &sites, &BTreeMap::new(), &BTreeSet::new(), false);
    comes_up.join().unwrap();
    let adopted = adopted.unwrap();
    assert_eq!(adopted.started, sites);
    let mut fleet = adopted.fleet;
    fleet.wait_ready(PATIENCE).unwrap();
    assert_eq!(fleet.statuses().unwrap().len(), 2);
    assert!(!former.process.is_alive(), "nobody can speak to it");
}

/// Set for the half of the test that has no descriptors.
const SCARCE: &str = "STEALGRID_TEST_SCARCE";

/// Without descriptors nobody can tell whether a process runs: it is not taken for one that has ended, and whoever comes
/// next can speak to it. In a process of its own, as the limit is that of all threads.
#[test]
fn a_node_that_cannot_be_looked_at_has_not_ended() {
    if std::env::var_os(SCARCE).is_some() {
        return without_descriptors();
    }
    let program = std::env::current_exe().unwrap();
    let name = "journal_nodes::a_node_that_cannot_be_looked_at_has_not_ended";
    once_more::run(Command::new(program).env(SCARCE, "1"), name);
}

fn without_descriptors() {
    let one = Alone::new();
    let order = one.order();
    let mut fleet = Fleet::spawn_each(&order, &[one.config.clone(), one.other()]).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    // As if another process had started them.
    std::mem::forget(fleet);
    let sites = ["site1", "site2"].map(String::from);
    let adopted = Fleet::adopt(&order, &sites, &BTreeMap::new(), &BTreeSet::new(), false);
    let mut fleet = adopted.unwrap().fleet;
    let key = order.folder.join("grid.key");
    assert!(key.exists());
    let before = getrlimit(Resource::Nofile);
    let limit = |current| setrlimit(Resource::Nofile, Rlimit { current, ..before }).unwrap();

    limit(Some(3));
    let restarted = fleet.restart_ended(true);
    limit(before.current);
    assert_eq!(restarted.unwrap().ended, []);

    limit(Some(3));
    drop(fleet);
    limit(before.current);
    let left = Running::all_in(&order.folder);
    left.iter().for_each(|running| running.process.kill());
    assert!(left.is_empty() || key.exists(), "nobody can speak to {left:?}");
}

/// There are 1.5 MiB of room, and then 64.
#[test]
fn a_node_on_a_full_disk_stops_and_goes_on_with_room() {
    let test = "journal_nodes::a_node_on_a_full_disk_stops_and_goes_on_with_room";
    small_disk::in_namespace(test, || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let disk = SmallDisk::mount(path.clone(), 64 * 1024);
        disk.fill(64 * 1024 - 1536);
        on_a_full_disk(&path, || disk.make_room());
    });
}

fn on_a_full_disk(disk: &Path, make_room: impl FnOnce()) {
    let one = Alone::with(|config| config.data_dir = Some(disk.join("data")));
    let mut process = one.start();
    let mut taken = 0;
    while process.client().jobs(&jobs(taken..taken + 100)).is_ok() {
        taken += 100;
        assert!(taken < 100_000, "the disk is never full");
    }
    wait_until("the node ends", || process.ended().unwrap().is_some());
    let status = process.ended().unwrap().unwrap();
    assert_eq!(status.code(), Some(i32::from(exit::JOURNAL_FULL)), "{}", process.log_tail());
    assert!(process.log_tail().contains("no room for the journal"), "{}", process.log_tail());
    assert!(taken > 0, "nothing was taken");
    drop(process);

    make_room();
    let process = one.start_again().unwrap();
    assert_eq!(process.client().status().unwrap().outstanding.arrivals as u64, taken);
    process.client().offer_again(&jobs(0..taken + 1000)).unwrap();
    assert_eq!(process.client().status().unwrap().outstanding.arrivals as u64, taken + 1000);
}

/// A node of site 1 of two, and where it keeps its things. The other site need not be there.
struct Alone {
    folder: TempDir,
    config: NodeConfig,
}

impl Alone {
    fn new() -> Alone {
        Alone::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut NodeConfig)) -> Alone {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        Token::random().write_new(&token).unwrap();
        let mut config =
            NodeConfig::new(SiteId(1), vec![SiteEntry::new("site1", 4), SiteEntry::new("site2", 8)]);
        config.options.retry = Some(Span::from_secs(10_000));
        config.data_dir = Some(folder.path().join("data"));
        config.control_token = Some(token);
        change(&mut config);
        Alone { folder, config }
    }

    /// The second site, with a directory of its own.
    fn other(&self) -> NodeConfig {
        let data_dir = Some(self.folder.path().join("other"));
        NodeConfig { site: SiteId(2), data_dir, ..self.config.clone() }
    }

    fn order(&self) -> SpawnOrder {
        let folder = self.folder.path().to_path_buf();
        SpawnOrder { program: PROGRAM.into(), arguments: Vec::new(), folder }
    }

    fn journal(&self) -> PathBuf {
        self.config.data_dir.as_deref().unwrap().join(FILE)
    }

    fn start(&self) -> NodeProcess {
        NodeProcess::spawn(&self.order(), &self.config).unwrap()
    }

    fn start_again(&self) -> Result<NodeProcess, SpawnError> {
        NodeProcess::spawn_again(&self.order(), &self.config)
    }

    /// How a node with this configuration ends, and the end of its log.
    fn refused(&self, config: &NodeConfig) -> (ExitStatus, String) {
        let folder = tempfile::tempdir().unwrap();
        let order = SpawnOrder { folder: folder.path().to_path_buf(), ..self.order() };
        match NodeProcess::spawn(&order, config) {
            Err(SpawnError::Ended { status, log, .. }) => (status, log),
            other => panic!("it was not refused: {other:?}"),
        }
    }
}

fn port(process: &NodeProcess) -> u16 {
    process.ready_line().listen[0].split("/tcp/").nth(1).unwrap().parse().unwrap()
}

fn signal(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(process as i32).unwrap(), signal).unwrap();
}

/// `kill -9`, and waits for the end.
fn kill(process: NodeProcess) {
    signal(process.id().unwrap(), Signal::KILL);
    drop(process);
}

/// What a node answers that may be too busy to answer at first, which is 503.
fn answered<T>(ask: impl Fn() -> Result<T, ClientError>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask() {
            Err(ClientError::Refused { status: 503, .. }) if Instant::now() < deadline => {}
            answer => return answer.unwrap(),
        }
    }
}

fn restart(fleet: &mut Fleet) {
    wait_until("the node ends and is started again", || !fleet.restart_ended(true).unwrap().begun.is_empty());
}

fn wait_until_finished(fleet: &mut Fleet, jobs: u64) {
    wait_until("all jobs end", || fleet.is_finished(jobs).unwrap());
}

fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ended(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.kind, EventKind::Completed { .. })).count()
}

/// Jobs that are too wide for the first site, one in so many microseconds of trace time.
fn wide_jobs(count: u64, gap: i64) -> Vec<TimedJob> {
    let mut wide = jobs(0..count);
    for job in &mut wide {
        job.spec.processors = 8;
        job.spec.submit = Time::from_micros(job.spec.id.0 as i64 * gap);
        job.run_time = Span::ZERO;
    }
    wide
}

/// Jobs of a second on one processor, one each second.
fn jobs(numbers: std::ops::Range<u64>) -> Vec<TimedJob> {
    let job = |number: u64| {
        let spec = JobSpec {
            id: JobId(number + 1),
            submit: Time::from_secs(number as i64),
            processors: 1,
            requested: Span::from_secs(100),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        TimedJob { spec, run_time: Span::from_secs(1) }
    };
    numbers.map(job).collect()
}
