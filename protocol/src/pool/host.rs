//! `hosted`: one elected site knows all boards, and tells owners where their jobs go.
//!
//! The host owns nothing but the index, so its loss costs nothing but time. It is replaced when it is silent while
//! something waits: of the sites that have offers by the one of the lowest id first, by the next if that is silent,
//! too.

use std::collections::BTreeMap;

use scheduler::event::MessageKind;
use scheduler::exchange::{SiteView, WaitingJob};
use scheduler::{EventKind, JobId, SiteId, Span, Time};

use super::board::{Board, Epoch, OfferId};
use super::known::Boards;
use super::{Exchange, Role, has_passed};
use crate::engine::Engine;
use crate::message::PoolMessage;
use crate::mutant::Mutant;
use crate::rank::Rank;

/// What a site knows of the host and, if it is the host, of its assignments.
#[derive(Clone, Debug)]
pub(super) struct Hosted {
    pub(super) epoch: Epoch,
    /// Assignments in flight.
    marks: BTreeMap<JobId, Mark>,
    /// By rank: what a site declined last whose board has not told so, and when that was assigned. What is believed of
    /// its processors is wrong, so nothing goes there; or the same job would at once, and come back, without an end.
    declined: BTreeMap<Rank, (OfferId, Time)>,
}

/// An assignment that was not confirmed by both boards.
#[derive(Clone, Copy, Debug)]
struct Mark {
    version: u64,
    to: Rank,
    job: WaitingJob,
    /// When the job will end by its estimate, if it started when it was assigned.
    end: Time,
    since: Time,
    /// The taker's board has answered it.
    seen: bool,
}

impl Hosted {
    /// The first host is the site of the lowest id.
    pub(super) fn first() -> Hosted {
        Hosted::of(Epoch { counter: 0, site: SiteId(1) })
    }

    fn of(epoch: Epoch) -> Hosted {
        Hosted { epoch, marks: BTreeMap::new(), declined: BTreeMap::new() }
    }

    pub(super) fn any_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Drops assignments that a board confirms: the taker has answered, and the owner lists the offer no more. Whether the board
    /// answered or confirmed any.
    pub(super) fn confirm(&mut self, rank: Rank, board: &Board, known: &Boards) -> bool {
        let mut is_new = false;
        for offer in &board.seen {
            if let Some(mark) = self.marks.get_mut(&offer.job)
                && (mark.version, mark.to) == (offer.version, rank)
            {
                is_new |= !std::mem::replace(&mut mark.seen, true);
            }
            if self.declined.get(&rank).is_some_and(|(declined, _)| declined == offer) {
                self.declined.remove(&rank);
                is_new = true;
            }
            is_new |= self.drop_confirmed(offer.job, known);
        }
        let changed = board.withdrawn.iter().map(|offer| offer.job);
        for job in changed.chain(board.offered.iter().map(|listing| listing.job.id)) {
            is_new |= self.drop_confirmed(job, known);
        }
        if board.whole {
            let jobs: Vec<JobId> = self.marks.keys().copied().collect();
            for job in jobs {
                is_new |= self.drop_confirmed(job, known);
            }
        }
        is_new
    }

    fn drop_confirmed(&mut self, job: JobId, known: &Boards) -> bool {
        let Some(mark) = self.marks.get(&job).filter(|mark| mark.is_confirmed(known.listed(job))) else {
            return false;
        };
        if !mark.seen {
            self.declined.insert(mark.to, (OfferId { job, version: mark.version }, mark.since));
        }
        self.marks.remove(&job);
        true
    }
}

impl Mark {
    /// Whether the owner's listing and the taker's answer leave nothing to wait for.
    fn is_confirmed(&self, listed: Option<u64>) -> bool {
        match listed {
            None => self.seen,
            Some(version) => version > self.version,
        }
    }
}

impl Exchange {
    /// Whether this epoch is the one followed, and this site its host.
    pub(super) fn is_host(&self, epoch: Epoch, site: SiteId) -> bool {
        matches!(&self.role, Role::Hosted(hosted) if hosted.epoch == epoch && epoch.site == site)
    }
}

impl Engine<Exchange> {
    /// Who is host, as this site believes.
    pub(super) fn epoch(&mut self) -> Epoch {
        match &self.family.role {
            Role::Hosted(hosted) => hosted.epoch,
            Role::Gossip(_) => Hosted::first().epoch,
        }
    }

    fn hosted(&mut self) -> &mut Hosted {
        match &mut self.family.role {
            Role::Hosted(hosted) => hosted,
            Role::Gossip(_) => unreachable!("only called where there is a host"),
        }
    }

