//! What the drawings of the page need, as one JSON object of plain integer lists.
//!
//! Jobs are a table of columns: id as difference to the row before, wait in milliseconds, user, and the numbers of the
//! sites where it was submitted and which is its home. Bars are written as `start, length, lowest processor, processors, row of the
//! job` one after another, start and row as differences to the bar before; times in milliseconds from the origin of the
//! run, the first submission, which is itself given in trace time: the page shows that. Executions that do not count have lists of their own:
//! `start, length at least, length at most, lowest processor, processors, kind, job`, kind 0 interrupted, 1 end unknown,
//! 2 repeated. Where jobs share nodes, a site has how many places for tasks each node has, and when which job was slowed down: `row of the
//! job, start, length, slow-down in hundredths`. Of too many jobs those with most work are kept; the curves, which are of all, then show the others. Where every
//! job has a bar the script makes curves of those, exact at every zoom, and none are written.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analysis::faults::{AttemptEnd, Done};
use analysis::series::{self, SiteSeries, Steps};
use analysis::{JobOutcome, Outcome};
use outputs::{Allocation, RunResult};
use scheduler::event::EndCause;
use scheduler::{Grid, SiteId, Time};
use serde::Serialize;

use crate::figures::kind;

/// Bars that a browser counts without delay, and which make a page of about six megabytes.
const BARS: usize = 200_000;
/// Spans of slow-down of one site that a page holds: others are not shaded. Arbitrary, as many as bars.
const SLOWED: usize = BARS;
/// Steps per curve: twice the pixels of a curve on a wide screen would show no more.
const POINTS: usize = 600;

#[derive(Serialize)]
struct Data {
    /// Trace time of the origin in milliseconds.
    origin: i64,
    /// Length of the run in milliseconds.
    length: i64,
    /// Processors of all sites.
    processors: u64,
    /// Utilization of the whole grid.
    utilization: f64,
    /// The most jobs that wait at once.
    most_waiting: u64,
    /// Jobs that started at a site shown.
    jobs: usize,
    /// Of those, jobs that have a bar.
    shown: usize,
    /// Whether bars are all that happened: every job of the run has ended and has one, and nothing else executed.
    exact: bool,
    /// Names of all members of the grid, by number.
    names: Vec<String>,
    table: Jobs,
    #[serde(flatten)]
    grid: Curves,
    sites: Vec<SiteData>,
}

/// The jobs that have bars, a row each.
#[derive(Default, Serialize)]
struct Jobs {
    id: Vec<i64>,
    wait: Vec<i64>,
    user: Vec<i32>,
    from: Vec<u32>,
    home: Vec<u32>,
    /// As [`kind`] has it.
    kind: Vec<u8>,
    #[serde(skip)]
    last: i64,
}

/// Empty where bars say the same.
#[derive(Default, Serialize)]
struct Curves {
    busy: Curve,
    waiting_a: Curve,
    waiting_b: Curve,
}

#[derive(Serialize)]
struct SiteData {
    name: String,
    id: SiteId,
    processors: u32,
    utilization: f64,
    most_waiting: u64,
    bars: Vec<i64>,
    /// Executions that do not count, not as differences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<[i64; 7]>,
    /// From when to when the site was away, and why: 0 down, 1 down at most, 2 stood still, 3 not there yet, 4 left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    away: Vec<[i64; 3]>,
    /// Places for tasks on each node, where jobs share these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    slow: Vec<[i64; 4]>,
    #[serde(flatten)]
    curves: Curves,
}

/// A step function: times in milliseconds as differences, values.
#[derive(Default, Serialize)]
struct Curve {
    t: Vec<i64>,
    v: Vec<f64>,
}

