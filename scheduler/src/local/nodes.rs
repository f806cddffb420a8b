//! FCFS, LIST and EASY on nodes that jobs share: as on processors, but a job fits if enough nodes take one of its tasks, and ends
//! move when others come and go.
//!
//! The queue keeps a picture of the nodes: jobs that run, each with the time that it is believed to need on idle nodes. The picture places
//! tasks as the nodes themselves do, since that depends on starts and ends alone. A job that outlives the picture of it keeps its
//! nodes there until it ends. Playing the picture on is Algorithm 3.2 of Lérida's thesis (§3.4.2): what local users do later is
//! not known to it, nor who comes later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::machine::{End, Machine};
use super::rule::QueueRule;
use super::turn::{Place, Waiting};
use crate::capacity::SharedNodes;
use crate::job::{JobId, JobSpec};
use crate::sharing::local_load::NOBODY;
use crate::sharing::{Candidate, Demand, Estimate, RUN_TIME_MAX, Refusal, Shared, place, processing};
use crate::strategy::SharingEstimator;
use crate::time::{Span, Time};

/// What may overtake a head that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    /// Nothing (FCFS).
    Never,
    /// Everything that fits (LIST, which the thesis calls FPFS).
    WhateverFits,
    /// What does not delay the head as things are believed to go on (EASY).
    WithoutDelay,
}

/// A queue in order of submission before shared nodes.
#[derive(Clone, Debug)]
pub(super) struct NodeQueue {
    passing: Passing,
    nodes: Arc<SharedNodes>,
    waiting: BTreeMap<Place, Waiting>,
    picture: Shared<JobId>,
    /// The nodes of jobs that run, and what these ask for.
    placed: BTreeMap<JobId, (Vec<u32>, Demand)>,
    /// Tasks of these.
    tasks: u32,
    /// Jobs that run and have ended in the picture.
    overdue: BTreeSet<JobId>,
    /// Whether what ends in the picture has ended: it is played on.
    is_played: bool,
    /// What it is played on by.
    estimator: SharingEstimator,
}

/// What jobs and local users have of the nodes of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupation {
    /// Memory that is taken, of all nodes together in KB.
    pub memory_taken: u64,
    /// Their memory.
    pub memory: u64,
    /// Tasks on the fullest node, and how many it may have.
    pub fullest: (u32, u32),
    /// Jobs that compute for half of their time on idle nodes, or more.
    pub computing: usize,
    /// Those that communicate for more than half of it.
    pub communicating: usize,
}

impl NodeQueue {
    pub(super) fn new(passing: Passing, nodes: Arc<SharedNodes>) -> NodeQueue {
        let picture = Shared::new((*nodes.platform).clone(), Estimate::Sdpn(nodes.fairness));
        NodeQueue {
            passing,
            nodes,
            waiting: BTreeMap::new(),
            picture,
            placed: BTreeMap::new(),
            tasks: 0,
            overdue: BTreeSet::new(),
            is_played: false,
            estimator: SharingEstimator::default(),
        }
    }

    /// What has ended in the picture and not outside keeps its nodes.
    fn advance(&mut self, now: Time) {
        if self.is_played {
            return;
        }
        // Local users may bring an end before now that was after it.
        while let Some(due) = self.picture.pop_due(now) {
            let (nodes, demand) = &self.placed[&due.what];
            let demand = Demand { run_time: RUN_TIME_MAX, ..*demand };
            let kept = self.picture.resume(due.at, due.what, demand, nodes, Span::ZERO, due.what);
            kept.expect("its nodes are there, and it had been on them");
            self.overdue.insert(due.what);
        }
    }

    fn fits(&mut self, now: Time, job: &JobSpec) -> bool {
        let demand = self.nodes.demand(job, job.requested);
        // Tasks that were put on full nodes take places that other nodes seem to have.
        self.tasks + job.processors <= self.nodes.places()
            && self.picture.fits(now, 0, job.id, &demand).is_ok()
    }

