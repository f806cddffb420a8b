//! The price of a steal: what happened between the moment a site asked and the moment the job started there.
//!
//! ```text
//! thief     Requested ---------.                        .--> Accepted ---> Started
//!                    request    \                      /  transfer   start
//! victim                         '--> Granted --------'
//! ```
//!
//! A grant carries its job, so the grant and the transfer of the payload are one phase. Where sites claim jobs of a
//! global queue, the claim is the request. Jobs that were not asked for (a standing request, a push, an assignment by
//! the host of a queue) have no request phase. A job can change sites more than once; each
//! accepted change is a [`Steal`], also those that only bring a job home ([`GrantCause::Route`]), which the
//! statistics leave out.
//!
//! [`Steals`] takes events as they come, a request before its grant and a grant before its acceptance, and hands
//! over each steal when it is over. It keeps only jobs that are on their way.

mod price;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use scheduler::event::{DeclineReason, GrantCause, RefusalReason, ReleaseReason};
use scheduler::{Event, EventKind, JobId, SiteId, Span, Time};

pub use price::{Concentration, Price, Thief};

use crate::spread::Spread;

/// One change of site that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steal {
    /// The job that moved.
    pub job: JobId,
    /// Which change of site of the job this is, counted from 1.
    pub hop: u32,
    /// The new owner.
    pub thief: SiteId,
    /// The former owner.
    pub victim: SiteId,
    /// Why the victim gave it.
    pub cause: GrantCause,
    /// When the thief's request left, if it asked.
    pub requested: Option<Time>,
    /// When the victim gave it away.
    pub granted: Time,
    /// When it was the thief's.
    pub accepted: Time,
    /// When it started at the thief; none if it went on to another site, or the run ended before.
    pub started: Option<Time>,
    /// How often the job was declined since it came to the victim.
    pub bounces: u32,
    /// Whether the thief had to take it.
    pub firm: bool,
    /// How old the thief's news of the victim was when it asked.
    pub view_age: Option<Span>,
}

impl Steal {
    /// From the request to the grant.
    pub fn request(&self) -> Option<Span> {
        Some(self.granted.since(self.requested?))
    }

    /// From the grant to the acceptance.
    pub fn transfer(&self) -> Span {
        self.accepted.since(self.granted)
    }

    /// From the acceptance to the start.
    pub fn start(&self) -> Option<Span> {
        Some(self.started?.since(self.accepted))
    }

    /// From the request, or the grant if nobody asked, to the start.
    pub fn total(&self) -> Option<Span> {
        Some(self.started?.since(self.requested.unwrap_or(self.granted)))
    }

    /// Whether it is one for the statistics: a route only brings a job to its queue.
    pub fn counts(&self) -> bool {
        self.cause != GrantCause::Route
    }
}

/// What is measured of the steals of a run while it lasts. [`Price`] is what it amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steals {
    /// The newest request of a pair of thief and victim.
    asked: BTreeMap<(SiteId, SiteId), Asked>,
    /// Claims for jobs of a global queue that are not answered.
    claimed: BTreeMap<(JobId, SiteId), Time>,
    /// Jobs that were granted and have not started.
    moving: BTreeMap<JobId, Moving>,
    measured: Measured,
}

/// Sums and distributions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Measured {
    /// Accepted changes of site by cause.
    causes: BTreeMap<GrantCause, u64>,
    request: Spread,
    transfer: Spread,
    start: Spread,
    total: Spread,
    /// Steals that were asked for and whose request is not in the events.
    request_unknown: u64,
    requests: u64,
    refusals: BTreeMap<RefusalReason, u64>,
    declines: BTreeMap<DeclineReason, u64>,
    /// Claims for jobs of a global queue.
    claims: u64,
    /// Claims that ended without the job, by reason.
    denials: BTreeMap<ReleaseReason, u64>,
    view_age: Spread,
    view_age_granted: Spread,
    view_age_refused: Spread,
    /// Requests of sites that had never heard of their victim.
    view_unknown: u64,
    /// How often jobs were declined and came back; those that never were are not in it.
    bounces: BTreeMap<JobId, u32>,
    /// Per thief: requests, refusals, steals.
    thieves: BTreeMap<SiteId, [u64; 3]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    seq: u64,
    at: Time,
    view_age: Option<Span>,
}

/// A job that left its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moving {
    /// The grant that is under way.
    grant: Option<Grant>,
    /// The steal that waits for its start.
    open: Option<Steal>,
    /// Declines since it came to where it is.
    bounces: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    at: Time,
    from: SiteId,
    transfer: u64,
    hops: u32,
    cause: GrantCause,
    requested: Option<Asked>,
}

