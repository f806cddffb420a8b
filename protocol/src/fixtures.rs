//! What unit tests of several files need.

use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

use crate::Output;

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

/// Jobs that start by these outputs, in order.
pub(crate) fn started(outputs: &[Output]) -> Vec<u64> {
    let start = |output: &Output| match output {
        Output::Start(job) => Some(job.id.0),
        _ => None,
    };
    outputs.iter().filter_map(start).collect()
}
