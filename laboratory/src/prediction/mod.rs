//! `stealgrid predict`: how far predictions of run times are from what happened in a log, and what they do to the schedule of one machine.
//!
//! Predictors and figures of error are in the crate `predict`, queues in `scheduler`. Here are the log (`log`), what is tried (`choice`), the
//! schedules (`schedules`), files that are added to (`stored`), and tables for readers (`tables`).

mod choice;
mod history;
mod history_rows;
mod log;
mod page;
mod schedules;
mod stored;
mod tables;
mod waits;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use experiments::interrupt::Interrupt;
use experiments::lock::lock;
use experiments::progress::Progress;
use experiments::terminal::say;
use experiments::{exit, folder};
use predict::score::{Errors, predictions_by};
use predict::waits::{Plan, WaitPredictor};
use predict::{Correction, Forecast};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use report::Format;
use report::quantity::grouped;
use scheduler::{Pass, Span};
use workload::prepare::{MissingEstimate, Overrun, Size};

use choice::{Order, Who};
use history::Earlier;
use log::Log;
use schedules::Schedule;
use stored::{Cost, CurveRow, ErrorRow, Results, Setting};
use waits::{Waiting, WhoWaits};

/// Say how far predictions of run times and waits are from what happened in a log, and what they do to the schedule of one machine.
///
/// Predictors learn on line: of each job when it ended in the log, for predictions at submissions after that. Schedules are EASY on one
/// machine, with each predictor, correction and order of backfilling. Waits are those of EASY by users' estimates, predicted when jobs come.
/// Writes errors.csv, schedules.csv, waits.csv, curves.csv, predict.json, report.html, and times.csv and waits_times.csv, which another run
/// changes. Rows that are there already, of the same log, options and version, are not computed again.
/// docs/PREDICTION.md has the tables of known logs.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input, a log without estimates, or --out has other results or another one writes there, 4
/// stopped.
#[derive(Clone, Debug, Args)]
pub struct PredictArgs {
    /// Workload log: SWF, GWF, Batsim JSON or sacct, plain, gzip or zstd
    #[arg(value_name = "LOG", required_unless_present = "from")]
    log: Option<PathBuf>,

    /// Processors of the machine
    #[arg(long, value_name = "P", required_unless_present = "from", value_parser = clap::value_parser!(u32).range(1..))]
    sites: Option<u32>,

    /// Compute nothing: show the rows of such a directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["log", "sites", "out", "replace", "size", "overrun", "missing_estimate", "copies", "pass", "jobs", "history"])]
    from: Option<PathBuf>,

    /// Who predicts: user, exact, or predictors with options, as in avg2,last:k=2,by=mean [default: all]
    #[arg(long, value_name = "NAME,NAME,…")]
    predictors: Option<String>,

    /// What corrects predictions that were exceeded: user, tsafrir, doubling, none
    #[arg(long, value_name = "NAME,NAME,…", default_value = "user,tsafrir,doubling")]
    corrections: String,

    /// Orders in which EASY looks at jobs that may overtake: arrival, sjf, smallest, fill
    #[arg(long, value_name = "NAME,NAME,…", default_value = "arrival,sjf")]
    backfill: String,

    /// Who predicts waits: plan, quantile, smith, li, ibl, with options, as in plan:by=avg2 or quantile:q=95,confidence=95; plan:by=exact;
    /// or none [default: plan by user, avg2, template and exact, and all others]
    #[arg(long, value_name = "NAME,NAME,…")]
    waits: Option<String>,

    /// SQLite file of what machines did, made if missing. Predictors meet the earlier logs that it has before the first job, and at the end it
    /// has this one. Give logs of one machine, the oldest first: numbers of users are taken for the same users
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,

    /// Directory for results, made if missing
    #[arg(long, value_name = "DIR", default_value = "out/predict")]
    out: PathBuf,

    /// Replace results of another log, other options or another version there
    #[arg(long)]
    replace: bool,

    /// Size of a job: requested, allocated, descriptor
    #[arg(long, value_name = "RULE", default_value = "requested")]
    size: Size,

    /// Jobs past their estimates: kill, extend, as-is
    #[arg(long, value_name = "RULE", default_value = "kill")]
    overrun: Overrun,

    /// Jobs without an estimate: drop, refuse, run-time, or a time, as 24h [default: drop, unless all are]
    #[arg(long, value_name = "RULE")]
    missing_estimate: Option<MissingEstimate>,

    /// Runs of each schedule: the log, and copies of it without one in 500 jobs, drawn by their numbers. Slowdowns are sensitive to a
    /// few jobs more or less; their mean over copies is less so
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    copies: u32,

