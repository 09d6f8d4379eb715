//! The gateway's end of the transport: the boards' rings, or the connections that the kernel sees to.

use std::os::fd::{AsFd, OwnedFd};

use hearth_chain::join::Carrier;
use hearth_chain::sk_msg::{Heard, News};
use hearth_chain::{
    Block, Board, Descriptor, Inbox, Instance, Kind, Lines, Member, Outbox, PeerBoard, RecvError,
    SendError,
};
use hearth_ebpf::sproxy::Pair;
use parking_lot::{Mutex, MutexGuard};

use super::SeatError;
use super::bells::Bells;
use crate::chains::ActivateError;
use crate::engine::Engine;
use crate::ingress::{Place, SproxyError};
use crate::sandbox::Host;
use hearth_chain::routes::Plan;

/// See the module.
pub(super) enum Carry {
    /// `ring` and `poll`.
    Boards {
        inbox: Mutex<Inbox>,
        outbox: Mutex<Outbox>,
    },
    /// `sk_msg`.
    Sockets(Sockets),
}

/// The connections of a chain.
pub(super) struct Sockets {
    lines: Mutex<Lines>,
    /// What the kernel knows of the chain.
    pub(super) place: Place,
    host: Host,
}

impl Sockets {
    /// Who has a block in hand; none if the kernel cannot be asked.
    pub(super) fn holder(&self, block: Block) -> Option<Instance> {
        let holder = self.place.holder(block.index, block.generation);
        holder.ok().map(Instance)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.host.end_chain(self.place.number);
    }
}

/// Both ends of an instance's connection, its own first.
pub(in crate::chains) type Connection = [OwnedFd; 2];

/// Sends to several, without others in between.
pub(super) enum Sending<'a> {
    Boards(MutexGuard<'a, Outbox>),
    Sockets(MutexGuard<'a, Lines>),
}

impl Sending<'_> {
    pub(super) fn backlog(&mut self, to: Instance) -> Option<u32> {
        match self {
            Self::Boards(outbox) => outbox.backlog(to),
            Self::Sockets(lines) => lines.backlog(to),
        }
    }

    pub(super) fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError> {
        match self {
            Self::Boards(outbox) => outbox.send(descriptor),
            Self::Sockets(lines) => lines.send(descriptor),
        }
    }
}

impl Carry {
    /// For a chain without instances.
    ///
    /// # Errors
    /// The host cannot carry descriptors in this way, or has no room for another chain that does.
    pub(super) fn create(
        carrier: Carrier,
        engine: &Engine,
        board: &Board,
        plan: &Plan,
        blocks: u32,
    ) -> Result<Self, ActivateError> {
        if carrier != Carrier::SkMsg {
            return Ok(Self::Boards {
                inbox: Mutex::new(Inbox::new(Instance::GATEWAY, board)),
                outbox: Mutex::default(),
            });
        }
        let missing = |reason: &str| ActivateError::Transport {
            transport: "sk_msg",
            reason: reason.to_owned(),
        };
        let sproxy = engine.ingress().sproxy().map_err(missing)?;
        let place = sproxy.place(blocks, edges(plan));
        let place = place.map_err(|error| match error {
            SproxyError::Blocks { .. } => missing(&error.to_string()),
            SproxyError::Map(error) => ActivateError::HostExhausted(error.to_string()),
        })?;
        Ok(Self::Sockets(Sockets {
            lines: Mutex::default(),
            place,
            host: engine.host(),
        }))
    }

    /// The connections, if that is the way.
    pub(super) fn sockets(&self) -> Option<&Sockets> {
        match self {
            Self::Boards { .. } => None,
            Self::Sockets(sockets) => Some(sockets),
        }
    }

    /// A connection for a new instance, where instances have some.
    pub(super) async fn connect(&self) -> Result<Option<Connection>, SeatError> {
        let Self::Sockets(sockets) = self else {
            return Ok(None);
        };
        let made = sockets.host.connect_chain(sockets.place.number).await?;
        Ok(Some(made))
    }

    /// Opens the edges to and from a new instance; what it is to have of the way to the gateway: a bell, or its end of the connection.
    /// The bell is also this end's to keep.
    pub(super) fn open(
        &self,
        board: &Board,
        (instance, member): (Instance, Member),
        seen: &PeerBoard,
        bells: &Bells,
        connection: Option<Connection>,
    ) -> Result<(OwnedFd, Option<OwnedFd>), SeatError> {
        let (number, gateway) = (instance.0, Instance::GATEWAY.0);
        match (self, connection) {
            (Self::Sockets(sockets), Some([near, far])) => {
                bells.watch(number, &far)?;
                let pair = Pair {
                    near: near.as_fd(),
                    far: far.as_fd(),
                };
                sockets.place.seat(number, member.0, pair)?;
                let mut lines = sockets.lines.lock();
                lines.open(board, instance, seen, far)?;
                Ok((near, None))
            }
            (Self::Boards { inbox, outbox }, _) => {
                let bell = bells.add(number)?;
                let copy = bell.try_clone()?;
                inbox.lock().open(board, number, instance, seen, gateway)?;
                let mut outbox = outbox.lock();
                outbox.open(board, number, instance, seen, gateway, None)?;
                Ok((copy, Some(bell)))
            }
            (Self::Sockets(_), None) => Err(SeatError::NoConnection),
        }
    }