impl Steals {
    /// Takes an event, and hands over the steal that it ends.
    pub fn observe(&mut self, event: &Event, sink: &mut impl FnMut(&Steal)) {
        let Event { at, site, kind } = *event;
        match kind {
            EventKind::Requested { victim, seq, view_age, .. } => {
                self.asked.insert((site, victim), Asked { seq, at, view_age });
                self.measured.requested(site, view_age);
            }
            EventKind::Answered { victim, seq, jobs } => {
                let key = (site, victim);
                if self.asked.get(&key).is_some_and(|asked| asked.seq == seq)
                    && let Some(age) = self.asked.remove(&key).and_then(|asked| asked.view_age)
                {
                    let measured = &mut self.measured;
                    if jobs > 0 { &mut measured.view_age_granted } else { &mut measured.view_age_refused }
                        .add(age);
                }
            }
            EventKind::Refused { thief, reason, .. } => {
                *self.measured.refusals.entry(reason).or_default() += 1;
                self.measured.thieves.entry(thief).or_default()[1] += 1;
            }
            EventKind::Claimed { job, .. } => {
                self.claimed.insert((job, site), at);
                self.measured.claims += 1;
            }
            EventKind::Released { job, reason, .. } => {
                self.claimed.remove(&(job, site));
                if reason != ReleaseReason::Granted {
                    *self.measured.denials.entry(reason).or_default() += 1;
                }
            }
            EventKind::Granted { job, to, transfer, hops, cause, request } => {
                let requested = match cause {
                    GrantCause::Pool => {
                        self.claimed.get(&(job, to)).map(|&at| Asked { seq: request, at, view_age: None })
                    }
                    _ => self.asked.get(&(to, site)).copied(),
                };
                let asked = matches!(cause, GrantCause::Request | GrantCause::Pool);
                let requested = requested.filter(|requested| asked && requested.seq == request);
                let moving = self.moving.entry(job).or_default();
                if let Some(steal) = moving.open.take() {
                    self.measured.over(&steal);
                    sink(&steal);
                }
                moving.grant = Some(Grant { at, from: site, transfer, hops, cause, requested });
            }
            EventKind::Accepted { job, from, transfer, firm } => {
                let Some(moving) = self.moving.get_mut(&job) else { return };
                let under_way = moving.grant.filter(|grant| (grant.from, grant.transfer) == (from, transfer));
                let Some(grant) = under_way else { return };
                moving.grant = None;
                let bounces = std::mem::take(&mut moving.bounces);
                moving.open = Some(grant.accepted(job, at, site, bounces, firm));
            }
            EventKind::Declined { reason, .. } => *self.measured.declines.entry(reason).or_default() += 1,
            EventKind::Returned { job, .. } => {
                let moving = self.moving.entry(job).or_default();
                moving.grant = None;
                moving.bounces += 1;
                *self.measured.bounces.entry(job).or_default() += 1;
            }
            EventKind::Started { job, .. } => {
                let moving = self.moving.remove(&job).unwrap_or_default();
                if let Some(steal) = moving.open {
                    let steal = Steal { started: (steal.thief == site).then_some(at), ..steal };
                    self.measured.over(&steal);
                    sink(&steal);
                }
            }
            _ => {}
        }
    }

    /// The run is over: hands over the steals of jobs that did not start.
    pub fn finish(&mut self, sink: &mut impl FnMut(&Steal)) {
        for moving in std::mem::take(&mut self.moving).into_values() {
            if let Some(steal) = moving.open {
                self.measured.over(&steal);
                sink(&steal);
            }
        }
    }
}

impl Grant {
    fn accepted(self, job: JobId, at: Time, thief: SiteId, bounces: u32, firm: bool) -> Steal {
        Steal {
            job,
            hop: self.hops,
            thief,
            victim: self.from,
            cause: self.cause,
            requested: self.requested.map(|asked| asked.at),
            granted: self.at,
            accepted: at,
            started: None,
            bounces,
            firm,
            view_age: self.requested.and_then(|asked| asked.view_age),
        }
    }
}

impl Measured {
    fn requested(&mut self, thief: SiteId, view_age: Option<Span>) {
        self.requests += 1;
        self.thieves.entry(thief).or_default()[0] += 1;
        match view_age {
            Some(age) => self.view_age.add(age),
            None => self.view_unknown += 1,
        }
    }

    fn over(&mut self, steal: &Steal) {
        *self.causes.entry(steal.cause).or_default() += 1;
        if !steal.counts() {
            return;
        }
        self.thieves.entry(steal.thief).or_default()[2] += 1;
        match steal.request() {
            Some(span) => self.request.add(span),
            None => self.request_unknown += u64::from(steal.cause == GrantCause::Request),
        }
        self.transfer.add(steal.transfer());
        steal.start().into_iter().for_each(|span| self.start.add(span));
        steal.total().into_iter().for_each(|span| self.total.add(span));
    }
}
