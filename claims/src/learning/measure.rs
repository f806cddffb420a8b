//! Runs of tasks, and what is measured of them.

use std::cell::Cell;

use analysis::statistics::{mean, standard_deviation};
use brokers::ideal::Dispatched;
use scheduler::{Event, EventKind, Grid, Pass, Span, Time, TimedJob};
use simulator::reference::run_while;

use super::{Ratio, Row, Unused};

/// A task that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub(super) submit: Time,
    pub(super) start: Time,
    pub(super) end: Time,
    /// The place of its site.
    pub(super) place: usize,
}

/// Runs until the last task ended; local users would go on. Tasks are numbered from 1 and were submitted at these times.
pub(super) fn simulated(
    policy: &mut Dispatched,
    jobs: &[TimedJob],
    grid: &Grid,
    submits: &[Time],
) -> Result<Vec<Ran>, String> {
    let tasks = submits.len();
    let left = Cell::new(tasks);
    let mut ran: Vec<Ran> =
        submits.iter().map(|&submit| Ran { submit, start: submit, end: submit, place: 0 }).collect();
    let mut see = |event: Event| match event.kind {
        EventKind::Started { job, .. } if job.0 <= tasks as u64 => ran[job.0 as usize - 1].start = event.at,
        EventKind::Completed { job, .. } if job.0 <= tasks as u64 => {
            left.set(left.get() - 1);
            let task = &mut ran[job.0 as usize - 1];
            (task.end, task.place) = (event.at, grid.rank(event.site));
        }
        _ => {}
    };
    let done = run_while(policy, jobs, grid, Pass::Batch, &mut see, &|| left.get() == 0);
    done.map_err(|error| error.to_string())?;
    match left.get() {
        0 => Ok(ran),
        left => Err(format!("{left} tasks never ended; this is a mistake of the program")),
    }
}

/// Means over tasks that ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    makespan_s: f64,
    idleness_percent: f64,
    recalled: u64,
    pub(super) response_s: f64,
    response_ratio: f64,
    wait_s: f64,
    imbalance: f64,
}

/// Of at least one task, the last of which ends after time 0.
pub(super) fn measured(
    (unused, ratio_of): (Unused, Ratio),
    grid: &Grid,
    ran: &[Ran],
    recalled: u64,
) -> Measured {
    let mut last = vec![None::<Time>; grid.len()];
    let mut busy_s = vec![0.0; grid.len()];
    let (mut response_s, mut ratio, mut wait_s) = (0.0, 0.0, 0.0);
    for task in ran {
        last[task.place] = last[task.place].max(Some(task.end));
        let turnaround = task.end.since(task.submit).as_secs_f64();
        let execution = task.end.since(task.start).as_secs_f64();
        busy_s[task.place] += execution;
        response_s += turnaround;
        wait_s += task.start.since(task.submit).as_secs_f64();
        ratio += match ratio_of {
            Ratio::Printed => execution / turnaround,
            Ratio::Inverse => turnaround / execution,
        };
    }
    let makespan = last.iter().flatten().max().map_or(Span::ZERO, |end| end.since(Time::ZERO));
    let (makespan_s, tasks) = (makespan.as_secs_f64(), ran.len() as f64);
    let shares: Vec<f64> =
        busy_s.iter().zip(grid.sizes()).map(|(busy_s, &size)| busy_s / f64::from(size)).collect();
    Measured {
        makespan_s,
        idleness_percent: idleness(&last, makespan_s, unused),
        recalled,
        response_s: response_s / tasks,
        response_ratio: ratio / tasks,
        wait_s: wait_s / tasks,
        imbalance: imbalance(&shares),
    }
}

impl Measured {
    /// As it is stored.
    pub(super) fn row(self, experiment: &str, scenario: &str, rule: &str, round: u64, sites: usize) -> Row {
        Row {
            experiment: experiment.to_string(),
            scenario: scenario.to_string(),
            rule: rule.to_string(),
            round,
            sites,
            makespan_s: rounded(self.makespan_s),
            idleness_percent: rounded(self.idleness_percent),
            recalled: self.recalled,
            response_s: rounded(self.response_s),
            response_ratio: rounded(self.response_ratio),
            wait_s: rounded(self.wait_s),
            imbalance: rounded(self.imbalance),
        }
    }
}

/// To what is stored: five digits behind the point.
fn rounded(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

/// The mean over sites of the time behind their last job, in percent of the makespan, which is positive.
fn idleness(last: &[Option<Time>], makespan_s: f64, unused: Unused) -> f64 {
    let of = |end: &Time| 100.0 * (1.0 - end.as_secs_f64() / makespan_s);
    let used: Vec<f64> = last.iter().flatten().map(of).collect();
    let idle = match unused {
        Unused::Idle => last.len() - used.len(),
        Unused::LeftOut => 0,
    };
    (used.iter().sum::<f64>() + 100.0 * idle as f64) / (used.len() + idle) as f64
}

/// The standard deviation as a part of the mean; 0 of equal ones, and where nothing is.
fn imbalance(shares: &[f64]) -> f64 {
    match (mean(shares), standard_deviation(shares)) {
        (Some(mean), Some(deviation)) if mean > 0.0 => deviation / mean,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_is_the_tail_of_each_site() {
        let at = |seconds| Some(Time::from_secs(seconds));
        assert_eq!(idleness(&[at(100), at(50), None], 100.0, Unused::Idle), 50.0);
        assert_eq!(idleness(&[at(100), at(50), None], 100.0, Unused::LeftOut), 25.0);
    }

    #[test]
    fn imbalance_is_a_part_of_the_mean() {
        assert_eq!(imbalance(&[2.0, 2.0, 2.0]), 0.0);
        assert_eq!(imbalance(&[1.0, 2.0, 3.0]), 0.5);
        assert_eq!(imbalance(&[0.0, 0.0]), 0.0);
    }
}
