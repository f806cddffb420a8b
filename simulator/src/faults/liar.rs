//! A site that lies: what it wants to say is changed, withheld or said again on the way to others.
//!
//! Its own peer is an ordinary one, so lies are near to what could be true, which is where they hurt. What is promised
//! then is in `docs/SWARM.md`: other sites go on, within their processors and true to their journals, and jobs that the
//! liar was never given and has never named are as safe as ever.

use protocol::gang::Attempt;
use protocol::journal::{INCARNATIONS_PER_JOURNAL, JOURNALS_MAX};
use protocol::message::{
    BalanceMessage, BrokerMessage, Change, HandOverMessage, MembershipMessage, Message, OpaqueMessage,
    PoolMessage, QueueState, Rest, StealMessage, Transfer, Void,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::{Grid, JobId, Room, SiteId, Span};

use super::world::World;

/// What it said and may say again, at most.
const REMEMBERED_MAX: usize = 64;

/// A site that lies.
#[derive(Clone, Debug)]
pub(super) struct Liar {
    site: SiteId,
    percent: u8,
    rng: ChaCha8Rng,
    /// To whom it said what.
    said: Vec<(SiteId, Message)>,
}

impl World<'_> {
    pub(super) fn begins_to_lie(&mut self, site: SiteId, percent: u8) {
        let rng = ChaCha8Rng::seed_from_u64(self.scenario.seed ^ 0x11a2);
        self.liar = Some(Liar { site, percent, rng, said: Vec::new() });
        self.watch.lies(site);
        // What it has by now, or is on its way there.
        for rank in 0..self.sites.len() {
            let is_liar = self.scenario.grid.at_rank(rank) == site;
            let disk = &self.sites[rank].disk;
            let jobs = disk.jobs.keys().copied().filter(|_| is_liar);
            let guarded_jobs =
                disk.guarded_jobs.iter().filter(|(_, guarded)| is_liar || guarded.holder == site);
            let out = disk.ledger.jobs_out().filter(|(to, _)| is_liar || *to == site);
            // It may have been handed what it has not taken in yet.
            let users = self.sites[rank].users.keys().copied().filter(|_| is_liar);
            let jobs = jobs.chain(users).chain(guarded_jobs.map(|(job, _)| *job));
            let jobs: Vec<JobId> = jobs.chain(out.map(|(_, job)| job)).collect();
            jobs.into_iter().for_each(|job| self.watch.taint(job));
            // Whoever answers for a job of the liar is a reason to believe it about that job.
            let disk = &self.sites[rank].disk;
            let guarded = disk.jobs.values().filter(|kept| kept.custody.guardian == Some(site));
            let guarded: Vec<JobId> = guarded.map(|kept| kept.job.id).collect();
            guarded.into_iter().for_each(|job| self.watch.taint(job));
        }
    }

    pub(super) fn is_liar(&self, rank: usize) -> bool {
        self.liar.as_ref().is_some_and(|liar| liar.is_at(&self.scenario.grid, rank))
    }

    /// What a liar is handed nothing is promised of.
    pub(super) fn taint_if_liar(&mut self, rank: usize, job: JobId) {
        if self.is_liar(rank) {
            self.watch.taint(job);
        }
    }

    /// What a site really says; none if it says nothing.
    pub(super) fn told_as(&mut self, from: SiteId, to: SiteId, message: Message) -> Option<Message> {
        let Some(liar) = &mut self.liar else { return Some(message) };
        if to == liar.site {
            message.transfers().iter().for_each(|transfer| self.watch.taint(transfer.job.id));
        }
        if from != liar.site {
            return Some(message);
        }
        let jobs = self.scenario.jobs.len() as u64;
        let said = match !self.healed && liar.rng.random_range(0..100) < liar.percent {
            true => {
                self.tally.lies += 1;
                liar.lie(message, jobs, self.scenario.grid.len())
            }
            false => Some(message),
        }?;
        if liar.said.len() < REMEMBERED_MAX {
            liar.said.push((to, said.clone()));
        }
        named(&said).into_iter().for_each(|job| self.watch.taint(job));
        Some(said)
    }
}

impl Liar {
    pub(super) fn is_at(&self, grid: &Grid, rank: usize) -> bool {
        grid.at_rank(rank) == self.site
    }

