//! Dispatchers with free messages against a twin that goes through every second of small grids.

use brokers::ideal::{Dispatched, Outage, World};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::strategy::opaque::Options;
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, LocalUsers, Pass, SiteId, Span, Time,
    TimedJob,
};
use simulator::reference;

/// A job's fate: id, place of its site, start and end in seconds.
type Ran = (u64, usize, i64, i64);

/// A grid, its users, and what the rule is told. All times are whole seconds.
#[derive(Clone, Debug)]
struct Case {
    sizes: Vec<u32>,
    /// Width, run time, submission, and the place of a local user.
    jobs: Vec<(u32, i64, i64, Option<usize>)>,
    outages: Vec<(usize, i64, i64)>,
    is_slow: Vec<bool>,
    is_list: bool,
    learns: bool,
    cap: u32,
    timeout: Option<i64>,
    feedback: i64,
    submission: i64,
}

fn case(seed: u64) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sizes: Vec<u32> = (0..rng.random_range(1..=4)).map(|_| rng.random_range(1..=4)).collect();
    sizes.sort_unstable();
    let jobs = (0..rng.random_range(1..=25)).map(|_| {
        let local = rng.random_bool(0.3).then(|| rng.random_range(0..sizes.len()));
        let widest = local.map_or(1, |place| sizes[place]);
        let submit = if rng.random_bool(0.5) { 0 } else { rng.random_range(0..30) };
        (rng.random_range(1..=widest), rng.random_range(0..12), submit, local)
    });
    let mut jobs: Vec<_> = jobs.collect();
    jobs.sort_by_key(|job| job.2);
    let outages = (0..sizes.len()).filter_map(|place| {
        let from = rng.random_range(0..40);
        rng.random_bool(0.4).then(|| (place, from, from + rng.random_range(1..20)))
    });
    let outages = outages.collect();
    Case {
        outages,
        is_slow: sizes.iter().map(|_| rng.random_bool(0.3)).collect(),
        is_list: rng.random_bool(0.5),
        learns: rng.random_bool(0.5),
        cap: rng.random_range(1..=5),
        timeout: rng.random_bool(0.6).then(|| rng.random_range(1..=10)),
        feedback: if rng.random_bool(0.5) { 0 } else { rng.random_range(1..=8) },
        submission: if rng.random_bool(0.7) { 0 } else { rng.random_range(1..=3) },
        sizes,
        jobs,
    }
}

impl Case {
    fn timed(&self) -> (Vec<TimedJob>, LocalUsers) {
        let job =
            |(id, &(processors, run, submit, local)): (u64, &(u32, i64, i64, Option<usize>))| TimedJob {
                spec: JobSpec {
                    id: JobId(id),
                    submit: Time::from_secs(submit),
                    processors,
                    requested: Span::from_secs(run.max(1)),
                    labels: Labels::UNKNOWN,
                    origin: SiteId::from_index(local.unwrap_or(0)),
                    payload: 0,
                },
                run_time: Span::from_secs(run),
            };
        let local = (1..).zip(&self.jobs).filter(|(_, job)| job.3.is_some()).map(|(id, _)| JobId(id));
        ((1..).zip(&self.jobs).map(job).collect(), local.collect())
    }

    fn options(&self) -> Options {
        let rule = if self.learns { "ag,exploit=1" } else { "round-robin" };
        let mut options: Options = rule.parse().unwrap();
        options.cap = self.cap;
        options.timeout = self.timeout.map(Span::from_secs);
        // Limits stay whole seconds.
        options.growth_percent = 100;
        options
    }

