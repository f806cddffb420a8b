//! What a user may have meant by a name that is none: the nearest of the names that there are.
//!
//! Every message about an unknown name gets its hint here, so that all of them hint alike. What an unknown name means
//! to a command, and which names there are, is said where the names are.

/// One mistake in so many letters is a slip; more make another word. Arbitrary: with two, `fcfs` would pass for `easy`.
const LETTERS_PER_SLIP: usize = 3;
/// Letters that are shown of a name that means nothing; arbitrary, more than any name has.
const LETTERS_SHOWN: usize = 60;
/// Letters that are shown of a line; arbitrary, more than lists of all keys have.
const LINE_SHOWN: usize = 2_000;
/// How every hint begins.
pub(crate) const DID_YOU_MEAN: &str = "did you mean";

/// The name that was meant, if one is near: letters left out, doubled, swapped or wrong. The first of equally near ones.
pub fn nearest<N: AsRef<str>>(typed: &str, names: impl IntoIterator<Item = N>) -> Option<N> {
    let typed = typed.to_lowercase();
    let count = typed.chars().count();
    let near = |name: N| {
        let of_name = name.as_ref().chars().count();
        let letters = count.max(of_name);
        // Letters left out are slips. Nobody compares a word of millions letter by letter.
        if count.abs_diff(of_name) * LETTERS_PER_SLIP > letters {
            return None;
        }
        let slips = strsim::osa_distance(&typed, &name.as_ref().to_lowercase());
        (slips * LETTERS_PER_SLIP <= letters).then_some((slips, name))
    };
    names.into_iter().filter_map(near).min_by_key(|(slips, _)| *slips).map(|(_, name)| name)
}

/// ` (did you mean easy?)`, to stand behind a name that is unknown; nothing if no name is near.
pub fn hint<N: AsRef<str>>(typed: &str, names: impl IntoIterator<Item = N>) -> String {
    nearest(typed, names).map_or(String::new(), |name| format!(" ({DID_YOU_MEAN} {}?)", name.as_ref()))
}

/// The hint where a name may belong to another option: there are names of that, too, and this is how it is given.
pub fn hint_or_of<N: AsRef<str>>(
    typed: &str,
    names: impl IntoIterator<Item = N>,
    others: impl IntoIterator<Item = N>,
    option: &str,
) -> String {
    let own = hint(typed, names);
    if !own.is_empty() {
        return own;
    }
    nearest(typed, others)
        .map_or(String::new(), |name| format!(" ({DID_YOU_MEAN} {option} {}?)", name.as_ref()))
}

/// The hint where names stand in a sentence: `one, half or fit`. What has a capital letter, as in `factor:F`, stands for
/// something else and is none of them.
pub fn hint_among(typed: &str, names: &str) -> String {
    hint(typed, names.split([',', ' ']).filter(|name| !name.contains(char::is_uppercase)))
}

/// Why a name is none of those in a sentence.
pub fn unknown(what: &str, typed: &str, names: &str) -> String {
    format!("unknown {what} {typed:?}{}; use {names}", hint_among(typed, names))
}

/// What a reader of files says of one, in words of users: a key that is none gets its hint, and types of numbers are
/// described. Lines that it does not know stay as they are.
pub fn of_file(said: &str) -> String {
    let mut lines: Vec<String> =
        said.lines().map(|line| unknown_key(line).unwrap_or_else(|| kinds(&cut(line)))).collect();
    if said.ends_with('\n') {
        lines.push(String::new());
    }
    lines.join("\n")
}

/// The beginning of a line that nobody would read to its end.
fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_string(),
    }
}

/// ``unknown field `dely`, expected one of `delay`, `jitter` `` in words of users.
fn unknown_key(line: &str) -> Option<String> {
    let rest = line.strip_prefix("unknown field `")?;
    let (typed, names) = rest.split_once('`')?;
    let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
    let shown: String = typed.chars().take(LETTERS_SHOWN).collect();
    let shown = if shown.len() < typed.len() { shown + "…" } else { shown };
    Some(format!("unknown key {shown}{}; there are {}", hint(typed, &names), names.join(", ")))
}

/// Names of types as they stand behind "expected", and what users call them.
const KINDS: [(&[&str], &str); 7] = [
    (&["u8", "u16", "u32", "u64", "usize"], "a whole number from 0 on"),
    (&["i8", "i16", "i32", "i64", "isize"], "a whole number"),
    (&["f32", "f64"], "a number"),
    (&["a boolean"], "true or false"),
    (&["a sequence"], "a list"),
    (&["a map"], "a table"),
    (&["path string"], "a path in quotes"),
];

fn kinds(line: &str) -> String {
    let Some((wrong, expected)) = line.rsplit_once(", expected ") else { return line.to_string() };
    let number = ["integer", "floating point"]
        .iter()
        .find_map(|kind| wrong.strip_prefix(&format!("invalid type: {kind} `"))?.strip_suffix('`'));
    if let (Some(number), "a string") = (number, expected) {
        // What is text and looks like a number is a time nearly always.
        return format!("{wrong}, expected text in quotes; a time has its unit, as in \"{number}s\"");
    }
    let kind = KINDS.iter().find(|(types, _)| types.contains(&expected));
    kind.map_or(line.to_string(), |(_, words)| format!("{wrong}, expected {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_word() {
        let names = ["fcfs", "easy", "easy-best-fit", "conservative"];
        for (typed, expected) in [
            ("esay", Some("easy")),
            ("EASY", Some("easy")),
            ("easy-bestfit", Some("easy-best-fit")),
            ("conservativ", Some("conservative")),
            ("list", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, names), expected, "{typed}");
        }
        assert_eq!(hint("esay", names), " (did you mean easy?)");
        assert_eq!(hint("backfill", names), "");
    }

    /// The distance takes time and memory that grow with the product of both lengths.
    #[test]
    fn a_name_of_millions_of_letters_is_near_to_none_and_shown_in_part() {
        let long = "x".repeat(50_000_000);
        assert_eq!(nearest(&long, ["delay", "jitter"]), None);
        let said = of_file(&format!("unknown field `{long}`, expected one of `delay`, `jitter`"));
        assert!(said.len() < 200 && said.ends_with("x…; there are delay, jitter"), "{}", said.len());
    }

    #[test]
    fn what_a_file_has_wrong_is_said_without_types_of_the_program() {
        let said = "TOML parse error at line 1, column 1\n  |\n1 | dely = 1\n  | ^^^^\nunknown field `dely`, expected \
                    one of `delay`, `jitter`\n";
        let expected = "TOML parse error at line 1, column 1\n  |\n1 | dely = 1\n  | ^^^^\nunknown key dely (did you \
                        mean delay?); there are delay, jitter\n";
        assert_eq!(of_file(said), expected);
        assert_eq!(
            of_file("invalid type: string \"x\", expected u32"),
            "invalid type: string \"x\", expected a whole number from 0 on"
        );
        assert_eq!(of_file("missing field `name`"), "missing field `name`");
        assert_eq!(
            of_file("invalid type: integer `5`, expected a string"),
            "invalid type: integer `5`, expected text in quotes; a time has its unit, as in \"5s\""
        );
    }
}
