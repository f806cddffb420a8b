//! Lower bounds on the optimal makespan: no schedule of these jobs on these sites is shorter.
//!
//! With `S_k` the processors of the sites of rank k and above, and `rho` any submission time:
//!
//! ```text
//! time         max_j (r_j + p_j)
//! area_thesis  sum_j w_j / S_1                                                   Quezada Pina 2012, §4.3
//! area_start   max_k      sum { w_j : home(j) >= k } / S_k                       used by the proofs
//! area         max_k,rho  rho + sum { w_j : home(j) >= k, r_j >= rho } / S_k
//! count        max_q,rho  rho + sum { p_j : size_j >= q, r_j >= rho } / sum_i floor(s_i / q)
//! ```
//!
//! `count` is computed for the widths q that some job has: between two such widths the sum stays and the number
//! of slots falls, so no other q is better. Where jobs are spread over several sites, these bounds are those of one site with all
//! processors. All values are whole microseconds, rounded up, which is sound because
//! some optimal schedule starts every job at a whole microsecond. The search is in `staircase`.

mod staircase;

use serde::{Deserialize, Serialize};

use scheduler::{Grid, Span, Time, TimedJob};

use crate::job::JobState;
use crate::outcome::{Outcome, first_submission};

/// What a bound needs to know of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundJob {
    /// Submission time r_j, not negative, counted from the origin of the run.
    pub release: Span,
    /// Width size_j in processors.
    pub processors: u32,
    /// Run time p_j.
    pub run_time: Span,
}

/// Lower bounds on the makespan, each counted from the origin of the run, as the makespan is: the first submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// No job ends before its submission plus its run time.
    pub time: Span,
    /// All work spread evenly over the whole grid.
    pub area_thesis: Span,
    /// Work spread evenly over the sites wide enough for it, from the origin on.
    pub area_start: Span,
    /// The same, from any submission time on.
    pub area: Span,
    /// Jobs of at least some width placed one after another in the slots of that width.
    pub count: Span,
    /// The bound of the thesis: the greater of `time` and `area_thesis`. For comparison with published ratios.
    pub thesis: Span,
    /// The bound the theorems are proved against: the greater of `time` and `area_start`.
    pub proof: Span,
    /// The greatest of all.
    pub best: Span,
}

impl Bounds {
    /// The bounds for all jobs of a run that the grid can hold.
    ///
    /// Jobs that ended count with the time they executed for, others with their true run time.
    pub fn of(outcome: &Outcome) -> Bounds {
        let mut jobs: Vec<BoundJob> = outcome
            .jobs
            .iter()
            .filter(|job| job.state != JobState::Rejected)
            .map(|job| BoundJob {
                release: job.submit.since(outcome.origin),
                processors: job.processors,
                run_time: job.service(),
            })
            .collect();
        Bounds::of_jobs(&outcome.grid, &mut jobs)
    }

    /// The bounds for all jobs of a workload that the grid can hold: those of a complete run that executes every job
    /// for its run time.
    pub fn of_workload(grid: &Grid, workload: &[TimedJob]) -> Bounds {
        let origin = first_submission(grid, workload).unwrap_or(Time::ZERO);
        let fits = |job: &&TimedJob| job.spec.processors <= grid.widest_job();
        let mut jobs: Vec<BoundJob> = workload
            .iter()
            .filter(fits)
            .map(|job| BoundJob {
                release: job.spec.submit.since(origin),
                processors: job.spec.processors,
                run_time: job.run_time,
            })
            .collect();
        Bounds::of_jobs(grid, &mut jobs)
    }

