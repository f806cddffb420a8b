//! By which names a door may be asked.
//!
//! A page of somebody else, open in the browser of a person who reaches the door, may have a name that leads here: its
//! owner changes the address of the name after the page was loaded (DNS rebinding), and the page reads what it could not
//! otherwise. The browser says by which name it asks. An address is no name, and one without a dot is none that anybody
//! can own in the public system of names, but is what services are called within Compose, Swarm and a namespace of
//! Kubernetes. Every other name must be one that the user has given the door.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};

/// Names of one door.
#[derive(Debug, Default)]
pub struct Hosts {
    /// In small letters.
    own: Vec<String>,
    /// The option that takes further ones.
    option: &'static str,
    refused: AtomicU64,
}

impl Hosts {
    /// With names of its own, beside those that every door has; the user gives further ones with that option.
    pub fn new(own: impl IntoIterator<Item = String>, option: &'static str) -> Hosts {
        let own = own.into_iter().map(|name| name.trim_matches(['[', ']']).to_ascii_lowercase()).collect();
        Hosts { own, option, refused: AtomicU64::new(0) }
    }

    /// Whether a value of the header `Host` is one of this door.
    pub fn admits(&self, host: &str) -> bool {
        let name = name_of(host);
        self.is_own(host) || !name.contains('.') || name.ends_with(".localhost")
    }

    /// The same, but not by a name without a dot: on a local network anybody may claim one.
    pub fn is_own(&self, host: &str) -> bool {
        let name = name_of(host);
        name.parse::<IpAddr>().is_ok() || name == "localhost" || self.own.contains(&name)
    }

    /// Requests by other names.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Lets only requests by these names through to these pages.
    pub fn guard<S: Clone + Send + Sync + 'static>(self: &Arc<Hosts>, pages: Router<S>) -> Router<S> {
        pages.route_layer(middleware::from_fn_with_state(Arc::clone(self), check))
    }
}

async fn check(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let named = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or("?").to_string());
    // A request without either is of no browser.
    let asked = named.into_iter().chain(request.uri().authority().map(ToString::to_string));
    let foreign = asked.into_iter().find(|host| !hosts.admits(host));
    let Some(foreign) = foreign else { return next.run(request).await };
    hosts.refused.fetch_add(1, Ordering::Relaxed);
    let reason = format!(
        "{foreign} is no name of this server; ask by its address, by a name without a dot, or allow the name with {}\n",
        hosts.option
    );
    (StatusCode::FORBIDDEN, reason).into_response()
}

/// The name in a value of the header `Host`, in small letters: without the port, the brackets of an address and the dot
/// that may end a name.
fn name_of(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    name.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_names_without_a_dot_and_own_names_are_admitted() {
        let hosts = Hosts::new(["Grid.example".to_string()], "--serve-host");
        for own in [
            "127.0.0.1:8080",
            "[::1]:8080",
            "192.168.0.7",
            "localhost",
            "LOCALHOST:80",
            "a.localhost:1",
            "coordinator:8080",
            "grid.example",
            "GRID.example:8080",
            "grid.example.:8080",
        ] {
            assert!(hosts.admits(own), "{own}");
        }
        for foreign in
            ["rebound.example:8080", "grid.example.evil.example", "127.0.0.1.evil.example", "?.?", "1.2.3"]
        {
            assert!(!hosts.admits(foreign), "{foreign}");
        }
        for (host, own) in
            [("coordinator:8080", false), ("grid.example", true), ("[::1]:80", true), ("localhost", true)]
        {
            assert_eq!(hosts.is_own(host), own, "{host}");
        }
    }
}
