//! Short ways to make experiments and their jobs, for tests of this crate and of those that run experiments.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

use crate::experiment::Experiment;
use crate::experiment::file::Written;
use crate::experiment::jobs::Jobs;

/// Two sites of 8 and 2 processors, and what else an experiment file would say.
pub fn experiment(text: &str) -> Experiment {
    let mut written: Written = toml::from_str(text).unwrap();
    written.grid.sizes = Some(vec![8, 2]);
    written.workload.trace = Some("none.swf".into());
    written.name = Some("a run".to_string());
    Experiment::resolve(&written).unwrap()
}

/// One job of 100 s, submitted at 3600 s.
pub fn jobs() -> Jobs {
    let spec = JobSpec {
        id: JobId(1),
        submit: Time::from_secs(3600),
        processors: 1,
        requested: Span::from_secs(100),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    let job = TimedJob { spec, run_time: Span::from_secs(100) };
    Jobs { jobs: vec![job], ..Jobs::default() }
}
