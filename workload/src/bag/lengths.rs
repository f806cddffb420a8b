//! How long tasks of a light simulation take, by their number of photons: `tiny_mc` as Costa 2007 used it.
//!
//! Its inputs and its run times do not fit each other if time is linear in photons, so there are three readings (A16 of
//! `docs/LEARNING.md`). All keep the order of tasks.

use std::str::FromStr;

use scheduler::Span;
use scheduler::spelling::unknown;

use crate::draw::Draw;

/// The fewest photons of a task.
pub const PHOTONS_MIN: u64 = 100_000;
/// The most photons of a task.
pub const PHOTONS_MAX: u64 = 10_000_000;
/// The stream of random numbers of photons.
const STREAM: u64 = 1 << 42;

/// The shortest and the longest task that were seen, in microseconds: 3 and 8 minutes.
const SHORTEST: u64 = 180_000_000;
const LONGEST: u64 = 480_000_000;
/// Nanoseconds of a photon if a task of [`PHOTONS_MAX`] takes about 8 minutes.
const LINEAR_NS: u64 = 48_100;
/// What a task takes beside its photons, in microseconds, and nanoseconds of each.
const AFFINE_BASE: u64 = 176_000_000;
const AFFINE_NS: u64 = 30_500;

/// How photons become time on the reference machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LengthModel {
    /// Uniform from 180 to 480 s, in the order of photons.
    #[default]
    Uniform,
    /// 48.1 µs each.
    Linear,
    /// 176 s and 30.5 µs each.
    Affine,
}

impl LengthModel {
    /// All of them by name, the default first.
    pub const ALL: [(&'static str, LengthModel); 3] =
        [("uniform", LengthModel::Uniform), ("linear", LengthModel::Linear), ("affine", LengthModel::Affine)];

    /// How long so many photons take.
    pub fn length(self, photons: u64) -> Span {
        let photons = photons.clamp(1, PHOTONS_MAX);
        let micros = match self {
            LengthModel::Uniform => {
                let share = photons.saturating_sub(PHOTONS_MIN);
                SHORTEST + share * (LONGEST - SHORTEST) / (PHOTONS_MAX - PHOTONS_MIN)
            }
            LengthModel::Linear => photons * LINEAR_NS / 1000,
            LengthModel::Affine => AFFINE_BASE + photons * AFFINE_NS / 1000,
        };
        Span::from_micros(micros as i64)
    }
}

impl FromStr for LengthModel {
    type Err = String;

    fn from_str(text: &str) -> Result<LengthModel, String> {
        let found = LengthModel::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, model)| model).ok_or_else(|| unknown("lengths", text, "uniform, linear or affine"))
    }
}

/// Numbers of photons, uniform: the same for all that are given the seed.
#[derive(Clone, Debug)]
pub struct Photons {
    draw: Draw,
}

impl Photons {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Photons {
        Photons { draw: Draw::of_stream(seed, STREAM) }
    }

    /// The next one, from [`PHOTONS_MIN`] to [`PHOTONS_MAX`].
    pub fn draw(&mut self) -> u64 {
        PHOTONS_MIN + self.draw.below((PHOTONS_MAX - PHOTONS_MIN + 1) as usize) as u64
    }
}
