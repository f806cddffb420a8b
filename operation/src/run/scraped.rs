//! Whether what was scraped of the nodes is what their event logs say.
//!
//! Nodes compute their metrics from the events that they log, and the coordinator counts the same series again from the
//! events that it collects. A page is compared with as many events of its site as it has counted
//! (`stealgrid_events_total`), so nothing need stand still meanwhile. Counters of a node with a journal go on after a
//! restart, because it counts again the events that its last totals do not have; what such a recount cannot know is
//! left out for a site that was restarted, see `Series::survives`. Pages come from the nodes themselves or
//! from [`prometheus`].

pub mod prometheus;

use std::collections::BTreeMap;
use std::time::Duration;

use experiments::interrupt::Interrupt;
use outputs::scraped::{Difference, Scraped, SiteScraped};
use protocol::journal::restarts_of;
use scheduler::event::{MessageKind, RefusalReason};
use scheduler::job::SLOWDOWN_BOUND;
use scheduler::{Event, EventKind, Grid, JobId, SiteId, Time, TimedJob};

use self::prometheus::Prometheus;
use crate::Fleet;
use crate::fleet::Whereabouts;

/// How far a sum of a histogram may be from the exact one, as a part of it: floating point adds an error of about 1e-16
/// with each of up to some million observations.
const ROUNDING: f64 = 1e-9;
/// Differences that are told on the terminal, and kept for each site.
const DIFFERENCES_SHOWN: usize = 5;

/// The series that says how many events a page has counted.
const EVENTS: &str = "stealgrid_events_total";
/// How often a site went on with its journal.
const RESTARTS: &str = "stealgrid_restarts_total";
/// Labels by which series are told apart; others say where they come from.
const LABELS: [&str; 3] = ["direction", "kind", "outcome"];

/// Where pages come from.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ScrapeArgs {
    /// At the end, compare the event log with what this Prometheus server has scraped, as in http://127.0.0.1:9090
    /// [default: the nodes are asked themselves]
    ///
    /// Waits until it has scraped each site after the end of the run.
    #[arg(long, value_name = "URL", value_parser = prometheus::address, help_heading = "Metrics")]
    pub prometheus: Option<String>,

    /// How long that may take, in seconds [default: 60]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        help_heading = "Metrics",
        requires = "prometheus"
    )]
    pub prometheus_patience: Option<u64>,
}

/// The default of `--prometheus-patience`, in seconds: two scrapes of a server that asks every 15 s, and a discovery
/// every 30 s.
const PATIENCE_SECS: u64 = 60;

impl ScrapeArgs {
    /// Where pages of a run come from.
    pub fn source(&self, run: &str) -> Source {
        match &self.prometheus {
            None => Source::Nodes,
            Some(url) => {
                let patience = Duration::from_secs(self.prometheus_patience.unwrap_or(PATIENCE_SECS));
                Source::Prometheus(Prometheus::new(url, run, patience))
            }
        }
    }
}

/// Where pages come from.
#[derive(Debug)]
pub enum Source {
    /// From the nodes.
    Nodes,
    /// From a server that scrapes them.
    Prometheus(Prometheus),
}

/// Samples of one site that were taken at one instant: values by `key`.
pub type Page = BTreeMap<String, f64>;

/// The name of a series: that of its metric, and labels that tell it from others of the same.
fn key<'a>(name: &str, labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let labels: BTreeMap<&str, &str> = labels.filter(|(label, _)| LABELS.contains(label)).collect();
    if labels.is_empty() {
        return name.to_string();
    }
    let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    format!("{name}{{{}}}", labels.join(","))
}

/// The samples of a page in the text format.
///
/// Values of our labels are words; those of others may have anything in them, and are not looked at.
pub fn parse(text: &str) -> Page {
    let mut page = Page::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        let Ok(value) = value.parse() else { continue };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.trim_end_matches('}').split("\",").filter_map(|pair| {
            let (label, value) = pair.split_once("=\"")?;
            Some((label, value.trim_end_matches('"')))
        });
        let buckets = name.ends_with("_bucket");
        if !buckets {
            page.insert(key(name, labels), value);
        }
    }
    page
}

