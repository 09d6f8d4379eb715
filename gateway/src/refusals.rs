//! Where the kernel reports what it refused and which connections have begun (`NFLOG`), and which have ended (connection
//! tracking): a netlink socket, set up here and read by the server, which may do nothing else with it: netlink asks who made a
//! socket and who uses it, and both must be allowed to administer the network.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{netlink, sockopt};

use crate::netlink::Attribute::{Bytes, U32};
use crate::netlink::Netlink;

/// `NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG`.
const CONFIG: u16 = 4 << 8 | 1;
/// Attributes and commands (`linux/netfilter/nfnetlink_log.h`).
const COMMAND: u16 = 1;
const MODE: u16 = 2;
const TIMEOUT: u16 = 4;
const BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
/// Most bytes copied of a packet; a rule may ask for fewer.
const COPIED: u32 = 256;
/// Longest that reports wait for others to be told together, hundredths of a second.
const LONGEST: u32 = 10;
/// Group of connections' reports (`linux/netfilter/nfnetlink_compat.h`): those that are over. There is one for those that begin,
/// which costs each connection on the host several microseconds while it begins.
const CONNECTIONS: u32 = 4;
/// Reports that wait for the server, bytes. What does not fit is lost, and counted all the same.
const BUFFER: usize = 1 << 20;

/// Opens one in the calling thread's network namespace.
pub(crate) fn open(group: u16) -> io::Result<OwnedFd> {
    let socket = Netlink::open_in_groups(Some(netlink::NETFILTER), CONNECTIONS)?;
    let group = group.to_be_bytes();
    let head = [0, 0, group[0], group[1]];
    socket.request(CONFIG, 0, &head, &[Bytes(COMMAND, &[BIND])])?;
    let mode = [&COPIED.to_be_bytes()[..], &[COPY_PACKET, 0]].concat();
    socket.request(
        CONFIG,
        0,
        &head,
        &[Bytes(MODE, &mode), U32(TIMEOUT, LONGEST)],
    )?;
    let socket = socket.into_fd();
    sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER)?;
    Ok(socket)
}
