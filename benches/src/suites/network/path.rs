//! Connections and streams of bytes: from a sandbox through its policy, and between two plain namespaces.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hearth_testkit::namespaces::within;

use super::world::{ECHO, NEAR, PUBLIC, SINK, SOURCE, World};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::suites::median::middle;
use crate::suites::pair::Pair;

/// A connection with one exchange, without its end.
pub const CONNECTION: &str = "TCP connection with one exchange of 64 B";
/// The handshake of it alone.
const HANDSHAKE: &str = "TCP handshake alone";
/// The two ways.
pub const TWO_PLAIN: &str = "two plain namespaces";
pub const POLICY: &str = "through a policy";

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

/// Measures both.
pub(super) fn run(
    world: &World,
    sandbox: &Path,
    scale: Scale,
    document: &mut Document,
) -> anyhow::Result<()> {
    let ways: [(PathBuf, _); 2] = [(world.plain.path(), NEAR), (sandbox.to_owned(), PUBLIC)];
    let names = [TWO_PLAIN, POLICY];
    let (mut whole, mut handshakes) = (Pair::default(), Pair::default());
    for _ in 0..scale.pick(ROUNDS, 1) {
        let mut round: [[Samples; 2]; 2] = Default::default();
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
    whole.conclude(CONNECTION, names, document);
    handshakes.conclude(HANDSHAKE, names, document);

    let turn = scale.pick(STREAM, QUICK_STREAM);
    for (direction, port) in [("to the function", SOURCE), ("from the function", SINK)] {
        let category = throughput(direction);
        let (mut pair, mut rates) = (Pair::default(), [Vec::new(), Vec::new()]);
        for _ in 0..scale.pick(STREAMS, 1) {
            let mut round = [0.0; 2];
            for (way, (namespace, address)) in ways.iter().enumerate() {
                let target = SocketAddr::new(*address, port);
                round[way] = within(namespace, || match port {
                    SOURCE => pull(target, turn),
                    _ => push(target, turn),
                })?;
                rates[way].push(round[way]);
            }
            pair.add_rates(round);
        }
        for (name, mut rates) in names.into_iter().zip(rates) {
            rates.sort_by(f64::total_cmp);
            document.figure(&category, name, middle(&rates) / 1e9, "GB/s");
        }
        pair.conclude_ratio(&category, names, document);
    }
    Ok(())
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
