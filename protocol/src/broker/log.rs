//! What one site tells one broker: a row of changes, each until it is known to have arrived.

use std::collections::VecDeque;
use std::ops::Range;

use scheduler::Time;

use super::message::{BrokerMessage, CHANGES_MAX, Change};

/// The row for one broker.
#[derive(Clone, Debug)]
pub(super) struct Log {
    epoch: u64,
    /// Number of the first change that is kept.
    base: u64,
    kept: VecDeque<Change>,
    /// How many of the kept ones were sent at least once.
    sent: usize,
    /// The newest probe that is not answered.
    pub(super) probe: u64,
    /// The newest request for a new row.
    pub(super) anew: u64,
    /// The broker is not heard of: it is told nothing, and all anew when it is.
    pub(super) is_silent: bool,
}

impl Log {
    pub(super) fn new(epoch: u64) -> Log {
        Log { epoch, base: 0, kept: VecDeque::new(), sent: 0, probe: 0, anew: 0, is_silent: false }
    }

    /// Begins a new row with these changes.
    pub(super) fn begin_anew(&mut self, at: Time, changes: Vec<Change>) {
        let asked = (self.anew > 0).then_some(Change::Asked { at, count: self.anew });
        let kept = asked.into_iter().chain(changes).collect();
        *self = Log { kept, probe: self.probe, anew: self.anew, ..Log::new(self.epoch + 1) };
    }

    /// Keeps nothing more for the broker.
    pub(super) fn silence(&mut self) {
        *self = Log { probe: self.probe, anew: self.anew, is_silent: true, ..Log::new(self.epoch + 1) };
    }

    pub(super) fn push(&mut self, change: Change) {
        if !self.is_silent {
            self.kept.push_back(change);
        }
    }

    /// Whether something was never sent.
    pub(super) fn has_news(&self) -> bool {
        self.sent < self.kept.len()
    }

    /// Whether something was sent and may have to be sent again.
    pub(super) fn is_waiting(&self) -> bool {
        self.sent > 0
    }

    /// Messages that tell what was never sent, and answer the probe; one at least if there is a probe. What need not be
    /// known to arrive is forgotten.
    pub(super) fn news(&mut self, keeps: bool) -> Vec<BrokerMessage> {
        let mut messages = self.messages(self.sent..self.kept.len());
        let probe = std::mem::take(&mut self.probe);
        if probe > 0 && messages.is_empty() {
            let first = self.base + self.kept.len() as u64;
            messages.push(BrokerMessage::State { epoch: self.epoch, first, changes: Vec::new(), probe: 0 });
        }
        if let Some(BrokerMessage::State { probe: answered, .. }) = messages.last_mut() {
            *answered = probe;
        }
        self.sent = self.kept.len();
        if !keeps {
            self.forget(self.sent);
        }
        messages
    }

    /// The same again, from the first that is not known to have arrived.
    pub(super) fn again(&self) -> Vec<BrokerMessage> {
        self.messages(0..self.sent)
    }

    /// What is kept at these places, in as many messages as it takes.
    fn messages(&self, places: Range<usize>) -> Vec<BrokerMessage> {
        let mut messages = Vec::new();
        let mut place = places.start;
        while place < places.end {
            let mut entries = 0;
            let fits = |change: &&Change| {
                entries += change.entries();
                entries <= CHANGES_MAX
            };
            let changes: Vec<Change> = self.kept.range(place..places.end).take_while(fits).cloned().collect();
            assert!(!changes.is_empty(), "one change fits a message");
            let first = self.base + place as u64;
            place += changes.len();
            messages.push(BrokerMessage::State { epoch: self.epoch, first, changes, probe: 0 });
        }
        messages
    }

    /// The broker knows everything of this row below a number.
    pub(super) fn known(&mut self, epoch: u64, next: u64) {
        let known = next.saturating_sub(self.base);
        if epoch == self.epoch && known <= self.sent as u64 {
            self.forget(usize::try_from(known).unwrap_or(0));
        }
    }

    fn forget(&mut self, count: usize) {
        self.kept.drain(..count);
        self.base += count as u64;
        self.sent -= count;
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, Time};

    use super::*;

    #[test]
    fn a_row_goes_in_messages_of_bounded_length() {
        let mut log = Log::new(1);
        let decided = |started| Change::Decided { at: Time::ZERO, started: vec![JobId(1); started] };
        for started in [CHANGES_MAX - 1, 0, 500, 500, 30] {
            log.push(decided(started));
        }
        let lengths = |messages: Vec<BrokerMessage>| -> Vec<(u64, usize)> {
            let length = |message| match message {
                BrokerMessage::State { first, changes, .. } => (first, changes.len()),
                other => panic!("{other:?}"),
            };
            messages.into_iter().map(length).collect()
        };
        let expected = [(0, 1), (1, 3), (4, 1)];
        assert_eq!(lengths(log.news(true)), expected);
        log.push(decided(1));
        assert_eq!(lengths(log.again()), expected, "only what was sent is sent again");
        log.known(1, 4);
        assert_eq!(lengths(log.again()), [(4, 1)]);
        assert_eq!(lengths(log.news(true)), [(5, 1)]);
    }
}
