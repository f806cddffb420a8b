//! Messages as bytes: a version byte, then bincode with fixed-width integers.
//!
//! Bytes come from strangers. A frame is read whole and its length checked before decoding, trailing bytes are
//! refused, and no type on the wire is recursive or has elements of size zero. Counts are checked afterwards.

use bincode::Options;

use crate::message::Message;

/// First byte of every frame.
pub const WIRE_VERSION: u8 = 5;

/// Longest frame accepted or made, in bytes.
pub const FRAME_MAX: usize = 256 * 1024;

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Nothing at all.
    #[error("the frame is empty")]
    Empty,
    /// Longer than [`FRAME_MAX`].
    #[error("the frame has {0} bytes, more than {FRAME_MAX}")]
    TooLong(usize),
    /// Another version of the protocol.
    #[error(
        "the frame has wire version {0}, this node speaks {WIRE_VERSION}; run the same release everywhere"
    )]
    Version(u8),
    /// Not a message of this version.
    #[error("the frame does not decode: {0}")]
    Malformed(String),
    /// A list longer than the protocol allows.
    #[error("a list in the frame has {0} entries, more than the protocol allows")]
    TooMany(usize),
}

fn options() -> impl Options {
    bincode::DefaultOptions::new()
        .with_fixint_encoding()
        .with_little_endian()
        .with_limit(FRAME_MAX as u64)
        .reject_trailing_bytes()
}

/// The bytes of a message.
///
/// # Panics
/// If the message is longer than [`FRAME_MAX`], which the limits of the peer exclude.
pub fn encode(message: &Message) -> Vec<u8> {
    let mut frame = vec![WIRE_VERSION];
    options().serialize_into(&mut frame, message).expect("limits of the peer keep messages short");
    frame
}

