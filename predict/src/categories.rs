//! The mean run time of all jobs of the same category, exactly: of one user, program and width (Smith, Foster and Taylor, JSSPP 1998), or
//! of one user, queue, program and width (Li, Groep, Templon and Wolters, 2004), in the short forms of Lérida's thesis (3.2.1), with a
//! mean over all that ended. Before there is a job of the category, wider ones count: the same without the width; then without the
//! program; then all jobs of the user.

use std::collections::BTreeMap;

use scheduler::{JobSpec, Span, Time};

use super::{Rule, whole_seconds};

/// What jobs of a category have in common, besides their user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Program and processors.
    Smith,
    /// Queue, program and processors.
    Li,
}

/// User, queue, program, width; what does not count is none.
type Category = (i32, Option<i32>, Option<i32>, Option<u32>);

impl Pattern {
    /// The categories of a job, the most special first.
    fn categories(self, job: &JobSpec) -> [Category; 4] {
        let JobSpec { processors, labels, .. } = *job;
        let queue = match self {
            Pattern::Smith => None,
            Pattern::Li => Some(labels.queue),
        };
        let program = Some(labels.executable);
        [
            (labels.user, queue, program, Some(processors)),
            (labels.user, queue, program, None),
            (labels.user, queue, None, None),
            (labels.user, None, None, None),
        ]
    }
}

#[derive(Clone, Debug)]
pub(super) struct Experience {
    pattern: Pattern,
    /// Sum of run times in microseconds, and how many.
    known: BTreeMap<Category, (i128, i128)>,
}

impl Experience {
    pub(super) fn new(pattern: Pattern) -> Experience {
        Experience { pattern, known: BTreeMap::new() }
    }
}

impl Rule for Experience {
    fn predict(&mut self, _now: Time, job: &JobSpec) -> Option<Span> {
        let categories = self.pattern.categories(job).into_iter();
        let (sum, count) = categories.filter_map(|category| self.known.get(&category)).next()?;
        i64::try_from(sum / count).ok().map(|micros| whole_seconds(Span::from_micros(micros)))
    }

    fn learn(&mut self, _now: Time, job: &JobSpec, run_time: Span) {
        let mut categories = self.pattern.categories(job).to_vec();
        // Without a queue the last two are one.
        categories.dedup();
        for category in categories {
            let (sum, count) = self.known.entry(category).or_default();
            *sum += i128::from(run_time.as_micros());
            *count += 1;
        }
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use scheduler::Labels;

    use super::*;
    use crate::tests::job;

    fn of(queue: i32, executable: i32, processors: u32) -> JobSpec {
        let labels = Labels { user: 1, queue, executable, ..Labels::UNKNOWN };
        JobSpec { labels, processors, ..job(1, 1000) }
    }

    #[test]
    fn the_mean_of_the_most_special_category_counts() {
        for (pattern, same, no_width, no_program) in [(Pattern::Smith, 55, 70, 70), (Pattern::Li, 10, 55, 55)]
        {
            let mut experience = Experience::new(pattern);
            assert_eq!(experience.predict(Time::ZERO, &of(1, 1, 4)), None);
            for (queue, processors, run_time) in [(1, 4, 10), (2, 4, 100), (1, 8, 100)] {
                experience.learn(Time::ZERO, &of(queue, 1, processors), Span::from_secs(run_time));
            }
            let mut seconds =
                |job| experience.predict(Time::ZERO, &job).map(|span| span.as_micros() / 1_000_000);
            assert_eq!(seconds(of(1, 1, 4)), Some(same), "{pattern:?}: 10, and 100 of the other queue");
            assert_eq!(seconds(of(1, 1, 2)), Some(no_width), "{pattern:?}: any width");
            assert_eq!(seconds(of(1, 2, 4)), Some(no_program), "{pattern:?}: any program");
            assert_eq!(seconds(of(3, 2, 4)), Some(70), "{pattern:?}: any queue");
            assert_eq!(
                seconds(JobSpec { labels: Labels { user: 2, ..of(1, 1, 4).labels }, ..of(1, 1, 4) }),
                None
            );
        }
    }
}
