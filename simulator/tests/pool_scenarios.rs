//! Transcripts of the exchange through a global queue: who says what to whom, and what starts when, line by line.
//!
//! Jobs are written `id:submit,width,run,estimate,origin`. Grids have two sites of 6 processors (P5) or three sites;
//! schedules without delay are those of the ideal (`tests/tests/equality.rs`).

use std::sync::Arc;

use links::Model;
use scheduler::event::ReleaseReason;
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, StrategySpec, Submit, Time, TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig};

/// Two sites fall idle at once, and both would take the job that waits.
const P5: (&[u32], &str) = (&[6, 6], "1:1,5,4,4,2 2:3,4,5,5,2 3:2,5,3,5,1");

/// Site 3 alone is wide enough for job 1 of site 2; site 1 decides.
const WIDE: (&[u32], &str) = (&[2, 2, 4], "1:0,3,5,5,2");

#[test]
fn a_host_assigns_and_the_owner_awards() {
    assert_eq!(
        transcript("pool:list", WIDE, 1),
        "\
0 M2 offers 1
0 M2 > M1 board
1 M1 > M2 assign
2 M2 grants 1 to M3
2 M2 > M3 award
2 M2 > M1 board
3 M3 starts 1
3 M3 > M2 reply
3 M3 > M1 board
8 M3 > M1 board
"
    );
}

#[test]
fn a_claim_is_granted_in_two_delays() {
    assert_eq!(
        transcript("pool:list,via=gossip", WIDE, 1),
        "\
0 M2 offers 1
0 M2 > M1 board
0 M2 > M3 board
1 M3 claims 1 of M2
1 M3 > M2 claim
1 M3 > M1 board
1 M3 > M2 board
2 M2 grants 1 to M3
2 M2 > M3 award
2 M2 > M1 board
2 M2 > M3 board
3 M3 starts 1
3 M3 > M2 reply
8 M3 > M1 board
8 M3 > M2 board
"
    );
}

#[test]
fn without_delay_everybody_decides_alike() {
    for strategy in ["pool:list", "pool:list,via=gossip"] {
        assert_eq!(starts(strategy, P5), "1@1/2 3@2/1 2@5/1", "{strategy}");
    }
}

#[test]
fn without_demand_an_owner_starts_what_the_ideal_gives_to_another() {
    assert_eq!(starts("pool:list,via=gossip,demand=off", P5), "1@1/2 3@2/1 2@5/2");
}

#[test]
fn one_of_two_claims_to_the_same_job_is_denied() {
    // Sites 2 and 3 are alike and near the end of their jobs; the job of site 1 fits both. Delayed boards hide from
    // each that the other is idle, too.
    let jobs = "1:0,4,5,5,2 2:0,4,5,5,3 3:1,3,4,4,1";
    assert_eq!(
        transcript("pool:list,via=gossip", (&[2, 4, 4], jobs), 1)
            .lines()
            .filter(|line| !line.ends_with("board"))
            .collect::<Vec<_>>(),
        [
            "0 M2 starts 1",
            "0 M3 starts 2",
            "1 M1 offers 3",
            "5 M2 claims 3 of M1",
            "5 M2 > M1 claim",
            "5 M3 claims 3 of M1",
            "5 M3 > M1 claim",
            "6 M1 grants 3 to M2",
            "6 M1 > M2 award",
            "6 M1 denies 3 to M3",
            "6 M1 > M3 deny",
            "7 M2 starts 3",
            "7 M2 > M1 reply",
            "7 M3 releases 3",
        ]
    );
}

fn starts(strategy: &str, example: (&[u32], &str)) -> String {
    let starts = run(strategy, example, 0).into_iter().filter_map(|event| match event.kind {
        EventKind::Started { job, .. } => Some(format!("{job}@{}/{}", event.at, event.site)),
        _ => None,
    });
    starts.collect::<Vec<_>>().join(" ")
}

fn transcript(strategy: &str, example: (&[u32], &str), delay: i64) -> String {
    let mut lines = String::new();
    for event in run(strategy, example, delay) {
        let what = match event.kind {
            EventKind::Sent { to, message, .. } => format!("> M{to} {}", message.name()),
            EventKind::Started { job, .. } => format!("starts {job}"),
            EventKind::Offered { job, .. } => format!("offers {job}"),
            EventKind::Granted { job, to, .. } => format!("grants {job} to M{to}"),
            EventKind::Declined { job, .. } => format!("declines {job}"),
            EventKind::Claimed { job, owner, .. } => format!("claims {job} of M{owner}"),
            EventKind::Denied { job, claimant, .. } => format!("denies {job} to M{claimant}"),
            EventKind::Released { job, reason, .. } if reason != ReleaseReason::Granted => {
                format!("releases {job}")
            }
            _ => continue,
        };
        lines += &format!("{} M{} {what}\n", event.at, event.site);
    }
    lines
}

fn run(strategy: &str, (sizes, jobs): (&[u32], &str), delay: i64) -> Vec<Event> {
    let spec: StrategySpec = strategy.parse().expect("a strategy");
    let mut jobs: Vec<TimedJob> = jobs.split_whitespace().map(parse).collect();
    jobs.sort_by_key(|job| job.spec.key());
    let mut config = SimulationConfig::new(Arc::new(Grid::of_sizes(sizes).expect("a grid")), spec.strategy);
    config.submit = Submit::Origin;
    config.network = Model::constant(Span::from_secs(delay));
    config.checks = Checks::Full;
    let mut log = Vec::new();
    Simulation::new(config, &jobs).run(&mut |event| log.push(*event)).expect("no violation");
    log
}

fn parse(text: &str) -> TimedJob {
    let (id, rest) = text.split_once(':').expect("id:submit,width,run,estimate,origin");
    let numbers: Vec<i64> = rest.split(',').map(|number| number.parse().expect("a number")).collect();
    let spec = JobSpec {
        id: JobId(id.parse().expect("a number")),
        submit: Time::from_secs(numbers[0]),
        processors: numbers[1] as u32,
        requested: Span::from_secs(numbers[3]),
        labels: Labels::UNKNOWN,
        origin: SiteId(numbers[4] as u32),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(numbers[2]) }
}
