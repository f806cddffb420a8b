//! The command line of Stealgrid: `simulate`, `run`, `attach`, `compare`, `trace`, `sweep`, `report`, `serve`, `play`, `export`, `journal`, `key`,
//! `health`, `submit`, `swarm`, `chaos`, `power`, `genetic`, `learning`, `bench`, `completions` and `man`.

/// Says a line on stderr. In the place of the macro of the standard library, which panics where stderr is a file on a
/// disk that is full: what is said is for people, and a run goes on unheard.
macro_rules! eprintln {
    ($($words:tt)*) => {
        $crate::terminal::tell(&format!("{}\n", format_args!($($words)*)))
    };
}

/// The same without the end of the line.
macro_rules! eprint {
    ($($words:tt)*) => {
        $crate::terminal::tell(&format!($($words)*))
    };
}

pub mod audit;
pub mod bench;
pub mod chaos;
pub mod cli;
pub mod compare;
pub mod drive;
pub mod exit;
pub mod experiment;
pub mod explain;
mod folder;
pub mod genetic;
pub mod groups;
mod hex;
pub mod interrupt;
pub mod journal;
pub mod key;
pub mod kind;
mod latest;
pub mod learning;
pub mod limits;
mod lock;
mod optional;
pub mod orders;
pub mod play;
pub mod power;
pub mod progress;
pub mod rerun;
pub mod serve;
pub mod shell;
pub mod submit;
pub mod swarm;
pub mod sweep;
mod terminal;
pub mod theory;
pub mod trace;
