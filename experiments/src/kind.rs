//! What a path is that was given to a command which takes something else, and which command takes it.
//!
//! Only asked where a command has failed: what is read here decides nothing.

use std::fmt;
use std::path::Path;

use outputs::sweep::stored;
use toml::Table;

use crate::limits;

/// Keys of a sweep file that no experiment has.
const OF_SWEEPS: [&str; 5] = ["base", "experiment", "parameters", "runs", "keep"];
/// Keys of an experiment that no sweep file has.
const OF_EXPERIMENTS: [&str; 12] = [
    "grid", "workload", "strategy", "external", "measure", "network", "protocol", "run", "node", "faults",
    "brokers", "outputs",
];
/// Bytes of a log that are read to know it: more than the comments before the first job of any log of the archive.
const OF_LOG: u64 = 1 << 20;
/// Bytes of a file that are looked at for what no text has: chance alone would have it in a hundred.
const OF_BINARY: u64 = 4096;
/// How every SQLite database begins.
const SQLITE: &[u8] = b"SQLite format 3\0";
/// How rows of a sweep begin that `export` has written, of whatever format.
const ROWS: &[u8] = b"# stealgrid sweep, format ";

/// Kinds of what commands read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What `simulate` and `run` take.
    Experiment,
    /// What `sweep` takes.
    Sweep,
    /// What `simulate` and `run` leave.
    Run,
    /// What `sweep` leaves, as a database or as `export` writes it.
    Rows,
    /// What `--trace` takes.
    Log,
    /// What nothing takes: no text, and none of the above.
    Binary,
}

impl Kind {
    /// What a path is; nothing if it is none of these for certain.
    fn of(path: &Path) -> Option<Kind> {
        if path.is_dir() {
            return ["manifest.json", "run.json"]
                .iter()
                .any(|file| path.join(file).exists())
                .then_some(Kind::Run);
        }
        // A pipe says what it says once.
        if !path.is_file() {
            return None;
        }
        if is_database(path) {
            return Some(Kind::Rows);
        }
        // Rows and logs are compressed alike.
        if stored::is_stored(path).ok()? {
            return unpacked(path, ROWS.len() as u64)
                .starts_with(ROWS)
                .then_some(Kind::Rows)
                .or_else(|| is_log(path).then_some(Kind::Log));
        }
        let text = limits::read_text(path, limits::EXPERIMENT).ok();
        text.and_then(|text| Kind::of_text(&text))
            .or_else(|| is_log(path).then_some(Kind::Log))
            .or_else(|| is_binary(path).then_some(Kind::Binary))
    }

    /// What the text of a file is.
    fn of_text(text: &str) -> Option<Kind> {
        let table: Table = text.parse().ok()?;
        let has = |keys: &[&str]| keys.iter().any(|key| table.contains_key(*key));
        match (has(&OF_EXPERIMENTS), has(&OF_SWEEPS)) {
            (true, false) => Some(Kind::Experiment),
            (false, true) => Some(Kind::Sweep),
            _ => None,
        }
    }

    /// What takes a path of this kind.
    fn taken_by(self, path: &Path) -> String {
        let path = path.display();
        match self {
            Kind::Experiment => format!("`stealgrid simulate {path}` or `stealgrid run {path}` takes it"),
            Kind::Sweep => {
                format!(
                    "`stealgrid sweep {path}` takes it, and `stealgrid report` what that leaves in out/NAME.db"
                )
            }
            Kind::Run => format!(
                "its page is {}, and `stealgrid explain {path} JOB` and `stealgrid compare {path} DIR2` take it",
                Path::new(&path.to_string()).join("report.html").display()
            ),
            Kind::Rows => format!("`stealgrid report {path}` or `stealgrid export` takes it"),
            Kind::Log => format!(
                "`stealgrid simulate --trace {path} --sites 64,128` replays it on sites of so many processors, and \
                 `stealgrid trace info {path}` says what is in it"
            ),
            Kind::Binary => {
                "experiments and sweeps are TOML, and logs of jobs are text, plain or compressed by gzip \
                             or zstd; check the path"
                    .to_string()
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Experiment => "an experiment file",
            Kind::Sweep => "a sweep file",
            Kind::Run => "the result directory of a run",
            Kind::Rows => "the database of a sweep",
            Kind::Log => "a log of jobs",
            Kind::Binary => "a binary file",
        })
    }
}

/// Whether an experiment has such a section.
pub fn is_of_experiments(section: &str) -> bool {
    OF_EXPERIMENTS.contains(&section)
}

/// The first bytes of a file, up to so many; none if it cannot be read.
fn beginning(path: &Path, most: u64) -> Vec<u8> {
    let mut begin = Vec::new();
    let read = workload::source::open(path)
        .and_then(|file| std::io::Read::read_to_end(&mut std::io::Read::take(file, most), &mut begin));
    read.map_or_else(|_| Vec::new(), |_| begin)
}

fn is_database(path: &Path) -> bool {
    beginning(path, SQLITE.len() as u64) == SQLITE
}

/// Whether a file has what no text has, in whatever letters.
fn is_binary(path: &Path) -> bool {
    beginning(path, OF_BINARY).iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
}

