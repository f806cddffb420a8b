//! A template: a head that names its data, then Markdown with expressions.
//!
//! ```text
//! +++
//! page = "../DELAY-STUDY.md"              where the page is, relative to the template
//! allow = ["95 %"]                        figures that may stand in the text
//! [data]
//! delay = "../data/delay.csv.zst"
//! +++
//! # What delay costs
//! ```

use std::collections::BTreeMap;

use scheduler::spelling;
use serde::Deserialize;
use toml::Spanned;

use super::PageError;
use super::prose;
use super::published::Published;
use crate::sweep::study::WrittenReport;

/// The line before and after the head.
const FENCE: &str = "+++";
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// A template, taken apart.
#[derive(Clone, Debug)]
pub struct Template {
    pub(super) head: Head,
    /// What series are called on the page.
    pub(super) series: Names,
    /// What metrics are called on the page.
    pub(super) metrics: Names,
    pub(super) pieces: Vec<Piece>,
    pub(super) published: Option<Published>,
}

/// The head as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// Where the page is, relative to the template.
    page: Option<String>,
    /// Folder of the plots, relative to the page.
    #[serde(default = "images")]
    pub(super) images: String,
    /// Figures that may stand in the text, each with words around it.
    #[serde(default)]
    allow: Vec<String>,
    /// Which comparisons are corrected together.
    #[serde(default)]
    pub(super) family: Family,
    data: BTreeMap<String, Source>,
    /// A file of printed tables that ours stand beside, relative to the template.
    published: Option<String>,
    /// What series are called on the page.
    #[serde(default)]
    series: BTreeMap<String, Spanned<String>>,
    /// What metrics are called on the page.
    #[serde(default)]
    metrics: BTreeMap<String, Spanned<String>>,
}

/// What something is called on the page, by its name in the data.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) labels: BTreeMap<String, String>,
    /// Line of the template of each.
    lines: BTreeMap<String, usize>,
}

impl Names {
    fn new(written: &BTreeMap<String, Spanned<String>>, line: impl Fn(usize) -> usize) -> Names {
        Names {
            labels: written.iter().map(|(name, label)| (name.clone(), label.get_ref().clone())).collect(),
            lines: written.iter().map(|(name, label)| (name.clone(), line(label.span().start))).collect(),
        }
    }

    /// An error about one of the names.
    pub(super) fn wrong(&self, name: &str, reason: &str) -> PageError {
        PageError::new(self.lines.get(name).copied().unwrap_or(1), reason)
    }
}

fn images() -> String {
    "images".to_string()
}

/// Which comparisons are corrected together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Family {
    /// Those of one table.
    #[default]
    Table,
    /// Those of all tables of the page.
    Page,
}

/// A data file, and which parameter plays which part.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a file, as in \"rows.csv.zst\" or { file = \"rows.csv.zst\", x = \"network.delay\" }"
)]
enum Source {
    File(String),
    Parts(Parts),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    file: String,
    x: Option<String>,
    replicates: Option<Vec<String>>,
    panels: Option<Vec<String>>,
}

/// A part of the page.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// As it stands.
    Text(String),
    /// What is between braces, and its line.
    Expression(String, usize),
}

impl Template {
    /// Takes a template apart, and checks that no figure in it is written by hand.
    ///
    /// # Errors
    /// If the head cannot be read, an expression has no end, or there is such a figure.
    pub fn parse(text: &str) -> Result<Template, PageError> {
        let begin = PageError::new(1, "a template begins with a head between two lines of +++");
        let rest = text.strip_prefix(FENCE).and_then(|rest| rest.strip_prefix('\n')).ok_or(begin.clone())?;
        let (head, body) = rest.split_once("\n+++\n").ok_or(begin)?;
        let parsed: Result<Head, toml::de::Error> = toml::from_str(head);
        let head_lines = head.lines().count() + 2;
        let text = head;
        let line_of = |place: usize| 2 + text[..place].matches('\n').count();
        let head = parsed.map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(span.start));
            PageError::new(line, &spelling::of_file(error.message()))
        })?;
        if head.data.is_empty() {
            return Err(PageError::new(
                1,
                "the head names no data; write [data] and NAME = \"FILE\" below it",
            ));
        }
        let (series, metrics) = (Names::new(&head.series, line_of), Names::new(&head.metrics, line_of));
        for names in [&series, &metrics] {
            for (name, label) in &names.labels {
                if let Some(figure) = prose::foreign_figure(label, name) {
                    let reason = format!("the name {label:?} has a figure, {figure}, that {name:?} has not");
                    return Err(names.wrong(name, &reason));
                }
            }
        }
        let pieces = pieces(body, head_lines)?;
        prose::check(&hidden(&pieces), head_lines, &head.allow)?;
        Ok(Template { head, series, metrics, pieces, published: None })
    }

    /// The file of printed tables, relative to the template, if the head names one.
    pub fn published(&self) -> Option<&str> {
        self.head.published.as_deref()
    }

    /// The same with the content of that file.
    ///
    /// # Errors
    /// If it is no such file.
    pub fn with_published(self, text: &str) -> Result<Template, PageError> {
        let found = Published::parse(text);
        let wrong = |reason: String| PageError::new(1, &format!("the file of printed tables: {reason}"));
        Ok(Template { published: Some(found.map_err(wrong)?), ..self })
    }

    /// Names of the data, the file of each relative to the template, and wishes of how it is read.
    pub fn data(&self) -> impl Iterator<Item = (&str, &str, WrittenReport)> {
        self.head.data.iter().map(|(name, source)| match source {
            Source::File(file) => (name.as_str(), file.as_str(), WrittenReport::default()),
            Source::Parts(Parts { file, x, replicates, panels }) => {
                let (x, replicates, panels) = (x.clone(), replicates.clone(), panels.clone());
                (
                    name.as_str(),
                    file.as_str(),
                    WrittenReport { x, replicates, panels, ..WrittenReport::default() },
                )
            }
        })
    }

    /// Where the page is, relative to the template.
    pub fn page(&self) -> Option<&str> {
        self.head.page.as_deref()
    }

    /// Folder of the plots, relative to the page.
    pub fn images(&self) -> &str {
        &self.head.images
    }
}

fn pieces(body: &str, head_lines: usize) -> Result<Vec<Piece>, PageError> {
    let mut pieces = Vec::new();
    let mut line = head_lines + 1;
    let mut rest = body;
    while let Some((text, after)) = rest.split_once(OPEN) {
        line += text.matches('\n').count();
        pieces.push(Piece::Text(text.to_string()));
        let (expression, after) = after
            .split_once(CLOSE)
            .ok_or_else(|| PageError::new(line, "an expression has no end: }} is missing"))?;
        pieces.push(Piece::Expression(expression.to_string(), line));
        line += expression.matches('\n').count();
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_string()));
    Ok(pieces)
}

/// The text with blanks for expressions, line by line as it was.
fn hidden(pieces: &[Piece]) -> String {
    let of = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Expression(text, _) => {
            let blank = |c: char| if c == '\n' { c } else { ' ' };
            format!("  {}  ", text.chars().map(blank).collect::<String>())
        }
    };
    pieces.iter().map(of).collect()
}
