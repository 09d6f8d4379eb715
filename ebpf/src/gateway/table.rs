//! A map by its descriptor alone, which is all that a process without the right to make maps needs.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use aya::{Ebpf, Pod};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::records::{SLOTS, Usage};
use crate::records::Sum;

const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_MAP_DELETE_ELEM: libc::c_int = 3;
const BPF_MAP_LOOKUP_AND_DELETE_ELEM: libc::c_int = 21;
const BPF_MAP_LOOKUP_BATCH: libc::c_int = 24;
/// Entries read by one call.
const BATCH: usize = 1024;

/// What `union bpf_attr` is for one entry.
#[repr(C)]
struct One {
    map: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// What it is for many.
#[repr(C)]
struct Many {
    from: u64,
    next: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    entry_flags: u64,
    flags: u64,
}

/// A map from `K` to `V` whose values are not per CPU.
pub(super) struct Table<K, V> {
    map: OwnedFd,
    records: PhantomData<fn(K, V)>,
}

impl<K: Pod, V: Pod> Table<K, V> {
    /// The object's map of this name.
    ///
    /// # Panics
    /// If the object has no such map.
    pub(super) fn of(object: &Ebpf, name: &str) -> io::Result<Self> {
        let map = object.map(name).expect("the object has it");
        Ok(Self {
            map: crate::ingress::maps::descriptor(map)?,
            records: PhantomData,
        })
    }

    fn one(&self, command: libc::c_int, key: &K, value: *const V) -> io::Result<()> {
        let mut attributes = One {
            map: self.map.as_raw_fd().cast_unsigned(),
            unused: 0,
            key: std::ptr::from_ref(key).expose_provenance() as u64,
            value: value.expose_provenance() as u64,
            flags: 0,
        };
        // SAFETY: `key` and `value` point to a `K` and a `V`, the sizes of which are those of the map's (records.rs and the
        // header assert them), for as long as the call; a value that the kernel writes comes from `read`, where it may.
        unsafe { call(command, &raw mut attributes) }.map(drop)
    }

