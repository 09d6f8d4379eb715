//! A hop through the host: from a sandbox's interface to one that leads outside. Forwarded by the kernel's stack, with such rules
//! as the gateway has and without, and redirected past the stack, in turns.
//!
//! What is redirected meets no rule, no connection tracking and no translation of addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use hearth_ebpf::{Floor, Mode, Path, Redirect, interfaces};
use hearth_testkit::namespaces::Namespace;

use super::world::{nft, serve, without_nft, world};
use crate::client::request;
use crate::load::{self, Observed};
use crate::results::Document;
use crate::scale::Scale;
use crate::suites::pair::Pair;

/// How packets pass the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// By the stack.
    Forwarded,
    /// By the stack, through rules.
    Rules,
    /// By XDP in the driver. The veths' other ends must have a program, too, to take such frames: one that does nothing. And they
    /// must fill in checksums themselves: a frame without a socket buffer cannot say that its checksum is still to come.
    Native,
    /// By XDP in the stack.
    Generic,
    /// By TC.
    Tc,
}

impl Hop {
    /// All of them; the first is what the others are compared with.
    pub const ALL: [Self; 5] = [
        Self::Forwarded,
        Self::Rules,
        Self::Native,
        Self::Generic,
        Self::Tc,
    ];

    /// What the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forwarded => "forwarded",
            Self::Rules => "forwarded through the gateway's rules",
            Self::Native => "redirected by XDP in the driver",
            Self::Generic => "redirected by XDP in the stack",
            Self::Tc => "redirected by TC",
        }
    }

    fn path(self) -> Option<Path> {
        match self {
            Self::Forwarded | Self::Rules => None,
            Self::Native => Some(Path::Xdp(Mode::Native)),
            Self::Generic => Some(Path::Xdp(Mode::Generic)),
            Self::Tc => Some(Path::Tc),
        }
    }
}

/// The category of so many connections.
pub fn category(connections: usize) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("HTTP from a sandbox through the host, {connections} connection{plural}")
}

/// Connections at a time.
pub const CONNECTIONS: [usize; 2] = [1, 16];
const ROUNDS: usize = 12;
const TURN: Duration = Duration::from_millis(300);
const QUICK_TURN: Duration = Duration::from_millis(20);
/// Where the server is, outside.
const OUTSIDE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7_000);
/// Interfaces of the host: to the outside, to the sandbox.
const ENDS: [&str; 2] = ["h0", "s0"];

/// What a packet of a sandbox with a policy passes in the gateway (`gateway/src/rules`), and the host's translation of its address:
/// here in one namespace, so the hop between the two is not counted.
const TABLE: &str = "table inet gateway {
    counter out { }
    counter in { }
    counter connections { }
    set sources { type iface_index . ipv4_addr; elements = { s0 . 198.19.0.2 } }
    set resolved {
        type ipv4_addr . inet_proto . inet_service; flags timeout; elements = { 192.0.2.1 . tcp . 7000 timeout 1h }
    }
    chain spoof {
        type filter hook prerouting priority raw; policy accept;
        iif s0 iif . ip saddr != @sources drop
    }
    chain sent {
        limit rate over 10000 mbytes/second drop
        counter name out
    }
    chain received {
        limit rate over 10000 mbytes/second drop
        counter name in
        accept
    }
    chain limits {
        limit rate over 200000/second drop
        ct count over 200000 drop
        counter name connections
        ct mark set 7
        accept
    }
    chain allowed {
        ip daddr . meta l4proto . th dport @resolved goto limits
        reject
    }
    chain forward {
        type filter hook forward priority filter; policy drop;
        iif vmap { s0 : jump sent }
        oif vmap { s0 : jump received }
        ct state vmap { established : accept, related : accept, invalid : drop }
        meta l4proto { tcp, udp } iif vmap { s0 : goto allowed }
    }
    chain translate {
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr 198.19.0.0/24 masquerade
    }
}";

/// What an interface leaves to the next with the socket buffer, `ethtool -K tx` sets: checksums of what it sends.
const CHECKSUMS: &str = "
import array, fcntl, socket, struct, sys
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
value = array.array('B', struct.pack('II', ETHTOOL_STXCSUM, int(sys.argv[2])))
request = struct.pack('16sP', sys.argv[1].encode(), value.buffer_info()[0])
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), SIOCETHTOOL, request)
print('set')
";

