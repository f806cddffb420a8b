//! Sites that fall silent, come back, leave: who takes which job over, and what the others do meanwhile.

mod driver;
mod leaving;

use std::collections::BTreeMap;

use protocol::membership::operator::adoptions;
use protocol::membership::{Report, next_epoch};
use protocol::message::{HandOverMessage, MembershipMessage, PoolMessage, Transfer, Void};
use protocol::{Input, Message, Presence};
use scheduler::{EventKind, JobId, JobSpec, SiteId, Time};

use driver::{World, job};

#[test]
fn the_home_takes_over_what_a_dead_thief_held() {
    let mut world = World::new(&[4, 8], "st:50");
    world.submit(0, job(1, 4, 50));
    world.submit(0, job(2, 3, 60));
    world.run_until(20);
    assert_eq!(world.starts(2), [1], "the larger site has stolen it");
    world.crash(1);
    world.run_until(60);
    assert_eq!(world.peers[0].as_ref().unwrap().presence(SiteId(2)), Presence::Suspected);
    assert_eq!(world.starts(2), [1], "suspicion alone takes nothing over");
    world.run_until(200);
    assert_eq!(world.peers[0].as_ref().unwrap().presence(SiteId(2)), Presence::Gone);
    assert!(world.any(|kind| matches!(kind, EventKind::TookOver { holder: SiteId(2), epoch: 1, .. })));
    assert_eq!(world.starts(2), [1, 0]);
    assert_eq!(world.completions(2), [0]);
    // The dead one comes back: it had been executing the job, and must not again.
    world.restart(1);
    world.run_until(400);
    assert_eq!(world.starts(2), [1, 0]);
    assert!(world.any(|kind| matches!(kind, EventKind::Superseded { started: false, .. })));
    assert!(world.peers.iter().flatten().all(|peer| peer.waiting() == 0 && peer.is_quiet()));
    assert_eq!(world.peers[0].as_ref().unwrap().presence(SiteId(2)), Presence::Here);
}

#[test]
fn a_site_without_its_journal_is_another_one_for_all() {
    for strategy in ["st:50", "steal:random"] {
        let mut world = World::new(&[4, 8], strategy);
        world.submit(0, job(1, 4, 50));
        world.submit(0, job(2, 3, 60));
        world.run_until(20);
        assert_eq!(world.starts(2), [1], "{strategy}: the larger site has it");
        // Long before anybody could miss it, and twice, with a grant on its way.
        world.come_back_empty(1, 1);
        world.run_until(21);
        world.come_back_empty(1, 2);
        world.run_until(200);
        assert_eq!(world.starts(2).len(), 2, "{strategy}: it runs again, under another epoch");
        assert_eq!(world.completions(2).len(), 1, "{strategy}");
        assert!(world.any(|kind| matches!(kind, EventKind::TookOver { holder: SiteId(2), epoch: 1, .. })));
        // Nobody refuses the site, and it refuses nobody.
        for id in 3..=8 {
            world.submit(0, job(id, 3, 30));
        }
        world.run_until(400);
        for id in 3..=8 {
            assert_eq!(world.completions(id).len(), 1, "{strategy}: job {id}");
        }
        assert!((3..=8).any(|id| world.completions(id) == [1]), "{strategy}: it takes jobs as ever");
        assert!(
            world.disks.iter().all(|disk| disk.jobs.is_empty() && disk.ledger.is_settled()),
            "{strategy}"
        );
        let settled = Time::from_secs(200);
        let is_refused = |(at, _, kind): &&(Time, usize, EventKind)| {
            *at > settled && matches!(kind, EventKind::Ignored { .. })
        };
        assert_eq!(world.events.iter().find(is_refused), None, "{strategy}");
        // It goes on with the new journal, as any site does.
        world.crash(1);
        world.restart(1);
        world.submit(0, job(9, 4, 30));
        world.submit(0, job(10, 4, 30));
        world.run_until(600);
        assert_eq!(world.completions(9).len() + world.completions(10).len(), 2, "{strategy}");
    }
}

