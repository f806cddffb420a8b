//! Level 2: what comes of the row of one site under EASY in the order of the row, with requested times, from time 0,
//! behind what the site has then.
//!
//! What [`scheduler::local::LocalQueue`] does with turns, and nothing else, so that it can be done some thousand times a second:
//! all jobs are there, nothing ends but when it is expected to, and arrays are used again. [`super::by_local_queues`] is
//! the same by way of that queue.

use scheduler::reservation::{self, Reservation};

use super::batch::Batch;

/// A response ratio of one, in the units that they are added up in.
pub const RESPONSE_UNIT: u64 = 1 << 32;

/// What the row of one site adds to the criteria.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCost {
    /// When the last job ends, in microseconds.
    pub end: i64,
    /// Turnaround times of all jobs, in microseconds.
    pub turnaround: i64,
    /// Their response ratios (c_j - r_j) / p_j, in units of [`RESPONSE_UNIT`], each of them rounded.
    pub response: u128,
    /// Jobs that are too wide for the site and were left out.
    pub misfits: u32,
}

/// The number of a job that is not of the batch.
const OTHER: u32 = u32::MAX;

/// A job that waits, of the row or before it.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    requested: i64,
    width: u32,
    /// The place of the next one that waits.
    next: u32,
    job: u32,
}

/// A job that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    end: i64,
    width: u32,
}

/// Schedules rows. It has nothing but memory that is used again.
#[derive(Clone, Debug, Default)]
pub struct RowScheduler {
    waiting: Vec<Waiting>,
    /// The one that ends first is the last.
    running: Vec<Running>,
}

impl RowScheduler {
    /// One that has not been used.
    pub fn new() -> RowScheduler {
        RowScheduler::default()
    }

    /// What a row adds to the criteria.
    pub fn cost(&mut self, batch: &Batch, site: usize, row: &[u32]) -> RowCost {
        let mut cost = RowCost::default();
        cost.misfits = self.schedule(batch, site, row, |job, start| {
            let requested = batch.requested(job);
            let end = start + requested;
            let turnaround = end + batch.waited(job);
            cost.end = cost.end.max(end);
            cost.turnaround += turnaround;
            cost.response += response(turnaround, requested);
        });
        cost
    }

    /// Tells of each job when it starts, in microseconds, in the order of starts. Jobs that are too wide for the site are
    /// left out and counted.
    pub fn schedule(
        &mut self,
        batch: &Batch,
        site: usize,
        row: &[u32],
        mut started: impl FnMut(u32, i64),
    ) -> u32 {
        let size = batch.sizes()[site];
        let mut free = size;
        let (waiting, running) = (&mut self.waiting, &mut self.running);
        waiting.clear();
        running.clear();
        let occupied = batch.occupied(site);
        for &(end, width) in &occupied.running {
            free -= width;
            run(running, end, width);
        }
        for &(requested, width) in &occupied.waiting {
            let next = waiting.len() as u32 + 1;
            waiting.push(Waiting { requested, width, next, job: OTHER });
        }
        let others = waiting.len();
        for &job in row {
            let width = batch.width(job);
            if width <= size {
                let next = waiting.len() as u32 + 1;
                waiting.push(Waiting { requested: batch.requested(job), width, next, job });
            }
        }
        let misfits = (row.len() + others - waiting.len()) as u32;
        let none = waiting.len() as u32;
        let mut started = |job, start| {
            if job != OTHER {
                started(job, start);
            }
        };
        let (mut head, mut now) = (0, 0);
        // Nothing that waits is narrower or shorter: most looks at all of it are in vain.
        let mut least = (0, 0);
        loop {
            while head < none && waiting[head as usize].width <= free {
                let job = waiting[head as usize];
                free -= job.width;
                run(running, now + job.requested, job.width);
                started(job.job, now);
                head = job.next;
            }
            if head == none {
                return misfits;
            }
            if free > 0 {
                let ends = running.iter().rev().map(|other| (other.end, other.width));
                let Reservation { shadow, mut extra } =
                    reservation::shadow(waiting[head as usize].width, free, now, ends)
                        .expect("a head that fits the site waits for something that runs");
                let slack = shadow - now;
                let (mut before, mut place) = (head, waiting[head as usize].next);
                if least.0 > free || (least.0 > extra && least.1 > slack) {
                    place = none;
                } else {
                    least = (u32::MAX, i64::MAX);
                }
                while place < none {
                    let job = waiting[place as usize];
                    let is_in_time = job.requested <= slack;
                    if job.width <= free && (is_in_time || job.width <= extra) {
                        if !is_in_time {
                            extra -= job.width;
                        }
                        free -= job.width;
                        run(running, now + job.requested, job.width);
                        started(job.job, now);
                        waiting[before as usize].next = job.next;
                        if free == 0 {
                            // What is behind it was not looked at.
                            least = (0, 0);
                            break;
                        }
                    } else {
                        least = (least.0.min(job.width), least.1.min(job.requested));
                        before = place;
                    }
                    place = job.next;
                }
            }
            now = running.last().expect("a head that fits the site waits for something that runs").end;
            while let Some(ended) = running.pop_if(|running| running.end == now) {
                free += ended.width;
            }
        }
    }
}

/// The response ratio of a job that ends then, in units of [`RESPONSE_UNIT`]: correctly rounded of two integers, and an
/// integer again before it is added up. So it is the same everywhere, and sums have no order.
pub(super) fn response(end: i64, run_time: i64) -> u128 {
    u128::from((end as f64 / run_time.max(1) as f64 * RESPONSE_UNIT as f64 + 0.5) as u64)
}

/// Keeps what runs in descending order of ends.
fn run(running: &mut Vec<Running>, end: i64, width: u32) {
    let place = running.partition_point(|other| other.end > end);
    running.insert(place, Running { end, width });
}
