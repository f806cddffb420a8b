//! What a sweep says, as a page with plots and tables.
//!
//! `study` sorts the rows, `figures` chooses the plots, `chart` and `axis` draw them, `tables` answers in
//! words, and `page` puts all of it on one page that needs nothing else.

mod axis;
mod calibration;
mod chart;
mod figures;
mod metric;
mod page;
#[cfg(feature = "png")]
mod png;
mod study;
mod tables;

pub use figures::{Figure, all as figures};
pub use page::{PRODUCT, html};
pub use study::{Study, StudyError, WrittenReport, missing_note, no_parameter};
