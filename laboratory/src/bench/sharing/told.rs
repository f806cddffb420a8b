//! What `bench sharing` says: a table, and files with the machine that it was measured on.

use std::path::Path;
use std::time::SystemTime;

use anyhow::Context as _;
use experiments::terminal::say;
use outputs::table::Table;
use report::sweep::sharing::{Point, Series, figure};
use serde::Serialize;

use super::load::PERIOD;
use super::{Row, SharingBenchArgs};

/// How it was measured, and on what.
#[derive(Clone, Debug, Serialize)]
pub(super) struct About {
    version: &'static str,
    /// When, by the clock of the machine.
    measured_at: String,
    processor: usize,
    seconds: f64,
    rounds: u32,
    period_s: f64,
    machine: Machine,
}

/// What this machine says of itself; empty where it does not.
#[derive(Clone, Debug, Serialize)]
struct Machine {
    model: String,
    processors: usize,
    kernel: String,
    memory: String,
    /// Jobs that ran or could have, in the mean of a minute: before and after, our own included.
    load_average: [Option<f64>; 2],
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    about: &'a About,
    error_mean: f64,
    error_most: f64,
    rows: &'a [Row],
}

impl About {
    pub(super) fn of(args: &SharingBenchArgs, processor: usize, load_average: [Option<f64>; 2]) -> About {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let of = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
            line.map_or_else(String::new, |(_, value)| value.trim().to_string())
        };
        About {
            version: env!("CARGO_PKG_VERSION"),
            measured_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            processor,
            seconds: args.seconds,
            rounds: args.rounds,
            period_s: PERIOD.as_secs_f64(),
            machine: Machine {
                model: of(&text("/proc/cpuinfo"), "model name"),
                processors: std::thread::available_parallelism().map_or(0, usize::from),
                kernel: text("/proc/sys/kernel/osrelease").trim().to_string(),
                memory: of(&text("/proc/meminfo"), "MemTotal"),
                load_average,
            },
        }
    }
}

/// Jobs that ran or could have, in the mean of the last minute.
pub(super) fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// Mean and most of the errors, without their signs.
fn errors(rows: &[Row]) -> (f64, f64) {
    let errors = || rows.iter().map(|row| row.error().abs());
    (errors().sum::<f64>() / rows.len().max(1) as f64, errors().fold(0.0, f64::max))
}

pub(super) fn print(rows: &[Row], about: &About) -> anyhow::Result<()> {
    let Machine { model, processors, kernel, load_average, .. } = &about.machine;
    let load = load_average.map(|load| load.map_or("?".to_string(), |load| format!("{load:.1}")));
    let mut text = format!(
        "processor {} of {processors} ({model}), Linux {kernel}; load average {} before and {} after\n\n",
        about.processor, load[0], load[1]
    );
    let mut table = Table::new([
        "tasks",
        "user wants",
        "user had",
        "others had",
        "slower",
        "predicted",
        "error",
        "unequal",
        "calls slower",
        "predicted",
    ]);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let times = |value: Option<f64>| value.map_or("-".to_string(), |value| format!("{value:.2}"));
    for row in rows {
        table.push([
            row.tasks.to_string(),
            percent(row.duty),
            row.user_had.map_or("-".to_string(), percent),
            percent(row.foreign),
            format!("{:.2}", row.slowdown[1]),
            format!("{:.2}", row.predicted),
            format!("{:+.1} %", 100.0 * row.error()),
            format!("{:.2}", row.unequal),
            times(row.latency),
            times(row.latency_predicted),
        ]);
    }
    text += &table.text();
    let (mean, most) = errors(rows);
    text += &format!(
        "\nslow-downs are {} from what is predicted in the mean, {} at most\n",
        percent(mean),
        percent(most)
    );
    say(&text)?;
    Ok(())
}

pub(super) fn write(out: &Path, rows: &[Row], about: &About) -> anyhow::Result<()> {
    experiments::folder::make(out)?;
    let write = |name: &str, bytes: &[u8]| {
        let path = out.join(name);
        outputs::replace::write(&path, |file| file.write_all(bytes))
            .with_context(|| format!("failed to write {}", path.display()))
    };
    write("sharing.csv", csv(rows).as_bytes())?;
    let (error_mean, error_most) = errors(rows);
    let document = Document { about, error_mean, error_most, rows };
    write("sharing.json", format!("{}\n", serde_json::to_string_pretty(&document)?).as_bytes())?;
    let note = "Time is what tasks and user had of the processor: other programs do not count.";
    let drawn = figure("Tasks that share a processor", note, &series(rows));
    write("sharing.svg", drawn.standalone().as_bytes())?;
    say(&format!("results: {}\n", out.display()))?;
    Ok(())
}

fn csv(rows: &[Row]) -> String {
    let mut text = "tasks,duty,user_had,foreign,slowdown_least,slowdown,slowdown_most,predicted,error,unequal,latency,latency_predicted\n"
        .to_string();
    let given = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
    for row in rows {
        let [least, median, most] = row.slowdown;
        text += &format!(
            "{},{},{},{:.4},{least:.4},{median:.4},{most:.4},{:.4},{:.4},{:.4},{},{}\n",
            row.tasks,
            row.duty,
            given(row.user_had),
            row.foreign,
            row.predicted,
            row.error(),
            row.unequal,
            given(row.latency),
            given(row.latency_predicted)
        );
    }
    text
}

/// A line for each duty, in the order given.
fn series(rows: &[Row]) -> Vec<Series> {
    let mut all: Vec<(f64, Series)> = Vec::new();
    for row in rows {
        let point = Point { tasks: row.tasks, measured: row.slowdown, predicted: row.predicted };
        match all.iter_mut().find(|(duty, _)| duty.to_bits() == row.duty.to_bits()) {
            Some((_, series)) => series.points.push(point),
            None => {
                let name = match row.duty {
                    0.0 => "nobody else".to_string(),
                    duty => format!("a user of {} %", (100.0 * duty).round()),
                };
                all.push((row.duty, Series { name, points: vec![point] }));
            }
        }
    }
    all.into_iter().map(|(_, series)| series).collect()
}
