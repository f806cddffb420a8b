//! A small table that can be written as aligned text, as Markdown or for LaTeX.
//!
//! The first column is aligned to the left, all others to the right unless asked otherwise.

/// Letters that a column of words keeps: in fewer, hardly two words would stand side by side.
const WORDS: usize = 16;

/// Between columns.
const GAP: &str = "  ";

/// A text in lines of at most so many letters, broken at blanks; longer words stay whole.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            line.truncate(line.trim_end().len());
            lines.push(word.to_string());
        }
    }
    lines
}

/// Lines as they are, and those longer than so many letters in several, of which all but the first are set in.
pub fn folded(text: &str, width: usize) -> String {
    let fold = |line: &str| {
        if line.chars().count() <= width {
            return line.to_string();
        }
        let words = line.trim_start_matches(' ');
        let margin = " ".repeat(line.len() - words.len());
        let pieces = wrapped(words, width.saturating_sub(margin.len() + GAP.len()));
        format!("{margin}{}", pieces.join(&format!("\n{margin}{GAP}")))
    };
    text.split('\n').map(fold).collect::<Vec<_>>().join("\n")
}

/// Cells in rows, all of the same length as the header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    left: Vec<bool>,
    /// Letters of a line of text, where longer cells of the last column go on below.
    width: Option<usize>,
}

impl Table {
    /// An empty table.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>) -> Table {
        let header: Vec<String> = header.into_iter().map(Into::into).collect();
        let left = (0..header.len()).map(|column| column == 0).collect();
        Table { header, rows: Vec::new(), left, width: None }
    }

    /// Keeps lines of text to so many letters: words of the widest columns to the left go on in the next line.
    pub fn within(mut self, width: usize) -> Table {
        self.width = Some(width);
        self
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
        let widths = self.fitted();
        let mut text = String::new();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let lines_of = |(column, cell): (usize, &String)| match self.left[column] {
                true => wrapped(cell, widths[column]),
                false => vec![cell.clone()],
            };
            let cells: Vec<Vec<String>> = row.iter().enumerate().map(lines_of).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for place in 0..height {
                let of_line = |cell: &Vec<String>| cell.get(place).cloned().unwrap_or_default();
                let padded = |(column, cell)| self.pad(&of_line(cell), column, widths[column]);
                let line: Vec<String> = cells.iter().enumerate().map(padded).collect();
                text.push_str(line.join(GAP).trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// Widths of the columns, where those of words give way to the width of a line.
    fn fitted(&self) -> Vec<usize> {
        let mut widths = self.widths();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let mut excess =
            self.width.map_or(0, |width| (widths.iter().sum::<usize>() + gaps).saturating_sub(width));
        while excess > 0 {
            let words = (0..widths.len()).filter(|&column| self.left[column] && widths[column] > WORDS);
            let Some(widest) = words.max_by_key(|&column| widths[column]) else { break };
            widths[widest] -= 1;
            excess -= 1;
        }
        widths
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

    /// The table as a `tabular` with the rules of booktabs, without a float around it. What Markdown has bold is bold.
    pub fn latex(&self) -> String {
        let columns: String = self.left.iter().map(|&left| if left { 'l' } else { 'r' }).collect();
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| latex_cell(cell)).collect();
            format!("{} \\\\\n", cells.join(" & "))
        };
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!(
            "\\begin{{tabular}}{{{columns}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n",
            line(&self.header)
        )
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

fn latex_cell(cell: &str) -> String {
    match cell.strip_prefix("**").and_then(|rest| rest.strip_suffix("**")) {
        Some(bold) => format!("\\textbf{{{}}}", latex(bold)),
        // A lone stroke stands for nothing.
        None if cell == "-" => "--".to_string(),
        None => latex(cell),
    }
}

/// Text as LaTeX sets it, with signs of numbers that are as long as a plus, and no break before a percent.
fn latex(text: &str) -> String {
    let mut written = String::new();
    let letters: Vec<char> = text.chars().collect();
    for (place, &letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).map(|place| letters[place]);
        let after = letters.get(place + 1).copied();
        let begins = before.is_none_or(|before| before == ' ' || before == '(');
        match letter {
            '\\' => written += "\\textbackslash{}",
            '~' => written += "\\textasciitilde{}",
            '^' => written += "\\textasciicircum{}",
            '<' => written += "\\textless{}",
            '>' => written += "\\textgreater{}",
            '|' => written += "\\textbar{}",
            '"' => written += "''",
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => written.extend(['\\', letter]),
            '-' if begins && after.is_some_and(|after| after.is_ascii_digit()) => written += "$-$",
            ' ' if after == Some('%') => written += "\\,",
            '\u{2212}' => written += "$-$",
            '\u{b1}' => written += "$\\pm$",
            '\u{d7}' => written += "$\\times$",
            '\u{221e}' => written += "$\\infty$",
            '\u{3c4}' => written += "$\\tau$",
            '\u{b2}' => written += "$^2$",
            '\u{2026}' => written += "\\ldots{}",
            other => written.push(other),
        }
    }
    written
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
    fn a_long_last_column_goes_on_below_itself() {
        let mut table = Table::new(["name", "why"]).with_left(1).within(22);
        table.push(["a", "one two three four"]);
        table.push(["b", "short"]);
        assert_eq!(table.text(), "name  why\na     one two three\n      four\nb     short\n");
        let unbroken = Table { width: None, ..table.clone() };
        assert!(unbroken.text().contains("one two three four"));
        assert!(table.markdown().contains("one two three four"));
    }

    #[test]
    fn long_lines_go_on_set_in() {
        assert_eq!(folded("short\n  one two  three four", 12), "short\n  one two\n    three\n    four");
        assert_eq!(folded("a-word-that-has-no-blank", 12), "a-word-that-has-no-blank");
    }

    #[test]
    fn latex_has_rules_and_no_letter_that_means_something_there() {
        let mut table = Table::new(["wait_mean_s, 50 %", "a & b"]);
        table.push(["st:50 {x} #1 $ \\ ~ ^ < > \"", "**-2.0 %**"]);
        table.push(["pool-easy", "-"]);
        assert_eq!(
            table.latex(),
            "\\begin{tabular}{lr}\n\\toprule\nwait\\_mean\\_s, 50\\,\\% & a \\& b \\\\\n\\midrule\n\
             st:50 \\{x\\} \\#1 \\$ \\textbackslash{} \\textasciitilde{} \\textasciicircum{} \\textless{} \\textgreater{} \
             '' & \\textbf{$-$2.0\\,\\%} \\\\\npool-easy & -- \\\\\n\\bottomrule\n\\end{tabular}\n"
        );
        assert_eq!(latex("3 (-1 to +\u{221e}) \u{b1} 2"), "3 ($-$1 to +$\\infty$) $\\pm$ 2");
    }

    #[test]
    fn markdown_escapes_pipes() {
        assert_eq!(
            table().markdown(),
            "| name | value | why |\n| --- | ---: | --- |\n| a | 1 | short |\n| long name | 1,000 | x\\|y |\n"
        );
    }
}
