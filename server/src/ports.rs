//! Ports of functions and chains: whose each is. The host process opens them, or the kernel steers their connections
//! to one listener ([`crate::ingress`]); [`crate::triggers`] serves them.
//!
//! A change of a function or chain claims its ports first and takes them over once it is stored, in one step: at no time
//! does a port belong to two of them or, if it stays, to none.

mod claim;
mod counters;
mod error;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hearth_host::SandboxError;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::ingress::{Ingress, PortDatagrams};
use crate::model::{Port, PortLimits, PortOwner, PortTrigger, Protocol};
use crate::sandbox::Host;

pub use self::claim::Claim;
pub use self::counters::{MessageCounters, MessageCounts};
pub use self::error::PortError;

/// How often it is tried again to open what another process has, after a restart.
const RETRY: Duration = Duration::from_secs(5);

/// A port that was opened.
pub struct Opened {
    /// Which one.
    pub port: Port,
    /// It listens, or is for datagrams.
    pub socket: OwnedFd,
    /// Datagrams that do not come to the socket.
    pub datagrams: Option<PortDatagrams>,
    /// Cancelled when nobody has it any more.
    pub closed: CancellationToken,
    /// Of the messages that are understood there.
    pub counters: Arc<MessageCounters>,
}

/// What is known of a port.
struct Entry {
    owner: PortOwner,
    /// None while a change has only claimed it.
    trigger: Option<PortTrigger>,
    /// Why it is not open.
    failed: Option<PortError>,
    closed: CancellationToken,
    counters: Arc<MessageCounters>,
}

impl Entry {
    fn new(owner: PortOwner, trigger: Option<PortTrigger>) -> Self {
        Self {
            owner,
            trigger,
            failed: None,
            closed: CancellationToken::new(),
            counters: Arc::default(),
        }
    }
}

/// The ports of all functions and chains. Cheap to clone.
#[derive(Clone)]
pub struct PortTable(Arc<Inner>);

struct Inner {
    host: Host,
    ingress: Ingress,
    range: RangeInclusive<u16>,
    entries: Mutex<HashMap<Port, Entry>>,
    opened: mpsc::UnboundedSender<Opened>,
}

/// A port, for the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortState {
    /// Which one.
    pub port: Port,
    /// Why it is not open.
    pub failed: Option<PortError>,
}

impl PortTable {
    /// No port belongs to anyone yet. What is opened comes out of the receiver. Needs a runtime.
    pub fn start(
        host: Host,
        ingress: Ingress,
        range: RangeInclusive<u16>,
    ) -> (Self, mpsc::UnboundedReceiver<Opened>) {
        let (opened, receiver) = mpsc::unbounded_channel();
        let table = Self(Arc::new(Inner {
            host,
            ingress,
            range,
            entries: Mutex::default(),
            opened,
        }));
        (table, receiver)
    }

    /// What the kernel does for them.
    pub fn ingress(&self) -> &Ingress {
        &self.0.ingress
    }

    /// Who has a port, and what it is to do.
    pub fn owner(&self, port: Port) -> Option<(PortOwner, PortTrigger)> {
        let entries = self.0.entries.lock();
        let entry = entries.get(&port)?;
        Some((entry.owner.clone(), entry.trigger.clone()?))
    }

    /// What is counted of a port's messages.
    pub fn counters(&self, port: Port) -> Option<Arc<MessageCounters>> {
        let entries = self.0.entries.lock();
        Some(entries.get(&port)?.counters.clone())
    }

    /// Ports of an owner that are not open, and why.
    pub fn failed(&self, owner: &PortOwner) -> Vec<PortState> {
        let entries = self.0.entries.lock();
        let of_owner = entries
            .iter()
            .filter(|(_, entry)| entry.owner == *owner && entry.failed.is_some());
        let mut all: Vec<_> = of_owner
            .map(|(port, entry)| PortState {
                port: *port,
                failed: entry.failed.clone(),
            })
            .collect();
        all.sort_by_key(|state| state.port);
        all
    }

    /// How many there are, and how many of them are not open.
    pub fn counts(&self) -> (usize, usize) {
        let entries = self.0.entries.lock();
        let failed = entries.values().filter(|entry| entry.failed.is_some());
        (entries.len(), failed.count())
    }