/// Measures them in turns.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    if let Some(reason) = without_nft() {
        document.skip(&category(CONNECTIONS[0]), reason);
        return Ok(());
    }
    let way = Way::make().context("network namespaces for the hops")?;
    let request = request("GET", "/", b"");
    let turn = scale.pick(TURN, QUICK_TURN);
    for connections in CONNECTIONS {
        let mut seen = Hop::ALL.map(|_| Observed::default());
        let mut pairs = Hop::ALL.map(|_| Pair::default());
        for _ in 0..scale.pick(ROUNDS, 1) {
            let mut forwarded = 0.0;
            for ((hop, seen), pair) in Hop::ALL.into_iter().zip(&mut seen).zip(&mut pairs) {
                let opened = way.open(hop)?;
                let drive = || Ok(load::drive(OUTSIDE, &request, connections, turn));
                let observed = way.sandbox.within(drive)?.context(hop.name())?;
                way.close(opened).context(hop.name())?;
                if hop == Hop::Forwarded {
                    forwarded = observed.rate();
                }
                pair.add_rates([forwarded, observed.rate()]);
                seen.extend(&observed);
            }
        }
        let category = category(connections);
        for ((hop, seen), pair) in Hop::ALL.into_iter().zip(seen).zip(pairs) {
            document.figure(&category, hop.name(), seen.rate(), "requests/s");
            document.add(&category, hop.name(), seen.samples);
            if hop != Hop::Forwarded {
                pair.conclude_ratio(&category, [Hop::Forwarded.name(), hop.name()], document);
            }
        }
    }
    Ok(())
}

/// The namespaces, and what is between them.
struct Way {
    sandbox: Namespace,
    host: Namespace,
    outside: Namespace,
    floor: Floor,
}

/// What a hop needs as long as it is used.
enum Opened {
    Nothing,
    Rules,
    Redirect(Hop, Redirect, [OwnedFd; 2]),
}

impl Way {
    fn make() -> anyhow::Result<Self> {
        let (host, outside) = world()?;
        let sandbox = Namespace::make("box")?;
        host.ip(&format!(
            "link add s0 type veth peer name eth0 netns {}",
            sandbox.name()
        ))?;
        for (namespace, words) in [
            (&host, "addr add 198.19.0.1/24 dev s0"),
            (&host, "link set s0 up"),
            (&sandbox, "addr add 198.19.0.2/24 dev eth0"),
            (&sandbox, "link set eth0 up"),
            (&sandbox, "route add default via 198.19.0.1"),
            (&outside, "route add 198.19.0.0/24 via 192.0.2.2"),
        ] {
            namespace.ip(words)?;
        }
        let forward = "/proc/sys/net/ipv4/ip_forward";
        host.within(|| std::fs::write(forward, "1"))?;
        outside.within(|| serve(OUTSIDE))?;
        Ok(Self {
            sandbox,
            host,
            outside,
            floor: Floor::load()?,
        })
    }

    fn open(&self, hop: Hop) -> anyhow::Result<Opened> {
        let Some(path) = hop.path() else {
            if hop == Hop::Forwarded {
                return Ok(Opened::Nothing);
            }
            nft(&self.host, TABLE)?;
            return Ok(Opened::Rules);
        };
        let mut redirect = Redirect::load()?;
        let indices = self.host.within(|| {
            for end in ENDS {
                redirect.attach(end, path).map_err(io::Error::other)?;
            }
            let all = interfaces::list()?;
            let index = |end| all.iter().find(|one| one.name == end).map(|one| one.index);
            Ok(ENDS.map(index))
        })?;
        let [Some(first), Some(second)] = indices else {
            anyhow::bail!("an interface is gone");
        };
        redirect.allow(first, second)?;
        redirect.allow(second, first)?;
        if hop == Hop::Native {
            self.leave_checksums(false)?;
        }
        let others = self.others().map(|(namespace, interface)| {
            namespace.within(|| {
                self.floor
                    .attach(interface, Mode::Native)
                    .map_err(io::Error::other)
            })
        });
        let [first, second] = others;
        Ok(Opened::Redirect(hop, redirect, [first?, second?]))
    }

    /// The other ends of the host's interfaces.
    fn others(&self) -> [(&Namespace, &'static str); 2] {
        [(&self.outside, "c0"), (&self.sandbox, "eth0")]
    }

    fn leave_checksums(&self, is_left: bool) -> anyhow::Result<()> {
        for (namespace, interface) in self.others() {
            let value = if is_left { "1" } else { "0" };
            let arguments = ["-c", CHECKSUMS, interface, value];
            let said = namespace.look("/usr/bin/python3", &arguments)?;
            ensure!(said.trim() == "set", "checksums of {interface}: {said}");
        }
        Ok(())
    }

    fn close(&self, opened: Opened) -> anyhow::Result<()> {
        match opened {
            Opened::Nothing => Ok(()),
            Opened::Rules => nft(&self.host, "delete table inet gateway"),
            Opened::Redirect(hop, redirect, others) => {
                let forwarded = redirect.forwarded()?;
                let was_used = forwarded.len() == 2
                    && forwarded.iter().all(|(_, forwarded)| forwarded.packets > 0);
                ensure!(was_used, "left to the stack: {:?}", redirect.left()?);
                drop(others);
                match hop {
                    Hop::Native => self.leave_checksums(true),
                    _ => Ok(()),
                }
            }
        }
    }
}
