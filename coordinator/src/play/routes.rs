//! What is asked of the playground over HTTP.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use operation::serve::door::Place;
use operation::serve::page::{file, whole};
use report::page::STYLE;

use super::choices::Choices;
use super::picture::{Picture, Player, Refused};
use super::settings::Settings;
use super::turns::{Asked, Turns};

/// Says which page asks, and for the how-manyth time.
const ASKED: &str = "x-play";
/// Longest body of a request; none is needed.
const BODY_BYTES_MAX: usize = 4096;

/// What the page plays on.
#[derive(Debug)]
pub(super) struct Table {
    player: Player,
    turns: Turns,
}

impl Table {
    pub(super) fn new(player: Player) -> Table {
        Table { player, turns: Turns::new() }
    }
}

/// Everything that is served, by these names only.
pub(super) fn router(place: &Place, table: Arc<Table>) -> Router {
    let script = "text/javascript; charset=utf-8";
    let style = "text/css; charset=utf-8";
    let pages = Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("page.html")))
        .route("/play.js", file(script, include_str!("play.js")))
        .route("/schedule.js", file(script, include_str!("schedule.js")))
        .route("/play.css", file(style, include_str!("play.css")))
        .route("/report.css", file(style, STYLE))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/about", get(about))
        .route("/simulate", get(simulate))
        .route("/experiment.toml", get(save))
        .route_layer(middleware::from_fn(whole))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX));
    place.hosts().guard(pages).with_state(table)
}

async fn about(State(table): State<Arc<Table>>) -> Json<Choices> {
    Json(Choices::of(&table.player.base))
}

type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// What an address sets.
fn settings(pairs: Pairs) -> Result<Settings, (StatusCode, String)> {
    let wrong = |reason: String| (StatusCode::BAD_REQUEST, reason);
    let Query(pairs) = pairs.map_err(|error| wrong(error.body_text()))?;
    Settings::parse(&pairs).map_err(wrong)
}

async fn simulate(State(table): State<Arc<Table>>, headers: HeaderMap, pairs: Pairs) -> Response {
    let asked = headers.get(ASKED).and_then(|value| value.to_str().ok()).and_then(Asked::parse);
    let Some(asked) = asked else {
        let reason =
            format!("the header {ASKED}: PAGE/NUMBER is missing, two numbers of who asks and how often\n");
        return (StatusCode::BAD_REQUEST, reason).into_response();
    };
    let settings = match settings(pairs) {
        Ok(settings) => settings,
        Err(refused) => return refused.into_response(),
    };
    let superseded = || (StatusCode::CONFLICT, "the page has asked for something newer").into_response();
    let Some(turn) = table.turns.take(asked) else { return superseded() };
    let Some(place) = table.turns.place(&turn).await else { return superseded() };
    let (player, interrupt) = (Arc::clone(&table), turn.interrupt.clone());
    let played = tokio::task::spawn_blocking(move || {
        // Kept until it has really ended, so that no more than may run.
        let _place = place;
        player.player.play(&settings, &interrupt)
    });
    // The turn is dropped with this future, which ends a simulation that nobody waits for.
    match tokio::time::timeout(table.player.limits.time, played).await {
        Ok(Ok(played)) => answer(played),
        Ok(Err(error)) => {
            let reason = format!("the simulation failed: {error}; other settings can be tried");
            (StatusCode::INTERNAL_SERVER_ERROR, reason).into_response()
        }
        Err(_) => {
            let longest = humantime::format_duration(table.player.limits.time);
            let reason = format!(
                "the simulation was ended after {longest} (--time-max); choose a lower load or loss, or allow more time"
            );
            (StatusCode::UNPROCESSABLE_ENTITY, reason).into_response()
        }
    }
}

fn answer(played: Result<Picture, Refused>) -> Response {
    match played {
        Ok(picture) => Json(picture).into_response(),
        Err(Refused::Settings(reason)) => (StatusCode::BAD_REQUEST, reason).into_response(),
        Err(Refused::Simulation(reason)) => (StatusCode::UNPROCESSABLE_ENTITY, reason).into_response(),
        Err(Refused::Interrupted) => {
            (StatusCode::CONFLICT, "the page has asked for something newer").into_response()
        }
    }
}

async fn save(State(table): State<Arc<Table>>, pairs: Pairs) -> Response {
    let settings = match settings(pairs) {
        Ok(settings) => settings,
        Err(refused) => return refused.into_response(),
    };
    let base = &table.player.base;
    let text = base.with(&settings);
    if let Err(reason) = base.resolve(&text) {
        return (StatusCode::BAD_REQUEST, format!("failed to {reason}")).into_response();
    }
    let text = format!(
        "# Saved by stealgrid play; run it with: stealgrid simulate {}\n\n{text}",
        file_name(base.name())
    );
    let headers = [
        (header::CONTENT_TYPE, "application/toml; charset=utf-8".to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", file_name(base.name()))),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_string()),
    ];
    (headers, text).into_response()
}

/// A name that stands in a header and in a command as it is.
fn file_name(experiment: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    format!("{}-played.toml", experiment.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_a_header() {
        assert_eq!(file_name("a \"b\"\r\nx"), "a--b---x-played.toml");
    }
}
