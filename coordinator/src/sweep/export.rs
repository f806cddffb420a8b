//! `stealgrid export`: the rows of a sweep as CSV or Parquet for other tools, or as a small file to keep.
//!
//! One row a run, in the order of the sweep: its number, its parameters, how it ended, then every metric. A column is
//! whole numbers, other numbers or texts throughout; what is missing is empty in CSV and null in Parquet.

#[cfg(feature = "parquet")]
mod parquet_file;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use experiments::folder::NoPlace;
use experiments::{exit, terminal};
use outputs::csv_cell;
use outputs::sweep::{Cell, Row, Rows, stored};
use report::sweep::missing_note;
use scheduler::spelling;

use super::source;
use crate::optional;

/// Write the rows of a sweep as CSV or Parquet, or as a small file to keep beside a document
///
/// Parquet needs a program that was built with it: --features parquet, or full. The format study is CSV with a head that
/// says where it comes from, compressed with zstd; `stealgrid report` and `stealgrid study` read it as they read a database.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input.
#[derive(Clone, Debug, clap::Args)]
pub struct ExportArgs {
    /// Database of a sweep, or such a file of the format study
    #[arg(value_name = "SWEEP.db")]
    pub database: PathBuf,

    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    pub format: Format,

    /// Where to
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// Metrics to write; `*` stands for anything [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub columns: Vec<String>,

    /// Format study: significant digits of numbers that are not whole [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=17))]
    pub digits: Option<u8>,

    /// Format study: the commit of the program that ran the sweep
    #[arg(long, value_name = "HASH")]
    pub commit: Option<String>,
}

/// Digits of stored numbers, if nothing else is said: far below what repetitions differ by.
const DIGITS: u8 = 6;

/// Formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header.
    Csv,
    /// Apache Parquet, compressed with Snappy.
    Parquet,
    /// What `report` and `study` read, compressed with zstd.
    Study,
}

/// Runs the command.
///
/// # Errors
/// If the file cannot be written.
pub fn command(args: &ExportArgs) -> anyhow::Result<u8> {
    if args.format == Format::Parquet
        && let Err(reason) =
            optional::check(cfg!(feature = "parquet"), "Parquet", "parquet", "write --format csv")
    {
        eprintln!("error: {reason}");
        return Ok(exit::USAGE);
    }
    if args.format != Format::Study && (args.digits.is_some() || args.commit.is_some()) {
        eprintln!("error: --digits and --commit are for --format study");
        return Ok(exit::USAGE);
    }
    let rows = match source::read(&args.database).and_then(|rows| chosen(rows, &args.columns)) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    if let Some(note) = missing_note(&rows) {
        terminal::note(&note);
    }
    if args.format == Format::Study {
        let commit = args.commit.clone().or(rows.commit.clone());
        if commit.is_none() {
            eprintln!("note: the file does not say which program made it; --commit says it");
        }
        let digits = usize::from(args.digits.unwrap_or(DIGITS));
        stored::write(&args.out, &Rows { commit, ..rows }, digits)
            .map_err(|cause| NoPlace::of_file(&args.out, cause, "--out"))?;
        return Ok(exit::DONE);
    }
    let table = Table::of(rows);
    let write = match args.format {
        Format::Csv | Format::Study => write_csv,
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet_file::write,
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => unreachable!("refused before"),
    };
    write(&args.out, &table).with_context(|| format!("failed to write {}", args.out.display()))?;
    Ok(exit::DONE)
}

/// The rows with those metrics that were asked for.
fn chosen(rows: Rows, columns: &[String]) -> anyhow::Result<Rows> {
    if columns.is_empty() {
        return Ok(rows);
    }
    let is_named = |name: &str, column: &str| match column.split_once('*') {
        None => name == column,
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
    };
    let none = |column: &&String| !rows.metrics.iter().any(|name| is_named(name, column));
    if let Some(unknown) = columns.iter().find(none) {
        let hint = spelling::hint(unknown, &rows.metrics);
        anyhow::bail!("failed to find the column {unknown:?}{hint}; there are {}", rows.metrics.join(", "));
    }
    let kept: Vec<bool> =
        rows.metrics.iter().map(|name| columns.iter().any(|column| is_named(name, column))).collect();
    let only = |cells: Vec<Cell>| {
        cells.into_iter().zip(&kept).filter(|(_, kept)| **kept).map(|(cell, _)| cell).collect()
    };
    let chosen = |row: Row| Row { metrics: only(row.metrics), ..row };
    Ok(Rows {
        metrics: rows
            .metrics
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| **kept)
            .map(|(name, _)| name.clone())
            .collect(),
        rows: rows.rows.into_iter().map(chosen).collect(),
        ..rows
    })
}

/// Columns of equal length.
struct Table {
    columns: Vec<Column>,
    rows: usize,
}

struct Column {
    name: String,
    cells: Vec<Cell>,
}

impl Table {
    fn of(rows: Rows) -> Table {
        let column = |name: &str, cell: &dyn Fn(&Row) -> Cell| Column {
            name: name.to_string(),
            cells: rows.rows.iter().map(cell).collect(),
        };
        let mut columns = vec![column("position", &|row| Cell::Integer(row.position))];
        for (index, name) in rows.parameters.iter().enumerate() {
            columns.push(column(name, &|row| row.parameters[index].clone()));
        }
        let status = |row: &Row| Cell::Text(if row.done { "done" } else { "failed" }.to_string());
        columns.push(column("status", &status));
        columns.push(column("error", &|row| row.error.clone().map_or(Cell::Null, Cell::Text)));
        columns.push(column("wall_s", &|row| Cell::Real(row.wall_s)));
        for (index, name) in rows.metrics.iter().enumerate() {
            columns.push(column(name, &|row| row.metrics[index].clone()));
        }
        Table { columns, rows: rows.rows.len() }
    }
}

fn write_csv(path: &Path, table: &Table) -> anyhow::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let names: Vec<String> = table.columns.iter().map(|column| csv_cell::text(&column.name)).collect();
    writeln!(file, "{}", names.join(","))?;
    for row in 0..table.rows {
        let cells: Vec<String> =
            table.columns.iter().map(|column| csv_cell::text(&column.cells[row].to_string())).collect();
        writeln!(file, "{}", cells.join(","))?;
    }
    file.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of parameters and errors come from files of others.
    #[test]
    fn texts_are_no_formulas_and_numbers_stay_numbers() {
        let row = Row {
            position: 1,
            done: false,
            error: Some("@SUM(A1), and no more".to_string()),
            wall_s: 0.5,
            parameters: vec![Cell::Text("=x".to_string()), Cell::Text("-1+1".to_string()), Cell::Integer(-3)],
            metrics: vec![Cell::Real(-0.5)],
        };
        let rows = Rows {
            name: "named".to_string(),
            text: String::new(),
            version: "0".to_string(),
            command: String::new(),
            commit: None,
            planned: Some(1),
            digits: None,
            parameters: ["+strategy", "site", "offset"].map(str::to_string).to_vec(),
            metrics: vec!["=metric".to_string()],
            rows: vec![row],
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        write_csv(&path, &Table::of(rows)).unwrap();
        let expected = "position,'+strategy,site,offset,status,error,wall_s,'=metric\n\
                        1,'=x,'-1+1,-3,failed,\"'@SUM(A1), and no more\",0.5,-0.5\n";
        assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
    }
}