    /// When queues decide: per-event, batch
    #[arg(long, value_name = "RULE", default_value = "per-event")]
    pass: Pass,

    /// Threads [default: all cores]; times per prediction are best on one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,

    /// How to print: terminal, markdown, json, csv
    #[arg(long, value_name = "FORMAT", default_value = "terminal")]
    format: Format,
}

/// Runs the command.
///
/// # Errors
/// If results cannot be written.
pub fn command(args: &PredictArgs) -> anyhow::Result<u8> {
    let refused = |words: String| {
        eprintln!("error: {words}");
        Ok(exit::INPUT)
    };
    let shown = match args.from.as_deref().map(stored::read).transpose() {
        Ok(shown) => shown,
        Err(error) => return refused(format!("failed to {error:#}")),
    };
    let tried = match Tried::of(args, shown.as_ref().and_then(|shown| shown.as_ref()).map(|(_, rows)| rows)) {
        Ok(tried) => tried,
        Err(wrong) => {
            eprintln!("error: failed to understand {wrong}");
            return Ok(exit::USAGE);
        }
    };
    match (&args.from, shown) {
        (Some(_), Some(Some((setting, results)))) => {
            let asked = tried.of_results(&results);
            if asked.is_empty() {
                return refused(format!(
                    "none of the rows is of what --predictors, --corrections, --backfill and --waits name; there are rows of {}",
                    [results.predictors(), results.waiting()].concat().join(", ")
                ));
            }
            print(args.format, &setting, &asked)?;
            return Ok(exit::DONE);
        }
        (Some(from), _) => {
            return refused(format!(
                "{} has no results of stealgrid predict; give --from the --out of one",
                from.display()
            ));
        }
        (None, _) => {}
    }
    let (Some(path), Some(processors)) = (&args.log, args.sites) else {
        eprintln!("error: failed to understand what to predict: give a log and --sites, or --from");
        return Ok(exit::USAGE);
    };
    let log = match Log::read(args, path, processors) {
        Ok(log) => log,
        Err(error) => return refused(format!("failed to {error:#}")),
    };
    let said = said_of(args, processors, &log);
    said.iter().for_each(|said| experiments::terminal::note(said));
    let met = match args.history.as_deref().map(|path| history::read(path, &log)).transpose() {
        Ok(met) => met.unwrap_or_default(),
        Err(error) => return refused(format!("failed to {error:#}")),
    };
    tell_of_history(&met);
    let setting = Setting::of(args, processors, &log, &met);
    let earlier = match stored::read(&args.out) {
        Ok(Some((found, results))) if found == setting => results,
        Ok(Some(_)) if !args.replace => {
            return refused(format!(
                "{} has results of another log, other options or another version; give --out another directory, or --replace",
                args.out.display()
            ));
        }
        Err(error) if !args.replace => return refused(format!("failed to {error:#}")),
        Ok(None) => match folder::refused(&args.out) {
            Some(reason) if !stored::is_begun(&args.out) => return refused(reason),
            _ => Results::default(),
        },
        _ => Results::default(),
    };
    let interrupt = Interrupt::on_signals()?;
    folder::make(&args.out)?;
    let Some(_lock) = lock(&args.out.join(stored::LOCKED))? else {
        return refused(format!(
            "another stealgrid predict writes into {}; wait for it, or give --out another directory",
            args.out.display()
        ));
    };
    stored::begin(&args.out, &setting)?;
    let results = run(args, processors, &tried, &log, &met, earlier, &interrupt)?;
    page::write(&args.out, &setting, &tried.sorted(&results), said)?;
    if let Some(path) = args.history.as_deref().filter(|_| !interrupt.is_set()) {
        let options = setting.options();
        let believing = WhoWaits::Predictor(WaitPredictor::Plan(Plan::default()));
        let waited = |&order: &Order| {
            let waiting = Waiting { who: believing, order };
            (order, waiting.run(processors, args.pass, &[], &log.jobs).0)
        };
        let orders: Vec<_> = tried.orders.iter().map(waited).collect();
        if let Err(error) = history_rows::write(path, &log, processors, &options, &orders) {
            return refused(format!("failed to {error:#}"));
        }
    }
    print(args.format, &setting, &tried.of_results(&results))?;
    Ok(if interrupt.is_set() { exit::INCOMPLETE } else { exit::DONE })
}

