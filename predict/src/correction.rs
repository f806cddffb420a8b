//! What is thought of a job that runs past its prediction.

use std::fmt::{self, Display};
use std::str::FromStr;

use scheduler::{JobSpec, Span};

/// Seconds that a prediction is longer by after so many corrections (Tsafrir, Etsion and Feitelson 2007, section 4.2, as the simulator of
/// SC'15 has them).
const STEPS: [i64; 12] = [0, 60, 300, 900, 1_800, 3_600, 7_200, 18_000, 36_000, 72_000, 180_000, 360_000];

/// How a prediction that was exceeded is corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Correction {
    /// By the user's estimate.
    #[default]
    User,
    /// By steps that grow from a minute to 100 hours, up to the user's estimate.
    Tsafrir,
    /// By twice the prediction, whatever the user said.
    Doubling,
    /// Not at all: the job is planned as ending now until it ends.
    Never,
}

impl Correction {
    /// All of them.
    pub const ALL: [Correction; 4] =
        [Correction::User, Correction::Tsafrir, Correction::Doubling, Correction::Never];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Correction::User => "user",
            Correction::Tsafrir => "tsafrir",
            Correction::Doubling => "doubling",
            Correction::Never => "none",
        }
    }

    /// The run time of a job that ran past this prediction, corrected so often before.
    pub(super) fn of(self, job: &JobSpec, predicted: Span, before: u32) -> Span {
        match self {
            Correction::User => job.requested,
            Correction::Tsafrir => {
                let step = |corrections: usize| STEPS.get(corrections).copied();
                let before = before as usize;
                match (step(before), step(before + 1)) {
                    (Some(from), Some(to)) => (predicted + Span::from_secs(to - from)).min(job.requested),
                    _ => job.requested,
                }
            }
            Correction::Doubling => predicted.saturating_mul(2),
            Correction::Never => predicted,
        }
    }
}

impl Display for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Correction {
    type Err = String;

    fn from_str(text: &str) -> Result<Correction, String> {
        Correction::ALL.into_iter().find(|correction| correction.name() == text).ok_or_else(|| {
            let names = Correction::ALL.map(Correction::name).join(", ");
            format!("{text:?} is no correction; use one of {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::job;

    /// Minutes of predictions of a job that asks for 400 min and was predicted 10.
    fn corrected(correction: Correction) -> Vec<i64> {
        let job = job(1, 400 * 60);
        let mut predicted = Span::from_secs(600);
        let next = |before| {
            predicted = correction.of(&job, predicted, before);
            predicted.as_micros() / 60_000_000
        };
        (0..9).map(next).collect()
    }

    #[test]
    fn predictions_grow_as_published() {
        assert_eq!(corrected(Correction::Tsafrir), [11, 15, 25, 40, 70, 130, 310, 400, 400]);
        assert_eq!(corrected(Correction::Doubling)[..6], [20, 40, 80, 160, 320, 640]);
        assert_eq!(corrected(Correction::User)[0], 400);
        assert_eq!(corrected(Correction::Never)[8], 10);
        let after_all = Correction::Tsafrir.of(&job(1, 90), Span::from_secs(9), 11);
        assert_eq!(after_all, Span::from_secs(90));
    }

    #[test]
    fn names_round_trip() {
        for correction in Correction::ALL {
            assert_eq!(correction.to_string().parse(), Ok(correction));
        }
        assert!("never".parse::<Correction>().unwrap_err().contains("use one of user, tsafrir"));
    }
}
