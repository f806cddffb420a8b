//! Shares of head and tail, and the deal.

use proptest::prelude::*;

use super::*;

const SDSC: Tsafrir = Tsafrir { longest: 64_800, longest_share: Some(0.097) };

/// Rounding to whole jobs moves a share of 10,000 jobs by at most 90 half jobs: 0.5 %.
#[test]
fn twenty_values_hold_89_percent_and_the_longest_what_was_asked() {
    let bins = SDSC.bins(10_000, 1).unwrap();
    let mut largest_first: Vec<usize> = bins.iter().map(|bin| bin.jobs).collect();
    largest_first.sort_unstable_by(|a, b| b.cmp(a));
    let head: usize = largest_first[..20].iter().sum();

    assert_eq!(bins.len(), 90);
    assert_eq!(bins[0].seconds, 64_800);
    assert!((bins[0].jobs as f64 / 10_000.0 - 0.097).abs() < 0.005, "{:?}", bins[0]);
    assert!((head as f64 / 10_000.0 - 0.89).abs() < 0.015, "{head}");
}

#[test]
fn without_a_share_the_longest_is_the_most_popular() {
    let bins = Tsafrir { longest_share: None, ..SDSC }.bins(10_000, 1).unwrap();

    assert!((bins[0].jobs as f64 / 10_000.0 - 0.21733).abs() < 0.005, "{:?}", bins[0]);
    assert!(bins[1..].iter().all(|bin| bin.jobs < bins[0].jobs));
}

#[test]
fn parameters_outside_the_model_are_refused() {
    assert_eq!(Tsafrir { longest: 60, ..SDSC }.bins(10, 1), Err(TsafrirError::TooShort(60)));
    assert_eq!(Tsafrir { longest_share: Some(0.9), ..SDSC }.bins(10, 1), Err(TsafrirError::Share(0.9)));
}

#[test]
fn too_many_long_jobs_are_refused_with_a_remedy() {
    let error = SDSC.estimates(&mut [70_000; 1000], 1).unwrap_err();

    assert!(matches!(error, TsafrirError::RunTimesTooLong { run_time: 64_800, .. }), "{error:?}");
    assert!(error.to_string().contains("raise the longest estimate"));
}

#[test]
fn estimates_and_run_times_are_not_in_step() {
    let mut run_times: Vec<i64> = (0..2000).map(|job| 1 + job * 7 % 2000).collect();
    let estimates = SDSC.estimates(&mut run_times, 1).unwrap();

    let mut pairs: Vec<(i64, i64)> = run_times.iter().copied().zip(estimates).collect();
    pairs.sort_unstable();
    let steps_down = pairs.windows(2).filter(|pair| pair[0].1 > pair[1].1).count();

    assert!(steps_down > 500, "{steps_down}");
}

proptest! {
    #[test]
    fn every_job_fits_its_estimate_and_every_estimate_is_used_as_often_as_planned(
        mut run_times in proptest::collection::vec(1..2000_i64, 1..400), seed: u64,
    ) {
        if let Ok(estimates) = SDSC.estimates(&mut run_times, seed) {
            prop_assert!(run_times.iter().zip(&estimates).all(|(run, estimate)| run <= estimate));
            for bin in SDSC.bins(run_times.len(), seed).unwrap() {
                prop_assert_eq!(estimates.iter().filter(|&&estimate| estimate == bin.seconds).count(), bin.jobs);
            }
        }
    }
}
