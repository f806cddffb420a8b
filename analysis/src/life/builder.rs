//! Follows one job through the events of a run.

use std::collections::BTreeSet;

use scheduler::event::{BeginCause, DeclineReason, EndCause, MessageKind, RefusalReason};
use scheduler::strategy::{Coallocation, Phases};
use scheduler::{
    Class, Event, EventKind, Grid, JobId, JobIndex, JobSpec, LocalScheduler, SiteId, Span, Strategy,
    Threshold, Time, TimedJob,
};

use super::{Cause, Life, Note, Part, Planned, Predicted, Reason, Refusals, Step, Wait};
use crate::executions::{Execution, Executions, Fate};
use crate::starts::Queues;
use crate::waits::{self, Watch};

/// Where the job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Waiting(SiteId),
    Transit { from: SiteId, to: SiteId, repeated: bool },
    Gone,
}

/// Tells the life of one job from events as they come.
#[derive(Clone, Debug)]
pub struct LifeBuilder {
    job: JobId,
    threshold: Threshold,
    /// Whether brokers give jobs away at once and say nothing of it: those of a reference.
    at_once: bool,
    /// Whether jobs may start in parts at several sites, and also those that a single site could hold.
    may_spread: bool,
    any_may_spread: bool,
    /// What is not known to be about this job or another yet.
    asked: Vec<Asked>,
    watch: Watch,
    line: u64,
    now: Time,
    place: Place,
    offered: bool,
    claimed: Option<SiteId>,
    /// The broker from whose queue it started in parts.
    started_by: Option<SiteId>,
    orphaned: bool,
    executions: Executions,
    /// The last time that it was given to a site.
    given: Option<Step>,
    /// The last event that freed processors.
    freed: Option<(Time, SiteId, JobId, u64)>,
    /// Sites whose copies are void: where it was when it was taken over.
    stale: BTreeSet<SiteId>,
    life: Option<Life>,
    messages_known: bool,
    /// If somebody asks for plans.
    plans: Option<Plans>,
}

/// Something between the broker where the job waits and a site, about a part of a job, which is this one unless another starts by it.
#[derive(Clone, Debug)]
struct Asked {
    step: Step,
    with: SiteId,
    /// Whether the site is asked for a part, which begins an attempt.
    asks: bool,
    /// Whether the site is told to start its part.
    starts: bool,
    /// How many other jobs it may be about.
    others: usize,
}

/// Plans of the queues that the job joins.
#[derive(Clone, Debug)]
struct Plans {
    scheduler: LocalScheduler,
    queues: Queues,
    index: JobIndex,
    jobs: Vec<JobSpec>,
    /// When and where it joined a queue, until all of that instant is known.
    joined: Option<(Time, SiteId)>,
    /// The last plan of each.
    planned: Vec<Planned>,
}

impl Plans {
    /// Plans for the job, if it joined a queue, before an event that comes after the instant, or before a start there.
    fn settle(&mut self, job: JobId, grid: &Grid, next: Option<&Event>) {
        let Some((at, site)) = self.joined else { return };
        let starts = |event: &Event| event.site == site && matches!(event.kind, EventKind::Started { .. });
        if next.is_some_and(|event| event.at <= at && !starts(event)) {
            return;
        }
        self.joined = None;
        let spec = |job| self.index.get(job).map(|place| self.jobs[place]);
        let processors = grid.site(site).processors;
        let plan = self.queues.plan(self.scheduler, site, processors, at, spec);
        if let Some(planned) = plan.and_then(|plan| plan.of(job)) {
            self.planned.retain(|before| before.site != site);
            self.planned.push(Planned { at, site, start: planned.start });
        }
    }

    fn observe(&mut self, job: JobId, grid: &Grid, event: &Event) {
        self.settle(job, grid, Some(event));
        self.queues.observe(event);
        let joins = match event.kind {
            EventKind::Submitted { job, .. } | EventKind::Accepted { job, .. } => Some(job),
            _ => None,
        };
        if joins == Some(job) && !grid.is_broker(event.site) {
            self.joined = Some((event.at, event.site));
        }
    }
}

