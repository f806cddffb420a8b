//! Whom a site turns to: at random, to the nearest, to the most or least loaded, or to the better of two.
//!
//! Load is waiting work per processor, by the newest load report; a site that was never heard of counts as having none.

use std::cmp::Ordering;

use rand::RngExt;
use scheduler::{Span, VictimRule};

use super::{Balancer, LastHeard};
use crate::engine::Engine;
use crate::membership::view::View;
use crate::mutant::Mutant;
use crate::rank::Rank;

impl Engine<Balancer> {
    /// A site to turn to, among those from this rank on and never this one. None if the rule has no other left that was
    /// not tried in this search.
    pub(super) fn choose(&mut self, first: Rank) -> Option<Rank> {
        // Only a rule that draws can choose a site that is away more than once.
        for _ in 0..=2 * self.core.view.len() {
            let chosen = self.choose_any(first)?;
            if self.core.is_reachable(chosen) {
                return Some(chosen);
            }
            self.family.tried.insert(chosen);
        }
        None
    }

    fn choose_any(&mut self, first: Rank) -> Option<Rank> {
        let nearest = |rank: Rank| self.core.round_trips.to(rank);
        let grid = self.core.config.grid.clone();
        let (view, balancer) = (&self.core.view, &mut self.family);
        match balancer.rules.victim {
            VictimRule::Random if self.core.has(Mutant::StrangersAsked) => {
                let all = Rank::all(&grid).filter(|&rank| rank >= first && rank != view.me());
                let all: Vec<Rank> = all.collect();
                Some(all[balancer.rng.random_range(0..all.len())])
            }
            VictimRule::Random => balancer.any(first, view),
            VictimRule::Nearest => balancer.nearest(first, view, nearest),
            VictimRule::Loaded => balancer.extreme(first, view, grid.sizes()),
            VictimRule::TwoChoices => {
                let one = balancer.any(first, view)?;
                let other = balancer.any_but(first, view, one).unwrap_or(one);
                let better = balancer.compare(other, one, grid.sizes()) == Ordering::Greater;
                Some(if better { other } else { one })
            }
        }
    }
}

impl Balancer {
    /// One of those from a rank on, each equally likely.
    pub(super) fn any(&mut self, first: Rank, view: &View) -> Option<Rank> {
        let others = view.others_from(first);
        if others == 0 {
            return None;
        }
        Some(view.other_at(self.rng.random_range(0..others), first))
    }

    /// As [`Balancer::any`], without another one.
    fn any_but(&mut self, first: Rank, view: &View, but: Rank) -> Option<Rank> {
        let others = view.others_from(first);
        if others < 2 {
            return None;
        }
        let shift = 1 + self.rng.random_range(0..others - 1);
        Some(view.other_at((view.number_of(but, first) + shift) % others, first))
    }

    /// One that was never measured, or else the one with the shortest round trip.
    fn nearest(
        &mut self,
        first: Rank,
        view: &View,
        round_trip: impl Fn(Rank) -> Option<Span>,
    ) -> Option<Rank> {
        let open = self.untried(first, view);
        let unmeasured: Vec<Rank> = open.iter().copied().filter(|&rank| round_trip(rank).is_none()).collect();
        if unmeasured.is_empty() {
            open.into_iter().min_by_key(|&rank| (round_trip(rank), rank))
        } else {
            Some(unmeasured[self.rng.random_range(0..unmeasured.len())])
        }
    }

    /// Those from a rank on that were not turned to in this search, without this one.
    fn untried(&self, first: Rank, view: &View) -> Vec<Rank> {
        view.from(first).filter(|&rank| rank != self.me && !self.tried.contains(&rank)).collect()
    }

    /// The best by load reports; one of the untried at random if a site that pulls knows of no waiting work.
    fn extreme(&mut self, first: Rank, view: &View, sizes: &[u32]) -> Option<Rank> {
        let open = self.untried(first, view);
        let best = open.iter().copied().reduce(|best, rank| {
            if self.compare(rank, best, sizes) == Ordering::Greater { rank } else { best }
        })?;
        let loaded = self.known.get(&best).is_some_and(|known| known.load_report.work > 0);
        if self.pulls() && !loaded {
            return Some(open[self.rng.random_range(0..open.len())]);
        }
        Some(best)
    }

    /// Whether one site is better than another: more loaded for a site that pulls, less for one that pushes; then
    /// the one with more idle processors.
    fn compare(&self, one: Rank, other: Rank, sizes: &[u32]) -> Ordering {
        let work = |rank: Rank| self.known.get(&rank).map_or(0, |known| u128::from(known.load_report.work));
        let idle = |rank: Rank| {
            self.known.get(&rank).map_or(sizes[rank.index()], |known: &LastHeard| known.load_report.idle)
        };
        // Load per processor, compared without dividing.
        let load = (work(one) * u128::from(sizes[other.index()]))
            .cmp(&(work(other) * u128::from(sizes[one.index()])));
        if self.pulls() { load } else { load.reverse().then(idle(one).cmp(&idle(other))) }
    }
}
