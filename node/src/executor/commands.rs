//! The jobs of one site as commands: which run, and which have ended. How they are run is in [`super::process`] and [`super::slurm`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use scheduler::event::ExitCause;
use scheduler::{JobId, JobSpec, Span};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::exit::Exit;
use super::hold::Told;
use super::process::{self, Held};
use super::settings::{By, Settings, wall_time};
use super::slurm::{Clerk, Ticket};
use super::words::Known;
use crate::private;

/// Variables of the node that a job gets, if they are set.
const ENVIRONMENT: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];
/// Ends that nobody has looked at yet; more wait in their threads.
const ENDS_MAX: usize = 1024;
/// How long the end of a node waits for its jobs to be gone.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(10);
/// How long a node that begins again waits for Slurm to say what it has left there; then it ends, and may be started again.
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
struct Ended {
    job: JobId,
    attempt: Attempt,
    exit: Exit,
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
    /// Launched and not heard of, with those that were stopped.
    launched: u64,
    ends: mpsc::Receiver<Ended>,
    sender: mpsc::Sender<Ended>,
    /// The next one, if it has come.
    ended: Option<Ended>,
    /// Who talks to Slurm, if anybody does.
    clerk: Option<Clerk>,
}

impl Commands {
    pub(super) fn new(settings: &Settings, site: &str) -> Commands {
        let (sender, ends) = mpsc::channel(ENDS_MAX);
        Commands {
            settings: settings.clone(),
            site: site.to_string(),
            folder: settings.folder.clone().expect("a configuration without a place for output is refused"),
            attempts: 0,
            waiting: Vec::new(),
            running: BTreeMap::new(),
            launched: 0,
            ends,
            sender,
            ended: None,
            clerk: None,
        }
    }

    /// Gets ready; these executed when the last process of this node ended.
    pub(super) fn begin(&mut self, executing: BTreeSet<JobId>) -> io::Result<()> {
        if self.settings.by == By::Slurm {
            self.clerk = Some(Clerk::begin(&self.settings.slurm, &self.site, &self.folder, executing)?);
        }
        Ok(())
    }

    /// Whether jobs of the last process of this node may still execute.
    pub(super) fn may_have_left_some(&self) -> bool {
        self.clerk.is_some()
    }

    /// Has everything cancelled that the last process of this node has left, but what was started again; until it is gone.
    pub(super) async fn keep_started(&mut self) -> Result<(), String> {
        let Some(clerk) = &self.clerk else { return Ok(()) };
        let answered = clerk.keep(self.running.keys().copied().collect());
        match tokio::time::timeout(KEEP_PATIENCE, answered).await {
            Ok(Ok(kept)) => kept,
            Ok(Err(_)) => Err("nobody talks to Slurm any more".to_string()),
            Err(_) => {
                Err(format!("Slurm did not say within {KEEP_PATIENCE:?} what this node has left there"))
            }
        }
    }

    pub(super) fn start(&mut self, job: &JobSpec, run_time: Span) {
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
            let Some(running) = self.running.get_mut(&job.id).filter(|running| running.attempt == attempt)
            else {
                continue;
            };
            let sender = self.sender.clone();
            let over = move |exit| {
                // An error means that the node has ended.
                let _ = sender.blocking_send(Ended { job: job.id, attempt, exit });
            };
            let told = told(&self.settings, &self.site, &self.folder, &job, run_time, factor);
            let begun = told.and_then(|told| match &self.clerk {
                Some(clerk) => {
                    let (processors, job) = (job.processors, job.id);
                    clerk.submit(Ticket { attempt, job, processors, told, over: Box::new(over) });
                    Ok(None)
                }
                None => process::begin(&told, over).map(Some),
            });
            running.launched = true;
            match begun {
                Ok(held) => {
                    tracing::debug!(job = job.id.0, attempt, "a command begins");
                    running.held = held;
                    self.launched += 1;
                }
                Err(error) => {
                    let why = Some(format!("it cannot be started: {error}"));
                    let exit = Exit { how: ExitCause::NotStarted, code: None, why };
                    self.launched += 1;
                    let (sender, ended) = (self.sender.clone(), Ended { job: job.id, attempt, exit });
                    // There may be no room for it now, and whoever makes room is the caller.
                    tokio::spawn(async move { drop(sender.send(ended).await) });
                }
            }
        }
    }

    /// Kills it; of its end nobody hears.
    pub(super) fn stop(&mut self, job: JobId) {
        let Some(stopped) = self.running.remove(&job) else { return };
        tracing::info!(job = job.0, "a command is killed: its job executes here no longer");
        if let Some(clerk) = self.clerk.as_ref().filter(|_| stopped.launched) {
            clerk.cancel(stopped.attempt);
        }
    }

    /// Until a job has ended that nobody stopped.
    pub(super) async fn ended(&mut self) {
        while self.ended.is_none() {
            // The sender that is here keeps it open.
            let Some(ended) = self.ends.recv().await else { return std::future::pending().await };
            self.hear(ended);
        }
    }

    fn hear(&mut self, ended: Ended) {
        self.launched -= 1;
        let is_known = self.running.get(&ended.job).is_some_and(|running| running.attempt == ended.attempt);
        if is_known {
            self.ended = Some(ended);
        }
    }

    /// A job that has ended.
    pub(super) fn pop(&mut self) -> Option<(JobId, Exit)> {
        let Ended { job, attempt, exit } = loop {
            // One that waits may have been stopped meanwhile.
            let runs =
                |ended: &Ended| self.running.get(&ended.job).is_some_and(|job| job.attempt == ended.attempt);
            if let Some(ended) = self.ended.take().filter(runs) {
                break ended;
            }
            let ended = self.ends.try_recv().ok()?;
            self.hear(ended);
        };
        self.running.remove(&job);
        let Exit { how, code, why } = &exit;
        match (how, code) {
            (ExitCause::Exit, Some(0)) => tracing::debug!(job = job.0, attempt, "a command has ended"),
            _ => tracing::warn!(job = job.0, attempt, how = how.name(), code, why, "a command has failed"),
        }
        Some((job, exit))
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) async fn shutdown(&mut self) {
        if !self.running.is_empty() {
            tracing::info!(jobs = self.running.len(), "the node ends, and its commands are killed");
        }
        self.waiting.clear();
        self.running.clear();
        self.clerk = None;
        let deadline = Instant::now() + SHUTDOWN_PATIENCE;
        while self.launched > 0 {
            match tokio::time::timeout_at(deadline, self.ends.recv()).await {
                Ok(Some(_)) => self.launched -= 1,
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

/// What the holder of a job is told.
fn told(
    settings: &Settings,
    site: &str,
    folder: &Path,
    job: &JobSpec,
    run_time: Span,
    factor: f64,
) -> io::Result<Told> {
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
    Ok(Told {
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
