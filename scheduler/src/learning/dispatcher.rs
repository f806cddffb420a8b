//! A dispatcher: the jobs of one broker that wait or are somewhere, the places at sites, and a rule.
//!
//! Its driver tells it what happened and asks at each event for assignments and for jobs to call back. It knows no clock and
//! sends nothing.

use std::collections::{BTreeMap, VecDeque};

use super::efficiency::{Efficiency, Reward, Step};
use super::estimates::Estimates;
use super::options::{Blame, Clock, Growth, Options, TotalFrom};
use super::rule::{Active, Assignment, Copied, Ended, Lost, Round, Rule, Waiting};
use super::rules::rule;
use super::slots::Slots;
use super::times::Times;
use crate::genetic::Draw;
use crate::job::{JobId, JobSpec};
use crate::time::{Span, Time};

/// The first stream of random numbers that dispatchers draw from; each adds its number.
const FIRST_STREAM: u64 = 1 << 36;

/// What follows from the end of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// How long it took.
    pub times: Times,
    /// What was learned.
    pub step: Step,
    /// Sites where other copies of it are, which are to be canceled. They hold no place any more.
    pub cancel: Vec<usize>,
}

/// Everything that one broker knows of its jobs.
#[derive(Debug)]
pub struct Dispatcher {
    options: Options,
    rule: Box<dyn Rule>,
    slots: Slots,
    efficiency: Efficiency,
    draw: Draw,
    waiting: VecDeque<Waiting>,
    active: BTreeMap<JobId, Active>,
    /// Times that a limit grew: by site, and of all.
    grown: (Vec<u32>, u32),
    recalled: u64,
}

impl Clone for Dispatcher {
    fn clone(&self) -> Dispatcher {
        Dispatcher {
            options: self.options.clone(),
            rule: self.rule.boxed(),
            slots: self.slots.clone(),
            efficiency: self.efficiency.clone(),
            draw: self.draw.clone(),
            waiting: self.waiting.clone(),
            active: self.active.clone(),
            grown: self.grown.clone(),
            recalled: self.recalled,
        }
    }
}

impl Dispatcher {
    /// The dispatcher of this number among all, over sites with so many processors.
    pub fn new(options: &Options, processors: &[u32], seed: u64, number: u64) -> Dispatcher {
        Dispatcher {
            options: options.clone(),
            rule: rule(options, processors.len()),
            slots: Slots::new(processors, options.cap),
            efficiency: Efficiency::new(processors.len()),
            draw: Draw::of_stream(seed, FIRST_STREAM + number),
            waiting: VecDeque::new(),
            active: BTreeMap::new(),
            grown: (vec![0; processors.len()], 0),
            recalled: 0,
        }
    }

    /// What it goes by.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The places at sites.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// The same, to say that a site comes, goes, or holds another number of jobs.
    pub fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// What was learned of sites.
    pub fn efficiency(&self) -> &Efficiency {
        &self.efficiency
    }

    /// Goes on from what was learned before.
    ///
    /// # Errors
    /// If that is of another number of sites.
    pub fn restore(&mut self, efficiency: Efficiency) -> Result<(), String> {
        let (found, wanted) = (efficiency.sites(), self.slots.len());
        if found != wanted {
            return Err(format!(
                "what was learned is of {found} sites, not of {wanted}; take that of this grid"
            ));
        }
        self.efficiency = efficiency;
        Ok(())
    }

    /// Jobs that have no site.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Jobs that were assigned and have not ended.
    pub fn under_way(&self) -> usize {
        self.active.len()
    }

    /// Times that a job was called back.
    pub fn recalled_total(&self) -> u64 {
        self.recalled
    }

    /// Whether its rule gave up: no money or no time is left.
    pub fn is_infeasible(&self) -> bool {
        self.rule.is_infeasible()
    }

    /// A job arrives; it goes behind those that wait.
    pub fn arrived(&mut self, job: JobSpec) {
        self.waiting.push_back(Waiting { spec: job, first_scheduled: None, recalls: 0, site: None });
    }

    /// Which jobs go where now, in the order of the decisions. Nothing if all sites are saturated.
    pub fn dispatch(&mut self, now: Time, estimates: &dyn Estimates) -> Vec<Assignment> {
        let mut round = Round {
            now,
            waiting: &mut self.waiting,
            slots: &mut self.slots,
            active: &self.active,
            efficiency: &self.efficiency,
            estimates,
            draw: &mut self.draw,
            made: Vec::new(),
        };
        self.rule.map(&mut round);
        let made = round.made;
        for copy in made.iter().filter(|one| one.is_copy) {
            if let Some(active) = self.active.get_mut(&copy.job) {
                active.copies.push(Copied { site: copy.site, scheduled: now, queued: None, started: None });
            }
        }
        let mut left = made.iter().filter(|one| !one.is_copy).count();
        // Rules that take jobs as they came leave the rest as it is.
        while left > 0 && self.waiting.front().is_some_and(|job| job.site.is_some()) {
            let job = self.waiting.pop_front();
            job.into_iter().for_each(|job| self.start_of(job, now));
            left -= 1;
        }
        if left > 0 {
            let (gone, stay) = self.waiting.drain(..).partition(|job: &Waiting| job.site.is_some());
            self.waiting = stay;
            let gone: VecDeque<Waiting> = gone;
            gone.into_iter().for_each(|job| self.start_of(job, now));
        }
        made
    }

    fn start_of(&mut self, job: Waiting, now: Time) {
        let Some(site) = job.site else { return };
        let copies = vec![Copied { site, scheduled: now, queued: None, started: None }];
        let first_scheduled = job.first_scheduled.unwrap_or(now);
        self.active
            .insert(job.spec.id, Active { spec: job.spec, first_scheduled, recalls: job.recalls, copies });
    }

