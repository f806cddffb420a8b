//! What reports say of crashes and take-overs, from the events of real peers: those of the search for fault schedules,
//! and of a small grid in which sites die, are cut off and come back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use analysis::faults::{Attempt, AttemptEnd, Downtime};
use analysis::{JobOutcome, JobState, Outcome, OutcomeBuilder, RanTwice};
use protocol::{Durable, Input, Interrupted, Message, Options, Output, Peer, Terms};
use scheduler::event::{BeginCause, EndCause};
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, StrategySpec, Threshold, Time, TimedJob,
};
use simulator::faults::{Fault, Scenario};
use simulator::swarm::{self, Trial};

/// Seeds of the search; a hundred have dozens of crashes.
const SEEDS: u64 = 100;

#[test]
fn crashes_of_the_search_are_told_in_full() {
    let (mut crashes, mut interrupted, mut taken_over) = (0, 0, 0);
    let (mut joined, mut left) = (0, 0);
    for seed in 1..=SEEDS {
        // Of a site that came back without its disk nobody can say what it executed, so its log is not whole.
        let scenario = with_whole_logs(swarm::draw(seed, swarm::Parts::None));
        let mut builder = OutcomeBuilder::new(&scenario.grid, Threshold::HALF, &scenario.jobs);
        let mut seen = [0u64; 3];
        let mut told = [0u64; 3];
        swarm::run_scenario(&scenario, Trial::default(), &mut |event| {
            match event.kind {
                EventKind::Begun { how: BeginCause::Restart } => seen[0] += 1,
                EventKind::Interrupted { killed, .. } => {
                    seen[1] += 1;
                    seen[2] += u64::from(killed);
                }
                EventKind::Begun { how: BeginCause::Join } => told[0] += 1,
                EventKind::Ended { how: EndCause::Leave } => told[1] += 1,
                EventKind::Ended { how: EndCause::Death } => told[2] += 1,
                _ => {}
            }
            builder.observe(event);
        })
        .unwrap();
        let outcome = builder.finish();
        let totals = outcome.faults.totals;
        assert_eq!(outcome.contradictions.total(), 0, "seed {seed}: {:?}", outcome.contradictions);
        // A job may be too wide for the sites that are left, and then is reported as that.
        let waits = |job: &&JobOutcome| {
            matches!(job.state, JobState::Pending | JobState::Waiting | JobState::Running)
        };
        let open = outcome.jobs.iter().filter(waits);
        let orphaned = outcome.faults.jobs.iter().filter(|job| job.still_orphaned);
        let (open, orphaned): (Vec<_>, Vec<_>) =
            (open.map(|job| job.id).collect(), orphaned.map(|job| job.job).collect());
        assert_eq!(open, orphaned, "seed {seed}");
        // What a site executed that never came back nobody could say.
        let mine = |event: &&Attempt| event.end == AttemptEnd::Interrupted && dead(&outcome, event.site);
        let lost = outcome.faults.attempts.iter().filter(mine).count() as u64;
        assert!(totals.interrupted >= seen[1] && totals.interrupted <= seen[1] + lost, "seed {seed}");
        assert_eq!([totals.crashes, totals.killed], [seen[0], seen[2]], "seed {seed}");
        assert_eq!([totals.joined, totals.have_left, totals.silent_sites], told, "seed {seed}");
        assert!(outcome.faults.downtimes.iter().all(Downtime::is_exact), "seed {seed}");
        assert_eq!(totals.wasted_at_least, totals.wasted_at_most, "seed {seed}: the log says when it ended");
        joined += told[0];
        left += told[1];
        // Nothing but a copy that is still there, or ended, may have run: all events are in the log.
        assert!(
            outcome.faults.may_have_run_twice().all(|job| job.starts > 1),
            "seed {seed}: nobody may have started a job of which no event says so"
        );
        assert!(
            outcome.faults.may_have_run_twice().all(|job| job.taken_over + job.superseded > 0),
            "seed {seed}: only what was taken over may have run twice"
        );
        taken_over += totals.taken_over;
        crashes += totals.crashes;
        interrupted += totals.interrupted;
    }
    assert!(
        crashes > 50 && interrupted > 20 && taken_over > 20,
        "{crashes} crashes, {interrupted} interrupted, {taken_over} taken over"
    );
    assert!(joined > 2 && left > 2, "{joined} joined, {left} left");
}

/// Whether a site was down when the run ended.
fn dead(outcome: &Outcome, site: SiteId) -> bool {
    outcome.faults.sites.iter().any(|found| found.site == site && found.silent_at_end)
}

/// Without the faults in which facts become durable and the events of the same call are lost: nodes write both at once.
fn with_whole_logs(mut scenario: Scenario) -> Scenario {
    scenario.faults.retain(|fault| !matches!(fault, Fault::SlowDisk { .. }));
    for fault in &mut scenario.faults {
        if let Fault::Crash { torn, .. } = fault {
            *torn = None;
        }
    }
    scenario
}

