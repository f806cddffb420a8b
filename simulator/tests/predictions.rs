//! Run times that are predicted, among faults: what was learned of them outlives a process, and nothing is lost for it.

use std::sync::Arc;

use predict::{Correction, Forecast, Predictor};
use protocol::gang::Attempt;
use protocol::message::{BrokerMessage, Change, Executed, OpaqueMessage};
use protocol::mutant::Mutant;
use protocol::{Durable, Input, Message, Options, Output, Peer, PeerConfig, Terms};
use scheduler::strategy::PoolAlgorithm;
use scheduler::{
    EventKind, Grid, JobId, JobSpec, Labels, Pool, SiteId, Span, Strategy as Scheduling, StrategySpec, Time,
};
use simulator::faults::{Scenario, Tally};
use simulator::swarm::{self, Part, Parts, Trial};

const AVG2: Forecast = Forecast { predictor: Predictor::Avg2, correction: Correction::Tsafrir };

/// Of one user, who asks for ten minutes.
fn job(id: u64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::from_secs(0),
        processors: 2,
        requested: Span::from_secs(600),
        labels: Labels { user: 7, ..Labels::UNKNOWN },
        origin: SiteId(1),
        payload: 0,
    }
}

/// A member with its journal.
struct Member {
    peer: Peer,
    disk: Durable,
    predicted: Vec<(JobId, Span)>,
    /// Sites that it asked which jobs they have, and the number of the question.
    asked: Vec<(SiteId, u64)>,
}

impl Member {
    fn begin(config: PeerConfig) -> Member {
        let disk = Durable::default();
        let peer = Peer::restore(config, &disk, Time::ZERO);
        let mut member = Member { peer, disk, predicted: Vec::new(), asked: Vec::new() };
        member.drain();
        member
    }

    fn drain(&mut self) {
        while let Some(output) = self.peer.poll_output() {
            match output {
                Output::Write(fact) => self.disk.apply(&fact),
                Output::Event(EventKind::Predicted { job, run_time, corrections: 0 }) => {
                    self.predicted.push((job, run_time));
                }
                Output::Send { to, message: Message::Opaque(OpaqueMessage::Anew { count }) } => {
                    self.asked.push((to, count));
                }
                _ => {}
            }
        }
    }

    fn tell(&mut self, now: i64, input: Input) {
        for input in [input, Input::Turn] {
            self.peer.handle(Time::from_secs(now), input);
            self.drain();
        }
    }

    /// Another process goes on with its journal.
    fn killed(&self, mutant: Option<Mutant>) -> Member {
        let (config, now) = (self.peer.config().clone(), Time::from_secs(500));
        let peer = Peer::restore_with(config, &self.disk, now, mutant);
        let disk = self.disk.clone();
        let mut member = Member { peer, disk, predicted: Vec::new(), asked: Vec::new() };
        member.drain();
        member
    }
}

fn config(strategy: &str, site: SiteId) -> PeerConfig {
    let sites = [("a".to_string(), 4), ("b".to_string(), 8)];
    let strategy = strategy.parse::<StrategySpec>().unwrap().strategy;
    let brokers = matches!(strategy, Scheduling::Broker(_) | Scheduling::Opaque(_))
        .then(|| ("broker".to_string(), None));
    let grid = Arc::new(Grid::with_brokers(sites, brokers).unwrap());
    let options = Options { journal: true, retry: Some(Span::from_secs(1)), ..Options::default() };
    PeerConfig { site, terms: Terms { options, forecast: Some(AVG2), ..Terms::new(grid, strategy) } }
}

/// A site where two jobs have ended, after 20 and 31 s.
fn site(strategy: &str) -> Member {
    let mut site = Member::begin(config(strategy, SiteId(1)));
    for (id, (from, to)) in [(1, (10, 30)), (2, (40, 71))] {
        site.tell(from, Input::Submitted(job(id)));
        site.tell(to, Input::Completed(JobId(id)));
    }
    site
}

/// A broker that is told of the same two.
fn desk() -> Member {
    let mut desk = Member::begin(config("broker:mst", SiteId(3)));
    let at = Time::from_secs;
    for (number, (id, (from, to))) in [(1, (10, 30)), (2, (40, 71))].into_iter().enumerate() {
        let changes = vec![
            Change::Joined { at: at(from), job: job(id) },
            Change::Decided { at: at(from), started: vec![JobId(id)] },
            Change::Ended { at: at(to), job: JobId(id) },
        ];
        let state = BrokerMessage::State { epoch: 1, first: 3 * number as u64, changes, probe: 0 };
        let message = Message::Broker(state);
        desk.tell(to, Input::Message { from: SiteId(1), message });
    }
    desk
}

