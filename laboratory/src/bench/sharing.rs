//! `stealgrid bench sharing`: tasks and a local user on a real processor, beside what the model of shared nodes says of them.
//!
//! `load` makes the load, `told` says what came of it. The model is that which simulations use: [`scheduler::sharing::processing`] for tasks,
//! and the reading of [`analysis::sharing::intrusion`] for calls of local users.

mod load;
mod told;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use experiments::exit;
use scheduler::sharing::processing;
use serde::Serialize;

use self::load::{Call, Observed, PERIOD, observe, processors};

/// How long each processor is looked at to find the idlest.
const LOOK: Duration = Duration::from_millis(400);
/// The longest that everything may take, so that nobody waits in vain for numbers that were typed wrong.
const LONGEST: Duration = Duration::from_secs(3600);

/// Measure how much tasks slow each other and a local user down on a processor of this machine, beside what the model of shared nodes predicts.
///
/// Threads that do nothing but compute are on one processor, 1 to --tasks of them, alone and beside a thread that
/// computes for a part of each 20 ms and sleeps for the rest, as local users do in the model. How much slower they were is the time in which
/// any of them had the processor, over what their work takes alone: other programs do not count. Where these have more than --busy-max of the
/// processor nothing is measured.
///
/// Exit codes: 0 done, 1 the measurement failed, 2 usage, 6 the machine is too busy.
#[derive(Clone, Debug, Args)]
pub(super) struct SharingBenchArgs {
    /// The most tasks at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    tasks: u32,

    /// Parts of a processor that the local user wants, each from 0 (nobody) to 0.9
    #[arg(long, value_name = "X,X,…", value_delimiter = ',', default_value = "0,0.15,0.4", value_parser = duty)]
    duties: Vec<f64>,

    /// Seconds of each measurement
    #[arg(long, value_name = "S", default_value_t = 1.5, value_parser = seconds)]
    seconds: f64,

    /// Measurements of each kind
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// The processor, from 0; the one with least other work if not given
    #[arg(long, value_name = "N")]
    processor: Option<usize>,

    /// Measure nothing if other programs have more than this part of the processor
    #[arg(long, value_name = "X", default_value_t = 0.25, value_parser = duty)]
    busy_max: f64,

    /// Write sharing.csv, sharing.json and sharing.svg into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn duty(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "write a number, as in 0.15".to_string())?;
    if (0.0..=0.9).contains(&value) { Ok(value) } else { Err("write a number from 0 to 0.9".to_string()) }
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "write a number of seconds, as in 1.5".to_string())?;
    if (0.1..=60.0).contains(&value) { Ok(value) } else { Err("write from 0.1 to 60 seconds".to_string()) }
}

/// One kind of load, measured several times.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    /// Tasks that compute all the time.
    tasks: u32,
    /// The part of the processor that the local user wants.
    duty: f64,
    /// Which other programs had, in the mean of the measurements: it counts as no time.
    foreign: f64,
    /// How many times slower the tasks were than alone: the least, the median and the most of the measurements, each a mean over the tasks.
    slowdown: [f64; 3],
    /// What SDPN says: tasks over what the local user leaves (Lérida 3.2, 3.3).
    predicted: f64,
    /// How many times slower the slowest task was than the fastest, at most.
    unequal: f64,
    /// The part of the processor that the local user had, in the mean.
    user_had: Option<f64>,
    /// How many times longer its calls took than what they computed, in the median of the measurements.
    latency: Option<f64>,
    /// What the reading of the intrusion says of that: 1 and one for each task.
    latency_predicted: Option<f64>,
}

impl Row {
    /// Measured over predicted slow-down, less 1.
    fn error(&self) -> f64 {
        self.slowdown[1] / self.predicted - 1.0
    }
}

