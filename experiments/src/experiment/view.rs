//! How many others a site knows: `protocol.view`.

use scheduler::StrategySpec;

use super::error::{ExperimentError, wrong};
use super::file::{WrittenProtocol, WrittenView};

/// How many others a site knows; none: all. Of references and strategies without messages always none, so that a sweep may have them beside.
///
/// # Errors
/// If it is no number, or sites cannot do with some others only.
pub(super) fn of(given: &WrittenProtocol, strategy: &StrategySpec) -> Result<Option<u32>, ExperimentError> {
    let wrong = wrong("protocol.view");
    let view = match &given.view {
        None => return Ok(None),
        Some(WrittenView::Named(name)) if name == "all" => return Ok(None),
        Some(WrittenView::Named(name)) => {
            return Err(wrong(format!("{name:?} is neither \"all\" nor a number of sites, as in view = 5")));
        }
        Some(WrittenView::Count(0 | 1)) => {
            return Err(wrong("a site knows at least 2 others, or the grid is in pairs".into()));
        }
        Some(WrittenView::Count(view)) => *view,
    };
    let nature = strategy.strategy.nature();
    if strategy.ideal || !nature.talks {
        return Ok(None);
    }
    if !nature.views {
        let reason = format!(
            "under {strategy} somebody hears of all sites; use st:X, st-greedy:X or steal:RULE, or leave view out"
        );
        return Err(wrong(reason));
    }
    Ok(Some(view))
}

/// Why a view stands beside nothing that befalls sites.
pub(super) fn replaces_nobody() -> ExperimentError {
    let reason = "sites that know some others only do not replace who is lost yet; leave view out, or heartbeat and faults";
    wrong("protocol.view")(reason.into())
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;

    fn view(strategy: &str, more: &str) -> Result<Option<u32>, String> {
        let text = format!(
            "workload.trace = \"a.swf\"\ngrid.sizes = [4, 4, 8, 16]\nstrategy.name = \"{strategy}\"\n{more}"
        );
        let experiment = Experiment::resolve(&toml::from_str(&text).expect("TOML"));
        experiment.map(|experiment| experiment.options.view).map_err(|error| error.to_string())
    }

    #[test]
    fn a_view_is_some_others_of_strategies_that_can_do_with_them() {
        for strategy in ["st:50", "st-greedy:50", "steal:random", "steal:loaded,select=easy"] {
            assert_eq!(view(strategy, "protocol.view = 2"), Ok(Some(2)), "{strategy}");
        }
        for (strategy, more) in [
            ("st:50", "protocol.view = \"all\""),
            ("st:50", "protocol.view = 3"),
            ("st:50", ""),
            ("ideal/st:50", "protocol.view = 2"),
            ("local", "protocol.view = 2"),
        ] {
            assert_eq!(view(strategy, more), Ok(None), "{strategy} {more}");
        }
    }

    #[test]
    fn what_a_view_does_not_go_with_is_refused() {
        for (strategy, more, reason) in [
            ("st:50", "protocol.view = 1", "at least 2 others"),
            ("st:50", "protocol.view = \"few\"", "neither \"all\" nor a number"),
            ("common-pool", "protocol.view = 2", "somebody hears of all sites"),
            ("pool:list", "protocol.view = 2", "somebody hears of all sites"),
            ("broker:mst", "protocol.view = 2", "somebody hears of all sites"),
            ("st:50", "protocol.view = 2\nprotocol.heartbeat = \"1m\"", "do not replace who is lost"),
        ] {
            let refused = view(strategy, more).expect_err(strategy);
            assert!(refused.contains(reason), "{strategy} {more}: {refused}");
        }
    }
}
