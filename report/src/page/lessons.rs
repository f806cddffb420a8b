//! The section on brokers that learn: efficiencies of sites over time, and how many jobs came back.
//!
//! The drawings are SVG made here, so that they need no script and print well.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analysis::Lesson;
use outputs::RunResult;
use outputs::table::Table;
use scheduler::{SiteId, Time};

use super::html::escape;
use super::quantity::{duration, grouped};
use super::shares::{HEIGHT, TOP, WIDTH};
use super::table_html;

/// Brokers with a drawing of their own, and rows of the table.
const BROKERS: usize = 6;
const ROWS: usize = 200;
/// Lines of a drawing: as many as there are colors in the style sheet. Sites where most jobs ended come first.
const LINES: usize = 6;
/// Room for labels.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 34.0;
const BOTTOM: f64 = 26.0;
/// Steps of a line; of more the last before each point is shown.
const STEPS: usize = 600;

/// Writes the section; nothing without brokers that learn.
pub(super) fn write(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let Some(lessons) = &result.lessons else { return Ok(()) };
    writeln!(
        file,
        "<section>\n<h2>What brokers learned</h2>\n<p class=\"note\">Efficiency of a site from -1 to 1, as a broker learned it \
         from its own jobs that ended there. What is called back had waited there for too long.</p>\n<div class=\"pair\">"
    )?;
    for (broker, sites) in lessons.brokers().take(BROKERS) {
        if sites.values().any(|lesson| !lesson.efficiency.is_empty()) {
            write_efficiencies(file, result, broker, sites)?;
        }
    }
    writeln!(file, "</div>")?;
    let mut table = Table::new(["broker and site", "jobs ended", "called back", "efficiency at the end"]);
    let name = |site| &result.outcome.grid.site(site).name;
    let rows = lessons.brokers().flat_map(|(broker, sites)| sites.iter().map(move |of| (broker, of)));
    for (broker, (&site, lesson)) in rows.take(ROWS) {
        let who = format!("{}: {}", name(broker), name(site));
        table.push([who, grouped(lesson.ended), grouped(lesson.recalled), format!("{:.3}", lesson.last())]);
    }
    table_html(file, "What brokers learned", &table)?;
    writeln!(file, "</section>")
}

/// A line for each site, which stays where it is until something is learned.
fn write_efficiencies(
    file: &mut dyn Write,
    result: &RunResult,
    broker: SiteId,
    sites: &BTreeMap<SiteId, Lesson>,
) -> io::Result<()> {
    let grid = &result.outcome.grid;
    let mut lines: Vec<(&SiteId, &Lesson)> = sites.iter().collect();
    lines.sort_by_key(|&(&site, lesson)| (std::cmp::Reverse(lesson.ended), site));
    let left_out = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    let begin = result.outcome.jobs.iter().map(|job| job.submit).min().unwrap_or(Time::ZERO);
    let changes = sites.values().filter_map(|lesson| lesson.efficiency.last());
    let end = changes.map(|&(at, _)| at).max().unwrap_or(begin);
    let whole = end.since(begin).as_secs_f64().max(1.0);
    let x = |at: Time| LEFT + at.since(begin).as_secs_f64() / whole * (WIDTH - LEFT - RIGHT);
    let y = |efficiency: f64| TOP + (1.0 - efficiency) / 2.0 * (HEIGHT - TOP - BOTTOM);
    writeln!(
        file,
        "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Efficiencies as {} learned them\">",
        escape(&grid.site(broker).name)
    )?;
    for mark in [-1.0, -0.5, 0.0, 0.5, 1.0] {
        let at = y(mark);
        writeln!(
            file,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{mark}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        )?;
    }
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        writeln!(
            file,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT + share * (WIDTH - LEFT - RIGHT),
            HEIGHT - 8.0,
            duration(whole * share)
        )?;
    }
    for (color, (_, lesson)) in lines.iter().enumerate().rev() {
        let every = lesson.efficiency.len().div_ceil(STEPS).max(1);
        let mut points = format!("{:.1},{:.1}", x(begin), y(0.0));
        let mut before = 0.0;
        for changes in lesson.efficiency.chunks(every) {
            let Some(&(at, efficiency)) = changes.last() else { continue };
            let at = x(at);
            points += &format!(" {at:.1},{:.1} {at:.1},{:.1}", y(before), y(efficiency));
            before = efficiency;
        }
        points += &format!(" {:.1},{:.1}", x(end), y(before));
        writeln!(file, "<polyline class=\"learned{color}\" points=\"{points}\"/>")?;
    }
    write!(
        file,
        "</svg>\n<figcaption>As {} learned them, since the first submission:",
        escape(&grid.site(broker).name)
    )?;
    for (color, (site, _)) in lines.iter().enumerate() {
        write!(
            file,
            " <span class=\"one\"><span class=\"key learned{color}\"></span> {}</span>",
            escape(&grid.site(**site).name)
        )?;
    }
    let more =
        if left_out > 0 { format!("; the others, {left_out}, are in the table") } else { String::new() };
    writeln!(file, "{more}.</figcaption>\n</figure>")
}

#[cfg(test)]
mod tests {
    use analysis::Lessons;
    use outputs::fixtures::{about, outcome};
    use scheduler::{Event, EventKind, JobId, Span};

    use super::*;

    fn learned(at: i64, of: SiteId, efficiency_millionths: i32) -> Event {
        let [execution, queue, transfer, overhead] = [Span::ZERO; 4];
        let job = JobId(1);
        let kind =
            EventKind::Learned { job, of, execution, queue, transfer, overhead, efficiency_millionths };
        Event { at: Time::from_secs(at), site: SiteId(2), kind }
    }

    fn section(events: &[Event]) -> String {
        let mut lessons = Lessons::default();
        events.iter().for_each(|event| lessons.observe(event));
        let run = outcome(&[4, 8], &[(0, 4, 10, 1, 0)]);
        let result = RunResult::new(about(), run, None).with_lessons(lessons.finish());
        let mut file = Vec::new();
        write(&mut file, &result).unwrap();
        String::from_utf8(file).unwrap()
    }

    #[test]
    fn a_line_for_each_site_goes_up_where_it_was_found_efficient() {
        let back = EventKind::Recalled { job: JobId(2), from: SiteId(1) };
        let back = Event { at: Time::from_secs(80), site: SiteId(2), kind: back };
        let section = section(&[learned(50, SiteId(1), 300_000), back, learned(100, SiteId(2), -1_000_000)]);
        let lines: Vec<&str> = section.lines().filter(|line| line.starts_with("<polyline")).collect();
        let ended = |y| format!("{y}\"/>");
        // From 10 for 1 to 194 for -1: half of the way, and then of it 0.3, and the whole.
        assert!(lines.len() == 2 && lines[1].contains("class=\"learned0\""), "{section}");
        assert!(
            lines[1].ends_with(&ended("526.0,74.4")) && lines[0].ends_with(&ended("526.0,194.0")),
            "{section}"
        );
        assert!(section.contains("<td class=\"n\">0.300</td>"), "{section}");
    }

    #[test]
    fn nothing_is_said_where_nobody_learns() {
        assert_eq!(section(&[]), "");
    }
}
