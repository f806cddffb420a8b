//! The command line of Stealgrid: `simulate`, `run`, `attach`, `compare`, `trace`, `sweep`, `report`, `serve`, `export`, `journal`, `key`,
//! `health`, `swarm`, `chaos`, `power` and `bench`.

pub mod bench;
pub mod chaos;
pub mod cli;
pub mod compare;
pub mod directory;
pub mod drive;
pub mod exit;
pub mod experiment;
pub mod explain;
pub mod journal;
pub mod key;
pub mod limits;
pub mod orders;
pub mod outputs;
pub mod power;
pub mod report;
pub mod serve;
pub mod swarm;
pub mod sweep;
pub mod theory;
pub mod trace;
