//! What is done before there is a server: the host is probed, what an earlier host process left is cleared, directories and
//! cgroups are made.
//!
//! None of this runs while anybody could ask for something: it is over when the host process takes the [`Host`] over.
//!
//! - [`probe`], [`criu`]: what the host can do. [`user`], [`data`], [`environment`]: who the server is, and what it gets.
//! - [`place`], [`mounts`]: where cgroups are made. [`stale`]: what earlier host processes left.

mod criu;
mod data;
mod environment;
pub(crate) mod mounts;
pub(crate) mod place;
mod probe;
mod stale;
mod user;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use hearth_init::criu::CriuProgram;
use hearth_init::fields_of;
use rustix::fs::{Gid, Mode, OFlags};

use self::criu::Criu;
pub use self::data::{DataDir, DataDirError};
pub use self::environment::server_environment;
pub use self::probe::{Probed, find_init};
use self::stale::Tag;
use crate::cgroup::Directories;
use crate::directories::{make_directory, open_to};
use crate::settings::{IMAGES, RUN, Settings};
use crate::{Capability, SandboxError};

/// What the host process works on.
pub struct Host {
    pub(crate) settings: Settings,
    /// Which `hearth-init` it is: another one has another text.
    pub(crate) init: String,
    /// Where roots are made; removed at the end.
    pub(crate) dir: PathBuf,
    /// The cgroup of all sandboxes.
    pub(crate) top: Directories,
    /// By which templates are dumped and restored.
    pub(crate) criu: Option<CriuProgram>,
    pub(crate) capabilities: Vec<Capability>,
}

fields_of!(Host {
    settings,
    init,
    dir,
    top,
    criu,
    capabilities,
});

impl Host {
    /// Probes the rest of the host. Clears what an earlier host process left in the data directory and in the cgroups. May
    /// block for some hundred milliseconds, and for seconds when there is much to clear.
    ///
    /// # Errors
    /// [`SandboxError::Missing`] when the host cannot give something that every sandbox needs.
    pub fn open(settings: Settings, probed: Probed) -> Result<Self, SandboxError> {
        let failed = |error: io::Error| SandboxError::step("directory", error);
        let Probed(mut capabilities) = probed;
        let tag = Tag::new();
        let mut top = place::open(&tag)?;
        capabilities.push(crate::cgroup::prepare_cpuset(&mut top));
        let run = settings.data_dir.join(RUN);
        own_directory(&run, None).map_err(failed)?;
        stale::clear_stale_directories(&run);
        let dir = run.join(tag.as_str());
        make_directory(&dir, 0o700).map_err(failed)?;
        stale::record(&dir, &top.all()).map_err(failed)?;
        capabilities.extend(probe::cgroup(&settings.init, top.version, &dir));
        let images = settings.data_dir.join(IMAGES);
        own_directory(&images, settings.readers()).map_err(failed)?;
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
        Ok(Self {
            init: identity(&settings.init),
            settings,
            dir,
            top,
            criu: criu.ok().map(|criu| criu.program),
            capabilities,
        })
    }
}

/// What changes whenever a program is replaced.
fn identity(program: &Path) -> String {
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
        Ok(open_to(&fd, readers)?)
    };
    own().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", dir.display())))
}