#[test]
fn a_site_without_its_journal_asks_for_what_waits_elsewhere() {
    let mut world = World::new(&[4, 8], "common-pool");
    for id in 1..=3 {
        world.submit(0, job(id, 8, 30));
    }
    world.run_until(10);
    assert_eq!(world.starts(1), [1], "two wait in the pool, for the only site that is wide enough");
    world.come_back_empty(1, 1);
    world.run_until(400);
    for id in 1..=3 {
        assert_eq!(world.completions(id), [1], "job {id}");
    }
}

/// A thief has passed its job on, and both the thief and the guardian lose their journals: whoever sent the job to a
/// site that is gone asks a guardian that remembers nothing.
#[test]
fn a_guardian_without_its_journal_does_not_say_that_a_job_has_ended() {
    let mut world = World::new(&[4, 8], "st:50");
    let guardian = SiteId(1);
    world.come_back_empty(0, 1);
    world.run_until(5);
    let report = Report { job: JobId(7), guardian, epoch: 0, moves: 1, holder: SiteId(2), done: false };
    world.under_way.clear();
    let message = Message::Membership(MembershipMessage::Reports { reports: vec![report] });
    world.tell(0, Input::Message { from: SiteId(2), message });
    let noted = world.under_way.values().find_map(|sent| match sent {
        (0, 1, Message::Membership(MembershipMessage::Noted { reports })) => Some(reports.clone()),
        _ => None,
    });
    assert_eq!(noted, Some(vec![report]), "it notes that, and says nothing of an end");
}

#[test]
fn a_thief_that_was_only_cut_off_runs_its_job_to_the_end_and_says_so() {
    let mut world = World::new(&[4, 8], "st:50");
    world.submit(0, job(1, 4, 50));
    world.submit(0, job(2, 3, 300));
    world.run_until(20);
    world.cut.insert(1);
    world.run_until(150);
    assert_eq!(world.starts(2), [1, 0], "the lease is over: it may run twice");
    world.cut.clear();
    world.run_until(600);
    assert!(world.any(|kind| matches!(kind, EventKind::Superseded { started: true, .. })));
    assert_eq!(world.completions(2), [1, 0], "both ran; the report says so");
    assert!(world.disks.iter().all(|disk| disk.jobs.is_empty() && disk.ledger.is_settled()));
}

#[test]
fn a_short_silence_takes_nothing_over_and_the_end_is_told() {
    let mut world = World::new(&[4, 8], "st:50");
    world.submit(0, job(1, 4, 50));
    world.submit(0, job(2, 3, 60));
    world.run_until(20);
    assert_eq!(world.disks[0].guarded_jobs.len(), 1, "the home knows who has its job");
    world.cut.insert(1);
    world.run_until(100);
    assert_eq!(world.completions(2), [1]);
    assert_eq!(world.disks[1].reports.len(), 1, "nobody could be told yet");
    world.cut.clear();
    world.run_until(150);
    assert!(world.disks[0].guarded_jobs.is_empty() && world.disks[1].reports.is_empty());
    assert_eq!(world.starts(2), [1]);
    assert!(!world.any(|kind| matches!(kind, EventKind::TookOver { .. })));
}

#[test]
fn thieves_turn_to_the_next_site_when_their_victim_is_silent() {
    let mut world = World::new(&[2, 4, 8], "st:50");
    // The middle site is down before it can say that it is empty; the smallest has work.
    world.crash(1);
    world.run_until(50);
    world.submit(0, job(1, 2, 500));
    world.submit(0, job(2, 2, 10));
    world.run_until(100);
    assert_eq!(world.starts(2), [2]);
}

