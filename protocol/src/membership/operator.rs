//! What the operator does when a site never comes back: who gets the jobs that nobody alive is responsible for.
//!
//! A pure rule, for whoever plays the operator: the simulator, or a coordinator that found a process dead. It reads
//! what dead sites wrote down and says what to tell others by [`crate::Input::Adopt`]. Apply it when a site was dead
//! for the lease, and again with all journals when another dies.
//!
//! | job in the journal of a dead site | then |
//! |---|---|
//! | waits or executes there; its guardian is that site, or is not there either | adopted |
//! | out to another site and not answered; the same | adopted, by the receiver if it is there: it may have the job |
//! | the same, and the receiver is dead and had accepted | the receiver's journal says what became of it |
//! | its guardian is another site that is there | nothing: the guardian takes it over |
//! | given away by the dead site, which was its guardian | nothing, as long as the holder lives |
//!
//! If that holder dies as well, its own journal has the job, and the rule finds it there. If the holder had passed it
//! on to a site that died before it accepted, the holder takes it over itself (`custody.rs`). What a user brought and
//! the dead site had not written down yet is not here: users keep it, and bring it to [`successor`].
//!
//! A job that runs at a living receiver of a dead site's transfer goes on there under the new epoch, and one that ended
//! there does not run again. One of which the receiver does not remember that, or that a dead site executed to the end
//! without writing so, runs once more: at least once, never lost.

use std::collections::BTreeMap;

use scheduler::{Grid, JobId, JobSpec, SiteId};

use crate::handover::{Answer, Arrival};
use crate::journal::Durable;
use crate::membership::failover::Failover;
pub use crate::membership::failover::successor;

/// Epochs of adoptions are multiples of this, so that whatever sites take over by themselves meanwhile is older:
/// more than there are sites, times the take-overs of one job between two adoptions.
pub const EPOCHS_PER_ADOPTION: u32 = 1 << 16;

/// What to tell a site by [`crate::Input::Adopt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// The job as the newest journal that knows it has it.
    pub job: JobSpec,
    /// Its epoch from now on.
    pub epoch: u32,
    /// Who gets it.
    pub to: SiteId,
}

/// What others must adopt of the jobs in the journals of sites that never come back, in order of job. `is_there` says
/// which sites can be told and stay. `adopted` holds the newest epochs of jobs adopted so far, each confirmed: it is
/// written down where it went. Empty if nobody is there.
///
/// The same call gives the same answer until something is confirmed, and a job may be told again under the same
/// epoch to the same site as often as one likes.
pub fn adoptions(
    grid: &Grid,
    dead: &BTreeMap<SiteId, &Durable>,
    adopted: &BTreeMap<JobId, u32>,
    is_there: impl Fn(SiteId) -> bool,
) -> Vec<Adoption> {
    adoptions_after_losses(grid, Failover::default(), dead, adopted, is_there, |_| false)
}

