//! Transcripts of small grids: who says what to whom, and what starts when, line by line.
//!
//! Jobs are written `id:width,run[,submit]`. The worked examples E1 to E6 and their variants with delay are those
//! of the algorithm's description (docs/THEORY.md, "Worked examples").

use std::sync::Arc;

use links::Model;
use protocol::Options;
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, Steal, Strategy, Submit, Threshold, Time,
    TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig};

/// Starts at each site as `M1: 1[0,4) 2[4,8)`, in order of start, then id.
fn schedule(sizes: &[u32], jobs: &str, delay: i64) -> Vec<String> {
    schedule_with(sizes, jobs, delay, Options::default())
}

fn schedule_with(sizes: &[u32], jobs: &str, delay: i64, options: Options) -> Vec<String> {
    let (jobs, log) = run(sizes, jobs, delay, options);
    let mut sites = vec![Vec::new(); sizes.len()];
    for event in &log {
        if let EventKind::Started { job, .. } = event.kind {
            let run = jobs.iter().find(|timed| timed.spec.id == job).expect("it is ours").run_time;
            sites[event.site.index()].push((event.at, job, event.at + run));
        }
    }
    sites
        .into_iter()
        .enumerate()
        .map(|(index, mut starts)| {
            starts.sort_unstable();
            let starts: Vec<String> =
                starts.iter().map(|(start, job, end)| format!("{job}[{start},{end})")).collect();
            format!("M{}: {}", index + 1, starts.join(" "))
        })
        .collect()
}

fn run(sizes: &[u32], jobs: &str, delay: i64, options: Options) -> (Vec<TimedJob>, Vec<Event>) {
    let grid = Arc::new(Grid::of_sizes(sizes).expect("a grid"));
    let mut jobs: Vec<TimedJob> = jobs.split_whitespace().map(parse).collect();
    jobs.sort_by_key(|job| job.spec.key());
    let steal = Strategy::Steal(Steal::with_threshold(Threshold::HALF));
    let mut config = SimulationConfig::new(grid, steal);
    config.network = Model::constant(Span::from_secs(delay));
    config.options = options;
    config.checks = Checks::Full;
    let mut log = Vec::new();
    Simulation::new(config, &jobs).run(&mut |event| log.push(*event)).expect("no violation");
    (jobs, log)
}

fn parse(text: &str) -> TimedJob {
    let (id, rest) = text.split_once(':').expect("id:width,run[,submit]");
    let numbers: Vec<i64> = rest.split(',').map(|number| number.parse().expect("a number")).collect();
    let submit = Time::from_secs(numbers.get(2).copied().unwrap_or(0));
    let spec = JobSpec {
        id: JobId(id.parse().expect("a number")),
        submit,
        processors: numbers[0] as u32,
        requested: Span::from_secs(numbers[1]),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(numbers[1]) }
}

const E1: (&[u32], &str) = (&[2, 8], "1:2,4 2:2,4 3:1,3 4:6,5 5:3,2 6:4,2");
const E2: (&[u32], &str) = (&[4, 4], "1:4,3 2:3,2 3:3,2 4:2,4 5:1,1 6:2,2");
const E3: (&[u32], &str) = (&[6, 7, 8], "1:6,2 2:6,2 3:5,3 4:4,4 5:7,1 6:8,1 7:2,5");
const E4: (&[u32], &str) = (&[8], "1:5,2 2:5,2 3:3,2 4:3,2");
const E5: (&[u32], &str) = (&[8], "1:1,10,0 2:8,2,1 3:4,3,1");
const E6: (&[u32], &str) = (&[4, 8], "1:2,4 2:2,4 3:2,4 4:2,4 5:6,3,1 6:2,2,2 7:3,2,2");

#[test]
fn worked_examples_without_delay() {
    assert_eq!(schedule(E1.0, E1.1, 0), ["M1: 1[0,4) 2[4,8)", "M2: 4[0,5) 3[5,8) 5[5,7) 6[5,7)"]);
    assert_eq!(schedule(E2.0, E2.1, 0), ["M1: 1[0,3) 4[3,7) 6[3,5)", "M2: 2[0,2) 3[2,4) 5[2,3)"]);
    assert_eq!(
        schedule(E3.0, E3.1, 0),
        ["M1: 1[0,2) 4[2,6) 7[2,7)", "M2: 5[0,1) 2[1,3)", "M3: 6[0,1) 3[1,4)"]
    );
    assert_eq!(schedule(E4.0, E4.1, 0), ["M1: 1[0,2) 2[2,4) 3[2,4) 4[4,6)"]);
    assert_eq!(schedule(E5.0, E5.1, 0), ["M1: 1[0,10) 2[10,12) 3[12,15)"]);
    assert_eq!(schedule(E6.0, E6.1, 0), ["M1: 1[0,4) 2[0,4) 7[4,6)", "M2: 3[0,4) 4[0,4) 5[4,7) 6[4,6)"]);
}

#[test]
fn worked_examples_with_a_delay_of_one_second() {
    assert_eq!(schedule(E1.0, E1.1, 1), ["M1: 1[0,4) 2[4,8)", "M2: 4[0,5) 5[5,7) 6[5,7) 3[7,10)"]);
    assert_eq!(schedule(E6.0, E6.1, 1), ["M1: 1[0,4) 2[0,4) 7[4,6)", "M2: 5[1,4) 3[5,9) 4[6,10) 6[6,8)"]);
}

