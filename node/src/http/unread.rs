//! Connections whose other end takes nothing of what it is sent are closed after a while.
//!
//! Whoever is being answered keeps his place among the connections, so that an answer nobody reads would hold one for ever.
//! What the buffers of both systems hold counts as taken: only when they are full is anything noticed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::Turned;

/// A stream that fails when nothing could be written for so long.
#[derive(Debug)]
pub(super) struct Unread<S> {
    stream: S,
    patience: Option<Duration>,
    /// Runs while the other end has taken nothing.
    waits: Option<Pin<Box<Sleep>>>,
    turned: Arc<Turned>,
}

impl<S> Unread<S> {
    /// Counted here; without patience it waits for ever.
    pub(super) fn new(stream: S, patience: Option<Duration>, turned: Arc<Turned>) -> Unread<S> {
        Unread { stream, patience, waits: None, turned }
    }

    /// What came of a write; an error if nothing has for too long.
    fn taken(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        let Some(patience) = self.patience else { return Poll::Pending };
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        if waits.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.turned.unread.fetch_add(1, Ordering::Relaxed);
        let reason = format!("nothing of what was sent was taken for {patience:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unread<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unread<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.taken(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.taken(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
