//! Datagrams by AF_XDP and by an ordinary socket, in turns: to a Python function, and to a thread that sends them back at once,
//! which shows what the ways cost by themselves. Over a veth, where AF_XDP copies.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use hearth_ebpf::datagram::Datagram;
use hearth_ebpf::limits::Limits;
use hearth_ebpf::xsk::{self, Layout, Socket};
use hearth_ebpf::{Capacity, Floor, Ingress, Maps, Mode, Wanted, interfaces};
use hearth_testkit::namespaces::Namespace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::echo::{Echoed, echoes, own_cpu};
use super::function;
use super::world::{HOST, world};
use crate::results::Document;
use crate::scale::Scale;

/// Unit of the processor's time that a datagram and its answer take, of client and server together.
pub const CPU: &str = "µs of CPU/datagram";
/// The category of the thread that sends datagrams back.
pub const BARE: &str = "a datagram and its echo by a thread, 1 under way";

/// The ways of a datagram to the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a socket, with no program at the interface.
    Socket,
    /// By a socket, with a program in the driver that does nothing.
    BehindXdp,
    /// By AF_XDP from the driver.
    Native,
    /// By AF_XDP from the stack.
    Generic,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Socket, Self::BehindXdp, Self::Native, Self::Generic];

    /// What the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::BehindXdp => "socket, XDP in the driver that does nothing",
            Self::Native => "AF_XDP, ingress in the driver",
            Self::Generic => "AF_XDP, ingress in the stack",
        }
    }
}

pub(super) const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 0);
/// The port of the thread, and of the function.
pub(super) const PORT: u16 = 9_000;
const ROUNDS: usize = 12;
pub(super) const TURN: Duration = Duration::from_millis(300);
pub(super) const QUICK_TURN: Duration = Duration::from_millis(20);
/// How often the threads look whether they are to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Measures both.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    bare(scale, document)?;
    function::run(scale, document)
}

pub(super) fn address() -> SocketAddr {
    SocketAddr::new(HOST.ip(), PORT)
}

/// The host, with the ingress loaded and attached nowhere.
struct Host {
    namespace: Namespace,
    ingress: Ingress,
    floor: Floor,
    /// What the threads that send back have spent, in ns.
    spent: AtomicU64,
    stop: AtomicBool,
}

/// What is attached for a turn.
enum Attached {
    Nothing,
    Floor(OwnedFd),
    Ingress,
}

fn bare(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let (namespace, client) = world().context("network namespaces for datagrams")?;
    let ingress = Ingress::load(Capacity::default())?;
    let mut maps = Maps::new(ingress.descriptors()?)?;
    let opened = namespace.within(|| {
        let all = interfaces::list()?;
        let index = all.iter().find(|one| one.name == "h0").map(|one| one.index);
        let index = index.ok_or_else(|| io::Error::other("the interface is gone"))?;
        Ok((index, xsk::open(index, 0, Layout::default())))
    })?;
    let (index, opened) = opened;
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            document.skip(BARE, error.to_string());
            return Ok(());
        }
    };
    maps.functions.add(1, Limits::default())?;
    maps.ports.give_udp(PORT, 1, true)?;
    maps.set((32, 64), opened.layout.largest_packet(), false)?;
    maps.set_socket(0, index, 0, &opened.socket)?;
    let mut xsk = Socket::new(opened)?;
    let socket = namespace.within(|| UdpSocket::bind(address()))?;
    socket.set_read_timeout(Some(LOOK))?;
    let mut host = Host {
        namespace,
        ingress,
        floor: Floor::load()?,
        spent: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let mut seen = Way::ALL.map(|_| (Echoed::default(), Duration::ZERO));
    for _ in 0..scale.pick(ROUNDS, 1) {
        for (way, (seen, cpu)) in Way::ALL.into_iter().zip(&mut seen) {
            let attached = host.attach(way)?;
            let turn = scale.pick(TURN, QUICK_TURN);
            let measured = host.turn(&client, &socket, &mut xsk, turn);
            host.detach(attached);
            let (echoed, spent) = measured.context(way.name())?;
            seen.extend(&echoed);
            *cpu += spent;
        }
    }
    for (way, (seen, cpu)) in Way::ALL.into_iter().zip(seen) {
        conclude(BARE, way.name(), seen, cpu, document);
    }
    Ok(())
}

