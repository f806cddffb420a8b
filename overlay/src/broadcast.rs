//! Plumtree: Leitão, Pereira, Rodrigues, *Epidemic broadcast trees*, SRDS 2007.
//!
//! A peer pushes what is new to some neighbors at once and tells the others only that it has it. Who gets something twice
//! turns that link lazy, so that the eager ones become a tree; who hears of something that does not come asks for it, and so
//! mends the tree. Knows neighbors only as [`Input::Up`] and [`Input::Down`] say, as a [`crate::Membership`] does.
//!
//! Links between neighbors lose nothing as long as they last: that is what connections are for. One difference from the
//! paper: a new neighbor is told of what came lately, or a message that is under way while links change could pass somebody by.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use scheduler::{Span, Time};
use serde::{Deserialize, Serialize};

/// What neighbors say to each other. `hops` are links that a message has been over when it arrives, or would have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message<K, P> {
    /// Something that somebody tells all (Algorithm 1).
    Gossip {
        /// Its name: no two broadcasts have the same.
        key: K,
        /// What it says.
        payload: P,
        /// Links so far.
        hops: u32,
    },
    /// The sender has this, should it not come otherwise.
    IHave {
        /// Its name.
        key: K,
        /// Links, if it came this way.
        hops: u32,
    },
    /// The receiver need not send payloads to the sender at once.
    Prune,
    /// The receiver is to send payloads to the sender at once, and this one now (Algorithm 2; without a name: Algorithm 4).
    Graft {
        /// What is missing.
        key: Option<K>,
    },
}

/// What can happen to the broadcasts of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<I, K, P> {
    /// Tell everybody.
    Publish {
        /// A name that no other broadcast has.
        key: K,
        /// What is told.
        payload: P,
    },
    /// A message arrived.
    Message {
        /// Who sent it, as the transport authenticated it.
        from: I,
        /// What it says.
        message: Message<K, P>,
    },
    /// There is a new neighbor.
    Up(I),
    /// A neighbor is none any more.
    Down(I),
    /// [`Broadcast::poll_timeout`] has passed.
    Timeout,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<I, K, P> {
    /// Send a message.
    Send {
        /// Who it is for.
        to: I,
        /// What it says.
        message: Message<K, P>,
    },
    /// Somebody tells everybody this. Not for whom it is from.
    Deliver {
        /// Its name.
        key: K,
        /// What it says.
        payload: P,
        /// Links that it came over.
        hops: u32,
    },
}

/// Times and limits of broadcasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a payload that was announced may take until it is asked for: more than the slowest way through the tree.
    pub graft_after: Span,
    /// How long the answer to that may take until the next who announced it is asked: about a round trip.
    pub next_after: Span,
    /// Broadcasts of which the payload is kept, the latest ones. An older one that comes again is taken for new.
    pub kept_max: usize,
    /// The latest broadcasts that a new neighbor is told of. The paper tells it of none.
    pub told_max: usize,
    /// So many links shorter a way that was announced must be to take the place of one that was eager (Algorithm 4).
    pub optimize_from: Option<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            graft_after: Span::from_secs(3),
            next_after: Span::from_secs(1),
            kept_max: 1_000,
            told_max: 32,
            optimize_from: None,
        }
    }
}

/// How a neighbor learns of what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Push {
    Eager,
    Lazy,
}

#[derive(Clone, Debug)]
struct Kept<P> {
    payload: P,
    hops: u32,
}

/// Something that others have and that has not come.
#[derive(Clone, Debug)]
struct Missing<I> {
    due: Time,
    /// Who has it, by how many links, the first who said so first.
    announced: VecDeque<(I, u32)>,
}

/// One peer's part of the trees.
#[derive(Clone, Debug)]
pub struct Broadcast<I, K, P> {
    options: Options,
    neighbors: BTreeMap<I, Push>,
    kept: BTreeMap<K, Kept<P>>,
    /// The same, the oldest first.
    kept_order: VecDeque<K>,
    missing: BTreeMap<K, Missing<I>>,
    due: BTreeSet<(Time, K)>,
    outputs: VecDeque<Output<I, K, P>>,
}

