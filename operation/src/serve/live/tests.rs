//! What is told of a run that goes on, against a naive reading of its events.

use std::sync::Arc;

use links::Model;
use scheduler::event::{BeginCause, EndCause};
use scheduler::sharing::{Cluster, Fairness, Node, Platform};
use scheduler::{JobSpec, Labels, SharedNodes, StrategySpec};
use simulator::{Simulation, SimulationConfig};

use super::*;

fn jobs(seed: u64, widest: u32) -> Vec<TimedJob> {
    let job = |id: u64| {
        let drawn = id.wrapping_mul(6364136223846793005).wrapping_add(seed * 1442695040888963407) >> 33;
        let run_time = Span::from_secs(1 + (drawn % 50) as i64);
        let spec = JobSpec {
            id: JobId(id),
            submit: Time::from_secs((id * 2) as i64),
            processors: 1 + (drawn / 50 % u64::from(widest)) as u32,
            requested: run_time,
            labels: Labels { user: (id % 3) as i32, ..Labels::UNKNOWN },
            origin: SiteId(1),
            payload: 0,
        };
        TimedJob { spec, run_time }
    };
    (1..=60).map(job).collect()
}

fn events(grid: &Arc<Grid>, jobs: &[TimedJob], strategy: &str) -> Vec<Event> {
    let spec: StrategySpec = strategy.parse().unwrap();
    let mut config = SimulationConfig::new(Arc::clone(grid), spec.strategy);
    config.network = Model::constant(Span::from_secs(3));
    let mut events = Vec::new();
    Simulation::new(config, jobs).run(&mut |event| events.push(*event)).unwrap();
    events
}

fn live(grid: &Grid, jobs: &[TimedJob]) -> Live {
    let about = About { jobs: jobs.len(), ..About::default() };
    Live::new(about, grid, Threshold::HALF, jobs)
}

/// Everything, as told to who comes now.
fn frame(live: &Live) -> Frame {
    live.since(&mut Told::default())
}

/// The numbers of a site: since when it is away, busy processors, waiting jobs, ended, came.
fn site(live: &Live, place: usize) -> (i64, i64, i64, i64, i64) {
    let row = live.sites[place].numbers(place);
    (row[1], row[2..5].iter().sum(), row[5..8].iter().sum(), row[8], row[9])
}

/// Where each job is, found by going through all events again.
fn naive(grid: &Grid, jobs: &[TimedJob], events: &[Event]) -> [Vec<i64>; 3] {
    let [mut waiting, mut busy, mut ended] = [(); 3].map(|()| vec![0; grid.len()]);
    for job in jobs {
        let about = |event: &&Event| match event.kind {
            EventKind::Submitted { job: of, .. }
            | EventKind::Accepted { job: of, .. }
            | EventKind::Returned { job: of, .. }
            | EventKind::Granted { job: of, .. }
            | EventKind::Started { job: of, .. }
            | EventKind::Completed { job: of, .. } => of == job.spec.id,
            _ => false,
        };
        let Some(last) = events.iter().rev().find(about) else { continue };
        let here = last.site.index();
        match last.kind {
            EventKind::Started { processors, .. } => busy[here] += i64::from(processors),
            EventKind::Completed { .. } => ended[here] += 1,
            EventKind::Granted { .. } => {}
            _ => waiting[here] += 1,
        }
    }
    [waiting, busy, ended]
}

