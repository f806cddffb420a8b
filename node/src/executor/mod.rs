//! Runs jobs: as timers, or as commands of the user ([`Settings`]).
//!
//! The only place of a node that looks at true run times. It learns them with the jobs: from the coordinator at submission, from the sending
//! node when a job moves. A timer ends when that time is over. A command ends when it ends: nobody knows when beforehand, the site plans
//! with what users ask for, and the end arrives here from outside. The caller brings the trace time.

mod commands;
mod exit;
mod hold;
mod process;
mod settings;
mod slurm;
mod timer;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use scheduler::event::BatchState;
use scheduler::{EventKind, Grid, JobId, JobSpec, SiteId, Span, Time};

pub use exit::Exit;
pub use hold::asked as held;
pub use settings::{By, MEMORY_MIN, OUTPUT_BYTES, Settings, SettingsError, Slurm, Wall};
pub use words::WordError;

use self::commands::{Commands, Told};
use self::timer::Timers;

/// A job was started whose run time never reached this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {0} was started, but its run time never reached this node")]
pub struct UnknownRunTime(pub JobId);

/// A job that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// When, in trace time.
    pub at: Time,
    /// Which.
    pub job: JobId,
    /// How, if it was a command.
    pub exit: Option<Exit>,
}

/// What runs the jobs of one site.
#[derive(Debug)]
pub struct Executor {
    run_times: BTreeMap<JobId, Span>,
    by: Means,
}

/// What becomes of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has ended.
    Ended(End),
    /// Whoever has the queue has started it.
    Begun(JobId),
    /// It left the queue, and nobody starts it.
    Withdrawn(JobId),
    /// The batch system says of it what is neither.
    Said(JobId, BatchState),
    /// Jobs of others have so many processors.
    Foreign(u32),
}

#[derive(Debug)]
enum Means {
    Timers(Timers),
    Commands(Box<Commands>),
}

impl Executor {
    /// Nothing runs at a site, where jobs are timers.
    pub fn at(grid: &Grid, site: SiteId) -> Executor {
        Executor { run_times: BTreeMap::new(), by: Means::Timers(Timers::at(grid, site)) }
    }

    /// Nothing runs at a site, where jobs are what these say.
    pub fn by(settings: &Settings, grid: &Grid, site: SiteId) -> Executor {
        if settings.by == By::Timer {
            return Executor::at(grid, site);
        }
        let commands = Commands::new(settings, &grid.site(site).name);
        Executor { run_times: BTreeMap::new(), by: Means::Commands(Box::new(commands)) }
    }

    /// Whether nobody knows beforehand when a job ends.
    pub fn is_outside(&self) -> bool {
        matches!(self.by, Means::Commands(_))
    }

    /// Gets ready, at a site with so many processors; these executed when the last process of this node ended, or may have.
    ///
    /// # Errors
    /// If nothing could be run.
    pub fn begin(&mut self, executing: BTreeSet<JobId>, processors: u32) -> io::Result<()> {
        match &mut self.by {
            Means::Timers(_) => Ok(()),
            Means::Commands(commands) => commands.begin(executing, processors),
        }
    }

    /// Whether somebody else than the queue of the site decides what starts here: jobs are told to it when they join that
    /// ([`Executor::queue`]), and taken from it before they leave ([`Executor::withdraw`]).
    pub fn is_queue(&self) -> bool {
        matches!(&self.by, Means::Commands(commands) if commands.is_queue())
    }

    /// A job joins the queue of whoever decides what starts. Whatever must be known of that is known by then.
    ///
    /// # Errors
    /// If its run time is not known.
    pub fn queue(&mut self, job: &JobSpec, factor: f64) -> Result<(), UnknownRunTime> {
        let run_time = self.run_time(job.id).ok_or(UnknownRunTime(job.id))?;
        if let Means::Commands(commands) = &mut self.by {
            commands.queue(job, run_time, factor);
        }
        Ok(())
    }

    /// A job is to leave that queue, unless it has begun: [`Outcome::Withdrawn`] or [`Outcome::Begun`] says which. True if it is not
    /// there; `may_be` if the last process of this node may have left it there.
    ///
    /// # Errors
    /// If its run time is not known.
    pub fn withdraw(&mut self, job: &JobSpec, factor: f64, may_be: bool) -> Result<bool, UnknownRunTime> {
        let run_time = self.run_time(job.id).ok_or(UnknownRunTime(job.id))?;
        Ok(match &mut self.by {
            Means::Timers(_) => true,
            Means::Commands(commands) => commands.withdraw(job, run_time, factor, may_be),
        })
    }

    /// The jobs in that queue.
    pub fn queued(&self) -> BTreeSet<JobId> {
        match &self.by {
            Means::Timers(_) => BTreeSet::new(),
            Means::Commands(commands) => commands.queued().collect(),
        }
    }

    /// Whether jobs of the last process of this node may still execute: where the end of a node does not end them.
    pub fn may_have_left_some(&self) -> bool {
        matches!(&self.by, Means::Commands(commands) if commands.may_have_left_some())
    }

    /// Has everything ended that the last process of this node has left, but for jobs that were started again; until it is gone.
    ///
    /// # Errors
    /// If nobody can say that it is.
    pub async fn keep_started(&mut self) -> Result<(), String> {
        match &mut self.by {
            Means::Timers(_) => Ok(()),
            Means::Commands(commands) => commands.keep_started().await,
        }
    }

