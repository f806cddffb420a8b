//! Plans against what happens when nothing comes any more and every job runs as long as it is estimated to: by the naive
//! twins, which share no code with the crate, and by the queue itself where jobs have run past their estimates.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scheduler::local::{Estimator, LocalQueue, Plan, replay, replay_watched};
use scheduler::strategy::Overrun;
use scheduler::{JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time, TimedJob};

use crate::naive::Conservative;

const SITE: u32 = 8;
/// Joins the queue behind all others.
const LAST: JobId = JobId(1_000);

/// On 8 processors job 1 holds 6 until 10 s by its estimate, so that job 2, which needs 4, has a reservation then. Job 3 starts beside;
/// job 4 stays behind. Job 1 ends early, and job 2 starts before its reservation.
#[test]
fn the_head_of_an_easy_queue_has_a_reservation_at_its_shadow_time() {
    let at = Time::from_secs;
    let job = |id, submit, processors, requested, run_time| TimedJob {
        spec: spec(JobId(id), at(submit), processors, requested),
        run_time: Span::from_secs(run_time),
    };
    let jobs = [job(1, 0, 6, 10, 6), job(2, 1, 4, 5, 5), job(3, 2, 2, 4, 4), job(4, 3, 8, 5, 5)];
    let of = |scheduler| {
        let mut seen = Vec::new();
        replay_watched(LocalQueue::new(scheduler, Pass::Batch, SITE), &jobs, |queue, now| {
            seen.push((now, queue.reservation()));
        });
        seen
    };
    let second = Some((JobId(2), at(10)));
    let last = Some((JobId(4), at(11)));
    let expected = [(0, None), (1, second), (2, second), (3, second), (6, last), (11, None), (16, None)];
    for scheduler in [LocalScheduler::Easy, LocalScheduler::EasyShortest] {
        assert_eq!(of(scheduler), expected.map(|(now, head)| (at(now), head)));
    }
    assert!(of(LocalScheduler::List).iter().all(|(_, head)| head.is_none()));
    let mut queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, SITE);
    queue.submit(at(1), jobs[1].spec);
    assert_eq!(queue.reservation(), Some((JobId(2), at(1))), "it fits");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn a_plan_is_what_the_naive_twin_does_from_then_on(jobs in logs(50, 0), now in 0i64..60, width in 1..=SITE, requested in 1i64..20) {
        let now = Time::from_secs(2 * now + 1);
        let job = spec(LAST, now, width, 2 * requested);
        for scheduler in LocalScheduler::ALL {
            let (queue, from_then_on) = until(scheduler, Pass::Batch, &jobs, now);
            let plan = queue.plan(now);
            let waiting = |starts: Vec<(JobId, Time)>| -> BTreeMap<JobId, Time> {
                starts.into_iter().filter(|&(_, start)| start >= now).collect()
            };
            prop_assert_eq!(planned(&plan), waiting(twin(scheduler, &from_then_on)), "{:?}", scheduler);
            let with = [&from_then_on[..], &[TimedJob { spec: job, run_time: job.requested }]].concat();
            let start = waiting(twin(scheduler, &with))[&LAST];
            prop_assert_eq!(plan.with(&job).start, start, "{:?}", scheduler);
        }
    }

    /// Queues decide by estimates that are too long, and jobs end when they do: the start of each that waits is that of the naive twin.
    #[test]
    fn a_start_with_run_times_of_others_is_what_the_naive_twin_does(jobs in logs(50, 0), now in 0i64..60) {
        let now = Time::from_secs(2 * now + 1);
        let by_id: BTreeMap<JobId, &TimedJob> = jobs.iter().map(|job| (job.spec.id, job)).collect();
        let submitted: Vec<TimedJob> = jobs.iter().filter(|job| job.spec.submit < now).copied().collect();
        for scheduler in LocalScheduler::ALL {
            let (queue, _) = until(scheduler, Pass::Batch, &jobs, now);
            let starts: BTreeMap<JobId, Time> = twin(scheduler, &submitted).into_iter().collect();
            let end = |job: JobId| starts[&job] + by_id[&job].run_time;
            let waiting: Vec<JobId> = queue.plan(now).jobs().iter().map(|planned| planned.job).collect();
            for job in waiting {
                let start = queue.start_if(now, job, end, |job| by_id[&job.id].run_time);
                prop_assert_eq!(start, Some(starts[&job]), "{:?} {}", scheduler, job);
                let by_estimates = queue.start_if(now, job, |job| starts[&job] + by_id[&job].spec.requested, |job| job.requested);
                prop_assert_eq!(by_estimates, queue.plan(now).of(job).map(|planned| planned.start), "{:?} {}", scheduler, job);
            }
            prop_assert_eq!(queue.start_if(now, LAST, end, |job| job.requested), None);
        }
    }

    /// Also where jobs run past their estimates, with a pass per event, and for a job that waits before others.
    #[test]
    fn a_plan_is_what_the_queue_does_from_then_on(jobs in logs(50, -8), now in 0i64..60, width in 1..=SITE, requested in 0i64..20) {
        let now = Time::from_secs(2 * now + 1);
        for scheduler in LocalScheduler::ALL {
            for pass in [Pass::Batch, Pass::PerEvent] {
                let (queue, from_then_on) = until(scheduler, pass, &jobs, now);
                let plan = queue.plan(now);
                prop_assert_eq!(plan.jobs().len(), queue.waiting());
                prop_assert!(plan.jobs().is_sorted_by_key(|planned| planned.start));
                if pass == Pass::Batch {
                    let starts = replay(LocalQueue::new(scheduler, pass, SITE), &from_then_on);
                    let waiting = starts.into_iter().filter(|&(_, start)| start >= now).collect();
                    prop_assert_eq!(planned(&plan), waiting, "{:?}", scheduler);
                }
                for (id, submit) in [(LAST, now), (LAST, Time::ZERO)] {
                    let job = spec(id, submit, width, 2 * requested);
                    let mut joined = queue.clone();
                    joined.submit(now, job);
                    let again = joined.plan(now).of(LAST).expect("it waits");
                    prop_assert_eq!(plan.with(&job), again, "{:?} {:?} {}", scheduler, pass, submit);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A plan that is moved is the plan of the later instant, also where jobs are past their estimates.
    #[test]
    fn a_plan_moves_to_a_later_instant_or_is_made_anew(
        jobs in logs(50, -8), now in 0i64..60, later in 0i64..40, width in 1..=SITE, requested in 1i64..20,
    ) {
        let now = Time::from_secs(2 * now + 1);
        let then = now + Span::from_secs(later);
        for scheduler in LocalScheduler::ALL {
            for overrun in [Overrun::Now, Overrun::Next] {
                let (queue, _) = until(scheduler, Pass::Batch, &jobs, now);
                let mut moved = queue.plan_with(now, overrun);
                if !moved.move_to(then) {
                    continue;
                }
                let anew = queue.plan_with(then, overrun);
                prop_assert_eq!((moved.jobs(), moved.idle_from()), (anew.jobs(), anew.idle_from()), "{:?}", scheduler);
                let job = spec(LAST, then, width, 2 * requested);
                prop_assert_eq!(moved.with(&job), anew.with(&job), "{:?}", scheduler);
            }
        }
    }
}

#[test]
fn a_plan_moves_until_something_is_due() {
    let mut queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, 4);
    queue.submit(Time::ZERO, spec(JobId(1), Time::ZERO, 3, 10));
    queue.submit(Time::ZERO, spec(JobId(2), Time::ZERO, 4, 5));
    let mut undecided = queue.plan(Time::ZERO);
    assert!(!undecided.move_to(Time::from_secs(1)), "the first would have started");
    queue.decide(Time::ZERO, &mut Vec::new());
    let mut plan = queue.plan(Time::ZERO);
    assert!(plan.move_to(Time::from_secs(9)));
    // It would have ended in time at 0 s, and does not at 9 s.
    let short = spec(LAST, Time::from_secs(9), 1, 8);
    assert_eq!(plan.with(&short).start, Time::from_secs(15));
    assert!(!plan.move_to(Time::from_secs(10)) && !plan.move_to(Time::from_secs(8)));
}

#[test]
fn a_backfilled_job_is_planned_before_the_head() {
    let mut queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, 4);
    for job in [
        spec(JobId(1), Time::ZERO, 3, 10),
        spec(JobId(2), Time::ZERO, 4, 5),
        spec(JobId(3), Time::ZERO, 1, 8),
    ] {
        queue.submit(Time::ZERO, job);
    }
    let plan = queue.plan(Time::ZERO);
    let starts: Vec<(u64, i64, i64)> = plan
        .jobs()
        .iter()
        .map(|planned| {
            (planned.job.0, planned.start.as_micros() / 1_000_000, planned.end.as_micros() / 1_000_000)
        })
        .collect();
    assert_eq!(starts, [(1, 0, 10), (3, 0, 8), (2, 10, 15)]);
    assert_eq!(plan.end(), Some(Time::from_secs(15)));
    // It ends too late to go before the head, and is too wide to go beside it.
    assert_eq!(plan.with(&spec(LAST, Time::ZERO, 1, 11)).start, Time::from_secs(15));
    assert_eq!(queue.waiting(), 3, "the queue is as it was");
}

/// A second for every job, whatever its user says.
#[derive(Clone, Debug)]
struct Second;

impl Estimator for Second {
    fn predict(&mut self, _now: Time, _job: &JobSpec) -> Span {
        Span::from_secs(1)
    }

    fn correct(&self, job: &JobSpec, _predicted: Span, _before: u32) -> Span {
        job.requested
    }

    fn learn(&mut self, _now: Time, _job: &JobSpec, _run_time: Span) {}

    fn boxed(&self) -> Box<dyn Estimator> {
        Box::new(self.clone())
    }
}

#[test]
fn a_plan_by_predictions_takes_jobs_for_as_long_as_was_predicted() {
    let mut queue = LocalQueue::new(LocalScheduler::Fcfs, Pass::Batch, 4).with_estimator(Box::new(Second));
    for id in 1..=3 {
        queue.submit(Time::ZERO, spec(JobId(id), Time::ZERO, 4, 10));
    }
    queue.decide(Time::ZERO, &mut Vec::new());
    let starts: Vec<Time> = queue.plan(Time::ZERO).jobs().iter().map(|planned| planned.start).collect();
    assert_eq!(starts, [Time::from_secs(1), Time::from_secs(2)]);
}

/// Job 1 is predicted to end at 1 s, so that a pass at that instant promises its processors to job 2. Job 3 joins at the same instant, before
/// the next pass of which it is seen that job 1 goes on until 10 s: nobody has what was promised.
#[test]
fn a_promise_that_counts_on_a_job_which_is_corrected_in_the_same_instant_is_taken_back() {
    let at = Time::from_secs;
    for scheduler in LocalScheduler::ALL {
        let mut queue = LocalQueue::new(scheduler, Pass::PerEvent, 4).with_estimator(Box::new(Second));
        let mut starts = Vec::new();
        for (id, processors) in [(1, 3), (2, 4)] {
            queue.submit(Time::ZERO, spec(JobId(id), Time::ZERO, processors, 10));
            queue.decide(Time::ZERO, &mut starts);
        }
        queue.decide(at(1), &mut starts);
        queue.submit(at(1), spec(JobId(3), at(1), 4, 10));
        queue.decide(at(1), &mut starts);

        queue.check_invariants();
        let started: Vec<u64> = starts.iter().map(|job| job.id.0).collect();
        assert_eq!((started, queue.waiting()), (vec![1], 2), "{scheduler:?}");
        let planned: Vec<(u64, Time)> =
            queue.plan(at(1)).jobs().iter().map(|planned| (planned.job.0, planned.start)).collect();
        assert_eq!(planned, [(2, at(10)), (3, at(11))], "{scheduler:?}");
        if let Some(reservation) = queue.reservation() {
            assert_eq!(reservation, (JobId(2), at(10)), "{scheduler:?}");
        }
        if scheduler == LocalScheduler::Conservative {
            assert_eq!(queue.planned_start(JobId(2)), Some(at(10)), "{scheduler:?}");
        }
    }
}

#[test]
#[should_panic(expected = "wider than its site")]
fn a_job_wider_than_the_site_has_no_place_in_a_plan() {
    let queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, 4);
    queue.plan(Time::ZERO).with(&spec(LAST, Time::ZERO, 5, 1));
}

