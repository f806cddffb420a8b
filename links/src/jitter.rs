//! Random parts of a delay, and what they are in the mean.
//!
//! | written | extra delay | mean |
//! |---|---|---|
//! | `none` | none | 0 |
//! | `constant:T` | T | T |
//! | `uniform:T`, `uniform:min=A,max=B` | equally likely from A (or 0) to B | (A + B) / 2 |
//! | `normal:deviation=S,mean=M` | normal; M is 0 if left out | M |
//! | `log-normal:median=T,sigma=S` | T exp(S Z), Z standard normal | T exp(S² / 2) |
//! | `pareto:scale=T,shape=A` | at least T; longer than x with probability (T / x)^A; A above 1 | T A / (A - 1) |
//!
//! T, A, B, M and the normal S are times; sigma and shape have no unit. The last three take `max=T`, too: what would
//! be longer takes T. Base and extra delay together are never negative: what would be takes no time. Both lift or
//! lower the mean a little; [`Jitter::mean_delay`] has the exact value.
//!
//! A time alone, as in `1s`, is `uniform:1s`.

use std::fmt;
use std::str::FromStr;

use scheduler::{Span, spelling};
use serde::{Deserialize, Serialize};

use crate::draw::unit;
use crate::quantity::{Keys, Millionths, span, write_span};

/// Delays end here whatever a distribution says: some 30 years, longer than any trace.
pub const DELAY_MAX: Span = Span::from_secs(1_000_000_000);
/// The standard normal quantile that 999 of 1000 draws do not exceed.
const Z_999: f64 = 3.090_232_306_167_813;

/// A random part of the delay of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// Always the same; nothing by default.
    Constant(Span),
    /// Equally likely between two times, both included.
    Uniform {
        /// The shortest addition to a delay.
        min: Span,
        /// The longest addition to a delay.
        max: Span,
    },
    /// Normal distribution; a delay that would be negative is zero.
    Normal {
        /// Mean, before anything is cut.
        mean: Span,
        /// Standard deviation, before anything is cut.
        deviation: Span,
        /// The longest addition to a delay; none is longer than `DELAY_MAX`, also if `None`.
        max: Option<Span>,
    },
    /// Log-normal: the logarithm is normal.
    LogNormal {
        /// Median: half of the additions are shorter.
        median: Span,
        /// Standard deviation of the natural logarithm.
        sigma: Millionths,
        /// The longest addition to a delay; none is longer than `DELAY_MAX`, also if `None`.
        max: Option<Span>,
    },
    /// Pareto of the first kind.
    Pareto {
        /// The shortest addition to a delay.
        scale: Span,
        /// Tail index, above 1.
        shape: Millionths,
        /// The longest addition to a delay; none is longer than `DELAY_MAX`, also if `None`.
        max: Option<Span>,
    },
}

impl Default for Jitter {
    fn default() -> Self {
        Jitter::NONE
    }
}

impl Jitter {
    /// No extra delay.
    pub const NONE: Jitter = Jitter::Constant(Span::ZERO);

    /// Uniform from nothing to `max`.
    pub const fn up_to(max: Span) -> Jitter {
        Jitter::Uniform { min: Span::ZERO, max }
    }

    /// Whether every message gets the same.
    pub fn is_constant(&self) -> bool {
        match *self {
            Jitter::Constant(_) => true,
            Jitter::Uniform { min, max } => min == max,
            Jitter::Normal { deviation, .. } => deviation == Span::ZERO,
            Jitter::LogNormal { median, sigma, .. } => median == Span::ZERO || sigma.get() == 0.0,
            Jitter::Pareto { scale, .. } => scale == Span::ZERO,
        }
    }

    /// The extra delay that these random numbers mean. Only a normal one can be negative.
    pub(crate) fn sample(&self, numbers: [u64; 2]) -> Span {
        let (drawn, most) = match *self {
            Jitter::Constant(extra) => return extra,
            Jitter::Uniform { min, max } => {
                let width = u128::from((max - min).as_micros().unsigned_abs()) + 1;
                let above = (u128::from(numbers[0]) * width) >> 64;
                return min + Span::from_micros(above as i64);
            }
            Jitter::Normal { mean, deviation, max } => {
                (micros(mean) + micros(deviation) * standard_normal(numbers), max)
            }
            Jitter::LogNormal { median, sigma, max } => {
                (micros(median) * libm::exp(sigma.get() * standard_normal(numbers)), max)
            }
            Jitter::Pareto { scale, shape, max } => {
                // 1 - u is above 0 and at most 1.
                (micros(scale) * libm::pow(1.0 - unit(numbers[0]), -1.0 / shape.get()), max)
            }
        };
        to_span(drawn).min(max_or_limit(most))
    }

