//! Nodes in networks of their own, while one of them is cut off: each job ends once, and everybody is heard again.
//!
//! Three sites, each a process in a network namespace, on one bridge in a fourth, where the test is. A second wire to
//! each site is for orders, so that nodes can be asked while the grid's network is cut. The namespaces have no names:
//! each ends with the process that holds it, however this test ends. Making them needs root or namespaces of users, and `unshare`, `nsenter`,
//! `ip` and `iptables` on the path; without them the test skips and says so.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use node::NodeConfig;
use node::config::SiteEntry;
use operation::fleet::Fleet;
use operation::spawn::SpawnOrder;
use scheduler::{Event, EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};
use stealgrid_tests::once_more;

use crate::PROGRAM;

/// Seconds of trace time in a second.
const FACTOR: f64 = 100.0;
const PROCESSORS: [u32; 3] = [4, 8, 8];
/// More work than the sites can do while the network is cut twice, briefly: they come for 20 s.
const JOBS: u64 = 400;
/// 1.5 s of wall-clock time.
const SUSPECT_AFTER: Span = Span::from_secs(150);
/// How long a link may be silent: pings every second. Longer than the brief cuts.
const LINK_SILENCE: Duration = Duration::from_secs(11);
/// Ample for what takes seconds; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_site_that_is_cut_off_is_suspected_and_heard_again_and_every_job_ends_once() {
    in_a_network(
        "cut::a_site_that_is_cut_off_is_suspected_and_heard_again_and_every_job_ends_once",
        cut_and_heal,
    );
}

#[test]
fn links_that_are_cut_for_long_are_noticed_and_connected_again() {
    in_a_network("cut::links_that_are_cut_for_long_are_noticed_and_connected_again", cut_for_long);
}

fn in_a_network(test: &str, inside: fn()) {
    let needs = "cut networks need unshare, nsenter, ip with bridges and veth pairs, iptables, and root or namespaces of users";
    let probe = "ip link add bridge type bridge && ip link add here type veth peer name there && \
                 iptables -I INPUT -i here -j DROP && nsenter --version";
    once_more::in_namespace("-n", needs, probe, test, inside);
}

/// Both ways and for longer than a connection lives: nobody shows a link that is not there, on either side.
fn cut_for_long() {
    let network = Network::new();
    let mut run = Run::start(&network);
    run.until("the first jobs end", |run| run.count(|kind| matches!(kind, EventKind::Completed { .. })) > 5);
    let cut_off = SiteId(3);
    network.set_wire(cut_off, "down");
    let begun = Instant::now();
    run.until("no link to or from the site is shown as connected", |run| {
        let statuses = run.fleet.statuses().unwrap();
        let mut links =
            statuses.iter().flat_map(|status| status.links.iter().map(move |link| (status.site, link)));
        links.all(|(site, link)| link.connected == (site != cut_off && link.site != cut_off))
    });
    let took = begun.elapsed();
    // Twice the time is ample for a machine that is busy otherwise.
    assert!(took < 2 * LINK_SILENCE, "noticed after {took:?}");
    // A connection that was not used goes some time after the link is shown as gone.
    run.until("every site has counted the links that were silent", |run| {
        run.fleet.statuses().unwrap().iter().all(|status| {
            let expected = if status.site == cut_off { 2 } else { 1 };
            status.limits_hit["link_silence"] >= expected
        })
    });
    network.set_wire(cut_off, "up");
    run.until_whole();
    run.finish();
}

fn cut_and_heal() {
    let network = Network::new();
    let mut run = Run::start(&network);

    // Both ways, so briefly that connections survive.
    run.until("the first jobs end", |run| run.count(|kind| matches!(kind, EventKind::Completed { .. })) > 5);
    let cut_off = SiteId(3);
    network.set_wire(cut_off, "down");
    run.until("a site that is cut off is suspected by all, and suspects all", |run| {
        [(1, 3), (2, 3), (3, 1), (3, 2)].iter().all(|&(site, peer)| run.suspects(SiteId(site), SiteId(peer)))
    });
    network.set_wire(cut_off, "up");
    run.until_whole();

    // One way: what is sent to the site does not arrive, what it sends does, as long as TCP sends without answers.
    let deaf = SiteId(2);
    let before = run.events.len();
    network.deafen(deaf, "-I");
    run.until("a site that hears nothing suspects all", |run| {
        run.suspects(deaf, SiteId(1)) && run.suspects(deaf, SiteId(3))
    });
    let ended = run.count(|kind| matches!(kind, EventKind::Completed { .. }));
    assert!(ended < JOBS as usize, "the jobs ended before the network was cut: there must be more");
    network.deafen(deaf, "-D");
    run.until_whole();
    let heard = run.events[before..].iter().filter_map(|event| match event.kind {
        EventKind::Heard { after, .. } if event.site == deaf => Some(after),
        _ => None,
    });
    assert!(heard.min().unwrap() >= SUSPECT_AFTER, "nobody is suspected before its time");

    run.finish();
}

