//! The page of a sweep: plots, tables and how to make it again, in one file that needs nothing else.

use std::fmt::Write as _;

use outputs::sweep::Rows;

use super::chart;
use super::figures::Figure;
use super::ranking;
use super::study::{Study, missing_note};
use super::tables::{self, Table};
use crate::page::html::escape;
use crate::page::{POINTING, STYLE};
use crate::quantity::{clock, grouped};

const SWEEP_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// By what a page of ours is known.
pub const PRODUCT: &str = "<header>\n<p class=\"product\">Stealgrid ";

/// The beginning of a page of this name, up to its head.
pub(super) fn begin(name: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - Stealgrid</title>\n<style>\n{STYLE}{SWEEP_STYLE}{}</style>\n</head>\n<body>\n<main>\n",
        escape(name),
        chart::STYLE
    )
}

/// What makes its drawings move, and the end of a page.
pub(super) fn end(page: &mut String) {
    let pointing = POINTING.concat();
    let style = serde_json::to_string(&chart::light_style()).expect("a text").replace("</", "<\\/");
    let _ = write!(
        page,
        "</main>\n<div id=\"tip\" hidden></div>\n<script>\nconst plotStyle = {style};\n{pointing}{SCRIPT}</script>\n</body>\n</html>\n"
    );
}

/// Tables, and plots, of the first panel that are seen before a fold is opened: with the contents less than seven screens.
const SHOWN_AT_ONCE: usize = 2;
/// Strategies above which it is one of each, as a table has a row and a plot a name for each.
const MANY_SERIES: usize = 24;

/// A whole file; `command` is what makes it again, and `told` is called when a part is done.
pub fn html(study: &Study, figures: &[Figure], command: &str, told: &mut dyn FnMut()) -> String {
    let mut page = begin(&study.rows.name);
    head(&mut page, study);
    let mut body = Body::default();
    body.draw(figures.iter().filter(|figure| figure.panel.is_none()));
    for (index, panel) in study.panels.iter().enumerate() {
        let title = escape(&panel.title);
        let id = format!("panel-{}", index + 1);
        // Of several panels the first is open: what is to be seen is the same in each.
        let is_folded = index > 0;
        if is_folded {
            let _ = writeln!(body.html, "<details class=\"panel\" id=\"{id}\">\n<summary>{title}</summary>");
        } else if !title.is_empty() {
            let _ = writeln!(body.html, "<h2 class=\"panel\" id=\"{id}\">{title}</h2>");
        }
        if !title.is_empty() {
            body.contents.push(Entry { id, title, is_panel: true, is_detail: false });
        }
        body.is_folded = is_folded;
        let here = |figure: &&Figure| figure.panel == Some(index);
        let tables = tables::all(study, index);
        told();
        let ranking = ranking::tables(study, index);
        told();
        let at_once = if study.series.len() > MANY_SERIES { 1 } else { SHOWN_AT_ONCE };
        let is_main = |figure: &&Figure| !figure.is_detail && !figure.is_ranking();
        let main: Vec<&Figure> = figures.iter().filter(here).filter(is_main).collect();
        let (shown, rest) = main.split_at(main.len().min(at_once));
        body.draw(shown.iter().copied());
        body.tables(tables.iter().filter(|table| !table.is_detail).take(at_once));
        body.html += "<details>\n<summary>More plots and tables</summary>\n";
        body.is_folded = true;
        body.draw(rest.iter().copied());
        body.tables(ranking.iter().filter(|table| !table.is_detail));
        let is_ranking = |figure: &&Figure| figure.is_ranking();
        body.draw(figures.iter().filter(here).filter(is_ranking));
        body.tables(ranking.iter().filter(|table| table.is_detail));
        body.tables(tables.iter().filter(|table| !table.is_detail).skip(at_once));
        body.tables(tables.iter().filter(|table| table.is_detail));
        let details: Vec<&Figure> = figures.iter().filter(here).filter(|figure| figure.is_detail).collect();
        if !details.is_empty() {
            let _ = writeln!(body.html, "<details>\n<summary>{} more metrics</summary>", details.len());
            body.draw(details.into_iter());
            body.html += "</details>\n";
        }
        body.html += if is_folded { "</details>\n</details>\n" } else { "</details>\n" };
    }
    contents(&mut page, &body.contents);
    page += &body.html;
    making(&mut page, study, command);
    end(&mut page);
    page
}

