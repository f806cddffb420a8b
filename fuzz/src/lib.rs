//! What reads bytes and text of others, under arbitrary input: one function per target, each of which panics if its
//! reader does or if what was read does not hold.
//!
//! The same functions run in two ways: under libFuzzer, which searches for new inputs (`fuzz/targets`, feature
//! `libfuzzer`), and in an ordinary test, which replays the corpus and some mutations of it (`fuzz/tests`). See
//! `docs/FUZZING.md`. [`corpus`] makes the inputs that a search starts from.

pub mod corpus;
mod doors;
mod golden;
mod targets;

pub use targets::{Target, config, control, frame, hello, lockstep, message, peer, restore, swf};
