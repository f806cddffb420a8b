//! HyParView: Leitão, Pereira, Rodrigues, *HyParView: a membership protocol for reliable gossip-based broadcast*, DSN 2007.
//!
//! A peer has a small *active* view, whose members have it in theirs, and a larger *passive* view of others to replace them.
//! The machine sends nothing, knows no clock and draws from the generator that it is given.
//!
//! ```text
//!             Linked, Neighbor, Join, end of a walk
//!   passive ---------------------------------------> active
//!      ^  ^                                          |  |
//!      |  '------------ dropped, Disconnect ---------'  |
//!   ForwardJoin, Shuffle            failed, silent, leaving: in neither
//! ```
//!
//! The paper has connections that both ends see. Here [`Message::Linked`] says one thing, *you are in my active view*, when a
//! link is made and each round: who has room agrees, who has none answers [`Message::Disconnect`]. So one lost message makes
//! no link that only one end knows of for more than a round. Messages are in [`message`](Message), numbers in [`Options`].

mod message;
mod options;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rand::{Rng, RngExt as _};
use scheduler::{Span, Time};

pub use message::{Message, Priority};
pub use options::Options;

use crate::contact::Contact;
use crate::view::View;

/// What can happen to a membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<I, A> {
    /// Enter the overlay through the first of these peers. They are kept: in a round that begins with room for a neighbor and
    /// nobody to be asked, one of them is. Who is in the overlay joins its part with that of the first.
    Join(Vec<I>),
    /// A message arrived.
    Message {
        /// Who sent it, as the transport authenticated it.
        from: I,
        /// What it says.
        message: Message<I, A>,
    },
    /// The transport cannot reach this peer.
    Failed(I),
    /// What others are to know of this peer is something else now.
    Renewed(A),
    /// Leave the overlay for good.
    Leave,
    /// [`Membership::poll_timeout`] has passed.
    Timeout,
}

/// What a membership wants done, and what it tells whoever has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<I, A> {
    /// Send a message. The receiver may be any peer that this one has heard of.
    Send {
        /// Who it is for.
        to: I,
        /// What it says.
        message: Message<I, A>,
    },
    /// A peer has entered the active view: listen to it.
    Up(Contact<I, A>),
    /// What a neighbor says of itself is new.
    Changed(Contact<I, A>),
    /// A peer has left the active view.
    Down(I),
}

/// One peer's part of an overlay.
#[derive(Clone, Debug)]
pub struct Membership<I, A, R> {
    own: Contact<I, A>,
    options: Options,
    rng: R,
    active: View<I, A>,
    passive: View<I, A>,
    /// Rounds since each neighbor said something.
    silent: BTreeMap<I, u32>,
    /// Through whom this peer can enter.
    sponsors: Vec<I>,
    /// The one that was asked last, until it answers.
    joining: Option<I>,
    /// Who was asked to be a neighbor, and until when it is waited for. One at a time, as in §4.3.
    asked: Option<(I, Time)>,
    /// Who refused since the round began.
    refused: BTreeSet<I>,
    /// Rounds in a row that began with a free place and somebody to ask.
    fruitless: u32,
    /// Passive contacts that the last shuffle told of: the first to make room for what comes back.
    offered: Vec<I>,
    next_round: Time,
    has_left: bool,
    outputs: VecDeque<Output<I, A>>,
}