#[test]
fn what_is_shown_is_what_all_events_together_say() {
    let grid = Arc::new(Grid::of_sizes(&[4, 8, 16]).unwrap());
    for (seed, strategy) in
        [(1, "st:50"), (2, "st:25,order=bah"), (3, "local"), (4, "pool:easy"), (5, "steal:random,mode=push")]
    {
        let jobs = jobs(seed, 16);
        let events = events(&grid, &jobs, strategy);
        let mut live = live(&grid, &jobs);
        for (count, event) in (1..).zip(&events) {
            live.observe(event);
            if count % 7 == 0 || count == events.len() {
                let sites: Vec<_> = (0..grid.len()).map(|place| site(&live, place)).collect();
                let shown: [Vec<i64>; 3] = [
                    sites.iter().map(|site| site.2).collect(),
                    sites.iter().map(|site| site.1).collect(),
                    sites.iter().map(|site| site.3).collect(),
                ];
                assert_eq!(shown, naive(&grid, &jobs, &events[..count]), "{strategy}, {count} events");
            }
        }
        let frame = frame(&live);
        assert_eq!(frame.jobs, [0, 0, 60], "{strategy}");
        assert!(frame.ratio.unwrap() >= 1.0, "{frame:?}");
        let came: i64 = (0..grid.len()).map(|place| site(&live, place).4).sum();
        assert_eq!(frame.moves.len() as i64, came.min(MOVES_KEPT as i64));
        bars_are_the_work_and_no_processor_has_two_jobs(&live, &jobs);
    }
}

fn bars_are_the_work_and_no_processor_has_two_jobs(live: &Live, jobs: &[TimedJob]) {
    let bars = &live.bars;
    let shown: i64 = bars.iter().map(|bar| i64::from(bar.count) * (bar.end.unwrap() - bar.start)).sum();
    let work = jobs.iter().map(|job| i64::from(job.spec.processors) * job.run_time.as_micros() / 1000);
    assert_eq!(shown, work.sum::<i64>());
    for (place, a) in bars.iter().enumerate() {
        for b in &bars[..place] {
            let beside = a.first < b.first + b.count && b.first < a.first + a.count;
            let overlap = a.site == b.site && beside && Some(a.start) < b.end && Some(b.start) < a.end;
            assert!(!overlap, "{a:?} and {b:?}");
        }
    }
}

#[test]
fn links_of_a_site_that_is_away_are_cut_as_ordered_and_not_as_it_said_last() {
    let grid = Grid::of_sizes(&[4, 8, 16]).unwrap();
    let mut live = live(&grid, &jobs(1, 4));
    // Site 1 said that it hears nothing of the others; site 2, that it does not reach site 3.
    let link = |site: u32, cut_to: bool, cut_from: bool| {
        serde_json::json!({
            "site": site, "name": "", "connected": true, "instance": null, "problem": null, "rtt_us": null,
            "delay_out_us": 0, "delay_in_us": 0, "measured": null, "cut_to": cut_to, "cut_from": cut_from,
        })
    };
    let status = |site: u32, links: [serde_json::Value; 2]| -> Status {
        serde_json::from_value(serde_json::json!({
            "site": site, "name": "", "phase": "running", "connected": true, "instance": 0, "peer_id": "",
            "listen": [], "trace_time_us": 0, "processors": 4, "idle": 4, "submitted": 0, "completed": 0,
            "events": 0, "outstanding": node::control::api::Outstanding::default(), "links": links,
            "frames_lost": 0, "limits_hit": {},
        }))
        .unwrap()
    };
    let statuses = [
        status(1, [link(2, false, true), link(3, false, true)]),
        status(2, [link(1, false, false), link(3, true, false)]),
    ];
    let (nobody, site1) = (BTreeSet::new(), BTreeSet::from([SiteId(1)]));
    let ordered = BTreeSet::from([(SiteId(3), SiteId(1)), (SiteId(3), SiteId(2))]);

    live.look(&statuses, &nobody, &ordered);
    assert_eq!(frame(&live).cuts.unwrap(), [(1, 0), (1, 2), (2, 0)]);
    live.look(&statuses, &site1, &ordered);
    assert_eq!(frame(&live).cuts.unwrap(), [(1, 2), (2, 0)], "the link from site 2 was restored since");
}

