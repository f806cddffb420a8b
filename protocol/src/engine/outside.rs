//! A site where somebody else decides what starts: see [`crate::Peer::starts_outside`].

use std::sync::Arc;

use scheduler::{EventKind, Grid, JobId, Room, SiteId, Span, StrategySpec, Time};

use crate::fixtures::{job, started};
use crate::message::{BalanceMessage, Message};
use crate::{Input, Output, Peer, Terms};

/// The smaller of two sites, of 4 and 8 processors.
fn site(strategy: &str) -> Peer {
    let grid = Arc::new(Grid::of_sizes(&[4, 8]).unwrap());
    let mut terms = Terms::new(grid, strategy.parse::<StrategySpec>().unwrap().strategy);
    terms.options.retry = Some(Span::from_secs(5));
    let mut peer = Peer::new(terms.at_rank(0));
    peer.starts_outside();
    peer
}

fn tell(peer: &mut Peer, input: Input) -> Vec<Output> {
    peer.handle(Time::ZERO, input);
    let outputs = std::iter::from_fn(|| peer.poll_output()).collect();
    peer.check_invariants();
    outputs
}

#[test]
fn what_waits_starts_when_somebody_else_starts_it_and_in_no_order_of_ours() {
    for strategy in
        ["local", "st:50", "st-greedy:50", "common-pool", "steal:loaded,select=easy", "steal:random"]
    {
        let mut peer = site(strategy);
        for (id, processors) in [(1, 2), (2, 2), (3, 1)] {
            tell(&mut peer, Input::Submitted(job(id, processors)));
        }
        assert_eq!(started(&tell(&mut peer, Input::Turn)), [0_u64; 0], "{strategy}");
        assert_eq!(started(&tell(&mut peer, Input::Begun(JobId(3)))), [3], "{strategy}");
        assert_eq!(started(&tell(&mut peer, Input::Turn)), [0_u64; 0], "{strategy}");
        assert_eq!((peer.free(), peer.waiting()), (3, 2), "{strategy}");
        assert_eq!(started(&tell(&mut peer, Input::Begun(JobId(1)))), [1], "{strategy}");
        tell(&mut peer, Input::Completed(JobId(3)));
        assert_eq!((peer.free(), peer.waiting()), (2, 1), "{strategy}");
    }
}

#[test]
fn jobs_of_others_leave_less_room_and_give_way_to_what_begins() {
    for strategy in ["local", "st:50", "steal:loaded"] {
        let mut peer = site(strategy);
        tell(&mut peer, Input::Submitted(job(1, 2)));
        tell(&mut peer, Input::Foreign(7));
        assert_eq!(peer.free(), 0, "{strategy}");
        // Nobody was right about the others, as the job has processors.
        assert_eq!(started(&tell(&mut peer, Input::Begun(JobId(1)))), [1], "{strategy}");
        assert_eq!(peer.free(), 0, "{strategy}");
        tell(&mut peer, Input::Foreign(1));
        assert_eq!(peer.free(), 1, "{strategy}");
        tell(&mut peer, Input::Completed(JobId(1)));
        assert_eq!(peer.free(), 3, "{strategy}");
    }
}