impl<I: Ord + Clone, K: Ord + Clone, P: Clone> Broadcast<I, K, P> {
    /// A peer without neighbors.
    ///
    /// # Panics
    /// If nothing may be kept.
    pub fn new(options: Options) -> Broadcast<I, K, P> {
        assert!(options.kept_max > 0, "who keeps nothing takes everything for new");
        Broadcast {
            options,
            neighbors: BTreeMap::new(),
            kept: BTreeMap::new(),
            kept_order: VecDeque::new(),
            missing: BTreeMap::new(),
            due: BTreeSet::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened. Never fails.
    ///
    /// # Panics
    /// If an invariant is broken: that is a mistake here.
    pub fn handle(&mut self, now: Time, input: Input<I, K, P>) {
        match input {
            Input::Publish { key, payload } => self.publish(key, payload),
            Input::Message { from, message } => self.hear(now, from, message),
            Input::Up(peer) => self.up(peer),
            Input::Down(peer) => self.down(&peer),
            Input::Timeout => self.wake(now),
        }
        self.check();
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<Output<I, K, P>> {
        self.outputs.pop_front()
    }

    /// When to call with [`Input::Timeout`], if ever.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Neighbors that get payloads at once, in order of their ids.
    pub fn eager(&self) -> impl Iterator<Item = &I> {
        self.neighbors.iter().filter(|(_, push)| **push == Push::Eager).map(|(peer, _)| peer)
    }

    /// Neighbors that are told what there is, in order of their ids.
    pub fn lazy(&self) -> impl Iterator<Item = &I> {
        self.neighbors.iter().filter(|(_, push)| **push == Push::Lazy).map(|(peer, _)| peer)
    }

    /// Whether this broadcast came, or was made here, and is kept.
    pub fn has(&self, key: &K) -> bool {
        self.kept.contains_key(key)
    }

    fn publish(&mut self, key: K, payload: P) {
        if !self.has(&key) {
            self.take(key, payload, 0, None);
        }
    }

    fn hear(&mut self, now: Time, from: I, message: Message<K, P>) {
        match message {
            Message::Gossip { key, payload, hops } => self.hear_gossip(from, key, payload, hops),
            Message::IHave { key, hops } => self.hear_announced(now, from, key, hops),
            Message::Prune => self.turn(&from, Push::Lazy),
            Message::Graft { key } => {
                self.turn(&from, Push::Eager);
                let kept = key.and_then(|key| self.kept.get(&key).map(|kept| (key, kept.clone())));
                if let Some((key, Kept { payload, hops })) = kept {
                    self.send(from, Message::Gossip { key, payload, hops: hops.saturating_add(1) });
                }
            }
        }
    }

    /// Algorithm 1, upon `GOSSIP`.
    fn hear_gossip(&mut self, from: I, key: K, payload: P, hops: u32) {
        if self.has(&key) {
            self.turn(&from, Push::Lazy);
            self.send(from, Message::Prune);
            return;
        }
        let missing = self.missing.remove(&key);
        if let Some(missing) = &missing {
            self.due.remove(&(missing.due, key.clone()));
        }
        self.outputs.push_back(Output::Deliver { key: key.clone(), payload: payload.clone(), hops });
        self.take(key, payload, hops, Some(&from));
        self.turn(&from, Push::Eager);
        if let Some(missing) = missing {
            self.optimize(from, hops, missing.announced);
        }
    }

    /// Keeps something new and passes it on.
    fn take(&mut self, key: K, payload: P, hops: u32, from: Option<&I>) {
        let next = hops.saturating_add(1);
        for (peer, push) in &self.neighbors {
            if Some(peer) != from {
                let message = match push {
                    Push::Eager => Message::Gossip { key: key.clone(), payload: payload.clone(), hops: next },
                    Push::Lazy => Message::IHave { key: key.clone(), hops: next },
                };
                self.outputs.push_back(Output::Send { to: peer.clone(), message });
            }
        }
        self.kept.insert(key.clone(), Kept { payload, hops });
        self.kept_order.push_back(key);
        if self.kept_order.len() > self.options.kept_max {
            let oldest = self.kept_order.pop_front().expect("there are more than some");
            self.kept.remove(&oldest);
        }
    }

    /// Algorithm 4: the first who announced a way that is so much shorter takes the place of the sender.
    fn optimize(&mut self, from: I, hops: u32, announced: VecDeque<(I, u32)>) {
        let Some(threshold) = self.options.optimize_from else { return };
        let is_better =
            |(_, other): &(I, u32)| hops.checked_sub(*other).is_some_and(|less| less >= threshold);
        let better = announced.into_iter().find(is_better).map(|(peer, _)| peer);
        // Of no use if it is no neighbor any more.
        if let Some(peer) = better.filter(|peer| *peer != from && self.neighbors.contains_key(peer)) {
            self.turn(&peer, Push::Eager);
            self.send(peer, Message::Graft { key: None });
            self.turn(&from, Push::Lazy);
            self.send(from, Message::Prune);
        }
    }

    /// Algorithm 2, upon `IHAVE`.
    fn hear_announced(&mut self, now: Time, from: I, key: K, hops: u32) {
        if self.has(&key) {
            return;
        }
        if !self.missing.contains_key(&key) {
            // Nobody misses more than it would keep, whatever others say that they have.
            if self.missing.len() >= self.options.kept_max {
                return;
            }
            let due = now.saturating_add(self.options.graft_after);
            self.due.insert((due, key.clone()));
            self.missing.insert(key.clone(), Missing { due, announced: VecDeque::new() });
        }
        let missing = self.missing.get_mut(&key).expect("it was there or was inserted");
        if missing.announced.iter().all(|(peer, _)| *peer != from) {
            missing.announced.push_back((from, hops));
        }
    }

    /// Algorithm 2, upon `Timer`. What nobody is left to ask for is missed no longer.
    fn wake(&mut self, now: Time) {
        while let Some((at, key)) = self.due.first().cloned()
            && at <= now
        {
            self.due.remove(&(at, key.clone()));
            let missing = self.missing.get_mut(&key).expect("what is due is missing");
            match missing.announced.pop_front() {
                None => drop(self.missing.remove(&key)),
                Some((peer, _)) => {
                    // Later than now, or this would not end.
                    missing.due = now.saturating_add(self.options.next_after.max(Span::from_micros(1)));
                    self.due.insert((missing.due, key.clone()));
                    self.turn(&peer, Push::Eager);
                    self.send(peer, Message::Graft { key: Some(key) });
                }
            }
        }
    }

    /// Algorithm 3, and what came lately is announced.
    fn up(&mut self, peer: I) {
        if self.neighbors.insert(peer.clone(), Push::Eager).is_some() {
            return;
        }
        let told = self.kept_order.len().saturating_sub(self.options.told_max);
        for key in self.kept_order.iter().skip(told) {
            let hops = self.kept[key].hops.saturating_add(1);
            let message = Message::IHave { key: key.clone(), hops };
            self.outputs.push_back(Output::Send { to: peer.clone(), message });
        }
    }

    fn down(&mut self, peer: &I) {
        self.neighbors.remove(peer);
        for missing in self.missing.values_mut() {
            missing.announced.retain(|(announcer, _)| announcer != peer);
        }
    }

    /// Only of neighbors: others may speak while links change.
    fn turn(&mut self, peer: &I, push: Push) {
        if let Some(neighbor) = self.neighbors.get_mut(peer) {
            *neighbor = push;
        }
    }

    fn send(&mut self, to: I, message: Message<K, P>) {
        self.outputs.push_back(Output::Send { to, message });
    }

    fn check(&self) {
        assert!(self.kept.len() == self.kept_order.len(), "each broadcast is kept once");
        assert!(self.kept.len() <= self.options.kept_max, "too many broadcasts are kept");
        assert!(self.missing.len() == self.due.len(), "what is missing is waited for");
        assert!(self.missing.len() <= self.options.kept_max, "too many broadcasts are missing");
    }
}

#[cfg(test)]
mod tests;