#[test]
fn a_job_of_a_dead_site_may_have_run_twice_until_it_is_back() {
    let mut world = World::new(&[4, 8], &[(1, 4, 50), (2, 3, 60)]);
    world.submit_all();
    world.run_until(20);
    world.crash(1);
    world.run_until(250);
    let outcome = world.outcome();
    assert_eq!(outcome.faults.totals.taken_over, 1);
    let twice: Vec<JobId> = outcome.faults.may_have_run_twice().map(|job| job.job).collect();
    assert_eq!(twice, [JobId(2)]);
    assert_eq!(outcome.faults.totals.silent_sites, 1);
    assert!(outcome.is_complete(), "the home has run it");

    world.restart(1);
    world.run_until(400);
    let outcome = world.outcome();
    let job = &outcome.faults.jobs[0];
    assert_eq!((job.job, job.ran_twice, job.interrupted, job.superseded), (JobId(2), RanTwice::No, 1, 1));
    assert_eq!((outcome.faults.totals.silent_sites, outcome.faults.totals.crashes), (0, 1));
    assert!(outcome.faults.totals.rejoin_max_s.is_some(), "it was heard of again");
    assert_eq!(outcome.contradictions.total(), 0);
}

#[test]
fn a_job_of_a_site_whose_death_is_told_did_not_run_twice() {
    let mut world = World::new(&[4, 8], &[(1, 4, 50), (2, 3, 60)]);
    world.submit_all();
    world.run_until(20);
    world.crash(1);
    let kind = EventKind::Ended { how: EndCause::Death };
    world.events.push(Event { at: Time::from_secs(20), site: SiteId(2), kind });
    world.run_until(250);
    let outcome = world.outcome();
    assert_eq!((outcome.faults.totals.taken_over, outcome.faults.totals.silent_sites), (1, 1));
    assert_eq!(outcome.faults.may_have_run_twice().count(), 0);
    let job = &outcome.faults.jobs[0];
    assert_eq!((job.job, job.interrupted), (JobId(2), 1));
    assert_eq!(job.wasted_at_least, job.wasted_at_most);
    assert!(outcome.is_complete() && outcome.contradictions.total() == 0);
}

#[test]
fn a_job_of_a_site_that_was_cut_off_ran_twice() {
    let mut world = World::new(&[4, 8], &[(1, 4, 50), (2, 3, 300)]);
    world.submit_all();
    world.run_until(20);
    world.cut.insert(1);
    world.run_until(150);
    world.cut.clear();
    world.run_until(600);
    let outcome = world.outcome();
    let job = &outcome.faults.jobs[0];
    assert_eq!((job.job, job.ran_twice, job.completions), (JobId(2), RanTwice::Yes, 2));
    assert!(job.repeated_work > 800.0, "3 processors for 300 s: {}", job.repeated_work);
    assert_eq!(outcome.jobs[1].site, Some(SiteId(2)), "the first end counts");
    assert_eq!(outcome.contradictions.total(), 0);

    // Without the take-over the same events are a contradiction.
    world
        .events
        .retain(|event| !matches!(event.kind, EventKind::TookOver { .. } | EventKind::Superseded { .. }));
    assert_eq!(world.outcome().contradictions.repeated_starts, 1);
}

#[test]
fn a_job_that_is_too_wide_for_what_is_left_is_reported_until_somebody_is_back() {
    let mut world = World::new(&[4, 8], &[(1, 6, 10)]);
    world.crash(1);
    world.run_until(150);
    world.submit_at(0);
    world.run_until(200);
    assert_eq!(world.outcome().faults.totals.still_orphaned, 1);
    world.restart(1);
    world.run_until(300);
    let outcome = world.outcome();
    let job = &outcome.faults.jobs[0];
    assert!(job.was_orphaned && !job.still_orphaned && job.orphaned >= Span::from_secs(50), "{job:?}");
    assert!(outcome.is_complete());
}

/// A driver: every message takes a second, jobs run for their requested time, a disk per site.
struct World {
    terms: Terms,
    jobs: Vec<TimedJob>,
    /// By rank; none while the site is down.
    peers: Vec<Option<Peer>>,
    disks: Vec<Durable>,
    /// Arrival, order, from, to.
    under_way: BTreeMap<(Time, u64), (usize, usize, Message)>,
    endings: BTreeSet<(Time, JobId, usize)>,
    /// Ranks of sites whose messages are lost.
    cut: BTreeSet<usize>,
    sent: u64,
    now: Time,
    events: Vec<Event>,
}

