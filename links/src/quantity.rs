//! Times, rates and small decimals as people write them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use scheduler::Span;
use serde::{Deserialize, Serialize};

/// A decimal of six digits behind the point: exact in files, on the wire and in comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millionths(u32);

impl Millionths {
    /// The nearest to a number from 0 to 4294.
    pub fn new(value: f64) -> Millionths {
        Millionths((value * 1e6).round() as u32)
    }

    /// The number itself, not its millionths.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    pub(crate) fn parse(name: &str, text: &str, least: f64, most: f64) -> Result<Millionths, String> {
        match text.parse::<f64>() {
            Ok(value) if (least..=most).contains(&value) => Ok(Millionths::new(value)),
            _ => Err(format!("{name} {text} is not from {least} to {most}; write a number such as 1.5")),
        }
    }
}

impl fmt::Display for Millionths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

/// A time with its unit, such as `50ms`.
///
/// # Errors
/// In words, with what to write.
pub fn time(text: &str) -> Result<Duration, String> {
    if text.starts_with('-') {
        return Err(format!("{text:?} is below zero, and no time is; write 50ms, 2s, 5m or 36h"));
    }
    humantime::parse_duration(text)
        .map_err(|error| format!("{text:?} is not a time: {error}; write 50ms, 2s, 5m or 36h"))
}

/// The same of a run, with blanks around it.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    let duration = time(text.trim())?;
    let micros = i64::try_from(duration.as_micros()).map(Span::from_micros);
    micros.map_err(|_| format!("{text:?} is longer than any trace"))
}

/// The other way: one that [`span`] reads.
pub(crate) fn write_span(span: Span, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let duration = Duration::from_micros(span.as_micros().unsigned_abs());
    let text = humantime::format_duration(duration).to_string();
    f.write_str(&text.replace(' ', ""))
}

/// Bytes in a second, as in `10MB/s` or `1Gbit/s`. K, M, G, T are powers of 1000; Ki, Mi, Gi, Ti of 1024.
///
/// # Errors
/// In words, with what to write.
pub fn rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a rate; write 500KB/s, 10MB/s, 1GiB/s or 100Mbit/s");
    let amount = text.trim().strip_suffix("/s").ok_or_else(wrong)?;
    let digits = amount.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = amount.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let (prefix, eighths) = match unit.trim() {
        unit if unit.ends_with("bit") => (unit.trim_end_matches("bit"), 1.0),
        unit if unit.ends_with('B') => (unit.trim_end_matches('B'), 8.0),
        _ => return Err(wrong()),
    };
    let factor = match prefix.trim() {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        _ => return Err(wrong()),
    };
    match number * factor * eighths / 8.0 {
        bytes if (1.0..1e18).contains(&bytes) => Ok(bytes.round() as u64),
        _ => Err(wrong()),
    }
}

/// `a=1,b=2` of one distribution.
pub(crate) struct Keys<'a> {
    of: &'a str,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Keys<'a> {
    pub(crate) fn of(of: &'a str, text: &'a str) -> Result<Keys<'a>, String> {
        let mut values = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("{of}: {part:?} is no key=value"));
            };
            if values.insert(key.trim(), value.trim()).is_some() {
                return Err(format!("{of}: {} is given twice; keep one", key.trim()));
            }
        }
        Ok(Keys { of, values })
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<&'a str> {
        self.values.remove(key)
    }

    pub(crate) fn need(&mut self, key: &str) -> Result<&'a str, String> {
        self.take(key).ok_or_else(|| format!("{} needs {key}=…", self.of))
    }

    pub(crate) fn finish(self, known: &[&str]) -> Result<(), String> {
        match self.values.first_key_value() {
            None => Ok(()),
            Some((key, _)) => Err(format!("{} has no {key:?}; it has {}", self.of, known.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_decimal_and_binary_prefixes_bits_and_bytes() {
        for (text, bytes) in [
            ("1B/s", 1),
            ("500kB/s", 500_000),
            ("10MB/s", 10_000_000),
            ("1.5GiB/s", 1_610_612_736),
            ("100 Mbit/s", 12_500_000),
        ] {
            assert_eq!(rate(text), Ok(bytes), "{text}");
        }
        for text in ["10", "10MB", "MB/s", "10 furlongs/s", "0MB/s", "-1MB/s", "1bit/s"] {
            assert!(rate(text).unwrap_err().contains("is not a rate; write"), "{text}");
        }
    }

    #[test]
    fn times_need_units() {
        assert_eq!(span("1500us"), Ok(Span::from_micros(1500)));
        assert!(span("5").is_err());
        assert!(span("-5s").is_err());
    }
}
