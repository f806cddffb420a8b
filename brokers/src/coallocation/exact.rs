//! The best co-allocation, exactly: by slow-down of computing and by load of links, whether the counts of tasks add up.
//!
//! The thesis calls the problem NP-complete and gives it to a solver as a mixed-integer program (4.6.3). It is not hard: for a given SP only so
//! many nodes of a cluster may be used, for a given SC only some counts, and which sums of counts can be reached a dynamic program over clusters
//! tells, one bit for each sum. Both grow in a few steps only, and where SP grows SC must fall, or nothing is gained.

use thiserror::Error;

/// A cluster as co-allocation sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Effective power of each node that may take a task, above 0 and at most 1 (4.11).
    pub powers: Vec<f64>,
    /// What its link to the central switch carries, in Mbit/s, above 0.
    pub link: f64,
    /// What others use of it, in Mbit/s, not negative.
    pub consumed: f64,
}

/// A job as co-allocation sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// Tasks tau, at least 1, each on a node of its own.
    pub tasks: usize,
    /// Bandwidth per task PNBW in Mbit/s, where all talk to all.
    pub bandwidth: f64,
    /// Time of computing T^p on idle nodes of full power, in seconds.
    pub computing: f64,
    /// Time of communicating T^c, in seconds.
    pub communicating: f64,
}

/// Which solution is wanted (4.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The least T^p SP + T^c SC (4.17).
    Optimal,
    /// The same where no link is over its capacity (4.19).
    NonSaturated,
    /// Any where no link is over its capacity: the first clusters first.
    NonOptimal,
}

/// Tasks for each cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// How many go to each cluster, to its most powerful nodes. Of equal solutions the one with most tasks in the first clusters.
    pub tasks: Vec<usize>,
    /// SP (4.12).
    pub processing: f64,
    /// SC (4.16) over all links, also those that the job does not use. Below 1 where none is full, which is what the model minimizes.
    pub communication: f64,
    /// T^p SP + T^c SC in seconds (4.17).
    pub time: f64,
}

/// Why a problem is none.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum CoallocationError {
    /// A job without tasks, or a number of it that is negative or none.
    #[error("a job needs at least 1 task, and times and a bandwidth that are numbers from 0 on")]
    Job,
    /// A cluster with a number out of its range.
    #[error("cluster {0} needs powers above 0 and at most 1, a link above 0, and a consumption from 0 on")]
    Cluster(usize),
}

/// What a job sends over the link of a cluster that has `here` of its tasks, BW_k in Mbit/s (4.14).
pub fn crossing(job: &Job, here: usize) -> f64 {
    let tasks = u32::try_from(job.tasks).unwrap_or(u32::MAX);
    let here = u32::try_from(here).unwrap_or(u32::MAX);
    job.bandwidth * scheduler::sharing::communication_share(here, tasks)
}

/// The solution that is wanted, or none if the clusters have too few nodes or links that are too short.
///
/// # Errors
/// If a number is out of its range.
pub fn best(
    variant: Variant,
    job: &Job,
    clusters: &[Cluster],
) -> Result<Option<Solution>, CoallocationError> {
    check(job, clusters)?;
    let problem = Problem::new(job, clusters);
    let limit = if variant == Variant::Optimal { f64::INFINITY } else { 1.0 };
    // Loads are in order: those within the limit come first.
    let loads = problem.levels.partition_point(|&level| level <= limit);
    if variant == Variant::NonOptimal {
        let slowest = problem.slowdowns.last().copied().unwrap_or(1.0);
        let first = loads.checked_sub(1).and_then(|last| problem.fill(slowest, problem.levels[last]));
        return Ok(first.map(|tasks| problem.solution(tasks)));
    }
    let mut found: Option<(f64, f64, f64)> = None;
    for &slowdown in &problem.slowdowns {
        let time = |level: f64| job.computing * slowdown + job.communicating * level;
        let is_better = |level: f64| found.is_none_or(|(so_far, ..)| time(level) < so_far);
        let (mut low, mut high) = (0, problem.levels[..loads].partition_point(|&level| is_better(level)));
        if high == 0 || !problem.is_feasible(slowdown, problem.levels[high - 1]) {
            continue;
        }
        while low + 1 < high {
            let middle = usize::midpoint(low, high);
            let feasible = problem.is_feasible(slowdown, problem.levels[middle - 1]);
            (low, high) = if feasible { (low, middle) } else { (middle, high) };
        }
        let level = problem.levels[high - 1];
        found = Some((time(level), slowdown, level));
    }
    Ok(found
        .and_then(|(_, slowdown, level)| problem.fill(slowdown, level))
        .map(|tasks| problem.solution(tasks)))
}

/// What it is like to have so many tasks in each cluster, on its most powerful nodes; none if that are not all tasks of the job, or more
/// than a cluster has nodes.
///
/// # Errors
/// If a number is out of its range.
pub fn assigned(
    job: &Job,
    clusters: &[Cluster],
    tasks: &[usize],
) -> Result<Option<Solution>, CoallocationError> {
    check(job, clusters)?;
    let fits = tasks.len() == clusters.len()
        && tasks.iter().sum::<usize>() == job.tasks
        && tasks.iter().zip(clusters).all(|(&count, cluster)| count <= cluster.powers.len());
    Ok(fits.then(|| Problem::new(job, clusters).solution(tasks.to_vec())))
}

