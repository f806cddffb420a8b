//! `stealgrid report`: what a sweep says, as a page with plots and tables, and as files of plots.

use std::path::{Path, PathBuf};

use anyhow::Context;
use experiments::progress::Progress;
use experiments::terminal::{command_line, say};
use experiments::{exit, folder, limits};
use laboratory::genetic;
use report::sweep::{Figure, PRODUCT, Study, WrittenReport, allocation, figures, html, missing_note, parts};

use super::plots::PlotFile;
use super::source;

/// Show the results of a sweep: every metric against the delay, crossovers, causes, ranks
///
/// Writes index.html, a page that needs nothing else. Plots are part of it and can be saved there; --plots writes them as
/// files, too. What plays which part is said in the section report of the sweep file, or by flags. Of a folder of `stealgrid
/// genetic` the page has measures, convergence, the front of a batch, and its rows as a schedule.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input, 4 the page is written and runs of the sweep failed or are missing.
#[derive(Clone, Debug, clap::Args)]
pub struct ReportArgs {
    /// Database of a sweep, a file that `stealgrid export --format study` wrote, or the folder of a `stealgrid genetic`
    #[arg(value_name = "SWEEP.db")]
    pub database: PathBuf,

    /// Folder of the page [default: out/NAME, of the sweep; else the folder of the allocations]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Also write each plot as a file: svg, png, pdf, or several; png and pdf need a program that was built with them:
    /// --features png, or full
    #[arg(long, value_enum, value_name = "KIND,…", value_delimiter = ',')]
    pub plots: Vec<PlotFile>,

    /// Parameter along the horizontal axis [default: that of the file, else network.delay]
    #[arg(long, value_name = "PARAMETER")]
    pub x: Option<String>,

    /// Strategy that others are compared with [default: that of the file, else local]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// Of a folder of `stealgrid genetic`: the batch whose rows and front are drawn [default: the first]
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,

    /// Of a folder of `stealgrid genetic`: the algorithm whose rows are drawn [default: c1]
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// If a file cannot be written.
pub fn command(args: &ReportArgs) -> anyhow::Result<u8> {
    if let Err(reason) = PlotFile::check(&args.plots) {
        eprintln!("error: {reason}");
        return Ok(exit::USAGE);
    }
    let Made { out, figures, page, is_whole } = match make(args) {
        Ok(made) => made,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    let index = out.join("index.html");
    if !is_page(&index)
        && !genetic::shown::is_folder(&out)
        && let Some(refused) = folder::refused(&out)
    {
        eprintln!("error: {refused}");
        return Ok(exit::INPUT);
    }
    folder::make(&out)?;
    let plots: Vec<(&Figure, PlotFile, PathBuf)> = figures
        .iter()
        .flat_map(|figure| args.plots.iter().map(move |kind| (figure, *kind)))
        .map(|(figure, kind)| (figure, kind, out.join(format!("{}.{}", figure.id, kind.ending()))))
        .collect();
    if !is_page(&index)
        && let Some(foreign) =
            plots.iter().map(|(_, _, path)| path).chain([&index]).find(|path| path.exists())
    {
        eprintln!(
            "error: {} is there already, and not of a report; move it away, or give --out another folder",
            foreign.display()
        );
        return Ok(exit::INPUT);
    }
    write(&index, page.as_bytes())?;
    for (figure, kind, path) in &plots {
        write(path, &kind.of(&figure.standalone())?)?;
    }
    say(&format!("report: {}\n", index.display()))?;
    Ok(if is_whole { exit::DONE } else { exit::INCOMPLETE })
}

/// Whether a file is a page that this command wrote: its folder may be written into again.
fn is_page(path: &Path) -> bool {
    limits::read_text(path, limits::PAGE).is_ok_and(|page| page.contains(PRODUCT))
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, content).with_context(|| format!("failed to write {}", path.display()))
}

/// The plots and the page, and the folder for them.
struct Made {
    out: PathBuf,
    figures: Vec<Figure>,
    page: String,
    /// Whether the runs of the sweep are all there, and none failed.
    is_whole: bool,
}

fn make(args: &ReportArgs) -> anyhow::Result<Made> {
    if genetic::shown::is_folder(&args.database) {
        let shown = genetic::shown::read(&args.database, args.batch, args.algorithm.as_deref())?;
        let out = args.out.clone().unwrap_or_else(|| args.database.clone());
        let (figures, page) = (allocation::figures(&shown), allocation::html(&shown));
        return Ok(Made { out, figures, page, is_whole: true });
    }
    if args.batch.is_some() || args.algorithm.is_some() {
        anyhow::bail!("failed to use --batch and --algorithm: they are of a folder of stealgrid genetic");
    }
    let rows = source::read(&args.database)?;
    let written = source::wishes(&rows)?;
    let wishes = WrittenReport {
        x: args.x.clone().or(written.x),
        baseline: args.baseline.clone().or(written.baseline),
        ..written
    };
    let study = Study::new(rows, &wishes).map_err(|error| anyhow::anyhow!("failed to {error}"))?;
    let left_out = study.left_out();
    if let Some(note) = missing_note(&study.rows).or_else(|| left_out.clone()) {
        eprintln!("note: {note}: points are means over the repetitions that are");
    }
    let mut progress = Progress::of("parts of the page", parts(&study) as u64);
    let mut done = 0;
    let mut told = || {
        done += 1;
        progress.set(done);
    };
    let figures = figures(&study, &mut told);
    let page = html(&study, &figures, &command_line(), &mut told);
    let out = args.out.clone().unwrap_or_else(|| Path::new("out").join(&study.rows.name));
    let is_whole = left_out.is_none();
    Ok(Made { out, figures, page, is_whole })
}
