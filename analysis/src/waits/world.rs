//! Where every job is, what every site has, and who asked whom: from events alone, whatever a site knew of it.
//!
//! What may go on where is a matter of `rules`, what it says of a waiting job of `groups`.

use std::collections::BTreeMap;

use scheduler::event::BeginCause;
use scheduler::{Event, EventKind, Grid, JobId, JobIndex, SiteId, Time, TimedJob};

use crate::asking::{Asking, Reserved};
use crate::deficiency::NOWHERE;
use crate::sharing::room::{Occupied, Room, local_changes};

/// What must be known of a job. Sites are ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) submit: Time,
    pub(super) processors: u32,
    /// Those that it holds where it runs: fewer than it has if parts of it run elsewhere.
    pub(super) held: u32,
    /// Of each of its tasks, in KB.
    pub(super) memory: u64,
    pub(super) home: u32,
    pub(super) phase: Phase,
    /// Whether it is in the global queue.
    pub(super) offered: bool,
    /// Sites that claimed it and to which it was not granted.
    pub(super) claims: u32,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not in the log yet.
    Ahead,
    /// In the queue of this site, or in its custody.
    Waiting(u32),
    /// On its way to this site.
    InTransit(u32),
    /// Declined, and on its way back.
    Back,
    Running(u32),
    Ended,
}

/// What a job that waits waits in. Jobs of one width in one situation wait for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Situation {
    Waiting { site: u32, offered: bool, claimed: bool },
    InTransit { to: u32 },
    Back,
}

impl Job {
    /// `None` before the log has it, and from its start on.
    pub(super) fn situation(&self) -> Option<Situation> {
        match self.phase {
            Phase::Waiting(site) => {
                Some(Situation::Waiting { site, offered: self.offered, claimed: self.claims > 0 })
            }
            Phase::InTransit(to) => Some(Situation::InTransit { to }),
            Phase::Back => Some(Situation::Back),
            Phase::Ahead | Phase::Running(_) | Phase::Ended => None,
        }
    }
}

/// What changed since somebody looked; may name a thing twice, or one that is as it was. Whoever looks clears it.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// Places of jobs in another situation.
    pub(super) jobs: Vec<u32>,
    /// Sites with other idle or reserved processors.
    pub(super) sites: Vec<u32>,
    /// Thief and victim of requests.
    pub(super) requests: Vec<(u32, u32)>,
}

/// The state of the grid.
#[derive(Clone, Debug)]
pub(super) struct World {
    grid: Grid,
    index: JobIndex,
    pub(super) jobs: Vec<Job>,
    /// By site: processors less those of running jobs.
    idle: Vec<i64>,
    /// Processors of parts of jobs that run elsewhere, too, by site and place of the job.
    pub(super) parts: BTreeMap<(u32, u32), u32>,
    /// By site: processors that jobs on their way there need, or that claims keep for jobs which were not granted.
    reserved: Vec<i64>,
    /// By site: whether it is not there, or stands still, as drivers say.
    away: Vec<bool>,
    /// By site: its nodes, if jobs share them.
    pub(super) nodes: Vec<Option<Occupied>>,
    /// When local users come and go, by site, and how many of these instants are past.
    local: Vec<(Time, u32)>,
    local_past: usize,
    clock: Time,
    pub(super) asking: Asking,
    pub(super) changes: Changes,
    /// Whether processors were not there, or executions were lost or repeated.
    pub(super) disturbed: bool,
}

