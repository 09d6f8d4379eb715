//! The ways to carry descriptors, behind one interface: [`Ring`] and [`Poll`] over the boards, [`crate::SkMsg`] over sockets.
//!
//! What a transport promises:
//! - The source of a descriptor is what the transport knows, by the ring or the socket that it came on. Nothing in the 16 bytes can
//!   change it.
//! - Between two instances without an edge nothing passes: with `sk_msg` the kernel sees to that, here the boards.
//! - Descriptors of one sender arrive in order, each once, or the edge ends with one typed error.
//! - Nothing waits without a deadline, and no peer's fault is another's.

mod poll;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use self::poll::Poll;
use hearth_abi::spin::{AdaptiveSpin, look};

use crate::board::{Board, PeerBoard};
use crate::descriptor::Descriptor;
use crate::envelope::Looks;
use crate::error::{RecvError, SendError};
use crate::futex::{self, Woken};
use crate::id::Instance;
use crate::inbox::{Arrival, Inbox};
use crate::memory::Own;
use crate::near::{Near, Stay, WakeUp};
use crate::outbox::Outbox;
use crate::sleeper::{ASLEEP, AWAKE};
use crate::turn::Turn;

/// Looks of a [`Ring`] before it reads the clock, if its peer answered soon before: a microsecond or two.
const QUICK_LOOKS: u32 = 64;

/// Carries descriptors between one instance and its peers.
pub trait Transport {
    /// Sends a descriptor to its target, without waiting.
    ///
    /// # Errors
    /// It was not sent; the block is still the caller's.
    fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError>;

    /// The next descriptor, if there is one.
    ///
    /// # Errors
    /// One peer's fault, reported once, or the system's.
    fn try_recv(&mut self) -> Result<Option<Arrival>, RecvError>;

    /// The next descriptor; waits for it until the deadline.
    ///
    /// # Errors
    /// As [`Self::try_recv`], and [`RecvError::TimedOut`] or [`RecvError::Interrupted`].
    fn recv(&mut self, deadline: Instant) -> Result<Arrival, RecvError>;
}

/// Both halves of an instance's edges.
#[derive(Debug)]
pub struct Edges {
    /// From its peers.
    pub inbox: Inbox,
    /// To its peers.
    pub outbox: Outbox,
}

impl Edges {
    /// Of an instance and its own board, without edges.
    #[must_use]
    pub fn new(me: Instance, board: &Board) -> Self {
        Self {
            inbox: Inbox::new(me, board),
            outbox: Outbox::new(),
        }
    }
}

/// Ends the wait of a [`Ring`] from another thread of the same process.
#[derive(Debug, Clone)]
pub struct Waker {
    state: Arc<Own>,
}

impl Waker {
    /// Of the instance whose board it is.
    #[must_use]
    pub fn new(board: &Board) -> Self {
        Self {
            state: Arc::new(board.state()),
        }
    }

    /// Ends the current sleep, if there is one: [`RecvError::Interrupted`].
    pub fn wake(&self) {
        let woken =
            self.state
                .compare_exchange(ASLEEP, AWAKE, Ordering::Release, Ordering::Relaxed);
        if woken.is_ok() {
            // It fails for bad addresses only.
            let _ = futex::wake(&self.state);
        }
    }
}

/// Event-driven: spins for as long as that pays, then sleeps on the rings themselves. Uses no CPU while idle.
#[derive(Debug)]
pub struct Ring {
    /// The edges, for opening and closing some.
    pub edges: Edges,
    spin: AdaptiveSpin,
    looks: Looks,
    /// None where all look.
    turn: Option<Turn>,
    near: Near,
    /// The last wait ended while this side was looking.
    answers_soon: bool,
}

impl Ring {
    /// Spins for `busy_poll` at most before it sleeps; zero disables spinning.
    #[must_use]
    pub const fn new(edges: Edges, busy_poll: Duration) -> Self {
        Self {
            edges,
            spin: AdaptiveSpin::new(busy_poll),
            looks: Looks::Everybody,
            turn: None,
            near: Near::new(!busy_poll.is_zero()),
            answers_soon: false,
        }
    }

    /// Whether this host has what a sleep needs: `futex_waitv`, Linux 5.16.
    #[must_use]
    pub fn is_supported() -> bool {
        futex::is_supported()
    }

    /// The same for an instance that can look in turn with the others of its chain, as the gateway's board has it.
    #[must_use]
    pub fn in_turn(self, gateway: &PeerBoard) -> Self {
        Self {
            turn: Some(Turn::new(gateway.turn())),
            ..self
        }
    }

