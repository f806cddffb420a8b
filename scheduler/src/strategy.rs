//! Names of strategies and local schedulers as users write them, and what they mean.
//!
//! What was typed is parsed once, here; everything else works on these types.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::class::{Order, Selection, Threshold};

/// The switches of the stealing algorithm ST_x.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steal {
    /// The border between big and small jobs.
    pub threshold: Threshold,
    /// In which order classes are taken.
    pub order: Order,
    /// Which job of a list is taken.
    pub select: Selection,
}

impl Steal {
    /// ST_x as published: order AHB, first fit.
    pub fn with_threshold(threshold: Threshold) -> Steal {
        Steal { threshold, order: Order::Ahb, select: Selection::FirstFit }
    }
}

/// How jobs find a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// Every job stays at its home site under the local scheduler.
    Local,
    /// Job stealing, Schwiegelshohn, Tchernykh, Yahyapour 2008 (ST_x).
    Steal(Steal),
    /// Stealing from any smaller site what fits at once (ST50g); no guarantee.
    StealGreedy(Steal),
    /// One list of all jobs in queue order (List Common Pool).
    CommonPool,
}

/// A strategy, and whether its ideal reference runs instead of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategySpec {
    /// The strategy.
    pub strategy: Strategy,
    /// Global view, no messages.
    pub ideal: bool,
}

/// The scheduler of one site's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalScheduler {
    /// Start the head while it fits.
    Fcfs,
    /// EASY backfilling, candidates in queue order.
    #[default]
    Easy,
    /// EASY backfilling, the candidate that fills most.
    EasyBestFit,
    /// Conservative backfilling with compression: a planned start never gets later.
    Conservative,
    /// Conservative backfilling that plans anew at every pass.
    ConservativeReplan,
    /// Scan in queue order, start everything that fits.
    List,
}

impl LocalScheduler {
    /// All six.
    pub const ALL: [LocalScheduler; 6] = [
        LocalScheduler::Fcfs,
        LocalScheduler::Easy,
        LocalScheduler::EasyBestFit,
        LocalScheduler::Conservative,
        LocalScheduler::ConservativeReplan,
        LocalScheduler::List,
    ];

    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            LocalScheduler::Fcfs => "fcfs",
            LocalScheduler::Easy => "easy",
            LocalScheduler::EasyBestFit => "easy-best-fit",
            LocalScheduler::Conservative => "conservative",
            LocalScheduler::ConservativeReplan => "conservative-replan",
            LocalScheduler::List => "list",
        }
    }
}

/// When a local scheduler decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pass {
    /// Once per instant, after all completions and then all arrivals.
    #[default]
    Batch,
    /// After every event: submissions first, then terminations in start order. A running job whose estimated
    /// end is now counts as free already.
    PerEvent,
}

impl Pass {
    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Pass::Batch => "batch",
            Pass::PerEvent => "per-event",
        }
    }
}

/// Why a strategy name means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("strategy {text:?}: {reason}")]
pub struct StrategyError {
    text: String,
    reason: String,
}

const NAMES: &str = "use local, st:X, st-greedy:X or common-pool (X in percent, 0 to 100), \
                     options as in st:50,order=bah,select=easy, and the prefix ideal/ for the reference";

impl FromStr for StrategySpec {
    type Err = StrategyError;

    fn from_str(text: &str) -> Result<StrategySpec, StrategyError> {
        let fail = |reason: String| StrategyError { text: text.to_string(), reason };
        let (ideal, rest) = match text.strip_prefix("ideal/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut parts = rest.split(',');
        let head = parts.next().unwrap_or_default();
        let (name, argument) = match head.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (head, None),
        };
        let mut steal = Steal::with_threshold(Threshold::HALF);
        let steals = matches!(name, "st" | "st-greedy");
        match (steals, argument) {
            (true, Some(percent)) => {
                steal.threshold = percent.parse().ok().and_then(Threshold::new).ok_or_else(|| {
                    fail(format!("threshold {percent:?} is not a whole number from 0 to 100"))
                })?;
            }
            (true, None) => return Err(fail(format!("a threshold is missing, as in {name}:50"))),
            (false, Some(_)) => return Err(fail(format!("{name} takes no threshold; {NAMES}"))),
            (false, None) => {}
        }
        for option in parts {
            match (steals, option.split_once('=')) {
                (true, Some(("order", order))) => steal.order = order.parse().map_err(fail)?,
                (true, Some(("select", select))) => steal.select = select.parse().map_err(fail)?,
                _ => return Err(fail(format!("unknown option {option:?}; {NAMES}"))),
            }
        }
        if name == "st-greedy" && steal.select == Selection::Easy {
            let reason =
                "a reservation in one of several lists protects nothing; select first-fit, best-fit or head";
            return Err(fail(reason.to_string()));
        }
        let strategy = match name {
            "local" => Strategy::Local,
            "st" => Strategy::Steal(steal),
            "st-greedy" => Strategy::StealGreedy(steal),
            "common-pool" => Strategy::CommonPool,
            _ => return Err(fail(format!("unknown name; {NAMES}"))),
        };
        Ok(StrategySpec { strategy, ideal })
    }
}

impl fmt::Display for StrategySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ideal {
            f.write_str("ideal/")?;
        }
        let (name, steal) = match &self.strategy {
            Strategy::Local => return f.write_str("local"),
            Strategy::CommonPool => return f.write_str("common-pool"),
            Strategy::Steal(steal) => ("st", steal),
            Strategy::StealGreedy(steal) => ("st-greedy", steal),
        };
        write!(f, "{name}:{}", steal.threshold)?;
        if steal.order != Order::default() {
            write!(f, ",order={}", steal.order.name())?;
        }
        if steal.select != Selection::default() {
            write!(f, ",select={}", steal.select.name())?;
        }
        Ok(())
    }
}

impl FromStr for LocalScheduler {
    type Err = String;
    fn from_str(text: &str) -> Result<LocalScheduler, String> {
        LocalScheduler::ALL.into_iter().find(|local| local.name() == text).ok_or_else(|| {
            format!(
                "unknown local scheduler {text:?}; use one of fcfs, easy, easy-best-fit, conservative, \
                 conservative-replan, list"
            )
        })
    }
}

impl FromStr for Pass {
    type Err = String;
    fn from_str(text: &str) -> Result<Pass, String> {
        [Pass::Batch, Pass::PerEvent]
            .into_iter()
            .find(|pass| pass.name() == text)
            .ok_or_else(|| format!("unknown pass {text:?}; use batch or per-event"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for text in [
            "local",
            "st:50",
            "st:0",
            "st-greedy:25",
            "common-pool",
            "ideal/st:50,order=bah",
            "st:75,order=hab,select=best-fit",
            "ideal/common-pool",
        ] {
            let spec: StrategySpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
    }

    #[test]
    fn wrong_names_say_what_to_write() {
        for (text, expected) in [
            ("st", "a threshold is missing"),
            ("st:101", "not a whole number from 0 to 100"),
            ("st:50,order=xyz", "unknown order"),
            ("st:50,colour=red", "unknown option"),
            ("st-greedy:50,select=easy", "a reservation in one of several lists"),
            ("local:5", "takes no threshold"),
            ("steal", "unknown name; use local"),
        ] {
            let error = text.parse::<StrategySpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
