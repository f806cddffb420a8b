//! `stealgrid theory check`: claims tested by runs, and a table of verdicts.

use std::path::PathBuf;

use claims::{CLAIMS, Checked, Claim, Scale, Verdict};
use outputs::table::Table;
use report::Format;

use crate::exit;
use crate::terminal::say;

/// Test claims of theory by running the simulator, and print a verdict for each.
///
/// The parameters (grids, seeds, delays, counts) are in configs/theory/ and built in.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable parameters, 5 a proved claim fails (Q1 to Q8 and Q20).
#[derive(Clone, Debug, clap::Args)]
pub struct CheckArgs {
    /// Which claims: Q1 to Q20, or all
    #[arg(value_name = "CLAIM", default_value = "all")]
    claims: Vec<String>,

    /// Few and small runs: all claims in seconds
    #[arg(long)]
    quick: bool,

    /// A folder with files q01.toml and so on, in place of the parameters that are built in
    #[arg(long, value_name = "DIR")]
    parameters: Option<PathBuf>,

    /// How the result is printed: terminal, markdown, json
    #[arg(long, default_value = "terminal")]
    format: Format,
}

/// Claims that are proved, or that say the program does what it is to do.
const PROVED: [&str; 9] = ["Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q20"];

/// Runs the command.
///
/// # Errors
/// If the result cannot be printed.
pub fn command(args: &CheckArgs) -> anyhow::Result<u8> {
    if args.format == Format::Csv {
        eprintln!("error: verdicts are printed as terminal, markdown or json");
        return Ok(exit::USAGE);
    }
    let chosen = match choose(&args.claims) {
        Ok(chosen) => chosen,
        Err(name) => {
            eprintln!("error: there is no claim {name:?}; use Q1 to Q{}, or all", CLAIMS.len());
            return Ok(exit::USAGE);
        }
    };
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let mut checked = Vec::new();
    for claim in chosen {
        let text = match &args.parameters {
            None => None,
            Some(folder) => {
                let number: u32 = claim.name[1..].parse()?;
                let path = folder.join(format!("q{number:02}.toml"));
                match crate::limits::read_text(&path, crate::limits::EXPERIMENT) {
                    Ok(text) => Some(text),
                    Err(error) => {
                        eprintln!("error: failed to read {}: {error}", path.display());
                        return Ok(exit::INPUT);
                    }
                }
            }
        };
        eprintln!("{} …", claim.name);
        match claim.check(scale, text.as_deref()) {
            Ok(found) => checked.push(found),
            Err(error) => {
                eprintln!("error: failed to {error}");
                return Ok(exit::INPUT);
            }
        }
    }
    say(&match args.format {
        Format::Json => serde_json::to_string_pretty(&checked)? + "\n",
        Format::Markdown => table(&checked).markdown() + "\n" + &figures(&checked, "- "),
        Format::Terminal | Format::Csv => table(&checked).text() + "\n" + &figures(&checked, "  "),
    })?;
    let broken = checked
        .iter()
        .any(|checked| checked.found.verdict == Verdict::Fails && PROVED.contains(&checked.name));
    Ok(if broken { exit::OUT_OF_TOLERANCE } else { exit::DONE })
}

/// The claims of these names, or the name that there is not.
fn choose(names: &[String]) -> Result<Vec<&'static Claim>, String> {
    if names.iter().any(|name| name.eq_ignore_ascii_case("all")) {
        return Ok(CLAIMS.iter().collect());
    }
    names
        .iter()
        .map(|name| {
            CLAIMS.iter().find(|claim| claim.name.eq_ignore_ascii_case(name)).ok_or_else(|| name.clone())
        })
        .collect()
}

fn table(checked: &[Checked]) -> Table {
    let mut table = Table::new(["", "verdict", "runs", "claim"]).with_left(1).with_left(3);
    for one in checked {
        let runs = report::quantity::grouped(one.found.runs);
        table.push([one.name.to_string(), one.found.verdict.name().to_string(), runs, one.claim.clone()]);
    }
    table
}

fn figures(checked: &[Checked], bullet: &str) -> String {
    let mut text = String::new();
    for one in checked {
        text += &format!("{} fails if there is {}\n", one.name, one.fails_if);
        for figure in &one.found.figures {
            text += &format!("{bullet}{figure}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_chosen_by_name() {
        let names = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
            choose(&names).map(|chosen| chosen.iter().map(|claim| claim.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["q3", "Q1"]), Ok(vec!["Q3", "Q1"]));
        assert_eq!(names(&["all"]).unwrap().len(), CLAIMS.len());
        assert_eq!(names(&["Q99"]), Err("Q99".into()));
    }
}
