//! A name with options, as in `last:k=5,by=mean`.

use std::collections::BTreeMap;

/// Options that were not read yet, by name.
pub(super) struct Options<'a> {
    of: &'a str,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Options<'a> {
    /// The name, and its options.
    pub(super) fn of(text: &'a str) -> Result<(&'a str, Options<'a>), String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut values = BTreeMap::new();
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            let (option, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is no name=value"))?;
            if values.insert(option, value).is_some() {
                return Err(format!("{option} is there twice"));
            }
        }
        Ok((name, Options { of: name, values }))
    }

    /// A whole number, at least 1.
    pub(super) fn number(&mut self, option: &str, default: u32) -> Result<u32, String> {
        let Some(text) = self.values.remove(option) else { return Ok(default) };
        let number = text.parse().ok().filter(|&number| number > 0);
        number.ok_or_else(|| format!("{option} is {text:?}; write a whole number, at least 1"))
    }

    pub(super) fn one_of<T: Copy>(
        &mut self,
        option: &str,
        all: &[(&str, T)],
        default: T,
    ) -> Result<T, String> {
        let Some(text) = self.values.remove(option) else { return Ok(default) };
        let found = all.iter().find(|(name, _)| *name == text).map(|&(_, value)| value);
        found.ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|&(name, _)| name).collect();
            format!("{option} is {text:?}; use one of {}", names.join(", "))
        })
    }

    /// Nothing else may be there.
    pub(super) fn end(self) -> Result<(), String> {
        match self.values.first_key_value() {
            Some((option, _)) => Err(format!("{} has no {option}", self.of)),
            None => Ok(()),
        }
    }
}
