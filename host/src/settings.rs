//! What the host process is started with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

use hearth_init::{fields_of, variants_of};
use rustix::fs::Gid;

use crate::protocol::Prefix;

/// First host uid given to sandboxes: above systemd-nspawn's container range, below 2^31, and used by no distribution.
pub const FIRST_UID: u32 = 1_900_000_000;
/// The host uids of sandboxes, two each: far more than sandboxes can be alive at once.
pub const UIDS: Range<u32> = FIRST_UID..FIRST_UID + 200_000_000;
/// Setting that names a CRIU.
pub const CRIU_SETTING: &str = "HEARTH_CRIU";
/// Directory of the images in the data directory, and that of the sandboxes' roots. Both are root's.
pub const IMAGES: &str = "images";
/// See [`IMAGES`].
pub const RUN: &str = "run";

/// Which CRIU dumps and restores templates.
#[derive(Debug, Clone, Default)]
pub enum CriuChoice {
    /// A private copy beside the executable, else the system's.
    #[default]
    Detect,
    /// This program, or directory with a private copy; or `off`.
    Named(PathBuf),
    /// None, for this reason.
    Never(String),
}

/// Everything that the host process takes for granted: it comes from who started it, who is root.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The data directory, absolute: [`RUN`] and [`IMAGES`] in it are the host process's, `code` is the server's.
    pub data_dir: PathBuf,
    /// The program `hearth-init`.
    pub init: PathBuf,
    /// Directory with one directory for each runtime.
    pub runtimes: PathBuf,
    /// Which CRIU.
    pub criu: CriuChoice,
    /// What the network of sandboxes is like.
    pub network: NetworkSettings,
    /// Which ports functions may have.
    pub ports: PortSettings,
    /// Who the server is. None where it is the same process.
    pub server: Option<ServerUser>,
}

/// What the administrator of the node chooses about the network.
#[derive(Debug, Clone)]
pub struct NetworkSettings {
    /// IPv4 addresses of sandboxes: a prefix that the host has no other use for. Each Hearth on the host takes 4,096 of them.
    /// The packets that leave the host have the host's address.
    pub block: Prefix,
    /// The same of IPv6, 96 bits or fewer: the last 32 are those of the IPv4 address.
    pub block6: Prefix,
    /// Private, local or reserved addresses that a policy may allow all the same.
    pub permitted: Vec<Prefix>,
}

impl Default for NetworkSettings {
    /// A part of what is set aside for measuring networks (RFC 2544), which no network has, and a unique local prefix.
    fn default() -> Self {
        Self {
            block: prefix(Ipv4Addr::new(198, 19, 0, 0), 16),
            block6: prefix(Ipv6Addr::new(0xfd68, 0x6561, 0x7274, 0x68, 0, 0, 0, 0), 96),
            permitted: Vec::new(),
        }
    }
}

fn prefix(address: impl Into<IpAddr>, length: u8) -> Prefix {
    let address = address.into();
    Prefix::new(address, length).unwrap_or(Prefix::host(address))
}

/// Which ports functions may have.
#[derive(Debug, Clone)]
pub struct PortSettings {
    /// On which of the host's addresses; unspecified for all.
    pub address: IpAddr,
    /// From which to which.
    pub ports: RangeInclusive<u16>,
}

impl Default for PortSettings {
    /// Those that need no privilege, on this host only.
    fn default() -> Self {
        Self {
            address: Ipv4Addr::LOCALHOST.into(),
            ports: 1024..=u16::MAX,
        }
    }
}

/// A user and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerUser {
    /// User.
    pub uid: u32,
    /// Group. No other user should be in it: it may read what the server reads.
    pub gid: u32,
}

variants_of!(CriuChoice {
    0 => Detect,
    1 => Named(path),
    2 => Never(reason),
});
fields_of!(Settings {
    data_dir,
    init,
    runtimes,
    criu,
    network,
    ports,
    server,
});
fields_of!(NetworkSettings {
    block,
    block6,
    permitted,
});
fields_of!(PortSettings { address, ports });
fields_of!(ServerUser { uid, gid });

impl Settings {
    /// The group that may read images: the server's.
    pub(crate) fn readers(&self) -> Option<Gid> {
        self.server.map(|user| Gid::from_raw(user.gid))
    }
}
