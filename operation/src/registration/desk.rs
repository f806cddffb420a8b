//! The coordinator's list of processes that have asked to be sites.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use node::config::NodeConfig;
use node::control::api::ReadyLine;
use scheduler::SiteId;

use node::registration::{Answer, Asking, Ready};

/// A process that has not asked for so long is not there any more; it asks several times a second.
const FRESH: Duration = Duration::from_secs(3);
/// How often conditions are looked at that no request changes.
const POLL: Duration = Duration::from_millis(100);
/// Most instances on the list. More are turned away.
const INSTANCES_MAX: usize = 10_000;

/// Processes that have asked, and what they are told.
#[derive(Debug, Default)]
pub struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<String, Candidate>,
    /// Sites whose processes are kept waiting.
    held: BTreeSet<SiteId>,
    /// What the processes are to be, once that is decided.
    appointed: bool,
}

#[derive(Debug)]
struct Candidate {
    asking: Asking,
    last: Instant,
    config: Option<NodeConfig>,
    /// Of the process that asked last.
    ready: Option<ReadyLine>,
}

/// A process that waits for its site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applicant {
    /// As in [`Asking::instance`].
    pub instance: String,
    /// The name that it wants.
    pub name: Option<String>,
    /// The size that it must have.
    pub processors: Option<u32>,
    /// Whether it can keep a journal.
    pub journal: bool,
}

/// A process that is a site and is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// As in [`Asking::process`].
    pub process: u64,
    /// Where it is.
    pub ready: ReadyLine,
}

