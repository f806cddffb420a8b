//! Figures in the text of a template: there are none but those that were allowed.
//!
//! What is code, a heading or the target of a link is no text. A number that belongs to a word, as in ST50, is a name.
//! Everything else that is a number must come from the data, or from the list of figures that the template allows with
//! words around them.

use super::PageError;

/// Whether a figure in `text` is not one of `source`.
pub(super) fn foreign_figure(text: &str, source: &str) -> Option<String> {
    let known = runs(source);
    runs(text).into_iter().find(|run| !known.contains(run))
}

/// Runs of digits.
fn runs(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_numeric()).filter(|run| !run.is_empty()).map(str::to_string).collect()
}

/// Looks for figures; `before` lines stand before the text.
///
/// # Errors
/// With the line of the first figure, or with what is allowed and not there.
pub(super) fn check(text: &str, before: usize, allow: &[String]) -> Result<(), PageError> {
    let mut letters = masked(text);
    for phrase in allow {
        if !cover(&mut letters, phrase) {
            let reason = format!("allow: {phrase:?} is nowhere in the text; take it off the list");
            return Err(PageError::new(1, &reason));
        }
    }
    let Some(place) = figure(&letters) else { return Ok(()) };
    let line = before + 1 + letters[..place].iter().filter(|&&c| c == '\n').count();
    let end = letters[place..].iter().position(|&c| !(c.is_alphanumeric() || matches!(c, '.' | ',' | '%')));
    let found: String = letters[place..place + end.unwrap_or(letters.len() - place)].iter().collect();
    let around: String = letters[place.saturating_sub(20)..]
        .iter()
        .take(45)
        .map(|&c| if c == '\n' { ' ' } else { c })
        .collect();
    let reason = format!(
        "the figure {:?} in \u{201c}{}\u{201d} is written by hand; take it from the data with an expression, or write it \
         with the words around it into the list allow of the head",
        found.trim_end_matches(['.', ',']),
        around.trim()
    );
    Err(PageError::new(line, &reason))
}

/// The place of the first number that is no part of a word.
fn figure(letters: &[char]) -> Option<usize> {
    let mut place = 0;
    while place < letters.len() {
        let letter = letters[place];
        if letter.is_numeric() {
            return Some(place);
        }
        let is_entity = letter == '&';
        if letter.is_alphabetic() || letter == '_' || is_entity {
            let begin = place;
            place += 1;
            while place < letters.len() && (letters[place].is_alphanumeric() || letters[place] == '_') {
                place += 1;
            }
            // &frac12; is a figure, too.
            let inside = &letters[begin..place];
            if is_entity && letters.get(place) == Some(&';') && inside.iter().any(|c| c.is_numeric()) {
                return Some(begin);
            }
        } else {
            place += 1;
        }
    }
    None
}

/// Blanks out a figure that is allowed wherever it stands as whole words; blanks may be line breaks.
fn cover(letters: &mut [char], phrase: &str) -> bool {
    let wanted: Vec<&str> = phrase.split_whitespace().collect();
    let mut found = false;
    for begin in 0..letters.len() {
        let Some(end) = (!wanted.is_empty()).then(|| matches(letters, begin, &wanted)).flatten() else {
            continue;
        };
        let before = begin.checked_sub(1).map(|place| letters[place]);
        let is_number = |c: Option<&char>| c.is_some_and(|c| c.is_numeric());
        let starts_amid = before.is_some_and(|c| {
            c.is_alphanumeric()
                || (letters[begin].is_numeric() && !(c.is_whitespace() || "([\"'*_|>\u{201c}".contains(c)))
        });
        let after = letters.get(end).copied();
        let ends_amid = after.is_some_and(|c| {
            c.is_alphanumeric()
                || (letters[end - 1].is_numeric()
                    && ("%\u{2030}\u{b0}".contains(c)
                        || (".,:/-\u{2013}".contains(c) && is_number(letters.get(end + 1)))
                        || (c == ' ' && letters.get(end + 1) == Some(&'%'))))
        });
        if !starts_amid && !ends_amid {
            found = true;
            letters[begin..end].iter_mut().filter(|c| **c != '\n').for_each(|c| *c = ' ');
        }
    }
    found
}

/// Where these words end if they stand here, with blanks or one line break between them.
fn matches(letters: &[char], begin: usize, words: &[&str]) -> Option<usize> {
    let mut place = begin;
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            let blanks = letters[place..].iter().take_while(|c| c.is_whitespace()).count();
            if blanks == 0 {
                return None;
            }
            place += blanks;
        }
        for letter in word.chars() {
            if letters.get(place) != Some(&letter) {
                return None;
            }
            place += 1;
        }
    }
    Some(place)
}

/// The text with blanks for code, headings and targets of links; line breaks stay.
fn masked(text: &str) -> Vec<char> {
    let mut letters = Vec::with_capacity(text.len());
    let mut fence: Option<String> = None;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start_matches(' ');
        let ticks: String = trimmed.chars().take_while(|&c| c == '`' || c == '~').collect();
        let opens = ticks.len() >= 3 && ticks.chars().all(|c| ticks.starts_with(c));
        let hashes = trimmed.chars().take_while(|&c| c == '#').count();
        let is_code = match &fence {
            Some(open) => {
                if opens && ticks.starts_with(open.as_str()) && trimmed.trim_end() == ticks {
                    fence = None;
                }
                true
            }
            None if opens => {
                fence = Some(ticks);
                true
            }
            None => false,
        };
        let is_heading = (1..=6).contains(&hashes) && trimmed[hashes..].starts_with(' ');
        // Markdown numbers lists by itself, so that an item needs no other number.
        let marker = if trimmed.starts_with("1. ") { line.len() - trimmed.len() + 1 } else { 0 };
        for (place, letter) in line.chars().enumerate() {
            let is_hidden = is_code || is_heading || place < marker;
            letters.push(if is_hidden && letter != '\n' { ' ' } else { letter });
        }
    }
    mask_spans(&mut letters);
    mask_targets(&mut letters);
    letters
}

