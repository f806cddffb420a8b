//! The page and what it asks for.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension, Json, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use node::http::{self, Visitor, Work};
use report::page::{DRAWING, POINTING, STYLE};
use serde::Deserialize;

use super::live::{self, About};
use super::{BODY_BYTES_MAX, Shown};

/// How often those who look on are told what is new.
const FRAME_EVERY: Duration = Duration::from_millis(200);
/// How often they are told of links: in so many frames.
const LINKS_EVERY: u32 = 10;
/// The same while there is more than one frame takes.
const NEXT_AFTER: Duration = Duration::from_millis(10);
/// No address but this one's is asked for anything, nothing inline runs, and nobody frames the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of a page that comes with the program, with what keeps a page to itself.
pub fn file<S: Clone + Send + Sync + 'static>(kind: &'static str, text: &'static str) -> MethodRouter<S> {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    get(move || async move { (headers, text) })
}

fn script(text: &'static str) -> MethodRouter<Arc<Shown>> {
    file("text/javascript; charset=utf-8", text)
}

pub(super) fn routes() -> Router<Arc<Shown>> {
    Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("page.html")))
        .route("/tip.js", script(POINTING[0]))
        .route("/chart.js", script(DRAWING[2]))
        .route("/picture.js", script(include_str!("picture.js")))
        .route("/schedule.js", script(include_str!("schedule.js")))
        .route("/replay.js", script(include_str!("replay.js")))
        .route("/live.js", script(include_str!("live.js")))
        .route("/orders.js", script(include_str!("orders.js")))
        .route("/live.css", file("text/css; charset=utf-8", include_str!("live.css")))
        .route("/report.css", file("text/css; charset=utf-8", STYLE))
        .route("/about", get(about))
        .route("/live", get(look_on))
        .route("/log", get(log))
        .route("/starts", get(starts))
        .route_layer(middleware::from_fn(whole))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

/// Waits for all of a request, but not for long.
pub async fn whole(request: Request, next: Next) -> Response {
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
struct LogQuery {
    #[serde(default)]
    from: usize,
}

/// A run that has ended is read frame by frame, at whatever pace.
async fn log(State(shown): State<Arc<Shown>>, Query(query): Query<LogQuery>) -> Response {
    match &shown.replay {
        Some(replay) => {
            ([(header::CONTENT_TYPE, "application/json")], replay.frames(query.from)).into_response()
        }
        None => (StatusCode::CONFLICT, "the run goes on: /live tells of it".to_string()).into_response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartsQuery {
    site: usize,
}

/// Planned when somebody asks, with the state locked: some ten microseconds for each waiting job.
async fn starts(State(shown): State<Arc<Shown>>, Query(query): Query<StartsQuery>) -> Response {
    let live = shown.live();
    let Some(live) = live.as_ref() else { return StatusCode::NO_CONTENT.into_response() };
    if !live.about().starts {
        let reason =
            "no plans: sites have no queues with a local scheduler, or the run has ended".to_string();
        return (StatusCode::CONFLICT, reason).into_response();
    }
    match live.starts(query.site) {
        Some(starts) => Json(starts).into_response(),
        None => {
            let reason = "no such site with processors; sites are numbered from 0 as in /about".to_string();
            (StatusCode::NOT_FOUND, reason).into_response()
        }
    }
}

/// Somebody who looks on.
struct Looker {
    shown: Arc<Shown>,
    told: live::Told,
    frames: u32,
    /// Whether one frame was not enough.
    has_more: bool,
    /// Ready to go.
    next: Vec<Event>,
}

impl Looker {
    /// The next thing to tell, when there is one.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Looker)> {
        loop {
            if let Some(event) = self.next.pop() {
                return Some((Ok(event), self));
            }
            if self.shown.ended.load(Ordering::Relaxed) {
                return None;
            }
            tokio::time::sleep(if self.has_more { NEXT_AFTER } else { FRAME_EVERY }).await;
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
        if self.frames.is_multiple_of(LINKS_EVERY) && !live.links().is_empty() {
            self.next.extend(event("links", serde_json::to_string(live.links())));
        }
        self.frames += 1;
        if live.has_news(&self.told) {
            self.next.extend(event("frame", serde_json::to_string(&live.since(&mut self.told))));
        }
        self.has_more = live.has_more(&self.told);
    }
}

async fn look_on(State(shown): State<Arc<Shown>>, visitor: Option<Extension<Visitor>>) -> Response {
    if shown.replay.is_some() {
        let reason = "the run has ended: /log tells of it".to_string();
        return (StatusCode::CONFLICT, reason).into_response();
    }
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
    let looker = Looker { shown, told: live::Told::default(), frames: 0, has_more: false, next: Vec::new() };
    let stream = futures::stream::unfold((looker, place), |(looker, place)| async move {
        let (event, looker) = looker.next().await?;
        Some((event, (looker, place)))
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
