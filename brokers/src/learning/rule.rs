//! The seam between a dispatcher and who decides: a round over the jobs that wait and the places that are left.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use scheduler::draw::Draw;
use scheduler::strategy::opaque::Scope;
use scheduler::{JobId, JobSpec, Time};

use super::efficiency::Efficiency;
use super::estimates::Estimates;
use super::memory::{Subject, Words};
use super::slots::Slots;
use super::times::Times;
use crate::predictions::Predictions;

/// A job that goes to a site, or a copy of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Which one.
    pub job: JobId,
    /// The place of the site.
    pub site: usize,
    /// Whether the job is somewhere else, too.
    pub is_copy: bool,
}

/// One place where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    pub(super) site: usize,
    pub(super) scheduled: Time,
    /// When it entered the queue of the site, if that is known.
    pub(super) queued: Option<Time>,
    /// When it started, if it did.
    pub(super) started: Option<Time>,
    /// It was asked for, and whether it comes back is not known yet.
    pub(super) is_called: bool,
}

impl Copied {
    pub(super) fn new(site: usize, scheduled: Time) -> Copied {
        Copied { site, scheduled, queued: None, started: None, is_called: false }
    }
}

/// A job that was assigned and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Active {
    pub(super) spec: JobSpec,
    pub(super) first_scheduled: Time,
    /// Times that it was called back for waiting too long.
    pub(super) recalls: u32,
    pub(super) copies: Vec<Copied>,
}

/// A job that waits for a site.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) spec: JobSpec,
    /// When it was scheduled before, if it was.
    pub(super) first_scheduled: Option<Time>,
    pub(super) recalls: u32,
    /// Where it goes in this round.
    pub(super) site: Option<usize>,
}

/// A job that ended, as rules learn of it.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// What it was, with its run time as it was believed.
    pub job: JobSpec,
    /// Where it ended.
    pub site: usize,
    /// How long that took.
    pub times: Times,
}

/// What happened to jobs at a site since the last round, other than that they ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It waited too long and was called back.
    Recalled,
    /// The site gave it back by itself, or never got it.
    Returned,
    /// It failed.
    Failed,
    /// Another copy of it ended first.
    Superseded,
}

/// Jobs and sites at one event. Assignments count at once.
pub struct Round<'a> {
    pub(super) now: Time,
    pub(super) waiting: &'a mut VecDeque<Waiting>,
    /// Places of the jobs that are decided on, if they are not all that wait.
    pub(super) shown: Option<Vec<usize>>,
    pub(super) slots: &'a mut Slots,
    pub(super) active: &'a BTreeMap<JobId, Active>,
    pub(super) predictions: &'a Predictions,
    pub(super) efficiency: &'a Efficiency,
    pub(super) estimates: &'a dyn Estimates,
    pub(super) draw: &'a mut Draw,
    /// In the order in which they were made.
    pub(super) made: Vec<Assignment>,
}

