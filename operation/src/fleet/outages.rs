//! Nodes that are away because somebody wanted it: killed, stopped, or given up for good. Nobody waits for their
//! answers, and what they said last stands.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use node::clock::StartOrder;
use node::config::{NewLife, NodeConfig};
use node::control::api::{Adoption, LinksOrder};
use node::journal::JournalError;
use node::journal::inspect::{self, Remains, remains};
use node::private;
use protocol::Durable;
use rustix::process::{Pid, Signal, kill_process};
use scheduler::{Event, SiteId, Time, TimedJob};

use super::restarts::{Awaited, Limit};
use super::{Fleet, FleetError, Member, Source};
use crate::spawn::NodeProcess;

/// Whether a node is expected to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whereabouts {
    /// It is, or something is wrong.
    #[default]
    Up,
    /// Its process stands still.
    Paused,
    /// Its process has ended, and will be restarted.
    Down,
    /// It never comes back.
    Gone,
}

/// How many journals the site of a node has lost.
fn lost_by(config: &NodeConfig) -> u32 {
    config.new_incarnation.map_or(0, |new| new.journals_lost)
}

/// Where a lost journal of a node is kept, by its number among those lost: in the data directory, which may be where a
/// file system is mounted.
fn aside(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("lost-{number}"))
}

/// The events of a site from before it began with the journal that it has, where they can be read.
pub(super) fn events_of_lost_journals(config: &NodeConfig) -> Vec<Event> {
    (1..=lost_by(config)).flat_map(|number| lost_events(config, number, 0)).collect()
}

/// The events of a journal that was lost, from a number on.
fn lost_events(config: &NodeConfig, number: u32, from: u64) -> Vec<Event> {
    let dir = aside(config.data_dir.as_deref().unwrap_or(Path::new("")), number);
    events_of_journal(config, &dir, number - 1, from)
}

/// The events of the journal in a directory, from a number on, as far as they can be read; none if it is not that of the
/// site after so many lost ones, such as one that was put back.
fn events_of_journal(config: &NodeConfig, dir: &Path, lost_before: u32, from: u64) -> Vec<Event> {
    match inspect::whose(dir) {
        Some(whose) if whose == (config.run.clone(), config.site, lost_before) => {
            inspect::readable_events(dir, from)
        }
        _ => Vec::new(),
    }
}

impl Fleet {
    /// Whether the node of a site is expected to answer.
    pub fn whereabouts(&self, site: SiteId) -> Whereabouts {
        self.nodes[site.index()].whereabouts
    }

    /// Whether a node that ends could go on with its journal.
    pub fn keeps_journals(&self) -> bool {
        self.nodes.iter().all(|node| node.config.data_dir.is_some())
    }

    /// The same, and whether their journals are on this machine.
    pub fn keeps_journals_here(&self) -> bool {
        self.keeps_journals() && matches!(self.source, Source::Spawned(_))
    }

    /// Whether every node is expected to answer, or never will.
    pub fn is_complete(&self) -> bool {
        self.nodes.iter().all(|node| matches!(node.whereabouts, Whereabouts::Up | Whereabouts::Gone))
    }

    /// Kills the node of a site, as a crash would, and waits for its end. When it was killed. It is missed until
    /// [`Fleet::begin_again`].
    ///
    /// # Errors
    /// If the system does not say that it has ended.
    pub fn kill(&mut self, site: SiteId) -> Result<SystemTime, FleetError> {
        let node = &mut self.nodes[site.index()];
        node.awaited = None;
        match &self.source {
            Source::Spawned(_) => signal(&mut node.process, Signal::KILL)?,
            Source::Registered { desk, .. } => {
                desk.hold(site);
                node.client.crash()?;
            }
        }
        let at = SystemTime::now();
        while node.process.ended()?.is_none() {
            std::thread::sleep(super::END_POLL);
        }
        node.whereabouts = Whereabouts::Down;
        Ok(at)
    }

