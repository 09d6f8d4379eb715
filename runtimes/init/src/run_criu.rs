//! Starts CRIU where the host's files are not visible: its program, its libraries and the image are reached through
//! descriptors opened earlier.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::Command;

use hearth_init::criu::{CriuProgram, IMAGE_LINK, Outside, WORK, last_words};
use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;

use crate::gate;

/// CRIU, within reach.
pub struct Criu {
    program: CriuProgram,
    /// Where the program is.
    pub dir: OwnedFd,
    /// Beneath it are the image files.
    images: OwnedFd,
    /// Whether the image files are not in that directory, but will be where [`IMAGE_LINK`] in it leads.
    later: bool,
    /// Where it writes its log.
    pub work: OwnedFd,
}

impl Criu {
    /// Opens what it needs, on the host.
    pub fn open(program: &CriuProgram, images: &Path, work: &Path) -> io::Result<Self> {
        let open = |path: &Path, flags| {
            rustix::fs::open(
                path,
                flags | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .map_err(|errno| {
                let error = io::Error::from(errno);
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })
        };
        Ok(Self {
            program: program.clone(),
            dir: open(&program.dir, OFlags::PATH)?,
            images: open(images, OFlags::RDONLY)?,
            later: false,
            work: open(work, OFlags::RDONLY)?,
        })
    }

    /// The same for image files that will be where [`IMAGE_LINK`] in the directory `dir` leads, where [`WORK`] is, too.
    pub fn open_ahead(program: &CriuProgram, dir: &Path) -> io::Result<Self> {
        Ok(Self {
            later: true,
            ..Self::open(program, dir, &dir.join(WORK))?
        })
    }

    /// The directory beneath which the image files are or will be.
    pub fn images(&self) -> &OwnedFd {
        &self.images
    }

    /// Its path.
    pub fn dir_path(&self) -> String {
        format!("/proc/self/fd/{}", self.images.as_raw_fd())
    }

    /// Path of the image files, for CRIU: a link, since it takes no other.
    pub fn images_path(&self) -> String {
        let dir = self.dir_path();
        if self.later {
            format!("{dir}/{IMAGE_LINK}")
        } else {
            dir
        }
    }

    /// Path of the directory that they are in.
    pub fn files_path(&self) -> String {
        if self.later {
            gate::files(&self.dir_path())
        } else {
            self.dir_path()
        }
    }

    /// Whether the image files will be there later.
    pub fn is_ahead(&self) -> bool {
        self.later
    }

    /// The command for a dump or, with `light`, a restore, with the options of both. The descriptors stay open across its
    /// start from here on.
    pub fn command(&self, light: bool) -> io::Result<Command> {
        for fd in [&self.dir, &self.images, &self.work] {
            rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
        }
        let at = |name: &str| -> OsString {
            format!("/proc/self/fd/{}/{name}", self.dir.as_raw_fd()).into()
        };
        let mut command = match &self.program.loader {
            Some((loader, libraries)) => {
                let mut command = Command::new(at(loader));
                let mut path = at(libraries);
                if let (Some(light), true) = (&self.program.light, light) {
                    path = at(light);
                    path.push(":");
                    path.push(at(libraries));
                }
                command
                    .arg("--library-path")
                    .arg(path)
                    .arg(at(&self.program.program));
                command
            }
            None => Command::new(at(&self.program.program)),
        };
        command
            .env_clear()
            .arg("--work-dir")
            .arg(format!("/proc/self/fd/{}", self.work.as_raw_fd()))
            // The sandbox's cgroup is made by the host process, and its network is empty.
            .args(["--manage-cgroups=ignore", "--network-lock", "skip"]);
        Ok(command)
    }

    /// What the log says went wrong, in one line.
    pub fn errors(&self, log: &str) -> String {
        let read = || -> io::Result<String> {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.work, log, flags, Mode::empty())?;
            last_words(&File::from(file))
        };
        match read() {
            Ok(errors) if !errors.is_empty() => errors,
            Ok(_) => "its log is empty".to_owned(),
            Err(error) => format!("its log cannot be read: {error}"),
        }
    }
}

/// The name by which CRIU knows a socket.
pub fn socket(inode: u64) -> String {
    format!("socket:[{inode}]")
}

/// The names by which CRIU knows the pipes.
pub fn pipes(outside: &Outside) -> [String; 2] {
    [outside.stdout, outside.stderr].map(|inode| format!("pipe:[{inode}]"))
}
