//! What the page shows of a run: plain state, fed by events and by looks at the nodes. What has changed is told as
//! `frame` says.
//!
//! Bounded: a bar for each execution of a job (and for each run of neighbouring processors or each node that it has), its changes of speed on shared nodes, the last
//! transfers, and what sites are doing now. Nothing of it is a result; the report is made from the event log.

mod frame;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use analysis::SoFar;
use analysis::starts::Queues;
use experiments::latest::keep;
use node::control::api::Status;
use outputs::orders::{Given, Order};
use protocol::journal::restarts_of;
use scheduler::{Event, EventKind, Grid, JobId, LocalScheduler, SiteId, Span, Threshold, Time, TimedJob};
use serde::Serialize;

#[cfg(test)]
pub(super) use self::frame::BAR;
use self::frame::Bar;
pub(super) use self::frame::ROW;
pub use self::frame::{Frame, Move, Told};
use super::brokers::BrokersNow;
use super::processors::{Free, Places};
use crate::audit::Check;
use crate::fleet::Limit;

/// Transfers that are kept for those who have not seen them yet.
const MOVES_KEPT: usize = 200;
/// Lines of the log in words that are kept.
const WORDS_KEPT: usize = 50;
/// Links that are told of, at most: more are a cloud.
const LINKS_TOLD: usize = 2000;

/// Waiting jobs of a site that are told with their planned starts, at most: more nobody reads.
const STARTS_TOLD: usize = 100;

/// Own and big, own and small, from another site.
const CLASSES: usize = 3;

/// What is known before the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct About {
    /// Name of the experiment.
    pub name: String,
    /// Name of the strategy.
    pub strategy: String,
    /// The links in words.
    pub network: String,
    /// The clock of the run, as in a report.
    pub clock: String,
    /// Seconds of trace time in a second of wall-clock time; none where it is not fixed.
    pub factor: Option<f64>,
    /// Jobs to come in all.
    pub jobs: usize,
    /// The sites in the order of the experiment.
    pub sites: Vec<AboutSite>,
    /// Whether the log tells users apart.
    pub users: bool,
    /// Whether the page can give orders.
    pub orders: bool,
    /// Whether the page can ask when waiting jobs should start.
    pub starts: bool,
    /// Whether it shows a run that has ended.
    pub replay: bool,
    /// From when to when that run was, in milliseconds of trace time; zeros for one that lasts.
    pub span: [i64; 2],
}

/// A site as the page shows it from the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AboutSite {
    /// Name of the site in the experiment.
    pub name: String,
    /// How many processors it has.
    pub processors: u32,
    /// Places for tasks on each node, where jobs share these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<u32>,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nodes start, connect, and are measured.
    #[default]
    Waiting,
    /// Everything is ready, and waits for the order to start.
    Held,
    /// Trace time advances.
    Running,
    /// It stands still by order.
    Paused,
    /// It has ended, one way or another.
    Ended,
}

/// A run as of now.
#[derive(Debug)]
pub struct Live {
    about: About,
    grid: Grid,
    threshold: Threshold,
    jobs: BTreeMap<JobId, TimedJob>,
    so_far: SoFar,
    now: Time,
    phase: Phase,
    sites: Vec<SiteNow>,
    /// Where a job waits, and as what.
    waits: BTreeMap<JobId, (usize, usize)>,
    /// At which brokers jobs waited that execute in parts.
    apart: BTreeMap<JobId, usize>,
    /// Where a job entered the grid.
    entered: BTreeMap<JobId, usize>,
    bars: Vec<Bar>,
    /// Bars that have ended, in that order.
    ends: Vec<usize>,
    /// Jobs on shared nodes that go on at another speed, from when on, and how many times longer they take, in hundredths.
    paces: Vec<[i64; 3]>,
    moves: VecDeque<Move>,
    /// How many there were in all.
    moved: u64,
    words: VecDeque<(i64, String)>,
    said: u64,
    /// Sites of which was said that they are gone or leave: every other site notices, and once is enough.
    missed: BTreeSet<SiteId>,
    /// Jobs that have ended, and in how many quarters of all that was said.
    ended: usize,
    quarters: usize,
    links: Vec<Link>,
    events: u64,
    /// By check, in the order of [`Check::ALL`].
    failed_checks: [u64; Check::ALL.len()],
    failed: bool,
    /// Directed links that are cut, as nodes say; those of sites that are away as ordered.
    cuts: BTreeSet<(usize, usize)>,
    /// The version that changed them last.
    cuts_changed: u64,
    /// How often each limit on beginnings of nodes was hit.
    limits: BTreeMap<&'static str, u64>,
    brokers: BrokersNow,
    /// For plans, if sites have queues with a local scheduler.
    queues: Option<(LocalScheduler, Queues)>,
    version: u64,
}

