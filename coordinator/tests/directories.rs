//! Results in the file system, as a user meets them: each driver has a folder of its own, results give way to those of
//! the same experiment, and files of others stay.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::PROGRAM;

const JOBS: &str =
    "1 0 -1 10 1 -1 -1 1 60 -1 1 1 1 1 1 -1 -1 -1\n2 5 -1 20 2 -1 -1 2 60 -1 1 1 1 1 1 -1 -1 -1\n";

/// A folder with an experiment of two jobs.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.swf"), JOBS).unwrap();
    let text = "name = \"two\"\ngrid.sizes = [2, 2]\nworkload.trace = \"jobs.swf\"\n";
    std::fs::write(folder.path().join("two.toml"), text).unwrap();
    folder
}

/// Exit code and everything that was said.
fn stealgrid(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(PROGRAM).current_dir(folder).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.code().unwrap(), said)
}

fn manifest(folder: &Path, out: &str) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join(out).join("manifest.json")).unwrap()).unwrap()
}

#[test]
fn each_driver_has_a_folder_of_its_own() {
    let folder = folder();
    let run = |arguments: &[&str]| {
        let (code, said) = stealgrid(folder.path(), arguments);
        assert_eq!(code, 0, "{said}");
    };
    run(&["simulate", "two.toml"]);
    run(&["run", "two.toml", "--clock", "virtual"]);
    run(&["simulate", "two.toml"]);

    assert_eq!(manifest(folder.path(), "out/two-simulated")["driver"], "simulate");
    assert_eq!(manifest(folder.path(), "out/two-virtual")["driver"], "run");
    assert!(!folder.path().join("out/two").exists(), "that of `run` by the wall clock");
}

#[test]
fn results_of_other_settings_are_kept_unless_the_user_gives_them_up() {
    let folder = folder();
    assert_eq!(stealgrid(folder.path(), &["simulate", "two.toml"]).0, 0);
    let jobs: PathBuf = folder.path().join("out/two-simulated/jobs.csv");
    let before = std::fs::read(&jobs).unwrap();

    let other = ["simulate", "two.toml", "--strategy", "local"];
    let (code, said) = stealgrid(folder.path(), &other);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("other settings") && said.contains("`stealgrid simulate two.toml`"), "{said}");
    assert!(said.contains("--out") && said.contains("--replace"), "{said}");
    assert_eq!(std::fs::read(&jobs).unwrap(), before);

    // What the message says.
    assert_eq!(stealgrid(folder.path(), &[&other[..], &["--out", "out/local"]].concat()).0, 0);
    assert_eq!(manifest(folder.path(), "out/two-simulated")["strategy"], "st:50");
    assert_eq!(stealgrid(folder.path(), &[&other[..], &["--replace"]].concat()).0, 0);
    assert_eq!(manifest(folder.path(), "out/two-simulated")["strategy"], "local");
}

#[test]
fn files_of_others_stay_as_they_are() {
    for name in ["report.html", "jobs.csv"] {
        let folder = folder();
        let theirs = folder.path().join("there").join(name);
        std::fs::create_dir(folder.path().join("there")).unwrap();
        std::fs::write(&theirs, "mine").unwrap();
        for more in [&[][..], &["--replace"]] {
            let arguments = [&["simulate", "two.toml", "--out", "there"], more].concat();
            let (code, said) = stealgrid(folder.path(), &arguments);
            assert_eq!(code, 3, "{said}");
            assert!(said.contains(&format!("files of somebody else where results go: {name}")), "{said}");
        }
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "mine");

        // What the message says.
        std::fs::rename(&theirs, folder.path().join("moved")).unwrap();
        assert_eq!(stealgrid(folder.path(), &["simulate", "two.toml", "--out", "there"]).0, 0);
        // A folder with other files and no results, as that of the experiment itself, takes none.
        let (code, said) = stealgrid(folder.path(), &["simulate", "two.toml", "--out", "."]);
        assert_eq!(code, 3, "{said}");
        assert!(said.contains("has files of somebody else (jobs.swf, moved, there, …)"), "{said}");
        assert!(!folder.path().join(".stealgrid").exists());
    }
}
