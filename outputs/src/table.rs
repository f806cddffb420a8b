//! A small table that can be written as aligned text or as Markdown.
//!
//! The first column is aligned to the left, all others to the right unless asked otherwise.

/// Cells in rows, all of the same length as the header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    left: Vec<bool>,
}

impl Table {
    /// An empty table.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Table {
        let header: Vec<String> = header.into_iter().map(Into::into).collect();
        let left = (0..header.len()).map(|column| column == 0).collect();
        Table { header, rows: Vec::new(), left }
    }

    /// Aligns a column to the left.
    pub fn with_left(mut self, column: usize) -> Table {
        self.left[column] = true;
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not as many cells as the header.
    pub fn push<S: Into<String>>(&mut self, row: impl IntoIterator<Item = S>) {
        let row: Vec<String> = row.into_iter().map(Into::into).collect();
        assert_eq!(row.len(), self.header.len(), "a row has a cell for every column");
        self.rows.push(row);
    }

    /// The header and the rows.
    pub fn cells(&self) -> (&[String], &[Vec<String>]) {
        (&self.header, &self.rows)
    }

    /// The table as lines of aligned text.
    pub fn text(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                if column > 0 {
                    line.push_str("  ");
                }
                line.push_str(&self.pad(cell, column, widths[column]));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let escape = |row: &Vec<String>| row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let rule = self.left.iter().map(|&left| if left { "---" } else { "---:" }.to_string()).collect();
        let mut text = line(escape(&self.header));
        text.push_str(&line(rule));
        for row in &self.rows {
            text.push_str(&line(escape(row)));
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.header.len()];
        for row in std::iter::once(&self.header).chain(&self.rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    fn pad(&self, cell: &str, column: usize, width: usize) -> String {
        if self.left[column] { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["name", "value", "why"]).with_left(2);
        table.push(["a", "1", "short"]);
        table.push(["long name", "1,000", "x|y"]);
        table
    }

    #[test]
    fn text_is_aligned_and_has_no_trailing_blanks() {
        assert_eq!(table().text(), "name       value  why\na              1  short\nlong name  1,000  x|y\n");
    }

    #[test]
    fn markdown_escapes_pipes() {
        assert_eq!(
            table().markdown(),
            "| name | value | why |\n| --- | ---: | --- |\n| a | 1 | short |\n| long name | 1,000 | x\\|y |\n"
        );
    }
}