/// When the jobs that wait at a site should start, by the plan of its local scheduler if nothing came and all ran for as long as is
/// believed. Times in seconds of trace time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Starts {
    /// The site in the order of the experiment.
    pub site: usize,
    /// When that is.
    pub now_s: f64,
    /// All that wait there.
    pub waiting: usize,
    /// The first to start, in that order.
    pub jobs: Vec<Start>,
}

/// A waiting job with its planned start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Start {
    /// The job.
    pub job: JobId,
    /// Processors that it needs.
    pub processors: u32,
    /// Who submitted it; -1 if nobody knows.
    pub user: i32,
    /// When.
    pub submit_s: f64,
    /// When it should start.
    pub start_s: f64,
}

/// A run in numbers, for Prometheus.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Where the run is.
    pub phase: Phase,
    /// Whether it ended before it was complete.
    pub failed: bool,
    /// Jobs that wait, run, have ended, and were given up.
    pub jobs: [u64; 4],
    /// [`SoFar::ratio`].
    pub ratio: Option<f64>,
    /// The denominator of the ratio: a lower bound from the jobs so far.
    pub bound: Span,
    /// Trace time of the latest event or look.
    pub now: Time,
    /// Events of sites and of drivers that were taken over.
    pub events: u64,
    /// How often each check failed.
    pub failed_checks: Vec<(Check, u64)>,
    /// Sites that are there, and those that are gone.
    pub sites: [u64; 2],
    /// How often each limit on beginnings of nodes was hit, by its name.
    pub limits: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug)]
struct SiteNow {
    /// Since when it is away, if it is.
    down: Option<Time>,
    /// When it went away last.
    was_down: Option<Time>,
    busy: [u32; CLASSES],
    waiting: [u64; CLASSES],
    free: Free,
    /// Where jobs share nodes, those in place of processors.
    places: Option<Places>,
    running: BTreeMap<JobId, Execution>,
    ended: u64,
    came: u64,
    went: u64,
    /// The version that changed it last.
    changed: u64,
}

/// A job that executes, with its bars.
#[derive(Clone, Debug)]
struct Execution {
    start: Time,
    class: usize,
    /// Of a job in parts, whether this is not the first.
    is_part: bool,
    bars: Vec<usize>,
    /// What the bars of its tasks have in common.
    bar: Bar,
}

/// One direction of a link: from, to, seconds of trace time injected, and measured if it was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Link(usize, usize, f64, Option<f64>);

impl AboutSite {
    /// All sites of a grid, in the order of the experiment.
    pub fn all(grid: &Grid) -> Vec<AboutSite> {
        let of_site = |site: &scheduler::Site| {
            let nodes = grid.cluster(site.id).map(|cluster| cluster.platform.nodes());
            let nodes = nodes.unwrap_or_default().iter().map(|node| node.mpl).collect();
            AboutSite { name: site.name.clone(), processors: site.processors, nodes }
        };
        grid.sites().iter().map(of_site).collect()
    }
}

impl Live {
    /// A run that is about to begin. Classes are told by this threshold.
    pub fn new(about: About, grid: &Grid, threshold: Threshold, jobs: &[TimedJob]) -> Live {
        let site = |site: &scheduler::Site| SiteNow {
            down: None,
            was_down: None,
            busy: [0; CLASSES],
            waiting: [0; CLASSES],
            free: Free::new(site.processors),
            places: grid
                .cluster(site.id)
                .map(|cluster| Places::new(cluster.platform.nodes().iter().map(|node| node.mpl))),
            running: BTreeMap::new(),
            ended: 0,
            came: 0,
            went: 0,
            changed: 1,
        };
        Live {
            about,
            threshold,
            jobs: jobs.iter().map(|job| (job.spec.id, *job)).collect(),
            so_far: SoFar::new(grid),
            now: Time::ZERO,
            phase: Phase::Waiting,
            sites: grid.sites().iter().map(site).collect(),
            waits: BTreeMap::new(),
            apart: BTreeMap::new(),
            entered: BTreeMap::new(),
            bars: Vec::new(),
            ends: Vec::new(),
            paces: Vec::new(),
            moves: VecDeque::new(),
            moved: 0,
            words: VecDeque::new(),
            missed: BTreeSet::new(),
            said: 0,
            ended: 0,
            quarters: 0,
            links: Vec::new(),
            events: 0,
            failed_checks: [0; Check::ALL.len()],
            failed: false,
            cuts: BTreeSet::new(),
            cuts_changed: 1,
            limits: BTreeMap::new(),
            brokers: BrokersNow::default(),
            queues: None,
            version: 1,
            grid: grid.clone(),
        }
    }

