//! Loads the ingress and attaches it, by link: all is gone with the process, however it ends.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use aya::maps::{Array, HashMap, LpmTrie, Map, MapData};
use aya::programs::links::{FdLink, LinkOrder};
use aya::programs::sk_lookup::SkLookupLink;
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions};
use aya::programs::xdp::{XdpLink, XdpMode};
use aya::programs::{
    ProgramError, SchedClassifier, SkLookup, TcAttachType, TestRun, TestRunOptions, Xdp,
};
use aya::{Ebpf, EbpfLoader};

use crate::interfaces::{self, Interface};
use crate::maps::Descriptors;
use crate::records::{Bucket, BucketKey, Listed, Settings};
use crate::report::{MapReport, ProgramReport};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/ingress.o"));

/// What the maps have room for. Memory: 4 MB with the default, and 128 bytes a function and CPU.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Functions with ports.
    pub functions: u32,
    /// Sources whose buckets are kept; the longest quiet are forgotten.
    pub sources: u32,
    /// Prefixes in the lists, of IPv4 and of IPv6 each.
    pub prefixes: u32,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            functions: 1023,
            sources: 65_536,
            prefixes: 16_384,
        }
    }
}

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
    /// The program did not load: see [`Ingress::programs`].
    #[error("the program `{0}` is not loaded")]
    NotLoaded(&'static str),
}

/// How an interface's packets meet the ingress.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The interface.
    pub interface: Interface,
    /// Where in the kernel.
    pub mode: Mode,
    /// Why native mode was not had, where it was tried.
    pub not_native: Option<String>,
    /// Why what functions send is not counted: before Linux 6.6 there is no link for that.
    pub not_counting_sent: Option<String>,
}

struct Links {
    attachment: Attachment,
    xdp: XdpLink,
    egress: Option<SchedClassifierLink>,
}

/// The ingress: programs, maps and what they are attached to.
pub struct Ingress {
    object: Ebpf,
    programs: Vec<ProgramReport>,
    links: BTreeMap<u32, Links>,
    steering: Option<SkLookupLink>,
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

impl Ingress {
    /// Creates the maps and loads the programs. Only the XDP program has to load; [`Ingress::programs`] tells of the others.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(capacity: Capacity) -> Result<Self, LoadError> {
        let functions = capacity.functions.saturating_add(1);
        let mut object = EbpfLoader::new()
            .map_max_entries("functions", functions)
            .map_max_entries("totals", functions)
            .map_max_entries("traffic", functions.saturating_mul(2))
            .map_max_entries("buckets", capacity.sources)
            .map_max_entries("listed4", capacity.prefixes)
            .map_max_entries("listed6", capacity.prefixes)
            .load(OBJECT)
            .map_err(|error| LoadError::Maps(told(&error)))?;
        let ingress = program::<Xdp>(&mut object, "ingress");
        ingress.load().map_err(|error| LoadError::Refused {
            name: "ingress",
            log: told(&error),
        })?;
        let ingress = report("ingress", ingress.info());
        let egress = program::<SchedClassifier>(&mut object, "egress");
        let egress = report("egress", egress.load().and_then(|()| egress.info()));
        let steer = program::<SkLookup>(&mut object, "steer");
        let steer = report("steer", steer.load().and_then(|()| steer.info()));
        let mut loaded = Self {
            object,
            programs: vec![ingress, egress, steer],
            links: BTreeMap::new(),
            steering: None,
        };
        let settings = Settings {
            largest_redirect: u32::MAX,
            mask4: [0xff; 4],
            mask6: crate::maps::mask(64),
            ..Settings::default()
        };
        let map = loaded
            .object
            .map_mut("settings")
            .expect("the object has it");
        Array::try_from(map)
            .and_then(|mut map| map.set(0, settings, 0))
            .map_err(|error| LoadError::Maps(told(&error)))?;
        Ok(loaded)
    }

    /// The programs, with their cost or the verifier's log.
    #[must_use]
    pub fn programs(&self) -> &[ProgramReport] {
        &self.programs
    }

