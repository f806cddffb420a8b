//! Tests of brokers and learners through what is public: one program, as each that is linked takes its time.
//! `cargo test -p stealgrid-brokers --test it broker_twins::` runs those of one file.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod broker_twin;
mod broker_twins;
mod coallocation;
mod genetic_on_line;
mod genetic_twins;
#[expect(dead_code, reason = "the rest is for tests of other references")]
#[path = "../../scheduler/tests/ideal_twin/mod.rs"]
mod ideal_twin;
mod learning_dispatch;
mod learning_reviewed;
#[expect(dead_code, reason = "the rest is for tests of other references")]
#[path = "../../scheduler/tests/naive/mod.rs"]
mod naive;
