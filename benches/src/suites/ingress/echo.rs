//! A client that sends datagrams and waits for them to come back.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::results::Samples;

/// Bytes of a datagram. It begins with its number.
const BYTES: usize = 64;
/// After this without any answer all that are under way are lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Echoed {
    /// From sending a datagram to its answer.
    pub(super) samples: Samples,
    /// Datagrams without one.
    pub(super) lost: u64,
    /// How long it took.
    pub(super) took: Duration,
    /// The client's processor time, with what the kernel does for it on the way to the server.
    pub(super) cpu: Duration,
}

impl Echoed {
    /// Adds a turn.
    pub(super) fn extend(&mut self, turn: &Self) {
        self.samples.extend(&turn.samples);
        self.lost += turn.lost;
        self.took += turn.took;
        self.cpu += turn.cpu;
    }

    /// Datagrams that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.samples.len() as u64 + self.lost
    }
}

/// Sends for so long, always with so many under way, from this address.
pub(super) fn echoes(
    from: SocketAddr,
    to: SocketAddr,
    under_way: usize,
    time: Duration,
) -> io::Result<Echoed> {
    let socket = UdpSocket::bind(from)?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut echoed = Echoed::default();
    let (mut next, mut sent) = (0_u64, HashMap::new());
    let (begun, cpu) = (Instant::now(), own_cpu());
    loop {
        while sent.len() < under_way && begun.elapsed() < time {
            let mut datagram = [0; BYTES];
            datagram[..8].copy_from_slice(&next.to_ne_bytes());
            sent.insert(next, Instant::now());
            socket.send(&datagram)?;
            next += 1;
        }
        if sent.is_empty() {
            break;
        }
        let mut answer = [0; BYTES];
        match socket.recv(&mut answer) {
            Ok(_) => {
                let number = answer[..8].try_into().expect("8 bytes");
                // One that was given up counts as lost.
                if let Some(sent) = sent.remove(&u64::from_ne_bytes(number)) {
                    echoed.samples.push(sent.elapsed());
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                echoed.lost += sent.len() as u64;
                sent.clear();
            }
            Err(error) => return Err(error),
        }
    }
    echoed.took = begun.elapsed();
    echoed.cpu = own_cpu().saturating_sub(cpu);
    Ok(echoed)
}

/// Processor time of the calling thread.
pub(super) fn own_cpu() -> Duration {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}
