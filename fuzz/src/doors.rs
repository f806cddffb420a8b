//! The inputs that a search of the ways into a node starts from, made by the encoders of nodes and coordinators.

use std::collections::BTreeMap;
use std::time::Duration;

use node::clock::StartOrder;
use node::control::api::{
    Adoption, CalibrateOrder, Calibration, ConnectOrder, Failure, LinkStatus, MeasuredDelay, Outstanding,
    Phase, RoundTrips, Status,
};
use node::doors::{Piece, changes, put, put_hello, put_request};
use node::frame::Frame;
use node::journal::About;
use node::lockstep::{self, Note, Order, Posted, Reply, Terms, wire};
use node::peer_address::PeerAddress;
use protocol::codec::encode;
use protocol::handover::{Answer, Custody, Record};
use protocol::journal::Place;
use protocol::membership::Guarded;
use protocol::message::{Transfer, Void};
use protocol::{Fact, Input, Output};
use scheduler::event::MessageKind;
use scheduler::{Event, EventKind, JobId, JobSpec, SiteId, Span, Time, TimedJob};
use serde::Serialize;

use crate::golden::{JOB, REPORT, Seed, TRANSFER, messages};
use crate::targets::control::{ADOPT, ANSWER, CALIBRATE, CONNECT, JOBS, START};

const TIMED: TimedJob = TimedJob { spec: JOB, run_time: Span::from_secs(30) };

/// The inputs of a target, by its name.
pub(crate) fn seeds(target: &str) -> Vec<Seed> {
    let seeds = match target {
        "frame" => streams(),
        "hello" => introductions(),
        "lockstep" => orders(),
        "control" => bodies(),
        "restore" => journals(),
        _ => Vec::new(),
    };
    seeds.into_iter().map(|(name, bytes)| (name.to_string(), bytes)).collect()
}

fn streams() -> Vec<(&'static str, Vec<u8>)> {
    let frame = |number: u64, message: Vec<u8>, run_times: Vec<(JobId, Span)>| {
        let (from, to, instance) = (SiteId(1), SiteId(2), 77);
        let (sent_at, injected) = (Time::from_secs(5), Span::from_secs(1));
        let frame = Frame { from, to, instance, sequence: number, sent_at, injected, message, run_times };
        Piece::Frame(frame.encode())
    };
    let stream = |portion: u8, pieces: &[Piece]| {
        let mut bytes = vec![portion];
        pieces.iter().for_each(|piece| put(&mut bytes, piece));
        bytes
    };
    let all: Vec<Piece> =
        (1..).zip(messages()).map(|(number, message)| frame(number, encode(&message), Vec::new())).collect();
    let run_times = vec![(JobId(7), Span::from_secs(30)), (JobId(8), Span::ZERO)];
    vec![
        ("every-message", stream(255, &all)),
        ("run-times", stream(0, &[frame(1, Vec::new(), run_times), Piece::Answer(0)])),
        (
            "answers",
            stream(2, &[Piece::Answer(0), Piece::Answer(1), Piece::Answer(255), Piece::Frame(Vec::new())]),
        ),
        ("too-long", vec![9, 1, 1, 4, 0, 0, 7]),
    ]
}

fn introductions() -> Vec<(&'static str, Vec<u8>)> {
    let hello = put_hello(SiteId(2), 77, &[2, 8, 16]);
    vec![
        ("request", put_request(true, &hello)),
        ("probe", put_request(false, &[0; 128])),
        ("hello", hello),
        ("taken", vec![0]),
        ("refused", vec![3]),
        ("full", vec![255]),
    ]
}

