//! What is done to a run, and undone again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Signal};

use super::{GONE_PATIENCE, Round, TICK};
use crate::chaos::journals::{Harmed, Journals};
use crate::chaos::processes::{self, Process};
use crate::chaos::schedule::{Attach, What};

/// How long somebody waits for the successor of a node that was killed.
const SUCCESSOR_PATIENCE: Duration = Duration::from_secs(3);

/// What is to be done at some time.
#[derive(Debug)]
pub(super) enum Action {
    Strike(usize),
    /// Waits for another process of the site than these, to kill it so many milliseconds later.
    AwaitSuccessor {
        site: usize,
        former: BTreeSet<u32>,
        again_ms: VecDeque<u64>,
        until: Instant,
    },
    KillSuccessor {
        site: usize,
        process: Process,
        again_ms: VecDeque<u64>,
    },
    Continue(Process),
    MakeRoom,
    Unlimit(Process, Resource),
    /// From the coordinator also everything that it has started.
    UnlimitAll,
    Attach(VecDeque<Attach>),
    KillAttaching {
        coordinator: u32,
        rest: VecDeque<Attach>,
    },
}

impl Round<'_> {
    pub(super) fn act(&mut self, deed: Action) -> anyhow::Result<()> {
        match deed {
            Action::Strike(place) => {
                let what = self.schedule.faults[place].what.clone();
                self.note(&format!("fault {place}: {what:?}"));
                let name = what.name();
                if self.strike(what)? {
                    *self.ran.struck.entry(name).or_default() += 1;
                } else {
                    self.note("  there was nothing to hit");
                    self.ran.missed += 1;
                }
            }
            Action::AwaitSuccessor { site, former, mut again_ms, until } => {
                let found = processes::of_site(&self.nodes, self.name(site));
                match found.into_iter().find(|process| !former.contains(&process.id)) {
                    Some(process) => {
                        let after = Duration::from_millis(again_ms.pop_front().unwrap_or(0));
                        self.later(after, Action::KillSuccessor { site, process, again_ms });
                    }
                    None if Instant::now() < until => {
                        self.later(TICK, Action::AwaitSuccessor { site, former, again_ms, until });
                    }
                    None => {}
                }
            }
            Action::KillSuccessor { site, process, again_ms } => {
                if process.signal(Signal::KILL) {
                    self.note(&format!(
                        "the successor at {} is killed, process {}",
                        self.name(site),
                        process.id
                    ));
                    *self.ran.struck.entry("kill of a successor").or_default() += 1;
                    self.await_successor(site, [process.id].into(), again_ms);
                }
            }
            Action::Continue(process) => {
                process.signal(Signal::CONT);
            }
            Action::MakeRoom => self.make_room(),
            Action::Unlimit(process, resource) => process.unlimit(resource),
            Action::UnlimitAll => self.unlimit_all(),
            Action::Attach(mut rest) => {
                let Some(now) = rest.pop_front() else { return Ok(()) };
                if self.coordinator.is_none() {
                    self.attach()?;
                }
                let Some(lives_ms) = now.killed_after_ms else { return Ok(()) };
                let coordinator = self.coordinators;
                let deed = Action::KillAttaching { coordinator, rest };
                self.later(Duration::from_millis(lives_ms), deed);
            }
            Action::KillAttaching { coordinator, rest } => {
                if self.coordinators == coordinator && self.coordinator.is_some() {
                    self.note("the coordinator that attaches is killed");
                    *self.ran.struck.entry("kill of an attaching coordinator").or_default() += 1;
                    self.kill_coordinator();
                }
                let after = rest.front().map_or(0, |next| next.after_ms);
                self.later(Duration::from_millis(after), Action::Attach(rest));
            }
        }
        Ok(())
    }

    /// Does what a fault does; false if there was nothing to hit.
    pub(super) fn strike(&mut self, what: What) -> anyhow::Result<bool> {
        match what {
            What::Kill { sites, again_ms } => {
                let former = self.kill(&sites);
                let first = sites[0];
                if !again_ms.is_empty() {
                    self.await_successor(
                        first,
                        former.get(&first).cloned().unwrap_or_default(),
                        again_ms.into(),
                    );
                }
                Ok(!former.is_empty())
            }
            What::Stop { site, for_ms } => {
                let found = processes::of_site(&self.nodes, self.name(site));
                Ok(self.stop(found.into_iter().next(), for_ms))
            }
            What::StopCoordinator { for_ms } => {
                let process = self.coordinator.as_ref().and_then(Process::of_child);
                Ok(self.stop(process, for_ms))
            }
            What::Full { room_kib, for_ms } => {
                match &self.disk {
                    Some(disk) => disk.fill(room_kib),
                    // No file system may be mounted: no node may make a file longer.
                    None => {
                        for (site, (name, _)) in self.template.sites.iter().enumerate() {
                            let most = self.journals.size(name) + room_kib * 1024;
                            for process in processes::of_site(&self.nodes, name) {
                                process.limit(Resource::Fsize, most);
                                self.hit.insert(site);
                            }
                        }
                    }
                }
                self.later(Duration::from_millis(for_ms), Action::MakeRoom);
                Ok(true)
            }
            What::FileLimit { site, room_kib, for_ms } => {
                let most = self.journals.size(self.name(site)) + room_kib * 1024;
                let found = processes::of_site(&self.nodes, self.name(site)).into_iter().next();
                self.hit.insert(site);
                Ok(self.limit(found, Resource::Fsize, |_| most, for_ms))
            }
            What::Descriptors { site, spare, for_ms } => {
                let found = match site {
                    Some(site) => {
                        self.hit.insert(site);
                        processes::of_site(&self.nodes, self.name(site)).into_iter().next()
                    }
                    None => {
                        self.later(Duration::from_millis(for_ms), Action::UnlimitAll);
                        self.coordinator.as_ref().and_then(Process::of_child)
                    }
                };
                Ok(self.limit(found, Resource::Nofile, |process| process.open_files() + spare, for_ms))
            }
            What::Damage { site, file, harm } => {
                let site = self.name(site).to_string();
                self.while_down(&site, |journals| journals.damage(&site, file, &harm))
            }
            What::Lose { site } => {
                let site = self.name(site).to_string();
                self.while_down(&site, |journals| journals.lose(&site))
            }
            What::KillCoordinator { attach } => {
                let was = self.coordinator.is_some();
                if was {
                    self.kill_coordinator();
                }
                let after = attach.first().map_or(0, |first| first.after_ms);
                self.later(Duration::from_millis(after), Action::Attach(attach.into()));
                Ok(was)
            }
        }
    }

    /// Kills these sites at once; the processes that there were.
    pub(super) fn kill(&mut self, sites: &[usize]) -> BTreeMap<usize, BTreeSet<u32>> {
        let found: Vec<(usize, Process)> = sites
            .iter()
            .flat_map(|site| {
                let found = processes::of_site(&self.nodes, self.name(*site));
                found.into_iter().map(|process| (*site, process))
            })
            .collect();
        let mut killed: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for (site, process) in found {
            if process.signal(Signal::KILL) {
                killed.entry(site).or_default().insert(process.id);
                self.hit.insert(site);
            }
        }
        killed
    }

    pub(super) fn await_successor(&mut self, site: usize, former: BTreeSet<u32>, again_ms: VecDeque<u64>) {
        if !again_ms.is_empty() {
            let until = Instant::now() + SUCCESSOR_PATIENCE;
            self.later(Duration::ZERO, Action::AwaitSuccessor { site, former, again_ms, until });
        }
    }

    pub(super) fn stop(&mut self, process: Option<Process>, for_ms: u64) -> bool {
        let Some(process) = process.filter(|process| process.signal(Signal::STOP)) else { return false };
        self.later(Duration::from_millis(for_ms), Action::Continue(process));
        true
    }

    pub(super) fn limit(
        &mut self,
        process: Option<Process>,
        resource: Resource,
        most: impl Fn(&Process) -> u64,
        for_ms: u64,
    ) -> bool {
        let Some(process) = process.filter(|process| process.limit(resource, most(process))) else {
            return false;
        };
        self.later(Duration::from_millis(for_ms), Action::Unlimit(process, resource));
        true
    }

    /// Kills a node and does something to its journal before anybody begins it again.
    pub(super) fn while_down(
        &mut self,
        site: &str,
        harm: impl FnOnce(&mut Journals) -> std::io::Result<Option<Harmed>>,
    ) -> anyhow::Result<bool> {
        let coordinator = self.coordinator.as_ref().and_then(Process::of_child);
        let stopped = coordinator.filter(|process| process.signal(Signal::STOP));
        if let Some(place) = self.template.sites.iter().position(|(name, _)| name == site) {
            self.kill(&[place]);
        }
        let deadline = Instant::now() + GONE_PATIENCE;
        while !processes::of_site(&self.nodes, site).is_empty() && Instant::now() < deadline {
            std::thread::sleep(TICK);
        }
        let harmed = harm(&mut self.journals);
        if let Some(coordinator) = stopped {
            coordinator.signal(Signal::CONT);
        }
        // There may be no room to write the damage.
        let Ok(harmed) = harmed else { return Ok(false) };
        let done = harmed.is_some();
        self.harmed.extend(harmed);
        Ok(done)
    }

    /// Takes away everything that is in the way of the run.
    pub(super) fn heal(&mut self) {
        self.make_room();
        self.unlimit_all();
        if let Some(process) = self.coordinator.as_ref().and_then(Process::of_child) {
            process.signal(Signal::CONT);
        }
        for process in processes::all(&self.nodes) {
            process.signal(Signal::CONT);
        }
    }

    pub(super) fn make_room(&mut self) {
        match &self.disk {
            Some(disk) => disk.empty(),
            None => processes::all(&self.nodes).iter().for_each(|process| process.unlimit(Resource::Fsize)),
        }
    }

    pub(super) fn unlimit_all(&self) {
        let coordinator = self.coordinator.as_ref().and_then(Process::of_child);
        for process in coordinator.into_iter().chain(processes::all(&self.nodes)) {
            process.unlimit(Resource::Nofile);
            process.unlimit(Resource::Fsize);
        }
    }
}
