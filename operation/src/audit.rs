//! Whether what real nodes did is a schedule: every job once, no site over capacity, no job before its submission
//! or shorter than its run time. Also how late timers were.
//!
//! A job may execute again only after a crash interrupted it, or in a new epoch after it was taken over; the rule is
//! that of [`analysis::Executions`], by which reports count, too. Reads events only, in the order of time. A simulated
//! run needs no audit: the simulator checks itself.

use std::collections::BTreeMap;

use analysis::Executions;
use outputs::compared::Lateness;
use protocol::journal::restarts_of;
use report::quantity::number;
use scheduler::event::BeginCause;
use scheduler::{Event, EventKind, Grid, JobId, SiteId, Span, Time, TimedJob};

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// An event of a job that is not of the run.
    UnknownJob,
    /// A second submission.
    SubmittedTwice,
    /// A submission before its time.
    SubmittedEarly,
    /// An execution beside or after another, which no crash and no take-over allows.
    StartedTwice,
    /// A start before the submission.
    StartedEarly,
    /// A start with another width than the job has.
    Width,
    /// A start on more processors than are idle.
    Capacity,
    /// An end before the run time was over.
    EndedEarly,
    /// A second end.
    EndedTwice,
    /// An end where the job did not run.
    EndedElsewhere,
    /// An interruption where the job did not run.
    InterruptedElsewhere,
}

impl Check {
    /// Every check, in the order of the enum.
    pub const ALL: [Check; 11] = [
        Check::UnknownJob,
        Check::SubmittedTwice,
        Check::SubmittedEarly,
        Check::StartedTwice,
        Check::StartedEarly,
        Check::Width,
        Check::Capacity,
        Check::EndedEarly,
        Check::EndedTwice,
        Check::EndedElsewhere,
        Check::InterruptedElsewhere,
    ];

    /// The name in metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Check::UnknownJob => "unknown_job",
            Check::SubmittedTwice => "submitted_twice",
            Check::SubmittedEarly => "submitted_early",
            Check::StartedTwice => "started_twice",
            Check::StartedEarly => "started_early",
            Check::Width => "width",
            Check::Capacity => "capacity",
            Check::EndedEarly => "ended_early",
            Check::EndedTwice => "ended_twice",
            Check::EndedElsewhere => "ended_elsewhere",
            Check::InterruptedElsewhere => "interrupted_elsewhere",
        }
    }

    /// What a job did that failed it.
    fn words(self) -> &'static str {
        match self {
            Check::UnknownJob => "is unknown",
            Check::SubmittedTwice => "was submitted twice",
            Check::SubmittedEarly => "was submitted before its time",
            Check::StartedTwice => "started twice",
            Check::StartedEarly => "started before its submission",
            Check::Width => "started with another width than it has",
            Check::Capacity => "started on more processors than are idle",
            Check::EndedEarly => "ended before its run time was over",
            Check::EndedTwice => "ended twice",
            Check::EndedElsewhere => "ended where it did not run",
            Check::InterruptedElsewhere => "was interrupted where it did not run",
        }
    }
}

/// Watches a run.
#[derive(Debug)]
pub struct Audit {
    /// Processors of each site, and how many of them are busy.
    sites: Vec<(u32, u32)>,
    jobs: BTreeMap<JobId, Row>,
    submissions: Lateness,
    completions: Lateness,
    violations: u64,
    first_violation: Option<String>,
    /// By check, in the order of [`Check::ALL`].
    failed: [u64; Check::ALL.len()],
    /// Whether nobody knows how long jobs take.
    commands: bool,
    /// Whether jobs may start in parts at several sites.
    spreads: bool,
    /// A site has lost its journal, and with it events that nobody had fetched.
    has_lost: bool,
}

