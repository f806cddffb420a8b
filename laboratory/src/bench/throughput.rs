//! What a journal costs on this machine: the same run with and without one, and a restart after `kill -9`.
//!
//! Nodes are processes and journals are files, as in a run. Nothing here says what is cheap enough; see the command
//! `bench journal`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use node::config::{NodeConfig, SiteEntry};
use node::journal::Durability;
use operation::fleet::Fleet;
use operation::spawn::SpawnOrder;
use rustix::process::{Pid, Signal, kill_process};
use scheduler::{EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

/// Seconds of trace time in a second. High, so that the nodes do nothing but work.
pub(super) const FACTOR: f64 = 1000.0;
/// Processors of both sites: the second is larger, so it steals from the first. As many as in small logs of the
/// archive; some 14 and 28 jobs run at once.
const PROCESSORS: [u32; 2] = [64, 128];
/// Of this many jobs the first site gets all but one. Seldom: jobs that wait at the second site go to the first at
/// once, and more than fit into its outbox would have to be sent again.
const SHARE: u64 = 64;
/// From the order to the start, on the wall clock.
pub(super) const LEAD: Duration = Duration::from_millis(300);
/// Ample on a loaded machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at nodes that work: seldom, for looking is work for them.
const POLL: Duration = Duration::from_millis(20);

/// How nodes are started, and where they keep files.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The program that runs as a node.
    pub program: PathBuf,
    /// Arguments before those of the node.
    pub arguments: Vec<String>,
    /// An empty folder for journals and logs.
    pub folder: PathBuf,
}

/// What the nodes have to do.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Jobs of the run.
    pub jobs: u64,
    /// Of them in a second of the wall clock.
    pub rate: u32,
    /// The strategy, as in `st:50`.
    pub strategy: String,
}

/// What one run did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throughput {
    /// Jobs in a second of the wall clock, from the start until all jobs have ended and all events are collected.
    pub jobs_per_second: f64,
    /// Processor time of both nodes for each job, with the hand-over.
    pub processor_time: Duration,
    /// The part of the time from the start on in which the busiest thread of a node used a processor or waited for one
    /// that others had. Near 1 it is the bound.
    pub saturation: f64,
    /// The part in which it waited for one.
    pub contention: f64,
    /// Messages that did not fit into a queue. With any, the nodes waited for repetitions, and the run says nothing.
    pub lost: u64,
    /// Jobs that ended at another site than they were submitted at.
    pub stolen: u64,
    /// Bytes of both journals at the end, with write-ahead logs; 0 without.
    pub journal_bytes: u64,
    /// Writes to both journals.
    pub commits: u64,
}

/// Runs jobs without run times on two sites: with a journal or without. As in a run they are handed over before the
/// start, and events are collected meanwhile. No message is delayed.
///
/// # Errors
/// If the nodes do not run or do something else.
pub(super) fn throughput(
    place: &Place,
    load: &Load,
    durability: Option<Durability>,
) -> anyhow::Result<Throughput> {
    let of_site =
        |site| NodeConfig { strategy: load.strategy.clone(), ..config(&place.folder, site, durability) };
    let configs: Vec<NodeConfig> = [1, 2].into_iter().map(of_site).collect();
    let mut fleet = Fleet::spawn_each(&place.order(), &configs)?;
    fleet.wait_ready(PATIENCE)?;
    let jobs: Vec<TimedJob> = (1..=load.jobs).map(|id| short_job(id, load.rate)).collect();
    let before = Use::of(&fleet)?;
    fleet.feed(&jobs, |job| job.spec.origin)?;
    fleet.start(FACTOR, Time::ZERO, LEAD)?;
    std::thread::sleep(LEAD);
    let (begun, at_start) = (Instant::now(), Use::of(&fleet)?);
    let (mut ended, mut stolen, mut lost) = (0, 0, 0);
    while ended < jobs.len() {
        ensure!(begun.elapsed() < PATIENCE, "{ended} of {} jobs ended within {PATIENCE:?}", jobs.len());
        std::thread::sleep(POLL);
        fleet.take_events(&mut |event| match event.kind {
            EventKind::Completed { job, .. } => {
                ended += 1;
                stolen += u64::from(event.site != jobs[job.0 as usize - 1].spec.origin);
            }
            EventKind::Lost { .. } => lost += 1,
            _ => {}
        })?;
    }
    let wall = begun.elapsed();
    let at_end = Use::of(&fleet)?;
    let mut commits = 0;
    for client in fleet.clients() {
        commits += series(&client.metrics()?, "stealgrid_journal_commits_total{").unwrap_or(0.0) as u64;
    }
    let journal_bytes = configs.iter().filter_map(|config| config.data_dir.as_deref()).map(bytes_of).sum();
    fleet.stop(PATIENCE)?;
    let part = |time: Duration| time.as_secs_f64() / wall.as_secs_f64();
    let busiest = at_end.iter().map(|(thread, end)| end.since(at_start.get(thread)));
    let busiest = busiest.max_by_key(|used| used.ran + used.waited).context("there is a node")?;
    let ran: Duration = at_end.iter().map(|(thread, end)| end.since(before.get(thread)).ran).sum();
    Ok(Throughput {
        jobs_per_second: jobs.len() as f64 / wall.as_secs_f64(),
        processor_time: ran / u32::try_from(jobs.len())?,
        saturation: part(busiest.ran + busiest.waited),
        contention: part(busiest.waited),
        lost,
        stolen,
        journal_bytes,
        commits,
    })
}

