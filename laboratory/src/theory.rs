//! `stealgrid theory`: what is proved and expected of a grid, a workload and a delay, before anything runs.
//!
//! Numbers come from [`analysis::prediction`] and [`analysis::theory::fetch`]; `show` lays them out.

mod brokers;
pub mod check;
mod show;

use analysis::prediction::{self, HomeSums, LittleCap, Protocol, WorkStealing};
use analysis::theory::brokers::{Facts, guarantee};
use analysis::theory::fetch::{FetchBounds, FetchSetting, Suffix};
use analysis::{Bounds, OutcomeBuilder};
use anyhow::bail;
use experiments::drive::simulate;
use experiments::exit;
use experiments::experiment::flags::ExperimentArgs;
use experiments::terminal::say;
use report::Format;
use scheduler::ideal::StatelessSteal;
use scheduler::{Grid, LocalScheduler, Order, Pass, Selection, Span, Strategy, StrategySpec, TimedJob};
use serde::Serialize;
use simulator::reference;

use brokers::BrokerPart;

/// Say what is proved and expected of a grid, a workload and a delay, and what each statement assumes.
///
/// Takes an experiment as `simulate` does, or `--sites` alone. Nothing is written. `theory check` tests claims by runs, `theory show` prints what it stored.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TheoryArgs {
    /// What else can be done.
    #[command(subcommand)]
    action: Option<Action>,

    /// What would run.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}

/// What can be done besides.
#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    Check(check::CheckArgs),
    Show(check::ShowArgs),
}

/// Everything that is said.
#[derive(Debug, Serialize)]
struct Theory {
    strategy: String,
    beta: f64,
    grid: GridPart,
    workload: Option<WorkloadPart>,
    delay_s: f64,
    homes: Vec<HomeSums>,
    ceilings: Ceilings,
    brokers: Option<BrokerPart>,
    protocols: Vec<ProtocolRow>,
    unavoidable: Option<Unavoidable>,
    little: Vec<LittleCap>,
    work_stealing: Option<StealingPart>,
}

#[derive(Debug, Serialize)]
struct GridPart {
    sites: usize,
    processors: u64,
}

#[derive(Debug, Serialize)]
struct WorkloadPart {
    name: String,
    jobs: usize,
    offline: bool,
    run_time_max_s: f64,
    submit_last_s: f64,
    work_per_job: f64,
    weighted_run_time_s: Option<f64>,
    bounds: LowerBounds,
}

#[derive(Debug, Serialize)]
struct LowerBounds {
    time_s: f64,
    area_thesis_s: f64,
    area_start_s: f64,
    area_s: f64,
    count_s: f64,
    proof_s: f64,
    best_s: f64,
}

/// The proved ratios without delay; `None` where nothing is proved.
#[derive(Debug, Serialize)]
struct Ceilings {
    offline: Option<f64>,
    online: Option<f64>,
    reason: Option<String>,
}

/// What one protocol makes of the delay.
#[derive(Debug, Serialize)]
struct ProtocolRow {
    name: String,
    delays: u32,
    delta_s: f64,
    /// Delta over the weighted mean run time.
    relative: Option<f64>,
    /// Bound on the ratio whatever is stolen.
    ratio_crude: Option<f64>,
    /// Bound on the ratio with what the reference steals at this Delta.
    ratio: Option<f64>,
    /// Bound on the makespan with the same.
    makespan_s: Option<f64>,
    /// What the reference comes to at this Delta.
    reference_ratio: Option<f64>,
    reference_makespan_s: Option<f64>,
}

/// If all jobs were queued at the smallest site at the start.
#[derive(Debug, Serialize)]
struct Unavoidable {
    applies: bool,
    push_s: f64,
    pull_s: f64,
}

/// Work stealing of unit tasks, in units of one task.
#[derive(Debug, Serialize)]
struct StealingPart {
    tasks: usize,
    equal_tasks: bool,
    task_s: f64,
    #[serde(flatten)]
    values: WorkStealing,
}

