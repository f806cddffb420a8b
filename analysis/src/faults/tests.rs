use proptest::prelude::*;
use scheduler::event::{BeginCause, EndCause, GrantCause};
use scheduler::{Event, EventKind, Grid, JobId, SiteId, Span, Threshold, Time, TimedJob};

use super::*;
use crate::fixtures::{completed, event, started, timed_job};
use crate::job::JobState;
use crate::outcome::{Outcome, OutcomeBuilder};

/// Sites of 4 and 8 processors, jobs of 3 processors.
fn outcome(jobs: u64, events: &[Event]) -> Outcome {
    let workload: Vec<TimedJob> = (1..=jobs).map(|id| timed_job(id, 0, 3, 100)).collect();
    let mut builder = OutcomeBuilder::new(&Grid::of_sizes(&[4, 8, 8]).unwrap(), Threshold::HALF, &workload);
    events.iter().for_each(|event| builder.observe(event));
    builder.finish()
}

fn recovered(at: i64, site: u32) -> Event {
    event(at, site, EventKind::Recovered { incarnation: 1, waiting: 0, running: 1, out: 0 })
}

fn interrupted(at: i64, site: u32, job: u64, killed: bool) -> Event {
    event(at, site, EventKind::Interrupted { job: JobId(job), processors: 3, killed })
}

fn took_over(at: i64, site: u32, job: u64, holder: u32, epoch: u32) -> Event {
    event(at, site, EventKind::TookOver { job: JobId(job), holder: SiteId(holder), epoch })
}

fn superseded(at: i64, site: u32, job: u64, running: bool) -> Event {
    event(at, site, EventKind::Superseded { job: JobId(job), epoch: 1, started: running })
}

fn gone(at: i64, site: u32, peer: u32) -> Event {
    event(at, site, EventKind::Gone { peer: SiteId(peer) })
}

fn suspected(at: i64, site: u32, peer: u32) -> Event {
    event(at, site, EventKind::Suspected { peer: SiteId(peer) })
}

fn ended(at: i64, site: u32, how: EndCause) -> Event {
    event(at, site, EventKind::Ended { how })
}

fn begun(at: i64, site: u32, how: BeginCause) -> Event {
    event(at, site, EventKind::Begun { how })
}

fn heard(at: i64, site: u32, peer: u32, after: i64) -> Event {
    event(at, site, EventKind::Heard { peer: SiteId(peer), after: Span::from_secs(after) })
}

#[test]
fn a_run_without_faults_has_none() {
    let run = outcome(1, &[started(0, 1, 1, 3), completed(100, 1, 1)]);
    assert!(run.faults.is_empty() && !run.faults.disturbed());
    assert_eq!(run.faults, Faults::default());
}

#[test]
fn a_crash_that_is_survived_gives_bounds_on_what_it_wasted() {
    let run = outcome(
        2,
        &[
            started(0, 1, 1, 3),
            event(10, 1, EventKind::Requested { victim: SiteId(2), seq: 1, offer: 1, view_age: None }),
            suspected(35, 2, 1),
            recovered(40, 1),
            interrupted(40, 1, 1, false),
            started(40, 1, 1, 3),
            heard(43, 2, 1, 8),
            completed(140, 1, 1),
        ],
    );
    let faults = &run.faults;
    assert_eq!((faults.jobs.len(), faults.sites.len()), (1, 1));
    let (job, site) = (&faults.jobs[0], &faults.sites[0]);
    assert_eq!((job.starts, job.completions, job.interrupted, job.ran_twice), (2, 1, 1, RanTwice::No));
    assert_eq!((job.wasted_at_least, job.wasted_at_most), (30.0, 120.0));
    assert_eq!((site.site, site.crashes, site.down_at_most_s), (SiteId(1), 1, 30.0));
    assert_eq!((site.rejoin_max_s, site.suspected, site.heard), (Some(3.0), 1, 1));
    assert_eq!(
        faults.downtimes,
        [Downtime {
            site: SiteId(1),
            from: Some(Time::from_secs(10)),
            to: Some(Time::from_secs(40)),
            how: None
        }]
    );
    assert_eq!(faults.attempts.len(), 1);
    assert_eq!(faults.attempts[0].end, AttemptEnd::Interrupted);
    assert_eq!(run.contradictions.total(), 0);
    assert_eq!(run.jobs[0].start, Some(Time::from_secs(40)));
}

