//! The switches that decide which numbers of a trace are used, as they are typed.
//!
//! Names and meanings are those that reports print, so that two runs can be compared by their reports.

use std::fmt;
use std::str::FromStr;

use scheduler::{SiteId, Span, spelling};

use crate::record::Record;

/// A switch has no such value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{switch} is `{value}`{hint}; {choices}")]
pub struct SwitchError {
    /// Name of the switch.
    pub switch: &'static str,
    /// What was given.
    pub value: String,
    /// What is wrong with it, or was meant, to stand behind it.
    pub hint: String,
    /// What could be.
    pub choices: String,
}

/// The error of a switch that is one of several words.
pub(crate) fn unknown(switch: &'static str, value: &str, choices: &str) -> SwitchError {
    let hint = spelling::hint_among(value, choices);
    SwitchError { switch, value: value.to_string(), hint, choices: format!("use one of: {choices}") }
}

/// Which field is the size of a job; the others stand in where it is not positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// SWF field 8 (default).
    #[default]
    Requested,
    /// SWF field 5.
    Allocated,
    /// The nodes of the descriptor in field 21, which some logs have, else those requested.
    Descriptor,
}

impl Size {
    /// The size by this rule, and whether it is the other field's. Not positive if neither is known.
    pub(super) fn processors(self, record: &Record) -> (i32, bool) {
        let (first, second) = match self {
            Size::Requested => (record.requested, record.allocated),
            Size::Allocated => (record.allocated, record.requested),
            Size::Descriptor if record.described > 0 => return (record.described, false),
            // Of the other field either way.
            Size::Descriptor if record.requested > 0 => return (record.requested, true),
            Size::Descriptor => (-1, record.allocated),
        };
        if first > 0 { (first, false) } else { (second, second > 0) }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Size::Requested => "requested",
            Size::Allocated => "allocated",
            Size::Descriptor => "descriptor",
        })
    }
}

impl FromStr for Size {
    type Err = SwitchError;
    fn from_str(text: &str) -> Result<Self, SwitchError> {
        match text {
            "requested" => Ok(Size::Requested),
            "allocated" => Ok(Size::Allocated),
            "descriptor" => Ok(Size::Descriptor),
            _ => Err(unknown("size", text, "requested, allocated, descriptor")),
        }
    }
}

/// A multiple of the run time, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    thousandths: u64,
}

impl Factor {
    const ONE: u64 = 1000;

    /// This multiple of a run time, rounded up to a microsecond, at most [`Span::MAX`].
    pub fn of(self, run_time: Span) -> Span {
        let product = i128::from(run_time.as_micros()) * i128::from(self.thousandths);
        let micros = (product + i128::from(Self::ONE) - 1).div_euclid(i128::from(Self::ONE));
        Span::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span::from_micros((self.thousandths * 1000).cast_signed()).fmt(f)
    }
}

/// What strategies are told about run times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimate {
    /// The user's requested time, SWF field 9; of a missing one [`super::MissingEstimate`] tells (default).
    #[default]
    User,
    /// The run time itself.
    Exact,
    /// A multiple of the run time, at least 1.
    Factor(Factor),
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Estimate::User => f.write_str("user"),
            Estimate::Exact => f.write_str("exact"),
            Estimate::Factor(factor) => write!(f, "factor:{factor}"),
        }
    }
}

impl FromStr for Estimate {
    type Err = SwitchError;
    fn from_str(text: &str) -> Result<Self, SwitchError> {
        let choices = "user, exact, factor:F with F from 1 to 1000000, at most three decimals";
        match text {
            "user" => return Ok(Estimate::User),
            "exact" => return Ok(Estimate::Exact),
            _ => {}
        }
        let factor = text.strip_prefix("factor:").and_then(|factor| factor.parse::<f64>().ok());
        let thousandths = factor.map(|factor| factor * Factor::ONE as f64);
        match thousandths {
            // A factor below 1 would make every job overrun, which is what `overrun` is for.
            Some(exact) if (1e3..=1e9).contains(&exact) && (exact - exact.round()).abs() < 1e-6 => {
                Ok(Estimate::Factor(Factor { thousandths: exact.round() as u64 }))
            }
            _ => Err(unknown("estimate", text, choices)),
        }
    }
}

