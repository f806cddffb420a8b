//! `stealgrid theory check`: claims tested by runs, a verdict for each, and what is kept of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use claims::cells::Word;
use claims::{CLAIMS, Checked, Claim, Scale, Verdict};
use experiments::exit;
use experiments::terminal::{COLUMNS, left, say};
use outputs::table::Table;
use report::Format;
use serde::{Deserialize, Serialize};

/// Test claims of theory by running the simulator, and print a verdict for each.
///
/// The parameters (grids, seeds, delays, counts, margins) are in configs/theory/ and built in. Claims about means are
/// judged cell by cell, with seeds added until a cell is settled.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input, 5 a proved claim fails, a mutant is not refuted, or a verdict is
/// another than that of `--against`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckArgs {
    /// Which claims: Q1 to Q21, or all
    #[arg(value_name = "CLAIM", default_value = "all")]
    claims: Vec<String>,

    /// Few and small runs: all claims in seconds
    #[arg(long)]
    quick: bool,

    /// As many runs as a verdict needs that is quoted, in minutes (the default)
    #[arg(long, conflicts_with = "quick")]
    full: bool,

    /// The same experiments, each with a mistake built in, which must be refuted
    #[arg(long, conflicts_with_all = ["file", "against"])]
    mutants: bool,

    /// A folder with files q01.toml and so on, in place of the parameters that are built in
    #[arg(long, value_name = "DIR")]
    parameters: Option<PathBuf>,

    /// A file for everything that was found, as JSON; `theory show` reads it
    #[arg(long, value_name = "FILE", group = "file")]
    out: Option<PathBuf>,

    /// A file of `--out`, in which the claims that are checked take the place of what was found before; others stay
    #[arg(long, value_name = "FILE", group = "file")]
    into: Option<PathBuf>,

    /// The commit of this program, for the file
    #[arg(long, value_name = "COMMIT", requires = "file")]
    commit: Option<String>,

    /// A file of `--out`, whose verdicts must come out again, cell by cell
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// How the result is printed: terminal, markdown, json
    #[arg(long, default_value = "terminal")]
    format: Format,
}

/// Print what a check has stored: verdicts, and the means of every cell.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input.
#[derive(Clone, Debug, clap::Args)]
pub struct ShowArgs {
    /// A file of `theory check --out`
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The table of verdicts alone
    #[arg(long)]
    summary: bool,

    /// How the result is printed: terminal, markdown, json
    #[arg(long, default_value = "terminal")]
    format: Format,
}

/// Everything that was found, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    #[serde(flatten)]
    making: Making,
    /// In the order in which they ran.
    claims: Vec<Checked>,
    /// How claims were found that were checked again later, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    again: BTreeMap<String, Making>,
}

/// How something was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Making {
    /// The command.
    command: String,
    /// The commit of the program that ran.
    commit: Option<String>,
    /// When it ended, in UTC.
    at: String,
    /// How long it took, in seconds.
    took_s: f64,
}

impl Making {
    fn line(&self) -> String {
        let commit =
            self.commit.as_deref().map_or("an unknown commit".into(), |commit| format!("commit {commit}"));
        format!("`{}`, {commit}, {}, {:.0} s.", self.command, self.at, self.took_s)
    }
}

impl Stored {
    /// Where a claim is among those that it has.
    fn place(&self, name: &str) -> Result<usize, String> {
        let place = self.claims.iter().position(|before| before.name == name);
        place.ok_or_else(|| format!("it has no claim {name}"))
    }

    /// These claims in place of what was found of them before.
    fn replace(&mut self, checked: &[Checked], making: &Making) -> Result<(), String> {
        for found in checked {
            let place = self.place(found.name.as_ref())?;
            self.claims[place] = found.clone();
            self.again.insert(found.name.to_string(), making.clone());
        }
        Ok(())
    }
}

fn only_read_by_people(format: Format) -> bool {
    if format == Format::Csv {
        eprintln!("error: verdicts are printed as terminal, markdown or json");
    }
    format != Format::Csv
}

