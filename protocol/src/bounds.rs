//! The bounds within which arithmetic is exact and the books of a site hold.

use scheduler::{Grid, JobSpec, SiteId, Time};

use crate::message::processors::Release;

/// Versions, sequences and transfer numbers are at most this: no site counts so far, and two more fit the type.
pub(crate) const COUNT_MAX: u64 = 1 << 62;
/// Take-overs of one job are at most so many.
pub const EPOCH_MAX: u32 = 1 << 30;
/// Times are at most so far from the origin of the trace, and spans at most so long, in microseconds: some 285 years,
/// so that hundreds of them add up.
pub const MICROS_MAX: i64 = 1 << 53;

/// Whether a job can be one of this grid: a site is wide enough, or several that it may be spread over; its times are within [`MICROS_MAX`], and it entered at
/// a site. A driver must not submit others.
pub fn is_job_of(grid: &Grid, job: &JobSpec) -> bool {
    is_site_of(grid, job.origin)
        && (1..=grid.widest_job()).contains(&job.processors)
        && is_time(job.submit)
        && (0..=MICROS_MAX).contains(&job.requested.as_micros())
}

/// Whether the grid has such a site.
pub fn is_site_of(grid: &Grid, site: SiteId) -> bool {
    site.0 != 0 && site.index() < grid.len()
}

/// Whether all of these are numbers that a site can have counted to.
pub(crate) fn are_counts(numbers: &[u64]) -> bool {
    numbers.iter().all(|&number| number <= COUNT_MAX)
}

/// Whether a time is within the bounds of a trace.
pub fn is_time(time: Time) -> bool {
    (-MICROS_MAX..=MICROS_MAX).contains(&time.as_micros())
}

pub(crate) fn is_release(release: &Release) -> bool {
    // A job's estimated end adds its request to its start.
    (-MICROS_MAX..=2 * MICROS_MAX).contains(&release.at.as_micros())
}
