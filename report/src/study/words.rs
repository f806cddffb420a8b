//! Numbers of a page as they are written: by metric, with as many digits as say something.

use analysis::statistics::{Interval, Ratio};

use crate::quantity::grouped;
use crate::sweep::axis::UNITS;
use crate::sweep::metric::{SHOWN, Unit};

/// Significant digits, if nothing else is said; whole numbers keep all of theirs.
const DIGITS: usize = 3;
/// Ratios differ in their last digits only.
const RATIO_DIGITS: usize = 4;

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Style {
    kind: Kind,
    digits: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Seconds in this unit; `None` for one that fits.
    Time(Option<(f64, &'static str)>),
    /// A share from 0 to 1.
    Share,
    Number,
}

impl Style {
    /// That of a metric; `unit` and `digits` as they were asked for. Times have the unit `fallback` without.
    pub(super) fn of(
        metric: &str,
        unit: Option<&str>,
        digits: Option<usize>,
        fallback: &str,
    ) -> Result<Style, String> {
        let kind = if Unit::of(metric) == Unit::Time {
            let unit = unit.unwrap_or(fallback);
            Kind::Time(match unit {
                "auto" => None,
                "s" => Some((1.0, "s")),
                _ => Some(
                    *UNITS
                        .iter()
                        .find(|(_, name)| *name == unit)
                        .ok_or_else(|| format!("unit={unit} is unknown; write auto, s, min, h or d"))?,
                ),
            })
        } else if let Some(unit) = unit {
            return Err(format!("unit={unit} means nothing: {metric} is no time"));
        } else if Unit::of(metric) == Unit::Share {
            Kind::Share
        } else {
            Kind::Number
        };
        let digits = digits.unwrap_or(if metric.starts_with("ratio") { RATIO_DIGITS } else { DIGITS });
        if !(1..=12).contains(&digits) {
            return Err(format!("digits={digits} is not from 1 to 12"));
        }
        Ok(Style { kind, digits })
    }

    /// The unit, if it is the same for all values.
    pub(super) fn unit(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Time(Some((_, name))) => Some(name),
            Kind::Share => Some("%"),
            _ => None,
        }
    }

    /// The number without a unit that all values have.
    pub(super) fn bare(&self, value: f64) -> String {
        match self.kind {
            Kind::Time(Some((unit, _))) => significant(value / unit, self.digits),
            Kind::Time(None) => {
                let (unit, name) = fitting(value);
                format!("{} {name}", significant(value / unit, self.digits))
            }
            Kind::Share => significant(100.0 * value, self.digits),
            Kind::Number => significant(value, self.digits),
        }
    }

    /// The number with its unit.
    pub(super) fn full(&self, value: f64) -> String {
        self.unit().map_or(self.bare(value), |unit| format!("{} {unit}", self.bare(value)))
    }

    /// The number with its unit, and its interval if there is one.
    pub(super) fn with_interval(&self, value: f64, interval: Option<Interval>) -> String {
        let Some(interval) = interval else { return self.full(value) };
        // The ends have the unit of what they surround.
        let style = match self.kind {
            Kind::Time(None) => Style { kind: Kind::Time(Some(fitting(value))), ..*self },
            _ => *self,
        };
        format!("{} ({} to {})", style.full(value), style.bare(interval.low), style.bare(interval.high))
    }
}

/// The unit in which a time is read.
fn fitting(seconds: f64) -> (f64, &'static str) {
    UNITS.into_iter().find(|(unit, _)| seconds.abs() >= 2.0 * unit).unwrap_or((1.0, "s"))
}

/// A number with so many significant digits, and all digits before the point.
pub(super) fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "-".to_string();
    }
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = (digits as i32 - 1 - magnitude).clamp(0, 12) as usize;
    fixed(if value == 0.0 { 0.0 } else { value }, if value == 0.0 { 0 } else { decimals })
}

