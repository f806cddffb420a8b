//! Links that the operator has cut, at one end: what would be sent over them is lost, and what arrives is not taken.
//!
//! As a partition of [`links::Model`] does, a cut also takes what is under way when it comes. The connection stays: a cut
//! is about the messages of the protocol, heartbeats with them. Nothing of it is kept in the journal; who ordered it looks
//! whether it is still so (`/status`), and orders it again.

use scheduler::{EventKind, SiteId};

use super::{SiteLoop, is_heartbeat};
use crate::control::Uncut;
use crate::control::api::{LinksOrder, Way};

/// What is cut, and how many messages that has taken in each direction.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    now: LinksOrder,
    taken: [u64; Way::ALL.len()],
}

impl Cuts {
    pub(super) fn is_cut(&self, way: Way, other: SiteId) -> bool {
        match way {
            Way::To => self.now.cut_to.contains(&other),
            Way::From => self.now.cut_from.contains(&other),
        }
    }

    /// Whether a message is lost to a cut, which is counted.
    pub(super) fn takes(&mut self, way: Way, other: SiteId) -> bool {
        let cut = self.is_cut(way, other);
        self.taken[way as usize] += u64::from(cut);
        cut
    }

    /// Messages lost so far.
    pub(super) fn totals(&self) -> [(&'static str, u64); Way::ALL.len()] {
        Way::ALL.map(|way| (way.name(), self.taken[way as usize]))
    }
}

impl SiteLoop {
    /// Cuts these links and restores all others. Messages that wait for their delay on a link that is cut are lost.
    pub(super) fn cut_links(&mut self, order: LinksOrder) -> anyhow::Result<Result<(), Uncut>> {
        if self.mailbox.is_some() {
            return Ok(Err(Uncut::Lockstep));
        }
        let others = |site: SiteId| site != self.site && site.0 >= 1 && site.index() < self.grid.len();
        if let Some(stranger) = order.cut_to.iter().chain(&order.cut_from).find(|site| !others(**site)) {
            return Ok(Err(Uncut::Site(*stranger)));
        }
        if order != self.cuts.now {
            tracing::warn!(to = ?order.cut_to, from = ?order.cut_from, "links are cut by order");
        }
        self.cuts.now = order;
        let cuts = &mut self.cuts;
        for lost in self.delayed.take_if(|outgoing| cuts.is_cut(Way::To, outgoing.to)) {
            self.cuts.taken[Way::To as usize] += 1;
            self.heartbeats_delayed -= usize::from(is_heartbeat(lost.kind));
            self.now = self.now.max(self.clock.at(tokio::time::Instant::now()));
            self.record(EventKind::Lost { to: lost.to, message: lost.kind })?;
        }
        self.commit()?;
        Ok(Ok(()))
    }
}