/// What one restart took, on the wall clock.
#[derive(Clone, Debug)]
pub(super) struct Restart {
    /// From starting the process to its ready line.
    pub ready: Duration,
    /// From there to the answer of `/status`: the event loop serves.
    pub serves: Duration,
    /// From starting the process until both nodes are connected again.
    pub connected: Duration,
    /// What the node says of its parts: name and time.
    pub steps: Vec<(String, Duration)>,
    /// Jobs that wait in the queue.
    pub waiting: usize,
    /// Events that the node has in its journal.
    pub events: u64,
    /// Bytes of the journal, with its write-ahead log.
    pub journal_bytes: u64,
}

/// Kills a node with so many `queued` jobs, after it has run `history` others, and starts it again.
///
/// # Errors
/// If the nodes do not run or do something else.
pub(super) fn restart(place: &Place, queued: u64, history: u64) -> anyhow::Result<Restart> {
    let configs: Vec<NodeConfig> =
        [1, 2].into_iter().map(|site| config(&place.folder, site, Some(Durability::Process))).collect();
    let mut fleet = Fleet::spawn_each(&place.order(), &configs)?;
    fleet.wait_ready(PATIENCE)?;
    let past: Vec<TimedJob> =
        (1..=history).map(|id| TimedJob { ..job(id, SiteId(1), 1, Time::ZERO, Span::ZERO) }).collect();
    fleet.feed(&past, |job| job.spec.origin)?;
    fleet.start(FACTOR, Time::ZERO, LEAD)?;
    finish(&mut fleet, history)?;
    let now = occupy(&mut fleet, history + 1)?;
    queue(&mut fleet, now, history + 3, queued)?;

    let process = fleet.process_ids().next().context("there is a node")?;
    kill_process(Pid::from_raw(i32::try_from(process)?).context("a process has an id")?, Signal::KILL)?;
    // The kernel may take a moment to end the process; starting it is not measured before.
    let dead = Instant::now();
    let (mut begun, mut ready) = (dead, Duration::ZERO);
    while ready == Duration::ZERO {
        ensure!(dead.elapsed() < PATIENCE, "the node does not end");
        begun = Instant::now();
        if !fleet.restart_ended(true)?.begun.is_empty() {
            ready = begun.elapsed();
        }
    }
    let asked = Instant::now();
    let client = fleet.clients().next().context("there is a node")?.clone();
    let status = client.status()?;
    let serves = asked.elapsed();
    fleet.wait_ready(PATIENCE)?;
    let connected = begun.elapsed();
    let page = client.metrics()?;
    let steps = page.lines().filter_map(step).collect();
    let journal_bytes = configs[0].data_dir.as_deref().map_or(0, bytes_of);
    Ok(Restart {
        ready,
        serves,
        connected,
        steps,
        waiting: status.outstanding.waiting,
        events: status.events,
        journal_bytes,
    })
}

impl Place {
    pub(super) fn order(&self) -> SpawnOrder {
        let Place { program, arguments, folder } = self.clone();
        SpawnOrder { program, arguments, folder }
    }
}

/// Starts one job for ever at each site, so that nothing else starts and nobody steals; they have this number and the
/// next. Trace time before.
pub(super) fn occupy(fleet: &mut Fleet, first: u64) -> anyhow::Result<Time> {
    let now =
        Time::from_micros(fleet.statuses()?.iter().map(|status| status.trace_time_us).max().unwrap_or(0));
    let long = |id, site: u32| {
        job(id, SiteId(site), PROCESSORS[site as usize - 1], now, Span::from_secs(1_000_000_000))
    };
    fleet.feed(&[long(first, 1), long(first + 1, 2)], |job| job.spec.origin)?;
    wait_for(fleet, |running, _| running == [1, 1])?;
    Ok(now)
}

