//! Two event logs, event by event, in the memory of one instant.
//!
//! Two logs can agree in two ways. *Exactly*: the same events in the same order. *Per site*: at every instant each
//! site did the same in the same order, but the sites come in another order in the log; that is all that processes
//! without a common sequence can promise. Both are judged in one pass, with and without the events about single
//! messages, which a run may leave out.
//!
//! Where a log is not ascending in time, each run of equal times counts as an instant.

use std::collections::{BTreeMap, VecDeque};

use scheduler::{Event, EventKind, SiteId, Time};
use serde::Serialize;

/// Equal events that are kept from before a difference.
const BEFORE: usize = 3;
/// Events of each log that are kept from a difference on.
const AFTER: usize = 5;

/// One of the two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The log that is named first.
    Left,
    /// The log that is named second.
    Right,
}

impl Side {
    /// The place in a pair.
    fn index(self) -> usize {
        self as usize
    }
}

/// How strictly the order of events counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strictness {
    /// The same events in the same order.
    Exact,
    /// The same events of each site in the same order.
    PerSite,
}

/// An event and where it is in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its line, from 1.
    pub line: u64,
    /// The event that this line says.
    pub event: Event,
}

/// Where two logs part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// The last equal events before, by their lines in the first log.
    pub before: Vec<Line>,
    /// From there on in the first log; empty if it ends.
    pub left: Vec<Line>,
    /// From there on in the second log.
    pub right: Vec<Line>,
}

/// What two logs have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventAgreement {
    /// Events of the two logs, all of them.
    pub events: [u64; 2],
    /// Of these, events about single messages: sent and received.
    pub about_messages: [u64; 2],
    /// Whether the events about messages were compared. They are not if exactly one log has none.
    pub messages_compared: bool,
    /// Events that are equal and in the same order.
    pub same: u64,
    /// Instants whose events are the same per site, but in another order of sites.
    pub instants_reordered: u64,
    /// Instants at which some site did something else.
    pub instants_different: u64,
    /// Events at such instants without an equal one of the same site at about the same place. An upper bound.
    pub differing: [u64; 2],
    /// The first difference in order.
    pub first_exact: Option<Divergence>,
    /// The first difference of a site; the lines are of this site alone.
    pub first_per_site: Option<Divergence>,
}

impl EventAgreement {
    /// Whether the logs agree.
    pub fn identical(&self, order: Strictness) -> bool {
        self.first(order).is_none()
    }

    /// Where they do not.
    pub fn first(&self, order: Strictness) -> Option<&Divergence> {
        match order {
            Strictness::Exact => self.first_exact.as_ref(),
            Strictness::PerSite => self.first_per_site.as_ref(),
        }
    }
}

/// Whether an event is about a single message, which an experiment may leave out of its log.
pub fn is_about_a_message(event: &Event) -> bool {
    matches!(event.kind, EventKind::Sent { .. } | EventKind::Received { .. })
}

/// Compares two logs that can fail to be read. Reads the one that is behind in time, so that only what one instant
/// holds is in memory.
///
/// # Errors
/// The first error of a log.
pub fn streams<E>(
    left: impl IntoIterator<Item = Result<Event, E>>,
    right: impl IntoIterator<Item = Result<Event, E>>,
) -> Result<EventAgreement, E> {
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let mut comparison = EventComparison::default();
    let mut latest = [Some(Time::from_micros(i64::MIN)); 2];
    loop {
        let side = match latest {
            [None, None] => return Ok(comparison.finish()),
            [Some(_), None] => Side::Left,
            [None, Some(_)] => Side::Right,
            // At equal times in turns.
            [Some(l), Some(r)] if l < r || (l == r && comparison.behind() == Side::Left) => Side::Left,
            _ => Side::Right,
        };
        let next = match side {
            Side::Left => left.next(),
            Side::Right => right.next(),
        };
        let event = next.transpose()?;
        if let Some(event) = &event {
            comparison.push(side, event);
        }
        latest[side.index()] = event.map(|event| event.at);
    }
}

/// Two logs that come piece by piece. Holds what has no partner yet: feed both at about the same pace.
#[derive(Debug, Default)]
pub struct EventComparison {
    lines: [u64; 2],
    about_messages: [u64; 2],
    all: Matcher,
    without_messages: Matcher,
}

impl EventComparison {
    /// Takes the next event of a log.
    pub fn push(&mut self, side: Side, event: &Event) {
        self.lines[side.index()] += 1;
        let line = Line { line: self.lines[side.index()], event: *event };
        if is_about_a_message(event) {
            self.about_messages[side.index()] += 1;
        } else {
            self.without_messages.push(side, line);
        }
        self.all.push(side, line);
    }

    /// The log of which fewer events came.
    fn behind(&self) -> Side {
        if self.lines[0] <= self.lines[1] { Side::Left } else { Side::Right }
    }

