//! Dispatchers that learn where jobs do well, and the heuristics that they were reviewed against.
//!
//! After Costa, *Aprendizado por Reforço aplicado à Meta-escalonamento* (COPPE/UFRJ 2007). [`Efficiency`] learns a number
//! per site from the [`Times`] of jobs that ended. A [`Dispatcher`] has the jobs of one broker and asks a [`Rule`] which
//! goes where. What the text leaves open is a switch of [`Options`](scheduler::strategy::opaque::Options).
//!
//! Whoever needs to know how long jobs take where asks [`Estimates`]. Efficiency is a floating-point number made by + - * /
//! and square roots, which are rounded alike everywhere; random numbers come from a stream of the seed.

mod ag;
mod agents;
mod completion;
mod copies;
mod data;
mod dispatcher;
mod economy;
mod efficiency;
pub(crate) mod estimates;
mod favours;
mod in_turn;
mod linucb;
mod loads;
mod memory;
mod mqd;
mod rule;
mod rules;
mod slots;
mod smoothing;
mod statistics;
mod times;

pub use dispatcher::{Dispatcher, Finished};
pub use efficiency::{Efficiency, Learned, Reward, Step};
pub use estimates::{Estimates, FileId, Input, Requested};
pub use favours::Favours;
pub use memory::{Change, Placed, PlacedAt, Subject, Words};
pub use rule::{Assignment, CloneRule, Ended, Lost, Round, Rule};
pub use slots::Slots;
pub use smoothing::Forecast;
pub use statistics::Sums;
pub use times::{Times, TimesError};
