//! Processes of sites: faults strike them, they end, stand still, and restart with what is on disk.

use std::collections::VecDeque;

use protocol::journal::Kept;
use protocol::{Durable, Fact, Input, Interrupted, Output, Peer, PeerConfig};
use scheduler::event::{BeginCause, EndCause};
use scheduler::{EventKind, JobSpec, Span, Time};

use super::fault_queue::Coming;
use super::scenario::Mistake;
use super::schedule::Fault;
use super::site::Armed;
use super::watch::{Broken, Check};
use super::world::World;
use crate::instant::Driver as _;

impl World<'_> {
    pub(super) fn strike(&mut self, place: usize) -> Result<(), Broken> {
        match self.scenario.faults[place] {
            Fault::Crash { site, down, written_percent, torn, .. } => {
                let rank = self.scenario.grid.rank(site);
                match torn {
                    Some(torn) => self.sites[rank].armed = Some(Armed { torn, down, written_percent }),
                    None if self.sites[rank].peer.is_some() => {
                        self.crash(rank, down, written_percent)?;
                    }
                    // It is down: then it stays so.
                    None if down.is_none() && self.sites[rank].is_member() => {
                        self.say(rank, EventKind::Ended { how: EndCause::Death });
                        self.dies(rank);
                    }
                    None => {}
                }
                Ok(())
            }
            Fault::Pause { site, lasts, .. } => {
                let rank = self.scenario.grid.rank(site);
                let site = &mut self.sites[rank];
                if site.is_up() {
                    site.paused = true;
                    let process = site.process;
                    self.set_wake(rank);
                    self.say(rank, EventKind::Ended { how: EndCause::Pause });
                    self.expect(self.now().saturating_add(lasts), Coming::Resume { rank, process });
                }
                Ok(())
            }
            Fault::Leave { site, .. } => self.leave(self.scenario.grid.rank(site)),
            Fault::Join { site, .. } => self.join(self.scenario.grid.rank(site)),
            // These are looked up where they matter.
            Fault::Cut(_)
            | Fault::Noise(_)
            | Fault::Clock { .. }
            | Fault::SlowDisk { .. }
            | Fault::FullDisk { .. } => Ok(()),
            Fault::Step { site, by, .. } => {
                let rank = self.scenario.grid.rank(site);
                let site = &mut self.sites[rank];
                let runs_back = self.mistake == Some(Mistake::TimeRunsBack);
                if by < Span::ZERO && site.peer.is_some() && !runs_back {
                    // Within an incarnation time does not run backwards: the next one sees it.
                    site.set_back += by;
                    return Ok(());
                }
                site.clock.offset += by;
                self.set_wake(rank);
                Ok(())
            }
            Fault::LostDisk { site, down, .. } => self.lose_disk(self.scenario.grid.rank(site), down),
            Fault::Coordinator { down, torn, .. } => {
                self.strike_coordinator(down, torn);
                Ok(())
            }
            Fault::Liar { site, percent, .. } => {
                self.begins_to_lie(site, percent);
                Ok(())
            }
        }
    }

    /// The process of a site ends. Of what is being written, the oldest share is durable.
    pub(super) fn crash(
        &mut self,
        rank: usize,
        down: Option<Span>,
        written_percent: u8,
    ) -> Result<(), Broken> {
        let calls = std::mem::take(&mut self.sites[rank].writing);
        let written = calls.len() * usize::from(written_percent) / 100;
        let (mut kept, mut outputs): (Vec<Fact>, Vec<Output>) = (Vec::new(), Vec::new());
        for call in calls.into_iter().take(written) {
            kept.extend(call.facts);
            outputs.extend(call.outputs);
        }
        self.make_durable(rank, &kept)?;
        for output in &outputs {
            self.says(rank, output)?;
        }
        self.tally.crashes += 1;
        let missed = self.end_process(rank);
        let how = if down.is_some() { EndCause::Crash } else { EndCause::Death };
        self.say(rank, EventKind::Ended { how });
        for missed in missed {
            if let Input::Message { from, message } = missed {
                self.lose(from, rank, &message);
            }
        }
        if self.mistake != Some(Mistake::JobsOutliveProcess) {
            self.tally.interrupted += self.watch.crashed(self.scenario.grid.at_rank(rank));
        }
        match down {
            Some(down) => {
                let at = if self.healed { self.now() } else { self.now().saturating_add(down) };
                let process = self.sites[rank].process;
                self.expect(at, Coming::Restart { rank, process });
            }
            None => self.dies(rank),
        }
        self.check_disks()
    }

    /// A process is no more. What it had not been told yet.
    pub(super) fn end_process(&mut self, rank: usize) -> VecDeque<Input> {
        let site = &mut self.sites[rank];
        site.peer = None;
        site.process += 1;
        site.paused = false;
        site.armed = None;
        site.ahead = site.disk.clone();
        let missed = std::mem::take(&mut site.missed);
        let (now, site) = (self.now(), self.scenario.grid.at_rank(rank));
        self.event_list.executing.crash(now, site);
        self.together.crashed(rank);
        self.set_wake(rank);
        self.event_list.restless.remove(&rank);
        self.event_list.unsettled.remove(&rank);
        missed
    }

    /// A process begins, with what is on disk; its users come again with what is not.
    /// `how` is none for those that are there from the start.
    pub(super) fn begin(&mut self, rank: usize, how: Option<BeginCause>) -> Result<(), Broken> {
        if self.sites[rank].peer.is_some() || !self.sites[rank].is_member() {
            return Ok(());
        }
        if let Some(how) = how {
            self.say(rank, EventKind::Begun { how });
        }
        let site = &mut self.sites[rank];
        site.clock.offset += std::mem::take(&mut site.set_back);
        let scenario = self.scenario;
        let config = scenario.terms.at_rank(rank);
        let before = self.sites[rank].disk.clone();
        let is_lost = before.is_new() && self.sites[rank].losses > 0;
        self.tally.restarts += u64::from(!before.is_new() || is_lost);
        if self.agreement
            && !is_lost
            && let Err(what) = before.check(&config)
        {
            return self.broken(Check::Restart, format!("site {} refuses its journal: {what}", config.site));
        }
        let peer = match is_lost && self.mistake != Some(Mistake::LossForgotten) {
            true => self.reborn(config, self.sites[rank].losses, self.sites[rank].clock.shows(self.now())),
            false => self.restored(config, &before, self.sites[rank].clock.shows(self.now())),
        };
        self.sites[rank].peer = Some(peer);
        self.event_list.restless.insert(rank);
        self.carry_out(rank)?;
        self.check_restart(rank, &before)?;
        let users: Vec<JobSpec> = self.sites[rank].users.values().copied().collect();
        for job in users {
            self.hand_over(rank, job)?;
        }
        self.remind(rank)
    }

    fn reborn(&self, config: PeerConfig, losses: u32, now: Time) -> Peer {
        #[cfg_attr(not(feature = "mutant"), expect(unused_mut, reason = "only a mutant changes it"))]
        let mut peer = Peer::restore_lost(config, losses, now);
        #[cfg(feature = "mutant")]
        if let Some(mutant) = self.mutant {
            peer.set_mutant(mutant);
        }
        peer
    }

    #[cfg(not(feature = "mutant"))]
    fn restored(&self, config: PeerConfig, durable: &Durable, now: Time) -> Peer {
        Peer::restore(config, durable, now)
    }

    #[cfg(feature = "mutant")]
    fn restored(&self, config: PeerConfig, durable: &Durable, now: Time) -> Peer {
        Peer::restore_with(config, durable, now, self.mutant)
    }

    /// A peer that just began has what was durable.
    fn check_restart(&self, rank: usize, before: &Durable) -> Result<(), Broken> {
        let Some(peer) = self.sites[rank].peer.as_ref().filter(|_| self.agreement) else { return Ok(()) };
        let site = peer.site();
        if *peer.ledger() != before.ledger {
            return self.broken(Check::Restart, format!("site {site} restarts with other transfers"));
        }
        let kills = self.scenario.options.interrupted == Interrupted::Kill;
        let is_void =
            |kept: &Kept| before.voids.get(&kept.job.id).is_some_and(|&newest| kept.custody.epoch < newest);
        let ends = |kept: &&Kept| kept.started.is_some() && (kills || is_void(kept));
        let kept = before.jobs.values().filter(|kept| !ends(kept)).count();
        let here = peer.waiting() + peer.apart() + peer.running().count();
        if here != kept {
            return self.broken(Check::Restart, format!("site {site} restarts with {here} of {kept} jobs"));
        }
        Ok(())
    }

    pub(super) fn resume(&mut self, rank: usize) -> Result<(), Broken> {
        if !self.sites[rank].paused {
            return Ok(());
        }
        self.sites[rank].paused = false;
        self.say(rank, EventKind::Begun { how: BeginCause::Resume });
        self.release(rank)?;
        self.set_wake(rank);
        self.event_list.restless.insert(rank);
        for input in std::mem::take(&mut self.sites[rank].missed) {
            self.tell(rank, input)?;
        }
        Ok(())
    }

    pub(super) fn heal(&mut self) -> Result<(), Broken> {
        self.healed = true;
        self.attach()?;
        for rank in 0..self.sites.len() {
            self.sites[rank].armed = None;
            self.resume(rank)?;
            self.join(rank)?;
            self.begin(rank, Some(BeginCause::Restart))?;
        }
        Ok(())
    }
}
