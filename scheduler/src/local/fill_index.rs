//! Waiting jobs by how much they would fill: the index of EASY best fit.
//!
//! Within one width, the job that fills most is the longest that the limits admit, so the best of all is
//! found by looking at one job per width: O(k log n) for k different widths, however long the queue is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::backlog::Limits;
use super::turn::{Place, Waiting};
use crate::job::{JobId, QueueKey};
use crate::time::{Span, Time};

/// Before every job in queue order.
const FIRST: Place = Place { turn: 0, key: QueueKey { submit: Time::from_micros(i64::MIN), id: JobId(0) } };

/// Waiting jobs by width, then request, then queue order.
#[derive(Clone, Debug, Default)]
pub(super) struct FillIndex {
    by_width: BTreeMap<u32, BTreeSet<(Span, Reverse<Place>)>>,
}

impl FillIndex {
    pub(super) fn insert(&mut self, job: &Waiting) {
        let is_new = self.by_width.entry(job.processors).or_default().insert(place_of(job));
        assert!(is_new, "job {} waits once", job.id);
    }

    pub(super) fn remove(&mut self, job: &Waiting) {
        let jobs = self.by_width.get_mut(&job.processors).expect("no width is kept without a job");
        assert!(jobs.remove(&place_of(job)), "job {} waits", job.id);
        if jobs.is_empty() {
            self.by_width.remove(&job.processors);
        }
    }

    /// The admitted job of largest processors times request, then the widest, then the first in queue order.
    pub(super) fn best(&self, limits: &Limits) -> Option<Place> {
        let mut best = None;
        for (&width, jobs) in self.by_width.range(..=limits.free) {
            let longest = if width <= limits.extra {
                jobs.last()
            } else {
                jobs.range(..=(limits.slack(), Reverse(FIRST))).next_back()
            };
            if let Some(&(requested, Reverse(key))) = longest {
                let area = i128::from(width) * i128::from(requested.as_micros());
                // Widths ascend, so of equal areas the later is the wider.
                if best.is_none_or(|(largest, _)| area >= largest) {
                    best = Some((area, key));
                }
            }
        }
        best.map(|(_, key)| key)
    }

    pub(super) fn len(&self) -> usize {
        self.by_width.values().map(BTreeSet::len).sum()
    }
}

fn place_of(job: &Waiting) -> (Span, Reverse<Place>) {
    (job.requested, Reverse(job.place()))
}
