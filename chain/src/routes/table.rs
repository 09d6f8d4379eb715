//! The table in shared memory: the server's side, which writes it, and the members', which read it.

use core::sync::atomic::{Ordering, fence};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use super::look::{
    BYTES, Look, MAGIC, MAX_SEATS, RouteError, Seat, VERSION, image, seat_at, table_at,
};
use super::pins::Pins;
use super::plan::Plan;
use crate::descriptor::{Kind, Table};
use crate::error::ChainError;
use crate::file::File;
use crate::id::{Instance, Member};
use crate::memory::{Memory, ReadOnly, Writable};

/// The table that would be written still has requests that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{followers} requests follow the routes before the current ones")]
pub struct Busy {
    /// How many.
    pub followers: u32,
}

/// The table, as the server has it. All methods may be called from any thread at any time.
#[derive(Debug)]
pub struct RouteTable {
    memory: Arc<Memory<Writable>>,
    file: File,
    pins: Pins,
    /// Held while the table or the directory is written.
    writer: Mutex<()>,
}

/// A request that follows its table until this is dropped.
#[derive(Debug)]
pub struct Pin<'a> {
    pins: &'a Pins,
    table: Table,
}

impl Pin<'_> {
    /// The table, for the request's descriptors.
    #[must_use]
    pub fn table(&self) -> Table {
        self.table
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.pins.unpin(self.table);
    }
}

impl RouteTable {
    /// Makes a table without routes and instances.
    ///
    /// # Errors
    /// The system refuses the memory or the descriptor.
    pub fn create() -> Result<Self, ChainError> {
        let file = File::create("route table", BYTES)?;
        let memory = file.map()?;
        file.seal_future_writes()?;
        memory.store(0, MAGIC);
        memory.store(8, VERSION);
        Ok(Self {
            memory,
            file,
            pins: Pins::default(),
            writer: Mutex::new(()),
        })
    }

    /// A descriptor for members, which can only read it.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn for_members(&self) -> Result<OwnedFd, ChainError> {
        self.file.descriptor()
    }

    /// Counts a request that begins, which follows the routes of now to its end.
    pub fn pin(&self) -> Pin<'_> {
        Pin {
            table: self.pins.pin(),
            pins: &self.pins,
        }
    }

    /// Publishes routes for all requests that begin from now on.
    ///
    /// # Errors
    /// Some requests still follow the routes before the current ones: try again when one has ended. Nothing was changed.
    pub fn publish(&self, plan: &Plan) -> Result<Table, Busy> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(table) = self.pins.retired() else {
            let other = self.pins.active().other();
            return Err(Busy {
                followers: self.pins.followers(other),
            });
        };
        self.write(table, plan);
        self.pins.activate(table);
        Ok(table)
    }

    fn write(&self, table: Table, plan: &Plan) {
        let image = image(plan);
        let at = table_at(table);
        let sequence = self.memory.load(at);
        self.memory.store(at, sequence.wrapping_add(1));
        // SYNC POINT: sequence. Who sees a word of the new table sees that it is being written.
        fence(Ordering::Release);
        for (word, index) in image.chunks_exact(8).zip(1..) {
            let value = word
                .iter()
                .rev()
                .fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
            let to = at + index * 8;
            // Words that stay as they are are not touched, so that unused pages stay unused.
            if self.memory.load(to) != value {
                self.memory.store(to, value);
            }
        }
        // SYNC POINT: sequence. Who sees the new number sees all of the new table.
        fence(Ordering::Release);
        self.memory.store(at, sequence.wrapping_add(2));
    }

    /// The member at a hop; none after the last.
    ///
    /// # Errors
    /// There is no such hop.
    pub fn hop(&self, table: Table, route: u8, hop: u8) -> Result<Option<Member>, RouteError> {
        Look::hop(&*self.memory, table, route, hop)
    }

    /// Whether `from` may send this kind to `to`.
    ///
    /// # Errors
    /// The table is being written.
    pub fn allows(
        &self,
        table: Table,
        from: Member,
        to: Member,
        kind: Kind,
    ) -> Result<bool, RouteError> {
        Look::allows(&*self.memory, table, from, to, kind)
    }

    /// Adds an instance to the directory, or changes its entry; whether there was room for it.
    pub fn seat(&self, member: Member, seat: Seat) -> bool {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.seats(member).count();
        let own = self
            .seats(member)
            .position(|found| found.instance == seat.instance);
        let index = own.unwrap_or(taken);
        if index == MAX_SEATS {
            return false;
        }
        self.memory.store(seat_at(member, index), seat.pack());
        true
    }

    /// Removes an instance from the directory; whether it was there.
    pub fn unseat(&self, member: Member, instance: Instance) -> bool {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let seats: Vec<Seat> = self.seats(member).collect();
        let Some(index) = seats.iter().position(|seat| seat.instance == instance) else {
            return false;
        };
        // The last one moves to its place and then goes from its own, so that there is no gap, and a reader sees an
        // instance as long as there is one.
        let last = seats.len() - 1;
        self.memory
            .store(seat_at(member, index), seats[last].pack());
        fence(Ordering::Release);
        self.memory.store(seat_at(member, last), 0);
        true
    }

    /// A member's instances.
    pub fn seats(&self, member: Member) -> impl Iterator<Item = Seat> {
        Look::seats(&*self.memory, member)
    }
}

/// The table, as a member has it.
#[derive(Debug, Clone)]
pub struct RouteView {
    memory: Arc<Memory<ReadOnly>>,
}

impl RouteView {
    /// Maps the chain's table.
    ///
    /// # Errors
    /// The file is no table, or not sealed, or mapping it fails.
    pub fn attach(fd: OwnedFd) -> Result<Self, ChainError> {
        let file = File::passed("route table", fd, Some(BYTES))?.written_by_the_server_alone()?;
        let memory = file.map_read_only()?;
        if [memory.load(0), memory.load(8)] != [MAGIC, VERSION] {
            return Err(ChainError::NotA("route table"));
        }
        Ok(Self { memory })
    }

    /// The member at a hop; none after the last.
    ///
    /// # Errors
    /// There is no such hop, or the request has been given up.
    pub fn hop(&self, table: Table, route: u8, hop: u8) -> Result<Option<Member>, RouteError> {
        Look::hop(&*self.memory, table, route, hop)
    }

    /// Whether `from` may send this kind to `to`.
    ///
    /// # Errors
    /// The request has been given up.
    pub fn allows(
        &self,
        table: Table,
        from: Member,
        to: Member,
        kind: Kind,
    ) -> Result<bool, RouteError> {
        Look::allows(&*self.memory, table, from, to, kind)
    }

    /// A member's instances.
    pub fn seats(&self, member: Member) -> impl Iterator<Item = Seat> {
        Look::seats(&*self.memory, member)
    }
}
