//! What another process of this node has left: which executions go on, which are over, and which are to be no more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use scheduler::JobId;

use super::super::exit::Exit;
use super::attempts::{Claim, Known, Stop};
use super::cluster::{Failure, Row};
use super::{Desk, GONE_PATIENCE, GONE_POLL, is_active, one_of};

/// An execution that another process of this node has left.
#[derive(Debug)]
pub(super) struct Remnant {
    pub(super) name: String,
    pub(super) id: Option<u64>,
    /// How it ended, if that process could say.
    pub(super) exit: Option<Exit>,
}

impl Desk {
    /// Looks for what another process of this node has left, until Slurm says what there is. Of a job the last execution counts; all others are
    /// to be no more.
    pub(super) fn look_back(&mut self, executing: &BTreeSet<JobId>) {
        let rows = loop {
            match self.jobs_of_slurm() {
                Some(rows) => break rows.by_name,
                None => std::thread::sleep(self.poll),
            }
        };
        let mut all = loop {
            match self.attempts.all() {
                Ok(all) => break all,
                Err(error) => self.cannot_claim("", &error),
            }
            std::thread::sleep(self.poll);
        };
        for name in rows.keys() {
            all.entry(name.clone()).or_default();
        }
        let mut last: BTreeMap<JobId, String> = BTreeMap::new();
        for name in all.keys() {
            let Some((job, time)) = parts(name) else { continue };
            // In their order.
            last.insert(job, name.clone());
            // Clocks may have been put back.
            let since = time.get(..12).and_then(|since| u128::from_str_radix(since, 16).ok());
            self.since = self.since.max(since.map_or(0, |since| since + 1));
        }
        for (name, known) in &all {
            let job = parts(name).map(|(job, _)| job).filter(|job| last.get(job) == Some(name));
            let found = match job.filter(|job| executing.contains(job)) {
                Some(_) => self.left(name, *known, rows.get(name).cloned().unwrap_or_default()),
                None => None,
            };
            match (found, job) {
                (Some(remnant), Some(job)) => drop(self.remnants.insert(job, remnant)),
                _ => self.is_no_more(name, *known),
            }
        }
        // Of these there may be some in Slurm.
        self.next_poll = Instant::now();
    }

    /// What has become of an execution, unless it is to be no more.
    fn left(&mut self, name: &str, known: Known, rows: Vec<Row>) -> Option<Remnant> {
        let exit = match known.stop {
            Some(Stop::Wanted) => return None,
            Some(Stop::Ended(how, code)) => {
                let why = Some("it was told before".to_string());
                Some(Exit { how, code, why })
            }
            None => None,
        };
        let is_over = exit.is_some() || self.done.join(name).exists();
        let claim = match known.claim {
            // It may be under way to Slurm.
            None if !is_over && rows.is_empty() => loop {
                match self.attempts.claim(name) {
                    Ok(claim) => break Some(claim),
                    Err(error) => self.cannot_claim(name, &error),
                }
                std::thread::sleep(self.poll);
            },
            claim => claim,
        };
        match claim {
            Some(Claim::Node) if !is_over => None,
            Some(Claim::Script(id)) if rows.is_empty() => Some(Remnant { name: name.to_string(), id, exit }),
            _ => {
                let row = one_of(rows, name, &self.attempts).ok().and_then(|(row, _)| row);
                Some(Remnant { name: name.to_string(), id: row.map(|row| row.id), exit })
            }
        }
    }

    /// Has it that what may be in Slurm, or come, does not begin; if it is there the next look at Slurm has it cancelled.
    fn is_no_more(&mut self, name: &str, known: Known) {
        if known.claim == Some(Claim::Node) || known.stop.is_some() || self.done.join(name).exists() {
            return;
        }
        if let Err(error) = self.attempts.stop(name, None) {
            self.cannot_claim(name, &error);
        }
    }

    /// Until nothing is left of what executes of these jobs. What has ended of them is told when the site starts them.
    pub(super) fn be_rid_of(&mut self, left: &[JobId]) -> Result<(), String> {
        let Some(rows) = self.jobs_of_slurm() else { return Err("Slurm does not answer".to_string()) };
        let is_there = |name: &String| rows.by_name.get(name).is_some_and(|rows| rows.iter().any(is_active));
        let left =
            left.iter().filter(|job| self.remnants.get(job).is_some_and(|remnant| is_there(&remnant.name)));
        let left: Vec<JobId> = left.copied().collect();
        let left: BTreeSet<String> =
            left.iter().filter_map(|job| self.remnants.remove(job)).map(|remnant| remnant.name).collect();
        if left.is_empty() {
            return Ok(());
        }
        tracing::warn!(?left, "jobs of Slurm are cancelled: their site does not start them again at once");
        for name in &left {
            self.attempts.stop(name, None).map_err(|error| format!("{name} cannot be stopped: {error}"))?;
        }
        let deadline = Instant::now() + GONE_PATIENCE;
        loop {
            let reason = match self.jobs_of_slurm() {
                Some(rows) => {
                    let rows = rows.by_name.into_iter().filter(|(name, _)| left.contains(name));
                    let rows: Vec<Row> = rows.flat_map(|(_, rows)| rows).filter(is_active).collect();
                    let Some(first) = rows.first() else { return Ok(()) };
                    match self.cluster.cancel(&rows.iter().map(|row| row.id).collect::<Vec<_>>()) {
                        Ok(()) => format!("job {} of Slurm is {}", first.id, first.state),
                        Err(Failure::Away(reason) | Failure::Refused(reason)) => reason,
                    }
                }
                None => "Slurm does not answer".to_string(),
            };
            if Instant::now() > deadline {
                return Err(format!("jobs that this node has left cannot be cancelled: {reason}"));
            }
            std::thread::sleep(self.poll.min(GONE_POLL));
        }
    }
}

/// The job of an execution, and which time it is.
fn parts(name: &str) -> Option<(JobId, &str)> {
    let (job, time) = name.split_once('.')?;
    Some((JobId(job.parse().ok()?), time))
}