/// What becomes of a job that would run past its estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overrun {
    /// Stopped there: the run time becomes the estimate.
    Kill,
    /// The estimate becomes the run time.
    Extend,
    /// The job runs on past its estimate, and both numbers stay: what the log says happened (default).
    #[default]
    AsIs,
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Overrun::Kill => "kill",
            Overrun::Extend => "extend",
            Overrun::AsIs => "as-is",
        })
    }
}

impl FromStr for Overrun {
    type Err = SwitchError;
    fn from_str(text: &str) -> Result<Self, SwitchError> {
        match text {
            "kill" => Ok(Overrun::Kill),
            "extend" => Ok(Overrun::Extend),
            "as-is" => Ok(Overrun::AsIs),
            _ => Err(unknown("overrun", text, "kill, extend, as-is")),
        }
    }
}

/// Where the jobs of a trace are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// All at one site.
    Site(SiteId),
    /// At the site whose number is in SWF field 15.
    Queue,
    /// At the site whose number is in SWF field 16.
    Partition,
    /// At the site that the format itself names (GWF `OrigSiteID`, Batsim `extra_data.site`).
    Recorded,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Site(site) => write!(f, "site:{site}"),
            Origin::Queue => f.write_str("queue"),
            Origin::Partition => f.write_str("partition"),
            Origin::Recorded => f.write_str("recorded"),
        }
    }
}

impl FromStr for Origin {
    type Err = SwitchError;
    fn from_str(text: &str) -> Result<Self, SwitchError> {
        match text {
            "queue" => Ok(Origin::Queue),
            "partition" => Ok(Origin::Partition),
            "recorded" => Ok(Origin::Recorded),
            _ => text
                .strip_prefix("site:")
                .and_then(|number| number.parse().ok())
                .filter(|&number| number > 0)
                .map(|number| Origin::Site(SiteId(number)))
                .ok_or_else(|| unknown("origin", text, "site:N (from 1), queue, partition, recorded")),
        }
    }
}

/// A test that a job's value is as it must be, or the job is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filter {
    /// The job number is positive.
    JobId,
    /// The submit time is not negative.
    Submit,
    /// The run time is positive.
    RunTime,
    /// The processors, by [`Size`], are positive.
    Processors,
    /// The requested time is positive.
    RequestedTime,
    /// The user is positive.
    User,
}

impl Filter {
    /// All filters, in the order in which they are tried.
    pub const ALL: [Filter; 6] = [
        Filter::JobId,
        Filter::Submit,
        Filter::RunTime,
        Filter::Processors,
        Filter::RequestedTime,
        Filter::User,
    ];

    fn name(self) -> &'static str {
        match self {
            Filter::JobId => "job-id",
            Filter::Submit => "submit",
            Filter::RunTime => "run-time",
            Filter::Processors => "processors",
            Filter::RequestedTime => "requested-time",
            Filter::User => "user",
        }
    }

    fn passes(self, record: &Record, processors: i32) -> bool {
        match self {
            Filter::JobId => record.job > 0,
            Filter::Submit => record.submit >= Span::ZERO,
            Filter::RunTime => record.run_time > Span::ZERO,
            Filter::Processors => processors > 0,
            Filter::RequestedTime => record.requested_time > Span::ZERO,
            Filter::User => record.user > 0,
        }
    }
}

/// A set of [`Filter`]s. Written as names with commas between, or as `default`, `all` or `none`; `all` is
/// the set of the grid experiments (Quezada Pina 2012, workload construction).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filters {
    on: [bool; Filter::ALL.len()],
}

