//! What a sweep says, as a page with plots and tables.
//!
//! `study` sorts the rows by the parts that `columns` give to parameters, `figures` chooses the plots, `chart` and `axis`
//! draw them, `look` gives each series its color, `allocation` is the page of batches that were allocated off-line, `prediction` that of predictions on a log with rows of `dot_chart`, `ranking` and `rank_chart` rank strategies, `tables` answers in words, and `page` puts all of it on one page that needs nothing else.

pub(crate) mod advantage;
pub mod allocation;
pub(crate) mod axis;
mod calibration;
pub(crate) mod chart;
pub(crate) mod columns;
pub(crate) mod dot_chart;
mod figures;
#[cfg(feature = "png")]
mod files;
pub(crate) mod look;
pub(crate) mod metric;
mod page;
pub mod prediction;
pub(crate) mod rank_chart;
pub(crate) mod ranking;
pub mod sharing;
pub(crate) mod study;
mod tables;

pub use figures::{Figure, all as figures, parts};
#[cfg(feature = "png")]
pub use files::{pdf, png};
pub use page::{PRODUCT, html};
pub use study::{Study, StudyError, WrittenReport, missing_note, no_parameter};