/// Submits so many jobs at the first site, which is occupied, from this number on.
pub(super) fn queue(fleet: &mut Fleet, now: Time, first: u64, jobs: u64) -> anyhow::Result<()> {
    let waiting: Vec<TimedJob> = (0..jobs)
        .map(|place| job(first + place, SiteId(1), 1 + (place % 64) as u32, now, Span::from_secs(60)))
        .collect();
    fleet.feed(&waiting, |job| job.spec.origin)?;
    wait_for(fleet, |_, waiting| waiting[0] as u64 == jobs)
}

/// Waits until so many jobs have ended and nothing moves.
fn finish(fleet: &mut Fleet, jobs: u64) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !fleet.is_finished(jobs)? {
        ensure!(begun.elapsed() < PATIENCE, "the jobs did not end within {PATIENCE:?}");
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Waits until the numbers of running and of waiting jobs are what they should be.
fn wait_for(fleet: &mut Fleet, reached: impl Fn(&[usize], &[usize]) -> bool) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let statuses = fleet.statuses()?;
        let running: Vec<usize> = statuses.iter().map(|status| status.outstanding.running).collect();
        let waiting: Vec<usize> = statuses.iter().map(|status| status.outstanding.waiting).collect();
        if reached(&running, &waiting) {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "running {running:?}, waiting {waiting:?} after {PATIENCE:?}");
        std::thread::sleep(POLL);
    }
}

pub(super) fn config(folder: &Path, site: u32, durability: Option<Durability>) -> NodeConfig {
    let entry =
        |(index, processors): (usize, &u32)| SiteEntry::new(format!("site{}", index + 1), *processors);
    let mut config = NodeConfig::new(SiteId(site), PROCESSORS.iter().enumerate().map(entry).collect());
    // Two seconds on the wall clock: ample for an answer.
    config.options.retry = Some(Span::from_secs(2 * FACTOR as i64));
    if let Some(durability) = durability {
        config.data_dir = Some(folder.join(format!("data{site}")));
        config.durability = durability;
    }
    config
}

/// A job that ends when it starts, one of so many in a second of the wall clock.
fn short_job(id: u64, rate: u32) -> TimedJob {
    let origin = if id.is_multiple_of(SHARE) { SiteId(2) } else { SiteId(1) };
    let submit = Time::from_micros((id as f64 / f64::from(rate) * FACTOR * 1e6) as i64);
    job(id, origin, 1 + (id % 8) as u32, submit, Span::ZERO)
}

fn job(id: u64, origin: SiteId, processors: u32, submit: Time, run_time: Span) -> TimedJob {
    let requested = run_time.max(Span::from_secs(1));
    let spec =
        JobSpec { id: JobId(id), submit, processors, requested, labels: Labels::UNKNOWN, origin, payload: 0 };
    TimedJob { spec, run_time }
}

/// What a thread has had of processors.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    ran: Duration,
    /// Could have run, and others did.
    waited: Duration,
}

impl Use {
    /// Of all threads of all nodes so far.
    fn of(fleet: &Fleet) -> anyhow::Result<BTreeMap<OsString, Use>> {
        let mut all = BTreeMap::new();
        for process in fleet.process_ids() {
            for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
                let thread = thread?;
                // It may end meanwhile.
                let Ok(text) = std::fs::read_to_string(thread.path().join("schedstat")) else { continue };
                let mut nanos = text.split_whitespace().filter_map(|field| field.parse().ok());
                let mut next = || Duration::from_nanos(nanos.next().unwrap_or(0));
                all.insert(thread.file_name(), Use { ran: next(), waited: next() });
            }
        }
        Ok(all)
    }

    fn since(&self, earlier: Option<&Use>) -> Use {
        let earlier = earlier.copied().unwrap_or_default();
        Use { ran: self.ran.saturating_sub(earlier.ran), waited: self.waited.saturating_sub(earlier.waited) }
    }
}

/// Bytes of all files of a directory; 0 if there is none.
fn bytes_of(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// The value of a series without labels but the site.
fn series(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.starts_with(name))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// One step of a restart, from a line of the page of metrics.
fn step(line: &str) -> Option<(String, Duration)> {
    let rest = line.strip_prefix("stealgrid_restart_seconds{")?;
    let (labels, value) = rest.split_once("} ")?;
    let name = labels.split("step=\"").nth(1)?.split('"').next()?;
    Some((name.to_string(), Duration::try_from_secs_f64(value.parse().ok()?).ok()?))
}