    /// Claims ports for somebody. Those that it has already stay as they are until [`Claim::take_over`].
    ///
    /// # Errors
    /// The first one that it cannot have, by its place in `wanted`; nothing is claimed then.
    pub async fn claim(
        &self,
        owner: &PortOwner,
        wanted: &[PortTrigger],
        limits: PortLimits,
    ) -> Result<Claim, (usize, PortError)> {
        let mut claim = Claim::new(self, owner, wanted, limits);
        for (index, trigger) in wanted.iter().enumerate() {
            let port = trigger.port();
            let claimed = claim.reserve(port).map_err(|error| (index, error))?;
            if claimed {
                let socket = self.open(port).await.map_err(|error| (index, error))?;
                claim.opened(port, socket);
            }
        }
        Ok(claim)
    }

    /// The ports that somebody had before the server was started. What cannot be opened now is tried again.
    pub async fn restore(&self, owner: &PortOwner, triggers: &[PortTrigger], limits: PortLimits) {
        self.0.ingress.limit(owner, limits);
        for trigger in triggers {
            let port = trigger.port();
            let entry = Entry::new(owner.clone(), Some(trigger.clone()));
            self.0.entries.lock().insert(port, entry);
            if let Err(error) = self.try_open(port).await {
                tracing::warn!(%owner, %port, %error, "cannot open a port; trying again");
                tokio::spawn(self.clone().keep_trying(port));
            }
        }
    }

    /// Takes all ports from their owner.
    pub fn release(&self, owner: &PortOwner) {
        self.0.ingress.settle(owner, []);
        self.0.ingress.limit(owner, PortLimits::default());
        self.0.entries.lock().retain(|_, entry| {
            let stays = entry.owner != *owner;
            if !stays {
                entry.closed.cancel();
            }
            stays
        });
    }

    async fn keep_trying(self, port: Port) {
        loop {
            tokio::time::sleep(RETRY).await;
            let is_wanted = self
                .0
                .entries
                .lock()
                .get(&port)
                .is_some_and(|entry| entry.failed.is_some());
            if !is_wanted || self.try_open(port).await.is_ok() {
                return;
            }
        }
    }

    /// Opens a port that somebody has.
    async fn try_open(&self, port: Port) -> Result<(), PortError> {
        let opened = self.open(port).await;
        let mut entries = self.0.entries.lock();
        let Some(entry) = entries.get_mut(&port) else {
            return Ok(());
        };
        match opened {
            Ok(socket) => {
                entry.failed = None;
                self.0.hand_on(port, socket, entry);
                let owner = entry.owner.clone();
                self.0.settle(&owner, &entries);
                Ok(())
            }
            Err(error) => {
                entry.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Opens a port. Without a socket, its connections are steered from when it is [settled](Inner::settle); nobody else has
    /// it, which opening it for a moment has shown.
    async fn open(&self, port: Port) -> Result<Option<OwnedFd>, PortError> {
        if !self.0.range.contains(&port.number) {
            return Err(PortError::Range(self.0.range.clone()));
        }
        let protocol = match port.protocol {
            Protocol::Tcp => hearth_host::protocol::Protocol::Tcp,
            Protocol::Udp => hearth_host::protocol::Protocol::Udp,
        };
        let opened = self.0.host.open_port(protocol, port.number).await;
        let socket = opened.map_err(|error| match error.owner_of_port() {
            Some(owner) => PortError::Process(owner.to_owned()),
            None => PortError::Host(reason(&error)),
        })?;
        Ok((!self.0.ingress.steers(port)).then_some(socket))
    }
}

/// What the kernel said.
fn reason(error: &SandboxError) -> String {
    match error {
        SandboxError::Step { detail, .. } => detail.clone(),
        other => other.to_string(),
    }
}

impl Inner {
    /// Tells the kernel which ports somebody has.
    fn settle(&self, owner: &PortOwner, entries: &HashMap<Port, Entry>) {
        let has = |entry: &Entry| {
            entry.owner == *owner && entry.trigger.is_some() && entry.failed.is_none()
        };
        let ports = entries.iter().filter(|(_, entry)| has(entry));
        self.ingress.settle(owner, ports.map(|(port, _)| *port));
    }

    fn hand_on(&self, port: Port, socket: Option<OwnedFd>, entry: &Entry) {
        let Some(socket) = socket else {
            return;
        };
        // Whoever serves them may have ended, as everything does.
        let _ = self.opened.send(Opened {
            port,
            socket,
            datagrams: self.ingress.datagrams(port),
            closed: entry.closed.clone(),
            counters: entry.counters.clone(),
        });
    }
}
