//! The control flow of one site: what happens to it changes its books, turns decide, answers continue the turn that asked.
//!
//! What is particular to a strategy its [`Family`] does; see [`crate::peer`] for the discipline of one instant. Transfers
//! are in `transfers.rs`, who is there in `membership`, beginning again in `restore.rs`.

#[cfg(test)]
mod example;
mod family;
mod lawful;
#[cfg(test)]
mod outside;
mod restore;
mod transfers;

use std::collections::VecDeque;
use std::fmt::Debug;

use scheduler::event::MessageKind;
use scheduler::time::earlier;
use scheduler::waiting::WaitingList;
use scheduler::{EventKind, JobId, JobSpec, SiteId, Time};

pub(crate) use self::family::{Family, Giving, InParts, Lawful, Leaving, Observed, Recovery};
use crate::config::PeerConfig;
use crate::core::Core;
use crate::handover::Custody;
use crate::journal::{Durable, Fact, Place};
use crate::message::{Message, Speech};
use crate::mutant::Mutant;
use crate::ports::{Input, Output};
use crate::rank::Rank;
use crate::timers::{Timer, Timers};

/// The state machine of one site under a family of strategies.
#[derive(Clone, Debug)]
pub(crate) struct Engine<F: Family> {
    pub(crate) core: Core,
    pub(crate) family: F,
    /// What this family waits for.
    pub(crate) timers: Timers<F::Timer>,
}

/// A timer that fires. Of two at one time the family's goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due<T> {
    Own(T),
    Core(Timer),
}

/// What a site wants of its driver.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) outputs: VecDeque<Output>,
    /// When it wants a timeout.
    pub(crate) timeout: Option<Time>,
    /// Whether it decides something once nothing is under way.
    pub(crate) settle: bool,
}

/// An engine of any family, as [`crate::Peer`] drives and shows it.
pub(crate) trait Site: Debug + Send + Sync {
    fn core(&self) -> &Core;
    fn core_mut(&mut self) -> &mut Core;
    fn handle(&mut self, now: Time, input: Input, wishes: &mut Wishes);
    /// Appends what the site wants done, and says what else it wants.
    fn hand_out(&mut self, wishes: &mut Wishes);
    fn go_on(&mut self, durable: &Durable, now: Time);
    fn begin_with_nothing(&mut self, now: Time);
    fn waiting(&self) -> usize;
    fn jobs(&self) -> Vec<JobSpec>;
    fn apart(&self) -> usize;
    fn parts(&self) -> Vec<JobId>;
    fn nodes(&self, job: JobId) -> Option<&[u32]>;
    fn own(&self) -> Option<&WaitingList>;
    fn held(&self) -> Vec<&JobSpec>;
    fn pooled(&self) -> Vec<JobId>;
    fn is_quiet(&self) -> bool;
    fn has_left(&self) -> bool;
    fn may_queue(&self, job: &JobSpec) -> bool;
    fn may_grant(&self, rank: Rank) -> bool;
    fn books(&self) -> Vec<(Rank, Vec<(JobId, bool)>)>;
    fn efficiencies(&self) -> Vec<(Rank, f64)>;
    fn has_told(&self, rank: Rank) -> bool;
    fn can_remember(&self, durable: &Durable) -> Result<(), String>;
    fn family_agrees_with(&self, durable: &Durable) -> Result<(), String>;
    fn check_invariants(&self);
    fn boxed(&self) -> Box<dyn Site>;
}

impl<F: Family> Site for Engine<F> {
    fn core(&self) -> &Core {
        &self.core
    }

    fn core_mut(&mut self) -> &mut Core {
        &mut self.core
    }

    fn handle(&mut self, now: Time, input: Input, wishes: &mut Wishes) {
        self.wake(now);
        match input {
            Input::Submitted(job) => self.on_submitted(now, job),
            Input::Completed(job) => self.on_completed(now, job),
            Input::Begun(job) => self.on_begun(now, job),
            Input::Kept { to, number } => self.on_kept(now, to, number),
            Input::Foreign(processors) => self.core.is_busy_with(processors),
            Input::Message { from, message } => self.on_message(now, from, message),
            Input::Turn => self.turn(now),
            Input::Settle => F::settle(self, now),
            Input::Timeout => self.on_timeout(now),
            Input::Leave => self.leave(now),
            Input::Adopt { job, epoch } => self.on_adopt(now, job, epoch),
        }
        F::after(self, now);
        self.hand_out(wishes);
    }

