//! `schedule.swf`: how every finished job ran, as a log that other simulators and log tools read.
//!
//! Queue is the origin site and partition the executing site; both are declared in the header. The record layout is
//! the workload crate's. A job cut at its estimate has status 0, as the logs of real machines have it.

use std::io::{self, Write};

use analysis::{JobOutcome, JobState};
use scheduler::{JobSpec, TimedJob};
use workload::header::Header;
use workload::record::Record;
use workload::swf::{write_header, write_record};

use crate::run_result::RunResult;

/// Writes the header and one record per finished job, in the order of submission.
pub(super) fn write(mut file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    write_header(&header(result), &mut file)?;
    for job in result.outcome.finished() {
        write_record(&record(job), &mut file)?;
    }
    Ok(())
}

fn header(result: &RunResult) -> Header {
    // A line break in a name would begin a record.
    let line = |text: &str| text.replace(['\r', '\n'], " ");
    let about = &result.about;
    let grid = &result.outcome.grid;
    let mut header = Header::default();
    header.push_pair("Version", "2.2");
    header.push_pair("Computer", &line(&format!("simulated grid of {} sites", grid.machines().count())));
    header.push_pair("MaxJobs", &result.metrics.finished.to_string());
    header.push_pair("MaxProcs", &grid.processors().to_string());
    header.push_pair(
        "Note",
        &line(&format!(
            "stealgrid {}, experiment {}, workload {}, strategy {}, seed {}",
            env!("CARGO_PKG_VERSION"),
            about.experiment,
            about.workload,
            about.strategy,
            about.seed
        )),
    );
    header.declare_sites(grid.machines());
    header
}

fn record(job: &JobOutcome) -> Record {
    let expect = "a finished job started somewhere";
    let (start, site) = (job.start.expect(expect), job.site.expect(expect));
    let spec = JobSpec {
        id: job.id,
        submit: job.submit,
        processors: job.processors,
        requested: job.requested,
        labels: job.labels,
        origin: job.origin,
        payload: 0,
    };
    let ran = TimedJob { spec, run_time: job.service() };
    let status = i32::from(job.state == JobState::Completed);
    Record { status, ..Record::of_run(&ran, start, site) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{about, outcome};

    #[test]
    fn the_schedule_reads_back_as_a_log() {
        let jobs = [(0, 2, 10, 1, 0), (3, 2, 6, 2, 5), (4, 9, 1, 0, 0)];
        let result = RunResult::new(about(), outcome(&[2, 4], &jobs), None);
        let mut file = Vec::new();
        write(&mut file, &result).unwrap();

        let trace = workload::read_from("schedule.swf", file.as_slice()).unwrap();
        assert_eq!(trace.header.processors(), Some(6));
        assert_eq!(trace.header.partitions.len(), 2);
        assert_eq!(trace.records.len(), 2);
        let second = &trace.records[1];
        assert_eq!((second.job, second.partition, second.queue), (2, 2, 1));
        assert_eq!((second.wait.as_micros(), second.run_time.as_micros()), (2_000_000, 6_000_000));
        assert_eq!(second.status, 1);
    }
}
