//! The command line of Stealgrid: what can be typed ([`cli`]), and the commands that are of no other crate.
//!
//! | module | commands |
//! |---|---|
//! | [`trace`] | `trace`: logs, looked at and made into others |
//! | [`sweep`] | `sweep`, `report`, `export`, `study`: many simulations, their database, and what is made of it |
//! | [`compare`], [`explain`], [`rerun`] | the same: results of runs, looked at and run again |
//! | [`play`] | `play`: a simulation in the browser |
//! | [`submit`], [`journal`], [`key`] | the same: nodes by hand |
//! | [`doctor`] | `doctor`: whether this machine can keep to what runs ask of it |
//! | [`docs`] | `docs`: where the documentation is |
//! | [`shell`] | `completions`, `man`, `licenses` |
//!
//! `simulate` is in the crate `experiments`; `run`, `attach` and `serve` are in `operation`; what is measured and judged is in
//! `laboratory`; `node` and `health` are in the crate of nodes. Nothing uses this crate but its tests.

#[macro_use(eprint, eprintln)]
extern crate experiments;

pub mod cli;
pub mod compare;
pub mod docs;
pub mod doctor;
pub mod explain;
pub mod groups;
pub mod journal;
pub mod key;
mod optional;
pub mod play;
pub mod rerun;
pub mod shell;
pub mod submit;
pub mod sweep;
pub mod trace;
