//! One number of a log, parsed from bytes by hand: a log of half a million jobs has nine million of them.
//!
//! Most are short integers, so those take the straight path; decimals and exponents take the other one.

use scheduler::Span;

const MICROS: i64 = 1_000_000;
/// Digits that always fit an `i64`.
const SAFE_DIGITS: usize = 18;

/// A number as a log writes it: whole part and millionths, which share their sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    whole: i64,
    /// Millionths of the fraction, in magnitude below 1,000,000.
    micros: i64,
    /// Whether there is nothing but zeros after the point.
    exact: bool,
}

/// Why bytes are not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberError {
    /// Not a number.
    NotANumber,
    /// Beyond what the field can hold.
    TooLarge,
}

impl NumberError {
    /// What to tell the user.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            NumberError::NotANumber => "not a number; correct it, or write -1 for unknown",
            NumberError::TooLarge => "too large for this field; correct it, or write -1 for unknown",
        }
    }
}

impl Number {
    /// Parses a field without blanks around it.
    pub(crate) fn parse(field: &[u8]) -> Result<Number, NumberError> {
        let (negative, digits) = match field {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        if digits.is_empty() || digits.len() > SAFE_DIGITS {
            return Number::parse_slowly(field);
        }
        let mut whole = 0;
        for &digit in digits {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return Number::parse_slowly(field);
            }
            whole = whole * 10 + i64::from(digit);
        }
        Ok(Number { whole: if negative { -whole } else { whole }, micros: 0, exact: true })
    }

    /// Decimals, exponents, and what is not a number.
    #[cold]
    fn parse_slowly(field: &[u8]) -> Result<Number, NumberError> {
        let text = std::str::from_utf8(field).map_err(|_| NumberError::NotANumber)?;
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        if fraction.bytes().all(|byte| byte.is_ascii_digit())
            && whole.strip_prefix(['-', '+']).unwrap_or(whole).bytes().all(|byte| byte.is_ascii_digit())
            && whole.bytes().chain(fraction.bytes()).any(|byte| byte.is_ascii_digit())
        {
            return Number::from_decimal(whole, fraction);
        }
        let value: f64 = text.parse().map_err(|_| NumberError::NotANumber)?;
        if value.is_nan() {
            return Err(NumberError::NotANumber);
        }
        Number::from_f64(value)
    }

    fn from_decimal(whole: &str, fraction: &str) -> Result<Number, NumberError> {
        let negative = whole.starts_with('-');
        let whole: i64 = match whole {
            "" | "-" | "+" => 0,
            whole => whole.parse().map_err(|_| NumberError::TooLarge)?,
        };
        let mut micros = 0;
        for place in 0..6 {
            let digit = fraction.as_bytes().get(place).map_or(0, |digit| i64::from(digit - b'0'));
            micros = micros * 10 + digit;
        }
        let exact = fraction.bytes().all(|digit| digit == b'0');
        let sign = if negative { -1 } else { 1 };
        Ok(Number { whole, micros: sign * micros, exact })
    }

    /// The nearest number to a finite value.
    pub(crate) fn from_f64(value: f64) -> Result<Number, NumberError> {
        // Beyond 2^53 a float no longer knows its last digits: nothing a log counts is that large.
        if value.abs() >= 9.0e15 {
            return Err(NumberError::TooLarge);
        }
        let micros = ((value - value.trunc()) * MICROS as f64).round() as i64;
        let whole = value.trunc() as i64 + micros / MICROS;
        let micros = micros % MICROS;
        Ok(Number { whole, micros, exact: micros == 0 })
    }

    /// The number as a span of seconds.
    pub(crate) fn seconds(self) -> Result<Span, NumberError> {
        let whole = self.whole.checked_mul(MICROS).ok_or(NumberError::TooLarge)?;
        whole.checked_add(self.micros).map(Span::from_micros).ok_or(NumberError::TooLarge)
    }

    /// The number without its fraction, and whether it had one.
    pub(crate) fn whole(self) -> (i64, bool) {
        (self.whole, !self.exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(text: &str) -> Result<Span, NumberError> {
        Number::parse(text.as_bytes())?.seconds()
    }

    #[test]
    fn whole_numbers_of_nineteen_digits_are_exact() {
        let whole = |text: &str| Number::parse(text.as_bytes()).map(Number::whole);
        assert_eq!(whole("6100000000000000001"), Ok((6_100_000_000_000_000_001, false)));
        assert_eq!(whole("6100000000000000001.51"), Ok((6_100_000_000_000_000_001, true)));
        assert_eq!(whole("-9223372036854775808"), Ok((i64::MIN, false)));
        assert_eq!(whole("9223372036854775808"), Err(NumberError::TooLarge));
        assert_eq!(whole("--5.0"), Err(NumberError::NotANumber));
    }

    #[test]
    fn decimals_keep_microseconds() {
        assert_eq!(seconds("12.5"), Ok(Span::from_micros(12_500_000)));
        assert_eq!(seconds("-0.25"), Ok(Span::from_micros(-250_000)));
        assert_eq!(seconds(".5"), Ok(Span::from_micros(500_000)));
        assert_eq!(seconds("3."), Ok(Span::from_secs(3)));
        assert_eq!(seconds("1e3"), Ok(Span::from_secs(1000)));
        assert_eq!(seconds("0.0000019"), Ok(Span::from_micros(1)));
    }

    #[test]
    fn a_whole_number_knows_that_it_lost_a_fraction() {
        assert_eq!(Number::parse(b"5.0").map(Number::whole), Ok((5, false)));
        assert_eq!(Number::parse(b"5.25").map(Number::whole), Ok((5, true)));
        assert_eq!(Number::parse(b"-1").map(Number::whole), Ok((-1, false)));
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for text in ["", "-", ".", "abc", "1.2.3", "--1", "NaN", "0x10", "1,5", "\u{0663}"] {
            assert_eq!(seconds(text), Err(NumberError::NotANumber), "{text}");
        }
        for text in ["99999999999999999999", "inf", "9223372036854775807.5", "1e300"] {
            assert_eq!(seconds(text), Err(NumberError::TooLarge), "{text}");
        }
    }

    proptest! {
        #[test]
        fn integers_parse_as_the_standard_library_does(value in -10_i64.pow(17)..10_i64.pow(17)) {
            prop_assert_eq!(Number::parse(value.to_string().as_bytes()).map(Number::whole), Ok((value, false)));
        }

        #[test]
        fn a_span_is_read_back_as_it_was_written(micros in -10_i64.pow(15)..10_i64.pow(15)) {
            let span = Span::from_micros(micros);
            prop_assert_eq!(seconds(&span.to_string()), Ok(span));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Ok(number) = Number::parse(&bytes) {
                let text = String::from_utf8(bytes).expect("a number is text");
                prop_assert!(text.parse::<f64>().is_ok(), "{text}");
                prop_assert!(number.seconds().is_ok());
            }
        }
    }
}