/// Why a process is turned away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("this coordinator is of version {here}, the node of {there}; use one version everywhere")]
    Version { here: &'static str, there: String },
    #[error("an instance needs a name, of at most 200 bytes")]
    Instance,
    #[error("{INSTANCES_MAX} instances have asked already")]
    Full,
    #[error("another process is {0} already; it has asked since")]
    Superseded(String),
    #[error("{0} was not told to be a site")]
    Unknown(String),
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is ever half changed when a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn asked(&self, asking: Asking) -> Result<Answer, Refusal> {
        let here = env!("CARGO_PKG_VERSION");
        if asking.version != here {
            return Err(Refusal::Version { here, there: asking.version });
        }
        if asking.instance.is_empty() || asking.instance.len() > 200 {
            return Err(Refusal::Instance);
        }
        let mut state = self.state();
        if state.known.len() >= INSTANCES_MAX && !state.known.contains_key(&asking.instance) {
            return Err(Refusal::Full);
        }
        let new = || Candidate { asking: asking.clone(), last: Instant::now(), config: None, ready: None };
        let known = state.known.entry(asking.instance.clone()).or_insert_with(new);
        if known.asking.process != asking.process {
            known.ready = None;
        }
        known.asking = asking;
        known.last = Instant::now();
        let config = known.config.clone();
        let wait = |reason: &str| Answer::Wait { reason: reason.to_string() };
        let answer = match config {
            Some(config) if state.held.contains(&config.site) => wait("this site is away by order"),
            Some(config) => Answer::Be(Box::new(config)),
            None if state.appointed => wait("the run has begun without this site"),
            None => wait("not all sites are here yet"),
        };
        self.changed.notify_all();
        Ok(answer)
    }

    pub(super) fn ready(&self, ready: Ready) -> Result<(), Refusal> {
        let mut state = self.state();
        let Some(known) = state.known.get_mut(&ready.instance).filter(|known| known.config.is_some()) else {
            return Err(Refusal::Unknown(ready.instance));
        };
        if known.asking.process != ready.process {
            return Err(Refusal::Superseded(ready.instance));
        }
        known.ready = Some(ready.ready);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until at least so many processes have asked and then, for `settle`, no others; by the names of the
    /// instances, numbers in them as numbers. Fewer if that takes longer than `patience` or `stop` is true.
    pub fn gather(
        &self,
        least: usize,
        settle: Duration,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Vec<Applicant> {
        let deadline = Instant::now() + patience;
        let (mut before, mut since) = (0, Instant::now());
        let mut state = self.state();
        loop {
            let here: Vec<&Candidate> = state.known.values().filter(|known| known.is_here()).collect();
            if here.len() != before {
                (before, since) = (here.len(), Instant::now());
            }
            let done = here.len() >= least && since.elapsed() >= settle;
            if done || stop() || Instant::now() >= deadline {
                let mut applicants: Vec<Applicant> = here.into_iter().map(Candidate::applicant).collect();
                applicants.sort_by_cached_key(|applicant| natural(&applicant.instance));
                return applicants;
            }
            state = self.wait(state);
        }
    }

    /// How many processes ask at present.
    pub fn waiting(&self) -> usize {
        self.state().known.values().filter(|known| known.is_here()).count()
    }

    /// Tells each of these instances what it is, and all others that they are not wanted.
    pub fn appoint(&self, configs: impl IntoIterator<Item = (String, NodeConfig)>) {
        let mut state = self.state();
        state.appointed = true;
        for (instance, config) in configs {
            if let Some(known) = state.known.get_mut(&instance) {
                known.config = Some(config);
                known.ready = None;
            }
        }
    }

    /// Keeps the process of a site waiting when it restarts.
    pub fn hold(&self, site: SiteId) {
        self.state().held.insert(site);
    }

    /// Lets it begin.
    pub fn admit(&self, site: SiteId) {
        self.state().held.remove(&site);
    }

    /// The number of the process that last asked to be a site.
    pub fn process(&self, site: SiteId) -> Option<u64> {
        let state = self.state();
        state.known.values().find(|known| known.site() == Some(site)).map(|known| known.asking.process)
    }

    /// Waits until a process that is this site is up and `is_right`. `None` if that takes longer than `patience`.
    pub fn registered(
        &self,
        site: SiteId,
        patience: Duration,
        is_right: impl Fn(&Registered) -> bool,
    ) -> Option<Registered> {
        let deadline = Instant::now() + patience;
        loop {
            // Not while nobody can ask: finding out what is right may take a moment.
            if let Some(up) = self.up(site).filter(|up| is_right(up)) {
                return Some(up);
            }
            if Instant::now() >= deadline {
                return None;
            }
            drop(self.wait(self.state()));
        }
    }

    /// What is known of the process of a site that is not up, in words.
    pub fn seen(&self, site: SiteId) -> String {
        let state = self.state();
        let Some(known) = state.known.values().find(|known| known.site() == Some(site)) else {
            return "nobody was told to be it".to_string();
        };
        let instance = &known.asking.instance;
        match (known.is_here(), &known.ready) {
            (_, Some(ready)) => format!("{instance} was up at {}, and does not answer there", ready.http),
            (true, None) => format!("{instance} asked what to be, and has not said that it is up"),
            (false, None) => {
                format!("{instance} has not asked for {} s what to be", known.last.elapsed().as_secs())
            }
        }
    }

    /// Processes that are a site and are up, in the order of the grid.
    pub fn up_now(&self) -> Vec<ReadyLine> {
        let mut up: Vec<ReadyLine> =
            self.state().known.values().filter_map(|known| known.ready.clone()).collect();
        up.sort_by_key(|ready| ready.site);
        up
    }

    fn up(&self, site: SiteId) -> Option<Registered> {
        let state = self.state();
        let known = state.known.values().find(|known| known.site() == Some(site))?;
        Some(Registered { process: known.asking.process, ready: known.ready.clone()? })
    }

    /// Until something changes, or it is time to look anyway.
    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Candidate {
    fn is_here(&self) -> bool {
        self.last.elapsed() < FRESH
    }

    fn site(&self) -> Option<SiteId> {
        self.config.as_ref().map(|config| config.site)
    }

    fn applicant(&self) -> Applicant {
        let Asking { instance, name, processors, journal, .. } = self.asking.clone();
        Applicant { instance, name, processors, journal }
    }
}

/// `site-10` comes after `site-9`.
fn natural(text: &str) -> Vec<(u64, String)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word_end);
        let number_end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(number_end);
        parts.push((0, word.to_string()));
        // Longer than any number of sites: compared as one.
        parts.push((number.parse().unwrap_or(u64::MAX), number.to_string()));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use node::config::SiteEntry;

    use super::*;

    fn asking(instance: &str, process: u64) -> Asking {
        Asking {
            instance: instance.to_string(),
            process,
            version: env!("CARGO_PKG_VERSION").to_string(),
            name: None,
            processors: None,
            journal: false,
        }
    }

    fn config(site: u32) -> NodeConfig {
        let grid = (1..=3).map(|number| SiteEntry::new(format!("site{number}"), 8));
        NodeConfig::new(SiteId(site), grid.collect())
    }

    fn ready(instance: &str, process: u64, site: u32) -> Ready {
        let ready = ReadyLine {
            site: SiteId(site),
            name: format!("site{site}"),
            peer_id: String::new(),
            listen: Vec::new(),
            http: format!("127.0.0.1:{process}"),
            metrics: None,
        };
        Ready { instance: instance.to_string(), process, ready }
    }

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn processes_wait_until_they_are_told_and_are_told_the_same_again() {
        let desk = Desk::default();
        for (instance, process) in [("c-10", 1), ("c-9", 2)] {
            assert!(matches!(desk.asked(asking(instance, process)), Ok(Answer::Wait { .. })));
        }
        let names: Vec<String> =
            desk.gather(2, NOW, NOW, &|| false).into_iter().map(|applicant| applicant.instance).collect();
        assert_eq!(names, ["c-9", "c-10"]);

        desk.appoint([("c-9".to_string(), config(1)), ("c-10".to_string(), config(2))]);
        assert_eq!(desk.asked(asking("c-10", 1)), Ok(Answer::Be(Box::new(config(2)))));
        assert!(
            matches!(desk.asked(asking("late", 3)), Ok(Answer::Wait { reason }) if reason.contains("without"))
        );

        assert_eq!(desk.registered(SiteId(2), NOW, |_| true), None);
        desk.ready(ready("c-10", 1, 2)).unwrap();
        let up = desk.registered(SiteId(2), NOW, |_| true).unwrap();
        assert_eq!((up.process, up.ready.http.as_str()), (1, "127.0.0.1:1"));

        // It restarted.
        assert_eq!(desk.asked(asking("c-10", 7)), Ok(Answer::Be(Box::new(config(2)))));
        assert_eq!(desk.registered(SiteId(2), NOW, |_| true), None, "the new process is not up");
        assert!(desk.seen(SiteId(2)).ends_with("asked what to be, and has not said that it is up"));
        assert_eq!(desk.seen(SiteId(9)), "nobody was told to be it");
        assert_eq!(desk.process(SiteId(2)), Some(7));
        assert_eq!(desk.ready(ready("c-10", 1, 2)), Err(Refusal::Superseded("c-10".to_string())));
        desk.ready(ready("c-10", 7, 2)).unwrap();
        assert_eq!(desk.registered(SiteId(2), NOW, |up| up.process != 1).unwrap().process, 7);
    }

    #[test]
    fn a_site_can_be_kept_away() {
        let desk = Desk::default();
        desk.asked(asking("a", 1)).unwrap();
        desk.appoint([("a".to_string(), config(1))]);
        desk.hold(SiteId(1));
        assert!(matches!(desk.asked(asking("a", 2)), Ok(Answer::Wait { .. })));
        desk.admit(SiteId(1));
        assert!(matches!(desk.asked(asking("a", 2)), Ok(Answer::Be(_))));
    }

    #[test]
    fn who_makes_no_sense_is_turned_away() {
        let desk = Desk::default();
        let other = Asking { version: "0.0.0".to_string(), ..asking("a", 1) };
        assert!(matches!(desk.asked(other), Err(Refusal::Version { .. })));
        assert_eq!(desk.asked(asking("", 1)), Err(Refusal::Instance));
        assert_eq!(desk.asked(asking(&"x".repeat(201), 1)), Err(Refusal::Instance));
        assert_eq!(desk.ready(ready("a", 1, 1)), Err(Refusal::Unknown("a".to_string())));
        desk.asked(asking("a", 1)).unwrap();
        assert_eq!(
            desk.ready(ready("a", 1, 1)),
            Err(Refusal::Unknown("a".to_string())),
            "it was told nothing"
        );
    }

    #[test]
    fn too_few_are_what_there_is_when_patience_ends() {
        let desk = Desk::default();
        desk.asked(asking("a", 1)).unwrap();
        assert_eq!(desk.gather(2, NOW, NOW, &|| false).len(), 1);
        assert_eq!(desk.gather(2, NOW, Duration::MAX / 4, &|| true).len(), 1, "stopped");
    }
}
