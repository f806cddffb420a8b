//! The owner of an offered job promises it to one taker, and to nobody else until that one has answered.

use scheduler::event::MessageKind;
use scheduler::exchange::Entered;
use scheduler::{EventKind, SiteId, Time};

use super::board::{Epoch, Listing, OfferId};
use super::{Exchange, Role, told_of};
use crate::core::Reason;
use crate::engine::Engine;
use crate::message::{PoolMessage, Transfer};
use crate::rank::Rank;

/// An offer that was promised to a taker which has not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    /// The rank of the taker.
    pub(super) to: Rank,
    /// Number of the transfer that carries the job to the taker.
    pub(super) number: u64,
    listing: Listing,
    claim: Option<u64>,
}

impl Engine<Exchange> {
    /// Gives a waiting job to the pool.
    pub(super) fn pool_offer(&mut self, listing: Listing) {
        let exchange = &mut self.family;
        let before = exchange.offers.insert(listing.job.id, listing);
        assert!(before.is_none(), "job {} is offered once", listing.job.id);
        exchange.news.offered.push(listing);
        self.core.event(EventKind::Offered { job: listing.job.id, version: listing.version });
    }

    /// Takes a job back from the pool.
    pub(super) fn pool_withdraw(&mut self, offer: OfferId) -> Listing {
        let exchange = &mut self.family;
        let listing = exchange.offers.remove(&offer.job).expect("callers look first");
        exchange.news.withdraw(offer);
        self.core.event(EventKind::Withdrawn { job: offer.job, version: offer.version });
        listing
    }

    /// Whether this very offer stands.
    fn is_offered(&mut self, offer: OfferId) -> bool {
        self.family.offers.get(&offer.job).is_some_and(|listing| listing.version == offer.version)
    }

    /// Starts a job that this site offers.
    pub(super) fn start_offered(&mut self, now: Time, offer: OfferId) {
        let listing = self.pool_withdraw(offer);
        let Engine { core, family: exchange, .. } = self;
        let spec = exchange.specs.remove(&offer.job).expect("what is offered has a specification");
        exchange.occupy(now, &listing.job);
        exchange.beliefs.start(core, now, spec, listing.job.requested);
    }

    /// A host decided where an offer goes.
    pub(super) fn on_assign(&mut self, now: Time, other: Rank, offer: OfferId, to: SiteId, epoch: Epoch) {
        let hosted = matches!(self.family.role, Role::Hosted(_));
        if !hosted || to.0 == 0 || to.index() >= self.core.config.grid.len() {
            return self.core.ignore(self.core.site_at(other), MessageKind::Assign);
        }
        // Whoever assigns is obeyed: two hosts at a time do no harm, because this site arbitrates.
        self.hear_epoch(now, other, epoch);
        let from = self.core.site_at(other);
        if self.family.is_host(epoch, from) {
            self.family.sign = now;
        }
        // What waits here may have been taken over; the host assigns again after a while.
        let must_wait = to == self.core.config.site && self.core.must_ask_first();
        if must_wait || !self.is_offered(offer) {
            return self.core.ignore(self.core.site_at(other), MessageKind::Assign);
        }
        let to = self.core.rank_of(to);
        self.assigned(now, offer, to);
    }

    /// An own offer goes to the site of this rank.
    pub(super) fn assigned(&mut self, now: Time, offer: OfferId, to: Rank) {
        if to != self.core.rank {
            return self.promise(now, offer, to, None);
        }
        if self.core.fresh {
            // Own work of this instant goes before the pool. If the site leaves, so does the job.
            self.turn(now);
            if !self.is_offered(offer) {
                return;
            }
        }
        let exchange = &mut self.family;
        let fits = exchange.site.takes(&exchange.offers[&offer.job].job);
        exchange.note_seen(offer);
        if fits {
            self.start_offered(now, offer);
        } else {
            let listing = self.pool_withdraw(offer);
            self.pool_offer(Listing { version: listing.version + 1, ..listing });
        }
    }

    /// A site asks for an offer.
    pub(super) fn on_claim(&mut self, now: Time, other: Rank, offer: OfferId, claim: u64) {
        if self.is_offered(offer) {
            return self.promise(now, offer, other, Some(claim));
        }
        let promised = self.family.promised.get(&offer.job).copied();
        if let Some(promise) = promised
            && (promise.to, promise.listing.id(), promise.claim) == (other, offer, Some(claim))
        {
            if let Some(award) = self.pool_award(other, promise.number) {
                self.core.send_again(other, award, true);
            }
            return;
        }
        let claimant = self.core.site_at(other);
        self.core.event(EventKind::Denied { job: offer.job, claimant, claim });
        self.core.send(other, PoolMessage::Deny { offer, claim });
    }

    /// Promises an offer to a taker, and tells it.
    fn promise(&mut self, now: Time, offer: OfferId, to: Rank, claim: Option<u64>) {
        let listing = self.pool_withdraw(offer);
        let spec = self.family.specs.remove(&offer.job).expect("what is offered has a specification");
        self.family.beliefs.leave(offer.job);
        let custody = self.core.custody_of(offer.job);
        let transfer = self.core.grant_transfer(now, to, spec, custody, Reason::POOL);
        let promise = Promise { to, number: transfer.number, listing, claim };
        self.family.promised.insert(offer.job, promise);
        let award = self.pool_award(to, transfer.number).expect("it was just written down");
        self.core.send(to, award);
    }

    /// The message of an unanswered transfer. `None` if it was answered.
    pub(super) fn pool_award(&mut self, to: Rank, number: u64) -> Option<PoolMessage> {
        let site = self.core.site_at(to);
        let transfer = Box::new(*self.core.ledger.out(site, number)?);
        let floor = self.core.ledger.floor_to(site);
        let promise = self.family.promised.get(&transfer.job.id)?;
        let (version, claim) = (promise.listing.version, promise.claim);
        Some(PoolMessage::Award { transfer, version, claim, floor })
    }

    /// A taker declined: the job is offered anew.
    pub(super) fn pool_returned(&mut self, now: Time, transfer: &Transfer) {
        let Engine { core, family: exchange, .. } = self;
        let job = transfer.job;
        exchange.specs.insert(job.id, job);
        let believed = exchange.beliefs.enter(core, now, job);
        let believed = told_of(core, &believed);
        // Without a promise the owner crashed since; the numbers of its offers are new.
        let promise = exchange.promised.remove(&job.id);
        let (entered, version) = promise.map_or((Entered::on_arrival(now), exchange.first), |promise| {
            (promise.listing.job.entered, promise.listing.version)
        });
        self.pool_offer(Listing { job: believed.entering(entered), version: version + 1 });
    }
}
