//! Who is there: heartbeats, a failure detector, and what follows when a site is silent, leaves, or comes back.
//!
//! With [`crate::Options::heartbeat`] every site says to every other, so often, that it is there; any other lawful
//! message says so, too. A site that was silent for [`crate::Options::suspect_after`] is **suspected**: nobody asks it for
//! work or waits for its answers. One that was silent for [`crate::Options::lease`] is **gone**: its place in the
//! order of sizes goes to the next larger site, and who is responsible for jobs that it holds takes them over
//! (`custody.rs`). A site that is heard of again is back, with nothing to be told but what it missed.
//!
//! Suspicion is never proof, so no safety of the hand-over depends on it: it only chooses whom to talk to. Taking
//! over is the one place where a job may run twice, and every case is an event.

mod custody;
pub(crate) mod failover;
mod leave;
mod loss;
pub(crate) mod message;
pub mod operator;
pub(crate) mod state;
mod unheard;
pub(crate) mod view;

use scheduler::{EventKind, JobSpec, Span, Time};

pub use self::custody::next_epoch;
pub(crate) use self::loss::may_live;
pub use self::message::{REPORTS_MAX, VOIDS_MAX};
pub(crate) use self::state::Membership;
pub use self::state::Presence;
use crate::core::Core;
use crate::engine::{Engine, Family, Leaving};
pub use crate::journal::Guarded;
pub use crate::message::Report;
use crate::message::{MembershipMessage, Void};
use crate::mutant::Mutant;
use crate::rank::Rank;
use crate::timers::Timer;

impl Core {
    /// What this site believes of another; of itself that it is here, or leaving.
    pub(crate) fn presence(&self, rank: Rank) -> Presence {
        self.view.presence(rank)
    }

    /// Processors of the widest site that counts.
    pub(crate) fn widest_present(&self) -> u32 {
        self.view.present().next_back().map_or(0, |rank| self.processors_of(rank))
    }

    /// Whether the site of this rank counts in the order of sizes.
    pub(crate) fn is_present(&self, rank: Rank) -> bool {
        !self.view.is_absent(rank)
    }

    /// Whether it makes sense to ask or to give anything to the site of this rank.
    pub(crate) fn is_reachable(&self, rank: Rank) -> bool {
        self.view.is_reachable(rank)
    }

    /// The first owner of a job among those that are known and present: the rank of its home or, if that is gone or not known, of the
    /// next larger site. None if nobody present is wide enough.
    pub(crate) fn home_of(&self, job: &JobSpec) -> Option<Rank> {
        let home = self.config.home_rank(job)?;
        let known = self.view.from(home).find(|&rank| self.is_present(rank));
        // Who knows nobody that is wide enough still has the list of all sites.
        known.or_else(|| self.view.is_bounded().then_some(home))
    }

    fn members(&mut self) -> &mut Membership {
        self.membership.as_mut().expect("only called where sites say that they are there")
    }

    /// Tells a site that this one is there, and what this one took over, from that place on.
    fn tell_presence(&mut self, rank: Rank, first: usize) {
        let incarnation = self.incarnation;
        let membership = self.members();
        let first = first.min(membership.taken_over.len());
        let voids = membership.taken_over[first..].iter().take(VOIDS_MAX).copied().collect();
        let known = membership.sites[rank].known;
        let leaving = self.is_leaving();
        self.send(
            rank,
            MembershipMessage::Heartbeat { incarnation, leaving, first: first as u64, voids, known },
        );
    }

    /// Tells everybody, from that place on.
    fn tell_all(&mut self, first: usize) {
        for rank in self.view.others() {
            self.tell_presence(rank, first);
        }
    }

    /// Whether this site must hear of others before it starts anything: while it was away they may have taken over
    /// what waits here.
    pub(crate) fn must_ask_first(&self) -> bool {
        self.membership.as_ref().is_some_and(|membership| !membership.asked.is_empty())
    }
}

