//! A generator of packets, for measurements: what the kernel sends by itself is limited by no socket.

use std::time::Duration;

use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};

use crate::interfaces;
use crate::programs::{LoadError, program, told};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/flood.o"));

/// Frames that the kernel sends at once.
const BATCH: u32 = 64;

/// Sends copies of a frame, each from another of 256 sources.
pub struct Flood(Ebpf);

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
        flood.load().map_err(|error| refused(told(&error)))?;
        Ok(Self(object))
    }

    /// Sends so many, at once, from a thread in the interface's network namespace. Says how long one took.
    ///
    /// # Errors
    /// What the kernel answered: before Linux 5.18 it sends nothing.
    pub fn send(&self, frame: &[u8], count: u32) -> std::io::Result<Duration> {
        let program = self.0.program("flood").expect("the object has it");
        let program: &Xdp = program.try_into().map_err(std::io::Error::other)?;
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: count,
            attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
            ..TestRunOptions::default()
        };
        let result = program.test_run(options);
        let result = result.map_err(|error| std::io::Error::other(told(&error)))?;
        Ok(result.duration)
    }
}