impl Filters {
    /// The set that drops nothing.
    pub const NONE: Filters = Filters { on: [false; Filter::ALL.len()] };
    /// The set of all filters.
    pub const ALL: Filters = Filters { on: [true; Filter::ALL.len()] };

    /// The set with one more filter.
    pub const fn with(mut self, filter: Filter) -> Filters {
        self.on[filter as usize] = true;
        self
    }

    /// The set without a filter.
    pub const fn without(mut self, filter: Filter) -> Filters {
        self.on[filter as usize] = false;
        self
    }

    /// Whether a filter is in the set.
    pub fn contains(&self, filter: Filter) -> bool {
        self.on[filter as usize]
    }

    fn iter(&self) -> impl Iterator<Item = Filter> + '_ {
        Filter::ALL.into_iter().filter(|&filter| self.contains(filter))
    }

    /// The first filter that a record does not pass.
    pub(super) fn first_against(&self, record: &Record, processors: i32) -> Option<Filter> {
        self.iter().find(|filter| !filter.passes(record, processors))
    }
}

impl Default for Filters {
    /// Submit time, run time and processors: what a job cannot be simulated without. A missing estimate has
    /// a stand-in, and no strategy needs the user.
    fn default() -> Self {
        Filters::NONE.with(Filter::Submit).with(Filter::RunTime).with(Filter::Processors)
    }
}

impl fmt::Display for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Filter::name).collect();
        if names.is_empty() { f.write_str("none") } else { f.write_str(&names.join(",")) }
    }
}

impl FromStr for Filters {
    type Err = SwitchError;
    fn from_str(text: &str) -> Result<Self, SwitchError> {
        let choices = "default, all, none, or names with commas between: job-id, submit, run-time, processors, \
                       requested-time, user";
        match text {
            "default" => return Ok(Filters::default()),
            "all" => return Ok(Filters::ALL),
            "none" => return Ok(Filters::NONE),
            _ => {}
        }
        text.split(',').try_fold(Filters::NONE, |filters, name| {
            let filter = Filter::ALL.into_iter().find(|filter| filter.name() == name.trim());
            filter.map(|filter| filters.with(filter)).ok_or_else(|| unknown("filters", name, choices))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip<T: FromStr<Err = SwitchError> + fmt::Display>(text: &str) {
        assert_eq!(text.parse::<T>().unwrap().to_string(), text);
    }

    #[test]
    fn switches_are_read_as_they_are_written() {
        for text in ["requested", "allocated", "descriptor"] {
            round_trip::<Size>(text);
        }
        for text in ["user", "exact", "factor:2", "factor:1.5"] {
            round_trip::<Estimate>(text);
        }
        for text in ["kill", "extend", "as-is"] {
            round_trip::<Overrun>(text);
        }
        for text in ["site:3", "queue", "partition", "recorded"] {
            round_trip::<Origin>(text);
        }
        for text in ["none", "submit,run-time", "job-id,submit,run-time,processors,requested-time,user"] {
            round_trip::<Filters>(text);
        }
        assert_eq!("all".parse(), Ok(Filters::ALL));
    }

    #[test]
    fn wrong_switches_are_refused_with_the_choices() {
        let error = "factor:0.5".parse::<Estimate>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "estimate is `factor:0.5`; use one of: user, exact, factor:F with F from 1 to 1000000, at most three decimals"
        );
        assert!("factor:NaN".parse::<Estimate>().is_err());
        assert!("site:0".parse::<Origin>().is_err());
        assert!("run-time,".parse::<Filters>().is_err());
        assert!("".parse::<Size>().is_err());
    }

    proptest! {
        #[test]
        fn a_factor_never_gives_less_than_the_run_time(micros in 0..i64::MAX, thousandths in 1000..1_000_000_u64) {
            let run_time = Span::from_micros(micros);
            let factor = Factor { thousandths };
            prop_assert!(factor.of(run_time) >= run_time);
        }
    }
}