    /// The same where each site has a queue with this local scheduler: it can be asked when jobs should start.
    #[must_use]
    pub fn with_plans(mut self, scheduler: LocalScheduler) -> Live {
        // A plan on processors says nothing of nodes that jobs share.
        self.about.starts = scheduler != LocalScheduler::External && !self.grid.is_shared();
        self.queues = self.about.starts.then(|| (scheduler, Queues::default()));
        self
    }

    /// When the jobs that wait at a site should start. Planned when it is asked. None without queues that have plans, of a broker, or if
    /// there is no such site.
    pub fn starts(&self, site: usize) -> Option<Starts> {
        let (scheduler, queues) = self.queues.as_ref()?;
        let processors = self.about.sites.get(site)?.processors;
        if processors == 0 {
            return None;
        }
        let spec = |job| self.jobs.get(&job).map(|job| job.spec);
        let plan = queues.plan(*scheduler, SiteId::from_index(site), processors, self.now, spec)?;
        let jobs = plan.jobs().iter().take(STARTS_TOLD).filter_map(|planned| {
            let job = spec(planned.job)?;
            Some(Start {
                job: job.id,
                processors: job.processors,
                user: job.labels.user,
                submit_s: job.submit.as_secs_f64(),
                start_s: planned.start.as_secs_f64(),
            })
        });
        let jobs = jobs.collect();
        Some(Starts { site, now_s: self.now.as_secs_f64(), waiting: plan.jobs().len(), jobs })
    }

    /// What does not change.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Says to those who look on what happens now.
    pub fn say(&mut self, words: String) {
        self.say_at(self.now, words);
    }

    fn say_at(&mut self, at: Time, words: String) {
        self.version += 1;
        self.said += 1;
        keep(&mut self.words, WORDS_KEPT, (millis(at), words));
    }

    /// The run is there now.
    pub fn enter(&mut self, phase: Phase) {
        self.version += u64::from(phase != self.phase);
        self.phase = phase;
    }

    /// The run has ended before it was complete.
    pub fn fail(&mut self) {
        self.failed = true;
        self.enter(Phase::Ended);
    }

    /// It is so late.
    pub fn pass(&mut self, now: Time) {
        if now > self.now {
            self.version += 1;
            self.now = now;
        }
    }

    /// What the nodes say of their links, and who is away: events of that come late, when it is known what was before.
    /// What those who are away said last need not be so any more; `ordered` are all links that are cut by order.
    pub fn look(
        &mut self,
        statuses: &[Status],
        away: &BTreeSet<SiteId>,
        ordered: &BTreeSet<(SiteId, SiteId)>,
    ) {
        for place in (0..self.sites.len()).map(SiteId::from_index) {
            self.set_up(place, !away.contains(&place), self.now);
        }
        let link = |status: &Status, link: &node::control::api::LinkStatus| {
            let seconds = |micros: i64| micros as f64 / 1e6;
            let measured = link.measured.map(|measured| seconds(measured.mean_us));
            Link(link.site.index(), status.site.index(), seconds(link.delay_in_us), measured)
        };
        let links = statuses.iter().flat_map(|status| status.links.iter().map(move |of| link(status, of)));
        self.links = links.filter(|link| link.3.is_some()).take(LINKS_TOLD).collect();
        let cut = |status: &Status, link: &node::control::api::LinkStatus| {
            let (here, there) = (status.site.index(), link.site.index());
            let to = link.cut_to.then_some((here, there));
            to.into_iter().chain(link.cut_from.then_some((there, here)))
        };
        let there = statuses.iter().filter(|status| !away.contains(&status.site));
        let cuts = there.flat_map(|status| status.links.iter().flat_map(move |of| cut(status, of)));
        let of_away = ordered.iter().filter(|(from, to)| away.contains(from) || away.contains(to));
        let cuts = cuts.chain(of_away.map(|(from, to)| (from.index(), to.index()))).collect();
        if cuts != self.cuts {
            self.cuts = cuts;
            self.cuts_change();
        }
    }

    fn cuts_change(&mut self) {
        self.version += 1;
        self.cuts_changed = self.version;
    }

