//! Connections that do not speak HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use super::{Connection, Connections, Part, Seat};

/// A connection's place in the table, which it keeps until it ends.
pub struct Held {
    _part: Part,
    seat: Seat,
}

impl Held {
    /// The connection.
    pub fn connection(&self) -> Arc<Connection> {
        self.seat.0.clone()
    }
}

impl Connections {
    /// Takes in a connection that does not speak HTTP: busy until it ends. None when all are busy.
    pub fn hold(&self, peer: SocketAddr) -> Option<Held> {
        let seat = self.admit(peer)?;
        let part = Part::of(&seat.0);
        Some(Held { _part: part, seat })
    }
}
