//! A door for pages: an HTTP server on a thread of its own, with limits on who may crowd it and on what it is called.
//!
//! It knows nothing of what is asked: that is the router of whoever opens it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use node::http::hosts::Hosts;
use node::http::{self, Turned};
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;

use super::CONNECTIONS_MAX;

/// Not more connections than this share of the files that the process may open: it needs the others for nodes and results.
pub const SHARE_OF_FILES: u64 = 4;
/// As few as that are of use to anybody.
const CONNECTIONS_MIN: usize = 8;
/// Bytes of a connection that the system holds for whoever does not read; it takes twice as many. Some hundred pictures of
/// a small run; with the system's own choice of megabytes it would not be noticed for minutes that nobody reads.
const SEND_BUFFER: u32 = 64 * 1024;
/// Connections that may wait to be accepted: what the standard library and Tokio choose.
const BACKLOG: u32 = 1024;
/// How long the end of a server waits for whoever does not read what is sent, or has not asked to the end.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Where to open what listens there, in words: an address of all interfaces (`0.0.0.0`) is none that a browser can open.
pub fn opened(address: SocketAddr) -> String {
    if !address.ip().is_unspecified() {
        return format!("http://{address}");
    }
    let here = if address.is_ipv4() { IpAddr::from(Ipv4Addr::LOCALHOST) } else { Ipv6Addr::LOCALHOST.into() };
    let url = |ip: IpAddr| format!("http://{}", SocketAddr::new(ip, address.port()));
    match of_this_machine(address.is_ipv4()) {
        Some(ip) => format!("{} here, {} elsewhere", url(here), url(ip)),
        None => format!("{} here, or the address of this machine elsewhere", url(here)),
    }
}

/// The address from which this machine would speak to others; nothing is sent for that.
fn of_this_machine(v4: bool) -> Option<IpAddr> {
    // Addresses of documentation (RFC 5737, RFC 3849), which nobody has.
    let (from, to) = if v4 { ("0.0.0.0:0", "192.0.2.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
    let socket = UdpSocket::bind(from).ok()?;
    socket.connect(to).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
}

/// Where a server listens, and what it is called.
#[derive(Clone, Debug)]
pub struct Place {
    address: String,
    hosts: Arc<Hosts>,
}

impl Place {
    /// At this address; also asked by these names.
    pub fn new(address: &str, names: &[String]) -> Place {
        let own = address.rsplit_once(':').map(|(host, _)| host.to_string());
        let hosts = Hosts::new(own.into_iter().chain(names.iter().cloned()), "--serve-host");
        Place { address: address.to_string(), hosts: Arc::new(hosts) }
    }

    /// By which names it is asked.
    pub fn hosts(&self) -> &Arc<Hosts> {
        &self.hosts
    }
}

/// How long a door waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For the head of a request, for its body, and for a connection without either.
    pub request: Duration,
    /// For taking something of what it is sent, once the buffers are full, before whoever looks on loses its place.
    pub unread: Duration,
}

/// A server on a thread of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Door {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Listens, and serves this from then on. What it turns away is counted.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn open(
        place: &Place,
        router: Router,
        turned: Arc<Turned>,
        patience: Patience,
    ) -> anyhow::Result<Door> {
        let address = &place.address;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("failed to start a server")?;
        let listener = runtime.block_on(listen(address)).with_context(|| {
            format!(
                "failed to listen on {address} (--serve); write an address of this machine with a free port, as in \
                 127.0.0.1:8080"
            )
        })?;
        let bound = listener.local_addr().context("failed to start a server")?;
        let (stop, stopped) = oneshot::channel::<()>();
        let limits = http::Limits {
            connections: connections_max(),
            request: patience.request,
            unread: Some(patience.unread),
        };
        let served = async move {
            let (told, closing) = oneshot::channel::<()>();
            let (end, ended) = oneshot::channel::<()>();
            let ending = async {
                drop(stopped.await);
                drop((told, end));
                std::future::pending::<()>().await;
            };
            let last = async {
                drop(closing.await);
                tokio::time::sleep(CLOSE_PATIENCE).await;
            };
            tokio::select! {
                served = http::serve(listener, router, limits, turned, ended) => {
                    if let Err(error) = served {
                        eprintln!("warning: the server has ended: {error}");
                    }
                }
                () = ending => {}
                () = last => {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("serve".to_string())
            .spawn(move || runtime.block_on(served))
            .context("failed to start a server")?;
        Ok(Door { address: bound, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How many connections this process can spare.
pub(super) fn connections_max() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / SHARE_OF_FILES;
    usize::try_from(files).unwrap_or(usize::MAX).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

/// Listens with buffers that are small for what is sent, which its connections inherit.
async fn listen(address: &str) -> io::Result<TcpListener> {
    let mut failed = None;
    for address in tokio::net::lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // As the standard library: a server that has just ended is no obstacle.
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(SEND_BUFFER)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no such address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_all_interfaces_is_shown_as_one_that_can_be_opened() {
        assert_eq!(opened("127.0.0.1:8080".parse().unwrap()), "http://127.0.0.1:8080");
        for (all, here) in
            [("0.0.0.0:8080", "http://127.0.0.1:8080 here"), ("[::]:80", "http://[::1]:80 here")]
        {
            let said = opened(all.parse().unwrap());
            assert!(said.starts_with(here) && said.ends_with(" elsewhere"), "{said}");
            assert!(!said.contains("0.0.0.0") && !said.contains("[::]"), "{said}");
        }
    }
}
