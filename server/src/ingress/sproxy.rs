//! The program that carries chains' descriptors, shared by all chains.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hearth_ebpf::MapError;
use hearth_ebpf::sproxy::records::{Block, BlockKey, Edge, EdgeKey, Seat, SeatKey};
use hearth_ebpf::sproxy::{BLOCKS, Descriptors, Exchange, Pair};
use parking_lot::Mutex;

/// Cheap to clone.
#[derive(Clone)]
pub struct Sproxy(Arc<Inner>);

struct Inner {
    exchange: Mutex<Exchange>,
    next: AtomicU32,
    /// Blocks that chains may still have, all together.
    blocks: AtomicU32,
}

/// Why it carries nothing for a chain.
#[derive(Debug, thiserror::Error)]
pub enum SproxyError {
    /// The chains' pools together are larger than the kernel's map.
    #[error(
        "all chains with this transport may have {BLOCKS} blocks together, and {left} are left"
    )]
    Blocks {
        /// Those that are left.
        left: u32,
    },
    /// A map.
    #[error("the kernel's maps: {0}")]
    Map(#[from] MapError),
}

/// A chain's place in the kernel's maps. Nothing is left of it when it is dropped.
pub struct Place {
    sproxy: Sproxy,
    /// Its number, which no other has or will have.
    pub number: u32,
    blocks: u32,
    edges: Vec<EdgeKey>,
    seats: Mutex<Vec<SeatKey>>,
}

impl Sproxy {
    /// Takes the maps over.
    ///
    /// # Errors
    /// They are others.
    pub fn new(descriptors: Descriptors) -> Result<Self, MapError> {
        Ok(Self(Arc::new(Inner {
            exchange: Mutex::new(Exchange::new(descriptors)?),
            next: AtomicU32::new(1),
            blocks: AtomicU32::new(BLOCKS),
        })))
    }

    /// Makes a place for a chain with so many blocks, whose members may send each other these kinds of descriptors.
    ///
    /// # Errors
    /// [`SproxyError`]; nothing is left behind.
    pub fn place(
        &self,
        blocks: u32,
        edges: impl IntoIterator<Item = ((u8, u8), u32)>,
    ) -> Result<Place, SproxyError> {
        let less = |left: u32| left.checked_sub(blocks);
        let counter = &self.0.blocks;
        counter
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .map_err(|left| SproxyError::Blocks { left })?;
        let mut place = Place {
            sproxy: self.clone(),
            number: self.0.next.fetch_add(1, Ordering::Relaxed),
            blocks,
            edges: Vec::new(),
            seats: Mutex::default(),
        };
        for ((from, to), kinds) in edges {
            let key = place.edge_key(from, to);
            self.0.exchange.lock().allow(key, kinds)?;
            place.edges.push(key);
        }
        Ok(place)
    }
}

impl Place {
    fn edge_key(&self, from: u8, to: u8) -> EdgeKey {
        EdgeKey {
            chain: self.number,
            from: from.into(),
            to: to.into(),
        }
    }

    fn seat_key(&self, instance: u16) -> SeatKey {
        SeatKey {
            chain: self.number,
            instance: instance.into(),
        }
    }

    /// Gives an instance its seat.
    ///
    /// # Errors
    /// [`SproxyError::Map`]; nothing is left behind.
    pub fn seat(&self, instance: u16, member: u8, pair: Pair<'_>) -> Result<(), SproxyError> {
        let key = self.seat_key(instance);
        self.sproxy.0.exchange.lock().seat(key, member, pair)?;
        self.seats.lock().push(key);
        Ok(())
    }

    /// Takes it away.
    pub fn unseat(&self, instance: u16) {
        let key = self.seat_key(instance);
        self.seats.lock().retain(|other| *other != key);
        let unseated = self.sproxy.0.exchange.lock().unseat(key);
        if let Err(error) = unseated {
            tracing::error!(%error, "an instance of a chain keeps its seat");
        }
    }

    /// Puts a block of this generation into an instance's hand.
    pub fn hand(&self, block: u32, generation: u16, instance: u16) {
        let block = self.block_key(block);
        let held = Block {
            holder: instance.into(),
            generation,
            ..Block::default()
        };
        let handed = self.sproxy.0.exchange.lock().put(block, held);
        if let Err(error) = handed {
            tracing::error!(%error, "an instance of a chain lacks a block of its own");
        }
    }

    /// Who has a block in hand: 0, the gateway, if it was not sent in this generation.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn holder(&self, block: u32, generation: u16) -> Result<u16, MapError> {
        let key = self.block_key(block);
        let block = self.sproxy.0.exchange.lock().block(key)?;
        let block = block.filter(|block| block.generation == generation);
        Ok(block.map_or(0, |block| block.holder as u16))
    }

    fn block_key(&self, number: u32) -> BlockKey {
        BlockKey {
            chain: self.number,
            number,
        }
    }

    /// What an instance did, by the kernel's count.
    pub fn seated(&self, instance: u16) -> Option<Seat> {
        let exchange = self.sproxy.0.exchange.lock();
        exchange.seated(self.seat_key(instance)).ok()?
    }

    /// What went from one member to another, by the kernel's count.
    pub fn edge(&self, from: u8, to: u8) -> Option<Edge> {
        let exchange = self.sproxy.0.exchange.lock();
        exchange.edge(self.edge_key(from, to)).ok()?
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for seat in self.seats.get_mut().drain(..) {
            // As far as it is there.
            let _ = self.sproxy.0.exchange.lock().unseat(seat);
        }
        let forgotten = forget(&self.sproxy, self.number, &self.edges, 0..self.blocks);
        match forgotten {
            Ok(()) => {
                let left = &self.sproxy.0.blocks;
                left.fetch_add(self.blocks, Ordering::Relaxed);
            }
            // They take their room, so that no other chain lacks it.
            Err(error) => tracing::error!(%error, "what the kernel knows of a chain stays"),
        }
    }
}

/// Blocks that are forgotten before others get at the maps.
const AT_ONCE: usize = 256;

fn forget(
    sproxy: &Sproxy,
    number: u32,
    edges: &[EdgeKey],
    blocks: Range<u32>,
) -> Result<(), MapError> {
    for edge in edges {
        sproxy.0.exchange.lock().forbid(*edge)?;
    }
    for first in blocks.clone().step_by(AT_ONCE) {
        let last = blocks.end.min(first + AT_ONCE as u32);
        let mut exchange = sproxy.0.exchange.lock();
        exchange.forget_blocks(number, first..last)?;
    }
    Ok(())
}
