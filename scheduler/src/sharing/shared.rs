//! When jobs on shared nodes end: told of starts, asked for ends, as [`crate::Execution`] is where nodes are not shared.
//!
//! It places jobs, too: where the tasks of a job are is a function of what started and ended before. What changes when something happens is in
//! [`super::retiming`].

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use super::demand::{Demand, DemandError};
use super::local_load::Usage;
use super::platform::Platform;
use super::retiming::{Estimate, Pace, Running, State};
use super::slowdown::communication_share;
use super::social_contract::{Candidate, place};
use crate::due::Due;
use crate::job::JobId;
use crate::time::{Span, Time, earlier};

/// Jobs that execute on shared nodes, each under a key by which its driver knows it.
///
/// Time goes forward: no call is told an earlier instant than the one before, and what has ended before an instant is popped before
/// anything starts or stops at it.
#[derive(Clone, Debug)]
pub struct Shared<K> {
    state: State,
    slots: BTreeMap<JobId, u32>,
    keys: Vec<Option<K>>,
    now: Time,
    candidates: Vec<Candidate>,
    chosen: Vec<u32>,
}

/// Why a job does not start.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Refusal {
    /// What it asks for cannot be.
    #[error("job {job}: {error}")]
    Demand {
        /// The job.
        job: JobId,
        /// What is wrong with it.
        error: DemandError,
    },
    /// There is no such cluster.
    #[error("job {job} is for cluster {cluster}, and there are {clusters}, counted from 0")]
    NoCluster {
        /// The job.
        job: JobId,
        /// What was named.
        cluster: usize,
        /// How many there are.
        clusters: usize,
    },
    /// Its nodes, or the parts over clusters, are not one node for each task.
    #[error(
        "job {job} has {tasks} tasks and is told {told} different nodes that are there: give each task one"
    )]
    Nodes {
        /// The job.
        job: JobId,
        /// Its tasks.
        tasks: u32,
        /// Different nodes that are there.
        told: u32,
    },
    /// No time will help: the cluster has fewer nodes than the job has tasks.
    #[error(
        "job {job} has {tasks} tasks and cluster {cluster} only {nodes} nodes: send it elsewhere or over several clusters"
    )]
    TooWide {
        /// The job.
        job: JobId,
        /// The cluster, from 0.
        cluster: usize,
        /// Tasks that are to go there.
        tasks: u32,
        /// Nodes of the cluster.
        nodes: u32,
    },
    /// Too few nodes have room and memory now.
    #[error(
        "job {job} needs {tasks} nodes of cluster {cluster}, of which {free} may take a task now: let it wait"
    )]
    Full {
        /// The job.
        job: JobId,
        /// The cluster, from 0.
        cluster: usize,
        /// Tasks that are to go there.
        tasks: u32,
        /// Nodes that keep the social contract with one task more.
        free: u32,
    },
    /// It executes already.
    #[error("job {0} executes already: a job starts once")]
    Executes(JobId),
}

impl<K> Shared<K> {
    /// Nobody executes on these nodes.
    pub fn new(platform: Platform, estimate: Estimate) -> Shared<K> {
        Shared {
            state: State::new(Arc::new(platform), estimate),
            slots: BTreeMap::new(),
            keys: Vec::new(),
            now: Time::from_micros(i64::MIN),
            candidates: Vec::new(),
            chosen: Vec::new(),
        }
    }

    /// What there is.
    pub fn platform(&self) -> &Platform {
        &self.state.platform
    }

    /// A job begins to execute on nodes of a cluster, which are returned, lowest first.
    ///
    /// # Errors
    /// If it cannot or must not; nothing has changed then.
    ///
    /// # Panics
    /// If time goes backwards, or a job that ended before now was not popped.
    pub fn start(
        &mut self,
        now: Time,
        cluster: usize,
        job: JobId,
        demand: Demand,
        key: K,
    ) -> Result<&[u32], Refusal> {
        self.start_spread(now, &[(cluster, demand.tasks)], job, demand, key)
    }

    /// As [`Shared::start`], with so many tasks in each of several clusters, which are all different; what tasks of different clusters tell
    /// each other goes over the links of these clusters (Lérida 4.14).
    ///
    /// # Errors
    /// As there, and if the parts are not the whole.
    ///
    /// # Panics
    /// As there.
    pub fn start_spread(
        &mut self,
        now: Time,
        parts: &[(usize, u32)],
        job: JobId,
        demand: Demand,
        key: K,
    ) -> Result<&[u32], Refusal> {
        self.advance(now);
        self.check(job, &demand)?;
        let told: u32 = parts.iter().map(|part| part.1).sum();
        let twice = (1..parts.len()).any(|place| parts[..place].iter().any(|part| part.0 == parts[place].0));
        if told != demand.tasks || twice {
            return Err(Refusal::Nodes { job, tasks: demand.tasks, told });
        }
        self.chosen.clear();
        for &(cluster, tasks) in parts {
            self.choose(cluster, tasks, job, demand.memory)?;
            let chosen = self.candidates.iter().take(tasks as usize);
            self.chosen.extend(chosen.map(|candidate| candidate.node));
        }
        self.chosen.sort_unstable();
        self.put(now, parts.iter().copied(), job, demand, key);
        Ok(&self.chosen)
    }

