//! Whether a peer and its journal say the same. For observers: a peer never asks.

use crate::journal::{Durable, Kept, Place};
use crate::peer::Peer;

impl Peer {
    /// Compares the peer with what all its facts so far say.
    ///
    /// # Errors
    /// The first difference, in words. Then a crash would change what this site owns or has promised.
    pub fn agrees_with(&self, durable: &Durable) -> Result<(), String> {
        self.agrees_among_liars(durable)?;
        self.core().membership.as_ref().map_or(Ok(()), |membership| membership.keeps_no_void_copy(durable))
    }

    /// The same where a site lies: one that says of a job that it was taken over, before it is submitted, makes it void
    /// where it then waits.
    ///
    /// # Errors
    /// As [`Peer::agrees_with`].
    pub fn agrees_among_liars(&self, durable: &Durable) -> Result<(), String> {
        if durable.incarnation != Some(self.incarnation()) {
            return Err(format!(
                "it is in incarnation {}, its journal in {:?}",
                self.incarnation(),
                durable.incarnation
            ));
        }
        for job in
            self.own().iter().map(|job| job.id).chain(self.held().map(|job| job.id)).chain(self.pooled())
        {
            match durable.jobs.get(&job) {
                Some(kept) if kept.started.is_none() => {}
                Some(_) => return Err(format!("job {job} waits, but is written down as started")),
                None => return Err(format!("job {job} waits, but is not written down")),
            }
        }
        for job in self.running() {
            if durable.jobs.get(&job).is_none_or(|kept| kept.started.is_none()) {
                return Err(format!("job {job} runs, but is not written down as started"));
            }
        }
        let (here, written) = (self.waiting() + self.apart() + self.running().count(), durable.jobs.len());
        if here != written {
            return Err(format!("{here} jobs are here, {written} are written down"));
        }
        durable.jobs.values().try_for_each(|kept| self.agrees_on(kept))?;
        if *self.ledger() != durable.ledger {
            return Err("transfers differ from those written down".to_owned());
        }
        let routes =
            self.core().routed.iter().map(|&(to, number)| (self.core().site_at(to), number)).collect();
        if durable.routes != routes {
            return Err("routes differ from those written down".to_owned());
        }
        self.family_agrees_with(durable)?;
        self.core().membership.as_ref().map_or(Ok(()), |membership| membership.agrees_with(durable))
    }

    fn agrees_on(&self, kept: &Kept) -> Result<(), String> {
        let job = kept.job.id;
        if self.core().custody_of(job) != kept.custody {
            return Err(format!("the history of job {job} differs from the one written down"));
        }
        let is_held = self.held().any(|held| held.id == job);
        let must = kept.started.is_none() && kept.place == Place::Held;
        if is_held != must {
            return Err(format!("job {job} waits elsewhere than where it is written down"));
        }
        Ok(())
    }
}
