//! Run times that are predicted, among faults: what was learned of them outlives a process, and nothing is lost for it.

use std::sync::Arc;

use predict::{Correction, Forecast, Predictor};
use protocol::message::{BrokerMessage, Change, Executed, OpaqueMessage};
use protocol::mutant::Mutant;
use protocol::{Durable, Input, Message, Options, Output, Peer, PeerConfig, Terms};
use scheduler::strategy::PoolAlgorithm;
use scheduler::{
    EventKind, Grid, JobId, JobSpec, Labels, Pool, SiteId, Span, Strategy as Scheduling, StrategySpec, Time,
};
use simulator::faults::Tally;
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

/// One of each kind that predicts.
fn members() -> [Member; 7] {
    let sites = ["local", "broker:mst", "opaque:ag", "steal:loaded,select=easy", "pool:easy"];
    let [local, behind, opaque, thief, pooled] = sites.map(site);
    [local, behind, opaque, thief, pooled, desk(), blind_desk()]
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

/// Members that predict, under crashes, restarts, silences and loss: all checks of the swarm hold, those of journals and of
/// what brokers know of sites among them.
#[test]
fn predictions_break_nothing_among_faults() {
    let (mut tally, mut predicted, mut corrected) = (Tally::default(), 0, 0);
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
        for (number, job) in scenario.jobs.iter_mut().enumerate() {
            job.spec.labels.user = (number % 3) as i32;
        }
        let corrections = Correction::ALL;
        scenario.terms.forecast =
            Some(Forecast { correction: corrections[seed as usize % corrections.len()], ..AVG2 });
        let done = swarm::run_scenario(&scenario, Trial::default(), &mut |event| match event.kind {
            EventKind::Predicted { corrections: 0, .. } => predicted += 1,
            EventKind::Predicted { .. } => corrected += 1,
            _ => {}
        });
        match done {
            Ok(one) => tally.restarts += one.restarts,
            Err(broken) => panic!("seed {seed}, {}: {broken}", scenario.terms.strategy),
        }
    }
    println!("{predicted} predictions, {corrected} corrections, {} restarts", tally.restarts);
    assert!(predicted > 4_000 && corrected > 100 && tally.restarts > 100);
}
