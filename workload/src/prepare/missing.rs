//! What schedulers are told of a job whose user requested no time, and how that is typed.

use std::fmt;
use std::str::FromStr;

use scheduler::Span;

use super::switches::{SwitchError, unknown};

/// What takes the place of a requested time that the log does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingEstimate {
    /// The run time, in a log in which other jobs have a requested time; a log in which none has is refused (default).
    #[default]
    RunTimeOfSome,
    /// The run time, whatever others have: schedulers then know what no user knew.
    RunTime,
    /// This time, at which the job is not stopped: nobody asked for it.
    Time(Span),
    /// The job is dropped.
    Drop,
    /// The log is refused.
    Refuse,
}

/// Seconds of the units that a time may have.
const UNITS: [(&str, i64); 7] =
    [("s", 1), ("sec", 1), ("min", 60), ("m", 60), ("h", 3_600), ("d", 86_400), ("w", 604_800)];

impl fmt::Display for MissingEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingEstimate::RunTimeOfSome => f.write_str("run-time-of-some"),
            MissingEstimate::RunTime => f.write_str("run-time"),
            MissingEstimate::Time(time) => write!(f, "{time}s"),
            MissingEstimate::Drop => f.write_str("drop"),
            MissingEstimate::Refuse => f.write_str("refuse"),
        }
    }
}

impl FromStr for MissingEstimate {
    type Err = SwitchError;
    fn from_str(text: &str) -> Result<Self, SwitchError> {
        Ok(match text {
            "run-time-of-some" => MissingEstimate::RunTimeOfSome,
            "run-time" => MissingEstimate::RunTime,
            "drop" => MissingEstimate::Drop,
            "refuse" => MissingEstimate::Refuse,
            _ => {
                let choices = "run-time-of-some, run-time, drop, refuse, a time as in 24h";
                let time = time(text).ok_or_else(|| unknown("missing estimate", text, choices))?;
                MissingEstimate::Time(time)
            }
        })
    }
}

/// A whole positive number with a unit.
fn time(text: &str) -> Option<Span> {
    let end = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = (text[..end].parse::<i64>().ok()?, text[end..].trim_start());
    let (_, seconds) = UNITS.into_iter().find(|&(name, _)| name == unit)?;
    let micros = number.checked_mul(seconds)?.checked_mul(1_000_000)?;
    (micros > 0).then_some(Span::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_a_time_has_a_unit() {
        for text in ["run-time-of-some", "run-time", "drop", "refuse", "90s"] {
            assert_eq!(text.parse::<MissingEstimate>().unwrap().to_string(), text);
        }
        for (text, seconds) in [("24h", 86_400), ("90 min", 5_400), ("2d", 172_800), ("1w", 604_800)] {
            assert_eq!(text.parse(), Ok(MissingEstimate::Time(Span::from_secs(seconds))), "{text}");
        }
        for text in ["0h", "24", "-1h", "1.5h", "h", "", "99999999999999h", "1 fortnight"] {
            assert!(text.parse::<MissingEstimate>().is_err(), "{text}");
        }
    }
}
