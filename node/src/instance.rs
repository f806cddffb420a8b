//! Which journal of its site a node goes by: a number that no other journal has, in which the upper bits say how many the
//! site had lost before. Others refuse a site that comes back with another journal than they know, unless it says that it
//! has lost that one.

use std::hash::{BuildHasher as _, RandomState};

const DRAWN_BITS: u32 = 48;

/// For a journal before which so many were lost, at most 65,535. The standard library seeds its hashers from the system's
/// randomness.
pub(crate) fn draw(lost: u32) -> u64 {
    let drawn = RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()));
    drawn & ((1 << DRAWN_BITS) - 1) | u64::from(lost) << DRAWN_BITS
}

/// How many journals the site had lost before this one.
pub(crate) fn lost_before(instance: u64) -> u64 {
    instance >> DRAWN_BITS
}

/// Whether a site that was known with one journal may come with another.
pub(crate) fn may_follow(known: u64, other: u64) -> bool {
    other == known || lost_before(other) > lost_before(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_says_that_a_journal_was_lost_may_come_with_another() {
        let [first, other, second] = [draw(0), draw(0), draw(1)];
        assert!(may_follow(first, first) && may_follow(first, second) && may_follow(second, draw(15)));
        assert!(!may_follow(first, other) && !may_follow(second, draw(1)));
        assert!(!may_follow(second, first), "what was lost is not believed when it is put back");
    }
}
