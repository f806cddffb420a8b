//! Where an advantage ends, in words.

use analysis::statistics::{Advantage, CrossoverInterval, Interval};

use super::axis::{rounded, rounded_parts, short};

/// Where an advantage ends: `3.1 min (1.9 to 5.2)`, or that it does not. `last` is the last point, in words.
pub(crate) fn words(found: &CrossoverInterval, is_time: bool, last: &str, with_interval: bool) -> String {
    let place = |x: f64| if is_time { rounded(x) } else { short(x) };
    let ends = found.interval.filter(|interval| with_interval && interval.low < interval.high);
    let between = ends.map_or(String::new(), |Interval { low, high }| {
        let parts = [low, found.advantage.end(), high].map(|x| rounded_parts(x.max(0.0)));
        let is_finite = [low, high].iter().all(|end| end.is_finite());
        if is_time && is_finite && parts[0].1 == parts[1].1 && parts[1].1 == parts[2].1 {
            return format!(" ({} to {})", parts[0].0, parts[2].0);
        }
        let from = if low.is_finite() { place(low) } else { "never".to_string() };
        let to = if high.is_finite() { place(high) } else { format!("beyond {last}") };
        format!(" ({from} to {to})")
    });
    match &found.advantage {
        Advantage::Lost { end, begin } => {
            let only =
                begin.map_or(String::new(), |begin| format!(", better only from {} on", place(begin.at())));
            format!("{}{between}{only}", place(end.at()))
        }
        Advantage::Gained(gained) => format!("none: better from {} on{between}", place(gained.at())),
        Advantage::Throughout => format!("none: better throughout{between}"),
        Advantage::Never => format!("none: never better{between}"),
        Advantage::Same => "none: no difference".to_string(),
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
        assert_eq!(say(lost, never, beyond), "3.2 min (never to beyond 4 h)");
        let late = say(Advantage::Lost { end, begin }, never, 310.0);
        assert_eq!(late, "3.2 min (never to 5.2 min), better only from 30 s on");
        assert_eq!(say(Advantage::Throughout, beyond, beyond), "none: better throughout");
        assert_eq!(
            say(Advantage::Throughout, 9000.0, beyond),
            "none: better throughout (2.5 h to beyond 4 h)"
        );
        assert_eq!(say(Advantage::Never, never, never), "none: never better");
        assert_eq!(say(Advantage::Never, never, 5.0), "none: never better (never to 5 s)");
        assert_eq!(say(Advantage::Same, never, never), "none: no difference");
    }
}
