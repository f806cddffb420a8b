//! Bytes of a digest as people and files have them.

use std::fmt::Write as _;

/// Two small letters or digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("text takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_places() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }
}
