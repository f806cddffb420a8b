//! Which rule has which name.

use scheduler::strategy::opaque::{DispatchRule, Options};

use super::ag::Ag;
use super::agents::Agents;
use super::completion::ByCompletion;
use super::copies::{MqdDuplication, WorkQueue};
use super::data::{DataStrategy, StorageAffinity};
use super::economy::Economy;
use super::in_turn::RoundRobin;
use super::linucb::LinUcb;
use super::loads::{ByLoad, OnlineCost};
use super::mqd::Mqd;
use super::rule::Rule;
use super::smoothing::Smoothing;

/// The rule of these options over so many sites.
pub(super) fn rule(options: &Options, sites: usize) -> Box<dyn Rule> {
    use DispatchRule as Name;
    let rule = options.rule;
    match rule {
        Name::RoundRobin => Box::new(RoundRobin::new(options.turn, sites)),
        Name::Ag => Box::new(Ag::new(options)),
        Name::Mqd => Box::new(Mqd::new(options, sites)),
        Name::Met | Name::Mct | Name::MinMin | Name::MaxMin => Box::new(ByCompletion::new(rule)),
        Name::Sufferage | Name::XSufferage | Name::QSufferage => Box::new(ByCompletion::new(rule)),
        Name::LeastLoaded | Name::GreedyCost => Box::new(ByLoad::new(rule)),
        Name::OnlineCost => Box::new(OnlineCost::new(sites)),
        Name::Agents => Box::new(Agents::new(options, sites)),
        Name::WorkQueue => Box::new(WorkQueue::new(1)),
        Name::Replication => Box::new(WorkQueue::new(options.copies)),
        Name::MqdDuplication => Box::new(MqdDuplication::new(options, sites)),
        Name::StorageAffinity => Box::new(StorageAffinity::new(options.copies)),
        Name::Cost | Name::Time | Name::CostTime => Box::new(Economy::new(options, sites)),
        Name::DataLocal | Name::DataAny | Name::DataAdaptive => Box::new(DataStrategy::new(rule, sites)),
        Name::Smoothing => Box::new(Smoothing::new(options, sites)),
        Name::LinUcb => Box::new(LinUcb::new(options, sites)),
    }
}
