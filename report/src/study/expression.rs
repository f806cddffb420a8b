//! Expressions of a template: `{{verb word key=value key="a value"}}`.
//!
//! An expression is taken apart by whoever understands it: keys and words are taken out one by one, and what is left
//! over at the end is an error, so that a slip of the pen changes no selection unseen.

/// One expression, with what nobody has asked for yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression {
    /// What it is about.
    pub(super) verb: String,
    words: Vec<String>,
    pairs: Vec<(String, String)>,
}

/// What separates values of a list; names of strategies have commas.
const BETWEEN: char = ';';

impl Expression {
    /// Takes the text between the braces apart.
    ///
    /// # Errors
    /// In words, if it is no expression.
    pub(super) fn parse(text: &str) -> Result<Expression, String> {
        let mut words = Vec::new();
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() || name.contains('"') {
                return Err(format!("{rest:?} is no word or key=value"));
            }
            let Some(value) = after.strip_prefix('=') else {
                words.push(name.to_string());
                rest = after.trim_start();
                continue;
            };
            let (value, after) = match value.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').ok_or("a quoted value has no end")?,
                None => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
            };
            if !(after.is_empty() || after.starts_with(char::is_whitespace)) {
                return Err(format!("a blank is missing before {after:?}"));
            }
            if value.trim().is_empty() {
                return Err(format!("{name} has no value"));
            }
            if pairs.iter().any(|(other, _)| other == name) {
                return Err(format!("{name} is there twice"));
            }
            // Templates are wrapped.
            pairs.push((name.to_string(), value.split_whitespace().collect::<Vec<_>>().join(" ")));
            rest = after.trim_start();
        }
        if words.is_empty() {
            return Err("it does not begin with a verb such as value or table".to_string());
        }
        Ok(Expression { verb: words.remove(0), words, pairs })
    }

    /// The value of a key.
    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        let place = self.pairs.iter().position(|(other, _)| other == key)?;
        Some(self.pairs.remove(place).1)
    }

    /// The value of a key that must be there.
    pub(super) fn need(&mut self, key: &str) -> Result<String, String> {
        self.take(key).ok_or_else(|| format!("it needs {key}="))
    }

    /// The values of a key that may have several, with `;` between them.
    pub(super) fn list(&mut self, key: &str) -> Option<Vec<String>> {
        Some(list(&self.take(key)?))
    }

    /// A number, if the key is there.
    pub(super) fn number<T: std::str::FromStr>(&mut self, key: &str) -> Result<Option<T>, String> {
        let Some(text) = self.take(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("{key}={text} is no number that it can have"))
    }

    /// Whether a word is there.
    pub(super) fn has(&mut self, word: &str) -> bool {
        let place = self.words.iter().position(|other| other == word);
        place.map(|place| self.words.remove(place)).is_some()
    }

    /// Takes the next word if it is this one.
    pub(super) fn begins_with(&mut self, word: &str) -> bool {
        let begins = self.words.first().is_some_and(|first| first == word);
        begins.then(|| self.words.remove(0)).is_some()
    }

    /// The next word.
    pub(super) fn word(&mut self) -> Option<String> {
        (!self.words.is_empty()).then(|| self.words.remove(0))
    }

    /// The keys that are left: parameters of runs. Words that are left mean nothing.
    pub(super) fn rest(&mut self) -> Result<Vec<(String, Vec<String>)>, String> {
        if let Some(word) = self.words.first() {
            return Err(format!("{word:?} means nothing here"));
        }
        Ok(std::mem::take(&mut self.pairs).into_iter().map(|(key, value)| (key, list(&value))).collect())
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(BETWEEN).map(str::trim).filter(|part| !part.is_empty()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keys_and_quoted_values_are_told_apart() {
        let mut found = Expression::parse(
            " table changes metric=wait_mean_s series=\"local,\n list; st:50\" delay=1m interval ",
        )
        .unwrap();

        assert_eq!(found.verb, "table");
        assert_eq!(found.word().as_deref(), Some("changes"));
        assert!(found.has("interval") && !found.has("interval"));
        assert_eq!(found.list("series").unwrap(), ["local, list", "st:50"]);
        assert_eq!(found.take("metric").as_deref(), Some("wait_mean_s"));
        assert_eq!(found.rest().unwrap(), [("delay".to_string(), vec!["1m".to_string()])]);
        assert_eq!(found.rest().unwrap(), []);
    }

    #[test]
    fn slips_are_refused() {
        let error = |text: &str| Expression::parse(text).unwrap_err();
        assert!(error("").contains("does not begin with a verb"));
        assert!(error("metric=a").contains("does not begin with a verb"));
        assert!(error("value metric=\"a").contains("no end"));
        assert!(error("value metric=").contains("no value"));
        assert!(error("value a=1 a=2").contains("twice"));
        assert!(error("value a=\"1\"b").contains("a blank is missing"));
        assert!(error("value =1").contains("no word"));
        let mut left = Expression::parse("value intreval").unwrap();
        assert_eq!(left.rest().unwrap_err(), "\"intreval\" means nothing here");
    }
}
