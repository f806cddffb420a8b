//! Streams of one connection: so many at once, and the connection is closed if either end wants more.
//!
//! Yamux has a limit of its own, but only tells the other end that it was reached, and this one nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::{AsyncRead, AsyncWrite};
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};

use super::NetworkCounters;

/// Why a connection with streams ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamsError<E> {
    /// More streams are open than this limit allows.
    #[error("more than {0} streams on one connection (limits.streams_per_connection)")]
    TooMany(usize),
    /// What the multiplexer says.
    #[error(transparent)]
    Multiplexer(E),
}

/// A multiplexer with a limit.
pub(super) struct Limited<M> {
    inner: M,
    max: usize,
    /// Each open stream has a clone.
    open: Arc<()>,
    counters: Arc<NetworkCounters>,
}

impl<M> Limited<M> {
    pub(super) fn new(inner: M, max: usize, counters: Arc<NetworkCounters>) -> Limited<M> {
        Limited { inner, max, open: Arc::new(()), counters }
    }

    fn place<E>(&self) -> Result<Arc<()>, StreamsError<E>> {
        let open = Arc::strong_count(&self.open) - 1;
        if open >= self.max {
            self.counters.counts.too_many_streams();
            return Err(StreamsError::TooMany(self.max));
        }
        Ok(Arc::clone(&self.open))
    }
}

impl<M: StreamMuxer + Unpin> StreamMuxer for Limited<M>
where
    M::Substream: Unpin,
    M::Error: 'static,
{
    type Substream = Counted<M::Substream>;
    type Error = StreamsError<M::Error>;

    fn poll_inbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Substream, Self::Error>> {
        let stream = ready!(Pin::new(&mut self.inner).poll_inbound(cx)).map_err(StreamsError::Multiplexer)?;
        Poll::Ready(self.place().map(|place| Counted { stream, _place: place }))
    }

    fn poll_outbound(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::Substream, Self::Error>> {
        let stream =
            ready!(Pin::new(&mut self.inner).poll_outbound(cx)).map_err(StreamsError::Multiplexer)?;
        Poll::Ready(self.place().map(|place| Counted { stream, _place: place }))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Pin::new(&mut self.inner).poll_close(cx).map_err(StreamsError::Multiplexer)
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<StreamMuxerEvent, Self::Error>> {
        Pin::new(&mut self.inner).poll(cx).map_err(StreamsError::Multiplexer)
    }
}

/// A stream that is counted as long as it is open.
pub(super) struct Counted<S> {
    stream: S,
    _place: Arc<()>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_read(cx, bytes)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}
