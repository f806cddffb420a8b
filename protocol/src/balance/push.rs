//! Giving jobs away that cannot start here at once, and taking those that can start here.

use scheduler::event::{DeclineReason, GrantCause};
use scheduler::waiting::Widths;
use scheduler::{Amount, JobSpec, Room, Time};

use std::collections::BTreeSet;

use super::{Balancer, Search};
use crate::core::Reason;
use crate::engine::Engine;
use crate::handover::Answer;
use crate::message::Transfer;
use crate::message::jobs::TRANSFERS_MAX;
use crate::rank::Rank;

/// Jobs that were given away and not all answered.
#[derive(Clone, Debug)]
pub(super) struct Pushed {
    target: Rank,
    open: BTreeSet<u64>,
    accepted: bool,
}

impl Balancer {
    /// A transfer means nothing any more: a push does not wait for its answer.
    pub(super) fn forget_pushed(&mut self, to: Rank, number: u64) {
        if let Some(pushed) = self.pushed.as_mut().filter(|pushed| pushed.target == to) {
            pushed.open.remove(&number);
            if pushed.open.is_empty() {
                self.pushed = None;
            }
        }
    }
}

impl Engine<Balancer> {
    /// Turns to the next site if jobs wait here.
    pub(super) fn look_for_room(&mut self, now: Time) {
        if self.family.pushed.is_some() {
            // Also if nothing waits: what is under way may come back, and then the search goes on.
            return;
        }
        let narrowest = self.family.own.narrowest(Widths::ALL).filter(|_| !self.starts_all_soon());
        let Some(narrowest) = narrowest else {
            self.family.search = Search::Content;
            return;
        };
        // Wide enough for one job at least.
        let first = self.core.config.grid.home_rank(narrowest).expect("a job that waits fits its site");
        let first = Rank::at(first);
        if self.core.view.others().all(|rank| rank < first) {
            return;
        }
        while let Some(left) = self.searching() {
            let target = if left == 0 { None } else { self.choose(first) };
            let Some(target) = target else {
                self.rest(now);
                break;
            };
            if self.push(now, target) {
                return;
            }
            // Nothing is worth giving to that site.
            self.refused();
        }
        if self.family.sleep.is_none() {
            let mut roomy = self.family.index.roomy(narrowest);
            roomy.retain(|&rank| self.core.is_reachable(rank));
            for target in roomy {
                if self.push(now, target) {
                    return;
                }
            }
            self.have_room_watched(now);
        }
    }

    /// Gives jobs to a site; false if none is worth it or the site answers too little.
    pub(super) fn push(&mut self, now: Time, target: Rank) -> bool {
        let size = self.core.processors_of(target);
        let known = self.family.known.get(&target).map(|known| known.load_report);
        self.family.tried.insert(target);
        if !self.core.is_reachable(target) {
            return false;
        }
        // Rules that know nothing of a site give what could fit it at most.
        let free = match known {
            Some(load_report) if load_report.idle > 0 => load_report.idle.min(size),
            _ => size,
        };
        let room = self.core.room_at(target);
        if room == 0 {
            return false;
        }
        let worth = self.worth(now, target);
        let mut jobs = self.take_for(target, Room::Processors(free), room, worth);
        // One message, so that the receiver decides on all at once.
        let limit = self.core.config.options.batch.min(room).min(TRANSFERS_MAX);
        if let Some(fitting) = jobs.iter().position(|job| job.processors <= free)
            && fitting >= limit
        {
            // A half is taken if one of its jobs can start: that one goes along.
            jobs.swap(limit - 1, fitting);
        }
        for job in jobs.split_off(jobs.len().min(limit)) {
            self.family.insert(job);
        }
        if jobs.is_empty() {
            return false;
        }
        let work: u128 = jobs.iter().map(super::area).sum();
        let width: u32 = jobs.iter().map(|job| job.processors).sum();
        let jobs = jobs.into_iter().map(|job| self.family.described(job)).collect();
        let transfers = self.grant_all(now, target, jobs, Reason::of(GrantCause::Push));
        let open = transfers.iter().map(|transfer| transfer.number).collect();
        self.family.pushed = Some(Pushed { target, open, accepted: false });
        if let Some(known) = self.family.known.get_mut(&target) {
            // Until it says something newer, count what it gets.
            let load_report = &mut known.load_report;
            load_report.work =
                load_report.work.saturating_add(u64::try_from(work / 1_000_000).unwrap_or(u64::MAX));
            load_report.idle = load_report.idle.saturating_sub(width);
            self.family.reindex(target);
        }
        self.give(now, target, transfers, None);
        true
    }

