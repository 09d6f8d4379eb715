//! A member of a chain that breaks its rules, for tests. It speaks with the server and with the chain's memory itself, with nothing in
//! between that would keep it from anything. An event is a JSON string that says what it does.

mod attacks;
mod calls;
mod joining;
mod link;

use std::error::Error;
use std::os::fd::OwnedFd;
use std::time::Duration;

use hearth_chain::board::Shape as BoardShape;
use hearth_chain::join::Join;
use hearth_chain::shape::Shape;
use hearth_chain::{Arrival, Board, Descriptor, Instance, Kind, Note, PeerBoard, Pool, PoolView};
use hearth_worker::channel::Channel;
use hearth_worker::control::Control;
use hearth_worker::forkserver::ForkServer;
use hearth_worker::message::Way;
use hearth_worker::parts::Parts;
use rustix::net::RecvFlags;

use self::joining::{join, receive};
use self::link::Link;

type Anything = Box<dyn Error>;

/// What `rewrite` leaves in a block that is valid.
const REWRITTEN: &str = "as it was";

fn main() -> Result<(), Anything> {
    let control = Control::adopt(3)?;
    let _ = control.receive_message()?;
    let booted = r#"{"type":"booted","runtime":"hostile","import_ms":0,"threads":{"count":1,"names":[]},"drawn":null}"#;
    let mut server = ForkServer::start(control, Some(booted))?;
    while let Some(request) = server.wait()? {
        match request.way {
            Way::Become => {
                drop(server);
                request.parts.take_streams()?;
                return serve(request.parts);
            }
            Way::Fork => {
                server.refuse(request.sequence, "deploy it with \"start\": \"boot\"", None)?
            }
        }
    }
    Ok(())
}

/// What it has of its chain.
struct Member {
    me: Instance,
    shape: BoardShape,
    board: Board,
    way: Link,
    pool: PoolView,
    /// What only the server may write.
    sealed: Vec<OwnedFd>,
    /// The other member, and its instance.
    peer: Option<(hearth_chain::Member, Instance)>,
    /// A block for calls.
    grant: Option<Descriptor>,
    /// A call that it got, for what it makes up.
    template: Option<Descriptor>,
}

