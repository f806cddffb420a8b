//! What starts at a site: the first that fits, or what EASY backfilling lets start.
//!
//! EASY (Lifka 1995): heads start while they fit. The head that does not fit has a *shadow time*, the earliest estimated end
//! at which it fits, and leaves *extra* processors beside it then. Another job starts if it fits and ends by its estimate no
//! later than the shadow time, or needs at most extra, which then shrinks. A running job past its estimate is taken to end
//! now. Jobs from elsewhere may count on extra only: how long they are this site learns when they come.

use scheduler::waiting::Widths;
use scheduler::{JobSpec, QueueKey, Selection, Span, Time};

use super::Balancer;
use crate::engine::Engine;

impl Engine<Balancer> {
    /// Starts jobs that wait here.
    pub(super) fn start_own(&mut self, now: Time) {
        self.family.extra = u32::MAX;
        match self.family.rules.select {
            Selection::Easy => self.start_easy(now),
            _ => self.start_first_fit(now),
        }
    }

    /// Counts anew what is left beside the first job that waits, once another may be the first.
    pub(super) fn reserve(&mut self, now: Time) {
        self.family.extra = u32::MAX;
        if self.family.rules.select == Selection::Easy
            && let Some(head) = self.family.own.first(Widths::ALL).map(|head| head.processors)
            && head > self.core.free
            && let Some((_, extra)) = self.shadow(now, head)
        {
            self.family.extra = extra;
        }
    }

    /// The processors that a job from elsewhere may start on.
    pub(super) fn room(&self) -> u32 {
        self.core.free.min(self.family.extra)
    }

    fn start_first_fit(&mut self, now: Time) {
        while self.core.free > 0
            && let Some(&job) = self.family.own.first(Widths::up_to(self.core.free))
        {
            self.take_and_start(now, job);
        }
    }

    fn start_easy(&mut self, now: Time) {
        let head = loop {
            let Some(&head) = self.family.own.first(Widths::ALL) else { return };
            if head.processors > self.core.free {
                break head;
            }
            self.take_and_start(now, head);
        };
        if self.core.free == 0 {
            return;
        }
        let Some((shadow, extra)) = self.shadow(now, head.processors) else {
            // It is wider than this site, waits for another, and holds up nobody here.
            return self.start_first_fit(now);
        };
        self.family.extra = extra;
        let slack = shadow.since(now);
        let mut last = None;
        while let Some(job) = self.next_backfill(slack, last) {
            last = Some(job.key());
            if job.requested > slack {
                self.family.extra -= job.processors;
            }
            self.take_and_start(now, job);
        }
    }

    /// The first job after a place in the queue that may overtake the head.
    fn next_backfill(&self, slack: Span, after: Option<QueueKey>) -> Option<JobSpec> {
        let free = self.core.free;
        let later = |job: &JobSpec| after.is_none_or(|key| job.key() > key);
        let narrow = Widths::up_to(self.room());
        let beside = self.family.own.first_where(narrow, later);
        let wide = Widths { above: narrow.at_most, at_most: free };
        let before = self.family.own.first_where(wide, |job| job.requested <= slack && later(job));
        [beside, before].into_iter().flatten().min_by_key(|job| job.key()).copied()
    }

    /// Shadow time of a head that does not fit, and the processors that it leaves over then. None if it never fits.
    fn shadow(&self, now: Time, head: u32) -> Option<(Time, u32)> {
        let mut ends: Vec<(Time, u32)> =
            self.core.releases_of_running().map(|(end, width)| (end.max(now), width)).collect();
        ends.sort_unstable();
        let mut available = self.core.free;
        let mut reached: Option<Time> = None;
        for (end, width) in ends {
            if reached.is_some_and(|shadow| end > shadow) {
                break;
            }
            available += width;
            if reached.is_none() && available >= head {
                reached = Some(end);
            }
        }
        reached.map(|shadow| (shadow, available - head))
    }

    /// Takes a job out of the queue and starts it.
    pub(super) fn take_and_start(&mut self, now: Time, job: JobSpec) {
        self.family.remove(&job);
        self.core.start(now, job);
    }
}
