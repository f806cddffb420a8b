//! Tests of nodes, most of them real processes: one program, as each that is linked takes its time.
//! `cargo test -p stealgrid-node --test it journal::` runs those of one file.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod commands;
mod control_limits;
mod cut;
mod grid;
mod hostile;
mod journal;
mod journal_nodes;
mod kill_restart;
mod mdns;
mod orphan;
#[cfg(feature = "otel")]
mod otel;
mod process;
mod security;
mod slurm;

/// The node that is tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stealgrid-node");
