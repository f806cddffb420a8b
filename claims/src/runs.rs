//! Instances and runs: random small grids, model workloads, ideals and peers.

use std::sync::Arc;

use analysis::{Attribution, Bounds, Deficiency, Metrics, Outcome, OutcomeBuilder};
use links::{Model, Properties};
use protocol::{Options, PoolOptions, Terms};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, LocalUsers, SiteId, Span, Strategy,
    StrategySpec, Submit, Time, TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig, Violation};
use workload::generate::{EstimateModel, Generate, Streams, generate};
use workload::lublin::Kind;
use workload::prepare::{Origin, PrepareOptions};

use crate::Parameters;
use crate::ideal::Ideal;

/// A grid and its jobs, in queue order.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The sites of the instance.
    pub grid: Arc<Grid>,
    /// All jobs with their true run times, in queue order.
    pub jobs: Vec<TimedJob>,
}

/// A job of whole seconds.
pub fn job(id: u64, submit: i64, processors: u32, run_time: i64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors,
        requested: Span::from_secs(run_time.max(1)),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(run_time) }
}

impl Instance {
    /// A small random instance: widths follow the sizes of sites, so that all classes occur.
    pub fn random(parameters: &Parameters, seed: u64, offline: bool) -> Instance {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let sites = rng.random_range(1..=parameters.sites_max);
        let sizes: Vec<u32> = (0..sites).map(|_| rng.random_range(1..=parameters.size_max)).collect();
        let count = rng.random_range(1..=parameters.jobs_max);
        let mut jobs: Vec<TimedJob> = (1..=u64::from(count))
            .map(|id| {
                let size = sizes[rng.random_range(0..sizes.len())];
                let width = size.saturating_sub(rng.random_range(0..=size / 2)).max(1);
                let width = if rng.random_bool(0.5) { width } else { rng.random_range(1..=width) };
                let submit = if offline { 0 } else { rng.random_range(0..60) };
                job(id, submit, width, rng.random_range(1..40))
            })
            .collect();
        jobs.sort_by_key(|job| job.spec.key());
        Instance { grid: Arc::new(Grid::of_sizes(&sizes).expect("sites have processors")), jobs }
    }

    /// Jobs of the model of Lublin and Feitelson, one stream for each site; load 0: all at the start.
    pub fn model(sites: &[u32], jobs: usize, load: f64, seed: u64) -> Instance {
        let grid = Grid::of_sizes(sites).expect("the parameters name a grid");
        let request = Generate {
            kind: Kind::Typeless,
            grid: grid.clone(),
            streams: Streams::PerSite,
            jobs,
            seed,
            load: (load > 0.0).then_some(load),
            estimates: EstimateModel::Exact,
        };
        let trace = generate(&request).expect("the parameters are those of a model");
        let options = PrepareOptions { origin: Origin::Queue, ..PrepareOptions::default() };
        let mut jobs =
            workload::prepare(&trace, &options, grid.widest()).expect("the model fits the grid").jobs;
        if load <= 0.0 {
            jobs.iter_mut().for_each(|job| job.spec.submit = Time::ZERO);
            jobs.sort_by_key(|job| job.spec.key());
        }
        Instance { grid: Arc::new(grid), jobs }
    }
}

/// How peers are run.
#[derive(Clone, Debug)]
pub struct Network {
    /// Delays, loss, duplication and jitter.
    pub model: Model,
    /// Where jobs enter.
    pub submit: Submit,
    /// Of network and peers.
    pub seed: u64,
    /// Of the peers; repetitions of messages are set by the model.
    pub options: Options,
    /// What is asserted.
    pub checks: Checks,
    /// Whether [`Measured::attribution`] is wanted, which takes longer than the run.
    pub attribute: bool,
}

impl Network {
    /// The same delay everywhere, in seconds, and nothing else.
    pub fn delayed(delay_s: f64) -> Network {
        Network {
            model: Model::constant(span(delay_s)),
            submit: Submit::Home,
            seed: 1,
            options: Options::default(),
            checks: Checks::Cheap,
            attribute: false,
        }
    }

    /// The same with messages that are lost, come twice, or are late by up to `jitter_s`.
    #[must_use]
    pub fn unreliable(mut self, loss: f64, duplication: f64, jitter_s: f64) -> Network {
        self.model = self.model.with(Properties::unreliable(loss, duplication, span(jitter_s)));
        self
    }
}

/// Seconds as a span, to the microsecond.
pub fn span(seconds: f64) -> Span {
    Span::from_micros((seconds * 1e6).round() as i64)
}

/// A run, measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// One row per job.
    pub outcome: Outcome,
    /// Lower bounds on the makespan of this workload.
    pub bounds: Bounds,
    /// All metrics of the run.
    pub metrics: Metrics,
    /// Where processor time was lost; `None` if not every job ended, or it was not asked for.
    pub attribution: Option<Attribution>,
    /// (job, start, site) in queue order.
    pub starts: Vec<(JobId, Time, SiteId)>,
    /// When requests for work left.
    pub requests: Vec<Time>,
    /// Messages sent; 0 for ideals.
    pub messages: u64,
}

impl Measured {
    /// Makespan over the bound of the proofs.
    pub fn ratio(&self) -> f64 {
        Bounds::ratio(self.outcome.makespan(), self.bounds.proof).unwrap_or(1.0)
    }
}