#[test]
fn who_is_told_what_has_changed_knows_what_who_is_told_everything_knows() {
    let grid = Arc::new(Grid::of_sizes(&[4, 8, 16]).unwrap());
    let jobs = jobs(1, 16);
    let mut live = live(&grid, &jobs);
    let (mut told, mut rows, mut bars) = (Told::default(), BTreeMap::new(), Vec::<Vec<i64>>::new());
    let (mut moves, mut words) = (0, Vec::new());
    for (count, event) in (1..).zip(events(&grid, &jobs, "st:50")) {
        live.observe(&event);
        if count % 5 != 0 && live.so_far.counts() != [0, 0, 60] {
            continue;
        }
        let frame = live.since(&mut told);
        assert!(!live.has_news(&told));
        rows.extend(frame.sites.chunks(ROW).map(|row| (row[0], row.to_vec())));
        frame.ends.chunks(2).for_each(|end| bars[end[0] as usize][4] = end[1]);
        bars.extend(frame.bars.chunks(BAR).map(<[i64]>::to_vec));
        moves += frame.moves.len();
        words.extend(frame.words);
    }
    let all = frame(&live);
    assert_eq!(rows.into_values().flatten().collect::<Vec<_>>(), all.sites);
    assert_eq!(bars.concat(), all.bars);
    assert!(bars.iter().all(|bar| bar[11] == bar[6] % 3), "a bar brings the user of its job");
    assert_eq!((moves, words), (all.moves.len(), all.words));
    assert!(live.since(&mut told).sites.is_empty(), "nothing is told twice");
}

#[test]
fn a_crash_puts_jobs_back_and_what_is_kept_is_bounded() {
    let grid = Grid::of_sizes(&[4]).unwrap();
    let jobs = jobs(1, 4);
    let mut live = live(&grid, &jobs);
    let job = JobId(1);
    let processors = jobs[0].spec.processors;
    let at = |seconds, kind| Event { at: Time::from_secs(seconds), site: SiteId(1), kind };
    let submitted = EventKind::Submitted { job, processors, requested: Span::ZERO, origin: SiteId(1) };
    live.observe(&at(2, submitted));
    live.observe(&at(3, EventKind::Started { job, processors, hops: 0 }));
    assert_eq!(site(&live, 0).1, i64::from(processors));
    live.observe(&at(8, EventKind::Ended { how: EndCause::Crash }));
    assert_eq!((site(&live, 0).0, site(&live, 0).1), (8000, 0), "a dead site executes nothing");
    live.observe(&at(9, EventKind::Begun { how: BeginCause::Restart }));
    live.observe(&at(9, EventKind::Interrupted { job, processors, killed: false }));
    assert_eq!((site(&live, 0).0, site(&live, 0).1, frame(&live).jobs), (-1, 0, [1, 0, 0]));
    assert_eq!(live.bars[0].end, Some(8000), "it executed until the site went away");
    // It says nothing of them if its journal is lost.
    live.observe(&at(9, EventKind::Started { job, processors, hops: 0 }));
    let incarnation = protocol::journal::INCARNATIONS_PER_JOURNAL;
    live.observe(&at(10, EventKind::Recovered { incarnation, waiting: 0, running: 0, out: 0 }));
    assert_eq!((site(&live, 0).1, frame(&live).jobs), (0, [1, 0, 0]));
    for number in 0..200 {
        live.say(number.to_string());
    }
    let words = frame(&live).words;
    assert_eq!((words.len(), words[WORDS_KEPT - 1].clone()), (WORDS_KEPT, (10_000, "199".to_string())));
    live.observe(&Event { site: SiteId(9), ..at(10, submitted) });
}