/// Runs the command.
///
/// # Errors
/// If nothing can be measured or written.
pub(super) fn run(args: &SharingBenchArgs) -> anyhow::Result<u8> {
    if args.took() > LONGEST {
        eprintln!(
            "error: that would take {} s, more than {} s: take fewer rounds, tasks or duties, or a shorter --seconds",
            args.took().as_secs(),
            LONGEST.as_secs()
        );
        return Ok(exit::USAGE);
    }
    let allowed = processors()?;
    let candidates = match args.processor {
        Some(processor) if !allowed.contains(&processor) => {
            eprintln!(
                "error: this process may not use processor {processor}; --processor is one of {allowed:?}"
            );
            return Ok(exit::USAGE);
        }
        Some(processor) => vec![processor],
        None => allowed,
    };
    let (processor, foreign) = idlest(&candidates)?;
    if foreign > args.busy_max {
        eprintln!(
            "error: other programs have {:.0} % of processor {processor}, the idlest, and with more than {:.0} % nothing is measured: end \
             them, wait, or give --busy-max",
            100.0 * foreign,
            100.0 * args.busy_max
        );
        return Ok(exit::NOT_MEASURED);
    }
    let load_before = told::load_average();
    let rows = measure(args, processor)?;
    let about = told::About::of(args, processor, [load_before, told::load_average()]);
    told::print(&rows, &about)?;
    if let Some(out) = &args.out {
        told::write(out, &rows, &about)?;
    }
    Ok(exit::DONE)
}

/// The processor with least other work, and the part of it that this has beside a task of ours.
fn idlest(candidates: &[usize]) -> anyhow::Result<(usize, f64)> {
    let mut least: Option<(usize, f64)> = None;
    for &processor in candidates {
        let foreign = observe(processor, 1, None, LOOK)?.foreign();
        if least.is_none_or(|(_, before)| foreign < before) {
            least = Some((processor, foreign));
        }
    }
    least.context("there is a processor")
}

impl SharingBenchArgs {
    /// How long all measurements take.
    fn took(&self) -> Duration {
        let each = 1 + self.tasks as usize * self.duties.len();
        Duration::from_secs_f64(self.seconds * f64::from(self.rounds) * each as f64)
    }
}

/// What was seen of one kind of load in one round.
#[derive(Clone, Debug)]
struct Seen {
    foreign: f64,
    slowdown: f64,
    unequal: f64,
    user_had: f64,
    latency: Option<f64>,
}

fn measure(args: &SharingBenchArgs, processor: usize) -> anyhow::Result<Vec<Row>> {
    let window = Duration::from_secs_f64(args.seconds);
    let kinds: Vec<(f64, u32)> =
        args.duties.iter().flat_map(|&duty| (1..=args.tasks).map(move |tasks| (duty, tasks))).collect();
    let mut seen: Vec<Vec<Seen>> = vec![Vec::new(); kinds.len()];
    for _ in 0..args.rounds {
        // Anew in each round: the speed of a processor changes with its temperature.
        let alone = observe(processor, 1, None, window)?;
        let rate = alone.tasks[0].units as f64 / alone.tasks[0].ran.as_secs_f64();
        for (&(duty, tasks), seen) in kinds.iter().zip(&mut seen) {
            let units = (duty * PERIOD.as_secs_f64() * rate).round() as u64;
            let user = (duty > 0.0).then_some(units.max(1));
            seen.push(Seen::of(&observe(processor, tasks, user, window)?, rate));
        }
    }
    Ok(kinds.into_iter().zip(seen).map(|((duty, tasks), seen)| row(tasks, duty, &seen)).collect())
}

impl Seen {
    /// Of tasks on a processor that computes so many units in a second that it is had.
    fn of(observed: &Observed, rate: f64) -> Seen {
        let ran = observed.ran().as_secs_f64();
        let slowdowns: Vec<f64> =
            observed.tasks.iter().map(|done| ran * rate / done.units.max(1) as f64).collect();
        let most = slowdowns.iter().copied().fold(0.0, f64::max);
        let least = slowdowns.iter().copied().fold(f64::INFINITY, f64::min);
        let user = observed.user.as_ref();
        Seen {
            foreign: observed.foreign(),
            slowdown: slowdowns.iter().sum::<f64>() / slowdowns.len() as f64,
            unequal: most / least,
            user_had: user.map_or(0.0, |(done, _)| done.ran.as_secs_f64() / ran),
            latency: user.and_then(|(_, calls)| latency(calls)),
        }
    }
}

/// How many times longer calls took than what they computed; none without calls.
fn latency(calls: &[Call]) -> Option<f64> {
    let sum = |of: fn(&Call) -> Duration| calls.iter().map(of).sum::<Duration>().as_secs_f64();
    (!calls.is_empty()).then(|| sum(|call| call.latency) / sum(|call| call.ran))
}

