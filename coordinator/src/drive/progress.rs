//! A bar on the terminal for what takes longer than two seconds, and nothing anywhere else.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter runs need no bar.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looking at the clock for every event would cost more than the event.
const LOOK_EVERY: u64 = 4096;

/// Progress of one run in jobs.
pub struct Progress {
    jobs: u64,
    done: u64,
    calls: u64,
    begun: Instant,
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl Progress {
    /// Progress of a run of so many jobs.
    pub fn new(jobs: usize) -> Progress {
        Progress {
            jobs: jobs as u64,
            done: 0,
            calls: 0,
            begun: Instant::now(),
            bar: None,
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// One event; `completed` if a job ended with it.
    pub fn event(&mut self, completed: bool) {
        self.done += u64::from(completed);
        self.calls += 1;
        if self.calls.is_multiple_of(LOOK_EVERY) {
            self.show();
        }
    }

    /// There is one job more.
    pub fn add(&mut self) {
        self.jobs += 1;
        if let Some(bar) = &self.bar {
            bar.set_length(self.jobs);
        }
    }

    /// So many jobs have ended.
    pub fn set(&mut self, done: u64) {
        self.done = done;
        self.show();
    }

    fn show(&mut self) {
        if !self.terminal || self.begun.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new(self.jobs).with_elapsed(self.begun.elapsed());
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} jobs, {eta} left");
            bar.set_style(style.expect("the template is fixed"));
            bar
        });
        bar.set_position(self.done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