    /// Lets nothing reach an instance that has ended; what it sent before can be received.
    pub(super) fn cut(&self, instance: Instance) {
        if let Self::Sockets(sockets) = self {
            sockets.place.unseat(instance.0);
        }
    }

    /// Hears nothing more of an instance that is to end.
    pub(super) fn ignore(&self, instance: Instance) {
        match self {
            Self::Boards { inbox, .. } => {
                inbox.lock().close(instance.0);
            }
            Self::Sockets(sockets) => {
                sockets.lines.lock().close(instance);
            }
        }
    }

    /// Closes the edges to and from an instance that has ended.
    pub(super) fn close(&self, instance: Instance) {
        match self {
            Self::Boards { inbox, outbox } => {
                inbox.lock().close(instance.0);
                outbox.lock().close(instance.0);
            }
            Self::Sockets(sockets) => {
                sockets.lines.lock().close(instance);
            }
        }
    }

    /// Tells the other instances that one has ended. Those that read its board know it already.
    pub(super) fn tell_end(&self, ended: Instance) {
        if let Self::Sockets(sockets) = self {
            let lines = sockets.lines.lock();
            for (instance, _) in lines.sockets() {
                lines.tell(instance, News::Gone(ended));
            }
        }
    }

    /// Tells an instance, whose board it is, to look at its control socket.
    pub(super) fn notify(&self, instance: Instance, board: &Board) {
        match self {
            Self::Boards { .. } => board.notify(),
            Self::Sockets(sockets) => sockets.lines.lock().tell(instance, News::Look),
        }
    }

    pub(super) fn sending(&self) -> Sending<'_> {
        match self {
            Self::Boards { outbox, .. } => Sending::Boards(outbox.lock()),
            Self::Sockets(sockets) => Sending::Sockets(sockets.lines.lock()),
        }
    }

    /// Instances to which nothing can be sent any more.
    pub(super) fn take_broken(&self) -> Vec<Instance> {
        match self {
            Self::Boards { .. } => Vec::new(),
            Self::Sockets(sockets) => sockets.lines.lock().take_broken(),
        }
    }

    /// The rings, where that is the way.
    pub(super) fn inbox(&self) -> Option<&Mutex<Inbox>> {
        match self {
            Self::Boards { inbox, .. } => Some(inbox),
            Self::Sockets(_) => None,
        }
    }

    /// What has come.
    pub(super) fn try_recv(&self) -> Result<Option<Heard>, RecvError> {
        match self {
            Self::Boards { inbox, .. } => Ok(inbox.lock().try_recv()?.map(Heard::Arrival)),
            Self::Sockets(sockets) => sockets.lines.lock().try_recv(),
        }
    }

    /// Sleeps until there may be something. `vain` is how often there was nothing.
    pub(super) async fn sleep(&self, bells: &Bells, vain: u32) -> std::io::Result<()> {
        match self {
            Self::Boards { inbox, .. } => {
                let may_sleep = inbox.lock().announce();
                let slept = match may_sleep {
                    Ok(true) => bells.rung(vain).await.map(drop),
                    Ok(false) => Ok(()),
                    Err(error) => Err(std::io::Error::other(error)),
                };
                inbox.lock().retract();
                slept
            }
            Self::Sockets(sockets) => {
                let rung = bells.rung(vain).await?;
                let mut lines = sockets.lines.lock();
                for number in rung {
                    lines.is_ready(Instance(number));
                }
                Ok(())
            }
        }
    }
}

/// What members may send to each other, as the kernel's map has it: a bit for each kind.
fn edges(plan: &Plan) -> Vec<((u8, u8), u32)> {
    let members = || (0..=plan.members()).map(Member);
    let pairs = members().flat_map(|from| members().map(move |to| (from, to)));
    let kinds = |(from, to): (Member, Member)| {
        let allowed = Kind::ALL
            .iter()
            .filter(|kind| plan.allows(from, to, **kind));
        let kinds = allowed.fold(0, |kinds, kind| kinds | 1 << *kind as u32);
        (kinds != 0).then_some(((from.0, to.0), kinds))
    };
    pairs.filter_map(kinds).collect()
}
