//! The fast way of TCP connections: programs in the kernel that begin those that are plainly allowed, and forward their packets
//! past the rules (`ebpf/bpf/gateway.bpf.c`). They decide nothing that the rules would not decide alike: whatever is not in
//! their maps, they leave to the rules. So does everything here that fails.
//!
//! - [`watch`]: what closes it. [`told`]: connections, as the server is told of them.

mod told;
mod watch;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use hearth_ebpf::clock;
use hearth_ebpf::gateway::{Connected, Connection, Gateway, Limits, Network, Policy, TICKS_A_SECOND};
use hearth_host::Capability;

pub(crate) use self::told::Told;
use self::watch::Watch;
use crate::address::{Addresses, INTERFACE, UPLINK};
use crate::connections::{self, Sockets};
use crate::protocol::{Counters, GroupId, KernelPolicy, NetworkLimits, Prefix, Protocol, Resolved};
use crate::ranges::forbidden;
use crate::rules::{GroupChange, entries};
use crate::settings::Settings;

/// The capability.
const NAME: &str = "network_fast";
const TICK: Duration = Duration::from_millis(1000 / TICKS_A_SECOND as u64);
/// While the rules of others close it, how long they are not looked at again. There may be thousands, which change often.
const CLOSED: Duration = Duration::from_secs(2);
/// The first kernel with all that the programs need: attaching by link, and a route's source address.
const KERNEL: (u32, u32) = (6, 7);

/// See the module.
pub(crate) struct Fast {
    programs: Gateway,
    watch: Watch,
    told: Told,
    groups: HashMap<GroupId, u32>,
    /// Indices of groups that have ended, and the first that was never used.
    free: Vec<u32>,
    next: u32,
    /// Sandboxes that are attached, with their groups.
    sandboxes: HashMap<u32, GroupId>,
    is_connected: bool,
    /// Why it is closed.
    closed: Option<String>,
    /// Why it will not be opened again.
    failed: Option<String>,
    is_open: bool,
    /// What the server was told last.
    said: Option<Capability>,
    next_tick: Instant,
    /// Something may have changed, and when to look.
    look_at: Option<Instant>,
}

impl Fast {
    /// Loads it, and attaches it to the interfaces of the calling thread's namespace, which is the host's own. For root.
    ///
    /// # Errors
    /// Why there is none on this host.
    pub(crate) fn open(settings: &Settings, told: Told) -> Result<Self, String> {
        if !settings.fast {
            return Err("it is switched off (HEARTH_NETWORK_FAST)".to_owned());
        }
        let release = rustix::system::uname();
        let release = release.release().to_string_lossy();
        if !is_recent(&release) {
            let (major, minor) = KERNEL;
            return Err(format!("Linux {release} is older than {major}.{minor}"));
        }
        let failed = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
        let mut programs = Gateway::load().map_err(|error| error.to_string())?;
        let mut watch = Watch::open().map_err(failed("the rules of others"))?;
        for interface in watch::interfaces().map_err(failed("interfaces"))? {
            let attached = programs.attach_world(interface);
            attached.map_err(failed("an interface of the host"))?;
        }
        let networks = |prefixes: &[Prefix]| prefixes.iter().map(network).collect::<Vec<_>>();
        programs
            .classify(&networks(&forbidden()), &networks(&settings.permitted))
            .map_err(failed("its maps"))?;
        let closed = watch.reason();
        Ok(Self {
            programs,
            watch,
            told,
            groups: HashMap::new(),
            free: Vec::new(),
            next: 0,
            sandboxes: HashMap::new(),
            is_connected: false,
            closed,
            failed: None,
            is_open: false,
            said: None,
            next_tick: Instant::now(),
            look_at: None,
        })
    }

    /// Whether it is open, where the server was told something else, or nothing.
    pub(crate) fn news(&mut self) -> Option<Capability> {
        let now = self.capability();
        let is_new = self.said.as_ref() != Some(&now);
        self.said = Some(now);
        self.said.clone().filter(|_| is_new)
    }

    fn capability(&self) -> Capability {
        match self.failed.as_ref().or(self.closed.as_ref()) {
            Some(reason) => Capability::unavailable(NAME, reason.clone()),
            None => Capability::available(NAME, None),
        }
    }

    /// The same of a host that has none.
    pub(crate) fn missing(reason: &str) -> Capability {
        Capability::unavailable(NAME, reason)
    }

    /// The ports of the host that are not chosen here, and that the rules are to choose.
    pub(crate) fn stack(&self) -> RangeInclusive<u16> {
        self.watch.stack()
    }

