//! Orders as they arrive: who may give them, how many, and the way to the loop that carries them out and back.
//!
//! An order needs the token, so that nobody who merely reaches the page can give one, and it must come from the page
//! itself or from no page at all: a browser says where a request comes from, and what it took this server for. Whether an
//! order makes sense is not decided here.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Json, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use node::control::Token;
use node::control::api::Failure;
use node::http;
use node::http::hosts::Hosts;
use outputs::orders::{Given, Order};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::{BODY_BYTES_MAX, Place, Shown};

/// Orders on their way to the run; further ones are refused until it has looked.
pub const ORDERS_WAITING_MAX: usize = 16;
/// Orders in a second, in the long run, and how many may come at once.
pub const ORDERS_PER_SECOND: f64 = 5.0;
const ORDERS_AT_ONCE: f64 = 20.0;
/// A run that does not answer for so long does not: a process that has registered may take a minute to come back.
const ANSWER_PATIENCE: Duration = Duration::from_secs(90);

/// What became of a request that wanted to give an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was carried out.
    Done,
    /// The run could not, or the request said nothing that can be done.
    Refused,
    /// The token was not shown.
    Unauthorized,
    /// It came from another page, or for another server.
    Foreign,
    /// They come too fast.
    Limited,
    /// Its body was too long.
    TooLong,
    /// The run did not say in time what came of it; it may be carried out all the same.
    Late,
    /// Who gave it did not wait for what came of it; it may be carried out all the same.
    Abandoned,
}

impl Fate {
    /// All of them.
    pub const ALL: [Fate; 8] = [
        Fate::Done,
        Fate::Refused,
        Fate::Unauthorized,
        Fate::Foreign,
        Fate::Limited,
        Fate::TooLong,
        Fate::Late,
        Fate::Abandoned,
    ];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Done => "done",
            Fate::Refused => "refused",
            Fate::Unauthorized => "unauthorized",
            Fate::Foreign => "foreign",
            Fate::Limited => "limited",
            Fate::TooLong => "too_long",
            Fate::Late => "late",
            Fate::Abandoned => "abandoned",
        }
    }
}

/// An order with the way back.
#[derive(Debug)]
pub struct Asked {
    /// What is wanted.
    pub order: Order,
    /// What came of it, or why nothing did.
    pub answer: oneshot::Sender<Result<Given, String>>,
}

/// Where orders are given.
#[derive(Debug)]
pub struct Desk {
    token: Token,
    /// The names of this server.
    hosts: Arc<Hosts>,
    orders: mpsc::Sender<Asked>,
    is_open: AtomicBool,
    rate: Mutex<Rate>,
    fates: [AtomicU64; Fate::ALL.len()],
}

/// How many more orders may come, and as of when.
#[derive(Debug)]
struct Rate {
    left: f64,
    at: Instant,
}

impl Rate {
    fn take(&mut self, now: Instant) -> bool {
        let more = now.saturating_duration_since(self.at).as_secs_f64() * ORDERS_PER_SECOND;
        (self.left, self.at) = ((self.left + more).min(ORDERS_AT_ONCE), now);
        let may = self.left >= 1.0;
        self.left -= f64::from(u8::from(may));
        may
    }
}

impl Desk {
    /// For those who have this token, at a place that is served; and where the orders come out.
    pub fn new(token: Token, place: &Place) -> (Arc<Desk>, mpsc::Receiver<Asked>) {
        let (orders, come) = mpsc::channel(ORDERS_WAITING_MAX);
        let hosts = Arc::clone(place.hosts());
        let rate = Mutex::new(Rate { left: ORDERS_AT_ONCE, at: Instant::now() });
        let desk =
            Desk { token, hosts, orders, is_open: AtomicBool::new(false), rate, fates: Default::default() };
        (Arc::new(desk), come)
    }