    fn policy(&self, grid: &Grid, local_users: LocalUsers) -> Dispatched {
        let time = Time::from_secs;
        let outage = |&(place, from, until)| Outage { place, from: time(from), until: time(until) };
        let world = World {
            local_users,
            speeds: self.is_slow.iter().map(|&is_slow| if is_slow { 50 } else { 100 }).collect(),
            outages: self.outages.iter().map(outage).collect(),
            feedback: Span::from_secs(self.feedback),
            submission: Span::from_secs(self.submission),
        };
        let local = if self.is_list { LocalScheduler::List } else { LocalScheduler::Fcfs };
        Dispatched::new(grid, &self.options(), local, world, 1).unwrap()
    }

    fn ran(&self) -> (Vec<Ran>, Dispatched) {
        let grid = Grid::of_sizes(&self.sizes).unwrap();
        let (jobs, local) = self.timed();
        let mut policy = self.policy(&grid, local);
        let (mut starts, mut ran) = (std::collections::BTreeMap::new(), Vec::new());
        let seconds = |at: Time| at.as_micros() / 1_000_000;
        let mut see = |event: Event| match event.kind {
            EventKind::Started { job, .. } => drop(starts.insert(job, seconds(event.at))),
            EventKind::Completed { job, .. } => {
                ran.push((job.0, grid.rank(event.site), starts[&job], seconds(event.at)));
            }
            _ => {}
        };
        reference::run(&mut policy, &jobs, &grid, Pass::Batch, &mut see).unwrap();
        ran.sort_unstable();
        (ran, policy)
    }
}

/// A wrong variant that the comparison must notice.
#[derive(Clone, Copy, PartialEq)]
enum Slip {
    No,
    /// Sites put jobs in front of their queue.
    NewFirst,
    /// The cap counts what waits only.
    CapOfWaiting,
    /// The limit never grows.
    FixedLimit,
    /// Efficiency knows total times only.
    TotalOnly,
    /// What waited for its limit is called back before anything starts.
    CallsFirst,
    /// Jobs are submitted side by side.
    SubmitsAtOnce,
}

/// What the twin knows of a job.
#[derive(Clone, Copy, Default)]
struct Fate {
    /// Where it is.
    place: Option<usize>,
    scheduled: i64,
    /// When it enters the queue.
    queued: i64,
    started: Option<i64>,
    ended: Option<i64>,
    recalls: u32,
    /// Whether the dispatcher has learned that it started, and that it ended.
    told: (bool, bool),
}

/// Goes through every second.
struct Twin<'a> {
    case: &'a Case,
    slip: Slip,
    fates: Vec<Fate>,
    queues: Vec<Vec<usize>>,
    /// Jobs that ended as the dispatcher knows: place, te, tto.
    known: Vec<(usize, f64, f64)>,
    efficiency: Vec<f64>,
    next: usize,
    recalls: u64,
    /// Until when the dispatcher submits.
    busy: i64,
}

