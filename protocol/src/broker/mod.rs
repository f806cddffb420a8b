//! The family of brokers: members without processors allocate each job to a site, at once and for good; the sites start
//! what they got by their local schedulers, and tell the brokers what happened.
//!
//! Users submit to a broker. It decides in its turn, job by job in queue order, by what it knows of the sites, and routes
//! the job: the site must take it, so it changes owner exactly once whatever is lost. What it knows are rows of changes,
//! one from each site (`log.rs` of a site, `view.rs` of a broker), when [`Reporting`] says. Jobs that are on their way
//! are counted where they go ([`Pending`]). A broker that restarts asks for new rows.
//!
//! With all delays zero, and reports at once, the schedule is that of [`brokers::ideal::Brokered`], job for job: reports of
//! what ended at an instant arrive before the turn of the broker, which comes before those of sites, because members
//! without processors have the lowest ranks.

#[cfg(test)]
mod batches;
mod desk;
mod gangs;
mod log;
mod memory;
pub(crate) mod message;
pub(crate) mod options;
mod parts;
mod site;
mod view;

use scheduler::{Broker as Rules, Span};

pub(crate) use self::desk::Desk;
use self::options::Reporting;
pub(crate) use self::site::Reporter;
use crate::config::PeerConfig;

/// What brokers and their sites go by.
///
/// # Panics
/// If they could not work with that.
fn rules(config: &PeerConfig) -> Rules {
    let rules = *config.strategy.broker().expect("a broker");
    match config.options.broker.report {
        Reporting::Every(period) => assert!(period > Span::ZERO, "reports are some time apart"),
        Reporting::Probe(count) => assert!(count > 0, "a probe asks somebody"),
        Reporting::Change => {}
    }
    let shares = || config.grid.machines().any(|site| config.grid.cluster(site.id).is_some());
    assert!(
        !rules.coallocates() || config.forecast.is_none() || !shares(),
        "who predicts run times knows nothing of jobs at several sites whose nodes jobs share"
    );
    assert!(config.grid.brokers() > 0, "jobs are given to sites by a broker: the grid has none");
    rules
}
