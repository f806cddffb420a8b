//! What a document in JSON takes in memory, before it is read: a value of two bytes takes many times that.

use std::io::{self, Read};

use workload::limits::{Exceeded, Limit};

/// Bytes that a value in memory is counted for: a number of an array takes half of that, a member of an object with a short name
/// not much more.
const VALUE: u64 = 64;

/// A document that ends with an error where its values take more than so many bytes ([`workload::limits::Limits::cells`]).
///
/// It counts what stands between values, also where that is in a text, and so sometimes more than there are.
pub(crate) struct Values<R> {
    inner: R,
    left: u64,
    most: u64,
}

impl<R: Read> Values<R> {
    /// The document that `inner` holds, which may take so many bytes of memory.
    pub(crate) fn new(inner: R, most: u64) -> Values<R> {
        Values { inner, left: most, most }
    }
}

impl<R: Read> Read for Values<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        let values = bytes[..read].iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() as u64;
        let exceeded = Exceeded { limit: Limit::Cells, most: self.most, line: 0 };
        self.left = self.left.checked_sub(values * VALUE).ok_or(exceeded)?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_many_small_values_ends_with_an_error() {
        let text = format!("[{}0]", "0,".repeat(99));
        let read = |most| serde_json::from_reader::<_, Vec<u8>>(Values::new(text.as_bytes(), most));
        assert_eq!(read(100 * VALUE).unwrap().len(), 100);
        let error = io::Error::from(read(100 * VALUE - 1).unwrap_err());
        assert_eq!(Exceeded::of(&error).map(|exceeded| exceeded.limit), Some(Limit::Cells));
    }
}
