//! `report.html`: a run as one page that needs nothing else, neither a network nor other files.
//!
//! The head, the tables and the text are HTML made here; `data` embeds what the drawings need as compact JSON, and
//! `script/` draws it on canvases. Numbers come from [`super::figures`], so that page and terminal agree.

mod cost;
mod data;
mod faults;
pub mod html;
mod lessons;
mod service;
mod shares;
mod steals;

use std::io::{self, Write};

use analysis::Verdict;
use outputs::table::Table;
use outputs::{Allocation, RunResult};

use crate::decisions::{decisions_lines, decisions_table};
use crate::figures::{
    away, away_is_stolen, cause_meaning, comparison_values, counted_line, delay_line, ideal_line, jobs_line,
    key_figures, moved, relation_sign, starvation_line, verdict_line, verdict_words, without_home_line,
};
use crate::orders::orders_lines;
use crate::quantity::{self, counted, grouped, number, percent};
use html::{entry, escape, unparted};

/// Of all pages.
pub const STYLE: &str = include_str!("page.css");
/// What is under the pointer, and drawings as files; for pages with drawings.
pub const POINTING: [&str; 2] = [include_str!("script/tip.js"), include_str!("script/save.js")];
/// What pages with schedules draw by, behind [`POINTING`].
pub const DRAWING: [&str; 3] =
    [include_str!("script/pen.js"), include_str!("script/run.js"), include_str!("script/chart.js")];
const SCRIPT: &str = include_str!("script/page.js");
/// Sites shown with drawings of their own; a page with more cannot be read. The busiest are kept.
const SITES_DRAWN: usize = 24;
/// Sites up to which the matrix of migrations is a table.
const MATRIX_SITES: usize = 40;
/// Rows of the table of sites; all are in `metrics.json`.
const SITES_LISTED: usize = 160;
/// Rows shown in place of the matrix.
const FLOWS_SHOWN: usize = 60;

/// Writes the page.
///
/// # Errors
/// If `file` cannot be written.
pub fn write(file: &mut dyn Write, result: &RunResult, allocation: &Allocation) -> io::Result<()> {
    let title = escape(&result.about.experiment);
    writeln!(
        file,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} - Stealgrid</title>\n<style>\n{STYLE}</style>\n</head>\n<body data-moved=\"{}\">\n<main>",
        moved(result)
    )?;
    write_head(file, result, allocation)?;
    cost::write(file, result)?;
    write_figures(file, result)?;
    write_drawings(file, result)?;
    service::write(file, result)?;
    write_delay(file, result)?;
    faults::write(file, result)?;
    write_decisions(file, result)?;
    lessons::write(file, result)?;
    steals::write(file, result)?;
    write_migrations(file, result)?;
    write_sites(file, result)?;
    write_theory(file, result)?;
    if let Some(table) = &result.about.calibration {
        calibration(file, table)?;
    }
    write_log(file, result)?;
    write_making(file, result)?;
    write!(file, "</main>\n<script type=\"application/json\" id=\"run\">")?;
    data::write(file, result, allocation, SITES_DRAWN)?;
    writeln!(
        file,
        "</script>\n<script>\n{}</script>\n</body>\n</html>",
        POINTING.concat() + &DRAWING.concat() + SCRIPT
    )
}

fn write_head(file: &mut dyn Write, result: &RunResult, allocation: &Allocation) -> io::Result<()> {
    let about = &result.about;
    let grid = &result.outcome.grid;
    let class = verdict_class(result);
    writeln!(file, "<header>\n<p class=\"product\">Stealgrid {}</p>", env!("CARGO_PKG_VERSION"))?;
    writeln!(file, "<h1>{}</h1>", escape(&about.experiment))?;
    writeln!(
        file,
        "<p class=\"about\"><b>{}</b> on {} with {}; {}; {}, clock {}, seed {}</p>",
        escape(&about.strategy.to_string()),
        counted(grid.machines().count(), "site"),
        counted(grid.processors(), "processor"),
        escape(&about.network),
        escape(&about.driver),
        escape(&about.clock),
        about.seed
    )?;
    writeln!(file, "<p class=\"about\">{}: {}</p>", escape(&about.workload), escape(&jobs_line(result)))?;
    // What would make the rest worthless stands first; else theory comes after what happened.
    if class == "bad" || !result.is_complete() {
        writeln!(file, "<p class=\"verdict {class}\">{}</p>", escape(&verdict_line(result)))?;
    }
    if let Some((first, orders)) = orders_lines(result).split_first() {
        writeln!(file, "<div class=\"warning\"><b>{}</b><ul>", escape(first))?;
        for order in orders {
            writeln!(file, "<li>{}</li>", escape(order))?;
        }
        writeln!(file, "</ul></div>")?;
    }
    for warning in &about.warnings {
        writeln!(file, "<p class=\"warning\">{}</p>", escape(warning))?;
    }
    if allocation.overcommitted() > 0 {
        writeln!(
            file,
            "<p class=\"warning\">{} jobs started at a site with too few free processors: the run is wrong. They have no \
             bar below.</p>",
            grouped(allocation.overcommitted() as u64)
        )?;
    }
    writeln!(file, "</header>")
}

