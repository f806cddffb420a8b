//! A page of a study, made of a template and stored sweeps: each figure in it comes from the data.
//!
//! [`Template`] is taken apart by `template`, `prose` refuses figures that were written by hand, `expression` reads what
//! stands between braces, and `data` finds the rows that it speaks of. `inline`, `table` and `plot` answer, `ranked`
//! ranks, `published` reads tables that others printed and `beside` puts ours beside them; `words` says how numbers are written. The language is described in docs/SWEEPS.md.

mod beside;
mod data;
mod expression;
mod inline;
mod plot;
mod prose;
mod published;
mod ranked;
mod table;
mod template;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use analysis::statistics::holm;
use outputs::sweep::Rows;
use outputs::table::Table;
use scheduler::spelling;

pub use template::Template;

use crate::sweep::look::Looks;
use crate::sweep::study::WrittenReport;
use data::Data;
use expression::Expression;
use published::Published;
use template::{Family, Piece};

/// A difference is statistically significant if its corrected chance is at most this.
const LEVEL: f64 = 0.05;

/// By what a page of ours is known.
pub const MADE: &str = "<!-- Made of ";

/// Why there is no page. Reads after a file's name and a colon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PageError {
    /// Line of the template, from 1.
    line: usize,
    /// What is wrong, and what to do.
    reason: String,
}

impl PageError {
    fn new(line: usize, reason: &str) -> PageError {
        PageError { line, reason: reason.to_string() }
    }
}

/// A page and what lies beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Markdown.
    pub text: String,
    /// File names and content of plots (SVG) and of tables for LaTeX, for the folder of images.
    pub files: Vec<(String, String)>,
    /// What is left out: of which data how many runs failed, or are not there, and the first reason.
    pub warnings: Vec<String>,
}

/// Rows of a sweep, and how they are read.
#[derive(Clone, Debug)]
pub struct Source {
    /// The rows.
    pub rows: Rows,
    /// Which parameter plays which part.
    pub wishes: WrittenReport,
}

/// Makes the page. `name` is the file name of the template, and `sources` are its data by name.
///
/// # Errors
/// If an expression means nothing, or selects nothing or more than it may.
pub fn make(template: &Template, name: &str, sources: BTreeMap<String, Source>) -> Result<Page, PageError> {
    let mut data = BTreeMap::new();
    for (key, source) in sources {
        let sorted = Data::new(source.rows, &source.wishes, &template.series.labels)
            .map_err(|error| PageError::new(1, &format!("data {key}: failed to {error}")))?;
        data.insert(key, sorted);
    }
    let mut left_out = Vec::new();
    let mut warnings = Vec::new();
    for (name, data) in &data {
        let Some(counts) = data.study.left_out() else { continue };
        let (_, reason) = data.study.failed();
        let reason = reason.map_or(String::new(), |reason| format!("; the first because: {reason}"));
        warnings.push(format!("of the data {name}, {counts}{reason}"));
        left_out.push(format!("of the data {name}, {counts}"));
    }
    named(template, &data, left_out.is_empty())?;
    let stem = name.split('.').next().unwrap_or(name);
    let mut maker = Maker {
        data,
        metrics: &template.metrics.labels,
        series: &template.series.labels,
        images: &template.head.images,
        prefix: stem,
        family: template.head.family,
        gathering: template.head.family == Family::Page,
        chances: BTreeMap::new(),
        files: Vec::new(),
        looks: Looks::default(),
        published: template.published.as_ref(),
    };
    if maker.gathering {
        maker.text(template, true)?;
        let chances = std::mem::take(&mut maker.chances);
        let corrected = holm(&chances.values().copied().collect::<Vec<_>>());
        maker.chances = chances.into_keys().zip(corrected).collect();
        maker.gathering = false;
    }
    let mut text = maker.text(template, false)?;
    // Below the title, where it stands in nobody's way.
    let made = format!("{MADE}{name} by `stealgrid study`: change that, and make the page again. -->\n");
    let place = text.find('\n').map_or(text.len(), |place| place + 1);
    let mut head = format!("\n{made}");
    if !left_out.is_empty() {
        head += &format!(
            "\n> **Runs are left out**: {}. Figures are of the others, and the repetitions of one series may be others than those \
             of another.\n",
            left_out.join("; ")
        );
        // What follows is no part of the quote.
        if !text[place..].starts_with('\n') {
            head.push('\n');
        }
    }
    text.insert_str(place, &head);
    Ok(Page { text, files: maker.files, warnings })
}

