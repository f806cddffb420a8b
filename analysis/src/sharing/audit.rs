//! Whether jobs on shared nodes ended when they should have: an audit that shares no code with the model that it judges.
//!
//! Each job must have done exactly its run time between its start and its end. How fast it went on is worked out here from the formulas
//! (Lérida 3.1 to 3.6, Algorithm 3.1), for each stretch of time between two instants at which anything of its site changed, from who was where by
//! the events. What the executor says of speeds is not looked at. Starts are judged, too: a node for each task, and no more tasks on a
//! node than it takes. A job in parts at several sites is one execution: as slow as its slowest node wherever that is, and on the links between sites, too
//! (4.14). It is for runs whose instants are exact: where starts and ends are noticed late, jobs seem to have shared longer
//! than they did.

use std::collections::BTreeMap;
use std::fmt;

use scheduler::sharing::{Fairness, LocalLoad, Node};
use scheduler::{COMPUTES, SharedNodes};
use scheduler::{JobId, SiteId, Span, Time};

use crate::job::JobOutcome;
use crate::outcome::Outcome;
use crate::sharing::Placement;

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
    let sites: Vec<(SiteId, &SharedNodes)> =
        sites.filter_map(|site| Some((site.id, &**outcome.grid.cluster(site.id)?))).collect();
    if sites.is_empty() {
        return Vec::new();
    }
    // Where jobs may be at several sites, one says something of others.
    let together = if outcome.grid.spreads() { sites.len() } else { 1 };
    sites.chunks(together).flat_map(|sites| Sites::of(outcome, sites).audit()).collect()
}

/// An execution, and what is left of it.
struct Execution {
    job: JobId,
    /// The site that it is known by.
    site: SiteId,
    /// Counted through all sites that are looked at together.
    nodes: Vec<u32>,
    /// Nodes that events name, whether they are there or not.
    named: usize,
    /// Its nodes, each carrying what a task of it sends, then links between sites with how often they carry that.
    links: Vec<(u32, f64)>,
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

/// What of a job is at a site, since when.
type Part<'a> = (SiteId, Time, &'a Placement);

/// Nodes of sites, numbered through all of them in order, and executions there.
struct Sites {
    /// By node: the site, its number there, and what it is.
    nodes: Vec<(SiteId, u32, Node, LocalLoad)>,
    /// By site: what its link to all others carries, in Mbit/s.
    uplinks: Vec<f64>,
    fairness: Fairness,
    executions: Vec<Execution>,
}