    /// Which instances may look now.
    pub fn looks(&mut self, looks: Looks) {
        self.spin.allow(looks != Looks::Nobody);
        self.looks = looks;
    }

    /// Whether instances do best on one processor now.
    pub fn together(&mut self, together: bool) {
        self.near.want(together);
    }

    /// Something woke this instance.
    fn woken(&mut self, from: Instance, stay: Stay) {
        if from != Instance::GATEWAY
            && let Some(by) = self.edges.inbox.wake_up(from)
        {
            let (slept, bound) = (stay.elapsed(), stay.is_bound());
            self.near.woken(by, WakeUp::now(), slept, bound);
        }
    }

    /// Whether it is another instance's turn to look.
    fn rests(&self) -> bool {
        self.looks == Looks::InTurn && self.turn.as_ref().is_some_and(Turn::rests)
    }

    /// Looks for something before sleeping, if that pays.
    fn look(&mut self, deadline: Instant) {
        let mut now = None;
        let Some(budget) = self.spin.budget(|| *now.insert(Instant::now())) else {
            self.answers_soon = false;
            return;
        };
        let inbox = &self.edges.inbox;
        let left = now.map_or(budget, |now| deadline.saturating_duration_since(now));
        let look = look(budget.min(left), || inbox.is_ready());
        self.spin.learn(look);
        self.answers_soon = look.found;
    }

    /// Sleeps until there may be something, or, if it `waits` for that, until it is this instance's turn to look for it: `true`.
    fn sleep(&mut self, deadline: Instant, waits: bool) -> Result<bool, RecvError> {
        let inbox = &self.edges.inbox;
        if !inbox.announce()? {
            inbox.retract();
            return Ok(false);
        }
        let mut waiters = inbox.waiters();
        let turn = self.turn.as_ref().filter(|_| waits);
        let turn = turn.map(|turn| {
            waiters.push(turn.waiter());
            waiters.len() - 1
        });
        let woken = futex::wait(&waiters, deadline);
        let retracted = inbox.retract();
        let woken = woken.map_err(|source| RecvError::Os {
            call: "futex_waitv",
            source,
        })?;
        // What has come is received before anything else is said.
        match woken {
            _ if inbox.is_ready() => Ok(false),
            _ if !retracted => Err(RecvError::Interrupted),
            Woken::TimedOut => Err(RecvError::TimedOut),
            Woken::Look => Ok(false),
            Woken::By(index) => Ok(turn == Some(index)),
        }
    }
}

impl Transport for Ring {
    #[inline]
    fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError> {
        self.edges.outbox.send(descriptor)?;
        if self.looks == Looks::InTurn
            && let Some(turn) = &mut self.turn
        {
            turn.sent(descriptor);
        }
        Ok(())
    }

    #[inline]
    fn try_recv(&mut self) -> Result<Option<Arrival>, RecvError> {
        let arrival = self.edges.inbox.try_recv()?;
        if let Some(Arrival { from, descriptor }) = &arrival {
            self.near.received(*from, descriptor);
            if let Some(turn) = &mut self.turn {
                turn.received(*from, descriptor);
            }
        }
        Ok(arrival)
    }

    fn recv(&mut self, deadline: Instant) -> Result<Arrival, RecvError> {
        if let Some(arrival) = self.try_recv()? {
            return Ok(arrival);
        }
        if self.edges.inbox.take_notice() {
            return Err(RecvError::Interrupted);
        }
        let mut waits = false;
        if self.rests() {
            let is_first = self.turn.as_ref().is_some_and(Turn::is_first);
            waits = is_first && self.spin.budget(Instant::now).is_some();
        } else {
            if self.answers_soon && self.looks != Looks::Nobody {
                // A peer that spins too answers before a reading of the clock has paid for itself. In vain this happens once
                // after each wait that ended soon.
                for _ in 0..QUICK_LOOKS {
                    if self.edges.inbox.is_ready() {
                        break;
                    }
                    core::hint::spin_loop();
                }
                if let Some(arrival) = self.try_recv()? {
                    return Ok(arrival);
                }
            }
            self.look(deadline);
        }
        let mut stay: Option<Stay> = None;
        loop {
            if let Some(arrival) = self.try_recv()? {
                if let Some(stay) = stay {
                    self.woken(arrival.from, stay);
                }
                return Ok(arrival);
            }
            if self.edges.inbox.take_notice() {
                return Err(RecvError::Interrupted);
            }
            stay.get_or_insert_with(|| self.near.stay());
            if self.sleep(deadline, waits)? {
                waits = false;
                self.look(deadline);
            }
        }
    }
}
