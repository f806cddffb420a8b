//! Sites that know some others only: that knowing all is the special case, that nobody turns to strangers, that no neighbor is
//! overlooked, and what that does to the number of messages.

use std::sync::Arc;

use links::Model;
use proptest::prelude::*;
use protocol::Views;
use protocol::mutant::Mutant;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::{Event, Grid, JobId, JobSpec, Labels, SiteId, Span, StrategySpec, Submit, Time, TimedJob};
use simulator::{Checks, Simulation, SimulationConfig, Totals, Violation};

const STRATEGIES: [&str; 10] = [
    "st:50",
    "st:25,order=bah",
    "st:50,order=hab",
    "st-greedy:50",
    "st:50,select=easy",
    "steal:random",
    "steal:loaded,select=easy",
    "steal:two-choices,amount=half",
    "steal:nearest,amount=fit",
    "steal:random,mode=push",
];

/// Far more than any run of so few jobs needs.
const INSTANTS_MAX: u32 = 20_000;

/// Whom each site knows.
#[derive(Clone, Copy, Debug)]
enum Knows {
    All,
    /// A list of all others.
    Each,
    /// So many neighbors of an overlay.
    Neighbors(usize),
}

fn config(sizes: &[u32], strategy: &str, submit: Submit, delay: i64, knows: Knows) -> SimulationConfig {
    let strategy: StrategySpec = strategy.parse().unwrap_or_else(|error| panic!("{strategy}: {error}"));
    let grid = Arc::new(Grid::of_sizes(sizes).expect("a grid"));
    let members = grid.len();
    let mut config = SimulationConfig::new(grid, strategy.strategy);
    config.submit = submit;
    config.network = Model::constant(Span::from_secs(delay));
    config.checks = Checks::Full;
    let count = u32::try_from(members).expect("few");
    let others = |me: u32| (0..count).filter(|&other| other != me).collect();
    config.terms.views = match knows {
        Knows::All => None,
        Knows::Each => Some(Arc::new(Views::of((0..count).map(others).collect()))),
        Knows::Neighbors(neighbors) => Some(Arc::new(Views::settled(members, neighbors, 1))),
    };
    config
}

fn job(id: u64, processors: u32, run: i64, submit: i64, origin: u32) -> TimedJob {
    let run_time = Span::from_secs(run);
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors,
        requested: run_time,
        labels: Labels::UNKNOWN,
        origin: SiteId(origin),
        payload: 0,
    };
    TimedJob { spec, run_time }
}

fn workload() -> impl Strategy<Value = (Vec<u32>, Vec<TimedJob>)> {
    let drawn = (0i64..40, 1u32..13, 1i64..30, any::<prop::sample::Index>());
    (prop::collection::vec(1u32..13, 2..=9), prop::collection::vec(drawn, 1..=30)).prop_map(
        |(sizes, jobs)| {
            let widest = sizes.iter().copied().max().expect("a site");
            let numbered = (1..).zip(jobs).map(|(id, (submit, width, run, origin))| {
                let origin = u32::try_from(origin.index(sizes.len()) + 1).expect("few");
                job(id, width.min(widest), run, submit, origin)
            });
            let mut jobs: Vec<TimedJob> = numbered.collect();
            jobs.sort_by_key(|job| job.spec.key());
            (sizes, jobs)
        },
    )
}

fn events(config: SimulationConfig, jobs: &[TimedJob]) -> Vec<Event> {
    let mut events = Vec::new();
    let run = Simulation::new(config, jobs).run(&mut |event| events.push(*event));
    run.unwrap_or_else(|violation| panic!("{violation}"));
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// The naive twin of a view that has everybody by being told nothing: one that lists everybody.
    #[test]
    fn a_view_of_everybody_is_no_view(
        (sizes, jobs) in workload(),
        strategy in prop::sample::select(&STRATEGIES[..]),
        delay in prop_oneof![Just(0), 1i64..9],
        home in any::<bool>(),
    ) {
        let submit = if home { Submit::Home } else { Submit::Origin };
        let of = |knows| events(config(&sizes, strategy, submit, delay, knows), &jobs);
        prop_assert_eq!(of(Knows::All), of(Knows::Each));
    }

    /// All jobs end, every check holds, nobody turns to a stranger, and in silence nobody has room for a job that waits at a neighbor.
    #[test]
    fn no_neighbor_is_overlooked_in_silence(
        (sizes, jobs) in workload(),
        strategy in prop::sample::select(&STRATEGIES[..]),
        neighbors in 2usize..5,
        home in any::<bool>(),
    ) {
        let submit = if home { Submit::Home } else { Submit::Origin };
        let config = config(&sizes, strategy, submit, 1, Knows::Neighbors(neighbors));
        let views = Arc::clone(config.terms.views.as_ref().expect("they are given"));
        let mut simulation = Simulation::new(config, &jobs);
        let mut instants = 0;
        while let Some(next) = simulation.next_instant() {
            instants += 1;
            prop_assert!(instants < INSTANTS_MAX, "{strategy} never falls silent");
            let silent = next > simulation.now().saturating_add(Span::from_secs(1));
            if silent && strategy == "steal:random" {
                prop_assert_eq!(overlooked(&simulation, &views), None);
            }
            simulation.advance(&mut |_| {}).map_err(|violation| TestCaseError::fail(violation.to_string()))?;
        }
        simulation.finish().map_err(|violation| TestCaseError::fail(violation.to_string()))?;
    }
}