impl LifeBuilder {
    /// For a job of a run of these jobs.
    pub fn new(
        grid: &Grid,
        threshold: Threshold,
        strategy: &Strategy,
        workload: &[TimedJob],
        job: JobId,
    ) -> LifeBuilder {
        LifeBuilder {
            job,
            threshold,
            at_once: false,
            may_spread: strategy.nature().coallocates,
            any_may_spread: strategy.broker().is_some_and(|rules| {
                rules.meta.coallocation == Coallocation::SuperCluster || rules.meta.phases == Phases::Two
            }),
            asked: Vec::new(),
            watch: Watch::new(grid, strategy, workload),
            line: 0,
            now: Time::from_micros(i64::MIN),
            place: Place::Gone,
            offered: false,
            claimed: None,
            started_by: None,
            orphaned: false,
            executions: Executions::default(),
            given: None,
            freed: None,
            stale: BTreeSet::new(),
            life: None,
            messages_known: false,
            plans: None,
        }
    }

    /// The same, with plans of the queues that the job joins, by this local scheduler of all sites.
    #[must_use]
    pub fn with_plans(self, scheduler: LocalScheduler, workload: &[TimedJob]) -> LifeBuilder {
        let plans = Plans {
            scheduler,
            queues: Queues::default(),
            index: JobIndex::new(workload),
            jobs: workload.iter().map(|job| job.spec).collect(),
            joined: None,
            planned: Vec::new(),
        };
        LifeBuilder { plans: Some(plans), ..self }
    }

    /// The same of a reference without messages, whose brokers log no decisions.
    #[must_use]
    pub fn of_reference(self) -> LifeBuilder {
        LifeBuilder { at_once: true, ..self }
    }

    /// Takes the next event of a log that is read whole.
    pub fn observe(&mut self, event: &Event) {
        self.observe_line(self.line + 1, event);
    }

    /// Takes the next event, of which this is the line. Those that were left out are of messages that were sent once and
    /// arrived.
    pub fn observe_line(&mut self, line: u64, event: &Event) {
        while let Some(at) = self.watch.next_local(event.at) {
            self.reach(at, line);
            self.watch.advance(at);
        }
        self.reach(event.at, line);
        self.line = line;
        self.messages_known |= matches!(event.kind, EventKind::Sent { .. } | EventKind::Received { .. });
        if let Some(plans) = &mut self.plans {
            plans.observe(self.job, self.watch.grid(), event);
        }
        self.follow(event);
        self.watch.observe(event);
    }

    /// Whether events of single messages were among those that were taken.
    pub fn knows_messages(&self) -> bool {
        self.messages_known
    }

