//! Where in an experiment file a key stands, for errors about its value.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The line, from 1, on which a key such as `network.delay` or `network.links[0].delay` stands in a TOML text; nothing if it
/// does not.
pub fn line_of(text: &str, key: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?.into_inner();
    let mut table = &document;
    let mut steps = key.split('.').peekable();
    loop {
        let step = steps.next()?;
        let (name, index) = match step.strip_suffix(']').and_then(|step| step.split_once('[')) {
            Some((name, index)) => (name, Some(index.parse::<usize>().ok()?)),
            None => (step, None),
        };
        let (place, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
        let mut at = place.span().start;
        let mut value: &Spanned<DeValue<'_>> = value;
        if let (Some(index), DeValue::Array(entries)) = (index, value.get_ref()) {
            value = entries.get(index)?;
            at = value.span().start;
        }
        match (steps.peek(), value.get_ref()) {
            (Some(_), DeValue::Table(inner)) => table = inner,
            (Some(_), _) => return None,
            (None, _) => return Some(text.get(..at)?.matches('\n').count() + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_however_it_is_written() {
        let text = "seed = 1\nrun.clock = \"soon\"\n[network]\njitter = \"1ms\"\ndelay = \"fast\"\n\
            [[network.links]]\ndelay = \"1s\"\n[[network.links]]\nloss = 2\n\
            [workload]\nlogs = [\n{ site = \"a\" },\n{ site = \"b\" }]\n";
        for (key, line) in [
            ("seed", Some(1)),
            ("run.clock", Some(2)),
            ("network", Some(3)),
            ("network.delay", Some(5)),
            ("network.links[0].delay", Some(7)),
            ("network.links[1].loss", Some(9)),
            ("workload.logs[1]", Some(13)),
            ("network.links[2].loss", None),
            ("network.loss", None),
            ("seed.delay", None),
            ("", None),
        ] {
            assert_eq!(line_of(text, key), line, "{key}");
        }
        assert_eq!(line_of("[network", "network"), None);
    }
}