/// A site with room for a job that waits at one that it knows.
fn overlooked(simulation: &Simulation<'_>, views: &Views) -> Option<(SiteId, JobId)> {
    let peers = simulation.peers();
    peers.iter().enumerate().find_map(|(rank, peer)| {
        let known = peers.iter().enumerate().filter(|&(other, _)| views.are_neighbors(rank, other));
        let mut waiting = known.flat_map(|(_, other)| other.own().iter());
        waiting.find(|job| job.processors <= peer.free()).map(|job| (peer.site(), job.id))
    })
}

/// A grid of sites of 4 to 32 processors, of which one in ten gets all jobs.
fn crowded(sites: usize, seed: u64) -> (Vec<u32>, Vec<TimedJob>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sizes: Vec<u32> = (0..sites).map(|site| 4 << (site % 4)).collect();
    let hot = u32::try_from(sites / 10).expect("few");
    let jobs = (1..=20 * sites as u64).map(|id| {
        let submit = rng.random_range(0..20_000);
        job(id, rng.random_range(1..5), rng.random_range(60..1_200), submit, 1 + rng.random_range(0..hot))
    });
    let mut jobs: Vec<TimedJob> = jobs.collect();
    jobs.sort_by_key(|job| job.spec.key());
    (sizes, jobs)
}

fn totals(sites: usize, strategy: &str, knows: Knows) -> Totals {
    let (sizes, jobs) = crowded(sites, 1);
    let mut config = config(&sizes, strategy, Submit::Origin, 5, knows);
    config.checks = Checks::Cheap;
    config.options.message_events = false;
    Simulation::new(config, &jobs).run(&mut |_| {}).expect("no violation")
}

/// With four times as many sites and jobs a job costs about as many messages, where it costs twice as many if all know all.
#[test]
fn messages_do_not_grow_with_the_grid() {
    for strategy in ["st:50", "steal:random"] {
        let per_job = |sites, knows| totals(sites, strategy, knows).messages as f64 / (20 * sites) as f64;
        let growth = |knows| per_job(400, knows) / per_job(100, knows);
        let (bounded, complete) = (growth(Knows::Neighbors(5)), growth(Knows::All));
        println!("{strategy}: {bounded:.2} with 5 neighbors, {complete:.2} where all know all");
        assert!(bounded < 1.2, "{strategy}: {bounded}");
        assert!(complete > 1.5, "{strategy}: {complete}");
    }
}

/// The home of a job that is wider than a site and all that it knows is found in the list of all sites.
#[test]
fn a_job_too_wide_for_all_that_are_known_goes_home() {
    let mut sizes = vec![2; 30];
    sizes.push(64);
    let jobs: Vec<TimedJob> = (1..=30).map(|origin| job(u64::from(origin), 64, 10, 0, origin)).collect();
    for strategy in STRATEGIES {
        let config = config(&sizes, strategy, Submit::Origin, 1, Knows::Neighbors(2));
        let totals = Simulation::new(config, &jobs).run(&mut |_| {}).expect("no violation");
        assert_eq!(totals.completed, 30, "{strategy}");
    }
}

#[test]
fn mutant_a_site_that_turns_to_strangers_is_noticed() {
    let found = (0..20).filter(|&seed| {
        let (sizes, jobs) = crowded(20, seed);
        let config = config(&sizes, "steal:random", Submit::Origin, 1, Knows::Neighbors(3));
        let run = Simulation::new(config, &jobs).with_mutant(Mutant::StrangersAsked).run(&mut |_| {});
        matches!(run, Err(Violation::Stranger { .. }))
    });
    assert_eq!(found.count(), 20);
}
