//! The workload model of Lublin and Feitelson (J. Parallel Distrib. Comput. 63(11), 2003).
//!
//! Sizes, run times and arrivals with a daily cycle, fitted to logs of the 1990s. Times are exponentials of
//! gamma variates. [`Lublin`] is an endless iterator of jobs of one machine; [`crate::generate`] makes traces
//! of it. Users' estimates are not part of the model: [`crate::tsafrir`] adds them.

mod arrivals;
mod parameters;

use std::fmt;
use std::str::FromStr;

use crate::draw::Draw;
use crate::prepare::{SwitchError, unknown};
use arrivals::Arrivals;
use parameters::Parameters;

/// Which jobs the model makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Batch jobs alone.
    Batch,
    /// Interactive jobs alone.
    Interactive,
    /// Jobs that are not told apart (default).
    #[default]
    Typeless,
    /// A batch and an interactive stream, merged by arrival.
    Typed,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Batch => "batch",
            Kind::Interactive => "interactive",
            Kind::Typeless => "typeless",
            Kind::Typed => "typed",
        })
    }
}

impl FromStr for Kind {
    type Err = SwitchError;
    fn from_str(text: &str) -> Result<Self, SwitchError> {
        match text {
            "batch" => Ok(Kind::Batch),
            "interactive" => Ok(Kind::Interactive),
            "typeless" => Ok(Kind::Typeless),
            "typed" => Ok(Kind::Typed),
            _ => Err(unknown("type", text, "batch, interactive, typeless, typed")),
        }
    }
}

/// A job of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LublinJob {
    /// Arrival in seconds since midnight of the first day. Not rounded: rounding at every job, as the
    /// authors' program does, makes the daily cycle drift by a day in 170,000 jobs.
    pub arrival: f64,
    /// Size, at most the machine's processors.
    pub processors: u32,
    /// Run time in whole seconds, at least 1.
    pub run_time: i64,
    /// Whether it came from the interactive stream.
    pub interactive: bool,
}

/// The longest run time, as a natural logarithm: about 45 hours.
const LN_RUN_TIME_MAX: f64 = 12.0;

/// An endless stream of jobs for one machine, in order of arrival.
#[derive(Clone, Debug)]
pub struct Lublin {
    streams: Vec<Stream>,
}

/// Jobs of one type, with the next arrival drawn ahead.
#[derive(Clone, Debug)]
struct Stream {
    parameters: Parameters,
    arrivals: Arrivals,
    draw: Draw,
    next_arrival: f64,
    interactive: bool,
}

impl Lublin {
    /// A stream for a machine. Streams of one seed with different numbers are independent.
    ///
    /// # Panics
    /// If the machine has no processors.
    pub fn new(kind: Kind, processors: u32, seed: u64, stream: u64) -> Lublin {
        assert!(processors > 0, "a machine has processors");
        // Two streams of random numbers per stream of jobs: batch and interactive, or one and a spare.
        let stream_of = |interactive, parameters: Parameters| {
            let draw = Draw::of_stream(seed, 2 * stream + u64::from(interactive));
            Stream::new(parameters, draw, interactive)
        };
        let streams = match kind {
            Kind::Batch => vec![stream_of(false, Parameters::batch(processors))],
            Kind::Interactive => vec![stream_of(true, Parameters::interactive(processors))],
            Kind::Typeless => vec![stream_of(false, Parameters::typeless(processors))],
            Kind::Typed => vec![
                stream_of(false, Parameters::batch(processors)),
                stream_of(true, Parameters::interactive(processors)),
            ],
        };
        Lublin { streams }
    }
}

impl Iterator for Lublin {
    type Item = LublinJob;

    /// The next job. Never `None`.
    fn next(&mut self) -> Option<LublinJob> {
        let mut first = self.streams.len() - 1;
        // The batch stream goes first only if it is strictly earlier.
        if self.streams[0].next_arrival < self.streams[first].next_arrival {
            first = 0;
        }
        Some(self.streams[first].next_job())
    }
}

impl Stream {
    fn new(parameters: Parameters, mut draw: Draw, interactive: bool) -> Stream {
        let mut arrivals = Arrivals::new(&parameters);
        let next_arrival = arrivals.next(&mut draw);
        Stream { parameters, arrivals, draw, next_arrival, interactive }
    }

    fn next_job(&mut self) -> LublinJob {
        let arrival = self.next_arrival;
        self.next_arrival = self.arrivals.next(&mut self.draw);
        let processors = self.size();
        let run_time = self.run_time(processors);
        LublinJob { arrival, processors, run_time, interactive: self.interactive }
    }

    /// Serial, a power of two, or anything, by one uniform variate; the logarithm of a parallel size is
    /// uniform in two stages.
    fn size(&mut self) -> u32 {
        let p = &self.parameters;
        let kind = self.draw.uniform();
        if kind <= p.serial_probability {
            return 1;
        }
        let mut logarithm = if self.draw.uniform() < p.low_probability {
            self.draw.between(p.log_low, p.log_medium)
        } else {
            self.draw.between(p.log_medium, p.log_high)
        };
        if kind <= p.serial_probability + p.power_of_two_probability {
            // Rounding up must not pass a machine whose size is no power of two.
            logarithm = (logarithm + 0.5).floor().min(p.log_high.floor());
        }
        let size = (logarithm.exp2() + 0.5).floor() as u32;
        size.clamp(1, p.processors)
    }

    /// A hyper-gamma variate whose mix depends on the size, redrawn above the cap.
    fn run_time(&mut self, processors: u32) -> i64 {
        let p = &self.parameters;
        let first = (p.mix_slope * f64::from(processors) + p.mix_intercept).clamp(0.0, 1.0);
        let logarithm = loop {
            let gamma = if self.draw.uniform() <= first { &p.run_time_first } else { &p.run_time_second };
            let logarithm = gamma.sample(&mut self.draw);
            if logarithm <= LN_RUN_TIME_MAX {
                break logarithm;
            }
        };
        logarithm.exp().floor() as i64
    }
}

#[cfg(test)]
#[path = "lublin/lublin_tests.rs"]
mod tests;
