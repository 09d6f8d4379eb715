//! What sources did to functions.

use std::net::{IpAddr, Ipv6Addr};

use aya::maps::{Array, MapData};

use crate::records::{Set, Source};

/// What sources did: of the few that share a set, the one whose bucket is full again first makes room for another.
pub struct Sources(Array<MapData, Set>);

impl Sources {
    pub(super) fn new(sets: Array<MapData, Set>) -> Self {
        Self(sets)
    }

    /// How many there are. Costs a system call a set, as [`all`](Self::all) does.
    #[must_use]
    pub fn count(&self) -> usize {
        in_use(&self.0).count()
    }

    /// All, as function, prefix and what the source did.
    #[must_use]
    pub fn all(&self) -> Vec<(u32, IpAddr, Source)> {
        in_use(&self.0)
            .map(|source| {
                let prefix = Ipv6Addr::from(source.prefix).to_canonical();
                (source.function, prefix, source)
            })
            .collect()
    }
}

/// The ways that are somebody's. A source that comes or goes meanwhile may be missing.
pub(crate) fn in_use<T: std::borrow::Borrow<MapData>>(
    sets: &Array<T, Set>,
) -> impl Iterator<Item = Source> {
    let ways = sets.iter().filter_map(Result::ok).flat_map(|set| set.ways);
    ways.filter(|source| source.function != 0)
}
