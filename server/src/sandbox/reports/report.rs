//! What is told of sandboxes' packets and connections.

use std::net::IpAddr;

use hearth_gateway::protocol::Protocol;

use crate::sandbox::network::OutboundId;

/// Why the kernel did not let a packet out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// The policy does not allow its destination.
    Policy,
    /// No policy allows its destination: a private, local or reserved address, another protocol than TCP and UDP.
    Forbidden,
    /// A limit of the sandbox.
    Limit,
    /// None: it was let through, because the policy is on trial.
    DryRun,
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Which sandbox sent it.
    pub outbound: OutboundId,
    /// Why.
    pub reason: RefusalReason,
    /// Its destination.
    pub address: IpAddr,
    /// Its protocol; none for others than TCP and UDP.
    pub protocol: Option<Protocol>,
    /// Its destination port; 0 if it has none.
    pub port: u16,
}

/// One connection, or exchange of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// Which sandbox began it.
    pub outbound: OutboundId,
    /// Its destination.
    pub address: IpAddr,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its destination port.
    pub port: u16,
    /// Bytes from the sandbox and to it, headers included, when it is over; none when it begins.
    pub bytes: Option<(u64, u64)>,
}

/// What the kernel tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// A packet was refused.
    Refused(Refusal),
    /// A connection has begun, or is over.
    Connection(Connection),
}
