//! What is taken away from a drawn scenario, as text: `faults=0,3;jobs=1,7;sites=2,4;plain=window,network`.
//!
//! A list says what is kept; without it everything is. Faults are counted from 0 in the order they are drawn, jobs and
//! sites have their numbers. What is plain has its default.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use links::model::{Base, Between};
use links::{Cut, Model};
use protocol::{Options, StealOptions};
use scheduler::{Grid, Pass, SiteId, Span, Submit};

use crate::faults::{Fault, Scenario};

/// What can be plain.
const PLAIN: [&str; 15] = [
    "batch",
    "bounces",
    "discovery",
    "eager",
    "estimates",
    "gossip",
    "interrupted",
    "margin",
    "membership",
    "network",
    "recall",
    "submit",
    "tries",
    "unanswered",
    "window",
];

/// What is left of a drawn scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reduction {
    /// Kept faults; all if `None`.
    pub faults: Option<BTreeSet<usize>>,
    /// Kept jobs; all if `None`.
    pub jobs: Option<BTreeSet<u64>>,
    /// Kept sites; all if `None`.
    pub sites: Option<BTreeSet<u32>>,
    /// What has its default.
    pub plain: BTreeSet<&'static str>,
}

/// A text that is no reduction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReductionError(String);

impl Reduction {
    /// Everything that can be plain.
    pub fn plain_names() -> &'static [&'static str] {
        &PLAIN
    }

    /// The scenario less the faults, jobs and sites that this takes away, and with what it names made plain.
    pub fn apply(&self, mut scenario: Scenario) -> Scenario {
        if let Some(kept) = &self.faults {
            let mut place = 0;
            scenario.faults.retain(|_| {
                place += 1;
                kept.contains(&(place - 1))
            });
        }
        if let Some(kept) = &self.jobs {
            scenario.jobs.retain(|job| kept.contains(&job.spec.id.0));
        }
        if let Some(kept) = &self.sites {
            keep_sites(&mut scenario, kept);
        }
        for name in &self.plain {
            make_plain(&mut scenario, name);
        }
        scenario
    }
}

/// Leaves sites out. The others are numbered anew; jobs of those left out come to others, as narrow as they must be.
fn keep_sites(scenario: &mut Scenario, kept: &BTreeSet<u32>) {
    let old = scenario.grid.clone();
    let left: Vec<SiteId> =
        (0..old.len()).map(SiteId::from_index).filter(|site| kept.contains(&site.0)).collect();
    let renamed = |site: SiteId| left.iter().position(|&other| other == site).map(SiteId::from_index);
    let members = left.iter().enumerate().map(|(place, &site)| {
        let member = old.site(site);
        (format!("site{}", place + 1), member.processors, member.beside.and_then(renamed))
    });
    let Ok(grid) = Grid::of_members(members) else { return };
    if grid.brokers() == 0 && old.brokers() > 0 {
        // Nobody would decide.
        return;
    }
    let spread = scenario.strategy.spread(grid.widths());
    let grid = grid.with_spread(spread);
    for job in &mut scenario.jobs {
        let origin = job.spec.origin;
        job.spec.origin = renamed(origin).unwrap_or(SiteId::from_index(origin.index() % left.len()));
        job.spec.processors = job.spec.processors.min(grid.widest_job());
    }
    let faults = std::mem::take(&mut scenario.faults);
    scenario.faults = faults
        .into_iter()
        .filter_map(|mut fault| {
            match &mut fault {
                Fault::Crash { site, .. }
                | Fault::Pause { site, .. }
                | Fault::Leave { site, .. }
                | Fault::Join { site, .. }
                | Fault::Clock { site, .. }
                | Fault::Step { site, .. }
                | Fault::FullDisk { site, .. }
                | Fault::LostDisk { site, .. }
                | Fault::Liar { site, .. }
                | Fault::SlowDisk { site, .. } => *site = renamed(*site)?,
                Fault::Cut(Cut { between, .. }) => {
                    let rename =
                        |sites: &BTreeSet<SiteId>| sites.iter().filter_map(|&site| renamed(site)).collect();
                    match between {
                        Between::OneWay { from, to } => {
                            *from = from.as_ref().map(rename);
                            *to = to.as_ref().map(rename);
                        }
                        Between::Groups(groups) => *groups = groups.iter().map(rename).collect(),
                    }
                }
                Fault::Noise(_) | Fault::Coordinator { .. } => {}
            }
            Some(fault)
        })
        .collect();
    if let Base::Matrix(rows) = &mut scenario.network.base {
        let old = std::mem::take(rows);
        *rows =
            left.iter().map(|from| left.iter().map(|to| old[from.index()][to.index()]).collect()).collect();
    }
    scenario.grid = Arc::new(grid);
}

