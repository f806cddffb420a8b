//! The stream of a connection: frames and answers with their lengths, then what is in each frame.

use node::doors::{Piece, Stream, put};
use node::frame::Frame;

/// Longest frame: short, so that inputs reach both sides of the limit.
const BYTES_MAX: usize = 1024;

/// Bytes as they come over the stream of a connection; the first says in which portions.
///
/// # Panics
/// If portions matter, more is kept than a frame can have, or what was read is not what it was written as.
pub fn frame(bytes: &[u8]) {
    let Some((&portion, bytes)) = bytes.split_first() else { return };
    let (mut whole, mut portions) = (Vec::new(), Vec::new());
    let outcome = Stream::new(BYTES_MAX).add(bytes, &mut whole);
    let mut stream = Stream::new(BYTES_MAX);
    let mut in_portions = Ok(());
    for some in bytes.chunks(1 + usize::from(portion)) {
        in_portions = stream.add(some, &mut portions);
        if in_portions.is_err() {
            break;
        }
        assert!(stream.held() <= 5 + BYTES_MAX.max(255), "{} bytes are kept", stream.held());
    }
    assert_eq!(outcome, in_portions, "portions do not matter");
    assert_eq!(whole, portions, "portions do not matter");

    let mut written = Vec::new();
    for piece in &whole {
        put(&mut written, piece);
        if let Piece::Frame(frame) = piece {
            assert!(frame.len() <= BYTES_MAX, "a frame that is too long was taken");
            letter(frame);
        }
    }
    let mut again = Vec::new();
    assert_eq!(Stream::new(BYTES_MAX).add(&written, &mut again), Ok(()), "what was read can be written");
    assert_eq!(again, whole, "and is the same");
}

/// One frame.
fn letter(bytes: &[u8]) {
    let Ok(frame) = Frame::decode(bytes) else { return };
    assert_eq!(frame.encode(), bytes, "two encodings of one frame");
    super::message(&frame.message);
}
