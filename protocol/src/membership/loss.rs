//! A site that restarts without its journal: for all others another site of the same name.
//!
//! The operator says how many journals the site has lost ([`crate::Peer::restore_lost`]). Its incarnations are numbered from
//! there, and each `Heartbeat` says the incarnation, so that whoever hears one knows:
//!
//! | other site | when it hears of the new journal | then |
//! |---|---|---|
//! | guardian of a job that was there | | owned, under its next epoch, as if the site were gone |
//! | a transfer is out to the lost journal | | the same, or asked of the guardian, who may know that the job went on |
//! | a `Reports` is on its way that says that a job is there | | it says instead that nobody has the job |
//! | transfers from then on | | are numbered anew; the site looks at no older one and never answers it |
//! | an answer of the lost journal | | ignored: what it accepted is lost |
//!
//! What the site itself was responsible for only the operator can know; see [`super::operator::missing`]. As a guardian it
//! says of no job that it does not know that it has ended.

use scheduler::{EventKind, Span, Time};

use crate::core::Core;
use crate::engine::Engine;
use crate::engine::Family;
use crate::message::Report;
use crate::numbers::{JOURNALS_MAX, journal_of};
use crate::rank::Rank;

/// Whether a site can be in this incarnation.
pub(crate) fn may_live(incarnation: u32) -> bool {
    journal_of(incarnation) < JOURNALS_MAX
}

impl Core {
    /// Whether this site knows nothing of what it was told before it lost a journal.
    pub(super) fn lost_its_journal(&self) -> bool {
        journal_of(self.incarnation) > 0
    }
}

impl<F: Family> Engine<F> {
    /// A site says in which incarnation it is. False if it is one with a journal that it has lost since.
    pub(crate) fn on_journal(&mut self, now: Time, rank: Rank, incarnation: u32) -> bool {
        let Some(membership) = &mut self.core.membership else { return true };
        let journal = journal_of(incarnation);
        let other = &mut membership.sites[rank];
        if journal < other.journal {
            return false;
        }
        if journal > other.journal {
            other.journal = journal;
            // What it took over is numbered anew.
            other.known = 0;
        }
        if membership.lease.is_some() && self.core.ledger.journal_at(self.core.site_at(rank)) < journal {
            self.on_loss(now, rank, journal);
        }
        true
    }

    /// The site of this rank has lost its journal.
    fn on_loss(&mut self, now: Time, rank: Rank, journal: u32) {
        let site = self.core.site_at(rank);
        self.core.apply(self.core.ledger.renumber(site, journal));
        self.core.event(EventKind::Gone { peer: site });
        self.core.event(EventKind::Heard { peer: site, after: Span::ZERO });
        let untold: Vec<Report> = self
            .core
            .members()
            .reports
            .values()
            .filter(|report| report.holder == site && report.guardian != site && !report.done)
            .copied()
            .collect();
        for report in untold {
            // Its guardian may hear this after it has taken over what was there.
            let moves = report.moves.saturating_add(1);
            self.core.report(Report { holder: report.guardian, moves, ..report });
        }
        self.core.passes_on();
        self.take_over_from(now, rank);
    }
}