    /// The maps, with their fill. Walks through those that are no arrays: up to 65,536 system calls.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn maps(&self) -> std::io::Result<Vec<MapReport>> {
        Descriptors::NAMES
            .into_iter()
            .map(|name| self.map(name))
            .collect()
    }

    fn map(&self, name: &'static str) -> std::io::Result<MapReport> {
        let map = self.object.map(name).expect("the object has it");
        let used = match name {
            "buckets" => {
                HashMap::<_, BucketKey, Bucket>::try_from(map).map(|map| map.keys().count())
            }
            "addresses" => HashMap::<_, [u8; 16], u32>::try_from(map).map(|map| map.keys().count()),
            "listed4" => LpmTrie::<_, [u8; 4], Listed>::try_from(map).map(|map| map.keys().count()),
            "listed6" => {
                LpmTrie::<_, [u8; 16], Listed>::try_from(map).map(|map| map.keys().count())
            }
            _ => return described(name, map, None),
        };
        described(name, map, Some(used.map_err(std::io::Error::other)?))
    }

    /// The maps' descriptors, for a process without privileges.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn descriptors(&self) -> std::io::Result<Descriptors> {
        let descriptors: std::io::Result<Vec<OwnedFd>> = Descriptors::NAMES
            .into_iter()
            .map(|name| descriptor(self.object.map(name).expect("the object has it")))
            .collect();
        Ok(Descriptors::new(descriptors?).expect("one a name"))
    }

    /// Attaches to an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`AttachError`]; nothing is attached then.
    pub fn attach(&mut self, interface: &str, wanted: Wanted) -> Result<&Attachment, AttachError> {
        let all = interfaces::list()?;
        let Some(found) = all.iter().find(|one| one.name == interface) else {
            return Err(AttachError::Unknown(interface.to_owned()));
        };
        if let Some(id) = found.xdp.first() {
            return Err(occupied(interface, *id));
        }
        let attached = self.links.values().map(|links| &links.attachment.interface);
        if let Some(other) = attached
            .into_iter()
            .find(|other| found.shares_packets_with(other))
        {
            return Err(AttachError::Overlaps {
                interface: interface.to_owned(),
                other: other.name.clone(),
            });
        }
        let (mode, not_native, xdp) = self.attach_xdp(found, wanted)?;
        let egress = self.attach_egress(interface);
        let attachment = Attachment {
            interface: found.clone(),
            mode,
            not_native,
            not_counting_sent: egress.as_ref().err().cloned(),
        };
        let links = Links {
            attachment,
            xdp,
            egress: egress.ok(),
        };
        let links = self.links.entry(found.index).insert_entry(links).into_mut();
        Ok(&links.attachment)
    }

    fn attach_xdp(
        &mut self,
        interface: &Interface,
        wanted: Wanted,
    ) -> Result<(Mode, Option<String>, XdpLink), AttachError> {
        let program = program::<Xdp>(&mut self.object, "ingress");
        let mut not_native = None;
        if wanted != Wanted::Only(Mode::Generic) {
            match attach_by_link(program, interface.index, XdpMode::Driver) {
                Ok(link) => return Ok((Mode::Native, None, link)),
                Err(reason) => not_native = Some(reason),
            }
        }
        if wanted == Wanted::Only(Mode::Native) {
            let reason = not_native.unwrap_or_default();
            return Err(AttachError::Refused(interface.name.clone(), reason));
        }
        attach_by_link(program, interface.index, XdpMode::Skb)
            .map(|link| (Mode::Generic, not_native, link))
            .map_err(|reason| AttachError::Refused(interface.name.clone(), reason))
    }

    fn attach_egress(&mut self, interface: &str) -> Result<SchedClassifierLink, String> {
        let program = program::<SchedClassifier>(&mut self.object, "egress");
        let options = TcAttachOptions::TcxOrder(LinkOrder::default());
        program
            .attach_with_options(interface, TcAttachType::Egress, options)
            .and_then(|link| program.take_link(link))
            .map_err(|error| told(&error))
    }

    /// Detaches from an interface. Says whether it was attached.
    pub fn detach(&mut self, interface: &str) -> bool {
        let before = self.links.len();
        self.links
            .retain(|_, links| links.attachment.interface.name != interface);
        self.links.len() < before
    }

    /// What the ingress is attached to.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.links.values().map(|links| &links.attachment)
    }

    /// Steers connections in a network namespace. The programs of others there are asked, too.
    ///
    /// # Errors
    /// [`AttachError::Refused`], [`AttachError::NotLoaded`].
    pub fn steer(&mut self, namespace: impl AsFd) -> Result<(), AttachError> {
        let program = program::<SkLookup>(&mut self.object, "steer");
        let link = match program.attach(namespace) {
            Ok(id) => program.take_link(id),
            Err(ProgramError::NotLoaded) => return Err(AttachError::NotLoaded("steer")),
            Err(error) => Err(error),
        };
        let link = link.map_err(|error| {
            AttachError::Refused("the network namespace".to_owned(), told(&error))
        })?;
        self.steering = Some(link);
        Ok(())
    }

    /// Puts this ingress in the place of another on its interfaces, without a packet in between that meets neither. The
    /// maps are this one's: fill them before.
    ///
    /// # Errors
    /// [`AttachError::Refused`]: the interface is detached then.
    pub fn take_over(&mut self, mut other: Self) -> Result<(), AttachError> {
        for (index, links) in std::mem::take(&mut other.links) {
            let name = links.attachment.interface.name.clone();
            let refused = |error: ProgramError| AttachError::Refused(name.clone(), told(&error));
            let program = program::<Xdp>(&mut self.object, "ingress");
            let id = program.attach_to_link(links.xdp).map_err(refused)?;
            let xdp = program.take_link(id).map_err(refused)?;
            let egress = match links.egress {
                None => None,
                Some(link) => {
                    let program =
                        crate::ingress::program::<SchedClassifier>(&mut self.object, "egress");
                    let id = program.attach_to_link(link).map_err(refused)?;
                    Some(program.take_link(id).map_err(refused)?)
                }
            };
            self.links.insert(
                index,
                Links {
                    attachment: links.attachment,
                    xdp,
                    egress,
                },
            );
        }
        Ok(())
    }

    /// Runs the XDP program on a frame `repeat` times, attached or not: its verdict, and nanoseconds for one run. The
    /// counters count.
    ///
    /// # Errors
    /// What the kernel answered: it wants 14 bytes at least.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> std::io::Result<(u32, u64)> {
        let program = self.object.program("ingress").expect("the object has it");
        let program: &Xdp = program.try_into().map_err(std::io::Error::other)?;
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat,
            ..TestRunOptions::default()
        };
        let result = program
            .test_run(options)
            .map_err(|error| std::io::Error::other(told(&error)))?;
        Ok((
            result.return_value,
            u64::try_from(result.duration.as_nanos()).unwrap_or(u64::MAX),
        ))
    }
}

