//! Tells the server of connections, without waiting for it.

use std::io;
use std::os::fd::OwnedFd;

use hearth_ebpf::gateway::{Connection, Event};
use hearth_host::memfd::socket_pair;
use hearth_init::fields::Fields as _;
use rustix::net::SendFlags;

use crate::address::INTERFACE;
use crate::protocol::{Protocol, TOLD_AT_ONCE, ToldConnection};

/// See the module.
pub(crate) struct Told {
    socket: OwnedFd,
    waiting: Vec<ToldConnection>,
}

impl Told {
    /// And the server's end.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (socket, reports) = socket_pair()?;
        let told = Self {
            socket,
            waiting: Vec::new(),
        };
        Ok((told, reports))
    }

    pub(super) fn tell(&mut self, event: Event) {
        let (connection, bytes) = match event {
            Event::Begun(connection) => (connection, None),
            Event::Over(connection, out, back) => (connection, Some((out, back))),
        };
        let Connection {
            slot,
            address,
            port,
            ..
        } = connection;
        self.waiting.push(ToldConnection {
            interface: INTERFACE + u32::from(slot),
            address,
            protocol: Protocol::Tcp,
            port,
            bytes,
        });
        if self.waiting.len() >= TOLD_AT_ONCE {
            self.flush();
        }
    }

    /// What does not fit the socket's buffer in a flood is lost, as reports of the rules are; it was counted.
    pub(super) fn flush(&mut self) {
        if !self.waiting.is_empty() {
            let bytes = self.waiting.to_bytes();
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let _ = rustix::net::send(&self.socket, &bytes, flags);
            self.waiting.clear();
        }
    }
}
