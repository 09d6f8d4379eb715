//! The transport `sk_msg`: each instance has one end of a TCP connection, the gateway the other, and a program in the kernel sees to
//! what is sent through either (`ebpf/bpf/sproxy.bpf.c`). It gives a descriptor to the target's socket, or, if no edge allows that, to the
//! gateway's end of the sender's connection.
//!
//! - [`SkMsg`]: the transport of an instance.
//! - [`Lines`]: the gateway's ends.
//! - [`News`]: what the gateway tells an instance on its connection, and [`Denied`]: what it is told.
//! - [`stream`]: whole records from and to a socket.
//!
//! A delivered descriptor has its source in the place of its target: the program writes it there. Everything else about an edge is
//! as with rings, on the boards: the receiver counts what it has taken, and the sender is told at once when too much is under way.
//!
//! [`stream`]: self::stream

mod lines;
mod news;
mod output;
mod stream;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

pub use self::lines::{Heard, Lines};
pub use self::news::{Denied, News, Reason};
use self::news::{Record, read};
use self::output::Output;
use self::stream::{Received, Stream};
use crate::board::{Board, PeerBoard};
use crate::descriptor::Descriptor;
use crate::error::{ChainError, RecvError, Refused, SendError};
use crate::id::Instance;
use crate::inbox::Arrival;
use crate::memory::Own;
use crate::sleeper::ENDED;
use crate::transport::Transport;

/// One edge's end.
#[derive(Debug)]
struct Input {
    number: u16,
    from: Instance,
    /// On the own board: descriptors taken, which the sender looks at.
    tail: Own,
    taken: u32,
}

/// Event-driven, with every descriptor checked by the kernel on its way. Uses no CPU while idle.
#[derive(Debug)]
pub struct SkMsg {
    me: Instance,
    stream: Stream,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    state: Own,
    /// Came, and is not looked at yet.
    records: VecDeque<[u64; 2]>,
    /// Of peers that this instance is told of in a moment: they have been told of it before. No more than the chain has blocks.
    early: Vec<(Instance, [u64; 2])>,
    /// Peers whose edge was closed here.
    closed: Vec<Instance>,
    /// There is something on the control socket, or should be.
    has_notice: bool,
}

impl SkMsg {
    /// Of an instance, its own board, and its end of the connection. Without edges.
    #[must_use]
    pub fn new(me: Instance, board: &Board, socket: OwnedFd) -> Self {
        Self {
            me,
            stream: Stream::new(socket),
            inputs: Vec::new(),
            outputs: Vec::new(),
            state: board.state(),
            records: VecDeque::new(),
            early: Vec::new(),
            closed: Vec::new(),
            has_notice: false,
        }
    }

    /// Opens an edge from a peer: what comes from it is counted at `input` of the own board.
    ///
    /// # Errors
    /// There is no such input, or it is in use.
    pub fn open_input(
        &mut self,
        board: &Board,
        input: u16,
        from: Instance,
    ) -> Result<(), ChainError> {
        if self.inputs.iter().any(|other| other.number == input) {
            return Err(ChainError::Taken {
                what: "input",
                number: input,
            });
        }
        self.inputs.push(Input {
            number: input,
            from,
            tail: board.tail(input)?,
            taken: 0,
        });
        // What it has sent meanwhile is next, in its order.
        let early = self.early.extract_if(.., |(source, _)| *source == from);
        let early: Vec<[u64; 2]> = early.map(|(_, words)| words).collect();
        for words in early.into_iter().rev() {
            self.records.push_front(words);
        }
        Ok(())
    }

    /// Opens an edge to a peer: what is sent to it is counted at `output` of the own board, and what it takes at `input` of
    /// its.
    ///
    /// # Errors
    /// One of them does not exist or is in use, or there is an edge to this peer.
    pub fn open_output(
        &mut self,
        board: &Board,
        output: u16,
        to: Instance,
        peer: &PeerBoard,
        input: u16,
    ) -> Result<(), ChainError> {
        let is_taken = |other: &Output| other.number == output || other.to == to;
        if self.outputs.iter().any(is_taken) {
            return Err(ChainError::Taken {
                what: "output",
                number: output,
            });
        }
        let opened = Output::open(board, output, to, peer, input)?;
        self.outputs.push(opened);
        Ok(())
    }