    fn read(&self, command: libc::c_int, key: &K) -> io::Result<Option<V>> {
        let mut value = MaybeUninit::<V>::uninit();
        match self.one(command, key, value.as_mut_ptr()) {
            // SAFETY: the kernel has written all of it, and every bit pattern is a `V` (`Pod`).
            Ok(()) => Ok(Some(unsafe { value.assume_init() })),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn get(&self, key: &K) -> io::Result<Option<V>> {
        self.read(BPF_MAP_LOOKUP_ELEM, key)
    }

    /// Removes an entry, in one step. What it was last.
    pub(super) fn take(&self, key: &K) -> io::Result<Option<V>> {
        self.read(BPF_MAP_LOOKUP_AND_DELETE_ELEM, key)
    }

    pub(super) fn set(&self, key: &K, value: &V) -> io::Result<()> {
        self.one(BPF_MAP_UPDATE_ELEM, key, value)
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&self, key: &K) -> io::Result<()> {
        match self.one(BPF_MAP_DELETE_ELEM, key, std::ptr::null()) {
            Err(error) if is_missing(&error) => Ok(()),
            done => done,
        }
    }

    /// All entries of a hash. Some that are made meanwhile may be missing.
    pub(super) fn all(&self) -> io::Result<Vec<(K, V)>> {
        let mut found = Vec::new();
        // The kernel's place in the map.
        let (mut place, mut is_first) = (0_u64, true);
        let mut keys = Box::<[K]>::new_uninit_slice(BATCH);
        let mut values = Box::<[V]>::new_uninit_slice(BATCH);
        loop {
            let here = std::ptr::from_mut(&mut place).expose_provenance() as u64;
            let mut attributes = Many {
                from: if is_first { 0 } else { here },
                next: here,
                keys: keys.as_mut_ptr().expose_provenance() as u64,
                values: values.as_mut_ptr().expose_provenance() as u64,
                count: BATCH as u32,
                map: self.map.as_raw_fd().cast_unsigned(),
                entry_flags: 0,
                flags: 0,
            };
            // SAFETY: room for `count` keys and values of the map's sizes, and for its place in a hash (4 bytes).
            let done = unsafe { call(BPF_MAP_LOOKUP_BATCH, &raw mut attributes) };
            let is_last = match done {
                Ok(_) => false,
                Err(error) if is_missing(&error) => true,
                Err(error) => return Err(error),
            };
            // The kernel has written how many there are.
            let count = attributes.count as usize;
            for (key, value) in keys.iter().zip(&values).take(count) {
                // SAFETY: it has written these, and every bit pattern is a `K` and a `V` (`Pod`).
                found.push(unsafe { (key.assume_init_read(), value.assume_init_read()) });
            }
            if is_last {
                return Ok(found);
            }
            is_first = false;
        }
    }
}

/// An array whose values are per CPU.
pub(super) struct PerCpu<V> {
    map: OwnedFd,
    /// CPUs that there may be.
    cpus: usize,
    records: PhantomData<fn(V)>,
}

impl<V: Pod + Sum + Default> PerCpu<V> {
    /// The object's map of this name.
    ///
    /// # Panics
    /// If the object has no such map.
    pub(super) fn of(object: &Ebpf, name: &str) -> io::Result<Self> {
        // The kernel rounds the size of each CPU's value up to this.
        const { assert!(size_of::<V>().is_multiple_of(8)) };
        let map = object.map(name).expect("the object has it");
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| error)?;
        Ok(Self {
            map: crate::ingress::maps::descriptor(map)?,
            cpus,
            records: PhantomData,
        })
    }

    fn one(&self, command: libc::c_int, index: u32, values: &mut [V]) -> io::Result<()> {
        let mut attributes = One {
            map: self.map.as_raw_fd().cast_unsigned(),
            unused: 0,
            key: std::ptr::from_ref(&index).expose_provenance() as u64,
            value: values.as_mut_ptr().expose_provenance() as u64,
            flags: 0,
        };
        // SAFETY: the key is a `u32`, and `values` has one of the map's for each CPU that there may be.
        unsafe { call(command, &raw mut attributes) }.map(drop)
    }

    /// The sum over all CPUs.
    pub(super) fn sum(&self, index: u32) -> io::Result<V> {
        let mut values = vec![V::default(); self.cpus];
        self.one(BPF_MAP_LOOKUP_ELEM, index, &mut values)?;
        let mut sum = V::default();
        values.iter().for_each(|value| sum.add(value));
        Ok(sum)
    }

    pub(super) fn clear(&self, index: u32) -> io::Result<()> {
        let mut values = vec![V::default(); self.cpus];
        self.one(BPF_MAP_UPDATE_ELEM, index, &mut values)
    }
}

fn is_missing(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::NOENT)
}

/// # Safety
/// `attributes` is what the command takes, and its addresses are what that says of them.
unsafe fn call<T>(command: libc::c_int, attributes: *mut T) -> io::Result<libc::c_long> {
    // SAFETY: as large as is said; the rest is the caller's.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    match result {
        ..0 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// How many connections each group has open: shared with the programs, which change it at the same time.
pub(super) struct Open(*mut libc::c_void);

// SAFETY: all access is atomic.
unsafe impl Send for Open {}

impl Open {
    const BYTES: usize = SLOTS as usize * size_of::<Usage>();

    pub(super) fn of(object: &Ebpf) -> io::Result<Self> {
        let map = object.map("usage").expect("the object has it");
        let map = crate::ingress::maps::descriptor(map)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping wherever there is room.
        let at = unsafe {
            mmap(
                std::ptr::null_mut(),
                Self::BYTES,
                protection,
                MapFlags::SHARED,
                &map,
                0,
            )
        };
        Ok(Self(at?))
    }

    fn of_group(&self, group: u32) -> &AtomicI32 {
        let group = group.min(SLOTS - 1) as usize;
        // SAFETY: within the mapping, aligned as the record is, and used atomically by everybody.
        unsafe {
            let usage = self.0.cast::<Usage>().add(group);
            AtomicI32::from_ptr(&raw mut (*usage).open)
        }
    }

    pub(super) fn get(&self, group: u32) -> i32 {
        self.of_group(group).load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, group: u32, change: i32) {
        self.of_group(group).fetch_add(change, Ordering::Relaxed);
    }

    pub(super) fn clear(&self, group: u32) {
        self.of_group(group).store(0, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the mapping of `of`, which nobody has any more.
        let _ = unsafe { munmap(self.0, Self::BYTES) };
    }
}