    fn hand_out(&mut self, wishes: &mut Wishes) {
        if wishes.outputs.is_empty() {
            std::mem::swap(&mut wishes.outputs, &mut self.core.outputs);
        } else {
            wishes.outputs.append(&mut self.core.outputs);
        }
        // A site that leaves starts nothing, and one that must hear of others first has nothing to do until then.
        let may_start = !self.core.is_leaving() && !self.core.must_ask_first();
        let planned = if may_start { self.family.wake_at() } else { None };
        wishes.timeout = earlier(earlier(self.core.timers.next(), self.timers.next()), planned);
        wishes.settle = self.family.wants_settle();
    }

    fn go_on(&mut self, durable: &Durable, now: Time) {
        Engine::go_on(self, durable, now);
    }

    fn begin_with_nothing(&mut self, now: Time) {
        Engine::begin_with_nothing(self, now);
    }

    fn waiting(&self) -> usize {
        Engine::waiting(self)
    }

    fn jobs(&self) -> Vec<JobSpec> {
        self.family.jobs().copied().collect()
    }

    fn apart(&self) -> usize {
        self.family.apart()
    }

    fn parts(&self) -> Vec<JobId> {
        self.family.parts()
    }

    fn nodes(&self, job: JobId) -> Option<&[u32]> {
        self.family.nodes(job)
    }

    fn own(&self) -> Option<&WaitingList> {
        self.family.own()
    }

    fn held(&self) -> Vec<&JobSpec> {
        self.family.held().collect()
    }

    fn pooled(&self) -> Vec<JobId> {
        self.family.pooled().collect()
    }

    fn is_quiet(&self) -> bool {
        self.core.reports_due() == 0
            && self.core.ledger.is_settled()
            && !self.core.timers.any_retry()
            && F::is_quiet(self)
    }

    fn has_left(&self) -> bool {
        Engine::has_left(self)
    }

    fn may_queue(&self, job: &JobSpec) -> bool {
        F::may_queue(&self.core, job)
    }

    fn may_grant(&self, rank: Rank) -> bool {
        F::may_grant(&self.core, rank)
    }

    fn books(&self) -> Vec<(Rank, Vec<(JobId, bool)>)> {
        self.family.books()
    }

    fn efficiencies(&self) -> Vec<(Rank, f64)> {
        self.family.efficiencies()
    }

    fn has_told(&self, rank: Rank) -> bool {
        self.family.has_told(rank)
    }

    fn can_remember(&self, durable: &Durable) -> Result<(), String> {
        F::can_remember(self, durable)
    }

    fn family_agrees_with(&self, durable: &Durable) -> Result<(), String> {
        F::agrees_with(self, durable)
    }

    fn check_invariants(&self) {
        let core = &self.core;
        let kept = self.family.kept();
        assert_eq!(
            core.busy() + kept + core.foreign + core.free,
            core.processors(),
            "processors are busy or idle"
        );
        for (to, out) in core.ledger.transfers_out() {
            // It may have come back before the answer: then it moved on since.
            let job = out.job.id;
            let came_back = core.custody.get(&job).is_some_and(|custody| custody.hops > out.hops);
            let runs = core.running.contains_key(&job);
            assert!(!runs || came_back, "job {job} runs here and is out to site {to}");
        }
        for job in self.family.jobs() {
            assert!(!core.running.contains_key(&job.id), "job {} waits and runs", job.id);
        }
        for timer in core.timers.all() {
            let is_open = match timer {
                Timer::Transfer(to, number) => core.ledger.out(core.site_at(to), number).is_some(),
                Timer::Heartbeat => core.membership.is_some(),
            };
            assert!(is_open, "{timer:?} is set, and nothing is open that it is about");
        }
        for timer in self.timers.all() {
            assert!(F::is_open(self, timer), "{timer:?} is set, and nothing is open that it is about");
        }
        F::check(self);
    }

    fn boxed(&self) -> Box<dyn Site> {
        Box::new(self.clone())
    }
}

impl<F: Family> Engine<F> {
    /// A site with an empty queue that believes every other queue empty. `incarnation` is the number of its process.
    pub(crate) fn at_rest(config: PeerConfig, incarnation: u32, first: u64) -> Engine<F> {
        assert!(config.options.steal.window >= 1, "a thief needs one request");
        assert!(config.options.batch >= 1, "a grant holds a job");
        let family = F::of(&config, first);
        Engine { core: Core::at_rest(config, incarnation), family, timers: Timers::default() }
    }

    /// Jobs that wait here.
    pub(crate) fn waiting(&self) -> usize {
        let orphaned = self.core.membership.as_ref().map_or(0, |membership| membership.orphaned_count());
        self.family.waiting() + orphaned
    }

