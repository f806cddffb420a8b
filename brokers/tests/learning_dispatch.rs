//! Dispatchers by hand: round-robin, AG and MQD by the vectors of their text, and what becomes of jobs that wait too long.

use brokers::Broker as _;
use brokers::learning::{Assignment, Dispatcher, Requested};
use proptest::prelude::*;
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

fn job(id: u64, seconds: i64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::from_secs(id as i64),
        processors: 1,
        requested: Span::from_secs(seconds),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

fn dispatcher(options: &str, sites: usize) -> Dispatcher {
    Dispatcher::new(&options.parse().unwrap(), &vec![8; sites], 1, 1)
}

/// With jobs of 1, 2, … seconds, numbered so.
fn with_jobs(options: &str, sites: usize, jobs: u64) -> Dispatcher {
    let mut dispatcher = dispatcher(options, sites);
    (1..=jobs).for_each(|id| dispatcher.came(Time::ZERO, job(id, id as i64)));
    dispatcher
}

fn now(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

/// As in the text: A1 B2.
fn shown(made: &[Assignment]) -> String {
    let one = |one: &Assignment| format!("{}{}", (b'A' + one.site as u8) as char, one.job);
    made.iter().map(one).collect::<Vec<String>>().join(" ")
}

fn finish(dispatcher: &mut Dispatcher, at: i64, one: &Assignment) {
    dispatcher.finished(now(at), one.job, one.site, Span::from_secs(1), Span::ZERO).unwrap();
}

#[test]
fn round_robin_goes_round_skips_what_is_saturated_and_remembers_its_place() {
    let mut dispatcher = with_jobs("round-robin,cap=2", 3, 8);
    dispatcher.slots_mut().set_limit(1, 1);
    let made = dispatcher.dispatch(now(0), &Requested::default());
    assert_eq!(shown(&made), "A1 B2 C3 A4 C5");
    assert_eq!(dispatcher.dispatch(now(0), &Requested::default()), []);
    finish(&mut dispatcher, 9, &made[1]);
    finish(&mut dispatcher, 9, &made[2]);
    // The ring goes on behind C: B is met before C.
    assert_eq!(shown(&dispatcher.dispatch(now(9), &Requested::default())), "B6 C7");
    assert_eq!((dispatcher.count(), dispatcher.under_way()), (1, 5));
}

#[test]
fn random_sites_are_drawn_evenly() {
    let mut counts = [0; 4];
    let made =
        with_jobs("round-robin,turn=random,cap=100000", 4, 8000).dispatch(now(0), &Requested::default());
    made.iter().for_each(|one| counts[one.site] += 1);
    assert!(counts.iter().all(|count| (1850..2150).contains(count)), "{counts:?}");
}

#[test]
fn a_job_that_is_too_wide_for_what_is_open_lets_others_pass() {
    for rule in ["round-robin", "round-robin,turn=random", "ag", "mqd"] {
        let mut dispatcher = Dispatcher::new(&format!("{rule},cap=1").parse().unwrap(), &[2, 8], 1, 1);
        for (id, processors) in [(1, 8), (2, 8), (3, 2)] {
            dispatcher.came(Time::ZERO, JobSpec { processors, ..job(id, 5) });
        }
        assert_eq!(shown(&dispatcher.dispatch(now(0), &Requested::default())), "B1 A3", "{rule}");
        assert_eq!(dispatcher.count(), 1);
    }
}

/// A dispatcher that learned 0, -0.3 and 0.3 of sites A, B and C, and has places for all.
fn taught(options: &str) -> Dispatcher {
    let mut dispatcher = dispatcher(options, 3);
    (1..=4).for_each(|id| dispatcher.came(Time::ZERO, job(1000 + id, 100)));
    (0..3).for_each(|site| dispatcher.slots_mut().set_limit(site, 0));
    for (site, execution, total) in [(0, 100, 100), (0, 100, 100), (1, 100, 900), (2, 50, 50)] {
        dispatcher.slots_mut().set_limit(site, 1);
        let made = dispatcher.dispatch(now(0), &Requested::default());
        assert_eq!(made[0].site, site);
        dispatcher.finished(now(total), made[0].job, site, Span::from_secs(execution), Span::ZERO).unwrap();
        dispatcher.slots_mut().set_limit(site, 0);
    }
    assert_eq!([0, 1, 2].map(|site| dispatcher.efficiency().of(site)), [0.0, -0.3, 0.3]);
    (0..3).for_each(|site| dispatcher.slots_mut().set_limit(site, 100_000));
    dispatcher
}

#[test]
fn ag_takes_the_best_site_as_often_as_it_says() {
    let mut dispatcher = taught("ag");
    (1..=10_000).for_each(|id| dispatcher.came(Time::ZERO, job(id, 1)));
    let made = dispatcher.dispatch(now(0), &Requested::default());
    let share = made.iter().filter(|one| one.site == 2).count();
    // 0.85 + 0.15 / 3 = 0.9, within five deviations of a binomial.
    assert!((8_850..9_150).contains(&share), "{share}");
    assert_eq!(made.iter().map(|one| one.job.0).collect::<Vec<u64>>(), (1..=10_000).collect::<Vec<u64>>());
}

#[test]
fn ag_without_knowledge_fills_the_first_site_first_unless_ties_are_drawn() {
    let made = with_jobs("ag,exploit=1,cap=3", 3, 9).dispatch(now(0), &Requested::default());
    assert_eq!(shown(&made), "A1 A2 A3 B4 B5 B6 C7 C8 C9");
    let mut counts = [0; 3];
    let made =
        with_jobs("ag,exploit=1,tie=random,cap=100000", 3, 6000).dispatch(now(0), &Requested::default());
    made.iter().for_each(|one| counts[one.site] += 1);
    assert!(counts.iter().all(|count| (1850..2150).contains(count)), "{counts:?}");
}

#[test]
fn the_first_phase_of_mqd_deals_as_algorithm_3_in_both_readings() {
    for (border, expected) in
        [("corrected", "A1 B2 C3 D4 A5 B6 C7 D8 B9 B10"), ("literal", "A1 B2 C3 D4 A5 B6 C7 D8 B10 B13")]
    {
        let options = if border == "literal" { "mqd,border=literal" } else { "mqd" };
        let mut dispatcher = with_jobs(options, 4, 19);
        for (site, free) in [2, 4, 2, 2].into_iter().enumerate() {
            dispatcher.slots_mut().set_limit(site, free);
        }
        assert_eq!(shown(&dispatcher.dispatch(now(0), &Requested::default())), expected, "{border}");
    }
}

/// MQD in its main phase, with so many free places at each of four sites and nothing learned.
fn main_phase(options: &str, free: u32) -> Dispatcher {
    let mut dispatcher = dispatcher(options, 4);
    (0..4).for_each(|site| dispatcher.slots_mut().set_limit(site, 1));
    (0..4).for_each(|id| dispatcher.came(Time::ZERO, job(10_000 + id, 1)));
    assert_eq!(dispatcher.dispatch(now(0), &Requested::default()).len(), 4);
    (0..4).for_each(|site| dispatcher.slots_mut().set_limit(site, 1 + free));
    dispatcher
}

/// First and last job of each site, and how many.
fn groups(made: &[Assignment]) -> Vec<(u64, u64, usize)> {
    let of = |site| made.iter().filter(move |one| one.site == site).map(|one| one.job.0);
    (0..4).filter_map(|site| Some((of(site).next()?, of(site).next_back()?, of(site).count()))).collect()
}

#[test]
fn the_main_phase_of_mqd_groups_as_algorithm_4_in_both_readings() {
    for (options, jobs, expected) in [
        ("mqd", 400, vec![(400, 381, 20), (300, 281, 20), (200, 181, 20), (100, 81, 20)]),
        ("mqd", 12, vec![(12, 10, 3), (9, 7, 3), (6, 4, 3), (3, 1, 3)]),
        // As printed: a group ends with its site only, and the job at the border is skipped.
        ("mqd,border=literal", 12, vec![(12, 1, 12)]),
        ("mqd,border=literal", 400, vec![(400, 381, 20), (299, 280, 20), (198, 179, 20), (97, 78, 20)]),
        ("mqd", 10, vec![(10, 8, 3), (7, 5, 3), (4, 2, 3), (1, 1, 1)]),
        ("mqd,group-size=real", 10, vec![(10, 8, 3), (7, 6, 2), (5, 3, 3), (2, 1, 2)]),
        ("mqd,group-size=floor", 10, vec![(10, 9, 2), (8, 7, 2), (6, 5, 2), (4, 3, 2)]),
    ] {
        let mut dispatcher = main_phase(options, 20);
        (1..=jobs).for_each(|id| dispatcher.came(Time::ZERO, job(id, id as i64)));
        assert_eq!(
            groups(&dispatcher.dispatch(now(1), &Requested::default())),
            expected,
            "{options}, {jobs} jobs"
        );
    }
}

#[test]
fn groups_over_all_sites_keep_those_of_saturated_ones() {
    for (options, expected) in [("mqd", (12, 11, 2)), ("mqd,group-over=all", (6, 5, 2))] {
        let mut dispatcher = main_phase(options, 0);
        (1..=12).for_each(|id| dispatcher.came(Time::ZERO, job(id, id as i64)));
        dispatcher.slots_mut().set_limit(2, 3);
        assert_eq!(groups(&dispatcher.dispatch(now(1), &Requested::default())), [expected], "{options}");
    }
}

#[test]
fn the_end_of_the_first_phase_changes_what_jobs_are_compared_with() {
    // B is slower than all, and its second job slower than its first.
    for (options, expected) in [("mqd,cap=2", -0.3), ("mqd,cap=2,phase-end=finished", -0.51)] {
        let mut dispatcher = with_jobs(options, 2, 4);
        let made = dispatcher.dispatch(now(0), &Requested::default());
        assert_eq!(shown(&made), "A1 B2 A3 B4");
        for (one, total) in [(0, 100), (2, 100), (1, 900), (3, 1000)] {
            let (job, site) = (made[one].job, made[one].site);
            dispatcher.finished(now(total), job, site, Span::from_secs(100), Span::ZERO).unwrap();
        }
        assert_eq!(dispatcher.efficiency().of(1), expected, "{options}");
    }
}

#[test]
fn only_jobs_that_did_not_start_are_called_back_and_their_limit_grows() {
    let mut dispatcher = with_jobs("ag,exploit=1,cap=2,timeout=500", 1, 2);
    assert_eq!(dispatcher.dispatch(now(0), &Requested::default()).len(), 2);
    assert_eq!(dispatcher.wake_at(), None, "the clock starts in the queue");
    dispatcher.queued(now(10), JobId(1), 0);
    dispatcher.queued(now(20), JobId(2), 0);
    assert_eq!(dispatcher.wake_at(), Some(now(510)));
    assert_eq!(dispatcher.recalls(now(509)), []);
    assert_eq!(dispatcher.recalls(now(510)), [(JobId(1), 0)]);
    dispatcher.started(now(515), JobId(2), 0);
    assert_eq!(dispatcher.recalls(now(5000)), [(JobId(1), 0)]);
    assert!(dispatcher.recalled(JobId(1), 0) && !dispatcher.recalled(JobId(2), 0));
    assert_eq!((dispatcher.count(), dispatcher.recalled_total()), (1, 1));
    // It may go where it was.
    assert_eq!(shown(&dispatcher.dispatch(now(600), &Requested::default())), "A1");
    dispatcher.queued(now(600), JobId(1), 0);
    assert_eq!(dispatcher.wake_at(), Some(now(1150)), "500 s and 10 %");
    assert!(dispatcher.recalled(JobId(1), 0));
    dispatcher.dispatch(now(2000), &Requested::default());
    dispatcher.queued(now(2000), JobId(1), 0);
    assert_eq!(dispatcher.wake_at(), Some(now(2605)), "500 s and 21 %");
    // Time counts from the last time that it was scheduled.
    let ended = dispatcher.finished(now(2400), JobId(1), 0, Span::from_secs(300), Span::ZERO).unwrap();
    assert_eq!(ended.times.total(), Span::from_secs(400));
    assert_eq!(dispatcher.efficiency().of(0), 0.0);
}

#[test]
fn limits_grow_for_the_job_the_site_or_all() {
    for (growth, same_site, other_site) in [("job", 500, 500), ("site", 550, 500), ("all", 550, 550)] {
        let option = if growth == "job" { String::new() } else { format!(",growth-of={growth}") };
        let mut dispatcher =
            with_jobs(&format!("round-robin,cap=2,timeout=500,clock=scheduled{option}"), 2, 4);
        assert_eq!(shown(&dispatcher.dispatch(now(0), &Requested::default())), "A1 B2 A3 B4");
        assert!(dispatcher.recalled(JobId(1), 0));
        // Whoever was called back is gone; 3 is at the same site, 4 at another.
        let ends =
            |job: u64| (1..).find(|&at| dispatcher.recalls(now(at)).iter().any(|one| one.0 == JobId(job)));
        assert_eq!((ends(3), ends(4)), (Some(same_site), Some(other_site)), "{growth}");
    }
}

#[test]
fn blame_and_total_from_the_first_are_switches() {
    let mut dispatcher =
        with_jobs("ag,timeout=5,timeout-blame=slower,failure-blame=slower,total-from=first", 1, 1);
    dispatcher.dispatch(now(0), &Requested::default());
    assert!(dispatcher.recalled(JobId(1), 0));
    assert_eq!(dispatcher.efficiency().of(0), -0.3);
    dispatcher.dispatch(now(10), &Requested::default());
    assert!(dispatcher.failed(JobId(1), 0) && !dispatcher.failed(JobId(1), 0));
    assert_eq!(dispatcher.efficiency().of(0), -0.51);
    dispatcher.dispatch(now(20), &Requested::default());
    let ended = dispatcher.finished(now(100), JobId(1), 0, Span::from_secs(30), Span::ZERO).unwrap();
    assert_eq!(ended.times.total(), Span::from_secs(100));
    assert!(dispatcher.finished(now(100), JobId(1), 0, Span::ZERO, Span::ZERO).is_none());
    assert_eq!((dispatcher.count(), dispatcher.under_way(), dispatcher.slots().active(0)), (0, 0, 0));
}

#[test]
fn limits_and_the_main_phase_go_on_elsewhere() {
    let text = "mqd,cap=1,timeout=10,growth=100";
    let (mut before, mut after) = (with_jobs(text, 1, 2), dispatcher(text, 1));
    assert_eq!(shown(&before.dispatch(now(0), &Requested::default())), "A1");
    before.queued(now(0), JobId(1), 0);
    assert!(before.is_main() && before.recalled(JobId(1), 0));
    assert_eq!((before.recalls_of(JobId(1)), before.recalls_from(0)), (1, 1));
    after.begin_main();
    after.remember_job(JobId(1), 1);
    (1..=2).for_each(|id| after.came(Time::ZERO, job(id, id as i64)));
    // In the first phase it would have been the short one.
    assert_eq!(shown(&after.dispatch(now(20), &Requested::default())), "A2");
    after.forget(JobId(2));
    after.dispatch(now(20), &Requested::default());
    after.queued(now(20), JobId(1), 0);
    assert_eq!(after.wake_at(), Some(now(40)));
    // One that is found at a site is the same.
    let mut found = dispatcher(text, 1);
    found.remember_job(JobId(1), 2);
    found.found(now(50), job(1, 1), 0, Some(now(50)), None);
    assert_eq!(found.wake_at(), Some(now(90)));
    // And of a site, and of all.
    for growth in ["site", "all"] {
        let mut found = dispatcher(&format!("{text},growth-of={growth}"), 2);
        found.remember_site(0, 1);
        found.remember_site(1, 1);
        found.found(now(50), job(1, 1), 1, Some(now(50)), None);
        let times = if growth == "site" { 2 } else { 4 };
        assert_eq!(found.wake_at(), Some(now(50 + 10 * times)));
    }
}

#[test]
fn a_job_on_its_way_back_keeps_its_limit_and_the_time_of_its_first_assignment() {
    let mut broker = with_jobs("ag,exploit=1,cap=1,timeout=10,growth=100,total-from=first", 1, 1);
    broker.dispatch(now(0), &Requested::default());
    broker.queued(now(0), JobId(1), 0);
    assert!(broker.recalled(JobId(1), 0));
    broker.dispatch(now(10), &Requested::default());
    broker.queued(now(10), JobId(1), 0);
    assert_eq!((broker.wake_at(), broker.slots().active(0)), (Some(now(30)), 1));
    broker.lose_sight(JobId(1));
    assert_eq!((broker.wake_at(), broker.slots().active(0), broker.count()), (None, 0, 0));
    assert!(broker.is_unseen(JobId(1)) && broker.recalls_of(JobId(1)) == 1);
    let mut ended = broker.clone();
    ended.forget(JobId(1));
    assert!(!ended.is_unseen(JobId(1)) && ended.recalls_of(JobId(1)) == 0);
    broker.came(Time::ZERO, job(1, 1));
    broker.dispatch(now(40), &Requested::default());
    broker.queued(now(40), JobId(1), 0);
    assert_eq!(broker.wake_at(), Some(now(60)));
    let finished = broker.finished(now(45), JobId(1), 0, Span::from_secs(5), Span::ZERO).unwrap();
    assert_eq!(finished.times.total(), Span::from_secs(45));
}

#[test]
fn jobs_that_no_site_which_is_there_is_wide_enough_for_hold_nobody_up() {
    for rule in ["round-robin", "time,deadline=100000", "ag", "linucb", "mct"] {
        let options = rule.parse().unwrap();
        let mut broker = Dispatcher::new(&options, &[4, 8], 1, 0);
        broker.came(Time::ZERO, JobSpec { processors: 8, ..job(1, 1) });
        (2..=3).for_each(|id| broker.came(Time::ZERO, job(id, 1)));
        broker.slots_mut().set_available(1, false);
        broker.slots_mut().set_there(1, false);
        let mut made = broker.dispatch(now(0), &Requested::default());
        made.sort_unstable_by_key(|one| one.job);
        assert_eq!(shown(&made), "A2 A3", "{rule}");
        assert_eq!(broker.waiting().map(|job| job.id).collect::<Vec<JobId>>(), [JobId(1)], "{rule}");
        broker.slots_mut().set_available(1, true);
        broker.slots_mut().set_there(1, true);
        assert_eq!(shown(&broker.dispatch(now(1), &Requested::default())), "B1", "{rule}");
    }
}

#[test]
fn what_was_learned_goes_on_elsewhere_if_sites_are_as_many() {
    let learned = taught("ag").efficiency().clone();
    let mut other = dispatcher("ag", 3);
    other.restore(learned.clone()).unwrap();
    assert_eq!(other.efficiency(), &learned);
    assert!(dispatcher("ag", 2).restore(learned).unwrap_err().contains("of 3 sites, not of 2"));
}

#[derive(Clone, Copy, Debug)]
enum Happens {
    Arrives(i64, u32),
    Ends(usize),
    Fails(usize),
    Waits(usize),
    Dispatch,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => (1_i64..500, 1_u32..9).prop_map(|(seconds, width)| Happens::Arrives(seconds, width)),
        2 => (0_usize..40).prop_map(Happens::Ends),
        1 => (0_usize..40).prop_map(Happens::Fails),
        1 => (0_usize..40).prop_map(Happens::Waits),
        3 => Just(Happens::Dispatch),
    ]
}

proptest! {
    /// Whatever happens, and by whichever rule.
    #[test]
    fn no_job_is_lost_and_no_site_holds_more_than_it_may(
        rule in proptest::sample::select(scheduler::strategy::opaque::DispatchRule::ALL),
        events in proptest::collection::vec(happens(), 1..120), seed in 0_u64..9,
    ) {
        let options = format!("{},cap=3,timeout=100", rule.name()).parse().unwrap();
        let mut one = Dispatcher::new(&options, &[2, 4, 8], seed, 1);
        let mut twin = one.clone();
        let mut there: Vec<Assignment> = Vec::new();
        let (mut arrived, mut ended) = (0, 0);
        for (at, event) in (1..).zip(events) {
            for dispatcher in [&mut one, &mut twin] {
                match event {
                    Happens::Arrives(seconds, processors) => {
                        dispatcher.came(Time::ZERO, JobSpec { processors, ..job(arrived + 1, seconds) });
                    }
                    Happens::Ends(number) if number < there.len() => {
                        let Assignment { job, site, .. } = there[number];
                        prop_assert!(dispatcher.finished(now(at), job, site, Span::from_secs(1), Span::ZERO).is_some());
                    }
                    Happens::Fails(number) if number < there.len() => {
                        prop_assert!(dispatcher.failed(there[number].job, there[number].site));
                    }
                    Happens::Waits(number) if number < there.len() => {
                        prop_assert!(dispatcher.recalled(there[number].job, there[number].site));
                    }
                    _ => {}
                }
            }
            match event {
                Happens::Arrives(..) => arrived += 1,
                Happens::Ends(number) if number < there.len() => {
                    let job = there[number].job;
                    there.retain(|other| other.job != job);
                    ended += 1;
                }
                Happens::Fails(number) | Happens::Waits(number) if number < there.len() => drop(there.remove(number)),
                Happens::Dispatch => {
                    let made = one.dispatch(now(at), &Requested::default());
                    prop_assert_eq!(&made, &twin.dispatch(now(at), &Requested::default()), "same seed, same decisions");
                    for new in made {
                        prop_assert_eq!(new.is_copy, there.iter().any(|other| other.job == new.job));
                        prop_assert!(!there.iter().any(|other| (other.job, other.site) == (new.job, new.site)));
                        there.push(new);
                    }
                }
                _ => {}
            }
            for site in 0..3 {
                let here = there.iter().filter(|one| one.site == site).count();
                prop_assert_eq!(one.slots().active(site) as usize, here);
                prop_assert!(here <= 3);
            }
            prop_assert_eq!(one.count() + one.under_way() + ended, arrived as usize);
        }
    }
}