/// Writes the object; safe inside a script element.
pub(super) fn write(
    file: &mut dyn Write,
    result: &RunResult,
    allocation: &Allocation,
    sites_drawn: usize,
) -> io::Result<()> {
    let outcome = &result.outcome;
    let shown = series::busiest(outcome, sites_drawn);
    let mut rows: BTreeMap<SiteId, Vec<usize>> = shown.iter().map(|&site| (site, Vec::new())).collect();
    for (row, job) in outcome.jobs.iter().enumerate() {
        for part in outcome.parts(job) {
            if let Some(rows) = part.site.and_then(|site| rows.get_mut(&site)) {
                rows.push(row);
            }
        }
    }
    let jobs = rows.values().map(Vec::len).sum();
    let least = least_work(outcome, rows.values().flatten().copied());
    let ended = outcome.jobs.iter().all(|job| job.home.is_none() || job.end.is_some());
    let drawn = shown.len() == outcome.grid.machines().count() && least == 0;
    // The bars of a job over several sites say more than once that it waited.
    let exact = ended && drawn && outcome.faults.attempts.is_empty() && outcome.spread.is_empty();
    let series: Vec<SiteSeries> = match exact {
        true => vec![SiteSeries::default(); shown.len()],
        false => series::of_sites(outcome, &shown, POINTS),
    };
    let grid = if exact { SiteSeries::default() } else { series::whole_grid(outcome, POINTS) };
    let (most_waiting, most_waiting_at) = series::most_waiting(outcome, &shown);
    let mut data = Data {
        origin: outcome.origin.since(Time::ZERO).as_micros() / 1000,
        length: millis(outcome, outcome.until),
        processors: outcome.grid.processors(),
        utilization: result.metrics.utilization,
        most_waiting,
        jobs,
        shown: 0,
        exact,
        names: outcome.grid.sites().iter().map(|site| site.name.clone()).collect(),
        table: Jobs::default(),
        grid: curves(outcome, &grid),
        sites: Vec::with_capacity(shown.len()),
    };
    for (((site, rows), series), most_waiting) in rows.into_iter().zip(series).zip(most_waiting_at) {
        let mut bars = Bars::new(outcome, allocation, site);
        let mut slow = Vec::new();
        for row in rows {
            if area(outcome, &outcome.jobs[row]) >= least {
                bars.push(row, data.shown);
                data.table.push(&outcome.grid, &outcome.jobs[row]);
                slowed(outcome, &outcome.jobs[row], data.shown, &mut slow);
                data.shown += 1;
            }
        }
        let metrics = result.metrics.sites.iter().find(|metrics| metrics.site == site);
        let metrics = metrics.expect("a site that is drawn has processors");
        data.sites.push(SiteData {
            name: metrics.name.clone(),
            id: site,
            processors: metrics.processors,
            utilization: metrics.utilization,
            most_waiting,
            bars: bars.numbers,
            attempts: attempts(outcome, allocation, site),
            away: away(outcome, site),
            nodes: nodes(&outcome.grid, site),
            slow,
            curves: curves(outcome, &series),
        });
    }
    // In JSON a "<" occurs in strings only, where it may be escaped: no name can then end the script element.
    let text = serde_json::to_string(&data)?.replace('<', "\\u003c");
    file.write_all(text.as_bytes())
}

/// The executions at a site that do not count. A job on several separate intervals gets one for each.
fn attempts(outcome: &Outcome, allocation: &Allocation, site: SiteId) -> Vec<[i64; 7]> {
    let mut found = Vec::new();
    for (place, attempt) in outcome.faults.attempts.iter().enumerate() {
        if attempt.site != site || found.len() >= BARS {
            continue;
        }
        let start = millis(outcome, attempt.start);
        let [least, most] = [attempt.at_least, attempt.at_most].map(|time| millis(outcome, time) - start);
        let kind = match attempt.end {
            AttemptEnd::Interrupted => 0,
            AttemptEnd::Unknown => 1,
            AttemptEnd::Repeated => 2,
        };
        let job = i64::try_from(attempt.job.0).unwrap_or(i64::MAX);
        for interval in allocation.of_attempt(place) {
            let first = i64::from(interval.first - allocation.offset(site));
            found.push([start, least, most, first, i64::from(interval.len()), kind, job]);
        }
    }
    found
}

fn nodes(grid: &Grid, site: SiteId) -> Vec<u32> {
    let cluster = grid.cluster(site);
    cluster.map_or(Vec::new(), |cluster| cluster.platform.nodes().iter().map(|node| node.mpl).collect())
}

/// When a job with a bar went on more slowly than on idle nodes.
fn slowed(outcome: &Outcome, job: &JobOutcome, place: usize, slow: &mut Vec<[i64; 4]>) {
    let Some(placement) = outcome.placement(job) else { return };
    let place = i64::try_from(place).unwrap_or(i64::MAX);
    for (from, to, pace) in placement.spans(outcome.until) {
        let hundredths = i64::try_from(pace.slowdown_millionths / 10_000).unwrap_or(i64::MAX);
        let (from, to) = (millis(outcome, from), millis(outcome, to));
        if hundredths > 100 && to > from && slow.len() < SLOWED {
            slow.push([place, from, to - from, hundredths]);
        }
    }
}