    /// Somebody looks at orders from now on.
    pub fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Nobody looks at them any more.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }

    /// How many requests met with this fate.
    pub fn count(&self, fate: Fate) -> u64 {
        self.fates[fate as usize].load(Ordering::Relaxed)
    }

    /// Why a request is not of the page itself.
    fn foreign(&self, headers: &HeaderMap) -> Option<String> {
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
        let Some(host) = text(header::HOST) else { return Some("the request names no host".to_string()) };
        // A page of somebody else whose name leads here would ask by that name.
        if !self.hosts.is_own(host) {
            return Some(format!(
                "the request is for {host}, which is no name of this server for orders; open the page by its address, or \
                 allow the name with --serve-host"
            ));
        }
        if let Some(origin) = text(header::ORIGIN) {
            let here = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            if here != Some(host) {
                return Some(format!(
                    "the request comes from a page of {origin}, and orders from this one only"
                ));
            }
        }
        match text(header::HeaderName::from_static("sec-fetch-site")) {
            None | Some("same-origin" | "none") => None,
            Some(site) => Some(format!("the request comes from another page ({site})")),
        }
    }

    fn fate(&self, fate: Fate) {
        self.fates[fate as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn refuse(&self, fate: Fate, status: StatusCode, reason: String) -> Response {
        self.fate(fate);
        (status, Json(Failure { reason, room: None })).into_response()
    }
}

/// `POST /orders/NAME`.
pub(super) fn routes(shown: &Arc<Shown>) -> Router<Arc<Shown>> {
    let guard = middleware::from_fn_with_state(Arc::clone(shown), authorize);
    Router::new()
        .route("/orders/{name}", post(take))
        .route_layer(guard)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

/// Lets orders through that come from here, with the token, and not too fast. Before anything of the body is read.
async fn authorize(State(shown): State<Arc<Shown>>, request: Request, next: Next) -> Response {
    let Some(desk) = &shown.desk else {
        let reason = "this page gives no orders: it shows a run that has ended".to_string();
        return (StatusCode::CONFLICT, Json(Failure { reason, room: None })).into_response();
    };
    if let Some(why) = desk.foreign(request.headers()) {
        return desk.refuse(Fate::Foreign, StatusCode::FORBIDDEN, why);
    }
    let header = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if let Err(why) = desk.token.check_shown(header) {
        let mut answer = desk.refuse(Fate::Unauthorized, StatusCode::UNAUTHORIZED, why);
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return answer;
    }
    let may = desk.rate.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
    if !may {
        let reason = format!("more than {ORDERS_PER_SECOND} orders a second; wait a moment");
        return desk.refuse(Fate::Limited, StatusCode::TOO_MANY_REQUESTS, reason);
    }
    http::trust(&request);
    // Dropped before there is an answer if the connection ends.
    let mut waited_for = WaitedFor { desk, is_answered: false };
    let answer = match http::whole(request).await {
        Ok(request) => next.run(request).await,
        Err((status, _)) if status == StatusCode::PAYLOAD_TOO_LARGE => {
            let reason = format!("the order is longer than {BODY_BYTES_MAX} bytes");
            desk.refuse(Fate::TooLong, status, reason)
        }
        Err((status, reason)) => desk.refuse(Fate::Refused, status, reason),
    };
    waited_for.is_answered = true;
    answer
}

/// A request whose sender waits for an answer.
struct WaitedFor<'a> {
    desk: &'a Desk,
    is_answered: bool,
}

impl Drop for WaitedFor<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.desk.fate(Fate::Abandoned);
        }
    }
}

async fn take(State(shown): State<Arc<Shown>>, Path(name): Path<String>, body: Bytes) -> Response {
    let Some(desk) = &shown.desk else { return StatusCode::CONFLICT.into_response() };
    let order = match read(name, &body) {
        Ok(order) => order,
        Err(reason) => return desk.refuse(Fate::Refused, StatusCode::UNPROCESSABLE_ENTITY, reason),
    };
    if !desk.is_open.load(Ordering::Relaxed) {
        let reason = "the run takes no orders now: it has not begun, or has ended".to_string();
        return desk.refuse(Fate::Refused, StatusCode::CONFLICT, reason);
    }
    carried_out(desk, order, ANSWER_PATIENCE).await
}

/// What the run says of an order, if it does within this time.
async fn carried_out(desk: &Desk, order: Order, patience: Duration) -> Response {
    let (answer, answered) = oneshot::channel();
    if desk.orders.try_send(Asked { order, answer }).is_err() {
        let reason = format!("{ORDERS_WAITING_MAX} orders wait already, or the run has ended; try again");
        return desk.refuse(Fate::Limited, StatusCode::SERVICE_UNAVAILABLE, reason);
    }
    match tokio::time::timeout(patience, answered).await {
        Ok(Ok(Ok(given))) => {
            desk.fate(Fate::Done);
            Json(given).into_response()
        }
        Ok(Ok(Err(reason))) => desk.refuse(Fate::Refused, StatusCode::CONFLICT, reason),
        Ok(Err(_)) => {
            desk.refuse(Fate::Refused, StatusCode::CONFLICT, "the run has ended meanwhile".to_string())
        }
        Err(_) => {
            let reason = format!(
                "the run did not say within {patience:?} what came of it; it may be carried out all the same: look at \
                 the page before you give it again"
            );
            desk.refuse(Fate::Late, StatusCode::SERVICE_UNAVAILABLE, reason)
        }
    }
}

