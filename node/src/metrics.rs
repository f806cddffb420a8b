//! Prometheus metrics of one site, derived from its events: what is scraped and what is reported cannot disagree.
//!
//! [`Metrics::observe`] is the one door for everything that jobs and messages do. Only what no event can tell comes
//! otherwise: the state of links, the trace clock, and limits that were hit. No label carries a job; every label set
//! that is known beforehand starts at 0.

#[cfg(test)]
mod tests;
mod totals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};
use scheduler::event::{DeclineReason, MessageKind};
use scheduler::{Event, EventKind, Grid, JobId, JobSpec, SiteId, Span, Strategy, Threshold, Time};

use crate::control::serve::ControlCounters;
use crate::network::Counts;
use crate::refusals::Refusals;

use self::totals::Distribution;
pub use self::totals::Totals;

/// What the page is, for scrapers that insist on knowing.
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// Buckets of waiting times in seconds of trace time: from a second to a day, as batch queues have them.
const WAIT_BUCKETS: [f64; 11] =
    [1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0];
/// Buckets of the time from asking for work to the answer, in seconds of trace time.
const STEAL_BUCKETS: [f64; 11] = [0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0, 300.0, 1200.0];
/// Buckets of how late a timer was noticed, in seconds of wall-clock time.
const LATENESS_BUCKETS: [f64; 7] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.1, 1.0];

const DIRECTIONS: [&str; 4] = ["sent", "received", "lost", "ignored"];
const OUTCOMES: [&str; 5] = ["granted", "empty", "too_wide", "busy", "margin"];
const CLASSES: [&str; 3] = ["A", "B", "H"];
/// Of a start with a journal: the file, what it says, listening and dialing, and making a peer and metrics of it.
const RESTART_STEPS: [&str; 4] = ["open", "read", "network", "restore"];
const STATES: [&str; 3] = ["queued", "running", "leaving"];
/// What the site may believe of another.
const PRESENCES: [&str; 4] = ["here", "suspected", "leaving", "gone"];
/// Changes of that.
const BELIEFS: [&str; 4] = ["suspected", "heard", "gone", "left"];

/// A limit of the node that can be hit, for the metric that counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Frames waiting to be sent.
    Outbox,
    /// Frames waiting to be handled.
    Inbox,
    /// Messages being delayed.
    DelayLine,
    /// Jobs held until their submission, and waiting.
    Jobs,
    /// Events kept in memory.
    Events,
    /// Bytes of a frame.
    FrameBytes,
    /// Frames and requests a second from one node.
    Rate,
    /// Connections with other nodes.
    Connections,
    /// Streams on one connection.
    Streams,
    /// Time without an answer from another node.
    LinkSilence,
    /// Connections to the control interface.
    ControlConnections,
    /// Bytes of a request to the control interface.
    ControlBody,
    /// Time of a request to the control interface.
    ControlTime,
}

impl Limit {
    /// All limits.
    pub const ALL: [Limit; 13] = [
        Limit::Outbox,
        Limit::Inbox,
        Limit::DelayLine,
        Limit::Jobs,
        Limit::Events,
        Limit::FrameBytes,
        Limit::Rate,
        Limit::Connections,
        Limit::Streams,
        Limit::LinkSilence,
        Limit::ControlConnections,
        Limit::ControlBody,
        Limit::ControlTime,
    ];

    /// The name in metrics and in `/status`.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Outbox => "outbox",
            Limit::Inbox => "inbox",
            Limit::DelayLine => "delay_line",
            Limit::Jobs => "jobs",
            Limit::Events => "events",
            Limit::FrameBytes => "frame_bytes",
            Limit::Rate => "rate",
            Limit::Connections => "connections",
            Limit::Streams => "streams",
            Limit::LinkSilence => "link_silence",
            Limit::ControlConnections => "control_connections",
            Limit::ControlBody => "control_body",
            Limit::ControlTime => "control_time",
        }
    }
}

/// What is known of a job at this site.
#[derive(Clone, Copy, Debug)]
struct Known {
    submit: Time,
    class: &'static str,
    /// `queued` or `running` here, or neither.
    state: Option<&'static str>,
}