/// The class of the verdict in the style sheet.
fn verdict_class(result: &RunResult) -> &'static str {
    match verdict_line(result).split([' ', ':']).next() {
        Some("HOLDS") => "good",
        Some("VIOLATED" | "OUTSIDE" | "NOT") => "bad",
        _ => "open",
    }
}

fn write_figures(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    writeln!(file, "<section class=\"cards\" aria-label=\"Key figures\">")?;
    let mut figures = key_figures(result);
    // What users feel comes first here.
    let of_users = |name: &str| ["wait", "bounded", "turnaround"].iter().any(|first| name.starts_with(first));
    figures.sort_by_key(|figure| !of_users(figure.name));
    for figure in figures {
        let (main, detail) = match figure.measured.split_once(" (") {
            Some((main, detail)) => (main, detail.trim_end_matches(')')),
            None => (figure.measured.as_str(), ""),
        };
        write!(
            file,
            "<div class=\"card\"><span class=\"name\">{}</span><span class=\"value\">{}</span>",
            escape(figure.name),
            escape(main)
        )?;
        if !detail.is_empty() {
            write!(file, "<span class=\"detail\">{}</span>", escape(detail))?;
        }
        if let (Some(ideal), Some(change)) = (figure.ideal, figure.change) {
            let ideal = ideal.split(" (").next().unwrap_or_default();
            let change = if change == "-" { String::new() } else { format!(" ({})", escape(&change)) };
            write!(
                file,
                "<span class=\"detail\">zero latency: {}</span>",
                unparted(&(escape(ideal) + &change))
            )?;
        }
        writeln!(file, "</div>")?;
    }
    writeln!(file, "</section>\n<p class=\"note\">{}", escape(&counted_line(result)))?;
    if result.ideal.is_some() {
        writeln!(file, " Zero latency: the same jobs under the same strategy where messages take no time.")?;
    }
    writeln!(file, "</p>")
}

/// Configured delays beside what the network adds to them.
fn calibration(file: &mut dyn Write, table: &Table) -> io::Result<()> {
    writeln!(
        file,
        "<section>\n<h2>Links before the run</h2>\n<details>\n<summary>{} links. Effective delay = configured + \
         half of the median round trip × K</summary>",
        table.cells().1.len()
    )?;
    table_html(file, "Links before the run", table)?;
    writeln!(file, "</details>\n</section>")
}

/// A table of text, as HTML.
fn table_html(file: &mut dyn Write, label: &str, table: &Table) -> io::Result<()> {
    writeln!(file, "<div class=\"scroll\"><table aria-label=\"{label}\">")?;
    let (header, rows) = table.cells();
    for (row, tag) in std::iter::once((header, "th")).chain(rows.iter().map(|row| (row.as_slice(), "td"))) {
        write!(file, "<tr>")?;
        for (column, cell) in row.iter().enumerate() {
            let class = if column == 0 { "" } else { " class=\"n\"" };
            write!(file, "<{tag}{class}>{}</{tag}>", escape(cell))?;
        }
        writeln!(file, "</tr>")?;
    }
    writeln!(file, "</table></div>")
}

