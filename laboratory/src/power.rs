//! `stealgrid power`: how often runs by the wall clock would be called different from their simulations, right ones and
//! wrong ones.
//!
//! Runs are simulated here, each late as a run may be, and judged as [`operation::run::compare`] judges a real one. The
//! simulations that each is held against are drawn anew from a pool of twice as many; the pool is the same for all, so that
//! rows near the margin depend on it, and another seed shows how much.

use analysis::ensemble::{MEANS, NAMES, place_among, place_by};
use analysis::{Figures, Outcome};
use anyhow::{Context as _, bail};
use experiments::exit;
use experiments::experiment::flags::ExperimentArgs;
use experiments::experiment::jobs::Jobs;
use experiments::experiment::{Clock, Experiment};
use experiments::interrupt::Interrupt;
use experiments::terminal::say;
use links::Model;
use operation::run::compare::ensemble::{Allowed, Ensemble, Late, Missing};
use operation::run::plan::simulated;
use operation::run::plan::{self, Plan};
use outputs::table::Table;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use report::Format;
use scheduler::{SiteId, Span, StrategySpec};
use serde::Serialize;

/// How late a site says that jobs start in runs of that kind: a fifth of the delays of the quick start, so that no wait shows it.
const STARTS_LATE: Span = Span::from_secs(60);

/// Say how often a real run of an experiment would be called different from its simulations: the right one, and wrong
/// ones with other delays, with other strategies, and with a site that starts jobs a minute late.
///
/// Nothing is started and nothing is written. A table of few differences for wrong runs says that the comparison of
/// `stealgrid run` means little for this experiment.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input, 4 stopped.
#[derive(Clone, Debug, clap::Args)]
pub struct PowerArgs {
    /// What would run.
    #[command(flatten)]
    experiment: ExperimentArgs,

    /// Runs that are simulated of each kind
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Power")]
    runs: u32,

    /// Wrong delays, in parts of the mean configured one
    #[arg(
        long,
        value_name = "X,X,…",
        value_delimiter = ',',
        default_value = "0,0.5,0.8,0.9,1.2,1.5,2",
        help_heading = "Power"
    )]
    delays: Vec<f64>,

    /// Wrong strategies
    #[arg(
        long,
        value_name = "NAME",
        default_values = ["st:0", "st-greedy:50", "common-pool", "steal:random"],
        help_heading = "Power"
    )]
    instead: Vec<String>,
}

/// One run that was simulated and judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    kind: String,
    /// Of the simulation.
    seed: u64,
    /// How late its messages were in the mean, in seconds of trace time.
    late_s: f64,
    figures: Figures,
    /// Simulations that lie as far out.
    as_far_out: usize,
    /// The same by the makespan alone.
    as_far_out_by_makespan: usize,
    /// The same of means and counts, without figures of distributions.
    as_far_out_by_means: usize,
    /// Which figure lies furthest out.
    furthest: &'static str,
}

/// What happened to runs of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Kind {
    kind: String,
    runs: usize,
    different: usize,
    different_by_makespan: usize,
    different_by_means: usize,
    /// The figure that most often lies furthest out, of those that are different.
    furthest: Option<&'static str>,
}