    /// So often was each limit on beginnings of nodes hit so far.
    pub fn hit(&mut self, limits: impl Iterator<Item = (Limit, u64)>) {
        self.limits.extend(limits.map(|(limit, hits)| (limit.name(), hits)));
    }

    /// So often did each check of [`crate::audit::Audit`] fail so far.
    pub fn judge(&mut self, failed: [u64; Check::ALL.len()]) {
        self.failed_checks = failed;
    }

    /// An order was carried out.
    pub fn ordered(&mut self, given: &Given) {
        self.jobs.extend(given.job.map(|job| (job.spec.id, job)));
        match given.order {
            Order::Cut(ends) => self.cuts.extend(ends.ways().map(|(from, to)| (from.index(), to.index()))),
            Order::Restore(ends) => ends.ways().for_each(|(from, to)| {
                self.cuts.remove(&(from.index(), to.index()));
            }),
            _ => {}
        }
        self.cuts_change();
        self.say_at(given.at, format!("by order: {}", given.done));
    }

    /// Takes over an event of a site or of a driver.
    pub fn observe(&mut self, event: &Event) {
        let Event { at, site, kind } = *event;
        let here = site.index();
        if here >= self.sites.len() {
            return;
        }
        self.pass(at);
        self.events += 1;
        if let Some((_, queues)) = &mut self.queues {
            queues.observe(event);
        }
        match kind {
            EventKind::Submitted { job, .. } => {
                if let Some(known) = self.jobs.get(&job) {
                    self.so_far.submitted(known);
                }
                self.entered.entry(job).or_insert(here);
                self.wait(here, job);
            }
            EventKind::Accepted { job, from, .. } => {
                self.wait(here, job);
                self.sites[here].came += 1;
                let from = from.index();
                if from < self.sites.len() {
                    self.sites[from].went += 1;
                    self.touch(from);
                }
                self.moved += 1;
                keep(&mut self.moves, MOVES_KEPT, (from, here, job.0, millis(at)));
            }
            EventKind::Returned { job, .. } | EventKind::TookOver { job, .. } => self.wait(here, job),
            EventKind::Allocated { to, as_of, .. } => {
                self.version += 1;
                self.brokers.decided(here, to, at, as_of, self.version);
            }
            EventKind::Recalled { .. } => {
                self.version += 1;
                self.brokers.recalled(here, self.version);
            }
            EventKind::Learned { of, efficiency_millionths, .. } => {
                self.version += 1;
                self.brokers.learned(here, of, efficiency_millionths, self.version);
            }
            EventKind::Granted { job, .. } => self.leave(here, job),
            EventKind::Superseded { job, started: false, .. } => self.leave(here, job),
            EventKind::Started { job, processors, .. } => self.start(here, job, processors, at),
            EventKind::Placed { job, node } => self.place(here, job, node),
            EventKind::Paced { job, slowdown_millionths, .. } => {
                self.version += 1;
                let hundredths = i64::try_from(slowdown_millionths / 10_000).unwrap_or(i64::MAX);
                self.paces.push([i64::try_from(job.0).unwrap_or(i64::MAX), millis(at), hundredths]);
            }
            EventKind::Completed { job, .. } => {
                if self.stop(here, job, at) {
                    self.sites[here].ended += 1;
                    self.ended += 1;
                }
                self.apart.remove(&job);
                self.so_far.ended(job, at);
                self.say_quarters(at);
            }
            EventKind::PartStarted { job, processors, .. } => self.begin(here, job, processors, at, true),
            EventKind::PartCompleted { job, .. } => drop(self.stop(here, job, at)),
            EventKind::Interrupted { job, killed, .. } => {
                if killed {
                    self.stop(here, job, at);
                    self.so_far.given_up(job, at);
                } else {
                    self.interrupt(here, job, at);
                }
            }
            EventKind::Revoked { job, of, killed } => {
                if let Some(site) = self.sites.get_mut(of.index()).filter(|_| self.so_far.has_ended(job)) {
                    site.ended = site.ended.saturating_sub(1);
                    self.ended = self.ended.saturating_sub(1);
                }
                match killed {
                    true => {
                        self.forget(job);
                        self.so_far.given_up(job, at);
                    }
                    false => {
                        self.so_far.interrupted(job);
                        self.wait(here, job);
                    }
                }
            }
            EventKind::Ended { how } => {
                self.set_up(site, false, at);
                self.say_at(at, format!("{} is away ({})", self.name(site), how.name()));
            }
            EventKind::Begun { how } => {
                self.set_up(site, true, at);
                self.missed.remove(&site);
                self.say_at(at, format!("{} is there ({})", self.name(site), how.name()));
            }
            EventKind::FellBack { cause } => {
                let name = self.name(site);
                self.say_at(at, format!("the external strategy of {name} failed: {}", cause.name()));
            }
            EventKind::Dismissed {} => self.say_at(at, format!("{} is told to leave", self.name(site))),
            EventKind::Recovered { incarnation, .. } => {
                self.set_up(site, true, at);
                self.missed.remove(&site);
                let has_forgotten = restarts_of(incarnation) == 0;
                let executed = self.sites[here].running.iter();
                let executed: Vec<(JobId, bool)> = executed.map(|(&job, of)| (job, of.is_part)).collect();
                for (job, is_part) in executed {
                    match is_part {
                        // What became of its job another site says.
                        true => drop(self.stop(here, job, self.until(here, job, at))),
                        false if has_forgotten => self.interrupt(here, job, at),
                        false => {}
                    }
                }
                let how = if has_forgotten { "begins without its" } else { "goes on with its" };
                self.say_at(at, format!("{} {how} journal", self.name(site)));
            }
            EventKind::Gone { peer } => {
                self.set_up(peer, false, at);
                if self.missed.insert(peer) {
                    let words = format!("{} is gone, as {} notices first", self.name(peer), self.name(site));
                    self.say_at(at, words);
                }
            }
            EventKind::Left { peer } if self.missed.insert(peer) => {
                self.say_at(at, format!("{} leaves, as {} hears first", self.name(peer), self.name(site)));
            }
            EventKind::Orphaned { job, processors } => {
                let here = self.name(site);
                let words =
                    format!("job {job} waits at {here}: nobody who is there has {processors} processors");
                self.say_at(at, words);
            }
            _ => {}
        }
    }

