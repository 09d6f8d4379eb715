//! The socket on which the kernel reports refused packets (`NFLOG`). It is set up here and read by the server, which
//! can do nothing else with it: netlink checks both the creator and the user of a socket, and both must be root.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{netlink, sockopt};

use super::netlink::Attribute::Bytes;
use super::netlink::Netlink;

/// `NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG`.
const CONFIG: u16 = 4 << 8 | 1;
/// Attributes and commands (`linux/netfilter/nfnetlink_log.h`).
const COMMAND: u16 = 1;
const MODE: u16 = 2;
const BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
/// Most bytes copied of a packet; a rule may ask for fewer.
const COPIED: u32 = 256;
/// Bytes of reports that may wait for the server. The rest is lost, but counted.
const BUFFER: usize = 1 << 20;

/// Opens one in the calling thread's network namespace.
pub(super) fn open(group: u16) -> io::Result<OwnedFd> {
    let socket = Netlink::open(Some(netlink::NETFILTER))?;
    let group = group.to_be_bytes();
    let head = [0, 0, group[0], group[1]];
    socket.request(CONFIG, 0, &head, &[Bytes(COMMAND, &[BIND])])?;
    let mode = [&COPIED.to_be_bytes()[..], &[COPY_PACKET, 0]].concat();
    socket.request(CONFIG, 0, &head, &[Bytes(MODE, &mode)])?;
    let socket = socket.into_fd();
    sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER)?;
    Ok(socket)
}