/// Attaches by link, and by nothing that would outlive the process.
pub(crate) fn attach_by_link(
    program: &mut Xdp,
    index: u32,
    mode: XdpMode,
) -> Result<XdpLink, String> {
    let link = program
        .attach_to_if_index(index, mode)
        .and_then(|id| program.take_link(id))
        .map_err(|error| told(&error))?;
    // Where the kernel knows no links, aya attaches by netlink: that is detached again when it is dropped here.
    let link =
        FdLink::try_from(link).map_err(|_| "the kernel cannot attach XDP by link".to_owned())?;
    XdpLink::try_from(link).map_err(|error| told(&error))
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

fn described(name: &'static str, map: &Map, used: Option<usize>) -> std::io::Result<MapReport> {
    let info = data(map)?.info().map_err(std::io::Error::other)?;
    let used = used.map(|used| u32::try_from(used).unwrap_or(u32::MAX));
    Ok(MapReport {
        name,
        id: info.id(),
        capacity: info.max_entries(),
        used,
    })
}

fn descriptor(map: &Map) -> std::io::Result<OwnedFd> {
    data(map)?.fd().as_fd().try_clone_to_owned()
}

fn data(map: &Map) -> std::io::Result<&MapData> {
    match map {
        Map::Array(data)
        | Map::PerCpuArray(data)
        | Map::HashMap(data)
        | Map::LruHashMap(data)
        | Map::LpmTrie(data)
        | Map::XskMap(data)
        | Map::SockMap(data) => Ok(data),
        other => Err(std::io::Error::other(format!(
            "{other:?} is not a map of the ingress"
        ))),
    }
}