#[derive(Clone, Debug)]
struct Row {
    submit: Time,
    processors: u32,
    run_time: Span,
    submitted: bool,
    executions: Executions,
    /// Processors where it started last; of a job in parts those of the first.
    at_first: u32,
    /// What the other sites have, or had last.
    parts: BTreeMap<SiteId, Part>,
    /// The first part came to its end.
    has_ended: bool,
}

/// What a site executes of a job in parts, but the first.
#[derive(Clone, Copy, Debug)]
struct Part {
    processors: u32,
    start: Time,
    end: Option<Time>,
}

impl Row {
    fn of(job: &TimedJob) -> Row {
        Row {
            submit: job.spec.submit,
            processors: job.spec.processors,
            run_time: job.run_time,
            submitted: false,
            executions: Executions::default(),
            at_first: 0,
            parts: BTreeMap::new(),
            has_ended: false,
        }
    }

    /// Processors of the parts that came to their end, each after all of the run time: what is stopped is over before.
    fn ended(&self) -> u32 {
        let ended = |part: &&Part| part.end.is_some_and(|end| end.since(part.start) >= self.run_time);
        self.at_first + self.parts.values().filter(ended).map(|part| part.processors).sum::<u32>()
    }

    /// A process ended, with what it executed.
    fn is_lost(&mut self, site: SiteId) {
        self.parts.retain(|&at, part| at != site || part.end.is_some());
    }
}

/// What an audit found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    /// How late submissions were.
    pub submissions: Lateness,
    /// How late completions were.
    pub completions: Lateness,
    /// Starts of jobs that had started before, as crashes and take-overs allow.
    pub again: u64,
    /// The first thing that must not happen, and how many there were.
    pub violation: Option<String>,
}

impl Audit {
    /// Of a run of these jobs.
    pub fn new(grid: &Grid, jobs: &[TimedJob]) -> Audit {
        Audit {
            sites: grid.sites().iter().map(|site| (site.processors, 0)).collect(),
            jobs: jobs.iter().map(|job| (job.spec.id, Row::of(job))).collect(),
            submissions: Lateness::default(),
            completions: Lateness::default(),
            violations: 0,
            first_violation: None,
            failed: [0; Check::ALL.len()],
            commands: false,
            spreads: grid.spreads(),
            has_lost: false,
        }
    }

    /// The same where jobs are commands: one ends when it ends, and not early or late.
    #[must_use]
    pub fn of_commands(self) -> Audit {
        Audit { commands: true, ..self }
    }

    /// There is one more job.
    pub fn add(&mut self, job: &TimedJob) {
        self.jobs.insert(job.spec.id, Row::of(job));
    }

