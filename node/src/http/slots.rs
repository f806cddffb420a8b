//! Places for connections: who has one, and who gives his up when all are taken.
//!
//! A place is held for as long as its connection is open. When there is none left for a new connection, the one that
//! has been idle longest is closed: first of those that never showed the token, then of those that did. A connection
//! whose request is being worked on keeps its place. So nobody shuts others out by being connected.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// All places of one listener.
#[derive(Debug)]
pub(super) struct Slots {
    max: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// By the number of the connection.
    by_number: BTreeMap<u64, Sitter>,
    next: u64,
    /// Counts changes: what changed last has been idle shortest.
    changes: u64,
}

#[derive(Debug)]
struct Sitter {
    /// Requests that are being worked on.
    requests: usize,
    /// Whether it has shown the token.
    trusted: bool,
    /// Since which change it is idle.
    since: u64,
    leave: Arc<Notify>,
}

/// The place of one connection; free again when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    number: u64,
    leave: Arc<Notify>,
}

/// A request that is being worked on, until this is dropped.
#[derive(Debug)]
pub struct Work {
    slot: Arc<Slot>,
}

impl Slots {
    /// For so many connections at once.
    pub(super) fn new(max: usize) -> Arc<Slots> {
        Arc::new(Slots { max, taken: Mutex::default() })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Nothing below panics halfway through a change.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection, and whether another had to give up its own; none if all are at work.
    pub(super) fn take(self: &Arc<Slots>) -> (Option<Arc<Slot>>, bool) {
        let mut taken = self.taken();
        let full = taken.by_number.len() >= self.max;
        if full {
            let idle = taken.by_number.iter().filter(|(_, sitter)| sitter.requests == 0);
            let longest = idle.min_by_key(|(_, sitter)| (sitter.trusted, sitter.since));
            let Some(number) = longest.map(|(number, _)| *number) else { return (None, false) };
            taken.remove(number);
        }
        let number = taken.next;
        taken.next += 1;
        let leave = Arc::new(Notify::new());
        let since = taken.change();
        taken
            .by_number
            .insert(number, Sitter { requests: 0, trusted: false, since, leave: Arc::clone(&leave) });
        (Some(Arc::new(Slot { slots: Arc::clone(self), number, leave })), full)
    }

    /// Closes the idle connections of those that never showed the token: the node ends, and does not wait for them.
    pub(super) fn close_strangers(&self) {
        let mut taken = self.taken();
        let idle = taken.by_number.iter().filter(|(_, sitter)| sitter.requests == 0 && !sitter.trusted);
        let idle: Vec<u64> = idle.map(|(number, _)| *number).collect();
        idle.into_iter().for_each(|number| taken.remove(number));
    }
}

impl Taken {
    fn change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    fn remove(&mut self, number: u64) {
        if let Some(sitter) = self.by_number.remove(&number) {
            sitter.leave.notify_one();
        }
    }
}

impl Slot {
    /// Resolves when the connection has to go.
    pub(super) async fn lost(&self) {
        self.leave.notified().await;
    }

    /// A request begins. None if the connection has to go: then the request must not be carried out.
    pub(super) fn work(self: &Arc<Slot>) -> Option<Work> {
        let mut taken = self.slots.taken();
        taken.by_number.get_mut(&self.number)?.requests += 1;
        Some(Work { slot: Arc::clone(self) })
    }

    /// The connection has shown the token.
    pub(super) fn trust(&self) {
        if let Some(sitter) = self.slots.taken().by_number.get_mut(&self.number) {
            sitter.trusted = true;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.taken().by_number.remove(&self.number);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut taken = self.slot.slots.taken();
        let now = taken.change();
        if let Some(sitter) = taken.by_number.get_mut(&self.slot.number) {
            sitter.requests -= 1;
            sitter.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn take(slots: &Arc<Slots>) -> Arc<Slot> {
        slots.take().0.expect("there is a place")
    }

    fn is_lost(slot: &Slot) -> bool {
        slot.lost().now_or_never().is_some()
    }

    #[test]
    fn the_one_that_is_idle_longest_gives_up_its_place() {
        let slots = Slots::new(3);
        let [first, second, third] = [(); 3].map(|()| take(&slots));
        drop(first.work());
        let (fourth, replaced) = slots.take();
        assert!(replaced && fourth.is_some());
        assert!(is_lost(&second), "the first has asked something since");
        assert!(second.work().is_none(), "what it asks now is not done");
        assert!(!is_lost(&first) && !is_lost(&third));

        drop(first);
        assert!(!slots.take().1, "there is a free place");
    }

    #[test]
    fn those_without_the_token_go_first_and_those_at_work_stay() {
        let slots = Slots::new(3);
        let [trusted, stranger, working] = [(); 3].map(|()| take(&slots));
        trusted.trust();
        let work = working.work();
        assert!(work.is_some());

        let newcomer = take(&slots);
        assert!(is_lost(&stranger) && !is_lost(&trusted), "the trusted one has been idle longer");
        let next = take(&slots);
        assert!(is_lost(&newcomer));
        next.trust();
        let last = take(&slots);
        assert!(is_lost(&trusted), "of two with the token the one that is idle longer");

        let (of_next, of_last) = (next.work(), last.work());
        assert!(of_next.is_some() && of_last.is_some());
        assert!(slots.take().0.is_none(), "all are at work");
        drop(of_next);
        assert!(slots.take().0.is_some() && is_lost(&next));
        assert!(!is_lost(&working) && !is_lost(&last));
        drop(work);
    }

    #[test]
    fn a_place_is_free_again_when_its_connection_ends() {
        let slots = Slots::new(1);
        for _ in 0..3 {
            let slot = take(&slots);
            let work = slot.work();
            assert!(slots.take().0.is_none());
            drop((slot, work));
        }
    }

    #[test]
    fn the_end_does_not_wait_for_strangers_that_ask_nothing() {
        let slots = Slots::new(3);
        let [stranger, trusted, working] = [(); 3].map(|()| take(&slots));
        trusted.trust();
        let work = working.work();
        slots.close_strangers();
        assert!(is_lost(&stranger) && stranger.work().is_none());
        assert!(!is_lost(&trusted) && !is_lost(&working));
        drop(work);
    }
}
