//! Text of others in the cells of CSV files: names of workloads, sites and experiments, reasons.
//!
//! Spreadsheets take a cell that begins with `=`, `+`, `-` or `@` for a formula, which can run programs. An apostrophe
//! before it makes it text for them; `manifest.json` has what stood there. Numbers are written without this module, and
//! text that is a number stays one, so that a negative parameter of a sweep can be computed with.

/// A cell that shows this text and is nothing but text, in quotes where it needs them.
pub fn text(text: &str) -> String {
    let text = defused(text);
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// The same for a file in which nothing is quoted: what would break its row becomes `_`.
pub fn unquoted(text: &str) -> String {
    let allowed = |letter: char| if ",\"\r\n".contains(letter) { '_' } else { letter };
    defused(text).chars().map(allowed).collect()
}

fn defused(text: &str) -> String {
    // Blanks are skipped before a formula is looked for.
    let formula = text.trim_start_matches(' ').starts_with(['=', '+', '-', '@', '\t', '\r']);
    let number = text.parse::<f64>().is_ok_and(f64::is_finite);
    if formula && !number { format!("'{text}") } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_text() {
        for formula in ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "  =1", "-inf", "+"] {
            assert_eq!(text(formula), format!("'{formula}"));
            assert_eq!(unquoted(formula), format!("'{formula}"));
        }
        assert_eq!(text("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
        assert_eq!(unquoted("=A(\"x\",\n1)"), "'=A(_x___1)");
        assert_eq!(text("\r=1"), "\"'\r=1\"");
    }

    #[test]
    fn numbers_and_other_text_stay_as_they_are() {
        for plain in ["", "-3", "-3.5e2", "+4", "kth-sp2.swf", "a b", "x=1", "12", "é", "'quoted'"] {
            assert_eq!((text(plain), unquoted(plain)), (plain.to_string(), plain.to_string()));
        }
        assert_eq!(text("a,b"), "\"a,b\"");
        assert_eq!(unquoted("a,b"), "a_b");
    }
}
