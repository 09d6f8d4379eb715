//! Where the programs meet packets.

use std::io;

use super::{Event, Gateway, WORLDS};
use crate::link::{Link, Place};
use crate::programs::attach;

impl Gateway {
    fn attach(&self, name: &'static str, place: Place<'_>) -> io::Result<Link> {
        attach(&self.object, name, place).map_err(io::Error::other)
    }

    /// Meets packets of the world at an interface of the host, in whose network namespace the calling thread is.
    ///
    /// # Errors
    /// What the kernel says; there are too many.
    pub fn attach_world(&mut self, interface: u32) -> io::Result<()> {
        if self.worlds.len() >= WORLDS {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let link = self.attach("from_world", Place::Incoming(interface))?;
        self.uplinks.set(&interface, &interface)?;
        self.worlds.push(link);
        Ok(())
    }

    /// Meets packets between the gateway and the host: at the gateway's end of the pair of interfaces, and at the host's, which
    /// is to be moved to the host afterwards and keeps its program.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn attach_host(&mut self, up: u32, host: u32) -> io::Result<()> {
        let links = vec![
            self.attach("to_sandbox", Place::Incoming(up))?,
            self.attach("to_host", Place::Outgoing(up))?,
            self.attach("to_world", Place::Incoming(host))?,
        ];
        self.host = links;
        Ok(())
    }

    /// Meets packets of a sandbox at its interface in the gateway. Its connections are the rules' until it has a policy.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn attach_sandbox(&mut self, slot: u16, interface: u32, group: u32) -> io::Result<()> {
        self.sums.clear(slot.into())?;
        self.policies.pause(slot, group)?;
        let link = self.attach("from_sandbox", Place::Incoming(interface))?;
        self.sandboxes.insert(slot, link);
        Ok(())
    }

    /// Forgets a sandbox and its connections.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn detach_sandbox(&mut self, slot: u16, mut tell: impl FnMut(Event)) -> io::Result<()> {
        let was_attached = self.sandboxes.remove(&slot).is_some();
        self.policies.remove(slot)?;
        if was_attached {
            self.forget_flows(Some(slot), &mut tell)?;
        }
        Ok(())
    }

    /// Takes all programs off their interfaces.
    pub fn detach_all(&mut self) {
        self.sandboxes.clear();
        self.host.clear();
        self.worlds.clear();
    }
}
