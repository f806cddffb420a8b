//! Who is responsible for a job, and what happens when its holder is gone.
//!
//! The **guardian** of a job is its first owner: its home by size, or where no strategy speaks of homes the site where
//! it was submitted. It knows which site holds each of its jobs ([`Guarded`]), from its own grants and from the
//! [`Report`]s of others, which are repeated until it has taken note. When a holder is gone the guardian takes the
//! job over under the next epoch and lets everybody know; copies of older epochs are void unless they run.
//!
//! | job at its guardian | event | then |
//! |---|---|---|
//! | owned | grant to h | guarded job at h |
//! | guarded job at h | h declined, or the job came back | owned |
//! | guarded job at h | report: held by k, newer by (epoch, moves) | guarded job at k |
//! | guarded job at h | report: done in this epoch or a later one | forgotten; transfers of it need no answer |
//! | neither, and not here; or it moved on twice | report: held by k | told that it has ended: a transfer needs no answer |
//! | guarded job at h | h is gone | owned, under the site's next epoch; all others: void below it |
//!
//! Of a guardian that never comes back the operator lets others adopt the jobs, see [`super::operator`]. While the
//! receiver of a transfer is gone, its sender asks the guardian whether the job went on from there, and takes it over if
//! the guardian knows nothing of it, or is gone, too.

use std::collections::BTreeSet;

use scheduler::{EventKind, JobId, JobSpec, SiteId, Time};

use super::Presence;
use super::message::REPORTS_MAX;
use super::operator::EPOCHS_PER_ADOPTION;
use crate::bounds::EPOCH_MAX;
use crate::core::Core;
use crate::engine::Engine;
use crate::engine::Family;
use crate::handover::{Answer, Custody, Record};
use crate::journal::{Fact, Guarded, Place};
use crate::message::{MembershipMessage, Report, Transfer, Void};
use crate::mutant::Mutant;
use crate::numbers::{JOURNALS_MAX, journal_of};
use crate::rank::Rank;
use crate::timers::Timer;

/// The epoch under which a site takes over a job of this epoch. Each site has epochs of its own, so that two which take
/// it over without hearing of each other stay apart, however often they do.
pub fn next_epoch(epoch: u32, site: SiteId, sites: usize) -> u32 {
    let sites = u32::try_from(sites).unwrap_or(u32::MAX);
    let next = epoch.saturating_add(1);
    next.saturating_add((site.0 % sites + sites - next % sites) % sites)
}

impl Core {
    fn keeps_guarded(&self) -> bool {
        self.membership.as_ref().is_some_and(|membership| membership.lease.is_some())
    }

    /// This site gave a job away.
    pub(crate) fn guarded_out(&mut self, to: SiteId, transfer: &Transfer, custody: Custody) {
        if self.keeps_guarded() && custody.guardian.is_none() {
            let guarded =
                Guarded { job: transfer.job, epoch: transfer.epoch, moves: transfer.moves, holder: to };
            self.write(Fact::Guarded(guarded));
            self.members().guarded_jobs.insert(transfer.job.id, guarded);
        }
    }

    /// This site has a job, or nobody need care any more.
    pub(crate) fn guarded_back(&mut self, job: JobId) {
        if let Some(membership) = &mut self.membership
            && membership.guarded_jobs.remove(&job).is_some()
        {
            self.write(Fact::Unguarded { job });
        }
    }

    /// A transfer of this site was accepted: whoever is responsible must know, if it is neither of the two.
    pub(crate) fn guarded_settled(&mut self, to: SiteId, transfer: &Transfer) {
        match transfer.guardian {
            // The receiver is responsible now.
            None => self.guarded_back(transfer.job.id),
            Some(guardian) if guardian != to => self.guarded_at(to, transfer, guardian),
            Some(_) => {}
        }
    }

    fn guarded_at(&mut self, to: SiteId, transfer: &Transfer, guardian: SiteId) {
        if self.keeps_guarded() && guardian != self.site() {
            self.report(Report {
                job: transfer.job.id,
                guardian,
                epoch: transfer.epoch,
                moves: transfer.moves,
                holder: to,
                done: false,
            });
        }
    }

    /// A transfer was declined: whoever is responsible may have been told that the receiver has the job.
    pub(crate) fn guarded_returned(&mut self, job: JobId, custody: Custody) {
        match custody.guardian {
            None => self.guarded_back(job),
            Some(guardian) if self.keeps_guarded() => {
                let Custody { epoch, moves, .. } = custody;
                self.report(Report { job, guardian, epoch, moves, holder: self.site(), done: false });
            }
            Some(_) => {}
        }
    }

