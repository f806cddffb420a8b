//! The page of predictions on a log: errors, schedules, waits, and predicted against measured.

use std::fmt::Write as _;

use analysis::statistics::Interval;

use super::axis::{LOG_FROM, Scale, time_labels};
use super::chart::{Line, LineChart, Theory};
use super::dot_chart::{DotChart, DotRow};
use super::figures::Figure;
use super::look::Looks;
use super::metric::Unit;
use super::page::{Body, PRODUCT, begin, end};
use super::tables::Table as Shown;
use crate::page::html::escape;

/// What the page shows.
#[derive(Clone, Debug)]
pub struct Predictions {
    /// Of the log.
    pub name: String,
    /// The machine and the jobs, a line each.
    pub about: Vec<String>,
    /// What a reader must know before believing a number.
    pub warnings: Vec<String>,
    /// What makes the results again.
    pub command: String,
    /// In the order of the page, above the tables.
    pub plots: Vec<Plot>,
    /// The same in numbers.
    pub tables: Vec<Table>,
}

/// A drawing with what a reader should know to read it.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Name of its file, without an ending.
    pub id: &'static str,
    /// What stands above it.
    pub title: String,
    /// Below it.
    pub note: &'static str,
    /// What is drawn.
    pub drawing: Drawing,
}

/// What a plot shows.
#[derive(Clone, Debug)]
pub enum Drawing {
    /// Names with values of several kinds.
    Rows {
        /// Of the axis.
        label: String,
        /// Whether values are shares.
        is_share: bool,
        /// Kinds of values.
        kinds: Vec<String>,
        /// For each name a value of each kind, with half the width of its interval if it has one.
        rows: Vec<Row>,
        /// Values that mean something for all.
        references: Vec<(String, f64)>,
    },
    /// Predicted over measured times, in seconds, with what most lie between.
    Times {
        /// What was predicted, as in "run time".
        what: &'static str,
        /// A line each: measured, predicted, and the ends of what half of the jobs have.
        lines: Vec<(String, Vec<[f64; 4]>)>,
    },
}

/// A name, and for each kind its value, if it has one, with half the width of its interval, if that is known.
pub type Row = (String, Vec<Option<(f64, Option<f64>)>>);

/// Numbers under a title.
#[derive(Clone, Debug)]
pub struct Table {
    /// What stands above it.
    pub title: String,
    /// What a reader should know to read it.
    pub note: &'static str,
    /// Names of columns.
    pub header: Vec<String>,
    /// In the order of the columns.
    pub rows: Vec<Vec<String>>,
}

/// Pieces of the line on which predictions are right.
const STEPS: u32 = 40;

/// The whole page.
pub fn html(shown: &Predictions) -> String {
    let mut page = begin(&shown.name);
    let _ = writeln!(page, "{PRODUCT}{}</p>\n<h1>{}</h1>", env!("CARGO_PKG_VERSION"), escape(&shown.name));
    for (class, lines) in [("about", &shown.about), ("warning", &shown.warnings)] {
        for line in lines {
            let _ = writeln!(page, "<p class=\"{class}\">{}</p>", escape(line));
        }
    }
    page.push_str("</header>\n");
    let mut body = Body::default();
    body.draw(figures(shown).iter());
    let tables: Vec<Shown> = shown.tables.iter().map(written).collect();
    body.tables(tables.iter());
    page += &body.html;
    let _ = writeln!(
        page,
        "<section>\n<h2>How this was made</h2>\n<pre>{}</pre>\n<p class=\"note\">The same log, options and version give the same numbers, \
         but for costs.</p>\n</section>",
        escape(&shown.command)
    );
    end(&mut page);
    page
}

fn written(table: &Table) -> Shown {
    Shown {
        title: table.title.clone(),
        note: table.note.to_string(),
        header: table.header.clone(),
        rows: table.rows.clone(),
        is_detail: false,
    }
}

fn figures(shown: &Predictions) -> Vec<Figure> {
    let mut looks = Looks::default();
    let figure = |plot: &Plot| {
        let (svg, narrow) = match &plot.drawing {
            Drawing::Rows { label, is_share, kinds, rows, references } => {
                dots(plot, label, *is_share, kinds, rows, references).drawn()
            }
            Drawing::Times { what, lines } => {
                let chart = times(plot, what, lines, &mut looks);
                (chart.svg(), chart.narrow())
            }
        };
        let (id, note) = (plot.id.to_string(), plot.note.to_string());
        Figure { id, panel: None, is_detail: false, svg, narrow, note }
    };
    shown.plots.iter().map(figure).collect()
}

