//! The page and what it asks for.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Extension, Json, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use node::http::{self, Visitor, Work};
use report::page::STYLE;
use serde::Deserialize;

use super::live::{About, Bar};
use super::{Shown, replay};

/// How often those who look on are told what is new.
const FRAME_EVERY: Duration = Duration::from_millis(200);
/// How often they are told of links: in so many frames.
const LINKS_EVERY: u32 = 10;
/// Most bars in one answer.
const BARS_MAX: usize = 20_000;
/// No address but this one's is asked for anything, nothing inline runs, and nobody frames the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Longest body of a request.
const BODY_BYTES_MAX: usize = 4096;

/// A file of a page that comes with the program, with what keeps a page to itself.
pub(crate) fn file<S: Clone + Send + Sync + 'static>(
    kind: &'static str,
    text: &'static str,
) -> MethodRouter<S> {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    get(move || async move { (headers, text) })
}

pub(super) fn routes() -> Router<Arc<Shown>> {
    Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("page.html")))
        .route("/live.js", file("text/javascript; charset=utf-8", include_str!("live.js")))
        .route("/orders.js", file("text/javascript; charset=utf-8", include_str!("orders.js")))
        .route("/live.css", file("text/css; charset=utf-8", include_str!("live.css")))
        .route("/report.css", file("text/css; charset=utf-8", STYLE))
        .route("/about", get(about))
        .route("/live", get(look_on))
        .route("/bars", get(bars))
        .route("/replay", post(order))
        .route_layer(middleware::from_fn(whole))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

/// Waits for all of a request, but not for long.
pub(crate) async fn whole(request: Request, next: Next) -> Response {
    match http::whole(request).await {
        Ok(request) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

async fn about(State(shown): State<Arc<Shown>>) -> Result<Json<About>, StatusCode> {
    let about = shown.live().as_ref().map(|live| live.about().clone());
    // No error: browsers complain of those.
    about.map(Json).ok_or(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BarsQuery {
    #[serde(default)]
    from: usize,
    limit: Option<usize>,
}

async fn bars(State(shown): State<Arc<Shown>>, Query(query): Query<BarsQuery>) -> Json<Vec<Bar>> {
    let limit = query.limit.unwrap_or(BARS_MAX).min(BARS_MAX);
    let bars = shown.live().as_ref().map(|live| live.bars(query.from, limit).to_vec());
    Json(bars.unwrap_or_default())
}

/// What somebody who looks on was told already.
struct Told {
    shown: Arc<Shown>,
    version: u64,
    frames: u32,
    replay: Option<replay::State>,
    /// Ready to go.
    next: Vec<Event>,
}

impl Told {
    /// The next thing to tell, when there is one.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Told)> {
        loop {
            if let Some(event) = self.next.pop() {
                return Some((Ok(event), self));
            }
            if self.shown.ended.load(Ordering::Relaxed) {
                return None;
            }
            tokio::time::sleep(FRAME_EVERY).await;
            self.look();
        }
    }

    fn look(&mut self) {
        let event = |name: &str, data: serde_json::Result<String>| {
            data.ok().map(|data| Event::default().event(name).data(data))
        };
        let shown = Arc::clone(&self.shown);
        let live = shown.live();
        let Some(live) = live.as_ref() else { return };
        if let Some(replay) = &shown.replay {
            let state = replay.state();
            if self.replay != Some(state) {
                self.next.extend(event("replay", serde_json::to_string(&state)));
                self.replay = Some(state);
            }
        }
        if self.frames.is_multiple_of(LINKS_EVERY) && !live.links().is_empty() {
            self.next.extend(event("links", serde_json::to_string(live.links())));
        }
        self.frames += 1;
        if live.version() != self.version {
            self.version = live.version();
            self.next.extend(event("frame", serde_json::to_string(&live.frame())));
        }
    }
}

async fn look_on(State(shown): State<Arc<Shown>>, visitor: Option<Extension<Visitor>>) -> Response {
    let for_page = Arc::clone(&shown);
    // Given back when the page goes away, with the stream.
    let Ok(place) = for_page.listeners.try_acquire() else {
        for_page.pages_refused.fetch_add(1, Ordering::Relaxed);
        let reason = "as many pages look on already as may; close one".to_string();
        return (StatusCode::SERVICE_UNAVAILABLE, reason).into_response();
    };
    place.forget();
    // Whoever looks on is not idle.
    let place = Place { shown, _work: visitor.and_then(|Extension(visitor)| visitor.work()) };
    let shown = Arc::clone(&place.shown);
    let told = Told { shown, version: 0, frames: 0, replay: None, next: Vec::new() };
    let stream = futures::stream::unfold((told, place), |(told, place)| async move {
        let (event, told) = told.next().await?;
        Some((event, (told, place)))
    });
    Sse::new(stream).keep_alive(KeepAlive::default()).into_response()
}

/// One of the places for those who look on.
struct Place {
    shown: Arc<Shown>,
    _work: Option<Work>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shown.listeners.add_permits(1);
    }
}

async fn order(
    State(shown): State<Arc<Shown>>,
    order: Result<Json<replay::Order>, JsonRejection>,
) -> Result<StatusCode, (StatusCode, String)> {
    let Json(order) = order.map_err(|error| (error.status(), error.body_text()))?;
    let Some(replay) = &shown.replay else {
        return Err((StatusCode::CONFLICT, "the run goes on by its own clock".to_string()));
    };
    replay.order(order).map_err(|reason| (StatusCode::UNPROCESSABLE_ENTITY, reason))?;
    Ok(StatusCode::NO_CONTENT)
}