/// Three nodes and what they have said.
struct Run {
    fleet: Fleet,
    jobs: Vec<TimedJob>,
    events: Vec<Event>,
    _folder: tempfile::TempDir,
}

impl Run {
    fn start(network: &Network) -> Run {
        let folder = tempfile::tempdir().unwrap();
        // The name of its configuration says which site a node is to be.
        let script = folder.path().join("inside");
        let cases: String = (1..=3)
            .map(|site| format!("*/site{site}.json) holder={};;\n", network.holder(SiteId(site))))
            .collect();
        let text =
            format!("#!/bin/sh\ncase \"$2\" in\n{cases}esac\nexec nsenter -t $holder -n {PROGRAM} \"$@\"\n");
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
        let order =
            SpawnOrder { program: script, arguments: Vec::new(), folder: folder.path().to_path_buf() };
        let configs: Vec<NodeConfig> = (1..=3).map(|site| config(folder.path(), SiteId(site))).collect();
        let mut fleet = Fleet::spawn_each(&order, &configs).unwrap();
        fleet.wait_ready(PATIENCE).unwrap();
        let jobs: Vec<TimedJob> = (0..JOBS).map(job).collect();
        fleet.feed(&jobs, |job| job.spec.origin).unwrap();
        fleet.start(FACTOR, Time::ZERO, Duration::from_millis(200)).unwrap();
        Run { fleet, jobs, events: Vec::new(), _folder: folder }
    }

