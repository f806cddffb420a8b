//! `run.json`: what another coordinator needs to go on with a run whose own was killed.
//!
//! Written before the clocks start, and removed when the results of a complete run are written. It has what the experiment file said, so
//! that edits of it do not matter, and fingerprints of everything else. Where the nodes are is not in it: each says so
//! itself in its data directory, [`node::running`].

mod bytes;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use experiments::drive::Left;
use experiments::drive::own::{self, RECORD};
use experiments::experiment::Experiment;
use experiments::experiment::jobs::Jobs;
use experiments::hex::hex;
use experiments::limits;
use node::clock::StartOrder;
use node::control::api::Calibration;
use outputs::orders::Given;
use outputs::replace;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::past::Past;

/// The version of what is in the file.
const FORMAT: u32 = 4;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is known of a run whose clocks are started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: u32,
    /// Of the program.
    version: String,
    /// The command line, from the name of the program on.
    #[serde(with = "bytes::several")]
    pub arguments: Vec<OsString>,
    /// The same as it can be pasted.
    pub command: String,
    /// Where it was typed: paths are relative to it.
    #[serde(with = "bytes::one")]
    pub folder: PathBuf,
    /// The result directory.
    #[serde(with = "bytes::one")]
    dir: PathBuf,
    /// What the experiment file said, if there is one.
    pub experiment: Option<String>,
    fingerprint: Fingerprint,
    /// When trace time began.
    pub start: StartOrder,
    /// What was measured before.
    pub calibration: Vec<Calibration>,
    /// How often a coordinator has gone on with the run.
    pub attached: u32,
    /// Orders that were given so far.
    pub orders: Vec<Given>,
    /// What was done about sites so far.
    pub past: Past,
}

/// What a run is about, in so few bytes that nobody finds another with the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fingerprint {
    experiment: String,
    jobs: String,
}

/// Why nobody can go on with a run. Reads after "failed to attach to DIR: ".
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The results are there.
    #[error("its run has ended and its results are written; nothing is left to resume")]
    Ended,
    /// The results are there, but not of all jobs, and nothing else is.
    #[error(
        "it stopped before all jobs had ended, and kept nothing to resume from: only runs of processes whose nodes keep a \
         journal ([node] journal) can be resumed. Start it again"
    )]
    Partial,
    /// It ran on nodes that nobody here started.
    #[error(
        "its nodes registered with a coordinator that is gone (--nodes register), and nobody can attach to those: they end by \
         themselves after node.orphan_patience. Run it again; its command line was `{0}`"
    )]
    Registered(String),
    /// Neither results nor a record.
    #[error(
        "it holds no run to resume: one whose clocks had not started, or whose nodes keep no journal ([node] \
         journal), must be started again"
    )]
    None,
    /// The file cannot be read.
    #[error("{RECORD}: {0}")]
    Unreadable(String),
    /// Another program wrote it.
    #[error("its run was started by stealgrid {theirs}, and this is {VERSION}; use that version")]
    Version {
        /// The version that started the run.
        theirs: String,
    },
    /// The nodes know their files by path.
    #[error("its run was started in {}; move it back there", .0.display())]
    Moved(PathBuf),
    /// The experiment or what it names is not what it was.
    #[error("{0} changed since its run began; put back what was there")]
    Changed(&'static str),
}

/// Whether a command line makes sites of nodes that register.
fn is_on_registered_nodes(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    words.contains(&"--nodes=register") || words.windows(2).any(|pair| pair == ["--nodes", "register"])
}

impl Record {
    /// Of a run by this command line, which nobody has attached to.
    ///
    /// # Errors
    /// If the system does not say where the run is.
    pub fn new(
        experiment: &Experiment,
        jobs: &Jobs,
        text: Option<String>,
        start: StartOrder,
        calibration: Vec<Calibration>,
        past: Past,
    ) -> io::Result<Record> {
        Ok(Record {
            format: FORMAT,
            version: VERSION.to_string(),
            arguments: std::env::args_os().collect(),
            command: experiments::terminal::command_line(),
            folder: std::env::current_dir()?,
            dir: std::fs::canonicalize(&experiment.outputs.dir)?,
            experiment: text,
            fingerprint: Fingerprint::of(experiment, jobs),
            start,
            calibration,
            attached: 0,
            orders: Vec::new(),
            past,
        })
    }