/// Up to so many jobs the reference is run for each protocol: arbitrary, a few seconds in all.
const JOBS_RUN: usize = 200_000;

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &TheoryArgs) -> anyhow::Result<u8> {
    match &args.action {
        Some(Action::Check(args)) => return check::command(args),
        Some(Action::Show(args)) => return check::show(args),
        None => {}
    }
    let args = &args.experiment;
    if args.format == Format::Csv {
        eprintln!("error: theory is printed as terminal, markdown or json");
        return Ok(exit::USAGE);
    }
    let theory = if args.experiment.is_none() && args.trace.is_none() {
        match of_sizes(args) {
            Ok(theory) => theory,
            Err(reason) => {
                eprintln!("error: failed to {reason}");
                return Ok(exit::USAGE);
            }
        }
    } else {
        let (experiment, jobs) = match simulate::load(args) {
            Ok(loaded) => loaded,
            Err(code) => return Ok(code),
        };
        let delay = experiment.network.largest();
        let workload = Some((&jobs.workload, &jobs.jobs));
        Theory::of(&experiment.grid, experiment.strategy, experiment.local, delay, workload)?
    };
    say(&match args.format {
        Format::Json => serde_json::to_string_pretty(&theory)? + "\n",
        Format::Markdown => show::markdown(&theory),
        Format::Terminal | Format::Csv => show::terminal(&theory),
    })?;
    Ok(exit::DONE)
}

/// A grid without jobs.
fn of_sizes(args: &ExperimentArgs) -> Result<Theory, String> {
    let sizes = args.sites.as_deref().ok_or("say which grid: give an experiment, or --sites")?;
    let grid = Grid::of_sizes(sizes).map_err(|error| format!("make the grid: {error}"))?;
    let strategy = match &args.strategy {
        Some(name) => name.parse().map_err(|error| format!("read --strategy: {error}"))?,
        None => StrategySpec { strategy: Strategy::default(), ideal: false, fetch: Span::ZERO },
    };
    let delay = match &args.delay {
        Some(text) => {
            let delay = humantime::parse_duration(text)
                .map_err(|error| format!("read --delay {text:?}: {error}; write a time, as in 50ms"))?;
            i64::try_from(delay.as_micros()).map(Span::from_micros).map_err(|_| "read --delay: too long")?
        }
        None => Span::ZERO,
    };
    let local = match &args.local {
        Some(name) => name.parse().map_err(|error| format!("read --local: {error}"))?,
        None => LocalScheduler::default(),
    };
    Theory::of(&grid, strategy, local, delay, None).map_err(|error| error.to_string())
}

impl Theory {
    fn of(
        grid: &Grid,
        spec: StrategySpec,
        local: LocalScheduler,
        delay: Span,
        workload: Option<(&String, &Vec<TimedJob>)>,
    ) -> anyhow::Result<Theory> {
        let beta_percent = analysis::deficiency::beta_percent(&spec.strategy);
        let beta = f64::from(beta_percent) / 100.0;
        let jobs = workload.map_or(&[][..], |(_, jobs)| jobs);
        let delay_s = delay.as_secs_f64();
        let work_per_job = prediction::work_per_job(jobs);
        let homes = prediction::home_sums(grid, jobs, beta);
        let weighted = homes.iter().filter_map(|home| home.weighted_run_time_s).reduce(f64::min);
        let ceilings = Ceilings::of(&spec.strategy, local, grid, jobs);
        let (_, _, offline) = prediction::extent(grid, jobs);
        let rows = Protocol::all(grid.len()).into_iter().map(|protocol| {
            let delta = Span::from_micros(delay.as_micros().saturating_mul(i64::from(protocol.delays())));
            ProtocolRow::of(protocol, grid, &spec, jobs, delta, weighted)
        });
        Ok(Theory {
            strategy: spec.to_string(),
            beta,
            grid: GridPart { sites: grid.len(), processors: grid.processors() },
            delay_s,
            protocols: rows.collect::<anyhow::Result<_>>()?,
            unavoidable: (!jobs.is_empty()).then(|| {
                let work = homes[0].work;
                let one_home = homes.get(1).is_none_or(|second| second.jobs == 0);
                Unavoidable {
                    applies: offline && one_home,
                    push_s: prediction::unavoidable(grid, work, delay_s, 1),
                    pull_s: prediction::unavoidable(grid, work, delay_s, 2),
                }
            }),
            little: if jobs.is_empty() {
                Vec::new()
            } else {
                prediction::little(grid, work_per_job, beta, delay_s, 1)
            },
            work_stealing: stealing(grid, jobs, delay_s),
            workload: workload.map(|(name, jobs)| WorkloadPart::of(grid, name, jobs, work_per_job, weighted)),
            homes,
            brokers: BrokerPart::of(&spec.strategy, local, grid, jobs),
            ceilings,
        })
    }
}

