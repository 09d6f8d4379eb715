//! Makes what CRIU dumped an image that can be restored inside a sandbox, and fast.
//!
//! CRIU ran outside the sandbox's user namespace and noted it as one to be made: every process's note is made to say what
//! CRIU's own says. The system call filter is taken out: CRIU could not finish under it, and only the host's root may
//! suspend it. PID 1 installs its own instead. And memory is laid out to be filled fast: what can be large pages goes to a
//! file of its own, other mappings that are full are marked to be filled at once.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{Mode, OFlags};

use crate::imagefile;
use crate::imagefile::huge::{self, Split};

/// Piece in which pages are copied, in bytes.
const PIECE: u64 = 1 << 20;
/// A pages file while it is written anew.
const REWRITTEN: &str = "pages.new";

/// Changes the files of an image that CRIU has just written.
pub fn adapt(images: &OwnedFd) -> io::Result<()> {
    let page = rustix::param::page_size() as u64;
    let outer = imagefile::user_namespace_of_criu(&read(images, "inventory.img")?)?;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(images)? {
        if let Ok(name) = entry?.file_name().to_str() {
            names.push(name.to_owned());
        }
    }
    for name in names {
        if name.starts_with("ids-") {
            let changed = imagefile::with_user_namespace(&read(images, &name)?, outer)?;
            write(images, &name, &changed)?;
        } else if name.starts_with("core-") {
            let changed = imagefile::without_filter(&read(images, &name)?)?;
            write(images, &name, &changed)?;
        } else if let Some(pid) = number(&name, "mm-") {
            let notes = format!("pagemap-{pid}.img");
            let (mut mm, mut pagemap) = (read(images, &name)?, read(images, &notes)?);
            if let Some(split) = huge::split(&mm, &pagemap, page)? {
                take(images, pid, &split)?;
                write(images, &notes, &split.pagemap)?;
                (mm, pagemap) = (split.mm, split.pagemap);
            }
            write(images, &name, &imagefile::populated(&mm, &pagemap, page)?)?;
        }
    }
    Ok(())
}

/// What stands between `prefix` and the ending in a file's name.
fn number<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    name.strip_prefix(prefix)?.strip_suffix(".img")
}

/// Takes large pages out of the pages file.
fn take(images: &OwnedFd, pid: &str, split: &Split) -> io::Result<()> {
    let pages = format!("pages-{}.img", split.pages_file);
    let from = open(images, &pages, OFlags::RDONLY)?;
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let large = open(images, &huge::name(pid), new)?;
    large.write_all_at(&split.head(), 0)?;
    // What is not written is zero.
    large.set_len(split.size())?;
    for (bytes, place) in &split.taken {
        copy(&from, bytes, &large, *place)?;
    }
    let rest = open(images, REWRITTEN, new)?;
    let mut place = 0;
    for bytes in &split.kept {
        copy(&from, bytes, &rest, place)?;
        place += bytes.end - bytes.start;
    }
    Ok(rustix::fs::renameat(images, REWRITTEN, images, &pages)?)
}

/// Copies bytes of one file to another.
fn copy(from: &File, bytes: &Range<u64>, to: &File, place: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE.min(bytes.end - bytes.start) as usize];
    let mut at = bytes.start;
    while at < bytes.end {
        let length = PIECE.min(bytes.end - at) as usize;
        from.read_exact_at(&mut piece[..length], at)?;
        to.write_all_at(&piece[..length], place + (at - bytes.start))?;
        at += length as u64;
    }
    Ok(())
}

fn read(images: &OwnedFd, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(images, name, OFlags::RDONLY)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(images: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    open(images, name, OFlags::WRONLY | OFlags::TRUNC)?.write_all_at(bytes, 0)
}

fn open(dir: &OwnedFd, name: &str, flags: OFlags) -> io::Result<File> {
    let private = Mode::RUSR | Mode::WUSR;
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::openat(dir, name, flags, private)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_copied_from_where_they_are_to_where_they_belong() {
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let bytes: Vec<u8> = (0..3 * PIECE + 17).map(|at| (at % 251) as u8).collect();
        from.write_all_at(&bytes, 0).unwrap();
        copy(&from, &(5..2 * PIECE + 9), &to, 3).unwrap();
        let mut copied = vec![0; 2 * PIECE as usize + 4];
        to.read_exact_at(&mut copied, 3).unwrap();
        assert_eq!(copied, bytes[5..2 * PIECE as usize + 9]);
        assert_eq!(to.metadata().unwrap().len(), 2 * PIECE + 7);
        assert!(copy(&from, &(0..4 * PIECE), &to, 0).is_err());
    }
}
