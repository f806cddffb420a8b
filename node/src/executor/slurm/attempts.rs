//! Who may run an execution: a file that the node and the scripts of its jobs make by its name, of whom one comes first.
//!
//! `sbatch` may be under way when its caller is killed, or gives up; Slurm may have a job again that was cancelled. So no answer of Slurm says that
//! an execution will not be. A script claims it before it runs the command, and a node before it gives it up, and the file system lets one of
//! them have it. A file that is made by a link is there with all that is in it, or not at all, on shared file systems, too.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use scheduler::event::ExitCause;

use super::super::exit::Exit;
use crate::{bounded, private};

/// Bytes of a claim, and of the file with the owner.
const BYTES: u64 = 64;
/// The exit code of a script that may not run its command. Arbitrary; neither shells nor `sysexits.h` have it.
const REFUSED: &str = "94";
/// The ends of names of files beside the claim of an execution: it is about to be submitted; it is to be no more.
const TRIED: &str = ".tried";
const STOP: &str = ".stop";

/// What is submitted for every job, with the file that says how it ended, the one that says that it began, its claim, and its words. What Slurm starts
/// once more, under the number that has the claim, is the same execution, once for each count of restarts.
const CLAIM: &str = "\
refuse() {\n\
    rm -f \"$mine\"\n\
    echo \"stealgrid: job ${SLURM_JOB_ID-} of Slurm does not run here: $1\" >&2\n\
    exit REFUSED\n\
}\n\
count=${SLURM_RESTART_COUNT:-0}\n\
mine=$claim.${SLURM_JOB_ID-}.$count.${SLURMD_NODENAME-}.$$\n\
rm -f \"$mine\"\n\
printf 'slurm %s %s\\n' \"${SLURM_JOB_ID-}\" \"$count\" > \"$mine\" || refuse \"$claim cannot be written\"\n\
sync \"$mine\" 2> /dev/null\n\
ln \"$mine\" \"$claim\" 2> /dev/null\n\
if ! [ \"$mine\" -ef \"$claim\" ]; then\n\
    read -r who id before < \"$claim\" || refuse \"$claim cannot be read\"\n\
    [ \"$who $id\" = \"slurm ${SLURM_JOB_ID-}\" ] || refuse \"$who $id has its execution\"\n\
    [ \"$count\" -gt \"$before\" ] || refuse 'it ran already'\n\
    ln \"$mine\" \"$claim.again$count\" 2> /dev/null\n\
    [ \"$mine\" -ef \"$claim.again$count\" ] || refuse 'it ran again already'\n\
fi\n\
sync \"${claim%/*}\" 2> /dev/null\n\
rm -f \"$mine\"\n\
[ ! -e \"$claim.stop\" ] || refuse 'it is to be no more'\n\
[ ! -e \"$done\" ] || refuse 'it has ended'\n";

/// The script that is submitted. No text of it comes from anywhere else.
pub(super) fn script() -> String {
    let claim = CLAIM.replace("REFUSED", REFUSED);
    // What tests must find.
    #[cfg(feature = "mutant")]
    let claim = match std::env::var("STEALGRID_MUTANT") {
        Ok(mistake) if mistake == "unclaimed" => String::new(),
        _ => claim,
    };
    format!(
        "#!/bin/sh\n\
        done=$1 begun=$2 claim=$3\n\
        shift 3\n\
        {claim}\
        : > \"$begun\"\n\
        \"$@\"\n\
        code=$?\n\
        printf '%s\\n' \"$code\" > \"$done.new\" && mv \"$done.new\" \"$done\"\n\
        exit \"$code\"\n"
    )
}

/// Who has an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// A script, which has begun or is about to: a job of Slurm by this number, if it can be read.
    Script(Option<u64>),
    /// A node: no script will run it.
    Node,
}

/// Why an execution is to be no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The site wants it so, and may start the job again.
    Wanted,
    /// It has ended, as its site was told, or was about to be.
    Ended(ExitCause, Option<i32>),
}

/// What is known of an execution without Slurm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Who has it.
    pub(super) claim: Option<Claim>,
    /// Whether it is to be no more.
    pub(super) stop: Option<Stop>,
}

/// The executions of a folder, which is this node's as long as this is there.
#[derive(Debug)]
pub(super) struct Attempts {
    folder: PathBuf,
    prefix: String,
    _owner: File,
}

