//! What theory claims of scheduling with delays, as experiments that can fail.
//!
//! Each [`Claim`] has its parameters in a file of `configs/theory/`, with a quick and a full version, and a function
//! that runs the simulator and says whether the claim [`Verdict::Holds`], [`Verdict::Fails`], or neither can be said.
//! Nothing is known in advance: a verdict comes from the runs alone. Pure, same parameters, same answer.
//!
//! Start with [`CLAIMS`]. Instances and runs are made in [`runs`]; the claims are grouped by what they are about.

mod communication;
mod families;
pub mod ideal;
mod identities;
mod invariants;
mod parameters;
pub mod runs;
mod variants;
mod work_stealing;

use serde::Serialize;

pub use parameters::{Parameters, ParametersError, Scale};

/// A statement that runs can contradict.
#[derive(Clone, Copy)]
pub struct Claim {
    /// `Q1` and so on.
    pub name: &'static str,
    /// The file with its statement and its parameters.
    pub file: &'static str,
    /// Makes the runs that could contradict it.
    test: fn(&Parameters) -> Found,
}

/// What runs say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing contradicts it.
    Holds,
    /// Something contradicts it.
    Fails,
    /// The runs are too few or too noisy to say.
    Inconclusive,
}

impl Verdict {
    /// Holds if nothing was found against it.
    fn unless(violations: u64) -> Verdict {
        if violations == 0 { Verdict::Holds } else { Verdict::Fails }
    }

    /// The verdict as one word, as in files.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// The verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// What the runs say.
    pub verdict: Verdict,
    /// How many runs were made.
    pub runs: u64,
    /// The figures, a line each.
    pub figures: Vec<String>,
}

/// A claim and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// `Q1` and so on.
    pub name: &'static str,
    /// The claim in a sentence.
    pub claim: String,
    /// What would contradict it.
    pub fails_if: String,
    /// What was found.
    #[serde(flatten)]
    pub found: Found,
}

macro_rules! claim {
    ($name:literal, $file:literal, $test:path) => {
        Claim { name: $name, file: include_str!(concat!("../../configs/theory/", $file)), test: $test }
    };
}

/// All claims that can be tested, in order.
pub const CLAIMS: &[Claim] = &[
    claim!("Q1", "q01.toml", invariants::ideal_keeps_its_invariants),
    claim!("Q2", "q02.toml", invariants::ideal_keeps_its_ceilings),
    claim!("Q3", "q03.toml", invariants::ideal_offline_has_no_deficiency),
    claim!("Q4", "q04.toml", invariants::the_certificate_holds),
    claim!("Q5", "q05.toml", invariants::fetching_keeps_its_bounds),
    claim!("Q6", "q06.toml", identities::switches_that_are_the_same),
    claim!("Q7", "q07.toml", identities::forms_of_the_algorithm_are_the_same),
    claim!("Q8", "q08.toml", families::bad_families_are_as_bad_as_known),
    claim!("Q9", "q09.toml", work_stealing::requests_explain_the_makespan),
    claim!("Q10", "q10.toml", work_stealing::the_overhead_constant),
    claim!("Q11", "q11.toml", communication::small_delays_cost_waits_only),
    claim!("Q12", "q12.toml", communication::serial_pulling_is_capped),
    claim!("Q13", "q13.toml", variants::one_queue_is_no_worse),
    claim!("Q14", "q14.toml", variants::order_and_fit_do_not_matter),
    claim!("Q15", "q15.toml", variants::load_beats_distance),
    claim!("Q16", "q16.toml", variants::two_choices_stand_old_news),
    claim!("Q17", "q17.toml", variants::push_or_pull_by_load),
    claim!("Q18", "q18.toml", variants::every_site_gains_from_a_pool),
    claim!("Q19", "q19.toml", families::equal_sites_shift_from_small_to_big),
    claim!("Q20", "q20.toml", invariants::jobs_start_exactly_once),
];

impl Claim {
    /// The statement and the parameters, of `text` if given instead of the claim's own file.
    ///
    /// # Errors
    /// If the text is not of this form.
    pub fn parameters(&self, text: Option<&str>) -> Result<parameters::File, ParametersError> {
        parameters::File::parse(self.name, text.unwrap_or(self.file))
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// If the text of the parameters is not of the form of its file.
    pub fn check(&self, scale: Scale, text: Option<&str>) -> Result<Checked, ParametersError> {
        let file = self.parameters(text)?;
        let found = (self.test)(file.at(scale));
        Ok(Checked { name: self.name, claim: file.claim, fails_if: file.fails_if, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_understood_and_numbered() {
        for (claim, number) in CLAIMS.iter().zip(1..) {
            assert_eq!(claim.name, format!("Q{number}"));
            let file = claim.parameters(None).unwrap();
            assert!(!file.claim.is_empty() && !file.fails_if.is_empty());
        }
    }

    #[test]
    fn proved_claims_hold_at_quick_scale() {
        for name in ["Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q20"] {
            let claim = CLAIMS.iter().find(|claim| claim.name == name).unwrap();
            let checked = claim.check(Scale::Quick, None).unwrap();
            assert_eq!(checked.found.verdict, Verdict::Holds, "{checked:?}");
        }
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let text = CLAIMS[0].file.replace("instances", "instanzes");
        let error = CLAIMS[0].check(Scale::Quick, Some(&text)).unwrap_err().to_string();
        assert!(error.contains("Q1") && error.contains("instanzes"), "{error}");
    }
}