    fn start(&mut self, now: Time, job: &JobSpec) -> Result<(), Refusal> {
        let demand = self.nodes.demand(job, job.requested);
        let placed = self.picture.start(now, 0, job.id, demand, job.id)?.to_vec();
        self.placed.insert(job.id, (placed, demand));
        self.tasks += demand.tasks;
        Ok(())
    }

    /// A job executes somewhere here although it does not fit by what is known of the others: on nodes that have room, then on those with
    /// the fewest tasks.
    fn squeeze_in(&mut self, now: Time, job: &JobSpec) {
        let demand = self.nodes.demand(job, job.requested);
        let mut candidates: Vec<Candidate> =
            (0..self.nodes.count()).map(|node| self.picture.node(node)).collect();
        candidates
            .sort_by_key(|candidate| (!candidate.takes(demand.memory), candidate.tasks, candidate.node));
        let first = candidates.iter().take(demand.tasks as usize);
        let mut nodes: Vec<u32> = first.map(|candidate| candidate.node).collect();
        nodes.sort_unstable();
        if self.picture.resume(now, job.id, demand, &nodes, Span::ZERO, job.id).is_ok() {
            self.placed.insert(job.id, (nodes, demand));
            self.tasks += demand.tasks;
        }
    }

    fn end(&mut self, now: Time, job: JobId) {
        self.picture.stop(now, job);
        self.leave(job);
    }

    /// A job is in the picture no more.
    fn leave(&mut self, job: JobId) {
        if let Some((_, demand)) = self.placed.remove(&job) {
            self.tasks -= demand.tasks;
        }
        self.overdue.remove(&job);
    }

    /// What a job on the nodes has done by now, as the time that this takes on idle nodes of full power: T^e less what is left of it (3.9). What it
    /// did in the picture until it ended there is what it was believed to need.
    fn done(&self, now: Time, job: JobId) -> Option<Span> {
        let (_, believed) = self.placed.get(&job)?;
        let running = self.picture.get(job)?;
        let since_resumed = running.demand.run_time.as_micros() as f64 - running.remaining(now);
        let before = if self.overdue.contains(&job) { believed.run_time } else { Span::ZERO };
        Some(before + Span::from_micros(since_resumed.round() as i64))
    }

    /// A clone to play on with, without the jobs that wait: there may be thousands, and a pass plays once for each.
    fn without_waiting(&self) -> NodeQueue {
        NodeQueue {
            passing: self.passing,
            nodes: Arc::clone(&self.nodes),
            waiting: BTreeMap::new(),
            picture: self.picture.clone(),
            placed: self.placed.clone(),
            tasks: self.tasks,
            overdue: self.overdue.clone(),
            is_played: self.is_played,
            estimator: self.estimator,
        }
    }

    /// When this job could start if nothing else did, as things are believed to go on; none if it never could. Plays this queue on.
    fn shadow(mut self, now: Time, job: &JobSpec) -> Option<Time> {
        let played = &mut self;
        // What starts is decided by the model, whoever plans by another estimator.
        played.estimator = SharingEstimator::Sdpn;
        played.play(now);
        let overdue: Vec<JobId> = played.overdue.iter().copied().collect();
        overdue.into_iter().for_each(|job| played.end(now, job));
        let mut at = now;
        while !played.fits(at, job) {
            at = played.picture.next_end()?;
            while let Some(due) = played.picture.pop_due(at) {
                played.leave(due.what);
            }
        }
        Some(at)
    }