impl World {
    pub(super) fn new(grid: &Grid, workload: &[TimedJob]) -> World {
        let job = |job: &TimedJob| Job {
            submit: job.spec.submit,
            processors: job.spec.processors,
            held: job.spec.processors,
            // Elsewhere it keeps nobody from anything.
            memory: if grid.is_shared() { job.spec.memory() } else { 0 },
            home: grid.home_rank(job.spec.processors).map_or(NOWHERE, |rank| rank as u32),
            phase: Phase::Ahead,
            offered: false,
            claims: 0,
        };
        World {
            index: JobIndex::new(workload),
            jobs: workload.iter().map(job).collect(),
            idle: grid.sizes().iter().map(|&size| i64::from(size)).collect(),
            parts: BTreeMap::new(),
            reserved: vec![0; grid.len()],
            away: vec![false; grid.len()],
            nodes: Occupied::of_grid(grid),
            local: local_changes(grid),
            local_past: 0,
            clock: Time::from_micros(i64::MIN),
            asking: Asking::default(),
            changes: Changes::default(),
            disturbed: false,
            grid: grid.clone(),
        }
    }

    pub(super) fn grid(&self) -> &Grid {
        &self.grid
    }

    /// When local users of shared nodes come or go next, if that is not after an instant.
    pub(super) fn next_local(&self, until: Time) -> Option<Time> {
        self.local.get(self.local_past).map(|&(at, _)| at).filter(|&at| at <= until)
    }

    /// It is that late: local users may have come or gone.
    pub(super) fn advance(&mut self, now: Time) {
        self.clock = self.clock.max(now);
        while let Some(&(_, site)) = self.local.get(self.local_past).filter(|(at, _)| *at <= self.clock) {
            self.changes.sites.push(site);
            self.local_past += 1;
        }
    }

    /// What another job could have of nodes that jobs share; `None` where each processor has one.
    pub(super) fn room(&self, site: u32) -> Option<Room> {
        let nodes = self.nodes[site as usize].as_ref()?;
        Some(if self.is_away(site) { Room::NONE } else { nodes.room(self.clock) })
    }

    pub(super) fn is_away(&self, site: u32) -> bool {
        self.away[site as usize]
    }

    /// Processors that run nothing.
    pub(super) fn idle(&self, site: u32) -> i64 {
        self.idle[site as usize]
    }

    /// Processors of a site that another job could have, or nodes where jobs share these. Below zero if more is on its way than fits,
    /// or if it is away.
    pub(super) fn free(&self, site: u32) -> i64 {
        if let Some(room) = self.room(site) {
            return room.nodes();
        }
        if self.is_away(site) { -1 } else { self.idle[site as usize] - self.reserved[site as usize] }
    }

    /// The place of a job that some site can hold, or several together where jobs start in parts.
    pub(super) fn place(&self, job: JobId) -> Option<u32> {
        let place = self.index.get(job)?;
        self.can_start(&self.jobs[place]).then_some(place as u32)
    }

    pub(super) fn can_start(&self, job: &Job) -> bool {
        job.home != NOWHERE || (self.grid.spreads() && job.processors <= self.grid.widest_job())
    }

