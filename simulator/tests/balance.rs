//! The classic baselines: what sites say to each other line by line, who is told when work or room appears, and that
//! no site is overlooked once the grid is silent.

use std::sync::Arc;

use links::{Model, Properties};
use proptest::prelude::*;
use protocol::{BalanceOptions, Options};
use scheduler::{
    Amount, Balance, Event, EventKind, Grid, Initiative, JobId, JobSpec, Labels, Selection, SiteId, Span,
    Strategy as Scheduling, StrategySpec, Submit, Time, TimedJob, VictimRule,
};
use simulator::{Checks, Simulation, SimulationConfig};

/// `id:width,run,submit,origin`, times in seconds.
fn parse(text: &str) -> TimedJob {
    let (id, rest) = text.split_once(':').expect("id:width,run,submit,origin");
    let numbers: Vec<i64> = rest.split(',').map(|number| number.parse().expect("a number")).collect();
    let run_time = Span::from_secs(numbers[1]);
    let spec = JobSpec {
        id: JobId(id.parse().expect("a number")),
        submit: Time::from_secs(numbers[2]),
        processors: numbers[0] as u32,
        requested: run_time,
        labels: Labels::UNKNOWN,
        origin: SiteId(numbers[3] as u32),
        payload: 0,
    };
    TimedJob { spec, run_time }
}

fn config(sizes: &[u32], strategy: &str, options: Options) -> SimulationConfig {
    let strategy: StrategySpec = strategy.parse().expect("a strategy");
    let grid = Arc::new(Grid::of_sizes(sizes).expect("a grid"));
    let mut config = SimulationConfig::new(grid, strategy.strategy);
    config.submit = Submit::Origin;
    config.network = Model::constant(Span::from_secs(1));
    config.options = options;
    config.checks = Checks::Full;
    config
}

/// Messages, starts and decisions, one line each.
fn transcript(config: SimulationConfig, jobs: &str) -> String {
    let mut jobs: Vec<TimedJob> = jobs.split_whitespace().map(parse).collect();
    jobs.sort_by_key(|job| job.spec.key());
    let mut lines = String::new();
    let mut note = |event: &Event| {
        let what = match event.kind {
            EventKind::Sent { to, message, .. } => format!("> M{to} {}", message.name()),
            EventKind::Started { job, .. } => format!("starts {job}"),
            EventKind::Granted { job, to, cause, .. } => format!("grants {job} to M{to} by {cause:?}"),
            EventKind::Declined { job, .. } => format!("declines {job}"),
            EventKind::Refused { reason, .. } => format!("refuses: {}", reason.name()),
            EventKind::Requested { view_age: Some(age), .. } => format!("knows what is {age} s old"),
            _ => return,
        };
        lines += &format!("{} M{} {what}\n", event.at, event.site);
    };
    Simulation::new(config, &jobs).run(&mut note).expect("no violation");
    lines
}

#[test]
fn a_thief_that_found_nothing_is_told_when_work_appears() {
    // M2 asks in vain, rests, and is told of job 2, which waits.
    let config = config(&[2, 2], "steal:random", Options::default());
    assert_eq!(
        transcript(config, "1:2,20,0,1 2:1,5,10,1"),
        "\
0 M1 starts 1
0 M2 > M1 request
1 M1 refuses: empty
1 M1 > M2 refuse
2 M2 > M1 watch
10 M1 > M2 news
11 M2 knows what is 1 s old
11 M2 > M1 request
12 M1 grants 2 to M2 by Request
12 M1 > M2 give
13 M2 > M1 reply
13 M2 starts 2
13 M2 knows what is 1 s old
13 M2 > M1 request
14 M1 refuses: empty
14 M1 > M2 refuse
15 M2 > M1 watch
20 M1 > M2 request
21 M2 refuses: empty
21 M2 > M1 refuse
22 M1 > M2 watch
"
    );
}

