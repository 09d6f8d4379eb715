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
#[cfg(test)]
use self::news::SOURCE_AT;
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
    /// The next record's sender is not known yet: the control socket may know it.
    asked: bool,
    /// The gateway has said to look at the control socket.
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
            asked: false,
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
        let before = self.inputs.len();
        self.inputs.retain(|other| other.number != input);
        self.inputs.len() < before
    }

    /// Descriptors on the way to a peer that it has not taken; none if there is no edge, or its count cannot be true.
    pub fn backlog(&mut self, to: Instance) -> Option<u32> {
        let output = self.outputs.iter_mut().find(|output| output.to == to)?;
        output.backlog()
    }

    /// The next descriptor among the records that have come.
    fn next(&mut self) -> Result<Option<Arrival>, RecvError> {
        while let Some(&words) = self.records.front() {
            let (from, descriptor) = match read(words) {
                Record::News(News::Look) => {
                    self.records.pop_front();
                    self.has_notice = true;
                    continue;
                }
                Record::News(News::Gone(peer)) => {
                    self.records.pop_front();
                    self.inputs.retain(|input| input.from != peer);
                    self.outputs.retain(|output| output.to != peer);
                    return Err(RecvError::Gone(peer));
                }
                Record::Descriptor(from, descriptor) => (from, descriptor),
            };
            let Some(input) = self.inputs.iter_mut().find(|input| input.from == from) else {
                // The server tells of a peer on another socket, and before it has anything to send.
                if !self.asked {
                    self.asked = true;
                    self.has_notice = true;
                    return Ok(None);
                }
                self.asked = false;
                self.records.pop_front();
                let refused = Refused::NoEdge(from);
                return Err(RecvError::Refused { from, refused });
            };
            self.asked = false;
            self.records.pop_front();
            input.taken = input.taken.wrapping_add(1) & output::POSITION;
            input.tail.store(input.taken, Ordering::Release);
            return Ok(Some(Arrival {
                from,
                descriptor: Descriptor {
                    target: self.me,
                    ..descriptor
                },
            }));
        }
        Ok(None)
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
        if let Some(arrival) = self.next()? {
            return Ok(Some(arrival));
        }
        match !self.asked && self.read(None)? {
            true => self.next(),
            false => Ok(None),
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
            if !self.read(Some(deadline))? && Instant::now() >= deadline {
                return Err(RecvError::TimedOut);
            }
        }
    }
}

/// The words of a descriptor as they arrive from `from`.
#[cfg(test)]
fn arrived(words: [u64; 2], from: Instance) -> [u64; 2] {
    [
        words[0] & !(0xffff << SOURCE_AT) | u64::from(from.0) << SOURCE_AT,
        words[1],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{Kind, Table};

    #[test]
    fn a_record_is_a_descriptor_with_its_source_or_news() {
        let descriptor = Descriptor {
            request: 7,
            generation: 8,
            target: Instance(3),
            block: 9,
            len: 10,
            route: 1,
            hop: 2,
            table: Table::B,
            kind: Kind::Reply,
            more: true,
        };
        let words = descriptor.to_words().expect("legal");
        let arrived = arrived(words, Instance(5));
        assert_eq!(
            read(arrived),
            Record::Descriptor(
                Instance(5),
                Descriptor {
                    target: Instance(5),
                    ..descriptor
                }
            )
        );
        for news in [News::Look, News::Gone(Instance(9))] {
            assert_eq!(read(news.to_words()), Record::News(news));
        }
    }

    #[test]
    fn what_was_denied_says_why_and_whose_the_block_is() {
        for (number, reason) in [
            (1_u8, Reason::Kind),
            (2, Reason::Target),
            (3, Reason::Edge),
            (4, Reason::Block),
            (5, Reason::Gone),
            (77, Reason::Unknown(77)),
        ] {
            for is_returned in [false, true] {
                let second =
                    0x1234 | u64::from(number) << 51 | 7_u64 << 60 | u64::from(is_returned) << 63;
                let denied = Denied::read([6 << 48 | 11, second]).expect("denied");
                assert_eq!((denied.reason, denied.is_returned), (reason, is_returned));
                let Descriptor {
                    target,
                    request,
                    block,
                    ..
                } = denied.descriptor;
                assert_eq!((target, request, block), (Instance(6), 11, 0x1234));
            }
        }
        assert_eq!(Denied::read([0, 0]), None);
    }
}
