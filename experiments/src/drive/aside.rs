//! A sink on threads of its own.
//!
//! To measure events costs as much as a simulation, to write them down half as much, and neither says anything to it. Events pass
//! in pieces and in order from who makes them to who writes them, and on to who measures them, so results are the same as on
//! one thread.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use scheduler::Event;

use super::sink::{Logged, Measures, Sink};

/// Events that are handed over at once: some 200 KiB, so that a lock is taken a few hundred times in a million events.
const PIECE: usize = 4096;
/// Pieces that wait at most before a thread; then whoever fills them does.
const PIECES_MAX: usize = 8;

/// See the module.
pub(super) struct Aside {
    piece: Vec<Event>,
    full: SyncSender<Vec<Event>>,
    /// Pieces that were read, to be filled again.
    empty: Receiver<Vec<Event>>,
    logged: JoinHandle<Logged>,
    measures: JoinHandle<Measures>,
}

impl Aside {
    pub(super) fn new(sink: Sink) -> Aside {
        let Sink { mut logged, mut measures } = sink;
        let (full, filled) = sync_channel::<Vec<Event>>(PIECES_MAX);
        let (on, written) = sync_channel::<Vec<Event>>(PIECES_MAX);
        let (emptied, empty) = channel();
        let logged = thread::spawn(move || {
            for piece in filled {
                piece.iter().for_each(|event| logged.take(event));
                // Whoever measures may have panicked, which `Aside::finish` says.
                let _ = on.send(piece);
            }
            logged
        });
        let measures = thread::spawn(move || {
            for mut piece in written {
                piece.iter().for_each(|event| measures.take(event));
                piece.clear();
                // Nobody takes it back at the end.
                let _ = emptied.send(piece);
            }
            measures
        });
        Aside { piece: Vec::with_capacity(PIECE), full, empty, logged, measures }
    }

    pub(super) fn take(&mut self, event: &Event) {
        self.piece.push(*event);
        if self.piece.len() == PIECE {
            self.hand_over();
        }
    }

    /// If a thread has panicked, [`Aside::finish`] says so.
    fn hand_over(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(PIECE));
        let _ = self.full.send(std::mem::replace(&mut self.piece, next));
    }

    pub(super) fn finish(mut self) -> Sink {
        self.hand_over();
        drop(self.full);
        let logged = self.logged.join().unwrap_or_else(|panic| resume_unwind(panic));
        let measures = self.measures.join().unwrap_or_else(|panic| resume_unwind(panic));
        Sink { logged, measures }
    }
}
