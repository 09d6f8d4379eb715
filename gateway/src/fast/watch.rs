//! What closes the fast way: rules of others on the host, which its packets would not meet, and ports that its stack chooses by
//! itself. Opened in the host's own namespace.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::FileExt as _;

use hearth_ebpf::gateway::Gateway;
use hearth_ebpf::interfaces;
use rustix::net::{RecvFlags, netlink};

use crate::netlink::{DUMP, Messages, Netlink, attribute};

/// `NFNL_SUBSYS_NFTABLES << 8`, and messages of it.
const NFTABLES: u16 = 10 << 8;
const GETTABLE: u16 = NFTABLES | 1;
const GETCHAIN: u16 = NFTABLES | 4;
const GETRULE: u16 = NFTABLES | 7;
/// Attributes (`linux/netfilter/nf_tables.h`). The table's name is the first of all three.
const TABLE: u16 = 1;
const OWNER: u16 = 7;
const HOOK: u16 = 4;
const POLICY: u16 = 5;
const DROP: u32 = 0;
/// Netfilter's header, for all families.
const HEAD: [u8; 4] = [0; 4];
/// Groups of events: of nftables, of IPsec policies, as bits.
const RULES: u32 = 1 << 6;
const POLICIES: u32 = 1 << 3;
/// `XFRM_MSG_GETPOLICY`, and its header.
const GETPOLICY: u16 = 0x15;
const POLICY_ID: [u8; 64] = [0; 64];
/// Tables of Hearths, which their sockets own.
const OURS: &str = "hearth";
/// Fewer ports than these are too few.
const PORTS: u32 = 4096;
/// The ports that the stack chooses.
const STACK: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Tables of the older iptables, of which nobody tells.
const LEGACY: [&str; 2] = [
    "/proc/thread-self/net/ip_tables_names",
    "/proc/thread-self/net/ip6_tables_names",
];
/// Longer than any of these files is.
const TEXT: usize = 1024;

/// See the module.
pub(super) struct Watch {
    ask: Netlink,
    rules: Netlink,
    /// None where the kernel has no IPsec.
    ipsec: Option<(Netlink, Netlink)>,
    stack: RangeInclusive<u16>,
    stack_now: File,
    legacy: Vec<File>,
}

/// Interfaces of the host by which packets may come: Ethernet, not a part of another one.
pub(super) fn interfaces() -> io::Result<Vec<u32>> {
    let all = interfaces::list()?;
    let of_world = all.into_iter().filter(|interface| {
        interface.address.len() == 6
            && interface.address.iter().any(|byte| *byte != 0)
            && interface.master.is_none()
            && !interface.name.starts_with(OURS)
    });
    Ok(of_world.map(|interface| interface.index).collect())
}

impl Watch {
    pub(super) fn open() -> io::Result<Self> {
        let open = |protocol, groups| Netlink::open_in_groups(Some(protocol), groups);
        let ipsec = match (open(netlink::XFRM, 0), open(netlink::XFRM, POLICIES)) {
            (Ok(ask), Ok(events)) => Some((ask, events)),
            (Err(error), _) | (_, Err(error)) if is_unknown(&error) => None,
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let legacy = LEGACY.iter().filter_map(|path| File::open(path).ok());
        let stack_now = File::open(STACK)?;
        Ok(Self {
            stack: ports(&stack_now),
            stack_now,
            ask: open(netlink::NETFILTER, 0)?,
            rules: open(netlink::NETFILTER, RULES)?,
            ipsec,
            legacy: legacy.collect(),
        })
    }

    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let ipsec = self.ipsec.iter().map(|(_, events)| events.as_fd());
        ipsec.chain([self.rules.as_fd()])
    }

    /// Takes what was reported. Whether there was anything, or something was lost.
    pub(super) fn drain(&mut self) -> bool {
        let mut any = false;
        for socket in self.sockets() {
            // What it says does not matter: all is asked for anew.
            let mut bytes = [0; 64];
            loop {
                match rustix::net::recv(socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                    Err(rustix::io::Errno::AGAIN) => break,
                    Err(rustix::io::Errno::INTR) => {}
                    Ok(_) | Err(_) => any = true,
                }
            }
        }
        any
    }