#[test]
fn a_crash_that_the_driver_tells_of_is_known_to_the_second() {
    let run = outcome(
        1,
        &[
            started(0, 1, 1, 3),
            ended(30, 1, EndCause::Crash),
            begun(40, 1, BeginCause::Restart),
            recovered(41, 1),
            interrupted(41, 1, 1, false),
            started(41, 1, 1, 3),
            completed(141, 1, 1),
        ],
    );
    let faults = &run.faults;
    let (job, site) = (&faults.jobs[0], &faults.sites[0]);
    assert_eq!((job.interrupted, job.wasted_at_least, job.wasted_at_most), (1, 90.0, 90.0));
    assert_eq!((site.crashes, site.down_at_most_s, site.interrupted), (1, 10.0, 1));
    assert!(faults.downtimes[0].is_exact() && faults.downtimes.len() == 1);
    assert_eq!((run.contradictions.total(), run.is_complete()), (0, true));
}

/// Clocks of driver and site differ, no driver may be there to see it, and the journal that would say what became of it can be
/// damaged before it is read.
#[test]
fn what_started_before_its_process_began_again_is_over_then() {
    let begins: [&[Event]; 3] = [
        &[ended(30, 1, EndCause::Crash), started(31, 1, 1, 3), begun(40, 1, BeginCause::Restart)],
        &[
            ended(30, 1, EndCause::Crash),
            started(31, 1, 1, 3),
            begun(40, 1, BeginCause::Restart),
            recovered(41, 1),
        ],
        &[started(31, 1, 1, 3), recovered(40, 1)],
    ];
    for begin in begins {
        let events = [begin, &[started(50, 2, 1, 3), completed(150, 2, 1)]].concat();
        let run = outcome(1, &events);
        let attempt = &run.faults.attempts[0];
        assert_eq!((run.faults.attempts.len(), attempt.site), (1, SiteId(1)));
        assert_eq!((attempt.at_most, attempt.end), (Time::from_secs(40), AttemptEnd::Interrupted));
        assert!(attempt.at_least <= attempt.at_most);
        assert_eq!((run.contradictions.total(), run.is_complete()), (0, true));
        // Nobody knows more before it starts elsewhere: it waits.
        let run = outcome(1, begin);
        assert_eq!((run.jobs[0].state, run.jobs[0].site), (JobState::Waiting, None));
    }
}

#[test]
fn a_process_that_was_only_found_to_have_ended_did_so_after_its_last_event() {
    let request = EventKind::Requested { victim: SiteId(2), seq: 1, offer: 1, view_age: None };
    let events =
        [started(0, 1, 1, 3), event(10, 1, request), ended(30, 1, EndCause::Found), completed(100, 2, 9)];
    let run = outcome(1, &events);
    let (job, site) = (&run.faults.jobs[0], &run.faults.sites[0]);
    assert_eq!((job.wasted_at_least, job.wasted_at_most), (30.0, 90.0));
    assert_eq!((site.down_at_most_s, site.silent_at_end), (90.0, true));
    assert!(!run.faults.downtimes[0].is_exact());
}

