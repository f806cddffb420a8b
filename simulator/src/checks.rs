//! What is asserted while a simulation runs, over the true state of all peers.
//!
//! Cheap checks run always: a job starts once, not before its submission, on processors that exist. Full checks
//! walk every peer after every step: each job has exactly one owner, or is in a transfer that nobody answered.

use std::collections::{BTreeMap, BTreeSet};

use protocol::Peer;
use scheduler::{JobId, SiteId, Time};
use serde::{Deserialize, Serialize};

/// How much is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Checks {
    /// Single start, start not before submission, capacity, and every job finished at the end.
    #[default]
    Cheap,
    /// Also conservation and each peer's own invariants after every step, and I1 to I10 while messages are free.
    Full,
}

/// Something that must not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Single start: a job starts that was started before.
    #[error("at {at}: job {job} starts at site {site}, but it was started before")]
    StartedTwice {
        /// When it starts again, in trace time.
        at: Time,
        /// The job that starts again.
        job: JobId,
        /// The site that starts it again.
        site: SiteId,
    },
    /// A job starts before its submission.
    #[error("at {at}: job {job} starts at site {site} before it is submitted")]
    StartedEarly {
        /// When it starts, in trace time.
        at: Time,
        /// The job that is not submitted yet.
        job: JobId,
        /// The site that starts it.
        site: SiteId,
    },
    /// Capacity: a site executes on more processors than it has.
    #[error("at {at}: site {site} uses {used} of its {processors} processors")]
    Capacity {
        /// When it does, in trace time.
        at: Time,
        /// The site with too few processors.
        site: SiteId,
        /// Processors in use.
        used: u64,
        /// Processors there are.
        processors: u32,
    },
    /// Conservation: nobody has a job that was submitted and not finished.
    #[error("at {at}: job {job} is lost: no site owns it and no transfer holds it")]
    Lost {
        /// When this was seen, in trace time.
        at: Time,
        /// The job that nobody has.
        job: JobId,
    },
    /// Conservation: two sites own a job.
    #[error("at {at}: job {job} is owned by site {first} and by site {second}")]
    OwnedTwice {
        /// When this was seen, in trace time.
        at: Time,
        /// The job with two owners.
        job: JobId,
        /// One of the two owners.
        first: SiteId,
        /// The other of the two owners.
        second: SiteId,
    },
    /// A view: a site turns to one that it does not know. Jobs may be handed over to all.
    #[error("at {at}: site {site} says {message} to site {to}, which it does not know")]
    Stranger {
        /// When it does, in trace time.
        at: Time,
        /// Who says something.
        site: SiteId,
        /// To whom.
        to: SiteId,
        /// What, by name.
        message: &'static str,
    },
    /// A proved invariant of the stealing algorithm, while messages are free.
    #[error("at {at}: {violation}")]
    Invariant {
        /// The instant of the decision, in trace time.
        at: Time,
        /// Which, and where.
        violation: scheduler::ideal::invariants::Violation,
    },
    /// Liveness: a run ended with jobs that never finished.
    #[error("the run ended with {unfinished} unfinished jobs, the first is job {job}")]
    Unfinished {
        /// How many jobs never finished.
        unfinished: usize,
        /// One of them.
        job: JobId,
    },
    /// Nothing is wrong, and nothing happens any more: peers ask each other in vain.
    #[error(
        "nothing happened from {since} s to {now} s but asking in vain (the stall limit of virtual time); {unfinished} \
         jobs have not ended{}; is a link cut?",
        site.as_ref().map_or(String::new(), |site| format!(", {site} waits for an answer"))
    )]
    Stalled {
        /// When something was last done, in trace time.
        since: Time,
        /// When the run was ended, in trace time.
        now: Time,
        /// How many jobs have not ended.
        unfinished: usize,
        /// One of those that wait for an answer, by name.
        site: Option<String>,
    },
    /// A peer lives somewhere else and could not be told something.
    #[error("site {site} cannot be reached: {reason}")]
    Host {
        /// The site that cannot be told.
        site: SiteId,
        /// What failed, in words.
        reason: String,
    },
    /// Liveness: a run ended with messages that still wait for an answer.
    #[error("the run ended, but site {site} still waits for an answer")]
    NotQuiet {
        /// The site that waits for an answer.
        site: SiteId,
    },
}

