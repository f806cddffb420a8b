//! Tests of simulated grids: one program, as each that is linked takes its time.
//! `cargo test -p stealgrid-simulator --test it scenarios::` runs those of one file.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod balance;
mod behind_brokers;
mod brokers;
mod faults;
mod gangs;
mod kills;
mod late;
mod met;
mod mutants;
mod opaque;
mod pool_delay_cost;
mod pool_faults;
mod pool_hosts;
mod pool_mutants;
mod pool_scenarios;
mod predictions;
mod questions;
mod reference;
mod scenarios;
mod shared_nodes;
mod stealing_theory;
mod swarm;
mod swarm_mutants;
mod views;
mod worlds;