#[test]
fn jobs_of_a_gone_home_go_to_the_next_larger_site() {
    let mut world = World::new(&[4, 8, 16], "st:50");
    world.crash(1);
    world.run_until(150);
    world.submit(0, job(1, 8, 10));
    world.submit(0, job(2, 16, 10));
    world.run_until(200);
    assert_eq!(world.starts(1), [2], "its home is gone");
    world.crash(2);
    world.run_until(400);
    world.submit(0, job(3, 6, 10));
    assert!(world.any(|kind| matches!(kind, EventKind::Orphaned { job: JobId(3), .. })));
    world.run_until(450);
    assert_eq!(world.starts(3), [0usize; 0], "nobody who is there is wide enough");
    world.restart(1);
    world.run_until(500);
    assert_eq!(world.starts(3), [1], "it waited and was not dropped");
}

/// A liar says that a job was taken over before it is submitted, and then sends one of its own making by that number.
#[test]
fn a_job_that_was_said_to_be_taken_over_before_it_came_is_here_once() {
    for strategy in ["st:50", "local", "pool:easy", "steal:random", "st-greedy:50"] {
        let mut world = World::new(&[4, 8], strategy);
        let liar = world.terms.grid.at_rank(0);
        let voids = vec![Void { job: JobId(7), epoch: 5 }];
        let message = Message::Membership(MembershipMessage::Heartbeat {
            incarnation: 0,
            leaving: false,
            first: 0,
            voids,
            known: 0,
        });
        world.tell(1, Input::Message { from: liar, message });
        world.tell(1, Input::Submitted(JobSpec { origin: SiteId(2), ..job(7, 6, 40) }));
        for number in [1, 2] {
            let mut transfers = vec![Transfer {
                number,
                job: job(7, 5, 40),
                bounces: 0,
                hops: 1,
                epoch: 5,
                moves: 1,
                guardian: None,
            }];
            let message = if strategy.starts_with("pool") {
                Message::Pool(PoolMessage::Award {
                    transfer: Box::new(transfers.remove(0)),
                    version: 1,
                    claim: None,
                    floor: 1,
                })
            } else {
                Message::HandOver(HandOverMessage::Route { transfers, floor: 1 })
            };
            world.tell(1, Input::Message { from: liar, message });
        }
        assert_eq!(world.peers[1].as_ref().unwrap().waiting(), 1, "{strategy}");
        world.tell(1, Input::Turn);
        world.run_until(300);
        assert_eq!(world.starts(7).len(), 1, "{strategy}");
    }
}

/// Others may have taken over what waits at a site that was away: the global queue does not go before that.
#[test]
fn a_site_that_was_away_asks_before_it_takes_from_the_global_queue() {
    for strategy in ["pool:easy", "pool:list,via=gossip"] {
        for rank in [0, 1] {
            let mut world = World::new(&[4, 4, 4], strategy);
            for other in 0..3 {
                world.submit(other, job(10 + other as u64, 4, 50));
            }
            for id in 1..=3 {
                world.submit(rank, job(id, 4, 40));
            }
            world.run_until(20);
            // Nothing reaches anybody for longer than a lease.
            world.now = Time::from_secs(220);
            let ending = *world.endings.iter().find(|ending| ending.2 == rank).unwrap();
            world.endings.remove(&ending);
            let before = world.events.len();
            for input in [Input::Completed(ending.1), Input::Turn, Input::Timeout, Input::Settle] {
                world.tell(rank, input);
            }
            let starts = |world: &World| {
                let is_start = |event: &&(Time, usize, EventKind)| {
                    event.1 == rank && matches!(event.2, EventKind::Started { .. })
                };
                world.events[before..].iter().filter(is_start).count()
            };
            assert_eq!(starts(&world), 0, "{strategy}: it has heard nobody");
            world.run_until(240);
            assert!(starts(&world) > 0, "{strategy}: then it goes on");
            world.run_until(1200);
            for id in (1..=3).chain(10..13) {
                assert_eq!(world.completions(id).len(), 1, "{strategy}: job {id}");
            }
        }
    }
}

