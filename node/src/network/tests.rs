//! Networks of two and three nodes on the loopback interface, inside one process.

mod closed;
mod crowd;
mod silence;

use std::time::Duration;

use scheduler::SiteId;
use scheduler::event::MessageKind;

use super::handle::Network;
use super::*;
use crate::instance::draw;

const PROCESSORS: [u32; 3] = [2, 8, 8];
/// Ample for a handshake on a loaded machine; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two sites find each other by address and authenticate; frames arrive whole, at the right place, from the right
/// sender.
#[tokio::test]
async fn frames_cross_between_three_nodes() {
    let mut nodes = connected(3).await;

    nodes[0].handle().send(outgoing(2, b"one to two"));
    nodes[0].handle().send(outgoing(3, b"one to three"));
    nodes[2].handle().send(outgoing(2, b"three to two"));

    let mut at_two = [frame(&mut nodes[1]).await, frame(&mut nodes[1]).await];
    at_two.sort();
    assert_eq!(at_two, [(SiteId(1), b"one to two".to_vec()), (SiteId(3), b"three to two".to_vec())]);
    assert_eq!(frame(&mut nodes[2]).await, (SiteId(1), b"one to three".to_vec()));
    for node in &nodes {
        nothing_in_flight(node).await;
        assert_eq!(node.handle().counters().lost(), 0);
    }
    shutdown(nodes).await;
}

/// Far more frames than may be under way at once: the rest waits, none is lost, and none overtakes another.
#[tokio::test]
async fn a_burst_waits_instead_of_getting_lost() {
    let mut nodes = connected(2).await;
    let count = 3 * IN_FLIGHT_MAX as u32;

    for number in 0..count {
        assert!(nodes[0].handle().send(outgoing(2, &number.to_le_bytes())));
    }

    let mut arrived = Vec::new();
    for _ in 0..count {
        let bytes = frame(&mut nodes[1]).await.1;
        arrived.push(u32::from_le_bytes(bytes.try_into().unwrap()));
    }
    assert_eq!(arrived, (0..count).collect::<Vec<_>>());
    shutdown(nodes).await;
}

#[tokio::test]
async fn a_frame_beyond_the_cap_is_lost_and_the_link_survives() {
    let mut nodes = connected(2).await;

    nodes[0].handle().send(outgoing(2, &vec![0; FRAME_BYTES_MAX + 1]));
    let arrival = next(&mut nodes[0]).await;
    assert_eq!(arrival, Arrival::Lost { to: SiteId(2), kind: MessageKind::Grant });

    nodes[0].handle().send(outgoing(2, &vec![7; FRAME_BYTES_MAX]));
    assert_eq!(frame(&mut nodes[1]).await.1.len(), FRAME_BYTES_MAX);
    shutdown(nodes).await;
}

#[tokio::test]
async fn frames_to_a_node_that_has_gone_are_reported_as_lost() {
    let mut nodes = connected(2).await;
    let gone = nodes.pop().unwrap();

    gone.shutdown().await;
    until(&nodes[0], |state| !state.links[&SiteId(2)].connected).await;
    nodes[0].handle().send(outgoing(2, b"too late"));

    assert_eq!(next(&mut nodes[0]).await, Arrival::Lost { to: SiteId(2), kind: MessageKind::Grant });
    assert_eq!(nodes[0].handle().counters().in_flight(), 0);
    shutdown(nodes).await;
}

#[tokio::test]
async fn a_restarted_node_is_connected_again() {
    let mut nodes = connected(2).await;
    let gone = nodes.pop().unwrap();
    gone.shutdown().await;
    until(&nodes[0], |state| !state.links[&SiteId(2)].connected).await;

    let processors = PROCESSORS[..2].to_vec();
    let back = NetworkConfig { instance: 77, processors, ..config(2) };
    let back = Network::start(back).await.unwrap();
    introduce(&nodes[0], &back, 2).await;

    until(&nodes[0], |state| state.links[&SiteId(2)].connected).await;
    assert_eq!(nodes[0].handle().state().links[&SiteId(2)].instance, Some(77));
    nodes.push(back);
    shutdown(nodes).await;
}

