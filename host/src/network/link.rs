//! Interfaces, addresses and routes (`rtnetlink(7)`).

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd as _};

use rustix::net::AddressFamily;

use super::netlink::{ACK, CREATE, EXCLUSIVE, Messages, Netlink};
use crate::protocol::Prefix;

const NEWLINK: u16 = 16;
const DELLINK: u16 = 17;
const NEWADDR: u16 = 20;
const NEWROUTE: u16 = 24;

/// Attributes of links (`linux/if_link.h`), addresses and routes.
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;

const UP: u32 = 0x1;
/// Without neighbour discovery: the other end has the same address and accepts everything.
const NOARP: u32 = 0x80;
/// The hardware address of all our interfaces: a locally administered one.
const HARDWARE: [u8; 6] = [0x02, 0, 0, 0, 0, 1];
/// No duplicate address detection.
const IFA_F_NODAD: u32 = 2;
/// The main table, a static route, link scope, to a host or prefix.
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;

/// One end of a veth pair.
pub(super) struct End<'a> {
    pub(super) name: &'a str,
    /// Its index, which must be free in the namespace; 0 for any.
    pub(super) index: u32,
}

/// Manages links, addresses and routes of one network namespace.
pub(super) struct Route(Netlink);

impl Route {
    /// Those of the calling thread's namespace.
    pub(super) fn open() -> io::Result<Self> {
        Netlink::open(None).map(Self)
    }

    /// Creates a pair, with its second end in another network namespace.
    pub(super) fn pair(&self, here: &End<'_>, there: &End<'_>, ns: impl AsFd) -> io::Result<()> {
        let mut messages = Messages::default();
        messages
            .begin(NEWLINK, ACK | CREATE | EXCLUSIVE, &link(here.index, NOARP))
            .put_text(IFLA_IFNAME, here.name)
            .put(IFLA_ADDRESS, &HARDWARE)
            .nest(IFLA_LINKINFO, |info| {
                info.put_text(IFLA_INFO_KIND, "veth")
                    .nest(IFLA_INFO_DATA, |data| {
                        data.nest(VETH_INFO_PEER, |peer| {
                            peer.raw(&link(there.index, NOARP))
                                .put_text(IFLA_IFNAME, there.name)
                                .put(IFLA_ADDRESS, &HARDWARE)
                                .put(IFLA_NET_NS_FD, &ns.as_fd().as_raw_fd().to_ne_bytes());
                        });
                    });
            });
        self.0.send(&messages)
    }

    /// Brings a link up.
    pub(super) fn up(&self, index: u32) -> io::Result<()> {
        let mut messages = Messages::default();
        messages.begin(NEWLINK, ACK, &link(index, UP));
        self.0.send(&messages)
    }

    /// Removes a link and with it the other end of its pair.
    pub(super) fn remove(&self, index: u32) -> io::Result<()> {
        let mut messages = Messages::default();
        messages.begin(DELLINK, ACK, &link(index, 0));
        self.0.send(&messages)
    }

    /// Assigns an address to a link.
    pub(super) fn address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut messages = Messages::default();
        let length = Prefix::host(address).length();
        let mut head = vec![family(address), length, 0, 0];
        head.extend_from_slice(&index.to_ne_bytes());
        messages
            .begin(NEWADDR, ACK | CREATE | EXCLUSIVE, &head)
            .put(IFA_LOCAL, &octets(address))
            .put(IFA_ADDRESS, &octets(address))
            .put(IFA_FLAGS, &IFA_F_NODAD.to_ne_bytes());
        self.0.send(&messages)
    }

    /// Adds a route to a prefix over a link, with this source address.
    pub(super) fn route(&self, index: u32, to: Prefix, from: Option<IpAddr>) -> io::Result<()> {
        let mut messages = Messages::default();
        // IPv6 knows one scope only.
        let scope = if to.address().is_ipv4() {
            RT_SCOPE_LINK
        } else {
            0
        };
        let head = [
            family(to.address()),
            to.length(),
            0,
            0,
            RT_TABLE_MAIN,
            RTPROT_STATIC,
            scope,
            RTN_UNICAST,
            0,
            0,
            0,
            0,
        ];
        messages.begin(NEWROUTE, ACK | CREATE | EXCLUSIVE, &head);
        if to.length() > 0 {
            messages.put(RTA_DST, &octets(to.address()));
        }
        messages.put(RTA_OIF, &index.to_ne_bytes());
        if let Some(from) = from {
            messages.put(RTA_PREFSRC, &octets(from));
        }
        self.0.send(&messages)
    }
}

/// `struct ifinfomsg`, with flags to set.
fn link(index: u32, flags: u32) -> Vec<u8> {
    let flags = flags.to_ne_bytes();
    [[0; 4], index.to_ne_bytes(), flags, flags].concat()
}

fn family(address: IpAddr) -> u8 {
    let family = match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    family.as_raw() as u8
}

/// An address in network byte order.
pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}
