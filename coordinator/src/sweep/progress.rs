//! How far a sweep is and how long it will take: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use experiments::terminal::{left_of_several, line_every};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often an interruption and the progress are looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Failed runs that are named at the end; all are in the database.
pub(super) const FAILURES_NAMED: usize = 5;

/// Progress of a sweep in runs.
pub(super) struct Progress {
    /// What is counted.
    what: &'static str,
    runs: usize,
    /// How many run at a time.
    workers: usize,
    done: usize,
    /// What else there is to say.
    also: String,
    begun: Instant,
    last_line: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new(runs: usize, workers: usize) -> Progress {
        Progress::of("runs", runs, workers)
    }

    /// Of looking whether each run is one, before any begins.
    pub(super) fn of_checks(runs: usize) -> Progress {
        Progress::of("runs checked", runs, 1)
    }

    fn of(what: &'static str, runs: usize, workers: usize) -> Progress {
        let bar = (std::io::stderr().is_terminal() && runs > 0).then(|| {
            let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {what}, {{msg}}"));
            bar.set_style(style.expect("the template is fixed"));
            bar.set_message(format!("{workers} workers"));
            bar
        });
        let now = Instant::now();
        Progress { what, runs, workers, done: 0, also: String::new(), begun: now, last_line: now, bar }
    }

    pub(super) fn set(&mut self, done: usize) {
        self.done = done;
        self.tick();
    }

    /// That so many are at work, and what else there is to say.
    pub(super) fn among(&mut self, workers: usize, also: String) {
        self.workers = workers;
        self.also = also;
    }

    pub(super) fn tick(&mut self) {
        let [done, runs, workers] = [self.done, self.runs, self.workers].map(|count| count as u64);
        let mut words = left_of_several(self.begun.elapsed(), done, runs, workers);
        if !self.also.is_empty() {
            words += &format!("; {}", self.also);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
            bar.set_message(words);
        } else if self.last_line.elapsed() >= line_every() {
            self.last_line = Instant::now();
            eprintln!("{}/{} {}, {words}", self.done, self.runs, self.what);
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    /// Whoever leaves before the end leaves no bar behind.
    fn drop(&mut self) {
        self.finish();
    }
}
