//! The discipline of one instant, for whoever drives many peers in virtual time: [`crate::simulation`] without faults,
//! [`crate::faults`] with them.
//!
//! At one instant: what the driver plans itself comes before everything else; then all completions, all submissions, all
//! messages that are due, those without delay among them; then turns in ascending order of rank, each with its messages drained to quiescence, until
//! nobody has anything left to decide; then timers that are due, and turns again. A turn of a peer that nothing happened
//! to changes nothing, so it is not given. Peers that put a decision off until nothing is under way settle between turns
//! and timers, all together: no message of one is delivered before the last has decided.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use links::Copies;
use protocol::{Discovery, Input, Options};
use scheduler::execution::Due;
use scheduler::time::earlier;
use scheduler::{Event, EventKind, Execution, Grid, Pass, SiteId, Span, Strategy, Time};

use crate::host::Carried;

/// Instants in a row at which no job was submitted, started, ended or was taken over, and nobody began or ended, after which a
/// run has stalled: nothing executes, nothing is planned, and all that is left is asking in vain. Arbitrary; takes seconds.
pub const STALL_INSTANTS: u64 = 100_000;
/// The same while a link will still change, as one that is cut: then what is asked may be answered after all.
pub const STALL_INSTANTS_CUT: u64 = 10 * STALL_INSTANTS;
/// And it took so long: many sites have many instants a second.
pub const STALL: Span = Span::from_secs(86_400);

/// A message under way.
#[derive(Clone, Debug)]
pub(crate) struct Parcel<M> {
    pub(crate) from: SiteId,
    /// The rank of its receiver.
    pub(crate) to: usize,
    pub(crate) message: M,
}

/// What is going to happen, and who has something to decide. Jobs that execute are known by an `E`.
#[derive(Debug)]
pub(crate) struct EventList<M, E> {
    /// The instant processed last.
    pub(crate) now: Time,
    /// Whether local schedulers decide after each fact, and hear of submissions before completions.
    per_event: bool,
    pub(crate) executing: Execution<E>,
    /// Messages that need time, by their place in `parcels`: a heap moves what it holds about.
    under_way: BinaryHeap<Reverse<Due<u32>>>,
    parcels: Vec<Option<Parcel<M>>>,
    /// Places in `parcels` that hold nothing.
    vacant: Vec<u32>,
    /// Messages without delay, delivered before anything else happens.
    inbox: VecDeque<Parcel<M>>,
    wakes: BTreeSet<(Time, usize)>,
    wake_of: Vec<Option<Time>>,
    /// Ranks of peers that something happened to since their last turn.
    pub(crate) restless: BTreeSet<usize>,
    /// Ranks of peers that want to settle at this instant.
    pub(crate) unsettled: BTreeSet<usize>,
    /// What happened and nobody was told of yet.
    events: Vec<Event>,
    sequence: u64,
    /// When something was last done, or a message arrives that takes long.
    active: Time,
    /// Instants since.
    idle: u64,
    /// When links change for the last time.
    last_change: Option<Time>,
}

impl<M, E> EventList<M, E> {
    /// Nothing is going to happen at the sites of a grid.
    pub(crate) fn new(grid: &Grid, strategy: Strategy, pass: Pass) -> EventList<M, E> {
        EventList {
            now: Time::from_micros(i64::MIN),
            per_event: strategy.nature().per_event && pass == Pass::PerEvent,
            executing: Execution::on(grid),
            under_way: BinaryHeap::new(),
            parcels: Vec::new(),
            vacant: Vec::new(),
            inbox: VecDeque::new(),
            wakes: BTreeSet::new(),
            wake_of: vec![None; grid.len()],
            restless: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            events: Vec::new(),
            sequence: 0,
            active: Time::from_micros(i64::MIN),
            idle: 0,
            last_change: None,
        }
    }

    /// The same over links that change for the last time then.
    pub(crate) fn with_last_change(self, last_change: Option<Time>) -> EventList<M, E> {
        EventList { last_change, ..self }
    }

    /// If nothing was done for too long: since when.
    fn idle_since(&self) -> Option<Time> {
        let changes = self.last_change.is_some_and(|last| last > self.now);
        let most = if changes { STALL_INSTANTS_CUT } else { STALL_INSTANTS };
        (self.idle > most && self.now > self.active.saturating_add(STALL)).then_some(self.active)
    }

    /// A number above all that were given out: of two things that happen at one instant the older comes first.
    pub(crate) fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Records what happened now.
    pub(crate) fn say(&mut self, site: SiteId, kind: EventKind) {
        let is_done = matches!(
            kind,
            EventKind::Submitted { .. }
                | EventKind::Started { .. }
                | EventKind::Completed { .. }
                | EventKind::Interrupted { .. }
                | EventKind::Revoked { .. }
                | EventKind::TookOver { .. }
                | EventKind::Ended { .. }
                | EventKind::Begun { .. }
        );
        if is_done {
            (self.active, self.idle) = (self.active.max(self.now), 0);
        }
        self.events.push(Event { at: self.now, site, kind });
    }

