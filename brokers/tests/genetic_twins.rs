//! The fast evaluation of rows against the local queues of the project, and against second by second scheduling; and the
//! genetic algorithm by what is known of its result.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use brokers::genetic::greedy::{Order, Rule, greedy};
use brokers::genetic::{
    Aim, Batch, Criteria, Found, Front, Individual, Mutation, Options, Purpose, RowOrder, RowScheduler,
    Scale, Scaling, Stays, beginning, by_chance, by_local_queues, dominates, initial, nsga2, search,
};
use proptest::prelude::*;
use scheduler::local::LocalQueue;
use scheduler::strategy::Completion;
use scheduler::{JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time, TimedJob};

fn spec(id: u64, processors: u32, seconds: i64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors,
        requested: Span::from_secs(seconds),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

fn batch(sizes: &[u32], jobs: &[(u32, i64)]) -> Batch {
    let widest = sizes[sizes.len() - 1];
    let jobs = (1..).zip(jobs).map(|(id, &(width, seconds))| spec(id, width.min(widest), seconds));
    Batch::new(sizes, jobs.collect()).unwrap()
}

fn evaluated(batch: &Batch, population: &mut [Individual]) {
    let mut scheduler = RowScheduler::new();
    population.iter_mut().for_each(|one| one.evaluate(batch, &mut scheduler));
}

fn batches() -> impl Strategy<Value = Batch> {
    // Few lengths, so that much ends at one instant.
    let sizes = prop::collection::vec(1u32..12, 1..5);
    (sizes, prop::collection::vec((1u32..12, 1i64..9), 1..60)).prop_map(|(mut sizes, jobs)| {
        sizes.sort_unstable();
        batch(&sizes, &jobs)
    })
}

/// The criteria by their formulas (§1.1), from starts in seconds by job.
fn by_formulas(batch: &Batch, starts: &BTreeMap<u32, i64>) -> [f64; 4] {
    let (mut makespan, mut sums) = (0, [0.0; 3]);
    for (&job, &start) in starts {
        let requested = batch.requested(job) / 1_000_000;
        let end = start + requested;
        makespan = makespan.max(end);
        sums[0] += end as f64;
        sums[1] += end as f64 / requested as f64;
        sums[2] += start as f64;
    }
    let [turnaround, response, wait] = sums.map(|sum| sum / starts.len() as f64);
    [makespan as f64, turnaround, response, wait]
}

fn shown(criteria: &Criteria) -> [f64; 4] {
    [criteria.makespan_s(), criteria.turnaround_s(), criteria.response_ratio(), criteria.wait_s()]
}

proptest! {
    #[test]
    fn rows_start_as_under_easy_with_turns_and_as_second_by_second(batch in batches(), seed in 0u64..1000) {
        let mut one = Individual::random(&batch, RowOrder::Random, &mut Purpose::Initial.draw(seed, 1));
        let mut scheduler = RowScheduler::new();
        let mut starts = BTreeMap::new();
        for (site, row) in one.rows().iter().enumerate() {
            let mut found = BTreeMap::new();
            scheduler.schedule(&batch, site, row, |job, start| {
                assert!(found.insert(job, start / 1_000_000).is_none(), "job {job} starts once");
            });
            let size = batch.sizes()[site];
            let mut queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, size);
            let mut renumbered = Vec::new();
            for (turn, &job) in (0..).zip(row) {
                let spec = batch.jobs()[job as usize];
                queue.submit_in_turn(Time::ZERO, spec, turn);
                renumbered.push(TimedJob { spec: JobSpec { id: JobId(turn), ..spec }, run_time: spec.requested });
            }
            let planned = queue.plan(Time::ZERO);
            let by_queue: BTreeMap<u32, i64> = planned
                .jobs()
                .iter()
                .map(|planned| (planned.job.0 as u32 - 1, planned.start.as_micros() / 1_000_000))
                .collect();
            prop_assert_eq!(&found, &by_queue);
            let by_seconds: BTreeMap<u32, i64> =
                crate::naive::in_order(LocalScheduler::Easy, Pass::Batch, size, &renumbered)
                    .into_iter()
                    .map(|(place, start)| (row[place.0 as usize], start.as_micros() / 1_000_000))
                    .collect();
            prop_assert_eq!(&found, &by_seconds);
            starts.extend(found);
        }
        one.evaluate(&batch, &mut scheduler);
        prop_assert_eq!(one.criteria(), &by_local_queues(&batch, one.rows(), |job| batch.jobs()[job as usize].requested));
        for (found, expected) in shown(one.criteria()).into_iter().zip(by_formulas(&batch, &starts)) {
            prop_assert!((found - expected).abs() <= 1e-9 * expected.max(1.0), "{} {}", found, expected);
        }
        prop_assert!(one.criteria().makespan_s() >= batch.lower_bound_s() - 1e-9);
    }
}