    /// Starts what starts now, and says what, in that order.
    fn pick(&mut self, now: Time) -> Vec<Waiting> {
        self.advance(now);
        let mut started = Vec::new();
        let mut take = |queue: &mut NodeQueue, job: Waiting| {
            queue.waiting.remove(&job.place());
            queue.start(now, &job).expect("it fits");
            started.push(job);
        };
        while let Some(head) = self.waiting.values().next().copied().filter(|head| self.fits(now, head)) {
            take(self, head);
        }
        let Some(head) = self.waiting.values().next().copied() else { return started };
        let others: Vec<Waiting> = match self.passing {
            Passing::Never => Vec::new(),
            Passing::WhateverFits | Passing::WithoutDelay => self.waiting.values().skip(1).copied().collect(),
        };
        let mut shadow = None;
        for job in others {
            if !self.fits(now, &job) {
                continue;
            }
            if self.passing == Passing::WithoutDelay {
                let latest = *shadow.get_or_insert_with(|| self.without_waiting().shadow(now, &head));
                let mut with = self.without_waiting();
                with.start(now, &job).expect("it fits");
                if latest.is_some_and(|latest| with.shadow(now, &head).is_none_or(|then| then > latest)) {
                    continue;
                }
            }
            take(self, job);
        }
        started
    }
}

impl QueueRule for NodeQueue {
    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn insert(&mut self, job: Waiting) {
        self.waiting.insert(job.place(), job);
    }

    fn take(&mut self, job: JobId) -> Option<Waiting> {
        let place = self.waiting.values().find(|waiting| waiting.id == job)?.place();
        self.waiting.remove(&place)
    }

    /// What is told of a site from elsewhere may be late or wrong, and does not say on which nodes a job is: what cannot be on the nodes is on
    /// none.
    fn took_over(&mut self, now: Time, job: &JobSpec, since: Time) {
        self.advance(now);
        if self.start(now, job).is_err() {
            self.squeeze_in(now, job);
        }
        if self.placed.contains_key(&job.id) {
            let (nodes, demand) = &self.placed[&job.id];
            self.picture.stop(now, job.id);
            let done = now.since(since).max(Span::ZERO);
            self.picture.resume(now, job.id, *demand, nodes, done, job.id).expect("it was on these nodes");
        }
    }

    fn completed(&mut self, now: Time, estimated: End) {
        self.advance(now);
        self.end(now, estimated.job);
    }

    fn choose(&mut self, now: Time, machine: &mut Machine) {
        for job in self.pick(now) {
            machine.promise(now, job);
        }
    }

    fn start_as_told(&mut self, now: Time, job: JobId, machine: &mut Machine) -> bool {
        self.advance(now);
        let found = self.waiting.values().find(|waiting| waiting.id == job).copied();
        let Some(job) = found.filter(|job| self.fits(now, job)) else { return false };
        self.waiting.remove(&job.place());
        self.start(now, &job).expect("it fits");
        machine.promise(now, job);
        true
    }

    fn last_place(&self) -> Option<Place> {
        self.waiting.last_key_value().map(|(&place, _)| place)
    }

    /// Local users who leave make room for jobs.
    fn wake_at(&self, _held_up_until: Option<Time>) -> Option<Time> {
        self.picture.next_change().filter(|_| !self.waiting.is_empty())
    }

    fn overdue(&self) -> Option<Vec<JobId>> {
        Some(self.overdue.iter().copied().collect())
    }

    fn past(&mut self, now: Time) -> Option<Vec<(JobId, Span)>> {
        self.advance(now);
        let done = |&job: &JobId| self.done(now, job).map(|done| (job, done));
        Some(self.overdue.iter().filter_map(done).collect())
    }

    fn work(&mut self, now: Time, job: JobId) -> Option<Span> {
        if self.is_played {
            return None;
        }
        self.advance(now);
        self.done(now, job)
    }

    fn expect(&mut self, now: Time, job: JobId, run_time: Span) {
        self.advance(now);
        let run_time = run_time.min(RUN_TIME_MAX);
        let Some(done) = self.done(now, job).filter(|&done| done < run_time) else { return };
        let Some((nodes, demand)) = self.placed.get_mut(&job) else { return };
        demand.run_time = run_time;
        self.picture.stop(now, job);
        self.picture.resume(now, job, *demand, nodes, done, job).expect("it was on these nodes");
        self.overdue.remove(&job);
    }

