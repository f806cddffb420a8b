//! How far all batches are: a bar on a terminal, a line now and then elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::Instant;

use brokers::genetic::Step;
use experiments::terminal::{left_of_several, line_every};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress in algorithms that have ended, over all batches, told of by several threads.
pub(super) struct Progress {
    all: usize,
    /// Algorithms of a batch.
    algorithms: usize,
    /// Batches at a time.
    threads: usize,
    begun: Instant,
    state: Mutex<State>,
    bar: Option<ProgressBar>,
}

struct State {
    done: usize,
    /// Algorithms that have ended, by batch.
    ended: BTreeMap<usize, usize>,
    last_line: Option<Instant>,
}

impl State {
    /// Batches all of whose algorithms have ended. Times left are told by these: greedy algorithms end at once, and a genetic one
    /// takes nearly all the time of its batch.
    fn whole(&self, algorithms: usize) -> usize {
        self.ended.values().filter(|ended| **ended >= algorithms).count()
    }
}

impl Progress {
    /// Of so many batches under so many algorithms each, so many batches at a time.
    pub(super) fn new(batches: usize, algorithms: usize, threads: usize) -> Progress {
        let all = batches * algorithms;
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(all as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:20} {pos}/{len}, {msg}");
            bar.set_style(style.expect("the template is fixed"));
            bar
        });
        let state = Mutex::new(State { done: 0, ended: BTreeMap::new(), last_line: None });
        Progress { all, algorithms, threads, begun: Instant::now(), state, bar }
    }

    /// An algorithm of a batch is at a step, or has ended.
    pub(super) fn tell(&self, batch: usize, algorithm: &str, step: Option<&Step<'_>>) {
        let mut state = self.state.lock().expect("nobody panics who holds it");
        if step.is_none() {
            state.done += 1;
            *state.ended.entry(batch).or_default() += 1;
        }
        // The first line comes at once: it says that all is well.
        let is_due = self.bar.is_some() || state.last_line.is_none_or(|last| last.elapsed() >= line_every());
        if !is_due {
            return;
        }
        let at = match step {
            Some(step) => format!("generation {}, best {:.4}", step.generation, step.average),
            None => "done".to_string(),
        };
        let (whole, all) = (state.whole(self.algorithms), self.all / self.algorithms.max(1));
        let [whole, all, threads] = [whole, all, self.threads].map(|count| count as u64);
        let left = left_of_several(self.begun.elapsed(), whole, all, threads);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_for_the_time_left_when_its_slowest_algorithm_has_ended() {
        let progress = Progress::new(4, 3, 2);
        for (batch, algorithm) in [(1, "smallest"), (2, "smallest"), (1, "largest")] {
            progress.tell(batch, algorithm, None);
        }
        let whole = || progress.state.lock().unwrap().whole(3);
        assert_eq!(whole(), 0);
        progress.tell(1, "genetic", None);
        assert_eq!(whole(), 1);
    }
}
