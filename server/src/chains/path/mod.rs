//! The gateway's end of a chain: its pool and route table, the rings to and from the instances, and the requests under way.
//!
//! One task receives ([`arrivals`]); each request sends on its own task and waits for its answer ([`request`]), and may receive
//! in the other's stead while it does ([`looking`]). A block is
//! freed when its descriptor is back, or when the instance that had it in hand has ended; never while a member may still
//! write to it, so a request that was given up keeps its block until then ([`pending`]).

mod arrivals;
mod bells;
mod carry;
mod crowd;
mod figures;
mod grants;
mod lending;
mod looking;
mod numbers;
mod pending;
mod refusals;
mod request;
mod room;
mod seats;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use hearth_chain::board::Shape as BoardShape;
use hearth_chain::join::{Carrier, Join};
use hearth_chain::routes::choice::{Chooser, Policy};
use hearth_chain::routes::{Plan, RouteTable};
use hearth_chain::shape::Shape;
use hearth_chain::{Board, ChainError, Member, Pool, Ring, Table};
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use self::bells::Bells;
use self::carry::Carry;
pub(super) use self::carry::Connection;
use self::crowd::Crowd;
use self::figures::Past;
use self::grants::Abandoned;
use self::looking::Looking;
pub(super) use self::numbers::Numbers;
use self::pending::{Pending, Recent};
use self::refusals::Refusals;
pub(super) use self::seats::{Seat, SeatError};
use super::ActivateError;
use crate::engine::Engine;
use crate::host_error::is_shortage;
use crate::model::chain::{Spec, Transport};

/// Numbers for the instances of a chain's version, the gateway's 0 included. Each start takes one, and none is used twice.
pub(super) const NUMBERS: u16 = 512;
/// Most slots of a ring: requests that wait for one instance. With more blocks than this, a ring can be full.
const SLOTS_MAX: u32 = 1024;

/// See the module.
pub(super) struct Path {
    spec: Arc<Spec>,
    /// The members' names by number, the gateway's first.
    names: Vec<Arc<str>>,
    carrier: Carrier,
    shape: BoardShape,
    pool: Pool,
    plan: Plan,
    routes: RouteTable,
    /// The table that has the routes.
    table: Table,
    board: Board,
    carry: Carry,
    bells: Bells,
    seats: RwLock<Vec<Arc<Seat>>>,
    /// The member of each number that was given out; 0 for the others.
    member_of: Box<[AtomicU8]>,
    chooser: Mutex<Chooser>,
    pending: Pending,
    recent: Recent,
    next_request: AtomicU32,
    /// Blocks of instances that ended while others had them in hand.
    abandoned: Mutex<Vec<Abandoned>>,
    /// An instance has joined, or took something from its ring.
    news: Notify,
    /// Requests under way.
    requests: AtomicU32,
    /// Requests that there have been.
    arrived: AtomicU64,
    looking: Looking,
    crowd: Crowd,
    /// Held while a descriptor is received and what it says is done.
    receiving: Mutex<()>,
    /// Descriptors that the gateway has refused, by the sender's member.
    refused: Box<[AtomicU64]>,
    refusals: Refusals,
    /// What instances did that have ended, by their member.
    past: Past,
}

