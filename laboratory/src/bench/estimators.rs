//! `stealgrid bench estimators`: how far the six estimators of M-CISNE are from what happens on nodes that jobs share (Lérida, §3.5).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use experiments::exit;
use predict::score::Errors;
use predict::waits::{Ahead, Arrival, WaitPredictor, Waits};
use predict::{Correction, Forecast, Predictor, correction_factor};
use scheduler::local::{Estimator, LocalQueue};
use scheduler::sharing::forward::{self, Placed, Scenario, Selection};
use scheduler::sharing::local_load::XWINDOWS_INTERNET;
use scheduler::sharing::{
    Cluster, Demand, Estimate, Fairness, Layout, LocalLoad, Node, Platform, Shared, Spread,
};
use scheduler::{JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time};
use workload::nas::{APPLICATIONS, Flavor, Nas};

/// Tasks on a node where it is shared, its memory in KB and its link in Mbit/s (Lérida, *M-CISNE*, §3.5 and §4.3.3).
const NODE: (u32, u64, f64) = (4, 1_048_576, 1000.0);
/// The share of nodes with local users where there are some (§3.5).
const LOCAL: f64 = 0.5;
/// Predictions that a correction factor or the Decisor looks at (§3.5.6 and §3.6 name no number); those of `straight` and `decisor`.
const WINDOWS: (usize, usize) = (30, 20);
/// What users ask for: nothing that would limit a prediction.
const REQUESTED: Span = Span::from_secs(30 * 86_400);

/// Predict waits and run times of jobs on nodes that they share, by each estimator of M-CISNE (its experiment 3.5).
///
/// Benchmarks of Table D.1 come to one cluster under FCFS: dedicated (a task on a node), shared (four at most), and shared with local users on
/// half of the nodes. When a job comes, each estimator says how long it will wait and run. Lines are deviation (3.13), slope (Pe) and adjusted
/// correlation (Ra) of predicted over measured, over all jobs of all seeds of which the estimator said something, and the mean time of one prediction
/// of both, as comma-separated values. A name that ends in +fc has the correction factor (3.5.6). Times depend on the machine; the rest does not.
///
/// Exit codes: 0 done, 2 usage, 5 an analytic estimator is wrong where nothing is shared.
#[derive(Clone, Debug, Args)]
pub(super) struct EstimatorsBenchArgs {
    /// Jobs of each seed
    #[arg(long, value_name = "N", default_value_t = 700, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    jobs: u32,

    /// Nodes of the cluster
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(8..=1000))]
    nodes: u32,

    /// Seconds between two arrivals in the mean
    #[arg(long, value_name = "SECONDS", default_value_t = 4.0)]
    interarrival: f64,

    /// Users that the jobs are of
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    users: u32,

    /// Seeds of jobs and local users, from 1
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
}

/// An estimator of its table 3.3, by what it looks at.
const NAMES: [&str; 6] = ["smith", "li", "ibl", "hanzich", "sdpn", "hybrid"];
/// Those that play the queue forward.
const ANALYTIC: std::ops::Range<usize> = 3..6;

/// How long a job waits and then runs.
type Said = (Span, Span);

/// By each of [`NAMES`]; then by those that play, corrected; then by the Decisor.
type Each = [Option<Said>; NAMES.len() + ANALYTIC.end - ANALYTIC.start + 1];

/// What was said of a job, and what happened.
#[derive(Clone, Debug)]
struct Asked {
    said: Each,
    /// Since when it runs.
    start: Option<Time>,
    happened: Option<Said>,
}

