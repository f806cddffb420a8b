//! Scales of a plot: where a value lies, and which values are written beside it.
//!
//! Delays go from nothing over seconds to hours, so axes are logarithmic with a place of its own for zero, left of
//! a break. Plain linear axes are here too.

use analysis::statistics::Interval;

use super::metric::Unit;

/// How values become places.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// Evenly from the first to the second.
    Linear(f64, f64),
    /// By logarithm from the first to the second; with a place for zero in front if the flag is set.
    Log(f64, f64, bool),
    /// What values are above the first, on the second: for ratios that cannot be below 1 and are hardly above.
    Above(f64, Box<Scale>),
}

/// The part of a logarithmic axis that zero and the break take.
const ZERO_SHARE: f64 = 0.07;
/// Ticks that an axis may have.
const TICKS_MAX: usize = 7;
/// A range of more than this factor is shown by logarithm. On a plain axis its least value still stands 15 of the 308 pixels of a
/// plot above 0, three times the half of a marker; one of more would stand on the axis. Lines that crowd there are told apart
/// before, see [`Scale::of_lines`]; people read a plain axis more easily, so it is kept as long as it shows all.
pub(crate) const LOG_FROM: f64 = 20.0;

/// Two points nearer than this share of the axis are drawn one over the other: half a marker of a usual plot.
const CLOSE: f64 = 0.015;
/// What is less above the least possible value than this is at it: four decimals are written.
const ABOVE_LEAST: f64 = 1e-4;

/// Times that people think in, in seconds: from 1 ms over 1, 10 and 30 s, minutes and hours, to days.
const ROUND_TIMES: [f64; 18] = [
    1e-3,
    1e-2,
    0.1,
    1.0,
    3.0,
    10.0,
    30.0,
    60.0,
    180.0,
    600.0,
    1800.0,
    3600.0,
    10_800.0,
    36_000.0,
    86_400.0,
    259_200.0,
    864_000.0,
    2_592_000.0,
];

/// Steps of axes of times up to a day, in seconds.
const TIME_STEPS: [f64; 19] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0,
    21_600.0, 43_200.0, 86_400.0, 172_800.0,
];

/// Units of times above seconds, the longest first.
pub(crate) const UNITS: [(f64, &str); 3] = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min")];

