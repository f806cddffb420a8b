//! Nodes that have ended and restart with their journals: at once, and where that fails after longer and longer
//! pauses. A node that is killed while it begins, or that cannot be started for want of descriptors, memory or room on a
//! disk, is one that has ended once more. Whoever watches the nodes asks at each look.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use node::exit;
use node::network::Discovery;
use node::peer_address::PeerAddress;
use protocol::journal::JOURNALS_MAX;
use scheduler::SiteId;

use super::adopt::{self, Former};
use super::{Fleet, FleetError, Member, Source, Whereabouts};
use crate::spawn::{End, NodeProcess, SpawnError};

/// How often the node of one site is started again: it ends each time for a reason of its own.
pub const RESTARTS_MAX: u32 = 1000;

/// How often in a row a node may end before it is up: with the pauses in between that takes more than three minutes.
pub const BEGINNINGS_MAX: u32 = 100;

/// A limit on how often nodes restart. Beyond it the node of a site has ended for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// [`RESTARTS_MAX`].
    Restarts,
    /// [`BEGINNINGS_MAX`].
    Beginnings,
    /// [`JOURNALS_MAX`], less the first.
    Journals,
}

impl Limit {
    /// All of them, in the order of their names.
    pub const ALL: [Limit; 3] = [Limit::Beginnings, Limit::Journals, Limit::Restarts];

    /// The name in metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Restarts => "restarts",
            Limit::Beginnings => "beginnings",
            Limit::Journals => "journals",
        }
    }

    /// The largest count that this limit allows.
    pub fn most(self) -> u32 {
        match self {
            Limit::Restarts => RESTARTS_MAX,
            Limit::Beginnings => BEGINNINGS_MAX,
            Limit::Journals => JOURNALS_MAX - 1,
        }
    }
}

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
    /// Those that could not begin this time, and why. They are tried again. One that is to register again is here once.
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

/// A node that has ended and is to restart.
#[derive(Clone, Debug)]
pub(super) struct Awaited {
    since: Instant,
    /// Beginnings that failed.
    failed: u32,
    /// When the next is due.
    due: Instant,
    /// Why there is none.
    lost: Option<Lost>,
    /// The limit that says so, if it is one.
    limit: Option<Limit>,
}

/// Why a node does not restart.
#[derive(Clone, Debug)]
enum Lost {
    /// It ended like this.
    Ended(End),
    /// It never came that far.
    NotBegun(String),
    /// Its journal, which should be there, is not.
    JournalMissing(PathBuf),
}

impl Lost {
    fn by(error: &FleetError) -> Lost {
        match error {
            FleetError::Spawn(SpawnError::Ended { status, .. }) => Lost::Ended(End::Status(*status)),
            FleetError::JournalMissing { path, .. } => Lost::JournalMissing(path.clone()),
            _ => Lost::NotBegun(error.to_string()),
        }
    }
}

impl Awaited {
    pub(super) fn new() -> Awaited {
        let now = Instant::now();
        Awaited { since: now, failed: 0, due: now, lost: None, limit: None }
    }

    /// After an end of a node that was started again so many times and, but for that, `may` be once more.
    fn ended(end: End, may: bool, restarts: u32) -> Awaited {
        let mut awaited = Awaited::new();
        if !may {
            awaited.lost = Some(Lost::Ended(end));
        } else if restarts >= RESTARTS_MAX {
            let reason = format!("it was started again {restarts} times before it ended with {end}");
            awaited.lost = Some(Lost::NotBegun(reason));
            awaited.limit = Some(Limit::Restarts);
        }
        if end.code() == Some(i32::from(exit::JOURNAL_FULL)) {
            // There will not be room at once.
            awaited.due += PAUSE_MAX;
        }
        awaited
    }

    /// After a first beginning that failed like this; `None` if there is no other.
    pub(super) fn after(error: &FleetError) -> Option<Awaited> {
        let mut awaited = Awaited::new();
        awaited.failed(error, false).then_some(awaited)
    }

    /// There is no further beginning, because of this.
    pub(super) fn never(error: &FleetError) -> Awaited {
        Awaited { lost: Some(Lost::by(error)), ..Awaited::new() }
    }

    /// Whether it was given up for want of a journal that is there by now: another coordinator had a node begin anew just before it
    /// ended itself, and that node has come that far since.
    fn is_back(&self) -> bool {
        matches!(&self.lost, Some(Lost::JournalMissing(path)) if path.exists())
    }

    /// A beginning has failed. Whether there is another.
    fn failed(&mut self, error: &FleetError, has_registered: bool) -> bool {
        self.failed = self.failed.saturating_add(1);
        let doublings = self.failed.saturating_sub(1).min(16);
        self.due = Instant::now() + PAUSE_MAX.min(PAUSE_MIN * 2_u32.pow(doublings));
        let is_final = match error {
            FleetError::Spawn(SpawnError::Ended { status, .. }) => !may_begin_again(status.code()),
            FleetError::JournalMissing { .. } => true,
            _ => false,
        };
        if is_final {
            self.lost = Some(Lost::by(error));
            return false;
        }
        let is_over = match has_registered {
            // It is waited for, not started.
            true => self.since.elapsed() >= RETURN_PATIENCE,
            false => self.failed >= BEGINNINGS_MAX,
        };
        if is_over {
            let times = self.failed;
            self.limit = (!has_registered).then_some(Limit::Beginnings);
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
        let has_registered = matches!(self.source, Source::Registered { .. });
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            let site = node.config.site;
            if node.is_up()
                && let Some(end) = node.process.ended()?
            {
                restarted.ended.push(site);
                let may = restart && node.config.data_dir.is_some() && may_begin_again(end.code());
                node.whereabouts = Whereabouts::Down;
                let awaited = Awaited::ended(end, may, node.restarts);
                let limit = awaited.limit;
                node.awaited = Some(awaited);
                self.count_hit(limit);
            }
            let Some(awaited) = &mut self.nodes[index].awaited else { continue };
            if awaited.is_back() {
                *awaited = Awaited::new();
            }
            if awaited.lost.is_none() && Instant::now() >= awaited.due {
                match self.begin(index) {
                    Ok(()) => {
                        self.nodes[index].restarts += 1;
                        restarted.begun.push(site);
                    }
                    // It is waited for, of which nothing need be said each time.
                    Err(_) if has_registered && !self.nodes[index].fails_first() => {}
                    Err(reason) => restarted.failed.push((site, reason)),
                }
            }
            restarted.lost.extend(self.nodes[index].lost().map(|lost| (site, lost)));
        }
        Ok(restarted)
    }

