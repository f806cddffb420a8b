//! `stealgrid bench coallocation`: a job over several clusters by each rule, and what it takes to find out where.

mod mip;

use std::time::{Duration, Instant};

use brokers::coallocation::{Cluster, Job, Solution, Variant, best, mostly_in_one, super_cluster};
use clap::Args;
use experiments::exit;
use scheduler::draw::Draw;

use mip::{Found, Limits};

/// Powers of nodes relative to the most powerful one; arbitrary, three generations of machines.
const POWERS: [f64; 3] = [1.0, 0.8, 0.6];
/// What local users take of a processor (Lérida, *M-CISNE*, §4.3.3).
const LOCAL: f64 = 0.15;
/// The link of a cluster, in Mbit/s: loads are relative to it.
const LINK: f64 = 1000.0;
/// The most of a link that others use.
const CONSUMED: f64 = 0.3;
/// T^p and T^c of the job in seconds: two thirds of its time it computes.
const TIMES: (f64, f64) = (60.0, 30.0);
/// The stream of random numbers of instances.
const STREAM: u64 = 12;

/// Spread a job over clusters by each rule: how long it would run, how loaded the most loaded link is, and how long it takes to find out.
///
/// Rules are the three variants of the mixed-integer program of M-CISNE, each by the exact dynamic program of brokers and by the
/// solver microlp within --limit, and two that look at no link: a job is spread if one cluster takes 85 % of it, and all clusters are
/// one. Clusters have as many nodes each, of three powers, with local users on a share of them; others use up to 30 % of each link.
/// Each line is a mean over instances, as comma-separated values. `time` and `load` are of instances with a solution. Times of
/// solvers depend on the machine and on what else it does. Build with --release.
///
/// Exit codes: 0 done, 1 the solver failed, 2 usage, 5 a solution that the solver calls proved is not the exact one.
#[derive(Clone, Debug, Args)]
pub(super) struct CoallocationBenchArgs {
    /// Clusters, with commas between
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', default_values_t = [2, 8, 16], value_parser = clap::value_parser!(u32).range(1..=1000))]
    clusters: Vec<u32>,

    /// Nodes of each
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    nodes: u32,

    /// Tasks of the job
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    tasks: u32,

    /// What each task sends, in percent of the link of a cluster, with commas between
    #[arg(long, value_name = "P,P,...", value_delimiter = ',', default_values_t = [25, 50, 75], value_parser = clap::value_parser!(u32).range(0..=1000))]
    bandwidth: Vec<u32>,

    /// Nodes with local users, in percent, with commas between
    #[arg(long, value_name = "P,P,...", value_delimiter = ',', default_values_t = [0, 75], value_parser = clap::value_parser!(u32).range(0..=100))]
    local: Vec<u32>,

    /// Instances of each
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    instances: u32,

    /// Seconds of the solver for each solution; the best so far is taken then
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    limit: f64,