    /// Takes the next event; none of a site that the grid does not have.
    pub fn observe(&mut self, event: &Event) {
        let (at, site) = (event.at, event.site);
        if site.index() >= self.sites.len() {
            return;
        }
        match event.kind {
            EventKind::Submitted { job, .. } => {
                let Some(row) = self.jobs.get_mut(&job) else {
                    return self.violated(event, Check::UnknownJob);
                };
                let late = at.since(row.submit);
                let again = std::mem::replace(&mut row.submitted, true);
                self.submissions.add(late);
                if again {
                    self.violated(event, Check::SubmittedTwice);
                }
                if late < Span::ZERO {
                    self.violated(event, Check::SubmittedEarly);
                }
            }
            EventKind::Started { job, processors, hops } => {
                let Some(row) = self.jobs.get_mut(&job) else {
                    return self.violated(event, Check::UnknownJob);
                };
                let (submit, width) = (row.submit, row.processors);
                row.at_first = processors;
                let twice = row.executions.start(site, at, hops).is_err();
                let wrong_width = processors > width || (processors < width && !self.spreads);
                self.starts(event, processors, submit, twice, wrong_width);
            }
            EventKind::Completed { job, processors } => {
                let Some(row) = self.jobs.get_mut(&job) else {
                    return self.violated(event, Check::UnknownJob);
                };
                let run_time = row.run_time;
                let over = row.executions.is_over();
                let ended = row.executions.complete(site, at);
                row.has_ended |= ended.is_ok();
                let busy = &mut self.sites[site.index()].1;
                *busy = busy.saturating_sub(processors);
                match ended {
                    Ok(_) if self.commands => {}
                    Ok(execution) => {
                        let late = at.since(execution.start) - run_time;
                        self.completions.add(late);
                        if late < Span::ZERO {
                            self.violated(event, Check::EndedEarly);
                        }
                    }
                    Err(_) if over => self.violated(event, Check::EndedTwice),
                    Err(_) => self.violated(event, Check::EndedElsewhere),
                }
            }
            EventKind::Interrupted { job, processors, killed } => {
                let Some(row) = self.jobs.get_mut(&job) else {
                    return self.violated(event, Check::UnknownJob);
                };
                let ended = row.executions.interrupt(site, None, at, killed);
                let busy = &mut self.sites[site.index()].1;
                *busy = busy.saturating_sub(processors);
                if ended.is_err() {
                    self.violated(event, Check::InterruptedElsewhere);
                }
            }
            EventKind::Revoked { job, of, killed } => {
                let Some(row) = self.jobs.get_mut(&job) else {
                    return self.violated(event, Check::UnknownJob);
                };
                row.has_ended = false;
                row.parts.retain(|_, part| part.end.is_none());
                if row.executions.revoke(of, killed).is_err() {
                    self.violated(event, Check::InterruptedElsewhere);
                }
            }
            EventKind::PartStarted { job, processors, .. } => {
                let Some(row) = self.jobs.get_mut(&job) else {
                    return self.violated(event, Check::UnknownJob);
                };
                let (submit, width) = (row.submit, row.processors);
                let before = row.parts.insert(site, Part { processors, start: at, end: None });
                let twice = before.is_some_and(|part| part.end.is_none());
                self.starts(event, processors, submit, twice, processors >= width || !self.spreads);
            }
            EventKind::PartCompleted { job, processors, .. } => {
                let Some(row) = self.jobs.get_mut(&job) else {
                    return self.violated(event, Check::UnknownJob);
                };
                let busy = &mut self.sites[site.index()].1;
                *busy = busy.saturating_sub(processors);
                match row.parts.get_mut(&site).filter(|part| part.end.is_none()) {
                    Some(part) => part.end = Some(at),
                    None => self.violated(event, Check::EndedElsewhere),
                }
            }
            EventKind::Recovered { incarnation, .. } if restarts_of(incarnation) == 0 => {
                // It lost its journal, and does not know what it executed before.
                self.has_lost = true;
                self.sites[site.index()].1 = 0;
                for row in self.jobs.values_mut() {
                    row.executions.cut(site, None, at);
                    row.is_lost(site);
                }
            }
            EventKind::Recovered { .. } => {
                // Of the parts that it executed it says nothing, and no driver need have seen it end.
                let busy = &mut self.sites[site.index()].1;
                for row in self.jobs.values_mut() {
                    let lost = row.parts.get(&site).filter(|part| part.end.is_none());
                    *busy = busy.saturating_sub(lost.map_or(0, |part| part.processors));
                    row.is_lost(site);
                }
            }
            EventKind::Begun { how: BeginCause::Restart } => {
                // Nothing executes there any more. What the site says of that may be lost with a journal that is damaged
                // before it was read.
                self.sites[site.index()].1 = 0;
                for row in self.jobs.values_mut() {
                    row.executions.began_again(site);
                    row.is_lost(site);
                }
            }
            EventKind::TookOver { job, epoch, .. } | EventKind::Superseded { job, epoch, .. } => {
                let Some(row) = self.jobs.get_mut(&job) else {
                    return self.violated(event, Check::UnknownJob);
                };
                row.executions.taken_over(epoch);
            }
            _ => {}
        }
    }