    /// The bounds for these jobs, which are sorted by release.
    ///
    /// # Panics
    /// If a job is too wide for the grid or released before the origin.
    pub fn of_jobs(grid: &Grid, jobs: &mut [BoundJob]) -> Bounds {
        let whole = grid.spreads().then(|| whole(grid));
        let grid = whole.as_ref().unwrap_or(grid);
        jobs.sort_by_key(|job| job.release);
        assert!(
            jobs.first().is_none_or(|job| job.release >= Span::ZERO),
            "a job is released before the origin"
        );
        let time = jobs.iter().map(|job| job.release + job.run_time).max().unwrap_or(Span::ZERO);
        let by_home = area_staircase(grid, jobs);
        let area_start = from_micros(by_home.whole());
        let area = from_micros(by_home.best());
        let area_thesis = from_micros(whole_grid(grid, jobs));
        let count = from_micros(count_staircase(grid, jobs).best());
        Bounds {
            time,
            area_thesis,
            area_start,
            area,
            count,
            thesis: time.max(area_thesis),
            proof: time.max(area_start),
            best: time.max(area_thesis).max(area).max(count),
        }
    }

    /// A time over a bound; `None` if the bound is zero.
    pub fn ratio(makespan: Span, bound: Span) -> Option<f64> {
        (bound > Span::ZERO).then(|| makespan.as_secs_f64() / bound.as_secs_f64())
    }
}

/// Work w_j in processor-microseconds.
fn work(job: &BoundJob) -> i128 {
    i128::from(job.run_time.as_micros()) * i128::from(job.processors)
}

/// Where jobs are spread over several sites no job needs any one of them: what holds of one site with all processors is what is left.
fn whole(grid: &Grid) -> Grid {
    let processors = u32::try_from(grid.processors()).expect("a grid has a limit of processors");
    Grid::of_sizes(&[processors]).expect("it has processors")
}

/// The sum of all work over all processors, rounded up.
fn whole_grid(grid: &Grid, jobs: &[BoundJob]) -> i128 {
    staircase::ceil_div(jobs.iter().map(work).sum(), i128::from(grid.processors()))
}

/// Groups by home, the widest first; the weight is work and the capacity S_k.
fn area_staircase(grid: &Grid, jobs: &[BoundJob]) -> staircase::Staircase {
    let home = |job: &BoundJob| grid.home_rank(job.processors).expect("a rejected job has no bound");
    // Only ranks that are the home of a job matter: between them the work stays and S_k grows.
    let mut ranks: Vec<usize> = jobs.iter().map(home).collect();
    ranks.sort_unstable_by(|a, b| b.cmp(a));
    ranks.dedup();
    let mut group_of_rank = vec![0; grid.len()];
    for (group, &rank) in ranks.iter().enumerate() {
        group_of_rank[rank] = group;
    }
    let steps = jobs.iter().map(|job| staircase::Step {
        release: job.release.as_micros(),
        group: group_of_rank[home(job)],
        weight: work(job),
    });
    let capacities = ranks.iter().map(|&rank| i128::from(grid.suffix_processors(rank))).collect();
    staircase::Staircase::new(steps.collect(), capacities)
}

/// Groups by width, the widest first; the weight is run time and the capacity the number of slots of that width.
fn count_staircase(grid: &Grid, jobs: &[BoundJob]) -> staircase::Staircase {
    let mut widths: Vec<u32> = jobs.iter().map(|job| job.processors).collect();
    widths.sort_unstable_by(|a, b| b.cmp(a));
    widths.dedup();
    let slots = |width: u32| grid.sizes().iter().map(|&size| i128::from(size / width)).sum();
    let capacities = widths.iter().map(|&width| slots(width)).collect();
    let steps = jobs.iter().map(|job| staircase::Step {
        release: job.release.as_micros(),
        group: widths.binary_search_by(|width| job.processors.cmp(width)).expect("every width is listed"),
        weight: i128::from(job.run_time.as_micros()),
    });
    staircase::Staircase::new(steps.collect(), capacities)
}

fn from_micros(micros: i128) -> Span {
    Span::from_micros(i64::try_from(micros).expect("a bound on the makespan is a time"))
}

#[cfg(test)]
mod tests;
