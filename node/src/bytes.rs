//! Fixed-layout little-endian fields: what the node itself puts around the peers' messages.
//!
//! Not for messages: those are encoded by `protocol::codec` alone. See `frame` and `network::hello` for the
//! two layouts written with it.

/// Bytes that are not what the reader expects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The bytes end inside a field.
    #[error("the bytes end inside field {0}")]
    Truncated(&'static str),
    /// Bytes follow the last field.
    #[error("{0} bytes follow the last field")]
    Trailing(usize),
    /// A field has a value it cannot have.
    #[error("field {0} has a value it cannot have")]
    Value(&'static str),
}

/// Reads fields one after the other.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub(crate) fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], LayoutError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(LayoutError::Truncated(field))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], LayoutError> {
        let bytes = self.bytes(N, field)?;
        Ok(bytes.try_into().expect("as many bytes as were asked for"))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, LayoutError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, LayoutError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn i64(&mut self, field: &'static str) -> Result<i64, LayoutError> {
        Ok(i64::from_le_bytes(self.array(field)?))
    }

    /// Reads the number of elements that follow; no more than the rest of the bytes can hold.
    pub(crate) fn count(&mut self, element_bytes: usize, field: &'static str) -> Result<usize, LayoutError> {
        let count = self.u32(field)? as usize;
        if count.saturating_mul(element_bytes) > self.rest.len() {
            return Err(LayoutError::Truncated(field));
        }
        Ok(count)
    }

    /// Checks that nothing is left.
    pub(crate) fn finish(self) -> Result<(), LayoutError> {
        if self.rest.is_empty() { Ok(()) } else { Err(LayoutError::Trailing(self.rest.len())) }
    }
}

/// Writes a length or a number of elements.
///
/// # Panics
/// If it exceeds `u32`, which no frame cap allows.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("a frame is far below 4 GiB");
    out.extend_from_slice(&count.to_le_bytes());
}
