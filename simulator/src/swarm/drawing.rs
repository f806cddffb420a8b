//! What a seed stands for. Each part is drawn from a stream of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use links::model::Between;
use links::{Cut, Jitter, Model, Properties};
use protocol::config::Interrupted;
use protocol::{BalanceOptions, Discovery, Options, PoolOptions, Terms};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::strategy::{OfferRule, PoolAlgorithm, PoolOrder, SiteOrder, Via};
use scheduler::{
    Amount, Balance, Grid, Initiative, JobId, JobSpec, Labels, LocalScheduler, LocalUsers, Order, Pass, Pool,
    Selection, SiteId, Span, Steal, Strategy, Submit, Threshold, Time, TimedJob, VictimRule,
};

use super::widening::{Parts, widen};
use crate::faults::{Fault, Scenario, Torn};

/// So many seeds have heartbeats.
const MEMBERSHIP_SHARE: f64 = 0.35;

/// Draws a scenario. Always the same for a seed and these parts.
pub fn draw(seed: u64, parts: Parts) -> Scenario {
    widen(small(seed), parts)
}

/// A small grid, to which the parts of `widening.rs` are added.
fn small(seed: u64) -> Scenario {
    let stream = |number| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(number);
        rng
    };
    let grid = grid(&mut stream(1));
    let strategy = strategy(&mut stream(2));
    let (submit, horizon) = entry(&mut stream(3));
    let jobs = jobs(&mut stream(4), &grid, horizon);
    let (network, longest) = network(&mut stream(5));
    let mut options = options(&mut stream(6), strategy, longest);
    let (mut faults, healed) = faults(&mut stream(7), &grid, horizon, longest);
    membership(&mut stream(9), &grid, &mut options, &mut faults, healed, longest);
    let strategy = newer(&mut stream(10), strategy, &mut options);
    let mut rng = stream(8);
    let terms = Terms {
        local: *LocalScheduler::ALL.choose(&mut rng).expect("there are some"),
        pass: if rng.random_bool(0.8) { Pass::Batch } else { Pass::PerEvent },
        options,
        seed,
        ..Terms::new(grid, for_discovery(strategy, options.discovery))
    };
    let local_users = LocalUsers::default();
    Scenario { terms, jobs, submit, local_users, network, faults, healed: Some(healed) }
}

pub(super) fn micros(rng: &mut ChaCha8Rng, from: Span, to: Span) -> Span {
    Span::from_micros(rng.random_range(from.as_micros()..=to.as_micros()))
}

fn grid(rng: &mut ChaCha8Rng) -> Arc<Grid> {
    let sites = rng.random_range(2..=8);
    let widest = if rng.random_bool(0.2) { 3 } else { 24 };
    let equal = rng.random_bool(0.15);
    let first = rng.random_range(1..=widest);
    let sizes: Vec<u32> =
        (0..sites).map(|_| if equal { first } else { rng.random_range(1..=widest) }).collect();
    Arc::new(Grid::of_sizes(&sizes).expect("sites with processors are a grid"))
}

fn strategy(rng: &mut ChaCha8Rng) -> Strategy {
    match rng.random_range(0..20) {
        0..7 => Strategy::Steal(steal(rng)),
        7..9 => Strategy::StealGreedy(steal(rng)),
        9 => Strategy::CommonPool,
        10 => Strategy::Local,
        11..15 => Strategy::Pool(pool(rng)),
        _ => Strategy::Balance(balance(rng)),
    }
}

fn steal(rng: &mut ChaCha8Rng) -> Steal {
    let classic = rng.random_bool(0.5);
    let mut steal = Steal::with_threshold(Threshold::new(rng.random_range(0..=100)).expect("a percentage"));
    if !classic {
        steal.order = *Order::ALL.choose(rng).expect("there are some");
        steal.select = *Selection::ALL.choose(rng).expect("there are some");
    }
    steal
}