/// Runs `theory check`.
///
/// # Errors
/// If the result cannot be printed or written.
pub fn command(args: &CheckArgs) -> anyhow::Result<u8> {
    if !only_read_by_people(args.format) {
        return Ok(exit::USAGE);
    }
    let chosen = match choose(&args.claims) {
        Ok(chosen) => chosen,
        Err(name) => {
            eprintln!("error: there is no claim {name:?}; use Q1 to Q{}, or all", CLAIMS.len());
            return Ok(exit::USAGE);
        }
    };
    let earlier = |path: &Option<PathBuf>| path.as_deref().map(read).transpose();
    let (before, into) = match (earlier(&args.against), earlier(&args.into)) {
        (Ok(before), Ok(into)) => (before, into),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    // Before minutes of runs.
    let missing = |into: &Stored| chosen.iter().find_map(|claim| into.place(claim.name).err());
    if let (Some(path), Some(reason)) = (&args.into, into.as_ref().and_then(missing)) {
        eprintln!("error: failed to add to {}: {reason}; write another file with --out", path.display());
        return Ok(exit::INPUT);
    }
    args.out.as_deref().map(experiments::folder::make_above).transpose()?;
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let begun = std::time::Instant::now();
    let mut checked = Vec::new();
    for claim in &chosen {
        let text = match args.parameters.as_deref().map(|folder| parameters(folder, claim)).transpose() {
            Ok(text) => text,
            Err(error) => {
                eprintln!("error: {error:#}");
                return Ok(exit::INPUT);
            }
        };
        let from = begun.elapsed();
        let found = match args.mutants {
            true => claim.check_mutant(scale, text.as_deref()),
            false => claim.check(scale, text.as_deref()),
        };
        match found {
            Ok(found) => {
                let took = (begun.elapsed() - from).as_secs_f64();
                checked.push(found.clone());
                let left = match checked.len() == chosen.len() {
                    true => String::new(),
                    false => {
                        format!("; {}", left(begun.elapsed(), checked.len() as u64, chosen.len() as u64))
                    }
                };
                eprintln!("{}: {} after {took:.1} s{left}", claim.name, found.found.verdict.name());
            }
            Err(error) => {
                eprintln!("error: failed to {error}");
                return Ok(exit::INPUT);
            }
        }
    }
    if let Some(path) = args.out.as_ref().or(args.into.as_ref()) {
        let scale = if args.quick { "--quick" } else { "--full" };
        let making = Making {
            command: format!("stealgrid theory check {scale} {}", args.claims.join(" ")),
            commit: args.commit.clone(),
            at: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            took_s: begun.elapsed().as_secs_f64().round(),
        };
        let stored = match into {
            None => Stored { making, claims: checked.clone(), again: BTreeMap::new() },
            Some(mut stored) => {
                stored.replace(&checked, &making).map_err(anyhow::Error::msg)?;
                stored
            }
        };
        std::fs::write(path, serde_json::to_string_pretty(&stored)? + "\n")
            .map_err(|error| anyhow::anyhow!("failed to write {}: {error}", path.display()))?;
    }
    let text = match args.format {
        Format::Json => serde_json::to_string_pretty(&checked)? + "\n",
        format if args.mutants => printed(&mutants(&checked), format),
        format => printed(&verdicts(&checked), format) + "\n" + &details(&checked, format),
    };
    say(&text)?;
    let mut code = exit::DONE;
    if args.mutants {
        for deaf in checked.iter().filter(|checked| checked.found.verdict != Verdict::Fails) {
            eprintln!("error: {} does not notice that {}", deaf.name, deaf.mutant);
            code = exit::OUT_OF_TOLERANCE;
        }
        return Ok(code);
    }
    for (claim, found) in chosen.iter().zip(&checked) {
        if claim.proved && found.found.verdict == Verdict::Fails {
            eprintln!("error: {} is proved, and fails: a mistake in the program or in the proof", claim.name);
            code = exit::OUT_OF_TOLERANCE;
        }
    }
    for difference in before.iter().flat_map(|before| differences(before, &checked)) {
        eprintln!("error: {difference}");
        code = exit::OUT_OF_TOLERANCE;
    }
    Ok(code)
}

/// Runs `theory show`.
///
/// # Errors
/// If the result cannot be printed.
pub fn show(args: &ShowArgs) -> anyhow::Result<u8> {
    if !only_read_by_people(args.format) {
        return Ok(exit::USAGE);
    }
    let stored = match read(&args.file) {
        Ok(stored) => stored,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    say(&match (args.format, args.summary) {
        (Format::Json, _) => serde_json::to_string_pretty(&stored)? + "\n",
        (format, true) => printed(&summary(&stored.claims), format),
        (format, false) => {
            let again = |(name, making): (&String, &Making)| format!("{name} again: {}\n\n", making.line());
            format!("{}\n\n", stored.making.line())
                + &stored.again.iter().map(again).collect::<String>()
                + &details(&stored.claims, format)
        }
    })?;
    Ok(exit::DONE)
}

fn parameters(folder: &Path, claim: &Claim) -> anyhow::Result<String> {
    let number: u32 = claim.name[1..].parse()?;
    let path = folder.join(format!("q{number:02}.toml"));
    experiments::limits::read_text(&path, experiments::limits::EXPERIMENT)
        .map_err(|error| anyhow::anyhow!("failed to read {}: {error}", path.display()))
}

fn read(path: &Path) -> anyhow::Result<Stored> {
    let text = experiments::limits::read_text(path, experiments::limits::EXPERIMENT)
        .map_err(|error| anyhow::anyhow!("failed to read {}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| {
        anyhow::anyhow!(
            "failed to read {}: {error}; it must be a file of `theory check --out`",
            path.display()
        )
    })
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

/// What came out otherwise than it is stored: verdicts, and words of cells. Figures may differ in their last digits from
/// machine to machine.
fn differences(before: &Stored, now: &[Checked]) -> Vec<String> {
    let mut differences = Vec::new();
    for found in now {
        let name = &found.name;
        let Some(old) = before.claims.iter().find(|old| old.name == *name) else {
            differences.push(format!("{name} is not stored; store the check again"));
            continue;
        };
        if old.found.verdict != found.found.verdict {
            let (old, new) = (old.found.verdict.name(), found.found.verdict.name());
            differences.push(format!("{name} {new}, and what is stored says {old}"));
        }
        if old.found.cells.len() != found.found.cells.len() {
            differences.push(format!("{name} has other cells than what is stored; store the check again"));
            continue;
        }
        for (old, new) in old.found.cells.iter().zip(&found.found.cells) {
            if (&old.name, &old.says, old.word) != (&new.name, &new.says, new.word) {
                differences.push(format!("{name}: {}, and what is stored says {}", new.line(), old.line()));
            }
        }
    }
    differences
}

fn printed(table: &Table, format: Format) -> String {
    if format == Format::Markdown { table.markdown() } else { table.clone().within(COLUMNS).text() }
}

fn verdicts(checked: &[Checked]) -> Table {
    let mut table = Table::new(["", "verdict", "runs", "claim"]).with_left(1).with_left(3);
    for one in checked {
        let runs = report::quantity::grouped(one.found.runs);
        table.push([one.name.clone(), one.found.verdict.name().to_string(), runs, one.claim.clone()]);
    }
    table
}

/// The table of docs/CLAIMS.md, with the first two figures of each claim: all of them are in the details, and mistakes
/// in the table of mutants.
fn summary(checked: &[Checked]) -> Table {
    let mut table =
        Table::new(["", "claim", "verdict", "runs", "figures"]).with_left(1).with_left(2).with_left(4);
    for one in checked {
        table.push([
            one.name.clone(),
            one.claim.clone(),
            one.found.verdict.name().to_string(),
            report::quantity::grouped(one.found.runs),
            one.found.figures.iter().take(2).cloned().collect::<Vec<_>>().join("; "),
        ]);
    }
    table
}

fn mutants(checked: &[Checked]) -> Table {
    let mut table = Table::new(["", "mistake", "is refuted", "runs"]).with_left(1).with_left(2);
    for one in checked {
        let refuted = if one.found.verdict == Verdict::Fails { "yes" } else { "NO" };
        table.push([
            one.name.clone(),
            one.mutant.clone(),
            refuted.to_string(),
            report::quantity::grouped(one.found.runs),
        ]);
    }
    table
}

/// Every claim with its figures and its cells.
fn details(checked: &[Checked], format: Format) -> String {
    let markdown = format == Format::Markdown;
    let bullet = if markdown { "- " } else { "  " };
    let mut text = String::new();
    for one in checked {
        let verdict = one.found.verdict.name();
        text += &match markdown {
            true => {
                format!("## {} {verdict}\n{} Fails if there is {}.\n\n", one.name, one.claim, one.fails_if)
            }
            false => format!("{} {verdict}; fails if there is {}\n", one.name, one.fails_if),
        };
        for figure in &one.found.figures {
            text += &format!("{bullet}{figure}\n");
        }
        if !one.found.cells.is_empty() {
            text += if markdown { "\n" } else { "" };
            let table = cells(one);
            let lines = printed(&table, format);
            text.extend(lines.lines().map(|line| format!("{}{line}\n", if markdown { "" } else { "  " })));
        }
        text += if markdown { "\n" } else { "" };
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn cells(one: &Checked) -> Table {
    let header = ["", "mean", "95 % interval", "seeds", "claimed", "is", "p, opposite", "p, claimed"];
    let mut table = Table::new(header).with_left(4).with_left(5);
    for cell in &one.found.cells {
        let chance = |chance: f64| match cell.word {
            Word::Reported => String::new(),
            _ if chance < 1e-4 => "< 0.0001".into(),
            _ => format!("{chance:.4}"),
        };
        let word = if cell.word == Word::Reported { "" } else { cell.word.name() };
        let (mean, interval) = cell.figures();
        table.push([
            cell.name.clone(),
            mean,
            interval,
            cell.seeds.to_string(),
            cell.says.clone(),
            word.to_string(),
            chance(cell.chance_if_wrong),
            chance(cell.chance_if_right),
        ]);
    }
    table
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

    fn stored(names: &[&str]) -> Stored {
        let claims = choose(&names.iter().map(|name| (*name).to_string()).collect::<Vec<_>>()).unwrap();
        let claims = claims.iter().map(|claim| claim.check(Scale::Quick, None).unwrap()).collect();
        Stored { making: making("stealgrid theory check"), claims, again: BTreeMap::new() }
    }

    fn making(command: &str) -> Making {
        Making { command: command.into(), commit: None, at: String::new(), took_s: 1.0 }
    }

    #[test]
    fn a_claim_that_is_checked_again_says_so_and_leaves_others_as_they_were() {
        let before = stored(&["Q3", "Q18"]);
        let mut now = stored(&["Q18"]).claims;
        now[0].found.verdict = Verdict::Inconclusive;
        let mut after = before.clone();
        after.replace(&now, &making("stealgrid theory check Q18")).unwrap();
        assert_eq!((&after.claims[0], &after.claims[1]), (&before.claims[0], &now[0]));
        assert_eq!(after.again.keys().collect::<Vec<_>>(), ["Q18"]);
        let read: Stored = serde_json::from_str(&serde_json::to_string(&after).unwrap()).unwrap();
        assert_eq!(read.again["Q18"].command, "stealgrid theory check Q18");
        assert!(after.replace(&stored(&["Q1"]).claims, &making("")).unwrap_err().contains("no claim Q1"));
    }

    #[test]
    fn what_is_stored_is_read_back_and_is_no_difference() {
        let before = stored(&["Q3", "Q18"]);
        let text = serde_json::to_string_pretty(&before).unwrap();
        let read: Stored = serde_json::from_str(&text).unwrap();
        let (cells, stored) = (&read.claims[1].found.cells, &before.claims[1].found.cells);
        assert_eq!((cells.len(), &read.claims[0]), (stored.len(), &before.claims[0]));
        // Numbers are read to the last digit but one.
        let close = |one: f64, other: f64| (one - other).abs() <= 1e-12 * other.abs();
        assert!(cells.iter().zip(stored).all(|(cell, stored)| {
            (&cell.name, cell.seeds, cell.word) == (&stored.name, stored.seeds, stored.word)
                && close(cell.mean, stored.mean)
                && close(cell.chance_if_wrong, stored.chance_if_wrong)
        }));
        assert_eq!(differences(&read, &before.claims), [""; 0]);
    }

    #[test]
    fn another_verdict_another_word_and_another_claim_are_told() {
        let now = stored(&["Q3", "Q18"]);
        let mut before = now.clone();
        before.claims[0].found.verdict = Verdict::Inconclusive;
        let cell = &mut before.claims[1].found.cells[0];
        cell.word = if cell.word == Word::Open { Word::Supported } else { Word::Open };
        let found = differences(&before, &now.claims);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("Q3 holds, and what is stored says inconclusive"), "{found:?}");
        before.claims.remove(0);
        before.claims[0].found.cells.clear();
        let found = differences(&before, &now.claims);
        assert!(found[0].contains("Q3 is not stored") && found[1].contains("other cells"), "{found:?}");
    }
}
