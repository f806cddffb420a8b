//! What the decision needs to know of a site: idle processors, when others come free by estimates, and the job
//! it keeps for itself.

use super::queue::WaitingJob;
use crate::local::backlog::Limits;
use crate::reservation::{self, Reservation};
use crate::time::Time;

/// A site as a decider sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteView {
    /// All processors s_i.
    pub processors: u32,
    /// Processors that nothing executes on now.
    pub free: u32,
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
        SiteView { processors, free: processors, releases: Releases::default(), kept: None }
    }

    /// A job takes its processors until now plus its request.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn start(&mut self, now: Time, job: &WaitingJob) {
        assert!(self.free >= job.processors, "job {} does not fit the idle processors", job.id);
        self.free -= job.processors;
        self.releases.insert(now.saturating_add(job.requested), job.processors);
    }

    /// A job that was to end at this time by its estimate has ended.
    ///
    /// # Panics
    /// If no such job runs.
    pub fn complete(&mut self, estimated_end: Time, processors: u32) {
        assert!(self.releases.remove(estimated_end, processors), "only running jobs complete");
        self.free += processors;
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
