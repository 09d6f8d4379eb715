//! The fast way of sandboxes' TCP connections, past the rules: its programs and its maps.
//!
//! Loading, and attaching to the host's interfaces, are for root. The rest needs `CAP_NET_ADMIN`, in the network namespace that
//! an interface is in.
//!
//! - `trial`: for tests. `attach`: where they meet packets. `flows`: connections, and when they are forgotten. `policy`: what may begin. `table`: maps. [`records`]: their entries.

mod attach;
mod flows;
mod policy;
pub mod records;
mod table;
mod trial;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use aya::programs::SchedClassifier;
use aya::{Ebpf, EbpfLoader};

pub use self::attach::Attachments;
pub use self::flows::{Connection, Event, TICKS_A_SECOND};
use self::policy::Policies;
pub use self::policy::{Limits, Network, Policy, Port};
use self::records::{Back, BackKey, Flow, FlowKey, LOWEST_PORT, NETWORK_OPEN, Route, Sums, Ways};
use self::table::{Open, PerCpu, Table};
pub use self::trial::SLOT as TEST_SLOT;
use crate::clock;
use crate::link::Link;
use crate::programs::{LoadError, load, program, report, told};
use crate::report::ProgramReport;

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/gateway.o"));

const PROGRAMS: [&str; 5] = [
    "from_sandbox",
    "to_world",
    "from_world",
    "to_sandbox",
    "to_host",
];
/// Most interfaces of the host at which packets are met: those of the map `uplinks`.
const WORLDS: usize = 64;
/// The first epoch, so that there are some before it.
const EPOCH: u32 = 2;

/// Where the gateway is, when it is connected to the host.
#[derive(Clone, Copy, Debug)]
pub struct Connected {
    /// Index of its interface in the host's own namespace.
    pub interface: u32,
    /// The id of the host's own namespace in the gateway's.
    pub host: u32,
    /// The address of slot 0.
    pub first4: Ipv4Addr,
    /// The same of IPv6, whose last 32 bits are ignored.
    pub first6: Ipv6Addr,
}

/// The programs, what they are attached to, and their maps.
pub struct Gateway {
    object: Ebpf,
    programs: Vec<ProgramReport>,
    worlds: Vec<Link>,
    uplinks: Table<u32, u32>,
    host: Vec<Link>,
    network: records::Network,
    networks: Table<u32, records::Network>,
    policies: Policies,
    flows: Table<FlowKey, Flow>,
    back: Table<BackKey, Back>,
    routes: Table<[u8; 16], Route>,
    open: Open,
    sums: PerCpu<Sums>,
    ways: PerCpu<Ways>,
    /// Connections that began in this epoch or earlier were told.
    told: u32,
    /// How many connections had begun when `flows` was last found empty; none if it was not.
    empty_at: Option<u64>,
}

