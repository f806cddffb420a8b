//! `stealgrid swarm`: very many small grids with faults, each drawn from one number.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Args;
use experiments::exit;
use serde::Serialize;
use simulator::faults::{Broken, Tally};
use simulator::swarm::{self, Part, Parts, Reduction, Trial};

/// Runs spent on making one failure small. Arbitrary; a run takes milliseconds.
const SHRINK_RUNS: usize = 600;

/// After so many failures no more seeds are begun.
const FAILURES_MAX: usize = 20;

/// Time between lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Search for a fault schedule under which the protocol breaks a promise.
///
/// Each seed draws a grid, a workload, a strategy, switches, delays and faults: crashes in the middle of a step, restarts,
/// pauses, partitions, wrong clocks, slow disks, lost and doubled messages; sites that die for good, leave and join,
/// and jobs that others take over. What must hold is checked after each step.
/// Then faults stop, and every job must end. A failure is one line that repeats it.
///
/// Exit codes: 0 no check failed, 1 unexpected, 2 usage, 5 a check failed.
#[derive(Clone, Debug, Args)]
pub struct SwarmArgs {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,

    /// Threads; all cores if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,

    /// Begin no more seeds after so many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,

    /// Run this seed alone
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from", "jobs", "seconds"])]
    seed: Option<u64>,

    /// Draw this in every seed, not in its share of them
    #[arg(long, value_name = "PART", value_parser = part)]
    with: Option<Part>,

    /// What to keep of what the seed drew, as a failure prints it
    #[arg(long, value_name = "LISTS", requires = "seed")]
    shrunk: Option<Reduction>,

    /// Print the scenario and each event
    #[arg(long, requires = "seed")]
    trace: bool,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// A seed that failed, made small.
#[derive(Clone, Debug, Serialize)]
struct Failure {
    seed: u64,
    check: &'static str,
    what: String,
    repeat: String,
}

/// What the command prints.
#[derive(Clone, Debug, Serialize)]
struct Summary {
    seeds: u64,
    first: u64,
    seconds: f64,
    state_machine_hours: f64,
    #[serde(flatten)]
    tally: Tally,
    failures: Vec<Failure>,
}

/// Runs the command.
///
/// # Errors
/// None today.
pub fn command(args: &SwarmArgs) -> anyhow::Result<u8> {
    // A failed assertion is a finding like others; it is reported with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let summary = match args.seed {
        Some(seed) => match one(seed, args) {
            Some(summary) => summary,
            None => {
                eprintln!(
                    "error: --shrunk leaves no job of seed {seed}, so nothing would be tried; give it as the failure \
                     printed it"
                );
                return Ok(exit::USAGE);
            }
        },
        None => many(args),
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    } else {
        for failure in &summary.failures {
            println!("{}  # {}", failure.repeat, failure.what);
        }
        print!("{}", summary.text());
    }
    Ok(if summary.failures.is_empty() { exit::DONE } else { exit::OUT_OF_TOLERANCE })
}

/// Runs one seed; none if nothing of it is left to run.
fn one(seed: u64, args: &SwarmArgs) -> Option<Summary> {
    let begun = Instant::now();
    let reduction = args.shrunk.clone().unwrap_or_default();
    let trial = args.trial();
    let scenario = reduction.apply(swarm::draw(seed, trial.parts));
    if scenario.jobs.is_empty() {
        return None;
    }
    if args.trace {
        println!("{} with {:?}", scenario.strategy, scenario.options);
        println!("sizes {:?}, {:?}", scenario.grid.sizes(), scenario.network);
        for job in &scenario.jobs {
            println!("{job:?}");
        }
        for fault in &scenario.faults {
            println!("{fault:?}");
        }
        if let Some(healed) = scenario.healed {
            println!("healed at {healed}");
        }
    }
    let result = swarm::run_scenario(&scenario, trial, &mut |event| {
        if args.trace {
            println!("{} site {} {:?}", event.at, event.site, event.kind);
        }
    });
    let mut summary = Summary::new(seed);
    summary.seeds = 1;
    match result {
        Ok(tally) => summary.tally = tally,
        Err(broken) if args.shrunk.is_some() => {
            summary.failures.push(Failure::new(seed, trial.parts, &reduction, &broken))
        }
        Err(broken) => summary.failures.push(shrunk(seed, trial, broken)),
    }
    Some(summary.end(begun))
}