    /// The mean delay of messages on a link with this base delay, with the cuts at 0 and at the most.
    pub fn mean_delay(&self, base: Span) -> Span {
        let extra = match *self {
            Jitter::Constant(extra) => micros(extra),
            Jitter::Uniform { min, max } => (micros(min) + micros(max)) / 2.0,
            Jitter::Normal { mean, deviation, max } => {
                let most = micros(base + max_or_limit(max));
                return to_span(clamped_normal(micros(base + mean), micros(deviation), most));
            }
            Jitter::LogNormal { median, sigma, max } => {
                let (median, sigma) = (micros(median), sigma.get());
                let most = micros(max_or_limit(max));
                if median <= 0.0 || sigma == 0.0 {
                    median.min(most)
                } else {
                    // E[min(X, c)] of a log-normal X.
                    let above = libm::log(most / median) / sigma;
                    median * libm::exp(sigma * sigma / 2.0) * normal_cdf(above - sigma)
                        + most * (1.0 - normal_cdf(above))
                }
            }
            Jitter::Pareto { scale, shape, max } => {
                let (scale, shape) = (micros(scale), shape.get());
                let most = micros(max_or_limit(max));
                if most <= scale {
                    most
                } else {
                    // E[min(X, c)] of a Pareto X.
                    (scale * shape - scale * libm::pow(scale / most, shape - 1.0)) / (shape - 1.0)
                }
            }
        };
        to_span(micros(base) + extra)
    }

    /// What 999 of 1000 messages do not exceed; all of them, if the distribution ends before.
    pub fn longest(&self) -> Span {
        let (quantile, most) = match *self {
            Jitter::Constant(extra) => return extra,
            Jitter::Uniform { max, .. } => return max,
            Jitter::Normal { mean, deviation, max } => (micros(mean) + Z_999 * micros(deviation), max),
            Jitter::LogNormal { median, sigma, max } => {
                (micros(median) * libm::exp(Z_999 * sigma.get()), max)
            }
            Jitter::Pareto { scale, shape, max } => {
                (micros(scale) * libm::pow(1000.0, 1.0 / shape.get()), max)
            }
        };
        to_span(quantile).min(max_or_limit(most))
    }
}

fn max_or_limit(max: Option<Span>) -> Span {
    max.unwrap_or(DELAY_MAX).min(DELAY_MAX)
}

fn micros(span: Span) -> f64 {
    span.as_micros() as f64
}

fn to_span(micros: f64) -> Span {
    // The cast saturates.
    Span::from_micros(libm::round(micros) as i64).min(DELAY_MAX)
}

/// Box and Muller (1958). Never infinite: the logarithm is of a number from 2^-53 to 1.
fn standard_normal(numbers: [u64; 2]) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(numbers[0])));
    radius * libm::cos(std::f64::consts::TAU * unit(numbers[1]))
}

fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The mean of a normal variable where what is below 0 counts as 0 and what is above `most` as `most`.
fn clamped_normal(mean: f64, deviation: f64, most: f64) -> f64 {
    if deviation == 0.0 {
        return mean.clamp(0.0, most.max(0.0));
    }
    let density = |z: f64| libm::exp(-z * z / 2.0) / libm::sqrt(std::f64::consts::TAU);
    let (low, high) = (-mean / deviation, (most - mean) / deviation);
    mean * (normal_cdf(high) - normal_cdf(low)) - deviation * (density(high) - density(low))
        + most * (1.0 - normal_cdf(high))
}

impl FromStr for Jitter {
    type Err = String;

    fn from_str(text: &str) -> Result<Jitter, String> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name.trim(), rest.trim()),
            None if text.trim() == "none" => return Ok(Jitter::NONE),
            None if text.trim().starts_with(|c: char| c.is_ascii_digit()) => {
                return Ok(Jitter::up_to(span(text)?));
            }
            None => (text.trim(), ""),
        };
        let jitter = match name {
            "constant" => return Ok(Jitter::Constant(span(rest)?)),
            "uniform" if !rest.contains('=') => return Ok(Jitter::up_to(span(rest)?)),
            "uniform" => {
                let mut keys = Keys::of(name, rest)?;
                let min = keys.take("min").map_or(Ok(Span::ZERO), span)?;
                let max = span(keys.need("max")?)?;
                keys.finish(&["min", "max"])?;
                if max < min {
                    return Err(format!(
                        "uniform: max is below min; write min={},max={}",
                        Shown(max),
                        Shown(min)
                    ));
                }
                Jitter::Uniform { min, max }
            }
            "normal" => {
                let mut keys = Keys::of(name, rest)?;
                let mean = keys.take("mean").map_or(Ok(Span::ZERO), span)?;
                let deviation = span(keys.need("deviation")?)?;
                let max = keys.take("max").map(span).transpose()?;
                keys.finish(&["deviation", "mean", "max"])?;
                Jitter::Normal { mean, deviation, max }
            }
            "log-normal" => {
                let mut keys = Keys::of(name, rest)?;
                let median = span(keys.need("median")?)?;
                let sigma = Millionths::parse("sigma", keys.need("sigma")?, 0.0, 10.0)?;
                let max = keys.take("max").map(span).transpose()?;
                keys.finish(&["median", "sigma", "max"])?;
                Jitter::LogNormal { median, sigma, max }
            }
            "pareto" => {
                let mut keys = Keys::of(name, rest)?;
                let scale = span(keys.need("scale")?)?;
                let shape = Millionths::parse("shape", keys.need("shape")?, 1.000_001, 1000.0)?;
                let max = keys.take("max").map(span).transpose()?;
                keys.finish(&["scale", "shape", "max"])?;
                Jitter::Pareto { scale, shape, max }
            }
            other => {
                let hint =
                    spelling::hint(other, ["none", "constant", "uniform", "normal", "log-normal", "pareto"]);
                return Err(format!(
                    "unknown distribution {other:?}{hint}; write none, a time, constant:T, uniform:T, \
                     normal:deviation=T, log-normal:median=T,sigma=S or pareto:scale=T,shape=A"
                ));
            }
        };
        Ok(jitter)
    }
}

