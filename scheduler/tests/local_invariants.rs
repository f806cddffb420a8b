//! What holds for every local schedule, step by step: capacity, order, promises to waiting jobs.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scheduler::local::LocalQueue;
use scheduler::{JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time, TimedJob};

const SITE: u32 = 8;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Jobs may run past their estimates or take no time at all, and timers may fire late.
    #[test]
    fn every_job_runs_once_within_capacity_and_not_before_its_submission(
        jobs in logs(50, -4),
        scheduler in prop::sample::select(LocalScheduler::ALL.to_vec()),
        pass in prop::sample::select(vec![Pass::Batch, Pass::PerEvent]),
        timer_delay in 0i64..3,
    ) {
        let mut run = Run::new(scheduler, pass, jobs);
        run.timer_delay = Span::from_secs(timer_delay);
        let run = run.finish(|_| {});
        prop_assert_eq!(run.started.len(), run.jobs.len());
        for (id, start) in &run.started {
            prop_assert!(*start >= run.jobs[id].spec.submit);
        }
        prop_assert_eq!((run.queue.waiting(), run.queue.running(), run.queue.free()), (0, 0, SITE));
    }

    /// The reservation of a head that does not fit is kept if estimates are exact, and beaten or kept
    /// otherwise.
    #[test]
    fn easy_never_delays_the_head(
        jobs in logs(50, 0),
        scheduler in prop::sample::select(vec![LocalScheduler::Easy, LocalScheduler::EasyBestFit]),
    ) {
        let mut reserved: BTreeMap<JobId, Time> = BTreeMap::new();
        let run = Run::new(scheduler, Pass::Batch, jobs).finish(|run| {
            let head = run.waiting.first_key_value().map(|(_, id)| &run.jobs[id].spec);
            if let Some(head) = head {
                let shadow = run.earliest_by_estimates(head.processors);
                let promised = reserved.entry(head.id).or_insert(shadow);
                assert!(shadow <= *promised, "job {} was promised {promised} and gets {shadow}", head.id);
                *promised = shadow;
            }
        });
        for (id, promised) in reserved {
            prop_assert!(run.started[&id] <= promised);
        }
    }

    #[test]
    fn a_planned_start_never_gets_later(
        jobs in logs(50, 0),
        pass in prop::sample::select(vec![Pass::Batch, Pass::PerEvent]),
    ) {
        let mut planned: BTreeMap<JobId, Time> = BTreeMap::new();
        let run = Run::new(LocalScheduler::Conservative, pass, jobs).finish(|run| {
            for id in run.waiting.values() {
                if let Some(start) = run.queue.planned_start(*id) {
                    let before = planned.insert(*id, start).unwrap_or(Time::MAX);
                    assert!(start <= before, "job {id} was planned at {before} and then at {start}");
                }
            }
        });
        for (id, planned) in planned {
            prop_assert!(run.started[&id] <= planned);
        }
    }
}

proptest! {
    // Some six times as many as it takes without what the test is for.
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// However far jobs run past their estimates. 1,000,000 cases passed; if a queue is held up only while everything that
    /// runs is past its estimate, the test fails after some 170.
    #[test]
    fn how_often_a_queue_is_woken_does_not_hang_on_how_long_an_overrun_is(
        jobs in logs(50, -60),
        pass in prop::sample::select(vec![Pass::Batch, Pass::PerEvent]),
    ) {
        let (all, run) = (jobs.len(), Run::new(LocalScheduler::Conservative, pass, jobs).finish(|_| {}));
        prop_assert!(run.woken <= 2 * all, "{} times for {all} jobs", run.woken);
    }
}

