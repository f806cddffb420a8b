//! What must hold after every instant of the ideal stealing algorithm: I1 to I10, one function each.
//!
//! The functions look at a [`State`] that somebody who sees everything keeps, and know nothing of a policy's
//! insides. With ideal communication a violation is an error; with delays it is a measurement to count.
//!
//! | | name | says | for orders |
//! | --- | --- | --- | --- |
//! | I1 | exclusivity | a job waits at its home, or runs once at one site | all |
//! | I2 | chain | L_i is a subset of A_i, of B_i, or of L_{i-1} | all |
//! | I3 | prefix | L_i is empty iff no job with home ≤ i waits | all |
//! | I4 | homogeneous | L_i is all big or all small for i | all |
//! | I5 | phase | L_i small: no waiting job with home ≤ i is big for i | AHB, ABH |
//! | I6 | greedy | no job of L_i fits; first fit and best fit only | all |
//! | I7 | busy | L_i non-empty: busy > x s_i (big) or > (1 − x) s_i (small) | AHB, ABH |
//! | I8 | root | while a job with home k waits, no job with home < k starts at a site ≥ k | AHB, ABH, BAH |
//! | I9 | start bound | offline: t_j = 0 or t_j < W_k / (β S_k), k the home | AHB, ABH |
//! | I10 | certificate | offline C_max < max_k W_k / (β S_k) + p_max; online r_last + p_max more | AHB, ABH |

use std::collections::BTreeSet;

use crate::class::{Order, Selection};
use crate::grid::Grid;
use crate::ideal::definition::{self, in_a, in_b};
use crate::job::{JobId, JobSpec};
use crate::strategy::Steal;
use crate::time::{Span, Time};

/// The truth at one moment, as an observer of all sites sees it.
#[derive(Clone, Debug)]
pub struct State {
    /// The instant, in trace time, that all the rest is true of.
    pub now: Time,
    /// Waiting jobs by the rank of the home where they wait, in queue order.
    pub waiting: Vec<Vec<JobSpec>>,
    /// Running jobs by the rank of their site.
    pub running: Vec<Vec<JobSpec>>,
    /// Jobs that have ended.
    pub ended: BTreeSet<JobId>,
    /// Starts of the last decision, in order, with the rank of the site.
    pub starts: Vec<(JobSpec, usize)>,
    /// L_i by rank after the last decision.
    pub lists: Vec<Vec<JobSpec>>,
    grid: Grid,
}

/// What the invariants need to know of a run besides its state.
#[derive(Clone, Debug)]
pub struct Terms {
    grid: Grid,
    steal: Steal,
    /// The first submission: start bounds count from it, and offline the certificate.
    r_first: Time,
    /// The last submission: online the certificate counts from it.
    r_last: Time,
    /// Longest run time.
    p_max: Span,
    /// W_k by rank: processor-microseconds of all jobs with home k or larger.
    work: Vec<i128>,
}

/// Which invariant does not hold, and where. Ranks count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// I1, exclusivity: every job is in exactly one place, and where it may be.
    #[error("I1 exclusivity: job {job} is not in exactly one place, or not where it may be")]
    Exclusivity {
        /// The job that is in no place, in several, or in a wrong one.
        job: JobId,
    },
    /// I2, chain: every list is part of A, of B or of the list below it.
    #[error("I2 chain: the list of rank {rank} is part of neither A, B nor the list below")]
    Chain {
        /// Rank of the site whose list is part of none.
        rank: usize,
    },
    /// I3, prefix: a list is empty exactly if no job waits whose home has this rank or a lower one.
    #[error("I3 prefix: the list of rank {rank} is empty although it has a job to take, or the reverse")]
    Prefix {
        /// Rank of the site whose list is wrong.
        rank: usize,
    },
    /// I4, homogeneous: a list has only big jobs or only small ones.
    #[error("I4 homogeneous: the list of rank {rank} mixes big and small jobs")]
    Homogeneous {
        /// Rank of the site whose list mixes them.
        rank: usize,
    },
    /// I5, phase: no list is of small jobs while a job waits that is big for its site.
    #[error("I5 phase: rank {rank} is at small jobs while the big job {job} waits")]
    Phase {
        /// Rank of the site that is at small jobs.
        rank: usize,
        /// The big job.
        job: JobId,
    },
    /// I6, greedy: after a decision nothing is left in a list that fits the idle processors.
    #[error("I6 greedy: job {job} of the list of rank {rank} fits and was not started")]
    Greedy {
        /// Rank of the site with room for the job.
        rank: usize,
        /// The job that fits and was not started.
        job: JobId,
    },
    /// I7, busy: a site with a non-empty list has a larger share of busy processors than its threshold says.
    #[error("I7 busy: rank {rank} has only {busy} busy processors with a non-empty list")]
    Busy {
        /// Rank of the site with too few busy processors.
        rank: usize,
        /// Its busy processors.
        busy: u32,
    },
    /// I8, root: no job starts at a site while one of a home between waits.
    #[error("I8 root: job {job} started at rank {rank} while job {waiting} of a home between waits")]
    Root {
        /// The job that started.
        job: JobId,
        /// Rank of the site where it started.
        rank: usize,
        /// The job that waits.
        waiting: JobId,
    },
    /// I9, start bound: a job starts no later than the work of its home and above allows.
    #[error("I9 start bound: job {job} started later than the work of its home and above allows")]
    StartBound {
        /// The job that started too late.
        job: JobId,
    },
    /// I10, certificate: the last job ends no later than the work allows.
    #[error("I10 certificate: the last job ended at {last_end} s, later than the work allows")]
    Certificate {
        /// C_max: when the last job ended, in trace time.
        last_end: Time,
    },
}