struct Shown(Span);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_span(self.0, f)
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = match *self {
            Jitter::Constant(Span::ZERO) => return f.write_str("none"),
            Jitter::Constant(extra) => return write!(f, "constant:{}", Shown(extra)),
            Jitter::Uniform { min: Span::ZERO, max } => return write!(f, "uniform:{}", Shown(max)),
            Jitter::Uniform { min, max } => {
                return write!(f, "uniform:min={},max={}", Shown(min), Shown(max));
            }
            Jitter::Normal { mean, deviation, max } => {
                write!(f, "normal:deviation={}", Shown(deviation))?;
                if mean != Span::ZERO {
                    write!(f, ",mean={}", Shown(mean))?;
                }
                max
            }
            Jitter::LogNormal { median, sigma, max } => {
                write!(f, "log-normal:median={},sigma={sigma}", Shown(median))?;
                max
            }
            Jitter::Pareto { scale, shape, max } => {
                write!(f, "pareto:scale={},shape={shape}", Shown(scale))?;
                max
            }
        };
        match most {
            Some(max) => write!(f, ",max={}", Shown(max)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distribution_reads_back_what_it_writes() {
        for text in [
            "none",
            "constant:3s",
            "uniform:1s",
            "uniform:min=10ms,max=1s",
            "normal:deviation=5ms",
            "normal:deviation=5ms,mean=1s,max=2s",
            "log-normal:median=20ms,sigma=0.5",
            "pareto:scale=1ms,shape=2.5,max=1m",
        ] {
            let jitter: Jitter = text.parse().unwrap();
            assert_eq!(jitter.to_string(), text);
        }
        assert_eq!("1s".parse::<Jitter>(), "uniform:1s".parse());
    }

    #[test]
    fn what_means_nothing_is_refused_with_what_to_write() {
        let refused = |text: &str| text.parse::<Jitter>().unwrap_err();
        assert!(refused("gaussian:1s").contains("unknown distribution \"gaussian\"; write none"));
        assert!(refused("uniform:min=2s,max=1s").contains("max is below min"));
        assert!(refused("pareto:scale=1s,shape=1").contains("shape 1 is not from 1.000001 to 1000"));
        assert!(refused("pareto:scale=1s").contains("pareto needs shape=…"));
        assert!(refused("normal:deviation=1s,width=2s").contains("normal has no \"width\""));
        assert!(refused("uniform:soon").contains("\"soon\" is not a time"));
    }

    #[test]
    fn the_mean_is_the_one_of_the_table_and_less_with_a_most() {
        let mean = |text: &str, base: i64| {
            text.parse::<Jitter>().unwrap().mean_delay(Span::from_secs(base)).as_secs_f64()
        };
        assert_eq!(mean("uniform:min=1s,max=3s", 5), 7.0);
        assert_eq!(mean("normal:deviation=1s,mean=2s", 50), 52.0);
        // Half of a normal distribution around 0 is cut: deviation / sqrt(2 pi).
        assert!((mean("normal:deviation=1s", 0) - 0.398_942).abs() < 1e-6);
        assert!((mean("log-normal:median=2s,sigma=0.5", 0) - 2.0 * (0.125f64).exp()).abs() < 1e-6);
        assert_eq!(mean("pareto:scale=1s,shape=3", 4), 5.5);
        assert!((mean("pareto:scale=1s,shape=3,max=2s", 0) - 1.375).abs() < 1e-6);
        assert!(mean("log-normal:median=2s,sigma=0.5,max=3s", 0) < 2.1);
    }
}
