//! Strangers, orders without the token, and a site that turns against the others: on real processes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use node::NodeConfig;
use node::config::{IdentitySource, Member, SiteEntry};
use node::control::Token;
use node::control::api::Status;
use node::frame::Frame;
use node::limits::Limits;
use node::lockstep::Client;
use operation::spawn::SpawnOrder;
use operation::{Fleet, NodeClient, NodeProcess};
use protocol::Message;
use protocol::message::{Offer, StealMessage};
use scheduler::{Event, EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

use crate::PROGRAM;
use crate::hostile::{Conduct, Hostile, Introduction};

/// Ample for what takes seconds; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(120);
/// Tests that keep processors busy take turns: the overloaded node must be asked for its events in time.
static TURN: Mutex<()> = Mutex::new(());
/// Two good sites, and a third that is hostile and wider than both: nobody wants to steal from it.
const PROCESSORS: [u32; 3] = [2, 8, 16];

#[test]
fn orders_without_the_token_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let token = Token::random();
    token.write_new(&path).unwrap();
    let config = NodeConfig { control_token: Some(path), ..config(1, &[4]) };
    let node = NodeProcess::spawn(&order(folder.path()), &config).unwrap();
    let http = &node.ready_line().http;

    let refused = |token: Option<Token>| {
        let client = NodeClient::new(http, token.clone());
        let lockstep = Client::connect(http, token.as_ref(), PATIENCE).unwrap_err().to_string();
        [
            client.status().unwrap_err().to_string(),
            client.jobs(&[job(1, 1)]).unwrap_err().to_string(),
            client.stop().unwrap_err().to_string(),
            lockstep,
        ]
    };
    for error in refused(None) {
        assert!(error.contains("shows no token"), "{error}");
    }
    for error in refused(Some(Token::random())) {
        assert!(error.contains("the token is not that of this node"), "{error}");
    }
    let page = NodeClient::new(http, None).metrics().unwrap();
    assert_eq!(metric(&page, "stealgrid_control_refused_total", "missing"), 4);
    assert_eq!(metric(&page, "stealgrid_control_refused_total", "wrong"), 4);
    let status = NodeClient::new(http, Some(token)).status().unwrap();
    assert_eq!((status.outstanding.arrivals, status.events), (0, 0), "nothing was obeyed");
    let log = std::fs::read_to_string(node.log()).unwrap();
    assert!(log.contains("the token is not that of this node"), "{log}");
    assert!(!node.stop(PATIENCE).unwrap().unwrap().is_failure());
}

#[test]
fn a_node_without_a_token_obeys_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let node = NodeProcess::spawn(&order(folder.path()), &config(1, &[4])).unwrap();
    let client = NodeClient::new(&node.ready_line().http, Some(Token::random()));
    let error = client.stop().unwrap_err().to_string();
    assert!(error.contains("401") && error.contains("--control-token FILE"), "{error}");
    assert_eq!(metric(&client.metrics().unwrap(), "stealgrid_control_refused_total", "no_token"), 1);
}

#[test]
fn metrics_have_an_address_of_their_own_without_control() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let token = Token::random();
    token.write_new(&path).unwrap();
    let metrics = Some("127.0.0.1:0".to_string());
    let http_hosts = vec!["own.example".to_string()];
    let config = NodeConfig { control_token: Some(path), metrics, http_hosts, ..config(1, &[4]) };
    let node = NodeProcess::spawn(&order(folder.path()), &config).unwrap();
    let there = NodeClient::new(node.ready_line().metrics.as_ref().unwrap(), Some(token));

    assert!(there.metrics().unwrap().contains("stealgrid_build_info"));
    for (host, status) in [("site1:9100", "200"), ("rebound.example", "403"), ("own.example:80", "200")] {
        let mut stream = TcpStream::connect(node.ready_line().metrics.as_ref().unwrap()).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
    for error in [there.stop().unwrap_err(), there.status().map(drop).unwrap_err()] {
        assert!(error.to_string().contains("404"), "{error}");
    }
    assert!(!node.stop(PATIENCE).unwrap().unwrap().is_failure());
}

#[test]
fn a_site_that_sends_garbage_is_banned_and_the_others_finish_their_jobs() {
    let garbage: Vec<u8> = crate::hostile::record(b"no frame at all").repeat(1000);
    let pages = under_attack(garbage);
    assert!(total(&pages, "stealgrid_offences_total", "garbage") >= 3, "{}", pages[0]);
}

