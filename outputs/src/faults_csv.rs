//! What faults did, in three tables: `faults.csv` by job, `executions.csv` by execution that does not count, and
//! `membership.csv` by what a site came to believe of another. Times in seconds, work in processor-seconds.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analysis::Faults;
use analysis::faults::AttemptEnd;
use scheduler::{JobId, SiteId, Span, Time};

use crate::number::push_millionths;
use crate::run_result::RunResult;

/// Writes a row for each job that a fault touched.
pub(super) fn jobs(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    writeln!(
        file,
        "job_id,requested_number_of_resources,final_state,exec_site,starts,completions,interrupted,taken_over,\
         superseded,superseded_running,ran_twice,orphaned_s,still_orphaned,wasted_at_least,wasted_at_most,\
         unknown_work,repeated_work"
    )?;
    let rows: BTreeMap<JobId, _> = result.outcome.jobs.iter().map(|row| (row.id, row)).collect();
    for job in &result.outcome.faults.jobs {
        let row = rows.get(&job.job);
        writeln!(
            file,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{:.6},{:.6},{:.6},{:.6}",
            job.job,
            job.processors,
            row.map_or("unknown", |row| row.state.name()),
            row.and_then(|row| row.site).map_or(String::new(), |site: SiteId| site.to_string()),
            job.starts,
            job.completions,
            job.interrupted,
            job.taken_over,
            job.superseded,
            job.superseded_running,
            job.ran_twice.name(),
            if job.was_orphaned { seconds(job.orphaned.as_micros()) } else { String::new() },
            u8::from(job.still_orphaned),
            job.wasted_at_least,
            job.wasted_at_most,
            job.unknown_work,
            job.repeated_work,
        )?;
    }
    Ok(())
}

/// Writes a row for each execution that is not the one that counts.
pub(super) fn executions(file: &mut dyn Write, faults: &Faults) -> io::Result<()> {
    writeln!(
        file,
        "job_id,exec_site,requested_number_of_resources,starting_time,at_least_until,at_most_until,end"
    )?;
    for attempt in &faults.attempts {
        let [start, least, most] =
            [attempt.start, attempt.at_least, attempt.at_most].map(|time: Time| seconds(time.as_micros()));
        let end = match attempt.end {
            AttemptEnd::Interrupted => "interrupted",
            AttemptEnd::Unknown => "unknown",
            AttemptEnd::Repeated => "repeated",
        };
        writeln!(
            file,
            "{},{},{},{start},{least},{most},{end}",
            attempt.job, attempt.site, attempt.processors
        )?;
    }
    Ok(())
}

/// Writes a row for each change of what a site believes of another, and for each restart.
pub(super) fn membership(file: &mut dyn Write, faults: &Faults) -> io::Result<()> {
    writeln!(file, "time,observer,about,event,silent_s")?;
    for belief in &faults.membership {
        writeln!(
            file,
            "{},{},{},{},{}",
            seconds(belief.at.as_micros()),
            belief.observer,
            belief.about,
            belief.what.name(),
            belief.after.map_or(String::new(), |after: Span| seconds(after.as_micros())),
        )?;
    }
    Ok(())
}

fn seconds(micros: i64) -> String {
    let mut text = Vec::new();
    push_millionths(&mut text, micros);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{about, faulty};

    fn text(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
        let mut file = Vec::new();
        write(&mut file).unwrap();
        String::from_utf8(file).unwrap()
    }

    #[test]
    fn a_job_that_was_taken_over_has_its_row_and_its_other_execution() {
        let result = RunResult::new(about(), faulty(), None);
        let faults = &result.outcome.faults;
        let jobs = text(|file| jobs(file, &result));
        let lines: Vec<&str> = jobs.lines().collect();
        assert!(lines.iter().all(|line| line.split(',').count() == 17), "{jobs}");
        assert_eq!(lines[1], "1,2,completed,1,2,1,1,0,0,0,no,,0,8.000000,40.000000,0.000000,0.000000");
        assert_eq!(lines[2], "2,2,completed,1,2,1,0,1,0,0,perhaps,,0,0.000000,0.000000,0.000000,0.000000");
        assert_eq!(
            text(|file| executions(file, faults)).lines().collect::<Vec<_>>()[1..],
            ["1,1,2,0.000000,4.000000,20.000000,interrupted", "2,2,2,5.000000,5.000000,70.000000,unknown"]
        );
        let membership = text(|file| membership(file, faults));
        assert_eq!(
            membership.lines().collect::<Vec<_>>()[1..],
            ["20.000000,1,1,recovered,", "40.000000,1,2,suspected,", "50.000000,1,2,gone,"]
        );
    }
}