/// Polling has no order that asks before own work starts.
fn for_discovery(strategy: Strategy, discovery: Discovery) -> Strategy {
    match (strategy, discovery) {
        (Strategy::Steal(steal), Discovery::Polling { .. }) if steal.order.stolen_first() => {
            Strategy::Steal(Steal { order: Order::Ahb, ..steal })
        }
        _ => strategy,
    }
}

fn pool(rng: &mut ChaCha8Rng) -> Pool {
    let pick = |rng: &mut ChaCha8Rng| rng.random_range(0..3usize);
    let algorithm = [PoolAlgorithm::Fcfs, PoolAlgorithm::Easy, PoolAlgorithm::List][pick(rng)];
    let via = if rng.random_bool(0.5) { Via::Hosted } else { Via::Gossip };
    let mut pool = Pool { via, ..Pool::new(algorithm) };
    if rng.random_bool(0.5) {
        pool.offer = [OfferRule::Head, OfferRule::All, OfferRule::AllButHead][pick(rng)];
        pool.site_order = if rng.random_bool(0.5) { SiteOrder::Ascending } else { SiteOrder::Descending };
        pool.pool_order = if rng.random_bool(0.5) { PoolOrder::Submit } else { PoolOrder::Offered };
        pool.demand = via == Via::Hosted || rng.random_bool(0.5);
    }
    pool
}

/// The rules of the first release with any. Another one is drawn by a stream of its own, so that known seeds stay what they
/// are.
const VICTIMS: [VictimRule; 4] =
    [VictimRule::Random, VictimRule::Nearest, VictimRule::Loaded, VictimRule::TwoChoices];

fn balance(rng: &mut ChaCha8Rng) -> Balance {
    Balance {
        victim: VICTIMS[rng.random_range(0..VICTIMS.len())],
        amount: [Amount::One, Amount::Half, Amount::Fit][rng.random_range(0..3usize)],
        initiative: if rng.random_bool(0.5) { Initiative::Pull } else { Initiative::Push },
        select: Selection::FirstFit,
    }
}

/// Switches that came after the first release with any, by a stream of their own: seeds that do not draw them stay what they
/// were.
fn newer(rng: &mut ChaCha8Rng, strategy: Strategy, options: &mut Options) -> Strategy {
    match strategy {
        Strategy::Balance(balance) if rng.random_bool(0.3) => {
            Strategy::Balance(Balance { select: Selection::Easy, ..balance })
        }
        Strategy::Steal(_) | Strategy::StealGreedy(_) if rng.random_bool(0.2) => {
            options.steal.prefetch = Some(micros(rng, Span::ZERO, Span::from_secs(60)));
            strategy
        }
        _ => strategy,
    }
}

/// Where jobs enter, and until when.
fn entry(rng: &mut ChaCha8Rng) -> (Submit, Time) {
    let submit = if rng.random_bool(0.5) { Submit::Home } else { Submit::Origin };
    (submit, Time::from_secs([0, 60, 300, 900][rng.random_range(0..4usize)]))
}

