//! Where the programs meet packets.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

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

    /// What attaches a program to the interfaces of sandboxes, on a thread of its own.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn attachments(&self) -> io::Result<Attachments> {
        let program = self.object.program("from_sandbox");
        let program = program.expect("the object has it").fd();
        let program = program.map_err(io::Error::other)?;
        Ok(Attachments {
            program: program.as_fd().try_clone_to_owned()?,
            links: HashMap::new(),
        })
    }

    /// A slot has a sandbox: its connections are the rules' until it has a policy and the program is attached.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn begin_sandbox(&mut self, slot: u16, group: u32) -> io::Result<()> {
        self.sums.clear(slot.into())?;
        self.policies.pause(slot, group)
    }

    /// Forgets a sandbox and its connections.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn end_sandbox(&mut self, slot: u16, mut tell: impl FnMut(Event)) -> io::Result<()> {
        self.policies.remove(slot)?;
        self.forget_flows(Some(slot), &mut tell)
    }

    /// Takes the programs off the host's interfaces.
    pub fn detach_all(&mut self) {
        self.host.clear();
        self.worlds.clear();
    }
}

/// Where the program meets packets of sandboxes: at their interfaces in the gateway. Attaching and detaching take the kernel
/// some 10 ms, because tcx waits until no processor is in the middle of a packet.
pub struct Attachments {
    program: OwnedFd,
    links: HashMap<u16, Link>,
}

impl Attachments {
    /// Attaches it to an interface.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn attach(&mut self, slot: u16, interface: u32) -> io::Result<()> {
        let link = Link::new(self.program.as_fd(), Place::Incoming(interface))?;
        self.links.insert(slot, link);
        Ok(())
    }

    /// Detaches it, if it was attached. At once if the interface is gone.
    pub fn detach(&mut self, slot: u16) {
        self.links.remove(&slot);
    }
}
