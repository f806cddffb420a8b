//! The coordinator's end of a lockstep connection: blocking, one order at a time.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::wire::{self, Incoming, WireError};
use super::{Order, Reply, UPGRADE};
use crate::control::Token;
use crate::control::api::Failure;

/// How long a blocked read lasts before the caller is asked whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest head of the answer to the upgrade; ours has some hundred bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Bytes read at once.
const READ_BYTES: usize = 16 * 1024;

/// Why a node cannot be kept in lockstep.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The connection for orders failed.
    #[error("the connection for orders failed: {0}")]
    Io(#[from] io::Error),
    /// The node closed the connection for orders.
    #[error("it closed the connection for orders")]
    Closed,
    /// The node does not want it.
    #[error("it refuses to run in lockstep: {0}")]
    Refused(String),
    /// The answer is no reply, or the order is too long.
    #[error("what it and the coordinator say to each other is unreadable: {0}")]
    Wire(#[from] WireError),
    /// Nothing came in time.
    #[error("it did not answer an order within {0:?}")]
    Silent(Duration),
    /// The caller wanted to wait no longer.
    #[error("nobody waited for its answer")]
    Abandoned,
}

/// A connection for orders to one node.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    incoming: Incoming,
    outgoing: Vec<u8>,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects to the control interface at this address, such as `127.0.0.1:4000`, with the node's token.
    ///
    /// # Errors
    /// If nobody is there, or the node refuses.
    pub fn connect(http: &str, token: Option<&Token>, patience: Duration) -> Result<Client, LinkError> {
        let mut stream = TcpStream::connect(http)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let authorization = token.map(|token| format!("Authorization: {}\r\n", *token.header()));
        let request = format!(
            "POST /control/lockstep HTTP/1.1\r\nHost: {http}\r\nConnection: upgrade\r\nUpgrade: {UPGRADE}\r\n\
             {}Content-Length: 0\r\n\r\n",
            authorization.unwrap_or_default()
        );
        stream.write_all(request.as_bytes())?;
        let head = read_head(&mut stream)?;
        if !head.starts_with("HTTP/1.1 101 ") {
            return Err(LinkError::Refused(reason(&head, &mut stream)));
        }
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        Ok(Client {
            stream,
            incoming: Incoming::default(),
            outgoing: Vec::new(),
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Sends an order.
    ///
    /// # Errors
    /// If it is too long, or the node is gone.
    pub fn send(&mut self, order: &Order) -> Result<(), LinkError> {
        self.outgoing.clear();
        wire::put(&mut self.outgoing, order)?;
        self.stream.write_all(&self.outgoing).map_err(closed)
    }

    /// Waits for the reply to the order that was sent last. `go_on` is asked now and then.
    ///
    /// # Errors
    /// If the node is gone, says nothing for `patience`, or nothing that makes sense.
    pub fn receive(
        &mut self,
        patience: Duration,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Reply, LinkError> {
        let begun = Instant::now();
        loop {
            if let Some(reply) = self.incoming.take()? {
                return Ok(reply);
            }
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(read) => self.incoming.space().extend_from_slice(&self.buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if !go_on() {
                        return Err(LinkError::Abandoned);
                    }
                    if begun.elapsed() >= patience {
                        return Err(LinkError::Silent(patience));
                    }
                }
                Err(error) => return Err(closed(error)),
            }
        }
    }
}

/// The other end ends in one of several ways.
fn closed(error: io::Error) -> LinkError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
            LinkError::Closed
        }
        _ => LinkError::Io(error),
    }
}

/// Everything up to the empty line, byte by byte: what follows it is not HTTP.
fn read_head(stream: &mut TcpStream) -> Result<String, LinkError> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX {
            return Err(LinkError::Refused(format!("its answer has more than {HEAD_BYTES_MAX} bytes")));
        }
        if stream.read(&mut byte)? == 0 {
            return Err(LinkError::Closed);
        }
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Why a node does not switch to lockstep.
fn reason(head: &str, stream: &mut TcpStream) -> String {
    let status = head.lines().next().unwrap_or_default().to_string();
    let length = head.lines().filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0).min(HEAD_BYTES_MAX)];
    match stream.read_exact(&mut body) {
        Ok(()) => serde_json::from_slice::<Failure>(&body).map_or(status, |failure| failure.reason),
        Err(_) => status,
    }
}