    /// A job that executes here, as wide as it does, whatever others made of it. None if it does not.
    fn as_it_runs(&self, job: JobSpec) -> Option<JobSpec> {
        self.runs_with(job.id).map(|processors| JobSpec { processors, ..job })
    }

    /// A job ended here, or was given up.
    pub(crate) fn guarded_done(&mut self, job: JobId, custody: Custody) {
        if !self.keeps_guarded() {
            return;
        }
        if let Some(guardian) = custody.guardian {
            let Custody { epoch, moves, .. } = custody;
            self.report(Report { job, guardian, epoch, moves, holder: self.site(), done: true });
        }
        self.members().unheard.ended(job);
    }

    /// A job came by a route.
    pub(crate) fn guarded_came(&mut self, from: SiteId, transfer: &Transfer) {
        if self.keeps_guarded() && transfer.guardian.is_none() {
            self.members().unheard.came(transfer.job.id, from, transfer.number);
        }
    }

    /// A site asks for answers to its transfers below this number no more.
    pub(crate) fn guarded_heard(&mut self, from: SiteId, floor: u64) {
        if let Some(membership) = &mut self.membership {
            membership.unheard.heard(from, floor);
        }
    }

    pub(super) fn report(&mut self, report: Report) {
        let known = self.members().reports.get(&report.job).copied();
        if known.is_some_and(|known| {
            (known.epoch, known.moves, known.done) >= (report.epoch, report.moves, report.done)
        }) {
            return;
        }
        self.write(Fact::Reports(report));
        self.members().reports.insert(report.job, report);
        let guardian = self.rank_of(report.guardian);
        self.send(guardian, MembershipMessage::Reports { reports: vec![report] });
    }

    /// How much must still be told, but to sites that are gone.
    pub(crate) fn reports_due(&self) -> usize {
        let reports = self.membership.iter().flat_map(|membership| membership.reports.values());
        reports.filter(|report| self.presence(self.rank_of(report.guardian)) != Presence::Gone).count()
    }

    /// Repeats to a site what it must know of its jobs.
    pub(super) fn tell_reports(&mut self, rank: Rank) {
        let site = self.site_at(rank);
        let reports: Vec<Report> = self
            .members()
            .reports
            .values()
            .filter(|report| report.guardian == site)
            .take(REPORTS_MAX)
            .copied()
            .collect();
        if !reports.is_empty() {
            self.send_again(rank, MembershipMessage::Reports { reports }, true);
        }
    }

    /// Whether a job of this site's has ended, or was granted by whoever has it by this report, and accepted.
    fn went_on(&self, report: &Report) -> bool {
        let job = report.job;
        let guarded = self.membership.as_ref().and_then(|membership| membership.guarded_jobs.get(&job));
        let guarded = guarded.map(|guarded| (guarded.epoch, guarded.moves));
        let here = self.custody.get(&job).map(|custody| (custody.epoch, custody.moves));
        match guarded.or(here) {
            Some(known) => known > (report.epoch, report.moves.saturating_add(1)),
            None => self.ledger.hops_out(job).is_none() && !self.lost_its_journal(),
        }
    }

    fn is_gone_site(&self, site: SiteId) -> bool {
        site != self.site() && self.presence(self.rank_of(site)) == Presence::Gone
    }

    /// Transfers from here to sites that are gone, or have lost the journal that they were for, of jobs that another site is responsible for.
    fn stuck(&self) -> Vec<(SiteId, Transfer)> {
        let mine = self.site();
        let is_stuck = |to: SiteId, out: &Transfer| {
            out.guardian.is_some_and(|guardian| guardian != mine)
                && (self.is_gone_site(to) || self.ledger.is_to_lost_journal(to, out.number))
                && !self.is_void(out)
        };
        let out = self.ledger.transfers_out().filter(|(to, out)| is_stuck(*to, out));
        out.map(|(to, transfer)| (to, *transfer)).collect()
    }

    /// The epoch under which this site takes over a job of this one. With another journal it has forgotten which it used
    /// before, and begins in another part of those between two adoptions.
    fn epoch_after(&self, epoch: u32) -> u32 {
        let adopted = epoch - epoch % EPOCHS_PER_ADOPTION;
        let part = journal_of(self.incarnation) * (EPOCHS_PER_ADOPTION / JOURNALS_MAX);
        next_epoch(epoch.max(adopted.saturating_add(part)), self.site(), self.config.grid.len())
    }

