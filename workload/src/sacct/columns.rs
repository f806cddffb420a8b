//! The columns of a dump: found by name in its header, wherever they stand, and the fields of a line.

use crate::trace::TraceError;

/// Bytes between fields.
const SEPARATOR: u8 = b'|';
/// What a refusal advises.
const ASK: &str = "ask sacct for what is missing, without -n and as in --format=JobID,JobIDRaw,User,Account,Partition,QOS,Submit,Start,End,\
                   ElapsedRaw,TimelimitRaw,AllocCPUS,ReqCPUS,NNodes,State,ReqMem";

/// A column that is read. Every other one is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    JobId,
    JobIdRaw,
    User,
    Group,
    Account,
    Partition,
    Qos,
    JobName,
    Submit,
    Start,
    End,
    Elapsed,
    ElapsedRaw,
    Timelimit,
    TimelimitRaw,
    AllocCpus,
    NCpus,
    ReqCpus,
    NNodes,
    State,
    ReqMem,
    TotalCpu,
}

/// Their names, in the order of [`Column`].
const NAMES: [&str; 22] = [
    "JobID",
    "JobIDRaw",
    "User",
    "Group",
    "Account",
    "Partition",
    "QOS",
    "JobName",
    "Submit",
    "Start",
    "End",
    "Elapsed",
    "ElapsedRaw",
    "Timelimit",
    "TimelimitRaw",
    "AllocCPUS",
    "NCPUS",
    "ReqCPUS",
    "NNodes",
    "State",
    "ReqMem",
    "TotalCPU",
];

/// Columns that hold what users type: the separator may be in them, and `sacct` does not mark it.
const FREE_TEXT: [&str; 8] =
    ["JobName", "Comment", "AdminComment", "SystemComment", "WorkDir", "SubmitLine", "WCKey", "Constraints"];

impl Column {
    /// Its name in a header.
    pub(super) fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// Where the columns of a dump stand.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    places: [Option<usize>; NAMES.len()],
    /// Columns of the header, without the empty one that `-p` ends a line with.
    count: usize,
    /// The column of free text, if there is exactly one.
    free: Option<usize>,
    /// Whether the last column is of free text.
    free_last: bool,
    /// Whether a column of free text is in front of the job.
    free_first: bool,
    /// Whether lines end with a separator, as those of `-p` do.
    ends: bool,
}

/// Why a line does not have the columns of its header.
pub(super) struct Misfit {
    /// How many columns it has.
    pub(super) columns: usize,
}

impl Columns {
    /// Whether a line names columns of jobs.
    pub(super) fn are_named(line: &[u8]) -> bool {
        line.contains(&SEPARATOR)
            && split(line).any(|name| {
                [Column::JobId, Column::JobIdRaw]
                    .iter()
                    .any(|column| name.eq_ignore_ascii_case(column.name().as_bytes()))
            })
    }

