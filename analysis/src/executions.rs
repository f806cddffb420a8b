//! The executions of one job: which of them are allowed, what became of each, and which one counts.
//!
//! A job starts once. It may start again only if a crash interrupted the execution before, or if it was taken over
//! from a site that was believed gone: every take-over begins an epoch, and an epoch has one execution that is not
//! interrupted. Both the outcome of a run and the audit of what nodes did are judged by this.

use std::collections::BTreeSet;

use scheduler::{SiteId, Time};

/// One start of a job, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The site that executed it.
    pub site: SiteId,
    /// When it started.
    pub start: Time,
    /// How often the job had changed sites.
    pub hops: u32,
    /// What became of it.
    pub fate: Fate,
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No event says so: it still executes, or its site never came back.
    Open,
    /// It ended by itself, then.
    Completed(Time),
    /// The process of its site ended, which the driver says; what becomes of the job the site says when it is back.
    Cut {
        /// Until when it executed at least.
        last_sign: Time,
        /// Until when at most.
        until: Time,
    },
    /// A crash ended it.
    Interrupted {
        /// When the process ended, if the driver says so; else the last event of the site before it restarted, or the
        /// start if there is none after that.
        last_sign: Time,
        /// The same; else when the site restarted.
        until: Time,
        /// Whether the job was given up for it.
        killed: bool,
    },
}

/// What must not happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misdeed {
    /// It started although it executes, has ended or was given up, and was not taken over since.
    StartedTwice,
    /// It ended, or was interrupted, where it does not execute.
    NotThere,
}

/// All executions of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    list: Vec<Execution>,
    /// Epochs that take-overs began, as far as is known. Numbers may be left out.
    epochs: BTreeSet<u32>,
    /// How many had started when the newest of these began.
    before: usize,
    /// Places in the list of executions that were not known to be over when the process of their site restarted.
    doubtful: BTreeSet<usize>,
    /// Of a job in parts: it was given up as a part was lost, and not taken over since.
    given_up: bool,
}

impl Executions {
    /// Of a job of which this much is known.
    pub fn of(known: Option<Execution>) -> Executions {
        Executions { list: known.into_iter().collect(), ..Executions::default() }
    }

    /// All, in the order of their starts.
    pub fn all(&self) -> &[Execution] {
        &self.list
    }

    /// The job was taken over, which began this epoch; known again if a site learns of it later.
    pub fn taken_over(&mut self, epoch: u32) {
        if self.epochs.last().is_none_or(|newest| epoch > *newest) {
            self.before = self.list.len();
            self.given_up = false;
        }
        self.epochs.insert(epoch);
    }

    /// Whether the job may start: every epoch has one execution that is not interrupted, or in which it is given up. An
    /// execution whose site has restarted uses up no epoch while nothing is known of its end.
    pub fn may_start(&self) -> bool {
        let used = self.list.iter().enumerate().filter(|(place, execution)| match execution.fate {
            Fate::Interrupted { killed, .. } => killed,
            Fate::Open | Fate::Cut { .. } => !self.doubtful.contains(place),
            Fate::Completed(_) => true,
        });
        used.count() + usize::from(self.given_up) <= self.epochs.len()
    }

    /// The driver says that the process of a site restarted. What it executed ended with the process before, also where
    /// the site never says so: its journal may be damaged after the job went on to others, and before anybody read it.
    pub fn began_again(&mut self, site: SiteId) {
        let unknown = |execution: &Execution| {
            execution.site == site && matches!(execution.fate, Fate::Open | Fate::Cut { .. })
        };
        let places = self.list.iter().enumerate().filter(|(_, execution)| unknown(execution));
        self.doubtful.extend(places.map(|(place, _)| place));
    }

    /// The job starts.
    ///
    /// # Errors
    /// If it must not. Then the start is not counted.
    pub fn start(&mut self, site: SiteId, start: Time, hops: u32) -> Result<(), Misdeed> {
        if !self.may_start() {
            return Err(Misdeed::StartedTwice);
        }
        self.list.push(Execution { site, start, hops, fate: Fate::Open });
        Ok(())
    }

    /// The job ends at a site.
    ///
    /// # Errors
    /// If it does not execute there.
    pub fn complete(&mut self, site: SiteId, at: Time) -> Result<Execution, Misdeed> {
        let ended = self.end(site, |_| Fate::Completed(at));
        ended.or_else(|misdeed| {
            // The driver believed its process ended, and was wrong about it.
            let taken = self.doubtful.iter().map(|&place| (place, self.list[place]));
            let mut cut = taken.filter(|(_, execution)| {
                execution.site == site && matches!(execution.fate, Fate::Cut { .. })
            });
            let (place, _) = cut.next_back().ok_or(misdeed)?;
            self.list[place].fate = Fate::Completed(at);
            Ok(self.list[place])
        })
    }

