//! The table's layout, and how both sides read it.
//!
//! ```text
//! 0            magic, version
//! 128          directory     of each member 0..=255: MAX_SEATS entries of 8 bytes, no gaps
//! DIRECTORY +  route table A
//! … + TABLE    route table B
//!
//! a route table:
//! 0            sequence      odd while it is written
//! 128          lengths       of each route, 2 bytes: hops; 0 is no route
//! …            nodes         of each route, 256 bytes: the member at each hop
//! …            edges         of each kind, member and member, one bit
//! ```
//!
//! It is 378 KiB in all.

use core::sync::atomic::{Ordering, fence};

use super::plan::{MAX_HOPS, MAX_ROUTES, Plan};
use crate::descriptor::{Kind, Table};
use crate::id::{Instance, Member};
use crate::memory::{LINE, Memory};

/// First word of a table: `HEARTHRT` as bytes.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"HEARTHRT");
/// Version of the layout.
pub(super) const VERSION: u64 = 1;
/// Most instances of one member.
pub const MAX_SEATS: usize = 64;
pub(super) const MEMBERS: usize = 256;
pub(super) const KINDS: usize = Kind::ALL.len();

pub(super) const DIRECTORY_AT: usize = LINE;
pub(super) const TABLES_AT: usize = DIRECTORY_AT + MEMBERS * MAX_SEATS * 8;
pub(super) const LENGTHS: usize = LINE;
pub(super) const NODES: usize = LENGTHS + MAX_ROUTES * 2;
pub(super) const EDGES: usize = NODES + MAX_ROUTES * MAX_HOPS;
/// Bytes of one member's edges of one kind: a bit for each member.
pub(super) const EDGE_ROW: usize = MEMBERS / 8;
pub(super) const TABLE_BYTES: usize = EDGES + KINDS * MEMBERS * EDGE_ROW;
pub(super) const BYTES: u64 = ((TABLES_AT + 2 * TABLE_BYTES) as u64).next_multiple_of(4 << 10);

const _: () = assert!(TABLE_BYTES.is_multiple_of(8) && TABLES_AT.is_multiple_of(LINE));

pub(super) const fn table_at(table: Table) -> usize {
    TABLES_AT + table as usize * TABLE_BYTES
}

pub(super) const fn edge_at(kind: Kind, from: Member) -> usize {
    EDGES + (kind as usize * MEMBERS + from.0 as usize) * EDGE_ROW
}

pub(super) const fn seat_at(member: Member, seat: usize) -> usize {
    DIRECTORY_AT + (member.0 as usize * MAX_SEATS + seat) * 8
}

/// An instance's entry in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// The instance.
    pub instance: Instance,
    /// Which of the processes that had this number.
    pub epoch: u16,
    /// How many requests it handles at a time.
    pub capacity: u16,
}

impl Seat {
    const TAKEN: u64 = 1 << 63;

    pub(super) const fn pack(self) -> u64 {
        Self::TAKEN
            | self.instance.0 as u64
            | (self.epoch as u64) << 16
            | (self.capacity as u64) << 32
    }

    pub(super) const fn unpack(word: u64) -> Option<Self> {
        if word & Self::TAKEN == 0 {
            return None;
        }
        Some(Self {
            instance: Instance(word as u16),
            epoch: (word >> 16) as u16,
            capacity: (word >> 32) as u16,
        })
    }
}

/// A look-up that found nothing to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The table is being written: the request that asks has been given up.
    #[error("the routes of this request are retired")]
    Retired,
    /// There is no such route in the table, or it has ended before this hop.
    #[error("route {route} has no hop {hop}")]
    NoHop {
        /// The route.
        route: u8,
        /// The position in it.
        hop: u8,
    },
}

/// What both sides read.
pub(super) trait Look {
    fn load(&self, at: usize) -> u64;

    fn byte(&self, at: usize) -> u8 {
        (self.load(at & !7) >> (at % 8 * 8)) as u8
    }

    /// Reads of a table what does not change while it is read.
    fn in_table<T>(&self, table: Table, read: impl FnOnce(usize) -> T) -> Result<T, RouteError> {
        let at = table_at(table);
        let before = self.load(at);
        // SYNC POINT: sequence
        fence(Ordering::Acquire);
        let found = read(at);
        // SYNC POINT: sequence
        fence(Ordering::Acquire);
        if before.is_multiple_of(2) && self.load(at) == before {
            Ok(found)
        } else {
            Err(RouteError::Retired)
        }
    }

    fn hop(&self, table: Table, route: u8, hop: u8) -> Result<Option<Member>, RouteError> {
        let (hops, node) = self.in_table(table, |at| {
            let length = at + LENGTHS + usize::from(route) * 2;
            let hops = u16::from_le_bytes([self.byte(length), self.byte(length + 1)]);
            let node = at + NODES + usize::from(route) * MAX_HOPS + usize::from(hop);
            (hops, Member(self.byte(node)))
        })?;
        match u16::from(hop).cmp(&hops) {
            core::cmp::Ordering::Less => Ok(Some(node)),
            core::cmp::Ordering::Equal if hops > 0 => Ok(None),
            _ => Err(RouteError::NoHop { route, hop }),
        }
    }

    fn allows(
        &self,
        table: Table,
        from: Member,
        to: Member,
        kind: Kind,
    ) -> Result<bool, RouteError> {
        let bits = self.in_table(table, |at| {
            self.byte(at + edge_at(kind, from) + usize::from(to.0 / 8))
        })?;
        Ok(bits >> (to.0 % 8) & 1 == 1)
    }

    fn seats(&self, member: Member) -> impl Iterator<Item = Seat> {
        (0..MAX_SEATS).map_while(move |seat| Seat::unpack(self.load(seat_at(member, seat))))
    }
}

impl<A> Look for Memory<A> {
    #[inline]
    fn load(&self, at: usize) -> u64 {
        self.load(at)
    }
}

/// A table's bytes after its sequence number.
pub(super) fn image(plan: &Plan) -> Vec<u8> {
    let mut image = vec![0; TABLE_BYTES];
    for (nodes, route) in plan.routes().iter().zip(0..) {
        let length = LENGTHS + route * 2;
        // A plan's routes have 256 hops at most.
        image[length..length + 2].copy_from_slice(&(nodes.len() as u16).to_le_bytes());
        let at = NODES + route * MAX_HOPS;
        for (slot, node) in image[at..].iter_mut().zip(nodes) {
            *slot = node.0;
        }
    }
    let members = || (0..=plan.members()).map(Member);
    for (kind, from, to) in Kind::ALL
        .iter()
        .flat_map(|&kind| members().flat_map(move |from| members().map(move |to| (kind, from, to))))
    {
        if plan.allows(from, to, kind) {
            image[edge_at(kind, from) + usize::from(to.0 / 8)] |= 1 << (to.0 % 8);
        }
    }
    image.split_off(8)
}
