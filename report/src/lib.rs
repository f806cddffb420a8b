//! Runs and sweeps shown to people: on a terminal, as Markdown, JSON or CSV, and as pages.
//!
//! Nothing is measured here; all numbers come from a [`RunResult`] or the rows of a sweep. [`summary`] is what a command
//! prints at its end, [`page`] is `report.html`; [`figures`] chooses the numbers that both show. [`sweep`] is the page
//! of many runs, [`study`] a document whose figures come from such runs.
//!
//! ```
//! use report::quantity::{change, duration};
//!
//! assert_eq!(duration(10_503.0), "2 h 55 min");
//! assert_eq!(change(3.0, 2.0), "+50.00 %");
//! ```

pub mod decisions;
pub mod faults;
pub mod figures;
pub mod orders;
pub mod page;
pub mod steals;
pub mod study;
pub mod summary;
pub mod sweep;

use std::str::FromStr;

use outputs::RunResult;

pub use outputs::quantity;
pub use summary::COLUMNS;

/// How a summary is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned text for a terminal.
    #[default]
    Terminal,
    /// Tables of pipes, for issues and notes.
    Markdown,
    /// The document of `metrics.json`.
    Json,
    /// A header and one row, for gathering runs.
    Csv,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "terminal" => Ok(Format::Terminal),
            "markdown" => Ok(Format::Markdown),
            "json" => Ok(Format::Json),
            "csv" => Ok(Format::Csv),
            _ => {
                let hint = scheduler::spelling::hint(text, ["terminal", "markdown", "json", "csv"]);
                Err(format!("unknown format {text:?}{hint}; use terminal, markdown, json or csv"))
            }
        }
    }
}

/// A run in a format, with a line break at the end.
pub fn render(result: &RunResult, format: Format) -> String {
    match format {
        Format::Terminal => summary::terminal(result),
        Format::Markdown => summary::markdown(result),
        Format::Json => {
            let mut document = Vec::new();
            outputs::write_metrics(&mut document, result).expect("memory takes every byte");
            String::from_utf8(document).expect("JSON is UTF-8")
        }
        Format::Csv => summary::csv(result),
    }
}