#[test]
fn half_of_the_queue_moves_the_younger_half() {
    let config = config(&[1, 1], "steal:random,amount=half", Options::default());
    assert_eq!(
        transcript(config, "1:1,9,0,1 2:1,9,0,1 3:1,9,0,1 4:1,9,0,1"),
        "\
0 M1 starts 1
0 M2 > M1 request
1 M1 grants 3 to M2 by Request
1 M1 grants 4 to M2 by Request
1 M1 > M2 give
2 M2 > M1 reply
2 M2 starts 3
9 M1 starts 2
11 M2 starts 4
18 M1 > M2 request
19 M2 refuses: empty
19 M2 > M1 refuse
20 M1 > M2 watch
20 M2 knows what is 18 s old
20 M2 > M1 request
21 M1 refuses: empty
21 M1 > M2 refuse
22 M2 > M1 watch
"
    );
}

#[test]
fn a_push_that_finds_no_room_comes_back_and_is_told_when_there_is() {
    let config = config(&[2, 2], "steal:random,mode=push", Options::default());
    assert_eq!(
        transcript(config, "1:2,20,0,1 2:2,9,0,2 3:1,5,1,1"),
        "\
0 M1 starts 1
0 M2 starts 2
1 M1 grants 3 to M2 by Push
1 M1 > M2 give
2 M2 declines 3
2 M2 > M1 reply
3 M1 > M2 watch
9 M2 > M1 news
10 M1 grants 3 to M2 by Push
10 M1 > M2 give
11 M2 starts 3
11 M2 > M1 reply
"
    );
}

#[test]
fn a_job_that_starts_soon_anyway_is_kept_by_the_margin() {
    // Job 2 would start here at 4 and there at 2: not worth ten seconds. Job 3 would start at 24.
    let options = Options { margin: Some(Span::from_secs(10)), ..Options::default() };
    let config = config(&[2, 2], "steal:random,amount=one", options);
    assert_eq!(
        transcript(config, "1:2,4,0,1 2:2,20,0,1 3:2,5,3,1"),
        "\
0 M1 starts 1
0 M2 > M1 request
1 M1 refuses: margin
1 M1 > M2 refuse
2 M2 > M1 watch
3 M1 > M2 news
4 M2 knows what is 1 s old
4 M2 > M1 request
4 M1 starts 2
5 M1 grants 3 to M2 by Request
5 M1 > M2 give
6 M2 > M1 reply
6 M2 starts 3
11 M2 knows what is 6 s old
11 M2 > M1 request
12 M1 refuses: empty
12 M1 > M2 refuse
13 M2 > M1 watch
24 M1 > M2 request
25 M2 refuses: empty
25 M2 > M1 refuse
26 M1 > M2 watch
"
    );
}

#[test]
fn a_job_too_wide_for_its_site_goes_home() {
    let config = config(&[2, 4], "steal:nearest", Options::default());
    assert_eq!(
        transcript(config, "1:4,5,0,1"),
        "\
0 M1 grants 1 to M2 by Route
0 M1 > M2 route
0 M1 > M2 request
0 M2 > M1 request
1 M2 > M1 reply
1 M2 starts 1
1 M2 refuses: empty
1 M2 > M1 refuse
1 M1 refuses: empty
1 M1 > M2 refuse
2 M1 > M2 watch
6 M2 knows what is 5 s old
6 M2 > M1 request
7 M1 refuses: empty
7 M1 > M2 refuse
8 M2 > M1 watch
"
    );
}

fn balance() -> impl Strategy<Value = Balance> {
    const AMOUNTS: [Amount; 3] = [Amount::One, Amount::Half, Amount::Fit];
    let victim = prop::sample::select(&VictimRule::ALL[..]);
    (victim, prop::sample::select(&AMOUNTS[..]), any::<bool>(), any::<bool>()).prop_map(
        |(victim, amount, push, easy)| Balance {
            victim,
            amount,
            initiative: if push { Initiative::Push } else { Initiative::Pull },
            select: if easy { Selection::Easy } else { Selection::FirstFit },
        },
    )
}

