//! `stealgrid bench external`: decisions per second of a broker that is a command.

use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use anyhow::Context as _;
use brokers::allocation::{Allocator, Book};
use brokers::{Broker as _, External as _};
use clap::Args;
use experiments::exit;
use external::{Command, Settings};
use scheduler::{Broker, BrokerRule, Grid, LocalScheduler, Pass, Time};

use super::broker::{SIZES, book, job};

/// Jobs that each site has meanwhile: the load that is told has some digits.
const JOBS_PER_SITE: u32 = 100;

/// Measure how many decisions a command makes per second through its pipes, beside the rule MPL in this process.
///
/// A decision is a line with a job and seven sites, and a line with the answer. Without --command the fastest that could be
/// answers: a program that looks for the first site that is admissible and for nothing else. Rates depend on the machine and
/// on what else it does; the ratio less so. Build with --release.
///
/// Exit codes: 0 done, 1 the command failed, 2 usage, 5 there are fewer decisions per second than --rate-min.
#[derive(Clone, Debug, Args)]
pub(super) struct ExternalBenchArgs {
    /// Decisions that are counted, in each of the rounds
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    decisions: u32,

    /// Rounds, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// The command, as behind broker:exec= [default: the fastest client there is]
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,

    /// Fail if the command makes fewer decisions per second
    #[arg(long, value_name = "RATE")]
    rate_min: Option<f64>,
}

/// Runs the command.
///
/// # Errors
/// If the command cannot be started, or fails.
pub(super) fn run(args: &ExternalBenchArgs) -> anyhow::Result<u8> {
    let command = match &args.command {
        Some(command) => command.clone(),
        None => {
            let program = std::env::current_exe().context("find this program")?;
            format!("\"{}\" bench external-client", program.display())
        }
    };
    let settings = Settings { broker: Some(Command::parse(&command)?), ..Settings::default() };
    let grid = Grid::of_sizes(&SIZES).context("make the grid")?;
    let mut books: Vec<Book> =
        SIZES.iter().zip(0..).map(|(&size, place)| book(size, place, JOBS_PER_SITE)).collect();
    let new = |rule| Allocator::new(Broker::new(rule), &SIZES, LocalScheduler::Easy, Pass::Batch, 1, 0);
    let mut asked = new(BrokerRule::External);
    asked.ask(settings.broker(&grid, 0));
    // Its start is not a decision.
    rate(&mut asked, &mut books, 1)?;
    let mut own = new(BrokerRule::ParallelLoad);
    let (mut through, mut within) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        through.push(rate(&mut asked, &mut books, args.decisions)?);
        within.push(rate(&mut own, &mut books, args.decisions)?);
    }
    let (through, within) = (median(through), median(within));
    println!("command                `{command}`");
    println!("through pipes          {through:>12.0} decisions per second, {:.1} us each", 1e6 / through);
    println!("broker:mpl in process  {within:>12.0} decisions per second, {:.3} us each", 1e6 / within);
    println!("ratio                  {:>12.0}", within / through);
    Ok(match args.rate_min {
        Some(least) if through < least => exit::OUT_OF_TOLERANCE,
        _ => exit::DONE,
    })
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Decisions per second.
fn rate(allocator: &mut Allocator, books: &mut [Book], decisions: u32) -> anyhow::Result<f64> {
    let begun = Instant::now();
    for number in 0..decisions {
        let now = Time::from_micros(1_000_000 + i64::from(number));
        allocator.choose_knowing(now, &job(1_000_000 + u64::from(number), 1 + number % 1368), books);
    }
    let took = begun.elapsed();
    if let Some(cause) = allocator.failure() {
        anyhow::bail!("the command failed: {}", cause.name());
    }
    Ok(f64::from(decisions) / took.as_secs_f64())
}

/// Answers each line with the first admissible site.
///
/// # Errors
/// If a line is not what it should be, or cannot be written.
pub(super) fn client() -> anyhow::Result<u8> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut line, mut answer) = (String::new(), String::new());
    let after = |text: &str, key: &str| text.find(key).map(|place| place + key.len());
    while input.read_line(&mut line)? > 0 {
        answer.clear();
        answer.push_str("{\"events\":[");
        if let Some(job) = after(&line, "\"job_id\":\"") {
            let job = line[job..].split('"').next().unwrap_or_default();
            let upto = line.find("\"admissible\":true").context("no site is admissible")?;
            let name = line[..upto].rfind("{\"name\":\"").context("a site has no name")?;
            let name = line[name + "{\"name\":\"".len()..].split('"').next().unwrap_or_default();
            answer.push_str("{\"type\":\"EXECUTE_JOB\",\"data\":{\"job_id\":\"");
            answer.push_str(job);
            answer.push_str("\",\"site\":\"");
            answer.push_str(name);
            answer.push_str("\"}}");
        }
        answer.push_str("]}\n");
        output.write_all(answer.as_bytes())?;
        output.flush()?;
        line.clear();
    }
    Ok(exit::DONE)
}
