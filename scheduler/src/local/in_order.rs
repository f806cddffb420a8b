//! FCFS, LIST and EASY: schedulers that keep no plan between passes but the queue itself.

use super::backlog::{Backlog, Limits};
use super::fill_index::FillIndex;
use super::machine::Machine;
use super::ordered::Ordered;
use super::rule::QueueRule;
use super::turn::{Place, Waiting};
use crate::job::JobId;
use crate::reservation::Reservation;
use crate::time::Time;

/// What may overtake a head that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overtaking {
    /// Nothing (FCFS).
    Never,
    /// Everything that fits (LIST).
    WhateverFits,
    /// What does not delay the head by estimates, in queue order (EASY, Lifka 1995; Mu'alem and Feitelson
    /// 2001).
    FirstFit,
    /// The same, the job that fills most first.
    BestFit,
    /// The same, the job with the shortest request first.
    Shortest,
    /// The same, the narrowest job first.
    Smallest,
}

/// A queue in order of submission.
#[derive(Clone, Debug)]
pub(super) struct InOrder {
    overtaking: Overtaking,
    backlog: Backlog,
    /// The same jobs for best fit; empty otherwise.
    fill: FillIndex,
    /// The same jobs in another order, if there is one.
    ordered: Option<Ordered>,
    taken: Vec<Waiting>,
}

impl InOrder {
    pub(super) fn new(overtaking: Overtaking) -> Self {
        let ordered = match overtaking {
            Overtaking::Shortest => Some(Ordered::by(|job| job.requested.as_micros())),
            Overtaking::Smallest => Some(Ordered::by(|job| job.processors.into())),
            _ => None,
        };
        let (backlog, fill) = (Backlog::new(), FillIndex::default());
        InOrder { overtaking, backlog, fill, ordered, taken: Vec::new() }
    }

    fn take_best_fit(&mut self, mut limits: Limits) {
        self.backlog.forget_candidates();
        while let Some(key) = self.fill.best(&limits) {
            let job = self.remove(key);
            limits.take(job.shape());
            self.taken.push(job);
        }
    }

    fn take_ordered(&mut self, limits: Limits) {
        let Some(ordered) = &mut self.ordered else { return };
        self.backlog.forget_candidates();
        ordered.take(limits, &mut self.taken);
        for job in &self.taken {
            self.backlog.remove(job.place()).expect("both hold the same jobs");
        }
    }

    fn remove(&mut self, key: Place) -> Waiting {
        let job = self.backlog.remove(key).expect("what is taken waits");
        if self.overtaking == Overtaking::BestFit {
            self.fill.remove(&job);
        }
        if let Some(ordered) = &mut self.ordered {
            ordered.remove(&job);
        }
        job
    }
}

impl QueueRule for InOrder {
    fn waiting(&self) -> usize {
        self.backlog.len()
    }

    fn insert(&mut self, job: Waiting) {
        self.backlog.insert(job);
        if self.overtaking == Overtaking::BestFit {
            self.fill.insert(&job);
        }
        if let Some(ordered) = &mut self.ordered {
            ordered.insert(job);
        }
    }

    fn take(&mut self, job: JobId) -> Option<Waiting> {
        let waiting = self.backlog.find(job)?;
        self.remove(waiting.place());
        Some(waiting)
    }

    fn last_place(&self) -> Option<Place> {
        self.backlog.last_place()
    }

    fn choose(&mut self, now: Time, machine: &mut Machine) {
        let mut free = machine.free_for_planning(now);
        while let Some(head) = self.backlog.head().copied().filter(|head| head.processors <= free) {
            self.remove(head.place());
            machine.promise(now, head);
            free -= head.processors;
        }
        let Some(head) = self.backlog.head().copied().filter(|_| self.overtaking != Overtaking::Never) else {
            self.backlog.forget_candidates();
            return;
        };
        let limits = if free == 0 || self.overtaking == Overtaking::WhateverFits {
            Limits::unreserved(now, free)
        } else {
            let Reservation { shadow, extra } = machine.reservation(now, head.processors);
            Limits { now, free, shadow, extra }
        };
        // The head is among the candidates and never taken: it does not fit.
        match self.overtaking {
            Overtaking::BestFit => self.take_best_fit(limits),
            Overtaking::Shortest | Overtaking::Smallest => self.take_ordered(limits),
            _ => self.backlog.take_first_fit(limits, &mut self.taken),
        }
        for job in self.taken.drain(..) {
            machine.promise(now, job);
        }
    }

    fn head(&self) -> Option<&Waiting> {
        let reserves = !matches!(self.overtaking, Overtaking::Never | Overtaking::WhateverFits);
        self.backlog.head().filter(|_| reserves)
    }

    /// None where a job's place does not count.
    fn left(&self, now: Time, free: u32) -> Option<Limits> {
        match self.overtaking {
            Overtaking::BestFit | Overtaking::Shortest | Overtaking::Smallest => None,
            _ if self.backlog.head().is_none() => Some(Limits::unreserved(now, free)),
            Overtaking::Never => Some(Limits::closed(now)),
            Overtaking::WhateverFits | Overtaking::FirstFit => {
                Some(self.backlog.refused_by().unwrap_or_else(|| Limits::closed(now)))
            }
        }
    }

    fn check_invariants(&self, _now: Option<Time>, _machine: &Machine) {
        self.backlog.check_invariants();
        if self.overtaking == Overtaking::BestFit {
            assert_eq!(self.fill.len(), self.backlog.len(), "both hold the same jobs");
        }
        if let Some(ordered) = &self.ordered {
            ordered.check_invariants();
            assert_eq!(ordered.len(), self.backlog.len(), "both hold the same jobs");
        }
    }

    fn boxed(&self) -> Box<dyn QueueRule> {
        Box::new(self.clone())
    }
}
