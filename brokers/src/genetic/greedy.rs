//! Greedy allocation: one job after the other to the site whose plan with it is the best, and never again (§3.1, §5).
//!
//! With r_j = 0 the turnaround of a job is its completion time and its wait is its start time, and it takes as long at all sites.
//! By the job's own times all four are Min_ST. So Min_CT goes by the completion of the site, Min_TA and Min_WT by its means.

use std::cmp::Ordering;

use scheduler::strategy::Completion;

use super::batch::Batch;
use super::individual::Rows;
use super::options::Stays;
use super::row::RowScheduler;

/// What is made least by the choice of a site; of equally good ones the smallest is taken, then the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Min_CT (A1).
    CompletionTime,
    /// Min_ST (A2).
    StartTime,
    /// Min_TA (A3).
    Turnaround,
    /// Min_WT (A4).
    Wait,
}

/// The order of the jobs, which is then that of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// That of arrival.
    Arrival,
    /// The shortest requested time first.
    ShortestFirst,
    /// The largest requested work first: processors times requested time.
    LargestFirst,
}

/// A site with the job at the end of its row, planned anew.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    /// Of the site, without the job.
    end_before: i64,
    end: i64,
    job_start: i64,
    job_end: i64,
    turnaround: i64,
    wait: i64,
    jobs: i64,
}

/// Allocates all jobs of a batch.
pub fn greedy(batch: &Batch, order: Order, rule: Rule, completion: Completion, stays: Stays) -> Rows {
    let mut jobs: Vec<u32> = (0..batch.jobs().len() as u32).collect();
    match order {
        Order::Arrival => {}
        Order::ShortestFirst => jobs.sort_by_key(|&job| batch.requested(job)),
        Order::LargestFirst => {
            jobs.sort_by_key(|&job| -i128::from(batch.requested(job)) * i128::from(batch.width(job)));
        }
    }
    let mut scheduler = RowScheduler::new();
    let mut rows: Rows = vec![Vec::new(); batch.sizes().len()];
    let mut ends = vec![0; rows.len()];
    for job in jobs {
        let mut chosen: Option<(usize, Plan)> = None;
        for site in batch.first_site(job)..rows.len() {
            rows[site].push(job);
            let plan = Plan { end_before: ends[site], ..planned(batch, &mut scheduler, site, &rows[site]) };
            rows[site].pop();
            if chosen.is_none_or(|(_, best)| plan.compare(&best, rule, completion, stays).is_lt()) {
                chosen = Some((site, plan));
            }
        }
        let (site, plan) = chosen.expect("a batch has a site for each job");
        rows[site].push(job);
        ends[site] = plan.end;
    }
    rows
}

fn planned(batch: &Batch, scheduler: &mut RowScheduler, site: usize, row: &[u32]) -> Plan {
    let last = row[row.len() - 1];
    let mut plan = Plan { jobs: row.len() as i64, ..Plan::default() };
    scheduler.schedule(batch, site, row, |job, start| {
        let end = start + batch.requested(job);
        plan.end = plan.end.max(end);
        plan.turnaround += end;
        plan.wait += start;
        if job == last {
            (plan.job_start, plan.job_end) = (start, end);
        }
    });
    plan
}

impl Plan {
    fn compare(&self, other: &Plan, rule: Rule, completion: Completion, stays: Stays) -> Ordering {
        let means = |one: i64, other_one: i64| {
            (i128::from(one) * i128::from(other.jobs)).cmp(&(i128::from(other_one) * i128::from(self.jobs)))
        };
        match (rule, stays) {
            (Rule::CompletionTime, _) => match completion {
                Completion::SiteBefore => self.end_before.cmp(&other.end_before),
                Completion::SiteAfter => self.end.cmp(&other.end),
                Completion::JobAfter => self.job_end.cmp(&other.job_end),
            },
            (Rule::Turnaround, Stays::Job) => self.job_end.cmp(&other.job_end),
            (Rule::StartTime, _) | (Rule::Wait, Stays::Job) => self.job_start.cmp(&other.job_start),
            (Rule::Turnaround, Stays::Site) => means(self.turnaround, other.turnaround),
            (Rule::Wait, Stays::Site) => means(self.wait, other.wait),
        }
    }
}
