//! The maps that came with the programs: their descriptors and how full they are.

use std::os::fd::{AsFd, OwnedFd};

use aya::maps::{Array, HashMap, LpmTrie, Map, MapData};

use super::Ingress;
use crate::maps::{Descriptors, in_use};
use crate::records::{Listed, Queue, Set, WAYS};
use crate::report::MapReport;

impl Ingress {
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
            "sources" => Array::<_, Set>::try_from(map).map(|map| in_use(&map).count()),
            "queues" => HashMap::<_, Queue, u32>::try_from(map).map(|map| map.keys().count()),
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
}

fn described(name: &'static str, map: &Map, used: Option<usize>) -> std::io::Result<MapReport> {
    let info = data(map)?.info().map_err(std::io::Error::other)?;
    let used = used.map(|used| u32::try_from(used).unwrap_or(u32::MAX));
    let each = if name == "sources" { WAYS } else { 1 };
    Ok(MapReport {
        name,
        id: info.id(),
        capacity: info.max_entries() * each,
        used,
    })
}

pub(crate) fn descriptor(map: &Map) -> std::io::Result<OwnedFd> {
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