impl Scale {
    /// The scale that shows these values best: by logarithm if they span more than a factor.
    pub(crate) fn of(values: impl Iterator<Item = f64> + Clone, log_from: f64) -> Scale {
        let finite = values.filter(|value| value.is_finite());
        let low = finite.clone().fold(f64::INFINITY, f64::min);
        let high = finite.clone().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return Scale::Linear(0.0, 1.0);
        }
        let least = finite.filter(|&value| value > 0.0).fold(f64::INFINITY, f64::min);
        if low >= 0.0 && least.is_finite() && high / least > log_from {
            return Scale::Log(least / 1.15, high * 1.15, low == 0.0);
        }
        let room = if high > low { (high - low) * 0.06 } else { high.abs().max(1.0) * 0.05 };
        let floor = if low >= 0.0 && low < high * 0.35 { 0.0 } else { low - room };
        Scale::Linear(floor, high + room)
    }

    /// The scale of lines: as [`Scale::of`] has it, unless more than half of the points that it draws one over the other
    /// are apart by logarithm, or by the logarithm of what they are above the least value that is possible.
    ///
    /// `columns` has the values of all lines at one place of the horizontal axis each, `bounds` what else must be seen.
    pub(crate) fn of_lines(
        columns: &[Vec<f64>],
        bounds: &[f64],
        log_from: f64,
        least_possible: Option<f64>,
    ) -> Scale {
        let values = || columns.iter().flatten().chain(bounds).copied();
        let usual = Scale::of(values(), log_from);
        let by_logarithm = Some(Scale::of(values(), 1.0));
        let above = least_possible.filter(|&least| values().all(|value| value >= least)).map(|least| {
            let excess = |value: f64| if value - least < ABOVE_LEAST { 0.0 } else { value - least };
            Scale::Above(least, Box::new(Scale::of(values().map(excess), 1.0)))
        });
        let hidden = usual.hidden(columns);
        let better = [by_logarithm, above].into_iter().flatten().map(|scale| (scale.hidden(columns), scale));
        let best = better.filter(|(left, _)| 2 * left < hidden).min_by_key(|(left, _)| *left);
        best.map_or(usual, |(_, scale)| scale)
    }

    /// Pairs of different values in one column that have the same place, or none.
    fn hidden(&self, columns: &[Vec<f64>]) -> usize {
        let of_column = |column: &Vec<f64>| {
            let mut values = column.clone();
            values.sort_by(f64::total_cmp);
            let is_hidden = |pair: &&[f64]| {
                let differ = pair[1] - pair[0] > pair[1].abs() * 1e-9;
                let apart = self.place(pair[1]).zip(self.place(pair[0])).map(|(more, less)| more - less);
                differ && apart.is_none_or(|apart| apart < CLOSE)
            };
            values.windows(2).filter(is_hidden).count()
        };
        columns.iter().map(of_column).sum()
    }

    /// An axis of points that are not negative: by logarithm, with a place for zero if there is one.
    pub(crate) fn of_axis(points: &[f64]) -> Scale {
        let positive = || points.iter().copied().filter(|&point| point > 0.0);
        let least = positive().fold(f64::INFINITY, f64::min);
        let most = positive().fold(0.0, f64::max);
        let zero = points.contains(&0.0);
        if !least.is_finite() || most / least < LOG_FROM {
            return Scale::Linear(
                points.iter().copied().fold(f64::INFINITY, f64::min).min(least),
                most.max(1e-9),
            );
        }
        Scale::Log(least / 1.25, most * 1.25, zero)
    }

    /// Where a value lies, from 0 to 1; `None` if it has no place.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        match *self {
            Scale::Linear(low, high) => {
                let share = if high > low { (value - low) / (high - low) } else { 0.5 };
                (-1e-9..=1.0 + 1e-9).contains(&share).then_some(share)
            }
            Scale::Log(low, high, zero) => {
                let begin = if zero { ZERO_SHARE } else { 0.0 };
                if value == 0.0 {
                    return zero.then_some(0.0);
                }
                if value < low * (1.0 - 1e-9) || value > high * (1.0 + 1e-9) {
                    return None;
                }
                let share = (value / low).ln() / (high / low).ln();
                Some(begin + share * (1.0 - begin))
            }
            Scale::Above(least, ref scale) => {
                scale.place(if value - least < ABOVE_LEAST { 0.0 } else { value - least })
            }
        }
    }

    /// Where the break between zero and the rest is.
    pub(crate) fn gap(&self) -> Option<f64> {
        match self {
            Scale::Above(_, scale) => scale.gap(),
            _ => matches!(self, Scale::Log(_, _, true)).then_some(ZERO_SHARE / 2.0),
        }
    }

    /// Values along the axis that are round as times.
    pub(crate) fn time_ticks(&self) -> Vec<f64> {
        let (low, high, zero) = match *self {
            Scale::Linear(low, high) => {
                let Some(step) = time_step(high - low) else { return linear_ticks(low, high) };
                return steps(low, high, step);
            }
            Scale::Log(low, high, zero) => (low, high, zero),
            Scale::Above(..) => return self.ticks(),
        };
        let within: Vec<f64> =
            ROUND_TIMES.iter().copied().filter(|time| *time >= low && *time <= high).collect();
        if within.len() < 3 {
            // Round powers of seconds are no round hours and days; steps of one size are, and are told apart in so short a range.
            let plain = Scale::Linear(low, high).time_ticks().into_iter();
            let ticks: Vec<f64> = plain.filter(|tick| *tick > 0.0 || zero).collect();
            return if ticks.len() < 2 { self.ticks() } else { ticks };
        }
        let every = within.len().div_ceil(TICKS_MAX + 1);
        let first = if zero { vec![0.0] } else { Vec::new() };
        first.into_iter().chain(within.into_iter().step_by(every)).collect()
    }

    /// Round values along the axis.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        match *self {
            Scale::Linear(low, high) => linear_ticks(low, high),
            Scale::Log(low, high, zero) => {
                let mut ticks = if zero { vec![0.0] } else { Vec::new() };
                ticks.extend(log_ticks(low, high));
                ticks
            }
            Scale::Above(least, ref scale) => scale.ticks().into_iter().map(|tick| least + tick).collect(),
        }
    }
}

fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let range = high - low;
    if range.is_nan() || range <= 0.0 {
        return vec![low];
    }
    steps(low, high, round_step(range / (TICKS_MAX as f64 - 1.0)))
}

/// The least round number that is not below this one.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|by| by * power).find(|step| *step >= rough);
    step.unwrap_or(10.0 * power)
}

/// The step of an axis of times over such a range: one that a clock or a calendar has, and of days a round number. None below
/// seconds, where times are numbers like others.
fn time_step(range: f64) -> Option<f64> {
    let rough = range / (TICKS_MAX as f64 - 1.0);
    if rough.is_nan() || rough <= 0.5 {
        return None;
    }
    let of_clock = TIME_STEPS.into_iter().find(|step| *step >= rough);
    Some(of_clock.unwrap_or_else(|| 86_400.0 * round_step(rough / 86_400.0)))
}

/// Multiples of a step from one value to another.
fn steps(low: f64, high: f64, step: f64) -> Vec<f64> {
    let first = (low / step).ceil() as i64;
    (first..).map(|count| count as f64 * step).take_while(|tick| *tick <= high + step * 1e-9).collect()
}

/// Round times whose first and last are around two others.
pub(crate) fn around(low: f64, high: f64) -> Vec<f64> {
    let step =
        time_step(high - low).unwrap_or_else(|| round_step(((high - low) / TICKS_MAX as f64).max(1e-3)));
    steps((low / step).floor() * step, (high / step).ceil() * step, step)
}

/// How times along an axis are written: all in one unit if they are evenly apart, the greatest in which all are whole.
pub(crate) fn time_labels(ticks: &[f64]) -> Vec<String> {
    let step = ticks.get(1).zip(ticks.first()).map_or(0.0, |(second, first)| second - first);
    let is_even = ticks.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < step * 1e-6);
    let whole = |(unit, _): &(f64, &str)| {
        let is_whole = |count: f64| (count - count.round()).abs() < 1e-9 * count.abs();
        ticks.iter().all(|tick| *tick == 0.0 || is_whole(tick / unit))
    };
    match UNITS.into_iter().chain([(1.0, "s")]).find(whole).filter(|_| is_even && step > 0.0) {
        Some((unit, name)) => {
            let one =
                |tick: &f64| if *tick == 0.0 { short(0.0) } else { format!("{} {name}", short(tick / unit)) };
            ticks.iter().map(one).collect()
        }
        None => ticks.iter().map(|tick| span(*tick)).collect(),
    }
}

/// Units of times as [`span`] and [`time_labels`] write them, the shortest first.
const WRITTEN_UNITS: [&str; 5] = ["ms", "s", "min", "h", "d"];

/// Words beside an axis, and the units of time among them for its label: if there is one only, words are without it.
pub(crate) fn without_unit(words: &[String]) -> (Vec<String>, Option<String>) {
    let parted =
        |word: &String| word.rsplit_once(' ').map(|(number, unit)| (number.to_string(), unit.to_string()));
    let found: Vec<&str> = WRITTEN_UNITS
        .into_iter()
        .filter(|name| words.iter().filter_map(parted).any(|(_, unit)| unit == *name))
        .collect();
    let bare =
        |word: &String| parted(word).filter(|(_, unit)| found == [unit.as_str()]).map(|(number, _)| number);
    let words = words.iter().map(|word| bare(word).unwrap_or_else(|| word.clone())).collect();
    (words, (!found.is_empty()).then(|| found.join(", ")))
}

/// The label of an axis with its unit.
pub(crate) fn with_unit(label: &str, unit: Option<&str>) -> String {
    // A ratio of times has none.
    unit.map_or(label.to_string(), |unit| format!("{label} ({unit})"))
}

/// A value with its unit, to three digits where it is a time.
pub(crate) fn measured(value: f64, unit: Unit) -> String {
    measured_with(value, None, unit)
}

