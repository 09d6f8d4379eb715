//! Images of templates, as files: has `hearth-init` dump a template, puts the files in place, removes them.
//!
//! ```text
//! DATA_DIR/images/            root's; the server's group may read, nobody else may write
//!   criu.kdat                 what CRIU found out about the kernel
//!   hello-3-0123456789abcdef/ one image
//!     criu/                   CRIU's files
//! ```
//! An image contains the template's memory and with it the function's environment, so other users have no way in. The
//! files in `criu/` are readable by anyone who can reach them: the sandboxes that get them as a descriptor or a mount,
//! possibly several at a time. An image is written under a temporary name and renamed once it is complete and synced, so
//! a partial image is never used. What it is an image of, and its checksums, the server keeps.
//!
//! On a thread of its own, one job after the other: a dump takes some ten milliseconds, and seconds for a gigabyte.

mod dump;

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use hearth_init::criu::{CriuProgram, DUMP_LOG, DumpSpec, Outside};
use rustix::fs::Gid;

use self::dump::{mappings, run_dump};
use crate::SandboxError;
use crate::cgroup::Leaf;
use crate::directories::{open_to, remove};
use crate::helpers::{Helper, Reporter};
use crate::settings::{IMAGES, Settings};

/// The directory of an image that is being made, and how that of any version begins. No image's name begins like that.
const STAGING: &str = ".new-image";
const STAGING_PREFIX: &str = ".new-";
/// Name of CRIU's directory.
const FILES: &str = "criu";
/// Rights to CRIU's directory in an image, and to its files: see the module.
const FILES_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
/// The step of a dump that was refused for the number of the template's mappings.
const MAPPINGS_STEP: &str = "mappings";

/// What it takes to dump a template.
pub(crate) struct Dumpable {
    /// PID 1.
    pub(crate) init: OwnedFd,
    /// The template's descriptors that lead outside.
    pub(crate) outside: Outside,
    /// Inode of the server's end of the control socket.
    pub(crate) control_peer: u64,
    /// The template's cgroup.
    pub(crate) template: Leaf,
}

/// Starts the thread.
pub(crate) fn start(
    settings: &Settings,
    criu: Option<CriuProgram>,
    reporter: Reporter,
) -> Result<Helper<Images>, String> {
    let images = Images {
        dir: settings.data_dir.join(IMAGES),
        init: settings.init.clone(),
        criu,
        readers: settings.readers(),
    };
    Helper::start("hearth-images", reporter, move || Ok(images))
}

/// CRIU's files of an image.
pub(crate) fn existing(settings: &Settings, name: &str) -> Result<PathBuf, SandboxError> {
    let files = settings.data_dir.join(IMAGES).join(name).join(FILES);
    match fs::symlink_metadata(&files) {
        Ok(meta) if meta.is_dir() => Ok(files),
        _ => Err(SandboxError::restore(format!("there is no image {name}"))),
    }
}

/// Removes what was being made when an earlier host process ended.
pub(crate) fn clear(images: &Path) {
    for entry in fs::read_dir(images).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name
            .as_encoded_bytes()
            .starts_with(STAGING_PREFIX.as_bytes())
        {
            // What cannot be removed now is, at the next dump or start.
            let _ = remove(&entry.path());
        }
    }
}

/// What the thread works on.
pub(crate) struct Images {
    dir: PathBuf,
    init: PathBuf,
    criu: Option<CriuProgram>,
    readers: Option<Gid>,
}

impl Images {
    /// Dumps the template of a sandbox, which leaves it stopped, unless it has more memory mappings than `most`.
    pub(crate) fn dump(
        &self,
        name: &str,
        most: u64,
        dumpable: &Dumpable,
    ) -> Result<(), SandboxError> {
        let dumped = self.dump_to(&self.dir.join(STAGING), name, most, dumpable);
        if dumped.is_err() {
            clear(&self.dir);
        }
        dumped
    }

    /// Removes an image.
    pub(crate) fn remove(&self, name: &str) -> Result<(), SandboxError> {
        remove(&self.dir.join(name)).map_err(of_image)
    }

    fn dump_to(
        &self,
        staging: &Path,
        name: &str,
        most: u64,
        dumpable: &Dumpable,
    ) -> Result<(), SandboxError> {
        let criu = self.criu.as_ref();
        let criu = criu.ok_or_else(|| SandboxError::step("image", "there is no CRIU"))?;
        if mappings(&dumpable.template, most) > most {
            return Err(SandboxError::step(MAPPINGS_STEP, most));
        }
        remove(staging).map_err(of_image)?;
        let files = staging.join(FILES);
        for dir in [staging, &files] {
            fs::DirBuilder::new()
                .mode(0o700)
                .create(dir)
                .map_err(of_image)?;
        }
        let spec = DumpSpec {
            criu: criu.clone(),
            images: files.clone(),
            work: staging.to_owned(),
            outside: dumpable.outside,
            control_peer: dumpable.control_peer,
        };
        run_dump(&self.init, &spec, &dumpable.init)?;
        self.place(staging, &files, name).map_err(of_image)
    }

    /// Opens up, syncs and renames what CRIU has left.
    fn place(&self, staging: &Path, files: &Path, name: &str) -> io::Result<()> {
        fs::remove_file(staging.join(DUMP_LOG))?;
        for entry in fs::read_dir(files)? {
            let path = entry?.path();
            fs::set_permissions(&path, fs::Permissions::from_mode(FILE_MODE))?;
            File::open(&path)?.sync_all()?;
        }
        fs::set_permissions(files, fs::Permissions::from_mode(FILES_MODE))?;
        File::open(files)?.sync_all()?;
        let image = File::open(staging)?;
        open_to(&image, self.readers)?;
        image.sync_all()?;
        let place = self.dir.join(name);
        remove(&place)?;
        fs::rename(staging, &place)?;
        File::open(&self.dir)?.sync_all()
    }
}

fn of_image(error: io::Error) -> SandboxError {
    SandboxError::step("image", error)
}
