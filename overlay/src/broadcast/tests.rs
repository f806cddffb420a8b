//! Each rule of the paper, one at a time.

use super::*;

type Peer = Broadcast<u32, u64, &'static str>;
type Told = Message<u64, &'static str>;

const KEY: u64 = 7;
const WORDS: &str = "all of it";

fn peer_with(options: Options, neighbors: impl IntoIterator<Item = u32>) -> Peer {
    let mut peer = Broadcast::new(options);
    for neighbor in neighbors {
        peer.handle(Time::ZERO, Input::Up(neighbor));
    }
    peer
}

fn peer(neighbors: impl IntoIterator<Item = u32>) -> Peer {
    peer_with(Options::default(), neighbors)
}

fn hear(peer: &mut Peer, from: u32, message: Told) -> Vec<Output<u32, u64, &'static str>> {
    peer.handle(Time::ZERO, Input::Message { from, message });
    outputs(peer)
}

fn outputs(peer: &mut Peer) -> Vec<Output<u32, u64, &'static str>> {
    std::iter::from_fn(|| peer.poll_output()).collect()
}

fn gossip(key: u64, hops: u32) -> Told {
    Message::Gossip { key, payload: WORDS, hops }
}

fn send(to: u32, message: Told) -> Output<u32, u64, &'static str> {
    Output::Send { to, message }
}

fn wake(peer: &mut Peer) -> (Time, Vec<Output<u32, u64, &'static str>>) {
    let at = peer.poll_timeout().expect("something is waited for");
    peer.handle(at, Input::Timeout);
    (at, outputs(peer))
}

fn eager(peer: &Peer) -> Vec<u32> {
    peer.eager().copied().collect()
}

fn lazy(peer: &Peer) -> Vec<u32> {
    peer.lazy().copied().collect()
}

#[test]
fn what_is_new_goes_to_all_but_its_sender_and_what_is_not_turns_a_link_lazy_at_both_ends() {
    let mut peer = peer([1, 2, 3]);
    let delivered = Output::Deliver { key: KEY, payload: WORDS, hops: 4 };
    assert_eq!(
        hear(&mut peer, 2, gossip(KEY, 4)),
        [delivered, send(1, gossip(KEY, 5)), send(3, gossip(KEY, 5))]
    );
    assert_eq!(hear(&mut peer, 3, gossip(KEY, 5)), [send(3, Message::Prune)]);
    assert_eq!(hear(&mut peer, 1, Message::Prune), []);
    assert_eq!((eager(&peer), lazy(&peer)), (vec![2], vec![1, 3]));

    peer.handle(Time::ZERO, Input::Publish { key: 8, payload: WORDS });
    let announced = |to| send(to, Message::IHave { key: 8, hops: 1 });
    assert_eq!(outputs(&mut peer), [announced(1), send(2, gossip(8, 1)), announced(3)]);
}

#[test]
fn what_does_not_come_is_asked_of_those_who_have_it_one_after_the_other() {
    let mut peer = peer([1, 2, 3]);
    let ihave = Message::IHave { key: KEY, hops: 2 };
    for from in [2, 1, 2] {
        assert_eq!(hear(&mut peer, from, ihave.clone()), []);
    }
    let graft = Message::Graft { key: Some(KEY) };
    let Options { graft_after, next_after, .. } = Options::default();

    let first = Time::ZERO.saturating_add(graft_after);
    assert_eq!(wake(&mut peer), (first, vec![send(2, graft.clone())]));
    let second = first.saturating_add(next_after);
    assert_eq!(wake(&mut peer), (second, vec![send(1, graft)]));
    // Nobody is left to be asked.
    assert_eq!(wake(&mut peer), (second.saturating_add(next_after), vec![]));
    assert_eq!(peer.poll_timeout(), None);
}

#[test]
fn what_comes_in_time_is_not_asked_for() {
    let mut peer = peer([1, 2]);
    hear(&mut peer, 1, Message::IHave { key: KEY, hops: 2 });
    hear(&mut peer, 2, gossip(KEY, 4));
    assert_eq!(peer.poll_timeout(), None);
    assert_eq!(hear(&mut peer, 1, Message::IHave { key: KEY, hops: 2 }), []);
    assert_eq!(peer.poll_timeout(), None);
}

