//! The distributions that the models of papers use, by the random numbers that all of the project draw.

pub(crate) use scheduler::draw::Draw;

/// Standard normal, by Marsaglia's polar method.
fn normal(draw: &mut Draw) -> f64 {
    loop {
        let x = draw.between(-1.0, 1.0);
        let y = draw.between(-1.0, 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

/// The gamma distribution with mean `shape * scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gamma {
    shape: f64,
    scale: f64,
}

impl Gamma {
    /// A gamma distribution.
    ///
    /// # Panics
    /// If the shape is below 1 or the scale not positive; no model here has such parameters.
    pub(crate) fn new(shape: f64, scale: f64) -> Self {
        assert!(shape >= 1.0, "the sampler is for shapes from 1");
        assert!(scale > 0.0, "a scale is positive");
        Gamma { shape, scale }
    }

    /// One variate, by Marsaglia and Tsang's method (ACM TOMS 26(3), 2000).
    pub(crate) fn sample(&self, draw: &mut Draw) -> f64 {
        let d = self.shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let normal = normal(draw);
            let v = (1.0 + c * normal).powi(3);
            if v <= 0.0 {
                continue;
            }
            let accept = 1.0 - draw.uniform();
            if accept.ln() < 0.5 * normal * normal + d - d * v + d * v.ln() {
                return d * v * self.scale;
            }
        }
    }

    /// The probability of at most `x`: the regularized lower incomplete gamma function, by its power series
    /// below the mean and Lentz's continued fraction above.
    pub(crate) fn cdf(&self, x: f64) -> f64 {
        if x <= 0.0 {
            return 0.0;
        }
        let (a, x) = (self.shape, x / self.scale);
        let factor = (a * x.ln() - x - ln_gamma(a)).exp();
        if x < a + 1.0 { factor * series(a, x) } else { 1.0 - factor * continued_fraction(a, x) }
    }
}

/// Relative size of the last term that is added.
const PRECISION: f64 = 1e-15;
/// Far more terms than the shapes of the models need (below 100).
const TERMS_MAX: usize = 10_000;

fn series(a: f64, x: f64) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    for n in 1..TERMS_MAX {
        term *= x / (a + n as f64);
        sum += term;
        if term < sum * PRECISION {
            break;
        }
    }
    sum
}

fn continued_fraction(a: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let mut c = f64::MAX;
    let mut d = 1.0 / b;
    let mut value = d;
    for n in 1..TERMS_MAX {
        let n = n as f64;
        let numerator = -n * (n - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        let change = c * d;
        value *= change;
        if (change - 1.0).abs() < PRECISION {
            break;
        }
    }
    value
}

/// Natural logarithm of the gamma function for x >= 1: Stirling's series, after lifting x above 10.
fn ln_gamma(x: f64) -> f64 {
    let mut x = x;
    let mut lifted = 0.0;
    while x < 10.0 {
        lifted -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let tail = (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x;
    lifted + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_of_gamma_is_that_of_factorials() {
        let factorial: f64 = (1..=19).map(f64::from).product();

        assert!((ln_gamma(20.0) - factorial.ln()).abs() < 1e-11);
        assert!((ln_gamma(5.0) - 24.0_f64.ln()).abs() < 1e-11);
        assert!((ln_gamma(1.5) - (std::f64::consts::PI.sqrt() / 2.0).ln()).abs() < 1e-11);
    }

    /// For a whole shape k, the gamma distribution is the time of the k-th event of a Poisson process.
    #[test]
    fn the_distribution_function_agrees_with_poisson_sums() {
        for (shape, scale, x) in [(1.0, 2.0, 3.0), (4.0, 1.0, 2.0), (4.0, 0.5, 9.0), (9.0, 3.0, 27.0)] {
            let rate: f64 = x / scale;
            let mut term = (-rate).exp();
            let mut later = 0.0;
            for k in 0..shape as usize {
                later += term;
                term *= rate / (k + 1) as f64;
            }

            let ours = Gamma::new(shape, scale).cdf(x);

            assert!((ours - (1.0 - later)).abs() < 1e-12, "{shape} {scale} {x}: {ours}");
        }
    }

    /// Standard errors at 200,000 draws are 0.2 % of the mean at most; 1 % is five of them.
    #[test]
    fn samples_have_mean_variance_and_distribution_of_gamma() {
        const COUNT: usize = 200_000;
        for (shape, scale) in [(4.2, 0.94), (312.0, 0.03), (1.0, 2.0)] {
            let gamma = Gamma::new(shape, scale);
            let mut draw = Draw::of_stream(1, 0);
            let samples: Vec<f64> = (0..COUNT).map(|_| gamma.sample(&mut draw)).collect();
            let mean = samples.iter().sum::<f64>() / COUNT as f64;
            let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / COUNT as f64;
            let below_mean = samples.iter().filter(|&&x| x <= shape * scale).count() as f64 / COUNT as f64;

            assert!((mean / (shape * scale) - 1.0).abs() < 0.01, "{mean}");
            assert!((variance / (shape * scale * scale) - 1.0).abs() < 0.03, "{variance}");
            assert!((below_mean - gamma.cdf(shape * scale)).abs() < 0.006, "{below_mean}");
        }
    }
}
