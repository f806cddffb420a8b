//! A deficiency by cause: as chosen, and how far it depends on which cause takes first.
//!
//! Of one site at one instant each cause explains at most some of the processors that are short. Where these overlap the
//! causes take in the order of [`Split`], each at most what those before it left. *Blind* is what none explains, in any
//! order. Over all orders of the others, a cause takes most as the first and least as the last, at every instant: so the
//! least and the greatest of a run are reached by orders, too.

use serde::{Deserialize, Serialize};

/// How many causes there are.
pub(super) const CAUSES: usize = 6;

/// Causes that may explain a processor together: all but blind.
pub(super) const EXPLAINING: usize = CAUSES - 1;

/// A deficiency by cause, in hundredths of a processor-microsecond; in the order in which causes take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// See [`super::Attribution::foreign`].
    pub foreign: i128,
    /// See [`super::Attribution::lost`].
    pub lost: i128,
    /// See [`super::Attribution::in_transit`].
    pub in_transit: i128,
    /// See [`super::Attribution::asked`].
    pub asked: i128,
    /// See [`super::Attribution::drain`].
    pub drain: i128,
    /// See [`super::Attribution::blind`].
    pub blind: i128,
}

impl Split {
    /// The sum of all causes.
    pub fn total(self) -> i128 {
        self.causes().iter().sum()
    }

    /// The causes in their order.
    pub fn causes(self) -> [i128; CAUSES] {
        let Split { foreign, lost, in_transit, asked, drain, blind } = self;
        [foreign, lost, in_transit, asked, drain, blind]
    }

    fn add(&mut self, rate: [i64; CAUSES], span: i128) {
        let [foreign, lost, in_transit, asked, drain, blind] = rate.map(|rate| i128::from(rate) * span);
        self.foreign += foreign;
        self.lost += lost;
        self.in_transit += in_transit;
        self.asked += asked;
        self.drain += drain;
        self.blind += blind;
    }
}

/// The sums of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    pub(super) chosen: Split,
    pub(super) least: Split,
    pub(super) greatest: Split,
}

impl Ranges {
    /// Adds a rate over so many microseconds.
    pub(super) fn add(&mut self, rate: &Rate, span: i128) {
        self.chosen.add(rate.chosen, span);
        self.least.add(rate.least, span);
        self.greatest.add(rate.greatest, span);
    }

    /// Whether every cause is between its least and its greatest, and what only one explains is not more than all.
    pub(super) fn hold(&self) -> bool {
        let (least, greatest) = (self.least.causes(), self.greatest.causes());
        let bounded = |(place, &chosen): (usize, &i128)| {
            0 <= least[place] && least[place] <= chosen && chosen <= greatest[place]
        };
        let total = self.chosen.total();
        self.chosen.causes().iter().enumerate().all(bounded)
            && self.least.total() <= total
            && total <= self.greatest.total()
    }
}

/// A deficiency per microsecond, in hundredths of a processor. As [`Ranges`], in numbers of half the length: all
/// processors of a grid make less than 2^53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) chosen: [i64; CAUSES],
    pub(super) least: [i64; CAUSES],
    pub(super) greatest: [i64; CAUSES],
}

impl Rate {
    /// What so much is short of, if each cause explains at most this.
    pub(super) fn of(short: i64, explained: [i64; EXPLAINING]) -> Rate {
        let explained = explained.map(|most| most.min(short));
        let all: i64 = explained.iter().sum();
        let mut rate = Rate::default();
        let mut left = short;
        for (place, most) in explained.into_iter().enumerate() {
            rate.chosen[place] = most.min(left);
            left -= rate.chosen[place];
            rate.greatest[place] = most;
            rate.least[place] = (short - (all - most)).clamp(0, most);
        }
        for rate in [&mut rate.chosen, &mut rate.least, &mut rate.greatest] {
            rate[EXPLAINING] = left;
        }
        rate
    }

    /// Adds another, as often.
    pub(super) fn add(&mut self, other: &Rate, times: i64) {
        let rows = [
            (&mut self.chosen, &other.chosen),
            (&mut self.least, &other.least),
            (&mut self.greatest, &other.greatest),
        ];
        for (sum, part) in rows {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += times * part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_take_in_order_and_their_ranges_do_not_depend_on_it() {
        // Of 10, two overlap.
        let rate = Rate::of(10, [4, 0, 0, 8, 0]);
        assert_eq!(rate.chosen, [4, 0, 0, 6, 0, 0]);
        assert_eq!(rate.least, [2, 0, 0, 6, 0, 0]);
        assert_eq!(rate.greatest, [4, 0, 0, 8, 0, 0]);
        // Nothing overlaps, and something is left.
        let rate = Rate::of(10, [1, 2, 3, 0, 0]);
        assert_eq!((rate.chosen, rate.least, rate.greatest), ([1, 2, 3, 0, 0, 4], rate.chosen, rate.chosen));
        // More than there is.
        assert_eq!(Rate::of(3, [9, 9, 0, 0, 0]).least, [0; CAUSES]);
    }

    #[test]
    fn mutant_a_cause_outside_its_range_is_caught() {
        let mut ranges = Ranges::default();
        ranges.add(&Rate::of(10, [4, 0, 0, 8, 0]), 3);
        assert!(ranges.hold());
        for wrong in [-1, 1] {
            let mut off = ranges;
            off.chosen.lost += wrong;
            assert!(!off.hold());
        }
        let mut off = ranges;
        off.least.asked = off.greatest.asked + 1;
        assert!(!off.hold());
    }
}
