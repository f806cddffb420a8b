//! Messages between peers: what decodes encodes to the same bytes, and every question about it has an answer.

use protocol::Message;
use protocol::codec::{FRAME_MAX, decode, encode};

/// Bytes as a message between peers.
///
/// # Panics
/// If the codec takes bytes that are not the encoding of what it makes of them.
pub fn message(bytes: &[u8]) {
    let Ok(message) = decode(bytes) else { return };
    assert!(bytes.len() <= FRAME_MAX, "a frame that is too long was decoded");
    assert_eq!(encode(&message), bytes, "two encodings of one message: {message:?}");
    questions(&message);
}

/// What drivers ask of any message.
fn questions(message: &Message) {
    let payload = message.payload();
    for transfer in message.transfers() {
        assert!(payload >= transfer.job.payload, "the payload of a message is at least that of each job");
    }
    assert!(message.transfers().len() <= protocol::message::TRANSFERS_MAX);
    let _: bool = message.wakes();
    let _ = message.kind();
}