    /// Looks until it is so.
    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Run) -> bool) {
        let begin = Instant::now();
        loop {
            self.fleet.take_events(&mut |event| self.events.push(event)).unwrap();
            if holds(self) {
                eprintln!("{:.1} s: {what}", begin.elapsed().as_secs_f64());
                return;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "not so in {PATIENCE:?}: {what}: {:#?}",
                self.fleet.statuses()
            );
            // Each look asks every node: what is waited for takes a second and more.
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Looks until nobody suspects anybody and all are connected.
    fn until_whole(&mut self) {
        self.until("everybody is heard again", |run| {
            let connected = run.fleet.statuses().unwrap().iter().all(|status| status.connected);
            connected && (1..=3).all(|site| (1..=3).all(|peer| !run.suspects(SiteId(site), SiteId(peer))))
        });
    }

    /// What the site said last of the other.
    fn suspects(&self, site: SiteId, other: SiteId) -> bool {
        let mut said =
            self.events.iter().filter(|event| event.site == site).filter_map(|event| match event.kind {
                EventKind::Suspected { peer } if peer == other => Some(true),
                EventKind::Heard { peer, .. } if peer == other => Some(false),
                _ => None,
            });
        said.next_back().unwrap_or(false)
    }

    fn count(&self, wanted: impl Fn(&EventKind) -> bool) -> usize {
        self.events.iter().filter(|event| wanted(&event.kind)).count()
    }

    /// Waits for the end of all jobs and checks what became of each.
    fn finish(mut self) {
        self.until("all jobs end", |run| run.fleet.is_finished(JOBS).unwrap());
        self.fleet.take_events(&mut |event| self.events.push(event)).unwrap();
        // Where the machine stands still a site that is there is suspected, and heard again at once.
        self.until("every site says in its metrics who was away and is back", |run| {
            run.fleet.clients().map(|client| client.metrics().unwrap()).all(|page| {
                metric(&page, "stealgrid_membership_events_total{event=\"suspected\"") >= 1.0
                    && metric(&page, "stealgrid_membership_events_total{event=\"heard\"") >= 1.0
                    && (metric(&page, "stealgrid_sites{presence=\"here\"") - 2.0).abs() < 0.1
                    && metric(&page, "stealgrid_link_absence_seconds{") >= SUSPECT_AFTER.as_secs_f64()
            })
        });
        let all: BTreeSet<JobId> = self.jobs.iter().map(|job| job.spec.id).collect();
        self.events.sort_by_key(|event| event.at);
        let mut busy: BTreeMap<SiteId, u32> = BTreeMap::new();
        let (mut started, mut completed) = (BTreeMap::new(), BTreeMap::new());
        for event in &self.events {
            match event.kind {
                EventKind::Started { job, processors, .. } => {
                    assert_eq!(started.insert(job, event.site), None, "job {job} started twice");
                    let busy = busy.entry(event.site).or_default();
                    *busy += processors;
                    assert!(*busy <= PROCESSORS[event.site.index()], "site {} is over capacity", event.site);
                }
                EventKind::Completed { job, processors, .. } => {
                    assert_eq!(completed.insert(job, event.site), None, "job {job} ended twice");
                    *busy.entry(event.site).or_default() -= processors;
                }
                EventKind::TookOver { job, .. } => panic!("job {job} is taken over without a lease"),
                _ => {}
            }
        }
        assert_eq!(completed.keys().copied().collect::<BTreeSet<_>>(), all, "a job is lost");
        assert_eq!(started, completed, "each job ends where it started");
        assert!(self.count(|kind| matches!(kind, EventKind::Accepted { .. })) > 0, "nothing was stolen");
        self.fleet.stop(PATIENCE).unwrap();
    }
}

/// Sites in namespaces, with two wires each: `grid` to the bridge, and `orders` to the namespace of the test.
struct Network {
    holders: Vec<Child>,
}

impl Network {
    fn new() -> Network {
        command(&["ip", "link", "set", "lo", "up"]);
        command(&["ip", "link", "add", "bridge", "type", "bridge"]);
        command(&["ip", "link", "set", "bridge", "up"]);
        let mut network = Network { holders: Vec::new() };
        for site in 1..=3 {
            // It ends with the test, even one that is killed: nobody else has the other end of its input.
            let holder = Command::new("unshare").args(["-n", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
            network.holders.push(holder);
            network.wait_for_namespace(SiteId(site));
            let (holder, site) = (network.holder(SiteId(site)).to_string(), site.to_string());
            let (grid, orders) = (format!("grid{site}"), format!("orders{site}"));
            for (name, here) in [("grid", &grid), ("orders", &orders)] {
                command(&["ip", "link", "add", here, "type", "veth", "peer", "name", name, "netns", &holder]);
                command(&["ip", "link", "set", here, "up"]);
            }
            command(&["ip", "link", "set", &grid, "master", "bridge"]);
            command(&["ip", "addr", "add", &format!("10.77.{site}.1/24"), "dev", &orders]);
            let inside = |args: &[&str]| command(&[&["nsenter", "-t", &holder, "-n", "ip"], args].concat());
            inside(&["addr", "add", &format!("10.77.{site}.2/24"), "dev", "orders"]);
            inside(&["addr", "add", &format!("10.78.0.{site}/24"), "dev", "grid"]);
            for name in ["lo", "grid", "orders"] {
                inside(&["link", "set", name, "up"]);
            }
        }
        network
    }

    /// The process whose network is that of the site.
    fn holder(&self, site: SiteId) -> u32 {
        self.holders[site.index()].id()
    }

    fn wait_for_namespace(&self, site: SiteId) {
        let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).unwrap();
        let deadline = Instant::now() + PATIENCE;
        while of(&self.holder(site).to_string()) == of("self") {
            assert!(Instant::now() < deadline, "no network namespace for site {site}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Pulls the wire between a site and the grid out, or puts it in again.
    fn set_wire(&self, site: SiteId, state: &str) {
        command(&["ip", "link", "set", &format!("grid{site}"), state]);
    }

    /// `-I`: drops what the grid sends to the site; `-D`: does so no longer.
    fn deafen(&self, site: SiteId, rule: &str) {
        let holder = self.holder(site).to_string();
        let drops = ["iptables", "-w", rule, "INPUT", "-i", "grid", "-j", "DROP"];
        command(&[&["nsenter", "-t", &holder, "-n"], drops.as_slice()].concat());
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            // Errors mean that it has ended already.
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

fn command(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// The largest value of the lines that begin so; 0 without any.
fn metric(page: &str, begins: &str) -> f64 {
    let lines = page.lines().filter(|line| line.starts_with(begins));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).fold(0.0, f64::max)
}

/// Jobs of 5 to 60 s on 1 to 8 processors, twelve every 60 s of trace time.
fn job(number: u64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(number + 1),
        submit: Time::from_secs((number * 5) as i64),
        processors: 1 + (number * 5 % 8) as u32,
        requested: Span::from_secs(100),
        labels: Labels::UNKNOWN,
        origin: SiteId(1 + (number % 3) as u32),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(5 + (number * 37 % 56) as i64) }
}

fn config(folder: &Path, site: SiteId) -> NodeConfig {
    let entry =
        |(index, processors): (usize, &u32)| SiteEntry::new(format!("site{}", index + 1), *processors);
    let mut config = NodeConfig::new(site, PROCESSORS.iter().enumerate().map(entry).collect());
    config.listen = format!("/ip4/10.78.0.{site}/tcp/0");
    config.http = format!("10.77.{site}.2:0");
    config.options.retry = Some(Span::from_secs(50));
    config.options.heartbeat = Some(Span::from_secs(20));
    config.options.suspect_after = SUSPECT_AFTER;
    config.limits.link_silence_secs = LINK_SILENCE.as_secs() as u32;
    config.data_dir = Some(folder.join(format!("data{site}")));
    config
}
