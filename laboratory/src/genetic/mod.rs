//! `stealgrid genetic`: batches of a log allocated to sites off-line, by genetic algorithms and by what they are compared
//! with.
//!
//! What is allocated how is in [`brokers::genetic`]. Here are files of options (`options`), the batches of logs (`batches`),
//! the names of Table I (`algorithms`), all cores (`allocate`), what is written and printed (`convergence`, `fronts`, `table`),
//! and the same read again as rows (`stored`) and for a page (`shown`).

mod algorithms;
mod allocate;
mod batches;
mod convergence;
mod fronts;
mod options;
mod progress;
pub mod shown;
pub mod stored;
mod table;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Context as _;
use brokers::genetic::{
    Duplicates, Elements, FrontBegin, FrontOptions, Infeasible, MaskOf, Obx, Options, Per, Queues, Reading,
    RowOrder, Scaling, Stays,
};
use clap::Args;
use experiments::exit;
use experiments::experiment::flags::sizes;
use experiments::folder;
use experiments::interrupt::Interrupt;
use experiments::lock::lock;
use experiments::terminal::{command_line, say};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use report::quantity::grouped;
use scheduler::strategy::Completion;
use workload::prepare::TooWide;

use algorithms::{Algorithm, Method};
use allocate::{Allocated, Entry, Setting, allocate};
use batches::TimedBatch;
use convergence::Point;
use fronts::FrontEntry;
use progress::Progress;

/// Allocate batches of a log to sites off-line: genetic algorithms for four criteria, greedy strategies and baselines.
///
/// All jobs of a batch are there at time 0 and take the time that they requested. Each site runs EASY over its row of jobs,
/// in the order of the row. Writes rows.json (the rows and criteria of each batch and algorithm), table.csv, convergence.csv,
/// jobs.csv, times.csv, options.toml and command.txt; `stealgrid export` and `stealgrid report` read the folder. The same seed
/// gives the same bytes on any number of threads, but for times.csv. Ctrl-C keeps the best so far.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input or too few jobs, or --out has results or another one writes there, 4
/// stopped.
#[derive(Clone, Debug, Args)]
pub struct GeneticArgs {
    /// Processors of each site, as in 2,8
    #[arg(long, value_name = "P,P,…", value_parser = sizes, default_value = "4,4,4,4,8,8,8,8,16,16,32,32")]
    // In full, so that clap takes it for one value.
    sites: std::vec::Vec<u32>,

    /// Workload log: SWF, GWF, Batsim JSON or sacct, plain, gzip or zstd. Several, each with --trace before it, are laid over
    /// each other: all days, week by week from the first full one of each, by the clock of GMT-7
    #[arg(long, value_name = "FILE", required_unless_present = "options")]
    trace: Vec<PathBuf>,

    /// TOML with what is not typed: flags without their dashes, such as size = 200, or trace = ["a.swf", "b.swf"];
    /// options.toml of an earlier run is one
    #[arg(long, value_name = "FILE")]
    options: Option<PathBuf>,

    /// Batches, one after the other in order of submission
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batches: u32,

    /// Jobs of a batch
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    size: u32,

    /// What allocates: a1 to a4 greedily (Min_CT, Min_ST, Min_TA, Min_WT); b1 to b4 genetic, for makespan, response ratio,
    /// turnaround, wait; c1 to c3 genetic, for all four (insert, swap, switch); spt and laf, as a1 with jobs in shortest and
    /// in largest area first order; random, the best of many; nsga2, not in the default: a front, in fronts.json, and of it the
    /// least weighted average
    #[arg(long, value_name = "NAME,NAME,…", value_delimiter = ',', value_parser = algorithms::parse, default_value = algorithms::DEFAULT)]
    algorithms: Vec<Algorithm>,

    /// Directory for results, made if missing
    #[arg(long, value_name = "DIR", default_value = "out/genetic")]
    out: PathBuf,

