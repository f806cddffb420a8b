//! What crosses the stream between two nodes: frames one way, answers to them the other, on the same stream.
//!
//! ```text
//! answers: 0 u8 | count u8 | count answers, u8 each, in the order of the frames they answer
//! frame:   1 u8 | length u32, little-endian | frame
//! ```
//! A length is checked against the cap before anything is allocated.

use std::io;

use super::super::codec::{Answer, invalid};

/// A frame that announces more bytes than are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {len} bytes exceeds the cap of {max}")]
pub(in crate::network) struct Oversize {
    len: usize,
    max: usize,
}

/// Whether that is what went wrong.
pub(in crate::network) fn is_oversize(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Oversize>())
}

const ANSWERS: u8 = 0;
const FRAME: u8 = 1;
/// Bytes before a frame.
const HEAD: usize = 5;

/// One thing that came over the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::network) enum Record {
    /// What became of the oldest frame that was not answered.
    Answer(Answer),
    /// The bytes of a whole frame.
    Frame(Vec<u8>),
}

/// Appends answers, which may be none.
pub(in crate::network) fn put_answers(bytes: &mut Vec<u8>, answers: &mut Vec<u8>) {
    for some in answers.chunks(usize::from(u8::MAX)) {
        bytes.extend([ANSWERS, some.len() as u8]);
        bytes.extend_from_slice(some);
    }
    answers.clear();
}

/// Appends a record without content, which only makes the stream known to the other node.
pub(in crate::network) fn put_nothing(bytes: &mut Vec<u8>) {
    bytes.extend([ANSWERS, 0]);
}

/// Appends a frame.
pub(in crate::network) fn put_frame(bytes: &mut Vec<u8>, frame: &[u8]) {
    let len = u32::try_from(frame.len()).expect("the cap fits 32 bits");
    bytes.push(FRAME);
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(frame);
}

/// Bytes as they come, until they are whole records.
#[derive(Debug)]
pub(in crate::network) struct Incoming {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Incoming {
    /// For frames of at most so many bytes.
    pub(in crate::network) fn new(bytes_max: usize) -> Incoming {
        Incoming { bytes: Vec::new(), bytes_max }
    }

    /// Adds bytes and gives all records that are whole to `sink`.
    pub(in crate::network) fn add(&mut self, bytes: &[u8], sink: &mut impl FnMut(Record)) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        let mut taken = 0;
        while let Some(len) = self.record(taken, sink)? {
            taken += len;
        }
        self.bytes.drain(..taken);
        Ok(())
    }

    /// Bytes that wait for others.
    #[cfg(feature = "doors")]
    pub(in crate::network) fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Gives the record that begins here to `sink`, if it is whole; its length.
    fn record(&self, from: usize, sink: &mut impl FnMut(Record)) -> io::Result<Option<usize>> {
        match self.bytes[from..] {
            [ANSWERS, count, ref rest @ ..] => {
                let count = usize::from(count);
                let Some(answers) = rest.get(..count) else { return Ok(None) };
                for answer in answers {
                    sink(Record::Answer(Answer::from_byte(*answer)?));
                }
                Ok(Some(2 + count))
            }
            [FRAME, a, b, c, d, ref rest @ ..] => {
                let len = u32::from_le_bytes([a, b, c, d]) as usize;
                if len > self.bytes_max {
                    let oversize = Oversize { len, max: self.bytes_max };
                    return Err(io::Error::new(io::ErrorKind::InvalidData, oversize));
                }
                let Some(frame) = rest.get(..len) else { return Ok(None) };
                sink(Record::Frame(frame.to_vec()));
                Ok(Some(HEAD + len))
            }
            [] | [ANSWERS | FRAME, ..] => Ok(None),
            [kind, ..] => Err(invalid(format!("unknown kind of record {kind}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::codec::Refusal;
    use super::*;

    fn read(incoming: &mut Incoming, bytes: &[u8]) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        incoming.add(bytes, &mut |record| records.push(record))?;
        Ok(records)
    }

    #[test]
    fn records_survive_any_cut() {
        let refused = Answer::Refused(Refusal::OtherGrid);
        let mut bytes = Vec::new();
        put_nothing(&mut bytes);
        put_frame(&mut bytes, &[7; 4]);
        put_answers(
            &mut bytes,
            &mut vec![Answer::Taken.to_byte(), refused.to_byte(), Answer::Full.to_byte()],
        );
        put_frame(&mut bytes, &[]);
        let expected = [
            Record::Frame(vec![7; 4]),
            Record::Answer(Answer::Taken),
            Record::Answer(refused),
            Record::Answer(Answer::Full),
            Record::Frame(Vec::new()),
        ];
        for cut in 0..=bytes.len() {
            let mut incoming = Incoming::new(4);
            let mut records = read(&mut incoming, &bytes[..cut]).unwrap();
            records.extend(read(&mut incoming, &bytes[cut..]).unwrap());
            assert_eq!(records, expected, "cut after {cut} bytes");
        }
    }

    #[test]
    fn many_answers_take_several_records() {
        let mut bytes = Vec::new();
        put_answers(&mut bytes, &mut vec![Answer::Taken.to_byte(); 300]);
        assert_eq!(read(&mut Incoming::new(4), &bytes).unwrap(), vec![Record::Answer(Answer::Taken); 300]);
    }

    #[test]
    fn hostile_bytes_are_refused_before_anything_is_allocated() {
        let error = read(&mut Incoming::new(4), &[FRAME, 5, 0, 0, 0]).unwrap_err();
        assert_eq!(error.to_string(), "a frame of 5 bytes exceeds the cap of 4");
        assert!(is_oversize(&error));
        assert!(read(&mut Incoming::new(4), &[9]).is_err());
        assert!(read(&mut Incoming::new(4), &[ANSWERS, 1, 99]).is_err());
    }
}
