//! The median of the last run times of the most similar jobs: those of the same user, program, width and estimate; if there are none,
//! of the same user, width and estimate; then of the same user and estimate; then of the same user. A short form of the templates of
//! Gibbons (JSSPP 1997) and of Smith, Foster and Taylor (JSSPP 1998), with the order given.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display};

use scheduler::{JobSpec, Span, Time};

use super::Rule;
use super::last::{keep, median};
use super::spelled::{K_MAX, Options};

/// How many run times count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// Run times of a kind of jobs at most; fewer, before there are so many.
    pub k: u32,
}

impl Template {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Template, String> {
        Ok(Template { k: options.number("k", 5, K_MAX)? })
    }
}

impl Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k={}", self.k)
    }
}

/// A kind of jobs: by user, program, width and estimate, the last three where they count.
type Kind = (i32, Option<i32>, Option<u32>, Option<Span>);

/// The kinds of a job, the most special first.
fn kinds(job: &JobSpec) -> [Kind; 4] {
    let JobSpec { processors, requested, labels, .. } = *job;
    [
        (labels.user, Some(labels.executable), Some(processors), Some(requested)),
        (labels.user, None, Some(processors), Some(requested)),
        (labels.user, None, None, Some(requested)),
        (labels.user, None, None, None),
    ]
}

#[derive(Clone, Debug)]
pub(super) struct Experience {
    template: Template,
    by_kind: BTreeMap<Kind, VecDeque<Span>>,
}

impl Experience {
    pub(super) fn new(template: Template) -> Experience {
        Experience { template, by_kind: BTreeMap::new() }
    }
}

impl Rule for Experience {
    fn predict(&mut self, _now: Time, job: &JobSpec) -> Option<Span> {
        let known = kinds(job).into_iter().find_map(|kind| self.by_kind.get(&kind))?;
        median(known.iter().copied())
    }

    fn learn(&mut self, _now: Time, job: &JobSpec, run_time: Span) {
        for kind in kinds(job) {
            keep(self.by_kind.entry(kind).or_default(), run_time, self.template.k);
        }
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::job;

    #[test]
    fn the_most_similar_jobs_count() {
        let mut experience = Experience::new(Template { k: 3 });
        let wide = JobSpec { processors: 8, ..job(1, 100) };
        for run_time in [1, 2, 3, 4] {
            experience.learn(Time::ZERO, &job(1, 100), Span::from_secs(run_time));
        }
        experience.learn(Time::ZERO, &wide, Span::from_secs(90));
        let mut predicted =
            |job: &JobSpec| experience.predict(Time::ZERO, job).map(|span| span.as_micros() / 1_000_000);
        assert_eq!(predicted(&job(1, 100)), Some(3));
        assert_eq!(predicted(&wide), Some(90));
        assert_eq!(predicted(&JobSpec { processors: 4, ..job(1, 100) }), Some(4), "of 3, 4 and 90");
        assert_eq!(predicted(&job(1, 50)), Some(4));
        assert_eq!(predicted(&job(2, 100)), None);
    }
}