    /// How often each limit was hit so far.
    pub fn limits_hit(&self) -> impl Iterator<Item = (Limit, u64)> {
        Limit::ALL.into_iter().map(|limit| (limit, self.limits_hit.get(&limit).copied().unwrap_or(0)))
    }

    pub(super) fn count_hit(&mut self, limit: Option<Limit>) {
        if let Some(limit) = limit {
            *self.limits_hit.entry(limit).or_default() += 1;
        }
    }

    /// Whether a node has ended that is to restart.
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
            let awaited = node.awaited.get_or_insert_with(Awaited::new);
            awaited.failed(&error, has_registered);
            let limit = awaited.limit;
            self.count_hit(limit);
            return Err(error.to_string());
        }
        node.awaited = None;
        node.whereabouts = Whereabouts::Up;
        self.acquaint(index);
        Ok(())
    }

    /// Tells a node that has restarted and the others where they are. They know it from before, unless an address
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
    /// Whether it has failed to restart once so far.
    fn fails_first(&self) -> bool {
        self.awaited.as_ref().is_some_and(|awaited| awaited.failed == 1)
    }

    fn process_again(&mut self, source: &Source) -> Result<(), FleetError> {
        self.process = match source {
            Source::Spawned(order) => {
                let (mut process, _) =
                    adopt::start_again(order, &self.config, self.begins_anew, Former::Adopt)?;
                process.bind();
                process
            }
            Source::Registered { desk, token } => {
                let former = Some(&self.process);
                NodeProcess::registered(desk, &self.config, token, former, Duration::ZERO)?
            }
        };
        self.begins_anew = false;
        self.client = self.process.client();
        Ok(())
    }

    /// Why it does not restart, if it does not.
    fn lost(&self) -> Option<FleetError> {
        let name = crate::spawn::name_of(&self.config);
        let log = self.process.log_tail();
        Some(match self.awaited.as_ref()?.lost.clone()? {
            Lost::Ended(status) => FleetError::Ended { name, status, log },
            Lost::NotBegun(reason) => FleetError::NotBegun { name, reason },
            Lost::JournalMissing(path) => FleetError::JournalMissing { name, path },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

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
        assert_eq!(awaited.limit, None);
        assert!(!awaited.failed(&out_of_descriptors(), false), "there is a limit");
        assert_eq!(awaited.limit, Some(Limit::Beginnings));
        assert!(
            matches!(&awaited.lost, Some(Lost::NotBegun(reason)) if reason.contains("100 times in a row"))
        );
    }

    #[test]
    fn who_was_started_again_too_often_is_not_once_more() {
        let end = End::Status(ExitStatus::from_raw(9));
        let last = Awaited::ended(end, true, RESTARTS_MAX - 1);
        assert!(last.lost.is_none() && last.limit.is_none());
        let over = Awaited::ended(end, true, RESTARTS_MAX);
        assert_eq!(over.limit, Some(Limit::Restarts));
        assert!(
            matches!(&over.lost, Some(Lost::NotBegun(reason)) if reason.contains("again 1000 times before it ended with signal: 9"))
        );
        // That is no limit: it would not have begun the first time.
        let done = Awaited::ended(end, false, RESTARTS_MAX);
        assert!(matches!(done.lost, Some(Lost::Ended(_))) && done.limit.is_none());
    }

    #[test]
    fn a_journal_that_is_missing_may_be_there_the_next_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.sqlite");
        let missing = FleetError::JournalMissing { name: "site1".to_string(), path: path.clone() };
        let mut awaited = Awaited::never(&missing);
        assert!(!awaited.is_back());
        std::fs::write(&path, "").unwrap();
        assert!(awaited.is_back());
        awaited.lost = Some(Lost::NotBegun(missing.to_string()));
        assert!(!awaited.is_back(), "another reason holds");
    }

    #[test]
    fn the_documents_have_all_limits() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/OPERATIONS.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, rest) = text.split_once("<!-- limits of a run -->\n").expect("the mark before the table");
        let (table, _) = rest.split_once("<!-- /limits of a run -->").expect("the mark behind the table");
        let rows: Vec<Vec<&str>> =
            table.lines().skip(2).map(|row| row.split('|').map(str::trim).collect()).collect();
        assert_eq!(rows.len(), Limit::ALL.len());
        for (limit, row) in Limit::ALL.into_iter().zip(rows) {
            let name = format!("`{}`", limit.name());
            assert_eq!((row[1], row[2].replace(',', "")), (name.as_str(), limit.most().to_string()));
        }
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