impl Sites {
    fn of(outcome: &Outcome, sites: &[(SiteId, &SharedNodes)]) -> Sites {
        let jobs: BTreeMap<JobId, &JobOutcome> = outcome.jobs.iter().map(|job| (job.id, job)).collect();
        let (mut nodes, mut first, mut uplinks) = (Vec::new(), BTreeMap::new(), Vec::new());
        for (place, (site, shared)) in sites.iter().enumerate() {
            let platform = &shared.platform;
            first.insert(*site, (place, nodes.len() as u32, platform.nodes().len() as u32));
            let all = platform.nodes().iter().zip(platform.local()).zip(0..);
            nodes.extend(all.map(|((node, load), number)| (*site, number, *node, load.clone())));
            uplinks.extend(platform.uplinks());
        }
        let all = nodes.len() as u32;
        // Parts of one job are one execution, which begins with the last of them.
        let mut found: BTreeMap<(JobId, SiteId, Option<Time>), Vec<Part>> = BTreeMap::new();
        for (job, site, start, placement) in outcome.placements.iter() {
            if !first.contains_key(&site) {
                continue;
            }
            let parts = outcome.spread.get(&job).filter(|parts| parts.iter().any(|part| part.0 == site));
            let key = parts.map_or((job, site, Some(start)), |parts| (job, parts[0].0, None));
            found.entry(key).or_default().push((site, start, placement));
        }
        let mut executions = Vec::new();
        for ((id, site, _), parts) in found {
            let (Some(job), Some(start)) = (jobs.get(&id), parts.iter().map(|part| part.1).max()) else {
                continue;
            };
            let shared = sites[first[&site].0].1;
            let program = shared.applications.get(&job.labels.executable).unwrap_or(&COMPUTES);
            let ends: Option<Vec<Time>> = parts.iter().map(|part| part.2.end).collect();
            let end = ends.as_ref().and_then(|ends| ends.iter().min().copied());
            let is_one = ends.is_none_or(|ends| ends.iter().all(|one| Some(*one) == end));
            let counts = job.site == Some(site) && (parts.len() > 1 || job.start == Some(start));
            let (mut on, mut links, mut named) = (Vec::new(), Vec::new(), 0);
            for (there, _, placement) in &parts {
                let (place, first, count) = first[there];
                named += placement.nodes.len();
                on.extend(placement.nodes.iter().filter(|&&node| node < count).map(|node| first + node));
                if parts.len() > 1 {
                    let here = placement.nodes.len() as f64;
                    let whole = f64::from(job.processors);
                    links.push((all + place as u32, here * (whole - here) / (whole - 1.0)));
                }
            }
            links.extend(on.iter().map(|&node| (node, 1.0)));
            executions.push(Execution {
                job: id,
                site,
                named,
                nodes: on,
                links,
                start,
                end: end.unwrap_or(outcome.until),
                computing: program.computing,
                bandwidth: program.bandwidth,
                run_time: job.run_time.as_micros().max(0) as f64,
                done: 0.0,
                stretch: 1.0,
                // Parts that end one after the other are in no run without faults: then no end is that of the job.
                is_judged: counts && job.end.is_some() && (job.end == end || !is_one),
                tasks: job.processors,
            });
        }
        executions.sort_by_key(|execution| (execution.start, execution.job));
        Sites { nodes, uplinks, fairness: sites[0].1.fairness, executions }
    }

    fn audit(mut self) -> Vec<Wrong> {
        let mut wrong = self.placed();
        let mut instants: Vec<Time> = self.executions.iter().flat_map(|one| [one.start, one.end]).collect();
        let (Some(&first), Some(&last)) = (instants.iter().min(), instants.iter().max()) else {
            return wrong;
        };
        let changes = self.nodes.iter().flat_map(|node| node.3.changes()).map(|change| change.0);
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
        Wrong { job: execution.job, site: execution.site, start: execution.start, what }
    }

    /// Executions that have not one node for each task.
    fn placed(&self) -> Vec<Wrong> {
        let of = |one: &Execution| {
            let nodes = one.nodes.len();
            let is_right = nodes == one.tasks as usize && one.named == nodes;
            (!is_right).then(|| self.wrong(one, Fault::Nodes { nodes, tasks: one.tasks }))
        };
        self.executions.iter().filter_map(of).collect()
    }

    /// Tasks on each node.
    fn tasks(&self, active: &[usize]) -> Vec<u32> {
        let mut tasks = vec![0; self.nodes.len()];
        for &node in active.iter().flat_map(|&place| &self.executions[place].nodes) {
            tasks[node as usize] += 1;
        }
        tasks
    }

    /// Executions that began now on a node with more tasks than it takes.
    fn crowded(&self, now: Time, active: &[usize], tasks: &[u32]) -> Vec<Wrong> {
        let of = |one: &Execution| {
            let full = |node: u32| {
                let (site, number, spec, _) = &self.nodes[node as usize];
                let (tasks, mpl) = (tasks[node as usize], spec.mpl);
                let wrong = self.wrong(one, Fault::Crowded { node: *number, tasks, mpl });
                (tasks > mpl).then_some(Wrong { site: *site, ..wrong })
            };
            one.nodes.iter().find_map(|&node| full(node))
        };
        let begun = active.iter().map(|&place| &self.executions[place]).filter(|one| one.start == now);
        begun.filter_map(of).collect()
    }

