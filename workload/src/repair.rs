//! What in a log is not as its format wishes, by kind, with where it was first seen.
//!
//! Reading never drops a job in silence: what cannot be read is a [`crate::TraceError`], what can is counted
//! here. What preparation drops or changes later is counted in [`crate::prepare::PrepareReport`].

use std::fmt;

use serde::Serialize;

/// A kind of awkward value, and what reading made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// No comment line at all: machine size and clock are unknown.
    MissingHeader,
    /// More than 18 columns; the rest was ignored.
    ExtraColumns,
    /// At least 9 but fewer than 18 columns; the missing ones became -1.
    MissingColumns,
    /// A field that counts something had a decimal point; the part after it was dropped.
    FractionDropped,
    /// A name where a number belongs; names were numbered in order of appearance.
    NameNumbered,
    /// Submit times were dates or Unix times; all were shifted to start near 0.
    EpochShifted,
    /// A submit time before that of the line above.
    OutOfOrder,
    /// A negative submit time, kept.
    NegativeSubmit,
    /// A job number below 1, kept.
    BadJobNumber,
    /// An unknown run time, kept as -1.
    MissingRunTime,
    /// A run time of 0, kept.
    ZeroRunTime,
    /// Neither allocated nor requested processors, kept as -1.
    MissingProcessors,
    /// Allocated processors alone; the request is unknown.
    OnlyAllocated,
    /// Requested processors alone; what was allocated is unknown.
    OnlyRequested,
    /// An unknown requested time, kept as -1.
    MissingEstimate,
    /// A run time beyond the requested time, kept.
    RanPastEstimate,
    /// Dependencies between jobs; they were ignored.
    DependencyIgnored,
    /// A job profile other than a plain delay that still says how long it takes.
    ProfileSimplified,
    /// A step of a job (`123.batch`); the line was left out.
    StepIgnored,
    /// One line for all tasks of an array that have not started; it was left out.
    ArrayRestIgnored,
    /// A job that an earlier line has; the later line counts if the earlier one had no end, else it was left out.
    LineRepeated,
    /// A component of a heterogeneous job after the first; its processors were added to those of the first.
    ComponentJoined,
    /// Another run of a job that was requeued; kept as a job of its own.
    RunAgain,
    /// A job without an end when the log was written; its run time was taken as -1.
    Unfinished,
    /// A local time that a change of clocks makes happen twice or never.
    ClockChange,
    /// A start before the submission, or an end before the start; taken as at the same time.
    TimesCrossed,
    /// A state that has no counterpart; the status is unknown.
    StateUnknown,
    /// A separator within a name; taken as part of it.
    SeparatorInName,
    /// A line break within a name; taken as part of it.
    LineBreakInName,
    /// A field that no run needs could not be read; taken as -1.
    FieldUnread,
    /// A number that is too large for the field; it was given one that no other job has.
    LabelNumbered,
    /// A part of a job (status 2 to 4) that has a line of its own; the line of the part was left out.
    BurstLeftOut,
    /// A part of a job (status 2 to 4) without a line of its own; joined to its first part.
    BurstJoined,
    /// More or fewer processors allocated than requested, kept.
    ProcessorsDiffer,
    /// More processors allocated than the machine has, kept.
    BeyondMachine,
    /// A part of a processor; rounded up to a whole one.
    RoundedUp,
}

impl Repair {
    /// All kinds, in the order of reports.
    pub const ALL: [Repair; 36] = [
        Repair::MissingHeader,
        Repair::ExtraColumns,
        Repair::MissingColumns,
        Repair::FractionDropped,
        Repair::NameNumbered,
        Repair::EpochShifted,
        Repair::OutOfOrder,
        Repair::NegativeSubmit,
        Repair::BadJobNumber,
        Repair::MissingRunTime,
        Repair::ZeroRunTime,
        Repair::MissingProcessors,
        Repair::OnlyAllocated,
        Repair::OnlyRequested,
        Repair::MissingEstimate,
        Repair::RanPastEstimate,
        Repair::DependencyIgnored,
        Repair::ProfileSimplified,
        Repair::StepIgnored,
        Repair::ArrayRestIgnored,
        Repair::LineRepeated,
        Repair::ComponentJoined,
        Repair::RunAgain,
        Repair::Unfinished,
        Repair::ClockChange,
        Repair::TimesCrossed,
        Repair::StateUnknown,
        Repair::SeparatorInName,
        Repair::LineBreakInName,
        Repair::FieldUnread,
        Repair::LabelNumbered,
        Repair::BurstLeftOut,
        Repair::BurstJoined,
        Repair::ProcessorsDiffer,
        Repair::BeyondMachine,
        Repair::RoundedUp,
    ];

