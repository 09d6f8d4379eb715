//! A connection's byte stream with its limits: request heads bounded in time and size, idle connections closed,
//! responses that the client does not read aborted.
//!
//! The limits are enforced here, below HTTP, because every route and every phase of a request passes through; the body
//! has one more (`http/inbound.rs`), since only HTTP knows where it begins.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::limits::pace::Pace;
use crate::limits::{HEAD_BYTES, Limits};

use super::connections::{Phase, Seat};
use super::refusals;

/// All waiting for a client that reads: a long download is as long as it is.
const NO_TOTAL: Duration = Duration::from_secs(365 * 24 * 3600);

/// A TCP stream under limits.
pub(super) struct Guarded {
    stream: TcpStream,
    seat: Seat,
    limits: &'static Limits,
    /// Bytes of the head that is being read.
    head: u64,
    /// The pace of writing.
    pace: Pace,
    /// When writing last went on after a wait: the client reads the rest of an answer, and is not idle.
    wrote: Option<Instant>,
    /// Wakes the task when a wait is over. One timer is enough: each wake-up checks all limits.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Guarded {
    pub(super) fn new(stream: TcpStream, seat: Seat, limits: &'static Limits) -> Self {
        Self {
            stream,
            seat,
            limits,
            head: 0,
            pace: Pace::new(limits.write_slack, limits.write_rate, NO_TOTAL),
            wrote: None,
            alarm: None,
        }
    }

    /// Deadline for the client's next byte; `None` while the server is not waiting for the client.
    fn quiet_until(&self) -> Option<Instant> {
        let allowed = match self.seat.0.phase() {
            Phase::New | Phase::Head => self.limits.head_time,
            Phase::Idle if self.pace.is_waiting() => return None,
            Phase::Idle => self.limits.idle_time,
            Phase::Busy => return None,
        };
        let since = self.seat.0.since();
        Some(self.wrote.map_or(since, |wrote| since.max(wrote)) + allowed)
    }

    /// Wakes the task at `deadline` unless something does so before; an error when it has passed.
    fn wake_at(
        &mut self,
        deadline: Instant,
        cx: &mut Context<'_>,
        what: &'static str,
    ) -> io::Result<()> {
        loop {
            let alarm = self
                .alarm
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
            // An alarm that is early is set again when it rings: then a request need not touch the timer.
            if alarm.deadline().into_std() > deadline {
                alarm.as_mut().reset(deadline.into());
            }
            if alarm.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            // The clock is read only now: most requests come long before.
            if Instant::now() >= deadline {
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            alarm.as_mut().reset(deadline.into());
        }
    }

    /// Wakes the task later: the response may be over by then, and nothing else reports that the client is silent.
    fn look_again(&mut self, cx: &mut Context<'_>) {
        let later = self.limits.idle_time;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(later)));
        if alarm.as_mut().poll(cx).is_ready() {
            alarm.as_mut().reset(tokio::time::Instant::now() + later);
            // Registers the task; the time has just been set.
            let _ = alarm.as_mut().poll(cx);
        }
    }

    /// Writes why the connection will be closed, if that does not block. Only while a request head is being read, so
    /// that it cannot end up inside another response.
    fn say(&self, why: &[u8]) {
        if !self.pace.is_waiting() {
            let _ = self.stream.try_write(why);
        }
    }

    /// Bytes came, or the end.
    fn came(&mut self, bytes: usize) {
        match self.seat.0.phase() {
            Phase::New | Phase::Idle if bytes > 0 => {
                self.head = bytes as u64;
                self.seat.0.enter(Phase::Head);
            }
            Phase::Head => self.head += bytes as u64,
            _ => {}
        }
    }

    /// A write made progress, or waits for the client.
    fn written(
        &mut self,
        polled: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Ok(bytes)) => {
                if self.pace.is_waiting() {
                    self.wrote = Some(Instant::now());
                }
                self.pace.moved(bytes, Instant::now);
                Poll::Ready(Ok(bytes))
            }
            Poll::Pending => {
                let until = self.pace.waiting(Instant::now());
                self.wake_at(until, cx, "the client does not read its answer")?;
                Poll::Pending
            }
            failed => failed,
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let phase = this.seat.0.phase();
        if phase != Phase::Busy && this.seat.0.should_end() {
            // As if the client had ended it: between two requests that is an end in order.
            return Poll::Ready(Ok(()));
        }
        if phase == Phase::Head && this.head >= HEAD_BYTES {
            this.say(refusals::LARGE_HEAD);
            let why = "the request's head is too large";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                this.came(buffer.filled().len() - before);
                Poll::Ready(Ok(()))
            }
            Poll::Pending => {
                this.seat.0.waker.register(cx.waker());
                // The drain may have begun between the check above and the registration.
                if this.seat.0.phase() != Phase::Busy && this.seat.0.should_end() {
                    return Poll::Ready(Ok(()));
                }
                match this.quiet_until() {
                    Some(until) => {
                        let waited = this.wake_at(until, cx, "no request came in time");
                        // A client that sent nothing gets no response.
                        if waited.is_err() && phase == Phase::Head {
                            this.say(refusals::SLOW_HEAD);
                        }
                        waited?;
                    }
                    None => this.look_again(cx),
                }
                Poll::Pending
            }
            failed => failed,
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.written(polled, cx)
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