/// Runs the command.
pub(super) fn run(args: &EstimatorsBenchArgs) -> anyhow::Result<u8> {
    let micros = args.interarrival * 1e6;
    anyhow::ensure!(
        (1.0..1e15).contains(&micros),
        "--interarrival {} is no time above 0; write seconds, as in 4",
        args.interarrival
    );
    let interarrival = Span::from_micros(micros as i64);
    println!("nodes,metric,estimator,jobs,deviation,slope,correlation,us");
    let mut is_right = true;
    for (name, mpl, share) in [("dedicated", 1, 0.0), ("shared", NODE.0, 0.0), ("local", NODE.0, LOCAL)] {
        let mut asked = Vec::new();
        let mut times = [Duration::ZERO; NAMES.len()];
        for seed in 1..=u64::from(args.seeds) {
            let nas = Nas {
                jobs: args.jobs as usize,
                interarrival,
                flavor: Flavor::default(),
                nodes: args.nodes,
                failing: 0.0,
                users: args.users,
            };
            let world = World::new(args.nodes, mpl, share, seed).context("make the cluster")?;
            asked.extend(world.play(&jobs_of(&nas, seed), &mut times));
        }
        let lines = lines(&asked);
        for (metric, estimator, errors) in &lines {
            let ct = NAMES.iter().position(|name| name == estimator);
            let ct = ct.map_or(String::new(), |place| {
                format!("{:.1}", times[place].as_secs_f64() * 1e6 / asked.len() as f64)
            });
            let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
            println!(
                "{name},{metric},{estimator},{},{:.4},{},{},{ct}",
                errors.jobs,
                errors.mae_share,
                number(errors.slope),
                number(errors.correlation)
            );
        }
        // A cluster without sharing is what the queue knows all of: who comes later waits behind.
        let exact = |line: &&(&str, String, Errors)| line.1 == "sdpn" && line.2.mae_share > 1e-6;
        is_right &= mpl > 1 || !lines.iter().any(|line| exact(&line));
    }
    Ok(if is_right { exit::DONE } else { exit::OUT_OF_TOLERANCE })
}

/// One of the times that are said, or happen.
type Part = fn(&Said) -> Span;

/// Figures of each estimator of which something is known, by metric.
fn lines(asked: &[Asked]) -> Vec<(&'static str, String, Errors)> {
    let corrected = ANALYTIC.map(|place| format!("{}+fc", NAMES[place]));
    let names: Vec<String> =
        NAMES.iter().map(ToString::to_string).chain(corrected).chain(["decisor".to_string()]).collect();
    let metrics: [(&str, Part); 3] =
        [("wait", |said| said.0), ("execution", |said| said.1), ("turnaround", |said| said.0 + said.1)];
    let mut lines = Vec::new();
    for (metric, of) in metrics {
        for (place, name) in names.iter().enumerate() {
            let pair = |asked: &Asked| Some((of(&asked.said[place]?), of(&asked.happened?)));
            let pairs: Vec<(Span, Span)> = asked.iter().filter_map(pair).collect();
            lines.extend(Errors::of(&pairs).map(|errors| (metric, name.clone(), errors)));
        }
    }
    lines
}

/// The benchmarks with their times on idle nodes, of somebody.
fn jobs_of(nas: &Nas, seed: u64) -> Vec<(JobSpec, Demand)> {
    let trace = nas.trace(seed);
    let job = |record: &workload::Record| {
        let executable = record.executable;
        let application = &APPLICATIONS[executable as usize - 1];
        let labels = Labels { user: record.user, executable, queue: 1, ..Labels::UNKNOWN };
        let spec = JobSpec {
            id: JobId(record.job as u64),
            submit: Time::ZERO + record.submit,
            processors: application.nodes,
            requested: REQUESTED,
            labels,
            origin: SiteId(1),
            payload: 0,
        };
        let demand = Demand {
            tasks: application.nodes,
            run_time: record.run_time,
            computing: application.computing(),
            bandwidth: f64::from(application.bandwidth()),
            memory: application.memory_kb() as u64,
        };
        (spec, demand)
    };
    trace.records.iter().map(job).collect()
}