fn make_plain(scenario: &mut Scenario, name: &str) {
    let defaults = Options::default();
    let options = &mut scenario.options;
    match name {
        "batch" => options.batch = defaults.batch,
        "bounces" => options.bounces_max = defaults.bounces_max,
        "discovery" => options.discovery = defaults.discovery,
        "eager" => options.steal.eager = defaults.steal.eager,
        "estimates" => {
            for job in &mut scenario.jobs {
                job.spec.requested = job.run_time.max(Span::from_secs(1));
            }
        }
        "gossip" => {
            (options.balance.gossip, options.balance.gossip_fanout) =
                (defaults.balance.gossip, defaults.balance.gossip_fanout)
        }
        "interrupted" => options.interrupted = defaults.interrupted,
        "margin" => options.margin = defaults.margin,
        "membership" => {
            (options.heartbeat, options.lease) = (None, None);
            options.suspect_after = defaults.suspect_after;
            // Nobody would take over from those who never come back.
            scenario.faults.retain(|fault| {
                !matches!(
                    fault,
                    Fault::Leave { .. } | Fault::LostDisk { .. } | Fault::Crash { down: None, .. }
                )
            });
        }
        // Not longer than what it replaces was drawn for, so that messages are still repeated late enough.
        "network" => scenario.network = Model::constant(Span::from_micros(1_000)),
        "recall" => options.recall = defaults.recall,
        "submit" => (scenario.submit, scenario.pass) = (Submit::Home, Pass::default()),
        "tries" => options.balance.tries = defaults.balance.tries,
        "unanswered" => options.unanswered_max = defaults.unanswered_max,
        "window" => options.steal = StealOptions { eager: options.steal.eager, ..defaults.steal },
        _ => unreachable!("parsed names are known"),
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: fmt::Display>(items: impl Iterator<Item = T>) -> String {
            items.map(|item| item.to_string()).collect::<Vec<_>>().join(",")
        }
        let parts = [
            self.faults.as_ref().map(|kept| format!("faults={}", list(kept.iter()))),
            self.jobs.as_ref().map(|kept| format!("jobs={}", list(kept.iter()))),
            self.sites.as_ref().map(|kept| format!("sites={}", list(kept.iter()))),
            (!self.plain.is_empty()).then(|| format!("plain={}", list(self.plain.iter()))),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(";"))
    }
}

impl FromStr for Reduction {
    type Err = ReductionError;

    fn from_str(text: &str) -> Result<Reduction, ReductionError> {
        let mut reduction = Reduction::default();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let Some((name, list)) = part.split_once('=') else {
                return Err(ReductionError(format!(
                    "{part:?} is no list; write faults=, jobs=, sites= or plain="
                )));
            };
            let items = list.split(',').filter(|item| !item.is_empty());
            match name {
                "faults" => reduction.faults = Some(numbers(items)?),
                "jobs" => reduction.jobs = Some(numbers(items)?),
                "sites" => reduction.sites = Some(numbers(items)?),
                "plain" => {
                    for item in items {
                        let known = PLAIN.iter().find(|&&name| name == item);
                        reduction.plain.insert(known.ok_or_else(|| {
                            ReductionError(format!(
                                "{item:?} cannot be plain; write some of {}",
                                PLAIN.join(", ")
                            ))
                        })?);
                    }
                }
                _ => {
                    return Err(ReductionError(format!(
                        "unknown list {name:?}; write faults, jobs, sites or plain"
                    )));
                }
            }
        }
        if reduction.sites.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(ReductionError("no site is left; name one".to_owned()));
        }
        Ok(reduction)
    }
}

fn numbers<'a, T: FromStr + Ord>(
    items: impl Iterator<Item = &'a str>,
) -> Result<BTreeSet<T>, ReductionError> {
    items.map(|item| item.parse().map_err(|_| ReductionError(format!("{item:?} is no number")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduction_is_read_as_it_is_written() {
        for text in ["", "faults=", "faults=0,3;jobs=1,7;sites=2,4;plain=network,window", "jobs=5"] {
            assert_eq!(text.parse::<Reduction>().expect("it is one").to_string(), text);
        }
        for text in ["faults", "faults=x", "plain=colour", "sites=", "moons=1"] {
            assert!(text.parse::<Reduction>().is_err(), "{text}");
        }
    }
}
