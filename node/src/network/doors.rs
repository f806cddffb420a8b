//! What comes over connections between nodes, without the connections.

use futures::executor::block_on;
use futures::io::Cursor;
use libp2p::StreamProtocol;
use libp2p::request_response::Codec as _;
use scheduler::SiteId;

use super::codec::{Answer, Codec, Request};
use super::frames::record::{self, Incoming, Record};
use super::hello::Hello;

const PROTOCOL: StreamProtocol = StreamProtocol::new("/doors/1");

/// One thing that came over the stream of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The byte that answers a frame.
    Answer(u8),
    /// The bytes of a whole frame.
    Frame(Vec<u8>),
}

/// The reading end of the stream of a connection.
#[derive(Debug)]
pub struct Stream(Incoming);

impl Stream {
    /// For frames of at most so many bytes.
    pub fn new(bytes_max: usize) -> Stream {
        Stream(Incoming::new(bytes_max))
    }

    /// Adds bytes; what is whole now.
    ///
    /// # Errors
    /// If they break the rules of the stream.
    pub fn add(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), String> {
        let mut sink = |record| {
            pieces.push(match record {
                Record::Answer(answer) => Piece::Answer(answer.to_byte()),
                Record::Frame(frame) => Piece::Frame(frame),
            });
        };
        self.0.add(bytes, &mut sink).map_err(|error| error.to_string())
    }

    /// Bytes that are kept until what they begin is whole.
    pub fn held(&self) -> usize {
        self.0.held()
    }
}

/// Appends a piece as a node writes it.
pub fn put(bytes: &mut Vec<u8>, piece: &Piece) {
    match piece {
        Piece::Answer(answer) => record::put_answers(bytes, &mut vec![*answer]),
        Piece::Frame(frame) => record::put_frame(bytes, frame),
    }
}

/// A request between nodes: whether it is a hello, its content, and how many bytes it took.
///
/// # Errors
/// If the bytes are none of at most so many bytes.
pub fn request(bytes: &[u8], bytes_max: usize) -> Result<(bool, Vec<u8>, usize), String> {
    let mut io = Cursor::new(bytes);
    let request = block_on(Codec { bytes_max }.read_request(&PROTOCOL, &mut io));
    let taken = usize::try_from(io.position()).expect("it is in memory");
    match request.map_err(|error| error.to_string())? {
        Request::Hello(content) => Ok((true, content, taken)),
        Request::Probe(content) => Ok((false, content, taken)),
    }
}

/// The bytes of a request.
pub fn put_request(is_hello: bool, content: &[u8]) -> Vec<u8> {
    let content = content.to_vec();
    let request = if is_hello { Request::Hello(content) } else { Request::Probe(content) };
    let mut io = Cursor::new(Vec::new());
    let mut codec = Codec { bytes_max: usize::MAX };
    block_on(codec.write_request(&PROTOCOL, &mut io, request)).expect("memory takes everything");
    io.into_inner()
}

/// What a node says about itself: site, incarnation, and the sizes of all sites.
///
/// # Errors
/// If the bytes do not say it.
pub fn hello(bytes: &[u8]) -> Result<(SiteId, u64, Vec<u32>), String> {
    let Hello { site, instance, processors } = Hello::decode(bytes).map_err(|error| error.to_string())?;
    Ok((site, instance, processors))
}

/// The bytes of that.
pub fn put_hello(site: SiteId, instance: u64, processors: &[u32]) -> Vec<u8> {
    Hello { site, instance, processors: processors.to_vec() }.encode()
}

/// The answer to a request, as the byte that a node would write for it.
///
/// # Errors
/// If the byte is no answer.
pub fn answer(byte: u8) -> Result<u8, String> {
    Answer::from_byte(byte).map(Answer::to_byte).map_err(|error| error.to_string())
}

/// Whether a text is an address of another site, and can be dialed.
pub fn is_address(text: &str) -> bool {
    super::address::parse_address(text).is_ok()
}
