//! The experiment that the page begins with, and what becomes of it with settings.

use std::path::{Path, PathBuf};

use experiments::experiment::file::{FileError, Written};
use experiments::experiment::{Experiment, ExperimentError, built_in};
use scheduler::StrategySpec;
use toml::{Table, Value};

use super::settings::Settings;
use crate::sweep::file::{place_logs, place_network};

/// Why there is nothing to play with. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub(super) enum BaseError {
    /// The file cannot be read or understood.
    #[error(transparent)]
    File(#[from] FileError),
    /// What it says means nothing.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// Its folder has no path.
    #[error("find {}: {cause}", path.display())]
    Place {
        /// The file that was given.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It starts commands of its user.
    #[error(
        "play with {}: a command decides in it, and each change would start it again; write another strategy.name or \
         strategy.local, and use stealgrid simulate for this one", path.display()
    )]
    Command {
        /// The file that was given.
        path: PathBuf,
    },
}

/// An experiment as it was written, with paths that hold anywhere.
#[derive(Clone, Debug)]
pub(super) struct Base {
    table: Table,
    /// Where it was read from, for messages and its name.
    path: PathBuf,
    strategy: StrategySpec,
}

impl Base {
    /// The quick start, with the log that comes with the program.
    ///
    /// # Errors
    /// Never; as for [`Base::read`].
    pub(super) fn built_in() -> Result<Base, BaseError> {
        let text = built_in::QUICKSTART;
        let path = Path::new("quickstart.toml");
        let mut base = Base::of(text, path)?;
        let trace = Value::String(built_in::SEVEN_SITES.to_string());
        let workload = base.table.get_mut("workload").and_then(Value::as_table_mut);
        workload.expect("the quick start has a workload").insert("trace".to_string(), trace);
        Ok(base)
    }

    /// Reads an experiment file.
    ///
    /// # Errors
    /// If it is none, or one in which commands decide.
    pub(super) fn read(path: &Path) -> Result<Base, BaseError> {
        Base::of(&Written::read(path)?, path)
    }

    fn of(text: &str, path: &Path) -> Result<Base, BaseError> {
        let written = Written::parse(text, path)?;
        let experiment = Experiment::resolve(&written)?;
        if experiment.external.broker.is_some() || experiment.external.queue.is_some() {
            return Err(BaseError::Command { path: path.to_path_buf() });
        }
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| FileError::Parse {
            path: path.to_path_buf(),
            reason: error.to_string(),
        })?;
        let place = |cause| BaseError::Place { path: path.to_path_buf(), cause };
        let folder = std::path::absolute(path).map_err(place)?;
        let folder = folder.parent().unwrap_or(Path::new("/"));
        place_logs(&mut table, folder);
        place_network(&mut table, folder);
        // A saved file may get another name.
        table.entry("name").or_insert_with(|| Value::String(experiment.name.clone()));
        Ok(Base { table, path: path.to_path_buf(), strategy: experiment.strategy })
    }

    /// Its strategy, unchanged.
    pub(super) fn strategy(&self) -> StrategySpec {
        self.strategy
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        self.table.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The text of the experiment with these settings: what is simulated, and what is saved.
    pub(super) fn with(&self, settings: &Settings) -> String {
        let mut table = self.table.clone();
        settings.apply(&mut table, self.strategy);
        toml::to_string(&table).expect("a table that was read can be written")
    }

    /// What such a text means.
    ///
    /// # Errors
    /// In words, if settings contradict the experiment.
    pub(super) fn resolve(&self, text: &str) -> Result<Experiment, String> {
        let written = Written::parse(text, &self.path).map_err(|error| error.to_string())?;
        Experiment::resolve(&written).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_experiment_finds_its_log_from_any_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, "grid.sizes = [4]\nworkload.trace = \"logs/a.swf\"\nnetwork.model = \"lan\"\n")
            .unwrap();
        let base = Base::read(&path).unwrap();
        let text = base.with(&Settings::default());
        let trace = folder.path().join("logs/a.swf");
        assert!(text.contains(&format!("trace = \"{}\"", trace.display())), "{text}");
        assert!(text.contains("model = \"lan\""), "{text}");
        assert!(text.contains("name = \"mine\""), "{text}");
    }

    #[test]
    fn an_experiment_in_which_a_command_decides_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        for strategy in ["name = \"broker:exec=cat mine\"", "name = \"local\"\nlocal = \"exec=cat mine\""] {
            let text =
                format!("[grid]\nsizes = [4]\n[workload]\ntrace = \"a.swf\"\n[strategy]\n{strategy}\n");
            std::fs::write(&path, text).unwrap();
            let error = Base::read(&path).unwrap_err().to_string();
            assert!(error.contains("a command decides in it"), "{error}");
        }
    }

    #[test]
    fn the_built_in_experiment_is_that_of_the_quick_start() {
        let base = Base::built_in().unwrap();
        assert_eq!(base.name(), "quickstart");
        assert_eq!(base.strategy().to_string(), "steal:loaded,select=easy");
        assert!(base.with(&Settings::default()).contains("trace = \"built-in:seven-sites\""));
    }
}
