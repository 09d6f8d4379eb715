//! The programs that meet packets in the kernel: what they cost a packet (`BPF_PROG_TEST_RUN`), and how long a port takes to
//! become a function's; requests over a veth, and an innocent client in a flood, with the ingress and without.

pub mod datagrams;
mod echo;
pub mod flood;
mod frames;
pub mod function;
pub mod hops;
mod steady;
pub mod world;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use hearth_ebpf::limits::{Limits, Rate};
use hearth_ebpf::{Capacity, Floor, Ingress, LoadError, Maps, Verdict};
use hearth_host::scheduling::{Scheduling, schedule};
use rustix::thread::gettid;

use self::frames::{ACK, DENIED, SENDER, SYN, listed, not_ip, tcp, udp};
use crate::results::{Document, Samples};
use crate::scale::Scale;

/// The category of the packets.
pub const PACKET: &str = "a packet in XDP (means of 20,000)";
/// What the report calls the program that does nothing.
pub const FLOOR: &str = "floor: a program that does nothing";
/// The category of the ports.
pub const PORT: &str = "a change of ports";

/// What may become of a packet.
#[derive(Clone, Copy)]
pub enum Fate {
    /// The least: not even IP.
    NotIp,
    /// To a port that no function has.
    NotOurs,
    /// Of a connection that exists.
    Counted,
    /// A SYN, with a limit for its source and one for all.
    Limited,
    /// A datagram, the same.
    LimitedDatagram,
    /// From a source on the deny list.
    Denied,
}

impl Fate {
    const ALL: [Self; 6] = [
        Self::NotIp,
        Self::NotOurs,
        Self::Counted,
        Self::Limited,
        Self::LimitedDatagram,
        Self::Denied,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not IP, passed",
            Self::NotOurs => "not ours, passed",
            Self::Counted => "ours, counted",
            Self::Limited => "a SYN, counted and limited",
            Self::LimitedDatagram => "a datagram, counted and limited",
            Self::Denied => "denied, dropped",
        }
    }

    /// The packet; `turn` tells ports apart.
    fn packet(self, ports: u16, turn: u16) -> Vec<u8> {
        let port = FIRST_PORT + turn % ports;
        match self {
            Self::NotIp => not_ip(),
            Self::NotOurs => tcp(SENDER, 9, ACK),
            Self::Counted => tcp(SENDER, port, ACK),
            Self::Limited => tcp(SENDER, port, SYN),
            Self::LimitedDatagram => udp(SENDER, port),
            Self::Denied => udp(DENIED, port),
        }
    }

    fn verdict(self) -> u32 {
        const DROP: u32 = 1;
        const PASS: u32 = 2;
        if matches!(self, Self::Denied) {
            DROP
        } else {
            PASS
        }
    }
}

/// Ports that functions have.
pub const PORTS: [u16; 3] = [1, 1_000, 10_000];
/// Prefixes on the lists.
pub const PREFIXES: [usize; 2] = [0, 1_000];
const FIRST_PORT: u16 = 20_000;
/// Functions that share the ports.
const FUNCTIONS: u16 = 1_000;
/// Repetitions of one test run: the kernel says the mean.
const REPEAT: u32 = 20_000;
/// Limits that are never reached: a packet takes its tokens, and passes.
const HIGH: Rate = Rate {
    rate: 500_000_000,
    burst: 1 << 40,
};

/// What the report calls a packet's row.
pub fn row(fate: Fate, ports: u16, prefixes: usize) -> String {
    let ports = if ports == 1 {
        "1 port".to_owned()
    } else {
        format!("{ports} ports")
    };
    let lists = match prefixes {
        0 => String::new(),
        count => format!(", {count} prefixes listed"),
    };
    format!("{}, {ports}{lists}", fate.name())
}

/// Measures all of it.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let Some(mut setups) = setups(document)? else {
        return Ok(());
    };
    compare(&mut setups, scale, document)?;
    if let Some(largest) = setups.last_mut() {
        changes(&mut largest.maps, scale, document)?;
    }
    drop(setups);
    world::run(scale, document)?;
    steady::run(scale, document)?;
    datagrams::run(scale, document)?;
    hops::run(scale, document)?;
    flood::run(scale, document)
}

/// Measures what a packet costs.
pub fn packets(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    setups(document)?.map_or(Ok(()), |mut setups| compare(&mut setups, scale, document))
}

/// One for each number of ports and prefixes, or `None` where nothing can be loaded.
fn setups(document: &mut Document) -> anyhow::Result<Option<Vec<Setup>>> {
    let mut setups = Vec::new();
    for ports in PORTS {
        for prefixes in PREFIXES {
            match setup(ports, prefixes) {
                Ok(setup) => setups.push(setup),
                Err(error) => match error.downcast::<LoadError>()? {
                    LoadError::Maps(reason) => {
                        document.skip("the ingress", reason);
                        return Ok(None);
                    }
                    refused @ LoadError::Refused { .. } => return Err(refused.into()),
                },
            }
        }
    }
    Ok(Some(setups))
}

