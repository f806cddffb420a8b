//! How long whoever runs a broker lets it search. Nothing here reads a clock: where one limits decisions, whoever has it
//! answers.

use std::fmt::Debug;

/// Says when a search has taken long enough. What it says changes what is decided, so a run that must come out again has none.
pub trait Patience: Debug + Send + Sync {
    /// A decision begins.
    fn begins(&self);

    /// Whether the decision that began last is due: the best that was found so far is taken. Asked before each generation,
    /// and not again once it is so.
    fn is_over(&self) -> bool;
}
