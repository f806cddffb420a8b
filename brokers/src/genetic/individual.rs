//! Individuals: a row of jobs for each site, and what it comes to.

use scheduler::draw::Draw;

use super::batch::Batch;
use super::options::RowOrder;
use super::row::{RESPONSE_UNIT, RowCost, RowScheduler};

/// Jobs by site, each site's in the order of its queue.
pub type Rows = Vec<Vec<u32>>;

/// The four criteria of a batch, added up over all jobs, and the end of the last one. All times are requested times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Criteria {
    /// C_max in microseconds.
    pub makespan: i64,
    /// Turnaround times, in microseconds.
    pub turnaround: i64,
    /// Response ratios, in units of [`RESPONSE_UNIT`].
    pub response: u128,
    /// Waiting times, in microseconds.
    pub wait: i64,
    /// Jobs that are too wide for their site: such rows are no schedule.
    pub misfits: u32,
    /// Jobs in all.
    pub jobs: usize,
}

impl Criteria {
    /// From those of the rows.
    pub fn of(batch: &Batch, rows: &[RowCost]) -> Criteria {
        let mut sum = Criteria { jobs: batch.jobs().len(), ..Criteria::default() };
        for row in rows {
            sum.makespan = sum.makespan.max(row.end);
            sum.turnaround += row.turnaround;
            sum.response += row.response;
            sum.misfits += row.misfits;
        }
        // Without jobs that are left out, a wait is a turnaround without the requested time.
        sum.wait = sum.turnaround - batch.requested_total();
        sum
    }

    /// C_max in seconds.
    pub fn makespan_s(&self) -> f64 {
        self.makespan as f64 / 1e6
    }

    /// Mean turnaround in seconds.
    pub fn turnaround_s(&self) -> f64 {
        self.turnaround as f64 / 1e6 / self.jobs as f64
    }

    /// Mean response ratio.
    pub fn response_ratio(&self) -> f64 {
        self.response as f64 / RESPONSE_UNIT as f64 / self.jobs as f64
    }

    /// Mean wait in seconds.
    pub fn wait_s(&self) -> f64 {
        self.wait as f64 / 1e6 / self.jobs as f64
    }

    /// C_max, turnaround, response ratio and wait, as added up.
    pub fn values(&self) -> [u128; 4] {
        let time = |micros: i64| u128::try_from(micros).unwrap_or(0);
        [time(self.makespan), time(self.turnaround), self.response, time(self.wait)]
    }
}

/// Rows, and what is known of what they come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Individual {
    rows: Rows,
    /// None where a row has changed since.
    costs: Vec<Option<RowCost>>,
    criteria: Criteria,
}

impl Individual {
    /// Rows of which nothing is known.
    pub fn new(rows: Rows) -> Individual {
        let costs = vec![None; rows.len()];
        Individual { rows, costs, criteria: Criteria::default() }
    }

    /// Each job at a site that is drawn of those wide enough (§3.3). Rows have the order of arrival, or a random one.
    pub fn random(batch: &Batch, order: RowOrder, draw: &mut Draw) -> Individual {
        let mut rows: Rows = vec![Vec::new(); batch.sizes().len()];
        for job in 0..batch.jobs().len() as u32 {
            let first = batch.first_site(job);
            rows[first + draw.below(batch.sizes().len() - first)].push(job);
        }
        if order == RowOrder::Random {
            rows.iter_mut().for_each(|row| draw.shuffle(row));
        }
        Individual::new(rows)
    }

    /// The rows, by site.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// What they came to when they were evaluated.
    pub fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    /// Whether rows have changed since.
    pub fn is_stale(&self) -> bool {
        self.costs.iter().any(Option::is_none)
    }

    /// Schedules the rows that have changed, and no others.
    pub fn evaluate(&mut self, batch: &Batch, scheduler: &mut RowScheduler) {
        let mut costs = Vec::with_capacity(self.costs.len());
        for (site, (row, cost)) in self.rows.iter().zip(&mut self.costs).enumerate() {
            costs.push(*cost.get_or_insert_with(|| scheduler.cost(batch, site, row)));
        }
        self.criteria = Criteria::of(batch, &costs);
    }

    /// Other rows, of which is known what is known of the same row of either of two others.
    pub(super) fn with_rows(rows: Rows, known: [&Individual; 2]) -> Individual {
        let of_row = |(site, row): (usize, &Vec<u32>)| {
            let same = known.into_iter().find(|other| other.rows[site] == *row);
            same.and_then(|other| other.costs[site])
        };
        let costs = rows.iter().enumerate().map(of_row).collect();
        Individual { rows, costs, criteria: Criteria::default() }
    }

    /// Changes rows; what is known of a row that is another one then is forgotten.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Rows)) {
        let before = self.rows.clone();
        change(&mut self.rows);
        for ((before, after), cost) in before.iter().zip(&self.rows).zip(&mut self.costs) {
            if before != after {
                *cost = None;
            }
        }
    }
}