fn serve(parts: Parts) -> Result<(), Anything> {
    let ready = parts.ready.try_clone()?;
    let mut channel = Channel::open(parts)?;
    if !channel.is_wanted()? && !channel.wait_until_wanted()? {
        return Ok(());
    }
    channel.ready()?;
    let Some((message, descriptors)) = receive(&ready, RecvFlags::empty())? else {
        return Ok(());
    };
    let mut member = join(message, descriptors)?;
    loop {
        while let Some((message, descriptors)) = receive(&ready, RecvFlags::DONTWAIT)? {
            member.meet(message, descriptors)?;
        }
        match member.way.try_recv()? {
            Some(arrival) if arrival.descriptor.kind == Kind::Pass => {
                let order = member.order(&arrival, "pass")?;
                // Blanks make it longer than a block.
                member.act(order.trim_end(), arrival.descriptor)?;
            }
            Some(arrival) if arrival.descriptor.kind == Kind::Call => {
                member.template = Some(arrival.descriptor);
                let order = member.order(&arrival, "reply")?;
                member.act_on_call(order.trim_end(), &arrival)?;
            }
            Some(arrival) if arrival.descriptor.request == 0 => {
                member.grant = Some(arrival.descriptor);
            }
            // What it has asked for.
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

impl Member {
    /// What it is told to do.
    fn order(&self, arrival: &Arrival, otherwise: &str) -> Result<String, Anything> {
        let payload = self.pool.check(&arrival.descriptor, arrival.from)?;
        let mut text = Vec::new();
        payload.read(&mut text);
        // `rewrite` may still have written to the block when it was this request's already.
        Ok(serde_json::from_slice(&text).unwrap_or_else(|_| otherwise.to_owned()))
    }

    /// Opens the edges to and from another instance.
    fn meet(&mut self, message: Join, descriptors: Vec<OwnedFd>) -> Result<(), Anything> {
        let Join::Peer {
            instance,
            member,
            sends,
            receives,
        } = message
        else {
            return Ok(());
        };
        let [board] =
            <[OwnedFd; 1]>::try_from(descriptors).map_err(|_| "a peer without a board")?;
        let seen = PeerBoard::attach(board.try_clone()?, self.shape)?;
        self.sealed.push(board);
        let own = (self.me, &self.board);
        self.way.open(own, instance, &seen, (sends, receives))?;
        // Members are numbered by their names; the one that it is to lead astray comes before who calls it.
        if receives && self.peer.is_none_or(|(other, _)| member <= other) {
            self.peer = Some((member, instance));
        }
        Ok(())
    }

    /// Does what it was told with the request that came by `descriptor`.
    fn act(&mut self, order: &str, descriptor: Descriptor) -> Result<(), Anything> {
        let mut onward = Descriptor {
            target: Instance::GATEWAY,
            hop: descriptor.hop + 1,
            ..descriptor
        };
        // As if it were out of its hands already.
        let order = match order.strip_prefix("noted ") {
            Some(order) => {
                let note = Note {
                    holder: Instance::GATEWAY,
                    epoch: 0,
                    hop: onward.hop,
                };
                self.pool.note(onward.block, note);
                order
            }
            None => order,
        };
        // To the gateway, or to the other member.
        let order = match order.strip_prefix("peer ") {
            Some(order) => {
                onward.target = self.peer.ok_or("it has no peer")?.1;
                order
            }
            None => order,
        };
        match order {
            "pass" | REWRITTEN => {}
            // Another chain's pool: all is in order but for the pool.
            "foreign" => {
                let pool = Pool::create(Shape::new(64, 4096)?, false)?;
                let taken: Result<Vec<_>, _> =
                    (0..64).map(|_| pool.allocate(descriptor.owner())).collect();
                // None that it has for calls, either.
                let is_own = |index| {
                    let used = self.pool.in_use(index);
                    used.and_then(|(_, owner)| owner.caller()) == Some(self.me)
                };
                let other = taken?
                    .into_iter()
                    .find(|block| block.index != descriptor.block && !is_own(block.index));
                let other = other.ok_or("a pool of one block")?;
                (onward.block, onward.generation) = (other.index, other.generation);
            }
            "outside" => onward.block = self.pool.shape().blocks(),
            "far outside" => onward.block = hearth_chain::descriptor::MAX_BLOCKS - 1,
            "stale" => onward.generation = onward.generation.wrapping_sub(1),
            // More than its block, or its run, has by the ledger.
            "long" => onward.len = self.pool.room(onward.block) + 1,
            "longest" => onward.len = self.pool.shape().payload_bytes(),
            "beyond" => onward.len = self.pool.shape().payload_bytes() + 1,
            // A block within its run, which is in use, but the beginning of nothing.
            "inner" => onward.block += 1,
            // Room that it has, that no request may have, and for a block that it has given back for another one already.
            "ask for less" => (onward.kind, onward.len) = (Kind::Return, 1),
            "ask for too much" => {
                onward.kind = Kind::Return;
                onward.len = self.pool.shape().payload_bytes() + 1;
            }
            "ask twice" => {
                onward.kind = Kind::Return;
                onward.len = self.pool.room(onward.block) + 1;
                self.way.send(&onward)?;
            }
            // It gets room, writes a part of the payload, and dies; or does so before it has the room.
            "ask and die" | "ask and die at once" => {
                let len = self.pool.shape().payload_bytes();
                let asked = Descriptor {
                    kind: Kind::Return,
                    len,
                    ..onward
                };
                if order == "ask and die at once" {
                    self.way.send(&asked)?;
                } else {
                    let run = self.ask(asked)?;
                    let mut payload = self.pool.check(&run, Instance::GATEWAY)?;
                    payload.write(&vec![b'x'; payload.capacity() / 2])?;
                }
                std::process::exit(3);
            }
            // A list of blocks that leads back to itself.
            "cycle" => {
                onward.more = true;
                for _ in 0..8 {
                    self.way.send(&onward)?;
                }
            }
            // The same block again, when it has gone already.
            "twice" => self.way.send(&onward)?,
            "another hop" => onward.hop = 0,
            "another route" => onward.route ^= 1,
            "another table" => onward.table = onward.table.other(),
            "grant" => onward.kind = Kind::Grant,
            "call" => onward.kind = Kind::Call,
            // A block that it may call with, as if it were the request's.
            "granted" => {
                let grant = self.grant.ok_or("it has no grant")?;
                (onward.block, onward.generation) = (grant.block, grant.generation);
            }
            // To instances that it has no edge to, and in their names, on rings that nobody reads.
            "undeclared" => self.send_to_all(descriptor)?,
            // All that it could write to what is the server's.
            "memory" => {
                let written = self.write_sealed()?;
                let mut payload = self.pool.check(&descriptor, Instance::GATEWAY)?;
                onward.len = payload.write(&serde_json::to_vec(&written)?)?;
            }
            "flood" => self.flood(onward),
            "rewrite" => return self.rewrite(onward),
            "die" => std::process::exit(3),
            "blame" => {
                let note = Note {
                    holder: Instance(self.me.0 + 1),
                    epoch: 0,
                    hop: descriptor.hop,
                };
                self.pool.note(descriptor.block, note);
                return Ok(());
            }
            "silent" => return Ok(()),
            other => return Err(format!("the order {other:?}").into()),
        }
        Ok(self.way.send(&onward)?)
    }
}
