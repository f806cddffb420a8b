//! Messages that have arrived and are not due, by sender and number.
//!
//! The modelled network may lose a message that the real one delivers, or deliver it twice; the coordinator says so.

use std::collections::BTreeMap;

use scheduler::SiteId;

use crate::frame::Frame;

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MailboxError {
    /// So many messages wait already, and that is the limit.
    #[error("more than {0} messages wait until they are due (delay_line_max)")]
    Full(usize),
    /// It came before.
    #[error("message {number} of site {from} came twice over the network")]
    Twice { from: SiteId, number: u64 },
}

/// A message, or what is known of one that has not arrived.
#[derive(Debug)]
struct Slot {
    frame: Option<Frame>,
    /// How often it will be due.
    copies: u8,
}

/// All messages to one site that are under way in virtual time.
#[derive(Debug)]
pub(crate) struct Mailbox {
    slots: BTreeMap<(SiteId, u64), Slot>,
    held: usize,
    held_max: usize,
}

impl Mailbox {
    /// An empty one for at most `held_max` messages.
    pub(crate) fn new(held_max: usize) -> Mailbox {
        Mailbox { slots: BTreeMap::new(), held: 0, held_max }
    }

    /// Takes a message that arrived.
    pub(crate) fn put(&mut self, frame: Frame) -> Result<(), MailboxError> {
        let (from, number) = (frame.from, frame.sequence);
        let slot = self.slots.entry((from, number)).or_insert(Slot { frame: None, copies: 1 });
        if slot.frame.is_some() {
            return Err(MailboxError::Twice { from, number });
        }
        if slot.copies == 0 {
            self.slots.remove(&(from, number));
            return Ok(());
        }
        if self.held >= self.held_max {
            return Err(MailboxError::Full(self.held_max));
        }
        slot.frame = Some(frame);
        self.held += 1;
        Ok(())
    }

    /// A message, here already or not, will be due so many times.
    pub(crate) fn expect(&mut self, from: SiteId, number: u64, copies: u8) {
        let slot = self.slots.entry((from, number)).or_insert(Slot { frame: None, copies });
        slot.copies = copies;
        if copies == 0 && slot.frame.is_some() {
            self.slots.remove(&(from, number));
            self.held -= 1;
        }
    }

    /// A message that is due, if it is here.
    pub(crate) fn take(&mut self, from: SiteId, number: u64) -> Option<Frame> {
        let slot = self.slots.get_mut(&(from, number))?;
        if slot.copies > 1 && slot.frame.is_some() {
            slot.copies -= 1;
            return slot.frame.clone();
        }
        let frame = slot.frame.take()?;
        self.slots.remove(&(from, number));
        self.held -= 1;
        Some(frame)
    }

    /// How many messages wait here.
    pub(crate) fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use scheduler::Time;

    use super::*;

    const A: SiteId = SiteId(1);
    const B: SiteId = SiteId(2);

    fn message(from: SiteId, sequence: u64) -> Frame {
        let message = vec![sequence as u8];
        Frame {
            from,
            to: SiteId(3),
            instance: 1,
            sequence,
            sent_at: Time::ZERO,
            injected: scheduler::Span::ZERO,
            message,
            run_times: Vec::new(),
        }
    }

    #[test]
    fn messages_are_found_by_sender_and_number_in_any_order() {
        let mut mailbox = Mailbox::new(9);
        for (from, number) in [(A, 1), (B, 1), (A, 2)] {
            mailbox.put(message(from, number)).unwrap();
        }
        assert_eq!(mailbox.take(A, 2), Some(message(A, 2)));
        assert_eq!(mailbox.take(A, 2), None, "once");
        assert_eq!(mailbox.take(B, 1), Some(message(B, 1)));
        assert_eq!(mailbox.held(), 1);
    }

    #[test]
    fn a_lost_message_is_dropped_whether_it_comes_before_or_after_the_note() {
        let mut mailbox = Mailbox::new(1);
        mailbox.put(message(A, 1)).unwrap();
        mailbox.expect(A, 1, 0);
        assert_eq!((mailbox.take(A, 1), mailbox.held()), (None, 0));

        mailbox.expect(A, 2, 0);
        mailbox.put(message(A, 2)).unwrap();
        assert_eq!((mailbox.take(A, 2), mailbox.held()), (None, 0));
        assert!(mailbox.slots.is_empty());
    }

    #[test]
    fn a_repeated_message_is_due_twice() {
        let mut mailbox = Mailbox::new(2);
        mailbox.put(message(A, 1)).unwrap();
        mailbox.expect(A, 1, 2);
        mailbox.expect(A, 2, 2);
        mailbox.put(message(A, 2)).unwrap();
        for number in [1, 2, 1, 2] {
            assert_eq!(mailbox.take(A, number), Some(message(A, number)));
        }
        assert_eq!((mailbox.take(A, 1), mailbox.held()), (None, 0));
        assert!(mailbox.slots.is_empty());
    }

    #[test]
    fn too_many_and_repeated_messages_are_refused() {
        let mut mailbox = Mailbox::new(1);
        mailbox.put(message(A, 1)).unwrap();
        assert_eq!(mailbox.put(message(A, 1)), Err(MailboxError::Twice { from: A, number: 1 }));
        assert_eq!(mailbox.put(message(A, 2)), Err(MailboxError::Full(1)));
    }
}