    /// The driver says that the process of a site ended, at some time after its last sign of life if that is given.
    /// Whether the job executed there.
    pub fn cut(&mut self, site: SiteId, last_sign: Option<Time>, until: Time) -> bool {
        self.end(site, |start| between(start, last_sign, until, |last_sign| Fate::Cut { last_sign, until }))
            .is_ok()
    }

    /// A site that restarted says that the job executed there when it crashed.
    ///
    /// # Errors
    /// If it did not execute there.
    pub fn interrupt(
        &mut self,
        site: SiteId,
        last_sign: Option<Time>,
        back: Time,
        killed: bool,
    ) -> Result<Execution, Misdeed> {
        let cut = self.list.iter_mut().find_map(|execution| match execution.fate {
            Fate::Cut { last_sign, until } if execution.site == site => Some((execution, last_sign, until)),
            _ => None,
        });
        if let Some((execution, last_sign, until)) = cut {
            execution.fate = Fate::Interrupted { last_sign, until, killed };
            return Ok(*execution);
        }
        self.end(site, |start| {
            between(start, last_sign, back, |last_sign| Fate::Interrupted { last_sign, until: back, killed })
        })
    }

    /// A job in parts did not run to its end in all of them, or is given up for that. What this site said of its end was in vain.
    ///
    /// # Errors
    /// If the job did not end there and is not given up.
    pub fn revoke(&mut self, site: SiteId, killed: bool) -> Result<(), Misdeed> {
        let ended = self.list.iter_mut().rev().find_map(|execution| match execution.fate {
            Fate::Completed(end) if execution.site == site => Some((execution, end)),
            _ => None,
        });
        match ended {
            Some((execution, end)) => {
                execution.fate = Fate::Interrupted { last_sign: end, until: end, killed };
            }
            None if killed => self.given_up = true,
            None => return Err(Misdeed::NotThere),
        }
        Ok(())
    }

    fn end(&mut self, site: SiteId, fate: impl FnOnce(Time) -> Fate) -> Result<Execution, Misdeed> {
        let open =
            self.list.iter_mut().find(|execution| execution.site == site && execution.fate == Fate::Open);
        let open = open.ok_or(Misdeed::NotThere)?;
        open.fate = fate(open.start);
        Ok(*open)
    }

    /// Whether a crash ended an execution since the job was last taken over, and the job will not start again: neither waits
    /// it, nor can its site still say what became of it.
    pub fn is_given_up(&self) -> bool {
        let newest = &self.list[self.before..];
        let undecided = newest.iter().any(|execution| matches!(execution.fate, Fate::Cut { .. }));
        let killed = |execution: &Execution| matches!(execution.fate, Fate::Interrupted { killed: true, .. });
        self.counts().is_none() && (self.given_up || newest.iter().any(killed)) && !undecided
    }

    /// Whether the job ended by itself, or was given up and not taken over since.
    pub fn is_over(&self) -> bool {
        self.list.iter().any(|execution| matches!(execution.fate, Fate::Completed(_))) || self.is_given_up()
    }

    /// The place of the execution that counts: of those that ended by themselves the one that ended first, else of those
    /// that are open the one that started last.
    pub fn counts(&self) -> Option<usize> {
        let ended = self.list.iter().enumerate().filter_map(|(place, execution)| match execution.fate {
            Fate::Completed(end) => Some((end, place)),
            _ => None,
        });
        let open = || self.list.iter().rposition(|execution| execution.fate == Fate::Open);
        ended.min().map(|(_, place)| place).or_else(open)
    }
}

