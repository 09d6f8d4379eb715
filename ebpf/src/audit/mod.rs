//! Counts what processes do on a request's path, for measurements: by tracepoints of the kernel and probes in their functions.

mod counts;
mod places;

use std::io;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::Path;

use aya::maps::{Array, HashMap, MapData, PerCpuArray};
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeScope};
use aya::programs::{RawTracePoint, UProbe};
use aya::{Ebpf, EbpfLoader};

pub use counts::{Counts, Kind, Part};

use crate::programs::{LoadError, load, program, told};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/audit.o"));

/// The tracepoints, and what is not counted without them.
const TRACEPOINTS: [(&str, &[Kind]); 10] = [
    ("sched_switch", &[Kind::Switches]),
    (
        "sys_enter",
        &[
            Kind::SystemCalls,
            Kind::PayloadsIn,
            Kind::PayloadsOut,
            Kind::TcpSent,
            Kind::TcpReceived,
        ],
    ),
    (
        "sys_exit",
        &[
            Kind::PayloadsIn,
            Kind::PayloadsOut,
            Kind::TcpSent,
            Kind::TcpReceived,
        ],
    ),
    ("tcp_sendmsg_locked", &[Kind::TcpSent]),
    ("tcp_rcv_space_adjust", &[Kind::TcpReceived]),
    ("netif_receive_skb", &[Kind::Packets]),
    ("softirq_entry", &[Kind::Softirqs]),
    ("irq_handler_entry", &[Kind::Devices]),
    ("reschedule_entry", &[Kind::BetweenCpus]),
    ("call_function_single_entry", &[Kind::BetweenCpus]),
];
/// For some interrupts between all processors at once; where there is no such tracepoint, they are none.
const RARE: &str = "call_function_entry";

/// System calls that take bytes from user space, and that put them there. Those that move several messages at once say only how many.
const TAKING: [libc::c_long; 6] = [
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
];
const GIVING: [libc::c_long; 6] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
];
/// `TAKES` and `GIVES` in `audit.bpf.c`.
const TAKES: u32 = 1;
const GIVES: u32 = 2;

/// The programs, attached. They count until this is dropped.
pub struct Audit {
    object: Ebpf,
    counts: PerCpuArray<MapData, u64>,
    parts: HashMap<MapData, u32, u32>,
    payload: Array<MapData, u64>,
    missing: Vec<(Kind, String)>,
}

impl Audit {
    /// Loads and attaches what counts in the kernel. Needs root, in the host's own pid namespace.
    ///
    /// # Errors
    /// [`LoadError`]. A tracepoint that this kernel has not is none: see [`Self::missing`].
    pub fn load() -> Result<Self, LoadError> {
        let refused = |log| LoadError::Refused { name: "audit", log };
        let mut object = EbpfLoader::new()
            .load(OBJECT)
            .map_err(|error| refused(told(&error)))?;
        let mut missing = Vec::new();
        let rare: (&str, &[Kind]) = (RARE, &[]);
        for (name, kinds) in TRACEPOINTS.into_iter().chain([rare]) {
            let tracepoint = program::<RawTracePoint>(&mut object, name);
            load(|| tracepoint.load()).map_err(|error| refused(told(&error)))?;
            if let Err(error) = tracepoint.attach(name) {
                let why = format!("the tracepoint {name}: {}", told(&error));
                missing.extend(kinds.iter().map(|kind| (*kind, why.clone())));
            }
        }
        for probe in ["copied", "called"] {
            let probe = program::<UProbe>(&mut object, probe);
            load(|| probe.load()).map_err(|error| refused(told(&error)))?;
        }
        let mut take = |name| object.take_map(name).expect("the object has it");
        let (counts, parts, moves) = (take("counts"), take("parts"), take("moves"));
        let payload = Array::try_from(take("payload")).expect("it is an array");
        let counts = PerCpuArray::try_from(counts).expect("it is an array");
        let parts = HashMap::try_from(parts).expect("it is a hash");
        let mut moves: HashMap<_, u32, u32> = HashMap::try_from(moves).expect("it is a hash");
        let all = TAKING.map(|call| (call, TAKES)).into_iter();
        for (call, move_) in all.chain(GIVING.map(|call| (call, GIVES))) {
            let call = u32::try_from(call).expect("system calls have small numbers");
            let set = moves.insert(call, move_, 0);
            set.map_err(|error| LoadError::Maps(told(&error)))?;
        }
        Ok(Self {
            object,
            counts,
            parts,
            payload,
            missing,
        })
    }