    /// Notes how long a job will run, or did in the log.
    pub fn learn(&mut self, job: JobId, run_time: Span) {
        self.run_times.insert(job, run_time);
    }

    /// How long a job will run, to be sent along when it moves. Kept after it has moved: the message that moved it
    /// may have to be repeated.
    pub fn run_time(&self, job: JobId) -> Option<Span> {
        self.run_times.get(&job).copied()
    }

    /// Starts a job; a command with the next [`Executor::launch`].
    ///
    /// # Errors
    /// If its run time is not known.
    pub fn start(&mut self, now: Time, job: &JobSpec) -> Result<(), UnknownRunTime> {
        let run_time = self.run_time(job.id).ok_or(UnknownRunTime(job.id))?;
        match &mut self.by {
            Means::Timers(timers) => timers.start(now, job, run_time),
            Means::Commands(commands) => commands.start(job, run_time),
        }
        Ok(())
    }

    /// Whether a command waits to be launched.
    pub fn has_to_launch(&self) -> bool {
        matches!(&self.by, Means::Commands(commands) if commands.has_to_launch())
    }

    /// Has the commands run whose jobs were started, in a run whose clock goes by this factor. Whatever must be known of a start is known
    /// by then: nobody else can start the job.
    pub fn launch(&mut self, factor: f64) {
        if let Means::Commands(commands) = &mut self.by {
            commands.launch(factor);
        }
    }

    /// A job executes here no longer. It may start again.
    pub fn stop(&mut self, job: JobId) {
        match &mut self.by {
            Means::Timers(timers) => timers.stop(job),
            Means::Commands(commands) => commands.stop(job),
        }
    }

    /// A job that has ended by now, and when; earliest first, then in the order of starting.
    pub fn pop_due(&mut self, now: Time) -> Option<End> {
        loop {
            if let Outcome::Ended(end) = self.pop(now)? {
                return Some(end);
            }
        }
    }

    /// What has become of a job by now, in the order in which it did.
    pub fn pop(&mut self, now: Time) -> Option<Outcome> {
        let outcome = match &mut self.by {
            Means::Timers(timers) => {
                timers.pop_due(now).map(|(at, job)| Outcome::Ended(End { at, job, exit: None }))
            }
            Means::Commands(commands) => commands.pop().map(|told| match told {
                Told::Begun(job) => Outcome::Begun(job),
                Told::Withdrawn(job) => Outcome::Withdrawn(job),
                Told::Said(job, state) => Outcome::Said(job, state),
                Told::Ended(job, exit) => Outcome::Ended(End { at: now, job, exit: Some(exit) }),
                Told::Foreign(processors) => Outcome::Foreign(processors),
            }),
        }?;
        if let Outcome::Ended(end) = &outcome {
            self.run_times.remove(&end.job);
        }
        Some(outcome)
    }

    /// What became of jobs on shared nodes since the last call: see [`scheduler::Execution::told`].
    pub fn told(&mut self) -> impl Iterator<Item = EventKind> + '_ {
        let told = match &mut self.by {
            Means::Timers(timers) => Some(timers.told()),
            Means::Commands(_) => None,
        };
        told.into_iter().flatten()
    }

    /// When the next job ends, if that is known.
    pub fn next_due(&self) -> Option<Time> {
        match &self.by {
            Means::Timers(timers) => timers.next_due(),
            Means::Commands(_) => None,
        }
    }

    /// Until a command has ended; for ever where there are none. Can be cancelled.
    pub async fn ended(&mut self) {
        match &mut self.by {
            Means::Timers(_) => std::future::pending().await,
            Means::Commands(commands) => commands.ended().await,
        }
    }

    /// How many jobs run.
    pub fn running(&self) -> usize {
        match &self.by {
            Means::Timers(timers) => timers.running(),
            Means::Commands(commands) => commands.running(),
        }
    }

    /// Kills what runs, and waits until nothing is left of it.
    pub async fn shutdown(&mut self) {
        if let Means::Commands(commands) = &mut self.by {
            commands.shutdown().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use scheduler::Labels;

    use super::*;

    fn executor() -> Executor {
        Executor::at(&Grid::of_sizes(&[1]).unwrap(), SiteId(1))
    }

    fn job() -> JobSpec {
        JobSpec {
            id: JobId(1),
            submit: Time::ZERO,
            processors: 1,
            requested: Span::from_secs(10),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    #[test]
    fn a_run_time_is_kept_until_the_job_ends_here() {
        let mut executor = executor();
        executor.learn(JobId(1), Span::from_secs(10));
        executor.start(Time::from_secs(100), &job()).unwrap();
        assert_eq!((executor.pop_due(Time::from_secs(109)), executor.running()), (None, 1));
        let at = Time::from_secs(110);
        assert_eq!(executor.next_due(), Some(at));
        assert_eq!(executor.pop_due(at), Some(End { at, job: JobId(1), exit: None }));
        assert_eq!(executor.run_time(JobId(1)), None);
    }

    #[test]
    fn a_job_without_a_run_time_is_not_started() {
        let mut executor = executor();
        assert_eq!(executor.start(Time::ZERO, &job()), Err(UnknownRunTime(JobId(1))));
        assert_eq!(executor.running(), 0);
    }
}