#[test]
fn a_granted_job_that_has_begun_is_the_sites_again_and_its_number_is_not_used_twice() {
    let mut peer = site("steal:loaded");
    for id in 1..=4 {
        tell(&mut peer, Input::Submitted(job(id, 2)));
    }
    tell(&mut peer, Input::Turn);
    let free = Room::Processors(2);
    let ask = |seq, free| Message::from(BalanceMessage::Request { seq, free });
    let given = |outputs: &[Output]| {
        let sent = outputs.iter().find_map(|output| match output {
            Output::Send { message, .. } => Some(message.clone()),
            _ => None,
        });
        sent.unwrap()
    };
    let message = given(&tell(&mut peer, Input::Message { from: SiteId(2), message: ask(1, free.clone()) }));
    let [transfer] = message.transfers() else { panic!("{message:?}") };
    let (number, granted) = (transfer.number, transfer.job.id);
    assert!(!peer.has(granted));

    let outputs = tell(&mut peer, Input::Kept { to: SiteId(2), number });
    let returns = |output: &Output| matches!(output, Output::Event(EventKind::Returned { .. }));
    assert!(outputs.iter().any(returns), "{outputs:?}");
    assert_eq!(started(&tell(&mut peer, Input::Begun(granted))), [granted.0]);
    assert!(peer.has(granted) && peer.ledger().is_settled());

    // What is left of the message answers the request, and the next transfer has the next number.
    let rest = message.without(number).unwrap();
    assert!(
        rest.transfers().is_empty()
            && matches!(rest, Message::Balance(BalanceMessage::Give { answers: Some(1), .. }))
    );
    let next = given(&tell(&mut peer, Input::Message { from: SiteId(2), message: ask(2, free) }));
    assert_eq!(next.transfers()[0].number, number + 1);
}

#[test]
fn nothing_is_given_away_that_is_about_to_start() {
    let mut peer = site("steal:loaded");
    tell(&mut peer, Input::Submitted(job(1, 2)));
    tell(&mut peer, Input::Turn);
    let ask = BalanceMessage::Request { seq: 1, free: Room::Processors(8) };
    let outputs = tell(&mut peer, Input::Message { from: SiteId(2), message: ask.into() });
    let refuses = |output: &Output| {
        matches!(output, Output::Send { message: Message::Balance(BalanceMessage::Refuse { .. }), .. })
    };
    assert!(outputs.iter().any(refuses), "{outputs:?}");
}

#[test]
fn a_thief_has_an_answer_without_a_job_and_asks_on() {
    let grid = Arc::new(Grid::of_sizes(&[4, 8]).unwrap());
    for strategy in ["steal:loaded", "st:50"] {
        let terms = Terms::new(Arc::clone(&grid), strategy.parse::<StrategySpec>().unwrap().strategy);
        let (mut victim, mut thief) = (Peer::new(terms.at_rank(0)), Peer::new(terms.at_rank(1)));
        victim.starts_outside();
        for id in 1..=4 {
            tell(&mut victim, Input::Submitted(job(id, 2)));
        }
        let sent = |outputs: Vec<Output>| -> Vec<Message> {
            let message = |output| match output {
                Output::Send { message, .. } => Some(message),
                _ => None,
            };
            outputs.into_iter().filter_map(message).collect()
        };
        let mut to_thief = sent(tell(&mut victim, Input::Turn));
        let mut to_victim = sent(tell(&mut thief, Input::Turn));
        let mut kept = 0;
        // The first job that is granted has begun; the thief hears of that and gets another.
        for _ in 0..8 {
            for message in std::mem::take(&mut to_thief) {
                let message = match message.transfers() {
                    [first, ..] if kept == 0 => {
                        let (number, granted) = (first.number, first.job.id);
                        kept = granted.0;
                        tell(&mut victim, Input::Kept { to: SiteId(2), number });
                        tell(&mut victim, Input::Begun(granted));
                        message.without(number)
                    }
                    _ => Some(message),
                };
                if let Some(message) = message {
                    to_victim.extend(sent(tell(&mut thief, Input::Message { from: SiteId(1), message })));
                    to_victim.extend(sent(tell(&mut thief, Input::Turn)));
                }
            }
            for message in std::mem::take(&mut to_victim) {
                to_thief.extend(sent(tell(&mut victim, Input::Message { from: SiteId(2), message })));
                to_thief.extend(sent(tell(&mut victim, Input::Turn)));
            }
        }
        let running: Vec<u64> = thief.running().map(|job| job.0).collect();
        assert!(kept > 0 && !running.is_empty() && !running.contains(&kept), "{strategy}: {running:?}");
        assert!(victim.ledger().is_settled(), "{strategy}");
    }
}