fn planned(plan: &Plan) -> BTreeMap<JobId, Time> {
    plan.jobs().iter().map(|planned| (planned.job, planned.start)).collect()
}

/// The queue as it is at an instant at which nothing happens, and the log as it would be if nothing came from then on
/// and what runs and waits ran as long as estimated.
fn until(scheduler: LocalScheduler, pass: Pass, jobs: &[TimedJob], now: Time) -> (LocalQueue, Vec<TimedJob>) {
    let submitted: Vec<TimedJob> = jobs.iter().filter(|job| job.spec.submit < now).copied().collect();
    let mut queue = LocalQueue::new(scheduler, pass, SITE);
    let mut running: Vec<(JobId, Time)> = Vec::new();
    let mut starts: BTreeMap<JobId, Time> = BTreeMap::new();
    let by_id: BTreeMap<JobId, TimedJob> = submitted.iter().map(|job| (job.spec.id, *job)).collect();
    let mut coming: Vec<JobSpec> = submitted.iter().map(|job| job.spec).collect();
    coming.sort_by_key(JobSpec::key);
    coming.reverse();
    loop {
        let end = running.iter().map(|&(_, end)| end).min();
        let next = coming.last().map(|job| job.submit);
        let Some(at) = [end, next, queue.wake_at()].into_iter().flatten().min().filter(|&at| at < now) else {
            break;
        };
        let mut decide = |queue: &mut LocalQueue, running: &mut Vec<(JobId, Time)>| {
            let mut started = Vec::new();
            queue.decide(at, &mut started);
            for job in started {
                starts.insert(job.id, at);
                running.push((job.id, at + by_id[&job.id].run_time));
            }
        };
        let batch = pass == Pass::Batch;
        while let Some(place) = running.iter().position(|&(_, end)| end <= at).filter(|_| batch) {
            queue.complete(at, running.remove(place).0);
        }
        while let Some(job) = coming.pop_if(|job| job.submit <= at) {
            queue.submit(at, job);
            if !batch {
                decide(&mut queue, &mut running);
            }
        }
        while let Some(place) = running.iter().position(|&(_, end)| end <= at).filter(|_| !batch) {
            queue.complete(at, running.remove(place).0);
            decide(&mut queue, &mut running);
        }
        decide(&mut queue, &mut running);
    }
    let as_estimated = submitted.into_iter().map(|job| {
        let start = starts.get(&job.spec.id).copied();
        let run_time = match start {
            Some(start) if start + job.run_time < now => job.run_time,
            // Past its estimate, it ends now.
            Some(start) => job.spec.requested.max(now.since(start)),
            None => job.spec.requested,
        };
        TimedJob { run_time, ..job }
    });
    (queue, as_estimated.collect())
}

