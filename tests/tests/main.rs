//! What only holds when crates meet: one program, as each that is linked takes its time.
//! `cargo test -p stealgrid-tests --test it equality::` runs those of one file.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod architecture;
mod brokers;
mod ceilings;
mod coallocation;
mod constants;
mod deficiency;
mod dispatched;
mod equality;
mod extending;
mod faults;
mod fetch;
mod local_references;
mod members;
mod mutants;
mod opaque;
mod predictors;
mod runs;
mod shared_exchange;
mod shared_parts;
mod sharing;
mod simgrid;
mod traces;
mod waits;
