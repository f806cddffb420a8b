//! Who misbehaves, how often, and what is done about it: a pause for each offence, and a ban for too many.
//!
//! Only nodes that are on the grid's list get far enough to offend, so there is one record for each site at most.
//! Pure: the caller brings the time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use libp2p::PeerId;
use tokio::time::Instant;

use super::Offence;
use crate::limits::Limits;

/// Offences count for so long.
const MEMORY: Duration = Duration::from_secs(60);
/// Pause after the first offence; after the second twice as long, and so on.
const PAUSE: Duration = Duration::from_millis(100);
/// A node that is too fast offends once in so much time: a burst is no attack.
const RATE_EVERY: Duration = Duration::from_secs(1);
/// A ban lasts twice as long as the one before, so many times at most.
const DOUBLINGS_MAX: u32 = 6;

/// What is to be done with an offender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing; it was punished for the same a moment ago.
    Known,
    /// Read nothing from it for so long.
    Pause(Duration),
    /// Disconnect it, and let it in again after so long.
    Ban(Duration),
}

#[derive(Debug, Default)]
struct Record {
    offences: VecDeque<Instant>,
    last_rate: Option<Instant>,
    bans: u32,
    banned_until: Option<Instant>,
}

/// The records of all nodes.
#[derive(Debug)]
pub(super) struct Guard {
    offences_max: usize,
    ban: Duration,
    records: BTreeMap<PeerId, Record>,
}

impl Guard {
    pub(super) fn new(limits: &Limits) -> Guard {
        Guard {
            offences_max: limits.offences as usize,
            ban: Duration::from_secs(u64::from(limits.ban_secs)),
            records: BTreeMap::new(),
        }
    }

    /// Notes an offence.
    pub(super) fn judge(&mut self, peer: PeerId, offence: Offence, now: Instant) -> Verdict {
        let record = self.records.entry(peer).or_default();
        if record.banned_until.is_some() {
            return Verdict::Known;
        }
        if offence == Offence::Rate {
            if record.last_rate.is_some_and(|last| now.duration_since(last) < RATE_EVERY) {
                return Verdict::Known;
            }
            record.last_rate = Some(now);
        }
        while record.offences.front().is_some_and(|first| now.duration_since(*first) > MEMORY) {
            record.offences.pop_front();
        }
        record.offences.push_back(now);
        let count = record.offences.len();
        if count < self.offences_max {
            return Verdict::Pause(PAUSE * count as u32);
        }
        let length = self.ban * (1 << record.bans.min(DOUBLINGS_MAX));
        record.bans = record.bans.saturating_add(1);
        record.offences.clear();
        record.banned_until = Some(now + length);
        Verdict::Ban(length)
    }

    /// When the next ban ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.records.values().filter_map(|record| record.banned_until).min()
    }

    /// The nodes whose ban has ended.
    pub(super) fn take_ended(&mut self, now: Instant) -> Vec<PeerId> {
        let ended =
            self.records.iter_mut().filter(|(_, record)| record.banned_until.is_some_and(|end| end <= now));
        ended
            .map(|(peer, record)| {
                record.banned_until = None;
                *peer
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use scheduler::SiteId;

    use super::*;
    use crate::network::Identity;

    fn guard() -> Guard {
        Guard::new(&Limits { offences: 3, ban_secs: 60, ..Limits::default() })
    }

    fn peer(site: u32) -> PeerId {
        Identity::derived("guard", 0, SiteId(site)).peer()
    }

    #[test]
    fn pauses_grow_and_a_ban_follows() {
        let (mut guard, now) = (guard(), Instant::now());
        assert_eq!(guard.judge(peer(1), Offence::Garbage, now), Verdict::Pause(PAUSE));
        assert_eq!(guard.judge(peer(2), Offence::Garbage, now), Verdict::Pause(PAUSE), "each on its own");
        assert_eq!(guard.judge(peer(1), Offence::Ends, now), Verdict::Pause(2 * PAUSE));
        assert_eq!(guard.judge(peer(1), Offence::Garbage, now), Verdict::Ban(Duration::from_secs(60)));
        assert_eq!(guard.judge(peer(1), Offence::Garbage, now), Verdict::Known, "what was under way");
    }

    #[test]
    fn bans_end_and_the_next_is_longer() {
        let (mut guard, now) = (guard(), Instant::now());
        let mut three = |now| [(); 3].map(|()| guard.judge(peer(1), Offence::Garbage, now))[2];
        assert_eq!(three(now), Verdict::Ban(Duration::from_secs(60)));
        let end = now + Duration::from_secs(60);
        assert_eq!(guard.next_end(), Some(end));
        assert_eq!(guard.take_ended(end), [peer(1)]);
        assert_eq!(guard.next_end(), None);
        let mut three = |now| [(); 3].map(|()| guard.judge(peer(1), Offence::Garbage, now))[2];
        assert_eq!(three(end), Verdict::Ban(Duration::from_secs(120)));
    }

    #[test]
    fn old_offences_are_forgotten() {
        let (mut guard, now) = (guard(), Instant::now());
        for minutes in 0..10 {
            let now = now + Duration::from_secs(61 * minutes);
            assert_eq!(guard.judge(peer(1), Offence::Garbage, now), Verdict::Pause(PAUSE));
        }
    }

    #[test]
    fn a_burst_is_one_offence_and_a_flood_is_a_ban() {
        let (mut guard, now) = (guard(), Instant::now());
        assert_eq!(guard.judge(peer(1), Offence::Rate, now), Verdict::Pause(PAUSE));
        assert_eq!(guard.judge(peer(1), Offence::Rate, now), Verdict::Known);
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(guard.judge(peer(1), Offence::Rate, at(1)), Verdict::Pause(2 * PAUSE));
        assert!(matches!(guard.judge(peer(1), Offence::Rate, at(2)), Verdict::Ban(_)));
    }
}
