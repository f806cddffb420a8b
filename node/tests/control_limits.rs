//! The limits of the control interface, on real processes: who crowds it, sends too much or too slowly is refused and
//! counted, and who has the token goes on.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use node::NodeConfig;
use node::config::SiteEntry;
use node::control::Token;
use node::limits::Limits;
use operation::spawn::SpawnOrder;
use operation::{NodeClient, NodeProcess};
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

use crate::PROGRAM;

/// Ample for what takes seconds; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest body, as docs/OPERATIONS.md has it.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// As many idle connections as there are places, and more, with and without the token: everybody is answered.
#[test]
fn idle_connections_shut_nobody_out() {
    let limits = Limits { control_connections: 8, ..Limits::default() };
    let node = Target::start(limits.clone());
    let coordinator = node.process.client();
    coordinator.status().unwrap();
    // Some say nothing, some half of a request, and some have been answered and stay.
    let said = ["", "GET /healthz HTTP/1.1\r\nhost", "GET /healthz HTTP/1.1\r\nhost: node\r\n\r\n"];
    let idle = |count: usize| -> Vec<TcpStream> {
        let one = |text: &&str| {
            let mut stream = node.connect();
            write!(stream, "{text}").unwrap();
            if text.ends_with("\r\n\r\n") {
                assert_eq!(read(&mut stream, 12), "HTTP/1.1 200");
            }
            stream
        };
        said.iter().cycle().take(count).map(one).collect()
    };
    let strangers = idle(limits.control_connections);

    for page in ["/healthz", "/metrics"] {
        assert!(ask(&node, page).starts_with("HTTP/1.1 200 "), "{page}");
    }
    node.process.client().jobs(&[job(1)]).unwrap();
    let more = idle(2 * limits.control_connections);
    assert!(ask(&node, "/healthz").starts_with("HTTP/1.1 200 "));
    coordinator.jobs(&[job(2)]).unwrap();
    assert_eq!(coordinator.status().unwrap().outstanding.arrivals, 2);

    assert_eq!(rest(strangers.into_iter().next().unwrap()), "", "who was idle longest is gone");
    let closed = hits(&coordinator, "control_connections");
    assert!(closed >= 2 * limits.control_connections as u64, "{closed} were closed");
    drop(more);

    // Those who know the token hold no places for ever, either.
    let trusted: Vec<TcpStream> = (0..limits.control_connections)
        .map(|_| {
            let mut stream = node.connect();
            write!(stream, "{}[]", node.order(2)).unwrap();
            assert_eq!(read(&mut stream, 12), "HTTP/1.1 204");
            stream
        })
        .collect();
    assert!(ask(&node, "/healthz").starts_with("HTTP/1.1 200 "));
    node.process.client().jobs(&[job(3)]).unwrap();
    drop(trusted);
    node.stop();
}

/// A connection whose request is being worked on keeps its place; if all are, the newcomer gets none.
#[test]
fn connections_at_work_stay_and_those_beyond_the_limit_are_closed_and_counted() {
    let node = Target::start(Limits { control_connections: 2, ..Limits::default() });
    let mut at_work: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = node.connect();
            let waits = "\r\nexpect: 100-continue\r\n\r\n";
            write!(stream, "{}", node.order(2).replace("\r\n\r\n", waits)).unwrap();
            // Said when the body is waited for.
            assert_eq!(read(&mut stream, 25), "HTTP/1.1 100 Continue\r\n\r\n");
            stream
        })
        .collect();
    assert_eq!(rest(node.connect()), "", "the third is closed without a word");

    for stream in &mut at_work {
        write!(stream, "[]").unwrap();
        assert_eq!(read(stream, 12), "HTTP/1.1 204");
    }
    drop(at_work);
    assert!(hits(&node.process.client(), "control_connections") >= 1);
    node.stop();
}

