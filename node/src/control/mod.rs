//! The control interface: what the coordinator, Prometheus and people ask of a node over HTTP.
//!
//! | request | for |
//! |---|---|
//! | `GET /metrics` | Prometheus, text format |
//! | `GET /healthz` | 200 while the event loop answers |
//! | `GET /readyz` | 200 once all sites are connected and have answered a probe, else 503 |
//! | `GET /status` | [`api::Status`] |
//! | `POST /control/connect` | [`api::ConnectOrder`]: addresses of other sites |
//! | `POST /control/calibrate` | [`api::CalibrateOrder`]: measure round trips; answers [`api::Calibration`] |
//! | `POST /control/start` | [`crate::clock::StartOrder`]: when trace time begins, and how fast |
//! | `POST /control/pause` | stop the trace clock: nothing is due until another start is ordered; answers where it stands, as a start that never comes |
//! | `POST /control/jobs` | an array of `TimedJob`, held until their submission; may be sent in portions. With `?again=true` those that the node knows are left out |
//! | `GET /control/events?from=N&limit=M` | events from number N on, one JSON object a line |
//! | `POST /control/lockstep` with an upgrade | orders in virtual time; see [`crate::lockstep`] |
//! | `POST /control/leave` | give the waiting jobs away, finish what executes, and take no more |
//! | `POST /control/adopt` | an array of [`api::Adoption`]: jobs of a site that never comes back |
//! | `POST /control/links` | [`api::LinksOrder`]: which links are cut from now on: messages to and from these sites are lost |
//! | `POST /control/stop` | end the process. With `?left=true` only if the site has left, else 409 |
//! | `POST /control/crash` | end the process at once, as a crash would, without an answer |
//!
//! Orders answer 204 or an [`api::Failure`] with the reason. All but the first three need the node's token:
//! `Authorization: Bearer TOKEN`, else 401. On its own port, never delayed, on no decision's path.

pub mod api;
mod refusal;
pub(crate) mod serve;
pub(crate) mod server;
mod token;

pub(crate) use refusal::{Occupied, StillThere, Uncut, Unready};
pub use token::{Token, TokenError, Unauthorised};

use hyper::upgrade::OnUpgrade;
use std::time::Duration;

use scheduler::{Event, SiteId, TimedJob};
use tokio::sync::oneshot;

use crate::arrivals::ArrivalsError;
use crate::clock::{ClockError, StartOrder};
use crate::journal::error::NoEvents;
use crate::peer_address::PeerAddress;

/// Commands on their way to the event loop. Arbitrary; a full channel makes requests wait.
pub(crate) const COMMANDS_MAX: usize = 64;

/// What the event loop is asked, each with the way back.
pub(crate) enum Command {
    Status(oneshot::Sender<Box<api::Status>>),
    Metrics(oneshot::Sender<String>),
    /// Half of the median round trip to each site.
    Calibrated(Vec<(SiteId, Duration)>),
    Start(StartOrder, oneshot::Sender<Result<(), ClockError>>),
    /// Stop the trace clock: how it stands.
    Pause(oneshot::Sender<Result<StartOrder, ClockError>>),
    /// Jobs to come. Those that are known already are an error, or left out.
    Jobs {
        jobs: Vec<TimedJob>,
        again: bool,
        answer: oneshot::Sender<Result<(), ArrivalsError>>,
    },
    /// Give the jobs away.
    Leave(oneshot::Sender<Result<(), Unready>>),
    /// Take over jobs of a site that never comes back.
    Adopt(Vec<api::Adoption>, oneshot::Sender<Result<(), Unready>>),
    /// Links that are cut from now on; all others are restored.
    Links(api::LinksOrder, oneshot::Sender<Result<(), Uncut>>),
    /// Where other sites listen, as somebody said. Answered when it is kept.
    Addresses(Vec<PeerAddress>, oneshot::Sender<()>),
    Events {
        from: u64,
        limit: usize,
        answer: oneshot::Sender<Result<Vec<Event>, NoEvents>>,
    },
    Lockstep(OnUpgrade, oneshot::Sender<Result<(), Occupied>>),
    /// End the process; perhaps only if the site has left.
    Stop {
        left: bool,
        answer: oneshot::Sender<Result<(), StillThere>>,
    },
}