impl World {
    /// Sites in the order of their sizes; jobs `(id, processors, seconds)` are submitted at site 1.
    fn new(sizes: &[u32], jobs: &[(u64, u32, i64)]) -> World {
        let strategy: StrategySpec = "st:50".parse().unwrap();
        let options = Options {
            heartbeat: Some(Span::from_secs(10)),
            suspect_after: Span::from_secs(35),
            lease: Some(Span::from_secs(100)),
            retry: Some(Span::from_secs(5)),
            journal: true,
            interrupted: Interrupted::Requeue,
            ..Options::default()
        };
        let grid = Arc::new(Grid::of_sizes(sizes).unwrap());
        let terms = Terms { options, ..Terms::new(grid, strategy.strategy) };
        let timed = |&(id, processors, seconds): &(u64, u32, i64)| {
            let (submit, origin, run_time) = (Time::ZERO, SiteId(1), Span::from_secs(seconds));
            let spec = JobSpec {
                id: JobId(id),
                submit,
                processors,
                requested: run_time,
                labels: Labels::UNKNOWN,
                origin,
                payload: 0,
            };
            TimedJob { spec, run_time }
        };
        let mut world = World {
            terms,
            jobs: jobs.iter().map(timed).collect(),
            peers: sizes.iter().map(|_| None).collect(),
            disks: vec![Durable::default(); sizes.len()],
            under_way: BTreeMap::new(),
            endings: BTreeSet::new(),
            cut: BTreeSet::new(),
            sent: 0,
            now: Time::ZERO,
            events: Vec::new(),
        };
        (0..sizes.len()).for_each(|rank| world.restart(rank));
        world
    }

    fn outcome(&self) -> Outcome {
        let mut builder = OutcomeBuilder::new(&self.terms.grid, Threshold::HALF, &self.jobs);
        self.events.iter().for_each(|event| builder.observe(event));
        builder.finish()
    }

    fn restart(&mut self, rank: usize) {
        self.peers[rank] = Some(Peer::restore(self.terms.at_rank(rank), &self.disks[rank], self.now));
        self.carry_out(rank);
        self.tell(rank, Input::Turn);
    }

    fn crash(&mut self, rank: usize) {
        self.peers[rank] = None;
        self.endings.retain(|ending| ending.2 != rank);
    }

    fn submit_all(&mut self) {
        (0..self.jobs.len()).for_each(|job| self.submit_at(job));
    }

    fn submit_at(&mut self, job: usize) {
        self.tell(0, Input::Submitted(self.jobs[job].spec));
        self.tell(0, Input::Turn);
    }

    fn tell(&mut self, rank: usize, input: Input) {
        if let Some(peer) = &mut self.peers[rank] {
            peer.handle(self.now, input);
            self.carry_out(rank);
        }
    }

    fn carry_out(&mut self, rank: usize) {
        let site = self.terms.grid.at_rank(rank);
        let Some(peer) = self.peers[rank].as_mut() else { return };
        while let Some(output) = peer.poll_output() {
            match output {
                Output::Write(fact) => self.disks[rank].apply(&fact),
                Output::Event(kind) => self.events.push(Event { at: self.now, site, kind }),
                Output::Start(job) => {
                    self.endings.insert((self.now + job.requested, job.id, rank));
                }
                Output::Stop(job) => panic!("job {job} has no parts"),
                Output::Send { to, message } => {
                    let to = self.terms.grid.rank(to);
                    if !self.cut.contains(&rank) && !self.cut.contains(&to) {
                        self.sent += 1;
                        let due = self.now + Span::from_secs(1);
                        self.under_way.insert((due, self.sent), (rank, to, message));
                    }
                }
            }
        }
    }

    fn run_until(&mut self, seconds: i64) {
        let end = Time::from_secs(seconds);
        loop {
            let due = [
                self.under_way.first_key_value().map(|(key, _)| key.0),
                self.endings.first().map(|ending| ending.0),
                self.peers.iter().flatten().filter_map(Peer::poll_timeout).min(),
            ];
            let Some(next) = due.into_iter().flatten().min().filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(ending) = self.endings.first().copied().filter(|ending| ending.0 <= self.now) {
                self.endings.remove(&ending);
                self.tell(ending.2, Input::Completed(ending.1));
            }
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (from, to, message) = entry.remove();
                let from = self.terms.grid.at_rank(from);
                self.tell(to, Input::Message { from, message });
            }
            for rank in 0..self.peers.len() {
                while self.peers[rank].as_ref().is_some_and(Peer::wants_settle) {
                    self.tell(rank, Input::Settle);
                }
                let timeout = self.peers[rank].as_ref().and_then(Peer::poll_timeout);
                if timeout.is_some_and(|timeout| timeout <= self.now) {
                    self.tell(rank, Input::Timeout);
                }
                self.tell(rank, Input::Turn);
            }
        }
        self.now = end;
    }
}