impl From<ChainError> for ActivateError {
    fn from(error: ChainError) -> Self {
        match &error {
            ChainError::Os { source, .. } if is_shortage(source) => {
                Self::HostExhausted(error.to_string())
            }
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<std::io::Error> for ActivateError {
    fn from(error: std::io::Error) -> Self {
        match is_shortage(&error) {
            true => Self::HostExhausted(error.to_string()),
            false => Self::Internal(error.to_string()),
        }
    }
}

impl Path {
    /// Makes all that a chain's instances share.
    ///
    /// # Errors
    /// The host is short of something, or the chain was not checked.
    pub(super) fn create(spec: &Arc<Spec>, engine: &Engine) -> Result<Arc<Self>, ActivateError> {
        let internal = |error: &dyn std::fmt::Display| ActivateError::Internal(error.to_string());
        let routes: Vec<Vec<Member>> = spec
            .numbered_routes()
            .into_iter()
            .map(|route| route.into_iter().map(Member).collect())
            .collect();
        let calls: Vec<(Member, Member)> = spec
            .numbered_edges()
            .into_iter()
            .map(|(from, to)| (Member(from), Member(to)))
            .collect();
        let count = u8::try_from(spec.members.len()).map_err(|error| internal(&error))?;
        let plan = Plan::new(count, &routes, &calls).map_err(|error| internal(&error))?;
        let routes = RouteTable::create()?;
        let table = routes.publish(&plan).map_err(|error| internal(&error))?;
        let pool = Shape::new(spec.pool.blocks, spec.pool.block_bytes())?
            .with_payload_bytes(spec.pool.payload_bytes())?;
        let pool = Pool::create(pool, spec.pool.huge_pages)?;
        let slots = spec.pool.blocks.next_power_of_two().min(SLOTS_MAX);
        let shape = BoardShape::new(NUMBERS, NUMBERS, slots)?;
        let board = Board::create(shape)?;
        let gateway = std::iter::once(Arc::from(crate::model::chain::GATEWAY));
        let members = spec.members.keys().map(|name| Arc::from(name.as_str()));
        let names: Vec<Arc<str>> = gateway.chain(members).collect();
        let carrier = carrier(spec.transport, engine.busy_poll())?;
        let carry = Carry::create(carrier, engine, &board, &plan, spec.pool.blocks)?;
        let looking = Looking::new(engine.busy_poll(), engine.cores(), &plan);
        Ok(Arc::new(Self {
            carrier,
            carry,
            spec: spec.clone(),
            shape,
            pool,
            plan,
            routes,
            table,
            board,
            bells: Bells::new()?,
            seats: RwLock::default(),
            member_of: (0..NUMBERS).map(|_| AtomicU8::new(0)).collect(),
            chooser: Mutex::new(Chooser::new(Policy::ResidualCapacity)),
            pending: Pending::default(),
            recent: Recent::default(),
            next_request: AtomicU32::new(0),
            abandoned: Mutex::default(),
            news: Notify::new(),
            requests: AtomicU32::new(0),
            arrived: AtomicU64::new(0),
            looking,
            crowd: Crowd::new(engine.cores()),
            receiving: Mutex::default(),
            refused: names.iter().map(|_| AtomicU64::new(0)).collect(),
            refusals: Refusals::default(),
            past: Past::new(names.len()),
            names,
        }))
    }

    /// A connection for a new instance, where the transport has some.
    ///
    /// # Errors
    /// The host makes none.
    pub(super) async fn connect(&self) -> Result<Option<Connection>, SeatError> {
        self.carry.connect().await
    }

    /// Tells an instance to look at its control socket.
    pub(super) fn notify(&self, seat: &Seat) {
        self.carry.notify(seat.instance, &seat.board);
    }

    /// What a new instance is told of the members: their names.
    pub(super) fn names(&self) -> Join {
        let names = self.names.iter().skip(1);
        Join::Names(names.map(|name| name.to_string()).collect())
    }

    /// Whether a member may send anything to another.
    pub(super) fn has_edge(&self, from: Member, to: Member) -> bool {
        self.plan.has_edge(from, to)
    }

    /// Requests that there have been.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// A member's name; the gateway's for a number that is no member's.
    fn name(&self, member: Member) -> Arc<str> {
        let name = self.names.get(usize::from(member.0));
        name.unwrap_or(&self.names[0]).clone()
    }
}

/// How descriptors travel on this host.
fn carrier(transport: Transport, busy_poll: Duration) -> Result<Carrier, ActivateError> {
    let busy_poll_us = u32::try_from(busy_poll.as_micros()).unwrap_or(u32::MAX);
    match transport {
        Transport::Poll => Ok(Carrier::Poll),
        Transport::SkMsg => Ok(Carrier::SkMsg),
        Transport::Auto | Transport::Ring if Ring::is_supported() => {
            Ok(Carrier::Ring { busy_poll_us })
        }
        Transport::Auto => Ok(Carrier::Poll),
        Transport::Ring => Err(ActivateError::Transport {
            transport: "ring",
            reason: "its kernel has no futex_waitv (Linux 5.16)".into(),
        }),
    }
}
