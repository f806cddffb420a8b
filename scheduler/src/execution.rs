//! When a job that executes ends: decided here, for every driver.
//!
//! A driver starts jobs, asks when to look next, and takes what has ended. Where each processor has one job, a job ends its run
//! time after its start, whatever else executes. Where jobs share nodes ([`crate::sharing`]) ends move: the next one is known as things are,
//! and a driver asks anew after each call. The run time is what the driver says: references scale it by the speed of a site.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::capacity::SharedNodes;
pub use crate::due::Due;
use crate::event::EventKind;
use crate::grid::{Grid, SiteId};
use crate::job::{JobId, JobSpec};
use crate::sharing::{Estimate, Pace, Platform, Refusal, Shared};
use crate::time::earlier;
use crate::{Span, Time};

/// Jobs that execute, at one site or at many, each under a key by which its driver knows it.
#[derive(Clone, Debug)]
pub struct Execution<K> {
    ends: BinaryHeap<Reverse<Due<K>>>,
    /// Nodes that jobs share: those of each site, or where jobs start in parts at several sites those of all together.
    shared: Vec<Sharing<K>>,
    /// Which of these the nodes of a site are, and which cluster there, by [`SiteId::index`]; empty if no nodes are shared.
    sites: Vec<Option<(usize, usize)>>,
    /// Those that have jobs, by when they are looked at next.
    next: BTreeSet<(Time, usize)>,
    /// What was not told yet: see [`Execution::told`].
    told: Vec<(SiteId, EventKind)>,
}

/// Nodes on which a job may be.
#[derive(Clone, Debug)]
struct Sharing<K> {
    /// By cluster: the site with its nodes.
    sites: Vec<(SiteId, Arc<SharedNodes>)>,
    jobs: Shared<Keys<K>>,
    /// Sites of each job, where there are several clusters.
    at_sites: BTreeMap<JobId, Vec<SiteId>>,
    /// Jobs that ended before their driver asked for them.
    ended: VecDeque<Due<K>>,
    /// When it is looked at next, as [`Execution::next`] has it.
    at: Option<Time>,
}

/// By what a driver knows what ends together, each with its place among what ends at one instant.
#[derive(Clone, Debug)]
enum Keys<K> {
    One(u64, K),
    Parts(Vec<(u64, K)>),
}

/// Where a job is that begins on nodes that jobs share: in parts at several sites all go on at the pace of the slowest, and end at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts {
    /// So many tasks at each site, on the nodes where these place them, which is told.
    Placed(Vec<(SiteId, u32)>),
    /// On these nodes of each site. That is known already: see [`Execution::is_on`].
    On(Vec<(SiteId, Vec<u32>)>),
}

impl Parts {
    fn sites(&self) -> Vec<SiteId> {
        match self {
            Parts::Placed(parts) => parts.iter().map(|part| part.0).collect(),
            Parts::On(parts) => parts.iter().map(|part| part.0).collect(),
        }
    }
}

/// A job that begins to execute.
#[derive(Clone, Copy, Debug)]
pub struct Begun<'a, K> {
    /// Where.
    pub site: SiteId,
    /// What.
    pub job: &'a JobSpec,
    /// How long it takes where nothing else executes.
    pub run_time: Span,
    /// Its place among jobs that end at one instant.
    pub order: u64,
    /// By what its driver knows it.
    pub key: K,
}

/// How long something executes at this speed, in percent of the reference machine, that takes so long on that one. Rounded
/// up; a speed of 0 counts as 1.
pub fn at_speed(span: Span, percent: u32) -> Span {
    let percent = i128::from(percent.max(1));
    let micros = i128::from(span.as_micros()) * 100;
    let up = i128::from(micros.rem_euclid(percent) > 0);
    Span::from_micros(i64::try_from(micros.div_euclid(percent) + up).unwrap_or(i64::MAX))
}

impl<K> Default for Execution<K> {
    fn default() -> Self {
        Execution {
            ends: BinaryHeap::new(),
            shared: Vec::new(),
            sites: Vec::new(),
            next: BTreeSet::new(),
            told: Vec::new(),
        }
    }
}

