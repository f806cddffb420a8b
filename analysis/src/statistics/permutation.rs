//! Whether a paired difference could be chance, and how that is asked of many differences at once.
//!
//! If two strategies were the same, each paired difference could as well have the other sign. The test counts the
//! patterns of signs whose sum is at least as far from 0 as the one found (Fisher 1935, section 21). It assumes nothing
//! about the distribution but that differences are symmetric about 0 if nothing is behind them.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Differences up to here are tested by all patterns; 2^30 of them, counted by halves of 2^15.
const EXACT_MAX: usize = 30;
/// Patterns that are drawn of more: they settle a chance of 5 % to 0.2 %.
const DRAWS: u32 = 20_000;
/// Sums that differ by less than this part of all that is added are the same, so that rounding decides nothing.
const SAME: f64 = 1e-9;

/// The chance of a mean of paired differences so far from 0, on either side, if signs were chance; never 0. `None` of
/// nothing. The seed is for more than 30 differences; fewer are counted.
pub fn sign_flip(differences: &[f64], seed: u64) -> Option<f64> {
    if differences.is_empty() {
        return None;
    }
    let scale: f64 = differences.iter().map(|value| value.abs()).sum();
    let least = differences.iter().sum::<f64>().abs() - SAME * scale;
    if least <= 0.0 {
        return Some(1.0);
    }
    Some(if differences.len() <= EXACT_MAX {
        exact(differences, least)
    } else {
        drawn(differences, least, seed)
    })
}

/// The same of values by key, left minus right where both have one. Pairs that are all the same are one observation, whatever their
/// number: copies of a run, as of one without anything random under several seeds.
pub fn paired_sign_flip<K: Ord>(left: &BTreeMap<K, f64>, right: &BTreeMap<K, f64>, seed: u64) -> Option<f64> {
    let pairs: Vec<(f64, f64)> =
        left.iter().filter_map(|(key, value)| Some((*value, *right.get(key)?))).collect();
    let observed = if pairs.windows(2).all(|pair| pair[0] == pair[1]) { 1 } else { pairs.len() };
    let differences: Vec<f64> = pairs.iter().take(observed).map(|(left, right)| left - right).collect();
    sign_flip(&differences, seed)
}

/// By all patterns. Sums of each half of the differences are sorted, and pairs of them counted by walking from both
/// ends (Horowitz and Sahni 1974): 2^(n/2) steps, not 2^n.
fn exact(differences: &[f64], least: f64) -> f64 {
    let (left, right) = differences.split_at(differences.len() / 2);
    let (left, right) = (sums(left), sums(right));
    let mut reaching = 0_u64;
    let mut from = right.len();
    for value in &left {
        while from > 0 && value + right[from - 1] >= least {
            from -= 1;
        }
        reaching += (right.len() - from) as u64;
    }
    // Every pattern has an opposite, so both tails are alike.
    (2 * reaching) as f64 / 2f64.powi(differences.len() as i32)
}

/// The sums of all patterns of signs, ascending.
fn sums(differences: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in differences {
        sums = sums.iter().flat_map(|sum| [sum - value, sum + value]).collect();
    }
    sums.sort_unstable_by(f64::total_cmp);
    sums
}

fn drawn(differences: &[f64], least: f64, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut reaching = 0;
    for _ in 0..DRAWS {
        let mut sum = 0.0;
        for part in differences.chunks(64) {
            let signs = rng.next_u64();
            for (place, value) in part.iter().enumerate() {
                sum += if signs >> place & 1 == 0 { *value } else { -value };
            }
        }
        reaching += u32::from(sum.abs() >= least);
    }
    // The pattern that was found is one of those that might have been (Phipson and Smyth 2010).
    f64::from(reaching + 1) / f64::from(DRAWS + 1)
}