    /// Replace results of an earlier run there
    #[arg(long)]
    replace: bool,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,

    /// T_p: individuals of a population
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=100_000), help_heading = "Genetic algorithm")]
    population: u32,

    /// P_c: probability that two parents are crossed
    #[arg(long, value_name = "P", default_value_t = 0.9, value_parser = probability, help_heading = "Genetic algorithm")]
    crossover: f64,

    /// P_m: probability of a mutation
    #[arg(long, value_name = "P", default_value_t = 0.01, value_parser = probability, help_heading = "Genetic algorithm")]
    mutation: f64,

    /// Individuals of a tournament
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Genetic algorithm")]
    tournament: u32,

    /// Generations in a row without a better one after which it stops
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Genetic algorithm")]
    stagnation: u32,

    /// Generations after which it stops anyway
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Genetic algorithm")]
    generations_max: u32,

    /// Individuals that random search draws [default: as many as the genetic algorithm that took most on the batch; 10000
    /// without one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Genetic algorithm")]
    chances: Option<u64>,

    /// What nsga2 begins with: greedy: the population that all begin with, four of it replaced by the rows of a1, a2, spt and
    /// laf; random: rows of its own in random orders; shared: the population that all begin with
    #[arg(long, value_name = "RULE", default_value = "greedy", value_parser = |text: &str| FrontBegin::parse("beginning", text), help_heading = "Fronts")]
    front_begin: FrontBegin,

    /// Individuals of nsga2 with the criteria of another one: replace: they stay behind all others, and no child is a copy of a
    /// parent; keep: they count as any other
    #[arg(long, value_name = "RULE", default_value = "replace", value_parser = |text: &str| Duplicates::parse("rule", text), help_heading = "Fronts")]
    front_duplicates: Duplicates,

    /// P_m of nsga2 [default: one over the number of jobs, for each job of a child]
    #[arg(long, value_name = "P", value_parser = probability, help_heading = "Fronts")]
    front_mutation: Option<f64>,

    /// The maximum that a criterion is divided by: of the initial population, of the generation's population, or running:
    /// of all so far
    #[arg(long, value_name = "RULE", default_value = "initial", value_parser = |text: &str| Scaling::parse("scaling", text), help_heading = "Where the published text is open")]
    scaling: Scaling,

    /// Which criterion weighs most: R2 the worst, R1 the best (as printed), R3 the makespan always
    #[arg(long, value_name = "RULE", default_value = "R2", value_parser = |text: &str| Reading::parse("reading", text), help_heading = "Where the published text is open")]
    reading: Reading,

    /// Order of rows that are drawn: arrival, random
    #[arg(long, value_name = "RULE", default_value = "arrival", value_parser = |text: &str| RowOrder::parse("order", text), help_heading = "Where the published text is open")]
    initial_order: RowOrder,

    /// What a bit of the mask of the crossover keeps: a column of all rows, or a cell
    #[arg(long, value_name = "RULE", default_value = "column", value_parser = |text: &str| MaskOf::parse("mask", text), help_heading = "Where the published text is open")]
    mask: MaskOf,

    /// Where missing jobs go in the crossover: O1 into vacant columns of their row, O2 behind it, O3 into vacant places of all
    /// rows with repair
    #[arg(long, value_name = "RULE", default_value = "O1", value_parser = |text: &str| Obx::parse("reading of OBX", text), help_heading = "Where the published text is open")]
    obx: Obx,

    /// Two elements that a switch exchanges in one row: adjacent, random
    #[arg(long, value_name = "RULE", default_value = "adjacent", value_parser = |text: &str| Elements::parse("switch", text), help_heading = "Where the published text is open")]
    switch: Elements,

    /// Rows of a mutation: 1Q one, 2Q two, mixed
    #[arg(long, value_name = "RULE", default_value = "mixed", value_parser = |text: &str| Queues::parse("queues", text), help_heading = "Where the published text is open")]
    queues: Queues,

    /// A mutation that puts a job at a site too small: redraw, repair, penalty
    #[arg(long, value_name = "RULE", default_value = "redraw", value_parser = |text: &str| Infeasible::parse("rule", text), help_heading = "Where the published text is open")]
    infeasible: Infeasible,

    /// What P_m is the probability of: one mutation of a child, or as many as it has jobs (gene)
    #[arg(long, value_name = "RULE", default_value = "child", value_parser = |text: &str| Per::parse("rule", text), help_heading = "Where the published text is open")]
    mutation_per: Per,

    /// The best of a generation that stay in the next
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Where the published text is open")]
    elitism: u32,

    /// What Min_CT goes by: site-before, site-after: when the site has completed all, without or with the job; job-after: when
    /// the job ends
    #[arg(long, value_name = "RULE", default_value = "site-before", value_parser = |text: &str| Completion::parse("completion", text), help_heading = "Where the published text is open")]
    completion: Completion,

    /// Min_TA and Min_WT take the mean over the jobs of the site, or the job alone: site, job
    #[arg(long, value_name = "RULE", default_value = "site", value_parser = |text: &str| Stays::parse("rule", text), help_heading = "Where the published text is open")]
    stays: Stays,

    /// Jobs wider than the widest site: drop, refuse
    #[arg(
        long,
        value_name = "RULE",
        default_value = "drop",
        help_heading = "Where the published text is open"
    )]
    too_wide: TooWide,
}