fn jobs(rng: &mut ChaCha8Rng, grid: &Grid, horizon: Time) -> Vec<TimedJob> {
    let count = if rng.random_bool(0.5) { rng.random_range(10..=25) } else { rng.random_range(10..=80) };
    let longest = [5, 60, 240][rng.random_range(0..3usize)];
    let narrow = rng.random_bool(0.5);
    let mut jobs: Vec<TimedJob> = (1..=count)
        .map(|id| {
            let origin = SiteId::from_index(rng.random_range(0..grid.len()));
            let widest =
                if narrow && rng.random_bool(0.8) { grid.site(origin).processors } else { grid.widest() };
            let run_time = if rng.random_bool(0.05) {
                Span::ZERO
            } else {
                micros(rng, Span::ZERO, Span::from_secs(longest))
            };
            let factor = rng.random_range(1..=3);
            let spec = JobSpec {
                id: JobId(id),
                submit: Time::from_micros(rng.random_range(0..=horizon.as_micros())),
                processors: rng.random_range(1..=widest),
                requested: run_time.saturating_mul(factor).max(Span::from_secs(1)),
                labels: Labels::UNKNOWN,
                origin,
                payload: 0,
            };
            TimedJob { spec, run_time }
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    jobs
}

/// Links without faults, and the longest delay that is usual on them.
fn network(rng: &mut ChaCha8Rng) -> (Model, Span) {
    let delay = match rng.random_range(0..10) {
        0 => Span::ZERO,
        1..5 => micros(rng, Span::from_micros(1_000), Span::from_micros(300_000)),
        _ => micros(rng, Span::from_secs(1), Span::from_secs(10)),
    };
    let mut model = Model::constant(delay);
    let jitter = if rng.random_bool(0.5) { micros(rng, Span::ZERO, Span::from_secs(5)) } else { Span::ZERO };
    if jitter > Span::ZERO {
        model.properties.jitter = Jitter::up_to(jitter);
        model.properties.reorder = rng.random_bool(0.5);
    }
    (model, delay + jitter)
}

fn options(rng: &mut ChaCha8Rng, strategy: Strategy, longest: Span) -> Options {
    let round_trip = longest.saturating_mul(2) + Span::from_secs(1);
    let retry = round_trip + micros(rng, Span::ZERO, Span::from_secs(20));
    let mut options = Options {
        retry: Some(retry),
        pool: PoolOptions { refresh: Some(round_trip.saturating_mul(rng.random_range(1..=10))) },
        balance: BalanceOptions {
            gossip: Span::from_secs(rng.random_range(5..=60)),
            ..BalanceOptions::default()
        },
        journal: true,
        message_events: false,
        ..Options::default()
    };
    if rng.random_bool(0.3) {
        options.interrupted = Interrupted::Kill;
    }
    if rng.random_bool(0.5) {
        return options;
    }
    options.steal.window = rng.random_range(1..=2);
    options.batch = [1, 2, 4, 1024][rng.random_range(0..4usize)];
    options.steal.eager = rng.random_bool(0.5);
    options.bounces_max = rng.random_range(0..4);
    options.recall = rng.random_bool(0.5).then(|| retry.saturating_mul(rng.random_range(1..=4)));
    options.unanswered_max = [1, 2, 5, 1024][rng.random_range(0..4usize)];
    options.balance.tries = rng.random_range(1..=4);
    options.balance.gossip_fanout = rng.random_range(1..=3);
    options.margin = rng.random_bool(0.3).then(|| Span::from_secs(rng.random_range(0..60)));
    if rng.random_bool(0.25) && !matches!(strategy, Strategy::Pool(_)) {
        let period = Span::from_secs(rng.random_range(2..10));
        options.discovery = Discovery::Polling { period, period_max: period.saturating_mul(8) };
    }
    options
}

/// What goes wrong, and when it is over.
fn faults(rng: &mut ChaCha8Rng, grid: &Grid, horizon: Time, longest: Span) -> (Vec<Fault>, Time) {
    let healed = horizon + Span::from_secs(rng.random_range(60..=600));
    let mut faults = Vec::new();
    if rng.random_bool(0.6) {
        let (loss, duplication) = (rng.random_range(0.0..0.3), rng.random_range(0.0..0.3));
        let jitter = micros(rng, Span::from_micros(1), longest + Span::from_micros(1));
        faults.push(Fault::Noise(Properties::unreliable(loss, duplication, jitter)));
    }
    for index in 0..grid.len() {
        if rng.random_bool(0.2) {
            faults.push(Fault::Clock {
                site: SiteId::from_index(index),
                offset: Span::from_micros(rng.random_range(-3_600_000_000..=3_600_000_000)),
                drift_ppm: rng.random_range(-50_000..=50_000),
            });
        }
    }
    for _ in 0..rng.random_range(0..=12) {
        faults.push(fault(rng, grid, healed));
    }
    (faults, healed)
}

pub(super) fn fault(rng: &mut ChaCha8Rng, grid: &Grid, healed: Time) -> Fault {
    let site = SiteId::from_index(rng.random_range(0..grid.len()));
    let at = Time::from_micros(rng.random_range(0..healed.as_micros()));
    let length = [2, 20, 120][rng.random_range(0..3usize)];
    let lasts = micros(rng, Span::ZERO, Span::from_secs(length));
    let until = at.saturating_add(lasts).min(healed);
    match rng.random_range(0..10) {
        0..5 => Fault::Crash {
            site,
            at,
            down: Some(lasts),
            written_percent: rng.random_range(0..=100),
            torn: rng
                .random_bool(0.7)
                .then(|| Torn { written: rng.random_bool(0.8), outputs: rng.random_range(0..4) }),
        },
        5 | 6 => Fault::Pause { site, at, lasts },
        7 => Fault::SlowDisk { site, at, until, takes: micros(rng, Span::ZERO, Span::from_secs(5)) },
        _ => Fault::Cut(Cut { at, until, between: between(rng, grid) }),
    }
}

/// Whether sites say that they are there, and which of them die for good, leave, or join late. One site stays.
fn membership(
    rng: &mut ChaCha8Rng,
    grid: &Grid,
    options: &mut Options,
    faults: &mut Vec<Fault>,
    healed: Time,
    longest: Span,
) {
    if rng.random_bool(MEMBERSHIP_SHARE) {
        members(rng, grid, options, faults, healed, longest);
    }
}

/// The same in any case.
pub(super) fn members(
    rng: &mut ChaCha8Rng,
    grid: &Grid,
    options: &mut Options,
    faults: &mut Vec<Fault>,
    healed: Time,
    longest: Span,
) {
    let heartbeat = micros(rng, Span::from_secs(10), Span::from_secs(40));
    options.heartbeat = Some(heartbeat);
    // Noise doubles the longest delay.
    options.suspect_after = heartbeat.saturating_mul(rng.random_range(3..=5)) + longest.saturating_mul(4);
    let stays = rng.random_range(0..grid.len());
    let site = |rng: &mut ChaCha8Rng| {
        let index = rng.random_range(0..grid.len());
        (index != stays).then(|| SiteId::from_index(index))
    };
    let at = |rng: &mut ChaCha8Rng| Time::from_micros(rng.random_range(0..healed.as_micros()));
    if rng.random_bool(0.3)
        && let Some(site) = site(rng)
    {
        faults.push(Fault::Join { site, at: at(rng) });
    }
    if rng.random_bool(0.15) {
        // Without a lease nobody takes over, so nobody may die.
        return;
    }
    options.lease = Some(options.suspect_after + micros(rng, Span::ZERO, Span::from_secs(120)));
    for _ in 0..rng.random_range(0..=2) {
        let Some(site) = site(rng) else { continue };
        let torn = rng.random_bool(0.5);
        let torn = torn.then(|| Torn { written: rng.random_bool(0.8), outputs: rng.random_range(0..4) });
        let written_percent = rng.random_range(0..=100);
        faults.push(Fault::Crash { site, at: at(rng), down: None, written_percent, torn });
    }
    for _ in 0..rng.random_range(0..=2) {
        let Some(site) = site(rng) else { continue };
        faults.push(Fault::Leave { site, at: at(rng) });
    }
}

pub(super) fn between(rng: &mut ChaCha8Rng, grid: &Grid) -> Between {
    let mut some = || -> BTreeSet<SiteId> {
        (0..grid.len()).map(SiteId::from_index).filter(|_| rng.random_bool(0.5)).collect()
    };
    let (first, second) = (some(), some());
    if rng.random_bool(0.5) {
        Between::OneWay { from: Some(first), to: Some(second) }
    } else {
        let second = second.difference(&first).copied().collect();
        Between::Groups(vec![first, second])
    }
}
