//! The command line of Stealgrid: `simulate`, `run` and `trace`.

pub mod cli;
pub mod exit;
pub mod outputs;
pub mod report;
pub mod trace;
