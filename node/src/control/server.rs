//! The HTTP server: each request becomes a command of the event loop, each answer a response.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Json, Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::upgrade::OnUpgrade;
use scheduler::TimedJob;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

use super::Command;
use super::api::{
    Adoption, CalibrateOrder, Calibration, ConnectOrder, Failure, LinksOrder, Phase, RoundTrips,
};
use super::serve::ControlCounters;
use super::token::{Token, Unauthorised};
use crate::arrivals::ArrivalsError;
use crate::clock::StartOrder;
use crate::http;
use crate::http::hosts::Hosts;
use crate::journal::error::NoEvents;
use crate::lockstep::UPGRADE;
use crate::network::handle::NetworkHandle;

/// Longest body of a request: some 60,000 jobs.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most events in one answer.
const EVENTS_PAGE_MAX: usize = 100_000;
/// So many are fetched from the site at once: it does other things in between. Arbitrary, a millisecond or two if they
/// are in the journal.
const EVENTS_AT_ONCE: usize = 5000;
/// An event loop that does not answer for so long is considered stuck.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Seconds after which a node that is busy may be asked again.
const RETRY_AFTER: &str = "1";

#[derive(Clone)]
pub(crate) struct Context {
    commands: mpsc::Sender<Command>,
    network: NetworkHandle,
    token: Option<Arc<Token>>,
    counters: Arc<ControlCounters>,
    /// By which names it is asked.
    hosts: Arc<Hosts>,
}

/// A refused request.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = (self.0, Json(Failure { reason: self.1, room: None })).into_response();
        if self.0 == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Jobs that were not taken.
struct JobsRefused(ArrivalsError);

impl IntoResponse for JobsRefused {
    fn into_response(self) -> Response {
        let reason = self.0.to_string();
        match self.0 {
            ArrivalsError::Busy { room, .. } => {
                let failure = Json(Failure { reason, room: Some(room) });
                (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, RETRY_AFTER)], failure)
                    .into_response()
            }
            _ => Refused(StatusCode::UNPROCESSABLE_ENTITY, reason).into_response(),
        }
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Self {
        Refused(rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for Refused {
    fn from(rejection: QueryRejection) -> Self {
        Refused(rejection.status(), rejection.body_text())
    }
}

/// Everything that can be asked of a node; orders, and what only a coordinator needs to know, with the token alone.
pub(crate) fn control(context: Context) -> Router {
    let guarded = Router::new()
        .route("/status", get(status))
        .route("/control/connect", post(connect))
        .route("/control/calibrate", post(calibrate))
        .route("/control/start", post(start))
        .route("/control/pause", post(pause))
        .route("/control/jobs", post(jobs))
        .route("/control/events", get(events))
        .route("/control/lockstep", post(lockstep))
        .route("/control/leave", post(leave))
        .route("/control/adopt", post(adopt))
        .route("/control/links", post(links))
        .route("/control/stop", post(stop_node))
        .route("/control/crash", post(crash))
        // Before anything of the body is read.
        .route_layer(middleware::from_fn_with_state(context.clone(), authorise));
    public(&context).merge(guarded).layer(DefaultBodyLimit::max(BODY_BYTES_MAX)).with_state(context)
}

/// What Prometheus asks, for an address of its own.
pub(crate) fn metrics_only(context: Context) -> Router {
    public(&context).with_state(context)
}

/// What everybody may ask; not by way of a browser that somebody else's page made ask. Orders need the token, which no such
/// page has.
fn public(context: &Context) -> Router<Context> {
    let pages = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz));
    context.hosts.guard(pages).fallback(|| async {
        Refused(StatusCode::NOT_FOUND, "no such page; see /status and /metrics".to_string())
    })
}

