//! `stealgrid trace`: look at workload logs, check, convert and generate them.
//!
//! What can be typed, and which module does it. Reading, preparation and models are in the `workload` crate.

mod convert;
mod generate;
mod info;
mod switches;
mod validate;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use experiments::exit;
use experiments::progress::{self, Progress};
use workload::Trace;
use workload::columns::Map;
use workload::prepare::{PrepareOptions, Prepared};

/// Look at, check, convert and generate workload traces.
///
/// Logs may be SWF, GWF, OpenDC's CSV, Batsim JSON or dumps of Slurm's sacct (--parsable2 or -p), plain or compressed by gzip or zstd:
/// format and compression are recognized by content. With a map of its columns, --columns, a log may be any CSV.
#[derive(Debug, Args)]
pub struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// Say what is in a log: machine, clock, jobs, load, awkward values, sizes.
    Info(info::InfoArgs),
    /// Read and prepare a log, and list what was repaired, dropped or refused. Exit code 3 if refused.
    Validate(validate::ValidateArgs),
    /// Rewrite a log in another format, whole or a slice of it, as it is or prepared.
    Convert(convert::ConvertArgs),
    /// Make up a log from a statistical model. The same arguments give the same bytes.
    Generate(generate::GenerateArgs),
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Terminal,
    /// One JSON object.
    Json,
}

/// Runs a `trace` command and returns its exit code.
///
/// # Errors
/// If output cannot be written. What is wrong with an input is said on stderr, and the exit code is
/// [`exit::INPUT`].
pub fn run(args: TraceArgs) -> anyhow::Result<u8> {
    let done = match args.command {
        TraceCommand::Info(args) => info::run(&args),
        TraceCommand::Validate(args) => validate::run(&args),
        TraceCommand::Convert(args) => convert::run(&args),
        TraceCommand::Generate(args) => generate::run(&args),
    };
    match done {
        Ok(code) => Ok(code),
        Err(Failure::Input(error)) => {
            eprintln!("error: failed to {error:#}");
            Ok(exit::INPUT)
        }
        Err(Failure::Usage(error)) => {
            eprintln!("error: failed to {error:#}");
            Ok(exit::USAGE)
        }
        Err(Failure::Other(error)) => Err(error),
    }
}

/// Why a command stopped, by whose fault.
enum Failure {
    /// A file says something impossible.
    Input(anyhow::Error),
    /// The command line asks for something impossible.
    Usage(anyhow::Error),
    /// Whatever is neither: the system, or this program.
    Other(anyhow::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Other(error.into())
    }
}

/// Reads a log, and says how far it is in the bytes of its file.
fn read(path: &Path, reading: &switches::ReadArgs) -> Result<Trace, Failure> {
    if let Some(map) = &reading.columns {
        let name = map.display().to_string();
        let text = experiments::limits::read_text(map, experiments::limits::EXPERIMENT);
        let text = text.with_context(|| format!("read columns {name}")).map_err(Failure::Input)?;
        let map = Map::parse(&name, &text).map_err(|error| Failure::Input(error.into()))?;
        let read = progress::read_csv(path, &experiments::limits::of_logs(), &map);
        return read.map_err(|error| Failure::Input(error.into()));
    }
    progress::read_log(path, &experiments::limits::of_logs(), reading.times_in.as_ref())
        .map_err(|error| Failure::Input(error.into()))
}

/// Prepares the jobs of a log, and says how far it is.
fn prepare(trace: &Trace, options: &PrepareOptions, widest: u32) -> Result<Prepared, Failure> {
    progress::prepare(trace, options, widest).map_err(|error| Failure::Input(error.into()))
}