impl<F: Family> Engine<F> {
    /// Believes something else of a member than before, so that others may count in the order of sizes. What it believed.
    fn sees(&mut self, rank: Rank, presence: Presence) -> Presence {
        let before = self.core.widest_present();
        let was = self.core.view.sees(rank, presence);
        let core = &mut self.core;
        let widths = core.widest_present() + 1..=before;
        if !widths.is_empty() && !core.config.grid.spreads() {
            // What waits here whoever is there, nobody can take now. Other jobs are put aside, and told of then.
            let is_lost = |job: &&JobSpec| {
                widths.contains(&job.processors) && F::belongs(core, None, job) == Some(core.rank)
            };
            let lost: Vec<JobSpec> = self.family.jobs().filter(is_lost).copied().collect();
            for job in lost {
                core.event(EventKind::Orphaned { job: job.id, processors: job.processors });
            }
        }
        was
    }

    /// This site was away: it asks everybody what they took over before it starts anything that waits here.
    fn ask_who_took_over(&mut self, now: Time) {
        if self.waiting() == 0 {
            return;
        }
        let here = self.core.view.others().filter(|&rank| self.core.is_reachable(rank));
        let asked = here.map(|rank| (rank, now)).collect();
        self.core.members().asked = asked;
    }

    /// Waits no longer for what sites took over that are heard of and have told nothing of it for a lease. A site with
    /// another journal than it said before does, and a liar may.
    fn give_up_asking(&mut self, now: Time) {
        let membership = self.core.members();
        let Some(lease) = membership.lease.filter(|_| !membership.asked.is_empty()) else { return };
        membership.asked.retain(|_, since| now.since(*since) < lease);
        self.may_have_been_told_all();
    }

    fn may_have_been_told_all(&mut self) {
        if self.core.members().asked.is_empty() {
            self.core.fresh = true;
            F::may_start(self);
        }
    }

    /// Before everything that the peer is told: notices that it slept.
    pub(crate) fn wake(&mut self, now: Time) {
        let Some(membership) = &mut self.core.membership else { return };
        let slept = membership.awake.replace(now).map(|last| now.since(last));
        if slept.is_some_and(|slept| slept < membership.heartbeat.saturating_mul(2)) {
            return;
        }
        // Others were silent because nobody listened.
        for other in membership.sites.rows_mut() {
            other.heard = other.heard.max(now);
        }
        let missed = membership.lease.is_some_and(|lease| slept.is_none_or(|slept| slept >= lease));
        if missed {
            self.ask_who_took_over(now);
        }
        self.heartbeat(now);
    }

    /// The site of this rank said something.
    pub(crate) fn heard_of(&mut self, now: Time, rank: Rank) {
        let Some(membership) = &self.core.membership else { return };
        let silent = now.since(membership.sites[rank].heard);
        if self.core.has(Mutant::LongGone) && silent >= Span::from_secs(1_200) {
            return;
        }
        self.core.members().sites[rank].heard = now;
        let lost = matches!(self.core.presence(rank), Presence::Suspected | Presence::Gone);
        if lost && !self.core.has(Mutant::NeverHereAgain) {
            self.is_back(now, rank, silent);
        }
    }

    /// A site is there again that was believed not to be, or does not leave after all.
    fn is_back(&mut self, now: Time, rank: Rank, silent: Span) {
        self.sees(rank, Presence::Here);
        self.core.event(EventKind::Heard { peer: self.core.site_at(rank), after: silent });
        F::enters(self, now, rank);
        self.core.fresh = true;
        self.core.tell_reports(rank);
        self.settle_orphaned(now);
    }