fn dots(
    plot: &Plot,
    label: &str,
    is_share: bool,
    kinds: &[String],
    rows: &[Row],
    references: &[(String, f64)],
) -> DotChart {
    let interval = |(value, half): (f64, Option<f64>)| {
        let interval = half.map(|half| Interval { low: value - half, high: value + half });
        (value, interval)
    };
    let row = |(name, values): &Row| DotRow {
        name: name.clone(),
        values: values.iter().map(|value| value.map(interval)).collect(),
    };
    DotChart {
        title: plot.title.clone(),
        label: label.to_string(),
        // From the first color that is none of the axes'.
        kinds: kinds.iter().cloned().zip(1..).collect(),
        rows: rows.iter().map(row).collect(),
        references: references.to_vec(),
        unit: if is_share { Unit::Share } else { Unit::Number },
        log_from: LOG_FROM,
    }
}

fn times(plot: &Plot, what: &str, lines: &[(String, Vec<[f64; 4]>)], looks: &mut Looks) -> LineChart {
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let looks = looks.of(&names);
    let line = |((name, points), look): (&(String, Vec<[f64; 4]>), usize)| {
        let point = |&[x, y, low, high]: &[f64; 4]| (x, Some(y), Some(Interval { low, high }));
        Line { name: name.clone(), points: points.iter().map(point).collect(), marks: Vec::new(), look }
    };
    let lines: Vec<Line> = lines.iter().zip(looks).map(line).collect();
    let measured = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.0));
    let positive = measured().filter(|&x| x > 0.0);
    let (least, most) = (positive.fold(f64::INFINITY, f64::min), measured().fold(0.0, f64::max));
    let has_none = measured().any(|x| x == 0.0);
    // By logarithm from the shortest to the longest, which have no words of their own.
    let x = if least.is_finite() {
        let ticks = Scale::Log(least, most.max(least * LOG_FROM), has_none).time_ticks();
        let named: Vec<f64> = ticks.into_iter().filter(|tick| *tick <= most).collect();
        let words = time_labels(&named);
        let ends = [least, most.max(least * LOG_FROM)].map(|end| (end, String::new()));
        let mut all: Vec<(f64, String)> = named.into_iter().zip(words).chain(ends).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        all
    } else {
        vec![(0.0, "0".to_string()), (1.0, "1".to_string())]
    };
    // Many points, as one axis may be plain and the other by logarithm.
    let along = |step: u32| least * (most / least).powf(f64::from(step) / f64::from(STEPS));
    let same = if least.is_finite() {
        (0..=STEPS).map(|step| (along(step), along(step))).collect()
    } else {
        Vec::new()
    };
    LineChart {
        title: plot.title.clone(),
        heading: plot.title.clone(),
        x_label: format!("measured {what}"),
        y_label: format!("predicted {what}"),
        x,
        x_per: None,
        lines,
        theory: vec![Theory { name: "as measured".to_string(), points: same }],
        y_unit: Unit::Time,
        log_from: LOG_FROM,
        least_possible: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Predictions {
        let rows = vec![
            ("user".to_string(), vec![Some((0.5, None)), Some((0.6, Some(0.1)))]),
            ("<script>avg2".to_string(), vec![Some((0.4, None)), None]),
        ];
        let rows = Drawing::Rows {
            label: "MAE over mean run time".to_string(),
            is_share: false,
            kinds: vec!["whole log".to_string(), "first half".to_string()],
            rows,
            references: vec![("clairvoyant".to_string(), 0.3)],
        };
        let lines = vec![(
            "avg2".to_string(),
            vec![[0.0, 1.0, 0.0, 5.0], [60.0, 50.0, 20.0, 90.0], [7200.0, 900.0, 60.0, 3600.0]],
        )];
        let plot = |id, drawing| Plot { id, title: format!("Plot of {id}"), note: "A note.", drawing };
        Predictions {
            name: "</title><script>alert(1)</script>".to_string(),
            about: vec!["100 processors".to_string()],
            warnings: vec!["no user".to_string()],
            command: "stealgrid predict log.swf --sites 100".to_string(),
            plots: vec![plot("errors", rows), plot("times", Drawing::Times { what: "wait", lines })],
            tables: vec![Table {
                title: "Errors".to_string(),
                note: "Of all.",
                header: vec!["predictor".to_string(), "MAE".to_string()],
                rows: vec![vec!["avg2".to_string(), "5".to_string()]],
            }],
        }
    }

    #[test]
    fn the_page_has_all_of_it_and_needs_nothing_from_elsewhere() {
        let page = html(&shown());
        for part in [
            "<figure id=\"errors\">",
            "<figure id=\"times\">",
            "<td>avg2</td>",
            "no user",
            "as measured",
            "clairvoyant",
        ] {
            assert!(page.contains(part), "{part}");
        }
        let names_a_namespace = page.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http://", "https://", " src=", "@import", "url("] {
            assert!(!names_a_namespace.contains(outside), "{outside}");
        }
        assert!(!page.contains("<script>a"), "names cannot break out of it");
    }

    #[test]
    fn waits_of_nothing_have_a_place() {
        let shown = shown();
        let figures = figures(&shown);
        assert_eq!(figures[1].svg.matches("<title>").count(), 3, "{}", figures[1].svg);
    }
}