    /// Both logs have ended.
    pub fn finish(mut self) -> EventAgreement {
        let messages_compared = (self.about_messages[0] > 0) == (self.about_messages[1] > 0);
        let matcher = if messages_compared { &mut self.all } else { &mut self.without_messages };
        matcher.finish();
        EventAgreement {
            events: self.lines,
            about_messages: self.about_messages,
            messages_compared,
            same: matcher.same,
            instants_reordered: matcher.instants_reordered,
            instants_different: matcher.instants_different,
            differing: matcher.differing,
            first_exact: matcher.first_exact.take(),
            first_per_site: matcher.first_per_site.take(),
        }
    }
}

/// Matches two sequences from their front.
#[derive(Debug, Default)]
struct Matcher {
    queues: [VecDeque<Line>; 2],
    before: VecDeque<Line>,
    same: u64,
    instants_reordered: u64,
    instants_different: u64,
    differing: [u64; 2],
    first_exact: Option<Divergence>,
    first_per_site: Option<Divergence>,
}

impl Matcher {
    fn push(&mut self, side: Side, line: Line) {
        self.queues[side.index()].push_back(line);
        self.advance(false);
    }

    fn finish(&mut self) {
        self.advance(true);
    }

    /// Passes what can be judged: equal events at the front, and instants that are whole in both logs.
    fn advance(&mut self, ended: bool) {
        loop {
            let [left, right] = &self.queues;
            let at = match (left.front(), right.front()) {
                (None, None) => return,
                (Some(l), Some(r)) if l.event == r.event => {
                    self.same += 1;
                    self.pass();
                    continue;
                }
                (Some(l), Some(r)) => l.event.at.min(r.event.at),
                (Some(line), None) | (None, Some(line)) if ended => line.event.at,
                _ => return,
            };
            let may_grow = |queue: &VecDeque<Line>| queue.back().is_none_or(|line| line.event.at == at);
            if !ended && (may_grow(left) || may_grow(right)) {
                return;
            }
            self.judge_instant(at);
        }
    }

    fn pass(&mut self) {
        let [left, right] = &mut self.queues;
        right.pop_front();
        if self.before.len() == BEFORE {
            self.before.pop_front();
        }
        self.before.extend(left.pop_front());
    }