#[test]
fn the_operator_moves_the_jobs_of_a_dead_guardian() {
    let mut world = World::new(&[4, 8], "st:50");
    world.submit(0, job(1, 4, 50));
    world.submit(0, job(2, 4, 50));
    world.crash(0);
    world.run_until(150);
    for id in 1..=2 {
        world.tell(1, Input::Adopt { job: job(id, 4, 50), epoch: 1 });
    }
    world.tell(1, Input::Turn);
    world.run_until(300);
    world.restart(0);
    world.run_until(500);
    assert_eq!(world.completions(1), [1]);
    assert_eq!(world.completions(2), [1]);
    assert!(world.disks[0].jobs.is_empty(), "its copies are void");
}

/// A job comes home by a route, and executes and ends before its sender can hear that it came; then the sender dies for
/// good, and whoever plays the operator reads in its journal that the job is out.
fn after_a_sender_died_for_good(prepare: impl Fn(&mut World)) -> World {
    let mut world = World::new(&[4, 8], "st:50");
    world.submit(0, job(1, 8, 50));
    world.run_until(1);
    world.crash(0);
    world.run_until(150);
    prepare(&mut world);
    let dead = BTreeMap::from([(SiteId(1), &world.disks[0])]);
    let adoptions = adoptions(&world.terms.grid, &dead, &BTreeMap::new(), |site| site == SiteId(2));
    let [adoption] = adoptions[..] else { panic!("{adoptions:?}") };
    assert_eq!(adoption.to, SiteId(2));
    for _ in 0..2 {
        world.tell(1, Input::Adopt { job: adoption.job, epoch: adoption.epoch });
        world.tell(1, Input::Turn);
    }
    world.run_until(500);
    assert_eq!(world.disks[1].voids.get(&JobId(1)), Some(&adoption.epoch), "the adoption is confirmed");
    assert!(world.disks[1].jobs.is_empty(), "nothing is left to do");
    world
}

#[test]
fn a_job_that_ended_before_its_sender_knew_that_it_came_does_not_run_again() {
    let world = after_a_sender_died_for_good(|_| {});
    assert_eq!(world.starts(1), [1]);
    let taken_over = |kind: &EventKind| matches!(kind, EventKind::TookOver { .. });
    assert!(!world.events.iter().any(|(.., kind)| taken_over(kind)), "what has ended is not taken over");
    // Who restarted in between has forgotten which job it was: at least once, never lost.
    let world = after_a_sender_died_for_good(|world| {
        world.crash(1);
        world.restart(1);
    });
    assert_eq!(world.starts(1), [1, 1]);
}

#[test]
fn a_site_begins_again_with_what_it_had() {
    for strategy in [
        "st:50",
        "st:50,order=hab",
        "local",
        "common-pool",
        "pool:easy",
        "pool:list,via=gossip",
        "steal:loaded",
    ] {
        for after in [0, 1, 2, 3, 5, 12, 40] {
            let mut world = World::new(&[2, 4, 8], strategy);
            for id in 1..=8 {
                world.submit(
                    usize::try_from(id % 3).unwrap(),
                    job(id, 1 + u32::try_from(id % 2).unwrap(), 30),
                );
            }
            world.run_until(after);
            for rank in 0..3 {
                let before = world.disks[rank].clone();
                world.crash(rank);
                world.restart(rank);
                let now = &world.disks[rank];
                assert_eq!(now.jobs.keys().collect::<Vec<_>>(), before.jobs.keys().collect::<Vec<_>>());
                assert_eq!(now.incarnation, before.incarnation.map(|incarnation| incarnation + 1));
            }
            world.run_until(1000);
            for id in 1..=8 {
                assert_eq!(world.completions(id).len(), 1, "{strategy} at {after} s: job {id}");
            }
            assert!(world.disks.iter().all(|disk| disk.jobs.is_empty() && disk.ledger.is_settled()));
        }
    }
}

#[test]
fn no_two_sites_take_a_job_over_under_the_same_epoch() {
    for sites in 2..6 {
        let mut of: BTreeMap<u32, u32> = BTreeMap::new();
        for (epoch, site) in (0..40).flat_map(|epoch| (1..=sites).map(move |site| (epoch, site))) {
            let next = next_epoch(epoch, SiteId(site), usize::try_from(sites).unwrap());
            assert!(epoch < next && next <= epoch + sites);
            assert_eq!(*of.entry(next).or_insert(site), site, "epoch {next} of {sites} sites");
        }
    }
}

