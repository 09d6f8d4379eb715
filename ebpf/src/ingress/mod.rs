//! Loads the ingress and attaches it, by link: all is gone with the process, however it ends.

mod attach;
pub(crate) mod maps;

use std::collections::BTreeMap;

use aya::maps::{Array, MapError};
use aya::programs::{SchedClassifier, SkLookup, Xdp};
use aya::{Ebpf, EbpfLoader};

use crate::clock;
use crate::interfaces::Interface;
use crate::link::Link;
use crate::programs::{LoadError, Mode, load, program, report, test_run, told};
use crate::records::{Settings, WAYS};
use crate::report::ProgramReport;

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/ingress.o"));

/// What the maps have room for. Memory: 6 MB with the default, and 128 bytes a function and CPU.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Functions with ports.
    pub functions: u32,
    /// Sources whose buckets are kept, rounded up to four times a power of two.
    pub sources: u32,
    /// Prefixes in the lists, of IPv4 and of IPv6 each.
    pub prefixes: u32,
}

impl Capacity {
    fn sets(self) -> u32 {
        let sets = self.sources.div_ceil(WAYS).clamp(1, 1 << 24);
        sets.next_power_of_two()
    }
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
    xdp: Link,
    egress: Option<Link>,
}

/// The ingress: programs, maps and what they are attached to.
pub struct Ingress {
    object: Ebpf,
    programs: Vec<ProgramReport>,
    links: BTreeMap<u32, Links>,
    steering: Option<Link>,
}

impl Ingress {
    /// Creates the maps and loads the programs. Only the XDP program has to load; [`Ingress::programs`] tells of the others.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(capacity: Capacity) -> Result<Self, LoadError> {
        let mut object = maps(capacity)?;
        let ingress = program::<Xdp>(&mut object, "ingress");
        load(|| ingress.load()).map_err(|error| LoadError::Refused {
            name: "ingress",
            log: told(&error),
        })?;
        let ingress = report("ingress", ingress.info());
        let egress = program::<SchedClassifier>(&mut object, "egress");
        let egress = report(
            "egress",
            load(|| egress.load()).and_then(|()| egress.info()),
        );
        let steer = load_steer(&mut object);
        Self::with(object, capacity, vec![ingress, egress, steer])
    }

    /// The same with the program alone that steers connections: no interface is attached to.
    ///
    /// # Errors
    /// [`LoadError::Maps`].
    pub fn load_to_steer(capacity: Capacity) -> Result<Self, LoadError> {
        let mut object = maps(capacity)?;
        let steer = load_steer(&mut object);
        Self::with(object, capacity, vec![steer])
    }

    fn with(
        mut object: Ebpf,
        capacity: Capacity,
        programs: Vec<ProgramReport>,
    ) -> Result<Self, LoadError> {
        let settings = Settings {
            largest_redirect: u32::MAX,
            last_set: capacity.sets() - 1,
            tick: clock::tick(),
            mask4: crate::maps::mask(128),
            mask6: crate::maps::mask(64),
            hash: secret().map_err(LoadError::Maps)?,
            ..Settings::default()
        };
        let map = object.map_mut("settings").expect("the object has it");
        Array::try_from(map)
            .and_then(|mut map| map.set(0, settings, 0))
            .map_err(|error| LoadError::Maps(told(&error)))?;
        Ok(Self {
            object,
            programs,
            links: BTreeMap::new(),
            steering: None,
        })
    }

    /// The programs, with their cost or the verifier's log.
    #[must_use]
    pub fn programs(&self) -> &[ProgramReport] {
        &self.programs
    }

    /// Has sources share sets by these keys, and not by secret ones.
    ///
    /// # Errors
    /// What the kernel says.
    ///
    /// # Panics
    /// If the object has no settings.
    pub fn test_keys(&mut self, hash: [u64; 5]) -> Result<(), MapError> {
        let map = self.object.map_mut("settings").expect("the object has it");
        let mut map = Array::try_from(map)?;
        let settings: Settings = map.get(&0, 0)?;
        map.set(0, Settings { hash, ..settings }, 0)
    }

    /// Runs the XDP program on a frame `repeat` times, attached or not: its verdict, and nanoseconds for one run. The
    /// counters count.
    ///
    /// # Errors
    /// What the kernel answered: it wants 14 bytes at least.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> std::io::Result<(u32, u64)> {
        test_run(&self.object, "ingress", frame, repeat)
    }
}

fn maps(capacity: Capacity) -> Result<Ebpf, LoadError> {
    let functions = capacity.functions.saturating_add(1);
    // Nothing here depends on the kernel's types, which take 40 MB to read.
    EbpfLoader::new()
        .btf(None)
        .map_max_entries("functions", functions)
        .map_max_entries("totals", functions)
        .map_max_entries("traffic", functions.saturating_mul(2))
        .map_max_entries("sources", capacity.sets())
        .map_max_entries("listed4", capacity.prefixes)
        .map_max_entries("listed6", capacity.prefixes)
        .load(OBJECT)
        .map_err(|error| LoadError::Maps(told(&error)))
}

/// Which sources share a set: other in each process.
fn secret() -> Result<[u64; 5], String> {
    let mut secret = [0; 5];
    for key in &mut secret {
        let mut bytes = [0; 8];
        let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        filled.map_err(|error| format!("no random numbers: {error}"))?;
        *key = u64::from_ne_bytes(bytes);
    }
    Ok(secret)
}

fn load_steer(object: &mut Ebpf) -> ProgramReport {
    let steer = program::<SkLookup>(object, "steer");
    report("steer", load(|| steer.load()).and_then(|()| steer.info()))
}
