//! Integer time: instants and spans in microseconds of trace time.
//!
//! No clock lives here. A [`Time`] counts from the origin of the trace and may be negative.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use serde::{Deserialize, Serialize};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// An instant of trace time, in microseconds since the origin of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

/// A length of trace time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(i64);

impl Time {
    /// The origin of the trace.
    pub const ZERO: Time = Time(0);
    /// Later than every instant of a run.
    pub const MAX: Time = Time(i64::MAX);

    /// An instant from microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Time(micros)
    }

    /// An instant from whole seconds.
    pub const fn from_secs(secs: i64) -> Self {
        Time(secs * MICROS_PER_SECOND)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Seconds since the origin, for statistics and reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / MICROS_PER_SECOND as f64
    }

    /// The span since `earlier`; negative if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }

    /// The instant `span` later, at most [`Time::MAX`].
    pub const fn saturating_add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than every span of a run.
    pub const MAX: Span = Span(i64::MAX);

    /// A span from microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Span(micros)
    }

    /// A span from whole seconds.
    pub const fn from_secs(secs: i64) -> Self {
        Span(secs * MICROS_PER_SECOND)
    }

    /// The span in microseconds.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The span in seconds, for statistics and reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / MICROS_PER_SECOND as f64
    }

    /// `self` taken `times` times, at most [`Span::MAX`].
    pub const fn saturating_mul(self, times: i64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

/// Times and spans as seconds with decimals, for documents that people and scripts read: `#[serde(with = "seconds")]`.
///
/// Exact up to 285 years, where a microsecond is more than half of the last digit of a double.
pub mod seconds {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{MICROS_PER_SECOND, Span, Time};

    /// What a number of seconds, or none, stands for.
    pub trait InSeconds: Copy {
        /// In microseconds, if it is known.
        fn micros(self) -> Option<i64>;
        /// The same backwards; `None` if nothing is not allowed.
        fn of(micros: Option<i64>) -> Option<Self>;
    }

    macro_rules! in_seconds {
        ($($kind:ident),*) => {$(
            impl InSeconds for $kind {
                fn micros(self) -> Option<i64> {
                    Some(self.as_micros())
                }
                fn of(micros: Option<i64>) -> Option<Self> {
                    micros.map($kind::from_micros)
                }
            }

            impl InSeconds for Option<$kind> {
                fn micros(self) -> Option<i64> {
                    self.map($kind::as_micros)
                }
                fn of(micros: Option<i64>) -> Option<Self> {
                    Some(micros.map($kind::from_micros))
                }
            }
        )*};
    }

    in_seconds!(Time, Span);

    /// Writes a number, or null.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T: InSeconds, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.micros().map(|micros| micros as f64 / MICROS_PER_SECOND as f64).serialize(serializer)
    }

    /// Reads a number, or null.
    ///
    /// # Errors
    /// If it is neither, or null where something must be known.
    pub fn deserialize<'de, T: InSeconds, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let seconds = Option::<f64>::deserialize(deserializer)?;
        let micros = seconds.map(|seconds| (seconds * MICROS_PER_SECOND as f64).round() as i64);
        T::of(micros).ok_or_else(|| D::Error::custom("a number of seconds is missing"))
    }
}

/// Writes micros as decimal seconds without trailing zeros: `12`, `0.5`, `-3.000001`.
fn write_seconds(micros: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let sign = if micros < 0 { "-" } else { "" };
    let magnitude = micros.unsigned_abs();
    let (whole, part) = (magnitude / MICROS_PER_SECOND as u64, magnitude % MICROS_PER_SECOND as u64);
    if part == 0 {
        write!(f, "{sign}{whole}")
    } else {
        let digits = format!("{part:06}");
        write!(f, "{sign}{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(self.0, f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_seconds(self.0, f)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0 - span.0)
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}

impl Neg for Span {
    type Output = Span;
    fn neg(self) -> Span {
        Span(-self.0)
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, Add::add)
    }
}

/// The earlier of two times, if there is any. Drivers ask at each step, where an iterator over options shows: it took 7 % of a
/// simulation.
pub fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_without_trailing_zeros() {
        assert_eq!(Time::from_secs(12).to_string(), "12");
        assert_eq!(Span::from_micros(500_000).to_string(), "0.5");
        assert_eq!(Span::from_micros(-3_000_001).to_string(), "-3.000001");
    }
}
