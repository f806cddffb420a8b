//! A small file system that can be filled up, in a test that has file systems of its own.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::once_more;

/// Runs `inside` where file systems can be mounted, which are gone afterwards. `test` is the name of the test that calls
/// this, with its module.
///
/// # Panics
/// If `inside` does, or no test has that name.
#[track_caller]
pub fn in_namespace(test: &str, inside: impl FnOnce()) {
    let needs = "a full disk needs unshare, mount, and root or namespaces of users";
    once_more::in_namespace("-m", needs, "mount -t tmpfs none /mnt", test, inside);
}

/// A file system in the place of a directory; unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    dir: PathBuf,
}

impl SmallDisk {
    /// Mounts one of so many KiB over a directory, which is made.
    ///
    /// # Panics
    /// If the directory cannot be made, or the system does not let this process mount: see [`in_namespace`].
    pub fn mount(dir: PathBuf, kib: u64) -> SmallDisk {
        std::fs::create_dir(&dir).expect("a directory of a test");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"]).arg(&dir);
        assert!(mount.status().is_ok_and(|status| status.success()), "{mount:?}");
        SmallDisk { dir }
    }

    /// Takes all room that is left, or so many KiB of it.
    ///
    /// # Panics
    /// If no file can be made there.
    pub fn fill(&self, most_kib: u64) {
        let mut file = File::create(self.filler()).expect("a file needs no room");
        let chunk = [0; 1024];
        (0..most_kib).take_while(|_| file.write_all(&chunk).is_ok()).count();
    }

    /// Gives back what was taken.
    ///
    /// # Panics
    /// If nothing was.
    pub fn make_room(&self) {
        std::fs::remove_file(self.filler()).expect("it was filled");
    }

    fn filler(&self) -> PathBuf {
        self.dir.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whoever still has a file open there keeps it until then.
        let unmounted = Command::new("umount").arg("-l").arg(&self.dir).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} is still mounted", self.dir.display());
    }
}
