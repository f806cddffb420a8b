//! Shared nodes once more, by other means: everything is calculated at every event, in seconds, from the printed equations.
//!
//! No components, no order of ends, no time in whole microseconds. Both parts of what is left are kept (3.9), Algorithm 3.1 goes over all links as it is
//! printed, and max-min fairness is found link by link until nothing moves. A [`Slip`] is a mistake that a comparison must find.

use std::collections::BTreeMap;

use scheduler::sharing::{Demand, Fairness, Platform, SATURATION_TOLERANCE};
use scheduler::{JobId, Time};

/// A mistake built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    None,
    /// A job that comes slows down nobody but itself.
    OthersKeepTheirs,
    /// Local users take no computing time.
    LocalComputingIsFree,
    /// Local users send nothing.
    LocalTrafficIsFree,
    /// All nodes have full power.
    NodesAreAlike,
    /// The mean of the nodes in place of the slowest (3.4).
    MeanNode,
    /// The least saturated of the saturated links first.
    LeastSaturatedFirst,
    /// What passes is taken from both parts (reading A of (3.9)).
    TimeCountsTwice,
    /// Nodes by number.
    FirstNodes,
    /// Jobs over clusters send nothing between them.
    NoUplinks,
}

pub(crate) const SLIPS: [Slip; 9] = [
    Slip::OthersKeepTheirs,
    Slip::LocalComputingIsFree,
    Slip::LocalTrafficIsFree,
    Slip::NodesAreAlike,
    Slip::MeanNode,
    Slip::LeastSaturatedFirst,
    Slip::TimeCountsTwice,
    Slip::FirstNodes,
    Slip::NoUplinks,
];

/// A job, with what is left of both parts in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) demand: Demand,
    pub(crate) nodes: Vec<usize>,
    parts: Vec<(usize, u32)>,
    pub(crate) computing: f64,
    pub(crate) communicating: f64,
    pub(crate) sp: f64,
    pub(crate) sc: f64,
}