    /// A site is gone, or has forgotten what it took over, before all may have heard of that from it: who has, tells everybody. A part of a
    /// job waits for its word: without the others it never ends. Whatever else is taken over ends by itself.
    pub(super) fn passes_on(&mut self) {
        if !self.takes_parts() || self.membership.as_ref().is_none_or(|membership| membership.lease.is_none())
        {
            return;
        }
        let members = self.members();
        let told: BTreeSet<(JobId, u32)> =
            members.taken_over.iter().map(|void| (void.job, void.epoch)).collect();
        let news: Vec<Void> = members
            .voids
            .iter()
            .filter(|&(&job, &epoch)| !told.contains(&(job, epoch)))
            .map(|(&job, &epoch)| Void { job, epoch })
            .collect();
        if news.is_empty() {
            return;
        }
        let first = members.taken_over.len();
        members.taken_over.extend(&news);
        news.into_iter().for_each(|void| self.write(Fact::PassesOn(void)));
        self.tell_all(first);
    }

    fn forget_report(&mut self, void: Void) {
        let reports = &mut self.members().reports;
        if reports.get(&void.job).is_some_and(|report| report.epoch < void.epoch) {
            reports.remove(&void.job);
            self.write(Fact::Reported { job: void.job });
        }
    }

    /// Whether a transfer brings a copy of a job that was taken over since.
    pub(crate) fn is_void(&self, transfer: &Transfer) -> bool {
        self.is_void_epoch(transfer.job.id, transfer.epoch)
    }

    /// Whether a copy that comes under this epoch is the first that is heard of it: then older ones are dropped.
    pub(crate) fn is_newest(&self, transfer: &Transfer) -> bool {
        let Some(membership) = &self.membership else { return false };
        membership.voids.get(&transfer.job.id).is_none_or(|&newest| newest < transfer.epoch)
    }

    pub(crate) fn is_void_epoch(&self, job: JobId, epoch: u32) -> bool {
        let Some(membership) = &self.membership else { return false };
        membership.voids.get(&job).is_some_and(|&newest| epoch < newest)
    }
}

impl<F: Family> Engine<F> {
    /// What a transfer says of its epoch: older ones are void.
    pub(crate) fn learn_epoch(&mut self, now: Time, transfer: &Transfer) {
        if self.core.membership.is_some() && transfer.epoch > 0 {
            self.supersede(now, Void { job: transfer.job.id, epoch: transfer.epoch });
        }
    }

    /// A copy of the job that a transfer brings executes here already: it is of the transfer's epoch from now on, and
    /// does not run twice. False if none does.
    pub(crate) fn merge_running(&mut self, now: Time, from: SiteId, transfer: &Transfer) -> bool {
        let Some(job) = self.core.as_it_runs(transfer.job).filter(|_| self.core.membership.is_some()) else {
            return false;
        };
        let (transfer, number) = (Transfer { job, ..*transfer }, transfer.number);
        let job = job.id;
        self.core.apply(self.core.ledger.answer(from, number, Answer::Accepted));
        self.keep_custody(&transfer, Place::Queue);
        self.core.guarded_came(from, &transfer);
        self.core.write(Fact::Started { job, at: now });
        self.core.event(EventKind::Accepted { job, from, transfer: number, firm: true });
        true
    }

    /// Others say what became of this site's jobs.
    pub(crate) fn on_reports(&mut self, now: Time, rank: Rank, reports: Vec<Report>) {
        if self.core.membership.is_none() {
            return;
        }
        let sites = self.core.config.grid.len();
        let mut over = Vec::new();
        for report in &reports {
            if !report.done && self.core.went_on(report) {
                over.push(Report { done: true, ..*report });
            }
            let guarded = self.core.members().guarded_jobs.get(&report.job).copied();
            let known = report.holder.0 != 0 && report.holder.index() < sites;
            let Some(guarded) = guarded.filter(|guarded| known && report.epoch >= guarded.epoch) else {
                continue;
            };
            if report.done {
                self.core.guarded_back(report.job);
                self.core.members().unheard.ended(report.job);
                self.is_over(report);
            } else if (report.epoch, report.moves) > (guarded.epoch, guarded.moves) {
                let guarded =
                    Guarded { epoch: report.epoch, moves: report.moves, holder: report.holder, ..guarded };
                self.core.write(Fact::Guarded(guarded));
                self.core.members().guarded_jobs.insert(report.job, guarded);
                let holder = self.core.rank_of(report.holder);
                // That it is here says somebody who gave it to a site which has lost its journal since.
                if holder == self.core.rank || self.core.presence(holder) == Presence::Gone {
                    self.take_over_job(now, report.job);
                }
            }
        }
        let reports = reports.into_iter().chain(over).collect();
        self.core.send(rank, MembershipMessage::Noted { reports });
    }