/// What a reader must know of the log before believing a number.
fn said_of(args: &PredictArgs, processors: u32, log: &Log) -> Vec<String> {
    let mut said = Vec::new();
    if log.without_estimate > 0 {
        said.push(format!(
            "{} of {} jobs have no estimate and are left out; --missing-estimate says what else to do with them",
            grouped(log.without_estimate),
            grouped(log.read)
        ));
    }
    if log.others > 0 {
        said.push(format!(
            "{} of {} jobs are left out: they ran for no time, or are wider than {} processors",
            grouped(log.others),
            grouped(log.read),
            grouped(u64::from(processors))
        ));
    }
    if args.missing_estimate == Some(MissingEstimate::RunTime) {
        let leak = "run times stand in for missing estimates, which limit predictions: errors and schedules look better than any can be";
        said.push(leak.to_string());
    }
    if log.is_of_nobody {
        let nobody = "no job says whose it is, and nothing is predicted of jobs of nobody: all predictors believe the estimates, as user does";
        said.push(nobody.to_string());
    }
    said
}

fn tell_of_history(met: &Earlier) {
    let note = |text: String| experiments::terminal::note(&text);
    if met.jobs() > 0 {
        note(format!(
            "predictors met {} jobs of {} before the first job (--history)",
            grouped(met.jobs() as u64),
            report::quantity::counted(met.logs.len() as u32, "earlier log")
        ));
    }
    if met.too_late > 0 {
        let jobs = grouped(met.too_late as u64);
        note(format!("{jobs} jobs of the history are left out: they ended when this log had begun"));
    }
    if met.has_log {
        note(
            "the history has this very log, which would tell the answers: it is left out, and written anew"
                .to_string(),
        );
    }
}

fn print(format: Format, setting: &Setting, asked: &Results) -> anyhow::Result<()> {
    say(&match format {
        Format::Json => serde_json::to_string_pretty(&stored::document(setting, asked))? + "\n",
        Format::Csv => {
            let tables =
                [stored::csv(&asked.errors)?, stored::csv(&asked.schedules)?, stored::csv(&asked.waits)?];
            tables.join("\n").trim_end().to_string() + "\n"
        }
        Format::Terminal => tables::all(asked, false, |table| table.text()),
        Format::Markdown => tables::all(asked, true, |table| table.markdown()),
    })
}

/// All that is tried, in the order typed.
#[derive(Clone, Debug)]
struct Tried {
    who: Vec<Who>,
    schedules: Vec<Schedule>,
    waiting: Vec<Waiting>,
    orders: Vec<Order>,
}

impl Tried {
    /// What is typed; where nothing is, all that there are, or those of rows that are to be shown.
    fn of(args: &PredictArgs, rows: Option<&Results>) -> Result<Tried, String> {
        let who = match (&args.predictors, rows) {
            (Some(text), _) => choice::list(text, "--predictors")?,
            (None, None) => choice::all(),
            (None, Some(rows)) => rows.predictors().iter().filter_map(|name| name.parse().ok()).collect(),
        };
        let corrections: Vec<Correction> = choice::list(&args.corrections, "--corrections")?;
        let orders: Vec<Order> = choice::list(&args.backfill, "--backfill")?;
        let mut schedules = Vec::new();
        for &who in &who {
            for &order in &orders {
                match who {
                    Who::Exact => schedules.push(Schedule { order, who, correction: None }),
                    Who::Predictor(predict::Predictor::User) => {
                        schedules.push(Schedule { order, who, correction: None });
                    }
                    Who::Predictor(_) => schedules.extend(corrections.iter().map(|&correction| Schedule {
                        order,
                        who,
                        correction: Some(correction),
                    })),
                }
            }
        }
        let waits = match (args.waits.as_deref(), rows) {
            (Some("none"), _) => Vec::new(),
            (Some(text), _) => choice::list(text, "--waits")?,
            (None, None) => WhoWaits::all(),
            (None, Some(rows)) => rows.waiting().iter().filter_map(|name| name.parse().ok()).collect(),
        };
        let in_each = |&order: &Order| waits.iter().map(move |&who| Waiting { who, order });
        let waiting = orders.iter().flat_map(in_each).collect();
        Ok(Tried { who, schedules, waiting, orders })
    }

