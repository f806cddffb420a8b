//! Sites that leave: what becomes of their jobs, and of those who count on them.

use protocol::message::{BalanceMessage, HandOverMessage, LoadReport, MembershipMessage, PoolMessage};
use protocol::{Input, Message, Presence};
use scheduler::event::{GrantCause, MessageKind};
use scheduler::{EventKind, JobId, SiteId, Span, Time};

use super::driver::{World, job};

/// News of a site that leaves overtakes its leaving, and whoever hears it asks a site that is not there any more.
#[test]
fn nobody_waits_for_ever_for_a_site_that_has_left() {
    let mut world = World::new(&[4, 8], "steal:random");
    world.run_until(15);
    world.tell(0, Input::Leave);
    world.run_until(20);
    assert_eq!(world.peers[1].as_ref().unwrap().presence(SiteId(1)), Presence::Leaving);
    world.crash(0);
    let load_report =
        LoadReport { site: SiteId(1), version: 9, age: Span::ZERO, work: 60, narrowest: 1, idle: 0 };
    let message = Message::Balance(BalanceMessage::News { seq: 1, load_report });
    world.tell(1, Input::Message { from: SiteId(1), message });
    world.tell(1, Input::Turn);
    assert!(!world.peers[1].as_ref().unwrap().is_quiet(), "it asks");
    world.run_until(300);
    assert_eq!(world.peers[1].as_ref().unwrap().presence(SiteId(1)), Presence::Gone);
    assert!(world.peers[1].as_ref().unwrap().is_quiet(), "and does not wait for ever");
}

#[test]
fn a_site_that_leaves_gives_its_jobs_away_and_finishes_what_runs() {
    for strategy in ["st:50", "local", "common-pool", "pool:easy", "steal:random", "st-greedy:50"] {
        let mut world = World::new(&[4, 4, 8], strategy);
        for id in 1..=5 {
            world.submit(1, job(id, 3, 40));
        }
        world.tell(1, Input::Leave);
        world.tell(1, Input::Turn);
        world.run_until(600);
        for id in 1..=5 {
            assert_eq!(world.completions(id).len(), 1, "{strategy}: job {id}");
        }
        assert!(world.peers[1].as_ref().unwrap().has_left(), "{strategy}");
        assert_eq!(world.peers[0].as_ref().unwrap().presence(SiteId(2)), Presence::Leaving, "{strategy}");
    }
}

/// A host that has not heard of it may assign a job of a site that leaves to that site.
#[test]
fn a_site_that_leaves_does_not_start_what_it_gives_away() {
    let mut world = World::new(&[4, 4, 8], "pool:easy");
    for id in 1..=3 {
        world.submit(1, job(id, 4, 40));
    }
    let assigned = |world: &World| {
        world.under_way.iter().find_map(|(key, sent)| match sent {
            (from, 1, Message::Pool(PoolMessage::Assign { offer, epoch, .. })) => {
                Some((*key, *from, *offer, *epoch))
            }
            _ => None,
        })
    };
    let (key, from, offer, epoch) = (1..10)
        .find_map(|second| {
            world.run_until(second);
            assigned(&world)
        })
        .expect("the host assigns it to somebody");
    world.under_way.remove(&key);
    world.tell(1, Input::Leave);
    let message = Message::Pool(PoolMessage::Assign { offer, to: world.terms.grid.at_rank(1), epoch });
    world.tell(1, Input::Message { from: world.terms.grid.at_rank(from), message });
    world.tell(1, Input::Turn);
    world.run_until(600);
    assert_eq!(world.completions(1), [1]);
    for id in 2..=3 {
        assert!(matches!(world.completions(id)[..], [0 | 2]), "job {id}");
    }
    assert!(world.peers[1].as_ref().unwrap().has_left());
}

