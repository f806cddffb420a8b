//! A broker that never comes back: who gets what waits there, and what its users submit from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use links::Cut;
use links::model::Between;
use protocol::Failover;
use scheduler::{EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};
use simulator::faults::{Fault, Scenario};
use simulator::swarm::{self, Trial};

use crate::behind_brokers;

const SITES: u32 = 2;

/// Two sites of 4 and 8 processors, some brokers, and a job every 20 s of which the first broker gets the odd ones. From 10 s on
/// it hears of no site, so that jobs wait there, and at 400 s it dies.
fn scenario(brokers: usize, failover: Failover) -> Scenario {
    let sites = (1..=SITES).map(|number| (format!("site{number}"), 4 * number));
    let brokers = (1..=brokers).map(|number| (format!("broker{number}"), None));
    let grid = Arc::new(Grid::with_brokers(sites, brokers).expect("names differ"));
    let job = |number: u64| TimedJob {
        spec: JobSpec {
            id: JobId(number),
            submit: Time::from_secs(100 + 20 * number as i64),
            processors: 1 + (number * 5 % 8) as u32,
            requested: Span::from_secs(60),
            labels: Labels::UNKNOWN,
            origin: SiteId(1 + (1 - number % 2) as u32),
            payload: 0,
        },
        run_time: Span::from_secs(30),
    };
    let first = SiteId(SITES + 1);
    let sites: BTreeSet<SiteId> = (1..=SITES).map(SiteId).collect();
    let cut = |from: BTreeSet<SiteId>, to: BTreeSet<SiteId>| {
        let between = Between::OneWay { from: Some(from), to: Some(to) };
        Fault::Cut(Cut { at: Time::from_secs(10), until: Time::from_secs(400), between })
    };
    let jobs = (1..=60).map(job).collect();
    let mut scenario = behind_brokers::scenario(grid, jobs, "broker:mpl", 2_000);
    scenario.options.broker.failover = failover;
    scenario.faults = vec![
        cut(BTreeSet::from([first]), sites.clone()),
        cut(sites, BTreeSet::from([first])),
        Fault::Crash { site: first, at: Time::from_secs(400), down: None, written_percent: 100, torn: None },
    ];
    scenario.healed = Some(Time::from_secs(1_500));
    scenario
}

/// Where jobs were taken over, and where they were submitted after the broker died; in numbers.
fn run(scenario: &Scenario) -> (BTreeMap<SiteId, usize>, BTreeMap<SiteId, usize>) {
    let (mut taken, mut submitted, mut ended) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let done = swarm::run_scenario(scenario, Trial::default(), &mut |event| match event.kind {
        EventKind::TookOver { .. } => *taken.entry(event.site).or_default() += 1,
        EventKind::Submitted { .. } if event.at > Time::from_secs(400) => {
            *submitted.entry(event.site).or_default() += 1;
        }
        EventKind::Completed { job, .. } => drop(ended.insert(job)),
        _ => {}
    });
    done.unwrap_or_else(|broken| panic!("{broken}"));
    assert_eq!(ended.len(), scenario.jobs.len());
    (taken, submitted)
}

#[test]
fn the_next_broker_takes_over_what_waits_and_what_comes() {
    let (taken, submitted) = run(&scenario(2, Failover::Next));
    let second = SiteId(SITES + 2);
    assert_eq!(taken.keys().copied().collect::<Vec<_>>(), [second]);
    assert!(taken[&second] > 5, "{taken:?}");
    assert_eq!(submitted.keys().copied().collect::<Vec<_>>(), [second]);
}

#[test]
fn sites_stand_in_for_a_broker_if_so_configured_or_if_there_is_no_other() {
    for (brokers, failover) in [(2, Failover::Local), (1, Failover::Next), (1, Failover::Local)] {
        let (taken, submitted) = run(&scenario(brokers, failover));
        let sites = [SiteId(1), SiteId(2)];
        assert_eq!(taken.keys().copied().collect::<Vec<_>>(), sites, "{brokers} {failover:?}");
        let of_sites: usize = sites.iter().filter_map(|site| submitted.get(site)).sum();
        assert!(of_sites > 10, "{submitted:?}");
        assert!(!submitted.contains_key(&SiteId(SITES + 1)), "{submitted:?}");
    }
}
