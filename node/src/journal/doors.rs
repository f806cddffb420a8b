//! What a start reads of a journal, without a file.

use protocol::Fact;
use scheduler::TimedJob;

use super::changes::{Changes, Rows, apply};
use super::row::{Key, Single};
use super::store::Store;
use super::{About, Journal, JournalError, Saved};

/// The changes that a journal about a site writes for these facts and jobs to come.
pub fn changes(about: &About, facts: &[Fact], to_come: &[TimedJob]) -> Vec<u8> {
    let mut first = Changes::default();
    first.put(Key::single(Single::About), about);
    let store = Store::in_memory(Rows::new()).expect("memory can be had");
    let mut journal = Journal::on(store, &Saved::nothing(about.clone()));
    facts.iter().for_each(|fact| journal.write(fact, |_| None));
    journal.handed_over(to_come);
    [first.bytes(), journal.changes.bytes()].concat()
}

/// What a journal with these changes says.
///
/// # Errors
/// If it is damaged.
pub fn saved(changes: &[u8]) -> Result<Saved, JournalError> {
    let mut rows = Rows::new();
    let applied = apply(changes, &mut rows);
    let store = Store::in_memory(rows)?;
    applied.map_err(|what| store.damaged(what))?;
    Saved::read(&store)
}
