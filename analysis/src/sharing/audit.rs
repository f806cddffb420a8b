//! Whether jobs on shared nodes ended when they should have: an audit that shares no code with the model that it judges.
//!
//! Each job must have done exactly its run time between its start and its end. How fast it went on is worked out here from the formulas
//! (Lérida 3.1 to 3.6, Algorithm 3.1), for each stretch of time between two instants at which anything of its site changed, from who was where by
//! the events. What the executor says of speeds is not looked at. Starts are judged, too: a node for each task, and no more tasks on a
//! node than it takes. It is for runs whose instants are exact: where starts and ends are noticed late, jobs seem to have shared longer
//! than they did.

use std::collections::BTreeMap;
use std::fmt;

use scheduler::sharing::Fairness;
use scheduler::{COMPUTES, SharedNodes};
use scheduler::{JobId, SiteId, Span, Time};

use crate::job::JobOutcome;
use crate::outcome::Outcome;

/// How far an end may be from where it should be. The model rounds each end to a microsecond, and what shares with it inherits that;
/// a mistake of the model is seconds.
pub const TOLERANCE: Span = Span::from_micros(1000);

/// How much shorter than another a link may be and count as equally short, and how short at all and count as long enough: relative. Sums
/// of doubles are off by less, and links of one kind, which carry the same jobs, are equal but for that.
const SATURATION_TOLERANCE: f64 = 1e-12;

/// What is wrong with an execution on shared nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The job.
    pub job: JobId,
    /// Where it executed.
    pub site: SiteId,
    /// When it started.
    pub start: Time,
    /// What is wrong.
    pub what: Fault,
}

/// The ways to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It did not end when its work was done: so much after that, or before it if negative.
    End(Span),
    /// So many nodes for its tasks.
    Nodes {
        /// Nodes that the site has and events name.
        nodes: usize,
        /// Tasks.
        tasks: u32,
    },
    /// A node had more tasks than it takes from its start on.
    Crowded {
        /// The node, counted within the site from 0.
        node: u32,
        /// Tasks on it.
        tasks: u32,
        /// The most that it takes.
        mpl: u32,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { job, site, start, what } = self;
        write!(f, "job {job}, which started at site {site} at {start} s, ")?;
        match what {
            Fault::End(late) if *late < Span::ZERO => {
                write!(f, "ended {} s before its work was done", Span::from_micros(-late.as_micros()))
            }
            Fault::End(late) => write!(f, "ended {late} s after its work was done"),
            Fault::Nodes { nodes, tasks } => write!(f, "has {tasks} tasks on {nodes} nodes"),
            Fault::Crowded { node, tasks, mpl } => {
                write!(f, "is on node {node} with {tasks} tasks, which takes {mpl}")
            }
        }
    }
}

/// What is wrong with the executions of a run, by site, start and job. Nothing where no nodes are shared, and nothing of a run with faults:
/// who stood still says late what ended meanwhile.
pub fn audit(outcome: &Outcome) -> Vec<Wrong> {
    if outcome.faults.disturbed() {
        return Vec::new();
    }
    let sites = outcome.grid.sites().iter();
    sites
        .filter_map(|site| Some((site.id, outcome.grid.cluster(site.id)?)))
        .flat_map(|(site, nodes)| Site::of(outcome, site, nodes).audit())
        .collect()
}

/// An execution, and what is left of it.
struct Execution<'a> {
    job: JobId,
    nodes: &'a [u32],
    start: Time,
    end: Time,
    /// The share of its time on idle nodes in which it computes, and what each task sends, in Mbit/s.
    computing: f64,
    bandwidth: f64,
    run_time: f64,
    done: f64,
    /// How fast it went on last.
    stretch: f64,
    /// Whether it came to its end, and that is the one which counts.
    is_judged: bool,
    tasks: u32,
}

struct Site<'a> {
    site: SiteId,
    nodes: &'a SharedNodes,
    executions: Vec<Execution<'a>>,
}

