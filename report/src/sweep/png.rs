//! Plots as pictures of points, for slides and papers that take no SVG.

use std::sync::Arc;

use anyhow::Context;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

/// Points of the picture per unit of the drawing: sharp in print at the width of a column.
const SCALE: f32 = 2.0;

/// Draws an SVG that names no font but DejaVu Sans, which is part of the program.
///
/// # Errors
/// If it is no SVG.
pub fn png(svg: &str) -> anyhow::Result<Vec<u8>> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).context("failed to read a plot")?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
    let mut picture = Pixmap::new(width, height).context("the plot has no area")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().context("failed to encode a plot")
}
