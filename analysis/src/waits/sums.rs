//! Causes, sets of them, and how long jobs waited under each set.
//!
//! Sums are kept by set. What a cause takes under the order, what only it explains and what it may explain follow at the
//! end, so nothing has to be summed three times.

use serde::{Deserialize, Serialize};

/// Why a job waits at an instant. Several may be true at once; the first of this order is said to be the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It is between sites: granted or routed and not yet there, declined and not yet back, or not yet in the log.
    InTransit,
    /// It fits the free processors of its site, or its nodes where jobs share these, where the order of the queue or a reservation keeps it.
    Queue,
    /// Another site has room for it and may take it, and has asked its site with enough processors on offer; or a site
    /// claimed it, and has no answer.
    Asked,
    /// It is in the global queue, and another site has room for it.
    Offered,
    /// Another site has room for it and may take it, and has not asked.
    Blind,
    /// Another site has room for it, and may not take it.
    Ineligible,
    /// It is wider than every site, all sites together have room for it, and it has not started in parts yet. Only where jobs start so.
    InParts,
    /// No site has room for it, nor, of one that is wider than every site, have all together.
    Full,
}

/// How many causes there are.
pub const CAUSES: usize = 8;

impl Cause {
    /// All causes, the one that takes first first.
    pub const ALL: [Cause; CAUSES] = [
        Cause::InTransit,
        Cause::Queue,
        Cause::Asked,
        Cause::Offered,
        Cause::Blind,
        Cause::Ineligible,
        Cause::InParts,
        Cause::Full,
    ];

    /// The name in files and columns.
    pub fn name(self) -> &'static str {
        match self {
            Cause::InTransit => "in_transit",
            Cause::Queue => "queue",
            Cause::Asked => "asked",
            Cause::Offered => "offered",
            Cause::Blind => "blind",
            Cause::Ineligible => "ineligible",
            Cause::InParts => "in_parts",
            Cause::Full => "full",
        }
    }
}

/// A set of causes. Of a job that waits never empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Causes(u8);

/// How many sets there are.
const SETS: usize = 1 << CAUSES;

impl Causes {
    pub(super) const NONE: Causes = Causes(0);

    pub(super) fn with(self, cause: Cause) -> Causes {
        Causes(self.0 | 1 << cause as u8)
    }

    /// Those of both.
    pub(super) fn and(self, other: Causes) -> Causes {
        Causes(self.0 | other.0)
    }

    pub(super) fn of(causes: &[Cause]) -> Causes {
        causes.iter().fold(Causes::NONE, |set, &cause| set.with(cause))
    }

    pub(super) fn has(self, cause: Cause) -> bool {
        self.0 & 1 << cause as u8 != 0
    }

    pub(super) fn has_all(self, other: Causes) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn first(self) -> Option<Cause> {
        Cause::ALL.get(self.0.trailing_zeros() as usize).copied()
    }
}

/// Microseconds of waiting by set of causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sums([i128; SETS]);

impl Default for Sums {
    fn default() -> Sums {
        Sums([0; SETS])
    }
}

impl Sums {
    pub(super) fn add(&mut self, causes: Causes, micros: i128) {
        self.0[causes.0 as usize] += micros;
    }

    pub(super) fn add_all(&mut self, other: &Sums) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, part)| *sum += part);
    }

    pub(super) fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::default();
        for (set, &sum) in self.0.iter().enumerate() {
            let set = Causes(set as u8);
            let Some(first) = set.first() else { continue };
            ranges.chosen[first as usize] += sum;
            if set == Causes::of(&[first]) {
                ranges.least[first as usize] += sum;
            }
            for cause in Cause::ALL.into_iter().filter(|&cause| set.has(cause)) {
                ranges.greatest[cause as usize] += sum;
            }
        }
        ranges
    }
}

/// Sums by cause, in the order of [`Cause::ALL`]; of jobs in microseconds, of their processors in
/// processor-microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The first cause that is true takes all. They add up to the sum of all waits.
    pub chosen: [i128; CAUSES],
    /// Where no other cause is true: what a cause takes as the last of any order.
    pub least: [i128; CAUSES],
    /// Where the cause is true: what it takes as the first.
    pub greatest: [i128; CAUSES],
}

impl Ranges {
    /// Whether every cause is between its least and its greatest, and all add up to this.
    pub fn hold(&self, total: i128) -> bool {
        let Ranges { chosen, least, greatest } = self;
        let bounded = |place: usize| least[place] <= chosen[place] && chosen[place] <= greatest[place];
        chosen.iter().sum::<i128>() == total && (0..CAUSES).all(bounded)
    }
}

/// The place of a width among classes 1, 2, 3 to 4, 5 to 8, ...
pub(super) fn class_of(width: u32) -> usize {
    width.max(1).next_power_of_two().trailing_zeros() as usize
}
