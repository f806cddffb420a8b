//! `stealgrid docs`: where the documentation is on this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use experiments::exit;
use experiments::terminal::say;

/// Where packages put it, below the folder that has `bin/`.
const INSTALLED: &str = "share/doc/stealgrid/html/index.html";
/// Where `.ci/site` builds it, below the top of a source tree.
const BUILT: &str = "target/site/index.html";

/// The first page without a site, in the top folder of a source tree.
const PAGES: &str = "docs/README.md";

/// Print where the documentation is on this machine, or open it
///
/// That is the site of an installed package or of a source tree, or else docs/README.md of the current folder.
///
/// Exit codes: 0 done, 1 no browser could be opened, 2 usage, 3 there is none.
#[derive(Clone, Debug, Args)]
pub struct DocsArgs {
    /// Open it in a browser
    #[arg(long)]
    open: bool,
}

/// Runs the command.
///
/// # Errors
/// If stdout is gone.
pub fn command(args: &DocsArgs) -> anyhow::Result<u8> {
    let program = std::env::current_exe()?;
    let Some(page) = candidates(&program).into_iter().find(|page| page.is_file()) else {
        eprintln!(
            "error: failed to find the documentation beside {}: the Debian package has it, and .ci/site builds it in a \
             source tree",
            program.display()
        );
        return Ok(exit::INPUT);
    };
    if args.open {
        let mut opener = Command::new("xdg-open");
        let opened = opener.arg(&page).stdin(Stdio::null()).status();
        if !opened.is_ok_and(|status| status.success()) {
            eprintln!("error: failed to open a browser with xdg-open; open {}", page.display());
            return Ok(exit::UNEXPECTED);
        }
        return Ok(exit::DONE);
    }
    say(&format!("{}\n", page.display()))?;
    Ok(exit::DONE)
}

/// Where the first page may be for a program: beside it as installed, or in the tree that it was built in.
fn candidates(program: &Path) -> Vec<PathBuf> {
    let above = |levels: usize| program.ancestors().nth(levels);
    let installed = above(2).map(|prefix| prefix.join(INSTALLED));
    // target/release/stealgrid
    let built = above(3).map(|top| top.join(BUILT));
    installed.into_iter().chain(built).chain([PathBuf::from(PAGES)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_looked_for_as_installed_and_as_built() {
        let of = |program: &str| candidates(Path::new(program));
        assert!(
            of("/usr/bin/stealgrid").contains(&PathBuf::from("/usr/share/doc/stealgrid/html/index.html"))
        );
        assert!(of("/src/target/release/stealgrid").contains(&PathBuf::from("/src/target/site/index.html")));
        assert_eq!(of("/stealgrid"), [PathBuf::from(PAGES)]);
    }
}