    /// Takes one event into account.
    pub(super) fn observe(&mut self, event: &Event) {
        self.advance(event.at);
        let site = self.rank(event.site);
        self.occupy(site, event.kind);
        match event.kind {
            EventKind::Submitted { job, .. } => self.moves(job, Phase::Waiting(site), true),
            EventKind::Accepted { job, .. } | EventKind::Returned { job, .. } => {
                self.moves(job, Phase::Waiting(site), false);
            }
            EventKind::Granted { job, to, request, .. } => self.granted(job, site, self.rank(to), request),
            EventKind::Declined { job, .. } => self.moves(job, Phase::Back, false),
            EventKind::Started { job, processors, .. } => {
                if self.grid.spreads() {
                    self.holds(job, processors);
                }
                self.moves(job, Phase::Running(site), false);
            }
            EventKind::PartStarted { job, processors, .. } => {
                if let Some(place) = self.place(job) {
                    self.part(site, place, processors);
                }
            }
            EventKind::PartCompleted { job, .. } => {
                if let Some(place) = self.place(job) {
                    self.part(site, place, 0);
                }
            }
            EventKind::Completed { job, .. } => {
                let runs_here = |place: u32| self.jobs[place as usize].phase == Phase::Running(site);
                if self.place(job).is_some_and(runs_here) {
                    self.moves(job, Phase::Ended, false);
                }
            }
            EventKind::Offered { job, .. } => self.change(job, |job| job.offered = true),
            EventKind::Withdrawn { job, .. } => self.change(job, |job| job.offered = false),
            EventKind::Claimed { job, claim, processors, .. } => {
                let before = self.asking.claim(site, claim, job, processors);
                self.unreserve(site, before);
                self.reserve(site, i64::from(processors));
                self.change(job, |job| job.claims += 1);
            }
            EventKind::Released { claim, .. } => {
                let before = self.asking.release(site, claim);
                self.unreserve(site, before);
            }
            EventKind::Requested { victim, seq, offer, .. } => {
                let victim = self.rank(victim);
                self.asking.request(site, victim, seq, offer);
                self.changes.requests.push((site, victim));
            }
            EventKind::Answered { victim, seq, .. } => {
                let victim = self.rank(victim);
                self.asking.answer(site, victim, seq);
                self.changes.requests.push((site, victim));
            }
            EventKind::Recovered { .. }
            | EventKind::Superseded { .. }
            | EventKind::Gone { .. }
            | EventKind::Left { .. }
            | EventKind::Dismissed {}
            | EventKind::FellBack { .. } => self.disturbed = true,
            EventKind::Interrupted { .. }
            | EventKind::Revoked { .. }
            | EventKind::TookOver { .. }
            | EventKind::Ended { .. }
            | EventKind::Begun { .. } => {
                self.disturbed = true;
                self.disturb(site, event.kind);
            }
            _ => {}
        }
    }

    /// What an event says of nodes that jobs share.
    fn occupy(&mut self, site: u32, kind: EventKind) {
        let Some(nodes) = &mut self.nodes[site as usize] else { return };
        match kind {
            EventKind::Placed { job, node } => {
                let Some(place) = self.index.get(job) else { return };
                nodes.place(place as u32, self.jobs[place].memory, node);
            }
            EventKind::Completed { job, .. }
            | EventKind::PartCompleted { job, .. }
            | EventKind::Interrupted { job, .. } => {
                let Some(place) = self.index.get(job) else { return };
                nodes.remove(place as u32);
            }
            EventKind::Ended { how } if how.interrupts() => nodes.clear(),
            EventKind::Begun { how: BeginCause::Restart } | EventKind::Recovered { .. } => nodes.clear(),
            _ => return,
        }
        self.changes.sites.push(site);
    }

    /// What a crash, a pause or a take-over at a site means for jobs and processors.
    fn disturb(&mut self, site: u32, kind: EventKind) {
        match kind {
            EventKind::Interrupted { job, killed, .. } => {
                let Some(place) = self.place(job) else { return };
                let phase = self.jobs[place as usize].phase;
                if phase == Phase::Running(site) || killed && phase == Phase::Waiting(site) {
                    self.set(place, if killed { Phase::Ended } else { Phase::Waiting(site) });
                }
            }
            EventKind::Revoked { job, killed: false, .. } => {
                if let Some(place) = self.place(job) {
                    self.set(place, Phase::Waiting(site));
                }
            }
            EventKind::TookOver { job, .. } => {
                let Some(place) = self.place(job) else { return };
                if !matches!(self.jobs[place as usize].phase, Phase::Ended)
                    && self.jobs[place as usize].phase != Phase::Running(site)
                {
                    self.set(place, Phase::Waiting(site));
                }
            }
            EventKind::Ended { how } => {
                if how.interrupts() {
                    let runs_here = |place: &u32| self.jobs[*place as usize].phase == Phase::Running(site);
                    let cut: Vec<u32> = (0..self.jobs.len() as u32).filter(runs_here).collect();
                    cut.into_iter().for_each(|place| self.set(place, Phase::Waiting(site)));
                    let parts: Vec<u32> = self
                        .parts
                        .range((site, 0)..=(site, u32::MAX))
                        .map(|(&(_, place), _)| place)
                        .collect();
                    parts.into_iter().for_each(|place| self.part(site, place, 0));
                }
                self.away[site as usize] = true;
                self.changes.sites.push(site);
            }
            EventKind::Begun { .. } => {
                self.away[site as usize] = false;
                self.changes.sites.push(site);
            }
            _ => {}
        }
    }

