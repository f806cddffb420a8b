//! What introduces a node to another, and what measures the way to it: one request with a length prefix, answered by
//! one byte. Frames, which follow, have answers of the same kind; see `frames`.
//!
//! The length is checked against the cap before anything is allocated. Content is decoded elsewhere.

use std::io;

use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use libp2p::StreamProtocol;
use libp2p::request_response;

/// A request between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Who I am; see `hello`.
    Hello(Vec<u8>),
    /// Any bytes, of the size of a small frame: answered at once, to measure the round trip.
    Probe(Vec<u8>),
}

/// The answer to a request or a frame. It says what became of the bytes, not of the message in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// They are in the inbox.
    Taken,
    /// They are not, because it is full.
    Full,
    /// They are not, and repeating them will not help.
    Refused(Refusal),
}

/// Why a node refuses another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Sent a frame before its hello was taken.
    #[error("it did not introduce itself")]
    NotIntroduced,
    /// Claims a site that the run does not have, or that of the refusing node.
    #[error("it claims a site that is not another site of this run")]
    UnknownSite,
    /// Another node of this run has the site already.
    #[error("another node is that site already")]
    DuplicateSite,
    /// The key does not belong to the site it claims.
    #[error("its key does not belong to the site it claims")]
    WrongKey,
    /// Has another idea of the sites and their sizes.
    #[error("it was configured with another grid")]
    OtherGrid,
    /// Is not of this version or this run.
    #[error("its hello cannot be read, so it is of another version")]
    Unreadable,
    /// Its key is none of those of the grid's sites.
    #[error("its identity is not on the list of this grid (--member, --peer)")]
    NotListed,
    /// The site came back without the journal that it had, so it has forgotten jobs.
    #[error(
        "it came back without its journal, so the jobs that it had are forgotten; give it its data directory back"
    )]
    OtherJournal,
}

const REFUSALS: [Refusal; 8] = [
    Refusal::NotIntroduced,
    Refusal::UnknownSite,
    Refusal::DuplicateSite,
    Refusal::WrongKey,
    Refusal::OtherGrid,
    Refusal::Unreadable,
    Refusal::NotListed,
    Refusal::OtherJournal,
];

impl Answer {
    pub(super) fn to_byte(self) -> u8 {
        match self {
            Answer::Taken => 0,
            Answer::Full => FULL,
            Answer::Refused(refusal) => {
                1 + REFUSALS.iter().position(|other| *other == refusal).expect("all are listed") as u8
            }
        }
    }

    pub(super) fn from_byte(byte: u8) -> io::Result<Answer> {
        match byte.checked_sub(1) {
            _ if byte == FULL => Ok(Answer::Full),
            None => Ok(Answer::Taken),
            Some(index) => REFUSALS
                .get(usize::from(index))
                .map(|refusal| Answer::Refused(*refusal))
                .ok_or_else(|| invalid(format!("unknown answer {byte}"))),
        }
    }
}

/// The last byte, so that reasons can be added.
const FULL: u8 = u8::MAX;

const KIND_HELLO: u8 = 0;
const KIND_PROBE: u8 = 1;

/// Reads and writes requests of at most `bytes_max` bytes.
#[derive(Clone, Debug)]
pub(super) struct Codec {
    pub(super) bytes_max: usize,
}

pub(super) fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl request_response::Codec for Codec {
    type Protocol = StreamProtocol;
    type Request = Request;
    type Response = Answer;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Request>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut head = [0; 5];
        io.read_exact(&mut head).await?;
        let [kind, len @ ..] = head;
        let len = u32::from_le_bytes(len) as usize;
        if len > self.bytes_max {
            return Err(invalid(format!("a request of {len} bytes exceeds the cap of {}", self.bytes_max)));
        }
        let mut content = vec![0; len];
        io.read_exact(&mut content).await?;
        match kind {
            KIND_HELLO => Ok(Request::Hello(content)),
            KIND_PROBE => Ok(Request::Probe(content)),
            _ => Err(invalid(format!("unknown request kind {kind}"))),
        }
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Answer>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut byte = [0];
        io.read_exact(&mut byte).await?;
        Answer::from_byte(byte[0])
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, request: Request) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        let (kind, content) = match request {
            Request::Hello(content) => (KIND_HELLO, content),
            Request::Probe(content) => (KIND_PROBE, content),
        };
        if content.len() > self.bytes_max {
            return Err(invalid(format!(
                "a request of {} bytes exceeds the cap of {}",
                content.len(),
                self.bytes_max
            )));
        }
        let len = u32::try_from(content.len()).expect("the cap fits 32 bits");
        // One write, so that head and content share a segment.
        let mut bytes = Vec::with_capacity(5 + content.len());
        bytes.push(kind);
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(&content);
        io.write_all(&bytes).await
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, io: &mut T, answer: Answer) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&[answer.to_byte()]).await
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::io::Cursor;
    use request_response::Codec as _;

    use super::*;

    const PROTOCOL: StreamProtocol = StreamProtocol::new("/test/1");

    fn write(codec: &mut Codec, request: Request) -> io::Result<Vec<u8>> {
        let mut io = Cursor::new(Vec::new());
        block_on(codec.write_request(&PROTOCOL, &mut io, request))?;
        Ok(io.into_inner())
    }

    fn read(codec: &mut Codec, bytes: &[u8]) -> io::Result<Request> {
        block_on(codec.read_request(&PROTOCOL, &mut Cursor::new(bytes)))
    }

    #[test]
    fn requests_round_trip_up_to_the_cap() {
        let mut codec = Codec { bytes_max: 4 };
        for request in [Request::Hello(Vec::new()), Request::Probe(vec![1, 2, 3, 4])] {
            let bytes = write(&mut codec, request.clone()).unwrap();
            assert_eq!(read(&mut codec, &bytes).unwrap(), request);
        }
    }

    #[test]
    fn an_oversized_request_is_neither_written_nor_read() {
        let mut codec = Codec { bytes_max: 4 };
        let error = write(&mut codec, Request::Hello(vec![0; 5])).unwrap_err();
        assert_eq!(error.to_string(), "a request of 5 bytes exceeds the cap of 4");

        // The announced length alone is enough to refuse: no content follows here.
        let error = read(&mut codec, &[KIND_HELLO, 5, 0, 0, 0]).unwrap_err();
        assert_eq!(error.to_string(), "a request of 5 bytes exceeds the cap of 4");

        let error = read(&mut codec, &[9, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(error.to_string(), "unknown request kind 9");
    }

    #[test]
    fn unknown_answers_are_refused() {
        assert!(Answer::from_byte(REFUSALS.len() as u8 + 1).is_err());
    }

    #[test]
    fn answers_round_trip() {
        let refused = REFUSALS.map(Answer::Refused);
        for answer in refused.into_iter().chain([Answer::Taken, Answer::Full]) {
            let mut io = Cursor::new(Vec::new());
            let mut codec = Codec { bytes_max: 0 };
            block_on(codec.write_response(&PROTOCOL, &mut io, answer)).unwrap();
            let bytes = io.into_inner();
            let read = block_on(codec.read_response(&PROTOCOL, &mut Cursor::new(bytes))).unwrap();
            assert_eq!(read, answer);
        }
    }
}