fn write_theory(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    writeln!(
        file,
        "<section>\n<h2>Measured and proved</h2>\n<p class=\"verdict {}\">{}</p>\n<div class=\"scroll\"><table class=\"text\" aria-label=\"Measured and proved\">\n<tr><th>Relation</th>\
         <th class=\"n\">Measured</th><th></th><th class=\"n\">Proved</th><th>Verdict</th><th>Formula and source</th></tr>",
        verdict_class(result),
        escape(&verdict_line(result))
    )?;
    for comparison in &result.theory {
        let (measured, limit) = comparison_values(comparison);
        let class = match &comparison.verdict {
            Verdict::Holds => "good",
            Verdict::Violated => "bad",
            Verdict::Within(_) | Verdict::Outside(_) | Verdict::NoCeiling(_) => "open",
        };
        let sign = match relation_sign(comparison) {
            "<=" => "\u{2264}",
            ">=" => "\u{2265}",
            other => other,
        };
        let assumption = match comparison.assumption.as_str() {
            "" => String::new(),
            text => format!("<br><small>assumes {}</small>", escape(text)),
        };
        let source = match comparison.source.as_str() {
            "" => String::new(),
            text => format!("<br><small>{}</small>", escape(text)),
        };
        writeln!(
            file,
            "<tr><td>{}{assumption}</td><td class=\"n\">{}</td><td>{sign}</td><td class=\"n\">{}</td>\
             <td class=\"{class}\">{}</td><td><code>{}</code>{source}</td></tr>",
            escape(&comparison.name),
            escape(&measured),
            escape(&limit),
            escape(&verdict_words(comparison)),
            escape(&comparison.formula),
        )?;
    }
    writeln!(file, "</table></div>")?;
    let bounds = &result.bounds;
    writeln!(
        file,
        "<p class=\"note\">Lower bounds on the makespan, counted from the first submission as it is: time {} s, area {} s (from the start: {} s; of the thesis: \
         {} s), count {} s. Verdicts use the bound that the proofs use, the greater of time and area from the start.\
         </p>\n</section>",
        number(bounds.time.as_secs_f64()),
        number(bounds.area.as_secs_f64()),
        number(bounds.area_start.as_secs_f64()),
        number(bounds.area_thesis.as_secs_f64()),
        number(bounds.count.as_secs_f64())
    )
}

/// Why processors that the certificate counts on were idle: a bar and a table.
fn write_delay(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let (Some(attribution), Some(line)) = (&result.attribution, delay_line(result)) else { return Ok(()) };
    writeln!(
        file,
        "<section>\n<h2>Why processors were idle while the last job waited</h2>\n<p class=\"note\">{}. The bound counts on {} % of the sites from {} \
         up.</p>",
        escape(&line),
        attribution.beta_percent,
        escape(&result.outcome.grid.site(attribution.k).name)
    )?;
    if attribution.total <= 0.0 {
        return writeln!(file, "</section>");
    }
    let causes = attribution.causes();
    write!(file, "<div class=\"stack\" role=\"img\" aria-label=\"{}\">", escape(&line))?;
    for (place, (name, value)) in causes.into_iter().enumerate() {
        let share = value / attribution.total;
        if share > 0.0 {
            let title = format!("{name} {}", percent(share));
            write!(
                file,
                "<span class=\"cause{place}\" style=\"width:{:.4}%\" title=\"{title}\"></span>",
                100.0 * share
            )?;
        }
    }
    writeln!(
        file,
        "</div>\n<div class=\"scroll\"><table class=\"explained\" aria-label=\"Why processors were idle\">\n<tr><th>idle because</th><th class=\"n\">processor-seconds</th>\
         <th class=\"n\">share</th><th>meaning</th></tr>"
    )?;
    for (place, (name, value)) in causes.into_iter().enumerate() {
        writeln!(
            file,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            entry(&format!("cause{place}"), name),
            number(value),
            percent(value / attribution.total),
            cause_meaning(name)
        )?;
    }
    writeln!(
        file,
        "<tr><td>all</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{} of the work that counts</td></tr>\n\
         </table></div>\n</section>",
        number(attribution.total),
        percent(1.0),
        percent(attribution.total / attribution.work.max(f64::MIN_POSITIVE))
    )
}

