//! Rows behind what sites have already, against the plans of the local queues of the project; and plans of brokers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use brokers::allocation::{Book, Patience, Planner, Site};
use brokers::genetic::{Batch, Individual, Occupied, RowScheduler};
use brokers::{Act, Broker as _, Sites};
use proptest::prelude::*;
use scheduler::local::LocalQueue;
use scheduler::strategy::{Batches, Goal};
use scheduler::{JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time};

const NOW: i64 = 1000;

fn spec(id: u64, submit: i64, processors: u32, seconds: i64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors,
        requested: Span::from_secs(seconds),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

/// A site: what runs since when, what waits, and a row; widths and seconds.
type Drawn = (u32, Vec<(u32, i64, i64)>, Vec<(u32, i64)>, Vec<(u32, i64, i64)>);

fn drawn() -> impl Strategy<Value = Drawn> {
    let (width, seconds) = (1u32..9, 1i64..9);
    let running = prop::collection::vec((width.clone(), seconds.clone(), 0i64..12), 0..5);
    let waiting = prop::collection::vec((width.clone(), seconds.clone()), 0..6);
    let row = prop::collection::vec((width, seconds, 0i64..30), 1..20);
    (4u32..12, running, waiting, row)
}

/// What is known of the site, and the same site as a queue, in which the row joins behind the rest.
fn site((size, running, waiting, _): &Drawn) -> (Book, LocalQueue) {
    let now = Time::from_secs(NOW);
    let mut book = Book::new(LocalScheduler::Easy, Pass::Batch, *size, false).in_order_of_arrival();
    let mut queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, *size);
    let mut free = *size;
    for (&(width, seconds, ago), id) in running.iter().zip(1000..) {
        if width <= free {
            free -= width;
            let job = spec(id, 0, width, seconds);
            let since = Time::from_secs(NOW - ago);
            book.runs(now, job, since);
            // What runs past its estimate ends now, to a plan.
            if ago < seconds {
                queue.take_over(now, job, since);
            }
        }
    }
    for (&(width, seconds), place) in waiting.iter().zip(0..) {
        // Later submissions come first: only the order of arrival says what is before what.
        let job = spec(3000 - place as u64, NOW - place, width.min(*size), seconds);
        // What is on its way comes behind what is there.
        if place < 3 {
            book.joined(now, job)
        } else {
            book.expects(job)
        }
        queue.submit_in_turn(now, job, place as u64);
    }
    (book, queue)
}