    /// Closes an edge from a peer; whether there was one. What it sent and was not received is refused.
    pub fn close_input(&mut self, input: u16) -> bool {
        let at = self.inputs.iter().position(|other| other.number == input);
        let closed = at.map(|at| self.inputs.remove(at).from);
        self.closed.extend(closed);
        closed.is_some()
    }

    /// Descriptors on the way to a peer that it has not taken; none if there is no edge, or its count cannot be true.
    pub fn backlog(&mut self, to: Instance) -> Option<u32> {
        let output = self.outputs.iter_mut().find(|output| output.to == to)?;
        output.backlog()
    }

    /// The next descriptor among the records that have come; none, too, where the control socket comes before the others.
    fn next(&mut self) -> Result<Option<Arrival>, RecvError> {
        let Some(words) = self.records.pop_front() else {
            return Ok(None);
        };
        let (from, descriptor) = match read(words) {
            Record::News(News::Look) => {
                self.has_notice = true;
                return Ok(None);
            }
            Record::News(News::Gone(peer)) => {
                self.inputs.retain(|input| input.from != peer);
                self.outputs.retain(|output| output.to != peer);
                self.early.retain(|(from, _)| *from != peer);
                return Err(RecvError::Gone(peer));
            }
            Record::Descriptor(from, descriptor) => (from, descriptor),
        };
        let Some(input) = self.inputs.iter_mut().find(|input| input.from == from) else {
            if self.closed.contains(&from) {
                let refused = Refused::NoEdge(from);
                return Err(RecvError::Refused { from, refused });
            }
            // The kernel lets pass what the chain's edges allow. The peer is new.
            self.early.push((from, words));
            self.has_notice = true;
            return Ok(None);
        };
        input.taken = input.taken.wrapping_add(1) & output::POSITION;
        input.tail.store(input.taken, Ordering::Release);
        Ok(Some(Arrival {
            from,
            descriptor: Descriptor {
                target: self.me,
                ..descriptor
            },
        }))
    }

    /// Reads from the socket; waits until the deadline if there is one. Whether anything came.
    fn read(&mut self, deadline: Option<Instant>) -> Result<bool, RecvError> {
        match self.stream.receive(&mut self.records, deadline)? {
            Received::Some => Ok(true),
            Received::Nothing => Ok(false),
            // What closes it is the server, or its end.
            Received::End if self.state.load(Ordering::Acquire) == ENDED => Err(RecvError::Closed),
            Received::End => Err(RecvError::Gone(Instance::GATEWAY)),
        }
    }
}

impl Transport for SkMsg {
    fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError> {
        let words = descriptor.to_words().map_err(SendError::Unencodable)?;
        let to = descriptor.target;
        let at = self.outputs.iter().position(|output| output.to == to);
        let at = at.ok_or(SendError::NoEdge(to))?;
        let sent = self.outputs[at].send(&self.stream, words);
        if matches!(sent, Err(SendError::Gone(_) | SendError::Broken { .. })) {
            self.outputs.remove(at).reset();
        }
        sent
    }

    fn try_recv(&mut self) -> Result<Option<Arrival>, RecvError> {
        loop {
            if let Some(arrival) = self.next()? {
                return Ok(Some(arrival));
            }
            if self.records.is_empty() && !self.read(None)? {
                return Ok(None);
            }
        }
    }

    fn recv(&mut self, deadline: Instant) -> Result<Arrival, RecvError> {
        loop {
            if let Some(arrival) = self.next()? {
                return Ok(arrival);
            }
            if std::mem::take(&mut self.has_notice) {
                return Err(RecvError::Interrupted);
            }
            if self.records.is_empty() && !self.read(Some(deadline))? && Instant::now() >= deadline
            {
                return Err(RecvError::TimedOut);
            }
        }
    }
}