/// What is compared with the local queues tells EASY from its neighbors.
#[test]
fn mutant_rows_under_another_scheduler_are_told_from_those_under_easy() {
    for scheduler in [LocalScheduler::Fcfs, LocalScheduler::List, LocalScheduler::Conservative] {
        let differs = |&seed: &u64| {
            let mut draw = Purpose::Chance.draw(seed, 1);
            let jobs: Vec<(u32, i64)> =
                (0..30).map(|_| (1 + draw.below(8) as u32, 1 + draw.below(9) as i64)).collect();
            let batch = batch(&[8], &jobs);
            let row: Vec<u32> = (0..30).collect();
            let mut found = Vec::new();
            RowScheduler::new()
                .schedule(&batch, 0, &row, |job, start| found.push((u64::from(job) + 1, start)));
            let mut queue = LocalQueue::new(scheduler, Pass::Batch, 8);
            (0..).zip(batch.jobs()).for_each(|(turn, &job)| queue.submit_in_turn(Time::ZERO, job, turn));
            let planned = queue.plan(Time::ZERO);
            let mut planned: Vec<(u64, i64)> =
                planned.jobs().iter().map(|planned| (planned.job.0, planned.start.as_micros())).collect();
            found.sort_unstable();
            planned.sort_unstable();
            found != planned
        };
        let count = (0..100).filter(differs).count();
        println!("{scheduler:?}: {count} of 100");
        assert!(count > 0, "{scheduler:?} is taken for EASY");
    }
}

/// A batch with short and long, narrow and wide jobs.
fn mixed() -> Batch {
    let mut draw = Purpose::Initial.draw(11, 1);
    let widths = [1, 1, 1, 2, 2, 4, 4, 8, 16];
    let jobs: Vec<(u32, i64)> = (0..120)
        .map(|_| {
            (widths[draw.below(widths.len())], [1, 10, 100, 1000][draw.below(4)] * (1 + draw.below(9) as i64))
        })
        .collect();
    batch(&[4, 4, 8, 16], &jobs)
}

fn found(batch: &Batch, options: &Options, aim: Aim, seen: &mut Vec<f64>) -> Found {
    let mut evaluate = |population: &mut [Individual]| evaluated(batch, population);
    let first = initial(batch, options, &mut Purpose::Initial.draw(1, 1), &mut evaluate);
    let mut draw = Purpose::Algorithm(0).draw(1, 1);
    search(batch, options, aim, &first, &mut draw, &mut evaluate, &mut |step| {
        seen.push(step.average);
        ControlFlow::Continue(())
    })
}

