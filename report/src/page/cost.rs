//! What the page says first: what messages that take time cost, what exchange is worth, and why jobs waited.
//!
//! Three runs of the same jobs are beside each other: the one that was measured, the same strategy at zero latency, and no
//! exchange at all. The drawings are SVG made here.

use std::io::{self, Write};

use analysis::waits::Cause;
use analysis::{Metrics, WaitCauses};
use outputs::RunResult;

use super::html::{entry, escape, unparted};
use crate::figures::{cost_lines, wait_cause_meaning, words};
use crate::quantity::{change_in_words, number, percent, seconds};

/// Size of a drawing, in its own units.
const WIDTH: f64 = 380.0;
/// Room for the names of the runs, and for values.
const LEFT: f64 = 118.0;
const RIGHT: f64 = 112.0;
const ROW: f64 = 26.0;
/// A bar this many times as long as the next is cut.
const CUT: f64 = 4.0;

/// A metric by which the runs are compared, and how it is shown.
type Compared = (&'static str, fn(&Metrics) -> f64, fn(f64) -> String);

/// Writes the section.
pub(super) fn write(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    writeln!(file, "<section>")?;
    for line in cost_lines(result) {
        writeln!(file, "<p class=\"story\">{}</p>", escape(&line))?;
    }
    let runs = runs(result);
    if runs.len() > 1 {
        let compared: [Compared; 3] = [
            ("Mean wait", |metrics| metrics.wait_mean_s, |value| format!("{} s", number(value))),
            ("Mean bounded slowdown", |metrics| metrics.bounded_slowdown_mean, number),
            ("Makespan", |metrics| metrics.makespan_s, |value| format!("{} s", number(value))),
        ];
        writeln!(file, "<div class=\"against\">")?;
        for one in compared {
            write_bars(file, &runs, one)?;
        }
        writeln!(file, "</div>")?;
    }
    if let Some(waits) = result.waits.as_ref().filter(|waits| waits.total_s > 0.0) {
        write_waits(file, waits)?;
    } else if result.outcome.faults.disturbed() {
        writeln!(
            file,
            "<p class=\"note\">Why jobs waited is not reported for a run in which sites were away or jobs were taken over. The \
             other runs have no faults.</p>"
        )?;
    }
    writeln!(file, "</section>")
}

/// The runs with their names and colors: the measured one first.
fn runs(result: &RunResult) -> Vec<(&'static str, &'static str, &Metrics)> {
    let mut runs = vec![("this run", "stolen-a", &result.metrics)];
    if let Some(ideal) = &result.ideal {
        runs.push(("zero latency", "own-a", &ideal.metrics));
    }
    if let Some(local) = &result.without_exchange {
        runs.push(("no exchange", "own-b", &local.metrics));
        if let Some(dealt) = local.overloaded.as_ref().and_then(|overloaded| overloaded.dealt.as_ref()) {
            runs.push(("… jobs dealt", "stolen-b", dealt));
        }
    }
    runs
}

fn write_bars(
    file: &mut dyn Write,
    runs: &[(&str, &str, &Metrics)],
    (name, value, show): Compared,
) -> io::Result<()> {
    // What is many times as long would hide the difference that matters: such a bar is cut, and says so by its gap.
    let longest = runs.iter().map(|(.., metrics)| value(metrics)).fold(0.0, f64::max);
    let second =
        runs.iter().map(|(.., metrics)| value(metrics)).filter(|&value| value < longest).fold(0.0, f64::max);
    let is_cut = longest > CUT * second && second > 0.0;
    let most = if is_cut { 1.5 * second } else { longest };
    let height = ROW * runs.len() as f64 + 4.0;
    writeln!(file, "<figure>\n<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{name}\">")?;
    for (place, (run, color, metrics)) in runs.iter().enumerate() {
        let (top, value) = (4.0 + ROW * place as f64, value(metrics));
        let room = WIDTH - LEFT - RIGHT;
        let length = if most > 0.0 { (value / most).min(1.0) * room } else { 0.0 };
        let gap = match is_cut && value >= longest {
            true => format!(
                "<path d=\"M{:.1} {:.1}l6 -10l6 10l6 -10\" style=\"fill:none;stroke:var(--panel);stroke-width:3\"/>",
                LEFT + 0.8 * room,
                top + ROW / 2.0 + 1.0
            ),
            false => String::new(),
        };
        writeln!(
            file,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{run}</text>\
             <rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{}\" style=\"fill:var(--{color})\"/>{gap}\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            top + ROW / 2.0 + 1.0,
            ROW - 8.0,
            LEFT + length + 6.0,
            top + ROW / 2.0 + 1.0,
            show(value)
        )?;
    }
    let (_, _, this) = runs[0];
    let against: Vec<String> = runs[1..]
        .iter()
        .map(|(run, _, other)| match change_in_words(value(this), value(other)) {
            change if change.ends_with("as much") => format!("{change} as {run}"),
            change => format!("{change} against {run}"),
        })
        .collect();
    writeln!(
        file,
        "</svg>\n<figcaption><b>{name}</b>: {}</figcaption>\n</figure>",
        unparted(&against.join(", ").replace("0 against", "the same as"))
    )
}

/// The mean wait by what was true while jobs waited.
fn write_waits(file: &mut dyn Write, waits: &WaitCauses) -> io::Result<()> {
    let jobs = waits.jobs.max(1) as f64;
    let mut causes: Vec<(Cause, f64)> =
        waits.causes.iter().map(|part| (part.cause, part.wait_s)).filter(|&(_, wait)| wait > 0.0).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let label: Vec<String> = causes
        .iter()
        .map(|(cause, wait)| format!("{} {}", words(cause.name()), percent(wait / waits.total_s)))
        .collect();
    writeln!(
        file,
        "<h2>Why jobs waited</h2>\n<div class=\"stack\" role=\"img\" aria-label=\"{}\">",
        label.join(", ")
    )?;
    for ((cause, wait), label) in causes.iter().zip(&label) {
        let share = 100.0 * wait / waits.total_s;
        let name = cause.name();
        writeln!(file, "<span class=\"cause-{name}\" style=\"width:{share:.4}%\" title=\"{label}\"></span>")?;
    }
    writeln!(
        file,
        "</div>\n<div class=\"scroll\"><table class=\"explained\" aria-label=\"Why jobs waited\">\n<tr><th>waits because</th><th class=\"n\">mean wait of a job</th>\
         <th class=\"n\">share</th><th>meaning</th></tr>"
    )?;
    for (cause, wait) in &causes {
        writeln!(
            file,
            "<tr><td>{}</td><td class=\"n\">{} s</td><td class=\"n\">{}</td><td>{}</td></tr>",
            entry(&format!("cause-{}", cause.name()), &words(cause.name())),
            number(wait / jobs),
            percent(wait / waits.total_s),
            wait_cause_meaning(*cause)
        )?;
    }
    writeln!(
        file,
        "<tr><td>all</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>of {} jobs that started</td></tr>\n</table></div>",
        seconds(waits.total_s / jobs),
        percent(1.0),
        crate::quantity::grouped(waits.jobs)
    )
}