fn write_drawings(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let sites = result.outcome.grid.machines().count();
    let note = if sites > SITES_DRAWN {
        format!(" The {SITES_DRAWN} busiest of {} sites are shown.", grouped(sites as u64))
    } else {
        String::new()
    };
    let by_user = match result.outcome.jobs.iter().any(|job| job.labels.user >= 0) {
        true => "<option value=\"user\">user</option>",
        false => "",
    };
    writeln!(
        file,
        "<section>\n<h2>Schedule</h2>\n<p class=\"note\">Wheel or +/- to zoom, drag to move, double click for the whole \
         run; the drawings below follow.{note} <span id=\"thinned\"></span></p>\n\
         <div class=\"tools\" id=\"gantt-tools\"><label>colour by <select id=\"by\"><option value=\"class\">class</option>\
         {by_user}<option value=\"site\">site of the user</option></select></label>\
         <label>job <input id=\"search\" type=\"search\" inputmode=\"numeric\" placeholder=\"number\"></label>\
         <span class=\"legend\" id=\"colors\"></span>\
         <span class=\"buttons\"><button id=\"in\" title=\"zoom in\">+</button>\
         <button id=\"out\" title=\"zoom out\">\u{2212}</button><button id=\"all\">whole run</button></span></div>\n\
         <div id=\"found\" role=\"status\"></div>\n\
         {}<canvas id=\"gantt\" role=\"img\" aria-label=\"Gantt chart, one band per site\"></canvas>\n</section>\n\
         <section>\n<h2>Utilization over time</h2>\n<div class=\"tools\" id=\"busy-tools\">Processors that execute jobs.</div>\n\
         <canvas id=\"busy\" role=\"img\" aria-label=\"Busy processors of the whole grid and of each site\"></canvas>\n\
         </section>\n<section>\n<h2>Waiting jobs over time</h2>\n\
         <div class=\"tools\" id=\"queue-tools\"><span class=\"legend\">{}{}</span> by home site, stacked, each band from 0 to the most that \
         waited there at once; means over what a pixel covers</div>\n<canvas id=\"queue\" role=\"img\" \
         aria-label=\"Waiting jobs of the whole grid and of each home site\"></canvas>\n</section>\n\
         <div id=\"tip\" hidden></div>\n<noscript><p class=\"warning\">The drawings need JavaScript; all tables do \
         without.</p></noscript>",
        faults::legend(result),
        entry("own-a", "big at home (A)"),
        entry("own-b", "small at home (B)"),
    )
}

/// What old views did to brokers; nothing without any.
fn write_decisions(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let Some(table) = decisions_table(result) else { return Ok(()) };
    writeln!(file, "<section>\n<h2>What brokers knew</h2>")?;
    for line in decisions_lines(result) {
        writeln!(file, "<p class=\"note\">{}.</p>", escape(&line))?;
    }
    table_html(file, "Decisions of brokers", &table)?;
    writeln!(file, "</section>")
}

fn write_migrations(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let grid = &result.outcome.grid;
    writeln!(file, "<section>\n<h2>Who ran whose jobs</h2>")?;
    if grid.len() > MATRIX_SITES {
        return write_flows(file, result);
    }
    writeln!(
        file,
        "<p class=\"note\">Rows are home sites, columns executing sites, both by size. Above: jobs; below: share of the \
         work of the home site. Colour: share of the jobs of the home site.</p>\n\
         <div class=\"scroll\"><table class=\"matrix\" aria-label=\"Who ran whose jobs\">\n<tr><th>home</th>"
    )?;
    let by_rank = || (grid.brokers()..grid.len()).map(|rank| grid.site(grid.at_rank(rank)));
    for site in by_rank() {
        write!(file, "<th class=\"n\">{}<br><small>{}</small></th>", escape(&site.name), site.processors)?;
    }
    writeln!(file, "<th class=\"n\">jobs</th><th class=\"n\">{}</th></tr>", away(result))?;
    for home in by_rank() {
        let all = result.migrations.home(home.id);
        write!(file, "<tr><th>{}</th>", escape(&home.name))?;
        for site in by_rank() {
            let cell = result.migrations.cell(home.id, site.id);
            if cell.jobs == 0 {
                write!(file, "<td class=\"n none\">\u{b7}</td>")?;
                continue;
            }
            let share = cell.jobs as f64 / all.jobs as f64;
            let work = if all.work > 0 { cell.work as f64 / all.work as f64 } else { 0.0 };
            let kind = if home.id == site.id { "own" } else { "stolen" };
            write!(
                file,
                "<td class=\"n heat {kind}\" style=\"--share:{share:.3}\">{}<br><small>{}</small></td>",
                grouped(cell.jobs),
                percent(work)
            )?;
        }
        let own = result.migrations.cell(home.id, home.id).jobs;
        let stolen = if all.jobs == 0 { "-".into() } else { percent(1.0 - own as f64 / all.jobs as f64) };
        writeln!(file, "<td class=\"n\">{}</td><td class=\"n\">{stolen}</td></tr>", grouped(all.jobs))?;
    }
    writeln!(file, "</table></div>")?;
    write_left_out(file, result)?;
    writeln!(file, "</section>")
}

