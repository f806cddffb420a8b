//! Which rule has which name.

use super::ag::Ag;
use super::in_turn::RoundRobin;
use super::mqd::Mqd;
use super::options::{DispatchRule, Options};
use super::rule::Rule;

/// The rule of these options over so many sites.
pub(super) fn rule(options: &Options, _sites: usize) -> Box<dyn Rule> {
    match options.rule {
        DispatchRule::RoundRobin => Box::new(RoundRobin::new(options.turn)),
        DispatchRule::Ag => Box::new(Ag::new(options)),
        DispatchRule::Mqd => Box::new(Mqd::new(options)),
    }
}