impl Gateway {
    /// Creates the maps and loads the programs. The fast way is closed.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load() -> Result<Self, LoadError> {
        let maps = |error: &dyn std::error::Error| LoadError::Maps(told(error));
        // Nothing here depends on the kernel's types, which the loader has read nevertheless.
        let mut object = EbpfLoader::new()
            .btf(None)
            .load(OBJECT)
            .map_err(|error| maps(&error))?;
        let mut programs = Vec::new();
        for name in PROGRAMS {
            let loaded = program::<SchedClassifier>(&mut object, name);
            load(|| loaded.load()).map_err(|error| LoadError::Refused {
                name,
                log: told(&error),
            })?;
            programs.push(report(name, loaded.info()));
        }
        let opened = |error: io::Error| LoadError::Maps(error.to_string());
        Ok(Self {
            uplinks: Table::of(&object, "uplinks").map_err(opened)?,
            networks: Table::of(&object, "network").map_err(opened)?,
            policies: Policies::of(&object).map_err(opened)?,
            flows: Table::of(&object, "flows").map_err(opened)?,
            back: Table::of(&object, "back").map_err(opened)?,
            routes: Table::of(&object, "routes").map_err(opened)?,
            open: Open::of(&object).map_err(opened)?,
            sums: PerCpu::of(&object, "sums").map_err(opened)?,
            ways: PerCpu::of(&object, "ways").map_err(opened)?,
            object,
            programs,
            worlds: Vec::new(),
            host: Vec::new(),
            network: records::Network {
                epoch: EPOCH,
                ..records::Network::default()
            },
            told: EPOCH - 1,
            empty_at: None,
        })
    }

    /// The programs, with their cost.
    #[must_use]
    pub fn programs(&self) -> &[ProgramReport] {
        &self.programs
    }

    /// Networks that no sandbox reaches, and those that one reaches only where its policy lists them.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn classify(&self, forbidden: &[Network], permitted: &[Network]) -> io::Result<()> {
        self.policies.classify(forbidden, permitted)
    }

    /// Tells the programs where the gateway is. To be called while the fast way is closed.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn connect(&mut self, connected: Connected) -> io::Result<()> {
        let mut first = connected.first6.octets();
        first[12..].copy_from_slice(&connected.first4.octets());
        self.network.interface = connected.interface;
        self.network.host = connected.host;
        self.network.first = first;
        self.networks.set(&0, &self.network)
    }

    /// Opens the fast way. `stack` are the ports that the host's stack chooses by itself.
    ///
    /// # Errors
    /// Too few other ports are left; what the kernel says.
    pub fn open(&mut self, stack: &RangeInclusive<u16>) -> io::Result<()> {
        self.network.stack = [*stack.start(), *stack.end()];
        self.network.flags |= NETWORK_OPEN;
        self.networks.set(&0, &self.network)
    }

    /// How many ports connections can have on the host, if its stack chooses from these by itself.
    #[must_use]
    pub fn ports(stack: &RangeInclusive<u16>) -> u32 {
        let below = stack.start().saturating_sub(LOWEST_PORT);
        let from = (u32::from(*stack.end()) + 1).max(LOWEST_PORT.into());
        u32::from(below) + (u32::from(u16::MAX) + 1 - from)
    }

    /// Closes it. Connections that it had are cut: the rules do not know them.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn close(
        &mut self,
        groups: impl Iterator<Item = u32>,
        mut tell: impl FnMut(Event),
    ) -> io::Result<()> {
        self.network.flags &= !NETWORK_OPEN;
        self.networks.set(&0, &self.network)?;
        self.forget_flows(None, &mut tell)?;
        // Those that begin until it is opened again are not counted here.
        for group in groups {
            self.open.clear(group);
        }
        Ok(())
    }

    /// Begins a group of sandboxes with these limits, or gives it others.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn limit(&mut self, group: u32, limits: Limits, begins: bool) -> io::Result<()> {
        if begins {
            self.open.clear(group);
        }
        self.policies.limit(group, limits)
    }

    /// Connections that a group has open, those of the rules included.
    #[must_use]
    pub fn open_connections(&self, group: u32) -> i32 {
        self.open.get(group)
    }

    /// Leaves a sandbox's new connections to the rules, until it gets a policy.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn pause(&mut self, slot: u16, group: u32) -> io::Result<()> {
        self.policies.pause(slot, group)
    }

    /// Replaces the policy of a sandbox that is paused.
    ///
    /// # Errors
    /// What the kernel says: it stays paused then.
    pub fn set_policy(&mut self, slot: u16, policy: &Policy) -> io::Result<()> {
        self.policies.replace(slot, policy)
    }

    /// Allows ports of an address of a name.
    ///
    /// # Errors
    /// What the kernel says: the rules decide then.
    pub fn allow(&mut self, slot: u16, ports: &[Port]) -> io::Result<()> {
        self.policies.allow(slot, ports, clock::now())
    }

    /// What a sandbox's connections have carried on the fast way, since it was attached.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn sums(&self, slot: u16) -> io::Result<Sums> {
        self.sums.sum(slot.into())
    }

    /// What became of packets that begin connections.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn ways(&self) -> io::Result<Ways> {
        self.ways.sum(0)
    }
}