/// Lets requests through that show the token.
async fn authorise(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Result<Response, Refused> {
    let header = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if let Err(why) = Token::check(context.token.as_deref(), header) {
        context.counters.refuse(why);
        return Err(unauthorised(why));
    }
    context.counters.ask();
    http::trust(&request);
    let request = http::whole(request).await.map_err(|(status, reason)| Refused(status, reason))?;
    Ok(next.run(request).await)
}

fn unauthorised(why: Unauthorised) -> Refused {
    Refused(StatusCode::UNAUTHORIZED, why.to_string())
}

impl Context {
    /// For requests to this event loop and this network.
    pub(crate) fn new(
        commands: mpsc::Sender<Command>,
        network: NetworkHandle,
        token: Option<Token>,
        counters: Arc<ControlCounters>,
        hosts: Hosts,
    ) -> Context {
        Context { commands, network, token: token.map(Arc::new), counters, hosts: Arc::new(hosts) }
    }

    /// Asks the event loop.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Refused> {
        let (answer, answered) = oneshot::channel();
        let unavailable = |reason: &str| Refused(StatusCode::SERVICE_UNAVAILABLE, reason.to_string());
        let asked = async {
            self.commands.send(command(answer)).await.map_err(|_| unavailable("the node is stopping"))?;
            answered.await.map_err(|_| unavailable("the node is stopping"))
        };
        tokio::time::timeout(ANSWER_TIMEOUT, asked)
            .await
            .map_err(|_| unavailable("the event loop does not answer"))?
    }
}

async fn metrics(State(context): State<Context>) -> Result<impl IntoResponse, Refused> {
    let page = context.ask(Command::Metrics).await?;
    // Prometheus 3 refuses a page without a type that it knows.
    Ok(([(header::CONTENT_TYPE, crate::metrics::CONTENT_TYPE)], page))
}

async fn healthz(State(context): State<Context>) -> Result<&'static str, Refused> {
    context.ask(Command::Status).await?;
    Ok("ok\n")
}

async fn readyz(State(context): State<Context>) -> Result<&'static str, Refused> {
    let status = context.ask(Command::Status).await?;
    if status.phase == Phase::Connecting || !status.connected {
        let missing: Vec<&str> = status
            .links
            .iter()
            .filter(|link| !link.connected || link.rtt_us.is_none())
            .map(|link| link.name.as_str())
            .collect();
        let reason = format!("not connected to {}", missing.join(", "));
        return Err(Refused(StatusCode::SERVICE_UNAVAILABLE, reason));
    }
    Ok("ready\n")
}

async fn status(State(context): State<Context>) -> Result<impl IntoResponse, Refused> {
    Ok(Json(*context.ask(Command::Status).await?))
}

