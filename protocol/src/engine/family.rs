//! The seam between a peer and its strategy: what a family of strategies decides.
//!
//! An [`Engine`] keeps the books of a site and has the control flow of an instant; a family has the queue and decides what
//! starts, what is given away and whom to ask. Each family is a folder, or a file, that `families.rs` names once. It never
//! learns how a driver works, and nothing outside its folder asks which one is on.

use std::fmt::Debug;

use scheduler::waiting::WaitingList;
use scheduler::{JobId, JobSpec, SiteId, Time};

use super::Engine;
use crate::config::PeerConfig;
use crate::core::Core;
use crate::journal::{Durable, Place};
use crate::message::part::Part as _;
use crate::message::{Speech, Transfer};
use crate::rank::Rank;
use crate::timers::Alarm;

/// Why a member is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It was silent for a while. Nothing of it is waited for but answers to transfers.
    Silent,
    /// It gives its jobs away and takes none. The same.
    Left,
    /// It was silent for so long that its jobs are about to be taken over. Before, it was silent for a while or left.
    Gone,
}

/// A family of strategies: the state that it adds to a site, and what it does at each step of the control flow.
///
/// Steps get the whole engine, because what a family does may lead to another step: a transfer that it takes may show that
/// a job was taken over, which takes a copy out of its queue. What has a default need not be said.
pub(crate) trait Family:
    Giving + Lawful + Recovery + InParts + Observed + Clone + Debug + Send + Sync + Sized + 'static
{
    /// What sites of this family say to each other, beside what all say.
    type Message: Speech;

    /// What a site of this family waits for, beside what all do.
    type Timer: Alarm;

    /// An empty queue, of a site that begins. What it numbers begins after `first`.
    ///
    /// # Panics
    /// If the strategy is of another family.
    fn of(config: &PeerConfig, first: u64) -> Self;

    /// Puts a job into the queue that is this site's.
    fn enqueue(engine: &mut Engine<Self>, now: Time, job: JobSpec);

    /// Puts a job into the queue that came by a route.
    fn routed(engine: &mut Engine<Self>, now: Time, _from: Rank, transfer: &Transfer) {
        Self::enqueue(engine, now, transfer.job);
    }

    /// Decides what starts here, tells others, and asks for work.
    fn turn(engine: &mut Engine<Self>, now: Time);

    /// A job that waits here was started outside: it executes from now on.
    fn begun(engine: &mut Engine<Self>, now: Time, job: &JobSpec) {
        if let Some(job) = Self::take(engine, job) {
            engine.core.start(now, job);
        }
    }

    /// Jobs that wait here, each once, in any order.
    fn jobs(&self) -> impl Iterator<Item = &JobSpec>;

    /// How many these are.
    fn waiting(&self) -> usize {
        self.jobs().count()
    }

    /// Takes a waiting job out of the queue. None if it is not in it.
    fn take(engine: &mut Engine<Self>, job: &JobSpec) -> Option<JobSpec>;

    /// The site of this rank said something that is lawful by [`Lawful::is_lawful`].
    fn heard(engine: &mut Engine<Self>, _now: Time, rank: Rank, message: Self::Message) {
        engine.core.ignore(engine.core.site_at(rank), message.kind());
    }

    /// A timer that this family has set is due.
    fn fired(engine: &mut Engine<Self>, _now: Time, timer: Self::Timer) {
        engine.timers.cancel(timer);
    }

    /// The rank of the site that is to have a job which was submitted here, or waits here because nobody was wide enough;
    /// `home` is its home by size among those present. None if nobody is to.
    fn belongs(_core: &Core, home: Option<Rank>, _job: &JobSpec) -> Option<Rank> {
        home
    }

    /// The rank of the site that gets a job which waits here when this site leaves. None if nobody can.
    fn elsewhere(core: &Core, job: &JobSpec) -> Option<Rank> {
        core.room_elsewhere(job)
    }

    /// A job that executed here ended; its processors are still counted as busy.
    fn completed(
        _engine: &mut Engine<Self>,
        _now: Time,
        _job: JobId,
        _estimated_end: Time,
        _processors: u32,
    ) {
    }

    /// Another site has taken a job over: whatever this one knows of older epochs means nothing any more.
    fn superseded(_engine: &mut Engine<Self>, _job: JobId) {}

    /// A copy of a job that waited here was dropped, as others took the job over. It was this guardian's.
    fn dropped(_engine: &mut Engine<Self>, _now: Time, _guardian: Option<SiteId>) {}

    /// The turn of a site that leaves, after it gave away what it can.
    fn turn_out(_engine: &mut Engine<Self>, _now: Time) {}

    /// Whether this family decides something once nothing is under way at this instant.
    fn wants_settle(&self) -> bool {
        false
    }

    /// Nothing is under way at this instant.
    fn settle(_engine: &mut Engine<Self>, _now: Time) {}

    /// After everything that the peer was told.
    fn after(_engine: &mut Engine<Self>, _now: Time) {}

    /// When the queue wants a turn by itself.
    fn wake_at(&self) -> Option<Time> {
        None
    }

    /// The member of this rank is there, which was not waited for.
    fn enters(_engine: &mut Engine<Self>, _now: Time, _rank: Rank) {}

    /// The member of this rank is not there any more.
    fn leaves(_engine: &mut Engine<Self>, _now: Time, _rank: Rank, _why: Leaving) {}

    /// This site has heard of all who may have taken over what waits here.
    fn may_start(_engine: &mut Engine<Self>) {}

    /// Whether no answer is outstanding and no message of this family may have to be repeated.
    fn is_quiet(engine: &Engine<Self>) -> bool {
        !engine.timers.any_retry()
    }
}