/// A log that is written with progress: a line is a job.
struct Counted<W> {
    out: W,
    lines: u64,
    progress: Progress,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.lines += bytes[..written].iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.progress.set(self.lines);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Calls `write` with the file, or with stdout if there is none, and says how many of these jobs it has.
fn write_to(
    path: Option<&PathBuf>,
    jobs: usize,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    match path {
        None => {
            let mut out = BufWriter::new(counted(io::stdout().lock(), jobs));
            let written = write(&mut out).and_then(|()| out.flush());
            match written {
                // The reader of a pipe has seen enough.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => Ok(written?),
            }
        }
        Some(path) => {
            let file = File::create(path)
                .with_context(|| format!("create {}; does the folder exist?", path.display()))
                .map_err(Failure::Usage)?;
            let is_file = file.metadata().is_ok_and(|about| about.is_file());
            let mut out = BufWriter::new(counted(file, jobs));
            let written = write(&mut out).and_then(|()| out.flush());
            if written.is_err() && is_file {
                // The beginning of a log is a log, and would pass for the whole. The first failure is the one to tell.
                let _ = std::fs::remove_file(path);
            }
            written.with_context(|| format!("failed to write {}", path.display())).map_err(Failure::Other)
        }
    }
}

fn counted<W>(out: W, jobs: usize) -> Counted<W> {
    Counted { out, lines: 0, progress: Progress::of("lines written", jobs as u64) }
}

fn print(text: &str) -> Result<(), Failure> {
    write_to(None, text.lines().count(), |out| out.write_all(text.as_bytes()))
}

fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: TraceArgs,
    }

    fn run_line(words: &[&str]) -> u8 {
        let args = Line::try_parse_from([&["trace"], words].concat()).unwrap().args;
        run(args).unwrap()
    }

    /// A file of this test alone, in the folder for temporary files.
    fn temporary(name: &str, text: &str) -> String {
        let path = std::env::temp_dir().join(format!("stealgrid-trace-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    }

    const LOG: &str = "; MaxProcs: 8\n\
                       1 0 -1 60 2 -1 -1 2 120 -1 1 1 1 -1 2 1 -1 -1\n\
                       2 90000 -1 60 4 -1 -1 4 30 -1 1 1 1 -1 1 1 -1 -1\n";

    #[test]
    fn a_refused_log_has_the_exit_code_of_bad_input() {
        let good = temporary("good.swf", LOG);
        let bad = temporary("bad.swf", &LOG.replace("60 2", "sixty 2"));

        assert_eq!(run_line(&["validate", &good]), exit::DONE);
        assert_eq!(run_line(&["validate", &bad, &good]), exit::INPUT);
        assert_eq!(run_line(&["validate", &good, "--widest", "3", "--refuse-too-wide"]), exit::INPUT);
        assert_eq!(run_line(&["info", &bad]), exit::INPUT);
        assert_eq!(run_line(&["info", "/no/such/file"]), exit::INPUT);
        assert_eq!(run_line(&["generate", "--processors", "4", "--jobs", "0"]), exit::USAGE);
        fs::remove_file(good).unwrap();
        fs::remove_file(bad).unwrap();
    }

    /// SWF to GWF and Batsim and back: what a scheduler sees is the same each time.
    #[test]
    fn conversions_keep_what_schedulers_see() {
        let log = temporary("log.swf", LOG);
        for to in ["swf", "gwf", "batsim", "batsim-v4"] {
            let out = temporary(to, "");
            let arguments = ["convert", &log, "--to", to, "--out", &out, "--origin", "queue", "--week", "1"];
            assert_eq!(run_line(&arguments), exit::DONE);

            let trace = workload::read(&out).unwrap();
            let origin = if to == "swf" { "queue" } else { "recorded" };
            let options = workload::prepare::PrepareOptions {
                origin: origin.parse().unwrap(),
                ..workload::prepare::PrepareOptions::default()
            };
            let jobs = workload::prepare(&trace, &options, 8).unwrap().jobs;
            let seen: Vec<_> = jobs
                .iter()
                .map(|job| {
                    (job.spec.id.0, job.spec.processors, job.spec.origin.0, job.run_time.as_secs_f64())
                })
                .collect();

            assert_eq!(seen, [(1, 2, 2, 60.0), (2, 4, 1, 60.0)], "{to}");
            assert_eq!(trace.processors(), 8, "{to}");
            fs::remove_file(out).unwrap();
        }
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn the_header_of_a_part_says_how_many_jobs_it_has() {
        let log = temporary("whole.swf", &format!("; MaxJobs: 2\n; MaxRecords: 2\n{LOG}"));
        let out = temporary("part.swf", "");
        for (part, jobs) in [(&["--count", "1"][..], 1), (&[], 2)] {
            assert_eq!(
                run_line(&[&["convert", &log, "--to", "swf", "--out", &out], part].concat()),
                exit::DONE
            );
            let written = fs::read_to_string(&out).unwrap();
            let header = format!("; MaxJobs: {jobs}\n; MaxRecords: {jobs}\n");
            assert!(written.starts_with(&header), "{written}");
        }
        fs::remove_file(log).unwrap();
        fs::remove_file(out).unwrap();
    }

    /// Half past twelve in New York, and of whom is not said.
    #[test]
    fn a_dump_of_slurm_is_converted_in_the_zone_that_is_given_and_without_names() {
        let dump = temporary(
            "dump.txt",
            "JobID|User|Submit|Start|End|ElapsedRaw|NCPUS|State|\n\
             70|anna|2024-03-01T12:30:00|2024-03-01T12:30:09|2024-03-01T12:31:09|60|4|COMPLETED|\n\
             70.batch||2024-03-01T12:30:00|2024-03-01T12:30:09|2024-03-01T12:31:09|60|4|COMPLETED|\n",
        );
        let out = temporary("dump.swf", "");
        let zone = ["--times-in", "America/New_York"];
        let arguments = [&["convert", &dump, "--to", "swf", "--out", &out], &zone[..]].concat();

        assert_eq!(run_line(&arguments), exit::DONE);
        let named = fs::read_to_string(&out).unwrap();
        assert_eq!(run_line(&[&arguments[..], &["--anonymize"]].concat()), exit::DONE);
        let nameless = fs::read_to_string(&out).unwrap();

        let job = "0 9 60 4 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1 -1\n";
        assert!(
            named.contains("; Note: user 1 is anna\n") && named.ends_with(&format!("\n70 {job}")),
            "{named}"
        );
        let header = "; TimeZoneString: America/New_York\n; UnixStartTime: 1709314200\n";
        assert_eq!(nameless, format!("{header}1 {job}"));
        // Nobody in it asked for a time, and nobody has said what schedulers are told instead.
        assert_eq!(run_line(&["validate", &dump]), exit::INPUT);
        assert_eq!(run_line(&["validate", &dump, "--missing-estimate", "run-time"]), exit::DONE);
        fs::remove_file(dump).unwrap();
        fs::remove_file(out).unwrap();
    }
}
