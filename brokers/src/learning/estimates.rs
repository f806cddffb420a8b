//! What heuristics are told that need to know how long jobs take where: a seam, so that each driver estimates as it can.

use scheduler::{JobSpec, Span, Time};
use serde::{Deserialize, Serialize};

/// Names a file that is an input of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileId(pub u64);

/// A file that a job reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its name.
    pub file: FileId,
    /// Its size.
    pub bytes: u64,
}

/// Estimates over jobs and sites. What a driver does not know stays as here: jobs take as long as requested anywhere,
/// sites are ready, and no data moves.
pub trait Estimates {
    /// ETC: how long a job would run at a site.
    fn execution(&self, job: &JobSpec, _site: usize) -> Span {
        job.requested
    }

    /// R: when a site is free of what it has. What is past counts as now.
    fn ready(&self, _site: usize) -> Time {
        Time::from_micros(i64::MIN)
    }

    /// Files that a job reads.
    fn inputs(&self, _job: &JobSpec) -> &[Input] {
        &[]
    }

    /// Whether a file is at a site.
    fn holds(&self, _file: FileId, _site: usize) -> bool {
        true
    }

    /// X: how long it takes to bring so many bytes to a site.
    fn transfer(&self, _bytes: u64, _site: usize) -> Span {
        Span::ZERO
    }

    /// The cluster that a site is of.
    fn cluster(&self, site: usize) -> usize {
        site
    }

    /// What a job costs at a site, in units of money.
    fn price(&self, _site: usize) -> u64 {
        0
    }
}

/// Nothing is known but what users request, and what jobs cost.
#[derive(Clone, Debug, Default)]
pub struct Requested {
    prices: Vec<u64>,
}

impl Requested {
    /// Where sites ask for no prices.
    pub const NOTHING: Requested = Requested { prices: Vec::new() };

    /// Where sites ask for these prices, by place; the others for none.
    pub fn at_prices(prices: impl IntoIterator<Item = u64>) -> Requested {
        Requested { prices: prices.into_iter().collect() }
    }
}

impl Estimates for Requested {
    fn price(&self, site: usize) -> u64 {
        self.prices.get(site).copied().unwrap_or(0)
    }
}
