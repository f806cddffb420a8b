//! The command line of Stealgrid: `simulate`, `run`, `attach`, `compare`, `trace`, `sweep`, `report`, `serve`, `export`, `journal`, `key`,
//! `health`, `swarm`, `chaos`, `power` and `bench`.

/// Says a line on stderr. In the place of the macro of the standard library, which panics where stderr is a file on a
/// disk that is full: what is said is for people, and a run goes on unheard.
macro_rules! eprintln {
    ($($words:tt)*) => {
        $crate::tell(&format!("{}\n", format_args!($($words)*)))
    };
}

/// The same without the end of the line.
macro_rules! eprint {
    ($($words:tt)*) => {
        $crate::tell(&format!($($words)*))
    };
}

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

/// Says this on stderr, if anybody can hear it.
pub(crate) fn tell(words: &str) {
    use std::io::Write as _;
    let _ = std::io::stderr().lock().write_all(words.as_bytes());
}