/// What is counted of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    Submitted,
    Started,
    Finished,
    Granted,
    Returned,
    /// Jobs taken over from another site's queue, and at home after they were submitted elsewhere.
    Stolen,
    Routed,
    /// Jobs taken over from a broker.
    Allocated,
    /// Jobs that a broker called back.
    Recalled,
    /// Requests for work that brought a job.
    Answered,
    Waits,
    Slowdowns,
}

impl Series {
    const ALL: [Series; 12] = [
        Series::Submitted,
        Series::Started,
        Series::Finished,
        Series::Granted,
        Series::Returned,
        Series::Stolen,
        Series::Routed,
        Series::Allocated,
        Series::Recalled,
        Series::Answered,
        Series::Waits,
        Series::Slowdowns,
    ];

    fn name(self) -> &'static str {
        match self {
            Series::Submitted => "stealgrid_jobs_submitted_total",
            Series::Started => "stealgrid_jobs_started_total",
            Series::Finished => "stealgrid_jobs_finished_total",
            Series::Granted => "stealgrid_jobs_granted_total",
            Series::Returned => "stealgrid_jobs_returned_total",
            Series::Stolen => "stealgrid_jobs_stolen_total",
            Series::Routed => "stealgrid_jobs_routed_total",
            Series::Allocated => "stealgrid_jobs_allocated_total",
            Series::Recalled => "stealgrid_jobs_recalled_total",
            Series::Answered => "stealgrid_steal_requests_total{outcome=granted}",
            Series::Waits => "stealgrid_job_wait_seconds_count",
            Series::Slowdowns => "stealgrid_job_bounded_slowdown_count",
        }
    }

    /// Whether a site that goes on with its journal has it exactly. Events name jobs only, and a journal knows the
    /// submission and the width of the jobs that are still there: of others, the recount knows neither how long they
    /// waited nor whose they were.
    fn survives(self) -> bool {
        !matches!(self, Series::Stolen | Series::Routed | Series::Waits | Series::Slowdowns)
    }
}

/// What happens to messages, as in labels.
const DIRECTIONS: [&str; 4] = ["sent", "received", "ignored", "lost"];

/// What the events of one site say.
#[derive(Clone, Debug)]
struct Logged {
    /// Own events that were counted.
    events: u64,
    /// Only so many are.
    until: u64,
    counts: [u64; Series::ALL.len()],
    refused: [u64; RefusalReason::ALL.len()],
    messages: [[u64; DIRECTIONS.len()]; MessageKind::ALL.len()],
    /// Sum of the waits of started jobs, in microseconds of trace time.
    waited: i128,
    slowdowns: f64,
    started: BTreeMap<JobId, Time>,
}

impl Logged {
    fn new() -> Logged {
        Logged {
            events: 0,
            until: u64::MAX,
            counts: [0; Series::ALL.len()],
            refused: [0; RefusalReason::ALL.len()],
            messages: [[0; DIRECTIONS.len()]; MessageKind::ALL.len()],
            waited: 0,
            slowdowns: 0.0,
            started: BTreeMap::new(),
        }
    }

    fn count(&mut self, series: Series) {
        self.counts[series as usize] += 1;
    }

    fn message(&mut self, kind: MessageKind, direction: usize) {
        self.messages[kind as usize][direction] += 1;
    }