/// Site 2 has restarted, leaves, and gave a job of site 1's to site 3. No message passes between the two, for so long
/// that site 2 believes site 3 gone.
fn out_to_a_silent_site() -> World {
    let mut world = World::new(&[4, 8, 8], "st:50");
    world.crash(2);
    world.submit(0, job(1, 4, 2000));
    world.submit(0, job(2, 3, 60));
    world.run_until(20);
    assert_eq!(world.starts(2), [1]);
    world.restart(2);
    world.crash(1);
    world.restart(1);
    world.tell(1, Input::Leave);
    world.run_until(21);
    while world.peers[1].as_ref().expect("it is up").presence(SiteId(3)) != Presence::Gone {
        second_without_link(&mut world);
    }
    let out: Vec<u64> =
        world.disks[1].ledger.jobs_out().map(|(to, job)| u64::from(to.0) * 10 + job.0).collect();
    assert_eq!(out, [32]);
    world
}

/// What sites 2 and 3 send each other is lost.
fn second_without_link(world: &mut World) {
    world.under_way.retain(|_, sent| (sent.0, sent.1) != (1, 2) && (sent.0, sent.1) != (2, 1));
    world.run_until(world.now.as_micros() / 1_000_000 + 1);
}

#[test]
fn a_job_on_its_way_to_a_silent_site_is_not_lost_with_its_sender() {
    let mut world = out_to_a_silent_site();
    second_without_link(&mut world);
    world.crash(1);
    assert_eq!(world.disks[0].guarded_jobs[&JobId(2)].holder, SiteId(2), "nobody knows that site 3 has it");
    world.run_until(500);
    assert!(world.any(|kind| matches!(kind, EventKind::TookOver { holder: SiteId(2), .. })));
    assert_eq!(world.completions(2).len(), 1);
}

#[test]
fn a_sender_asks_the_guardian_and_then_takes_back_what_is_out_to_a_silent_site() {
    let mut world = out_to_a_silent_site();
    assert!(!world.any(|kind| matches!(kind, EventKind::TookOver { .. })), "it may have gone on from there");
    (0..3).for_each(|_| second_without_link(&mut world));
    assert!(world.any(|kind| matches!(kind, EventKind::TookOver { holder: SiteId(3), epoch: 2, .. })));
    world.run_until(500);
    assert_eq!(world.completions(2).len(), 1);
    assert!(world.disks.iter().all(|disk| disk.ledger.is_settled() && disk.guarded_jobs.is_empty()));
}

#[test]
fn a_late_word_that_a_job_went_on_does_not_touch_a_later_transfer() {
    let mut world = World::new(&[4, 8, 8], "steal:random");
    let route =
        Transfer { number: 1, job: job(1, 4, 50), bounces: 0, hops: 4, epoch: 0, moves: 4, guardian: None };
    let from = SiteId(1);
    world.tell(1, Input::Leave);
    world.tell(
        1,
        Input::Message {
            from,
            message: Message::HandOver(HandOverMessage::Route { transfers: vec![route], floor: 1 }),
        },
    );
    world.tell(1, Input::Turn);
    let out = |world: &World| world.disks[1].ledger.transfers_out().next().map(|(_, out)| out.moves);
    assert_eq!(out(&world), Some(5), "it gives the job away at once");
    let mut hears = |moves| {
        let report = Report { job: JobId(1), guardian: from, epoch: 0, moves, holder: SiteId(3), done: true };
        world.tell(
            1,
            Input::Message {
                from,
                message: Message::Membership(MembershipMessage::Noted { reports: vec![report] }),
            },
        );
        out(&world)
    };
    assert_eq!(hears(2), Some(5), "the job came by here before");
    assert_eq!(hears(4), None);
}
