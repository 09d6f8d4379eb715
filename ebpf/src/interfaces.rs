//! The interfaces of the host, as rtnetlink lists them: which lie on which, and what is attached to them.

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// What the kernel calls its kind: `veth`, `vlan`, `macvlan`, `bridge`, …; empty for hardware.
    pub kind: String,
    /// The interface that it lies on (VLAN, macvlan), or a veth's other end.
    pub link: Option<u32>,
    /// The bridge or bond that it belongs to.
    pub master: Option<u32>,
    /// Its hardware address.
    pub address: Vec<u8>,
    /// How many receive queues it has; of some kinds (veth), fewer are in use.
    pub receive_queues: u32,
    /// Bytes of the largest IP packet that it sends.
    pub mtu: u32,
    /// Ids of the XDP programs that are attached to it.
    pub xdp: Vec<u32>,
}

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_XDP: u16 = 43;
/// Of the driver, of the stack, of the hardware.
const IFLA_XDP_PROGRAMS: [u16; 3] = [5, 6, 7];
const MESSAGE_HEADER: usize = 16;
const INTERFACE_HEADER: usize = 16;
/// Kinds that hand on what the interface below them received.
const STACKED: [&str; 4] = ["vlan", "macvlan", "macvtap", "ipvlan"];

/// The interfaces of the calling thread's network namespace.
///
/// # Errors
/// What the kernel answered.
pub fn list() -> std::io::Result<Vec<Interface>> {
    // Without a protocol it is NETLINK_ROUTE, whose number is 0.
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut request = Vec::with_capacity(MESSAGE_HEADER + INTERFACE_HEADER);
    request.extend(((MESSAGE_HEADER + INTERFACE_HEADER) as u32).to_ne_bytes());
    request.extend(RTM_GETLINK.to_ne_bytes());
    request.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    request.resize(MESSAGE_HEADER + INTERFACE_HEADER, 0);
    sendto(
        &socket,
        &request,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut interfaces = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (_, length) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..length.min(buffer.len())];
        while let Some((kind, body, next)) = message(rest) {
            match kind {
                NLMSG_DONE => return Ok(interfaces),
                NLMSG_ERROR => {
                    let code = body.get(..4).map_or(0, |code| {
                        i32::from_ne_bytes(code.try_into().expect("4 bytes"))
                    });
                    return Err(Errno::from_raw_os_error(-code).into());
                }
                RTM_NEWLINK => interfaces.extend(interface(body)),
                _ => {}
            }
            rest = next;
        }
    }
}

/// The first message's type and body, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let body = bytes.get(MESSAGE_HEADER..length)?;
    let next = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, body, next))
}

fn interface(body: &[u8]) -> Option<Interface> {
    let mut interface = Interface {
        index: u32_at(body, 4)?,
        ..Interface::default()
    };
    for (kind, value) in attributes(body.get(INTERFACE_HEADER..)?) {
        match kind {
            IFLA_ADDRESS => value.clone_into(&mut interface.address),
            IFLA_IFNAME => interface.name = text(value),
            IFLA_MTU => interface.mtu = u32_at(value, 0)?,
            IFLA_LINK => interface.link = u32_at(value, 0).filter(|link| *link != 0),
            IFLA_MASTER => interface.master = u32_at(value, 0),
            IFLA_NUM_RX_QUEUES => interface.receive_queues = u32_at(value, 0)?,
            IFLA_LINKINFO => {
                let kind = attributes(value).find(|(kind, _)| *kind == IFLA_INFO_KIND);
                interface.kind = kind.map(|(_, value)| text(value)).unwrap_or_default();
            }
            IFLA_XDP => {
                let programs =
                    attributes(value).filter(|(kind, _)| IFLA_XDP_PROGRAMS.contains(kind));
                interface.xdp = programs.filter_map(|(_, value)| u32_at(value, 0)).collect();
            }
            _ => {}
        }
    }
    Some(interface)
}

/// The attributes in a body. Ends at the first that is not whole.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn text(value: &[u8]) -> String {
    let end = value
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

impl Interface {
    /// Whether packets that one of the two receives are received by the other, too.
    #[must_use]
    pub fn shares_packets_with(&self, other: &Self) -> bool {
        let lies_on = |upper: &Self, lower: &Self| {
            upper.link == Some(lower.index) && STACKED.contains(&upper.kind.as_str())
                || lower.master == Some(upper.index)
        };
        lies_on(self, other) || lies_on(other, self)
    }
}