/// Jobs that tables by home have not.
fn write_left_out(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    match without_home_line(result) {
        Some(line) => writeln!(file, "<p class=\"note\">{}</p>", escape(&line)),
        None => Ok(()),
    }
}

fn write_flows(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let grid = &result.outcome.grid;
    let mut pairs: Vec<_> = result.migrations.stolen().collect();
    pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.jobs), pair.home, pair.site));
    writeln!(
        file,
        "<p class=\"note\">The {} greatest of {} flows between {} sites.</p>\n<div class=\"scroll\"><table aria-label=\"Who ran whose jobs\">\n<tr><th>home</th>\
         <th>ran at</th><th class=\"n\">jobs</th><th class=\"n\">share</th><th class=\"n\">share of work</th></tr>",
        pairs.len().min(FLOWS_SHOWN),
        grouped(pairs.len() as u64),
        grouped(grid.machines().count() as u64)
    )?;
    for pair in pairs.into_iter().take(FLOWS_SHOWN) {
        writeln!(
            file,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escape(&grid.site(pair.home).name),
            escape(&grid.site(pair.site).name),
            grouped(pair.jobs),
            percent(pair.jobs_share),
            percent(pair.work_share)
        )?;
    }
    writeln!(file, "</table></div>")?;
    write_left_out(file, result)?;
    writeln!(file, "</section>")
}

fn write_sites(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let (from, gone) =
        if away_is_stolen(result) { ("stolen", "given away") } else { ("others'", "own elsewhere") };
    writeln!(
        file,
        "<section>\n<h2>Sites</h2>\n<div class=\"scroll\"><table aria-label=\"Sites\">\n<tr><th>site</th><th class=\"n\">processors</th>\
         <th class=\"n\">utilization</th><th class=\"n\">own A</th><th class=\"n\">own B</th><th class=\"n\">{from} A</th>\
         <th class=\"n\">{from} B</th><th class=\"n\">{gone}</th><th class=\"n\">{from} share of its work</th>\
         <th class=\"n\">mean wait of home jobs</th></tr>"
    )?;
    for site in result.metrics.sites.iter().take(SITES_LISTED) {
        let stolen = site.stolen_a.work + site.stolen_b.work;
        let executed = stolen + site.own_a.work + site.own_b.work;
        let share = if executed > 0.0 { percent(stolen / executed) } else { "-".into() };
        write!(
            file,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
            escape(&site.name),
            grouped(u64::from(site.processors)),
            percent(site.utilization)
        )?;
        for part in [site.own_a, site.own_b, site.stolen_a, site.stolen_b, site.given] {
            write!(file, "<td class=\"n\">{}</td>", grouped(part.jobs))?;
        }
        // Of no job of its own it is no wait of zero.
        let at_home = site.own_a.jobs + site.own_b.jobs + site.given.jobs;
        let wait = if at_home > 0 { format!("{} s", number(site.wait_mean_s)) } else { "-".into() };
        writeln!(file, "<td class=\"n\">{share}</td><td class=\"n\">{wait}</td></tr>")?;
    }
    writeln!(file, "</table></div>")?;
    let left = result.metrics.sites.len().saturating_sub(SITES_LISTED);
    if left > 0 {
        writeln!(file, "<p class=\"note\">{} more sites are in metrics.json.</p>", grouped(left as u64))?;
    }
    writeln!(file, "</section>")
}

/// What the driver says of the run, folded: for who asks how it was made.
fn write_log(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(ideal_line(result).map(|line| format!("against zero latency: {line}")));
    lines.extend(starvation_line(result).map(|line| format!("pool: {line}")));
    lines.extend(result.about.lines.iter().cloned());
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(
        file,
        "<section>\n<h2>Notes on this run</h2>\n<details>\n<summary>{}</summary>\n<pre>{}</pre>\n</details>\n</section>",
        counted(lines.len(), "line"),
        escape(&lines.join("\n"))
    )
}

