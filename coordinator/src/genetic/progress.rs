//! How far all batches are: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scheduler::genetic::Step;

use crate::terminal::{left, line_every};

/// Progress in algorithms that have ended, over all batches, told of by several threads.
pub(super) struct Progress {
    all: usize,
    begun: Instant,
    state: Mutex<State>,
    bar: Option<ProgressBar>,
}

struct State {
    done: usize,
    last_line: Option<Instant>,
}

impl Progress {
    pub(super) fn new(all: usize) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:20} {pos}/{len}, {msg}");
            bar.set_style(style.expect("the template is fixed"));
            bar
        });
        Progress { all, begun: Instant::now(), state: Mutex::new(State { done: 0, last_line: None }), bar }
    }

    /// An algorithm of a batch is at a step, or has ended.
    pub(super) fn tell(&self, batch: usize, algorithm: &str, step: Option<&Step<'_>>) {
        let mut state = self.state.lock().expect("nobody panics who holds it");
        state.done += usize::from(step.is_none());
        // The first line comes at once: it says that all is well.
        let is_due = self.bar.is_some() || state.last_line.is_none_or(|last| last.elapsed() >= line_every());
        if !is_due {
            return;
        }
        let at = match step {
            Some(step) => format!("generation {}, best {:.4}", step.generation, step.average),
            None => "done".to_string(),
        };
        let left = left(self.begun.elapsed(), state.done as u64, self.all as u64);
        let words = format!("batch {batch} {algorithm}: {at}, {left}");
        match &self.bar {
            Some(bar) => {
                bar.set_position(state.done as u64);
                bar.set_message(words);
            }
            None => {
                state.last_line = Some(Instant::now());
                eprintln!("{}/{}, {words}", state.done, self.all);
            }
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