    /// As [`Shared::start_spread`], on these nodes, counted through all clusters: who has placed it there has kept the social contract, which is not
    /// asked.
    ///
    /// # Errors
    /// If it executes already, or the nodes are not one for each task, each of its cluster.
    ///
    /// # Panics
    /// As there.
    pub fn start_on(
        &mut self,
        now: Time,
        parts: &[(usize, Vec<u32>)],
        job: JobId,
        demand: Demand,
        key: K,
    ) -> Result<(), Refusal> {
        self.advance(now);
        self.check(job, &demand)?;
        self.chosen.clear();
        for (cluster, nodes) in parts {
            let there = self.platform().nodes_of(*cluster).unwrap_or(0..0);
            self.chosen.extend(nodes.iter().copied().filter(|node| there.contains(node)));
        }
        self.chosen.sort_unstable();
        self.chosen.dedup();
        let told = self.chosen.len() as u32;
        if told != demand.tasks || parts.iter().map(|part| part.1.len()).sum::<usize>() != self.chosen.len() {
            return Err(Refusal::Nodes { job, tasks: demand.tasks, told });
        }
        let counts = parts.iter().map(|(cluster, nodes)| (*cluster, nodes.len() as u32));
        self.put(now, counts, job, demand, key);
        Ok(())
    }

    /// A job is on the chosen nodes from now on, and on the links of its clusters if these are several.
    fn put(
        &mut self,
        now: Time,
        parts: impl ExactSizeIterator<Item = (usize, u32)>,
        job: JobId,
        demand: Demand,
        key: K,
    ) {
        let nodes = self.platform().nodes().len() as u32;
        let are_several = parts.len() > 1;
        let uplinks = parts.filter(|_| are_several);
        let uplinks = uplinks
            .map(|(cluster, tasks)| (nodes + cluster as u32, communication_share(tasks, demand.tasks)));
        let links = self.chosen.iter().map(|&node| (node, 1.0)).chain(uplinks);
        let remaining = demand.run_time.as_micros() as f64;
        let slot = self.state.insert(now, job, demand, remaining, links);
        self.keep(job, slot, key);
    }

    /// A job is known to execute on these nodes, so much of whose time on idle nodes of full power is done: what is known of a cluster when
    /// somebody begins to think about it. The social contract is not asked. A job that has had its time ends now.
    ///
    /// # Errors
    /// If it executes already, or the nodes are not one for each task.
    ///
    /// # Panics
    /// As [`Shared::start`].
    pub fn resume(
        &mut self,
        now: Time,
        job: JobId,
        demand: Demand,
        nodes: &[u32],
        done: Span,
        key: K,
    ) -> Result<(), Refusal> {
        self.advance(now);
        self.check(job, &demand)?;
        self.chosen.clear();
        self.chosen.extend_from_slice(nodes);
        self.chosen.sort_unstable();
        self.chosen.dedup();
        let there = self.platform().nodes().len() as u32;
        self.chosen.retain(|&node| node < there);
        let told = self.chosen.len() as u32;
        if told != demand.tasks || nodes.len() != self.chosen.len() {
            return Err(Refusal::Nodes { job, tasks: demand.tasks, told });
        }
        let remaining = (demand.run_time.as_micros() - done.as_micros()).max(0) as f64;
        let slot =
            self.state.insert(now, job, demand, remaining, self.chosen.iter().map(|&node| (node, 1.0)));
        self.keep(job, slot, key);
        Ok(())
    }

    /// Whether a job could start on a cluster now.
    ///
    /// # Errors
    /// Why not.
    ///
    /// # Panics
    /// As [`Shared::start`].
    pub fn fits(&mut self, now: Time, cluster: usize, job: JobId, demand: &Demand) -> Result<(), Refusal> {
        self.advance(now);
        self.check(job, demand)?;
        self.choose(cluster, demand.tasks, job, demand.memory)
    }

    /// A job is called off. None if it does not execute.
    ///
    /// # Panics
    /// As [`Shared::start`].
    pub fn stop(&mut self, now: Time, job: JobId) -> Option<K> {
        self.advance(now);
        let slot = self.slots.remove(&job)?;
        self.state.remove(now, slot);
        self.keys[slot as usize].take()
    }

