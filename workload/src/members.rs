//! The members of a gzip file, one after the other, with or without zeros behind them.
//!
//! Tapes and stores of blocks pad files with zeros. `gzip` takes these for nothing, and so does this reader; anything else behind
//! a member is refused, as the log would end early and nobody would know.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The text of all members.
pub(crate) struct Members<R: BufRead> {
    /// The member that is read; `None` at the end, or after an error.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    /// The text of what `bytes` holds. Nothing is read yet.
    pub(crate) fn new(bytes: R) -> Members<R> {
        Members { member: Some(GzDecoder::new(bytes)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let mut rest = self.member.take().expect("it was read just now").into_inner();
            if skip_zeros(&mut rest)? {
                self.member = Some(GzDecoder::new(rest));
            }
        }
        Ok(0)
    }
}

/// Takes zeros up to the next other byte, and says whether there is one.
fn skip_zeros(bytes: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let ahead = match bytes.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            ahead => ahead?,
        };
        if ahead.is_empty() {
            return Ok(false);
        }
        let zeros = ahead.iter().take_while(|&&byte| byte == 0).count();
        let is_other = zeros < ahead.len();
        bytes.consume(zeros);
        if is_other {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn text(bytes: &[u8]) -> io::Result<String> {
        // Few bytes at a time, so that every border falls within a buffer's.
        let bytes = io::BufReader::with_capacity(3, bytes);
        let mut text = String::new();
        Members::new(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn zeros_behind_and_between_members_are_padding_and_anything_else_is_refused() {
        let (one, two) = (gzip(b"one "), gzip(b"two"));
        let padded = |zeros: usize| [&one[..], &vec![0; zeros], &two, &vec![0; zeros]].concat();
        for zeros in [0, 1, 2, 512, 70_000] {
            assert_eq!(text(&padded(zeros)).unwrap(), "one two", "{zeros} zeros");
        }
        assert!(text(&[&one[..], b"more"].concat()).is_err());
        assert!(text(&[&one[..], &[0; 9], b"more"].concat()).is_err());
        assert!(text(&two[..two.len() - 1]).is_err());
        assert!(text(&[&one[..], &two[..5]].concat()).is_err());
    }
}
