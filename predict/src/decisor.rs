//! The predictor that was best of late: of each job's candidates that whose last ζ predictions deviated least (*Decisor* of Lérida's thesis,
//! 3.6), by the deviation of 3.13, the sum of |predicted − run time| over that of run times. The run times are the same for all, so that the
//! sums of errors decide; of equal ones the first. The last ζ are those of jobs of the same user, or of everybody.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display};

use scheduler::{JobSpec, Span, Time};

use super::last::keep;
use super::pending::Pending;
use super::spelled::{K_MAX, Options};
use super::{Predictor, Rule};

/// Whose last predictions count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Those of the user.
    User,
    /// All, as in the thesis.
    All,
}

const OF: [(&str, Of); 2] = [("user", Of::User), ("all", Of::All)];

/// How the best is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decisor {
    /// ζ: predictions that count.
    pub zeta: u32,
    /// Of which jobs.
    pub of: Of,
}

/// Who is asked, in the order in which equals are preferred.
const CANDIDATES: [&str; 5] =
    ["template", "last:k=5,by=ratio", "avg2", "linear:over=abs,under=abs,weight=one", "user"];

impl Decisor {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Decisor, String> {
        Ok(Decisor { zeta: options.number("zeta", 20, K_MAX)?, of: options.one_of("of", &OF, Of::User)? })
    }
}

impl Display for Decisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = OF.iter().find(|(_, of)| *of == self.of).expect("all are there").0;
        write!(f, "zeta={},of={of}", self.zeta)
    }
}

/// What each candidate said of a job, or by how much it was wrong.
type Each = [Span; CANDIDATES.len()];

#[derive(Debug)]
pub(super) struct Experience {
    decisor: Decisor,
    /// None believes the user.
    candidates: Vec<Option<Box<dyn Rule>>>,
    said: Pending<Each>,
    /// By user, or all under one key.
    errors: BTreeMap<Option<i32>, VecDeque<Each>>,
}

impl Experience {
    pub(super) fn new(decisor: Decisor) -> Experience {
        let rule = |name: &&str| name.parse::<Predictor>().expect("the list is fixed").rule();
        let candidates = CANDIDATES.iter().map(rule).collect();
        Experience { decisor, candidates, said: Pending::new(), errors: BTreeMap::new() }
    }

    fn key(&self, job: &JobSpec) -> Option<i32> {
        match self.decisor.of {
            Of::User => Some(job.labels.user),
            Of::All => None,
        }
    }
}

/// The candidate that deviated least.
fn best(errors: &VecDeque<Each>) -> usize {
    let sum = |candidate: &usize| -> i128 {
        errors.iter().map(|each| i128::from(each[*candidate].as_micros())).sum()
    };
    (0..CANDIDATES.len()).min_by_key(sum).unwrap_or(0)
}

impl Rule for Experience {
    fn predict(&mut self, now: Time, job: &JobSpec) -> Option<Span> {
        let mut said = [job.requested; CANDIDATES.len()];
        for (candidate, said) in self.candidates.iter_mut().zip(&mut said) {
            if let Some(span) = candidate.as_mut().and_then(|rule| rule.predict(now, job)) {
                *said = span.min(job.requested);
            }
        }
        self.said.insert(job.id, said);
        let best = self.errors.get(&self.key(job)).map_or(0, best);
        Some(said[best])
    }

    fn learn(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        if let Some(said) = self.said.take(job.id) {
            let wrong = said.map(|said| if said > run_time { said - run_time } else { run_time - said });
            let key = self.key(job);
            keep(self.errors.entry(key).or_default(), wrong, self.decisor.zeta);
        }
        for candidate in self.candidates.iter_mut().flatten() {
            candidate.learn(now, job, run_time);
        }
    }

    fn boxed(&self) -> Box<dyn Rule> {
        let candidates = self.candidates.iter();
        Box::new(Experience {
            decisor: self.decisor,
            candidates: candidates.map(|rule| rule.as_ref().map(|rule| rule.boxed())).collect(),
            said: self.said.clone(),
            errors: self.errors.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use scheduler::JobId;

    use super::*;
    use crate::tests::job;

    /// A user runs for 90 of 100 s, then for all of them: the last four errors tell who is right.
    #[test]
    fn who_deviated_least_of_late_is_believed() {
        let mut experience = Experience::new(Decisor { zeta: 4, of: Of::User });
        assert_eq!(experience.predict(Time::ZERO, &job(1, 100)), Some(Span::from_secs(100)));
        let mut number = 1;
        let mut run = |experience: &mut Experience, run_time| {
            number += 1;
            let job = JobSpec { id: JobId(number), ..job(1, 100) };
            let said = experience.predict(Time::ZERO, &job);
            experience.learn(Time::ZERO, &job, Span::from_secs(run_time));
            said.map(|span| span.as_micros() / 1_000_000)
        };
        for _ in 0..8 {
            run(&mut experience, 90);
        }
        assert_eq!(run(&mut experience, 90), Some(90), "all are right but the user");
        for _ in 0..8 {
            run(&mut experience, 100);
        }
        let errors = &experience.errors[&Some(1)];
        assert_eq!(errors.len(), 4, "the last four count");
        assert_eq!(errors.back().map(|each| each[4]), Some(Span::ZERO), "the user is right");
        assert_eq!(best(errors), 0, "and the template, which comes first");
    }

    #[test]
    fn the_first_of_equals_is_the_best_and_the_sum_decides() {
        let seconds = |each: [i64; CANDIDATES.len()]| each.map(Span::from_secs);
        assert_eq!(best(&VecDeque::from([seconds([5; 5])])), 0);
        let two = VecDeque::from([seconds([1, 9, 3, 9, 9]), seconds([9, 9, 6, 9, 9])]);
        assert_eq!(best(&two), 2, "9 is less than 10");
    }
}
