//! What the host process is started with.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

use hearth_init::{fields_of, variants_of};
use rustix::fs::Gid;

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
    /// What the gateway is started with, in its own encoding.
    pub gateway: Vec<u8>,
    /// Which ports functions may have.
    pub ports: PortSettings,
    /// Who the server is. None where it is the same process.
    pub server: Option<ServerUser>,
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

/// The gateway's user: outside what sandboxes get, and used by no distribution.
pub const GATEWAY_USER: ServerUser = ServerUser {
    uid: UIDS.start - 2,
    gid: UIDS.start - 2,
};

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
    gateway,
    ports,
    server,
});
fields_of!(PortSettings { address, ports });
fields_of!(ServerUser { uid, gid });

impl Settings {
    /// The group that may read images: the server's.
    pub(crate) fn readers(&self) -> Option<Gid> {
        self.server.map(|user| Gid::from_raw(user.gid))
    }
}