impl Round<'_> {
    /// When it is.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Jobs that waited as the round began, those that have a site by now among them, but those that no site which is there
    /// is wide enough for.
    pub fn len(&self) -> usize {
        self.shown.as_ref().map_or(self.waiting.len(), Vec::len)
    }

    /// Whether no job waited.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn place(&self, number: usize) -> usize {
        self.shown.as_ref().map_or(number, |shown| shown[number])
    }

    /// The job of this number, in the order of arrival, with its run time as it is believed.
    ///
    /// # Panics
    /// If there is none, as all methods that take one.
    pub fn job(&self, number: usize) -> &JobSpec {
        &self.waiting[self.place(number)].spec
    }

    /// Whether the job has no site yet.
    pub fn waits(&self, number: usize) -> bool {
        self.waiting[self.place(number)].site.is_none()
    }

    /// Whether the site is open and wide enough for the job.
    pub fn takes(&self, number: usize, site: usize) -> bool {
        self.slots.takes(site, self.job(number).processors)
    }

    /// The places for jobs.
    pub fn slots(&self) -> &Slots {
        self.slots
    }

    /// rle of a site.
    pub fn efficiency(&self, site: usize) -> f64 {
        self.efficiency.of(site)
    }

    /// What is estimated.
    pub fn estimates(&self) -> &dyn Estimates {
        self.estimates
    }

    /// Random numbers of the dispatcher.
    pub fn draw(&mut self) -> &mut Draw {
        self.draw
    }

    /// Sends a job to a site; false if that is not possible, or the job has one already.
    pub fn assign(&mut self, number: usize, site: usize) -> bool {
        let can = self.waits(number) && self.takes(number, site);
        if can {
            self.slots.take(site);
            let place = self.place(number);
            self.waiting[place].site = Some(site);
            let job = self.waiting[place].spec.id;
            self.made.push(Assignment { job, site, is_copy: false });
        }
        can
    }

    /// Jobs that are somewhere and have not ended, with the number of their copies.
    pub fn under_way(&self) -> impl Iterator<Item = (JobSpec, usize)> {
        let believed = |active: &Active| self.predictions.as_believed(active.spec);
        self.active.values().map(move |active| (believed(active), self.copies(active)))
    }

    fn copies(&self, active: &Active) -> usize {
        let made = self.made.iter().filter(|one| one.is_copy && one.job == active.spec.id).count();
        active.copies.len() + made
    }

    /// Whether a job that is under way is at a site.
    pub fn is_at(&self, job: JobId, site: usize) -> bool {
        let here = |active: &Active| active.copies.iter().any(|copy| copy.site == site);
        self.active.get(&job).is_some_and(here)
            || self.made.iter().any(|one| one.job == job && one.site == site)
    }

    /// Sends a copy of a job that is under way to a site; false if that is not possible, or it is there.
    pub fn copy(&mut self, job: JobId, site: usize) -> bool {
        let processors = self.active.get(&job).map(|active| active.spec.processors);
        let can =
            processors.is_some_and(|processors| self.slots.takes(site, processors)) && !self.is_at(job, site);
        if can {
            self.slots.take(site);
            self.made.push(Assignment { job, site, is_copy: true });
        }
        can
    }
}

/// Who decides which job goes where, and what it remembers.
pub trait Rule: Debug + Send + Sync + CloneRule {
    /// Assigns jobs of the round, as many as it wants.
    fn map(&mut self, round: &mut Round<'_>);

    /// Which jobs the efficiency of the site of the job that ends is judged by.
    fn scope(&self) -> Scope {
        Scope::All
    }

    /// A job ended.
    fn ended(&mut self, _ended: &Ended) {}

    /// A job is not at a site any more, and did not end there.
    fn lost(&mut self, _job: &JobSpec, _site: usize, _why: Lost) {}

    /// Whether it has begun with its last phase; false if it has none.
    fn is_main(&self) -> bool {
        false
    }

    /// It has, in an earlier incarnation.
    fn begin_main(&mut self) {}

    /// What it must know of a subject to decide after a crash as it would have; none if nothing.
    fn known(&self, _of: Subject) -> Option<Words> {
        None
    }

    /// Which user a job counts for, as far as it knows users.
    fn user(&self, _job: &JobSpec) -> i32 {
        0
    }

    /// It has known that in an earlier incarnation. Subjects come in their order. False if no such rule can have.
    fn recollect(&mut self, _of: Subject, _words: &Words) -> bool {
        false
    }

    /// Whether it gives up: no money or no time is left.
    fn is_infeasible(&self) -> bool {
        false
    }
}

/// Rules can be cloned behind their seam.
pub trait CloneRule {
    /// Another one that is the same.
    fn boxed(&self) -> Box<dyn Rule>;
}

impl<R: Rule + Clone + 'static> CloneRule for R {
    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Rule> {
    fn clone(&self) -> Box<dyn Rule> {
        (**self).boxed()
    }
}
