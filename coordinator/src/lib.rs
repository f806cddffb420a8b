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
//! `laboratory`; `node` and `health` are in the crate of nodes. Nothing uses this crate but its tests: it is a program, and no
//! library to build on. Whoever wants to run an experiment from Rust takes `experiments`, or `simulator` without files.
//!
//! ```
//! use clap::CommandFactory as _;
//!
//! let program = coordinator::cli::Cli::command();
//! let typed = ["stealgrid", "simulate", "configs/quickstart.toml", "--delay", "30s"];
//! assert!(program.clone().try_get_matches_from(typed).is_ok());
//! assert!(program.try_get_matches_from(["stealgrid", "simulate", "--delai", "30s"]).is_err());
//! ```
//!
//! # The crates
//!
//! Each one's first page says what it is and what it is not, with an example that runs. `docs/ARCHITECTURE.md` says what may depend on what.
//!
//! | crate | is |
//! |---|---|
//! | [`scheduler`] | jobs, sites, queues, the names of all strategies, and those that need no broker |
//! | [`predict`](../predict/index.html) | how long a job will run, and when it will start |
//! | [`brokers`] | which job goes to which site |
//! | [`links`] | what links do to messages |
//! | [`overlay`](../overlay/index.html) | who knows whom in a large grid; nothing uses it yet |
//! | [`protocol`](../protocol/index.html) | one site as a state machine: messages, and the exactly-once hand-over |
//! | [`simulator`] | many peers in virtual time, with faults |
//! | [`analysis`] | what a run was worth: metrics, bounds, what is proved |
//! | [`claims`](../claims/index.html) | what theory claims, as experiments that can fail |
//! | [`workload`] | logs, mixes, models |
//! | [`external`] | strategies that are processes of the user |
//! | [`node`] | one site as a process |
//! | [`outputs`] | result directories and stored sweeps |
//! | [`report`] | summaries, plots and pages |
//! | [`experiments`] | experiments from files and flags; `simulate` |
//! | [`operation`] | runs on processes |
//! | [`laboratory`] | what is measured and judged beside runs |
//! | [`stealgrid_tests`](../stealgrid_tests/index.html), [`fuzz`](../fuzz/index.html) | what holds between crates; input that nobody should send |

#[macro_use(eprint, eprintln)]
extern crate experiments;

pub mod cli;
pub mod compare;
pub mod docs;
pub mod doctor;
pub mod examples;
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
