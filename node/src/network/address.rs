//! Multiaddresses: from text, to sockets, and from host names to numbers.

use std::net::{IpAddr, SocketAddr};

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;

use super::NetworkError;

pub(super) fn parse_address(text: &str) -> Result<Multiaddr, NetworkError> {
    text.parse().map_err(|error: libp2p::multiaddr::Error| NetworkError::Address {
        address: text.to_string(),
        reason: error.to_string(),
    })
}

/// The socket of an IP and TCP address.
pub(super) fn socket_address(address: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = address.iter();
    let ip: IpAddr = match parts.next()? {
        Protocol::Ip4(ip) => ip.into(),
        Protocol::Ip6(ip) => ip.into(),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Tcp(port) => Some((ip, port).into()),
        _ => None,
    }
}

/// An address to listen on, with this one in place of its own; none if that is not a number.
pub(crate) fn listen_at(address: &str, ip: IpAddr) -> Option<String> {
    let address: Multiaddr = address.parse().ok()?;
    let mut parts = address.iter();
    match parts.next()? {
        Protocol::Ip4(_) | Protocol::Ip6(_) => {}
        _ => return None,
    }
    let rest: Multiaddr = parts.collect();
    Some(format!("{}{rest}", Multiaddr::from(ip)))
}

/// Whether only this machine can reach an address to listen on.
pub(super) fn is_loopback(address: &Multiaddr) -> bool {
    socket_address(address).is_some_and(|socket| socket.ip().is_loopback())
}

pub(super) fn strip_peer(mut address: Multiaddr) -> Multiaddr {
    if matches!(address.iter().last(), Some(Protocol::P2p(_))) {
        address.pop();
    }
    address
}

pub(super) fn needs_name_lookup(address: &Multiaddr) -> bool {
    matches!(address.iter().next(), Some(Protocol::Dns(_) | Protocol::Dns4(_)))
}

/// Replaces names by IPv4 addresses, by the system's resolver: that is what knows the names of containers.
pub(super) async fn look_up(addresses: Vec<Multiaddr>) -> Vec<Multiaddr> {
    let mut found = Vec::new();
    for address in addresses {
        let mut parts = address.iter();
        let (Some(Protocol::Dns(name) | Protocol::Dns4(name)), Some(Protocol::Tcp(port))) =
            (parts.next(), parts.next())
        else {
            found.push(address);
            continue;
        };
        match tokio::net::lookup_host((name.as_ref(), port)).await {
            Ok(resolved) => {
                for socket in resolved {
                    if let IpAddr::V4(ip) = socket.ip() {
                        found.push(Multiaddr::empty().with(Protocol::Ip4(ip)).with(Protocol::Tcp(port)));
                    }
                }
            }
            Err(error) => tracing::debug!(%name, %error, "cannot look up a host name"),
        }
    }
    found
}
