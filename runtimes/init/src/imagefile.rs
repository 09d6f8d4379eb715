//! The image files of CRIU's that are changed after a dump: which namespaces processes shared, the system call filter of
//! each thread, and how its memory is mapped, filled and marked ([`memory`], [`populate`], [`aside`], [`marks`]).
//!
//! An image file is a magic number or two (4 bytes each) and then entries: a length (u32) and a protobuf message. Format:
//! CRIU's `images/inventory.proto` and `images/core.proto` (`task_kobj_ids_entry`, `thread_core_entry`).

use std::io;

use prost::Message as _;

use crate::protobuf::{Change, changed, with_numbers};
use records::{Core, Inventory, ObjectIds};

pub mod aside;
pub mod marks;
mod memory;
mod outside;
mod populate;
mod records;

pub use memory::{mappings, pages_file};
pub use outside::renamed;
pub use populate::populated;

/// Field of `task_kobj_ids_entry` that numbers the user namespace.
const USER_NS_ID: u32 = 10;
/// Field of `core_entry` that holds a `thread_core_entry`.
const THREAD_CORE: u32 = 5;
/// Fields of `thread_core_entry`: the mode of the system call filter, and which one it is.
const SECCOMP: [u32; 2] = [11, 12];
/// The first magic number of an image file that has a second one.
const COMMON_MAGIC: [u32; 2] = [0x5456_4319, 0x5510_5940];

/// The number of CRIU's own user namespace, from `inventory.img`.
pub fn user_namespace_of_criu(inventory: &[u8]) -> io::Result<u64> {
    let (start, end) = entry(inventory)?;
    let ids = Inventory::decode(&inventory[start..end])?.root_ids;
    let ids = ids.ok_or_else(|| odd("no root_ids"))?;
    let number = ids.user_ns_id;
    Ok(number
        .ok_or_else(|| odd("no user_ns_id of its own"))?
        .into())
}

/// The file `ids-PID.img` with another user namespace.
pub fn with_user_namespace(file: &[u8], number: u64) -> io::Result<Vec<u8>> {
    let (start, end) = entry(file)?;
    let message = &file[start..end];
    if ObjectIds::decode(message)?.user_ns_id.is_none() {
        return Err(odd("no user_ns_id"));
    }
    let changed = with_numbers(message, &[(USER_NS_ID, number)])?;
    with_message(file, start, end, &changed)
}

/// The file `core-TID.img` without a system call filter.
pub fn without_filter(file: &[u8]) -> io::Result<Vec<u8>> {
    let (start, end) = entry(file)?;
    let message = &file[start..end];
    let mut found = false;
    let without = |core: &[u8]| {
        changed(core, |field, _| match SECCOMP.contains(&field) {
            true => Ok(Change::Remove),
            false => Ok(Change::Keep),
        })
    };
    let changed = changed(message, |field, core| match field {
        THREAD_CORE => {
            found = true;
            Ok(Change::Bytes(without(core)?))
        }
        _ => Ok(Change::Keep),
    })?;
    if !found {
        return Err(odd("no thread_core"));
    }
    with_message(file, start, end, &changed)
}

/// Where the thread of `core-TID.img` has the kernel write which processor it is on (`rseq(2)`), each time it goes on.
pub fn written_by_kernel(file: &[u8]) -> io::Result<Option<u64>> {
    let (start, end) = entry(file)?;
    let core = Core::decode(&file[start..end])?.thread_core;
    let rseq = core.ok_or_else(|| odd("no thread_core"))?.rseq;
    let address = rseq.map_or(0, |rseq| rseq.abi_pointer);
    Ok(Some(address).filter(|address| *address != 0))
}

/// The file with another message in its first entry.
fn with_message(file: &[u8], start: usize, end: usize, message: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = file[..start - 4].to_vec();
    push_entry(&mut out, message)?;
    out.extend_from_slice(&file[end..]);
    Ok(out)
}

/// Writes an entry.
fn push_entry(out: &mut Vec<u8>, message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(|_| odd("a long entry"))?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(message);
    Ok(())
}

/// Where the first entry's message is.
fn entry(file: &[u8]) -> io::Result<(usize, usize)> {
    entry_at(file, header(file)?)
}

/// Length of what stands before the first entry.
fn header(file: &[u8]) -> io::Result<usize> {
    Ok(if COMMON_MAGIC.contains(&word(file, 0)?) {
        8
    } else {
        4
    })
}

/// Where the message of the entry at `at` is.
fn entry_at(file: &[u8], at: usize) -> io::Result<(usize, usize)> {
    let length = word(file, at)? as usize;
    let start = at + 4;
    match start.checked_add(length) {
        Some(end) if end <= file.len() => Ok((start, end)),
        _ => Err(odd("an entry that is longer than the file")),
    }
}

