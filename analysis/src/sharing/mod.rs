//! Jobs on nodes that they share, as events tell it: where each execution was, from when to when, and how fast it went on.
//!
//! Nothing here says how fast a job should go on: that is the model's business, and [`audit`]'s, which does not trust it. What local
//! users feel of jobs is in [`intrusion`].

pub mod audit;
pub mod intrusion;
pub(crate) mod room;

use std::collections::BTreeMap;

use scheduler::event::BeginCause;
use scheduler::{Event, EventKind, JobId, SiteId, Time};

/// One execution of a job on shared nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// When it ended, in whatever way; `None` if nobody said.
    pub end: Option<Time>,
    /// Its nodes, ascending, counted within its site from 0.
    pub nodes: Vec<u32>,
    /// How fast it went on, by when that began, ascending.
    pub paces: Vec<Pace>,
}

/// How fast a job went on from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From when on.
    pub from: Time,
    /// How many times longer it took than on idle nodes of full power, in millionths.
    pub slowdown_millionths: u64,
    /// The part of its time in which it computed, in millionths.
    pub computing_millionths: u32,
}

/// All executions on shared nodes. Empty where every processor has one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placements {
    executions: BTreeMap<(JobId, SiteId, Time), Placement>,
    /// When those began that have not ended.
    open: BTreeMap<(SiteId, JobId), Time>,
}

impl Placements {
    /// Whether no job was on shared nodes.
    pub fn is_empty(&self) -> bool {
        self.executions.is_empty()
    }

    /// The execution of a job that began at a site at an instant.
    pub fn get(&self, job: JobId, site: SiteId, start: Time) -> Option<&Placement> {
        self.executions.get(&(job, site, start))
    }

    /// The latest execution of a job at a site, or of a part of it.
    pub fn latest(&self, job: JobId, site: SiteId) -> Option<(Time, &Placement)> {
        let all = (job, site, Time::from_micros(i64::MIN))..=(job, site, Time::MAX);
        self.executions.range(all).next_back().map(|(&(_, _, start), placement)| (start, placement))
    }

    /// All of them, by job, site and start.
    pub fn iter(&self) -> impl Iterator<Item = (JobId, SiteId, Time, &Placement)> + '_ {
        self.executions.iter().map(|(&(job, site, start), placement)| (job, site, start, placement))
    }

    /// Takes one event into account.
    pub(crate) fn observe(&mut self, event: &Event) {
        let (at, site) = (event.at, event.site);
        match event.kind {
            EventKind::Placed { job, node } => {
                self.open.insert((site, job), at);
                let nodes = &mut self.executions.entry((job, site, at)).or_default().nodes;
                if let Err(place) = nodes.binary_search(&node) {
                    nodes.insert(place, node);
                }
            }
            EventKind::Paced { job, slowdown_millionths, computing_millionths } => {
                let Some(placement) = self.running(site, job) else { return };
                // The last word of an instant counts.
                placement.paces.pop_if(|last| last.from == at);
                placement.paces.push(Pace { from: at, slowdown_millionths, computing_millionths });
            }
            EventKind::Completed { job, .. }
            | EventKind::PartCompleted { job, .. }
            | EventKind::Interrupted { job, .. } => self.end(site, job, at),
            EventKind::Ended { how } if how.interrupts() => self.end_all(site, at),
            EventKind::Begun { how: BeginCause::Restart } | EventKind::Recovered { .. } => {
                self.end_all(site, at);
            }
            _ => {}
        }
    }

    fn running(&mut self, site: SiteId, job: JobId) -> Option<&mut Placement> {
        let start = *self.open.get(&(site, job))?;
        self.executions.get_mut(&(job, site, start))
    }

    fn end(&mut self, site: SiteId, job: JobId, at: Time) {
        if let Some(placement) = self.running(site, job) {
            placement.end = Some(at);
        }
        self.open.remove(&(site, job));
    }

    fn end_all(&mut self, site: SiteId, at: Time) {
        let there = self.open.range((site, JobId(0))..=(site, JobId(u64::MAX)));
        let jobs: Vec<JobId> = there.map(|(&(_, job), _)| job).collect();
        jobs.into_iter().for_each(|job| self.end(site, job, at));
    }
}

impl Placement {
    /// From when to when it went on at which speed, until it ended, or until then if nobody said that it has.
    pub fn spans(&self, until: Time) -> impl Iterator<Item = (Time, Time, Pace)> + '_ {
        let end = self.end.unwrap_or(until);
        let next = self.paces.iter().skip(1).map(|pace| pace.from).chain([end]);
        let spans = self.paces.iter().zip(next).map(move |(&pace, next)| (pace.from, next.min(end), pace));
        spans.filter(|(from, to, _)| from < to)
    }
}

#[cfg(test)]
mod tests {
    use scheduler::event::EndCause;

    use super::*;
    use crate::fixtures::{completed, event};

    fn placed(at: i64, job: u64, node: u32) -> Event {
        event(at, 1, EventKind::Placed { job: JobId(job), node })
    }

    fn paced(at: i64, job: u64, slowdown: u64) -> Event {
        let slowdown_millionths = slowdown * 1_000_000;
        event(
            at,
            1,
            EventKind::Paced { job: JobId(job), slowdown_millionths, computing_millionths: 1_000_000 },
        )
    }

    #[test]
    fn an_execution_has_its_nodes_and_the_last_speed_of_each_instant() {
        let mut placements = Placements::default();
        let events = [
            placed(0, 1, 3),
            placed(0, 1, 1),
            paced(0, 1, 1),
            placed(0, 2, 1),
            paced(0, 1, 2),
            paced(0, 2, 2),
            completed(4, 1, 2),
            paced(4, 1, 1),
            paced(4, 2, 9),
        ];
        events.iter().for_each(|event| placements.observe(event));
        let first = placements.get(JobId(1), SiteId(1), Time::ZERO).expect("it was placed");
        assert_eq!((first.nodes.as_slice(), first.end), ([1, 3].as_slice(), None));
        let seconds = |time: Time| time.as_micros() / 1_000_000;
        let spans: Vec<(i64, i64, u64)> = first
            .spans(Time::from_secs(9))
            .map(|(from, to, pace)| (seconds(from), seconds(to), pace.slowdown_millionths / 1_000_000))
            .collect();
        assert_eq!(spans, [(0, 4, 2), (4, 9, 1)]);
        let second = placements.get(JobId(2), SiteId(1), Time::ZERO).expect("it was placed");
        assert_eq!(second.end, Some(Time::from_secs(4)));
        assert_eq!(second.paces.len(), 1, "what is said after its end is of no job");
    }

    #[test]
    fn a_crash_ends_what_executes_there() {
        let mut placements = Placements::default();
        placements.observe(&placed(0, 1, 0));
        placements.observe(&event(2, 2, EventKind::Ended { how: EndCause::Crash }));
        assert_eq!(placements.iter().next().expect("one").3.end, None, "another site");
        placements.observe(&event(3, 1, EventKind::Ended { how: EndCause::Crash }));
        assert_eq!(placements.iter().next().expect("one").3.end, Some(Time::from_secs(3)));
    }
}
