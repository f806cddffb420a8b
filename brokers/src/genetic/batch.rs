//! What is to be allocated: jobs that are all there at time 0, and sites of different sizes; off-line idle ones, on-line
//! with what they have.

use scheduler::{JobId, JobSpec, Span, Time};

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
    /// How long each job has waited at time 0, in microseconds.
    waited: Vec<i64>,
    /// By site.
    occupied: Vec<Occupied>,
}

/// What a site has at time 0: all of it comes before the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupied {
    /// What runs: in how many microseconds it is expected to end, above 0, and its processors.
    pub running: Vec<(i64, u32)>,
    /// What waits, in the order of its queue: microseconds that it requested, and its processors.
    pub waiting: Vec<(i64, u32)>,
}

impl Occupied {
    /// Microseconds until all of it has ended, one after the other.
    fn longest(&self) -> i128 {
        let running = self.running.iter().map(|&(end, _)| i128::from(end)).max().unwrap_or(0);
        running + self.waiting.iter().map(|&(requested, _)| i128::from(requested)).sum::<i128>()
    }
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
        let requested_total = i64::try_from(total).unwrap_or(i64::MAX);
        check_sums(total, jobs.len())?;
        let widths: Vec<u32> = jobs.iter().map(|job| job.processors).collect();
        Ok(Batch {
            first_sites: widths.iter().map(|width| sizes.partition_point(|size| size < width)).collect(),
            requested: jobs.iter().map(|job| job.requested.as_micros()).collect(),
            sizes: sizes.to_vec(),
            waited: vec![0; jobs.len()],
            occupied: vec![Occupied::default(); sizes.len()],
            jobs,
            widths,
            requested_total,
        })
    }

    /// The same at a time when jobs have waited since they were submitted, at sites that have this, in the order of the
    /// sites. What waits there fits there.
    ///
    /// # Errors
    /// If times are so long that sums overflow.
    ///
    /// # Panics
    /// If it is not one for each site.
    pub fn on_line(mut self, now: Time, occupied: Vec<Occupied>) -> Result<Batch, BatchError> {
        assert_eq!(occupied.len(), self.sizes.len(), "each site has something, or nothing");
        self.waited = self.jobs.iter().map(|job| now.since(job.submit).max(Span::ZERO).as_micros()).collect();
        let before = occupied.iter().map(Occupied::longest).max().unwrap_or(0);
        let waited = self.waited.iter().copied().max().unwrap_or(0);
        check_sums(i128::from(self.requested_total) + before + i128::from(waited), self.jobs.len())?;
        self.occupied = occupied;
        Ok(self)
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

    /// How long it has waited already, in microseconds.
    pub fn waited(&self, job: u32) -> i64 {
        self.waited[job as usize]
    }

    /// What a site has before the row.
    pub fn occupied(&self, site: usize) -> &Occupied {
        &self.occupied[site]
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

/// No job ends later than everything one after the other; ends are added up over all jobs.
fn check_sums(longest: i128, jobs: usize) -> Result<(), BatchError> {
    if longest.saturating_mul(jobs as i128) > i128::from(i64::MAX) {
        let longest = i64::try_from(longest).unwrap_or(i64::MAX);
        return Err(BatchError::TooLong(Span::from_micros(longest)));
    }
    Ok(())
}