/// A cluster with its queue under FCFS, and all estimators beside it.
struct World {
    cluster: Cluster,
    loads: Vec<LocalLoad>,
    shared: Shared<JobId>,
    queue: VecDeque<usize>,
    ahead: Ahead,
    run_times: [Box<dyn Estimator>; 3],
    waits: [Waits; 3],
    /// Of jobs that ended: by program and the most tasks on any of its nodes when it started, how many times longer than on idle nodes in sum, and how
    /// many (3.11, with the parallelism of the nodes as the state).
    slowdowns: BTreeMap<(i32, u32), (f64, f64)>,
    /// The most tasks on any node of a job that executes, from when it started.
    beside: BTreeMap<JobId, u32>,
    /// What the corrections and the Decisor look at: jobs that ended, the last at the end.
    ended: VecDeque<Asked>,
}

impl World {
    fn new(nodes: u32, mpl: u32, share: f64, seed: u64) -> anyhow::Result<World> {
        let node = Node { power: 1.0, memory: NODE.1, link: NODE.2, mpl };
        let cluster = Cluster { nodes: vec![node; nodes as usize], uplink: NODE.2 };
        let spread = Spread { usage: XWINDOWS_INTERNET, share, layout: Layout::Uniform, redraws: None };
        let loads = spread.draw(&[nodes as usize], seed);
        let platform = Platform::new(std::slice::from_ref(&cluster))?.with_local(loads.clone())?;
        let estimator =
            |predictor: Predictor| Forecast { predictor, correction: Correction::User }.estimator();
        let predictors = ["smith", "li", "ibl"];
        Ok(World {
            cluster,
            loads,
            shared: Shared::new(platform, Estimate::Sdpn(Fairness::Proportional)),
            queue: VecDeque::new(),
            ahead: Ahead::default(),
            run_times: predictors.map(|name| estimator(name.parse().expect("a predictor"))),
            waits: predictors.map(|name| name.parse::<WaitPredictor>().expect("a predictor").waits()),
            slowdowns: BTreeMap::new(),
            beside: BTreeMap::new(),
            ended: VecDeque::new(),
        })
    }

    /// All jobs to the last end.
    fn play(mut self, jobs: &[(JobSpec, Demand)], times: &mut [Duration]) -> Vec<Asked> {
        let mut asked: Vec<Asked> = Vec::with_capacity(jobs.len());
        // Nothing looks at it but players of queues on processors.
        let queue = LocalQueue::new(LocalScheduler::Fcfs, Pass::Batch, 1);
        for (place, (spec, _)) in jobs.iter().enumerate() {
            self.advance(spec.submit, jobs, &mut asked);
            let said = self.ask(spec.submit, place, jobs, &queue, times);
            asked.push(Asked { said, start: None, happened: None });
            self.queue.push_back(place);
            self.ahead.add(spec);
            self.start(spec.submit, jobs, &mut asked);
        }
        while let Some(at) = self.shared.next_end() {
            self.advance(at, jobs, &mut asked);
        }
        asked
    }

    /// What ends by then, and what starts at that.
    fn advance(&mut self, until: Time, jobs: &[(JobSpec, Demand)], asked: &mut [Asked]) {
        while let Some(due) = self.shared.pop_due(until) {
            let mut ends = vec![due.what];
            while let Some(same) = self.shared.pop_due(due.at) {
                ends.push(same.what);
            }
            for JobId(id) in ends {
                let place = id as usize - 1;
                self.learn(due.at, &jobs[place], &mut asked[place]);
            }
            self.start(due.at, jobs, asked);
        }
    }

    fn learn(&mut self, now: Time, (spec, demand): &(JobSpec, Demand), asked: &mut Asked) {
        let start = asked.start.expect("what ends has started");
        let execution = now.since(start);
        asked.happened = Some((start.since(spec.submit), execution));
        for place in 0..self.waits.len() {
            self.run_times[place].learn(now, spec, execution);
            self.waits[place].ended(now, spec, execution);
        }
        let ratio = execution.as_secs_f64() / demand.run_time.as_secs_f64();
        let key = (spec.labels.executable, self.beside.remove(&spec.id).unwrap_or(1));
        let (sum, count) = self.slowdowns.entry(key).or_default();
        (*sum, *count) = (*sum + ratio, *count + 1.0);
        self.ended.push_back(asked.clone());
        if self.ended.len() > WINDOWS.0.max(WINDOWS.1) {
            self.ended.pop_front();
        }
    }

