//! Which sites a resting one turns to or has watch for it, found without looking at all of them.
//!
//! A site promises work or room by what it said last, and is to watch unless it watches for enough. Both follow from
//! what is known of that site alone, so its keys are made anew when that changes, and a search is a range of keys.

use std::collections::BTreeSet;

use scheduler::Room;

use super::Balancer;
use crate::membership::view::View;
use crate::rank::Rank;
use crate::table::Table;

/// A site under its keys. Ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    /// The narrowest job that waits at a site, or its idle processors if this one pushes. Not if zero.
    promises: BTreeSet<(u32, Rank)>,
    /// Sites that do not watch for enough, under what they are to watch for. See [`Balancer::key_to_watch`].
    to_watch: BTreeSet<(u32, Rank)>,
    /// The keys of each rank, zero for none.
    keys: Table<Keys>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Keys {
    promise: u32,
    to_watch: u32,
}

impl Index {
    /// None of these members has keys.
    pub(super) fn of(members: impl Iterator<Item = Rank>) -> Index {
        let keys = Table::of(members, |_| Keys::default());
        Index { promises: BTreeSet::new(), to_watch: BTreeSet::new(), keys }
    }

    fn set(&mut self, rank: Rank, keys: Keys) {
        let before = std::mem::replace(&mut self.keys[rank], keys);
        replace(&mut self.promises, rank, before.promise, keys.promise);
        replace(&mut self.to_watch, rank, before.to_watch, keys.to_watch);
    }

    /// The lowest rank that promises a job no wider than this and can be asked.
    pub(super) fn first_promising(&self, free: u32, view: &View) -> Option<Rank> {
        let promises = self.promises.range(..=(free, Rank::MAX)).map(|&(_, rank)| rank);
        promises.filter(|&rank| view.is_reachable(rank)).min()
    }

    /// The ranks that promise room for a job of this width, in order.
    pub(super) fn roomy(&self, width: u32) -> Vec<Rank> {
        ordered(self.promises.range((width, Rank::FIRST)..).map(|&(_, rank)| rank))
    }

    /// The ranks that are to watch, in order: all of them for a site that pulls; if this one pushes, those that do not
    /// watch for room for a job of this width.
    pub(super) fn to_watch(&self, width: u32) -> Vec<Rank> {
        ordered(self.to_watch.range((width.saturating_add(1), Rank::FIRST)..).map(|&(_, rank)| rank))
    }
}

fn replace(set: &mut BTreeSet<(u32, Rank)>, rank: Rank, before: u32, after: u32) {
    if before == after {
        return;
    }
    if before > 0 {
        set.remove(&(before, rank));
    }
    if after > 0 {
        set.insert((after, rank));
    }
}

fn ordered(ranks: impl Iterator<Item = Rank>) -> Vec<Rank> {
    let mut ranks: Vec<Rank> = ranks.collect();
    ranks.sort_unstable();
    ranks
}

impl Balancer {
    /// What is known of a site in the view, or what it watches for, changed.
    pub(super) fn reindex(&mut self, rank: Rank) {
        self.index.set(rank, self.keys(rank));
    }

    /// The index as it should be.
    pub(super) fn index_anew(&self) -> Index {
        let mut index = Index::of(self.index.keys.ranks());
        for rank in self.index.keys.ranks() {
            index.set(rank, self.keys(rank));
        }
        index
    }

    fn keys(&self, rank: Rank) -> Keys {
        let load_report = self.known.get(&rank).map(|known| known.load_report);
        let said = if self.pulls() {
            load_report.map(|said| said.narrowest)
        } else {
            load_report.map(|said| said.idle)
        };
        Keys { promise: said.unwrap_or(0), to_watch: self.key_to_watch(rank) }
    }

    /// Above the width of the narrowest job here if the site is to watch for room for it, zero if it watches for enough.
    /// A site that pulls has others watch whatever waits here: any number above all widths, or zero.
    fn key_to_watch(&self, rank: Rank) -> u32 {
        let what = self.watched.get(&rank).and_then(|watched| watched.what.as_ref());
        let watched = what.map(Room::width);
        if rank == self.me {
            0
        } else if self.pulls() && self.nodes.is_some() {
            // For whatever fits what is left here.
            if what == self.nodes.as_ref() { 0 } else { u32::MAX }
        } else if self.pulls() {
            if watched.unwrap_or(0) < self.work_to_watch_for(rank) { u32::MAX } else { 0 }
        } else {
            // Wide enough, and nothing as narrow is watched for.
            let below = watched.unwrap_or(u32::MAX).min(self.grid.sizes()[rank.index()].saturating_add(1));
            if self.room_to_watch_for(rank, 1) < below { below } else { 0 }
        }
    }
}