/// As [`adoptions`], where some sites have lost a journal: what they were the guardian of before they know nothing of, so
/// they count as guardians that are not there.
pub fn adoptions_after_losses(
    grid: &Grid,
    failover: Failover,
    dead: &BTreeMap<SiteId, &Durable>,
    adopted: &BTreeMap<JobId, u32>,
    is_there: impl Fn(SiteId) -> bool,
    has_lost: impl Fn(SiteId) -> bool,
) -> Vec<Adoption> {
    let newest = newest_epochs(dead.values().copied(), adopted);
    let mut claims: BTreeMap<JobId, Claim> = BTreeMap::new();
    let mut claim = |claim: Claim| {
        let id = claim.job.id;
        let is_void = newest.get(&id).is_some_and(|&epoch| claim.epoch < epoch);
        let is_older =
            claims.get(&id).is_some_and(|other| (other.epoch, other.moves) >= (claim.epoch, claim.moves));
        if !is_void && !is_older {
            claims.insert(id, claim);
        }
    };
    for (&site, journal) in dead {
        let orphaned = |guardian: Option<SiteId>| {
            guardian.is_none_or(|other| other == site || !is_there(other) || has_lost(other))
        };
        for kept in journal.jobs.values() {
            if orphaned(kept.custody.guardian) {
                let (epoch, moves) = (kept.custody.epoch, kept.custody.moves);
                claim(Claim { job: kept.job, epoch, moves, site, receiver: None });
            }
        }
        for (to, transfer) in journal.ledger.transfers_out() {
            let arrival = dead.get(&to).map(|receiver| receiver.ledger.arrival(site, transfer.number));
            let is_lost = dead.get(&to).is_some_and(|left| left.ledger.is_of_lost_journal(transfer.number));
            let has_it = matches!(arrival, Some(Arrival::Settled | Arrival::Answered(Answer::Accepted)));
            let has_it = has_it && !is_lost;
            if !has_it && orphaned(transfer.guardian) {
                let (job, epoch, moves) = (transfer.job, transfer.epoch, transfer.moves);
                claim(Claim { job, epoch, moves, site, receiver: Some(to) });
            }
        }
    }
    let adoption = |claim: &Claim| {
        let receiver = claim.receiver.filter(|&to| is_there(to));
        let to = receiver.or_else(|| successor(grid, failover, claim.site, &claim.job, &is_there))?;
        let known = newest.get(&claim.job.id).copied().unwrap_or(0).max(claim.epoch);
        Some(Adoption { job: claim.job, epoch: epoch_above(known), to })
    };
    claims.values().filter_map(adoption).collect()
}

/// What others must adopt after sites have lost their journals: of the jobs that were handed over to any site and whose
/// end is not known, those that nobody has under their newest epoch. `journals` are those that there are, of the living
/// and the dead; of what is on its way to one that is lost, or is not here, its sender may hear that it arrived, so it
/// counts for nothing; nor does what arrived. Apply it when a journal was lost for the lease, and again when a site dies or loses one after that,
/// and for as long as not [`all_know_of_losses`].
///
/// Where a job was, the operator cannot know; it may have been executed at the site that lost its journal, and its end not
/// been heard of. So it is never handed to anybody again as a new job, but adopted under a newer epoch: at least once,
/// never lost. It goes to another site than `lost` if one is there.
pub fn missing(
    grid: &Grid,
    failover: Failover,
    lost: SiteId,
    unended: impl IntoIterator<Item = JobSpec>,
    journals: &BTreeMap<SiteId, &Durable>,
    adopted: &BTreeMap<JobId, u32>,
    is_there: impl Fn(SiteId) -> bool,
) -> Vec<Adoption> {
    let newest = newest_epochs(journals.values().copied(), adopted);
    let mut held: BTreeMap<JobId, u32> = BTreeMap::new();
    let mut hold = |job: JobId, epoch: u32| {
        let known = held.entry(job).or_default();
        *known = epoch.max(*known);
    };
    for (&site, journal) in journals {
        journal.jobs.values().for_each(|kept| hold(kept.job.id, kept.custody.epoch));
        for (to, out) in journal.ledger.transfers_out() {
            let Some(receiver) = journals.get(&to).map(|receiver| &receiver.ledger) else { continue };
            let may_take = matches!(
                receiver.arrival(site, out.number),
                Arrival::New | Arrival::Answered(Answer::Declined)
            );
            if may_take && !receiver.is_of_lost_journal(out.number) {
                hold(out.job.id, out.epoch);
            }
        }
    }
    let is_other = |other: SiteId| other != lost && is_there(other);
    let adoption = |job: JobSpec| {
        let known = newest.get(&job.id).copied().unwrap_or(0);
        if held.get(&job.id).is_some_and(|&epoch| epoch >= known) {
            return None;
        }
        let to =
            successor(grid, failover, lost, &job, is_other).or_else(|| is_there(lost).then_some(lost))?;
        Some(Adoption { job, epoch: epoch_above(known), to })
    };
    unended.into_iter().filter_map(adoption).collect()
}

/// Whether all sites that stay have heard of each journal that another of them has lost. One that has not may still hear
/// what that site said before, and drop its copy of a job for one that is lost.
pub fn all_know_of_losses(journals: &BTreeMap<SiteId, &Durable>, stays: impl Fn(SiteId) -> bool) -> bool {
    let staying = || journals.iter().filter(|(site, _)| stays(**site));
    staying().all(|(&site, journal)| {
        let lost = journal.ledger.journal();
        staying().all(|(&other, heard)| other == site || heard.ledger.journal_at(site) >= lost)
    })
}

