//! Brokers before sites that they neither see into nor control: what is written behind `opaque:`, and what of it can be run.
//!
//! The rules and their options are those of [`crate::learning`].

use crate::learning::options::{DispatchRule, Options};

/// Names that stand behind `broker:` as well: no rule of the two-level brokers has them.
const ALSO_BROKERS: [DispatchRule; 2] = [DispatchRule::Ag, DispatchRule::Mqd];

/// Whether a rule of `broker:` is one of these.
pub(super) fn is_meant(rule: &str) -> bool {
    ALSO_BROKERS.iter().any(|one| one.name() == rule)
}

pub(super) fn parse(rule: &str) -> Result<Options, String> {
    DispatchRule::parse("opaque", rule).map(Options::new)
}

/// Why it cannot be run, if it cannot.
pub(super) fn refused(options: &Options) -> Option<String> {
    use DispatchRule::{MqdDuplication, Replication, StorageAffinity};
    let rule = options.rule.name();
    match options.rule {
        _ if options.copies == 1 => None,
        Replication | MqdDuplication | StorageAffinity => {
            Some(format!("{rule} makes copies, and here a job is at one site only; write copies=1"))
        }
        _ => None,
    }
}

/// Each rule that can be run with the default of all else.
pub(super) fn carried() -> impl Iterator<Item = Options> {
    DispatchRule::ALL.iter().map(|&rule| Options::new(rule)).filter(|options| refused(options).is_none())
}