impl<K> Execution<K> {
    /// Nothing executes on the sites of a grid.
    pub fn on(grid: &Grid) -> Execution<K> {
        let mut execution = Execution::default();
        if !grid.is_shared() {
            return execution;
        }
        let with_nodes =
            grid.sites().iter().filter_map(|site| Some((site.id, grid.cluster(site.id)?.clone())));
        let with_nodes: Vec<(SiteId, Arc<SharedNodes>)> = with_nodes.collect();
        execution.sites = vec![None; grid.len()];
        // Over all of them if a job may be on nodes of several.
        let together = if grid.spreads() { with_nodes.len() } else { 1 };
        for sites in with_nodes.chunks(together) {
            for (cluster, (site, _)) in sites.iter().enumerate() {
                execution.sites[site.index()] = Some((execution.shared.len(), cluster));
            }
            execution.shared.push(Sharing::over(sites.to_vec()));
        }
        execution
    }

    /// A job begins to execute at a site. Of jobs that end at one instant the one with the lower `order` ends first, or where they
    /// share nodes the one with the lower id.
    ///
    /// # Panics
    /// If a job does not fit the nodes of its site.
    pub fn start(&mut self, now: Time, begun: Begun<'_, K>) {
        self.start_noticed(now, begun, |_| Span::ZERO);
    }

    /// As [`Execution::start`], at a site that notices an end so much late. Where jobs share nodes ends are noticed at once.
    ///
    /// # Panics
    /// As there.
    pub fn start_noticed(&mut self, now: Time, begun: Begun<'_, K>, late: impl FnOnce(Time) -> Span) {
        let Begun { site, job, run_time, order, key } = begun;
        if self.sites.get(site.index()).is_none_or(Option::is_none) {
            let end = now.saturating_add(run_time);
            self.ends.push(Reverse(Due { at: end.saturating_add(late(end)), order, what: key }));
            return;
        }
        self.begin(now, job, run_time, &Parts::Placed(vec![(site, job.processors)]), Keys::One(order, key));
    }

    /// As [`Execution::start`], on these nodes: where the site has told them, which knows what else it keeps nodes for.
    ///
    /// # Panics
    /// If there are not such nodes, one for each task.
    pub fn start_on(&mut self, now: Time, begun: Begun<'_, K>, nodes: Vec<u32>) {
        let Begun { site, job, run_time, order, key } = begun;
        self.is_on(site, job.id, &nodes);
        self.begin(now, job, run_time, &Parts::On(vec![(site, nodes)]), Keys::One(order, key));
    }

    /// A whole job begins to execute in parts at different sites, whose jobs share nodes. Its driver knows by `keys` what ends then, each
    /// with its place among what ends at one instant.
    ///
    /// # Panics
    /// If it does not fit, or the parts are not the job.
    pub fn start_apart(
        &mut self,
        now: Time,
        (job, run_time): (&JobSpec, Span),
        parts: &Parts,
        keys: Vec<(u64, K)>,
    ) {
        self.begin(now, job, run_time, parts, Keys::Parts(keys));
    }

    /// Tells that a part of a job is on these nodes, which has yet to begin.
    pub fn is_on(&mut self, site: SiteId, job: JobId, nodes: &[u32]) {
        self.told.extend(nodes.iter().map(|&node| (site, EventKind::Placed { job, node })));
    }

    fn begin(&mut self, now: Time, job: &JobSpec, run_time: Span, parts: &Parts, keys: Keys<K>) {
        let sites = parts.sites();
        let place = |site: SiteId| self.sites[site.index()].expect("jobs share the nodes of this site");
        let group = place(sites[0]).0;
        let clusters: Vec<usize> = sites.iter().map(|&site| place(site).1).collect();
        let sharing = &mut self.shared[group];
        sharing.advance(now);
        match sharing.begin(now, (job, run_time), &clusters, parts, keys) {
            Ok(placed) => self.told.extend(placed),
            Err(refusal) => panic!("a scheduler started what does not fit: {refusal}"),
        }
        if sharing.sites.len() > 1 {
            sharing.at_sites.insert(job.id, sites);
        }
        self.look_again(group);
    }

    /// What its driver knows by such keys executes no longer, where each processor has one job.
    pub fn stop(&mut self, is_one: impl Fn(&K) -> bool) {
        self.ends.retain(|Reverse(due)| !is_one(&due.what));
    }