fn probability(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| "write a number from 0 to 1".to_string())
}

impl GeneticArgs {
    fn options(&self) -> Options {
        Options {
            population: self.population as usize,
            crossover: self.crossover,
            mutation: self.mutation,
            tournament: self.tournament as usize,
            stagnation: self.stagnation,
            generations_max: self.generations_max,
            elitism: self.elitism as usize,
            scaling: self.scaling,
            reading: self.reading,
            initial_order: self.initial_order,
            mask: self.mask,
            obx: self.obx,
            queues: self.queues,
            switch: self.switch,
            infeasible: self.infeasible,
            mutation_per: self.mutation_per,
            front: FrontOptions {
                begin: self.front_begin,
                duplicates: self.front_duplicates,
                mutation: self.front_mutation,
            },
            ..Options::default()
        }
    }

    /// What is wrong with all of it together.
    fn contradiction(&self) -> Option<String> {
        let mut names: Vec<&Method> = Vec::new();
        for Algorithm { name, method } in &self.algorithms {
            if names.contains(&method) {
                return Some(format!("--algorithms: {name} is there twice; name it once"));
            }
            names.push(method);
        }
        if self.tournament > self.population {
            return Some(format!(
                "--tournament: {} is more than the population of {}; give less",
                self.tournament, self.population
            ));
        }
        if self.elitism >= self.population {
            return Some(format!(
                "--elitism: {} would leave no place in a population of {}; give less",
                self.elitism, self.population
            ));
        }
        self.sites.contains(&0).then(|| "--sites: a site has no processors; give it at least 1".to_string())
    }
}

