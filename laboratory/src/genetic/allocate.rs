//! All algorithms on one batch, and what is written of each.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use brokers::genetic::greedy::greedy;
use brokers::genetic::{
    Batch, Criteria, Found, Individual, Options, Purpose, RowScheduler, Rows, Scale, Stays, Step, beginning,
    by_chance, by_local_queues, initial, nsga2, search,
};
use rayon::iter::ParallelIterator as _;
use rayon::slice::ParallelSliceMut as _;
use scheduler::Span;
use scheduler::strategy::Completion;
use serde::Serialize;

use super::algorithms::{Algorithm, FRONT_STREAM, Method, SEEDS};
use super::batches::TimedBatch;
use super::convergence::Point;
use super::fronts::FrontEntry;

/// Individuals that a thread takes at a time where one batch is on several: a millisecond's work.
const PART: usize = 8;
/// What random search and NSGA-II take where no genetic algorithm says how many: a hundred populations of a hundred.
const CHANCES: u64 = 10_000;

/// What an algorithm made of a batch: an object of `rows.json`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Entry {
    /// From 1.
    pub(super) batch: usize,
    /// As typed.
    pub(super) algorithm: String,
    /// Numbers of jobs by site, sites as typed, jobs in the order of the queue.
    pub(super) rows: Vec<Vec<u64>>,
    /// Criteria with requested times; all but the makespan are means.
    #[serde(flatten)]
    pub(super) requested: Figures,
    pub(super) lower_bound_s: f64,
    pub(super) evaluations: u64,
    pub(super) generations: u32,
    pub(super) seed: u64,
    /// Somebody stopped it before its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) stopped: bool,
    /// The same rows executed with true run times.
    pub(super) with_run_times: Figures,
}

/// The four criteria.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) makespan_s: f64,
    pub(super) turnaround_s: f64,
    pub(super) response_ratio: f64,
    pub(super) wait_s: f64,
}

/// What is the same for all batches.
pub(super) struct Setting<'a> {
    pub(super) algorithms: &'a [Algorithm],
    pub(super) options: &'a Options,
    pub(super) completion: Completion,
    pub(super) stays: Stays,
    /// As many as the genetic algorithm that took most, if none are given.
    pub(super) chances: Option<u64>,
    pub(super) seed: u64,
    /// For each site as typed, its place in order of size.
    pub(super) places: &'a [usize],
    /// Whether populations are evaluated on several threads.
    pub(super) spread: bool,
}

/// Is told how far an algorithm of a batch is, and of its end by `None`; says whether to go on.
pub(super) type Watch<'a> = dyn Fn(usize, &str, Option<&Step<'_>>) -> ControlFlow<()> + Sync + 'a;

/// What the algorithms made of a batch.
pub(super) struct Allocated {
    /// What is written of each, in the order of the algorithms.
    pub(super) entries: Vec<Entry>,
    /// How long each of them took.
    pub(super) times: Vec<Duration>,
    /// That of NSGA-II, if it is one of them.
    pub(super) front: Option<FrontEntry>,
    /// How those that search came to what they found.
    pub(super) points: Vec<Point>,
}

