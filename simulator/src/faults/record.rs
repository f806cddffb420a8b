//! What sites say of jobs in parts, beside what became of them: whoever reads the events alone comes to the same end.
//!
//! A job that was taken over may run twice, and its events say so; nothing is compared of it.

use std::collections::BTreeMap;

use scheduler::{EventKind, JobId, SiteId};

/// What was said of a job last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Runs,
    /// It is completed, says this site.
    Completed(SiteId),
    /// It does not execute.
    Waits,
    GivenUp,
}

/// What was said of each job that started.
#[derive(Clone, Debug, Default)]
pub(super) struct EventRecord(BTreeMap<JobId, Said>);

impl EventRecord {
    /// A site says something that is durable.
    ///
    /// # Errors
    /// If that cannot be, after what was said of the job before.
    pub(super) fn takes(&mut self, site: SiteId, kind: &EventKind) -> Result<(), (JobId, String)> {
        let given_up = |killed| if killed { Said::GivenUp } else { Said::Waits };
        let (job, said) = match *kind {
            EventKind::Started { job, .. } => (job, Said::Runs),
            EventKind::Completed { job, .. } => (job, Said::Completed(site)),
            EventKind::Interrupted { job, killed, .. } | EventKind::Revoked { job, killed, .. } => {
                (job, given_up(killed))
            }
            _ => return Ok(()),
        };
        let before = self.0.insert(job, said);
        let can_be = match *kind {
            EventKind::Started { .. } => !matches!(before, Some(Said::Completed(_) | Said::GivenUp)),
            EventKind::Revoked { killed: true, .. } => before != Some(Said::GivenUp),
            EventKind::Revoked { of, .. } => before == Some(Said::Completed(of)),
            _ => true,
        };
        match can_be {
            true => Ok(()),
            false => Err((job, format!("site {site} says {kind:?} after {before:?}"))),
        }
    }

    /// Whether it was said of a job that is over how it ended.
    pub(super) fn is_right(&self, job: JobId, given_up: bool) -> bool {
        match self.0.get(&job) {
            Some(Said::Completed(_)) => !given_up,
            Some(Said::GivenUp) => given_up,
            Some(Said::Runs | Said::Waits) | None => false,
        }
    }
}
