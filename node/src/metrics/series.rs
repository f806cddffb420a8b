//! All series of a site's page: names, help, labels with their closed values, and buckets.
//!
//! What they count, and when, is in [`super::Metrics`].

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};
use scheduler::event::{DeclineReason, FallbackCause, MessageKind};
use scheduler::{Grid, SiteId};

use super::cells::Cells;
use super::refusals::Refusals;
use super::totals::Distribution;
use super::{Late, Limit};
use crate::control::api::Way;

/// Buckets of waiting times in seconds of trace time: from a second to a day, as batch queues have them.
const WAIT_BUCKETS: [f64; 11] =
    [1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0];
/// Buckets of the time of an exchange of messages, in seconds of trace time: by about two around the delays that are
/// usual, from a local network to the five minutes each way of published grids, and of repetitions.
const EXCHANGE_BUCKETS: [f64; 20] = [
    0.001, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 450.0, 620.0, 700.0,
    900.0, 1300.0, 2400.0,
];
/// Buckets of bounded slowdowns, which are at least 1.
const SLOWDOWN_BUCKETS: [f64; 11] = [1.0, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0];
/// Buckets of how late a timer was noticed, in seconds of wall-clock time.
const LATENESS_BUCKETS: [f64; 7] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.1, 1.0];

const DIRECTIONS: [&str; 4] = ["sent", "received", "lost", "ignored"];
/// Where the bytes of a message are known: a lost one may be told of by the network, which does not keep it.
const CARRIED: [&str; 2] = ["sent", "received"];
const OUTCOMES: [&str; 5] = ["granted", "empty", "too_wide", "busy", "margin"];
pub(super) const CLASSES: [&str; 3] = ["A", "B", "H"];
/// Of a start with a journal: the file, what it says, listening and dialing, and making a peer and metrics of it.
pub(super) const RESTART_STEPS: [&str; 4] = ["open", "read", "network", "restore"];
pub(super) const STATES: [&str; 3] = ["queued", "running", "leaving"];
/// What the site may believe of another.
pub(super) const PRESENCES: [&str; 4] = ["here", "suspected", "leaving", "gone"];
/// Changes of that.
const BELIEFS: [&str; 4] = ["suspected", "heard", "gone", "left"];
/// What became of a job that executed at a crash.
const INTERRUPTED: [&str; 2] = ["requeued", "killed"];
/// What a job did that turned out to be taken over.
const SUPERSEDED: [&str; 2] = ["dropped", "executing"];

/// The series of one site.
pub(super) struct Series {
    pub(super) processors_idle: IntGauge,
    pub(super) processors_busy: IntGauge,
    pub(super) jobs_at: Cells<IntGauge, { STATES.len() }, { CLASSES.len() }>,
    pub(super) submitted: IntCounter,
    pub(super) started: IntCounter,
    pub(super) finished: IntCounter,
    pub(super) interrupted: IntCounterVec,
    pub(super) restarts: IntCounter,
    pub(super) rejoin: Gauge,
    pub(super) orphaned: Gauge,
    pub(super) restart_steps: GaugeVec,
    pub(super) journal_commits: IntCounter,
    pub(super) membership: IntCounterVec,
    pub(super) sites: IntGaugeVec,
    pub(super) taken_over: IntCounter,
    pub(super) superseded: IntCounterVec,
    pub(super) fallbacks: IntCounterVec,
    pub(super) predictions: IntCounter,
    pub(super) corrections: IntCounter,
    pub(super) orphaned_total: IntCounter,
    pub(super) orphaned_now: IntGauge,
    pub(super) granted: IntCounter,
    pub(super) stolen: IntCounter,
    pub(super) routed_in: IntCounter,
    pub(super) declined: IntCounterVec,
    pub(super) returned: IntCounter,
    pub(super) steal_requests: IntCounterVec,
    pub(super) steal_rtt: Distribution,
    pub(super) wait: Distribution,
    pub(super) slowdown: Distribution,
    pub(super) handover: Distribution,
    pub(super) allocated: IntCounter,
    pub(super) view_age: Distribution,
    pub(super) recalled: IntCounter,
    pub(super) efficiency: GaugeVec,
    pub(super) messages: IntCounterVec,
    pub(super) messages_at: Cells<IntCounter, { MessageKind::ALL.len() }, { DIRECTIONS.len() }>,
    pub(super) bytes_at: Cells<IntCounter, { MessageKind::ALL.len() }, { CARRIED.len() }>,
    pub(super) retries: IntCounterVec,
    pub(super) events: IntCounter,
    pub(super) malformed: IntCounter,
    /// In the order of [`Late::ALL`].
    pub(super) lateness: [Histogram; Late::ALL.len()],
    pub(super) connected: IntGaugeVec,
    pub(super) link_rtt: GaugeVec,
    pub(super) link_delay: GaugeVec,
    pub(super) link_delay_configured: GaugeVec,
    pub(super) link_delay_injected: GaugeVec,
    pub(super) link_intrinsic: GaugeVec,
    pub(super) link_absence: GaugeVec,
    pub(super) link_cut: IntGaugeVec,
    pub(super) cut_messages: IntCounterVec,
    pub(super) limit_hits: IntCounterVec,
    pub(super) refusals: Refusals,
    pub(super) sharing_slowdown: Gauge,
    pub(super) intrusion: Gauge,
    pub(super) trace_time: Gauge,
    pub(super) ready: Gauge,
}

