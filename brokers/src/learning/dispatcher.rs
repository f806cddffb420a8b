//! A dispatcher: the jobs of one broker that wait or are somewhere, the places at sites, and a rule.
//!
//! Its driver tells it what happened and asks at each event for assignments and for jobs to call back. It knows no clock and
//! sends nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use scheduler::draw::Draw;
use scheduler::local::Estimator;
use scheduler::strategy::opaque::{Blame, Clock, Growth, Options, TotalFrom};
use scheduler::{JobId, JobSpec, Prediction, Span, Time};

use super::efficiency::{Efficiency, Reward, Step};
use super::estimates::Estimates;
use super::memory::{Change, Diary, Placed, PlacedAt, Subject, Words, words};
use super::rule::{Active, Assignment, Copied, Ended, Lost, Round, Rule, Waiting};
use super::rules::rule;
use super::slots::Slots;
use super::times::Times;
use crate::broker::{Act, Broker, Disclosure, Sites};
use crate::predictions::{Lesson, Predictions};

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
    /// What was learned of run times, if they are predicted.
    pub lesson: Option<Lesson>,
}

/// Everything that one broker knows of its jobs.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    options: Options,
    rule: Box<dyn Rule>,
    /// What the rule believes of run times. Jobs are kept, sent and written down as users described them.
    predictions: Predictions,
    /// What was predicted since somebody asked.
    news: Vec<Prediction>,
    slots: Slots,
    efficiency: Efficiency,
    draw: Draw,
    waiting: VecDeque<Waiting>,
    /// What was decided and not told yet, while whoever asks does so.
    made: Option<VecDeque<Assignment>>,
    active: BTreeMap<JobId, Active>,
    /// Times that a limit grew: by site, and of all.
    grown: (Vec<u32>, u32),
    recalled: u64,
    /// Times that jobs were called back which are not seen now, as below.
    remembered: BTreeMap<JobId, u32>,
    /// Jobs that were at a site, with when that was first, and are not seen now: an earlier incarnation knew of them, or they are on
    /// their way back.
    unseen: BTreeMap<JobId, (JobSpec, Time)>,
    /// What was told of what must not be forgotten; none if nobody asks.
    diary: Option<Diary>,
}

