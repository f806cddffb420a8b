//! Slow, obviously right twins of the local schedulers: whole seconds, vectors, everything computed anew.

use std::collections::BTreeMap;

use scheduler::{JobId, LocalScheduler, Pass, Time, TimedJob};

/// A job in whole seconds.
#[derive(Clone, Copy, Debug)]
struct Job {
    id: u64,
    submit: i64,
    width: u32,
    estimate: i64,
    run: i64,
}

/// A job with its start.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: Job,
    start: i64,
}

impl Running {
    fn estimated_end(&self) -> i64 {
        self.start + self.job.estimate
    }

    fn end(&self) -> i64 {
        self.start + self.job.run
    }
}

/// The two ways of conservative backfilling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conservative {
    /// Reservations are kept, and move to earlier holes after terminations.
    Compress,
    /// Reservations are made anew at every pass.
    Replan,
}

/// FCFS, LIST and both kinds of EASY. Starts by id.
pub(crate) fn in_order(
    scheduler: LocalScheduler,
    pass: Pass,
    site: u32,
    jobs: &[TimedJob],
) -> Vec<(JobId, Time)> {
    run(pass, jobs, |now, _, waiting, running| {
        let mut chosen: Vec<Job> = Vec::new();
        let busy = |chosen: &[Job]| {
            let old = running.iter().filter(|other| !gone(pass, other, now)).map(|other| other.job.width);
            old.chain(chosen.iter().map(|job| job.width)).sum::<u32>()
        };
        let mut queue: Vec<Job> = waiting.to_vec();
        while !queue.is_empty() && busy(&chosen) + queue[0].width <= site {
            chosen.push(queue.remove(0));
        }
        if queue.is_empty() || scheduler == LocalScheduler::Fcfs {
            return chosen;
        }
        let head = queue.remove(0);
        loop {
            let fits = |job: &&Job| busy(&chosen) + job.width <= site;
            // The reservation is looked up again for each candidate, with what was chosen before it running.
            let harmless = |job: &&Job| {
                if scheduler == LocalScheduler::List {
                    return true;
                }
                let mut ends: Vec<(i64, u32)> = running
                    .iter()
                    .filter(|other| !gone(pass, other, now))
                    .map(|other| (other.estimated_end(), other.job.width))
                    .collect();
                ends.extend(chosen.iter().map(|job| (now + job.estimate, job.width)));
                let free_at =
                    |time: i64| site - ends.iter().filter(|end| end.0 > time).map(|end| end.1).sum::<u32>();
                let shadow = ends
                    .iter()
                    .map(|end| end.0)
                    .filter(|&end| free_at(end) >= head.width)
                    .min()
                    .expect("an idle site is wide enough");
                now + job.estimate <= shadow || free_at(shadow) >= head.width + job.width
            };
            let mut candidates = queue.iter().filter(fits).filter(harmless);
            let next = match scheduler {
                LocalScheduler::EasyBestFit => {
                    let fill = |job: &&Job| (i64::from(job.width) * job.estimate, job.width);
                    candidates
                        .max_by(|a, b| fill(a).cmp(&fill(b)).then((b.submit, b.id).cmp(&(a.submit, a.id))))
                }
                LocalScheduler::EasyShortest => {
                    candidates.min_by_key(|job| (job.estimate, job.submit, job.id))
                }
                LocalScheduler::EasySmallest => candidates.min_by_key(|job| (job.width, job.submit, job.id)),
                _ => candidates.next(),
            };
            let Some(next) = next.copied() else { return chosen };
            queue.retain(|job| job.id != next.id);
            chosen.push(next);
        }
    })
}

