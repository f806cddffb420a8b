//! A command as users write it: words, of which quotes may hold spaces. No shell reads it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Interpreters that run the file of their first argument, and their options of one letter that take no value.
const INTERPRETERS: [(&str, &str); 8] = [
    ("python", "bBdEiIOqsSuvx"),
    ("pypy", "bBdEiIOqsSuvx"),
    ("sh", "aefhnuvx"),
    ("bash", "aefhnuvx"),
    ("dash", "aefhnuvx"),
    ("perl", "wWTt"),
    ("ruby", "wv"),
    ("node", ""),
];

/// Words of a command; at least one, or nothing is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Command {
    words: Vec<String>,
}

/// Why a command cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There are no words.
    #[error("a command is missing, as in exec=python3 mine.py")]
    Empty,
    /// A quotation mark without its partner.
    #[error("the command {0:?} has a quotation mark that is not closed")]
    Quote(String),
    /// There is no such program.
    #[error("there is no program {0:?}: write its path, or have it in PATH")]
    Missing(String),
    /// There is no such script.
    #[error("there is no file {1:?} for {0} to run: write its path, from the folder that you are in")]
    NoScript(String, String),
}

impl CommandError {
    /// Whether a file is not there, which may be well in another folder or on another machine.
    pub fn is_about_a_file(&self) -> bool {
        matches!(self, CommandError::Missing(_) | CommandError::NoScript(..))
    }
}

impl Command {
    /// A command that is none.
    pub(crate) fn nothing() -> Command {
        Command { words: Vec::new() }
    }

    /// Splits at spaces that are in no quotes, `'` or `"`. Nothing is expanded.
    ///
    /// # Errors
    /// If there are no words, or a quotation mark is not closed.
    pub fn parse(text: &str) -> Result<Command, CommandError> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for character in text.chars() {
            match quote {
                Some(mark) if character == mark => quote = None,
                None if character == '\'' || character == '"' => {
                    quote = Some(character);
                    word.get_or_insert_default();
                }
                None if character.is_whitespace() => words.extend(word.take()),
                _ => word.get_or_insert_default().push(character),
            }
        }
        words.extend(word);
        match (quote, words.is_empty()) {
            (Some(_), _) => Err(CommandError::Quote(text.to_string())),
            (None, true) => Err(CommandError::Empty),
            (None, false) => Ok(Command { words }),
        }
    }

    /// The program and its arguments; none if there is no word.
    pub(crate) fn split(&self) -> Option<(&str, &[String])> {
        let (program, arguments) = self.words.split_first()?;
        Some((program, arguments))
    }

    /// Whether its program is there, by its path or in one of these folders; and what a known interpreter is to run, which else
    /// would fail at the first decision.
    ///
    /// # Errors
    /// If one is not.
    pub fn check(&self, folders: &[PathBuf]) -> Result<(), CommandError> {
        let Some((program, _)) = self.split() else { return Err(CommandError::Empty) };
        let is_there = match program.contains('/') {
            true => Path::new(program).is_file(),
            false => folders.iter().any(|folder| folder.join(program).is_file()),
        };
        if !is_there {
            return Err(CommandError::Missing(program.to_string()));
        }
        match self.script() {
            Some(script) if !Path::new(script).is_file() => {
                Err(CommandError::NoScript(program.to_string(), script.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// The file that an interpreter is to run, if it is known to be one and its arguments are plain: options in short, and
    /// then the file.
    fn script(&self) -> Option<&str> {
        let (program, arguments) = self.split()?;
        let name = program.rsplit('/').next()?.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let plain = INTERPRETERS.iter().find(|(known, _)| *known == name).map(|(_, plain)| plain)?;
        let is_plain = |option: &str| {
            option
                .strip_prefix('-')
                .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|letter| plain.contains(letter)))
        };
        let first = arguments.iter().find(|argument| !is_plain(argument))?;
        (!first.starts_with('-')).then_some(first)
    }
}

impl fmt::Display for Command {
    /// As it could be written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, word) in self.words.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            let is_plain = !word.is_empty() && !word.contains([' ', '\t', '\n', '\'', '"']);
            match (is_plain, word.contains('"')) {
                (true, _) => write!(f, "{space}{word}")?,
                (false, false) => write!(f, "{space}\"{word}\"")?,
                (false, true) => write!(f, "{space}'{word}'")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_spaces_and_nothing_is_expanded() {
        for (text, words) in [
            ("python3 mine.py", vec!["python3", "mine.py"]),
            ("  awk -v  'x=1 2' \"$HOME\"", vec!["awk", "-v", "x=1 2", "$HOME"]),
            ("a b='c d'e ''", vec!["a", "b=c de", ""]),
        ] {
            let command = Command::parse(text).unwrap();
            assert_eq!(command.words, words);
            assert_eq!(Command::parse(&command.to_string()).unwrap(), command, "{command}");
        }
        assert_eq!(Command::parse("  "), Err(CommandError::Empty));
        assert!(matches!(Command::parse("a 'b"), Err(CommandError::Quote(_))));
    }

    #[test]
    fn what_an_interpreter_is_to_run_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str| folder.path().join(name).display().to_string();
        for name in ["python3.11", "sh", "awk", "mine.py"] {
            std::fs::write(program(name), "").unwrap();
        }
        let check = |text: &str| {
            let text = text.replace("IN", &folder.path().display().to_string());
            Command::parse(&text).unwrap().check(&[])
        };
        for text in [
            "IN/python3.11 IN/mine.py x",
            "IN/python3.11 -u -B IN/mine.py",
            "IN/python3.11 -m mine",
            "IN/python3.11 -c 'x = 1'",
            "IN/python3.11 -W ignore no.py",
            "IN/sh -c 'read x'",
            "IN/sh",
            "IN/awk no.py",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for text in ["IN/python3.11 no.py", "IN/python3.11 -uB no.py", "IN/sh -eu no.py x"] {
            let error = check(text).unwrap_err();
            assert!(error.is_about_a_file() && error.to_string().contains("\"no.py\""), "{text}: {error}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_path_buf()];
        let command = Command::parse("mine --fast").unwrap();
        assert_eq!(command.check(&folders), Err(CommandError::Missing("mine".to_string())));
        std::fs::write(folder.path().join("mine"), "").unwrap();
        assert_eq!(command.check(&folders), Ok(()));
    }
}
