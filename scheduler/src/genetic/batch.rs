//! What is to be allocated: jobs that are all there at time 0, and sites of different sizes.

use crate::job::{JobId, JobSpec};
use crate::time::Span;

/// Jobs and the sites that they are to be allocated to. A job goes by its place in order of arrival, a site by its place
/// in order of size.
#[derive(Clone, Debug)]
pub struct Batch {
    sizes: Vec<u32>,
    jobs: Vec<JobSpec>,
    widths: Vec<u32>,
    /// Microseconds.
    requested: Vec<i64>,
    first_sites: Vec<usize>,
    requested_total: i64,
}

/// Why jobs and sites are no batch. Reads after "failed to".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// There are no jobs.
    #[error("make a batch: it has no jobs; give it at least one")]
    NoJobs,
    /// No site, or one without processors, or one before a smaller one.
    #[error("make a batch: sites need at least one processor each, and must ascend by size")]
    Sites,
    /// A job that no site can hold.
    #[error(
        "make a batch: job {job} needs {processors} processors and the widest site has {widest}; drop it, or widen a site"
    )]
    TooWide {
        /// Its number.
        job: JobId,
        /// What it needs.
        processors: u32,
        /// What there is.
        widest: u32,
    },
    /// A job without a width or a requested time, which the response ratio is by.
    #[error("make a batch: job {0} has no processors or no requested time; give it both")]
    Nothing(JobId),
    /// Sums of times would not fit into 64 bits.
    #[error("make a batch: requested times of {0} s in all are too long to be added up; use smaller batches")]
    TooLong(Span),
}

impl Batch {
    /// Jobs in order of arrival, over sites of these sizes, ascending.
    ///
    /// # Errors
    /// If there is no job or no site, a job fits nowhere or takes no time, or times are so long that sums overflow.
    pub fn new(sizes: &[u32], jobs: Vec<JobSpec>) -> Result<Batch, BatchError> {
        let widest = sizes.last().copied().unwrap_or(0);
        if sizes.first().is_none_or(|&size| size == 0) || !sizes.is_sorted() {
            return Err(BatchError::Sites);
        }
        if jobs.is_empty() {
            return Err(BatchError::NoJobs);
        }
        for job in &jobs {
            if job.processors == 0 || job.requested <= Span::ZERO {
                return Err(BatchError::Nothing(job.id));
            }
            if job.processors > widest {
                return Err(BatchError::TooWide { job: job.id, processors: job.processors, widest });
            }
        }
        let total: i128 = jobs.iter().map(|job| i128::from(job.requested.as_micros())).sum();
        // No job ends later than all of them one after the other; ends are added up over all jobs.
        let requested_total = i64::try_from(total).unwrap_or(i64::MAX);
        if total * jobs.len() as i128 > i128::from(i64::MAX) {
            return Err(BatchError::TooLong(Span::from_micros(requested_total)));
        }
        let widths: Vec<u32> = jobs.iter().map(|job| job.processors).collect();
        Ok(Batch {
            first_sites: widths.iter().map(|width| sizes.partition_point(|size| size < width)).collect(),
            requested: jobs.iter().map(|job| job.requested.as_micros()).collect(),
            sizes: sizes.to_vec(),
            jobs,
            widths,
            requested_total,
        })
    }

    /// Processors of the sites, ascending.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// The jobs, in order of arrival.
    pub fn jobs(&self) -> &[JobSpec] {
        &self.jobs
    }

    /// Processors that a job needs.
    pub fn width(&self, job: u32) -> u32 {
        self.widths[job as usize]
    }

    /// Its requested time in microseconds.
    pub fn requested(&self, job: u32) -> i64 {
        self.requested[job as usize]
    }

    /// The smallest site that is wide enough for it; so are all after that.
    pub fn first_site(&self, job: u32) -> usize {
        self.first_sites[job as usize]
    }

    /// Whether a site is wide enough for a job.
    pub fn fits(&self, job: u32, site: usize) -> bool {
        self.width(job) <= self.sizes[site]
    }

    /// All requested times, in microseconds.
    pub fn requested_total(&self) -> i64 {
        self.requested_total
    }

    /// A makespan that nobody can go below, in seconds: the longest job, or all work spread over all processors (§1.2).
    pub fn lower_bound_s(&self) -> f64 {
        let longest = self.requested.iter().copied().max().unwrap_or(0) as f64;
        let area = |(&width, &requested): (&u32, &i64)| i128::from(width) * i128::from(requested);
        let work: i128 = self.widths.iter().zip(&self.requested).map(area).sum();
        let processors: u64 = self.sizes.iter().map(|&size| u64::from(size)).sum();
        longest.max(work as f64 / processors as f64) / 1e6
    }
}
