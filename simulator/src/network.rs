//! Links between sites: one-way delay, loss and duplication. Decides when a message arrives, and how often.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::{SiteId, Span, Time};
use serde::{Deserialize, Serialize};

/// One-way delay of messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delay {
    /// The same on every directed link.
    Constant(Span),
    /// Per directed link: `rows[from.index()][to.index()]`.
    Matrix(Vec<Vec<Span>>),
}

impl Delay {
    /// No delay anywhere.
    pub const ZERO: Delay = Delay::Constant(Span::ZERO);

    /// The delay of a directed link.
    pub fn between(&self, from: SiteId, to: SiteId) -> Span {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Matrix(rows) => rows[from.index()][to.index()],
        }
    }

    /// The largest delay of any link.
    pub fn largest(&self) -> Span {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Matrix(rows) => rows.iter().flatten().copied().max().unwrap_or(Span::ZERO),
        }
    }

    /// Whether every message arrives at the instant it is sent.
    pub fn is_zero(&self) -> bool {
        self.largest() == Span::ZERO
    }
}

/// What the network does to messages besides delaying them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    /// Probability that a message is lost.
    pub loss: f64,
    /// Probability that a message that is not lost arrives twice.
    pub duplication: f64,
    /// Longest extra delay, drawn uniformly per copy. Reorders messages.
    pub jitter: Span,
}

impl Faults {
    /// A network that loses and repeats nothing.
    pub const NONE: Faults = Faults { loss: 0.0, duplication: 0.0, jitter: Span::ZERO };

    fn any(&self) -> bool {
        self.loss > 0.0 || self.duplication > 0.0 || self.jitter > Span::ZERO
    }
}

/// The delays of the copies of one message that arrive: none, one or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copies {
    pub(crate) first: Option<Span>,
    pub(crate) second: Option<Span>,
}

/// All links, with their own stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    delay: Delay,
    faults: Faults,
    rng: ChaCha8Rng,
}

/// The stream of the seed that the network draws from; other parts draw from others.
const NETWORK_STREAM: u64 = 1;

impl Network {
    pub(crate) fn new(delay: Delay, faults: Faults, seed: u64) -> Network {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(NETWORK_STREAM);
        Network { delay, faults, rng }
    }

    pub(crate) fn send(&mut self, _now: Time, from: SiteId, to: SiteId, _payload: u64) -> Copies {
        let delay = self.delay.between(from, to);
        if !self.faults.any() {
            return Copies { first: Some(delay), second: None };
        }
        if self.faults.loss > 0.0 && self.rng.random_bool(self.faults.loss) {
            return Copies { first: None, second: None };
        }
        let first = Some(delay + self.jitter());
        let twice = self.faults.duplication > 0.0 && self.rng.random_bool(self.faults.duplication);
        Copies { first, second: twice.then(|| delay + self.jitter()) }
    }

    fn jitter(&mut self) -> Span {
        match self.faults.jitter.as_micros() {
            0 => Span::ZERO,
            longest => Span::from_micros(self.rng.random_range(0..=longest)),
        }
    }
}
