//! The site loop where somebody else decides what starts here: what waits at the peer waits in the queue of a batch system.
//!
//! A job joins that queue once it is written down that it is this site's, and begins when the batch system says so. A message that brings
//! a job to another site waits here until the job has left that queue, which it does only while it waits there: whatever the peer grants,
//! no job is under way that could begin here. One that has begun meanwhile is left out of the message, and the peer is told that the
//! transfer has never left ([`Input::Kept`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use protocol::{Input, Message, Peer};
use scheduler::{JobId, JobSpec, SiteId};

use super::SiteLoop;

/// What a site knows of the queue that somebody else has.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// Messages with jobs that may still be in that queue, in the order in which they are to leave.
    leaving: Vec<Leaving>,
    /// Transfers that are out and may leave as often as they have to: their jobs have left the queue.
    free: BTreeSet<(SiteId, u64)>,
    /// Transfers of jobs that the last process of this node may have left in the queue.
    suspects: BTreeMap<JobId, (SiteId, u64)>,
    /// Jobs that have begun on processors of others whose ends were not heard of yet, in that order.
    early: VecDeque<JobId>,
}

#[derive(Debug)]
struct Leaving {
    to: SiteId,
    message: Message,
    /// The jobs that it waits for, with their transfers, and whether the queue was asked for them.
    waits: BTreeMap<JobId, (u64, bool)>,
}

impl Outside {
    /// Goes on with what an earlier process had granted: of a job that was granted more than once all transfers but the last have left.
    pub(super) fn resume(&mut self, peer: &Peer) {
        let mut last: BTreeMap<JobId, (u32, SiteId, u64)> = BTreeMap::new();
        for (to, transfer) in peer.ledger().transfers_out() {
            let one = (transfer.hops, to, transfer.number);
            let last = last.entry(transfer.job.id).or_insert(one);
            *last = one.max(*last);
        }
        for (to, transfer) in peer.ledger().transfers_out() {
            let job = transfer.job.id;
            let is_last = last.get(&job) == Some(&(transfer.hops, to, transfer.number));
            if is_last && !peer.has(job) {
                self.suspects.insert(job, (to, transfer.number));
            } else {
                self.free.insert((to, transfer.number));
            }
        }
    }

    /// Whether all these transfers are in messages that wait.
    fn has(&self, to: SiteId, waits: &BTreeMap<JobId, (u64, bool)>) -> bool {
        let waiting = self.leaving.iter().filter(|leaving| leaving.to == to);
        let numbers: BTreeSet<u64> = waiting
            .flat_map(|leaving| leaving.message.transfers().iter().map(|transfer| transfer.number))
            .collect();
        waits.values().all(|(number, _)| numbers.contains(number))
    }
}

impl SiteLoop {
    /// Sends a message once none of its jobs is in the queue any more.
    pub(super) fn send_once_free(&mut self, to: SiteId, message: Message) -> anyhow::Result<()> {
        let Some(outside) = &mut self.outside else { return self.send(to, &message) };
        let is_free = |number| outside.free.contains(&(to, number));
        let transfers = message.transfers().iter().filter(|transfer| !is_free(transfer.number));
        let waits: BTreeMap<_, _> =
            transfers.map(|transfer| (transfer.job.id, (transfer.number, false))).collect();
        if waits.is_empty() {
            return self.send(to, &message);
        }
        // A repetition of what waits says nothing more.
        if !outside.has(to, &waits) {
            outside.leaving.push(Leaving { to, message, waits });
        }
        Ok(())
    }

    /// Has the queue follow what waits at the peer: what joined it joins there, what is granted leaves, and so does what is not this
    /// site's any more.
    pub(super) fn follow_queue(&mut self) -> anyhow::Result<()> {
        let Some(outside) = &mut self.outside else { return Ok(()) };
        let mut to_ask: Vec<JobSpec> = Vec::new();
        for Leaving { message, waits, .. } in &mut outside.leaving {
            for transfer in message.transfers() {
                match waits.get_mut(&transfer.job.id) {
                    Some((number, asked)) if *number == transfer.number && !*asked => {
                        *asked = true;
                        to_ask.push(transfer.job);
                    }
                    _ => {}
                }
            }
        }
        let leaving = outside.leaving.iter().flat_map(|leaving| leaving.waits.keys());
        let leaving: BTreeSet<JobId> = leaving.chain(outside.suspects.keys()).copied().collect();
        let queued = self.executor.queued();
        let waiting = self.peer.queued();
        let joining: Vec<JobSpec> = waiting.iter().filter(|job| !queued.contains(&job.id)).copied().collect();
        if queued.len() + joining.len() > waiting.len() {
            let waiting: BTreeSet<JobId> = waiting.iter().map(|job| job.id).collect();
            let gone = queued.iter().filter(|job| !waiting.contains(job) && !leaving.contains(job));
            gone.for_each(|&job| self.executor.stop(job));
        }
        if joining.is_empty() && to_ask.is_empty() {
            return Ok(());
        }
        // What the journal forgets could be in two queues, or in none.
        self.commit()?;
        let factor = self.clock.factor();
        for job in joining {
            self.executor.queue(&job, factor)?;
        }
        for job in to_ask {
            tracing::info!(job = job.id.0, "a job is to leave");
            if self.executor.withdraw(&job, factor, false)? {
                self.has_left_queue(job.id)?;
            }
        }
        Ok(())
    }

