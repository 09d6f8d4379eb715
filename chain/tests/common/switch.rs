//! Instances with connections that the kernel's program sees to, as host process and server set them up.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use hearth_chain::sk_msg::News;
use hearth_chain::{
    Arrival, Board, Descriptor, Instance, PeerBoard, RecvError, SendError, SkMsg, Transport,
};
use hearth_ebpf::sproxy::records::{Block, BlockKey, EdgeKey, SeatKey};
use hearth_ebpf::sproxy::{Exchange, Pair, Sproxy};
use rustix::net::{SendFlags, send};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::shape;

/// The only chain.
const CHAIN: u32 = 1;
/// All kinds of descriptors.
const ALL: u32 = 0x7f;

/// The program, its maps, and a network namespace for the connections.
#[derive(Clone)]
pub struct Switch(Arc<Inner>);

struct Inner {
    exchange: Mutex<Exchange>,
    _sproxy: Sproxy,
    namespace: OwnedFd,
    /// The gateway's ends.
    far: Mutex<Vec<(Instance, OwnedFd)>>,
}

/// An instance and what the server has of it.
pub struct Seated {
    pub id: Instance,
    pub way: SkMsg,
    pub own: Board,
    pub server: Board,
    /// Its end of the connection, for one that is hostile.
    pub near: OwnedFd,
}

impl Switch {
    /// None where it cannot be tested.
    pub fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            hearth_testkit::skipped::skip("needs root");
            return None;
        }
        let sproxy = match Sproxy::load() {
            Ok(sproxy) => sproxy,
            Err(error) => {
                hearth_testkit::skipped::skip(&format!("no eBPF on this host: {error}"));
                return None;
            }
        };
        let descriptors = sproxy.descriptors().expect("descriptors");
        Some(Self(Arc::new(Inner {
            exchange: Mutex::new(Exchange::new(descriptors).expect("the maps")),
            _sproxy: sproxy,
            namespace: namespace(),
            far: Mutex::default(),
        })))
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        self.0.exchange.lock().expect("no panic")
    }

    /// A connection in the namespace: the instance's end, and the gateway's.
    fn pair(&self) -> (TcpStream, TcpStream) {
        std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.0.namespace.as_fd(), network).expect("entered");
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
                let address = listener.local_addr().expect("its address");
                let near = TcpStream::connect(address).expect("connected");
                let (far, _) = listener.accept().expect("accepted");
                for end in [&near, &far] {
                    end.set_nodelay(true).expect("set");
                }
                (near, far)
            });
            made.join().expect("made")
        })
    }

    /// Gives an instance a seat; the member has the same number.
    pub fn seat(&self, id: u16) -> Seated {
        let (near, far) = self.pair();
        let key = SeatKey {
            chain: CHAIN,
            instance: id.into(),
        };
        let pair = Pair {
            near: near.as_fd(),
            far: far.as_fd(),
        };
        self.exchange()
            .seat(key, id as u8, pair)
            .expect("a free seat");
        let id = Instance(id);
        self.0.far.lock().expect("no panic").push((id, far.into()));
        let server = Board::create(shape()).expect("a board");
        let fd = server.for_owner().expect("a descriptor");
        let own = Board::attach(fd, shape()).expect("the board");
        let near = OwnedFd::from(near);
        let copy = near.try_clone().expect("a descriptor");
        Seated {
            id,
            way: SkMsg::new(id, &own, copy),
            own,
            server,
            near,
        }
    }

    /// Lets an instance send to another.
    pub fn allow(&self, from: u16, to: u16) {
        let chain = CHAIN;
        let pair = EdgeKey { chain, from, to };
        self.exchange().allow(pair, ALL).expect("room");
    }

    /// An edge from one output to one input.
    pub fn connect(&self, from: &mut Seated, output: u16, to: &mut Seated, input: u16) {
        to.way
            .open_input(&to.own, input, from.id)
            .expect("a free input");
        let seen = to.server.for_peer().expect("a descriptor");
        let seen = PeerBoard::attach(seen, shape()).expect("the board");
        from.way
            .open_output(&from.own, output, to.id, &seen, input)
            .expect("a free output");
    }

    /// What the server does when an instance has ended.
    pub fn unseat(&self, id: Instance) {
        let key = SeatKey {
            chain: CHAIN,
            instance: id.0.into(),
        };
        self.exchange().unseat(key).expect("a seat");
        let mut far = self.0.far.lock().expect("no panic");
        far.retain(|(other, _)| *other != id);
        let [first, second] = News::Gone(id).to_words();
        let bytes = (u128::from(first) | u128::from(second) << 64).to_le_bytes();
        for (_, socket) in far.iter() {
            // One that has ended before is not told.
            let _ = send(socket, &bytes, SendFlags::NOSIGNAL);
        }
    }

    /// Takes an instance's seat away, and nothing else.
    pub fn cut(&self, id: Instance) {
        let key = SeatKey {
            chain: CHAIN,
            instance: id.0.into(),
        };
        self.exchange().unseat(key).expect("a seat");
    }

    /// The gateway's end of an instance's connection.
    pub fn far(&self, id: Instance) -> OwnedFd {
        let far = self.0.far.lock().expect("no panic");
        let found = far.iter().find(|(other, _)| *other == id);
        let (_, socket) = found.expect("a seat");
        socket.try_clone().expect("a descriptor")
    }

    /// Puts a block into an instance's hand.
    pub fn give(&self, number: u32, holder: Instance) {
        let chain = CHAIN;
        let block = Block {
            holder: holder.0.into(),
            ..Block::default()
        };
        let given = self.exchange().put(BlockKey { chain, number }, block);
        given.expect("room");
    }
}

/// A transport that is given each block before it sends it: these tests are of descriptors, and send the same block again and
/// again.
pub struct Given {
    pub way: SkMsg,
    switch: Switch,
    id: Instance,
}

impl Given {
    pub fn new(way: SkMsg, switch: Switch, id: Instance) -> Self {
        Self { way, switch, id }
    }
}

impl Transport for Given {
    fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError> {
        self.switch.give(descriptor.block, self.id);
        self.way.send(descriptor)
    }

    fn try_recv(&mut self) -> Result<Option<Arrival>, RecvError> {
        self.way.try_recv()
    }

    fn recv(&mut self, deadline: Instant) -> Result<Arrival, RecvError> {
        self.way.recv(deadline)
    }
}

fn namespace() -> OwnedFd {
    let made = std::thread::spawn(|| {
        // SAFETY: only this thread gets another network namespace, and no memory or descriptors of its own.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("a network namespace");
        let up = std::process::Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status();
        assert!(up.expect("ip runs").success());
        OwnedFd::from(File::open("/proc/thread-self/ns/net").expect("its descriptor"))
    });
    made.join().expect("made")
}