proptest! {
    #[test]
    fn a_row_starts_as_the_queue_plans_it_behind_what_is_there(drawn in drawn()) {
        let (book, mut queue) = site(&drawn);
        let (size, _, waiting, row) = &drawn;
        let jobs: Vec<JobSpec> = row
            .iter()
            .zip(1..)
            .map(|(&(width, seconds, waited), id)| spec(id, NOW - waited, width.min(*size), seconds))
            .collect();
        for (job, turn) in jobs.iter().zip(waiting.len() as u64..) {
            queue.submit_in_turn(Time::from_secs(NOW), *job, turn);
        }
        let plan = queue.plan(Time::from_secs(NOW));
        let occupied = book.occupied(Time::from_secs(NOW));
        let batch = Batch::new(&[*size], jobs.clone()).unwrap();
        let batch = batch.on_line(Time::from_secs(NOW), vec![occupied]).unwrap();
        let places: Vec<u32> = (0..jobs.len() as u32).collect();
        let mut starts = BTreeMap::new();
        let misfits = RowScheduler::new().schedule(&batch, 0, &places, |job, start| {
            starts.insert(job, start);
        });
        prop_assert_eq!(misfits, 0);
        let (mut turnaround, mut wait, mut end) = (0, 0, 0);
        for (place, job) in places.iter().zip(&jobs) {
            let planned = plan.of(job.id).unwrap();
            let start = planned.start.since(Time::from_secs(NOW)).as_micros();
            prop_assert_eq!(starts[place], start, "job {}", job.id);
            turnaround += planned.end.since(job.submit).as_micros();
            wait += planned.start.since(job.submit).as_micros();
            end = end.max(planned.end.since(Time::from_secs(NOW)).as_micros());
        }
        let mut one = Individual::new(vec![places]);
        one.evaluate(&batch, &mut RowScheduler::new());
        let criteria = one.criteria();
        prop_assert_eq!((criteria.turnaround, criteria.wait, criteria.makespan), (turnaround, wait, end));
    }

    /// Each job once, where it fits, and the same again from the same seed.
    #[test]
    fn a_plan_has_each_job_that_fits_once(
        sizes in prop::collection::vec(1u32..9, 1..5),
        jobs in prop::collection::vec((1u32..10, 0i64..9), 1..30),
        away in 0usize..5,
    ) {
        let mut sizes = sizes;
        sizes.sort_unstable();
        let jobs: Vec<JobSpec> =
            jobs.iter().zip(1..).map(|(&(width, seconds), id)| spec(id, 0, width, seconds)).collect();
        let books: Vec<Book> = sizes
            .iter()
            .map(|&size| Book::new(LocalScheduler::Easy, Pass::Batch, size, false).in_order_of_arrival())
            .collect();
        let plan = || planned(&jobs, &books, away, Batches { population: 4, generations: 3, ..Batches::default() });
        let rows = plan();
        prop_assert_eq!(&rows, &plan());
        let mut found: Vec<JobId> = rows.iter().flat_map(|(_, row)| row).map(|job| job.id).collect();
        found.sort_unstable();
        let widest = sizes.iter().enumerate().filter(|(place, _)| *place != away).map(|(_, &size)| size).max();
        let fits = jobs.iter().filter(|job| job.processors <= widest.unwrap_or(0)).map(|job| job.id);
        prop_assert_eq!(found, fits.collect::<Vec<JobId>>());
        for (place, row) in &rows {
            prop_assert!(*place != away && row.iter().all(|job| job.processors <= sizes[*place]));
        }
    }
}

fn planned(jobs: &[JobSpec], books: &[Book], away: usize, batches: Batches) -> Vec<(usize, Vec<JobSpec>)> {
    planned_within(None, jobs, books, away, batches)
}

fn planned_within(
    patience: Option<&dyn Patience>,
    jobs: &[JobSpec],
    books: &[Book],
    away: usize,
    batches: Batches,
) -> Vec<(usize, Vec<JobSpec>)> {
    let now = Time::from_secs(NOW);
    let mut planner = Planner::new(Batches { window: Span::ZERO, ..batches }, 7, 0);
    jobs.iter().for_each(|&job| planner.came(now, job));
    planner.woke(now);
    let mut rows: Vec<(usize, Vec<JobSpec>)> =
        (0..books.len()).filter(|&place| place != away).map(|place| (place, Vec::new())).collect();
    while let Some(Act::Place(job, place)) = planner.decide(now, &mut Shown { patience, books, away }) {
        rows.iter_mut().find(|(other, _)| *other == place).unwrap().1.push(job);
    }
    rows
}

struct Shown<'a> {
    patience: Option<&'a dyn Patience>,
    books: &'a [Book],
    away: usize,
}

impl Sites for Shown<'_> {
    fn known(&self) -> Vec<Site<'_>> {
        let known = |(place, book)| Site { place, book, is_candidate: true, as_of: None };
        self.books.iter().enumerate().filter(|(place, _)| *place != self.away).map(known).collect()
    }

    fn patience(&self) -> Option<&dyn Patience> {
        self.patience
    }
}

