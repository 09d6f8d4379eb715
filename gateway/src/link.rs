//! Interfaces, addresses and routes (`rtnetlink(7)`).

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::net::AddressFamily;

use crate::netlink::Attribute::{Bytes, Nest, Raw, Text};
use crate::netlink::{CREATE, EXCLUSIVE, Netlink};
use crate::protocol::Prefix;

const NEWLINK: u16 = 16;
const DELLINK: u16 = 17;
const GETLINK: u16 = 18;
const NEWADDR: u16 = 20;
const NEWROUTE: u16 = 24;
const NEWNSID: u16 = 88;

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
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
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
pub(crate) struct End<'a> {
    pub(crate) name: &'a str,
    /// Its index, which must be free in the namespace; 0 for any.
    pub(crate) index: u32,
}

/// Manages links, addresses and routes of one network namespace.
pub(crate) struct Route(Netlink);

impl Route {
    /// Those of the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        Netlink::open(None).map(Self)
    }

    /// Those of the namespace in which this socket was opened.
    pub(crate) fn by(socket: OwnedFd) -> Self {
        Self(Netlink::by(socket))
    }

    /// The index of a link.
    pub(crate) fn index_of(&self, name: &str) -> io::Result<u32> {
        // Any socket will do for the request.
        Ok(rustix::net::netdevice::name_to_index(&self.0, name)?)
    }

    /// Creates a pair, with its second end in another network namespace, if one is named.
    pub(crate) fn pair(
        &self,
        here: &End<'_>,
        there: &End<'_>,
        ns: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let head = link(there.index, NOARP);
        let ns = ns.map(|ns| ns.as_raw_fd().to_ne_bytes());
        let mut peer = vec![
            Raw(&head),
            Text(IFLA_IFNAME, there.name),
            Bytes(IFLA_ADDRESS, &HARDWARE),
        ];
        peer.extend(ns.as_ref().map(|ns| Bytes(IFLA_NET_NS_FD, ns)));
        let pair = [
            Text(IFLA_INFO_KIND, "veth"),
            Nest(IFLA_INFO_DATA, &[Nest(VETH_INFO_PEER, &peer)]),
        ];
        let attributes = [
            Text(IFLA_IFNAME, here.name),
            Bytes(IFLA_ADDRESS, &HARDWARE),
            Nest(IFLA_LINKINFO, &pair),
        ];
        let head = link(here.index, NOARP);
        self.0
            .request(NEWLINK, CREATE | EXCLUSIVE, &head, &attributes)
    }

    /// Moves a link to another network namespace, where it has the same name.
    pub(crate) fn send_to(&self, index: u32, ns: BorrowedFd<'_>) -> io::Result<()> {
        let ns = ns.as_raw_fd().to_ne_bytes();
        let to = [Bytes(IFLA_NET_NS_FD, &ns)];
        self.0.request(NEWLINK, 0, &link(index, 0), &to)
    }

    /// Gives another network namespace an id in this one.
    pub(crate) fn name_namespace(&self, ns: BorrowedFd<'_>, id: u32) -> io::Result<()> {
        let (ns, id) = (ns.as_raw_fd().to_ne_bytes(), id.to_ne_bytes());
        let named = [Bytes(NETNSA_NSID, &id), Bytes(NETNSA_FD, &ns)];
        self.0.request(NEWNSID, 0, &[0; 4], &named)
    }

    /// Brings a link up.
    pub(crate) fn up(&self, index: u32) -> io::Result<()> {
        self.0.request(NEWLINK, 0, &link(index, UP), &[])
    }

    /// Returns once a link that is up sends what it is given. Of a pair, the end that was brought up first drops everything until the
    /// kernel has come to it in the background (`net/core/link_watch.c`); to ask for the link has it do so at once.
    pub(crate) fn settle(&self, index: u32) -> io::Result<()> {
        self.0.request(GETLINK, 0, &link(index, 0), &[])
    }

    /// Removes a link and with it the other end of its pair.
    pub(crate) fn remove(&self, index: u32) -> io::Result<()> {
        self.0.request(DELLINK, 0, &link(index, 0), &[])
    }

    /// Assigns an address to a link.
    pub(crate) fn address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        let length = Prefix::host(address).length();
        let head = [[family(address), length, 0, 0], index.to_ne_bytes()].concat();
        let bytes = octets(address);
        let attributes = [
            Bytes(IFA_LOCAL, &bytes),
            Bytes(IFA_ADDRESS, &bytes),
            Bytes(IFA_FLAGS, &IFA_F_NODAD.to_ne_bytes()),
        ];
        self.0
            .request(NEWADDR, CREATE | EXCLUSIVE, &head, &attributes)
    }

    /// Adds a route to a prefix over a link, with this source address.
    pub(crate) fn route(&self, index: u32, to: Prefix, from: Option<IpAddr>) -> io::Result<()> {
        // IPv6 knows one scope only.
        let scope = if to.address().is_ipv4() {
            RT_SCOPE_LINK
        } else {
            0
        };
        let head = [
            [family(to.address()), to.length(), 0, 0],
            [RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST],
            [0; 4],
        ];
        let (index, from) = (index.to_ne_bytes(), from.map(octets));
        let destination = octets(to.address());
        let mut attributes = vec![Bytes(RTA_OIF, &index)];
        if to.length() > 0 {
            attributes.push(Bytes(RTA_DST, &destination));
        }
        if let Some(from) = &from {
            attributes.push(Bytes(RTA_PREFSRC, from));
        }
        self.0
            .request(NEWROUTE, CREATE | EXCLUSIVE, &head.concat(), &attributes)
    }
}

/// `struct ifinfomsg`, with flags to set.
fn link(index: u32, flags: u32) -> Vec<u8> {
    let flags = flags.to_ne_bytes();
    [[0; 4], index.to_ne_bytes(), flags, flags].concat()
}

/// `AF_INET` or `AF_INET6`.
pub(crate) fn family(address: IpAddr) -> u8 {
    let family = match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    family.as_raw() as u8
}

/// An address in network byte order.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}