fn twin(scheduler: LocalScheduler, jobs: &[TimedJob]) -> Vec<(JobId, Time)> {
    match scheduler {
        LocalScheduler::Conservative => {
            crate::naive::conservative(Conservative::Compress, Pass::Batch, SITE, jobs)
        }
        LocalScheduler::ConservativeReplan => {
            crate::naive::conservative(Conservative::Replan, Pass::Batch, SITE, jobs)
        }
        _ => crate::naive::in_order(scheduler, Pass::Batch, SITE, jobs),
    }
}

fn spec(id: JobId, submit: Time, processors: u32, requested: i64) -> JobSpec {
    JobSpec {
        id,
        submit,
        processors,
        requested: Span::from_secs(requested),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

/// Logs whose facts fall on even seconds; estimates exceed run times by `slack_min` to 22 s.
fn logs(most: usize, slack_min: i64) -> impl Strategy<Value = Vec<TimedJob>> {
    prop::collection::vec((0i64..50, 1..=SITE, 1i64..20, slack_min..12), 1..most).prop_map(|jobs| {
        let timed = |(id, (submit, processors, run, slack)): (usize, (i64, u32, i64, i64))| TimedJob {
            spec: spec(JobId(id as u64), Time::from_secs(2 * submit), processors, 2 * (run + slack).max(0)),
            run_time: Span::from_secs(2 * run),
        };
        jobs.into_iter().enumerate().map(timed).collect()
    })
}