fn workload() -> impl Strategy<Value = (Vec<u32>, Vec<TimedJob>)> {
    let job = (0i64..40, 1u32..13, 1i64..30, any::<prop::sample::Index>());
    (prop::collection::vec(1u32..13, 2..=6), prop::collection::vec(job, 1..=25)).prop_map(|(sizes, jobs)| {
        let widest = sizes.iter().copied().max().expect("a site");
        let mut jobs: Vec<TimedJob> = jobs
            .into_iter()
            .enumerate()
            .map(|(index, (submit, width, run, origin))| {
                let origin = origin.index(sizes.len()) + 1;
                parse(&format!("{}:{},{run},{submit},{origin}", index + 1, width.min(widest)))
            })
            .collect();
        jobs.sort_by_key(|job| job.spec.key());
        (sizes, jobs)
    })
}

const DELAY: Span = Span::from_secs(1);
const JITTER: Span = Span::from_secs(4);
const INSTANTS_MAX: u32 = 20_000;
/// Far more than any run of so few jobs needs.
const EVENTS_MAX: u32 = 100_000;

/// Why a run is wrong, if it is.
fn problem(mut simulation: Simulation<'_>, select: Selection, lossless: bool) -> Option<String> {
    for _ in 0..INSTANTS_MAX {
        let Some(next) = simulation.next_instant() else {
            return simulation.finish().err().map(|violation| violation.to_string());
        };
        // Whatever was sent has arrived, and nobody is going to say anything.
        let silent = lossless && next > simulation.now().saturating_add(DELAY + JITTER);
        if silent && let Some(overlooked) = overlooked(&simulation, select) {
            return Some(overlooked);
        }
        if let Err(violation) = simulation.advance(&mut |_| {}) {
            return Some(violation.to_string());
        }
    }
    Some("the grid never falls silent".to_string())
}

/// A site with idle processors for a job that waits elsewhere. Under EASY those of a site where jobs wait may be reserved.
fn overlooked(simulation: &Simulation<'_>, select: Selection) -> Option<String> {
    let peers = simulation.peers();
    let waiting = || peers.iter().flat_map(|peer| peer.own().iter());
    let may_take = |peer: &&protocol::Peer| select == Selection::FirstFit || peer.own().is_empty();
    peers.iter().filter(may_take).find_map(|peer| {
        let job = waiting().find(|job| job.processors <= peer.free())?;
        let now = simulation.now();
        Some(format!("at {now}: site {} has room for job {}, which waits", peer.site(), job.id))
    })
}

fn bad_network(sizes: &[u32], balance: Balance, options: Options, loss: f64, seed: u64) -> SimulationConfig {
    let mut config = config(sizes, "steal:random", options);
    config.strategy = Scheduling::Balance(balance);
    config.network = Model::constant(DELAY).with(Properties::unreliable(loss, 0.2, JITTER));
    config.seed = seed;
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// As long as no message is lost, nothing needs to be repeated.
    #[test]
    fn no_site_is_overlooked_in_silence(
        (sizes, jobs) in workload(),
        balance in balance(),
        tries in 1usize..5,
        gossip in 5i64..50,
        batch in prop_oneof![Just(1usize), Just(2), Just(1024)],
        unanswered_max in prop_oneof![Just(1usize), Just(1024)],
        seed in any::<u64>(),
    ) {
        let gossip = Span::from_secs(gossip);
        let options = Options {
            balance: BalanceOptions { tries, gossip, ..BalanceOptions::default() },
            batch,
            unanswered_max,
            ..Options::default()
        };
        let config = bad_network(&sizes, balance, options, 0.0, seed);
        prop_assert_eq!(problem(Simulation::new(config, &jobs), balance.select, true), None);
    }

    /// Nothing starts twice or late: with free messages and any rule, who has room for a waiting job gets it at once.
    #[test]
    fn without_delay_no_instant_ends_with_room_for_a_waiting_job(
        (sizes, jobs) in workload(),
        balance in balance(),
        tries in 1usize..5,
    ) {
        let mut config = config(&sizes, "steal:random", Options::default());
        config.options.balance.tries = tries;
        config.strategy = Scheduling::Balance(balance);
        config.network = Model::constant(Span::ZERO);
        let mut simulation = Simulation::new(config, &jobs);
        let mut events = 0;
        let mut count = |event: &Event| {
            events += 1;
            assert!(events < EVENTS_MAX, "an instant never ends: {event:?}");
        };
        while simulation.advance(&mut count).map_err(|violation| TestCaseError::fail(violation.to_string()))? {
            prop_assert_eq!(overlooked(&simulation, balance.select), None);
        }
    }
}

