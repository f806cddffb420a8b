//! The other end of the control interface, for the coordinator: blocking, one method per request.

use std::time::{Duration, Instant};

use node::clock::StartOrder;
use node::control::Token;
use node::control::api::{Adoption, CalibrateOrder, Calibration, ConnectOrder, Failure, LinksOrder, Status};
use node::peer_address::PeerAddress;
use scheduler::{Event, TimedJob};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The status of an answer that an order does not fit the state of the node.
const CONFLICT: u16 = 409;

/// The status of an answer of a node that is stopping, or, with the room that there is, of one that is busy.
const UNAVAILABLE: u16 = 503;

/// A request is given up after this. Pages of events and portions of jobs take far less on a local network.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer: a page of 100,000 events is some 20 MB.
const ANSWER_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Jobs in one request, so that each stays far below the limit of its size.
const JOBS_PORTION: usize = 10_000;
/// How long a node may be busy without taking a job.
const BUSY_PATIENCE: Duration = Duration::from_secs(60);
/// How often a busy node is asked again.
const BUSY_POLL: Duration = Duration::from_millis(100);
/// How often a condition is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(20);

/// Why a request to a node did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There was no answer, or none that makes sense.
    #[error("{request}: {error}")]
    Request {
        /// Method and address.
        request: String,
        /// What went wrong.
        error: Box<ureq::Error>,
    },
    /// The node refused.
    #[error("{request}: refused with status {status}: {reason}")]
    Refused {
        /// Method and address.
        request: String,
        /// Status code of the HTTP answer.
        status: u16,
        /// The node's reason.
        reason: String,
        /// Of a node that is busy: how many jobs it has room for.
        room: Option<usize>,
    },
    /// An event that cannot be read.
    #[error("{request}: line {line} is no event: {error}")]
    Event {
        /// Method and address.
        request: String,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// The node has no room for jobs, and gets none.
    #[error("node {http} is busy: it took {taken} of {given} jobs and no more within {patience:?}")]
    Busy {
        /// Its control interface.
        http: String,
        /// Jobs that it took.
        taken: usize,
        /// Jobs to be handed over.
        given: usize,
        /// How long it took none.
        patience: Duration,
    },
    /// A node did not reach a state in time.
    #[error("node {http} did not become ready within {patience:?}: {missing}")]
    NotReady {
        /// Its control interface.
        http: String,
        /// How long was waited.
        patience: Duration,
        /// What is missing.
        missing: String,
    },
}

impl ClientError {
    /// Whether the node may have ended, or be about to: there was no answer, or that it is stopping.
    pub fn is_of_one_that_ends(&self) -> bool {
        match self {
            ClientError::Request { .. } => true,
            ClientError::Refused { status, room: None, .. } => *status == UNAVAILABLE,
            _ => false,
        }
    }
}

/// One node, seen through its control interface.
#[derive(Clone, Debug)]
pub struct NodeClient {
    agent: ureq::Agent,
    http: String,
    token: Option<Token>,
}

impl NodeClient {
    /// A client of the control interface at this address, such as `127.0.0.1:4000`. Without the node's token it
    /// can do nothing but read metrics.
    pub fn new(http: &str, token: Option<Token>) -> NodeClient {
        NodeClient::with_timeout(http, token, TIMEOUT)
    }

