//! What theory claims of scheduling with delays, as experiments that can fail.
//!
//! Each [`Claim`] has its parameters in a file of `configs/theory/`, with a quick and a full version, and a function
//! that runs the simulator and says whether the claim [`Verdict::Holds`], [`Verdict::Fails`], or neither can be said.
//! Nothing is known in advance: a verdict comes from the runs alone. Pure, same parameters, same answer.
//!
//! A check that cannot fail says nothing. So each claim has a mutant: the same experiment with a mistake built in, which
//! must be refuted.
//!
//! Start with [`CLAIMS`]. Claims about means are judged in [`cells`], those about every instance by counting violations.
//! Instances and runs are made in [`runs`]; the claims are grouped by what they are about. What is proved of one workload, without
//! runs, is in `analysis::theory`.
//!
//! ```
//! use claims::{CLAIMS, Scale, Verdict};
//!
//! let invariants = CLAIMS.iter().find(|claim| claim.name == "Q1").unwrap();
//! assert_eq!(invariants.check(Scale::Quick, None).unwrap().found.verdict, Verdict::Holds);
//! assert_eq!(invariants.check_mutant(Scale::Quick, None).unwrap().found.verdict, Verdict::Fails);
//! ```

mod brokers;
pub mod cells;
mod communication;
mod families;
pub mod ideal;
mod identities;
mod invariants;
pub mod learning;
mod parameters;
pub mod runs;
mod tally;
mod variants;
mod work_stealing;

use serde::{Deserialize, Serialize};

pub use cells::Cell;
pub use parameters::{Parameters, ParametersError, Scale};

/// A statement that runs can contradict.
#[derive(Clone, Copy)]
pub struct Claim {
    /// `Q1` and so on.
    pub name: &'static str,
    /// The file with its statement and its parameters.
    pub file: &'static str,
    /// Whether it is proved, or says that the program does what it is to do: if it fails, that is a mistake.
    pub proved: bool,
    /// The mistake of its mutant.
    pub mutant: &'static str,
    /// Makes the runs that could contradict it; with the mistake of the mutant if the flag says so.
    test: fn(&Parameters, bool) -> Found,
}

/// What runs say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing contradicts it; where it is about means, every cell supports it.
    Holds,
    /// Something contradicts it.
    Fails,
    /// The runs are too few or too noisy to say.
    Inconclusive,
}

impl Verdict {
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// What the runs say.
    pub verdict: Verdict,
    /// How many runs were made.
    pub runs: u64,
    /// Means and what is known of them; none where violations are counted.
    #[serde(default)]
    pub cells: Vec<Cell>,
    /// What it comes to, in lines.
    pub figures: Vec<String>,
}

/// A claim and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// `Q1` and so on.
    pub name: String,
    /// The claim in a sentence.
    pub claim: String,
    /// What would contradict it.
    pub fails_if: String,
    /// The mistake of its mutant.
    pub mutant: String,
    /// What was found.
    #[serde(flatten)]
    pub found: Found,
}

macro_rules! claim {
    ($name:literal, $file:literal, $proved:literal, $test:path, $mutant:literal) => {
        Claim {
            name: $name,
            file: include_str!(concat!("../../configs/theory/", $file)),
            proved: $proved,
            mutant: $mutant,
            test: $test,
        }
    };
}