/// Adds a row: latencies, processor time, and what was lost.
pub(super) fn conclude(
    category: &str,
    row: &str,
    seen: Echoed,
    server: Duration,
    document: &mut Document,
) {
    let cpu = (seen.cpu + server).as_secs_f64() * 1e6 / seen.sent().max(1) as f64;
    document.figure(category, row, cpu, CPU);
    document.figure(category, &format!("{row}: lost"), seen.lost as f64, "");
    if seen.samples.len() > 0 {
        document.add(category, row, seen.samples);
    }
}

impl Host {
    fn attach(&mut self, way: Way) -> anyhow::Result<Attached> {
        let Self {
            namespace,
            ingress,
            floor,
            ..
        } = self;
        let mode = match way {
            Way::Socket => return Ok(Attached::Nothing),
            Way::BehindXdp => {
                let attach = || floor.attach("h0", Mode::Native).map_err(io::Error::other);
                return Ok(Attached::Floor(namespace.within(attach)?));
            }
            Way::Native => Mode::Native,
            Way::Generic => Mode::Generic,
        };
        namespace.within(|| {
            let attached = ingress.attach("h0", Wanted::Only(mode));
            attached.map(drop).map_err(io::Error::other)
        })?;
        Ok(Attached::Ingress)
    }

    fn detach(&mut self, attached: Attached) {
        match attached {
            Attached::Nothing => {}
            Attached::Floor(link) => drop(link),
            Attached::Ingress => {
                self.ingress.detach("h0");
            }
        }
    }

    /// One turn of the client, with both threads to answer it: what the server's side spent is the second of the results.
    fn turn(
        &self,
        client: &Namespace,
        socket: &UdpSocket,
        xsk: &mut Socket,
        turn: Duration,
    ) -> anyhow::Result<(Echoed, Duration)> {
        self.spent.store(0, Ordering::Relaxed);
        self.stop.store(false, Ordering::Relaxed);
        let echoed = thread::scope(|scope| {
            scope.spawn(|| self.answering(|| self.answer(socket)));
            scope.spawn(|| self.answering(|| self.answer_by_xdp(xsk)));
            let echoed = client.within(|| echoes(CLIENT, address(), 1, turn));
            self.stop.store(true, Ordering::Relaxed);
            echoed
        })?;
        let spent = Duration::from_nanos(self.spent.load(Ordering::Relaxed));
        Ok((echoed, spent))
    }

    fn answering(&self, answer: impl FnOnce()) {
        let before = own_cpu();
        answer();
        let spent = own_cpu().saturating_sub(before);
        self.spent
            .fetch_add(spent.as_nanos() as u64, Ordering::Relaxed);
    }

    fn answer(&self, socket: &UdpSocket) {
        let mut datagram = [0; 2_048];
        while !self.stop.load(Ordering::Relaxed) {
            if let Ok((length, from)) = socket.recv_from(&mut datagram) {
                // The client counts what does not come.
                let _ = socket.send_to(&datagram[..length], from);
            }
        }
    }

    fn answer_by_xdp(&self, xsk: &mut Socket) {
        const AT_ONCE: usize = 64;
        let patience = Timespec::try_from(LOOK).expect("a short time");
        let mut frames = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let mut waited = [PollFd::new(xsk, PollFlags::IN)];
            if !matches!(poll(&mut waited, Some(&patience)), Ok(1..)) {
                continue;
            }
            xsk.receive(AT_ONCE, |received| frames.push(received.frame.to_vec()));
            for frame in frames.drain(..) {
                if let Some(datagram) = Datagram::parse(&frame) {
                    xsk.send(|reply| datagram.reply(datagram.payload(), reply));
                }
            }
            // The client counts what does not come.
            let _ = xsk.kick();
        }
    }
}