/// The message in a frame.
///
/// # Errors
/// If the bytes are not exactly one message of this version within the limits.
pub fn decode(frame: &[u8]) -> Result<Message, CodecError> {
    if frame.len() > FRAME_MAX {
        return Err(CodecError::TooLong(frame.len()));
    }
    let (&version, body) = frame.split_first().ok_or(CodecError::Empty)?;
    if version != WIRE_VERSION {
        return Err(CodecError::Version(version));
    }
    let message: Message =
        options().deserialize(body).map_err(|error| CodecError::Malformed(error.to_string()))?;
    let (count, limit) = message.longest();
    if count > limit { Err(CodecError::TooMany(count)) } else { Ok(message) }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

    use super::*;
    use crate::gang::Attempt;
    use crate::message::{LOAD_REPORTS_MAX, RELEASES_MAX, REPLIES_MAX, TRANSFERS_MAX};
    use crate::pool::board::BOARD_MAX;
    use scheduler::exchange::WaitingJob;

    use crate::message::{
        BalanceMessage, Board, BrokerMessage, CHANGES_MAX, Change, Epoch, Executed, HandOverMessage, Listing,
        LoadReport, MembershipMessage, Offer, OfferId, OpaqueMessage, PoolMessage, QueueState, Release,
        Report, Rest, StealMessage, Transfer, Void,
    };

    fn transfer(number: u64) -> Transfer {
        Transfer {
            number,
            job: JobSpec {
                id: JobId(7),
                submit: Time::from_secs(3),
                processors: 2,
                requested: Span::from_secs(60),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            },
            bounces: 1,
            hops: 2,
            epoch: 0,
            moves: 3,
            guardian: Some(SiteId(2)),
        }
    }

    const LOAD_REPORT: LoadReport = LoadReport {
        site: SiteId(3),
        version: 6,
        age: Span::from_micros(7),
        work: 500,
        narrowest: 2,
        idle: 1,
    };

    fn every_kind() -> Vec<Message> {
        let state = QueueState { version: 9, rest: Rest::Need(2), lead: 4 };
        let offer = Offer {
            free: 5.into(),
            stand: true,
            releases: vec![Release { at: Time::from_secs(8), processors: 3 }],
        };
        vec![
            Message::Steal(StealMessage::Request { seq: 1, offer: offer.clone(), seen: 4 }),
            Message::Steal(StealMessage::NoWork { seq: 1, state }),
            Message::Steal(StealMessage::Grant {
                transfers: vec![transfer(5)],
                answers: Some(1),
                state,
                floor: 3,
            }),
            Message::HandOver(HandOverMessage::Reply { accepted: vec![5], declined: vec![6, 7] }),
            Message::Steal(StealMessage::Notice { state: QueueState { rest: Rest::Empty, ..state } }),
            Message::Steal(StealMessage::Seen { version: 9, keep: true, offer }),
            Message::Steal(StealMessage::Withdraw { version: 9 }),
            Message::HandOver(HandOverMessage::Route { transfers: vec![transfer(1)], floor: 1 }),
            Message::HandOver(HandOverMessage::Recall { number: 5, floor: 3 }),
            Message::HandOver(HandOverMessage::Floor { floor: 8 }),
            Message::Pool(PoolMessage::Board { board: Box::new(board()), epoch: EPOCH, ask: true }),
            Message::Pool(PoolMessage::Host { epoch: EPOCH }),
            Message::Pool(PoolMessage::Assign { offer: OFFER, to: SiteId(3), epoch: EPOCH }),
            Message::Pool(PoolMessage::Claim { offer: OFFER, claim: 4 }),
            Message::Pool(PoolMessage::Deny { offer: OFFER, claim: 4 }),
            Message::Pool(PoolMessage::Award {
                transfer: Box::new(transfer(6)),
                version: 1,
                claim: Some(4),
                floor: 3,
            }),
            Message::Balance(BalanceMessage::Refuse { seq: 3, load_report: LOAD_REPORT }),
            Message::Balance(BalanceMessage::Give {
                transfers: vec![transfer(5)],
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
                leaving: true,
                first: 3,
                voids: vec![VOID],
                known: 2,
            }),
            Message::Membership(MembershipMessage::Reports { reports: vec![REPORT] }),
            Message::Membership(MembershipMessage::Noted { reports: vec![REPORT, REPORT] }),
            Message::Broker(BrokerMessage::State { epoch: 3, first: 4, changes: changes(), probe: 6 }),
            Message::Broker(BrokerMessage::Known { epoch: 3, next: 9 }),
            Message::Broker(BrokerMessage::Probe { probe: 6 }),
            Message::Broker(BrokerMessage::Anew { count: 1 }),
        ]
        .into_iter()
        .chain(of_parts().into_iter().map(Message::Broker))
        .collect()
    }

    const ATTEMPT: Attempt = Attempt { job: JobId(7), epoch: 2, number: 6 };

    fn of_parts() -> [BrokerMessage; 10] {
        let (attempt, job) = (ATTEMPT, ATTEMPT.job);
        [
            BrokerMessage::Prepare {
                attempt,
                floor: 6,
                part: Box::new(transfer(1).job),
                of: SiteId(3),
                hops: 1,
            },
            BrokerMessage::Commit { attempt, at: Time::from_micros(7) },
            BrokerMessage::Abort { attempt },
            BrokerMessage::Ready { attempt },
            BrokerMessage::Refused { attempt },
            BrokerMessage::Over { attempt, ended: true },
            BrokerMessage::Heard { attempt },
            BrokerMessage::Fetch { job },
            BrokerMessage::Missing { job },
            BrokerMessage::PreparePredicted {
                attempt,
                floor: 6,
                part: Box::new(transfer(1).job),
                of: SiteId(3),
                hops: 1,
                whole: 5,
                run_time: Span::from_micros(9),
            },
        ]
    }

    #[test]
    fn golden_bytes_of_jobs_in_parts() {
        let number = |number: u8| [number, 0, 0, 0, 0, 0, 0, 0];
        let attempt = [&number(7)[..], &[2, 0, 0, 0], &number(6)].concat(); // job, epoch, number
        let unknown = [255; 4];
        let part = [
            &number(7)[..],                     // job
            &[0xc0, 0xc6, 0x2d, 0, 0, 0, 0, 0], // submitted after 3 s
            &[2, 0, 0, 0],                      // processors
            &[0, 0x87, 0x93, 3, 0, 0, 0, 0],    // requested: 60 s
        ]
        .concat();
        let tails: [Vec<u8>; 10] = [
            [&number(6)[..], &part].concat(), // floor, the part as far as it has no labels
            number(7).to_vec(),
            Vec::new(),
            Vec::new(),
            Vec::new(),
            vec![1],
            Vec::new(),
            Vec::new(),
            Vec::new(),
            [&number(6)[..], &part].concat(),
        ];
        assert_eq!(Labels::UNKNOWN.user.to_le_bytes(), unknown);
        for ((message, tail), kind) in of_parts().into_iter().zip(tails).zip(4u8..) {
            let of = if matches!(kind, 11 | 12) { number(7).to_vec() } else { attempt.clone() };
            let bytes = [&[5, 5, 0, 0, 0, kind, 0, 0, 0], &of[..], &tail].concat();
            let encoded = encode(&Message::Broker(message.clone()));
            match message {
                BrokerMessage::Prepare { .. } => {
                    assert_eq!(encoded[..bytes.len()], bytes);
                    // The site that the job is known by, and how often it has moved.
                    assert_eq!(encoded[encoded.len() - 8..], [3, 0, 0, 0, 1, 0, 0, 0]);
                }
                BrokerMessage::PreparePredicted { .. } => {
                    assert_eq!(encoded[..bytes.len()], bytes);
                    // Behind them processors of the whole, and how long it is predicted to run.
                    let tail = [&[3, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0], &number(9)[..]].concat();
                    assert_eq!(encoded[encoded.len() - 20..], tail);
                }
                _ => assert_eq!(encoded, bytes, "{message:?}"),
            }
        }
    }

    fn changes() -> Vec<Change> {
        let (at, job) = (Time::from_micros(1), transfer(1).job);
        vec![
            Change::Joined { at, job },
            Change::Decided { at, started: vec![job.id] },
            Change::Ended { at, job: job.id },
            Change::Left { at, job: job.id },
            Change::Runs { at, job, since: at },
            Change::JoinedBefore { at, job, overtaker: JobId(8) },
            Change::EndedAfter { at, job: job.id, run_time: Span::from_secs(9) },
            Change::Asked { at, count: 3 },
            Change::PartRuns { at, part: job, since: at, whole: 5 },
            Change::PartEnded { at, job: job.id },
        ]
    }

    const VOID: Void = Void { job: JobId(7), epoch: 2 };
    const REPORT: Report =
        Report { job: JobId(7), guardian: SiteId(1), epoch: 1, moves: 3, holder: SiteId(2), done: true };

    const EPOCH: Epoch = Epoch { counter: 2, site: SiteId(3) };
    const OFFER: OfferId = OfferId { job: JobId(7), version: 1 };

    fn board() -> Board {
        let job = WaitingJob::new(&transfer(1).job);
        Board {
            revision: 5,
            whole: true,
            free: 3.into(),
            kept: Some(job),
            busy: vec![Release { at: Time::from_secs(8), processors: 3 }],
            idle: vec![Release { at: Time::from_secs(9), processors: 1 }],
            offered: vec![Listing { job, version: 1 }],
            withdrawn: vec![OFFER],
            seen: vec![OFFER],
        }
    }

    #[test]
    fn messages_round_trip() {
        for message in every_kind() {
            assert_eq!(decode(&encode(&message)), Ok(message));
        }
    }

    #[test]
    fn golden_bytes_of_version_5() {
        let request = Message::Steal(StealMessage::Request {
            seq: 2,
            offer: Offer { free: 3.into(), stand: true, releases: Vec::new() },
            seen: 1,
        });
        assert_eq!(
            encode(&request),
            [
                5, // version
                2, 0, 0, 0, 0, 0, 0, 0, // part, kind
                2, 0, 0, 0, 0, 0, 0, 0, // seq
                3, 0, 0, 0, 1, // free, stand
                0, 0, 0, 0, 0, 0, 0, 0, // no releases
                1, 0, 0, 0, 0, 0, 0, 0, // seen
            ]
        );
        assert_eq!(
            encode(&Message::HandOver(HandOverMessage::Floor { floor: 8 })),
            [5, 0, 0, 0, 0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn golden_bytes_of_the_global_queue() {
        let assign = Message::Pool(PoolMessage::Assign { offer: OFFER, to: SiteId(1), epoch: EPOCH });
        assert_eq!(
            encode(&assign),
            [
                5, 3, 0, 0, 0, 2, 0, 0, 0, // version, part, kind
                7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, // job, version of the offer
                1, 0, 0, 0, // to
                2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, // epoch: counter, site
            ]
        );
        let withdrawn = Board { revision: 5, free: 3.into(), withdrawn: vec![OFFER], ..Board::default() };
        assert_eq!(
            encode(&Message::Pool(PoolMessage::Board {
                board: Box::new(withdrawn),
                epoch: EPOCH,
                ask: false
            })),
            [
                5, 3, 0, 0, 0, 0, 0, 0, 0, // version, part, kind
                5, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, // revision, whole, free, nothing kept
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // nothing busy, nothing idle
                0, 0, 0, 0, 0, 0, 0, 0, // nothing offered
                1, 0, 0, 0, 0, 0, 0, 0, // one withdrawn
                7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, // job, version of the offer
                0, 0, 0, 0, 0, 0, 0, 0, // nothing seen
                2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, // epoch
                0, // not asked
            ]
        );
    }

    #[test]
    fn golden_bytes_of_the_baselines() {
        let load_report = [
            3, 0, 0, 0, // site
            6, 0, 0, 0, 0, 0, 0, 0, // version
            7, 0, 0, 0, 0, 0, 0, 0, // age
            244, 1, 0, 0, 0, 0, 0, 0, // work
            2, 0, 0, 0, 1, 0, 0, 0, // narrowest, idle
        ];
        let head = |kind: u8, rest: &[u8]| [&[5, 4, 0, 0, 0, kind, 0, 0, 0], rest].concat();
        let seq = [4, 0, 0, 0, 0, 0, 0, 0];
        let refuse = head(1, &[&seq[..], &load_report[..]].concat());
        assert_eq!(
            encode(&Message::Balance(BalanceMessage::Refuse { seq: 4, load_report: LOAD_REPORT })),
            refuse
        );
        let give = Message::Balance(BalanceMessage::Give {
            transfers: Vec::new(),
            answers: None,
            load_report: LOAD_REPORT,
            floor: 4,
        });
        // No transfers, answers nothing, the load report, the floor.
        assert_eq!(encode(&give), head(2, &[&[0; 8][..], &[0][..], &load_report[..], &seq[..]].concat()));
        let watch = head(3, &[&seq[..], &[2, 0, 0, 0][..]].concat());
        assert_eq!(encode(&Message::Balance(BalanceMessage::Watch { seq: 4, width: 2.into() })), watch);
        let news = head(4, &[&seq[..], &load_report[..]].concat());
        assert_eq!(
            encode(&Message::Balance(BalanceMessage::News { seq: 4, load_report: LOAD_REPORT })),
            news
        );
        let gossip = head(5, &[&[1, 0, 0, 0, 0, 0, 0, 0][..], &load_report[..]].concat());
        assert_eq!(
            encode(&Message::Balance(BalanceMessage::Gossip { load_reports: vec![LOAD_REPORT] })),
            gossip
        );
    }

    #[test]
    fn golden_bytes_of_brokers() {
        let head = |kind: u8, rest: &[u8]| [&[5, 5, 0, 0, 0, kind, 0, 0, 0], rest].concat();
        let one = [1, 0, 0, 0, 0, 0, 0, 0];
        let six = [6, 0, 0, 0, 0, 0, 0, 0];
        let seven = [7, 0, 0, 0, 0, 0, 0, 0];
        let at = Time::from_micros(1);
        let changes = vec![
            Change::Decided { at, started: vec![JobId(7)] },
            Change::Ended { at, job: JobId(7) },
            Change::Left { at, job: JobId(7) },
        ];
        let state = [
            &one[..], // epoch
            &[0; 8],  // first
            &[3, 0, 0, 0, 0, 0, 0, 0],
            &[&[1, 0, 0, 0][..], &one, &one, &seven].concat(), // decided: at, one started
            &[&[2, 0, 0, 0][..], &one, &seven].concat(),
            &[&[3, 0, 0, 0][..], &one, &seven].concat(),
            &six, // probe
        ];
        let message = Message::Broker(BrokerMessage::State { epoch: 1, first: 0, changes, probe: 6 });
        assert_eq!(encode(&message), head(0, &state.concat()));
        let known = Message::Broker(BrokerMessage::Known { epoch: 1, next: 6 });
        assert_eq!(encode(&known), head(1, &[one, six].concat()));
        assert_eq!(encode(&Message::Broker(BrokerMessage::Probe { probe: 6 })), head(2, &six));
        assert_eq!(encode(&Message::Broker(BrokerMessage::Anew { count: 1 })), head(3, &one));
    }

    #[test]
    fn golden_bytes_of_brokers_before_opaque_sites() {
        let head = |kind: u8, rest: &[u8]| [&[5, 6, 0, 0, 0, kind, 0, 0, 0], rest].concat();
        let number = |number: u8| [number, 0, 0, 0, 0, 0, 0, 0];
        let one = number(1);
        let give = OpaqueMessage::Give { transfers: Vec::new(), floor: 6 };
        let [queued, started, ended] = [1, 2, 3].map(Time::from_micros);
        let executed = Executed { job: JobId(7), queued, started, ended };
        let ended = [one, number(7), one, number(2), number(3)].concat();
        for (message, bytes) in [
            (give, head(0, &[[0; 8], number(6)].concat())),
            (OpaqueMessage::Ended { jobs: vec![executed] }, head(1, &ended)),
            (OpaqueMessage::Known { jobs: vec![JobId(7)] }, head(2, &[one, number(7)].concat())),
            (OpaqueMessage::Recall { job: JobId(7) }, head(3, &number(7))),
            (
                OpaqueMessage::Refused { job: JobId(7), started: Some(started) },
                head(4, &[&number(7)[..], &[1], &number(2)].concat()),
            ),
            (
                OpaqueMessage::Refused { job: JobId(7), started: None },
                head(4, &[&number(7)[..], &[0]].concat()),
            ),
            (OpaqueMessage::Anew { count: 6 }, head(5, &number(6))),
            (
                OpaqueMessage::Have { count: 6, all: 2, jobs: Vec::new() },
                head(6, &[&number(6)[..], &[2, 0, 0, 0], &[0; 8]].concat()),
            ),
        ] {
            assert_eq!(encode(&Message::Opaque(message)), bytes);
        }
    }

    #[test]
    fn golden_bytes_of_the_membership() {
        let heartbeat = Message::Membership(MembershipMessage::Heartbeat {
            incarnation: 1,
            leaving: true,
            first: 3,
            voids: vec![VOID],
            known: 2,
        });
        assert_eq!(
            encode(&heartbeat),
            [
                5, 1, 0, 0, 0, 0, 0, 0, 0, // version, part, kind
                1, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0, // incarnation, leaving, first
                1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, // one job, its epoch
                2, 0, 0, 0, 0, 0, 0, 0, // known
            ]
        );
        let report = [
            1, 0, 0, 0, 0, 0, 0, 0, // one
            7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, // job, guardian
            1, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, // epoch, moves, holder, done
        ];
        let head = |kind: u8| [&[5, 1, 0, 0, 0, kind, 0, 0, 0][..], &report[..]].concat();
        assert_eq!(
            encode(&Message::Membership(MembershipMessage::Reports { reports: vec![REPORT] })),
            head(1)
        );
        assert_eq!(encode(&Message::Membership(MembershipMessage::Noted { reports: vec![REPORT] })), head(2));
    }

    #[test]
    fn hostile_frames_are_refused() {
        assert_eq!(decode(&[]), Err(CodecError::Empty));
        assert_eq!(decode(&[1, 0]), Err(CodecError::Version(1)));
        assert_eq!(decode(&vec![WIRE_VERSION; FRAME_MAX + 1]), Err(CodecError::TooLong(FRAME_MAX + 1)));
        let mut trailing = encode(&Message::HandOver(HandOverMessage::Floor { floor: 8 }));
        trailing.push(0);
        assert!(matches!(decode(&trailing), Err(CodecError::Malformed(_))));
        // A list that claims 2^40 entries in a short frame.
        let mut long = vec![WIRE_VERSION, 0, 0, 0, 0, 0, 0, 0, 0];
        long.extend((1u64 << 40).to_le_bytes());
        assert!(matches!(decode(&long), Err(CodecError::Malformed(_))));
        let many = Message::HandOver(HandOverMessage::Reply {
            accepted: vec![1; REPLIES_MAX + 1],
            declined: Vec::new(),
        });
        assert_eq!(decode(&encode(&many)), Err(CodecError::TooMany(REPLIES_MAX + 1)));
        let gossip = Message::Balance(BalanceMessage::Gossip {
            load_reports: vec![LOAD_REPORT; LOAD_REPORTS_MAX + 1],
        });
        assert_eq!(decode(&encode(&gossip)), Err(CodecError::TooMany(LOAD_REPORTS_MAX + 1)));
        // What a decision started counts, too: lists in a list.
        let decided = Change::Decided { at: Time::ZERO, started: vec![JobId(1); CHANGES_MAX / 2] };
        let changes = vec![decided; 2];
        let state = Message::Broker(BrokerMessage::State { epoch: 1, first: 0, changes, probe: 0 });
        assert_eq!(decode(&encode(&state)), Err(CodecError::TooMany(CHANGES_MAX + 2)));
    }

    #[test]
    fn the_largest_legal_messages_fit_a_frame() {
        let transfers = vec![transfer(1); TRANSFERS_MAX];
        let state = QueueState { version: 9, rest: Rest::More, lead: 4 };
        assert!(
            encode(&Message::Steal(StealMessage::Grant { transfers, answers: None, state, floor: 1 })).len()
                < FRAME_MAX
        );
        let releases = vec![Release { at: Time::ZERO, processors: 1 }; RELEASES_MAX];
        let offer = Offer { free: 1.into(), stand: false, releases };
        assert!(encode(&Message::Steal(StealMessage::Request { seq: 1, offer, seen: 0 })).len() < FRAME_MAX);
        let one = board();
        let board = Board {
            busy: vec![one.busy[0]; BOARD_MAX],
            idle: vec![one.idle[0]; BOARD_MAX],
            offered: vec![one.offered[0]; BOARD_MAX],
            withdrawn: vec![OFFER; BOARD_MAX],
            seen: vec![OFFER; BOARD_MAX],
            ..one
        };
        assert!(
            encode(&Message::Pool(PoolMessage::Board { board: Box::new(board), epoch: EPOCH, ask: true }))
                .len()
                < FRAME_MAX
        );
    }
}