fn orders() -> Vec<(&'static str, Vec<u8>)> {
    fn sent<T: Serialize>(first: u8, all: &[T]) -> Vec<u8> {
        let mut bytes = vec![first];
        all.iter().for_each(|one| wire::put(&mut bytes, one).expect("it is short"));
        bytes
    }
    let due = lockstep::Due { number: 7 };
    let inputs = vec![
        Input::Submitted(TIMED.spec),
        Input::Completed(JobId(7)),
        Input::Message { from: SiteId(2), message: due },
        Input::Turn,
        Input::Settle,
        Input::Timeout,
    ];
    let lost = Note::Lost { at: Time::from_secs(3), to: SiteId(2), kind: MessageKind::Grant };
    let run_time = Note::RunTime { job: JobId(7), run_time: TIMED.run_time };
    let begins = Note::Begins { part: TIMED.spec, at: Time::from_secs(2) };
    let notes = vec![
        lost,
        Note::Copies { from: SiteId(2), number: 8, copies: 2 },
        run_time,
        Note::Waits { job: JobId(7) },
        begins,
    ];
    let tell = Order::Tell { now: Time::from_secs(5), notes, inputs };
    let begin = Order::Begin(Terms { message_events: true, patience: Duration::from_secs(9) });
    let posted = Posted { number: 3, kind: MessageKind::Notice, wakes: true, payload: 9 };
    let event = EventKind::Completed { job: JobId(7), processors: 2 };
    let sends = Output::Send { to: SiteId(1), message: posted };
    let outputs = vec![Output::Start(TIMED.spec), sends, Output::Event(event)];
    let answer = lockstep::Answer { outputs, timeout: Some(Time::from_secs(9)), settle: true, quiet: false };
    let replies =
        [Reply::Begun, Reply::Told(vec![answer, lockstep::Answer::default()]), Reply::Failed("so".into())];
    vec![
        ("orders", sent(254, &[begin, tell.clone()])),
        ("bytewise", sent(0, &[tell])),
        ("replies", sent(15, &replies)),
    ]
}

fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    fn body(kind: u8, content: &impl Serialize) -> Vec<u8> {
        [vec![kind], serde_json::to_vec(content).expect("plain data")].concat()
    }
    let peer = |address: &str| PeerAddress { site: SiteId(1), address: address.to_string() };
    let id = "12D3KooWKMVvcGofAjdbL9HuohozD73iWyvuYRF8ZDpQGqPFJaBh";
    let peers = vec![peer("/ip4/127.0.0.1/tcp/4001"), peer(&format!("/dns4/site2/tcp/4001/p2p/{id}"))];
    let start = StartOrder { unix_micros: 1_800_000_000_000_000, factor: 100.0, trace_origin_us: -5 };
    let other = TimedJob { spec: JobSpec { id: JobId(8), processors: 8, ..JOB }, run_time: Span::ZERO };
    let events =
        [EventKind::Started { job: JobId(7), processors: 2, hops: 1 }, EventKind::Gone { peer: SiteId(3) }];
    let line = |kind| {
        serde_json::to_string(&Event { at: Time::from_secs(1), site: SiteId(2), kind }).expect("plain data")
    };
    let lines = events.map(line).join("\n");
    let links = vec![RoundTrips { to: SiteId(1), micros: vec![250, 240, 260] }];
    vec![
        ("connect", body(CONNECT, &ConnectOrder { peers })),
        ("calibrate", body(CALIBRATE, &CalibrateOrder { rounds: 9 })),
        ("start", body(START, &start)),
        ("jobs", body(JOBS, &[TIMED, other])),
        ("adopt", body(ADOPT, &[Adoption { job: TIMED, epoch: 2 }, Adoption { job: other, epoch: 1 }])),
        ("status", body(ANSWER, &status())),
        ("failure", body(ANSWER, &Failure { reason: "busy".to_string(), room: Some(3) })),
        ("calibration", body(ANSWER, &Calibration { site: SiteId(2), links })),
        ("events", [&[ANSWER], lines.as_bytes()].concat()),
    ]
}

