//! What those who look on are told: what has changed since they were told last.
//!
//! Sites and bars are lists of plain numbers, so that a browser reads a hundred thousand of them at once.

use std::collections::VecDeque;

use scheduler::JobId;
use serde::Serialize;

use super::super::brokers::FrameBroker;
use super::{CLASSES, Live, Phase, SiteNow, millis};

/// Most bars in one frame; the others are in the next.
const BARS_PER_FRAME: usize = 5000;

/// One run of neighbouring processors for as long as a job had them. Times are milliseconds of trace time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) site: usize,
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) start: i64,
    /// None while it executes.
    pub(super) end: Option<i64>,
    pub(super) class: usize,
    pub(super) job: JobId,
    pub(super) wait: i64,
    /// Of the whole job, which may have several bars.
    pub(super) processors: u32,
    /// Where its user is, and the smallest site that can hold it, by place.
    pub(super) origin: usize,
    pub(super) home: usize,
    /// A number of the log; -1 if that is not known.
    pub(super) user: i32,
}

/// Numbers of a bar, as they are told.
pub(in crate::serve) const BAR: usize = 12;

impl Bar {
    /// -1 for an end that is not known.
    fn numbers(&self) -> [i64; BAR] {
        let Bar { site, first, count, start, end, class, job, wait, processors, origin, home, user } = *self;
        let number = |place: usize| i64::try_from(place).unwrap_or(i64::MAX);
        [
            number(site),
            i64::from(first),
            i64::from(count),
            start,
            end.unwrap_or(-1),
            number(class),
            i64::try_from(job.0).unwrap_or(i64::MAX),
            wait,
            i64::from(processors),
            number(origin),
            number(home),
            i64::from(user),
        ]
    }
}

/// A job that changed sites: from, to, job, when in milliseconds.
pub type Move = (usize, usize, u64, i64);

/// Numbers of a site, as they are told.
pub(in crate::serve) const ROW: usize = 11;

impl SiteNow {
    /// Place, since when it is away (-1 if it is not), busy processors and waiting jobs by class, jobs that ended, came, and
    /// went. Who is away has no busy processors.
    pub(super) fn numbers(&self, place: usize) -> [i64; ROW] {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let [a, b, h] = if self.down.is_some() { [0; CLASSES] } else { self.busy.map(i64::from) };
        let [wait_a, wait_b, wait_h] = self.waiting.map(count);
        let place = i64::try_from(place).unwrap_or(i64::MAX);
        let [ended, came, went] = [self.ended, self.came, self.went].map(count);
        [place, self.down.map_or(-1, millis), a, b, h, wait_a, wait_b, wait_h, ended, came, went]
    }
}

/// What somebody who looks on was told already; nothing by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Of the last frame.
    pub version: u64,
    bars: usize,
    ends: Option<usize>,
    paces: usize,
    moves: u64,
    words: u64,
}

/// What has changed since somebody was told last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame {
    /// Grows with every change.
    pub version: u64,
    phase: Phase,
    /// Trace time in milliseconds.
    pub now: i64,
    /// Jobs that wait, run, and have ended.
    pub(super) jobs: [u64; 3],
    /// Jobs to come in all, with those of orders.
    total: usize,
    /// [`SoFar::ratio`].
    pub(super) ratio: Option<f64>,
    /// Its two halves, in seconds of trace time.
    makespan: f64,
    bound: f64,
    /// Sites that changed, with as many numbers each as `ROW` says.
    pub sites: Vec<i64>,
    /// Directed links that are cut by order, if they changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cuts: Option<Vec<(usize, usize)>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    brokers: Vec<FrameBroker>,
    /// New bars, with as many numbers each as [`BAR`] says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) bars: Vec<i64>,
    /// Bars that have ended: the number of each and its end, one after the other. Those that were not told yet bring their end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ends: Vec<i64>,
    /// Jobs on shared nodes that go on at another speed: of each its number, from when on, and how many times longer it takes, in
    /// hundredths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) paces: Vec<i64>,
    /// The latest transfers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) moves: Vec<Move>,
    /// What happened, and when in milliseconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) words: Vec<(i64, String)>,
}

impl Live {
    /// What has changed since somebody was told last, who is told now: everything if nothing was.
    pub fn since(&self, told: &mut Told) -> Frame {
        let new = self.sites.iter().enumerate().filter(|(_, site)| site.changed > told.version);
        let bars = &self.bars[told.bars..self.bars.len().min(told.bars + BARS_PER_FRAME)];
        let ends = &self.ends[told.ends.unwrap_or(self.ends.len())..];
        let number = |place: usize| i64::try_from(place).unwrap_or(i64::MAX);
        // A bar that was not told yet brings its end.
        let known = ends.iter().filter(|place| **place < told.bars);
        let frame = Frame {
            version: self.version,
            phase: self.phase,
            now: millis(self.now),
            jobs: self.so_far.counts(),
            total: self.jobs.len(),
            ratio: self.so_far.ratio(self.now),
            makespan: self.so_far.makespan(self.now).as_secs_f64(),
            bound: self.so_far.bound().as_secs_f64(),
            sites: new.flat_map(|(place, site)| site.numbers(place)).collect(),
            cuts: (self.cuts_changed > told.version).then(|| self.cuts.iter().copied().collect()),
            brokers: self.brokers.since(told.version),
            bars: bars.iter().flat_map(Bar::numbers).collect(),
            ends: known.flat_map(|&place| [number(place), self.bars[place].end.unwrap_or(-1)]).collect(),
            paces: self.paces[told.paces..].iter().flatten().copied().collect(),
            moves: newest(&self.moves, self.moved - told.moves).copied().collect(),
            words: newest(&self.words, self.said - told.words).cloned().collect(),
        };
        *told = Told {
            version: self.version,
            bars: told.bars + bars.len(),
            ends: Some(self.ends.len()),
            paces: self.paces.len(),
            moves: self.moved,
            words: self.said,
        };
        frame
    }

    /// Whether there is something that was not told.
    pub fn has_news(&self, told: &Told) -> bool {
        self.version != told.version || self.bars.len() > told.bars
    }

    /// Whether the next frame is not the last of what there is now.
    pub fn has_more(&self, told: &Told) -> bool {
        self.bars.len() > told.bars
    }
}

/// The last so many of what is kept.
fn newest<T>(kept: &VecDeque<T>, count: u64) -> impl Iterator<Item = &T> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    kept.iter().skip(kept.len().saturating_sub(count))
}
