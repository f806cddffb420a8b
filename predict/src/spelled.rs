//! A name with options, as in `last:k=5,by=mean`.

use std::collections::BTreeMap;

use scheduler::spelling;

/// The most run times, predictions or instances that an option asks for. Arbitrary; hardly a user of the known logs has so many that
/// are like the next.
pub(super) const K_MAX: u32 = 1_000;

/// Options that were not read yet, by name.
pub(super) struct Options<'a> {
    of: &'a str,
    values: BTreeMap<&'a str, &'a str>,
    /// Names of all that were asked for.
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    /// The name, and its options.
    pub(super) fn of(text: &'a str) -> Result<(&'a str, Options<'a>), String> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let mut values = BTreeMap::new();
        for part in rest.into_iter().flat_map(|rest| rest.split(',')) {
            if part.is_empty() {
                return Err(format!(
                    "{text:?} has an option without a name; write name=value, or leave it out"
                ));
            }
            let (option, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is no name=value"))?;
            if values.insert(option, value).is_some() {
                return Err(format!("{option} is there twice"));
            }
        }
        Ok((name, Options { of: name, values, known: Vec::new() }))
    }

    /// A whole number from 1 to so many.
    pub(super) fn number(&mut self, option: &'static str, default: u32, most: u32) -> Result<u32, String> {
        self.known.push(option);
        let Some(text) = self.values.remove(option) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| format!("{option} is {text:?}; write a whole number from 1 to {most}"))
    }

    pub(super) fn one_of<T: Copy>(
        &mut self,
        option: &'static str,
        all: &[(&str, T)],
        default: T,
    ) -> Result<T, String> {
        self.known.push(option);
        let Some(text) = self.values.remove(option) else { return Ok(default) };
        let found = all.iter().find(|(name, _)| *name == text).map(|&(_, value)| value);
        found.ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|&(name, _)| name).collect();
            let hint = spelling::hint(text, &names);
            format!("{option} is {text:?}{hint}; use one of {}", names.join(", "))
        })
    }

    /// Nothing else may be there.
    pub(super) fn end(self) -> Result<(), String> {
        let Some((option, _)) = self.values.first_key_value() else { return Ok(()) };
        let has = match &self.known[..] {
            [] => "; it has no options".to_string(),
            known => format!("{}; it has {}", spelling::hint(option, known), known.join(", ")),
        };
        Err(format!("{} has no {option}{has}", self.of))
    }
}
