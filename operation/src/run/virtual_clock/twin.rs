//! The simulation beside a run in lockstep: the same experiment, one instant ahead, event for event.
//!
//! Events are compared as values and, over the whole run, as bytes: both streams have a SHA-256 digest of the lines
//! that `events.jsonl.zst` holds.

use std::collections::VecDeque;
use std::fmt;

use experiments::hex::hex;
use scheduler::{Event, Time, TimedJob};
use sha2::{Digest as _, Sha256};
use simulator::{Simulation, SimulationConfig, Violation};

/// Where a run and its simulation part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// How many events were the same.
    pub same: u64,
    /// The next one of the run, if there is one at this instant.
    pub run: Option<Event>,
    /// The next one of the simulation, if there is one at this instant.
    pub simulation: Option<Event>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |event: &Option<Event>| match event {
            Some(event) => serde_json::to_string(event).expect("an event is plain data"),
            None => "nothing more at this instant".to_string(),
        };
        let (run, simulation) = (line(&self.run), line(&self.simulation));
        write!(f, "event {} is {run} in the run and {simulation} in the simulation", self.same + 1)
    }
}

/// A stream of events as bytes.
#[derive(Clone, Default)]
struct Stream {
    digest: Sha256,
    line: Vec<u8>,
}

impl Stream {
    fn add(&mut self, event: &Event) {
        self.line.clear();
        serde_json::to_writer(&mut self.line, event).expect("an event is plain data");
        self.line.push(b'\n');
        self.digest.update(&self.line);
    }

    fn finish(self) -> String {
        hex(&self.digest.finalize())
    }
}

/// A simulation that a run is compared with while it goes on.
pub struct Twin<'a> {
    simulation: Simulation<'a>,
    /// Events of the instant that the run has not had.
    expected: VecDeque<Event>,
    same: u64,
    of_simulation: Stream,
    of_run: Stream,
    difference: Option<Difference>,
}

/// A run and its simulation had the same events, and the same bytes of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identical {
    /// How many events each of the two had.
    pub events: u64,
    /// SHA-256 of their lines, in hexadecimal digits.
    pub digest: String,
}

impl<'a> Twin<'a> {
    /// A simulation at its beginning.
    pub fn new(config: SimulationConfig, jobs: &'a [TimedJob]) -> Twin<'a> {
        Twin {
            simulation: Simulation::new(config, jobs),
            expected: VecDeque::new(),
            same: 0,
            of_simulation: Stream::default(),
            of_run: Stream::default(),
            difference: None,
        }
    }

    /// Simulates the next instant, before the run goes through it.
    ///
    /// # Errors
    /// If the simulation itself does what must not happen.
    pub fn advance(&mut self) -> Result<(), Violation> {
        let (expected, stream) = (&mut self.expected, &mut self.of_simulation);
        self.simulation.advance(&mut |event| {
            expected.push_back(*event);
            stream.add(event);
        })?;
        Ok(())
    }

    /// Takes the next event of the run.
    pub fn compare(&mut self, event: &Event) {
        self.of_run.add(event);
        let simulation = self.expected.pop_front();
        if self.difference.is_some() {
            return;
        }
        if simulation == Some(*event) {
            self.same += 1;
        } else {
            self.difference = Some(Difference { same: self.same, run: Some(*event), simulation });
        }
    }

    /// The run has gone through the instant: whether all was the same.
    pub fn instant_over(&mut self) -> bool {
        if self.difference.is_none() && !self.expected.is_empty() {
            let simulation = self.expected.pop_front();
            self.difference = Some(Difference { same: self.same, run: None, simulation });
        }
        self.difference.is_none()
    }

    /// The first difference so far.
    pub fn difference(&self) -> Option<&Difference> {
        self.difference.as_ref()
    }

    /// When the simulation goes on; none when it is over.
    pub fn next_instant(&self) -> Option<Time> {
        self.simulation.next_instant()
    }

    /// What the run and the simulation have in common when both are over.
    ///
    /// # Errors
    /// Where they part.
    pub fn finish(mut self) -> Result<Identical, String> {
        self.instant_over();
        if let Some(difference) = self.difference {
            return Err(difference.to_string());
        }
        if let Some(at) = self.simulation.next_instant() {
            return Err(format!("the run is over, but the simulation goes on at {at}"));
        }
        let (run, simulation) = (self.of_run.finish(), self.of_simulation.finish());
        if run != simulation {
            return Err(format!("the bytes of all events have the digest {run}, not {simulation}"));
        }
        Ok(Identical { events: self.same, digest: run })
    }
}

impl fmt::Display for Identical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "identical to the simulation: {} events (sha256 {})", self.events, self.digest)
    }
}
