//! Whom a site turns to: at random, to the nearest, to the most or least loaded, or to the better of two.
//!
//! Load is waiting work per processor, by the newest load report; a site that was never heard of counts as having none.

use std::cmp::Ordering;
use std::ops::Range;

use rand::RngExt;
use scheduler::{Span, VictimRule};

use super::{Balancer, LastHeard};
use crate::engine::Engine;

impl Engine<Balancer> {
    /// A site to turn to, among those of these ranks and never this one. None if the rule has no other left that was
    /// not tried in this search.
    pub(super) fn choose(&mut self, ranks: Range<usize>) -> Option<usize> {
        let away = self.core.unreachable();
        // Only a rule that draws can choose a site that is away more than once.
        for _ in 0..=2 * self.core.config.grid.len() {
            let chosen = self.choose_any(ranks.clone())?;
            if !away.contains(&chosen) {
                return Some(chosen);
            }
            self.family.tried.insert(chosen);
        }
        None
    }

    fn choose_any(&mut self, ranks: Range<usize>) -> Option<usize> {
        let me = self.core.rank;
        let nearest = |rank: usize| self.core.round_trips.to(rank);
        let grid = self.core.config.grid.clone();
        let balancer = &mut self.family;
        match balancer.rules.victim {
            VictimRule::Random => balancer.any(ranks, me),
            VictimRule::Nearest => balancer.nearest(ranks, me, nearest),
            VictimRule::Loaded => balancer.extreme(ranks, me, grid.sizes()),
            VictimRule::TwoChoices => {
                let first = balancer.any(ranks.clone(), me)?;
                let second = balancer.any_but(ranks, me, first).unwrap_or(first);
                let better = balancer.compare(second, first, grid.sizes()) == Ordering::Greater;
                Some(if better { second } else { first })
            }
        }
    }
}

impl Balancer {
    /// One of these, each equally likely.
    pub(super) fn any(&mut self, ranks: Range<usize>, me: usize) -> Option<usize> {
        let others = ranks.len() - usize::from(ranks.contains(&me));
        if others == 0 {
            return None;
        }
        let drawn = ranks.start + self.rng.random_range(0..others);
        Some(if ranks.contains(&me) && drawn >= me { drawn + 1 } else { drawn })
    }

    /// As [`Balancer::any`], without another one.
    fn any_but(&mut self, ranks: Range<usize>, me: usize, but: usize) -> Option<usize> {
        let others = ranks.len() - usize::from(ranks.contains(&me));
        if others < 2 {
            return None;
        }
        let shift = 1 + self.rng.random_range(0..others - 1);
        let place = |rank: usize| rank - ranks.start - usize::from(ranks.contains(&me) && rank > me);
        let drawn = ranks.start + (place(but) + shift) % others;
        Some(if ranks.contains(&me) && drawn >= me { drawn + 1 } else { drawn })
    }

    /// One that was never measured, or else the one with the shortest round trip.
    fn nearest(
        &mut self,
        ranks: Range<usize>,
        me: usize,
        round_trip: impl Fn(usize) -> Option<Span>,
    ) -> Option<usize> {
        let open: Vec<usize> = ranks.filter(|&rank| rank != me && !self.tried.contains(&rank)).collect();
        let unmeasured: Vec<usize> =
            open.iter().copied().filter(|&rank| round_trip(rank).is_none()).collect();
        if unmeasured.is_empty() {
            open.into_iter().min_by_key(|&rank| (round_trip(rank), rank))
        } else {
            Some(unmeasured[self.rng.random_range(0..unmeasured.len())])
        }
    }

    /// The best by load reports; one of the untried at random if a site that pulls knows of no waiting work.
    fn extreme(&mut self, ranks: Range<usize>, me: usize, sizes: &[u32]) -> Option<usize> {
        let open: Vec<usize> = ranks.filter(|&rank| rank != me && !self.tried.contains(&rank)).collect();
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
    fn compare(&self, one: usize, other: usize, sizes: &[u32]) -> Ordering {
        let work = |rank: usize| self.known.get(&rank).map_or(0, |known| u128::from(known.load_report.work));
        let idle = |rank: usize| {
            self.known.get(&rank).map_or(sizes[rank], |known: &LastHeard| known.load_report.idle)
        };
        // Load per processor, compared without dividing.
        let load = (work(one) * u128::from(sizes[other])).cmp(&(work(other) * u128::from(sizes[one])));
        if self.pulls() { load } else { load.reverse().then(idle(one).cmp(&idle(other))) }
    }
}
