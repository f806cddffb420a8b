//! How far is what takes longer than two seconds: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::{left, line_every};

/// Shorter runs need no bar.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looking at the clock for every event would cost more than the event.
const LOOK_EVERY: u64 = 4096;

/// Progress of one piece of work, in jobs or what else it is made of.
pub struct Progress {
    /// What is counted, as it stands behind a number.
    what: &'static str,
    jobs: u64,
    done: u64,
    calls: u64,
    begun: Instant,
    last_line: Option<Instant>,
    bar: Option<ProgressBar>,
    terminal: bool,
}

impl Progress {
    /// Progress of a run of so many jobs.
    pub fn new(jobs: usize) -> Progress {
        Progress::of("jobs", jobs as u64)
    }

    /// Progress in so many of something else.
    pub fn of(what: &'static str, all: u64) -> Progress {
        Progress {
            what,
            jobs: all,
            done: 0,
            calls: 0,
            begun: Instant::now(),
            last_line: None,
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

    /// One more of what is counted is done.
    pub fn step(&mut self) {
        self.event(true);
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
        if self.begun.elapsed() < PATIENCE.min(line_every()) {
            return;
        }
        let left = left(self.begun.elapsed(), self.done, self.jobs);
        if !self.terminal {
            if self.last_line.is_none_or(|last| last.elapsed() >= line_every()) {
                self.last_line = Some(Instant::now());
                eprintln!("{} of {} {}, {left}", self.done, self.jobs, self.what);
            }
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new(self.jobs).with_elapsed(self.begun.elapsed());
            let style =
                ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {}, {{msg}}", self.what));
            bar.set_style(style.expect("the template is fixed"));
            bar
        });
        bar.set_message(left);
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