fn away(outcome: &Outcome, site: SiteId) -> Vec<[i64; 3]> {
    let faults = &outcome.faults;
    let row = |from: Option<Time>, to: Option<Time>, why: i64| {
        let [from, to] = [from.unwrap_or(outcome.origin), to.unwrap_or(outcome.until)];
        [millis(outcome, from), millis(outcome, to), why]
    };
    let of_site = faults.downtimes.iter().filter(|down| down.site == site);
    let mut found: Vec<_> =
        of_site.map(|down| row(down.from, down.to, i64::from(!down.is_exact()))).collect();
    let mut deeds =
        faults.deeds.iter().filter(|deed| deed.site == site && deed.what != Done::Dismissed).peekable();
    while let Some(deed) = deeds.next() {
        let until = deeds.peek().map(|next| next.at);
        match deed.what {
            Done::Ended(EndCause::Pause) => found.push(row(Some(deed.at), until, 2)),
            Done::Ended(EndCause::Absent) => found.push(row(Some(deed.at), until, 3)),
            Done::Ended(EndCause::Leave) => found.push(row(Some(deed.at), until, 4)),
            _ => {}
        }
    }
    found
}

/// The bars of one site, each as differences to the one before.
struct Bars<'a> {
    outcome: &'a Outcome,
    allocation: &'a Allocation,
    site: SiteId,
    numbers: Vec<i64>,
    last: (i64, i64),
}

impl<'a> Bars<'a> {
    fn new(outcome: &'a Outcome, allocation: &'a Allocation, site: SiteId) -> Bars<'a> {
        Bars { outcome, allocation, site, numbers: Vec::new(), last: (0, 0) }
    }

    /// A job on several separate intervals gets one bar for each. `place` is its row of the table.
    fn push(&mut self, row: usize, place: usize) {
        let job = &self.outcome.jobs[row];
        let Some(start) = job.start else { return };
        let from = millis(self.outcome, start);
        let to = millis(self.outcome, job.end.unwrap_or(self.outcome.until));
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        let offset = self.allocation.offset(self.site);
        for interval in self.allocation.of_job_at(row, self.site) {
            self.numbers.extend([
                from - self.last.0,
                to - from,
                i64::from(interval.first - offset),
                i64::from(interval.len()),
                place - self.last.1,
            ]);
            self.last = (from, place);
        }
    }
}

impl Jobs {
    fn push(&mut self, grid: &Grid, job: &JobOutcome) {
        let id = i64::try_from(job.id.0).unwrap_or(i64::MAX);
        self.id.push(id - self.last);
        self.last = id;
        self.wait.push(job.wait().map_or(0, |wait| wait.as_micros() / 1000));
        self.user.push(job.labels.user);
        let number = |site: SiteId| u32::try_from(site.index()).unwrap_or(u32::MAX);
        self.from.push(number(job.origin));
        self.home.push(number(job.home.unwrap_or(job.origin)));
        self.kind.push(kind(grid, job));
    }
}

/// Processor-microseconds until the end or the last event.
fn area(outcome: &Outcome, job: &JobOutcome) -> i128 {
    let Some(start) = job.start else { return 0 };
    let end = job.end.unwrap_or(outcome.until);
    i128::from(end.since(start).as_micros()) * i128::from(job.processors)
}

/// The work that a job must have to be shown.
fn least_work(outcome: &Outcome, rows: impl Iterator<Item = usize>) -> i128 {
    let mut work: Vec<i128> = rows.map(|row| area(outcome, &outcome.jobs[row])).collect();
    if work.len() <= BARS {
        return 0;
    }
    let place = work.len() - BARS;
    let (_, &mut border, _) = work.select_nth_unstable(place);
    // Strictly more than the border if as many jobs have just this much work that the limit would break.
    if work.iter().filter(|&&area| area >= border).count() > BARS { border + 1 } else { border }
}

fn millis(outcome: &Outcome, at: Time) -> i64 {
    at.since(outcome.origin).as_micros() / 1000
}

fn curve(outcome: &Outcome, steps: &Steps) -> Curve {
    let mut last = 0;
    let differences = steps.times.iter().map(|&at| {
        let now = millis(outcome, at);
        let difference = now - last;
        last = now;
        difference
    });
    let t = differences.collect();
    Curve { t, v: steps.values.iter().map(|value| (value * 100.0).round() / 100.0).collect() }
}

fn curves(outcome: &Outcome, series: &SiteSeries) -> Curves {
    Curves {
        busy: curve(outcome, &series.busy),
        waiting_a: curve(outcome, &series.waiting_a),
        waiting_b: curve(outcome, &series.waiting_b),
    }
}
