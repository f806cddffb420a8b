//! Rows: what a key means, how a value becomes bytes, and the checksum that tells a damaged one.

use bincode::{DefaultOptions, Options as _};
use protocol::journal::Topic;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a row is about. The numbers are on disk: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(super) enum Kind {
    /// Single values; see [`Single`].
    Single = 0,
    /// A job that the site owns, by its id.
    Job = 1,
    /// A transfer that is not answered, by receiver and number.
    Out = 2,
    /// The number of the next transfer, by receiver.
    Next = 3,
    /// Floor and highest number seen, by sender.
    Numbers = 4,
    /// An answer, by sender and number.
    Tombstone = 5,
    /// A transfer that brings a job home, by receiver and number.
    Route = 6,
    /// Jobs that were handed over together, in the order in which they are to come, by the number of the portion.
    Portion = 8,
    /// The journal that another site had when it was last heard of, by site.
    Other = 9,
    /// A job that the site is responsible for and gave away, by its id.
    Guarded = 10,
    /// What another site must learn of its job, by the id of the job.
    Report = 11,
    /// The newest epoch of a job that was taken over, by its id.
    Void = 12,
    /// What the site took over, by order.
    TakenOver = 13,
    /// Since when an owned job executes, by its id and the incarnation in which it began.
    Begun = 14,
    /// How many of the first jobs of a portion have come, by the number of the portion.
    Come = 15,
    /// What the family of the site remembers, by table and row of it.
    Memory = 21,
}

impl Kind {
    pub(super) const ALL: [Kind; 16] = [
        Kind::Single,
        Kind::Job,
        Kind::Out,
        Kind::Next,
        Kind::Numbers,
        Kind::Tombstone,
        Kind::Route,
        Kind::Portion,
        Kind::Other,
        Kind::Guarded,
        Kind::Report,
        Kind::Void,
        Kind::TakenOver,
        Kind::Begun,
        Kind::Come,
        Kind::Memory,
    ];

    pub(super) fn of(number: i64) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| i64::from(*kind as u8) == number)
    }

    /// What rows of this kind are, in words for `stealgrid journal`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Single => "settings",
            Kind::Job => "jobs owned",
            Kind::Out => "transfers out",
            Kind::Next => "transfer counters",
            Kind::Numbers => "numbers of senders",
            Kind::Tombstone => "answers given",
            Kind::Route => "routes home",
            Kind::Portion => "portions handed over",
            Kind::Other => "other sites",
            Kind::Guarded => "jobs given away",
            Kind::Report => "reports to others",
            Kind::Void => "epochs of take-overs",
            Kind::TakenOver => "jobs taken over",
            Kind::Begun => "jobs that execute",
            Kind::Come => "portions of which jobs have come",
            Kind::Memory => "things that the strategy remembers",
        }
    }
}

/// Which single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Single {
    /// Whose journal it is.
    About = 0,
    /// The incarnation of the site.
    Incarnation = 1,
    /// The start of the trace clock.
    Clock = 2,
    /// Addresses the node listened on.
    Listen = 3,
    /// Addresses of other sites.
    Peers = 4,
    /// The number of the last write that the rows have in them.
    Folded = 5,
    /// Metrics as of some number of events.
    Totals = 6,
}

/// The name of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) kind: Kind,
    pub(super) a: u64,
    pub(super) b: u64,
}

impl Key {
    pub(super) fn new(kind: Kind, a: u64, b: u64) -> Key {
        Key { kind, a, b }
    }

    /// Of what a family remembers.
    pub(super) fn memory(Topic { table, a, b }: Topic) -> Key {
        Key::new(Kind::Memory, u64::from(table) << 32 | u64::from(a), b)
    }

    /// What that is of; none if it is of nothing.
    pub(super) fn topic(self) -> Option<Topic> {
        let table = u8::try_from(self.a >> 32).ok()?;
        Some(Topic { table, a: (self.a & u64::from(u32::MAX)) as u32, b: self.b })
    }

    pub(super) fn single(which: Single) -> Key {
        Key::new(Kind::Single, which as u64, 0)
    }
}

/// The bytes of a value. Small numbers take few.
pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(&mut bytes, value);
    bytes
}

/// Adds the bytes of a value.
pub(super) fn encode_into(bytes: &mut Vec<u8>, value: &impl Serialize) {
    DefaultOptions::new().serialize_into(bytes, value).expect("what is kept is plain data of bounded length");
}

/// The value of these bytes, all of them.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    DefaultOptions::new().deserialize(bytes).map_err(|error| format!("unreadable: {error}"))
}

/// The checksum of a row: it covers the key, so that a value in the wrong place is found, too.
pub(super) fn checksum(kind: u8, a: u64, b: u64, value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&a.to_le_bytes());
    hasher.update(&b.to_le_bytes());
    hasher.update(value);
    hasher.finalize()
}
