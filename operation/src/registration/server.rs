//! The coordinator's end of registration.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Json, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use node::control::Token;
use node::control::api::Failure;
use node::http;

use node::registration::{Answer, Asking, Ready};

use super::desk::{Desk, Refusal};

/// Longest request: addresses of a machine with many interfaces.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        refused(StatusCode::CONFLICT, self.to_string())
    }
}

fn refused(status: StatusCode, reason: String) -> Response {
    (status, Json(Failure { reason, room: None })).into_response()
}

/// The two requests, for those who show the token.
pub fn routes(desk: Arc<Desk>, token: Arc<Token>) -> Router {
    Router::new()
        .route("/register", post(register))
        .route("/register/ready", post(ready))
        .route_layer(middleware::from_fn_with_state(token, authorise))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(desk)
}

async fn authorise(State(token): State<Arc<Token>>, request: Request, next: Next) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if let Err(why) = Token::check(Some(&token), shown) {
        return refused(StatusCode::UNAUTHORIZED, why.to_string());
    }
    http::trust(&request);
    match http::whole(request).await {
        Ok(request) => next.run(request).await,
        Err((status, reason)) => refused(status, reason),
    }
}

async fn register(State(desk): State<Arc<Desk>>, asking: Result<Json<Asking>, JsonRejection>) -> Response {
    match asking {
        Ok(Json(asking)) => desk.asked(asking).map(Json::<Answer>).into_response(),
        Err(error) => refused(error.status(), error.body_text()),
    }
}

async fn ready(State(desk): State<Arc<Desk>>, ready: Result<Json<Ready>, JsonRejection>) -> Response {
    match ready {
        Ok(Json(ready)) => desk.ready(ready).map(|()| StatusCode::NO_CONTENT).into_response(),
        Err(error) => refused(error.status(), error.body_text()),
    }
}