/// Starts of all jobs on one site, with estimates so many times too long as the job's number says.
fn starts(strategy: &str, processors: u32, jobs: &[TimedJob]) -> Vec<(Time, JobId)> {
    let mut jobs = jobs.to_vec();
    for job in &mut jobs {
        job.spec.processors = job.spec.processors.min(processors);
        job.spec.origin = SiteId(1);
        job.spec.requested = job.run_time.saturating_mul(1 + (job.spec.id.0 % 4) as i64);
    }
    let mut starts = Vec::new();
    let mut note = |event: &Event| {
        if let EventKind::Started { job, .. } = event.kind {
            starts.push((event.at, job));
        }
    };
    let config = config(&[processors], strategy, Options::default());
    Simulation::new(config, &jobs).run(&mut note).expect("no violation");
    starts.sort_unstable();
    starts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// EASY of the baselines and that of `local` are two programs. Where there is nobody to exchange with, they agree.
    #[test]
    fn alone_a_site_is_a_local_queue((sizes, jobs) in workload(), push in any::<bool>()) {
        let mode = if push { ",mode=push" } else { "" };
        let alone = starts(&format!("steal:random,select=easy{mode}"), sizes[0], &jobs);
        prop_assert_eq!(alone, starts("local", sizes[0], &jobs));
    }
}

/// The test above rejects a site that starts whatever fits.
#[test]
fn alone_a_site_without_reservations_is_no_easy_queue() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let different = (0..400)
        .filter(|_| {
            let (sizes, jobs) = workload().new_tree(&mut runner).expect("a workload").current();
            starts("steal:random", sizes[0], &jobs) != starts("local", sizes[0], &jobs)
        })
        .count();
    println!("{different} of 400 workloads tell LIST from EASY");
    assert!(different > 40, "{different} of 400");
}

/// Site 2 runs a job of 3 until 100 by its estimate and has a reservation for one of 4, so a job that is stolen may need one
/// processor at most.
const RESERVED: &str = "1:3,100,0,2 2:4,10,1,2 3:2,100,2,1 4:1,50,3,1 5:2,50,3,1";

#[test]
fn a_reservation_keeps_room_from_stolen_jobs() {
    let of = |strategy| transcript(config(&[2, 4], strategy, Options::default()), RESERVED);
    let list = of("steal:random");
    assert!(list.contains("M2 starts 4"), "{list}");
    let easy = of("steal:random,select=easy");
    // Extra beside the reservation for job 2 is nothing: it needs the whole site.
    assert!(!easy.contains("M2 starts 4") && !easy.contains("M1 grants 4"), "{easy}");
    assert!(easy.contains("100 M2 starts 2"), "{easy}");
}

/// Site 2 keeps a pushed job of 6 processors, for which a job of 3 will have ended at 12. Another of 3 came with it and would
/// hold it up for long.
#[test]
fn what_comes_with_a_kept_job_respects_its_reservation() {
    let jobs = "1:1,1000,0,2 2:3,500,0,2 3:3,12,0,2 4:8,100,0,1 5:6,10,1,1 6:3,300,1,1";
    let mut config = config(&[8, 10], "steal:loaded,mode=push,select=easy", Options::default());
    config.options.margin = Some(Span::from_secs(20));
    let text = transcript(config, jobs);
    assert!(text.contains("12 M2 starts 5") && text.contains("22 M2 starts 6"), "{text}");
}