    /// Judges the start of a job, or of a part of one, that was submitted then; whether it has started there already, and whether it has
    /// another width than it may, is for the caller to say.
    fn starts(&mut self, event: &Event, processors: u32, submit: Time, twice: bool, wrong_width: bool) {
        let (capacity, busy) = &mut self.sites[event.site.index()];
        *busy = busy.saturating_add(processors);
        let over = *busy > *capacity;
        let failed = [
            (twice, Check::StartedTwice),
            (event.at < submit, Check::StartedEarly),
            (wrong_width, Check::Width),
            (over, Check::Capacity),
        ];
        for (_, check) in failed.into_iter().filter(|(failed, _)| *failed) {
            self.violated(event, check);
        }
    }

    /// How often each check failed so far, in the order of [`Check::ALL`].
    pub fn failed(&self) -> [u64; Check::ALL.len()] {
        self.failed
    }

    /// What was found; in a complete run every job has ended.
    pub fn finish(mut self, complete: bool) -> Audited {
        let left = self.jobs.values().filter(|row| !row.executions.is_over()).count();
        if complete && left > 0 {
            self.note(format!("the run ended, but {left} jobs did not"));
        }
        let judges = complete && self.spreads && !self.has_lost;
        let in_parts = self.jobs.iter().filter(|(_, row)| judges && row.has_ended);
        let lacking = in_parts.filter(|(_, row)| row.ended() < row.processors);
        let lacking: Vec<(JobId, u32, u32)> =
            lacking.map(|(&job, row)| (job, row.ended(), row.processors)).collect();
        for (job, ended, width) in lacking {
            self.failed[Check::Width as usize] += 1;
            self.note(format!("no schedule: job {job} ended with {ended} of its {width} processors"));
        }
        let more = self.violations.saturating_sub(1);
        let violation = self.first_violation.map(|first| match more {
            0 => first,
            more => format!("{first} (and {more} more)"),
        });
        let again = self.jobs.values().map(|row| (row.executions.all().len() as u64).saturating_sub(1)).sum();
        Audited { submissions: self.submissions, completions: self.completions, again, violation }
    }

    fn violated(&mut self, event: &Event, check: Check) {
        let job = match event.kind {
            EventKind::Submitted { job, .. }
            | EventKind::Started { job, .. }
            | EventKind::Interrupted { job, .. }
            | EventKind::TookOver { job, .. }
            | EventKind::Superseded { job, .. }
            | EventKind::Revoked { job, .. }
            | EventKind::PartStarted { job, .. }
            | EventKind::PartCompleted { job, .. }
            | EventKind::Completed { job, .. } => job,
            _ => unreachable!("only events of jobs are judged"),
        };
        self.failed[check as usize] += 1;
        let what = check.words();
        self.note(format!("no schedule: job {job} {what}, at site {} at {} s", event.site, event.at));
    }

    fn note(&mut self, violation: String) {
        self.violations += 1;
        self.first_violation.get_or_insert(violation);
    }
}

impl Audited {
    /// One line for the summary.
    pub fn line(&self, factor: f64) -> String {
        let late = |lateness: Lateness| {
            let wall_ms = |seconds: f64| seconds / factor * 1e3;
            format!(
                "mean {} ms, max {} ms of the wall clock (max {} s of trace time)",
                number(wall_ms(lateness.mean().as_secs_f64())),
                number(wall_ms(lateness.max.as_secs_f64())),
                number(lateness.max.as_secs_f64())
            )
        };
        let verdict = match self.violation {
            None if self.again == 0 => "every job at most once, none early, no site over capacity",
            None => {
                "every job once, or again as crashes and take-overs allow, none early, no site over capacity"
            }
            Some(_) => "violated, see the error",
        };
        format!(
            "schedule: {verdict}\nlateness of submissions: {}\nlateness of completions: {}",
            late(self.submissions),
            late(self.completions)
        )
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobSpec, Labels, SiteId};

    use super::*;

    /// Site, seconds, what.
    type Happening = (u32, i64, EventKind);