/// Chances corrected for how many there are (Holm 1979), in the order given: with those at or below a level rejected,
/// any of a family is rejected wrongly at most that often.
pub fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|&a, &b| chances[a].total_cmp(&chances[b]));
    let mut corrected = vec![1.0; chances.len()];
    let mut least = 0.0_f64;
    for (place, &index) in order.iter().enumerate() {
        least = least.max((chances.len() - place) as f64 * chances[index]).min(1.0);
        corrected[index] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::RngExt;

    use super::*;

    /// One pattern after the other.
    fn naive(differences: &[f64]) -> f64 {
        let found = differences.iter().sum::<f64>().abs();
        let patterns = 1_u64 << differences.len();
        let reaches = |pattern: u64| {
            let signed = differences
                .iter()
                .enumerate()
                .map(|(place, value)| if pattern >> place & 1 == 0 { *value } else { -value });
            signed.sum::<f64>().abs() >= found
        };
        (0..patterns).filter(|&pattern| reaches(pattern)).count() as f64 / patterns as f64
    }

    #[test]
    fn known_differences_have_known_chances() {
        // All of one sign: that pattern and its opposite.
        assert_eq!(sign_flip(&[1.0, 2.0, 3.0, 4.0, 5.0], 1), Some(2.0 / 32.0));
        // The sum is 5. All plus is 7, the other 1 minus is 5 again; with opposites that is 6 of 16.
        assert_eq!(sign_flip(&[1.0, 2.0, 3.0, -1.0], 1), Some(6.0 / 16.0));
        assert_eq!(sign_flip(&[1.0, -1.0], 1), Some(1.0));
        assert_eq!(sign_flip(&[0.0, 0.0], 1), Some(1.0));
        assert_eq!(sign_flip(&[], 1), None);
        assert_eq!(sign_flip(&[1.0; 20], 1), Some(2.0 / 2f64.powi(20)));
    }

    #[test]
    fn copies_of_one_pair_are_one_observation() {
        let of = |values: &[f64]| -> BTreeMap<usize, f64> { values.iter().copied().enumerate().collect() };
        assert_eq!(paired_sign_flip(&of(&[3.0; 20]), &of(&[1.0; 20]), 1), Some(1.0));
        let other: Vec<f64> = (0..20).map(f64::from).collect();
        let more: Vec<f64> = other.iter().map(|value| value + 2.0).collect();
        assert_eq!(paired_sign_flip(&of(&more), &of(&other), 1), Some(2.0 / 2f64.powi(20)));
        assert_eq!(paired_sign_flip(&of(&[1.0, 2.0, 3.0]), &of(&[0.0]), 1), Some(1.0), "one pair");
        assert_eq!(paired_sign_flip(&of(&[1.0]), &of(&[]), 1), None);
    }

    #[test]
    fn many_differences_are_drawn_and_never_certain() {
        let clear: Vec<f64> = (1..=40).map(f64::from).collect();
        assert_eq!(sign_flip(&clear, 1), Some(1.0 / 20_001.0));
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..20 {
            let values: Vec<f64> = (0..20).map(|_| rng.random_range(-1.0..1.4)).collect();
            let least = values.iter().sum::<f64>().abs();
            let (exact, drawn) = (exact(&values, least - 1e-9), drawn(&values, least - 1e-9, 5));
            assert!((exact - drawn).abs() < 0.02, "{exact} {drawn}");
        }
    }

    proptest! {
        #[test]
        fn halves_count_what_patterns_do(values in prop::collection::vec(-50i32..50, 1..13)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();

            prop_assert_eq!(sign_flip(&values, 1), Some(naive(&values)));
        }

        #[test]
        fn holm_is_its_definition(chances in prop::collection::vec(0.0f64..1.0, 0..12)) {
            let corrected = holm(&chances);
            for level in [0.01, 0.05, 0.3] {
                // Step down: reject while the next smallest is at most level over those that are left.
                let mut ascending = chances.clone();
                ascending.sort_unstable_by(f64::total_cmp);
                let rejected = ascending
                    .iter()
                    .enumerate()
                    .take_while(|(place, chance)| **chance * (chances.len() - place) as f64 <= level)
                    .count();
                prop_assert_eq!(corrected.iter().filter(|chance| **chance <= level).count(), rejected);
            }
        }
    }

    /// Families of 100 differences with nothing behind any of them.
    #[test]
    fn mutant_without_correction_a_family_finds_what_is_not_there() {
        let mut rng = ChaCha8Rng::seed_from_u64(17);
        let (mut plain, mut corrected) = (0, 0);
        for _ in 0..400 {
            let chances: Vec<f64> = (0..100)
                .map(|_| {
                    let differences: Vec<f64> = (0..20).map(|_| rng.random_range(-1.0..1.0)).collect();
                    sign_flip(&differences, 1).unwrap()
                })
                .collect();
            plain += usize::from(chances.iter().any(|chance| *chance <= 0.05));
            corrected += usize::from(holm(&chances).iter().any(|chance| *chance <= 0.05));
        }
        println!(
            "of 400 families of 100 true nulls {plain} reject one without correction, {corrected} with Holm's"
        );

        assert!(plain > 380, "{plain} of 400");
        // 5 % of 400 is 20, give or take 9 with two standard deviations.
        assert!(corrected <= 29, "{corrected} of 400");
        assert!(corrected >= 5, "{corrected} of 400: it never rejects");
    }
}
