//! The frame of drawings that say which share of something is at most so much: shares upwards, values by logarithm to the
//! right.

use std::io::{self, Write};

/// Size of the drawings, in their own units.
pub(super) const WIDTH: f64 = 560.0;
pub(super) const HEIGHT: f64 = 220.0;
/// Room for labels.
const LEFT: f64 = 46.0;
const BOTTOM: f64 = 26.0;
pub(super) const TOP: f64 = 10.0;

/// Where values and shares are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axes {
    /// The least and the greatest value; what is less stands at the least.
    pub(super) from: f64,
    pub(super) to: f64,
    /// Room to the right.
    pub(super) right: f64,
}

impl Axes {
    pub(super) fn x(&self, value: f64) -> f64 {
        let (from, to) = (self.from.log10(), self.to.log10());
        LEFT + (value.max(self.from).log10() - from) / (to - from) * (WIDTH - LEFT - self.right)
    }

    pub(super) fn y(&self, share: f64) -> f64 {
        TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
    }

    /// Begins the drawing, with lines at shares and at marked values.
    pub(super) fn write(
        &self,
        file: &mut dyn Write,
        name: &str,
        shares: &[f64],
        marks: impl IntoIterator<Item = (f64, String)>,
    ) -> io::Result<()> {
        writeln!(
            file,
            "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{name}\">"
        )?;
        for &share in shares {
            let at = self.y(share);
            writeln!(
                file,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
                WIDTH - self.right,
                LEFT - 6.0,
                at + 4.0,
                share * 100.0
            )?;
        }
        for (value, label) in marks {
            let at = self.x(value);
            writeln!(
                file,
                "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                HEIGHT - BOTTOM,
                HEIGHT - 8.0,
            )?;
        }
        Ok(())
    }
}
