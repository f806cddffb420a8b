//! Why one job waits now: the same causes as in the sums of [`super::Waits`], of the same groups and rules.

use scheduler::{Event, Grid, JobId, SiteId, Strategy, Time, TimedJob};

use super::groups::Groups;
use super::rules::Rules;
use super::sums::Cause;
use super::world::{Phase, World};
use crate::deficiency::NOWHERE;

/// Changes of jobs that may pile up while nobody asks. Arbitrary: a megabyte.
const PILE: usize = 1 << 18;

/// Follows a run to say at any instant why a job waits. Unlike the sums, it goes on where sites crash, stand still, join or
/// leave: processors of a site that is not there are no room.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    world: World,
    groups: Groups,
    ids: Vec<JobId>,
}

impl Watch {
    pub(crate) fn new(grid: &Grid, strategy: &Strategy, workload: &[TimedJob]) -> Watch {
        let world = World::new(grid, workload);
        Watch {
            groups: Groups::new(Rules::of(strategy, grid), &world, grid.widths()),
            ids: workload.iter().map(|job| job.spec.id).collect(),
            world,
        }
    }

    pub(crate) fn observe(&mut self, event: &Event) {
        self.world.observe(event);
        if self.world.changes.jobs.len() > PILE {
            self.groups.refresh(&mut self.world, event.at);
        }
    }

    /// When local users of shared nodes come or go next, if that is not after an instant: causes may change then though nothing happens.
    pub(crate) fn next_local(&self, until: Time) -> Option<Time> {
        self.world.next_local(until)
    }

    /// It is that late.
    pub(crate) fn advance(&mut self, now: Time) {
        self.world.advance(now);
    }

    /// The first cause that is true of a job after all events so far, and the smallest other site of which it is; `None`
    /// if it does not wait.
    pub(crate) fn why(&mut self, job: JobId, now: Time) -> Option<(Cause, Option<SiteId>)> {
        self.groups.refresh(&mut self.world, now);
        let (cause, room) = self.groups.why(self.world.place(job)?)?;
        Some((cause, room.map(|rank| self.world.grid().at_rank(rank as usize))))
    }

    /// When it was submitted, by the workload.
    pub(crate) fn submit(&self, job: JobId) -> Option<Time> {
        Some(self.world.jobs[self.world.place(job)? as usize].submit)
    }

    pub(crate) fn grid(&self) -> &Grid {
        self.world.grid()
    }

    /// Processors of a site that run nothing; none of a site that is not there.
    pub(crate) fn idle(&self, site: SiteId) -> u32 {
        let idle = if self.is_away(site) { 0 } else { self.world.idle(self.rank(site)) };
        u32::try_from(idle).unwrap_or(0)
    }

    /// Whether a site is not there, or stands still.
    pub(crate) fn is_away(&self, site: SiteId) -> bool {
        self.world.is_away(self.rank(site))
    }

    /// Processors that a site offers another in a request without answer.
    pub(crate) fn offer(&self, thief: SiteId, victim: SiteId) -> Option<u32> {
        self.world.asking.offer(self.rank(thief), self.rank(victim))
    }

    /// Home and width of the jobs before a place in the queue of a site.
    pub(crate) fn ahead(&self, site: SiteId, key: (Time, JobId)) -> Vec<(Option<SiteId>, u32)> {
        let here = Phase::Waiting(self.rank(site));
        let jobs = self.ids.iter().zip(&self.world.jobs);
        let before = jobs.filter(|(id, job)| job.phase == here && (job.submit, **id) < key);
        before.map(|(_, job)| (self.grid().home(job.processors), job.processors)).collect()
    }

    /// How many other jobs wait at a broker that may start in parts: those wider than every site, or `any`.
    pub(crate) fn others_in_parts(&self, broker: SiteId, job: JobId, any: bool) -> usize {
        let here = Phase::Waiting(self.rank(broker));
        let jobs = self.ids.iter().zip(&self.world.jobs);
        jobs.filter(|(id, other)| other.phase == here && **id != job && (any || other.home == NOWHERE))
            .count()
    }

    fn rank(&self, site: SiteId) -> u32 {
        self.grid().rank(site) as u32
    }
}
