//! Tests of the command line and of whole runs: one program, as each that is linked takes its time.
//! `cargo test -p stealgrid --test it attach::` runs those of one file.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod attach;
mod bench;
mod cases;
mod chaos;
mod chunks;
mod commands;
mod compare;
mod configs;
mod containers;
mod directories;
mod documents;
mod exit_codes;
mod explain;
mod external;
mod full_disks;
mod genetic;
mod intervals;
mod key;
mod limits;
mod lost;
mod metrics;
mod orders;
mod outages;
mod page;
mod play;
mod predict;
mod processes;
mod provenance;
mod register;
mod run_processes;
mod schemas;
mod served;
mod shell;
mod slices;
mod steals;
mod study;
mod submit;
mod sweep;
mod three_sites;
mod virtual_clock;

/// The command line that is tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stealgrid");
