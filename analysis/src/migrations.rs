//! Which site ran whose jobs: the matrices of the thesis (Quezada Pina 2012, Tables 8 and 9).
//!
//! Rows are home sites and columns executing sites. Table 8 counts jobs. Table 9 is headed "work", but its numbers
//! are shares of the number of jobs; both shares are here, each under its name. Only pairs that occur are kept, so
//! that a grid of ten thousand sites costs no more than its migrations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use scheduler::SiteId;

use crate::outcome::Outcome;

/// Jobs of one home site that ran at one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// How many jobs there are.
    pub jobs: u64,
    /// Processor-microseconds.
    pub work: i128,
}

impl Cell {
    fn add(&mut self, work: i128) {
        self.jobs += 1;
        self.work += work;
    }

    /// Processor-seconds.
    pub fn work_s(self) -> f64 {
        self.work as f64 / 1e6
    }
}

/// A pair of sites and what moved between them; shares are of all finished jobs of the home site.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Migration {
    /// The home of the jobs.
    pub home: SiteId,
    /// Where they ran.
    pub site: SiteId,
    /// How many (Table 8).
    pub jobs: u64,
    /// Their share of the jobs of the home site (Table 9), 0 to 1.
    pub jobs_share: f64,
    /// Their work in processor-seconds.
    pub work: f64,
    /// Their share of the work of the home site, 0 to 1.
    pub work_share: f64,
}

/// Who ran whose jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Migrations {
    cells: BTreeMap<(SiteId, SiteId), Cell>,
    homes: BTreeMap<SiteId, Cell>,
    without_home: Cell,
}

impl Migrations {
    /// Counts the finished jobs of a run.
    pub fn of(outcome: &Outcome) -> Migrations {
        let mut migrations = Migrations::default();
        for job in outcome.finished() {
            if job.home.is_none() {
                migrations.without_home.add(job.work());
            }
            if let (Some(home), Some(site)) = (job.home, job.site) {
                migrations.cells.entry((home, site)).or_default().add(job.work());
                migrations.homes.entry(home).or_default().add(job.work());
            }
        }
        migrations
    }

    /// The jobs of a home site that ran at a site, which may be the same.
    pub fn cell(&self, home: SiteId, site: SiteId) -> Cell {
        self.cells.get(&(home, site)).copied().unwrap_or_default()
    }

    /// All finished jobs of a home site.
    pub fn home(&self, home: SiteId) -> Cell {
        self.homes.get(&home).copied().unwrap_or_default()
    }

    /// All finished jobs without a home, which are in no pair: they are wider than every site, and ran at several at once.
    pub fn without_home(&self) -> Cell {
        self.without_home
    }

    /// All pairs that occur, also a site with itself, by home and then by site.
    pub fn pairs(&self) -> impl Iterator<Item = Migration> {
        self.cells.iter().map(|(&(home, site), cell)| {
            let all = self.home(home);
            let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
            Migration {
                home,
                site,
                jobs: cell.jobs,
                jobs_share: share(cell.jobs as f64, all.jobs as f64),
                work: cell.work_s(),
                work_share: share(cell.work_s(), all.work_s()),
            }
        })
    }

    /// The pairs of two different sites: what was stolen.
    pub fn stolen(&self) -> impl Iterator<Item = Migration> {
        self.pairs().filter(|pair| pair.home != pair.site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn rows_sum_to_the_jobs_of_their_home() {
        let jobs = [(0, 2, 10, 1, 0), (0, 1, 6, 2, 0), (0, 1, 4, 1, 10), (0, 3, 5, 2, 6)];
        let migrations = Migrations::of(&fixtures::outcome(&[2, 4], &jobs));

        let (small, large) = (SiteId(1), SiteId(2));
        assert_eq!(migrations.home(small), Cell { jobs: 3, work: 30_000_000 });
        assert_eq!(migrations.cell(small, large), Cell { jobs: 1, work: 6_000_000 });
        assert_eq!(migrations.cell(large, small), Cell::default());
        let stolen: Vec<Migration> = migrations.stolen().collect();
        assert_eq!(stolen.len(), 1);
        assert!((stolen[0].jobs_share - 1.0 / 3.0).abs() < 1e-12);
        assert!((stolen[0].work_share - 0.2).abs() < 1e-12);
        let jobs: u64 = migrations.pairs().map(|pair| pair.jobs).sum();
        assert_eq!(jobs, 4);
    }
}
