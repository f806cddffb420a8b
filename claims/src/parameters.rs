//! What an experiment about a claim is told: grids, seeds, delays, counts.

use serde::Deserialize;

/// Why a file of parameters is of no use. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
#[error("read the parameters of {claim}: {reason}")]
pub struct ParametersError {
    claim: &'static str,
    reason: String,
}

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Enough to notice a mistake, in seconds for all claims.
    Quick,
    /// Enough for a verdict to be quoted, in minutes.
    Full,
}

/// A file of `configs/theory/`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The claim in a sentence.
    pub claim: String,
    /// What would contradict it.
    pub fails_if: String,
    quick: Parameters,
    full: Parameters,
}

impl File {
    pub(crate) fn parse(claim: &'static str, text: &str) -> Result<File, ParametersError> {
        toml::from_str(text).map_err(|error| ParametersError { claim, reason: error.to_string() })
    }

    /// The parameters at a scale.
    pub fn at(&self, scale: Scale) -> &Parameters {
        match scale {
            Scale::Quick => &self.quick,
            Scale::Full => &self.full,
        }
    }
}

/// All parameters that some experiment has; each reads its own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// How many random instances are made; each has its number as seed.
    pub instances: u64,
    /// Sites of a random grid, at most.
    pub sites_max: u32,
    /// Processors of a site of a random grid, at most.
    pub size_max: u32,
    /// Jobs of a random instance, at most.
    pub jobs_max: u32,
    /// Thresholds x in percent.
    pub thresholds: Vec<u8>,
    /// One-way delays, or times to fetch a job, in seconds.
    pub delays_s: Vec<f64>,
    /// What a steal costs, over the weighted mean run time.
    pub relative_delays: Vec<f64>,
    /// Probabilities that a message is lost.
    pub loss: Vec<f64>,
    /// Processors of the sites.
    pub sites: Vec<u32>,
    /// Jobs of a workload.
    pub jobs: usize,
    /// Offered loads; 0 for all jobs at the start.
    pub loads: Vec<f64>,
    /// Seeds at the first look, from 1 on; all of them where nothing is looked at twice.
    pub seeds: u64,
    /// Seeds at the last look; they are doubled until a cell is settled.
    pub seeds_max: u64,
    /// Names of strategies.
    pub strategies: Vec<String>,
    /// Sites of one processor each.
    pub processors: Vec<u32>,
    /// Unit tasks per processor.
    pub tasks_per_processor: u64,
    /// How many times as many tasks the larger workload has.
    pub growth: u64,
    /// Sizes of a family.
    pub family: Vec<i64>,
    /// What is expected, by family, processors or strategy.
    pub expected: Vec<f64>,
    /// How far off it may be, in the same unit.
    pub tolerance: Vec<f64>,
    /// A difference of the ratio, or of the first measure, that counts as none, in percent.
    pub margin: f64,
    /// The same of the mean wait, in percent.
    pub margin_wait: f64,
    /// The same of the variance of the ratio, in percent.
    pub margin_variance: f64,
    /// Delays at which means are reported and nothing is claimed, in seconds.
    pub reported_delays_s: Vec<f64>,
    /// How often news is passed on, in seconds; 0 for the default.
    pub gossip_s: f64,
    /// (seconds between news, tries) from the most messages to the fewest: what the side that sends more is cut down to.
    pub budgets: Vec<(f64, usize)>,
}
