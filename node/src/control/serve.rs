//! Accepts connections for HTTP: so many at once, and none that says nothing. Who has to go is decided in `seats`.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::seats::{Seat, Seats};
use super::token::Unauthorised;
use crate::limits::Limits;

/// Most bytes that are read before a request is understood.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// After a connection could not be accepted, as when the process has too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How finely the wait for a coordinator is counted: in so many steps of the patience, none longer than this.
const STEPS: u32 = 10;
const STEP_MAX: Duration = Duration::from_secs(1);

/// What the control interface refused, and how often; and whether anybody with the token still asks.
#[derive(Debug, Default)]
pub(crate) struct ControlCounters {
    no_token: AtomicU64,
    missing: AtomicU64,
    wrong: AtomicU64,
    connections: AtomicU64,
    body: AtomicU64,
    asked: AtomicU64,
    silent_ms: AtomicU64,
    armed: AtomicBool,
    slow: AtomicU64,
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

    /// A coordinator has ordered something, or asked for what only one may know.
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// The start of the trace clock is ordered.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }

    /// How long nobody has shown the token since somebody did, on the wall clock, as far as
    /// [`ControlCounters::orphaned`] counts.
    pub(crate) fn silent(&self) -> Duration {
        Duration::from_millis(self.silent_ms.load(Ordering::Relaxed))
    }

    /// Counts how long nobody has shown the token, and resolves when that is longer than the patience, if there is one.
    /// The patience begins with the order to start, before which a coordinator may have other things to do. Counts in
    /// steps: a process that was stopped could not be asked.
    pub(crate) async fn orphaned(&self, patience: Option<Duration>) {
        let step = patience.map_or(STEP_MAX, |patience| (patience / STEPS).min(STEP_MAX));
        let (mut asked, mut silent, mut armed) = (0, Duration::ZERO, Duration::ZERO);
        while patience.is_none_or(|patience| armed < patience) {
            tokio::time::sleep(step).await;
            let now = self.asked.load(Ordering::Relaxed);
            let is_silent = now == asked;
            silent = if is_silent && now > 0 { silent + step } else { Duration::ZERO };
            armed = if is_silent && self.is_armed() { armed + step } else { Duration::ZERO };
            asked = now;
            self.silent_ms.store(silent.as_millis() as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn too_slow(&self) {
        self.slow.fetch_add(1, Ordering::Relaxed);
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

    /// Requests whose body did not arrive in time.
    pub(crate) fn slow_bodies(&self) -> u64 {
        self.slow.load(Ordering::Relaxed)
    }
}

/// Serves as many connections at once as the limits allow until `stop` resolves, and requests to their end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    counters: Arc<ControlCounters>,
    mut stop: oneshot::Receiver<()>,
) -> io::Result<()> {
    let seats = Seats::new(limits.control_connections);
    let head_timeout = Duration::from_secs(u64::from(limits.control_request_secs));
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
        let (seat, replaced) = seats.take();
        if seat.is_none() || replaced {
            counters.connections.fetch_add(1, Ordering::Relaxed);
        }
        // Without a place it is dropped, which closes it.
        if let Some(seat) = seat {
            open.spawn(connection(stream, router.clone(), head_timeout, seat, closed.clone()));
        }
    }
    drop(closing);
    seats.close_strangers();
    while open.join_next().await.is_some() {}
    Ok(())
}

/// One connection to its end; to that of its request when the server closes. The timeout is for the head of a request,
/// and for being idle between two.
async fn connection(
    stream: TcpStream,
    router: Router,
    head_timeout: Duration,
    seat: Arc<Seat>,
    mut closed: watch::Receiver<()>,
) {
    // Orders in lockstep are small, and each is waited for.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a control connection keeps the delay of TCP");
    }
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(HEAD_BYTES_MAX);
    let router = TowerToHyperService::new(router.into_service::<Incoming>());
    let service = service_fn(|mut request: Request<Incoming>| {
        let (seat, router) = (Arc::clone(&seat), router.clone());
        async move {
            let Some(work) = seat.work() else {
                // The connection is about to be dropped, and this with it.
                return std::future::pending().await;
            };
            request.extensions_mut().insert(Arc::clone(&seat));
            let response = router.call(request).await;
            drop(work);
            response
        }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = seat.lost() => {
            tracing::debug!("an idle control connection made room for another, or for the end");
            return;
        }
        _ = closed.changed() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                served = connection.as_mut() => served,
                () = seat.lost() => return,
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a control connection failed");
    }
}
