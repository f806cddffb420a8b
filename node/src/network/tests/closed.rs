//! Who does not get in, and what both sides are told; who does not stay.

use super::*;

#[tokio::test]
async fn a_node_with_another_key_or_none_gets_nowhere_and_both_sides_say_why() {
    let key = Some(GridKey::random());
    for others in [Some(GridKey::random()), None] {
        let processors = PROCESSORS[..2].to_vec();
        let two = |site, grid_key| NetworkConfig { processors: processors.clone(), grid_key, ..config(site) };
        let one = Network::start(two(1, key.clone())).await.unwrap();
        let other = Network::start(two(2, others)).await.unwrap();
        introduce(&other, &one, 1).await;

        until(&other, |state| problem(state, 1).contains("another grid key")).await;
        until_counted(&one, |counts| counts.refused(RefusedConnection::Handshake) > 0).await;

        assert!(!one.handle().state().links[&SiteId(2)].connected);
        shutdown(vec![one, other]).await;
    }
}

#[tokio::test]
async fn nodes_with_the_same_key_connect() {
    let key = GridKey::random();
    let nodes = connected_as(2, |config| config.grid_key = Some(key.clone())).await;
    assert_eq!(nodes[0].handle().counters().counts().refused(RefusedConnection::Handshake), 0);
    shutdown(nodes).await;
}

/// Without a seed only those are let in whose identities are on the list.
#[tokio::test]
async fn an_identity_that_is_not_on_the_list_is_refused_on_both_sides() {
    let member = |site| (SiteId(site), Identity::derived("test", 1, SiteId(site)).peer_id());
    let listed = NetworkConfig { identity_seed: None, members: vec![member(3)], ..config(1) };
    let one = Network::start(listed).await.unwrap();
    let unlisted = NetworkConfig { identity_seed: None, members: vec![member(1)], ..config(2) };
    let unlisted = Network::start(unlisted).await.unwrap();
    introduce(&unlisted, &one, 1).await;

    until(&unlisted, |state| problem(state, 1).contains("its identity is not on the list")).await;
    until_counted(&one, |counts| counts.refused(RefusedConnection::Identity) > 0).await;

    assert!(!one.handle().state().links[&SiteId(2)].connected);
    shutdown(vec![one, unlisted]).await;
}

/// Nodes that register are told of each other one after the other: one may dial another that has not heard of it yet,
/// and is put on the list before the refusal has ended the connection.
#[tokio::test]
async fn who_is_listed_while_it_is_refused_is_dialed_soon() {
    let of_site = |site| NetworkConfig { identity_seed: None, ..config(site) };
    let one = Network::start(of_site(1)).await.unwrap();
    let two = Network::start(of_site(2)).await.unwrap();
    let tell = async |node: &Network, other: &Network, site: u32| {
        let id = Identity::derived("test", 1, SiteId(site)).peer_id();
        node.handle().connect(vec![(SiteId(site), format!("{}/p2p/{id}", address(other)))]).await.unwrap();
    };
    tell(&two, &one, 1).await;
    until(&two, |state| problem(state, 1).contains("its identity is not on the list")).await;

    tell(&one, &two, 2).await;

    // Who is refused for good tries again after half a minute.
    let connected = until(&one, |state| state.links.get(&SiteId(2)).is_some_and(|link| link.connected));
    tokio::time::timeout(Duration::from_secs(20), connected).await.expect("it is dialed before that");
    shutdown(vec![one, two]).await;
}

