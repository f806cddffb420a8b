//! How many misses in a row show that waits have changed?
//!
//! Of independent waits a share 1 − q misses a bound on the quantile q, and r in a row follow a miss with probability (1 − q)^(r−1). Waits are
//! not independent: who comes after one who waited for long waits for long, too. So they are taken for a stationary Gaussian
//! autoregression of the first order in logarithms, with the autocorrelation ρ of one wait with the next (Brevik, Nurmi and Wolski, PPoPP
//! 2006, who draw such series; here their probabilities are integrated):
//!
//! ```text
//! x_{i+1} = ρ x_i + √(1 − ρ²) e_i      P(r) = P(x_2 > z_q, …, x_r > z_q | x_1 > z_q)      rare: the first r with P(r) ≤ 0.01
//! ```

use std::f64::consts::{PI, SQRT_2};

/// Runs that follow a miss with at most this probability are no chance. Three misses in a row are rare of independent waits and q = 0.95, as
/// published; 0.05 would make it two.
pub(super) const RARE: f64 = 0.01;
/// Misses in a row that are rare at the latest.
pub(super) const RUN_MAX: u32 = 100;
/// Autocorrelations that are told apart: in steps of this, from 0.
const STEP: f64 = 0.05;
/// Above this the model is a random walk, of which no run is rare.
const STEPS: usize = 20;
/// Points of the integral above the quantile, to so many deviations.
const POINTS: usize = 160;
const DEVIATIONS: f64 = 8.0;

/// The lengths of runs that are rare of one quantile, as far as they were asked for.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    q: f64,
    known: [Option<u32>; STEPS],
}

impl Runs {
    pub(super) fn of(q: f64) -> Runs {
        Runs { q, known: [None; STEPS] }
    }

    /// The least number of misses in a row that are rare with this autocorrelation. None of less than 0 is taken for 0, and each for the
    /// next lower one that is told apart.
    pub(super) fn rare(&mut self, autocorrelation: f64) -> u32 {
        let step = ((autocorrelation.max(0.0) / STEP + 1e-9) as usize).min(STEPS - 1);
        let q = self.q;
        *self.known[step].get_or_insert_with(|| {
            let chances = chances(q, step as f64 * STEP);
            (1..=RUN_MAX).zip(chances).find(|&(_, chance)| chance <= RARE).map_or(RUN_MAX, |(run, _)| run)
        })
    }
}

/// P(1) = 1, P(2), P(3), …: of so many misses in a row after the first.
fn chances(q: f64, autocorrelation: f64) -> impl Iterator<Item = f64> {
    let least = quantile_of_normal(q);
    let width = (DEVIATIONS - least) / POINTS as f64;
    let at = move |place: usize| least + (place as f64 + 0.5) * width;
    let spread = (1.0 - autocorrelation * autocorrelation).sqrt();
    let density = |x: f64| libm::exp(-x * x / 2.0) / (2.0 * PI).sqrt();
    // Of the last value in a run, the chance to be in each piece; from one piece to another.
    let mut inside: Vec<f64> = (0..POINTS).map(|place| density(at(place)) * width).collect();
    let first: f64 = inside.iter().sum();
    let steps: Vec<f64> = (0..POINTS * POINTS)
        .map(|pair| {
            let (to, from) = (pair / POINTS, pair % POINTS);
            density((at(to) - autocorrelation * at(from)) / spread) / spread * width
        })
        .collect();
    std::iter::from_fn(move || {
        let chance = inside.iter().sum::<f64>() / first;
        inside = steps
            .chunks(POINTS)
            .map(|row| row.iter().zip(&inside).map(|(step, one)| step * one).sum())
            .collect();
        Some(chance)
    })
}

/// The value that a share q of a standard normal distribution is below, by halving.
fn quantile_of_normal(q: f64) -> f64 {
    let (mut below, mut above) = (-DEVIATIONS, DEVIATIONS);
    for _ in 0..60 {
        let middle = f64::midpoint(below, above);
        if libm::erfc(-middle / SQRT_2) / 2.0 < q { below = middle } else { above = middle }
    }
    f64::midpoint(below, above)
}

/// The autocorrelation of each of these with the next; 0 where it is not known.
pub(super) fn autocorrelation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let variance: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let next: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if variance > 0.0 { next / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_independent_waits_are_powers_of_the_share_that_misses() {
        assert!((quantile_of_normal(0.95) - 1.644_853_627).abs() < 1e-8);
        assert!(quantile_of_normal(0.5).abs() < 1e-9);
        for q in [0.5, 0.75, 0.95] {
            for (run, chance) in (0..4).zip(chances(q, 0.0)) {
                assert!((chance - libm::pow(1.0 - q, f64::from(run))).abs() < 2e-3, "{q} {run} {chance}");
            }
        }
        // 0.05² = 0.0025 after the first; 0.25³ = 0.0156 and 0.25⁴ = 0.0039; 0.5⁶ = 0.0156 and 0.5⁷ = 0.0078.
        for (q, run) in [(0.95, 3), (0.75, 5), (0.5, 8)] {
            assert_eq!((Runs::of(q).rare(0.0), Runs::of(q).rare(-0.5)), (run, run));
        }
    }

    /// Of quadrants and octants of correlated normal values (Sheppard 1899): P(x > 0, y > 0) = 1/4 + asin ρ / 2π, and of three
    /// 1/8 + (asin ρ₁₂ + asin ρ₁₃ + asin ρ₂₃) / 4π.
    #[test]
    fn runs_of_correlated_waits_are_those_of_quadrants_and_octants() {
        for rho in [0.3_f64, 0.6, 0.9] {
            let found: Vec<f64> = chances(0.5, rho).take(3).collect();
            let two = 0.25 + rho.asin() / (2.0 * PI);
            let three = 0.125 + (2.0 * rho.asin() + (rho * rho).asin()) / (4.0 * PI);
            assert!((found[1] - two / 0.5).abs() < 2e-3, "{rho} {found:?}");
            assert!((found[2] - three / 0.5).abs() < 2e-3, "{rho} {found:?}");
        }
    }

    #[test]
    fn the_more_waits_hang_together_the_longer_are_runs_by_chance() {
        let mut runs = Runs::of(0.95);
        let rare: Vec<u32> = [0.0, 0.3, 0.6, 0.8, 0.9, 0.95].map(|rho| runs.rare(rho)).to_vec();
        assert!(rare.is_sorted() && rare[0] == 3 && rare[5] > 10, "{rare:?}");
        assert_eq!(runs.rare(0.999), rare[5]);
    }

    #[test]
    fn an_autocorrelation_is_worked_out_by_hand() {
        // Mean 2: deviations −1, 0, 1, 0; 0 of 2. Of 1, 2, 3: −1, 0, 1 and 0. Of 1, 1, 3, 3: 1 − 1 + 1 of 4.
        assert_eq!(autocorrelation(&[1.0, 2.0, 3.0, 2.0]), 0.0);
        assert_eq!(autocorrelation(&[1.0, 1.0, 3.0, 3.0]), 0.25);
        assert_eq!((autocorrelation(&[]), autocorrelation(&[5.0, 5.0])), (0.0, 0.0));
    }
}