impl Twin<'_> {
    fn is_down(&self, place: usize, now: i64) -> bool {
        self.case.outages.iter().any(|&(other, from, until)| other == place && from <= now && now < until)
    }

    fn run_time(&self, job: usize, place: usize) -> i64 {
        self.case.jobs[job].1 * if self.case.is_slow[place] { 2 } else { 1 }
    }

    fn held(&self, place: usize) -> usize {
        let is_grid = |job: usize| self.case.jobs[job].3.is_none();
        let here = |fate: &Fate| fate.place == Some(place) && !fate.told.1;
        let counts = |fate: &Fate| self.slip != Slip::CapOfWaiting || fate.started.is_none();
        let fates = self.fates.iter().enumerate();
        fates.filter(|(job, fate)| is_grid(*job) && here(fate) && counts(fate)).count()
    }

    fn learn(&mut self, place: usize, te: i64, tto: i64) {
        self.known.push((place, te as f64, tto as f64));
        let count = self.known.len() as f64;
        let tem = self.known.iter().map(|job| job.1).sum::<f64>() / count;
        let ttm = self.known.iter().map(|job| job.2).sum::<f64>() / count;
        let squares: f64 = self.known.iter().map(|job| (job.1 - tem) * (job.1 - tem)).sum();
        let deviation = if count < 2.0 { 0.0 } else { (squares / (count - 1.0)).sqrt() };
        let index = |te: f64, tto: f64| match self.slip {
            Slip::TotalOnly => tto,
            _ => 0.5 * te + 0.5 * (tto - te),
        };
        let (pi, pim) = (index(te as f64, tto as f64), index(tem, ttm));
        let reward = if pi < pim - deviation {
            1.0
        } else if pi > pim + deviation {
            -1.0
        } else {
            return;
        };
        self.efficiency[place] += 0.3 * (reward - self.efficiency[place]);
    }

    fn choose(&mut self, now: i64) -> Option<usize> {
        let sites = self.case.sizes.len();
        let open = |place: usize| !self.is_down(place, now) && self.held(place) < self.case.cap as usize;
        if self.case.learns {
            let mut best: Option<usize> = None;
            for place in (0..sites).filter(|&place| open(place)) {
                if best.is_none_or(|best| self.efficiency[place] > self.efficiency[best]) {
                    best = Some(place);
                }
            }
            return best;
        }
        let found = (0..sites).map(|step| (self.next + step) % sites).find(|&place| open(place))?;
        self.next = (found + 1) % sites;
        Some(found)
    }

    fn join(&mut self, now: i64, job: usize, place: usize) {
        let recalls = self.fates[job].recalls;
        self.fates[job] =
            Fate { place: Some(place), scheduled: now, queued: now, recalls, ..Fate::default() };
        self.queue(job, place);
    }

    fn queue(&mut self, job: usize, place: usize) {
        let at = if self.slip == Slip::NewFirst { 0 } else { self.queues[place].len() };
        self.queues[place].insert(at, job);
    }

    /// Jobs whose submission is over; sites that are down take none.
    fn enter(&mut self, now: i64) {
        let is_due = |fate: &Fate| fate.place.is_some() && fate.queued == now && fate.scheduled < now;
        let mut due: Vec<usize> = (0..self.fates.len()).filter(|&job| is_due(&self.fates[job])).collect();
        due.sort_by_key(|&job| self.fates[job].scheduled);
        for job in due {
            let place = self.fates[job].place.unwrap();
            if self.is_down(place, now) {
                self.fates[job].place = None;
            } else {
                self.queue(job, place);
            }
        }
    }

    fn take_back(&mut self, job: usize, place: usize) {
        self.queues[place].retain(|&other| other != job);
        self.fates[job].place = None;
    }

    fn ended_at(&self, now: i64) -> Vec<usize> {
        let ends = |job: &usize| {
            let fate = self.fates[*job];
            let (Some(place), Some(started), None) = (fate.place, fate.started, fate.ended) else {
                return false;
            };
            started + self.run_time(*job, place) <= now
        };
        let mut ended: Vec<usize> = (0..self.fates.len()).filter(ends).collect();
        // In the order of starts; the loop tells those of one start in the order of decisions.
        ended.sort_by_key(|&job| (self.fates[job].started, self.fates[job].place));
        ended
    }

    /// Everything of a second; true if a job without length started, for which it is gone through again.
    fn step(&mut self, now: i64, is_first: bool) {
        let all = 0..self.fates.len();
        for job in self.ended_at(now) {
            self.fates[job].ended = Some(now);
        }
        if is_first {
            for job in all.clone().filter(|&job| self.case.jobs[job].2 == now) {
                if let Some(place) = self.case.jobs[job].3 {
                    self.join(now, job, place);
                }
            }
            for &(place, from, _) in &self.case.outages {
                let waits = |&job: &usize| self.case.jobs[job].3.is_none();
                if from == now {
                    let lost: Vec<usize> = self.queues[place].iter().copied().filter(waits).collect();
                    lost.into_iter().for_each(|job| self.take_back(job, place));
                }
            }
            self.enter(now);
        }
        let feedback = self.case.feedback;
        let is_grid = |job: &usize| self.case.jobs[*job].3.is_none();
        let due = |at: Option<i64>| at.is_some_and(|at| at + feedback <= now);
        let news = |job: &usize| due(self.fates[*job].ended) && !self.fates[*job].told.1;
        let mut ended: Vec<usize> = all.clone().filter(is_grid).filter(news).collect();
        ended.sort_by_key(|&job| (self.fates[job].ended, self.fates[job].started, self.fates[job].place));
        for job in all.clone() {
            self.fates[job].told.0 |= due(self.fates[job].started);
        }
        for job in ended {
            self.fates[job].told.1 = true;
            let Fate { place, scheduled, started, ended, .. } = self.fates[job];
            let te = ended.unwrap() - started.unwrap();
            self.learn(place.unwrap(), te, now - scheduled);
        }
        if self.slip == Slip::CallsFirst {
            self.recall(now);
        }
        loop {
            self.give(now);
            for place in 0..self.case.sizes.len() {
                if !self.is_down(place, now) {
                    self.start(now, place);
                }
            }
            if !self.recall(now) {
                break;
            }
        }
    }

    /// Takes back what has waited for its limit. False if nothing has.
    fn recall(&mut self, now: i64) -> bool {
        let Some(timeout) = self.case.timeout else { return false };
        let before = self.recalls;
        for job in 0..self.fates.len() {
            let fate = self.fates[job];
            let growths = if self.slip == Slip::FixedLimit { 0 } else { fate.recalls };
            if let (None, Some(place), None) = (self.case.jobs[job].3, fate.place, fate.started)
                && now >= fate.queued
                && now - fate.queued >= timeout << growths
            {
                self.take_back(job, place);
                self.fates[job].recalls += 1;
                self.recalls += 1;
            }
        }
        self.recalls > before
    }

    /// Jobs that have no place get one.
    fn give(&mut self, now: i64) {
        for job in 0..self.fates.len() {
            let (.., submit, local) = self.case.jobs[job];
            if local.is_some() || submit > now || self.fates[job].place.is_some() {
                continue;
            }
            let Some(place) = self.choose(now) else { break };
            if self.case.submission == 0 {
                self.join(now, job, place);
                continue;
            }
            let from = if self.slip == Slip::SubmitsAtOnce { now } else { self.busy.max(now) };
            self.busy = from + self.case.submission;
            let (queued, recalls) = (self.busy, self.fates[job].recalls);
            self.fates[job] = Fate { place: Some(place), scheduled: now, queued, recalls, ..Fate::default() };
        }
    }

    fn start(&mut self, now: i64, place: usize) {
        let runs = |fate: &Fate| fate.place == Some(place) && fate.started.is_some() && fate.ended.is_none();
        let fates = self.fates.iter().zip(&self.case.jobs);
        let busy: u32 = fates.filter(|(fate, _)| runs(fate)).map(|(_, job)| job.0).sum();
        let mut free = self.case.sizes[place] - busy;
        let mut waiting = Vec::new();
        for job in std::mem::take(&mut self.queues[place]) {
            let is_next = self.case.is_list || waiting.is_empty();
            if is_next && self.case.jobs[job].0 <= free {
                free -= self.case.jobs[job].0;
                self.fates[job].started = Some(now);
            } else {
                waiting.push(job);
            }
        }
        self.queues[place] = waiting;
    }
}

