//! What a simulation leaves to other threads: the measuring of its events, and what the run is held against.
//!
//! Both cost as much as the simulation itself, and neither says anything to it. Events pass in pieces and in order, so
//! results are the same as on one thread.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use scheduler::Event;
use simulator::Checks;

use super::ideal::Bars;
use super::simulate::simulate;
use super::{Ended, Sink};
use crate::experiment::Experiment;
use crate::experiment::jobs::Jobs;
use crate::interrupt::Interrupt;

/// Events that are handed over at once: some 200 KiB, so that a lock is taken a few hundred times in a million events.
const PIECE: usize = 4096;
/// Pieces that wait at most; then the simulation does.
const PIECES_MAX: usize = 8;

/// A sink on a thread of its own.
struct Aside {
    piece: Vec<Event>,
    full: SyncSender<Vec<Event>>,
    /// Pieces that were read, to be filled again.
    empty: Receiver<Vec<Event>>,
    thread: JoinHandle<Sink>,
}

impl Aside {
    fn new(mut sink: Sink) -> Aside {
        let (full, filled) = sync_channel::<Vec<Event>>(PIECES_MAX);
        let (emptied, empty) = mpsc::channel();
        let thread = thread::spawn(move || {
            for mut piece in filled {
                piece.iter().for_each(|event| sink.take(event));
                piece.clear();
                // Nobody takes it back at the end.
                let _ = emptied.send(piece);
            }
            sink
        });
        Aside { piece: Vec::with_capacity(PIECE), full, empty, thread }
    }

    fn take(&mut self, event: &Event) {
        self.piece.push(*event);
        if self.piece.len() == PIECE {
            self.hand_over();
        }
    }

    /// If the thread has panicked, [`Aside::finish`] says so.
    fn hand_over(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(PIECE));
        let _ = self.full.send(std::mem::replace(&mut self.piece, next));
    }

    fn finish(mut self) -> Sink {
        self.hand_over();
        drop(self.full);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Simulates an experiment, and at the same time what it is held against.
///
/// # Errors
/// As [`simulate`].
pub(super) fn run(
    experiment: &Experiment,
    jobs: &Jobs,
    checks: Checks,
    interrupt: &Interrupt,
    sink: Sink,
) -> anyhow::Result<(Ended, Sink)> {
    // Two at a time would ask a command of the user's at a time.
    if experiment.external.external().is_some() {
        let mut sink = sink;
        let ended = simulate(experiment, jobs, checks, interrupt, &mut |event| sink.take(event))?;
        return Ok((ended, sink));
    }
    let shown = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let bars = scope.spawn(|| Bars::of(experiment, jobs, interrupt, &shown));
        let mut aside = Aside::new(sink);
        let ended = simulate(experiment, jobs, checks, interrupt, &mut |event| aside.take(event));
        let sink = aside.finish();
        shown.store(true, Ordering::Relaxed);
        let bars = bars.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok((Ended { bars: Some(bars), ..ended? }, sink))
    })
}
