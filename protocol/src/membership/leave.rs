//! A site that leaves gives its waiting jobs to others and finishes what runs. Jobs that nobody present can hold wait
//! where they are, and are reported. It stays until all who are there know what it answered and took over.

use scheduler::{EventKind, JobId, JobSpec, Strategy, Time};

use crate::canary::Canary;
use crate::handover::Custody;
use crate::membership::Presence;
use crate::message::Message;
use crate::peer::Peer;

impl Peer {
    /// From now on this site takes no jobs; those that wait here go to others.
    pub(crate) fn leave(&mut self, now: Time) {
        if self.membership.is_none() || self.members().leaving {
            return;
        }
        self.members().leaving = true;
        self.count_absent();
        self.beat(now);
        self.fresh = true;
    }

    /// Whether this site leaves.
    pub fn is_leaving(&self) -> bool {
        self.membership.as_ref().is_some_and(|membership| membership.leaving)
    }

    /// Whether this site leaves and has nothing left to do: the driver may stop it.
    pub fn has_left(&self) -> bool {
        let Some(membership) = &self.membership else { return false };
        // Nobody else looks after the jobs that this site gave away.
        let answers_for_none = membership.wards.is_empty() && membership.reports_due(&self.config.grid) == 0;
        let empty = self.waiting() == 0 || self.has(Canary::LeavesEarly);
        self.is_leaving()
            && answers_for_none
            && self.running().next().is_none()
            && empty
            && self.ledger().is_settled()
            && self.is_heard()
    }

    /// Whether all who are there have this site's answers and know what it took over. If they did not, they would take
    /// over in vain what it executed.
    fn is_heard(&self) -> bool {
        let Some(membership) = self.membership.as_ref().filter(|membership| membership.lease.is_some())
        else {
            return true;
        };
        let took_over = membership.taken_over.len() as u64;
        self.others().filter(|&rank| self.presence(rank) != Presence::Gone).all(|rank| {
            let answered = self.ledger().tombs_below(self.site_at(rank), u64::MAX).next().is_none();
            answered && membership.sites[rank].knows >= took_over
        })
    }

    /// A site that leaves waits to hear which of its answers arrived.
    pub(super) fn tell_floor(&mut self, rank: usize) {
        let floor = self.ledger().floor_to(self.site_at(rank));
        if floor > 1 {
            self.send(rank, Message::Floor { floor });
        }
    }

    /// The turn of a site that leaves.
    pub(crate) fn turn_out(&mut self, now: Time) {
        self.evacuate(now);
        if self.lists.is_some() {
            self.publish(now);
        }
    }

    /// Gives every waiting job away that another site can hold.
    fn evacuate(&mut self, now: Time) {
        for job in self.waiting_jobs() {
            let Some(to) = self.room_elsewhere(&job) else { continue };
            if self.take_out(job).is_none() {
                continue;
            }
            let custody = self.custody.get(&job.id).copied().unwrap_or_default();
            self.route(now, to, job, custody);
        }
    }

    /// The site that takes a job when this one cannot: the next larger one that is there, else the smallest.
    fn room_elsewhere(&self, job: &JobSpec) -> Option<usize> {
        let sizes = self.config.grid.sizes();
        let wide =
            |&rank: &usize| rank != self.rank && sizes[rank] >= job.processors && self.is_reachable(rank);
        (self.rank..sizes.len()).chain(0..self.rank).find(wide)
    }

    /// Puts a job where it belongs that this site is the first owner of: here, to its home, or aside until somebody
    /// is there who can hold it.
    pub(crate) fn settle_in(&mut self, now: Time, job: JobSpec, custody: Custody) {
        let home = self.home_of(&job);
        if home.is_none() && self.membership.is_some() {
            self.event(EventKind::Stranded { job: job.id, processors: job.processors });
        }
        if self.pool.is_some() {
            // A job is its origin's: nobody is sent to its home. One that is stranded is offered until somebody comes.
            return self.pool_submitted(now, job);
        }
        let Some(home) = home else {
            self.fresh = true;
            return self.strand(job);
        };
        if self.keeps(home, &job) {
            self.enqueue(now, job);
            if self.balance.is_some() {
                self.balance_arrived();
            }
        } else {
            self.route(now, home, job, custody);
        }
    }

    pub(crate) fn strand(&mut self, job: JobSpec) {
        if self.has(Canary::StrandedForgotten) {
            return;
        }
        if let Some(membership) = &mut self.membership {
            membership.stranded.push(job);
        }
    }

    /// The widest site that was there had so many processors: tells which jobs of the global queue nobody can take now.
    pub(crate) fn strand_offers(&mut self, before: u32) {
        let after = self.widest_present();
        let offered = self.pool.iter().flat_map(|exchange| exchange.jobs());
        let lost: Vec<JobSpec> =
            offered.filter(|job| after < job.processors && job.processors <= before).copied().collect();
        for job in lost {
            self.event(EventKind::Stranded { job: job.id, processors: job.processors });
        }
    }

    /// Somebody came: jobs that waited for a site that can hold them may go.
    pub(crate) fn settle_stranded(&mut self, now: Time) {
        let Some(membership) = &mut self.membership else { return };
        let stranded = std::mem::take(&mut membership.stranded);
        for job in stranded {
            if self.home_of(&job).is_some() {
                let custody = self.custody.get(&job.id).copied().unwrap_or_default();
                self.settle_in(now, job, custody);
            } else {
                self.strand(job);
            }
        }
    }

    /// The common pool is where the smallest site is that is there: what waits here goes on to it.
    pub(crate) fn follow_pool(&mut self, now: Time) {
        let pooled = self.config.strategy == Strategy::CommonPool && self.membership.is_some();
        let host = (0..self.rank).find(|&rank| self.is_present(rank));
        let Some(host) = host.filter(|_| pooled) else { return };
        let jobs: Vec<JobSpec> = self.own.iter().copied().collect();
        for job in jobs {
            self.own.remove(job.processors, job.key()).expect("it waits here");
            let custody = self.custody.get(&job.id).copied().unwrap_or_default();
            self.route(now, host, job, custody);
        }
    }

    /// Jobs that wait here because nobody who is there is wide enough.
    pub fn stranded(&self) -> impl Iterator<Item = &JobSpec> {
        self.membership.iter().flat_map(|membership| &membership.stranded)
    }

    fn waiting_jobs(&self) -> Vec<JobSpec> {
        let mut jobs: Vec<JobSpec> = self.own.iter().chain(self.held.iter()).copied().collect();
        if let Some(membership) = &self.membership {
            jobs.extend(membership.stranded.iter().chain(membership.local.values()));
        }
        jobs.extend(self.pool.iter().flat_map(|exchange| exchange.jobs()));
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
        let membership = self.members();
        if let Some(place) = membership.stranded.iter().position(|waiting| waiting.id == job.id) {
            return Some(membership.stranded.remove(place));
        }
        if let Some(found) = membership.local.remove(&job.id) {
            // The local scheduler cannot forget a job; when it starts it, nothing happens.
            membership.withdrawn.insert(job.id);
            return Some(found);
        }
        if let Some(place) = self.held.iter().position(|waiting| waiting.id == job.id) {
            return self.held.remove(place);
        }
        if self.pool.is_some() {
            return self.pool_forget(job.id);
        }
        if self.balance.is_some() {
            self.balance_take(&job);
            return Some(job);
        }
        self.own.remove(job.processors, job.key())
    }
}
