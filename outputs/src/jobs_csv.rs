//! `jobs.csv`: the columns of Batsim 4.2, in their order, then ours. evalys and pandas read it.
//!
//! Decimals have six digits and a point, nothing is quoted, names are text (`csv_cell`), processors are interval sets such as `0-3 7` in the
//! numbering of the grid. Jobs that had not ended when the run stopped are not in the file: Batsim has no word for
//! them; the manifest counts them.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use analysis::{JobOutcome, JobState};
use scheduler::{Class, JobId, SiteId, Span, Time};
use workload::limits::{Exceeded, Limit, Limits, read_line};
use workload::source::open;

use crate::allocation::{Allocation, Interval};
use crate::csv_cell;
use crate::errors::DirectoryError;
use crate::number::{push_integer, push_millionths, push_quotient, push_signed};
use crate::run_result::RunResult;

/// All columns, as they are written and read.
const COLUMNS: [&str; 22] = [
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
    "origin_site",
    "exec_site",
    "class",
    "hops",
    "steal_delay",
];
/// Those behind them where somebody predicts run times: what was predicted when the job joined the queue where it started, in seconds,
/// and how often it ran past a prediction.
const PREDICTED: [&str; 2] = ["predicted", "corrections"];
/// Those behind all others where jobs share nodes: the nodes, counted within the site from 0, and how many times longer the job took than on
/// idle nodes of full power.
const SHARED: [&str; 2] = ["nodes", "sharing_slowdown"];
/// Rows are handed to the file in pieces of this size; arbitrary, a few hundred rows.
const PIECE: usize = 1 << 16;

/// The rows of a run.
pub(super) struct Rows<'a> {
    result: &'a RunResult,
    allocation: &'a Allocation,
    rejected: bool,
    /// Whether anything was predicted.
    predicted: bool,
    /// Whether jobs were on shared nodes.
    shared: bool,
    workload: String,
}

impl<'a> Rows<'a> {
    pub(super) fn new(result: &'a RunResult, allocation: &'a Allocation, rejected: bool) -> Rows<'a> {
        let predicted = !result.outcome.predicted.is_empty();
        let shared = !result.outcome.placements.is_empty();
        let workload = csv_cell::unquoted(&result.about.workload);
        Rows { result, allocation, rejected, predicted, shared, workload }
    }

    /// Writes the header and all rows, or those of one executing site.
    pub(super) fn write(&self, file: &mut dyn Write, site: Option<SiteId>) -> io::Result<()> {
        let mut lines = Vec::with_capacity(PIECE + 1024);
        lines.extend_from_slice(COLUMNS.join(",").as_bytes());
        let predicted = PREDICTED.iter().filter(|_| self.predicted);
        for column in predicted.chain(SHARED.iter().filter(|_| self.shared)) {
            lines.push(b',');
            lines.extend_from_slice(column.as_bytes());
        }
        lines.push(b'\n');
        for (row, job) in self.result.outcome.jobs.iter().enumerate() {
            if site.is_some() && job.site != site {
                continue;
            }
            match job.state {
                JobState::Completed | JobState::WalltimeReached => self.push_finished(&mut lines, row, job),
                JobState::Rejected if self.rejected && site.is_none() => self.push_rejected(&mut lines, job),
                _ => {}
            }
            if lines.len() >= PIECE {
                file.write_all(&lines)?;
                lines.clear();
            }
        }
        file.write_all(&lines)
    }

    fn push_finished(&self, line: &mut Vec<u8>, row: usize, job: &JobOutcome) {
        let expect = "a finished job started and ended";
        let (start, end) = (job.start.expect(expect), job.end.expect(expect));
        let execution = job.execution().expect(expect).as_micros();
        let turnaround = job.turnaround().expect(expect).as_micros();
        self.push_submission(line, job);
        let failed = self.result.outcome.exits.get(&job.id).is_some_and(|exit| !exit.is_success());
        line.extend_from_slice(match job.state {
            JobState::Completed if failed => b"0,COMPLETED_FAILED,".as_slice(),
            JobState::Completed => b"1,COMPLETED_SUCCESSFULLY,",
            _ => b"0,COMPLETED_WALLTIME_REACHED,",
        });
        for micros in
            [start.as_micros(), execution, end.as_micros(), job.wait().expect(expect).as_micros(), turnaround]
        {
            push_millionths(line, micros);
            line.push(b',');
        }
        push_quotient(line, turnaround, execution);
        line.push(b',');
        push_intervals(line, self.allocation.of_job(row));
        self.push_ours(line, job);
    }

    fn push_rejected(&self, line: &mut Vec<u8>, job: &JobOutcome) {
        self.push_submission(line, job);
        line.extend_from_slice(b"0,REJECTED,,,,,,,");
        self.push_ours(line, job);
    }

    fn push_submission(&self, line: &mut Vec<u8>, job: &JobOutcome) {
        push_integer(line, job.id.0);
        line.push(b',');
        line.extend_from_slice(self.workload.as_bytes());
        line.extend_from_slice(b",rigid,");
        push_millionths(line, job.submit.as_micros());
        line.push(b',');
        push_integer(line, u64::from(job.processors));
        line.push(b',');
        push_millionths(line, job.requested.as_micros());
        line.push(b',');
    }

    /// Energy, metadata and our own columns.
    fn push_ours(&self, line: &mut Vec<u8>, job: &JobOutcome) {
        line.extend_from_slice(b",-1,user=");
        push_signed(line, i64::from(job.labels.user));
        if let Some(home) = job.home {
            line.extend_from_slice(b";home=");
            push_integer(line, u64::from(home.0));
        }
        if let Some(exit) = self.result.outcome.exits.get(&job.id) {
            line.extend_from_slice(b";ended=");
            line.extend_from_slice(exit.how.name().as_bytes());
            if let Some(code) = exit.code {
                line.extend_from_slice(b";exit=");
                push_signed(line, i64::from(code));
            }
        }
        line.push(b',');
        push_integer(line, u64::from(job.origin.0));
        line.push(b',');
        if let Some(site) = job.site {
            push_integer(line, u64::from(site.0));
        }
        line.push(b',');
        if job.home.is_some() {
            line.push(job.class.letter() as u8);
        }
        line.push(b',');
        push_integer(line, u64::from(job.hops));
        line.push(b',');
        push_millionths(line, job.steal_delay.as_micros());
        if self.predicted {
            line.push(b',');
            let predicted = self.result.outcome.predicted.get(&job.id);
            if let Some(predicted) = predicted {
                push_millionths(line, predicted.run_time.as_micros());
            }
            line.push(b',');
            if let Some(predicted) = predicted {
                push_integer(line, u64::from(predicted.corrections));
            }
        }
        if self.shared {
            self.push_shared(line, job);
        }
        line.push(b'\n');
    }

    fn push_shared(&self, line: &mut Vec<u8>, job: &JobOutcome) {
        let outcome = &self.result.outcome;
        line.push(b',');
        if let Some(placement) = outcome.placement(job) {
            push_intervals(line, &intervals_of(&placement.nodes));
        }
        line.push(b',');
        if outcome.sharing_slowdown(job).is_some() {
            let execution = job.execution().expect("it has ended");
            push_quotient(line, execution.as_micros(), job.run_time.as_micros());
        }
    }
}

