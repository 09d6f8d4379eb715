//! Which port is whose.

use aya::maps::{Array, MapData};

use super::MapError;
use crate::packet::UDP;
use crate::records::{PORT_REDIRECT, PORT_STEER, PORTS_OF_A_PROTOCOL, Port};

/// Who has which port. An update is one store: a packet sees it or not.
pub struct Ports(Array<MapData, Port>);

impl Ports {
    pub(super) fn new(map: Array<MapData, Port>) -> Self {
        Self(map)
    }

    fn index(protocol: u8, port: u16) -> u32 {
        u32::from(port)
            + if protocol == UDP {
                PORTS_OF_A_PROTOCOL
            } else {
                0
            }
    }

    /// Gives a TCP port to a function. With `steer`, its connections go to the listening socket in [`Listeners`].
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn give_tcp(&mut self, port: u16, function: u32, steer: bool) -> Result<(), MapError> {
        let flags = if steer { PORT_STEER } else { 0 };
        Ok(self.0.set(u32::from(port), Port { function, flags }, 0)?)
    }

    /// Gives a UDP port to a function. With `redirect`, its datagrams go to AF_XDP where there is a socket.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn give_udp(&mut self, port: u16, function: u32, redirect: bool) -> Result<(), MapError> {
        let flags = if redirect { PORT_REDIRECT } else { 0 };
        Ok(self
            .0
            .set(Self::index(UDP, port), Port { function, flags }, 0)?)
    }

    /// Takes a port back.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn take(&mut self, protocol: u8, port: u16) -> Result<(), MapError> {
        Ok(self
            .0
            .set(Self::index(protocol, port), Port::default(), 0)?)
    }

    /// The function that has the port.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn owner(&self, protocol: u8, port: u16) -> Result<Option<u32>, MapError> {
        let port = self.0.get(&Self::index(protocol, port), 0)?;
        Ok((port.function != 0).then_some(port.function))
    }
}
