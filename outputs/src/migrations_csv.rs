//! `migrations.csv`: one row per pair of home and executing site that occurs, with both shares of the home's jobs.

use std::io::{self, Write};

use crate::run_result::RunResult;

/// Writes the table, a site's own jobs included, so that the rows of a home sum to all its finished jobs.
pub(super) fn write(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    writeln!(file, "home_site,exec_site,jobs,jobs_share,work_proc_s,work_share")?;
    for pair in result.migrations.pairs() {
        writeln!(
            file,
            "{},{},{},{:.6},{:.6},{:.6}",
            pair.home, pair.site, pair.jobs, pair.jobs_share, pair.work, pair.work_share
        )?;
    }
    Ok(())
}
