//! Numbers as text, exact and fast: `%f` of integer microseconds without floating point.

/// Appends a whole number.
pub(super) fn push_integer(line: &mut Vec<u8>, value: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a whole number with its sign.
pub(super) fn push_signed(line: &mut Vec<u8>, value: i64) {
    line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends millionths as a decimal number with six digits after the point: what C prints with `%f`.
pub(super) fn push_millionths(line: &mut Vec<u8>, value: i64) {
    if value < 0 {
        line.push(b'-');
    }
    let magnitude = value.unsigned_abs();
    push_integer(line, magnitude / 1_000_000);
    line.push(b'.');
    let mut part = magnitude % 1_000_000;
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (part % 10) as u8;
        part /= 10;
    }
    line.extend_from_slice(&digits);
}

/// Appends a quotient with six digits after the point, rounded half up; `inf` if the divisor is 0.
pub(super) fn push_quotient(line: &mut Vec<u8>, dividend: i64, divisor: i64) {
    if divisor == 0 {
        line.extend_from_slice(b"inf");
        return;
    }
    let (dividend, divisor) = (i128::from(dividend) * 1_000_000, i128::from(divisor));
    let rounded = (2 * dividend + divisor).div_euclid(2 * divisor);
    push_millionths(line, i64::try_from(rounded).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(push: impl Fn(&mut Vec<u8>)) -> String {
        let mut line = Vec::new();
        push(&mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn extremes_are_written_in_full() {
        assert_eq!(text(|line| push_integer(line, u64::MAX)), u64::MAX.to_string());
        assert_eq!(text(|line| push_signed(line, i64::MIN)), i64::MIN.to_string());
        assert_eq!(text(|line| push_millionths(line, -1)), "-0.000001");
        assert_eq!(text(|line| push_millionths(line, 0)), "0.000000");
        assert_eq!(text(|line| push_quotient(line, 5, 0)), "inf");
        assert_eq!(text(|line| push_quotient(line, 2, 3)), "0.666667");
    }

    proptest! {
        #[test]
        fn equals_the_formatter_of_the_standard_library(value in -1_000_000_000_000i64..1_000_000_000_000) {
            prop_assert_eq!(text(|line| push_signed(line, value)), value.to_string());
            // Doubles hold these magnitudes to well below a microsecond.
            prop_assert_eq!(text(|line| push_millionths(line, value)), format!("{:.6}", value as f64 / 1e6));
        }
    }
}