/// The first bytes of what is in a file, unpacked if it is compressed, up to so many; none if it cannot be read.
fn unpacked(path: &Path, most: u64) -> Vec<u8> {
    let mut head = Vec::new();
    let read = workload::source::open(path)
        .and_then(|file| workload::source::decompress(file, &limits::of_logs()))
        .and_then(|text| std::io::Read::read_to_end(&mut std::io::Read::take(text, most), &mut head));
    read.map_or_else(|_| Vec::new(), |_| head)
}

/// Whether the beginning of a file, but for its last line, is one of a log.
fn is_log(path: &Path) -> bool {
    let mut head = unpacked(path, OF_LOG);
    if head.is_empty() {
        return false;
    }
    // Batsim's document is whole or nothing.
    if head.trim_ascii_start().starts_with(b"{") {
        return head.windows(6).any(|word| word == b"\"jobs\"");
    }
    if head.len() as u64 == OF_LOG {
        head.truncate(head.iter().rposition(|&byte| byte == b'\n').unwrap_or(0));
    }
    workload::read_from("", &head[..]).is_ok()
}

/// That a path is of another kind than the one that is wanted, and what takes it; nothing if it is not, or nobody knows what
/// it is. Reads after "read PATH: ".
pub fn mistaken(path: &Path, wanted: Kind) -> Option<String> {
    other(Kind::of(path)?, path, wanted)
}

/// The same of a file whose text is known.
pub fn mistaken_text(text: &str, path: &Path, wanted: Kind) -> Option<String> {
    other(Kind::of_text(text)?, path, wanted)
}

/// That a path is no log, where one is wanted and could not be read, and what takes it. Reads after "read trace PATH: ". What is
/// binary is told by who has read it.
pub fn no_log(path: &Path) -> Option<String> {
    other(Kind::of(path).filter(|found| *found != Kind::Binary)?, path, Kind::Log)
}

/// That a path is no result directory, where one is wanted, and what takes it. Reads after "failed to".
pub fn no_run(path: &Path) -> Option<String> {
    mistaken(path, Kind::Run).map(|reason| format!("read {}: {reason}", path.display()))
}

fn other(found: Kind, path: &Path, wanted: Kind) -> Option<String> {
    (found != wanted).then(|| format!("it is {found}, and not {wanted}; {}", found.taken_by(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_what_only_its_kind_has() {
        for (text, kind) in [
            ("[grid]\nsizes = [2]\n", Some(Kind::Experiment)),
            ("[parameters]\nseed = [1]\n", Some(Kind::Sweep)),
            ("[[runs]]\nseed = 1\n", Some(Kind::Sweep)),
            // One slip away from an experiment.
            ("[grid]\nsizes = [2]\n[runs]\nport = 1\n", None),
            ("seed = 1\n", None),
            ("[grid", None),
        ] {
            assert_eq!(Kind::of_text(text), kind, "{text}");
        }
    }

    #[test]
    fn a_log_is_told_in_every_format_and_a_broken_experiment_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.swf");
        let job = "1 0 -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 1 -1 -1\n";
        let said = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            mistaken(&path, Kind::Experiment)
        };
        let packed = zstd::encode_all(job.as_bytes(), 0).unwrap();
        let long = job.repeat(30_000).into_bytes();
        for log in [job.as_bytes(), &packed, &long, b"{\"nb_res\": 4, \"jobs\": []}"] {
            let said = said(log).unwrap();
            assert!(said.starts_with("it is a log of jobs, and not an experiment file"), "{said}");
            assert!(said.contains(&format!("simulate --trace {}", path.display())), "{said}");
        }
        for text in ["[grid\nsizes = [2]\n", "# nothing\n", "", "name = \"x\"\n", "{}"] {
            assert_eq!(said(text.as_bytes()), None, "{text}");
        }
        // A comment in letters of one byte is text, if not one that is read.
        assert_eq!(said(b"# caf\xe9\n[grid]\n"), None);
        for bytes in [&b"\x7fELF\0"[..], b"\x89PNG\r\n\x1a\n\0"] {
            let said = said(bytes).unwrap();
            assert!(said.starts_with("it is a binary file, and not an experiment file"), "{said}");
        }
    }

    #[test]
    fn what_is_compressed_is_rows_of_a_sweep_only_if_it_begins_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.zst");
        let is = |text: &str| {
            std::fs::write(&path, zstd::encode_all(text.as_bytes(), 0).unwrap()).unwrap();
            no_log(&path)
        };
        assert!(
            is("# stealgrid sweep, format 1\n# name \"x\"\n").unwrap().contains("the database of a sweep")
        );
        // A log with a mistake, whose message is the one that helps; and what is nothing at all.
        for text in ["1 0 -1 sixty 2 -1 -1 2 120\n", "\0\0\0\0", ""] {
            assert_eq!(is(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_wanted_is_not_mistaken() {
        let (text, path) = ("[grid]\nsizes = [2]\n", Path::new("a.toml"));
        assert_eq!(mistaken_text(text, path, Kind::Experiment), None);
        let said = mistaken_text(text, path, Kind::Sweep).unwrap();
        assert!(
            said.starts_with("it is an experiment file, and not a sweep file; `stealgrid simulate a.toml`"),
            "{said}"
        );
    }
}