    /// What starts of the queue, the first first.
    fn start(&mut self, now: Time, jobs: &[(JobSpec, Demand)], asked: &mut [Asked]) {
        while let Some(&place) = self.queue.front() {
            let (spec, demand) = &jobs[place];
            if self.shared.fits(now, 0, spec.id, demand).is_err() {
                return;
            }
            let nodes = self.shared.start(now, 0, spec.id, *demand, spec.id).expect("it fits").to_vec();
            let most = nodes.iter().map(|&node| self.shared.node(node).tasks).max().unwrap_or(1);
            self.beside.insert(spec.id, most);
            self.queue.pop_front();
            self.ahead.remove(spec);
            asked[place].start = Some(now);
            self.waits.iter_mut().for_each(|waits| waits.started(now, spec));
        }
    }

    /// What each estimator says of a job that comes now.
    fn ask(
        &mut self,
        now: Time,
        place: usize,
        jobs: &[(JobSpec, Demand)],
        queue: &LocalQueue,
        times: &mut [Duration],
    ) -> Each {
        let mut said: Each = Default::default();
        let job = &jobs[place].0;
        for by in 0..self.waits.len() {
            let before = Instant::now();
            let wait = self.waits[by].predict(&Arrival { now, job, queue, ahead: self.ahead });
            let execution = self.run_times[by].predict(now, job);
            times[by] += before.elapsed();
            // Who knows nothing believes the user, who is asked nothing here.
            said[by] = wait.filter(|_| execution < REQUESTED).map(|wait| (wait, execution));
        }
        for by in ANALYTIC {
            let before = Instant::now();
            let estimate = match NAMES[by] {
                "hanzich" => Estimate::Hanzich,
                "sdpn" => Estimate::Sdpn(Fairness::Proportional),
                _ => self.hybrid(place, jobs),
            };
            let predicted = forward::predict(&self.scenario(now, place, jobs, estimate), job.id);
            times[by] += before.elapsed();
            said[by] = predicted.ok().map(|predicted| (predicted.wait, predicted.execution));
            said[NAMES.len() + by - ANALYTIC.start] = said[by].map(|said| self.corrected(by, said));
        }
        *said.last_mut().expect("the Decisor is last") = self.decided(&said);
        said
    }

    /// The cluster as it is, with a job last in its queue.
    fn scenario(&self, now: Time, place: usize, jobs: &[(JobSpec, Demand)], estimate: Estimate) -> Scenario {
        let running = self.shared.running().map(|running| {
            let left = Span::from_micros(running.remaining(now).round() as i64);
            let nodes = running.nodes().collect();
            Placed { job: running.job, demand: running.demand, nodes, done: running.demand.run_time - left }
        });
        let waiting =
            self.queue.iter().copied().chain([place]).map(|place| (jobs[place].0.id, jobs[place].1));
        Scenario {
            now,
            cluster: self.cluster.clone(),
            usage: self.loads.iter().map(|load| load.at(now)).collect(),
            running: running.collect(),
            waiting: waiting.collect(),
            selection: Selection::Fcfs,
            estimate,
        }
    }

    /// Sd of each job that is there, by how many tasks are on its nodes: the mean of its program; before there is one that of all programs; else what
    /// Hanzich says.
    fn hybrid(&self, place: usize, jobs: &[(JobSpec, Demand)]) -> Estimate {
        let mean = |of: &dyn Fn(i32) -> bool, tasks: u32| {
            let known =
                self.slowdowns.iter().filter(|((program, beside), _)| of(*program) && *beside == tasks);
            let (sum, count) = known.fold((0.0, 0.0), |all, (_, one)| (all.0 + one.0, all.1 + one.1));
            (count > 0.0).then(|| sum / count)
        };
        let slowed = |job: JobId| {
            let program = jobs[job.0 as usize - 1].0.labels.executable;
            let by_tasks = (1..=NODE.0).map(|tasks| {
                let own = mean(&|other| other == program, tasks);
                own.or_else(|| mean(&|_| true, tasks)).unwrap_or(f64::from(tasks))
            });
            (job, by_tasks.collect::<Vec<f64>>())
        };
        let there = self.shared.running().map(|running| running.job);
        let waiting = self.queue.iter().copied().chain([place]).map(|place| jobs[place].0.id);
        Estimate::Hybrid(Arc::new(there.chain(waiting).map(slowed).collect()))
    }