/// What a family does about transfers of jobs, besides those that [`Family::heard`] brings.
pub(crate) trait Giving: Sized {
    /// The message of an unanswered transfer that is no route. None if it is forgotten what it was for: then the job is
    /// recalled.
    fn repeat(
        engine: &mut Engine<Self>,
        now: Time,
        to: Rank,
        transfer: &Transfer,
    ) -> Option<<Self as Family>::Message>
    where
        Self: Family;

    /// The receiver accepted a transfer, or declined one whose job came back by another way.
    fn settled(_engine: &mut Engine<Self>, _now: Time, _rank: Rank, _transfer: &Transfer)
    where
        Self: Family,
    {
    }

    /// This site took a transfer and has not got its job by it: it brought a copy that is void, or of a job that executes
    /// here.
    fn was_in_vain(_engine: &mut Engine<Self>, _now: Time, _transfer: &Transfer)
    where
        Self: Family,
    {
    }

    /// The receiver declined: the job is this site's again and waits nowhere.
    fn returned(engine: &mut Engine<Self>, now: Time, _rank: Rank, transfer: &Transfer)
    where
        Self: Family,
    {
        engine.enqueue(now, transfer.job);
    }

    /// A site has answered transfers of these numbers, with `was_full` after it had owed as many answers as it may.
    fn replied(
        _engine: &mut Engine<Self>,
        _now: Time,
        _rank: Rank,
        _accepted: &[u64],
        _declined: &[u64],
        _was_full: bool,
    ) where
        Self: Family,
    {
    }

    /// Whatever is answered to a transfer means nothing any more.
    fn voided(_engine: &mut Engine<Self>, _rank: Rank, _transfer: &Transfer)
    where
        Self: Family,
    {
    }
}

/// What can be of a correct member of this family, and what is refused.
pub(crate) trait Lawful: Sized {
    /// Whether a correct peer of that rank can have said this. What another family says never is.
    fn is_lawful(_core: &Core, _rank: Rank, _message: &<Self as Family>::Message) -> bool
    where
        Self: Family,
    {
        false
    }

    /// Whether this site takes a job that another routes to it.
    fn takes_routed(core: &Core, job: &JobSpec) -> bool {
        core.config.home_rank(job) == Some(core.rank)
            // Sites that leave, or are the next larger one, send it to whoever can hold it.
            || ((core.membership.is_some() || core.view.is_bounded()) && job.processors <= core.width())
    }

    /// Whether a job that is this site's can wait here, by a journal.
    fn may_queue(_core: &Core, _job: &JobSpec) -> bool {
        true
    }

    /// Whether a job can have been granted to the site of this rank, by a journal. Routes go to all.
    fn may_grant(_core: &Core, _rank: Rank) -> bool {
        true
    }
}

/// What a family writes down, and how it restarts where its journal ends.
pub(crate) trait Recovery: Sized {
    /// This site restarts, before its jobs are put back: what this family has written down, as rows of tables of its
    /// own ([`crate::journal::Topic`]).
    fn remember(_engine: &mut Engine<Self>, _durable: &Durable)
    where
        Self: Family,
    {
    }