    /// How far it is, four times.
    fn say_quarters(&mut self, at: Time) {
        const NAMES: [&str; 4] = ["a quarter", "half", "three quarters", "the last"];
        while self.quarters < NAMES.len() && self.ended * NAMES.len() >= self.jobs.len() * (self.quarters + 1)
        {
            let words = match NAMES[self.quarters] {
                "the last" => "the last job has ended".to_string(),
                part => format!("{part} of all jobs have ended"),
            };
            self.quarters += 1;
            self.say_at(at, words);
        }
    }

    /// Whether a site is believed to be there, as of a time.
    fn set_up(&mut self, site: SiteId, up: bool, at: Time) {
        let place = site.index();
        let Some(of) = self.sites.get_mut(place) else { return };
        let down = (!up).then(|| of.down.map_or(at, |since| since.min(at)));
        if of.down != down {
            (of.down, of.was_down) = (down, down.or(of.was_down));
            self.touch(place);
        }
    }

    /// Those who look on are told of it.
    fn touch(&mut self, place: usize) {
        self.version += 1;
        self.sites[place].changed = self.version;
    }

    fn name(&self, site: SiteId) -> String {
        self.about.sites.get(site.index()).map_or_else(|| format!("site {site}"), |about| about.name.clone())
    }

    /// Big or small by the size of its home, or from elsewhere, as in the drawings of a report: from another site than it entered
    /// at; under brokers, who send every job, than its home.
    fn class(&self, site: usize, job: JobId, processors: u32) -> usize {
        let home = self.grid.home(processors);
        let entered = self.entered.get(&job).copied().filter(|_| self.grid.brokers() == 0);
        if entered.or(home.map(|home| home.index())) != Some(site) {
            return 2;
        }
        let size = home.map_or(0, |home| self.grid.site(home).processors);
        usize::from(!self.threshold.is_big(processors, size))
    }

    fn wait(&mut self, site: usize, job: JobId) {
        self.forget(job);
        let processors = self.jobs.get(&job).map_or(1, |job| job.spec.processors);
        let class = self.class(site, job, processors);
        self.sites[site].waiting[class] += 1;
        self.waits.insert(job, (site, class));
        self.touch(site);
    }

    fn leave(&mut self, site: usize, job: JobId) {
        if self.waits.get(&job).is_some_and(|&(at, _)| at == site) {
            self.forget(job);
        }
    }

    fn forget(&mut self, job: JobId) {
        if let Some((site, class)) = self.waits.remove(&job) {
            self.sites[site].waiting[class] -= 1;
            self.touch(site);
        }
    }

