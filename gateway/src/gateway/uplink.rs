//! Connects the gateway to the host's own network namespace, once a sandbox needs it.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use hearth_host::SandboxError;

use super::sysctl::Forwarding;
use super::{Gateway, default};
use crate::address::{Slots, UPLINK};
use crate::fast::Fast;
use crate::link::{End, Route};
use crate::nft::Nftables;
use crate::protocol::Prefix;
use crate::rules;

/// Name of the gateway's interface to the host. On the host, it gets the first of these names that is free: another
/// Hearth may have one.
const OUTWARD: &str = "up";
const HOST_NAMES: u32 = 16;
/// The id of the host's own namespace in the gateway.
const HOST: u32 = 1;

/// What was opened in the host's own network namespace, which is not entered any more.
pub(crate) struct Uplink {
    namespace: OwnedFd,
    route: Route,
    /// Holds the table there, which disappears with it.
    nftables: Nftables,
    forwarding: Forwarding,
    /// Whether the gateway is connected to the host.
    pub(super) is_up: bool,
}

impl Uplink {
    /// In the calling thread's namespace, which stays unchanged.
    pub(super) fn open(has_ipv6: bool) -> io::Result<Self> {
        Ok(Self {
            namespace: fs::File::open("/proc/thread-self/ns/net")?.into(),
            route: Route::open()?,
            nftables: Nftables::open()?,
            forwarding: Forwarding::open(has_ipv6)?,
            is_up: false,
        })
    }

    /// Gives the host's own namespace an id in the gateway, the namespace of this socket.
    pub(super) fn name_namespace(&self, of_gateway: &Route) -> io::Result<()> {
        of_gateway.name_namespace(self.namespace.as_fd(), HOST)
    }

    /// The only directory in which something is opened later.
    pub(crate) fn directory(&self) -> Option<BorrowedFd<'_>> {
        self.forwarding.six.as_ref().map(|fd| fd.as_fd())
    }
}

impl Gateway {
    /// See [`Uplink::directory`].
    pub(crate) fn directory(&self) -> Option<BorrowedFd<'_>> {
        self.uplink.directory()
    }

    /// Joins the gateway to the host's own network namespace, if it is not.
    pub(super) fn join(&mut self) -> Result<(), SandboxError> {
        if self.uplink.is_up {
            return Ok(());
        }
        let failed = |error: io::Error| SandboxError::step("network", error);
        let number = self.pair_with_host().map_err(failed)?;
        let name = host_name(number);
        let index = match self.join_as(&name) {
            Ok(index) => index,
            Err(error) => {
                // The next sandbox tries again.
                let _ = self.route.remove(UPLINK);
                let _ = rules::leave(&self.uplink.nftables, &name);
                return Err(failed(error));
            }
        };
        if let Ok(fast) = &mut self.fast {
            fast.connect(index, number, HOST, &self.addresses);
        }
        self.uplink.is_up = true;
        Ok(())
    }

    /// Does on the host what the interface of this name there needs, and returns its index.
    fn join_as(&self, name: &str) -> io::Result<u32> {
        let Uplink {
            route,
            nftables,
            forwarding,
            ..
        } = &self.uplink;
        let index = route.index_of(name)?;
        let ports = self.fast.as_ref().ok().map(Fast::stack);
        rules::join(nftables, index, name, &self.addresses, ports.as_ref())?;
        route.up(index)?;
        for block in self.blocks() {
            route.route(index, block, None)?;
        }
        forwarding.enable()?;
        Ok(index)
    }

    /// Creates the pair of interfaces to the host, takes the addresses for its number, and returns the number.
    fn pair_with_host(&mut self) -> io::Result<u32> {
        let here = End {
            name: OUTWARD,
            index: UPLINK,
        };
        for number in 0..HOST_NAMES {
            match self.pair_as(&here, &host_name(number)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    let joined = made.and_then(|()| self.take_share(number));
                    if joined.is_err() {
                        let _ = self.route.remove(UPLINK);
                    }
                    return joined.map(|()| number);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The end on the host gets its program here, because there nothing can be attached any more.
    fn pair_as(&mut self, here: &End<'_>, name: &str) -> io::Result<()> {
        let there = End { name, index: 0 };
        let host = self.uplink.namespace.as_fd();
        let Ok(fast) = &mut self.fast else {
            return self.route.pair(here, &there, Some(host));
        };
        self.route.pair(here, &there, None)?;
        let made = self.route.index_of(name).and_then(|index| {
            if let Err(error) = fast.attach_host(index) {
                fast.fail(&format!("the interface to the host: {error}"));
            }
            self.route.send_to(index, host)
        });
        if made.is_err() {
            let _ = self.route.remove(UPLINK);
        }
        made
    }

    fn take_share(&mut self, number: u32) -> io::Result<()> {
        let share = self.all.share(number);
        self.addresses = share.ok_or(io::ErrorKind::AddrNotAvailable)?;
        self.slots = Slots::new(&self.addresses);
        self.route.up(UPLINK)?;
        for address in self.present(self.addresses.of(0)) {
            self.route.address(UPLINK, address)?;
            self.route.route(UPLINK, default(address), None)?;
        }
        Ok(())
    }

    fn blocks(&self) -> impl Iterator<Item = Prefix> {
        let has_ipv6 = self.has_ipv6;
        let blocks = self.addresses.blocks().into_iter();
        blocks.filter(move |block| has_ipv6 || block.address().is_ipv4())
    }
}

fn host_name(number: u32) -> String {
    format!("hearth{number}")
}