/// Numbers that ascend, as intervals.
fn intervals_of(numbers: &[u32]) -> Vec<Interval> {
    let mut intervals: Vec<Interval> = Vec::new();
    for &number in numbers {
        match intervals.last_mut() {
            Some(last) if last.last + 1 == number => last.last = number,
            _ => intervals.push(Interval { first: number, last: number }),
        }
    }
    intervals
}

/// An interval set as procset writes it: `1-3 5 7`.
fn push_intervals(line: &mut Vec<u8>, intervals: &[Interval]) {
    for (place, interval) in intervals.iter().enumerate() {
        if place > 0 {
            line.push(b' ');
        }
        push_integer(line, u64::from(interval.first));
        if interval.last > interval.first {
            line.push(b'-');
            push_integer(line, u64::from(interval.last));
        }
    }
}

/// A row of `jobs.csv`: a job that ended or was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    /// Id of the job in the workload.
    pub job: JobId,
    /// Submission time of the workload, in trace time.
    pub submit: Time,
    /// Processors that it asked for.
    pub processors: u32,
    /// Its requested time.
    pub requested: Span,
    /// `success` and `final_state`, as in `1 COMPLETED_SUCCESSFULLY`.
    pub state: String,
    /// Its start, if it ran.
    pub start: Option<Time>,
    /// Its end, if it ran.
    pub end: Option<Time>,
    /// Where it ran.
    pub site: Option<SiteId>,
    /// Who submitted it, as a number of the log; -1 if that is not known.
    pub user: i32,
    /// Where the user submitted it.
    pub origin: SiteId,
    /// The smallest site that can hold it.
    pub home: Option<SiteId>,
    /// Its class at home.
    pub class: Option<Class>,
    /// Changes of site.
    pub hops: u32,
    /// The processors that it got, in the numbering of the grid; none if that is not known.
    pub allocated: Vec<Interval>,
}

/// Reads `jobs.csv` row by row.
#[derive(Debug)]
pub struct JobRows {
    path: PathBuf,
    /// Where each of [`COLUMNS`] is.
    places: [usize; COLUMNS.len()],
    line: u64,
    limits: Limits,
    sites: usize,
    text: Vec<u8>,
    file: BufReader<File>,
}