impl<I: Ord + Clone, A: Clone, R: Rng> Membership<I, A, R> {
    /// A peer that knows nobody. Its first round is within a period from `now`, drawn, so that peers that begin together do
    /// not all speak together.
    ///
    /// A peer that restarts needs an edition above all that it had, or others will go on believing what they know.
    ///
    /// # Panics
    /// If a view has no room, or the period or the patience is not positive.
    pub fn new(now: Time, own: Contact<I, A>, options: Options, mut rng: R) -> Membership<I, A, R> {
        assert!(options.active_max > 0, "an active view needs room for a neighbor");
        assert!(options.passive_max > 0, "a passive view needs room for a contact");
        assert!(options.period > Span::default(), "rounds need a period");
        assert!(options.patience > Span::default(), "an answer needs time");
        let first = Span::from_micros(rng.random_range(0..options.period.as_micros()));
        Membership {
            own,
            options,
            rng,
            active: View::default(),
            passive: View::default(),
            silent: BTreeMap::new(),
            sponsors: Vec::new(),
            joining: None,
            asked: None,
            refused: BTreeSet::new(),
            fruitless: 0,
            offered: Vec::new(),
            next_round: now.saturating_add(first),
            has_left: false,
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened. Never fails: messages that make no sense are dropped.
    ///
    /// # Panics
    /// If an invariant is broken: that is a mistake here.
    pub fn handle(&mut self, now: Time, input: Input<I, A>) {
        match input {
            Input::Join(sponsors) => self.enter(sponsors),
            Input::Message { from, message } => self.hear(from, message),
            Input::Failed(peer) => self.forget(&peer),
            Input::Renewed(about) => self.renew(about),
            Input::Leave => self.leave(),
            Input::Timeout => self.wake(now),
        }
        self.fill(now);
        self.check();
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<Output<I, A>> {
        self.outputs.pop_front()
    }

    /// When to call with [`Input::Timeout`]; `None` after it has left.
    pub fn poll_timeout(&self) -> Option<Time> {
        let asked = self.asked.as_ref().map(|(_, until)| *until);
        (!self.has_left).then(|| asked.map_or(self.next_round, |until| until.min(self.next_round)))
    }

    /// This peer as others know it.
    pub fn own(&self) -> &Contact<I, A> {
        &self.own
    }

    /// Neighbors, in order of their ids.
    pub fn active(&self) -> &[Contact<I, A>] {
        self.active.contacts()
    }

    /// Others that are known, in order of their ids.
    pub fn passive(&self) -> &[Contact<I, A>] {
        self.passive.contacts()
    }

    /// The newest that is known of a peer in either view.
    pub fn known(&self, peer: &I) -> Option<&Contact<I, A>> {
        self.active.get(peer).or_else(|| self.passive.get(peer))
    }

    fn enter(&mut self, mut sponsors: Vec<I>) {
        sponsors.retain(|sponsor| *sponsor != self.own.peer);
        sponsors.truncate(self.options.passive_max);
        self.sponsors = sponsors;
        if let Some(first) = self.sponsors.first().filter(|_| !self.has_left) {
            self.join(first.clone());
        }
    }

    fn join(&mut self, sponsor: I) {
        self.joining = Some(sponsor.clone());
        self.send(sponsor, Message::Join(self.own.clone()));
    }

    fn hear(&mut self, from: I, message: Message<I, A>) {
        if from == self.own.peer {
            return;
        }
        if self.has_left {
            let wants_an_answer =
                matches!(message, Message::Join(_) | Message::Neighbor { .. } | Message::Linked(_));
            if wants_an_answer {
                self.send(from, Message::Disconnect { leaving: true });
            }
            return;
        }
        if let Some(rounds) = self.silent.get_mut(&from) {
            *rounds = 0;
        }
        // Nobody introduces itself as somebody else.
        match message {
            Message::Join(contact) if contact.peer == from => self.take_in(contact),
            Message::Neighbor { contact, priority } if contact.peer == from => {
                self.hear_wish(contact, priority);
            }
            Message::Linked(contact) if contact.peer == from => self.hear_linked(contact),
            Message::Join(_) | Message::Neighbor { .. } | Message::Linked(_) => {}
            Message::ForwardJoin { newcomer, ttl } => self.walk_newcomer(&from, newcomer, ttl),
            Message::Disconnect { leaving } => self.hear_disconnect(from, leaving),
            Message::Shuffle { origin, contacts, ttl } => self.walk_shuffle(&from, origin, contacts, ttl),
            Message::ShuffleReply { contacts } => {
                let offered = std::mem::take(&mut self.offered);
                self.integrate(contacts, offered);
            }
        }
    }

    /// Algorithm 1, upon `Join`. One that is repeated is only answered.
    fn take_in(&mut self, newcomer: Contact<I, A>) {
        let peer = newcomer.peer.clone();
        if self.link(newcomer.clone()) {
            for other in self.active.contacts().to_vec() {
                if other.peer != peer {
                    let ttl = self.options.join_walk;
                    self.send(other.peer, Message::ForwardJoin { newcomer: newcomer.clone(), ttl });
                }
            }
        }
        self.send(peer, Message::Linked(self.own.clone()));
    }

    /// Algorithm 1, upon `ForwardJoin`, with the condition of §4.2: who has no other neighbor than the sender ends the walk.
    fn walk_newcomer(&mut self, from: &I, newcomer: Contact<I, A>, ttl: u8) {
        let peer = newcomer.peer.clone();
        if peer == self.own.peer {
            return;
        }
        // What others say is not believed to be longer than what anybody sends.
        let ttl = ttl.min(self.options.join_walk);
        match self.next_step(from, &peer, ttl) {
            None => {
                if self.link(newcomer) {
                    self.send(peer, Message::Linked(self.own.clone()));
                }
            }
            Some(next) => {
                if ttl == self.options.passive_walk {
                    self.remember(newcomer.clone(), &mut Vec::new());
                } else {
                    self.refresh(newcomer.clone());
                }
                self.send(next, Message::ForwardJoin { newcomer, ttl: ttl - 1 });
            }
        }
    }

    /// Where a walk goes on, if it does: not back, and not to whom it is about.
    fn next_step(&mut self, from: &I, about: &I, ttl: u8) -> Option<I> {
        if ttl == 0 || self.active.len() <= 1 {
            return None;
        }
        self.active.draw(&mut self.rng, |peer| peer != from && peer != about).map(|next| next.peer.clone())
    }

    fn hear_wish(&mut self, contact: Contact<I, A>, priority: Priority) {
        let peer = contact.peer.clone();
        if self.active.has(&peer) || self.has_room() || priority == Priority::High {
            self.link(contact);
            self.send(peer, Message::Linked(self.own.clone()));
        } else {
            self.refresh(contact);
            self.send(peer, Message::Disconnect { leaving: false });
        }
    }

    fn hear_linked(&mut self, contact: Contact<I, A>) {
        let peer = contact.peer.clone();
        let is_sponsor = self.joining.take_if(|sponsor| *sponsor == peer).is_some();
        self.end_wish(&peer);
        if self.active.has(&peer) || self.has_room() || is_sponsor {
            self.link(contact);
        } else {
            self.remember(contact, &mut Vec::new());
            self.send(peer, Message::Disconnect { leaving: false });
        }
    }

    fn hear_disconnect(&mut self, from: I, leaving: bool) {
        let was_neighbor = self.unlink(&from);
        self.end_wish(&from);
        if leaving {
            self.passive.remove(&from);
        } else {
            // It has no room, so it need not be asked again until the next round.
            if let Some(contact) = was_neighbor {
                self.remember(contact, &mut Vec::new());
            }
            if self.passive.has(&from) {
                self.refused.insert(from);
            }
        }
    }

    /// §4.4. Who ends the walk answers the peer that began it, which need not be known here.
    fn walk_shuffle(&mut self, from: &I, origin: Contact<I, A>, mut contacts: Vec<Contact<I, A>>, ttl: u8) {
        if origin.peer == self.own.peer {
            return;
        }
        contacts.truncate(self.options.shuffle_active + self.options.shuffle_passive);
        // The first step is decreasing, so the walk is of so many peers.
        let ttl = ttl.min(self.options.shuffle_walk).saturating_sub(1);
        if let Some(next) = self.next_step(from, &origin.peer, ttl) {
            self.send(next, Message::Shuffle { origin, contacts, ttl });
            return;
        }
        let reply = self.passive.sample(&mut self.rng, contacts.len() + 1);
        let offered = reply.iter().map(|contact| contact.peer.clone()).collect();
        self.send(origin.peer.clone(), Message::ShuffleReply { contacts: reply });
        contacts.push(origin);
        self.integrate(contacts, offered);
    }

    fn integrate(&mut self, contacts: Vec<Contact<I, A>>, mut offered: Vec<I>) {
        let count_max = self.options.shuffle_active + self.options.shuffle_passive + 1;
        for contact in contacts.into_iter().take(count_max) {
            self.remember(contact, &mut offered);
        }
    }

    fn wake(&mut self, now: Time) {
        if self.has_left {
            return;
        }
        if let Some((peer, _)) = self.asked.take_if(|(_, until)| *until <= now) {
            self.forget(&peer);
        }
        if self.next_round <= now {
            // One that was missed is not made up for.
            let late = now.since(self.next_round).as_micros() / self.options.period.as_micros();
            let periods = self.options.period.saturating_mul(late + 1);
            self.next_round = self.next_round.saturating_add(periods);
            self.round();
        }
    }

    fn round(&mut self) {
        for rounds in self.silent.values_mut() {
            *rounds += 1;
        }
        let silent_rounds_max = self.options.silent_rounds_max;
        let is_gone = |(peer, rounds): (&I, &u32)| (*rounds > silent_rounds_max).then(|| peer.clone());
        let gone: Vec<I> = self.silent.iter().filter_map(is_gone).collect();
        for peer in gone {
            self.forget(&peer);
            // It may live and hear nothing of what it says.
            self.send(peer, Message::Disconnect { leaving: false });
        }
        self.refused.clear();
        let is_fruitless = self.has_room() && !self.passive.is_empty();
        self.fruitless = if is_fruitless { self.fruitless + 1 } else { 0 };
        if self.has_room() && self.passive.is_empty() {
            self.join_again();
        }
        for neighbor in self.active.contacts().to_vec() {
            self.send(neighbor.peer, Message::Linked(self.own.clone()));
        }
        self.shuffle();
    }

    /// Asks one who may know others: this peer has room and nobody else to ask.
    fn join_again(&mut self) {
        let others: Vec<&I> = self.sponsors.iter().filter(|sponsor| !self.active.has(sponsor)).collect();
        if !others.is_empty() {
            let sponsor = others[self.rng.random_range(0..others.len())].clone();
            self.join(sponsor);
        }
    }

    fn shuffle(&mut self) {
        let Some(next) = self.active.draw(&mut self.rng, |_| true).map(|next| next.peer.clone()) else {
            return;
        };
        let mut contacts = self.active.sample(&mut self.rng, self.options.shuffle_active);
        let others = self.passive.sample(&mut self.rng, self.options.shuffle_passive);
        self.offered = others.iter().map(|contact| contact.peer.clone()).collect();
        contacts.extend(others);
        // Whom it goes to knows itself.
        contacts.retain(|contact| contact.peer != next);
        let ttl = self.options.shuffle_walk;
        self.send(next, Message::Shuffle { origin: self.own.clone(), contacts, ttl });
    }

    /// Asks a passive contact to be a neighbor if there is a place and nobody is asked yet (§4.3).
    fn fill(&mut self, now: Time) {
        if self.has_left || self.asked.is_some() || !self.has_room() {
            return;
        }
        let refused = &self.refused;
        let Some(next) = self.passive.draw(&mut self.rng, |peer| !refused.contains(peer)) else { return };
        let peer = next.peer.clone();
        let insists = self.options.insist_after.is_some_and(|rounds| self.fruitless >= rounds);
        let priority = if self.active.is_empty() || insists { Priority::High } else { Priority::Low };
        self.asked = Some((peer.clone(), now.saturating_add(self.options.patience)));
        self.send(peer, Message::Neighbor { contact: self.own.clone(), priority });
    }

    fn renew(&mut self, about: A) {
        self.own = Contact { peer: self.own.peer.clone(), edition: self.own.edition + 1, about };
        for neighbor in self.active.contacts().to_vec() {
            self.send(neighbor.peer, Message::Linked(self.own.clone()));
        }
    }

    fn leave(&mut self) {
        self.has_left = true;
        self.asked = None;
        for neighbor in self.active.contacts().to_vec() {
            self.unlink(&neighbor.peer);
            self.send(neighbor.peer, Message::Disconnect { leaving: true });
        }
        self.passive = View::default();
    }

    /// Takes a peer into the active view, whoever must make room. Whether it is new there.
    fn link(&mut self, contact: Contact<I, A>) -> bool {
        if self.active.has(&contact.peer) {
            self.refresh(contact);
            return false;
        }
        if !self.has_room() {
            let dropped = self.active.draw(&mut self.rng, |_| true).expect("a full view has somebody");
            let peer = dropped.peer.clone();
            let dropped = self.unlink(&peer).expect("it was drawn from the view");
            self.send(peer, Message::Disconnect { leaving: false });
            self.remember(dropped, &mut Vec::new());
        }
        let known = self.passive.remove(&contact.peer);
        let newest = known.filter(|known| known.is_newer_than(&contact)).unwrap_or(contact);
        self.end_wish(&newest.peer);
        self.silent.insert(newest.peer.clone(), 0);
        self.active.insert(newest.clone());
        self.outputs.push_back(Output::Up(newest));
        true
    }

    fn unlink(&mut self, peer: &I) -> Option<Contact<I, A>> {
        let contact = self.active.remove(peer)?;
        self.silent.remove(peer);
        self.outputs.push_back(Output::Down(peer.clone()));
        Some(contact)
    }

    /// Takes a peer into the passive view. Where it is full, one of those that were offered to somebody else makes room, and
    /// any other only if none of them is left (§4.4).
    fn remember(&mut self, contact: Contact<I, A>, offered: &mut Vec<I>) {
        let is_known = self.active.has(&contact.peer) || self.passive.has(&contact.peer);
        if is_known || contact.peer == self.own.peer {
            self.refresh(contact);
            return;
        }
        while self.passive.len() >= self.options.passive_max {
            let out = match offered.pop() {
                Some(peer) => peer,
                None => {
                    let drawn = self.passive.draw(&mut self.rng, |_| true);
                    drawn.expect("a full view has somebody").peer.clone()
                }
            };
            self.passive.remove(&out);
        }
        self.passive.insert(contact);
    }

    /// Keeps what is newer of a peer that is known.
    fn refresh(&mut self, contact: Contact<I, A>) {
        if self.active.has(&contact.peer) {
            if self.active.insert(contact.clone()) {
                self.outputs.push_back(Output::Changed(contact));
            }
        } else if self.passive.has(&contact.peer) {
            self.passive.insert(contact);
        }
    }

    /// A peer that cannot be reached is in no view (§4.3).
    fn forget(&mut self, peer: &I) {
        self.unlink(peer);
        self.passive.remove(peer);
        self.end_wish(peer);
    }

    fn end_wish(&mut self, peer: &I) {
        self.asked.take_if(|(asked, _)| asked == peer);
    }

    fn has_room(&self) -> bool {
        self.active.len() < self.options.active_max
    }

    fn send(&mut self, to: I, message: Message<I, A>) {
        self.outputs.push_back(Output::Send { to, message });
    }

    /// What holds after every event, whatever others say.
    fn check(&self) {
        assert!(self.active.len() <= self.options.active_max, "too many neighbors");
        assert!(self.passive.len() <= self.options.passive_max, "too many contacts");
        assert!(!self.active.has(&self.own.peer), "nobody is its own neighbor");
        assert!(!self.passive.has(&self.own.peer), "nobody is its own contact");
        let is_once = |contact: &Contact<I, A>| !self.passive.has(&contact.peer);
        assert!(self.active.contacts().iter().all(is_once), "no peer is in both views");
        assert!(self.silent.len() == self.active.len(), "each neighbor is listened to, and nobody else");
        assert!(!self.has_left || self.active.is_empty(), "who has left has no neighbors");
    }
}

#[cfg(test)]
mod tests;
