//! Nodes that have ended and begin again with their journals: at once, and where that fails after longer and longer
//! pauses. A node that is killed while it begins, or that cannot be started for want of descriptors, memory or room on a
//! disk, is one that has ended once more. Whoever watches the nodes asks at each look.

use std::time::{Duration, Instant};

use scheduler::SiteId;

use super::{Fleet, FleetError, Member, Source, Whereabouts, adopt};
use crate::config::PeerAddress;
use crate::exit;
use crate::network::Discovery;
use crate::spawn::{End, NodeProcess, SpawnError};

/// How often one node is started again before the run is given up: it ends each time for a reason of its own.
pub const RESTARTS_MAX: u32 = 1000;

/// How often in a row a node may end before it is up: with the pauses in between that takes more than three minutes.
pub const BEGINNINGS_MAX: u32 = 100;

/// How long a node that registered may take to register again after it has ended: who runs it notices, and waits longer
/// each time.
const RETURN_PATIENCE: Duration = Duration::from_secs(60);

/// The pause after the first beginning that failed; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest: what was in the way may be gone any moment, and a look costs no more than a process.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What came of a look for nodes that have ended.
#[derive(Debug, Default)]
pub struct Restarted {
    /// Those that were found to have ended.
    pub ended: Vec<SiteId>,
    /// Those that are up again.
    pub begun: Vec<SiteId>,
    /// Those that could not begin this time, and why. They are tried again.
    pub failed: Vec<(SiteId, String)>,
    /// Those that are not tried again, and why; the same at each look until somebody gives them up.
    pub lost: Vec<(SiteId, FleetError)>,
}

impl Restarted {
    /// Whether there was nothing to be seen.
    pub fn is_empty(&self) -> bool {
        let Restarted { ended, begun, failed, lost } = self;
        ended.is_empty() && begun.is_empty() && failed.is_empty() && lost.is_empty()
    }
}

/// A node that has ended and is to begin again.
#[derive(Clone, Debug)]
pub(super) struct Awaited {
    since: Instant,
    /// Beginnings that failed.
    failed: u32,
    /// When the next is due.
    due: Instant,
    /// Why there is none.
    lost: Option<Lost>,
}

/// Why a node does not begin again.
#[derive(Clone, Debug)]
enum Lost {
    /// It ended like this.
    Ended(End),
    /// It never came that far.
    NotBegun(String),
}

impl Awaited {
    pub(super) fn new() -> Awaited {
        let now = Instant::now();
        Awaited { since: now, failed: 0, due: now, lost: None }
    }

    /// After a first beginning that failed like this; `None` if there is no other.
    pub(super) fn after(error: &FleetError) -> Option<Awaited> {
        let mut awaited = Awaited::new();
        awaited.failed(error, false).then_some(awaited)
    }

    /// There is no further beginning, because of this.
    pub(super) fn never(error: &FleetError) -> Awaited {
        let lost = Some(Lost::NotBegun(error.to_string()));
        Awaited { lost, ..Awaited::new() }
    }

    /// A beginning has failed. Whether there is another.
    fn failed(&mut self, error: &FleetError, has_registered: bool) -> bool {
        self.failed = self.failed.saturating_add(1);
        let doublings = self.failed.saturating_sub(1).min(16);
        self.due = Instant::now() + PAUSE_MAX.min(PAUSE_MIN * 2_u32.pow(doublings));
        if let FleetError::Spawn(SpawnError::Ended { status, .. }) = error
            && !may_begin_again(status.code())
        {
            self.lost = Some(Lost::Ended(End::Status(*status)));
            return false;
        }
        if let FleetError::JournalMissing { .. } = error {
            self.lost = Some(Lost::NotBegun(error.to_string()));
            return false;
        }
        let is_over = match has_registered {
            // It is waited for, not started.
            true => self.since.elapsed() >= RETURN_PATIENCE,
            false => self.failed >= BEGINNINGS_MAX,
        };
        if is_over {
            let times = self.failed;
            self.lost = Some(Lost::NotBegun(match has_registered {
                true => format!("it has not registered again for {RETURN_PATIENCE:?}: {error}"),
                false => format!("it was tried {times} times in a row, and the last time: {error}"),
            }));
        }
        !is_over
    }
}

/// Whether a node that ended with this code can go on where it was. One that was killed has none. What is not its
/// fault may be over the next time: no descriptors, no room, an address in use.
fn may_begin_again(code: Option<i32>) -> bool {
    let never = [exit::DONE, exit::USAGE, exit::JOURNAL_FOREIGN, exit::JOURNAL_DAMAGED].map(i32::from);
    code.is_none_or(|code| !never.contains(&code))
}