/// Runs all algorithms on a batch; fewer if it is told to stop.
pub(super) fn allocate(batch: &TimedBatch, setting: &Setting<'_>, watch: &Watch<'_>) -> Allocated {
    let number = batch.number as u64;
    let run_times = |job: u32| batch.run_times[job as usize];
    let TimedBatch { batch, .. } = batch;
    let mut evaluate = |population: &mut [Individual]| evaluate(batch, population, setting.spread);
    let mut first: Option<Vec<Individual>> = None;
    let mut entries: Vec<Option<Entry>> = vec![None; setting.algorithms.len()];
    let mut bests: Vec<Option<Criteria>> = vec![None; setting.algorithms.len()];
    let mut times: Vec<Option<Duration>> = vec![None; setting.algorithms.len()];
    let mut points: Vec<Vec<Point>> = vec![Vec::new(); setting.algorithms.len()];
    let mut front: Option<(usize, Vec<Individual>, Found)> = None;
    // Those are the last who may take as long as others did.
    let is_last = |place: usize| matches!(setting.algorithms[place].method, Method::Front | Method::Chance);
    let mut order: Vec<usize> = (0..setting.algorithms.len()).collect();
    order.sort_by_key(|&place| is_last(place));
    for place in order {
        let Algorithm { name, method } = &setting.algorithms[place];
        let own = &mut points[place];
        let mut told = |step: &Step<'_>| {
            own.extend(Point::of(number as usize, name, step));
            watch(number as usize, name, Some(step))
        };
        let population = match method {
            Method::Greedy(..) => &mut Vec::new(),
            Method::Genetic(..) | Method::Front | Method::Chance => first.get_or_insert_with(|| {
                let draw = &mut Purpose::Initial.draw(setting.seed, number);
                initial(batch, setting.options, draw, &mut evaluate)
            }),
        };
        let chances = || {
            let is_other = |place: &usize| !is_last(*place);
            let others = (0..entries.len()).filter(is_other).filter_map(|place| entries[place].as_ref());
            let most = others.map(|entry| entry.evaluations).max();
            setting.chances.or(most.filter(|&most| most > 1)).unwrap_or(CHANCES)
        };
        let begun = Instant::now();
        let found = match *method {
            Method::Greedy(order, rule) => {
                let rows = greedy(batch, order, rule, setting.completion, setting.stays);
                let mut best = Individual::new(rows);
                best.evaluate(batch, &mut RowScheduler::new());
                Found { best, evaluations: 1, generations: 0, stopped: false }
            }
            Method::Genetic(stream, aim, operator) => {
                let options = &Options { operator, ..setting.options.clone() };
                let draw = &mut Purpose::Algorithm(stream).draw(setting.seed, number);
                search(batch, options, aim, population, draw, &mut evaluate, &mut told)
            }
            Method::Front => {
                let draw = &mut Purpose::Algorithm(FRONT_STREAM).draw(setting.seed, number);
                let options = &Options { evaluations_max: chances(), ..setting.options.clone() };
                let scale = Scale::of(population, options.reading);
                let greedy =
                    SEEDS.map(|(order, rule)| greedy(batch, order, rule, setting.completion, setting.stays));
                let begin = beginning(batch, options, population, &greedy, draw, &mut evaluate);
                let found = nsga2(batch, options, &scale, begin, draw, &mut evaluate, &mut told);
                front = Some((place, found.members, found.found.clone()));
                found.found
            }
            Method::Chance => {
                let scale = Scale::of(population, setting.options.reading);
                let draw = &mut Purpose::Chance.draw(setting.seed, number);
                by_chance(batch, setting.options, &scale, chances(), draw, &mut evaluate, &mut told)
            }
        };
        times[place] = Some(begun.elapsed());
        let (made, best) = ((found.generations, found.evaluations), found.best.criteria());
        if !matches!(method, Method::Greedy(..)) {
            // It stands for all that would come.
            points[place].push(Point::new(number as usize, name, made, best));
        }
        let entry = Entry::of(batch, number as usize, name, &found, setting, run_times);
        entries[place] = Some(entry);
        bests[place] = Some(*found.best.criteria());
        if watch(number as usize, name, None).is_break() {
            break;
        }
    }
    let front = front.zip(first).map(|((own, members, found), initial)| {
        let others = bests.iter().enumerate().filter(|(place, _)| *place != own);
        let others =
            others.filter_map(|(place, best)| Some((setting.algorithms[place].name.as_str(), (*best)?)));
        FrontEntry::of(number as usize, &members, &found, &initial, others, setting.seed)
    });
    Allocated {
        entries: entries.into_iter().flatten().collect(),
        times: times.into_iter().flatten().collect(),
        front,
        points: points.concat(),
    }
}

/// Evaluates a population, which keeps its order.
fn evaluate(batch: &Batch, population: &mut [Individual], spread: bool) {
    let part = |part: &mut [Individual]| {
        let mut scheduler = RowScheduler::new();
        part.iter_mut().for_each(|one| one.evaluate(batch, &mut scheduler));
    };
    match spread {
        true => population.par_chunks_mut(PART).for_each(part),
        false => part(population),
    }
}

impl Entry {
    /// # Panics
    /// If the local queues of simulations and nodes make something else of the rows.
    fn of(
        batch: &Batch,
        number: usize,
        algorithm: &str,
        found: &Found,
        setting: &Setting<'_>,
        run_times: impl Fn(u32) -> Span,
    ) -> Entry {
        let rows: &Rows = found.best.rows();
        let again = by_local_queues(batch, rows, |job| batch.jobs()[job as usize].requested);
        assert_eq!(
            &again,
            found.best.criteria(),
            "batch {number}, {algorithm}: both ways to schedule rows agree"
        );
        let ids = |&place: &usize| rows[place].iter().map(|&job| batch.jobs()[job as usize].id.0).collect();
        Entry {
            batch: number,
            algorithm: algorithm.to_string(),
            rows: setting.places.iter().map(ids).collect(),
            requested: Figures::of(&again),
            lower_bound_s: batch.lower_bound_s(),
            evaluations: found.evaluations,
            generations: found.generations,
            seed: setting.seed,
            stopped: found.stopped,
            with_run_times: Figures::of(&by_local_queues(batch, rows, run_times)),
        }
    }
}

impl Figures {
    pub(super) fn of(criteria: &Criteria) -> Figures {
        Figures {
            makespan_s: criteria.makespan_s(),
            turnaround_s: criteria.turnaround_s(),
            response_ratio: criteria.response_ratio(),
            wait_s: criteria.wait_s(),
        }
    }

    /// In the order of the criteria.
    pub(super) fn values(&self) -> [f64; 4] {
        [self.makespan_s, self.turnaround_s, self.response_ratio, self.wait_s]
    }
}
