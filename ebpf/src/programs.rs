//! Loading and attaching, whatever the program.

use std::os::fd::AsFd;

use aya::Ebpf;
use aya::programs::{ProgramError, TestRun, TestRunOptions, Xdp};

use crate::link::{Link, Place};
use crate::report::ProgramReport;
use crate::signals::Blocked;

/// Why the ingress could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The maps could not be made, most likely for want of privileges.
    #[error("cannot create the maps: {0}")]
    Maps(String),
    /// The kernel did not take the XDP program.
    #[error("the kernel refused the program `{name}`: {log}")]
    Refused {
        /// The program.
        name: &'static str,
        /// What the verifier said.
        log: String,
    },
}

/// Where in the kernel the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before there is a socket buffer.
    Native,
    /// In the stack, for drivers without XDP.
    Generic,
}

/// Which mode is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Native where the driver has it, else generic.
    Best,
    /// This one or none.
    Only(Mode),
}

/// Why the ingress was not attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such interface here.
    #[error("there is no interface {0}")]
    Unknown(String),
    /// Somebody else's program is there. It stays.
    #[error("{interface} already has the XDP program {name} (id {id})")]
    Occupied {
        /// The interface.
        interface: String,
        /// The program's id.
        id: u32,
        /// Its name, as far as it has one.
        name: String,
    },
    /// The same packets would be counted twice.
    #[error("{interface} receives the same packets as {other}, where the ingress is attached")]
    Overlaps {
        /// The interface.
        interface: String,
        /// The one that lies below or above it.
        other: String,
    },
    /// The kernel or the driver refused.
    #[error("cannot attach to {0}: {1}")]
    Refused(String, String),
    /// The list of interfaces cannot be had.
    #[error("cannot list the interfaces: {0}")]
    List(#[from] std::io::Error),
}

/// An error with its causes.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    told
}

/// How often loading a program is begun, as libbpf does.
const ATTEMPTS: u32 = 5;

/// Loads a program, also where signals arrive: the verifier gives up with `EAGAIN` when one is pending for the thread
/// (`do_check` in kernel/bpf/verifier.c), whatever would become of it. Blocking them is not enough, because the kernel has
/// notices of its own that count as signals.
pub(crate) fn load(
    mut attempt: impl FnMut() -> Result<(), ProgramError>,
) -> Result<(), ProgramError> {
    let _blocked = Blocked::new();
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(ProgramError::LoadError { io_error, .. })
                if io_error.kind() == std::io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
    attempt()
}

/// Attaches one of the object's programs.
pub(crate) fn attach(object: &Ebpf, name: &'static str, place: Place<'_>) -> Result<Link, String> {
    let program = object.program(name).expect("the object has it");
    let program = program.fd().map_err(|error| told(&error))?;
    Link::new(program.as_fd(), place).map_err(|error| error.to_string())
}

/// Puts one of the object's programs in the place of another.
pub(crate) fn replace(object: &Ebpf, name: &'static str, link: &Link) -> Result<(), String> {
    let program = object.program(name).expect("the object has it");
    let program = program.fd().map_err(|error| told(&error))?;
    let replaced = link.replace(program.as_fd());
    replaced.map_err(|error| error.to_string())
}

/// Puts a program into the driver of an interface, or into the stack.
pub(crate) fn attach_xdp(
    object: &Ebpf,
    name: &'static str,
    index: u32,
    mode: Mode,
) -> Result<Link, String> {
    let place = match mode {
        Mode::Native => Place::Driver(index),
        Mode::Generic => Place::Stack(index),
    };
    attach(object, name, place)
}

pub(crate) fn occupied(interface: &str, id: u32) -> AttachError {
    let program = aya::programs::loaded_programs()
        .filter_map(Result::ok)
        .find(|program| program.id() == id);
    let name = program
        .and_then(|program| program.name_as_str().map(str::to_owned))
        .unwrap_or_default();
    AttachError::Occupied {
        interface: interface.to_owned(),
        id,
        name,
    }
}

/// One of the object's programs.
pub(crate) fn program<'a, P>(object: &'a mut Ebpf, name: &str) -> &'a mut P
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    let program = object.program_mut(name).expect("the object has it");
    program.try_into().expect("of this type")
}

pub(crate) fn report(
    name: &'static str,
    info: Result<aya::programs::ProgramInfo, ProgramError>,
) -> ProgramReport {
    ProgramReport {
        name,
        loaded: info.map(Into::into).map_err(|error| told(&error)),
    }
}

/// Runs an XDP program on a frame `repeat` times: its verdict, and nanoseconds for one run.
pub(crate) fn test_run(
    object: &Ebpf,
    name: &str,
    frame: &[u8],
    repeat: u32,
) -> std::io::Result<(u32, u64)> {
    let program = object.program(name).expect("the object has it");
    let program: &Xdp = program.try_into().map_err(std::io::Error::other)?;
    let options = TestRunOptions {
        data_in: Some(frame),
        repeat,
        ..TestRunOptions::default()
    };
    let result = program
        .test_run(options)
        .map_err(|error| std::io::Error::other(told(&error)))?;
    let nanoseconds = u64::try_from(result.duration.as_nanos()).unwrap_or(u64::MAX);
    Ok((result.return_value, nanoseconds))
}
