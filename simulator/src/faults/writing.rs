//! What becomes of a call: its facts are written down, then the peer's other wishes are carried out, and a crash may come
//! between any two of these steps.
//!
//! | a call of a peer | what may happen |
//! | --- | --- |
//! | before its facts are durable | a crash undoes it: nobody has heard of it |
//! | after | a crash cuts off its other outputs anywhere |
//! | while earlier calls are being written | it waits for them, facts or not: what it wants done may depend on theirs |

use protocol::{Fact, Output};
use scheduler::Span;

use super::fault_queue::Coming;
use super::scenario::Mistake;
use super::schedule::Fault;
use super::site::{Armed, Call};
use super::watch::{Broken, Check};
use super::world::World;

impl World<'_> {
    /// Takes what a peer wants done, writes it down, and does it, or crashes on the way.
    pub(super) fn carry_out(&mut self, rank: usize) -> Result<(), Broken> {
        self.tally.calls += 1;
        let now = self.now();
        let takes = self.write_takes(rank);
        let room = self.room_at(rank);
        let site = &mut self.sites[rank];
        let peer = site.peer.as_mut().expect("it was just told something");
        let (mut facts, mut outputs) = (Vec::new(), Vec::new());
        while let Some(output) = peer.poll_output() {
            match output {
                Output::Write(fact) => facts.push(fact),
                output => outputs.push(output),
            }
        }
        peer.check_invariants();
        if peer.wants_settle() {
            self.event_list.unsettled.insert(rank);
        }
        for fact in &facts {
            site.ahead.apply(fact);
        }
        let agrees = match self.liar {
            None => peer.agrees_with(&site.ahead),
            Some(_) => peer.agrees_among_liars(&site.ahead),
        };
        if self.agreement
            && let Err(what) = agrees
        {
            let what = format!("site {}: {what}", self.scenario.grid.at_rank(rank));
            return self.broken(Check::Agreement, what);
        }
        self.set_wake(rank);
        if !facts.is_empty() && self.looks_at_all() {
            self.watch.holders(now, &self.scenario.grid, |rank| &self.sites[rank].ahead, false)?;
        }
        if let Some(room) = room.filter(|_| !facts.is_empty()) {
            if self.mistake != Some(Mistake::FullDiskIgnored) {
                return self.runs_full(rank, room);
            }
            for output in outputs {
                self.output(rank, output)?;
            }
            return Ok(());
        }
        let site = &mut self.sites[rank];
        if !facts.is_empty()
            && let Some(Armed { torn, down, written_percent }) = site.armed.take()
        {
            self.tally.torn += 1;
            if torn.written {
                self.flush(rank)?;
                self.make_durable(rank, &facts)?;
                let cut_off = outputs.split_off(torn.outputs.min(outputs.len()));
                for output in outputs {
                    self.output(rank, output)?;
                }
                for output in &cut_off {
                    self.says(rank, output)?;
                }
            }
            return self.crash(rank, down, written_percent);
        }
        if self.mistake == Some(Mistake::SendBeforeWrite) {
            let early = std::mem::take(&mut outputs);
            for output in early {
                self.output(rank, output)?;
            }
        }
        let site = &mut self.sites[rank];
        let overtakes = self.mistake == Some(Mistake::OvertakeWrites) && facts.is_empty();
        if overtakes || (takes == Span::ZERO && site.writing.is_empty()) {
            self.make_durable(rank, &facts)?;
            for output in outputs {
                self.output(rank, output)?;
            }
            return Ok(());
        }
        let last = site.writing.back().map_or(now, |call| call.ready);
        let ready = last.max(now.saturating_add(if facts.is_empty() { Span::ZERO } else { takes }));
        site.writing.push_back(Call { facts, outputs, ready });
        let process = site.process;
        self.expect(ready, Coming::Written { rank, process });
        Ok(())
    }

    fn write_takes(&self, rank: usize) -> Span {
        let here = self.scenario.grid.at_rank(rank);
        let slow = self.scenario.faults.iter().filter_map(|fault| match *fault {
            Fault::SlowDisk { site, at, until, takes }
                if site == here && at <= self.now() && self.now() < until =>
            {
                Some(takes)
            }
            _ => None,
        });
        slow.max().unwrap_or(Span::ZERO)
    }

    pub(super) fn make_durable(&mut self, rank: usize, facts: &[Fact]) -> Result<(), Broken> {
        let at = self.now();
        for fact in facts {
            let site = &mut self.sites[rank];
            self.watch.written(at, self.scenario.grid.at_rank(rank), fact, &site.disk)?;
            site.disk.apply(fact);
            match fact {
                Fact::Owns { job, .. } if site.users.contains_key(&job.id) => {
                    site.handed.insert(job.id);
                    // Nobody hears of that while there is no coordinator.
                    if !self.coordinator.is_away() {
                        site.users.remove(&job.id);
                    }
                }
                Fact::TookOver(void) => {
                    self.tally.taken_over += 1;
                    let is_told = site.adopting.get(&void.job).is_some_and(|told| told.1 == void.epoch);
                    if is_told && !self.coordinator.is_away() {
                        site.adopting.remove(&void.job);
                        self.adopted.insert(void.job, void.epoch);
                        self.tally.adopted += 1;
                    }
                }
                _ => {}
            }
        }
        if facts.is_empty() || !self.looks_at_all() { Ok(()) } else { self.check_disks() }
    }

    /// Whether all that sites have is compared after this call: always, but on large grids, where it takes long, after
    /// one in so many as there are sites.
    fn looks_at_all(&self) -> bool {
        let sites = self.sites.len() as u64;
        sites <= 8 || self.tally.calls.is_multiple_of(sites)
    }

    pub(super) fn check_disks(&self) -> Result<(), Broken> {
        self.watch.holders(self.now(), &self.scenario.grid, |rank| &self.sites[rank].disk, true)
    }

    /// Calls that are written by now are carried out.
    pub(super) fn release(&mut self, rank: usize) -> Result<(), Broken> {
        while self.sites[rank].is_up()
            && let Some(call) = self.sites[rank].writing.front()
            && call.ready <= self.now()
        {
            if let Some(room) = self.room_at(rank).filter(|_| !call.facts.is_empty())
                && self.mistake != Some(Mistake::FullDiskIgnored)
            {
                return self.runs_full(rank, room);
            }
            self.release_one(rank)?;
        }
        Ok(())
    }

    fn release_one(&mut self, rank: usize) -> Result<(), Broken> {
        let call = self.sites[rank].writing.pop_front().expect("callers look first");
        self.make_durable(rank, &call.facts)?;
        for output in call.outputs {
            self.output(rank, output)?;
        }
        Ok(())
    }

    fn flush(&mut self, rank: usize) -> Result<(), Broken> {
        while !self.sites[rank].writing.is_empty() {
            self.release_one(rank)?;
        }
        Ok(())
    }
}
