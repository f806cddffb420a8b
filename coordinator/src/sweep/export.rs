//! `stealgrid export`: the rows of a sweep as CSV or Parquet, for other tools.
//!
//! One row a run, in the order of the sweep: its number, its parameters, how it ended, then every metric. A column is
//! whole numbers, other numbers or texts throughout; what is missing is empty in CSV and null in Parquet.

#[cfg(feature = "parquet")]
mod parquet_file;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use outputs::csv_cell;
use outputs::sweep::{Cell, Row, Rows};
use report::sweep::missing_note;

use super::database;
use crate::{exit, optional};

/// Write the rows of a sweep as CSV or Parquet
///
/// Parquet needs a program that was built with it: --features parquet, or full.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input.
#[derive(Clone, Debug, clap::Args)]
pub struct ExportArgs {
    /// Database of a sweep
    #[arg(value_name = "SWEEP.db")]
    pub database: PathBuf,

    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    pub format: Format,

    /// Where to
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// Formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header.
    Csv,
    /// Apache Parquet, compressed with Snappy.
    Parquet,
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
    let rows = match database::read(&args.database) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    if let Some(note) = missing_note(&rows) {
        eprintln!("note: {note}");
    }
    let table = Table::of(rows);
    let write = match args.format {
        Format::Csv => write_csv,
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet_file::write,
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => unreachable!("refused before"),
    };
    write(&args.out, &table).with_context(|| format!("failed to write {}", args.out.display()))?;
    Ok(exit::DONE)
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