impl State {
    /// An idle grid without jobs.
    pub fn new(grid: &Grid) -> State {
        State {
            now: Time::ZERO,
            waiting: vec![Vec::new(); grid.len()],
            running: vec![Vec::new(); grid.len()],
            ended: BTreeSet::new(),
            starts: Vec::new(),
            lists: vec![Vec::new(); grid.len()],
            grid: grid.clone(),
        }
    }

    /// A job was submitted and waits at its home.
    ///
    /// # Panics
    /// If it fits no site.
    pub fn submitted(&mut self, now: Time, job: JobSpec) {
        self.now = now;
        let home = self.grid.home_rank(job.processors).expect("drivers refuse jobs that fit no site");
        let place = self.waiting[home].partition_point(|waiting| waiting.key() < job.key());
        self.waiting[home].insert(place, job);
    }

    /// A job started at the site of this rank.
    pub fn started(&mut self, now: Time, job: JobSpec, rank: usize) {
        self.now = now;
        for queue in &mut self.waiting {
            queue.retain(|waiting| waiting.id != job.id);
        }
        self.running[rank].push(job);
        self.starts.push((job, rank));
    }

    /// A job ended at the site of this rank.
    pub fn completed(&mut self, now: Time, job: JobId, rank: usize) {
        self.now = now;
        self.running[rank].retain(|running| running.id != job);
        self.ended.insert(job);
    }

    /// The lists L_i after a decision.
    pub fn decided(&mut self, now: Time, lists: Vec<Vec<JobSpec>>) {
        self.now = now;
        self.lists = lists;
    }

    /// Makes ready for the starts of the next decision.
    pub fn forget_starts(&mut self) {
        self.starts.clear();
    }

    /// Busy processors of a site.
    pub fn busy(&self, rank: usize) -> u32 {
        self.running[rank].iter().map(|job| job.processors).sum()
    }
}

impl Terms {
    /// The terms of a run of jobs given as (submission, processors, run time).
    ///
    /// # Panics
    /// If a job fits no site.
    pub fn new(grid: &Grid, steal: Steal, jobs: impl IntoIterator<Item = (Time, u32, Span)>) -> Terms {
        let mut terms = Terms {
            grid: grid.clone(),
            steal,
            r_first: Time::MAX,
            r_last: Time::from_micros(i64::MIN),
            p_max: Span::ZERO,
            work: vec![0; grid.len()],
        };
        for (submit, processors, run_time) in jobs {
            terms.r_first = terms.r_first.min(submit);
            terms.r_last = terms.r_last.max(submit);
            terms.p_max = terms.p_max.max(run_time);
            let home = grid.home_rank(processors).expect("drivers refuse jobs that fit no site");
            terms.work[home] += i128::from(processors) * i128::from(run_time.as_micros());
        }
        for rank in (1..grid.len()).rev() {
            terms.work[rank - 1] += terms.work[rank];
        }
        terms
    }

    /// The lists L_i of a state by their definition.
    pub fn lists(&self, state: &State) -> Vec<Vec<JobSpec>> {
        let mut waiting: Vec<JobSpec> = state.waiting.iter().flatten().copied().collect();
        waiting.sort_by_key(JobSpec::key);
        definition::lists(&self.grid, self.steal.threshold, self.steal.order, &waiting)
    }

    fn is_big(&self, job: &JobSpec, rank: usize) -> bool {
        self.steal.threshold.is_big(job.processors, self.grid.widths()[rank])
    }