fn write_making(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let about = &result.about;
    writeln!(
        file,
        "<section>\n<h2>How this was made</h2>\n<pre>{}</pre>\n<p class=\"note\">Stealgrid {}, seed {}. {} \
         Every number is in <code>metrics.json</code>, every job in <code>jobs.csv</code> beside this page, and every \
         event in <code>events.jsonl.zst</code> if it was written. <code>experiment.toml</code> has the experiment with all \
         that was typed; <code>stealgrid rerun</code> runs it again and compares.</p>",
        escape(&about.command),
        escape(&outputs::version()),
        about.seed,
        if about.driver == "simulate" {
            "The same seed, experiment and version give the same numbers."
        } else {
            "Processes and the wall clock give other numbers each time."
        }
    )?;
    write_provenance(file, result)?;
    writeln!(file, "</section>")
}

/// The switches that decide what the numbers are of, the logs, and what was done to them.
fn write_provenance(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    let provenance = &result.about.provenance;
    if !provenance.switches.is_empty() {
        let mut table = Table::new(["switch", "value"]).with_left(1);
        provenance.switches.iter().for_each(|(key, value)| table.push([key.clone(), value.clone()]));
        writeln!(file, "<details open>\n<summary>Switches that decide what the numbers are of</summary>")?;
        table_html(file, "Switches", &table)?;
        writeln!(file, "</details>")?;
    }
    if !provenance.logs.is_empty() {
        let mut table = Table::new(["log", "jobs run", "SHA-256"]).with_left(2);
        for log in &provenance.logs {
            table.push([log.file.clone(), grouped(log.jobs), log.sha256.clone()]);
        }
        writeln!(file, "<details>\n<summary>Logs</summary>")?;
        table_html(file, "Logs", &table)?;
        writeln!(file, "</details>")?;
    }
    let preparation = &provenance.preparation;
    if !preparation.rules.is_empty() {
        let mut table = Table::new(["what preparation did to the part that was run", "jobs"]);
        preparation.rules.iter().for_each(|(rule, &count)| table.push([rule.clone(), grouped(count)]));
        for (what, share) in [
            ("share of all work that was left out, as far as it is known", preparation.work_dropped_share),
            ("share of all work that was cut off", preparation.work_cut_share),
        ] {
            if share > 0.0 {
                table.push([what.to_string(), percent(share)]);
            }
        }
        writeln!(file, "<details open>\n<summary>Jobs that were left out or changed</summary>")?;
        table_html(file, "Preparation", &table)?;
        writeln!(file, "</details>")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outputs::fixtures::{about, outcome};

    fn page(result: &RunResult) -> String {
        let mut file = Vec::new();
        write(&mut file, result, &Allocation::of(&result.outcome)).unwrap();
        String::from_utf8(file).unwrap()
    }

    fn data_of(page: &str) -> serde_json::Value {
        let from = page.find("id=\"run\">").unwrap() + "id=\"run\">".len();
        let to = from + page[from..].find("</script>").unwrap();
        serde_json::from_str(&page[from..to]).unwrap()
    }

    /// The second site submits none; in the other run nobody does.
    #[test]
    fn a_mean_over_no_job_is_no_zero() {
        let wait = |page: &str, site: &str| {
            let row = page.lines().find(|line| line.starts_with(&format!("<tr><td>{site}</td>"))).unwrap();
            let (_, last) = row.rsplit_once("<td class=\"n\">").unwrap();
            last.trim_end_matches("</td></tr>").to_string()
        };
        let some =
            page(&RunResult::new(about(), outcome(&[2, 4], &[(0, 2, 10, 1, 0), (0, 1, 6, 1, 0)]), None));
        assert_eq!([wait(&some, "site1"), wait(&some, "site2")], ["0 s", "-"]);
        let none = RunResult::new(about(), outcome(&[2, 4], &[]), None);
        let figures = crate::figures::key_figures(&none);
        let of_jobs = ["bounded slowdown, mean", "wait, mean", "wait, longest", "turnaround, mean"];
        for name in of_jobs {
            let figure = figures.iter().find(|figure| figure.name == name).unwrap();
            assert_eq!(figure.measured, "-", "{name}");
        }
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let result = RunResult::new(about(), outcome(&[2, 4], &[(0, 2, 10, 1, 0), (0, 1, 6, 2, 0)]), None);
        let page = page(&result);
        // The name of a format and a place in the same file are nowhere else.
        let page_without = page.replace("http://www.w3.org/2000/svg", "").replace("url(#", "");
        for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
            assert!(!page_without.contains(outside), "{outside}");
        }
        assert!(page.contains("HOLDS: competitive ratio 1.0000"));
    }

    #[test]
    fn who_ran_whose_jobs_says_how_many_have_no_home() {
        let line = "<p class=\"note\">left out: 1 job that is wider than every site and has no home";
        assert!(page(&RunResult::new(about(), outputs::fixtures::spread(), None)).contains(line));
        assert!(
            !page(&RunResult::new(about(), outcome(&[2], &[(0, 2, 10, 1, 0)]), None)).contains("left out:")
        );
    }

    #[test]
    fn colours_by_user_are_offered_where_users_are_known() {
        let mut run = outcome(&[2, 4], &[(0, 2, 10, 1, 0), (0, 1, 6, 2, 0)]);
        run.jobs.iter_mut().for_each(|job| job.labels = scheduler::Labels::UNKNOWN);
        let offered = "<option value=\"user\">";
        assert!(!page(&RunResult::new(about(), run.clone(), None)).contains(offered));
        run.jobs[1].labels.user = 7;
        assert!(page(&RunResult::new(about(), run, None)).contains(offered));
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let mut about = about();
        about.experiment = "<b>&\"</script><script>alert(1)</script>".into();
        let mut run = outcome(&[2], &[(0, 2, 10, 1, 0)]);
        run.grid = scheduler::Grid::new([("</script><i>".to_string(), 2)]).unwrap();
        let page = page(&RunResult::new(about, run, None));
        assert!(!page.contains("<b>&"), "escaped");
        assert!(!page.contains("<script>alert"), "escaped");
        assert!(!page.contains("</script><i>"), "escaped in the data");
        assert_eq!(data_of(&page)["sites"][0]["name"], "</script><i>");
    }

    #[test]
    fn drawings_get_every_job_of_a_small_run() {
        let jobs = [(0, 2, 10, 1, 0), (0, 1, 6, 2, 0), (3, 3, 5, 2, 3)];
        let result = RunResult::new(about(), outcome(&[2, 4], &jobs), None);
        let data = data_of(&page(&result));
        assert_eq!(data["shown"], 3);
        assert_eq!(data["jobs"], 3);
        let first = &data["sites"][0]["bars"];
        // Start and length in milliseconds, lowest processor, processors, row: differences to the bar before.
        assert_eq!(*first, serde_json::json!([0, 10000, 0, 2, 0]));
        assert_eq!(data["exact"], true);
        assert_eq!(data["table"]["id"], serde_json::json!([1, 1, 1]));
        assert_eq!(data["table"]["kind"], serde_json::json!([0, 3, 0]));
    }

    #[test]
    fn a_site_that_ran_more_than_it_can_hold_is_reported() {
        let impossible = outcome(&[2], &[(0, 2, 10, 1, 0), (0, 2, 10, 1, 5)]);
        let page = page(&RunResult::new(about(), impossible, None));
        assert!(page.contains("1 jobs started at a site with too few free processors"));
        assert!(page.contains("VIOLATED: lower bound 15.00 s is below the proved 20.00 s"));
    }

    #[test]
    fn a_run_with_too_many_jobs_shows_those_with_most_work() {
        let jobs: Vec<_> = (0..300_000).map(|n| (n, 1, 1 + (n % 2), 1, n * 2)).collect();
        let result = RunResult::new(about(), outcome(&[1], &jobs), None);
        let data = data_of(&page(&result));
        assert_eq!(data["jobs"], 300_000);
        assert!(data["shown"].as_u64().unwrap() <= 200_000);
        assert!(data["shown"].as_u64().unwrap() >= 150_000);
        // The curve has those that are left out.
        assert_eq!(data["exact"], false);
        assert!(data["busy"]["t"].as_array().unwrap().len() > 100);
    }
}