fn twin(case: &Case, slip: Slip) -> (Vec<Ran>, u64) {
    let sites = case.sizes.len();
    let mut twin = Twin {
        case,
        slip,
        fates: vec![Fate::default(); case.jobs.len()],
        queues: vec![Vec::new(); sites],
        known: Vec::new(),
        efficiency: vec![0.0; sites],
        next: 0,
        recalls: 0,
        busy: 0,
    };
    for now in 0..5000 {
        twin.step(now, true);
        while !twin.ended_at(now).is_empty() {
            twin.step(now, false);
        }
        if twin.fates.iter().all(|fate| fate.ended.is_some()) {
            break;
        }
    }
    let ran = (1..)
        .zip(&twin.fates)
        .map(|(id, fate)| (id, fate.place.unwrap(), fate.started.unwrap(), fate.ended.unwrap()));
    (ran.collect(), twin.recalls)
}

const CASES: u64 = 400;

#[test]
fn the_ideal_of_dispatchers_does_what_its_naive_twin_does() {
    let mut recalls = 0;
    for seed in 0..CASES {
        let case = case(seed);
        let (ran, policy) = case.ran();
        let (expected, expected_recalls) = twin(&case, Slip::No);
        assert_eq!(ran, expected, "seed {seed}: {case:?}");
        // After the last end there may be news that nobody waits for.
        assert_eq!(policy.recalled_total(), expected_recalls, "seed {seed}: {case:?}");
        recalls += expected_recalls;
    }
    assert!(recalls > CASES, "too few jobs are called back: {recalls}");
}

