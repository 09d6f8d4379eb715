//! The fast way of TCP connections: programs in the kernel that begin those that are plainly allowed, and forward their packets
//! past the rules (`ebpf/bpf/gateway.bpf.c`). They decide nothing that the rules would not decide alike: whatever is not in
//! their maps, they leave to the rules. So does everything here that fails.
//!
//! - [`sandboxes`]: what each may begin. [`watch`]: what closes it. [`told`]: connections, as the server is told of them.

mod sandboxes;
mod told;
mod watch;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hearth_ebpf::gateway::{Attachments, Connected, Gateway, Network, TICKS_A_SECOND};
use hearth_host::Capability;

pub(crate) use self::told::Told;
use self::watch::Watch;
use crate::address::{Addresses, UPLINK};
use crate::interfaces::Job;
use crate::protocol::{GroupId, Prefix};
use crate::ranges::forbidden;
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
    worker: mpsc::Sender<Job>,
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
    /// Loads it, and attaches it to the interfaces of the calling thread's namespace, which is the host's own. For root. The
    /// worker is to have what comes with it.
    ///
    /// # Errors
    /// Why there is none on this host.
    pub(crate) fn open(
        settings: &Settings,
        told: Told,
        worker: mpsc::Sender<Job>,
    ) -> Result<(Self, Attachments), String> {
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
        let attachments = programs.attachments().map_err(failed("a program"))?;
        let closed = watch.reason();
        let fast = Self {
            programs,
            watch,
            told,
            worker,
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
        };
        Ok((fast, attachments))
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
        Capability::unavailable(NAME, reason.to_owned())
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
    pub(crate) fn connect(
        &mut self,
        interface: u32,
        number: u32,
        host: u32,
        addresses: &Addresses,
    ) {
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
                tracing::info!(
                    reason = self.closed,
                    "the fast way of connections is closed"
                );
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
            let _ = self.worker.send(Job::DetachAll);
            self.is_open = false;
            self.failed = Some(error.to_string());
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
}

fn network(prefix: &Prefix) -> Network {
    (prefix.address(), prefix.length())
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
