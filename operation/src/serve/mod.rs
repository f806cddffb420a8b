//! What a coordinator serves over HTTP: the page of a run, while it lasts or again later, registration of nodes, and
//! where Prometheus finds them.
//!
//! | request | for |
//! |---|---|
//! | `GET /` | the page, with its scripts and styles |
//! | `GET /about` | what does not change: sites, strategy ([`live::About`]); 204 until it is known |
//! | `GET /live` | server-sent events: `frame`, what has changed ([`live::Frame`]), and `links`; 409 of a run that has ended |
//! | `GET /log?from=N` | frames of a run that has ended, and how much of its log was read ([`replay`]); 409 of one that lasts |
//! | `GET /starts?site=N` | when the jobs that wait at a site should start ([`live::Starts`]), planned when asked; 409 without plans |
//! | `POST /orders/NAME` | an order to the run, for those who show the token ([`orders`]); answers [`outputs::orders::Given`] |
//! | `GET /healthz` | 200 while the coordinator is there |
//! | `GET /metrics` | the run in numbers, for Prometheus ([`metrics`]) |
//! | `GET /sd` | targets for Prometheus (`http_sd_config`), labelled by site and run |
//! | `POST /register`, `/register/ready` | nodes that come by themselves, see [`node::registration`] |

mod brokers;
pub mod command;
pub mod door;
pub mod live;
pub mod metrics;
pub mod orders;
pub mod page;
mod processors;
pub mod replay;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use node::control::api::ReadyLine;
use node::http::Turned;
use node::http::hosts::Hosts;
use serde::Serialize;
use tokio::sync::Semaphore;

use self::door::{Door, connections_max};
pub use self::door::{Patience, Place, opened};
use self::live::Live;
use self::orders::Desk;
use self::replay::Replay;

/// Most connections at once: several for each page that looks on, registering nodes, and Prometheus.
pub const CONNECTIONS_MAX: usize = 256;
/// Most pages that look on at once, and not more than half of the connections; more are answered 503.
pub const LISTENERS_MAX: usize = 64;
/// Longest body of a request; those of nodes that register may be longer ([`crate::registration::BODY_BYTES_MAX`]).
pub const BODY_BYTES_MAX: usize = 4096;
/// For requests as at nodes.
pub const PATIENCE: Patience = Patience { request: Duration::from_secs(30), unread: Duration::from_secs(30) };

/// What is shown of a run.
#[derive(Debug)]
pub struct Shown {
    targets: Mutex<Targets>,
    live: Mutex<Option<Live>>,
    /// If the run has ended and is shown again.
    replay: Option<Arc<Replay>>,
    /// Where orders are given, if they may be.
    desk: Option<Arc<Desk>>,
    hosts: Arc<Hosts>,
    turned: Arc<Turned>,
    listeners: Semaphore,
    /// How many pages were too many.
    pages_refused: AtomicU64,
    /// Whether nobody is told anything any more.
    ended: AtomicBool,
}

/// Where Prometheus finds nodes.
#[derive(Debug)]
enum Targets {
    Known(Vec<Target>),
    /// Those of this run that have registered and are up.
    Registering(String, Arc<crate::registration::Desk>),
}

/// A node as Prometheus is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    targets: [String; 1],
    labels: TargetLabels,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct TargetLabels {
    run: String,
    site: String,
}

impl Target {
    /// The metrics of a site of a run.
    pub fn new(run: &str, site: &str, address: &str) -> Target {
        Target {
            targets: [address.to_string()],
            labels: TargetLabels { run: run.to_string(), site: site.to_string() },
        }
    }

    /// A node that is up.
    pub fn of(run: &str, ready: &ReadyLine) -> Target {
        Target::new(run, &ready.name, ready.metrics.as_ref().unwrap_or(&ready.http))
    }
}

impl Shown {
    fn new(replay: Option<Arc<Replay>>, desk: Option<Arc<Desk>>, hosts: &Arc<Hosts>) -> Shown {
        let (targets, live) = (Mutex::new(Targets::Known(Vec::new())), Mutex::default());
        Shown {
            targets,
            live,
            replay,
            desk,
            hosts: Arc::clone(hosts),
            turned: Arc::default(),
            listeners: Semaphore::new(LISTENERS_MAX.min(connections_max() / 2)),
            pages_refused: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// These are the nodes from now on.
    pub fn set_targets(&self, targets: Vec<Target>) {
        *self.targets.lock().unwrap_or_else(PoisonError::into_inner) = Targets::Known(targets);
    }

    /// The nodes of this run are those that are up at this desk, until it is said which they are.
    pub fn look_for_nodes(&self, run: &str, desk: Arc<crate::registration::Desk>) {
        let registering = Targets::Registering(run.to_string(), desk);
        *self.targets.lock().unwrap_or_else(PoisonError::into_inner) = registering;
    }

    /// This run is shown from now on.
    pub fn set_live(&self, live: Live) {
        *self.live() = Some(live);
    }

    /// Changes what is shown, if a run is.
    pub fn change(&self, change: impl FnOnce(&mut Live)) {
        if let Some(live) = self.live().as_mut() {
            change(live);
        }
    }

    fn live(&self) -> MutexGuard<'_, Option<Live>> {
        // A half changed picture is better than none.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server of the page of a run, on a thread of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Server {
    door: Door,
    /// What it shows.
    pub shown: Arc<Shown>,
}

impl Server {
    /// Listens, and serves from then on; `more` beside its own pages, and orders go to the desk.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn start(place: &Place, more: Router, desk: Option<Arc<Desk>>) -> anyhow::Result<Server> {
        Server::of(place, more, Shown::new(None, desk, place.hosts()), PATIENCE)
    }

    /// The same for a run that has ended and is shown again.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn replaying(place: &Place, replay: Arc<Replay>) -> anyhow::Result<Server> {
        Server::of(place, Router::new(), Shown::new(Some(replay), None, place.hosts()), PATIENCE)
    }

