//! A queue whose order is given from outside against one that has that order by itself: the same jobs under other numbers,
//! all submitted at time 0, so that their numbers are their places.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scheduler::local::LocalQueue;
use scheduler::{JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time};

const SITE: u32 = 8;

/// A job, when it comes, how long it runs, and what is done to its turn when it has come.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    comes: i64,
    processors: u32,
    run_time: i64,
    slack: i64,
    turn: u64,
}

/// Start times by number, of jobs that come at their times: to a queue with turns, or to one with other numbers.
fn starts(scheduler: LocalScheduler, pass: Pass, jobs: &[Drawn], turns: bool) -> BTreeMap<usize, i64> {
    let mut places: Vec<usize> = (0..jobs.len()).collect();
    places.sort_by_key(|&number| (jobs[number].turn, jobs[number].comes, number));
    let rank: BTreeMap<usize, u64> =
        places.into_iter().enumerate().map(|(rank, number)| (number, rank as u64)).collect();
    let id = |number: usize| JobId(if turns { number as u64 } else { rank[&number] });
    let number: BTreeMap<JobId, usize> = (0..jobs.len()).map(|number| (id(number), number)).collect();
    let mut queue = LocalQueue::new(scheduler, pass, SITE);
    let (mut running, mut started): (Vec<(i64, JobId)>, _) = (Vec::new(), BTreeMap::new());
    let mut coming: Vec<usize> = (0..jobs.len()).collect();
    // Those of one instant come in the order of their places, whatever their numbers are.
    coming.sort_by_key(|number| (jobs[*number].comes, rank[number]));
    coming.reverse();
    loop {
        let wake = queue.wake_at().map(|at| at.as_micros() / 1_000_000);
        let end = running.iter().map(|&(end, _)| end).min();
        let next = coming.last().map(|&number| jobs[number].comes);
        let Some(now) = [wake, end, next].into_iter().flatten().min() else { return started };
        let at = Time::from_secs(now);
        let mut decide = |queue: &mut LocalQueue, running: &mut Vec<(i64, JobId)>| {
            let mut now_started = Vec::new();
            queue.decide(at, &mut now_started);
            queue.check_invariants();
            for job in now_started {
                let number = number[&job.id];
                started.insert(number, now);
                running.push((now + jobs[number].run_time, job.id));
            }
        };
        let each = pass == Pass::PerEvent;
        running.sort_by_key(|&(end, job)| (end, number[&job]));
        while let Some(place) = running.iter().position(|&(end, _)| end <= now).filter(|_| !each) {
            queue.complete(at, running.remove(place).1);
        }
        while let Some(number) = coming.pop_if(|number| jobs[*number].comes <= now) {
            let Drawn { comes, processors, run_time, slack, turn } = jobs[number];
            let spec = JobSpec {
                id: id(number),
                submit: Time::from_secs(if turns { comes } else { 0 }),
                processors,
                requested: Span::from_secs((run_time + slack).max(0)),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            };
            match turns {
                true => queue.submit_in_turn(at, spec, turn),
                false => queue.submit(at, spec),
            }
            if each {
                decide(&mut queue, &mut running);
            }
        }
        while let Some(place) = running.iter().position(|&(end, _)| end <= now).filter(|_| each) {
            queue.complete(at, running.remove(place).1);
            decide(&mut queue, &mut running);
        }
        decide(&mut queue, &mut running);
    }
}

fn logs() -> impl Strategy<Value = Vec<Drawn>> {
    let job = (0i64..40, 1..=SITE, 1i64..20, -5i64..10, 0u64..6);
    let drawn =
        |(comes, processors, run_time, slack, turn)| Drawn { comes, processors, run_time, slack, turn };
    prop::collection::vec(job.prop_map(drawn), 1..50)
}