/// The host looks at its own board again while it has an offer that it has not published.
#[test]
fn a_host_that_leaves_decides_on_no_offer_that_it_took_back() {
    let mut world = World::new(&[4, 4, 8], "pool:easy");
    world.submit(2, job(1, 8, 29));
    world.submit(0, job(2, 8, 40));
    world.run_until(29);
    world.now = Time::from_secs(30);
    world.tell(0, Input::Submitted(job(3, 8, 40)));
    let before = world.events.len();
    world.tell(0, Input::Timeout);
    let said = &world.events[before..];
    let host = |event: &&(Time, usize, EventKind)| {
        matches!(event.2, EventKind::Sent { message: MessageKind::Host, .. })
    };
    assert_eq!(said.iter().filter(host).count(), 2, "it says that it is host");
    world.tell(0, Input::Leave);
    world.tell(0, Input::Turn);
    // Now there is room elsewhere.
    let is_board =
        |sent: &(usize, usize, Message)| matches!(sent, (2, 0, Message::Pool(PoolMessage::Board { .. })));
    let board = world.under_way.iter().find(|sent| is_board(sent.1)).map(|(key, _)| *key);
    let (_, _, message) = world.under_way.remove(&board.expect("the job has ended")).unwrap();
    world.tell(0, Input::Message { from: world.terms.grid.at_rank(2), message });
    world.tell(0, Input::Settle);
    world.run_until(900);
    for id in 2..=3 {
        assert_eq!(world.completions(id), [2], "job {id}");
    }
    assert!(world.peers[0].as_ref().unwrap().has_left());
}

#[test]
fn a_site_does_not_leave_before_its_answers_are_known() {
    let mut world = World::new(&[4, 8], "st:50");
    world.submit(0, job(1, 8, 10));
    world.run_until(1);
    world.under_way.retain(|_, sent| !matches!(sent.2, Message::HandOver(HandOverMessage::Reply { .. })));
    world.tell(1, Input::Leave);
    world.cut.insert(0);
    world.run_until(20);
    assert_eq!(world.completions(1), [1]);
    assert!(
        !world.peers[1].as_ref().unwrap().has_left(),
        "the other site would take the job over and run it again"
    );
    world.cut.clear();
    world.run_until(60);
    assert!(world.peers[1].as_ref().unwrap().has_left());
    assert!(world.disks[0].guarded_jobs.is_empty());
    // Nobody waits for sites that are gone.
    let mut world = World::new(&[4, 8], "st:50");
    world.submit(0, job(1, 8, 10));
    world.run_until(1);
    world.crash(0);
    world.tell(1, Input::Leave);
    world.run_until(300);
    assert!(world.peers[1].as_ref().unwrap().has_left());
}

#[test]
fn a_site_does_not_leave_before_its_take_overs_are_known() {
    let mut world = World::new(&[4, 8, 16], "st:50");
    world.crash(2);
    world.cut.insert(0);
    world.tell(1, Input::Adopt { job: job(1, 8, 10), epoch: 1 });
    world.tell(1, Input::Turn);
    world.run_until(5);
    world.tell(1, Input::Leave);
    world.run_until(30);
    assert_eq!(world.completions(1), [1]);
    assert!(!world.peers[1].as_ref().unwrap().has_left(), "site 1 was not told");
    world.cut.clear();
    world.run_until(60);
    assert!(!world.peers[1].as_ref().unwrap().has_left(), "site 3 may still be there");
    world.run_until(200);
    assert!(world.peers[1].as_ref().unwrap().has_left());
    assert_eq!(world.disks[0].voids.get(&JobId(1)), Some(&1));
}

/// Who has not heard that a site leaves asks it for room, and would be told of idle processors that it may not have: it gave
/// its jobs there and got them back without an end. Where messages take no time, at one instant.
#[test]
fn a_site_that_leaves_says_of_no_room() {
    let mut world = World::new(&[4, 4], "steal:loaded,mode=push");
    world.run_until(5);
    world.submit(1, job(1, 4, 500));
    world.tell(0, Input::Leave);
    world.submit(1, job(2, 4, 500));
    for second in 6..40 {
        world.under_way.retain(|_, sent| {
            sent.0 != 0 || !matches!(sent.2, Message::Membership(MembershipMessage::Heartbeat { .. }))
        });
        world.run_until(second);
    }
    assert_eq!(
        world.peers[1].as_ref().unwrap().presence(SiteId(1)),
        Presence::Here,
        "it has not heard of it"
    );
    let is_push = |kind: &EventKind| matches!(kind, EventKind::Granted { cause: GrantCause::Push, .. });
    let pushes = world.events.iter().filter(|event| is_push(&event.2)).count();
    assert_eq!(pushes, 1, "it is turned down once");
    assert_eq!(world.peers[1].as_ref().unwrap().waiting(), 1);
}
