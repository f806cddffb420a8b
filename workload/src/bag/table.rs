//! Bags as TOML: tables `[qos]`, `[[parameter]]`, `[[input]]`, and `command`.

use scheduler::Span;
use serde::Deserialize;

use super::{Bag, InputFile, Parameter, Values, Wishes, wrong};
use crate::trace::TraceError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    qos: Qos,
    #[serde(default)]
    parameter: Vec<toml::Spanned<Row>>,
    #[serde(default)]
    input: Vec<FileRow>,
    #[serde(default)]
    command: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Qos {
    deadline: Option<String>,
    budget: Option<f64>,
    queue_wait_s: Option<u32>,
    optimisation: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    value: Option<String>,
    from: Option<i64>,
    to: Option<i64>,
    step: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRow {
    file: String,
    bytes: Option<u64>,
}

/// The line of a place in a text, from 1.
fn line_of(text: &str, place: usize) -> u64 {
    1 + text.bytes().take(place).filter(|&byte| byte == b'\n').count() as u64
}

pub(super) fn parse(name: &str, text: &str) -> Result<Bag, TraceError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| line_of(text, span.start));
        wrong(name, line, format!("{}; correct it there", scheduler::spelling::of_file(error.message())))
    })?;
    let mut parameters = Vec::new();
    for row in file.parameter {
        let line = line_of(text, row.span().start);
        let row = row.into_inner();
        let values = match (row.value, row.from, row.to) {
            (Some(value), None, None) if row.step.is_none() => Values::Single(value),
            (None, Some(from), Some(to)) => match row.step.unwrap_or(1) {
                step if step > 0 && from <= to => Values::Range { from, to, step },
                _ => {
                    let problem =
                        format!("parameter {} has no values; write from <= to and step >= 1", row.name);
                    return Err(wrong(name, line, problem));
                }
            },
            _ => {
                let problem = format!(
                    "parameter {} is neither one nor a range; write `value`, or `from` and `to`",
                    row.name
                );
                return Err(wrong(name, line, problem));
            }
        };
        parameters.push(Parameter { name: row.name, values });
    }
    let wishes = Wishes {
        deadline: file.qos.deadline,
        budget: file.qos.budget,
        queue_wait: file.qos.queue_wait_s.map(|seconds| Span::from_secs(i64::from(seconds))),
        optimisation: file.qos.optimisation,
    };
    let inputs = file.input.into_iter().map(|row| InputFile { name: row.file, bytes: row.bytes }).collect();
    Ok(Bag { name: name.to_string(), wishes, parameters, inputs, command: file.command, skipped: Vec::new() })
}
