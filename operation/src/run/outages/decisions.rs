//! What the operator does about a site that never comes back: its users go to the next larger site at once, and what is in
//! its journal is adopted after the lease, by the rule that the simulator follows, too ([`protocol::membership::operator`]).
//! Who adopts what is kept before anybody hears of it.

use std::collections::BTreeSet;

use node::control::api::Adoption;
use protocol::membership::operator;
use scheduler::event::EndCause;
use scheduler::{Event, EventKind, JobId, JobSpec, SiteId, Time, TimedJob};

use super::super::past::{Loss, Parted};
use super::{Observer, Outages};
use crate::Fleet;
use crate::fleet::{FleetError, Whereabouts};

impl Outages {
    /// A site has ended and never comes back: its users go elsewhere. If its journal is known to be `lost`, whatever is in
    /// its place is not looked at.
    ///
    /// # Errors
    /// If its journal cannot be read.
    pub fn bury(
        &mut self,
        site: SiteId,
        how: EndCause,
        at: Time,
        lost: Option<&FleetError>,
        fleet: &mut Fleet,
        observer: &mut impl Observer,
    ) -> Result<(), FleetError> {
        let mut hear = |event: Event| {
            self.observe(&event);
            observer.event(event);
        };
        let remains = match lost {
            Some(error) => Err(error.to_string()),
            None => match fleet.give_up(site, &mut hear) {
                Ok(remains) => Ok(remains),
                Err(error) if error.is_about_a_journal() => Err(error.to_string()),
                Err(error) => return Err(error),
            },
        };
        match remains {
            Ok(mut remains) => {
                let arrivals = std::mem::take(&mut remains.arrivals);
                self.remains.insert(site, remains);
                self.part(site, at, true, arrivals, fleet);
            }
            Err(reason) => {
                eprintln!(
                    "note: {reason}\nothers take over what it had after the lease; a job that it had and whose end is not \
                     known may run twice"
                );
                fleet.write_off(site, &mut hear);
                let arrivals = self.never_submitted(site, at);
                self.part(site, at, true, arrivals, fleet);
                if let Some(parted) = self.past.parted.last_mut() {
                    parted.lost = true;
                }
                self.has_been_told(site);
            }
        }
        if self.past.how_ended(site) != Some(EndCause::Found) {
            self.say(site, at, EventKind::Ended { how });
        }
        observer.note(&self.past);
        Ok(())
    }

    /// Jobs that a site was to submit and did not, as it had ended when it was time.
    pub(super) fn never_submitted(&self, site: SiteId, ended: Time) -> Vec<TimedJob> {
        let to_come =
            self.meant.values().filter(|(job, _)| job.submit > ended && !self.submitted.contains(&job.id));
        let held = to_come.filter(|(job, meant)| {
            let has = |other: SiteId| self.past.may_have_submitted(other, job);
            self.past.holder(&self.grid, self.failover, *meant, job, has) == Some(site)
        });
        held.map(|(job, _)| self.timed(*job)).collect()
    }

    fn timed(&self, job: JobSpec) -> TimedJob {
        TimedJob { spec: job, run_time: self.run_times.get(&job.id).copied().unwrap_or(job.requested) }
    }

    /// Jobs that were submitted, or may have been by a site that lost its journal, and of whose end nobody knows.
    fn unended(&self) -> Vec<JobSpec> {
        let lost = self.past.lost();
        let may_have = |job: &JobSpec, meant| {
            let has = |site| lost.contains(&site) && self.past.may_have_submitted(site, job);
            self.past.holder(&self.grid, self.failover, meant, job, has).is_none()
        };
        let jobs = self.meant.values().filter(|(job, _)| !self.over.contains(&job.id));
        let come = jobs.filter(|(job, meant)| self.submitted.contains(&job.id) || may_have(job, *meant));
        come.map(|(job, _)| *job).collect()
    }

    /// A site never comes back: its users go to others. They hear of it at the next look at the nodes.
    pub(super) fn part(
        &mut self,
        site: SiteId,
        at: Time,
        died: bool,
        arrivals: Vec<TimedJob>,
        fleet: &mut Fleet,
    ) {
        self.past.leaving.remove(&site);
        let others = self.grid.sites().iter().map(|other| other.id);
        let there: BTreeSet<SiteId> = others.filter(|other| self.stays(fleet, *other)).collect();
        for job in arrivals {
            let there = |other: SiteId| there.contains(&other);
            if let Some(to) = operator::successor(&self.grid, self.failover, site, &job.spec, there) {
                self.elsewhere.entry(to).or_default().push(job);
            }
        }
        self.past.parted.push(Parted { site, at, there, died, lost: false, settled: false });
    }

    /// Others adopt what sites have left whose lease is over. Who adopts what is kept before anybody hears of it: told
    /// again it must be the same, or two would adopt a job under the same epoch.
    pub(super) fn settle(
        &mut self,
        fleet: &mut Fleet,
        observer: &mut impl Observer,
    ) -> Result<(), FleetError> {
        self.unnoted |= self.past.adopting.is_empty() && self.decide(fleet, observer);
        if self.unnoted && !observer.note(&self.past) {
            return Ok(());
        }
        self.unnoted = false;
        for (to, adoptions) in self.past.adopting.clone() {
            match fleet.whereabouts(to) {
                Whereabouts::Up => {
                    // The same holds here, and the same is told again.
                    if fleet.adopt_jobs(to, &adoptions).is_err() {
                        continue;
                    }
                    let name = &self.grid.site(to).name;
                    eprintln!(
                        "note: site {name} adopts {} jobs of sites that are gone for good",
                        adoptions.len()
                    );
                    let epochs = adoptions.iter().map(|adoption| (adoption.job.spec.id, adoption.epoch));
                    self.past.adopted.extend(epochs);
                }
                // If it was told, its journal says so: after its own lease.
                Whereabouts::Gone => {}
                Whereabouts::Down | Whereabouts::Paused => continue,
            }
            self.past.adopting.remove(&to);
            observer.note(&self.past);
        }
        Ok(())
    }