    /// Everything that can be compared, with how far a value may be off.
    fn values(&self, restarted: bool) -> Vec<(String, f64, f64)> {
        let kept = |series: &&Series| !restarted || series.survives();
        let exact = |name: String, count: u64| (name, count as f64, 0.0);
        let mut values: Vec<(String, f64, f64)> = Series::ALL
            .iter()
            .filter(kept)
            .map(|&series| exact(series.name().to_string(), self.counts[series as usize]))
            .collect();
        for reason in RefusalReason::ALL {
            let name = key("stealgrid_steal_requests_total", [("outcome", reason.name())].into_iter());
            values.push(exact(name, self.refused[reason as usize]));
        }
        for kind in MessageKind::ALL {
            for (direction, count) in DIRECTIONS.into_iter().zip(self.messages[kind as usize]) {
                let labels = [("kind", kind.name()), ("direction", direction)];
                values.push(exact(key("stealgrid_messages_total", labels.into_iter()), count));
            }
        }
        if !restarted {
            let sums = [
                ("stealgrid_job_wait_seconds_sum", self.waited as f64 / 1e6),
                ("stealgrid_job_bounded_slowdown_sum", self.slowdowns),
            ];
            values.extend(sums.map(|(name, sum)| (name.to_string(), sum, sum.abs() * ROUNDING)));
        }
        values
    }
}

/// Counts events and takes pages.
#[derive(Debug)]
pub struct Comparison {
    source: Source,
    grid: Grid,
    jobs: BTreeMap<JobId, TimedJob>,
    logged: Vec<Logged>,
    pages: Vec<Result<Page, String>>,
    /// Sites that were there at the end: those that a server must have scraped.
    up: Vec<bool>,
}

impl Comparison {
    /// Of a run of these jobs.
    pub fn new(source: Source, grid: &Grid, jobs: &[TimedJob]) -> Comparison {
        Comparison {
            source,
            grid: grid.clone(),
            jobs: jobs.iter().map(|job| (job.spec.id, *job)).collect(),
            logged: vec![Logged::new(); grid.len()],
            pages: vec![Err("it was not scraped".to_string()); grid.len()],
            up: vec![true; grid.len()],
        }
    }

    /// There is one more job.
    pub fn add(&mut self, job: &TimedJob) {
        self.jobs.insert(job.spec.id, *job);
    }

    /// Takes the pages of all sites. Events that they have counted and that were not collected yet must come after it.
    pub fn scrape(&mut self, fleet: &mut Fleet, interrupt: &Interrupt) {
        let up: Vec<bool> = (0..self.grid.len())
            .map(|site| fleet.whereabouts(SiteId::from_index(site)) == Whereabouts::Up)
            .collect();
        self.pages = match &self.source {
            Source::Nodes => fleet
                .clients()
                .zip(&up)
                .map(|(client, up)| match up {
                    true => client.metrics().map(|text| parse(&text)).map_err(|error| error.to_string()),
                    false => Err("its node is gone".to_string()),
                })
                .collect(),
            Source::Prometheus(server) => server.pages(fleet, &self.grid, &up, interrupt),
        };
        self.up = up;
        for (logged, page) in self.logged.iter_mut().zip(&self.pages) {
            logged.until = page.as_ref().map_or(0, events);
        }
    }