fn status() -> Status {
    let measured = MeasuredDelay {
        count: 3,
        mean_us: 12,
        injected_mean_us: 10,
        added_min_us: 1,
        added_max_us: 2,
        median_us: 12,
        min_us: 11,
        max_us: 13,
        overtaken: 0,
    };
    let link = LinkStatus {
        site: SiteId(1),
        name: "site1".to_string(),
        connected: true,
        instance: Some(7),
        problem: None,
        rtt_us: Some(250),
        delay_out_us: 10,
        delay_in_us: 10,
        measured: Some(measured),
        cut_to: false,
        cut_from: true,
    };
    Status {
        site: SiteId(2),
        name: "site2".to_string(),
        phase: Phase::Running,
        connected: true,
        instance: 8,
        peer_id: "12D3".to_string(),
        listen: vec!["/ip4/127.0.0.1/tcp/4001".to_string()],
        trace_time_us: 5,
        processors: 4,
        idle: 1,
        submitted: 2,
        completed: 1,
        killed: 0,
        restarts: 1,
        events: 9,
        heartbeats: 2,
        paused: false,
        has_left: false,
        outstanding: Outstanding { waiting: 1, ..Outstanding::default() },
        links: vec![link],
        frames_lost: 0,
        limits_hit: BTreeMap::from([("jobs".to_string(), 1)]),
    }
}

/// Journals of the middle site of the first grid of `peer`, with a strategy of each family.
fn journals() -> Vec<(&'static str, Vec<u8>)> {
    let grid = [4, 8, 16].into_iter().zip(1..).map(|(size, site)| (format!("site{site}"), size)).collect();
    let about =
        About { format: node::journal::FORMAT, run: "run".to_string(), site: SiteId(2), grid, instance: 77 };
    let own = |id: u64, processors: u32| {
        let job = JobSpec { id: JobId(id), processors, origin: SiteId(2), ..JOB };
        Fact::Owns { job, custody: Custody::default(), place: Place::Queue }
    };
    let transfer = |id: u64, number: u64| {
        let job = JobSpec { id: JobId(id), processors: 3, origin: SiteId(2), ..JOB };
        Transfer { number, job, guardian: Some(SiteId(2)), ..TRANSFER }
    };
    let began = Fact::Began { incarnation: 0 };
    let started = Fact::Started { job: JobId(7), at: Time::from_secs(9) };
    let answered = |number, answer| Fact::Ledger(Record::Tombstone { from: SiteId(1), number, answer });
    let queue = vec![began, own(7, 6), own(8, 7), own(9, 8), started];
    let out = Record::Out { to: SiteId(3), transfer: transfer(8, 1) };
    let moved = vec![
        began,
        own(7, 6),
        own(8, 3),
        Fact::Ledger(out),
        answered(1, Answer::Accepted),
        answered(2, Answer::Declined),
        Fact::Ledger(Record::Floor { from: SiteId(1), floor: 2 }),
    ];
    let home = Record::Out { to: SiteId(1), transfer: transfer(9, 1) };
    let routed = vec![began, own(9, 3), Fact::Ledger(home), Fact::Routed { to: SiteId(1), number: 1 }];
    let guarded = Guarded { job: JobSpec { id: JobId(5), ..JOB }, epoch: 1, moves: 2, holder: SiteId(3) };
    let void = Void { job: JobId(6), epoch: 2 };
    let others = vec![
        began,
        Fact::Guarded(guarded),
        Fact::Reports(REPORT),
        Fact::TookOver(void),
        Fact::Superseded(Void { job: JobId(4), epoch: 1 }),
        Fact::PassesOn(Void { job: JobId(4), epoch: 1 }),
        Fact::Began { incarnation: 1 },
        own(6, 8),
    ];
    // Grid, site, strategy, local scheduler, switches, limits, and who is there: see `configuration` in `peer`.
    let begin = |strategy: u8, switches: u8, members: u8| [0, 1, strategy, 0, switches, 0xff, members];
    let journal = |first: [u8; 7], facts: &[Fact]| [&first[..], &changes(&about, facts, &[TIMED])].concat();
    vec![
        ("empty", journal(begin(0, 4, 4), &[])),
        ("queue", journal(begin(0, 4, 4), &queue)),
        ("queue-local", journal(begin(8, 4, 4), &queue)),
        ("moved", journal(begin(0, 4, 4), &moved)),
        ("moved-pool", journal(begin(9, 4, 4), &moved)),
        ("moved-random", journal(begin(12, 4, 7), &moved)),
        ("routed", journal(begin(0, 4, 4), &routed)),
        ("others", journal(begin(0, 4, 7), &others)),
        ("others-common", journal(begin(7, 4, 7), &others)),
    ]
}
