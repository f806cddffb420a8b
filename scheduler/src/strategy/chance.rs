//! Probabilities that strategies are told, exactly: strategies are compared and shown, which floats are not made for.

use serde::{Deserialize, Serialize};

/// Parts of one.
const UNIT: u32 = 1_000_000;
/// Decimal places of a part.
const DIGITS: usize = 6;

/// A probability in millionths, at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Chance(u32);

impl Chance {
    /// So many millionths; none if they are more than one.
    pub const fn millionths(parts: u32) -> Option<Chance> {
        if parts <= UNIT { Some(Chance(parts)) } else { None }
    }

    /// The nearest float. Numbers that come from elsewhere count as one at most.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0.min(UNIT)) / f64::from(UNIT)
    }

    /// Whether a part of a whole is more than this share of it.
    pub fn is_exceeded(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(UNIT) > u128::from(whole) * u128::from(self.0)
    }

    /// What so many percent are, if they are at most 100 with at most four digits behind the point.
    fn of_percent(text: &str) -> Option<Chance> {
        let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
        let (whole, digits) = (whole.parse::<u32>().ok()?, format!("{digits:0<4}"));
        let parts = digits.parse::<u32>().ok().filter(|_| digits.len() == 4)?;
        Chance::millionths(whole.checked_mul(UNIT / 100)?.checked_add(parts)?)
    }

    /// Reads a decimal fraction of at most six digits.
    ///
    /// # Errors
    /// In words, if it is none from 0 to 1.
    pub fn parse(key: &str, text: &str) -> Result<Chance, String> {
        let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let written = !whole.is_empty() && are_digits(whole) && are_digits(digits) && digits.len() <= DIGITS;
        let parts = || {
            let whole = whole.parse::<u32>().ok()?.checked_mul(UNIT)?;
            whole.checked_add(format!("{digits:0<DIGITS$}").parse().ok()?)
        };
        written.then(parts).flatten().and_then(Chance::millionths).ok_or_else(|| {
            let of_percent = text.strip_suffix('%').and_then(Chance::of_percent);
            let instead = of_percent.map_or("0.01".to_string(), |chance| chance.to_string());
            format!(
                "{key}={text:?} is no decimal fraction from 0 to 1 of at most six digits; write {instead}"
            )
        })
    }
}

impl std::fmt::Display for Chance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = format!("{:06}", self.0 % UNIT);
        let digits = digits.trim_end_matches('0');
        let point = if digits.is_empty() { "" } else { "." };
        write!(f, "{}{point}{digits}", self.0 / UNIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_shown_the_same_and_what_is_no_probability_is_refused() {
        for (text, parts) in [("0", 0), ("1", UNIT), ("0.01", 10_000), ("0.9", 900_000), ("0.000001", 1)] {
            let chance = Chance::parse("mutation", text).unwrap();
            assert_eq!((Some(chance), chance.to_string().as_str()), (Chance::millionths(parts), text));
        }
        assert_eq!(Chance::parse("mutation", "1.000"), Ok(Chance(UNIT)));
        for text in ["", ".5", "1.000001", "2", "0.0000001", "-0.1", "+1", "1e-3", "0,5", "0.5.5"] {
            let wrong = Chance::parse("mutation", text).unwrap_err();
            assert!(wrong.contains("mutation=") && wrong.contains("write 0.01"), "{text}: {wrong}");
        }
        for (text, instead) in
            [("75%", "0.75"), ("0.5%", "0.005"), ("100%", "1"), ("101%", "0.01"), ("x%", "0.01")]
        {
            let wrong = Chance::parse("level", text).unwrap_err();
            assert!(wrong.ends_with(&format!("; write {instead}")), "{text}: {wrong}");
        }
        assert_eq!(Chance::parse("p", "0.01").unwrap().as_f64().to_bits(), 0.01_f64.to_bits());
        assert_eq!(Chance::parse("p", "0.9").unwrap().as_f64().to_bits(), 0.9_f64.to_bits());
    }
}
