//! What is kept of the events of a run until the job that ends last is known.
//!
//! Everything before the submission of the oldest job that has not ended is summed up in the phase of each job, so
//! a long run at a moderate load keeps little. Messages are not kept: [`Losses`] turns them into changes of what is
//! lost and not yet repaired.

use std::collections::BTreeMap;
use std::sync::Arc;

use scheduler::event::MessageKind;
use scheduler::{Grid, JobId, JobIndex, Span, Time, TimedJob};

use crate::sharing::room::Occupied;

/// The home of a job that no site can hold.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// What must be known of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) submit: Time,
    pub(super) processors: u32,
    /// The rank of its home.
    pub(super) home: u32,
}

/// Something that happened at the site of this rank. Jobs are places in the workload, sites ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    pub(super) at: Time,
    pub(super) site: u32,
    pub(super) what: Note,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Submitted(u32),
    Granted {
        job: u32,
        to: u32,
    },
    Accepted(u32),
    Declined(u32),
    Returned(u32),
    Started(u32),
    Completed(u32),
    /// A task of a job is on a node that jobs share.
    Placed {
        job: u32,
        node: u32,
    },
    /// A job executes on none any more.
    Left(u32),
    /// None does.
    Emptied,
    Asked {
        victim: u32,
        offer: u32,
    },
    Answered {
        victim: u32,
    },
    /// So many processors are reserved for a job of another site, or no longer.
    Claimed(u32),
    Released(u32),
    /// Whether something from here to there is lost and not repaired.
    Broken {
        to: u32,
        broken: bool,
    },
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Ahead,
    /// Waits at this site.
    Waiting(u32),
    /// On its way to this site.
    Granted(u32),
    /// Declined, and not yet back.
    Declined,
    Running(u32),
    Ended,
}

/// The state that entries change.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) phases: Vec<Phase>,
    /// Processors offered in requests without answer for which no job was granted, by (thief, victim).
    pub(super) asked: BTreeMap<(u32, u32), u32>,
    /// Processors reserved by claims, by site.
    pub(super) claimed: BTreeMap<u32, u64>,
    /// Directed pairs of sites between which something is lost and not repaired.
    pub(super) broken: BTreeMap<(u32, u32), ()>,
    /// By site: its nodes, if jobs share them.
    pub(super) nodes: Vec<Option<Occupied>>,
    /// By job: tasks, and memory of each in KB. Empty where no nodes are shared.
    demands: Arc<[(u32, u64)]>,
}

/// What an entry changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    /// The job at this place of the workload.
    Job {
        place: usize,
        before: Phase,
        after: Phase,
    },
    /// Processors on offer in requests of a site or reserved by its claims.
    Offered {
        site: u32,
        before: u64,
        after: u64,
    },
    /// A directed pair of sites.
    Broken {
        from: u32,
        to: u32,
        broken: bool,
    },
}

impl State {
    /// Tasks of the job at this place, and memory of each in KB; none where no nodes are shared.
    pub(super) fn demand(&self, place: usize) -> Option<(u32, u64)> {
        self.demands.get(place).copied()
    }

    /// Applies an entry.
    pub(super) fn apply(&mut self, entry: &Noted) -> Change {
        let change = self.take_in(entry);
        if self.demands.is_empty() {
            return change;
        }
        let site = entry.site as usize;
        match (entry.what, &mut self.nodes[site]) {
            (Note::Placed { job, node }, Some(nodes)) => nodes.place(job, self.demands[job as usize].1, node),
            (Note::Completed(job) | Note::Left(job), Some(nodes)) => nodes.remove(job),
            (Note::Emptied, Some(nodes)) => nodes.clear(),
            _ => {}
        }
        if let Change::Job { place, before, after } = change {
            let (tasks, memory) = self.demands[place];
            if let Phase::Granted(to) = before
                && let Some(nodes) = &mut self.nodes[to as usize]
            {
                nodes.forget(place as u32);
            }
            if let Phase::Granted(to) = after
                && let Some(nodes) = &mut self.nodes[to as usize]
            {
                nodes.expect(place as u32, tasks, memory);
            }
        }
        change
    }

