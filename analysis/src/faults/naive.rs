//! The same from a whole list of events, by search: slow, and simple enough to be believed. For sound lists only, in
//! which nothing starts or ends that must not, and of three sites.

use std::collections::BTreeSet;

use scheduler::event::{BeginCause, EndCause};
use scheduler::{Event, EventKind, JobId, SiteId, Span, Time};

use super::RanTwice;

/// One start, and the event that ended it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) site: SiteId,
    pub(super) start: Time,
    pub(super) end: Option<Event>,
    /// How much of an interrupted or endless one is certain.
    pub(super) at_least: Time,
    /// It ended, and that counts for nothing.
    pub(super) revoked: bool,
}

/// What is said of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NaiveJob {
    pub(super) starts: usize,
    pub(super) completions: usize,
    pub(super) interrupted: usize,
    pub(super) taken_over: usize,
    pub(super) ran_twice: RanTwice,
    pub(super) orphaned: Span,
    /// Processor-seconds: wasted at least and at most, unknown, repeated.
    pub(super) work: [f64; 4],
    /// Site and start of the execution that counts, and its end.
    pub(super) counts: Option<(SiteId, Time, Option<Time>)>,
}

fn job_of(kind: &EventKind) -> Option<JobId> {
    match *kind {
        EventKind::Submitted { job, .. }
        | EventKind::Started { job, .. }
        | EventKind::Completed { job, .. }
        | EventKind::Granted { job, .. }
        | EventKind::Accepted { job, .. }
        | EventKind::Returned { job, .. }
        | EventKind::Interrupted { job, .. }
        | EventKind::Revoked { job, .. }
        | EventKind::TookOver { job, .. }
        | EventKind::Superseded { job, .. }
        | EventKind::Orphaned { job, .. } => Some(job),
        _ => None,
    }
}

/// Whether a driver says it of a site; else the site itself says it.
fn by_driver(event: &Event) -> bool {
    matches!(event.kind, EventKind::Ended { .. } | EventKind::Begun { .. } | EventKind::Dismissed {})
}

/// The last time that a site said something, among these events.
fn last_own(events: &[Event], site: SiteId) -> Option<Time> {
    events.iter().filter(|event| event.site == site && !by_driver(event)).map(|event| event.at).max()
}

fn cuts(event: &Event) -> Option<EndCause> {
    match event.kind {
        EventKind::Ended { how } if how.interrupts() => Some(how),
        _ => None,
    }
}

/// Why a site is away at the end, as the driver says.
fn away(events: &[Event], site: SiteId) -> Option<EndCause> {
    let of_site = events.iter().rev().filter(|event| event.site == site);
    let mut said = of_site.filter_map(|event| match event.kind {
        EventKind::Ended { how } => Some(Some(how)),
        EventKind::Begun { .. } => Some(None),
        _ => None,
    });
    said.next().flatten()
}

/// Whether a fault touched the job.
pub(super) fn touched(events: &[Event], job: JobId) -> bool {
    let cut = runs(events, job).iter().any(|run| run.end.is_some_and(|end| cuts(&end).is_some()));
    cut || events.iter().any(|event| {
        job_of(&event.kind) == Some(job)
            && matches!(
                event.kind,
                EventKind::Interrupted { .. }
                    | EventKind::Revoked { .. }
                    | EventKind::TookOver { .. }
                    | EventKind::Superseded { .. }
                    | EventKind::Orphaned { .. }
            )
    })
}