impl Ceilings {
    fn of(strategy: &Strategy, local: LocalScheduler, grid: &Grid, jobs: &[TimedJob]) -> Ceilings {
        let of = |offline| match strategy.broker() {
            Some(broker) => {
                let facts = Facts { offline, ..brokers::facts(grid, jobs) };
                guarantee(broker, local, facts).map(|guarantee| guarantee.ratio())
            }
            None => analysis::theory::ceiling(strategy, local, offline),
        };
        match (of(true), of(false)) {
            (Ok(offline), Ok(online)) => {
                Ceilings { offline: Some(offline), online: Some(online), reason: None }
            }
            (Err(reason), _) | (_, Err(reason)) => {
                Ceilings { offline: None, online: None, reason: Some(reason) }
            }
        }
    }
}

impl WorkloadPart {
    fn of(
        grid: &Grid,
        name: &str,
        jobs: &[TimedJob],
        work_per_job: f64,
        weighted_run_time_s: Option<f64>,
    ) -> WorkloadPart {
        let bounds = Bounds::of_workload(grid, jobs);
        let (longest, last, offline) = prediction::extent(grid, jobs);
        WorkloadPart {
            name: name.to_string(),
            jobs: jobs.len(),
            offline,
            run_time_max_s: longest.as_secs_f64(),
            submit_last_s: last.as_secs_f64(),
            work_per_job,
            weighted_run_time_s,
            bounds: LowerBounds {
                time_s: bounds.time.as_secs_f64(),
                area_thesis_s: bounds.area_thesis.as_secs_f64(),
                area_start_s: bounds.area_start.as_secs_f64(),
                area_s: bounds.area.as_secs_f64(),
                count_s: bounds.count.as_secs_f64(),
                proof_s: bounds.proof.as_secs_f64(),
                best_s: bounds.best.as_secs_f64(),
            },
        }
    }
}

impl ProtocolRow {
    fn of(
        protocol: Protocol,
        grid: &Grid,
        spec: &StrategySpec,
        jobs: &[TimedJob],
        delta: Span,
        weighted: Option<f64>,
    ) -> anyhow::Result<ProtocolRow> {
        let delta_s = delta.as_secs_f64();
        let mut row = ProtocolRow {
            name: protocol.name(),
            delays: protocol.delays(),
            delta_s,
            relative: weighted.filter(|&time| time > 0.0).map(|time| delta_s / time),
            ratio_crude: None,
            ratio: None,
            makespan_s: None,
            reference_ratio: None,
            reference_makespan_s: None,
        };
        let Some(steal) = spec.strategy.steal_from_homes() else { return Ok(row) };
        let proved = matches!(steal.order, Order::Ahb | Order::Abh)
            && steal.select != Selection::Easy
            && steal.threshold.beta_percent() > 0;
        if !proved || jobs.is_empty() {
            return Ok(row);
        }
        let (longest, last, offline) = prediction::extent(grid, jobs);
        let setting = FetchSetting {
            delta,
            beta_percent: steal.threshold.beta_percent(),
            offline,
            longest,
            last,
            bound: Bounds::of_workload(grid, jobs).proof,
        };
        if jobs.len() > JOBS_RUN {
            let rows = jobs.iter().map(|job| (job.spec.processors, job.run_time, false));
            row.ratio_crude = FetchBounds::of(setting, &Suffix::of_rows(grid, rows)).crude;
            return Ok(row);
        }
        let mut builder = OutcomeBuilder::new(grid, steal.threshold, jobs);
        let mut policy = StatelessSteal::new(grid, *steal).with_fetch(delta);
        let done = reference::run(&mut policy, jobs, grid, Pass::Batch, &mut |event| builder.observe(&event));
        if let Err(error) = done {
            bail!("failed to run the reference: {error}");
        }
        let outcome = builder.finish();
        let bounds = FetchBounds::of(setting, &Suffix::all(&outcome));
        row.ratio_crude = bounds.crude;
        row.ratio = bounds.ratio;
        row.makespan_s = Some(bounds.makespan.as_secs_f64());
        row.reference_makespan_s = Some(outcome.makespan().as_secs_f64());
        row.reference_ratio = Bounds::ratio(outcome.makespan(), setting.bound);
        Ok(row)
    }
}