/// Job 1 of 10 waits at a broker and starts on 7 and 3 processors. The smaller part crashes, and the first ends before it hears of that.
#[test]
fn a_job_in_parts_holds_processors_at_each_site_and_waits_at_its_broker() {
    let sites = [("small".to_string(), 4), ("large".to_string(), 8)];
    let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).unwrap().with_spread(12);
    let job = JobId(1);
    let spec = JobSpec { processors: 10, ..jobs(1, 4)[0].spec };
    let mut live = live(&grid, &[TimedJob { spec, run_time: Span::from_secs(10) }]);
    let at = |seconds, site, kind| Event { at: Time::from_secs(seconds), site: SiteId(site), kind };
    let of = SiteId(2);
    let busy = |live: &Live| [0, 1].map(|place| site(live, place).1);
    let submitted = EventKind::Submitted { job, processors: 10, requested: Span::ZERO, origin: SiteId(1) };
    live.observe(&at(0, 3, submitted));
    let start = |live: &mut Live, seconds| {
        live.observe(&at(seconds, 2, EventKind::Started { job, processors: 7, hops: 1 }));
        live.observe(&at(seconds, 1, EventKind::PartStarted { job, processors: 3, of }));
        assert_eq!((busy(live), site(live, 2).2, frame(live).jobs), ([3, 7], 0, [0, 1, 0]));
    };
    start(&mut live, 2);
    live.observe(&at(5, 1, EventKind::Ended { how: EndCause::Crash }));
    live.observe(&at(7, 1, EventKind::Recovered { incarnation: 1, waiting: 0, running: 1, out: 0 }));
    assert_eq!(busy(&live), [0, 7]);
    assert_eq!(live.bars[1].end, Some(5000), "it executed until the site went away");
    live.observe(&at(12, 2, EventKind::Completed { job, processors: 7 }));
    assert_eq!((busy(&live), frame(&live).jobs), ([0, 0], [0, 0, 1]));
    live.observe(&at(13, 3, EventKind::Revoked { job, of, killed: false }));
    assert_eq!((site(&live, 2).2, frame(&live).jobs), (1, [1, 0, 0]));
    start(&mut live, 15);
    live.observe(&at(16, 2, EventKind::Interrupted { job, processors: 7, killed: false }));
    live.observe(&at(16, 1, EventKind::PartCompleted { job, processors: 3, of }));
    assert_eq!(
        (busy(&live), site(&live, 2).2),
        ([0, 0], 1),
        "it waits at its broker, and not at the first site"
    );
    live.observe(&at(17, 3, EventKind::Revoked { job, of, killed: true }));
    assert_eq!((site(&live, 2).2, frame(&live).jobs), (0, [0, 0, 1]));
}

#[test]
fn a_death_is_told_once_however_many_notice() {
    let grid = Arc::new(Grid::of_sizes(&[4, 8, 16]).unwrap());
    let mut live = live(&grid, &[]);
    let at = |seconds, site, kind| Event { at: Time::from_secs(seconds), site: SiteId(site), kind };
    let gone = |seconds, site| at(seconds, site, EventKind::Gone { peer: SiteId(3) });
    let again = at(8, 3, EventKind::Begun { how: BeginCause::Restart });
    for event in [gone(5, 1), gone(6, 2), again, gone(9, 2), gone(9, 1)] {
        live.observe(&event);
    }
    let words: Vec<String> = frame(&live).words.into_iter().map(|(_, words)| words).collect();
    let gone: Vec<&String> = words.iter().filter(|words| words.contains("is gone")).collect();
    assert_eq!(gone, ["site 3 is gone, as site 1 notices first", "site 3 is gone, as site 2 notices first"]);
}

/// What is planned of every waiting job at some instants is what the events up to then plan, and only where somebody asks of a queue.
#[test]
fn planned_starts_are_told_when_somebody_asks() {
    let grid = Arc::new(Grid::of_sizes(&[8]).unwrap());
    let jobs = jobs(3, 8);
    let events = events(&grid, &jobs, "local");
    assert_eq!(live(&grid, &jobs).starts(0), None, "no queue has a plan");
    let about = About { sites: AboutSite::all(&grid), ..About::default() };
    let mut live = Live::new(about, &grid, Threshold::HALF, &jobs).with_plans(LocalScheduler::Easy);
    assert!(live.about().starts && live.starts(1).is_none());
    let mut longest = 0;
    for event in &events {
        live.observe(event);
        let starts = live.starts(0).unwrap();
        let waiting: i64 = site(&live, 0).2;
        assert_eq!(starts.waiting as i64, waiting);
        assert!(starts.jobs.iter().all(|job| job.start_s >= starts.now_s && job.submit_s <= starts.now_s));
        assert!(starts.jobs.is_sorted_by(|one, other| one.start_s <= other.start_s));
        longest = longest.max(starts.waiting);
    }
    assert!(longest > 10, "{longest}");
    assert!(
        !Live::new(About::default(), &grid, Threshold::HALF, &[])
            .with_plans(LocalScheduler::External)
            .about()
            .starts
    );
}

