//! Delay matrices as text: values separated by commas, semicolons or blanks, one row a line.

use scheduler::Span;

use crate::quantity::span;

/// How bare numbers are meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    /// Microseconds of one unit.
    pub(crate) micros: f64,
    /// Whether values are there and back.
    pub(crate) round_trip: bool,
}

impl Unit {
    /// The unit of this name.
    pub(crate) fn named(name: &str, round_trip: bool) -> Result<Unit, String> {
        let micros = match name {
            "us" => 1.0,
            "ms" => 1e3,
            "s" => 1e6,
            other => return Err(format!("unknown unit {other:?}; write us, ms or s")),
        };
        Ok(Unit { micros, round_trip })
    }

    fn value(self, text: &str) -> Result<Span, String> {
        let ways = if self.round_trip { 2.0 } else { 1.0 };
        match text.parse::<f64>() {
            Ok(number) if (0.0..=1e15).contains(&(number * self.micros)) => {
                Ok(Span::from_micros((number * self.micros / ways).round() as i64))
            }
            Ok(number) => Err(format!("{number} is no delay; write a number from 0 on")),
            Err(_) => span(text).map(|span| if self.round_trip { half(span) } else { span }),
        }
    }
}

fn half(span: Span) -> Span {
    Span::from_micros(span.as_micros() / 2)
}

/// The matrix in a text, its rows and columns brought into the order of the sites if they have names: a first line
/// of names and a name in front of every row. Blank lines and what follows a `#` are left out; so is, for a site and
/// itself, any value: it is 0.
pub(crate) fn parse(text: &str, unit: Unit, sites: &[&str]) -> Result<Vec<Vec<Span>>, String> {
    let lines = text.lines().enumerate().filter_map(|(number, line)| {
        let line = line.split('#').next().unwrap_or_default().trim();
        (!line.is_empty()).then(|| (number + 1, cells(line)))
    });
    let mut lines: Vec<(usize, Vec<&str>)> = lines.collect();
    let named = lines.first().is_some_and(|(_, first)| first.iter().any(|cell| sites.contains(cell)));
    let order: Vec<usize> = if named {
        let (number, mut names) = lines.remove(0);
        // A cell above the names of the rows.
        if lines.first().is_some_and(|(_, row)| row.len() == names.len()) {
            names.remove(0);
        }
        let place = |site: &&str| {
            let missing = || format!("line {number}: there is no column for site {site}");
            names.iter().position(|name| name == site).ok_or_else(missing)
        };
        sites.iter().map(place).collect::<Result<_, _>>()?
    } else {
        (0..sites.len()).collect()
    };
    let columns = if named { order.iter().max().map_or(0, |last| last + 1) } else { sites.len() };
    let mut rows: Vec<Option<Vec<Span>>> = vec![None; sites.len()];
    for (index, (number, mut cells)) in lines.into_iter().enumerate() {
        let row = if named {
            let name = cells.remove(0);
            match sites.iter().position(|site| *site == name) {
                Some(row) => row,
                None => continue,
            }
        } else {
            index
        };
        if row >= sites.len() {
            return Err(format!("line {number}: there are more rows than the {} sites", sites.len()));
        }
        if cells.len() < columns || (!named && cells.len() > columns) {
            let count = cells.len();
            return Err(format!(
                "line {number}: there are {count} values; write one for each of {columns} sites"
            ));
        }
        let value = |(to, &column): (usize, &usize)| match to == row {
            true => Ok(Span::ZERO),
            false => unit.value(cells[column]).map_err(|reason| format!("line {number}: {reason}")),
        };
        rows[row] = Some(order.iter().enumerate().map(value).collect::<Result<_, _>>()?);
    }
    let missing = rows.iter().position(Option::is_none);
    match missing {
        Some(row) => Err(format!("there is no row for site {}; write one row for each site", sites[row])),
        None => Ok(rows.into_iter().flatten().collect()),
    }
}

/// The values of a line; an empty one between two commas counts.
fn cells(line: &str) -> Vec<&str> {
    let separated =
        |separator: char| line.split(separator).map(|cell| cell.trim().trim_matches('"')).collect();
    match line.chars().find(|c| matches!(c, ',' | ';' | '\t')) {
        Some(separator) => separated(separator),
        None => line.split_whitespace().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(rows: [[i64; 3]; 3]) -> Vec<Vec<Span>> {
        rows.map(|row| row.map(|ms| Span::from_micros(ms * 1000)).to_vec()).to_vec()
    }

    fn parsed(text: &str, round_trip: bool) -> Result<Vec<Vec<Span>>, String> {
        parse(text, Unit::named("ms", round_trip).unwrap(), &["a", "b", "c"])
    }

    #[test]
    fn commas_semicolons_blanks_and_tabs_separate() {
        let expected = millis([[0, 1, 2], [3, 0, 4], [5, 6, 0]]);
        for text in [
            "0,1,2\n3,0,4\n5,6,0\n",
            "0; 1; 2\n3; 0; 4\n5; 6; 0",
            "# from, to\n 0 1   2\n\n3 0 4 # slow\n5 6 0",
            "-\t1\t2\n3\t-\t4\n5\t6\t-",
            ",\"1\",2ms\n3,,0.004s\n5,6000us,",
        ] {
            assert_eq!(parsed(text, false).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn names_bring_rows_and_columns_into_order_and_others_are_left_out() {
        let text = "site,c,x,a,b\nb,4,9,3,0\nx,9,9,9,9\na,2,9,0,1\nc,0,9,5,6\n";
        assert_eq!(parsed(text, false), Ok(millis([[0, 1, 2], [3, 0, 4], [5, 6, 0]])));
    }

    #[test]
    fn half_of_a_round_trip_is_one_way() {
        let expected = millis([[0, 1, 2], [3, 0, 4], [5, 6, 0]]);
        assert_eq!(parsed("0 2 4\n6 0 8ms\n10 12ms 0", true), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let refused = |text| parsed(text, false).unwrap_err();
        assert!(refused("0 1 2\n3 0 4").contains("there is no row for site c"));
        assert!(refused("0 1 2\n3 0\n5 6 0").contains("line 2: there are 2 values; write one for each of 3"));
        assert!(refused("0 1 2\n3 0 4\n5 6 0\n7 8 9").contains("line 4: there are more rows than the 3"));
        assert!(refused("0 1 x\n3 0 4\n5 6 0").contains("line 1: \"x\" is not a time"));
        assert!(refused("0 1 -2\n3 0 4\n5 6 0").contains("line 1: -2 is no delay"));
        assert!(refused("a b d\na 0 1 2\nb 3 0 4").contains("line 1: there is no column for site c"));
    }
}
