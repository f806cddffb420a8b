//! `stealgrid study`: a document whose figures, tables and plots all come from stored sweeps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use outputs::replace;
use report::study::{MADE, Page, Source, Template, make};
use report::sweep::WrittenReport;

use super::source;
use crate::terminal::say;
use crate::{exit, folder, limits};

/// Make a document from a template and the sweeps that it names: every figure in it comes from the data
///
/// Expressions between double braces become numbers, tables and plots; all else stays. Figures that were written by hand are
/// refused. docs/SWEEPS.md describes templates.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input, or an expression or a figure in the template that must not be.
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

    /// Write over a document that this command did not make
    #[arg(long)]
    pub replace: bool,
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
    let (template, page) = match read(args) {
        Ok(made) => made,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    let folder = args.template.parent().unwrap_or(Path::new(""));
    let Some(out) = args.out.clone().or_else(|| template.page().map(|page| folder.join(page))) else {
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
    if !page.plots.is_empty() {
        folder::make(&images)?;
    }
    let plots = page.plots.iter().map(|(name, svg)| (images.join(name), svg));
    for (path, content) in plots.chain([(out.clone(), &page.text)]) {
        replace::write(&path, |file| file.write_all(content.as_bytes()))
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    say(&format!("page: {}\n", out.display()))?;
    Ok(exit::DONE)
}

fn read(args: &StudyArgs) -> anyhow::Result<(Template, Page)> {
    let shown = args.template.display();
    let text = limits::read_text(&args.template, limits::EXPERIMENT)
        .with_context(|| format!("failed to read {shown}; check the path"))?;
    let template =
        Template::parse(&text).map_err(|error| anyhow::anyhow!("failed to understand {shown}: {error}"))?;
    let folder = args.template.parent().unwrap_or(Path::new(""));
    let template = match template.published().map(|file| folder.join(file)) {
        None => template,
        Some(path) => {
            let text = limits::read_text(&path, limits::EXPERIMENT)
                .with_context(|| format!("failed to read {}; check published in {shown}", path.display()))?;
            template
                .with_published(&text)
                .map_err(|error| anyhow::anyhow!("failed to understand {}: {error}", path.display()))?
        }
    };
    let mut sources = BTreeMap::new();
    for (name, file, wishes) in template.data() {
        let given = args.data.iter().find(|(other, _)| other == name);
        let rows = source::read(&given.map_or_else(|| folder.join(file), |(_, file)| file.clone()))?;
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
    let name = args.template.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let page = make(&template, &name, sources)
        .map_err(|error| anyhow::anyhow!("failed to make the page of {shown}: {error}"))?;
    Ok((template, page))
}
