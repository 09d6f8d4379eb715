//! The gateway's ends of all connections of a chain.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::news::{Denied, News, SOURCE_AT};
use super::output::{Output, POSITION};
use super::stream::{Received, Sent, Stream};
use crate::board::{Board, PeerBoard};
use crate::descriptor::Descriptor;
use crate::error::{ChainError, RecvError, SendError, Violation};
use crate::id::Instance;
use crate::inbox::Arrival;
use crate::memory::Own;

/// What comes from an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A descriptor for the gateway.
    Arrival(Arrival),
    /// The kernel did not deliver what it sent.
    Denied {
        /// The sender.
        from: Instance,
        /// What it sent, and why it was not delivered.
        denied: Denied,
    },
}

/// The connection to one instance.
#[derive(Debug)]
struct Line {
    stream: Stream,
    output: Output,
    /// On the gateway's board: descriptors taken.
    tail: Own,
    taken: u32,
    records: VecDeque<[u64; 2]>,
    /// There may be more to read.
    is_ready: bool,
}

/// See the module. It does not wait: who has it watches the sockets ([`Self::sockets`]) and says which are ready.
#[derive(Debug, Default)]
pub struct Lines {
    lines: Vec<Line>,
    next: usize,
    /// Those through which nothing can be sent any more, not told yet.
    broken: Vec<Instance>,
}

impl Lines {
    /// Of a chain without instances.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            lines: Vec::new(),
            next: 0,
            broken: Vec::new(),
        }
    }

    /// Adds an instance: its board, and the gateway's end of its connection. Both boards count at the numbers that the two have.
    ///
    /// # Errors
    /// There is one of this number, or the boards have no room for it.
    pub fn open(
        &mut self,
        board: &Board,
        instance: Instance,
        peer: &PeerBoard,
        socket: OwnedFd,
    ) -> Result<(), ChainError> {
        if self.at(instance).is_some() {
            return Err(ChainError::Taken {
                what: "output",
                number: instance.0,
            });
        }
        self.lines.push(Line {
            stream: Stream::new(socket),
            output: Output::open(board, instance.0, instance, peer, Instance::GATEWAY.0)?,
            tail: board.tail(instance.0)?,
            taken: 0,
            records: VecDeque::new(),
            is_ready: true,
        });
        Ok(())
    }

    /// Takes an instance away and closes its connection; whether there was one.
    pub fn close(&mut self, instance: Instance) -> bool {
        let at = self.at(instance);
        at.map(|at| self.remove(at)).is_some()
    }

    fn remove(&mut self, at: usize) {
        let line = self.lines.remove(at);
        line.output.reset();
        line.tail.store(0, Ordering::Release);
    }

    fn at(&self, instance: Instance) -> Option<usize> {
        self.lines
            .iter()
            .position(|line| line.output.to == instance)
    }

    /// The sockets, by instance.
    pub fn sockets(&self) -> impl Iterator<Item = (Instance, BorrowedFd<'_>)> {
        self.lines
            .iter()
            .map(|line| (line.output.to, line.stream.as_fd()))
    }

    /// Notes that there is something to read from an instance.
    pub fn is_ready(&mut self, instance: Instance) {
        if let Some(at) = self.at(instance) {
            self.lines[at].is_ready = true;
        }
    }

    /// Sends a descriptor to its target. Does not wait.
    ///
    /// # Errors
    /// As [`crate::Outbox::send`].
    pub fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError> {
        let words = descriptor.to_words().map_err(SendError::Unencodable)?;
        let to = descriptor.target;
        let line = self.at(to).map(|at| &mut self.lines[at]);
        let line = line.ok_or(SendError::NoEdge(to))?;
        let sent = line.output.send(&line.stream, words);
        if matches!(sent, Err(SendError::Gone(_))) && !self.broken.contains(&to) {
            self.broken.push(to);
        }
        sent
    }

    /// Instances to which nothing could be sent since the last call. They have ended, or their connections have.
    pub fn take_broken(&mut self) -> Vec<Instance> {
        std::mem::take(&mut self.broken)
    }

    /// Tells an instance something. One that does not listen any more is not told.
    pub fn tell(&self, instance: Instance, news: News) {
        if let Some(at) = self.at(instance) {
            // It fails where the instance has ended, or its connection has, which [`Self::try_recv`] says.
            let _: Sent = self.lines[at].stream.send(news.to_words());
        }
    }

    /// Descriptors on the way to an instance that it has not taken; none if there is no such line, or its count cannot be true.
    pub fn backlog(&mut self, to: Instance) -> Option<u32> {
        let at = self.at(to)?;
        self.lines[at].output.backlog()
    }

    /// The next descriptor of an instance that is ready, of each in turn.
    ///
    /// # Errors
    /// An instance has closed its end, or sends what the kernel does not let pass. Each is reported once, and its line closed.
    pub fn try_recv(&mut self) -> Result<Option<Heard>, RecvError> {
        for _ in 0..self.lines.len() {
            let at = match self.next < self.lines.len() {
                true => self.next,
                false => 0,
            };
            let line = &mut self.lines[at];
            let from = line.output.to;
            if line.records.is_empty() && line.is_ready {
                match line.stream.receive(&mut line.records, None) {
                    Ok(Received::Some) => {}
                    Ok(Received::Nothing) => line.is_ready = false,
                    // Nor does a connection with an error carry anything more, and the others go on.
                    Ok(Received::End) | Err(_) => {
                        self.remove(at);
                        return Err(RecvError::Gone(from));
                    }
                }
            }
            self.next = at + 1;
            let Some(words) = line.records.pop_front() else {
                continue;
            };
            return match line.understand(words) {
                Err(violation) => {
                    self.remove(at);
                    Err(RecvError::Broken { from, violation })
                }
                Ok(heard) => Ok(Some(heard)),
            };
        }
        Ok(None)
    }
}

impl Line {
    fn understand(&mut self, words: [u64; 2]) -> Result<Heard, Violation> {
        let from = self.output.to;
        if let Some(denied) = Denied::read(words) {
            // It has been sent, and the sender counts what is under way.
            if denied.descriptor.target == Instance::GATEWAY {
                self.count();
            }
            return Ok(Heard::Denied { from, denied });
        }
        let source = Instance((words[0] >> SOURCE_AT) as u16);
        // What the program delivers here has its sender in it: this is the rest of something else.
        if source != from {
            return Err(Violation::Source(source));
        }
        let descriptor = Descriptor::from_words(words).map_err(|_| Violation::Source(source))?;
        self.count();
        let target = Instance::GATEWAY;
        let descriptor = Descriptor {
            target,
            ..descriptor
        };
        Ok(Heard::Arrival(Arrival { from, descriptor }))
    }

    fn count(&mut self) {
        self.taken = self.taken.wrapping_add(1) & POSITION;
        self.tail.store(self.taken, Ordering::Release);
    }
}
