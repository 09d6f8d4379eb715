//! A generator of packets, for measurements: what the kernel sends by itself is limited by no socket.

use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aya::maps::{Array, MapData};
use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};

use crate::clock;
use crate::interfaces;
use crate::programs::{LoadError, load, program, told};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/flood.o"));

/// Frames that the kernel sends at once: as many as the receiver takes at once (`NAPI_POLL_WEIGHT`). It is woken up once a batch,
/// as by a network card that interrupts once for many frames; with 16, that was half of what a frame cost it. The sender has to
/// finish a batch before it lets others have the processor.
const BATCH: u32 = 64;
/// `WAIT` in `flood.bpf.c`.
const WAIT: Duration = Duration::from_nanos(125);
/// To send one takes longer than this, on any processor.
const LEAST: Duration = Duration::from_nanos(100);

/// `struct pace` in `flood.bpf.c`: interval, when a frame is due, when none is any more, frames sent. Times are
/// `CLOCK_MONOTONIC`, in nanoseconds.
type Pace = [u64; 4];

/// Sends copies of a frame, each from another of 256 sources.
pub struct Flood {
    object: Ebpf,
    paces: Mutex<Array<MapData, Pace>>,
}

impl Flood {
    /// Loads it for an interface of the calling thread's network namespace. What is at a veth's other end takes frames only if
    /// it has an XDP program in the driver.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(interface: &str) -> Result<Self, LoadError> {
        let refused = |log| LoadError::Refused { name: "flood", log };
        let all = interfaces::list().map_err(|error| refused(told(&error)))?;
        let found = all.iter().find(|one| one.name == interface);
        let index = found.ok_or_else(|| refused(format!("there is no interface {interface}")))?;
        let mut object = EbpfLoader::new()
            .override_global("interface", &index.index, true)
            .load(OBJECT)
            .map_err(|error| refused(told(&error)))?;
        let flood = program::<Xdp>(&mut object, "flood");
        load(|| flood.load()).map_err(|error| refused(told(&error)))?;
        let paces = object.take_map("paces").expect("the object has it");
        let paces = Array::try_from(paces).expect("it is an array");
        Ok(Self {
            object,
            paces: Mutex::new(paces),
        })
    }

    /// Sends so many a second, at most, for so long, from a thread in the interface's network namespace. The thread works all the
    /// time, and yields to others after each batch; what is not sent in time because of them is left out.
    ///
    /// # Errors
    /// What the kernel answered: before Linux 5.18 it sends nothing.
    pub fn send(&self, frame: &[u8], rate: NonZeroU64, time: Duration) -> std::io::Result<()> {
        let now = clock::now();
        let pace = [1_000_000_000 / rate, now, clock::after(time), self.sent()?];
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        let set = paces.set(0, pace, 0);
        drop(paces);
        set.map_err(|error| std::io::Error::other(told(&error)))?;
        let program = self.object.program("flood").expect("the object has it");
        let program: &Xdp = program.try_into().map_err(std::io::Error::other)?;
        // Frames that wait and frames that are sent. Those that are left at the end are soon done with.
        let sent = (u128::from(rate.get()) * time.as_millis() / 1_000)
            .min(time.as_nanos() / LEAST.as_nanos());
        let repeat = time.as_nanos() / WAIT.as_nanos() + sent;
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: repeat.try_into().unwrap_or(u32::MAX),
            attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
            ..TestRunOptions::default()
        };
        let result = program.test_run(options);
        result.map_err(|error| std::io::Error::other(told(&error)))?;
        Ok(())
    }

    /// Frames sent so far, at any time and by any thread.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn sent(&self) -> std::io::Result<u64> {
        let paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = paces.get(&0, 0);
        let [.., sent] = pace.map_err(|error| std::io::Error::other(told(&error)))?;
        Ok(sent)
    }
}