/// Counts processors and starts from what executors were told, not from what peers say of themselves.
#[derive(Clone, Debug)]
pub(crate) struct Observer {
    started: Vec<bool>,
    used: Vec<u64>,
    /// Jobs of which some parts have started, by their places: those sites, and processors that are missing.
    parts: BTreeMap<usize, (BTreeSet<SiteId>, u32)>,
}

impl Observer {
    pub(crate) fn new(jobs: usize, sites: usize) -> Observer {
        Observer { started: vec![false; jobs], used: vec![0; sites], parts: BTreeMap::new() }
    }

    /// The place of the first job that was not started.
    pub(crate) fn first_unstarted(&self) -> Option<usize> {
        self.started.iter().position(|started| !started)
    }

    /// A start: `place` in the workload, at a site with `limit` processors.
    pub(crate) fn start(
        &mut self,
        at: Time,
        place: usize,
        job: &scheduler::JobSpec,
        site: SiteId,
        limit: u32,
    ) -> Result<(), Violation> {
        self.start_part(at, place, job, site, limit, job.processors).map(drop)
    }

    /// The same of a part of a job that needs so many processors at several sites. Whether it was the last part.
    pub(crate) fn start_part(
        &mut self,
        at: Time,
        place: usize,
        job: &scheduler::JobSpec,
        site: SiteId,
        limit: u32,
        whole: u32,
    ) -> Result<bool, Violation> {
        let (sites, missing) = self.parts.entry(place).or_insert((BTreeSet::new(), whole));
        if self.started[place] || job.processors > *missing || !sites.insert(site) {
            return Err(Violation::StartedTwice { at, job: job.id, site });
        }
        if at < job.submit {
            return Err(Violation::StartedEarly { at, job: job.id, site });
        }
        *missing -= job.processors;
        if *missing == 0 {
            self.parts.remove(&place);
            self.started[place] = true;
        }
        let used = &mut self.used[site.index()];
        *used += u64::from(job.processors);
        if *used > u64::from(limit) {
            return Err(Violation::Capacity { at, site, used: *used, processors: limit });
        }
        Ok(self.started[place])
    }

    pub(crate) fn end(&mut self, site: SiteId, processors: u32) {
        self.used[site.index()] -= u64::from(processors);
    }
}

