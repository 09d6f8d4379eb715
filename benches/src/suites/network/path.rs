//! Connections and streams of bytes: from a sandbox through its policy, between two plain namespaces, and from a container.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hearth_testkit::namespaces::within;

use super::world::{ECHO, FAR, NEAR, PUBLIC, SINK, SOURCE, World};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::suites::median::middle;
use crate::suites::pair::Pair;

/// A connection with one exchange, without its end.
pub const CONNECTION: &str = "TCP connection with one exchange of 64 B";
/// The handshake of it alone.
const HANDSHAKE: &str = "TCP handshake alone";
/// The ways.
pub const TWO_PLAIN: &str = "two plain namespaces";
pub const CONTAINER: &str = "a container's, masqueraded";
pub const POLICY: &str = "through a policy";
const WAYS: [&str; 3] = [TWO_PLAIN, CONTAINER, POLICY];

/// Rounds, and connections of one.
const ROUNDS: usize = 30;
const PER_ROUND: usize = 100;
/// Rounds of streams, and how long each lasts.
const STREAMS: usize = 10;
const STREAM: Duration = Duration::from_millis(500);
const QUICK_STREAM: Duration = Duration::from_millis(20);
const MESSAGE: [u8; 64] = [b'x'; 64];
const CHUNK: usize = 128 << 10;

/// What the report calls a stream in one direction.
pub fn throughput(direction: &str) -> String {
    format!("bytes of one TCP connection, {direction}")
}

/// Measures all of them.
pub(super) fn run(
    world: &World,
    sandbox: &Path,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let ways: [(PathBuf, _); 3] = [
        (world.plain.path(), NEAR),
        (world.container.path(), FAR),
        (sandbox.to_owned(), PUBLIC),
    ];
    let (mut whole, mut handshakes) = (Ways::default(), Ways::default());
    for _ in 0..scale.pick(ROUNDS, 1) {
        let mut round: [[Samples; 3]; 2] = Default::default();
        for (way, (namespace, address)) in ways.iter().enumerate() {
            let target = SocketAddr::new(*address, ECHO);
            let count = scale.pick(PER_ROUND, 5);
            let [handshake, exchange] = within(namespace, || connections(target, count))?;
            round[0][way] = handshake;
            round[1][way] = exchange;
        }
        handshakes.add(&round[0]);
        whole.add(&round[1]);
    }
    whole.conclude(CONNECTION, document);
    handshakes.conclude(HANDSHAKE, document);

    let turn = scale.pick(STREAM, QUICK_STREAM);
    for (direction, port) in [("to the function", SOURCE), ("from the function", SINK)] {
        let category = throughput(direction);
        let mut pairs = <[Pair; 2]>::default();
        let mut rates = <[Vec<f64>; 3]>::default();
        for _ in 0..scale.pick(STREAMS, 1) {
            let mut round = [0.0; 3];
            for (way, (namespace, address)) in ways.iter().enumerate() {
                let target = SocketAddr::new(*address, port);
                round[way] = within(namespace, || match port {
                    SOURCE => pull(target, turn),
                    _ => push(target, turn),
                })?;
                rates[way].push(round[way]);
            }
            for (first, pair) in pairs.iter_mut().enumerate() {
                pair.add_rates([round[first], round[2]]);
            }
        }
        for (name, mut rates) in WAYS.into_iter().zip(rates) {
            rates.sort_by(f64::total_cmp);
            document.figure(&category, name, middle(&rates) / 1e9, "GB/s");
        }
        for (first, pair) in pairs.into_iter().enumerate() {
            pair.conclude_ratio(&category, [WAYS[first], POLICY], document);
        }
    }
    Ok(())
}

/// Times by each way, and those through a policy against each of the others.
#[derive(Default)]
struct Ways {
    samples: [Samples; 3],
    pairs: [Pair; 2],
}

impl Ways {
    fn add(&mut self, round: &[Samples; 3]) {
        for (all, samples) in self.samples.iter_mut().zip(round) {
            all.extend(samples);
        }
        for (first, pair) in self.pairs.iter_mut().enumerate() {
            pair.add(&[round[first].clone(), round[2].clone()]);
        }
    }

    fn conclude(self, category: &str, document: &mut Document) {
        for (name, samples) in WAYS.into_iter().zip(self.samples) {
            document.add(category, name, samples);
        }
        for (first, pair) in self.pairs.into_iter().enumerate() {
            pair.conclude_ratio(category, [WAYS[first], POLICY], document);
        }
    }
}

/// Handshakes, and handshakes with an exchange.
fn connections(target: SocketAddr, count: usize) -> io::Result<[Samples; 2]> {
    let mut samples = [Samples::default(), Samples::default()];
    for _ in 0..count {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(target)?;
        samples[0].push(begun.elapsed());
        stream.write_all(&MESSAGE)?;
        stream.read_exact(&mut [0; MESSAGE.len()])?;
        samples[1].push(begun.elapsed());
    }
    Ok(samples)
}

/// Bytes a second that come.
fn pull(target: SocketAddr, turn: Duration) -> io::Result<f64> {
    let mut stream = TcpStream::connect(target)?;
    let (begun, mut bytes, mut buffer) = (Instant::now(), 0, vec![0; CHUNK]);
    while begun.elapsed() < turn {
        bytes += stream.read(&mut buffer)?;
    }
    Ok(bytes as f64 / begun.elapsed().as_secs_f64())
}

/// Bytes a second that go.
fn push(target: SocketAddr, turn: Duration) -> io::Result<f64> {
    let mut stream = TcpStream::connect(target)?;
    let (begun, mut bytes, buffer) = (Instant::now(), 0, vec![0; CHUNK]);
    while begun.elapsed() < turn {
        bytes += stream.write(&buffer)?;
    }
    Ok(bytes as f64 / begun.elapsed().as_secs_f64())
}