/// The metrics of one site.
pub struct Metrics {
    registry: Registry,
    site: SiteId,
    grid: Arc<Grid>,
    threshold: Threshold,
    known: BTreeMap<JobId, Known>,
    /// Class of the jobs in unsettled transfers, by receiver and number.
    leaving: BTreeMap<(SiteId, u64), (JobId, &'static str)>,
    requested: BTreeMap<(SiteId, u64), Time>,
    limits_seen: BTreeMap<Limit, u64>,
    /// What the site believes of others; those that are not here.
    presence: BTreeMap<SiteId, &'static str>,
    stranded: BTreeSet<JobId>,
    processors_idle: i64,

    processors: IntGaugeVec,
    jobs: IntGaugeVec,
    submitted: IntCounter,
    started: IntCounter,
    finished: IntCounter,
    interrupted: IntCounterVec,
    restarts: IntCounter,
    rejoin: Gauge,
    orphaned: Gauge,
    restart_steps: GaugeVec,
    journal_commits: IntCounter,
    membership: IntCounterVec,
    sites: IntGaugeVec,
    taken_over: IntCounter,
    superseded: IntCounterVec,
    stranded_total: IntCounter,
    stranded_now: IntGauge,
    granted: IntCounter,
    stolen: IntCounter,
    routed_in: IntCounter,
    declined: IntCounterVec,
    returned: IntCounter,
    steal_requests: IntCounterVec,
    steal_rtt: Distribution,
    wait: Distribution,
    messages: IntCounterVec,
    retries: IntCounterVec,
    events: IntCounter,
    malformed: IntCounter,
    lateness: Histogram,
    connected: IntGaugeVec,
    link_rtt: GaugeVec,
    link_delay: GaugeVec,
    link_delay_configured: GaugeVec,
    link_intrinsic: GaugeVec,
    link_absence: GaugeVec,
    limit_hits: IntCounterVec,
    refusals: Refusals,
    trace_time: Gauge,
    ready: Gauge,
}

/// Adds one metric to the registry. Names and labels are constants of this file, so nothing can go wrong that a
/// test would not show.
pub(crate) fn register<C: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    metric: prometheus::Result<C>,
) -> C {
    let metric = metric.expect("names and labels are valid");
    registry.register(Box::new(metric.clone())).expect("names are unique");
    metric
}

impl Metrics {
    /// Metrics of an idle site with nothing in its queue.
    pub fn new(site: SiteId, grid: Arc<Grid>, strategy: &Strategy) -> Metrics {
        let name = grid.site(site).name.clone();
        let labels = [("site".to_string(), name)].into_iter().collect();
        let registry = Registry::new_custom(None, Some(labels)).expect("the label is valid");
        let r = &registry;
        let counter = |name: &str, help: &str| register(r, IntCounter::new(name, help));
        let counters = |name: &str, help: &str, labels: &[&str]| {
            register(r, IntCounterVec::new(Opts::new(name, help), labels))
        };
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            register(r, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        let seconds = |name: &str, help: &str, labels: &[&str]| {
            register(r, GaugeVec::new(Opts::new(name, help), labels))
        };
        let distribution =
            |name: &str, help: &str, buckets: &[f64]| register(r, Distribution::new(name, help, buckets));
        let histogram = |name: &str, help: &str, buckets: &[f64]| {
            register(r, Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec())))
        };
        let gauge = |name: &str, help: &str| register(r, Gauge::new(name, help));