fn spec(id: u64, processors: u32, requested: i64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors,
        requested: Span::from_secs(requested),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

proptest! {
    #[test]
    fn a_turn_is_a_place_in_the_queue(jobs in logs()) {
        for scheduler in LocalScheduler::ALL {
            for pass in [Pass::Batch, Pass::PerEvent] {
                let (with, without) =
                    (starts(scheduler, pass, &jobs, true), starts(scheduler, pass, &jobs, false));
                prop_assert_eq!(with.len(), jobs.len());
                prop_assert_eq!(with, without, "{:?} {:?}", scheduler, pass);
            }
        }
    }

    /// Jobs that wait behind one that has the whole site are told their turns one by one, in any order, and more than once.
    #[test]
    fn turns_that_are_given_later_count_as_if_they_were_given_at_first(
        widths in prop::collection::vec((1..=SITE, 1i64..20), 1..30),
        told in prop::collection::vec((0usize..30, 0u64..9), 0..60),
    ) {
        for scheduler in LocalScheduler::ALL {
            let mut later = LocalQueue::new(scheduler, Pass::Batch, SITE);
            let first = |queue: &mut LocalQueue| {
                queue.submit(Time::ZERO, spec(1_000, SITE, 5));
                queue.decide(Time::ZERO, &mut Vec::new());
            };
            first(&mut later);
            let jobs = || widths.iter().enumerate().map(|(id, (width, time))| spec(id as u64, *width, *time));
            jobs().for_each(|job| later.submit(Time::ZERO, job));
            later.decide(Time::ZERO, &mut Vec::new());
            let mut turns = vec![0; widths.len()];
            for &(job, turn) in told.iter().filter(|(job, _)| *job < widths.len()) {
                prop_assert!(later.set_turn(Time::ZERO, JobId(job as u64), turn));
                turns[job] = turn;
                later.decide(Time::ZERO, &mut Vec::new());
                later.check_invariants();
            }
            let mut at_first = LocalQueue::new(scheduler, Pass::Batch, SITE);
            first(&mut at_first);
            for (job, turn) in jobs().zip(&turns) {
                at_first.submit_in_turn(Time::ZERO, job, *turn);
            }
            // Conservative backfilling lets nobody who comes later go before what it has reserved.
            at_first.decide(Time::ZERO, &mut Vec::new());
            let (later, at_first) = (later.plan(Time::ZERO), at_first.plan(Time::ZERO));
            let planned = |plan: &scheduler::local::Plan| -> BTreeMap<JobId, Time> {
                plan.jobs().iter().map(|planned| (planned.job, planned.start)).collect()
            };
            prop_assert_eq!(planned(&later), planned(&at_first), "{:?} {:?}", scheduler, turns);
            for turn in [0, 4, 9] {
                let job = spec(2_000, 3, 7);
                prop_assert_eq!(later.with_turn(&job, turn), at_first.with_turn(&job, turn));
            }
        }
    }
}

#[test]
fn a_lower_turn_goes_first_and_a_job_that_runs_has_none() {
    for scheduler in LocalScheduler::ALL {
        let mut queue = LocalQueue::new(scheduler, Pass::Batch, 4);
        let mut started = Vec::new();
        queue.submit_in_turn(Time::ZERO, spec(1, 4, 5), 3);
        queue.submit_in_turn(Time::ZERO, spec(2, 4, 5), 2);
        queue.submit(Time::ZERO, spec(3, 4, 5));
        assert!(queue.set_turn(Time::ZERO, JobId(3), 9));
        queue.decide(Time::ZERO, &mut started);
        let ids: Vec<u64> = started.iter().map(|job| job.id.0).collect();
        assert_eq!(ids, [2], "{scheduler:?}");
        assert!(!queue.set_turn(Time::ZERO, JobId(2), 1) && !queue.set_turn(Time::ZERO, JobId(7), 1));
        let order: Vec<u64> = queue.plan(Time::ZERO).jobs().iter().map(|planned| planned.job.0).collect();
        assert_eq!(order, [1, 3], "{scheduler:?}");
    }
}
