//! What a shell wants to know of the program: completions, man pages of every command, and what of others is in it.
//!
//! The first two are made from the same description as the help, which is handed in by the command line.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_complete::Shell;
use experiments::terminal::say;
use experiments::{exit, folder};

/// Name of the program, as shells and `man` know it.
const PROGRAM: &str = "stealgrid";

/// Print completions for a shell: bash, zsh, fish, elvish, powershell
///
/// For bash: stealgrid completions bash > ~/.local/share/bash-completion/completions/stealgrid
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// The shell that is to read them
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Print the man page, or write one for each command
///
/// To read one: stealgrid man --out man && man man/stealgrid-simulate.1
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Folder for the pages of all commands, made if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs `completions`.
///
/// # Errors
/// If they cannot be printed.
pub fn completions(args: &CompletionsArgs, mut program: Command) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, PROGRAM, &mut script);
    say(&String::from_utf8(script).context("failed to read the completions")?)?;
    Ok(exit::DONE)
}

/// Runs `man`.
///
/// # Errors
/// If a page cannot be printed or written.
pub fn man(args: &ManArgs, mut program: Command) -> anyhow::Result<u8> {
    program.build();
    match &args.out {
        None => say(&page(&program)?)?,
        Some(folder) => {
            folder::make(folder)?;
            let pages = write_all(folder, &program)?;
            say(&format!("{pages} pages: {}\n", folder.join(format!("{PROGRAM}.1")).display()))?;
        }
    }
    Ok(exit::DONE)
}

/// Writes the page of a command and of all below it, and says how many these are.
fn write_all(folder: &Path, command: &Command) -> anyhow::Result<usize> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command)?).with_context(|| format!("failed to write {}", path.display()))?;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    below.map(|below| write_all(folder, below)).sum::<anyhow::Result<usize>>().map(|below| below + 1)
}

/// Runs `licenses`.
///
/// # Errors
/// If they cannot be printed.
pub fn licenses() -> anyhow::Result<u8> {
    let features = [("parquet", cfg!(feature = "parquet")), ("png", cfg!(feature = "png"))];
    let built: Vec<&str> =
        features.into_iter().filter_map(|(name, is_here)| is_here.then_some(name)).collect();
    say(&node::licenses::listed(PROGRAM, &built))?;
    Ok(exit::DONE)
}

fn page(command: &Command) -> anyhow::Result<String> {
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command.clone())
        .date(today())
        .source(format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION")));
    man.render(&mut page).context("failed to make a man page")?;
    String::from_utf8(page).context("failed to read a man page")
}

/// The day that pages are of: that of the sources if a package is built, so that it can be built again to the byte.
fn today() -> String {
    let of_sources = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    workload::calendar::day(of_sources.unwrap_or_else(|| now().cast_signed())).unwrap_or_default()
}