/// Two nodes that take two tasks each: places of a node are neighbours, are free again after an end, and speeds are told once.
#[test]
fn tasks_on_shared_nodes_are_drawn_on_their_nodes() {
    let node = Node { power: 1.0, memory: 1, link: 100.0, mpl: 2 };
    let platform = Platform::new(&[Cluster { nodes: vec![node; 2], uplink: 100.0 }]).unwrap();
    let nodes = SharedNodes {
        platform: Arc::new(platform),
        fairness: Fairness::Proportional,
        applications: Arc::default(),
    };
    let grid = Grid::of_sizes(&[4]).unwrap().with_clusters([Some(Arc::new(nodes))]).unwrap();
    let mut live = live(&grid, &jobs(1, 2));
    let at = |second, kind| Event { at: Time::from_secs(second), site: SiteId(1), kind };
    let started = |job, processors| EventKind::Started { job: JobId(job), processors, hops: 0 };
    let placed = |job, node| EventKind::Placed { job: JobId(job), node };
    let paced = |job, slowdown_millionths| EventKind::Paced {
        job: JobId(job),
        slowdown_millionths,
        computing_millionths: 1_000_000,
    };
    let mut told = Told::default();
    for event in [
        at(5, started(1, 2)),
        at(5, started(2, 1)),
        at(5, placed(1, 0)),
        at(5, placed(1, 1)),
        at(5, placed(2, 1)),
        at(5, paced(1, 2_000_000)),
    ] {
        live.observe(&event);
    }
    let first = live.since(&mut told);
    let places = |frame: &Frame| -> Vec<(i64, i64)> {
        frame.bars.chunks(super::frame::BAR).map(|bar| (bar[6], bar[1])).collect()
    };
    assert_eq!(places(&first), [(1, 0), (1, 2), (2, 3)]);
    assert_eq!((first.paces.as_slice(), site(&live, 0).1), ([1, 5000, 200].as_slice(), 3));
    for event in [
        at(7, EventKind::Completed { job: JobId(1), processors: 2 }),
        at(7, paced(2, 1_000_000)),
        at(8, started(3, 1)),
        at(8, placed(3, 1)),
    ] {
        live.observe(&event);
    }
    let second = live.since(&mut told);
    assert_eq!(second.ends, [0, 7000, 1, 7000]);
    assert_eq!((places(&second), second.paces), (vec![(3, 2)], vec![2, 7000, 100]));
    assert_eq!(site(&live, 0).1, 2);
    assert_eq!(AboutSite::all(&grid)[0].nodes, [2, 2]);
}

/// Users submit where they are, which is not the smallest site that is wide enough.
#[test]
fn only_jobs_that_change_sites_are_shown_as_those_of_others() {
    let grid = Arc::new(Grid::of_sizes(&[4, 8, 16]).unwrap());
    let mut jobs = jobs(7, 8);
    for job in &mut jobs {
        job.spec.origin = SiteId(3);
    }
    let of_others = |strategy: &str| {
        let spec: StrategySpec = strategy.parse().unwrap();
        let mut config = SimulationConfig::new(Arc::clone(&grid), spec.strategy);
        config.submit = scheduler::Submit::Origin;
        let mut live = live(&grid, &jobs);
        Simulation::new(config, &jobs).run(&mut |event| live.observe(event)).unwrap();
        (live.bars.iter().filter(|bar| bar.class == 2).count(), live.moved)
    };
    assert_eq!(of_others("local"), (0, 0));
    let (shown, moved) = of_others("steal:random");
    assert!(shown > 0 && moved > 0, "{shown} and {moved}");
}