    fn take_in(&mut self, entry: &Noted) -> Change {
        let site = entry.site;
        let offered = |before: Option<u32>, after: Option<u32>| Change::Offered {
            site,
            before: u64::from(before.unwrap_or(0)),
            after: u64::from(after.unwrap_or(0)),
        };
        let (job, after) = match entry.what {
            Note::Submitted(job) | Note::Accepted(job) | Note::Returned(job) => (job, Phase::Waiting(site)),
            Note::Granted { job, to } => (job, Phase::Granted(to)),
            Note::Declined(job) => (job, Phase::Declined),
            Note::Started(job) => (job, Phase::Running(site)),
            Note::Completed(job) => (job, Phase::Ended),
            Note::Placed { .. } | Note::Left(_) | Note::Emptied => return Change::Nothing,
            Note::Asked { victim, offer } => {
                return offered(self.asked.insert((site, victim), offer), Some(offer));
            }
            Note::Answered { victim } => return offered(self.asked.remove(&(site, victim)), None),
            Note::Claimed(processors) => {
                let claimed = self.claimed.entry(site).or_default();
                let before = *claimed;
                *claimed += u64::from(processors);
                return Change::Offered { site, before, after: *claimed };
            }
            Note::Released(processors) => {
                let Some(claimed) = self.claimed.get_mut(&site) else { return Change::Nothing };
                let before = *claimed;
                *claimed = claimed.saturating_sub(u64::from(processors));
                return Change::Offered { site, before, after: *claimed };
            }
            Note::Broken { to, broken } => {
                let changed = if broken {
                    self.broken.insert((site, to), ()).is_none()
                } else {
                    self.broken.remove(&(site, to)).is_some()
                };
                return if changed { Change::Broken { from: site, to, broken } } else { Change::Nothing };
            }
        };
        let place = job as usize;
        let before = self.phases[place];
        let allowed = match before {
            Phase::Ended => false,
            Phase::Running(at) => after == Phase::Ended && at == site,
            Phase::Ahead => true,
            _ => after != Phase::Ended && !matches!(entry.what, Note::Submitted(_)),
        };
        if !allowed {
            return Change::Nothing;
        }
        self.phases[place] = after;
        Change::Job { place, before, after }
    }
}

/// All jobs, the state up to some instant, and what happened since.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    pub(super) ids: Vec<JobId>,
    pub(super) jobs: Vec<Job>,
    /// When each job started; [`Time::MAX`] before that.
    pub(super) started: Vec<Time>,
    pub(super) ended: Vec<bool>,
    pub(super) base: State,
    pub(super) entries: Vec<Noted>,
    pub(super) losses: Losses,
    index: JobIndex,
    /// All jobs before this place have ended.
    oldest: usize,
    /// How many entries are let gather before old ones are summed up; none if jobs are not in order.
    limit: Option<usize>,
}

/// Entries below this number are not worth summing up: arbitrary, 1.5 MiB.
const LIMIT_MIN: usize = 1 << 16;

impl Journal {
    pub(super) fn new(grid: &Grid, workload: &[TimedJob], jobs: Vec<Job>) -> Journal {
        let demand = |job: &TimedJob| (job.spec.processors, job.spec.memory());
        let demands = if grid.is_shared() { workload.iter().map(demand).collect() } else { Arc::default() };
        let sorted = jobs.is_sorted_by_key(|job| job.submit);
        Journal {
            ids: workload.iter().map(|job| job.spec.id).collect(),
            started: vec![Time::MAX; jobs.len()],
            ended: vec![false; jobs.len()],
            base: State {
                phases: vec![Phase::Ahead; jobs.len()],
                asked: BTreeMap::new(),
                claimed: BTreeMap::new(),
                broken: BTreeMap::new(),
                nodes: Occupied::of_grid(grid),
                demands,
            },
            entries: Vec::new(),
            losses: Losses::default(),
            index: JobIndex::new(workload),
            oldest: 0,
            limit: sorted.then_some(LIMIT_MIN),
            jobs,
        }
    }

    pub(super) fn place(&self, job: JobId) -> Option<u32> {
        self.index.get(job).map(|place| place as u32)
    }

    /// Whether this is the first start of a job.
    pub(super) fn start(&mut self, place: u32, at: Time) -> bool {
        let started = &mut self.started[place as usize];
        let first = *started == Time::MAX;
        if first {
            *started = at;
        }
        first
    }

