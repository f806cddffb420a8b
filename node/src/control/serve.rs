//! Accepts connections for HTTP: so many at once, and none that says nothing.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::JoinSet;

use super::token::Unauthorised;

/// How long the head of a request may take, and how long a connection may be idle between two.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes that are read before a request is understood.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// After a connection could not be accepted, as when the process has too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the control interface refused, and how often.
#[derive(Debug, Default)]
pub(crate) struct ControlCounters {
    no_token: AtomicU64,
    missing: AtomicU64,
    wrong: AtomicU64,
    connections: AtomicU64,
    body: AtomicU64,
}

impl ControlCounters {
    /// Reasons of [`ControlCounters::unauthorised`], for metrics.
    pub(crate) const REASONS: [&str; 3] = ["no_token", "missing", "wrong"];

    pub(super) fn refuse(&self, why: Unauthorised) {
        let count = match why {
            Unauthorised::NoToken => &self.no_token,
            Unauthorised::Missing => &self.missing,
            Unauthorised::Wrong => &self.wrong,
        };
        let count = count.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(count, "refused an order: {why}");
        }
    }

    pub(super) fn too_long(&self) {
        self.body.fetch_add(1, Ordering::Relaxed);
    }

    /// Orders without the token, by the reasons in order.
    pub(crate) fn unauthorised(&self) -> [u64; 3] {
        [&self.no_token, &self.missing, &self.wrong].map(|count| count.load(Ordering::Relaxed))
    }

    /// Connections closed because there were too many.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Requests that were too long.
    pub(crate) fn bodies(&self) -> u64 {
        self.body.load(Ordering::Relaxed)
    }
}

/// Serves at most `connections_max` connections at once until `stop` resolves, and those that are open to their end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    counters: Arc<ControlCounters>,
    mut stop: oneshot::Receiver<()>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    // Nothing is ever sent: it closes with this function.
    let (closing, closed) = watch::channel(());
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            // An error means that the node is gone, which is the same.
            _ = &mut stop => break,
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => continue,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection for control could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => drop(open.spawn(connection(stream, router.clone(), place, closed.clone()))),
            // Dropped, which closes it.
            Err(_) => drop(counters.connections.fetch_add(1, Ordering::Relaxed)),
        }
    }
    drop(closing);
    while open.join_next().await.is_some() {}
    Ok(())
}

/// One connection to its end; to that of its request when the server closes.
async fn connection(
    stream: TcpStream,
    router: Router,
    place: OwnedSemaphorePermit,
    mut closed: watch::Receiver<()>,
) {
    // Orders in lockstep are small, and each is waited for.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a control connection keeps the delay of TCP");
    }
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX);
    let service = TowerToHyperService::new(router.into_service::<Incoming>());
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let served = tokio::select! {
        served = connection.as_mut() => served,
        _ = closed.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a control connection failed");
    }
    drop(place);
}
