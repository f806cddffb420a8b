//! `stealgrid export`: the rows of a sweep as CSV or Parquet, for other tools.
//!
//! One row a run, in the order of the sweep: its number, its parameters, how it ended, then every metric. A column is
//! whole numbers, other numbers or texts throughout; what is missing is empty in CSV and null in Parquet.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::database::{self, Cell, Row, Rows};
use crate::exit;
use crate::outputs::csv_cell;

/// Write the rows of a sweep as CSV or Parquet
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
    let rows = match database::read(&args.database) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    if let Some(note) = rows.missing_note() {
        eprintln!("note: {note}");
    }
    let table = Table::of(rows);
    let write = match args.format {
        Format::Csv => write_csv,
        Format::Parquet => write_parquet,
    };
    write(&args.out, &table).with_context(|| format!("failed to write {}", args.out.display()))?;
    Ok(exit::DONE)
}

/// What all cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Real,
    Text,
}

/// Columns of equal length.
struct Table {
    columns: Vec<Column>,
    rows: usize,
}

struct Column {
    name: String,
    kind: Kind,
    cells: Vec<Cell>,
}

impl Column {
    fn new(name: &str, cells: Vec<Cell>) -> Column {
        let is = |kind: fn(&Cell) -> bool| cells.iter().any(kind);
        let kind = if is(|cell| matches!(cell, Cell::Text(_))) {
            Kind::Text
        } else if is(|cell| matches!(cell, Cell::Real(_))) {
            Kind::Real
        } else {
            Kind::Integer
        };
        Column { name: name.to_string(), kind, cells }
    }
}

impl Table {
    fn of(rows: Rows) -> Table {
        let column =
            |name: &str, cell: &dyn Fn(&Row) -> Cell| Column::new(name, rows.rows.iter().map(cell).collect());
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

fn write_parquet(path: &Path, table: &Table) -> anyhow::Result<()> {
    let types: Vec<_> = table.columns.iter().map(parquet_type).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("runs").with_fields(types).build()?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in &table.columns {
        write_column(&mut group, column)?;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

fn parquet_type(column: &Column) -> parquet::errors::Result<Arc<Type>> {
    let physical = match column.kind {
        Kind::Integer => Physical::INT64,
        Kind::Real => Physical::DOUBLE,
        Kind::Text => Physical::BYTE_ARRAY,
    };
    let logical = (column.kind == Kind::Text).then_some(LogicalType::String);
    let builder = Type::primitive_type_builder(&column.name, physical);
    let builder = builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
    Ok(Arc::new(builder.build()?))
}

fn write_column(group: &mut SerializedRowGroupWriter<'_, File>, column: &Column) -> anyhow::Result<()> {
    // Level 1 is a value, level 0 is null.
    let levels: Vec<i16> = column.cells.iter().map(|cell| i16::from(*cell != Cell::Null)).collect();
    let present = || column.cells.iter().filter(|cell| **cell != Cell::Null);
    let mut writer = group.next_column()?.context("the schema has every column")?;
    match writer.untyped() {
        ColumnWriter::Int64ColumnWriter(writer) => {
            let whole = |cell: &Cell| if let Cell::Integer(value) = cell { *value } else { 0 };
            let values: Vec<i64> = present().map(whole).collect();
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnWriter::DoubleColumnWriter(writer) => {
            let values: Vec<f64> = present().filter_map(Cell::number).collect();
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            let values: Vec<ByteArray> =
                present().map(|cell| ByteArray::from(cell.to_string().into_bytes())).collect();
            writer.write_batch(&values, Some(&levels), None)?;
        }
        _ => anyhow::bail!("column {} has a type that none of ours has", column.name),
    }
    writer.close()?;
    Ok(())
}
