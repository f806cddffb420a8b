//! How far is what takes longer than two seconds: a bar on a terminal, a line now and then elsewhere.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use scheduler::EventKind;
use workload::calendar::Zone;
use workload::columns::Map;
use workload::prepare::{PrepareError, PrepareOptions, Prepared, prepare_watched};
use workload::{Limits, Trace, TraceError};

use crate::kind;
use crate::terminal::{about_left, left, line_every};

/// Shorter runs need no bar.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looking at the clock for every event would cost more than the event.
const LOOK_EVERY: u64 = 4096;

/// Progress of one piece of work, in jobs or what else it is made of.
pub struct Progress {
    /// What is counted, as it stands behind a number.
    what: &'static str,
    jobs: u64,
    /// Of jobs, those that are submitted, if that is told.
    submitted: u64,
    done: u64,
    /// How long the rest takes, if somebody knows better than what is done so far.
    expected: Option<Duration>,
    calls: u64,
    begun: Instant,
    last_line: Option<Instant>,
    bar: Option<ProgressBar>,
    terminal: bool,
    /// Shown if this says so; always without it.
    shown: Option<Arc<AtomicBool>>,
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
            submitted: 0,
            done: 0,
            expected: None,
            calls: 0,
            begun: Instant::now(),
            last_line: None,
            bar: None,
            terminal: std::io::stderr().is_terminal(),
            shown: None,
        }
    }

    /// The same of work beside other work that is shown: nothing is said before this flag is set.
    #[must_use]
    pub fn shown_if(mut self, shown: &Arc<AtomicBool>) -> Progress {
        self.shown = Some(Arc::clone(shown));
        self
    }

    /// One event of a run.
    pub fn event(&mut self, kind: &EventKind) {
        self.submitted += u64::from(matches!(kind, EventKind::Submitted { .. }));
        self.count(matches!(kind, EventKind::Completed { .. }));
    }

    fn count(&mut self, is_done: bool) {
        self.done += u64::from(is_done);
        self.calls += 1;
        if self.calls.is_multiple_of(LOOK_EVERY) {
            self.show();
        }
    }

    /// One more of what is counted is done.
    pub fn step(&mut self) {
        self.count(true);
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

    /// The rest takes so long, or as long as what is done says.
    pub fn expect(&mut self, left: Option<Duration>) {
        self.expected = left;
    }

    /// How long the rest takes in words, after so long.
    fn left(&self, so_far: Duration) -> String {
        let (done, all) = self.halves();
        self.expected.map_or_else(|| left(so_far, done, all), about_left)
    }

    /// How much is done of how much. A job is half done when it is submitted: by ends alone a run would seem slow at first,
    /// while jobs gather that wait.
    fn halves(&self) -> (u64, u64) {
        (self.done + self.submitted.max(self.done), 2 * self.jobs)
    }

    fn show(&mut self) {
        let hidden = self.shown.as_ref().is_some_and(|shown| !shown.load(Ordering::Relaxed));
        if hidden || self.begun.elapsed() < PATIENCE.min(line_every()) {
            return;
        }
        let left = self.left(self.begun.elapsed());
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

/// Reads a log, and says how far it is in the bytes of its file. The zone is that of local times.
///
/// # Errors
/// As [`workload::read_local_from`], or if the file cannot be opened.
pub fn read_log(path: &Path, limits: &Limits, zone: Option<&Zone>) -> Result<Trace, TraceError> {
    let (name, watched) = watched(path)?;
    workload::read_local_from(&name, watched, limits, zone).map_err(|error| no_log(error, path))
}

/// The same of a CSV by a map of its columns.
///
/// # Errors
/// As [`workload::columns::read_trace`], or if the file cannot be opened.
pub fn read_csv(path: &Path, limits: &Limits, map: &Map) -> Result<Trace, TraceError> {
    let (name, watched) = watched(path)?;
    workload::columns::read_trace(&name, watched, limits, map)
}

/// The name of a log, and its bytes with progress.
fn watched(path: &Path) -> Result<(String, Watched), TraceError> {
    let name = path.display().to_string();
    let file = match workload::source::open(path) {
        Ok(file) => file,
        Err(cause) => return Err(TraceError::Io { file: name, cause }),
    };
    let bytes = file.metadata().map_or(0, |about| about.len());
    Ok((name, Watched { file, read: 0, progress: Progress::of("bytes of the log", bytes) }))
}

/// Why a file was not read, which is said of what it is if it is something else.
pub fn no_log(error: TraceError, path: &Path) -> TraceError {
    let is_told = matches!(error, TraceError::Limit { .. });
    match kind::no_log(path).filter(|_| !is_told) {
        Some(problem) => TraceError::Structure { file: path.display().to_string(), problem },
        None => error,
    }
}

/// Prepares the jobs of a log, and says how far it is.
///
/// # Errors
/// As [`workload::prepare()`].
pub fn prepare(trace: &Trace, options: &PrepareOptions, widest: u32) -> Result<Prepared, PrepareError> {
    let mut progress = Progress::of("jobs prepared", trace.records.len() as u64);
    prepare_watched(trace, options, widest, &mut || progress.step())
}

/// A file that is read with progress.
struct Watched {
    file: File,
    read: u64,
    progress: Progress,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read += read as u64;
        self.progress.set(self.read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, SiteId, Span};

    use super::*;

    #[test]
    fn jobs_that_wait_are_half_done_and_other_things_are_counted_as_they_are() {
        let mut progress = Progress::new(10);
        let (job, processors) = (JobId(1), 1);
        let submitted = EventKind::Submitted { job, processors, requested: Span::ZERO, origin: SiteId(1) };
        (0..4).for_each(|_| progress.event(&submitted));
        assert_eq!(progress.halves(), (4, 20));
        progress.event(&EventKind::Completed { job, processors });
        assert_eq!(progress.halves(), (5, 20));
        let mut progress = Progress::of("lines", 10);
        progress.set(3);
        assert_eq!(progress.halves(), (6, 20));
    }

    #[test]
    fn what_is_known_of_the_rest_comes_before_what_is_done_so_far() {
        let mut progress = Progress::new(2000);
        progress.set(260);
        let after = Duration::from_secs(10);
        assert_eq!(progress.left(after), "about 0:01:07 left");
        progress.expect(Some(Duration::from_millis(28_500)));
        assert_eq!(progress.left(after), "about 0:00:29 left");
        progress.expect(None);
        assert_eq!(progress.left(after), "about 0:01:07 left");
    }
}