/// A fate of an execution that ended between its site's last sign of life and `until`.
fn between(start: Time, last_sign: Option<Time>, until: Time, fate: impl FnOnce(Time) -> Fate) -> Fate {
    fate(last_sign.map_or(start, |last| last.max(start)).min(until))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: SiteId = SiteId(1);
    const THERE: SiteId = SiteId(2);

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn a_second_start_needs_an_interruption_or_a_take_over() {
        let mut job = Executions::default();
        job.start(HERE, at(0), 0).unwrap();
        assert_eq!(job.start(THERE, at(1), 1), Err(Misdeed::StartedTwice));
        job.interrupt(HERE, Some(at(2)), at(5), false).unwrap();
        job.start(THERE, at(6), 1).unwrap();
        assert_eq!(job.start(HERE, at(7), 1), Err(Misdeed::StartedTwice));
        job.taken_over(5);
        job.taken_over(5);
        job.start(HERE, at(8), 1).unwrap();
        assert_eq!(job.start(HERE, at(9), 1), Err(Misdeed::StartedTwice));
    }

    #[test]
    fn an_end_that_is_revoked_counts_for_nothing() {
        for killed in [false, true] {
            let mut job = Executions::default();
            job.start(HERE, at(0), 0).unwrap();
            assert_eq!(job.revoke(HERE, false), Err(Misdeed::NotThere));
            job.complete(HERE, at(5)).unwrap();
            assert_eq!(job.revoke(THERE, false), Err(Misdeed::NotThere));
            job.revoke(HERE, killed).unwrap();
            assert_eq!(job.all()[0].fate, Fate::Interrupted { last_sign: at(5), until: at(5), killed });
            assert_eq!((job.may_start(), job.is_over(), job.counts()), (!killed, killed, None));
        }
        // A part was lost before the first began.
        let mut job = Executions::default();
        job.revoke(HERE, true).unwrap();
        assert!(job.is_over() && !job.may_start());
        job.taken_over(1);
        assert!(!job.is_over() && job.may_start());
    }

    /// Its site may have said so, in a journal that was damaged before anybody read it.
    #[test]
    fn a_job_may_start_again_once_its_site_began_again() {
        for is_cut in [false, true] {
            let mut job = Executions::default();
            job.start(HERE, at(0), 0).unwrap();
            if is_cut {
                assert!(job.cut(HERE, None, at(3)));
            }
            job.began_again(THERE);
            assert!(!job.may_start(), "that is another site");
            job.began_again(HERE);
            job.start(THERE, at(4), 1).unwrap();
            assert_eq!(job.start(HERE, at(5), 1), Err(Misdeed::StartedTwice), "one that is not doubtful");
            // An older state of the journal says it again.
            job.interrupt(HERE, None, at(6), false).unwrap();
            job.complete(THERE, at(7)).unwrap();
            assert!(job.is_over() && !job.may_start());
        }
    }

    /// A driver may take a process for ended that works.
    #[test]
    fn a_doubtful_execution_that_ends_counts() {
        for is_cut in [false, true] {
            let mut job = Executions::default();
            job.start(HERE, at(0), 0).unwrap();
            if is_cut {
                assert!(job.cut(HERE, None, at(3)));
                assert_eq!(job.clone().complete(HERE, at(5)), Err(Misdeed::NotThere));
            }
            job.began_again(HERE);
            assert_eq!(job.clone().complete(THERE, at(5)), Err(Misdeed::NotThere));
            job.complete(HERE, at(5)).unwrap();
            assert_eq!((job.counts(), job.may_start()), (Some(0), false));
        }
    }

    #[test]
    fn a_job_that_was_given_up_starts_again_only_in_another_epoch() {
        let mut job = Executions::default();
        job.start(HERE, at(0), 0).unwrap();
        job.interrupt(HERE, None, at(5), true).unwrap();
        assert!(!job.may_start());
        job.taken_over(1);
        assert!(job.may_start());
    }

    /// The copy before it was lost and never started, or nobody knows what became of it.
    #[test]
    fn a_job_that_is_given_up_after_it_was_taken_over_is_over() {
        for lost in [false, true] {
            let mut job = Executions::default();
            if lost {
                job.start(HERE, at(0), 0).unwrap();
                assert!(job.cut(HERE, None, at(3)));
                assert!(!job.is_over(), "its site may still say");
            }
            job.taken_over(1);
            job.start(THERE, at(4), 1).unwrap();
            assert!(!job.is_over());
            job.interrupt(THERE, None, at(5), true).unwrap();
            assert!(job.is_over() && job.is_given_up());
            job.taken_over(1);
            assert!(job.is_over(), "that was known");
            job.taken_over(2);
            assert!(!job.is_over() && job.may_start());
        }
    }

    #[test]
    fn mutant_a_second_end_without_a_take_over_is_a_misdeed() {
        let mut job = Executions::default();
        job.start(HERE, at(0), 0).unwrap();
        job.complete(HERE, at(5)).unwrap();
        assert_eq!(job.complete(HERE, at(6)), Err(Misdeed::NotThere));
        assert_eq!(job.start(THERE, at(6), 0), Err(Misdeed::StartedTwice));
        assert_eq!(job.complete(THERE, at(9)), Err(Misdeed::NotThere));
    }

    #[test]
    fn the_execution_that_ends_first_counts() {
        let mut job = Executions::default();
        job.start(HERE, at(0), 1).unwrap();
        job.taken_over(1);
        job.start(THERE, at(10), 0).unwrap();
        assert_eq!(job.counts(), Some(1), "the last start, while none has ended");
        job.complete(HERE, at(20)).unwrap();
        assert_eq!(job.counts(), Some(0));
        job.complete(THERE, at(30)).unwrap();
        assert_eq!(job.counts(), Some(0));
    }

    #[test]
    fn what_a_process_took_with_it_is_over_then_and_its_site_says_what_becomes_of_it() {
        let mut job = Executions::default();
        job.start(HERE, at(0), 0).unwrap();
        assert!(!job.cut(THERE, None, at(3)));
        assert!(job.cut(HERE, Some(at(3)), at(3)));
        assert_eq!((job.counts(), job.may_start(), job.is_over()), (None, false, false));
        assert_eq!(job.complete(HERE, at(4)), Err(Misdeed::NotThere));
        let interrupted = job.interrupt(HERE, Some(at(1)), at(9), true).unwrap();
        assert_eq!(interrupted.fate, Fate::Interrupted { last_sign: at(3), until: at(3), killed: true });
        assert!(job.is_over());
    }
}
