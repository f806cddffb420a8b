//! All sites under their own queues: each must decide as if it were alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use proptest::prelude::*;
use scheduler::local::{LocalGrid, LocalQueue, replay};
use scheduler::{
    Grid, JobId, JobSpec, Labels, LocalScheduler, Pass, Policy, SiteId, Span, Start, Submit, Time, TimedJob,
};

const SITES: [u32; 4] = [8, 2, 4, 4];

proptest! {
    #[test]
    fn each_site_of_a_grid_decides_as_if_it_were_alone(
        jobs in prop::collection::vec((0i64..60, 1u32..=8, 1i64..20, 0i64..10), 1..80),
        scheduler in prop::sample::select(LocalScheduler::ALL.to_vec()),
        submit in prop::sample::select(vec![Submit::Home, Submit::Origin]),
    ) {
        let grid = Grid::of_sizes(&SITES).unwrap();
        let jobs: Vec<TimedJob> = jobs.into_iter().enumerate().map(|(id, job)| timed(id as u64, job)).collect();

        let together = run(LocalGrid::new(grid.clone(), scheduler, Pass::Batch).submitting(submit), &jobs);

        let mut alone = BTreeMap::new();
        for site in grid.sites() {
            let home = |job: &JobSpec| grid.home(job.processors).unwrap();
            let fits = |job: &JobSpec| grid.site(job.origin).processors >= job.processors;
            let goes = |job: &JobSpec| match submit {
                Submit::Origin if fits(job) => job.origin,
                _ => home(job),
            };
            let is_here = |job: &&TimedJob| goes(&job.spec) == site.id;
            let local: Vec<TimedJob> = jobs.iter().filter(is_here).copied().collect();
            let starts = replay(LocalQueue::new(scheduler, Pass::Batch, site.processors), &local);
            alone.extend(starts.into_iter().map(|(job, start)| (job, (site.id, start))));
        }
        prop_assert_eq!(together, alone);
    }
}

/// Where and when each job starts.
fn run(mut policy: LocalGrid, jobs: &[TimedJob]) -> BTreeMap<JobId, (SiteId, Time)> {
    let run_times: BTreeMap<JobId, Span> = jobs.iter().map(|job| (job.spec.id, job.run_time)).collect();
    let mut coming: Vec<JobSpec> = jobs.iter().map(|job| job.spec).collect();
    coming.sort_by_key(|job| Reverse(job.key()));
    let mut ends: BinaryHeap<Reverse<(Time, JobId)>> = BinaryHeap::new();
    let mut started = BTreeMap::new();
    let mut starts: Vec<Start> = Vec::new();
    loop {
        let end = ends.peek().map(|&Reverse((time, _))| time);
        let next = coming.last().map(|job| job.submit);
        let Some(now) = [end, next, policy.wake_at()].into_iter().flatten().min() else { break };
        while ends.peek().is_some_and(|Reverse((time, _))| *time == now) {
            let Reverse((_, job)) = ends.pop().expect("there is one");
            policy.completed(now, job);
        }
        while let Some(job) = coming.pop_if(|job| job.submit == now) {
            policy.submitted(now, job);
        }
        policy.decide(now, &mut starts);
        for start in starts.drain(..) {
            ends.push(Reverse((now + run_times[&start.job.id], start.job.id)));
            started.insert(start.job.id, (start.site, now));
        }
    }
    assert_eq!(policy.waiting(), 0, "every job starts");
    started
}

fn timed(id: u64, (submit, processors, run, slack): (i64, u32, i64, i64)) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors,
        requested: Span::from_secs(run + slack),
        labels: Labels::UNKNOWN,
        origin: SiteId::from_index(id as usize % SITES.len()),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(run) }
}