async fn connect(
    State(context): State<Context>,
    order: Result<Json<ConnectOrder>, JsonRejection>,
) -> Result<StatusCode, Refused> {
    let Json(order) = order?;
    let peers = order.peers.iter().map(|peer| (peer.site, peer.address.clone())).collect();
    context
        .network
        .connect(peers)
        .await
        .map_err(|error| Refused(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    // Whoever is told that it was done finds it in the next incarnation, too.
    context.ask(|answer| Command::Addresses(order.peers, answer)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Between two probes of one site: several times what a round trip takes on an idle machine.
const PROBE_PAUSE: Duration = Duration::from_millis(1);
/// Most round trips to each site in one order.
const ROUNDS_MAX: usize = 1000;

async fn calibrate(
    State(context): State<Context>,
    order: Result<Json<CalibrateOrder>, JsonRejection>,
) -> Result<impl IntoResponse, Refused> {
    let Json(CalibrateOrder { rounds }) = order?;
    if rounds == 0 || rounds > ROUNDS_MAX {
        let reason = format!("{rounds} rounds are not from 1 to {ROUNDS_MAX}");
        return Err(Refused(StatusCode::UNPROCESSABLE_ENTITY, reason));
    }
    let site = context.ask(Command::Status).await?.site;
    let network = &context.network;
    let to_all = network.state().links.into_keys();
    let mut links: Vec<RoundTrips> = to_all.map(|to| RoundTrips { to, micros: Vec::new() }).collect();
    // One at a time and with a pause: many at once measure each other. The first opens what the others find open.
    for round in 0..=rounds {
        for link in &mut links {
            // A site that did not answer once is not waited for again.
            if link.micros.len() + 1 < round {
                continue;
            }
            if let Some(round_trip) = network.probe(link.to).await
                && round > 0
            {
                link.micros.push(round_trip.as_micros() as u64);
            }
            tokio::time::sleep(PROBE_PAUSE).await;
        }
    }
    let one_way =
        links.iter().filter_map(|link| Some((link.to, Duration::from_micros(link.median_us()?) / 2)));
    // An error means that the node is stopping.
    let _ = context.commands.send(Command::Calibrated(one_way.collect())).await;
    Ok(Json(Calibration { site, links }))
}

async fn start(
    State(context): State<Context>,
    order: Result<Json<StartOrder>, JsonRejection>,
) -> Result<StatusCode, Refused> {
    let Json(order) = order?;
    context
        .ask(|answer| Command::Start(order, answer))
        .await?
        .map_err(|error| Refused(StatusCode::CONFLICT, error.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}

async fn pause(State(context): State<Context>) -> Result<impl IntoResponse, Refused> {
    let halted = context.ask(Command::Pause).await?;
    halted.map(Json).map_err(|error| Refused(StatusCode::CONFLICT, error.to_string()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobsQuery {
    #[serde(default)]
    again: bool,
}

async fn jobs(
    State(context): State<Context>,
    query: Result<Query<JobsQuery>, QueryRejection>,
    jobs: Result<Json<Vec<TimedJob>>, JsonRejection>,
) -> Result<Response, Refused> {
    let (Query(JobsQuery { again }), Json(jobs)) = (query?, jobs?);
    Ok(match context.ask(|answer| Command::Jobs { jobs, again, answer }).await? {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => JobsRefused(error).into_response(),
    })
}

async fn leave(State(context): State<Context>) -> Result<StatusCode, Refused> {
    context.ask(Command::Leave).await?.map_err(|error| Refused(StatusCode::CONFLICT, error.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}

async fn adopt(
    State(context): State<Context>,
    adoptions: Result<Json<Vec<Adoption>>, JsonRejection>,
) -> Result<StatusCode, Refused> {
    let Json(adoptions) = adoptions?;
    context
        .ask(|answer| Command::Adopt(adoptions, answer))
        .await?
        .map_err(|error| Refused(StatusCode::CONFLICT, error.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}

async fn links(
    State(context): State<Context>,
    order: Result<Json<LinksOrder>, JsonRejection>,
) -> Result<StatusCode, Refused> {
    let Json(order) = order?;
    context
        .ask(|answer| Command::Links(order, answer))
        .await?
        .map_err(|error| Refused(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    #[serde(default)]
    from: u64,
    limit: Option<usize>,
}

async fn events(
    State(context): State<Context>,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<impl IntoResponse, Refused> {
    let Query(EventsQuery { from, limit }) = query?;
    let limit = limit.unwrap_or(EVENTS_PAGE_MAX).min(EVENTS_PAGE_MAX);
    let mut events = Vec::new();
    loop {
        let (from, limit) = (from + events.len() as u64, EVENTS_AT_ONCE.min(limit - events.len()));
        let page = context.ask(|answer| Command::Events { from, limit, answer }).await?.map_err(|error| {
            let status = match error {
                NoEvents::Forgotten(_) => StatusCode::GONE,
                NoEvents::Unreadable(_) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Refused(status, error.to_string())
        });
        let page = match page {
            // What follows them is told to whoever asks for it.
            Err(_) if !events.is_empty() => break,
            page => page?,
        };
        let is_last = page.len() < limit || limit == 0;
        events.extend(page);
        if is_last {
            break;
        }
    }
    let mut lines = Vec::with_capacity(events.len() * 128);
    for event in &events {
        serde_json::to_writer(&mut lines, event).expect("events are plain data");
        lines.push(b'\n');
    }
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], lines))
}

async fn lockstep(State(context): State<Context>, mut request: Request) -> Result<Response, Refused> {
    let named = request.headers().get(header::UPGRADE).is_some_and(|name| name == UPGRADE);
    let upgrade = request.extensions_mut().remove::<OnUpgrade>().filter(|_| named);
    let upgrade = upgrade
        .ok_or_else(|| Refused(StatusCode::UPGRADE_REQUIRED, format!("ask for an upgrade to {UPGRADE}")))?;
    context
        .ask(|answer| Command::Lockstep(upgrade, answer))
        .await?
        .map_err(|error| Refused(StatusCode::CONFLICT, error.to_string()))?;
    let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, UPGRADE)];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

/// As a crash would. Nobody gets an answer.
async fn crash() -> StatusCode {
    tracing::error!("told to crash");
    std::process::abort()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StopQuery {
    /// Only if the site has left.
    #[serde(default)]
    left: bool,
}

async fn stop_node(
    State(context): State<Context>,
    query: Result<Query<StopQuery>, QueryRejection>,
) -> Result<StatusCode, Refused> {
    let Query(StopQuery { left }) = query?;
    context
        .ask(|answer| Command::Stop { left, answer })
        .await?
        .map_err(|error| Refused(StatusCode::CONFLICT, error.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}