#[test]
fn a_site_that_pretends_to_be_another_is_banned_and_the_others_finish_their_jobs() {
    let ends = frame(SiteId(2), SiteId(1), 1);
    let pages = under_attack(crate::hostile::record(&ends.encode()).repeat(1000));
    assert!(total(&pages, "stealgrid_offences_total", "ends") >= 3, "{}", pages[0]);
}

#[test]
fn a_site_that_announces_too_much_is_banned_and_the_others_finish_their_jobs() {
    let pages = under_attack(vec![1, 0xff, 0xff, 0xff, 0xff]);
    assert!(total(&pages, "stealgrid_offences_total", "stream") >= 3, "{}", pages[0]);
    assert!(total(&pages, "stealgrid_limit_hits_total", "frame_bytes") >= 3, "{}", pages[0]);
}

/// Ten times what the sites can do is submitted, more than a node takes at once, while a third site asks for work as
/// fast as it can. Memory stays below the limit, everybody is told to wait, and every job runs once.
#[test]
fn an_overloaded_node_stays_within_its_memory_answers_busy_and_loses_nothing() {
    const JOBS: u64 = 5_000;
    /// The stated limit of a node that holds a thousand jobs and 100,000 events.
    const RESIDENT_MAX_KIB: u64 = 48 * 1024;
    let _turn = turn();
    let mut flood = Vec::new();
    for sequence in 1..=50_000 {
        flood.extend(crate::hostile::record(&frame(SiteId(3), SiteId(1), sequence).encode()));
    }
    let limits = Limits {
        jobs_waiting: 1_000,
        frames_per_second: 1_000,
        offences: 100,
        inbox_bytes: 1024 * 1024,
        ..Limits::default()
    };
    let mut grid = Grid::start(&limits, Conduct { bytes: flood, ..Conduct::default() });

    // Two processors for ten seconds each, submitted within a tenth of the time that ten processors need for them.
    let span = JOBS * 20 / 10 / 10;
    let jobs: Vec<TimedJob> = (1..=JOBS).map(|id| job(id, 1 + (id * span / JOBS) as i64)).collect();
    grid.hostile.attack();
    let pages = grid.run(&jobs, 2_000.0);

    assert!(metric(&pages[0], "stealgrid_limit_hits_total", "jobs") > 0, "never busy: {}", pages[0]);
    assert!(metric(&pages[0], "stealgrid_limit_hits_total", "rate") > 0, "no flood: {}", pages[0]);
    let answered = metric(&pages[0], "stealgrid_steal_requests_total", "too_wide")
        + metric(&pages[0], "stealgrid_steal_requests_total", "empty")
        + metric(&pages[0], "stealgrid_steal_requests_total", "busy");
    assert!(answered > 100, "requests are answered: {}", pages[0]);
    for (site, resident) in grid.resident_max_kib().into_iter().enumerate() {
        eprintln!("site {}: at most {resident} KiB", site + 1);
        assert!(resident < RESIDENT_MAX_KIB, "site {}: {resident} KiB", site + 1);
    }
    grid.stop();
}

#[test]
fn hellos_beyond_the_rate_are_not_taken_and_the_others_finish_their_jobs() {
    let _turn = turn();
    let limits = Limits { requests_per_second: 5, ..Limits::default() };
    let mut grid = Grid::start(&limits, Conduct { hellos: 40, ..Conduct::default() });
    grid.hostile.attack();
    grid.run(&jobs_of_a_minute(), 100.0);
    let page = grid.until_metric("stealgrid_limit_hits_total", "rate", 1);
    assert!(metric(&page, "stealgrid_offences_total", "rate") > 0, "{page}");
    grid.stop();
}