proptest! {
    // Without one of the three things that hold a queue up, the first test fails after some 700 to 3,000 cases.
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// A conservative queue says when it must be asked. While everything that runs is past its estimate, asking it at each
    /// planned start changes nothing.
    #[test]
    fn a_queue_that_is_asked_at_each_planned_start_starts_the_same(
        jobs in logs(50, -4),
        pass in prop::sample::select(vec![Pass::Batch, Pass::PerEvent]),
    ) {
        let run = Run::new(LocalScheduler::Conservative, pass, jobs.clone()).finish(|_| {});
        let mut asked = Run::new(LocalScheduler::Conservative, pass, jobs);
        asked.at_planned_starts = Some(Asked::WhileAllAreOverdue);
        prop_assert_eq!(run.started, asked.finish(|_| {}).started);
    }

    /// Queues do not ask while none of their processors is free, and starts are the same. Where a pass follows each event they are not
    /// always: what is planned anew in between is planned in another order, in one of some hundreds of thousands of such logs.
    #[test]
    fn a_queue_that_is_asked_while_no_processor_is_free_starts_the_same(
        jobs in logs(50, -4),
        scheduler in prop::sample::select(vec![LocalScheduler::Conservative, LocalScheduler::ConservativeReplan]),
    ) {
        let run = Run::new(scheduler, Pass::Batch, jobs.clone()).finish(|_| {});
        let mut asked = Run::new(scheduler, Pass::Batch, jobs);
        asked.at_planned_starts = Some(Asked::WhileFull);
        prop_assert_eq!(run.started, asked.finish(|_| {}).started);
    }
}

/// A job that counts on one that runs past its estimate waits, and nothing is started on busy processors.
#[test]
fn an_overrun_delays_what_was_planned_behind_it() {
    for scheduler in LocalScheduler::ALL {
        for pass in [Pass::Batch, Pass::PerEvent] {
            let jobs = vec![job(1, 0, SITE, 10, 25), job(2, 1, 3, 5, 5), job(3, 10, 3, 5, 5)];

            let run = Run::new(scheduler, pass, jobs).finish(|_| {});

            let starts: Vec<Time> = run.started.values().copied().collect();
            let at = Time::from_secs;
            assert_eq!(starts, [at(0), at(25), at(25)], "{scheduler:?} {pass:?}");
        }
    }
}

/// As it is where something else runs within its estimate: what is planned behind that is all that it is woken for.
#[test]
fn who_is_held_up_beside_one_that_is_within_its_estimate_is_not_woken() {
    let jobs = vec![
        job(1, 0, 4, 1, 90),
        job(2, 0, 3, 60, 60),
        job(3, 1, 5, 1, 1),
        job(4, 1, 5, 1, 1),
        job(5, 1, SITE, 1, 1),
    ];
    let run = Run::new(LocalScheduler::Conservative, Pass::Batch, jobs).finish(|_| {});
    let starts: Vec<Time> = run.started.values().copied().collect();
    assert_eq!(starts, [0, 0, 90, 91, 92].map(Time::from_secs));
    // At the first planned start behind the third job, as the second should end, and at the next planned start.
    assert!(run.woken <= 3, "{}", run.woken);
}

/// The job planned behind one that counts on the overrun has a planned start again and again, and can start at none.
#[test]
fn who_is_held_up_by_an_overrun_is_not_woken() {
    let jobs = vec![job(1, 0, 4, 1, 90), job(2, 0, SITE, 1, 1), job(3, 1, SITE, 1, 1)];
    let run = Run::new(LocalScheduler::Conservative, Pass::Batch, jobs).finish(|_| {});
    assert_eq!(run.started[&JobId(3)], Time::from_secs(91));
    // At the planned start of the third job.
    assert!(run.woken <= 1, "{}", run.woken);
}

#[test]
fn jobs_told_out_of_order_wait_in_queue_order() {
    for scheduler in LocalScheduler::ALL {
        let mut queue = LocalQueue::new(scheduler, Pass::Batch, SITE);
        let mut starts = Vec::new();
        for id in [3, 1, 2] {
            queue.submit(Time::ZERO, job(id, 0, SITE, 5, 5).spec);
        }

        queue.decide(Time::ZERO, &mut starts);

        assert_eq!(starts, [job(1, 0, SITE, 5, 5).spec], "{scheduler:?}");
        queue.check_invariants();
    }
}

