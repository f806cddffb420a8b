//! The jobs of one site as commands: which run, and which have ended. How they are run is in [`super::process`] and [`super::slurm`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use scheduler::event::{BatchState, ExitCause};
use scheduler::{JobId, JobSpec, Span};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::exit::Exit;
use super::hold;
use super::process::{self, Held};
use super::settings::{By, Settings, wall_time};
use super::slurm::{Clerk, Load, Ticket, What};
use super::words::Known;
use crate::private;

/// Variables of the node that a job gets, if they are set.
const ENVIRONMENT: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];
/// Ends that nobody has looked at yet; more wait in their threads.
const ENDS_MAX: usize = 1024;
/// How long the end of a node waits for its jobs to be gone.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(10);
/// How long a node that restarts waits for Slurm to say what it has left there; then it ends, and may be started again.
const KEEP_PATIENCE: Duration = Duration::from_secs(60);

/// One execution of a job, of all of this process.
type Attempt = u64;

/// A job that was started and not launched.
#[derive(Debug)]
struct Waiting {
    attempt: Attempt,
    job: JobSpec,
    run_time: Span,
}

/// A job that executes.
#[derive(Debug)]
struct Running {
    attempt: Attempt,
    /// None until it is launched, and where it is no process of this machine.
    held: Option<Held>,
    launched: bool,
}

#[derive(Debug)]
enum News {
    Of { job: JobId, attempt: Attempt, what: What },
    Foreign(u32),
}

/// What the site is to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Begun(JobId),
    Withdrawn(JobId),
    Said(JobId, BatchState),
    Ended(JobId, Exit),
    Foreign(u32),
}

/// Jobs of a site that are commands.
#[derive(Debug)]
pub(super) struct Commands {
    settings: Settings,
    site: String,
    folder: PathBuf,
    attempts: Attempt,
    waiting: Vec<Waiting>,
    running: BTreeMap<JobId, Running>,
    /// Those that wait in Slurm, whose queue is the site's, and whether it has started them.
    queued: BTreeMap<JobId, (Attempt, bool)>,
    /// Launched and not heard of, with those that were stopped.
    launched: u64,
    news: mpsc::Receiver<News>,
    sender: mpsc::Sender<News>,
    /// The next, if it has come.
    next: Option<News>,
    /// Ends of jobs that Slurm has started and the site not yet.
    early: BTreeMap<JobId, News>,
    /// Those of them that the site has started since.
    ready: VecDeque<News>,
    /// Who talks to Slurm, if anybody does.
    clerk: Option<Clerk>,
}

impl Commands {
    pub(super) fn new(settings: &Settings, site: &str) -> Commands {
        let (sender, news) = mpsc::channel(ENDS_MAX);
        Commands {
            settings: settings.clone(),
            site: site.to_string(),
            folder: settings.folder.clone().expect("a configuration without a place for output is refused"),
            attempts: 0,
            waiting: Vec::new(),
            running: BTreeMap::new(),
            queued: BTreeMap::new(),
            launched: 0,
            news,
            sender,
            next: None,
            early: BTreeMap::new(),
            ready: VecDeque::new(),
            clerk: None,
        }
    }

    /// Gets ready; these executed when the last process of this node ended.
    pub(super) fn begin(&mut self, executing: BTreeSet<JobId>, processors: u32) -> io::Result<()> {
        if self.settings.by == By::Process && self.settings.memory_bytes.is_some() {
            tracing::info!(
                "memory is limited for each process of a job, and not for a whole job: that would need cgroups, which are not used"
            );
        }
        if self.settings.by.is_slurm() {
            let sender = self.sender.clone();
            let hears = Box::new(move |foreign| drop(sender.blocking_send(News::Foreign(foreign))));
            let load = self.is_queue().then_some(Load { processors, hears });
            let clerk = Clerk::begin(&self.settings.slurm, &self.site, &self.folder, executing, load)?;
            self.clerk = Some(clerk);
        }
        Ok(())
    }

    /// Whether the queue of the site is Slurm's.
    pub(super) fn is_queue(&self) -> bool {
        self.settings.by == By::SlurmQueue
    }

    /// Whether jobs of the last process of this node may still execute.
    pub(super) fn may_have_left_some(&self) -> bool {
        self.clerk.is_some()
    }

    /// Has everything cancelled that the last process of this node has left, but what was started again; until it is gone.
    pub(super) async fn keep_started(&mut self) -> Result<(), String> {
        let Some(clerk) = &self.clerk else { return Ok(()) };
        let kept = self.running.keys().chain(self.queued.keys());
        let answered = clerk.keep(kept.copied().collect());
        match tokio::time::timeout(KEEP_PATIENCE, answered).await {
            Ok(Ok(kept)) => kept,
            Ok(Err(_)) => Err("nobody talks to Slurm any more".to_string()),
            Err(_) => {
                Err(format!("Slurm did not say within {KEEP_PATIENCE:?} what this node has left there"))
            }
        }
    }

