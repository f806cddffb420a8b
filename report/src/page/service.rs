//! How jobs were served: the distributions of wait and bounded slowdown beside those of the runs that this one is held
//! against, and the same by width and by user.

use std::io::{self, Write};

use analysis::Service;
use analysis::service::GroupService;
use outputs::RunResult;
use outputs::table::Table;

use super::html::entry;
use super::shares::Axes;
use super::table_html;
use crate::quantity::{counted, grouped, number};

/// Room to the right of the drawings, for half of the last label.
const RIGHT: f64 = 34.0;
/// Users with rows of their own.
const USERS: usize = 20;

/// What a drawing is of: its name, a caption, and marks of a logarithmic axis, where all values below the first stand at it.
struct Axis {
    name: &'static str,
    caption: &'static str,
    marks: &'static [(f64, &'static str)],
}

const WAITS: Axis = Axis {
    name: "Wait",
    caption: "Share of jobs that waited at most as long",
    marks: &[
        (1.0, "1 s"),
        (10.0, "10 s"),
        (60.0, "1 min"),
        (600.0, "10 min"),
        (3_600.0, "1 h"),
        (36_000.0, "10 h"),
        (172_800.0, "2 d"),
        (1_728_000.0, "20 d"),
        (17_280_000.0, "200 d"),
    ],
};

const SLOWDOWNS: Axis = Axis {
    name: "Bounded slowdown",
    caption: "Share of jobs whose bounded slowdown is at most as much",
    marks: &[
        (1.0, "1"),
        (10.0, "10"),
        (100.0, "100"),
        (1e3, "1,000"),
        (1e4, "10,000"),
        (1e5, "100,000"),
        (1e6, "1,000,000"),
    ],
};

/// A distribution: its name and color, and quantiles at equal steps.
type Curve<'a> = (&'static str, &'static str, &'a [f64]);

/// Writes the section; nothing if no job ended.
pub(super) fn write(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    if result.service.wait_s.is_empty() {
        return Ok(());
    }
    writeln!(file, "<section>\n<h2>How jobs were served</h2>\n<div class=\"pair\">")?;
    let curves = |of: fn(&Service) -> &[f64]| {
        let mut curves: Vec<Curve<'_>> = vec![("this run", "stolen-a", of(&result.service))];
        curves.extend(result.ideal.as_ref().map(|ideal| ("zero latency", "own-a", of(&ideal.service))));
        let local = result.without_exchange.as_ref();
        curves.extend(local.map(|local| ("no exchange", "own-b", of(&local.service))));
        curves
    };
    write_curves(file, &WAITS, &curves(|service| &service.wait_s))?;
    write_curves(file, &SLOWDOWNS, &curves(|service| &service.bounded_slowdown))?;
    writeln!(file, "</div>")?;
    let mut table = group_table("processors");
    for class in Service::by_width(&result.outcome) {
        let widths = match class.narrowest == class.widest {
            true => grouped(u64::from(class.widest)),
            false => format!("{} to {}", grouped(class.narrowest.into()), grouped(class.widest.into())),
        };
        table.push(row(widths, &class.service));
    }
    table_html(file, "How jobs were served by width", &table)?;
    let (users, count) = Service::by_user(&result.outcome, USERS);
    if users.iter().any(|user| user.user >= 0) {
        let mut table = group_table("user");
        for user in &users {
            let name = if user.user < 0 { "not known".to_string() } else { user.user.to_string() };
            table.push(row(name, &user.service));
        }
        let summary = match count > users.len() {
            true => format!("The {} users with most jobs, of {}", users.len(), grouped(count as u64)),
            false => counted(count, "user"),
        };
        writeln!(file, "<details>\n<summary>{summary}</summary>")?;
        table_html(file, "How jobs were served by user", &table)?;
        writeln!(file, "</details>")?;
    }
    writeln!(file, "</section>")
}

fn group_table(of: &str) -> Table {
    Table::new([
        of,
        "jobs",
        "mean wait, s",
        "95 % wait at most, s",
        "longest, s",
        "mean bounded slowdown",
        "95 % at most",
    ])
}

fn row(name: String, group: &GroupService) -> [String; 7] {
    // Of no job there is no mean.
    let figure = |value: f64| if group.jobs > 0 { number(value) } else { "-".to_string() };
    [
        name,
        grouped(group.jobs),
        figure(group.wait_mean_s),
        figure(group.wait_p95_s),
        figure(group.wait_max_s),
        figure(group.bounded_slowdown_mean),
        figure(group.bounded_slowdown_p95),
    ]
}

/// Distributions over a logarithmic axis.
fn write_curves(file: &mut dyn Write, axis: &Axis, curves: &[Curve<'_>]) -> io::Result<()> {
    let Axis { name, caption, marks } = axis;
    let least = marks[0].0;
    let most = curves.iter().filter_map(|(.., values)| values.last()).fold(10.0 * least, |a, &b| a.max(b));
    let axes = Axes { from: least, to: most, right: RIGHT };
    let marks = marks.iter().filter(|mark| mark.0 <= most).map(|&(value, label)| (value, label.to_string()));
    axes.write(file, name, &[0.0, 0.25, 0.5, 0.75, 1.0], marks)?;
    // The measured one on top.
    for (_, color, values) in curves.iter().rev() {
        let steps = values.len().saturating_sub(1).max(1) as f64;
        let points: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(place, &value)| format!("{:.1},{:.1}", axes.x(value), axes.y(place as f64 / steps)))
            .collect();
        writeln!(file, "<polyline style=\"stroke:var(--{color})\" points=\"{}\"/>", points.join(" "))?;
    }
    write!(file, "</svg>\n<figcaption>{caption}; logarithmic.")?;
    for (name, color, _) in curves {
        write!(file, " {}", entry(color, name))?;
    }
    writeln!(file, "</figcaption>\n</figure>")
}
