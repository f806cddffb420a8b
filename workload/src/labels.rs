//! Numbers for what records only tell apart: names, and numbers that their field cannot hold.
//!
//! They are given when the whole log is known, so that none is one that the log itself uses.

use std::collections::{BTreeMap, BTreeSet};

use crate::header::{Header, KEPT_LINE};
use crate::record::Record;

/// Names are numbered from here; above the numbers of the archive's logs, so that a column that mixes both is easy to read.
pub(crate) const FIRST_NAME: i64 = 1_000_001;
/// Bytes of comments that names may take: a quarter of what a log may have, so that what is written can be read again.
pub(crate) const NAMES_MOST: usize = 256 << 10;

/// A field of records that holds a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Job,
    User,
    Group,
    Executable,
    Queue,
    Partition,
    Origin,
    Executed,
}

impl Field {
    fn get(self, record: &Record) -> i64 {
        match self {
            Field::Job => record.job,
            Field::User => record.user.into(),
            Field::Group => record.group.into(),
            Field::Executable => record.executable.into(),
            Field::Queue => record.queue.into(),
            Field::Partition => record.partition.into(),
            Field::Origin => record.origin.into(),
            Field::Executed => record.executed.into(),
        }
    }

    /// Gives a record a number.
    pub(crate) fn set(self, record: &mut Record, number: i64) {
        let short = || i32::try_from(number).expect("a log has fewer than 2^30 labels");
        match self {
            Field::Job => record.job = number,
            Field::User => record.user = short(),
            Field::Group => record.group = short(),
            Field::Executable => record.executable = short(),
            Field::Queue => record.queue = short(),
            Field::Partition => record.partition = short(),
            Field::Origin => record.origin = short(),
            Field::Executed => record.executed = short(),
        }
    }

    /// What comments call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Field::Job => "job",
            Field::User => "user",
            Field::Group => "group",
            Field::Executable => "executable",
            Field::Queue => "queue",
            Field::Partition => "partition",
            Field::Origin | Field::Executed => "site",
        }
    }
}

/// The names of fields that share their numbers.
#[derive(Debug)]
pub(crate) struct Labels {
    fields: &'static [Field],
    from: i64,
    names: BTreeMap<Vec<u8>, usize>,
    /// Places of records, with the field and the name that it has there.
    uses: Vec<(usize, Field, usize)>,
}

impl Labels {
    /// Labels of these fields, numbered from `from` on.
    pub(crate) fn new(fields: &'static [Field], from: i64) -> Labels {
        Labels { fields, from, names: BTreeMap::new(), uses: Vec::new() }
    }

    /// Notes that a record, by its place, has a name in a field, whatever is in that until then. True if the name is new.
    pub(crate) fn add(&mut self, record: usize, field: Field, name: &[u8]) -> bool {
        let next = self.names.len();
        let index = match self.names.get(name) {
            Some(&index) => index,
            None => {
                self.names.insert(name.to_vec(), next);
                next
            }
        };
        self.uses.push((record, field, index));
        index == next
    }

    /// Gives every name a number that no record has in these fields, and says which, in order of appearance.
    pub(crate) fn resolve(self, records: &mut [Record]) -> Vec<(i64, String)> {
        if self.names.is_empty() {
            return Vec::new();
        }
        for &(record, field, _) in &self.uses {
            field.set(&mut records[record], -1);
        }
        let of_record =
            |record: &Record| self.fields.iter().map(|field| field.get(record)).collect::<Vec<_>>();
        let taken: BTreeSet<i64> = records.iter().flat_map(of_record).collect();
        let free = (self.from..).filter(|number| !taken.contains(number));
        let numbers: Vec<i64> = free.take(self.names.len()).collect();
        for (record, field, index) in self.uses {
            field.set(&mut records[record], numbers[index]);
        }
        let mut named: Vec<(i64, String)> = self
            .names
            .into_iter()
            .map(|(name, index)| (numbers[index], String::from_utf8_lossy(&name).into_owned()))
            .collect();
        named.sort_unstable();
        named
    }
}

/// Keeps what numbers stand for as comments, unless there are too many for comments.
pub(crate) fn comment(header: &mut Header, named: &[(Field, Vec<(i64, String)>)]) {
    let notes: Vec<String> = named
        .iter()
        .flat_map(|(field, names)| {
            names.iter().map(|(number, name)| format!("{} {number} is {name}", field.name()))
        })
        .collect();
    if notes.iter().map(|note| note.len() + KEPT_LINE as usize).sum::<usize>() > NAMES_MOST {
        header.push_pair("Note", "names left out, there are too many for comments");
        return;
    }
    for note in notes {
        header.push_pair("Note", &note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_gets_a_number_that_a_record_has() {
        let users = [5, -1, 3, -1, 2, -1];
        let mut records: Vec<Record> =
            users.map(|user| Record { user, ..Record::default() }).into_iter().collect();
        let mut labels = Labels::new(&[Field::User], 2);
        assert!(labels.add(1, Field::User, b"z"));
        assert!(labels.add(3, Field::User, b"a"));
        assert!(!labels.add(5, Field::User, b"z"));

        assert_eq!(labels.resolve(&mut records), [(4, "z".to_string()), (6, "a".to_string())]);
        let found: Vec<i32> = records.iter().map(|record| record.user).collect();
        assert_eq!(found, [5, 4, 3, 6, 2, 4]);
    }

    #[test]
    fn fields_that_share_names_share_numbers() {
        let mut records = vec![Record { executed: 1, ..Record::default() }, Record::default()];
        let mut sites = Labels::new(&[Field::Origin, Field::Executed], 1);
        sites.add(0, Field::Origin, b"delft");
        sites.add(1, Field::Executed, b"delft");

        sites.resolve(&mut records);

        assert_eq!((records[0].origin, records[0].executed, records[1].executed), (2, 1, 2));
    }
}