    fn lie(&mut self, message: Message, jobs: u64, sites: usize) -> Option<Message> {
        let rng = &mut self.rng;
        match rng.random_range(0..8) {
            0 => return None,
            1 if !self.said.is_empty() => {
                // Something it said before, maybe to somebody else.
                let (_, again) = &self.said[rng.random_range(0..self.said.len())];
                return Some(again.clone());
            }
            _ => {}
        }
        let mut message = message;
        match &mut message {
            Message::HandOver(HandOverMessage::Reply { accepted, declined }) => {
                match rng.random_range(0..4) {
                    0 => std::mem::swap(accepted, declined),
                    1 => accepted.push(rng.random_range(1..20)),
                    2 => declined.push(rng.random_range(1..20)),
                    _ => declined.extend(accepted.iter().copied()),
                }
            }
            Message::Steal(StealMessage::Grant { transfers, state, floor, .. }) => {
                bend(rng, transfers, jobs, sites);
                *state = any_state(rng, *state);
                *floor += rng.random_range(0..3);
            }
            Message::HandOver(HandOverMessage::Route { transfers, floor })
            | Message::Balance(BalanceMessage::Give { transfers, floor, .. })
            | Message::Opaque(OpaqueMessage::Give { transfers, floor }) => {
                bend(rng, transfers, jobs, sites);
                *floor += rng.random_range(0..3);
            }
            Message::Pool(PoolMessage::Award { transfer, version, floor, .. }) => {
                bend(rng, std::slice::from_mut(&mut **transfer), jobs, sites);
                *version += rng.random_range(0..2);
                *floor += rng.random_range(0..3);
            }
            Message::Steal(StealMessage::Request { seq, offer, seen }) => {
                *seq += rng.random_range(0..3);
                offer.free = Room::Processors(rng.random_range(0..=offer.free.width().saturating_add(1)));
                *seen = rng.random_range(0..20);
            }
            Message::Steal(StealMessage::NoWork { state, .. })
            | Message::Steal(StealMessage::Notice { state }) => *state = any_state(rng, *state),
            Message::Steal(StealMessage::Seen { version, keep, .. }) => {
                *version += rng.random_range(0..4);
                *keep = rng.random_bool(0.5);
            }
            Message::Balance(BalanceMessage::Request { seq, free }) => {
                *seq += rng.random_range(0..3);
                *free = Room::Processors(rng.random_range(0..=free.width().saturating_add(1)));
            }
            Message::Balance(BalanceMessage::Seen { seq }) => *seq += rng.random_range(0..4),
            Message::Steal(StealMessage::Withdraw { version }) => *version += rng.random_range(0..4),
            Message::HandOver(HandOverMessage::Recall { number, floor }) => {
                *number += rng.random_range(0..3);
                *floor += rng.random_range(0..3);
            }
            Message::HandOver(HandOverMessage::Floor { floor }) => *floor += rng.random_range(0..5),
            Message::Pool(PoolMessage::Board { board, ask, .. }) => {
                board.free = Room::Processors(rng.random_range(0..=board.free.width().saturating_add(4)));
                board.offered.truncate(rng.random_range(0..=board.offered.len()));
                *ask = rng.random_bool(0.5);
            }
            Message::Pool(PoolMessage::Host { epoch }) => epoch.counter += rng.random_range(0..2),
            Message::Pool(PoolMessage::Assign { offer, to, .. }) => {
                offer.version += rng.random_range(0..2);
                *to = any_site(rng, sites);
            }
            Message::Pool(PoolMessage::Claim { offer, claim })
            | Message::Pool(PoolMessage::Deny { offer, claim }) => {
                offer.version += rng.random_range(0..2);
                *claim += rng.random_range(0..2);
            }
            Message::Balance(BalanceMessage::Refuse { load_report, .. })
            | Message::Balance(BalanceMessage::News { load_report, .. }) => {
                load_report.idle = rng.random_range(0..30);
                load_report.work = rng.random_range(0..100_000);
            }
            Message::Balance(BalanceMessage::Watch { width, .. }) => {
                *width = Room::Processors(rng.random_range(0..30));
            }
            Message::Balance(BalanceMessage::Gossip { load_reports }) => {
                for load_report in load_reports {
                    load_report.site = any_site(rng, sites);
                    load_report.version += rng.random_range(0..5);
                    load_report.idle = rng.random_range(0..30);
                }
            }
            Message::Broker(BrokerMessage::State { epoch, first, changes, probe }) => {
                *epoch += rng.random_range(0..2);
                *first += rng.random_range(0..3);
                *probe = rng.random_range(0..20);
                for change in changes {
                    bend_change(rng, change, jobs);
                }
            }
            Message::Opaque(OpaqueMessage::Ended { jobs: ended }) => {
                ended.iter_mut().for_each(|one| one.job = any_job(rng, jobs));
            }
            Message::Opaque(OpaqueMessage::Known { jobs: known }) => known.push(any_job(rng, jobs)),
            Message::Opaque(OpaqueMessage::Recall { job }) => *job = any_job(rng, jobs),
            Message::Opaque(OpaqueMessage::Refused { job, started }) => {
                *job = any_job(rng, jobs);
                *started = started.filter(|_| rng.random_bool(0.5));
            }
            Message::Opaque(OpaqueMessage::Anew { count }) => *count += rng.random_range(0..4),
            Message::Opaque(OpaqueMessage::Have { count, all, jobs: held }) => {
                *count += rng.random_range(0..2);
                *all += rng.random_range(0..3);
                held.iter_mut().for_each(|one| one.job.id = any_job(rng, jobs));
            }
            Message::Broker(BrokerMessage::Known { epoch, next }) => {
                *epoch += rng.random_range(0..2);
                *next += rng.random_range(0..4);
            }
            Message::Broker(BrokerMessage::Probe { probe }) => *probe += rng.random_range(0..4),
            Message::Broker(BrokerMessage::Anew { count }) => *count += rng.random_range(0..4),
            Message::Broker(BrokerMessage::Prepare { attempt, floor, part, .. }) => {
                bend_attempt(rng, attempt, jobs);
                *floor += rng.random_range(0..2);
                part.id = attempt.job;
                part.processors = rng.random_range(0..30);
            }
            Message::Broker(BrokerMessage::PreparePredicted { attempt, part, whole, run_time, .. }) => {
                bend_attempt(rng, attempt, jobs);
                part.id = attempt.job;
                part.processors = rng.random_range(0..30);
                *whole = rng.random_range(0..60);
                *run_time = Span::from_secs(rng.random_range(0..100_000));
            }
            Message::Broker(
                BrokerMessage::Commit { attempt, .. }
                | BrokerMessage::Abort { attempt }
                | BrokerMessage::Ready { attempt }
                | BrokerMessage::Refused { attempt }
                | BrokerMessage::Heard { attempt },
            ) => bend_attempt(rng, attempt, jobs),
            Message::Broker(BrokerMessage::Over { attempt, ended }) => {
                bend_attempt(rng, attempt, jobs);
                *ended = rng.random_bool(0.5);
            }
            Message::Broker(BrokerMessage::Fetch { job } | BrokerMessage::Missing { job }) => {
                *job = any_job(rng, jobs);
            }
            Message::Membership(MembershipMessage::Heartbeat {
                incarnation,
                leaving,
                first,
                voids,
                known,
            }) => {
                if rng.random_bool(0.1) {
                    *incarnation = rng.random_range(0..JOURNALS_MAX) * INCARNATIONS_PER_JOURNAL;
                }
                *leaving = rng.random_bool(0.1);
                *known = rng.random_range(0..10);
                if rng.random_bool(0.3) {
                    *first = rng.random_range(0..3);
                    let epoch = [1, 7, 65_536, 70_000][rng.random_range(0..4usize)];
                    voids.push(Void { job: any_job(rng, jobs), epoch });
                }
            }
            Message::Membership(MembershipMessage::Reports { reports })
            | Message::Membership(MembershipMessage::Noted { reports }) => {
                for report in reports {
                    report.done = rng.random_bool(0.5);
                    report.holder = any_site(rng, sites);
                    report.moves += rng.random_range(0..4);
                    report.epoch += rng.random_range(0..2);
                }
            }
        }
        Some(message)
    }
}

