//! `stealgrid study`: a document whose figures, tables and plots all come from stored sweeps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use experiments::interrupt::Interrupt;
use experiments::terminal::say;
use experiments::{exit, limits};
use outputs::replace;
use report::study::{MADE, Page, Source, Template, make};
use report::sweep::WrittenReport;

use super::check::{self, Places};
use super::plots::PlotFile;
use super::source;

/// Make a document from a template and the sweeps that it names: every figure in it comes from the data
///
/// Expressions between double braces become numbers, tables and plots; all else stays. Figures that were written by hand are
/// refused. docs/SWEEPS.md describes templates.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input, or an expression, a name or a figure in the template that must not be, 4
/// interrupted, or the page is made without runs that failed or are missing, 5 with --check: other results than those that
/// are stored.
#[derive(Clone, Debug, clap::Args)]
pub struct StudyArgs {
    /// Template
    #[arg(value_name = "TEMPLATE.md.in")]
    pub template: PathBuf,

    /// The document to write; plots go into a folder beside it [default: that of the template]
    #[arg(long, value_name = "PAGE.md")]
    pub out: Option<PathBuf>,

    /// A database or stored sweep in place of the one that the template names; may be repeated
    #[arg(long, value_name = "NAME=FILE", value_parser = named)]
    pub data: Vec<(String, PathBuf)>,

    /// Make nothing: run some rows of the data again, and compare them with what is stored, to the last digit
    #[arg(long, conflicts_with_all = ["out", "replace", "plots"])]
    pub check: bool,

    /// How many rows of each file are run again, spread over all of them
    #[arg(long, value_name = "N", requires = "check", default_value_t = SLICE, value_parser = slice)]
    pub slice: usize,

    /// The folder of the logs that the sweeps name [default: as they say]
    #[arg(long, value_name = "DIR", requires = "check")]
    pub traces: Option<PathBuf>,

    /// The folder of the sweep files, from which they name other files [default: as their commands say]
    #[arg(long, value_name = "DIR", requires = "check")]
    pub sweeps: Option<PathBuf>,

    /// Also write each plot as png or pdf, beside its svg; needs a program that was built with them: --features png, or full
    #[arg(long, value_enum, value_name = "KIND,…", value_delimiter = ',')]
    pub plots: Vec<PlotFile>,

    /// Write over a document that this command did not make
    #[arg(long)]
    pub replace: bool,
}

impl StudyArgs {
    /// Of a template alone, to look at its page and, with a number of rows, at these.
    pub(super) fn of_template(
        template: PathBuf,
        slice: Option<usize>,
        traces: Option<PathBuf>,
        sweeps: Option<PathBuf>,
    ) -> StudyArgs {
        StudyArgs {
            template,
            out: None,
            data: Vec::new(),
            check: slice.is_some(),
            slice: slice.unwrap_or(SLICE),
            traces,
            sweeps,
            plots: Vec::new(),
            replace: false,
        }
    }
}

/// Rows of each file that `--check` runs again, if nobody says how many: a minute or so.
const SLICE: usize = 12;

/// How many rows, as it is typed.
pub(super) fn slice(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&count| count > 0).ok_or_else(|| "write how many rows, from 1 on".to_string())
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_string(), file.into())),
        _ => Err("write NAME=FILE".to_string()),
    }
}