    /// Kills the node of a site that joins later, with [`Fleet::begin_again`].
    ///
    /// # Errors
    /// As [`Fleet::kill`].
    pub fn leave_out(&mut self, site: SiteId) -> Result<(), FleetError> {
        self.kill(site)?;
        self.leave_unlisted(site);
        Ok(())
    }

    /// Leaves the node of a site that has left, or is still to join, out of [`Fleet::ready_lines`].
    pub fn leave_unlisted(&mut self, site: SiteId) {
        self.nodes[site.index()].takes_part = false;
    }

    /// Makes the process of a node stand still.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn pause(&mut self, site: SiteId) -> Result<(), FleetError> {
        let node = &mut self.nodes[site.index()];
        signal(&mut node.process, Signal::STOP)?;
        node.awaited = None;
        node.whereabouts = Whereabouts::Paused;
        Ok(())
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn resume(&mut self, site: SiteId) -> Result<(), FleetError> {
        let node = &mut self.nodes[site.index()];
        signal(&mut node.process, Signal::CONT)?;
        node.whereabouts = Whereabouts::Up;
        Ok(())
    }

    /// Begins the node of a site that was killed, with its journal, and gives it the order to start if it never had one.
    /// Whether it is up; else [`Fleet::restart_ended`] tries again, and whoever looks at the nodes gives it the order.
    /// Call it on the thread that started the fleet.
    pub fn begin_again(&mut self, site: SiteId, start: &StartOrder) -> bool {
        let index = site.index();
        if let Source::Registered { desk, .. } = &self.source {
            desk.admit(site);
        }
        self.nodes[index].takes_part = true;
        self.nodes[index].awaited = Some(Awaited::new());
        let begun = self.begin(index).is_ok();
        if begun {
            // One that has ended since, or refuses, is told at the next look.
            let _ = self.nodes[index].start_by(start);
        }
        begun
    }

    /// Expects nothing of a node that has ended any more. Passes on the events that were not fetched, and says what is
    /// left: its journal, and jobs that were for it and that it never submitted.
    ///
    /// # Errors
    /// If its journal cannot be read, or it has none.
    pub fn give_up(&mut self, site: SiteId, sink: &mut impl FnMut(Event)) -> Result<Remains, FleetError> {
        let node = &mut self.nodes[site.index()];
        let name = node.process.ready_line().name.clone();
        let dir = node.config.data_dir.as_ref().filter(|_| matches!(self.source, Source::Spawned(_)));
        let Some(dir) = dir else {
            return Err(FleetError::BadEnd { name, how: "it kept no journal here".to_string() });
        };
        node.unfetched.drain(..).for_each(&mut *sink);
        let read = remains(dir, node.next_event);
        let mut remains = read.map_err(|error| FleetError::Remains { name, error })?;
        node.next_event += remains.events.len() as u64;
        remains.events.drain(..).for_each(sink);
        // What it was about to be told it may have been told before, by another coordinator or with an answer that was lost.
        let never_told = node.pending.drain(..).filter(|job| !remains.handed_over.contains(&job.spec.id));
        remains.arrivals.extend(never_told);
        node.awaited = None;
        node.whereabouts = Whereabouts::Gone;
        Ok(remains)
    }

    /// The same of a node whose journal cannot be read: what was for it is lost, but for what the caller knows of.
    /// Passes on the events that were not fetched, where these can be read.
    pub fn write_off(&mut self, site: SiteId, sink: &mut impl FnMut(Event)) {
        let here = matches!(self.source, Source::Spawned(_));
        let node = &mut self.nodes[site.index()];
        node.unfetched.drain(..).for_each(&mut *sink);
        if let Some(dir) = node.config.data_dir.as_ref().filter(|_| here) {
            let events = events_of_journal(&node.config, dir, lost_by(&node.config), node.next_event);
            node.next_event += events.len() as u64;
            events.into_iter().for_each(sink);
        }
        node.pending.clear();
        node.awaited = None;
        node.whereabouts = Whereabouts::Gone;
    }