/// Site 2 has 4 processors idle, and 13 from 100 on. It fetches a job of 8 and one of 4; the second can start.
#[test]
fn what_was_fetched_early_holds_up_nobody() {
    let jobs = "1:9,100,0,2 2:8,300,0,1 3:8,10,1,1 4:4,10,2,1";
    let mut config = config(&[8, 13], "st:0", Options::default());
    config.options.steal.prefetch = Some(Span::from_secs(200));
    let text = transcript(config, jobs);
    assert!(text.contains("100 M2 starts 3"), "{text}");
    let at = text.lines().find(|line| line.ends_with("M2 starts 4")).expect("it is stolen");
    assert!(at.split(' ').next().expect("a time").parse::<f64>().expect("seconds") < 20.0, "{text}");
}

/// A pushed job that has to wait a little is kept with a margin: sending it back would take longer.
#[test]
fn with_a_margin_a_pushed_job_waits_where_it_came() {
    // Site 1 is busy until 100. Job 3 leaves it for site 2, which job 2 reaches first, for 2 s.
    let jobs = "1:2,100,0,1 2:4,4,1,2 3:2,10,1,1";
    let declined = transcript(config(&[2, 4], "steal:loaded,mode=push", Options::default()), jobs);
    assert!(declined.contains("M2 declines 3"), "{declined}");
    let mut weighed = config(&[2, 4], "steal:loaded,mode=push", Options::default());
    weighed.options.margin = Some(Span::from_secs(3));
    let kept = transcript(weighed, jobs);
    assert!(!kept.contains("declines") && kept.contains("5 M2 starts 3"), "{kept}");
}

mod mutants {
    use super::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use protocol::mutant::Mutant;

    use crate::met::met;

    /// What goes wrong in some hundred runs, of what is meant.
    fn problems(mutant: Option<Mutant>, loss: f64, pushes: bool, meant: &[&str]) -> Vec<String> {
        let mut runner = TestRunner::deterministic();
        let problems = met((0..400).filter_map(|seed| {
            let (sizes, jobs) = workload().new_tree(&mut runner).expect("a workload").current();
            let mut balance = balance().new_tree(&mut runner).expect("a baseline").current();
            balance.initiative = if pushes { Initiative::Push } else { Initiative::Pull };
            let retry = (loss > 0.0).then(|| Span::from_secs(15));
            let balance_options = BalanceOptions { tries: 2, ..BalanceOptions::default() };
            let options = Options { balance: balance_options, retry, ..Options::default() };
            let mut config = bad_network(&sizes, balance, options, loss, seed);
            // A peer's own checks would stop a broken run before the observer sees what came of it.
            config.checks = if loss > 0.0 { Checks::Cheap } else { Checks::Full };
            let simulation = Simulation::new(config, &jobs);
            let simulation = match mutant {
                Some(mutant) => simulation.with_mutant(mutant),
                None => simulation,
            };
            let checked = || problem(simulation, balance.select, loss == 0.0);
            // A peer that contradicts itself stops by its own assertions.
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(checked))
                .unwrap_or_else(|_| Some("a peer stopped".to_string()))
                .filter(|problem| meant.iter().any(|words| problem.contains(words)))
        }));
        println!("{} of 400 runs: {meant:?}", problems.len());
        problems
    }

    #[test]
    fn sites_without_mistakes_pass() {
        for pushes in [false, true] {
            assert_eq!(problems(None, 0.0, pushes, &[""]), [] as [String; 0]);
            assert_eq!(problems(None, 0.3, pushes, &[""]), [] as [String; 0]);
        }
    }

    #[test]
    fn news_never_told_leaves_sites_overlooked() {
        for pushes in [false, true] {
            let told = problems(Some(Mutant::NewsNeverTold), 0.0, pushes, &["has room for job"]);
            assert!(!told.is_empty());
        }
    }

    #[test]
    fn reclaiming_an_unanswered_job_makes_two_owners() {
        let meant = ["started before", "a peer stopped"];
        assert!(!problems(Some(Mutant::ReclaimOnTimeout), 0.3, false, &meant).is_empty());
    }

    #[test]
    fn forgetting_a_declined_push_loses_the_job() {
        assert!(!problems(Some(Mutant::ForgetDeclined), 0.0, true, &["is lost"]).is_empty());
    }
}