/// Runs the command.
///
/// # Errors
/// If a file cannot be written.
pub fn command(args: &StudyArgs) -> anyhow::Result<u8> {
    if let Err(reason) = PlotFile::check(&args.plots) {
        eprintln!("error: {reason}");
        return Ok(exit::USAGE);
    }
    if args.check {
        return again(args);
    }
    let (template, page) = match read(args) {
        Ok(made) => made,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    let Some(out) = args.out.clone().or_else(|| template.page().map(|page| folder(args).join(page))) else {
        eprintln!(
            "error: failed to find where to write: give --out, or page = \"FILE\" in the head of the template"
        );
        return Ok(exit::USAGE);
    };
    if !args.replace
        && out.exists()
        && !limits::read_text(&out, limits::PAGE).is_ok_and(|text| text.contains(MADE))
    {
        eprintln!(
            "error: {} is there already, and no such document; move it away, give another --out, or --replace",
            out.display()
        );
        return Ok(exit::INPUT);
    }
    let images = out.parent().unwrap_or(Path::new("")).join(template.images());
    if !page.files.is_empty() {
        experiments::folder::make(&images)?;
    }
    let write = |path: &Path, content: &[u8]| {
        replace::write(path, |file| file.write_all(content))
            .with_context(|| format!("failed to write {}", path.display()))
    };
    for (name, content) in &page.files {
        let path = images.join(name);
        write(&path, content.as_bytes())?;
        let is_plot = path.extension().is_some_and(|ending| ending == "svg");
        for kind in args.plots.iter().filter(|kind| is_plot && **kind != PlotFile::Svg) {
            write(&path.with_extension(kind.ending()), &kind.of(content)?)?;
        }
    }
    write(&out, page.text.as_bytes())?;
    say(&format!("page: {}\n", out.display()))?;
    for warning in &page.warnings {
        eprintln!(
            "warning: {warning}; the page says how many, and its figures are of the others. To run them, repeat the sweep, with \
             --retry-failed"
        );
    }
    Ok(if page.warnings.is_empty() { exit::DONE } else { exit::INCOMPLETE })
}

/// Runs rows again and says whether they are the same.
pub(super) fn again(args: &StudyArgs) -> anyhow::Result<u8> {
    let data = match template(args).and_then(|template| data(args, &template)) {
        Ok(data) => data,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    let interrupt = Interrupt::on_signals()?;
    let places = Places { traces: args.traces.as_deref(), sweeps: args.sweeps.as_deref() };
    let mut code = exit::DONE;
    for (name, Source { rows, .. }) in &data {
        if !check::is_of_a_sweep(rows) {
            say(&format!("{name}: not checked, as no sweep made it, but `{}`\n", rows.command))?;
            continue;
        }
        let checked = match check::check(rows, args.slice, &places, &interrupt) {
            Ok(checked) => checked,
            Err(reason) => {
                eprintln!("error: failed to run rows of {name} again: {reason}");
                return Ok(exit::INPUT);
            }
        };
        if interrupt.is_set() {
            eprintln!("error: interrupted while {name} was checked");
            return Ok(exit::INCOMPLETE);
        }
        let found = checked.differences.len();
        let verdict = if found == 0 { "the same" } else { "DIFFERENT" };
        say(&format!(
            "{name}: {verdict}, {} of {} rows, {} values to {}\n",
            checked.rows,
            rows.rows.len(),
            checked.cells,
            rows.digits.map_or_else(|| "the last digit".to_string(), |digits| format!("{digits} digits")),
        ))?;
        for difference in checked.differences.iter().take(DIFFERENCES) {
            say(&format!("  {difference}\n"))?;
        }
        if found > DIFFERENCES {
            say(&format!("  and {} more\n", found - DIFFERENCES))?;
        }
        if found > 0 {
            code = exit::OUT_OF_TOLERANCE;
        }
    }
    if !data.values().any(|source| check::is_of_a_sweep(&source.rows)) {
        eprintln!("error: failed to check {}: no sweep made its data", args.template.display());
        return Ok(exit::INPUT);
    }
    say(
        "rows only; whether the page says what its rows do shows when it is made again (stealgrid reproduce PAGE)\n",
    )?;
    Ok(code)
}

/// Differences of a file that are said one by one.
const DIFFERENCES: usize = 10;

/// The template, and the page that it makes of its data.
pub(super) fn read(args: &StudyArgs) -> anyhow::Result<(Template, Page)> {
    let template = template(args)?;
    let sources = data(args, &template)?;
    let name = args.template.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let page = make(&template, &name, sources).map_err(|error| {
        anyhow::anyhow!("failed to make the page of {}: {error}", args.template.display())
    })?;
    Ok((template, page))
}

fn template(args: &StudyArgs) -> anyhow::Result<Template> {
    let shown = args.template.display();
    let text = limits::read_text(&args.template, limits::EXPERIMENT)
        .with_context(|| format!("failed to read {shown}; check the path"))?;
    let template =
        Template::parse(&text).map_err(|error| anyhow::anyhow!("failed to understand {shown}: {error}"))?;
    match template.published().map(|file| folder(args).join(file)) {
        None => Ok(template),
        Some(path) => {
            let text = limits::read_text(&path, limits::EXPERIMENT)
                .with_context(|| format!("failed to read {}; check published in {shown}", path.display()))?;
            template
                .with_published(&text)
                .map_err(|error| anyhow::anyhow!("failed to understand {}: {error}", path.display()))
        }
    }
}

/// The folder from which a template names files.
fn folder(args: &StudyArgs) -> &Path {
    args.template.parent().unwrap_or(Path::new(""))
}

/// The rows that a template names, by their names.
fn data(args: &StudyArgs, template: &Template) -> anyhow::Result<BTreeMap<String, Source>> {
    let mut sources = BTreeMap::new();
    for (name, file, wishes) in template.data() {
        let given = args.data.iter().find(|(other, _)| other == name);
        let rows = source::read(&given.map_or_else(|| folder(args).join(file), |(_, file)| file.clone()))?;
        let written = source::wishes(&rows)?;
        let wishes = WrittenReport {
            x: wishes.x.or(written.x),
            replicates: wishes.replicates.or(written.replicates),
            panels: wishes.panels.or(written.panels),
            baseline: wishes.baseline.or(written.baseline),
            ranking: wishes.ranking.or(written.ranking),
        };
        sources.insert(name.to_string(), Source { rows, wishes });
    }
    if let Some((unknown, _)) = args.data.iter().find(|(name, _)| !sources.contains_key(name)) {
        let names: Vec<&str> = template.data().map(|(name, ..)| name).collect();
        anyhow::bail!("failed to use --data {unknown}: the template names only {}", names.join(", "));
    }
    Ok(sources)
}
