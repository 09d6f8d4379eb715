//! A flood of datagrams to one function's port, and an innocent client of another's: with a limit for each source in XDP, the
//! same in nftables, and none, in turns.
//!
//! Client and generator share one veth to the host. The generator's frames come as from a network card's driver, without a
//! socket buffer, so the interface has a program in its driver in all three ways: where it is not ours, one that does nothing. A
//! kernel thread receives (threaded NAPI), which competes for the processors as ksoftirqd does. The generator has the lowest
//! priority: it takes no time from the client.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use hearth_ebpf::limits::{Limits, Rate};
use hearth_ebpf::{Capacity, Flood, Floor, Ingress, Maps, Mode, Wanted, interfaces};
use hearth_testkit::namespaces::Namespace;

use super::frames;
use super::world::{HOST, serve, world};
use crate::client::request;
use crate::load::Observed;
use crate::results::Document;
use crate::scale::Scale;

/// The category in the report.
pub const CATEGORY: &str = "an innocent client in a flood of datagrams";
/// Units of a row's figures: what the client got, and what the generator sent.
pub const REQUESTS: &str = "requests/s";
/// See [`REQUESTS`].
pub const PACKETS: &str = "packets/s";
/// What the generator aims at, packets/s; the last is as many as it can.
pub const STEPS: [u64; 10] = [
    0,
    25_000,
    50_000,
    100_000,
    200_000,
    400_000,
    800_000,
    1_600_000,
    3_200_000,
    u64::MAX,
];
const QUICK_STEPS: [u64; 3] = [STEPS[0], STEPS[2], STEPS[9]];
/// What the client has to keep of its requests.
const KEPT: f64 = 0.8;

/// Where the flood is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By us.
    Xdp,
    /// In the netdev family's ingress hook, the first that nftables has.
    Nftables,
    /// Nowhere.
    Nowhere,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Xdp, Self::Nftables, Self::Nowhere];

    /// What the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xdp => "limit in XDP",
            Self::Nftables => "limit in nftables",
            Self::Nowhere => "no limit",
        }
    }
}

/// What the report calls a row.
pub fn row(way: Way, step: u64) -> String {
    let flood = match step {
        0 => "no flood".to_owned(),
        u64::MAX => "all it can".to_owned(),
        step => format!("{} k packets/s", step / 1_000),
    };
    format!("{}, {flood}", way.name())
}

/// What it calls the result.
pub fn keeps(way: Way) -> String {
    format!("{}: flood in which the client keeps 80 %", way.name())
}

const ROUNDS: usize = 5;
const TURN: Duration = Duration::from_millis(600);
const QUICK_TURN: Duration = Duration::from_millis(30);
/// How long the client waits for an answer before it gives up for this turn.
const PATIENCE: Duration = Duration::from_secs(2);
/// The flooded port.
const PORT: u16 = 7_001;
/// The network of the sources.
const SOURCES: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// What each of the 256 sources may send in a second.
const LIMIT: u64 = 10;
/// The most that the generator sends in one call: it looks at the clock in between.
const MOST: u64 = 8_192;

const TABLE: &str = "table netdev flood {
    set sources { type ipv4_addr; size 65536; flags dynamic, timeout; timeout 1m; }
    chain ingress {
        type filter hook ingress device h0 priority 0; policy accept;
        udp dport 7001 update @sources { ip saddr limit rate over 10/second burst 10 packets } drop
    }
}";

/// Measures the ways in turns.
pub(super) fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    if let Err(error) = Command::new("nft").arg("--version").output() {
        document.skip(CATEGORY, format!("nft: {error}"));
        return Ok(());
    }
    let (host, client) = world().context("network namespaces for the flood")?;
    let frame = prepare(&host)?;
    let flood = client.within(|| Flood::load("c0").map_err(io::Error::other))?;
    let setup = Setup {
        floor: Floor::load()?,
        host,
        client,
        flood,
        frame,
        turn: scale.pick(TURN, QUICK_TURN),
    };
    let steps = scale.pick(&STEPS[..], &QUICK_STEPS[..]);
    let count = Way::ALL.len() * steps.len();
    let mut seen: Vec<Seen> = (0..count).map(|_| Seen::default()).collect();
    let stop = AtomicBool::new(false);
    let socket = setup.host.within(|| UdpSocket::bind((HOST.ip(), PORT)))?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let measured = thread::scope(|scope| {
        // What a server at the port has to do at least.
        scope.spawn(|| {
            let mut buffer = [0; 2_048];
            while !stop.load(Ordering::Relaxed) {
                let _ = socket.recv(&mut buffer);
            }
        });
        let measured = (0..scale.pick(ROUNDS, 1)).try_for_each(|_| {
            for (way, seen) in Way::ALL.into_iter().zip(seen.chunks_mut(steps.len())) {
                setup.one_way(way, steps, seen)?;
            }
            anyhow::Ok(())
        });
        stop.store(true, Ordering::Relaxed);
        measured
    });
    measured?;
    for (way, seen) in Way::ALL.into_iter().zip(seen.chunks(steps.len())) {
        conclude(way, steps, seen, document);
    }
    Ok(())
}

struct Setup {
    host: Namespace,
    client: Namespace,
    floor: Floor,
    flood: Flood,
    frame: Vec<u8>,
    turn: Duration,
}

/// What was seen of one way at one step.
#[derive(Default)]
struct Seen {
    client: Observed,
    packets: u64,
    flooded: Duration,
}

