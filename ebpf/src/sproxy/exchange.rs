//! The maps of `sproxy`: who sits at which socket, and what may be sent.

use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use aya::maps::{HashMap, MapData, SkStorage, SockHash};

use super::Descriptors;
use super::records::{Block, BlockKey, Edge, EdgeKey, End, Seat, SeatKey, Speaker};
use crate::maps::{MapError, typed};

/// The two ends of an instance's connection. Both are sockets of TCP, in this state: connected to each other. The kernel runs no
/// program on what is sent through another kind.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The instance's.
    pub near: BorrowedFd<'a>,
    /// The gateway's.
    pub far: BorrowedFd<'a>,
}

/// The maps.
pub struct Exchange {
    speakers: SkStorage<MapData, Speaker>,
    sockets: SockHash<MapData, End>,
    seats: HashMap<MapData, SeatKey, Seat>,
    edges: HashMap<MapData, EdgeKey, Edge>,
    blocks: HashMap<MapData, BlockKey, Block>,
}

/// What may be absent.
fn found<T>(got: Result<T, aya::maps::MapError>) -> Result<Option<T>, MapError> {
    match got {
        Ok(value) => Ok(Some(value)),
        Err(aya::maps::MapError::KeyNotFound) => Ok(None),
        Err(aya::maps::MapError::SyscallError(call))
            if rustix::io::Errno::from_io_error(&call.io_error)
                == Some(rustix::io::Errno::NOENT) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

impl Exchange {
    /// The maps behind the descriptors.
    ///
    /// # Errors
    /// [`MapError::NotTheMap`] if one is something else, or its records have other sizes.
    pub fn new(descriptors: Descriptors) -> Result<Self, MapError> {
        let mut next = Descriptors::NAMES.into_iter().zip(descriptors.into_inner());
        let mut take = || next.next().expect("as many descriptors as names");
        macro_rules! map {
            () => {{
                let (name, descriptor) = take();
                typed(name, descriptor)?
            }};
        }
        Ok(Self {
            speakers: map!(),
            sockets: map!(),
            seats: map!(),
            edges: map!(),
            blocks: map!(),
        })
    }

    /// Lets a member send these kinds of descriptors, a bit for each, to another.
    ///
    /// # Errors
    /// [`MapError::Full`] or [`MapError::Kernel`].
    pub fn allow(&mut self, pair: EdgeKey, kinds: u32) -> Result<(), MapError> {
        let counted = found(self.edges.get(&pair, 0))?.unwrap_or_default();
        let edge = Edge { kinds, ..counted };
        Ok(self.edges.insert(pair, edge, 0)?)
    }

    /// Lets a member send nothing more to another.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn forbid(&mut self, pair: EdgeKey) -> Result<(), MapError> {
        found(self.edges.remove(&pair)).map(drop)
    }

    /// Gives an instance a seat: from now on it sends and receives through its end, and the gateway through the other.
    ///
    /// # Errors
    /// [`MapError::Full`] or [`MapError::Kernel`]; nothing is left behind then.
    pub fn seat(&mut self, key: SeatKey, member: u8, pair: Pair<'_>) -> Result<(), MapError> {
        let Ok(instance) = u16::try_from(key.instance) else {
            return Err(MapError::Index(key.instance));
        };
        let seated = self.try_seat(key, instance, member, pair);
        if seated.is_err() {
            // As far as it was there.
            let _ = self.unseat(key);
        }
        seated
    }

    fn try_seat(
        &mut self,
        key: SeatKey,
        instance: u16,
        member: u8,
        pair: Pair<'_>,
    ) -> Result<(), MapError> {
        let chain = key.chain;
        for (far, socket) in [(0, pair.near), (1, pair.far)] {
            let speaker = Speaker {
                chain,
                instance,
                member,
                far,
            };
            self.speakers.insert(&socket.as_raw_fd(), speaker, 0)?;
        }
        let seat = Seat {
            member: member.into(),
            ..Seat::default()
        };
        self.seats.insert(key, seat, 0)?;
        for (far, socket) in [(0, pair.near), (1, pair.far)] {
            let end = End {
                chain,
                instance,
                far,
            };
            self.sockets.insert(end, socket, 0)?;
        }
        Ok(())
    }

    /// Takes an instance's seat away: nothing reaches it any more, and what its socket sends is dropped. What it sent before can
    /// be received as long as the gateway keeps its end open, which leaves the map when it is closed: without the map the kernel
    /// forgets what the socket has not handed out yet.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn unseat(&mut self, key: SeatKey) -> Result<(), MapError> {
        found(self.seats.remove(&key))?;
        let near = End {
            chain: key.chain,
            instance: key.instance as u16,
            far: 0,
        };
        found(self.sockets.remove(&near)).map(drop)
    }

    /// What an instance did; none if it has no seat.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn seated(&self, key: SeatKey) -> Result<Option<Seat>, MapError> {
        found(self.seats.get(&key, 0))
    }

    /// What a member sent to another; none if it may not.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn edge(&self, pair: EdgeKey) -> Result<Option<Edge>, MapError> {
        found(self.edges.get(&pair, 0))
    }

    /// Who has a block in hand; none if the gateway never sent it.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn block(&self, key: BlockKey) -> Result<Option<Block>, MapError> {
        found(self.blocks.get(&key, 0))
    }

    /// Puts a block into a hand: of who holds it when it is not the gateway that sends it first.
    ///
    /// # Errors
    /// [`MapError::Full`] or [`MapError::Kernel`].
    pub fn put(&mut self, key: BlockKey, block: Block) -> Result<(), MapError> {
        Ok(self.blocks.insert(key, block, 0)?)
    }

    /// Forgets the blocks of a chain that has ended.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn forget_blocks(&mut self, chain: u32, numbers: Range<u32>) -> Result<(), MapError> {
        for number in numbers {
            found(self.blocks.remove(&BlockKey { chain, number }))?;
        }
        Ok(())
    }
}
