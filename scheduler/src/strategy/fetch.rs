//! Reserve, then fetch: the switch `fetch` of the ideal reference of stealing.
//!
//! Lists are known at once, but a job that starts away from its home holds its processors idle for a while first, as
//! if it were fetched after it was chosen. The schedule is the ideal one for run times that are longer by that much
//! for stolen jobs, so its ratio is bounded by the proof for the ideal (docs/THEORY.md, "Reserve, then fetch").

use crate::time::Span;

/// Units as typed, in microseconds.
const UNITS: [(&str, i64); 5] =
    [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("min", 60_000_000), ("h", 3_600_000_000)];
/// Longest time: arbitrary, far above any run, and far from overflow.
const FETCH_MAX: Span = Span::from_micros(1 << 52);

/// A time such as `120s` or `50ms`. `key` is what it is called in the message.
pub(super) fn parse(key: &str, text: &str) -> Result<Span, String> {
    let wrong = || {
        format!("{key} {text:?} is no time; write a whole number and a unit (us, ms, s, min, h), as in 120s")
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = UNITS.iter().find(|unit| unit.0 == &text[digits.len()..]).ok_or_else(wrong)?;
    let number: i64 = digits.parse().map_err(|_| wrong())?;
    let span = number.checked_mul(unit.1).map(Span::from_micros).ok_or_else(wrong)?;
    if (Span::ZERO..=FETCH_MAX).contains(&span) { Ok(span) } else { Err(wrong()) }
}

/// The shortest of whole seconds, milliseconds and microseconds.
pub(super) fn show(span: Span) -> String {
    let micros = span.as_micros();
    let (name, unit) = [UNITS[2], UNITS[1]].into_iter().find(|unit| micros % unit.1 == 0).unwrap_or(UNITS[0]);
    format!("{}{name}", micros / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip() {
        for (text, shown) in [
            ("120s", "120s"),
            ("50ms", "50ms"),
            ("1500ms", "1500ms"),
            ("2min", "120s"),
            ("1h", "3600s"),
            ("7us", "7us"),
        ] {
            assert_eq!(show(parse("fetch", text).unwrap()), shown);
        }
        for text in ["", "5", "s", "-5s", "5d", "1.5s", "99999999999999999999s", "9000000000000h", "5ß"] {
            assert!(parse("fetch", text).unwrap_err().contains("is no time"), "{text}");
        }
    }
}