    /// Notes an order that is about to be carried out, and what will have been done about sites with it, if anything.
    ///
    /// # Errors
    /// If it cannot be written; then the record is as before.
    pub fn note_order(&mut self, given: &Given, past: Option<&Past>) -> io::Result<()> {
        let before = past.map(|past| std::mem::replace(&mut self.past, past.clone()));
        self.orders.push(given.clone());
        let written = self.write();
        if written.is_err() {
            self.orders.pop();
            if let Some(before) = before {
                self.past = before;
            }
        }
        written
    }

    /// Writes the file, on the disk: the former is there until the new one is whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self) -> io::Result<()> {
        replace::write_durably(&self.dir.join(RECORD), node::private::create, |file| {
            serde_json::to_writer_pretty(&mut *file, self)?;
            writeln!(file)
        })
    }

    /// Reads the file of a result directory.
    ///
    /// # Errors
    /// If nobody can go on with the run there.
    pub fn read(dir: &Path) -> Result<Record, RecordError> {
        let text = match limits::read_document(&dir.join(RECORD)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let manifest = dir.join("manifest.json");
                let registered = own::command(dir).filter(|command| is_on_registered_nodes(command));
                return Err(match (manifest.exists(), registered) {
                    (true, _) if is_partial(&manifest) => RecordError::Partial,
                    (true, _) => RecordError::Ended,
                    (false, Some(command)) => RecordError::Registered(command),
                    (false, None) => RecordError::None,
                });
            }
            Err(error) => return Err(RecordError::Unreadable(error.to_string())),
        };
        // Other versions may have other fields.
        #[derive(Deserialize)]
        struct Written {
            format: u32,
            version: String,
        }
        let unreadable = |error: serde_json::Error| RecordError::Unreadable(error.to_string());
        let Written { format, version } = serde_json::from_str(&text).map_err(unreadable)?;
        if (format, version.as_str()) != (FORMAT, VERSION) {
            return Err(RecordError::Version { theirs: version });
        }
        let record: Record = serde_json::from_str(&text).map_err(unreadable)?;
        if record.dir != dir {
            return Err(RecordError::Moved(record.dir));
        }
        Ok(record)
    }

    /// Whether this is what the run is about.
    ///
    /// # Errors
    /// What is not.
    pub fn check(&self, experiment: &Experiment, jobs: &Jobs) -> Result<(), RecordError> {
        let now = Fingerprint::of(experiment, jobs);
        if now.jobs != self.fingerprint.jobs {
            return Err(RecordError::Changed("the workload log"));
        }
        if now != self.fingerprint {
            return Err(RecordError::Changed("a file that the experiment names"));
        }
        Ok(())
    }

    /// The run has ended: removes the file if nothing is left to do. Else nothing is lost, and this tells the user so.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn over(&self, left: Left) -> io::Result<()> {
        let dir = self.dir.display();
        match left {
            Left::Nothing => return std::fs::remove_file(self.dir.join(RECORD)),
            Left::Jobs => eprintln!(
                "note: the run is not complete, and all journals are kept: `stealgrid attach {dir}` goes on with it"
            ),
            Left::Files => eprintln!(
                "note: all jobs have ended, but not all that happened could be written. It is in the journals, which are \
                 kept: make room, and `stealgrid attach {dir}` writes it anew"
            ),
        }
        Ok(())
    }
}