#[tokio::test]
async fn wrong_lists_are_refused_with_the_remedy() {
    let (own, other) = (Identity::derived("test", 1, SiteId(1)), Identity::derived("else", 1, SiteId(1)));
    let cases = [
        (1, other.peer_id(), "this node has another identity"),
        (2, own.peer_id(), "the site has another identity already"),
        (9, own.peer_id(), "the grid has no such site"),
        (2, "nobody".to_string(), "stealgrid key id FILE"),
    ];
    for (site, peer_id, expected) in cases {
        let wrong = NetworkConfig { members: vec![(SiteId(site), peer_id)], ..config(1) };
        let error = Network::start(wrong).await.err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_node_without_a_key_keeps_to_the_loopback_interface() {
    let open = |grid_key, allow_open_network| NetworkConfig {
        listen: "/ip4/0.0.0.0/tcp/0".to_string(),
        grid_key,
        allow_open_network,
        ..config(1)
    };
    let error = Network::start(open(None, false)).await.err().unwrap().to_string();
    assert!(error.contains("--grid-key FILE") && error.contains("--allow-open-network"), "{error}");
    for config in [open(Some(GridKey::random()), false), open(None, true)] {
        Network::start(config).await.unwrap().shutdown().await;
    }
}

#[tokio::test]
async fn an_offender_is_banned_and_comes_back_when_the_ban_ends() {
    let limits = Limits { offences: 3, ban_secs: 1, ..Limits::default() };
    let nodes = connected_as(3, |config| config.limits = limits.clone()).await;
    let one = nodes[0].handle();

    for _ in 0..3 {
        one.offence(SiteId(2), Offence::Garbage);
    }
    until(&nodes[0], |state| problem(state, 2).starts_with("banned for 1s")).await;
    until(&nodes[0], |state| !state.links[&SiteId(2)].connected).await;
    assert!(one.state().links[&SiteId(3)].connected, "others are not harmed");
    assert_eq!(one.counters().counts().bans(), 1);
    assert_eq!(one.counters().counts().offences(Offence::Garbage), 3);

    until(&nodes[0], |state| state.links[&SiteId(2)].connected).await;
    assert_eq!(one.state().links[&SiteId(2)].problem, None);
    shutdown(nodes).await;
}

/// One site fills its own share of the inbox, not that of the others.
#[tokio::test]
async fn a_full_inbox_is_full_for_the_one_who_filled_it() {
    let limits = Limits { inbox_frames_per_peer: 4, ..Limits::default() };
    let mut nodes = connected_as(3, |config| config.limits = limits.clone()).await;

    for number in 0..10 {
        assert!(nodes[1].handle().send(outgoing(1, &[number])));
    }
    nothing_in_flight(&nodes[1]).await;
    assert_eq!(nodes[1].handle().counters().lost(), 6, "the sender knows");
    assert_eq!(nodes[0].handle().counters().inbox_full(), 6);
    nodes[2].handle().send(outgoing(1, b"three"));
    nothing_in_flight(&nodes[2]).await;
    assert_eq!(nodes[2].handle().counters().lost(), 0);

    let mut arrived = Vec::new();
    for _ in 0..5 {
        arrived.push(frame(&mut nodes[0]).await.0.0);
    }
    assert_eq!(arrived, [2, 2, 2, 2, 3]);
    nodes[1].handle().send(outgoing(1, b"again"));
    assert_eq!(frame(&mut nodes[0]).await.1, b"again", "what was taken makes room");
    shutdown(nodes).await;
}

/// Twice as many frames as may come in a second arrive all the same, only later.
#[tokio::test]
async fn a_burst_beyond_the_rate_is_slowed_down_and_loses_nothing() {
    let limits = Limits { frames_per_second: 200, ..Limits::default() };
    let mut nodes = connected_as(2, |config| config.limits = limits.clone()).await;

    for number in 0..400_u32 {
        assert!(nodes[1].handle().send(outgoing(1, &number.to_le_bytes())));
    }
    for number in 0..400_u32 {
        assert_eq!(frame(&mut nodes[0]).await.1, number.to_le_bytes());
    }
    nothing_in_flight(&nodes[1]).await;
    assert_eq!(nodes[1].handle().counters().lost(), 0);
    assert!(nodes[0].handle().counters().counts().offences(Offence::Rate) > 0);
    assert_eq!(nodes[0].handle().counters().counts().bans(), 0);
    shutdown(nodes).await;
}

fn problem(state: &NetworkState, site: u32) -> &str {
    state.links[&SiteId(site)].problem.as_deref().unwrap_or_default()
}

async fn until_counted(node: &Network, holds: impl Fn(&Counts) -> bool) {
    let counted = async {
        while !holds(node.handle().counters().counts()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("it is counted");
}