fn head(page: &mut String, study: &Study) {
    let rows = &study.rows;
    let done = rows.rows.iter().filter(|row| row.done).count();
    let (failed, reason) = study.failed();
    let _ = writeln!(page, "{PRODUCT}{}</p>\n<h1>{}</h1>", env!("CARGO_PKG_VERSION"), escape(&rows.name));
    let repeated = if study.replicates.is_empty() {
        "no repetitions".to_string()
    } else {
        let most = (0..study.panels.len()).map(|panel| study.repetitions(panel)).max().unwrap_or(0);
        format!("up to {most} repetitions over {}", study.replicates.join(", "))
    };
    let jobs = rows.metrics.iter().position(|name| name == "jobs");
    let total: f64 =
        jobs.map_or(0.0, |jobs| rows.rows.iter().filter_map(|row| row.metrics[jobs].number()).sum());
    let wall: f64 = rows.rows.iter().map(|row| row.wall_s).sum();
    let _ = writeln!(
        page,
        "<p class=\"about\"><b>{}</b> runs of {} jobs in all: {} strategies by {} values of {}, {}; compared with <b>{}</b></p>\
         \n<p class=\"about\">{} of processor time to simulate and measure</p>",
        grouped(done as u64),
        grouped(total as u64),
        study.series.len(),
        study.points.len(),
        escape(&study.x),
        escape(&repeated),
        escape(&study.series[study.baseline]),
        clock(wall)
    );
    for said in repetitions_said(study) {
        let _ = writeln!(page, "<p class=\"warning\">{}</p>", escape(&said));
    }
    let _ = writeln!(page, "<p class=\"about\">{}</p>", escape(&prepared(rows)));
    if failed > 0 {
        let _ = writeln!(
            page,
            "<p class=\"warning\">{failed} of the runs failed and are missing below, the first because: {}</p>",
            escape(reason.unwrap_or("unknown"))
        );
    }
    if let Some(note) = missing_note(rows) {
        let _ = writeln!(
            page,
            "<p class=\"warning\">{note}. Points are means over the repetitions that are, which may be others for \
             another strategy or delay.</p>"
        );
    }
    if let Some(said) = overloaded_said(rows) {
        let _ = writeln!(page, "<p class=\"warning\">{said}</p>");
    }
    for column in ["violated", "certificate_holds"] {
        let bad = if column == "violated" { 1.0 } else { 0.0 };
        let Some(index) = rows.metrics.iter().position(|name| name == column) else { continue };
        let count = rows.rows.iter().filter(|row| row.metrics[index].number() == Some(bad)).count();
        if count > 0 {
            let _ = writeln!(
                page,
                "<p class=\"warning\">{count} runs contradict what is proved: see column {column} of the export.</p>"
            );
        }
    }
    if study.is_time && rows.metrics.iter().any(|name| name == "run_time_by_size_s") {
        page.push_str(
            "<p class=\"note\">The axis on top of a plot, delay / p_w, is the delay over p_w, the mean run time of the jobs weighted \
             by their processors: at 0.01 a message takes a hundredth of a job.</p>\n",
        );
    }
    page.push_str("</header>\n");
}

/// Parameters whose values make other loads of the same jobs.
const LOADS: [&str; 2] = ["workload.load_factor", "workload.load"];

/// What repetitions cannot say.
fn repetitions_said(study: &Study) -> Vec<String> {
    let most = (0..study.panels.len()).map(|panel| study.repetitions(panel)).max().unwrap_or(0);
    if most < 2 {
        return Vec::new();
    }
    let over = study.replicates.join(", ");
    let mut said = Vec::new();
    if study.are_copies() {
        said.push(format!(
            "The {most} repetitions over {over} are one run {most} times: nothing here is random. They are no repetitions, and \
             intervals without a width say nothing. Repeat over weeks or logs."
        ));
    } else if study.replicates.iter().all(|name| LOADS.contains(&name.as_str())) {
        said.push(format!(
            "Repetitions over {over} are the same jobs, closer together or further apart: intervals and stars say nothing of other \
             jobs. Of a log with months, take weeks."
        ));
    }
    let least = 2.0_f64.powi(1 - i32::try_from(most).unwrap_or(i32::MAX));
    if least > 0.05 {
        said.push(format!(
            "With {most} repetitions no difference can be statistically significant at 5 %, however large: flips of signs give at least \
             {least}. No star says nothing."
        ));
    }
    said
}

/// All numbers of a metric; none if no run has one.
fn numbers(rows: &Rows, name: &str) -> Option<Vec<f64>> {
    let column = rows.metrics.iter().position(|other| other == name)?;
    let values: Vec<f64> = rows.rows.iter().filter_map(|row| row.metrics[column].number()).collect();
    (!values.is_empty()).then_some(values)
}

