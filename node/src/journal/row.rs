//! Rows: what a key means, how a value becomes bytes, and the checksum that tells a damaged one.

use bincode::{DefaultOptions, Options as _};
use scheduler::learning::Subject;
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
    Tomb = 5,
    /// A transfer that brings a job home, by receiver and number.
    Route = 6,
    /// Jobs that were handed over together, in the order in which they are to come, by the number of the portion.
    Portion = 8,
    /// The journal that another site had when it was last heard of, by site.
    Other = 9,
    /// A job that the site is responsible for and gave away, by its id.
    Ward = 10,
    /// What another site must learn of its job, by the id of the job.
    Report = 11,
    /// The newest epoch of a job that was taken over, by its id.
    Void = 12,
    /// What the site took over, by order.
    TakenOver = 13,
    /// Since when an owned job executes, by its id and the life in which it began.
    Begun = 14,
    /// How many of the first jobs of a portion have come, by the number of the portion.
    Come = 15,
    /// What a broker has learned of a site, by site.
    Learned = 16,
    /// How often a broker called a job back, by its id.
    RecalledJob = 17,
    /// How often a broker called jobs back from a site, by site.
    RecalledFrom = 18,
    /// What the rule of a broker knows, by what it is of.
    Known = 19,
    /// A job that a broker gave to a site and that has not ended, by its id.
    Placed = 20,
}

impl Kind {
    pub(super) const ALL: [Kind; 20] = [
        Kind::Single,
        Kind::Job,
        Kind::Out,
        Kind::Next,
        Kind::Numbers,
        Kind::Tomb,
        Kind::Route,
        Kind::Portion,
        Kind::Other,
        Kind::Ward,
        Kind::Report,
        Kind::Void,
        Kind::TakenOver,
        Kind::Begun,
        Kind::Come,
        Kind::Learned,
        Kind::RecalledJob,
        Kind::RecalledFrom,
        Kind::Known,
        Kind::Placed,
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
            Kind::Tomb => "answers given",
            Kind::Route => "routes home",
            Kind::Portion => "portions handed over",
            Kind::Other => "other sites",
            Kind::Ward => "jobs given away",
            Kind::Report => "reports to others",
            Kind::Void => "epochs of take-overs",
            Kind::TakenOver => "jobs taken over",
            Kind::Begun => "jobs that execute",
            Kind::Come => "portions of which jobs have come",
            Kind::Learned => "sites learned of",
            Kind::RecalledJob => "jobs called back",
            Kind::RecalledFrom => "sites from which jobs were called back",
            Kind::Known => "things that a rule knows",
            Kind::Placed => "jobs given to sites",
        }
    }
}

/// Which single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Single {
    /// Whose journal it is.
    About = 0,
    /// The life of the site.
    Life = 1,
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
    /// Whether the rule of a broker is in its main phase.
    MainPhase = 7,
    /// Whether the rule of a broker need not be asked.
    Rests = 8,
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

    /// Of what a rule knows of a subject.
    pub(super) fn known(of: Subject) -> Key {
        let (a, b) = match of {
            Subject::Rule => (0, 0),
            Subject::Chance => (1, 0),
            Subject::Site(site) => (2, site.into()),
            Subject::Job(job) => (3, job.0),
            Subject::User(user) => (4, user.cast_unsigned().into()),
            Subject::UserAt(user, site) => (5, (u64::from(user.cast_unsigned()) << 32) | u64::from(site)),
        };
        Key::new(Kind::Known, a, b)
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
