//! Writes the seeds of every target to `fuzz/corpus`, or to the folder that is given. Findings stay.

use std::path::PathBuf;

use fuzz::Target;
use fuzz::corpus::seeds;

fn main() -> std::io::Result<()> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folder = std::env::args_os().nth(1).map_or_else(default, PathBuf::from);
    for target in Target::ALL {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (name, bytes) in seeds(target.name) {
            std::fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
