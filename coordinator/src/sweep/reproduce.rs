//! `stealgrid reproduce`: whether a page is what its data says, and whether its rows come out again.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use experiments::terminal::say;
use experiments::{exit, limits};
use report::quantity::counted;
use report::study::Template;

use super::study::{self, StudyArgs};

/// Where templates are, beside the pages that they make.
const TEMPLATES: &str = "studies";
/// How the name of a template ends.
const ENDING: &str = ".md.in";

/// Make a page of docs/ again from its data and compare it; with --slice, run rows of its data again, too
///
/// The template is found beside the page, in studies/. Text and plots are compared byte for byte. Rows need the logs that the
/// sweeps name; they are compared to the last digit. REPRODUCE.md lists pages, data and times.
///
/// Exit codes: 0 the same, 2 usage, 3 unreadable input, or a page that no template makes, 4 interrupted, 5 different.
#[derive(Clone, Debug, clap::Args)]
pub struct ReproduceArgs {
    /// The page, as in docs/LEVELS.md
    #[arg(value_name = "PAGE.md")]
    page: PathBuf,

    /// Also run so many rows of each file again, spread over all of them
    #[arg(long, value_name = "N", value_parser = study::slice)]
    slice: Option<usize>,

    /// The folder of the logs that the sweeps name [default: as they say]
    #[arg(long, value_name = "DIR", requires = "slice")]
    traces: Option<PathBuf>,

    /// The folder of the sweep files, from which they name other files [default: as their commands say]
    #[arg(long, value_name = "DIR", requires = "slice")]
    sweeps: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If stdout is gone.
pub fn command(args: &ReproduceArgs) -> anyhow::Result<u8> {
    let made = template_of(&args.page).and_then(|template| {
        let args = StudyArgs::of_template(template, args.slice, args.traces.clone(), args.sweeps.clone());
        study::read(&args).map(|(template, page)| (args, template, page))
    });
    let (study_args, template, page) = match made {
        Ok(made) => made,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    let images = args.page.parent().unwrap_or(Path::new("")).join(template.images());
    let files = page.files.iter().map(|(name, content)| (images.join(name), content.as_bytes()));
    let mut compared = 0_usize;
    let mut different = Vec::new();
    for (path, content) in std::iter::once((args.page.clone(), page.text.as_bytes())).chain(files) {
        compared += 1;
        if std::fs::read(&path).ok().as_deref() != Some(content) {
            different.push(path);
        }
    }
    let shown = args.page.display();
    if different.is_empty() {
        say(&format!("{shown}: the same, with {}\n", counted(compared - 1, "plot")))?;
    } else {
        say(&format!("{shown}: DIFFERENT from what its data makes\n"))?;
        for path in &different {
            say(&format!("  {}\n", path.display()))?;
        }
    }
    let rows = match args.slice {
        Some(_) => study::again(&study_args)?,
        None => exit::DONE,
    };
    Ok(if different.is_empty() { rows } else { exit::OUT_OF_TOLERANCE })
}

/// The template that makes a page: one of those beside it whose head names it.
fn template_of(page: &Path) -> anyhow::Result<PathBuf> {
    if !page.is_file() {
        anyhow::bail!("failed to find the page {}; name a file, as in docs/BOTH-RULES.md", page.display());
    }
    let folder = page.parent().unwrap_or(Path::new("")).join(TEMPLATES);
    let name = page.file_name().with_context(|| format!("{} is no page", page.display()))?;
    let mut templates: Vec<PathBuf> = std::fs::read_dir(&folder)
        .with_context(|| format!("failed to look for templates in {}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.to_string_lossy().ends_with(ENDING))
        .collect();
    templates.sort_unstable();
    let mut pages = Vec::new();
    for path in &templates {
        let text = limits::read_text(path, limits::EXPERIMENT)
            .with_context(|| format!("failed to read {}", path.display()))?;
        let Ok(template) = Template::parse(&text) else { continue };
        let Some(made) = template.page().and_then(|made| Path::new(made).file_name()) else { continue };
        if made == name {
            return Ok(path.clone());
        }
        if Path::new(made).extension().is_some_and(|ending| ending == "md") {
            pages.push(made.to_string_lossy().into_owned());
        }
    }
    anyhow::bail!(
        "no template in {} makes {}: they make {}; REPRODUCE.md has the command of each other page",
        folder.display(),
        page.display(),
        pages.join(", ")
    )
}