    /// Has what the last process of this node had granted leave the queue, if it is there.
    pub(super) fn withdraw_suspects(&mut self) -> anyhow::Result<()> {
        let Some(outside) = &self.outside else { return Ok(()) };
        let out = self.peer.ledger().transfers_out();
        let is_suspect = |to, number, job| outside.suspects.get(&job) == Some(&(to, number));
        let suspects = out.filter(|(to, transfer)| is_suspect(*to, transfer.number, transfer.job.id));
        for job in suspects.map(|(_, transfer)| transfer.job).collect::<Vec<_>>() {
            self.executor.withdraw(&job, self.clock.factor(), true)?;
        }
        Ok(())
    }

    /// A job has left the queue, to leave the site: what waited for it only is sent.
    pub(super) fn has_left_queue(&mut self, job: JobId) -> anyhow::Result<()> {
        let Some(outside) = &mut self.outside else { return Ok(()) };
        for Leaving { to, waits, .. } in &mut outside.leaving {
            if let Some((number, _)) = waits.remove(&job) {
                outside.free.insert((*to, number));
            }
        }
        outside.free.extend(outside.suspects.remove(&job));
        self.send_what_is_free()
    }

    fn send_what_is_free(&mut self) -> anyhow::Result<()> {
        let Some(outside) = &mut self.outside else { return Ok(()) };
        let is_free = |leaving: &mut Leaving| leaving.waits.is_empty();
        let free: Vec<Leaving> = outside.leaving.extract_if(.., is_free).collect();
        let out = self.peer.ledger().transfers_out().map(|(to, transfer)| (to, transfer.number));
        let out: BTreeSet<(SiteId, u64)> = out.collect();
        outside.free.retain(|transfer| out.contains(transfer));
        free.into_iter().try_for_each(|Leaving { to, message, .. }| self.send(to, &message))
    }

    /// The batch system has started a job. If it was to leave, it stays.
    pub(super) fn has_begun(&mut self, job: JobId) -> anyhow::Result<()> {
        let mut kept = BTreeSet::new();
        if let Some(outside) = &mut self.outside {
            kept.extend(outside.suspects.remove(&job));
            for Leaving { to, waits, .. } in &mut outside.leaving {
                kept.extend(waits.remove(&job).map(|(number, _)| (*to, number)));
            }
            for &(to, number) in &kept {
                let of = |leaving: &Leaving| {
                    let is_it = |transfer: &protocol::message::Transfer| transfer.number == number;
                    leaving.to == to && leaving.message.transfers().iter().any(is_it)
                };
                for leaving in std::mem::take(&mut outside.leaving) {
                    if !of(&leaving) {
                        outside.leaving.push(leaving);
                    } else if let Some(message) = leaving.message.without(number) {
                        outside.leaving.push(Leaving { message, ..leaving });
                    }
                }
            }
        }
        for (to, number) in kept {
            tracing::info!(job = job.0, to = to.0, "a job has begun before it could leave, and stays");
            self.tell(Input::Kept { to, number })?;
        }
        let Some(waiting) = self.peer.queued().into_iter().find(|waiting| waiting.id == job) else {
            // It is not this site's any more, and is being cancelled.
            return self.send_what_is_free();
        };
        if self.peer.busy() + waiting.processors > self.peer.processors() {
            if let Some(outside) = &mut self.outside {
                outside.early.push_back(job);
            }
            return self.send_what_is_free();
        }
        self.tell_fact(Input::Begun(job))?;
        self.send_what_is_free()
    }

    /// A job has ended: what began on its processors does so here, too.
    pub(super) fn has_room_again(&mut self) -> anyhow::Result<()> {
        let early = self.outside.as_mut().map(|outside| std::mem::take(&mut outside.early));
        early.unwrap_or_default().into_iter().try_for_each(|job| self.has_begun(job))
    }
}