#[test]
#[should_panic(expected = "wider than its site")]
fn a_job_wider_than_the_site_is_refused() {
    LocalQueue::new(LocalScheduler::Easy, Pass::Batch, 4).submit(Time::ZERO, job(1, 0, 5, 1, 1).spec);
}

#[test]
#[should_panic(expected = "does not run here")]
fn the_end_of_a_waiting_job_is_refused() {
    let mut queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, 4);
    queue.submit(Time::ZERO, job(1, 0, 4, 1, 1).spec);
    queue.complete(Time::ZERO, JobId(1));
}

/// When a queue is asked though it did not want to be.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Nothing that runs is within its estimate.
    WhileAllAreOverdue,
    /// No processor is free.
    WhileFull,
}

/// A driver that checks each step against its own books.
struct Run {
    queue: LocalQueue,
    jobs: BTreeMap<JobId, TimedJob>,
    /// In queue order.
    waiting: BTreeMap<(Time, JobId), JobId>,
    /// By start order.
    running: Vec<(JobId, Time)>,
    started: BTreeMap<JobId, Time>,
    now: Time,
    /// How late the queue is woken.
    timer_delay: Span,
    /// When it is asked at each planned start, whether it wants to be or not.
    at_planned_starts: Option<Asked>,
    /// How often the queue was woken as nothing else happened.
    woken: usize,
}

impl Run {
    fn new(scheduler: LocalScheduler, pass: Pass, jobs: Vec<TimedJob>) -> Run {
        Run {
            queue: LocalQueue::new(scheduler, pass, SITE),
            jobs: jobs.into_iter().map(|job| (job.spec.id, job)).collect(),
            waiting: BTreeMap::new(),
            running: Vec::new(),
            started: BTreeMap::new(),
            now: Time::from_secs(-1),
            timer_delay: Span::ZERO,
            at_planned_starts: None,
            woken: 0,
        }
    }

    /// `check` sees the run after each pass.
    fn finish(mut self, mut check: impl FnMut(&Run)) -> Run {
        let mut coming: Vec<JobSpec> = self.jobs.values().map(|job| job.spec).collect();
        coming.sort_by_key(JobSpec::key);
        coming.reverse();
        loop {
            let ends = self.running.iter().map(|&(id, start)| start + self.jobs[&id].run_time);
            let next = coming.last().map(|job| job.submit);
            let fact = ends.clone().chain(next).min();
            let timer = self.queue.wake_at();
            assert!(timer.is_none_or(|time| time > self.now), "no timer lies in the past");
            let woken = timer.map(|time| time + self.timer_delay);
            let Some(now) = ends.chain(next).chain(woken).min() else { return self };
            let planned = self.waiting.values().filter_map(|&id| self.queue.planned_start(id));
            let is_past = |&(id, start): &(JobId, Time)| start + self.jobs[&id].spec.requested <= self.now;
            let is_asked = self.at_planned_starts.is_some_and(|asked| match asked {
                Asked::WhileAllAreOverdue => self.running.iter().all(is_past),
                Asked::WhileFull => self.queue.free() == 0,
            });
            let planned = planned.filter(|&start| is_asked && start > self.now).min();
            let now = planned.map_or(now, |planned| now.min(planned));
            self.now = now;
            self.woken += usize::from(woken == Some(now) && fact != Some(now));
            let batch = self.queue.pass() == Pass::Batch;
            while batch && self.complete_one() {}
            while let Some(job) = coming.pop_if(|job| job.submit == now) {
                self.queue.submit(now, job);
                self.waiting.insert((job.submit, job.id), job.id);
                if !batch {
                    self.decide(&mut check);
                }
            }
            while !batch && self.complete_one() {
                self.decide(&mut check);
            }
            self.decide(&mut check);
        }
    }

