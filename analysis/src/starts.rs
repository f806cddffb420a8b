//! When would the jobs that wait at a site start? Its queue as an onlooker sees it, and the plan of its local scheduler.
//!
//! Made of events alone, whatever a site knew. Only sites with a queue and a local scheduler have plans; where jobs may leave for other
//! sites, or brokers send more, a plan says what comes of it if none does.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::local::{LocalQueue, Plan};
use scheduler::{Event, EventKind, JobId, JobSpec, LocalScheduler, Pass, SiteId, Span, Time};

/// The plan of a site by its local scheduler: what waits there, and what runs there since when, each with the time that it is believed to
/// run. None of a scheduler outside of this code, or if what runs is wider than the site.
pub fn plan(
    scheduler: LocalScheduler,
    processors: u32,
    now: Time,
    waiting: impl Iterator<Item = JobSpec>,
    running: impl Iterator<Item = (JobSpec, Time)>,
) -> Option<Plan> {
    if scheduler == LocalScheduler::External {
        return None;
    }
    let mut queue = LocalQueue::new(scheduler, Pass::Batch, processors);
    let mut free = processors;
    for (job, since) in running {
        free = free.checked_sub(job.processors)?;
        queue.take_over(now, job, since);
    }
    for job in waiting.filter(|job| (1..=processors).contains(&job.processors)) {
        queue.submit(now, job);
    }
    Some(queue.plan(now))
}

/// Where jobs wait and run, and what is predicted of them, by events.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    waiting: BTreeMap<SiteId, BTreeSet<JobId>>,
    /// Since when, and on how many processors: a part of a job is on fewer than the job.
    running: BTreeMap<SiteId, BTreeMap<JobId, (Time, u32)>>,
    /// Jobs that run there and did not wait there: if they are interrupted they wait at their broker.
    from_elsewhere: BTreeSet<(SiteId, JobId)>,
    /// Of jobs that wait or run there.
    predicted: BTreeMap<(SiteId, JobId), Span>,
    /// Of parts that run there, the site that their job is known by: it alone says what is predicted of it.
    known_by: BTreeMap<(SiteId, JobId), SiteId>,
}

impl Queues {
    /// Takes one event into account.
    pub fn observe(&mut self, event: &Event) {
        let Event { at, site, kind } = *event;
        match kind {
            EventKind::Submitted { job, .. }
            | EventKind::Accepted { job, .. }
            | EventKind::Returned { job, .. }
            | EventKind::TookOver { job, .. }
                if !self.runs(site, job) =>
            {
                self.waiting.entry(site).or_default().insert(job);
            }
            EventKind::Granted { job, .. } | EventKind::Superseded { job, started: false, .. } => {
                self.forget(site, job);
            }
            EventKind::Started { job, processors, .. } | EventKind::PartStarted { job, processors, .. } => {
                if !self.waiting.entry(site).or_default().remove(&job) {
                    self.from_elsewhere.insert((site, job));
                }
                self.running.entry(site).or_default().insert(job, (at, processors));
                if let EventKind::PartStarted { of, .. } = kind {
                    self.known_by.insert((site, job), of);
                }
            }
            EventKind::Completed { job, .. } | EventKind::PartCompleted { job, .. } => self.forget(site, job),
            EventKind::Interrupted { job, killed, .. } => {
                let predicted = self.predicted.get(&(site, job)).copied();
                let waited_here = !self.from_elsewhere.contains(&(site, job));
                self.forget(site, job);
                if !killed && waited_here {
                    self.waiting.entry(site).or_default().insert(job);
                    self.predicted.extend(predicted.map(|run_time| ((site, job), run_time)));
                }
            }
            EventKind::Predicted { job, run_time, .. } => {
                self.predicted.insert((site, job), run_time);
            }
            _ => {}
        }
    }

