//! MQD-RL: short jobs in turn to all sites first, then long jobs to efficient ones (Costa 2007, §5.3, Algorithms 3 and 4).

use std::collections::BTreeSet;

use scheduler::strategy::opaque::{Border, GroupOver, GroupSize, Options, PhaseEnd, Scope, Tie};
use scheduler::{JobId, JobSpec};

use super::in_turn::{next_in_ring, place};
use super::memory::{Subject, Words, words};
use super::rule::{Ended, Lost, Round, Rule};

/// Its phase, and the jobs of the first one.
#[derive(Clone, Debug)]
pub(super) struct Mqd {
    options: Options,
    sites: usize,
    /// Whether all sites have been saturated.
    is_main: bool,
    next: usize,
    /// Jobs of the first phase that have not ended.
    first: BTreeSet<JobId>,
}

impl Mqd {
    pub(super) fn new(options: &Options, sites: usize) -> Mqd {
        Mqd { options: *options, sites, is_main: false, next: 0, first: BTreeSet::new() }
    }
}

/// Jobs by predicted time, the shortest first; of equal ones the first by id.
pub(super) fn shortest_first(round: &Round<'_>) -> Vec<usize> {
    let mut jobs: Vec<usize> = (0..round.len()).filter(|&job| round.waits(job)).collect();
    jobs.sort_by_key(|&job| (round.job(job).requested, round.job(job).id));
    jobs
}

/// Jobs by predicted time, the longest first; of equal ones the first by id.
pub(super) fn longest_first(round: &Round<'_>) -> Vec<usize> {
    let mut jobs: Vec<usize> = (0..round.len()).filter(|&job| round.waits(job)).collect();
    jobs.sort_by_key(|&job| (std::cmp::Reverse(round.job(job).requested), round.job(job).id));
    jobs
}

/// Short jobs in turn, beginning at a place of the ring. Returns where the next one begins.
pub(super) fn deal(round: &mut Round<'_>, border: Border, from: usize) -> usize {
    let jobs = shortest_first(round);
    match border {
        Border::Corrected => {
            let mut next = from;
            for job in jobs {
                if let Some(site) = next_in_ring(round, job, next) {
                    round.assign(job, site);
                    next = (site + 1) % round.slots().len();
                } else if round.slots().open().next().is_none() {
                    break;
                }
            }
            next
        }
        Border::Literal => {
            let sites = round.slots().len();
            let mut ring: Vec<usize> = (0..sites).map(|step| (from + step) % sites).collect();
            let mut place = 0;
            for job in jobs {
                let Some(&site) = ring.get(place) else { break };
                if round.slots().is_open(site) {
                    round.assign(job, site);
                    place += 1;
                } else {
                    ring.remove(place);
                }
                place = if place >= ring.len() { 0 } else { place };
            }
            ring.get(place).copied().unwrap_or(from)
        }
    }
}

/// Gives a job to the site of its group. Published jobs need one processor each; one that is wider than that site goes to
/// the first other that takes it, or it would wait for ever.
fn assign(round: &mut Round<'_>, job: usize, site: usize, order: &[usize]) -> bool {
    let is_wide_enough = round.slots().processors(site) >= round.job(job).processors;
    let other = || order.iter().copied().find(|&other| round.takes(job, other));
    let site = if is_wide_enough { Some(site) } else { other() };
    site.is_some_and(|site| round.assign(job, site))
}

/// Long jobs in groups, the longest to the site that is first in order.
fn by_groups(round: &mut Round<'_>, options: &Options, order: &[usize]) {
    let jobs = longest_first(round);
    if jobs.is_empty() || order.is_empty() {
        return;
    }
    let (all, groups) = (jobs.len(), order.len());
    match options.border {
        Border::Corrected => {
            let group = |place: usize| match options.group_size {
                GroupSize::Ceiling => place / all.div_ceil(groups),
                GroupSize::Real => place * groups / all,
                GroupSize::Floor => place / (all / groups).max(1),
            };
            for (place, &job) in jobs.iter().enumerate() {
                if let Some(&site) = order.get(group(place)) {
                    // What a saturated site leaves waits for a later event.
                    assign(round, job, site, order);
                }
            }
        }
        Border::Literal => {
            let is_below = |count: usize| match options.group_size {
                GroupSize::Ceiling => count < all.div_ceil(groups),
                GroupSize::Real => count * groups < all,
                GroupSize::Floor => count < all / groups,
            };
            let (mut sites, mut count) = (order.iter(), 0);
            let mut site = sites.next();
            for &job in &jobs {
                let Some(&here) = site else { return };
                if assign(round, job, here, order) || is_below(count) {
                    count += 1;
                } else {
                    (site, count) = (sites.next(), 0);
                }
            }
        }
    }
}

impl Rule for Mqd {
    fn map(&mut self, round: &mut Round<'_>) {
        if self.is_main {
            let all = 0..round.slots().len();
            let mut order: Vec<usize> = match self.options.group_over {
                GroupOver::Open => round.slots().open().collect(),
                GroupOver::All => all.filter(|&site| round.slots().is_available(site)).collect(),
            };
            if self.options.tie == Tie::Random {
                round.draw().shuffle(&mut order);
            }
            order.sort_by(|&one, &other| round.efficiency(other).total_cmp(&round.efficiency(one)));
            by_groups(round, &self.options, &order);
            return;
        }
        let before = round.made.len();
        self.next = deal(round, self.options.border, self.next);
        self.first.extend(round.made[before..].iter().map(|one| one.job));
        self.is_main = round.slots().open().next().is_none();
    }

    fn scope(&self) -> Scope {
        let is_over = match self.options.phase_end {
            PhaseEnd::Saturated => self.is_main,
            PhaseEnd::Finished => self.is_main && self.first.is_empty(),
        };
        if is_over { Scope::Site } else { Scope::All }
    }

    fn is_main(&self) -> bool {
        self.is_main
    }

    fn begin_main(&mut self) {
        self.is_main = true;
    }

    fn ended(&mut self, ended: &Ended) {
        self.first.remove(&ended.job.id);
    }

    fn lost(&mut self, job: &JobSpec, _site: usize, _why: Lost) {
        // Whoever takes it now does so in the main phase.
        self.first.remove(&job.id);
    }

    fn known(&self, of: Subject) -> Option<Words> {
        match of {
            Subject::Rule => Some(words([self.next as u64])),
            Subject::Job(job) => self.first.contains(&job).then(|| words([])),
            _ => None,
        }
    }

    fn recollect(&mut self, of: Subject, words: &Words) -> bool {
        match of {
            Subject::Rule => {
                let next = place(words[0], self.sites);
                self.next = next.unwrap_or(self.next);
                next.is_some()
            }
            Subject::Job(job) => self.first.insert(job),
            _ => false,
        }
    }
}
