//! The criteria of rows by way of the local queues that simulations and nodes use: slow, and known to be right; and with
//! other run times than those that were requested.

use scheduler::local::{LocalQueue, replay};
use scheduler::{JobId, JobSpec, LocalScheduler, Pass, Span, Time, TimedJob};

use super::batch::Batch;
use super::individual::{Criteria, Rows};
use super::row::{RowCost, response};

/// The criteria of rows where jobs run for so long, each row under EASY in its order. With requested times it is what
/// [`super::RowScheduler`] finds; with true ones, what comes of the rows when they are executed.
///
/// # Panics
/// If a job is wider than the site of its row.
pub fn by_local_queues(batch: &Batch, rows: &Rows, run_time: impl Fn(u32) -> Span) -> Criteria {
    let mut waited = 0;
    let mut of_row = |(row, &size): (&Vec<u32>, &u32)| {
        // All come at once, so that numbers are turns.
        let job = |(turn, &job): (u64, &u32)| {
            let spec = JobSpec { id: JobId(turn), submit: Time::ZERO, ..batch.jobs()[job as usize] };
            TimedJob { spec, run_time: run_time(job) }
        };
        let jobs: Vec<TimedJob> = (0..).zip(row).map(job).collect();
        let mut cost = RowCost::default();
        for (turn, start) in replay(LocalQueue::new(LocalScheduler::Easy, Pass::Batch, size), &jobs) {
            let run_time = jobs[turn.0 as usize].run_time.as_micros();
            let end = start.as_micros() + run_time;
            cost.end = cost.end.max(end);
            cost.turnaround += end;
            cost.response += response(end, run_time);
            waited += start.as_micros();
        }
        cost
    };
    let costs: Vec<RowCost> = rows.iter().zip(batch.sizes()).map(&mut of_row).collect();
    Criteria { wait: waited, ..Criteria::of(batch, &costs) }
}