    /// Hands out what was recorded, and what became of jobs on shared nodes by that.
    pub(crate) fn flush(&mut self, sink: &mut dyn FnMut(&Event)) {
        let at = self.now;
        self.events.extend(self.executing.told().map(|(site, kind)| Event { at, site, kind }));
        for event in &self.events {
            sink(event);
        }
        self.events.clear();
    }

    /// When a peer wants to be woken, from now on.
    pub(crate) fn wake(&mut self, rank: usize, at: Option<Time>) {
        let before = std::mem::replace(&mut self.wake_of[rank], at);
        if before != at {
            if let Some(before) = before {
                self.wakes.remove(&(before, rank));
            }
            if let Some(at) = at {
                self.wakes.insert((at, rank));
            }
        }
    }

    /// How many messages need time and have not arrived.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    fn post_one(&mut self, delay: Span, parcel: Parcel<M>) {
        if delay == Span::ZERO {
            self.inbox.push_back(parcel);
        } else {
            let place = self.vacant.pop().unwrap_or_else(|| {
                self.parcels.push(None);
                u32::try_from(self.parcels.len() - 1).expect("fewer messages are under way than memory holds")
            });
            self.parcels[place as usize] = Some(parcel);
            let due = Due { at: self.now + delay, order: self.number(), what: place };
            if delay > STALL {
                self.active = self.active.max(due.at);
            }
            self.under_way.push(Reverse(due));
        }
    }

    /// The message that arrives next, if it does by now.
    fn pop_arrived(&mut self) -> Option<Parcel<M>> {
        self.under_way.peek().filter(|Reverse(due)| due.at <= self.now)?;
        let Reverse(due) = self.under_way.pop()?;
        self.vacant.push(due.what);
        self.parcels[due.what as usize].take()
    }
}

impl<M: Clone, E> EventList<M, E> {
    /// Puts on their way those copies of a message that arrive.
    pub(crate) fn post(&mut self, copies: Copies, parcel: Parcel<M>) {
        if let Some(second) = copies.second {
            self.post_one(copies.first.expect("there is no second without a first"), parcel.clone());
            self.post_one(second, parcel);
        } else if let Some(first) = copies.first {
            self.post_one(first, parcel);
        }
    }
}

/// Whoever tells peers what happens and carries out what they want done.
pub(crate) trait Driver {
    /// What peers say to each other.
    type Message: Carried;
    /// A job that executes.
    type Executed;
    /// Why it does not go on.
    type Error;

    fn event_list(&self) -> &EventList<Self::Message, Self::Executed>;

    fn event_list_mut(&mut self) -> &mut EventList<Self::Message, Self::Executed>;

    /// Tells one peer one thing and carries out what it wants done.
    fn call(&mut self, rank: usize, input: Input<Self::Message>) -> Result<(), Self::Error>;

    /// A job has ended.
    fn ended(&mut self, executed: Self::Executed) -> Result<(), Self::Error>;

    /// When the next job is submitted.
    fn next_submission(&self) -> Option<Time>;

    /// It is, now.
    fn submit_next(&mut self) -> Result<(), Self::Error>;

    /// When something happens next that is neither of jobs nor of peers.
    fn next_planned(&self) -> Option<Time> {
        None
    }