/// Refuses names of series and metrics that stand for nothing: a mistake in one would leave what it is about as it is. Where not all runs are
/// there, a series may be among the others.
fn named(template: &Template, data: &BTreeMap<String, Data>, is_whole: bool) -> Result<(), PageError> {
    for name in template.series.labels.keys().filter(|_| is_whole) {
        if !data.values().any(|data| data.has_series(name)) {
            let there: BTreeSet<&str> = data.values().flat_map(Data::series_names).collect();
            let reason = format!(
                "[series] {name:?} is the name of no series{}; write a name as it is without [series], or leave the line out; \
                 there are {}",
                spelling::hint(name, there.iter()),
                there.iter().copied().collect::<Vec<_>>().join("; ")
            );
            return Err(template.series.wrong(name, &reason));
        }
    }
    for name in template.metrics.labels.keys() {
        if !data.values().any(|data| data.metric(name).is_ok()) {
            let there: BTreeSet<&String> = data.values().flat_map(|data| &data.study.rows.metrics).collect();
            let reason = format!(
                "[metrics] {name:?} is the name of no metric{}; write one of the data, or leave the line out",
                spelling::hint(name, there),
            );
            return Err(template.metrics.wrong(name, &reason));
        }
    }
    Ok(())
}

/// What expressions are answered with.
struct Maker<'a> {
    data: BTreeMap<String, Data>,
    /// What metrics are called.
    metrics: &'a BTreeMap<String, String>,
    /// What series are called.
    series: &'a BTreeMap<String, String>,
    images: &'a str,
    prefix: &'a str,
    family: Family,
    /// Whether chances of the whole page are being gathered.
    gathering: bool,
    /// Of the whole page: as they are while they are gathered, then corrected.
    chances: BTreeMap<String, f64>,
    files: Vec<(String, String)>,
    /// What plots have given to series.
    looks: Looks,
    /// Printed tables that ours stand beside.
    published: Option<&'a Published>,
}