#[test]
fn a_site_that_joins_late_did_not_crash() {
    let run = outcome(
        1,
        &[
            ended(0, 2, EndCause::Absent),
            suspected(10, 1, 2),
            begun(50, 2, BeginCause::Join),
            recovered(51, 2),
            heard(52, 1, 2, 52),
        ],
    );
    assert_eq!((run.faults.totals.crashes, run.faults.totals.joined), (0, 1));
    assert_eq!((run.faults.totals.silent_sites, run.faults.downtimes.len()), (0, 0));
    assert_eq!(run.faults.sites[0].joined_at_s, Some(50.0));
    assert!(run.faults.disturbed(), "its processors were not there");
    let never = outcome(1, &[ended(0, 2, EndCause::Absent), suspected(10, 1, 2)]);
    assert_eq!((never.faults.totals.silent_sites, never.faults.totals.absent), (0, 1));
}

#[test]
fn an_orderly_leave_and_a_pause_are_no_outage() {
    let left = event(60, 1, EventKind::Left { peer: SiteId(2) });
    let run = outcome(
        1,
        &[
            ended(10, 3, EndCause::Pause),
            begun(25, 3, BeginCause::Resume),
            event(50, 2, EventKind::Dismissed {}),
            left,
            ended(70, 2, EndCause::Leave),
            suspected(100, 1, 2),
            gone(200, 1, 2),
        ],
    );
    let totals = run.faults.totals;
    assert_eq!((totals.silent_sites, totals.crashes, totals.down_at_most_s), (0, 0, 0.0));
    assert_eq!((totals.dismissed, totals.have_left, totals.pauses, totals.paused_s), (1, 1, 1, 15.0));
    assert!(run.faults.downtimes.is_empty());
}

#[test]
fn a_run_in_which_everybody_dies_has_faults_and_its_jobs_wait_for_ever() {
    let died = [started(0, 1, 1, 3), ended(5, 1, EndCause::Death), ended(5, 2, EndCause::Death)];
    let run = outcome(1, &died);
    assert_eq!((run.faults.totals.silent_sites, run.faults.totals.interrupted), (2, 1));
    assert_eq!((run.jobs[0].state, run.jobs[0].start), (JobState::Waiting, None));
    assert!(!run.is_complete() && !run.faults.jobs[0].killed);
    assert_eq!(run.faults.totals.wasted_at_most, 15.0);
}

#[test]
fn a_job_may_not_have_run_at_a_site_that_had_died_before_it_could_begin() {
    let grant = |at| {
        let (job, to, cause) = (JobId(1), SiteId(2), GrantCause::Request);
        event(at, 1, EventKind::Granted { job, to, transfer: 1, hops: 1, cause, request: 1 })
    };
    let rest = [gone(100, 1, 2), took_over(100, 1, 1, 2, 1), started(100, 1, 1, 3), completed(200, 1, 1)];
    let twice = |first: &[Event]| outcome(1, &[first, &rest].concat()).faults.jobs[0].ran_twice;
    // Nobody says what became of the site: it may have begun the job.
    assert_eq!(twice(&[grant(20)]), RanTwice::Perhaps);
    assert_eq!(twice(&[ended(10, 2, EndCause::Death), grant(20)]), RanTwice::No);
    assert_eq!(twice(&[grant(20), ended(30, 2, EndCause::Death)]), RanTwice::No);
    // It began the job, and died before the end.
    assert_eq!(twice(&[started(20, 2, 1, 3), ended(30, 2, EndCause::Death)]), RanTwice::No);
    // It was to come back and had not when the run ended: its last events are missing.
    assert_eq!(twice(&[grant(20), ended(30, 2, EndCause::Crash)]), RanTwice::Perhaps);
    assert_eq!(twice(&[started(20, 2, 1, 3), ended(30, 2, EndCause::Pause)]), RanTwice::Perhaps);
}

#[test]
fn a_job_that_is_taken_over_again_and_again_was_taken_from_its_holder_once() {
    let run = outcome(
        1,
        &[
            started(0, 2, 1, 3),
            took_over(100, 1, 1, 2, 1),
            took_over(200, 3, 1, 2, 2),
            started(200, 3, 1, 3),
            completed(300, 3, 1),
        ],
    );
    let of = |site: u32| run.faults.sites.iter().find(|found| found.site == SiteId(site)).unwrap();
    assert_eq!((of(2).taken_from, run.faults.totals.taken_over), (1, 2));
    assert_eq!((of(1).took_over, of(3).took_over), (1, 1));
}

