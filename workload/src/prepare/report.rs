//! How often each rule of preparation was used.

use std::fmt;

use scheduler::{Span, Time};
use serde::Serialize;

use super::switches::Filter;

/// A rule that drops or changes a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Dropped: job number not positive.
    DroppedJobId,
    /// Dropped: submitted before the start of the log.
    DroppedSubmit,
    /// Dropped: run time not positive.
    DroppedRunTime,
    /// Dropped: processors not positive.
    DroppedProcessors,
    /// Dropped: requested time not positive.
    DroppedRequestedTime,
    /// Dropped: user not positive.
    DroppedUser,
    /// Dropped: wider than the widest site.
    DroppedTooWide,
    /// Changed: the size came from the other field.
    SizeFromOtherField,
    /// Changed: no size known, one processor assumed.
    OneProcessorAssumed,
    /// Changed: an unknown run time became 0.
    UnknownRunTimeAsZero,
    /// Changed: no requested time known, the run time taken.
    EstimateFromRunTime,
    /// Changed: no requested time known, a given time taken.
    EstimateMadeUp,
    /// Changed: stopped at the requested time.
    StoppedAtEstimate,
    /// Changed: the requested time was raised to the run time.
    EstimateExtended,
    /// Kept as is: runs past its requested time.
    RunsPastEstimate,
    /// Changed: the requested time was replaced by one from the run time.
    EstimateReplaced,
}

impl Rule {
    /// All rules in the order of reports: those that drop first.
    pub const ALL: [Rule; 16] = [
        Rule::DroppedJobId,
        Rule::DroppedSubmit,
        Rule::DroppedRunTime,
        Rule::DroppedProcessors,
        Rule::DroppedRequestedTime,
        Rule::DroppedUser,
        Rule::DroppedTooWide,
        Rule::SizeFromOtherField,
        Rule::OneProcessorAssumed,
        Rule::UnknownRunTimeAsZero,
        Rule::EstimateFromRunTime,
        Rule::EstimateMadeUp,
        Rule::StoppedAtEstimate,
        Rule::EstimateExtended,
        Rule::RunsPastEstimate,
        Rule::EstimateReplaced,
    ];

    /// True for a rule that drops a job.
    pub fn drops(self) -> bool {
        self <= Rule::DroppedTooWide
    }

    /// True for a rule that changes a job.
    pub fn changes(self) -> bool {
        !self.drops() && self != Rule::RunsPastEstimate
    }

    pub(super) fn of_filter(filter: Filter) -> Rule {
        match filter {
            Filter::JobId => Rule::DroppedJobId,
            Filter::Submit => Rule::DroppedSubmit,
            Filter::RunTime => Rule::DroppedRunTime,
            Filter::Processors => Rule::DroppedProcessors,
            Filter::RequestedTime => Rule::DroppedRequestedTime,
            Filter::User => Rule::DroppedUser,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::DroppedJobId => "dropped: job number not positive",
            Rule::DroppedSubmit => "dropped: submit time negative",
            Rule::DroppedRunTime => "dropped: run time not positive",
            Rule::DroppedProcessors => "dropped: processors not positive",
            Rule::DroppedRequestedTime => "dropped: requested time not positive",
            Rule::DroppedUser => "dropped: user not positive",
            Rule::DroppedTooWide => "dropped: wider than the widest site",
            Rule::SizeFromOtherField => "changed: size taken from the other field",
            Rule::OneProcessorAssumed => "changed: size unknown, one processor assumed",
            Rule::UnknownRunTimeAsZero => "changed: run time unknown, 0 assumed",
            Rule::EstimateFromRunTime => "changed: no requested time, run time taken",
            Rule::EstimateMadeUp => "changed: no requested time, the given one taken",
            Rule::StoppedAtEstimate => "changed: stopped at the requested time",
            Rule::EstimateExtended => "changed: requested time raised to the run time",
            Rule::RunsPastEstimate => "kept: runs past the requested time",
            Rule::EstimateReplaced => "changed: requested time replaced by one from the run time",
        })
    }
}

/// What preparation did to a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrepareReport {
    /// Records looked at.
    pub read: u64,
    /// Jobs that came out.
    pub kept: u64,
    pub(super) counts: [u64; Rule::ALL.len()],
    /// Each use of a rule that drops or changes, in the order of records.
    pub uses: Vec<Use>,
    /// The record that rules are used on.
    pub(super) job: i64,
    pub(super) submit: Time,
}

/// A rule that was used on a record: what a part of a log is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The number of the job in its log.
    pub job: i64,
    /// When it was submitted.
    pub submit: Time,
    /// What was done.
    pub rule: Rule,
    /// How much of its run time was taken away; all that the log knows of, if the job was dropped.
    pub cut: Span,
    /// On how many processors; 0 where the log does not say.
    pub processors: u32,
}

/// One row of a [`PrepareReport`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RuleCount {
    /// The rule that was used.
    pub rule: Rule,
    /// Jobs it was used on.
    pub count: u64,
}

impl PrepareReport {
    /// Rules are used on this record from now on.
    pub(super) fn of(&mut self, job: i64, submit: Time) {
        (self.job, self.submit) = (job, submit);
    }

    pub(super) fn add(&mut self, rule: Rule) {
        self.add_cut(rule, Span::ZERO, 0);
    }

    /// The same for a rule that takes away run time on so many processors.
    pub(super) fn add_cut(&mut self, rule: Rule, cut: Span, processors: u32) {
        self.counts[rule as usize] += 1;
        if rule.drops() || rule.changes() {
            self.uses.push(Use { job: self.job, submit: self.submit, rule, cut, processors });
        }
    }

    pub(super) fn add_if(&mut self, used: bool, rule: Rule) {
        self.counts[rule as usize] += u64::from(used);
    }

    /// How many jobs a rule was used on.
    pub fn count(&self, rule: Rule) -> u64 {
        self.counts[rule as usize]
    }

    /// Jobs dropped by any rule.
    pub fn dropped(&self) -> u64 {
        Rule::ALL.into_iter().filter(|rule| rule.drops()).map(|rule| self.count(rule)).sum()
    }

    /// The rules that were used.
    pub fn iter(&self) -> impl Iterator<Item = RuleCount> + '_ {
        let counts = Rule::ALL.into_iter().zip(self.counts);
        counts.filter(|&(_, count)| count > 0).map(|(rule, count)| RuleCount { rule, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_rules_is_in_declaration_order() {
        for (index, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, index);
            assert_eq!(rule.drops(), rule.to_string().starts_with("dropped"));
            assert_eq!(rule.changes(), rule.to_string().starts_with("changed"));
        }
    }
}
