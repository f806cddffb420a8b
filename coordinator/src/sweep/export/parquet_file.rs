//! Tables as Parquet.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use outputs::sweep::Cell;

use super::{Column, Table};

/// What all cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Real,
    Text,
}

impl Kind {
    fn of(column: &Column) -> Kind {
        let is = |kind: fn(&Cell) -> bool| column.cells.iter().any(kind);
        if is(|cell| matches!(cell, Cell::Text(_))) {
            Kind::Text
        } else if is(|cell| matches!(cell, Cell::Real(_))) {
            Kind::Real
        } else {
            Kind::Integer
        }
    }
}

/// Writes a table, compressed with Snappy.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(path: &Path, table: &Table) -> anyhow::Result<()> {
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
    let kind = Kind::of(column);
    let physical = match kind {
        Kind::Integer => Physical::INT64,
        Kind::Real => Physical::DOUBLE,
        Kind::Text => Physical::BYTE_ARRAY,
    };
    let logical = (kind == Kind::Text).then_some(LogicalType::String);
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
