//! Each rule of the paper, one at a time.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::*;

type Peer = Membership<u32, u32, ChaCha8Rng>;
type Sent = Vec<(u32, Message<u32, u32>)>;
/// What is said of it, and how it comes about.
type Mistake = (&'static str, fn(&mut Peer));

const OWN: u32 = 1_000;

fn contact(peer: u32) -> Contact<u32, u32> {
    Contact { peer, edition: 1, about: 64 }
}

fn peer_with(options: Options) -> Peer {
    Membership::new(Time::ZERO, contact(OWN), options, ChaCha8Rng::seed_from_u64(1))
}

/// A peer with these neighbors, and these others in mind.
fn peer(active: impl IntoIterator<Item = u32>, passive: impl IntoIterator<Item = u32>) -> Peer {
    let mut peer = peer_with(Options::default());
    for other in active {
        peer.link(contact(other));
    }
    for other in passive {
        peer.remember(contact(other), &mut Vec::new());
    }
    peer.outputs.clear();
    peer
}

fn hear(peer: &mut Peer, from: u32, message: Message<u32, u32>) -> Sent {
    peer.handle(Time::ZERO, Input::Message { from, message });
    sent(peer)
}

fn sent(peer: &mut Peer) -> Sent {
    let outputs = std::iter::from_fn(|| peer.poll_output());
    let sent = |output| match output {
        Output::Send { to, message } => Some((to, message)),
        _ => None,
    };
    outputs.filter_map(sent).collect()
}

fn ids(contacts: &[Contact<u32, u32>]) -> Vec<u32> {
    contacts.iter().map(|contact| contact.peer).collect()
}

fn wish(priority: Priority) -> Message<u32, u32> {
    Message::Neighbor { contact: contact(9), priority }
}

fn apart() -> Message<u32, u32> {
    Message::Disconnect { leaving: false }
}

#[test]
fn who_is_asked_to_let_somebody_in_makes_room_and_tells_all_neighbors() {
    let mut peer = peer([1, 2, 3, 4, 5], []);

    let sent = hear(&mut peer, 9, Message::Join(contact(9)));

    let dropped = ids(peer.passive())[0];
    assert_eq!(sent[0], (dropped, apart()));
    assert!((1..=5).contains(&dropped) && !ids(peer.active()).contains(&dropped));
    let walks: Vec<u32> = sent[1..5].iter().map(|(to, _)| *to).collect();
    let others: Vec<u32> = (1..=5).filter(|other| *other != dropped).collect();
    assert_eq!(walks, others);
    let walk = Message::ForwardJoin { newcomer: contact(9), ttl: 6 };
    assert!(sent[1..5].iter().all(|(_, message)| *message == walk));
    assert_eq!(sent[5..], [(9, Message::Linked(contact(OWN)))]);
    assert!(ids(peer.active()).contains(&9));
}

#[test]
fn somebody_who_is_in_already_is_only_answered() {
    let mut peer = peer([1, 9], []);
    let sent = hear(&mut peer, 9, Message::Join(contact(9)));
    assert_eq!(sent, [(9, Message::Linked(contact(OWN)))]);
}

#[test]
fn a_walk_goes_on_to_another_neighbor_and_ends_where_its_steps_do() {
    let mut peer = peer([1, 2], []);
    let walk = |ttl| Message::ForwardJoin { newcomer: contact(9), ttl };

    assert_eq!(hear(&mut peer, 1, walk(6)), [(2, walk(5))]);
    assert_eq!(ids(peer.passive()), [0; 0]);
    let sent = hear(&mut peer, 1, walk(3));
    assert_eq!(sent[0], (2, walk(2)));
    assert_eq!(ids(peer.passive()), [9], "three steps before the end it is remembered");
    assert!(matches!(sent[1..], [(9, Message::Neighbor { .. })]), "there is room for it");
    assert_eq!(hear(&mut peer, 1, walk(0)), [(9, Message::Linked(contact(OWN)))]);
    assert_eq!(ids(peer.active()), [1, 2, 9]);
    assert_eq!(ids(peer.passive()), [0; 0]);
}

#[test]
fn a_walk_ends_at_a_peer_without_another_neighbor() {
    let mut peer = peer([1], []);
    let walk = Message::ForwardJoin { newcomer: contact(9), ttl: 6 };
    assert_eq!(hear(&mut peer, 1, walk), [(9, Message::Linked(contact(OWN)))]);
}

#[test]
fn a_walk_is_not_longer_than_anybody_makes_it() {
    let mut peer = peer([1, 2], []);
    let sent = hear(&mut peer, 1, Message::ForwardJoin { newcomer: contact(9), ttl: 255 });
    assert_eq!(sent, [(2, Message::ForwardJoin { newcomer: contact(9), ttl: 5 })]);
    let contacts: Vec<_> = (100..200).map(contact).collect();
    let sent = hear(&mut peer, 1, Message::Shuffle { origin: contact(9), contacts, ttl: 255 });
    let contacts = (100..107).map(contact).collect();
    assert_eq!(sent, [(2, Message::Shuffle { origin: contact(9), contacts, ttl: 5 })]);
}

#[test]
fn a_wish_of_low_priority_is_refused_where_there_is_no_room_and_one_of_high_priority_never() {
    let mut full = peer([1, 2, 3, 4, 5], []);
    assert_eq!(hear(&mut full, 9, wish(Priority::Low)), [(9, apart())]);
    assert_eq!(ids(full.active()), [1, 2, 3, 4, 5]);
    let sent = hear(&mut full, 9, wish(Priority::High));
    assert_eq!((sent.len(), &sent[1]), (2, &(9, Message::Linked(contact(OWN)))));
    assert!(ids(full.active()).contains(&9));

    let mut free = peer([1, 2, 3, 4], []);
    assert_eq!(hear(&mut free, 9, wish(Priority::Low)), [(9, Message::Linked(contact(OWN)))]);
}

#[test]
fn a_neighbor_that_fails_is_replaced_and_who_refuses_is_not_asked_again_in_the_same_round() {
    let mut peer = peer([1, 2], [7, 8]);

    peer.handle(Time::ZERO, Input::Failed(1));
    let asked = sent(&mut peer);
    let (first, ref message) = asked[0];
    assert_eq!(*message, Message::Neighbor { contact: contact(OWN), priority: Priority::Low });
    assert_eq!(asked.len(), 1, "one at a time");
    let second = 15 - first;
    let asked = hear(&mut peer, first, apart());
    assert_eq!(asked.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [second]);
    assert_eq!(hear(&mut peer, second, apart()), []);
    assert_eq!(ids(peer.passive()), [7, 8], "who refuses stays in mind");
    assert_eq!(ids(peer.active()), [2]);
}

#[test]
fn who_is_without_neighbors_asks_with_high_priority() {
    let mut peer = peer([1], [7]);
    peer.handle(Time::ZERO, Input::Failed(1));
    let message = Message::Neighbor { contact: contact(OWN), priority: Priority::High };
    assert_eq!(sent(&mut peer), [(7, message)]);
    hear(&mut peer, 7, Message::Linked(contact(7)));
    assert_eq!((ids(peer.active()), ids(peer.passive())), (vec![7], vec![]));
}

#[test]
fn who_does_not_answer_in_time_is_forgotten_and_the_next_one_is_asked() {
    let mut peer = peer([1, 2], [7, 8]);
    peer.handle(Time::ZERO, Input::Failed(1));
    let (first, _) = sent(&mut peer)[0];
    peer.next_round = Time::MAX;
    let at = peer.poll_timeout().unwrap();
    assert_eq!(at, Time::ZERO.saturating_add(Options::default().patience));

    peer.handle(at, Input::Timeout);

    let asked: Vec<u32> = sent(&mut peer).iter().map(|(to, _)| *to).collect();
    assert_eq!(asked, [15 - first]);
    assert_eq!(ids(peer.passive()), [15 - first]);
}

/// A wish that is refused again and again becomes one that is not.
#[test]
fn after_ten_rounds_in_vain_a_peer_insists_and_in_the_paper_it_does_not() {
    for insist_after in [Some(10), None] {
        let mut peer = peer_with(Options { insist_after, ..Options::default() });
        peer.link(contact(1));
        peer.remember(contact(7), &mut Vec::new());
        let mut priorities = Vec::new();
        for _ in 0..12 {
            let at = peer.next_round;
            peer.handle(at, Input::Timeout);
            for (to, message) in sent(&mut peer) {
                if let Message::Neighbor { priority, .. } = message {
                    priorities.push(priority);
                    peer.handle(at, Input::Message { from: to, message: apart() });
                }
            }
            peer.handle(at, Input::Message { from: 1, message: Message::Linked(contact(1)) });
        }
        let first = priorities.iter().position(|priority| *priority == Priority::High);
        assert_eq!(first, insist_after.map(|_| 9), "{priorities:?}");
        assert_eq!(priorities.len(), 12);
    }
}

#[test]
fn a_shuffle_is_answered_by_as_many_contacts_to_whom_it_is_from() {
    let mut peer = peer([1, 2, 3, 4, 5], 10..40);
    let contacts: Vec<_> = [51, 52, 53, 54].map(contact).into();
    let sent = hear(&mut peer, 1, Message::Shuffle { origin: contact(9), contacts, ttl: 1 });
    let [(9, Message::ShuffleReply { contacts })] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(contacts.len(), 5);
    // Full before and after: what was told makes room for what was heard.
    let told = ids(contacts);
    let passive = ids(peer.passive());
    assert_eq!(passive.len(), 30);
    assert!([9, 51, 52, 53, 54].iter().all(|heard| passive.contains(heard)));
    assert!(told.iter().all(|told| !passive.contains(told)), "{told:?} in {passive:?}");
}

#[test]
fn what_comes_back_takes_the_place_of_what_was_told() {
    let mut peer = peer([1], 10..40);
    let at = peer.next_round;
    peer.handle(at, Input::Timeout);
    let sent = sent(&mut peer);
    let Some((1, Message::Shuffle { origin, contacts, ttl: 6 })) =
        sent.iter().find(|(_, message)| matches!(message, Message::Shuffle { .. }))
    else {
        panic!("{sent:?}")
    };
    assert_eq!(*origin, contact(OWN));
    let told = ids(contacts);
    assert_eq!(told.len(), 4, "its only neighbor is not told of itself");

    hear(&mut peer, 77, Message::ShuffleReply { contacts: [61, 62, 63, 64].map(contact).into() });

    let passive = ids(peer.passive());
    assert!(told.iter().all(|told| !passive.contains(told)));
    assert!([61, 62, 63, 64].iter().all(|heard| passive.contains(heard)));
}

#[test]
fn a_shuffle_tells_of_three_neighbors_and_four_others_at_most() {
    let mut peer = peer([1, 2, 3, 4, 5], 10..40);
    for _ in 0..20 {
        let at = peer.next_round;
        peer.handle(at, Input::Timeout);
        for (to, message) in sent(&mut peer) {
            if let Message::Shuffle { contacts, .. } = message {
                let told = ids(&contacts);
                let others = told.iter().filter(|told| **told >= 10).count();
                assert!(others == 4 && (6..=7).contains(&told.len()) && !told.contains(&to), "{told:?}");
            }
        }
        for from in 1..=5 {
            hear(&mut peer, from, Message::Linked(contact(from)));
        }
    }
}

#[test]
fn a_link_that_the_other_end_has_not_is_made_or_ended() {
    let mut free = peer([1], []);
    assert_eq!(hear(&mut free, 9, Message::Linked(contact(9))), []);
    assert_eq!(ids(free.active()), [1, 9]);

    let mut full = peer([1, 2, 3, 4, 5], []);
    assert_eq!(hear(&mut full, 9, Message::Linked(contact(9))), [(9, apart())]);
    assert_eq!((ids(full.active()), ids(full.passive())), (vec![1, 2, 3, 4, 5], vec![9]));
}

#[test]
fn a_neighbor_that_says_nothing_for_more_than_three_rounds_is_gone() {
    let mut peer = peer([1, 2], []);
    for round in 1..=4 {
        let at = peer.next_round;
        peer.handle(at, Input::Timeout);
        let told_apart = sent(&mut peer).contains(&(2, apart()));
        assert_eq!(told_apart, round == 4);
        assert_eq!(ids(peer.active()).contains(&2), round < 4);
        hear(&mut peer, 1, Message::Linked(contact(1)));
    }
    assert_eq!((ids(peer.active()), ids(peer.passive())), (vec![1], vec![]));
}

#[test]
fn who_leaves_is_in_nobodys_mind_and_answers_only_that() {
    let mut left = peer([1, 2], [7]);
    left.handle(Time::ZERO, Input::Leave);
    let leaving = || Message::Disconnect { leaving: true };
    assert_eq!(sent(&mut left), [(1, leaving()), (2, leaving())]);
    assert_eq!(left.poll_timeout(), None);
    assert_eq!(hear(&mut left, 9, wish(Priority::High)), [(9, leaving())]);
    assert_eq!(hear(&mut left, 9, leaving()), []);
    left.handle(Time::ZERO, Input::Join(vec![3]));
    assert_eq!(sent(&mut left), []);

    let mut other = peer([OWN + 1, 2], []);
    hear(&mut other, OWN + 1, leaving());
    assert_eq!((ids(other.active()), ids(other.passive())), (vec![2], vec![]));
}

#[test]
fn who_has_room_and_nobody_to_ask_asks_one_of_its_sponsors_each_round() {
    let mut peer = peer([], []);
    let joined = |sent: Sent| -> Vec<u32> {
        let is_join = |message: &Message<u32, u32>| *message == Message::Join(contact(OWN));
        sent.into_iter().filter(|(_, message)| is_join(message)).map(|(to, _)| to).collect()
    };
    let round = |peer: &mut Peer| {
        let at = peer.next_round;
        peer.handle(at, Input::Timeout);
        joined(sent(peer))
    };
    peer.handle(Time::ZERO, Input::Join(vec![OWN, 3, 4]));
    assert_eq!(joined(sent(&mut peer)), [3]);
    let asked: BTreeSet<u32> = (0..20).flat_map(|_| round(&mut peer)).collect();
    assert_eq!(asked, [3, 4].into());
    hear(&mut peer, 3, Message::Linked(contact(3)));
    assert_eq!(round(&mut peer), [4], "a neighbor need not be asked");
    peer.remember(contact(7), &mut Vec::new());
    assert_eq!(round(&mut peer), [0; 0]);
}

/// Otherwise two parts in which nobody has room would stay two.
#[test]
fn who_joins_once_more_makes_room_for_its_sponsor() {
    let mut peer = peer([1, 2, 3, 4, 5], []);
    peer.handle(Time::ZERO, Input::Join(vec![9]));
    sent(&mut peer);
    let sent = hear(&mut peer, 9, Message::Linked(contact(9)));
    assert_eq!(sent.len(), 1);
    assert!(ids(peer.active()).contains(&9) && peer.active().len() == 5);
}

#[test]
fn what_a_peer_says_of_itself_is_told_and_what_is_older_changes_nothing() {
    let mut told = peer([1, 2], []);
    told.handle(Time::ZERO, Input::Renewed(32));
    let new = Contact { peer: OWN, edition: 2, about: 32 };
    assert_eq!(sent(&mut told), [(1, Message::Linked(new.clone())), (2, Message::Linked(new.clone()))]);

    let mut hearing = peer([1, OWN + 1], [7]);
    let newer = |peer, edition, about| Contact { peer, edition, about };
    hearing.handle(Time::ZERO, Input::Message { from: 1, message: Message::Linked(newer(1, 5, 32)) });
    assert_eq!(hearing.poll_output(), Some(Output::Changed(newer(1, 5, 32))));
    let contacts = vec![newer(1, 4, 16), newer(7, 3, 8), newer(OWN, 9, 1)];
    hear(&mut hearing, 1, Message::ShuffleReply { contacts });
    assert_eq!(hearing.known(&1).map(|contact| contact.about), Some(32));
    assert_eq!(hearing.known(&7).map(|contact| contact.about), Some(8));
    assert_eq!(hearing.own().about, 64);
}

#[test]
fn nobody_is_believed_to_be_somebody_else() {
    let mut peer = peer([1], []);
    for message in [Message::Join(contact(9)), Message::Linked(contact(9)), wish(Priority::High)] {
        assert_eq!(hear(&mut peer, 8, message), []);
    }
    for message in [Message::Join(contact(OWN)), Message::Linked(contact(OWN))] {
        assert_eq!(hear(&mut peer, OWN, message), []);
    }
    assert_eq!((ids(peer.active()), ids(peer.passive())), (vec![1], vec![]));
}

#[test]
fn a_round_that_was_missed_is_not_made_up_for() {
    let mut peer = peer([1], []);
    let period = Options::default().period;
    let first = peer.next_round;
    let late = first.saturating_add(period.saturating_mul(7)).saturating_add(Span::from_micros(1));
    peer.handle(late, Input::Timeout);
    assert_eq!(peer.poll_timeout(), Some(first.saturating_add(period.saturating_mul(8))));
    assert_eq!(
        sent(&mut peer).iter().filter(|(_, message)| matches!(message, Message::Linked(_))).count(),
        1
    );
}

/// Each of these views has one mistake, which the check after an event must meet.
#[test]
fn mutant_a_broken_view_does_not_go_on() {
    let mistakes: [Mistake; 6] = [
        ("too many neighbors", |peer| {
            for other in 1..=6 {
                peer.active.insert(contact(other));
                peer.silent.insert(other, 0);
            }
        }),
        ("too many contacts", |peer| {
            for other in 1..=31 {
                peer.passive.insert(contact(other));
            }
        }),
        ("nobody is its own neighbor", |peer| {
            peer.active.insert(contact(OWN));
        }),
        ("nobody is its own contact", |peer| {
            peer.passive.insert(contact(OWN));
        }),
        ("no peer is in both views", |peer| {
            peer.link(contact(1));
            peer.passive.insert(contact(1));
        }),
        ("each neighbor is listened to", |peer| {
            peer.active.insert(contact(1));
        }),
    ];
    for (said, mistake) in mistakes {
        let mut peer = peer([], []);
        mistake(&mut peer);
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| peer.check()));
        let panic = checked.expect_err(said);
        let words = panic.downcast_ref::<&str>().copied().unwrap_or_default();
        assert!(words.starts_with(said), "{words} for {said}");
    }
    peer([1, 2], [3]).check();
}