    /// Of these results those that were asked for, in the order typed.
    fn of_results(&self, results: &Results) -> Results {
        let mut asked = Results::default();
        for who in self.who.iter().map(ToString::to_string) {
            asked.errors.extend(results.errors.iter().filter(|row| row.predictor == who).cloned());
            asked.costs.extend(results.costs.iter().filter(|row| row.predictor == who).cloned());
            let is_curve = |row: &&CurveRow| row.backfill.is_empty() && row.predictor == who;
            asked.curves.extend(results.curves.iter().filter(is_curve).cloned());
        }
        for schedule in &self.schedules {
            asked.schedules.extend(results.schedules.iter().filter(|row| schedule.is(row)).cloned());
        }
        for waiting in &self.waiting {
            asked.waits.extend(results.waits.iter().filter(|row| waiting.is(row)).cloned());
            asked.wait_costs.extend(results.wait_costs.iter().filter(|cost| waiting.took(cost)).cloned());
            asked.curves.extend(results.curves.iter().filter(|row| waiting.drew(row)).cloned());
        }
        asked
    }
}

/// What is computed at once.
enum Task {
    Errors(Who),
    Schedule(Schedule),
    Waits(Waiting),
}

/// Computes what is not there yet, on all cores, and writes it as it comes.
fn run(
    args: &PredictArgs,
    processors: u32,
    tried: &Tried,
    log: &Log,
    met: &Earlier,
    earlier: Results,
    interrupt: &Interrupt,
) -> anyhow::Result<Results> {
    let is_new = |who: &&Who| {
        **who != Who::Exact && !earlier.errors.iter().any(|row| row.predictor == who.to_string())
    };
    let mut tasks: Vec<Task> = tried.who.iter().filter(is_new).copied().map(Task::Errors).collect();
    let is_new = |schedule: &&Schedule| !earlier.schedules.iter().any(|row| schedule.is(row));
    tasks.extend(tried.schedules.iter().filter(is_new).copied().map(Task::Schedule));
    let is_new = |waiting: &&Waiting| !earlier.waits.iter().any(|row| waiting.is(row));
    tasks.extend(tried.waiting.iter().filter(is_new).copied().map(Task::Waits));
    let state = Mutex::new((earlier, Progress::of("rows", tasks.len() as u64), 0));
    let threads = args.jobs.unwrap_or(0) as usize;
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("failed to start threads")?;
    pool.install(|| {
        tasks.par_iter().try_for_each(|task| -> anyhow::Result<()> {
            if interrupt.is_set() {
                return Ok(());
            }
            let mut made = Results::default();
            match task {
                Task::Errors(who) => errors(*who, log, met, &mut made),
                Task::Schedule(schedule) => {
                    made.schedules.extend(schedule.rows(processors, args.pass, args.copies, log, met))
                }
                Task::Waits(waiting) => {
                    let (rows, curves, cost) = waiting.rows(processors, args.pass, &met.timed(), &log.jobs);
                    made.waits.extend(rows);
                    made.curves.extend(curves);
                    made.wait_costs.push(cost);
                }
            }
            let mut state = state.lock().expect("nobody panics who holds it");
            let (results, progress, done) = &mut *state;
            results.add(made);
            *done += 1;
            progress.set(*done);
            stored::write(&args.out, &tried.sorted(results))
        })
    })?;
    Ok(state.into_inner().expect("nobody panics who holds it").0)
}

impl Tried {
    /// All results, those asked for first, so that the same rows give the same bytes in whichever order they came.
    fn sorted(&self, results: &Results) -> Results {
        let mut sorted = self.of_results(results);
        sorted.add_others(results);
        sorted
    }
}

/// How far the predictions of one are from what happened.
fn errors(who: Who, log: &Log, met: &Earlier, made: &mut Results) {
    let Who::Predictor(predictor) = who else { return };
    // Nothing is exceeded here: who corrects does not matter.
    let mut estimator = met.met_by(Forecast { predictor, correction: Correction::User });
    let begun = Instant::now();
    let predicted = predictions_by(estimator.as_mut(), &log.happened);
    let took = begun.elapsed();
    let pairs: Vec<(Span, Span)> =
        predicted.into_iter().zip(&log.happened).map(|(predicted, job)| (predicted, job.run_time)).collect();
    for (part, range) in schedules::parts(pairs.len()) {
        if let Some(errors) = Errors::of(&pairs[range]) {
            made.errors.push(ErrorRow::of(who.to_string(), part, errors));
        }
    }
    made.curves.extend(CurveRow::all(&who.to_string(), "", &pairs));
    let cost_us = took.as_secs_f64() * 1e6 / pairs.len().max(1) as f64;
    made.costs.push(Cost { predictor: who.to_string(), predictions: pairs.len(), cost_us });
}

/// The estimator of a queue, if there is one.
fn forecast(who: Who, correction: Option<Correction>) -> Option<Forecast> {
    match who {
        Who::Predictor(predictor) => correction.map(|correction| Forecast { predictor, correction }),
        Who::Exact => None,
    }
}
