//! Jobs that came by routes whose senders may not have heard so.
//!
//! A route makes its receiver the guardian. If the sender never comes back, its journal says of such a job that it is
//! out, and the operator gives it to its receiver again ([`super::operator`]). The receiver's journal knows the number
//! of the transfer and not the job, so a site remembers here which job it was until the sender asks for the answer no
//! more. A site that restarted in between has forgotten it, and the job runs once more.

use std::collections::BTreeMap;

use scheduler::{JobId, SiteId};

/// As many as there are routes whose answers are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unheard {
    jobs: BTreeMap<JobId, Arrived>,
    routes: BTreeMap<(SiteId, u64), JobId>,
}

#[derive(Clone, Copy, Debug)]
struct Arrived {
    route: (SiteId, u64),
    has_ended: bool,
}

impl Unheard {
    /// A job came by this transfer of `from`, and this site is its guardian.
    pub(super) fn came(&mut self, job: JobId, from: SiteId, number: u64) {
        let route = (from, number);
        if let Some(before) = self.jobs.insert(job, Arrived { route, has_ended: false }) {
            self.routes.remove(&before.route);
        }
        self.routes.insert(route, job);
    }

    /// A job ended, here or where this site gave it.
    pub(super) fn ended(&mut self, job: JobId) {
        if let Some(arrived) = self.jobs.get_mut(&job) {
            arrived.has_ended = true;
        }
    }

    /// The sender asks for the answers to transfers below this number no more.
    pub(super) fn heard(&mut self, from: SiteId, floor: u64) {
        while let Some((&route, &job)) = self.routes.range((from, 0)..(from, floor)).next() {
            self.routes.remove(&route);
            self.jobs.remove(&job);
        }
    }

    /// Whether a job has ended whose sender may not know that it came.
    pub(super) fn has_ended(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|arrived| arrived.has_ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_remembered_until_its_sender_asks_no_more() {
        let mut unheard = Unheard::default();
        let (a, b) = (SiteId(1), SiteId(2));
        unheard.came(JobId(1), a, 1);
        unheard.came(JobId(2), a, 2);
        unheard.came(JobId(3), b, 1);
        assert!(!unheard.has_ended(JobId(1)), "it came, and waits");
        (1..=4).for_each(|job| unheard.ended(JobId(job)));
        unheard.heard(a, 2);
        assert_eq!([1, 2, 3, 4].map(|job| unheard.has_ended(JobId(job))), [false, true, true, false]);
        unheard.came(JobId(2), b, 5);
        assert!(!unheard.has_ended(JobId(2)), "it came again");
        unheard.heard(a, 9);
        assert_eq!(unheard.jobs.len(), 2, "what came by another sender since stays");
    }
}
