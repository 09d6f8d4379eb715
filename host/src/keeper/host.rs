//! What the host process works on: probed, cleared and prepared before anything is asked of it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hearth_init::criu::CriuProgram;
use rustix::fs::{Gid, Mode, OFlags};

use crate::cgroup::{self, Tag, Top};
use crate::criu::Criu;
use crate::network::Network;
use crate::settings::{IMAGES, RUN, Settings};
use crate::{Capability, Probed, SandboxError, probe};

/// What the host process works on.
pub struct Host {
    pub(super) settings: Settings,
    /// Where roots are made; removed at the end.
    pub(super) dir: PathBuf,
    pub(super) top: Top,
    /// By which templates are dumped and restored.
    pub(super) criu: Option<CriuProgram>,
    /// By which sandboxes have a network.
    pub(super) network: Option<Network>,
    pub(super) capabilities: Vec<Capability>,
}

impl Host {
    /// Probes the rest of the host. Clears what an earlier host process left in the data directory and in the cgroups. May
    /// block for some hundred milliseconds, and for seconds when there is much to clear.
    ///
    /// # Errors
    /// [`SandboxError::Missing`] when the host cannot give something that every sandbox needs.
    pub fn open(settings: Settings, probed: Probed) -> Result<Self, SandboxError> {
        let failed = |step: &'static str| move |error: io::Error| SandboxError::step(step, error);
        let Probed(mut capabilities) = probed;
        let tag = Tag::new();
        let top = Top::open(&tag)?;
        let run = settings.data_dir.join(RUN);
        own_directory(&run, None).map_err(failed("directory"))?;
        cgroup::clear_stale_directories(&run);
        let dir = run.join(tag.as_str());
        make_directory(&dir, 0o700).map_err(failed("directory"))?;
        top.record(&dir).map_err(failed("directory"))?;
        capabilities.extend(probe::cgroup(&settings.init, &top, &dir));
        let images = settings.data_dir.join(IMAGES);
        own_directory(&images, settings.readers()).map_err(failed("directory"))?;
        crate::images::clear(&images);
        capabilities.push(match settings.server {
            Some(user) => {
                Capability::available("privilege_separation", Some(format!("uid {}", user.uid)))
            }
            None => {
                let reason = "the server and the host process are one".to_owned();
                Capability::unavailable("privilege_separation", reason)
            }
        });
        let criu = Criu::find(&settings.init, &images, &settings.criu);
        capabilities.push(match &criu {
            Ok(criu) => Capability::available("criu", Some(criu.version.clone())),
            Err(reason) => Capability::unavailable("criu", reason.clone()),
        });
        let network = Network::open(&settings.network);
        capabilities.push(match &network {
            Ok(_) => Capability::available("network_outbound", None),
            Err(reason) => Capability::unavailable("network_outbound", reason.clone()),
        });
        Ok(Self {
            settings,
            dir,
            top,
            criu: criu.ok().map(|criu| criu.program),
            network: network.ok(),
            capabilities,
        })
    }
}

/// What changes whenever a program is replaced.
pub(super) fn identity(program: &Path) -> String {
    fs::metadata(program).map_or_else(
        |error| error.to_string(),
        |meta| {
            let (size, inode) = (meta.size(), meta.ino());
            format!("{size} {inode} {} {}", meta.mtime(), meta.mtime_nsec())
        },
    )
}

/// Makes a directory of root's in the data directory, or takes the one that is there, and lets nobody but `readers` in. When
/// somebody removed it, whoever may make files in the data directory could have put something else there.
fn own_directory(dir: &Path, readers: Option<Gid>) -> io::Result<()> {
    let own = || -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(dir, flags, Mode::empty())?;
        if rustix::fs::fstat(&fd)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it is not root's; remove it"));
        }
        Ok(crate::images::open_to(&fd, readers)?)
    };
    own().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", dir.display())))
}

/// Makes a directory with this mode, or gives it to one that is there.
pub(super) fn make_directory(dir: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(dir)
        .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(mode)))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", dir.display())))
}