    /// Decides for all sites, and tells the owners.
    pub(super) fn settle_hosted(&mut self, now: Time) {
        let (rank, site) = (self.core.rank, self.core.config.site);
        let takes_none = self.core.is_leaving() || self.core.must_ask_first();
        let exchange = &mut self.family;
        let Role::Hosted(hosted) = &mut exchange.role else { unreachable!("checked by the caller") };
        if hosted.epoch.site != site {
            return;
        }
        let known = &mut exchange.known;
        let free = known.sites.rows().map(|heard| heard.view.free).max().unwrap_or(0);
        if !known.any_within(free.max(exchange.site.free)) {
            return;
        }
        let mut views: Vec<SiteView> = known.sites.rows().map(|heard| heard.view.clone()).collect();
        views[rank.index()] = exchange.site.clone();
        if takes_none {
            views[rank.index()].close();
        }
        for mark in hosted.marks.values().filter(|mark| !mark.seen) {
            let view = &mut views[mark.to.index()];
            view.put(&mark.job);
            view.releases.insert(mark.end, mark.job.processors);
        }
        for (other, view) in views.iter_mut().enumerate() {
            let other = Rank::at(other);
            if known.is_silent(other) || hosted.declined.contains_key(&other) {
                view.close();
            }
        }
        let lines = known.decide(&exchange.rules, now, &mut views);
        let epoch = hosted.epoch;
        for line in &lines {
            let (job, version) = (line.offer.job, line.offer.version);
            let end = now.saturating_add(job.requested);
            let mark = Mark { version, to: line.to, job, end, since: now, seen: false };
            hosted.marks.insert(job.id, mark);
            known.exclude(line.offer.id());
        }
        for line in lines {
            if line.offer.owner == rank {
                self.assigned(now, line.offer.id(), line.to);
            } else {
                let to = self.core.site_at(line.to);
                self.core.send(line.offer.owner, PoolMessage::Assign { offer: line.offer.id(), to, epoch });
            }
        }
    }

    /// Compares what another site believes of the host; whether its board is of use here.
    pub(super) fn hear_epoch(&mut self, now: Time, other: Rank, epoch: Epoch) -> bool {
        let site = self.core.config.site;
        let Role::Hosted(hosted) = &self.family.role else { return true };
        let mine = hosted.epoch;
        if !self.is_valid(epoch) {
            return false;
        }
        if self.core.has(Mutant::BoardWithoutEpoch) {
            return mine.site == site;
        }
        if self.is_newer(epoch, mine) {
            self.follow(now, epoch);
        } else if self.is_newer(mine, epoch) {
            self.core.send(other, PoolMessage::Host { epoch: mine });
        }
        self.hosted().epoch.site == site
    }

    /// A site says who is host.
    pub(super) fn on_host(&mut self, now: Time, other: Rank, epoch: Epoch) {
        if matches!(self.family.role, Role::Gossip(_)) || !self.is_valid(epoch) {
            return self.core.ignore(self.core.site_at(other), MessageKind::Host);
        }
        let mine = self.epoch();
        if self.is_newer(epoch, mine) {
            return self.follow(now, epoch);
        }
        if self.is_newer(mine, epoch) {
            return self.core.send(other, PoolMessage::Host { epoch: mine });
        }
        if epoch.site == self.core.site_at(other) && epoch.site == mine.site {
            self.family.sign = now;
            self.send_whole(now, other, false);
        }
    }

    fn is_valid(&self, epoch: Epoch) -> bool {
        epoch.site.0 != 0 && epoch.site.index() < self.core.config.grid.len()
    }

    fn is_newer(&self, one: Epoch, other: Epoch) -> bool {
        if self.core.has(Mutant::EpochIsNumber) { one.counter > other.counter } else { one > other }
    }

    /// Follows a newer host and sends it the whole board.
    fn follow(&mut self, now: Time, epoch: Epoch) {
        self.change_host(now, epoch);
        if epoch.site != self.core.config.site {
            let host = self.core.rank_of(epoch.site);
            self.send_whole(now, host, false);
        }
    }

    /// Becomes host: nobody else answers.
    fn take_over(&mut self, now: Time) {
        let site = self.core.config.site;
        let counter = self.epoch().counter + 1;
        self.change_host(now, Epoch { counter, site });
        self.announce(now);
    }

    fn change_host(&mut self, now: Time, epoch: Epoch) {
        // What is still to be told goes to the former host; the new one gets everything.
        self.pool_publish();
        let (rank, site, grid) = (self.core.rank, self.core.config.site, self.core.config.grid.clone());
        let exchange = &mut self.family;
        exchange.role = Role::Hosted(Hosted::of(epoch));
        exchange.known = Boards::nothing(&grid, rank, &exchange.rules);
        exchange.sign = now;
        exchange.unsettled = false;
        for away in self.core.view.unreachable().filter(|&away| away != rank) {
            self.family.known.set_silent(away, true);
        }
        if epoch.site == site {
            self.note_own_board();
        }
        self.core.event(EventKind::Followed { host: epoch.site, counter: epoch.counter });
    }

    /// As after a start: the first host is host, until somebody says who is since.
    pub(super) fn resume_hosted(&mut self, now: Time) {
        let epoch = self.epoch();
        if epoch.site == self.core.config.site {
            self.note_own_board();
            self.announce(now);
        } else {
            let host = self.core.rank_of(epoch.site);
            self.send_whole(now, host, false);
        }
    }

