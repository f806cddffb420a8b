//! One message of each kind, and the jobs, transfers and reports that they are of.

use protocol::Message;
use protocol::message::{
    BalanceMessage, Board, Epoch, Executed, HandOverMessage, Held, Listing, LoadReport, MembershipMessage,
    Offer, OfferId, OpaqueMessage, PoolMessage, QueueState, Release, Report, Rest, StealMessage, Transfer,
    Void,
};
use scheduler::exchange::WaitingJob;
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

/// An input with the name of its file.
pub(crate) type Seed = (String, Vec<u8>);

pub(crate) const JOB: JobSpec = JobSpec {
    id: JobId(7),
    submit: Time::from_secs(3),
    processors: 2,
    requested: Span::from_secs(60),
    labels: Labels::UNKNOWN,
    origin: SiteId(1),
    payload: 9,
};
pub(crate) const TRANSFER: Transfer =
    Transfer { number: 5, job: JOB, bounces: 1, hops: 2, epoch: 0, moves: 3, guardian: Some(SiteId(1)) };
const LOAD_REPORT: LoadReport =
    LoadReport { site: SiteId(3), version: 6, age: Span::from_micros(7), work: 500, narrowest: 2, idle: 1 };
const EPOCH: Epoch = Epoch { counter: 2, site: SiteId(3) };
const OFFER: OfferId = OfferId { job: JobId(7), version: 1 };
const STATE: QueueState = QueueState { version: 9, rest: Rest::Need(2), lead: 4 };
const RELEASE: Release = Release { at: Time::from_secs(8), processors: 3 };

const EXECUTED: Executed = Executed {
    job: JobId(7),
    queued: Time::from_secs(3),
    started: Time::from_secs(4),
    ended: Time::from_secs(64),
};
const HELD: Held = Held { job: JOB, queued: Time::from_secs(3), started: Some(Time::from_secs(4)) };

pub(crate) const VOID: Void = Void { job: JobId(7), epoch: 2 };
pub(crate) const REPORT: Report =
    Report { job: JobId(7), guardian: SiteId(1), epoch: 1, moves: 3, holder: SiteId(2), done: true };

/// One message of each kind.
pub(crate) fn messages() -> Vec<Message> {
    let offer = Offer { free: 5.into(), stand: true, releases: vec![RELEASE] };
    let waiting = WaitingJob::new(&JOB);
    let board = Board {
        revision: 5,
        whole: true,
        free: 3.into(),
        kept: Some(waiting),
        busy: vec![RELEASE],
        idle: vec![RELEASE],
        offered: vec![Listing { job: waiting, version: 1 }],
        withdrawn: vec![OFFER],
        seen: vec![OFFER],
    };
    vec![
        Message::Steal(StealMessage::Request { seq: 1, offer: offer.clone(), seen: 4 }),
        Message::Steal(StealMessage::NoWork { seq: 1, state: STATE }),
        Message::Steal(StealMessage::Grant {
            transfers: vec![TRANSFER],
            answers: Some(1),
            state: STATE,
            floor: 3,
        }),
        Message::HandOver(HandOverMessage::Reply { accepted: vec![5], declined: vec![6, 7] }),
        Message::Steal(StealMessage::Notice { state: QueueState { rest: Rest::Empty, ..STATE } }),
        Message::Steal(StealMessage::Seen { version: 9, keep: true, offer }),
        Message::Steal(StealMessage::Withdraw { version: 9 }),
        Message::HandOver(HandOverMessage::Route { transfers: vec![TRANSFER; 2], floor: 1 }),
        Message::HandOver(HandOverMessage::Recall { number: 5, floor: 3 }),
        Message::HandOver(HandOverMessage::Floor { floor: 8 }),
        Message::Pool(PoolMessage::Board { board: Box::new(board), epoch: EPOCH, ask: true }),
        Message::Pool(PoolMessage::Host { epoch: EPOCH }),
        Message::Pool(PoolMessage::Assign { offer: OFFER, to: SiteId(3), epoch: EPOCH }),
        Message::Pool(PoolMessage::Claim { offer: OFFER, claim: 4 }),
        Message::Pool(PoolMessage::Deny { offer: OFFER, claim: 4 }),
        Message::Pool(PoolMessage::Award {
            transfer: Box::new(TRANSFER),
            version: 1,
            claim: Some(4),
            floor: 3,
        }),
        Message::Balance(BalanceMessage::Refuse { seq: 3, load_report: LOAD_REPORT }),
        Message::Balance(BalanceMessage::Give {
            transfers: vec![TRANSFER],
            answers: None,
            load_report: LOAD_REPORT,
            floor: 3,
        }),
        Message::Balance(BalanceMessage::Watch { seq: 4, width: 2.into() }),
        Message::Balance(BalanceMessage::News { seq: 4, load_report: LOAD_REPORT }),
        Message::Balance(BalanceMessage::Gossip { load_reports: vec![LOAD_REPORT, LOAD_REPORT] }),
        Message::Balance(BalanceMessage::Request { seq: 3, free: 5.into() }),
        Message::Balance(BalanceMessage::Seen { seq: 4 }),
        Message::Membership(MembershipMessage::Heartbeat {
            incarnation: 1,
            leaving: false,
            first: 2,
            voids: vec![VOID],
            known: 1,
        }),
        Message::Membership(MembershipMessage::Reports { reports: vec![REPORT] }),
        Message::Membership(MembershipMessage::Noted { reports: vec![REPORT, REPORT] }),
        Message::Opaque(OpaqueMessage::Give { transfers: vec![TRANSFER], floor: 3 }),
        Message::Opaque(OpaqueMessage::Ended { jobs: vec![EXECUTED, EXECUTED] }),
        Message::Opaque(OpaqueMessage::Known { jobs: vec![JobId(7)] }),
        Message::Opaque(OpaqueMessage::Recall { job: JobId(7) }),
        Message::Opaque(OpaqueMessage::Refused { job: JobId(7), started: Some(Time::from_secs(4)) }),
        Message::Opaque(OpaqueMessage::Anew { count: 2 }),
        Message::Opaque(OpaqueMessage::Have { count: 2, all: 1, jobs: vec![HELD] }),
    ]
}
