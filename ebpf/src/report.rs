//! What was loaded, for whoever shows it.

use aya::programs::ProgramInfo;

/// A program in the kernel, or why it is not there.
#[derive(Clone, Debug)]
pub struct ProgramReport {
    /// Its name, as `bpftool prog` shows it.
    pub name: &'static str,
    /// Its id and cost, or the verifier's log.
    pub loaded: Result<Loaded, String>,
}

/// A program in the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// Its id.
    pub id: u32,
    /// Instructions that the verifier processed; the kernel's limit is 1,000,000. Kernels before 5.16 do not say.
    pub verified_instructions: Option<u32>,
    /// Bytes of machine code.
    pub machine_code: u32,
}

impl From<ProgramInfo> for Loaded {
    fn from(info: ProgramInfo) -> Self {
        Self {
            id: info.id(),
            verified_instructions: info.verified_instruction_count(),
            machine_code: info.size_jitted(),
        }
    }
}

/// A map in the kernel.
#[derive(Clone, Debug)]
pub struct MapReport {
    /// Its name, as `bpftool map` shows it.
    pub name: &'static str,
    /// Its id.
    pub id: u32,
    /// How many entries it has room for.
    pub capacity: u32,
    /// How many it holds; `None` where all always exist (arrays).
    pub used: Option<u32>,
}
