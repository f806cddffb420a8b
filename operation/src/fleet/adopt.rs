//! Taking over the nodes of a coordinator that has ended: those that still run as they are, the others by starting them
//! again with their journals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use node::bounded;
use node::config::{BYTES_MAX, NodeConfig};
use node::exit;
use node::journal::inspect::{self, Remains};
use node::running::Running;
use rustix::process::Signal;
use scheduler::SiteId;

use super::outages::{events_of_lost_journals, signal};
use super::restarts::Awaited;
use super::secrets::Secrets;
use super::{END_PATIENCE, END_POLL, Fleet, FleetError, Member, Source, Whereabouts};
use crate::spawn::{NodeProcess, SpawnError, SpawnOrder};

/// Nodes that were taken over.
#[derive(Debug)]
pub struct Adopted {
    /// All of them. Nothing was fetched from any yet.
    pub fleet: Fleet,
    /// The names of those that had ended and were started again.
    pub started: Vec<String>,
    /// What sites that never come back have left, with all their events.
    pub remains: BTreeMap<SiteId, Remains>,
    /// Sites that never come back and whose journals cannot be read to the end, so that not all their events are known.
    pub forgotten: BTreeSet<SiteId>,
    /// Sites that were given up with their journals, and whose journals are whole now.
    pub put_back: BTreeSet<SiteId>,
}

impl Fleet {
    /// Takes over the nodes of these sites, in the order of the grid, which another coordinator has started in the
    /// order's folder and left. Those that are `away` are not started again; one that is down and runs was begun and is
    /// up, and one that stood still goes on. Sites that are `lost` were given up with their journals: whatever is there now
    /// says what they did, and no more what they have. If the caller `may_lose` sites, one whose journal is damaged or
    /// missing is told by [`Fleet::restart_ended`]. Call it on a thread that lives as long as the fleet.
    ///
    /// # Errors
    /// If a node cannot be read about, or ends because it cannot go on. Those that ran are left alone, and can be taken
    /// over again.
    pub fn adopt(
        order: &SpawnOrder,
        sites: &[String],
        away: &BTreeMap<SiteId, Whereabouts>,
        lost: &BTreeSet<SiteId>,
        may_lose: bool,
    ) -> Result<Adopted, FleetError> {
        let mut configs = Vec::with_capacity(sites.len());
        for site in sites {
            configs.push(read(&order.folder.join(format!("{site}.json")))?);
        }
        let nobody = configs.iter().all(|config| running(config).is_none());
        let former = if nobody { Former::Kill } else { Former::Adopt };
        let mut secrets = Secrets::default();
        if nobody {
            // The former may have gone with the nodes, or be known by now. A node that was just starting, and has them, comes
            // too late: nobody could speak to it.
            drop(Secrets::of(&order.folder));
            Secrets::forget(&order.folder, &mut configs);
            secrets = Secrets::share(&order.folder, &mut configs)?;
        }
        let (mut nodes, mut started) = (Vec::with_capacity(sites.len()), Vec::new());
        let mut remains = BTreeMap::new();
        let (mut forgotten, mut put_back) = (BTreeSet::new(), BTreeSet::new());
        for (config, site) in configs.into_iter().zip(sites) {
            let whereabouts = away.get(&config.site).copied().unwrap_or_default();
            let up = running(&config);
            if let (Former::Kill, Some(up)) = (former, &up) {
                up.process.kill();
            }
            let process = match up.filter(|_| former == Former::Adopt) {
                Some(running) => {
                    let mut process = NodeProcess::adopt(order, &config, running)?;
                    signal(&mut process, Signal::CONT)?;
                    process
                }
                None if matches!(whereabouts, Whereabouts::Down | Whereabouts::Gone) => {
                    let (site, is_gone) = (config.site, whereabouts == Whereabouts::Gone);
                    let may_be_unreadable = is_gone || may_lose;
                    let (member, left) = absent(order, config, whereabouts, may_be_unreadable)?;
                    nodes.push(member);
                    match left {
                        _ if !is_gone => {}
                        None => drop(forgotten.insert(site)),
                        Some(_) if lost.contains(&site) => drop(put_back.insert(site)),
                        Some(left) => drop(remains.insert(site, left)),
                    }
                    continue;
                }
                None => match start_again(order, &config, false, former) {
                    Ok((process, true)) => {
                        started.push(site.clone());
                        process
                    }
                    Ok((process, false)) => process,
                    Err(error) => {
                        let awaited = match Awaited::after(&error) {
                            Some(awaited) => awaited,
                            None if may_lose && error.is_about_a_journal() => Awaited::never(&error),
                            None => return Err(error),
                        };
                        nodes.push(absent_with(order, config, Whereabouts::Down, Some(awaited))?);
                        continue;
                    }
                },
            };
            nodes.push(Member::new(config, process));
        }
        for node in &mut nodes {
            let before = events_of_lost_journals(&node.config);
            if let Some(left) = remains.get_mut(&node.config.site) {
                left.events.splice(0..0, before.iter().copied());
            }
            node.unfetched.splice(0..0, before);
        }
        let source = Source::Spawned(order.clone());
        let mut fleet = Fleet { source, nodes, quiet_before: None, limits_hit: BTreeMap::new(), secrets };
        // Those that were started again may listen elsewhere. One that has ended since is found by who looks at the nodes.
        if let Err(error) = fleet.introduce() {
            tracing::warn!(%error, "not all nodes were told where the others are; they look for each other");
        }
        fleet.nodes.iter_mut().for_each(|node| node.process.bind());
        if !nobody {
            fleet.secrets = Secrets::of(&order.folder);
        }
        Ok(Adopted { fleet, started, remains, forgotten, put_back })
    }
}