fn newest_epochs<'a>(
    journals: impl Iterator<Item = &'a Durable>,
    adopted: &BTreeMap<JobId, u32>,
) -> BTreeMap<JobId, u32> {
    let mut newest = adopted.clone();
    for journal in journals {
        for (&job, &epoch) in &journal.voids {
            let known = newest.entry(job).or_default();
            *known = epoch.max(*known);
        }
    }
    newest
}

/// The epoch of the next adoption of a job of which this one is known.
fn epoch_above(known: u32) -> u32 {
    (known / EPOCHS_PER_ADOPTION + 1) * EPOCHS_PER_ADOPTION
}

/// A job that a dead site had.
#[derive(Clone, Copy, Debug)]
struct Claim {
    job: JobSpec,
    epoch: u32,
    moves: u32,
    /// The dead site.
    site: SiteId,
    /// To whom it was out.
    receiver: Option<SiteId>,
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::fixtures::job;
    use crate::handover::Custody;
    use crate::journal::{Fact, Place};
    use crate::message::Void;

    fn grid() -> Grid {
        Grid::of_sizes(&[2, 4, 8]).expect("a grid")
    }

    fn owns(job: JobSpec, guardian: Option<SiteId>) -> Fact {
        Fact::Owns { job, custody: Custody { guardian, ..Custody::default() }, place: Place::Queue }
    }

    fn journal(facts: &[Fact]) -> Durable {
        let mut durable = Durable::default();
        facts.iter().for_each(|fact| durable.apply(fact));
        durable
    }

    fn out(durable: &mut Durable, to: u32, job: JobSpec, guardian: u32) {
        let custody = Custody { guardian: Some(SiteId(guardian)), ..Custody::default() };
        let (record, _) = durable.ledger.grant(SiteId(to), job, custody);
        durable.apply(&Fact::Owns { job, custody, place: Place::Queue });
        durable.apply(&Fact::Ledger(record));
    }

    fn rule(dead: &[(u32, &Durable)], adopted: &[(u64, u32)]) -> Vec<(u64, u32, u32)> {
        let dead: BTreeMap<SiteId, &Durable> =
            dead.iter().map(|&(site, left)| (SiteId(site), left)).collect();
        let adopted = adopted.iter().map(|&(job, epoch)| (JobId(job), epoch)).collect();
        let list = adoptions(&grid(), &dead, &adopted, |site| !dead.contains_key(&site));
        list.iter().map(|to| (to.job.id.0, to.epoch / EPOCHS_PER_ADOPTION, to.to.0)).collect()
    }

    #[test]
    fn jobs_of_a_dead_site_go_to_the_next_larger_one_and_to_the_widest_if_none_is() {
        let left = journal(&[owns(job(1, 2), None), owns(job(2, 4), Some(SiteId(2)))]);
        assert_eq!(rule(&[(1, &left)], &[]), [(1, 1, 2)], "the guardian of job 2 takes it over");
        let widest = journal(&[owns(job(3, 8), None), owns(job(4, 1), None)]);
        assert_eq!(rule(&[(3, &widest)], &[]), [(3, 1, 2), (4, 1, 2)]);
    }

    #[test]
    fn what_is_in_doubt_goes_to_its_receiver() {
        let mut left = Durable::default();
        out(&mut left, 3, job(1, 2), 1);
        assert_eq!(rule(&[(1, &left)], &[]), [(1, 1, 3)]);
        let mut receiver = Durable::default();
        assert_eq!(rule(&[(1, &left), (3, &receiver)], &[]), [(1, 1, 2)], "it never got it");
        let answer = receiver.ledger.answer(SiteId(1), 1, Answer::Accepted);
        receiver.apply(&Fact::Ledger(answer));
        assert_eq!(rule(&[(1, &left), (3, &receiver)], &[]), [], "it had, and the job has ended");
        receiver.apply(&owns(job(1, 2), Some(SiteId(1))));
        assert_eq!(rule(&[(1, &left), (3, &receiver)], &[]), [(1, 1, 2)]);
    }

