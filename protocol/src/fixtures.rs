//! What unit tests of several files need.

use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

/// A job that came to site 1 at the origin of time and asks for a second.
pub(crate) fn job(id: u64, processors: u32) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors,
        requested: Span::from_secs(1),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}
