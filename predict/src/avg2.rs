//! AVG2: the mean of the last two run times of the user, in whole seconds; the user's estimate before there are two (Tsafrir,
//! Etsion and Feitelson 2007, section 3). The last are those that ended last.

use std::collections::BTreeMap;

use scheduler::{JobSpec, Span, Time};

use super::Rule;
use super::last::mean;

#[derive(Clone, Debug, Default)]
pub(super) struct Avg2 {
    /// By user: the last run time, and the one before.
    last: BTreeMap<i32, (Span, Option<Span>)>,
}

impl Rule for Avg2 {
    fn predict(&mut self, _now: Time, job: &JobSpec) -> Option<Span> {
        let &(last, before) = self.last.get(&job.labels.user)?;
        mean([last, before?].into_iter())
    }

    fn learn(&mut self, _now: Time, job: &JobSpec, run_time: Span) {
        let before = self.last.get(&job.labels.user).map(|&(last, _)| last);
        self.last.insert(job.labels.user, (run_time, before));
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}