#[test]
fn a_job_that_is_given_up_is_killed() {
    let run = outcome(1, &[started(0, 1, 1, 3), recovered(40, 1), interrupted(40, 1, 1, true)]);
    assert_eq!(run.jobs[0].state, JobState::Killed);
    assert!(run.faults.jobs[0].killed && run.is_complete());
    assert_eq!(run.faults.totals.killed, 1);
}

#[test]
fn a_job_of_a_site_that_never_comes_back_may_have_run_twice() {
    let events = [
        started(0, 2, 1, 3),
        gone(100, 1, 2),
        took_over(100, 1, 1, 2, 1),
        started(100, 1, 1, 3),
        completed(200, 1, 1),
    ];
    let run = outcome(1, &events);
    assert_eq!(run.contradictions.total(), 0);
    assert_eq!((run.jobs[0].site, run.jobs[0].state), (Some(SiteId(1)), JobState::Completed));
    assert_eq!(run.faults.jobs[0].ran_twice, RanTwice::Perhaps);
    assert_eq!(run.faults.totals.silent_sites, 1);
    let attempt = run.faults.attempts[0];
    assert_eq!((attempt.site, attempt.end), (SiteId(2), AttemptEnd::Unknown));

    // The start was never seen: the site may have begun it after its last event.
    let unseen = outcome(1, &events[1..]);
    assert_eq!(unseen.faults.jobs[0].ran_twice, RanTwice::Perhaps);

    // It comes back and says that a crash had ended it, or that it never began.
    let back = [recovered(300, 2), interrupted(300, 2, 1, false), superseded(301, 2, 1, false)];
    let run = outcome(1, &[&events[..], &back].concat());
    assert_eq!(run.faults.jobs[0].ran_twice, RanTwice::No);
    assert_eq!(run.jobs[0].end, Some(Time::from_secs(200)));
    let run = outcome(1, &[&events[1..], &[heard(300, 1, 2, 300), superseded(301, 2, 1, false)]].concat());
    assert_eq!(run.faults.jobs[0].ran_twice, RanTwice::No);
}

#[test]
fn a_job_whose_receiver_is_silent_may_have_run_there() {
    let grant = EventKind::Granted {
        job: JobId(1),
        to: SiteId(3),
        transfer: 1,
        hops: 2,
        cause: GrantCause::Request,
        request: 1,
    };
    let run = outcome(
        1,
        &[
            event(5, 2, grant),
            gone(100, 1, 2),
            took_over(100, 1, 1, 2, 1),
            started(100, 1, 1, 3),
            completed(200, 1, 1),
            heard(210, 1, 2, 200),
            superseded(211, 2, 1, false),
        ],
    );
    assert_eq!(run.faults.jobs[0].ran_twice, RanTwice::Perhaps, "site 3 may have had it");
}

#[test]
fn a_job_that_ends_at_two_sites_ran_twice_and_counts_once() {
    let run = outcome(
        1,
        &[
            started(0, 2, 1, 3),
            gone(50, 1, 2),
            took_over(50, 1, 1, 2, 1),
            started(50, 1, 1, 3),
            heard(90, 1, 2, 40),
            superseded(90, 2, 1, true),
            completed(100, 2, 1),
            completed(150, 1, 1),
        ],
    );
    assert_eq!(run.contradictions.total(), 0);
    assert_eq!((run.jobs[0].site, run.jobs[0].end), (Some(SiteId(2)), Some(Time::from_secs(100))));
    assert_eq!(run.faults.jobs[0].ran_twice, RanTwice::Yes);
    assert_eq!(run.faults.jobs[0].repeated_work, 300.0);
    assert_eq!(run.faults.attempts[0].end, AttemptEnd::Repeated);
    assert_eq!((run.faults.totals.ran_twice, run.faults.totals.may_have_run_twice), (1, 1));
}