impl Maker<'_> {
    /// The page, or only what its tables compare.
    fn text(&mut self, template: &Template, tables_only: bool) -> Result<String, PageError> {
        let mut page = String::new();
        for piece in &template.pieces {
            match piece {
                Piece::Text(text) => page += text,
                Piece::Expression(text, line) => {
                    let made = Expression::parse(text).and_then(|found| {
                        if tables_only && found.verb != "table" {
                            Ok(String::new())
                        } else {
                            self.answer(found)
                        }
                    });
                    page += &made.map_err(|reason| {
                        PageError::new(*line, &format!("{{{{{}}}}}: {reason}", text.trim()))
                    })?;
                }
            }
        }
        Ok(page)
    }

    fn answer(&mut self, mut expression: Expression) -> Result<String, String> {
        let is_table = expression.verb == "table";
        let kinds = ["degradation", "published", "agreement"];
        let kind = kinds.into_iter().find(|kind| is_table && expression.begins_with(kind));
        if !is_table {
            return match expression.verb.as_str() {
                "plot" => plot::plot(self, expression),
                "measured" | "printed" | "agreement" => beside::inline(self, expression),
                _ => inline::inline(self, expression),
            };
        }
        let id = self.latex_id(&mut expression, kind)?;
        let title = if id.is_some() { expression.take("title") } else { None };
        let table = match kind {
            Some("degradation") => ranked::table(self, expression)?,
            Some("published") => beside::published(self, expression)?,
            Some(_) => beside::agreement(self, expression)?,
            None => table::table(self, expression)?,
        };
        match id {
            // The line break after the expression stays.
            None => Ok(table.markdown().trim_end().to_string()),
            Some(id) => self.latex(&id, title, &table),
        }
    }

    /// The name of the file of a table that is asked for as LaTeX.
    fn latex_id(&self, expression: &mut Expression, kind: Option<&str>) -> Result<Option<String>, String> {
        match expression.take("format").as_deref() {
            None | Some("markdown") => Ok(None),
            // There, id is that of the printed table.
            Some("latex") if kind.is_some_and(|kind| kind != "degradation") => {
                Err("a table beside a printed one is Markdown only".to_string())
            }
            Some("latex") => expression.need("id").map(Some),
            Some(other) => Err(format!("format={other} is neither markdown nor latex")),
        }
    }

    /// Puts a table into a file, and returns the link to it.
    fn latex(&mut self, id: &str, title: Option<String>, table: &Table) -> Result<String, String> {
        let corner = table.cells().0.first().filter(|corner| !corner.is_empty());
        let title = title.or_else(|| corner.cloned()).unwrap_or_else(|| "table".to_string());
        if let Some(figure) = prose::foreign_figure(&title, &table.cells().0.join(" ")) {
            return Err(format!("the title has a figure, {figure}, that the table's head has not"));
        }
        let file = format!("{}-{id}.tex", self.prefix);
        let link = format!("[{}, for LaTeX]({}/{file})", title.replace(['[', ']'], ""), self.images);
        let made = format!("% Made by stealgrid study; needs \\usepackage{{booktabs}}.\n{}", table.latex());
        // While chances are gathered nothing is written.
        if !self.gathering {
            self.file(id, file, made)?;
        }
        Ok(link)
    }

    /// Keeps a file for the folder of images.
    fn file(&mut self, id: &str, name: String, content: String) -> Result<(), String> {
        if !id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
            return Err(format!("id={id} is no name of a file; write small letters, digits and -"));
        }
        if self.files.iter().any(|(other, _)| *other == name) {
            return Err(format!("id={id} is there twice"));
        }
        self.files.push((name, content));
        Ok(())
    }

    /// The data that an expression speaks of, and their name.
    fn data_of(&self, expression: &mut Expression) -> Result<(&str, &Data), String> {
        let names = || self.data.keys().cloned().collect::<Vec<_>>().join(", ");
        match (expression.take("data"), self.data.len()) {
            (Some(name), _) => self
                .data
                .get_key_value(&name)
                .ok_or_else(|| format!("no data are {name:?}; there are {}", names())),
            (None, 1) => self.data.iter().next().ok_or_else(|| "there are no data".to_string()),
            (None, _) => Err(format!("it needs data=; there are {}", names())),
        }
        .map(|(name, data)| (name.as_str(), data))
    }

    /// The metrics that an expression asks for, with what they are called; `several` says what more than one is for.
    fn metrics_of(
        &self,
        data: &Data,
        expression: &mut Expression,
        several: &str,
    ) -> Result<Vec<(String, String)>, String> {
        let wanted = match (expression.list("metric"), expression.list("metrics")) {
            (Some(list), None) | (None, Some(list)) => list,
            _ => return Err(format!("it needs metric=, or metrics= {several}")),
        };
        let mut metrics = Vec::new();
        for name in wanted {
            for (column, part) in data.metrics(&name)? {
                // What stands for a star is enough of a name beside the others.
                let words = if part == column {
                    self.metric(&column)
                } else {
                    self.metrics.get(&column).cloned().unwrap_or(part)
                };
                metrics.push((column, words));
            }
        }
        Ok(metrics)
    }

    /// A metric in words.
    fn metric(&self, name: &str) -> String {
        self.metrics.get(name).cloned().unwrap_or_else(|| words::metric(name))
    }

    /// A series in words.
    fn data_label(&self, name: &str) -> String {
        self.series.get(name).cloned().unwrap_or_else(|| name.to_string())
    }

    /// Which of some comparisons are statistically significant. They are known by name, so that one that is in two tables is one.
    fn told(&mut self, compared: &[Option<(String, f64)>]) -> Vec<bool> {
        let of = |corrected: &dyn Fn(&str) -> Option<f64>| {
            let is_told = |one: &Option<(String, f64)>| {
                one.as_ref().and_then(|(name, _)| corrected(name)).is_some_and(|chance| chance <= LEVEL)
            };
            compared.iter().map(is_told).collect()
        };
        match self.family {
            Family::Page if self.gathering => {
                self.chances.extend(compared.iter().flatten().cloned());
                vec![false; compared.len()]
            }
            Family::Page => of(&|name| self.chances.get(name).copied()),
            Family::Table => {
                let chances: BTreeMap<&str, f64> =
                    compared.iter().flatten().map(|(name, chance)| (name.as_str(), *chance)).collect();
                let corrected = holm(&chances.values().copied().collect::<Vec<_>>());
                let corrected: BTreeMap<&str, f64> = chances.into_keys().zip(corrected).collect();
                of(&|name| corrected.get(name).copied())
            }
        }
    }
}

#[cfg(test)]
mod tests;
