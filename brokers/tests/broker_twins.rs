//! Brokers with a global view against their naive twin, and the worked vector of all rules.

use brokers::allocation::{Allocator, Book, Site, admissible};
use brokers::ideal::Brokered;
use rand::{Rng, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::strategy::{
    ArrivingLoad, Completion, Count, Cut, Fraction, IdleSince, Overrun, OwnWait, Plan, Population,
    RunningWork,
};
use scheduler::{Broker, BrokerRule, Grid, JobSpec, LocalScheduler, Pass, SiteId, Time, TimedJob};

use crate::broker_twin::{Slip, TwinBrokered};
use crate::ideal_twin::{Ran, by_id, job, play};

/// Parts a, of which the last four meet borders of some grids below, where floating-point numbers would not.
const PARTS: [(u32, u32); 8] = [(1, 1), (1, 2), (1, 4), (3, 4), (1, 3), (11, 20), (7, 100), (29, 100)];

/// Local schedulers whose reservations do not outlive an instant.
const LOCALS: [LocalScheduler; 4] =
    [LocalScheduler::Fcfs, LocalScheduler::Easy, LocalScheduler::EasyBestFit, LocalScheduler::List];

fn pick<T: Copy>(rng: &mut impl Rng, all: &[T]) -> T {
    all[rng.random_range(0..all.len())]
}

fn rules(rng: &mut impl Rng) -> Broker {
    // Neither chance nor somebody else.
    let rule = pick(rng, &BrokerRule::BUILT_IN[1..]);
    let (part, whole) = pick(rng, &PARTS);
    Broker {
        admissible: Fraction::new(part, whole).unwrap(),
        cut: pick(rng, Cut::ALL),
        count: pick(rng, Count::ALL),
        arriving: pick(rng, ArrivingLoad::ALL),
        running: pick(rng, RunningWork::ALL),
        completion: pick(rng, Completion::ALL),
        idle: pick(rng, IdleSince::ALL),
        own_wait: pick(rng, OwnWait::ALL),
        population: pick(rng, Population::ALL),
        plan: if rng.random_bool(0.7) { Plan::Resynchronised } else { pick(rng, Plan::ALL) },
        overrun: pick(rng, Overrun::ALL),
        ..Broker::new(rule)
    }
}

/// Some sites and brokers, and jobs of which some run past their estimates.
fn instance(rng: &mut impl Rng) -> (Grid, Vec<TimedJob>) {
    let random: Vec<u32> = (0..rng.random_range(1..=6)).map(|_| rng.random_range(1..=12)).collect();
    let sizes = match rng.random_range(0..8) {
        0 => vec![45, 20, 35],
        1 => vec![7, 93],
        2 => vec![71, 29],
        _ => random,
    };
    let sites = sizes.iter().enumerate().map(|(place, &size)| (format!("site{place}"), size));
    let brokers = (0..rng.random_range(0..3)).map(|number| (format!("broker{number}"), None));
    let grid = Grid::with_brokers(sites, brokers).unwrap();
    let (count, horizon) = (rng.random_range(1..=30), pick(rng, &[0, 12, 40]));
    let mut jobs: Vec<TimedJob> = (1..=count)
        .map(|id| {
            let size = pick(rng, &sizes);
            let width = if rng.random_bool(0.5) { size } else { rng.random_range(1..=size) };
            let run = rng.random_range(0..12);
            let requested = run * rng.random_range(0..4);
            let mut job = job(id, width, run, requested, rng.random_range(0..=horizon));
            job.spec.origin = SiteId::from_index(rng.random_range(0..sizes.len()));
            job
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    (grid, jobs)
}

struct Case {
    grid: Grid,
    jobs: Vec<TimedJob>,
    rules: Broker,
    local: LocalScheduler,
}

impl Case {
    fn of(seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (grid, jobs) = instance(&mut rng);
        Case { grid, jobs, rules: rules(&mut rng), local: pick(&mut rng, &LOCALS) }
    }

    fn brokered(&self) -> Vec<Ran> {
        by_id(play(&mut Brokered::new(&self.grid, self.rules, self.local, Pass::Batch, 1), &self.jobs))
    }

    fn twin(&self, slip: Option<Slip>) -> Vec<Ran> {
        by_id(play(&mut TwinBrokered::new(&self.grid, self.rules, self.local, slip), &self.jobs))
    }
}

const CASES: u64 = 6000;

#[test]
fn brokers_equal_their_naive_twin() {
    for seed in 0..CASES {
        let case = Case::of(seed);
        assert_eq!(case.brokered(), case.twin(None), "seed {seed}: {} with {:?}", case.rules, case.local);
    }
}

#[test]
fn mutant_each_slip_is_told_from_the_broker() {
    let counts = option_env!("STEALGRID_COUNT").is_some();
    let mut noticed = [0; Slip::ALL.len()];
    for seed in 0..CASES {
        let case = Case::of(seed);
        let right = case.twin(None);
        for (slip, noticed) in Slip::ALL.into_iter().zip(&mut noticed) {
            // Once is enough, unless somebody counts, as docs/MUTANTS.md does.
            if *noticed == 0 || counts {
                *noticed += u32::from(case.twin(Some(slip)) != right);
            }
        }
        if !counts && noticed.iter().all(|&count| count > 0) {
            break;
        }
    }
    println!("{:?} of {CASES}: {noticed:?}", Slip::ALL);
    assert!(noticed.iter().all(|&count| count > 0), "{:?}: {noticed:?}", Slip::ALL);
}

/// Each admissible site comes about as often as another, and no other ever.
#[test]
fn a_random_broker_draws_each_admissible_site_as_often() {
    let sizes = [2, 4, 4, 8, 16];
    let rules = Broker { admissible: Fraction::new(1, 2).unwrap(), ..Broker::new(BrokerRule::Random) };
    let books = books(&sizes, LocalScheduler::Easy);
    let sites = sites(&books);
    let mut allocator = Allocator::new(rules, &sizes, LocalScheduler::Easy, Pass::Batch, 1, 0);
    let (range, mut drawn) = (admissible(&sizes, 3, rules.admissible, rules.cut), [0; 5]);
    assert_eq!(range, 1..4);
    for id in 0..9000 {
        let job = job(id, 3, 5, 5, 0).spec;
        drawn[allocator.choose(Time::ZERO, &job, &sites).unwrap()] += 1;
    }
    // 3000 each; the deviation is 45, and five of it once in a million.
    assert!((1..4).all(|place| (2775..=3225).contains(&drawn[place])), "{drawn:?}");
    assert_eq!((drawn[0], drawn[4]), (0, 0));
}

fn sites(books: &[Book]) -> Vec<Site<'_>> {
    let site = |(place, book)| Site { place, book, is_candidate: true, as_of: None };
    books.iter().enumerate().map(site).collect()
}

fn books(sizes: &[u32], local: LocalScheduler) -> Vec<Book> {
    sizes.iter().map(|&size| Book::new(local, Pass::Batch, size, true)).collect()
}

/// The worked vector: three sites with running jobs a to e, f waiting at the third, and the arriving job.
fn vector() -> (Vec<Book>, JobSpec) {
    let of = |id, width, requested| job(id, width, requested, requested, 0).spec;
    let mut books = books(&[4, 8, 16], LocalScheduler::Easy);
    for (place, id, width, requested) in
        [(0, 1, 2, 10), (1, 2, 8, 6), (2, 3, 4, 30), (2, 4, 4, 20), (2, 5, 8, 5)]
    {
        books[place].runs(Time::ZERO, of(id, width, requested), Time::ZERO);
    }
    books[2].joined(Time::ZERO, of(6, 8, 4));
    (books, of(7, 3, 5))
}

fn chosen(books: &[Book], job: &JobSpec, rules: Broker) -> usize {
    let sizes: Vec<u32> = books.iter().map(Book::processors).collect();
    let sites = sites(books);
    let mut allocator = Allocator::new(rules, &sizes, LocalScheduler::Easy, Pass::Batch, 1, 0);
    allocator.choose(Time::ZERO, job, &sites).unwrap() + 1
}

#[test]
fn the_worked_vector_has_its_values() {
    let (books, arriving) = vector();
    let per_processor = |value: &dyn Fn(&Book) -> f64| -> Vec<f64> {
        books.iter().map(|book| value(book) / f64::from(book.processors())).collect()
    };
    let load = |book: &Book| book.load(Count::All);
    assert_eq!(per_processor(&|book| load(book).jobs as f64), [0.25, 0.125, 0.25], "MLp");
    assert_eq!(per_processor(&|book| load(book).processors as f64), [0.5, 1.0, 1.5], "MPL");
    assert_eq!(per_processor(&|book| load(book).work as f64 / 1e6), [5.0, 6.0, 17.0], "MLB");
    let seconds = |times: Vec<Time>| times.into_iter().map(crate::ideal_twin::seconds).collect::<Vec<_>>();
    let plans = |job: Option<&JobSpec>| {
        books.iter().map(|book| book.plan(Time::ZERO, Overrun::Now, job).into_owned()).collect::<Vec<_>>()
    };
    let (before, after) = (plans(None), plans(Some(&arriving)));
    let idle = |plans: &[scheduler::local::Plan]| {
        seconds(plans.iter().map(|plan| plan.idle_from().unwrap()).collect())
    };
    assert_eq!(idle(&before), [10, 6, 30], "MCT of the site before");
    assert_eq!(idle(&after), [15, 11, 30], "MCT of the site after");
    let planned: Vec<_> = before.iter().map(|plan| plan.with(&arriving)).collect();
    assert_eq!(seconds(planned.iter().map(|job| job.end).collect()), [15, 11, 14], "MCT of the job");
    assert_eq!(seconds(planned.iter().map(|job| job.start).collect()), [10, 6, 9], "MST");
    // All were submitted now, and what runs has not waited.
    let waits = |width_counts: bool| -> Vec<f64> {
        let of = |place: usize| {
            let width = |id: u64| {
                if !width_counts {
                    1.0
                } else if id == 7 {
                    3.0
                } else {
                    8.0
                }
            };
            let sum: f64 = after[place]
                .jobs()
                .iter()
                .map(|job| job.start.as_micros() as f64 / 1e6 * width(job.job.0))
                .sum();
            sum / (load(&books[place]).jobs as f64 + 1.0)
        };
        (0..3).map(of).collect()
    };
    assert_eq!(waits(false), [5.0, 3.0, 2.8], "MWT with the job");
    assert_eq!(waits(true), [15.0, 9.0, 13.4], "MWWT_S with the job");
    let deviation = |place: usize| {
        let loads: Vec<f64> = books
            .iter()
            .enumerate()
            .map(|(other, book)| {
                let more = if other == place { 3 } else { 0 };
                (load(book).processors + more) as f64 / f64::from(book.processors())
            })
            .collect();
        let mean = loads.iter().sum::<f64>() / 3.0;
        (loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / 3.0).sqrt()
    };
    for (place, expected) in [0.2041, 0.4449, 0.4868].into_iter().enumerate() {
        assert!((deviation(place) - expected).abs() < 5e-5, "LBal_S {place}");
    }
}

#[test]
fn the_worked_vector_has_its_choices() {
    let (books, arriving) = vector();
    let of = Broker::new;
    let mct = of(BrokerRule::CompletionTime);
    let (mwt, mwwt) = (of(BrokerRule::MeanWait), of(BrokerRule::WeightedWait));
    for (name, rules, expected) in [
        ("MLp", of(BrokerRule::JobsPerProcessor), 2),
        ("MPL", of(BrokerRule::ParallelLoad), 1),
        ("LBal_S", of(BrokerRule::BalancedLoad), 1),
        ("MLB", of(BrokerRule::LowerBound), 1),
        ("MCT, site before", mct, 2),
        ("MCT, site after", Broker { completion: Completion::SiteAfter, ..mct }, 2),
        ("MCT, job", Broker { completion: Completion::JobAfter, ..mct }, 2),
        ("MST", of(BrokerRule::StartTime), 2),
        ("MWT with the job", mwt, 3),
        ("MWT without it", Broker { own_wait: OwnWait::Without, ..mwt }, 1),
        ("MWWT_S with the job", mwwt, 2),
    ] {
        assert_eq!(chosen(&books, &arriving, rules), expected, "{name}");
        // Nobody has ended, so who is in the system is who ever was.
        let system = Broker { population: Population::System, ..rules };
        assert_eq!(chosen(&books, &arriving, system), expected, "{name} in the system");
    }
}