    fn play(&mut self, now: Time) {
        self.advance(now);
        self.is_played = true;
        self.picture.freeze();
        if self.estimator == SharingEstimator::Hanzich {
            self.picture.believe(now, Estimate::Hanzich);
        }
    }

    fn next_end(&self) -> Option<Time> {
        self.picture.next_end()
    }

    fn pop_ended(&mut self, at: Time) -> Option<JobId> {
        self.picture.pop_due(at).map(|due| due.what)
    }

    fn local_nodes(&self, job: JobId) -> u32 {
        let is_used = |node: &&u32| self.picture.usage(**node) != NOBODY;
        self.placed.get(&job).map_or(0, |(nodes, _)| nodes.iter().filter(is_used).count() as u32)
    }

    fn nodes(&self, job: JobId) -> Option<&[u32]> {
        self.placed.get(&job).map(|(nodes, _)| nodes.as_slice())
    }

    fn takes(&mut self, now: Time, job: &JobSpec) -> bool {
        self.advance(now);
        self.fits(now, job)
    }

    fn powers(&self, now: Time, job: &JobSpec) -> Option<Vec<f64>> {
        let mut seen_now = self.without_waiting();
        seen_now.advance(now);
        let picture = &seen_now.picture;
        let mut candidates: Vec<Candidate> = (0..self.nodes.count()).map(|node| picture.node(node)).collect();
        place(&mut candidates, job.memory());
        // Tasks that were put on full nodes take places that other nodes seem to have.
        candidates.truncate(self.nodes.places().saturating_sub(self.tasks) as usize);
        let mut slowest: f64 = 1.0;
        let power = |candidate: &Candidate| {
            let local = picture.usage(candidate.node).computing();
            slowest = slowest.min(processing(candidate.power, local, candidate.tasks + 1).recip());
            slowest
        };
        Some(candidates.iter().map(power).collect())
    }

    fn occupation(&self, now: Time) -> Option<Occupation> {
        // Local users may have come or gone since the latest fact.
        let mut seen_now = self.without_waiting();
        seen_now.advance(now);
        let mut occupation = Occupation::default();
        for (spec, node) in self.nodes.platform.nodes().iter().zip(0..) {
            let seen = seen_now.picture.node(node);
            occupation.memory = occupation.memory.saturating_add(spec.memory);
            occupation.memory_taken =
                occupation.memory_taken.saturating_add(spec.memory.saturating_sub(seen.memory));
            let (tasks, most) = occupation.fullest;
            if most == 0 || u64::from(seen.tasks) * u64::from(most) > u64::from(tasks) * u64::from(seen.mpl) {
                occupation.fullest = (seen.tasks, seen.mpl);
            }
        }
        occupation.computing = self.placed.values().filter(|(_, demand)| demand.mostly_computes()).count();
        occupation.communicating = self.placed.len() - occupation.computing;
        Some(occupation)
    }

    fn believe(&mut self, estimator: SharingEstimator) {
        self.estimator = estimator;
    }

    fn check_invariants(&self, _now: Option<Time>, machine: &Machine) {
        assert!(self.placed.keys().all(|&job| machine.runs(job)), "what is on nodes runs");
        assert!(self.overdue.iter().all(|job| self.placed.contains_key(job)), "what is overdue is on nodes");
        assert_eq!(self.picture.len(), self.placed.len(), "the picture has what is on nodes");
    }

    fn boxed(&self) -> Box<dyn QueueRule> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Application;
    use crate::draw::Draw;
    use crate::job::Labels;
    use crate::sharing::local_load::XWINDOWS_INTERNET;
    use crate::sharing::{Cluster, Fairness, LocalLoad, Node, Platform};
    use crate::site_id::SiteId;

