//! Experiments: what was typed, what it means, what comes of it in virtual time, and how any run of one ends in results.
//!
//! ```text
//!   experiment    an experiment file and flags --> Written --> Experiment --> Jobs
//!   drive         the simulator as a driver; whose a result directory is; where events of any driver go, and how they
//!                 are measured, compared and written
//! ```
//! Beside these is what every command needs that reads what users wrote and tells them what came of it: [`exit`] codes,
//! [`limits`] of files, what [`kind`] a file is, a [`folder`] for results and a [`lock`] of one, [`interrupt`], [`progress`],
//! and lines on a [`terminal`].
//!
//! Nothing here begins or asks a process of a site: that is the crate `operation`, a driver over this one. Of nodes is
//! known here what an experiment can say of them, and whether one still works where results are to go. Which commands there
//! are is known here of two alone: the arguments that all share that run an experiment, and `simulate`.
//!
//! Start with [`experiment::Experiment`] and [`drive::Sink`].
//!
//! ```
//! use std::path::Path;
//!
//! use experiments::drive::simulate::simulate;
//! use experiments::experiment::file::Written;
//! use experiments::experiment::{Experiment, jobs};
//! use experiments::interrupt::Interrupt;
//! use scheduler::EventKind;
//!
//! let text = "[grid]\nsizes = [16, 128]\n[workload]\ntrace = \"traces/seven-sites.swf\"\ncount = 20\n[network]\ndelay = \"30s\"";
//! let written = Written::parse(text, Path::new("../configs/tiny.toml")).unwrap();
//! let experiment = Experiment::resolve(&written).unwrap();
//! let jobs = jobs::read(&experiment).unwrap();
//! let mut completed = 0;
//! let mut count = |event: &scheduler::Event| completed += u32::from(matches!(event.kind, EventKind::Completed { .. }));
//! simulate(&experiment, &jobs, simulator::Checks::default(), &Interrupt::default(), &mut count).unwrap();
//! assert_eq!(completed, 20);
//! ```

/// Says a line on stderr. In the place of the macro of the standard library, which panics where stderr is a file on a
/// disk that is full: what is said is for people, and a run goes on unheard.
#[macro_export]
macro_rules! eprintln {
    ($($words:tt)*) => {
        $crate::terminal::tell(&format!("{}\n", format_args!($($words)*)))
    };
}

/// The same without the end of the line.
#[macro_export]
macro_rules! eprint {
    ($($words:tt)*) => {
        $crate::terminal::tell(&format!($($words)*))
    };
}

/// Prints a line on stdout. In the place of the macro of the standard library, which panics once nobody reads any more, as after
/// `| head`.
#[macro_export]
macro_rules! println {
    ($($words:tt)*) => {
        $crate::terminal::print(&format!("{}\n", format_args!($($words)*)))
    };
}

/// The same without the end of the line.
#[macro_export]
macro_rules! print {
    ($($words:tt)*) => {
        $crate::terminal::print(&format!($($words)*))
    };
}

pub mod drive;
pub mod exit;
pub mod experiment;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod folder;
pub mod hex;
pub mod interrupt;
pub mod kind;
pub mod latest;
pub mod limits;
pub mod lock;
pub mod progress;
pub mod terminal;
