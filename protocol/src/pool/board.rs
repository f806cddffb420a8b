//! A site's public record: what it can take and what it offers. Sent as differences, each naming its revision, or
//! whole; applied in the order of revisions whatever the order of arrival.

use std::collections::BTreeMap;

use scheduler::exchange::{SiteView, WaitingJob};
use scheduler::{Capacity, JobId, Room, SiteId, Time};
use serde::{Deserialize, Serialize};

use crate::message::processors::Release;

/// Most entries in each list of one board. A difference with more is cut into several; a whole board lists the
/// first so many offers and leaves the others for the next.
pub const BOARD_MAX: usize = 2048;

/// Differences of one site kept until those before them arrive; beyond that the site is asked for the whole.
pub const PENDING_MAX: usize = 256;

/// Answers to grants that a whole board repeats.
pub const SEEN_MAX: usize = 256;

/// Who is host, as a site believes. The higher is the newer; of two elected at once one is higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Epoch {
    /// Counts the hosts.
    pub counter: u64,
    /// The site that is host.
    pub site: SiteId,
}

/// One offer of a job by its owner. A job that comes back is offered under the next version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OfferId {
    /// The job that its owner offers.
    pub job: JobId,
    /// Counts the offers of this job by this owner, from 1.
    pub version: u64,
}

/// An offer as a board lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Listing {
    /// The job as others need it to decide.
    pub job: WaitingJob,
    /// As in [`OfferId`].
    pub version: u64,
}

impl Listing {
    /// The name of the offer.
    pub fn id(&self) -> OfferId {
        OfferId { job: self.job.id, version: self.version }
    }
}

/// A site's public record, or what changed of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Board {
    /// Counts the changes of this record, from 1.
    pub revision: u64,
    /// Everything, and not only what changed since the revision before.
    pub whole: bool,
    /// What can be given to jobs of the pool.
    pub free: Room,
    /// The waiting job that the site keeps.
    pub kept: Option<WaitingJob>,
    /// Estimated ends that came. Only EASY needs them.
    pub busy: Vec<Release>,
    /// Estimated ends that are gone.
    pub idle: Vec<Release>,
    /// Offers that came.
    pub offered: Vec<Listing>,
    /// Offers that are gone.
    pub withdrawn: Vec<OfferId>,
    /// Offers that the site answered: taken or declined.
    pub seen: Vec<OfferId>,
}

impl Board {
    /// The longest of its lists.
    pub fn longest(&self) -> usize {
        [self.busy.len(), self.idle.len(), self.offered.len(), self.withdrawn.len(), self.seen.len()]
            .into_iter()
            .max()
            .unwrap_or(0)
    }

    /// Whether it says anything of offers or answers, not only of processors.
    pub(super) fn tells_of_offers(&self) -> bool {
        !(self.offered.is_empty() && self.withdrawn.is_empty() && self.seen.is_empty())
    }

    pub(super) fn lists_nothing(&self) -> bool {
        self.longest() == 0
    }

    /// A running job came.
    pub(super) fn add_busy(&mut self, release: Release) {
        match self.idle.iter().position(|gone| *gone == release) {
            Some(place) => drop(self.idle.swap_remove(place)),
            None => self.busy.push(release),
        }
    }

    /// A running job is gone.
    pub(super) fn add_idle(&mut self, release: Release) {
        match self.busy.iter().position(|come| *come == release) {
            Some(place) => drop(self.busy.swap_remove(place)),
            None => self.idle.push(release),
        }
    }

    /// An offer is gone; if nobody was told of it, nobody need be told that it is gone.
    pub(super) fn withdraw(&mut self, offer: OfferId) {
        match self.offered.iter().position(|listing| listing.id() == offer) {
            Some(place) => drop(self.offered.remove(place)),
            None => self.withdrawn.push(offer),
        }
    }

    /// Without what is beyond [`BOARD_MAX`].
    pub(super) fn cut_to_limit(self) -> Board {
        let mut rest = self;
        let (revision, whole, free, kept) =
            (rest.revision, rest.whole, std::mem::take(&mut rest.free), rest.kept);
        Board { revision, whole, free, kept, ..rest.cut() }
    }

    /// Cuts off the first entries of each list, at most [`BOARD_MAX`], as a board of its own.
    pub(super) fn cut(&mut self) -> Board {
        fn head<T>(list: &mut Vec<T>) -> Vec<T> {
            let rest = list.split_off(list.len().min(BOARD_MAX));
            std::mem::replace(list, rest)
        }
        Board {
            busy: head(&mut self.busy),
            idle: head(&mut self.idle),
            offered: head(&mut self.offered),
            withdrawn: head(&mut self.withdrawn),
            seen: head(&mut self.seen),
            ..Board::default()
        }
    }
}