    fn of(place: &Place, more: Router, shown: Shown, patience: Patience) -> anyhow::Result<Server> {
        let shown = Arc::new(shown);
        let pages = page::routes()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/sd", get(targets))
            .route("/metrics", get(scraped));
        // Orders and registration need a token, which no page of somebody else has; orders look at the name themselves.
        let router = place
            .hosts()
            .guard(pages)
            .merge(orders::routes(&shown))
            .with_state(Arc::clone(&shown))
            .merge(more);
        let door = Door::open(place, router, Arc::clone(&shown.turned), patience)?;
        Ok(Server { door, shown })
    }

    /// Somebody looks at orders from now on.
    pub fn open_desk(&self) {
        self.shown.desk.iter().for_each(|desk| desk.open());
    }

    /// Nobody looks at orders any more.
    pub fn close_desk(&self) {
        self.shown.desk.iter().for_each(|desk| desk.close());
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.door.address()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Pages that look on would keep it for as long as they are open; the door is closed after this.
        self.shown.ended.store(true, Ordering::Relaxed);
    }
}

async fn scraped(State(shown): State<Arc<Shown>>) -> Response {
    let requests = metrics::Requests::of(&shown);
    metrics::answer(shown.live().as_ref(), &requests)
}

async fn targets(State(shown): State<Arc<Shown>>) -> Json<Vec<Target>> {
    Json(match &*shown.targets.lock().unwrap_or_else(PoisonError::into_inner) {
        Targets::Known(targets) => targets.clone(),
        Targets::Registering(run, desk) => desk.up_now().iter().map(|ready| Target::of(run, ready)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Instant;

    use futures::executor::block_on;
    use node::control::Token;
    use scheduler::event::{BeginCause, EndCause};
    use scheduler::{Event, EventKind, Grid, Threshold, Time};

    use super::live::{About, AboutSite};
    use super::*;

    /// What is waited for in these tests is over soon.
    const SHORT: Duration = Duration::from_millis(200);
    /// What must not be what ends a wait.
    const FOR_EVER: Duration = Duration::from_secs(3600);
    /// Ample for what takes seconds; reached only by a failing test.
    const AMPLE: Duration = Duration::from_secs(300);

    /// A page that looks on, and how it was answered.
    fn look_on(server: &Server) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(stream, "GET /live HTTP/1.1\r\nhost: here\r\n\r\n").unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        (stream, String::from_utf8_lossy(&start).into_owned())
    }

    fn here() -> Place {
        Place::new("127.0.0.1:0", &[])
    }

    fn get(server: &Server, path: &str) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn prometheus_is_told_where_the_nodes_are() {
        let server = Server::start(&here(), Router::new(), None).unwrap();
        assert!(get(&server, "/healthz").ends_with("ok\n"));
        assert!(get(&server, "/sd").ends_with("[]"), "no node is up yet");

        server.shown.set_targets(vec![Target::new("quickstart", "site1", "10.0.0.7:9100")]);

        let answer = get(&server, "/sd");
        assert!(answer.contains("content-type: application/json"), "{answer}");
        let expected = r#"[{"targets":["10.0.0.7:9100"],"labels":{"run":"quickstart","site":"site1"}}]"#;
        assert!(answer.ends_with(expected), "{answer}");
    }

    #[test]
    fn pages_that_are_too_many_are_refused_and_counted() {
        let server = Server::start(&here(), Router::new(), None).unwrap();
        let pages: Vec<_> = (0..LISTENERS_MAX).map(|_| look_on(&server)).collect();
        assert!(pages.iter().all(|(_, start)| start == "HTTP/1.1 200"));
        let refused = || server.shown.pages_refused.load(Ordering::Relaxed);
        assert_eq!(refused(), 0);
        assert_eq!(look_on(&server).1, "HTTP/1.1 503");
        assert_eq!(refused(), 1);
    }

    /// They hold all places; then each loses its own.
    #[test]
    fn pages_that_never_read_lose_their_places() {
        let grid = Grid::of_sizes(&[4; 4000]).unwrap();
        let shown = Shown::new(None, None, here().hosts());
        let patience = Patience { unread: SHORT, ..PATIENCE };
        let server = Server::of(&here(), Router::new(), shown, patience).unwrap();
        let about = About { sites: AboutSite::all(&grid), ..About::default() };
        server.shown.set_live(Live::new(about, &grid, Threshold::HALF, &[]));
        let _pages: Vec<_> = (0..LISTENERS_MAX).map(|_| look_on(&server)).collect();
        let deadline = Instant::now() + AMPLE;
        let mut seconds = 0;
        while server.shown.turned.unread() < LISTENERS_MAX as u64 {
            assert!(Instant::now() < deadline, "{} lost it", server.shown.turned.unread());
            // Something to tell of all sites, which soon is more than the buffers take.
            seconds += 1;
            server.shown.change(|live| {
                for site in grid.sites() {
                    let kind = match seconds % 2 {
                        0 => EventKind::Begun { how: BeginCause::Restart },
                        _ => EventKind::Ended { how: EndCause::Crash },
                    };
                    live.observe(&Event { at: Time::from_secs(seconds), site: site.id, kind });
                }
            });
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(look_on(&server).1, "HTTP/1.1 200");
        assert!(get(&server, "/metrics").contains("{reason=\"unread\",run="), "it is not counted");
    }

    /// Everything that is answered to a request that goes no further than this.
    fn answer_to(server: &Server, begun: &str) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(AMPLE)).unwrap();
        // On a busy machine it may be closed before this arrives.
        let _ = stream.write_all(begun.as_bytes());
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("{begun:?} is waited for for ever"),
            // What is left unread of a request makes the end of its connection one.
            _ => String::from_utf8(answer).unwrap(),
        }
    }

    /// How often this was a reason at the door, as Prometheus reads it. Without a request, which would have to arrive in
    /// time itself.
    fn refused(server: &Server, reason: &str) -> u64 {
        let page = block_on(async {
            let body = scraped(State(Arc::clone(&server.shown))).await.into_body();
            axum::body::to_bytes(body, usize::MAX).await.unwrap()
        });
        let page = String::from_utf8(page.to_vec()).unwrap();
        let start = format!("stealgrid_run_requests_refused_total{{reason=\"{reason}\"");
        let line = page.lines().find(|line| line.starts_with(&start)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Heads end the connection, bodies are answered 408; each is counted as what it is.
    #[test]
    fn half_a_request_is_not_waited_for() {
        let token = Token::random();
        let (desk, _orders) = Desk::new(token.clone(), &here());
        let shown = Shown::new(None, Some(desk), here().hosts());
        let patience = Patience { request: SHORT, unread: FOR_EVER };
        let server = Server::of(&here(), Router::new(), shown, patience).unwrap();
        let grid = Grid::of_sizes(&[4]).unwrap();
        server.shown.set_live(Live::new(About::default(), &grid, Threshold::HALF, &[]));
        assert_eq!((refused(&server, "head_time"), refused(&server, "body_time")), (0, 0));

        for (heads, begun) in [(1, "GET / HTTP/1.1\r\nhost: he"), (2, "")] {
            assert_eq!(answer_to(&server, begun), "", "{begun:?}");
            assert_eq!(
                (refused(&server, "head_time"), refused(&server, "body_time")),
                (heads, 0),
                "{begun:?}"
            );
        }

        let order = format!("POST /orders/pause HTTP/1.1\r\nauthorization: Bearer {}", token.reveal());
        for (bodies, head) in [(1, "GET /about HTTP/1.1"), (2, order.as_str())] {
            let begun = format!("{head}\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{{");
            // On a busy machine even the head may come too late, which is told apart above.
            let deadline = Instant::now() + AMPLE;
            let answer = loop {
                let answer = answer_to(&server, &begun);
                if !answer.is_empty() {
                    break answer;
                }
                assert!(Instant::now() < deadline, "no head arrives in time");
            };
            assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
            assert_eq!(refused(&server, "body_time"), bodies, "{head}");
        }
    }

    #[test]
    fn before_a_run_is_known_a_scrape_is_answered() {
        let server = Server::start(&here(), Router::new(), None).unwrap();
        let answer = get(&server, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
        assert!(answer.contains("stealgrid_build_info{version="), "{answer}");
        assert!(!answer.contains("stealgrid_run_"), "{answer}");
    }

    #[test]
    fn a_port_in_use_is_said() {
        let first = Server::start(&here(), Router::new(), None).unwrap();
        let error =
            Server::start(&Place::new(&first.address().to_string(), &[]), Router::new(), None).unwrap_err();
        assert!(format!("{error:#}").contains("(--serve)"), "{error:#}");
    }
}