    /// A job has ended, or went on from where it is reported: answers to the transfer by which it came or left there,
    /// and to earlier ones, were lost. It may have come here again since, with another guardian but in the same epoch.
    fn is_over(&mut self, report: &Report) {
        let (epoch, moves) = (report.epoch, report.moves.saturating_add(1));
        self.void_if(report.job, |out| (out.epoch, out.moves) <= (epoch, moves));
    }

    /// Guardians know what they were told. If they say of a job that it has ended, nobody waits for its transfers; if
    /// they do not, and it is out to a site that is gone, it comes back.
    pub(crate) fn on_noted(&mut self, now: Time, rank: Rank, reports: &[Report]) {
        if self.core.membership.is_none() {
            return;
        }
        let (mine, guardian) = (self.core.site(), self.core.site_at(rank));
        let mut answered = Vec::new();
        for report in reports.iter().filter(|report| report.guardian == guardian) {
            let told = self.core.members().reports.get(&report.job).copied();
            if report.done && told.is_none_or(|told| !told.done) {
                self.is_over(report);
            }
            if told == Some(*report) {
                self.core.members().reports.remove(&report.job);
                self.core.write(Fact::Reported { job: report.job });
                if report.holder == mine && !report.done {
                    answered.push((report.job, report.epoch, report.moves.saturating_add(1)));
                }
            }
        }
        if answered.is_empty() {
            return;
        }
        for (to, transfer) in self.core.stuck() {
            if answered.contains(&(transfer.job.id, transfer.epoch, transfer.moves)) {
                self.stand_in(now, to, &transfer);
            }
        }
    }

    /// A site is gone: its jobs that this site is responsible for come back. Of those that are out to it from here it
    /// may have some and not others, so they come back as well if their guardian is gone, too, or knows no better.
    pub(super) fn take_over_from(&mut self, now: Time, rank: Rank) {
        let site = self.core.site_at(rank);
        let guarded_jobs = &self.core.members().guarded_jobs;
        let lost: Vec<JobId> = guarded_jobs
            .values()
            .filter(|guarded| guarded.holder == site)
            .map(|guarded| guarded.job.id)
            .collect();
        for job in lost {
            self.take_over_job(now, job);
        }
        // What executes there in part is lost as a whole.
        for job in self.family.in_parts_at(rank) {
            let epoch = self.core.epoch_after(self.core.custody_of(job.id).epoch);
            if epoch <= EPOCH_MAX {
                self.assume(now, job, site, epoch);
            }
        }
        for (to, transfer) in self.core.stuck() {
            let Some(guardian) = transfer.guardian else { continue };
            if self.core.is_gone_site(guardian) {
                self.stand_in(now, to, &transfer);
            } else if to == site {
                // To say that the receiver has it would not do: it may never get it, and if this site died, nobody
                // would send it again.
                let Transfer { job, epoch, moves, .. } = transfer;
                let (moves, holder) = (moves.saturating_sub(1), self.core.site());
                self.core.report(Report { job: job.id, guardian, epoch, moves, holder, done: false });
            }
        }
    }

    /// The sender of a transfer makes the job its own.
    fn stand_in(&mut self, now: Time, to: SiteId, transfer: &Transfer) {
        let epoch = self.core.epoch_after(transfer.epoch);
        if epoch <= EPOCH_MAX {
            self.assume(now, transfer.job, to, epoch);
        }
    }

    fn take_over_job(&mut self, now: Time, job: JobId) {
        let Some(guarded) = self.core.members().guarded_jobs.get(&job).copied() else { return };
        let epoch = match self.core.has(Mutant::SameEpoch) {
            true => guarded.epoch,
            false => self.core.epoch_after(guarded.epoch),
        };
        // Others would not believe a later one.
        if epoch <= EPOCH_MAX {
            self.assume(now, guarded.job, guarded.holder, epoch);
        }
    }

    /// The operator gives this site a job; nothing if it has heard of that already.
    pub(crate) fn on_adopt(&mut self, now: Time, job: JobSpec, epoch: u32) {
        let Some(membership) = &self.core.membership else { return };
        let is_news = membership.voids.get(&job.id).is_none_or(|&newest| newest < epoch);
        if is_news && epoch <= EPOCH_MAX {
            self.assume(now, job, self.core.site(), epoch);
        }
    }

