//! A small file system that can be filled up, where the system lets us mount one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Its size: far more than journals of a round take, and memory only as far as it is filled.
const SIZE: &std::ffi::CStr = c"size=64m,mode=0755";
/// What takes the room; no tool of ours looks at it.
const FILLER: &str = "chaos.filler";
const PIECE: usize = 64 * 1024;

/// A file system in memory. It is gone when dropped.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Mounts one over this folder, which is made if missing.
    ///
    /// # Errors
    /// If we may not: that takes root.
    pub fn mount(folder: &Path) -> io::Result<Disk> {
        std::fs::create_dir_all(folder)?;
        mount("stealgrid-chaos", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, SIZE)?;
        Ok(Disk { folder: folder.to_path_buf() })
    }

    /// Where it is mounted.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it is mounted over this folder, or over one that this one is in.
    pub fn holds(&self, folder: &Path) -> bool {
        folder.starts_with(&self.folder)
    }

    /// Fills it up to so much room.
    pub fn fill(&self, room_kib: u64) {
        let write = || -> io::Result<()> {
            let mut file = self.filler()?;
            let piece = vec![1; PIECE];
            while file.write_all(&piece).is_ok() {}
            let length = file.metadata()?.len();
            file.set_len(length.saturating_sub(room_kib * 1024))
        };
        // It is full when it cannot be made.
        let _ = write();
    }

    /// Makes room again.
    pub fn empty(&self) {
        let filler = self.folder.join(FILLER);
        // A process that is being started may have it open for a moment, so its bytes go before its name. It is not there
        // if there was no room for it.
        let _ = OpenOptions::new().write(true).truncate(true).open(&filler);
        let _ = std::fs::remove_file(&filler);
    }

    fn filler(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(self.folder.join(FILLER))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.empty();
        // If something still has a file there, it goes with that.
        let _ = unmount(&self.folder, UnmountFlags::DETACH);
    }
}

/// Whether file systems can be mounted here.
pub fn can_mount(folder: &Path) -> bool {
    let probe = folder.join("probe");
    let can = Disk::mount(&probe).is_ok();
    // It is empty.
    let _ = std::fs::remove_dir(&probe);
    can
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_and_then_has_room_again() {
        let test = "chaos::disk::tests::a_disk_is_full_and_then_has_room_again";
        stealgrid_tests::small_disk::in_namespace(test, || {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("disk");
            let disk = Disk::mount(&path).unwrap();
            let write = || std::fs::write(path.join("file"), vec![1; 100_000]);
            assert!(disk.holds(&path.join("deep")) && !disk.holds(folder.path()));
            disk.fill(8);
            assert_eq!(write().unwrap_err().kind(), io::ErrorKind::StorageFull);
            let held_by_another = File::open(path.join(FILLER)).unwrap();
            disk.empty();
            write().unwrap();
            drop(held_by_another);
            drop(disk);
            assert!(!path.join("file").exists());
        });
    }
}