    /// How long a running job executed; `None` if it does not run.
    pub(super) fn end(&mut self, place: usize, at: Time) -> Option<Span> {
        let runs = self.started[place] != Time::MAX && !self.ended[place];
        self.ended[place] |= runs;
        runs.then(|| at.since(self.started[place]))
    }

    pub(super) fn note_loss(&mut self, at: Time, change: Option<(u32, u32, bool)>) {
        if let Some((site, to, broken)) = change {
            self.push(Noted { at, site, what: Note::Broken { to, broken } });
        }
    }

    pub(super) fn push(&mut self, mut entry: Noted) {
        // Logs of real processes are merged by their clocks; a step back of one of them has no length.
        if let Some(last) = self.entries.last() {
            entry.at = entry.at.max(last.at);
        }
        self.entries.push(entry);
        if let Some(limit) = self.limit
            && self.entries.len() >= limit
        {
            self.sum_up();
            self.limit = Some(LIMIT_MIN.max(2 * self.entries.len()));
        }
    }

    /// Applies what happened before the submission of the oldest job that has not ended.
    pub(super) fn sum_up(&mut self) {
        while self.oldest < self.jobs.len()
            && (self.ended[self.oldest] || self.jobs[self.oldest].home == NOWHERE)
        {
            self.oldest += 1;
        }
        let Some(oldest) = self.jobs.get(self.oldest) else { return };
        let old = self.entries.partition_point(|entry| entry.at < oldest.submit);
        for entry in self.entries.drain(..old) {
            self.base.apply(&entry);
        }
    }
}

/// What is lost between two sites and not yet repaired, by direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    /// Kinds of messages lost from one site to another, as bits. Never zero.
    lost: BTreeMap<(u32, u32), u64>,
    /// Declined jobs whose owner has not heard, by (who declined, owner).
    declined: BTreeMap<(u32, u32), u32>,
}

/// A directed pair of sites, and whether something between them is lost now.
type Mended = Option<(u32, u32, bool)>;

fn bit(kind: MessageKind) -> u64 {
    1 << kind as u64
}

impl Losses {
    /// A message is lost. Those that are never repeated do not count, and an answer counts only if it gave a job back.
    pub(super) fn lost(&mut self, from: u32, to: u32, kind: MessageKind) -> Mended {
        let counts = match kind {
            MessageKind::Withdraw | MessageKind::Floor => false,
            MessageKind::Reply => self.declined.contains_key(&(from, to)),
            _ => true,
        };
        if !counts {
            return None;
        }
        let before = self.lost.insert((from, to), bit(kind));
        if let (Some(before), Some(mask)) = (before, self.lost.get_mut(&(from, to))) {
            *mask |= before;
        }
        before.is_none().then_some((from, to, true))
    }

    /// A message arrives: what it repeats, answers or supersedes is repaired.
    pub(super) fn received(&mut self, from: u32, to: u32, kind: MessageKind) -> [Mended; 2] {
        if self.lost.is_empty() {
            return [None, None];
        }
        use MessageKind::{Grant, NoWork, Notice, Recall, Reply, Request, Route, Seen};
        let (along, against) = match kind {
            Request => (bit(Request) | bit(Seen), bit(Notice)),
            Grant => (bit(Grant) | bit(NoWork), bit(Request)),
            NoWork => (bit(NoWork), bit(Request)),
            Seen => (bit(Seen), bit(Notice)),
            Reply => (bit(Reply), bit(Grant) | bit(Route) | bit(Recall)),
            Recall => (bit(Recall) | bit(Grant) | bit(Route), 0),
            other => (bit(other), 0),
        };
        [self.mend((from, to), along), self.mend((to, from), against)]
    }

    /// A job that this site declined waits for its owner to hear of it.
    pub(super) fn declined(&mut self, by: u32, owner: u32) {
        *self.declined.entry((by, owner)).or_default() += 1;
    }

    /// The owner has heard.
    pub(super) fn returned(&mut self, by: u32, owner: u32) -> Mended {
        let count = self.declined.get_mut(&(by, owner))?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        self.declined.remove(&(by, owner));
        self.mend((by, owner), bit(MessageKind::Reply))
    }

    fn mend(&mut self, pair: (u32, u32), kinds: u64) -> Mended {
        let mask = self.lost.get_mut(&pair)?;
        *mask &= !kinds;
        if *mask > 0 {
            return None;
        }
        self.lost.remove(&pair);
        Some((pair.0, pair.1, false))
    }
}