struct Setup {
    ports: u16,
    prefixes: usize,
    ingress: Ingress,
    maps: Maps,
}

fn setup(ports: u16, prefixes: usize) -> anyhow::Result<Setup> {
    let ingress = Ingress::load(Capacity::default())?;
    let mut maps = Maps::new(ingress.descriptors()?)?;
    let limits = Limits {
        source: Some(HIGH),
        total: Some(HIGH),
        tracks_sources: true,
    };
    for function in 1..=ports.min(FUNCTIONS) {
        maps.functions.add(function.into(), limits)?;
    }
    for port in 0..ports {
        give(&mut maps, port)?;
    }
    for number in 0..prefixes {
        let (address, length) = listed(number);
        maps.lists.insert(address, length, Verdict::Deny, None)?;
    }
    Ok(Setup {
        ports,
        prefixes,
        ingress,
        maps,
    })
}

/// Gives one of the ports to its function, of both protocols.
fn give(maps: &mut Maps, number: u16) -> anyhow::Result<()> {
    let function = u32::from(1 + number % FUNCTIONS);
    let port = FIRST_PORT + number;
    maps.ports.give_tcp(port, function, true)?;
    maps.ports.give_udp(port, function, false)?;
    Ok(())
}

fn compare(setups: &mut [Setup], scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let repeat = scale.pick(REPEAT, 100);
    let rows: Vec<(Fate, usize)> = Fate::ALL
        .into_iter()
        .flat_map(|fate| (0..setups.len()).map(move |setup| (fate, setup)))
        .collect();
    let (floor, mut least) = (Floor::load()?, Samples::batches(repeat as usize));
    let mut found = vec![Samples::batches(repeat as usize); rows.len()];
    for turn in 0..scale.pick(100, 10) {
        let (_, nanoseconds) = floor.test_run(&not_ip(), repeat)?;
        least.push(Duration::from_nanos(nanoseconds.max(1)) * repeat);
        for (&(fate, setup), samples) in rows.iter().zip(&mut found) {
            let nanoseconds = setups[setup].one(fate, turn, repeat)?;
            // The kernel counts whole nanoseconds.
            samples.push(Duration::from_nanos(nanoseconds.max(1)) * repeat);
        }
    }
    document.add(PACKET, FLOOR, least);
    for ((fate, setup), samples) in rows.into_iter().zip(found) {
        let setup = &setups[setup];
        document.add(PACKET, &row(fate, setup.ports, setup.prefixes), samples);
    }
    Ok(())
}

impl Setup {
    /// Nanoseconds of a packet. A source is denied only where it sends: otherwise the lists are as long as the row says.
    fn one(&mut self, fate: Fate, turn: u16, repeat: u32) -> anyhow::Result<u64> {
        let denied = matches!(fate, Fate::Denied);
        if denied {
            let lists = &mut self.maps.lists;
            lists.insert(DENIED.into(), 32, Verdict::Deny, None)?;
        }
        let packet = fate.packet(self.ports, turn * 17);
        let (verdict, nanoseconds) = self.ingress.test_run(&packet, repeat)?;
        ensure!(verdict == fate.verdict(), "{}: {verdict}", fate.name());
        if denied {
            self.maps.lists.remove(DENIED.into(), 32)?;
        }
        Ok(nanoseconds)
    }
}

/// What the report calls the time until the next packet to a port is a function's.
pub const ADDED: &str = "one port more, beside 10000";
/// What it calls the datagrams to another port that were lost meanwhile.
pub const LOST: &str = "lost of another port's exchanges meanwhile";
/// What it calls a function that is new.
pub const FUNCTION: &str = "a function with its limits";

fn changes(maps: &mut Maps, scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let count = scale.pick(20_000, 20);
    // What a change takes, and not for how long its thread waits for a processor.
    let urgent = || {
        schedule(gettid(), Scheduling::RealTime)?;
        change(maps, count)
    };
    let [added, taken, functions] =
        thread::scope(|scope| scope.spawn(urgent).join().expect("no panic"))?;
    document.add(PORT, ADDED, added);
    document.add(PORT, "one port less", taken);
    document.add(PORT, FUNCTION, functions);
    Ok(())
}

/// Adds a port, takes it away, and adds a function, so many times.
fn change(maps: &mut Maps, count: usize) -> anyhow::Result<[Samples; 3]> {
    let mut samples: [Samples; 3] = std::array::from_fn(|_| Samples::default());
    let [added, taken, functions] = &mut samples;
    let port = FIRST_PORT + PORTS[2];
    for _ in 0..count {
        let begun = Instant::now();
        maps.ports.give_tcp(port, 1, true)?;
        added.push(begun.elapsed());
        let begun = Instant::now();
        maps.ports.take(hearth_ebpf::packet::TCP, port)?;
        taken.push(begun.elapsed());
        let begun = Instant::now();
        maps.functions
            .add(u32::from(FUNCTIONS) + 1, Limits::default())?;
        functions.push(begun.elapsed());
    }
    Ok(samples)
}