/// That runs with exchange look better than they are beside these without.
fn overloaded_said(rows: &Rows) -> Option<String> {
    let without = numbers(rows, "overloaded")?;
    let count = without.iter().filter(|&&overloaded| overloaded == 1.0).count();
    (count > 0).then(|| {
        format!(
            "In {count} of {} runs without exchange over half of the jobs or of the work arrive at one site, far more than its share of \
             the processors, and the others are idle: no gain over these runs is one of exchange (strategy.submit, workload.deal)",
            without.len()
        )
    })
}

/// What became of jobs before they ran, over all runs.
fn prepared(rows: &Rows) -> String {
    let of = |name: &str| numbers(rows, name);
    let share = |name: &str| {
        let (of_jobs, jobs) = (of(name)?.iter().sum::<f64>(), of("jobs")?.iter().sum::<f64>());
        let all = if name == "jobs_dropped" { jobs + of_jobs } else { jobs };
        Some(100.0 * of_jobs / all)
    };
    let percents = |name: &str| {
        share(name).map_or("an unknown share".to_string(), |share| match share {
            0.0 => "none".to_string(),
            share => format!("{share:.2} %"),
        })
    };
    let dropped = of("work_dropped_share").and_then(|values| analysis::statistics::mean(&values));
    let dropped = match dropped {
        Some(share) if share > 0.0 => {
            format!(", with {:.2} % of the work as far as it is known", 100.0 * share)
        }
        _ => String::new(),
    };
    let cut = of("work_cut_share").and_then(|values| analysis::statistics::mean(&values));
    let cut = cut.map_or(String::new(), |share| match share {
        0.0 => "; no work cut off at requested times".to_string(),
        share => format!("; {:.2} % of the work cut off at requested times", 100.0 * share),
    });
    format!(
        "Of all jobs, {} left out before they ran (too wide, or a value is missing){dropped}; {} changed (a requested time made up or \
         another one){cut}",
        percents("jobs_dropped"),
        percents("jobs_changed")
    )
}

/// What the contents lead to.
struct Entry {
    id: String,
    /// Safe for HTML.
    title: String,
    is_panel: bool,
    /// Stands behind a fold on the page, and so in the contents.
    is_detail: bool,
}

/// The part of the page below its head, and what is where.
#[derive(Default)]
pub(super) struct Body {
    pub(super) html: String,
    contents: Vec<Entry>,
    tables: usize,
    /// Whether what comes is behind a fold.
    is_folded: bool,
}

impl Body {
    pub(super) fn draw<'a>(&mut self, figures: impl Iterator<Item = &'a Figure>) {
        for figure in figures {
            let id = escape(&figure.id);
            let _ = writeln!(
                self.html,
                "<figure id=\"{id}\">\n<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n<figcaption><span>{}</span><span \
                 class=\"buttons\"><button data-save=\"svg\">SVG</button><button \
                 data-save=\"png\">PNG</button></span></figcaption>\n</figure>",
                figure.svg,
                figure.narrow,
                escape(&figure.note)
            );
            let (title, is_detail) = (figure.title().to_string(), figure.is_detail || self.is_folded);
            self.contents.push(Entry { id, title, is_panel: false, is_detail });
        }
    }

    pub(super) fn tables<'a>(&mut self, tables: impl Iterator<Item = &'a Table>) {
        for table in tables {
            self.tables += 1;
            let id = format!("table-{}", self.tables);
            write_table(&mut self.html, table, &id);
            let (title, is_detail) = (escape(&table.title), table.is_detail || self.is_folded);
            self.contents.push(Entry { id, title, is_panel: false, is_detail });
        }
    }
}

/// Links to all that is on the page, a group for each panel. What stands behind a fold there does so here, too, so that a
/// page with many metrics has contents that fit on a screen.
fn contents(page: &mut String, entries: &[Entry]) {
    let _ = writeln!(
        page,
        "<nav class=\"contents\" aria-label=\"Contents\">\n<details open>\n<summary>Contents: {} plots and tables</summary>",
        entries.iter().filter(|entry| !entry.is_panel).count()
    );
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let end = rest.iter().skip(1).position(|entry| entry.is_panel).map_or(rest.len(), |place| place + 1);
        let (group, others) = rest.split_at(end);
        if first.is_panel {
            let _ = writeln!(page, "<p class=\"panel\">{}</p>", link(first));
        }
        let main = group.iter().filter(|entry| !entry.is_panel && !entry.is_detail);
        list(page, main);
        let details: Vec<&Entry> = group.iter().filter(|entry| entry.is_detail).collect();
        if !details.is_empty() {
            let _ = writeln!(page, "<details>\n<summary>{} more</summary>", details.len());
            list(page, details.into_iter());
            page.push_str("</details>\n");
        }
        rest = others;
    }
    page.push_str("</details>\n</nav>\n");
}

fn link(Entry { id, title, .. }: &Entry) -> String {
    format!("<a href=\"#{id}\">{title}</a>")
}

