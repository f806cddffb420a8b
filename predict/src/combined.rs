//! Several predictors asked at once. Of two, the shorter prediction: whoever is looked at first by it overtakes more often where users ran
//! for less before, and what runs past it is corrected. Of three, the one in the middle: an outlier of one is no prediction.
//!
//! The members were chosen on the first halves of KTH-SP2, SDSC-SP2 and CTC-SP2 (docs/PREDICTION.md).

use std::fmt::{self, Display};

use scheduler::{JobSpec, Span, Time};

use super::spelled::Options;
use super::{Predictor, Rule};

/// Whose predictions are combined, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combined {
    /// The shorter of AVG2 and the template.
    Shorter,
    /// The middle one of the template, the largest ratio of the last five, and a regression of absolute errors.
    Middle,
}

const BY: [(&str, Combined); 2] = [("shorter", Combined::Shorter), ("middle", Combined::Middle)];

impl Combined {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Combined, String> {
        options.one_of("by", &BY, Combined::Shorter)
    }

    fn members(self) -> &'static [&'static str] {
        match self {
            Combined::Shorter => &["avg2", "template"],
            Combined::Middle => &["template", "last:k=5,by=ratio", "linear:over=abs,under=abs,weight=one"],
        }
    }
}

impl Display for Combined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by={}", BY.iter().find(|(_, by)| by == self).expect("all are there").0)
    }
}

#[derive(Debug)]
pub(super) struct Experience {
    combined: Combined,
    members: Vec<Box<dyn Rule>>,
}

impl Experience {
    pub(super) fn new(combined: Combined) -> Experience {
        let member = |name: &&str| {
            let predictor: Predictor = name.parse().expect("the list is fixed");
            predictor.rule().expect("a member learns")
        };
        Experience { combined, members: combined.members().iter().map(member).collect() }
    }
}

impl Rule for Experience {
    /// Who knows nothing says the user's estimate.
    fn predict(&mut self, now: Time, job: &JobSpec) -> Option<Span> {
        let members = self.members.iter_mut();
        let mut said: Vec<Option<Span>> = members.map(|member| member.predict(now, job)).collect();
        if said.iter().all(Option::is_none) {
            return None;
        }
        said.sort_unstable_by_key(|said| said.unwrap_or(job.requested).min(job.requested));
        let chosen = match self.combined {
            Combined::Shorter => said[0],
            Combined::Middle => said[said.len() / 2],
        };
        Some(chosen.unwrap_or(job.requested))
    }

    fn learn(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        self.members.iter_mut().for_each(|member| member.learn(now, job, run_time));
    }

    fn boxed(&self) -> Box<dyn Rule> {
        let members = self.members.iter().map(|member| member.boxed()).collect();
        Box::new(Experience { combined: self.combined, members })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::job;

    #[test]
    fn the_shorter_of_two_counts() {
        let mut experience = Experience::new(Combined::Shorter);
        assert_eq!(experience.predict(Time::ZERO, &job(1, 100)), None);
        for (requested, run_time) in [(100, 10), (100, 20), (400, 90)] {
            experience.learn(Time::ZERO, &job(1, requested), Span::from_secs(run_time));
        }
        let mut seconds = |job| experience.predict(Time::ZERO, &job).map(|span| span.as_micros() / 1_000_000);
        // AVG2 says (20 + 90) / 2 of both; jobs of 100 s ran for 10 and 20 s, that of 400 s for 90 s.
        assert_eq!(seconds(job(1, 100)), Some(15));
        assert_eq!(seconds(job(1, 400)), Some(55));
    }

    #[test]
    fn the_middle_one_of_three_counts() {
        let mut experience = Experience::new(Combined::Middle);
        let mut second = Experience::new(Combined::Middle);
        for run_time in [10, 10, 10, 10, 50] {
            for experience in [&mut experience, &mut second] {
                experience.learn(Time::ZERO, &job(1, 100), Span::from_secs(run_time));
            }
        }
        let said: Vec<i64> = second
            .members
            .iter_mut()
            .map(|member| {
                member.predict(Time::ZERO, &job(1, 100)).map_or(0, |span| span.as_micros() / 1_000_000)
            })
            .collect();
        assert_eq!(said[..2], [10, 50], "the median, and the largest ratio");
        let expected = said[2].clamp(10, 50);
        assert_eq!(experience.predict(Time::ZERO, &job(1, 100)), Some(Span::from_secs(expected)));
    }
}