/// Ten seconds for the handshake, twenty for the introduction: those who say nothing are gone after that, and hold no
/// more places meanwhile than there are for them.
#[test]
fn those_who_say_nothing_are_dropped_and_the_others_finish_their_jobs() {
    const PENDING_MAX: u32 = 4;
    let limits = Limits { connections_pending: PENDING_MAX, ..Limits::default() };
    // It shows the key and its identity, and never says of which run and grid it is.
    let mut grid = Grid::spawn(&limits, Conduct { introduces: false, ..Conduct::default() });
    grid.until_connected();
    // They do not even show the key. The hostile site has one of the places now and then, so they come again.
    let address = grid.fleet.statuses().unwrap()[0].listen[0].clone();
    let mut words = address.split('/').skip(2).step_by(2);
    let address = format!("{}:{}", words.next().unwrap(), words.next().unwrap());
    let mut strangers: Vec<Stranger> = (0..2 * PENDING_MAX).map(|_| Stranger::new(&address)).collect();

    grid.run(&jobs_of_a_minute(), 100.0);
    let refused = [
        ("stealgrid_limit_hits_total", "connections", PENDING_MAX),
        ("stealgrid_connections_refused_total", "handshake", PENDING_MAX),
        ("stealgrid_connections_refused_total", "silent", 1),
    ];
    for (name, label, least) in refused {
        grid.until_metric_and(name, label, u64::from(least), || {
            for stranger in &mut strangers {
                if stranger.is_dropped() {
                    *stranger = Stranger::new(&address);
                }
            }
        });
    }
    // Those that have come last are dropped like all others.
    let deadline = Instant::now() + PATIENCE;
    while !strangers.iter_mut().all(Stranger::is_dropped) {
        assert!(Instant::now() < deadline, "somebody who says nothing stays");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(grid.log().contains("pending incoming connections are allowed"), "{}", grid.log());
    grid.until_connected();
    grid.stop();
}

/// Runs jobs at the good sites while the third sends these bytes: the pages of the good ones.
fn under_attack(bytes: Vec<u8>) -> Vec<String> {
    let limits = Limits { offences: 3, ..Limits::default() };
    let mut grid = Grid::start(&limits, Conduct { bytes, ..Conduct::default() });
    grid.hostile.attack();
    grid.run(&jobs_of_a_minute(), 100.0);
    // What a site sends is looked at once the clock runs.
    let deadline = Instant::now() + PATIENCE;
    let pages = loop {
        let pages: Vec<String> = grid.fleet.clients().map(|client| client.metrics().unwrap()).collect();
        if pages.iter().all(|page| metric(page, "stealgrid_bans_total", "") > 0) {
            break pages;
        }
        assert!(Instant::now() < deadline, "it is not banned: {}", pages[0]);
        std::thread::sleep(Duration::from_millis(20));
    };
    grid.stop();
    pages
}

/// Somebody who connects to a site and says nothing.
struct Stranger {
    stream: TcpStream,
    /// Bytes that it was told.
    told: usize,
}

impl Stranger {
    fn new(address: &str) -> Stranger {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        Stranger { stream, told: 0 }
    }

    /// Whether the site has closed the connection, and said no more than the beginning of a handshake.
    fn is_dropped(&mut self) -> bool {
        let mut bytes = [0; 64];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(read) => self.told += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
                    return true;
                }
            }
            assert!(self.told <= 24, "more than the beginning of a handshake: {} bytes", self.told);
        }
    }
}

/// Two good sites as processes, and the hostile one, which is connected with both.
struct Grid {
    fleet: Fleet,
    hostile: Hostile,
    folder: tempfile::TempDir,
    /// What was handed in.
    jobs: BTreeSet<JobId>,
}

impl Grid {
    fn start(limits: &Limits, conduct: Conduct) -> Grid {
        let mut grid = Grid::spawn(limits, conduct);
        grid.fleet.wait_ready(PATIENCE).unwrap();
        grid
    }

    /// The same, without waiting until all are connected.
    fn spawn(limits: &Limits, conduct: Conduct) -> Grid {
        let folder = tempfile::tempdir().unwrap();
        let (keypair, peer_id) = crate::hostile::identity();
        let good = |site: u32| NodeConfig {
            identity: IdentitySource::File(folder.path().join(format!("{site}.key"))),
            members: vec![Member { site: SiteId(3), peer_id: peer_id.clone() }],
            limits: limits.clone(),
            events_max: 100_000,
            // Nobody fetches them: under a flood a test may stand still for longer than they are in memory.
            events_file: Some(events_file(folder.path(), site)),
            ..config(site, &PROCESSORS)
        };
        let fleet = Fleet::spawn_each(&order(folder.path()), &[good(1), good(2)]).unwrap();
        let addresses = fleet.clients().map(|client| {
            let status = client.status().unwrap();
            format!("{}/p2p/{}", status.listen[0], status.peer_id)
        });
        let introduction = Introduction { run: good(1).run, site: 3, processors: PROCESSORS.to_vec() };
        let addresses = addresses.collect();
        let hostile =
            Hostile::start(keypair, &folder.path().join("grid.key"), introduction, addresses, conduct);
        Grid { fleet, hostile, folder, jobs: BTreeSet::new() }
    }

    /// Hands all jobs to the first site and waits for their ends: the pages of metrics.
    fn run(&mut self, jobs: &[TimedJob], factor: f64) -> Vec<String> {
        let fleet = &mut self.fleet;
        fleet.feed(jobs, |_| SiteId(1)).unwrap();
        fleet.start(factor, Time::ZERO, Duration::from_millis(200)).unwrap();
        self.jobs = jobs.iter().map(|job| job.spec.id).collect();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let statuses = fleet.statuses().unwrap();
            let completed: u64 = statuses.iter().map(|status| status.completed).sum();
            if completed >= jobs.len() as u64 && fleet.pending() == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{completed} of {} jobs ended: {statuses:#?}", jobs.len());
            std::thread::sleep(Duration::from_millis(20));
        }
        fleet.clients().map(|client| client.metrics().unwrap()).collect()
    }