    /// Whether this family can have written down what [`Recovery::remember`] reads.
    fn can_remember(_engine: &Engine<Self>, durable: &Durable) -> Result<(), String>
    where
        Self: Family,
    {
        durable.has_no_memory()
    }

    /// Compares what this family knows with what it has written down.
    fn agrees_with(engine: &Engine<Self>, durable: &Durable) -> Result<(), String>
    where
        Self: Family,
    {
        Self::can_remember(engine, durable)
    }

    /// Where a job waits that was interrupted by a crash, if it waited there before.
    fn place_again(_core: &Core, _job: &JobSpec, place: Place) -> Place {
        place
    }

    /// Puts a job of the journal back where it waited.
    fn put_back(engine: &mut Engine<Self>, now: Time, job: JobSpec, _place: Place)
    where
        Self: Family,
    {
        engine.enqueue(now, job);
    }

    /// This site restarts: others were told something by an earlier incarnation, and told it something, that it does not
    /// know.
    fn resume(_engine: &mut Engine<Self>, _now: Time)
    where
        Self: Family,
    {
    }
}

/// What a family has of jobs that execute in parts at several sites ([`crate::gang`]). Most have nothing.
pub(crate) trait InParts: Sized {
    /// What executed here ended. Whether it was no job of this site but a part of one that is another member's: then the family has
    /// done what was to be done.
    fn part_ended(_engine: &mut Engine<Self>, _now: Time, _job: JobId) -> bool
    where
        Self: Family,
    {
        false
    }

    /// Processors that are not idle and that no job of this site has.
    fn kept(&self) -> u32 {
        0
    }

    /// A job was taken over under this epoch: its parts of older ones ([`crate::gang`]) do not start, or not go on, and if it is this
    /// member's it waits here whole.
    fn parts_are_void(_engine: &mut Engine<Self>, _now: Time, _job: JobId, _epoch: u32)
    where
        Self: Family,
    {
    }

    /// Jobs of this member that have a part at the site of this rank.
    fn in_parts_at(&self, _rank: Rank) -> Vec<JobSpec> {
        Vec::new()
    }

    /// Jobs of this member that wait nowhere, as they execute in parts at others.
    fn apart(&self) -> usize {
        0
    }

    /// Jobs of others of which a part has processors here.
    fn parts(&self) -> Vec<JobId> {
        Vec::new()
    }

    /// The nodes of what runs here or has places here, where jobs share nodes and parts of some start here.
    fn nodes(&self, _job: JobId) -> Option<&[u32]> {
        None
    }

    /// Whether this site, which leaves, has something of others, or somebody is to hear of something first.
    fn owes(_engine: &Engine<Self>) -> bool
    where
        Self: Family,
    {
        false
    }
}

/// What observers ask of a family, and checks: it decides nothing by that.
pub(crate) trait Observed: Sized {
    /// What this site believes that others have, by their ranks: jobs, and whether they execute, where it hears that. Of
    /// those that it knows nothing of, nothing.
    fn books(&self) -> Vec<(Rank, Vec<(JobId, bool)>)> {
        Vec::new()
    }

    /// What was learned of other sites, by their ranks: how efficient they are, in [-1, 1].
    fn efficiencies(&self) -> Vec<(Rank, f64)> {
        Vec::new()
    }

    /// Whether the site of this rank was told all that it is to know of this one.
    fn has_told(&self, _rank: Rank) -> bool {
        false
    }

    /// Whether what a timer of this family is about is open: a question has no answer yet, or what was to be done at that
    /// time is to be done. A timer that outlives that keeps a run from its end, and asks what nobody wants to know.
    fn is_open(_engine: &Engine<Self>, _timer: <Self as Family>::Timer) -> bool
    where
        Self: Family,
    {
        false
    }

    /// Panics if the state contradicts itself or the core.
    fn check(_engine: &Engine<Self>)
    where
        Self: Family,
    {
    }

    /// Waiting jobs whose home is here, if they are kept by width.
    fn own(&self) -> Option<&WaitingList> {
        None
    }

    /// Firmly granted jobs that wait to fit.
    fn held(&self) -> impl Iterator<Item = &JobSpec> {
        std::iter::empty()
    }

    /// Jobs in the queue, or offered, that are in neither of these lists.
    fn pooled(&self) -> impl Iterator<Item = JobId> {
        std::iter::empty()
    }
}