    /// Counts the next event, in the order of its site.
    pub fn observe(&mut self, event: &Event) {
        let Event { at, site, kind } = *event;
        // What drivers say of a site is not in its log.
        if matches!(kind, EventKind::Ended { .. } | EventKind::Begun { .. } | EventKind::Dismissed {}) {
            return;
        }
        let Some(logged) = self.logged.get_mut(site.index()) else { return };
        if let EventKind::Recovered { incarnation, .. } = kind
            && restarts_of(incarnation) == 0
        {
            // It lost its journal, and with it what it had counted.
            *logged = Logged { until: logged.until, ..Logged::new() };
        }
        if logged.events >= logged.until {
            return;
        }
        logged.events += 1;
        let known = |job: JobId| self.jobs.get(&job).map(|job| job.spec);
        match kind {
            EventKind::Submitted { .. } => logged.count(Series::Submitted),
            EventKind::Started { job, .. } => {
                logged.count(Series::Started);
                if let Some(spec) = known(job) {
                    logged.count(Series::Waits);
                    logged.waited += i128::from(at.since(spec.submit).as_micros());
                    logged.started.insert(job, at);
                }
            }
            EventKind::Completed { job, .. } => {
                logged.count(Series::Finished);
                if let (Some(spec), Some(started)) = (known(job), logged.started.remove(&job)) {
                    logged.count(Series::Slowdowns);
                    let bound = at.since(started).max(SLOWDOWN_BOUND).as_secs_f64();
                    logged.slowdowns += (at.since(spec.submit).as_secs_f64() / bound).max(1.0);
                }
            }
            EventKind::Granted { .. } => logged.count(Series::Granted),
            EventKind::Returned { .. } => logged.count(Series::Returned),
            EventKind::Accepted { from, .. } if self.grid.is_broker(from) => {
                logged.count(Series::Allocated);
            }
            EventKind::Accepted { job, .. } => {
                let home = known(job).and_then(|spec| self.grid.home(spec.processors));
                logged.count(if home == Some(site) { Series::Routed } else { Series::Stolen });
            }
            EventKind::Recalled { .. } => logged.count(Series::Recalled),
            EventKind::Answered { jobs, .. } if jobs > 0 => logged.count(Series::Answered),
            EventKind::Refused { reason, .. } => logged.refused[reason as usize] += 1,
            EventKind::Sent { message, .. } => logged.message(message, 0),
            EventKind::Received { message, .. } => logged.message(message, 1),
            EventKind::Ignored { message, .. } => logged.message(message, 2),
            EventKind::Lost { message, .. } => logged.message(message, 3),
            _ => {}
        }
    }

    /// What was found.
    pub fn finish(self) -> Scraped {
        let sites: Vec<SiteScraped> = self
            .grid
            .sites()
            .iter()
            .zip(self.logged.iter().zip(&self.pages))
            .map(|(site, (logged, page))| compare(&site.name, logged, page))
            .collect();
        let (source, must) = match &self.source {
            Source::Nodes => ("nodes".to_string(), false),
            Source::Prometheus(server) => (server.url().to_string(), true),
        };
        let must = self.up.iter().map(|up| must && *up);
        let equal = sites.iter().zip(must).all(|(site, must)| {
            let missing = must && site.missing.is_some();
            site.different == 0 && !missing
        });
        Scraped { source, equal, sites }
    }
}

fn events(page: &Page) -> u64 {
    // A counter is a whole number far below 2^53.
    page.get(EVENTS).map_or(0, |events| *events as u64)
}

fn compare(name: &str, logged: &Logged, page: &Result<Page, String>) -> SiteScraped {
    let mut of_site = SiteScraped {
        site: name.to_string(),
        events: 0,
        compared: 0,
        restarted: false,
        different: 0,
        differences: Vec::new(),
        missing: None,
    };
    let page = match page {
        Ok(page) => page,
        Err(reason) => {
            of_site.missing = Some(reason.clone());
            return of_site;
        }
    };
    of_site.events = events(page);
    of_site.restarted = page.get(RESTARTS).is_some_and(|restarts| *restarts > 0.0);
    if logged.events < of_site.events {
        of_site.missing = Some(format!(
            "only {} of the {} events that it counted could be collected",
            logged.events, of_site.events
        ));
        return of_site;
    }
    for (series, expected, rounding) in logged.values(of_site.restarted) {
        of_site.compared += 1;
        let scraped = page.get(&series).copied();
        if !scraped.is_some_and(|value| (value - expected).abs() <= rounding) {
            of_site.different += 1;
            if of_site.differences.len() < DIFFERENCES_SHOWN {
                of_site.differences.push(Difference { series, scraped, logged: expected });
            }
        }
    }
    of_site
}

#[cfg(test)]
mod tests {
    use protocol::journal::INCARNATIONS_PER_JOURNAL;
    use scheduler::event::GrantCause;
    use scheduler::{JobSpec, Labels, Span, Strategy};

