//! Moments and lengths of time as CSVs write them.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use scheduler::Span;

use crate::calendar::Zone;
use crate::swf::Number;

/// Microseconds of the units of numbers, as a fraction.
const UNITS: [(&str, i64, i64); 7] = [
    ("ns", 1, 1_000),
    ("us", 1, 1),
    ("ms", 1_000, 1),
    ("s", 1_000_000, 1),
    ("min", 60_000_000, 1),
    ("h", 3_600_000_000, 1),
    ("d", 86_400_000_000, 1),
];

/// A number of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    times: i64,
    over: i64,
}

impl Unit {
    fn of(text: &str) -> Option<Unit> {
        let &(_, times, over) = UNITS.iter().find(|(name, ..)| *name == text)?;
        Some(Unit { times, over })
    }

    fn span(self, text: &[u8]) -> Option<Span> {
        // Millionths of the unit: lengths of whole microseconds stay exact.
        let micros = Number::parse(text).and_then(Number::seconds).ok()?.as_micros();
        let micros = i128::from(micros) * i128::from(self.times) / i128::from(self.over) / 1_000_000;
        i64::try_from(micros).ok().map(Span::from_micros)
    }
}

/// How lengths are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// A number of a unit.
    Number(Unit),
    /// `[days-][hours:]minutes:seconds`, or with `days ` as Python prints it: `1 days 02:03:04`.
    Clock,
}

impl FromStr for Length {
    type Err = String;
    fn from_str(text: &str) -> Result<Length, String> {
        match text {
            "clock" => Ok(Length::Clock),
            _ => Unit::of(text)
                .map(Length::Number)
                .ok_or_else(|| format!("length is `{text}`; write ns, us, ms, s, min, h, d, or clock")),
        }
    }
}

impl Length {
    /// Reads a length. `None` if it is none.
    pub(super) fn read(self, text: &[u8]) -> Option<Span> {
        match self {
            Length::Number(unit) => unit.span(text),
            Length::Clock => clock(std::str::from_utf8(text).ok()?),
        }
    }
}

fn clock(text: &str) -> Option<Span> {
    let (days, text) = match text.split_once(" days ").or_else(|| text.split_once('-')) {
        Some((days, rest)) => (days.trim().parse::<u32>().ok()?, rest.trim()),
        None => (0, text),
    };
    let (minutes, seconds) = text.rsplit_once(':')?;
    let (hours, minutes) = minutes.split_once(':').unwrap_or(("0", minutes));
    let whole = |text: &str| text.parse::<u32>().ok().map(i64::from);
    if !seconds.starts_with(|digit: char| digit.is_ascii_digit()) {
        return None;
    }
    let seconds = Number::parse(seconds.as_bytes()).and_then(Number::seconds).ok()?;
    let minutes = (i64::from(days) * 24 + whole(hours)?) * 60 + whole(minutes)?;
    minutes.checked_mul(60_000_000)?.checked_add(seconds.as_micros()).map(Span::from_micros)
}

/// How moments are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// As ISO 8601 has them, with or without an offset.
    Iso,
    /// A number of a unit, since 1970 or since the log began.
    Number(Unit),
    /// As `strftime` writes them.
    Format(String),
}

impl FromStr for Moment {
    type Err = String;
    fn from_str(text: &str) -> Result<Moment, String> {
        match text {
            "iso" => Ok(Moment::Iso),
            _ if text.contains('%') => Ok(Moment::Format(text.to_string())),
            _ => Unit::of(text).map(Moment::Number).ok_or_else(|| {
                format!(
                    "time is `{text}`; write iso, a format as in \"%d.%m.%Y %H:%M:%S\", or the unit of a number: ns, us, ms, s, \
                     min, h, d"
                )
            }),
        }
    }
}

impl Moment {
    /// Reads a moment, and whether a change of clocks has it twice or never. `None` if it is none.
    pub(super) fn read(&self, text: &[u8], zone: &Zone) -> Option<(Span, bool)> {
        let at = |time: Timestamp| (Span::from_micros(time.as_microsecond()), false);
        let local = |local: DateTime| {
            let (earlier, _, changed) = zone.unix_times(local)?;
            Some((Span::from_micros(earlier), changed))
        };
        match self {
            Moment::Number(unit) => unit.span(text).map(|time| (time, false)),
            Moment::Iso => {
                let text = std::str::from_utf8(text).ok()?;
                text.parse::<Timestamp>().map(at).ok().or_else(|| local(text.parse().ok()?))
            }
            Moment::Format(format) => {
                let broken = strtime::parse(format, text).ok()?;
                broken.to_timestamp().map(at).ok().or_else(|| local(broken.to_datetime().ok()?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_numbers_of_a_unit_or_clocks() {
        let read =
            |how: &str, text: &str| how.parse::<Length>().unwrap().read(text.as_bytes()).map(Span::as_micros);
        for (how, text, micros) in [
            ("s", "1.5", 1_500_000),
            ("ms", "1500", 1_500_000),
            ("min", "1440.0", 86_400_000_000),
            ("ns", "1500", 1),
            ("h", "0.5", 1_800_000_000),
            ("clock", "1-02:03:04", 93_784_000_000),
            ("clock", "0 days 00:10:00.5", 600_500_000),
            ("clock", "10:05", 605_000_000),
        ] {
            assert_eq!(read(how, text), Some(micros), "{how} {text}");
        }
        for (how, text) in [("s", "x"), ("clock", "60"), ("clock", "1:x:2"), ("h", "9e18")] {
            assert_eq!(read(how, text), None, "{how} {text}");
        }
        assert!("fortnight".parse::<Length>().unwrap_err().contains("write ns, us"));
    }

    #[test]
    fn moments_have_an_offset_or_the_zone_of_the_map() {
        let zone: Zone = "Asia/Shanghai".parse().unwrap();
        let read = |how: &str, text: &str| {
            how.parse::<Moment>()
                .unwrap()
                .read(text.as_bytes(), &zone)
                .map(|(time, _)| time.as_micros() / 1_000_000)
        };
        for (how, text, seconds) in [
            ("iso", "2023-03-01 00:18:22+08:00", 1_677_601_102),
            ("iso", "2023-03-01 00:18:22", 1_677_601_102),
            ("iso", "2023-02-28T16:18:22.25Z", 1_677_601_102),
            ("%d.%m.%Y %H:%M:%S", "01.03.2023 00:18:22", 1_677_601_102),
            ("%d.%m.%Y %H:%M:%S %z", "01.03.2023 00:18:22 +0900", 1_677_597_502),
            ("ms", "1677601102000", 1_677_601_102),
            ("s", "17", 17),
        ] {
            assert_eq!(read(how, text), Some(seconds), "{how} {text}");
        }
        assert_eq!(read("iso", "yesterday"), None);
        assert!("often".parse::<Moment>().unwrap_err().contains("write iso"));
    }
}
