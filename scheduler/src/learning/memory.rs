//! What a dispatcher must not forget if it is to decide after a crash as it would have without.
//!
//! A rule says what it knows of a [`Subject`] as [`Words`], and takes them back. Whoever stores them need not know what they
//! mean. Only what changed is told, so that what is written for an event does not grow with what was learned.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::job::{JobId, JobSpec};
use crate::time::Time;

/// What is known of one subject. LinUCB's model of a site needs all twelve.
pub type Words = [u64; 12];

/// What something is known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// Nothing in particular.
    Rule,
    /// How far random numbers are.
    Chance,
    /// The site at a place.
    Site(u32),
    /// A job that has not ended.
    Job(JobId),
    /// A user.
    User(i32),
    /// A user, as to the site at a place.
    UserAt(i32, u32),
}

/// A job that has not ended and was at a site once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Which one.
    pub job: JobSpec,
    /// When it was given to a site for the first time.
    pub first: Time,
    /// Where it is; none if it waits for a site again.
    pub at: Option<PlacedAt>,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedAt {
    /// The place of the site.
    pub site: u32,
    /// When it was given to it.
    pub since: Time,
    /// When it entered the queue there, if that is known.
    pub queued: Option<Time>,
    /// When it started, if that is known.
    pub started: Option<Time>,
    /// Whether it was called back, and has not come.
    pub is_called: bool,
}

/// What changed in what must not be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// What is known of a subject; none if nothing is any more.
    Known(Subject, Option<Words>),
    /// Where a job is.
    Placed(Placed),
    /// A job need not be known of any more.
    Gone(JobId),
}

/// Words of which the first are these.
pub(super) fn words<const N: usize>(first: [u64; N]) -> Words {
    let mut words = Words::default();
    words[..N].copy_from_slice(&first);
    words
}

/// Two words of a sum.
pub(super) fn halves(sum: i128) -> [u64; 2] {
    let bits = sum.cast_unsigned();
    [(bits >> 64) as u64, (bits & u128::from(u64::MAX)) as u64]
}

/// The sum of two words.
pub(super) fn whole(high: u64, low: u64) -> i128 {
    ((u128::from(high) << 64) | u128::from(low)).cast_signed()
}

/// A number that can have been computed.
pub(super) fn number(word: u64) -> Option<f64> {
    Some(f64::from_bits(word)).filter(|number| number.is_finite())
}

/// A truth.
pub(super) fn truth(word: u64) -> Option<bool> {
    match word {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// A sum of times that can have been summed: jobs are fewer than 2^62, and each takes less than 2^63.
pub(super) fn sum(high: u64, low: u64) -> Option<i128> {
    Some(whole(high, low)).filter(|sum| (0..1 << 125).contains(sum))
}

/// What was told so far, and what may have changed since.
#[derive(Clone, Debug, Default)]
pub(super) struct Diary {
    /// What a rule knows that was told nothing.
    pub(super) at_first: BTreeMap<Subject, Words>,
    pub(super) known: BTreeMap<Subject, Words>,
    pub(super) placed: BTreeMap<JobId, Placed>,
    /// Jobs that something happened to, with their users.
    pub(super) jobs: BTreeSet<(JobId, i32)>,
    /// Whether the rule was asked.
    pub(super) was_asked: bool,
}