/// Its other process dials while the connection of the first one is still there, so that the others said to the first who they
/// are. Whoever has nothing but that waits for an introduction until it loses patience.
#[tokio::test]
async fn a_node_that_is_back_before_its_end_was_seen_is_told_again_who_is_there() {
    for (site, other) in [(1, 2), (2, 1)] {
        let mut nodes = connected(2).await;
        let first = nodes.remove(site as usize - 1);
        let processors = PROCESSORS[..2].to_vec();
        let back = NetworkConfig { rejoins: true, processors, ..config(site) };
        let back = Network::start(back).await.unwrap();
        introduce(&back, &nodes[0], other).await;
        introduce(&nodes[0], &back, site).await;
        // Ample for the second connection; with less the question is another one, and the answer the same.
        tokio::time::sleep(Duration::from_millis(500)).await;
        first.shutdown().await;

        until(&back, |state| state.links[&SiteId(other)].connected).await;
        for node in [&back, &nodes[0]] {
            assert_eq!(node.handle().counters().counts().refused(RefusedConnection::Silent), 0);
        }
        nodes.push(back);
        shutdown(nodes).await;
    }
}

/// A site that comes back with another journal has forgotten what it was told; unless it says so, it is somebody else.
#[tokio::test]
async fn a_site_with_another_journal_is_let_in_if_it_says_that_it_lost_the_one_before() {
    let first = draw(0);
    for (other, let_in) in [(first, true), (draw(0), false), (draw(1), true)] {
        let knows = NetworkConfig { journals: Some([(SiteId(2), first)].into()), ..config(1) };
        let one = Network::start(knows).await.unwrap();
        let two = Network::start(NetworkConfig { instance: other, ..config(2) }).await.unwrap();
        introduce(&one, &two, 2).await;
        introduce(&two, &one, 1).await;
        until(&one, |state| state.links[&SiteId(2)].connected || state.links[&SiteId(2)].problem.is_some())
            .await;
        assert_eq!(one.handle().state().links[&SiteId(2)].connected, let_in);
        shutdown(vec![one, two]).await;
    }
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_the_port() {
    let first = Network::start(config(1)).await.unwrap();
    let taken = first.handle().state().listen[0].clone();

    let error = Network::start(NetworkConfig { listen: taken.clone(), ..config(2) }).await.err().unwrap();

    assert!(matches!(error, NetworkError::Listen { .. }), "{error}");
    assert!(error.to_string().contains(&taken), "{error}");
    assert!(error.to_string().contains("choose a free port"), "{error}");
    first.shutdown().await;
}

#[tokio::test]
async fn a_node_of_another_grid_is_refused_on_both_sides() {
    let one = Network::start(config(1)).await.unwrap();
    let other = Network::start(NetworkConfig { processors: vec![2, 9, 8], ..config(2) }).await.unwrap();
    introduce(&one, &other, 2).await;
    introduce(&other, &one, 1).await;

    until(&one, |state| state.links[&SiteId(2)].problem.is_some()).await;
    until(&other, |state| state.links[&SiteId(1)].problem.is_some()).await;
    assert!(!one.handle().state().links[&SiteId(2)].connected);
    shutdown(vec![one, other]).await;
}

#[tokio::test]
async fn a_second_node_of_the_same_site_is_refused_by_its_key() {
    let one = Network::start(config(1)).await.unwrap();
    let impostor_key = Identity::derived("test", 99, SiteId(2));
    let impostor = Network::start(NetworkConfig { identity: impostor_key, ..config(2) }).await.unwrap();
    introduce(&impostor, &one, 1).await;

    until(&impostor, |state| state.links[&SiteId(1)].problem.is_some()).await;

    assert!(!one.handle().state().links[&SiteId(2)].connected);
    let problem = one.handle().state().links[&SiteId(2)].problem.clone().unwrap();
    assert_eq!(problem, "refused: its key does not belong to the site it claims");
    shutdown(vec![one, impostor]).await;
}

#[tokio::test]
async fn nodes_of_two_runs_do_not_connect() {
    let red = Network::start(config(1)).await.unwrap();
    let identity_seed = None; // The address must name the key, as nothing can be derived across runs.
    let blue = NetworkConfig { run: "blue".to_string(), identity_seed, ..config(2) };
    let blue = Network::start(blue).await.unwrap();
    let address = format!("{}/p2p/{}", address(&red), red.handle().state().peer_id);
    blue.handle().connect(vec![(SiteId(1), address)]).await.unwrap();

    until_refused(&blue).await;

    assert!(!blue.handle().state().links[&SiteId(1)].connected);
    assert!(!red.handle().state().links[&SiteId(2)].connected);
    shutdown(vec![red, blue]).await;
}

#[tokio::test]
async fn wrong_peers_are_refused_with_the_remedy() {
    let node = Network::start(config(1)).await.unwrap();
    let somebody = Identity::derived("else", 0, SiteId(9)).peer_id();
    let cases = [
        (SiteId(1), "/ip4/127.0.0.1/tcp/1".to_string(), "not another site"),
        (SiteId(4), "/ip4/127.0.0.1/tcp/1".to_string(), "not another site"),
        (SiteId(2), "127.0.0.1:1".to_string(), "write it as"),
        (SiteId(2), format!("/ip4/127.0.0.1/tcp/1/p2p/{somebody}"), "gives this site the peer id"),
    ];
    for (site, address, expected) in cases {
        let error = node.handle().connect(vec![(site, address)]).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    node.shutdown().await;

    let anonymous = Network::start(NetworkConfig { identity_seed: None, ..config(1) }).await.unwrap();
    let peers = vec![(SiteId(2), "/ip4/127.0.0.1/tcp/1".to_string())];
    let error = anonymous.handle().connect(peers).await.unwrap_err().to_string();
    assert!(error.contains("append /p2p/"), "{error}");
    anonymous.shutdown().await;
}

fn config(site: u32) -> NetworkConfig {
    NetworkConfig {
        run: "test".to_string(),
        site: SiteId(site),
        processors: PROCESSORS.to_vec(),
        identity: Identity::derived("test", 1, SiteId(site)),
        identity_seed: Some(1),
        rejoins: false,
        journals: None,
        instance: u64::from(site),
        listen: "/ip4/127.0.0.1/tcp/0".to_string(),
        discovery: Discovery::Static,
        frame_bytes_max: FRAME_BYTES_MAX,
        grid_key: None,
        allow_open_network: false,
        members: Vec::new(),
        limits: Limits::default(),
    }
}

/// Starts sites 1 to `count` of a grid of that many, and waits until all are ready.
async fn connected(count: usize) -> Vec<Network> {
    connected_as(count, |_| {}).await
}

/// The same with another configuration.
async fn connected_as(count: usize, change: impl Fn(&mut NetworkConfig)) -> Vec<Network> {
    let mut nodes = Vec::new();
    for site in 1..=count {
        let processors = PROCESSORS[..count].to_vec();
        let mut config = NetworkConfig { processors, ..config(site as u32) };
        change(&mut config);
        nodes.push(Network::start(config).await.unwrap());
    }
    for (index, node) in nodes.iter().enumerate() {
        for (other_index, other) in nodes.iter().enumerate().filter(|(other, _)| *other != index) {
            introduce(node, other, other_index as u32 + 1).await;
        }
    }
    for node in &nodes {
        tokio::time::timeout(PATIENCE, node.handle().ready()).await.expect("all nodes become ready");
    }
    nodes
}

fn address(node: &Network) -> String {
    node.handle().state().listen[0].clone()
}

async fn introduce(node: &Network, other: &Network, site: u32) {
    node.handle().connect(vec![(SiteId(site), address(other))]).await.unwrap();
}

fn outgoing(to: u32, bytes: &[u8]) -> Outgoing {
    Outgoing { to: SiteId(to), kind: MessageKind::Grant, bytes: bytes.to_vec() }
}

async fn next(node: &mut Network) -> Arrival {
    tokio::time::timeout(PATIENCE, node.next()).await.expect("something arrives").unwrap()
}

async fn frame(node: &mut Network) -> (SiteId, Vec<u8>) {
    match next(node).await {
        Arrival::Frame { from, bytes, .. } => (from, bytes),
        lost => panic!("{lost:?}"),
    }
}

async fn until(node: &Network, holds: impl FnMut(&NetworkState) -> bool) {
    let mut state = node.handle().state.clone();
    tokio::time::timeout(PATIENCE, state.wait_for(holds)).await.expect("the state is reached").unwrap();
}

async fn nothing_in_flight(node: &Network) {
    let settled = async {
        while node.handle().counters().in_flight() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, settled).await.expect("every frame is acknowledged");
}

/// Waits until the node has refused somebody.
async fn until_refused(node: &Network) {
    let refused = async {
        while node.handle().counters().refused() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("the other run is refused");
}

async fn shutdown(nodes: Vec<Network>) {
    for node in nodes {
        node.shutdown().await;
    }
}