#[test]
fn a_body_beyond_the_limit_is_refused_and_counted() {
    let node = Target::start(Limits::default());
    let mut stream = node.connect();
    // As much as is needed to see that it is too long: what nobody reads would reset the connection.
    write!(stream, "{}", node.order(BODY_BYTES_MAX + 1000)).unwrap();
    stream.write_all(&vec![b' '; BODY_BYTES_MAX + 1]).unwrap();

    let answer = rest(stream);

    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    let client = node.process.client();
    assert_eq!(hits(&client, "control_body"), 1);
    client.jobs(&[job(1)]).unwrap();
    assert_eq!(client.status().unwrap().outstanding.arrivals, 1);
    node.stop();
}

/// A connection is held by who sends a request byte by byte, but not for long, and never by a stranger.
#[test]
fn requests_that_take_too_long_are_given_up_and_counted() {
    let node = Target::start(Limits { control_request_secs: 1, ..Limits::default() });
    let slow = |text: &str| {
        let mut stream = node.connect();
        write!(stream, "{text}").unwrap();
        stream
    };
    let (head, body) = (slow("POST /control/jobs HTTP/1.1\r\nhost: n"), slow(&(node.order(100) + "[")));
    let stranger = slow("POST /control/jobs HTTP/1.1\r\nhost: node\r\ncontent-length: 100\r\n\r\n[");
    let client = node.process.client();
    client.jobs(&[job(1)]).unwrap();

    let answer = rest(stranger);
    assert!(answer.starts_with("HTTP/1.1 401 "), "its body is not waited for: {answer}");
    let answer = rest(body);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("did not arrive within 1s"), "{answer}");
    let answer = rest(head);
    assert!(!answer.contains(" 20"), "nothing was done: {answer}");

    let client = node.process.client();
    assert_eq!(hits(&client, "control_time"), 1);
    assert_eq!(client.status().unwrap().outstanding.arrivals, 1);
    node.stop();
}

#[test]
fn jobs_beyond_the_limit_are_answered_busy_and_counted() {
    let node = Target::start(Limits { jobs_waiting: 3, ..Limits::default() });
    let client = node.process.client();
    let jobs: Vec<TimedJob> = (1..=5).map(job).collect();

    assert_eq!(client.offer(&jobs).unwrap(), 3, "the others stay with who submits them");

    assert!(hits(&client, "jobs") >= 1);
    assert_eq!(client.status().unwrap().outstanding.arrivals, 3);
    node.stop();
}

/// A node of a grid of one, with a token.
struct Target {
    process: NodeProcess,
    token: String,
    _folder: tempfile::TempDir,
}

impl Target {
    fn start(limits: Limits) -> Target {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        Token::random().write_new(&path).unwrap();
        let token = std::fs::read_to_string(&path).unwrap().trim().to_string();
        let grid = vec![SiteEntry::new("site1", 4)];
        let config = NodeConfig { control_token: Some(path), limits, ..NodeConfig::new(SiteId(1), grid) };
        let folder_path = folder.path().to_path_buf();
        let order = SpawnOrder { program: PROGRAM.into(), arguments: Vec::new(), folder: folder_path };
        let process = NodeProcess::spawn(&order, &config).unwrap();
        Target { process, token, _folder: folder }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.process.ready_line().http).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The headers of a request that hands over jobs, with a body of so many bytes.
    fn order(&self, bytes: usize) -> String {
        format!(
            "POST /control/jobs HTTP/1.1\r\nhost: node\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {bytes}\r\n\r\n",
            self.token
        )
    }

    fn stop(self) {
        assert!(!self.process.stop(PATIENCE).unwrap().unwrap().is_failure());
    }
}

/// The next so many bytes.
fn read(stream: &mut TcpStream, count: usize) -> String {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// What the node answers to a request without the token, over a connection of its own.
fn ask(node: &Target, page: &str) -> String {
    let mut stream = node.connect();
    write!(stream, "GET {page} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n").unwrap();
    rest(stream)
}

/// What comes before the node closes the connection.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    String::from_utf8(bytes).unwrap()
}

fn hits(client: &NodeClient, limit: &str) -> u64 {
    let status = client.status().unwrap();
    status.limits_hit.get(limit).copied().unwrap_or_default()
}

fn job(id: u64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(1),
        processors: 2,
        requested: Span::from_secs(60),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(10) }
}