/// Job 2 would start at home at 4 and at the other site at 3; job 3 would at home wait for both.
#[test]
fn stealing_with_a_margin_leaves_a_job_that_starts_soon_anyway_at_home() {
    let (sizes, jobs) = (&[2, 2], "1:2,4 2:2,20 3:2,5,3");
    let margin = |seconds| Options { margin: Some(Span::from_secs(seconds)), ..Options::default() };

    assert_eq!(schedule(sizes, jobs, 1), ["M1: 1[0,4) 3[4,9)", "M2: 2[3,23)"]);
    assert_eq!(schedule_with(sizes, jobs, 1, margin(10)), ["M1: 1[0,4) 2[4,24)", "M2: 3[4,9)"]);
    // Nothing here is worth a minute.
    assert_eq!(schedule_with(sizes, jobs, 1, margin(60)), ["M1: 1[0,4) 2[4,24) 3[24,29)", "M2: "]);
}

/// Messages and starts, one line each.
fn transcript(sizes: &[u32], jobs: &str, delay: i64) -> String {
    let (_, log) = run(sizes, jobs, delay, Options::default());
    let mut lines = String::new();
    for event in log {
        let what = match event.kind {
            EventKind::Sent { to, message, .. } => format!("> M{to} {}", message.name()),
            EventKind::Started { job, .. } => format!("starts {job}"),
            EventKind::Granted { job, to, .. } => format!("grants {job} to M{to}"),
            EventKind::Declined { job, .. } => format!("declines {job}"),
            _ => continue,
        };
        lines += &format!("{} M{} {what}\n", event.at, event.site);
    }
    lines
}

#[test]
fn two_sites_steal_across_a_delay() {
    assert_eq!(
        transcript(E1.0, E1.1, 1),
        "\
0 M1 starts 1
0 M1 > M2 notice
0 M2 starts 4
1 M2 > M1 seen
4 M1 starts 2
5 M2 starts 5
5 M2 starts 6
5 M2 > M1 request
6 M1 grants 3 to M2
6 M1 > M2 grant
7 M2 starts 3
7 M2 > M1 reply
"
    );
}

#[test]
fn a_standing_request_is_served_in_one_delay() {
    assert_eq!(
        transcript(E6.0, E6.1, 1),
        "\
0 M1 starts 1
0 M1 starts 2
0 M1 > M2 notice
1 M2 > M1 seen
1 M2 starts 5
1 M2 > M1 request
2 M1 > M2 no_work
4 M1 starts 7
4 M1 > M2 notice
4 M2 > M1 request
4 M1 grants 3 to M2
4 M1 > M2 grant
5 M2 > M1 seen
5 M1 grants 4 to M2
5 M1 grants 6 to M2
5 M1 > M2 grant
5 M2 starts 3
5 M2 > M1 reply
6 M2 starts 4
6 M2 starts 6
6 M2 > M1 reply
"
    );
}

/// What the price of each stolen job is read off: requests with the age of what was known, and why a job was granted.
#[test]
fn events_tell_what_a_steal_cost() {
    let (_, log) = run(E6.0, E6.1, 1, Options::default());
    let mut lines = String::new();
    for event in log {
        let what = match event.kind {
            EventKind::Requested { victim, seq, view_age, .. } => {
                let age = view_age.map_or("nothing".to_string(), |age| age.to_string());
                format!("asks M{victim} by request {seq}, knowing what is {age} old")
            }
            EventKind::Granted { job, cause, request, .. } => {
                format!("grants {job} by {cause:?} {request}")
            }
            EventKind::Accepted { job, .. } => format!("takes {job}"),
            EventKind::Started { job, hops: 1.., .. } => format!("starts {job}"),
            _ => continue,
        };
        lines += &format!("{} M{} {what}\n", event.at, event.site);
    }
    assert_eq!(
        lines,
        "\
1 M2 asks M1 by request 1, knowing what is 0 old
4 M2 asks M1 by request 2, knowing what is 2 old
4 M1 grants 3 by Standing 0
5 M1 grants 4 by Request 2
5 M1 grants 6 by Request 2
5 M2 takes 3
5 M2 starts 3
6 M2 takes 4
6 M2 starts 4
6 M2 takes 6
6 M2 starts 6
"
    );
}

#[test]
fn without_exchange_a_job_stays_where_its_user_submits_it() {
    let grid = Arc::new(Grid::of_sizes(&[2, 8]).expect("a grid"));
    let mut config = SimulationConfig::new(grid, Strategy::Local);
    config.submit = Submit::Origin;
    config.network = Model::constant(Span::from_secs(3));
    config.checks = Checks::Full;
    // Job 1 would be at home at site 1; job 2 does not fit where its user is.
    let mut jobs = [parse("1:1,4"), parse("2:5,4,1")];
    jobs[0].spec.origin = SiteId(2);
    let mut starts = Vec::new();

    Simulation::new(config, &jobs)
        .run(&mut |event| {
            if let EventKind::Started { job, .. } = event.kind {
                starts.push((job.0, event.site.0, event.at));
            }
        })
        .expect("no violation");

    assert_eq!(starts, [(1, 2, Time::ZERO), (2, 2, Time::from_secs(4))]);
}
