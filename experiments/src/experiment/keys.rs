//! Keys of experiment files that were typed as flags and are none, with what `configs/default.toml` says of them.

const DEFAULTS: &str = include_str!("../../../configs/default.toml");

/// What to write in place of a flag that is none, if a key of an experiment has its name: where it stands, what it means with
/// its range, and its default. Reads after "error: ".
pub fn of_flag(flag: &str) -> Option<String> {
    let name = flag.strip_prefix("--")?.split('=').next()?.replace('-', "_");
    let beginning = format!("{name} = ");
    let mut section = "";
    let mut meaning: Vec<&str> = Vec::new();
    for line in DEFAULTS.lines() {
        // A key without a default stands in a comment.
        let (words, is_comment) = match line.strip_prefix('#') {
            Some(words) => (words.trim(), true),
            None => (line, false),
        };
        if words.starts_with(&beginning) {
            let place =
                if section.is_empty() { "at the top".to_string() } else { format!("under {section}") };
            let meaning: Vec<String> = meaning.iter().map(|line| format!("\n  # {line}")).collect();
            return Some(format!(
                "{flag} is no flag. {name} is a key of experiment files; write it there {place}:{}\n  {words}",
                meaning.concat()
            ));
        }
        if is_comment {
            meaning.push(words);
        } else {
            if words.is_empty() || words.starts_with('[') {
                meaning.clear();
            }
            if words.starts_with('[') && words.ends_with(']') {
                section = words;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_is_a_key_is_told_with_its_range() {
        let said = of_flag("--loss").unwrap();
        let expected = "--loss is no flag. loss is a key of experiment files; write it there under [network]:\n  # Probability, \
                        from 0 to below 1, that a message is lost.\n  loss = 0.0";
        assert_eq!(said, expected);
        assert!(of_flag("--load-factor=2").unwrap().contains("under [workload]:"));
        assert!(of_flag("--weeks").unwrap().contains("\n  weeks = "), "a key without a default");
        assert_eq!([of_flag("--los"), of_flag("-l"), of_flag("--")], [None, None, None]);
    }
}
