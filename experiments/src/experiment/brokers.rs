//! Brokers of an experiment: who they are, and what they know.
//!
//! They are members of the grid under a strategy `broker:…` or `opaque:…` only, so that one file serves all strategies. Without a word
//! about them there is one, beside no site.

use protocol::{BrokerOptions, Failover, Pending, Reporting};
use scheduler::spelling::unknown;
use scheduler::{Broker, Grid, SiteId, Span, StrategySpec};

use super::file::{Written, WrittenBroker, WrittenBrokers, WrittenProtocol};
use super::{ExperimentError, name_of_a_file, span, wrong};

/// Most brokers that are beside no site: more than any site needs, and few enough to list.
const SHARED_MAX: usize = 1000;

/// The grid with its brokers, those beside no site first.
pub(super) fn join(written: &Written, strategy: &StrategySpec, grid: Grid) -> Result<Grid, ExperimentError> {
    let given = brokers(written, &grid)?;
    if !strategy.strategy.nature().brokers {
        return Ok(grid);
    }
    let (beside, shared): (Vec<_>, Vec<_>) = given.into_iter().partition(|(_, beside)| beside.is_some());
    let sites = grid.sites().iter().map(|site| (site.name.clone(), site.processors));
    let joined = Grid::with_brokers(sites, shared.into_iter().chain(beside));
    joined.map_err(|error| wrong("[[brokers]]")(error.to_string()))
}

/// More weights than there are clusters are of none: whoever wrote them thinks of another grid.
pub(super) fn check_weights(written: &Written, grid: &Grid) -> Result<(), ExperimentError> {
    let name = written.strategy.name.as_deref().unwrap_or_default();
    let weights = name.split(',').find_map(|option| option.strip_prefix("w="));
    let given = weights.map_or(0, |weights| weights.split('/').count());
    let clusters = grid.machines().count();
    if given <= clusters.max(1) {
        return Ok(());
    }
    Err(wrong("--strategy (strategy.name)")(format!(
        "w has {given} weights and the grid {clusters} clusters; give one for all, or one for each at most"
    )))
}

fn brokers(written: &Written, grid: &Grid) -> Result<Vec<(String, Option<SiteId>)>, ExperimentError> {
    let wrong_count = wrong("--brokers (grid.brokers)");
    match &written.grid.brokers {
        Some(_) if !written.brokers.is_empty() => {
            Err(wrong_count("[[brokers]] are given, too; keep one of the two".to_string()))
        }
        Some(WrittenBrokers::Named(each)) if each == "each" => {
            Ok(grid.sites().iter().map(|site| (format!("broker-{}", site.name), Some(site.id))).collect())
        }
        Some(given) => {
            let count = match given {
                WrittenBrokers::Count(count) => Some(*count),
                WrittenBrokers::Named(text) => text.parse().ok(),
            };
            match count {
                Some(1) => Ok(vec![("broker".to_string(), None)]),
                Some(count) if (2..=SHARED_MAX).contains(&count) => {
                    Ok((1..=count).map(|number| (format!("broker{number}"), None)).collect())
                }
                _ => Err(wrong_count(format!("write each, or a number from 1 to {SHARED_MAX}"))),
            }
        }
        None if written.brokers.is_empty() => Ok(vec![("broker".to_string(), None)]),
        None => written.brokers.iter().zip(1..).map(|(broker, entry)| one(broker, entry, grid)).collect(),
    }
}

fn one(
    broker: &WrittenBroker,
    entry: usize,
    grid: &Grid,
) -> Result<(String, Option<SiteId>), ExperimentError> {
    let wrong = wrong(format!("brokers[{entry}]"));
    let beside = match &broker.at {
        None => None,
        Some(at) => {
            let site = grid.sites().iter().find(|site| site.name == *at);
            let names = || grid.sites().iter().map(|site| site.name.as_str()).collect::<Vec<_>>().join(", ");
            Some(site.ok_or_else(|| wrong(format!("{at:?} is no site; the grid has {}", names())))?)
        }
    };
    let name = match (&broker.name, beside) {
        (Some(name), _) => name.clone(),
        (None, Some(site)) => format!("broker-{}", site.name),
        (None, None) => "broker".to_string(),
    };
    name_of_a_file(&name).map_err(|reason| wrong(format!("{name:?} {reason}")))?;
    Ok((name, beside.map(|site| site.id)))
}

