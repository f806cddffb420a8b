//! The command line of Stealgrid: `simulate`, `run` and `trace`.

pub mod cli;
pub mod exit;