/// Each job that is submitted and not finished has one owner, or is in a transfer.
///
/// # Errors
/// The first job without owner and transfer, or with two owners.
pub fn conservation<'a>(
    at: Time,
    peers: impl Iterator<Item = &'a Peer> + Clone,
    unfinished: impl Iterator<Item = JobId>,
) -> Result<(), Violation> {
    let mut owner: BTreeMap<JobId, SiteId> = BTreeMap::new();
    for peer in peers.clone() {
        let site = peer.site();
        let here =
            peer.own().iter().map(|job| job.id).chain(peer.held().map(|job| job.id)).chain(peer.pooled());
        let here = here.chain(peer.orphaned().map(|job| job.id));
        for job in here.chain(peer.running()) {
            if let Some(first) = owner.insert(job, site) {
                return Err(Violation::OwnedTwice { at, job, first, second: site });
            }
        }
    }
    let transfers: std::collections::BTreeSet<JobId> =
        peers.flat_map(|peer| peer.ledger().jobs_out().map(|(_, job)| job)).collect();
    for job in unfinished {
        if !owner.contains_key(&job) && !transfers.contains(&job) {
            return Err(Violation::Lost { at, job });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::handover::{Custody, Ledger};
    use protocol::message::{QueueState, Rest, StealMessage};
    use protocol::{Input, Message, PeerConfig, Terms};
    use scheduler::{Grid, JobSpec, Labels, Span, Strategy};

    use super::*;

    const SMALL: SiteId = SiteId(1);
    const LARGE: SiteId = SiteId(2);
    const NOW: Time = Time::from_secs(5);

    /// Its home is the small site.
    fn job(id: u64) -> JobSpec {
        JobSpec {
            id: JobId(id),
            submit: NOW,
            processors: 2,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: SMALL,
            payload: 0,
        }
    }

    fn peer(site: SiteId) -> Peer {
        Peer::new(PeerConfig {
            site,
            terms: Terms::new(Arc::new(Grid::of_sizes(&[3, 8]).unwrap()), Strategy::default()),
        })
    }

    fn tell(peer: &mut Peer, input: Input) {
        peer.handle(NOW, input);
        while peer.poll_output().is_some() {}
    }

    /// A transfer that nobody wrote down, as a broken sender would make it.
    fn grant(job: JobSpec) -> Input {
        let (_, transfer) = Ledger::new().grant(LARGE, job, Custody::default());
        let state = QueueState { version: 1, rest: Rest::Empty, lead: 0 };
        let message =
            Message::Steal(StealMessage::Grant { transfers: vec![transfer], answers: None, state, floor: 1 });
        Input::Message { from: SMALL, message }
    }

    fn conserved(peers: &[Peer], unfinished: &[u64]) -> Result<(), Violation> {
        conservation(NOW, peers.iter(), unfinished.iter().copied().map(JobId))
    }

    #[test]
    fn a_second_start_is_seen_even_at_another_site() {
        let mut observer = Observer::new(2, 2);
        assert_eq!(observer.start(NOW, 0, &job(1), SMALL, 3), Ok(()));
        observer.end(SMALL, 2);
        let twice = Violation::StartedTwice { at: NOW, job: JobId(1), site: LARGE };
        assert_eq!(observer.start(NOW, 0, &job(1), LARGE, 8), Err(twice));
    }

    #[test]
    fn a_start_before_the_submission_is_seen() {
        let at = NOW - Span::from_micros(1);
        let early = Violation::StartedEarly { at, job: JobId(1), site: SMALL };
        assert_eq!(Observer::new(1, 2).start(at, 0, &job(1), SMALL, 3), Err(early));
    }

    #[test]
    fn processors_that_do_not_exist_are_seen() {
        let mut observer = Observer::new(3, 2);
        assert_eq!(observer.start(NOW, 0, &job(1), SMALL, 3), Ok(()));
        assert_eq!(observer.start(NOW, 1, &job(2), LARGE, 8), Ok(()), "sites are counted apart");
        let full = Violation::Capacity { at: NOW, site: SMALL, used: 4, processors: 3 };
        assert_eq!(observer.start(NOW, 2, &job(3), SMALL, 3), Err(full));
    }

    #[test]
    fn parts_of_a_job_are_one_start_and_one_too_many_is_seen() {
        let mut observer = Observer::new(1, 2);
        let part = |processors| JobSpec { processors, ..job(1) };
        let twice = |site| Err(Violation::StartedTwice { at: NOW, job: JobId(1), site });
        assert_eq!(observer.start_part(NOW, 0, &part(2), SMALL, 3, 6), Ok(false));
        assert_eq!(observer.first_unstarted(), Some(0), "not all of it runs");
        assert_eq!(observer.start_part(NOW, 0, &part(2), SMALL, 3, 6), twice(SMALL), "the same part");
        assert_eq!(observer.start_part(NOW, 0, &part(5), LARGE, 8, 6), twice(LARGE), "more than is missing");
        assert_eq!(observer.start_part(NOW, 0, &part(4), LARGE, 8, 6), Ok(true));
        assert_eq!(observer.first_unstarted(), None);
        assert_eq!(observer.start_part(NOW, 0, &part(1), LARGE, 8, 6), twice(LARGE));
    }

    #[test]
    fn a_job_that_nobody_has_is_lost() {
        let mut peers = [peer(SMALL), peer(LARGE)];
        tell(&mut peers[0], Input::Submitted(job(1)));
        assert_eq!(conserved(&peers, &[1]), Ok(()));
        assert_eq!(conserved(&peers, &[1, 2]), Err(Violation::Lost { at: NOW, job: JobId(2) }));
    }

    #[test]
    fn a_job_in_an_unanswered_transfer_is_not_lost() {
        let mut peers = [peer(SMALL), peer(LARGE)];
        tell(&mut peers[1], Input::Submitted(job(1)));
        assert_eq!(peers[1].waiting(), 0, "it is on its way home");
        assert_eq!(conserved(&peers, &[1]), Ok(()));
    }

    #[test]
    fn a_job_with_two_owners_is_seen_waiting_or_running() {
        let twice = Err(Violation::OwnedTwice { at: NOW, job: JobId(1), first: SMALL, second: LARGE });
        let mut peers = [peer(SMALL), peer(LARGE)];
        tell(&mut peers[0], Input::Submitted(job(1)));
        tell(&mut peers[1], grant(job(1)));
        assert_eq!(conserved(&peers, &[1]), twice);
        tell(&mut peers[0], Input::Turn);
        assert_eq!(peers[0].running().count(), 1);
        assert_eq!(conserved(&peers, &[1]), twice);
        tell(&mut peers[0], Input::Completed(JobId(1)));
        assert_eq!(conserved(&peers, &[1]), Ok(()), "one owner is left");
    }
}