/// Runs the command.
///
/// # Errors
/// If a simulation fails.
pub fn command(args: &PowerArgs) -> anyhow::Result<u8> {
    let (experiment, jobs) = match experiments::drive::simulate::load(&args.experiment) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    if let Err(refusal) = plan::check(&experiment) {
        eprintln!("error: {refusal}");
        return Ok(exit::USAGE);
    }
    if !experiment.external.is_none() {
        eprintln!("error: each simulation would start the commands of the experiment; leave out exec=");
        return Ok(exit::USAGE);
    }
    if experiment.run.ensemble == 0 {
        eprintln!("error: run.ensemble is 0, so no run of this experiment is compared; leave it out");
        return Ok(exit::USAGE);
    }
    let mut strategies = Vec::new();
    for name in &args.instead {
        match name.parse::<StrategySpec>() {
            Ok(strategy) if !strategy.ideal => strategies.push(strategy),
            Ok(strategy) => {
                eprintln!(
                    "error: failed to understand --instead: {strategy} is a reference, which no run is"
                );
                return Ok(exit::USAGE);
            }
            Err(error) => {
                eprintln!("error: failed to understand --instead: {error}");
                return Ok(exit::USAGE);
            }
        }
    }
    if let Some(wrong) = args.delays.iter().find(|part| !(0.0..=1000.0).contains(*part)) {
        eprintln!("error: failed to understand --delays: {wrong} is not from 0 to 1000");
        return Ok(exit::USAGE);
    }
    let interrupt = Interrupt::saying("stopping")?;
    let Some(rows) = rows(&experiment, &jobs, args.runs as usize, &args.delays, &strategies, &interrupt)?
    else {
        eprintln!("error: stopped");
        return Ok(exit::INCOMPLETE);
    };
    say(&match args.experiment.format {
        Format::Csv => csv(&rows),
        Format::Json => serde_json::to_string_pretty(&kinds(&rows))? + "\n",
        Format::Markdown => table(&kinds(&rows), experiment.run.ensemble).markdown(),
        Format::Terminal => table(&kinds(&rows), experiment.run.ensemble).text(),
    })?;
    Ok(exit::DONE)
}

/// How late the runs of a kind are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Timing {
    /// As simulations of an ensemble are.
    Drawn,
    /// All by this share of what is allowed in the mean.
    Share(f64),
    /// As simulations of an ensemble are, and one site says that jobs start so much later than they do.
    StartsLate(SiteId, Span),
}

impl Timing {
    /// How late simulation number `index` of `count` is.
    fn late(self, allowed: Allowed, index: usize, count: usize, seed: u64) -> Late {
        match self {
            Timing::Drawn | Timing::StartsLate(..) => Late::drawn(allowed, index, count, seed),
            Timing::Share(share) => {
                let mean = Span::from_micros((allowed.mean.as_micros() as f64 * share) as i64);
                Late { messages: mean, sites: mean }
            }
        }
    }
}

/// Makes simulations of one plan, each with seeds of its own.
struct Bench<'a> {
    jobs: &'a Jobs,
    plan: Plan,
    planned: Outcome,
    allowed: Allowed,
    /// The next seed that no other run has, relative to that of the experiment.
    next: u64,
    interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// So many runs: seeds, how late messages were, and figures; `None` if interrupted.
    fn runs(
        &mut self,
        experiment: &Experiment,
        count: usize,
        timing: Timing,
    ) -> anyhow::Result<Option<Vec<(u64, Late, Figures)>>> {
        // With the factor of the right one: what the nodes are told depends on it.
        let mut experiment = experiment.clone();
        experiment.run.clock = Some(Clock::Scaled(self.plan.factor));
        let plan = Plan::new(&experiment, self.jobs, &self.planned)?;
        let first = self.next;
        self.next += count as u64;
        let late = |index, seed| timing.late(self.allowed, index, count, seed);
        let mut ensemble = Ensemble::new(&experiment, &plan, self.jobs);
        if let Timing::StartsLate(site, late) = timing {
            ensemble = ensemble.with_starts_late(site, late);
        }
        match ensemble.simulate_each(count, first, late, None, self.interrupt) {
            Ok(figures) => Ok(Some(
                figures
                    .into_iter()
                    .enumerate()
                    .map(|(index, figures)| {
                        let seed = experiment.seed.wrapping_add(first).wrapping_add(index as u64);
                        (seed, late(index, seed), figures)
                    })
                    .collect(),
            )),
            Err(Missing::Stopped) => Ok(None),
            Err(Missing::Impossible(reason) | Missing::Failed(reason)) => {
                bail!("failed to simulate: {reason}")
            }
        }
    }
}