    /// What an estimator says, straightened where its last predictions lie on a line; waits and run times each for themselves.
    fn corrected(&self, by: usize, said: Said) -> Said {
        let straight = |said: Span, of: fn(&Said) -> Span| {
            let last = self.ended.iter().rev().take(WINDOWS.0);
            let pairs: Vec<(Span, Span)> =
                last.filter_map(|asked| Some((of(&asked.said[by]?), of(&asked.happened?)))).collect();
            let factor = (pairs.len() == WINDOWS.0).then(|| correction_factor(&pairs)).flatten();
            factor.map_or(said, |factor| Span::from_micros((said.as_micros() as f64 / factor) as i64))
        };
        (straight(said.0, |said| said.0), straight(said.1, |said| said.1))
    }

    /// The wait of who was off least by waits of late, and the run time of who was by run times (§3.6); of equals the first.
    fn decided(&self, said: &Each) -> Option<Said> {
        let best = |of: fn(&Said) -> Span| {
            let error = |place: usize| -> i64 {
                let last = self.ended.iter().rev().take(WINDOWS.1);
                let off = |asked: &Asked| {
                    let happened = of(&asked.happened.expect("it has ended"));
                    // Who said nothing was off by all of it.
                    let said = asked.said[place].as_ref().map_or(Span::ZERO, of);
                    (said.as_micros() - happened.as_micros()).abs()
                };
                last.map(off).sum()
            };
            let candidates = (0..said.len() - 1).filter(|&place| said[place].is_some());
            candidates.min_by_key(|&place| error(place)).and_then(|place| said[place].as_ref().map(of))
        };
        Some((best(|said| said.0)?, best(|said| said.1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(nodes: u32, mpl: u32, share: f64) -> Vec<Asked> {
        let nas = Nas {
            jobs: 200,
            interarrival: Span::from_secs(4),
            flavor: Flavor::default(),
            nodes,
            failing: 0.0,
            users: 1,
        };
        let world = World::new(nodes, mpl, share, 1).unwrap();
        world.play(&jobs_of(&nas, 1), &mut [Duration::ZERO; NAMES.len()])
    }

    fn deviation(asked: &[Asked], metric: &str, estimator: &str) -> f64 {
        let lines = lines(asked);
        lines.iter().find(|line| line.0 == metric && line.1 == estimator).unwrap().2.mae_share
    }

    #[test]
    fn where_nothing_is_shared_whoever_plays_the_queue_forward_is_right() {
        let asked = asked(16, 1, 0.0);
        for estimator in ["sdpn", "hanzich", "hybrid", "decisor"] {
            for metric in ["wait", "execution", "turnaround"] {
                let off = deviation(&asked, metric, estimator);
                assert!(
                    off < if estimator == "decisor" { 0.05 } else { 1e-6 },
                    "{metric} by {estimator}: {off}"
                );
            }
        }
    }

    #[test]
    fn the_decisor_is_not_far_behind_the_best_where_nodes_are_shared() {
        let asked = asked(16, 4, LOCAL);
        let best =
            NAMES.map(|name| deviation(&asked, "turnaround", name)).into_iter().fold(f64::MAX, f64::min);
        let decisor = deviation(&asked, "turnaround", "decisor");
        assert!(decisor < 1.5 * best, "{decisor} against {best}");
        assert!(deviation(&asked, "execution", "hanzich") > 0.0, "nodes are shared");
    }
}
