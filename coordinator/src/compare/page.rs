//! `stealgrid compare A B --page FILE`: two runs of the same sites as one page: both schedules on one axis, what moved, which metrics changed, and where
//! they part.
//!
//! The text is HTML made here; `page.js` draws what is embedded as JSON. Jobs are a table, times in milliseconds from
//! the first submission of either run: `submit, site 1, start 1, length 1, site 2, start 2, length 2`, site -1 where a
//! run did not start it: it waited until the run stopped at `start`, or was not there if that is -1. Bars are `side, site, lowest processor, processors, row`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use outputs::{JobRow, ResultDirectory};
use report::page::html::escape;
use report::page::{DRAWING, POINTING, STYLE};
use report::quantity::{change, change_in_words, duration, grouped, number};
use scheduler::{JobId, SiteId, Time};
use serde::Serialize;

use super::show::Events;
use super::{Compared, metrics};

/// The state of a job that waited when its run stopped.
const WAITING: &str = "waiting";
/// Jobs that are drawn: those with most work of more. A page of some ten megabytes.
const JOBS_DRAWN: usize = 150_000;
/// Rows of the table of jobs.
const JOBS_LISTED: usize = 30;

#[derive(Serialize)]
struct Data {
    /// Trace time of the first submission in milliseconds.
    origin: i64,
    /// From there to the last end of either run.
    length: i64,
    /// From there to the end of each run.
    ends: [i64; 2],
    /// Jobs of either run that started or waited.
    jobs: usize,
    /// Of those, jobs that are drawn.
    shown: usize,
    sites: Vec<(String, u32)>,
    id: Vec<u64>,
    width: Vec<u32>,
    rows: Vec<[i64; 7]>,
    bars: Vec<[i64; 5]>,
}

/// A job in both runs.
#[derive(Default)]
struct Pair<'a> {
    sides: [Option<&'a JobRow>; 2],
}

impl Pair<'_> {
    fn either(&self) -> Option<&JobRow> {
        self.sides.into_iter().flatten().next()
    }

    fn waits(&self) -> Option<[f64; 2]> {
        let wait =
            |row: Option<&JobRow>| row.and_then(|row| Some(row.start?.since(row.submit).as_secs_f64()));
        Some([wait(self.sides[0])?, wait(self.sides[1])?])
    }

    /// Processor-microseconds in the run where it took more.
    fn work(&self) -> i128 {
        let work = |row: &JobRow| {
            let span = row.end.zip(row.start).map_or(0, |(end, start)| end.since(start).as_micros());
            i128::from(span) * i128::from(row.processors)
        };
        self.sides.into_iter().flatten().map(work).max().unwrap_or(0)
    }
}

/// What the head of each page ends its title with.
const TITLE: &str = " - Stealgrid</title>";

/// Whether there is a file of this name that is no page of a comparison.
pub(super) fn is_of_others(file: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = workload::source::open(file).and_then(|file| file.take(4096).read_to_end(&mut beginning));
    read.is_ok() && !String::from_utf8_lossy(&beginning).contains(TITLE)
}

/// The page of a comparison that kept its rows.
pub(super) fn page(compared: &Compared) -> String {
    let directories = &compared.runs;
    let mut pairs: BTreeMap<JobId, Pair> = BTreeMap::new();
    for (side, rows) in compared.rows.iter().enumerate() {
        for row in rows {
            pairs.entry(row.job).or_default().sides[side] = Some(row);
        }
    }
    let sites = |side: usize| -> Vec<(String, u32)> {
        let sites = directories[side].manifest().sites.iter().filter(|site| site.processors > 0);
        sites.map(|site| (site.name.clone(), site.processors)).collect()
    };
    let same_sites = sites(0) == sites(1);
    let mut page = head(compared, directories);
    story(&mut page, compared, &pairs);
    if same_sites {
        page += DRAWINGS;
    } else {
        page += "<section>\n<p class=\"warning\">The runs have other sites, so their schedules are not drawn.</p>\n</section>\n";
    }
    metrics_table(&mut page, compared);
    jobs_table(&mut page, compared, &pairs);
    parting(&mut page, compared);
    page += "</main>\n";
    if same_sites {
        let data = data(directories, &pairs, sites(0));
        // In JSON a "<" occurs in strings only, where it may be escaped: no name can then end the script element.
        let text = serde_json::to_string(&data).expect("plain data").replace('<', "\\u003c");
        let script = POINTING.concat() + &DRAWING.concat() + include_str!("page.js");
        page += &format!(
            "<script type=\"application/json\" id=\"runs\">{text}</script>\n<script>\n{script}</script>\n"
        );
    }
    page + "</body>\n</html>\n"
}