fn check(job: &Job, clusters: &[Cluster]) -> Result<(), CoallocationError> {
    let is_amount = |number: f64| number >= 0.0 && number.is_finite();
    if job.tasks == 0 || ![job.bandwidth, job.computing, job.communicating].into_iter().all(is_amount) {
        return Err(CoallocationError::Job);
    }
    let is_sound = |cluster: &Cluster| {
        let powers = cluster.powers.iter().all(|&power| power > 0.0 && power <= 1.0);
        powers && cluster.link > 0.0 && is_amount(cluster.consumed)
    };
    clusters
        .iter()
        .position(|cluster| !is_sound(cluster))
        .map_or(Ok(()), |at| Err(CoallocationError::Cluster(at)))
}

/// What is calculated once.
struct Problem<'a> {
    job: &'a Job,
    /// Slow-downs of the nodes of each cluster, the least first.
    nodes: Vec<Vec<f64>>,
    /// Load of the link of each cluster by how many tasks are there (4.13).
    loads: Vec<Vec<f64>>,
    /// Slow-downs that a job can have, and loads that a link can have, each once and in order.
    slowdowns: Vec<f64>,
    levels: Vec<f64>,
}

impl Problem<'_> {
    fn new<'a>(job: &'a Job, clusters: &[Cluster]) -> Problem<'a> {
        let sorted = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values
        };
        let nodes: Vec<Vec<f64>> = clusters
            .iter()
            .map(|cluster| sorted(cluster.powers.iter().map(|power| power.recip()).collect()))
            .collect();
        let loads: Vec<Vec<f64>> = clusters
            .iter()
            .map(|cluster| {
                let load = |here| (cluster.consumed + crossing(job, here)) / cluster.link;
                (0..=cluster.powers.len().min(job.tasks)).map(load).collect()
            })
            .collect();
        let once = |values: Vec<f64>| {
            let mut values = sorted(values);
            values.dedup();
            values
        };
        let (slowdowns, levels) = (once(nodes.concat()), once(loads.concat()));
        Problem { job, nodes, loads, slowdowns, levels }
    }

    /// Counts of tasks that a cluster may have, the least first.
    fn counts(&self, cluster: usize, slowdown: f64, level: f64) -> impl DoubleEndedIterator<Item = usize> {
        let most = self.nodes[cluster].partition_point(|&node| node <= slowdown);
        let loads = &self.loads[cluster];
        (0..=most.min(self.job.tasks)).filter(move |&count| loads[count] <= level)
    }

    /// Sums that the clusters from one on can reach, for each of them and past the last.
    fn reach(&self, slowdown: f64, level: f64) -> Vec<Vec<u64>> {
        let words = self.job.tasks / 64 + 1;
        let mut reached = vec![vec![0; words]; self.nodes.len() + 1];
        reached[self.nodes.len()][0] = 1;
        for cluster in (0..self.nodes.len()).rev() {
            let (own, after) = reached.split_at_mut(cluster + 1);
            for count in self.counts(cluster, slowdown, level) {
                shift_into(&mut own[cluster], &after[0], count);
            }
        }
        reached
    }

    fn is_feasible(&self, slowdown: f64, level: f64) -> bool {
        has(&self.reach(slowdown, level)[0], self.job.tasks)
    }

    /// The counts with most tasks in the first clusters.
    fn fill(&self, slowdown: f64, level: f64) -> Option<Vec<usize>> {
        let reached = self.reach(slowdown, level);
        let mut left = self.job.tasks;
        if !has(&reached[0], left) {
            return None;
        }
        let fill = |cluster: usize| {
            let mut counts = self.counts(cluster, slowdown, level).rev();
            let count = counts.find(|&count| count <= left && has(&reached[cluster + 1], left - count))?;
            left -= count;
            Some(count)
        };
        (0..self.nodes.len()).map(fill).collect()
    }

    fn solution(&self, tasks: Vec<usize>) -> Solution {
        let slowest =
            |(nodes, &count): (&Vec<f64>, &usize)| count.checked_sub(1).map_or(0.0, |last| nodes[last]);
        let processing = self.nodes.iter().zip(&tasks).map(slowest).fold(0.0, f64::max);
        let communication =
            self.loads.iter().zip(&tasks).map(|(loads, &count)| loads[count]).fold(0.0, f64::max);
        let time = self.job.computing * processing + self.job.communicating * communication;
        Solution { tasks, processing, communication, time }
    }
}

/// Adds a set of sums, each larger by `count`, to another; those past its end are dropped.
fn shift_into(set: &mut [u64], from: &[u64], count: usize) {
    let (words, bits) = (count / 64, count % 64);
    for place in words..set.len() {
        let low = from[place - words] << bits;
        let high = if bits > 0 && place > words { from[place - words - 1] >> (64 - bits) } else { 0 };
        set[place] |= low | high;
    }
}

fn has(set: &[u64], sum: usize) -> bool {
    set[sum / 64] >> (sum % 64) & 1 == 1
}