impl JobRows {
    /// Of a grid of so many sites.
    pub(crate) fn open(path: &Path, limits: Limits, sites: usize) -> Result<JobRows, DirectoryError> {
        let file = open(path).map_err(|cause| DirectoryError::Open { path: path.to_path_buf(), cause })?;
        let mut rows = JobRows {
            path: path.to_path_buf(),
            places: [0; COLUMNS.len()],
            line: 1,
            limits,
            sites,
            text: Vec::new(),
            file: BufReader::new(file),
        };
        rows.read_line()?;
        let header = String::from_utf8_lossy(&rows.text).into_owned();
        let header: Vec<&str> = header.trim_end().split(',').collect();
        let mut places = [0; COLUMNS.len()];
        for (place, name) in places.iter_mut().zip(COLUMNS) {
            *place = header
                .iter()
                .position(|column| *column == name)
                .ok_or_else(|| rows.wrong(format!("no column {name}")))?;
        }
        rows.places = places;
        Ok(rows)
    }

    fn wrong(&self, reason: String) -> DirectoryError {
        DirectoryError::Content { path: self.path.clone(), reason: format!("line {}: {reason}", self.line) }
    }

    /// How long the next line is; 0 at the end.
    fn read_line(&mut self) -> Result<usize, DirectoryError> {
        let read = read_line(&mut self.file, &mut self.text, self.limits.line);
        read.map_err(|error| match Exceeded::of(&error) {
            Some(exceeded) => self.over(exceeded),
            None => self.wrong(error.to_string()),
        })
    }

    fn over(&self, exceeded: Exceeded) -> DirectoryError {
        DirectoryError::Limit { path: self.path.clone(), exceeded: Exceeded { line: self.line, ..exceeded } }
    }

    fn parse(&self) -> Result<JobRow, String> {
        let text = std::str::from_utf8(&self.text).map_err(|error| error.to_string())?;
        let text = text.strip_suffix('\n').ok_or("the last row is cut off")?;
        let fields: Vec<&str> = text.split(',').collect();
        let mut values = [""; COLUMNS.len()];
        for ((value, &place), name) in values.iter_mut().zip(&self.places).zip(COLUMNS) {
            *value = fields.get(place).ok_or_else(|| format!("no field {name}"))?;
        }
        let [job, _, _, submit, width, requested, success, state, start, _, end, ..] = values;
        let [.., allocated, _, metadata, origin, site, class, hops, _] = values;
        let labelled = |label| metadata.split(';').find_map(|entry| entry.strip_prefix(label));
        let (user, home) = (labelled("user="), labelled("home="));
        let of_site = |text: &str, column: &str| match whole(text, column)? {
            number @ 1.. if number as usize <= self.sites => Ok(SiteId(number)),
            number => Err(format!("{column} is {number}, and the manifest has {} sites", self.sites)),
        };
        Ok(JobRow {
            job: JobId(whole(job, "job_id")?),
            submit: Time::from_micros(micros(submit, "submission_time")?),
            processors: whole(width, "requested_number_of_resources")?,
            requested: Span::from_micros(micros(requested, "requested_time")?),
            state: format!("{success} {state}"),
            start: given(start).map(|text| micros(text, "starting_time")).transpose()?.map(Time::from_micros),
            end: given(end).map(|text| micros(text, "finish_time")).transpose()?.map(Time::from_micros),
            site: given(site).map(|text| of_site(text, "exec_site")).transpose()?,
            user: user.map_or(Ok(-1), |text| whole(text, "metadata"))?,
            origin: of_site(origin, "origin_site")?,
            home: home.map(|text| of_site(text, "the home in metadata")).transpose()?,
            class: match class {
                "A" => Some(Class::A),
                "B" => Some(Class::B),
                "" => None,
                _ => return Err(format!("class is {class:?}, not A or B")),
            },
            hops: whole(hops, "hops")?,
            allocated: intervals(allocated)?,
        })
    }
}

impl Iterator for JobRows {
    type Item = Result<JobRow, DirectoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.line += 1;
        let most = self.limits.rows;
        match self.read_line() {
            Ok(0) => None,
            // The first line is the header.
            Ok(_) if self.line - 1 > most => {
                Some(Err(self.over(Exceeded { limit: Limit::Rows, most, line: self.line })))
            }
            Ok(_) => Some(self.parse().map_err(|reason| self.wrong(reason))),
            Err(error) => Some(Err(error)),
        }
    }
}

