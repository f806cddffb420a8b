//! What the decision needs to know of a site: idle processors, when others come free by estimates, and the job
//! it keeps for itself.

use super::queue::WaitingJob;
use crate::capacity::Capacity;
use crate::local::backlog::Limits;
use crate::reservation::{self, Reservation};
use crate::room::{Occupancy, Room};
use crate::time::Time;

/// A site as a decider sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteView {
    /// All processors s_i, or the nodes that jobs share: the widest job.
    pub processors: u32,
    /// Processors that nothing executes on now; where jobs share nodes, those that take a task more.
    pub free: u32,
    /// What is left of nodes that jobs share; none where each processor has a job of its own.
    pub nodes: Option<Room>,
    /// When the others come free. FCFS and LIST do not ask.
    pub releases: Releases,
    /// The waiting job that the site keeps and that stands before the pool.
    pub kept: Option<WaitingJob>,
}

/// Estimated ends of running jobs with their widths, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Releases {
    ends: Vec<(Time, u32)>,
}

impl SiteView {
    /// An idle site.
    pub fn idle(processors: u32) -> SiteView {
        SiteView { processors, free: processors, nodes: None, releases: Releases::default(), kept: None }
    }

    /// An idle site with such a capacity.
    pub fn on(capacity: Capacity) -> SiteView {
        let mut site = SiteView::idle(capacity.widest());
        if let Some(nodes) = Occupancy::of(capacity) {
            site.has(nodes.room());
        }
        site
    }

    /// A job takes its processors until now plus its request.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn start(&mut self, now: Time, job: &WaitingJob) {
        assert!(self.takes(job), "job {} does not fit the idle processors", job.id);
        self.put(job);
        self.releases.insert(now.saturating_add(job.requested), job.processors);
    }

    /// Whether a job can start here now.
    pub fn takes(&self, job: &WaitingJob) -> bool {
        let fits = |nodes: &Room| nodes.takes(job.processors, job.memory);
        self.nodes.as_ref().map_or(job.processors <= self.free, fits)
    }

    /// A job takes its place, or what there is of it.
    pub fn put(&mut self, job: &WaitingJob) {
        match &mut self.nodes {
            Some(nodes) => {
                nodes.put(job.processors, job.memory);
                self.free = nodes.width();
            }
            None => self.free = self.free.saturating_sub(job.processors),
        }
    }

    /// So much is there now.
    pub fn has(&mut self, room: Room) {
        self.free = room.width();
        self.nodes = Some(room).filter(|room| matches!(room, Room::Nodes(_)));
    }

    /// What others may know of what is there.
    pub fn room(&self) -> Room {
        self.nodes.clone().unwrap_or(Room::Processors(self.free))
    }

    /// Nothing starts here.
    pub fn close(&mut self) {
        self.free = 0;
        self.nodes = self.nodes.take().map(|_| Room::Nodes(Vec::new()));
    }

    /// A job that was to end at this time by its estimate has ended. Where jobs share nodes, what is there then is to be said.
    ///
    /// # Panics
    /// If no such job runs.
    pub fn complete(&mut self, estimated_end: Time, processors: u32) {
        assert!(self.releases.remove(estimated_end, processors), "only running jobs complete");
        if self.nodes.is_none() {
            self.free += processors;
        }
    }

    /// A running job is believed to end at another time than before.
    ///
    /// # Panics
    /// If no job of this width was believed to end then.
    pub fn expect(&mut self, before: Time, at: Time, processors: u32) {
        assert!(
            self.releases.remove(before, processors),
            "no job of {processors} processors ends at {before} s"
        );
        self.releases.insert(at, processors);
    }

    /// What others must respect while a job this wide, which does not fit now, waits with a reservation.
    ///
    /// A running job past its estimated end counts as ending now. If the job does not fit even the idle site, nothing
    /// can be reserved and nothing need be respected.
    pub(super) fn limits(&self, now: Time, processors: u32) -> Limits {
        match reservation::shadow(processors, self.free, now, self.releases.ends.iter().copied()) {
            Some(Reservation { shadow, extra }) => Limits { now, free: self.free, shadow, extra },
            None => Limits::unreserved(now, self.free),
        }
    }
}

impl Releases {
    /// Adds the estimated end of a running job.
    pub fn insert(&mut self, estimated_end: Time, processors: u32) {
        let end = (estimated_end, processors);
        let place = self.ends.partition_point(|other| *other < end);
        self.ends.insert(place, end);
    }

    /// Takes an end out; whether there was one.
    pub fn remove(&mut self, estimated_end: Time, processors: u32) -> bool {
        let found = self.ends.binary_search(&(estimated_end, processors));
        if let Ok(place) = found {
            self.ends.remove(place);
        }
        found.is_ok()
    }

    /// Estimated ends with widths, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Time, u32)> {
        self.ends.iter().copied()
    }
}

impl FromIterator<(Time, u32)> for Releases {
    fn from_iter<I: IntoIterator<Item = (Time, u32)>>(ends: I) -> Releases {
        let mut ends: Vec<(Time, u32)> = ends.into_iter().collect();
        ends.sort_unstable();
        Releases { ends }
    }
}
