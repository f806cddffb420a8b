//! The command line of Stealgrid: `simulate`, `run`, `attach`, `compare`, `trace`, `sweep`, `report`, `serve`, `play`, `export`, `journal`, `key`,
//! `health`, `submit`, `swarm`, `chaos`, `power`, `genetic`, `learning`, `bench`, `completions` and `man`.

#[macro_use(eprint, eprintln)]
extern crate experiments;

pub mod cli;
pub mod compare;
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