#[test]
fn mutant_dispatchers_that_count_queue_or_learn_otherwise_differ_from_the_ideal() {
    for (slip, name) in [
        (Slip::NewFirst, "new jobs first"),
        (Slip::CapOfWaiting, "a cap on what waits"),
        (Slip::FixedLimit, "a limit that does not grow"),
        (Slip::TotalOnly, "efficiency by total times"),
        (Slip::CallsFirst, "calling back first"),
        (Slip::SubmitsAtOnce, "submitting at once"),
    ] {
        let differs = (0..CASES).filter(|&seed| case(seed).ran().0 != twin(&case(seed), slip).0).count();
        println!("{name}: {differs} of {CASES}");
        assert!(differs > 3, "{name}: noticed in {differs} cases");
    }
}

#[test]
fn the_time_of_each_job_is_the_sum_of_its_parts() {
    let mut seen = 0;
    for seed in 0..CASES {
        let case = case(seed);
        let (ran, policy) = case.ran();
        for executed in policy.executed() {
            let &(_, place, start, end) = ran.iter().find(|ran| ran.0 == executed.job.0).unwrap();
            let times = executed.times;
            assert_eq!((executed.place, executed.end), (place, Time::from_secs(end)));
            assert_eq!(times.execution, Span::from_secs(end - start));
            assert_eq!(times.transfer, Span::ZERO);
            let least = Span::from_secs(case.feedback + case.submission);
            let is_exact = case.submission == 0;
            assert!(if is_exact { times.overhead == least } else { times.overhead >= least }, "seed {seed}");
            assert_eq!(times.total(), times.execution + times.queue + times.transfer + times.overhead);
            seen += 1;
        }
    }
    assert!(seen > 1000, "{seen}");
}

/// Three tasks of 10 s, given at 0 to a site of two processors. By hand: they enter its queue at 4, 8 and 12 s, and start at 4, 8
/// and 14 s, when the first ends.
#[test]
fn submissions_take_their_time_one_after_the_other() {
    let case = Case {
        sizes: vec![2],
        jobs: vec![(1, 10, 0, None); 3],
        outages: Vec::new(),
        is_slow: vec![false],
        is_list: false,
        learns: false,
        cap: 3,
        timeout: None,
        feedback: 0,
        submission: 4,
    };
    let (ran, policy) = case.ran();
    assert_eq!(ran, [(1, 0, 4, 14), (2, 0, 8, 18), (3, 0, 14, 24)]);
    let parts = |executed: &brokers::ideal::Executed| {
        let times = executed.times;
        [times.queue, times.overhead, times.total()].map(|span| span.as_micros() / 1_000_000)
    };
    let parts: Vec<[i64; 3]> = policy.executed().iter().map(parts).collect();
    assert_eq!(parts, [[0, 4, 14], [0, 8, 18], [2, 12, 24]]);
}

