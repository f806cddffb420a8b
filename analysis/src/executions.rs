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
    /// Where.
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
    /// By itself.
    Completed(Time),
    /// A crash ended it, after the last sign of life of its site and before the site began again.
    Interrupted {
        /// The last event of the site before it began again, or the start if there is none after that.
        last_sign: Time,
        /// When the site began again.
        back: Time,
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
}

impl Executions {
    /// Of a job of which this much is known.
    pub fn of(known: Option<Execution>) -> Executions {
        Executions { list: known.into_iter().collect(), epochs: BTreeSet::new() }
    }

    /// All, in the order of their starts.
    pub fn all(&self) -> &[Execution] {
        &self.list
    }

    /// The job was taken over, which began this epoch; known again if a site learns of it later.
    pub fn taken_over(&mut self, epoch: u32) {
        self.epochs.insert(epoch);
    }

    /// Whether the job may start: every epoch has one execution that is not interrupted, or in which it is given up.
    pub fn may_start(&self) -> bool {
        let used = self
            .list
            .iter()
            .filter(|execution| !matches!(execution.fate, Fate::Interrupted { killed: false, .. }));
        used.count() <= self.epochs.len()
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
        self.end(site, |_| Fate::Completed(at))
    }

    /// A site that began again says that the job executed there when it crashed.
    ///
    /// # Errors
    /// If it does not execute there.
    pub fn interrupt(
        &mut self,
        site: SiteId,
        last_sign: Option<Time>,
        back: Time,
        killed: bool,
    ) -> Result<Execution, Misdeed> {
        self.end(site, |start| {
            let last_sign = last_sign.map_or(start, |last| last.max(start)).min(back);
            Fate::Interrupted { last_sign, back, killed }
        })
    }

    fn end(&mut self, site: SiteId, fate: impl FnOnce(Time) -> Fate) -> Result<Execution, Misdeed> {
        let open =
            self.list.iter_mut().find(|execution| execution.site == site && execution.fate == Fate::Open);
        let open = open.ok_or(Misdeed::NotThere)?;
        open.fate = fate(open.start);
        Ok(*open)
    }

    /// Whether the job ended by itself, or was given up and not taken over since.
    pub fn is_over(&self) -> bool {
        self.list.iter().any(|execution| matches!(execution.fate, Fate::Completed(_)))
            || (self.counts().is_none() && !self.may_start())
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
    fn a_job_that_was_given_up_starts_again_only_in_another_epoch() {
        let mut job = Executions::default();
        job.start(HERE, at(0), 0).unwrap();
        job.interrupt(HERE, None, at(5), true).unwrap();
        assert!(!job.may_start());
        job.taken_over(1);
        assert!(job.may_start());
    }

    #[test]
    fn canary_a_second_end_without_a_take_over_is_a_misdeed() {
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
}