    /// Decides who adopts what, if there is anything to be decided.
    fn decide(&mut self, fleet: &mut Fleet, observer: &mut impl Observer) -> bool {
        let Some(lease) = self.lease else { return false };
        let now = self.now();
        let is_over = |parted: &Parted| parted.died && now.since(parted.at) >= lease;
        let waits = self.unheard_at.is_some_and(|at| now.since(at) < lease);
        let is_settled = |loss: &Loss| loss.settled || waits || now.since(loss.at) < lease;
        let unsettled = self.past.parted.iter().any(|parted| is_over(parted) && !parted.settled);
        if !unsettled && self.past.losses.iter().all(is_settled) {
            return false;
        }
        // With nobody there it waits for somebody to come.
        if !self.grid.sites().iter().any(|other| self.is_there(fleet, other.id)) {
            return false;
        }
        let over: BTreeSet<SiteId> =
            self.past.parted.iter().filter(|parted| is_over(parted)).map(|parted| parted.site).collect();
        let of_over = self.remains.iter().filter(|(site, _)| over.contains(site));
        let journals = of_over.map(|(&site, remains)| (site, &remains.durable)).collect();
        let there = |site| self.is_there(fleet, site);
        let has_lost = |site| self.past.losses.iter().any(|loss| loss.site == site);
        let adoptions = operator::adoptions_after_losses(
            &self.grid,
            self.failover,
            &journals,
            &self.past.adopted,
            there,
            has_lost,
        );
        let Some((mut missing, is_heard)) = self.missing(fleet, &over, observer) else { return false };
        let listed: BTreeSet<JobId> = adoptions.iter().map(|adoption| adoption.job.id).collect();
        missing.retain(|adoption| !listed.contains(&adoption.job.id));
        for operator::Adoption { job, epoch, to } in adoptions.into_iter().chain(missing) {
            let adoption = Adoption { job: self.timed(job), epoch };
            self.past.adopting.entry(to).or_default().push(adoption);
        }
        for parted in self.past.parted.iter_mut().filter(|parted| over.contains(&parted.site)) {
            parted.settled = true;
        }
        self.unheard_at = (!is_heard).then_some(now);
        for loss in self.past.losses.iter_mut().filter(|loss| is_heard && now.since(loss.at) >= lease) {
            loss.settled = true;
        }
        true
    }

    /// What others must adopt of sites whose journals are lost: jobs that no journal has. A job may change sites while the
    /// journals are read one after another, so it must be missing twice; and it may have ended before that, so the events
    /// of all nodes must have been fetched between, of those that do not answer from their journals. None until then. With it,
    /// whether all have heard of the losses: who has not may still drop a copy that is counted here.
    fn missing(
        &mut self,
        fleet: &mut Fleet,
        over: &BTreeSet<SiteId>,
        observer: &mut impl Observer,
    ) -> Option<(Vec<operator::Adoption>, bool)> {
        let lost = self.past.lost();
        let given_up = lost.iter().find(|site| over.contains(site)).copied();
        let first = given_up.or_else(|| self.past.losses.first().map(|loss| loss.site));
        let Some(first) = first else { return Some((Vec::new(), true)) };
        if self.looks == 0 || self.suspects.as_ref().is_some_and(|(looks, _)| *looks == self.looks) {
            return None;
        }
        let read = fleet.read_events_of_absent(&mut |event| {
            self.observe(&event);
            observer.event(event);
        });
        let journals = match read.and_then(|()| fleet.journals()) {
            Ok(journals) => journals,
            Err(error) => {
                if !std::mem::replace(&mut self.unreadable, true) {
                    eprintln!("note: others take over what was lost when all journals can be read: {error}");
                }
                return None;
            }
        };
        // What a site had when it was given up counts no more, also if its journal is put back.
        let journals = journals.iter().filter(|(site, _)| !lost.contains(site));
        let journals = journals.map(|(site, durable)| (*site, durable)).collect();
        let there = |site| self.is_there(fleet, site);
        let mut missing = operator::missing(
            &self.grid,
            self.failover,
            first,
            self.unended(),
            &journals,
            &self.past.adopted,
            there,
        );
        match self.suspects.take() {
            Some((_, suspects)) => {
                missing.retain(|adoption| suspects.contains(&adoption.job.id));
                let stays = |site| fleet.whereabouts(site) != Whereabouts::Gone;
                Some((missing, operator::all_know_of_losses(&journals, stays)))
            }
            None => {
                let suspects = missing.iter().map(|adoption| adoption.job.id).collect();
                self.suspects = Some((self.looks, suspects));
                None
            }
        }
    }

    /// Whether a site can be told something and stays.
    fn is_there(&self, fleet: &Fleet, site: SiteId) -> bool {
        fleet.whereabouts(site) == Whereabouts::Up && !self.past.leaving.contains(&site)
    }
}
