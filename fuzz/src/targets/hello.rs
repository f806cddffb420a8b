//! How a node introduces itself: the request with its length, what is in it, and the byte that answers.

use node::doors::{answer, hello as read, put_hello, put_request, request};

/// Longest request: short, so that inputs reach both sides of the limit.
const BYTES_MAX: usize = 1024;

/// Bytes as a request of another node, or the answer to one.
///
/// # Panics
/// If a reader takes bytes that are not the encoding of what it makes of them.
pub fn hello(bytes: &[u8]) {
    if let [byte] = bytes {
        assert!(answer(*byte).is_err() || answer(*byte) == Ok(*byte), "two encodings of one answer");
    }
    if let Ok((is_hello, content, taken)) = request(bytes, BYTES_MAX) {
        assert!(content.len() <= BYTES_MAX, "a request that is too long was taken");
        assert_eq!(put_request(is_hello, &content), bytes[..taken], "two encodings of one request");
        introduction(&content);
    }
    introduction(bytes);
}

fn introduction(bytes: &[u8]) {
    let Ok((site, incarnation, processors)) = read(bytes) else { return };
    assert!(processors.len() <= bytes.len() / 4, "more sites than bytes");
    assert_eq!(put_hello(site, incarnation, &processors), bytes, "two encodings of one introduction");
}