impl Job {
    /// What is left as things are, in seconds (3.8).
    pub(crate) fn left(&self) -> f64 {
        self.computing * self.sp + self.communicating * self.sc
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Twin {
    platform: Platform,
    fairness: Fairness,
    slip: Slip,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    now: Time,
}

impl Twin {
    pub(crate) fn new(platform: Platform, fairness: Fairness, slip: Slip) -> Twin {
        Twin { platform, fairness, slip, jobs: BTreeMap::new(), now: Time::ZERO }
    }

    /// The end of the job that ends first, in seconds from now.
    pub(crate) fn first_end(&self) -> Option<f64> {
        self.jobs.values().map(Job::left).min_by(f64::total_cmp)
    }

    /// Time passes, in which local users change nothing, and then everything is calculated.
    pub(crate) fn pass(&mut self, now: Time) {
        let passed = now.since(self.now).as_secs_f64();
        self.now = now;
        for job in self.jobs.values_mut() {
            let left = job.left();
            if left <= 0.0 {
                continue;
            }
            let (mut computed, mut communicated) =
                (passed * job.computing * job.sp / left, passed * job.communicating * job.sc / left);
            if self.slip == Slip::TimeCountsTwice {
                (computed, communicated) = (passed, passed);
            }
            job.computing = (job.computing - computed / job.sp).max(0.0);
            job.communicating = (job.communicating - communicated / job.sc).max(0.0);
        }
        self.calculate(None);
    }

    /// Starts a job; the nodes, or none if it must wait.
    pub(crate) fn start(&mut self, parts: &[(usize, u32)], job: JobId, demand: Demand) -> Option<Vec<usize>> {
        let mut nodes = Vec::new();
        for &(cluster, tasks) in parts {
            let all = self.platform.nodes_of(cluster)?;
            for _ in 0..tasks {
                let free = all.clone().map(|node| node as usize).filter(|&node| {
                    !nodes.contains(&node)
                        && self.tasks(node) < self.platform.nodes()[node].mpl as usize
                        && self.memory(node) >= demand.memory
                });
                let best = free.reduce(|best, node| if self.is_better(node, best) { node } else { best });
                nodes.push(best?);
            }
        }
        nodes.sort_unstable();
        let run_time = demand.run_time.as_secs_f64();
        let (computing, communicating) = (run_time * demand.computing, run_time * (1.0 - demand.computing));
        let started = Job {
            demand,
            nodes: nodes.clone(),
            parts: parts.to_vec(),
            computing,
            communicating,
            sp: 1.0,
            sc: 1.0,
        };
        self.jobs.insert(job, started);
        self.calculate(Some(job));
        Some(nodes)
    }

    /// A job is there, with so many seconds of its run time done.
    pub(crate) fn put(&mut self, job: JobId, demand: Demand, nodes: Vec<usize>, done: f64) {
        let left = (demand.run_time.as_secs_f64() - done).max(0.0);
        let (computing, communicating) = (left * demand.computing, left * (1.0 - demand.computing));
        self.jobs.insert(
            job,
            Job { demand, nodes, parts: Vec::new(), computing, communicating, sp: 1.0, sc: 1.0 },
        );
        self.calculate(None);
    }

    pub(crate) fn remove(&mut self, job: JobId) {
        self.jobs.remove(&job);
        self.calculate(None);
    }

    fn on(&self, node: usize) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(move |job| job.nodes.contains(&node))
    }

    fn tasks(&self, node: usize) -> usize {
        self.on(node).count()
    }

    fn memory(&self, node: usize) -> u64 {
        let all = self.platform.local()[node].at(self.now).memory_left(self.platform.nodes()[node].memory);
        all.saturating_sub(self.on(node).map(|job| job.demand.memory).sum())
    }

    fn is_better(&self, node: usize, than: usize) -> bool {
        if self.slip == Slip::FirstNodes {
            return node < than;
        }
        let power = |node: usize| self.platform.nodes()[node].power;
        if self.tasks(node) != self.tasks(than) {
            return self.tasks(node) < self.tasks(than);
        }
        if self.memory(node) != self.memory(than) {
            return self.memory(node) > self.memory(than);
        }
        if power(node) != power(than) {
            return power(node) > power(than);
        }
        node < than
    }

    fn calculate(&mut self, came: Option<JobId>) {
        let sc = self.communication();
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        for (job, sc) in jobs.into_iter().zip(sc) {
            if self.slip == Slip::OthersKeepTheirs && came.is_some_and(|came| came != job) {
                continue;
            }
            let sp: Vec<f64> = self.jobs[&job].nodes.iter().map(|&node| self.inverse_power(node)).collect();
            let slowest = match self.slip {
                Slip::MeanNode => sp.iter().sum::<f64>() / sp.len() as f64,
                _ => sp.into_iter().fold(0.0, f64::max),
            };
            let job = self.jobs.get_mut(&job).expect("it is one of them");
            (job.sp, job.sc) = (slowest, sc);
        }
    }

    /// (3.2), (3.3)
    fn inverse_power(&self, node: usize) -> f64 {
        let mut local = self.platform.local()[node].at(self.now).computing();
        let mut power = self.platform.nodes()[node].power;
        if self.slip == Slip::LocalComputingIsFree {
            local = 0.0;
        }
        if self.slip == Slip::NodesAreAlike {
            power = 1.0;
        }
        let available = (1.0 - local) / self.tasks(node) as f64;
        1.0 / (power * available)
    }

    /// SC of each job, in the order of ids.
    fn communication(&self) -> Vec<f64> {
        let nodes = self.platform.nodes().len();
        let mut capacities: Vec<f64> = (0..nodes)
            .map(|node| {
                let free = self.slip == Slip::LocalTrafficIsFree;
                let local = if free { 0.0 } else { self.platform.local()[node].at(self.now).bandwidth() };
                self.platform.nodes()[node].link - local
            })
            .collect();
        capacities.extend(self.platform.uplinks());
        // What each link carries for each unit of a job's bandwidth.
        let weights: Vec<Vec<f64>> = self
            .jobs
            .values()
            .map(|job| {
                let mut weights = vec![0.0; capacities.len()];
                job.nodes.iter().for_each(|&node| weights[node] = 1.0);
                if job.parts.len() > 1 && self.slip != Slip::NoUplinks {
                    let all = f64::from(job.demand.tasks);
                    for &(cluster, tasks) in &job.parts {
                        let tasks = f64::from(tasks);
                        weights[nodes + cluster] = tasks * (all - tasks) / (all - 1.0);
                    }
                }
                weights
            })
            .collect();
        let demands: Vec<f64> = self.jobs.values().map(|job| job.demand.bandwidth).collect();
        let assigned = match self.fairness {
            Fairness::Proportional => self.printed(&capacities, &demands, &weights),
            Fairness::MaxMin => max_min(&capacities, &demands, &weights),
        };
        let slowdown = |(demand, assigned): (&f64, f64)| if *demand > 0.0 { demand / assigned } else { 1.0 };
        demands.iter().zip(assigned).map(slowdown).collect()
    }

    /// Algorithm 3.1, line by line.
    fn printed(&self, capacities: &[f64], demands: &[f64], weights: &[Vec<f64>]) -> Vec<f64> {
        let mut assigned = demands.to_vec();
        loop {
            let saturation: Vec<f64> = (0..capacities.len())
                .map(|link| {
                    let sum: f64 =
                        assigned.iter().zip(weights).map(|(bandwidth, w)| bandwidth * w[link]).sum();
                    if sum > 0.0 { capacities[link] / sum } else { f64::INFINITY }
                })
                .collect();
            let saturated =
                (0..capacities.len()).filter(|&link| saturation[link] < 1.0 - SATURATION_TOLERANCE);
            // A link stands back for a later one only if that is worse by more than sums are off.
            let worst = saturated.reduce(|one, other| {
                let ratio = saturation[other] / saturation[one];
                let is_worse = match self.slip {
                    Slip::LeastSaturatedFirst => ratio > 1.0 + SATURATION_TOLERANCE,
                    _ => ratio < 1.0 - SATURATION_TOLERANCE,
                };
                if is_worse { other } else { one }
            });
            let Some(worst) = worst else { return assigned };
            for (bandwidth, weights) in assigned.iter_mut().zip(weights) {
                if weights[worst] > 0.0 {
                    *bandwidth *= saturation[worst];
                }
            }
        }
    }
}

/// The share of each link is what fills it, if its flows get no more than their other links allow; over and over, until no share moves.
fn max_min(capacities: &[f64], demands: &[f64], weights: &[Vec<f64>]) -> Vec<f64> {
    let mut shares = vec![f64::INFINITY; capacities.len()];
    let allowed = |flow: usize, shares: &[f64], but: Option<usize>| {
        let links = (0..shares.len()).filter(|&link| weights[flow][link] > 0.0 && Some(link) != but);
        links.map(|link| shares[link]).fold(demands[flow], f64::min)
    };
    for _ in 0..10 * capacities.len() + 10 {
        let before = shares.clone();
        for link in 0..capacities.len() {
            let mut flows: Vec<(f64, f64)> = (0..demands.len())
                .filter(|&flow| weights[flow][link] > 0.0)
                .map(|flow| (allowed(flow, &shares, Some(link)), weights[flow][link]))
                .collect();
            flows.sort_by(|one, other| one.0.total_cmp(&other.0));
            let (mut left, mut weight) = (capacities[link], flows.iter().map(|flow| flow.1).sum::<f64>());
            shares[link] = f64::INFINITY;
            for (most, of_flow) in flows {
                if most > left / weight {
                    shares[link] = left / weight;
                    break;
                }
                (left, weight) = (left - most * of_flow, weight - of_flow);
            }
        }
        if before == shares {
            break;
        }
    }
    (0..demands.len()).map(|flow| allowed(flow, &shares, None)).collect()
}