    fn start(&mut self, site: usize, job: JobId, processors: u32, at: Time) {
        let waits_at = self.waits.get(&job).map(|&(at, _)| at);
        let is_broker = |place: usize| self.grid.is_broker(SiteId::from_index(place));
        match waits_at.filter(|&place| self.grid.spreads() && place != site && is_broker(place)) {
            // It starts in parts, from the queue of its broker.
            Some(broker) => {
                self.apart.insert(job, broker);
                self.forget(job);
            }
            None => self.leave(site, job),
        }
        self.so_far.started(job, at);
        self.begin(site, job, processors, at, false);
    }

    /// A job, or a part of one, holds processors of a site.
    fn begin(&mut self, site: usize, job: JobId, processors: u32, at: Time, is_part: bool) {
        let class = self.class(site, job, processors);
        let home = self.grid.home(processors).map_or(site, |home| home.index());
        let known =
            self.jobs.get(&job).map(|job| (job.spec.submit, job.spec.origin.index(), job.spec.labels.user));
        let (submit, origin, user) = known.unwrap_or((at, site, -1));
        let wait = at.since(submit).max(Span::ZERO).as_micros() / 1000;
        let here = &mut self.sites[site];
        let (first, count, start) = (0, 0, millis(at));
        let bar =
            Bar { site, first, count, start, end: None, class, job, wait, processors, origin, home, user };
        let mut execution = Execution { start: at, class, is_part, bars: Vec::new(), bar };
        // On shared nodes it is said of each task where it is.
        let runs = if here.places.is_some() { Vec::new() } else { here.free.take(processors) };
        for (first, count) in runs {
            here.busy[class] += count;
            execution.bars.push(self.bars.len());
            self.bars.push(Bar { first, count, ..bar });
        }
        here.running.insert(job, execution);
        self.touch(site);
    }

    /// A task of a job that has started is on a node.
    fn place(&mut self, site: usize, job: JobId, node: u32) {
        let SiteNow { places, running, busy, .. } = &mut self.sites[site];
        let (Some(places), Some(execution)) = (places, running.get_mut(&job)) else { return };
        if let Some(first) = places.take(node) {
            busy[execution.class] += 1;
            execution.bars.push(self.bars.len());
            self.bars.push(Bar { first, count: 1, ..execution.bar });
        }
        self.touch(site);
    }

    /// Whether it ran.
    fn stop(&mut self, site: usize, job: JobId, at: Time) -> bool {
        let here = &mut self.sites[site];
        let Some(execution) = here.running.remove(&job) else { return false };
        for place in execution.bars {
            let bar = &mut self.bars[place];
            bar.end = Some(millis(at));
            here.busy[execution.class] -= bar.count;
            match &mut here.places {
                Some(places) => places.give(bar.first),
                None => here.free.give(bar.first, bar.count),
            }
            self.ends.push(place);
        }
        self.touch(site);
        true
    }

    /// A job that ran waits again. It ran until its site went away, if it did: that is heard of later.
    fn interrupt(&mut self, site: usize, job: JobId, at: Time) {
        self.stop(site, job, self.until(site, job, at));
        self.so_far.interrupted(job);
        let waits_at = self.apart.remove(&job).unwrap_or(site);
        self.wait(waits_at, job);
    }

    /// Until when a job executed at a site that says so now.
    fn until(&self, site: usize, job: JobId, now: Time) -> Time {
        let here = &self.sites[site];
        let down = here.was_down.zip(here.running.get(&job)).filter(|(down, of)| *down >= of.start);
        down.map_or(now, |(down, _)| down.min(now))
    }

    /// Trace time of the latest event or look.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Everything as of now in numbers.
    pub fn figures(&self) -> Figures {
        let [waiting, running, over] = self.so_far.counts();
        let lost = self.so_far.lost();
        let there = self.sites.iter().filter(|site| site.down.is_none()).count() as u64;
        Figures {
            phase: self.phase,
            failed: self.failed,
            jobs: [waiting, running, over - lost, lost],
            ratio: self.so_far.ratio(self.now),
            bound: self.so_far.bound(),
            now: self.now,
            events: self.events,
            failed_checks: Check::ALL.into_iter().zip(self.failed_checks).collect(),
            sites: [there, self.sites.len() as u64 - there],
            limits: self.limits.clone(),
        }
    }

    /// The links at the last look.
    pub fn links(&self) -> &[Link] {
        &self.links
    }
}

fn millis(at: Time) -> i64 {
    at.as_micros() / 1000
}

#[cfg(test)]
mod tests;
