//! The log that comes with the program, so that a first look needs no file: `workload.trace = "built-in:seven-sites"`.
//!
//! It is what `configs/traces/seven-sites.swf` has. Whoever reads or places logs asks here whether a name is one of a file.

use std::path::{Path, PathBuf};

use workload::limits::Limits;
use workload::{Trace, TraceError};

use crate::progress;

/// What the names of such logs begin with.
pub const PREFIX: &str = "built-in:";

/// 2,000 jobs of seven sites, made by a model; its header says how.
pub const SEVEN_SITES: &str = "built-in:seven-sites";

/// The experiment of the quick start, whose log is that one.
pub const QUICKSTART: &str = include_str!("../../../configs/quickstart.toml");

const SEVEN_SITES_SWF: &str = include_str!("../../../configs/traces/seven-sites.swf");

/// Whether this is the name of such a log and of no file.
pub fn is_built_in(trace: &Path) -> bool {
    trace.to_str() == Some(SEVEN_SITES)
}

/// The file that a name in an experiment file of this folder means; that of a log of the program is left as it is.
pub fn placed(folder: &Path, trace: &Path) -> PathBuf {
    if is_built_in(trace) { trace.to_path_buf() } else { folder.join(trace) }
}

/// What such a log has; nothing for the name of a file.
pub fn text(trace: &Path) -> Option<&'static str> {
    is_built_in(trace).then_some(SEVEN_SITES_SWF)
}

/// Reads a log, from a file or of the program. One that takes long says how far it is.
///
/// # Errors
/// As [`workload::read_within`].
pub fn read(trace: &Path, limits: &Limits) -> Result<Trace, TraceError> {
    if let Some(text) = text(trace) {
        return workload::read_from(SEVEN_SITES, text.as_bytes());
    }
    progress::read_log(trace, limits, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::experiment::file::Written;
    use crate::experiment::jobs;

    fn jobs_of(text: &str, path: &str) -> (String, jobs::Jobs) {
        let written = Written::parse(text, Path::new(path)).unwrap();
        let experiment = Experiment::resolve(&written).unwrap();
        (experiment.name.clone(), jobs::read(&experiment).unwrap())
    }

    #[test]
    fn the_built_in_log_is_the_one_of_the_quick_start() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/quickstart.toml");
        let (_, expected) = jobs_of(QUICKSTART, file);
        let built_in = QUICKSTART.replace("traces/seven-sites.swf", SEVEN_SITES);
        let (name, found) = jobs_of(&built_in, "/nowhere/quickstart.toml");
        assert_eq!((name.as_str(), found.jobs.len()), ("quickstart", 2000));
        assert!(found.jobs == expected.jobs, "they differ");
    }

    #[test]
    fn an_experiment_without_a_name_is_called_by_the_log() {
        let mut written = Written::default();
        written.grid.sizes = Some(vec![128]);
        written.workload.trace = Some(SEVEN_SITES.into());
        assert_eq!(Experiment::resolve(&written).unwrap().name, "seven-sites");
    }

    #[test]
    fn another_name_is_that_of_a_file() {
        assert!(!is_built_in(Path::new("built-in:other")));
        assert_eq!(placed(Path::new("a"), Path::new("built-in:other")), Path::new("a/built-in:other"));
        assert_eq!(placed(Path::new("a"), Path::new(SEVEN_SITES)), Path::new(SEVEN_SITES));
    }
}