/// The order of this name; its words may be left out if it needs none.
fn read(name: String, body: &[u8]) -> Result<Order, String> {
    let words = match body.is_empty() {
        true => Value::Object(Map::new()),
        false => serde_json::from_slice(body).map_err(|error| format!("the order is not JSON: {error}"))?,
    };
    let order = Value::Object([(name.clone(), words)].into_iter().collect());
    serde_json::from_value(order).map_err(|error| format!("order {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpStream;

    use super::*;
    use crate::serve::Server;

    fn desk(address: &str) -> Arc<Desk> {
        Desk::new(Token::random(), &Place::new(address, &[])).0
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_request_that_another_page_makes_is_foreign() {
        let desk = desk("127.0.0.1:8080");
        let foreign = |pairs: &[(&'static str, &str)]| desk.foreign(&headers(pairs));
        for own in [
            &[("host", "127.0.0.1:8080")][..],
            &[
                ("host", "localhost:8080"),
                ("origin", "http://localhost:8080"),
                ("sec-fetch-site", "same-origin"),
            ],
            &[("host", "[::1]:8080"), ("origin", "http://[::1]:8080")],
            &[("host", "192.168.0.7"), ("origin", "https://192.168.0.7")],
        ] {
            assert_eq!(foreign(own), None, "{own:?}");
        }
        for other in [
            &[][..],
            &[("host", "rebound.example:8080")],
            &[("host", "rebound.example:8080"), ("origin", "http://rebound.example:8080")],
            &[("host", "127.0.0.1:8080"), ("origin", "http://evil.example")],
            &[("host", "127.0.0.1:8080"), ("origin", "null")],
            &[("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8081")],
            &[("host", "127.0.0.1:8080"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(foreign(other).is_some(), "{other:?}");
        }
        let named = self::desk("grid.example:80");
        assert_eq!(named.foreign(&headers(&[("host", "Grid.example")])), None);
        assert!(named.foreign(&headers(&[("host", "other.example")])).is_some());
    }

    #[test]
    fn orders_that_come_too_fast_wait_a_while() {
        let begun = Instant::now();
        let mut rate = Rate { left: ORDERS_AT_ONCE, at: begun };
        let taken = (0..100).filter(|_| rate.take(begun)).count();
        assert_eq!(taken, ORDERS_AT_ONCE as usize);
        assert!(!rate.take(begun + Duration::from_millis(100)));
        assert!(rate.take(begun + Duration::from_millis(300)));
        assert!(!rate.take(begun + Duration::from_millis(300)));
        let later = begun + Duration::from_secs(3600);
        assert_eq!((0..100).filter(|_| rate.take(later)).count(), ORDERS_AT_ONCE as usize);
    }

    #[test]
    fn an_order_is_its_name_and_its_words() {
        let read = |name: &str, body: &str| read(name.to_string(), body.as_bytes());
        assert_eq!(read("pause", ""), read("pause", "{}"));
        assert!(read("kill", r#"{"site":2}"#).is_ok());
        for (name, body) in [("kill", ""), ("kill", "{"), ("dance", "{}"), ("pause", "[1]")] {
            assert!(read(name, body).is_err(), "{name} {body}");
        }
        assert!(read("dance", "").unwrap_err().starts_with("order dance: unknown variant"));
    }

    #[test]
    fn an_order_of_which_the_run_says_nothing_is_late() {
        let (desk, _come) = Desk::new(Token::random(), &Place::new("127.0.0.1:8080", &[]));
        let order = read("pause".to_string(), b"").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let answer = runtime.block_on(carried_out(&desk, order, Duration::ZERO));
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(Fate::ALL.map(|fate| desk.count(fate)), [0, 0, 0, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn an_order_whose_sender_goes_is_abandoned() {
        let place = Place::new("127.0.0.1:0", &[]);
        let (desk, mut come) = Desk::new(Token::random(), &place);
        let server = Server::start(&place, Router::new(), Some(Arc::clone(&desk))).unwrap();
        desk.open();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(
            stream,
            "POST /orders/pause HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: 0\r\n\r\n",
            server.address(),
            desk.token.reveal()
        )
        .unwrap();
        let asked = come.blocking_recv().unwrap();
        drop(stream);
        let deadline = Instant::now() + Duration::from_secs(60);
        while desk.count(Fate::Abandoned) == 0 {
            assert!(Instant::now() < deadline, "nobody has noticed");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(asked.answer.is_closed());
    }
}
