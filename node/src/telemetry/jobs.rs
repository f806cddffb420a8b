//! What a site does with each job, as spans: `waits`, `runs`, `moves`. Made of the events of its log, so that they say
//! what the results say.
//!
//! They are of level debug and have the target [`TARGET`]: `RUST_LOG=info,stealgrid::jobs=debug` logs each change.

use std::collections::BTreeMap;

use scheduler::{Event, EventKind, JobId, SiteId, Time};
use tracing::{Level, Span};

/// Of spans and messages about jobs.
pub(super) const TARGET: &str = "stealgrid::jobs";

/// The span of each job that is at the site, or on its way from it.
#[derive(Debug)]
pub(crate) struct JobSpans {
    #[cfg_attr(
        not(feature = "otel"),
        expect(dead_code, reason = "it distinguishes traces of different runs")
    )]
    run: String,
    open: BTreeMap<JobId, (What, Span)>,
}

/// What becomes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Waits,
    Runs,
    /// To a site, by the transfer of this number.
    Moves(SiteId, u64),
}

impl JobSpans {
    /// No spans; `run` is the name of the run in them.
    pub(crate) fn new(run: &str) -> JobSpans {
        JobSpans { run: run.to_string(), open: BTreeMap::new() }
    }

    /// Opens and closes spans as this event says.
    pub(crate) fn follow(&mut self, event: &Event) {
        if !tracing::enabled!(target: TARGET, Level::DEBUG) {
            return;
        }
        let Event { at, site, kind } = event;
        match *kind {
            EventKind::Submitted { job, .. } => {
                self.waits(job, *site);
                self.tell(job, *at, "submitted", None);
            }
            EventKind::Accepted { job, from, .. } => {
                self.waits(job, *site);
                self.tell(job, *at, "accepted", Some(from));
            }
            EventKind::Returned { job, by, .. } => {
                self.waits(job, *site);
                self.tell(job, *at, "returned", Some(by));
            }
            EventKind::TookOver { job, holder, .. } => {
                self.waits(job, *site);
                self.tell(job, *at, "taken over", Some(holder));
            }
            EventKind::Started { job, processors, .. } => {
                // OpenTelemetry has signed numbers only; others become text.
                let (number, site, processors) = (job.0 as i64, i64::from(site.0), i64::from(processors));
                let span = tracing::debug_span!(target: TARGET, "runs", job = number, site, processors);
                self.enters(job, What::Runs, span);
                self.tell(job, *at, "started", None);
            }
            EventKind::Granted { job, to, transfer, .. } => {
                let (number, site, other) = (job.0 as i64, i64::from(site.0), i64::from(to.0));
                let span = tracing::debug_span!(target: TARGET, "moves", job = number, site, to = other);
                self.enters(job, What::Moves(to, transfer), span);
                self.tell(job, *at, "granted", Some(to));
            }
            EventKind::Settled { job, to, transfer } => {
                self.tell(job, *at, "settled", Some(to));
                // It may be back already, before the answer to its first departure.
                if self.what(job) == Some(What::Moves(to, transfer)) {
                    self.open.remove(&job);
                }
            }
            EventKind::Completed { job, .. } => {
                self.tell(job, *at, "completed", None);
                self.open.remove(&job);
            }
            EventKind::Superseded { job, started, .. } => {
                self.tell(job, *at, "superseded", None);
                // One that executes goes on.
                if !started {
                    self.open.remove(&job);
                }
            }
            EventKind::Interrupted { job, killed: true, .. }
            | EventKind::Revoked { job, killed: true, .. } => {
                self.tell(job, *at, "killed", None);
                self.open.remove(&job);
            }
            EventKind::Interrupted { job, killed: false, .. } => {
                self.open.remove(&job);
                self.waits(job, *site);
                self.tell(job, *at, "interrupted", None);
            }
            _ => {}
        }
    }

    fn what(&self, job: JobId) -> Option<What> {
        self.open.get(&job).map(|(what, _)| *what)
    }

    /// A job is in the queue now, unless a copy of it executes here.
    fn waits(&mut self, job: JobId, site: SiteId) {
        if self.what(job) != Some(What::Runs) {
            let (number, site) = (job.0 as i64, i64::from(site.0));
            let span = tracing::debug_span!(target: TARGET, "waits", job = number, site);
            self.enters(job, What::Waits, span);
        }
    }