#[test]
fn mutant_a_second_end_without_a_take_over_is_a_contradiction() {
    let run = outcome(
        1,
        &[
            started(0, 2, 1, 3),
            recovered(40, 2),
            interrupted(40, 2, 1, false),
            started(50, 1, 1, 3),
            started(51, 2, 1, 3),
            completed(150, 1, 1),
            completed(151, 2, 1),
        ],
    );
    assert_eq!((run.contradictions.repeated_starts, run.contradictions.unexpected_ends), (1, 1));
    assert_eq!(run.faults.jobs[0].ran_twice, RanTwice::No);
}

#[test]
fn a_orphaned_job_waits_until_it_is_given_away() {
    let orphaned = EventKind::Orphaned { job: JobId(1), processors: 3 };
    let grant = EventKind::Granted {
        job: JobId(1),
        to: SiteId(2),
        transfer: 1,
        hops: 1,
        cause: GrantCause::Route,
        request: 0,
    };
    let run = outcome(1, &[event(5, 1, orphaned), event(25, 1, grant), started(27, 2, 1, 3)]);
    let job = &run.faults.jobs[0];
    assert_eq!((job.orphaned, job.still_orphaned), (Span::from_secs(20), false));
    assert_eq!(run.jobs[0].start, Some(Time::from_secs(27)));
    let run = outcome(1, &[event(5, 1, orphaned), recovered(25, 2)]);
    assert_eq!(run.faults.totals.still_orphaned, 1);
    assert_eq!(run.faults.totals.orphaned_max_s, 20.0);
}

#[test]
fn a_crashed_observer_has_no_doubts_left() {
    let run = outcome(1, &[started(0, 2, 1, 3), suspected(30, 1, 2), recovered(60, 1), completed(100, 3, 9)]);
    assert!(run.faults.sites.iter().all(|site| !site.silent_at_end));
}

/// A grid that moves by random steps and keeps to the rules, so that every list of its events is sound.
#[derive(Default)]
struct Model {
    now: i64,
    events: Vec<Event>,
    /// By job and epoch: where it executes, where it waits, and whether it is over.
    copies: Vec<Vec<Copied>>,
    down: [bool; 3],
    /// Why a site is away, where the driver says so.
    said: [Option<EndCause>; 3],
}

#[derive(Clone, Copy, PartialEq)]
enum Copied {
    Waits(u32),
    Runs(u32),
    Over,
}

const JOBS: usize = 3;

impl Model {
    fn emit(&mut self, site: u32, kind: EventKind) {
        self.events.push(event(self.now, site, kind));
    }

    fn up(&self, site: u32) -> bool {
        !self.down[site as usize - 1] && self.said[site as usize - 1].is_none()
    }

    fn says(&mut self, site: u32, how: EndCause) {
        self.said[site as usize - 1] = Some(how);
        self.emit(site, EventKind::Ended { how });
    }

