//! Doors for HTTP, of nodes and of coordinators alike: so many connections at once, and none that says or takes nothing.
//!
//! Who has to go when all places are taken is decided in `slots`, who does because it reads no answer in `unread`, by which
//! names a door may be asked in `hosts`. What is asked, and who may ask it, is decided by whoever opens the door.

pub mod hosts;
mod slots;
mod unread;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::FromRequest as _;
use axum::http::StatusCode;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

pub use self::slots::Work;
use self::slots::{Slot, Slots};
use self::unread::Unread;

/// Most bytes that are read before a request is understood.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// After a connection could not be accepted, as when the process has too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How much a door takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// For the headers of a request, for its body, and for being idle between two.
    pub request: Duration,
    /// For taking something of an answer, once the buffers of the system are full; `None`: for ever.
    pub unread: Option<Duration>,
}

/// What a door refused, and how often.
#[derive(Debug, Default)]
pub struct Turned {
    connections: AtomicU64,
    heads: AtomicU64,
    bodies_long: AtomicU64,
    bodies_slow: AtomicU64,
    unread: AtomicU64,
}

impl Turned {
    /// Connections closed because there were too many.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Connections closed because the head of their first or next request did not arrive in time.
    pub fn heads(&self) -> u64 {
        self.heads.load(Ordering::Relaxed)
    }

    /// Requests whose body was too long.
    pub fn bodies_long(&self) -> u64 {
        self.bodies_long.load(Ordering::Relaxed)
    }

    /// Requests whose body did not arrive in time.
    pub fn bodies_slow(&self) -> u64 {
        self.bodies_slow.load(Ordering::Relaxed)
    }

    /// Connections closed because nobody took what was sent.
    pub fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }
}

/// Who makes a request: among the extensions of each.
#[derive(Clone, Debug)]
pub struct Visitor {
    slot: Arc<Slot>,
    turned: Arc<Turned>,
    patience: Duration,
}

impl Visitor {
    /// He has shown that he may be here, and is among the last who must give up their place.
    pub fn trust(&self) {
        self.slot.trust();
    }

    /// He keeps his place until this is dropped, for an answer that goes on; none if he has lost it already.
    pub fn work(&self) -> Option<Work> {
        self.slot.work()
    }
}

/// Whoever makes this request has shown that he may.
pub fn trust(request: &axum::extract::Request) {
    if let Some(visitor) = request.extensions().get::<Visitor>() {
        visitor.trust();
    }
}

/// The request with all of its body, so that nobody holds a place by sending it slowly. How long it may be is among the
/// extensions of the request ([`axum::extract::DefaultBodyLimit`]), how long it may take the door knows, where refusals
/// are counted.
///
/// # Errors
/// The status of the answer, and why.
pub async fn whole(request: axum::extract::Request) -> Result<axum::extract::Request, (StatusCode, String)> {
    let (parts, body) = request.into_parts();
    // Only in tests of a router there is no door.
    let visitor = parts.extensions.get::<Visitor>().cloned();
    let patience = visitor.as_ref().map_or(Duration::MAX, |visitor| visitor.patience);
    let count = |which: fn(&Turned) -> &AtomicU64| {
        visitor.as_ref().map(|visitor| which(&visitor.turned).fetch_add(1, Ordering::Relaxed))
    };
    let read = Bytes::from_request(Request::from_parts(parts.clone(), body), &());
    let Ok(body) = tokio::time::timeout(patience, read).await else {
        count(|turned| &turned.bodies_slow);
        let reason = format!("the body of the request did not arrive within {patience:?}");
        return Err((StatusCode::REQUEST_TIMEOUT, reason));
    };
    let body = body.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            count(|turned| &turned.bodies_long);
        }
        (rejection.status(), rejection.body_text())
    })?;
    Ok(Request::from_parts(parts, Body::from(body)))
}

/// Serves as many connections at once as the limits allow until `stop` resolves, and requests to their end.
///
/// # Errors
/// None yet.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    turned: Arc<Turned>,
    mut stop: oneshot::Receiver<()>,
) -> io::Result<()> {
    let slots = Slots::new(limits.connections);
    // Nothing is ever sent: it closes with this function.
    let (closing, closed) = watch::channel(());
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            // An error means that whoever opened the door is gone, which is the same.
            _ = &mut stop => break,
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => continue,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection for HTTP could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (slot, replaced) = slots.take();
        if slot.is_none() || replaced {
            turned.connections.fetch_add(1, Ordering::Relaxed);
        }
        // Without a place it is dropped, which closes it.
        if let Some(slot) = slot {
            let visitor = Visitor { slot, turned: Arc::clone(&turned), patience: limits.request };
            open.spawn(connection(stream, router.clone(), visitor, limits.unread, closed.clone()));
        }
    }
    drop(closing);
    slots.close_strangers();
    while open.join_next().await.is_some() {}
    Ok(())
}

/// One connection to its end; to that of its request when the server closes. The timeout is for the headers of a request,
/// and for being idle between two.
async fn connection(
    stream: TcpStream,
    router: Router,
    visitor: Visitor,
    unread: Option<Duration>,
    mut closed: watch::Receiver<()>,
) {
    // Orders in lockstep are small, and each is waited for.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps the delay of TCP");
    }
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(visitor.patience).max_buf_size(HEAD_BYTES_MAX);
    let router = TowerToHyperService::new(router.into_service::<Incoming>());
    let service = service_fn(|mut request: Request<Incoming>| {
        let (visitor, router) = (visitor.clone(), router.clone());
        async move {
            let Some(work) = visitor.work() else {
                // The connection is about to be dropped, and this with it.
                return std::future::pending().await;
            };
            request.extensions_mut().insert(visitor);
            let response = router.call(request).await;
            drop(work);
            response
        }
    });
    let stream = Unread::new(stream, unread, Arc::clone(&visitor.turned));
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = visitor.slot.lost() => {
            tracing::debug!("an idle connection made room for another, or for the end");
            return;
        }
        _ = closed.changed() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                served = connection.as_mut() => served,
                () = visitor.slot.lost() => return,
            }
        }
    };
    if let Err(error) = served {
        if error.is_timeout() {
            visitor.turned.heads.fetch_add(1, Ordering::Relaxed);
        }
        tracing::debug!(%error, "a connection failed");
    }
}
