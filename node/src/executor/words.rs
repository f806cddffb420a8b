//! The words of a command with what is known of a job in them. All of that are numbers, and the name of the site: no text of a log is in
//! a command, and no shell reads it.

use std::time::Duration;

use scheduler::JobSpec;

/// What can stand between braces.
const NAMES: [&str; 10] =
    ["job", "processors", "run_time", "requested", "user", "group", "executable", "queue", "memory", "site"];

/// Why a word of a command means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// Nothing is known by that name.
    #[error("{{{name}}} in {word:?} stands for nothing; there are {{{names}}}, and {{{{ is a brace", names = NAMES.join("}, {"))]
    Unknown {
        /// What stands between the braces.
        name: String,
        /// The word of the command.
        word: String,
    },
    /// A brace without its partner.
    #[error("{0:?} has a brace that is not closed; write {{{{ and }}}} for braces that stand for themselves")]
    Open(String),
    /// What no process can be given.
    #[error("{0:?} has a character of code 0")]
    Null(String),
}

/// A job that is to run, by the clock of the wall.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// The job.
    pub(super) job: &'a JobSpec,
    /// How long it ran in the log.
    pub(super) run_time: Duration,
    /// How long its user believes.
    pub(super) requested: Duration,
    /// The name of the site.
    pub(super) site: &'a str,
}

impl Known<'_> {
    fn value(&self, name: &str) -> Option<String> {
        let Known { job, site, .. } = self;
        let seconds = |time: Duration| {
            let text = format!("{:.6}", time.as_secs_f64());
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        };
        Some(match name {
            "job" => job.id.to_string(),
            "processors" => job.processors.to_string(),
            "run_time" => seconds(self.run_time),
            "requested" => seconds(self.requested),
            "user" => job.labels.user.to_string(),
            "group" => job.labels.group.to_string(),
            "executable" => job.labels.executable.to_string(),
            "queue" => job.labels.queue.to_string(),
            "memory" => job.labels.memory.to_string(),
            "site" => site.to_string(),
            _ => return None,
        })
    }

    /// The words of a command for this job.
    ///
    /// # Errors
    /// If a word means nothing.
    pub(super) fn words(&self, command: &[String]) -> Result<Vec<String>, WordError> {
        command.iter().map(|word| filled(word, |name| self.value(name))).collect()
    }
}

/// Whether all words of a command mean something.
///
/// # Errors
/// The first that does not.
pub(super) fn check(command: &[String]) -> Result<(), WordError> {
    let known = |name: &str| NAMES.contains(&name).then(String::new);
    command.iter().try_for_each(|word| filled(word, known).map(drop))
}

/// A word with what its braces stand for.
fn filled(word: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, WordError> {
    if word.contains('\0') {
        return Err(WordError::Null(word.to_string()));
    }
    let open = || WordError::Open(word.to_string());
    let (mut text, mut rest) = (String::new(), word);
    while let Some(place) = rest.find(['{', '}']) {
        text.push_str(&rest[..place]);
        let brace = &rest[place..=place];
        rest = &rest[place + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err(open());
        }
        let (name, after) = rest.split_once('}').ok_or_else(open)?;
        let unknown = || WordError::Unknown { name: name.to_string(), word: word.to_string() };
        text.push_str(&value(name).ok_or_else(unknown)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, Labels, SiteId, Span, Time};

    use super::*;

    fn words(command: &[&str]) -> Result<Vec<String>, WordError> {
        let job = JobSpec {
            id: JobId(7),
            submit: Time::ZERO,
            processors: 3,
            requested: Span::from_secs(60),
            labels: Labels { user: 12, ..Labels::UNKNOWN },
            origin: SiteId(1),
            payload: 0,
        };
        let (run_time, requested) = (Duration::from_millis(1500), Duration::from_secs(60));
        let command: Vec<String> = command.iter().map(|word| word.to_string()).collect();
        Known { job: &job, run_time, requested, site: "west" }.words(&command)
    }

    #[test]
    fn braces_stand_for_what_is_known_and_a_word_stays_one_word() {
        let filled = words(&[
            "run",
            "{job}-{processors}",
            "{run_time}",
            "{requested}",
            "--user={user} {site}",
            "{{x}}",
            "",
        ]);
        assert_eq!(filled.unwrap(), ["run", "7-3", "1.5", "60", "--user=12 west", "{x}", ""]);
    }

    #[test]
    fn a_word_that_means_nothing_is_named() {
        for (word, expected) in
            [("{runtime}", "{runtime} in"), ("{job", "not closed"), ("job}", "not closed"), ("a\0", "code 0")]
        {
            let error = words(&["run", word]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(check(&[word.to_string()]).is_err());
        }
        assert!(words(&["{x}"]).unwrap_err().to_string().contains("{run_time}, {requested}"));
    }
}