fn list<'a>(page: &mut String, entries: impl Iterator<Item = &'a Entry>) {
    let items: Vec<String> = entries.map(|entry| format!("<li>{}</li>\n", link(entry))).collect();
    if !items.is_empty() {
        let _ = writeln!(page, "<ul>\n{}</ul>", items.concat());
    }
}

fn write_table(page: &mut String, table: &Table, id: &str) {
    let title = escape(&table.title);
    let _ = if table.is_detail {
        writeln!(page, "<details id=\"{id}\">\n<summary>{title}</summary>")
    } else {
        writeln!(page, "<section id=\"{id}\">\n<h2>{title}</h2>")
    };
    let note = escape(&table.note);
    let _ = write!(
        page,
        "<p class=\"note\">{note}</p>\n<div class=\"scroll\"><table aria-label=\"{title}\">\n<tr>"
    );
    for (column, name) in table.header.iter().enumerate() {
        let class = if column == 0 { "" } else { " class=\"n\"" };
        let _ = write!(page, "<th{class}>{}</th>", escape(name));
    }
    page.push_str("</tr>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let class = if column == 0 { "" } else { " class=\"n\"" };
            let _ = write!(page, "<td{class}>{}</td>", escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str(if table.is_detail {
        "</table></div>\n</details>\n"
    } else {
        "</table></div>\n</section>\n"
    });
}

fn making(page: &mut String, study: &Study, command: &str) {
    let rows = &study.rows;
    let _ = writeln!(
        page,
        "<section>\n<h2>How this was made</h2>\n<pre>{}\n{}</pre>\n<p class=\"note\">The results come from Stealgrid {}, this \
         page from {}. The same sweep file, logs and version give the same numbers, but for wall times. Intervals are \
         percentiles of 2,000 bootstrap means with seed 1, further out the fewer repetitions there are (Hesterberg \
         2015).</p>\n<details>\n<summary>The sweep file</summary>\n<pre>{}</pre>\n</details>\n</section>",
        escape(&rows.command),
        escape(command),
        escape(&rows.version),
        env!("CARGO_PKG_VERSION"),
        escape(&rows.text)
    );
}

#[cfg(test)]
mod tests {
    use crate::sweep::figures;
    use crate::sweep::study::tests::two_strategies;

    use super::*;

    fn page_of(study: &Study, command: &str) -> String {
        html(study, &figures::all(study, &mut || ()), command, &mut || ())
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let study = two_strategies();
        let page = page_of(&study, "stealgrid report test.db --out out");

        let names_a_namespace = page.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http://", "https://", " src=", "@import", "url("] {
            assert!(!names_a_namespace.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("href=").count(), page.matches("href=\"#").count(), "links stay on the page");
        assert!(page.contains("stealgrid report test.db --out out"));
        assert!(page.contains("stealgrid sweep test.toml"));
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let mut study = two_strategies();
        study.rows.name = "</title><script>alert(1)</script>".to_string();
        study.rows.text = "</pre><script>alert(2)</script>".to_string();
        study.series[1] = "</text><script>alert(3)</script>".to_string();

        let page = page_of(&study, "</pre><script>alert(4)</script>");

        assert!(!page.contains("<script>alert"));
    }

    #[test]
    fn the_contents_fold_what_the_page_folds() {
        let entry =
            |id: &str, is_panel, is_detail| Entry { id: id.into(), title: id.into(), is_panel, is_detail };
        let mut page = String::new();
        let details = (0..90).map(|number| entry(&format!("d{number}"), false, true));
        let entries: Vec<Entry> =
            [entry("a", false, false), entry("p", true, false), entry("b", false, false)]
                .into_iter()
                .chain(details)
                .collect();
        contents(&mut page, &entries);
        let (open, folded) = page.split_once("<details>\n").unwrap();
        assert_eq!((open.matches("<a ").count(), folded.matches("<a ").count()), (3, 90));
        assert!(
            open.contains("<p class=\"panel\"><a href=\"#p\">p</a></p>") && folded.contains("90 more"),
            "{page}"
        );
    }

    #[test]
    fn every_plot_is_on_the_page() {
        let study = two_strategies();
        let mut told = 0;
        let figures = figures::all(&study, &mut || told += 1);
        let page = html(&study, &figures, "", &mut || told += 1);
        assert_eq!(told, figures::parts(&study));

        assert!(figures.len() >= 5, "{}", figures.len());
        for figure in &figures {
            assert!(page.contains(&format!("<figure id=\"{}\">", figure.id)));
            assert!(page.contains(&format!("<a href=\"#{}\">{}</a>", figure.id, figure.title())));
            assert!(!figure.title().is_empty());
        }
    }
}
