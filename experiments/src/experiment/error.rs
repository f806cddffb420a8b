//! Why what was written is no experiment: the flag or the line of the file that is wrong, what was expected, and what to write.

use std::borrow::Cow;
use std::path::Path;

use super::place;
use crate::kind;

/// Why what was written is no experiment. Reads after "failed to".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("understand {place}: {reason}")]
pub struct ExperimentError {
    pub(super) place: Cow<'static, str>,
    pub(super) reason: String,
    /// Whether a file that it names is not there: then it is no matter of how a flag is written.
    pub(super) lacks_a_file: bool,
}

impl ExperimentError {
    /// The flag that gives the value, as in `--delay`; nothing for what only a file can say.
    pub fn flag(&self) -> Option<&str> {
        self.place.split(' ').next().filter(|word| word.starts_with("--"))
    }

    /// What is wrong, where no flag was typed: the key alone, as in `understand network.delay: …`.
    pub fn of_key(&self) -> String {
        format!("understand {}: {}", self.key(), self.reason)
    }

    /// What is wrong with a file that says this: with its line, if the key is there, and with the file in any case.
    pub fn of_file(&self, path: &Path, text: &str) -> String {
        let (path, key) = (path.display(), self.key());
        let first = key.split(' ').next().unwrap_or_default();
        match place::line_of(text, first) {
            Some(line) => format!("understand {path}:{line}: {key}: {}", self.reason),
            None if kind::is_of_experiments(first.split(['.', '[']).next().unwrap_or_default()) => {
                format!("understand {path}: {key}: {}", self.reason)
            }
            // The place is a file of its own.
            None => self.of_key(),
        }
    }

    /// `network.delay` of `--delay (network.delay)`, `grid` of `--sites ([grid])`.
    fn key(&self) -> &str {
        let mut key = match self.place.strip_suffix(')').and_then(|place| place.split_once(" (")) {
            Some((_, key)) => key,
            None => &self.place,
        };
        while let Some(inner) = key.strip_prefix('[').and_then(|key| key.strip_suffix(']')) {
            key = inner;
        }
        key
    }
}

/// The error of a place.
pub(super) fn wrong(place: impl Into<Cow<'static, str>>) -> impl Fn(String) -> ExperimentError {
    let place = place.into();
    move |reason| ExperimentError { place: place.clone(), reason, lacks_a_file: false }
}