const DRAWINGS: &str = "<section>\n<h2>Both schedules</h2>\n<p class=\"note\">Of each site the first run above and the second below. Wheel or \
    +/- to zoom, drag to move, double click for everything. A job under the pointer is framed in both. <span \
    id=\"thinned\"></span></p>\n<div class=\"tools\" id=\"gantt-tools\"><span class=\"legend\"><span class=\"entry\"><span \
    class=\"key own-b\"></span>the same in both</span><span class=\"entry\"><span class=\"key own-a\"></span>same site, another \
    time</span><span class=\"entry\"><span class=\"key stolen-a\"></span>another site</span><span class=\"entry\"><span class=\"key \
    stolen-b\"></span>in one run only</span></span><label>job <input \
    id=\"search\" type=\"search\" inputmode=\"numeric\" placeholder=\"number\"></label><span class=\"buttons\"><button \
    id=\"in\" title=\"zoom in\">+</button><button id=\"out\" title=\"zoom out\">\u{2212}</button><button \
    id=\"all\">everything</button></span></div>\n<div id=\"found\" role=\"status\"></div>\n<canvas id=\"gantt\" role=\"img\" \
    aria-label=\"Gantt charts of both runs, two bands per site\"></canvas>\n</section>\n<section>\n<h2>Waiting jobs over \
    time</h2>\n<div class=\"tools\" id=\"queue-tools\"><span class=\"legend\"><span class=\"entry\"><span class=\"key \
    run-1\"></span>first run</span><span class=\"entry\"><span class=\"key run-2\"></span>second run</span></span> whole grid; means over what a pixel covers</div>\n<canvas \
    id=\"queue\" role=\"img\" aria-label=\"Waiting jobs of both runs\"></canvas>\n</section>\n<div id=\"tip\" hidden></div>\n";

fn head(compared: &Compared, directories: &[ResultDirectory; 2]) -> String {
    let [first, second] = directories.each_ref().map(|directory| directory.manifest());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{} and {}{TITLE}\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<main>\n<header>\n<p class=\"product\">Stealgrid {}</p>\n<h1>Two runs</h1>\n",
        escape(&first.experiment),
        escape(&second.experiment),
        env!("CARGO_PKG_VERSION")
    );
    for (which, manifest, path) in
        [("First", first, &compared.directories[0]), ("Second", second, &compared.directories[1])]
    {
        let _ = writeln!(
            page,
            "<p class=\"about\">{which}: <b>{}</b> {} in {}; {}, {}, seed {}</p>",
            escape(&manifest.strategy),
            escape(&manifest.experiment),
            escape(&path.display().to_string()),
            escape(&manifest.network),
            escape(&manifest.driver),
            manifest.seed
        );
    }
    for (name, left, right) in &compared.described_differently {
        let _ = writeln!(page, "<p class=\"about\">{name}: {} | {}</p>", escape(left), escape(right));
    }
    for what in &compared.damaged {
        let _ = writeln!(page, "<p class=\"warning\">{}</p>", escape(what));
    }
    page + "</header>\n"
}