    pub(super) fn start(&mut self, job: &JobSpec, run_time: Span) {
        if let Some((attempt, _)) = self.queued.remove(&job.id) {
            self.ready.extend(self.early.remove(&job.id));
            self.running.insert(job.id, Running { attempt, held: None, launched: true });
            return;
        }
        self.attempts += 1;
        let attempt = self.attempts;
        self.running.insert(job.id, Running { attempt, held: None, launched: false });
        self.waiting.push(Waiting { attempt, job: *job, run_time });
    }

    pub(super) fn has_to_launch(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn launch(&mut self, factor: f64) {
        for Waiting { attempt, job, run_time } in std::mem::take(&mut self.waiting) {
            // It may have been stopped, and started again, before it ever ran.
            if self.running.get(&job.id).is_none_or(|running| running.attempt != attempt) {
                continue;
            }
            let held = self.send_off(attempt, &job, run_time, factor, false);
            if let Some(running) = self.running.get_mut(&job.id) {
                (running.launched, running.held) = (true, held);
            }
        }
    }

    /// Has a job join the queue of Slurm.
    pub(super) fn queue(&mut self, job: &JobSpec, run_time: Span, factor: f64) {
        self.attempts += 1;
        self.queued.insert(job.id, (self.attempts, false));
        self.send_off(self.attempts, job, run_time, factor, false);
    }

    /// Has a job leave the queue of Slurm, unless it starts before. True if it is not there; `may_be` if the last process of this node
    /// may have left it there.
    pub(super) fn withdraw(&mut self, job: &JobSpec, run_time: Span, factor: f64, may_be: bool) -> bool {
        let attempt = match self.queued.get(&job.id) {
            Some(&(attempt, _)) => attempt,
            None if may_be => {
                self.attempts += 1;
                self.queued.insert(job.id, (self.attempts, false));
                self.send_off(self.attempts, job, run_time, factor, true);
                self.attempts
            }
            None => return true,
        };
        if let Some(clerk) = &self.clerk {
            clerk.withdraw(attempt);
        }
        false
    }

    /// The jobs that wait in Slurm, as far as is known.
    pub(super) fn queued(&self) -> impl Iterator<Item = JobId> + '_ {
        self.queued.keys().copied()
    }

    /// Has a command run.
    fn send_off(
        &mut self,
        attempt: Attempt,
        job: &JobSpec,
        run_time: Span,
        factor: f64,
        looks: bool,
    ) -> Option<Held> {
        let (sender, number) = (self.sender.clone(), job.id);
        let hears = move |what| {
            // An error means that the node has ended.
            let _ = sender.blocking_send(News::Of { job: number, attempt, what });
        };
        let told = told(&self.settings, &self.site, &self.folder, job, run_time, factor);
        let begun = told.and_then(|told| match &self.clerk {
            Some(clerk) => {
                let (processors, job, hears) = (job.processors, job.id, Box::new(hears));
                clerk.submit(Ticket { attempt, job, processors, told, looks, hears });
                Ok(None)
            }
            None => process::begin(&told, move |exit| hears(What::Ended(exit))).map(Some),
        });
        self.launched += 1;
        begun.unwrap_or_else(|error| {
            let why = Some(format!("it cannot be started: {error}"));
            let what = What::Ended(Exit { how: ExitCause::NotStarted, code: None, why });
            let (sender, news) = (self.sender.clone(), News::Of { job: job.id, attempt, what });
            // There may be no room for it now, and whoever makes room is the caller.
            tokio::spawn(async move { drop(sender.send(news).await) });
            None
        })
    }

    /// Kills it; of its end nobody hears.
    pub(super) fn stop(&mut self, job: JobId) {
        let queued = self.queued.remove(&job).map(|(attempt, _)| attempt);
        self.early.remove(&job);
        let running = self.running.remove(&job);
        let launched = running.as_ref().filter(|running| running.launched).map(|running| running.attempt);
        if queued.is_none() && running.is_none() {
            return;
        }
        tracing::info!(job = job.0, "a command is killed: its job executes here no longer");
        if let (Some(clerk), Some(attempt)) = (&self.clerk, queued.or(launched)) {
            clerk.cancel(attempt);
        }
    }

    /// Until there is something that the site is to know.
    pub(super) async fn ended(&mut self) {
        while self.next.is_none() && self.ready.is_empty() {
            // The sender that is here keeps it open.
            let Some(news) = self.news.recv().await else { return };
            self.hear(news);
        }
    }

    /// Whether an execution is one that the site knows of.
    fn knows(&self, job: JobId, attempt: Attempt) -> bool {
        let runs = self.running.get(&job).is_some_and(|running| running.attempt == attempt);
        runs || self.queued.get(&job).is_some_and(|(queued, _)| *queued == attempt)
    }