    fn rank(&self, site: SiteId) -> u32 {
        self.grid.rank(site) as u32
    }

    fn granted(&mut self, job: JobId, victim: u32, thief: u32, request: u64) {
        let Some(place) = self.place(job) else { return };
        let processors = self.jobs[place as usize].processors;
        if self.asking.grant(thief, victim, request, processors).is_some() {
            self.changes.requests.push((thief, victim));
        }
        let awarded = self.asking.award(thief, job);
        self.unreserve(thief, awarded);
        self.moves(job, Phase::InTransit(thief), false);
    }

    /// A job goes into another phase, if that may be. `first` if it is new to the grid.
    fn moves(&mut self, job: JobId, after: Phase, first: bool) {
        let Some(place) = self.place(job) else { return };
        let allowed = match self.jobs[place as usize].phase {
            Phase::Ended => false,
            Phase::Running(_) => after == Phase::Ended,
            Phase::Ahead => true,
            Phase::Waiting(_) | Phase::InTransit(_) | Phase::Back => !first,
        };
        if allowed {
            self.set(place, after);
        }
    }

    /// A job that is to start holds so many processors where it does.
    fn holds(&mut self, job: JobId, processors: u32) {
        let Some(place) = self.place(job) else { return };
        let job = &mut self.jobs[place as usize];
        if !matches!(job.phase, Phase::Running(_)) {
            job.held = processors;
        }
    }

    /// A part of a job has so many processors of a site from now on.
    fn part(&mut self, site: u32, place: u32, processors: u32) {
        let before = match processors {
            0 => self.parts.remove(&(site, place)),
            _ => self.parts.insert((site, place), processors),
        };
        self.idle[site as usize] += i64::from(before.unwrap_or(0)) - i64::from(processors);
        self.changes.sites.push(site);
    }

    fn set(&mut self, place: u32, after: Phase) {
        let Job { phase: before, processors, held, memory, .. } = self.jobs[place as usize];
        for (phase, sign) in [(before, -1), (after, 1)] {
            match phase {
                Phase::InTransit(to) => {
                    self.reserve(to, sign * i64::from(processors));
                    match &mut self.nodes[to as usize] {
                        Some(nodes) if sign > 0 => nodes.expect(place, processors, memory),
                        Some(nodes) => nodes.forget(place),
                        None => {}
                    }
                }
                Phase::Running(site) => {
                    self.idle[site as usize] -= sign * i64::from(held);
                    self.changes.sites.push(site);
                }
                _ => {}
            }
        }
        let job = &mut self.jobs[place as usize];
        job.phase = after;
        job.offered &= matches!(after, Phase::Waiting(_));
        self.changes.jobs.push(place);
    }

    fn change(&mut self, job: JobId, change: impl FnOnce(&mut Job)) {
        if let Some(place) = self.place(job) {
            change(&mut self.jobs[place as usize]);
            self.changes.jobs.push(place);
        }
    }

    fn reserve(&mut self, site: u32, processors: i64) {
        self.reserved[site as usize] += processors;
        self.changes.sites.push(site);
    }

    /// A claim keeps nothing any more.
    fn unreserve(&mut self, site: u32, reserved: Option<Reserved>) {
        if let Some(Reserved { job, processors }) = reserved {
            self.reserve(site, -i64::from(processors));
            self.change(job, |job| job.claims = job.claims.saturating_sub(1));
        }
    }
}