    /// Nothing executes at a site any more, where jobs share its nodes: it has crashed. Elsewhere ends come that nobody waits for.
    pub fn crash(&mut self, now: Time, site: SiteId) {
        if let Some((group, _)) = self.sites.get(site.index()).copied().flatten() {
            let sharing = &mut self.shared[group];
            sharing.advance(now);
            let running = sharing.jobs.running().map(|running| running.job);
            let running: Vec<JobId> = running.filter(|&job| sharing.has_at(job, site)).collect();
            for job in running {
                sharing.jobs.stop(now, job);
                sharing.at_sites.remove(&job);
            }
            if sharing.sites.len() == 1 {
                sharing.ended.clear();
                // Those that were stopped one after the other did not go on.
                sharing.jobs.take_paces().for_each(drop);
            }
            self.look_again(group);
        }
    }

    /// When something is to be looked at next: a job ends, or local users of shared nodes change when one will.
    pub fn next_end(&self) -> Option<Time> {
        let fixed = self.ends.peek().map(|Reverse(end)| end.at);
        earlier(fixed, self.next.first().map(|&(at, _)| at))
    }

    /// A job that has ended by now. None also where there was something to look at and no job has ended.
    pub fn pop_due(&mut self, now: Time) -> Option<Due<K>> {
        while let Some(&(at, group)) = self.next.first().filter(|next| next.0 <= now) {
            if self.ends.peek().is_some_and(|Reverse(end)| end.at < at) {
                break;
            }
            let sharing = &mut self.shared[group];
            if sharing.ended.is_empty() {
                sharing.pop(at);
            }
            let ended = sharing.ended.pop_front();
            self.look_again(group);
            if ended.is_some() {
                return ended;
            }
        }
        self.ends.peek().filter(|Reverse(end)| end.at <= now)?;
        self.ends.pop().map(|Reverse(end)| end)
    }

    /// What became of jobs on shared nodes since the last call: the nodes of those that started ([`EventKind::Placed`]), and at which speed
    /// jobs go on ([`EventKind::Paced`]). A driver records it after each of the calls above.
    pub fn told(&mut self) -> impl Iterator<Item = (SiteId, EventKind)> + '_ {
        self.told.drain(..)
    }

    /// How many jobs execute.
    pub fn len(&self) -> usize {
        let shared = self.shared.iter();
        self.ends.len() + shared.map(|sharing| sharing.jobs.len() + sharing.ended.len()).sum::<usize>()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn look_again(&mut self, group: usize) {
        let Sharing { sites, jobs, at_sites, ended, at } = &mut self.shared[group];
        for (job, pace) in jobs.take_paces() {
            match (sites.as_slice(), at_sites.get(&job)) {
                ([(site, _)], _) => self.told.push((*site, paced(job, pace))),
                // Each part goes on as the job does. Of one that has ended there is nothing to say.
                (_, of_job) => {
                    self.told.extend(of_job.into_iter().flatten().map(|&site| (site, paced(job, pace))));
                }
            }
        }
        if let Some(before) = *at {
            self.next.remove(&(before, group));
        }
        *at = ended.front().map(|due| due.at).or_else(|| jobs.wake_at());
        if let Some(at) = *at {
            self.next.insert((at, group));
        }
    }
}

/// In the numbers of an event, rounded.
fn paced(job: JobId, pace: Pace) -> EventKind {
    EventKind::Paced {
        job,
        slowdown_millionths: (pace.stretch * 1e6).round() as u64,
        computing_millionths: (pace.computing * 1e6).round() as u32,
    }
}

impl<K> Sharing<K> {
    /// Nobody executes on the nodes of these sites.
    fn over(sites: Vec<(SiteId, Arc<SharedNodes>)>) -> Sharing<K> {
        let (first, platform) = (&sites[0].1, sites.iter().map(|site| &*site.1.platform));
        let platform = match sites.len() {
            1 => (*first.platform).clone(),
            _ => Platform::joined(platform),
        };
        let mut jobs = Shared::new(platform, Estimate::Sdpn(first.fairness));
        jobs.listen();
        Sharing { jobs, sites, at_sites: BTreeMap::new(), ended: VecDeque::new(), at: None }
    }

