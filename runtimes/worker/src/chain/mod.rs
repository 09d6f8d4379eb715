//! An instance as a member of a chain: it takes requests from its peers instead of the server, and passes its results on to the
//! next member of the route.
//!
//! The server makes it one by a message on its channel, and tells it of its peers on the ready socket ([`control`]). From then on it
//! sleeps on the chain's rings. Whatever a peer sends is checked here: the kind of descriptor that its edge allows, the place in
//! the route, the block. What fails is refused and counted, and the instance goes on.

mod block;
mod call;
mod control;
mod logs;
mod pass;
mod peers;
mod refuse;
mod room;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hearth_abi::time_slice::wait_for_turns;
use hearth_abi::{RequestHead, Trigger, monotonic_ns};
use hearth_chain::routes::RouteView;
use hearth_chain::routes::choice::Chooser;
use hearth_chain::{
    Arrival, Board, ChainError, Descriptor, Instance, Kind, Member, PoolView, RecvError, SendError,
};

pub use self::block::{Area, Content, LeftCopy};
pub use self::call::{CallError, Held, Returned};

use self::call::Granted;
use self::logs::Logs;
use self::peers::Peers;
use self::room::Asked;

/// Longest sleep. The server's end is noticed by its closed socket, on which this does not wait: the sandbox ends with the
/// server, and this is for the case that it does not.
const SLEEP: Duration = Duration::from_secs(600);

