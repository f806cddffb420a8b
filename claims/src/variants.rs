//! Claims that one way of sharing work is better than another, by differences paired by seed.

use std::sync::Arc;

use links::Model;
use protocol::BalanceOptions;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use scheduler::{Grid, JobId, JobSpec, Labels, SiteId, Span, Submit, Time, TimedJob};

use crate::cells::{Group, Of, Question, Says, Unit, ask};
use crate::runs::{Instance, Measured, Network, change, named, peers, span};
use crate::{Found, Parameters};

/// Mean waits below this are as good as none, in seconds.
const WAIT_FLOOR_S: f64 = 1.0;

fn run(instance: &Instance, strategy: &str, network: &Network) -> Measured {
    peers(instance, named(strategy).strategy, network)
        .unwrap_or_else(|violation| panic!("{strategy}: {violation}; nothing is lost here"))
}

/// By how much a mean wait is above another, as a logarithm.
fn wait_change(one: &Measured, other: &Measured) -> f64 {
    change(one.metrics.wait_mean_s, other.metrics.wait_mean_s, WAIT_FLOOR_S)
}

fn model(parameters: &Parameters, load: f64, seed: u64) -> Instance {
    Instance::model(&parameters.sites, parameters.jobs, load, seed)
}

/// Every load with every delay, and whether something is claimed there.
fn settings(parameters: &Parameters) -> impl Iterator<Item = (f64, f64, bool)> + '_ {
    let claimed = parameters.delays_s.iter().map(|&delay| (delay, true));
    let reported = parameters.reported_delays_s.iter().map(|&delay| (delay, false));
    let delays: Vec<(f64, bool)> = claimed.chain(reported).collect();
    parameters
        .loads
        .iter()
        .flat_map(move |&load| delays.clone().into_iter().map(move |(delay, claimed)| (load, delay, claimed)))
}

/// Q13: `strategies[0]` is ST50, the others have one queue. Wrong: the last one is the reference.
pub(crate) fn one_queue_is_no_worse(parameters: &Parameters, wrong: bool) -> Found {
    let mut strategies = parameters.strategies.clone();
    if wrong {
        strategies.reverse();
    }
    let strategies = &strategies;
    let groups = settings(parameters).map(|(load, delay, claimed)| {
        // Columns: the ratio of each, then changes of ratio and wait of each but the first.
        let count = strategies.len();
        let questions = (1..count).flat_map(|one| {
            let question = |what: &str, of, unit, margin| Question {
                name: format!(
                    "load {load}, d = {delay} s, {} against {}, {what}",
                    strategies[one], strategies[0]
                ),
                of,
                unit,
                says: claimed.then_some(Says::Below(margin)),
            };
            [
                question("ratio", Of::Mean(count + 2 * (one - 1)), Unit::Change, parameters.margin),
                question("mean wait", Of::Mean(count + 2 * one - 1), Unit::Change, parameters.margin_wait),
                question(
                    "variance of the ratio",
                    Of::Spread(one, 0),
                    Unit::Percent,
                    parameters.margin_variance,
                ),
            ]
        });
        Group {
            questions: questions.collect(),
            measure: Box::new(move |seed| {
                let (instance, network) = (model(parameters, load, seed), Network::delayed(delay));
                let all: Vec<Measured> =
                    strategies.iter().map(|name| run(&instance, name, &network)).collect();
                let ratios = all.iter().map(Measured::ratio);
                let changes = all[1..]
                    .iter()
                    .flat_map(|one| [change(one.ratio(), all[0].ratio(), 0.0), wait_change(one, &all[0])]);
                ratios.chain(changes).collect()
            }),
            runs: count as u64,
        }
    });
    ask(parameters, groups.collect())
}

