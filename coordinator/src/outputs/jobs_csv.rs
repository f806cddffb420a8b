//! `jobs.csv`: the columns of Batsim 4.2, in their order, then ours. evalys and pandas read it.
//!
//! Decimals have six digits and a point, nothing is quoted, names are text (`csv_cell`), processors are interval sets such as `0-3 7` in the
//! numbering of the grid. Jobs that had not ended when the run stopped are not in the file: Batsim has no word for
//! them; the manifest counts them.

use std::io::{self, Write};

use analysis::{JobOutcome, JobState};
use scheduler::SiteId;

use super::allocation::{Allocation, Interval};
use super::csv_cell;
use super::number::{push_integer, push_millionths, push_quotient, push_signed};
use super::run_result::RunResult;

const HEADER: &str = "job_id,workload_name,profile,submission_time,requested_number_of_resources,\
                      requested_time,success,final_state,starting_time,execution_time,finish_time,\
                      waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,metadata,\
                      origin_site,exec_site,class,hops,steal_delay\n";
/// Rows are handed to the file in pieces of this size; arbitrary, a few hundred rows.
const PIECE: usize = 1 << 16;

/// The rows of a run.
pub(super) struct Rows<'a> {
    result: &'a RunResult,
    allocation: &'a Allocation,
    rejected: bool,
    workload: String,
}

impl<'a> Rows<'a> {
    pub(super) fn new(result: &'a RunResult, allocation: &'a Allocation, rejected: bool) -> Rows<'a> {
        Rows { result, allocation, rejected, workload: csv_cell::unquoted(&result.about.workload) }
    }

    /// Writes the header and all rows, or those of one executing site.
    pub(super) fn write(&self, file: &mut dyn Write, site: Option<SiteId>) -> io::Result<()> {
        let mut lines = Vec::with_capacity(PIECE + 1024);
        lines.extend_from_slice(HEADER.as_bytes());
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
        line.extend_from_slice(match job.state {
            JobState::Completed => b"1,COMPLETED_SUCCESSFULLY,".as_slice(),
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
        push_signed(line, i64::from(job.user));
        if let Some(home) = job.home {
            line.extend_from_slice(b";home=");
            push_integer(line, u64::from(home.0));
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
        line.push(b'\n');
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outputs::tests::{about, outcome};

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
    fn a_site_has_its_own_rows_only() {
        let text = text(true, Some(SiteId(2)));
        let ids: Vec<&str> = text.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(ids, ["2", "4"]);
    }

    #[test]
    fn rejected_rows_can_be_left_out() {
        assert!(!text(false, None).contains("REJECTED"));
    }
}