fn blank(letters: &mut [char]) {
    letters.iter_mut().filter(|c| **c != '\n').for_each(|c| *c = ' ');
}

/// Code between as many backticks, within a paragraph.
fn mask_spans(letters: &mut [char]) {
    let run = |letters: &[char], place: usize| letters[place..].iter().take_while(|&&c| c == '`').count();
    let mut place = 0;
    while place < letters.len() {
        let ticks = run(letters, place);
        if ticks == 0 {
            place += 1;
            continue;
        }
        let begin = place + ticks;
        let mut end = begin;
        let mut closed = None;
        while end < letters.len() && !(letters[end] == '\n' && letters.get(end + 1) == Some(&'\n')) {
            let other = run(letters, end);
            if other == ticks {
                closed = Some(end + other);
                break;
            }
            end += other.max(1);
        }
        if let Some(after) = closed {
            blank(&mut letters[place..after]);
        }
        place = closed.unwrap_or(begin);
    }
}

/// What is between `](` and `)`, in `<https://...>`, and after `[name]: `.
fn mask_targets(letters: &mut [char]) {
    let starts = |letters: &[char], place: usize, text: &str| {
        text.chars().enumerate().all(|(index, c)| letters.get(place + index) == Some(&c))
    };
    let mut line_begins = true;
    let mut place = 0;
    while place < letters.len() {
        let (skip, is_end): (usize, fn(char) -> bool) = if starts(letters, place, "](") {
            (2, |c| c == ')' || c.is_whitespace())
        } else if starts(letters, place, "<http") {
            (1, |c| c == '>' || c.is_whitespace())
        } else if starts(letters, place, "]: ") && line_begins {
            (3, char::is_whitespace)
        } else {
            // A definition begins its line with a bracket.
            line_begins = match letters[place] {
                '\n' => letters.get(place + 1) == Some(&'['),
                _ => line_begins,
            };
            place += 1;
            continue;
        };
        let begin = place + skip;
        let length = letters[begin..].iter().position(|&c| is_end(c)).unwrap_or(letters.len() - begin);
        blank(&mut letters[begin..begin + length]);
        place = begin + length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, allow: &[&str]) -> Result<(), String> {
        let allow: Vec<String> = allow.iter().map(|phrase| phrase.to_string()).collect();
        check(text, 0, &allow).map_err(|error| error.to_string())
    }

    #[test]
    fn mutant_a_figure_written_by_hand_is_refused_with_its_line() {
        let error = found("# Head 7\n\nStealing waits\n17.5 % less.\n", &[]).unwrap_err();
        assert!(error.starts_with("line 4: the figure \"17.5\""), "{error}");
        for text in [
            "it is 5.",
            "a 3-fold gain",
            "1,000 jobs",
            "10x",
            "| a | 4 |",
            "\u{bd} of it",
            "\u{664}",
            "&#52;",
            "&frac12;",
            "from 2. on",
            "2. an item",
            "[3](x)",
            "`code` 4",
            "a `tick 5",
            "> 6",
            "**7**",
            "v 0.1",
            "+8",
            "![9](a.svg)",
            "[x](target \"10 %\")",
            "st:50",
            "<b title=\"11\">",
        ] {
            assert!(found(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn code_headings_targets_and_names_have_numbers() {
        for text in [
            "no figure at all",
            "# 17 %\n## The 2nd",
            "`st:50` and ``a ` 5``",
            "```sh\nstealgrid 7\n```\nafter",
            "~~~\n```\n5\n~~~",
            "[text](page5.md#p6) and <https://a.b/7>",
            "[id]: https://a.b/8\n",
            "ST50, CTC_SP2 and p99 are names",
            "1. an item\n1. another",
        ] {
            assert_eq!(found(text, &[]), Ok(()), "{text}");
        }
        assert!(found("```\n5\n```\n6", &[]).is_err(), "code has an end");
    }

    #[test]
    fn what_is_allowed_is_allowed_as_whole_words_only() {
        assert_eq!(found("the 95 % interval on Grid\n1.", &["95 %", "Grid 1"]), Ok(()));
        for (text, phrase) in [
            ("195 %", "95 %"),
            ("0.95 %", "95 %"),
            ("-95 %", "95 %"),
            ("1,095 %", "95 %"),
            ("Grid 1.5", "Grid 1"),
            ("Grid 17", "Grid 1"),
            ("Grid 1 %", "Grid 1"),
            ("Grid 1%", "Grid 1"),
            ("SubGrid 1", "Grid 1"),
            ("30 weeks", "30"),
        ] {
            if phrase == "30" {
                assert_eq!(found(text, &[phrase]), Ok(()));
            } else {
                let error = found(&format!("{text} and {phrase} alone"), &[phrase]).unwrap_err();
                assert!(error.contains("by hand"), "{text}: {error}");
            }
        }
        assert!(found("none", &["95 %"]).unwrap_err().contains("nowhere in the text"));
    }

    #[test]
    fn names_bring_no_figures_of_their_own() {
        assert_eq!(foreign_figure("ST50, 2 slots", "st:50, window 2"), None);
        assert_eq!(foreign_figure("ST50, 17 % better", "st:50, window 2").as_deref(), Some("17"));
    }
}
