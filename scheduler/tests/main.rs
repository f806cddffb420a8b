//! Tests of local schedulers and ideals through what is public: one program, as each that is linked
//! takes its time. `cargo test -p stealgrid-scheduler --test it local_twins::` runs those of one file.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod exchange_examples;
mod exchange_identities;
mod exchange_twin;
mod ideal_equalities;
mod ideal_examples;
mod ideal_invariants;
mod ideal_twin;
mod local_grid;
mod local_invariants;
mod local_plan;
mod local_turns;
mod local_twins;
mod naive;
mod sharing_forward;
mod sharing_laws;
mod sharing_twin;
mod sharing_twins;
