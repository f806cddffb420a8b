//! The seam of local schedulers: what each must say. The machine, promises and the order of an instant are
//! [`super::LocalQueue`]'s.

use std::fmt::Debug;

use super::backlog::Limits;
use super::machine::{End, Machine};
use super::nodes::Occupation;
use super::turn::{Place, Waiting};
use crate::event::FallbackCause;
use crate::job::{JobId, JobSpec};
use crate::strategy::SharingEstimator;
use crate::time::{Span, Time};

/// A local scheduler: the waiting jobs of a site, and which of them start.
pub(super) trait QueueRule: Debug + Send + Sync {
    /// A job joins the queue.
    fn insert(&mut self, job: Waiting);

    /// A job that was chosen waits again, because one ran past its estimate.
    fn put_back(&mut self, job: Waiting) {
        self.insert(job);
    }

    /// Takes a job out of the queue; none if it does not wait.
    fn take(&mut self, job: JobId) -> Option<Waiting>;

    /// A job executes that the queue never chose.
    fn disturbed(&mut self) {}

    /// A job executes here since a time in the past; after [`QueueRule::disturbed`].
    fn took_over(&mut self, _now: Time, _job: &JobSpec, _since: Time) {}

    /// A job ended; it had been estimated to end then.
    fn completed(&mut self, _now: Time, _estimated: End) {}

    /// Promises processors to everything that starts now.
    fn choose(&mut self, now: Time, machine: &mut Machine);

    /// Promises processors to a job that starts now as somebody else has decided. False if it does not wait, or does not fit by what is known.
    /// For rules whose decisions leave more behind than who runs.
    fn start_as_told(&mut self, _now: Time, _job: JobId, _machine: &mut Machine) -> bool {
        false
    }

    /// How many jobs wait.
    fn waiting(&self) -> usize;

    /// The place of the last job in queue order.
    fn last_place(&self) -> Option<Place>;

    /// When something is to be chosen even if nothing happens; see [`Machine::held_up_until`].
    fn wake_at(&self, _held_up_until: Option<Time>) -> Option<Time> {
        None
    }

    /// Why somebody who decides elsewhere is not asked any more, if nobody was told yet.
    fn failure(&mut self) -> Option<FallbackCause> {
        None
    }

    /// The start that is planned for a job, if starts are planned.
    fn planned_start(&self, _job: JobId) -> Option<Time> {
        None
    }

    /// The job that nothing may delay by estimates, if there is one such.
    fn head(&self) -> Option<&Waiting> {
        None
    }

    /// What the latest decision left, with so many processors free, to a job behind all that wait. None where its place
    /// does not say when it is looked at.
    fn left(&self, _now: Time, _free: u32) -> Option<Limits> {
        None
    }

    /// Jobs that run past their estimates, where the rule keeps estimated ends itself, since these move. None where the machine does.
    fn overdue(&self) -> Option<Vec<JobId>> {
        None
    }

    /// Jobs that have run past their estimates by this instant, each with what it has done: the time that this takes on idle nodes. None where
    /// the machine keeps ends.
    fn past(&mut self, _now: Time) -> Option<Vec<(JobId, Span)>> {
        None
    }

    /// What a job that runs has done, as the time that this takes on idle nodes. None where that is the time since its start.
    fn work(&mut self, _now: Time, _job: JobId) -> Option<Span> {
        None
    }

    /// A job that runs is believed to need so long on idle nodes. For rules that keep ends themselves.
    fn expect(&mut self, _now: Time, _job: JobId, _run_time: Span) {}

    /// From this instant on the rule is played, as a clone: what ends by its estimates has ended. For rules that keep ends themselves.
    fn play(&mut self, _now: Time) {}

    /// When a job ends next, as things are; for a rule that is played.
    fn next_end(&self) -> Option<Time> {
        None
    }

    /// A job that has ended by then; for a rule that is played.
    fn pop_ended(&mut self, _at: Time) -> Option<JobId> {
        None
    }

    /// On how many nodes of a job that runs local users are.
    fn local_nodes(&self, _job: JobId) -> u32 {
        0
    }

    /// The nodes of a job that runs, ascending; none where jobs share none.
    fn nodes(&self, _job: JobId) -> Option<&[u32]> {
        None
    }

    /// Whether a job could start now beside what runs, as far as nodes are concerned.
    fn takes(&mut self, _now: Time, _job: &JobSpec) -> bool {
        true
    }

    /// How fast the nodes would be for tasks of a job that started now; none where jobs share none. See [`super::LocalQueue::powers`].
    fn powers(&self, _now: Time, _job: &JobSpec) -> Option<Vec<f64>> {
        None
    }

    /// What the nodes have at this instant; none where jobs share none.
    fn occupation(&self, _now: Time) -> Option<Occupation> {
        None
    }

    /// Plans are made by this estimator from now on. Means nothing where jobs share no nodes.
    fn believe(&mut self, _estimator: SharingEstimator) {}

    /// Walks everything; `now` is the instant of the latest fact or decision.
    ///
    /// # Panics
    /// If a structure contradicts another, or the machine.
    fn check_invariants(&self, now: Option<Time>, machine: &Machine);

    /// A clone of the rule with its queue, as trait objects cannot derive one.
    fn boxed(&self) -> Box<dyn QueueRule>;
}

impl Clone for Box<dyn QueueRule> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}