    fn on_submitted(&mut self, now: Time, job: JobSpec) {
        let core = &mut self.core;
        if core.is_here(job.id) || core.ledger.hops_out(job.id).is_some() {
            // Another site gave its number to a job of its own making, or it was submitted twice.
            let from = core.config.site;
            return core.event(EventKind::Ignored { from, message: MessageKind::Route });
        }
        core.event(EventKind::Submitted {
            job: job.id,
            processors: job.processors,
            requested: job.requested,
            origin: job.origin,
        });
        core.own_up(job, Custody::default(), Place::Queue);
        core.custody.insert(job.id, Custody::default());
        self.settle_in(now, job, Custody::default());
    }

    /// Puts a job where it belongs that this site is the first owner of: here, to its home, or aside until somebody
    /// is there who can hold it.
    pub(crate) fn settle_in(&mut self, now: Time, job: JobSpec, custody: Custody) {
        let home = self.core.home_of(&job);
        if home.is_none() && self.core.membership.is_some() {
            self.core.event(EventKind::Orphaned { job: job.id, processors: job.processors });
        }
        match F::belongs(&self.core, home, &job) {
            Some(rank) if rank == self.core.rank => self.enqueue(now, job),
            Some(rank) => self.core.route(now, rank, job, custody),
            None => {
                self.core.fresh = true;
                self.core.orphan(job);
            }
        }
    }

    /// Puts a job into the queue of this site.
    pub(crate) fn enqueue(&mut self, now: Time, job: JobSpec) {
        F::enqueue(self, now, job);
        self.core.fresh = true;
    }

    fn on_begun(&mut self, now: Time, job: JobId) {
        let waiting = self.family.jobs().find(|waiting| waiting.id == job).copied();
        let job = waiting.expect("only a waiting job is started");
        self.core.makes_room(job.processors);
        F::begun(self, now, &job);
        self.core.fresh = true;
    }

    fn on_completed(&mut self, now: Time, job: JobId) {
        if F::part_ended(self, now, job) {
            self.core.fresh = true;
            self.core.changes += 1;
            return;
        }
        let gone = self.core.running.remove(&job).expect("only a running job completes");
        if let Some(nodes) = &mut self.core.nodes {
            nodes.end(now, job);
        }
        F::completed(self, now, job, gone.estimated_end, gone.processors);
        let core = &mut self.core;
        let lost = core.has(Mutant::FreesOneLess) && gone.processors > 1;
        core.free += gone.processors - u32::from(lost);
        assert!(core.free <= core.processors(), "a job frees what it held");
        let custody = core.custody.remove(&job).unwrap_or_default();
        if !core.has(Mutant::EndNotWritten) {
            core.write(Fact::Ended { job });
        }
        core.guarded_done(job, custody);
        core.fresh = true;
        core.changes += 1;
        core.event(EventKind::Completed { job, processors: gone.processors });
    }

    fn on_message(&mut self, now: Time, from: SiteId, message: Message) {
        let core = &mut self.core;
        if core.config.options.message_events {
            core.event(EventKind::Received { from, message: message.kind() });
        }
        let kind = message.kind();
        if from.0 == 0 || from.index() >= core.config.grid.len() || from == core.config.site {
            return core.ignore(from, kind);
        }
        let other = core.rank_of(from);
        if !self.is_lawful(other, &message) && !self.core.has(Mutant::LiesBelieved) {
            return self.core.ignore(from, kind);
        }
        self.heard_of(now, other);
        match message {
            Message::HandOver(message) => self.on_hand_over(now, other, message),
            Message::Membership(message) => self.on_membership(now, other, message),
            message => match F::Message::of(message) {
                Some(message) => F::heard(self, now, other, message),
                None => self.core.ignore(from, kind),
            },
        }
    }

    /// Decides what starts here, tells others, and asks for work if idle.
    pub(crate) fn turn(&mut self, now: Time) {
        if self.core.must_ask_first() {
            return;
        }
        self.core.fresh = false;
        if self.core.is_leaving() {
            return self.turn_out(now);
        }
        self.settle_orphaned(now);
        F::turn(self, now);
    }

    fn on_timeout(&mut self, now: Time) {
        let own = self.timers.due(now).into_iter().map(|(at, timer)| (at, Due::Own(timer)));
        let core = self.core.timers.due(now).into_iter().map(|(at, timer)| (at, Due::Core(timer)));
        let mut due: Vec<(Time, Due<F::Timer>)> = own.chain(core).collect();
        due.sort_unstable();
        for (_, due) in due {
            // An earlier one of this batch may have canceled it.
            match due {
                Due::Own(timer) if self.timers.is_set(timer) => F::fired(self, now, timer),
                Due::Core(timer) if self.core.timers.is_set(timer) => self.on_timer(now, timer),
                Due::Own(_) | Due::Core(_) => {}
            }
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Transfer(to, number) => {
                self.core.timers.again(timer, now);
                self.repeat_transfer(now, to, number);
            }
            Timer::Heartbeat => self.heartbeat(now),
        }
    }
}
