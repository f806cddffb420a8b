//! Users' estimates of run times, by the model of Tsafrir, Etsion and Feitelson (JSSPP 2005).
//!
//! Users pick round numbers: twenty popular values hold 89 % of the jobs, among them the longest one allowed.
//! The model makes such a set of estimates and deals them out so that none is below its job's run time.

mod bins;
mod popularity;

pub use bins::Bin;

use crate::draw::Draw;

/// The model's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tsafrir {
    /// The longest estimate allowed, in seconds; at least an hour. Longer run times are cut to it.
    pub longest: i64,
    /// Share of jobs with the longest estimate, 0 to 0.89. The authors advise strongly to give it (0.10 in
    /// SDSC-SP2 and KTH-SP2, 0.24 in CTC-SP2); without it the model's most popular value is the longest, with
    /// a share of 0.217.
    pub longest_share: Option<f64>,
}

/// Why estimates cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TsafrirError {
    /// The longest estimate is below an hour.
    #[error("make estimates: the longest estimate is {0} s; the model holds from 3600 s")]
    TooShort(i64),
    /// The share at the longest estimate is not possible.
    #[error("make estimates: the share at the longest estimate is {0}; give 0 to 0.89")]
    Share(f64),
    /// More long run times than long estimates.
    #[error(
        "make estimates: {job} jobs run for {run_time} s or more, and only {shorter} estimates are as long; \
         raise the longest estimate or its share"
    )]
    RunTimesTooLong {
        /// How many jobs run that long.
        job: usize,
        /// The run time that they reach, in seconds.
        run_time: i64,
        /// How many estimates are as long.
        shorter: usize,
    },
}

impl Tsafrir {
    /// An estimate for each run time (in seconds), none below it, in the order given. Run times beyond the
    /// longest estimate are cut to it first, in place.
    ///
    /// # Errors
    /// If the parameters are outside the model, or too many jobs run long.
    pub fn estimates(&self, run_times: &mut [i64], seed: u64) -> Result<Vec<i64>, TsafrirError> {
        let mut draw = Draw::of_stream(seed, STREAM);
        let bins = self.draw_bins(run_times.len(), &mut draw)?;
        for run_time in run_times.iter_mut() {
            *run_time = (*run_time).min(self.longest);
        }
        deal(run_times, &bins, &mut draw)
    }

    /// The distinct estimates for so many jobs and how many jobs choose each, the longest estimate first.
    ///
    /// # Errors
    /// If the parameters are outside the model.
    pub fn bins(&self, jobs: usize, seed: u64) -> Result<Vec<Bin>, TsafrirError> {
        self.draw_bins(jobs, &mut Draw::of_stream(seed, STREAM))
    }

    fn draw_bins(&self, jobs: usize, draw: &mut Draw) -> Result<Vec<Bin>, TsafrirError> {
        if self.longest < bins::LONGEST_LEAST {
            return Err(TsafrirError::TooShort(self.longest));
        }
        match self.longest_share {
            Some(share) if !(0.0..=popularity::HEAD_SHARE).contains(&share) => {
                Err(TsafrirError::Share(share))
            }
            share => Ok(bins::bins(self.longest, share, jobs, draw)),
        }
    }
}

/// Stream of the seed for estimates: far from the streams of jobs, two per site.
const STREAM: u64 = 1 << 40;

/// Deals estimates to run times: the authors' random shuffle (their section on assigning estimates). Each
/// job, from the longest on, draws among the estimates left that are not below its run time.
fn deal(run_times: &[i64], bins: &[Bin], draw: &mut Draw) -> Result<Vec<i64>, TsafrirError> {
    let mut estimates: Vec<i64> =
        bins.iter().flat_map(|bin| std::iter::repeat_n(bin.seconds, bin.jobs)).collect();
    assert_eq!(estimates.len(), run_times.len(), "one estimate for each job");
    estimates.sort_unstable_by(|a, b| b.cmp(a));
    let mut longest_first: Vec<usize> = (0..run_times.len()).collect();
    longest_first.sort_by_key(|&job| std::cmp::Reverse(run_times[job]));

    let mut dealt = vec![0; run_times.len()];
    // Estimates at `place..end` are at least the run time at hand; those from `end` on are still sorted.
    let mut end = 0;
    for (place, &job) in longest_first.iter().enumerate() {
        while end < estimates.len() && estimates[end] >= run_times[job] {
            end += 1;
        }
        if end <= place {
            let run_time = run_times[job];
            return Err(TsafrirError::RunTimesTooLong { job: place + 1, run_time, shorter: end });
        }
        let chosen = place + draw.below(end - place);
        dealt[job] = estimates[chosen];
        estimates[chosen] = estimates[place];
    }
    Ok(dealt)
}

#[cfg(test)]
#[path = "tsafrir/tsafrir_tests.rs"]
mod tests;
