//! Job classes A, B and H with a size threshold, and the switches of the stealing algorithm.
//!
//! Definitions: Quezada Pina 2012, Eq. 11–13, with the threshold x generalised from 1/2. All comparisons are on
//! integers: a job is *big* for a site iff `100 · processors > X · site_processors`, strictly.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::spelling;

/// The size threshold x of ST_x, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Threshold(u8);

impl Threshold {
    /// The threshold of ST50.
    pub const HALF: Threshold = Threshold(50);

    /// A threshold in percent; `None` above 100.
    pub fn new(percent: u8) -> Option<Threshold> {
        (percent <= 100).then_some(Threshold(percent))
    }

    /// The threshold in percent.
    pub fn percent(self) -> u8 {
        self.0
    }

    /// Whether a job is wider than x of a site.
    pub fn is_big(self, processors: u32, site_processors: u32) -> bool {
        u64::from(processors) * 100 > u64::from(self.0) * u64::from(site_processors)
    }

    /// The widest job that is small for a site: floor(x · site_processors).
    pub fn widest_small(self, site_processors: u32) -> u32 {
        (u64::from(self.0) * u64::from(site_processors) / 100) as u32
    }

    /// beta = min(x, 1 − x) in percent: what the proofs guarantee busy.
    pub fn beta_percent(self) -> u8 {
        self.0.min(100 - self.0)
    }
}

impl FromStr for Threshold {
    type Err = String;
    fn from_str(percent: &str) -> Result<Threshold, String> {
        let threshold = percent.parse().ok().and_then(Threshold::new);
        threshold.ok_or_else(|| format!("{percent:?} is not a whole number from 0 to 100"))
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The class of a job at its home site. H is not a class of this kind but a view of other sites' A jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// Big at home: wider than x of its home site.
    A,
    /// Small at home.
    B,
}

impl Class {
    /// The class of a job this wide at a home site of this size.
    pub fn at_home(processors: u32, home_processors: u32, threshold: Threshold) -> Class {
        if threshold.is_big(processors, home_processors) { Class::A } else { Class::B }
    }

    /// `A` or `B`.
    pub fn letter(self) -> char {
        match self {
            Class::A => 'A',
            Class::B => 'B',
        }
    }
}

/// In which order a site takes big own work (A), stolen big work (H) and small own work (B).
///
/// Only four behaviours differ, because B_i or H_i is always empty: AHB = ABH and HBA = BHA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The original order; ratio 3 offline, 5 online.
    #[default]
    Ahb,
    /// The same schedule as AHB.
    Abh,
    /// Small own work before big own work; ratio 4 and 6.
    Bah,
    /// Stolen big work first; no guarantee.
    Hab,
    /// Stolen big work first, then small; no guarantee.
    Hba,
    /// The same schedule as HBA.
    Bha,
}

impl Order {
    /// All six, in alphabetical order of their names.
    pub const ALL: [Order; 6] = [Order::Abh, Order::Ahb, Order::Bah, Order::Bha, Order::Hab, Order::Hba];

    /// Whether small own work goes before big own work.
    pub fn small_first(self) -> bool {
        matches!(self, Order::Bah | Order::Hba | Order::Bha)
    }

    /// Whether stolen big work goes before own work of every kind that can coexist with it.
    pub fn stolen_first(self) -> bool {
        matches!(self, Order::Hab | Order::Hba | Order::Bha)
    }

    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Order::Ahb => "ahb",
            Order::Abh => "abh",
            Order::Bah => "bah",
            Order::Hab => "hab",
            Order::Hba => "hba",
            Order::Bha => "bha",
        }
    }
}

impl FromStr for Order {
    type Err = String;
    fn from_str(text: &str) -> Result<Order, String> {
        Order::ALL.into_iter().find(|order| order.name().eq_ignore_ascii_case(text)).ok_or_else(|| {
            let hint = spelling::hint(text, Order::ALL.map(Order::name));
            format!("unknown order {text:?}{hint}; use one of ahb, abh, bah, hab, hba, bha")
        })
    }
}

/// Which job of a list is taken next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selection {
    /// The first in queue order that fits.
    #[default]
    FirstFit,
    /// The widest that fits, ties in queue order.
    BestFit,
    /// The head, or nothing.
    HeadOnly,
    /// The head keeps a reservation by estimates, the rest backfills.
    Easy,
}

impl Selection {
    /// Every rule of selection, in the order of the enum.
    pub const ALL: [Selection; 4] =
        [Selection::FirstFit, Selection::BestFit, Selection::HeadOnly, Selection::Easy];

    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Selection::FirstFit => "first-fit",
            Selection::BestFit => "best-fit",
            Selection::HeadOnly => "head",
            Selection::Easy => "easy",
        }
    }
}

impl FromStr for Selection {
    type Err = String;
    fn from_str(text: &str) -> Result<Selection, String> {
        Selection::ALL.into_iter().find(|selection| selection.name() == text).ok_or_else(|| {
            let hint = spelling::hint(text, Selection::ALL.map(Selection::name));
            format!("unknown selection {text:?}{hint}; use one of first-fit, best-fit, head, easy")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_site_is_small() {
        assert!(!Threshold::HALF.is_big(4, 8));
        assert!(Threshold::HALF.is_big(5, 8));
        assert_eq!(Class::at_home(4, 8, Threshold::HALF), Class::B);
    }

    #[test]
    fn widest_small_is_the_integer_border() {
        for percent in 0..=100 {
            let threshold = Threshold::new(percent).unwrap();
            for site in 1..40 {
                let border = threshold.widest_small(site);
                assert!(!threshold.is_big(border, site));
                assert!(threshold.is_big(border + 1, site));
            }
        }
    }

    #[test]
    fn names_round_trip() {
        for order in Order::ALL {
            assert_eq!(order.name().parse(), Ok(order));
        }
        for selection in Selection::ALL {
            assert_eq!(selection.name().parse(), Ok(selection));
        }
    }
}
