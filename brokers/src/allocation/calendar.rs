//! What a site would have done since the beginning if every job had ended as estimated: the plan of a broker that is told
//! nothing (the two calendars of GSimula, Quezada Pina 2012, §4.4 and [L1297]).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use scheduler::time::earlier;
use scheduler::{JobId, JobSpec, LocalScheduler, Pass, Time};

use super::book::Book;

/// A site in the calendar of estimates.
#[derive(Clone, Debug)]
pub struct Calendar {
    book: Book,
    ends: BinaryHeap<Reverse<(Time, JobId)>>,
    /// When facts came that no decision has seen.
    undecided: Option<Time>,
    starts: Vec<JobSpec>,
}

impl Calendar {
    /// An idle site.
    pub fn new(scheduler: LocalScheduler, pass: Pass, processors: u32) -> Calendar {
        let book = Book::new(scheduler, pass, processors, true);
        Calendar { book, ends: BinaryHeap::new(), undecided: None, starts: Vec::new() }
    }

    /// The site as it is in the calendar.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// A job was given to the site.
    pub fn placed(&mut self, now: Time, job: JobSpec) {
        self.advance(now);
        self.book.joined(now, job);
        self.undecided = Some(now);
    }

    /// Plays on until an instant: what ends then has ended, and the site has not decided yet.
    pub fn advance(&mut self, to: Time) {
        loop {
            let end = self.ends.peek().map(|&Reverse((end, _))| end);
            let Some(next) = earlier(earlier(end, self.book.wake_at()), self.undecided) else {
                return;
            };
            if next > to {
                return;
            }
            while let Some(&Reverse((end, job))) = self.ends.peek()
                && end <= next
            {
                self.ends.pop();
                self.book.ended(end, job);
                self.undecided = Some(end);
            }
            if next == to {
                return;
            }
            self.undecided = None;
            self.book.decide(next, &mut self.starts);
            for job in self.starts.drain(..) {
                self.ends.push(Reverse((next.saturating_add(job.requested), job.id)));
            }
        }
    }
}
