//! The seam of schedulers that see everything they schedule at once: local queues and ideal algorithms.
//!
//! **Facts change state, `decide` decides.** A driver tells all facts of one instant (completions first, then
//! submissions), then calls [`Policy::decide`] once. A policy never sees a true run time.

use crate::event::FallbackCause;
use crate::grid::{Grid, SiteId};
use crate::job::{JobId, JobSpec};
use crate::prediction::Prediction;
use crate::time::{Span, Time};

/// A decision: this job starts at this site now.
///
/// A job over several sites has one for each of them, one after the other, whose `job.processors` are those that it has there. It is known
/// by the site of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The job that starts, as its owner knows it: without its true run time.
    pub job: JobSpec,
    /// The site that executes it.
    pub site: SiteId,
}

/// A scheduler with a complete view of what it schedules.
pub trait Policy {
    /// A job joined the system.
    fn submitted(&mut self, now: Time, job: JobSpec);

    /// A job that this policy started has ended; its processors are free.
    fn completed(&mut self, now: Time, job: JobId);

    /// Appends everything that starts now, in the order of the decisions.
    fn decide(&mut self, now: Time, starts: &mut Vec<Start>);

    /// Tells whose external strategy is not asked any more, each once.
    fn failures(&mut self, _sink: &mut dyn FnMut(SiteId, FallbackCause)) {}

    /// Tells what was predicted since this was asked last, and where; each once.
    fn predictions(&mut self, _sink: &mut dyn FnMut(SiteId, Prediction)) {}

    /// The site that is told of a job first. `None` if no site is wide enough.
    fn entry(&self, grid: &Grid, job: &JobSpec) -> Option<SiteId> {
        grid.home(job.processors)
    }

    /// How long a job that starts at a site holds its processors idle before it runs: the time to fetch it.
    fn fetch(&self, _grid: &Grid, _job: &JobSpec, _site: SiteId) -> Span {
        Span::ZERO
    }

    /// How fast a site computes, in percent of the machine that run times are of.
    fn speed(&self, _grid: &Grid, _site: SiteId) -> u32 {
        100
    }

    /// When [`Policy::decide`] must be called even if nothing else happens.
    fn wake_at(&self) -> Option<Time> {
        None
    }

    /// Jobs submitted and not started.
    fn waiting(&self) -> usize;
}