#[test]
fn who_is_asked_sends_it_and_has_an_eager_link_again() {
    let mut peer = peer([1, 2]);
    hear(&mut peer, 1, gossip(KEY, 4));
    hear(&mut peer, 2, Message::Prune);
    assert_eq!(lazy(&peer), [2]);
    assert_eq!(hear(&mut peer, 2, Message::Graft { key: Some(KEY) }), [send(2, gossip(KEY, 5))]);
    assert_eq!(eager(&peer), [1, 2]);
    assert_eq!(hear(&mut peer, 2, Message::Graft { key: Some(99) }), [], "it has not got that");
}

#[test]
fn who_is_gone_is_not_asked() {
    let mut peer = peer([1, 2]);
    hear(&mut peer, 1, Message::IHave { key: KEY, hops: 2 });
    hear(&mut peer, 2, Message::IHave { key: KEY, hops: 2 });
    peer.handle(Time::ZERO, Input::Down(1));
    assert_eq!(wake(&mut peer).1, [send(2, Message::Graft { key: Some(KEY) })]);
}

#[test]
fn a_new_neighbor_is_told_of_what_came_lately_and_only_of_that() {
    let mut peer = peer_with(Options { told_max: 2, ..Options::default() }, []);
    for key in [5, 3, 4] {
        peer.handle(Time::ZERO, Input::Publish { key, payload: WORDS });
    }
    peer.handle(Time::ZERO, Input::Up(1));
    let announced = |key| send(1, Message::IHave { key, hops: 1 });
    assert_eq!(outputs(&mut peer), [announced(3), announced(4)]);
    peer.handle(Time::ZERO, Input::Up(1));
    assert_eq!(outputs(&mut peer), [], "it is not new any more");
}

/// Algorithm 4 with a threshold of three.
#[test]
fn a_way_that_is_much_shorter_takes_the_place_of_a_long_one() {
    for (announced, is_better) in [(2, true), (3, false)] {
        let options = Options { optimize_from: Some(3), ..Options::default() };
        let mut peer = peer_with(options, [1, 2]);
        hear(&mut peer, 2, Message::Prune);
        hear(&mut peer, 2, Message::IHave { key: KEY, hops: announced });
        let sent = hear(&mut peer, 1, gossip(KEY, 5));
        let changed = [send(2, Message::Graft { key: None }), send(1, Message::Prune)];
        assert_eq!(sent.ends_with(&changed), is_better);
        assert_eq!(eager(&peer), [if is_better { 2 } else { 1 }]);
    }
}

#[test]
fn who_is_no_neighbor_is_answered_and_becomes_none() {
    let mut peer = peer([1]);
    assert_eq!(hear(&mut peer, 9, gossip(KEY, 1)).len(), 2, "it is new, and passed on");
    assert_eq!(hear(&mut peer, 9, gossip(KEY, 1)), [send(9, Message::Prune)]);
    assert_eq!(hear(&mut peer, 9, Message::Graft { key: Some(KEY) }), [send(9, gossip(KEY, 2))]);
    assert_eq!((eager(&peer), lazy(&peer)), (vec![1], vec![]));
}

#[test]
fn memory_is_bounded_whatever_others_announce() {
    let mut peer = peer_with(Options { kept_max: 3, ..Options::default() }, [1]);
    for key in 0..10 {
        hear(&mut peer, 1, gossip(key, 1));
        hear(&mut peer, 1, Message::IHave { key: 100 + key, hops: 1 });
    }
    assert_eq!((0..10).filter(|key| peer.has(key)).collect::<Vec<_>>(), [7, 8, 9]);
    assert_eq!(peer.missing.len(), 3);
    assert_eq!(
        hear(&mut peer, 1, gossip(0, u32::MAX)).len(),
        1,
        "one that is forgotten is new, however long its way"
    );
}

/// Each of these states has one mistake, which the check after an event must meet.
#[test]
fn mutant_a_broken_state_does_not_go_on() {
    let mistakes: [fn(&mut Peer); 3] = [
        |peer| peer.kept_order.push_back(1),
        |peer| {
            peer.due.insert((Time::ZERO, 1));
        },
        |peer| {
            peer.options.kept_max = 1;
            for key in [1, 2] {
                peer.kept.insert(key, Kept { payload: WORDS, hops: 0 });
                peer.kept_order.push_back(key);
            }
        },
    ];
    for mistake in mistakes {
        let mut peer = peer([]);
        mistake(&mut peer);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| peer.check())).expect_err("it is noticed");
    }
    peer([1]).check();
}