    /// When a job ends next, as things are. Local users may move it before it comes, either way: see [`Shared::wake_at`].
    pub fn next_end(&self) -> Option<Time> {
        self.state.first().map(|end| end.0)
    }

    /// When to ask [`Shared::pop_due`] next: when a job ends, or when local users change something, after which ends are other ones. None if no
    /// job executes.
    pub fn wake_at(&self) -> Option<Time> {
        let end = self.next_end()?;
        earlier(Some(end), self.state.next_change().map(|change| change.max(self.now)))
    }

    /// A job that has ended by now, the earliest first, then the one with the lowest id. What shared with it goes faster from its end on.
    ///
    /// # Panics
    /// If time goes backwards.
    pub fn pop_due(&mut self, now: Time) -> Option<Due<K>> {
        assert!(now >= self.now, "it was {} already, and is said to be {now}", self.now);
        self.state.advance(now);
        let Some((at, job, slot)) = self.state.first().filter(|end| end.0 <= now) else {
            self.now = now;
            return None;
        };
        self.now = self.now.max(at);
        self.state.remove(at, slot);
        self.slots.remove(&job);
        let what = self.keys[slot as usize].take().expect("a job that executes has a key");
        Some(Due { at, order: job.0, what })
    }

    /// When local users change something next.
    pub fn next_change(&self) -> Option<Time> {
        self.state.next_change()
    }

    /// From now on local users do what they do now: whoever predicts knows no better.
    pub fn freeze(&mut self) {
        self.state.freeze();
    }

    /// From now on jobs are slowed down as by this estimate; what is done of them stays.
    ///
    /// # Panics
    /// If time goes backwards, or a job that ended before now was not popped.
    pub fn believe(&mut self, now: Time, estimate: Estimate) {
        self.advance(now);
        self.state.believe(now, estimate);
    }

    /// From now on it is kept which jobs go on at another speed, until somebody takes that: see [`Shared::take_paces`].
    pub fn listen(&mut self) {
        self.state.paces.get_or_insert_default();
    }

    /// Jobs that began or go on at another speed since the last call, in the order in which that was found; nothing if nobody listens. The
    /// last word on a job counts, and some may have ended.
    pub fn take_paces(&mut self) -> impl Iterator<Item = (JobId, Pace)> + '_ {
        self.state.paces.iter_mut().flat_map(|paces| paces.drain(..))
    }

    /// How many jobs execute.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A job, if it executes.
    pub fn get(&self, job: JobId) -> Option<&Running> {
        self.slots.get(&job).map(|&slot| self.state.job(slot))
    }

    /// All jobs that execute, in the order in which they end as things are.
    pub fn running(&self) -> impl Iterator<Item = &Running> + '_ {
        self.state.ends().map(|slot| self.state.job(slot))
    }

    /// A node as placing sees it, at the last instant that was told.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node(&self, node: u32) -> Candidate {
        self.state.candidate(node)
    }

    /// What local users take of a node, at the last instant that was told.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn usage(&self, node: u32) -> Usage {
        self.state.usage(node)
    }

    fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "it was {} already, and is said to be {now}", self.now);
        let ended = self.next_end().filter(|&end| end < now);
        self.state.advance(now);
        // Local users may have brought an end before now.
        let ended = ended.or_else(|| self.next_end().filter(|&end| end < now));
        assert!(ended.is_none(), "a job has ended before {now} and was not popped");
        self.now = now;
    }

    fn check(&self, job: JobId, demand: &Demand) -> Result<(), Refusal> {
        demand.check().map_err(|error| Refusal::Demand { job, error })?;
        if self.slots.contains_key(&job) { Err(Refusal::Executes(job)) } else { Ok(()) }
    }

    /// Leaves the nodes that may take a task in `candidates`, the most available first.
    fn choose(&mut self, cluster: usize, tasks: u32, job: JobId, memory: u64) -> Result<(), Refusal> {
        let clusters = self.platform().clusters();
        let nodes = self.platform().nodes_of(cluster).ok_or(Refusal::NoCluster { job, cluster, clusters })?;
        let there = nodes.len() as u32;
        if tasks > there {
            return Err(Refusal::TooWide { job, cluster, tasks, nodes: there });
        }
        self.candidates.clear();
        let candidates = nodes.map(|node| self.state.candidate(node));
        self.candidates.extend(candidates.filter(|candidate| candidate.takes(memory)));
        let free = self.candidates.len() as u32;
        if tasks > free {
            return Err(Refusal::Full { job, cluster, tasks, free });
        }
        place(&mut self.candidates, memory);
        Ok(())
    }

    fn keep(&mut self, job: JobId, slot: u32, key: K) {
        self.slots.insert(job, slot);
        if self.keys.len() <= slot as usize {
            self.keys.resize_with(slot as usize + 1, || None);
        }
        self.keys[slot as usize] = Some(key);
    }
}