/// The comparison in two sentences.
fn story(page: &mut String, compared: &Compared, pairs: &BTreeMap<JobId, Pair<'_>>) {
    let both = pairs.values().filter(|pair| pair.waits().is_some());
    let (mut same, mut later, mut elsewhere) = (0_u64, 0_u64, 0_u64);
    for pair in both {
        let [Some(left), Some(right)] = pair.sides else { continue };
        if left.site != right.site {
            elsewhere += 1;
        } else if left.start == right.start {
            same += 1;
        } else {
            later += 1;
        }
    }
    let waits: Vec<[f64; 2]> = pairs.values().filter_map(Pair::waits).collect();
    let mean = |side: usize| waits.iter().map(|wait| wait[side]).sum::<f64>() / waits.len().max(1) as f64;
    let longer = waits.iter().filter(|[left, right]| right > left).count();
    let shorter = waits.iter().filter(|[left, right]| right < left).count();
    let _ = writeln!(
        page,
        "<section>\n<p class=\"story\">{}: of {} jobs that started in both runs {} start where and when they did, {} at the same site at another time, {} at \
         another site.</p>\n<p class=\"story\">In the second run they wait {} on average, in the first {} ({}): {} \
         wait longer, {} shorter.</p>\n</section>",
        escape(compared.verdict_line().split([';', ' ']).next().unwrap_or_default()),
        grouped(same + later + elsewhere),
        grouped(same),
        grouped(later),
        grouped(elsewhere),
        duration(mean(1)),
        duration(mean(0)),
        change_in_words(mean(1), mean(0)),
        grouped(longer as u64),
        grouped(shorter as u64)
    );
}

fn metrics_table(page: &mut String, compared: &Compared) {
    *page += "<section>\n<h2>What changed</h2>\n<div class=\"scroll\"><table class=\"compact\" aria-label=\"Metrics of both runs\">\n<tr><th>metric</th><th \
              class=\"n\">first</th><th class=\"n\">second</th><th class=\"n spare\">difference</th><th class=\"n\">change</th></tr>\n";
    for row in compared.metrics.iter().filter(|row| row.is_shown()) {
        let show =
            |value: Option<f64>| value.map_or("-".to_string(), |value| metrics::read(&row.name, value));
        let relative = row.left.zip(row.right).map_or("-".to_string(), |(left, right)| change(right, left));
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n spare\">{}</td><td class=\"n\">{relative}</td></tr>",
            escape(&metrics::words(&row.name)),
            show(row.left),
            show(row.right),
            row.difference.map_or("-".to_string(), |value| metrics::read_difference(&row.name, value))
        );
    }
    *page += "</table></div>\n</section>\n";
}

/// The jobs whose waits differ most.
fn jobs_table(page: &mut String, compared: &Compared, pairs: &BTreeMap<JobId, Pair<'_>>) {
    let mut moved: Vec<(f64, &JobId, [f64; 2], &Pair<'_>)> = pairs
        .iter()
        .filter_map(|(job, pair)| pair.waits().map(|waits| (waits[1] - waits[0], job, waits, pair)))
        .filter(|(difference, ..)| *difference != 0.0)
        .collect();
    moved.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()).then(a.1.cmp(b.1)));
    let all = moved.len();
    if all == 0 {
        return;
    }
    let _ = writeln!(
        page,
        "<section>\n<h2>Jobs whose waits differ most</h2>\n<p class=\"note\">{} of {} whose waits differ; {} jobs of one run are \
         not in the other.</p>\n<div class=\"scroll\"><table class=\"compact\" aria-label=\"Jobs whose waits differ most\">\n<tr><th \
         class=\"n\">job</th><th class=\"n\">processors</th><th>first run at</th><th>second run at</th><th \
         class=\"n\">wait, first</th><th class=\"n\">second</th><th class=\"n spare\">difference</th></tr>",
        grouped(all.min(JOBS_LISTED) as u64),
        grouped(all as u64),
        grouped(compared.jobs.only_left.count + compared.jobs.only_right.count)
    );
    let name = |row: Option<&JobRow>| {
        let site = row.and_then(|row| row.site);
        site.map_or("-".to_string(), |site| escape(compared.sites.name(site)))
    };
    for (difference, job, waits, pair) in moved.into_iter().take(JOBS_LISTED) {
        let _ = writeln!(
            page,
            "<tr><td class=\"n\">{job}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td><td class=\"n\">{} s</td><td \
             class=\"n\">{} s</td><td class=\"n spare\">{} s</td></tr>",
            pair.either().map_or(0, |row| row.processors),
            name(pair.sides[0]),
            name(pair.sides[1]),
            number(waits[0]),
            number(waits[1]),
            number(difference)
        );
    }
    *page += "</table></div>\n</section>\n";
}

