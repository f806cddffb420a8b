//! The section on steals: how long each phase took, who stole, and the numbers.
//!
//! The drawings are SVG made here, so that they need no script and print well.

use std::io::{self, Write};

use analysis::spread::Spread;
use outputs::{RunResult, StealCost};
use scheduler::Span;

use super::html::{entry, escape};
use super::quantity::{grouped, percent};
use super::shares::{Axes, HEIGHT, TOP, WIDTH};
use super::table_html;
use crate::steals::{steals_lines, steals_table};
use crate::sweep::chart::cut;

/// Room to the right of the drawing of phases.
const RIGHT: f64 = 40.0;
/// Points of a curve.
const POINTS: usize = 160;
/// Bars of thieves; the others are left out.
const THIEVES: usize = 24;
/// Letters of a name that there is room for.
const NAME: usize = 14;
/// Colors of the phases, as in the style sheet, and the widths of their lines, so that none hides another.
const COLORS: [&str; 3] = ["own-a", "stolen-a", "own-b"];
const WIDTHS: [f64; 3] = [6.0, 3.5, 1.5];

/// Writes the section; nothing without exchange.
pub(super) fn write(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let Some(exchange) = &result.steals else { return Ok(()) };
    writeln!(file, "<section>\n<h2>What a steal costs</h2>")?;
    for line in steals_lines(result) {
        writeln!(file, "<p class=\"note\">{}.</p>", escape(&line))?;
    }
    writeln!(file, "<div class=\"pair\">")?;
    write_phases(file, exchange)?;
    write_thieves(file, result, exchange)?;
    writeln!(file, "</div>")?;
    if let Some(table) = steals_table(result) {
        table_html(file, "What a steal costs", &table)?;
    }
    writeln!(file, "</section>")
}

/// The share of steals whose phase took at most as long, over a logarithmic axis.
fn write_phases(file: &mut dyn Write, exchange: &StealCost) -> io::Result<()> {
    let phases = exchange.steals.phases();
    let most = phases.iter().filter_map(|(_, spread)| spread.extremes()).map(|(_, max)| max).max();
    let most = most.unwrap_or(Span::ZERO).as_secs_f64().max(1.0);
    let least = phases.iter().filter_map(|(_, spread)| smallest_positive(spread)).fold(most, f64::min);
    // Whole powers of ten around all values that are not 0.
    let (from, to) = (least.log10().floor(), most.log10().ceil().max(least.log10().floor() + 1.0));
    let axes = Axes { from: 10f64.powf(from), to: 10f64.powf(to), right: RIGHT };
    let powers = (0..=(to - from) as i32).map(|power| 10f64.powf(from + f64::from(power)));
    let marks = powers.map(|seconds| (seconds, duration(seconds)));
    axes.write(file, "Phases of steals", &[0.0, 0.5, 1.0], marks)?;
    let lines = phases.iter().zip(COLORS).zip(WIDTHS);
    for (((_, spread), color), width) in lines.filter(|(((_, spread), _), _)| !spread.is_empty()) {
        let seconds: Vec<f64> =
            (0..=POINTS).map(|point| 10f64.powf(from + (to - from) * point as f64 / POINTS as f64)).collect();
        let limits: Vec<Span> =
            seconds.iter().map(|seconds| Span::from_micros((seconds * 1e6).round() as i64)).collect();
        let mut points = String::new();
        let mut last = None;
        for (seconds, share) in seconds.iter().zip(spread.shares_up_to(&limits)) {
            if let Some(last) = last.filter(|last| *last != share) {
                points += &format!("{:.1},{:.1} ", axes.x(*seconds), axes.y(last));
            }
            points += &format!("{:.1},{:.1} ", axes.x(*seconds), axes.y(share));
            last = Some(share);
        }
        writeln!(
            file,
            "<polyline style=\"stroke:var(--{color});stroke-width:{width}\" points=\"{}\"/>",
            points.trim_end()
        )?;
    }
    writeln!(
        file,
        "</svg>\n<figcaption>Share of steals whose phase took at most as long; times on a logarithmic scale, zeros left of it. \
         "
    )?;
    for ((name, spread), color) in phases.iter().zip(COLORS) {
        let none = if spread.is_empty() { " (none)" } else { "" };
        write!(file, "{} ", entry(color, &format!("{name}{none}")))?;
    }
    writeln!(file, "</figcaption>\n</figure>")
}

fn smallest_positive(spread: &Spread) -> Option<f64> {
    let (min, max) = spread.extremes()?;
    if min > Span::ZERO {
        return Some(min.as_secs_f64());
    }
    // Zeros are left of every axis; the first value that is none is found by halving the share.
    let first = (0..=100).find_map(|percent| spread.quantile(percent).filter(|&value| value > Span::ZERO));
    first.or((max > Span::ZERO).then_some(max)).map(Span::as_secs_f64)
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s => format!("{} s", grouped(s.round() as u64)),
    }
}

/// Stolen work and steals of each thief, the greatest first.
fn write_thieves(file: &mut dyn Write, result: &RunResult, exchange: &StealCost) -> io::Result<()> {
    let mut thieves: Vec<_> = exchange.price.thieves.iter().filter(|thief| thief.steals > 0).collect();
    thieves.sort_by(|a, b| b.work_share.total_cmp(&a.work_share).then(a.site.cmp(&b.site)));
    let left_out = thieves.len().saturating_sub(THIEVES);
    thieves.truncate(THIEVES);
    let most = thieves.iter().map(|thief| thief.work_share.max(thief.steals_share)).fold(0.01, f64::max);
    let row = ((HEIGHT - TOP) / thieves.len().max(1) as f64).clamp(14.0, 30.0);
    let height = (TOP + row * thieves.len() as f64).max(40.0);
    // On the right "100.0 % / 100.0 %" has room behind the longest bar.
    let (left, right) = (96.0, 130.0);
    writeln!(
        file,
        "<figure>\n<svg viewBox=\"0 0 {WIDTH} {height:.1}\" role=\"img\" aria-label=\"Thieves\">"
    )?;
    for (place, thief) in thieves.iter().enumerate() {
        let top = TOP + row * place as f64;
        let length = |share: f64| share / most * (WIDTH - left - right);
        let bar = (row - 4.0) / 2.0;
        writeln!(
            file,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{left}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{bar:.1}\" style=\"fill:var(--stolen-a)\"/>\
             <rect x=\"{left}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{bar:.1}\" style=\"fill:var(--stolen-b)\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{} / {}</text>",
            left - 8.0,
            top + row / 2.0 + 2.0,
            escape(&cut(&result.outcome.grid.site(thief.site).name, NAME)),
            length(thief.work_share),
            top + bar,
            length(thief.steals_share),
            left + length(thief.work_share.max(thief.steals_share)) + 6.0,
            top + row / 2.0 + 2.0,
            percent(thief.work_share),
            percent(thief.steals_share),
        )?;
    }
    writeln!(
        file,
        "</svg>\n<figcaption>Who stole: {} {}{}</figcaption>\n</figure>",
        entry("stolen-a", "share of the stolen work,"),
        entry("stolen-b", "share of the steals."),
        if left_out > 0 { format!(" {left_out} more sites stole less.") } else { String::new() }
    )
}