    /// Whether the job has ended, so that without faults nothing more can happen to it.
    pub fn has_ended(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.end.is_some())
    }

    /// Says that the log has events of messages, which were left out.
    pub fn passed_messages(&mut self) {
        self.messages_known = true;
    }

    /// The life; `None` if the log has no such job.
    pub fn finish(mut self) -> Option<Life> {
        let messages_known = self.messages_known;
        if let Some(plans) = &mut self.plans {
            plans.settle(self.job, self.watch.grid(), None);
        }
        let asked = self.asked;
        self.life.map(|mut life| {
            // Attempts that came to nothing.
            life.steps.extend(asked.into_iter().map(|Asked { mut step, others, .. }| {
                match others {
                    0 => {}
                    1 => step.text += " (or of another job that waits there)",
                    others => step.text += &format!(" (or of one of {others} others that wait there)"),
                }
                step
            }));
            life.steps.sort_by_key(|step| step.line);
            // One that waits still: the queue that it joined last.
            let counts = |planned: &Planned| life.site.is_none_or(|site| site == planned.site);
            let planned = self.plans.and_then(|plans| plans.planned.into_iter().rfind(counts));
            Life { messages_known, planned, ..life }
        })
    }

    /// Nothing has happened until then.
    fn reach(&mut self, at: Time, line: u64) {
        if at > self.now {
            self.settle(at, line);
            self.now = at;
        }
    }

    /// Adds the time until `to` to the wait.
    fn settle(&mut self, to: Time, next: u64) {
        let Some(cause) = self.cause() else { return };
        let Some(life) = &mut self.life else { return };
        match life.waits.last_mut() {
            Some(last) if last.cause == cause => (last.to, last.lines.1) = (to, next),
            _ => life.waits.push(Wait { from: self.now, to, cause, lines: (self.line, next) }),
        }
    }

    /// Why the job does not start now; `None` if it does not wait.
    fn cause(&mut self) -> Option<Cause> {
        let (site, to) = match self.place {
            Place::Gone => return None,
            Place::Waiting(site) => (site, None),
            Place::Transit { from, to, .. } => (from, Some(to)),
        };
        let of_fault = |reason| Some(Cause { reason, site, room: None, note: None });
        if to.is_none() && self.watch.is_away(site) {
            return of_fault(Reason::Away);
        }
        if to.is_none() && self.orphaned {
            return of_fault(Reason::Orphaned);
        }
        let at_broker = to.is_none() && self.watch.grid().is_broker(site);
        let is_spread = self.life.as_ref().is_some_and(|life| life.home.is_none());
        let (cause, room) = match self.watch.why(self.job, self.now) {
            Some((cause, room)) if to.is_none() => (cause, room),
            // No site can hold it, nor by the grid of the log can several: results do not say how wide jobs in parts may be.
            _ if at_broker && is_spread => (waits::Cause::Full, None),
            _ => (waits::Cause::InTransit, to),
        };
        let (note, room) = match (self.place, cause, self.claimed) {
            (Place::Transit { repeated: true, .. }, ..) => (Some(Note::Repeated), room),
            (_, waits::Cause::Asked, Some(claimant)) => (Some(Note::Claimed), Some(claimant)),
            _ if at_broker && self.at_once && !is_spread => (Some(Note::Allocated), None),
            _ if at_broker && is_spread => (Some(Note::InParts), None),
            _ if at_broker => (Some(Note::Undecided), room),
            _ => (None, room),
        };
        Some(Cause { reason: Reason::Of(cause), site, room, note })
    }

    /// What the event means for the job.
    fn follow(&mut self, event: &Event) {
        let Event { at, site, kind } = *event;
        if let EventKind::Started { job, .. } | EventKind::PartStarted { job, .. } = kind {
            self.started_in_parts(job, site);
        }
        match kind {
            EventKind::Submitted { job, processors, requested, origin } if job == self.job => {
                self.submitted(at, site, processors, requested, origin);
            }
            EventKind::Allocated { job, to, as_of } if job == self.job => {
                let (broker, to) = (self.name(site), self.name(to));
                let known = match as_of {
                    Some(then) => {
                        let age = at.since(then).max(Span::ZERO);
                        format!("as it knew it at {} s, {} s ago", then.as_secs_f64(), age.as_secs_f64())
                    }
                    None => "of which it had heard nothing".to_string(),
                };
                self.step(at, site, format!("{broker} chooses {to}, {known}"));
            }
            EventKind::Granted { job, to, cause, .. } if job == self.job => {
                if self.owns(site) {
                    self.place = Place::Transit { from: site, to, repeated: false };
                    (self.offered, self.claimed, self.orphaned) = (false, None, false);
                }
                let to = self.name(to);
                let text = format!("{} gives it to {to} ({})", self.name(site), cause.name());
                self.given = Some(Step { at, line: self.line, site, text: text.clone() });
                self.step(at, site, text);
            }
            EventKind::Accepted { job, firm, .. } if job == self.job => {
                // What executes there already goes on.
                let open = |execution: &Execution| execution.site == site && execution.fate == Fate::Open;
                if !self.executions.all().iter().any(open) && self.place != Place::Gone {
                    self.stale.remove(&site);
                    self.place = Place::Waiting(site);
                }
                let must = if firm { ", which has to" } else { "" };
                self.step(at, site, format!("{} takes it{must}", self.name(site)));
                self.position(at, site);
            }
            EventKind::Declined { job, reason, .. } if job == self.job => {
                let why = match reason {
                    DeclineReason::OwnWork => "jobs of its own wait by now",
                    DeclineReason::DoesNotFit => "its processors are no longer idle",
                    DeclineReason::Recalled => "it was called back",
                    DeclineReason::Unclaimed => "its claim was given up",
                    DeclineReason::Superseded => "it was taken over since",
                };
                self.step(at, site, format!("{} declines it: {why}", self.name(site)));
            }
            EventKind::Returned { job, by, bounces, .. } if job == self.job => {
                if self.owns(site) {
                    self.place = Place::Waiting(site);
                }
                let (name, by) = (self.name(site), self.name(by));
                self.step(at, site, format!("{name} has it back from {by}, declined {bounces} times so far"));
            }
            EventKind::Offered { job, .. } if job == self.job => {
                self.offered = true;
                self.step(at, site, format!("{} offers it to the global queue", self.name(site)));
            }
            EventKind::Withdrawn { job, .. } if job == self.job => self.offered = false,
            EventKind::Claimed { job, .. } if job == self.job => {
                self.claimed = Some(site);
                self.step(at, site, format!("{} claims it", self.name(site)));
            }
            EventKind::Released { job, .. } if job == self.job && self.claimed == Some(site) => {
                self.claimed = None;
            }
            EventKind::Denied { job, claimant, .. } if job == self.job => {
                let claimant = self.name(claimant);
                self.step(at, site, format!("{} turns down the claim of {claimant}", self.name(site)));
            }
            EventKind::Started { job, hops, .. } if job == self.job => {
                self.decided(at, site);
                let grid = self.watch.grid();
                let is_spread = |at: SiteId| self.may_spread && at != site && grid.is_broker(at);
                self.started_by = match self.place {
                    Place::Waiting(at) if is_spread(at) => Some(at),
                    _ => None,
                };
                (self.place, self.orphaned) = (Place::Gone, false);
                // A start that must not be is told like any other; reports count it as a contradiction.
                let _ = self.executions.start(site, at, hops);
                self.count();
                self.step(at, site, format!("it starts at {}", self.name(site)));
            }
            EventKind::PartStarted { job, processors, .. } if job == self.job => {
                if let Some(life) = &mut self.life {
                    life.parts.push(Part { site, processors });
                }
                self.step(
                    at,
                    site,
                    format!("a part of it starts at {}, with {processors} processors", self.name(site)),
                );
            }
            EventKind::Completed { job, .. } if job == self.job => {
                let _ = self.executions.complete(site, at);
                self.count();
                let again = match self.life.as_ref().and_then(|life| life.end) {
                    Some(end) if end < at => ", for the second time",
                    _ => "",
                };
                if let Some(life) = &mut self.life {
                    life.ends += 1;
                }
                self.step(at, site, format!("it ends at {}{again}", self.name(site)));
            }
            EventKind::Placed { job, .. } if job == self.job => {
                if let Some(life) = &mut self.life {
                    life.shares_nodes = true;
                }
            }
            EventKind::Predicted { job, run_time, corrections } if job == self.job => {
                self.predicted(Predicted { at, site, run_time, corrections });
            }
            EventKind::Completed { job, .. } => self.freed = Some((at, site, job, self.line)),
            EventKind::Interrupted { job, killed, .. } if job == self.job => {
                self.interrupted(at, site, killed);
            }
            EventKind::Revoked { job, of, killed } if job == self.job => {
                self.started_by = None;
                let had_ended = self.life.as_ref().is_some_and(|life| life.end.is_some());
                let _ = self.executions.revoke(of, killed);
                self.count();
                self.place = if killed { Place::Gone } else { Place::Waiting(site) };
                if let Some(life) = &mut self.life {
                    life.ends -= u32::from(had_ended);
                    life.interrupted += u32::from(had_ended);
                    life.parts.clear();
                }
                let (name, of) = (self.name(site), self.name(of));
                let then =
                    if killed { "it is given up".to_string() } else { format!("it waits at {name} again") };
                let what = match had_ended {
                    true => {
                        format!("its end at {of} counts for nothing, as another part of it was lost; {then}")
                    }
                    false => format!("a part of it was lost; {then}"),
                };
                self.step(at, site, what);
            }
            EventKind::TookOver { job, holder, epoch } if job == self.job => {
                self.taken_over(at, site, holder, epoch);
            }
            EventKind::Superseded { job, epoch, started } if job == self.job => {
                self.executions.taken_over(epoch);
                self.stale.remove(&site);
                let what = if started { "executes it, so that it may run twice" } else { "drops its copy" };
                self.step(at, site, format!("{} learns that it was taken over, and {what}", self.name(site)));
            }
            EventKind::Orphaned { job, .. } if job == self.job => {
                self.orphaned = true;
                let name = self.name(site);
                self.step(at, site, format!("no site that is there is wide enough; it waits at {name}"));
            }
            EventKind::Refused { thief, reason, .. } if self.place == Place::Waiting(site) => {
                self.refused(thief, site, reason);
            }
            EventKind::Ended { how } => self.site_ended(at, site, how),
            EventKind::Begun { how } => self.site_begun(at, site, how),
            EventKind::Dismissed {} if self.is_about(site) => {
                self.step(at, site, format!("{} is told to leave", self.name(site)));
            }
            EventKind::Lost { to, message } => {
                self.in_parts(at, site, to, message, true);
                self.disturbed(at, site, to, message, "is lost");
            }
            EventKind::Sent { to, message, retry: true } => {
                self.disturbed(at, site, to, message, "is sent again");
            }
            EventKind::Sent { to, message, retry: false } => self.in_parts(at, site, to, message, false),
            EventKind::Received { from, message } => self.in_parts(at, site, from, message, false),
            _ => {}
        }
    }

    fn predicted(&mut self, predicted: Predicted) {
        let Predicted { at, site, run_time, corrections } = predicted;
        let Some(life) = &mut self.life else { return };
        let before = life.predictions.iter().rfind(|before| before.site == site);
        let ran_past = before.filter(|_| corrections > 0).map(|before| before.run_time);
        life.predictions.push(predicted);
        let name = self.name(site);
        let text = match ran_past {
            Some(before) => {
                format!("it has run past the {before} s that were predicted; {name} predicts {run_time} s")
            }
            None => format!("{name} predicts that it runs for {run_time} s"),
        };
        self.step(at, site, text);
    }

    /// Notes what let the job start at this moment.
    fn decided(&mut self, at: Time, site: SiteId) {
        let Some(last) = self.life.as_ref().and_then(|life| life.waits.last()) else { return };
        let travelled = last.cause.reason == Reason::Of(waits::Cause::InTransit);
        let freed = self.freed.filter(|(when, there, ..)| (*when, *there) == (at, site) && !travelled);
        let decided = match freed {
            Some((_, _, job, line)) => {
                let text = format!("job {job} ends at {} and makes room", self.name(site));
                Some(Step { at, line, site, text })
            }
            None => self.given.clone(),
        };
        if let Some(life) = &mut self.life {
            life.decided = decided;
        }
    }

    /// Whether what this site does with the job is done with the copy that counts.
    fn owns(&self, site: SiteId) -> bool {
        !self.stale.contains(&site) && self.executions.counts().is_none()
    }

    /// Whether what becomes of a site matters to the job: it is there, on its way from or to there, or executes there.
    fn is_about(&self, site: SiteId) -> bool {
        let here = match self.place {
            Place::Waiting(at) => at == site,
            Place::Transit { from, to, .. } => from == site || to == site,
            Place::Gone => false,
        };
        let open = |execution: &Execution| execution.site == site && execution.fate == Fate::Open;
        here || self.executions.all().iter().any(open)
    }

    fn site_ended(&mut self, at: Time, site: SiteId, how: EndCause) {
        if !self.is_about(site) {
            return;
        }
        let what = match how {
            EndCause::Crash => "crashes",
            EndCause::Death => "crashes for good",
            EndCause::Leave => "has left",
            EndCause::Pause => "stands still",
            EndCause::Absent => "is not there yet",
            EndCause::Found => "was found to have ended",
        };
        let cut = how.interrupts() && self.executions.cut(site, None, at);
        if cut {
            self.count();
            if self.executions.counts().is_none() && !self.stale.contains(&site) {
                self.place = Place::Waiting(site);
            }
        }
        let and = if cut { ", which interrupts it" } else { "" };
        self.step(at, site, format!("{} {what}{and}", self.name(site)));
    }

    fn site_begun(&mut self, at: Time, site: SiteId, how: BeginCause) {
        let what = match how {
            BeginCause::Join => "joins",
            BeginCause::Restart => "restarts",
            BeginCause::Resume => "goes on",
        };
        if self.is_about(site) {
            self.step(at, site, format!("{} {what}", self.name(site)));
        }
        if how == BeginCause::Restart {
            self.executions.began_again(site);
        }
    }

    fn interrupted(&mut self, at: Time, site: SiteId, killed: bool) {
        let _ = self.executions.interrupt(site, None, at, killed);
        self.count();
        let here = self.place == Place::Gone || self.place == Place::Waiting(site);
        let broker = self.started_by.take();
        if here && self.executions.counts().is_none() && !self.stale.contains(&site) {
            self.place = if killed { Place::Gone } else { Place::Waiting(broker.unwrap_or(site)) };
        }
        if let Some(life) = &mut self.life {
            life.interrupted += 1;
            life.parts.clear();
        }
        let then = if killed { "it is given up" } else { "it waits there again" };
        let name = self.name(site);
        let text = match broker {
            Some(broker) => {
                format!("a part of it was lost, {name} ends its own; it waits at {} again", self.name(broker))
            }
            None => format!("{name} is back after a crash, which interrupted it; {then}"),
        };
        self.step(at, site, text);
    }

    fn taken_over(&mut self, at: Time, site: SiteId, holder: SiteId, epoch: u32) {
        self.executions.taken_over(epoch);
        self.stale.insert(holder);
        if let Place::Transit { to, .. } = self.place {
            self.stale.insert(to);
        }
        self.stale.remove(&site);
        let by_operator = holder == site;
        let ended = self.life.as_ref().is_some_and(|life| life.end.is_some());
        (self.offered, self.claimed) = (false, None);
        let executes = |execution: &Execution| execution.site == site && execution.fate == Fate::Open;
        let goes_on = self.executions.all().iter().any(executes);
        self.place = if ended || goes_on { Place::Gone } else { Place::Waiting(site) };
        if let Some(life) = &mut self.life {
            life.taken_over += 1;
        }
        let (name, holder) = (self.name(site), self.name(holder));
        let text = match by_operator {
            true => format!("{name} adopts it by order of the operator; it may have run elsewhere"),
            false => format!("{name} takes it over from {holder}, which is gone and may have run it"),
        };
        self.step(at, site, text);
    }

    /// Shows the execution that counts.
    fn count(&mut self) {
        let counts = self.executions.counts().map(|place| self.executions.all()[place]);
        let Some(life) = &mut self.life else { return };
        life.start = counts.map(|execution| execution.start);
        life.site = counts.map(|execution| execution.site);
        life.hops = counts.map_or(life.hops, |execution| execution.hops);
        life.end = match counts.map(|execution| execution.fate) {
            Some(Fate::Completed(end)) => Some(end),
            _ => None,
        };
    }

    fn submitted(&mut self, at: Time, site: SiteId, processors: u32, requested: Span, origin: SiteId) {
        let grid = self.watch.grid();
        let home = grid.home(processors);
        let class = home.map(|home| Class::at_home(processors, grid.site(home).processors, self.threshold));
        // What is submitted late, as the clocks of processes go, was under way until then.
        let submit = self.watch.submit(self.job).map_or(at, |submit| submit.min(at));
        let cause = Cause {
            reason: Reason::Of(waits::Cause::InTransit),
            site: origin,
            room: Some(site),
            note: Some(Note::Late),
        };
        let late = Wait { from: submit, to: at, cause, lines: (self.line, self.line) };
        self.life = Some(Life {
            job: self.job,
            processors,
            requested,
            origin,
            home,
            class,
            submit,
            start: None,
            site: None,
            parts: Vec::new(),
            end: None,
            ends: 0,
            hops: 0,
            interrupted: 0,
            taken_over: 0,
            shares_nodes: false,
            predictions: Vec::new(),
            planned: None,
            steps: Vec::new(),
            waits: if submit < at { vec![late] } else { Vec::new() },
            decided: None,
            refusals: Vec::new(),
            messages_known: false,
        });
        self.place = Place::Waiting(site);
        let text = format!("it is submitted at {} and reaches {}", self.name(origin), self.name(site));
        self.step(at, site, text);
        self.position(at, site);
    }

    /// Says what is ahead of it in the queue.
    fn position(&mut self, at: Time, site: SiteId) {
        let Some(life) = &self.life else { return };
        let at_broker = self.watch.grid().is_broker(site);
        if at_broker && self.at_once {
            return;
        }
        let (submit, home) = (life.submit, life.home);
        let ahead = self.watch.ahead(site, (submit, self.job));
        let width: u64 = ahead.iter().map(|(_, processors)| u64::from(*processors)).sum();
        let idle = self.watch.idle(site);
        let of = self.watch.grid().site(site).processors;
        let of = match self.watch.grid().cluster(site) {
            Some(_) => format!("{of} places for tasks"),
            None => format!("{of} processors"),
        };
        let ahead_of_it = match ahead.len() {
            0 => "nothing waits ahead of it".to_string(),
            1 => format!("one job waits ahead of it for {width} processors"),
            jobs => format!("{jobs} jobs wait ahead of it for {width} processors"),
        };
        if at_broker {
            return self.step(at, site, format!("no site has it yet; {ahead_of_it}"));
        }
        if self.has_brokers() {
            // Classes mean nothing to them.
            return self.step(at, site, format!("there {idle} of {of} are idle; {ahead_of_it}"));
        }
        let class = match life.class {
            Some(class) if home == Some(site) => class.letter().to_string(),
            _ => "H".to_string(),
        };
        let [mut a, mut b, mut h] = [0; 3];
        for (home, processors) in &ahead {
            let here = self.watch.grid().site(site).processors;
            match (*home == Some(site), self.threshold.is_big(*processors, here)) {
                (false, _) => h += 1,
                (true, true) => a += 1,
                (true, false) => b += 1,
            }
        }
        let queue = match ahead.len() {
            0 => ahead_of_it,
            1 => format!("one job waits ahead of it ({a} A, {b} B, {h} H) for {width} processors"),
            jobs => format!("{jobs} jobs wait ahead of it ({a} A, {b} B, {h} H) for {width} processors"),
        };
        let text = format!("there it is of class {class}; {idle} of {of} are idle; {queue}");
        self.step(at, site, text);
    }

    fn refused(&mut self, thief: SiteId, site: SiteId, reason: RefusalReason) {
        let offer = self.watch.offer(thief, site);
        let line = self.line;
        let Some(life) = &mut self.life else { return };
        let too_small = u64::from(offer.is_some_and(|offer| offer < life.processors));
        match life.refusals.iter_mut().find(|found| (found.thief, found.reason) == (thief, reason)) {
            Some(found) => {
                found.count += 1;
                found.too_small += too_small;
            }
            None => life.refusals.push(Refusals { thief, reason, count: 1, too_small, line }),
        }
    }

    /// A message between the two ends of the hand-over was lost or repeated.
    fn disturbed(&mut self, at: Time, site: SiteId, other: SiteId, message: MessageKind, what: &str) {
        let Place::Transit { from, to, .. } = self.place else { return };
        let carries = matches!(
            message,
            MessageKind::Grant
                | MessageKind::Reply
                | MessageKind::Route
                | MessageKind::Recall
                | MessageKind::Award
                | MessageKind::Give
        );
        if carries && ((site, other) == (from, to) || (site, other) == (to, from)) {
            self.place = Place::Transit { from, to, repeated: true };
            let (site_name, other) = (self.name(site), self.name(other));
            let text = format!("a {} from {site_name} to {other} {what}", message.name());
            self.step(at, site, text);
        }
    }

    /// A message between the broker where it waits and a site, about starting in parts. Messages do not say of which job they are: if
    /// others could be meant, the step says so.
    fn in_parts(&mut self, at: Time, site: SiteId, other: SiteId, message: MessageKind, is_lost: bool) {
        let Place::Waiting(broker) = self.place else { return };
        let ends = if site == broker { (site, other) } else { (other, site) };
        if ends.0 != broker || !self.watch.grid().is_broker(broker) || !self.may_spread {
            return;
        }
        let (from, with) = (self.name(broker), self.name(ends.1));
        let by_broker = site == broker;
        let lost = if is_lost { ", which is lost" } else { "" };
        let text = match message {
            MessageKind::Prepare if by_broker => {
                format!("{from} asks {with} to keep processors for a part{lost}")
            }
            MessageKind::Commit if by_broker => format!("{from} tells {with} to start its part{lost}"),
            MessageKind::Abort if by_broker => format!("{from} tells {with} that it does not start so{lost}"),
            MessageKind::Ready if by_broker => format!("{with} keeps processors for a part"),
            MessageKind::Refuse if by_broker => format!("{with} refuses a part"),
            MessageKind::Ready | MessageKind::Refuse if is_lost => {
                format!("{with} answers {from} about a part{lost}")
            }
            _ => return,
        };
        let step = Step { at, line: self.line, site, text };
        let others = self.watch.others_in_parts(broker, self.job, self.any_may_spread);
        let asks = by_broker && message == MessageKind::Prepare && !is_lost;
        let starts = by_broker && message == MessageKind::Commit && !is_lost;
        self.asked.push(Asked { step, with: ends.1, asks, starts, others });
    }

    /// A job starts at a site, whole or in part: the attempt by which that site was told to start was about this job.
    fn started_in_parts(&mut self, job: JobId, site: SiteId) {
        let of_site = |asked: &Asked| asked.with == site;
        let Some(last) = self.asked.iter().position(|asked| of_site(asked) && asked.starts) else { return };
        let first = self.asked[..last].iter().rposition(|asked| of_site(asked) && asked.asks).unwrap_or(last);
        let about: Vec<Asked> = self.asked.extract_if(first..=last, |asked| of_site(asked)).collect();
        if let Some(life) = self.life.as_mut().filter(|_| job == self.job) {
            // They are put in order in the end.
            life.steps.extend(about.into_iter().map(|asked| asked.step));
        }
    }

    fn step(&mut self, at: Time, site: SiteId, text: String) {
        let line = self.line;
        if let Some(life) = &mut self.life {
            life.steps.push(Step { at, line, site, text });
        }
    }

    fn has_brokers(&self) -> bool {
        self.watch.grid().brokers() > 0
    }

    fn name(&self, site: SiteId) -> String {
        self.watch.grid().site(site).name.clone()
    }
}
