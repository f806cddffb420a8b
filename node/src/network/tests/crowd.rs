//! How many connections and streams others may have, tried with connections that obey no rules.
//!
//! Nodes that dial each other at once have two connections for a moment, of which the one with the lower peer id closes
//! one. So what is counted depends on who dials and on whose id is lower; here the ids are in a known order, and those
//! who come dial when they are told.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures::AsyncWrite as _;
use libp2p::core::Endpoint;
use libp2p::core::muxing::{StreamMuxerBox, StreamMuxerExt as _};
use libp2p::core::transport::{DialOpts, PortUse, Transport as _};
use libp2p::core::upgrade::Version;
use libp2p::{noise, tcp, yamux};
use tokio::task::JoinHandle;

use super::*;

#[tokio::test]
async fn connections_of_one_node_beyond_the_limit_are_closed_and_counted() {
    let [two, three, one] = by_identity();
    let limits = Limits { connections_per_peer: 2, ..Limits::default() };
    let node = Network::start(NetworkConfig { limits, ..config(one) }).await.unwrap();

    let mut raw = Vec::new();
    for _ in 0..5 {
        raw.push(Raw::connect(&node, two, 0).await);
    }
    until_refused_for_limit(&node, 3).await;
    until_closed(&raw, 3).await;

    // The limit is each node's own.
    let other = Network::start(config(three)).await.unwrap();
    introduce(&other, &node, one).await;
    until(&node, |state| state.links[&SiteId(three)].connected).await;
    assert_eq!(refused_for_limit(&node), 3);
    // Who leaves makes room.
    drop(raw);
    let honest = Network::start(config(two)).await.unwrap();
    introduce(&honest, &node, one).await;
    until(&node, |state| state.links[&SiteId(two)].connected).await;
    shutdown(vec![node, other, honest]).await;
}

/// The node with the lower id does not let it come to that: it keeps one connection, the oldest.
#[tokio::test]
async fn the_lower_id_keeps_one_connection_of_many() {
    let [one, _, two] = by_identity();
    let node = Network::start(config(one)).await.unwrap();
    let first = Raw::connect(&node, two, 0).await;
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(Raw::connect(&node, two, 0).await);
    }
    until_closed(&others, 5).await;
    assert!(!first.is_closed());
    node.shutdown().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_in_all_are_closed_and_counted() {
    let [two, three, one] = by_identity();
    let limits = Limits { connections: 3, ..Limits::default() };
    let node = Network::start(NetworkConfig { limits, ..config(one) }).await.unwrap();

    let mut raw = Vec::new();
    for site in [two, three, two, three, three] {
        raw.push(Raw::connect(&node, site, 0).await);
    }
    until_refused_for_limit(&node, 2).await;
    until_closed(&raw, 2).await;

    drop(raw);
    let honest = Network::start(config(two)).await.unwrap();
    introduce(&honest, &node, one).await;
    until(&node, |state| state.links[&SiteId(two)].connected).await;
    shutdown(vec![node, honest]).await;
}

/// A connection that the node itself dials counts like the others, and is tried again.
#[tokio::test]
async fn a_node_that_is_full_dials_in_vain_counts_that_and_dials_again() {
    let [one, two, three] = by_identity();
    let limits = Limits { connections: 1, ..Limits::default() };
    let node = Network::start(NetworkConfig { limits, ..config(one) }).await.unwrap();
    let raw = Raw::connect(&node, two, 0).await;
    let honest = Network::start(config(three)).await.unwrap();
    introduce(&node, &honest, three).await;
    until_refused_for_limit(&node, 1).await;
    assert!(!node.handle().state().links[&SiteId(three)].connected);

    drop(raw);
    until(&node, |state| state.links[&SiteId(three)].connected).await;
    shutdown(vec![node, honest]).await;
}

#[tokio::test]
async fn a_connection_with_too_many_streams_is_closed_and_counted() {
    let [two, _, one] = by_identity();
    let limits = Limits { streams_per_connection: 16, ..Limits::default() };
    let node = Network::start(NetworkConfig { limits, ..config(one) }).await.unwrap();
    // The node has some of its own: for its introduction, and to measure round trips.
    let modest = Raw::connect(&node, two, 8).await;
    let crowd = Raw::connect(&node, two, 17).await;

    until_closed(std::slice::from_ref(&crowd), 1).await;
    assert_eq!(node.handle().counters().counts().crowded(), 1);
    assert!(!modest.is_closed());
    node.shutdown().await;
}

/// The three sites in the order of their peer ids.
fn by_identity() -> [u32; 3] {
    let mut sites = [1, 2, 3];
    sites.sort_by_key(|site| config(*site).identity.peer());
    sites
}

fn refused_for_limit(node: &Network) -> u64 {
    node.handle().counters().counts().refused(RefusedConnection::Limit)
}

/// Waits until so many were refused. Were it more, the test that asks for exactly as many closed ones would fail.
async fn until_refused_for_limit(node: &Network, count: u64) {
    let refused = async {
        while refused_for_limit(node) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("it is refused");
    assert_eq!(refused_for_limit(node), count);
}

/// Waits until so many of these are closed, and checks that the others are not.
async fn until_closed(raw: &[Raw], count: usize) {
    let closed = || raw.iter().filter(|raw| raw.is_closed()).count();
    let enough = async {
        while closed() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, enough).await.expect("connections are closed");
    assert_eq!(closed(), count);
}

/// A connection with the identity of a site that never says anything. It ends when this is dropped.
struct Raw {
    task: JoinHandle<()>,
}

impl Raw {
    /// Connects, and opens so many streams.
    async fn connect(node: &Network, site: u32, streams: usize) -> Raw {
        let noise = noise::Config::new(&config(site).identity.keypair()).unwrap();
        let mut transport = tcp::tokio::Transport::new(tcp::Config::default())
            .upgrade(Version::V1Lazy)
            .authenticate(noise)
            .multiplex(yamux::Config::default())
            .map(|(_, streams), _| StreamMuxerBox::new(streams))
            .boxed();
        let options = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
        let connecting = transport.dial(address(node).parse().unwrap(), options).unwrap();
        let connection = tokio::time::timeout(PATIENCE, connecting).await.expect("the node answers").unwrap();
        Raw { task: tokio::spawn(stay(connection, streams)) }
    }

    fn is_closed(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Keeps a connection, and what was opened on it from both sides, until the other end closes it.
async fn stay(mut connection: StreamMuxerBox, streams: usize) {
    let (mut unheard, mut open, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    poll_fn(|cx| {
        while unheard.len() + open.len() < streams {
            match connection.poll_outbound_unpin(cx) {
                Poll::Ready(Ok(stream)) => unheard.push(stream),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        while let Some(mut stream) = unheard.pop() {
            // The other end sees a stream with its first byte: the length of a name that never comes.
            if Pin::new(&mut stream).poll_write(cx, &[20]).is_pending() {
                unheard.push(stream);
                break;
            }
            open.push(stream);
        }
        while let Poll::Ready(stream) = connection.poll_inbound_unpin(cx) {
            match stream {
                Ok(stream) => theirs.push(stream),
                Err(_) => return Poll::Ready(()),
            }
        }
        match connection.poll_unpin(cx) {
            Poll::Ready(Err(_)) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await;
}
