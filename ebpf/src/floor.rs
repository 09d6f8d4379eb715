//! A program that does nothing: what a test run costs by itself, beside which the others are measured.

use aya::Ebpf;
use aya::programs::Xdp;

use crate::programs::{LoadError, program, test_run, told};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/nothing.o"));

/// The program.
pub struct Floor(Ebpf);

impl Floor {
    /// Loads it.
    ///
    /// # Errors
    /// [`LoadError::Refused`].
    pub fn load() -> Result<Self, LoadError> {
        let refused = |log| LoadError::Refused {
            name: "nothing",
            log,
        };
        let mut object = Ebpf::load(OBJECT).map_err(|error| refused(told(&error)))?;
        let nothing = program::<Xdp>(&mut object, "nothing");
        nothing.load().map_err(|error| refused(told(&error)))?;
        Ok(Self(object))
    }

    /// Runs it on a frame `repeat` times: its verdict, and nanoseconds for one run.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> std::io::Result<(u32, u64)> {
        test_run(&self.0, "nothing", frame, repeat)
    }
}