/// A broker that gave the same two to a site of which it hears nothing but their ends.
fn blind_desk() -> Member {
    let mut desk = Member::begin(config("opaque:met", SiteId(3)));
    for (id, (from, to)) in [(1, (10, 30)), (2, (40, 71))] {
        desk.tell(from, Input::Submitted(job(id)));
        let [queued, started, ended] = [from, from, to].map(Time::from_secs);
        let jobs = vec![Executed { job: JobId(id), queued, started, ended }];
        let message = Message::Opaque(OpaqueMessage::Ended { jobs });
        desk.tell(to, Input::Message { from: SiteId(1), message });
    }
    desk
}

const IN_PARTS: &str = "broker:mcisne,coallocate=dp";

/// A site with parts of the same two jobs of ten processors, of which it executes two: as the site that they are known by, or as another one.
fn site_of_parts(of: SiteId, mutant: Option<Mutant>) -> Member {
    let mut config = config(IN_PARTS, SiteId(1));
    config.grid = Arc::new((*config.grid).clone().with_spread(12));
    let disk = Durable::default();
    let peer = Peer::restore_with(config, &disk, Time::ZERO, mutant);
    let mut site = Member { peer, disk, predicted: Vec::new(), asked: Vec::new() };
    site.drain();
    let says = |site: &mut Member, now, message| {
        site.tell(now, Input::Message { from: SiteId(3), message: Message::Broker(message) });
    };
    for (id, (from, to)) in [(1, (10, 30)), (2, (40, 71))] {
        let attempt = Attempt { job: JobId(id), epoch: 0, number: id };
        let run_time = Span::from_secs(500);
        let part = Box::new(job(id));
        let (floor, hops, whole) = (id, 1, 10);
        let prepare = BrokerMessage::PreparePredicted { attempt, floor, part, of, hops, whole, run_time };
        // It had its processors for some seconds before all had theirs.
        says(&mut site, from - 5, prepare);
        says(&mut site, from, BrokerMessage::Commit { attempt, at: Time::from_secs(from) });
        site.tell(to, Input::Completed(JobId(id)));
    }
    site
}

/// A broker that is told of the same two jobs in parts at both sites, of which the first is the one that they are known by; or that each of them is.
fn desk_of_parts(each: bool) -> Member {
    let mut config = config(IN_PARTS, SiteId(3));
    config.grid = Arc::new((*config.grid).clone().with_spread(12));
    let mut desk = Member::begin(config);
    let at = Time::from_secs;
    for (number, (id, (from, to))) in [(0, (1, (10, 30))), (1, (2, (40, 71)))] {
        let parts = [(1, 2), (2, 8)].map(|(site, processors)| (SiteId(site), processors));
        for (site, processors) in parts {
            let part = JobSpec { processors, ..job(id) };
            let runs = Change::PartRuns { at: at(from), part, since: at(from - 5), whole: 10 };
            let decided = Change::Decided { at: at(from), started: Vec::new() };
            let changes = vec![runs, decided];
            let state = BrokerMessage::State { epoch: 1, first: 3 * number, changes, probe: 0 };
            desk.tell(from, Input::Message { from: site, message: Message::Broker(state) });
        }
        for (site, _) in parts {
            let (at, job, run_time) = (at(to), JobId(id), Span::from_secs(to - from));
            let ended = match site == SiteId(1) || each {
                true => Change::EndedAfter { at, job, run_time },
                false => Change::PartEnded { at, job },
            };
            let state =
                BrokerMessage::State { epoch: 1, first: 3 * number + 2, changes: vec![ended], probe: 0 };
            desk.tell(to, Input::Message { from: site, message: Message::Broker(state) });
        }
    }
    desk
}

/// One of each kind that predicts.
fn members() -> [Member; 9] {
    let sites = ["local", "broker:mst", "opaque:ag", "steal:loaded,select=easy", "pool:easy"];
    let [local, behind, opaque, thief, pooled] = sites.map(site);
    let of_parts = site_of_parts(SiteId(1), None);
    [local, behind, opaque, thief, pooled, desk(), blind_desk(), of_parts, desk_of_parts(false)]
}

/// How long the jobs ran that a member has written down to have learned from, and their processors.
fn learned(member: &Member) -> Vec<(u64, u64)> {
    let rows = member.disk.memory.iter().filter(|(topic, _)| topic.table == 64);
    rows.map(|(_, words)| (words[10] / 1_000_000, words[1] >> 32)).collect()
}

#[test]
fn a_job_in_parts_is_learned_from_once_by_the_site_that_it_is_known_by_and_by_a_broker() {
    let both = [(20, 10), (31, 10)];
    assert_eq!(learned(&site_of_parts(SiteId(1), None)), both, "since it began, and as a whole");
    assert_eq!(learned(&desk_of_parts(false)), both);
    // Another site does not, and goes on asking its users.
    let other = site_of_parts(SiteId(2), None);
    assert_eq!(learned(&other), []);
    assert_eq!(next(other), 600);
    assert_eq!(next(site_of_parts(SiteId(2), Some(Mutant::PartLearned))), 25, "it has learned as well");
    assert_eq!(learned(&desk_of_parts(true)).len(), 4, "each part, if sites say so");
}