    /// Whether all jobs are submitted at one instant.
    fn is_offline(&self) -> bool {
        self.r_first == self.r_last
    }

    /// Whether the guarantees of the original order are claimed.
    fn is_original(&self) -> bool {
        matches!(self.steal.order, Order::Ahb | Order::Abh)
    }

    /// Whether `span` < W_k / (β S_k) for a home of this rank, in integers: 100 W_k > β% S_k span.
    fn within_work(&self, rank: usize, span: Span) -> bool {
        let capacity =
            i128::from(self.steal.threshold.beta_percent()) * i128::from(self.grid.suffix_processors(rank));
        capacity * i128::from(span.as_micros()) < 100 * self.work[rank]
    }
}

/// One invariant of a moment.
type Rule = fn(&State, &Terms) -> Result<(), Violation>;

/// Every invariant of a moment that applies to the run: I1 to I9, each with its first violation.
pub fn check(state: &State, terms: &Terms) -> Vec<Violation> {
    let original = terms.is_original();
    let greedy = matches!(terms.steal.select, Selection::FirstFit | Selection::BestFit);
    let rooted = original || terms.steal.order == Order::Bah;
    let rules: [(bool, Rule); 9] = [
        (true, exclusivity),
        (true, chain),
        (true, prefix),
        (true, homogeneous),
        (original, phase),
        (greedy, self::greedy),
        (original, busy),
        (rooted, root),
        (original, start_bound),
    ];
    rules
        .into_iter()
        .filter(|(applies, _)| *applies)
        .filter_map(|(_, rule)| rule(state, terms).err())
        .collect()
}

/// I1: every waiting job waits at its home and there only; every job runs at most once, at one site that holds it.
///
/// # Errors
/// With the first job that is elsewhere or in two places.
pub fn exclusivity(state: &State, terms: &Terms) -> Result<(), Violation> {
    let mut seen = BTreeSet::new();
    let mut once = |job: JobId| -> Result<(), Violation> {
        let fresh = seen.insert(job) && !state.ended.contains(&job);
        if fresh { Ok(()) } else { Err(Violation::Exclusivity { job }) }
    };
    for (rank, jobs) in state.waiting.iter().enumerate() {
        for job in jobs {
            once(job.id)?;
            let threshold = terms.steal.threshold;
            if in_a(&terms.grid, threshold, job, rank) == in_b(&terms.grid, threshold, job, rank) {
                return Err(Violation::Exclusivity { job: job.id });
            }
        }
    }
    for (rank, jobs) in state.running.iter().enumerate() {
        let mut idle = terms.grid.sizes()[rank];
        for job in jobs {
            once(job.id)?;
            idle = idle.checked_sub(job.processors).ok_or(Violation::Exclusivity { job: job.id })?;
        }
    }
    Ok(())
}

/// I2: L_i is a subset of A_i, of B_i, or of L_{i-1}.
///
/// # Errors
/// With the first site of which that is not so.
pub fn chain(state: &State, terms: &Terms) -> Result<(), Violation> {
    let threshold = terms.steal.threshold;
    for (rank, list) in state.lists.iter().enumerate() {
        let waits = |job: &JobSpec| state.waiting[rank].contains(job);
        let of_a = list.iter().all(|job| waits(job) && in_a(&terms.grid, threshold, job, rank));
        let of_b = list.iter().all(|job| waits(job) && in_b(&terms.grid, threshold, job, rank));
        let of_below = rank > 0 && list.iter().all(|job| state.lists[rank - 1].contains(job));
        if !(of_a || of_b || of_below) {
            return Err(Violation::Chain { rank });
        }
    }
    Ok(())
}

/// I3: L_i is empty if and only if no job with home ≤ i waits.
///
/// # Errors
/// With the first site of which that is not so.
pub fn prefix(state: &State, _terms: &Terms) -> Result<(), Violation> {
    for (rank, list) in state.lists.iter().enumerate() {
        let nothing_waits = state.waiting[..=rank].iter().all(Vec::is_empty);
        if list.is_empty() != nothing_waits {
            return Err(Violation::Prefix { rank });
        }
    }
    Ok(())
}

/// I4: L_i contains only jobs that are big for i, or only small ones.
///
/// # Errors
/// With the first site of which that is not so.
pub fn homogeneous(state: &State, terms: &Terms) -> Result<(), Violation> {
    for (rank, list) in state.lists.iter().enumerate() {
        let big = list.iter().filter(|job| terms.is_big(job, rank)).count();
        if big != 0 && big != list.len() {
            return Err(Violation::Homogeneous { rank });
        }
    }
    Ok(())
}