    /// Seed of the instances
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub(super) fn run(args: &CoallocationBenchArgs) -> anyhow::Result<u8> {
    let limit = Duration::try_from_secs_f64(args.limit)
        .map_err(|error| anyhow::anyhow!("--limit {}: {error}; write seconds, as in 2", args.limit))?;
    let limits = Limits { time: Some(limit), nodes: None };
    println!(
        "clusters,nodes,tasks,bandwidth_percent,local_percent,rule,solver,instances,solved,proved,time_s,load,saturated,ms"
    );
    let mut agrees = true;
    for &clusters in &args.clusters {
        for &bandwidth in &args.bandwidth {
            for &local in &args.local {
                let drawn: Vec<(Job, Vec<Cluster>)> = (0..args.instances)
                    .map(|number| args.instance(clusters, bandwidth, local, number))
                    .collect();
                let beginning = format!("{clusters},{},{},{bandwidth},{local}", args.nodes, args.tasks);
                for (variant, name) in VARIANTS {
                    let mut exact = Summary::default();
                    let mut solver = Summary::default();
                    for (job, clusters) in &drawn {
                        let expected =
                            exact.of(|| best(variant, job, clusters).map(|found| (found, true)))?;
                        let mut is_proved = false;
                        let found = solver.of(|| {
                            let (found, proved) = match mip::solve(variant, job, clusters, limits)? {
                                Found::Solution { solution, is_proved } => (Some(solution), is_proved),
                                Found::Infeasible => (None, true),
                                Found::Nothing => (None, false),
                            };
                            is_proved = proved;
                            Ok::<_, mip::MipError>((found, proved))
                        })?;
                        agrees &= !is_proved || agree(variant, expected.as_ref(), found.as_ref());
                    }
                    println!("{beginning},{name},exact,{}", exact.line());
                    println!("{beginning},{name},microlp,{}", solver.line());
                }
                let rules: [(&str, Rule); 2] =
                    [("85-percent", mostly_in_one), ("super-cluster", super_cluster)];
                for (name, rule) in rules {
                    let mut summary = Summary::default();
                    for (job, clusters) in &drawn {
                        summary.of(|| rule(job, clusters).map(|found| (found, true)))?;
                    }
                    println!("{beginning},{name},rule,{}", summary.line());
                }
            }
        }
    }
    Ok(if agrees { exit::DONE } else { exit::OUT_OF_TOLERANCE })
}

type Rule = fn(&Job, &[Cluster]) -> Result<Option<Solution>, brokers::coallocation::CoallocationError>;

const VARIANTS: [(Variant, &str); 3] = [
    (Variant::Optimal, "optimal"),
    (Variant::NonSaturated, "non-saturated"),
    (Variant::NonOptimal, "non-optimal"),
];

/// How far two times may be apart that are the same: the solver calculates in floating point.
const TOLERANCE: f64 = 1e-6;

/// Whether a solution that is proved is the exact one, or as good. Of any solution only that there is one is known.
fn agree(variant: Variant, exact: Option<&Solution>, found: Option<&Solution>) -> bool {
    match (exact, found) {
        (Some(exact), Some(found)) => {
            variant == Variant::NonOptimal || (exact.time - found.time).abs() <= TOLERANCE * exact.time
        }
        (exact, found) => exact.is_some() == found.is_some(),
    }
}

impl CoallocationBenchArgs {
    /// A job and clusters: the same nodes, and the same local users at the same share of them, whatever the job sends.
    fn instance(&self, clusters: u32, bandwidth: u32, local: u32, number: u32) -> (Job, Vec<Cluster>) {
        let mut draw = Draw::of_stream(self.seed.wrapping_add(u64::from(number)), STREAM);
        let mut cluster = || {
            let consumed = draw.between(0.0, CONSUMED * LINK);
            let mut power = || {
                let power = POWERS[draw.below(POWERS.len())];
                if draw.uniform() < f64::from(local) / 100.0 { power * (1.0 - LOCAL) } else { power }
            };
            Cluster { powers: (0..self.nodes).map(|_| power()).collect(), link: LINK, consumed }
        };
        let clusters = (0..clusters).map(|_| cluster()).collect();
        let (computing, communicating) = TIMES;
        let bandwidth = LINK * f64::from(bandwidth) / 100.0;
        (Job { tasks: self.tasks as usize, bandwidth, computing, communicating }, clusters)
    }
}

/// What a rule found, over instances.
#[derive(Clone, Copy, Debug, Default)]
struct Summary {
    instances: u32,
    solved: u32,
    proved: u32,
    saturated: u32,
    time: f64,
    load: f64,
    spent: Duration,
}

impl Summary {
    /// Asks for one more.
    fn of<E>(
        &mut self,
        solve: impl FnOnce() -> Result<(Option<Solution>, bool), E>,
    ) -> Result<Option<Solution>, E> {
        let begun = Instant::now();
        let (found, is_proved) = solve()?;
        self.spent += begun.elapsed();
        self.instances += 1;
        self.proved += u32::from(is_proved);
        if let Some(found) = &found {
            self.solved += 1;
            self.time += found.time;
            self.load += found.communication;
            self.saturated += u32::from(found.communication > 1.0 + TOLERANCE);
        }
        Ok(found)
    }

    fn line(&self) -> String {
        let mean = |sum: f64| match self.solved {
            0 => String::new(),
            solved => format!("{:.3}", sum / f64::from(solved)),
        };
        let spent = self.spent.as_secs_f64() * 1e3 / f64::from(self.instances.max(1));
        let Summary { instances, solved, proved, saturated, .. } = self;
        let (time, load) = (mean(self.time), mean(self.load));
        format!("{instances},{solved},{proved},{time},{load},{saturated},{spent:.3}")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CoallocationBenchArgs,
    }

    #[test]
    fn the_same_clusters_are_asked_whatever_the_job_sends() {
        let args = Line::try_parse_from(["bench"]).unwrap().args;
        let (quiet, clusters) = args.instance(4, 25, 75, 1);
        let (loud, same) = args.instance(4, 75, 75, 1);
        assert_eq!(clusters, same);
        assert_eq!((quiet.bandwidth, loud.bandwidth), (250.0, 750.0));
        assert_ne!(clusters, args.instance(4, 25, 75, 2).1);
        let (_, idle) = args.instance(4, 25, 0, 1);
        let slower = |(one, other): (&Cluster, &Cluster)| {
            one.consumed == other.consumed
                && one.powers.iter().zip(&other.powers).all(|(one, other)| one <= other)
        };
        assert!(clusters.iter().zip(&idle).all(slower) && clusters != idle);
    }

    #[test]
    fn mutant_a_proved_solution_that_is_not_the_best_shows() {
        let args = Line::try_parse_from(["bench"]).unwrap().args;
        let (job, clusters) = args.instance(4, 75, 0, 1);
        let exact = best(Variant::Optimal, &job, &clusters).unwrap();
        let worse = super_cluster(&job, &clusters).unwrap();
        assert!(agree(Variant::Optimal, exact.as_ref(), exact.as_ref()));
        assert!(!agree(Variant::Optimal, exact.as_ref(), worse.as_ref()));
        assert!(!agree(Variant::NonOptimal, exact.as_ref(), None));
    }
}