impl Attempts {
    /// Those of a folder, which no other node may have.
    ///
    /// # Errors
    /// If another has it, or files cannot be made there.
    pub(super) fn of(folder: &Path) -> io::Result<Attempts> {
        let path = folder.join("owner");
        let mut owner = private::options().read(true).write(true).create(true).truncate(false).open(&path)?;
        match private::lock(&owner) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other(format!(
                    "another node has the folder {}: give each its own (execution.folder)",
                    folder.display()
                )));
            }
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                tracing::warn!(%error, folder = %folder.display(), "files of this folder cannot be locked: see to it that no other node has it");
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let name = owner_of(&mut owner, &path)?;
        let attempts = folder.join("attempts");
        private::make_folder(&attempts)?;
        sync_folder(&attempts)?;
        sync_folder(folder)?;
        Ok(Attempts { folder: attempts, prefix: format!("sg-{name}-"), _owner: owner })
    }

    /// How names of its jobs in Slurm begin, and no others.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The file that is the claim of an execution.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes down that these are about to be submitted: whoever comes after this process knows their names.
    ///
    /// # Errors
    /// If that is not so.
    pub(super) fn try_all<'a>(&self, names: impl Iterator<Item = &'a str>) -> io::Result<()> {
        for name in names {
            private::create(&self.folder.join(format!("{name}{TRIED}")))?;
        }
        sync_folder(&self.folder)
    }

    /// Has it that no script begins this, unless one has; and who has it.
    ///
    /// # Errors
    /// If nobody can say.
    pub(super) fn claim(&self, name: &str) -> io::Result<Claim> {
        self.make(name, "node\n")?;
        let claim = self.who(name)?;
        claim.ok_or_else(|| io::Error::other(format!("{name} was claimed, and is not there")))
    }

    /// Has it that no script goes on with this that has not begun by now, whoever has the claim: it may be in Slurm again after it ended.
    /// What it ended by is kept, unless the site wants it gone: whoever comes after this process may have to say it.
    ///
    /// # Errors
    /// If that is not so.
    pub(super) fn stop(&self, name: &str, exit: Option<&Exit>) -> io::Result<()> {
        let text = exit.map_or("wanted\n".to_string(), |Exit { how, code, .. }| {
            format!("{} {}\n", how.name(), code.map_or(String::new(), |code| code.to_string()))
        });
        self.make(&format!("{name}{STOP}"), &text)
    }

    /// Why it is to be no more, if it is.
    fn stopped(&self, name: &str) -> io::Result<Option<Stop>> {
        let text = match bounded::read_text(&self.folder.join(format!("{name}{STOP}")), BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut words = text.split_whitespace();
        Ok(Some(match words.next() {
            Some("wanted") => Stop::Wanted,
            // What cannot be read may have been run.
            word => {
                let how = ExitCause::ALL.into_iter().find(|how| Some(how.name()) == word);
                Stop::Ended(
                    how.unwrap_or(ExitCause::Unknown),
                    words.next().and_then(|code| code.parse().ok()),
                )
            }
        }))
    }

    /// Makes a file with all that is in it, if there is none.
    fn make(&self, name: &str, text: &str) -> io::Result<()> {
        let (path, new) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        if path.try_exists()? {
            return Ok(());
        }
        let mut file = private::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        let linked = std::fs::hard_link(&new, &path);
        std::fs::remove_file(&new)?;
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => sync_folder(&self.folder),
        }
    }

    /// Who has this, if anybody does.
    ///
    /// # Errors
    /// If nobody can say.
    pub(super) fn who(&self, name: &str) -> io::Result<Option<Claim>> {
        let text = match bounded::read_text(&self.folder.join(name), BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut words = text.split_whitespace();
        Ok(Some(match words.next() {
            Some("node") => Claim::Node,
            // One that cannot be read may be a script's.
            _ => Claim::Script(words.next().and_then(|id| id.parse().ok())),
        }))
    }

    /// All that were ever to be submitted from here, with what is known of them.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn all(&self) -> io::Result<BTreeMap<String, Known>> {
        let mut all: BTreeMap<String, Known> = BTreeMap::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let Ok(file) = entry?.file_name().into_string() else { continue };
            // A name is that of a job, a dot, and which time.
            let Some((job, rest)) = file.split_once('.') else { continue };
            let time = rest.split('.').next().unwrap_or_default();
            all.insert(format!("{job}.{time}"), Known::default());
        }
        for (name, known) in &mut all {
            *known = Known { claim: self.who(name)?, stop: self.stopped(name)? };
        }
        Ok(all)
    }
}

