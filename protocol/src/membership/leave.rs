//! A site that leaves gives its waiting jobs to others and finishes what runs. Jobs that nobody present can hold wait
//! where they are, and are reported. It stays until all who are there know what it answered and took over.

use std::collections::BTreeSet;

use scheduler::{JobId, JobSpec, Time};

use crate::core::Core;
use crate::engine::Engine;
use crate::engine::Family;
use crate::membership::Presence;
use crate::membership::failover::next_broker;
use crate::message::HandOverMessage;
use crate::mutant::Mutant;
use crate::rank::Rank;

impl Core {
    /// Whether this site leaves.
    pub(crate) fn is_leaving(&self) -> bool {
        self.view.presence(self.rank) == Presence::Leaving
    }

    /// Whether all who are there have this site's answers and know what it took over. If they did not, they would take
    /// over in vain what it executed.
    fn is_heard(&self) -> bool {
        let Some(membership) = self.membership.as_ref().filter(|membership| membership.lease.is_some())
        else {
            return true;
        };
        let took_over = membership.taken_over.len() as u64;
        self.view.others().filter(|&rank| self.presence(rank) != Presence::Gone).all(|rank| {
            let answered = self.ledger.tombstones_below(self.site_at(rank), u64::MAX).next().is_none();
            answered && membership.sites[rank].knows >= took_over
        })
    }

    /// A site that leaves waits to hear which of its answers arrived.
    pub(super) fn tell_floor(&mut self, rank: Rank) {
        let floor = self.ledger.floor_to(self.site_at(rank));
        if floor > 1 {
            self.send(rank, HandOverMessage::Floor { floor });
        }
    }

    /// The site that takes a job when this one cannot: the next larger one that is there, else the smallest. For a broker
    /// another one, if brokers stand in for each other.
    pub(crate) fn room_elsewhere(&self, job: &JobSpec) -> Option<Rank> {
        let failover = self.config.options.broker.failover;
        let broker = next_broker(&self.config.grid, failover, self.rank, |rank| self.is_reachable(rank));
        if broker.is_some() {
            return broker;
        }
        let wide = |&rank: &Rank| self.processors_of(rank) >= job.processors && self.is_reachable(rank);
        self.view.larger().chain(self.view.smaller()).find(wide)
    }

    pub(crate) fn orphan(&mut self, job: JobSpec) {
        if self.has(Mutant::OrphanedForgotten) {
            return;
        }
        if let Some(membership) = &mut self.membership {
            membership.orphaned.push(job);
        }
    }

    /// Jobs that wait here because nobody who is there is wide enough.
    pub(crate) fn orphaned(&self) -> impl Iterator<Item = &JobSpec> {
        self.membership.iter().flat_map(|membership| &membership.orphaned)
    }
}

impl<F: Family> Engine<F> {
    /// From now on this site takes no jobs; those that wait here go to others.
    pub(crate) fn leave(&mut self, now: Time) {
        if self.core.membership.is_none() || self.core.is_leaving() {
            return;
        }
        self.sees(self.core.rank, Presence::Leaving);
        self.heartbeat(now);
        self.core.fresh = true;
    }

    /// Whether this site leaves and has nothing left to do: the driver may stop it.
    pub(crate) fn has_left(&self) -> bool {
        let Some(membership) = &self.core.membership else { return false };
        // Nobody else looks after the jobs that this site gave away.
        let answers_for_none = membership.guarded_jobs.is_empty() && self.core.reports_due() == 0;
        let empty = self.waiting() == 0 || self.core.has(Mutant::LeavesEarly);
        self.core.is_leaving()
            && answers_for_none
            && self.core.running.is_empty()
            && empty
            && (!F::owes(self) || self.core.has(Mutant::LeavesEarly))
            && self.core.ledger.is_settled()
            && self.core.is_heard()
    }

    /// The turn of a site that leaves.
    pub(crate) fn turn_out(&mut self, now: Time) {
        self.evacuate(now);
        F::turn_out(self, now);
    }

    /// Gives every waiting job away that another site can hold.
    fn evacuate(&mut self, now: Time) {
        let mut told = BTreeSet::new();
        for job in self.waiting_jobs() {
            let Some(to) = F::elsewhere(&self.core, &job) else { continue };
            if self.take_out(job).is_none() {
                continue;
            }
            // A broker that does not know yet that this site leaves would send the job back at once.
            if self.core.takes_parts() && told.insert(to) {
                let knows = self.core.members().sites[to].knows;
                self.core.tell_presence(to, usize::try_from(knows).unwrap_or(usize::MAX));
            }
            let custody = self.core.custody_of(job.id);
            self.core.route(now, to, job, custody);
        }
    }

    /// Somebody came: jobs that waited for a site that can hold them may go.
    pub(crate) fn settle_orphaned(&mut self, now: Time) {
        let Some(membership) = &mut self.core.membership else { return };
        let orphaned = std::mem::take(&mut membership.orphaned);
        for job in orphaned {
            if F::belongs(&self.core, self.core.home_of(&job), &job).is_some() {
                let custody = self.core.custody_of(job.id);
                self.settle_in(now, job, custody);
            } else {
                self.core.orphan(job);
            }
        }
    }

    /// Everything that waits here, in queue order.
    fn waiting_jobs(&self) -> Vec<JobSpec> {
        let mut jobs: Vec<JobSpec> = self.family.jobs().chain(self.core.orphaned()).copied().collect();
        jobs.sort_unstable_by_key(JobSpec::key);
        jobs
    }

    /// Takes a waiting job out of wherever it waits. None if it does not.
    pub(super) fn withdraw(&mut self, job: JobId) -> Option<JobSpec> {
        let found = self.waiting_jobs().into_iter().find(|waiting| waiting.id == job)?;
        self.take_out(found)
    }

    /// The same of a job that waits here.
    fn take_out(&mut self, job: JobSpec) -> Option<JobSpec> {
        let membership = self.core.members();
        if let Some(place) = membership.orphaned.iter().position(|waiting| waiting.id == job.id) {
            return Some(membership.orphaned.remove(place));
        }
        F::take(self, &job)
    }
}