/// Where they part, as the command says it, but for events in words.
fn parting(page: &mut String, compared: &Compared) {
    let lines = compared.lines(Events::InWords);
    let _ = writeln!(
        page,
        "<section>\n<h2>Where they part</h2>\n<details open>\n<summary>Jobs and events, as <code>stealgrid compare</code> says \
         it, but for events in words</summary>\n<pre>{}</pre>\n</details>\n</section>",
        escape(&lines.join("\n"))
    );
}

fn data(
    directories: &[ResultDirectory; 2],
    pairs: &BTreeMap<JobId, Pair<'_>>,
    sites: Vec<(String, u32)>,
) -> Data {
    // Rejected jobs were never there.
    let was_there = |row: &JobRow| row.start.is_some() || row.state == WAITING;
    let seen = |pair: &Pair<'_>| pair.sides.into_iter().flatten().any(was_there);
    let mut drawn: Vec<(&JobId, &Pair<'_>)> = pairs.iter().filter(|(_, pair)| seen(pair)).collect();
    let jobs = drawn.len();
    if jobs > JOBS_DRAWN {
        drawn.sort_by_key(|(job, pair)| (std::cmp::Reverse(pair.work()), **job));
        drawn.truncate(JOBS_DRAWN);
        drawn.sort_by_key(|(job, _)| **job);
    }
    let rows = || drawn.iter().flat_map(|(_, pair)| pair.sides.into_iter().flatten());
    let until = directories.each_ref().map(|directory| directory.manifest().until());
    let origin = rows().map(|row| row.submit).min().unwrap_or(Time::ZERO);
    let last = rows().filter_map(|row| row.end).chain(until).max().unwrap_or(origin);
    let millis = |at: Time| at.since(origin).as_micros() / 1000;
    let bounds = |side: usize, site: SiteId| {
        let entry = directories[side].manifest().sites.iter().find(|entry| entry.id == site);
        entry.map_or(0, |entry| i64::from(entry.first_processor()))
    };
    let mut data = Data {
        origin: origin.since(Time::ZERO).as_micros() / 1000,
        length: millis(last).max(1),
        ends: until.map(millis),
        jobs,
        shown: drawn.len(),
        sites,
        id: Vec::new(),
        width: Vec::new(),
        rows: Vec::new(),
        bars: Vec::new(),
    };
    for (place, (job, pair)) in drawn.iter().enumerate() {
        let Some(either) = pair.either() else { continue };
        let mut row = [millis(either.submit), -1, -1, 0, -1, -1, 0];
        for (side, ran) in pair.sides.into_iter().enumerate() {
            let Some((ran, site, start)) = ran.and_then(|ran| Some((ran, ran.site?, ran.start?))) else {
                if ran.is_some_and(|ran| ran.state == WAITING) {
                    row[2 + 3 * side] = millis(until[side]);
                }
                continue;
            };
            let index = i64::try_from(site.index()).unwrap_or(-1);
            let length = ran.end.unwrap_or(until[side]).since(start).as_micros() / 1000;
            row[1 + 3 * side] = index;
            row[2 + 3 * side] = millis(start);
            row[3 + 3 * side] = length;
            for part in &ran.allocated {
                let first = i64::from(part.first) - bounds(side, site);
                let bar = [side as i64, index, first, i64::from(part.len()), place as i64];
                data.bars.push(bar);
            }
        }
        data.id.push(job.0);
        data.width.push(either.processors);
        data.rows.push(row);
    }
    data
}