fn word(file: &[u8], at: usize) -> io::Result<u32> {
    let bytes = file.get(at..at + 4).ok_or_else(|| odd("it ends early"))?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("image file: {what}"))
}

#[cfg(test)]
mod tests {
    use super::memory::{FLAGS, VMA};
    use super::*;
    use prost::encoding::{bytes, uint64};

    pub const PAGE: u64 = 4096;

    /// An image file of these entries.
    pub fn file(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut file = b"\x19\x43\x56\x54\0\0\0\0".to_vec();
        for entry in entries {
            file.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            file.extend_from_slice(entry);
        }
        file
    }

    /// A message of these fields.
    pub fn message(fields: &[(u32, u64)]) -> Vec<u8> {
        let mut message = Vec::new();
        for (field, number) in fields {
            uint64::encode(*field, number, &mut message);
        }
        message
    }

    /// Mappings of ten pages each, one after the other.
    pub fn mm(flags: &[u64]) -> Vec<u8> {
        let mut mm = message(&[(1, 7)]);
        for (index, flags) in (1..).zip(flags) {
            let start = index * 10 * PAGE;
            let vma = message(&[
                (1, start),
                (2, start + 10 * PAGE),
                (5, 3),
                (FLAGS, *flags),
                (7, 513),
            ]);
            bytes::encode(VMA, &vma, &mut mm);
        }
        file(&[mm])
    }

    /// As CRIU 4.1.1 wrote them: the inventory has one magic number and the others two.
    const INVENTORY: &[u8] = b"\x16\x31\x31\x58\x1e\0\0\0\x08\x02\x10\x01\x1a\x18\x08\x01\x10\x01\x18\x01\x20\x01\x28\x01\x30\x02\x38\x03\x40\x04\x48\x06\x50\x07\x58\x08\x60\x05";
    const IDS: &[u8] = b"\x19\x43\x56\x54\x30\x20\x43\x54\x18\0\0\0\x08\x02\x10\x02\x18\x02\x20\x02\x28\x01\x30\x02\x38\x03\x40\x04\x48\x06\x50\x09\x58\x08\x60\x05";

    #[test]
    fn changes_the_namespace_and_nothing_else() {
        assert_eq!(user_namespace_of_criu(INVENTORY).unwrap(), 7);
        let changed = with_user_namespace(IDS, 7).unwrap();
        let mut expected = IDS.to_vec();
        expected[IDS.len() - 5] = 7;
        assert_eq!(changed, expected);
        let longer = with_user_namespace(IDS, 300).unwrap();
        assert_eq!(longer.len(), IDS.len() + 1);
        assert_eq!(longer[8], IDS[8] + 1);
        assert_eq!(with_user_namespace(&longer, 9).unwrap(), IDS);
    }

    #[test]
    fn takes_the_filter_away_and_nothing_else() {
        // mtype, thread_core { seccomp_mode 2, seccomp_filter 1, cg_set 2 }, and one more field.
        let core = b"\x19\x43\x56\x54\x47\x38\x05\x55\x0c\0\0\0\x08\x01\x2a\x06\x58\x02\x60\x01\x78\x02\x30\x01";
        let without = without_filter(core).unwrap();
        assert_eq!(without[8..], *b"\x08\0\0\0\x08\x01\x2a\x02\x78\x02\x30\x01");
        assert_eq!(without_filter(&without).unwrap(), without);
        for length in 0..core.len() {
            assert!(without_filter(&core[..length]).is_err());
        }
    }

    #[test]
    fn finds_what_the_kernel_writes() {
        // thread_core { seccomp_mode 2, rseq_entry { address 0x1234, length 32 } }
        let core = b"\x19\x43\x56\x54\x47\x38\x05\x55\x0b\0\0\0\x2a\x09\x58\x02\x7a\x05\x08\xb4\x24\x10\x20";
        assert_eq!(written_by_kernel(core).unwrap(), Some(0x1234));
        let without = b"\x19\x43\x56\x54\x47\x38\x05\x55\x04\0\0\0\x2a\x02\x58\x02";
        assert_eq!(written_by_kernel(without).unwrap(), None);
        for length in 0..core.len() {
            assert!(written_by_kernel(&core[..length]).is_err());
        }
    }

    #[test]
    fn cut_files_are_errors() {
        for length in 0..IDS.len() {
            assert!(with_user_namespace(&IDS[..length], 7).is_err());
        }
        for length in 0..INVENTORY.len() - 4 {
            assert!(user_namespace_of_criu(&INVENTORY[..length]).is_err());
        }
    }
}
