//! A connection that takes nothing for too long is at its end.
//!
//! Libp2p closes a connection by writing what is left first. Over a link that is cut nothing can be written, and the
//! system tries for a quarter of an hour: meanwhile the connection would count as open, and nobody would dial anew.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{AsyncRead, AsyncWrite};
use tokio::time::Sleep;

/// A socket that fails if nothing more can be written for so long.
pub(super) struct Patient<S> {
    socket: S,
    patience: Duration,
    /// Runs while something waits to be written.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(socket: S, patience: Duration) -> Patient<S> {
        Patient { socket, patience, waits: None }
    }

    /// Passes on the result of a write, or `TimedOut` if none was possible for the whole patience.
    fn watch<T>(&mut self, cx: &mut Context<'_>, attempt: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.waits = None;
            return attempt;
        }
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
        if waits.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let reason = format!("nothing could be written for {:?}", self.patience);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_read(cx, bytes)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.watch(cx, attempt)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.socket).poll_flush(cx);
        self.watch(cx, attempt)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.socket).poll_close(cx);
        self.watch(cx, attempt)
    }
}

#[cfg(test)]
mod tests {
    use futures::AsyncWriteExt as _;

    use super::*;

    /// Takes so many bytes, and then nothing.
    struct Full(usize);

    impl AsyncWrite for Full {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = self.0.min(bytes.len());
            self.0 -= taken;
            if taken == 0 { Poll::Pending } else { Poll::Ready(Ok(taken)) }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_socket_that_takes_nothing_fails_in_time() {
        let mut socket = Patient::new(Full(3), Duration::from_millis(20));
        socket.write_all(b"abc").await.unwrap();
        assert!(socket.waits.is_none());
        let error = socket.write_all(b"d").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "nothing could be written for 20ms");

        let mut closing = Patient::new(Full(0), Duration::from_millis(20));
        assert_eq!(closing.close().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
