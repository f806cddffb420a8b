//! Waiting to be told: a site that rests has others watch for a job that it could take, or for room for one of its
//! own.
//!
//! A watch is good for one piece of news. Whoever cannot use it says so (`Seen`), and the next in line is told. On
//! links that lose messages a watch is repeated until news comes, so nothing here needs an answer of its own.

use scheduler::event::MessageKind;
use scheduler::waiting::Widths;
use scheduler::{Room, Time};

use super::BalanceTimer;
use super::{Balancer, Search};
use crate::engine::Engine;
use crate::message::{BalanceMessage, LoadReport};
use crate::mutant::Mutant;
use crate::rank::Rank;

/// What another site watches for this one.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    seq: u64,
    /// What for; none if the news has come.
    pub(super) what: Option<Room>,
}

/// What this site watches for another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watcher {
    seq: u64,
    /// What for; none if the news is told.
    width: Option<u32>,
    /// Who waits longer is told first.
    since: u64,
}

impl Balancer {
    /// The widest job that a site is to watch for: any that could run here and is narrower than what waits there.
    pub(super) fn work_to_watch_for(&self, rank: Rank) -> u32 {
        let size = self.grid.widths()[self.me.index()];
        match self.known.get(&rank).map_or(0, |known| known.load_report.narrowest) {
            0 => size,
            narrowest => size.min(narrowest - 1),
        }
    }

    /// The idle processors that a site is to watch for, with a job of this width waiting here.
    pub(super) fn room_to_watch_for(&self, rank: Rank, narrowest: u32) -> u32 {
        let idle = self.known.get(&rank).map_or(0, |known| known.load_report.idle);
        // It has room for a job and does not get it: ask for more.
        narrowest.max(idle.saturating_add(1))
    }
}

impl Engine<Balancer> {
    /// Has every other site watch for a job that could run here and is narrower than what is known to wait there.
    pub(super) fn have_work_watched(&mut self, now: Time) {
        for rank in self.family.index.to_watch(0) {
            let width = Room::Processors(self.family.work_to_watch_for(rank));
            let what = self.family.nodes.clone().unwrap_or(width);
            self.have_watched(now, rank, what);
        }
    }

    /// Has every site that is wide enough watch for room for the narrowest job that waits here.
    pub(super) fn have_room_watched(&mut self, now: Time) {
        let Some(narrowest) = self.family.own.narrowest(Widths::ALL) else { return };
        for rank in self.family.index.to_watch(narrowest) {
            let width = self.family.room_to_watch_for(rank, narrowest);
            self.have_watched(now, rank, Room::Processors(width));
        }
    }

    fn have_watched(&mut self, now: Time, rank: Rank, width: Room) {
        let balancer = &mut self.family;
        let none = Watched { seq: balancer.first, what: None };
        let watched = balancer.watched.entry(rank).or_insert(none);
        *watched = Watched { seq: watched.seq + 1, what: Some(width.clone()) };
        let seq = watched.seq;
        self.family.reindex(rank);
        if let Some(retry) = self.core.config.options.retry {
            self.timers.set(BalanceTimer::Watch(rank), now, retry);
        }
        self.core.send(rank, BalanceMessage::Watch { seq, width });
    }

    /// Repeats a watch of which no news has come.
    pub(super) fn repeat_watch(&mut self, rank: Rank) {
        match self.family.watched.get(&rank) {
            Some(Watched { seq, what: Some(width) }) => {
                let (seq, width) = (*seq, width.clone());
                self.core.send_again(rank, BalanceMessage::Watch { seq, width }, true);
            }
            _ => self.timers.cancel(BalanceTimer::Watch(rank)),
        }
    }

    pub(super) fn on_watch(&mut self, now: Time, from: Rank, seq: u64, what: Room) {
        let width = what.width();
        let balancer = &mut self.family;
        let known = balancer.watchers.get(&from);
        if known.is_some_and(|watcher| watcher.seq > seq) {
            return self.core.ignore(self.core.site_at(from), MessageKind::Watch);
        }
        let since = match known {
            Some(watcher) if watcher.width.is_some() => watcher.since,
            _ => {
                balancer.watch_count += 1;
                balancer.watch_count
            }
        };
        balancer.hears_of_nodes(from, &what);
        balancer.watchers.insert(from, Watcher { seq, width: Some(width), since });
        if !self.core.fresh {
            self.tell_watchers(now);
        }
    }

    /// Tells those who watch, longest first, at most one for each job that waits, or for each idle processor.
    pub(super) fn tell_watchers(&mut self, now: Time) {
        if self.core.has(Mutant::NewsNeverTold) {
            return;
        }
        let (idle, waiting) = (self.room_for_others(), self.family.own.len());
        let balancer = &mut self.family;
        let pulls = balancer.pulls();
        let most = if pulls { waiting } else { idle as usize };
        if most == 0 || balancer.watchers.is_empty() {
            return;
        }
        let mut told: Vec<(u64, Rank)> = Vec::new();
        let all: Vec<(Rank, Watcher)> =
            balancer.watchers.iter().map(|(&rank, &watcher)| (rank, watcher)).collect();
        for (rank, watcher) in all {
            let Some(width) = watcher.width.filter(|_| self.core.is_reachable(rank)) else { continue };
            let there = if pulls {
                self.narrowest_for(now, rank).is_some_and(|narrowest| narrowest <= width)
            } else {
                idle >= width
            };
            if there {
                told.push((watcher.since, rank));
            }
        }
        told.sort_unstable();
        told.truncate(most);
        for (_, rank) in told {
            let watcher = self.family.watchers.get_mut(&rank).expect("it was just found");
            watcher.width = None;
            let seq = watcher.seq;
            let load_report = self.load_report_for(now, rank);
            self.core.send(rank, BalanceMessage::News { seq, load_report });
        }
    }

    pub(super) fn on_news(&mut self, now: Time, from: Rank, seq: u64, load_report: LoadReport) {
        self.learn(now, from, load_report);
        if let Some(watched) = self.family.watched.get_mut(&from)
            && watched.seq == seq
        {
            watched.what = None;
            self.family.reindex(from);
            self.timers.cancel(BalanceTimer::Watch(from));
        }
        if self.core.fresh {
            self.turn(now);
        }
        if !self.uses(now, from, load_report) {
            self.core.send(from, BalanceMessage::Seen { seq });
        }
    }

    /// Acts on news at once if this site rests and can; false if somebody else should be told.
    fn uses(&mut self, now: Time, from: Rank, load_report: LoadReport) -> bool {
        let free = self.room_for_others();
        let balancer = &mut self.family;
        if balancer.search != Search::Resting || balancer.asked.is_some() || balancer.pushed.is_some() {
            return false;
        }
        if balancer.pulls() {
            let fits = load_report.narrowest > 0 && load_report.narrowest <= free;
            if fits {
                self.ask_for_work(now, from);
            }
            fits
        } else {
            self.push(now, from)
        }
    }
}