    #[test]
    fn what_a_site_that_lost_its_journal_may_have_had_is_adopted_by_others_under_a_newer_epoch() {
        let mut thief = Durable::default();
        thief.apply(&owns(job(2, 2), Some(SiteId(1))));
        let mut sender = Durable::default();
        out(&mut sender, 1, job(3, 2), 3);
        sender.apply(&Fact::TookOver(Void { job: JobId(4), epoch: EPOCHS_PER_ADOPTION + 5 }));
        out(&mut sender, 2, job(5, 2), 3);
        let mut empty = Durable::default();
        empty.ledger.began(crate::journal::INCARNATIONS_PER_JOURNAL);
        let journals = BTreeMap::from([(SiteId(1), &empty), (SiteId(2), &thief), (SiteId(3), &sender)]);
        let unended = [job(1, 2), job(2, 2), job(3, 2), job(4, 8), job(5, 2)];
        let list = |is_there: fn(SiteId) -> bool| {
            let list = missing(
                &grid(),
                Failover::default(),
                SiteId(1),
                unended,
                &journals,
                &BTreeMap::new(),
                is_there,
            );
            list.iter().map(|to| (to.job.id.0, to.epoch / EPOCHS_PER_ADOPTION, to.to.0)).collect::<Vec<_>>()
        };
        let without = [(1, 1, 2), (3, 1, 2), (4, 2, 3)];
        assert_eq!(list(|_| true), without, "one is at another site, and one on its way to it");
        assert_eq!(list(|site| site == SiteId(1)), [(1, 1, 1), (3, 1, 1), (4, 2, 1)], "nobody else is there");
        assert_eq!(list(|_| false), []);
    }

    #[test]
    fn who_stays_and_has_not_heard_of_a_loss_may_still_drop_a_job() {
        let (mut empty, mut other) = (Durable::default(), Durable::default());
        let knows = |empty: &Durable, other: &Durable, leaves: u32| {
            let journals = BTreeMap::from([(SiteId(1), empty), (SiteId(2), other)]);
            all_know_of_losses(&journals, |site| site != SiteId(leaves))
        };
        assert!(knows(&empty, &other, 0), "nothing is lost");
        empty.ledger.began(crate::journal::INCARNATIONS_PER_JOURNAL);
        assert!(!knows(&empty, &other, 0));
        assert!(knows(&empty, &other, 2) && knows(&empty, &other, 1));
        let heard = other.ledger.renumber(SiteId(1), 1);
        other.apply(&Fact::Ledger(heard));
        assert!(knows(&empty, &other, 0));
        empty.ledger.began(2 * crate::journal::INCARNATIONS_PER_JOURNAL);
        assert!(!knows(&empty, &other, 0), "it has lost another one");
    }

    #[test]
    fn a_guardian_that_lost_its_journal_takes_nothing_over() {
        let left = journal(&[owns(job(1, 2), Some(SiteId(2)))]);
        let dead = BTreeMap::from([(SiteId(1), &left)]);
        let list = |has_lost: fn(SiteId) -> bool| {
            adoptions_after_losses(
                &grid(),
                Failover::default(),
                &dead,
                &BTreeMap::new(),
                |site| site != SiteId(1),
                has_lost,
            )
            .len()
        };
        assert_eq!((list(|_| false), list(|site| site == SiteId(2))), (0, 1));
    }

    #[test]
    fn a_job_is_adopted_once_and_again_when_its_new_owner_dies() {
        let left = journal(&[owns(job(1, 2), None)]);
        let epoch = EPOCHS_PER_ADOPTION;
        assert_eq!(rule(&[(1, &left)], &[(1, epoch)]), []);
        let custody = Custody { epoch, ..Custody::default() };
        let again = journal(&[
            Fact::TookOver(Void { job: JobId(1), epoch }),
            Fact::Owns { job: job(1, 2), custody, place: Place::Queue },
        ]);
        assert_eq!(rule(&[(1, &left), (2, &again)], &[(1, epoch)]), [(1, 2, 3)]);
    }
}