/// All runs of all kinds; `None` if interrupted.
fn rows(
    experiment: &Experiment,
    jobs: &Jobs,
    runs: usize,
    delays: &[f64],
    strategies: &[StrategySpec],
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Vec<Row>>> {
    let Some(planned) = simulated(experiment, jobs, interrupt)? else { return Ok(None) };
    let plan = Plan::new(experiment, jobs, &planned)?;
    let allowed = Allowed::of(experiment, plan.origin, plan.factor);
    let mut kinds = vec![
        ("right".to_string(), experiment.clone(), Timing::Drawn),
        ("right, nothing late".to_string(), experiment.clone(), Timing::Share(0.0)),
        ("right, as late as allowed".to_string(), experiment.clone(), Timing::Share(1.0)),
    ];
    for &part in delays {
        let network = with_delay(&experiment.network, experiment, &plan, part);
        kinds.push((format!("delay × {part}"), Experiment { network, ..experiment.clone() }, Timing::Drawn));
    }
    for &strategy in strategies {
        kinds.push((strategy.to_string(), Experiment { strategy, ..experiment.clone() }, Timing::Drawn));
    }
    // The widest, where most jobs run: there it would show best.
    if let Some(site) = experiment.grid.sites().iter().max_by_key(|site| site.processors) {
        let name = format!("starts of {} {STARTS_LATE} s late", site.name);
        kinds.push((name, experiment.clone(), Timing::StartsLate(site.id, STARTS_LATE)));
    }
    let count = experiment.run.ensemble;
    let mut bench = Bench { jobs, plan, planned, allowed, next: 1, interrupt };
    let Some(pool) = bench.runs(experiment, 2 * count, Timing::Drawn)? else { return Ok(None) };
    let pool: Vec<Figures> = pool.into_iter().map(|(_, _, figures)| figures).collect();
    let mut all = Vec::new();
    for (name, experiment, timing) in kinds {
        eprintln!("{name} …");
        let Some(made) = bench.runs(&experiment, runs, timing).with_context(|| name.clone())? else {
            return Ok(None);
        };
        let judged = made.into_iter().map(|(seed, late, figures)| {
            judged(name.clone(), seed, late.messages.as_secs_f64(), figures, &pool, count)
        });
        all.extend(judged);
    }
    Ok(Some(all))
}

/// The same links with this part of the mean configured delay on all of them.
fn with_delay(network: &Model, experiment: &Experiment, plan: &Plan, part: f64) -> Model {
    let sites = || experiment.grid.sites().iter().map(|site| site.id);
    let pairs = sites().flat_map(|from| sites().map(move |to| (from, to))).filter(|(from, to)| from != to);
    let delays: Vec<i64> =
        pairs.map(|(from, to)| network.link(plan.origin, from, to).mean().as_micros()).collect();
    let mean = delays.iter().sum::<i64>() as f64 / delays.len().max(1) as f64;
    Model { base: Model::constant(Span::from_micros((mean * part) as i64)).base, ..network.clone() }
}

/// Holds a run against so many of a pool.
fn judged(kind: String, seed: u64, late_s: f64, figures: Figures, pool: &[Figures], count: usize) -> Row {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut chosen: Vec<usize> = (0..pool.len()).collect();
    for index in 0..count {
        let other = rng.random_range(index..chosen.len());
        chosen.swap(index, other);
    }
    let ensemble: Vec<Figures> = chosen[..count].iter().map(|&index| pool[index]).collect();
    let placed = place_among(&figures, &ensemble);
    let deviations = |name: &str| {
        let place = placed.figures.iter().find(|place| place.name == name);
        place.map_or(0.0, |place| place.deviations.abs())
    };
    let furthest =
        NAMES.into_iter().max_by(|a, b| deviations(a).total_cmp(&deviations(b))).unwrap_or_default();
    Row {
        kind,
        seed,
        late_s,
        figures,
        as_far_out: placed.as_far_out,
        as_far_out_by_makespan: place_by(&figures, &ensemble, &[0]).as_far_out,
        as_far_out_by_means: place_by(&figures, &ensemble, &(0..MEANS).collect::<Vec<usize>>()).as_far_out,
        furthest,
    }
}

/// The runs by kind, in order.
fn kinds(rows: &[Row]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for chunk in rows.chunk_by(|a, b| a.kind == b.kind) {
        let different: Vec<&Row> = chunk.iter().filter(|row| row.as_far_out == 0).collect();
        let named = |name: &str| different.iter().filter(|row| row.furthest == name).count();
        kinds.push(Kind {
            kind: chunk[0].kind.clone(),
            runs: chunk.len(),
            different: different.len(),
            different_by_makespan: chunk.iter().filter(|row| row.as_far_out_by_makespan == 0).count(),
            different_by_means: chunk.iter().filter(|row| row.as_far_out_by_means == 0).count(),
            furthest: NAMES.into_iter().filter(|name| named(name) > 0).max_by_key(|name| named(name)),
        });
    }
    kinds
}

fn csv(rows: &[Row]) -> String {
    let mut text =
        "kind,seed,late_s,as_far_out,as_far_out_by_makespan,as_far_out_by_means,makespan_s,wait_mean_s,wait_by_size_mean,steal_delay_mean_s,\
                    messages_per_job,requests_per_job,stolen_jobs,start_delay_p95_s,furthest\n"
            .to_string();
    for row in rows {
        let [makespan, wait, width, delay, messages, requests, stolen, start_delay] = row.figures.values();
        text += &format!(
            "\"{}\",{},{:.3},{},{},{},{makespan:.1},{wait:.1},{width:.1},{delay:.3},{messages:.4},{requests:.4},{stolen:.0},{start_delay:.3},\"{}\"\n",
            row.kind,
            row.seed,
            row.late_s,
            row.as_far_out,
            row.as_far_out_by_makespan,
            row.as_far_out_by_means,
            row.furthest
        );
    }
    text
}

fn table(kinds: &[Kind], count: usize) -> Table {
    let header = [
        "run".to_string(),
        "runs".to_string(),
        format!("called different, of {count} simulations"),
        "by the makespan alone".to_string(),
        "without the start delay".to_string(),
        "furthest out, mostly".to_string(),
    ];
    let mut table = Table::new(header).with_left(1).with_left(5);
    for kind in kinds {
        let share = |count: usize| format!("{:.1} %", 100.0 * count as f64 / kind.runs as f64);
        table.push([
            kind.kind.clone(),
            kind.runs.to_string(),
            share(kind.different),
            share(kind.different_by_makespan),
            share(kind.different_by_means),
            kind.furthest.map_or("", |name| name.trim_end_matches(", s")).to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use analysis::statistics::{mean, standard_deviation};
    use experiments::drive::builder;
    use experiments::drive::configuration;
    use experiments::experiment::file::Written;
    use experiments::experiment::jobs;
    use links::Jitter;
    use scheduler::{JobId, JobSpec, Labels, SiteId, Time, TimedJob};
    use simulator::{Checks, Lateness, Simulation};

    use super::*;

    /// Simulations that a run is held against here: as few as are allowed.
    const COUNT: usize = 200;
    const RUNS: usize = 20;

    fn quickstart() -> (Experiment, Jobs) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/published.toml");
        let mut experiment = Experiment::resolve(&Written::load(&path).unwrap()).unwrap();
        experiment.run.ensemble = COUNT;
        // However slow the machine is.
        experiment.run.ensemble_patience = Duration::from_secs(3600);
        let jobs = jobs::read(&experiment).unwrap();
        (experiment, jobs)
    }

    /// The quick start as it is planned, and its simulations: two tests judge by them.
    fn simulations() -> &'static (Figures, Vec<Figures>) {
        static SIMULATIONS: std::sync::OnceLock<(Figures, Vec<Figures>)> = std::sync::OnceLock::new();
        SIMULATIONS.get_or_init(|| {
            let (experiment, jobs) = quickstart();
            let planned = simulated(&experiment, &jobs, &Interrupt::default()).unwrap().unwrap();
            let plan = Plan::new(&experiment, &jobs, &planned).unwrap();
            let pool = Ensemble::new(&experiment, &plan, &jobs).simulate(&Interrupt::default()).unwrap();
            (Figures::of(&planned), pool)
        })
    }

    /// By which the makespan was judged before: within 1 % of the 99 % prediction interval of 20 simulations.
    fn accepted_by_makespan_interval(run: &Row, simulations: &[Row]) -> bool {
        let makespans: Vec<f64> = simulations[..20].iter().map(|row| row.figures.makespan_s).collect();
        let reach = 2.861 * standard_deviation(&makespans).unwrap() * (1.0 + 1.0 / 20.0_f64).sqrt();
        let mean = mean(&makespans).unwrap();
        (0.99 * (mean - reach)..=1.01 * (mean + reach)).contains(&run.figures.makespan_s)
    }

    /// Jobs of the same length that are submitted in step, some at each of seven sites every thousand seconds: what starts
    /// together ends together.
    fn lattice(sites: usize) -> Jobs {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut jobs = Vec::new();
        for step in 0..60 {
            for site in 0..sites {
                for _ in 0..[0, 0, 1, 2, 5][rng.random_range(0..5)] {
                    let run_time = Span::from_secs(2000);
                    let spec = JobSpec {
                        id: JobId(jobs.len() as u64 + 1),
                        submit: Time::from_secs(step * 1000),
                        processors: [4, 8, 8, 16, 32][rng.random_range(0..5)],
                        requested: run_time,
                        labels: Labels::UNKNOWN,
                        origin: SiteId::from_index(site),
                        payload: 0,
                    };
                    jobs.push(TimedJob { spec, run_time });
                }
            }
        }
        jobs.sort_by_key(|job| job.spec.key());
        Jobs { jobs, workload: "in step".to_string(), ..Jobs::default() }
    }

    /// The real runs that docs/COMPARISON.md tells of, judged by the simulations of today.
    #[test]
    fn real_runs_that_are_stored_are_judged_as_the_document_says() {
        let (_, pool) = simulations();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/data/real-runs.csv");
        let text = std::fs::read_to_string(path).unwrap();
        let (mut judged, mut otherwise) = ([0, 0], Vec::new());
        for line in text.lines().filter(|line| !line.starts_with('#')).skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let expected = match cells[7] {
                "within" => false,
                "different" => true,
                _ => continue,
            };
            let figure = |place: usize| cells[10 + place].parse().unwrap();
            let figures = Figures {
                makespan_s: figure(0),
                wait_mean_s: figure(1),
                wait_by_size_mean: figure(2),
                steal_delay_mean_s: figure(3),
                messages_per_job: figure(4),
                requests_per_job: figure(5),
                stolen_jobs: figure(6),
                // Not measured then.
                start_delay_p95_s: None,
            };
            let differs = place_among(&figures, pool).differs();
            judged[usize::from(differs)] += 1;
            if differs != expected {
                otherwise.push(line);
            }
        }
        assert_eq!((judged, otherwise), ([8, 31], Vec::<&str>::new()));
    }

    /// A run is late by little, and all that is due at one instant at a site is late together.
    #[test]
    fn right_runs_of_jobs_that_end_together_pass() {
        let (experiment, _) = quickstart();
        let jobs = lattice(experiment.grid.len());
        let planned = simulated(&experiment, &jobs, &Interrupt::default()).unwrap().unwrap();
        let plan = Plan::new(&experiment, &jobs, &planned).unwrap();
        let ensemble = Ensemble::new(&experiment, &plan, &jobs);
        let pool = ensemble.simulate(&Interrupt::default()).unwrap();

        // A run in which all of a site and instant is late by the same, as it is on an idle machine.
        let run = |seed: u64| {
            let mut configuration = configuration(&experiment, &jobs, Checks::Cheap);
            configuration.seed = seed;
            configuration.late = Some(Lateness { most: Span::from_secs(5), seed });
            let added = Jitter::Uniform { min: Span::ZERO, max: Span::from_secs(5) };
            configuration.network = configuration.network.over(added);
            let mut builder = builder(&experiment, &jobs);
            Simulation::new(configuration, &jobs.jobs).run(&mut |event| builder.observe(event)).unwrap();
            Figures::of(&builder.finish())
        };
        let called = (1000..1000 + RUNS as u64).filter(|&seed| place_among(&run(seed), &pool).differs());
        // One in 201 is expected.
        assert!(called.count() <= 2);
    }

    /// What every figure but that of the distribution says is that of a correct run, to the last digit.
    #[test]
    fn mutant_a_distribution_that_is_off_while_all_means_agree_is_found() {
        let (right, pool) = simulations();
        let right = *right;
        assert_eq!(right.start_delay_p95_s, Some(0.0));
        // A twentieth of the stolen jobs and some more begin later, and those after them sooner.
        let wrong = Figures { start_delay_p95_s: Some(1.0), ..right };
        assert!(!place_among(&right, pool).differs());
        assert!(!place_by(&wrong, pool, &(0..MEANS).collect::<Vec<usize>>()).differs());
        let placed = place_among(&wrong, pool);
        assert!(placed.differs(), "{placed:?}");
        assert_eq!(placed.beyond()[0].name, "start delay, s");
    }

    /// The delays that the outcome keeps of each job are those of the steals, which are taken by other code.
    #[test]
    fn start_delays_are_those_of_the_steals() {
        let (experiment, jobs) = quickstart();
        let (mut builder, mut steals) = (builder(&experiment, &jobs), analysis::Steals::default());
        let mut starts = std::collections::BTreeMap::new();
        let mut simulation = Simulation::new(configuration(&experiment, &jobs, Checks::Cheap), &jobs.jobs);
        let mut sink = |event: &scheduler::Event| {
            let mut event = *event;
            if let scheduler::EventKind::Started { job, .. } = event.kind {
                event.at += Span::from_secs(job.0 as i64 % 100);
            }
            builder.observe(&event);
            steals.observe(&event, &mut |steal| {
                starts.insert(steal.job, steal.start());
            });
        };
        while simulation.advance(&mut sink).unwrap() {}
        let outcome = builder.finish();
        let stolen: Vec<_> = outcome.jobs.iter().filter(|job| job.stolen()).collect();
        assert!(stolen.len() > 1000);
        for job in stolen {
            assert_eq!(Some(job.start_delay), starts[&job.id], "{:?}", job.id);
        }
    }

    /// The rates of docs/COMPARISON.md on fewer runs. Seeds are fixed, so this always does the same.
    #[test]
    fn wrong_delays_and_strategies_are_found_on_the_quick_start_and_right_runs_pass() {
        let (experiment, jobs) = quickstart();
        let strategies =
            ["st:0", "st-greedy:50", "common-pool", "steal:random"].map(|name| name.parse().unwrap());
        let delays = [0.0, 0.5, 2.0];

        let rows =
            rows(&experiment, &jobs, RUNS, &delays, &strategies, &Interrupt::default()).unwrap().unwrap();

        let kinds = kinds(&rows);
        assert_eq!(kinds.len(), 11);
        let right: Vec<Row> = rows.iter().filter(|row| row.kind == "right").cloned().collect();
        for kind in kinds {
            assert_eq!(kind.runs, RUNS);
            if kind.kind.starts_with("right") {
                // One in 201 is expected.
                assert!(kind.different <= 2, "{kind:?}");
                continue;
            }
            assert!(kind.different >= RUNS * 95 / 100, "{kind:?}");
            if kind.kind == "starts of pine 60 s late" {
                // The mutant: no mean sees it, so a comparison by means alone would let it pass.
                assert!(kind.different_by_means <= 2, "{kind:?}");
                assert_eq!(kind.furthest, Some("start delay, s"));
                continue;
            }
            // What a distribution adds takes nothing away.
            assert!(kind.different >= kind.different_by_means, "{kind:?}");
            if kind.kind == "delay × 2" {
                // The makespan sees about half of these.
                continue;
            }
            // The mutant: the makespan alone sees next to nothing of the others.
            assert!(kind.different_by_makespan <= RUNS / 4, "{kind:?}");
            let of_kind = rows.iter().filter(|row| row.kind == kind.kind);
            let accepted = of_kind.filter(|row| accepted_by_makespan_interval(row, &right)).count();
            assert!(accepted >= RUNS * 3 / 4, "{kind:?}: {accepted} accepted as before");
        }
    }
}