/// Runs the command.
///
/// # Errors
/// If results cannot be written.
pub fn command(typed: &GeneticArgs) -> anyhow::Result<u8> {
    let (args, written) = match options::complete(typed.options.as_deref()) {
        Ok(complete) => complete,
        Err(error) => {
            eprintln!("error: failed to {error:#}");
            return Ok(exit::INPUT);
        }
    };
    let args = &args;
    if let Some(wrong) = args.contradiction() {
        eprintln!("error: failed to understand {wrong}");
        return Ok(exit::USAGE);
    }
    if args.out.join(ROWS).exists() && !args.replace {
        eprintln!("error: {} has results; give --out another directory, or --replace", args.out.display());
        return Ok(exit::INPUT);
    }
    if !is_ours(&args.out)
        && let Some(refused) = folder::refused(&args.out)
    {
        eprintln!("error: {refused}");
        return Ok(exit::INPUT);
    }
    let interrupt = Interrupt::on_signals()?;
    // Sites ascend by size, and of one size in the order typed.
    let mut ascending: Vec<usize> = (0..args.sites.len()).collect();
    ascending.sort_by_key(|&site| args.sites[site]);
    let mut places = vec![0; ascending.len()];
    ascending.iter().enumerate().for_each(|(place, &site)| places[site] = place);
    let widths: Vec<u32> = ascending.iter().map(|&site| args.sites[site]).collect();
    let (count, size) = (args.batches as usize, args.size as usize);
    let cut = match batches::read(&args.trace, &widths, args.too_wide, count, size) {
        Ok(cut) => cut,
        Err(error) => {
            eprintln!("error: failed to {error:#}");
            return Ok(exit::INPUT);
        }
    };
    eprintln!(
        "{} jobs read, {} wider than every site and {} unusable left out; {count} batches of {size}",
        grouped(cut.read),
        grouped(cut.too_wide),
        grouped(cut.unusable),
    );
    // Only now: of a log that cannot be read nothing is left.
    folder::make(&args.out)?;
    let Some(_lock) = lock(&args.out.join(LOCKED))? else {
        let out = args.out.display();
        eprintln!(
            "error: another stealgrid genetic writes into {out}; wait for it, or give --out another directory"
        );
        return Ok(exit::INPUT);
    };
    if args.out.join(ROWS).exists() && args.out.join(FRONTS).exists() {
        // Those of the run that is replaced: this one may have none.
        std::fs::remove_file(args.out.join(FRONTS)).context("failed to remove earlier fronts")?;
    }
    write(&args.out, OPTIONS, written.as_bytes())?;
    write(&args.out, JOBS, batches::jobs_csv(&cut.batches).as_bytes())?;
    let entries = run(args, &cut.batches, &places, &interrupt)?;
    let table = table::Summary::of(&args.algorithms, &entries);
    write(&args.out, table::FILE, table.csv().as_bytes())?;
    write(&args.out, COMMAND, format!("{}\n", command_line()).as_bytes())?;
    say(&table.text())?;
    let complete =
        entries.len() == count * args.algorithms.len() && !entries.iter().any(|entry| entry.stopped);
    Ok(if complete { exit::DONE } else { exit::INCOMPLETE })
}

/// Whether a folder has results of this command, or those of a run that was cut off.
fn is_ours(out: &Path) -> bool {
    out.join(OPTIONS).exists() && [ROWS, JOBS].iter().any(|name| out.join(name).exists())
        || out.join(format!("{LOCKED}.lock")).exists()
}

/// What is locked while results are written.
const LOCKED: &str = "genetic";
const ROWS: &str = "rows.json";
const FRONTS: &str = "fronts.json";
const CONVERGENCE: &str = "convergence.csv";
const JOBS: &str = "jobs.csv";
const TIMES: &str = "times.csv";
const OPTIONS: &str = "options.toml";
const COMMAND: &str = "command.txt";

/// All batches on all cores. What is done of them is written as it comes.
fn run(
    args: &GeneticArgs,
    batches: &[TimedBatch],
    places: &[usize],
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Entry>> {
    let threads = args
        .jobs
        .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |jobs| jobs as usize);
    let options = args.options();
    let setting = Setting {
        algorithms: &args.algorithms,
        options: &options,
        completion: args.completion,
        stays: args.stays,
        chances: args.chances,
        seed: args.seed,
        places,
        // A batch for each thread is less trouble; fewer batches leave threads for the individuals of each.
        spread: batches.len() < threads,
    };
    let progress = Progress::new(batches.len(), args.algorithms.len(), threads.min(batches.len()));
    let watch = |batch: usize, algorithm: &str, step: Option<&brokers::genetic::Step<'_>>| {
        progress.tell(batch, algorithm, step);
        if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let all: Mutex<All> = Mutex::default();
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("failed to start threads")?;
    pool.install(|| {
        batches.par_iter().try_for_each(|batch| -> anyhow::Result<()> {
            if interrupt.is_set() {
                return Ok(());
            }
            let allocated = allocate(batch, &setting, &watch);
            let mut all = all.lock().expect("nobody panics who holds it");
            all.add(allocated);
            all.write(&args.out)
        })
    })?;
    progress.finish();
    Ok(all.into_inner().expect("nobody panics who holds it").entries)
}