/// An interval set as [`push_intervals`] writes it.
fn intervals(text: &str) -> Result<Vec<Interval>, String> {
    let one = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let interval = Interval {
            first: whole(first, "allocated_resources")?,
            last: whole(last, "allocated_resources")?,
        };
        match interval.first <= interval.last {
            true => Ok(interval),
            false => Err(format!("allocated_resources is {text:?}, which ends before it begins")),
        }
    };
    text.split_ascii_whitespace().map(one).collect()
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn whole<T: std::str::FromStr>(text: &str, column: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{column} is {text:?}, not a whole number"))
}

/// Seconds with up to six digits after the point, exactly.
fn micros(text: &str, column: &str) -> Result<i64, String> {
    let wrong = || format!("{column} is {text:?}, not seconds with at most six decimals");
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (seconds, part) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if seconds.is_empty() || part.len() > 6 || !digits(seconds) || !digits(part) {
        return Err(wrong());
    }
    let fraction: i64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    let micros = seconds
        .parse::<i64>()
        .ok()
        .and_then(|seconds| seconds.checked_mul(1_000_000))
        .and_then(|micros| micros.checked_add(fraction))
        .ok_or_else(wrong)?;
    Ok(if negative { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{about, outcome};
    use analysis::Predicted;

    fn text(rejected: bool, site: Option<SiteId>) -> String {
        let jobs = [(0, 2, 10, 1, 0), (3, 2, 6, 2, 5), (4, 9, 1, 0, 0), (5, 3, 0, 2, 11)];
        let result = RunResult::new(about(), outcome(&[2, 4], &jobs), None);
        let allocation = Allocation::of(&result.outcome);
        let mut file = Vec::new();
        Rows::new(&result, &allocation, rejected).write(&mut file, site).unwrap();
        String::from_utf8(file).unwrap()
    }

    #[test]
    fn rows_have_the_columns_of_batsim_and_then_ours() {
        let text = text(true, None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split(',').count(), 22);
        assert_eq!(
            lines[1],
            "1,a_b.swf,rigid,0.000000,2,10.000000,1,COMPLETED_SUCCESSFULLY,0.000000,10.000000,10.000000,\
             0.000000,10.000000,1.000000,0-1,-1,user=1;home=1,1,1,A,0,0.000000"
        );
        assert_eq!(
            lines[2],
            "2,a_b.swf,rigid,3.000000,2,6.000000,1,COMPLETED_SUCCESSFULLY,5.000000,6.000000,11.000000,\
             2.000000,8.000000,1.333333,2-3,-1,user=1;home=1,1,2,A,0,0.000000"
        );
        assert_eq!(
            lines[3],
            "3,a_b.swf,rigid,4.000000,9,1.000000,0,REJECTED,,,,,,,,-1,user=1,1,,,0,0.000000"
        );
        assert!(lines[4].contains(",11.000000,0.000000,11.000000,6.000000,6.000000,inf,2-4,"), "{text}");
        assert!(lines.iter().all(|line| line.split(',').count() == 22), "{text}");
    }

    #[test]
    fn what_was_predicted_has_columns_where_somebody_predicts() {
        let mut outcome = outcome(&[2, 4], &[(0, 2, 10, 1, 0), (3, 2, 6, 2, 5)]);
        let predicted = Predicted { run_time: Span::from_micros(2_500_000), corrections: 3 };
        outcome.predicted.insert(JobId(2), predicted);
        let result = RunResult::new(about(), outcome, None);
        let allocation = Allocation::of(&result.outcome);
        let mut file = Vec::new();
        Rows::new(&result, &allocation, true).write(&mut file, None).unwrap();

        let text = String::from_utf8(file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(",steal_delay,predicted,corrections"), "{text}");
        assert!(lines[1].ends_with(",0.000000,,"), "{text}");
        assert!(lines[2].ends_with(",0.000000,2.500000,3"), "{text}");
    }

    #[test]
    fn nodes_are_intervals() {
        let text = |nodes: &[u32]| {
            let mut line = Vec::new();
            push_intervals(&mut line, &intervals_of(nodes));
            String::from_utf8(line).unwrap()
        };
        assert_eq!(text(&[0, 1, 2, 5, 7, 8]), "0-2 5 7-8");
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn a_site_has_its_own_rows_only() {
        let text = text(true, Some(SiteId(2)));
        let ids: Vec<&str> = text.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(ids, ["2", "4"]);
    }

    #[test]
    fn rejected_rows_can_be_left_out() {
        assert!(!text(false, None).contains("REJECTED"));
    }

    #[test]
    fn seconds_are_read_to_the_microsecond() {
        assert_eq!(micros("12.000001", ""), Ok(12_000_001));
        assert_eq!(micros("-0.5", ""), Ok(-500_000));
        for wrong in ["", ".", "1.0000001", "1e3", "--1", "99999999999999"] {
            assert!(micros(wrong, "c").is_err(), "{wrong}");
        }
    }
}
