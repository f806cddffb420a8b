//! Maps that say what the columns of a CSV hold, so that a log of any cluster can be read.
//!
//! A map is TOML: columns by name, units of lengths, formats and zones of times, words of states, and what counts as a processor.
//! A CSV is read by one. Ready maps are in `configs/columns/`; `docs/WORKLOADS.md` has the keys.

mod reader;
mod times;

pub use reader::read_trace;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::calendar::Zone;
use times::{Length, Moment};

/// A map is none. Reads after "failed to".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read columns {file}: {problem}")]
pub struct MapError {
    /// Name of the file.
    pub file: String,
    /// What is wrong and what helps.
    pub problem: String,
}

/// What a processor of the jobs is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processor {
    /// A core.
    Core,
    /// An accelerator.
    Gpu,
    /// A whole node.
    Node,
}

/// How a job ended, by its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It did what it should.
    Completed,
    /// It did not, or was stopped at its limit.
    Failed,
    /// Its user, or somebody else, stopped it.
    Canceled,
    /// It waited or ran when the log was written.
    Unfinished,
}

/// What the columns of a CSV hold.
#[derive(Clone, Debug)]
pub struct Map {
    computer: Option<String>,
    processors: Option<u32>,
    processor: Processor,
    separator: u8,
    zone: Option<Zone>,
    none: Vec<String>,
    states: BTreeMap<String, Ending>,
    /// By role, in the order of [`Role::ALL`].
    columns: Vec<Option<Column>>,
}

/// One column.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    length: Length,
    moment: Moment,
    divide: u32,
}

/// What a column may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Job,
    Submit,
    Start,
    End,
    RunTime,
    Processors,
    Allocated,
    Requested,
    RequestedTime,
    User,
    Group,
    Executable,
    Queue,
    Partition,
    State,
    Site,
}

impl Role {
    const ALL: [(Role, &'static str); 16] = [
        (Role::Job, "job"),
        (Role::Submit, "submit"),
        (Role::Start, "start"),
        (Role::End, "end"),
        (Role::RunTime, "run_time"),
        (Role::Processors, "processors"),
        (Role::Allocated, "allocated"),
        (Role::Requested, "requested"),
        (Role::RequestedTime, "requested_time"),
        (Role::User, "user"),
        (Role::Group, "group"),
        (Role::Executable, "executable"),
        (Role::Queue, "queue"),
        (Role::Partition, "partition"),
        (Role::State, "state"),
        (Role::Site, "site"),
    ];

    fn name(self) -> &'static str {
        Role::ALL[self as usize].1
    }

    fn is_moment(self) -> bool {
        matches!(self, Role::Submit | Role::Start | Role::End)
    }

    fn is_length(self) -> bool {
        matches!(self, Role::RunTime | Role::RequestedTime)
    }

    fn is_count(self) -> bool {
        matches!(self, Role::Processors | Role::Allocated | Role::Requested)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    computer: Option<String>,
    processors: Option<u32>,
    processor: Processor,
    separator: Option<char>,
    zone: Option<String>,
    time: Option<String>,
    length: Option<String>,
    none: Option<Vec<String>>,
    columns: BTreeMap<String, WrittenColumn>,
    #[serde(default)]
    states: BTreeMap<String, Ending>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "the name of a column, or a table as in { column = \"limit\", length = \"min\" }"
)]
enum WrittenColumn {
    Name(String),
    Full(FullColumn),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullColumn {
    column: String,
    length: Option<String>,
    time: Option<String>,
    divide: Option<u32>,
}

/// What stands where nothing is known, if the map does not say.
const NONE: [&str; 8] = ["", "None", "NULL", "null", "NaN", "N/A", "Unknown", "NaT"];

impl Map {
    /// Understands what a map says. `file` stands in errors.
    ///
    /// # Errors
    /// If it is not TOML of that shape, a word means nothing, or what makes a job is missing.
    pub fn parse(file: &str, text: &str) -> Result<Map, MapError> {
        let wrong = |problem: String| MapError { file: file.to_string(), problem };
        let written: Written =
            toml::from_str(text).map_err(|error| wrong(scheduler::spelling::of_file(&error.to_string())))?;
        let separator = written.separator.unwrap_or(',');
        let separator = u8::try_from(separator)
            .ok()
            .filter(|byte| byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r'))
            .ok_or_else(|| {
                wrong(format!("separator is `{separator}`; write one letter, as \",\" or \"\\t\""))
            })?;
        let zone = written.zone.as_deref().map(str::parse::<Zone>).transpose();
        let zone = zone.map_err(|error| wrong(error.to_string()))?;
        let time = written.time.as_deref().unwrap_or("iso");
        let length = written.length.as_deref().unwrap_or("s");
        let mut columns: Vec<Option<Column>> = vec![None; Role::ALL.len()];
        for (key, column) in written.columns {
            let known = Role::ALL.map(|(_, name)| name);
            let &(role, _) = Role::ALL.iter().find(|(_, name)| *name == key).ok_or_else(|| {
                let hint = scheduler::spelling::hint(&key, known);
                wrong(format!("columns.{key}{hint} is nothing that a column may hold: {}", known.join(", ")))
            })?;
            let full = match column {
                WrittenColumn::Name(column) => FullColumn { column, length: None, time: None, divide: None },
                WrittenColumn::Full(full) => full,
            };
            for (has, may, what) in [
                (full.time.is_some(), role.is_moment(), "time"),
                (full.length.is_some(), role.is_length(), "length"),
                (full.divide.is_some(), role.is_count(), "divide"),
            ] {
                if has && !may {
                    return Err(wrong(format!("columns.{key}.{what} means nothing there; leave it out")));
                }
            }
            columns[role as usize] = Some(Column {
                name: full.column,
                length: full.length.as_deref().unwrap_or(length).parse().map_err(&wrong)?,
                moment: full.time.as_deref().unwrap_or(time).parse().map_err(&wrong)?,
                divide: full.divide.unwrap_or(1).max(1),
            });
        }
        let has = |role: Role| columns[role as usize].is_some();
        let needs = [
            (has(Role::Submit), "submit"),
            (has(Role::RunTime) || has(Role::Start) && has(Role::End), "run_time (or start and end)"),
            (
                has(Role::Processors) || has(Role::Allocated) || has(Role::Requested),
                "processors (or allocated, requested)",
            ),
        ];
        if let Some((_, missing)) = needs.iter().find(|(there, _)| !there) {
            return Err(wrong(format!("there is no {missing} in [columns], and no job without it")));
        }
        if has(Role::State) && written.states.is_empty() {
            return Err(wrong(
                "there is a column of states and no [states]; say what they mean, as in \
                              COMPLETED = \"completed\""
                    .to_string(),
            ));
        }
        Ok(Map {
            computer: written.computer,
            processors: written.processors,
            processor: written.processor,
            separator,
            zone,
            none: written.none.unwrap_or_else(|| NONE.map(str::to_string).to_vec()),
            states: written.states,
            columns,
        })
    }

    fn column(&self, role: Role) -> Option<&Column> {
        self.columns[role as usize].as_ref()
    }

    fn is_none(&self, field: &[u8]) -> bool {
        self.none.iter().any(|none| none.as_bytes() == field)
    }
}

#[cfg(test)]
#[path = "columns/columns_tests.rs"]
mod tests;