#[test]
fn a_search_stops_after_exactly_ten_generations_without_a_better_one_and_repeats_itself() {
    let batch = mixed();
    let options = Options { population: 30, ..Options::default() };
    let mut seen = Vec::new();
    let one = found(&batch, &options, Aim::Owa, &mut seen);
    assert_eq!(one, found(&batch, &options, Aim::Owa, &mut Vec::new()));
    assert_eq!(seen.len(), one.generations as usize);
    assert!(seen.windows(2).all(|pair| pair[1] <= pair[0]), "the best so far gets worse");
    // The last improvement is in the ninth step before the last: the tenth stagnant generation ends it.
    let stagnant = seen.iter().rev().take_while(|&&average| average == seen[seen.len() - 1]).count();
    assert_eq!(stagnant, 10);
    assert!(one.generations > 20 && !one.stopped);
    assert!(one.evaluations <= 30 * (u64::from(one.generations) + 1));
    assert!(one.evaluations > 25 * u64::from(one.generations));
    let capped = Options { generations_max: 7, ..options };
    assert_eq!(found(&batch, &capped, Aim::Owa, &mut Vec::new()).generations, 7);
}

#[test]
fn a_search_begins_no_generation_that_could_exceed_its_evaluations() {
    let batch = mixed();
    let options = Options { population: 30, ..Options::default() };
    let free = found(&batch, &options, Aim::Owa, &mut Vec::new());
    assert!(free.evaluations > 600);

    for evaluations_max in [0, 30, 59, 60, 200, 500] {
        let bounded = Options { evaluations_max, ..options.clone() };
        let one = found(&batch, &bounded, Aim::Owa, &mut Vec::new());
        assert!(one.evaluations <= evaluations_max.max(30), "{evaluations_max}: {one:?}");
        assert!(one.evaluations + 30 > evaluations_max && !one.stopped, "it ends before it must");
        assert_eq!(one.generations == 0, evaluations_max < 60, "the initial population is made anyway");
    }
    let ample = Options { evaluations_max: free.evaluations + 30, ..options };
    assert_eq!(found(&batch, &ample, Aim::Owa, &mut Vec::new()), free);
}

