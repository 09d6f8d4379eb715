//! The mappings of this process, as the kernel lists them (proc_pid_smaps(5)).
//!
//! Not parsed by `procfs-core`, which makes a hash map of some twenty strings for each mapping: a template may have
//! thousands, and what is allocated here is in every fork.

use std::fs;
use std::io;
use std::ops::Range;

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<usize>,
    /// Its permissions: `rw-p` and the like.
    pub permissions: String,
    /// Its protection key; 0 where none was asked for.
    pub protection_key: u32,
    /// The kernel's two-letter flags.
    flags: String,
}

impl Mapping {
    /// Whether the kernel lists a flag of two letters for it.
    #[must_use]
    pub fn has(&self, flag: &str) -> bool {
        self.flags.split_ascii_whitespace().any(|mine| mine == flag)
    }
}

/// All mappings, by address.
///
/// # Errors
/// The list cannot be read.
pub fn list() -> io::Result<Vec<Mapping>> {
    Ok(parse(&fs::read_to_string("/proc/self/smaps")?))
}

fn parse(smaps: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for line in smaps.lines() {
        if let Some(mapping) = header(line) {
            found.push(mapping);
        } else if let Some(last) = found.last_mut() {
            if let Some(flags) = line.strip_prefix("VmFlags:") {
                flags.trim().clone_into(&mut last.flags);
            } else if let Some(key) = line.strip_prefix("ProtectionKey:") {
                // An unreadable key is a reason to leave the mapping alone.
                last.protection_key = key.trim().parse().unwrap_or(u32::MAX);
            }
        }
    }
    found
}

/// A mapping's first line: `7f00-7f01 rw-p …`.
fn header(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(Mapping {
        range: address(start)?..address(end)?,
        permissions: words.next()?.to_owned(),
        protection_key: 0,
        flags: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000002000 rw-p 00000000 00:00 0                          [heap]
Rss:                   8 kB
VmFlags: rd wr mr mw me ac sd
7f0000002000-7f0000003000 r--s 00000000 00:01 12   /dev/x y-z
ProtectionKey:         3
VmFlags: rd sh dc io
";

    #[test]
    fn mappings_have_ranges_permissions_keys_and_flags() {
        let mappings = parse(SMAPS);
        assert_eq!(mappings.len(), 2);
        assert_eq!(mappings[0].range, 0x7f00_0000_0000..0x7f00_0000_2000);
        assert_eq!(mappings[0].permissions, "rw-p");
        assert_eq!(mappings[0].protection_key, 0);
        assert!(mappings[0].has("wr") && !mappings[0].has("dc"));
        assert_eq!(mappings[1].protection_key, 3);
        assert!(mappings[1].has("dc") && mappings[1].has("io"));
    }

    #[test]
    fn this_process_has_a_stack() {
        let local = 0_u8;
        let address = std::ptr::from_ref(&local).addr();
        let mappings = list().expect("smaps");
        let stack = mappings
            .iter()
            .find(|mapping| mapping.range.contains(&address))
            .expect("the mapping of a local variable");
        assert!(stack.has("rd") && stack.has("wr"), "{stack:?}");
    }
}