/// Q14: all `strategies` against the first, with a margin. Wrong: nothing is stolen.
pub(crate) fn order_and_fit_do_not_matter(parameters: &Parameters, wrong: bool) -> Found {
    let mut strategies = parameters.strategies.clone();
    if wrong {
        strategies[1..].fill("local".into());
    }
    let strategies = &strategies;
    let groups = settings(parameters).map(|(load, delay, _)| Group {
        questions: strategies[1..]
            .iter()
            .enumerate()
            .map(|(column, name)| Question {
                name: format!("load {load}, d = {delay} s, {name} against {}, ratio", strategies[0]),
                of: Of::Mean(column),
                unit: Unit::Change,
                says: Some(Says::Within(parameters.margin)),
            })
            .collect(),
        measure: Box::new(move |seed| {
            let (instance, network) = (model(parameters, load, seed), Network::delayed(delay));
            let ratio = |name: &String| run(&instance, name, &network).ratio();
            let first = ratio(&strategies[0]);
            strategies[1..].iter().map(|name| change(ratio(name), first, 0.0)).collect()
        }),
        runs: strategies.len() as u64,
    });
    ask(parameters, groups.collect())
}

/// Two strategies on the same jobs, and what each may spend on messages.
struct Duel<'a> {
    parameters: &'a Parameters,
    strategies: [String; 2],
    instance: Box<dyn Fn(u64) -> Instance + Sync + 'a>,
    network: Network,
    options: [BalanceOptions; 2],
}

/// Pilots have seeds of their own, so that no budget is chosen by the runs that are judged. With 8 of them one side was
/// found to send no more, and sent 1 % more in the runs that were judged.
const PILOTS: std::ops::Range<u64> = 1_000_000..1_000_064;

impl Duel<'_> {
    fn measure(&self, which: usize, seed: u64, options: BalanceOptions) -> Measured {
        let mut network = self.network.clone();
        network.seed = seed;
        network.options.balance = options;
        run(&(self.instance)(seed), &self.strategies[which], &network)
    }

    fn pilot(&self, which: usize, options: BalanceOptions) -> f64 {
        let sent = PILOTS.into_par_iter().map(|seed| self.measure(which, seed, options).messages);
        sent.sum::<u64>() as f64
    }

    /// Cuts the side that sends more down to the first budget with which it no longer does, or to the least there is. Then
    /// whether the first sends no more than the second, without which a claim of equal budgets says nothing.
    fn with_equal_budgets(mut self) -> (Self, bool) {
        let mut sent = [self.pilot(0, self.options[0]), self.pilot(1, self.options[1])];
        let more = usize::from(sent[1] > sent[0]);
        for &(gossip, tries) in &self.parameters.budgets {
            let options = BalanceOptions { gossip: span(gossip), tries, ..self.options[more] };
            self.options[more] = options;
            sent[more] = self.pilot(more, options);
            if sent[more] <= sent[1 - more] {
                break;
            }
        }
        (self, sent[0] <= sent[1])
    }

    /// As `group`, of sides that may send as much; nothing is said where no budget is small enough for the first.
    fn group_of_equal_budgets<'a>(self, place: String, says: Says) -> Group<'a>
    where
        Self: 'a,
    {
        let (duel, comparable) = self.with_equal_budgets();
        duel.group(place, comparable.then_some(says))
    }

    /// The wait of the first against that of the second, and its messages, which are only reported.
    fn group<'a>(self, place: String, says: Option<Says>) -> Group<'a>
    where
        Self: 'a,
    {
        let name = |which: usize| {
            let (strategy, options) = (&self.strategies[which], self.options[which]);
            let whole = options_of(self.parameters);
            let news = format!(", news every {} s", options.gossip.as_secs_f64());
            let news = if options.gossip == whole.gossip { "" } else { &news };
            if options == whole {
                strategy.clone()
            } else {
                format!("{strategy} (tries {}{news})", options.tries)
            }
        };
        let place = format!("{place}, {} against {}", name(0), name(1));
        let question = |what: &str, column, says| Question {
            name: format!("{place}, {what}"),
            of: Of::Mean(column),
            unit: Unit::Change,
            says,
        };
        let questions = vec![question("mean wait", 0, says), question("messages", 1, None)];
        let measure = move |seed| {
            let [one, other] = [0, 1].map(|which| self.measure(which, seed, self.options[which]));
            vec![wait_change(&one, &other), change(one.messages as f64, other.messages as f64, 1.0)]
        };
        Group { questions, measure: Box::new(measure), runs: 2 }
    }
}

