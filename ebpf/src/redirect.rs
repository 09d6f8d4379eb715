//! Forwarding between two interfaces past the kernel's stack (SPRIGHT's EPROXY), by the kernel's own routes.
//!
//! What goes this way does not meet netfilter: only pairs of interfaces that were allowed do.

use aya::Ebpf;
use aya::maps::{PerCpuArray, PerCpuHashMap, PerCpuValues};
use aya::programs::{SchedClassifier, Xdp};

use crate::interfaces;
use crate::link::{Link, Place};
use crate::programs::{
    AttachError, LoadError, Mode, attach, attach_xdp, load, occupied, program, report, told,
};
use crate::records::{Forwarded, Left, Pair};
use crate::report::ProgramReport;

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/redirect.o"));

/// Where a packet leaves its way through the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// In XDP. In native mode the interface that sends must be able to send such frames: a veth's other end needs an XDP
    /// program or generic receive offload.
    Xdp(Mode),
    /// In traffic control (tcx, Linux 6.6), after the socket buffer was made: any interface can send.
    Tc,
}

/// The redirect programs, what they are attached to, and the pairs that they serve.
pub struct Redirect {
    object: Ebpf,
    programs: Vec<ProgramReport>,
    links: Vec<(String, Link)>,
}

/// Why a pair could not be allowed, forbidden or read.
#[derive(Debug, thiserror::Error)]
#[error("the map `{0}`: {1}")]
pub struct RedirectError(&'static str, String);

impl Redirect {
    /// Creates the maps and loads the programs.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load() -> Result<Self, LoadError> {
        let mut object = Ebpf::load(OBJECT).map_err(|error| LoadError::Maps(told(&error)))?;
        let xdp = program::<Xdp>(&mut object, "redirect_xdp");
        let xdp = report(
            "redirect_xdp",
            load(|| xdp.load()).and_then(|()| xdp.info()),
        );
        let tc = program::<SchedClassifier>(&mut object, "redirect_tc");
        let tc = report("redirect_tc", load(|| tc.load()).and_then(|()| tc.info()));
        Ok(Self {
            object,
            programs: vec![xdp, tc],
            links: Vec::new(),
        })
    }

    /// The programs, with their cost or the verifier's log.
    #[must_use]
    pub fn programs(&self) -> &[ProgramReport] {
        &self.programs
    }

    /// Attaches to an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`AttachError`]; nothing is attached then.
    pub fn attach(&mut self, interface: &str, path: Path) -> Result<(), AttachError> {
        let all = interfaces::list()?;
        let Some(found) = all.iter().find(|one| one.name == interface) else {
            return Err(AttachError::Unknown(interface.to_owned()));
        };
        let refused = |reason| AttachError::Refused(interface.to_owned(), reason);
        let link = match path {
            Path::Xdp(mode) => {
                if let Some(id) = found.xdp.first() {
                    return Err(occupied(interface, *id));
                }
                attach_xdp(&self.object, "redirect_xdp", found.index, mode)
            }
            Path::Tc => attach(&self.object, "redirect_tc", Place::Incoming(found.index)),
        };
        let link = link.map_err(refused)?;
        self.links.push((interface.to_owned(), link));
        Ok(())
    }

    /// Detaches from an interface. Says whether it was attached.
    pub fn detach(&mut self, interface: &str) -> bool {
        let before = self.links.len();
        self.links.retain(|(name, _)| name != interface);
        self.links.len() < before
    }

    /// Lets packets that one interface (by its index) receives leave by another past the stack. In one direction.
    ///
    /// # Errors
    /// The map is full.
    pub fn allow(&mut self, from: u32, to: u32) -> Result<(), RedirectError> {
        let failed = |error: aya::maps::MapError| RedirectError("pairs", told(&error));
        let cpus = self.left_by_cpu()?.len();
        let map = self.object.map_mut("pairs").expect("the object has it");
        let mut map = PerCpuHashMap::<_, Pair, Forwarded>::try_from(map).map_err(failed)?;
        let none = PerCpuValues::try_from(vec![Forwarded::default(); cpus]);
        let none = none.map_err(|error| RedirectError("pairs", error.to_string()))?;
        map.insert(Pair { from, to }, none, 0).map_err(failed)
    }

    /// Sends packets through the stack again.
    ///
    /// # Errors
    /// The pair was not allowed.
    pub fn forbid(&mut self, from: u32, to: u32) -> Result<(), RedirectError> {
        let failed = |error: aya::maps::MapError| RedirectError("pairs", told(&error));
        let map = self.object.map_mut("pairs").expect("the object has it");
        let mut map = PerCpuHashMap::<_, Pair, Forwarded>::try_from(map).map_err(failed)?;
        map.remove(&Pair { from, to }).map_err(failed)
    }

    /// What was forwarded, by pair.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn forwarded(&self) -> Result<Vec<(Pair, Forwarded)>, RedirectError> {
        let failed = |error: aya::maps::MapError| RedirectError("pairs", told(&error));
        let map = self.object.map("pairs").expect("the object has it");
        let map = PerCpuHashMap::<_, Pair, Forwarded>::try_from(map).map_err(failed)?;
        map.iter()
            .map(|entry| entry.map(|(pair, values)| (pair, crate::maps::sum(&values))))
            .collect::<Result<_, _>>()
            .map_err(failed)
    }

    /// What was left to the stack: shape, hop limit, route, pair not allowed.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn left(&self) -> Result<Left, RedirectError> {
        Ok(crate::maps::sum(&self.left_by_cpu()?))
    }

    fn left_by_cpu(&self) -> Result<PerCpuValues<Left>, RedirectError> {
        let failed = |error: aya::maps::MapError| RedirectError("left", told(&error));
        let map = self.object.map("left").expect("the object has it");
        let map = PerCpuArray::<_, Left>::try_from(map).map_err(failed)?;
        map.get(&0, 0).map_err(failed)
    }
}