/// A value with its unit and the ends of its interval in the same one.
pub(crate) fn measured_with(value: f64, interval: Option<Interval>, unit: Unit) -> String {
    let (size, name) = match unit {
        Unit::Number => (1.0, ""),
        Unit::Share => (0.01, "%"),
        Unit::Time if value == 0.0 => (1.0, "s"),
        Unit::Time => fitting(value.abs()),
    };
    let written = |value: f64| {
        let value = value / size;
        if unit == Unit::Number || value == 0.0 {
            return short(value);
        }
        // All digits before the point are written.
        let step = 10f64.powf(value.abs().log10().floor() - 2.0).min(1.0);
        short((value / step).round() * step)
    };
    let ends = interval
        .map_or(String::new(), |Interval { low, high }| format!(" ({} to {})", written(low), written(high)));
    let gap = if name.is_empty() { "" } else { " " };
    format!("{}{gap}{name}{ends}", written(value))
}

fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = last - first;
    let steps: &[f64] = if decades <= 2 {
        &[1.0, 2.0, 5.0]
    } else if decades <= 4 {
        &[1.0, 3.0]
    } else {
        &[1.0]
    };
    let every = (decades / TICKS_MAX as i32) + 1;
    let powers = (first..=last).filter(|power| power % every == 0);
    let ticks: Vec<f64> = powers
        .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
        .filter(|tick| *tick >= low && *tick <= high)
        .collect();
    if ticks.len() < 2 { linear_ticks(low, high) } else { ticks }
}