impl<'a> Site<'a> {
    fn of(outcome: &'a Outcome, site: SiteId, nodes: &'a SharedNodes) -> Site<'a> {
        let jobs: BTreeMap<JobId, &JobOutcome> = outcome.jobs.iter().map(|job| (job.id, job)).collect();
        let here = outcome.placements.iter().filter(|&(_, there, ..)| there == site);
        let mut executions: Vec<Execution> = here
            .filter_map(|(id, _, start, placement)| {
                let job = jobs.get(&id)?;
                let program = nodes.applications.get(&job.labels.executable).unwrap_or(&COMPUTES);
                let counts = (job.site, job.start) == (Some(site), Some(start));
                Some(Execution {
                    job: id,
                    nodes: &placement.nodes,
                    start,
                    end: placement.end.unwrap_or(outcome.until),
                    computing: program.computing,
                    bandwidth: program.bandwidth,
                    run_time: job.run_time.as_micros().max(0) as f64,
                    done: 0.0,
                    stretch: 1.0,
                    is_judged: counts && job.end.is_some() && job.end == placement.end,
                    tasks: job.processors,
                })
            })
            .collect();
        executions.sort_by_key(|execution| (execution.start, execution.job));
        Site { site, nodes, executions }
    }

    fn audit(mut self) -> Vec<Wrong> {
        let mut wrong = self.placed();
        let mut instants: Vec<Time> = self.executions.iter().flat_map(|one| [one.start, one.end]).collect();
        let (Some(&first), Some(&last)) = (instants.iter().min(), instants.iter().max()) else {
            return wrong;
        };
        let loads = self.nodes.platform.local().iter();
        let changes = loads.flat_map(|load| load.changes()).map(|change| change.0);
        instants.extend(changes.filter(|&at| at > first && at < last));
        instants.sort_unstable();
        instants.dedup();
        // Those that have started and not ended; `next` starts next.
        let (mut active, mut next) = (Vec::new(), 0);
        for pair in instants.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            while self.executions.get(next).is_some_and(|execution| execution.start <= from) {
                active.push(next);
                next += 1;
            }
            active.retain(|&place| self.executions[place].end > from);
            let tasks = self.tasks(&active);
            wrong.extend(self.crowded(from, &active, &tasks));
            self.go_on(from, to, &active, &tasks);
        }
        for execution in self.executions.iter().filter(|execution| execution.is_judged) {
            let left = (execution.run_time - execution.done) * execution.stretch;
            let late = Span::from_micros(-left.round() as i64);
            if late > TOLERANCE || late < Span::from_micros(-TOLERANCE.as_micros()) {
                wrong.push(self.wrong(execution, Fault::End(late)));
            }
        }
        wrong.sort_by_key(|wrong| (wrong.start, wrong.job));
        wrong
    }

    fn wrong(&self, execution: &Execution, what: Fault) -> Wrong {
        Wrong { job: execution.job, site: self.site, start: execution.start, what }
    }

    /// Executions that have not one node for each task.
    fn placed(&self) -> Vec<Wrong> {
        let there = self.nodes.platform.nodes().len();
        let of = |one: &Execution| {
            let nodes = one.nodes.iter().filter(|&&node| (node as usize) < there).count();
            let is_right = nodes == one.tasks as usize && one.nodes.len() == nodes;
            (!is_right).then(|| self.wrong(one, Fault::Nodes { nodes, tasks: one.tasks }))
        };
        self.executions.iter().filter_map(of).collect()
    }

    /// Tasks on each node.
    fn tasks(&self, active: &[usize]) -> Vec<u32> {
        let mut tasks = vec![0; self.nodes.platform.nodes().len()];
        for &node in active.iter().flat_map(|&place| self.executions[place].nodes) {
            if let Some(tasks) = tasks.get_mut(node as usize) {
                *tasks += 1;
            }
        }
        tasks
    }

    /// Executions that began now on a node with more tasks than it takes.
    fn crowded(&self, now: Time, active: &[usize], tasks: &[u32]) -> Vec<Wrong> {
        let nodes = self.nodes.platform.nodes();
        let of = |one: &Execution| {
            let full = |node: u32| {
                let (&tasks, mpl) = (tasks.get(node as usize)?, nodes[node as usize].mpl);
                (tasks > mpl).then_some(Fault::Crowded { node, tasks, mpl })
            };
            Some(self.wrong(one, one.nodes.iter().find_map(|&node| full(node))?))
        };
        let begun = active.iter().map(|&place| &self.executions[place]).filter(|one| one.start == now);
        begun.filter_map(of).collect()
    }

    /// Between two instants nothing changes: each goes on at one speed.
    fn go_on(&mut self, from: Time, to: Time, active: &[usize], tasks: &[u32]) {
        let platform = &self.nodes.platform;
        let nodes = platform.nodes();
        let used = |node: usize| platform.local()[node].at(from);
        let links: Vec<f64> =
            (0..nodes.len()).map(|node| nodes[node].link - used(node).bandwidth()).collect();
        let flows: Vec<(f64, &[u32])> = active
            .iter()
            .map(|&place| (self.executions[place].bandwidth, self.executions[place].nodes))
            .collect();
        let given = match self.nodes.fairness {
            _ if flows.iter().all(|flow| flow.0 == 0.0) => vec![0.0; flows.len()],
            Fairness::Proportional => proportional(&links, &flows),
            Fairness::MaxMin => max_min(&links, &flows),
        };
        for (&place, given) in active.iter().zip(given) {
            let execution = &mut self.executions[place];
            let slowest =
                execution.nodes.iter().map(|&node| node as usize).filter(|&node| node < nodes.len());
            let slowest = slowest
                .map(|node| f64::from(tasks[node]) / nodes[node].power / (1.0 - used(node).computing()))
                .fold(0.0, f64::max);
            let sending = if execution.bandwidth > 0.0 { execution.bandwidth / given } else { 1.0 };
            let computing = execution.computing * slowest;
            execution.stretch = computing + (1.0 - execution.computing) * sending;
            execution.done += to.since(from).as_micros() as f64 / execution.stretch;
        }
    }
}

