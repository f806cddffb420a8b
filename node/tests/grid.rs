//! Small grids of real nodes in one process: libp2p over the loopback interface, the control interface over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use links::Model;
use node::clock::StartOrder;
use node::config::SiteEntry;
use node::control::Token;
use node::control::api::{LinksOrder, Phase, ReadyLine, Status};
use node::lockstep::{Answer, Client, Due, Note, Order, Posted, Reply, Terms};
use node::peer_address::PeerAddress;
use node::{Node, NodeConfig};
use operation::NodeClient;
use protocol::{Input, Output};
use scheduler::event::MessageKind;
use scheduler::{Event, EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

/// Seconds of trace time in a second.
const FACTOR: f64 = 100.0;
/// The same while something is looked at or ordered that must not be over by then, however slow the machine is.
const SLOW: f64 = 1.0;
/// Ample for what takes a second; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Site 1 gets more than it can run. The larger sites steal the rest, with a delay of two seconds of trace time on
/// every message. Each job runs once, for its true run time.
#[test]
fn a_grid_runs_every_job_once_and_steals() {
    let delay = Span::from_secs(2);
    let grid = Grid::start(&[4, 8, 8], |config| config.network = Model::constant(delay));
    let jobs: Vec<TimedJob> = (1..=12).map(|id| job(id, 10, 2 + (id % 3) as u32, 30 + id as i64)).collect();

    grid.clients[0].jobs(&jobs).unwrap();
    grid.start_clock();
    let statuses = grid.until_quiet(jobs.len() as u64);
    let events = grid.events();
    let page = grid.clients[0].metrics().unwrap();
    grid.stop();

    let noticed = |kind: &str| {
        let start = format!("stealgrid_timer_lateness_seconds_count{{kind=\"{kind}\",");
        let line = page.lines().find(|line| line.starts_with(&start)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(noticed("submission"), jobs.len());
    assert!(noticed("completion") > 0 && noticed("message") > 0, "{page}");
    let run_times: BTreeMap<JobId, Span> = jobs.iter().map(|job| (job.spec.id, job.run_time)).collect();
    let mut started = BTreeMap::new();
    let mut sites = BTreeSet::new();
    for event in &events {
        match event.kind {
            EventKind::Started { job, .. } => {
                assert!(started.insert(job, event.at).is_none(), "job {job} starts once");
                sites.insert(event.site);
            }
            EventKind::Completed { job, .. } => {
                let took = event.at.since(started[&job]);
                assert!(took >= run_times[&job], "job {job} ran {took} s instead of {} s", run_times[&job]);
            }
            _ => {}
        }
    }
    assert_eq!(started.len(), jobs.len());
    assert!(sites.len() > 1, "nothing was stolen");
    for link in statuses.iter().flat_map(|status| &status.links) {
        if let Some(measured) = link.measured {
            assert!(
                measured.min_us >= delay.as_micros(),
                "a message was faster than its delay: {measured:?}"
            );
        }
    }
    assert!(statuses[1].links[0].measured.is_some(), "site 1 sent something to site 2");
}

/// A job submitted at a site other than its home is routed home, with its run time.
#[test]
fn a_job_submitted_elsewhere_runs_at_home() {
    let grid = Grid::start(&[2, 8], |config| config.strategy = "local".to_string());

    grid.clients[0].jobs(&[job(7, 1, 6, 20)]).unwrap();
    grid.start_clock();
    grid.until_quiet(1);
    let events = grid.events();
    grid.stop();

    let at = |wanted: fn(&EventKind) -> bool| events.iter().find(|event| wanted(&event.kind)).unwrap().site;
    assert_eq!(at(|kind| matches!(kind, EventKind::Submitted { .. })), SiteId(1));
    assert_eq!(at(|kind| matches!(kind, EventKind::Completed { .. })), SiteId(2));
}

/// Two hundred jobs are planned by more generations than a millisecond has room for. The search ends, is counted, and every
/// job runs by the rows that it had found.
#[test]
fn a_plan_that_takes_too_long_ends_early_and_is_counted() {
    let grid = Grid::start(&[0, 4, 8], |config| {
        config.strategy = "broker:genetic,window=5s,generations=1000,evaluations=1000000".to_string();
        config.limits.plan_millis = 1;
    });
    let jobs: Vec<TimedJob> =
        (1..=200).map(|id| job(id, 1, 1 + (id % 4) as u32, 5 + (id % 7) as i64)).collect();

    grid.clients[0].jobs(&jobs).unwrap();
    grid.start_clock();
    let statuses = grid.until_quiet(jobs.len() as u64);
    let page = grid.clients[0].metrics().unwrap();
    let events = grid.events();
    grid.stop();

    let completed = events.iter().filter(|event| matches!(event.kind, EventKind::Completed { .. })).count();
    assert_eq!(completed, jobs.len());
    assert!(statuses[0].limits_hit["plan"] > 0, "{:?}", statuses[0].limits_hit);
    assert!(statuses[1..].iter().all(|site| site.limits_hit["plan"] == 0), "only brokers plan");
    let hits = page.lines().find(|line| line.starts_with("stealgrid_limit_hits_total{limit=\"plan\""));
    assert_eq!(hits.unwrap().rsplit(' ').next().unwrap(), statuses[0].limits_hit["plan"].to_string());
}

/// Site 1 cannot run the job, and the way to site 2, where it could run, is cut: first what site 1 sends, then, as site 2
/// sees it, what it receives. After it is restored the repeated message arrives.
#[test]
fn a_link_that_is_cut_by_order_carries_nothing_until_it_is_restored() {
    let grid = Grid::start(&[2, 8], |config| {
        config.strategy = "local".to_string();
        config.options.retry = Some(Span::from_secs(50));
        config.network = Model::constant(Span::from_secs(20));
    });
    let [one, two] = &grid.clients[..] else { panic!() };
    let to = |site| LinksOrder { cut_to: [SiteId(site)].into(), ..LinksOrder::default() };
    let from = |site| LinksOrder { cut_from: [SiteId(site)].into(), ..LinksOrder::default() };
    for (client, order) in [(one, to(1)), (one, from(3)), (two, to(0))] {
        let refused = client.links(&order).unwrap_err().to_string();
        assert!(refused.contains("422") && refused.contains("not another site"), "{refused}");
    }
    let lost_to_cuts = |client: &NodeClient, way: &str| {
        let page = client.metrics().unwrap();
        let total = page.lines().find(|line| {
            line.starts_with("stealgrid_messages_cut_total") && line.contains(&format!("way=\"{way}\""))
        });
        total.unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let wait_for = |client: &NodeClient, way: &str, least: u64| {
        until(&format!("something is lost {way} site {}", client.status().unwrap().site), || {
            lost_to_cuts(client, way) >= least
        });
    };
    one.jobs(&[job(7, 1, 6, 20)]).unwrap();
    grid.start_clock_by(SLOW, 0);
    // The message is under way for 20 s.
    until("a message is under way", || one.status().unwrap().outstanding.delayed > 0);

    one.links(&to(2)).unwrap();

    let status = one.status().unwrap();
    assert_eq!(lost_to_cuts(one, "to"), 1, "what was under way is lost");
    assert_eq!((status.outstanding.delayed, status.outstanding.leaving), (0, 1), "and not forgotten");
    let leaving = "stealgrid_jobs{class=\"H\",state=\"leaving\",site=\"site1\"} 1";
    assert!(one.metrics().unwrap().lines().any(|line| line == leaving), "{leaving}");
    assert!(status.links[0].cut_to && !status.links[0].cut_from && status.links[0].connected);
    let stood = grid.pause().into_iter().max().unwrap();
    grid.start_clock_by(FACTOR, stood);
    wait_for(one, "to", 2);
    two.links(&from(1)).unwrap();
    one.links(&LinksOrder::default()).unwrap();
    wait_for(two, "from", 1);
    assert!(two.status().unwrap().links[0].cut_from);
    assert_eq!(two.status().unwrap().completed, 0);
    two.links(&LinksOrder::default()).unwrap();
    grid.until_quiet(1);
    let events = grid.events();
    grid.stop();

    let count = |wanted: fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count();
    assert!(count(|kind| matches!(kind, EventKind::Lost { to: SiteId(2), .. })) >= 2);
    assert_eq!(count(|kind| matches!(kind, EventKind::Completed { .. })), 1);
}

/// While the clocks stand still nothing ends and nothing is submitted; then everything goes on, and no job was shorter.
#[test]
fn trace_time_that_is_stopped_takes_everything_with_it() {
    let grid = Grid::start(&[4, 8], |_| {});
    let client = &grid.clients[0];
    let unready = client.pause().unwrap_err().to_string();
    assert!(unready.contains("409") && unready.contains("does not run"), "{unready}");
    // Each runs for 3 s of the wall clock.
    client.jobs(&[job(1, 1, 2, 300), job(2, 200, 2, 300)]).unwrap();
    grid.start_clock();
    until("a job runs", || client.status().unwrap().outstanding.running > 0);

    let stood = grid.pause();

    // What has nothing to do with time, as the round trip to another site, may change.
    let still = || {
        let Status { phase, trace_time_us, submitted, completed, events, outstanding, .. } =
            client.status().unwrap();
        (phase, trace_time_us, submitted, completed, events, outstanding.running, outstanding.arrivals)
    };
    let seen = still();
    assert_eq!((seen.0, seen.1), (Phase::Armed, stood[0]));
    assert!(seen.5 > 0, "a job is stopped while it runs: {seen:?}");
    // 700 s of trace time, if it went on.
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(still(), seen);
    let order = grid.start_clock_by(FACTOR, stood.into_iter().max().unwrap());
    assert!(client.start(&order).unwrap_err().to_string().contains("started before"));
    grid.until_quiet(2);
    let events = grid.events();
    grid.stop();

    let at = |id: u64, wanted: fn(&EventKind) -> Option<JobId>| {
        events.iter().find(|event| wanted(&event.kind) == Some(JobId(id))).unwrap().at
    };
    let started = |kind: &EventKind| match kind {
        EventKind::Started { job, .. } => Some(*job),
        _ => None,
    };
    let completed = |kind: &EventKind| match kind {
        EventKind::Completed { job, .. } => Some(*job),
        _ => None,
    };
    for id in [1, 2] {
        let took = at(id, completed).since(at(id, started));
        // A second of the wall clock late is 100 s: a slow machine may be late, and not by what was stopped.
        assert!((300..900).contains(&(took.as_micros() / 1_000_000)), "job {id} took {took} s");
    }
}

#[test]
fn nothing_happens_before_the_clock_starts() {
    let grid = Grid::start(&[4], |_| {});
    let client = &grid.clients[0];
    client.jobs(&[job(1, 0, 1, 1)]).unwrap();
    assert_eq!(client.status().unwrap().phase, Phase::Ready);

    let in_an_hour =
        StartOrder { unix_micros: unix_micros() + 3_600_000_000, factor: 1.0, trace_origin_us: -5 };
    client.start(&in_an_hour).unwrap();

    let status = client.status().unwrap();
    assert_eq!((status.phase, status.trace_time_us, status.events), (Phase::Armed, -5, 0));
    assert_eq!(status.outstanding.arrivals, 1);
    grid.stop();
}

/// One job in virtual time: submitted at site 1, routed home to site 2 over libp2p, run there.
#[test]
fn nodes_in_lockstep_do_what_is_ordered_and_answer_everybody_else() {
    let grid = Grid::start(&[2, 8], |config| config.strategy = "local".to_string());
    let [mut first, mut second] = [0, 1].map(|index| grid.lockstep(index));
    let job = job(7, 1, 6, 20);

    let sent = submit(&mut first, 1, &[job]);
    let posted = sent[0].outputs.iter().find_map(|output| match output {
        Output::Send { to: SiteId(2), message } => Some(*message),
        _ => None,
    });
    let Some(Posted { number: 1, wakes: true, .. }) = posted else { panic!("{sent:?}") };
    tell(&mut first, 1, vec![Input::Turn]);
    let arrived = tell(&mut second, 4, vec![due(1), Input::Turn]);
    assert!(arrived[1].outputs.contains(&Output::Start(job.spec)), "{arrived:?}");
    tell(&mut second, 24, vec![Input::Completed(JobId(7)), Input::Turn]);

    let status = grid.clients[1].status().unwrap();
    assert_eq!((status.phase, status.trace_time_us, status.completed), (Phase::Running, 24_000_000, 1));
    let measured = status.links[0].measured.unwrap();
    assert_eq!((measured.count, measured.mean_us), (1, 3_000_000), "the delay is the coordinator's");
    assert!(grid.clients[1].metrics().unwrap().contains("stealgrid_jobs_finished_total{site=\"site2\"} 1"));
    let clock = StartOrder { unix_micros: unix_micros(), factor: 1.0, trace_origin_us: 0 };
    for refused in [grid.clients[0].start(&clock), grid.clients[0].jobs(&[job])] {
        assert!(refused.unwrap_err().to_string().contains("runs in lockstep"));
    }
    let again = Client::connect(grid.clients[0].http(), Some(&grid.token), PATIENCE).unwrap_err().to_string();
    assert!(again.contains("a node serves one run"), "{again}");
    let times: Vec<i64> = grid.events().iter().map(|event| event.at.as_micros() / 1_000_000).collect();
    assert!(times.first() == Some(&1) && times.last() == Some(&24), "{times:?}");
    drop((first, second));
    grid.stop();
}

#[test]
fn a_message_that_does_not_come_is_missed_by_name() {
    let grid = Grid::start(&[2, 8], |_| {});
    let mut client = grid.lockstep(1);
    let inputs = vec![due(9)];
    let reason = refused(&mut client, &Order::Tell { now: Time::ZERO, notes: Vec::new(), inputs });
    assert!(reason.contains("message 9 of site site1 did not arrive within 300ms"), "{reason}");
    grid.stop();
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let order = |seconds, input| Order::Tell {
        now: Time::from_secs(seconds),
        notes: Vec::new(),
        inputs: vec![input],
    };
    let wide = job(1, 0, 9, 1);
    let cases = [
        (order(5, Input::Completed(JobId(1))), "job 1 is said to end at 5"),
        (order(5, Input::Submitted(wide.spec)), "no site has the processors of job 1"),
        (order(5, Input::Submitted(job(2, 0, 1, 1).spec)), "no note says how long it runs"),
        (order(-1, Input::Turn), "time would run backwards"),
    ];
    for (order, expected) in cases {
        let grid = Grid::start(&[2, 8], |_| {});
        let mut client = grid.lockstep(1);
        tell(&mut client, 0, vec![Input::Turn]);
        let reason = refused(&mut client, &order);
        assert!(reason.contains(expected), "{reason}");
        let later = refused(&mut client, &Order::Tell { now: Time::ZERO, notes: Vec::new(), inputs: vec![] });
        assert_eq!(later, reason, "nothing is done after an order that was not");
        grid.stop();
    }
}

/// What the modelled network loses never reaches the peer, and its sender writes it down.
#[test]
fn a_message_that_is_lost_by_order_is_dropped_and_one_that_is_repeated_comes_twice() {
    let grid = Grid::start(&[2, 8], |config| config.strategy = "local".to_string());
    let [mut first, mut second] = [0, 1].map(|index| grid.lockstep(index));
    submit(&mut first, 1, &[1, 2].map(|id| job(id, 1, 6, 20)));
    let copies = |number, copies| Note::Copies { from: SiteId(1), number, copies };
    let notes = vec![copies(1, 0), copies(2, 2)];
    let arrived =
        give(&mut second, Order::Tell { now: Time::from_secs(2), notes, inputs: vec![due(2), due(2)] });
    assert_eq!(arrived.len(), 2);
    let lost = Note::Lost { at: Time::from_secs(1), to: SiteId(2), kind: MessageKind::Route };
    give(&mut first, Order::Tell { now: Time::from_secs(3), notes: vec![lost], inputs: vec![Input::Turn] });

    let events = grid.events();
    let count = |wanted: fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::Received { .. })), 2, "one message, twice");
    assert_eq!(count(|kind| matches!(kind, EventKind::Lost { .. })), 1);
    assert_eq!(grid.clients[1].status().unwrap().outstanding.delayed, 0, "nothing is kept");
    let first_due = refused(
        &mut second,
        &Order::Tell { now: Time::from_secs(4), notes: Vec::new(), inputs: vec![due(1)] },
    );
    assert!(first_due.contains("message 1 of site site1 did not arrive"), "{first_due}");
    grid.stop();
}

#[test]
fn the_metrics_page_passes_a_scrape() {
    let grid = Grid::start(&[2, 8], |_| {});
    let url = format!("http://{}/metrics", grid.clients[0].http());

    let mut answer = ureq::get(&url).call().unwrap();
    let content_type = answer.headers()["content-type"].to_str().unwrap().to_string();
    let page = answer.body_mut().read_to_string().unwrap();
    grid.stop();

    assert_eq!(content_type, "text/plain; version=0.0.4");
    let mut helped = BTreeSet::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped.insert(rest.split(' ').next().unwrap().to_string());
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let known = helped.contains(name) || family.is_some_and(|family| helped.contains(family));
            assert!(known, "no help for {line}");
            assert!(line.contains("site=\"site1\""), "{line}");
            line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        }
    }
    assert!(helped.contains("stealgrid_processors"), "{page}");
}