/// Four tasks of 10 s at two sites of two processors, where a job costs 5 and 1. By hand: with money without end the cheap site gets
/// two at 0 and the dear one two. With 7 two are reserved at 1 each, and for the dear one 5 are left for two tasks, less than 5 each:
/// they wait for the cheap site.
#[test]
fn prices_of_sites_decide_where_jobs_go_that_must_not_cost_more() {
    let grid = || Grid::of_sizes(&[2, 2]).unwrap().with_prices([5, 1]);
    let jobs = Case { jobs: vec![(1, 10, 0, None); 4], ..case(0) }.timed().0;
    let ran = |rule: &str| {
        let options = rule.parse().unwrap();
        let mut policy =
            Dispatched::new(&grid(), &options, LocalScheduler::Fcfs, World::default(), 1).unwrap();
        reference::run(&mut policy, &jobs, &grid(), Pass::Batch, &mut drop).unwrap();
        let mut ran: Vec<(usize, i64)> = policy
            .executed()
            .iter()
            .map(|executed| (executed.place, executed.end.as_micros() / 1_000_000))
            .collect();
        ran.sort_unstable();
        ran
    };
    assert_eq!(ran("cost-time,cap=2"), [(0, 10), (0, 10), (1, 10), (1, 10)]);
    assert_eq!(ran("cost-time,cap=2,budget=7"), [(1, 10), (1, 10), (1, 20), (1, 20)]);
}

#[test]
fn one_site_only_and_knowing_queues_do_what_they_say() {
    for seed in 0..60 {
        let case = Case { timeout: None, outages: Vec::new(), feedback: 0, submission: 0, ..case(seed) };
        let grid = Grid::of_sizes(&case.sizes).unwrap();
        let (jobs, local) = case.timed();
        let mut alone = case.policy(&grid, local.clone()).with_one_site(0);
        reference::run(&mut alone, &jobs, &grid, Pass::Batch, &mut drop).unwrap();
        assert!(alone.executed().iter().all(|executed| executed.place == 0), "seed {seed}");
        // One job that comes to queues that are known goes where it starts and ends first.
        let world = World { local_users: local, ..World::default() };
        let options: Options = "mct".parse().unwrap();
        let local = LocalScheduler::Fcfs;
        let mut oracle = Dispatched::new(&grid, &options, local, world, 1).unwrap().knowing_queues();
        let jobs: Vec<TimedJob> =
            jobs.into_iter().filter(|job| case.jobs[job.spec.id.0 as usize - 1].3.is_some()).collect();
        let last = Time::from_secs(30);
        let one = TimedJob {
            spec: JobSpec {
                id: JobId(99),
                submit: last,
                processors: 1,
                requested: Span::from_secs(5),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            },
            run_time: Span::from_secs(5),
        };
        let mut with = jobs.clone();
        with.push(one);
        reference::run(&mut oracle, &with, &grid, Pass::Batch, &mut drop).unwrap();
        let found = oracle.executed()[0].end;
        let ends = (0..grid.len()).map(|place| {
            let world = World { local_users: case.timed().1, ..World::default() };
            let mut fixed = Dispatched::new(&grid, &options, local, world, 1).unwrap().with_one_site(place);
            reference::run(&mut fixed, &with, &grid, Pass::Batch, &mut drop).unwrap();
            fixed.executed()[0].end
        });
        assert_eq!(Some(found), ends.min(), "seed {seed}");
    }
}

#[test]
fn rules_that_make_copies_are_refused() {
    let grid = Grid::of_sizes(&[2, 2]).unwrap();
    let made = |rule: &str| {
        Dispatched::new(&grid, &rule.parse().unwrap(), LocalScheduler::Fcfs, World::default(), 1).map(drop)
    };
    assert!(made("wqr").unwrap_err().contains("take a rule without copies"));
    assert_eq!(made("wqr,copies=1"), Ok(()));
    assert_eq!(made("mct"), Ok(()));
}