/// I5: if L_i is small, no waiting job with home ≤ i is big for i.
///
/// # Errors
/// With the first such job.
pub fn phase(state: &State, terms: &Terms) -> Result<(), Violation> {
    for (rank, list) in state.lists.iter().enumerate() {
        let small = !list.is_empty() && list.iter().all(|job| !terms.is_big(job, rank));
        if !small {
            continue;
        }
        if let Some(job) = state.waiting[..=rank].iter().flatten().find(|job| terms.is_big(job, rank)) {
            return Err(Violation::Phase { rank, job: job.id });
        }
    }
    Ok(())
}

/// I6: no job of L_i fits the idle processors of i.
///
/// # Errors
/// With the first job that does.
pub fn greedy(state: &State, terms: &Terms) -> Result<(), Violation> {
    for (rank, list) in state.lists.iter().enumerate() {
        let idle = terms.grid.sizes()[rank].saturating_sub(state.busy(rank));
        if let Some(job) = list.iter().find(|job| job.processors <= idle) {
            return Err(Violation::Greedy { rank, job: job.id });
        }
    }
    Ok(())
}

/// I7: a site with a non-empty list is more than x busy if the list is big, more than 1 − x if it is small.
///
/// A site whose list is big may *drain* a job that is small for it, but only online and before
/// r_last + p_max.
///
/// # Errors
/// With the first site that is not busy enough.
pub fn busy(state: &State, terms: &Terms) -> Result<(), Violation> {
    let x = u64::from(terms.steal.threshold.percent());
    let may_drain = !terms.is_offline() && state.now < terms.r_last + terms.p_max;
    for (rank, list) in state.lists.iter().enumerate() {
        let Some(first) = list.first() else { continue };
        let busy = state.busy(rank);
        let big = terms.is_big(first, rank);
        let percent = if big { x } else { 100 - x };
        if 100 * u64::from(busy) > percent * u64::from(terms.grid.sizes()[rank]) {
            continue;
        }
        let drains = big && state.running[rank].iter().any(|job| !terms.is_big(job, rank));
        if !(drains && may_drain) {
            return Err(Violation::Busy { rank, busy });
        }
    }
    Ok(())
}

/// I8: at every start of a job with home h at a site i, no job waits whose home is in (h, i].
///
/// # Errors
/// With the first start that breaks this.
pub fn root(state: &State, terms: &Terms) -> Result<(), Violation> {
    let home = |job: &JobSpec| terms.grid.home_rank(job.processors);
    for (place, (job, rank)) in state.starts.iter().enumerate() {
        let between = |other: &&JobSpec| home(other) > home(job) && home(other) <= Some(*rank);
        // What waits after the decision or starts later in it waited at this start.
        let later = state.starts[place + 1..].iter().map(|(job, _)| job);
        if let Some(other) = state.waiting.iter().flatten().chain(later).find(between) {
            return Err(Violation::Root { job: job.id, rank: *rank, waiting: other.id });
        }
    }
    Ok(())
}

/// I9: offline, a job of home k starts at once or before W_k / (β S_k). Nothing is claimed online or for β = 0.
///
/// # Errors
/// With the first job that starts later.
pub fn start_bound(state: &State, terms: &Terms) -> Result<(), Violation> {
    if !terms.is_offline() || terms.steal.threshold.beta_percent() == 0 {
        return Ok(());
    }
    let since = state.now.since(terms.r_first);
    for (job, _) in &state.starts {
        let home = terms.grid.home_rank(job.processors).expect("a job that started fits a site");
        if since != Span::ZERO && !terms.within_work(home, since) {
            return Err(Violation::StartBound { job: job.id });
        }
    }
    Ok(())
}

/// I10: C_max against the work of the run. Times count from the first submission; nothing is claimed for β = 0,
/// for jobs that all take no time, or for an order other than AHB and ABH.
///
/// # Errors
/// If the last completion is later than the certificate allows.
pub fn certificate(terms: &Terms, last_end: Time) -> Result<(), Violation> {
    if !terms.is_original() || terms.steal.threshold.beta_percent() == 0 || terms.p_max == Span::ZERO {
        return Ok(());
    }
    let begin = if terms.is_offline() { terms.r_first } else { terms.r_last + terms.p_max };
    let beyond = last_end.since(begin) - terms.p_max;
    let certified = beyond < Span::ZERO || (0..terms.grid.len()).any(|rank| terms.within_work(rank, beyond));
    if certified { Ok(()) } else { Err(Violation::Certificate { last_end }) }
}
