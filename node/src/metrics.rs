//! Prometheus metrics of one site, derived from its events: what is scraped and what is reported cannot disagree.
//!
//! [`Metrics::observe`] is the one door for everything that jobs and messages do. Only what no event can tell comes
//! otherwise: the state of links, the trace clock, and limits that were hit. No label carries a job; every label set
//! that is known beforehand starts at 0.

mod cells;
mod described;
mod limit;
mod refusals;
mod series;
mod sharing;
#[cfg(test)]
mod tests;
mod totals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use prometheus::{Registry, TextEncoder};
use protocol::message::Transfer;
use scheduler::event::MessageKind;
use scheduler::job::SLOWDOWN_BOUND;
use scheduler::{Event, EventKind, Grid, JobId, JobSpec, SiteId, Span, Strategy, Threshold, Time};

use crate::control::serve::ControlCounters;
use crate::measured::Measured;
use crate::network::Counts;

pub use self::described::{Described, described, of_site};
pub use self::limit::Limit;
pub use self::series::register;
use self::series::{CLASSES, PRESENCES, RESTART_STEPS, Series};
use self::sharing::Sharing;
pub use self::totals::Totals;

/// What the page is, for scrapers that insist on knowing.
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// What is known of a job at this site.
#[derive(Clone, Copy, Debug)]
struct JobState {
    submit: Time,
    class: &'static str,
    /// `queued` or `running` here, or neither.
    state: Option<&'static str>,
    /// When it started here, if it executes.
    started: Option<Time>,
}

/// A node with this in its environment counts only what its coordinator must know: the reference of `stealgrid bench
/// metrics`, for nothing else.
pub const UNCOUNTED: &str = "STEALGRID_BENCH_UNCOUNTED";

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Sent,
    Received,
}

/// What is noticed when it is due, or late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// A job ends.
    Completion,
    /// A job is submitted.
    Submission,
    /// A message has waited for as long as its delay says.
    Message,
}

impl Late {
    /// All of it.
    pub const ALL: [Late; 3] = [Late::Completion, Late::Submission, Late::Message];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Late::Completion => "completion",
            Late::Submission => "submission",
            Late::Message => "message",
        }
    }
}

/// The metrics of one site.
pub struct Metrics {
    registry: Registry,
    site: SiteId,
    grid: Arc<Grid>,
    threshold: Threshold,
    known: BTreeMap<JobId, JobState>,
    /// When transfers of this incarnation were granted that are not settled, by receiver and number.
    granted: BTreeMap<(SiteId, u64), Time>,
    requested: BTreeMap<(SiteId, u64), Time>,
    limits_seen: BTreeMap<Limit, u64>,
    /// What the site believes of others; those that are not here.
    presence: BTreeMap<SiteId, &'static str>,
    orphaned: BTreeSet<JobId>,
    sharing: Sharing,
    processors_idle: i64,
    series: Series,
    /// Whether everything is counted; see [`UNCOUNTED`].
    counts: bool,
    /// Counts a start too many, if the environment asks for it.
    #[cfg(feature = "mutant")]
    miscounts: bool,
}

/// Which event a node counts twice that makes this mistake. Arbitrary; early enough for short tests.
#[cfg(feature = "mutant")]
const MISCOUNTED: u64 = 20;