    /// Sockets that say when something may have changed.
    pub(crate) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.watch.sockets()
    }

    /// Attaches to both ends of the pair of interfaces to the host, which are in the calling thread's namespace.
    pub(crate) fn attach_host(&mut self, host: u32) -> io::Result<()> {
        self.programs.attach_host(UPLINK, host)
    }

    /// The gateway is connected to the host, by this interface there. Its own number is that of the Hearth on the host.
    pub(crate) fn connect(&mut self, interface: u32, number: u32, host: u32, addresses: &Addresses) {
        if number > 0 {
            // Both would choose the same ports of the host.
            return self.fail("another Hearth on this host has it");
        }
        let [IpAddr::V4(first4), IpAddr::V6(first6)] = addresses.slot_zero() else {
            return self.fail("the addresses are of one family");
        };
        let connected = Connected {
            interface,
            host,
            first4,
            first6,
        };
        match self.programs.connect(connected) {
            Ok(()) => self.is_connected = true,
            Err(error) => self.fail(&error.to_string()),
        }
        self.settle();
    }

    /// Closes it for good.
    pub(crate) fn fail(&mut self, reason: &str) {
        tracing::warn!(reason, "the fast way of connections is closed");
        self.failed = Some(reason.to_owned());
        self.settle();
    }

    /// Opens or closes it, as things are.
    fn settle(&mut self) {
        let stack = self.watch.stack();
        let wanted = self.is_connected && self.failed.is_none() && self.closed.is_none();
        let done = match (self.is_open, wanted) {
            (false, true) => self.programs.open(&stack),
            (true, false) => {
                tracing::info!(reason = self.closed, "the fast way of connections is closed");
                self.programs
                    .close(self.groups.values().copied(), |event| self.told.tell(event))
            }
            _ => return,
        };
        self.told.flush();
        self.is_open = wanted;
        if let Err(error) = done {
            // Without its programs there is none.
            tracing::error!(%error, "the fast way of connections cannot be opened or closed");
            self.programs.detach_all();
            self.is_open = false;
            self.failed = Some(error.to_string());
        }
    }

    /// What has failed leaves connections to the rules, all of them.
    fn check(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.fail(&format!("a map or a program: {error}"));
        }
    }

    /// How long nothing is to be done.
    pub(crate) fn due(&self) -> Option<Duration> {
        let tick = (!self.sandboxes.is_empty() && self.is_open).then_some(self.next_tick);
        let next = tick.into_iter().chain(self.look_at).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Something may have changed, as one of [`Self::watched`] says.
    pub(crate) fn wake(&mut self) {
        if self.watch.drain() {
            let wait = if self.is_open { Duration::ZERO } else { CLOSED };
            let at = Instant::now() + wait;
            self.look_at = Some(self.look_at.map_or(at, |set| set.min(at)));
        }
    }

    /// Does what is due.
    pub(crate) fn work(&mut self) {
        let now = Instant::now();
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = None;
            self.closed = self.watch.reason();
        }
        if self.next_tick <= now && self.is_open && !self.sandboxes.is_empty() {
            self.next_tick = now + TICK;
            // What nobody reports.
            self.closed = self.closed.take().or_else(|| self.watch.silent_reason());
            let ticked = self.programs.tick(|event| self.told.tell(event));
            self.told.flush();
            self.check(ticked);
        }
        self.settle();
        if self.closed.is_some() && self.look_at.is_none() {
            self.look_at = Some(now + CLOSED);
        }
    }

    fn group(&mut self, id: GroupId, change: GroupChange) -> u32 {
        let limits = |limits: NetworkLimits| Limits {
            connections: limits.connections,
            new_per_second: limits.new_per_second,
            bytes_per_second: limits.bytes_per_second,
        };
        let index = match self.groups.get(&id) {
            Some(index) => *index,
            None => {
                let index = self.free.pop().unwrap_or(self.next);
                self.next = self.next.max(index + 1);
                self.groups.insert(id, index);
                index
            }
        };
        let done = match change {
            GroupChange::Begin(now) => self.programs.limit(index, limits(now), true),
            GroupChange::Limits { now, .. } => self.programs.limit(index, limits(now), false),
            GroupChange::Nothing => Ok(()),
            GroupChange::End => {
                self.groups.remove(&id);
                self.free.push(index);
                Ok(())
            }
        };
        self.check(done);
        index
    }

    /// A sandbox has an interface.
    pub(crate) fn attach(&mut self, slot: u32, policy: &KernelPolicy, change: GroupChange) {
        let group = self.group(policy.group, change);
        self.sandboxes.insert(slot, policy.group);
        let attached = self
            .programs
            .attach_sandbox(slot as u16, INTERFACE + slot, group);
        self.check(attached);
        self.set_policy(slot, policy);
    }

    /// A sandbox's rules are gone: nothing of it is left here, either.
    pub(crate) fn detach(&mut self, slot: u32, group: GroupId, change: GroupChange) {
        if self.sandboxes.remove(&slot).is_none() {
            return;
        }
        let told = &mut self.told;
        let done = self.programs.detach_sandbox(slot as u16, |event| told.tell(event));
        self.told.flush();
        self.check(done);
        self.group(group, change);
    }

    /// Leaves new connections of a sandbox to the rules, before these change.
    pub(crate) fn pause(&mut self, slot: u32) {
        let group = self.sandboxes.get(&slot).and_then(|id| self.groups.get(id));
        if let Some(group) = group {
            let paused = self.programs.pause(slot as u16, *group);
            self.check(paused);
        }
    }

    /// The rules of its group have changed.
    pub(crate) fn change(&mut self, slot: u32, change: GroupChange) {
        if let Some(id) = self.sandboxes.get(&slot) {
            self.group(*id, change);
        }
    }

    /// The policy of a sandbox that is paused.
    pub(crate) fn set_policy(&mut self, slot: u32, policy: &KernelPolicy) {
        if !self.sandboxes.contains_key(&slot) {
            return;
        }
        let tcp = |protocol: Protocol| protocol == Protocol::Tcp;
        let names = policy.resolved.iter();
        let allowed = Policy {
            internet: policy.internet,
            networks: policy
                .allow
                .iter()
                .filter(|allowed| tcp(allowed.protocol))
                .map(|allowed| (network(&allowed.prefix), allowed.ports.clone()))
                .collect(),
            names: names
                .filter(|resolved| tcp(resolved.protocol) && !resolved.ttl.is_zero())
                .flat_map(ports)
                .collect(),
        };
        // What has no room is the rules'.
        if let Err(error) = self.programs.set_policy(slot as u16, &allowed) {
            tracing::debug!(%error, "a policy does not fit the maps");
        }
    }

    /// An address of a name.
    pub(crate) fn allow(&mut self, slot: u32, resolved: &Resolved) {
        if resolved.protocol == Protocol::Tcp && self.sandboxes.contains_key(&slot) {
            let ports: Vec<_> = ports(resolved).collect();
            // What has no room is the rules'.
            if let Err(error) = self.programs.allow(slot as u16, &ports) {
                tracing::debug!(%error, "an address does not fit the maps");
            }
        }
    }

    /// Cuts the connections of a sandbox that are not allowed any more.
    pub(crate) fn cut(
        &mut self,
        slot: u32,
        sockets: &Sockets,
        source: [IpAddr; 2],
        is_allowed: impl Fn(&connections::Connection) -> bool,
    ) {
        let tracked = |connection: &Connection| {
            let source = source[usize::from(connection.address.is_ipv6())];
            connections::Connection::tcp(
                (source, connection.source_port),
                (connection.address, connection.port),
            )
        };
        let told = &mut self.told;
        let cut = self.programs.cut(
            |connection| u32::from(connection.slot) == slot && !is_allowed(&tracked(connection)),
            |event| told.tell(event),
        );
        self.told.flush();
        match cut {
            Ok(cut) => {
                for connection in &cut {
                    // If the kernel cannot, the next packet gets a reset.
                    let _ = sockets.end(&tracked(connection));
                }
            }
            Err(error) => self.check(Err(error)),
        }
    }

    /// Adds what went this way.
    pub(crate) fn count(&self, slot: u32, counters: &mut Counters) {
        if !self.sandboxes.contains_key(&slot) {
            return;
        }
        if let Ok(sums) = self.programs.sums(slot as u16) {
            counters.packets_out += sums.packets[0];
            counters.packets_in += sums.packets[1];
            counters.bytes_out += sums.bytes[0];
            counters.bytes_in += sums.bytes[1];
            counters.connections += sums.connections;
            counters.fast += sums.connections;
        }
    }
}

fn network(prefix: &Prefix) -> Network {
    (prefix.address(), prefix.length())
}

/// The ports of an address, as the programs have them.
fn ports(resolved: &Resolved) -> impl Iterator<Item = (IpAddr, u16, u64)> {
    let until = clock::after(resolved.ttl);
    entries(resolved).map(move |(address, _, port)| (address, port, until))
}

fn is_recent(release: &str) -> bool {
    let mut numbers = release
        .split(|character: char| !character.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next()) >= KERNEL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_are_told_by_their_release() {
        for (release, is) in [
            ("6.7.0", true),
            ("6.12.41+deb13-amd64", true),
            ("7.0-rc1", true),
            ("6.6.99", false),
            ("6.1.0-37-amd64", false),
            ("5.15", false),
            ("what", false),
        ] {
            assert_eq!(is_recent(release), is, "{release}");
        }
    }
}
