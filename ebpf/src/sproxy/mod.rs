//! Carries descriptors between the instances of a chain (SPRIGHT's SPROXY): `bpf/sproxy.bpf.c` has the rules.
//!
//! [`Sproxy::load`] needs root. Whoever has the [`Descriptors`] seats instances and says what they may send to each other
//! ([`Exchange`]), without privileges.

mod exchange;
pub mod records;

use std::os::fd::{AsFd, OwnedFd};

use aya::Ebpf;
use aya::maps::{Map, MapData};
use aya::programs::SkMsg;

pub use exchange::{Exchange, Pair};

use crate::link::attach_to_sockets;
use crate::maps::MapError;
use crate::programs::{LoadError, load, program, report, told};
use crate::report::ProgramReport;

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/sproxy.o"));
const PROGRAM: &str = "sproxy";

/// Instances that have a seat at a time, of all chains.
pub const SEATS: u32 = 8_192;
/// Edges of all chains.
pub const EDGES: u32 = 65_536;
/// Blocks of all chains.
pub const BLOCKS: u32 = 131_072;

/// The maps' descriptors, for a process that is to use them: it gets them over a Unix socket, in this order.
#[derive(Debug)]
pub struct Descriptors(Vec<OwnedFd>);

impl Descriptors {
    /// The maps, in the order of their descriptors.
    pub const NAMES: [&'static str; 5] = ["speakers", "sockets", "seats", "edges", "blocks"];

    /// From descriptors in the order of [`NAMES`](Self::NAMES).
    ///
    /// # Errors
    /// [`MapError::Count`]. What they are is checked by [`Exchange::new`].
    pub fn new(descriptors: Vec<OwnedFd>) -> Result<Self, MapError> {
        match descriptors.len() == Self::NAMES.len() {
            true => Ok(Self(descriptors)),
            false => Err(MapError::Count(descriptors.len())),
        }
    }

    /// The descriptors, to be sent.
    #[must_use]
    pub fn into_inner(self) -> Vec<OwnedFd> {
        self.0
    }
}

/// The program and its maps. It runs as long as anybody has the maps.
pub struct Sproxy {
    object: Ebpf,
    program: ProgramReport,
}

impl Sproxy {
    /// Creates the maps, loads the program and lets it see to what is sent through the sockets in them.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load() -> Result<Self, LoadError> {
        let mut object = Ebpf::load(OBJECT).map_err(|error| LoadError::Maps(told(&error)))?;
        let refused = |log| LoadError::Refused { name: PROGRAM, log };
        let sproxy = program::<SkMsg>(&mut object, PROGRAM);
        load(|| sproxy.load()).map_err(|error| refused(told(&error)))?;
        let program = report(PROGRAM, sproxy.info());
        let loaded = sproxy.fd().map_err(|error| refused(told(&error)))?;
        let loaded = loaded.as_fd().try_clone_to_owned();
        let loaded = loaded.map_err(|error| refused(error.to_string()))?;
        let sockets = data(&object, "sockets");
        attach_to_sockets(loaded.as_fd(), sockets.fd().as_fd())
            .map_err(|error| refused(error.to_string()))?;
        Ok(Self { object, program })
    }

    /// The program, with its cost.
    #[must_use]
    pub fn program(&self) -> &ProgramReport {
        &self.program
    }

    /// The maps' descriptors, for a process without privileges.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn descriptors(&self) -> std::io::Result<Descriptors> {
        let copy = |name| data(&self.object, name).fd().as_fd().try_clone_to_owned();
        let descriptors: std::io::Result<Vec<OwnedFd>> =
            Descriptors::NAMES.into_iter().map(copy).collect();
        Ok(Descriptors(descriptors?))
    }
}

fn data<'a>(object: &'a Ebpf, name: &str) -> &'a MapData {
    match object.map(name).expect("the object has it") {
        Map::HashMap(data) | Map::SkStorage(data) | Map::SockHash(data) => data,
        other => unreachable!("{other:?} is no map of the object"),
    }
}