    /// Puts a job on nodes of these clusters. Returns on which, if it was not told.
    fn begin(
        &mut self,
        now: Time,
        (job, run_time): (&JobSpec, Span),
        clusters: &[usize],
        parts: &Parts,
        keys: Keys<K>,
    ) -> Result<Vec<(SiteId, EventKind)>, Refusal> {
        let Sharing { sites, jobs, .. } = self;
        let demand = sites[clusters[0]].1.demand(job, run_time);
        let first =
            |platform: &Platform, cluster: usize| platform.nodes_of(cluster).map_or(0, |nodes| nodes.start);
        match parts {
            Parts::On(parts) => {
                let platform = jobs.platform();
                let through_all = |(&cluster, part): (&usize, &(SiteId, Vec<u32>))| {
                    let first = first(platform, cluster);
                    (cluster, part.1.iter().map(|node| first + node).collect())
                };
                let on: Vec<(usize, Vec<u32>)> = clusters.iter().zip(parts).map(through_all).collect();
                jobs.start_on(now, &on, job.id, demand, keys).map(|()| Vec::new())
            }
            Parts::Placed(parts) => {
                let tasks: Vec<(usize, u32)> =
                    clusters.iter().zip(parts).map(|(&cluster, part)| (cluster, part.1)).collect();
                let nodes = jobs.start_spread(now, &tasks, job.id, demand, keys)?.to_vec();
                let platform = jobs.platform();
                let placed = |node: u32| {
                    let cluster = platform.cluster_of(node);
                    let node = node - first(platform, cluster);
                    (sites[cluster].0, EventKind::Placed { job: job.id, node })
                };
                Ok(nodes.into_iter().map(placed).collect())
            }
        }
    }

    fn has_at(&self, job: JobId, site: SiteId) -> bool {
        self.sites.len() == 1 || self.at_sites.get(&job).is_some_and(|sites| sites.contains(&site))
    }

    /// What has ended by now is among what its driver may ask for. Whether something has.
    fn pop(&mut self, now: Time) -> bool {
        let Some(Due { at, order: job, what }) = self.jobs.pop_due(now) else { return false };
        self.at_sites.remove(&JobId(job));
        match what {
            Keys::One(order, what) => self.ended.push_back(Due { at, order, what }),
            Keys::Parts(keys) => {
                self.ended.extend(keys.into_iter().map(|(order, what)| Due { at, order, what }));
            }
        }
        true
    }

    /// What has ended before an instant is not on the nodes any more, although its driver has not asked for it yet.
    fn advance(&mut self, now: Time) {
        while self.jobs.next_end().is_some_and(|end| end < now)
            || self.jobs.next_change().is_some_and(|at| at < now)
        {
            if !self.pop(now) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Labels;

    #[test]
    fn what_takes_a_second_takes_more_where_it_is_slow() {
        let at = |percent| at_speed(Span::from_secs(1), percent).as_micros();
        assert_eq!([at(100), at(50), at(200), at(300)], [1_000_000, 2_000_000, 500_000, 333_334]);
        assert_eq!(at_speed(Span::MAX, 1), Span::MAX);
        assert_eq!(at_speed(Span::ZERO, 0), Span::ZERO);
    }

    #[test]
    fn jobs_end_after_their_run_time_in_order() {
        let mut execution = Execution::default();
        let at = Time::from_secs(100);
        let spec = JobSpec {
            id: JobId(1),
            submit: at,
            processors: 1,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        let begun = |key, seconds, order| Begun {
            site: SiteId(1),
            job: &spec,
            run_time: Span::from_secs(seconds),
            order,
            key,
        };
        for (order, (job, seconds)) in (0..).zip([(1, 10), (2, 5), (3, 5), (4, 0)]) {
            execution.start(at, begun(job, seconds, order));
        }
        execution.start_noticed(at, begun(5, 4, 9), |end| end.since(at));
        assert_eq!((execution.next_end(), execution.len()), (Some(at), 5));
        let mut ended = Vec::new();
        for second in 100..=110 {
            while let Some(end) = execution.pop_due(Time::from_secs(second)) {
                assert_eq!(end.at, Time::from_secs(second));
                ended.push(end.what);
            }
        }
        assert_eq!(ended, [4, 2, 3, 5, 1]);
        assert!(execution.is_empty());
    }
}
