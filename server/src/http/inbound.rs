//! Limits on reading a request's body: each wait for the client is bounded by [`Pace`], and so is the total.
//!
//! The limits are part of the body type, so no handler can forget them. Its size is limited by each handler.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use crate::limits::Limits;
use crate::limits::pace::Pace;
use crate::serve::RequestPart;

/// The client sends its body too slowly.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error(
    "the body arrived too slowly: send at least {rate} bytes per second after {slack} s, and all of it within {total} s"
)]
pub struct TooSlow {
    slack: f64,
    rate: u64,
    total: f64,
}

impl TooSlow {
    /// The one that is this error, or that caused it.
    pub fn among<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }
}

/// An error of a body for who knows only streams: too slow is [`std::io::ErrorKind::TimedOut`].
pub fn io_error(error: axum::Error) -> std::io::Error {
    match TooSlow::among(&error) {
        Some(slow) => std::io::Error::new(std::io::ErrorKind::TimedOut, *slow),
        None => std::io::Error::other(error),
    }
}

/// The body of a request, as handlers see it.
pub(super) fn body(incoming: Incoming, part: RequestPart) -> Body {
    use http_body::Body as _;
    if incoming.is_end_stream() {
        return Body::empty();
    }
    Body::new(Inbound {
        _part: Some(part),
        ..Inbound::new(incoming, Limits::get())
    })
}

struct Inbound<B> {
    inner: B,
    limits: &'static Limits,
    pace: Pace,
    /// Wakes the reader when the wait is over.
    alarm: Option<Pin<Box<Sleep>>>,
    /// While this exists, the connection's bytes belong to this body.
    _part: Option<RequestPart>,
}

impl<B> Inbound<B> {
    fn new(inner: B, limits: &'static Limits) -> Self {
        Self {
            inner,
            limits,
            pace: Pace::new(limits.body_slack, limits.body_rate, limits.body_time),
            alarm: None,
            _part: None,
        }
    }

    fn too_slow(&self) -> TooSlow {
        let seconds = |time: Duration| time.as_secs_f64();
        TooSlow {
            slack: seconds(self.limits.body_slack),
            rate: self.limits.body_rate,
            total: seconds(self.limits.body_time),
        }
    }
}

impl<B> http_body::Body for Inbound<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Ready(frame) => {
                let bytes = match &frame {
                    Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
                    _ => 0,
                };
                this.pace.moved(bytes, Instant::now);
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => {
                let until = this.pace.waiting(Instant::now());
                let alarm = this
                    .alarm
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until.into())));
                if alarm.deadline().into_std() != until {
                    alarm.as_mut().reset(until.into());
                }
                match alarm.as_mut().poll(cx) {
                    // Still waiting: asking again gives the same result.
                    Poll::Ready(()) => Poll::Ready(Some(Err(this.too_slow().into()))),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    /// A body of this many bytes, one after each pause.
    fn dripping(bytes: usize, pause: Duration) -> Body {
        let pieces = stream::iter(0..bytes).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(b"x")))
        });
        static LIMITS: std::sync::LazyLock<Limits> = std::sync::LazyLock::new(Limits::default);
        Body::new(Inbound::new(StreamBody::new(Box::pin(pieces)), &LIMITS))
    }

    #[tokio::test]
    async fn a_drip_is_given_up_as_too_slow() {
        let limits = Limits {
            body_slack: Duration::from_millis(200),
            ..Limits::default()
        };
        let mut body = Inbound::new(
            StreamBody::new(Box::pin(stream::iter(0..1000).then(|_| async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(b"x")))
            }))),
            Box::leak(Box::new(limits)),
        );
        let mut came = 0;
        let error = loop {
            match body.frame().await.expect("no end") {
                Ok(_) => came += 1,
                Err(error) => break error,
            }
        };
        assert!(came < 1000 && TooSlow::among(&*error).is_some(), "{error}");
        let again = body.frame().await.expect("no end").expect_err("no more");
        assert!(TooSlow::among(&*again).is_some());
        let seen = io_error(axum::Error::new(error));
        assert_eq!(seen.kind(), std::io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn an_honest_body_comes_whole() {
        let body = dripping(20, Duration::from_millis(1));
        assert_eq!(body.collect().await.expect("whole").to_bytes().len(), 20);
    }
}