#[test]
fn refused_orders_say_why_in_json() {
    let grid = Grid::start(&[2, 8], |_| {});
    let client = &grid.clients[0];

    let too_wide = client.jobs(&[job(1, 0, 9, 1)]).unwrap_err().to_string();
    assert!(too_wide.contains("422") && too_wide.contains("the widest site has 8"), "{too_wide}");
    let stranger = PeerAddress { site: SiteId(9), address: "/ip4/127.0.0.1/tcp/1".to_string() };
    let stranger = client.connect(&[stranger]).unwrap_err().to_string();
    assert!(stranger.contains("not another site of this run"), "{stranger}");
    grid.start_clock();
    let again = StartOrder { unix_micros: 0, factor: 1.0, trace_origin_us: 0 };
    let again = client.start(&again).unwrap_err().to_string();
    assert!(again.contains("409") && again.contains("started before"), "{again}");

    let http = client.http();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let bearer = bearer(&grid.folder);
    let start = agent.post(format!("http://{http}/control/start")).header("authorization", &bearer);
    let mut answer = start.send_json("soon").unwrap();
    assert_eq!(answer.status(), 422);
    let reason: node::control::api::Failure = answer.body_mut().read_json().unwrap();
    assert!(reason.reason.contains("expected struct StartOrder"), "{}", reason.reason);
    let events = agent.get(format!("http://{http}/control/events?from=x")).header("authorization", &bearer);
    let answer = events.call().unwrap();
    assert_eq!(answer.status(), 400);
    let mut answer = agent.get(format!("http://{http}/nowhere")).call().unwrap();
    assert_eq!(answer.status(), 404);
    assert!(answer.body_mut().read_to_string().unwrap().contains("/status"));
    grid.stop();
}