    /// The ports that the host's stack chooses by itself.
    pub(super) fn stack(&self) -> RangeInclusive<u16> {
        self.stack.clone()
    }

    /// Why it is to be closed.
    pub(super) fn reason(&mut self) -> Option<String> {
        self.silent_reason().or_else(|| {
            let found = self.foreign_rules().and_then(|found| match found {
                Some(found) => Ok(Some(found)),
                None => self.foreign_policies(),
            });
            found.unwrap_or_else(|error| {
                Some(format!("the rules of others cannot be read: {error}"))
            })
        })
    }

    /// The same, of what nobody reports.
    pub(super) fn silent_reason(&self) -> Option<String> {
        let (first, last) = (self.stack.start(), self.stack.end());
        if Gateway::ports(&self.stack) < PORTS {
            return Some(format!(
                "net.ipv4.ip_local_port_range ({first} {last}) leaves too few ports"
            ));
        }
        // The rules keep away from the others.
        if ports(&self.stack_now) != self.stack {
            return Some(format!(
                "net.ipv4.ip_local_port_range was {first} {last} when Hearth started"
            ));
        }
        let tables = self
            .legacy
            .iter()
            .map(|file| read(file).unwrap_or_default());
        let found = tables.into_iter().find(|text| !text.trim().is_empty());
        found.map(|text| {
            let names = text.split_whitespace().collect::<Vec<_>>().join(", ");
            format!("iptables has rules on this host ({names})")
        })
    }

    fn dump(&self, kind: u16, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let mut messages = Messages::default();
        messages.begin(kind, DUMP, &HEAD);
        self.ask.ask(&messages, |_, body| {
            each(body.get(HEAD.len()..).unwrap_or(&[]))
        })
    }

    /// The first table of somebody else that does anything: it has rules, or drops what it does not know.
    fn foreign_rules(&self) -> io::Result<Option<String>> {
        let mut ours = Vec::new();
        self.dump(GETTABLE, |table| {
            let name = text(table, TABLE);
            if name.starts_with(OURS) && attribute(table, OWNER).is_some() {
                ours.push(name);
            }
        })?;
        let mut found = None;
        let mut look = |table: &[u8], does_something: bool| {
            let name = text(table, TABLE);
            if does_something && found.is_none() && !ours.contains(&name) {
                found = Some(format!(
                    "the firewall on this host has rules (table {name})"
                ));
            }
        };
        self.dump(GETRULE, |rule| look(rule, true))?;
        self.dump(GETCHAIN, |chain| {
            let policy = attribute(chain, POLICY).and_then(|value| value.try_into().ok());
            let drops = policy.is_some_and(|policy| u32::from_be_bytes(policy) == DROP);
            look(chain, drops && attribute(chain, HOOK).is_some());
        })?;
        Ok(found)
    }

    fn foreign_policies(&self) -> io::Result<Option<String>> {
        let Some((ask, _)) = &self.ipsec else {
            return Ok(None);
        };
        let mut messages = Messages::default();
        messages.begin(GETPOLICY, DUMP, &POLICY_ID);
        let mut found = None;
        ask.ask(&messages, |_, _| {
            found = Some("IPsec has policies on this host".to_owned());
        })?;
        Ok(found)
    }
}

/// All, if it cannot be read.
fn ports(file: &File) -> RangeInclusive<u16> {
    let text = read(file).unwrap_or_default();
    let mut words = text.split_whitespace().map(str::parse::<u16>);
    match (words.next(), words.next()) {
        (Some(Ok(first)), Some(Ok(last))) if first <= last => first..=last,
        _ => 0..=u16::MAX,
    }
}

fn text(attributes: &[u8], kind: u16) -> String {
    let bytes = attribute(attributes, kind).unwrap_or_default();
    let name = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    String::from_utf8_lossy(name).into_owned()
}

fn read(file: &File) -> io::Result<String> {
    let mut bytes = [0; TEXT];
    let length = file.read_at(&mut bytes, 0)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// The kernel does not have it.
fn is_unknown(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::PROTONOSUPPORT)
}