/// A node that has ended and is not started again now, with its events, and what it has left. If its journal
/// `may_be_unreadable`, with those events that can be read, and nothing else.
fn absent(
    order: &SpawnOrder,
    config: NodeConfig,
    whereabouts: Whereabouts,
    may_be_unreadable: bool,
) -> Result<(Member, Option<Remains>), FleetError> {
    let name = crate::spawn::name_of(&config);
    let dir = config.data_dir.clone().unwrap_or_default();
    let (events, remains) = match inspect::remains(&dir, 0) {
        Ok(remains) => (remains.events.clone(), Some(remains)),
        Err(error) if may_be_unreadable && error.is_for_good() => (inspect::readable_events(&dir, 0), None),
        Err(error) => return Err(FleetError::Remains { name, error }),
    };
    let mut member = absent_with(order, config, whereabouts, None)?;
    member.next_event = events.len() as u64;
    // What is known of the others is held back until this one is back, as by the coordinator before.
    member.known_until = events.last().map_or(member.known_until, |last| last.at);
    member.unfetched = events;
    Ok((member, remains))
}

/// A node that has ended and does not run now.
fn absent_with(
    order: &SpawnOrder,
    config: NodeConfig,
    whereabouts: Whereabouts,
    awaited: Option<Awaited>,
) -> Result<Member, FleetError> {
    let dir = config.data_dir.as_deref().unwrap_or(Path::new(""));
    let unknown = || Running::unknown(config.site, crate::spawn::name_of(&config));
    let last = Running::last_of(dir).unwrap_or_else(unknown);
    let process = NodeProcess::adopt(order, &config, last)?;
    let mut member = Member::new(config, process);
    (member.whereabouts, member.awaited) = (whereabouts, awaited);
    Ok(member)
}

/// Ends the nodes that serve data directories in a folder, and removes the secrets that they share. For a coordinator
/// that must end at once.
pub fn end_all(folder: &Path) {
    for running in Running::all_in(folder) {
        running.process.kill();
    }
    let deadline = Instant::now() + END_PATIENCE;
    while Running::may_be_any_in(folder) && Instant::now() < deadline {
        std::thread::sleep(END_POLL);
    }
    drop(Secrets::of(folder));
}

fn running(config: &NodeConfig) -> Option<Running> {
    config.data_dir.as_deref().and_then(Running::of)
}

/// What becomes of a node that a coordinator started just before it ended itself, and that was not up yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Former {
    /// It is taken over.
    Adopt,
    /// It is ended, as it has other secrets than the fleet.
    Kill,
}

/// Starts a node that has ended, with its journal unless it begins `anew`, and says so; or takes over the `former`.
pub(super) fn start_again(
    order: &SpawnOrder,
    config: &NodeConfig,
    anew: bool,
    former: Former,
) -> Result<(NodeProcess, bool), FleetError> {
    let journal = inspect::file(config.data_dir.as_deref().unwrap_or(Path::new("")));
    // Any other error is one that the node finds, too.
    if !anew && matches!(journal.try_exists(), Ok(false)) {
        return Err(FleetError::JournalMissing { name: crate::spawn::name_of(config), path: journal });
    }
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
        match (running(config), former) {
            (Some(running), Former::Adopt) => {
                return Ok((NodeProcess::adopt(order, config, running)?, false));
            }
            (Some(running), Former::Kill) => running.process.kill(),
            (None, _) => {}
        }
        std::thread::sleep(END_POLL);
    }
}

fn read(path: &Path) -> Result<NodeConfig, FleetError> {
    let wrong = |reason: String| FleetError::Config { path: path.to_path_buf(), reason };
    let text = bounded::read_text(path, BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    let config: NodeConfig = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    match config.data_dir {
        Some(_) => Ok(config),
        None => Err(wrong("the node keeps no journal, so it ended with its coordinator".to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_of_a_node_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site1.json");
        std::fs::File::create(&path).unwrap().set_len(BYTES_MAX + 1).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("site1.json") && error.contains("more than 67108864 bytes"), "{error}");
    }
}