impl Seen {
    fn flood(&self) -> f64 {
        self.packets as f64 / self.flooded.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Prepares the host, and says what to send to it.
fn prepare(host: &Namespace) -> anyhow::Result<Vec<u8>> {
    host.within(serve)?;
    // What comes from nowhere is dropped before it costs anything.
    host.ip(&format!("route add {SOURCES}/24 via 192.0.2.1"))?;
    let all = host.within(interfaces::list)?;
    let interface = all.iter().find(|one| one.name == "h0");
    let interface = interface.context("the interface is gone")?;
    let mut frame = frames::udp(SOURCES, PORT);
    frame[..6].copy_from_slice(&interface.address);
    frames::finish(&mut frame);
    Ok(frame)
}

impl Setup {
    /// All steps of one way.
    fn one_way(&self, way: Way, steps: &[u64], seen: &mut [Seen]) -> anyhow::Result<()> {
        if way == Way::Xdp {
            let mut ingress = Ingress::load(Capacity::default())?;
            let mut maps = Maps::new(ingress.descriptors()?)?;
            maps.functions.add(1, limits())?;
            maps.functions.add(2, Limits::default())?;
            maps.ports.give_udp(PORT, 1, false)?;
            maps.ports.give_tcp(HOST.port(), 2, false)?;
            self.host.within(|| {
                let attached = ingress.attach("h0", Wanted::Only(Mode::Native));
                attached.map(drop).map_err(io::Error::other)
            })?;
            return self.steps(steps, seen);
        }
        let attach = || self.floor.attach("h0").map_err(io::Error::other);
        let _attached = self.host.within(attach)?;
        if way == Way::Nowhere {
            return self.steps(steps, seen);
        }
        self.nft(TABLE)?;
        let measured = self.steps(steps, seen);
        self.nft("delete table netdev flood")?;
        measured
    }

    fn nft(&self, rules: &str) -> anyhow::Result<()> {
        let run = || Command::new("nft").arg(rules).output();
        let output = self.host.within(run)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "nft: {}", said.trim());
        Ok(())
    }

    fn steps(&self, steps: &[u64], seen: &mut [Seen]) -> anyhow::Result<()> {
        // The interface has NAPI as long as it has a program in its driver.
        let script = "echo 1 > /sys/class/net/h0/threaded && cat /sys/class/net/h0/threaded";
        let threaded = self.host.look("sh", &["-c", script])?;
        ensure!(threaded.trim() == "1", "the kernel has no threaded NAPI");
        for (step, seen) in steps.iter().zip(seen) {
            let (client, packets, flooded) = self
                .client
                .within(|| self.one_step(*step))
                .with_context(|| format!("a flood of {step} packets/s"))?;
            seen.client.extend(&client);
            seen.packets += packets;
            seen.flooded += flooded;
        }
        Ok(())
    }

    /// In the client's namespace.
    fn one_step(&self, rate: u64) -> io::Result<(Observed, u64, Duration)> {
        let stream = TcpStream::connect_timeout(&HOST, PATIENCE)?;
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let flood = scope.spawn(|| self.send(rate, &stop));
            // The buckets are empty, and the queues full, when the client begins.
            thread::sleep(self.turn / 10);
            let client = innocent(stream, self.turn);
            stop.store(true, Ordering::Relaxed);
            let (packets, flooded) = flood.join().expect("no panic")?;
            Ok((client?, packets, flooded))
        })
    }

    /// Sends so many a second until it is to stop. Says how many, in which time.
    fn send(&self, rate: u64, stop: &AtomicBool) -> io::Result<(u64, Duration)> {
        const LOWEST_PRIORITY: i32 = 19;
        rustix::process::setpriority_process(None, LOWEST_PRIORITY)?;
        let (begun, mut sent) = (Instant::now(), 0);
        while !stop.load(Ordering::Relaxed) {
            let due = (rate as f64 * begun.elapsed().as_secs_f64()) as u64;
            let count = due.saturating_sub(sent).min(MOST);
            if count == 0 {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            self.flood.send(&self.frame, count as u32)?;
            sent += count;
        }
        Ok((sent, begun.elapsed()))
    }
}

fn limits() -> Limits {
    Limits {
        source: Some(Rate {
            rate: LIMIT,
            burst: LIMIT,
        }),
        ..Limits::default()
    }
}

/// One request after the other over one connection. A client whose answer does not come gives up; its turn counts.
fn innocent(mut stream: TcpStream, turn: Duration) -> io::Result<Observed> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = request("GET", "/", b"");
    let mut observed = Observed::default();
    let begun = Instant::now();
    while begun.elapsed() < turn {
        let asked = Instant::now();
        match exchange(&mut stream, &request) {
            Ok(()) => observed.samples.push(asked.elapsed()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    observed.took = begun.elapsed();
    Ok(observed)
}

fn exchange(stream: &mut TcpStream, request: &[u8]) -> io::Result<()> {
    stream.write_all(request)?;
    let (mut answer, mut filled) = ([0; 1_024], 0);
    while !answer[..filled].ends_with(b"\r\n\r\nok") {
        match stream.read(&mut answer[filled..])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            length => filled += length,
        }
    }
    Ok(())
}

fn conclude(way: Way, steps: &[u64], seen: &[Seen], document: &mut Document) {
    for (step, seen) in steps.iter().zip(seen) {
        let row = row(way, *step);
        // A client that got no answer has no latency.
        if seen.client.samples.len() > 0 {
            document.add(CATEGORY, &row, seen.client.samples.clone());
        }
        document.figure(CATEGORY, &row, seen.client.rate(), REQUESTS);
        document.figure(CATEGORY, &row, seen.flood(), PACKETS);
    }
    let Some(quiet) = seen.first() else {
        return;
    };
    let enough = KEPT * quiet.client.rate();
    let kept = seen.iter().take_while(|seen| seen.client.rate() >= enough);
    let most = kept.last().map_or(0.0, Seen::flood);
    document.figure(CATEGORY, &keeps(way), most, "/s");
}