/// Conservative backfilling on one count of free processors per second. Starts by id.
pub(crate) fn conservative(
    kind: Conservative,
    pass: Pass,
    site: u32,
    jobs: &[TimedJob],
) -> Vec<(JobId, Time)> {
    let mut plan: Vec<Running> = Vec::new();
    // Of what is planned for one instant that starts first which was planned first: jobs that started together end in that
    // order, and with a pass after each end it decides.
    let (mut planned, mut counter) = (BTreeMap::new(), 0);
    let mut note = move |planned: &mut BTreeMap<u64, u64>, job: u64| {
        counter += 1;
        planned.insert(job, counter);
    };
    run(pass, jobs, move |now, ended, waiting, running| {
        let running: Vec<Running> = running.iter().copied().filter(|other| !gone(pass, other, now)).collect();
        let hole = |job: Job, others: &[Running]| {
            let free = |second: i64| {
                let all = running.iter().chain(others);
                let busy = all.filter(|other| other.start <= second && second < other.estimated_end());
                i64::from(site) - busy.map(|other| i64::from(other.job.width)).sum::<i64>()
            };
            (now..)
                .find(|&start| (start..start + job.estimate).all(|t| free(t) >= i64::from(job.width)))
                .expect("everything ends")
        };
        plan.retain(|planned| waiting.iter().any(|job| job.id == planned.job.id));
        if kind == Conservative::Replan {
            plan.clear();
        } else if ended {
            plan.sort_by_key(|planned| (planned.job.submit, planned.job.id));
            for index in 0..plan.len() {
                if plan[index].start > now {
                    let mut others = plan.clone();
                    let before = others.remove(index);
                    let start = hole(before.job, &others);
                    assert!(start <= before.start, "a planned start never gets later");
                    if start < before.start {
                        plan[index].start = start;
                        note(&mut planned, before.job.id);
                    }
                }
            }
        }
        for &job in waiting {
            if !plan.iter().any(|planned| planned.job.id == job.id) {
                let start = hole(job, &plan);
                plan.push(Running { job, start });
                note(&mut planned, job.id);
            }
        }
        let mut starts: Vec<Job> = plan.iter().filter(|one| one.start == now).map(|one| one.job).collect();
        starts.sort_by_key(|job| planned[&job.id]);
        starts
    })
}

/// Whether a running job counts as ended although its end was not told: with a pass per event, at its
/// estimated end.
fn gone(pass: Pass, other: &Running, now: i64) -> bool {
    pass == Pass::PerEvent && other.estimated_end() == now
}

/// Second by second: facts, then a pass; with a pass per event, a pass after each fact. A pass without facts
/// changes nothing for schedulers without a plan, and is the timer of those with one.
fn run(
    pass: Pass,
    jobs: &[TimedJob],
    mut decide: impl FnMut(i64, bool, &[Job], &[Running]) -> Vec<Job>,
) -> Vec<(JobId, Time)> {
    let seconds = |micros: i64| micros / 1_000_000;
    let mut coming: Vec<Job> = jobs
        .iter()
        .map(|job| Job {
            id: job.spec.id.0,
            submit: seconds(job.spec.submit.as_micros()),
            width: job.spec.processors,
            estimate: seconds(job.spec.requested.as_micros()),
            run: seconds(job.run_time.as_micros()),
        })
        .collect();
    coming.sort_by_key(|job| (job.submit, job.id));
    let mut waiting: Vec<Job> = Vec::new();
    // In start order.
    let mut running: Vec<Running> = Vec::new();
    let mut starts: Vec<(JobId, Time)> = Vec::new();
    let mut now = 0;
    while starts.len() < jobs.len() {
        let mut pass_now = |ended: bool, waiting: &mut Vec<Job>, running: &mut Vec<Running>| {
            for job in decide(now, ended, waiting, running) {
                waiting.retain(|other| other.id != job.id);
                running.push(Running { job, start: now });
                starts.push((JobId(job.id), Time::from_secs(now)));
            }
        };
        if pass == Pass::Batch {
            let before = running.len();
            running.retain(|other| other.end() > now);
            let ended = running.len() < before;
            while coming.first().is_some_and(|job| job.submit == now) {
                waiting.push(coming.remove(0));
            }
            pass_now(ended, &mut waiting, &mut running);
        } else {
            while coming.first().is_some_and(|job| job.submit == now) {
                waiting.push(coming.remove(0));
                pass_now(false, &mut waiting, &mut running);
            }
            while let Some(place) = running.iter().position(|other| other.end() == now) {
                running.remove(place);
                pass_now(true, &mut waiting, &mut running);
            }
            pass_now(false, &mut waiting, &mut running);
        }
        now += 1;
    }
    starts.sort_unstable();
    starts
}
