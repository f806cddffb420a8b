//! Sizes, lengths and times of a membership, with their published values.

use scheduler::Span;

/// What all peers of an overlay are told alike. Numbers that are published are those of Leitão, Pereira and Rodrigues, DSN
/// 2007, §5.1, for ten thousand peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Most neighbors of a peer: log₁₀ n + 1.
    pub active_max: usize,
    /// Most contacts that are kept to replace them: six for each.
    pub passive_max: usize,
    /// Steps of the walk to a peer that takes a newcomer into its active view (ARWL).
    pub join_walk: u8,
    /// Steps that are left when a newcomer enters a passive view (PRWL).
    pub passive_walk: u8,
    /// Steps of the walk of a shuffle. The paper has no number and says only that it is a walk as the other one.
    pub shuffle_walk: u8,
    /// Neighbors that a shuffle tells of (ka).
    pub shuffle_active: usize,
    /// Other contacts that it tells of (kp).
    pub shuffle_passive: usize,
    /// From one round to the next: a shuffle, and a word to each neighbor.
    pub period: Span,
    /// How long a peer that was asked to be a neighbor may be silent until it is taken for failed.
    pub patience: Span,
    /// Rounds in which a neighbor may say nothing until it is taken for failed. A transport that notices earlier says so.
    pub silent_rounds_max: u32,
    /// After so many rounds in a row that began with a free place the next wish has high priority. `None` is the paper:
    /// then a component in which nobody is without neighbors may be refused by all others for ever.
    pub insist_after: Option<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            active_max: 5,
            passive_max: 30,
            join_walk: 6,
            passive_walk: 3,
            shuffle_walk: 6,
            shuffle_active: 3,
            shuffle_passive: 4,
            period: Span::from_secs(10),
            patience: Span::from_secs(3),
            silent_rounds_max: 3,
            insist_after: Some(10),
        }
    }
}