    /// Two jobs of 3 processors for 10 s each, submitted at 5 s, on sites of 4 and 8 processors.
    fn audit() -> Audit {
        let job = |id| {
            let spec = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(5),
                processors: 3,
                requested: Span::from_secs(20),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            };
            TimedJob { spec, run_time: Span::from_secs(10) }
        };
        Audit::new(&Grid::of_sizes(&[4, 8]).unwrap(), &[job(1), job(2)])
    }

    fn submitted(job: u64, at: i64) -> Happening {
        let (job, requested) = (JobId(job), Span::from_secs(20));
        (1, at, EventKind::Submitted { job, processors: 3, requested, origin: SiteId(1) })
    }

    fn started(job: u64, site: u32, at: i64) -> Happening {
        (site, at, EventKind::Started { job: JobId(job), processors: 3, hops: 0 })
    }

    fn completed(job: u64, site: u32, at: i64) -> Happening {
        (site, at, EventKind::Completed { job: JobId(job), processors: 3 })
    }

    fn interrupted(job: u64, site: u32, at: i64) -> Happening {
        (site, at, EventKind::Interrupted { job: JobId(job), processors: 3, killed: false })
    }

    fn killed(job: u64, site: u32, at: i64) -> Happening {
        (site, at, EventKind::Interrupted { job: JobId(job), processors: 3, killed: true })
    }

    fn took_over(job: u64, site: u32, at: i64) -> Happening {
        (site, at, EventKind::TookOver { job: JobId(job), holder: SiteId(1), epoch: 1 })
    }

    #[test]
    fn a_command_ends_when_it_ends_and_once() {
        let events = [started(1, 1, 6), completed(1, 1, 7), completed(1, 1, 8)];
        let judged = |mut audit: Audit| {
            for (site, at, kind) in events {
                audit.observe(&Event { at: Time::from_secs(at), site: SiteId(site), kind });
            }
            audit.finish(false).violation.unwrap()
        };
        assert!(judged(audit()).contains("ended before its run time was over"));
        assert!(judged(audit().of_commands()).contains("ended twice"));
    }

    #[test]
    fn a_job_that_was_taken_over_may_run_and_end_twice() {
        let events = [
            started(1, 1, 6),
            took_over(1, 2, 8),
            started(1, 2, 8),
            completed(1, 1, 16),
            started(2, 1, 17),
            completed(1, 2, 18),
            completed(2, 1, 27),
        ];
        let audited = observed(&events).finish(true);
        assert_eq!((audited.violation, audited.again), (None, 1));
    }

    #[test]
    fn a_job_that_a_crash_interrupts_may_start_again() {
        let events = [
            started(1, 1, 6),
            interrupted(1, 1, 8),
            started(2, 1, 8),
            started(1, 2, 9),
            completed(2, 1, 18),
            completed(1, 2, 19),
        ];
        assert_eq!(observed(&events).finish(true).violation, None);
        assert_eq!(observed(&[started(1, 1, 6), killed(1, 1, 8)]).finish(false).violation, None);
    }

    #[test]
    fn what_a_site_executed_ends_with_its_journal() {
        let recovered =
            |incarnation| (1, 8, EventKind::Recovered { incarnation, waiting: 0, running: 0, out: 0 });
        let lost = recovered(protocol::journal::INCARNATIONS_PER_JOURNAL);
        let events = [started(1, 1, 6), lost, started(2, 1, 9), took_over(1, 2, 9), started(1, 2, 9)];
        let ends = [completed(2, 1, 19), completed(1, 2, 19)];
        assert_eq!(observed(&[&events[..], &ends].concat()).finish(true).violation, None);
        // With its journal it knows, and says so.
        let kept = observed(&[started(1, 1, 6), recovered(1), started(2, 1, 9)]).finish(false);
        assert!(kept.violation.unwrap().contains("more processors than are idle"));
        let twice = observed(&[started(1, 1, 6), lost, completed(1, 1, 16)]).finish(false);
        assert!(twice.violation.unwrap().contains("where it did not run"));
    }

    #[test]
    fn what_a_site_said_may_be_lost_after_others_went_on() {
        let begun = |how| (1, 8, EventKind::Begun { how });
        let around = |middle: &[Happening]| {
            let events = [&[started(1, 1, 6)], middle, &[started(2, 1, 9), started(1, 2, 9)]].concat();
            let ends = [completed(2, 1, 19), completed(1, 2, 19)];
            observed(&[&events[..], &ends].concat()).finish(true).violation
        };
        assert_eq!(around(&[begun(BeginCause::Restart)]), None);
        assert_eq!(around(&[begun(BeginCause::Restart), interrupted(1, 1, 8)]), None);
        // A process that stood still has lost nothing.
        assert!(around(&[begun(BeginCause::Resume)]).unwrap().contains("more processors than are idle"));
        let twice =
            observed(&[started(1, 1, 6), begun(BeginCause::Restart), started(1, 2, 9), started(1, 1, 9)]);
        assert!(twice.finish(false).violation.unwrap().contains("job 1 started twice"));
    }

    fn observed(events: &[Happening]) -> Audit {
        let mut audit = audit();
        for (site, at, kind) in events {
            audit.observe(&Event { at: Time::from_secs(*at), site: SiteId(*site), kind: *kind });
        }
        audit
    }

    #[test]
    fn a_good_run_has_no_violation_and_its_lateness_is_measured() {
        let events = [
            submitted(1, 5),
            submitted(2, 7),
            started(1, 1, 7),
            started(2, 2, 9),
            completed(1, 1, 17),
            completed(2, 2, 20),
        ];
        let audited = observed(&events).finish(true);
        assert_eq!(audited.violation, None);
        assert_eq!(audited.submissions.max, Span::from_secs(2));
        assert_eq!(audited.completions.total, Span::from_secs(1));
        assert_eq!(audited.completions.mean(), Span::from_micros(500_000));
    }

    #[test]
    fn everything_that_is_no_schedule_is_found() {
        let narrow = (1, 6, EventKind::Started { job: JobId(1), processors: 2, hops: 0 });
        let cases: [(&[Happening], &str); 14] = [
            (&[narrow], "with another width"),
            (&[interrupted(1, 1, 6)], "was interrupted where it did not run"),
            (&[started(1, 1, 6), killed(1, 1, 7), started(1, 1, 8), completed(1, 1, 18)], "started twice"),
            (&[started(1, 1, 6), completed(1, 1, 16), completed(1, 1, 17)], "ended twice"),
            // A second execution, although nobody took the job over.
            (
                &[started(1, 1, 6), completed(1, 1, 16), started(1, 2, 17), completed(1, 2, 27)],
                "started twice",
            ),
            // Two more, although it was taken over once.
            (&[started(1, 1, 6), took_over(1, 2, 7), started(1, 2, 7), started(1, 1, 8)], "started twice"),
            (&[submitted(1, 4)], "submitted before its time"),
            (&[submitted(1, 5), submitted(1, 6)], "submitted twice"),
            (&[started(1, 1, 4)], "before its submission"),
            (&[started(1, 2, 6), started(1, 2, 6)], "started twice"),
            (&[started(1, 1, 6), started(2, 1, 6)], "more processors than are idle"),
            (&[started(1, 1, 6), completed(1, 2, 16)], "where it did not run"),
            (&[started(1, 1, 6), completed(1, 1, 15)], "before its run time was over"),
            (&[started(3, 1, 6)], "job 3 is unknown"),
        ];
        let mut failed = [0; Check::ALL.len()];
        for (events, expected) in cases {
            let audit = observed(events);
            failed.iter_mut().zip(audit.failed()).for_each(|(sum, times)| *sum += times);
            let violation = audit.finish(false).violation.expect(expected);
            assert!(violation.contains(expected), "{violation}");
        }
        for check in Check::ALL {
            assert!(failed[check as usize] > 0, "{}", check.name());
        }
    }

    #[test]
    fn a_job_in_parts_ends_with_all_of_them() {
        let job = TimedJob {
            spec: JobSpec {
                id: JobId(1),
                submit: Time::ZERO,
                processors: 9,
                requested: Span::from_secs(20),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            },
            run_time: Span::from_secs(10),
        };
        let judged = |events: &[Happening]| {
            let grid = Grid::of_sizes(&[4, 8]).unwrap().with_spread(12);
            let mut audit = Audit::new(&grid, std::slice::from_ref(&job));
            for (site, at, kind) in events {
                audit.observe(&Event { at: Time::from_secs(*at), site: SiteId(*site), kind: *kind });
            }
            audit.finish(true).violation
        };
        let (id, of) = (JobId(1), SiteId(2));
        let first = |at| (2, at, EventKind::Started { job: id, processors: 6, hops: 1 });
        let second = |at| (1, at, EventKind::PartStarted { job: id, processors: 3, of });
        let over = |at| (1, at, EventKind::PartCompleted { job: id, processors: 3, of });
        let end = |at| (2, at, EventKind::Completed { job: id, processors: 6 });
        assert_eq!(judged(&[first(1), second(1), end(11), over(11)]), None);
        // Its first part crashed, so the second was stopped, and both restart.
        let crash = (2, 5, EventKind::Begun { how: BeginCause::Restart });
        let again = [first(9), second(9), end(19), over(19)];
        assert_eq!(judged(&[&[first(1), second(1), crash, over(6)][..], &again].concat()), None);
        let alone = judged(&[first(1), second(1), crash, over(6), first(9), end(19)]).unwrap();
        assert!(alone.contains("job 1 ended with 6 of its 9 processors"), "{alone}");
        // Its second part crashed, and its first ended before it heard of that. The broker says so, and the job restarts.
        let second_crash = (1, 5, EventKind::Begun { how: BeginCause::Restart });
        let revoked = (1, 12, EventKind::Revoked { job: id, of, killed: false });
        let once = [first(1), second(1), second_crash, end(11)];
        let again = [first(14), second(14), end(24), over(24)];
        assert_eq!(judged(&[&once[..], &[revoked], &again].concat()), None);
        assert!(judged(&[&once[..], &again].concat()).unwrap().contains("started twice"));
        // No driver saw the second crash, and the site alone says that it is back.
        let back = EventKind::Recovered { incarnation: 1, waiting: 0, running: 1, out: 0 };
        let unseen = [first(1), second(1), (1, 5, back), end(11), revoked];
        assert_eq!(judged(&[&unseen[..], &again].concat()), None);
        let nowhere = judged(&[&once[..], &[revoked, revoked]].concat()).unwrap();
        assert!(nowhere.contains("interrupted where it did not run"), "{nowhere}");
        let incarnation = protocol::journal::INCARNATIONS_PER_JOURNAL;
        let lost = (1, 20, EventKind::Recovered { incarnation, waiting: 0, running: 0, out: 0 });
        assert_eq!(
            judged(&[first(1), end(11), lost]),
            None,
            "the second said that it ended, and that is lost"
        );
        let twice = judged(&[first(1), second(1), second(2), end(11), over(12)]).unwrap();
        assert!(twice.contains("started twice") && twice.contains("more"), "{twice}");
        let nothing = judged(&[first(1), second(1), end(11), over(11), over(12)]).unwrap();
        assert!(nothing.contains("ended where it did not run"), "{nothing}");
    }

    #[test]
    fn jobs_may_be_left_in_a_partial_run_only() {
        assert_eq!(observed(&[submitted(1, 5)]).finish(false).violation, None);
        let violation = observed(&[submitted(1, 5)]).finish(true).violation.unwrap();
        assert!(violation.contains("2 jobs did not"), "{violation}");
    }
}