/// The instance cannot be a member, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The chain's memory could not be mapped.
    #[error("the chain's memory: {0}")]
    Memory(#[from] ChainError),
    /// A message of the server makes no sense.
    #[error("the server said of the chain what makes no sense: {0}")]
    Message(&'static str),
    /// A system call failed.
    #[error("{call}: {source}")]
    Os {
        /// The call.
        call: &'static str,
        /// Its error.
        source: std::io::Error,
    },
    /// The gateway is gone.
    #[error("the chain's gateway is gone: {0}")]
    Gateway(#[from] SendError),
}

/// What this instance works on.
#[derive(Debug, Clone, Copy)]
struct Current {
    descriptor: Descriptor,
    /// Who sent it, and gets the reply of a call.
    from: Instance,
    /// When it was taken, in ns of the monotonic clock.
    entered_ns: u64,
    /// When the gateway gives it up, in µs since 1970.
    deadline_unix_us: u64,
}

impl Current {
    /// When the gateway gives it up. Reads two clocks, which a request that waits for nothing is spared.
    fn deadline(&self) -> Instant {
        instant_of(self.deadline_unix_us)
    }
}

/// A request for the handler.
#[derive(Debug)]
pub struct Request {
    /// The invocation's id.
    pub id: [u8; 16],
    /// Deadline and trigger.
    pub head: RequestHead,
    /// W3C trace context, if the client sent one.
    pub traceparent: Option<String>,
}

/// An instance's place in its chain.
#[derive(Debug)]
pub struct ChainMember {
    me: Instance,
    member: Member,
    board: Board,
    pool: PoolView,
    routes: RouteView,
    peers: Peers,
    chooser: Chooser,
    /// What came while this instance waited for something else.
    early: VecDeque<Arrival>,
    current: Option<Current>,
    /// What was asked of the gateway for that.
    asked: Option<Asked>,
    /// The members' names, that of member 1 first.
    names: Vec<String>,
    /// Blocks of its own, for calls.
    granted: Vec<Granted>,
    logs: Logs,
    /// Whether the chain's settings say that the handler has payloads in place.
    in_place: bool,
    /// Whether the thread waits for its turn when it is woken.
    takes_turns: bool,
}

impl ChainMember {
    /// Whether the handler is to have payloads in place, by the chain's settings.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Waits for a request and copies its payload to `event`, if there is one: else it stays in [`Self::block`]. Nothing when
    /// the server is gone or has closed this instance.
    ///
    /// # Errors
    /// The system's.
    pub fn receive(
        &mut self,
        control: &OwnedFd,
        mut event: Option<&mut Vec<u8>>,
    ) -> Result<Option<Request>, MemberError> {
        loop {
            self.return_unused()?;
            self.report_load();
            let arrival = match self.early.pop_front() {
                Some(arrival) => arrival,
                None => {
                    self.logs.look();
                    match self.peers.recv(Instant::now() + SLEEP) {
                        Ok(arrival) => arrival,
                        Err(error) if self.goes_on_after(&error, control)? => continue,
                        Err(_) => return Ok(None),
                    }
                }
            };
            if let Some(request) = self.take(arrival, event.as_deref_mut()) {
                return Ok(Some(request));
            }
        }
    }

    /// Whether there is anything left to wait for.
    fn goes_on_after(&mut self, error: &RecvError, control: &OwnedFd) -> Result<bool, MemberError> {
        match error {
            RecvError::Interrupted | RecvError::TimedOut => self.hear(control),
            RecvError::Closed => Ok(false),
            RecvError::Gone(peer) => {
                self.peers.forget(*peer);
                self.end_calls_of(*peer);
                Ok(*peer != Instance::GATEWAY)
            }
            RecvError::Broken { from, .. } => {
                self.board.count_refused();
                self.peers.forget(*from);
                self.end_calls_of(*from);
                Ok(*from != Instance::GATEWAY)
            }
            RecvError::Refused { .. } => {
                self.board.count_refused();
                Ok(true)
            }
            RecvError::Os { call, source } => Err(MemberError::Os {
                call,
                source: std::io::Error::from(source.kind()),
            }),
        }
    }

    /// Takes what arrived, if it is a request for this member.
    fn take(&mut self, arrival: Arrival, event: Option<&mut Vec<u8>>) -> Option<Request> {
        let Arrival { from, descriptor } = arrival;
        self.pool.expect(descriptor.block);
        if !matches!(descriptor.kind, Kind::Pass | Kind::Call) {
            if !self.take_other(from, &descriptor) {
                self.refuse(&descriptor);
            }
            return None;
        }
        if !self.may_come(&arrival) {
            self.refuse(&descriptor);
            return None;
        }
        self.logs.begin();
        let entered_ns = monotonic_ns();
        let Ok(payload) = self.pool.check(&descriptor, from) else {
            // Or it was given up meanwhile: nothing is wrong, and the block is somebody else's by now.
            self.refuse(&descriptor);
            return None;
        };
        if let Some(event) = event {
            event.clear();
            payload.read(event);
        }
        let envelope = self.pool.envelope(descriptor.block);
        self.peers.looks(envelope.looks);
        self.peers.together(envelope.together);
        self.take_turns(envelope.crowded);
        self.current = Some(Current {
            descriptor,
            from,
            entered_ns,
            deadline_unix_us: envelope.deadline_unix_us,
        });
        self.board.report_current(descriptor.request);
        self.report_load();
        Some(Request {
            id: envelope.id,
            head: RequestHead::new(envelope.deadline_unix_us, Trigger::Chain),
            traceparent: envelope.trace.map(|trace| trace.to_text()),
        })
    }

    /// Whether this thread waits for its turn when it is woken, instead of interrupting others.
    fn take_turns(&mut self, crowded: bool) {
        if self.takes_turns != crowded {
            self.takes_turns = crowded;
            self.chooser.spread(crowded);
            // Where the kernel does not let it, it works all the same.
            let _ = wait_for_turns(crowded);
        }
    }

    /// Takes what comes while this instance waits for something else: a request is kept for later.
    fn keep(&mut self, arrival: Arrival) {
        let Arrival { from, descriptor } = arrival;
        self.pool.expect(descriptor.block);
        if matches!(descriptor.kind, Kind::Pass | Kind::Call) {
            self.early.push_back(arrival);
            self.report_load();
        } else if !self.take_other(from, &descriptor) {
            self.refuse(&descriptor);
        }
    }

    /// Whether the routes let the sender send this here.
    fn may_come(&self, arrival: &Arrival) -> bool {
        let Descriptor {
            table,
            route,
            hop,
            kind,
            ..
        } = arrival.descriptor;
        let Some(sender) = self.peers.member(arrival.from) else {
            return false;
        };
        let is_allowed = self.routes.allows(table, sender, self.member, kind);
        let is_here =
            kind != Kind::Pass || self.routes.hop(table, route, hop) == Ok(Some(self.member));
        is_allowed == Ok(true) && is_here
    }

    fn report_load(&self) {
        let in_hand = self.early.len() + usize::from(self.current.is_some());
        self.board
            .report_load(u32::try_from(in_hand).unwrap_or(u32::MAX));
    }
}

/// A time of day as this process waits for it.
fn instant_of(unix_us: u64) -> Instant {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Instant::now()
        + Duration::from_micros(unix_us)
            .saturating_sub(now)
            .min(SLEEP)
}
