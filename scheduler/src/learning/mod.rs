//! Dispatchers that learn where jobs do well, and the heuristics that they were reviewed against.
//!
//! After Costa, *Aprendizado por Reforço aplicado à Meta-escalonamento* (COPPE/UFRJ 2007). [`Efficiency`] learns a number
//! per site from the [`Times`] of jobs that ended. What the text leaves open is a switch of [`Options`].
//!
//! Efficiency is a floating-point number made by + - * /
//! and square roots, which are rounded alike everywhere.

mod efficiency;
mod options;
mod slots;
mod statistics;
mod text;
mod times;

pub use efficiency::{Efficiency, Reward, Step};
pub use options::{
    AlphaWeighs, Blame, Border, Clock, Counted, Deviation, DispatchRule, GroupOver, GroupSize, Growth,
    Options, PhaseEnd, Scope, Tie, Tolerance, TotalFrom, Turn,
};
pub use slots::Slots;
pub use statistics::Sums;
pub use times::{Times, TimesError};
