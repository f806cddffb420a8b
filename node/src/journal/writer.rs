//! A journal that is written to while its site goes on.
//!
//! What is noted is gathered here. A site that has more to do hands it over to a thread, which brings it into the
//! journal and commits it; the site goes on and gathers what comes next. There is one such batch at a time, so a slow
//! disk makes batches larger, not more. A site that has nothing else to do commits by itself, without the thread.
//!
//! While a batch is written the journal is with the thread, and what waits for it is kept here: whoever takes the journal
//! back gets that, too.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use protocol::Fact;
use scheduler::{Event, JobId, SiteId, Span};

use super::{Journal, JournalError, job_with_run_time};
use crate::metrics::Totals;

/// A journal, and what it is to be told; with each batch waits a `T`.
#[derive(Debug)]
pub struct Writer<T> {
    /// Nowhere while a batch is written.
    journal: Option<Box<Journal>>,
    /// What waits for the batch that is being written.
    waiting: Option<T>,
    notes: Notes,
    /// The buffers of the batch before, empty.
    spare: Notes,
    next_event: u64,
    /// As of the last commit.
    next_written: u64,
    /// From the first batch on.
    thread: Option<Thread>,
}

/// What happened, in the order in which it did.
#[derive(Debug, Default)]
struct Notes {
    /// With the run time of the job that comes or leaves.
    facts: Vec<(Fact, Option<Span>)>,
    /// Portions of which a job has come.
    submitted: Vec<u64>,
    events: Vec<Event>,
    /// Journals of other sites.
    others: Vec<(SiteId, u64)>,
    /// As of all these events.
    totals: Option<Totals>,
}

/// The thread and both ends of what goes there and back.
#[derive(Debug)]
struct Thread {
    batches: Sender<Batch>,
    written: Receiver<(Batch, Result<(), JournalError>)>,
    handle: JoinHandle<()>,
}

type Batch = (Box<Journal>, Notes);

impl<T> Writer<T> {
    /// Of a journal that was opened.
    pub fn new(journal: Journal) -> Writer<T> {
        Writer {
            next_event: journal.next_event(),
            next_written: journal.next_event(),
            journal: Some(Box::new(journal)),
            waiting: None,
            notes: Notes::default(),
            spare: Notes::default(),
            thread: None,
        }
    }

    /// Notes one change of what the site owns; `run_time` is that of a job here.
    pub fn write(&mut self, fact: Fact, run_time: impl Fn(JobId) -> Option<Span>) {
        let run_time = job_with_run_time(&fact).and_then(run_time);
        self.notes.facts.push((fact, run_time));
    }

    /// Notes an event.
    pub fn event(&mut self, event: Event) {
        self.next_event += 1;
        self.notes.events.push(event);
    }

    /// The number of the next event.
    pub fn next_event(&self) -> u64 {
        self.next_event
    }

    /// The number of the first event that is not known to be written.
    pub fn next_written(&self) -> u64 {
        self.next_written
    }

    /// Notes that the time of the next job of a portion has come, in the order of the queue.
    pub fn submitted(&mut self, portion: u64) {
        self.notes.submitted.push(portion);
    }

    /// Notes which journal another site has.
    pub fn other(&mut self, site: SiteId, instance: u64) {
        self.notes.others.push((site, instance));
    }

    /// Notes metrics as of all events that were noted.
    pub fn totals(&mut self, totals: Totals) {
        self.notes.totals = Some(totals);
    }

    /// The journal itself, for what is noted seldom or asked. What was noted here it is told with the next commit.
    ///
    /// # Panics
    /// If a batch is being written.
    pub fn journal(&mut self) -> &mut Journal {
        self.journal.as_mut().expect("nothing is being written")
    }

    /// Whether there is something to commit, or being written.
    pub fn is_dirty(&self) -> bool {
        !self.notes.is_empty() || self.journal.as_ref().is_none_or(|journal| journal.is_dirty())
    }