    fn hear(&mut self, news: News) {
        if let News::Of { job, attempt, what } = &news {
            self.launched -= u64::from(matches!(what, What::Ended(_) | What::Withdrawn));
            if !self.knows(*job, *attempt) {
                return;
            }
        }
        self.next = Some(news);
    }

    /// What the site is to know next.
    pub(super) fn pop(&mut self) -> Option<Told> {
        loop {
            let Some(news) = self.ready.pop_front().or_else(|| self.next.take()) else {
                let news = self.news.try_recv().ok()?;
                self.hear(news);
                continue;
            };
            let (job, attempt, what) = match news {
                News::Foreign(processors) => return Some(Told::Foreign(processors)),
                News::Of { job, attempt, what } => (job, attempt, what),
            };
            // One that waits may have been stopped meanwhile.
            if !self.knows(job, attempt) {
                continue;
            }
            let waits = self.queued.get_mut(&job);
            return Some(match (what, waits) {
                (What::Said(state), _) => Told::Said(job, state),
                (What::Withdrawn, _) => {
                    self.queued.remove(&job);
                    Told::Withdrawn(job)
                }
                (What::Begun, Some((_, begun))) if !*begun => {
                    *begun = true;
                    Told::Begun(job)
                }
                (What::Begun, _) => continue,
                // Whatever ended began before.
                (what @ What::Ended(_), Some((_, begun))) if !*begun => {
                    *begun = true;
                    self.next = Some(News::Of { job, attempt, what });
                    Told::Begun(job)
                }
                // The site has no room for it yet, as it has not heard of an end before.
                (what @ What::Ended(_), Some(_)) => {
                    self.early.insert(job, News::Of { job, attempt, what });
                    continue;
                }
                (What::Ended(exit), None) => {
                    self.running.remove(&job);
                    tell_of(job, attempt, &exit);
                    Told::Ended(job, exit)
                }
            });
        }
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) async fn shutdown(&mut self) {
        let jobs = self.running.len() + self.queued.len();
        if jobs > 0 {
            tracing::info!(jobs, "the node ends, and its commands are killed");
        }
        self.waiting.clear();
        self.running.clear();
        self.queued.clear();
        self.clerk = None;
        let deadline = Instant::now() + SHUTDOWN_PATIENCE;
        while self.launched > 0 {
            match tokio::time::timeout_at(deadline, self.news.recv()).await {
                Ok(Some(news)) => self.hear(news),
                _ => {
                    tracing::warn!(
                        jobs = self.launched,
                        "commands are not gone yet; whoever holds them kills them"
                    );
                    return;
                }
            }
        }
    }
}

fn tell_of(job: JobId, attempt: Attempt, exit: &Exit) {
    let Exit { how, code, why } = exit;
    match (how, code) {
        (ExitCause::Exit, Some(0)) => tracing::debug!(job = job.0, attempt, "a command has ended"),
        _ => tracing::warn!(job = job.0, attempt, how = how.name(), code, why, "a command has failed"),
    }
}

/// What the holder of a job is told.
fn told(
    settings: &Settings,
    site: &str,
    folder: &Path,
    job: &JobSpec,
    run_time: Span,
    factor: f64,
) -> io::Result<hold::Told> {
    private::make_folder(folder)?;
    let known = Known {
        job,
        run_time: wall_time(run_time, factor),
        requested: wall_time(job.requested, factor),
        site,
    };
    let words = known.words(&settings.command).map_err(io::Error::other)?;
    let of_node = ENVIRONMENT.iter().copied().chain(settings.environment.iter().map(String::as_str));
    let mut environment: Vec<(String, String)> =
        of_node.filter_map(|name| Some((name.to_string(), std::env::var(name).ok()?))).collect();
    let own = [
        ("STEALGRID_JOB", job.id.to_string()),
        ("STEALGRID_PROCESSORS", job.processors.to_string()),
        ("STEALGRID_SITE", site.to_string()),
    ];
    environment.extend(own.map(|(name, value)| (name.to_string(), value)));
    let wall_millis =
        settings.wall.of(job, factor).map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
    let (output, errors) = files(folder, job.id);
    Ok(hold::Told {
        words,
        environment,
        output,
        errors,
        output_bytes: settings.output_bytes,
        nice: settings.nice,
        memory_bytes: settings.memory_bytes,
        wall_millis,
    })
}

/// Where the output of the next execution of a job goes: one that was killed keeps its own.
fn files(folder: &Path, job: JobId) -> (PathBuf, PathBuf) {
    let named = |again: u64, end: &str| match again {
        1 => folder.join(format!("{job}.{end}")),
        again => folder.join(format!("{job}.again{again}.{end}")),
    };
    let free = (1..).find(|&again| !named(again, "out").exists()).unwrap_or(u64::MAX);
    (named(free, "out"), named(free, "err"))
}