impl Dispatcher {
    /// The dispatcher of this number among all, over sites with so many processors.
    pub fn new(options: &Options, processors: &[u32], seed: u64, number: u64) -> Dispatcher {
        Dispatcher {
            options: *options,
            rule: rule(options, processors.len()),
            predictions: Predictions::default(),
            news: Vec::new(),
            slots: Slots::new(processors, options.cap),
            efficiency: Efficiency::new(processors.len()),
            draw: Draw::of_stream(seed, FIRST_STREAM + number),
            waiting: VecDeque::new(),
            made: None,
            active: BTreeMap::new(),
            grown: (vec![0; processors.len()], 0),
            recalled: 0,
            remembered: BTreeMap::new(),
            unseen: BTreeMap::new(),
            diary: None,
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

    /// Has run times predicted, from ends that sites tell. A job is predicted when the rule is first asked for its site.
    pub fn predict_by(&mut self, estimator: Box<dyn Estimator>) {
        self.predictions = Predictions::by(estimator);
    }

    /// Learns of run times again what was learned before whoever drives this restarted.
    pub fn recall_lesson(&mut self, lesson: &Lesson) {
        self.predictions.recall(lesson);
    }

    /// What was predicted since this was asked last, in that order.
    pub fn predictions(&mut self) -> impl Iterator<Item = Prediction> + '_ {
        self.news.drain(..)
    }

    /// Shows the rule jobs that wait as they are believed to be. Returns what users request.
    fn believe(&mut self, now: Time) -> Vec<Span> {
        if !self.predictions.are_made() {
            return Vec::new();
        }
        let mut requested = Vec::with_capacity(self.waiting.len());
        for Waiting { spec, .. } in &mut self.waiting {
            requested.push(spec.requested);
            let is_new = !self.predictions.has(spec.id);
            *spec = self.predictions.believed(now, *spec);
            if is_new {
                self.news.push(Prediction { job: spec.id, run_time: spec.requested, corrections: 0 });
            }
        }
        requested
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

    /// Goes on with the main phase of the rule, if it has one.
    pub fn begin_main(&mut self) {
        self.rule.begin_main();
    }

    /// Whether the rule is in its main phase; false if it has none.
    pub fn is_main(&self) -> bool {
        self.rule.is_main()
    }

    /// Goes on with limits that grew: a job, which is not known of yet, was called back so often.
    pub fn remember_job(&mut self, job: JobId, times: u32) {
        self.remembered.insert(job, times);
    }

    /// The same of a site, from which jobs were called back so often.
    pub fn remember_site(&mut self, site: usize, times: u32) {
        self.grown.1 = self.grown.1.saturating_add(times);
        self.grown.0[site] = self.grown.0[site].saturating_add(times);
    }

    /// Begins to note what must not be forgotten, for [`Dispatcher::changes`]. To be called before anything happens.
    pub fn keep_diary(&mut self) {
        let (at_first, _) = self.all_known();
        self.diary = Some(Diary { known: at_first.clone(), at_first, ..Diary::default() });
    }

    /// What is known after changes of so much were told, as [`Dispatcher::all_known`] has it.
    pub fn known_by(&self, told: &BTreeMap<Subject, Words>) -> BTreeMap<Subject, Words> {
        let mut known = self.diary.as_ref().map(|diary| diary.at_first.clone()).unwrap_or_default();
        known.extend(told.iter().map(|(&of, &words)| (of, words)));
        known
    }

    /// Goes on from what was known of a subject in an earlier incarnation. Subjects come in their order, before any job does.
    ///
    /// # Errors
    /// If no dispatcher with these options can have known it.
    pub fn recollect(&mut self, of: Subject, words: &Words) -> Result<(), String> {
        let is_sound = match of {
            Subject::Chance => self.draw.go_on_at([words[0], words[1], words[2], words[3]]),
            of => self.rule.recollect(of, words),
        };
        if !is_sound {
            return Err(format!("{} cannot have known {words:?} of {of:?}", self.options.rule.name()));
        }
        if let Some(diary) = &mut self.diary {
            diary.known.insert(of, *words);
        }
        Ok(())
    }

    /// A job was at a site in an earlier incarnation: it is still, or waits for one again, once it is known of. `has_arrived` says
    /// whether the site has it by all that is known.
    ///
    /// # Panics
    /// If there is no such site.
    pub fn was_placed(&mut self, placed: Placed, has_arrived: bool) {
        let id = placed.job.id;
        match placed.at {
            None => drop(self.unseen.insert(id, (placed.job, placed.first))),
            Some(PlacedAt { site, since, queued, started, is_called }) => {
                let site = site as usize;
                let queued = queued.or(has_arrived.then_some(since));
                let copies = vec![Copied { site, scheduled: since, queued, started, is_called }];
                self.slots.take(site);
                let recalls = self.remembered.remove(&id).unwrap_or(0);
                let active = Active { spec: placed.job, first_scheduled: placed.first, recalls, copies };
                self.active.insert(id, active);
            }
        }
        if let Some(diary) = &mut self.diary {
            diary.placed.insert(id, placed);
        }
        // What is taken for known now was not written down.
        self.note(&placed.job);
    }

    /// Where a job is by what is known of it; none if it was at no site.
    fn placed(&self, job: JobId) -> Option<Placed> {
        if let Some(active) = self.active.get(&job) {
            let at = active.copies.last().map(|copy| PlacedAt {
                site: u32::try_from(copy.site).unwrap_or(u32::MAX),
                since: copy.scheduled,
                queued: copy.queued,
                started: copy.started,
                is_called: copy.is_called,
            });
            return Some(Placed { job: active.spec, first: active.first_scheduled, at });
        }
        if let Some(&(job, first)) = self.unseen.get(&job) {
            return Some(Placed { job, first, at: None });
        }
        let waiting = self.waiting.iter().find(|waiting| waiting.spec.id == job)?;
        Some(Placed { job: waiting.spec, first: waiting.first_scheduled?, at: None })
    }

    fn known(&self, of: Subject) -> Option<Words> {
        match of {
            Subject::Chance => {
                let position = self.draw.position();
                (position != [0; 4]).then(|| words(position))
            }
            of => self.rule.known(of),
        }
    }

    /// What can have changed with these jobs, and with a round.
    fn subjects(&self, jobs: impl IntoIterator<Item = (JobId, i32)>) -> BTreeSet<Subject> {
        let sites = 0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let mut subjects = BTreeSet::from([Subject::Rule, Subject::Chance]);
        subjects.extend(sites.clone().map(Subject::Site));
        for (job, user) in jobs {
            subjects.extend([Subject::Job(job), Subject::User(user)]);
            // Few rules know users; those that do not are not asked for each of their sites.
            if self.rule.known(Subject::User(user)).is_some() {
                subjects.extend(sites.clone().map(|site| Subject::UserAt(user, site)));
            }
        }
        subjects
    }

    /// A job of which something may have changed.
    fn note(&mut self, job: &JobSpec) {
        if let Some(diary) = &mut self.diary {
            diary.jobs.insert((job.id, self.rule.user(job)));
        }
    }

    fn note_active(&mut self, job: JobId) {
        if let Some(spec) = self.active.get(&job).map(|active| active.spec) {
            self.note(&spec);
        }
    }

    /// What changed in what must not be forgotten since this was asked last.
    pub fn changes(&mut self) -> Vec<Change> {
        let Some(mut diary) = self.diary.take() else { return Vec::new() };
        let mut changes = Vec::new();
        let (jobs, was_asked) = (std::mem::take(&mut diary.jobs), std::mem::take(&mut diary.was_asked));
        if jobs.is_empty() && !was_asked {
            self.diary = Some(diary);
            return changes;
        }
        for &(job, _) in &jobs {
            let placed = self.placed(job);
            if placed == diary.placed.get(&job).copied() {
                continue;
            }
            changes.push(match placed {
                Some(placed) => {
                    diary.placed.insert(job, placed);
                    Change::Placed(placed)
                }
                None => {
                    diary.placed.remove(&job);
                    Change::Gone(job)
                }
            });
        }
        for of in self.subjects(jobs) {
            let known = self.known(of);
            if known == diary.known.get(&of).copied() {
                continue;
            }
            match known {
                Some(words) => drop(diary.known.insert(of, words)),
                None => drop(diary.known.remove(&of)),
            }
            changes.push(Change::Known(of, known));
        }
        self.diary = Some(diary);
        changes
    }

    /// All that must not be forgotten, from what is known now. For observers, who compare it with what was told.
    pub fn all_known(&self) -> (BTreeMap<Subject, Words>, BTreeMap<JobId, Placed>) {
        let waiting = self.waiting.iter().map(|waiting| &waiting.spec);
        let unseen = self.unseen.values().map(|(spec, _)| spec);
        let specs = self.active.values().map(|active| &active.spec).chain(waiting).chain(unseen);
        let jobs: Vec<(JobId, i32)> = specs.map(|job| (job.id, self.rule.user(job))).collect();
        let placed = jobs.iter().filter_map(|&(job, _)| Some((job, self.placed(job)?))).collect();
        let told = self.diary.iter().flat_map(|diary| diary.known.keys().copied());
        let subjects = self.subjects(jobs).into_iter().chain(told);
        (subjects.filter_map(|of| Some((of, self.known(of)?))).collect(), placed)
    }

    /// How often a job was called back that has not ended.
    pub fn recalls_of(&self, job: JobId) -> u32 {
        let waiting =
            || self.waiting.iter().find(|waiting| waiting.spec.id == job).map(|waiting| waiting.recalls);
        let seen = self.active.get(&job).map(|active| active.recalls).or_else(waiting);
        seen.or_else(|| self.remembered.get(&job).copied()).unwrap_or(0)
    }

    /// How often jobs were called back from a site.
    pub fn recalls_from(&self, site: usize) -> u32 {
        self.grown.0[site]
    }

    /// A job that has a site, the one where it is, the last of several, and when it was assigned there.
    pub fn where_is(&self, job: JobId) -> Option<(JobSpec, usize, Time)> {
        let active = self.active.get(&job)?;
        active.copies.last().map(|copy| (active.spec, copy.site, copy.scheduled))
    }

    /// Jobs that are at a site or on their way there.
    pub fn jobs_at(&self, site: usize) -> impl Iterator<Item = JobId> {
        let is_here = move |active: &Active| active.copies.iter().any(|copy| copy.site == site);
        self.active.iter().filter(move |(_, active)| is_here(active)).map(|(&job, _)| job)
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

    /// Which jobs go where now, in the order of the decisions. Nothing if all sites are saturated.
    pub fn dispatch(&mut self, now: Time, estimates: &dyn Estimates) -> Vec<Assignment> {
        // A rule that goes by the order of jobs would wait with them.
        let shown = self.slots.widest_left().map(|widest| {
            let fits = |&place: &usize| self.waiting[place].spec.processors <= widest;
            (0..self.waiting.len()).filter(fits).collect()
        });
        let requested = self.believe(now);
        let mut round = Round {
            now,
            waiting: &mut self.waiting,
            shown,
            slots: &mut self.slots,
            active: &self.active,
            predictions: &self.predictions,
            efficiency: &self.efficiency,
            estimates,
            draw: &mut self.draw,
            made: Vec::new(),
        };
        self.rule.map(&mut round);
        let made = round.made;
        for (waiting, requested) in self.waiting.iter_mut().zip(requested) {
            waiting.spec.requested = requested;
        }
        if let Some(diary) = &mut self.diary {
            diary.was_asked = true;
        }
        for copy in made.iter().filter(|one| one.is_copy) {
            if let Some(active) = self.active.get_mut(&copy.job) {
                active.copies.push(Copied::new(copy.site, now));
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
        self.note(&job.spec);
        let copies = vec![Copied::new(site, now)];
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
        self.note_active(job);
    }

    /// A job started at its site: it is not called back from there any more.
    pub fn started(&mut self, now: Time, job: JobId, site: usize) {
        if let Some(copy) = self.copy(job, site) {
            copy.started.get_or_insert(now);
        }
        self.note_active(job);
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
        self.note(&active.spec);
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
        let job = self.predictions.as_believed(active.spec);
        self.rule.ended(&Ended { job, site, times });
        let lesson = self.predictions.executed(now, active.spec, times.execution);
        let mut cancel = Vec::new();
        for copy in active.copies {
            self.slots.give_back(copy.site);
            if copy.site != site {
                self.rule.lost(&active.spec, copy.site, Lost::Superseded);
                cancel.push(copy.site);
            }
        }
        Some(Finished { times, step, cancel, lesson })
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
            let waits = active.copies.iter().filter(|copy| copy.started.is_none() && !copy.is_called);
            waits.filter_map(move |copy| {
                let since = match self.options.clock {
                    Clock::Queue => copy.queued?,
                    Clock::Scheduled => copy.scheduled,
                };
                Some((since.saturating_add(self.limit(active, copy.site)?), job, copy.site))
            })
        })
    }

    /// Jobs that have waited for their limit, and where.
    pub fn recalls(&self, now: Time) -> Vec<(JobId, usize)> {
        self.deadlines().filter(|&(end, ..)| end <= now).map(|(_, job, site)| (job, site)).collect()
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

    /// A site gave a job back that it has not executed, or never got it. It waits for a site again. False if it was not there.
    pub fn returned(&mut self, job: JobId, site: usize) -> bool {
        self.copy(job, site).is_some() && self.take_back(job, site, Lost::Returned)
    }

    /// A job is somewhere, and what becomes of it is not heard of any more: its places are free.
    pub fn forget(&mut self, job: JobId) {
        self.lose_sight(job);
        self.predictions.forget(job);
        self.remembered.remove(&job);
        if let Some((spec, _)) = self.unseen.remove(&job) {
            self.note(&spec);
        }
    }

    /// A job is not where it was, and may be on its way back: its places are free. If it comes, its limit and the time of its
    /// first assignment are what they were.
    pub fn lose_sight(&mut self, job: JobId) {
        let Some(active) = self.active.remove(&job) else { return };
        self.note(&active.spec);
        for copy in active.copies {
            self.slots.give_back(copy.site);
            self.rule.lost(&active.spec, copy.site, Lost::Superseded);
        }
        if active.recalls > 0 {
            self.remembered.insert(job, active.recalls);
        }
        self.unseen.insert(job, (active.spec, active.first_scheduled));
    }

    /// Whether a job was lost sight of.
    pub fn is_unseen(&self, job: JobId) -> bool {
        self.unseen.contains_key(&job)
    }

    /// Whether a job is at a site as far as this dispatcher knows, or was and was lost sight of.
    pub fn knows(&self, job: JobId) -> bool {
        self.active.contains_key(&job) || self.is_unseen(job)
    }

    /// A job turns out to be at a site, or on its way there, of which this dispatcher knew nothing: it restarted.
    /// What it knows of already stays as it is.
    pub fn found(
        &mut self,
        now: Time,
        job: JobSpec,
        site: usize,
        queued: Option<Time>,
        started: Option<Time>,
    ) {
        if self.active.contains_key(&job.id) || self.waiting.iter().any(|other| other.spec.id == job.id) {
            return;
        }
        let scheduled = queued.unwrap_or(now);
        let copies = vec![Copied { queued, started, ..Copied::new(site, scheduled) }];
        self.slots.take(site);
        let recalls = self.remembered.remove(&job.id).unwrap_or(0);
        let first_scheduled = self.unseen.remove(&job.id).map_or(scheduled, |(_, first)| first);
        self.active.insert(job.id, Active { spec: job, first_scheduled, recalls, copies });
        self.note(&job);
    }

    /// When a job that ended entered the queue of its site, and started, as the site measured it.
    pub fn measured(&mut self, job: JobId, site: usize, queued: Time, started: Time) {
        if let Some(copy) = self.copy(job, site) {
            (copy.queued, copy.started) = (Some(queued), Some(started));
        }
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
        self.note(&spec);
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

impl Broker for Dispatcher {
    fn needs(&self) -> Disclosure {
        Disclosure::OwnEnds
    }

    /// It goes behind those that wait.
    fn came(&mut self, _now: Time, job: JobSpec) {
        let recalls = self.remembered.remove(&job.id).unwrap_or(0);
        let first_scheduled = self.unseen.remove(&job.id).map(|(_, first)| first);
        if first_scheduled.is_some() {
            // A liar that had it may have made it another.
            self.note(&job);
        }
        self.waiting.push_back(Waiting { spec: job, first_scheduled, recalls, site: None });
    }

    fn withdraw(&mut self, job: &JobSpec) -> Option<JobSpec> {
        let place = self.waiting.iter().position(|waiting| waiting.spec.id == job.id)?;
        let spec = self.waiting.remove(place)?.spec;
        self.predictions.forget(spec.id);
        self.note(&spec);
        Some(spec)
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = &JobSpec> + '_> {
        Box::new(self.waiting.iter().map(|waiting| &waiting.spec))
    }

    fn count(&self) -> usize {
        self.waiting.len()
    }

    /// All that [`Dispatcher::dispatch`] says, one after the other.
    fn decide(&mut self, now: Time, sites: &mut dyn Sites) -> Option<Act> {
        let mut made = self.made.take().unwrap_or_else(|| self.dispatch(now, sites.estimates()).into());
        let next = made.pop_front()?;
        self.made = Some(made);
        Some(Act::Place(self.active[&next.job].spec, next.site))
    }

    fn wake_at(&self) -> Option<Time> {
        self.deadlines().map(|(end, ..)| end).min()
    }

    /// Those that have waited for their limit. They are not called again: whoever hears what became of them says so by
    /// [`Dispatcher::recalled`], or that they had started.
    fn woke(&mut self, now: Time) -> Vec<(JobId, usize)> {
        let recalls = self.recalls(now);
        for &(job, site) in &recalls {
            if let Some(copy) = self.copy(job, site) {
                copy.is_called = true;
            }
            self.note_active(job);
        }
        recalls
    }
}