    /// Makes a job this site's under an epoch that is newer than any other. A copy that executes here goes on and is of
    /// that epoch; one that ended, as far as nobody but this site knows, need not run again.
    fn assume(&mut self, now: Time, job: JobSpec, holder: SiteId, epoch: u32) {
        let void = Void { job: job.id, epoch };
        let members = self.core.members();
        let reported = members.reports.get(&job.id).is_some_and(|report| report.done);
        let ended = reported || members.unheard.has_ended(job.id);
        if !ended {
            self.core.event(EventKind::TookOver { job: job.id, holder, epoch });
        }
        if !self.core.has(Mutant::TakeOverNotWritten) {
            self.core.write(Fact::TookOver(void));
        }
        self.core.members().taken_over.push(void);
        self.core.members().voids.insert(job.id, epoch);
        self.core.guarded_back(job.id);
        self.core.forget_report(void);
        let custody = Custody { epoch, ..Custody::default() };
        if let Some(job) = self.core.as_it_runs(job) {
            self.void_transfers(void);
            self.core.custody.insert(job.id, custody);
            self.core.own_up(job, custody, Place::Queue);
            self.core.write(Fact::Started { job: job.id, at: now });
        } else {
            self.drop_copies(now, void);
            if !ended {
                self.core.custody.insert(job.id, custody);
                self.core.own_up(job, custody, Place::Queue);
                self.settle_in(now, job, custody);
            }
        }
        let first = self.core.members().taken_over.len() - 1;
        self.core.tell_all(first);
        self.core.fresh = true;
    }

    /// Epochs of a job below this one are void.
    pub(super) fn supersede(&mut self, now: Time, void: Void) {
        let voids = &self.core.members().voids;
        if voids.get(&void.job).is_some_and(|&epoch| epoch >= void.epoch) {
            return;
        }
        self.core.write(Fact::Superseded(void));
        self.core.members().voids.insert(void.job, void.epoch);
        if self.core.members().guarded_jobs.get(&void.job).is_some_and(|guarded| guarded.epoch < void.epoch) {
            self.core.guarded_back(void.job);
        }
        self.core.forget_report(void);
        self.drop_copies(now, void);
        F::superseded(self, void.job);
    }

    /// A job came back that this site gave away: whoever it was out to had it, and may never answer.
    pub(crate) fn came_back(&mut self, transfer: &Transfer) {
        if self.core.membership.is_some() && self.core.ledger.hops_out(transfer.job.id).is_some() {
            self.void_transfers(Void { job: transfer.job.id, epoch: transfer.epoch.saturating_add(1) });
        }
    }

    /// Forgets transfers of older epochs of a job; whatever is answered means nothing.
    fn void_transfers(&mut self, Void { job, epoch }: Void) {
        self.void_if(job, |out| out.epoch < epoch);
    }

    fn void_if(&mut self, job: JobId, means_nothing: impl Fn(&Transfer) -> bool) {
        let out: Vec<(SiteId, Transfer)> = self
            .core
            .ledger
            .transfers_out()
            .filter(|(_, transfer)| transfer.job.id == job && means_nothing(transfer))
            .map(|(to, transfer)| (to, *transfer))
            .collect();
        for (to, transfer) in out {
            let rank = self.core.rank_of(to);
            self.core.apply(Record::Voided { to, number: transfer.number });
            self.core.timers.cancel(Timer::Transfer(rank, transfer.number));
            self.core.round_trips.transfer_repeated(rank, transfer.number);
            self.core.routed.remove(&(rank, transfer.number));
            F::voided(self, rank, &transfer);
        }
    }

    /// Drops what this site has of older epochs of a job, unless it runs.
    fn drop_copies(&mut self, now: Time, void: Void) {
        self.void_transfers(void);
        let Void { job, epoch } = void;
        F::parts_are_void(self, now, job, epoch);
        let mine = self.core.custody_of(job);
        if mine.epoch >= epoch {
            return;
        }
        if self.core.running.contains_key(&job) {
            self.core.event(EventKind::Superseded { job, epoch, started: true });
        } else if self.withdraw(job).is_some() {
            self.core.custody.remove(&job);
            self.core.write(Fact::Ended { job });
            self.core.event(EventKind::Superseded { job, epoch, started: false });
            F::dropped(self, now, mine.guardian);
        }
    }
}
