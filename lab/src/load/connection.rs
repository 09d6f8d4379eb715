//! A non-blocking connection and the exchange on it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};

use super::clock;
use super::response::Response;
use super::sample::{Fault, Sample};
use super::tls::Session;

/// What an event has brought.
pub(super) enum Progress {
    /// The exchange goes on, or there is none.
    Waits,
    /// It is over. The connection can be used again if the sample has no fault and the answer allows it.
    Over,
    /// The connection has ended outside of an exchange.
    Gone,
}

/// A connection, with the exchange that is under way on it.
pub(super) struct Connection {
    stream: TcpStream,
    tls: Option<Session>,
    is_open: bool,
    request: Rc<[u8]>,
    written: usize,
    response: Response,
    /// Whether an exchange is under way.
    pub(super) is_busy: bool,
    /// What is known of it.
    pub(super) sample: Sample,
    /// The run's begin on the monotonic clock.
    begin: u64,
    /// Whether the peer has ended its side: nothing more is sent then.
    has_ended: bool,
}

impl Connection {
    /// Begins to connect.
    pub(super) fn open(
        address: SocketAddr,
        tls: Option<Session>,
        capture: usize,
    ) -> io::Result<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        match connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            tls,
            is_open: false,
            request: Rc::from([]),
            written: 0,
            response: Response::new(capture),
            is_busy: false,
            sample: Sample::default(),
            begin: 0,
            has_ended: false,
        })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether another request may be sent after this answer.
    pub(super) fn is_kept(&self) -> bool {
        let is_whole = self.sample.fault.is_none_or(|fault| fault == Fault::Status);
        is_whole && self.response.is_kept && !self.has_ended
    }

    fn now(&self) -> u64 {
        clock::monotonic() - self.begin
    }

    /// Begins an exchange in a run that began at `begin`. What cannot be sent now is sent when an event says so.
    pub(super) fn start(
        &mut self,
        request: Rc<[u8]>,
        sample: Sample,
        begin: u64,
        buffer: &mut [u8],
    ) -> Progress {
        self.request = request;
        self.begin = begin;
        self.written = 0;
        self.response.reset();
        self.sample = sample;
        self.is_busy = true;
        if !self.is_open {
            return Progress::Waits;
        }
        match self.write() {
            Ok(()) => Progress::Waits,
            // An answer may be there before the connection's end, as a 413 may.
            Err(_) => self.read(buffer),
        }
    }

    /// Goes on as far as it goes without waiting, after an event. `has_ended`: it says that the peer has ended its side, which is
    /// not read once the answer is whole.
    pub(super) fn advance(&mut self, has_ended: bool, buffer: &mut [u8]) -> Progress {
        self.has_ended |= has_ended;
        if !self.is_open {
            match self.stream.take_error() {
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return self.fail(Fault::Connect),
            }
            if self.stream.peer_addr().is_err() {
                return Progress::Waits;
            }
            if let Some(tls) = &mut self.tls {
                match tls.shake(&mut self.stream) {
                    Ok(true) => {}
                    Ok(false) => return Progress::Waits,
                    Err(_) => return self.fail(Fault::Connect),
                }
            }
            self.is_open = true;
            if self.is_busy {
                self.sample.connected = self.now();
            }
        }
        if self.is_busy {
            // As above: what was answered before the end is read.
            let _ = self.write();
        }
        self.read(buffer)
    }

    fn write(&mut self) -> io::Result<()> {
        while self.written < self.request.len() {
            let rest = &self.request[self.written..];
            let written = match &mut self.tls {
                Some(tls) => tls.write(&mut self.stream, rest),
                None => self.stream.write(rest),
            };
            match written {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match &mut self.tls {
            Some(tls) => tls.flush(&mut self.stream),
            None => Ok(()),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Progress {
        loop {
            let read = match &mut self.tls {
                Some(tls) => tls.read(&mut self.stream, buffer),
                None => self.stream.read(buffer),
            };
            let read = match read {
                Ok(0) => return self.ended(),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Progress::Waits,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.ended(),
            };
            if !self.is_busy {
                // Nothing was asked for.
                return Progress::Gone;
            }
            if self.sample.first == 0 {
                self.sample.first = self.now();
            }
            if self.response.feed(&buffer[..read]).is_err() {
                return self.fail(Fault::Malformed);
            }
            if self.response.is_whole() {
                // What came with one read came at one time.
                return self.finish(self.sample.last == 0);
            }
            self.sample.last = self.sample.first;
        }
    }

    fn ended(&mut self) -> Progress {
        if !self.is_busy {
            return Progress::Gone;
        }
        if self.response.close() {
            return self.finish(false);
        }
        self.fail(Fault::Closed)
    }

    fn finish(&mut self, is_single: bool) -> Progress {
        self.sample.last = if is_single {
            self.sample.first
        } else {
            self.now()
        };
        self.over(None)
    }

    /// Gives up the exchange.
    pub(super) fn fail(&mut self, fault: Fault) -> Progress {
        if !self.is_busy {
            return Progress::Gone;
        }
        self.sample.last = self.now();
        self.over(Some(fault))
    }

    fn over(&mut self, fault: Option<Fault>) -> Progress {
        self.is_busy = false;
        self.sample.status = self.response.status;
        self.sample.bytes = self.response.bytes;
        if !self.response.captured.is_empty() {
            self.sample.body = Some(self.response.captured.as_slice().into());
        }
        let is_bad = self.response.status != 200;
        self.sample.fault = fault.or(is_bad.then_some(Fault::Status));
        Progress::Over
    }
}