    /// Bytes of what waits for a commit, in memory.
    pub fn pending_bytes(&self) -> usize {
        let Notes { facts, submitted, events, others: _, totals: _ } = &self.notes;
        size_of_val(&facts[..]) + size_of_val(&submitted[..]) + size_of_val(&events[..])
    }

    /// Whether a batch was handed over and not taken back.
    pub fn is_writing(&self) -> bool {
        self.waiting.is_some()
    }

    /// Takes a batch back that is written, if one was handed over: what waited for it. Waits for that, or looks only.
    ///
    /// # Errors
    /// If it could not be written. Then the node must stop: what it would show is not durable.
    pub fn take_back(&mut self, wait: bool) -> Result<Option<T>, JournalError> {
        let Some(thread) = self.thread.as_ref().filter(|_| self.waiting.is_some()) else { return Ok(None) };
        let ((journal, spare), result) = if wait {
            thread.written.recv().expect(ENDED)
        } else {
            match thread.written.try_recv() {
                Ok(back) => back,
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => panic!("{ENDED}"),
            }
        };
        let next_event = journal.next_event();
        (self.journal, self.spare) = (Some(journal), spare);
        let waited = self.waiting.take();
        result?;
        self.next_written = next_event;
        Ok(waited)
    }

    /// Has everything that was noted written by the thread; what waits for that comes back with it.
    ///
    /// # Errors
    /// If the system has no thread for it.
    ///
    /// # Panics
    /// If a batch is being written.
    pub fn hand_over(&mut self, waiting: T) -> std::io::Result<()> {
        let thread = match &mut self.thread {
            Some(thread) => thread,
            None => self.thread.insert(Thread::start()?),
        };
        let journal = self.journal.take().expect("nothing is being written");
        let notes = std::mem::replace(&mut self.notes, std::mem::take(&mut self.spare));
        self.waiting = Some(waiting);
        thread.batches.send((journal, notes)).expect(ENDED);
        Ok(())
    }

    /// Writes everything that was noted, or nothing. Whether there was something.
    ///
    /// # Errors
    /// As for [`Journal::commit`].
    ///
    /// # Panics
    /// If a batch is being written.
    pub fn commit(&mut self) -> Result<bool, JournalError> {
        let journal = self.journal.as_mut().expect("nothing is being written");
        self.notes.tell(journal);
        let is_dirty = journal.is_dirty();
        journal.commit()?;
        self.next_written = self.next_event;
        Ok(is_dirty)
    }
}

const ENDED: &str = "the thread that writes ends after its site";

impl<T> Drop for Writer<T> {
    /// The journal is closed when this returns.
    fn drop(&mut self) {
        if let Some(Thread { batches, written, handle }) = self.thread.take() {
            drop((batches, written));
            // A panic there was told by the thread.
            let _ = handle.join();
        }
    }
}

impl Thread {
    fn start() -> std::io::Result<Thread> {
        let (batches, to_write) = channel::<Batch>();
        let (back, written) = channel();
        let handle = std::thread::Builder::new().name("journal".to_string()).spawn(move || {
            for (mut journal, mut notes) in to_write {
                notes.tell(&mut journal);
                let result = journal.commit();
                if back.send(((journal, notes), result)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Thread { batches, written, handle })
    }
}

impl Notes {
    fn is_empty(&self) -> bool {
        let Notes { facts, submitted, events, others, totals } = self;
        facts.is_empty() && submitted.is_empty() && events.is_empty() && others.is_empty() && totals.is_none()
    }

    /// Brings all of it into the journal. The buffers are kept.
    fn tell(&mut self, journal: &mut Journal) {
        let Notes { facts, submitted, events, others, totals } = self;
        facts.drain(..).for_each(|(fact, run_time)| journal.write(&fact, run_time));
        submitted.drain(..).for_each(|portion| journal.submitted(portion));
        events.drain(..).for_each(|event| journal.event(event));
        others.drain(..).for_each(|(site, instance)| journal.other(site, instance));
        if let Some(totals) = totals.take() {
            journal.totals(&totals);
        }
    }
}
