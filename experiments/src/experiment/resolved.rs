//! The experiment as a file that runs it again, from any folder: what was written and typed, with the defaults that decide.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::Written;
use super::{Experiment, Source, built_in, clusters};

/// The name of the file in a result directory.
pub const EXPERIMENT: &str = "experiment.toml";

/// What stands above it.
const HEAD: &str = "# What was run: the experiment with everything that was typed, and the defaults that decide.\n\
    # `stealgrid rerun` runs it again and compares.\n\n";

/// The text of the file, and its keys of nodes that jobs share. They say nothing that the experiment does not, so that they are no part of
/// what tells two apart.
#[derive(Clone, Default)]
pub struct Resolved {
    text: Arc<str>,
    nodes: Arc<BTreeMap<String, String>>,
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolved")
    }
}

impl Resolved {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What was written of nodes that jobs share, with its defaults, by key; nothing where they share none.
    pub(super) fn nodes(&self) -> &BTreeMap<String, String> {
        &self.nodes
    }

    /// Of what was written, and what it means. Nothing if that cannot be a file: a number that TOML does not have.
    pub(super) fn of(written: &Written, experiment: &Experiment) -> Resolved {
        let nodes = Arc::new(clusters::switches(&written.grid));
        let mut written = written.clone();
        written.name = Some(experiment.name.clone());
        written.seed = Some(experiment.seed);
        // Results of the next run have a place of their own.
        written.outputs.dir = None;
        let workload = &mut written.workload;
        let prepare = &experiment.prepare;
        workload.size = Some(prepare.size.to_string());
        workload.estimate = Some(experiment.estimate());
        workload.correction = experiment.forecast.map(|forecast| forecast.correction.to_string());
        workload.overrun = Some(prepare.overrun.to_string());
        workload.missing_estimate = Some(prepare.missing_estimate.to_string());
        workload.filters = Some(prepare.filters.to_string());
        workload.deal = experiment.deal.map(|deal| deal.to_string());
        if matches!(experiment.source, Source::Trace(_) | Source::Generated(_)) && experiment.deal.is_none() {
            workload.origin = Some(prepare.origin.to_string());
        }
        workload.week_from = Some(experiment.slice.week_from.name().to_string());
        workload.trace = workload.trace.take().map(whole);
        workload.bag = workload.bag.take().map(whole);
        for log in workload.logs.iter_mut().flatten() {
            log.trace = whole(std::mem::take(&mut log.trace));
        }
        if let Ok(folder) = std::path::absolute(Path::new("")) {
            written.network.resolve_paths(&folder);
            if let Some(conf) = &mut written.execution.slurm.conf {
                *conf = folder.join(&*conf).to_string_lossy().into_owned();
            }
        }
        written.strategy.name.get_or_insert_with(|| experiment.strategy.to_string());
        if written.strategy.backfill.take().is_some() {
            written.strategy.local = Some(experiment.local.name().to_string());
        }
        written.strategy.pass = Some(experiment.pass.name().to_string());
        written.strategy.submit = Some(experiment.submit.name().to_string());
        written.strategy.submit_delay = Some(experiment.submit_delay.to_string());
        let text = toml::Table::try_from(&written).map_err(drop).and_then(|mut table| {
            // What says nothing is left out.
            table.retain(|_, value| match value {
                toml::Value::Table(section) => {
                    section.retain(|_, value| !value.as_table().is_some_and(toml::Table::is_empty));
                    !section.is_empty()
                }
                toml::Value::Array(list) => !list.is_empty(),
                _ => true,
            });
            toml::to_string(&table).map_err(drop).map(|text| format!("{HEAD}{text}"))
        });
        Resolved { text: text.unwrap_or_default().into(), nodes }
    }
}

/// A path that can be opened from any folder.
fn whole(path: PathBuf) -> PathBuf {
    if built_in::is_built_in(&path) {
        return path;
    }
    std::path::absolute(&path).unwrap_or(path)
}
