//! Orders and replies as bytes: a length, then bincode with fixed-width integers.
//!
//! The length is checked before anything is allocated, and trailing bytes are refused. Both ends are of one release:
//! the name of the upgrade carries the version.

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest order or reply, in bytes: some hundred thousand starts or events in one answer.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of the length before each.
const HEAD: usize = 4;

/// Why bytes are no order or no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Longer than [`BYTES_MAX`].
    #[error("it has {0} bytes, more than {BYTES_MAX}")]
    TooLong(usize),
    /// Not what was expected.
    #[error("it does not decode: {0}")]
    Malformed(String),
}

fn options() -> impl Options {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_little_endian()
        .with_limit(BYTES_MAX as u64)
        .reject_trailing_bytes()
}

/// Appends one order or reply to `bytes`.
///
/// # Errors
/// If it is too long; then nothing is appended.
pub fn put<T: Serialize>(bytes: &mut Vec<u8>, content: &T) -> Result<(), WireError> {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; HEAD]);
    let written = options().serialize_into(&mut *bytes, content);
    let len = bytes.len() - start - HEAD;
    if written.is_err() || len > BYTES_MAX {
        bytes.truncate(start);
        return Err(WireError::TooLong(len));
    }
    let head = u32::try_from(len).expect("the cap fits 32 bits").to_le_bytes();
    bytes[start..start + HEAD].copy_from_slice(&head);
    Ok(())
}

/// Bytes as they come, until they are whole orders or replies.
#[derive(Debug, Default)]
pub struct Incoming {
    bytes: Vec<u8>,
    /// How many of them were taken.
    taken: usize,
}

impl Incoming {
    /// Where to put more bytes: at the end.
    pub fn space(&mut self) -> &mut Vec<u8> {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        &mut self.bytes
    }

    /// The next order or reply, if all of it is there.
    ///
    /// # Errors
    /// If it announces too many bytes, or is something else.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        let rest = &self.bytes[self.taken..];
        let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else { return Ok(None) };
        let len = u32::from_le_bytes(*head) as usize;
        if len > BYTES_MAX {
            return Err(WireError::TooLong(len));
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let content = options().deserialize(body).map_err(|error| WireError::Malformed(error.to_string()))?;
        self.taken += HEAD + len;
        Ok(Some(content))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::{Input, Output};
    use scheduler::event::MessageKind;
    use scheduler::{EventKind, JobId, JobSpec, Labels, SiteId, Span, Time};

    use super::super::{Answer, Due, Note, Order, Posted, Reply, Terms};
    use super::*;

    fn job() -> JobSpec {
        JobSpec {
            id: JobId(4),
            submit: Time::ZERO,
            processors: 2,
            requested: Span::from_secs(9),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    fn orders() -> Vec<Order> {
        let message = Input::Message { from: SiteId(2), message: Due { number: 7 } };
        let lost = Note::Lost { at: Time::from_secs(3), to: SiteId(2), kind: MessageKind::Grant };
        let run_time = Note::RunTime { job: JobId(4), run_time: Span::from_secs(7) };
        let copies = Note::Copies { from: SiteId(2), number: 8, copies: 2 };
        let begins = Note::Begins { part: job(), at: Time::from_secs(2) };
        let notes = vec![lost, copies, run_time, Note::Waits { job: JobId(4) }, begins];
        let submitted = Input::Submitted(job());
        let inputs =
            vec![submitted, Input::Completed(JobId(1)), message, Input::Turn, Input::Settle, Input::Timeout];
        vec![
            Order::Begin(Terms { message_events: true, patience: Duration::from_secs(9) }),
            Order::Tell { now: Time::from_secs(5), notes, inputs },
        ]
    }

    #[test]
    fn what_comes_byte_by_byte_is_what_was_sent() {
        let mut bytes = Vec::new();
        for order in orders() {
            put(&mut bytes, &order).unwrap();
        }
        let mut incoming = Incoming::default();
        let mut received: Vec<Order> = Vec::new();
        for byte in bytes {
            incoming.space().push(byte);
            received.extend(incoming.take().unwrap());
        }
        assert_eq!(received, orders());
        assert!(incoming.space().is_empty());
    }

    #[test]
    fn replies_round_trip() {
        let message = Posted { number: 3, kind: MessageKind::Notice, wakes: true, payload: 9 };
        let event = EventKind::Completed { job: JobId(4), processors: 2 };
        let send = Output::Send { to: SiteId(1), message };
        let outputs = vec![Output::Start(job()), send, Output::Event(event)];
        let answer = Answer { outputs, timeout: Some(Time::from_secs(1)), settle: true, quiet: false };
        for reply in [Reply::Begun, Reply::Told(vec![answer, Answer::default()]), Reply::Failed("so".into())]
        {
            let mut incoming = Incoming::default();
            put(incoming.space(), &reply).unwrap();
            assert_eq!(incoming.take(), Ok(Some(reply)));
        }
    }

    #[test]
    fn hostile_bytes_are_refused() {
        let mut long = Incoming::default();
        long.space().extend((BYTES_MAX as u32 + 1).to_le_bytes());
        assert_eq!(long.take::<Order>(), Err(WireError::TooLong(BYTES_MAX + 1)));

        let mut nonsense = Incoming::default();
        nonsense.space().extend([4, 0, 0, 0, 9, 9, 9, 9]);
        assert!(matches!(nonsense.take::<Order>(), Err(WireError::Malformed(_))));

        let mut trailing = Incoming::default();
        trailing.space().extend([5, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!(matches!(trailing.take::<Reply>(), Err(WireError::Malformed(_))));
    }
}