    /// Between two instants nothing changes: each goes on at one speed.
    fn go_on(&mut self, from: Time, to: Time, active: &[usize], tasks: &[u32]) {
        let used = |node: usize| self.nodes[node].3.at(from);
        let links = (0..self.nodes.len()).map(|node| self.nodes[node].2.link - used(node).bandwidth());
        let links: Vec<f64> = links.chain(self.uplinks.iter().copied()).collect();
        let flows: Vec<Flow> = active
            .iter()
            .map(|&place| (self.executions[place].bandwidth, self.executions[place].links.as_slice()))
            .collect();
        let given = match self.fairness {
            _ if flows.iter().all(|flow| flow.0 == 0.0) => vec![0.0; flows.len()],
            Fairness::Proportional => proportional(&links, &flows),
            Fairness::MaxMin => max_min(&links, &flows),
        };
        for (&place, given) in active.iter().zip(given) {
            let execution = &mut self.executions[place];
            let slowest = execution.nodes.iter().map(|&node| node as usize);
            let slowest = slowest
                .map(|node| {
                    let (.., spec, load) = &self.nodes[node];
                    f64::from(tasks[node]) / spec.power / (1.0 - load.at(from).computing())
                })
                .fold(0.0, f64::max);
            let sending = if execution.bandwidth > 0.0 { execution.bandwidth / given } else { 1.0 };
            let computing = execution.computing * slowest;
            execution.stretch = computing + (1.0 - execution.computing) * sending;
            execution.done += to.since(from).as_micros() as f64 / execution.stretch;
        }
    }
}

/// What each task of a job sends, and the links it is on with how many times each of them carries that.
type Flow<'a> = (f64, &'a [(u32, f64)]);

/// Algorithm 3.1: as long as a link is short, all on the shortest give up alike, and of equally short ones on the one with the lowest number.
fn proportional(links: &[f64], flows: &[Flow]) -> Vec<f64> {
    let mut given: Vec<f64> = flows.iter().map(|flow| flow.0).collect();
    loop {
        let mut asked = vec![0.0; links.len()];
        for (flow, given) in flows.iter().zip(&given) {
            for &(link, times) in flow.1 {
                asked[link as usize] += times * given;
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
            if flow.1.iter().any(|on| on.0 == link as u32) {
                *given *= share;
            }
        }
    }
}

/// Max-min fairness by filling: all get more alike, until they have what they ask for or a link of theirs is full.
fn max_min(links: &[f64], flows: &[Flow]) -> Vec<f64> {
    let mut given = vec![0.0; flows.len()];
    let mut rising: Vec<bool> = flows.iter().map(|flow| flow.0 > 0.0).collect();
    while rising.contains(&true) {
        let mut step = f64::INFINITY;
        let mut full = vec![false; links.len()];
        let room = |link: usize, given: &[f64]| -> (f64, f64) {
            let on = |place: usize| flows[place].1.iter().filter(|on| on.0 == link as u32).map(|on| on.1);
            let sum: f64 = (0..flows.len())
                .flat_map(|place| on(place).map(move |times| (place, times)))
                .map(|(place, times)| times * given[place])
                .sum();
            let risers: f64 = (0..flows.len()).filter(|&place| rising[place]).flat_map(on).sum();
            (links[link] - sum, risers)
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
            let is_held = flows[place].1.iter().any(|on| full.get(on.0 as usize) == Some(&true));
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
        let (first, second) = ((0, 1.0), (1, 1.0));
        let flows: [Flow; 4] = [(0.1, &[second]), (0.2, &[second]), (0.3, &[first, second]), (0.3, &[first])];
        let parts: [f64; 3] = [0.1, 0.2, 0.3];
        assert!(parts.iter().sum::<f64>() > 2.0 * parts[2], "the last bits differ");
        let given = proportional(&[0.3, 0.3], &flows);
        let expected = [0.2 / 3.0, 0.4 / 3.0, 0.1, 0.15];
        let is_near = given.iter().zip(expected).all(|(given, expected)| (given - expected).abs() < 1e-12);
        assert!(is_near, "{given:?}");
    }
}
