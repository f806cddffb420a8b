//! Sites that notice late: what is due at one site at one instant is late together, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scheduler::{
    EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, StrategySpec, Submit, Time, TimedJob,
};
use simulator::{Lateness, Simulation, SimulationConfig};

const MOST: Span = Span::from_secs(60);

/// On each of two sites ten jobs of 1000 s every 1000 s, which all start at once.
fn lattice() -> Vec<TimedJob> {
    let mut jobs: Vec<TimedJob> = (0..200u64)
        .map(|id| {
            let run_time = Span::from_secs(1000);
            let spec = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(i64::try_from(id / 20 * 1000).expect("small")),
                processors: 1,
                requested: run_time,
                labels: Labels::UNKNOWN,
                origin: SiteId::from_index(usize::try_from(id % 2).expect("small")),
                payload: 0,
            };
            TimedJob { spec, run_time }
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    jobs
}

/// When each job was submitted, started and ended, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Life {
    site: u32,
    submitted: Time,
    started: Time,
    ended: Time,
}

fn lives(jobs: &[TimedJob], late: Option<Lateness>) -> BTreeMap<JobId, Life> {
    let strategy: StrategySpec = "local".parse().expect("a strategy");
    let mut config =
        SimulationConfig::new(Arc::new(Grid::of_sizes(&[64, 64]).expect("a grid")), strategy.strategy);
    config.submit = Submit::Origin;
    config.late = late;
    let mut lives: BTreeMap<JobId, Life> = BTreeMap::new();
    let mut order = Vec::new();
    Simulation::new(config, jobs)
        .run(&mut |event| {
            let mut note = |job: JobId, set: fn(&mut Life, Time)| {
                let life = lives.entry(job).or_default();
                life.site = event.site.0;
                set(life, event.at);
            };
            match event.kind {
                EventKind::Submitted { job, .. } => {
                    order.push((event.site, job));
                    note(job, |life, at| life.submitted = at);
                }
                EventKind::Started { job, .. } => note(job, |life, at| life.started = at),
                EventKind::Completed { job, .. } => note(job, |life, at| life.ended = at),
                _ => {}
            }
        })
        .expect("it ends");
    for site in [SiteId(1), SiteId(2)] {
        let taken: Vec<JobId> = order.iter().filter(|(at, _)| *at == site).map(|(_, job)| *job).collect();
        assert!(taken.is_sorted(), "each site takes its jobs in queue order");
    }
    lives
}

#[test]
fn jobs_that_end_together_are_late_together_at_each_site_by_itself() {
    let jobs = lattice();
    let lives = lives(&jobs, Some(Lateness { most: MOST, seed: 1 }));

    let mut submitted: BTreeMap<(u32, Time), BTreeSet<Time>> = BTreeMap::new();
    let mut ended: BTreeMap<(u32, Time), BTreeSet<Time>> = BTreeMap::new();
    for job in &jobs {
        let life = lives[&job.spec.id];
        let due = life.started + job.run_time;
        for (noticed, due) in [(life.submitted, job.spec.submit), (life.ended, due)] {
            assert!(noticed >= due && noticed <= due + MOST, "{life:?}");
        }
        submitted.entry((life.site, job.spec.submit)).or_default().insert(life.submitted);
        ended.entry((life.site, due)).or_default().insert(life.ended);
    }
    for instants in [&submitted, &ended] {
        assert_eq!(instants.len(), 20, "ten of each site");
        assert!(instants.values().all(|noticed| noticed.len() == 1), "{instants:?}");
        let apart: BTreeSet<Span> =
            instants.iter().map(|((_, due), noticed)| noticed.first().expect("one").since(*due)).collect();
        assert_eq!(apart.len(), 20, "each is late by something of its own");
    }
}

#[test]
fn a_site_that_is_never_late_does_what_one_without_lateness_does() {
    let jobs = lattice();
    let never = Lateness { most: Span::ZERO, seed: 1 };
    assert_eq!(lives(&jobs, Some(never)), lives(&jobs, None));
}
