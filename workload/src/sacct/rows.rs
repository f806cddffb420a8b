//! Rows of a dump: mostly lines, but what users type may hold line breaks, and `sacct` prints them as they are.

use super::columns::Columns;
use super::values;
use crate::limits::{Limit, Limits};
use crate::trace::TraceError;

/// A row that the next line may go on with.
#[derive(Debug)]
pub(super) struct Pending {
    /// What there is of it.
    pub(super) text: Vec<u8>,
    /// Its first line, from 1.
    pub(super) line: u64,
    /// Whether it has a line break.
    pub(super) broken: bool,
    /// Lines behind it that are comments if a header follows, and else the rest of its last field.
    pub(super) comments: Vec<Vec<u8>>,
}

/// How a line stands to the row before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is not of that row.
    Apart,
    /// It is a part of it.
    Rest,
    /// A comment, or a part of it: what follows tells.
    Comment,
}

impl Pending {
    /// The row that begins with this line.
    pub(super) fn new(text: &[u8], line: u64) -> Pending {
        Pending { text: text.to_vec(), line, broken: false, comments: Vec::new() }
    }

    /// What the line below is. A line that is a row by itself never is a part of another.
    pub(super) fn next(&self, columns: &Columns, line: &[u8]) -> Next {
        if Columns::are_named(line) {
            return Next::Apart;
        }
        // A name in front of the job: the line that ends it looks like a row.
        if columns.begin_in_free_text() && !columns.begin_with_job(&self.text) {
            return Next::Rest;
        }
        if is_row(columns, line) {
            return Next::Apart;
        }
        if !columns.are_all_in(&self.text) {
            return Next::Rest;
        }
        if line.is_empty() || !columns.end_in_free_text() || columns.begin_with_job(line) {
            return Next::Apart;
        }
        if line.starts_with(b"#") { Next::Comment } else { Next::Rest }
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If the row is longer than a line may be.
    pub(super) fn join(
        &mut self,
        file: &str,
        line: &[u8],
        number: u64,
        limits: &Limits,
    ) -> Result<(), TraceError> {
        self.end(file, limits)?;
        if (self.text.len() + line.len()) as u64 >= limits.line {
            return Err(TraceError::over(file, number, Limit::Line, limits.line));
        }
        self.text.push(b'\n');
        self.text.extend_from_slice(line);
        self.broken = true;
        Ok(())
    }

    /// Adds the lines behind it that are no comments.
    ///
    /// # Errors
    /// If the row is longer than a line may be.
    pub(super) fn end(&mut self, file: &str, limits: &Limits) -> Result<(), TraceError> {
        for line in std::mem::take(&mut self.comments) {
            self.join(file, &line, self.line, limits)?;
        }
        Ok(())
    }
}

/// Whether a line has all columns by itself, and a job where one belongs.
fn is_row(columns: &Columns, line: &[u8]) -> bool {
    columns.are_all_in(line) && columns.begin_with_job(line)
}

impl Columns {
    /// Whether a line has a job where one belongs.
    fn begin_with_job(&self, line: &[u8]) -> bool {
        self.job_in(line).is_some_and(|text| values::id(text).is_ok())
    }
}