    /// It does, now.
    fn happen_next(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Nobody has anything left to decide.
    fn decided(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// When something happens next, apart from timers.
    fn next_fact(&self) -> Option<Time> {
        let event_list = self.event_list();
        let message = event_list.under_way.peek().map(|Reverse(due)| due.at);
        let done = earlier(event_list.executing.next_end(), message);
        earlier(done, earlier(self.next_submission(), self.next_planned()))
    }

    /// When something happens next.
    fn next_due(&self) -> Option<Time> {
        earlier(self.next_fact(), self.event_list().wakes.first().map(|&(at, _)| at))
    }

    /// Since when nothing was done, if it is certain or all but certain that nothing will be: nothing executes or is planned, and
    /// peers ask each other in vain.
    fn stalled_since(&self) -> Option<Time> {
        let since = self.event_list().idle_since()?;
        let nothing_comes = self.event_list().executing.next_end().is_none()
            && self.next_submission().is_none()
            && self.next_planned().is_none();
        nothing_comes.then_some(since)
    }

    /// Tells a peer something, which it will want a turn for if it is news.
    fn tell(&mut self, rank: usize, input: Input<Self::Message>) -> Result<(), Self::Error> {
        let wakes = match &input {
            Input::Message { message, .. } => message.wakes(),
            Input::Turn | Input::Settle => false,
            _ => true,
        };
        if wakes {
            self.event_list_mut().restless.insert(rank);
        }
        self.call(rank, input)
    }

    /// Everything that happens at an instant, until nothing more does. A job without run time ends at the instant it
    /// starts: then there is another round.
    ///
    /// # Panics
    /// If time runs backwards.
    fn instant(&mut self, at: Time, sink: &mut dyn FnMut(&Event)) -> Result<(), Self::Error> {
        assert!(at >= self.event_list().now, "time does not run backwards");
        self.event_list_mut().now = at;
        self.event_list_mut().idle += 1;
        loop {
            self.facts(sink)?;
            self.turns(sink)?;
            while self.settle(sink)? || self.timers(sink)? {
                self.turns(sink)?;
            }
            self.decided()?;
            if self.next_fact().is_none_or(|next| next > at) {
                return Ok(());
            }
        }
    }

    /// What is due, one kind after the other; whatever is planned comes before the next of any kind.
    fn facts(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Self::Error> {
        if self.event_list().per_event {
            self.submissions(sink)?;
            self.completions(sink)?;
        } else {
            self.completions(sink)?;
            self.submissions(sink)?;
        }
        self.messages_due(sink)
    }

    fn planned(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Self::Error> {
        while self.next_planned().is_some_and(|at| at <= self.event_list().now) {
            let done = self.happen_next();
            self.hand_out(done, sink)?;
            self.drain_inbox(sink)?;
            self.after_fact(sink)?;
        }
        Ok(())
    }

    fn completions(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Self::Error> {
        loop {
            self.planned(sink)?;
            let event_list = self.event_list_mut();
            let Some(due) = event_list.executing.pop_due(event_list.now) else {
                // Local users of shared nodes may have changed.
                event_list.flush(sink);
                return Ok(());
            };
            let done = self.ended(due.what);
            self.hand_out(done, sink)?;
            self.after_fact(sink)?;
        }
    }

    fn submissions(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Self::Error> {
        loop {
            self.planned(sink)?;
            if self.next_submission().is_none_or(|at| at > self.event_list().now) {
                return Ok(());
            }
            let done = self.submit_next();
            self.hand_out(done, sink)?;
            // A job on its way home is a fact of this instant, too: it arrives before anybody decides.
            self.drain_inbox(sink)?;
            self.after_fact(sink)?;
        }
    }

    /// Where local schedulers decide after each fact, they do, those too that it reached by messages.
    fn after_fact(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Self::Error> {
        if self.event_list().per_event { self.turns(sink) } else { Ok(()) }
    }

    fn messages_due(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Self::Error> {
        loop {
            self.planned(sink)?;
            // What peers said without delay arrives before the next message, and before anybody's turn.
            self.drain_inbox(sink)?;
            let Some(parcel) = self.event_list_mut().pop_arrived() else { return Ok(()) };
            self.deliver(parcel, sink)?;
        }
    }

    fn turns(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Self::Error> {
        let mut from = 0;
        loop {
            let restless = &mut self.event_list_mut().restless;
            let next = restless.range(from..).next().or_else(|| restless.first());
            let Some(&rank) = next else { return Ok(()) };
            restless.remove(&rank);
            self.step(rank, Input::Turn, sink)?;
            self.drain_inbox(sink)?;
            from = rank + 1;
        }
    }

    /// Lets all peers that wait for quiescence decide, before anything that they send is delivered.
    fn settle(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<bool, Self::Error> {
        let ranks = std::mem::take(&mut self.event_list_mut().unsettled);
        for &rank in &ranks {
            self.step(rank, Input::Settle, sink)?;
        }
        self.drain_inbox(sink)?;
        Ok(!ranks.is_empty())
    }

    fn timers(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<bool, Self::Error> {
        let event_list = self.event_list();
        let due = event_list.wakes.iter().take_while(|&&(at, _)| at <= event_list.now);
        let mut ranks: Vec<usize> = due.map(|&(_, rank)| rank).collect();
        ranks.sort_unstable();
        for &rank in &ranks {
            self.step(rank, Input::Timeout, sink)?;
            self.drain_inbox(sink)?;
        }
        Ok(!ranks.is_empty())
    }

    fn drain_inbox(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Self::Error> {
        while let Some(parcel) = self.event_list_mut().inbox.pop_front() {
            self.deliver(parcel, sink)?;
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        parcel: Parcel<Self::Message>,
        sink: &mut dyn FnMut(&Event),
    ) -> Result<(), Self::Error> {
        let Parcel { from, to, message } = parcel;
        self.step(to, Input::Message { from, message }, sink)
    }

    fn step(
        &mut self,
        rank: usize,
        input: Input<Self::Message>,
        sink: &mut dyn FnMut(&Event),
    ) -> Result<(), Self::Error> {
        let done = self.tell(rank, input);
        self.hand_out(done, sink)
    }

    /// Hands out what was recorded, also before a failure.
    fn hand_out(
        &mut self,
        done: Result<(), Self::Error>,
        sink: &mut dyn FnMut(&Event),
    ) -> Result<(), Self::Error> {
        self.event_list_mut().flush(sink);
        done
    }
}

/// Whether peers go on asking each other when there is nothing to do. Baselines repeat what they have others watch for
/// until there is news.
pub(crate) fn polls(strategy: Strategy, options: &Options) -> bool {
    let repeats = strategy.nature().repeats && options.retry.is_some();
    repeats || options.heartbeat.is_some() || matches!(options.discovery, Discovery::Polling { .. })
}
