//! What a run of [`super::World`] depends on, and what it did.

use std::ops::{Deref, DerefMut};

use links::Model;
use protocol::Terms;
use scheduler::{LocalUsers, Submit, Time, TimedJob};

use super::schedule::Fault;

/// Everything that a run depends on. The terms of its grid are read and changed as if they were its own.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What all members are told, also those that join late or die. With [`protocol::Options::journal`]: ends are counted by
    /// what is durable.
    pub terms: Terms,
    /// All jobs, in queue order.
    pub jobs: Vec<TimedJob>,
    /// Where jobs enter the grid.
    pub submit: Submit,
    /// Jobs that their users submit past a broker.
    pub local_users: LocalUsers,
    /// What links do without faults.
    pub network: Model,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// When faults stop, and whoever is down restarts, but for those that never do. `None`: never; the run ends
    /// when every job has ended and nobody waits, or when nothing more happens.
    pub healed: Option<Time>,
}

impl Deref for Scenario {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        &self.terms
    }
}

impl DerefMut for Scenario {
    fn deref_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }
}

/// How long a run may take before it counts as endless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// When it must be over, in true time.
    pub over: Time,
    /// Calls of peers.
    pub calls: u64,
}

/// A mistake of the driver, to see that the checks notice it. Mistakes of peers are in `protocol::mutant`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Messages leave before the facts of their call are durable.
    SendBeforeWrite,
    /// A call without facts does not wait for earlier ones that are being written.
    OvertakeWrites,
    /// Jobs go on executing when the process of their site ends.
    JobsOutliveProcess,
    /// A user's job comes before its submission.
    SubmitEarly,
    /// What could not be written on a full disk is taken for written.
    FullDiskIgnored,
    /// A site that has lost its disk begins as one that never had a journal.
    LossForgotten,
    /// The operator does not look for jobs that a lost disk had.
    MissingForgotten,
    /// Whoever goes on for the operator decides anew who adopts what.
    NothingNoted,
    /// Whoever goes on hands jobs over again that sites have had.
    HandsOverAgain,
    /// The time of a process runs backwards when its clock is set back.
    TimeRunsBack,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Calls of peers.
    pub calls: u64,
    /// Events that peers recorded.
    pub events: u64,
    /// Messages that peers sent, also those that were lost.
    pub messages: u64,
    /// Messages lost on links or because their receiver was down.
    pub messages_lost: u64,
    /// Processes that ended.
    pub crashes: u64,
    /// Of these, in the middle of a call.
    pub torn: u64,
    /// Processes that restarted.
    pub restarts: u64,
    /// Processes that never restarted.
    pub deaths: u64,
    /// Sites that left.
    pub left: u64,
    /// Sites that joined late.
    pub joined: u64,
    /// Jobs that a site took over.
    pub taken_over: u64,
    /// Of these, because the operator said so.
    pub adopted: u64,
    /// Jobs that ended more than once, under different epochs.
    pub ran_twice: u64,
    /// Jobs too wide for every site that was left in the end.
    pub orphaned: u64,
    /// Disks that were lost.
    pub disks_lost: u64,
    /// Processes that ended because their disk was full.
    pub disks_full: u64,
    /// Coordinators that ended.
    pub coordinators: u64,
    /// Messages that the liar changed, replaced or kept back.
    pub lies: u64,
    /// Jobs that executed when their process ended.
    pub interrupted: u64,
    /// Jobs that changed owner.
    pub moved: u64,
    /// Parts of jobs over several sites that started.
    pub parts: u64,
    /// Those that were stopped, as another one was lost or the job taken over.
    pub stopped: u64,
    /// Jobs that were submitted.
    pub jobs: u64,
    /// True time times sites, in microseconds.
    pub site_time_us: u64,
}

impl Tally {
    /// Adds what another run did.
    pub fn add(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.events += other.events;
        self.messages += other.messages;
        self.messages_lost += other.messages_lost;
        self.crashes += other.crashes;
        self.torn += other.torn;
        self.restarts += other.restarts;
        self.deaths += other.deaths;
        self.left += other.left;
        self.joined += other.joined;
        self.taken_over += other.taken_over;
        self.adopted += other.adopted;
        self.ran_twice += other.ran_twice;
        self.orphaned += other.orphaned;
        self.disks_lost += other.disks_lost;
        self.disks_full += other.disks_full;
        self.coordinators += other.coordinators;
        self.lies += other.lies;
        self.interrupted += other.interrupted;
        self.moved += other.moved;
        self.parts += other.parts;
        self.stopped += other.stopped;
        self.jobs += other.jobs;
        self.site_time_us += other.site_time_us;
    }
}