    /// Says that this site is there, and looks who else is.
    pub(crate) fn heartbeat(&mut self, now: Time) {
        let Some(membership) = &self.core.membership else { return };
        let (heartbeat, patience, lease) = (membership.heartbeat, membership.patience, membership.lease);
        self.core.timers.set(Timer::Heartbeat, now, heartbeat);
        self.give_up_asking(now);
        for rank in self.core.view.others() {
            let silent = now.since(self.core.members().sites[rank].heard);
            let presence = self.core.presence(rank);
            if presence == Presence::Here && silent >= patience {
                self.suspect(now, rank);
            }
            let lost = matches!(presence, Presence::Suspected | Presence::Leaving);
            if lost && lease.is_some_and(|lease| silent >= lease) {
                self.is_gone(now, rank);
            } else if presence == Presence::Gone && lease.is_some() {
                // Another site may have sent a job there since, or this one was told to.
                self.take_over_from(now, rank);
            }
            let knows = usize::try_from(self.core.members().sites[rank].knows).unwrap_or(usize::MAX);
            self.core.tell_presence(rank, knows);
            self.core.tell_reports(rank);
        }
    }

    fn suspect(&mut self, now: Time, rank: Rank) {
        self.sees(rank, Presence::Suspected);
        self.core.members().asked.remove(&rank);
        self.core.event(EventKind::Suspected { peer: self.core.site_at(rank) });
        F::leaves(self, now, rank, Leaving::Silent);
        self.core.fresh = true;
    }

    fn is_gone(&mut self, now: Time, rank: Rank) {
        let was = self.sees(rank, Presence::Gone);
        // One that was leaving was never suspected.
        self.core.members().asked.remove(&rank);
        self.core.event(EventKind::Gone { peer: self.core.site_at(rank) });
        self.core.fresh = true;
        if was == Presence::Leaving {
            // News that it sent before it left may have made this site ask it.
            F::leaves(self, now, rank, Leaving::Left);
        }
        F::leaves(self, now, rank, Leaving::Gone);
        self.core.passes_on();
        self.take_over_from(now, rank);
    }

    pub(crate) fn on_membership(&mut self, now: Time, other: Rank, message: MembershipMessage) {
        match message {
            MembershipMessage::Heartbeat { incarnation, leaving, first, voids, known } => {
                if self.on_journal(now, other, incarnation) {
                    self.on_heartbeat(now, other, leaving, first, &voids, known);
                }
            }
            MembershipMessage::Reports { reports } => self.on_reports(now, other, reports),
            MembershipMessage::Noted { reports } => self.on_noted(now, other, &reports),
        }
    }

    /// A site says that it is there.
    pub(crate) fn on_heartbeat(
        &mut self,
        now: Time,
        rank: Rank,
        leaving: bool,
        first: u64,
        voids: &[Void],
        known: u64,
    ) {
        if self.core.membership.is_none() {
            return;
        }
        let was = self.core.presence(rank);
        let membership = self.core.members();
        let other = &mut membership.sites[rank];
        // Numbers of a site that knows more than there is are not believed.
        other.knows = known.min(membership.taken_over.len() as u64);
        let news = usize::try_from(other.known.saturating_sub(first)).unwrap_or(usize::MAX);
        let fits = first <= other.known;
        if fits && news < voids.len() {
            other.known = first + voids.len() as u64;
            for &void in &voids[news..] {
                self.supersede(now, void);
            }
        }
        if fits && self.core.members().asked.contains_key(&rank) {
            if voids.len() < VOIDS_MAX {
                self.core.members().asked.remove(&rank);
                self.may_have_been_told_all();
            } else if news < voids.len() {
                self.core.members().asked.insert(rank, now);
            }
        }
        if leaving && self.core.members().lease.is_some() {
            self.core.tell_floor(rank);
        }
        // Whoever was silent before is believed to be here by now.
        if leaving && was != Presence::Leaving {
            self.sees(rank, Presence::Leaving);
            self.core.event(EventKind::Left { peer: self.core.site_at(rank) });
            F::leaves(self, now, rank, Leaving::Left);
            self.core.fresh = true;
            self.settle_orphaned(now);
        } else if !leaving && was == Presence::Leaving {
            self.is_back(now, rank, Span::ZERO);
        }
    }
}