    /// EASY as it is defined, with a whole queue played on for each job that could overtake.
    fn pick_plainly(queue: &mut NodeQueue, now: Time) -> Vec<Waiting> {
        queue.advance(now);
        let mut started = Vec::new();
        let mut waiting: Vec<Waiting> = queue.waiting.values().copied().collect();
        while let Some(&head) = waiting.first()
            && queue.clone().fits(now, &head)
        {
            queue.start(now, &head).expect("it fits");
            started.push(waiting.remove(0));
        }
        if let Some(&head) = waiting.first() {
            let latest = queue.clone().shadow(now, &head);
            for job in waiting.split_off(1) {
                let mut with = queue.clone();
                if with.start(now, &job).is_err() {
                    continue;
                }
                let then = with.clone().shadow(now, &head);
                if latest.is_none_or(|latest| then.is_some_and(|then| then <= latest)) {
                    queue.start(now, &job).expect("it fits");
                    started.push(job);
                }
            }
        }
        for job in &started {
            queue.waiting.remove(&job.place());
        }
        started
    }

    fn nodes(draw: &mut Draw) -> Arc<SharedNodes> {
        let mpl = 1 + draw.below(3) as u32;
        let node = |number: usize| Node { power: [1.0, 0.5][number % 2], memory: 1_000, link: 100.0, mpl };
        let count = 1 + draw.below(5);
        let cluster = Cluster { nodes: (0..count).map(node).collect(), uplink: 100.0 };
        let mut local = Vec::new();
        for _ in 0..count {
            let (from, until) = (draw.below(40) as i64, 41 + draw.below(100) as i64);
            let changes = vec![(Time::from_secs(from), XWINDOWS_INTERNET), (Time::from_secs(until), NOBODY)];
            local.push(if draw.below(2) == 0 { LocalLoad::default() } else { LocalLoad::changing(changes) });
        }
        let platform =
            Platform::new(&[cluster]).expect("a cluster").with_local(local).expect("a load for each");
        let communicates = Application { computing: 0.5, bandwidth: 60.0 };
        Arc::new(SharedNodes {
            platform: Arc::new(platform),
            fairness: Fairness::Proportional,
            applications: Arc::new([(1, communicates)].into_iter().collect()),
        })
    }

    #[test]
    fn easy_on_nodes_starts_what_the_plain_version_starts() {
        let (mut overtaking, mut kept) = (0, 0);
        for seed in 0..150 {
            let mut draw = Draw::of_stream(seed, 1);
            let nodes = nodes(&mut draw);
            let mut queue = NodeQueue::new(Passing::WithoutDelay, Arc::clone(&nodes));
            let mut plain = queue.clone();
            let mut now = Time::ZERO;
            for id in 1..60 {
                now += Span::from_secs(draw.below(6) as i64);
                let running: Vec<JobId> = queue.placed.keys().copied().collect();
                if let Some(&ended) = running.get(draw.below(4)) {
                    for queue in [&mut queue, &mut plain] {
                        queue.advance(now);
                        queue.end(now, ended);
                    }
                }
                let job = JobSpec {
                    id: JobId(id),
                    submit: now,
                    processors: 1 + draw.below(nodes.count() as usize) as u32,
                    requested: Span::from_secs(1 + draw.below(60) as i64),
                    labels: Labels {
                        executable: draw.below(2) as i32,
                        memory: [-1, 100, 400][draw.below(3)],
                        ..Labels::UNKNOWN
                    },
                    origin: SiteId(1),
                    payload: 0,
                };
                for queue in [&mut queue, &mut plain] {
                    queue.insert(Waiting { turn: 0, job });
                }
                let head = queue.waiting.values().next().copied();
                let started = queue.pick(now);
                assert_eq!(started, pick_plainly(&mut plain, now), "seed {seed}, job {id}");
                assert_eq!(queue.waiting, plain.waiting, "seed {seed}, job {id}");
                if head.is_some_and(|head| queue.waiting.contains_key(&head.place())) {
                    overtaking += started.len();
                }
                kept += queue
                    .waiting
                    .values()
                    .skip(1)
                    .filter(|job| queue.without_waiting().fits(now, job))
                    .count();
            }
        }
        // Both answers are given often.
        assert!(overtaking > 100 && kept > 100, "{overtaking} overtook, {kept} that fit were kept");
    }
}
