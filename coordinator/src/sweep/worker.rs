//! A process that runs one experiment after the other, as it is told on stdin, and answers on stdout.
//!
//! One JSON object a line both ways. A process of its own, because a run that crashes or is killed then loses
//! itself alone. It ends when its stdin is closed, even in the middle of a run: then nobody waits for the answer.

use std::fmt;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::Context;
use experiments::experiment::jobs::Reader;
use experiments::experiment::resolved::EXPERIMENT;
use experiments::{drive, exit};
use outputs::sweep::Cell;
use serde::{Deserialize, Serialize};

use super::database::Measures;
use super::file;
use super::measure::{Prepared, measure};

/// What a worker is told to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// The number of the run.
    pub position: usize,
    /// The experiment as a file would have it, with the values of this run.
    pub experiment: toml::Table,
    /// Where its full results go, if they are wanted.
    pub keep: Option<PathBuf>,
}

/// What became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the run.
    pub position: usize,
    /// Wall time of simulation and measurement, without reading the workload, in seconds.
    pub wall_s: f64,
    /// Names and values of what was measured, or why nothing was.
    pub result: Result<Vec<(String, Number)>, String>,
}

/// A value on its way to the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Number {
    /// Nothing, such as a ratio to nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// Any other, by its bits: no value is changed on the way.
    Bits(u64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Null => f.write_str("nothing"),
            Number::Integer(value) => value.fmt(f),
            Number::Bits(bits) => f64::from_bits(*bits).fmt(f),
        }
    }
}

impl From<Cell> for Number {
    fn from(cell: Cell) -> Number {
        match cell {
            Cell::Integer(value) => Number::Integer(value),
            Cell::Real(value) => Number::Bits(value.to_bits()),
            Cell::Null | Cell::Text(_) => Number::Null,
        }
    }
}

impl From<Number> for Cell {
    fn from(number: Number) -> Cell {
        match number {
            Number::Null => Cell::Null,
            Number::Integer(value) => Cell::Integer(value),
            Number::Bits(bits) => Cell::Real(f64::from_bits(bits)),
        }
    }
}

/// Runs what stdin says until it is closed.
///
/// # Errors
/// If stdin or stdout cannot be used.
pub fn run() -> anyhow::Result<u8> {
    let (sender, orders) = mpsc::sync_channel::<String>(1);
    std::thread::Builder::new().name("stdin".to_string()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
        // Whoever gave orders is gone or has no more.
        std::process::exit(exit::DONE.into());
    })?;
    let mut bench = Bench::default();
    for line in orders {
        let order: Assignment = serde_json::from_str(&line).context("failed to understand an order")?;
        let answer = bench.run(&order);
        let mut stdout = std::io::stdout().lock();
        serde_json::to_writer(&mut stdout, &answer)?;
        writeln!(stdout)?;
        stdout.flush()?;
    }
    Ok(exit::DONE)
}

/// What is kept from run to run.
#[derive(Default)]
pub(super) struct Bench {
    reader: Reader,
    prepared: Option<(String, Prepared)>,
}

impl Bench {
    fn run(&mut self, order: &Assignment) -> Answer {
        let mut wall_s = 0.0;
        let result = self.measured(order, &mut wall_s);
        let result = result
            .map(|measures| measures.into_iter().map(|(name, cell)| (name, Number::from(cell))).collect());
        Answer { position: order.position, wall_s, result }
    }

    /// Simulates a run and measures it; `wall_s` is the time that took, without that for reading logs.
    pub(super) fn measured(&mut self, order: &Assignment, wall_s: &mut f64) -> Result<Measures, String> {
        let mut experiment = file::resolve(&order.experiment)?;
        let key = file::workload_key(&experiment);
        if self.prepared.as_ref().is_none_or(|(kept, _)| *kept != key) {
            self.prepared = None;
            let jobs = self.reader.read(&experiment).map_err(|error| format!("failed to {error}"))?;
            self.prepared = Some((key, Prepared::new(&experiment.grid, jobs)));
        }
        let (_, prepared) = self.prepared.as_ref().expect("set above");
        let begun = Instant::now();
        let measures = measure(&experiment, prepared)?;
        *wall_s = begun.elapsed().as_secs_f64();
        if let Some(dir) = &order.keep {
            experiment.outputs.dir.clone_from(dir);
            // The folder is the sweep's own, and its rows say what was in it.
            experiment.outputs.replace = true;
            let command = format!("stealgrid simulate {}", dir.join(EXPERIMENT).display());
            drive::simulate::keep(&experiment, &prepared.jobs, &command)
                .map_err(|error| format!("{error:#}"))?;
        }
        Ok(measures)
    }
}
