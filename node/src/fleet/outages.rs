//! Nodes that are away because somebody wanted it: killed, stopped, or given up for good. Nobody waits for their
//! answers, and what they said last stands.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use protocol::Durable;
use rustix::process::{Pid, Signal, kill_process};
use scheduler::{Event, SiteId, Time, TimedJob};

use super::restarts::Awaited;
use super::{Fleet, FleetError, Member, Source};
use crate::clock::StartOrder;
use crate::control::api::{Adoption, LinksOrder};
use crate::journal::inspect::{self, Remains, remains};
use crate::spawn::NodeProcess;

/// Whether a node is expected to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whereabouts {
    /// It is, or something is wrong.
    #[default]
    Up,
    /// Its process stands still.
    Paused,
    /// Its process has ended, and will be begun again.
    Down,
    /// It never comes back.
    Gone,
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
        let read = remains(dir, node.next_event);
        let mut remains = read.map_err(|error| FleetError::Remains { name, error })?;
        node.next_event += remains.events.len() as u64;
        remains.events.drain(..).for_each(sink);
        remains.arrivals.extend(node.pending.drain(..));
        node.awaited = None;
        node.whereabouts = Whereabouts::Gone;
        Ok(remains)
    }

    /// The same of a node whose journal cannot be read: what was for it is lost, but for what the caller knows of.
    /// Passes on the events that were not fetched, where these can be read.
    pub fn write_off(&mut self, site: SiteId, sink: &mut impl FnMut(Event)) {
        let here = matches!(self.source, Source::Spawned(_));
        let node = &mut self.nodes[site.index()];
        if here && let Err(error) = node.read_events(sink) {
            tracing::warn!(%error, "the last events of a site are lost with its journal");
        }
        node.pending.clear();
        node.awaited = None;
        node.whereabouts = Whereabouts::Gone;
    }

    /// What all sites have written down whose journals are on this machine and can be read, as of now.
    pub fn journals(&self) -> BTreeMap<SiteId, Durable> {
        let dirs =
            self.nodes.iter().filter_map(|node| Some((node.config.site, node.config.data_dir.as_deref()?)));
        dirs.filter_map(|(site, dir)| Some((site, inspect::durable(dir).ok()?))).collect()
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
