//! The command line of Stealgrid: `simulate`, `run` and `trace`.

pub mod cli;
pub mod drive;
pub mod exit;
pub mod experiment;
pub mod outputs;
pub mod report;
pub mod trace;
