//! What reads bytes and text of others, under arbitrary input: one function per target, each of which panics if its
//! reader does or if what was read does not hold.
//!
//! The same functions run in two ways: under libFuzzer, which searches for new inputs (`fuzz/targets`, feature
//! `libfuzzer`), and in an ordinary test, which replays the corpus and some mutations of it (`fuzz/tests`). See
//! `docs/FUZZING.md`. [`corpus`] makes the inputs that a search starts from.
//!
//! Faults of sites and links are not here: the crate `simulator` has a swarm of those.
//!
//! ```
//! // Half a log, and bytes that are no frame: either is refused, and nothing panics.
//! fuzz::swf(b"; MaxProcs: 4\n1 0 -1 60");
//! fuzz::frame(&[0xff; 9]);
//! assert_eq!(fuzz::Target::ALL.len(), 9);
//! ```

pub mod corpus;
mod doors;
mod golden;
mod targets;

pub use targets::{Target, config, control, frame, hello, lockstep, message, peer, restore, swf};