/// What they know, and when.
pub(super) fn options(
    given: &WrittenProtocol,
    strategy: &StrategySpec,
) -> Result<BrokerOptions, ExperimentError> {
    let place = "--report (protocol.report)";
    let report = given.report.as_deref();
    let (rule, argument) = report.map_or(("change", None), |text| match text.split_once(':') {
        Some((rule, argument)) => (rule, Some(argument)),
        None => (text, None),
    });
    let report = match (rule, argument) {
        ("change", None) => Reporting::Change,
        ("every", Some(period)) => match span(place, period)? {
            period if period > Span::ZERO => Reporting::Every(period),
            _ => return Err(wrong(place)("reports are some time apart; write every:60s".to_string())),
        },
        ("probe", Some(count)) => match count.parse() {
            Ok(count) if count > 0 => Reporting::Probe(count),
            _ => return Err(wrong(place)(format!("{count:?} is no number of sites; write probe:2"))),
        },
        _ => {
            let rules = "change, every:60s or probe:2";
            return Err(wrong(place)(unknown("rule", report.unwrap_or_default(), rules)));
        }
    };
    let rules = strategy.strategy.broker().filter(|_| matches!(report, Reporting::Probe(_)));
    if rules.is_some_and(Broker::plans_batches) {
        let reason = "a batch is planned by what is known of all sites; write change or every:60s";
        return Err(wrong(place)(reason.to_string()));
    }
    if rules.is_some_and(Broker::holds_back) {
        // Who asks as jobs come hears of no room after the last one: those that wait would wait for ever.
        let reason = "jobs wait in the upper queue until sites tell of room, and nobody asks again; write change or every:60s, or a \
                      strategy with limit=none and no coallocate";
        return Err(wrong(place)(reason.to_string()));
    }
    let pending = match given.pending.as_deref() {
        None | Some("count") => Pending::Count,
        Some("ignore") => Pending::Ignore,
        Some(other) => {
            let reason = unknown("rule", other, "count or ignore");
            return Err(wrong("protocol.pending")(reason));
        }
    };
    let failover = match given.failover.as_deref() {
        None | Some("next") => Failover::Next,
        Some("local") => Failover::Local,
        Some(other) => {
            let reason = unknown("rule", other, "next or local");
            return Err(wrong("protocol.failover")(reason));
        }
    };
    Ok(BrokerOptions { report, pending, failover })
}

/// Whether a broker whose messages take no time knows the true state of the sites whenever it decides.
pub(super) fn know_at_once(strategy: &StrategySpec, options: &BrokerOptions) -> bool {
    !strategy.strategy.broker().is_some_and(Broker::needs_reports)
        || (options.report, options.pending) == (Reporting::default(), Pending::default())
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;

    #[test]
    fn sites_are_not_asked_only_as_jobs_come_where_jobs_wait_at_the_broker() {
        let said = |strategy: &str| {
            let text = format!(
                "grid.sizes = [4, 8]\nworkload.trace = \"log.swf\"\nstrategy.name = \"{strategy}\"\nprotocol.report = \"probe:1\"\n"
            );
            let read = Experiment::resolve(&toml::from_str(&text).expect("TOML"));
            read.err().map(|error| error.to_string())
        };
        for strategy in ["broker:mcisne", "broker:mcisne,limit=none,coallocate=dp"] {
            let said = said(strategy).expect("it is refused");
            assert!(said.contains("write change or every:60s"), "{strategy}: {said}");
        }
        for strategy in ["broker:mcisne,limit=none", "broker:mct"] {
            assert_eq!(said(strategy), None, "{strategy}");
        }
    }
}
