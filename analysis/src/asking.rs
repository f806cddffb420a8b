//! What sites asked for and have no answer to: requests for work, and claims of jobs in a global queue.
//!
//! A job that is granted uses up as much of the offer or claim that it answers: from then on it is on its way, and
//! its processors are no longer merely on offer. What an answer leaves unused stays on offer until the answer is there.
//! Sites are ranks. [`crate::deficiency`] and [`crate::waits`] read it.

use std::collections::BTreeMap;

use scheduler::JobId;

/// Open requests and claims.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asking {
    /// By (thief, victim).
    requests: BTreeMap<(u32, u32), Request>,
    /// By (site, number of its claim).
    claims: BTreeMap<(u32, u64), Claim>,
    /// Numbers of the claims of a job by a site, for those that were not granted. The latest, if there are several.
    by_job: BTreeMap<(JobId, u32), u64>,
}

/// A request without answer.
#[derive(Clone, Copy, Debug)]
struct Request {
    seq: u64,
    /// Processors on offer for which no job was granted.
    left: u32,
}

#[derive(Clone, Copy, Debug)]
struct Claim {
    job: JobId,
    /// Processors that it reserves; none once the job was granted.
    processors: u32,
}

impl Asking {
    /// A thief asks with these processors.
    pub(crate) fn request(&mut self, thief: u32, victim: u32, seq: u64, offer: u32) {
        self.requests.insert((thief, victim), Request { seq, left: offer });
    }

    /// An answer arrives; whether it is that of the open request.
    pub(crate) fn answer(&mut self, thief: u32, victim: u32, seq: u64) -> bool {
        let is_open = self.requests.get(&(thief, victim)).is_some_and(|request| request.seq == seq);
        if is_open {
            self.requests.remove(&(thief, victim));
        }
        is_open
    }

    /// A victim grants a job of so many processors to answer a request; what that leaves on offer.
    pub(crate) fn grant(&mut self, thief: u32, victim: u32, seq: u64, processors: u32) -> Option<u32> {
        let request = self.requests.get_mut(&(thief, victim)).filter(|request| request.seq == seq)?;
        request.left = request.left.saturating_sub(processors);
        Some(request.left)
    }

    /// Processors on offer in the open request of a thief, if there is one.
    pub(crate) fn offer(&self, thief: u32, victim: u32) -> Option<u32> {
        self.requests.get(&(thief, victim)).map(|request| request.left)
    }

    /// The same, none if there is none.
    pub(crate) fn on_offer(&self, thief: u32, victim: u32) -> u32 {
        self.offer(thief, victim).unwrap_or(0)
    }

    /// Job and processors of the claims of a site whose jobs were not granted.
    #[cfg(test)]
    pub(crate) fn claims_of(&self, site: u32) -> impl Iterator<Item = Reserved> {
        let claims = self.claims.range((site, 0)..=(site, u64::MAX)).map(|(_, claim)| *claim);
        claims
            .filter(|claim| claim.processors > 0)
            .map(|Claim { job, processors }| Reserved { job, processors })
    }

    /// A site claims a job; what it reserved before under the same number.
    pub(crate) fn claim(&mut self, site: u32, number: u64, job: JobId, processors: u32) -> Option<Reserved> {
        let before = self.release(site, number);
        self.claims.insert((site, number), Claim { job, processors });
        self.by_job.insert((job, site), number);
        before
    }

    /// A job is granted to a site; what the site's claim of it reserved till now.
    pub(crate) fn award(&mut self, site: u32, job: JobId) -> Option<Reserved> {
        let number = self.by_job.remove(&(job, site))?;
        let claim = self.claims.get_mut(&(site, number))?;
        let processors = std::mem::take(&mut claim.processors);
        Some(Reserved { job, processors })
    }

    /// A claim ends; what it reserved till now, if the job was not granted.
    pub(crate) fn release(&mut self, site: u32, number: u64) -> Option<Reserved> {
        let Claim { job, processors } = self.claims.remove(&(site, number))?;
        if self.by_job.get(&(job, site)) == Some(&number) {
            self.by_job.remove(&(job, site));
        }
        (processors > 0).then_some(Reserved { job, processors })
    }
}

/// Processors that a claim kept for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reserved {
    pub(crate) job: JobId,
    pub(crate) processors: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_uses_up_the_offer_that_it_answers_and_no_other() {
        let mut asking = Asking::default();
        asking.request(2, 1, 7, 8);
        assert_eq!(asking.grant(2, 1, 6, 3), None, "of an earlier request");
        assert_eq!(asking.grant(1, 2, 7, 3), None, "the other way");
        assert_eq!(asking.grant(2, 1, 7, 3), Some(5));
        assert_eq!(asking.grant(2, 1, 7, 9), Some(0), "more than was offered");
        assert!(!asking.answer(2, 1, 6));
        assert!(asking.answer(2, 1, 7) && !asking.answer(2, 1, 7));
    }

    #[test]
    fn a_claim_reserves_until_the_job_is_granted_or_the_claim_ends() {
        let (one, other) = (JobId(1), JobId(2));
        let reserved = |job, processors| Some(Reserved { job, processors });
        let mut asking = Asking::default();
        assert_eq!(asking.claim(3, 1, one, 4), None);
        assert_eq!(asking.claim(3, 2, other, 5), None);
        assert_eq!(asking.award(4, one), None, "another site");
        assert_eq!(asking.award(3, one), reserved(one, 4));
        assert_eq!(asking.release(3, 1), None, "nothing is left");
        assert_eq!(asking.release(3, 2), reserved(other, 5));
        assert_eq!(asking.award(3, other), None, "the claim is over");
    }
}
