//! What it does with calls: their payloads, and the room for their results.

use std::time::{Duration, Instant};

use hearth_chain::{Arrival, Descriptor, Instance, Kind, Note, Owner};

use super::{Anything, Member};

/// Longest wait for what the gateway answers at once.
const ANSWER: Duration = Duration::from_secs(10);

impl Member {
    /// Does what it was told with the call that came by `arrival`.
    pub(super) fn act_on_call(&mut self, order: &str, arrival: &Arrival) -> Result<(), Anything> {
        let descriptor = arrival.descriptor;
        let all = self.pool.shape().payload_bytes();
        let mut reply = Descriptor {
            target: arrival.from,
            kind: Kind::Reply,
            ..descriptor
        };
        let ask = |len| Descriptor {
            target: Instance::GATEWAY,
            kind: Kind::Return,
            len,
            ..descriptor
        };
        match order {
            "reply" => {}
            // More than the block or run of the call has, and more than any has.
            "long" => reply.len = self.pool.room(reply.block) + 1,
            "longest" => reply.len = all,
            "stale" => reply.generation = reply.generation.wrapping_sub(1),
            "outside" => reply.block = self.pool.shape().blocks(),
            // A block within the payload's run.
            "inner" => reply.block += 1,
            // A list of blocks that leads back to itself.
            "cycle" => {
                reply.more = true;
                for _ in 0..8 {
                    self.way.send(&reply)?;
                }
            }
            // The same block again, when it is the caller's.
            "twice" => self.way.send(&reply)?,
            // A block of its own, as if it were the result's.
            "own" => {
                let until = Instant::now() + ANSWER;
                let own = loop {
                    match self.blocks_of(self.me).first() {
                        Some(own) => break *own,
                        // A new instance gets some soon.
                        None if Instant::now() < until => {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        None => return Err("it has no grant".into()),
                    }
                };
                (reply.block, reply.generation) = (own.block, own.generation);
            }
            "pass" => (reply.kind, reply.hop) = (Kind::Pass, reply.hop + 1),
            "silent" => return Ok(()),
            "die" => std::process::exit(3),
            // It writes to the block after it has passed it on.
            "keep" => {
                let mut payload = self.pool.check(&descriptor, Instance::GATEWAY)?;
                self.way.send(&reply)?;
                for _ in 0..20_000 {
                    payload.write(b"\"half")?;
                    payload.write(b"\"whole\"     ")?;
                }
                return Ok(());
            }
            "ask for less" => return Ok(self.way.send(&ask(1))?),
            "ask for too much" => return Ok(self.way.send(&ask(all + 1))?),
            // A part of the result is written, and never the rest.
            "ask and die" => {
                let run = self.ask(ask(all))?;
                let mut payload = self.pool.check(&run, Instance::GATEWAY)?;
                payload.write(&vec![b'x'; payload.capacity() / 2])?;
                std::process::exit(3);
            }
            "ask, blame and die" => {
                let run = self.ask(ask(all))?;
                let note = Note {
                    holder: arrival.from,
                    epoch: 0,
                    hop: 0,
                };
                self.pool.note(run.block, note);
                std::process::exit(3);
            }
            "ask and stop" => {
                self.ask(ask(all))?;
                return Ok(());
            }
            // It gives the call's block back for a run, and replies in it all the same.
            "ask and reply in the first" => drop(self.ask(ask(all))?),
            "ask and reply beyond" => {
                let run = self.ask(ask(all))?;
                (reply.block, reply.generation) = (run.block, run.generation);
                reply.len = self.pool.room(run.block) + 1;
            }
            // For the other blocks of who calls, which it does not have.
            "ask for others" => {
                for block in self.blocks_of(arrival.from) {
                    self.way.send(&Descriptor {
                        block: block.block,
                        generation: block.generation,
                        ..ask(all)
                    })?;
                }
            }
            "ask without end" => {
                let own = self.blocks_of(arrival.from);
                for block in own.iter().cycle() {
                    // A ring that is full is read at some time.
                    let _ = self.way.send(&Descriptor {
                        block: block.block,
                        generation: block.generation,
                        ..ask(all)
                    });
                    while self.way.try_recv()?.is_some() {}
                }
            }
            other => return Err(format!("the order {other:?} of a call").into()),
        }
        Ok(self.way.send(&reply)?)
    }

    /// Asks the gateway for room for a call's result; its run.
    pub(super) fn ask(&mut self, asked: Descriptor) -> Result<Descriptor, Anything> {
        self.way.send(&asked)?;
        let until = Instant::now() + ANSWER;
        while Instant::now() < until {
            match self.way.try_recv()? {
                Some(arrival) if arrival.descriptor.request == 0 => {
                    self.grant = Some(arrival.descriptor);
                }
                Some(arrival) if arrival.descriptor.kind == Kind::Grant => {
                    return Ok(arrival.descriptor);
                }
                Some(arrival) if arrival.descriptor.kind == Kind::Failure => {
                    return Err("there is no room".into());
                }
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        Err("the gateway does not answer".into())
    }

    /// The blocks that an instance has for its calls, by the ledger.
    fn blocks_of(&self, caller: Instance) -> Vec<Descriptor> {
        let of_caller = |index| {
            let (block, owner) = self.pool.in_use(index)?;
            let is_theirs = matches!(owner, Owner::Instance { instance, .. } if instance == caller);
            is_theirs.then_some(Descriptor {
                block: block.index,
                generation: block.generation,
                ..self.template?
            })
        };
        (0..self.pool.shape().blocks())
            .filter_map(of_caller)
            .collect()
    }
}