/// What names of jobs of a folder have in common, and no others: drawn once.
fn owner_of(file: &mut File, path: &Path) -> io::Result<String> {
    let mut owner = String::new();
    (&*file).take(BYTES).read_to_string(&mut owner)?;
    if owner.is_empty() {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        owner = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        file.rewind()?;
        file.write_all(owner.as_bytes())?;
        file.sync_all()?;
    }
    if owner.len() != 16 || !owner.chars().all(|c| c.is_ascii_hexdigit()) {
        // Under another the jobs that are in Slurm would be nobody's.
        return Err(io::Error::other(format!(
            "{} is damaged: it has no sixteen hexadecimal digits; put it back, or, if no job of this folder is in Slurm any more, remove it",
            path.display()
        )));
    }
    Ok(owner)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_folder_has_one_node_at_a_time_and_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let first = Attempts::of(folder.path()).unwrap();
        let error = Attempts::of(folder.path()).unwrap_err().to_string();
        assert!(error.contains("another node"), "{error}");
        let prefix = first.prefix().to_string();
        drop(first);
        assert_eq!(Attempts::of(folder.path()).unwrap().prefix(), prefix);
        // As an older version left it where it was killed at once, and as nobody did.
        std::fs::write(folder.path().join("owner"), "").unwrap();
        assert_ne!(Attempts::of(folder.path()).unwrap().prefix(), prefix);
        for damage in ["0123", "0123456789abcdeg", "0123456789abcdef0"] {
            std::fs::write(folder.path().join("owner"), damage).unwrap();
            let error = Attempts::of(folder.path()).unwrap_err().to_string();
            assert!(error.contains("damaged"), "{error}");
        }
    }

    #[test]
    fn who_comes_first_has_it_and_what_is_not_readable_may_be_a_scripts() {
        let folder = tempfile::tempdir().unwrap();
        let attempts = Attempts::of(folder.path()).unwrap();
        attempts.try_all(["1.a", "2.b"].into_iter()).unwrap();
        assert_eq!((attempts.who("1.a").unwrap(), attempts.claim("1.a").unwrap()), (None, Claim::Node));
        assert_eq!(attempts.claim("1.a").unwrap(), Claim::Node);
        for (text, id) in [("slurm 7 0\n", Some(7)), ("", None), ("slurm", None)] {
            std::fs::write(attempts.path("2.b"), text).unwrap();
            assert_eq!(attempts.claim("2.b").unwrap(), Claim::Script(id));
        }
        let cancelled = Exit { how: ExitCause::Cancelled, code: Some(9), why: None };
        attempts.stop("1.a", None).unwrap();
        attempts.stop("2.b", Some(&cancelled)).unwrap();
        // The first word counts.
        attempts.stop("1.a", Some(&cancelled)).unwrap();
        attempts.stop("2.b", None).unwrap();
        let known = |claim, stop| Known { claim: Some(claim), stop: Some(stop) };
        let ended = Stop::Ended(ExitCause::Cancelled, Some(9));
        let expected =
            [("1.a", known(Claim::Node, Stop::Wanted)), ("2.b", known(Claim::Script(None), ended))];
        let expected = expected.map(|(name, known)| (name.to_string(), known));
        assert_eq!(attempts.all().unwrap(), expected.into());
    }

    /// A folder with the script.
    fn with_script() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("job.sh"), script()).unwrap();
        folder
    }

    /// Runs the script of an execution; its exit code.
    fn run(folder: &Path, id: u64, count: Option<u64>) -> i32 {
        let (script, name) = (folder.join("job.sh"), "1.a");
        let mut command = Command::new("sh");
        command.arg(&script).arg(folder.join("done")).arg(folder.join("begun"));
        command.arg(folder.join("attempts").join(name)).args(["sh", "-c", "echo >> \"$0\"; exit 3"]);
        command.arg(folder.join("ran")).env("SLURM_JOB_ID", id.to_string());
        command.envs(count.map(|count| ("SLURM_RESTART_COUNT", count.to_string())));
        command.status().unwrap().code().unwrap()
    }

    #[test]
    fn a_script_runs_its_command_once_for_each_time_that_slurm_starts_it() {
        let folder = with_script();
        let attempts = Attempts::of(folder.path()).unwrap();
        let ended = || std::fs::remove_file(folder.path().join("done")).unwrap();
        assert_eq!(run(folder.path(), 7, None), 3);
        assert_eq!(attempts.who("1.a").unwrap(), Some(Claim::Script(Some(7))));
        // It has ended.
        assert_eq!(run(folder.path(), 7, Some(1)), 94);
        ended();
        for (id, count, code) in
            [(7, None, 94), (7, Some(0), 94), (8, Some(1), 94), (7, Some(1), 94), (7, Some(2), 3)]
        {
            assert_eq!(run(folder.path(), id, count), code, "{id} {count:?}");
        }
        ended();
        attempts.stop("1.a", None).unwrap();
        assert_eq!(run(folder.path(), 7, Some(3)), 94);
        assert_eq!(std::fs::read_to_string(folder.path().join("ran")).unwrap().len(), 2);
        let left = std::fs::read_dir(folder.path().join("attempts")).unwrap().count();
        // Nothing but the claim, the second and the third time, and the stop.
        assert_eq!(left, 5, "the first time, .again1, .again2, .again3 and .stop");
    }

    #[test]
    fn of_scripts_and_a_node_at_once_one_has_it() {
        for _ in 0..20 {
            let folder = with_script();
            let attempts = Attempts::of(folder.path()).unwrap();
            let at = folder.path();
            let codes: Vec<i32> = std::thread::scope(|scope| {
                let scripts = [1, 2, 3].map(|id| scope.spawn(move || run(at, id, None)));
                let node = attempts.claim("1.a").unwrap();
                let codes: Vec<i32> = scripts.into_iter().map(|script| script.join().unwrap()).collect();
                assert_eq!(node == Claim::Node, codes == [94; 3], "{codes:?}");
                codes
            });
            assert!(codes.iter().filter(|&&code| code != 94).count() <= 1, "{codes:?}");
        }
    }
}