/// Algorithm 3.1: as long as a link is short, all on the shortest give up alike, and of equally short ones on the one with the lowest number.
fn proportional(links: &[f64], flows: &[(f64, &[u32])]) -> Vec<f64> {
    let mut given: Vec<f64> = flows.iter().map(|flow| flow.0).collect();
    loop {
        let mut asked = vec![0.0; links.len()];
        for (flow, given) in flows.iter().zip(&given) {
            for &link in flow.1.iter().filter(|&&link| (link as usize) < links.len()) {
                asked[link as usize] += given;
            }
        }
        let shares: Vec<f64> = links.iter().zip(&asked).map(|(capacity, asked)| capacity / asked).collect();
        let least = shares.iter().copied().fold(1.0, f64::min);
        if least >= 1.0 - SATURATION_TOLERANCE {
            return given;
        }
        let is_as_short = |share: &&f64| **share <= least * (1.0 + SATURATION_TOLERANCE);
        let (link, share) =
            shares.iter().enumerate().find(|(_, share)| is_as_short(share)).expect("one is the least");
        for (flow, given) in flows.iter().zip(&mut given) {
            if flow.1.contains(&(link as u32)) {
                *given *= share;
            }
        }
    }
}

/// Max-min fairness by filling: all get more alike, until they have what they ask for or a link of theirs is full.
fn max_min(links: &[f64], flows: &[(f64, &[u32])]) -> Vec<f64> {
    let mut given = vec![0.0; flows.len()];
    let mut rising: Vec<bool> = flows.iter().map(|flow| flow.0 > 0.0).collect();
    while rising.contains(&true) {
        let mut step = f64::INFINITY;
        let mut full = vec![false; links.len()];
        let room = |link: usize, given: &[f64]| -> (f64, f64) {
            let on = |place: &usize| flows[*place].1.contains(&(link as u32));
            let sum: f64 = (0..flows.len()).filter(on).map(|place| given[place]).sum();
            let risers = (0..flows.len()).filter(on).filter(|&place| rising[place]).count();
            (links[link] - sum, risers as f64)
        };
        for link in 0..links.len() {
            let (left, risers) = room(link, &given);
            if risers > 0.0 {
                step = step.min(left / risers);
            }
        }
        for place in (0..flows.len()).filter(|&place| rising[place]) {
            step = step.min(flows[place].0 - given[place]);
        }
        let step = step.max(0.0);
        (0..flows.len()).filter(|&place| rising[place]).for_each(|place| given[place] += step);
        for (link, full) in full.iter_mut().enumerate() {
            *full = room(link, &given).0 <= links[link] * 1e-12;
        }
        for place in 0..flows.len() {
            let is_held = flows[place].1.iter().any(|&link| full.get(link as usize) == Some(&true));
            rising[place] &= !is_held && given[place] < flows[place].0 * (1.0 - 1e-12);
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both links must halve. Added up in this order the sum on the second is above that on the first by its last bit.
    #[test]
    fn of_equally_short_links_the_first_comes_first_whatever_the_last_bits_say() {
        let flows: [(f64, &[u32]); 4] = [(0.1, &[1]), (0.2, &[1]), (0.3, &[0, 1]), (0.3, &[0])];
        let parts: [f64; 3] = [0.1, 0.2, 0.3];
        assert!(parts.iter().sum::<f64>() > 2.0 * parts[2], "the last bits differ");
        let given = proportional(&[0.3, 0.3], &flows);
        let expected = [0.2 / 3.0, 0.4 / 3.0, 0.1, 0.15];
        let is_near = given.iter().zip(expected).all(|(given, expected)| (given - expected).abs() < 1e-12);
        assert!(is_near, "{given:?}");
    }
}