#[test]
fn who_stops_a_search_keeps_the_best_so_far() {
    let batch = mixed();
    let options = Options { population: 30, ..Options::default() };
    let mut evaluate = |population: &mut [Individual]| evaluated(&batch, population);
    let first = initial(&batch, &options, &mut Purpose::Initial.draw(1, 1), &mut evaluate);
    let mut best = Criteria::default();
    let mut draw = Purpose::Algorithm(0).draw(1, 1);
    let stopped = search(&batch, &options, Aim::Makespan, &first, &mut draw, &mut evaluate, &mut |step| {
        best = *step.best;
        if step.generation == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(stopped.stopped);
    assert_eq!((stopped.generations, *stopped.best.criteria()), (5, best));
}

#[test]
fn each_aim_finds_less_of_what_it_is_for_than_the_initial_population_has() {
    let batch = mixed();
    for scaling in [Scaling::Initial, Scaling::Population, Scaling::Running] {
        let options = Options { population: 40, scaling, ..Options::default() };
        let mut evaluate = |population: &mut [Individual]| evaluated(&batch, population);
        let first = initial(&batch, &options, &mut Purpose::Initial.draw(1, 1), &mut evaluate);
        let scale = Scale::of(&first, options.reading);
        for aim in [Aim::Makespan, Aim::ResponseRatio, Aim::Turnaround, Aim::Wait, Aim::Owa] {
            let best = first.iter().map(|one| scale.cost(aim, one.criteria())).min().unwrap();
            for &operator in Mutation::ALL {
                let options = Options { operator, ..options.clone() };
                let found = found(&batch, &options, aim, &mut Vec::new());
                assert!(scale.cost(aim, found.best.criteria()) < best, "{aim:?} {operator:?} {scaling:?}");
            }
        }
    }
}

#[test]
fn elitism_never_loses_the_best_of_a_generation() {
    let batch = mixed();
    let mut bests: Vec<i64> = Vec::new();
    let options = Options { population: 20, elitism: 1, ..Options::default() };
    let mut evaluate = |population: &mut [Individual]| {
        evaluated(&batch, population);
        bests.push(population.iter().map(|one| one.criteria().makespan).min().unwrap());
    };
    let first = initial(&batch, &options, &mut Purpose::Initial.draw(1, 1), &mut evaluate);
    let mut draw = Purpose::Algorithm(0).draw(1, 1);
    let go_on = &mut |_: &brokers::genetic::Step<'_>| ControlFlow::Continue(());
    search(&batch, &options, Aim::Makespan, &first, &mut draw, &mut evaluate, go_on);
    assert!(bests.windows(2).all(|pair| pair[1] <= pair[0]), "{bests:?}");
}

#[test]
fn random_search_takes_the_evaluations_that_it_is_given_and_keeps_the_best() {
    let batch = mixed();
    let options = Options { population: 20, ..Options::default() };
    let mut costs = Vec::new();
    let mut evaluate = |population: &mut [Individual]| evaluated(&batch, population);
    let first = initial(&batch, &options, &mut Purpose::Initial.draw(1, 1), &mut evaluate);
    let scale = Scale::of(&first, options.reading);
    let mut evaluate = |population: &mut [Individual]| {
        evaluated(&batch, population);
        costs.extend(population.iter().map(|one| scale.cost(Aim::Owa, one.criteria())));
    };
    let mut draw = Purpose::Chance.draw(1, 1);
    let mut go_on = |_: &brokers::genetic::Step<'_>| ControlFlow::Continue(());
    let found = by_chance(&batch, &options, &scale, 47, &mut draw, &mut evaluate, &mut go_on);
    assert_eq!((found.evaluations, costs.len()), (47, 47));
    assert_eq!(Some(&scale.cost(Aim::Owa, found.best.criteria())), costs.iter().min());
}

#[test]
fn four_greedy_strategies_differ_and_by_the_jobs_own_times_all_are_one() {
    const RULES: [Rule; 4] = [Rule::CompletionTime, Rule::StartTime, Rule::Turnaround, Rule::Wait];
    let batch = mixed();
    let rows = |rule, stays| greedy(&batch, Order::Arrival, rule, Completion::SiteBefore, stays);
    // Four strategies that differ, as the tables have four.
    let by_site = RULES.map(|rule| rows(rule, Stays::Site));
    for (place, one) in by_site.iter().enumerate() {
        assert!(by_site[..place].iter().all(|other| other != one), "{place}");
    }
    // A job takes as long at all sites.
    let own = greedy(&batch, Order::Arrival, Rule::CompletionTime, Completion::JobAfter, Stays::Site);
    assert_eq!(own, by_site[1]);
    assert_eq!(rows(Rule::Wait, Stays::Job), own);
    assert_eq!(rows(Rule::Turnaround, Stays::Job), own);
}

#[test]
fn a_small_allocation_is_the_one_worked_out_by_hand() {
    // Four jobs of 10 s, one that needs a whole site for 6 s, and a short one.
    let jobs = batch(&[4, 4], &[(1, 10), (1, 10), (1, 10), (1, 10), (4, 6), (1, 1)]);
    let rows = |rule| greedy(&jobs, Order::Arrival, rule, Completion::SiteBefore, Stays::Site);
    // Ends before: (0, 0) a tie, (10, 0), then ties of 10, and (16, 10) for the last.
    assert_eq!(rows(Rule::CompletionTime), [vec![0, 2, 3, 4], vec![1, 5]]);
    // All four start at 0 at site 1; the last would start at (10, 6).
    assert_eq!(rows(Rule::StartTime), [vec![0, 1, 2, 3], vec![4, 5]]);
    // Means for the wide job (56 / 5, 6), for the last (51 / 5, 13 / 2).
    assert_eq!(rows(Rule::Turnaround), [vec![0, 1, 2, 3], vec![4, 5]]);
    // Means for the wide job (10 / 5, 0), for the last (10 / 5, 6 / 2).
    assert_eq!(rows(Rule::Wait), [vec![0, 1, 2, 3, 5], vec![4]]);
    // With the job itself, ends for the wide one are (16, 6), and for the last (11, 7).
    let after = greedy(&jobs, Order::Arrival, Rule::CompletionTime, Completion::SiteAfter, Stays::Site);
    assert_eq!(after, [vec![0, 1, 2, 3], vec![4, 5]]);

    let order = |order| greedy(&jobs, order, Rule::CompletionTime, Completion::SiteBefore, Stays::Site);
    // 5, 4, 0, 1, 2, 3. Ends before: a tie, (1, 0), (1, 6), (10, 6), (10, 16), (10, 16).
    assert_eq!(order(Order::ShortestFirst), [vec![5, 0, 2, 3], vec![4, 1]]);
    // Areas 24, 10, 10, 10, 10, 1. Ends before: a tie, (6, 0), (6, 10), (16, 10), (16, 10), (16, 10).
    assert_eq!(order(Order::LargestFirst), [vec![4, 1], vec![0, 2, 3, 5]]);
}

fn front_of(
    batch: &Batch,
    options: &Options,
    evaluations_max: u64,
    parts: usize,
) -> (Vec<Individual>, Front) {
    let mut evaluate = |population: &mut [Individual]| {
        // As threads would: in parts, the last first.
        population.chunks_mut(parts).rev().for_each(|part| evaluated(batch, part));
    };
    let first = initial(batch, options, &mut Purpose::Initial.draw(1, 1), &mut evaluate);
    let mut draw = Purpose::Algorithm(7).draw(1, 1);
    let mut last: Option<f64> = None;
    let scale = Scale::of(&first, options.reading);
    let options = &Options { evaluations_max, ..options.clone() };
    let begin = beginning(batch, options, &first, &[], &mut draw, &mut evaluate);
    let front = nsga2(batch, options, &scale, begin, &mut draw, &mut evaluate, &mut |step| {
        assert!(last.is_none_or(|last| step.average <= last), "the best so far gets worse");
        last = Some(step.average);
        ControlFlow::Continue(())
    });
    (first, front)
}

#[test]
fn a_front_has_no_member_that_another_one_dominates_and_covers_what_it_began_with() {
    let batch = mixed();
    for &operator in Mutation::ALL {
        let options = Options { population: 40, operator, ..Options::default() };
        let (first, front) = front_of(&batch, &options, 2000, 7);
        let points: Vec<&Criteria> = front.members.iter().map(Individual::criteria).collect();
        assert!(points.len() > 1, "{operator:?}: {}", points.len());
        for (place, one) in points.iter().enumerate() {
            assert!(points.iter().all(|other| !dominates(other, one)));
            assert!(points[..place].iter().all(|other| other.values() != one.values()), "twice the same");
        }
        // Who is best in a criterion stays, so that ends of the front are not behind the first ones.
        for place in 0..4 {
            let least =
                |all: &mut dyn Iterator<Item = &Criteria>| all.map(|one| one.values()[place]).min().unwrap();
            let before = least(&mut first.iter().map(Individual::criteria));
            assert!(least(&mut points.iter().copied()) < before, "{operator:?} {place}");
        }
        let largest = Scale::of(&first, options.reading);
        let costs = front.members.iter().map(|one| largest.cost(Aim::Owa, one.criteria()));
        assert_eq!(costs.min(), Some(largest.cost(Aim::Owa, front.found.best.criteria())));
        // The generation that reaches the number is the last.
        assert!((2000..2040).contains(&front.found.evaluations), "{}", front.found.evaluations);
    }
}

#[test]
fn a_front_repeats_itself_however_its_individuals_are_given_to_threads() {
    let batch = mixed();
    let options = Options { population: 31, ..Options::default() };
    let (_, one) = front_of(&batch, &options, 900, 31);
    assert_eq!(one, front_of(&batch, &options, 900, 4).1);
    assert_ne!(one, front_of(&batch, &Options { operator: Mutation::Swap, ..options }, 900, 4).1);
}
