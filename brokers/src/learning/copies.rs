//! Work queues, and copies of jobs once none waits: WQ, WQR, and MQD as published.
//!
//! Which copy ends first ends the job; the driver cancels the others. Lee and Zomaya 2006 (MQD); Cirne et al. 2004 (WQR).

use std::cmp::Reverse;

use scheduler::strategy::opaque::{Border, Options};
use scheduler::{JobId, JobSpec};

use super::in_turn::place;
use super::memory::{Subject, Words, halves, sum, truth, words};
use super::mqd::{deal, longest_first};
use super::rule::{Ended, Round, Rule};

/// Copies for all places that are left, of the jobs that are the first by a key; none has one for itself.
pub(super) fn replicate<K: Ord>(
    round: &mut Round<'_>,
    copies_max: usize,
    key: impl Fn(&Round<'_>, &JobSpec, usize, usize) -> Option<K>,
) {
    loop {
        let open: Vec<usize> = round.slots().open().collect();
        let mut is_done = true;
        for site in open {
            let candidates = round.under_way().filter_map(|(job, copies)| {
                let may = copies < copies_max
                    && !round.is_at(job.id, site)
                    && round.slots().takes(site, job.processors);
                Some((key(round, &job, copies, site).filter(|_| may)?, job.id))
            });
            let best: Option<(K, JobId)> = candidates.min();
            if let Some((_, job)) = best {
                is_done &= !round.copy(job, site);
            }
        }
        if is_done {
            return;
        }
    }
}

/// A job for whoever is free, as they came; with copies, up to so many of one.
#[derive(Clone, Debug)]
pub(super) struct WorkQueue {
    copies_max: usize,
}

impl WorkQueue {
    pub(super) fn new(copies_max: u32) -> WorkQueue {
        WorkQueue { copies_max: copies_max as usize }
    }
}

impl Rule for WorkQueue {
    fn map(&mut self, round: &mut Round<'_>) {
        for job in 0..round.len() {
            let open = (0..round.slots().len()).filter(|&site| round.takes(job, site));
            if let Some(site) = open.min_by_key(|&site| Reverse(round.slots().free(site))) {
                round.assign(job, site);
            }
        }
        if (0..round.len()).all(|job| !round.waits(job)) {
            replicate(round, self.copies_max, |_, _, copies, _| Some(copies));
        }
    }
}

/// MQD as published: sites are ranked by how fast they were, and idle ones get copies at the end.
#[derive(Clone, Debug)]
pub(super) struct MqdDuplication {
    copies_max: usize,
    is_main: bool,
    next: usize,
    /// By site, in microseconds: what was predicted of the jobs that ended, and how long they took.
    sizes: Vec<(i128, i128)>,
}

impl MqdDuplication {
    pub(super) fn new(options: &Options, sites: usize) -> MqdDuplication {
        let copies_max = options.copies as usize;
        MqdDuplication { copies_max, is_main: false, next: 0, sizes: vec![(0, 0); sites] }
    }

    /// Sites by speed, the fastest first; those that nothing ended at are last.
    fn ranked(&self) -> Vec<usize> {
        let mut sites: Vec<usize> = (0..self.sizes.len()).collect();
        let speed = |site: usize| match self.sizes[site] {
            (_, 0) => 0.0,
            (size, elapsed) => size as f64 / elapsed as f64,
        };
        sites.sort_by(|&one, &other| speed(other).total_cmp(&speed(one)));
        sites
    }
}

/// Two sums as words; none if nothing was summed.
pub(super) fn sums_of(sums: &(i128, i128)) -> Option<Words> {
    let ([a, b], [c, d]) = (halves(sums.0), halves(sums.1));
    (*sums != (0, 0)).then(|| words([a, b, c, d]))
}

/// The sums of words.
pub(super) fn sums_in(words: &Words) -> Option<(i128, i128)> {
    Some((sum(words[0], words[1])?, sum(words[2], words[3])?))
}

impl Rule for MqdDuplication {
    fn map(&mut self, round: &mut Round<'_>) {
        if !self.is_main {
            self.next = deal(round, Border::Corrected, self.next);
            self.is_main = round.slots().open().next().is_none();
        } else {
            let jobs = longest_first(round);
            let ranked = self.ranked();
            let size = jobs.len().div_ceil(ranked.len().max(1)).max(1);
            for (rank, &site) in ranked.iter().enumerate() {
                // From its own group on, the longest first; then from those of its neighbors.
                let own = (rank * size).min(jobs.len());
                for &job in jobs[own..].iter().chain(&jobs[..own]) {
                    if !round.slots().is_open(site) {
                        break;
                    }
                    round.assign(job, site);
                }
            }
        }
        if (0..round.len()).all(|job| !round.waits(job)) {
            replicate(round, self.copies_max, |_, job, copies, _| Some((copies, Reverse(job.requested))));
        }
    }

    fn ended(&mut self, ended: &Ended) {
        let (size, elapsed) = &mut self.sizes[ended.site];
        *size += i128::from(ended.job.requested.as_micros());
        *elapsed += i128::from(ended.times.execution.as_micros().max(1));
    }

    fn known(&self, of: Subject) -> Option<Words> {
        match of {
            Subject::Rule => Some(words([self.next as u64, self.is_main.into()])),
            Subject::Site(site) => sums_of(self.sizes.get(site as usize)?),
            _ => None,
        }
    }

    fn recollect(&mut self, of: Subject, words: &Words) -> bool {
        let mut recollect = || match of {
            Subject::Rule => {
                (self.next, self.is_main) = (place(words[0], self.sizes.len())?, truth(words[1])?);
                Some(())
            }
            Subject::Site(site) => {
                *self.sizes.get_mut(site as usize)? = sums_in(words)?;
                Some(())
            }
            _ => None,
        };
        recollect().is_some()
    }
}
