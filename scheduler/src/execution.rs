//! When a job that executes ends: decided here, for every driver.
//!
//! A driver starts jobs, asks when to look next, and takes what has ended. Where each processor has one job, a job ends its run
//! time after its start, whatever else executes. Where jobs share nodes ([`crate::sharing`]) ends move: the next one is known as things are,
//! and a driver asks anew after each call. The run time is what the driver says: references scale it by the speed of a site.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::capacity::SharedNodes;
pub use crate::due::Due;
use crate::event::EventKind;
use crate::grid::{Grid, SiteId};
use crate::job::{JobId, JobSpec};
use crate::sharing::{Estimate, Pace, Shared};
use crate::time::earlier;
use crate::{Span, Time};

/// Jobs that execute, at one site or at many, each under a key by which its driver knows it.
#[derive(Clone, Debug)]
pub struct Execution<K> {
    ends: BinaryHeap<Reverse<Due<K>>>,
    /// Sites whose jobs share nodes, by [`SiteId::index`]; empty if there are none.
    sites: Vec<Option<Sharing<K>>>,
    /// Those that have jobs, by when they are looked at next.
    next: BTreeSet<(Time, usize)>,
    /// What was not told yet: see [`Execution::told`].
    told: Vec<(SiteId, EventKind)>,
}

/// The nodes of one site.
#[derive(Clone, Debug)]
struct Sharing<K> {
    nodes: Arc<SharedNodes>,
    jobs: Shared<(u64, K)>,
    /// Jobs that ended before their driver asked for them.
    ended: VecDeque<Due<K>>,
    /// When it is looked at next, as [`Execution::next`] has it.
    at: Option<Time>,
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
        Execution { ends: BinaryHeap::new(), sites: Vec::new(), next: BTreeSet::new(), told: Vec::new() }
    }
}

impl<K> Execution<K> {
    /// Nothing executes on the sites of a grid.
    pub fn on(grid: &Grid) -> Execution<K> {
        let sharing = |nodes: &Arc<SharedNodes>| {
            let mut jobs = Shared::new((*nodes.platform).clone(), Estimate::Sdpn(nodes.fairness));
            jobs.listen();
            Sharing { jobs, nodes: Arc::clone(nodes), ended: VecDeque::new(), at: None }
        };
        let sites = match grid.is_shared() {
            true => grid.sites().iter().map(|site| grid.cluster(site.id).map(sharing)).collect(),
            false => Vec::new(),
        };
        Execution { sites, ..Execution::default() }
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
        let Some(sharing) = self.sites.get_mut(site.index()).and_then(Option::as_mut) else {
            let end = now.saturating_add(run_time);
            self.ends.push(Reverse(Due { at: end.saturating_add(late(end)), order, what: key }));
            return;
        };
        sharing.advance(now);
        let demand = sharing.nodes.demand(job, run_time);
        match sharing.jobs.start(now, 0, job.id, demand, (order, key)) {
            Ok(nodes) => {
                let placed = |&node: &u32| (site, EventKind::Placed { job: job.id, node });
                self.told.extend(nodes.iter().map(placed));
            }
            Err(refusal) => panic!("a scheduler started what does not fit: {refusal}"),
        }
        self.look_again(site.index());
    }

    /// What its driver knows by such keys executes no longer, where each processor has one job.
    pub fn stop(&mut self, is_one: impl Fn(&K) -> bool) {
        self.ends.retain(|Reverse(due)| !is_one(&due.what));
    }

    /// Nothing executes at a site any more, where jobs share its nodes: it has crashed. Elsewhere ends come that nobody waits for.
    pub fn crash(&mut self, now: Time, site: SiteId) {
        if let Some(sharing) = self.sites.get_mut(site.index()).and_then(Option::as_mut) {
            sharing.advance(now);
            let running: Vec<JobId> = sharing.jobs.running().map(|running| running.job).collect();
            for job in running {
                sharing.jobs.stop(now, job);
            }
            sharing.ended.clear();
            // Those that were stopped one after the other did not go on.
            sharing.jobs.take_paces().for_each(drop);
            self.look_again(site.index());
        }
    }

    /// When something is to be looked at next: a job ends, or local users of shared nodes change when one will.
    pub fn next_end(&self) -> Option<Time> {
        let fixed = self.ends.peek().map(|Reverse(end)| end.at);
        earlier(fixed, self.next.first().map(|&(at, _)| at))
    }

    /// A job that has ended by now. None also where there was something to look at and no job has ended.
    pub fn pop_due(&mut self, now: Time) -> Option<Due<K>> {
        while let Some(&(at, site)) = self.next.first().filter(|next| next.0 <= now) {
            if self.ends.peek().is_some_and(|Reverse(end)| end.at < at) {
                break;
            }
            let sharing = self.sites[site].as_mut().expect("it is among those with nodes");
            let ended = sharing.ended.pop_front().or_else(|| sharing.pop(at));
            self.look_again(site);
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
        let shared = self.sites.iter().flatten();
        self.ends.len() + shared.map(|sharing| sharing.jobs.len() + sharing.ended.len()).sum::<usize>()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn look_again(&mut self, site: usize) {
        let Some(sharing) = self.sites[site].as_mut() else { return };
        let at = SiteId::from_index(site);
        self.told.extend(sharing.jobs.take_paces().map(|(job, pace)| (at, paced(job, pace))));
        if let Some(before) = sharing.at {
            self.next.remove(&(before, site));
        }
        sharing.at = sharing.ended.front().map(|due| due.at).or_else(|| sharing.jobs.wake_at());
        if let Some(at) = sharing.at {
            self.next.insert((at, site));
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
    fn pop(&mut self, now: Time) -> Option<Due<K>> {
        let Due { at, what: (order, what), .. } = self.jobs.pop_due(now)?;
        Some(Due { at, order, what })
    }

    /// What has ended before an instant is not on the nodes any more, although its driver has not asked for it yet.
    fn advance(&mut self, now: Time) {
        while self.jobs.next_end().is_some_and(|end| end < now)
            || self.jobs.next_change().is_some_and(|at| at < now)
        {
            let Some(due) = self.pop(now) else { break };
            self.ended.push_back(due);
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