    /// The kinds that stand for a line which is not a job of its own. In formats with a line for each job, jobs and
    /// these add up to the lines that are neither blank nor of a header.
    pub const LINES: [Repair; 6] = [
        Repair::StepIgnored,
        Repair::ArrayRestIgnored,
        Repair::LineRepeated,
        Repair::ComponentJoined,
        Repair::BurstLeftOut,
        Repair::BurstJoined,
    ];
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Repair::MissingHeader => "no header: machine size and clock unknown",
            Repair::ExtraColumns => "columns beyond the 18th ignored",
            Repair::MissingColumns => "missing columns taken as -1",
            Repair::FractionDropped => "fraction dropped in a field that counts",
            Repair::NameNumbered => "names in place of numbers, numbered by first appearance",
            Repair::EpochShifted => "submit times were dates or seconds since 1970, shifted to begin near 0",
            Repair::OutOfOrder => "submitted before the line above, kept",
            Repair::NegativeSubmit => "negative submit time, kept",
            Repair::BadJobNumber => "job number below 1, kept",
            Repair::MissingRunTime => "run time unknown, kept as -1",
            Repair::ZeroRunTime => "run time of 0, kept",
            Repair::MissingProcessors => "processors unknown, kept as -1",
            Repair::OnlyAllocated => "allocated processors known, requested unknown",
            Repair::OnlyRequested => "requested processors known, allocated unknown",
            Repair::MissingEstimate => "requested time unknown, kept as -1",
            Repair::RanPastEstimate => "ran past the requested time, kept",
            Repair::DependencyIgnored => "dependencies ignored",
            Repair::ProfileSimplified => "profile taken as a plain delay",
            Repair::StepIgnored => "steps of jobs, left out",
            Repair::ArrayRestIgnored => "tasks of an array that never started, in one line, left out",
            Repair::LineRepeated => "lines of a job that is there already, left out",
            Repair::ComponentJoined => "components of a heterogeneous job, joined to its first",
            Repair::RunAgain => "another run of a requeued job, kept as a job",
            Repair::Unfinished => "not ended when the log was written, run time taken as -1",
            Repair::ClockChange => "local time that a change of clocks has twice or never",
            Repair::TimesCrossed => "started before submission or ended before start, taken as at once",
            Repair::StateUnknown => "state not known, status taken as -1",
            Repair::SeparatorInName => "separator within a name, taken as part of it",
            Repair::LineBreakInName => "line break within a name, taken as part of it",
            Repair::FieldUnread => "field that no run needs could not be read, taken as -1",
            Repair::LabelNumbered => "number too large for its field, replaced by one that no job has",
            Repair::BurstLeftOut => "bursts of a job that has a line of its own, left out",
            Repair::BurstJoined => "bursts of a job, joined to its first",
            Repair::ProcessorsDiffer => "allocated and requested processors differ, kept",
            Repair::BeyondMachine => "allocated processors are more than the machine has, kept",
            Repair::RoundedUp => "part of a processor, rounded up to a whole one",
        })
    }
}

/// How often one kind was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    count: u64,
    first_line: u64,
}

/// Counts of repairs by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repairs {
    tallies: [Tally; Repair::ALL.len()],
}

impl Default for Repairs {
    fn default() -> Repairs {
        Repairs { tallies: [Tally::default(); Repair::ALL.len()] }
    }
}

/// One row of [`Repairs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RepairCount {
    /// What it was.
    pub repair: Repair,
    /// How many jobs, or 1 for what concerns the whole file.
    pub count: u64,
    /// Line of the first, from 1 (for a format without lines: number of the job in the file).
    pub first_line: u64,
}

impl Repairs {
    /// Counts one more of a kind, seen on this line.
    pub fn add(&mut self, repair: Repair, line: u64) {
        self.add_many(repair, 1, line);
    }

    /// Counts several of a kind, the first seen on this line.
    pub fn add_many(&mut self, repair: Repair, count: u64, line: u64) {
        let tally = &mut self.tallies[repair as usize];
        if tally.count == 0 {
            tally.first_line = line;
        }
        tally.count += count;
    }

    /// How many of a kind.
    pub fn count(&self, repair: Repair) -> u64 {
        self.tallies[repair as usize].count
    }

    /// The kinds that were met.
    pub fn iter(&self) -> impl Iterator<Item = RepairCount> + '_ {
        Repair::ALL
            .into_iter()
            .zip(self.tallies)
            .filter(|(_, tally)| tally.count > 0)
            .map(|(repair, tally)| RepairCount { repair, count: tally.count, first_line: tally.first_line })
    }

    /// True if nothing was met.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_kinds_is_in_declaration_order() {
        for (index, repair) in Repair::ALL.into_iter().enumerate() {
            assert_eq!(repair as usize, index);
        }
    }

    #[test]
    fn the_first_line_is_kept() {
        let mut repairs = Repairs::default();
        repairs.add(Repair::OutOfOrder, 7);
        repairs.add(Repair::OutOfOrder, 9);

        let counts: Vec<RepairCount> = repairs.iter().collect();

        assert_eq!(counts, [RepairCount { repair: Repair::OutOfOrder, count: 2, first_line: 7 }]);
    }
}
