//! The directory of a pre-warmed sandbox's image, and the pipe on which CRIU waits until it is there.
//!
//! CRIU is started with this directory when the sandbox is pre-warmed, so that everything before reading an image is
//! done ahead: it opens its log and probes the kernel with a traced child. The first file that it reads is a pipe; once
//! there is an image, PID 1 writes the file's content into it.
//!
//! ```text
//! DIR/image        in memory, seen by stage 0 only and by who has a descriptor of DIR
//!   inventory.img  the pipe
//!   files/         the image is mounted here
//!   core-1000.img  a link to files/core-1000.img, and so on for all but the inventory
//! ```

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use hearth_init::criu::{IMAGE, IMAGE_LINK};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountFlags;

use crate::error::JailError;
use crate::mounts::mount_sealed;

/// The file of an image that CRIU reads first.
const FIRST: &str = "inventory.img";
/// Where the image is mounted.
const FILES: &str = "files";
/// Longest inventory, bytes: what a pipe takes at once. One has a hundred.
const MAX_FIRST: usize = 4096;
/// Interval for checking whether CRIU has reached the pipe. Nothing waits for a pre-warmed sandbox.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Makes the directory in `dir`, with `owner` as the one who may use the pipe. The calling process has mounts of its own.
pub fn build(dir: &Path, owner: u32) -> Result<(), JailError> {
    let image = dir.join(IMAGE);
    fs::create_dir(&image).map_err(JailError::restore)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("tmpfs", &image, "tmpfs", flags, Some(c"mode=0755,size=1m"))
        .map_err(JailError::mount("mounting the image's place"))?;
    let make = || -> io::Result<()> {
        fs::create_dir(image.join(FILES))?;
        let (first, private) = (image.join(FIRST), Mode::RUSR | Mode::WUSR);
        rustix::fs::mknodat(CWD, &first, FileType::Fifo, private, 0)?;
        std::os::unix::fs::chown(&first, Some(owner), Some(owner))?;
        std::os::unix::fs::symlink(IMAGE, dir.join(IMAGE_LINK))
    };
    make().map_err(JailError::restore)
}

/// Puts an image into the directory.
pub fn populate(dir: &Path, images: &Path) -> Result<(), JailError> {
    let place = dir.join(IMAGE);
    let link = || -> io::Result<()> {
        for entry in fs::read_dir(images)? {
            let name = entry?.file_name();
            if name != FIRST {
                let target = Path::new(FILES).join(&name);
                std::os::unix::fs::symlink(target, place.join(&name))?;
            }
        }
        Ok(())
    };
    link().map_err(JailError::restore)?;
    mount_sealed(images, &place.join(FILES))?;
    Ok(())
}

/// Path of the image's files beneath that of `dir`.
pub fn files(dir: &str) -> String {
    format!("{dir}/{IMAGE}/{FILES}")
}

/// The pipe, with CRIU at its other end.
pub struct RestoreGate(File);

impl RestoreGate {
    /// Waits until CRIU has reached the pipe, or has exited, which makes `ended` readable: then there is none. `dir` is
    /// a path of the directory that was built in.
    pub fn reached(dir: &str, ended: &OwnedFd) -> io::Result<Option<Self>> {
        let path = format!("{dir}/{IMAGE}/{FIRST}");
        let pause = rustix::time::Timespec::try_from(LOOK_AGAIN).map_err(io::Error::other)?;
        loop {
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match rustix::fs::open(&path, flags, Mode::empty()) {
                Ok(pipe) => return Ok(Some(Self(File::from(pipe)))),
                // There is no reader yet.
                Err(Errno::NXIO) => {}
                Err(errno) => return Err(errno.into()),
            }
            let mut fds = [PollFd::new(ended, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&pause)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Lets CRIU read the image.
    pub fn open(self, dir: &str) -> io::Result<()> {
        let first = fs::read(format!("{}/{FIRST}", files(dir)))?;
        if first.len() > MAX_FIRST {
            return Err(io::Error::other(format!("{FIRST} is too long")));
        }
        let Self(mut pipe) = self;
        pipe.write_all(&first)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::mpsc;

    use super::*;

    /// A directory with an image's place in it, and what CRIU's end makes readable.
    fn place() -> (tempfile::TempDir, String, OwnedFd, OwnedFd) {
        let dir = tempfile::tempdir().expect("a directory");
        let image = dir.path().join(IMAGE);
        fs::create_dir_all(image.join(FILES)).expect("made");
        let private = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, image.join(FIRST), FileType::Fifo, private, 0).expect("a pipe");
        let path = dir.path().to_str().expect("UTF-8").to_owned();
        let (ended, end) = rustix::pipe::pipe().expect("a pipe");
        (dir, path, ended, end)
    }

    #[test]
    fn a_reader_gets_the_first_file_when_the_gate_opens() {
        let (_dir, path, ended, _end) = place();
        let fifo = format!("{path}/{IMAGE}/{FIRST}");
        let (sender, read) = mpsc::channel();
        let criu = std::thread::spawn(move || {
            let mut content = Vec::new();
            File::open(fifo)
                .expect("open")
                .read_to_end(&mut content)
                .expect("read");
            sender.send(content).expect("awaited");
        });
        let gate = RestoreGate::reached(&path, &ended).expect("no error");
        let gate = gate.expect("the reader has come");
        assert!(read.try_recv().is_err(), "it waits");
        fs::write(format!("{}/{FIRST}", files(&path)), b"inventory").expect("written");
        gate.open(&path).expect("written");
        assert_eq!(read.recv().expect("content"), b"inventory");
        criu.join().expect("ended");
    }

    #[test]
    fn a_criu_that_has_ended_never_comes() {
        let (_dir, path, ended, end) = place();
        drop(end);
        assert!(
            RestoreGate::reached(&path, &ended)
                .expect("no error")
                .is_none()
        );
    }

    #[test]
    fn an_inventory_that_would_block_the_pipe_is_refused() {
        let (_dir, path, _ended, _end) = place();
        fs::write(format!("{}/{FIRST}", files(&path)), [0; MAX_FIRST + 1]).expect("written");
        let gate = RestoreGate(File::create("/dev/null").expect("opened"));
        assert!(gate.open(&path).is_err());
        let gate = RestoreGate(File::create("/dev/null").expect("opened"));
        fs::write(format!("{}/{FIRST}", files(&path)), [0; MAX_FIRST]).expect("written");
        gate.open(&path).expect("as long as a pipe takes");
    }
}