/// What is predicted of one more job, in seconds.
fn next(mut member: Member) -> i64 {
    for (from, count) in std::mem::take(&mut member.asked) {
        let message = Message::Opaque(OpaqueMessage::Have { count, all: 0, jobs: Vec::new() });
        member.tell(600, Input::Message { from, message });
    }
    member.predicted.clear();
    member.tell(600, Input::Submitted(job(9)));
    assert_eq!(member.peer.agrees_with(&member.disk), Ok(()));
    let [(JobId(9), run_time)] = member.predicted[..] else { panic!("{:?}", member.predicted) };
    run_time.as_micros() / 1_000_000
}

#[test]
fn whoever_is_killed_predicts_what_it_would_have() {
    for member in members() {
        let strategy = member.peer.config().strategy;
        assert_eq!(next(member.killed(None)), 25, "{strategy}: the mean of 20 and 31 s");
        assert_eq!(next(member.killed(None).killed(None)), 25, "{strategy}: once more");
        assert_eq!(next(member), 25, "{strategy}: without a crash");
    }
}

#[test]
fn mutant_ends_that_are_forgotten_show_in_the_next_prediction() {
    for member in members() {
        assert_eq!(next(member.killed(Some(Mutant::EndsForgotten))), 600);
    }
}

/// Runs a scenario of three users whose members predict, with the corrections in turn, and adds up predictions and corrections.
///
/// # Panics
/// If a check of the swarm does not hold.
fn predicting(seed: u64, mut scenario: Scenario, predicted: &mut u64, corrected: &mut u64) -> Tally {
    for (number, job) in scenario.jobs.iter_mut().enumerate() {
        job.spec.labels.user = (number % 3) as i32;
    }
    let corrections = Correction::ALL;
    scenario.terms.forecast =
        Some(Forecast { correction: corrections[seed as usize % corrections.len()], ..AVG2 });
    let done = swarm::run_scenario(&scenario, Trial::default(), &mut |event| match event.kind {
        EventKind::Predicted { corrections: 0, .. } => *predicted += 1,
        EventKind::Predicted { .. } => *corrected += 1,
        _ => {}
    });
    done.unwrap_or_else(|broken| panic!("seed {seed}, {}: {broken}", scenario.terms.strategy))
}

/// The same of brokers that start jobs in parts.
#[test]
fn predictions_break_nothing_of_jobs_in_parts_among_faults() {
    let (mut tally, mut predicted, mut corrected) = (Tally::default(), 0u64, 0u64);
    for seed in 1..=300 {
        let scenario = swarm::draw(seed, Parts::With(Part::Gangs));
        let one = predicting(seed, scenario, &mut predicted, &mut corrected);
        tally.restarts += one.restarts;
        tally.parts += one.parts;
    }
    println!("{predicted} predictions, {corrected} corrections, {tally:?}");
    assert!(predicted > 2_000 && corrected > 50 && tally.restarts > 50 && tally.parts > 1_000);
}

/// Members that predict, under crashes, restarts, silences and loss: all checks of the swarm hold, those of journals and of
/// what brokers know of sites among them.
#[test]
fn predictions_break_nothing_among_faults() {
    let (mut tally, mut predicted, mut corrected) = (Tally::default(), 0u64, 0u64);
    for seed in 1..=600 {
        let part = if seed % 2 == 0 { Part::Brokers } else { Part::Opaque };
        let mut scenario = swarm::draw(seed, Parts::With(part));
        match scenario.terms.strategy {
            Scheduling::Broker(_)
            | Scheduling::Opaque(_)
            | Scheduling::Balance(_)
            | Scheduling::Pool(Pool { algorithm: PoolAlgorithm::Easy, .. }) => {}
            Scheduling::Pool(pool) => {
                scenario.terms.strategy = Scheduling::Pool(Pool { algorithm: PoolAlgorithm::Easy, ..pool });
            }
            _ if seed % 4 < 2 => scenario.terms.strategy = Scheduling::Local,
            _ => {
                scenario.terms.strategy = "steal:loaded,select=easy".parse::<StrategySpec>().unwrap().strategy
            }
        }
        tally.restarts += predicting(seed, scenario, &mut predicted, &mut corrected).restarts;
    }
    println!("{predicted} predictions, {corrected} corrections, {} restarts", tally.restarts);
    assert!(predicted > 4_000 && corrected > 100 && tally.restarts > 100);
}