    /// Takes out and judges all that happened at an instant, of which the fronts differ.
    fn judge_instant(&mut self, at: Time) {
        if self.first_exact.is_none() {
            let ahead = |queue: &VecDeque<Line>| queue.iter().take(AFTER).copied().collect();
            self.first_exact = Some(Divergence {
                before: self.before.iter().copied().collect(),
                left: ahead(&self.queues[0]),
                right: ahead(&self.queues[1]),
            });
        }
        let [left, right] = self.queues.each_mut().map(|queue| {
            let count = queue.iter().take_while(|line| line.event.at == at).count();
            queue.drain(..count).collect::<Vec<Line>>()
        });
        let mut sites: BTreeMap<SiteId, [Vec<Line>; 2]> = BTreeMap::new();
        for (side, lines) in [left, right].into_iter().enumerate() {
            for line in lines {
                sites.entry(line.event.site).or_default()[side].push(line);
            }
        }
        let mut different = false;
        for [left, right] in sites.into_values() {
            let equal = |(l, r): &(&Line, &Line)| l.event == r.event;
            let head = left.iter().zip(&right).take_while(equal).count();
            if head == left.len() && head == right.len() {
                continue;
            }
            different = true;
            let tail = left[head..].iter().rev().zip(right[head..].iter().rev()).take_while(equal).count();
            self.differing[0] += (left.len() - head - tail) as u64;
            self.differing[1] += (right.len() - head - tail) as u64;
            if self.first_per_site.is_none() {
                self.first_per_site = Some(Divergence {
                    before: left[head.saturating_sub(BEFORE)..head].to_vec(),
                    left: left[head..].iter().take(AFTER).copied().collect(),
                    right: right[head..].iter().take(AFTER).copied().collect(),
                });
            }
        }
        if different {
            self.instants_different += 1;
        } else {
            self.instants_reordered += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use scheduler::event::MessageKind;

    use super::*;
    use crate::fixtures::{completed, event, started};

    fn compared(left: &[Event], right: &[Event]) -> EventAgreement {
        let results =
            |events: &[Event]| events.iter().copied().map(Ok::<Event, Infallible>).collect::<Vec<_>>();
        streams(results(left), results(right)).unwrap_or_else(|never| match never {})
    }

    fn log() -> Vec<Event> {
        vec![
            started(0, 1, 1, 2),
            started(0, 2, 2, 2),
            started(0, 2, 3, 1),
            completed(5, 1, 1),
            completed(9, 2, 2),
        ]
    }

    #[test]
    fn a_log_equals_itself() {
        let agreement = compared(&log(), &log());
        assert!(agreement.identical(Strictness::Exact) && agreement.identical(Strictness::PerSite));
        assert_eq!((agreement.same, agreement.events), (5, [5, 5]));
    }

    #[test]
    fn swapped_events_of_two_sites_differ_in_order_only() {
        let mut swapped = log();
        swapped.swap(0, 1);
        let agreement = compared(&log(), &swapped);
        assert!(!agreement.identical(Strictness::Exact));
        assert!(agreement.identical(Strictness::PerSite));
        assert_eq!((agreement.instants_reordered, agreement.instants_different), (1, 0));
        let first = agreement.first_exact.unwrap();
        assert_eq!((first.left[0].line, first.left[0].event.site), (1, SiteId(1)));
        assert_eq!((first.right[0].line, first.right[0].event.site), (1, SiteId(2)));
    }

    #[test]
    fn swapped_events_of_one_site_differ_in_every_order() {
        let mut swapped = log();
        swapped.swap(1, 2);
        let agreement = compared(&log(), &swapped);
        assert!(!agreement.identical(Strictness::Exact) && !agreement.identical(Strictness::PerSite));
        assert_eq!((agreement.instants_different, agreement.differing), (1, [2, 2]));
        let first = agreement.first_per_site.unwrap();
        assert_eq!((first.left[0].line, first.right[0].line), (2, 2));
    }

    #[test]
    fn a_microsecond_is_a_difference() {
        let mut moved = log();
        moved[3].at = Time::from_micros(5_000_001);
        let agreement = compared(&log(), &moved);
        assert!(!agreement.identical(Strictness::PerSite));
        let first = agreement.first_exact.unwrap();
        assert_eq!(first.before.iter().map(|line| line.line).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!((first.left[0].line, first.right[0].line), (4, 4));
        assert_eq!((agreement.differing, agreement.same), ([1, 1], 4));
    }

    #[test]
    fn a_log_that_ends_early_differs_where_it_ends() {
        let agreement = compared(&log(), &log()[..3]);
        let first = agreement.first_exact.unwrap();
        assert_eq!(first.left.iter().map(|line| line.line).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(first.right, []);
        assert_eq!(agreement.events, [5, 3]);
        assert_eq!(agreement.differing, [2, 0]);
    }

    #[test]
    fn messages_are_left_out_where_one_log_has_none() {
        let message = MessageKind::Request;
        let mut with = log();
        with.insert(2, event(0, 1, EventKind::Sent { to: SiteId(2), message, retry: false }));
        with.insert(4, event(3, 2, EventKind::Received { from: SiteId(1), message }));

        let agreement = compared(&with, &log());
        assert!(agreement.identical(Strictness::Exact));
        assert!(!agreement.messages_compared);
        assert_eq!(agreement.about_messages, [2, 0]);

        let mut fewer = with.clone();
        fewer.remove(2);
        let agreement = compared(&with, &fewer);
        assert!(agreement.messages_compared && !agreement.identical(Strictness::PerSite));
    }

    #[test]
    fn an_error_of_a_log_ends_the_comparison() {
        let broken = [Ok(started(0, 1, 1, 2)), Err("line 2")];
        assert_eq!(streams(log().into_iter().map(Ok), broken), Err("line 2"));
    }

    #[test]
    fn only_an_instant_is_held() {
        let mut comparison = EventComparison::default();
        for second in 0..1000 {
            for side in [Side::Left, Side::Right] {
                comparison.push(side, &started(second, 1 + u32::from(side == Side::Left), 1, 1));
            }
            assert!(comparison.all.queues.iter().all(|queue| queue.len() <= 2));
        }
        assert_eq!(comparison.finish().instants_different, 1000);
    }

    proptest! {
        /// The verdicts are those of comparing whole logs.
        #[test]
        fn verdicts_are_those_of_whole_logs(
            left in prop::collection::vec((0i64..4, 1u32..3, 1u64..3), 0..8),
            right in prop::collection::vec((0i64..4, 1u32..3, 1u64..3), 0..8),
            shuffle in any::<bool>(),
        ) {
            let events = |mut rows: Vec<(i64, u32, u64)>| {
                rows.sort_by_key(|row| row.0);
                rows.into_iter().map(|(at, site, job)| started(at, site, job, 1)).collect::<Vec<_>>()
            };
            let left = events(left);
            let mut right = if shuffle { left.clone() } else { events(right) };
            if shuffle {
                right.sort_by_key(|event| (event.at, event.site));
            }
            let of_site = |events: &[Event], site| -> Vec<Event> {
                events.iter().filter(|event| event.site == SiteId(site)).copied().collect()
            };
            let agreement = compared(&left, &right);
            prop_assert_eq!(agreement.identical(Strictness::Exact), left == right);
            let per_site = (1..3).all(|site| of_site(&left, site) == of_site(&right, site));
            prop_assert_eq!(agreement.identical(Strictness::PerSite), per_site);
        }
    }
}