#[test]
fn health_and_readiness_are_two_things() {
    let mut configs = vec![config(1, &[2, 8])];
    let (_folder, token) = with_token(&mut configs);
    let (ready, nodes) = start_nodes(configs);
    let http = ready[0].http.clone();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();

    assert_eq!(agent.get(format!("http://{http}/healthz")).call().unwrap().status(), 200);
    let mut answer = agent.get(format!("http://{http}/readyz")).call().unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.body_mut().read_to_string().unwrap(), r#"{"reason":"not connected to site2"}"#);

    NodeClient::new(&http, Some(token)).stop().unwrap();
    nodes.join().unwrap();
}

/// A grid of nodes as tasks of one thread, with a client of each.
struct Grid {
    nodes: JoinHandle<()>,
    clients: Vec<NodeClient>,
    token: Token,
    folder: tempfile::TempDir,
}

impl Grid {
    /// Starts nodes and waits until all are connected.
    fn start(processors: &[u32], change: impl Fn(&mut NodeConfig)) -> Grid {
        let mut configs: Vec<NodeConfig> =
            (1..=processors.len()).map(|site| config(site as u32, processors)).collect();
        configs.iter_mut().for_each(change);
        let (folder, token) = with_token(&mut configs);
        let (ready, nodes) = start_nodes(configs);
        let client = |ready: &ReadyLine| NodeClient::new(&ready.http, Some(token.clone()));
        let clients: Vec<NodeClient> = ready.iter().map(client).collect();
        for (client, own) in clients.iter().zip(&ready) {
            let others = ready.iter().filter(|other| other.site != own.site);
            let others: Vec<PeerAddress> = others
                .map(|other| PeerAddress { site: other.site, address: other.listen[0].clone() })
                .collect();
            client.connect(&others).unwrap();
        }
        for client in &clients {
            client.wait_ready(PATIENCE).unwrap();
        }
        Grid { nodes, clients, token, folder }
    }

