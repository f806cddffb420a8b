//! Playing the queue of a cluster forward: when a job would start and end if none came, and each ran as long as it is estimated to.
//!
//! Algorithm 3.2 of Lérida's thesis (3.4.2) over [`Shared`], with four things made good that it leaves open or gets wrong as printed: jobs are selected once
//! before the first end, as nothing would ever end on a free cluster; start and end of the target are kept, and not only what its last step took; jobs that end
//! at one instant are gone before anything is selected; and a job that has had its time ends now. Local users stay as they are: nobody
//! can know better. Which [`Estimate`] is played with is the choice between SDPN, Hanzich and Hybrid (Table 3.3).

use thiserror::Error;

use super::demand::Demand;
use super::local_load::{LocalLoad, NOBODY, Usage};
use super::platform::{Cluster, Platform, PlatformError};
use super::retiming::Estimate;
use super::shared::{Refusal, Shared};
use crate::job::JobId;
use crate::local::PlannedJob;
use crate::time::{Span, Time};

/// Which waiting job starts next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// The first, or none.
    #[default]
    Fcfs,
    /// The first that fits: fit processors first served, FPFS (2.5.1).
    FirstFit,
}

/// A job that executes when a scenario begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Its name.
    pub job: JobId,
    /// What it asks for, with the run time that is estimated.
    pub demand: Demand,
    /// Its nodes, counted from 0.
    pub nodes: Vec<u32>,
    /// How much of its time on idle nodes of full power is done; see [`super::Running::remaining`].
    pub done: Span,
}

/// A cluster at an instant (Table 3.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The instant.
    pub now: Time,
    /// The cluster.
    pub cluster: Cluster,
    /// What local users take of each node.
    pub usage: Vec<Usage>,
    /// Jobs that execute.
    pub running: Vec<Placed>,
    /// Jobs that wait, in queue order, with the run times that are estimated. A job that only asks is the last.
    pub waiting: Vec<(JobId, Demand)>,
    /// How the cluster selects.
    pub selection: Selection,
    /// How much longer jobs are taken to need.
    pub estimate: Estimate,
}

/// What is predicted of a job; its turnaround time is the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicted {
    /// From the instant of the scenario to its start.
    pub wait: Span,
    /// From its start to its end; of a job that executes from the instant on.
    pub execution: Span,
}

/// Why nothing is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ForwardError {
    /// The cluster cannot be.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// A job that executes cannot be where it is said to be.
    #[error(transparent)]
    Running(#[from] Refusal),
    /// The job is not there.
    #[error("job {0} neither executes nor waits: put it last into the queue to ask about it")]
    Unknown(JobId),
    /// It would wait for ever.
    #[error("job {job} would never start, not even alone: {refusal}")]
    Never {
        /// The job, or the one that it waits behind.
        job: JobId,
        /// Why not on a cluster on which nothing executes.
        refusal: Refusal,
    },
}

/// When one job would start and end.
///
/// # Errors
/// If the scenario cannot be, or the job would never start.
pub fn predict(scenario: &Scenario, target: JobId) -> Result<Predicted, ForwardError> {
    let is_there = scenario.running.iter().any(|placed| placed.job == target)
        || scenario.waiting.iter().any(|waiting| waiting.0 == target);
    if !is_there {
        return Err(ForwardError::Unknown(target));
    }
    let planned = play(scenario, Some(target))?;
    let PlannedJob { start, end, .. } = planned.last().copied().expect("the target ends last");
    Ok(Predicted { wait: start.since(scenario.now), execution: end.since(start) })
}

/// When every job that executes or waits would start and end, in the order of ends. Those that execute start at the instant of the scenario.
///
/// # Errors
/// If the scenario cannot be, or a job would never start.
pub fn plan(scenario: &Scenario) -> Result<Vec<PlannedJob>, ForwardError> {
    play(scenario, None)
}

/// Plays until the target has ended, or all have.
fn play(scenario: &Scenario, target: Option<JobId>) -> Result<Vec<PlannedJob>, ForwardError> {
    let Scenario { cluster, usage, running, .. } = scenario;
    let local = usage.iter().map(|&usage| LocalLoad::constant(usage)).collect();
    let platform = Platform::new(std::slice::from_ref(cluster))?.with_local(local)?;
    let mut shared: Shared<(JobId, Time)> = Shared::new(platform, scenario.estimate.clone());
    let mut now = scenario.now;
    for Placed { job, demand, nodes, done } in running {
        shared.resume(now, *job, *demand, nodes, *done, (*job, now))?;
    }
    let (mut waiting, mut planned) = (scenario.waiting.clone(), Vec::new());
    loop {
        select(&mut shared, now, &mut waiting, scenario.selection)?;
        let Some(at) = shared.next_end() else { return Ok(planned) };
        now = at;
        loop {
            let is_used = |&node: &u32| usage[node as usize] != NOBODY;
            let next = shared.running().next();
            let local_nodes = next.map_or(0, |next| next.nodes().filter(is_used).count() as u32);
            let Some(due) = shared.pop_due(now) else { break };
            let (job, start) = due.what;
            planned.push(PlannedJob { job, start, end: due.at, local_nodes });
            if Some(job) == target {
                return Ok(planned);
            }
        }
    }
}

/// Starts what may start, in place of lines 9 to 13.
fn select(
    shared: &mut Shared<(JobId, Time)>,
    now: Time,
    waiting: &mut Vec<(JobId, Demand)>,
    selection: Selection,
) -> Result<(), ForwardError> {
    let (mut refused, mut blocked) = (None, false);
    let mut error = None;
    waiting.retain(|&(job, demand)| {
        if blocked || error.is_some() {
            return true;
        }
        match shared.start(now, 0, job, demand, (job, now)) {
            Ok(_) => return false,
            Err(refusal @ Refusal::Full { .. }) => {
                refused = refused.or(Some((job, refusal)));
                blocked = selection == Selection::Fcfs;
            }
            Err(refusal) => error = Some((job, refusal)),
        }
        true
    });
    // Whoever does not fit where nothing executes never will.
    let never = error.or(refused.filter(|_| shared.is_empty()));
    never.map_or(Ok(()), |(job, refusal)| Err(ForwardError::Never { job, refusal }))
}
