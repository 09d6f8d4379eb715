//! Streams and bodies with a deadline for each operation.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A deadline that runs while an operation is pending.
#[derive(Debug)]
struct Wait {
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
    waits: bool,
}

impl Wait {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            sleep: Box::pin(sleep(limit)),
            waits: false,
        }
    }

    /// Passes on what is ready. None if it was pending for longer than the limit.
    fn poll<T>(&mut self, context: &mut Context<'_>, polled: Poll<T>) -> Poll<Option<T>> {
        match polled {
            Poll::Ready(value) => {
                self.waits = false;
                Poll::Ready(Some(value))
            }
            Poll::Pending => {
                if !std::mem::replace(&mut self.waits, true) {
                    self.sleep.as_mut().reset(Instant::now() + self.limit);
                }
                self.sleep.as_mut().poll(context).map(|()| None)
            }
        }
    }
}

/// A body each of whose pieces must arrive within a time limit.
#[derive(Debug)]
pub(super) struct Timely {
    body: Incoming,
    wait: Wait,
}

impl Timely {
    pub(super) fn new(body: Incoming, limit: Duration) -> Self {
        Self {
            body,
            wait: Wait::new(limit),
        }
    }
}

impl Body for Timely {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.wait.poll(context, polled).map(|polled| match polled {
            Some(frame) => frame.map(|frame| frame.map_err(Self::Error::from)),
            None => Some(Err(Self::Error::from(too_slow()))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream whose peer must read what is written within a time limit.
#[derive(Debug)]
pub(super) struct Draining<S> {
    stream: S,
    wait: Wait,
}

impl<S> Draining<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            wait: Wait::new(limit),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Draining<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> Draining<S> {
    fn write<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.wait
            .poll(context, polled)
            .map(|polled| polled.unwrap_or_else(|| Err(too_slow())))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Draining<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.write(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.write(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.write(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.write(context, polled)
    }
}

fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the other side took too long")
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn a_peer_that_reads_nothing_is_given_up() {
        let (ours, _theirs) = duplex(8);
        let mut stream = Draining::new(ours, Duration::from_millis(10));
        stream.write_all(b"fits").await.unwrap();
        let error = stream.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_peer_that_reads_gets_everything() {
        let (ours, mut theirs) = duplex(8);
        let mut stream = Draining::new(ours, Duration::from_secs(60));
        let reader = tokio::spawn(async move {
            let mut taken = Vec::new();
            theirs.read_to_end(&mut taken).await.unwrap();
            taken.len()
        });
        stream.write_all(&[0; 100]).await.unwrap();
        drop(stream);
        assert_eq!(reader.await.unwrap(), 100);
    }
}