    /// Why the journal of a node cannot be read, here and for good; none if it can.
    pub fn lost_journal(&self, site: SiteId) -> Option<JournalError> {
        let node = &self.nodes[site.index()];
        let dir = node.config.data_dir.as_ref().filter(|_| matches!(self.source, Source::Spawned(_)))?;
        remains(dir, node.next_event).err().filter(JournalError::is_for_good)
    }

    /// Whether a site whose journal cannot be read may restart without it: its node is started here, and it has not lost
    /// so many that another could not be told apart, which is counted.
    pub fn may_begin_anew(&mut self, site: SiteId) -> bool {
        if !matches!(self.source, Source::Spawned(_)) {
            return false;
        }
        let may = lost_by(&self.nodes[site.index()].config) < Limit::Journals.most();
        self.count_hit((!may).then_some(Limit::Journals));
        may
    }

    /// Moves aside what there is of the journal of a node that has ended and cannot go on with it.
    ///
    /// # Errors
    /// If that fails. What was moved is not moved again.
    pub fn set_journal_aside(&mut self, site: SiteId) -> io::Result<()> {
        let config = &self.nodes[site.index()].config;
        let dir = config.data_dir.clone().unwrap_or_default();
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let Some(_lock) = inspect::lock(&dir)? else {
            return Err(io::Error::other(format!("{} is in use by another node", dir.display())));
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                files.push(entry.path());
            }
        }
        // The journal first: without it whatever is left is no journal. What says how long it was comes last.
        files.sort_by_key(|file| (*file != inspect::file(&dir), inspect::is_lock(file)));
        let aside = aside(&dir, lost_by(config) + 1);
        private::make_folder(&aside)?;
        for file in files {
            let name = file.file_name().unwrap_or_default();
            fs::rename(&file, aside.join(name))?;
        }
        Ok(())
    }

    /// Has a site whose journal was set aside restart without it, with the trace clock that the others have: at the next
    /// [`Fleet::restart_ended`]. What was for the site is lost, but for what the caller knows of. Passes on the events that
    /// were not fetched, where these can be read.
    pub fn begin_anew(&mut self, site: SiteId, clock: &StartOrder, sink: &mut impl FnMut(Event)) {
        let node = &mut self.nodes[site.index()];
        node.unfetched.drain(..).for_each(&mut *sink);
        let journals_lost = lost_by(&node.config) + 1;
        lost_events(&node.config, journals_lost, node.next_event).into_iter().for_each(sink);
        node.config.new_incarnation = Some(NewLife { journals_lost, clock: *clock });
        node.next_event = 0;
        node.pending.clear();
        node.whereabouts = Whereabouts::Down;
        node.begins_anew = true;
        node.awaited = Some(Awaited::new());
    }

    /// Passes on the events that were not fetched of nodes that do not answer now and may be back, from their journals, as
    /// far as these can be read.
    ///
    /// # Errors
    /// If one cannot be read, and may be the next time.
    pub fn read_events_of_absent(&mut self, sink: &mut impl FnMut(Event)) -> Result<(), JournalError> {
        for node in &mut self.nodes {
            let absent = matches!(node.whereabouts, Whereabouts::Down | Whereabouts::Paused);
            if !absent || node.begins_anew || node.config.data_dir.is_none() {
                continue;
            }
            node.unfetched.drain(..).for_each(&mut *sink);
            match node.read_events(sink) {
                Err(error) if !error.is_for_good() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// What sites have written down whose journals are on this machine, as of now, but for those that are damaged or
    /// missing.
    ///
    /// # Errors
    /// If one cannot be read for another reason, and may be the next time.
    pub fn journals(&self) -> Result<BTreeMap<SiteId, Durable>, JournalError> {
        let mut journals = BTreeMap::new();
        for node in &self.nodes {
            let Some(dir) = node.config.data_dir.as_deref() else { continue };
            match inspect::durable(dir) {
                Ok(durable) => drop(journals.insert(node.config.site, durable)),
                Err(error) if error.is_for_good() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(journals)
    }

    /// Has these sites submit these jobs, each when it is time.
    pub fn hand_over(&mut self, jobs: BTreeMap<SiteId, Vec<TimedJob>>) {
        for (site, mut jobs) in jobs {
            jobs.sort_by_key(|job| job.spec.key());
            self.nodes[site.index()].pending.extend(jobs);
        }
    }

    /// Has a site give its jobs away.
    ///
    /// # Errors
    /// If it refuses, or has ended.
    pub fn leave(&mut self, site: SiteId) -> Result<(), FleetError> {
        let result = self.nodes[site.index()].client.leave();
        self.explain(result)
    }

    /// Whether a site said at the last look that it has left, and is to be ended. Whoever began a node that has
    /// registered would begin it again: it stays.
    pub fn has_left(&self, site: SiteId) -> bool {
        let node = &self.nodes[site.index()];
        let here = matches!(self.source, Source::Spawned(_));
        here && node.is_up() && node.last.as_ref().is_some_and(|last| last.has_left)
    }

    /// Ends the node of a site that has left, and then as [`Fleet::give_up`]; `None` if the site has not left.
    ///
    /// # Errors
    /// If it does not answer, has ended, or its journal cannot be read.
    pub fn dismiss(
        &mut self,
        site: SiteId,
        patience: Duration,
        sink: &mut impl FnMut(Event),
    ) -> Result<Option<Remains>, FleetError> {
        let stopped = self.nodes[site.index()].client.stop_if_left();
        if !self.explain(stopped)? {
            return Ok(None);
        }
        let node = &mut self.nodes[site.index()];
        node.takes_part = false;
        let deadline = Instant::now() + patience;
        while node.process.ended()?.is_none() && Instant::now() < deadline {
            std::thread::sleep(super::END_POLL);
        }
        if node.process.ended()?.is_none() {
            self.kill(site)?;
        }
        self.give_up(site, sink).map(Some)
    }

    /// Stops the trace clock of a node: the time at which it stands.
    ///
    /// # Errors
    /// If it refuses, or has ended.
    pub fn halt_clock(&mut self, site: SiteId) -> Result<Time, FleetError> {
        let halted = self.nodes[site.index()].client.pause();
        Ok(Time::from_micros(self.explain(halted)?.trace_origin_us))
    }

    /// Lets the trace clock of a node go on that was stopped.
    ///
    /// # Errors
    /// If it refuses, or has ended.
    pub fn continue_clock(&mut self, site: SiteId, order: &StartOrder) -> Result<(), FleetError> {
        let started = self.nodes[site.index()].client.start(order);
        self.explain(started)
    }

    /// Tells a site which of its links are cut from now on.
    ///
    /// # Errors
    /// If it refuses, or has ended.
    pub fn set_links(&mut self, site: SiteId, order: &LinksOrder) -> Result<(), FleetError> {
        let result = self.nodes[site.index()].client.links(order);
        self.explain(result)
    }

    /// Has a site take over jobs of another that never comes back.
    ///
    /// # Errors
    /// If it refuses, or has ended.
    pub fn adopt_jobs(&mut self, site: SiteId, adoptions: &[Adoption]) -> Result<(), FleetError> {
        let result = self.nodes[site.index()].client.adopt(adoptions);
        self.explain(result)
    }
}

impl Member {
    pub(super) fn is_up(&self) -> bool {
        self.whereabouts == Whereabouts::Up
    }
}

pub(super) fn signal(process: &mut NodeProcess, signal: Signal) -> Result<(), FleetError> {
    // The number of one that has ended may be that of another by now.
    if process.ended()?.is_some() {
        return Ok(());
    }
    let id = process.id().ok_or_else(|| FleetError::BadEnd {
        name: process.ready_line().name.clone(),
        how: "a process of another machine gets no signals from here".to_string(),
    })?;
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    match pid.map(|pid| kill_process(pid, signal)) {
        // It has ended by itself.
        None | Some(Err(rustix::io::Errno::SRCH)) => Ok(()),
        Some(result) => Ok(result.map_err(std::io::Error::from)?),
    }
}