impl Fingerprint {
    fn of(experiment: &Experiment, jobs: &Jobs) -> Fingerprint {
        let mut sum = Sum::default();
        let written = write!(sum, "{experiment:?}");
        let experiment = sum.finish();
        let mut sum = Sum::default();
        let written = written.and_then(|()| jobs.jobs.iter().try_for_each(|job| writeln!(sum, "{job:?}")));
        written.expect("a sum takes everything");
        Fingerprint { experiment, jobs: sum.finish() }
    }
}

/// Text that is not kept.
#[derive(Default)]
struct Sum(Sha256);

impl std::fmt::Write for Sum {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

impl Sum {
    fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

/// Whether a manifest says that jobs are missing. One that cannot be read says nothing.
fn is_partial(manifest: &Path) -> bool {
    let status =
        |text: String| Some(serde_json::from_str::<serde_json::Value>(&text).ok()?["status"] == "partial");
    limits::read_document(manifest).ok().and_then(status).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn record(dir: &Path) -> Record {
        Record {
            format: FORMAT,
            version: VERSION.to_string(),
            arguments: vec!["stealgrid".into(), "run".into(), OsString::from_vec(b"x\xff".to_vec())],
            command: "stealgrid run".to_string(),
            folder: dir.to_path_buf(),
            dir: dir.to_path_buf(),
            experiment: None,
            fingerprint: Fingerprint { experiment: String::new(), jobs: String::new() },
            start: StartOrder { unix_micros: 1, factor: 2.5, trace_origin_us: 3 },
            calibration: Vec::new(),
            attached: 1,
            orders: Vec::new(),
            past: Past::default(),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let record = record(folder.path());
        record.write().unwrap();
        assert_eq!(Record::read(folder.path()).unwrap(), record);
        for left in [Left::Jobs, Left::Files] {
            record.over(left).unwrap();
        }
        assert!(Record::read(folder.path()).is_ok(), "a run that is not complete can be gone on with");
        record.over(Left::Nothing).unwrap();
        assert!(matches!(Record::read(folder.path()), Err(RecordError::None)));
    }

    /// A directory in the place of the file that is written first, which not even root can write to.
    #[test]
    fn an_order_that_cannot_be_noted_is_not_in_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = record(folder.path());
        record.write().unwrap();
        let order = outputs::orders::Order::Pause(outputs::orders::Nothing {});
        let given = Given::new(scheduler::Time::ZERO, order, "done".to_string());
        let past = Past { ordered: true, ..Past::default() };
        let temporary = folder.path().join(format!("{RECORD}.tmp"));
        std::fs::create_dir(&temporary).unwrap();

        assert!(record.note_order(&given, Some(&past)).is_err());
        assert_eq!((&record.orders[..], &record.past), (&[][..], &Past::default()));
        assert_eq!(Record::read(folder.path()).unwrap(), record);

        std::fs::remove_dir(&temporary).unwrap();
        record.note_order(&given, Some(&past)).unwrap();
        let read = Record::read(folder.path()).unwrap();
        assert_eq!((&read.orders[..], &read.past), (&[given][..], &past));
    }

    #[test]
    fn what_cannot_be_gone_on_with_is_told_apart() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(other.path().join("manifest.json"), "{}").unwrap();
        assert!(matches!(Record::read(other.path()), Err(RecordError::Ended)));
        std::fs::write(other.path().join("manifest.json"), r#"{"status": "partial"}"#).unwrap();
        assert!(matches!(Record::read(other.path()), Err(RecordError::Partial)));

        let record = record(folder.path());
        record.write().unwrap();
        std::fs::copy(folder.path().join(RECORD), other.path().join(RECORD)).unwrap();
        assert!(matches!(Record::read(other.path()), Err(RecordError::Moved(_))));

        Record { version: "0.0.1".to_string(), ..record }.write().unwrap();
        let error = Record::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("started by stealgrid 0.0.1"), "{error}");
        std::fs::write(folder.path().join(RECORD), "{").unwrap();
        assert!(matches!(Record::read(folder.path()), Err(RecordError::Unreadable(_))));
    }
}
