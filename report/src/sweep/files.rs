//! Plots as files for slides and papers that take no SVG: pictures of points (PNG), and PDF, in which letters are text of a font
//! that is in the file, and sizes are those of the drawing.

use std::sync::Arc;

use anyhow::Context;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};
use svg2pdf::{ConversionOptions, PageOptions};

/// Points of a picture per unit of the drawing: sharp in print at the width of a column.
const SCALE: f32 = 2.0;
/// Units of a drawing in an inch, as in browsers: 8.5 cm stay 8.5 cm.
const UNITS_PER_INCH: f32 = 96.0;

/// Reads an SVG that names no font but DejaVu Sans, which is part of the program.
fn tree(svg: &str) -> anyhow::Result<usvg::Tree> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
    usvg::Tree::from_str(svg, &options).context("failed to read a plot")
}

/// Draws an SVG that names no font but DejaVu Sans, as PNG.
///
/// # Errors
/// If it is no SVG.
pub fn png(svg: &str) -> anyhow::Result<Vec<u8>> {
    let tree = tree(svg)?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
    let mut picture = Pixmap::new(width, height).context("the plot has no area")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().context("failed to encode a plot")
}

/// Makes a page of an SVG that names no font but DejaVu Sans, as PDF.
///
/// # Errors
/// If it is no SVG.
pub fn pdf(svg: &str) -> anyhow::Result<Vec<u8>> {
    let page = PageOptions { dpi: UNITS_PER_INCH };
    let made = svg2pdf::to_pdf(&tree(svg)?, ConversionOptions::default(), page);
    made.map_err(|error| anyhow::anyhow!("failed to make a PDF of a plot: {error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_it_says_and_its_letters_are_text() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 321 100\" width=\"8.5cm\" height=\"2.648cm\" \
                   font-family=\"DejaVu Sans\"><text x=\"9\" y=\"50\">wait (min)</text></svg>";
        let made = pdf(svg).unwrap();
        let text = String::from_utf8_lossy(&made);
        assert!(made.starts_with(b"%PDF-"));
        let (_, size) = text.split_once("/MediaBox [").unwrap();
        let width: f64 = size.split_whitespace().nth(2).unwrap().parse().unwrap();
        assert!((width / 72.0 * 2.54 - 8.5).abs() < 0.01, "{width} points");
        assert!(text.contains("DejaVuSans"), "the font is in the file");
        assert!(pdf("no drawing").is_err());
    }
}