    /// The host knows its own board like those of others. An offer that is noted has been published: of one that nobody
    /// was told of nobody is told that it is gone.
    fn note_own_board(&mut self) {
        self.pool_publish();
        let board = self.family.whole_board();
        self.note_board(self.core.rank, &board);
    }

    fn announce(&mut self, _now: Time) {
        let epoch = self.epoch();
        for other in self.core.view.others() {
            self.core.send_again(other, PoolMessage::Host { epoch }, true);
        }
    }

    /// The host says that it is, and forgets assignments that nobody confirms; others send their boards again, or
    /// replace a host that is silent.
    pub(super) fn refresh_hosted(&mut self, now: Time, refresh: Span, patience: Span) {
        let (site, exchange) = (self.core.config.site, &mut self.family);
        let Role::Hosted(hosted) = &mut exchange.role else { return };
        let host = hosted.epoch.site;
        if host == site {
            let old: Vec<OfferId> = hosted
                .marks
                .iter()
                .filter(|(_, mark)| has_passed(now, mark.since, patience))
                .map(|(&job, mark)| OfferId { job, version: mark.version })
                .collect();
            let declined = hosted.declined.len();
            hosted.declined.retain(|_, (_, since)| !has_passed(now, *since, patience));
            exchange.unsettled |= !old.is_empty() || hosted.declined.len() < declined;
            for offer in old {
                hosted.marks.remove(&offer.job);
                exchange.known.include(offer);
            }
            // What another site listed meanwhile and no longer has.
            self.note_own_board();
            return self.announce(now);
        }
        // The others, lowest id first, take their turns to replace it.
        let before = (1..site.0).filter(|&id| SiteId(id) != host).count();
        let turn = refresh.saturating_mul(i64::try_from(before).unwrap_or(i64::MAX));
        if has_passed(now, exchange.sign, patience + turn) {
            self.take_over(now);
        } else if has_passed(now, exchange.whole_at, refresh) {
            let host = self.core.rank_of(host);
            self.send_whole(now, host, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use scheduler::strategy::PoolAlgorithm;
    use scheduler::{Grid, Pool};

    use super::super::board::Listing;
    use super::*;
    use crate::fixtures::job;

    const OWNER: Rank = Rank(0);
    const TAKER: Rank = Rank(1);

    /// A host of two sites, and a job of one that was assigned to the other.
    fn assigned() -> (Hosted, Boards, OfferId) {
        let grid = Grid::of_sizes(&[4, 8]).unwrap();
        let mut known = Boards::idle(&grid, OWNER, &Pool::new(PoolAlgorithm::Easy));
        let offer = OfferId { job: JobId(1), version: 1 };
        known.apply(OWNER, &offering(1));
        known.exclude(offer);
        let mut hosted = Hosted::first();
        let end = Time::from_secs(1);
        let job = WaitingJob::new(&job(1, 6));
        let mark = Mark { version: 1, to: TAKER, job, end, since: Time::ZERO, seen: false };
        hosted.marks.insert(offer.job, mark);
        (hosted, known, offer)
    }

    fn offering(version: u64) -> Board {
        let job = WaitingJob::new(&job(1, 6));
        let before = OfferId { job: JobId(1), version: version - 1 };
        let offered = vec![Listing { job, version }];
        Board { revision: version, offered, withdrawn: vec![before], ..Board::default() }
    }

    fn answering(offer: OfferId) -> Board {
        Board { revision: 1, seen: vec![offer], ..Board::default() }
    }

    fn heard(hosted: &mut Hosted, known: &mut Boards, rank: Rank, board: &Board) {
        known.apply(rank, board);
        hosted.confirm(rank, board, known);
    }

    #[test]
    fn who_declines_gets_nothing_until_its_board_says_so() {
        let (mut hosted, mut known, offer) = assigned();
        heard(&mut hosted, &mut known, OWNER, &offering(2));
        assert!(!hosted.any_marks(), "the job came back");
        assert!(hosted.declined.contains_key(&TAKER), "nothing is known why");
        let other = OfferId { job: JobId(2), version: 1 };
        heard(&mut hosted, &mut known, TAKER, &answering(other));
        assert!(hosted.declined.contains_key(&TAKER), "that is of another job");
        heard(&mut hosted, &mut known, TAKER, &answering(offer));
        assert!(hosted.declined.is_empty());
    }

    #[test]
    fn a_decline_that_was_told_first_holds_nobody_up() {
        let (mut hosted, mut known, offer) = assigned();
        heard(&mut hosted, &mut known, TAKER, &answering(offer));
        heard(&mut hosted, &mut known, OWNER, &offering(2));
        assert!(!hosted.any_marks() && hosted.declined.is_empty());
    }

    #[test]
    fn a_job_that_was_taken_holds_nobody_up() {
        let (mut hosted, mut known, offer) = assigned();
        let gone = Board { revision: 2, withdrawn: vec![offer], ..Board::default() };
        heard(&mut hosted, &mut known, OWNER, &gone);
        assert!(hosted.any_marks(), "whether it came there is not known");
        heard(&mut hosted, &mut known, TAKER, &answering(offer));
        assert!(!hosted.any_marks() && hosted.declined.is_empty());
    }
}