    fn complete_one(&mut self) -> bool {
        let ended = |&(id, start): &(JobId, Time)| start + self.jobs[&id].run_time <= self.now;
        let Some(place) = self.running.iter().position(ended) else { return false };
        let (job, _) = self.running.remove(place);
        self.queue.complete(self.now, job);
        true
    }

    fn decide(&mut self, check: &mut impl FnMut(&Run)) {
        let mut starts = Vec::new();
        self.queue.decide(self.now, &mut starts);
        for job in starts {
            let waited = self.waiting.remove(&(job.submit, job.id));
            assert!(waited.is_some(), "only waiting jobs start");
            self.running.push((job.id, self.now));
            self.started.insert(job.id, self.now);
        }
        let busy: u32 = self.running.iter().map(|(id, _)| self.jobs[id].spec.processors).sum();
        assert!(busy <= SITE, "capacity");
        assert_eq!(self.queue.free(), SITE - busy);
        assert_eq!(self.queue.running(), self.running.len());
        assert_eq!(self.queue.waiting(), self.waiting.len());
        self.queue.check_invariants();
        check(self);
    }

    /// When so many processors are free if everything ends by its estimate and nothing starts.
    fn earliest_by_estimates(&self, processors: u32) -> Time {
        let end = |&(id, start): &(JobId, Time)| (start + self.jobs[&id].spec.requested).max(self.now);
        let free_at = |time: Time| {
            let busy = self.running.iter().filter(|running| end(running) > time);
            SITE - busy.map(|(id, _)| self.jobs[id].spec.processors).sum::<u32>()
        };
        let instants = self.running.iter().map(end).chain([self.now]);
        instants.filter(|&time| free_at(time) >= processors).min().expect("an idle site is wide enough")
    }
}

fn job(id: u64, submit: i64, processors: u32, requested: i64, run: i64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors,
        requested: Span::from_secs(requested),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(run) }
}

/// Logs of up to `most` jobs; estimates exceed run times by `slack_min` to 11 seconds, often by none.
fn logs(most: usize, slack_min: i64) -> impl Strategy<Value = Vec<TimedJob>> {
    let slack = prop_oneof![Just(slack_min), Just(0), slack_min..12];
    prop::collection::vec((0i64..60, 1..=SITE, 0i64..20, slack), 1..most).prop_map(|jobs| {
        let timed = |(id, (submit, processors, run, slack)): (usize, (i64, u32, i64, i64))| {
            job(id as u64, submit, processors, (run + slack).max(1), run)
        };
        jobs.into_iter().enumerate().map(timed).collect()
    })
}

/// Job 1 is past its estimate and counts as ending now, so job 2 is promised its processors, too. Those that are free are not kept for
/// it.
#[test]
fn a_job_that_executes_already_fits_beside_what_is_promised_and_not_free() {
    let job = |id, processors| JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors,
        requested: Span::from_secs(10),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    let at = Time::from_secs;
    for scheduler in [LocalScheduler::Conservative, LocalScheduler::ConservativeReplan, LocalScheduler::Easy]
    {
        let mut queue = LocalQueue::new(scheduler, Pass::Batch, 4);
        let mut starts = Vec::new();
        queue.submit(at(0), job(1, 2));
        queue.decide(at(0), &mut starts);
        queue.submit(at(20), job(2, 4));
        queue.decide(at(20), &mut starts);
        queue.take_over(at(20), job(3, 2), at(20));
        queue.decide(at(21), &mut starts);
        assert_eq!((starts.len(), queue.free()), (1, 0), "{scheduler:?}");
        queue.complete(at(22), JobId(1));
        queue.complete(at(22), JobId(3));
        queue.decide(at(22), &mut starts);
        assert_eq!(starts.last().map(|job| job.id), Some(JobId(2)), "{scheduler:?}");
    }
}