/// Says something else of jobs that move.
fn bend(rng: &mut ChaCha8Rng, transfers: &mut [Transfer], jobs: u64, sites: usize) {
    for transfer in transfers {
        match rng.random_range(0..8) {
            0 => transfer.number += rng.random_range(1..4),
            1 => transfer.epoch += [1, 5, 65_536][rng.random_range(0..3usize)],
            2 => transfer.hops = rng.random_range(0..10),
            3 => transfer.moves = rng.random_range(0..10),
            4 => transfer.guardian = rng.random_bool(0.5).then(|| any_site(rng, sites)),
            5 => transfer.job.processors = rng.random_range(0..30),
            6 => transfer.job.id = any_job(rng, jobs),
            _ => transfer.bounces = rng.random_range(0..10),
        }
    }
}

/// Says something else of what happened at a site.
fn bend_change(rng: &mut ChaCha8Rng, change: &mut Change, jobs: u64) {
    match change {
        Change::JoinedBefore { overtaker, .. } if rng.random_bool(0.5) => *overtaker = any_job(rng, jobs),
        Change::Joined { job, .. } | Change::Runs { job, .. } | Change::JoinedBefore { job, .. } => {
            match rng.random_range(0..3) {
                0 => job.id = any_job(rng, jobs),
                1 => job.processors = rng.random_range(0..30),
                _ => job.requested = Span::from_secs(rng.random_range(0..100_000)),
            }
        }
        Change::Decided { started, .. } => started.push(any_job(rng, jobs)),
        Change::EndedAfter { run_time, .. } if rng.random_bool(0.5) => {
            *run_time = Span::from_secs(rng.random_range(0..100_000));
        }
        Change::Asked { count, .. } => *count = rng.random_range(0..30),
        Change::PartRuns { part, whole, .. } => match rng.random_range(0..3) {
            0 => part.id = any_job(rng, jobs),
            1 => part.processors = rng.random_range(0..30),
            _ => *whole = rng.random_range(0..60),
        },
        Change::Ended { at, job }
        | Change::Left { at, job }
        | Change::EndedAfter { at, job, .. }
        | Change::PartEnded { at, job } => {
            *job = any_job(rng, jobs);
            *at += Span::from_secs(rng.random_range(-100..100_000));
        }
    }
}

