//! Plots as files: which kinds there are, and how one is made of a drawing.

use crate::optional;

/// Kinds of files of plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PlotFile {
    /// Scalable Vector Graphics.
    Svg,
    /// Portable Network Graphics, twice the size of the page.
    Png,
    /// Portable Document Format, for LaTeX.
    Pdf,
}

impl PlotFile {
    /// Of the name of such a file.
    pub(super) fn ending(self) -> &'static str {
        match self {
            PlotFile::Svg => "svg",
            PlotFile::Png => "png",
            PlotFile::Pdf => "pdf",
        }
    }

    /// Whether this program makes all of these.
    ///
    /// # Errors
    /// What the user reads: how to get a program that does.
    pub(super) fn check(kinds: &[PlotFile]) -> Result<(), String> {
        let others = kinds.iter().any(|kind| *kind != PlotFile::Svg);
        let instead = "take the plots as SVG";
        if others { optional::check(cfg!(feature = "png"), "PNG and PDF", "png", instead) } else { Ok(()) }
    }

    /// The file of a drawing that needs no page.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub(super) fn of(self, svg: &str) -> anyhow::Result<Vec<u8>> {
        match self {
            PlotFile::Svg => Ok(svg.as_bytes().to_vec()),
            #[cfg(feature = "png")]
            PlotFile::Png => report::sweep::png(svg),
            #[cfg(feature = "png")]
            PlotFile::Pdf => report::sweep::pdf(svg),
            #[cfg(not(feature = "png"))]
            PlotFile::Png | PlotFile::Pdf => unreachable!("refused by check"),
        }
    }
}
