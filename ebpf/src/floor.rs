//! A program that does nothing: what a test run costs by itself, beside which the others are measured.

use std::os::fd::OwnedFd;

use aya::Ebpf;
use aya::programs::Xdp;

use crate::interfaces;
use crate::link::Link;
use crate::programs::{AttachError, LoadError, Mode, attach_xdp, load, program, test_run, told};

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
        load(|| nothing.load()).map_err(|error| refused(told(&error)))?;
        Ok(Self(object))
    }

    /// Runs it on a frame `repeat` times: its verdict, and nanoseconds for one run.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> std::io::Result<(u32, u64)> {
        test_run(&self.0, "nothing", frame, repeat)
    }

    /// Puts it into the driver, or the stack, of an interface of the calling thread's network namespace, for as long as the descriptor is open.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach(&self, interface: &str, mode: Mode) -> Result<OwnedFd, AttachError> {
        let all = interfaces::list()?;
        let Some(found) = all.iter().find(|one| one.name == interface) else {
            return Err(AttachError::Unknown(interface.to_owned()));
        };
        attach_xdp(&self.0, "nothing", found.index, mode)
            .map(Link::into_inner)
            .map_err(|reason| AttachError::Refused(interface.to_owned(), reason))
    }
}
