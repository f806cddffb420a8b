//! Tells the crate the commit that it is built from: `STEALGRID_COMMIT` of the environment, else what git says. Builds for
//! development have none, or each commit would build them anew.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=STEALGRID_COMMIT");
    if let Ok(commit) = std::env::var("STEALGRID_COMMIT") {
        println!("cargo:rustc-env=STEALGRID_COMMIT={commit}");
        return;
    }
    if std::env::var("PROFILE").as_deref() == Ok("debug") {
        return;
    }
    let moves = Path::new("../.git/logs/HEAD");
    if moves.exists() {
        println!("cargo:rerun-if-changed={}", moves.display());
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        let is_clean =
            git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| text.is_empty());
        let ending = if is_clean { "" } else { "-dirty" };
        println!("cargo:rustc-env=STEALGRID_COMMIT={commit}{ending}");
    }
}

/// What git prints, if there is one and it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_string())
}