fn options_of(parameters: &Parameters) -> BalanceOptions {
    let default = BalanceOptions::default();
    if parameters.gossip_s > 0.0 {
        BalanceOptions { gossip: span(parameters.gossip_s), ..default }
    } else {
        default
    }
}

/// Two clusters of sites: `inside` between sites of one, `between` from one to the other.
fn clusters(sites: usize, inside: Span, between: Span) -> Model {
    let of = |from: usize, to: usize| match (from == to, (from < sites / 2) == (to < sites / 2)) {
        (true, _) => Span::ZERO,
        (_, true) => inside,
        _ => between,
    };
    Model::matrix((0..sites).map(|from| (0..sites).map(|to| of(from, to)).collect()).collect())
}

/// Q15: `strategies` are by load, then by distance, with as many messages; between clusters `delays_s`, inside a hundredth
/// of it. Wrong: the first steals nothing.
pub(crate) fn load_beats_distance(parameters: &Parameters, wrong: bool) -> Found {
    let groups = settings(parameters).map(|(load, delay, _)| {
        let mut network = Network::delayed(0.0);
        network.model = clusters(parameters.sites.len(), span(delay / 100.0), span(delay));
        network.submit = Submit::Origin;
        let first = if wrong { "local" } else { &parameters.strategies[0] };
        let duel = Duel {
            parameters,
            strategies: [first.to_string(), parameters.strategies[1].clone()],
            instance: Box::new(move |seed| model(parameters, load, seed)),
            network,
            options: [options_of(parameters); 2],
        };
        duel.group_of_equal_budgets(format!("load {load}, {delay} s between clusters"), Says::Below(0.0))
    });
    ask(parameters, groups.collect())
}

/// Jobs of one processor, exponential run times of mean `mean` seconds, Poisson arrivals of the same rate everywhere.
fn exponential(sites: usize, jobs: usize, load: f64, mean: f64, seed: u64) -> Instance {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |mean: f64| -mean * (1.0 - rng.random::<f64>()).ln();
    let gap = mean / (load * sites as f64);
    let mut now = 0.0;
    let mut list = Vec::new();
    for id in 1..=jobs as u64 {
        now += draw(gap);
        let run_time = span(draw(mean).max(1e-6));
        let origin = SiteId(1 + (draw(1.0).fract() * 1e9) as u32 % sites as u32);
        let spec = JobSpec {
            id: JobId(id),
            submit: Time::ZERO + span(now),
            processors: 1,
            requested: run_time.max(Span::from_secs(1)),
            labels: Labels::UNKNOWN,
            origin,
            payload: 0,
        };
        list.push(TimedJob { spec, run_time });
    }
    let grid = Grid::of_sizes(&vec![1; sites]).expect("sites of one processor");
    Instance { grid: Arc::new(grid), jobs: list }
}

/// Mean run time in the experiments with exponential jobs, in seconds; delays are in the same unit.
const MEAN_S: f64 = 100.0;

/// Two strategies on sites of one processor with exponential jobs.
fn duel_of_exponential(parameters: &Parameters, strategies: [String; 2], load: f64, delay: f64) -> Duel<'_> {
    let mut network = Network::delayed(delay);
    network.submit = Submit::Origin;
    let sites = parameters.sites.len();
    Duel {
        parameters,
        strategies,
        instance: Box::new(move |seed| exponential(sites, parameters.jobs, load, MEAN_S, seed)),
        network,
        options: [options_of(parameters); 2],
    }
}