    fn step(&mut self, (what, place, site, job, passes): (u8, usize, u32, usize, i64)) {
        self.now += passes;
        // Now and then the operator orders a take-over, which is from nobody.
        let other = if what == 7 && passes == 0 { site } else { site % 3 + 1 };
        let id = JobId(job as u64 + 1);
        let copies = self.copies[job].clone();
        let place = place % copies.len();
        let copy = copies[place];
        match (what, copy) {
            (0, Copied::Waits(at)) if self.up(at) => {
                self.copies[job][place] = Copied::Runs(at);
                self.emit(at, EventKind::Started { job: id, processors: 3, hops: 0 });
            }
            (1, Copied::Runs(at)) if self.up(at) => {
                self.copies[job][place] = Copied::Over;
                self.emit(at, EventKind::Completed { job: id, processors: 3 });
            }
            // Another part of it was lost, says its broker.
            (14, Copied::Over) if self.up(site) => {
                let of = self.events.iter().rev().find_map(|event| match event.kind {
                    EventKind::Completed { job, .. } if job == id => Some(Some(event.site)),
                    EventKind::Started { job, .. } | EventKind::Revoked { job, .. } if job == id => {
                        Some(None)
                    }
                    _ => None,
                });
                if let Some(of) = of.flatten()
                    && copies.iter().all(|&copy| copy == Copied::Over)
                {
                    let killed = passes == 3;
                    self.copies[job][place] = if killed { Copied::Over } else { Copied::Waits(site) };
                    self.emit(site, EventKind::Revoked { job: id, of, killed });
                }
            }
            (2, _) if self.said[site as usize - 1].is_none() => {
                // Of some crashes nobody tells.
                let told = [None, Some(EndCause::Crash), Some(EndCause::Death), Some(EndCause::Found)];
                match told[passes as usize] {
                    Some(how) if self.up(site) => self.says(site, how),
                    _ => self.down[site as usize - 1] = true,
                }
            }
            (3, _) if !self.up(site) => {
                match self.said[site as usize - 1] {
                    None => {}
                    Some(EndCause::Crash | EndCause::Found) => {
                        self.emit(site, EventKind::Begun { how: BeginCause::Restart });
                    }
                    Some(EndCause::Absent) => self.emit(site, EventKind::Begun { how: BeginCause::Join }),
                    Some(EndCause::Pause) => {
                        self.said[site as usize - 1] = None;
                        return self.emit(site, EventKind::Begun { how: BeginCause::Resume });
                    }
                    Some(EndCause::Death | EndCause::Leave) => return,
                }
                self.said[site as usize - 1] = None;
                self.down[site as usize - 1] = false;
                self.emit(site, EventKind::Recovered { incarnation: 1, waiting: 0, running: 0, out: 0 });
                for job in 0..JOBS {
                    for place in 0..self.copies[job].len() {
                        if self.copies[job][place] == Copied::Runs(site) {
                            let killed = passes == 3;
                            self.copies[job][place] = if killed { Copied::Over } else { Copied::Waits(site) };
                            let job = JobId(job as u64 + 1);
                            self.emit(site, EventKind::Interrupted { job, processors: 3, killed });
                        }
                    }
                }
            }
            (4, _) if self.up(site) => self.emit(site, EventKind::Suspected { peer: SiteId(other) }),
            (5, _) if self.up(site) => self.emit(site, EventKind::Gone { peer: SiteId(other) }),
            (6, _) if self.up(site) => {
                self.emit(site, EventKind::Heard { peer: SiteId(other), after: Span::from_secs(1) });
            }
            (7, _) if self.up(site) && copies.len() < 4 => {
                let epoch = copies.len() as u32;
                // One site executes a job once at a time.
                if copies.iter().all(|&copy| copy != Copied::Runs(site) && copy != Copied::Waits(site)) {
                    self.copies[job].push(Copied::Waits(site));
                    self.emit(site, EventKind::TookOver { job: id, holder: SiteId(other), epoch });
                }
            }
            (8, Copied::Waits(at)) if self.up(at) && place + 1 < copies.len() => {
                let epoch = copies.len() as u32 - 1;
                self.copies[job][place] = Copied::Over;
                self.emit(at, EventKind::Superseded { job: id, epoch, started: false });
            }
            (8, Copied::Runs(at)) if self.up(at) && place + 1 < copies.len() => {
                let epoch = copies.len() as u32 - 1;
                self.emit(at, EventKind::Superseded { job: id, epoch, started: true });
            }
            (9, Copied::Waits(at)) if self.up(at) => {
                self.emit(at, EventKind::Orphaned { job: id, processors: 3 });
            }
            (10, Copied::Waits(at)) if self.up(at) => {
                let to = SiteId(at % 3 + 1);
                let free =
                    copies.iter().all(|&copy| copy != Copied::Runs(to.0) && copy != Copied::Waits(to.0));
                if free {
                    self.copies[job][place] = Copied::Waits(to.0);
                    let cause = GrantCause::Request;
                    self.emit(
                        at,
                        EventKind::Granted { job: id, to, transfer: 1, hops: 1, cause, request: 1 },
                    );
                }
            }
            (11, _) if self.up(site) => self.emit(site, EventKind::Left { peer: SiteId(other) }),
            (12, _) if self.up(site) => self.says(site, EndCause::Pause),
            (13, _) if self.up(site) => {
                self.emit(site, EventKind::Dismissed {});
                let here = |&copy: &Copied| copy == Copied::Waits(site) || copy == Copied::Runs(site);
                if !self.copies.iter().flatten().any(here) {
                    self.says(site, EndCause::Leave);
                }
            }
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn equals_a_search_of_the_whole_list(
        steps in prop::collection::vec((0u8..15, 0usize..4, 1u32..4, 0usize..JOBS, 0i64..4), 0..80),
        joins in any::<bool>(),
    ) {
        let mut model = Model { copies: vec![vec![Copied::Waits(1)]; JOBS], ..Model::default() };
        if joins {
            model.says(3, EndCause::Absent);
        }
        steps.into_iter().for_each(|step| model.step(step));
        let events = model.events;
        let run = outcome(JOBS as u64, &events);
        prop_assert_eq!(run.contradictions.total(), 0);

        for (job, row) in (1..).map(JobId).zip(&run.jobs) {
            let naive = naive::of_job(&events, job, 3);
            prop_assert_eq!(row.start, naive.counts.map(|counts| counts.1));
            if let Some((site, ..)) = naive.counts {
                prop_assert_eq!(row.site, Some(site));
            }
            prop_assert_eq!(row.end, naive.counts.and_then(|counts| counts.2));
            let found = run.faults.jobs.iter().find(|found| found.job == job);
            prop_assert_eq!(found.is_some(), naive::touched(&events, job));
            let Some(found) = found else { continue };
            prop_assert_eq!(
                (found.starts, found.completions, found.interrupted, found.taken_over),
                (naive.starts as u32, naive.completions as u32, naive.interrupted as u32, naive.taken_over as u32)
            );
            prop_assert_eq!(found.ran_twice, naive.ran_twice);
            prop_assert_eq!(found.orphaned, naive.orphaned);
            let work = [found.wasted_at_least, found.wasted_at_most, found.unknown_work, found.repeated_work];
            prop_assert_eq!(work, naive.work);
        }
        for site in [1, 2, 3].map(SiteId) {
            let down: Vec<_> = run.faults.downtimes.iter().filter(|down| down.site == site).collect();
            let expected = naive::downtimes(&events, site);
            prop_assert_eq!(down.iter().map(|down| (down.from, down.to)).collect::<Vec<_>>(), expected);
            let silent = run.faults.sites.iter().any(|found| found.site == site && found.silent_at_end);
            prop_assert_eq!(silent, naive::silent(&events, site));
        }
        let totals = run.faults.totals;
        let count = |wanted: fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count() as u64;
        let recovered = count(|kind| matches!(kind, EventKind::Recovered { .. }));
        let joined = count(|kind| matches!(kind, EventKind::Begun { how: BeginCause::Join }));
        prop_assert_eq!((totals.crashes, totals.joined), (recovered - joined, joined));
        prop_assert_eq!(totals.pauses, count(|kind| matches!(kind, EventKind::Ended { how: EndCause::Pause })));
        let of_sites: u64 = run.faults.sites.iter().map(|site| site.interrupted).sum();
        prop_assert_eq!(totals.interrupted, of_sites);
    }
}