/// A number with so many decimals and grouped thousands.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |text| ("-", text));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.parse().map_or(whole.to_string(), grouped);
    let is_zero = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    let sign = if is_zero { "" } else { sign };
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// Changes from here on are written without decimals, in percent.
const WHOLE_FROM: f64 = 9.95;

/// A ratio as a change in percent: `-17 % (-21 to -13)`.
pub(super) fn change(ratio: &Ratio, with_interval: bool) -> String {
    let percent = 100.0 * (ratio.ratio - 1.0);
    let decimals = usize::from(percent.abs() < WHOLE_FROM);
    let shown = |percent: f64| {
        let text = fixed(percent, decimals);
        let is_zero = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
        if text.starts_with('-') || is_zero { text } else { format!("+{text}") }
    };
    let ends = ratio.interval.filter(|_| with_interval).map(|interval| {
        let end = |end: f64| shown(100.0 * (end - 1.0));
        format!(" ({} to {})", end(interval.low), end(interval.high))
    });
    format!("{} %{}", shown(percent), ends.unwrap_or_default())
}

/// A ratio as a factor: `3.70 times (3.10 to 4.20)`.
pub(super) fn factor(ratio: &Ratio, with_interval: bool, digits: usize) -> String {
    let ends = ratio.interval.filter(|_| with_interval).map(|interval| {
        format!(" ({} to {})", significant(interval.low, digits), significant(interval.high, digits))
    });
    format!("{} times{}", significant(ratio.ratio, digits), ends.unwrap_or_default())
}

/// A metric in words, for heads of tables and titles of plots.
pub(super) fn metric(name: &str) -> String {
    let known = SHOWN.iter().find(|metric| metric.column == name);
    known.map_or(name.to_string(), |metric| metric.title.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        let shown: Vec<String> =
            [4853.2, 448.04, 39.96, 2.0, 0.012_34, 0.0, -1234.5].map(|value| significant(value, 3)).into();
        assert_eq!(shown, ["4,853", "448", "40.0", "2.00", "0.0123", "0", "-1,234"]);
        let style = |metric: &str, unit| Style::of(metric, unit, None, "auto").unwrap();
        assert_eq!(style("wait_mean_s", None).full(4853.0), "80.9 min");
        assert_eq!(style("wait_mean_s", Some("s")).full(4853.0), "4,853 s");
        assert_eq!(style("wait_mean_s", None).full(0.0), "0 s");
        assert_eq!(style("stolen_share", None).full(0.1234), "12.3 %");
        assert_eq!(style("ratio_best", None).full(1.0321), "1.032");
        let interval = Some(Interval { low: 60.0, high: 9000.0 });
        assert_eq!(style("wait_mean_s", None).with_interval(4853.0, interval), "80.9 min (1.00 to 150)");
        assert!(Style::of("messages", Some("s"), None, "auto").is_err());
        assert!(Style::of("wait_mean_s", Some("weeks"), None, "auto").is_err());
        assert!(Style::of("wait_mean_s", None, Some(0), "auto").is_err());
    }

    #[test]
    fn changes_have_a_sign_and_no_decimals_where_they_are_large() {
        let ratio = |ratio: f64, low: f64, high: f64| Ratio { ratio, interval: Some(Interval { low, high }) };
        assert_eq!(change(&ratio(0.83, 0.79, 0.87), true), "-17 % (-21 to -13)");
        assert_eq!(change(&ratio(0.968, 0.95, 0.989), true), "-3.2 % (-5.0 to -1.1)");
        assert_eq!(change(&ratio(1.0, 0.9999, 1.0), true), "0.0 % (0.0 to 0.0)");
        assert_eq!(change(&ratio(14.7, 1.0, 20.0), false), "+1,370 %");
        assert_eq!(factor(&ratio(3.7, 3.1, 4.2), true, 2), "3.7 times (3.1 to 4.2)");
    }
}