    /// The same; each request is given up after this long.
    pub fn with_timeout(http: &str, token: Option<Token>, timeout: Duration) -> NodeClient {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(timeout))
            // Never through a proxy: nodes are on the local network.
            .proxy(None)
            .build();
        NodeClient { agent: config.into(), http: http.to_string(), token }
    }

    /// The address of the control interface.
    pub fn http(&self) -> &str {
        &self.http
    }

    /// The node as of now.
    ///
    /// # Errors
    /// If the node does not answer.
    pub fn status(&self) -> Result<Status, ClientError> {
        self.get_json("/status")
    }

    /// The page for Prometheus.
    ///
    /// # Errors
    /// If the node does not answer.
    pub fn metrics(&self) -> Result<String, ClientError> {
        self.get_text("/metrics").map(|(_, text)| text)
    }

    /// Makes the addresses of other sites known to the node.
    ///
    /// # Errors
    /// If the node refuses one or does not answer.
    pub fn connect(&self, peers: &[PeerAddress]) -> Result<(), ClientError> {
        self.post("/control/connect", &ConnectOrder { peers: peers.to_vec() })
    }

    /// Lets the node measure round trips of small frames to all other sites.
    ///
    /// # Errors
    /// If the node does not answer.
    pub fn calibrate(&self, rounds: usize) -> Result<Calibration, ClientError> {
        let (request, text) = self.post_text("/control/calibrate", &CalibrateOrder { rounds })?;
        serde_json::from_str(&text).map_err(|error| failed(&request, ureq::Error::Json(error)))
    }

    /// Orders the start of trace time.
    ///
    /// # Errors
    /// If it was ordered before, or the node does not answer.
    pub fn start(&self, order: &StartOrder) -> Result<(), ClientError> {
        self.post("/control/start", order)
    }

    /// Stops the trace clock: how it stands. [`NodeClient::start`] lets it go on.
    ///
    /// # Errors
    /// If it does not run, or the node does not answer.
    pub fn pause(&self) -> Result<StartOrder, ClientError> {
        let (request, text) = self.post_text("/control/pause", &())?;
        serde_json::from_str(&text).map_err(|error| failed(&request, ureq::Error::Json(error)))
    }

    /// Hands over jobs, in portions; waits while the node is busy. Their submission should be ahead.
    ///
    /// # Errors
    /// If the node refuses a portion, is busy for too long, or does not answer; portions before have been taken.
    pub fn jobs(&self, jobs: &[TimedJob]) -> Result<(), ClientError> {
        let mut taken = 0;
        let mut since = Instant::now();
        while taken < jobs.len() {
            match self.offer(&jobs[taken..])? {
                0 if since.elapsed() >= BUSY_PATIENCE => {
                    let (http, given) = (self.http.clone(), jobs.len());
                    return Err(ClientError::Busy { http, taken, given, patience: BUSY_PATIENCE });
                }
                0 => std::thread::sleep(BUSY_POLL),
                more => (taken, since) = (taken + more, Instant::now()),
            }
        }
        Ok(())
    }

    /// Hands over as many of these jobs, from the first on, as the node has room for: their number.
    ///
    /// # Errors
    /// If the node refuses them for another reason, or does not answer; portions before have been taken.
    pub fn offer(&self, jobs: &[TimedJob]) -> Result<usize, ClientError> {
        self.offer_by("/control/jobs", jobs)
    }

    /// The same, where the node may have some of them already: those are left out.
    ///
    /// # Errors
    /// As for [`NodeClient::offer`].
    pub fn offer_again(&self, jobs: &[TimedJob]) -> Result<usize, ClientError> {
        self.offer_by("/control/jobs?again=true", jobs)
    }

    fn offer_by(&self, path: &str, jobs: &[TimedJob]) -> Result<usize, ClientError> {
        let mut taken = 0;
        let mut portion = JOBS_PORTION;
        while taken < jobs.len() && portion > 0 {
            let some = &jobs[taken..jobs.len().min(taken + portion)];
            match self.post(path, &some) {
                Ok(()) => taken += some.len(),
                // Fewer may have room; more never have.
                Err(ClientError::Refused { room: Some(room), .. }) => portion = room.min(some.len() - 1),
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    /// At most `limit` events from number `from` on. The next page starts at `from` plus their number.
    ///
    /// # Errors
    /// If the node has forgotten the first of them or does not answer.
    pub fn events(&self, from: u64, limit: usize) -> Result<Vec<Event>, ClientError> {
        let (request, text) = self.get_text(&format!("/control/events?from={from}&limit={limit}"))?;
        text.lines()
            .enumerate()
            .map(|(index, line)| {
                serde_json::from_str(line).map_err(|error| ClientError::Event {
                    request: request.clone(),
                    line: index + 1,
                    error,
                })
            })
            .collect()
    }

    /// Tells the site to leave: to give its waiting jobs away, finish what executes, and take no more.
    ///
    /// # Errors
    /// If its clock does not run, sites do not say that they are there, or it does not answer.
    pub fn leave(&self) -> Result<(), ClientError> {
        self.post("/control/leave", &())
    }

    /// Cuts these links at this end, and restores all others.
    ///
    /// # Errors
    /// If a site is not another one of the grid, the node runs in lockstep, or it does not answer.
    pub fn links(&self, order: &LinksOrder) -> Result<(), ClientError> {
        self.post("/control/links", order)
    }

    /// Gives jobs to the site that nobody is left to be responsible for. Those that it has under this epoch or a later
    /// one are left out.
    ///
    /// # Errors
    /// As for [`NodeClient::leave`], or if it can never execute one of them.
    pub fn adopt(&self, adoptions: &[Adoption]) -> Result<(), ClientError> {
        for portion in adoptions.chunks(JOBS_PORTION) {
            self.post("/control/adopt", &portion)?;
        }
        Ok(())
    }

    /// Tells the node to crash: it ends at once and does not answer.
    ///
    /// # Errors
    /// If it refuses.
    pub fn crash(&self) -> Result<(), ClientError> {
        match self.post("/control/crash", &()) {
            // It is gone, or was before.
            Err(ClientError::Request { .. }) => Ok(()),
            answered => answered,
        }
    }

    /// Tells the node to stop. It answers first.
    ///
    /// # Errors
    /// If it does not.
    pub fn stop(&self) -> Result<(), ClientError> {
        self.post("/control/stop", &())
    }

    /// Tells the node to stop if its site has left. Whether it has.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn stop_if_left(&self) -> Result<bool, ClientError> {
        match self.post("/control/stop?left=true", &()) {
            Ok(()) => Ok(true),
            Err(ClientError::Refused { status: CONFLICT, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until the node is connected to all others.
    ///
    /// # Errors
    /// If it is not within `patience`, or does not answer.
    pub fn wait_ready(&self, patience: Duration) -> Result<Status, ClientError> {
        let deadline = Instant::now() + patience;
        loop {
            let status = self.status()?;
            if status.connected {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                let missing: Vec<String> = status
                    .links
                    .iter()
                    .filter(|link| !link.connected || link.rtt_us.is_none())
                    .map(|link| {
                        let problem = link.problem.as_deref().unwrap_or("not connected");
                        format!("{} ({problem})", link.name)
                    })
                    .collect();
                let (http, missing) = (self.http.clone(), missing.join(", "));
                return Err(ClientError::NotReady { http, patience, missing });
            }
            std::thread::sleep(POLL);
        }
    }

    fn get_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let (request, text) = self.get_text(path)?;
        serde_json::from_str(&text).map_err(|error| failed(&request, ureq::Error::Json(error)))
    }

    fn get_text(&self, path: &str) -> Result<(String, String), ClientError> {
        let url = format!("http://{}{path}", self.http);
        let request = format!("GET {url}");
        let mut asking = self.agent.get(&url);
        if let Some(token) = &self.token {
            asking = asking.header("authorization", token.header().as_str());
        }
        let answer = asking.call().map_err(|error| failed(&request, error))?;
        let text = read(&request, answer)?;
        Ok((request, text))
    }

    fn post(&self, path: &str, body: &impl Serialize) -> Result<(), ClientError> {
        self.post_text(path, body).map(drop)
    }

    fn post_text(&self, path: &str, body: &impl Serialize) -> Result<(String, String), ClientError> {
        let url = format!("http://{}{path}", self.http);
        let request = format!("POST {url}");
        let mut asking = self.agent.post(&url);
        if let Some(token) = &self.token {
            asking = asking.header("authorization", token.header().as_str());
        }
        let answer = asking.send_json(body).map_err(|error| failed(&request, error))?;
        let text = read(&request, answer)?;
        Ok((request, text))
    }
}

fn failed(request: &str, error: ureq::Error) -> ClientError {
    ClientError::Request { request: request.to_string(), error: Box::new(error) }
}

/// The text of an answer, if it is a good one.
fn read(request: &str, mut answer: ureq::http::Response<ureq::Body>) -> Result<String, ClientError> {
    let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
    let text = text.map_err(|error| failed(request, error))?;
    if answer.status().is_success() {
        return Ok(text);
    }
    let failure = serde_json::from_str(&text).unwrap_or(Failure { reason: text, room: None });
    let (request, status) = (request.to_string(), answer.status().as_u16());
    Err(ClientError::Refused { request, status, reason: failure.reason, room: failure.room })
}