    fn start_clock(&self) {
        self.start_clock_by(FACTOR, 0);
    }

    /// Lets trace time go on from an instant, by this factor.
    fn start_clock_by(&self, factor: f64, trace_origin_us: i64) -> StartOrder {
        let order = StartOrder { unix_micros: unix_micros() + 50_000, factor, trace_origin_us };
        for client in &self.clients {
            client.start(&order).unwrap();
        }
        order
    }

    /// Stops trace time: where it stands at each site, in microseconds.
    fn pause(&self) -> Vec<i64> {
        self.clients.iter().map(|client| client.pause().unwrap().trace_origin_us).collect()
    }

    /// A connection for orders to a node that waits for messages 300 ms.
    fn lockstep(&self, index: usize) -> Client {
        let mut client = Client::connect(self.clients[index].http(), Some(&self.token), PATIENCE).unwrap();
        let terms = Terms { message_events: true, patience: Duration::from_millis(300) };
        client.send(&Order::Begin(terms)).unwrap();
        assert_eq!(client.receive(PATIENCE, &mut || true).unwrap(), Reply::Begun);
        client
    }

    /// Waits until all jobs have ended and nothing is outstanding anywhere, twice in a row without an event between.
    fn until_quiet(&self, jobs: u64) -> Vec<Status> {
        let deadline = std::time::Instant::now() + PATIENCE;
        let mut before: Option<Vec<u64>> = None;
        loop {
            let statuses: Vec<Status> = self.clients.iter().map(|client| client.status().unwrap()).collect();
            let completed: u64 = statuses.iter().map(|status| status.completed).sum();
            let quiet = completed == jobs && statuses.iter().all(Status::is_quiet);
            let events = statuses.iter().map(|status| status.events).collect();
            if quiet && before.as_ref() == Some(&events) {
                return statuses;
            }
            before = quiet.then_some(events);
            assert!(std::time::Instant::now() < deadline, "{completed} of {jobs} jobs ended: {statuses:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// All events in the order of time; pages on purpose small.
    fn events(&self) -> Vec<Event> {
        let mut all = Vec::new();
        for client in &self.clients {
            let mut from = 0;
            loop {
                let page = client.events(from, 7).unwrap();
                if page.is_empty() {
                    break;
                }
                from += page.len() as u64;
                all.extend(page);
            }
        }
        all.sort_by_key(|event| event.at);
        all
    }

    fn stop(self) {
        for client in &self.clients {
            client.stop().unwrap();
        }
        self.nodes.join().unwrap();
    }
}

/// Waits until this holds.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "it does not happen that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Draws a token for all of them, and the folder that it is in.
fn with_token(configs: &mut [NodeConfig]) -> (tempfile::TempDir, Token) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let token = Token::random();
    token.write_new(&path).unwrap();
    for config in configs {
        config.control_token = Some(path.clone());
    }
    (folder, token)
}

/// The header that shows a token.
fn bearer(folder: &tempfile::TempDir) -> String {
    format!("Bearer {}", std::fs::read_to_string(folder.path().join("token")).unwrap().trim())
}

/// Starts nodes on a thread, which ends when all of them have been stopped.
fn start_nodes(configs: Vec<NodeConfig>) -> (Vec<ReadyLine>, JoinHandle<()>) {
    let (sender, ready) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut nodes = Vec::new();
            for config in configs {
                nodes.push(Node::start(config).await.unwrap());
            }
            sender.send(nodes.iter().map(|node| node.ready_line().clone()).collect()).unwrap();
            for node in nodes {
                node.wait().await.unwrap();
            }
        });
    });
    (ready.recv().expect("the nodes start"), thread)
}

