//! What starts at a site: the first that fits, or what EASY backfilling lets start.
//!
//! EASY (Lifka 1995): heads start while they fit. The head that does not fit has a *shadow time*, the earliest estimated end
//! at which it fits, and leaves *extra* processors beside it then. Another job starts if it fits and ends by its estimate no
//! later than the shadow time, or needs at most extra, which then shrinks. A running job past its estimate is taken to end
//! now. Jobs from elsewhere may count on extra only: how long they are this site learns when they come.

use scheduler::waiting::Widths;
use scheduler::{JobSpec, QueueKey, Reservation, Room, Selection, Span, Time, reservation};

use super::Balancer;
use crate::engine::Engine;
use crate::margin::Worth;

impl Engine<Balancer> {
    /// Starts jobs that wait here.
    pub(super) fn start_own(&mut self, now: Time) {
        self.family.extra = u32::MAX;
        if self.core.starts_outside {
            self.family.extra = self.left_beside_own();
            return;
        }
        match self.family.rules.select {
            Selection::Easy => self.start_easy(now),
            _ => self.start_first_fit(now),
        }
    }

    /// Reserves for the first job that waits, if it does not fit: how long those may be that overtake it on more than is left
    /// beside it. None if nothing is reserved, also where it never fits: it is wider than this site, waits for another, and
    /// holds up nobody here.
    pub(super) fn reserve(&mut self, now: Time) -> Option<Span> {
        self.family.extra = u32::MAX;
        let head = self.family.own.first(Widths::ALL)?.processors;
        if self.family.rules.select != Selection::Easy || head <= self.core.free {
            return None;
        }
        let mut ends: Vec<(Time, u32)> = self.core.releases_of_running().collect();
        ends.sort_unstable();
        let Reservation { shadow, extra } = reservation::shadow(head, self.core.free, now, ends)?;
        self.family.extra = extra;
        Some(shadow.since(now))
    }

    /// The idle processors that no job which waits here may start on. Somebody else starts them, in an order that is not known here.
    fn left_beside_own(&self) -> u32 {
        let mut left = self.core.idle();
        for job in self.family.own.iter() {
            if job.processors <= self.core.idle() {
                left = left.saturating_sub(job.processors);
            }
            if left == 0 {
                break;
            }
        }
        left
    }

    /// Whether whoever starts jobs here is about to start all that wait, as there is room for them.
    pub(super) fn starts_all_soon(&self) -> bool {
        let mut idle = self.core.idle();
        let mut has_room = |job: &JobSpec| {
            let left = idle.checked_sub(job.processors);
            idle = left.unwrap_or(0);
            left.is_some()
        };
        self.core.starts_outside && self.family.own.iter().all(&mut has_room)
    }

    /// The processors that a job from elsewhere may start on; where jobs share nodes, those that take a task more.
    pub(super) fn room(&self) -> u32 {
        self.core.idle().min(self.family.extra)
    }

    /// The same as others are told when this site asks.
    pub(super) fn offered(&self) -> Room {
        if self.core.nodes.is_some() { self.core.room() } else { Room::Processors(self.room()) }
    }

    /// The processors that jobs of others may have, now or later. A site that leaves takes nothing: who has not heard of it
    /// yet would give jobs away to it, get them back and be told of the same room again, without an end.
    pub(super) fn room_for_others(&self) -> u32 {
        if self.core.is_leaving() { 0 } else { self.room() }
    }

    fn start_first_fit(&mut self, now: Time) {
        while self.core.idle() > 0
            && let Some(job) = self.family.first_worth(Widths::ALL, &self.core.room(), &Worth::Any)
        {
            self.take_and_start(now, job);
        }
    }

    fn start_easy(&mut self, now: Time) {
        while let Some(&head) = self.family.own.first(Widths::ALL)
            && head.processors <= self.core.free
        {
            self.take_and_start(now, head);
        }
        if self.core.free == 0 {
            return;
        }
        let Some(slack) = self.reserve(now) else { return self.start_first_fit(now) };
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

    /// Takes a job out of the queue and starts it.
    pub(super) fn take_and_start(&mut self, now: Time, job: JobSpec) {
        let believed = self.family.remove(&job);
        let estimates = self.family.estimates.as_mut();
        let job = estimates.map_or(believed, |estimates| estimates.start(now, &believed));
        self.core.start_until(now, job, now.saturating_add(believed.requested));
    }
}
