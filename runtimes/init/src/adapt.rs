//! Makes what CRIU dumped an image that can be restored inside a sandbox, and fast.
//!
//! CRIU ran outside the sandbox's user namespace and noted it as one to be made: every process's note is made to say what
//! CRIU's own says. The system call filter is taken out: CRIU could not finish under it, and only the host's root may
//! suspend it. PID 1 installs its own instead. The descriptors that led out of the sandbox are given the same numbers in
//! every image. What the kernel wipes in forked children is wiped, and noted with whatever else CRIU does not restore. And
//! memory is to be filled fast: most of it is laid aside for PID 1, and other mappings that are full are marked to be filled
//! at once.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use hearth_init::criu::{IN_IMAGE, Outside};
use rustix::fs::{Mode, OFlags};

use crate::imagefile;
use crate::imagefile::aside::{self, Split};
use crate::imagefile::marks::{self, Mark};
use crate::smaps;

/// Piece in which pages are copied, in bytes.
const PIECE: u64 = 1 << 20;
/// A pages file that is being rewritten.
const REWRITTEN: &str = "pages.new";

/// Changes the files of an image that CRIU has just written. Its processes are stopped in the state that it has them in.
pub fn adapt(images: &OwnedFd, outside: &Outside) -> io::Result<()> {
    let page = rustix::param::page_size() as u64;
    let outer = imagefile::user_namespace_of_criu(&read(images, "inventory.img")?)?;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(images)? {
        if let Ok(name) = entry?.file_name().to_str() {
            names.push(name.to_owned());
        }
    }
    let mut written = Vec::new();
    for name in names.iter().filter(|name| name.starts_with("core-")) {
        written.extend(imagefile::written_by_kernel(&read(images, name)?)?);
    }
    for name in names {
        if name == "files.img" {
            let changed = imagefile::renamed(&read(images, &name)?, outside, &IN_IMAGE)?;
            write(images, &name, &changed)?;
        } else if name.starts_with("ids-") {
            let changed = imagefile::with_user_namespace(&read(images, &name)?, outer)?;
            write(images, &name, &changed)?;
        } else if name.starts_with("core-") {
            let changed = imagefile::without_filter(&read(images, &name)?)?;
            write(images, &name, &changed)?;
        } else if let Some(pid) = number(&name, "mm-") {
            let notes = format!("pagemap-{pid}.img");
            let (mm, mut pagemap) = (read(images, &name)?, read(images, &notes)?);
            let marks = marks::lost(&smaps::of_process(pid)?, &imagefile::mappings(&mm)?)?;
            if !marks.is_empty() {
                wipe(images, &marks, &pagemap, page)?;
                let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let file = open(images, &marks::name(pid), new)?;
                file.write_all_at(&serde_json::to_vec(&marks)?, 0)?;
            }
            if let Some(split) = aside::split(&mm, &pagemap, page, &written, &marks)? {
                take(images, pid, &split)?;
                write(images, &notes, &split.pagemap)?;
                pagemap = split.pagemap;
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

/// Overwrites what is in mappings that forked children find empty.
fn wipe(images: &OwnedFd, marks: &[Mark], pagemap: &[u8], page: u64) -> io::Result<()> {
    let pages = format!("pages-{}.img", imagefile::pages_file(pagemap, page)?);
    let pages = open(images, &pages, OFlags::WRONLY)?;
    let zeros = vec![0; PIECE as usize];
    for range in marks::wiped(marks, pagemap, page)? {
        for at in range.clone().step_by(PIECE as usize) {
            let length = PIECE.min(range.end - at);
            pages.write_all_at(&zeros[..length as usize], at)?;
        }
    }
    Ok(())
}

/// Lays memory aside.
fn take(images: &OwnedFd, pid: &str, split: &Split) -> io::Result<()> {
    let pages = format!("pages-{}.img", split.pages_file);
    let from = open(images, &pages, OFlags::RDONLY)?;
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let aside = open(images, &aside::name(pid), new)?;
    aside.write_all_at(&split.contents.head(), 0)?;
    copy(&from, &split.taken, &aside, split.contents.begin)?;
    let rest = open(images, REWRITTEN, new)?;
    copy(&from, &split.kept, &rest, 0)?;
    Ok(rustix::fs::renameat(images, REWRITTEN, images, &pages)?)
}

/// Copies pieces of one file to another, where they follow each other.
fn copy(from: &File, pieces: &[Range<u64>], to: &File, mut place: u64) -> io::Result<()> {
    let mut buffer = vec![0; PIECE as usize];
    for piece in pieces {
        let mut at = piece.start;
        while at < piece.end {
            let length = PIECE.min(piece.end - at);
            let bytes = &mut buffer[..length as usize];
            from.read_exact_at(bytes, at)?;
            to.write_all_at(bytes, place)?;
            at += length;
            place += length;
        }
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
        copy(&from, &[5..2 * PIECE + 9, 1..2], &to, 3).unwrap();
        let mut copied = vec![0; 2 * PIECE as usize + 5];
        to.read_exact_at(&mut copied, 3).unwrap();
        assert_eq!(copied[..copied.len() - 1], bytes[5..2 * PIECE as usize + 9]);
        assert_eq!(copied.last(), Some(&1));
        assert_eq!(to.metadata().unwrap().len(), 3 + copied.len() as u64);
        assert!(copy(&from, std::slice::from_ref(&(0..4 * PIECE)), &to, 0).is_err());
    }
}