struct Recorder {
    builder: OutcomeBuilder,
    deficiency: Option<Deficiency>,
    starts: Vec<(JobId, Time, SiteId)>,
    requests: Vec<Time>,
}

impl Recorder {
    fn new(instance: &Instance, strategy: &Strategy, attribute: bool) -> Recorder {
        Recorder {
            builder: OutcomeBuilder::new(&instance.grid, strategy.threshold(), &instance.jobs),
            deficiency: attribute.then(|| Deficiency::new(&instance.grid, strategy, &instance.jobs)),
            starts: Vec::new(),
            requests: Vec::new(),
        }
    }

    fn take(&mut self, event: &Event) {
        self.builder.observe(event);
        if let Some(deficiency) = &mut self.deficiency {
            deficiency.observe(event);
        }
        match event.kind {
            EventKind::Started { job, .. } => self.starts.push((job, event.at, event.site)),
            EventKind::Requested { .. } => self.requests.push(event.at),
            _ => {}
        }
    }

    fn finish(mut self, messages: u64) -> Measured {
        self.starts.sort_unstable();
        let outcome = self.builder.finish();
        let bounds = Bounds::of(&outcome);
        let metrics = Metrics::of(&outcome, &bounds);
        Measured {
            metrics,
            bounds,
            outcome,
            attribution: self.deficiency.and_then(Deficiency::finish),
            starts: self.starts,
            requests: self.requests,
            messages,
        }
    }
}

/// A strategy of the parameters.
///
/// # Panics
/// If it has no such name.
pub fn named(name: &str) -> StrategySpec {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// The ideal of a strategy.
///
/// # Panics
/// If the strategy has none.
pub fn ideal(instance: &Instance, spec: StrategySpec) -> Measured {
    ideal_of(instance, spec, LocalScheduler::default(), false)
}

/// The ideal of a strategy with these local schedulers.
///
/// # Panics
/// If the strategy has none.
pub fn ideal_under(instance: &Instance, spec: StrategySpec, local: LocalScheduler) -> Measured {
    ideal_of(instance, spec, local, false)
}

/// The ideal of a strategy, with [`Measured::attribution`].
///
/// # Panics
/// If the strategy has none.
pub fn ideal_attributed(instance: &Instance, spec: StrategySpec) -> Measured {
    ideal_of(instance, spec, LocalScheduler::default(), true)
}

fn ideal_of(instance: &Instance, spec: StrategySpec, local: LocalScheduler, attribute: bool) -> Measured {
    let mut recorder = Recorder::new(instance, &spec.strategy, attribute);
    let ideal = Ideal {
        terms: &Terms { local, ..Terms::new(instance.grid.clone(), spec.strategy) },
        fetch: spec.fetch,
        submit: Submit::Origin,
        local_users: &LocalUsers::default(),
        jobs: &instance.jobs,
    };
    let done = ideal.run_while(&mut |event| recorder.take(&event), &|| false);
    done.expect("the workload fits the grid");
    recorder.finish(0)
}

/// Far more than a run of these jobs makes; one that makes more talks for ever.
const EVENTS_PER_JOB: u64 = 20_000;

/// Peers over a network.
///
/// # Errors
/// The first violation of a check.
///
/// # Panics
/// If the grid never falls silent.
pub fn peers(instance: &Instance, strategy: Strategy, network: &Network) -> Result<Measured, Violation> {
    peers_seen_by(instance, strategy, network, |event, take| take(event))
}

/// The same through the eyes of an observer, who passes on what is to be measured.
///
/// # Errors
/// As [`peers`].
///
/// # Panics
/// As [`peers`].
pub(crate) fn peers_seen_by(
    instance: &Instance,
    strategy: Strategy,
    network: &Network,
    mut see: impl FnMut(&Event, &mut dyn FnMut(&Event)),
) -> Result<Measured, Violation> {
    let mut config = SimulationConfig::new(instance.grid.clone(), strategy);
    let lossy = !network.model.is_lossless();
    let round_trip = network.model.largest() + network.model.largest();
    config.options = Options {
        retry: lossy.then(|| round_trip.max(Span::from_secs(1))),
        pool: PoolOptions {
            refresh: lossy.then(|| Span::from_micros(10 * round_trip.as_micros()).max(Span::from_secs(10))),
        },
        message_events: false,
        ..network.options
    };
    config.network = network.model.clone();
    config.submit = network.submit;
    config.seed = network.seed;
    config.checks = network.checks;
    let mut recorder = Recorder::new(instance, &strategy, network.attribute);
    let mut left = EVENTS_PER_JOB * (instance.jobs.len() as u64 + instance.grid.len() as u64);
    let mut simulation = Simulation::new(config, &instance.jobs);
    while simulation.advance(&mut |event: &Event| {
        left = left.saturating_sub(1);
        see(event, &mut |event| recorder.take(event));
    })? {
        // An instant counts, too: messages alone leave no events here.
        left = left.saturating_sub(1);
        assert!(left > 0, "the grid never falls silent under {strategy}");
    }
    let messages = simulation.finish()?.messages;
    Ok(recorder.finish(messages))
}

/// The logarithm of a value over a reference, both at least `floor`, so that an idle grid does not count for all others.
pub fn change(value: f64, reference: f64, floor: f64) -> f64 {
    (value.max(floor) / reference.max(floor)).ln()
}