fn many(args: &SwarmArgs) -> Summary {
    let begun = Instant::now();
    let threads = match args.jobs {
        Some(jobs) => jobs as usize,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let trial = args.trial();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    let mut summary = Summary::new(args.from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= args.seeds {
                        return;
                    }
                    let seed = args.from.wrapping_add(place);
                    let result = swarm::run(seed, &Reduction::default(), trial);
                    if sender.send(result.map_err(|broken| shrunk(seed, trial, broken))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut last_line = begun;
        for result in &results {
            summary.seeds += 1;
            match result {
                Ok(tally) => summary.tally.add(&tally),
                Err(failure) => {
                    eprintln!("{}  # {}", failure.repeat, failure.what);
                    summary.failures.push(failure);
                }
            }
            let late = args.seconds.is_some_and(|seconds| begun.elapsed() >= Duration::from_secs(seconds));
            if late || summary.failures.len() >= FAILURES_MAX {
                stop.store(true, Ordering::Relaxed);
            }
            let every = if std::io::stderr().is_terminal() { LINE_EVERY / 10 } else { LINE_EVERY };
            if last_line.elapsed() >= every {
                last_line = Instant::now();
                let left = experiments::terminal::left(begun.elapsed(), summary.seeds, args.seeds);
                eprintln!(
                    "{} of {} seeds, {} failed, {left}",
                    summary.seeds,
                    args.seeds,
                    summary.failures.len()
                );
            }
        }
    });
    summary.failures.sort_by_key(|failure| failure.seed);
    summary.end(begun)
}

fn shrunk(seed: u64, trial: Trial, broken: Broken) -> Failure {
    let (reduction, broken) = swarm::shrink(seed, broken, trial, SHRINK_RUNS);
    Failure::new(seed, trial.parts, &reduction, &broken)
}

fn part(name: &str) -> Result<Part, String> {
    Part::ALL.into_iter().find(|part| part.name() == name).ok_or_else(|| {
        let names: Vec<&str> = Part::ALL.into_iter().map(Part::name).collect();
        format!("not one of {}", names.join(", "))
    })
}

impl SwarmArgs {
    fn trial(&self) -> Trial {
        Trial { parts: self.with.map_or(Parts::Usual, Parts::With), ..Trial::default() }
    }
}

impl Failure {
    fn new(seed: u64, parts: Parts, reduction: &Reduction, broken: &Broken) -> Failure {
        let with = match parts {
            Parts::With(part) => format!(" --with {}", part.name()),
            Parts::Usual | Parts::None => String::new(),
        };
        Failure {
            seed,
            check: broken.check.name(),
            what: broken.to_string(),
            repeat: format!("stealgrid swarm --seed {seed}{with} --shrunk '{reduction}'"),
        }
    }
}

impl Summary {
    fn new(first: u64) -> Summary {
        Summary {
            seeds: 0,
            first,
            seconds: 0.0,
            state_machine_hours: 0.0,
            tally: Tally::default(),
            failures: Vec::new(),
        }
    }

    fn end(mut self, begun: Instant) -> Summary {
        self.seconds = begun.elapsed().as_secs_f64();
        self.state_machine_hours = self.tally.site_time_us as f64 / 3.6e9;
        self
    }

    fn text(&self) -> String {
        let Tally {
            calls,
            events,
            messages,
            messages_lost,
            crashes,
            torn,
            restarts,
            deaths,
            left,
            joined,
            taken_over,
            adopted,
            ran_twice,
            orphaned,
            interrupted,
            moved,
            parts,
            stopped,
            jobs,
            ..
        } = self.tally;
        format!(
            "seeds                {} from {}, {} failed, in {:.1} s\n\
             state machine hours  {:.1}\n\
             calls, events        {calls}, {events}\n\
             messages             {messages}, {messages_lost} lost\n\
             crashes              {crashes}, {torn} in the middle of a step; {restarts} restarts\n\
             sites                {deaths} died for good, {left} left, {joined} joined late\n\
             take-overs           {taken_over}, {adopted} by the operator; {ran_twice} jobs ended twice\n\
             jobs                 {jobs}, {moved} times moved, {interrupted} times interrupted, \
             {orphaned} too wide for who was left\n\
             parts of jobs        {parts} started, {stopped} of them stopped\n",
            self.seeds,
            self.first,
            self.failures.len(),
            self.seconds,
            self.state_machine_hours,
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        swarm: SwarmArgs,
    }

    #[test]
    fn a_printed_failure_can_be_typed() {
        let reduction: Reduction = "faults=0,2;jobs=1;sites=1,3;plain=network".parse().expect("a reduction");
        let broken =
            Broken { check: simulator::faults::Check::Lost, at: scheduler::Time::ZERO, what: String::new() };
        for parts in [Parts::Usual, Parts::With(Part::Liars)] {
            let line = Failure::new(7, parts, &reduction, &broken).repeat.replace('\'', "");
            let args = Line::parse_from(line.split(' ').skip(1)).swarm;
            assert_eq!(args.trial().parts, parts);
            assert_eq!((args.seed, args.shrunk), (Some(7), Some(reduction.clone())));
        }
    }

    #[test]
    fn some_seeds_are_counted_once_each() {
        let args = Line::parse_from(["swarm", "--seeds", "6", "--from", "3", "--jobs", "2"]).swarm;
        let summary = many(&args);
        assert_eq!((summary.seeds, summary.first), (6, 3));
        assert!(summary.failures.is_empty(), "{:?}", summary.failures);
        assert!(summary.state_machine_hours > 0.0);
    }
}
