//! What a node refuses to others, and how often: names for metrics and logs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a connection was closed, or not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedConnection {
    /// It broke before both ends had proved who they are: another grid key, none, or no node at all.
    Handshake,
    /// Its identity is not on the grid's list.
    Identity,
    /// It is of another run, or believes in another grid, or claims a site that is not its own.
    Introduction,
    /// It did not introduce itself in time.
    Silent,
    /// There are too many.
    Limit,
    /// Its node is banned.
    Banned,
}

impl RefusedConnection {
    /// Every reason, in the order of the enum.
    pub const ALL: [RefusedConnection; 6] = [
        RefusedConnection::Handshake,
        RefusedConnection::Identity,
        RefusedConnection::Introduction,
        RefusedConnection::Silent,
        RefusedConnection::Limit,
        RefusedConnection::Banned,
    ];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            RefusedConnection::Handshake => "handshake",
            RefusedConnection::Identity => "identity",
            RefusedConnection::Introduction => "introduction",
            RefusedConnection::Silent => "silent",
            RefusedConnection::Limit => "limit",
            RefusedConnection::Banned => "banned",
        }
    }
}

/// What a node of the grid did that it should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offence {
    /// A frame or message that does not decode.
    Garbage,
    /// A frame with other ends than its connection, or with run times of jobs that it does not carry.
    Ends,
    /// A stream that broke the rules of frames: too long a frame, an unknown record, an answer to nothing.
    Stream,
    /// More frames or requests a second than allowed.
    Rate,
}

impl Offence {
    /// Every kind, in the order of the enum.
    pub const ALL: [Offence; 4] = [Offence::Garbage, Offence::Ends, Offence::Stream, Offence::Rate];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Offence::Garbage => "garbage",
            Offence::Ends => "ends",
            Offence::Stream => "stream",
            Offence::Rate => "rate",
        }
    }
}

/// How often each happened.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    connections: [AtomicU64; RefusedConnection::ALL.len()],
    offences: [AtomicU64; Offence::ALL.len()],
    bans: AtomicU64,
    oversize: AtomicU64,
    streams: AtomicU64,
    silences: AtomicU64,
}

impl Counts {
    pub(super) fn refuse(&self, reason: RefusedConnection) {
        self.connections[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn offend(&self, offence: Offence) {
        self.offences[offence as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ban(&self) {
        self.bans.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn oversize(&self) {
        self.oversize.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn too_many_streams(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn silence(&self) {
        self.silences.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that were refused for this reason.
    pub(crate) fn refused(&self, reason: RefusedConnection) -> u64 {
        self.connections[reason as usize].load(Ordering::Relaxed)
    }

    /// Offences of this kind.
    pub(crate) fn offences(&self, offence: Offence) -> u64 {
        self.offences[offence as usize].load(Ordering::Relaxed)
    }

    /// How often a node was banned.
    pub(crate) fn bans(&self) -> u64 {
        self.bans.load(Ordering::Relaxed)
    }

    /// Frames that were longer than allowed.
    pub(crate) fn oversized(&self) -> u64 {
        self.oversize.load(Ordering::Relaxed)
    }

    /// Connections that were closed because of too many streams.
    pub(crate) fn crowded(&self) -> u64 {
        self.streams.load(Ordering::Relaxed)
    }

    /// Connections that were closed because the other end was not heard, or took nothing.
    pub(crate) fn silences(&self) -> u64 {
        self.silences.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_and_kind_has_a_count_of_its_own() {
        let counts = Counts::default();
        for (times, reason) in RefusedConnection::ALL.into_iter().enumerate() {
            (0..times).for_each(|_| counts.refuse(reason));
        }
        for (times, offence) in Offence::ALL.into_iter().enumerate() {
            (0..times).for_each(|_| counts.offend(offence));
        }
        let refused: Vec<u64> =
            RefusedConnection::ALL.into_iter().map(|reason| counts.refused(reason)).collect();
        assert_eq!(refused, [0, 1, 2, 3, 4, 5]);
        let offences: Vec<u64> = Offence::ALL.into_iter().map(|offence| counts.offences(offence)).collect();
        assert_eq!(offences, [0, 1, 2, 3]);
    }
}