    /// Begins a span of a job; that before it ends.
    fn enters(&mut self, job: JobId, what: What, span: Span) {
        #[cfg(feature = "otel")]
        super::otel::put_into_trace(&span, &self.run, job);
        self.open.insert(job, (what, span));
    }

    /// A line of the log within the span of the job, if there is one.
    fn tell(&self, job: JobId, at: Time, what: &'static str, other: Option<SiteId>) {
        let span = self.open.get(&job).and_then(|(_, span)| span.id());
        let (at_us, other) = (at.as_micros(), other.map(|site| i64::from(site.0)));
        let number = span.is_none().then_some(job.0 as i64);
        tracing::debug!(target: TARGET, parent: span, at_us, other, job = number, "{what}");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use scheduler::Span as Length;
    use scheduler::event::GrantCause;
    use serde_json::Value;

    use super::*;

    /// What was written to it.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What the JSON log says of these events at a level.
    fn lines(level: Level, kinds: &[EventKind]) -> (Vec<Value>, usize) {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .finish();
        let mut spans = JobSpans::new("test");
        tracing::subscriber::with_default(subscriber, || {
            for (second, kind) in (1..).zip(kinds) {
                spans.follow(&Event { at: Time::from_secs(second), site: SiteId(2), kind: *kind });
            }
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), spans.open.len())
    }

    fn events() -> Vec<EventKind> {
        let requested = Length::from_secs(60);
        vec![
            EventKind::Submitted { job: JobId(1), processors: 4, requested, origin: SiteId(2) },
            EventKind::Accepted { job: JobId(7), from: SiteId(1), transfer: 3, firm: false },
            EventKind::Started { job: JobId(7), processors: 2, hops: 1 },
            EventKind::Completed { job: JobId(7), processors: 2 },
        ]
    }

    #[test]
    fn each_change_of_a_job_is_told_within_its_span() {
        let (lines, open) = lines(Level::DEBUG, &events());
        let told: Vec<(&str, &str, u64)> = lines
            .iter()
            .map(|line| {
                let span = &line["span"];
                assert_eq!(span["site"], 2);
                let name = span["name"].as_str().unwrap();
                (line["message"].as_str().unwrap(), name, span["job"].as_u64().unwrap())
            })
            .collect();
        let expected = [
            ("submitted", "waits", 1),
            ("accepted", "waits", 7),
            ("started", "runs", 7),
            ("completed", "runs", 7),
        ];
        assert_eq!(told, expected);
        assert_eq!(lines[3]["at_us"], 4_000_000);
        assert_eq!(open, 1, "job 1 waits");
    }

    #[test]
    fn a_job_that_is_back_or_executes_keeps_its_span() {
        let granted = EventKind::Granted {
            job: JobId(7),
            to: SiteId(1),
            transfer: 4,
            hops: 1,
            cause: GrantCause::default(),
            request: 0,
        };
        let settled = EventKind::Settled { job: JobId(7), to: SiteId(1), transfer: 4 };
        let accepted = EventKind::Accepted { job: JobId(7), from: SiteId(3), transfer: 1, firm: false };
        let started = EventKind::Started { job: JobId(7), processors: 2, hops: 2 };
        let superseded = EventKind::Superseded { job: JobId(7), epoch: 1, started: true };
        let completed = EventKind::Completed { job: JobId(7), processors: 2 };
        let spans = |kinds: &[EventKind]| {
            let (lines, open) = lines(Level::DEBUG, kinds);
            let name = |line: &Value| line["span"]["name"].as_str().unwrap_or("none").to_string();
            (lines.iter().map(name).collect::<Vec<_>>(), open)
        };
        assert_eq!(
            spans(&[granted, settled, settled]),
            (vec!["moves".into(), "moves".into(), "none".into()], 0)
        );
        let (names, open) = spans(&[granted, accepted, started, settled, accepted, superseded, completed]);
        assert_eq!(names, ["moves", "waits", "runs", "runs", "runs", "runs", "runs"]);
        assert_eq!(open, 0);
    }

    #[test]
    fn at_the_default_level_nothing_is_kept() {
        let (lines, open) = lines(Level::INFO, &events());
        assert_eq!((lines.len(), open), (0, 0));
    }
}