/// What is done of all batches.
#[derive(Default)]
struct All {
    entries: Vec<Entry>,
    fronts: Vec<FrontEntry>,
    points: Vec<Point>,
    /// Batch, algorithm, and how long it took.
    times: Vec<(usize, String, Duration)>,
}

impl All {
    fn add(&mut self, allocated: Allocated) {
        let Allocated { entries, times, front, points } = allocated;
        let timed =
            entries.iter().zip(times).map(|(entry, time)| (entry.batch, entry.algorithm.clone(), time));
        self.times.extend(timed);
        self.times.sort_by_key(|time| time.0);
        self.entries.extend(entries);
        self.entries.sort_by_key(|entry| entry.batch);
        self.fronts.extend(front);
        self.fronts.sort_by_key(|front| front.batch);
        self.points.extend(points);
    }

    fn write(&mut self, out: &Path) -> anyhow::Result<()> {
        write(out, ROWS, &lines(&self.entries)?)?;
        write(out, CONVERGENCE, convergence::csv(&mut self.points).as_bytes())?;
        let line = |(batch, algorithm, time): &(usize, String, Duration)| {
            format!("{batch},{algorithm},{:.6}\n", time.as_secs_f64())
        };
        let times = self.times.iter().map(line).collect::<String>();
        write(out, TIMES, format!("batch,algorithm,wall_s\n{times}").as_bytes())?;
        if self.fronts.is_empty() { Ok(()) } else { write(out, FRONTS, &lines(&self.fronts)?) }
    }
}

/// A list of objects, one a line.
fn lines<T: serde::Serialize>(entries: &[T]) -> anyhow::Result<Vec<u8>> {
    let lines: Vec<String> = entries.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    Ok(format!("[\n{}\n]\n", lines.join(",\n")).into_bytes())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let path = folder.join(name);
    outputs::replace::write(&path, |file| file.write_all(bytes))
        .with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: GeneticArgs,
    }

    fn parse(flags: &[&str]) -> GeneticArgs {
        Line::try_parse_from([&["genetic", "--trace", "t.swf"], flags].concat()).unwrap().args
    }

    #[test]
    fn what_is_not_typed_is_the_default_of_the_library() {
        let args = parse(&[]);
        assert_eq!(args.options(), Options::default());
        assert_eq!((args.completion, args.stays), (Completion::default(), Stays::default()));
        assert_eq!(args.algorithms.len(), 14);
        assert_eq!(args.contradiction(), None);
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_what_to_do() {
        for (flags, expected) in [
            (&["--algorithms", "a1,c1,A1"][..], "A1 is there twice"),
            (&["--tournament", "200"], "200 is more than the population of 100"),
            (&["--elitism", "4", "--population", "4"], "would leave no place"),
            (&["--sites", "4,0"], "a site has no processors"),
        ] {
            let wrong = parse(flags).contradiction().unwrap();
            assert!(wrong.contains(expected), "{wrong}");
        }
        for flags in [
            ["--scaling", "initail"],
            ["--mutation", "1.5"],
            ["--front-begin", "spt"],
            ["--too-wide", "keep"],
            ["--obx", "O4"],
        ] {
            assert!(Line::try_parse_from([&["genetic", "--trace", "t.swf"][..], &flags].concat()).is_err());
        }
    }
}
