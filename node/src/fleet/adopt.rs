//! Taking over the nodes of a coordinator that has ended: those that still run as they are, the others by starting them
//! again with their journals.

use std::path::Path;
use std::time::Instant;

use super::secrets::Secrets;
use super::{END_PATIENCE, END_POLL, Fleet, FleetError, Member, Source};
use crate::config::NodeConfig;
use crate::exit;
use crate::running::Running;
use crate::spawn::{NodeProcess, SpawnError, SpawnOrder};

impl Fleet {
    /// Takes over the nodes of these sites, in the order of the grid, which another coordinator has started in the
    /// order's folder and left; and the names of those that had ended and were started again. Nothing was fetched from
    /// any yet. Call it on a thread that lives as long as the fleet.
    ///
    /// # Errors
    /// If a node cannot be read about, reached or started. Those that ran are left alone, and can be taken over again.
    pub fn adopt(order: &SpawnOrder, sites: &[String]) -> Result<(Fleet, Vec<String>), FleetError> {
        let mut configs = Vec::with_capacity(sites.len());
        for site in sites {
            configs.push(read(&order.folder.join(format!("{site}.json")))?);
        }
        let nobody = configs.iter().all(|config| running(config).is_none());
        let mut secrets = Secrets::default();
        if nobody {
            // The former may have gone with the nodes, or be known by now.
            drop(Secrets::of(&order.folder));
            Secrets::forget(&order.folder, &mut configs);
            secrets = Secrets::share(&order.folder, &mut configs)?;
        }
        let (mut nodes, mut started) = (Vec::with_capacity(sites.len()), Vec::new());
        for (config, site) in configs.into_iter().zip(sites) {
            let process = match running(&config) {
                Some(running) => NodeProcess::adopt(order, &config, running)?,
                None => match start_again(order, &config)? {
                    (process, true) => {
                        started.push(site.clone());
                        process
                    }
                    (process, false) => process,
                },
            };
            nodes.push(Member::new(config, process));
        }
        let source = Source::Spawned(order.clone());
        let mut fleet = Fleet { source, nodes, quiet_before: None, secrets };
        // Those that were started again may listen elsewhere.
        fleet.introduce()?;
        fleet.nodes.iter_mut().for_each(|node| node.process.bind());
        if !nobody {
            fleet.secrets = Secrets::of(&order.folder);
        }
        Ok((fleet, started))
    }
}

/// Ends the nodes that serve data directories in a folder, and removes the secrets that they share. For a coordinator
/// that must end at once.
pub fn end_all(folder: &Path) {
    for running in Running::all_in(folder) {
        running.process.kill();
    }
    drop(Secrets::of(folder));
}

fn running(config: &NodeConfig) -> Option<Running> {
    config.data_dir.as_deref().and_then(Running::of)
}

/// Starts a node that has ended, and says so; or takes over the one that its coordinator started just before it ended
/// itself, and that was not up yet.
fn start_again(order: &SpawnOrder, config: &NodeConfig) -> Result<(NodeProcess, bool), FleetError> {
    let deadline = Instant::now() + END_PATIENCE;
    loop {
        let error = match NodeProcess::spawn_again(order, config) {
            Ok(process) => return Ok((process, true)),
            Err(error) => error,
        };
        let in_use = matches!(&error, SpawnError::Ended { status, .. }
            if status.code() == Some(i32::from(exit::JOURNAL_IN_USE)));
        if !in_use || Instant::now() >= deadline {
            return Err(error.into());
        }
        if let Some(running) = running(config) {
            return Ok((NodeProcess::adopt(order, config, running)?, false));
        }
        std::thread::sleep(END_POLL);
    }
}

fn read(path: &Path) -> Result<NodeConfig, FleetError> {
    let wrong = |reason: String| FleetError::Config { path: path.to_path_buf(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let config: NodeConfig = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match config.data_dir {
        Some(_) => Ok(config),
        None => Err(wrong("the node keeps no journal, so it ended with its coordinator".to_string())),
    }
}
