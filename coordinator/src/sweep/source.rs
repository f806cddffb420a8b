//! The rows of a sweep, from its database, from a file that was stored beside a document, or from what `stealgrid genetic` left:
//! which it is shows its content.

use std::path::Path;

use anyhow::Context;
use experiments::kind::{self, Kind};
use experiments::limits;
use laboratory::genetic;
use outputs::sweep::{Rows, stored};
use report::sweep::WrittenReport;

use super::database;

/// Reads all rows.
///
/// # Errors
/// If the file cannot be read, or is none of these.
pub fn read(path: &Path) -> anyhow::Result<Rows> {
    if let Some(rows) = genetic::stored::read(path)? {
        return Ok(rows);
    }
    if let Some(reason) = kind::mistaken(path, Kind::Rows) {
        anyhow::bail!("failed to read {}: {reason}", path.display());
    }
    if path.is_dir() {
        anyhow::bail!(
            "failed to read {}: it is a folder without results; give the database that `stealgrid sweep` left, as in \
             out/NAME.db, or the folder that `stealgrid genetic` wrote; `simulate` and `run` leave a page themselves, \
             report.html in their folder",
            path.display()
        );
    }
    let is_stored = stored::is_stored(path)
        .with_context(|| format!("failed to read {}; check the path", path.display()))?;
    if is_stored {
        return stored::read(path, &limits::of_logs()).map_err(|error| anyhow::anyhow!("failed to {error}"));
    }
    database::read(path, &limits::of_logs())
}

/// How the sweep file says that its rows are shown.
///
/// # Errors
/// If the text of the sweep file cannot be read.
pub fn wishes(rows: &Rows) -> anyhow::Result<WrittenReport> {
    // The other keys may be those of another version, which matters to nobody who only reads.
    #[derive(serde::Deserialize)]
    struct Written {
        #[serde(default)]
        report: WrittenReport,
    }
    let written: Written = toml::from_str(&rows.text).context("failed to read the sweep file of the rows")?;
    Ok(written.report)
}