fn row(tasks: u32, duty: f64, seen: &[Seen]) -> Row {
    let sorted = |value: &dyn Fn(&Seen) -> f64| {
        let mut values: Vec<f64> = seen.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let mean = |value: &dyn Fn(&Seen) -> f64| seen.iter().map(value).sum::<f64>() / seen.len() as f64;
    let median = |values: &[f64]| (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
    let slowdowns = sorted(&|seen| seen.slowdown);
    let latencies: Option<Vec<f64>> = seen.iter().map(|seen| seen.latency).collect();
    let latency = latencies.map(|mut latencies| {
        latencies.sort_by(f64::total_cmp);
        median(&latencies)
    });
    Row {
        tasks,
        duty,
        foreign: mean(&|seen| seen.foreign),
        slowdown: [slowdowns[0], median(&slowdowns), slowdowns[slowdowns.len() - 1]],
        predicted: processing(1.0, duty, tasks),
        unequal: sorted(&|seen| seen.unequal)[seen.len() - 1],
        user_had: (duty > 0.0).then(|| mean(&|seen| seen.user_had)),
        latency,
        latency_predicted: latency.map(|_| f64::from(1 + tasks)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::load::Done;
    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SharingBenchArgs,
    }

    fn args(line: &[&str]) -> Result<SharingBenchArgs, clap::Error> {
        Line::try_parse_from([&["sharing"], line].concat()).map(|line| line.args)
    }

    #[test]
    fn by_default_it_takes_less_than_a_minute() {
        assert!(args(&[]).unwrap().took() < Duration::from_secs(60));
        let error = args(&["--duties", "0,1"]).unwrap_err().to_string();
        assert!(error.contains("from 0 to 0.9"), "{error}");
        assert!(args(&["--seconds", "0"]).is_err());
        let long = args(&["--seconds", "60", "--rounds", "100"]).unwrap();
        assert_eq!(run(&long).unwrap(), exit::USAGE);
    }

    /// A processor that computes 100 units a second: two tasks had 4 s of 10 each, the user 1, others 1.
    #[test]
    fn slow_downs_are_of_the_work_in_the_time_that_is_ours() {
        let done = |units, ran| Done { units, ran: Duration::from_secs(ran), wall: Duration::from_secs(10) };
        let call = Call { latency: Duration::from_millis(30), ran: Duration::from_millis(10) };
        let observed =
            Observed { tasks: vec![done(400, 4), done(200, 4)], user: Some((done(100, 1), vec![call; 3])) };
        let seen = Seen::of(&observed, 100.0);
        assert!((seen.foreign - 0.1).abs() < 1e-12 && (seen.user_had - 1.0 / 9.0).abs() < 1e-12, "{seen:?}");
        assert!((seen.slowdown - 3.375).abs() < 1e-12 && (seen.unequal - 2.0).abs() < 1e-12, "{seen:?}");
        assert!((seen.latency.unwrap() - 3.0).abs() < 1e-9, "{seen:?}");
        let faster = Seen { slowdown: 2.625, ..seen.clone() };
        let row = row(2, 0.2, &[seen, faster]);
        assert_eq!((row.slowdown, row.latency_predicted), ([2.625, 3.0, 3.375], Some(3.0)));
        assert!((row.predicted - 2.5).abs() < 1e-12 && (row.error() - 0.2).abs() < 1e-12, "{row:?}");
    }

    /// The command itself, for a moment, and however busy this machine is.
    #[test]
    fn what_is_measured_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("sharing");
        let line = [
            "--tasks",
            "2",
            "--duties",
            "0,0.2",
            "--seconds",
            "0.1",
            "--rounds",
            "1",
            "--busy-max",
            "0.9",
            "--out",
        ];
        let args = args(&[&line[..], &[out.to_str().unwrap()]].concat()).unwrap();
        let code = run(&args).unwrap();
        if code == exit::NOT_MEASURED {
            return;
        }
        let text = std::fs::read_to_string(out.join("sharing.csv")).unwrap();
        assert_eq!(text.lines().count(), 1 + 4, "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(out.join("sharing.json")).unwrap()).unwrap();
        assert!(
            json["machine"]["kernel"].is_string() && json["rows"].as_array().unwrap().len() == 4,
            "{json}"
        );
        assert!(std::fs::read_to_string(out.join("sharing.svg")).unwrap().contains("tasks on a processor"));
    }
}
