//! What a start reads of a journal, without a file.

use protocol::Fact;
use scheduler::TimedJob;

use super::changes::{Changes, Rows};
use super::row::{Key, Single};
use super::store::Store;
use super::{About, Journal, JournalError, Saved};

/// The changes that a journal about a site writes for these facts and jobs to come.
pub fn changes(about: &About, facts: &[Fact], to_come: &[TimedJob]) -> Vec<u8> {
    let mut first = Changes::default();
    first.put(Key::single(Single::About), about);
    let store = Store::in_memory(Rows::default()).expect("memory can be had");
    let mut journal = Journal::on(store, &Saved::nothing(about.clone()));
    facts.iter().for_each(|fact| journal.write(fact, None));
    if !to_come.is_empty() {
        journal.handed_over(0, to_come.to_vec());
    }
    [first.pending(), journal.changes.pending()].concat()
}

/// What a journal with these changes says.
///
/// # Errors
/// If it is damaged.
pub fn saved(bytes: &[u8]) -> Result<Saved, JournalError> {
    let mut changes = Changes::default();
    let read = changes.read(bytes);
    let store = Store::in_memory(changes.take())?;
    read.map_err(|what| store.damaged(what))?;
    Saved::read(&store)
}
