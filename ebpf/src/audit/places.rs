//! Where functions lie in the files that processes have mapped.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

/// Offsets in a program's file of the functions whose symbol has all parts of a name, for each of these names; none if it has no such
/// function, because of its version, or since the compiler has made it a part of its callers.
///
/// # Errors
/// It cannot be read, or is no program.
pub(super) fn functions(program: &Path, names: &[&[&str]]) -> io::Result<Vec<Vec<u64>>> {
    let bytes = fs::read(program)?;
    let file = object::File::parse(&*bytes).map_err(io::Error::other)?;
    let mut found = vec![Vec::new(); names.len()];
    for symbol in file.symbols() {
        if !symbol.is_definition() || symbol.kind() != SymbolKind::Text {
            continue;
        }
        let Ok(symbol_name) = symbol.name() else {
            continue;
        };
        for (parts, offsets) in names.iter().zip(&mut found) {
            if parts.iter().all(|part| symbol_name.contains(part)) {
                offsets.extend(offset(&file, symbol.address()));
            }
        }
    }
    for offsets in &mut found {
        // Functions of the same code may share it.
        offsets.sort_unstable();
        offsets.dedup();
    }
    Ok(found)
}

/// Where in the file an address lies.
fn offset(file: &object::File<'_>, address: u64) -> Option<u64> {
    file.segments().find_map(|segment| {
        let within = address.checked_sub(segment.address())?;
        let (offset, length) = segment.file_range();
        (within < length).then_some(offset + within)
    })
}

/// File and offset of the function that this process calls as `memcpy`. The C library has several, and chooses by the processor; it
/// is `memmove`, too.
pub(super) fn memcpy() -> io::Result<Mapped> {
    let address = libc::memcpy as *const () as usize;
    let maps = fs::read_to_string("/proc/self/maps")?;
    let found = maps.lines().find_map(|line| mapped(line, address as u64));
    found.ok_or_else(|| io::Error::other("memcpy is in no file"))
}

/// A place in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    file: PathBuf,
    pub(super) offset: u64,
    /// Device and inode, as the kernel lists them.
    identity: String,
}

impl Mapped {
    /// The same file as a process has it mapped, which may have a root of its own; none if it has another one.
    ///
    /// # Errors
    /// The process, or the file there, cannot be looked at.
    pub(super) fn of(&self, process: u32) -> io::Result<Option<PathBuf>> {
        let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
        // A process may have left its files behind, and still has mapped what it needs of them.
        if maps.lines().any(|line| line.contains(&self.identity)) {
            return Ok(Some(self.file.clone()));
        }
        let file = self.file.to_string_lossy();
        if !maps.lines().any(|line| line.ends_with(&*file)) {
            return Ok(None);
        }
        let theirs = PathBuf::from(format!("/proc/{process}/root{file}"));
        // An overlay file system has a device number of its own, and leaves the rest as it is below.
        let identity = |file: &Path| {
            let metadata = fs::metadata(file)?;
            let identity = [metadata.ino(), metadata.len()];
            io::Result::Ok((identity, metadata.mtime(), metadata.mtime_nsec()))
        };
        Ok((identity(&theirs)? == identity(&self.file)?).then_some(theirs))
    }
}

/// The place of an address that this line of a list of mappings has.
fn mapped(line: &str, address: u64) -> Option<Mapped> {
    let mut fields = line.split_ascii_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (begin, end) = (number(begin)?, number(end)?);
    let offset = number(fields.nth(1)?)?;
    let (device, inode) = (fields.next()?, fields.next()?);
    let file = fields.next().filter(|file| file.starts_with('/'))?;
    (begin..end).contains(&address).then(|| Mapped {
        file: file.into(),
        offset: offset + (address - begin),
        identity: format!(" {device} {inode} "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_says_where_in_its_file_an_address_lies() {
        let line = "7f00-7f80 r-xp 00028000 fe:00 4711                       /usr/lib/libc.so.6";
        let found = mapped(line, 0x7f10).unwrap();
        assert_eq!(found.file, Path::new("/usr/lib/libc.so.6"));
        assert_eq!(found.offset, 0x28010);
        assert_eq!(found.identity, " fe:00 4711 ");
        assert_eq!(mapped(line, 0x7f80), None);
        assert_eq!(
            mapped("7f00-7f80 rw-p 00000000 00:00 0 [heap]", 0x7f10),
            None
        );
        assert_eq!(mapped("nothing of the kind", 0x7f10), None);
    }

    #[test]
    fn the_c_library_is_where_memcpy_is() {
        let found = memcpy().unwrap();
        assert!(found.file.to_string_lossy().contains("libc"), "{found:?}");
        let own = std::process::id();
        assert_eq!(found.of(own).unwrap().as_ref(), Some(&found.file));
        // As where the root is an overlay.
        let elsewhere = |file: &Path| Mapped {
            file: file.to_owned(),
            offset: 0,
            identity: "another".to_owned(),
        };
        let theirs = elsewhere(&found.file).of(own).unwrap().unwrap();
        assert!(theirs.ends_with(found.file.strip_prefix("/").unwrap()));
        assert_eq!(elsewhere(Path::new("/bin/sh")).of(own).unwrap(), None);
    }
}