impl Fleet {
    /// Looks for nodes that have ended, and starts those again that may be, have a data directory, and whose pause is
    /// over: they go on where they were. Without `restart` only those begin that were to begin by
    /// [`Fleet::begin_again`]. Call it on the thread that started the fleet.
    ///
    /// # Errors
    /// If the system does not say whether a process has ended.
    pub fn restart_ended(&mut self, restart: bool) -> Result<Restarted, FleetError> {
        let mut restarted = Restarted::default();
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            let site = node.config.site;
            if node.is_up()
                && let Some(end) = node.process.ended()?
            {
                restarted.ended.push(site);
                let may = restart && node.config.data_dir.is_some() && node.restarts < RESTARTS_MAX;
                let may = may && may_begin_again(end.code());
                let lost = (!may).then_some(Lost::Ended(end));
                node.whereabouts = Whereabouts::Down;
                let mut awaited = Awaited { lost, ..Awaited::new() };
                if end.code() == Some(i32::from(exit::JOURNAL_FULL)) {
                    // There will not be room at once.
                    awaited.due += PAUSE_MAX;
                }
                node.awaited = Some(awaited);
            }
            let Some(awaited) = &node.awaited else { continue };
            if awaited.lost.is_none() && Instant::now() >= awaited.due {
                match self.begin(index) {
                    Ok(()) => {
                        self.nodes[index].restarts += 1;
                        restarted.begun.push(site);
                    }
                    Err(reason) => restarted.failed.push((site, reason)),
                }
            }
            restarted.lost.extend(self.nodes[index].lost().map(|lost| (site, lost)));
        }
        Ok(restarted)
    }

    /// Whether a node has ended that is to begin again.
    pub fn awaits_any(&self) -> bool {
        self.nodes.iter().any(|node| node.awaited.is_some())
    }

    /// Whether the node of a site is there, or may be again.
    pub fn may_come_back(&self, site: SiteId) -> bool {
        let node = &self.nodes[site.index()];
        let is_lost = node.awaited.as_ref().is_some_and(|awaited| awaited.lost.is_some());
        node.whereabouts != Whereabouts::Gone && !is_lost
    }

    /// Has another process do what the former did, or says why that is to be tried again.
    pub(super) fn begin(&mut self, index: usize) -> Result<(), String> {
        let has_registered = matches!(self.source, Source::Registered { .. });
        let node = &mut self.nodes[index];
        if let Err(error) = node.process_again(&self.source) {
            node.whereabouts = Whereabouts::Down;
            node.awaited.get_or_insert_with(Awaited::new).failed(&error, has_registered);
            return Err(error.to_string());
        }
        node.awaited = None;
        node.whereabouts = Whereabouts::Up;
        self.acquaint(index);
        Ok(())
    }

    /// Tells a node that has begun again and the others where they are. They know it from before, unless an address
    /// was taken meanwhile or the node ended before it was ever told.
    fn acquaint(&self, index: usize) {
        if self.nodes[index].config.discovery == Discovery::Mdns {
            return;
        }
        let here: Vec<PeerAddress> = self.nodes[index].addresses().collect();
        // Who does not hear it has ended, which the next look finds, or dials where the other was before.
        let _ = self.nodes[index].client.connect(&self.others(index));
        for other in self.up().into_iter().filter(|&other| other != index) {
            let _ = self.nodes[other].client.connect(&here);
        }
    }
}

impl Member {
    fn process_again(&mut self, source: &Source) -> Result<(), FleetError> {
        self.process = match source {
            Source::Spawned(order) => {
                let (mut process, _) = adopt::start_again(order, &self.config)?;
                process.bind();
                process
            }
            Source::Registered { desk, token } => {
                let former = Some(&self.process);
                NodeProcess::registered(desk, &self.config, token, former, Duration::ZERO)?
            }
        };
        self.client = self.process.client();
        Ok(())
    }

    /// Why it does not begin again, if it does not.
    fn lost(&self) -> Option<FleetError> {
        let name = crate::spawn::name_of(&self.config);
        let log = self.process.log_tail();
        Some(match self.awaited.as_ref()?.lost.clone()? {
            Lost::Ended(status) => FleetError::Ended { name, status, log },
            Lost::NotBegun(reason) => FleetError::NotBegun { name, reason },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn out_of_descriptors() -> FleetError {
        let error = io::Error::from_raw_os_error(24);
        FleetError::Spawn(SpawnError::File { what: "start it".to_string(), error })
    }

    #[test]
    fn pauses_grow_and_end_at_a_limit() {
        let mut awaited = Awaited::new();
        let mut longest = Duration::ZERO;
        for _ in 1..BEGINNINGS_MAX {
            assert!(awaited.failed(&out_of_descriptors(), false));
            longest = awaited.due.saturating_duration_since(Instant::now());
        }
        assert!(longest > PAUSE_MAX / 2 && longest <= PAUSE_MAX, "{longest:?}");
        assert!(!awaited.failed(&out_of_descriptors(), false), "there is a limit");
        assert!(
            matches!(&awaited.lost, Some(Lost::NotBegun(reason)) if reason.contains("100 times in a row"))
        );
    }

    #[test]
    fn who_was_killed_may_begin_again_and_who_was_told_to_end_or_cannot_go_on_may_not() {
        let codes = [exit::UNEXPECTED, exit::INPUT, exit::ADDRESS, exit::JOURNAL_IN_USE, exit::JOURNAL_FULL];
        for code in codes.into_iter().chain([exit::ORPHANED]).map(i32::from) {
            assert!(may_begin_again(Some(code)), "{code}");
        }
        assert!(may_begin_again(None));
        for code in [exit::DONE, exit::USAGE, exit::JOURNAL_FOREIGN, exit::JOURNAL_DAMAGED].map(i32::from) {
            assert!(!may_begin_again(Some(code)), "{code}");
        }
    }
}
