//! Whose turn it is to be simulated: of each page only what it asked last, and few at once.
//!
//! A page says who it is and the how-manyth request this is, in the header `x-play: PAGE/NUMBER`. Pages of others cannot send
//! that header without asking first (CORS), and are not answered, so that no page of somebody else keeps this machine busy.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use experiments::interrupt::Interrupt;
use experiments::latest::keep;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Simulations at once: one for who looks, and one for somebody else.
const AT_ONCE: usize = 2;
/// Pages that are remembered; of one that is forgotten, what it asks next counts as its first.
const PAGES_MAX: usize = 64;

/// Who asks, and for the how-manyth time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    page: u64,
    number: u64,
}

impl Asked {
    /// By the value of the header.
    pub(super) fn parse(header: &str) -> Option<Asked> {
        let (page, number) = header.split_once('/')?;
        Some(Asked { page: page.parse().ok()?, number: number.parse().ok()? })
    }
}

/// All turns.
#[derive(Debug)]
pub(super) struct Turns {
    latest: Mutex<VecDeque<(Asked, Interrupt)>>,
    places: Arc<Semaphore>,
}

/// The turn of the latest request of a page, until another takes it. Dropping it ends the simulation.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) interrupt: Interrupt,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.interrupt.set();
    }
}

impl Turns {
    pub(super) fn new() -> Turns {
        Turns { latest: Mutex::default(), places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Takes the turn of a page, and ends what it asked before; none if it has asked something later already.
    pub(super) fn take(&self, asked: Asked) -> Option<Turn> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = latest.iter().position(|(before, _)| before.page == asked.page) {
            if latest[place].0.number >= asked.number {
                return None;
            }
            if let Some((_, interrupt)) = latest.remove(place) {
                interrupt.set();
            }
        }
        let interrupt = Interrupt::default();
        keep(&mut latest, PAGES_MAX, (asked, interrupt.clone()));
        Some(Turn { interrupt })
    }

    /// Waits for a place among those that are simulated; none if the turn was lost meanwhile.
    pub(super) async fn place(&self, turn: &Turn) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        (!turn.interrupt.is_set()).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(header: &str) -> Asked {
        Asked::parse(header).unwrap()
    }

    #[test]
    fn the_newest_request_of_a_page_ends_the_one_before() {
        let turns = Turns::new();
        let first = turns.take(asked("7/1")).unwrap();
        let other = turns.take(asked("8/1")).unwrap();
        assert!(!first.interrupt.is_set());
        let second = turns.take(asked("7/3")).unwrap();
        assert!(first.interrupt.is_set());
        assert!(!second.interrupt.is_set() && !other.interrupt.is_set());
    }

    /// Requests may overtake each other on their way.
    #[test]
    fn what_was_asked_before_the_newest_gets_no_turn() {
        let turns = Turns::new();
        let newest = turns.take(asked("7/3")).unwrap();
        assert!(turns.take(asked("7/2")).is_none());
        assert!(turns.take(asked("7/3")).is_none());
        assert!(!newest.interrupt.is_set());
    }

    #[test]
    fn who_goes_away_ends_what_was_asked() {
        let turns = Turns::new();
        let turn = turns.take(asked("7/1")).unwrap();
        let interrupt = turn.interrupt.clone();
        drop(turn);
        assert!(interrupt.is_set());
    }

    #[test]
    fn only_so_many_pages_are_remembered() {
        let turns = Turns::new();
        for page in 0..3 * PAGES_MAX as u64 {
            turns.take(Asked { page, number: 1 }).unwrap();
        }
        assert_eq!(turns.latest.lock().unwrap().len(), PAGES_MAX);
    }

    #[test]
    fn a_header_is_two_numbers() {
        assert_eq!(Asked::parse("12/3"), Some(Asked { page: 12, number: 3 }));
        for wrong in ["", "12", "a/3", "12/", "12/-1", "1/2/3"] {
            assert_eq!(Asked::parse(wrong), None, "{wrong}");
        }
    }
}