/// When a site was down: from its end, or else its last event, to its return.
pub(super) fn downtimes(events: &[Event], site: SiteId) -> Vec<(Option<Time>, Option<Time>)> {
    let of_site = || events.iter().enumerate().filter(|(_, event)| event.site == site);
    let mut found = Vec::new();
    for (place, event) in of_site() {
        let before = &events[..place];
        if let Some(how) = cuts(event) {
            let from = if how == EndCause::Found { last_own(before, site) } else { Some(event.at) };
            let mut later = of_site().skip_while(|(other, _)| *other <= place);
            let back = later.find(|(_, event)| matches!(event.kind, EventKind::Begun { .. }));
            found.push((from, back.map(|(_, event)| event.at)));
        }
        let newest = before.iter().rfind(|event| event.site == site).map(|event| event.kind);
        let begun = matches!(newest, Some(EventKind::Begun { how: BeginCause::Restart | BeginCause::Join }));
        if matches!(event.kind, EventKind::Recovered { .. }) && !begun {
            found.push((last_own(before, site), Some(event.at)));
        }
    }
    if silent(events, site) && !away(events, site).is_some_and(EndCause::interrupts) {
        found.push((last_own(events, site), None));
    }
    found.sort_by_key(|&(from, to)| (from, to.unwrap_or(Time::MAX)));
    found
}

/// Whether somebody has given up on a site that has been silent since.
pub(super) fn silent(events: &[Event], site: SiteId) -> bool {
    match away(events, site) {
        Some(how) if how.interrupts() => return true,
        Some(EndCause::Leave | EndCause::Absent) => return false,
        _ => {}
    }
    let last = last_own(events, site);
    let observers: BTreeSet<SiteId> = events.iter().map(|event| event.site).collect();
    observers.into_iter().any(|observer| {
        let newest = events.iter().rev().find(|event| {
            event.site == observer
                && match event.kind {
                    EventKind::Recovered { .. } => true,
                    EventKind::Begun { how } => how != BeginCause::Resume,
                    EventKind::Suspected { peer }
                    | EventKind::Gone { peer }
                    | EventKind::Left { peer }
                    | EventKind::Heard { peer, .. } => peer == site,
                    _ => false,
                }
        });
        newest.is_some_and(|event| {
            matches!(event.kind, EventKind::Suspected { .. } | EventKind::Gone { .. })
                && last < Some(event.at)
        })
    })
}

fn runs(events: &[Event], job: JobId) -> Vec<Run> {
    let mut runs = Vec::new();
    for (place, event) in events.iter().enumerate() {
        if !matches!(event.kind, EventKind::Started { job: started, .. } if started == job) {
            continue;
        }
        let end = events[place + 1..].iter().find(|later| {
            later.site == event.site
                && match later.kind {
                    EventKind::Completed { job: ended, .. } | EventKind::Interrupted { job: ended, .. } => {
                        ended == job
                    }
                    EventKind::Ended { how } => how.interrupts(),
                    _ => false,
                }
        });
        // Before the restart that tells of the interruption, or at the end of the log.
        let until = end.map_or(Time::MAX, |end| end.at);
        let back = events.iter().position(|e| {
            e.site == event.site && e.at == until && matches!(e.kind, EventKind::Recovered { .. })
        });
        let ended = end.and_then(|end| cuts(end).map(|how| (how, end.at)));
        let last = match ended {
            Some((EndCause::Found, at)) => {
                let place = events.iter().position(|e| Some(e) == end).unwrap();
                last_own(&events[..place], event.site).min(Some(at))
            }
            Some((_, at)) => Some(at),
            None => last_own(&events[..back.unwrap_or(events.len())], event.site),
        };
        let at_least = last.unwrap_or(event.at).max(event.at);
        runs.push(Run { site: event.site, start: event.at, end: end.copied(), at_least, revoked: false });
    }
    for (place, event) in events.iter().enumerate() {
        let EventKind::Revoked { job: revoked, of, .. } = event.kind else { continue };
        let ended_there = |run: &&mut Run| {
            let ended = run.end.filter(|end| matches!(end.kind, EventKind::Completed { .. }));
            run.site == of && !run.revoked && ended.is_some_and(|end| events[..place].contains(&end))
        };
        if let Some(run) = runs.iter_mut().rev().find(ended_there).filter(|_| revoked == job) {
            (run.revoked, run.at_least) = (true, run.end.expect("it has ended").at);
        }
    }
    runs
}