    /// What cannot be counted by this kernel, and why.
    pub fn missing(&self) -> &[(Kind, String)] {
        &self.missing
    }

    /// Counts a process as one on the path, from now on.
    ///
    /// # Errors
    /// There are too many.
    pub fn follow(&mut self, process: u32, part: Part) -> io::Result<()> {
        let set = self.parts.insert(process, part as u32, 0);
        set.map_err(|error| io::Error::other(told(&error)))
    }

    /// Takes what moves so many bytes at once as a copy of the payload, from now on; before, nothing is.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn payload(&mut self, bytes: Range<u64>) -> io::Result<()> {
        for (key, bound) in [(0, bytes.start), (1, bytes.end)] {
            let set = self.payload.set(key, bound, 0);
            set.map_err(|error| io::Error::other(told(&error)))?;
        }
        Ok(())
    }

    /// Counts the payloads that a process copies with the C library's `memcpy` and `memmove`. What the compiler copies by instructions
    /// of its own is not seen.
    ///
    /// # Errors
    /// It has another C library than this process, or the kernel refuses.
    pub fn probe_copies(&mut self, process: u32) -> io::Result<()> {
        let memcpy = places::memcpy()?;
        let library = memcpy
            .of(process)?
            .ok_or_else(|| io::Error::other(format!("process {process} has another C library")))?;
        self.attach("copied", process, &library, memcpy.offset, None)
    }

    /// Counts a process's calls of functions in its program: for each kind those whose symbol has all of these parts. How many
    /// functions these are, in the same order.
    ///
    /// # Errors
    /// Its program cannot be read, or the kernel refuses.
    pub fn probe_calls(
        &mut self,
        process: u32,
        wanted: &[(&[&str], Kind)],
    ) -> io::Result<Vec<usize>> {
        let program = format!("/proc/{process}/exe");
        let program = Path::new(&program);
        let names: Vec<&[&str]> = wanted.iter().map(|(name, _)| *name).collect();
        let found = places::functions(program, &names)?;
        for ((_, kind), offsets) in wanted.iter().zip(&found) {
            for offset in offsets {
                self.attach("called", process, program, *offset, Some(*kind))?;
            }
        }
        Ok(found.iter().map(Vec::len).collect())
    }

    fn attach(
        &mut self,
        probe: &str,
        process: u32,
        file: &Path,
        offset: u64,
        kind: Option<Kind>,
    ) -> io::Result<()> {
        let scope = NonZeroU32::new(process).map(UProbeScope::OneProcess);
        let scope = scope.ok_or(io::ErrorKind::InvalidInput)?;
        let probe = program::<UProbe>(&mut self.object, probe);
        let point = UProbeAttachPoint {
            location: UProbeAttachLocation::AbsoluteOffset(offset),
            cookie: kind.map(|kind| kind as u64),
        };
        let attached = probe.attach(point, file, scope);
        attached
            .map(drop)
            .map_err(|error| io::Error::other(told(&error)))
    }

    /// What was counted so far.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn counts(&self) -> io::Result<Counts> {
        let mut all = [0; counts::COUNTERS];
        for (key, count) in (0..).zip(&mut all) {
            let of_each_cpu = self.counts.get(&key, 0);
            let of_each_cpu = of_each_cpu.map_err(|error| io::Error::other(told(&error)))?;
            *count = of_each_cpu.iter().sum();
        }
        Ok(Counts(all))
    }
}
