//! Bags of tasks: parameter sweeps of sequential programs that need nothing of each other.
//!
//! [`parse()`] reads them as TOML or as XPML, the application file of the Gridbus broker; each combination of parameter
//! values is a task. [`Bag::trace`] gives tasks a length and makes a log of them, all submitted at 0.

mod lengths;
mod table;
mod xpml;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use scheduler::Span;

pub use lengths::{LengthModel, PHOTONS_MAX, PHOTONS_MIN, Photons};

use crate::limits::{Document, Limit, Limits};
use crate::record::Record;
use crate::source::{decompress, open};
use crate::trace::{Format, Trace, TraceError};

/// What a user wants of the schedule, as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// When all is to be done: an ISO time, which nobody here reads.
    pub deadline: Option<String>,
    /// What all may cost.
    pub budget: Option<f64>,
    /// How long a task may wait in a queue before it is called back.
    pub queue_wait: Option<Span>,
    /// NONE, COST, TIME or COST_TIME.
    pub optimisation: Option<String>,
}

/// Values of one parameter, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, which stands for a value behind a `$`.
    pub name: String,
    /// At least one.
    pub values: Values,
}

/// What a parameter may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// One text.
    Single(String),
    /// from, from + step, … up to at most to.
    Range {
        /// The first.
        from: i64,
        /// None is above.
        to: i64,
        /// At least 1.
        step: i64,
    },
}

impl Values {
    fn count(&self) -> u64 {
        match self {
            Values::Single(_) => 1,
            Values::Range { from, to, step } => {
                let steps = (i128::from(*to) - i128::from(*from)) / i128::from(*step);
                u64::try_from(steps).map_or(0, |steps| steps.saturating_add(1))
            }
        }
    }

    fn at(&self, place: u64) -> String {
        match self {
            Values::Single(text) => text.clone(),
            Values::Range { from, step, .. } => {
                (i128::from(*from) + i128::from(place) * i128::from(*step)).to_string()
            }
        }
    }
}

/// A file that each task reads; `$` in its name stands for values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Its name where it comes from.
    pub name: String,
    /// Its size, if it is told.
    pub bytes: Option<u64>,
}

/// A description of many tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Bag {
    /// The file's name, for messages.
    pub name: String,
    /// What is wanted of the schedule.
    pub wishes: Wishes,
    /// Parameters in the order of the file; the last one changes fastest.
    pub parameters: Vec<Parameter>,
    /// What each task reads.
    pub inputs: Vec<InputFile>,
    /// What is executed, with its arguments; empty if nothing is said.
    pub command: Vec<String>,
    /// Names of elements that mean nothing here, each once.
    pub skipped: Vec<String>,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Values by the name of their parameter.
    pub values: BTreeMap<String, String>,
    /// Files that it reads, with their sizes.
    pub inputs: Vec<InputFile>,
    /// What it executes.
    pub command: Vec<String>,
}

/// Reads a bag from a file, plain, gzip or zstd.
///
/// # Errors
/// As [`parse()`], or if the file cannot be read, or is no text.
pub fn read_within(path: &Path, limits: &Limits) -> Result<Bag, TraceError> {
    let name = path.display().to_string();
    let text = open(path).and_then(|file| {
        let mut text = String::new();
        Document::new(decompress(file, limits)?, limits.document).read_to_string(&mut text)?;
        Ok(text)
    });
    parse(&name, &text.map_err(|cause| TraceError::reading(&name, 0, cause))?, limits)
}

/// Reads a bag from text: XPML if it begins with `<`, else TOML. `name` stands in messages.
///
/// # Errors
/// If it is neither, a part is missing or wrong, or it has more tasks than a log may have jobs.
pub fn parse(name: &str, text: &str, limits: &Limits) -> Result<Bag, TraceError> {
    if text.len() as u64 > limits.document {
        return Err(TraceError::over(name, 0, Limit::Document, limits.document));
    }
    let bag = if text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        xpml::parse(name, text.trim_start_matches('\u{feff}'))?
    } else {
        table::parse(name, text)?
    };
    for (place, parameter) in bag.parameters.iter().enumerate() {
        if bag.parameters[..place].iter().any(|other| other.name == parameter.name) {
            return Err(wrong(name, 0, format!("parameter {} is there twice; rename one", parameter.name)));
        }
    }
    match bag.tasks() {
        0 => Err(wrong(name, 0, "it has no task; add a value to each parameter".to_string())),
        tasks if tasks > limits.rows => Err(TraceError::over(name, 0, Limit::Rows, limits.rows)),
        _ => Ok(bag),
    }
}

/// Something wrong in a line, or in the file if the line is 0.
fn wrong(file: &str, line: u64, problem: String) -> TraceError {
    let problem = if line == 0 { problem } else { format!("line {line}: {problem}") };
    TraceError::Structure { file: file.to_string(), problem }
}

impl Bag {
    /// How many tasks it is.
    pub fn tasks(&self) -> u64 {
        self.parameters.iter().fold(1, |product, parameter| product.saturating_mul(parameter.values.count()))
    }

    /// The task of this number, from 0; none beyond the last.
    pub fn task(&self, number: u64) -> Option<Task> {
        if number >= self.tasks() {
            return None;
        }
        let (mut rest, mut values) = (number, BTreeMap::new());
        for parameter in self.parameters.iter().rev() {
            let count = parameter.values.count();
            values.insert(parameter.name.clone(), parameter.values.at(rest % count));
            rest /= count;
        }
        let fill = |text: &String| filled(text, &values);
        let inputs = self.inputs.iter().map(|input| InputFile { name: fill(&input.name), ..input.clone() });
        let (inputs, command) = (inputs.collect(), self.command.iter().map(fill).collect());
        Some(Task { inputs, command, values })
    }

    /// A log of its tasks in their order: sequential, all submitted at 0, each as long as a model says. Users request what
    /// their tasks take.
    pub fn trace(&self, lengths: LengthModel, seed: u64) -> Trace {
        let mut trace = Trace::empty(self.name.clone(), Format::Swf);
        let mut photons = Photons::new(seed);
        trace.records = (1..)
            .zip(0..self.tasks())
            .map(|(job, _)| {
                let length = lengths.length(photons.draw());
                Record {
                    job,
                    submit: Span::ZERO,
                    run_time: length,
                    requested_time: length,
                    allocated: 1,
                    requested: 1,
                    status: 1,
                    ..Record::default()
                }
            })
            .collect();
        trace
    }
}

/// A text with values for `$name`. Names that are none of a parameter stay: whoever executes it knows `$sarch`, say.
fn filled(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut parts = text.split('$');
    let mut filled = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|character: char| !character.is_alphanumeric() && character != '_');
        let (name, rest) = part.split_at(end.unwrap_or(part.len()));
        match values.get(name) {
            Some(value) => filled.push_str(value),
            None => filled.extend(["$", name]),
        }
        filled.push_str(rest);
    }
    filled
}

#[cfg(test)]
mod bag_tests;