pub(super) fn of_job(events: &[Event], job: JobId, processors: u32) -> NaiveJob {
    let runs = runs(events, job);
    let until = events.last().map_or(Time::ZERO, |event| event.at);
    let is_end = |end: &Event| matches!(end.kind, EventKind::Completed { .. });
    let completed = |run: &Run| run.end.filter(|end| is_end(end) && !run.revoked);
    let interrupted = |run: &Run| {
        let interrupts =
            |end: &Event| matches!(end.kind, EventKind::Interrupted { .. }) || cuts(end).is_some();
        run.end.filter(|end| interrupts(end) || run.revoked)
    };
    let first_end = runs.iter().filter(|run| completed(run).is_some()).min_by_key(|run| run.end.unwrap().at);
    let counts = first_end.or(runs.iter().rfind(|run| run.end.is_none())).copied();

    let mut work = [0.0; 4];
    for run in &runs {
        let amount = |to: Time| f64::from(processors) * to.since(run.start).as_secs_f64();
        if Some(*run) == counts {
            continue;
        }
        if let Some(end) = interrupted(run) {
            work[0] += amount(run.at_least);
            work[1] += amount(end.at);
        } else if let Some(end) = completed(run) {
            work[3] += amount(end.at);
        } else {
            work[2] += amount(run.at_least);
        }
    }

    let of_job = || events.iter().enumerate().filter(|(_, event)| job_of(&event.kind) == Some(job));
    let mut unseen = BTreeSet::new();
    for (place, event) in of_job() {
        let EventKind::TookOver { holder, .. } = event.kind else { continue };
        let moves = of_job().take_while(|(before, _)| *before < place).map(|(_, event)| event.kind);
        let newest_move = moves
            .filter(|kind| {
                matches!(
                    kind,
                    EventKind::Granted { .. }
                        | EventKind::Accepted { .. }
                        | EventKind::Returned { .. }
                        | EventKind::Started { .. }
                )
            })
            .last();
        let receiver = match newest_move {
            Some(EventKind::Granted { to, .. }) => Some(to),
            _ => None,
        };
        let everybody = (1..=3).map(SiteId).filter(|_| holder == event.site);
        let copies: BTreeSet<SiteId> = [holder].into_iter().chain(receiver).chain(everybody).collect();
        for site in copies.into_iter().filter(|&site| site != event.site) {
            let last = last_own(events, site);
            // A process that has ended for good began nothing that is not in the log.
            let told_all = !matches!(away(events, site), None | Some(EndCause::Crash | EndCause::Pause));
            let dropped = of_job().any(|(_, other)| {
                other.site == site
                    && other.at >= event.at
                    && matches!(other.kind, EventKind::Superseded { started: false, .. })
            });
            let open = runs.iter().any(|run| run.site == site && run.end.is_none());
            if (last < Some(event.at) || silent(events, site)) && !told_all && !dropped && !open {
                unseen.insert(site);
            }
        }
    }
    let ended = runs.iter().filter(|run| completed(run).is_some()).count();
    let open = runs.iter().filter(|run| run.end.is_none()).count();
    let ran_twice = if ended >= 2 {
        RanTwice::Yes
    } else if ended + open + unseen.len() >= 2 {
        RanTwice::Perhaps
    } else {
        RanTwice::No
    };

    let mut orphaned = Span::ZERO;
    let mut since = None;
    for (_, event) in of_job() {
        match event.kind {
            EventKind::Orphaned { .. } => since = since.or(Some(event.at)),
            EventKind::Granted { .. }
            | EventKind::Started { .. }
            | EventKind::Completed { .. }
            | EventKind::Superseded { started: false, .. } => {
                orphaned += since.take().map_or(Span::ZERO, |since| event.at.since(since));
            }
            _ => {}
        }
    }
    orphaned += since.map_or(Span::ZERO, |since| until.since(since));
    NaiveJob {
        starts: runs.len(),
        completions: ended,
        interrupted: runs.iter().filter(|run| interrupted(run).is_some()).count(),
        taken_over: of_job().filter(|(_, e)| matches!(e.kind, EventKind::TookOver { .. })).count(),
        ran_twice,
        orphaned,
        work,
        counts: counts.map(|run| (run.site, run.start, completed(&run).map(|end| end.at))),
    }
}
