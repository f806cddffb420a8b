//! Folders for results: empty ones, or those that have results of ours. What is ours is for each command to say.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What a folder that is new may have: file systems make it.
const OF_SYSTEM: &str = "lost+found";
/// Names of files of others in a message.
const NAMED: usize = 3;

/// A place where nothing can be made: whoever named it names another.
#[derive(Debug, thiserror::Error)]
#[error("failed to make {what}{}: {cause}; give {flag} a place where one can be made", .path.display())]
pub struct NoPlace {
    what: &'static str,
    path: PathBuf,
    cause: io::Error,
    flag: &'static str,
}

impl NoPlace {
    /// Why a file was not made that `flag` names: [`NoPlace`], or what the system said, if the place is good and there is no room.
    pub fn of_file(path: &Path, cause: io::Error, flag: &'static str) -> anyhow::Error {
        NoPlace::error("", path, cause, flag)
    }

    fn error(what: &'static str, path: &Path, cause: io::Error, flag: &'static str) -> anyhow::Error {
        match cause.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                anyhow::Error::new(cause).context(format!("failed to make {what}{}", path.display()))
            }
            _ => NoPlace { what, path: path.to_path_buf(), cause, flag }.into(),
        }
    }
}

/// Makes a folder for results, and those above it.
///
/// # Errors
/// [`NoPlace`]; or what the system said, if the place is good and there is no room.
pub fn make(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).map_err(|cause| NoPlace::error("the directory ", folder, cause, "--out"))
}

/// Makes the folder of a file that is written after minutes of work, before these; and tries whether a file can be made there.
///
/// # Errors
/// As [`make`].
pub fn make_above(file: &Path) -> anyhow::Result<()> {
    let above = file.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make(above)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    let tried = above.join(name);
    std::fs::File::create(&tried)
        .and_then(|_| std::fs::remove_file(&tried))
        .map_err(|cause| NoPlace::of_file(file, cause, "--out"))
}

/// Why results may not go into a folder that has none of ours: it has files of somebody else. Hidden ones, which keep an empty
/// folder in a repository, do not count, nor does a folder of nodes, whose keys may be there before a run.
pub fn refused(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut others: Vec<String> =
        names.filter(|name| !name.starts_with('.') && name != OF_SYSTEM && name != "nodes").collect();
    others.sort();
    if ["jobs.csv", "manifest.json"].iter().all(|name| others.iter().any(|other| other == name)) {
        return Some(format!(
            "{} holds the results of a run; give --out another directory",
            folder.display()
        ));
    }
    let more = if others.len() > NAMED { ", …" } else { "" };
    let shown = others[..others.len().min(NAMED)].join(", ");
    (!others.is_empty()).then(|| {
        format!(
            "{} has files of somebody else ({shown}{more}) and no results; give --out an empty directory, or one that is not \
             there yet",
            folder.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_file_cannot_be_made_is_known_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/rows.csv");
        make_above(&file).unwrap();
        assert!(folder.path().join("new").is_dir() && !file.exists());
        assert_eq!(std::fs::read_dir(folder.path().join("new")).unwrap().count(), 0, "nothing is left");
        std::fs::write(folder.path().join("taken"), "").unwrap();
        let error = make_above(&folder.path().join("taken/rows.csv")).unwrap_err();
        assert!(error.is::<NoPlace>(), "{error:#}");
    }

    #[test]
    fn an_empty_folder_takes_results_and_one_with_files_of_others_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(refused(&path.join("new")), None);
        for name in [".gitkeep", OF_SYSTEM] {
            std::fs::write(path.join(name), "").unwrap();
        }
        std::fs::create_dir(path.join("nodes")).unwrap();
        assert_eq!(refused(path), None);
        for name in ["b.txt", "a.txt", "d.txt", "c.txt"] {
            std::fs::write(path.join(name), "").unwrap();
        }
        let said = refused(path).unwrap();
        assert!(said.contains("(a.txt, b.txt, c.txt, …) and no results"), "{said}");
    }
}
