//! Where an advantage ends, in words.

use analysis::statistics::{Advantage, CrossoverInterval, Interval};

use super::axis::{rounded, rounded_parts, short};

/// Where an advantage ends: `3.1 min (1.9 to 5.2)`, or that it does not. `last` is the last point, in words.
///
/// What no draw of repetitions settles comes after "perhaps": the end of the interval lies there.
pub(crate) fn words(found: &CrossoverInterval, is_time: bool, last: &str, with_interval: bool) -> String {
    let place = |x: f64| if is_time { rounded(x) } else { short(x) };
    let ends = found.interval.filter(|interval| with_interval && interval.low < interval.high);
    // Of who is better to the last point: what is below it.
    let perhaps_less = match ends {
        None => String::new(),
        Some(Interval { low, .. }) if low.is_finite() => format!(" (perhaps only up to {})", place(low)),
        Some(_) => " (perhaps nowhere)".to_string(),
    };
    match &found.advantage {
        Advantage::Lost { end, begin } => {
            let between =
                ends.map_or(String::new(), |ends| format!(" ({})", between(ends, end.at(), is_time, last)));
            let only =
                begin.map_or(String::new(), |begin| format!(", better only from {} on", place(begin.at())));
            format!("{}{between}{only}", place(end.at()))
        }
        Advantage::Gained(gained) => format!("better from {} on{perhaps_less}", place(gained.at())),
        Advantage::Throughout => format!("better throughout{perhaps_less}"),
        Advantage::Never => match ends {
            None => "never better".to_string(),
            Some(Interval { high, .. }) if high.is_finite() => {
                format!("never better (perhaps up to {})", place(high))
            }
            Some(_) => "never better (perhaps throughout)".to_string(),
        },
        Advantage::Same => "no difference".to_string(),
    }
}

/// The interval around a place where an advantage ends.
fn between(Interval { low, high }: Interval, end: f64, is_time: bool, last: &str) -> String {
    let place = |x: f64| if is_time { rounded(x) } else { short(x) };
    match (low.is_finite(), high.is_finite()) {
        (true, true) => {
            let parts = [low, end, high].map(|x| rounded_parts(x.max(0.0)));
            // One unit is written once.
            match is_time && parts[0].1 == parts[1].1 && parts[1].1 == parts[2].1 {
                true => format!("{} to {}", parts[0].0, parts[2].0),
                false => format!("{} to {}", place(low), place(high)),
            }
        }
        (true, false) => format!("{} to beyond {last}", place(low)),
        (false, true) => format!("up to {}, perhaps never better", place(high)),
        (false, false) => format!("perhaps never better, perhaps beyond {last}"),
    }
}

#[cfg(test)]
mod tests {
    use analysis::statistics::Crossover;

    use super::*;

    #[test]
    fn ends_of_advantages_are_said_in_words() {
        let end = Crossover { before: (60.0, -1.0), after: (600.0, 1.0) };
        let lost = Advantage::Lost { end, begin: None };
        let begin = Some(Crossover { before: (0.0, 1.0), after: (60.0, -1.0) });
        let say = |advantage, low: f64, high: f64| {
            let interval = Some(Interval { low, high });
            let found = CrossoverInterval { advantage, interval, kept: 0.0, throughout: 0.0, never: 0.0 };
            words(&found, true, "4 h", true)
        };
        let (never, beyond) = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(say(lost, 130.0, 310.0), "3.2 min (2.2 to 5.2)");
        assert_eq!(say(lost, 37.0, 310.0), "3.2 min (37 s to 5.2 min)");
        assert_eq!(say(lost, never, beyond), "3.2 min (perhaps never better, perhaps beyond 4 h)");
        let late = say(Advantage::Lost { end, begin }, never, 310.0);
        assert_eq!(late, "3.2 min (up to 5.2 min, perhaps never better), better only from 30 s on");
        assert_eq!(say(Advantage::Throughout, beyond, beyond), "better throughout");
        assert_eq!(
            say(Advantage::Throughout, 9000.0, beyond),
            "better throughout (perhaps only up to 2.5 h)"
        );
        assert_eq!(say(Advantage::Throughout, never, beyond), "better throughout (perhaps nowhere)");
        assert_eq!(
            say(Advantage::Gained(end), 9000.0, beyond),
            "better from 3.2 min on (perhaps only up to 2.5 h)"
        );
        assert_eq!(say(Advantage::Never, never, beyond), "never better (perhaps throughout)");
        assert_eq!(say(lost, 130.0, beyond), "3.2 min (2.2 min to beyond 4 h)");
        assert_eq!(say(Advantage::Never, never, never), "never better");
        assert_eq!(say(Advantage::Never, never, 5.0), "never better (perhaps up to 5 s)");
        assert_eq!(say(Advantage::Same, never, never), "no difference");
    }
}
