//! A flood of datagrams to one function's port, and an innocent client of another's: with a limit for each source in XDP, the
//! same in nftables, and none, in turns.
//!
//! The flood has a veth of its own, as it has receive queues of its own on a network card: what the client loses, it loses to
//! the processor's time that the flood takes, and not to a queue that is full. The generator's frames come as from a network
//! card's driver, without a socket buffer, so that interface has a program in its driver in all three ways: where it is not ours,
//! one that does nothing.
//!
//! The host is one processor: of the server, of who reads from the flooded port, and of the kernel thread that receives (threaded
//! NAPI), which comes before them as an interrupt's work does. Client and generator have another, where the client comes first; but
//! when it wakes up it waits until 64 frames are sent: what it loses by that, it loses in all three ways.

mod processors;
mod seen;
mod turn;

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use hearth_ebpf::limits::{Limits, Rate};
use hearth_ebpf::{Capacity, Flood, Floor, Ingress, Maps, Mode, Wanted, interfaces};
use hearth_testkit::namespaces::Namespace;

use self::processors::{HOSTS, OUTSIDE, pin, place_receiver};
use self::seen::{Quiet, Seen, conclude};
use self::turn::Turn;
use super::frames;
use super::world::{HOST, nft, serve, without_nft, world};
use crate::results::Document;
use crate::scale::Scale;

/// The category in the report.
pub const CATEGORY: &str = "an innocent client in a flood of datagrams";
/// Units of a row's figures: what the client got, and what the generator sent.
pub const REQUESTS: &str = "requests/s";
/// See [`REQUESTS`].
pub const PACKETS: &str = "packets/s";
/// What the generator aims at, packets/s; the last is as many as it can.
pub const STEPS: [u64; 10] = [
    0,
    25_000,
    50_000,
    100_000,
    200_000,
    400_000,
    800_000,
    1_600_000,
    3_200_000,
    u64::MAX,
];
const QUICK_STEPS: [u64; 3] = [STEPS[0], STEPS[2], STEPS[9]];

/// Where the flood is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By us.
    Xdp,
    /// In the netdev family's ingress hook, the first that nftables has.
    Nftables,
    /// Nowhere.
    Nowhere,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Xdp, Self::Nftables, Self::Nowhere];

    /// What the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xdp => "limit in XDP",
            Self::Nftables => "limit in nftables",
            Self::Nowhere => "no limit",
        }
    }
}

/// What the report calls a row.
pub fn row(way: Way, step: u64) -> String {
    let flood = match step {
        0 => "no flood".to_owned(),
        u64::MAX => "all it can".to_owned(),
        step => format!("{} k packets/s", step / 1_000),
    };
    format!("{}, {flood}", way.name())
}

/// What it calls the result.
pub fn keeps(way: Way) -> String {
    format!("{}: flood in which the client keeps 80 %", way.name())
}

/// What it calls the time of the thread that receives, by packet: for a host with as many processors for the flood as it takes, the
/// rates that it bears are as the inverses of these.
pub fn costs(way: Way) -> String {
    format!("{}: a packet of the flood, received", way.name())
}

/// What it calls whether that rate is known: 0 where the client kept as much at all rates, which are no more than the generator
/// gives.
pub fn is_known(way: Way) -> String {
    format!(
        "{}: that rate is within what the generator gives (1: yes)",
        way.name()
    )
}

const ROUNDS: usize = 10;
const TURN: Duration = Duration::from_millis(500);
const QUICK_TURN: Duration = Duration::from_millis(30);
/// The flooded port.
const PORT: u16 = 7_001;
/// The network of the sources.
const SOURCES: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// What each of the 256 sources may send in a second.
const LIMIT: u64 = 10;

const TABLE: &str = "table netdev flood {
    set sources { type ipv4_addr; size 65536; flags dynamic, timeout; timeout 1m; }
    chain ingress {
        type filter hook ingress device f0 priority 0; policy accept;
        udp dport 7001 update @sources { ip saddr limit rate over 10/second burst 10 packets } drop
    }
}";

/// Measures the ways in turns.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    if let Some(reason) = without_nft() {
        document.skip(CATEGORY, reason);
        return Ok(());
    }
    if thread::available_parallelism()?.get() < 2 {
        document.skip(CATEGORY, "the host and the outside need a processor each");
        return Ok(());
    }
    let (host, client) = world().context("network namespaces for the flood")?;
    let frame = prepare(&host, &client)?;
    let flood = client.within(|| Flood::load("g0").map_err(io::Error::other))?;
    let setup = Setup {
        floor: Floor::load()?,
        host,
        client,
        flood,
        frame,
        turn: scale.pick(TURN, QUICK_TURN),
    };
    let steps = scale.pick(&STEPS[..], &QUICK_STEPS[..]);
    let count = Way::ALL.len() * steps.len();
    let mut seen: Vec<Seen> = (0..count).map(|_| Seen::default()).collect();
    let stop = AtomicBool::new(false);
    let socket = setup.host.within(|| UdpSocket::bind((HOST.ip(), PORT)))?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let measured = thread::scope(|scope| {
        // What a server at the port has to do at least.
        scope.spawn(|| {
            pin(HOSTS)?;
            let mut buffer = [0; 2_048];
            while !stop.load(Ordering::Relaxed) {
                let _ = socket.recv(&mut buffer);
            }
            io::Result::Ok(())
        });
        let measured = (0..scale.pick(ROUNDS, 1)).map(|_| {
            let mut quiet = Quiet::default();
            for (way, seen) in Way::ALL.into_iter().zip(seen.chunks_mut(steps.len())) {
                setup.one_way(way, steps, seen, &mut quiet)?;
            }
            anyhow::Ok(quiet)
        });
        let measured = measured.collect::<anyhow::Result<Vec<Quiet>>>();
        stop.store(true, Ordering::Relaxed);
        measured
    });
    let quiet = measured?;
    for (way, seen) in Way::ALL.into_iter().zip(seen.chunks(steps.len())) {
        conclude(way, steps, seen, &quiet, document);
    }
    Ok(())
}

