//! How incarnations, journals, and what a site counts in them are numbered: never the same number twice.

/// How many numbers of each kind a site can use between two restarts.
const NUMBERS_PER_LIFE: u64 = 1 << 40;

/// Numbers of requests, versions, offers, claims and revisions of an incarnation are larger than this.
pub(crate) fn first_number(incarnation: u32) -> u64 {
    u64::from(incarnation & 0x00ff_ffff) * NUMBERS_PER_LIFE
}

/// A site that lost its journal so often minus one does not come back again: numbers and epochs have room for so many.
pub const JOURNALS_MAX: u32 = 16;

/// Lives of one journal. The first with the next journal is numbered from there, so that others see by the number that
/// the site knows nothing of what it was told before.
pub const INCARNATIONS_PER_JOURNAL: u32 = 1 << 16;

/// How many journals the site had lost before this incarnation.
pub fn journal_of(incarnation: u32) -> u32 {
    incarnation / INCARNATIONS_PER_JOURNAL
}

/// How often the site restarted with the journal of this incarnation.
pub fn restarts_of(incarnation: u32) -> u32 {
    incarnation % INCARNATIONS_PER_JOURNAL
}

/// So many transfers from one journal to one journal have numbers.
const TRANSFERS_PER_JOURNALS: u64 = 1 << 52;

/// Numbers of transfers from a site with the second journal to one with the first are larger.
pub(crate) fn first_transfer(receiver: u32, sender: u32) -> u64 {
    let [receiver, sender, journals] = [receiver, sender, JOURNALS_MAX].map(u64::from);
    (receiver.min(journals) * journals + sender.min(journals)) * TRANSFERS_PER_JOURNALS
}

/// For which journal of its receiver a transfer was numbered.
pub(crate) fn receiving_journal(number: u64) -> u32 {
    let journals = number.saturating_sub(1) / TRANSFERS_PER_JOURNALS;
    u32::try_from(journals / u64::from(JOURNALS_MAX)).unwrap_or(u32::MAX)
}
