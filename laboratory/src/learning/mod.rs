//! `stealgrid learning`: the experiments of Costa 2007 with rules that learn, beside what he printed.
//!
//! Rounds and verdicts are in [`claims::learning`]. Here are rows as files ([`command`]), tables (`tables`), and the printed
//! numbers (`published`).

mod published;
mod rounds;
mod tables;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use claims::learning::{Background, Plan, Ratio, Row, Unused, run};
use clap::Args;
use experiments::exit;
use experiments::terminal::{command_line, say};
use scheduler::LocalScheduler;

/// Run the experiments of a published system with brokers that learn where jobs do well, and say what becomes of its claims.
///
/// Bags of 500 and 1,000 tasks over 4 to 6 opaque sites with local users, in virtual time and without messages: round-robin,
/// AG and MQD with five settings and four time-outs, in paired rounds; then what makes the choice of a site matter, and
/// regret by how late feedback comes. The same seed gives the same bytes on any number of threads. docs/LEARNING.md says what
/// is modelled.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input.
#[derive(Clone, Debug, Args)]
pub struct LearningArgs {
    /// Rounds of each scenario
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    rounds: u64,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The scheduler of sites
    #[arg(long, value_name = "NAME", default_value = "fcfs")]
    local: LocalScheduler,

    /// Local users that the rules of a round meet: the same for all, or their own
    #[arg(long, value_name = "RULE", default_value = "same")]
    background: Background,

    /// Sites that got no job, in the mean idleness: idle all the time, or left-out
    #[arg(long, value_name = "RULE", default_value = "idle")]
    unused: Unused,

    /// Mean response ratio of the rows: execution over turnaround as printed, or inverse
    #[arg(long, value_name = "RULE", default_value = "printed")]
    ratio: Ratio,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,

    /// Write the rows here, too: CSV, compressed by zstd if the name ends in .zst
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The commit of this program, for the first line of that file
    #[arg(long, value_name = "SHA", requires = "out")]
    commit: Option<String>,

    /// Run nothing: show the rows of this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "rounds", "seed", "local", "background", "unused", "ratio", "jobs"])]
    from: Option<PathBuf>,

    /// Run nothing: write each run of the plan into this folder, as TOML with its jobs as SWF
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "from", "markdown"])]
    write_rounds: Option<PathBuf>,

    /// Run such files again, and print their rows as CSV
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["out", "from", "markdown", "write_rounds", "rounds", "seed", "local", "background", "unused", "ratio", "jobs"])]
    replay: Vec<PathBuf>,

    /// Tables as Markdown
    #[arg(long)]
    markdown: bool,
}

/// Runs the command.
///
/// # Errors
/// If rows cannot be written.
pub fn command(args: &LearningArgs) -> anyhow::Result<u8> {
    if args.local == LocalScheduler::External {
        eprintln!("error: failed to understand --local: nobody else decides here; take another one");
        return Ok(exit::USAGE);
    }
    if let Some(dir) = &args.write_rounds {
        let count = rounds::write(&plan(args), dir)?;
        say(&format!("{count} runs: {}\n", dir.display()))?;
        return Ok(exit::DONE);
    }
    if !args.replay.is_empty() {
        return again(&args.replay);
    }
    let rows = match &args.from {
        Some(path) => match read(path) {
            Ok(rows) => rows,
            Err(error) => {
                eprintln!("error: failed to read {}: {error:#}", path.display());
                return Ok(exit::INPUT);
            }
        },
        None => made(args)?,
    };
    let mut text = String::new();
    for (title, table) in tables::sections(&rows) {
        let table = if args.markdown { table.markdown() } else { table.text() };
        text += &format!("{title}.\n\n{table}\n");
    }
    say(&text)?;
    Ok(exit::DONE)
}

fn plan(args: &LearningArgs) -> Plan {
    let LearningArgs { rounds, seed, local, background, unused, ratio, .. } = *args;
    Plan { rounds, seed, local, background, unused, ratio }
}

/// Runs files of rounds again.
fn again(files: &[PathBuf]) -> anyhow::Result<u8> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    for path in files {
        match rounds::replay(path) {
            Ok(row) => csv.serialize(row)?,
            Err(error) => {
                eprintln!("error: failed to run {} again: {error:#}", path.display());
                return Ok(exit::INPUT);
            }
        }
    }
    say(&String::from_utf8(csv.into_inner()?)?)?;
    Ok(exit::DONE)
}

fn made(args: &LearningArgs) -> anyhow::Result<Vec<Row>> {
    args.out.as_deref().map(experiments::folder::make_above).transpose()?;
    let threads = args.jobs.unwrap_or(0) as usize;
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("failed to start threads")?;
    let rows = pool.install(|| run(&plan(args))).map_err(anyhow::Error::msg)?;
    if let Some(path) = &args.out {
        let bytes = bytes(&rows, path, args.commit.as_deref())?;
        outputs::replace::write(path, |file| file.write_all(&bytes))
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(rows)
}

/// Level of compression; the file is small and kept for long.
const LEVEL: i32 = 19;

fn bytes(rows: &[Row], path: &Path, commit: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let commit = commit.map_or(String::new(), |commit| format!(", commit {commit}"));
    writeln!(text, "# {}, version {}{commit}", command_line(), env!("CARGO_PKG_VERSION"))?;
    let mut csv = csv::Writer::from_writer(text);
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    let text = csv.into_inner().map_err(|error| anyhow::anyhow!("{error}"))?;
    let is_compressed = path.extension().is_some_and(|end| end == "zst");
    Ok(if is_compressed { zstd::encode_all(&text[..], LEVEL)? } else { text })
}

fn read(path: &Path) -> anyhow::Result<Vec<Row>> {
    let text = workload::source::decompress(workload::source::open(path)?, &experiments::limits::of_logs())?;
    let mut csv = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text);
    let rows = csv.deserialize().collect::<Result<Vec<Row>, csv::Error>>()?;
    anyhow::ensure!(!rows.is_empty(), "there is no row in it; write one with stealgrid learning --out");
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: LearningArgs,
    }

    #[test]
    fn rows_are_stored_and_read_again_and_make_every_table() {
        // What such a run makes is in the tests of the claims; here two of the rounds that the page tells of.
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/data/learning.csv.zst");
        let mut rows = read(&stored).unwrap();
        rows.retain(|row| row.round <= 2);
        let folder = tempfile::tempdir().unwrap();
        for name in ["rows.csv", "rows.csv.zst"] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes(&rows, &path, Some("abc1234")).unwrap()).unwrap();
            assert!(read(&path).unwrap() == rows, "{name} changes rows");
        }
        let text = std::fs::read_to_string(folder.path().join("rows.csv")).unwrap();
        assert!(text.lines().next().unwrap().ends_with(", commit abc1234"));
        for (title, table) in tables::sections(&rows) {
            let (header, cells) = table.cells();
            assert!(!cells.is_empty(), "{title} is empty");
            let own = header.iter().position(|name| name == "printed").unwrap_or(header.len());
            assert!(cells.iter().all(|row| row[..own].iter().all(|cell| cell != "-")), "{title} has gaps");
        }
        std::fs::write(folder.path().join("no.csv"), "a,b\n1,2\n").unwrap();
        assert!(read(&folder.path().join("no.csv")).is_err());
        assert!(Line::try_parse_from(["learning", "--from", "a", "--rounds", "3"]).is_err());
    }
}