impl Metrics {
    /// Metrics of an idle site with nothing in its queue.
    pub fn new(site: SiteId, grid: Arc<Grid>, strategy: &Strategy) -> Metrics {
        let name = grid.site(site).name.clone();
        let labels = [("site".to_string(), name)].into_iter().collect();
        let registry = Registry::new_custom(None, Some(labels)).expect("the label is valid");
        let metrics = Metrics {
            site,
            threshold: strategy.threshold(),
            known: BTreeMap::new(),
            granted: BTreeMap::new(),
            requested: BTreeMap::new(),
            limits_seen: BTreeMap::new(),
            presence: BTreeMap::new(),
            orphaned: BTreeSet::new(),
            sharing: Sharing::default(),
            processors_idle: i64::from(grid.site(site).processors),
            series: Series::new(&registry, &grid, site),
            counts: std::env::var_os(UNCOUNTED).is_none(),
            #[cfg(feature = "mutant")]
            miscounts: std::env::var("STEALGRID_MUTANT").is_ok_and(|mistake| mistake == "miscount"),
            registry,
            grid,
        };
        if strategy.nature().learns && metrics.grid.is_broker(site) {
            metrics.grid.machines().for_each(|site| metrics.show_efficiency(site.id, 0.0));
        }
        metrics.show_presence();
        metrics.show_processors();
        metrics
    }

    /// Notes the description of a job that reaches the site, at submission or in a message: events name jobs only.
    pub fn introduce(&mut self, job: &JobSpec) {
        if !self.counts {
            return;
        }
        let class = self.class(job);
        self.known.entry(job.id).or_insert(JobState {
            submit: job.submit,
            class,
            state: None,
            started: None,
        });
    }