struct Setup {
    host: Namespace,
    client: Namespace,
    floor: Floor,
    flood: Flood,
    frame: Vec<u8>,
    turn: Duration,
}

/// Prepares the host and the flood's interfaces, and says what to send.
fn prepare(host: &Namespace, client: &Namespace) -> anyhow::Result<Vec<u8>> {
    host.within(|| {
        pin(HOSTS)?;
        serve(HOST)
    })?;
    host.ip(&format!(
        "link add f0 type veth peer name g0 netns {}",
        client.name()
    ))?;
    host.ip("link set f0 up")?;
    client.ip("link set g0 up")?;
    // What comes from nowhere is dropped before it costs anything.
    host.ip(&format!("route add {SOURCES}/24 dev f0"))?;
    let all = host.within(interfaces::list)?;
    let interface = all.iter().find(|one| one.name == "f0");
    let interface = interface.context("the interface is gone")?;
    let mut frame = frames::udp(SOURCES, PORT);
    frame[..6].copy_from_slice(&interface.address);
    frames::finish(&mut frame);
    Ok(frame)
}

impl Setup {
    /// All steps of one way.
    fn one_way(
        &self,
        way: Way,
        steps: &[u64],
        seen: &mut [Seen],
        quiet: &mut Quiet,
    ) -> anyhow::Result<()> {
        if way == Way::Xdp {
            let mut ingress = Ingress::load(Capacity::default())?;
            let mut maps = Maps::new(ingress.descriptors()?)?;
            maps.functions.add(1, limits())?;
            maps.ports.give_udp(PORT, 1, false)?;
            self.host.within(|| {
                let attached = ingress.attach("f0", Wanted::Only(Mode::Native));
                attached.map(drop).map_err(io::Error::other)
            })?;
            return self.steps(steps, seen, quiet);
        }
        let attach = || {
            self.floor
                .attach("f0", Mode::Native)
                .map_err(io::Error::other)
        };
        let _attached = self.host.within(attach)?;
        if way == Way::Nowhere {
            return self.steps(steps, seen, quiet);
        }
        nft(&self.host, TABLE)?;
        let measured = self.steps(steps, seen, quiet);
        nft(&self.host, "delete table netdev flood")?;
        measured
    }

    /// Packets of the flood that the host has received.
    fn received(&self) -> anyhow::Result<u64> {
        let counter = "/sys/class/net/f0/statistics/rx_packets";
        let said = self.host.look("cat", &[counter])?;
        said.trim().parse().with_context(|| said.clone())
    }

    fn steps(&self, steps: &[u64], seen: &mut [Seen], quiet: &mut Quiet) -> anyhow::Result<()> {
        // The interface has NAPI as long as it has a program in its driver.
        let script = "echo 1 > /sys/class/net/f0/threaded && cat /sys/class/net/f0/threaded";
        let threaded = self.host.look("sh", &["-c", script])?;
        ensure!(threaded.trim() == "1", "the kernel has no threaded NAPI");
        let receiver = place_receiver("f0").context("the thread that receives")?;
        for (step, seen) in steps.iter().zip(seen) {
            let before = (self.received()?, receiver.spent()?);
            let turn = self.turn(*step)?;
            seen.received += self.received()? - before.0;
            seen.spent += receiver.spent()?.saturating_sub(before.1);
            if *step == 0 {
                quiet.push(turn.client.rate());
            }
            seen.add(&turn);
        }
        quiet.push(self.turn(0)?.client.rate());
        Ok(())
    }

    /// A turn with the client, and a flood of so many packets a second.
    fn turn(&self, step: u64) -> anyhow::Result<Turn> {
        let turn = self.client.within(|| {
            pin(OUTSIDE)?;
            turn::take(&self.flood, &self.frame, step, self.turn)
        });
        let turn = turn.with_context(|| format!("a flood of {step} packets/s"))?;
        let answered = step > 0 || turn.client.samples.len() > 0;
        ensure!(answered, "the client got no answer without a flood");
        Ok(turn)
    }
}

fn limits() -> Limits {
    Limits {
        source: Some(Rate {
            rate: LIMIT,
            burst: LIMIT,
        }),
        ..Limits::default()
    }
}