fn any_state(rng: &mut ChaCha8Rng, state: QueueState) -> QueueState {
    let rest = match rng.random_range(0..3) {
        0 => Rest::Empty,
        1 => Rest::Need(rng.random_range(0..30)),
        _ => Rest::More,
    };
    QueueState { version: state.version + rng.random_range(0..5), rest, lead: rng.random_range(0..30) }
}

fn any_site(rng: &mut ChaCha8Rng, sites: usize) -> SiteId {
    SiteId::from_index(rng.random_range(0..sites))
}

/// One of the workload's, or one that nobody submitted.
/// Says it of another attempt.
fn bend_attempt(rng: &mut ChaCha8Rng, attempt: &mut Attempt, jobs: u64) {
    if rng.random_bool(0.5) {
        attempt.job = any_job(rng, jobs);
    }
    attempt.number += rng.random_range(0..2);
}

fn any_job(rng: &mut ChaCha8Rng, jobs: u64) -> JobId {
    JobId(rng.random_range(1..=jobs + 3))
}

/// Jobs that a message says something of.
fn named(message: &Message) -> Vec<JobId> {
    let mut jobs: Vec<JobId> = message.transfers().iter().map(|transfer| transfer.job.id).collect();
    match message {
        Message::Membership(MembershipMessage::Heartbeat { voids, .. }) => {
            jobs.extend(voids.iter().map(|void| void.job))
        }
        Message::Membership(MembershipMessage::Reports { reports })
        | Message::Membership(MembershipMessage::Noted { reports }) => {
            jobs.extend(reports.iter().map(|report| report.job));
        }
        Message::Opaque(OpaqueMessage::Ended { jobs: ended }) => {
            jobs.extend(ended.iter().map(|ended| ended.job));
        }
        Message::Opaque(OpaqueMessage::Have { jobs: held, .. }) => {
            jobs.extend(held.iter().map(|held| held.job.id));
        }
        Message::Opaque(OpaqueMessage::Known { jobs: known }) => jobs.extend(known),
        Message::Opaque(OpaqueMessage::Recall { job } | OpaqueMessage::Refused { job, .. }) => {
            jobs.push(*job)
        }
        Message::Broker(BrokerMessage::State { changes, .. }) => {
            for change in changes {
                match change {
                    Change::Joined { job, .. }
                    | Change::Runs { job, .. }
                    | Change::PartRuns { part: job, .. } => jobs.push(job.id),
                    Change::JoinedBefore { job, overtaker, .. } => jobs.extend([job.id, *overtaker]),
                    Change::Decided { started, .. } => jobs.extend(started),
                    Change::Ended { job, .. }
                    | Change::Left { job, .. }
                    | Change::EndedAfter { job, .. }
                    | Change::PartEnded { job, .. } => jobs.push(*job),
                    Change::Asked { .. } => {}
                }
            }
        }
        Message::Broker(
            BrokerMessage::Prepare { attempt, .. }
            | BrokerMessage::PreparePredicted { attempt, .. }
            | BrokerMessage::Commit { attempt, .. }
            | BrokerMessage::Abort { attempt }
            | BrokerMessage::Ready { attempt }
            | BrokerMessage::Refused { attempt }
            | BrokerMessage::Over { attempt, .. }
            | BrokerMessage::Heard { attempt },
        ) => jobs.push(attempt.job),
        Message::Broker(BrokerMessage::Fetch { job } | BrokerMessage::Missing { job }) => jobs.push(*job),
        Message::Pool(PoolMessage::Board { board, .. }) => {
            jobs.extend(board.kept.iter().map(|job| job.id));
            jobs.extend(board.offered.iter().map(|listing| listing.job.id));
            jobs.extend(board.withdrawn.iter().chain(&board.seen).map(|offer| offer.job));
        }
        Message::Pool(PoolMessage::Assign { offer, .. })
        | Message::Pool(PoolMessage::Claim { offer, .. })
        | Message::Pool(PoolMessage::Deny { offer, .. }) => {
            jobs.push(offer.job);
        }
        _ => {}
    }
    jobs
}