/// From what on numbers are written in which unit.
const LARGE: [(f64, f64, &str); 4] = [(1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")];

/// A number as short as it can be read beside an axis.
pub(crate) fn short(value: f64) -> String {
    let magnitude = value.abs();
    let trim = |text: String| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    };
    if value == 0.0 {
        "0".into()
    } else if magnitude >= 1e15 {
        format!("{value:.0e}")
    } else if let Some((_, unit, name)) = LARGE.into_iter().find(|(from, ..)| magnitude >= *from) {
        format!("{} {name}", trim(format!("{:.2}", value / unit)))
    } else if magnitude >= 1000.0 {
        let text = trim(format!("{magnitude:.1}"));
        let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
        let (thousands, below) = whole.split_at(whole.len() - 3);
        format!("{}{thousands},{below}{rest}", if value < 0.0 { "-" } else { "" })
    } else if magnitude >= 100.0 {
        trim(format!("{value:.1}"))
    } else if magnitude >= 1e-3 {
        trim(format!("{value:.4}"))
    } else {
        format!("{value:.0e}")
    }
}

/// A span of time as it is written in files: 1 s, 5 min, 4 h.
pub(crate) fn span(seconds: f64) -> String {
    let whole = |unit: f64| (seconds / unit).fract().abs() < 1e-9;
    if seconds == 0.0 {
        "0".into()
    } else if seconds >= 86_400.0 && whole(86_400.0) {
        format!("{} d", short(seconds / 86_400.0))
    } else if seconds >= 3600.0 && (whole(3600.0) || seconds >= 36_000.0) {
        format!("{} h", short((seconds / 360.0).round() / 10.0))
    } else if seconds >= 60.0 && (whole(60.0) || seconds >= 600.0) {
        format!("{} min", short((seconds / 6.0).round() / 10.0))
    } else if seconds >= 1.0 {
        format!("{} s", short(seconds))
    } else {
        format!("{} ms", short(seconds * 1e3))
    }
}

/// The unit in which a time is read, which is positive, and its name.
fn fitting(seconds: f64) -> (f64, &'static str) {
    let unit = UNITS.into_iter().find(|(unit, _)| seconds >= 2.0 * unit);
    unit.unwrap_or(if seconds >= 0.9995 { (1.0, "s") } else { (1e-3, "ms") })
}

/// A time with two digits, as more would pretend, and its unit.
pub(crate) fn rounded_parts(seconds: f64) -> (String, &'static str) {
    if seconds <= 0.0 {
        return (short(seconds), "s");
    }
    let (unit, name) = fitting(seconds);
    let value = seconds / unit;
    let digits = 10f64.powf(value.log10().floor() - 1.0);
    (short((value / digits).round() * digits), name)
}

/// The same in words.
pub(crate) fn rounded(seconds: f64) -> String {
    let (value, unit) = rounded_parts(seconds);
    if value == "0" { value } else { format!("{value} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_a_place_of_its_own() {
        let scale = Scale::of_axis(&[0.0, 1.0, 60.0, 3600.0]);

        assert_eq!(scale.place(0.0), Some(0.0));
        assert!(scale.place(1.0).unwrap() > ZERO_SHARE);
        assert!(scale.place(3600.0).unwrap() < 1.0);
        assert_eq!(scale.place(0.5), None, "between zero and the first point is no place");
        assert!(Scale::of_axis(&[1.0, 3600.0]).gap().is_none());
    }

    #[test]
    fn a_wide_range_is_shown_by_logarithm_and_a_narrow_one_is_not() {
        assert!(matches!(Scale::of([1.0, 1000.0].into_iter(), LOG_FROM), Scale::Log(_, _, false)));
        assert!(matches!(Scale::of([0.0, 1.0, 1000.0].into_iter(), LOG_FROM), Scale::Log(_, _, true)));
        assert!(matches!(Scale::of([1.0, 1.2].into_iter(), LOG_FROM), Scale::Linear(_, _)));
        assert!(matches!(Scale::of([-5.0, 1000.0].into_iter(), LOG_FROM), Scale::Linear(_, _)));
        assert!(matches!(Scale::of(std::iter::empty(), LOG_FROM), Scale::Linear(_, _)));
    }

    #[test]
    fn lines_that_a_plain_axis_hides_are_drawn_apart() {
        let ratios = [vec![1.0, 1.001, 1.01, 2.5], vec![1.0, 1.002, 1.02, 2.4]];

        let scale = Scale::of_lines(&ratios, &[], LOG_FROM, Some(1.0));

        assert!(matches!(scale, Scale::Above(1.0, _)), "{scale:?}");
        let places: Vec<f64> = ratios[0].iter().map(|value| scale.place(*value).unwrap()).collect();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 5.0 * CLOSE), "{places:?}");
        assert_eq!(scale.ticks()[..2], [1.0, 1.001]);
        assert_eq!(scale.place(1.000_01), Some(0.0), "what is written as 1 is at 1");
    }

    #[test]
    fn lines_that_are_apart_or_equal_keep_the_plain_axis() {
        let plain = |columns: &[Vec<f64>], least| {
            matches!(Scale::of_lines(columns, &[], LOG_FROM, least), Scale::Linear(..))
        };

        assert!(plain(&[vec![1.0, 1.4, 2.0], vec![1.1, 1.5, 1.9]], Some(1.0)));
        assert!(plain(&[vec![1.0, 1.0, 2.0]], Some(1.0)), "equal lines coincide on every axis");
        assert!(!plain(&[vec![1.0, 1.1, 1.21, 12.0]], None), "ratios of ten and of tenths");
        assert!(plain(&[vec![-1.0, -1.001, 5.0]], None), "no logarithm of what is negative");
    }

    #[test]
    fn times_of_a_short_range_are_marked_at_whole_units_also_by_logarithm() {
        let written = |low: f64, high: f64| {
            let ticks = Scale::Log(low, high, false).time_ticks();
            ticks.into_iter().map(span).collect::<Vec<_>>()
        };
        assert_eq!(written(18.0 * 3600.0, 139.0 * 3600.0), ["1 d", "2 d", "3 d", "4 d", "5 d"]);
        assert_eq!(written(100.0, 1700.0), ["5 min", "10 min", "15 min", "20 min", "25 min"]);
        assert_eq!(written(1.0, 10_000.0), ["1 s", "10 s", "1 min", "10 min", "1 h"]);
    }

    #[test]
    fn times_of_an_even_axis_have_one_unit_and_steps_of_a_clock() {
        let written = |low: f64, high: f64| time_labels(&Scale::Linear(low, high).time_ticks());
        let hour = 3600.0;
        assert_eq!(
            written(21.0 * hour, 27.0 * hour),
            ["21 h", "22 h", "23 h", "24 h", "25 h", "26 h", "27 h"]
        );
        assert_eq!(written(0.0, 47.0 * hour), ["0", "12 h", "24 h", "36 h"]);
        assert_eq!(written(0.0, 17.0 * hour), ["0", "3 h", "6 h", "9 h", "12 h", "15 h"]);
        assert_eq!(written(0.0, 4.0 * 86_400.0), ["0", "1 d", "2 d", "3 d", "4 d"]);
        assert_eq!(written(0.0, 80.0), ["0", "15 s", "30 s", "45 s", "60 s", "75 s"]);
        assert_eq!(written(0.0, 0.004), ["0", "1 ms", "2 ms", "3 ms", "4 ms"]);
        // By logarithm each has the unit that is next to it.
        let apart = time_labels(&Scale::Log(30.0, 1e5, false).time_ticks());
        assert_eq!(apart, ["30 s", "3 min", "30 min", "3 h", "1 d"]);
        for (low, high) in [(22.4 * hour, 26.1 * hour), (5.0, 5.0), (0.0, 0.3)] {
            let marks = around(low, high);
            assert!(
                marks[0] <= low && marks[marks.len() - 1] >= high - 1e-9 && marks.len() <= 9,
                "{marks:?}"
            );
        }
    }

    #[test]
    fn a_unit_that_all_marks_have_goes_to_the_label() {
        let words = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let of = |texts: &[&str]| without_unit(&words(texts));
        assert_eq!(of(&["0", "5 min", "10 min"]), (words(&["0", "5", "10"]), Some("min".to_string())));
        assert_eq!(of(&["0", "1 h", "30 s"]), (words(&["0", "1 h", "30 s"]), Some("s, h".to_string())));
        assert_eq!(of(&["20 k", "0.5"]), (words(&["20 k", "0.5"]), None), "thousands are no unit");
        assert_eq!(with_unit("wait", Some("min")), "wait (min)");
    }

    #[test]
    fn values_have_their_units() {
        let interval = |low, high| Some(Interval { low, high });
        assert_eq!(measured_with(468.0, interval(444.0, 492.0), Unit::Time), "7.8 min (7.4 to 8.2)");
        assert_eq!(measured_with(130.0, interval(90.0, 492.0), Unit::Time), "2.17 min (1.5 to 8.2)");
        assert_eq!(measured_with(0.1234, interval(0.1, 0.15), Unit::Share), "12.3 % (10 to 15)");
        assert_eq!(
            measured_with(20_000.0, interval(10_000.0, 30_000.0), Unit::Number),
            "20 k (10 k to 30 k)"
        );
        assert_eq!(measured(0.0, Unit::Time), "0 s");
        assert_eq!(measured(0.0123, Unit::Time), "12.3 ms");
        assert_eq!(measured(123_456_789.0, Unit::Time), "1,429 d");
    }

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(Scale::Linear(0.0, 1.0).ticks(), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(Scale::Log(0.9, 120.0, true).ticks(), [0.0, 1.0, 3.0, 10.0, 30.0, 100.0]);
        for (low, high) in [(1e-9, 1e9), (3.0, 4.0), (0.1, 1e5)] {
            let ticks = Scale::Log(low, high, false).ticks();
            assert!((1..=14).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
        }
    }

    #[test]
    fn times_are_rounded_to_what_is_known() {
        let rounded = [0.0, 0.004_567, 0.9996, 1.23, 45.6, 100.0, 150.0, 9000.0, 200_000.0].map(rounded);
        assert_eq!(rounded, ["0", "4.6 ms", "1 s", "1.2 s", "46 s", "100 s", "2.5 min", "2.5 h", "2.3 d"]);
    }

    #[test]
    fn values_are_written_short() {
        let written: Vec<String> =
            [0.0, 1.0, 1.5, 0.03, 1234.5, -1e3, 20_000.0, 3.1e6, 6e9, 5e13, 2e-5].map(short).into();
        let expected = ["0", "1", "1.5", "0.03", "1,234.5", "-1,000", "20 k", "3.1 M", "6 G", "50 T", "2e-5"];
        assert_eq!(written, expected);
        let spans: Vec<String> =
            [0.0, 0.05, 10.0, 60.0, 90.0, 1200.0, 5400.0, 14_400.0, 172_800.0].map(span).into();
        assert_eq!(spans, ["0", "50 ms", "10 s", "1 min", "90 s", "20 min", "90 min", "4 h", "2 d"]);
    }
}
