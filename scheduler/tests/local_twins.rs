//! The local schedulers against naive twins that recompute everything, on random small logs.
//!
//! The twins share no code with the crate: they keep vectors, scan them, and hold the conservative plan as
//! one count of free processors per second.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use scheduler::local::{LocalQueue, replay};
use scheduler::{JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time, TimedJob};

use crate::naive::Conservative;

const SITE: u32 = 8;

/// Those that keep no plan but the queue.
const IN_ORDER: [LocalScheduler; 6] = [
    LocalScheduler::Fcfs,
    LocalScheduler::List,
    LocalScheduler::Easy,
    LocalScheduler::EasyBestFit,
    LocalScheduler::EasyShortest,
    LocalScheduler::EasySmallest,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_queue_in_order_decides_like_its_naive_twin(jobs in logs(60)) {
        for scheduler in IN_ORDER {
            for pass in [Pass::Batch, Pass::PerEvent] {
                let ours = starts(scheduler, pass, &jobs);
                prop_assert_eq!(ours, crate::naive::in_order(scheduler, pass, SITE, &jobs), "{:?} {:?}", scheduler, pass);
            }
        }
    }

    #[test]
    fn a_conservative_queue_decides_like_its_naive_twin(jobs in logs(40)) {
        for (scheduler, kind) in [
            (LocalScheduler::Conservative, Conservative::Compress),
            (LocalScheduler::ConservativeReplan, Conservative::Replan),
        ] {
            for pass in [Pass::Batch, Pass::PerEvent] {
                let ours = starts(scheduler, pass, &jobs);
                prop_assert_eq!(ours, crate::naive::conservative(kind, pass, SITE, &jobs), "{:?} {:?}", scheduler, pass);
            }
        }
    }

    /// Long queues cross the chunks of the list of waiting jobs.
    #[test]
    fn long_queues_are_decided_like_short_ones(jobs in logs_at(600, 30)) {
        for scheduler in IN_ORDER {
            let ours = starts(scheduler, Pass::Batch, &jobs);
            prop_assert_eq!(ours, crate::naive::in_order(scheduler, Pass::Batch, SITE, &jobs), "{:?}", scheduler);
        }
    }

    #[test]
    fn with_exact_estimates_the_order_of_an_instant_changes_no_start(jobs in logs(60)) {
        let exact: Vec<TimedJob> = jobs.into_iter().map(exact).collect();
        for scheduler in LocalScheduler::ALL {
            // What is known decides, where it is not the order of the queue: two arrivals of one instant are known together or one
            // by one.
            let best = [LocalScheduler::EasyBestFit, LocalScheduler::EasyShortest, LocalScheduler::EasySmallest];
            if !best.contains(&scheduler) {
                let batch = starts(scheduler, Pass::Batch, &exact);
                prop_assert_eq!(batch, starts(scheduler, Pass::PerEvent, &exact), "{:?}", scheduler);
            }
        }
    }
}

/// On the logs that are drawn, the twin of another scheduler or of the other order within an instant is told apart.
#[test]
fn mutant_the_twin_of_another_scheduler_or_order_is_noticed() {
    const LOGS: usize = 120;
    let mut runner = TestRunner::deterministic();
    let drawn: Vec<Vec<TimedJob>> =
        (0..LOGS).map(|_| logs(60).new_tree(&mut runner).expect("a log").current()).collect();
    let twin = |scheduler, pass, jobs: &[TimedJob]| match scheduler {
        LocalScheduler::Conservative => crate::naive::conservative(Conservative::Compress, pass, SITE, jobs),
        LocalScheduler::ConservativeReplan => {
            crate::naive::conservative(Conservative::Replan, pass, SITE, jobs)
        }
        other => crate::naive::in_order(other, pass, SITE, jobs),
    };
    // Of each log once; most mistakes show in the first.
    let played: Vec<Vec<_>> = LocalScheduler::ALL
        .iter()
        .map(|&one| {
            drawn.iter().map(|jobs| (starts(one, Pass::Batch, jobs), twin(one, Pass::Batch, jobs))).collect()
        })
        .collect();
    for (one, ours) in LocalScheduler::ALL.into_iter().zip(&played) {
        assert!(ours.iter().all(|(ours, twin)| ours == twin), "{one:?} is not its twin");
        for (other, theirs) in LocalScheduler::ALL.into_iter().zip(&played).filter(|&(other, _)| other != one)
        {
            let differs = ours.iter().zip(theirs).any(|((ours, _), (_, twin))| ours != twin);
            assert!(differs, "{one:?} passes for {other:?}");
        }
        // In order nothing overtakes, and what arrives together starts together.
        if !matches!(one, LocalScheduler::Fcfs) {
            let differs =
                |(jobs, (ours, _)): (&Vec<TimedJob>, &(_, _))| *ours != twin(one, Pass::PerEvent, jobs);
            assert!(drawn.iter().zip(ours).any(differs), "{one:?} has one order");
        }
    }
}

/// (job, start) in the order of ids.
fn starts(scheduler: LocalScheduler, pass: Pass, jobs: &[TimedJob]) -> Vec<(JobId, Time)> {
    let mut starts = replay(LocalQueue::new(scheduler, pass, SITE), jobs);
    starts.sort_unstable();
    starts
}

fn exact(mut job: TimedJob) -> TimedJob {
    job.spec.requested = job.run_time;
    job
}

fn logs(most: usize) -> impl Strategy<Value = Vec<TimedJob>> {
    logs_at(most, 80)
}

/// Logs of up to `most` jobs within the first `until` seconds; run times and estimates of at most 20 s, no
/// overruns.
fn logs_at(most: usize, until: i64) -> impl Strategy<Value = Vec<TimedJob>> {
    let job = (0..until, 1..=SITE, 1i64..20, 0i64..12);
    prop::collection::vec(job, 1..most).prop_map(|jobs| {
        let timed = |(id, (submit, processors, run, slack)): (usize, (i64, u32, i64, i64))| TimedJob {
            spec: JobSpec {
                id: JobId(id as u64),
                submit: Time::from_secs(submit),
                processors,
                requested: Span::from_secs(run + (slack - 3).max(0)),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            },
            run_time: Span::from_secs(run),
        };
        jobs.into_iter().enumerate().map(timed).collect()
    })
}