/// Adds one metric to the registry. Names and labels are constants of who calls it, so nothing can go wrong that a
/// test would not show.
///
/// # Panics
/// If the metric has no valid name and labels, or its name is there already.
pub fn register<C: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    metric: prometheus::Result<C>,
) -> C {
    let metric = metric.expect("names and labels are valid");
    registry.register(Box::new(metric.clone())).expect("names are unique");
    metric
}

impl Series {
    /// Adds all series to a registry. Those that are known beforehand begin at 0, so that rates begin with the first
    /// event.
    pub(super) fn new(r: &Registry, grid: &Grid, site: SiteId) -> Series {
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
        let gauge = |name: &str, help: &str| register(r, Gauge::new(name, help));

        let build = gauges("stealgrid_build_info", "Always 1; the labels say what runs.", &["version"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let processors = gauges("stealgrid_processors", "Processors of the site.", &["state"]);
        let jobs = gauges(
            "stealgrid_jobs",
            "Jobs at the site. Class A is big and B small at home, H came from another site.",
            &["state", "class"],
        );
        let messages =
            counters("stealgrid_messages_total", "Messages between peers.", &["kind", "direction"]);
        let bytes = counters(
            "stealgrid_message_bytes_total",
            "Bytes of messages between peers in this process, with what nodes add and before encryption.",
            &["kind", "direction"],
        );
        let lateness = HistogramOpts::new(
            "stealgrid_timer_lateness_seconds",
            "How late a completion, a submission or the end of a message's delay was noticed, in wall-clock time. Not of \
             what was due while the node did not run.",
        );
        let lateness = register(r, HistogramVec::new(lateness.buckets(LATENESS_BUCKETS.to_vec()), &["kind"]));
        let kinds = MessageKind::ALL.map(MessageKind::name);
        let series = Series {
            processors_idle: processors.with_label_values(&["idle"]),
            processors_busy: processors.with_label_values(&["busy"]),
            jobs_at: Cells::new(STATES, CLASSES, |labels| jobs.with_label_values(labels)),
            messages_at: Cells::new(kinds, DIRECTIONS, |labels| messages.with_label_values(labels)),
            bytes_at: Cells::new(kinds, CARRIED, |labels| bytes.with_label_values(labels)),
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
                "Wall-clock time since a coordinator has asked for something, once one has. With orphan_secs the node ends after so \
                 long on a running clock.",
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
            fallbacks: counters(
                "stealgrid_fallbacks_total",
                "External strategies here that are not asked any more, by cause; their fallback decides.",
                &["cause"],
            ),
            predictions: counter(
                "stealgrid_predictions_total",
                "Run times that were predicted of jobs that joined the queue here, or that a broker here looked at first.",
            ),
            corrections: counter(
                "stealgrid_corrections_total",
                "How often a job was found to run past what was predicted of it here, and was given a longer prediction.",
            ),
            orphaned_total: counter(
                "stealgrid_jobs_orphaned_total",
                "How often a job came to wait here because no site that was there was wide enough.",
            ),
            orphaned_now: register(
                r,
                IntGauge::new(
                    "stealgrid_jobs_orphaned",
                    "Jobs that wait here for a site that is wide enough.",
                ),
            ),
            granted: counter("stealgrid_jobs_granted_total", "Jobs given away, repeated after each decline."),
            stolen: counter("stealgrid_jobs_stolen_total", "Jobs taken over from another site's queue."),
            allocated: counter("stealgrid_jobs_allocated_total", "Jobs taken over from a broker."),
            view_age: distribution(
                "stealgrid_broker_view_age_seconds",
                "How long ago the newest thing had happened that a broker knew of the site it chose, in trace time.",
                &WAIT_BUCKETS,
            ),
            recalled: counter(
                "stealgrid_jobs_recalled_total",
                "Jobs that this broker called back because they had waited too long at a site, and that came back.",
            ),
            efficiency: seconds(
                "stealgrid_broker_efficiency",
                "What this broker has learned of a site that it does not see into, from -1 to 1. Only of brokers that learn.",
                &["peer"],
            ),
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
                &EXCHANGE_BUCKETS,
            ),
            wait: distribution(
                "stealgrid_job_wait_seconds",
                "From submission to start of the jobs started at the site, in trace time.",
                &WAIT_BUCKETS,
            ),
            slowdown: distribution(
                "stealgrid_job_bounded_slowdown",
                "Time from submission to end over the run time, which counts as 10 s at least, and 1 at least, of \
                 the jobs that ended at the site.",
                &SLOWDOWN_BUCKETS,
            ),
            handover: distribution(
                "stealgrid_handover_seconds",
                "From granting a job until the other site has taken or declined it, in trace time.",
                &EXCHANGE_BUCKETS,
            ),
            messages,
            retries: counters("stealgrid_messages_repeated_total", "Messages sent again.", &["kind"]),
            events: counter("stealgrid_events_total", "Events of the site's log."),
            malformed: counter(
                "stealgrid_frames_malformed_total",
                "Frames from authenticated nodes that were not understood.",
            ),
            lateness: Late::ALL.map(|what| lateness.with_label_values(&[what.name()])),
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
            link_cut: gauges(
                "stealgrid_link_cut",
                "1 while the operator has cut the way to or from the other site.",
                &["peer", "way"],
            ),
            cut_messages: counters(
                "stealgrid_messages_cut_total",
                "Messages that were lost here because a link was cut by order.",
                &["way"],
            ),
            link_absence: seconds(
                "stealgrid_link_absence_seconds",
                "How long nothing was heard of the other site before it was heard again, the last time, in trace time.",
                &["peer"],
            ),
            link_delay_configured: seconds(
                "stealgrid_link_delay_configured_seconds",
                "Mean delay injected into messages without payload from the other site as of now, in trace time.",
                &["peer"],
            ),
            link_delay_injected: seconds(
                "stealgrid_link_delay_injected_seconds",
                "What of stealgrid_link_delay_seconds was injected: the mean of the same messages, in trace time.",
                &["peer"],
            ),
            limit_hits: counters(
                "stealgrid_limit_hits_total",
                "How often something was dropped or cut short because a limit was reached.",
                &["limit"],
            ),
            sharing_slowdown: gauge(
                "stealgrid_sharing_slowdown",
                "How many times longer the jobs that execute here take now than on idle nodes, in the mean, where jobs share nodes; 0 if \
                 none executes.",
            ),
            intrusion: gauge(
                "stealgrid_local_intrusion",
                "How many times longer calls of local users take now than without jobs, where jobs share nodes; 0 without local users.",
            ),
            trace_time: gauge("stealgrid_trace_time_seconds", "Trace time at the scrape."),
            refusals: Refusals::new(r),
            ready: gauge("stealgrid_ready", "1 if all sites are connected and have answered a probe."),
        };
        series.start_at_zero(grid, site);
        series
    }

    fn start_at_zero(&self, grid: &Grid, site: SiteId) {
        // Series in cells were made with them.
        for kind in MessageKind::ALL {
            self.retries.with_label_values(&[kind.name()]).reset();
        }
        for way in Way::ALL {
            self.cut_messages.with_label_values(&[way.name()]).reset();
        }
        for outcome in OUTCOMES {
            self.steal_requests.with_label_values(&[outcome]).reset();
        }
        for reason in DeclineReason::ALL {
            self.declined.with_label_values(&[reason.name()]).reset();
        }
        for outcome in INTERRUPTED {
            self.interrupted.with_label_values(&[outcome]).reset();
        }
        for event in BELIEFS {
            self.membership.with_label_values(&[event]).reset();
        }
        for state in SUPERSEDED {
            self.superseded.with_label_values(&[state]).reset();
        }
        for cause in FallbackCause::ALL {
            self.fallbacks.with_label_values(&[cause.name()]).reset();
        }
        for presence in PRESENCES {
            self.sites.with_label_values(&[presence]).set(0);
        }
        for step in RESTART_STEPS {
            self.restart_steps.with_label_values(&[step]).set(0.0);
        }
        for limit in Limit::ALL {
            self.limit_hits.with_label_values(&[limit.name()]).reset();
        }
        for other in grid.sites().iter().filter(|other| other.id != site) {
            self.connected.with_label_values(&[&other.name]).set(0);
            for way in Way::ALL {
                self.link_cut.with_label_values(&[other.name.as_str(), way.name()]).set(0);
            }
            self.link_absence.with_label_values(&[&other.name]).set(0.0);
        }
    }
}
