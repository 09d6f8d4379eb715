//! What is counted at ports, as the API shows it.

use std::ops::AddAssign;

use hearth_ebpf::records::{Drop, Traffic};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Packets in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PortTraffic {
    /// Packets, dropped ones included.
    pub packets: u64,
    /// Bytes of the frames.
    pub bytes: u64,
    /// Connections that were begun, and datagrams: what was let through of what starts work.
    pub starts: u64,
    /// Datagrams that AF_XDP took past the kernel's stack.
    pub af_xdp: u64,
}

/// Dropped packets by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Dropped {
    /// The TCP or UDP header contradicts itself.
    pub malformed: u64,
    /// The source is on the deny list.
    pub denied: u64,
    /// The source exceeded what one source may do.
    pub source_limit: u64,
    /// All sources together exceeded what the function or chain takes.
    pub total_limit: u64,
}

impl Dropped {
    /// All reasons together.
    pub fn all(&self) -> u64 {
        self.malformed + self.denied + self.source_limit + self.total_limit
    }
}

impl AddAssign for Dropped {
    fn add_assign(&mut self, other: Self) {
        self.malformed += other.malformed;
        self.denied += other.denied;
        self.source_limit += other.source_limit;
        self.total_limit += other.total_limit;
    }
}

impl From<&Traffic> for PortTraffic {
    fn from(traffic: &Traffic) -> Self {
        Self {
            packets: traffic.packets,
            bytes: traffic.bytes,
            starts: traffic.starts,
            af_xdp: traffic.redirected,
        }
    }
}

impl From<&Traffic> for Dropped {
    fn from(traffic: &Traffic) -> Self {
        let drops = |reason: Drop| traffic.drops[reason as usize];
        Self {
            malformed: drops(Drop::Malformed),
            denied: drops(Drop::Denied),
            source_limit: drops(Drop::SourceLimit),
            total_limit: drops(Drop::TotalLimit),
        }
    }
}