/// Q16: `strategies` are the globally least or most loaded, then two choices; `delays_s` make news old. Wrong: both are
/// two choices.
pub(crate) fn two_choices_stand_old_news(parameters: &Parameters, wrong: bool) -> Found {
    let groups = settings(parameters).map(|(load, delay, _)| {
        let second = parameters.strategies[1].clone();
        let first = if wrong { second.clone() } else { parameters.strategies[0].clone() };
        // Fresh news must not make it worse already, else it does not become so.
        let old = delay >= 0.5 * MEAN_S;
        let says = if old { Says::Above(parameters.margin) } else { Says::Below(parameters.margin) };
        duel_of_exponential(parameters, [first, second], load, delay)
            .group(format!("load {load}, d = {} service times", delay / MEAN_S), Some(says))
    });
    ask(parameters, groups.collect())
}

/// Q17: `strategies` are push, then pull, with as many messages; `expected[0]` is the load of the crossover. Wrong: nothing
/// is pushed.
pub(crate) fn push_or_pull_by_load(parameters: &Parameters, wrong: bool) -> Found {
    let groups = settings(parameters).map(|(load, delay, _)| {
        let first = if wrong { "local" } else { &parameters.strategies[0] };
        let strategies = [first.to_string(), parameters.strategies[1].clone()];
        let says = if load < parameters.expected[0] { Says::Below(0.0) } else { Says::Above(0.0) };
        duel_of_exponential(parameters, strategies, load, delay)
            .group_of_equal_budgets(format!("load {load}, d = {delay} s"), says)
    });
    ask(parameters, groups.collect())
}

/// Q18: `strategies[0]` is a pool, `strategies[1]` local queues; mean waits of the users of each site. Wrong: the other way
/// round.
pub(crate) fn every_site_gains_from_a_pool(parameters: &Parameters, wrong: bool) -> Found {
    let mut strategies = [&parameters.strategies[0], &parameters.strategies[1]];
    if wrong {
        strategies.reverse();
    }
    let groups = settings(parameters).map(|(load, delay, claimed)| Group {
        questions: parameters
            .sites
            .iter()
            .enumerate()
            .map(|(site, processors)| Question {
                name: format!(
                    "load {load}, d = {delay} s, users of site {} of {processors}, mean wait, {} against {}",
                    site + 1,
                    strategies[0],
                    strategies[1]
                ),
                of: Of::Mean(site),
                unit: Unit::Change,
                says: claimed.then_some(Says::Below(0.0)),
            })
            .collect(),
        measure: Box::new(move |seed| {
            let instance = model(parameters, load, seed);
            let mut network = Network::delayed(delay);
            network.submit = Submit::Origin;
            network.seed = seed;
            let waits = strategies.map(|name| {
                let mut sums = vec![(0.0_f64, 0_u32); parameters.sites.len()];
                for row in run(&instance, name, &network).outcome.finished() {
                    let sum = &mut sums[row.origin.index()];
                    sum.0 += row.wait().map_or(0.0, Span::as_secs_f64);
                    sum.1 += 1;
                }
                sums.into_iter().map(|(wait, jobs)| wait / f64::from(jobs.max(1))).collect::<Vec<_>>()
            });
            waits[0].iter().zip(&waits[1]).map(|(one, other)| change(*one, *other, WAIT_FLOOR_S)).collect()
        }),
        runs: 2,
    });
    let mut found = ask(parameters, groups.collect());
    let cells = found.cells.len();
    let loses = |delay: f64| {
        let of = format!("d = {delay} s, ");
        found.cells.iter().any(|cell| cell.name.contains(&of) && cell.is_above_zero_of(cells))
    };
    let delays = parameters.delays_s.iter().chain(&parameters.reported_delays_s);
    found.figures.push(match delays.copied().find(|&delay| loses(delay)) {
        Some(delay) => format!(
            "the least delay with a site whose users wait longer is {delay} s, corrected for {cells} cells"
        ),
        None => format!("no delay has a site whose users wait longer, corrected for {cells} cells"),
    });
    found
}