    fn class(&self, job: &JobSpec) -> &'static str {
        match self.grid.home(job.processors) {
            Some(home) if home == self.site => {
                let home_processors = self.grid.site(home).processors;
                if self.threshold.is_big(job.processors, home_processors) { "A" } else { "B" }
            }
            _ => "H",
        }
    }

    /// Counts one event.
    pub fn observe(&mut self, event: &Event) {
        if !self.counts {
            return self.observe_least(event);
        }
        self.series.events.inc();
        self.sharing.observe(&event.kind);
        #[cfg(feature = "mutant")]
        if self.miscounts && self.series.events.get() == MISCOUNTED {
            self.series.started.inc();
        }
        match event.kind {
            EventKind::Submitted { job, .. } => {
                self.series.submitted.inc();
                self.place(job, Some("queued"));
            }
            EventKind::Started { job, processors, .. } => {
                self.series.started.inc();
                self.no_longer_orphaned(job);
                self.place(job, Some("running"));
                self.processors_idle -= i64::from(processors);
                self.show_processors();
                if let Some(known) = self.known.get_mut(&job) {
                    known.started = Some(event.at);
                    self.series.wait.observe(event.at.since(known.submit).as_secs_f64());
                }
            }
            EventKind::Completed { job, processors } => {
                self.series.finished.inc();
                self.place(job, None);
                if let Some(JobState { submit, started: Some(started), .. }) = self.known.remove(&job) {
                    let bound = event.at.since(started).max(SLOWDOWN_BOUND).as_secs_f64();
                    let slowdown = event.at.since(submit).as_secs_f64() / bound;
                    self.series.slowdown.observe(slowdown.max(1.0));
                }
                self.processors_idle += i64::from(processors);
                self.show_processors();
            }
            // The job is counted at the site that it is known by.
            EventKind::PartStarted { processors, .. } => {
                self.processors_idle -= i64::from(processors);
                self.show_processors();
            }
            EventKind::PartCompleted { processors, .. } => {
                self.processors_idle += i64::from(processors);
                self.show_processors();
            }
            EventKind::Granted { job, to, transfer, .. } => {
                self.series.granted.inc();
                self.no_longer_orphaned(job);
                self.place(job, None);
                self.granted.insert((to, transfer), event.at);
            }
            EventKind::Allocated { as_of, .. } => {
                if let Some(as_of) = as_of {
                    self.series.view_age.observe(event.at.since(as_of).as_secs_f64());
                }
            }
            EventKind::Recalled { .. } => self.series.recalled.inc(),
            EventKind::Learned { of, efficiency_millionths, .. } => {
                self.show_efficiency(of, f64::from(efficiency_millionths) / 1e6);
            }
            EventKind::Accepted { job, from, .. } if self.grid.is_broker(from) => {
                self.series.allocated.inc();
                self.place(job, Some("queued"));
            }
            EventKind::Accepted { job, .. } => {
                let stolen = self.known.get(&job).is_none_or(|known| known.class == "H");
                if stolen { &self.series.stolen } else { &self.series.routed_in }.inc();
                self.place(job, Some("queued"));
            }
            EventKind::Declined { reason, .. } => {
                self.series.declined.with_label_values(&[reason.name()]).inc();
            }
            EventKind::Returned { job, by, transfer, .. } => {
                self.series.returned.inc();
                self.settled(event.at, by, transfer);
                self.place(job, Some("queued"));
            }
            EventKind::Settled { to, transfer, .. } => self.settled(event.at, to, transfer),
            EventKind::Requested { victim, seq, .. } => {
                // The first asking counts; a repetition has the same number.
                self.requested.entry((victim, seq)).or_insert(event.at);
            }
            EventKind::Answered { victim, seq, jobs } => {
                if jobs > 0 {
                    self.series.steal_requests.with_label_values(&["granted"]).inc();
                }
                if let Some(asked) = self.requested.remove(&(victim, seq)) {
                    self.series.steal_rtt.observe(event.at.since(asked).as_secs_f64());
                }
            }
            EventKind::Refused { reason, .. } => {
                self.series.steal_requests.with_label_values(&[reason.name()]).inc();
            }
            EventKind::Sent { message, retry, .. } => {
                self.message(message, "sent");
                if retry {
                    self.series.retries.with_label_values(&[message.name()]).inc();
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
            | EventKind::Dismissed {}
            // What becomes of jobs on shared nodes is counted beside.
            | EventKind::Placed { .. }
            | EventKind::Paced { .. }
            // Its end is counted with the event that follows.
            | EventKind::Exited { .. }
            | EventKind::Batch { .. } => {}
            EventKind::Predicted { corrections: 0, .. } => self.series.predictions.inc(),
            EventKind::Predicted { .. } => self.series.corrections.inc(),
            EventKind::FellBack { cause } => self.series.fallbacks.with_label_values(&[cause.name()]).inc(),
            EventKind::Suspected { peer } => self.believe(peer, "suspected", "suspected"),
            EventKind::Heard { peer, after } => {
                self.believe(peer, "heard", "here");
                let peer = self.grid.site(peer).name.as_str();
                self.series.link_absence.with_label_values(&[peer]).set(after.as_secs_f64());
            }
            EventKind::Gone { peer } => self.believe(peer, "gone", "gone"),
            EventKind::Left { peer } => self.believe(peer, "left", "leaving"),
            EventKind::TookOver { job, .. } => {
                self.series.taken_over.inc();
                // A copy that executes here goes on.
                if self.known.get(&job).is_some_and(|known| known.state != Some("running")) {
                    self.place(job, Some("queued"));
                }
            }
            EventKind::Superseded { job, started, .. } => {
                self.series.superseded.with_label_values(&[if started { "executing" } else { "dropped" }]).inc();
                if !started {
                    self.no_longer_orphaned(job);
                    self.place(job, None);
                }
            }
            EventKind::Orphaned { job, .. } => {
                self.series.orphaned_total.inc();
                self.orphaned.insert(job);
                self.show_orphaned();
            }
            EventKind::Recovered { .. } => self.series.restarts.inc(),
            EventKind::Revoked { job, killed, .. } => {
                self.series.interrupted.with_label_values(&[if killed { "killed" } else { "requeued" }]).inc();
                self.place(job, (!killed).then_some("queued"));
            }
            EventKind::Interrupted { job, processors, killed } => {
                self.series.interrupted.with_label_values(&[if killed { "killed" } else { "requeued" }]).inc();
                self.place(job, (!killed).then_some("queued"));
                self.processors_idle += i64::from(processors);
                self.show_processors();
            }
        }
    }

    /// Counts what [`Metrics::totals`] and [`Metrics::killed`] say.
    fn observe_least(&self, event: &Event) {
        match event.kind {
            EventKind::Submitted { .. } => self.series.submitted.inc(),
            EventKind::Completed { .. } => self.series.finished.inc(),
            EventKind::Interrupted { killed: true, .. } | EventKind::Revoked { killed: true, .. } => {
                self.series.interrupted.with_label_values(&["killed"]).inc();
            }
            _ => {}
        }
    }

    fn believe(&mut self, peer: SiteId, event: &'static str, presence: &'static str) {
        self.series.membership.with_label_values(&[event]).inc();
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
            self.series.sites.with_label_values(&[presence]).set(i64::try_from(sites).unwrap_or(i64::MAX));
        }
    }

    /// A job that was orphaned here goes on.
    fn no_longer_orphaned(&mut self, job: JobId) {
        if self.orphaned.remove(&job) {
            self.show_orphaned();
        }
    }

    /// Shows what was learned of sites in earlier incarnations.
    pub fn learned(&self, efficiencies: &[(SiteId, f64)]) {
        efficiencies.iter().for_each(|&(site, efficiency)| self.show_efficiency(site, efficiency));
    }

    fn show_efficiency(&self, of: SiteId, efficiency: f64) {
        self.series.efficiency.with_label_values(&[self.grid.site(of).name.as_str()]).set(efficiency);
    }

    fn show_orphaned(&self) {
        self.series.orphaned_now.set(i64::try_from(self.orphaned.len()).unwrap_or(i64::MAX));
    }

    fn message(&self, kind: MessageKind, direction: &str) {
        self.series.messages_at.at(kind as usize, direction).inc();
    }

    /// Moves a job to another row of the jobs gauge.
    fn place(&mut self, job: JobId, state: Option<&'static str>) {
        let Some(known) = self.known.get_mut(&job) else { return };
        if let Some(before) = std::mem::replace(&mut known.state, state) {
            self.series.jobs_at.get(before, known.class).dec();
        }
        if let Some(state) = state {
            self.series.jobs_at.get(state, known.class).inc();
        }
    }

    /// The other site has answered a transfer, one way or the other.
    fn settled(&mut self, now: Time, to: SiteId, transfer: u64) {
        if let Some(since) = self.granted.remove(&(to, transfer)) {
            self.series.handover.observe(now.since(since).as_secs_f64());
        }
    }

    /// Shows the jobs of these transfers as leaving: all that are not settled. Some become void without an event.
    pub fn leaving<'a>(&mut self, out: impl Iterator<Item = (SiteId, &'a Transfer)>) {
        if !self.counts {
            return;
        }
        let out: BTreeMap<(SiteId, u64), &str> =
            out.map(|(to, transfer)| ((to, transfer.number), self.class(&transfer.job))).collect();
        self.granted.retain(|transfer, _| out.contains_key(transfer));
        for class in CLASSES {
            let jobs = out.values().filter(|&&other| other == class).count();
            self.series.jobs_at.get("leaving", class).set(i64::try_from(jobs).unwrap_or(i64::MAX));
        }
    }

    /// Counts the bytes of a message that was sent or has come.
    pub(crate) fn carried(&self, kind: MessageKind, direction: Direction, bytes: usize) {
        if !self.counts {
            return;
        }
        let direction = match direction {
            Direction::Sent => "sent",
            Direction::Received => "received",
        };
        self.series.bytes_at.at(kind as usize, direction).inc_by(bytes as u64);
    }

    fn show_processors(&self) {
        let all = i64::from(self.grid.site(self.site).processors);
        self.series.processors_idle.set(self.processors_idle);
        self.series.processors_busy.set(all - self.processors_idle);
    }

    /// Shows how long no coordinator has asked for anything, since one has.
    pub fn orphaned(&self, since: Duration) {
        self.series.orphaned.set(since.as_secs_f64());
    }

    /// Shows how long the node took to find all others again.
    pub fn rejoined(&self, after: Duration) {
        self.series.rejoin.set(after.as_secs_f64());
    }

    /// Shows what the steps of a start with a journal took: the file, reading it, the network, and the rest.
    pub(crate) fn restarted(&self, took: [Duration; RESTART_STEPS.len()]) {
        for (step, took) in RESTART_STEPS.iter().zip(took) {
            self.series.restart_steps.with_label_values(&[*step]).set(took.as_secs_f64());
        }
    }

    /// Jobs that were given up because the node crashed while they executed.
    pub fn killed(&self) -> u64 {
        self.series.interrupted.with_label_values(&["killed"]).get()
    }

    /// Counts a write to the journal.
    pub fn journal_written(&self) {
        self.series.journal_commits.inc();
    }

    /// Counts a frame that was not understood.
    pub fn malformed(&self) {
        self.series.malformed.inc();
    }

    /// Notes how late something was noticed.
    pub fn late(&self, what: Late, lateness: Duration) {
        if self.counts {
            self.series.lateness[what as usize].observe(lateness.as_secs_f64());
        }
    }

    /// Shows a link as it is: whether it is up, its latest round trip, the injected delay of messages from there as of
    /// now, and what was measured of those that have come.
    pub fn link(
        &self,
        peer: SiteId,
        connected: bool,
        rtt: Option<Duration>,
        configured: Span,
        measured: Option<&Measured>,
    ) {
        let name = [&self.grid.site(peer).name];
        self.series.connected.with_label_values(&name).set(i64::from(connected));
        self.series.link_delay_configured.with_label_values(&name).set(configured.as_secs_f64());
        if let Some(rtt) = rtt {
            self.series.link_rtt.with_label_values(&name).set(rtt.as_secs_f64());
        }
        if let Some(measured) = measured {
            self.series.link_delay.with_label_values(&name).set(measured.mean().as_secs_f64());
            self.series
                .link_delay_injected
                .with_label_values(&name)
                .set(measured.injected_mean().as_secs_f64());
        }
    }

    /// Shows whether one way of a link is cut.
    pub fn cut(&self, peer: SiteId, way: &str, cut: bool) {
        let name = self.grid.site(peer).name.as_str();
        self.series.link_cut.with_label_values(&[name, way]).set(i64::from(cut));
    }

    /// Shows how many messages were lost to cuts so far, by their way.
    pub fn cuts(&self, totals: &[(&str, u64)]) {
        for (way, total) in totals {
            let counter = self.series.cut_messages.with_label_values(&[way]);
            counter.inc_by(total.saturating_sub(counter.get()));
        }
    }

    /// Shows what was measured of a link before the start: one way, on the wall clock.
    pub fn calibrated(&self, peer: SiteId, one_way: Duration) {
        let name = [&self.grid.site(peer).name];
        self.series.link_intrinsic.with_label_values(&name).set(one_way.as_secs_f64());
    }

    /// Shows how often a limit was hit so far.
    pub fn limit(&mut self, limit: Limit, hits: u64) {
        let seen = self.limits_seen.insert(limit, hits).unwrap_or(0);
        self.series.limit_hits.with_label_values(&[limit.name()]).inc_by(hits.saturating_sub(seen));
    }

    /// Shows what was refused to whom so far.
    pub(crate) fn refusals(&self, network: &Counts, control: &ControlCounters) {
        self.series.refusals.show(network, control);
    }

    /// Shows the trace clock and whether all sites are there.
    pub fn clock(&self, now: Time, ready: bool) {
        self.series.trace_time.set(now.as_secs_f64());
        if let Some(nodes) = self.grid.cluster(self.site) {
            self.series.sharing_slowdown.set(self.sharing.slowdown());
            self.series.intrusion.set(self.sharing.intrusion(nodes, now));
        }
        self.series.ready.set(if ready { 1.0 } else { 0.0 });
    }

    /// Jobs submitted and ended here so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.series.submitted.get(), self.series.finished.get())
    }

    /// The page for Prometheus, in its text format.
    pub fn page(&self) -> String {
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .expect("all metrics have a name and values")
    }
}