    /// Waits until the first site has counted so many; its page.
    fn until_metric(&mut self, name: &str, label: &str, least: u64) -> String {
        self.until_metric_and(name, label, least, || {})
    }

    /// The same, with something to do meanwhile.
    fn until_metric_and(&mut self, name: &str, label: &str, least: u64, mut also: impl FnMut()) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            also();
            let page = self.fleet.clients().next().unwrap().metrics().unwrap();
            if metric(&page, name, label) >= least {
                return page;
            }
            assert!(Instant::now() < deadline, "{name} {label} stays below {least}: {page}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the good sites are connected with each other.
    fn until_connected(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let statuses = self.fleet.statuses().unwrap();
            let good = |status: &Status| status.links.iter().any(|link| link.site.0 <= 2 && link.connected);
            if statuses.iter().all(good) {
                return;
            }
            assert!(Instant::now() < deadline, "{statuses:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the first site has logged.
    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("site1.log")).unwrap()
    }

    /// The most memory that each process ever had, as the kernel counts it.
    fn resident_max_kib(&self) -> Vec<u64> {
        let of_process = |id: u32| {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().to_string();
            line.trim().trim_end_matches("kB").trim().parse().unwrap()
        };
        self.fleet.process_ids().map(of_process).collect()
    }

    /// Stops the sites; each job that was handed in has started and ended once by what they wrote.
    fn stop(self) {
        drop(self.hostile);
        self.fleet.stop(PATIENCE).unwrap();
        let (mut started, mut completed) = (BTreeMap::new(), BTreeMap::new());
        for site in [1, 2] {
            let written = std::fs::read_to_string(events_file(self.folder.path(), site)).unwrap();
            for event in written.lines().map(|line| serde_json::from_str::<Event>(line).unwrap()) {
                match event.kind {
                    EventKind::Started { job, .. } => *started.entry(job).or_insert(0_u32) += 1,
                    EventKind::Completed { job, .. } => *completed.entry(job).or_insert(0_u32) += 1,
                    _ => {}
                }
            }
        }
        for times in [started, completed] {
            assert!(times.values().all(|times| *times == 1), "a job ran twice");
            assert_eq!(times.into_keys().collect::<BTreeSet<_>>(), self.jobs);
        }
    }
}

fn events_file(folder: &Path, site: u32) -> PathBuf {
    folder.join(format!("events{site}.jsonl"))
}

/// A request for work that fits nothing: one processor.
fn frame(from: SiteId, to: SiteId, sequence: u64) -> Frame {
    let offer = Offer { free: 1.into(), stand: false, releases: Vec::new() };
    Frame {
        from,
        to,
        instance: crate::hostile::LIFE,
        sequence,
        sent_at: Time::ZERO,
        injected: Span::ZERO,
        message: protocol::codec::encode(&Message::Steal(StealMessage::Request {
            seq: sequence,
            offer,
            seen: 0,
        })),
        run_times: Vec::new(),
    }
}

/// A test that fails takes nobody's turn away.
fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One line of a page; 0 without it.
fn metric(page: &str, name: &str, label: &str) -> u64 {
    let wanted =
        |line: &&str| line.starts_with(name) && (label.is_empty() || line.contains(&format!("=\"{label}\"")));
    page.lines().find(wanted).map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

fn total(pages: &[String], name: &str, label: &str) -> u64 {
    pages.iter().map(|page| metric(page, name, label)).sum()
}

fn config(site: u32, processors: &[u32]) -> NodeConfig {
    let entry = |(index, &processors)| SiteEntry::new(format!("site{}", index + 1), processors);
    let mut config = NodeConfig::new(SiteId(site), processors.iter().enumerate().map(entry).collect());
    config.options.retry = Some(Span::from_secs(5_000));
    config
}

/// More than the first site can do in a minute.
fn jobs_of_a_minute() -> Vec<TimedJob> {
    (1..=30).map(|id| job(id, 1)).collect()
}

/// As wide as the first site.
fn job(id: u64, submit: i64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors: 2,
        requested: Span::from_secs(60),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(10) }
}

fn order(folder: &Path) -> SpawnOrder {
    SpawnOrder { program: PROGRAM.into(), arguments: Vec::new(), folder: folder.to_path_buf() }
}