/// All claims that can be tested, in order.
pub const CLAIMS: &[Claim] = &[
    claim!(
        "Q1",
        "q01.toml",
        true,
        invariants::ideal_keeps_its_invariants,
        "it steals from any smaller site, not only from the root"
    ),
    claim!(
        "Q2",
        "q02.toml",
        true,
        invariants::ideal_keeps_its_ceilings,
        "the ceiling is half of the proved one"
    ),
    claim!("Q3", "q03.toml", true, invariants::ideal_offline_has_no_deficiency, "jobs come over time"),
    claim!("Q4", "q04.toml", true, invariants::the_certificate_holds, "the bound is without V_k"),
    claim!(
        "Q5",
        "q05.toml",
        true,
        invariants::fetching_keeps_its_bounds,
        "the bounds are without the fetch time, and the slope is a tenth"
    ),
    claim!(
        "Q6",
        "q06.toml",
        true,
        identities::switches_that_are_the_same,
        "ST50 in place of ST100, BAH and HAB in place of ABH and BHA"
    ),
    claim!(
        "Q7",
        "q07.toml",
        true,
        identities::forms_of_the_algorithm_are_the_same,
        "the stateful form and the peers have half the threshold"
    ),
    claim!(
        "Q8",
        "q08.toml",
        true,
        families::bad_families_are_as_bad_as_known,
        "stealing needs as long as the list on the harmonic family"
    ),
    claim!(
        "Q9",
        "q09.toml",
        false,
        work_stealing::the_overhead_is_logarithmic,
        "the overhead grows like the square root of W/λ"
    ),
    claim!(
        "Q10",
        "q10.toml",
        false,
        work_stealing::the_overhead_constant,
        "the constant of 8 processors for all"
    ),
    claim!(
        "Q11",
        "q11.toml",
        false,
        communication::small_delays_cost_waits_only,
        "delays a hundred times as long"
    ),
    claim!("Q12", "q12.toml", true, communication::serial_pulling_is_capped, "four jobs per answer"),
    claim!("Q13", "q13.toml", false, variants::one_queue_is_no_worse, "the common pool is the reference"),
    claim!(
        "Q14",
        "q14.toml",
        false,
        variants::order_and_fit_do_not_matter,
        "`local` in place of the variants"
    ),
    claim!("Q15", "q15.toml", false, variants::load_beats_distance, "`local` in place of the choice by load"),
    claim!("Q16", "q16.toml", false, variants::two_choices_stand_old_news, "two choices against themselves"),
    claim!("Q17", "q17.toml", false, variants::push_or_pull_by_load, "`local` in place of push"),
    claim!(
        "Q18",
        "q18.toml",
        false,
        variants::every_site_gains_from_a_pool,
        "local queues in place of the pool, and the pool in place of them"
    ),
    claim!(
        "Q19",
        "q19.toml",
        false,
        families::equal_sites_shift_from_small_to_big,
        "the sites from the last to the first"
    ),
    claim!("Q20", "q20.toml", true, invariants::jobs_start_exactly_once, "the first start is told twice"),
    claim!(
        "Q21",
        "q21.toml",
        true,
        brokers::theorems_hold_and_families_have_none,
        "sites start whatever fits where jobs alternate, and certificates count no work"
    ),
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
        self.run(scale, text, false)
    }

    /// Runs the experiment with a mistake built in, which a check that is worth something refutes.
    ///
    /// # Errors
    /// As [`Claim::check`].
    pub fn check_mutant(&self, scale: Scale, text: Option<&str>) -> Result<Checked, ParametersError> {
        self.run(scale, text, true)
    }

    fn run(&self, scale: Scale, text: Option<&str>, wrong: bool) -> Result<Checked, ParametersError> {
        let file = self.parameters(text)?;
        let found = (self.test)(file.at(scale), wrong);
        let (name, mutant) = (self.name.to_string(), self.mutant.to_string());
        Ok(Checked { name, claim: file.claim, fails_if: file.fails_if, mutant, found })
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
        for claim in CLAIMS.iter().filter(|claim| claim.proved) {
            let checked = claim.check(Scale::Quick, None).unwrap();
            assert_eq!(checked.found.verdict, Verdict::Holds, "{checked:#?}");
        }
    }

    #[test]
    fn every_mutant_is_refuted_at_quick_scale() {
        for claim in CLAIMS {
            let checked = claim.check_mutant(Scale::Quick, None).unwrap();
            assert_eq!(checked.found.verdict, Verdict::Fails, "{}: {checked:#?}", claim.mutant);
        }
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let text = CLAIMS[0].file.replace("instances", "instanzes");
        let error = CLAIMS[0].check(Scale::Quick, Some(&text)).unwrap_err().to_string();
        assert!(error.contains("Q1") && error.contains("instanzes"), "{error}");
    }
}
