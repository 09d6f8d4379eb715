//! A sandbox's way out. The kernel knows addresses, ports and limits; what they mean, and which names they are of, is the
//! server's (`server/docs/network.md`).

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hearth_gateway::protocol::{Reply, Request};
use hearth_host::SandboxError;
use hearth_host::protocol::{self as host, Key, Purpose};

pub use hearth_gateway::protocol::{
    Counters, KernelPolicy, NetworkLimits, Prefix, Prefixed, Protocol, Resolved,
};
pub use hearth_host::protocol::BROKER;

use super::client::{Answer, Client};
pub use super::reports::{Connection, Refusal, RefusalReason, Report, Reports};

/// Names a sandbox in a [`Report`]: different for all that there are at a time, and given to another one later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutboundId(pub(super) u32);

/// The gateway did not do something about a sandbox's network.
#[derive(Debug, thiserror::Error)]
#[error("the network of a sandbox: {0}")]
pub struct NetworkError(#[from] SandboxError);

impl NetworkError {
    /// Whether the reason is that the sandbox has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self.0, SandboxError::Gone)
    }
}

impl From<io::Error> for NetworkError {
    fn from(error: io::Error) -> Self {
        Self(SandboxError::step("papers", error))
    }
}

/// One sandbox's way out, which ends with the sandbox, whichever is dropped first. What it asks for after that is answered
/// with an error.
pub struct Outbound {
    client: Arc<Client>,
    key: Key,
    id: OutboundId,
    resolver: Option<(UdpSocket, TcpListener)>,
}

impl Outbound {
    /// The network of a sandbox with this interface; none if it has no network.
    pub(super) fn new(
        client: &Arc<Client>,
        key: Key,
        interface: u32,
        mut fds: impl Iterator<Item = OwnedFd>,
    ) -> Option<Self> {
        if interface == 0 {
            return None;
        }
        let udp = fds.next().map(UdpSocket::from);
        Some(Self {
            client: client.clone(),
            key,
            id: OutboundId(interface),
            resolver: udp.zip(fds.next().map(TcpListener::from)),
        })
    }

    /// Under what name the kernel tells of it.
    #[must_use]
    pub fn id(&self) -> OutboundId {
        self.id
    }

    /// Replaces the policy in one step, and forgets addresses that [`Self::allow`] has allowed: those to keep are in
    /// [`KernelPolicy::resolved`]. Running connections that it does not allow are cut; those to an expired
    /// [`Resolved`] of it go on.
    ///
    /// # Errors
    /// [`NetworkError`]: the policy is as it was, or the sandbox is gone.
    pub async fn set_policy(&self, policy: &KernelPolicy) -> Result<(), NetworkError> {
        let fd = policy.seal()?;
        let request = |sequence| Request::SetPolicy(sequence, self.key);
        self.client.gateway.ask(request, Some(fd)).await?;
        Ok(())
    }

    /// Allows connections to an address that an allowed name resolved to, for some time; those that have begun go on.
    /// Returns when they are. Asked again, the longer time counts.
    ///
    /// # Errors
    /// [`NetworkError`]: too many addresses are allowed, `ports` are more than 64 and not all, or the sandbox is gone.
    pub async fn allow(
        &self,
        address: IpAddr,
        protocol: Protocol,
        ports: RangeInclusive<u16>,
        ttl: Duration,
    ) -> Result<(), NetworkError> {
        let resolved = Resolved {
            address: address.to_canonical(),
            protocol,
            ports,
            ttl,
        };
        let request = |sequence| Request::Allow(sequence, self.key, resolved);
        self.client.gateway.ask(request, None).await?;
        Ok(())
    }

    /// The kernel's counters since the sandbox was created.
    ///
    /// # Errors
    /// [`NetworkError`]: the sandbox is gone.
    pub async fn counters(&self) -> Result<Counters, NetworkError> {
        let request = |sequence| Request::Counters(sequence, self.key);
        match self.client.gateway.ask(request, None).await? {
            Reply::Counters(_, counters) => Ok(counters),
            _ => Err(SandboxError::Gone.into()),
        }
    }

    /// Listens at this port of [`BROKER`], in the sandbox's network namespace. Non-blocking.
    ///
    /// # Errors
    /// [`NetworkError`]: the port is taken, or the sandbox is gone.
    pub async fn listen(&self, port: u16) -> Result<TcpListener, NetworkError> {
        Ok(self.socket(Purpose::Listen(port)).await?.into())
    }

    /// Starts a TCP connection in the sandbox's network namespace, under its rules, limits and counters. It is established, or
    /// has failed, once the socket is writable. Non-blocking.
    ///
    /// # Errors
    /// [`NetworkError`]: it failed at once, or the sandbox is gone.
    pub async fn dial(&self, to: SocketAddr) -> Result<TcpStream, NetworkError> {
        let purpose = Purpose::Dial(to.ip(), to.port());
        Ok(self.socket(purpose).await?.into())
    }

    async fn socket(&self, purpose: Purpose) -> Result<OwnedFd, NetworkError> {
        let request = |sequence| host::Request::Socket(sequence, self.key, purpose);
        match self.client.ask(request, Vec::new()).await? {
            Answer::Socket(socket) => Ok(socket),
            _ => Err(SandboxError::Gone.into()),
        }
    }

    /// Where this sandbox asks for names: sockets in its own network namespace, at 127.0.0.1:53; once. Non-blocking.
    pub fn take_resolver(&mut self) -> Option<(UdpSocket, TcpListener)> {
        self.resolver.take()
    }
}
