//! Processors free at every instant from now on, as planned: a step function with one breakpoint per change.

use crate::time::{Span, Time};

/// A step function of time. `free[i]` holds from `times[i]` until `times[i + 1]`, the last for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    processors: u32,
    /// Strictly ascending, never empty.
    times: Vec<Time>,
    /// No two neighbors are equal.
    free: Vec<u32>,
}

impl Profile {
    /// Everything free from an instant on.
    pub(super) fn new(from: Time, processors: u32) -> Self {
        Profile { processors, times: vec![from], free: vec![processors] }
    }

    /// Starts again with `busy` processors in use from `from`, of which each of `ends`, ascending, gives some
    /// back.
    pub(super) fn rebuild(&mut self, from: Time, busy: u32, ends: impl Iterator<Item = (Time, u32)>) {
        self.times.clear();
        self.free.clear();
        let mut free = self.processors - busy;
        self.times.push(from);
        self.free.push(free);
        for (time, processors) in ends {
            free += processors;
            if self.times.last() == Some(&time) {
                *self.free.last_mut().expect("as long as the times") = free;
            } else {
                self.times.push(time);
                self.free.push(free);
            }
        }
        assert_eq!(free, self.processors, "everything that runs ends");
    }

    /// Processors free at an instant not before the first breakpoint.
    pub(super) fn free_at(&self, time: Time) -> u32 {
        self.free[self.segment(time)]
    }

    /// Drops what is over.
    pub(super) fn forget_before(&mut self, now: Time) {
        let over = self.segment(now);
        if over > 0 {
            self.times.drain(..over);
            self.free.drain(..over);
        }
    }

    /// The earliest start, not before `from`, of a job of this width and length.
    pub(super) fn earliest(&self, from: Time, processors: u32, length: Span) -> Time {
        self.hole(from, Time::MAX, processors, length).expect("everything is free in the end")
    }

    /// The earliest start in `from..before` of a job of this width and length that the profile holds at
    /// `before` now.
    ///
    /// Its own reservation begins at `before` and is no obstacle to itself, so only what lies earlier is
    /// looked at.
    pub(super) fn hole(&self, from: Time, before: Time, processors: u32, length: Span) -> Option<Time> {
        let mut index = self.segment(from);
        loop {
            index += self.free[index..].iter().position(|&free| free >= processors)?;
            let start = self.times[index].max(from);
            if start >= before {
                return None;
            }
            let end = start.saturating_add(length).min(before);
            let after = &self.times[index + 1..];
            let inside = self.free[index + 1..].iter().zip(after).take_while(|&(_, &time)| time < end);
            match inside.enumerate().find(|&(_, (&free, _))| free < processors) {
                Some((offset, _)) => index += 1 + offset,
                None => return Some(start),
            }
        }
    }

    /// Takes processors from `start` until `end`.
    ///
    /// # Panics
    /// If so many are not free throughout.
    pub(super) fn reserve(&mut self, start: Time, end: Time, processors: u32) {
        self.change(start, end, |free| {
            free.checked_sub(processors).expect("a reservation fits into the profile")
        });
    }

    /// Gives processors back from `start` until `end`.
    ///
    /// # Panics
    /// If more come back than there are.
    pub(super) fn release(&mut self, start: Time, end: Time, processors: u32) {
        let all = self.processors;
        self.change(start, end, |free| {
            assert!(free + processors <= all, "no more processors come back than there are");
            free + processors
        });
    }

    /// Walks everything.
    ///
    /// # Panics
    /// If a breakpoint changes nothing or is out of order, or if the end is not free.
    pub(super) fn check_invariants(&self) {
        assert!(self.times.is_sorted_by(|a, b| a < b), "breakpoints ascend");
        assert!(self.free.windows(2).all(|pair| pair[0] != pair[1]), "each breakpoint changes something");
        assert_eq!(self.times.len(), self.free.len(), "one count per breakpoint");
        assert_eq!(self.free.last(), Some(&self.processors), "everything is free in the end");
    }

    /// Breakpoints with the processors free from there on.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Time, u32)> {
        self.times.iter().copied().zip(self.free.iter().copied())
    }

    fn segment(&self, time: Time) -> usize {
        let after = self.times.partition_point(|&at| at <= time);
        after.checked_sub(1).expect("the profile begins no later than what is asked of it")
    }

    fn change(&mut self, start: Time, end: Time, change: impl Fn(u32) -> u32) {
        if start >= end {
            return;
        }
        let first = self.cut(start);
        let last = self.cut(end);
        for free in &mut self.free[first..last] {
            *free = change(*free);
        }
        self.join(last);
        self.join(first);
    }

    /// The index of the breakpoint at this instant, made if need be.
    fn cut(&mut self, time: Time) -> usize {
        let segment = self.segment(time);
        if self.times[segment] == time {
            return segment;
        }
        self.times.insert(segment + 1, time);
        self.free.insert(segment + 1, self.free[segment]);
        segment + 1
    }

    /// Drops the breakpoint at an index if nothing changes there.
    fn join(&mut self, index: usize) {
        if index > 0 && self.free[index - 1] == self.free[index] {
            self.times.remove(index);
            self.free.remove(index);
        }
    }
}