    /// The columns that a header names.
    ///
    /// # Errors
    /// If one without which there is no job is missing.
    pub(super) fn of_header(file: &str, number: u64, line: &[u8]) -> Result<Columns, TraceError> {
        let names: Vec<&[u8]> = split(line.strip_suffix(&[SEPARATOR]).unwrap_or(line)).collect();
        let place = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted.as_bytes()));
        let mut free = FREE_TEXT.iter().filter_map(|name| place(name));
        let free = free.next().filter(|_| free.next().is_none());
        let is_free = |name: &[u8]| FREE_TEXT.iter().any(|free| name.eq_ignore_ascii_case(free.as_bytes()));
        let free_last = names.last().is_some_and(|name| is_free(name));
        let ends = line.ends_with(&[SEPARATOR]);
        let job = place(Column::JobId.name()).or(place(Column::JobIdRaw.name())).unwrap_or(0);
        let free_first = names[..job].iter().any(|name| is_free(name));
        let count = names.len();
        let columns = Columns { places: NAMES.map(place), count, free, free_last, free_first, ends };
        let has = |column| columns.has(column);
        let needs = [
            (has(Column::JobId) || has(Column::JobIdRaw), "JobID (or JobIDRaw)"),
            (has(Column::Submit), "Submit"),
            (has(Column::State), "State"),
            (
                has(Column::AllocCpus) || has(Column::NCpus) || has(Column::ReqCpus),
                "AllocCPUS (or NCPUS, ReqCPUS)",
            ),
            (
                has(Column::ElapsedRaw) || has(Column::Elapsed) || (has(Column::Start) && has(Column::End)),
                "ElapsedRaw (or Elapsed, or Start and End)",
            ),
        ];
        let missing: Vec<&str> = needs.iter().filter(|(there, _)| !there).map(|(_, name)| *name).collect();
        let problem = match missing.len() {
            0 => return Ok(columns),
            count if count == needs.len() => format!(
                "line {number} has | like a dump of sacct, but names none of its columns, of which {} are needed (is the \
                 header missing?); {ASK}",
                missing.join(", ")
            ),
            1 => format!("line {number}: there is no column {}; {ASK}", missing[0]),
            _ => format!("line {number}: there are no columns {}; {ASK}", missing.join(", ")),
        };
        Err(TraceError::Structure { file: file.to_string(), problem })
    }

    /// Whether the dump has a column.
    pub(super) fn has(&self, column: Column) -> bool {
        self.place(column).is_some()
    }

    /// Where a column stands, from 0.
    pub(super) fn place(&self, column: Column) -> Option<usize> {
        self.places[column as usize]
    }

    /// Whether a text has as many fields as the header, the last one to its end.
    pub(super) fn are_all_in(&self, text: &[u8]) -> bool {
        let separators = text.iter().filter(|&&byte| byte == SEPARATOR).count();
        if self.ends {
            separators >= self.count && text.ends_with(&[SEPARATOR])
        } else {
            separators + 1 >= self.count
        }
    }

    /// Whether what users type may be at the end of a row, without a separator behind it.
    pub(super) fn end_in_free_text(&self) -> bool {
        self.free_last && !self.ends
    }

    /// Whether what users type may be in front of the job.
    pub(super) fn begin_in_free_text(&self) -> bool {
        self.free_first
    }

    /// What stands in a line where the job belongs.
    pub(super) fn job_in<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let place = self.place(Column::JobId).or(self.place(Column::JobIdRaw))?;
        // Separators in a name in front of it count only in a row that is whole.
        match self.fields(line) {
            Ok((fields, _)) => fields.get(place).copied(),
            Err(_) => split(line).nth(place),
        }
    }

    /// Columns of the header.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The fields of a line, and whether separators were taken as part of the free text.
    ///
    /// # Errors
    /// If it has fewer fields than the header, or more and no single field that may hold separators.
    pub(super) fn fields<'a>(&self, line: &'a [u8]) -> Result<(Vec<&'a [u8]>, bool), Misfit> {
        let mut fields: Vec<&[u8]> = line.split(|&byte| byte == SEPARATOR).collect();
        if fields.len() > self.count && fields.last().is_some_and(|last| last.trim_ascii().is_empty()) {
            fields.pop();
        }
        let misfit = Misfit { columns: fields.len() };
        let extra = fields.len().checked_sub(self.count).ok_or(Misfit { columns: fields.len() })?;
        if extra > 0 {
            let free = self.free.ok_or(misfit)?;
            let length = |fields: &[&[u8]]| fields.iter().map(|field| field.len() + 1).sum::<usize>();
            let start = length(&fields[..free]);
            let end = start + length(&fields[free..=free + extra]) - 1;
            fields.splice(free..=free + extra, [&line[start..end]]);
        }
        for field in &mut fields {
            *field = field.trim_ascii();
        }
        Ok((fields, extra > 0))
    }
}

fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == SEPARATOR).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_the_columns() {
        assert_eq!(Column::JobId.name(), "JobID");
        assert_eq!(Column::ElapsedRaw.name(), "ElapsedRaw");
        assert_eq!(Column::TotalCpu.name(), NAMES[NAMES.len() - 1]);
    }
}
