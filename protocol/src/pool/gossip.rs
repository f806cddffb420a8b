//! `gossip`: every site knows all boards, takes the decision for all, and acts on its own lines: it starts own
//! offers, and claims those of others. Processors of a claim are reserved until it is answered.

use std::collections::BTreeMap;

use scheduler::event::{MessageKind, ReleaseReason};
use scheduler::exchange::{SiteView, WaitingJob};
use scheduler::{EventKind, Time};

use super::PoolTimer;
use super::board::OfferId;
use super::known::KnownOffer;
use super::{CLAIM_REFRESHES, Exchange, Role};
use crate::engine::Engine;
use crate::message::PoolMessage;
use crate::mutant::Mutant;
use crate::rank::Rank;

/// The claims of a site.
#[derive(Clone, Debug)]
pub(super) struct Gossip {
    claims: BTreeMap<u64, Claim>,
    /// The last number given to a claim.
    last: u64,
}

/// A claim that was not answered.
#[derive(Clone, Copy, Debug)]
struct Claim {
    offer: OfferId,
    owner: Rank,
    job: WaitingJob,
    since: Time,
    /// Until when the processors count as busy.
    end: Time,
}

impl Gossip {
    /// No claims, which are numbered from here.
    pub(super) fn from_number(first: u64) -> Gossip {
        Gossip { claims: BTreeMap::new(), last: first }
    }

    pub(super) fn any_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    pub(super) fn has_claim(&self, number: u64) -> bool {
        self.claims.contains_key(&number)
    }

    /// Processors reserved by claims.
    pub(super) fn reserved(&self) -> u32 {
        self.claims.values().map(|claim| claim.job.processors).sum()
    }

    /// Jobs that are claimed, in the order of the claims.
    pub(super) fn claimed(&self) -> impl Iterator<Item = &WaitingJob> {
        self.claims.values().map(|claim| &claim.job)
    }
}

impl Engine<Exchange> {
    fn gossip(&mut self) -> Option<&mut Gossip> {
        match &mut self.family.role {
            Role::Gossip(gossip) => Some(gossip),
            Role::Hosted(_) => None,
        }
    }

    /// Decides for all sites, and acts for this one.
    pub(super) fn settle_gossip(&mut self, now: Time) {
        let rank = self.core.rank;
        let takes_none = self.core.is_leaving() || self.core.must_ask_first();
        let exchange = &mut self.family;
        if takes_none || !exchange.known.any_within(exchange.site.free) {
            // No line of the decision would be this site's.
            return;
        }
        let demand = exchange.rules.demand;
        let mut views: Vec<SiteView> = Vec::with_capacity(exchange.known.sites.len());
        for (other, heard) in exchange.known.sites.iter() {
            views.push(if other == rank {
                exchange.site.clone()
            } else if demand && !exchange.known.is_silent(other) {
                heard.view.clone()
            } else {
                let mut view = heard.view.clone();
                view.close();
                view
            });
        }
        let lines = exchange.known.decide(&exchange.rules, now, &mut views);
        for line in lines {
            if line.to != rank {
                self.family.known.include(line.offer.id());
            } else if line.offer.owner == rank {
                self.start_offered(now, line.offer.id());
            } else {
                self.claim(now, line.offer);
            }
        }
    }

    fn claim(&mut self, now: Time, offer: KnownOffer) {
        let (id, owner, job) = (offer.id(), offer.owner, offer.job);
        let reuse = self.core.has(Mutant::ClaimsReused);
        let exchange = &mut self.family;
        exchange.known.exclude(id);
        exchange.occupy(now, &job);
        let Role::Gossip(gossip) = &mut exchange.role else { unreachable!("checked by the caller") };
        gossip.last += 1;
        let number = if reuse { gossip.claims.len() as u64 + 1 } else { gossip.last };
        let end = now.saturating_add(job.requested);
        gossip.claims.insert(number, Claim { offer: id, owner, job, since: now, end });
        if let Some(retry) = self.core.config.options.retry {
            self.timers.set(PoolTimer::Claim(number), now, retry);
        }
        let owner_site = self.core.site_at(owner);
        self.core.event(EventKind::Claimed {
            job: id.job,
            owner: owner_site,
            claim: number,
            processors: job.processors,
        });
        self.core.send(owner, PoolMessage::Claim { offer: id, claim: number });
    }

    /// Ends a claim and frees its processors; whether there was such a claim.
    pub(super) fn release_claim(
        &mut self,
        now: Time,
        owner: Rank,
        offer: OfferId,
        number: u64,
        reason: ReleaseReason,
    ) -> bool {
        let Some(gossip) = self.gossip() else { return false };
        let Some(claim) = gossip.claims.get(&number).copied() else { return false };
        if (claim.owner, claim.offer) != (owner, offer) {
            return false;
        }
        gossip.claims.remove(&number);
        let exchange = &mut self.family;
        exchange.vacate(claim.end, claim.job.processors);
        exchange.recount(&self.core);
        exchange.unsettled = true;
        if !self.core.has(Mutant::ClaimAskedOn) {
            self.timers.cancel(PoolTimer::Claim(number));
        }
        let processors = claim.job.processors;
        let held = now.since(claim.since);
        self.core.event(EventKind::Released { job: offer.job, claim: number, processors, held, reason });
        true
    }

    /// The owner turned a claim down.
    pub(super) fn on_deny(&mut self, now: Time, other: Rank, offer: OfferId, claim: u64) {
        if self.release_claim(now, other, offer, claim, ReleaseReason::Denied) {
            // The processors may be of use to own work first.
            self.core.fresh = true;
        } else {
            let from = self.core.site_at(other);
            self.core.event(EventKind::Ignored { from, message: MessageKind::Deny });
        }
    }

    /// No answer to a claim: ask again, or give it up.
    pub(super) fn repeat_claim(&mut self, now: Time, number: u64) {
        let timer = PoolTimer::Claim(number);
        let Some(&claim) = self.gossip().and_then(|gossip| gossip.claims.get(&number)) else {
            return self.timers.cancel(timer);
        };
        let patience =
            self.core.config.options.pool.refresh.map(|refresh| refresh.saturating_mul(CLAIM_REFRESHES));
        let age = self.timers.age(timer, now);
        if patience.is_some_and(|patience| age.is_some_and(|age| age >= patience)) {
            self.release_claim(now, claim.owner, claim.offer, number, ReleaseReason::Dropped);
            self.family.known.include(claim.offer);
            self.core.fresh = true;
        } else {
            let message = PoolMessage::Claim { offer: claim.offer, claim: number };
            self.core.send_again(claim.owner, message, true);
        }
    }
}