    use super::*;

    const ONE: SiteId = SiteId(1);
    const TWO: SiteId = SiteId(2);

    fn jobs() -> Vec<TimedJob> {
        let job = |id| {
            let spec = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(5),
                processors: 3,
                requested: Span::from_secs(20),
                labels: Labels::UNKNOWN,
                origin: ONE,
                payload: 0,
            };
            TimedJob { spec, run_time: Span::from_micros(10_100_000) }
        };
        (1..=3).map(job).collect()
    }

    fn events() -> Vec<Event> {
        let at = |micros: i64, kind| Event { at: Time::from_micros(micros), site: ONE, kind };
        let job = JobId(1);
        let submitted = |job| EventKind::Submitted { job, processors: 3, requested: Span::ZERO, origin: ONE };
        let started = |job| EventKind::Started { job, processors: 3, hops: 0 };
        let (to, cause, message) = (TWO, GrantCause::Request, MessageKind::Grant);
        vec![
            at(5_000_001, submitted(job)),
            at(5_000_002, submitted(JobId(2))),
            at(5_100_003, started(job)),
            at(6_000_000, EventKind::Received { from: TWO, message: MessageKind::Request }),
            at(6_000_000, EventKind::Granted { job: JobId(2), to, transfer: 1, hops: 1, cause, request: 1 }),
            at(6_000_000, EventKind::Sent { to, message, retry: false }),
            at(7_000_000, EventKind::Lost { to, message }),
            at(8_000_000, EventKind::Refused { thief: TWO, seq: 2, reason: RefusalReason::Empty }),
            at(9_000_000, EventKind::Returned { job: JobId(2), by: TWO, transfer: 1, bounces: 1 }),
            at(15_200_003, EventKind::Completed { job, processors: 3 }),
            at(15_300_007, started(JobId(2))),
            at(15_300_007, EventKind::Accepted { job: JobId(3), from: TWO, transfer: 4, firm: false }),
        ]
    }

    /// The page of a node that saw these events.
    fn page_of(events: &[Event]) -> String {
        let grid = std::sync::Arc::new(Grid::of_sizes(&[4, 8]).unwrap());
        let mut metrics = node::metrics::Metrics::new(ONE, grid, &Strategy::default());
        jobs().iter().for_each(|job| metrics.introduce(&job.spec));
        events.iter().for_each(|event| metrics.observe(event));
        metrics.page()
    }

    /// Compares a page of the first site with these events.
    fn compared(page: &str, events: &[Event]) -> SiteScraped {
        let grid = Grid::of_sizes(&[4, 8]).unwrap();
        let mut comparison = Comparison::new(Source::Nodes, &grid, &jobs());
        comparison.pages[0] = Ok(parse(page));
        comparison.logged[0].until = super::events(comparison.pages[0].as_ref().unwrap());
        events.iter().for_each(|event| comparison.observe(event));
        let scraped = comparison.finish();
        assert_eq!(scraped.equal, scraped.sites[0].different == 0 && scraped.refusal().is_none());
        scraped.sites[0].clone()
    }

    #[test]
    fn a_page_equals_the_events_that_it_has_counted_at_any_time() {
        let all = events();
        for count in 0..=all.len() {
            let site = compared(&page_of(&all[..count]), &all);
            assert_eq!((site.differences, site.missing), (vec![], None), "{count} events");
            assert!(site.compared > 100 && site.events == count as u64, "{}", site.compared);
        }
        let said = Event { kind: EventKind::Dismissed {}, ..all[0] };
        let with_said: Vec<Event> = [vec![said], all.clone()].concat();
        assert_eq!(
            compared(&page_of(&all), &with_said).differences,
            [],
            "what drivers say is not the site's"
        );
    }

    #[test]
    fn every_wrong_value_is_found() {
        let all = events();
        let page = page_of(&all);
        let mut tried = 0;
        for (series, value) in parse(&page) {
            let checked = Logged::new().values(false).iter().any(|(name, ..)| *name == series);
            if !checked {
                continue;
            }
            tried += 1;
            let mut wrong = parse(&page);
            wrong.insert(series.clone(), value + 1e-3);
            let site = compare("site1", &logged(&all), &Ok(wrong.clone()));
            assert_eq!((site.different, site.differences[0].series.as_str()), (1, series.as_str()));
            wrong.remove(&series);
            let site = compare("site1", &logged(&all), &Ok(wrong));
            assert_eq!((site.different, site.differences[0].scraped), (1, None), "{series}");
        }
        assert_eq!(tried, Logged::new().values(false).len());
    }

    fn logged(events: &[Event]) -> Logged {
        let mut comparison = Comparison::new(Source::Nodes, &Grid::of_sizes(&[4, 8]).unwrap(), &jobs());
        events.iter().for_each(|event| comparison.observe(event));
        comparison.logged[0].clone()
    }

    #[test]
    fn events_that_a_page_counted_and_nobody_has_are_missed() {
        let all = events();
        let site = compared(&page_of(&all), &all[..3]);
        let missing = site.missing.unwrap();
        assert!(missing.contains("only 3 of the 12 events"), "{missing}");
    }

    #[test]
    fn of_a_site_that_was_restarted_what_survives_is_compared() {
        let mut all = events();
        all.push(Event {
            kind: EventKind::Recovered { incarnation: 1, waiting: 0, running: 0, out: 0 },
            ..all[11]
        });
        let mut page = page_of(&all);
        // As after a recount that did not know a job.
        page = page.replace(
            "stealgrid_job_wait_seconds_count{site=\"site1\"} 2",
            "stealgrid_job_wait_seconds_count{site=\"site1\"} 1",
        );
        let site = compared(&page, &all);
        assert_eq!((site.restarted, site.different), (true, 0));
        page = page.replace(
            "stealgrid_jobs_started_total{site=\"site1\"} 2",
            "stealgrid_jobs_started_total{site=\"site1\"} 1",
        );
        let site = compared(&page, &all);
        assert_eq!(site.differences[0].series, "stealgrid_jobs_started_total");
    }

    #[test]
    fn a_site_that_lost_its_journal_counts_from_the_beginning() {
        let mut all = events();
        let lost =
            EventKind::Recovered { incarnation: INCARNATIONS_PER_JOURNAL, waiting: 0, running: 0, out: 0 };
        all.push(Event { kind: lost, ..all[11] });
        all.extend_from_within(..4);
        for counted in 1..=5 {
            let site = compared(&page_of(&all[12..12 + counted]), &all);
            assert_eq!((site.restarted, site.differences, site.missing), (true, vec![], None), "{counted}");
        }
        let site = compared(&page_of(&all), &all);
        assert!(site.missing.is_some() || site.different > 0, "it counted what it cannot know of");
    }

    #[test]
    fn a_difference_is_told_with_its_site_and_both_values() {
        let all = events();
        let page = page_of(&all).replace(
            "stealgrid_jobs_granted_total{site=\"site1\"} 1",
            "stealgrid_jobs_granted_total{site=\"site1\"} 4",
        );
        let site = compared(&page, &all);
        let gone = SiteScraped {
            missing: Some("its node is gone".to_string()),
            site: "b".to_string(),
            ..site.clone()
        };
        let gone = SiteScraped { different: 0, differences: vec![], ..gone };
        let scraped = Scraped { source: "nodes".to_string(), equal: false, sites: vec![site, gone] };
        let refusal = scraped.refusal().unwrap();
        assert!(refusal.contains("site1: stealgrid_jobs_granted_total is 4, events say 1"), "{refusal}");
        assert!(scraped.line().contains("1 values"), "{}", scraped.line());
        assert!(scraped.line().ends_with("; b not compared: its node is gone"), "{}", scraped.line());
    }
}