/// By hand: two sites of 2 and 4 processors, the larger with all of it busy for 10 s. Jobs, by processors and seconds:
/// 1 (4, 5), 2 (2, 8), 3 (1, 2), 4 (1, 2). Job 1 must wait for the larger site until 10 s and ends at 15 s. All others
/// fit on the small one: 3 and 4 side by side until 2 s, then 2 until 10 s, waits of 0, 0 and 2 s. Any of them at the
/// larger site would wait 10 s, and 2 before 3 and 4 has them wait 8 s each. So the least sum of waits is 12 s.
#[test]
fn the_best_rows_of_a_small_batch_are_found() {
    let mut books =
        [2, 4].map(|size| Book::new(LocalScheduler::Easy, Pass::Batch, size, false).in_order_of_arrival());
    let now = Time::from_secs(NOW);
    books[1].runs(now, spec(9, 0, 4, 10), now);
    let jobs = [(1, 4, 5), (2, 2, 8), (3, 1, 2), (4, 1, 2)];
    let jobs = jobs.map(|(id, width, seconds)| spec(id, NOW, width, seconds));
    let batches = Batches { goal: Goal::Wait, population: 40, generations: 40, ..Batches::default() };
    let rows = planned(&jobs, &books, usize::MAX, batches);
    let batch = Batch::new(&[2, 4], jobs.to_vec()).unwrap();
    let batch = batch.on_line(now, books.iter().map(|book| book.occupied(now)).collect()).unwrap();
    let wait = |rows: Vec<Vec<u32>>| {
        let mut one = Individual::new(rows);
        one.evaluate(&batch, &mut RowScheduler::new());
        (one.criteria().misfits, one.criteria().wait / 1_000_000)
    };
    let places = |row: &Vec<JobSpec>| row.iter().map(|job| job.id.0 as u32 - 1).collect();
    assert_eq!(wait(rows.iter().map(|(_, row)| places(row)).collect()), (0, 12));

    // Every order of all four, cut into two rows everywhere.
    let mut least = (u32::MAX, i64::MAX);
    for order in 0..4_u32.pow(4) {
        let order: Vec<u32> = (0..4).map(|place| order / 4_u32.pow(place) % 4).collect();
        if (0..4).all(|job| order.contains(&job)) {
            for cut in 0..=4 {
                least = least.min(wait(vec![order[..cut].to_vec(), order[cut..].to_vec()]));
            }
        }
    }
    assert_eq!(least, (0, 12));
}

/// Who forgets what is there plans other rows: the equality above can fail.
#[test]
fn mutant_a_plan_that_takes_sites_for_idle_is_another() {
    let jobs = vec![spec(1, NOW, 4, 5)];
    let batch = Batch::new(&[4], jobs).unwrap();
    let busy = Occupied { running: vec![(10_000_000, 1)], waiting: vec![(3_000_000, 4)] };
    let starts = |batch: &Batch| {
        let mut starts = Vec::new();
        RowScheduler::new().schedule(batch, 0, &[0], |_, start| starts.push(start / 1_000_000));
        starts
    };
    assert_eq!(starts(&batch), [0]);
    assert_eq!(starts(&batch.on_line(Time::from_secs(NOW), vec![busy]).unwrap()), [13]);
}

/// Ends a search after so many generations, and counts decisions.
#[derive(Debug, Default)]
struct Generations {
    most: u32,
    left: AtomicU32,
    decisions: AtomicU32,
}

impl Patience for Generations {
    fn begins(&self) {
        self.left.store(self.most, Ordering::Relaxed);
        self.decisions.fetch_add(1, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        left == 0
    }
}

/// Whoever loses patience gets the best of the generations that were made, which is what a search of so many finds.
#[test]
fn a_plan_that_takes_too_long_is_the_best_so_far() {
    let books: Vec<Book> = [2, 4, 8]
        .map(|size| Book::new(LocalScheduler::Easy, Pass::Batch, size, false).in_order_of_arrival())
        .into();
    let jobs: Vec<JobSpec> =
        (0..40).map(|id| spec(id + 1, NOW, 1 + (id * 7 % 5) as u32, 1 + (id * 13 % 31) as i64)).collect();
    let batches =
        |generations| Batches { generations, goal: Goal::Wait, population: 20, ..Batches::default() };
    let mut found = Vec::new();
    for most in [0, 1, 5, 20] {
        let patience = Generations { most, ..Generations::default() };
        let rows = planned_within(Some(&patience), &jobs, &books, usize::MAX, batches(100));
        assert_eq!(rows, planned(&jobs, &books, usize::MAX, batches(most)), "{most} generations");
        assert_eq!(patience.decisions.load(Ordering::Relaxed), 1);
        found.push(rows);
    }
    found.dedup();
    assert_eq!(found.len(), 4, "more generations find other rows");
}
