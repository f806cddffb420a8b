//! Data directories of nodes that are down: damaged, taken away, and put back as they were.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::schedule::{Harm, JournalFile};

/// Data directories under the folder of nodes.
#[derive(Debug)]
pub struct Journals {
    nodes: PathBuf,
    /// Where copies of what was good are kept.
    kept: PathBuf,
    count: usize,
}

/// What was done to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Harmed {
    /// The name of the site.
    pub site: String,
    /// A copy of it as it was.
    pub copy: PathBuf,
    /// What it was afterwards: names and bytes of its files.
    after: Vec<(String, Vec<u8>)>,
}

impl Journals {
    /// Of the nodes of this folder, with copies in another.
    pub fn new(nodes: &Path, kept: &Path) -> Journals {
        Journals { nodes: nodes.to_path_buf(), kept: kept.to_path_buf(), count: 0 }
    }

    /// The data directory of a site.
    pub fn dir(&self, site: &str) -> PathBuf {
        self.nodes.join(format!("{site}.data"))
    }

    /// Bytes of the largest file of a journal.
    pub fn size(&self, site: &str) -> u64 {
        let entries = fs::read_dir(self.dir(site)).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).max().unwrap_or(0)
    }

    /// Damages a file of a node that is down. None if it is not there, or empty.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn damage(&mut self, site: &str, file: JournalFile, harm: &Harm) -> io::Result<Option<Harmed>> {
        let dir = self.dir(site);
        let name = match file {
            JournalFile::Database => "journal.sqlite",
            JournalFile::Log => "journal.sqlite-wal",
        };
        let path = dir.join(name);
        let Ok(mut bytes) = fs::read(&path) else { return Ok(None) };
        if bytes.is_empty() {
            return Ok(None);
        }
        let copy = self.copy(site)?;
        harm_bytes(&mut bytes, harm);
        fs::write(&path, &bytes)?;
        Ok(Some(Harmed { site: site.to_string(), copy, after: files(&dir)? }))
    }

    /// Takes away what is in the directory of a node that is down, and the directory, unless it is a file system.
    ///
    /// # Errors
    /// If that is impossible.
    pub fn lose(&mut self, site: &str) -> io::Result<Option<Harmed>> {
        let dir = self.dir(site);
        if files(&dir).unwrap_or_default().is_empty() {
            return Ok(None);
        }
        let copy = self.copy(site)?;
        for (name, _) in files(&dir)? {
            fs::remove_file(dir.join(name))?;
        }
        // A file system stays where it is mounted.
        let _ = fs::remove_dir(&dir);
        Ok(Some(Harmed { site: site.to_string(), copy, after: Vec::new() }))
    }

    /// Puts back what was there before, if no node has written there since; whether it did.
    ///
    /// # Errors
    /// If that is impossible.
    pub fn put_back(&self, harmed: &Harmed) -> io::Result<bool> {
        let dir = self.dir(&harmed.site);
        let now = files(&dir).unwrap_or_default();
        // Who looks at a journal may leave its index and its lock, which say nothing of jobs.
        let of_journal = |files: &[(String, Vec<u8>)]| -> Vec<(String, Vec<u8>)> {
            files
                .iter()
                .filter(|(name, _)| name.starts_with("journal.sqlite") && !name.ends_with("-shm"))
                .cloned()
                .collect()
        };
        if of_journal(&now) != of_journal(&harmed.after) {
            return Ok(false);
        }
        fs::create_dir_all(&dir)?;
        for (name, _) in &now {
            fs::remove_file(dir.join(name))?;
        }
        for (name, bytes) in files(&harmed.copy)? {
            fs::write(dir.join(name), bytes)?;
        }
        Ok(true)
    }

    fn copy(&mut self, site: &str) -> io::Result<PathBuf> {
        self.count += 1;
        let copy = self.kept.join(format!("{site}-{}", self.count));
        fs::create_dir_all(&copy)?;
        for (name, bytes) in files(&self.dir(site))? {
            fs::write(copy.join(name), bytes)?;
        }
        Ok(copy)
    }
}

/// Names and bytes of the files in a folder, by name.
fn files(dir: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != "chaos.filler" {
            files.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

fn harm_bytes(bytes: &mut Vec<u8>, harm: &Harm) {
    let place = |permille: u16, length: usize| length * usize::from(permille) / 1000;
    match harm {
        Harm::Flip { permille, bit } => {
            for permille in permille {
                let place = place(*permille, bytes.len());
                bytes[place] ^= 1 << bit;
            }
        }
        Harm::Truncate { permille } => bytes.truncate(place(*permille, bytes.len())),
        Harm::Garbage { permille, bytes: count } => {
            let from = place(*permille, bytes.len());
            for (number, byte) in bytes.iter_mut().skip(from).take(usize::from(*count)).enumerate() {
                // Neither zeros nor a copy of anything.
                *byte = (number * 167 + 13) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journals() -> (tempfile::TempDir, Journals) {
        let folder = tempfile::tempdir().unwrap();
        let journals = Journals::new(&folder.path().join("nodes"), &folder.path().join("kept"));
        fs::create_dir_all(journals.dir("elm")).unwrap();
        fs::write(journals.dir("elm").join("journal.sqlite"), vec![0; 1000]).unwrap();
        fs::write(journals.dir("elm").join("lock"), "7").unwrap();
        (folder, journals)
    }

    #[test]
    fn harm_changes_what_it_says() {
        let harmed = |harm: Harm| {
            let mut bytes = vec![0; 1000];
            harm_bytes(&mut bytes, &harm);
            bytes
        };
        let flipped = harmed(Harm::Flip { permille: vec![3, 999], bit: 2 });
        assert_eq!((flipped[3], flipped[999], flipped.iter().filter(|byte| **byte > 0).count()), (4, 4, 2));
        assert_eq!(harmed(Harm::Truncate { permille: 250 }).len(), 250);
        let garbage = harmed(Harm::Garbage { permille: 990, bytes: 100 });
        assert_eq!((garbage.len(), garbage[989], garbage[990]), (1000, 0, 13));
    }

    #[test]
    fn what_was_damaged_or_lost_is_put_back_unless_somebody_wrote_there() {
        let (_folder, mut journals) = journals();
        let path = journals.dir("elm").join("journal.sqlite");
        let harm = Harm::Truncate { permille: 10 };
        let damaged = journals.damage("elm", JournalFile::Database, &harm).unwrap().unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), 10);
        fs::write(journals.dir("elm").join("journal.sqlite-shm"), "index").unwrap();
        assert!(journals.put_back(&damaged).unwrap());
        assert_eq!(fs::read(&path).unwrap(), vec![0; 1000]);
        assert_eq!(journals.damage("elm", JournalFile::Log, &harm).unwrap(), None);

        let lost = journals.lose("elm").unwrap().unwrap();
        assert!(!journals.dir("elm").exists());
        assert_eq!(journals.lose("elm").unwrap(), None);
        assert!(journals.put_back(&lost).unwrap());
        assert_eq!(journals.size("elm"), 1000);

        let lost = journals.lose("elm").unwrap().unwrap();
        fs::create_dir_all(journals.dir("elm")).unwrap();
        fs::write(&path, "a new life").unwrap();
        assert!(!journals.put_back(&lost).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"a new life");
    }
}
