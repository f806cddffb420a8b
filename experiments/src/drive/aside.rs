//! A sink on a thread of its own.
//!
//! To measure events and to write them costs as much as a simulation, and says nothing to it. Events pass in pieces and in
//! order, so results are the same as on one thread.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use scheduler::Event;

use super::Sink;

/// Events that are handed over at once: some 200 KiB, so that a lock is taken a few hundred times in a million events.
const PIECE: usize = 4096;
/// Pieces that wait at most; then the simulation does.
const PIECES_MAX: usize = 8;

/// See the module.
pub(super) struct Aside {
    piece: Vec<Event>,
    full: SyncSender<Vec<Event>>,
    /// Pieces that were read, to be filled again.
    empty: Receiver<Vec<Event>>,
    thread: JoinHandle<Sink>,
}

impl Aside {
    pub(super) fn new(mut sink: Sink) -> Aside {
        let (full, filled) = sync_channel::<Vec<Event>>(PIECES_MAX);
        let (emptied, empty) = channel();
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

    pub(super) fn take(&mut self, event: &Event) {
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

    pub(super) fn finish(mut self) -> Sink {
        self.hand_over();
        drop(self.full);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}