/// Tells a node things at an instant, in seconds.
fn tell(client: &mut Client, now: i64, inputs: Vec<Input<Due>>) -> Vec<Answer> {
    give(client, Order::Tell { now: Time::from_secs(now), notes: Vec::new(), inputs })
}

fn submit(client: &mut Client, now: i64, jobs: &[TimedJob]) -> Vec<Answer> {
    let run_time = |job: &TimedJob| Note::RunTime { job: job.spec.id, run_time: job.run_time };
    let notes = jobs.iter().map(run_time).collect();
    let inputs = jobs.iter().map(|job| Input::Submitted(job.spec)).collect();
    give(client, Order::Tell { now: Time::from_secs(now), notes, inputs })
}

/// A message of site 1 is due.
fn due(number: u64) -> Input<Due> {
    Input::Message { from: SiteId(1), message: Due { number } }
}

fn give(client: &mut Client, order: Order) -> Vec<Answer> {
    client.send(&order).unwrap();
    match client.receive(PATIENCE, &mut || true).unwrap() {
        Reply::Told(answers) => answers,
        other => panic!("{order:?}: {other:?}"),
    }
}

/// The reason why a node does not do what is ordered.
fn refused(client: &mut Client, order: &Order) -> String {
    client.send(order).unwrap();
    match client.receive(PATIENCE, &mut || true).unwrap() {
        Reply::Failed(reason) => reason,
        other => panic!("{order:?}: {other:?}"),
    }
}

fn config(site: u32, processors: &[u32]) -> NodeConfig {
    let entry = |(index, &processors)| SiteEntry::new(format!("site{}", index + 1), processors);
    let mut config = NodeConfig::new(SiteId(site), processors.iter().enumerate().map(entry).collect());
    config.options.retry = Some(Span::from_secs(200));
    config
}

fn job(id: u64, submit: i64, processors: u32, run_time: i64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors,
        requested: Span::from_secs(2 * run_time),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(run_time) }
}

fn unix_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}
