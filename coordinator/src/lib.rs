//! The command line of Stealgrid: `simulate`, `run`, `attach`, `compare`, `trace`, `sweep`, `report`, `serve`, `play`, `export`, `journal`, `key`,
//! `health`, `submit`, `swarm`, `chaos`, `power`, `genetic`, `learning`, `bench`, `completions` and `man`.

#[macro_use(eprint, eprintln)]
extern crate experiments;

pub mod bench;
pub mod chaos;
pub mod cli;
pub mod compare;
pub mod explain;
pub mod genetic;
pub mod groups;
pub mod journal;
pub mod key;
pub mod learning;
mod optional;
pub mod play;
pub mod power;
pub mod rerun;
pub mod shell;
pub mod submit;
pub mod swarm;
pub mod sweep;
pub mod theory;
pub mod trace;