/// What a decider knows of one site.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// Processors and kept job, as the newest revision says.
    pub(super) view: SiteView,
    /// When the site last said anything.
    pub(super) at: Time,
    /// The newest revision that was applied; none if nothing is known.
    revision: Option<u64>,
    /// Differences that came before those they build on.
    pending: BTreeMap<u64, Board>,
    /// It was asked for the whole since the last one came.
    pub(super) asked: bool,
}

impl Heard {
    /// A site of which nothing was heard and that is believed to be idle.
    pub(super) fn idle(capacity: Capacity) -> Heard {
        Heard {
            view: SiteView::on(capacity),
            at: Time::from_micros(i64::MIN),
            revision: Some(0),
            pending: BTreeMap::new(),
            asked: false,
        }
    }

    /// A site of which nothing is known.
    pub(super) fn unknown(capacity: Capacity) -> Heard {
        let mut heard = Heard::idle(capacity);
        heard.view.close();
        heard.revision = None;
        heard
    }

    /// The boards that can be applied now that this one came, in order.
    pub(super) fn receive(&mut self, board: Board) -> Vec<Board> {
        if self.revision.is_some_and(|revision| board.revision <= revision) {
            return Vec::new();
        }
        if !board.whole && self.revision != Some(board.revision - 1) {
            self.pending.insert(board.revision, board);
            return Vec::new();
        }
        self.asked &= !board.whole;
        let mut revision = board.revision;
        let mut ready = vec![board];
        self.pending = self.pending.split_off(&(revision + 1));
        while let Some(next) = self.pending.remove(&(revision + 1)) {
            revision += 1;
            ready.push(next);
        }
        self.revision = Some(revision);
        ready
    }

    /// Whether a board is missing before one that came.
    pub(super) fn has_gap(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether more than [`PENDING_MAX`] boards waited for one before them. If so they were dropped.
    pub(super) fn overflowed(&mut self) -> bool {
        let overflow = self.pending.len() > PENDING_MAX;
        if overflow {
            self.pending.clear();
        }
        overflow
    }

    /// Takes over what a board says of processors.
    pub(super) fn apply(&mut self, board: &Board) {
        if board.whole {
            self.view.releases = board.busy.iter().map(|release| (release.at, release.processors)).collect();
        } else {
            for release in &board.idle {
                self.view.releases.remove(release.at, release.processors);
            }
            for release in &board.busy {
                self.view.releases.insert(release.at, release.processors);
            }
        }
        match &board.free {
            Room::Processors(free) => self.view.free = (*free).min(self.view.processors),
            nodes => self.view.has(nodes.clone()),
        }
        self.view.kept = board.kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(revision: u64) -> Board {
        Board { revision, ..Board::default() }
    }

    fn revisions(boards: &[Board]) -> Vec<u64> {
        boards.iter().map(|board| board.revision).collect()
    }

    #[test]
    fn differences_are_applied_in_order_and_once() {
        let mut heard = Heard::idle(4.into());
        assert_eq!(revisions(&heard.receive(difference(2))), [0u64; 0]);
        assert_eq!(revisions(&heard.receive(difference(3))), [0u64; 0]);
        assert!(heard.has_gap());
        assert_eq!(revisions(&heard.receive(difference(1))), [1, 2, 3]);
        assert!(!heard.has_gap());
        assert_eq!(revisions(&heard.receive(difference(2))), [0u64; 0]);
    }

    #[test]
    fn a_whole_board_needs_nothing_before_it_and_what_follows_is_kept() {
        let mut heard = Heard::idle(4.into());
        assert!(heard.receive(difference(9)).is_empty());
        let whole = Board { whole: true, ..difference(8) };
        assert_eq!(revisions(&heard.receive(whole.clone())), [8, 9]);
        assert!(heard.receive(whole).is_empty(), "a late copy");
    }

    #[test]
    fn too_many_differences_ahead_are_dropped() {
        let mut heard = Heard::idle(4.into());
        for revision in 2..PENDING_MAX as u64 + 3 {
            assert!(heard.receive(difference(revision)).is_empty());
        }
        assert!(heard.overflowed());
        assert!(!heard.has_gap());
    }

    #[test]
    fn what_came_and_went_before_it_was_told_is_not_told() {
        let mut news = Board::default();
        let release = Release { at: Time::from_secs(4), processors: 2 };
        news.add_busy(release);
        news.add_idle(release);
        assert!(news.lists_nothing());
        news.add_idle(release);
        news.add_busy(release);
        assert!(news.lists_nothing());
    }
}