    /// Answers to transfers came. Who had too many of them open may be told of work again; when all of a push are
    /// answered, the search goes on or begins afresh.
    pub(super) fn has_replied(&mut self, now: Time, from: Rank, accepted: &[u64], declined: &[u64]) {
        let balancer = &mut self.family;
        if balancer.pulls() {
            return self.tell_watchers(now);
        }
        let Some(pushed) = balancer.pushed.as_mut().filter(|pushed| pushed.target == from) else {
            // A limit may have kept jobs here.
            return self.turn(now);
        };
        for number in accepted {
            pushed.accepted |= pushed.open.remove(number);
        }
        for number in declined {
            pushed.open.remove(number);
        }
        if !pushed.open.is_empty() {
            return;
        }
        let accepted = pushed.accepted;
        balancer.pushed = None;
        if accepted {
            self.progress();
        } else {
            if let Some(known) = balancer.known.get_mut(&from) {
                known.load_report.idle = 0;
                balancer.reindex(from);
            }
            self.refused();
        }
        self.turn(now);
    }

    /// A site is not there: no answer of it is waited for.
    pub(super) fn gives_up(&mut self, rank: Rank) {
        let pushed = self.family.pushed.take_if(|pushed| pushed.target == rank).is_some();
        if self.give_up_ask(rank) || pushed {
            self.refused();
        }
    }

    /// The idle processors that pushed jobs may take. A half goes into the queue if one of its jobs fits.
    pub(super) fn room_for_pushed(&mut self, transfers: &[Transfer]) -> bool {
        let free = self.room();
        let halves = self.family.rules.amount == Amount::Half;
        halves && transfers.iter().any(|transfer| transfer.job.processors <= free)
    }

    /// With a margin: whether a pushed job that has to wait would start here, by the estimate of `margin.rs`, before the
    /// margin and the time to send it back and get it again are over. Declining it would cost more than keeping it.
    fn starts_before_it_is_back(&mut self, now: Time, from: Rank, job: JobSpec) -> bool {
        if self.core.config.options.margin.is_none() || job.processors > self.core.processors() {
            return false;
        }
        self.family.insert(job);
        let late = self.worth(now, from).holds(&job);
        self.family.remove(&job);
        !late
    }

    /// A site that asked takes what comes; one that did not takes what can start at once, or the half of which one
    /// job can.
    pub(super) fn take_given(&mut self, now: Time, from: Rank, transfer: &Transfer, room: bool) -> Answer {
        let job = transfer.job;
        if let Some(answer) = self.take_known(now, from, transfer) {
            return answer;
        }
        if self.core.is_leaving() {
            // It would be given away again at once.
            return self.core.decline(self.core.site_at(from), transfer, DeclineReason::DoesNotFit);
        }
        if self.family.pulls() || room {
            self.take_in(now, from, transfer);
            return Answer::Accepted;
        }
        if job.processors <= self.room() {
            // Nothing that waits here may start, so the job is the first that does.
            self.take_in(now, from, transfer);
            self.family.extra = self.family.extra.saturating_sub(job.processors);
            self.take_and_start(now, job);
            return Answer::Accepted;
        }
        if self.starts_before_it_is_back(now, from, job) {
            self.take_in(now, from, transfer);
            // What came with it must not start where this one has its reservation.
            self.reserve(now);
            return Answer::Accepted;
        }
        let reason =
            if self.family.own.is_empty() { DeclineReason::DoesNotFit } else { DeclineReason::OwnWork };
        self.core.decline(self.core.site_at(from), transfer, reason)
    }
}