    /// The plan of a site of so many processors as of now; `spec` knows the jobs. None where there is none.
    pub fn plan(
        &self,
        scheduler: LocalScheduler,
        site: SiteId,
        processors: u32,
        now: Time,
        spec: impl Fn(JobId) -> Option<JobSpec>,
    ) -> Option<Plan> {
        let believed = |job: JobId| {
            let job = spec(job)?;
            let by = self.known_by.get(&(site, job.id)).copied().unwrap_or(site);
            let requested = self.predicted.get(&(by, job.id)).copied().unwrap_or(job.requested);
            Some(JobSpec { requested, ..job })
        };
        let waiting = self.waiting.get(&site).into_iter().flatten();
        let running = self.running.get(&site).into_iter().flatten();
        let running = running.filter_map(|(&job, &(since, processors))| {
            Some((JobSpec { processors, ..believed(job)? }, since))
        });
        plan(scheduler, processors, now, waiting.filter_map(|&job| believed(job)), running)
    }

    fn runs(&self, site: SiteId, job: JobId) -> bool {
        self.running.get(&site).is_some_and(|running| running.contains_key(&job))
    }

    fn forget(&mut self, site: SiteId, job: JobId) {
        if let Some(waiting) = self.waiting.get_mut(&site) {
            waiting.remove(&job);
        }
        self.from_elsewhere.remove(&(site, job));
        if let Some(running) = self.running.get_mut(&site) {
            running.remove(&job);
        }
        self.predicted.remove(&(site, job));
        self.known_by.remove(&(site, job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{completed, event, started, timed_job};

    fn submitted(at: i64, job: u64, processors: u32) -> Event {
        let (requested, origin) = (Span::from_secs(10), SiteId(1));
        event(at, 1, EventKind::Submitted { job: JobId(job), processors, requested, origin })
    }

    /// On 4 processors every job asks for 10 s: job 1 runs from 0 s, job 2 waits for it, job 3 goes beside. At 4 s job 1 ends: job 2 can
    /// start at once. It is predicted to run for 3 s, so that job 4 starts at 7 s.
    #[test]
    fn a_plan_follows_what_events_tell() {
        let at = Time::from_secs;
        let mut queues = Queues::default();
        let jobs = [(1, 3), (2, 4), (3, 1), (4, 4)];
        let spec = |job: JobId| {
            let (id, processors) = jobs.into_iter().find(|&(id, _)| id == job.0)?;
            Some(timed_job(id, 0, processors, 10).spec)
        };
        let starts = |queues: &Queues, now| {
            let plan = queues.plan(LocalScheduler::Easy, SiteId(1), 4, at(now), spec).unwrap();
            plan.jobs().iter().map(|planned| (planned.job.0, planned.start)).collect::<Vec<_>>()
        };
        for event in [submitted(0, 1, 3), started(0, 1, 1, 3), submitted(0, 2, 4), submitted(0, 3, 1)] {
            queues.observe(&event);
        }
        assert_eq!(starts(&queues, 2), [(2, at(10)), (3, at(20))]);
        assert_eq!(starts(&queues, 0), [(3, at(0)), (2, at(10))]);
        queues.observe(&completed(4, 1, 1));
        queues.observe(&submitted(4, 4, 4));
        let run_time = Span::from_secs(3);
        queues.observe(&event(4, 1, EventKind::Predicted { job: JobId(2), run_time, corrections: 0 }));
        assert_eq!(starts(&queues, 4), [(2, at(4)), (3, at(7)), (4, at(17))]);
        queues.observe(&event(4, 1, EventKind::Interrupted { job: JobId(3), processors: 1, killed: true }));
        assert_eq!(starts(&queues, 4), [(2, at(4)), (4, at(7))]);
        // A part of job 1, which another site is known by and says is predicted to run for 2 s.
        let part = EventKind::PartStarted { job: JobId(1), processors: 1, of: SiteId(2) };
        queues.observe(&event(4, 1, part));
        let run_time = Span::from_secs(2);
        queues.observe(&event(4, 2, EventKind::Predicted { job: JobId(1), run_time, corrections: 0 }));
        assert_eq!(starts(&queues, 4), [(2, at(6)), (4, at(9))]);
        assert_eq!(queues.plan(LocalScheduler::External, SiteId(1), 4, at(4), spec).map(|_| ()), None);
        assert_eq!(queues.plan(LocalScheduler::Easy, SiteId(2), 8, at(4), spec).unwrap().jobs(), []);
    }
}
