//! Numbers as people read them: grouped digits, sensible precision, times of day.

/// A whole number with commas between thousands.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many of something, of which one is called this: `1 job`, `2,000 jobs`.
pub fn counted(count: impl TryInto<u64>, one: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A number with about four significant digits and grouped thousands.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let magnitude = value.abs();
    let sign = if value < 0.0 { "-" } else { "" };
    if magnitude >= 1000.0 {
        format!("{sign}{}", grouped(magnitude.round() as u64))
    } else if magnitude >= 100.0 {
        format!("{value:.1}")
    } else if magnitude >= 10.0 {
        format!("{value:.2}")
    } else if magnitude == 0.0 {
        "0".into()
    } else {
        format!("{value:.3}")
    }
}

/// Seconds, with days and hours beside them when they are many.
pub fn seconds(value: f64) -> String {
    let whole = value.round();
    let plain = format!("{} s", number(value));
    if whole < 3600.0 {
        return plain;
    }
    format!("{plain} ({})", clock(value))
}

/// Seconds in the two largest units that matter, for sentences: `12.50 s`, `3 min 20 s`, `1 h 17 min`, `2 d 3 h`.
pub fn duration(value: f64) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let magnitude = value.abs();
    if !magnitude.is_finite() || magnitude < 60.0 {
        return format!("{} s", number(value));
    }
    // To the second of the two units, so that nothing is 60 of a unit.
    let unit = UNITS.iter().position(|(_, seconds)| magnitude >= *seconds as f64).unwrap_or(2).min(2);
    let least = UNITS[unit + 1].1;
    let whole = (magnitude / least as f64).round() as u64 * least;
    let unit = UNITS.iter().position(|(_, seconds)| whole >= *seconds).unwrap_or(2).min(2);
    let ((large, size), (small, least)) = (UNITS[unit], UNITS[unit + 1]);
    let sign = if value < 0.0 { "-" } else { "" };
    match whole % size / least {
        0 => format!("{sign}{} {large}", grouped(whole / size)),
        rest => format!("{sign}{} {large} {rest} {small}", grouped(whole / size)),
    }
}

/// Seconds as `2 d 03:04:05`.
pub fn clock(value: f64) -> String {
    let whole = value.round().max(0.0) as u64;
    let (days, hours, minutes, seconds) = (whole / 86400, whole / 3600 % 24, whole / 60 % 60, whole % 60);
    if days > 0 {
        format!("{days} d {hours:02}:{minutes:02}:{seconds:02}")
    } else {
        format!("{hours}:{minutes:02}:{seconds:02}")
    }
}

/// A share from 0 to 1 in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// From so much more on, in percent, a change is told as a multiple.
const MULTIPLE_FROM: f64 = 1000.0;

/// How much more than `reference` a value is: `+3.20 %`, `14.66 times` where that is more than +1,000 %, or `-` where it means
/// nothing.
pub fn change(value: f64, reference: f64) -> String {
    if value == reference {
        return "0".into();
    }
    if reference == 0.0 || !value.is_finite() || !reference.is_finite() {
        return "-".into();
    }
    let change = 100.0 * (value / reference - 1.0);
    if change.abs() < 0.005 {
        "<0.01 %".into()
    } else if change > MULTIPLE_FROM {
        format!("{} times", number(value / reference))
    } else {
        format!("{change:+.2} %")
    }
}

/// The same in a sentence: `14.66 times as much`.
pub fn change_in_words(value: f64, reference: f64) -> String {
    let change = change(value, reference);
    if change.ends_with(" times") { change + " as much" } else { change }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well_at_every_magnitude() {
        assert_eq!(
            [counted(0, "job"), counted(1, "line"), counted(2_000_usize, "job")],
            ["0 jobs", "1 line", "2,000 jobs"]
        );
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
        assert_eq!(number(1234.6), "1,235");
        assert_eq!(number(-0.0421), "-0.042");
        assert_eq!(number(0.0), "0");
        assert_eq!(seconds(93784.0), "93,784 s (1 d 02:03:04)");
        assert_eq!(seconds(12.5), "12.50 s");
        assert_eq!(percent(0.123), "12.3 %");
    }

    #[test]
    fn a_duration_has_the_units_that_a_person_reads() {
        for (seconds, words) in [
            (0.0, "0 s"),
            (12.5, "12.50 s"),
            (60.0, "1 min"),
            (200.4, "3 min 20 s"),
            (3599.7, "1 h"),
            (4608.0, "1 h 17 min"),
            (86_399.0, "1 d"),
            (183_000.0, "2 d 3 h"),
            (-7200.0, "-2 h"),
            (f64::NAN, "- s"),
        ] {
            assert_eq!(duration(seconds), words);
        }
    }

    #[test]
    fn a_change_from_nothing_is_not_a_percentage() {
        assert_eq!(change(103.0, 100.0), "+3.00 %");
        assert_eq!(change(1.0, 0.0), "-");
        assert_eq!(change(0.0, 0.0), "0");
        assert_eq!(change(1.000_001, 1.0), "<0.01 %");
    }

    #[test]
    fn a_great_change_is_a_multiple() {
        assert_eq!([change(11.0, 1.0), change(11.1, 1.0)], ["+1000.00 %", "11.10 times"]);
        assert_eq!(change(2960.12, 1.0), "2,960 times");
        assert_eq!(change_in_words(2960.12, 1.0), "2,960 times as much");
        assert_eq!(change_in_words(1.5, 1.0), "+50.00 %");
    }
}