    fn copy(&mut self, job: JobId, site: usize) -> Option<&mut Copied> {
        self.active.get_mut(&job)?.copies.iter_mut().find(|copy| copy.site == site)
    }

    /// A job entered the queue of its site. What is not there is ignored, as by the next one.
    pub fn queued(&mut self, now: Time, job: JobId, site: usize) {
        if let Some(copy) = self.copy(job, site) {
            copy.queued.get_or_insert(now);
        }
    }

    /// A job started at its site: it is not called back from there any more.
    pub fn started(&mut self, now: Time, job: JobId, site: usize) {
        if let Some(copy) = self.copy(job, site) {
            copy.started.get_or_insert(now);
        }
    }

    /// A job ended at a site after it ran and moved data for so long. None if it was not there.
    pub fn finished(
        &mut self,
        now: Time,
        job: JobId,
        site: usize,
        execution: Span,
        transfer: Span,
    ) -> Option<Finished> {
        let copy = *self.copy(job, site)?;
        let active = self.active.remove(&job)?;
        let since = match self.options.total_from {
            TotalFrom::Last => copy.scheduled,
            TotalFrom::First => active.first_scheduled,
        };
        let queue = match (copy.queued, copy.started) {
            (Some(queued), Some(started)) => started.since(queued),
            _ => Span::ZERO,
        };
        let times = Times::fitted(now.since(since), execution, queue, transfer);
        let scope = self.rule.scope();
        let step = self.efficiency.ended(&self.options, scope, site, times.execution, times.total());
        self.rule.ended(&Ended { job: active.spec, site, times });
        let mut cancel = Vec::new();
        for copy in active.copies {
            self.slots.give_back(copy.site);
            if copy.site != site {
                self.rule.lost(&active.spec, copy.site, Lost::Superseded);
                cancel.push(copy.site);
            }
        }
        Some(Finished { times, step, cancel })
    }

    /// How long a job may wait in the queue of a site now; none for ever.
    fn limit(&self, active: &Active, site: usize) -> Option<Span> {
        let times = match self.options.growth {
            Growth::Job => active.recalls,
            Growth::Site => self.grown.0[site],
            Growth::All => self.grown.1,
        };
        let mut limit = self.options.timeout?.as_micros();
        for _ in 0..times {
            let grown = i128::from(limit) * i128::from(100 + u64::from(self.options.growth_percent)) / 100;
            match i64::try_from(grown) {
                Ok(grown) if grown > limit => limit = grown,
                Ok(_) => break,
                Err(_) => return Some(Span::MAX),
            }
        }
        Some(Span::from_micros(limit))
    }

    /// When the wait of each copy that has not started ends.
    fn deadlines(&self) -> impl Iterator<Item = (Time, JobId, usize)> + '_ {
        self.active.iter().flat_map(move |(&job, active)| {
            active.copies.iter().filter(|copy| copy.started.is_none()).filter_map(move |copy| {
                let since = match self.options.clock {
                    Clock::Queue => copy.queued?,
                    Clock::Scheduled => copy.scheduled,
                };
                Some((since.saturating_add(self.limit(active, copy.site)?), job, copy.site))
            })
        })
    }

    /// Jobs to call back, and from where: those that have waited for their limit. Call [`Dispatcher::recalled`] for each that
    /// had not started.
    pub fn recalls(&self, now: Time) -> Vec<(JobId, usize)> {
        self.deadlines().filter(|&(end, ..)| end <= now).map(|(_, job, site)| (job, site)).collect()
    }

    /// When to ask for jobs to call back next; none if no job waits with a limit.
    pub fn next_timeout(&self) -> Option<Time> {
        self.deadlines().map(|(end, ..)| end).min()
    }

    /// A job was called back from a site before it started. It waits for a site again, the same one or another, and the limit
    /// grows. False if it was not there, or had started.
    pub fn recalled(&mut self, job: JobId, site: usize) -> bool {
        if self.copy(job, site).is_none_or(|copy| copy.started.is_some()) {
            return false;
        }
        self.recalled += 1;
        self.grown.0[site] = self.grown.0[site].saturating_add(1);
        self.grown.1 = self.grown.1.saturating_add(1);
        if self.options.timeout_blame == Blame::Slower {
            self.efficiency.reward(&self.options, site, Reward::Slower);
        }
        self.take_back(job, site, Lost::Recalled)
    }

    /// A job failed at a site. It waits for a site again. False if it was not there.
    pub fn failed(&mut self, job: JobId, site: usize) -> bool {
        if self.copy(job, site).is_none() {
            return false;
        }
        if self.options.failure_blame == Blame::Slower {
            self.efficiency.reward(&self.options, site, Reward::Slower);
        }
        self.take_back(job, site, Lost::Failed)
    }

    fn take_back(&mut self, job: JobId, site: usize, why: Lost) -> bool {
        let Some(active) = self.active.get_mut(&job) else { return false };
        active.copies.retain(|copy| copy.site != site);
        active.recalls += u32::from(why == Lost::Recalled);
        self.slots.give_back(site);
        let spec = active.spec;
        self.rule.lost(&spec, site, why);
        if self.active.get(&job).is_some_and(|active| active.copies.is_empty()) {
            // Where it would be had it waited on: by arrival, so that FIFO stays what it says.
            if let Some(active) = self.active.remove(&job) {
                let first_scheduled = Some(active.first_scheduled);
                let waiting = Waiting { spec, first_scheduled, recalls: active.recalls, site: None };
                let place = self
                    .waiting
                    .partition_point(|other| (other.spec.submit, other.spec.id) < (spec.submit, job));
                self.waiting.insert(place, waiting);
            }
        }
        true
    }
}