        let build = gauges("stealgrid_build_info", "Always 1; the labels say what runs.", &["version"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let threshold = strategy.threshold();
        let metrics = Metrics {
            site,
            threshold,
            known: BTreeMap::new(),
            leaving: BTreeMap::new(),
            requested: BTreeMap::new(),
            limits_seen: BTreeMap::new(),
            presence: BTreeMap::new(),
            stranded: BTreeSet::new(),
            processors_idle: i64::from(grid.site(site).processors),
            processors: gauges("stealgrid_processors", "Processors of the site.", &["state"]),
            jobs: gauges(
                "stealgrid_jobs",
                "Jobs at the site. Class A is big and B small at home, H came from another site.",
                &["state", "class"],
            ),
            submitted: counter("stealgrid_jobs_submitted_total", "Jobs whose first owner the site was."),
            started: counter("stealgrid_jobs_started_total", "Jobs started at the site."),
            finished: counter("stealgrid_jobs_finished_total", "Jobs that ended at the site."),
            interrupted: counters(
                "stealgrid_jobs_interrupted_total",
                "Jobs that executed here when the node crashed, by what became of them.",
                &["outcome"],
            ),
            restarts: counter("stealgrid_restarts_total", "How often the node went on with its journal."),
            orphaned: gauge(
                "stealgrid_orphaned_seconds",
                "Wall-clock time without a coordinator; after orphan_secs of it the node ends.",
            ),
            rejoin: gauge(
                "stealgrid_rejoin_seconds",
                "From the last restart with a journal until all sites were connected, in wall-clock time.",
            ),
            restart_steps: seconds(
                "stealgrid_restart_seconds",
                "What the start of this process took that went on with a journal, by its steps, in wall-clock time.",
                &["step"],
            ),
            journal_commits: counter(
                "stealgrid_journal_commits_total",
                "How often this process wrote to its journal.",
            ),
            membership: counters(
                "stealgrid_membership_events_total",
                "How often the site came to believe something else of another.",
                &["event"],
            ),
            sites: gauges(
                "stealgrid_sites",
                "Other sites, by what the site believes of them.",
                &["presence"],
            ),
            taken_over: counter(
                "stealgrid_jobs_taken_over_total",
                "Jobs taken over from sites that were gone; they may have run there.",
            ),
            superseded: counters(
                "stealgrid_jobs_superseded_total",
                "Jobs here that turned out to be taken over: dropped, or executing and so running twice.",
                &["state"],
            ),
            stranded_total: counter(
                "stealgrid_jobs_stranded_total",
                "How often a job came to wait here because no site that was there was wide enough.",
            ),
            stranded_now: register(
                r,
                IntGauge::new(
                    "stealgrid_jobs_stranded",
                    "Jobs that wait here for a site that is wide enough.",
                ),
            ),
            granted: counter("stealgrid_jobs_granted_total", "Jobs given away, repeated after each decline."),
            stolen: counter("stealgrid_jobs_stolen_total", "Jobs taken over from another site's queue."),
            routed_in: counter(
                "stealgrid_jobs_routed_total",
                "Jobs taken over at home that were submitted elsewhere.",
            ),
            declined: counters(
                "stealgrid_jobs_declined_total",
                "Granted jobs the site did not want.",
                &["reason"],
            ),
            returned: counter("stealgrid_jobs_returned_total", "Jobs that came back declined."),
            steal_requests: counters(
                "stealgrid_steal_requests_total",
                "Requests for work by outcome: granted ones at the thief, refused ones at the victim.",
                &["outcome"],
            ),
            steal_rtt: distribution(
                "stealgrid_steal_rtt_seconds",
                "From asking for work to the answer, in trace time.",
                &STEAL_BUCKETS,
            ),
            wait: distribution(
                "stealgrid_job_wait_seconds",
                "From submission to start of the jobs started at the site, in trace time.",
                &WAIT_BUCKETS,
            ),
            messages: counters("stealgrid_messages_total", "Messages between peers.", &["kind", "direction"]),
            retries: counters("stealgrid_messages_repeated_total", "Messages sent again.", &["kind"]),
            events: counter("stealgrid_events_total", "Events of the site's log."),
            malformed: counter(
                "stealgrid_frames_malformed_total",
                "Frames from authenticated nodes that were not understood.",
            ),
            lateness: histogram(
                "stealgrid_timer_lateness_seconds",
                "How late a completion, submission or delayed message was noticed, in wall-clock time.",
                &LATENESS_BUCKETS,
            ),
            connected: gauges("stealgrid_link_connected", "1 if the other site can be reached.", &["peer"]),
            link_rtt: seconds(
                "stealgrid_link_rtt_seconds",
                "Latest round trip of a ping, in wall-clock time.",
                &["peer"],
            ),
            link_delay: seconds(
                "stealgrid_link_delay_seconds",
                "Mean time of messages from the other site, injected and real, in trace time.",
                &["peer"],
            ),
            link_intrinsic: seconds(
                "stealgrid_link_intrinsic_seconds",
                "Half of the median round trip of small frames, measured on order before the start, in wall-clock \
                 time.",
                &["peer"],
            ),
            link_absence: seconds(
                "stealgrid_link_absence_seconds",
                "How long nothing was heard of the other site before it was heard again, the last time, in trace time.",
                &["peer"],
            ),
            link_delay_configured: seconds(
                "stealgrid_link_delay_configured_seconds",
                "Injected delay of messages from the other site, in trace time.",
                &["peer"],
            ),
            limit_hits: counters(
                "stealgrid_limit_hits_total",
                "How often something was dropped because a limit was reached.",
                &["limit"],
            ),
            trace_time: gauge("stealgrid_trace_time_seconds", "Trace time at the scrape."),
            refusals: Refusals::new(r),
            ready: gauge("stealgrid_ready", "1 if all sites are connected and have answered a probe."),
            registry,
            grid,
        };
        metrics.start_at_zero();
        metrics
    }

    /// Creates every series that is known beforehand, so that rates begin with the first event.
    fn start_at_zero(&self) {
        for state in STATES {
            for class in CLASSES {
                self.jobs.with_label_values(&[state, class]).set(0);
            }
        }
        for kind in MessageKind::ALL {
            for direction in DIRECTIONS {
                self.messages.with_label_values(&[kind.name(), direction]).reset();
            }
            self.retries.with_label_values(&[kind.name()]).reset();
        }
        for outcome in OUTCOMES {
            self.steal_requests.with_label_values(&[outcome]).reset();
        }
        for reason in DeclineReason::ALL {
            self.declined.with_label_values(&[reason.name()]).reset();
        }
        for outcome in ["requeued", "killed"] {
            self.interrupted.with_label_values(&[outcome]).reset();
        }
        for event in BELIEFS {
            self.membership.with_label_values(&[event]).reset();
        }
        for state in ["dropped", "executing"] {
            self.superseded.with_label_values(&[state]).reset();
        }
        self.show_presence();
        for step in RESTART_STEPS {
            self.restart_steps.with_label_values(&[step]).set(0.0);
        }
        for limit in Limit::ALL {
            self.limit_hits.with_label_values(&[limit.name()]).reset();
        }
        for other in self.grid.sites().iter().filter(|other| other.id != self.site) {
            self.connected.with_label_values(&[&other.name]).set(0);
            self.link_absence.with_label_values(&[&other.name]).set(0.0);
        }
        self.show_processors();
    }

    /// Notes the description of a job that reaches the site, at submission or in a message: events name jobs only.
    pub fn introduce(&mut self, job: &JobSpec) {
        let class = match self.grid.home(job.processors) {
            Some(home) if home == self.site => {
                let home_processors = self.grid.site(home).processors;
                if self.threshold.is_big(job.processors, home_processors) { "A" } else { "B" }
            }
            _ => "H",
        };
        self.known.entry(job.id).or_insert(Known { submit: job.submit, class, state: None });
    }

    /// Counts one event.
    pub fn observe(&mut self, event: &Event) {
        self.events.inc();
        match event.kind {
            EventKind::Submitted { job, .. } => {
                self.submitted.inc();
                self.place(job, Some("queued"));
            }
            EventKind::Started { job, processors, .. } => {
                self.started.inc();
                self.unstrand(job);
                self.place(job, Some("running"));
                self.processors_idle -= i64::from(processors);
                self.show_processors();
                if let Some(known) = self.known.get(&job) {
                    self.wait.observe(event.at.since(known.submit).as_secs_f64());
                }
            }
            EventKind::Completed { job, processors } => {
                self.finished.inc();
                self.place(job, None);
                self.known.remove(&job);
                self.processors_idle += i64::from(processors);
                self.show_processors();
            }
            EventKind::Granted { job, to, transfer, .. } => {
                self.granted.inc();
                self.unstrand(job);
                self.place(job, None);
                if let Some(known) = self.known.get(&job) {
                    self.leaving.insert((to, transfer), (job, known.class));
                    self.jobs.with_label_values(&["leaving", known.class]).inc();
                }
            }
            EventKind::Accepted { job, .. } => {
                let stolen = self.known.get(&job).is_none_or(|known| known.class == "H");
                if stolen { &self.stolen } else { &self.routed_in }.inc();
                self.place(job, Some("queued"));
            }
            EventKind::Declined { reason, .. } => {
                self.declined.with_label_values(&[reason.name()]).inc();
            }
            EventKind::Returned { job, by, transfer, .. } => {
                self.returned.inc();
                self.left(by, transfer);
                self.place(job, Some("queued"));
            }
            EventKind::Settled { to, transfer, .. } => self.left(to, transfer),
            EventKind::Requested { victim, seq, .. } => {
                // The first asking counts; a repetition has the same number.
                self.requested.entry((victim, seq)).or_insert(event.at);
            }
            EventKind::Answered { victim, seq, jobs } => {
                if jobs > 0 {
                    self.steal_requests.with_label_values(&["granted"]).inc();
                }
                if let Some(asked) = self.requested.remove(&(victim, seq)) {
                    self.steal_rtt.observe(event.at.since(asked).as_secs_f64());
                }
            }
            EventKind::Refused { reason, .. } => {
                self.steal_requests.with_label_values(&[reason.name()]).inc();
            }
            EventKind::Sent { message, retry, .. } => {
                self.message(message, "sent");
                if retry {
                    self.retries.with_label_values(&[message.name()]).inc();
                }
            }
            EventKind::Received { message, .. } => self.message(message, "received"),
            EventKind::Ignored { message, .. } => self.message(message, "ignored"),
            EventKind::Lost { message, .. } => self.message(message, "lost"),
            EventKind::Offered { .. }
            | EventKind::Withdrawn { .. }
            | EventKind::Claimed { .. }
            | EventKind::Released { .. }
            | EventKind::Denied { .. }
            | EventKind::Followed { .. }
            // Drivers say these of a site, no site does.
            | EventKind::Ended { .. }
            | EventKind::Begun { .. }
            | EventKind::Dismissed {} => {}
            EventKind::Suspected { peer } => self.believe(peer, "suspected", "suspected"),
            EventKind::Heard { peer, after } => {
                self.believe(peer, "heard", "here");
                let peer = self.grid.site(peer).name.as_str();
                self.link_absence.with_label_values(&[peer]).set(after.as_secs_f64());
            }
            EventKind::Gone { peer } => self.believe(peer, "gone", "gone"),
            EventKind::Left { peer } => self.believe(peer, "left", "leaving"),
            EventKind::TookOver { job, .. } => {
                self.taken_over.inc();
                self.voided(job);
                // A copy that executes here goes on.
                if self.known.get(&job).is_some_and(|known| known.state != Some("running")) {
                    self.place(job, Some("queued"));
                }
            }
            EventKind::Superseded { job, started, .. } => {
                self.voided(job);
                self.superseded.with_label_values(&[if started { "executing" } else { "dropped" }]).inc();
                if !started {
                    self.unstrand(job);
                    self.place(job, None);
                }
            }
            EventKind::Stranded { job, .. } => {
                self.stranded_total.inc();
                self.stranded.insert(job);
                self.show_stranded();
            }
            EventKind::Recovered { .. } => self.restarts.inc(),
            EventKind::Interrupted { job, processors, killed } => {
                self.interrupted.with_label_values(&[if killed { "killed" } else { "requeued" }]).inc();
                self.place(job, (!killed).then_some("queued"));
                self.processors_idle += i64::from(processors);
                self.show_processors();
            }
        }
    }

    fn believe(&mut self, peer: SiteId, event: &'static str, presence: &'static str) {
        self.membership.with_label_values(&[event]).inc();
        match presence {
            "here" => self.presence.remove(&peer),
            _ => self.presence.insert(peer, presence),
        };
        self.show_presence();
    }

    fn show_presence(&self) {
        let others = self.grid.len() - 1;
        for presence in PRESENCES {
            let sites = match presence {
                "here" => others - self.presence.len(),
                _ => self.presence.values().filter(|&&found| found == presence).count(),
            };
            self.sites.with_label_values(&[presence]).set(i64::try_from(sites).unwrap_or(i64::MAX));
        }
    }

    /// A job that was stranded here goes on.
    fn unstrand(&mut self, job: JobId) {
        if self.stranded.remove(&job) {
            self.show_stranded();
        }
    }

    fn show_stranded(&self) {
        self.stranded_now.set(i64::try_from(self.stranded.len()).unwrap_or(i64::MAX));
    }

    fn message(&self, kind: MessageKind, direction: &str) {
        self.messages.with_label_values(&[kind.name(), direction]).inc();
    }

    /// Moves a job to another row of the jobs gauge.
    fn place(&mut self, job: JobId, state: Option<&'static str>) {
        let Some(known) = self.known.get_mut(&job) else { return };
        if let Some(before) = std::mem::replace(&mut known.state, state) {
            self.jobs.with_label_values(&[before, known.class]).dec();
        }
        if let Some(state) = state {
            self.jobs.with_label_values(&[state, known.class]).inc();
        }
    }

    fn left(&mut self, to: SiteId, transfer: u64) {
        if let Some((_, class)) = self.leaving.remove(&(to, transfer)) {
            self.jobs.with_label_values(&["leaving", class]).dec();
        }
    }

    /// A newer epoch of a job makes its transfers void: no answer will be counted.
    fn voided(&mut self, job: JobId) {
        let out = self.leaving.iter().filter(|(_, (other, _))| *other == job);
        let out: Vec<(SiteId, u64)> = out.map(|(&transfer, _)| transfer).collect();
        out.into_iter().for_each(|(to, transfer)| self.left(to, transfer));
    }

    fn show_processors(&self) {
        let all = i64::from(self.grid.site(self.site).processors);
        self.processors.with_label_values(&["idle"]).set(self.processors_idle);
        self.processors.with_label_values(&["busy"]).set(all - self.processors_idle);
    }

    /// Shows how long no coordinator has asked anything.
    pub fn orphaned(&self, since: Duration) {
        self.orphaned.set(since.as_secs_f64());
    }

    /// Shows how long the node took to find all others again.
    pub fn rejoined(&self, after: Duration) {
        self.rejoin.set(after.as_secs_f64());
    }

    /// Shows what the steps of a start with a journal took: the file, reading it, the network, and the rest.
    pub(crate) fn restarted(&self, took: [Duration; RESTART_STEPS.len()]) {
        for (step, took) in RESTART_STEPS.iter().zip(took) {
            self.restart_steps.with_label_values(&[*step]).set(took.as_secs_f64());
        }
    }

    /// Jobs that were given up because the node crashed while they executed.
    pub fn killed(&self) -> u64 {
        self.interrupted.with_label_values(&["killed"]).get()
    }

    /// Counts a write to the journal.
    pub fn journal_written(&self) {
        self.journal_commits.inc();
    }

    /// Counts a frame that was not understood.
    pub fn malformed(&self) {
        self.malformed.inc();
    }

    /// Notes how late something was noticed.
    pub fn late(&self, lateness: Duration) {
        self.lateness.observe(lateness.as_secs_f64());
    }

    /// Shows a link as it is: whether it is up, its latest round trip, and the injected and mean measured delay of
    /// messages from there.
    pub fn link(
        &self,
        peer: SiteId,
        connected: bool,
        rtt: Option<Duration>,
        configured: Span,
        measured: Option<Span>,
    ) {
        let name = [&self.grid.site(peer).name];
        self.connected.with_label_values(&name).set(i64::from(connected));
        self.link_delay_configured.with_label_values(&name).set(configured.as_secs_f64());
        if let Some(rtt) = rtt {
            self.link_rtt.with_label_values(&name).set(rtt.as_secs_f64());
        }
        if let Some(measured) = measured {
            self.link_delay.with_label_values(&name).set(measured.as_secs_f64());
        }
    }

    /// Shows what was measured of a link before the start: one way, on the wall clock.
    pub fn calibrated(&self, peer: SiteId, one_way: Duration) {
        let name = [&self.grid.site(peer).name];
        self.link_intrinsic.with_label_values(&name).set(one_way.as_secs_f64());
    }

    /// Shows how often a limit was hit so far.
    pub fn limit(&mut self, limit: Limit, hits: u64) {
        let seen = self.limits_seen.insert(limit, hits).unwrap_or(0);
        self.limit_hits.with_label_values(&[limit.name()]).inc_by(hits.saturating_sub(seen));
    }

    /// Shows what was refused to whom so far.
    pub(crate) fn refusals(&self, network: &Counts, control: &ControlCounters) {
        self.refusals.show(network, control);
    }

    /// Shows the trace clock and whether all sites are there.
    pub fn clock(&self, now: Time, ready: bool) {
        self.trace_time.set(now.as_secs_f64());
        self.ready.set(if ready { 1.0 } else { 0.0 });
    }

    /// Jobs in transfers that are not settled.
    #[cfg(test)]
    fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Jobs submitted and ended here so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.submitted.get(), self.finished.get())
    }

    /// The page for Prometheus, in its text format.
    pub fn page(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .expect("all metrics have a name and values")
    }
}