/// Where every site has one processor and all jobs start at one of them.
fn stealing(grid: &Grid, jobs: &[TimedJob], delay_s: f64) -> Option<StealingPart> {
    let first = jobs.first()?;
    if grid.widest() > 1 {
        return None;
    }
    let total: f64 = jobs.iter().map(|job| job.run_time.as_secs_f64()).sum();
    let task_s = total / jobs.len() as f64;
    let values = (task_s > 0.0)
        .then(|| prediction::work_stealing(grid.len() as f64, jobs.len() as f64, delay_s / task_s))??;
    Some(StealingPart {
        tasks: jobs.len(),
        equal_tasks: jobs.iter().all(|job| job.run_time == first.run_time),
        task_s,
        values,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outputs::fixtures::run;

    fn theory(sizes: &[u32], jobs: &[(i64, u32, i64, u32, i64)], delay: i64) -> Theory {
        let (workload, _) = run(sizes, jobs);
        let name = "four jobs".to_string();
        let jobs = (!workload.is_empty()).then_some((&name, &workload));
        let grid = Grid::of_sizes(sizes).unwrap();
        let local = LocalScheduler::default();
        Theory::of(&grid, "st:50".parse().unwrap(), local, Span::from_secs(delay), jobs).unwrap()
    }

    #[test]
    fn a_broker_gets_the_theorems_and_what_they_assume() {
        let grid = Grid::of_sizes(&[2, 8]).unwrap();
        let (workload, _) = run(&[2, 8], &[(0, 2, 10, 1, 0), (0, 1, 10, 1, 0)]);
        let name = "two jobs".to_string();
        let found = |strategy: &str, local, jobs| {
            Theory::of(&grid, strategy.parse().unwrap(), local, Span::ZERO, jobs).unwrap()
        };
        let (list, easy) = (LocalScheduler::List, LocalScheduler::Easy);
        let alone = found("broker:mlb,a=0.5", list, None);
        assert_eq!((alone.ceilings.offline, alone.ceilings.online), (Some(9.0), Some(11.0)));
        let text = show::terminal(&alone);
        for expected in ["11.67", "sites under list", "Theorems of brokers"] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        // Both jobs fit the smallest site.
        let narrow = found("broker:mlb", list, Some((&name, &workload)));
        assert_eq!((narrow.ceilings.offline, narrow.ceilings.online), (Some(3.0), Some(5.0)));
        let refused = found("broker:mlb,a=0.5", easy, None);
        assert!(refused.ceilings.reason.unwrap().contains("under easy"));
    }

    #[test]
    fn a_workload_gets_every_part() {
        let found =
            theory(&[2, 8], &[(0, 2, 10, 1, 0), (0, 2, 10, 1, 0), (0, 1, 10, 1, 0), (0, 8, 5, 1, 0)], 5);
        assert_eq!((found.ceilings.offline, found.ceilings.online), (Some(3.0), Some(5.0)));
        assert_eq!((found.homes[0].work, found.homes[1].work), (90.0, 40.0));
        let pull = &found.protocols[1];
        assert_eq!((pull.delays, pull.delta_s), (2, 10.0));
        assert!(pull.reference_ratio.unwrap() <= pull.ratio.unwrap());
        assert!(pull.ratio.unwrap() <= pull.ratio_crude.unwrap());
        let text = show::terminal(&found);
        for part in ["Lower bounds", "Ceilings", "Reserve, then fetch", "Certificate", "Little"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!found.unavoidable.unwrap().applies, "one job's home is the larger site");
    }

    #[test]
    fn a_grid_alone_gets_its_ceilings() {
        let found = theory(&[2, 8], &[], 5);
        assert!(found.workload.is_none());
        assert_eq!(found.protocols[1].delta_s, 10.0);
        assert_eq!(found.protocols[1].ratio, None);
        assert!(show::markdown(&found).contains("## Ceilings"));
    }

    #[test]
    fn sites_of_one_processor_get_the_bounds_of_work_stealing() {
        let tasks = [(0, 1, 10, 1, 0); 50];
        let found = theory(&[1; 8], &tasks, 20);
        let part = found.work_stealing.unwrap();
        assert!(part.equal_tasks);
        assert_eq!((part.tasks, part.values.area), (50, 6.25));
    }
}
